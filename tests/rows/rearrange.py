"""Rows of the operators that rearrange and enlarge images."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_IMAGE = normal(2, 2, 4, 5)


def _row(op, inputs, attrs, expected, grad=(0,), **keywords):
    return Row(op, inputs, attrs, expected=expected, grad=grad, second=True, **keywords)


# ------------------------------------------------------------------------------------------------- blocks


def _deep(x: np.ndarray, b: int) -> np.ndarray:
    parts = [x[:, :, i::b, j::b] for i in range(b) for j in range(b)]
    return np.concatenate(parts, axis=1)


def _wide(x: np.ndarray, b: int) -> np.ndarray:
    n, c, h, w = x.shape
    result = np.empty((n, c // b**2, h * b, w * b), x.dtype)
    for i in range(b):
        for j in range(b):
            part = i * b + j
            result[:, :, i::b, j::b] = x[:, part * c // b**2:(part + 1) * c // b**2]
    return result


ROWS: list[Row] = [
    *[_row("space_to_depth", [normal(2, 2, 6, 4)], {"block_size": b}, lambda x, b=b: _deep(x, b)) for b in (1, 2)],
    *[_row("depth_to_space", [normal(2, 8, 3, 2)], {"block_size": b}, lambda x, b=b: _wide(x, b)) for b in (1, 2)],
]

# ------------------------------------------------------------------------------------------------ columns


def _columns(x, kernel, stride, dilate, pad):
    """Windows as columns, filled element by element."""
    n, c = x.shape[:2]
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in pad]])
    counts = [(dim - d * (k - 1) - 1) // s + 1 for dim, k, s, d in zip(x.shape[2:], kernel, stride, dilate)]
    result = np.empty((n, c, *kernel, *counts), x.dtype)
    for tap in np.ndindex(*kernel):
        for place in np.ndindex(*counts):
            at = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilate))
            result[(slice(None), slice(None), *tap, *place)] = x[(slice(None), slice(None), *at)]
    return result.reshape(n, c * int(np.prod(kernel)), -1)


def _image(columns, shape, *window):
    """The transpose of ``_columns``, found by rearranging positions."""
    places = _columns(np.arange(1, 1 + np.prod(shape)).reshape(shape), *window)
    return np.bincount(places.ravel(), columns.ravel(), 1 + np.prod(shape))[1:].reshape(shape).astype(columns.dtype)


for _shape, _window in [
    ((2, 2, 4, 5), ((2, 3), (1, 1), (1, 1), (0, 0))), ((2, 2, 4, 5), ((3, 2), (2, 1), (1, 2), (1, 2))),
    ((1, 2, 7), ((3,), (2,), (2,), (1,))), ((1, 2, 3, 4, 3), ((2, 2, 2), (1, 2, 1), (1, 1, 1), (0, 1, 0))),
]:
    _attrs = dict(zip(("kernel", "stride", "dilate", "pad"), _window))
    _made = _columns(np.zeros(_shape), *_window).shape
    ROWS += [
        _row("im2col", [normal(*_shape)], _attrs, lambda x, window=_window: _columns(x, *window)),
        _row("_backward_im2col", [normal(*_made), np.zeros(_shape)], _attrs,
             lambda g, x, window=_window: _image(g, x.shape, *window)),
        _row("col2im", [normal(*_made)], {"output_size": _shape[2:], **_attrs},
             lambda g, shape=_shape, window=_window: _image(g, shape, *window)),
    ]
ROWS.append(_row("im2col", [_IMAGE], {"kernel": (2, 2)}, lambda x: _columns(x, (2, 2), (1, 1), (1, 1), (0, 0))))

# --------------------------------------------------------------------------------------------- UpSampling


def _repeated(x: np.ndarray, n: int) -> np.ndarray:
    return x.repeat(n, 2).repeat(n, 3)


def _interpolated(x: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """Transposed convolution of each channel with its own kernel."""
    b, c, h, w = x.shape
    k, edge = weight.shape[-1], n // 2
    result = np.zeros((b, c, (h - 1) * n + k, (w - 1) * n + k), x.dtype)
    for i, j in np.ndindex(h, w):
        result[:, :, i * n:i * n + k, j * n:j * n + k] += x[:, :, i, j, None, None] * weight[:, 0]
    return result[:, :, edge:edge + h * n, edge:edge + w * n]


_LARGE, _TINY = normal(2, 3, 4, 4, seed=5), normal(2, 2, 2, 2, seed=6)
_PAIR = {"sample_type": "nearest", "num_args": 2, "scale": 2}
ROWS += [
    _row("UpSampling", [_TINY], {"scale": 3, "sample_type": "nearest", "num_args": 1}, grad=(0,),
         expected=lambda x: _repeated(x, 3)),
    _row("UpSampling", [_LARGE, _TINY], _PAIR, grad=(0, 1),
         expected=lambda x, y: np.concatenate([_repeated(x, 2), _repeated(y, 4)], 1)),
    _row("UpSampling", [normal(2, 2, 4, 4), _TINY], {**_PAIR, "multi_input_mode": "sum"}, grad=(0, 1),
         expected=lambda x, y: _repeated(x, 2) + _repeated(y, 4)),
]
for _scale, _kernel in ((2, 4), (3, 5)):
    _weight = normal(2, 1, _kernel, _kernel)
    ROWS += [
        _row("UpSampling", [_TINY, _weight], {"scale": _scale, "sample_type": "bilinear", "num_filter": 2,
                                              "num_args": 2}, grad=(0, 1),
             expected=lambda x, w, n=_scale: _interpolated(x, w, n)),
        _row("_upsampling_bilinear", [_TINY, _weight], {"scale": _scale}, grad=(0, 1),
             expected=lambda x, w, n=_scale: _interpolated(x, w, n)),
    ]
