"""A layered layout of a graph without cycles: in which row things stand, in which order, and where lines pass.

The way is Sugiyama's: rows by the longest path, places in rows that lines pass through, an order of rows by the mean
place of neighbours, and coordinates that are the nearest to those of neighbours that the order allows. Lines bend
between rows alone, so they pass through nothing that stands in one.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Item", "Link", "Rows", "Route", "arrange"]

_BETWEEN = 22.0  # between things in a row
_BESIDE = 12.0  # between a line and what it passes
_LANE = 7.0  # between lines that pass far away
_LEAST_GAP, _MOST_GAP = 22.0, 60.0  # between rows
_FAR = 16  # lines that pass more rows do so at the side of all of them
_LARGE = 1500  # things, lines that pass included, from which on fewer sweeps are made
_SWEEPS, _FEW_SWEEPS = 12, 4


@dataclass
class Item:
    """An item to place: ``edge`` is ``"top"`` or ``"bottom"`` for one at the border."""

    width: float
    height: float
    edge: str = ""


@dataclass
class Link:
    """A line from an item to another one.

    Attributes
    ----------
    source, target : int
        Numbers of items.
    start : float
        Where it leaves, from the middle of the source.
    end : float or None
        Where it arrives, from the middle of the target; None for where it fits.
    key : hashable
        Lines from one source with one key run together as far as they can.
    """

    source: int
    target: int
    start: float
    end: float | None
    key: Hashable


@dataclass
class Route:
    """Path of a line: ``xs`` at its beginning, in the rows between, and at its end."""

    first: int
    last: int
    xs: list[float]


@dataclass
class Rows:
    """Places of all items and lines.

    Attributes
    ----------
    row, x : list
        Of items: their row, and their middle.
    gaps : list of float
        Room between a row and the next one.
    routes : list of Route
        Of links.
    width : float
    """

    row: list[int]
    x: list[float]
    gaps: list[float] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    width: float = 0.0


class _Net:
    """Items, and places that lines pass through, with the pieces of lines between neighbouring rows."""

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
            for one, (upper, lower) in enumerate(pairwise(path)):
                start = link.start if one == 0 else 0.0
                end = (link.end or 0.0) if one == len(path) - 2 else 0.0
                piece = upper, lower, start, end
                if piece not in joined:
                    joined.add(piece)
                    self.below[upper].append((lower, start, end))
                    self.above[lower].append((upper, end, start))
        self.order: list[list[int]] = [[] for _ in range(max(self.row, default=-1) + 1)]

    def _path(self, link: Link, chain: dict[int, int]) -> list[int]:
        """The item, the places a line passes, the other item; both items alone where they are far apart."""
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

    def apart(self, left: int, right: int) -> float:
        """How far apart the middles of neighbours are at least."""
        between = _BETWEEN if left < self.real and right < self.real else _BESIDE
        return (self.widths[left] + self.widths[right]) / 2 + between


def _rows(items: Sequence[Item], links: Sequence[Link]) -> list[int]:
    """The row of each item: below all that leads to it, sources right above what they lead to."""
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
    """How often pieces of lines cross."""
    total = 0
    for row in net.order[:-1]:
        ends: list[float] = []
        for upper in row:
            lower = sorted(place[target] for target, _, _ in net.below[upper])
            for end in lower:
                total += len(ends) - bisect.bisect_right(ends, end)
            for end in lower:
                bisect.insort(ends, end)
    return total


def _begin(net: _Net) -> None:
    """An order to start with: what a walk along the lines meets first stands left."""
    seen = [False] * len(net.row)
    for root in sorted(range(len(net.row)), key=lambda i: net.row[i]):
        stack = [root]
        while stack:
            item = stack.pop()
            if seen[item]:
                continue
            seen[item] = True
            net.order[net.row[item]].append(item)
            stack += [target for target, _, _ in reversed(net.below[item])]


def _sort(net: _Net, sweeps: int) -> None:
    """Order the rows by the means of neighbours, down and up again, and keep the best order."""
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
        beside = net.above if down else net.below
        for row in net.order if down else reversed(net.order):
            means = {}
            for item in row:
                near = beside[item]
                means[item] = place[item] if not near else sum(
                    place[other] + off / (net.widths[other] + 1) for other, _, off in near) / len(near)
            row.sort(key=means.__getitem__)
            number(row)
        count = _crossings(net, place)
        if count < fewest:
            best, fewest = [list(row) for row in net.order], count
    net.order = best


# --------------------------------------------------------------------------------------------- coordinates


def _fitted(wanted: Sequence[float], weights: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Places nearest to those wanted, by the sum of weighted squares, that keep their order and distances."""
    ahead, total = [0.0], 0.0
    for step in apart:
        total += step
        ahead.append(total)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for want, weight, before in zip(wanted, weights, ahead):
        mean, heavy, length = want - before, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, other_heavy, other_length = blocks.pop()
            mean = (mean * heavy + other * other_heavy) / (heavy + other_heavy)
            heavy, length = heavy + other_heavy, length + other_length
        blocks.append((mean, heavy, length))
    return [mean + before for before, mean in
            zip(ahead, [mean for mean, _, length in blocks for _ in range(length)])]


def _coordinates(net: _Net, sweeps: int) -> list[float]:
    """The middle of everything."""
    x = [0.0] * len(net.row)
    apart = [[net.apart(left, right) for left, right in pairwise(row)] for row in net.order]
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
            wanted, weights = [], []
            for item in row:
                total = heavy = 0.0
                for side in sides:
                    for other, own_off, other_off in side[item]:
                        weight = straight[item] * straight[other]
                        total += weight * (x[other] + other_off - own_off)
                        heavy += weight
                wanted.append(total / heavy if heavy else x[item])
                weights.append(heavy or 0.05)
            for item, place in zip(row, _fitted(wanted, weights, steps)):
                x[item] = place
    return x


# -------------------------------------------------------------------------------------------------- lines


def _lanes(net: _Net, from_x: float) -> tuple[dict[tuple[int, Hashable], float], float]:
    """Lanes of lines that are too long to pass between items: to the right of all, side by side."""
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
    """Ends of lines that may choose: apart from each other, in the order of their sources."""
    arriving: dict[int, list[int]] = {}
    for i, link in enumerate(net.links):
        if link.end is None:
            arriving.setdefault(link.target, []).append(i)
    for target, numbers in arriving.items():
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
    """Places of items, and paths of the lines between them.

    Raises
    ------
    ValueError
        When the lines have a cycle.

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
    left = min((x[i] - net.widths[i] / 2 for i in range(len(x))), default=0.0)
    x = [each - left for each in x]
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
