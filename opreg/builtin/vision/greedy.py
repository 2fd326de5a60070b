"""Greedy choices among boxes: suppression of boxes that overlap a better one, and one-to-one matching by scores.

The best one is chosen first, and each choice excludes others. On the host the loops are over choices alone; other
devices, whose values cannot be read, loop over all candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from ...core.array_module import number_on
from ...core.declarations import ZERO
from ...core.registry import declare
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import wide

__all__ = ["Format"]

Format = Literal["center", "corner"]

#: Number of boxes compared with all later ones at once: a choice among them is bits of one word.
BLOCK = 64
#: Number of pairs of boxes, more or less, that are compared at once.
PAIRS = 1 << 15


# ---------------------------------------------------------------------------------------------- survivors


@declare(name="_survivors", types="T:floating,I,G->bool",
         arguments=lambda *, grouped: ("boxes", "counts", "groups") if grouped else ("boxes", "counts"))
def survivors(boxes, counts, groups, *, threshold: float, closed: bool = False, form: Format = "corner",
              border: int = 0, most: int = -1, grouped: bool = False):
    """Non-maximum suppression of sorted boxes: true for each box that no earlier remaining box overlaps.

    ``boxes`` (..., boxes, 4), the best first, are given by corners, or with ``form="center"`` by center and sides. Only
    the first ``counts`` (...) of them take part. Boxes overlap if their intersection over union is above ``threshold``,
    or with ``closed`` equal to it; with ``grouped`` only boxes of equal ``groups`` (..., boxes) suppress each other.
    With ``border=1`` boxes include their last pixel. At most ``most`` boxes remain, if it is not negative.
    """


declare_form(survivors, "(...batch, boxes, 4) (...batch) (...batch, boxes) -> (...batch, boxes)")


@survivors.kernel()  # no body: boxes are removed one after the other
def survivors_xp(xp, boxes, counts, groups=None, *, threshold, closed, form, border, most):
    *outer, n, _ = boxes.shape
    batch, dtype = math.prod(outer), boxes.dtype
    zero, sides = number_on(xp, 0, dtype), boxes.reshape(batch, n, 4).transpose(2, 0, 1)
    rows = xp.empty((5, batch, n), dtype)  # corners and area
    if form == "center":
        half = sides[2:] / 2
        rows[:2], rows[2:4], lengths = sides[:2] - half, sides[:2] + half, sides[2:]
    else:
        rows[:4], lengths = sides, sides[2:] - sides[:2] + border
    lengths = xp.maximum(lengths, zero)
    xp.multiply(lengths[0], lengths[1], out=rows[4])
    limit = number_on(xp, threshold, wide(rows[:0]).dtype)

    def clash(box: Array, others: Array) -> Array:
        both = _extent(xp, box, others, 0, border, zero)
        both *= _extent(xp, box, others, 1, border, zero)
        union = box[4] + others[4]
        union -= both
        ratio = wide(xp.divide(both, union, out=union))
        return ratio >= limit if closed else ratio > limit

    choose = _kept_on_host if xp is np else _kept_on_device
    counts, groups = counts.reshape(batch).astype(xp.int64), None if groups is None else groups.reshape(batch, n)
    return choose(xp, rows, counts, groups, clash, n if most < 0 else min(n, most)).reshape(*outer, n)


def _extent(xp: ArrayModule, box: Array, others: Array, axis: int, border: int, zero: Array) -> Array:
    """The lengths along an axis that boxes have in common."""
    length = xp.minimum(box[axis + 2], others[axis + 2])
    length -= xp.maximum(box[axis], others[axis])
    if border:
        length += border
    return xp.maximum(length, zero, out=length)


survivors.grad(ZERO)

#: A function that tells which boxes overlap too much, given data of boxes that broadcast.
Clash = Callable[[Array, Array], Array]


def _kept_on_device(xp: ArrayModule, rows: Array, counts: Array, groups: Array | None, clash: Clash, most: int
                    ) -> Array:
    n = rows.shape[2]
    alive = xp.arange(n) < counts[:, None]
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        hits = clash(rows[:, :, start:stop, None], rows[:, :, None, start:])
        if groups is not None:
            hits &= groups[:, start:stop, None] == groups[:, None, start:]
        live = alive[:, start:stop]
        for i in range(stop - start):  # ``a > b`` of truths is ``a`` and not ``b``, in one launch
            xp.greater(live[:, i + 1:], hits[:, i, i + 1:stop - start] & live[:, i:i + 1], out=live[:, i + 1:])
        hit = (hits[:, :, stop - start:] & live[:, :, None]).any(axis=1)
        xp.greater(alive[:, stop:], hit, out=alive[:, stop:])
    return alive if most == n else alive & (xp.cumsum(alive, axis=1) <= most)


def _kept_on_host(xp: ArrayModule, rows: Array, counts: Array, groups: Array | None, clash: Clash, most: int) -> Array:
    """Removed boxes are not compared any more, and boxes of different groups never are, unless they are few."""
    survives = np.zeros(rows.shape[1:], bool)
    for batch, count in enumerate(counts.tolist()):
        boxes, group = rows[:, batch, :count], None if groups is None else groups[batch, :count]
        if group is None or count <= BLOCK:
            chosen = _chosen(boxes, clash, group, most)
        else:
            order = np.argsort(group, kind="stable")
            parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
            chosen = [place for part in parts for place in part[_chosen(boxes[:, part], clash, None, most)].tolist()]
        survives[batch, chosen] = True
    return survives if most == rows.shape[2] else survives & (np.cumsum(survives, axis=1) <= most)


def _chosen(remaining: Array, clash: Clash, group: Array | None, most: int) -> list[int]:
    """The places of boxes that remain, block by block: at least the first ``most``, if there are so many."""
    places = np.arange(remaining.shape[1])
    chosen: list[int] = []
    while places.size and len(chosen) < most:
        size = min(BLOCK, places.size, max(8, PAIRS // places.size))
        hits = clash(remaining[:, :size, None], remaining[:, None, :])
        if group is not None:
            hits &= group[:, None] == group
        bits = np.zeros((size, 8), np.uint8)
        packed = np.packbits(hits[:, :size], axis=1, bitorder="little")
        bits[:, :packed.shape[1]] = packed
        live = _surviving_boxes(bits.view("<u8")[:, 0].tolist())
        chosen += places[live].tolist()
        free = ~hits[live, size:].any(axis=0)
        places, remaining = places[size:][free], remaining[:, size:][:, free]
    return chosen


def _surviving_boxes(hits: Sequence[int]) -> list[int]:
    """The indices of the boxes that remain; ``hits`` has for each box, as bits, the boxes that it removes."""
    alive, remaining_bits = [], (1 << len(hits)) - 1
    while remaining_bits:
        first = remaining_bits & -remaining_bits
        alive.append(first.bit_length() - 1)
        remaining_bits &= ~(hits[alive[-1]] | first)
    return alive


# ----------------------------------------------------------------------------------------------- matching


@declare(name="_matching", types="T:floating->int64,int64", outputs=("columns", "rows"))
def matching(scores, *, above: float, most: int = -1):
    """One-to-one matching of the rows and columns of ``scores`` (..., rows, columns), the highest score first.

    The outputs are the column of each row and the row of each column, or -1 without a match. Only scores greater than
    ``above`` match; equal ones match in the order of rows, then columns. At most ``most`` rows match, if it is not
    negative.
    """


declare_form(matching, "(..., rows, columns) -> (..., rows) (..., columns)")


@matching.kernel()  # no body: one match after the other
def matching_xp(xp, scores, *, above, most):
    *outer, n, m = scores.shape
    batch, rounds = math.prod(outer), min(n, m) if most < 0 else min(n, m, most)
    columns, rows = [xp.full((batch, count), -1, dtype=xp.int64) for count in (n, m)]
    if scores.size:
        scores = scores.reshape(batch, n, m)
        match = _match_on_host if xp is np else _match_on_device
        match(xp, xp.where(xp.isnan(scores), -math.inf, scores), rounds, above, columns, rows)
    return columns.reshape(*outer, n), rows.reshape(*outer, m)


matching.grad(ZERO)


def _match_on_device(xp: ArrayModule, scores: Array, rounds: int, above: float, columns: Array, rows: Array) -> None:
    batch, n, m = scores.shape
    every = xp.arange(batch)
    for _ in range(rounds):
        best = xp.argmax(scores.reshape(batch, n * m), axis=1)
        row, column = best // m, best % m
        good = scores[every, row, column] > above
        columns[every, row] = xp.where(good, column, columns[every, row])
        rows[every, column] = xp.where(good, row, rows[every, column])
        scores[every, row] = -math.inf
        scores[every, :, column] = -math.inf


def _match_on_host(xp: ArrayModule, scores: Array, rounds: int, above: float, columns: Array, rows: Array) -> None:
    """The best row of each column is stored, and searched again when another column takes it."""
    by_column, above = scores.swapaxes(1, 2).copy(), float(scores.dtype.type(above))
    places = by_column.argmax(axis=2)
    tops = np.take_along_axis(by_column, places[:, :, None], axis=2)[:, :, 0].tolist()
    for batch, (row_of, best) in enumerate(zip(places.tolist(), tops)):
        for _ in range(rounds):
            top = max(best)
            if top <= above:
                break
            column = best.index(top)
            if best.count(top) > 1:
                column = min([i for i, score in enumerate(best) if score == top], key=row_of.__getitem__)
            row = row_of[column]
            columns[batch, row], rows[batch, column] = column, row
            by_column[batch, :, row], best[column], row_of[column] = -math.inf, -math.inf, -1
            while row in row_of:
                column_before = row_of.index(row)
                scores_left = by_column[batch, column_before]
                place = int(scores_left.argmax())
                best[column_before] = scores_left.item(place)
                row_of[column_before] = -1 if best[column_before] == -math.inf else place
