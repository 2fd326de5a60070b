"""HTML tables for notebooks: arrays, executors, Cells and their measurements."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from opreg.cells.cell import Cell
from opreg.core.reports import HTML, SVG, Explanation, html_text
from opreg.core.spec import show
from opreg.errors import OpError
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.executor import Executor
from opreg.symbol.inspect.estimate import Estimate
from opreg.symbol.inspect.memory_use import MemoryUse, size_text
from opreg.symbol.inspect.profile import Profile
from opreg.symbol.inspect.work import number_text, time_text, title_of
from opreg.symbol.symbol import Symbol
from opreg.typing import Array

from ..core.named_errors import name_errors
from .graph_facts import facts_of
from .layout import lay_out
from .summary import rows_of_cell
from .svg import svg

__all__ = ["table", "to_html", "to_svg"]

#: Largest number of rows and columns shown of an array, and how many at either end of a longer one.
_MOST, _ENDS = 12, 5
#: Largest number of measurements shown.
_ROWS = 40
#: Largest number of nodes of a symbol that is shown as a drawing; a larger one is printed as text, and ``viz.page`` has
#: room for it.
_DRAWN = 300


def _cell(text: object, tag: str = "td") -> str:
    side = "left" if isinstance(text, str) else "right"
    return f'<{tag} style="text-align:{side}">{html_text(str(text))}</{tag}>'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, with text aligned left and numbers right.

    Examples
    --------
    >>> table("a < b", [], [[1]])
    '<table><caption>a &lt; b</caption><tr><td style="text-align:right">1</td></tr></table>'
    """
    lines = [f"<table><caption>{html_text(caption)}</caption>"]
    if head:
        lines.append("<tr>" + "".join(_cell(text, "th") for text in head) + "</tr>")
    lines += ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows]
    return "".join([*lines, "</table>"])


@HTML.provide
@functools.singledispatch
def to_html(value: object) -> str | None:
    """A value as HTML; as monospaced text if it has no other form."""
    return f"<pre>{html_text(str(value))}</pre>"


@SVG.provide
def to_svg(symbol: Symbol) -> str | None:
    """A symbol as a drawing; None if it is too large or its shapes are inconsistent."""
    if len(symbol._graph().nodes) > _DRAWN:
        return None
    try:
        drawing = facts_of("_repr_svg_", symbol).drawing("")
    except OpError:
        return None
    return svg(lay_out(drawing), drawing.numbers())


# --------------------------------------------------------------------------------------------------- arrays


def _shown_indices(length: int) -> list[int]:
    """The indices of an axis that are shown; -1 stands for the omitted ones."""
    return list(range(length)) if length <= _MOST else [*range(_ENDS), -1, *range(length - _ENDS, length)]


def _number(number: object) -> str:
    return f"{number:.5g}" if isinstance(number, float) else str(number)


@to_html.register
def _array(array: NDArray) -> str | None:
    try:
        shape = array.shape
        first = (0,) * max(len(shape) - 2, 0) if all(shape) else None
        numbers = np.empty((0, 0)) if first is None else _looked_at(array, first)
    except OpError:
        return None  # without values
    rows, columns = (1, *shape)[-2:] if shape else (1, 1)
    caption = f"{type(array).__name__} {show(shape)} {np.dtype(array._data.dtype).name} @{array._ctx}"
    if first:
        caption += f", shown: [{', '.join(map(str, first))}, :, :]"
    down, across = ([], []) if first is None else (_shown_indices(rows), _shown_indices(columns))
    return table(caption, [], [[_Right("…" if i < 0 or j < 0 else _number(numbers[a, b].item()))
                                for b, j in enumerate(across)] for a, i in enumerate(down)])


def _looked_at(array: NDArray, first: tuple[int, ...]) -> np.ndarray:
    """The elements that are shown, over two axes; only these are copied from their device."""
    ctx = array._ctx

    def shown() -> Array:
        data = array._data[first] if first else array._data
        data = data.reshape((1,) * (2 - data.ndim) + tuple(data.shape))
        for cut in ((slice(None),), ()):
            axis = len(cut)
            if data.shape[axis] > _MOST:
                data = ctx.xp.concatenate([data[*cut, :_ENDS + 1], data[*cut, -_ENDS:]], axis=axis)
        return data

    host: np.ndarray = NDArray(ctx.run(shown), ctx).asnumpy()
    return host


# ------------------------------------------------------------------------------------------ graphs and Cells


@to_html.register
def _executor(executor: Executor) -> str:
    rows: list[list[object]] = []
    for kind, named in (("argument", executor.arg_arrays), ("state", executor.aux_arrays)):
        nodes = executor._arguments if kind == "argument" else executor._auxiliary
        requests = executor._reqs if kind == "argument" else [""] * len(nodes)
        rows += [[kind, node.name, show(array.shape), np.dtype(array._data.dtype).name, str(array.context), request]
                 for node, array, request in zip(nodes, named, requests)]
    rows += [["output", name, show(array.shape), np.dtype(array._data.dtype).name, str(array.context), ""]
             for name, array in zip(executor._output_names, executor.outputs)]
    return table(str(executor), ["what", "name", "shape", "dtype", "where", "gradient"], rows)


@to_html.register
def _cells(cell: Cell) -> str:
    rows, totals = rows_of_cell(cell, ())
    return table(", ".join(totals), ["Cell", "parameters", "trained"],
                 [[title.replace("  ", "\u2003"), int(count), int(trained[0])] for title, _, count, trained in rows])


@to_html.register
def _explanation(text: Explanation) -> str:
    lines = [html_text(line) if line.startswith(" ") else f"<b>{html_text(line)}</b>"
             for line in text.splitlines()]
    return "<pre>" + "\n".join(lines) + "</pre>"


# --------------------------------------------------------------------------------------------- measurements


@to_html.register
def _profile(profile: Profile) -> str:
    caption = (f"{'training' if profile.is_train else 'inference'} plan, least of {profile.runs} runs: "
               f"{time_text(profile.seconds)}")
    rows = [[f"{row.half} {row.step}", title_of(row.operator, row.node, row.operators), row.kernel,
             _Right(time_text(row.seconds)), _Right(time_text(row.median)), _Right(f"{row.share:.1%}"),
             _Right(number_text(row.read + row.written, "B")),
             _Right("" if row.flops is None else number_text(row.flops))]
            for row in profile.rows]
    return _cut(caption, ["step", "operator", "kernel", "least", "median", "share", "bytes", "FLOP"], rows)


@to_html.register
def _estimate(estimate: Estimate) -> str:
    rows = [[f"{row.half} {row.step}", title_of(row.operator, row.node, row.operators), row.kernel,
             _Right(time_text(row.eager)), _Right(time_text(row.replayed)), _Right(row.launches),
             _Right(number_text(row.read + row.written, "B")), _Right(number_text(row.flops)), row.limit]
            for row in estimate.rows]
    caption = (f"{'training' if estimate.is_train else 'inference'} plan, expected on {estimate.machine.name}: "
               f"{time_text(estimate.eager)} launched one by one, {time_text(estimate.replayed)} replayed")
    return _cut(caption, ["step", "operator", "kernel", "eager", "replayed", "launches", "bytes", "FLOP", "limit"],
                rows)


@to_html.register
def _memory(use: MemoryUse) -> str:
    rows = [[_Right(size_text(row.nbytes)), f"{row.operator} {row.node}", str(row.spec), ", ".join(row.users[1:])]
            for row in use.rows]
    return _cut(str(use).partition("\n")[0], ["size", "result", "shape", "then"], rows)


class _Right:
    """A text aligned right, like numbers."""

    def __init__(self, text: object):
        self._text = str(text)

    def __str__(self) -> str:
        return self._text


def _cut(caption: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    hidden = len(rows) - _ROWS
    return table(caption + (f"; {hidden} more" if hidden > 0 else ""), head, rows[:_ROWS])


name_errors(__name__, globals(), __all__)
