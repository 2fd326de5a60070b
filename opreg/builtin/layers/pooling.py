"""Pooling in one to three dimensions: maxima, sums, averages and p-norms of windows.

A maximum or sum over windows is computed along one axis after the other, and along an axis position by position, over
strided views: a 2x2 window needs two calls for each axis and block, while a reduction over windows would run short
inner loops. Arrays are viewed as (images, *size, rest), with channels before or after the spatial axes.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from ...backends.blas import share
from ...core.cache import cached
from ...core.op import Op
from ...core.processor import processor
from ...core.registry import declare, ops, register
from ...core.spec import Shape, common_dtype, is_floating, limits, show
from ...core.threads import chunks
from ...errors import AttrError, DTypeError, ShapeError
from ...typing import Array, ArrayModule
from ..layouts import by_layout
from ..outputs import adjoint_pair, declare_gradient_shapes, like_inputs, linear, wide
from ..samples import declare_row_samples
from ..shapes.shape import out_or_empty, stored_in
from .sliding import Window, channels_first, channels_last, span, spatial, window

__all__ = ["Pool", "pool_of", "window_of"]

Cut = tuple[slice, ...]
Convention = Literal["valid", "full", "same"]
Layout = Literal["NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC"]

#: Bytes of the input of one block, which fits the cache with its temporaries; a GPU needs large steps.
BLOCK = {"numpy": min(1 << 20, processor().l2)}
BLOCK_GPU = 1 << 28

# the time for an element of a window, as a number of multiplications in a matrix product
_EACH = 32


# ---------------------------------------------------------------------------------------------- geometry


@dataclasses.dataclass(frozen=True)
class Pool:
    """A window, and the shapes of its input and output: (images, *size, rest) and (images, *places, rest)."""

    win: Window
    x: Shape
    y: Shape

    @functools.cached_property
    def axes(self) -> list[tuple[int, int, int, int, int, int]]:
        """For each spatial axis its number, size, kernel, stride, padding and output length."""
        win = self.win
        return [*zip(range(1, len(self.x)), self.x[1:-1], win.kernel, win.stride, win.pad, self.y[1:-1])]

    @functools.cached_property
    def one_window(self) -> bool:
        """Whether there is one window, which is exactly the input."""
        return self.win.kernel == self.x[1:-1] and not any(self.win.pad)

    @functools.cached_property
    def is_disjoint(self) -> bool:
        """Whether windows do not overlap."""
        return all(s >= k for s, k in zip(self.win.stride, self.win.kernel))

    @functools.cached_property
    def spans(self) -> list[list[tuple[slice, slice]]]:
        """For each tap along each axis, the outputs whose tap lies inside the image, and the elements that it reads."""
        return [[span(n, t - p, s, places) for t in range(k)] for _, n, k, s, p, places in self.axes]

    @functools.cached_property
    def taps(self) -> list[tuple[Cut, Cut]]:
        """Taps of the window, row by row, each with the outputs that read inside and what they read."""
        return [((slice(None), *[to for to, _ in tap]), (slice(None), *[read for _, read in tap]))
                for tap in itertools.product(*self.spans)]

    @functools.cached_property
    def passes(self) -> list[tuple[int, int, list[Cut], list[tuple[Cut, Cut]]]]:
        """The pooled axes, each with its number of places, the reads of taps that all windows have, and the outputs and
        reads of other taps."""
        passes = []
        for (axis, n, k, s, _, places), spans in zip(self.axes, self.spans):
            if not (k == s == 1 and n == places):
                all_places = slice(0, places)
                passes.append((axis, places, [_cut_at(axis, read) for to, read in spans if to == all_places], [
                    (_cut_at(axis, to), _cut_at(axis, read)) for to, read in spans
                    if to != all_places and to.start < to.stop]))
        return passes

    @functools.cached_property
    def outputs_at_borders(self) -> list[Cut]:
        """Outputs whose windows reach into padding, before and after each axis."""
        return [_cut_at(axis, part) for axis, n, k, s, p, _ in self.axes if p for part in
                (slice(0, -(-p // s)), slice(max((n + p - k) // s + 1, 0), -(-(n + 2 * p) // s)))]

    @functools.cached_property
    def inside(self) -> list[list[int]]:
        """Number of elements of the data in each window along each axis, by position, or one number for all windows."""
        return self._lengths(0)

    @functools.cached_property
    def padded(self) -> list[list[int]]:
        """Number of elements in each window along each axis, with padding; see ``inside``."""
        return self._lengths(1)

    def _lengths(self, edges: int) -> list[list[int]]:
        lengths = []
        for _, n, k, s, p, places in self.axes:
            edge = p * edges
            counts = [max(1, min(q * s - p + k, n + edge) - max(q * s - p, -edge)) for q in range(places)]
            lengths.append(counts if len({*counts}) > 1 else counts[:1])
        return lengths


def _per_axis(values: Shape, rank: int, neutral: int) -> Shape:
    """One value for each axis: surplus neutral values at the end, as in ``pad=(0, 0, 0)``, are dropped."""
    return values[:rank] if all(value == neutral for value in values[rank:]) else values


def _window_and_counts(size: Shape, kernel: Shape, stride: Shape, pad: Shape, convention: str) -> tuple[Window, Shape]:
    """The window, and the number of windows along each axis; see ``Pooling``."""
    win = window(kernel, _per_axis(stride, len(kernel), 1), (), _per_axis(pad, len(kernel), 0))
    if convention == "same" and any(win.pad):
        raise AttrError(f"pooling_convention 'same' takes no padding, got pad={pad}")
    places = []
    for n, k, s, p in zip(size, win.kernel, win.stride, win.pad):
        if p >= k:
            raise AttrError(f"pad={win.pad}: expected less than kernel={win.kernel}")
        if convention == "same":
            places.append((n + s - 1) // s)
            continue
        if n + 2 * p < k:
            raise ShapeError(f"kernel {win.kernel} is larger than the input {show(size)} padded by {win.pad}")
        places.append((n + 2 * p - k + (s - 1 if convention == "full" else 0)) // s + 1)
    return win, tuple(places)


def _output(shape: Shape, kernel: Shape, stride: Shape, pad: Shape, global_pool: bool, convention: str,
            layout: str | None) -> Shape:
    """The output shape for a data shape."""
    if not kernel and not global_pool:
        raise AttrError("kernel is required, unless global_pool is set")
    first = spatial(shape, (1,) * (len(shape) - 2) if global_pool else kernel, layout)
    if global_pool:
        return channels_last((*first[:2], *(1,) * len(first[2:])), layout)
    return channels_last((*first[:2], *_window_and_counts(first[2:], kernel, stride, pad, convention)[1]), layout)


@cached(1024)
def pool_of(shape: Shape, kernel: Shape, stride: Shape, pad: Shape, global_pool: bool, convention: str,
            layout: str | None) -> Pool:
    """How data of a shape are pooled."""
    n, c, *size = channels_first(shape, layout)
    if global_pool:
        win, places = window(tuple(size)), (1,) * len(size)
    else:
        win, places = _window_and_counts(tuple(size), kernel, stride, pad, convention)
    if layout is None or layout[1] == "C":
        return Pool(win, (n * c, *size, 1), (n * c, *places, 1))
    return Pool(win, (n, *size, c), (n, *places, c))


def window_of(shape: Shape, kernel: Shape, stride: Shape, pad: Shape, global_pool: bool, pooling_convention: str,
              layout: str | None) -> Window:
    """The window that pools data of a shape.

    Examples
    --------
    >>> window_of((1, 3, 8, 6), (), (), (), True, "valid", None).kernel
    (8, 6)
    """
    return pool_of(shape, kernel, stride, pad, global_pool, pooling_convention, layout).win


def _blocks(xp: ArrayModule, pool: Pool, itemsize: int) -> list[slice]:
    """Blocks of images that fit the cache."""
    cost = max(1, math.prod(pool.x[1:]) * itemsize)
    step = max(1, BLOCK.get(xp.__name__, BLOCK_GPU) // cost)
    return chunks(pool.x[0], step)


def _cut_at(axis: int, part: slice) -> Cut:
    """The index that takes a part of one axis."""
    return (slice(None),) * axis + (part,)


# -------------------------------------------------------------------------------------------- reductions


def _combine_windows(xp: ArrayModule, combine: Callable, x: Array, pool: Pool, start: float) -> Array:
    """Windows combined along one axis after the other; ``start`` is the result of an empty window."""
    for axis, places, inside, edges in pool.passes:
        y = xp.empty((*x.shape[:axis], places, *x.shape[axis + 1:]), x.dtype)
        if len(inside) > 1:
            combine(x[inside[0]], x[inside[1]], out=y)
        else:
            y[...] = x[inside[0]] if inside else start
        for read in inside[2:]:
            combine(y, x[read], out=y)
        for to, read in edges:
            edge = y[to]
            combine(edge, x[read], out=edge)
        x = y
    return x


def _maximum(xp: ArrayModule, x: Array, pool: Pool) -> Array:
    """Maxima of windows. NaN and infinity are ignored: a window with nothing else gives the lowest finite value."""
    lowest = limits(x.dtype)[0]
    return xp.fmax(_combine_windows(xp, xp.fmax, x, pool, lowest), lowest)


def _sum(xp: ArrayModule, x: Array, pool: Pool) -> Array:
    """Sums of windows."""
    if pool.one_window:
        return x.reshape(x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]).sum(1).reshape(x.shape[0], *pool.y[1:])
    return _combine_windows(xp, xp.add, x, pool, 0)


def _spread(xp: ArrayModule, g: Array, pool: Pool) -> Array:
    """The gradient of ``_sum``: each element added to all positions of its window."""
    # the last axis first: its pass leaves few rows for the others
    for (axis, n, k, s, _, places), spans in zip(pool.axes[::-1], pool.spans[::-1]):
        if k == s == 1 and n == places:
            continue
        x = xp.zeros((*g.shape[:axis], n, *g.shape[axis + 1:]), g.dtype)
        for to, read in spans:
            part = x[_cut_at(axis, read)]
            if s >= k:
                part[...] = g[_cut_at(axis, to)]
            else:
                part += g[_cut_at(axis, to)]
        g = x
    return g


def _counts(xp: ArrayModule, pool: Pool, include_pad: bool, dtype: np.dtype) -> Array | int:
    """The number of elements that each window averages over, broadcasting with the output, or a single number."""
    total: Any = 1
    for axis, counts in enumerate(pool.padded if include_pad else pool.inside, 1):
        if len(counts) > 1:
            total = total * xp.asarray(counts, dtype).reshape(-1, *(1,) * (len(pool.x) - axis - 1))
        else:
            total = total * counts[0]
    return total


# ----------------------------------------------------------------------------------------------- Pooling


@declare(name="Pooling", aliases=("_npx_pooling",), cheap=True)
def pooling(data, *, kernel: tuple[int, ...] = (), pool_type: Literal["max", "avg", "sum", "lp"] = "max",
            global_pool: bool = False, cudnn_off: bool = False, pooling_convention: Convention = "valid",
            stride: tuple[int, ...] = (), pad: tuple[int, ...] = (), p_value: int | None = None,
            count_include_pad: bool | None = None, layout: Layout | None = None):
    """The maximum, average, sum or p-norm of each window, or of whole images with ``global_pool``.

    ``pooling_convention`` decides the number of windows along an axis of length ``n``: "valid" rounds ``(n + 2 * pad -
    kernel) / stride`` down, "full" rounds it up, "same" gives ``ceil(n / stride)`` windows from the first element on. A
    window at the border is cut to the input; averages count its padding unless ``count_include_pad`` is false.
    ``stride`` may have more elements than ``kernel`` if these are 1, and ``pad`` if these are 0. The p-norm
    has ``p_value`` 1, 2 or 3, and takes no absolute values.
    """


declare_row_samples(pooling, 0)
by_layout(pooling, (0,))


@pooling.types
def pooling_types(ins, outs, *, pool_type):
    dtype = common_dtype([*ins, *outs])
    if dtype is not None and not is_floating(dtype) and pool_type in ("avg", "lp"):
        raise DTypeError(f"pool_type {pool_type!r} needs a floating-point dtype, got {dtype}")
    return [dtype] * len(ins), [dtype] * len(outs)


@pooling.infer
def pooling_infer(data, *, kernel, pool_type, global_pool, pooling_convention, stride, pad, p_value, layout):
    if pool_type == "lp" and p_value not in (1, 2, 3):
        raise AttrError(f"p_value={p_value}: pool_type 'lp' takes 1, 2 or 3")
    return _output(data, kernel, stride, pad, global_pool, pooling_convention, layout)


def _declare_pooling(op: Op, framed: bool = False) -> None:
    """Declare the kernel of pooling; ``framed`` as ``Pooling_v1`` pads."""

    @op.kernel()  # no body: windows are strided views
    def pooling_xp(xp, data, *, kernel, pool_type, global_pool, pooling_convention, stride, pad, p_value=None,
                   count_include_pad=None, layout=None, out=None):
        pool = pool_of(data.shape, kernel, stride, pad, global_pool, pooling_convention, layout)
        shape = channels_last((*channels_first(data.shape, layout)[:2], *pool.y[1:-1]), layout)
        result = out_or_empty(xp, shape, data.dtype, out)
        x = wide(data.reshape(pool.x))
        counts: Any = math.prod(pool.win.kernel)
        if pool_type == "avg" and not framed:
            counts = _counts(xp, pool, count_include_pad is not False, x.dtype)
        y = result.reshape(pool.y)

        def pooled(block: slice) -> None:
            if pool_type == "max":
                y[block] = _maximum(xp, x[block], pool)
            elif pool_type == "lp":
                y[block] = _norm(xp, x[block], pool, p_value)
            elif pool_type == "avg":
                y[block] = _sum(xp, x[block], pool) / counts
            else:
                y[block] = _sum(xp, x[block], pool)

        blocks = _blocks(xp, pool, x.dtype.itemsize)
        if len(blocks) == 1:
            pooled(blocks[0])
        else:
            share(xp, [functools.partial(pooled, block) for block in blocks],
                  _EACH * math.prod(pool.y) * math.prod(pool.win.kernel))
        if framed and pool_type == "max":
            for part in pool.outputs_at_borders:
                xp.maximum(y[part], 0, out=y[part])
        return stored_in(result, out)


_declare_pooling(pooling)


def _norm(xp: ArrayModule, x: Array, pool: Pool, p: int) -> Array:
    if p == 1:
        return _sum(xp, x, pool)
    total = _sum(xp, x * x if p == 2 else x * x * x, pool)
    return xp.sqrt(total) if p == 2 else xp.cbrt(total)


@pooling.grad
def pooling_grad(g, ins, outs, *, pool_type, p_value, **attrs):
    x, y = ins[0], outs[0]
    if pool_type == "max":
        return (ops._backward_Pooling_max(g, x, y, pool_type=pool_type, **attrs),)
    if pool_type == "lp":
        attrs["pool_type"] = "sum"
        if p_value == 1:
            return (ops._backward_Pooling_sum(g, x, **attrs),)
        zero = y == 0
        root = (1 - zero) / (y + zero)  # no gradient where the norm is zero
        if p_value == 2:
            return (x * ops._backward_Pooling_sum(g * root, x, **attrs),)
        return (x * x * ops._backward_Pooling_sum(g * root * root, x, **attrs),)
    return (ops._backward_Pooling_sum(g, x, pool_type=pool_type, **attrs),)


# ------------------------------------------------------------------------------------- backward operators

pooling_sum = register(Op(
    "_backward_Pooling_sum", pooling.signature.schema, ("g", "data"), types="T,U->T", unread=(1,), cheap=True,
    doc="The gradient of sums and averages of windows."))
pooling_max = register(Op(
    "_backward_Pooling_max", pooling.signature.schema, ("g", "data", "maxima"), cheap=True,
    doc="The gradient of maxima: it goes to the first place of the window that has the maximum."))
pooling_at_max = register(Op(
    "_backward_Pooling_at_max", pooling.signature.schema, ("h", "data", "maxima"), cheap=True,
    doc="What ``h`` holds where windows of ``data`` have their maxima: the gradient's gradient."))


for _op, _like in ((pooling_sum, 1), (pooling_max, 1), (pooling_at_max, 2)):
    declare_row_samples(_op, 0, 1, 2)
    _op.infer(like_inputs(_like))

adjoint_pair(pooling_max, pooling_at_max, like=False)
by_layout(pooling_max, (0, 1, 2))
by_layout(pooling_sum, (0, 1))


@pooling_sum.kernel()  # no body: windows are strided views
def pooling_sum_xp(xp, g, data, *, kernel, pool_type, global_pool, pooling_convention, stride, pad, count_include_pad,
                   layout):
    pool = pool_of(data.shape, kernel, stride, pad, global_pool, pooling_convention, layout)
    g = wide(g.reshape(pool.y))
    counts = _counts(xp, pool, count_include_pad is not False, g.dtype) if pool_type == "avg" else None
    x = xp.empty(pool.x, g.dtype)
    for block in _blocks(xp, pool, g.dtype.itemsize):
        part = g[block] if counts is None else g[block] / counts
        x[block] = part if pool.one_window else _spread(xp, part, pool)
    return x.reshape(data.shape)


linear(pooling_sum, "Pooling", slice(1, -1))


#: For each window position: a mask of windows, the windows, and the inputs that they read.
Hits = Iterator[tuple[Array, tuple, tuple]]


def _hits(xp: ArrayModule, x: Array, maxima: Array, pool: Pool, first: bool) -> Hits:
    """For each window position: a mask of windows whose first maximum it is, and the input that it reads."""
    free = xp.ones(maxima.shape, bool)
    for to, read in pool.taps:
        hit = x[read] == maxima[to]
        if first:
            hit &= free[to]
            free[to] ^= hit
        yield hit, to, read


def _mask(xp: ArrayModule, g: Array, hit: Array, out: Array | None = None) -> Array:
    """``g`` where ``hit``, else zero: a bitwise product, exact for NaN and infinity, without branches."""
    bits = f"i{g.dtype.itemsize}"
    return xp.multiply(g.view(bits), hit, out=None if out is None else out.view(bits)).view(g.dtype)


def _spread_from_maxima(xp: ArrayModule, g: Array, hits: Hits, apart: bool, out: Array) -> None:
    """Write to ``out`` the elements of ``g`` at the positions of the maxima; elements at the same position are
    added."""
    for hit, to, read in hits:
        if apart:
            _mask(xp, g[to], hit, out[read])
        else:
            out[read] += _mask(xp, g[to], hit)


def _read_at_maxima(xp: ArrayModule, h: Array, hits: Hits, apart: bool, out: Array) -> None:
    """Write to ``out`` the elements of ``h`` at the positions of the maxima."""
    for hit, to, read in hits:
        out[to] += _mask(xp, h[read], hit)


def _declare_maximum_kernel(op: Op, move: Callable[..., None], like: int = 1, first: bool = True) -> None:
    """Declare the kernel of an operator that moves its first input to the places of the maxima of windows, or from
    these places. ``first`` selects the first place of each window instead of all. The output has the shape of the
    input ``like``."""

    @op.kernel()  # no body: windows are strided views
    def by_maxima_xp(xp, source, data, maxima, *, kernel, global_pool, pooling_convention, stride, pad, layout=None,
                     out=None):
        pool = pool_of(data.shape, kernel, stride, pad, global_pool, pooling_convention, layout)
        shape, given_as, result_shape = (data.shape, pool.y, pool.x) if like == 1 else (maxima.shape, pool.x, pool.y)
        source, x, maxima = source.reshape(given_as), data.reshape(pool.x), maxima.reshape(pool.y)
        result = out_or_empty(xp, shape, source.dtype, out)
        targets = result.reshape(result_shape)
        for block in _blocks(xp, pool, data.dtype.itemsize):
            target = targets[block]
            target[...] = 0
            move(xp, source[block], _hits(xp, x[block], maxima[block], pool, first), pool.is_disjoint, target)
        return stored_in(result, out)


_declare_maximum_kernel(pooling_max, _spread_from_maxima)
_declare_maximum_kernel(pooling_at_max, _read_at_maxima, like=2)


# -------------------------------------------------------------------------------------------- Pooling_v1


@declare(name="Pooling_v1", cheap=True)
def pooling_v1(data, *, kernel: tuple[int, ...] = (), pool_type: Literal["max", "avg", "sum"] = "max",
               global_pool: bool = False, pooling_convention: Literal["full", "valid"] = "valid",
               stride: tuple[int, ...] = (), pad: tuple[int, ...] = ()):
    """The first version of ``Pooling``: maxima include the zeros of the padding, and each average divides by the size
    of the kernel. The gradient of a maximum goes to all equal elements."""


@pooling_v1.infer
def pooling_v1_infer(data, *, kernel, global_pool, pooling_convention, stride, pad):
    return _output(data, kernel, stride, pad, global_pool, pooling_convention, None)


_declare_pooling(pooling_v1, framed=True)
pooling_v1_max = register(Op(
    "_backward_Pooling_v1", pooling_v1.signature.schema, ("g", "data", "maxima"), cheap=True,
    doc="The gradient of maxima: it goes to all places of the window that have the maximum."))
_declare_maximum_kernel(pooling_v1_max, _spread_from_maxima, first=False)


declare_gradient_shapes(pooling_v1, pooling_v1_max)


@pooling_v1.grad
def pooling_v1_grad(g, ins, outs, *, kernel, pool_type, global_pool, pooling_convention, **attrs):
    attrs |= {"kernel": kernel, "global_pool": global_pool, "pooling_convention": pooling_convention}
    if pool_type == "max":
        return (ops._backward_Pooling_v1(g, ins[0], outs[0], **attrs),)
    # the last windows may reach beyond the data
    if pool_type == "avg" and pooling_convention == "full" and not global_pool:
        g, pool_type = g / math.prod(kernel), "sum"
    return (ops._backward_Pooling_sum(g, ins[0], pool_type=pool_type, **attrs),)
