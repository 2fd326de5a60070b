"""Normalisation of data, and the operators of which its gradients consist.

The mean of a set of elements is subtracted, and they are divided by their standard deviation. ``over`` tells the sets:

- ``batch``: the elements of one channel in all samples; the statistics have the shape (channels,).
- ``axis``: the elements along one axis; the statistics keep that axis, with one element.
- ``group``: the elements of some channels of one sample; the statistics have the shape (samples, groups).

In a view of three axes, or two where the last has one element, each set is the elements along some of the axes, and
scales and offsets lie along the second. Everything below is written for that view. The statistics are outputs, mostly
hidden ones, with gradients of their own, so the gradient of a gradient needs nothing more than operators.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ...backends.expressions import attach_loop
from ...core.array_module import einsum_of
from ...core.cache import cached
from ...core.launch import Call, reference
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, check_axis, show
from ...core.threads import by_rows
from ...core.value import Value
from ...elementwise.expression import sqrt, square
from ...elementwise.loops import Loop, sets
from ...elementwise.rows import RowLayout, row_mean, row_size, row_sum
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..layouts import by_axis
from ..outputs import linear, out_like, out_or_empty_like, wide, write_out

__all__ = ["Layout", "Over", "count_of", "from_statistics", "layout_of", "moments", "statistics_shape"]

Over = Literal["batch", "axis", "group"]


class Layout(NamedTuple):
    """A view of the data: its shape, the shape of statistics and scales in it, subscripts of einsum for sums."""

    view: Shape
    keep: Shape
    scale: Shape
    size: int
    total: str
    dot: str


@cached(1024)
def layout_of(shape: Shape, over: Over, axis: int, num_groups: int) -> Layout:
    """The view of data of a shape; ``axis`` is used for sets along or across it, ``num_groups`` for groups."""
    if over == "group":
        groups = num_groups or shape[1]
        view: Shape = (shape[0], groups, shape[1] // max(groups, 1) * math.prod(shape[2:]))
        axes: tuple[int, ...] = (2,)
    else:
        axis %= len(shape)
        view = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:]))
        axes = (1,) if over == "axis" else (0, 2)
        if view[2] == 1:
            view, axes = view[:2], axes[:1]
    letters = "ijk"[:len(view)]
    rest = "".join(letter for i, letter in enumerate(letters) if i not in axes)
    return Layout(view, tuple(1 if i in axes else dim for i, dim in enumerate(view)),
                  tuple(dim if i == 1 else 1 for i, dim in enumerate(view)),
                  math.prod(view[i] for i in axes), f"{letters}->{rest}", f"{letters},{letters}->{rest}")


def statistics_shape(data: Shape, over: Over, axis: int, num_groups: int) -> Shape:
    """The shape of statistics as operators take and return them."""
    if over == "group":
        return (data[0], num_groups or data[1])
    axis = check_axis(axis, len(data))
    if over == "batch":
        return (data[axis],)
    return (*data[:axis], 1, *data[axis + 1:])


def _check_statistics(data: Shape, others: Sequence[Shape], over: Over, axis: int, num_groups: int) -> Shape:
    """The shape of statistics, which others must have."""
    expected = statistics_shape(data, over, axis, num_groups)
    for shape in others:
        if shape != expected:
            raise ShapeError(f"expected statistics of shape {show(expected)} for data {show(data)}, got {show(shape)}")
    return expected


def _declare_set_kernel(op: Op, data: int, statistics: Sequence[int], count: int, compute: Callable[..., Any]
                        ) -> Callable[..., Any]:
    """Declare the kernel of an operator on sets of elements, and its shape rule if it has none; returns the kernel.

    Parameters
    ----------
    op : Op
        The operator.
    data : int
        The input whose shape determines the sets.
    statistics : sequence of int
        Inputs that have an element for each set.
    count : int
        How many outputs do; with none the output is like the data.
    compute : function
        With outputs for sets, ``compute(xp, layout, *arrays, **attrs)`` returns a list of them. Else
        ``compute(xp, layout, y, x, *others)`` fills ``y`` from the data ``x``, both in the view, and other inputs.
    """
    if not op.rules.shaped:
        @op.infer
        def sets_infer(*shapes: Shape, over: Over, axis: int, num_groups: int) -> list[Shape]:
            shape = _check_statistics(shapes[data], [shapes[place] for place in statistics], over, axis, num_groups)
            return [shape] * count or [shapes[data]]

    if count:
        @op.kernel()  # no body: einsum adds sets as they lie, in half the time of the sum that a body has
        def sums_xp(xp: ArrayModule, *arrays: Array, over: Over, axis: int, num_groups: int, **attrs: Any) -> Any:
            layout = layout_of(arrays[data].shape, over, axis, num_groups)
            shape, found = arrays[statistics[0]].shape, compute(xp, layout, *arrays, **attrs)
            return found[0].reshape(shape) if count == 1 else tuple([result.reshape(shape) for result in found])

        return sums_xp

    @op.kernel()  # no body: threads share rows that stay in the cache; eager operators of a body take one thread
    def elements_xp(xp: ArrayModule, *arrays: Array, over: Over, axis: int, num_groups: int, out: Array | None = None
                    ) -> Array:
        like = arrays[data]
        layout = layout_of(like.shape, over, axis, num_groups)
        x = wide(like).reshape(layout.view)
        target = out_like(out, x)
        y = out_or_empty_like(xp, target, x)
        compute(xp, layout, y, x, *arrays[:data], *arrays[data + 1:])
        return write_out(out, target, y, like.shape)

    return elements_xp


def _loop_for_devices(op: Op, function: Callable[..., Any], inputs: tuple[RowLayout, ...], scale: int | None = None
                      ) -> None:
    """Give an operator on sets of elements the kernels of devices for a loop; ``scale`` is an input along the second
    axis of the view."""

    def loop_of(call: Call) -> Loop | str:
        if call.xp is np:
            return "a call of NumPy reduces as fast"
        over, axis, groups = [call.attrs[name] for name in ("over", "axis", "num_groups")]
        attrs = {"eps": call.attrs["eps"]} if "eps" in call.attrs else {}
        read = list(inputs)
        if scale is not None and call.attrs["scaled"]:
            along = {"batch": RowLayout.ROW, "axis": RowLayout.COLUMN, "group": RowLayout.CYCLE}[over]
            read.insert(scale, along)
        described = sets(function, 2 if over == "group" else axis, tuple(read), exclude=over == "batch",
                         keepdims=over == "axis", groups=groups if over == "group" else None, **attrs)
        return described.on([array.shape for array in call.ins])

    attach_loop(op, loop_of, lambda call: reference(call).steps()[0])


def moments(xp: ArrayModule, x: Array, layout: Layout, out: Array | None = None) -> tuple[Array, Array, Array]:
    """Mean, variance and centred values of ``x``, all in the view."""
    totals = by_rows(xp, x, lambda rows: einsum_of(xp)(layout.total, x[rows]))
    mean = _gathered(xp, totals, layout).reshape(layout.keep) / layout.size
    centred = out_or_empty_like(xp, out, x)

    def centre(rows: slice) -> Array:
        part = xp.subtract(x[rows], _part(mean, rows), out=centred[rows])
        return einsum_of(xp)(layout.dot, part, part)

    # from centred values: the difference of the mean square and the squared mean would cancel
    variance = _gathered(xp, by_rows(xp, x, centre), layout).reshape(layout.keep) / layout.size
    return mean, variance, centred


def _part(array: Array, rows: slice) -> Array:
    """Rows of an array in the view; the whole array if it has one row for all."""
    return array if array.shape[0] == 1 else array[rows]


# -------------------------------------------------------------------------------------- parts of gradients
# Each is a plain function of all its inputs, statistics included, and differentiated as such.


def _words(**attrs: Any) -> dict[str, Any]:
    return {name: attrs[name] for name in ("over", "axis", "num_groups")}


@declare(name="_normalize_scale", types="T,P->T", inplace=(0,), cheap=True)
def normalize_scale(data, scale, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """``data`` times the element of ``scale`` for its set; ``over`` chooses the sets."""


def _scaled(xp: ArrayModule, layout: Layout, y: Array, x: Array, scale: Array) -> None:
    scale = scale.reshape(layout.keep)
    by_rows(xp, x, lambda rows: xp.multiply(x[rows], _part(scale, rows), out=y[rows]))


_declare_set_kernel(normalize_scale, 0, (1,), 0, _scaled)
_loop_for_devices(normalize_scale, lambda x, scale: x * scale, (RowLayout.ELEMENT, RowLayout.ROW))


@normalize_scale.grad
def normalize_scale_grad(g, ins, outs, **attrs):
    data, scale = ins
    return (ops._normalize_scale(g, scale, **attrs), ops._normalize_total(g * data, scale, **attrs))


@declare(name="_normalize_total", types="T,P->P", unread=(1,), cheap=True)
def normalize_total(data, like, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """The sum of each set, in the dtype of ``like``."""


_declare_set_kernel(normalize_total, 0, (1,), 1, lambda xp, layout, data, like: [
    einsum_of(xp)(layout.total, wide(data).reshape(layout.view))])
_loop_for_devices(normalize_total, row_sum, (RowLayout.ELEMENT,))
linear(normalize_total, "_normalize_expand", slice(0, 1))


@declare(name="_normalize_expand", types="P,T->T", unread=(1,), cheap=True)
def normalize_expand(values, like, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """For each element of ``like`` the element of ``values`` for its set; ``over`` chooses the sets."""


_declare_set_kernel(normalize_expand, 1, (0,), 0, lambda xp, layout, y, like, values: xp.copyto(
    y, values.reshape(layout.keep)))
linear(normalize_expand, "_normalize_total", slice(0, 1))


@declare(name="_normalize_moments", types="T:floating,P->P,P", unread=(1,), outputs=("mean", "inverse"), cheap=True)
def normalize_moments(data, like, *, eps: float = 1e-3, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """Mean and inverse standard deviation of each set, in the dtype of ``like``."""


def _moments(xp: ArrayModule, layout: Layout, data: Array, like: Array, eps: float) -> list[Array]:
    mean, variance, _ = moments(xp, wide(data).reshape(layout.view), layout)
    return [mean, 1.0 / xp.sqrt(variance + eps)]


def _moments_of(x: Any, *, eps: float) -> tuple[Any, Any]:
    mean = row_mean(x)
    return mean, 1.0 / sqrt(row_mean(square(x - mean)) + eps)


_declare_set_kernel(normalize_moments, 0, (1,), 2, _moments)
_loop_for_devices(normalize_moments, _moments_of, (RowLayout.ELEMENT,))


@normalize_moments.grad
def normalize_moments_grad(g, ins, outs, *, over, axis, num_groups):
    words = _words(over=over, axis=axis, num_groups=num_groups)
    count = count_of(ins[0], outs[0], words)
    inverse = outs[1]
    return (from_statistics(ins[0], outs[0], g[0] / count, g[1] * inverse * inverse * inverse / -count, words), None)


def count_of(data: Value, like: Value, words: dict[str, Any]) -> Value:
    """Number of elements of each set, as a value, since a gradient rule does not know shapes."""
    return ops._normalize_total(ops.ones_like(data), like, **words)


def from_statistics(data: Value, mean: Value, constant: Value | None, slope: Value | None, words: dict[str, Any]
                    ) -> Value | None:
    """``constant + slope * (data - mean)``: the gradient of each element through a mean and a standard deviation."""
    total = None
    if slope is not None:
        total = ops._normalize_scale(data, slope, **words)
        constant = -slope * mean if constant is None else constant - slope * mean
    if constant is not None:
        spread = ops._normalize_expand(constant, data, **words)
        total = spread if total is None else total + spread
    return total


def _gathered(xp: ArrayModule, sums: Sequence[Array], layout: Layout) -> Array:
    """The sums of the sets from sums of blocks of rows: added if each set extends over all rows, else concatenated."""
    if len(sums) == 1:
        return sums[0]
    return functools.reduce(xp.add, sums) if layout.keep[0] == 1 else xp.concatenate(sums)


@declare(name="_backward_normalize_sums", types="T:floating,T,P,P->P,P", outputs=("product", "total"), cheap=True)
def backward_sums(g, data, mean, inverse, *, over: Over = "batch", axis: int = 1, num_groups: int = 0):
    """Sums of ``g`` times the normalised data, and of ``g``, for each set."""


def _sums(xp: ArrayModule, layout: Layout, g: Array, data: Array, mean: Array, inverse: Array) -> list[Array]:
    g, x = [wide(each).reshape(layout.view) for each in (g, data)]
    mean, inverse = [each.reshape(layout.keep) for each in (mean, inverse)]
    einsum = einsum_of(xp)
    sums = by_rows(xp, g, lambda rows: (einsum(layout.total, g[rows]), einsum(layout.dot, g[rows], x[rows])))
    total, product = (_gathered(xp, parts, layout).reshape(layout.keep) for parts in zip(*sums))
    # Without a centred copy of the data; the rounding this costs is that of the data themselves.
    return [(product - mean * total) * inverse, total]


backward_sums_xp = _declare_set_kernel(backward_sums, 1, (2, 3), 2, _sums)
_loop_for_devices(backward_sums, lambda g, x, mean, inverse: (row_sum(g * (x - mean)) * inverse, row_sum(g)),
                  (RowLayout.ELEMENT, RowLayout.ELEMENT, RowLayout.ROW, RowLayout.ROW))
by_axis(backward_sums, (0, 1), outs=())


@backward_sums.grad
def backward_sums_grad(h, ins, outs, **attrs):
    g, data, mean, inverse = ins
    product, total = h
    slope = product * inverse
    return (from_statistics(data, mean, total, slope, attrs), ops._normalize_scale(g, slope, **attrs),
            -slope * outs[1], product * outs[0] / inverse)


@declare(name="_backward_normalize", types="T:floating,T,*S->T", inplace=(1,), arguments=lambda *, scaled: (
    "g", "data", *(("gamma",) if scaled else ()), "mean", "inverse", "product", "total"), cheap=True)
def backward_normalize(g, data, gamma, mean, inverse, product, total, *, scaled: bool = True, over: Over = "batch",
                       axis: int = 1, num_groups: int = 0):
    """The gradient of normalised data with respect to the data; ``product`` and ``total`` are the results of
    ``backward_sums``."""


@backward_normalize.infer
def backward_normalize_infer(g, data, *rest, scaled, over, axis, num_groups):
    statistics = _check_statistics(data, rest[scaled:], over, axis, num_groups)
    if scaled and rest[0] != statistics[-1:]:
        raise ShapeError(f"gamma: expected shape {show(statistics[-1:])}, got {show(rest[0])}")
    return g


def _through_normalized(xp: ArrayModule, layout: Layout, y: Array, x: Array, g: Array, *rest: Array) -> None:
    *gamma, mean, inverse, product, total = rest
    factor = inverse * gamma[0] if gamma else inverse
    slope = inverse * product / layout.size
    offset = (slope * mean - total / layout.size).reshape(layout.keep)
    slope, factor = (-slope).reshape(layout.keep), factor.reshape(layout.keep)
    g = wide(g).reshape(layout.view)

    def work(rows: slice) -> None:
        part = xp.multiply(x[rows], _part(slope, rows), out=y[rows])
        part += g[rows]
        part += _part(offset, rows)
        part *= _part(factor, rows)

    by_rows(xp, x, work)


def _slope(g: Any, x: Any, *statistics: Any) -> Any:
    *gamma, mean, inverse, product, total = statistics
    share = 1.0 / row_size()
    slope = (g - total * share) - (x - mean) * (inverse * product * share)
    return slope * (inverse * gamma[0] if gamma else inverse)


backward_normalize_xp = _declare_set_kernel(backward_normalize, 1, (), 0, _through_normalized)
_loop_for_devices(backward_normalize, _slope, (RowLayout.ELEMENT,) * 2 + (RowLayout.ROW,) * 4, 2)


@backward_normalize.grad
def backward_normalize_grad(h, ins, outs, *, scaled, over, axis, num_groups):
    words = _words(over=over, axis=axis, num_groups=num_groups)
    g, data, *gamma, mean, inverse, product, total = ins
    count = count_of(data, mean, words)
    # With k = gamma * inverse: out = k * (g - total / count - (data - mean) * inverse * product / count).
    k = inverse * gamma[0] if scaled else inverse
    h_product, h_total = ops._backward_normalize_sums(h, data, mean, inverse, **words)
    share = h_product * product / count
    weight = ops._normalize_total(h * g, mean, **words) - h_total * total / count - share
    slope = k * inverse * product / count
    gradients = [ops._normalize_scale(h, k, **words), ops._normalize_scale(h, -slope, **words)]
    if scaled:
        gradients.append(ops._reduce_like(inverse * weight, gamma[0]))
    through = weight - share
    return [*gradients, slope * h_total, through * gamma[0] if scaled else through,
            -k * h_product / count, -k * h_total / count]
