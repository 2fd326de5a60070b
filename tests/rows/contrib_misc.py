"""Rows of the contributed operators that belong to no family."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]


def _fft(x):
    found = np.fft.fft(x, axis=-1)
    return np.stack([found.real, found.imag], -1).reshape(*x.shape[:-1], -1).astype(x.dtype)


def _ifft(x):
    return (np.fft.ifft(x[..., ::2] + 1j * x[..., 1::2]).real * (x.shape[-1] // 2)).astype(x.dtype)


_H, _S = np.array([[0, 2, 1, 2, 0]]), np.array([[1.0, -1.0, -1.0, 1.0, 1.0]])
_MATRIX = np.array([[1.0, 0, 0], [0, 0, -1], [0, -1, 0], [0, 0, 1], [1, 0, 0]])

ROWS: list[Row] = [
    Row("_contrib_fft", [normal(3, 5)], expected=_fft, grad=(0,), second=True),
    Row("_contrib_fft", [normal(2, 1, 3, 4)], {"compute_size": 2}, expected=_fft, grad=(0,)),
    Row("_contrib_ifft", [normal(3, 10)], expected=_ifft, grad=(0,), second=True),
    Row("_contrib_ifft", [_fft(normal(2, 4))], expected=lambda x: (4 * normal(2, 4)).astype(x.dtype), name="inverse"),
    Row("_contrib_count_sketch", [normal(2, 5), _H, _S], {"out_dim": 3}, grad=(0,), second=True,
        expected=lambda x, h, s: x @ _MATRIX.astype(x.dtype)),
    Row("_contrib_count_sketch", [normal(2, 3, 5), _H.astype("float64"), _S], {"out_dim": 4}, grad=(0,),
        expected=lambda x, h, s: np.pad(x @ _MATRIX.astype(x.dtype), ((0, 0), (0, 0), (0, 1)))),
]
