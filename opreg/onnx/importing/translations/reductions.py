"""Rows of reductions, extremes, sorting and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.core.spec import is_floating
from opreg.errors import ShapeError

from ..graph import Node
from ..rows import Host, row
from .shapes import numbers


def _sum(node: Node, x: Any, axis: Any, keepdims: bool) -> Any:
    return node.cast(ops._np_sum(x, axis=axis, keepdims=keepdims), node.dtype(x))


def _product(node: Node, x: Any, axis: Any, keepdims: bool) -> Any:
    return node.cast(ops._np_prod(x, axis=axis, keepdims=keepdims), node.dtype(x))


def _mean(node: Node, x: Any, axis: Any, keepdims: bool) -> Any:
    dtype = node.dtype(x)
    wide = {} if is_floating(dtype) else {"dtype": np.float64}
    return node.cast(ops._npi_mean(x, axis=axis, keepdims=keepdims, **wide), dtype)


def _extreme(name: str) -> Callable[..., Any]:
    def apply(node: Node, x: Any, axis: Any, keepdims: bool) -> Any:
        shape = node.lengths(x)
        axes = range(len(shape)) if axis is None else axis
        if any(shape[i] == 0 and shape[i].__class__ is int for i in axes):
            dtype = node.dtype(x)
            if dtype == np.dtype(bool):
                worst: Any = name == "min"
            elif is_floating(dtype):
                worst = np.inf if name == "min" else -np.inf
            else:
                worst = np.iinfo(dtype).max if name == "min" else np.iinfo(dtype).min
            left = [1 if i in axes else dim for i, dim in enumerate(shape) if keepdims or i not in axes]
            return node.lift(np.full(left, worst, dtype))
        if node.dtype(x) == np.dtype(bool):
            return getattr(ops, "_np_any" if name == "max" else "_np_all")(x, axis=axis, keepdims=keepdims)
        return getattr(ops, f"_np_{name}")(x, axis=axis, keepdims=keepdims)

    return apply


def _log_sum_exp(node: Node, x: Any, axis: Any, keepdims: bool) -> Any:
    shape = node.lengths(x)
    if 0 in [dim for dim in shape if dim.__class__ is int]:
        return ops.log(_sum(node, ops.exp(x), axis, keepdims))
    top = ops.BlockGrad(ops._np_max(x, axis=axis, keepdims=True))
    inner = ops.log(_sum(node, ops.exp(ops.broadcast_sub(x, top)), axis, True))
    total = ops.broadcast_add(inner, top)
    if keepdims:
        return total
    return ops._np_sum(total, axis=axis, keepdims=False)


#: Reductions, as functions of an array and axes.
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": _sum, "ReduceMean": _mean, "ReduceProd": _product, "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"), "ReduceLogSumExp": _log_sum_exp,
    "ReduceL1": lambda node, x, axis, keep: _sum(node, ops.abs(x), axis, keep),
    "ReduceL2": lambda node, x, axis, keep: ops.sqrt(_sum(node, x * x, axis, keep)),
    "ReduceSumSquare": lambda node, x, axis, keep: _sum(node, x * x, axis, keep),
    "ReduceLogSum": lambda node, x, axis, keep: ops.log(_sum(node, x, axis, keep)),
}


def _reduction(name: str, function: Callable[..., Any]) -> None:
    def reduced(node: Node, x: Any, axes: Any, keepdims: int, empty: int = 0) -> Any:
        if not axes:
            if empty:
                return _reduce_elements(node, name, x)
            axes = range(node.rank(x))
        places = tuple(sorted(node.axis(axis, x) for axis in axes))
        return function(node, x, places, bool(keepdims)) if places else _reduce_elements(node, name, x)

    def by_attribute(node: Node, x: Any, *, axes: Any = None, keepdims: int = 1) -> Any:
        return reduced(node, x, axes, keepdims)

    def by_input(node: Node, x: Any, axes: Host = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        return reduced(node, x, None if axes is None else numbers(axes), keepdims, noop_with_empty_axes)

    row(name)(by_attribute)
    row(name, since=13 if name == "ReduceSum" else 18)(by_input)


def _reduce_elements(node: Node, name: str, x: Any) -> Any:
    """A reduction over no axis, which applies to each element separately."""
    if name in ("ReduceL1", "ReduceL2"):
        return ops.abs(x)
    if name == "ReduceSumSquare":
        return x * x
    return ops.log(x) if name == "ReduceLogSum" else x


for _name, _function in _REDUCTIONS.items():
    _reduction(_name, _function)


def _place(node: Node, x: Any, axis: int, keepdims: int, last: int, name: str) -> Any:
    axis = node.axis(axis, x)
    if last:
        flipped = getattr(ops, f"_npi_{name}")(ops.flip(x, axis=axis), axis=axis, keepdims=bool(keepdims))
        return node.shape(x)[axis] - 1 - node.cast(flipped, np.int64)
    return node.cast(getattr(ops, f"_npi_{name}")(x, axis=axis, keepdims=bool(keepdims)), np.int64)


@row("ArgMax")
def arg_max(node: Node, x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    return _place(node, x, axis, keepdims, select_last_index, "argmax")


@row("ArgMin")
def arg_min(node: Node, x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    return _place(node, x, axis, keepdims, select_last_index, "argmin")


@row("TopK")
def top_k_by_attribute(node: Node, x: Any, *, k: int, axis: int = -1) -> Any:
    return _top(node, x, k, axis, 1)


@row("TopK", since=10)
def top_k(node: Node, x: Any, k: Host, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    return _top(node, x, int(k.reshape(-1)[0]), axis, largest)


def _top(node: Node, x: Any, k: int, axis: int, largest: int) -> Any:
    axis = node.axis(axis, x)
    if not 0 <= k <= node.lengths(x)[axis] and node.lengths(x)[axis].__class__ is int:
        raise ShapeError(f"TopK: k={k} of only {node.lengths(x)[axis]} elements")
    order = ops.topk(ops.BlockGrad(x), axis=axis, k=k, is_ascend=not largest, dtype="int64")
    return ops._take_along_axis(x, order, axis=axis), order


@row("CumSum")
def cum_sum(node: Node, x: Any, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _cumulate(node, x, int(axis.reshape(-1)[0]), exclusive, reverse)


def _cumulate(node: Node, x: Any, axis: int, exclusive: int, reverse: int) -> Any:
    axis = node.axis(axis, x)
    source = ops.flip(x, axis=axis) if reverse else x
    total = node.cast(ops._np_cumsum(source, axis=axis), node.dtype(x))
    if exclusive:
        total = total - source
    return ops.flip(total, axis=axis) if reverse else total


@row("CumProd")
def cum_prod(node: Node, x: Any, axis: Host, *, exclusive: int = 0, reverse: int = 0) -> Any:
    place = node.axis(int(axis.reshape(-1)[0]), x)
    length = node.length(x, place)

    def part(begin: int, end: int) -> Any:
        return ops.slice_axis(result, axis=place, begin=begin, end=end)

    def joined(*parts: Any) -> Any:
        return ops.Concat(*parts, dim=place, num_args=2)

    result = ops.flip(x, axis=place) if reverse else x
    if exclusive and length:
        result = joined(ops.ones_like(part(0, 1)), part(0, length - 1))
    step = 1
    while step < length:  # each element becomes the product of twice as many
        result = joined(part(0, step), part(step, length) * part(0, length - step))
        step *= 2
    return ops.flip(result, axis=place) if reverse else result


@row("MatMul")
def mat_mul(node: Node, a: Any, b: Any) -> Any:
    return ops._npi_matmul(a, b)


@row("Det")
def det(node: Node, x: Any) -> Any:
    return ops._np_reshape(ops._npi_det(x), newshape=node.shape(x)[:-2])


@row("Gemm")
def gemm(node: Node, a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0, broadcast: int = 0) -> Any:
    if alpha == 1 and beta == 1 and transB and not transA and c is not None and node.rank(c) == 1 and is_floating(
            node.dtype(a)) and node.lengths(b)[0] == node.lengths(c)[0]:
        return ops.FullyConnected(a, b, c, num_hidden=node.shape(b)[0], flatten=False)
    product = ops._npi_matmul(ops.transpose(a) if transA else a, ops.transpose(b) if transB else b)
    if alpha != 1:
        product = node.cast(product * alpha, node.dtype(a))
    if c is None:
        return product
    return ops.broadcast_add(product, c if beta == 1 else node.cast(c * beta, node.dtype(a)))
