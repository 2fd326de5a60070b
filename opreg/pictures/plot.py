"""plot_network: draws a graph."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
import webbrowser
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opreg.core.files import atomic_write
from opreg.core.graph import Graph, Node
from opreg.core.reports import printable
from opreg.errors import ArgumentError, DeviceError, refuse_keywords

from ..core.named_errors import name_errors
from .drawing import Drawing
from .graph_facts import GraphFacts, facts_of
from .labels import COLOURS, detail, kind_of
from .layout import Level, lay_out
from .svg import svg

__all__ = ["Plot", "plot_network"]

#: Further arguments of ``render`` in the graphviz package.
_GRAPHVIZ = ("renderer", "formatter", "neato_no_op", "quiet", "quiet_view", "outfile", "engine",
             "raise_if_result_exists", "overwrite_filepath", "overwrite_source")

#: By the ending of a file that ``save`` does not write, the call that writes it.
_ELSEWHERE = {".html": "mx.viz.page(…).save", ".htm": "mx.viz.page(…).save",
              **{f".{kind}": f"render(format='{kind}')" for kind in ("pdf", "png", "jpg", "jpeg", "gif", "ps", "eps")}}


class Plot:
    """A drawing of a graph, as SVG and as Graphviz DOT text; SVG needs no other program.

    Attributes
    ----------
    source : str
        DOT text.
    svg : str
        The drawing as SVG.
    title, format : str
        Default file name and picture format.
    """

    def __init__(self, source: str, title: str, format: str, drawing: Drawing):
        self.source, self.title, self.format, self._drawing = source, title, format, drawing
        self._level: Level | None = None

    def __repr__(self) -> str:
        return f"<Plot {self.title}, {self.source.count(' -> ')} edges>"

    @property
    def svg(self) -> str:
        """The drawing as SVG, light or dark as the viewer prefers."""
        return self.to_svg()

    def to_svg(self, scheme: str = "auto") -> str:
        """The drawing as SVG.

        Parameters
        ----------
        scheme : {"auto", "light", "dark"}
            Colour scheme; "auto" is the one that the viewer prefers.
        """
        if scheme not in ("auto", "light", "dark"):
            raise ArgumentError(f"to_svg: scheme={scheme!r}: expected 'auto', 'light' or 'dark'")
        if self._level is None:
            self._level = lay_out(self._drawing)
        return svg(self._level, self._drawing.numbers(), scheme)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, filename: str | os.PathLike | None = None, directory: str | os.PathLike | None = None) -> str:
        """Write the DOT text, or the drawing if the name ends in ``.svg``; return the file's name.

        Parameters
        ----------
        filename : str or path, optional
            File name, by default ``<title>.gv``.
        directory : str or path, optional
            Folder, created if necessary.

        Raises
        ------
        ArgumentError
            For the name of a page or of another picture.
        """
        ending = os.path.splitext(os.fsdecode(filename or ""))[1].lower()
        if ending in _ELSEWHERE:
            raise ArgumentError(f"save: {ending} files are written by {_ELSEWHERE[ending]}; save writes SVG, and "
                                "Graphviz's text under other names")
        name = os.path.join(os.fsdecode(directory or ""), os.fsdecode(filename or f"{self.title}.gv"))
        if directory is not None:
            os.makedirs(directory, exist_ok=True)
        with atomic_write(name) as file:
            file.write((self.svg if name.endswith(".svg") else self.source).encode())
        return name

    def render(self, filename: str | os.PathLike | None = None, directory: str | os.PathLike | None = None,
               view: bool = False, cleanup: bool = False, format: str | None = None, **options: Any) -> str:
        """Write the drawing, and the DOT text beside it.

        Parameters
        ----------
        filename : str or path, optional
            Name of the DOT file, by default ``<title>.gv``; the drawing's name adds the format. If it ends in ``.svg``,
            only the drawing is written.
        directory : str or path, optional
            Folder, created if necessary.
        view : bool
            Whether to open the drawing.
        cleanup : bool
            Whether to remove the DOT text.
        format : str, optional
            Picture format, by default that of the drawing.
        **options
            Further arguments of ``render`` in the graphviz package, ignored.

        Returns
        -------
        str
            Name of the drawing's file.

        Raises
        ------
        DeviceError
            If the format is not svg and the program ``dot`` is not installed or fails.

        Examples
        --------
        >>> import tempfile
        >>> from opreg import sym
        >>> plot = plot_network(sym.flatten(sym.Variable("x")))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(plot.render("net", folder, format="svg")).read_text()[:4]
        '<svg'
        """
        refuse_keywords("render", [name for name in options if name not in _GRAPHVIZ], _GRAPHVIZ)
        kind, program = format or self.format, shutil.which("dot")
        if kind != "svg" and program is None:
            raise DeviceError(f"render: {kind} is made by the program dot of Graphviz, which was not found: install "
                              "Graphviz, or ask for SVG, which needs no other program: render(format='svg')")
        name = self.save(filename, directory)
        picture = f"{name}.{kind}"
        if kind != "svg" and program is not None:
            _by_dot(program, name, picture, kind)
        elif name.endswith(".svg"):
            picture = name
        else:
            self.save(picture)
        if cleanup and name != picture:
            os.remove(name)
        if view:
            webbrowser.open(Path(picture).absolute().as_uri())
        return picture

    def view(self, filename: str | os.PathLike | None = None, directory: str | os.PathLike | None = None,
             **options: Any) -> str:
        """Render as SVG, by default into a temporary folder, and open it; return the file's name."""
        if filename is None and directory is None:
            directory = tempfile.mkdtemp()
        return self.render(filename, directory, True, **{**options, "format": "svg"})


def _by_dot(program: str, name: str, picture: str, kind: str) -> None:
    # an absolute path is not mistaken for an option
    words = [program, f"-T{kind}", "-o", *map(os.path.abspath, (picture, name))]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode:
        raise DeviceError(f"{program} made no {kind} of {name}: {run.stderr.strip() or run.returncode}")


def plot_network(symbol: object, title: str = "plot", save_format: str = "pdf",
                 shape: Mapping[str, Sequence[int]] | None = None, dtype: Mapping[str, Any] | None = None,
                 node_attrs: Mapping[str, str] | None = None, hide_weights: bool = True, inputs: Any = None) -> Plot:
    """Draws a graph.

    Parameters
    ----------
    symbol : Symbol, Cell or Executor
        The graph to draw. Cells are frames around their operators. For an executor its plan is drawn, with fused
        operators; results that share memory in turn have stripes of the same colour.
    title : str
        Title of the drawing.
    save_format : str
        Picture format: svg; with Graphviz also pdf, png and others.
    shape, dtype : dict by name, optional
        Shapes and dtypes of arguments of a Symbol, to show those of every output.
    node_attrs : dict, optional
        Graphviz attributes of all nodes, for the DOT text.
    hide_weights : bool
        Whether to leave out parameters and auxiliary states.
    inputs : Tensor, shape, or tuple of them, optional
        Example inputs of a Cell, as ``to_symbol`` takes them.

    Returns
    -------
    Plot
        The drawing, shown in notebooks; ``render``, ``view`` and ``save`` write files.

    Warns
    -----
    RuntimeWarning
        If several nodes have the same name. Each is drawn, but only one can be found by name.

    Examples
    --------
    >>> from opreg import symbol
    >>> print(plot_network(symbol.flatten(symbol.Variable("x"), name="flat"), shape={"x": (1, 5)}).source, end="")
    digraph "plot" {
        "x" [label="x" shape="oval" style="filled" fillcolor="#8dd3c7"]
        "flat" [label="flat\\nFlatten" shape="box" style="filled" fillcolor="#fdb462"]
        "flat" -> "x" [dir="back" arrowtail="open" label="5"]
    }
    """
    facts = facts_of("plot_network", symbol, shape, dtype, hide_weights, inputs)
    repeated = [name for name, count in Counter(node.name for node in facts.graph.nodes).items() if count > 1]
    if repeated and facts.symbol is symbol:
        warnings.warn("There are multiple variables with the same name in your graph, which are drawn separately. "
                      "Repeated "
                      f"names: {', '.join(repeated)}", RuntimeWarning, stacklevel=2)
    return Plot(_dot(facts, title, node_attrs or {}), title, save_format, facts.drawing(title))


# ------------------------------------------------------------------------------------------------------ DOT


def _quote(text: str) -> str:
    inside = printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inside}"'


def _dot_attributes(attrs: Mapping[str, object]) -> str:
    return "[" + " ".join(f"{name}={_quote(str(value))}" for name, value in attrs.items()) + "]"


def _dot(facts: GraphFacts, title: str, node_attrs: Mapping[str, str]) -> str:
    """The graph as DOT text, with the outputs at the top."""
    names = _unique(facts.graph)
    lines = [f"digraph {_quote(title)} {{"]
    edges = []
    for node in facts.graph.nodes:
        if node in facts.hidden:
            continue
        label = node.name if node.op is None else f"{node.name}\n{detail(node)}"
        style = {"label": label, "shape": "oval" if node.op is None else "box", "style": "filled",
                 "fillcolor": COLOURS.get(kind_of(node), COLOURS["other"]), **node_attrs}
        lines.append(f"    {_quote(names[node])} {_dot_attributes(style)}")
        for source, index in node.inputs:
            if source not in facts.hidden:
                flow = {"dir": "back", "arrowtail": "open", "label": facts.by_sample(source, index)}
                edges.append(f"    {_quote(names[node])} -> {_quote(names[source])} {_dot_attributes(flow)}")
    return "\n".join([*lines, *edges, "}"]) + "\n"


def _unique(graph: Graph) -> dict[Node, str]:
    """A unique name for every node."""
    again: Counter[str] = Counter()
    names: dict[Node, str] = {}
    for node in graph.nodes:
        written = name = printable(node.name)
        while written in again:
            again[name] += 1
            written = f"{name} ({again[name]})"
        again[written] = 1
        names[node] = written
    return names


name_errors(__name__, globals(), __all__)
