"""Translations of matrix factorizations, inverses and determinants: a loop over columns, as ONNX's ``Scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...interop.translation import Untranslatable
from .builder import Builder, Value, product
from .table import Use, says

_INT64 = np.dtype(np.int64)

#: One iteration: takes the builder of the body, the iteration's index and the state; returns the next state and the
#: rows to collect.
Round = Callable[[Builder, Value, Value], tuple[Value, Sequence[Value]]]


def _rounds(g: Builder, numbers: np.ndarray, state: Value, round_of: Round) -> tuple[Value, list[Value]]:
    """The state after an iteration for each index, and the rows collected over all iterations."""
    if g.opset < 9:
        raise Untranslatable("ONNX has Scan, as loops need it, from opset 9 on")
    inner = g.body()
    number = Value(inner, inner.names(f"{inner.prefix}_round"), [()] * g.sizes, _INT64)
    before = Value(inner, inner.names(f"{inner.prefix}_state"), state.shapes, state.dtype)
    after, kept = round_of(inner, number, before)
    graph = inner.graph(f"{g.prefix}_round", [before, number], [after, *kept])
    outs = g("Scan", state, g.constant(numbers), count=1 + len(kept), body=graph, num_scan_inputs=1)
    last, *rows = outs if kept else [outs]
    last.shapes = state.shapes
    for row, one in zip(rows, kept):
        row.shapes = [(len(numbers), *shape) for shape in one.shapes if shape is not None]
    return last, rows


def _transpose(g: Builder, x: Value) -> Value:
    rank = len(x.shape)
    return g.transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def _triangle(g: Builder, x: Value, lower: bool) -> Value:
    """The lower or upper triangle of square matrices; other elements are zero."""
    ones = np.ones([product(x.shape[-1:])] * 2, bool)
    return g.where(g.constant(np.tril(ones) if lower else np.triu(ones)), x, 0.0)


def _row(g: Builder, x: Value, number: Value) -> Value:
    """One row of each matrix, as a matrix with one row."""
    return g.unsqueeze(g.gather(x, number, len(x.shape) - 2), [len(x.shape) - 2])


def _column(g: Builder, x: Value, number: Value) -> Value:
    """One column of each matrix, as a matrix with one column."""
    return g.unsqueeze(g.gather(x, number, len(x.shape) - 1), [len(x.shape) - 1])


def _row_indices(g: Builder, count: int) -> Value:
    """The indices of rows, as a column."""
    return g.constant(np.arange(count, dtype=np.int64).reshape(count, 1))


@says("_linalg_potrf")
def _potrf(g: Builder, use: Use, x: Value) -> Value:
    """The Cholesky factor, column by column."""
    lower, count, rank = use.attrs["lower"], product(x.shape[-1:]), len(x.shape)

    def column(inner: Builder, number: Value, left: Value) -> tuple[Value, list[Value]]:
        result = _column(inner, left, number)
        scaled = result / inner("Sqrt", _row(inner, result, number))
        below = inner.where(inner.compare("GreaterOrEqual", _row_indices(inner, count), number), scaled, 0.0)
        return left - inner.matmul(below, _transpose(inner, below)), [inner.squeeze(below, [rank - 1])]

    _, (columns,) = _rounds(g, np.arange(count), x if lower else _transpose(g, x), column)
    return g.transpose(columns, (*range(1, rank), 0) if lower else (*range(1, rank - 1), 0, rank - 1))


def _solve(g: Builder, x: Value, right: Value, lower: bool) -> Value:
    """The solution of a triangular system, row by row: the matrix whose product with ``x`` is ``right``."""
    count = product(x.shape[-1:])
    half = _triangle(g, x, lower)

    def row(inner: Builder, number: Value, solved: Value) -> tuple[Value, list[Value]]:
        factors = _row(inner, half, number)
        rest = _row(inner, right, number) - inner.matmul(factors, solved)
        here = inner.compare("Equal", _row_indices(inner, count), number)
        return inner.where(here, rest / _column(inner, factors, number), solved), []

    found, _ = _rounds(g, np.arange(count) if lower else np.arange(count)[::-1].copy(), right * 0.0, row)
    return found


@says("_linalg_trsm")
def _trsm(g: Builder, use: Use, x: Value, right: Value) -> Value:
    attrs = use.attrs
    lower, turned = attrs["lower"], attrs["transpose"] != attrs["rightside"]
    half = _transpose(g, x) if turned else x
    right = right * attrs["alpha"] if attrs["alpha"] != 1.0 else right
    if attrs["rightside"]:
        return _transpose(g, _solve(g, half, _transpose(g, right), lower != turned))
    return _solve(g, half, right, lower != turned)


@says("_linalg_potri")
def _potri(g: Builder, use: Use, x: Value) -> Value:
    low = x if use.attrs["lower"] else _transpose(g, x)
    inverse = _solve(g, low, x * 0.0 + g.constant(np.eye(product(x.shape[-1:]), dtype=x.dtype)), True)
    return g.matmul(_transpose(g, inverse), inverse)


def _eliminate(g: Builder, x: Value, count: int) -> tuple[Value, Value, Value]:
    """Gauss-Jordan elimination of ``count`` columns: the resulting matrices, and for each column its pivot and whether
    rows were exchanged. If all candidates for a pivot are zero, the row is divided by one."""
    rank = len(x.shape)

    def column(inner: Builder, number: Value, left: Value) -> tuple[Value, list[Value]]:
        rows = _row_indices(inner, count)
        sizes = inner.where(inner.compare("Less", rows, number), -1.0, inner("Abs", _column(inner, left, number)))
        best = inner("ArgMax", sizes, axis=rank - 2, keepdims=1)
        here, there = inner.compare("Equal", rows, number), inner.compare("Equal", rows, best)
        chosen = inner.reduce("Sum", inner.where(there, left, 0.0), [rank - 2])
        swapped = inner.where(there, _row(inner, left, number), left)
        by = _column(inner, chosen, number)
        new = chosen / inner.where(inner.compare("Equal", by, 0.0), 1.0, by)
        rest = swapped - _column(inner, swapped, number) * new
        moved = inner.cast(inner("Not", inner.compare("Equal", best, number)), x.dtype)
        return inner.where(here, new, rest), [inner.squeeze(each, [rank - 2, rank - 1]) for each in (by, moved)]

    behind, (divided, moved) = _rounds(g, np.arange(count), x, column)
    return behind, divided, moved


@says("_linalg_inverse", "_linalg_regular_inverse")
def _inverse(g: Builder, use: Use, x: Value, *det: Value) -> Value:
    count, rank = product(x.shape[-1:]), len(x.shape)
    if det:
        singular = g.unsqueeze(g.compare("Equal", det[0], 0.0), [1] if rank == 2 else [rank - 2, rank - 1])
        x = g.where(singular, g.constant(np.eye(count, dtype=x.dtype)), x)
    both = g.concat([x, x * 0.0 + g.constant(np.eye(count, dtype=x.dtype))], rank - 1)
    result = g.slice(_eliminate(g, both, count)[0], [count], [2 * count], [rank - 1])
    return g.where(singular, 0.0, result) if det else result


@says("_linalg_slogdet")
def _slogdet(g: Builder, use: Use, x: Value) -> list[Value]:
    _, divided, moved = _eliminate(g, x, product(x.shape[-1:]))
    sign = g.reduce("Prod", g("Sign", divided) * (1.0 - 2.0 * moved), [0], False)
    return [sign, g.reduce("Sum", g("Log", g("Abs", divided)), [0], False)]
