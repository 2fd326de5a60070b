"""Layout of a drawing with nested groups, each laid out separately.

In the layout of its surroundings a group is a box. A line crosses the border of a group at a port, which is at the top
for incoming lines and at the bottom for outgoing ones; lines from the same output of a node share ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .drawing import Box, Drawing, Wire
from .layered_layout import Item, Link, Route, arrange
from .measures import CHAR, LABEL_CHAR, LABEL_HEIGHT, PADDING, TITLE

__all__ = ["Level", "Line", "PlacedItem", "lay_out"]

#: An entry of a level: ``("box", number)``, or ``("group", name, turn)``.
_Thing: TypeAlias = tuple
#: The number of a node, and of its output.
_Output: TypeAlias = tuple[int, int]


@dataclass
class PlacedItem:
    """A node or group in its level; ``x`` and ``y`` are its upper left corner."""

    row: int
    x: float
    width: float
    height: float
    box: Box | None = None
    level: Level | None = None
    y: float = 0.0


@dataclass
class Line:
    """The part of a wire within one level.

    Attributes
    ----------
    route : Route
        Its path.
    source, target : int or None
        Numbers of the items that it connects; None for the border of the level.
    output : (int, int)
        Number of the source node, and of its output.
    wire : Wire or None
        The wire, if this part ends at its target node.
    """

    route: Route
    source: int | None
    target: int | None
    output: _Output
    wire: Wire | None


@dataclass
class Level:
    """The content of a group, or the whole drawing, whose ``path`` is empty.

    Attributes
    ----------
    items, lines : list
        Its nodes and groups, and the lines between them.
    gaps, rows, tops : list of float
        Space after each row, and the height and top of each row.
    ins, outs : dict
        Positions where lines cross its border, from the left.
    """

    path: tuple[str, ...]
    title: str
    items: list[PlacedItem] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    tops: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    ins: dict[_Output, float] = field(default_factory=dict)
    outs: dict[_Output, float] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0

    def levels(self) -> Iterator[Level]:
        """This level and all nested levels."""
        yield self
        for item in self.items:
            if item.level is not None:
                yield from item.level.levels()

    def stack(self) -> None:
        """Set the vertical positions of the rows."""
        top = PADDING + (TITLE if self.path else 0.0)
        self.tops, self.rows = [], [0.0] * (len(self.gaps) + 1)
        for item in self.items:
            self.rows[item.row] = max(self.rows[item.row], item.height)
        for height, gap in zip(self.rows, [*self.gaps, 0.0]):
            self.tops.append(top)
            top += height + gap
        self.height = top + PADDING
        for item in self.items:
            item.y = self.tops[item.row] + (self.rows[item.row] - item.height) / 2


def lay_out(drawing: Drawing) -> Level:
    """Compute the positions of everything in a drawing."""
    return _Part(drawing, (), range(len(drawing.boxes)), drawing.wires, [box.path for box in drawing.boxes]).level()


# --------------------------------------------------------------------------------------------------- sizes


def _label_widths(box: Box) -> list[float]:
    return [len(label) * LABEL_CHAR + 10 for label in box.outputs]


def _size(box: Box) -> tuple[float, float]:
    """Width and height of a node, with the shapes of its outputs below it."""
    text = max([len(line) * CHAR for line in box.lines], default=0.0) + 20
    return max(text, sum(_label_widths(box)), 48.0), box.height + (LABEL_HEIGHT if any(box.outputs) else 0.0)


def starts(box: Box) -> list[float]:
    """The starts of lines below a node, relative to its middle, one per output."""
    widths = _label_widths(box)
    at, positions = -sum(widths) / 2, []
    for width in widths:
        positions.append(at + width / 2)
        at += width
    return positions


# -------------------------------------------------------------------------------------------------- groups


class _Part:
    """A group during layout: its nodes in topological order, and the wires that touch them."""

    def __init__(self, drawing: Drawing, path: tuple[str, ...], members: Sequence[int], wires: Sequence[Wire],
                 places: list[tuple[str, ...]]):
        self.drawing, self.path, self.members, self.places = drawing, path, members, places
        self.own = set(members)
        self.wires = wires
        self.thing = {number: self._place_of(number) for number in members}
        self._take_apart()
        self.inside: dict[_Thing, list[int]] = {}
        for number in members:
            self.inside.setdefault(self.thing[number], []).append(number)
        for thing, numbers in list(self.inside.items()):
            if thing[0] == "group" and len(numbers) == 1:  # an empty group has no frame
                del self.inside[thing]
                places[numbers[0]] = path
                self.thing[numbers[0]] = "box", numbers[0]
                self.inside["box", numbers[0]] = numbers
        self.inside = dict(sorted(self.inside.items(), key=lambda pair: pair[1][0]))
        if len(path) < drawing.bundled:
            self.wires = list(self._bundles())

    def _place_of(self, number: int) -> _Thing:
        inside, depth = self.places[number], len(self.path)
        return ("group", inside[depth], 0) if len(inside) > depth else ("box", number)

    def _bundles(self) -> Iterator[Wire]:
        """The wires, those between two groups as one wire."""
        bundles: dict[object, list[Wire]] = {}
        for wire in self.wires:
            ends = self.thing.get(wire.source), self.thing.get(wire.target)
            between = ends[0] != ends[1] and all(end is not None and end[0] == "group" for end in ends)
            bundles.setdefault(ends if between else wire, []).append(wire)
        for wires in bundles.values():
            yield wires[0] if len(wires) == 1 else wires[0]._replace(
                lines=sum(wire.lines for wire in wires), frames=True)

    def _take_apart(self) -> None:
        """Dissolve groups that lines leave and re-enter, if they are only guessed from names."""
        inner = [wire for wire in self.wires if wire.source in self.own and wire.target in self.own]
        depth = len(self.path)
        while True:
            cycle = _cycles([(self.thing[wire.source], self.thing[wire.target]) for wire in inner])
            groups = {thing for thing in cycle if thing[0] == "group"}
            guessed = {thing for thing in groups if (*self.path, thing[1]) not in self.drawing.cells}
            if not guessed:
                break
            for number in self.members:
                if self.thing[number] in guessed:
                    gone, *rest = self.places[number][depth:]
                    if rest:  # a nested group shows the full name
                        rest[0] = f"{gone}_{rest[0]}"
                    self.places[number] = (*self.path, *rest)
                    self.thing[number] = self._place_of(number)
        if groups:
            turns = self._turns(inner, cycle)
            self.thing.update({number: (*thing[:2], turns[number]) for number, thing in self.thing.items()
                               if thing in groups})

    def _turns(self, inner: Sequence[Wire], cycle: Mapping[_Thing, int]) -> dict[int, int]:
        """The turn of each node: the largest number of times that a path to the node crosses from one entry of a cycle
        to another.

        A node that its own group alone reads, such as a weight, is counted with its reader.
        """
        turns = dict.fromkeys(self.members, 0)
        sources: dict[int, list[int]] = {}
        targets: dict[int, list[int]] = {}
        for wire in inner:
            source_place, target_place = cycle.get(self.thing[wire.source]), cycle.get(self.thing[wire.target])
            if source_place is not None and source_place == target_place:
                sources.setdefault(wire.target, []).append(wire.source)
                targets.setdefault(wire.source, []).append(wire.target)
        for number in self.members:
            for source in sources.get(number, ()):
                turns[number] = max(turns[number], turns[source] + (self.thing[source] != self.thing[number]))
        for number in reversed(self.members):
            if number in targets and all(self.thing[target] == self.thing[number] for target in targets[number]):
                turns[number] = min(turns[target] for target in targets[number])
        return turns

    def level(self) -> Level:
        """Lay the group out, after its nested groups."""
        touching: dict[_Thing, list[Wire]] = {}
        for wire in self.wires:
            ends = {self.thing[number] for number in (wire.source, wire.target) if number in self.own}
            for thing in ends:
                if thing[0] == "group" and not (wire.frames and len(ends) == 2):
                    touching.setdefault(thing, []).append(wire)
        result = Level(self.path, self.drawing.cells.get(self.path, self.path[-1] if self.path else ""))
        number_of: dict[_Thing, int] = {}
        for thing, numbers in self.inside.items():
            number_of[thing] = len(result.items)
            if thing[0] == "box":
                box = self.drawing.boxes[thing[1]]
                if box.inside is not None:
                    box.lines = box.inside(self.path)
                result.items.append(PlacedItem(0, 0.0, *_size(box), box))
            else:
                part = _Part(self.drawing, (*self.path, thing[1]), numbers, touching.get(thing, []), self.places)
                level = part.level()
                result.items.append(PlacedItem(0, 0.0, level.width, level.height, None, level))
        self._place(result, number_of)
        return result

    def _place(self, result: Level, number_of: Mapping[_Thing, int]) -> None:
        items = [Item(item.width, item.height) for item in result.items]
        links, lines, ports_in, ports_out = self._links(result, number_of, items)
        rows = arrange(items, links)
        title = len(result.title) * CHAR if self.path else 0.0
        margin = PADDING + max(title - rows.width, 0.0) / 2
        result.width = rows.width + 2 * margin
        result.gaps = rows.gaps
        for item, row, x in zip(result.items, rows.row, rows.x):
            item.row, item.x = row, x - item.width / 2 + margin
        result.ins = {output: rows.x[i] + margin for output, i in ports_in.items()}
        result.outs = {output: rows.x[i] + margin for output, i in ports_out.items()}
        for line, route in zip(lines, rows.routes):
            route.xs = [x + margin for x in route.xs]
            line.route = route
        result.lines = lines
        result.stack()

    def _links(self, result: Level, number_of: Mapping[_Thing, int], items: list[Item]
               ) -> tuple[list[Link], list[Line], dict[_Output, int], dict[_Output, int]]:
        """The lines of this level; ports are added to the items."""
        links, lines, visited = [], [], set()
        ports_in: dict[_Output, int] = {}
        ports_out: dict[_Output, int] = {}

        def port(ports: dict[_Output, int], output: _Output, edge: str) -> int:
            if output not in ports:
                ports[output] = len(items)
                items.append(Item(0.0, 0.0, edge))
            return ports[output]

        for wire in self.wires:
            output = wire.source, wire.output
            source = number_of[self.thing[wire.source]] if wire.source in self.own else None
            target = number_of[self.thing[wire.target]] if wire.target in self.own else None
            if source is not None and source == target:
                continue  # the wire stays inside a group
            into = None if target is None else result.items[target].level
            ends_here = target is not None and (into is None or wire.frames)
            if not ends_here and (output, target) in visited:
                continue
            visited.add((output, target))
            start, end = 0.0, 0.0 if target is None else None
            if source is not None:
                level = result.items[source].level
                if level is None:
                    start = starts(self.drawing.boxes[wire.source])[wire.output]
                elif not wire.frames:
                    start = level.outs[output] - level.width / 2
            if into is not None and not wire.frames:
                end = into.ins[output] - into.width / 2
            links.append(Link(port(ports_in, output, "top") if source is None else source,
                              port(ports_out, output, "bottom") if target is None else target, start, end, output))
            lines.append(Line(Route(0, 0, []), source, target, output, wire if ends_here else None))
        return links, lines, ports_in, ports_out


def _cycles(pairs: Sequence[tuple[_Thing, _Thing]]) -> dict[_Thing, int]:
    """Items on cycles, each with the number of its strongly connected component, by Kosaraju's algorithm."""
    ahead: dict[_Thing, list[_Thing]] = {}
    behind: dict[_Thing, list[_Thing]] = {}
    for start, end in dict.fromkeys(pairs):
        if start != end:
            ahead.setdefault(start, []).append(end)
            behind.setdefault(end, []).append(start)
    finished: list[_Thing] = []
    visited: set[_Thing] = set()
    for root in ahead:
        stack = [] if root in visited else [(root, iter(ahead[root]))]
        visited.add(root)
        while stack:
            thing, successors = stack[-1]
            following = next((successor for successor in successors if successor not in visited), None)
            if following is None:
                finished.append(thing)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(ahead.get(following, ()))))
    component: dict[_Thing, int] = {}
    size: dict[int, int] = {}
    for root in reversed(finished):
        members = [] if root in component else [root]
        number = len(size)
        while members:
            thing = members.pop()
            if thing not in component:
                component[thing] = number
                size[number] = size.get(number, 0) + 1
                members += behind.get(thing, ())
    return {thing: number for thing, number in component.items() if size[number] > 1}
