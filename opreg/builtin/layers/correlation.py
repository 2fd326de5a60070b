"""The arithmetic of convolutions: ``correlate``, ``spread`` and ``match``, for batches with channels on axis 1.

``correlate`` is a convolution, ``spread`` its gradient with respect to the data, a transposed convolution, and
``match`` its gradient with respect to the weight. Each processes one block of the batch at a time, small enough for the
cache, in one of two ways:

*Columns.* The elements under each kernel position are copied to a buffer, so that the sum over channels and positions
is one matrix product (im2col).

*Rows.* Only the taps along the trailing axes are copied. One product with the weights of all taps along the first axis
gives that many partial images, which are added, each shifted by its tap. A 3x3 kernel copies 3 images instead of 9,
and the product has three times as many rows: with as many output channels as input channels, this takes half the time
of columns. It computes unused border rows, and needs a stride of one along the first axis.

Threads share the blocks, or the output channels of a single block; see ``opreg.backends.blas``. On the host, arrays
with few columns are no blocks; see ``small_correlation``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...backends.blas import share
from ...core import threads
from ...core.cache import cached
from ...core.processor import processor
from ...core.spec import Shape
from ...typing import Array, ArrayModule
from ..matrices.dense import product
from .sliding import Window, span
from .small_correlation import SmallPlan, small_plan

__all__ = ["Then", "correlate", "spread", "match", "bias_adder", "product_alone", "small"]

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

#: Images, groups and output rows.
Block = tuple[slice, slice, slice]

All = slice(None)


# ------------------------------------------------------------------------------------------------ blocks


def _parts(count: int, most: int, shares: int = 1) -> list[slice]:
    """``count`` items in parts of nearly equal size, none larger than ``most``; the number of parts is a multiple of
    ``shares`` if there are several."""
    number = -(-count // max(1, most))
    if number > 1:
        number = min(count, -(-number // shares) * shares)
    return threads.split_evenly(count, number)


def _blocks(xp: ArrayModule, images: int, groups: int, rows: int, halo: int, cost: int, run: int,
            weights: int) -> Iterator[Block]:
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
    # in blocks smaller than eight times the halo, too many rows would be computed twice
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


class _Buffer(NamedTuple):
    """Memory for a block.

    Attributes
    ----------
    copies : array (N, G, C, first taps or one, trailing taps, rows, …)
        The copied input.
    matrices : array
        The same memory as matrices, which weights multiply from the left.
    tall : array (G, first taps, O, N, rows, …), or None
        Partial images, by rows.
    """

    copies: Array
    matrices: Array
    tall: Array | None


class _Buffers:
    """Buffers of one call, reused between blocks of the same size.

    They are not part of the workspace: blocks use theirs at the same time, and borders that are never written have to
    be zeros.
    """

    def __init__(self, make: Callable[[int, int, int], _Buffer]):
        self.make = make
        self.free: dict[Shape, list[_Buffer]] = {}

    def take(self, size: Shape) -> _Buffer:
        try:
            return self.free[size].pop()
        except (KeyError, IndexError):
            return self.make(*size)

    def give(self, buffer: _Buffer, size: Shape) -> None:
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
        # the kernel has more positions than the output: single images make small matrices, so several are merged
        self.folded = self.ins * self.first * self.taps > 4 * math.prod(self.places)
        self.spans = list(enumerate(map(self._trailing_slices, itertools.product(*map(range, self.rest)))))
        self.spans.sort(key=lambda tap: tap[1][1] != tuple([slice(0, n, 1) for n in self.size[1:]]))
        self.small = None if self.one_position() or self.pointwise() else small_plan(x, w, y, win, groups)
        self.by_rows = not self.pointwise() and self._gains_by_rows()

    @property
    def factors(self) -> Shape:
        """The shape of ``factor``."""
        outs, ins = self.outs, self.ins * self.taps
        return (self.groups, self.first * outs, ins) if self.by_rows else (self.groups, outs, self.first * ins)

    def _trailing_slices(self, tap: Shape) -> tuple[tuple, tuple]:
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

    def one_position(self) -> bool:
        """Whether there is one output position, which reads the whole input: a product of matrices."""
        return (self.groups == 1 and math.prod(self.places) == 1 and self.win.kernel == self.size
                and not self.padded)

    def _gains_by_rows(self) -> bool:
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

    def blocks(self, xp: ArrayModule, dtype: np.dtype) -> list[Block]:
        """Blocks of the batch; of whole images, if products need no copy."""
        places, of_group, halo = self.places[0], self.outs * self.ins * self.first * self.taps, 0
        if self.pointwise():
            places, run = 1, math.prod(self.places)
            cost = max(of_group, (self.ins + self.outs) * run)
        elif self.by_rows:
            run, halo = self.run, self.halo
            cost = max(self.ins * self.taps, self.outs * self.first) * run
        else:
            run = self.run
            cost = self.ins * self.first * self.taps * run
        return list(_blocks(xp, self.images, self.groups, places, halo, cost * dtype.itemsize, run,
                            of_group * dtype.itemsize))

    def buffers(self, xp: ArrayModule, dtype: np.dtype) -> _Buffers:
        """The buffers of a call."""

        def make(images: int, groups: int, rows: int) -> _Buffer:
            tall, tail = None, (rows + self.halo * self.by_rows, *self.places[1:])
            if self.by_rows:
                narrow = xp.zeros((groups, self.taps, self.ins, images, *tail), dtype)
                tall = xp.zeros((groups, self.first, self.outs, images, *tail), dtype)
                copies = narrow.transpose(3, 0, 2, 1, *range(4, narrow.ndim))[:, :, :, None]
                return _Buffer(copies, _matrices(narrow), tall)
            taps = self.ins, self.first, self.taps
            if not self.folded:
                copies = xp.zeros((images, groups, *taps, *tail), dtype)
                return _Buffer(copies, copies.reshape(images, groups, math.prod(taps), math.prod(tail)), None)
            copies = xp.zeros((groups, *taps, images, *tail), dtype)
            matrices = copies.reshape(groups, math.prod(taps), images * math.prod(tail))
            return _Buffer(copies.transpose(4, 0, 1, 2, 3, *range(5, copies.ndim)), matrices, None)

        return _Buffers(make)

    def parts_of_outs(self, blocks: Sequence[Block]) -> list[slice]:
        """Parts of the output channels that threads share: all channels, unless there is a single block with many."""
        parts = _parts(self.outs, max(LEAST_OUTS, -(-self.outs // _shares())))
        return [All] if len(blocks) > 1 or len(parts) == 1 or self.by_rows else parts

    @property
    def work(self) -> int:
        """Number of multiplications."""
        return math.prod(self.places) * math.prod(self.flat_w) * self.images

    def matrices(self, part: Array) -> Array:
        """A part of the output, (N, G, O, rows, …), as matrices of O rows: (N, G, O, columns) or (G, O, N *
        columns)."""
        images, groups, outs, *tail = part.shape
        if self.folded:
            return _swap_batch_and_group(part).reshape(groups, outs, images * math.prod(tail))
        return part.reshape(images, groups, outs, math.prod(tail))

    def images_of(self, matrices: Array, part: Array) -> Array:
        """The reverse of ``matrices``: an array of the shape of ``part``."""
        if not self.folded:
            return matrices.reshape(part.shape)
        images, groups, outs, *tail = part.shape
        return matrices.reshape(groups, outs, images, *tail).transpose(2, 0, 1, *range(3, part.ndim))

    def shifted(self, tall: Array, r: slice) -> list[Array]:
        """The parts of partial images that belong to the output rows ``r``, one for each kernel position along the
        first axis."""
        step = self.win.dilate[0]
        return [tall[:, i, :, :, i * step:i * step + _length(r)] for i in range(self.first)]

    def reads(self, r: slice) -> Iterator[tuple[tuple, tuple]]:
        """Pairs for each copied kernel position: its part of the buffer, and the input that output rows ``r`` read."""
        stride, dilate, rows = self.win.stride[0], self.win.dilate[0], _length(r) + self.halo * self.by_rows
        for i in range(1 if self.by_rows else self.first):
            to, source = span(self.size[0], r.start * stride + i * dilate - self.win.pad[0], stride, rows)
            for t, (place, read) in self.spans:
                yield (All, All, All, i, t, to, *place), (..., source, *read)

    def fill(self, copies: Array, x: Array, r: slice) -> None:
        """Copy the input that output rows ``r`` read to a buffer, or a part of it."""
        if self.padded and _length(r) < self.places[0]:
            copies[...] = 0  # the block before this one may have had borders elsewhere
        for to, source in self.reads(r):
            copies[to] = x[source]

    def deposit(self, x: Array, copies: Array, r: slice) -> None:
        """Add the buffer's elements to the input positions that they were read from; before the first rows, these are
        unset."""
        overwrite = r.start == 0
        for to, source in self.reads(r):
            part = x[source]
            if overwrite and part.shape == x.shape:
                part[...] = copies[to]
            else:
                if overwrite:
                    x[...] = 0
                part += copies[to]
            overwrite = False

    def factor(self, w: Array) -> Array:
        """The weights as a matrix for each group, (G, O, C * taps), or by rows (G, first taps * O, trailing taps *
        C)."""
        if self.by_rows:
            w = w.reshape(self.groups, self.outs, self.ins, self.first, self.taps).transpose(0, 3, 1, 4, 2)
        return w.reshape(self.factors)

    def weight_of(self, factor: Array) -> Array:
        """The reverse of ``factor``, up to the shape."""
        if not self.by_rows:
            return factor
        return factor.reshape(self.groups, self.first, self.outs, self.taps, self.ins).transpose(0, 2, 4, 1, 3)

    def multiply(self, xp: ArrayModule, factor: Array, buffer: _Buffer, y: Array, r: slice, direct: bool) -> None:
        """Write the product of weights and a buffer to the output rows ``r``; with ``direct`` these are matrices."""
        if buffer.tall is None:
            if direct:
                xp.matmul(factor, buffer.matrices, out=self.matrices(y))
            else:
                y[...] = self.images_of(xp.matmul(factor, buffer.matrices), y)
            return
        xp.matmul(factor, buffer.matrices, out=_matrices(buffer.tall))
        y = _swap_batch_and_group(y)
        first, *others = self.shifted(buffer.tall, r)
        if others:
            xp.add(first, others[0], out=y)
        else:
            y[...] = first
        for other in others[1:]:
            y += other

    def slopes(self, buffer: _Buffer, y: Array, r: slice) -> Array:
        """The gradient of the product of weights and a buffer, from that of the output rows ``r``."""
        if buffer.tall is None:
            return self.matrices(y)
        for part in self.shifted(buffer.tall, r):  # the rows between those that a stride reaches stay zero
            part[...] = _swap_batch_and_group(y)
        return _matrices(buffer.tall)


_plan = cached(1024)(_Plan)


def _swap_batch_and_group(array: Array) -> Array:
    """(N, G, C, …) as (G, C, N, …), or a view of such an array back."""
    return array.transpose(1, 2, 0, *range(3, array.ndim))


def _matrices(buffer: Array) -> Array:
    """A buffer of the way by rows, (G, taps, channels, …), as matrices of taps × channels rows."""
    groups, taps, channels, *tail = buffer.shape
    return buffer.reshape(groups, taps * channels, math.prod(tail))


def product_alone(x: Shape, w: Shape, y: Shape, win: Window, groups: int = 1) -> bool:
    """Whether a convolution of these shapes is one matrix product of the arrays without copies.

    Examples
    --------
    >>> from opreg.builtin.layers.sliding import window
    >>> product_alone((2, 3, 5, 5), (4, 3, 1, 1), (2, 4, 5, 5), window((1, 1)))
    True
    """
    plan = _plan(x, w, y, win, groups)
    return plan.pointwise() or plan.one_position()


def small(x: Shape, w: Shape, y: Shape, win: Window, groups: int = 1) -> SmallPlan | None:
    """How the host computes a convolution of these shapes and its gradients without blocks; None for another."""
    return _plan(x, w, y, win, groups).small


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
    if plan.one_position():
        _store(y, y.shape[:2], lambda out: product(xp, x.reshape(plan.flat_x), w.reshape(plan.flat_w).T, out))
        if then is not None:
            then((All, All, All, All), plan.split(y))
    elif plan.pointwise():
        _correlate_pointwise(xp, x, w, y, plan, then)
    elif xp is np and plan.small is not None:
        plan.small.correlate(x, w, y)
        if then is not None:
            then((All, All, All, All), plan.split(y))
    else:
        _correlate_in_blocks(xp, x, w, y, plan, then)


def bias_adder(bias: Array | None, groups: int, rank: int) -> Then | None:
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
    blocks = plan.blocks(xp, x.dtype)

    def part(n: slice, g: slice, o: slice) -> None:
        target = y[n, g, o]
        products = target.reshape(*target.shape[:3], places) if out.flags.c_contiguous else None
        products = xp.matmul(weights[g, o], x[n, g], out=products)
        if not out.flags.c_contiguous:
            target[...] = products.reshape(target.shape)
        if then is not None:
            then((n, g, o, All), target)

    outs = plan.parts_of_outs(blocks)
    share(xp, [functools.partial(part, n, g, o) for n, g, _ in blocks for o in outs], plan.work)


def _correlate_in_blocks(xp: ArrayModule, x: Array, w: Array, y: Array, plan: _Plan, then: Then | None) -> None:
    factor, direct = plan.factor(w), y.flags.c_contiguous and not plan.folded
    x, y = plan.split(x), plan.split(y)
    buffers, blocks = plan.buffers(xp, x.dtype), plan.blocks(xp, x.dtype)

    def fill(c: slice, buffer: _Buffer, n: slice, g: slice, r: slice) -> None:
        plan.fill(buffer.copies[:, :, c], x[n, g, c], r)

    def multiply(o: slice, buffer: _Buffer, n: slice, g: slice, r: slice) -> None:
        plan.multiply(xp, factor[g, o], buffer, y[n, g, o, r], r, direct)
        if then is not None:
            then((n, g, o, r), y[n, g, o, r])

    def block(n: slice, g: slice, r: slice) -> None:
        size = _length(n), _length(g), _length(r)
        buffer = buffers.take(size)
        fill(All, buffer, n, g, r)
        multiply(All, buffer, n, g, r)
        buffers.give(buffer, size)

    outs = plan.parts_of_outs(blocks)
    if len(outs) == 1:
        share(xp, [functools.partial(block, *slices) for slices in blocks], plan.work)
        return
    (n, g, r), = blocks
    buffer = buffers.take((_length(n), _length(g), _length(r)))
    ins = _parts(plan.ins, -(-plan.ins // len(outs)))
    share(xp, [functools.partial(fill, c, buffer, n, g, r) for c in ins], plan.work)
    share(xp, [functools.partial(multiply, o, buffer, n, g, r) for o in outs], plan.work)


def spread(xp: ArrayModule, y: Array, w: Array, x: Array, win: Window, groups: int = 1) -> None:
    """Write the transposed convolution of ``y`` to ``x``: the gradient of ``correlate`` with respect to its data.

    Parameters
    ----------
    xp, y, w, x, win, groups
        See ``correlate``; ``x`` is overwritten.
    """
    plan = _plan(x.shape, w.shape, y.shape, win, groups)
    n, o = y.shape[:2]
    if plan.one_position():
        _store(x, plan.flat_x, lambda out: product(xp, y.reshape(n, o), w.reshape(plan.flat_w), out))
    elif plan.pointwise():
        places = math.prod(plan.places)
        weights = w.reshape(groups, plan.outs, plan.ins).swapaxes(1, 2)
        _store(x, (n, groups, plan.ins, places),
               lambda out: product(xp, weights, y.reshape(n, groups, plan.outs, places), out))
    elif xp is np and plan.small is not None:
        plan.small.spread(y, w, x)
    else:
        _spread_in_blocks(xp, y, w, x, plan)


def _spread_in_blocks(xp: ArrayModule, y: Array, w: Array, x: Array, plan: _Plan) -> None:
    factor, x, y = plan.factor(w).swapaxes(1, 2), plan.split(x), plan.split(y)
    buffers = plan.buffers(xp, x.dtype)

    def image(n: slice, g: slice, rows: list[slice]) -> None:
        for r in rows:
            size = _length(n), _length(g), _length(r)
            buffer = buffers.take(size)
            xp.matmul(factor[g], plan.slopes(buffer, y[n, g, :, r], r), out=buffer.matrices)
            plan.deposit(x[n, g], buffer.copies, r)
            buffers.give(buffer, size)

    share(xp, [functools.partial(image, *slices) for slices in _group_by_image(plan.blocks(xp, x.dtype))], plan.work)


def _group_by_image(blocks: Sequence[Block]) -> list[tuple[slice, slice, list[slice]]]:
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
    if plan.one_position():
        _store(w, plan.flat_w, lambda out: product(xp, y.reshape(n, o).T, x.reshape(plan.flat_x), out))
    elif xp is np and plan.small is not None:
        plan.small.match(y, x, w)
    else:
        _match_in_blocks(xp, y, x, w, plan)


def _match_in_blocks(xp: ArrayModule, y: Array, x: Array, w: Array, plan: _Plan) -> None:
    """Partial sums over blocks, which are added in a fixed order."""
    x, y, shape, dtype = plan.split(x), plan.split(y), plan.factors, x.dtype
    buffers, blocks = None if plan.pointwise() else plan.buffers(xp, dtype), plan.blocks(xp, dtype)

    def products(n: slice, g: slice, r: slice) -> Array:
        if buffers is None:
            found = xp.matmul(plan.matrices(y[n, g]), plan.matrices(x[n, g]).swapaxes(-1, -2))
        else:
            size = _length(n), _length(g), _length(r)
            buffer = buffers.take(size)
            plan.fill(buffer.copies, x[n, g], r)
            found = xp.matmul(plan.slopes(buffer, y[n, g, :, r], r), buffer.matrices.swapaxes(-1, -2))
            buffers.give(buffer, size)
        return found if found.ndim == 3 else found.sum(0)

    parts = _parts(len(blocks), -(-len(blocks) // SHARES))
    totals = [xp.zeros(shape, dtype) for _ in parts or [All]]

    def part(number: int, which: slice) -> None:
        for n, g, r in blocks[which]:
            totals[number][g] += products(n, g, r)

    share(xp, [functools.partial(part, *numbered) for numbered in enumerate(parts)], plan.work)
    for total in totals[1:]:
        totals[0] += total
    w[...] = plan.weight_of(totals[0]).reshape(w.shape)
