"""page: a graph or a plan as one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from opreg.core.files import atomic_write
from opreg.core.reports import html_text, printable
from opreg.errors import ArgumentError
from opreg.symbol.executor import Executor
from opreg.symbol.inspect.memory_use import size_text
from opreg.symbol.inspect.profile import Profile
from opreg.symbol.inspect.work import time_text
from opreg.symbol.symbol import Symbol

from ..core.named_errors import name_errors
from .drawing import SEVERAL, Drawing
from .graph_facts import GraphFacts, facts_of
from .layout import Level, lay_out
from .measures import PADDING, TITLE, shorten
from .overview import Overview, overview
from .svg import DARK, STYLE, svg
from .timeline import timelines

__all__ = ["Page", "page"]

#: Number of nodes from which a page starts with closed groups.
_MANY = 2000
#: Height of a closed group.
_CLOSED = 34.0
_HERE = FilePath(__file__).parent


class Page:
    """An HTML page about a graph; ``save`` writes it, ``view`` opens it, and notebooks show it.

    Attributes
    ----------
    title : str
    html : str
        The HTML text.
    """

    def __init__(self, title: str, html: str):
        self.title, self.html = title, html

    def __repr__(self) -> str:
        return f"<Page {self.title}, {len(self.html) / 1000:.0f} kB>"

    def save(self, filename: str | os.PathLike) -> str:
        """Write the page to a file; return its name."""
        name = os.fsdecode(filename)
        with atomic_write(name) as file:
            file.write(self.html.encode())
        return name

    def view(self) -> str:
        """Write the page to a temporary file and open it in a browser; return the file's name."""
        name = self.save(os.path.join(tempfile.mkdtemp(), "page.html"))
        webbrowser.open(FilePath(name).as_uri())
        return name

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html_text(self.html)}" width="100%" height="640" frameborder="0" '
                'sandbox="allow-scripts"></iframe>')


def page(value: object, shape: Mapping[str, Any] | Any = None, *, dtype: Mapping[str, Any] | None = None,
         profile: Profile | None = None, title: str | None = None, hide_weights: bool = True,
         is_train: bool | None = None) -> Page:
    """Makes an HTML page of a graph: with collapsible groups, a search, facts about each node, and memory over time.

    Parameters
    ----------
    value : Symbol, Cell or Executor
        The graph to show. For an executor its plan is shown: the kernel of each step, why other kernels declined it,
        and the memory of each result.
    shape : optional
        For a Symbol a dict of shapes of arguments; for a Cell an example input (a tensor or a shape), or a list of
        them.
    dtype : dict by name, optional
        Dtypes of arguments of a Symbol.
    profile : Profile, optional
        Result of ``executor.profile()``, to show the duration of each node.
    title : str, optional
        Title of the page.
    hide_weights : bool
        Whether to leave out parameters and auxiliary states.
    is_train : bool, optional
        Whether to show an executor's training plan; by default if it computes gradients.

    Returns
    -------
    Page
        ``save("net.html")`` writes it.

    Examples
    --------
    >>> import opreg as mx
    >>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    >>> page(net, {"data": (2, 4)}).html[:15]
    '<!DOCTYPE html>'
    """
    named = isinstance(shape, Mapping)
    facts = facts_of("page", value, shape if named else None, dtype, hide_weights, None if named else shape, is_train)
    if profile is not None:
        if facts.plan is None:
            raise ArgumentError("page: the profile is of another executor")
        if profile.is_train is not facts.plan.is_train:
            raise ArgumentError(f"page: the profile is of the {'training' if profile.is_train else 'inference'} plan; "
                                f"give is_train={profile.is_train}")
    drawing = facts.drawing(title or _title(value, facts), profile)
    level = lay_out(drawing)
    return Page(drawing.title, _page_text(facts, drawing, level, profile))


def _title(value: object, facts: GraphFacts) -> str:
    name = facts.symbol.name or ", ".join(facts.symbol.list_outputs())
    return shorten({Symbol: name, Executor: f"executor of {name}"}.get(type(value), type(value).__name__), 60)


# ------------------------------------------------------------------------------------------------------ parts


def _page_text(facts: GraphFacts, drawing: Drawing, level: Level, profile: Profile | None) -> str:
    above = overview(drawing, level) if len(drawing.boxes) > SEVERAL else None
    style = f"{_file('page.css')}\n{STYLE}\n{_dark()}"
    script = _file("page.js")
    arenas = [] if facts.plan is None else timelines(facts.plan, facts.segments)
    policy = (f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
              "base-uri 'none'; form-action 'none'")
    memory = "".join(f'<section class="wide arenas"><h2>Memory on {html_text(str(arena.ctx))}, step by step</h2>'
                     f'<div class="scroll">{arena.svg(drawing.nodes)}</div></section>' for arena in arenas)
    buttons = {"close": "Close all", "open": "Open all", "smaller": "−", "larger": "+", "fit": "Fit",
               "theme": "Light / dark"}
    if arenas:
        buttons["memory"] = "By memory"
    tools = "".join(f'<button type="button" name="{name}">{text}</button>' for name, text in buttons.items())
    return "".join((
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html_text(drawing.title)}</title><style>{style}</style></head><body>",
        f'<header><h1>{html_text(drawing.title)}</h1><p class="about">{html_text(_summary(facts, drawing, profile))}'
        '</p><div class="tools"><input type="search" placeholder="Search" aria-label="Search">'
        f'<span class="found" aria-live="polite"></span>{tools}</div></header>',
        f'<main>{_overview_section(above)}<section class="graph"><h2>Graph</h2><div class="scroll">',
        svg(level, drawing.numbers(), style=False),
        '</div></section><section class="details"><h2>Details</h2><p class="hint">Click on a node to see what is known '
        'of it, on the title of a group to close or open it.</p></section>',
        f'{memory}<section class="wide outline"><h2>Outline</h2>{"".join(_outline(level, drawing, {}))}</section>',
        f'</main><script type="application/json" id="data">{_json(_data(level, drawing, above))}</script>',
        f"<script>{script}</script></body></html>\n"))


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _dark() -> str:
    return (f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]) .opreg-graph{DARK}}}"
            f":root[data-theme=dark] .opreg-graph{DARK}")


def _json(value: object) -> str:
    """JSON that can be embedded in HTML and encoded."""
    text = printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return text.replace("<", "\\u003c")


def _summary(facts: GraphFacts, drawing: Drawing, profile: Profile | None) -> str:
    operators = sum(box.kind != "variable" for box in drawing.boxes)
    parts = [f"{operators} operators, {len(drawing.wires)} edges"]
    if facts.plan is not None:
        parts = [f"{'training' if facts.plan.is_train else 'inference'} plan", *parts,
                 f"{size_text(facts.plan.nbytes)} besides bound arrays"]
    if profile is not None:
        parts.append(f"{time_text(profile.seconds)} a run")
    return ", ".join(parts)


def _overview_section(overview: Overview | None) -> str:
    """The section of the overview, if there is one."""
    if overview is None:
        return ""
    return ('<section class="wide overview"><h2>Overview</h2><div class="scroll">'
            f'{svg(lay_out(overview.drawing), overview.numbers, style=False)}</div></section>')


def _data(level: Level, drawing: Drawing, above: Overview | None) -> dict[str, object]:
    """Data for the page's script: facts about nodes, members of groups, and all positions."""
    numbers: dict[int, int] = {}
    levels = list(level.levels())
    for number, each in enumerate(levels):
        numbers[id(each)] = number
    return {"nodes": [box.facts for box in drawing.boxes], "pad": PADDING, "title": TITLE,
            "closed": _CLOSED, "many": _MANY, "groups": {} if above is None else above.members,
            "levels": [_geometry(level, numbers) for level in levels]}


def _geometry(level: Level, numbers: Mapping[int, int]) -> dict[str, object]:
    items = [(item.row, round(item.x, 1), round(item.height, 1), -1 if item.level is None else numbers[id(item.level)])
             for item in level.items]
    lines = [(line.route.first, [round(x, 1) for x in line.route.xs], -1 if line.source is None else line.source,
              -1 if line.target is None else line.target) for line in level.lines]
    return {"width": round(level.width, 1), "height": round(level.height, 1),
            "gaps": level.gaps, "items": items, "lines": lines}


def _outline(level: Level, drawing: Drawing, numbers: dict[int, int]) -> Iterator[str]:
    """The nodes as a list with nested groups."""
    numbers = numbers or drawing.numbers()
    for item in sorted(level.items, key=lambda item: (item.row, item.x)):
        if item.level is not None:
            count = sum(item.box is not None for inner in item.level.levels() for item in inner.items)
            yield (f'<details open><summary>{html_text(item.level.title)} <span class="sum">{count} nodes</span>'
                   '</summary>')
            yield from _outline(item.level, drawing, numbers)
            yield "</details>"
            continue
        box = item.box
        assert box is not None
        facts = box.facts
        cells = (("name", box.name), ("operator", facts.get("operator", "")),
                 ("shape", facts.get("gives", "")), ("time", facts.get("takes", "")))
        yield f'<div class="row" data-node="{numbers[id(box)]}">' + "".join(
            f'<span class="{name}">{html_text(text)}</span>' for name, text in cells) + "</div>"


name_errors(__name__, globals(), __all__)
