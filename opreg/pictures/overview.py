"""An overview of a drawing: each group is one box, and one line stands for all lines between two boxes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from graphlib import TopologicalSorter

from .drawing import Box, Drawing, Wire
from .layout import Level
from .measures import shorten

__all__ = ["Overview", "overview"]

#: Largest number of boxes in an overview.
_MOST = 60


class Overview:
    """A drawing of groups.

    Attributes
    ----------
    drawing : Drawing
        The drawing, whose boxes are the groups and the nodes in no group.
    numbers : dict of int to (int or str)
        Number of the node, or ``"g"`` and the number of the group's level, by ``id`` of the box.
    members : dict of str to list of int
        The nodes in each group.
    """

    def __init__(self, title: str) -> None:
        self.drawing = Drawing(title)
        self.numbers: dict[int, int | str] = {}
        self.members: dict[str, list[int]] = {}


def overview(drawing: Drawing, level: Level) -> Overview | None:
    """An overview of a drawing; None if there are no groups, or too many.

    Nested groups are separate boxes if there are few enough of them, otherwise the outer groups are.
    """
    depths = []
    for depth in range(8):
        things = list(_entries(level, depth))
        groups = sum(isinstance(thing, Level) for _, thing in things)
        if len(things) > _MOST or not groups:
            break
        depths.append(things)
    return _draw_level(drawing, level, depths[-1]) if depths else None


def _entries(level: Level, depth: int) -> Iterator[tuple[Level, Box | Level]]:
    """Entries of a level and of those above a depth, each with its level."""
    for item in level.items:
        if item.level is None:
            assert item.box is not None
            yield level, item.box
        elif depth:
            yield from _entries(item.level, depth - 1)
        else:
            yield level, item.level


def _inner(level: Level) -> list[Box]:
    return [item.box for level in level.levels() for item in level.items if item.box is not None]


def _draw_level(drawing: Drawing, level: Level, things: list[tuple[Level, Box | Level]]) -> Overview:
    number_of = drawing.numbers()
    level_of = {id(level): number for number, level in enumerate(level.levels())}
    thing_of: dict[int, int] = {}
    for i, (_, thing) in enumerate(things):
        for box in _inner(thing) if isinstance(thing, Level) else [thing]:
            thing_of[number_of[id(box)]] = i
    outputs: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for wire in drawing.wires:
        ends = thing_of[wire.source], thing_of[wire.target]
        if ends[0] != ends[1]:
            outputs.setdefault(ends, set()).add((wire.source, wire.output))

    result = Overview(drawing.title)
    result.drawing.cells = drawing.cells
    sources: dict[int, list[int]] = {i: [] for i in range(len(things))}
    for source, target in outputs:
        sources[target].append(source)
    place: dict[int, int] = {}
    for i in TopologicalSorter(sources).static_order():
        parent, thing = things[i]
        leaving = {output for (source, _), readers in outputs.items() if source == i for output in readers}
        labels = {drawing.boxes[node].outputs[output] for node, output in leaving
                  if output < len(drawing.boxes[node].outputs)}
        label = [labels.pop() if len(labels) == 1 else ""]
        if isinstance(thing, Level):
            key = f"g{level_of[id(thing)]}"
            result.members[key] = [number_of[id(box)] for box in _inner(thing)]
            box = _group(thing, parent, label)
            result.numbers[id(box)] = key
        else:
            box = replace(thing, path=parent.path, outputs=label)
            result.numbers[id(box)] = number_of[id(thing)]
        place[i] = len(result.drawing.boxes)
        result.drawing.boxes.append(box)
    result.drawing.wires = [Wire(place[source], 0, place[target], position, len(outputs[source, target]))
                            for position, (source, target) in enumerate(sorted(outputs))]
    result.drawing.bundled = max(len(box.path) for box in result.drawing.boxes)
    return result


def _group(level: Level, parent: Level, outputs: list[str]) -> Box:
    boxes = _inner(level)
    kinds = Counter(box.facts.get("operator", "variable") for box in boxes)
    facts = {"group": ".".join(level.path), "nodes": str(len(boxes)),
             "of": ", ".join(f"{count} {shorten(kind)}" for kind, count in kinds.most_common(6))}
    title = level.title.removeprefix(f"{parent.title}_")
    return Box(facts["group"], [shorten(title), f"{len(boxes)} nodes"], "group", outputs, parent.path, facts)
