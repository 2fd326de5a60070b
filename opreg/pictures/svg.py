"""A drawing as self-contained SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opreg.core.reports import html_text

from .drawing import Box
from .labels import COLOURS
from .layered_layout import Route
from .layout import Level, Line, PlacedItem, starts
from .measures import CHAR, LABEL_HEIGHT, LINE, TITLE

__all__ = ["DARK", "PALETTE", "STYLE", "svg"]

#: Colours that distinguish memory segments.
PALETTE = ("#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
           "#d37295", "#a0cbe8")

_ARROW = 5.0

#: Style sheet, for the light and the dark scheme.
STYLE = "".join((
    ".opreg-graph{--back:#fff;--ink:#1f2328;--soft:#59636e;--line:#8b949e;--frame:#d1d9e0;--fill:#8f9aa310;"
    "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;"
    "background:var(--back)}",
    ".opreg-graph .back{fill:var(--back)}",
    ".opreg-graph .frame{fill:var(--fill);stroke:var(--frame)}",
    ".opreg-graph .title{font-size:11px;fill:var(--soft);font-weight:600}",
    ".opreg-graph .tag{fill:var(--back)}",
    ".opreg-graph .box{stroke:#0004}",
    ".opreg-graph .head .box{stroke:var(--ink);stroke-width:2}",
    *(f".opreg-graph .{kind} .box{{fill:{colour}}}" for kind, colour in COLOURS.items()),
    ".opreg-graph .fused .box{fill:#ffd8a8;stroke:#e8590c}",
    ".opreg-graph .view .box{fill:#f1f3f5;stroke:#868e96;stroke-dasharray:3 2}",
    ".opreg-graph .group .box{fill:var(--fill);stroke:var(--soft)}",
    ".opreg-graph .count{font-size:9px;fill:var(--soft)}",
    ".opreg-graph .unknown .box{fill:#fff;stroke:#cf222e;stroke-dasharray:4 2;stroke-width:1.5}",
    ".opreg-graph .name{font-size:11px;fill:#1f2328;text-anchor:middle}",
    ".opreg-graph .kind{font-size:11px;fill:#1f2328bb;text-anchor:middle}",
    ".opreg-graph .group .name,.opreg-graph .group .kind{fill:var(--ink)}",
    ".opreg-graph .flow{font-size:9px;fill:var(--soft);text-anchor:middle}",
    ".opreg-graph .line{fill:none;stroke:var(--line)}",
    ".opreg-graph .tip{fill:var(--line)}"))

#: Colours of the dark scheme.
DARK = ("{--back:#0d1117;--ink:#e6edf3;--soft:#9198a1;--line:#6e7681;--frame:#3d444d;--fill:#8f9aa314}")


def path_of(level: Level, line: Line) -> str:
    """The path of a line, which bends only between rows."""
    route = line.route
    parts = [f"M{route.xs[0]:.1f} {_begin(level, line):.1f}"]
    for row, before, x in zip(range(route.first, route.last), route.xs, route.xs[1:]):
        upper, lower = level.tops[row] + level.rows[row], level.tops[row + 1]
        middle = (upper + lower) / 2
        parts.append(f"V{upper:.1f}")
        if abs(x - before) < 0.5:
            parts.append(f"L{x:.1f} {lower:.1f}")
        else:
            parts.append(f"C{before:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {lower:.1f}")
    parts.append(f"V{_end(level, line):.1f}")
    return "".join(parts)


def _begin(level: Level, line: Line) -> float:
    """Vertical start of a line: below its source and label, or at the border."""
    if line.source is None:
        return 0.0
    return level.items[line.source].y + level.items[line.source].height


def _end(level: Level, line: Line) -> float:
    """Vertical end of a line: at the top of its target, or at the border."""
    return level.height if line.target is None else level.items[line.target].y


def _node(placed: PlacedItem, number: int | str, item: str) -> Iterator[str]:
    box = placed.box
    assert box is not None
    middle = placed.width / 2
    yield (f'<g class="node {box.kind}{" head" if box.head else ""}" data-node="{number}" data-item="{item}" '
           f'transform="translate({placed.x:.1f} {placed.y:.1f})"><title>{html_text(_tooltip(box))}</title>')
    yield (f'<rect class="box" width="{placed.width:.1f}" height="{box.height:.1f}" '
           f'rx="{box.height / 2 if box.kind == "variable" else 4:g}"/>')
    if box.memory is not None:
        yield (f'<rect class="memory" x="1" y="1" width="5" height="{box.height - 2:.1f}" rx="2" '
               f'fill="{PALETTE[box.memory % len(PALETTE)]}"/>')
    for i, text in enumerate(box.lines):
        yield (f'<text class="{"kind" if i else "name"}" x="{middle:.1f}" y="{6 + LINE * i + 10.5:.1f}">'
               f'{html_text(text)}</text>')
    for text, start in zip(box.outputs, starts(box)):
        if text:
            yield (f'<text class="flow" x="{middle + start:.1f}" y="{box.height + LABEL_HEIGHT - 3.5:.1f}">'
                   f'{html_text(text)}</text>')
    yield "</g>"


def _tooltip(box: Box) -> str:
    return "\n".join(f"{title}: {text}" for title, text in box.facts.items())


def _level(level: Level, numbers: Mapping[int, int | str], count: list[int]) -> Iterator[str]:
    me = count[0]
    for i, line in enumerate(level.lines):
        end = ""
        if line.wire is not None:
            end = f' data-to="{line.wire.target}:{line.wire.position}"'
        yield (f'<path class="line" data-line="{me}.{i}" data-from="{line.output[0]}:{line.output[1]}"{end} '
               f'd="{path_of(level, line)}"/>')
        if line.wire is not None:
            yield (f'<path class="tip" data-tip="{me}.{i}" d="{tip(line.route, _end(level, line))}"/>')
            if line.wire.lines > 1:
                yield (f'<text class="count" x="{line.route.xs[-1] + 5:.1f}" y="{_end(level, line) - 5:.1f}">'
                       f'{line.wire.lines}</text>')
    for i, item in enumerate(level.items):
        if item.box is not None:
            yield from _node(item, numbers[id(item.box)], f"{me}.{i}")
            continue
        inner = item.level
        assert inner is not None
        count[0] += 1
        yield (f'<g class="cluster" data-level="{count[0]}" data-item="{me}.{i}" '
               f'data-path="{html_text(".".join(inner.path))}" transform="translate({item.x:.1f} {item.y:.1f})">'
               f'<rect class="frame" width="{item.width:.1f}" height="{item.height:.1f}" rx="6"/>'
               '<g class="inside">')
        yield from _level(inner, numbers, count)
        room = min(len(inner.title) * CHAR + 8, item.width - 6)
        yield (f'</g><rect class="tag" x="3" y="3" width="{room:.1f}" height="{TITLE - 1:g}" rx="3"/>'
               f'<text class="title" x="7" y="{TITLE - 1:g}">{html_text(inner.title)}</text></g>')


def tip(route: Route, y: float) -> str:
    """The arrow head, pointing down."""
    x = route.xs[-1]
    return f"M{x:.1f} {y:.1f}l{-_ARROW / 2:g} {-_ARROW:g}h{_ARROW:g}z"


def svg(level: Level, numbers: Mapping[int, int | str], scheme: str = "auto", style: bool = True) -> str:
    """The SVG text of a drawing.

    Parameters
    ----------
    level : Level
        Result of ``lay_out``.
    numbers : mapping of int to (int or str)
        Number or other name of each node, by ``id`` of its box.
    scheme : {"auto", "light", "dark"}
        Colour scheme; "auto" is the one that the viewer prefers.
    style : bool
        Whether to include the style sheet.
    """
    dark = {"light": "", "dark": f".opreg-graph{DARK}",
            "auto": f"@media (prefers-color-scheme:dark){{.opreg-graph{DARK}}}"}[scheme]
    width, height = max(level.width, 1.0), max(level.height, 1.0)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="opreg-graph" width="{width:.1f}" height="{height:.1f}" '
             f'viewBox="0 0 {width:.1f} {height:.1f}">']
    if style:
        parts.append(f"<style>{STYLE}{dark}</style>")
    parts.append('<rect class="back" width="100%" height="100%"/>')
    parts += _level(level, numbers, [0])
    return "".join([*parts, "</svg>"])
