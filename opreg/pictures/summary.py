"""print_summary: a table of the layers of a Symbol or Cell."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opreg.cells.cell import Cell
from opreg.cells.parameter import Parameter
from opreg.cells.tensor_base import TensorBase
from opreg.core.graph import Node
from opreg.core.reports import report
from opreg.core.spec import is_known, size
from opreg.errors import OpError
from opreg.symbol.json import stored_name

from ..core.named_errors import name_errors
from .graph_facts import GraphFacts, by_sample, examples, facts_of, roles

__all__ = ["print_summary", "rows_of_cell"]


def print_summary(symbol: object, shape: Any = None, line_length: int = 120,
                  positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0)) -> None:
    """Prints a table of layers: name and operator, output shape, parameters and inputs.

    Parameters
    ----------
    symbol : Symbol or Cell
        The graph to list.
    shape : optional
        For a Symbol a dict of shapes of arguments; without those of the data, sizes are unknown and shown as ``?``. For
        a Cell an example input (a tensor or a shape), or a list of them.
    line_length : int
        Characters in a line.
    positions : sequence of float
        Ends of the four columns, in characters or as fractions of a line.

    Notes
    -----
    For a Symbol, shapes are without the batch axis, and parameters are the elements of all inputs named weight, bias,
    gamma and so on, without auxiliary states. For a Cell, shapes are complete, each call of a Cell has a line, and
    untrained parameters are counted separately. Parameters shared by several layers count only at the first.

    Examples
    --------
    >>> from opreg import symbol
    >>> layer = symbol.FullyConnected(symbol.Variable("data"), num_hidden=2, name="fc")
    >>> print_summary(layer, {"data": (1, 5)}, line_length=60)
    ____________________________________________________________
    Layer (type)              Output ShapeParam Previous Layer
    ============================================================
    data(null)                5           0
    ____________________________________________________________
    fc(FullyConnected)        2           12    data
    ============================================================
    Total params: 12
    ____________________________________________________________
    >>> from opreg import nn
    >>> print_summary(nn.SequentialCell(nn.Dense(5, 3), nn.ReLU(), nn.Dense(3, 2)), (1, 5), line_length=60)
    ____________________________________________________________
    Layer (type)              Output ShapeParam Trained
    ============================================================
    SequentialCell            1x2         0     0
    ____________________________________________________________
      0 (Dense)               1x3         18    18
    ____________________________________________________________
      1 (ReLU)                1x3         0     0
    ____________________________________________________________
      2 (Dense)               1x2         8     8
    ============================================================
    Total params: 26
    Trainable params: 26
    Non-trainable params: 0
    ____________________________________________________________
    """
    if isinstance(symbol, Cell):
        last = "Trained"
        rows, totals = rows_of_cell(symbol, examples(shape))
    else:
        last = "Previous Layer"
        rows, totals = _rows_of_graph(facts_of("print_summary", symbol, shape))
    ends = [int(line_length * end) if positions[-1] <= 1 else int(end) for end in positions]
    print("_" * line_length)
    _print_row(["Layer (type)", "Output Shape", "Param #", last], ends)
    print("=" * line_length)
    for i, (title, output, count, others) in enumerate(rows):
        _print_row([title, output, count, *others[:1]], ends)
        for name in others[1:]:
            _print_row(["", "", "", name], ends)
        print(("=" if i == len(rows) - 1 else "_") * line_length)
    for line in totals:
        print(line)
    print("_" * line_length)


_Row = tuple[str, str, str, list[str]]


def _print_row(fields: Sequence[str], ends: Sequence[int]) -> None:
    line = ""
    for text, end in zip([*fields, *[""] * len(ends)], ends):
        line = (line + text)[:end].ljust(end)
    print(report([line]))


# ------------------------------------------------------------------------------------------------- symbols


def _rows_of_graph(facts: GraphFacts) -> tuple[list[_Row], list[str]]:
    """Title, output shape, number of parameters and inputs of every layer; and the total number of parameters."""
    learned, states, labels = roles(facts.graph)
    aside = learned | states | labels
    counted: set[Node] = set()
    rows = []
    for node in facts.graph.nodes:
        if node in aside:
            continue
        new = {source for source, _ in node.inputs if source in learned} - counted
        counted |= new
        visible = 1 if node.op is None else node.op.signature.visible(node.attrs)
        rows.append((f"{node.name}({stored_name(node)})",
                     " ".join(by_sample(spec.shape) for spec in facts.specs[node][:visible]), _size_text(new, facts),
                     [source.name for source, _ in node.inputs if source not in aside]))
    return rows, [f"Total params: {_size_text(counted, facts)}"]


def _size_text(variables: set[Node], facts: GraphFacts) -> str:
    """The number of elements of variables, as text: ``?`` if unknown."""
    shapes = [facts.specs[node][0].shape for node in variables]
    total = sum(size(shape) for shape in shapes if is_known(shape))
    if all(is_known(shape) for shape in shapes):
        return str(total)
    return f"{total} + ?" if total else "?"


# --------------------------------------------------------------------------------------------------- Cells


class _Calls:
    """Records the calls of a tree's Cells in order: path, Cell, and output shapes.

    Hooks would become steps of the traced graph, so the method that runs a Cell is replaced meanwhile.
    """

    def __init__(self, cell: Cell):
        self.rows: list[tuple[str, Cell, str]] = []
        self._cells = dict(cell.cells_and_names())

    def __enter__(self) -> _Calls:
        for path, cell in self._cells.items():
            cell.__dict__["_run"] = functools.partial(self._run_and_note, path, cell, cell._run)
        return self

    def __exit__(self, *_: object) -> None:
        for cell in self._cells.values():
            del cell.__dict__["_run"]

    def _run_and_note(self, path: str, cell: Cell, run: Callable[..., Any], *call: Any) -> Any:
        row = len(self.rows)
        self.rows.append((path, cell, ""))
        out = run(*call)
        self.rows[row] = path, cell, _shapes(out)
        return out


def _shapes(output: object) -> str:
    """The shapes of tensors in any nesting."""
    if isinstance(output, TensorBase):
        return "x".join(map(str, output.shape)) or "scalar"
    if isinstance(output, (tuple, list)):
        return " ".join(filter(None, map(_shapes, output)))
    if isinstance(output, Mapping):
        return _shapes(list(output.values()))
    return ""


def rows_of_cell(cell: Cell, inputs: tuple[Any, ...]) -> tuple[list[_Row], list[str]]:
    """Title, output shape, number of parameters and of trained parameters of every call; and the totals."""
    calls = [(path, member, "") for path, member in cell.cells_and_names()]
    if inputs:
        with _Calls(cell) as noted:
            try:
                cell.to_symbol(*inputs)
            except OpError:  # a Cell that cannot be traced is run
                if any(isinstance(value, tuple) for value in inputs):
                    raise
                noted.rows.clear()
                cell(*inputs)
        calls = noted.rows
    counted: set[int] = set()
    rows = []
    for path, member, shapes in calls:
        new = [own for own in member._params.values() if own is not None and id(own) not in counted]
        counted.update(map(id, new))
        depth = path.count(".") + 1 if path else 0
        title = f"{'  ' * depth}{path.rpartition('.')[2]} ({type(member).__name__})" if path else type(member).__name__
        rows.append((title, shapes, _count(new), [_count([parameter for parameter in new if parameter.requires_grad])]))
    every = list(cell.get_parameters())
    trained = [parameter for parameter in every if parameter.requires_grad]
    return rows, [f"Total params: {_count(every)}", f"Trainable params: {_count(trained)}",
                  f"Non-trainable params: {int(_count(every)) - int(_count(trained))}"]


def _count(parameters: Sequence[Parameter]) -> str:
    return str(sum(size(parameter.shape) for parameter in parameters))


name_errors(__name__, globals(), __all__)
