"""Convolution and Deconvolution in one to three dimensions, and their gradients, which are each other's operators.

Three functions compute them, for batches with channels on axis 1: ``correlate`` (a convolution), ``spread`` (its
gradient with respect to the data, a transposed convolution) and ``match`` (its gradient with respect to the weight).
Each processes one block of the batch at a time, small enough for the cache, in one of two ways:

*Columns.* The elements under each kernel position are copied to a buffer, so that the sum over channels and positions
is one matrix product (im2col).

*Rows.* Only the taps along the trailing axes are copied. One product with the weights of all taps along the first axis
gives that many partial images, which are added, each shifted by its tap. A 3x3 kernel copies 3 images instead of 9,
and the product is three times as high: with as many channels out as in this takes half the time of columns. It wastes
the border rows, and needs a stride of one along the first axis.

Threads share the blocks, or the output channels of a single block; see ``opreg.backends.blas``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from ...backends.blas import share
from ...core import threads
from ...core.attrs import Positive
from ...core.cache import cached
from ...core.op import Op
from ...core.processor import processor
from ...core.registry import declare, ops
from ...core.rules import Attrs
from ...core.spec import ANY, Shape, show
from ...core.value import Value
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..layouts import by_layout
from ..matrices.dense import adjoint, bilinear, product, with_bias
from ..outputs import wide
from ..samples import of_rows
from .sliding import Window, channels_first, channels_last, extent, needed, span, spatial, window

__all__ = ["Then", "correlate", "spread", "match", "plus", "product_alone", "run_convolution", "of_deconvolution",
           "of_weight"]

Layout = Literal["NCW", "NCHW", "NCDHW", "NHWC", "NDHWC"]
Tune = Literal["off", "limited_workspace", "fastest"]

#: Bytes of one buffer: 3 MB measured best or near it for images of 7 to 224 pixels, with 3 to 512 channels, on
#: processors with 1 MB of second-level cache a core. It decides in which order gradients of weights are added up.
#: Buffers are made anew by each call: keeping them gained nothing. A GPU wants few and large steps.
BLOCK = {"numpy": min(3 << 20, 3 * processor().l2)}
BLOCK_GPU = 1 << 28

#: Up to this size in bytes, or twice that of the weights, which BLAS packs for every block, images share a buffer: the
#: inputs and outputs of a product stay in the second-level cache until partial images are added.
NEAR = min(1 << 19, processor().l2 // 4)

#: Largest number of blocks that smaller work is divided into, for as many threads, and the smallest number of columns
#: of their matrices: narrower ones are multiplied more slowly.
SHARES, COLUMNS = 8, 256

#: Smallest number of output channels in a part of a single block.
LEAST_OUTS = 32

All = slice(None)


# ------------------------------------------------------------------------------------------------ blocks


def _parts(count: int, most: int, shares: int = 1) -> list[slice]:
    """``count`` items in parts of nearly equal size, none larger than ``most``; the number of parts is a multiple of
    ``shares`` if there are several."""
    number = -(-count // max(1, most))
    if number > 1:
        number = min(count, -(-number // shares) * shares)
    return threads.evenly(count, number)


def _blocks(xp: ArrayModule, images: int, groups: int, rows: int, halo: int, cost: int, run: int,
            weights: int) -> Iterator[tuple[slice, slice, slice]]:
    """Blocks of images, groups and output rows whose buffers fit the cache.

    ``cost`` is the bytes of one row of one group of one image, ``run`` the number of matrix columns that it gives; each
    block reads ``halo`` more rows. ``weights`` is the bytes of one group's weights.
    """
    room = max(1, BLOCK.get(xp.__name__, BLOCK_GPU) // max(1, cost))
    shares, near = 1, room
    if xp.__name__ in BLOCK:
        shares, least = _shares(), -(-COLUMNS // max(1, run))
        room = min(max(room, least), max(-(-images * groups * rows // shares), least) + halo)
        near = max(max(NEAR, 2 * weights) // max(1, cost), least)
    # below eight times the halo too much work would be done twice
    height = rows if rows + halo <= room else max(room - halo, 8 * halo)
    in_block = max(1, min(room, near) // (min(height, rows) + halo))
    count = in_block // groups if height >= rows else 1
    for r in _parts(rows, height, shares if images == groups == 1 else 1):
        for g in _parts(groups, in_block):
            for n in _parts(images, count, shares):
                yield n, g, r


def _shares() -> int:
    return min(SHARES, threads.count())


def _length(part: slice) -> int:
    return part.stop - part.start


class _Buffers:
    """Buffers of one call, reused between blocks of the same size.

    They are not part of the workspace: blocks use theirs at the same time, and borders that are never written have to
    be zeros.
    """

    def __init__(self, make: Callable[[int, int, int], tuple[Array, Array]]):
        self.make = make
        self.free: dict[Shape, list[tuple[Array, Array]]] = {}

    def take(self, *size: int) -> tuple[Array, Array]:
        try:
            return self.free[size].pop()
        except (KeyError, IndexError):
            return self.make(*size)

    def give(self, buffer: tuple[Array, Array], *size: int) -> None:
        self.free.setdefault(size, []).append(buffer)


class _Plan:
    """Sizes of one convolution, and its blocks of the batch.

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
        # a kernel with more positions than the output has: single images make small matrices, so several are merged
        self.folded = self.ins * self.first * self.taps > 4 * math.prod(self.places)
        self.spans = list(enumerate(map(self._trailing, itertools.product(*map(range, self.rest)))))
        self.spans.sort(key=lambda tap: tap[1][1] != tuple([slice(0, n, 1) for n in self.size[1:]]))

    def _trailing(self, tap: Shape) -> tuple[tuple, tuple]:
        """Slices of the output and of the input for a kernel position along the trailing axes."""
        win = self.win
        spans = [span(n, t * d - p, s, q) for n, t, d, p, s, q in
                 zip(self.size[1:], tap, win.dilate[1:], win.pad[1:], win.stride[1:], self.places[1:])]
        return tuple([place for place, _ in spans]), tuple([read for _, read in spans])

    def split(self, array: Array) -> Array:
        """An array of images with its channels split into groups."""
        n, c, *size = array.shape
        return array.reshape(n, self.groups, c // self.groups, *size)

    def pointwise(self) -> bool:
        """Whether each output element reads one input element, at the same position."""
        return max(self.win.kernel) == max(self.win.stride) == 1 and not self.padded

    def whole(self) -> bool:
        """Whether there is one output position, which reads the whole input: a product of matrices."""
        return (self.groups == 1 and math.prod(self.places) == 1 and self.win.kernel == self.size
                and not self.padded)

    def by_rows(self) -> bool:
        """Whether the way by rows is estimated to be faster.

        The estimate counts copied elements: columns copy each kernel position of each channel, at half speed because
        rows of an image are short; rows add ``first`` partial images of the output and copy the weights, and 40
        multiplications in wasted rows take the time of one copy. The constants are fitted to measurements.
        """
        if self.win.stride[0] != 1:
            return False
        rows, high = self.places[0], self.places[0] + self.halo
        weights = self.outs * self.ins * self.first * self.taps
        steps = self.images * self.run * self.first
        by_rows = steps * (self.halo * self.outs * self.ins * self.taps / 40 + self.outs * high) + 4 * weights
        return by_rows < steps * 2 * self.ins * self.taps * rows

    def weights(self, dtype: np.dtype) -> int:
        """Bytes of the weights of one group."""
        return self.outs * self.ins * self.first * self.taps * dtype.itemsize

    def row_blocks(self, xp: ArrayModule, dtype: np.dtype) -> list[tuple[slice, slice, slice]]:
        """The blocks of the way by rows."""
        cost = max(self.ins * self.taps, self.outs * self.first) * self.run * dtype.itemsize
        return list(_blocks(xp, self.images, self.groups, self.places[0], self.halo, cost, self.run,
                            self.weights(dtype)))

    def row_buffers(self, xp: ArrayModule, dtype: np.dtype) -> _Buffers:
        """Pairs: (G, trailing taps, C, N, rows, …) for the data, (G, first taps, O, N, rows, …)."""

        def make(images: int, groups: int, rows: int) -> tuple[Array, Array]:
            tail = (images, rows + self.halo, *self.places[1:])
            return (xp.zeros((groups, self.taps, self.ins, *tail), dtype),
                    xp.zeros((groups, self.first, self.outs, *tail), dtype))

        return _Buffers(make)

    def column_blocks(self, xp: ArrayModule, dtype: np.dtype) -> list[tuple[slice, slice, slice]]:
        """The blocks of the way by columns."""
        cost = self.ins * self.first * self.taps * self.run * dtype.itemsize
        return list(_blocks(xp, self.images, self.groups, self.places[0], 0, cost, self.run, self.weights(dtype)))

    def column_buffers(self, xp: ArrayModule, dtype: np.dtype) -> _Buffers:
        """A buffer viewed as (N, G, C, first taps, trailing taps, rows, …), and as ``matrices``."""

        def make(images: int, groups: int, rows: int) -> tuple[Array, Array]:
            taps, tail = (self.ins, self.first, self.taps), (rows, *self.places[1:])
            if not self.folded:
                columns = xp.zeros((images, groups, *taps, *tail), dtype)
                return columns, columns.reshape(images, groups, math.prod(taps), math.prod(tail))
            columns = xp.zeros((groups, *taps, images, *tail), dtype)
            matrices = columns.reshape(groups, math.prod(taps), images * math.prod(tail))
            return columns.transpose(4, 0, 1, 2, 3, *range(5, columns.ndim)), matrices

        return _Buffers(make)

    def image_blocks(self, xp: ArrayModule, dtype: np.dtype) -> Iterator[tuple[slice, slice, slice]]:
        """Blocks of whole images, for products that need no copy."""
        places = math.prod(self.places)
        cost = max(self.outs * self.ins, (self.ins + self.outs) * places) * dtype.itemsize
        return _blocks(xp, self.images, self.groups, 1, 0, cost, places, self.weights(dtype))

    def shared(self, blocks: list[tuple[slice, slice, slice]]) -> Iterator[tuple[list, list[slice]]]:
        """Blocks that threads process at the same time, and parts of the output channels: all channels, or the parts of
        a single block if there are few blocks and many channels."""
        parts = _parts(self.outs, max(LEAST_OUTS, -(-self.outs // _shares())))
        if len(blocks) > 1 or len(parts) == 1:
            yield blocks, [All]
        else:
            yield blocks, parts

    @property
    def work(self) -> int:
        """Number of multiplications."""
        return math.prod(self.places) * math.prod(self.flat_w) * self.images

    def matrices(self, part: Array) -> Array:
        """A part of the output, (N, G, O, rows, …), as matrices of O rows: (N, G, O, columns) or (G, O, N *
        columns)."""
        images, groups, outs, *tail = part.shape
        if self.folded:
            return _turned(part).reshape(groups, outs, images * math.prod(tail))
        return part.reshape(images, groups, outs, math.prod(tail))

    def images_of(self, matrices: Array, part: Array) -> Array:
        """The reverse of ``matrices``: an array of the shape of ``part``."""
        if not self.folded:
            return matrices.reshape(part.shape)
        images, groups, outs, *tail = part.shape
        return matrices.reshape(groups, outs, images, *tail).transpose(2, 0, 1, *range(3, part.ndim))

    def summed(self, products: Array) -> Array:
        """Products of matrices, summed over the images."""
        return products if self.folded else products.sum(0)

    def shifted(self, tall: Array, r: slice) -> list[Array]:
        """The parts of partial images that belong to the output rows ``r``, one for each kernel position along the
        first axis."""
        step = self.win.dilate[0]
        return [tall[:, i, :, :, i * step:i * step + _length(r)] for i in range(self.first)]

    def row_reads(self, r: slice) -> Iterator[tuple[tuple, tuple]]:
        """Pairs for each trailing kernel position: its part of the row buffer, and the input that output rows ``r``
        read."""
        to, source = span(self.size[0], r.start - self.win.pad[0], 1, _length(r) + self.halo)
        for t, (place, read) in self.spans:
            yield (All, t, All, All, to, *place), (..., source, *read)

    def column_reads(self, r: slice) -> Iterator[tuple[tuple, tuple]]:
        """Pairs for each kernel position: its part of the column buffer, and the input that output rows ``r`` read."""
        for i in range(self.first):
            start = r.start * self.win.stride[0] + i * self.win.dilate[0] - self.win.pad[0]
            to, source = span(self.size[0], start, self.win.stride[0], _length(r))
            for t, (place, read) in self.spans:
                yield (All, All, All, i, t, to, *place), (..., source, *read)

    def fill(self, buffer: Array, x: Array, r: slice, reads: Iterator[tuple[tuple, tuple]]) -> None:
        """Copy the input to the buffer."""
        if self.padded and _length(r) < self.places[0]:
            buffer[...] = 0  # the previous block had other borders
        for to, source in reads:
            buffer[to] = x[source]


def _deposit(x: Array, buffer: Array, reads: Iterator[tuple[tuple, tuple]], overwrite: bool) -> None:
    """Add the buffer's elements to the input positions that they were read from; ``fresh`` tells that these are
    unset."""
    for to, source in reads:
        part = x[source]
        if overwrite and part.shape == x.shape:
            part[...] = buffer[to]
        else:
            if overwrite:
                x[...] = 0
            part += buffer[to]
        overwrite = False


_plan = cached(1024)(_Plan)


def _turned(array: Array) -> Array:
    """(N, G, C, …) as (G, C, N, …), or a view of such an array back."""
    return array.transpose(1, 2, 0, *range(3, array.ndim))


def _matrices(buffer: Array) -> Array:
    """A buffer of the way by rows, (G, taps, channels, …), as matrices of taps × channels rows."""
    groups, taps, channels, *tail = buffer.shape
    return buffer.reshape(groups, taps * channels, math.prod(tail))


def _stacked(w: Array, plan: _Plan) -> Array:
    """Weights for the way by rows: (G, first taps * O, trailing taps * C)."""
    w = w.reshape(plan.groups, plan.outs, plan.ins, plan.first, plan.taps).transpose(0, 3, 1, 4, 2)
    return w.reshape(plan.groups, plan.first * plan.outs, plan.taps * plan.ins)


def _flat(w: Array, plan: _Plan) -> Array:
    """Weights for the *Columns* algorithm: (G, O, C * taps)."""
    return w.reshape(plan.groups, plan.outs, plan.ins * plan.first * plan.taps)


def product_alone(x: Shape, w: Shape, y: Shape, win: Window, groups: int = 1) -> bool:
    """Whether a convolution of these shapes is one matrix product of the arrays without copies.

    Examples
    --------
    >>> product_alone((2, 3, 5, 5), (4, 3, 1, 1), (2, 4, 5, 5), window((1, 1)))
    True
    """
    plan = _plan(x, w, y, win, groups)
    return plan.pointwise() or plan.whole()


# --------------------------------------------------------------------------------- the three functions


#: A function called with each part of the output while it is in the cache: ``then((n, g, o, r), part)``; the index
#: gives the images, groups, channels of a group and output rows of the part, of shape (N, G, O, rows, …).
Then = Callable[[tuple[slice, slice, slice, slice], Any], None]


def correlate(xp: ArrayModule, x: Array, w: Array, y: Array, win: Window, groups: int = 1, then: Then | None = None
              ) -> None:
    """Write the convolution of ``x`` with ``w`` to ``y``.

    Parameters
    ----------
    xp : module
        Array module.
    x : array, shape (N, C, *size)
    w : array, shape (O, C / groups, *kernel)
    y : array, shape (N, O, *places)
        The output, overwritten. All three arrays have the same dtype.
    win : Window
        Kernel, stride, dilation and padding.
    groups : int
        Number of groups of channels.
    then : function of an index and an array
        Called with each part of ``y`` when it is complete; see ``Then``.
    """
    plan = _plan(x.shape, w.shape, y.shape, win, groups)
    if plan.whole():
        _store(y, y.shape[:2], lambda out: product(xp, x.reshape(plan.flat_x), w.reshape(plan.flat_w).T, out))
        if then is not None:
            then((All, All, All, All), plan.split(y))
    elif plan.pointwise():
        _correlate_pointwise(xp, x, w, y, plan, then)
    else:
        (_correlate_by_rows if plan.by_rows() else _correlate_by_columns)(xp, x, w, y, plan, then)


def plus(bias: Array | None, groups: int, rank: int) -> Then | None:
    """A function that adds a bias of shape (O,) to the parts of a convolution in ``rank`` dimensions."""
    if bias is None:
        return None
    shift = bias.reshape(groups, -1, *(1,) * rank)

    def then(at: tuple[slice, slice, slice, slice], part: Array) -> None:
        part += shift[at[1], at[2]]

    return then


def _store(y: Array, shape: Shape, compute: Callable[[Array | None], Array]) -> None:
    """Let ``compute`` write to ``y`` viewed in another shape; copies its result if there is no such view."""
    if y.flags.c_contiguous:
        compute(y.reshape(shape))
    else:
        y[...] = compute(None).reshape(y.shape)


def _correlate_pointwise(xp: ArrayModule, x: Array, w: Array, y: Array, plan: _Plan, then: Then | None) -> None:
    places = math.prod(plan.places)
    weights = w.reshape(plan.groups, plan.outs, plan.ins)
    x, out, y = x.reshape(plan.images, plan.groups, plan.ins, places), y, plan.split(y)
    blocks = list(plan.image_blocks(xp, x.dtype))

    def part(n: slice, g: slice, o: slice) -> None:
        target = y[n, g, o]
        products = target.reshape(*target.shape[:3], places) if out.flags.c_contiguous else None
        products = xp.matmul(weights[g, o], x[n, g], out=products)
        if not out.flags.c_contiguous:
            target[...] = products.reshape(target.shape)
        if then is not None:
            then((n, g, o, All), target)

    for several, outs in plan.shared(blocks):
        share(xp, [functools.partial(part, n, g, o) for n, g, _ in several for o in outs], plan.work)


def _correlate_by_rows(xp: ArrayModule, x: Array, w: Array, y: Array, plan: _Plan, then: Then | None) -> None:
    weights, x, y = _stacked(w, plan), plan.split(x), plan.split(y)
    buffers = plan.row_buffers(xp, x.dtype)

    def block(n: slice, g: slice, r: slice) -> None:
        size = _length(n), _length(g), _length(r)
        narrow, tall = buffer = buffers.take(*size)
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
        if then is not None:
            then((n, g, All, r), y[n, g, :, r])
        buffers.give(buffer, *size)

    share(xp, [functools.partial(block, *slices) for slices in plan.row_blocks(xp, x.dtype)], plan.work)


def _correlate_by_columns(xp: ArrayModule, x: Array, w: Array, y: Array, plan: _Plan, then: Then | None) -> None:
    weights, direct = _flat(w, plan), y.flags.c_contiguous and not plan.folded
    x, y = plan.split(x), plan.split(y)
    buffers = plan.column_buffers(xp, x.dtype)

    def filled(c: slice, columns: Array, n: slice, g: slice, r: slice) -> None:
        plan.fill(columns[:, :, c], x[n, g, c], r, plan.column_reads(r))

    def multiplied(o: slice, matrices: Array, n: slice, g: slice, r: slice) -> None:
        out = y[n, g, o, r]
        if direct:  # blocks of whole rows are matrices without a copy
            xp.matmul(weights[g, o], matrices, out=plan.matrices(out))
        else:
            out[...] = plan.images_of(xp.matmul(weights[g, o], matrices), out)
        if then is not None:
            then((n, g, o, r), out)

    def block(n: slice, g: slice, r: slice) -> None:
        size = _length(n), _length(g), _length(r)
        columns, matrices = buffer = buffers.take(*size)
        filled(All, columns, n, g, r)
        multiplied(All, matrices, n, g, r)
        buffers.give(buffer, *size)

    blocks = plan.column_blocks(xp, x.dtype)
    for several, outs in plan.shared(blocks):
        if len(outs) == 1:
            share(xp, [functools.partial(block, *slices) for slices in several], plan.work)
            continue
        (whole_block,) = several
        columns, matrices = buffer = buffers.take(*map(_length, whole_block))
        ins = _parts(plan.ins, -(-plan.ins // len(outs)))
        share(xp, [functools.partial(filled, c, columns, *whole_block) for c in ins], plan.work)
        share(xp, [functools.partial(multiplied, o, matrices, *whole_block) for o in outs], plan.work)
        buffers.give(buffer, *map(_length, whole_block))


def spread(xp: ArrayModule, y: Array, w: Array, x: Array, win: Window, groups: int = 1) -> None:
    """Write the transposed convolution of ``y`` to ``x``: the gradient of ``correlate`` with respect to its data.

    Parameters
    ----------
    xp, y, w, x, win, groups
        See ``correlate``; ``x`` is overwritten.
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


def _spread_by_rows(xp: ArrayModule, y: Array, w: Array, x: Array, plan: _Plan) -> None:
    weights, x, y = _stacked(w, plan).swapaxes(1, 2), plan.split(x), plan.split(y)
    buffers = plan.row_buffers(xp, x.dtype)

    def image(n: slice, g: slice, rows: list[slice]) -> None:
        for r in rows:
            size = _length(n), _length(g), _length(r)
            narrow, tall = buffer = buffers.take(*size)
            source = _turned(y[n, g, :, r])
            for part in plan.shifted(tall, r):  # rows between strides stay zero
                part[...] = source
            xp.matmul(weights[g], _matrices(tall), out=_matrices(narrow))
            _deposit(_turned(x[n, g]), narrow, plan.row_reads(r), r.start == 0)
            buffers.give(buffer, *size)

    share(xp, [functools.partial(image, *slices) for slices in _by_image(plan.row_blocks(xp, x.dtype))], plan.work)


def _spread_by_columns(xp: ArrayModule, y: Array, w: Array, x: Array, plan: _Plan) -> None:
    weights, x, y = _flat(w, plan).swapaxes(1, 2), plan.split(x), plan.split(y)
    buffers = plan.column_buffers(xp, x.dtype)

    def image(n: slice, g: slice, rows: list[slice]) -> None:
        for r in rows:
            size = _length(n), _length(g), _length(r)
            columns, matrices = buffer = buffers.take(*size)
            xp.matmul(weights[g], plan.matrices(y[n, g, :, r]), out=matrices)
            _deposit(x[n, g], columns, plan.column_reads(r), r.start == 0)
            buffers.give(buffer, *size)

    share(xp, [functools.partial(image, *slices) for slices in _by_image(plan.column_blocks(xp, x.dtype))], plan.work)


def _by_image(blocks: list[tuple[slice, slice, slice]]) -> list[tuple[slice, slice, list[slice]]]:
    """Blocks grouped by images and groups, in order: blocks of one group write overlapping rows."""
    by_images: dict[tuple[int, int], tuple[slice, slice, list[slice]]] = {}
    for n, g, r in blocks:
        by_images.setdefault((n.start, g.start), (n, g, []))[2].append(r)
    return list(by_images.values())


def match(xp: ArrayModule, y: Array, x: Array, w: Array, win: Window, groups: int = 1) -> None:
    """Write the gradient of ``correlate`` with respect to the weight to ``w``.

    Parameters
    ----------
    xp, y, x, w, win, groups
        See ``correlate``; ``w`` is overwritten.
    """
    plan = _plan(x.shape, w.shape, y.shape, win, groups)
    n, o = y.shape[:2]
    if plan.whole():
        _store(w, plan.flat_w, lambda out: product(xp, y.reshape(n, o).T, x.reshape(plan.flat_x), out))
    elif plan.pointwise():
        _match_pointwise(xp, y, x, w, plan)
    else:
        (_match_by_rows if plan.by_rows() else _match_by_columns)(xp, y, x, w, plan)


def _summed(xp: ArrayModule, blocks: Sequence[tuple], shape: Shape, dtype: np.dtype, plan: _Plan,
            products: Callable[..., Array]) -> Array:
    """The sum of ``products(n, g, r)`` over blocks, as partial sums in a fixed order."""
    parts = _parts(len(blocks), -(-len(blocks) // SHARES))
    totals = [xp.zeros(shape, dtype) for _ in parts or [All]]

    def part(number: int, which: slice) -> None:
        for n, g, r in blocks[which]:
            totals[number][g] += products(n, g, r)

    share(xp, [functools.partial(part, *numbered) for numbered in enumerate(parts)], plan.work)
    for other in totals[1:]:
        totals[0] += other
    return totals[0]


def _match_pointwise(xp: ArrayModule, y: Array, x: Array, w: Array, plan: _Plan) -> None:
    x, y = plan.split(x), plan.split(y)

    def products(n: slice, g: slice, r: slice) -> Array:
        return plan.summed(xp.matmul(plan.matrices(y[n, g]), plan.matrices(x[n, g]).swapaxes(-1, -2)))

    blocks = list(plan.image_blocks(xp, x.dtype))
    w[...] = _summed(xp, blocks, (plan.groups, plan.outs, plan.ins), x.dtype, plan, products).reshape(w.shape)


def _match_by_rows(xp: ArrayModule, y: Array, x: Array, w: Array, plan: _Plan) -> None:
    x, y = plan.split(x), plan.split(y)
    buffers = plan.row_buffers(xp, x.dtype)

    def products(n: slice, g: slice, r: slice) -> Array:
        size = _length(n), _length(g), _length(r)
        narrow, tall = buffer = buffers.take(*size)
        plan.fill(narrow, _turned(x[n, g]), r, plan.row_reads(r))
        source = _turned(y[n, g, :, r])
        for part in plan.shifted(tall, r):
            part[...] = source
        slopes = xp.matmul(_matrices(tall), _matrices(narrow).swapaxes(1, 2))
        buffers.give(buffer, *size)
        return slopes

    total = _summed(xp, plan.row_blocks(xp, x.dtype), (plan.groups, plan.first * plan.outs, plan.taps * plan.ins),
                    x.dtype, plan, products)
    total = total.reshape(plan.groups, plan.first, plan.outs, plan.taps, plan.ins)
    w[...] = total.transpose(0, 2, 4, 1, 3).reshape(w.shape)


def _match_by_columns(xp: ArrayModule, y: Array, x: Array, w: Array, plan: _Plan) -> None:
    x, y = plan.split(x), plan.split(y)
    buffers = plan.column_buffers(xp, x.dtype)

    def products(n: slice, g: slice, r: slice) -> Array:
        size = _length(n), _length(g), _length(r)
        columns, matrices = buffer = buffers.take(*size)
        plan.fill(columns, x[n, g], r, plan.column_reads(r))
        slopes = plan.summed(xp.matmul(plan.matrices(y[n, g, :, r]), matrices.swapaxes(-1, -2)))
        buffers.give(buffer, *size)
        return slopes

    w[...] = _summed(xp, plan.column_blocks(xp, x.dtype),
                     (plan.groups, plan.outs, plan.ins * plan.first * plan.taps), x.dtype, plan,
                     products).reshape(w.shape)


# ------------------------------------------------------------------------------------------- Convolution


def run_convolution(xp: ArrayModule, shape: Shape, out: Array | None, layouts: tuple[str | None, ...], arrays: tuple,
                    compute: Callable) -> Array:
    """Let ``compute(target, *arrays)`` write an array of this shape; all arrays have channels on axis 1.

    ``layouts`` are those of the target and of the arrays. float16 is computed in float32.
    """
    work = tuple(map(wide, arrays))
    target = out if out is not None and out.dtype == work[0].dtype else xp.empty(shape, work[0].dtype)
    compute(channels_first(target, layouts[0]),
            *[array if array is None or array.ndim == 1 else channels_first(array, layout)
              for array, layout in zip(work, layouts[1:])])
    if out is None or out is target:
        return target
    out[...] = target
    return out


def of_weight(layout: str | None, weights_first: bool) -> str | None:
    """The layout of a weight: that of the data, unless ``weights_first``, which convolutions have after a plan has
    changed their layout (``opreg.backends.passes.channels_last``)."""
    return None if weights_first else layout


def _check_groups(num_filter: int, num_group: int, channels: int) -> None:
    for what, count in (("filters", num_filter), ("channels", channels)):
        if count % num_group != 0:
            raise AttrError(f"num_group={num_group} does not divide the {count} {what}")


@declare(name="Convolution", aliases=("Convolution_v1", "_npx_convolution"), arguments=with_bias)
def convolution(data, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), num_filter: Positive, num_group: Positive = 1,
                workspace: int = 1024, no_bias: bool = False, cudnn_tune: Tune | None = None,
                cudnn_off: bool = False, layout: Layout | None = None):
    """A convolution of the data with ``num_filter`` kernels, plus a bias.

    ``weight`` has shape (num_filter, channels / num_group, *kernel); layouts with channels last have them last in the
    weight, too. ``cudnn_off`` excludes cuDNN; ``workspace`` and ``cudnn_tune`` have no effect.
    """


of_rows(convolution, 0)
by_layout(convolution, (0,), weights_first=True)


def _filled(ins, outs, weights, *, kernel, num_filter, num_group, no_bias, layout, weights_first=False):
    """Shapes of data, weight and bias; ``weights(channels)`` gives the first lengths of the weight."""
    data = ins[0]
    bias = [] if no_bias else [(num_filter,)]
    if data is None:
        return [None, None, *bias]
    channels = spatial(data, kernel, layout)[1]
    _check_groups(num_filter, num_group, channels)
    if outs[0] is not None and len(outs[0]) == len(data):
        data = (outs[0][0], *data[1:])
    return [data, channels_last((*weights(channels), *kernel), of_weight(layout, weights_first)), *bias]


@convolution.fill
def convolution_fill(ins, outs, *, kernel, stride, dilate, pad, num_filter, num_group, no_bias, layout,
                     weights_first=False):
    data, *others = _filled(ins, outs, lambda channels: (num_filter, channels // num_group), kernel=kernel,
                            num_filter=num_filter, num_group=num_group, no_bias=no_bias, layout=layout,
                            weights_first=weights_first)
    if data is not None and outs[0] is not None and len(outs[0]) == len(data):
        batch, channels = channels_first(data, layout)[:2]
        places = needed(channels_first(outs[0], layout)[2:], window(kernel, stride, dilate, pad))
        data = channels_last((batch, channels, *places), layout)
    return [data, *others]


@convolution.infer
def convolution_infer(data, weight, bias=None, *, kernel, stride, dilate, pad, num_filter, layout):
    x = spatial(data, kernel, layout)
    places = extent(x[2:], window(kernel, stride, dilate, pad))
    return channels_last((x[0], num_filter, *places), layout)


@convolution.kernel()  # no body: images are unfolded a block at a time
def convolution_xp(xp, data, weight, bias=None, *, kernel, stride, dilate, pad, num_filter, num_group, layout,
                   weights_first=False, out=None):
    shape = convolution_infer(data.shape, weight.shape, kernel=kernel, stride=stride, dilate=dilate, pad=pad,
                              num_filter=num_filter, layout=layout)
    win = window(kernel, stride, dilate, pad)
    layouts = layout, layout, of_weight(layout, weights_first), None
    return run_convolution(xp, shape, out, layouts, (data, weight, bias),
                lambda y, x, w, b: correlate(xp, x, w, y, win, num_group, plus(b, num_group, len(kernel))))


convolution_data = adjoint("_backward_Convolution_data", convolution, ("g", "weight", "data"))
of_rows(convolution_data, 0, 2)
by_layout(convolution_data, (0, 2), weights_first=True)
convolution_weight = adjoint("_backward_Convolution_weight", convolution, ("g", "data", "weight"))
by_layout(convolution_weight, (0, 1), (), weights_first=True)


def _computing(op: Op, forward: Op, compute: Callable[..., object]) -> None:
    """Declare the kernel of a gradient, which ``compute(xp, g, other, into, win, num_group)`` writes; ``other`` is the
    weight for the gradient of the data, and the data for that of the weight."""
    of_data, turned = op.signature.input_names[-1] == "data", forward is not convolution

    @op.kernel()  # no body: images are unfolded a block at a time
    def gradient_xp(xp, g, other, like, *, kernel, stride, dilate, pad, num_group, layout, adj=(), target_shape=(),
                    weights_first=False, out=None):
        others, into = (of_weight(layout, weights_first), layout)[::1 if of_data else -1]
        if turned:
            size = channels_first((like if of_data else other).shape, layout)[2:]
            win, _ = of_deconvolution(size, kernel, stride, dilate, pad, adj, target_shape)
        else:
            win = window(kernel, stride, dilate, pad)
        return run_convolution(xp, like.shape, out, (into, layout, others), (g, other),
                               lambda into, g, other: compute(xp, g, other, into, win, num_group))


_computing(convolution_data, convolution, spread)
_computing(convolution_weight, convolution, match)


@declare(name="_backward_Convolution_bias")
def convolution_bias(g, *, layout: Layout):
    """Sums of ``g`` over all axes but the channels."""


by_layout(convolution_bias, (0,), ())


@convolution_bias.infer
def convolution_bias_infer(g, *, layout):
    return (channels_first(g, layout)[1],)


@convolution_bias.kernel()  # no body: a product with ones takes a third of the time of a sum
def convolution_bias_xp(xp, g, *, layout):
    g = wide(g)
    if layout[1] != "C" or xp.__name__ not in BLOCK:
        return g.sum(tuple([axis for axis, letter in enumerate(layout) if letter != "C"]))
    # a product with ones is four times as fast as a sum over short rows
    rows = g.reshape(*g.shape[:2], math.prod(g.shape[2:]))
    return xp.matmul(rows, xp.ones(rows.shape[2], g.dtype)).sum(0)


@convolution_bias.grad
def convolution_bias_grad(h, ins, outs, *, layout):
    return (ops.broadcast_like(ops.Reshape(h, shape=tuple([-1 if axis == "C" else 1 for axis in layout])), ins[0]),)


def _bias_gradient(g: Value, attrs: Attrs) -> Value:
    layout = attrs["layout"] or ("NCW", "NCHW", "NCDHW")[len(attrs["kernel"]) - 1]
    return ops._backward_Convolution_bias(g, layout=layout)


def work_of(data, weight, out, *, num_filter, **attrs):
    """Each output position multiplies one whole kernel; there are as many kernels as output channels."""
    return 2 * math.prod(out) * math.prod(weight) // max(num_filter, 1)


bilinear(convolution, convolution_data, convolution_weight, work_of, _bias_gradient)


# ----------------------------------------------------------------------------------------- Deconvolution


@declare(name="Deconvolution", aliases=("_npx_deconvolution",), arguments=with_bias)
def deconvolution(data, weight, bias, *, kernel: tuple[int, ...], stride: tuple[int, ...] = (),
                  dilate: tuple[int, ...] = (), pad: tuple[int, ...] = (), adj: tuple[int, ...] = (),
                  target_shape: tuple[int, ...] = (), num_filter: Positive, num_group: Positive = 1,
                  workspace: int = 512, no_bias: bool = True, cudnn_tune: Tune | None = None, cudnn_off: bool = False,
                  layout: Layout | None = None):
    """A transposed convolution: each element of the data is multiplied with the kernel and added to a window of the
    output.

    ``weight`` has shape (channels, num_filter / num_group, *kernel). The output's length is ``stride * (n - 1) + dilate
    * (kernel - 1) + 1 - 2 * pad + adj`` for an axis of length ``n``, or ``target_shape``, which replaces ``pad`` and
    ``adj``.
    """


of_rows(deconvolution, 0)


def of_deconvolution(size: Shape, kernel: Shape, stride: Shape, dilate: Shape, pad: Shape, adj: Shape,
                     target_shape: Shape) -> tuple[Window, Shape]:
    """The window of the convolution that is transposed, and the spatial output shape."""
    win = window(kernel, stride, dilate, pad)
    full = tuple([s * (n - 1) + r for n, s, r in zip(size, win.stride, win.reach)])
    adj = adj or (0,) * len(kernel)
    if len(adj) != len(kernel) or min(adj) < 0:
        raise AttrError(f"adj={adj}: expected {len(kernel)} numbers from zero up")
    if any(target_shape):
        if len(target_shape) != len(kernel) or min(target_shape) < 1:
            raise AttrError(f"target_shape={target_shape}: expected {len(kernel)} positive numbers")
        for n, target in zip(full, target_shape):
            if n < target:
                raise ShapeError(f"target_shape={target_shape} is too large: the output is at most {show(full)}")
        # the surplus is cut off on both sides, an odd element at the front
        pads = tuple([0 if n is ANY else (n - target + 1) // 2 for n, target in zip(full, target_shape)])
        return win._replace(pad=pads), target_shape
    if any(a >= s for a, s in zip(adj, win.stride)):
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
    x = spatial(data, kernel, layout)
    places = of_deconvolution(x[2:], kernel, stride, dilate, pad, adj, target_shape)[1]
    return channels_last((x[0], num_filter, *places), layout)


@deconvolution.kernel()  # no body: images are folded a block at a time
def deconvolution_xp(xp, data, weight, bias=None, *, kernel, stride, dilate, pad, adj, target_shape, num_filter,
                     num_group, layout, out=None):
    x = channels_first(data.shape, layout)
    win, places = of_deconvolution(x[2:], kernel, stride, dilate, pad, adj, target_shape)

    def compute(y: Array, x: Array, w: Array, b: Array | None) -> None:
        spread(xp, x, w, y, win, num_group)
        if b is not None:
            y += b.reshape(-1, *(1,) * len(places))

    shape = channels_last((x[0], num_filter, *places), layout)
    return run_convolution(xp, shape, out, (layout,) * 4, (data, weight, bias), compute)


deconvolution_data = adjoint("_backward_Deconvolution_data", deconvolution, ("g", "weight", "data"))
deconvolution_weight = adjoint("_backward_Deconvolution_weight", deconvolution, ("g", "data", "weight"))

_computing(deconvolution_data, deconvolution, correlate)
_computing(deconvolution_weight, deconvolution, lambda xp, g, data, weight, win, num_group: match(
    xp, data, g, weight, win, num_group))


def _deconvolution_work(data, weight, out, *, layout, **attrs):
    """Each input position multiplies one whole kernel; there are as many kernels as input channels."""
    return 2 * math.prod(data) * math.prod(weight) // max(data[1 if layout is None else layout.index("C")], 1)


bilinear(deconvolution, deconvolution_data, deconvolution_weight, _deconvolution_work, _bias_gradient)
