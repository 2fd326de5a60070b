"""Rows of linear algebra."""

from __future__ import annotations

import numpy as np

from . import Row, normal, uniform

__all__ = ["ROWS"]


def _t(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def _positive(*stack: int, size: int = 3) -> np.ndarray:
    """Symmetric matrices with eigenvalues from one up."""
    x = normal(*stack, size, size, seed=3)
    return x @ _t(x) + np.eye(size)


def _factor(*stack: int, size: int = 3, seed: int = 4) -> np.ndarray:
    """Matrices whose lower and upper triangles are both easily inverted."""
    return normal(*stack, size, size, seed=seed, scale=0.4) + 2 * np.eye(size)


def _signed(vectors: np.ndarray) -> np.ndarray:
    """Rows with their largest number made positive."""
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-1)[..., None], -1)
    return vectors * np.sign(largest)


def _eigen(x):
    values, vectors = np.linalg.eigh(x)
    return _signed(_t(vectors)), values


def _numbers(x):
    return np.asarray(x).reshape(np.shape(x) or (1,))


_A, _B, _S = normal(2, 3, 4), normal(2, 4, 3, seed=1), normal(2, 3, 3, seed=2)
_WIDE, _TALL = normal(2, 3, 2, seed=5), normal(2, 2, 3, seed=6)
_LOW = _factor(2)

ROWS: list[Row] = [
    Row("_linalg_gemm2", [_A, _B], expected=lambda a, b: a @ b, grad=(0, 1), second=True),
    Row("_linalg_gemm2", [_A, normal(2, 3, 4, seed=1)], {"transpose_a": True, "alpha": -2.0}, grad=(0, 1), second=True,
        expected=lambda a, b: -2 * _t(a) @ b),
    Row("_linalg_gemm2", [_A, normal(2, 3, 4, seed=1)], {"transpose_b": True}, grad=(0, 1), second=True,
        expected=lambda a, b: a @ _t(b)),
    Row("_linalg_gemm2", [normal(3, 4), normal(2, 3, seed=1)], {"transpose_a": True, "transpose_b": True},
        grad=(0, 1), second=True, expected=lambda a, b: a.T @ b.T),
    Row("_linalg_gemm2", [normal(3, 2, 4), normal(4, 2, 5)], {"axis": 0, "alpha": 0.5}, grad=(0, 1),
        expected=lambda a, b: np.einsum("isk,ksj->isj", a, b) / 2),
    Row("_linalg_gemm", [_A, _B, _S], {"alpha": 2.0, "beta": -0.5}, grad=(0, 1, 2), second=True,
        expected=lambda a, b, c: 2 * a @ b - c / 2),
    Row("_linalg_gemm", [_A, normal(2, 3, 4, seed=1), _S], {"transpose_b": True}, grad=(0, 1, 2),
        expected=lambda a, b, c: a @ _t(b) + c),
    Row("_linalg_syrk", [_A], {"alpha": 1.5}, grad=(0,), second=True, expected=lambda a: 1.5 * a @ _t(a)),
    Row("_linalg_syrk", [_A], {"transpose": True}, grad=(0,), second=True, expected=lambda a: _t(a) @ a),
]
for _transpose in (False, True):
    for _rightside in (False, True):
        for _lower in (False, True):
            _attrs = {"transpose": _transpose, "rightside": _rightside, "lower": _lower, "alpha": 1.5}

            def _half(a, attrs=_attrs):
                half = np.tril(a) if attrs["lower"] else np.triu(a)
                return _t(half) if attrs["transpose"] else half

            _other = _TALL if _rightside else _WIDE
            ROWS += [
                Row("_linalg_trmm", [_LOW, _other], _attrs, grad=(0, 1), second=_lower,
                    expected=lambda a, b, half=_half, right=_rightside: 1.5 * (b @ half(a) if right else half(a) @ b)),
                Row("_linalg_trsm", [_LOW, _other], _attrs, grad=(0, 1), second=_lower,
                    expected=lambda a, b, half=_half, right=_rightside: 1.5 * (
                        b @ np.linalg.inv(half(a)) if right else np.linalg.inv(half(a)) @ b)),
            ]
ROWS += [
    # Operators that read one triangle of a symmetric matrix are differentiated in test_linalg.
    Row("_linalg_potrf", [_positive(2)], expected=np.linalg.cholesky),
    Row("_linalg_potrf", [_positive()], expected=np.linalg.cholesky),
    Row("_linalg_potrf", [_positive()], {"lower": False}, expected=lambda a: _t(np.linalg.cholesky(a))),
    Row("_linalg_potri", [_t(_LOW)], {"lower": False}, grad=(0,), second=True,
        expected=lambda a: np.linalg.inv(_t(np.triu(a)) @ np.triu(a))),
    Row("_linalg_potri", [_LOW], grad=(0,), second=True, expected=lambda a: np.linalg.inv(np.tril(a) @ _t(np.tril(a)))),
    Row("_linalg_gelqf", [normal(2, 2, 3)], grad=(0,), second=True,
        expected=lambda a: tuple(map(_t, np.linalg.qr(_t(a))))),
    Row("_linalg_gelqf", [normal(3, 3)], grad=(0,), expected=lambda a: tuple(map(_t, np.linalg.qr(_t(a))))),
    Row("_linalg_syevd", [_positive(2)], expected=_eigen),
    Row("_linalg_syevd", [np.diag([3.0, 1.0, 2.0])], expected=_eigen),
    Row("_linalg_inverse", [_LOW], expected=np.linalg.inv, grad=(0,), second=True),
    Row("_linalg_regular_inverse", [_factor(2), np.array([2.0, 0.0])], grad=(0,), second=True,
        expected=lambda a, det: np.linalg.inv(a) * (det != 0)[:, None, None]),
    Row("_linalg_det", [_LOW], expected=np.linalg.det, grad=(0,), second=True),
    Row("_linalg_det", [normal(3, 3)], expected=lambda a: _numbers(np.linalg.det(a)), grad=(0,), second=True),
    Row("_linalg_det", [np.ones((2, 2))], expected=lambda a: np.zeros(1, a.dtype), name="singular"),
    Row("_linalg_slogdet", [_LOW], expected=lambda a: tuple(np.linalg.slogdet(a)), grad=(0,), second=True),
    Row("_linalg_slogdet", [-_factor()], expected=lambda a: tuple(map(_numbers, np.linalg.slogdet(a))), grad=(0,)),
    Row("_linalg_sumlogdiag", [uniform(0.5, 2, 2, 3, 3)], grad=(0,), second=True,
        expected=lambda a: np.log(np.diagonal(a, 0, 1, 2)).sum(-1)),
    Row("_linalg_sumlogdiag", [uniform(0.5, 2, 3, 3)], expected=lambda a: _numbers(np.log(np.diagonal(a)).sum()),
        grad=(0,), second=True),
    Row("_linalg_makediag", [normal(2, 3)], grad=(0,), second=True,
        expected=lambda a: np.stack([np.diag(x) for x in a])),
    Row("_linalg_makediag", [normal(3)], {"offset": 1}, expected=lambda a: np.diag(a, 1), grad=(0,)),
    Row("_linalg_makediag", [normal(3)], {"offset": -2}, expected=lambda a: np.diag(a, -2), grad=(0,), second=True),
]
ROWS += [Row("_linalg_extractdiag", [_S], {"offset": _offset}, grad=(0,), second=True,
             expected=lambda a, k=_offset: np.diagonal(a, k, 1, 2)) for _offset in (0, 2, -1)]
_FOUR = np.arange(16.0).reshape(4, 4)
for _offset, _lower, _taken in [(0, True, [0, 4, 5, 8, 9, 10, 12, 13, 14, 15]),
                                (0, False, [0, 1, 5, 2, 6, 10, 3, 7, 11, 15]),
                                (-1, True, [4, 8, 9, 12, 13, 14]), (1, True, [1, 2, 6, 3, 7, 11])]:
    _attrs = {"offset": _offset, "lower": _lower}
    ROWS += [
        Row("_linalg_extracttrian", [_FOUR], _attrs, grad=(0,), second=True,
            expected=lambda a, taken=_taken: np.array(taken, a.dtype)),
        Row("_linalg_maketrian", [np.array(_taken, "float64")], _attrs, grad=(0,), second=True,
            expected=lambda a, taken=_taken: np.where(np.isin(_FOUR, taken), _FOUR, 0).astype(a.dtype)),
    ]
ROWS += [
    Row("_linalg_extracttrian", [_S], expected=lambda a: a[(..., *np.tril_indices(3))], grad=(0,), name="stack"),
    Row("_linalg_maketrian", [normal(2, 3)], {"lower": False}, grad=(0,), name="stack",
        expected=lambda a: np.stack([np.array([[x[0], x[1]], [0, x[2]]], a.dtype) for x in a])),
]
