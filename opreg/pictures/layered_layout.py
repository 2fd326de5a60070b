"""Layered layout of an acyclic graph: rows of items, their order, and the paths of lines.

It follows Sugiyama: rows by longest path, dummy items where lines cross rows, order by the mean position of neighbours,
and coordinates as close to the neighbours' as the order allows. Lines bend only between rows, so they cross no item.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Item", "Link", "Rows", "Route", "arrange"]

_BETWEEN = 22.0  # the distance between items of a row
_BESIDE = 12.0  # the distance between a line and an item
_LANE = 7.0  # the distance between lines that pass distant rows
_LEAST_GAP, _MOST_GAP = 22.0, 60.0  # between rows
_FAR = 16  # lines that cross more rows pass at the side of the drawing
_LARGE = 1500  # number of items, dummy items included, above which there are fewer sweeps
_SWEEPS, _FEW_SWEEPS = 12, 4


@dataclass
class Item:
    """An item to place; ``edge`` is ``"top"`` or ``"bottom"`` for an item at the border."""

    width: float
    height: float
    edge: str = ""


@dataclass
class Link:
    """A line between two items.

    Attributes
    ----------
    source, target : int
        Numbers of items.
    start : float
        Offset of its start from the middle of the source.
    end : float or None
        Offset of its end from the middle of the target; None if the layout chooses it.
    key : hashable
        Lines from the same source with the same key share as much of their path as possible.
    """

    source: int
    target: int
    start: float
    end: float | None
    key: Hashable


@dataclass
class Route:
    """The path of a line: ``xs`` at its start, between the rows, and at its end."""

    first: int
    last: int
    xs: list[float]


@dataclass
class Rows:
    """The positions of all items and lines.

    Attributes
    ----------
    row, x : list
        Row and middle of each item.
    gaps : list of float
        Space between each row and the next.
    routes : list of Route
        Path of each link.
    width : float
    """

    row: list[int]
    x: list[float]
    gaps: list[float] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    width: float = 0.0


class _Net:
    """Items and dummy items, with the line segments between neighbouring rows."""

    def __init__(self, items: Sequence[Item], links: Sequence[Link], row: Sequence[int]):
        self.row = list(row)
        self.widths = [item.width for item in items]
        self.real = len(items)
        self.links = links
        self.paths: list[list[int]] = []
        self.above: list[list[tuple[int, float, float]]] = [[] for _ in items]
        self.below: list[list[tuple[int, float, float]]] = [[] for _ in items]
        chains: dict[tuple[int, Hashable], dict[int, int]] = {}
        joined: set[tuple[int, int, float, float]] = set()
        for link in links:
            path = self._path(link, chains.setdefault((link.source, link.key), {}))
            self.paths.append(path)
            for layer, (upper, lower) in enumerate(pairwise(path)):
                start = link.start if layer == 0 else 0.0
                end = (link.end or 0.0) if layer == len(path) - 2 else 0.0
                piece = upper, lower, start, end
                if piece not in joined:
                    joined.add(piece)
                    self.below[upper].append((lower, start, end))
                    self.above[lower].append((upper, end, start))
        self.order: list[list[int]] = [[] for _ in range(max(self.row, default=-1) + 1)]

    def _path(self, link: Link, chain: dict[int, int]) -> list[int]:
        """The item, the dummy items of a line, and the other item; only the items if they are far apart."""
        first, last = self.row[link.source], self.row[link.target]
        if last - first > _FAR:
            return []
        for row in range(first + 1, last):
            if row not in chain:
                chain[row] = len(self.row)
                self.row.append(row)
                self.widths.append(0.0)
                self.above.append([])
                self.below.append([])
        return [link.source, *[chain[row] for row in range(first + 1, last)], link.target]

    def distance(self, left: int, right: int) -> float:
        """The smallest distance between the middles of neighbours."""
        between = _BETWEEN if left < self.real and right < self.real else _BESIDE
        return (self.widths[left] + self.widths[right]) / 2 + between


def _rows(items: Sequence[Item], links: Sequence[Link]) -> list[int]:
    """The row of each item: below all its predecessors; sources directly above their targets."""
    count = len(items)
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for link in links:
        below[link.source].append(link.target)
        waiting[link.target] += 1
    first = int(any(item.edge == "top" for item in items))
    row = [0 if item.edge == "top" else first for item in items]
    ready = [i for i in range(count) if not waiting[i]]
    sources, order = list(ready), []
    while ready:
        item = ready.pop()
        order.append(item)
        for target in below[item]:
            row[target] = max(row[target], row[item] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if len(order) < count:
        raise ValueError("the graph has a cycle")
    for item in sources:
        if items[item].edge != "top" and below[item]:
            row[item] = min(row[target] for target in below[item]) - 1
    last = max([row[i] for i in range(count) if items[i].edge != "bottom"], default=0) + 1
    for i, each in enumerate(items):
        if each.edge == "bottom":
            row[i] = last
    return row


# --------------------------------------------------------------------------------------------------- order


def _crossings(net: _Net, place: Sequence[float]) -> int:
    """The number of crossings of line segments, whose ends are those of outputs and inputs of items."""
    total = 0
    for row in net.order[:-1]:
        ends: list[float] = []
        for upper in row:
            pieces = sorted([(start, place[target] + end / (net.widths[target] + 1))
                             for target, start, end in net.below[upper]])
            for _, together in itertools.groupby(pieces, operator.itemgetter(0)):  # lines from one output do not cross
                lower = [end for _, end in together]
                for end in lower:
                    total += len(ends) - bisect.bisect_right(ends, end)
                for end in lower:
                    bisect.insort(ends, end)
    return total


def _begin(net: _Net) -> None:
    """The initial order: depth-first along the lines, from the left."""
    visited = [False] * len(net.row)
    for root in sorted(range(len(net.row)), key=lambda i: net.row[i]):
        stack = [root]
        while stack:
            item = stack.pop()
            if visited[item]:
                continue
            visited[item] = True
            net.order[net.row[item]].append(item)
            stack += [target for target, _, _ in reversed(net.below[item])]


def _sort(net: _Net, sweeps: int) -> None:
    """Order the rows by the mean position of neighbours, in sweeps down and up, and return the best order."""
    _begin(net)
    place = [0.0] * len(net.row)

    def number(row: Sequence[int]) -> None:
        for i, item in enumerate(row):
            place[item] = float(i)

    for row in net.order:
        number(row)
    best, fewest = [list(row) for row in net.order], _crossings(net, place)
    for sweep in range(sweeps):
        if not fewest:
            break
        down = sweep % 2 == 0
        neighbours = net.above if down else net.below
        for row in net.order if down else reversed(net.order):
            means = {}
            for item in row:
                near = neighbours[item]
                means[item] = place[item] if not near else sum(
                    place[neighbour] + off / (net.widths[neighbour] + 1) for neighbour, _, off in near) / len(near)
            row.sort(key=means.__getitem__)
            number(row)
        count = _crossings(net, place)
        if count < fewest:
            best, fewest = [list(row) for row in net.order], count
    net.order = best


# --------------------------------------------------------------------------------------------- coordinates


def _fit_positions(targets: Sequence[float], weights: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Positions with the least weighted squared distance to ``targets`` that preserve order and distances."""
    ahead, total = [0.0], 0.0
    for step in apart:
        total += step
        ahead.append(total)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for want, weight, before in zip(targets, weights, ahead):
        mean, heavy, length = want - before, weight, 1
        while blocks and blocks[-1][0] > mean:
            block, other_heavy, other_length = blocks.pop()
            mean = (mean * heavy + block * other_heavy) / (heavy + other_heavy)
            heavy, length = heavy + other_heavy, length + other_length
        blocks.append((mean, heavy, length))
    means = [mean for mean, _, length in blocks for _ in range(length)]
    return [mean + before for before, mean in zip(ahead, means)]


def _coordinates(net: _Net, sweeps: int) -> list[float]:
    """The middle of every item and dummy item."""
    x = [0.0] * len(net.row)
    apart = [[net.distance(left, right) for left, right in pairwise(row)] for row in net.order]
    for row, steps in zip(net.order, apart):
        at = -sum(steps) / 2
        for item, step in zip(row, [*steps, 0.0]):
            x[item] = at
            at += step
    straight = [1.0 if i < net.real else 6.0 for i in range(len(net.row))]
    for sweep in range(sweeps):
        sides = (net.above,) if sweep % 2 == 0 else (net.below,)
        if sweep >= sweeps - 2:
            sides = net.above, net.below  # type: ignore[assignment]
        rows = list(zip(net.order, apart))
        for row, steps in rows if sweep % 2 == 0 else reversed(rows):
            targets, weights = [], []
            for item in row:
                total = heavy = 0.0
                for side in sides:
                    for neighbour, own_off, other_off in side[item]:
                        weight = straight[item] * straight[neighbour]
                        total += weight * (x[neighbour] + other_off - own_off)
                        heavy += weight
                targets.append(total / heavy if heavy else x[item])
                weights.append(heavy or 0.05)
            for item, place in zip(row, _fit_positions(targets, weights, steps)):
                x[item] = place
    return x


# -------------------------------------------------------------------------------------------------- lines


def _lanes(net: _Net, from_x: float) -> tuple[dict[tuple[int, Hashable], float], float]:
    """The lanes of lines too long to pass between items: right of everything, side by side."""
    reach: dict[tuple[int, Hashable], int] = {}
    for link, path in zip(net.links, net.paths):
        if not path:
            key = link.source, link.key
            reach[key] = max(reach.get(key, 0), net.row[link.target])
    lanes: dict[tuple[int, Hashable], float] = {}
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    for key in sorted(reach, key=lambda key: net.row[key[0]]):
        first, last = net.row[key[0]], reach[key]
        while busy and busy[0][0] <= first:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, count = count, count + 1
        heapq.heappush(busy, (last, lane))
        lanes[key] = from_x + _BESIDE + lane * _LANE
    return lanes, from_x + (_BESIDE + count * _LANE if count else 0.0)


def _ends(net: _Net, items: Sequence[Item], routes: Sequence[Route]) -> None:
    """The free ends of lines: apart from each other, in the order of their sources."""
    incoming: dict[int, list[int]] = {}
    for i, link in enumerate(net.links):
        if link.end is None:
            incoming.setdefault(link.target, []).append(i)
    for target, numbers in incoming.items():
        middle = routes[numbers[0]].xs[-1]
        room = items[target].width * 0.35
        if len(numbers) == 1:
            xs = routes[numbers[0]].xs
            xs[-1] = min(max(xs[-2], middle - room), middle + room)
            continue
        numbers.sort(key=lambda i: routes[i].xs[-2])
        step = min(2 * room / (len(numbers) - 1), 28.0)
        for k, number in enumerate(numbers):
            routes[number].xs[-1] = middle + (k - (len(numbers) - 1) / 2) * step


def arrange(items: Sequence[Item], links: Sequence[Link]) -> Rows:
    """The positions of items, and the paths of the lines between them.

    Raises
    ------
    ValueError
        If the lines have a cycle.

    Examples
    --------
    >>> found = arrange([Item(40, 20), Item(40, 20), Item(40, 20)], [Link(0, 1, 0, None, 0), Link(1, 2, 0, None, 0)])
    >>> found.row, found.x
    ([0, 1, 2], [20.0, 20.0, 20.0])
    """
    net = _Net(items, links, _rows(items, links))
    sweeps = _SWEEPS if len(net.row) < _LARGE else _FEW_SWEEPS
    _sort(net, sweeps)
    x = _coordinates(net, sweeps)
    leftmost = min((x[i] - net.widths[i] / 2 for i in range(len(x))), default=0.0)
    x = [position - leftmost for position in x]
    right = max((x[i] + net.widths[i] / 2 for i in range(len(x))), default=0.0)
    lanes, right = _lanes(net, right)
    routes = []
    for link, path in zip(links, net.paths):
        first, last = net.row[link.source], net.row[link.target]
        between = [x[i] for i in path[1:-1]] if path else [lanes[link.source, link.key]] * (last - first - 1)
        routes.append(Route(first, last, [x[link.source] + link.start, *between, x[link.target] + (link.end or 0.0)]))
    _ends(net, items, routes)
    widest = [0.0] * len(net.order)
    for route in routes:
        for k, (a, b) in enumerate(pairwise(route.xs)):
            widest[route.first + k] = max(widest[route.first + k], abs(b - a))
    gaps = [float(round(min(_LEAST_GAP + 0.06 * wide, _MOST_GAP))) for wide in widest[:-1]]
    return Rows(net.row[:len(items)], x[:len(items)], gaps, routes, right)
