"""Rows of the operators on padded sequences."""

from __future__ import annotations

import numpy as np

from . import Row, normal

__all__ = ["ROWS"]

_X = normal(4, 3, 2)
_LENGTHS = {0: np.array([1, 4, 2], "int32"), 1: np.array([3.0, 1.0, 2.9, 1.0])}
_USED = {"use_sequence_length": True}


def _each(x, lengths, axis):
    """The sequences of a batch as views, time first, and their lengths."""
    batch = np.moveaxis(x, axis, 0).swapaxes(0, 1)
    return zip(batch, np.asarray(lengths).astype(int))


def _mask(axis=0, value=0.0):
    def expected(x, lengths):
        x = x.copy()
        for sequence, length in _each(x, lengths, axis):
            sequence[length:] = value
        return x

    return expected


def _last(axis=0):
    return lambda x, lengths: np.stack([s[max(n - 1, 0)] for s, n in _each(x, lengths, axis)])


def _put_last(axis=0):
    def expected(g, x, lengths):
        x = np.zeros_like(x)
        for row, (sequence, length) in zip(g, _each(x, lengths, axis)):
            sequence[length - 1] = row
        return x

    return expected


def _reversed(axis=0):
    def expected(x, lengths):
        x = x.copy()
        for sequence, length in _each(x, lengths, axis):
            sequence[:length] = sequence[:length][::-1].copy()
        return x

    return expected


def _row(op, inputs, attrs, expected, **keywords):
    return Row(op, inputs, attrs, expected=expected, grad=(0,), second=True, **keywords)


ROWS: list[Row] = [
    _row("SequenceMask", [_X], {}, lambda x: x),
    _row("SequenceLast", [_X], {}, lambda x: x[-1]),
    _row("SequenceLast", [_X], {"axis": 1}, lambda x: x[:, -1]),
    _row("SequenceReverse", [_X], {}, lambda x: x[::-1]),
    _row("SequenceReverse", [_X], {"axis": 1}, lambda x: x[:, ::-1]),
    _row("_backward_SequenceLast", [normal(3, 2), _X], {}, lambda g, x: np.stack([0 * g, 0 * g, 0 * g, g])),
    _row("SequenceLast", [_X, np.array([0, 4, 1])], _USED, _last(), name="empty"),
    _row("SequenceMask", [normal(4, 3), np.array([0, 9, 2])], _USED, _mask(), name="matrix"),
]
for _axis, _lengths in _LENGTHS.items():
    _attrs = {**_USED, "axis": _axis}
    ROWS += [
        _row("SequenceMask", [_X, _lengths], {**_attrs, "value": -1.5}, _mask(_axis, -1.5)),
        _row("SequenceLast", [_X, _lengths], _attrs, _last(_axis)),
        _row("SequenceReverse", [_X, _lengths], _attrs, _reversed(_axis)),
        _row("_backward_SequenceLast", [normal(len(_lengths), 2), _X, _lengths], _attrs, _put_last(_axis)),
    ]
