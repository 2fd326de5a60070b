"""Rows of the operators that cut, join, pad and reverse arrays."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_X = normal(3, 4, 5)
_FLAT = normal(6)
_IMAGE = normal(1, 2, 4, 5, seed=3)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape)


def _linear(op, inputs, attrs, expected, grad=(0,), **keywords):
    """A row of an operator that is linear in its inputs."""
    return Row(op, inputs, attrs, expected=expected, grad=grad, second=True, **keywords)


def _put(shape, cut):
    def expected(g, *_):
        result = np.zeros(shape, g.dtype)
        result[cut] = g
        return result

    return expected


_CUTS = [
    (_X, {"begin": (1, 0), "end": (3, 4)}, np.s_[1:3, 0:4]),
    (_X, {"begin": (None, 4), "end": (None, 0), "step": (2, -2)}, np.s_[::2, 4:0:-2]),
    (_X, {"begin": (-2,), "end": (-1,)}, np.s_[-2:-1]),
    (_X, {"begin": (0, 1, 2), "end": (9, 9, 9), "step": (None, 1, 2)}, np.s_[0:9, 1:9, 2:9:2]),
    (_FLAT, {"begin": 1, "end": 4}, np.s_[1:4]),
    (_FLAT, {"begin": (1,), "end": (None,), "step": None}, np.s_[1:]),
    (_FLAT, {"begin": (4,), "end": (2,)}, np.s_[4:2]),
]
_AXIS_CUTS = [
    ({"axis": 1, "begin": 1, "end": None}, np.s_[:, 1:]), ({"axis": -1, "begin": -3, "end": -1}, np.s_[:, :, -3:-1]),
    ({"axis": 0, "begin": 0, "end": 2}, np.s_[:2]),
]

ROWS: list[Row] = []
for _data, _attrs, _cut in _CUTS:
    _part = _data[_cut]
    ROWS += [
        _linear("slice", [_data], _attrs, lambda x, cut=_cut: x[cut]),
        _linear("_backward_slice", [normal(*_part.shape), _data], _attrs, _put(_data.shape, _cut)),
        _linear("_slice_assign", [_data, normal(*_part.shape)], _attrs,
                lambda x, y, cut=_cut: _put(x.shape, cut)(y - x[cut]) + x, grad=(0, 1)),
        _linear("_slice_assign_scalar", [_data], {**_attrs, "scalar": 2.5},
                lambda x, cut=_cut: _put(x.shape, cut)(2.5 - x[cut]) + x, tolerance=1e-5),
    ]
for _attrs, _cut in _AXIS_CUTS:
    ROWS += [
        _linear("slice_axis", [_X], _attrs, lambda x, cut=_cut: x[cut]),
        _linear("_backward_slice_axis", [normal(*_X[_cut].shape), _X], _attrs, _put(_X.shape, _cut)),
    ]
ROWS += [
    _linear("slice_like", [_X, _zeros(2, 4, 3)], {}, lambda x, y: x[:2, :, :3]),
    _linear("slice_like", [_X, _zeros(2, 2)], {"axes": (0,)}, lambda x, y: x[:2]),
    _linear("slice_like", [_X, _zeros(9, 2, 3)], {"axes": (1, -1)}, lambda x, y: x[:, :2, :3]),
    _linear("slice_like", [_X, _zeros(2, 3)], {"axes": -2}, lambda x, y: x[:, :3]),
    _linear("_backward_slice_like", [normal(2, 4, 3), _X], {}, _put((3, 4, 5), np.s_[:2, :, :3])),
    _linear("Crop", [_IMAGE], {"num_args": 1, "h_w": (2, 3), "offset": (1, 2)}, lambda x: x[:, :, 1:3, 2:5]),
    _linear("Crop", [_IMAGE], {"num_args": 1, "h_w": (2, 2), "center_crop": True}, lambda x: x[:, :, 1:3, 1:3]),
    _linear("Crop", [_IMAGE, _zeros(3, 1, 3, 2)], {"num_args": 2, "offset": (1, 0)},
            lambda x, y: x[:, :, 1:4, 0:2]),
    _linear("_backward_Crop", [normal(1, 2, 2, 2), _IMAGE], {"num_args": 2, "center_crop": True},
            _put((1, 2, 4, 5), np.s_[:, :, 1:3, 1:3])),
    _linear("reverse", [_X], {"axis": (1,)}, lambda x: x[:, ::-1]),
    _linear("reverse", [_X], {"axis": (0, -1)}, lambda x: x[::-1, :, ::-1]),
    _linear("reverse", [_X], {"axis": 2}, lambda x: x[:, :, ::-1]),
]

# ------------------------------------------------------------------------------------------ joined, parted


def _joined(axis: int):
    return lambda *parts: np.concatenate(parts, axis)


ROWS += [
    *[_linear(op, [normal(2, 3, seed=1), normal(2, 1, seed=2), normal(2, 2, seed=3)], {"num_args": 3, "dim": dim},
              _joined(1), grad=(0, 1, 2)) for op, dim in (("Concat", 1), ("_rnn_param_concat", -1))],
    _linear("Concat", [_X], {"num_args": 1, "dim": 0}, lambda x: x),
    _linear("Concat", [_FLAT, _FLAT + 1], {"num_args": 2, "dim": 0}, _joined(0), grad=(0, 1)),
    _linear("_backward_Concat", [normal(2, 6), _zeros(2, 4), _zeros(2, 2)], {"num_args": 3, "dim": 1},
            lambda g, x, y: (g[:, :4], g[:, 4:])),
    _linear("_backward_Concat", [_X, _X], {"num_args": 2, "dim": -1}, lambda g, x: g),
    *[_linear("stack", [_X, _X + 1, -_X], {"num_args": 3, "axis": axis},
              lambda *x, axis=axis: np.stack(x, axis), grad=(0, 1, 2)) for axis in (0, 1, -1)],
    _linear("stack", [_FLAT], {"num_args": 1}, lambda x: x[None]),
    _linear("SliceChannel", [_X], {"num_outputs": 2}, lambda x: (x[:, :2], x[:, 2:])),
    _linear("SliceChannel", [_X], {"num_outputs": 3, "axis": -3}, lambda x: tuple(x[i:i + 1] for i in range(3))),
    _linear("SliceChannel", [_X], {"num_outputs": 5, "axis": 2, "squeeze_axis": True},
            lambda x: tuple(x[:, :, i] for i in range(5))),
    _linear("SliceChannel", [_X], {"num_outputs": 1}, lambda x: x),
    _linear("_split_v2", [_X], {"indices": (0, 2, 3), "axis": 2}, lambda x: tuple(np.split(x, [2, 3], 2))),
    _linear("_split_v2", [_X], {"indices": (0,), "axis": 1, "sections": 3}, lambda x: tuple(np.array_split(x, 3, 1))),
    _linear("_split_v2", [_X], {"indices": (0, 1, 2), "axis": 0, "squeeze_axis": True}, tuple),
    _linear("_split_v2", [_X], {"indices": (0, 2, 2)}, lambda x: tuple(np.split(x, [2, 2], 1))),
    _linear("_split_v2", [_X], {"indices": 0}, lambda x: x),
    Row("khatri_rao", [normal(2, 3, seed=1), normal(4, 3, seed=2)], {"num_args": 2}, grad=(0, 1),
        expected=lambda a, b: (a[:, None] * b[None]).reshape(8, 3)),
    Row("khatri_rao", [normal(2, 2, seed=1), normal(3, 2, seed=2), normal(2, 2, seed=3)], {"num_args": 3},
        expected=lambda a, b, c: np.einsum("ip,jp,kp->ijkp", a, b, c).reshape(12, 2), grad=(0, 1, 2)),
    Row("khatri_rao", [normal(2, 3)], {"num_args": 1}, expected=lambda a: a, grad=(0,)),
]

# ------------------------------------------------------------------------------------------------- padded

_WIDTHS = (0, 0, 0, 0, 1, 2, 2, 1)
_PAIRS = [(0, 0), (0, 0), (1, 2), (2, 1)]


def _fold(mode: str):
    """The transpose of np.pad, found by padding positions."""

    def expected(g):
        places = np.pad(np.arange(40).reshape(1, 2, 4, 5), _PAIRS, mode)
        return np.bincount(places.ravel(), g.ravel(), 40).reshape(1, 2, 4, 5).astype(g.dtype)

    return expected


ROWS += [
    Row("Pad", [_IMAGE], {"mode": "constant", "pad_width": _WIDTHS, "constant_value": 0.5}, grad=(0,), second=True,
        expected=lambda x: np.pad(x, _PAIRS, constant_values=0.5)),
    *[_linear("Pad", [_IMAGE], {"mode": mode, "pad_width": _WIDTHS}, lambda x, mode=mode: np.pad(x, _PAIRS, mode))
      for mode in ("edge", "reflect")],
    _linear("Pad", [_FLAT], {"mode": "constant", "pad_width": (2, 0)}, lambda x: np.pad(x, (2, 0))),
    _linear("_backward_Pad", [normal(1, 2, 7, 8)], {"mode": "constant", "pad_width": _WIDTHS},
            lambda g: g[:, :, 1:5, 2:7]),
    *[_linear("_backward_Pad", [normal(1, 2, 7, 8)], {"mode": mode, "pad_width": _WIDTHS}, _fold(mode))
      for mode in ("edge", "reflect")],
]
