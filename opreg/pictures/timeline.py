"""The memory of a plan over its steps: the position and lifetime of each result in the arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opreg.core.graph import Entry, Node
from opreg.core.reports import html_text
from opreg.ndarray.context import Context
from opreg.symbol.inspect.memory_use import size_text
from opreg.symbol.passes.memory import Storage
from opreg.symbol.plan import Plan, Segment

from .drawing import places, spec_text
from .measures import LABEL_CHAR
from .svg import PALETTE

__all__ = ["BufferSpan", "Timeline", "timelines"]

_HEIGHT, _USED = 300.0, 60.0  # height of the arena and of the usage curve
_LEFT, _TOP = 64.0, 18.0
_BOTTOM = _TOP + _HEIGHT + 10.0 + _USED
_WIDE, _NARROW, _FULL = 60.0, 2.0, 1080.0  # width of a step (largest, smallest), and of all steps if there is room
_READABLE = 11.0  # smallest height of a segment with a label


@dataclass
class BufferSpan:
    """A result in its memory segment.

    Attributes
    ----------
    entry : Entry
        The result.
    place : int
        Number of the segment; results with the same number share memory in turn.
    first, last : int
        First and last step of its lifetime: the one that computes it, and the last that reads it.
    offset, nbytes : int
        Offset and size in the arena, in bytes.
    """

    entry: Entry
    place: int
    first: int
    last: int
    offset: int
    nbytes: int


@dataclass
class Timeline:
    """The contents of an arena over the steps.

    Attributes
    ----------
    ctx : Context
    nbytes : int
        Size of the arena in bytes.
    stays : list of BufferSpan
    used : list of int
        Bytes in use at each step.
    forward : int
        Number of steps of the forward pass.
    labels : list of list of str
        Label of each rectangle, and the shape of its array.
    """

    ctx: Context
    nbytes: int
    stays: list[BufferSpan]
    used: list[int]
    forward: int
    labels: list[tuple[str, str]]

    @property
    def peak(self) -> int:
        """The first step at which the most bytes are in use."""
        return self.used.index(max(self.used)) if self.used else 0

    def svg(self, numbers: Mapping[Node, int]) -> str:
        """A diagram: steps from left to right, the arena from top to bottom.

        Parameters
        ----------
        numbers : dict of Node to int
            Numbers of nodes in the drawing next to it.
        """
        count = max(len(self.used), 1)
        step = min(_WIDE, max(_NARROW, _FULL / count))
        scale = _HEIGHT / max(self.nbytes, 1)
        width, height = _LEFT + count * step + 12, _BOTTOM + 26
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="arena" width="{width:.0f}" height="{height:.0f}" '
                 f'viewBox="0 0 {width:.1f} {height:.1f}">']
        parts += [f'<rect class="ground" x="{_LEFT:g}" y="{top:g}" width="{count * step:.1f}" height="{high:g}"/>'
                  for top, high in ((_TOP, _HEIGHT), (_BOTTOM - _USED, _USED))]
        for stay, (name, shape) in zip(self.stays, self.labels):
            parts += self._stay(stay, name, shape, numbers.get(stay.entry[0], -1), step, scale)
        parts += self._use(step, count)
        parts += self._marks(step, count)
        return "".join([*parts, "</svg>"])

    def _use(self, step: float, count: int) -> list[str]:
        """The number of bytes in use, below the arena."""
        most = max([*self.used, 1])
        points = " ".join(f"{_LEFT + end * step:.1f},{_BOTTOM - nbytes / most * _USED:.1f}"
                          for i, nbytes in enumerate(self.used) for end in (i, i + 1))
        end = _LEFT + count * step
        return [f'<polygon class="used" points="{_LEFT:g},{_BOTTOM:g} {points} {end:.1f},{_BOTTOM:g}"/>',
                f'<text class="tick" x="{_LEFT - 6:g}" y="{_BOTTOM - _USED + 8:g}">{size_text(most)}</text>',
                f'<text class="tick" x="{_LEFT - 6:g}" y="{_BOTTOM:g}">in use</text>']

    def _marks(self, step: float, count: int) -> list[str]:
        """Marks of the start of backward, of the peak, and of the arena's size."""
        parts = [f'<text class="tick" x="{_LEFT - 6:g}" y="{_TOP + 8:g}">0</text>',
                 f'<text class="tick" x="{_LEFT - 6:g}" y="{_TOP + _HEIGHT:g}">{size_text(self.nbytes)}</text>',
                 f'<text class="axis" x="{_LEFT:g}" y="{_TOP - 5:g}">forward</text>']
        if 0 < self.forward < count:
            split = _LEFT + self.forward * step
            parts += [f'<line class="split" x1="{split:.1f}" x2="{split:.1f}" y1="{_TOP - 12:g}" y2="{_BOTTOM:g}"/>',
                      f'<text class="axis" x="{max(split, _LEFT + 48) + 4:.1f}" y="{_TOP - 5:g}">backward</text>']
        if self.used:
            x, text = _LEFT + (self.peak + 0.5) * step, f"peak {size_text(max(self.used))} at step {self.peak}"
            room = len(text) * LABEL_CHAR
            start = min(max(x - room / 2, _LEFT), max(_LEFT + count * step - room, 2.0))
            parts += [f'<line class="peak" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP:g}" y2="{_BOTTOM + 8:g}"/>',
                      f'<text class="peak" x="{start:.1f}" y="{_BOTTOM + 19:g}">{text}</text>']
        return parts

    def _stay(self, stay: BufferSpan, name: str, shape: str, number: int, step: float, scale: float) -> list[str]:
        x, y = _LEFT + stay.first * step, _TOP + stay.offset * scale
        width, height = (stay.last - stay.first + 1) * step, max(stay.nbytes * scale, 0.75)
        about = (f"{name}: {shape}, {size_text(stay.nbytes)} at +{stay.offset}, steps {stay.first} to {stay.last}")
        parts = [f'<g class="stay" data-node="{number}"><title>{html_text(about)}</title>'
                 f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.2f}" '
                 f'fill="{PALETTE[stay.place % len(PALETTE)]}"/>']
        letters = int((width - 6) / LABEL_CHAR)
        if height >= _READABLE and letters >= 4:
            parts.append(f'<text class="what" x="{x + 4:.1f}" y="{y + min(height / 2 + 3, 11):.1f}">'
                         f'{html_text(_short_name(name, letters))}</text>')
        return [*parts, "</g>"]


def _short_name(name: str, letters: int) -> str:
    """The first ``letters`` letters of a name, without the suffix of backward operators, which its position shows."""
    name = name.removesuffix("_backward")
    return name if len(name) <= letters else name[:letters - 1] + "…"


def timelines(plan: Plan, segments: Sequence[tuple[str, Segment]]) -> list[Timeline]:
    """The timelines of a plan's arenas, one per context.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.sym.Variable("x")
    >>> net = mx.sym.dot(mx.sym.dot(mx.sym.dot(x, x), x), x)
    >>> plan = net.simple_bind(mx.cpu(), x=(64, 64), grad_req="null").plan(False)
    >>> [timeline] = timelines(plan, [("forward", plan.forward)])
    >>> [(stay.first, stay.last, stay.offset) for stay in timeline.stays], timeline.used
    ([(0, 1, 0), (1, 2, 16384)], [16384, 32768, 16384])
    """
    steps = [step for half, segment in segments for step in segment.steps]
    forward = sum(len(segment.steps) for half, segment in segments if half == "forward")
    last: dict[Storage, int] = {}
    entries: dict[Storage, list[tuple[int, Entry]]] = {}
    lying = {id(array): plan.memory.storage[entry] for entry, array in plan.arrays.items()
             if entry in plan.memory.storage}
    for position, step in enumerate(steps):
        if step.node is None:
            read = [lying[id(array)] for array in step.ins if id(array) in lying]
        else:
            unread = () if step.node.op is None else step.node.op.traits.unread
            read = [plan.memory.storage[entry] for i, entry in enumerate(step.node.inputs)
                    if i not in unread and entry in plan.memory.storage]
            for i in range(len(plan.specs[step.node])):
                entry = step.node, i
                storage = plan.memory.storage.get(entry)
                if storage is not None and storage.pinned is None and entry not in plan.memory.view_of:
                    entries.setdefault(storage, []).append((position, entry))
                    read.append(storage)
        last.update(dict.fromkeys(read, position))
    numbers = places(plan, segments)
    return [_timeline(plan, ctx, nbytes, entries, last, numbers, len(steps), forward)
            for ctx, nbytes in plan.memory.arena.items() if nbytes]


def _timeline(plan: Plan, ctx: Context, nbytes: int, made: Mapping[Storage, Sequence[tuple[int, Entry]]],
              last: Mapping[Storage, int], numbers: Mapping[Storage, int], count: int, forward: int) -> Timeline:
    stays, used, labels = [], [0] * count, []
    for storage, entries in made.items():
        if storage.ctx != ctx:
            continue
        ends = [position - 1 for position, _ in entries[1:]] + [last[storage]]
        for (position, entry), end in zip(entries, ends):
            stays.append(BufferSpan(entry, numbers[storage], position, end, storage.offset, storage.nbytes))
            labels.append((entry[0].name, spec_text(plan.specs[entry[0]][entry[1]])))
        for position in range(entries[0][0], last[storage] + 1):
            used[position] += storage.nbytes
    return Timeline(ctx, nbytes, stays, used, forward, labels)
