"""Convolution and Deconvolution in one to three dimensions, and their gradients, which are each other.

Three functions do the work, for batches with channels on axis 1: ``correlate`` (a convolution), ``spread`` (its
gradient of the data, a transposed convolution) and ``match`` (its gradient of the weight). Each goes through a block
of the batch at a time, small enough to stay in the cache, in one of two ways:

*Columns.* The numbers under every tap of the kernel are copied to a buffer, so that the sum over channels and taps is
one matrix product (im2col).

*Rows.* Only the taps along the trailing axes are copied. One product with the weights of all taps along the first axis
gives that many partial images, which are added, each shifted by its tap. A 3x3 kernel copies 3 images instead of 9,
and the product is three times as high: with as many channels out as in this takes half the time of columns. It wastes
the border rows, and needs a stride of one along the first axis.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

from ..errors import AttrError, ShapeError
from ..registry import declare, ops
from ..spec import ANY, Shape, show
from .dense import adjoint, bilinear, product, wide, with_bias
from .sliding import Window, channels_first, channels_last, extent, span, spatial, window

__all__ = ["correlate", "spread", "match", "product_alone", "of_deconvolution"]

Layout = Literal["NCW", "NCHW", "NCDHW", "NHWC", "NDHWC"]
Tune = Literal["off", "limited_workspace", "fastest"]

#: Bytes of one buffer: 2 MB measured best or near it for images of 8 to 224 pixels, with 1 to 512 channels, on
#: processors with 1 MB of second-level cache a core. Buffers are made anew by each call: keeping them gained nothing.
#: A GPU wants few and large steps.
BLOCK = {"numpy": 1 << 21}
BLOCK_GPU = 1 << 28

All = slice(None)


# ------------------------------------------------------------------------------------------------ blocks


def _parts(count: int, most: int) -> list[slice]:
    """``count`` things in parts as equal as can be, none larger than ``most``."""
    number = -(-count // max(1, most))
    return [slice(i * count // number, (i + 1) * count // number) for i in range(number)]


def _blocks(xp: Any, images: int, groups: int, rows: int, halo: int, cost: int
            ) -> Iterator[tuple[slice, slice, slice]]:
    """Blocks of images, groups and output rows whose buffers fit the cache.

    ``cost`` is the bytes of one row of one group of one image; each block of rows reads ``halo`` rows more.
    """
    room = max(1, BLOCK.get(xp.__name__, BLOCK_GPU) // max(1, cost))
    # With fewer rows than eight halos too much of the work would be done twice.
    height = rows if rows + halo <= room else max(room - halo, 8 * halo)
    in_block = max(1, room // (min(height, rows) + halo))
    count = in_block // groups if height >= rows else 1
    for r in _parts(rows, height):
        for g in _parts(groups, in_block):
            for n in _parts(images, count):
                yield n, g, r


def _length(part: slice) -> int:
    return part.stop - part.start


class _Plan:
    """Sizes of one convolution, and its ways through the batch.

    ``x``, ``w`` and ``y`` are the shapes of data, weight and output: (N, C, *size), (O, C / groups, *kernel) and
    (N, O, *places).
    """

    def __init__(self, x: Shape, w: Shape, y: Shape, win: Window, groups: int):
        self.images, self.groups, self.win = x[0], groups, win
        self.size, self.places = x[2:], y[2:]
        self.ins, self.outs = w[1], w[0] // groups
        self.flat_x, self.flat_w = (x[0], math.prod(x[1:])), (w[0], math.prod(w[1:]))
        self.first, self.rest = win.kernel[0], win.kernel[1:]
        self.taps, self.run = math.prod(self.rest), math.prod(self.places[1:])
        self.halo = win.reach[0] - 1
        self.padded = any(win.pad)
        # With more taps than places, matrices of single images are small next to the weights: take several as one.
        self.folded = self.ins * self.first * self.taps > 4 * math.prod(self.places)
        self.spans = list(enumerate(map(self._trailing, itertools.product(*map(range, self.rest)))))
        self.spans.sort(key=lambda tap: tap[1][1] != tuple([slice(0, n, 1) for n in self.size[1:]]))

    def _trailing(self, tap: Shape) -> tuple[tuple, tuple]:
        """Where a tap of the trailing axes reads, as slices of places and of the input."""
        win = self.win
        spans = [span(n, t * d - p, s, q) for n, t, d, p, s, q in
                 zip(self.size[1:], tap, win.dilate[1:], win.pad[1:], win.stride[1:], self.places[1:])]
        return tuple([place for place, _ in spans]), tuple([read for _, read in spans])

    def split(self, array: Any) -> Any:
        """An array of images with its channels split into groups."""
        n, c, *size = array.shape
        return array.reshape(n, self.groups, c // self.groups, *size)

    def pointwise(self) -> bool:
        """Whether every output reads one place of the input, the one it is at."""
        return max(self.win.kernel) == max(self.win.stride) == 1 and not self.padded

    def whole(self) -> bool:
        """Whether there is one output, which reads the whole input: a product of matrices."""
        return (self.groups == 1 and math.prod(self.places) == 1 and self.win.kernel == self.size
                and not self.padded)

    def by_rows(self) -> bool:
        """Whether the way by rows is the faster one.

        In numbers copied: columns copy each tap of each channel, at a rate of one half because rows of the image
        are short; rows add ``first`` partial images of the output and copy the weights, and 40 multiplications in
        the wasted rows take the time of one copy. The constants are fitted to measured times.
        """
        if self.win.stride[0] != 1:
            return False
        rows, high = self.places[0], self.places[0] + self.halo
        weights = self.outs * self.ins * self.first * self.taps
        steps = self.images * self.run * self.first
        by_rows = steps * (self.halo * self.outs * self.ins * self.taps / 40 + self.outs * high) + 4 * weights
        return by_rows < steps * 2 * self.ins * self.taps * rows

    def row_blocks(self, xp: Any, dtype: Any) -> Iterator[tuple[slice, slice, slice, Any, Any]]:
        """Blocks with two buffers: (G, trailing taps, C, N, rows, …) for the data, (G, first taps, O, N, rows, …)."""
        cost = max(self.ins * self.taps, self.outs * self.first) * self.run * dtype.itemsize
        shape = narrow = tall = None
        for n, g, r in _blocks(xp, self.images, self.groups, self.places[0], self.halo, cost):
            size = (_length(g), _length(n), _length(r) + self.halo)
            if size != shape:
                shape, (groups, images, rows) = size, size
                tail = (images, rows, *self.places[1:])
                narrow = xp.zeros((groups, self.taps, self.ins, *tail), dtype)
                tall = xp.zeros((groups, self.first, self.outs, *tail), dtype)
            yield n, g, r, narrow, tall

    def column_blocks(self, xp: Any, dtype: Any) -> Iterator[tuple[slice, slice, slice, Any, Any]]:
        """Blocks with their buffer, seen as (N, G, C, first taps, trailing taps, rows, …) and as ``matrices``."""
        cost = self.ins * self.first * self.taps * self.run * dtype.itemsize
        shape = columns = matrices = None
        for n, g, r in _blocks(xp, self.images, self.groups, self.places[0], 0, cost):
            size = (_length(n), _length(g), _length(r))
            if size != shape:
                shape, (images, groups, rows) = size, size
                taps, tail = (self.ins, self.first, self.taps), (rows, *self.places[1:])
                if self.folded:
                    columns = xp.zeros((groups, *taps, images, *tail), dtype)
                    matrices = columns.reshape(groups, math.prod(taps), images * math.prod(tail))
                    columns = columns.transpose(4, 0, 1, 2, 3, *range(5, columns.ndim))
                else:
                    columns = xp.zeros((images, groups, *taps, *tail), dtype)
                    matrices = columns.reshape(images, groups, math.prod(taps), math.prod(tail))
            yield n, g, r, columns, matrices

    def matrices(self, part: Any) -> Any:
        """A part of the output, (N, G, O, rows, …), as matrices of O rows: (N, G, O, places) or (G, O, N places)."""
        images, groups, outs, *tail = part.shape
        if self.folded:
            return _turned(part).reshape(groups, outs, images * math.prod(tail))
        return part.reshape(images, groups, outs, math.prod(tail))

    def images_of(self, matrices: Any, part: Any) -> Any:
        """The reverse of ``matrices``: an array of the shape of ``part``."""
        if not self.folded:
            return matrices.reshape(part.shape)
        images, groups, outs, *tail = part.shape
        return matrices.reshape(groups, outs, images, *tail).transpose(2, 0, 1, *range(3, part.ndim))

    def summed(self, products: Any) -> Any:
        """Products of matrices, summed over the images."""
        return products if self.folded else products.sum(0)

    def shifted(self, tall: Any, r: slice) -> list[Any]:
        """The parts of partial images that belong to the output rows ``r``, one a tap of the first axis."""
        step = self.win.dilate[0]
        return [tall[:, i, :, :, i * step:i * step + _length(r)] for i in range(self.first)]

    def row_reads(self, r: slice) -> Iterator[tuple[tuple, tuple]]:
        """For each trailing tap, its part of the row buffer and of the input that output rows ``r`` read."""
        to, source = span(self.size[0], r.start - self.win.pad[0], 1, _length(r) + self.halo)
        for t, (place, read) in self.spans:
            yield (All, t, All, All, to, *place), (..., source, *read)

    def column_reads(self, r: slice) -> Iterator[tuple[tuple, tuple]]:
        """For each tap, its part of the column buffer and of the input that output rows ``r`` read."""
        for i in range(self.first):
            start = r.start * self.win.stride[0] + i * self.win.dilate[0] - self.win.pad[0]
            to, source = span(self.size[0], start, self.win.stride[0], _length(r))
            for t, (place, read) in self.spans:
                yield (All, All, All, i, t, to, *place), (..., source, *read)

    def fill(self, buffer: Any, x: Any, r: slice, reads: Iterator[tuple[tuple, tuple]]) -> None:
        """Copy the input to where taps read it."""
        if self.padded and _length(r) < self.places[0]:
            buffer[...] = 0  # the block before had other borders
        for to, source in reads:
            buffer[to] = x[source]


def _deposit(x: Any, buffer: Any, reads: Iterator[tuple[tuple, tuple]], fresh: bool) -> None:
    """Add numbers of the taps to where they were read; ``fresh`` says that nothing is there yet."""
    for to, source in reads:
        part = x[source]
        if fresh and part.shape == x.shape:
            part[...] = buffer[to]
        else:
            if fresh:
                x[...] = 0
            part += buffer[to]
        fresh = False


_plan = functools.lru_cache(1024)(_Plan)


def _turned(array: Any) -> Any:
    """(N, G, C, …) as (G, C, N, …), or a view of such an array back."""
    return array.transpose(1, 2, 0, *range(3, array.ndim))


def _matrices(buffer: Any) -> Any:
    """A buffer of the way by rows, (G, taps, channels, …), as matrices of taps × channels rows."""
    groups, taps, channels, *tail = buffer.shape
    return buffer.reshape(groups, taps * channels, math.prod(tail))


def _stacked(w: Any, plan: _Plan) -> Any:
    """Weights for the way by rows: (G, first taps × O, trailing taps × C)."""
    w = w.reshape(plan.groups, plan.outs, plan.ins, plan.first, plan.taps).transpose(0, 3, 1, 4, 2)
    return w.reshape(plan.groups, plan.first * plan.outs, plan.taps * plan.ins)


def _flat(w: Any, plan: _Plan) -> Any:
    """Weights for the way by columns: (G, O, C × taps)."""
    return w.reshape(plan.groups, plan.outs, plan.ins * plan.first * plan.taps)


def product_alone(x: Shape, w: Shape, y: Shape, win: Window, groups: int = 1) -> bool:
    """Whether a convolution of these shapes is one product of matrices of the arrays as they are.

    Examples
    --------
    >>> product_alone((2, 3, 5, 5), (4, 3, 1, 1), (2, 4, 5, 5), window((1, 1)))
    True
    """
    plan = _plan(x, w, y, win, groups)
    return plan.pointwise() or plan.whole()


# --------------------------------------------------------------------------------- the three functions


def correlate(xp: Any, x: Any, w: Any, y: Any, win: Window, groups: int = 1, bias: Any = None) -> None:
    """Write to ``y`` the sums over channels and taps of ``x`` times ``w``, and the bias.

    Parameters
    ----------
    xp : module
        Array module.
    x : array, shape (N, C, *size)
    w : array, shape (O, C / groups, *kernel)
    y : array, shape (N, O, *places)
        Overwritten. All three have one dtype.
    win : Window
        Kernel, stride, dilation and padding.
    groups : int
        Parts into which the channels of both are divided.
    bias : array, shape (O,)
    """
    plan = _plan(x.shape, w.shape, y.shape, win, groups)
    n, o = y.shape[:2]
    if plan.whole():
        _store(y, (n, o), lambda out: product(xp, x.reshape(plan.flat_x), w.reshape(plan.flat_w).T, out))
    elif plan.pointwise():
        places = math.prod(plan.places)
        weights = w.reshape(groups, plan.outs, plan.ins)
        _store(y, (n, groups, plan.outs, places),
               lambda out: product(xp, weights, x.reshape(n, groups, plan.ins, places), out))
    else:
        by = _correlate_by_rows if plan.by_rows() else _correlate_by_columns
        by(xp, x, w, y, plan, None if bias is None else bias.reshape(groups, plan.outs, *(1,) * len(plan.size)))
        return
    if bias is not None:
        y += bias.reshape(o, *(1,) * len(plan.size))


def _store(y: Any, shape: Shape, compute: Callable[[Any], Any]) -> None:
    """Let ``compute`` write to ``y`` seen in another shape, or copy its result where that cannot be."""
    if y.flags.c_contiguous:
        compute(y.reshape(shape))
    else:
        y[...] = compute(None).reshape(y.shape)


def _correlate_by_rows(xp: Any, x: Any, w: Any, y: Any, plan: _Plan, bias: Any) -> None:
    weights, x, y = _stacked(w, plan), plan.split(x), plan.split(y)
    for n, g, r, narrow, tall in plan.row_blocks(xp, x.dtype):
        plan.fill(narrow, _turned(x[n, g]), r, plan.row_reads(r))
        xp.matmul(weights[g], _matrices(narrow), out=_matrices(tall))
        out = _turned(y[n, g, :, r])
        first, *others = plan.shifted(tall, r)
        if others:
            xp.add(first, others[0], out=out)
        else:
            out[...] = first
        for other in others[1:]:
            out += other
        if bias is not None:
            out += bias[g, :, None]


def _correlate_by_columns(xp: Any, x: Any, w: Any, y: Any, plan: _Plan, bias: Any) -> None:
    weights, x, y = _flat(w, plan), plan.split(x), plan.split(y)
    direct = y.flags.c_contiguous and not plan.folded  # so that blocks of whole rows are matrices in place
    for n, g, r, columns, matrices in plan.column_blocks(xp, x.dtype):
        plan.fill(columns, x[n, g], r, plan.column_reads(r))
        out = y[n, g, :, r]
        if direct:
            xp.matmul(weights[g], matrices, out=plan.matrices(out))
        else:
            out[...] = plan.images_of(xp.matmul(weights[g], matrices), out)
        if bias is not None:
            out += bias[g]


def spread(xp: Any, y: Any, w: Any, x: Any, win: Window, groups: int = 1) -> None:
    """Write to ``x`` what ``correlate`` would have read, weighted: the gradient of its data, given that of ``y``.

    Parameters
    ----------
    xp, y, w, x, win, groups
        As those of ``correlate``; ``x`` is overwritten.
    """
    plan = _plan(x.shape, w.shape, y.shape, win, groups)
    n, o = y.shape[:2]
    if plan.whole():
        _store(x, plan.flat_x, lambda out: product(xp, y.reshape(n, o), w.reshape(plan.flat_w), out))
    elif plan.pointwise():
        places = math.prod(plan.places)
        weights = w.reshape(groups, plan.outs, plan.ins).swapaxes(1, 2)
        _store(x, (n, groups, plan.ins, places),
               lambda out: product(xp, weights, y.reshape(n, groups, plan.outs, places), out))
    else:
        (_spread_by_rows if plan.by_rows() else _spread_by_columns)(xp, y, w, x, plan)


def _spread_by_rows(xp: Any, y: Any, w: Any, x: Any, plan: _Plan) -> None:
    weights, x, y = _stacked(w, plan).swapaxes(1, 2), plan.split(x), plan.split(y)
    for n, g, r, narrow, tall in plan.row_blocks(xp, x.dtype):
        source = _turned(y[n, g, :, r])
        for part in plan.shifted(tall, r):  # the rows between them stay zero
            part[...] = source
        xp.matmul(weights[g], _matrices(tall), out=_matrices(narrow))
        _deposit(_turned(x[n, g]), narrow, plan.row_reads(r), r.start == 0)


def _spread_by_columns(xp: Any, y: Any, w: Any, x: Any, plan: _Plan) -> None:
    weights, x, y = _flat(w, plan).swapaxes(1, 2), plan.split(x), plan.split(y)
    for n, g, r, columns, matrices in plan.column_blocks(xp, x.dtype):
        xp.matmul(weights[g], plan.matrices(y[n, g, :, r]), out=matrices)
        _deposit(x[n, g], columns, plan.column_reads(r), r.start == 0)


def match(xp: Any, y: Any, x: Any, w: Any, win: Window, groups: int = 1) -> None:
    """Write to ``w`` the sums of ``y`` times what each tap reads of ``x``: the gradient of the weight.

    Parameters
    ----------
    xp, y, x, w, win, groups
        As those of ``correlate``; ``w`` is overwritten.
    """
    plan = _plan(x.shape, w.shape, y.shape, win, groups)
    n, o = y.shape[:2]
    if plan.whole():
        _store(w, plan.flat_w, lambda out: product(xp, y.reshape(n, o).T, x.reshape(plan.flat_x), out))
    elif plan.pointwise():
        _match_pointwise(xp, y, x, w, plan)
    else:
        (_match_by_rows if plan.by_rows() else _match_by_columns)(xp, y, x, w, plan)


def _match_pointwise(xp: Any, y: Any, x: Any, w: Any, plan: _Plan) -> None:
    x, y = plan.split(x), plan.split(y)
    total = xp.zeros((plan.groups, plan.outs, plan.ins), x.dtype)
    cost = max(plan.outs * plan.ins, (plan.ins + plan.outs) * math.prod(plan.places)) * x.dtype.itemsize
    for n, g, _ in _blocks(xp, plan.images, plan.groups, 1, 0, cost):
        total[g] += plan.summed(xp.matmul(plan.matrices(y[n, g]), plan.matrices(x[n, g]).swapaxes(-1, -2)))
    w[...] = total.reshape(w.shape)


def _match_by_rows(xp: Any, y: Any, x: Any, w: Any, plan: _Plan) -> None:
    x, y = plan.split(x), plan.split(y)
    total = xp.zeros((plan.groups, plan.first * plan.outs, plan.taps * plan.ins), x.dtype)
    for n, g, r, narrow, tall in plan.row_blocks(xp, x.dtype):
        plan.fill(narrow, _turned(x[n, g]), r, plan.row_reads(r))
        source = _turned(y[n, g, :, r])
        for part in plan.shifted(tall, r):
            part[...] = source
        total[g] += xp.matmul(_matrices(tall), _matrices(narrow).swapaxes(1, 2))
    total = total.reshape(plan.groups, plan.first, plan.outs, plan.taps, plan.ins)
    w[...] = total.transpose(0, 2, 4, 1, 3).reshape(w.shape)


def _match_by_columns(xp: Any, y: Any, x: Any, w: Any, plan: _Plan) -> None:
    x, y = plan.split(x), plan.split(y)
    total = xp.zeros((plan.groups, plan.outs, plan.ins * plan.first * plan.taps), x.dtype)
    for n, g, r, columns, matrices in plan.column_blocks(xp, x.dtype):
        plan.fill(columns, x[n, g], r, plan.column_reads(r))
        total[g] += plan.summed(xp.matmul(plan.matrices(y[n, g, :, r]), matrices.swapaxes(-1, -2)))
    w[...] = total.reshape(w.shape)


# ------------------------------------------------------------------------------------------- Convolution


def _run(xp: Any, shape: Shape, out: Any, layout: str | None, arrays: tuple, compute: Callable) -> Any:
    """Let ``compute(target, *arrays)`` write an array of this shape, all of them with channels on axis 1.

    Halves are computed in float32.
    """
    work = wide(xp, *arrays)
    target = out if out is not None and out.dtype == work[0].dtype else xp.empty(shape, work[0].dtype)
    compute(channels_first(target, layout),
            *[array if array is None or array.ndim == 1 else channels_first(array, layout) for array in work])
    if out is None or out is target:
        return target
    out[...] = target
    return out


def _check_groups(num_filter: int, num_group: int, channels: int) -> None:
    if num_filter < 1 or num_group < 1:
        raise AttrError(f"num_filter={num_filter}, num_group={num_group}: expected positive numbers")
    for what, count in (("filters", num_filter), ("channels", channels)):
        if count % num_group != 0:
            raise AttrError(f"num_group={num_group} does not divide the {count} {what}")


@declare(name="Convolution", aliases=("Convolution_v1", "_npx_convolution"), arguments=with_bias)
def convolution(data, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_filter: int, num_group: int = 1,
                workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tune | None = None,
                cudnn_off: bool = False, layout: Layout | None = None):
    """Sums over windows of the data, weighted by ``num_filter`` kernels, and a bias.

    ``weight`` has shape (num_filter, channels / num_group, *kernel), or with channels last in the layouts that have
    them last. ``workspace`` and the cuDNN settings have no effect.
    """


def _filled(ins, outs, weights, *, kernel, num_filter, num_group, no_bias, layout):
    """Shapes of data, weight and bias; ``weights(channels)`` begins the shape of the weight."""
    data = ins[0]
    bias = [] if no_bias else [(num_filter,)]
    if data is None:
        return [None, None, *bias]
    channels = spatial(data, len(kernel), layout)[1]
    _check_groups(num_filter, num_group, channels)
    if outs[0] is not None and len(outs[0]) == len(data):
        data = (outs[0][0], *data[1:])
    return [data, channels_last((*weights(channels), *kernel), layout), *bias]


@convolution.fill
def convolution_fill(ins, outs, *, kernel, num_filter, num_group, no_bias, layout):
    return _filled(ins, outs, lambda channels: (num_filter, channels // num_group), kernel=kernel,
                   num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout)


@convolution.infer
def convolution_infer(data, weight, bias=None, *, kernel, stride, dilate, pad, num_filter, layout):
    x = spatial(data, len(kernel), layout)
    places = extent(x[2:], window(kernel, stride, dilate, pad))
    return channels_last((x[0], num_filter, *places), layout)


@convolution.kernel()
def convolution_xp(xp, data, weight, bias=None, *, kernel, stride, dilate, pad, num_filter, num_group, layout,
                   out=None):
    shape = convolution_infer(data.shape, weight.shape, kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                              num_filter=num_filter, layout=layout)
    win = window(kernel, stride, dilate, pad)
    return _run(xp, shape, out, layout, (data, weight, bias),
                lambda y, x, w, b: correlate(xp, x, w, y, win, num_group, b))


convolution_data = adjoint("_backward_Convolution_data", convolution, ("g", "weight", "data"))
convolution_weight = adjoint("_backward_Convolution_weight", convolution, ("g", "data", "weight"))


@convolution_data.kernel()
def convolution_data_xp(xp, g, weight, data, *, kernel, stride, dilate, pad, num_group, layout, out=None):
    win = window(kernel, stride, dilate, pad)
    return _run(xp, data.shape, out, layout, (g, weight), lambda x, y, w: spread(xp, y, w, x, win, num_group))


@convolution_weight.kernel()
def convolution_weight_xp(xp, g, data, weight, *, kernel, stride, dilate, pad, num_group, layout, out=None):
    win = window(kernel, stride, dilate, pad)
    return _run(xp, weight.shape, out, layout, (g, data), lambda w, y, x: match(xp, y, x, w, win, num_group))


@declare(name="_backward_Convolution_bias")
def convolution_bias(g, *, layout: Layout):
    """Sums of ``g`` over everything but channels."""


@convolution_bias.infer
def convolution_bias_infer(g, *, layout):
    return (channels_first(g, layout)[1],)


@convolution_bias.kernel()
def convolution_bias_xp(xp, g, *, layout):
    (g,) = wide(xp, g)
    if layout[1] != "C":
        return g.sum(tuple(range(g.ndim - 1)))
    # A product with ones is four times as fast as a sum over short rows.
    rows = g.reshape(*g.shape[:2], math.prod(g.shape[2:]))
    return xp.matmul(rows, xp.ones(rows.shape[2], g.dtype)).sum(0)


@convolution_bias.grad
def convolution_bias_grad(h, ins, outs, *, layout):
    return (ops.broadcast_like(ops.Reshape(h, shape=tuple([-1 if axis == "C" else 1 for axis in layout])), ins[0]),)


def _bias_gradient(g: Any, attrs: dict[str, Any]) -> Any:
    layout = attrs["layout"] or ("NCW", "NCHW", "NCDHW")[len(attrs["kernel"]) - 1]
    return convolution_bias(g, layout=layout)


bilinear(convolution, convolution_data, convolution_weight, _bias_gradient)


# ----------------------------------------------------------------------------------------- Deconvolution


@declare(name="Deconvolution", aliases=("_npx_deconvolution",), arguments=with_bias)
def deconvolution(data, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                  dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), adj: tuple[int, ...] = (),
                  target_shape: tuple[int, ...] = (), num_filter: int, num_group: int = 1, workspace: int = 512,
                  no_bias: bool = True, cudnn_tune: Tune | None = None, cudnn_off: bool = False,
                  layout: Layout | None = None):
    """The transposed convolution: every number of the data is spread over a window of the output.

    ``weight`` has shape (channels, num_filter / num_group, *kernel). The output has
    ``stride * (n - 1) + dilate * (kernel - 1) + 1 - 2 * pad + adj`` places along an axis of ``n``, or those of
    ``target_shape``, which takes the place of ``pad`` and ``adj``.
    """


def of_deconvolution(size: Shape, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape, adj: Shape,
                     target_shape: Shape) -> tuple[Window, Shape]:
    """The window of the convolution that this one transposes, and the spatial output shape."""
    win = window(kernel, stride, dilate, pad)
    full = tuple([s * (n - 1) + r for n, s, r in zip(size, win.stride, win.reach)])
    if any(target_shape):
        if len(target_shape) != len(kernel) or min(target_shape) < 1:
            raise AttrError(f"target_shape={target_shape}: expected {len(kernel)} positive numbers")
        for n, target in zip(full, target_shape):
            if n < target:
                raise ShapeError(f"target_shape={target_shape} is too large: the output is at most {show(full)}")
        # What is too much is cut off on both sides, the odd one at the front.
        pads = tuple([0 if n is ANY else (n - target + 1) // 2 for n, target in zip(full, target_shape)])
        return win._replace(pad=pads), target_shape
    adj = adj or (0,) * len(kernel)
    if len(adj) != len(kernel) or any(not 0 <= a < s for a, s in zip(adj, win.stride)):
        raise AttrError(f"adj={adj}: expected {len(kernel)} numbers smaller than stride={win.stride}")
    places = tuple([n - 2 * p + a for n, p, a in zip(full, win.pad, adj)])
    if any(n < 1 for n in places):
        raise ShapeError(f"pad={win.pad} leaves nothing of an output of {show(full)}")
    return win, places


@deconvolution.fill
def deconvolution_fill(ins, outs, *, kernel, num_filter, num_group, no_bias, layout):
    return _filled(ins, outs, lambda channels: (channels, num_filter // num_group), kernel=kernel,
                   num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout)


@deconvolution.infer
def deconvolution_infer(data, weight, bias=None, *, kernel, stride, dilate, pad, adj, target_shape, num_filter, layout):
    x = spatial(data, len(kernel), layout)
    places = of_deconvolution(x[2:], kernel, stride, dilate, pad, adj, target_shape)[1]
    return channels_last((x[0], num_filter, *places), layout)


@deconvolution.kernel()
def deconvolution_xp(xp, data, weight, bias=None, *, kernel, stride, dilate, pad, adj, target_shape, num_filter,
                     num_group, layout, out=None):
    x = channels_first(data.shape, layout)
    win, places = of_deconvolution(x[2:], kernel, stride, dilate, pad, adj, target_shape)

    def compute(y: Any, x: Any, w: Any, b: Any) -> None:
        spread(xp, x, w, y, win, num_group)
        if b is not None:
            y += b.reshape(-1, *(1,) * len(places))

    return _run(xp, channels_last((x[0], num_filter, *places), layout), out, layout, (data, weight, bias), compute)


deconvolution_data = adjoint("_backward_Deconvolution_data", deconvolution, ("g", "weight", "data"))
deconvolution_weight = adjoint("_backward_Deconvolution_weight", deconvolution, ("g", "data", "weight"))


@deconvolution_data.kernel()
def deconvolution_data_xp(xp, g, weight, data, *, kernel, stride, dilate, pad, adj, target_shape, num_group, layout,
                          out=None):
    size = channels_first(data.shape, layout)[2:]
    win, _ = of_deconvolution(size, kernel, stride, dilate, pad, adj, target_shape)
    return _run(xp, data.shape, out, layout, (g, weight), lambda x, y, w: correlate(xp, y, w, x, win, num_group))


@deconvolution_weight.kernel()
def deconvolution_weight_xp(xp, g, data, weight, *, kernel, stride, dilate, pad, adj, target_shape, num_group, layout,
                            out=None):
    size = channels_first(data.shape, layout)[2:]
    win, _ = of_deconvolution(size, kernel, stride, dilate, pad, adj, target_shape)
    return _run(xp, weight.shape, out, layout, (g, data), lambda w, y, x: match(xp, x, y, w, win, num_group))


bilinear(deconvolution, deconvolution_data, deconvolution_weight, _bias_gradient)
