"""Rows of the losses.

The gradient of most losses is not the derivative of their output, so it is checked by the rows of their ``_backward_``
operators.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from . import Row, integers, normal, uniform

__all__ = ["ROWS"]


def _soft(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x)
    return e / e.sum(axis, keepdims=True)


def _classes(total: int, *shape: int, seed: int = 0) -> np.ndarray:
    return integers(0, total, *shape, seed=seed).astype("float64")


def _hot(label: np.ndarray, total: int) -> np.ndarray:
    """One-hot labels, with zeros for a label that is no class; the classes are the last axis."""
    return (np.arange(total) == label.astype(int)[..., None]).astype("float64")


def _softmax_back(divisor: Any = 1.0, ignore: float | None = None, smooth: float = 0.0, out_grad: bool = False) -> Any:
    """The gradient for classes along the last axis."""

    def expected(p, label):
        total = p.shape[-1]
        target = _hot(label, total)
        if smooth:
            target = np.where(target == 1, 1 - smooth, smooth / (total - 1))
        dx = (p - target) / divisor
        if ignore is not None:
            dx = dx * (label != ignore)[..., None]
        return dx * p if out_grad else dx

    return expected


def _second_axis(expected: Any) -> Any:
    """The gradient for classes along the second axis."""

    def moved(p, label):
        places = np.moveaxis(p, 1, -1)
        return np.moveaxis(expected(places, label.reshape(places.shape[:-1])), -1, 1)

    return moved


_P = _soft(normal(4, 3))
_PLACES = _soft(normal(2, 3, 4), 1)
_LABEL = np.array([2.0, 0.0, 1.0, 2.0])
_LABELS = np.array([[2.0, 0.0, 1.0, 2.0], [0.0, 0.0, 1.0, -1.0]])

ROWS: list[Row] = [
    Row("SoftmaxOutput", [normal(4, 3), _LABEL], {}, lambda x, label: _soft(x),
        dtypes=("float64", "float32", "float16")),
    Row("SoftmaxOutput", [normal(2, 3, 4), _LABELS], {"multi_output": True}, lambda x, label: _soft(x, 1)),
    Row("SoftmaxOutput", [normal(2, 2, 3), _classes(3, 2, 2)], {"preserve_shape": True}, lambda x, label: _soft(x)),
    Row("SoftmaxOutput", [normal(2, 3, 4), _classes(3, 2, 3)], {}, name="rows",
        expected=lambda x, label: _soft(x.reshape(2, 12)).reshape(x.shape)),
    Row("SoftmaxOutput", [normal(4, 3), uniform(0, 1, 4, 3)], {"grad_scale": 2.0}, lambda x, label: _soft(x)),
    Row("_backward_SoftmaxOutput", [_P, _LABEL], {}, _softmax_back()),
    Row("_backward_SoftmaxOutput", [_P, np.array([-1.0, 3.0, 1.0, 7.0])], {}, _softmax_back(), name="outside"),
    Row("_backward_SoftmaxOutput", [_P, _LABEL], {"normalization": "batch", "grad_scale": 0.5}, _softmax_back(8)),
    Row("_backward_SoftmaxOutput", [_P, _LABEL], {"normalization": "valid", "use_ignore": True, "ignore_label": 2.0},
        _softmax_back(2, 2)),
    Row("_backward_SoftmaxOutput", [_P, _LABEL], {"smooth_alpha": 0.3, "out_grad": True},
        _softmax_back(smooth=0.3, out_grad=True)),
    Row("_backward_SoftmaxOutput", [_P, uniform(0, 1, 4, 3)], {"grad_scale": 2.0, "normalization": "batch"},
        lambda p, label: 2 * (p - label), name="probabilities"),
    Row("_backward_SoftmaxOutput", [_PLACES, _LABELS], {"multi_output": True}, _second_axis(_softmax_back(4))),
    *(Row("_backward_SoftmaxOutput", [np.zeros(shape), np.zeros((shape[0], *shape[2:]))],
          {"multi_output": True, "normalization": normalization}, lambda y, label: y,
          name=f"empty,{shape},{normalization}")
      for shape in ((0, 3, 4), (2, 3, 0), (2, 0, 4)) for normalization in ("null", "batch", "valid")),
    Row("_backward_SoftmaxOutput", [_PLACES, _LABELS[:, None]], {"multi_output": True, "normalization": "batch"},
        _second_axis(_softmax_back(8))),
    Row("_backward_SoftmaxOutput", [_PLACES, _LABELS],
        {"multi_output": True, "normalization": "valid", "use_ignore": True}, _second_axis(_softmax_back(7, -1))),
    Row("_backward_SoftmaxOutput", [_soft(normal(2, 2, 3)), _classes(3, 2, 2)],
        {"preserve_shape": True, "normalization": "batch"}, _softmax_back(4)),
    # There are as many class indices as scores; their shape distinguishes them from probabilities.
    Row("_backward_SoftmaxOutput", [np.ones((4, 1)), np.array([0.0, -1.0, 1.0, 0.0])], {}, _softmax_back(), name="one"),
    Row("_backward_SoftmaxOutput", [np.ones((4, 1)), np.array([0.0, -1.0, 1.0, 0.0])],
        {"use_ignore": True, "normalization": "valid"}, _softmax_back(3, -1), name="one"),
    Row("_backward_SoftmaxOutput", [np.ones((4, 1)), np.array([[0.0], [0.5], [1.0], [0.25]])], {},
        lambda p, label: p - label, name="chances of one"),
    Row("_backward_SoftmaxOutput", [np.ones((2, 1, 3)), np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0]])],
        {"multi_output": True, "use_ignore": True}, _second_axis(_softmax_back(3, -1)), name="one"),
    Row("_backward_SoftmaxOutput", [_soft(normal(2, 3, 1, 1), 1), np.array([[[0.0]], [[2.0]]])],
        {"multi_output": True}, _second_axis(_softmax_back()), name="one place"),
]

# --------------------------------------------------------------------------------------------- regressions

_X, _T = normal(4, 3), normal(4, 3, seed=1)

ROWS += [
    Row("LinearRegressionOutput", [_X, _T], {}, lambda x, t: x),
    Row("LinearRegressionOutput", [normal(4, 1), normal(4)], {"grad_scale": 2.0}, lambda x, t: x, name="column"),
    Row("MAERegressionOutput", [_X, _T], {}, lambda x, t: x),
    Row("LogisticRegressionOutput", [_X, _T], {}, lambda x, t: 1 / (1 + np.exp(-x))),
    Row("LogisticRegressionOutput", [np.array([[-1e3, 1e3]]), np.zeros((1, 2))], {}, name="large",
        expected=lambda x, t: np.array([[0.0, 1.0]])),
    Row("_backward_regression", [_X, _T], {"grad_scale": 2.0}, lambda y, t: (y - t) * 2 / 3),
    Row("_backward_regression", [normal(4, 1), normal(4)], {}, lambda y, t: y - t[:, None]),
    Row("_backward_MAERegressionOutput", [normal(2, 3, 2), normal(2, 6, seed=1)], {"grad_scale": 2.0},
        lambda y, t: np.sign(y - t.reshape(y.shape)) / 3),
]

# ------------------------------------------------------------------------- SVMOutput, MakeLoss, make_loss


def _svm(margin: float = 1.0, scale: float = 1.0, linear: bool = False) -> Any:
    def expected(x, label):
        side = 2 * _hot(label, x.shape[-1]) - 1
        lack = np.maximum(margin - side * x, 0)
        return -side * scale * (lack > 0 if linear else 2 * lack)

    return expected


ROWS += [
    Row("SVMOutput", [_X, _LABEL], {}, lambda x, label: x),
    Row("SVMOutput", [normal(2, 2, 3), _classes(3, 2, 2)], {"use_linear": True}, lambda x, label: x),
    Row("_backward_SVMOutput", [_X, _LABEL], {}, _svm()),
    Row("_backward_SVMOutput", [_X, np.array([-1.0, 3.0, 1.0, 7.0])], {"use_linear": True}, _svm(linear=True)),
    Row("_backward_SVMOutput", [normal(2, 2, 3), _classes(3, 2, 2)],
        {"margin": 0.3, "regularization_coefficient": 2.0}, _svm(0.3, 2.0)),
    Row("MakeLoss", [_X], {"grad_scale": 2.0}, lambda x: x),
    Row("make_loss", [_X], {}, lambda x: x),
    Row("_backward_MakeLoss", [_X], {"grad_scale": 2.0}, lambda x: np.full_like(x, 2.0)),
    Row("_backward_MakeLoss", [_X], {"normalization": "batch"}, lambda x: np.full_like(x, 0.25)),
    Row("_backward_MakeLoss", [normal(4)], {"normalization": "batch"}, np.ones_like, name="vector"),
    Row("_backward_MakeLoss", [normal(2, 3, 4)], {"normalization": "batch"}, lambda x: np.full_like(x, 1 / 6),
        name="rows"),
    Row("_backward_MakeLoss", [_X], {"normalization": "valid", "valid_thresh": 0.3},
        lambda x: np.full_like(x, 1 / (x > 0.3).sum())),
    Row("_backward_MakeLoss", [_X], {"normalization": "valid", "valid_thresh": 30.0}, np.ones_like),
]

# ------------------------------------------------------------------- softmax_cross_entropy, sparse regulariser

ROWS += [
    Row("softmax_cross_entropy", [_X, _LABEL], {}, grad=(0,), second=True,
        expected=lambda x, label: -(np.log(_soft(x)) * _hot(label, 3)).sum(keepdims=True).reshape(1)),
    Row("softmax_cross_entropy", [_X, np.array([2.9, -1.0, 3.0, -0.5])], {}, name="no class", grad=(),
        expected=lambda x, label: -np.log([_soft(x)[0, 2], 1e-8, 1e-8, _soft(x)[3, 0]]).sum(keepdims=True)),
    Row("_backward_softmax_cross_entropy", [np.array([3.0]), _X, _LABEL], {}, grad=(0, 1), second=True,
        expected=lambda g, x, label: g * (_soft(x) - _hot(label, 3))),
    Row("IdentityAttachKLSparseReg", [uniform(0.1, 0.9, 4, 3), uniform(0.1, 0.9, 3)], {"penalty": 0.1},
        lambda x, moving: x),
    Row("IdentityAttachKLSparseReg", [np.zeros((4, 0)), np.zeros(0)], {}, lambda x, moving: x, name="no units"),
    Row("IdentityAttachKLSparseReg", [uniform(0.1, 0.9, 4, 3), uniform(0.1, 0.9, 3)], {}, lambda x, moving: x,
        train=False, name="inference"),
    Row("_backward_IdentityAttachKLSparseReg", [normal(4, 3, 2), uniform(0.1, 0.9, 3)],
        {"penalty": 0.1, "sparseness_target": 0.2},
        lambda g, moved: g + (0.1 * (0.8 / (1 - moved) - 0.2 / moved))[:, None]),
]

# ----------------------------------------------------------------------------------------------- CTCLoss


def _spell(p: np.ndarray, word: tuple[int, ...], blank: int) -> np.ndarray:
    """Probability of having reached each position among blanks and labels, at each time."""
    places = [blank if s % 2 == 0 else word[s // 2] for s in range(2 * len(word) + 1)]
    reached = np.zeros((len(p), len(places)))
    for t in range(len(p)):
        for s, label in enumerate(places):
            if t == 0:
                ways = float(s < 2)
            else:
                skips = s % 2 and s > 1 and label != places[s - 2]
                ways = reached[t - 1, [s, *([s - 1] if s else []), *([s - 2] if skips else [])]].sum()
            reached[t, s] = ways * p[t, label]
    return reached


def _cost(p: np.ndarray, word: tuple[int, ...], blank: int) -> float:
    return -np.log(_spell(p, word, blank)[-1, -2 if word else -1:].sum())


def _ctc(blank: str = "first", data_lengths: bool = False, label_lengths: bool = False) -> Any:
    def expected(x, label, *lengths):
        p = _soft(x.astype("float64"))
        result = []
        for i, row in enumerate(label.astype(int).tolist()):
            time = int(lengths[0][i]) if data_lengths else len(x)
            padding = 0 if blank == "first" else -1
            count = int(lengths[-1][i]) if label_lengths else (row + [padding]).index(padding)
            word = tuple(row[:count])
            needed = count + sum(a == b for a, b in pairwise(word))
            number = 0 if blank == "first" else x.shape[2] - 1
            result.append(_cost(p[:time, i], word, number) if needed <= time else 0.0)
        return np.array(result, x.dtype)

    return expected


_SPOKEN = normal(5, 3, 4)
_WORD = np.array([[1.0, 2.0, 2.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
_FULL = np.array([[1.0, 2.0, 2.0], [3.0, 1.0, 3.0], [1.0, 1.0, 1.0]])

ROWS += [
    Row("CTCLoss", [_SPOKEN, _WORD], {}, _ctc(), grad=(0,)),
    Row("CTCLoss", [_SPOKEN, _WORD - 1], {"blank_label": "last"}, _ctc("last"), grad=(0,)),
    Row("CTCLoss", [_SPOKEN, _WORD, np.array([3.0, 5.0, 2.0])], {"use_data_lengths": True}, _ctc(data_lengths=True),
        grad=(0,)),
    Row("CTCLoss", [_SPOKEN, _FULL, np.array([3.0, 1.0, 2.0])], {"use_label_lengths": True}, _ctc(label_lengths=True),
        grad=(0,)),
    Row("CTCLoss", [_SPOKEN, _FULL - 1, np.array([4.0, 5.0, 1.0]), np.array([3.0, 2.0, 0.0])], grad=(0,),
        attrs={"use_data_lengths": True, "use_label_lengths": True, "blank_label": "last"},
        expected=_ctc("last", True, True)),
]


def _backward_row(time: int, *word: int) -> Row:
    """A row of the gradient, whose inputs are the loss and the sums that forward stores."""
    x = normal(time, 1, 3)
    p = _soft(x)[:, 0]
    with np.errstate(divide="ignore"):
        alpha = np.log(_spell(p, word, 0))[:, None]

    def expected(g, x, *_):
        dx, step = np.zeros_like(x), 1e-5
        for index in np.ndindex(x.shape):
            for sign in (1, -1):
                moved = x.copy()
                moved[index] += sign * step
                dx[index] += sign * _cost(_soft(moved)[:, 0], word, 0) / (2 * step)
        return dx * g

    inputs = [np.array([2.0]), x, np.array([word], "float64"), np.array([_cost(p, word, 0)]), alpha]
    return Row("_backward_ctc_loss", inputs, {}, expected, dtypes=("float64",), name=f"{word}")


ROWS += [_backward_row(4, 1, 2), _backward_row(4, 1, 1)]
