"""Graphs for people: every node in words, a table of layers, a drawing."""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from opreg.core.files import whole
from opreg.core.graph import Graph, Node
from opreg.core.placeholder import resolve
from opreg.core.rules import Attrs
from opreg.core.spec import ANY, Shape, known, size, stated
from opreg.errors import ArgumentError, DeviceError, did_you_mean

from . import infer as inference
from .json import stored_attrs, stored_name, versions
from .symbol import DEBUG_STR, Symbol

__all__ = ["debug_str", "print_summary", "plot_network", "Plot"]

#: Shapes of the entries of nodes, as far as they are known.
ShapesOf: TypeAlias = Mapping[Node, Sequence[Shape | None]]


@DEBUG_STR.provide
def debug_str(graph: Graph) -> str:
    """Every node with its inputs and attributes, in the words of MXNet.

    Examples
    --------
    >>> from opreg import symbol
    >>> print(symbol.flatten(symbol.Variable("x"), name="flat").debug_str(), end="")
    Symbol Outputs:
        output[0]=flat(0)
    Variable:x
    --------------------
    Op:Flatten, Name=flat
    Inputs:
        arg[0]=x(0) version=0
    """
    lines = []
    if len(graph.nodes) > 1:
        lines = ["Symbol Outputs:", *(f"\toutput[{i}]={node.name}({index})"
                                      for i, (node, index) in enumerate(graph.heads))]
    version = versions(graph)
    for node in graph.nodes:
        if node.op is None:
            lines.append(f"Variable:{node.name}")
            continue
        lines += ["-" * 20, f"Op:{stored_name(node)}, Name={node.name}", "Inputs:"]
        for i, ((source, index), count) in enumerate(zip(node.inputs, version.get(node, ()))):
            lines.append(f"\targ[{i}]={source.name}({index})" + (f" version={count}" if source.op is None else ""))
        attrs = stored_attrs(node)
        if attrs:
            lines += ["Attrs:", *(f"\t{name}={text}" for name, text in attrs.items())]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------- what a variable is

# Names of inputs that are learned, and how the names of variables for them end.
_LEARNED = frozenset({"weight", "bias", "gamma", "beta", "parameters", "moving_mean", "moving_var", "moving_avg",
                      "running_mean", "running_var"})
_ENDINGS = tuple(f"_{name}" for name in sorted(_LEARNED))


def _roles(graph: Graph) -> tuple[set[Node], set[Node], set[Node]]:
    """Variables that are learned, those that are auxiliary states, and those that are labels."""
    learned, states, labels = set(), set(graph.variables()[1]), set()
    for node in graph.nodes:
        if node.op is None:
            if node.name.endswith(_ENDINGS):
                learned.add(node)
            elif node.name.endswith("label"):
                labels.add(node)
            continue
        for name, (source, _) in zip(node.op.arguments(node.attrs), node.inputs):
            if source.op is None and name in _LEARNED:
                learned.add(source)
            elif source.op is None and name == "label":
                labels.add(source)
    return learned - states, states, labels - learned - states


def _shapes(symbol: Symbol, what: str, shape: Mapping[str, Sequence[int]] | None) -> tuple[Graph, ShapesOf]:
    """The graph, and the shapes of all its entries as far as they follow."""
    graph = resolve(symbol._graph(), strict=False)
    variables = {node.name: node for node in graph.nodes if node.op is None}
    shapes: dict[Node, Shape | None] = {}
    for name, dims in (shape or {}).items():
        if name not in variables:
            raise ArgumentError(f"{what}: {symbol!r} has no argument {name!r}. {did_you_mean(name, variables)}")
        shapes[variables[name]] = stated(dims)
    return graph, inference.infer_shapes(graph, shapes)


def _by_sample(shape: Shape | None) -> str:
    """A shape without its first dimension, the batch: ``3x32x32``."""
    return "" if shape is None else "x".join("?" if dim is ANY else str(dim) for dim in shape[1:])


# ------------------------------------------------------------------------------------------------ a table


def print_summary(symbol: Symbol, shape: Mapping[str, Sequence[int]] | None = None, line_length: int = 120,
                  positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0)) -> None:
    """Print a table of the layers: name and operator, shape of a sample's output, parameters, inputs.

    Parameters
    ----------
    symbol : Symbol
        What to list.
    shape : dict of str to tuple, optional
        Shapes of arguments; without those of the data sizes are not known, and shown as ``?``.
    line_length : int
        Characters in a line.
    positions : sequence of float
        Where the four columns end, in characters or as parts of a line.

    Notes
    -----
    Parameters are the numbers that are learned: all inputs named weight, bias, gamma and so on, auxiliary states
    not counted. What several layers share counts where it comes first.

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
    """
    ends = [int(line_length * end) if positions[-1] <= 1 else int(end) for end in positions]
    layers, total = _layers(symbol, shape)
    print("_" * line_length)
    _print_row(["Layer (type)", "Output Shape", "Param #", "Previous Layer"], ends)
    print("=" * line_length)
    for i, (title, output, count, previous) in enumerate(layers):
        _print_row([title, output, count, *previous[:1]], ends)
        for name in previous[1:]:
            _print_row(["", "", "", name], ends)
        print(("=" if i == len(layers) - 1 else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _print_row(fields: Sequence[str], ends: Sequence[int]) -> None:
    line = ""
    for field, end in zip([*fields, *[""] * len(ends)], ends):
        line = (line + field)[:end].ljust(end)
    print(line)


def _layers(symbol: Symbol, shape: Mapping[str, Sequence[int]] | None) -> tuple[list[tuple], str]:
    """Title, output shape, number of parameters and inputs of every layer; the number of all parameters."""
    graph, shape_of = _shapes(symbol, "print_summary", shape)
    learned, states, labels = _roles(graph)
    aside = learned | states | labels
    counted: set[Node] = set()
    layers = []
    for node in graph.nodes:
        if node in aside:
            continue
        new = {source for source, _ in node.inputs if source in learned} - counted
        counted |= new
        visible = 1 if node.op is None else node.op.visible(node.attrs)
        layers.append((f"{node.name}({stored_name(node)})", " ".join(map(_by_sample, shape_of[node][:visible])),
                       _numbers(new, shape_of), [source.name for source, _ in node.inputs if source not in aside]))
    return layers, _numbers(counted, shape_of)


def _numbers(variables: set[Node], shape_of: ShapesOf) -> str:
    """How many numbers variables hold, in words: ``?`` where that is not known."""
    shapes = [shape_of[node][0] for node in variables]
    total = sum(size(shape) for shape in shapes if known(shape))
    if all(known(shape) for shape in shapes):
        return str(total)
    return f"{total} + ?" if total else "?"


# ------------------------------------------------------------------------------------------------ a drawing


class Plot:
    """A drawing of a graph in the language of Graphviz.

    Attributes
    ----------
    source : str
        The drawing as DOT text.
    title, format : str
        What files are called unless they get a name, and the format of pictures.
    """

    def __init__(self, source: str, title: str, format: str):
        self.source, self.title, self.format = source, title, format

    def __repr__(self) -> str:
        return f"<Plot {self.title}, {self.source.count(' -> ')} edges>"

    def save(self, filename: str | os.PathLike | None = None) -> str:
        """Write the DOT text, to ``<title>.gv`` unless a name is given; returns the file's name."""
        name = os.fsdecode(filename or f"{self.title}.gv")
        with whole(name) as file:
            file.write(self.source.encode())
        return name

    def render(self, filename: str | os.PathLike | None = None) -> str:
        """Write the DOT text, and beside it the picture where the program ``dot`` is installed.

        Returns
        -------
        str
            The picture's name, or that of the DOT text where there is no ``dot``.

        Raises
        ------
        DeviceError
            When ``dot`` fails, with what it said.
        """
        name = self.save(filename)
        program = shutil.which("dot")
        if program is None:
            return name
        picture = f"{name}.{self.format}"
        run = subprocess.run([program, f"-T{self.format}", "-o", picture, name], capture_output=True, text=True,
                             check=False)
        if run.returncode:
            raise DeviceError(f"{program} made no {self.format} of {name}: {run.stderr.strip() or run.returncode}")
        return picture


def _times(dims: Sequence[int]) -> str:
    return "x".join(str(dim) for dim in dims)


def _window(attrs: Attrs) -> str:
    """Kernel and stride: ``3x3/2x2``."""
    return _times(attrs["kernel"]) + (f"/{_times(attrs['stride'])}" if attrs.get("stride") else "")


# What a node's label says beside its name and operator.
_DETAILS: dict[str, Callable[[Attrs], str]] = {
    "Convolution": lambda attrs: f"{_window(attrs)}, {attrs['num_filter']}",
    "Deconvolution": lambda attrs: f"{_window(attrs)}, {attrs['num_filter']}",
    "FullyConnected": lambda attrs: str(attrs["num_hidden"]),
    "Activation": lambda attrs: attrs["act_type"],
    "LeakyReLU": lambda attrs: attrs["act_type"],
    "Pooling": lambda attrs: attrs["pool_type"] if attrs["global_pool"] else f"{attrs['pool_type']}, {_window(attrs)}",
    "Reshape": lambda attrs: _times(attrs["shape"]),
    "transpose": lambda attrs: _times(attrs["axes"] or ()),
}

# Colours by kind of operator: ColorBrewer's "Set3".
_COLOURS = {
    colour: frozenset(kinds.split()) for colour, kinds in {
        "#8dd3c7": "null",
        "#fb8072": "Convolution Deconvolution FullyConnected Embedding RNN dot batch_dot",
        "#ffffb3": "Activation LeakyReLU relu sigmoid tanh softsign",
        "#bebada": "BatchNorm LayerNorm InstanceNorm GroupNorm L2Normalization LRN",
        "#80b1d3": "Pooling ROIPooling _contrib_ROIAlign _contrib_AdaptiveAvgPooling2D UpSampling",
        "#fdb462": "Concat Flatten Reshape transpose expand_dims squeeze SwapAxis SliceChannel slice_axis stack tile",
        "#b3de69": "Custom",
        "#fccde5": "SoftmaxOutput softmax log_softmax MakeLoss LinearRegressionOutput LogisticRegressionOutput",
    }.items()
}
_OTHER = "#d9d9d9"


def _label(node: Node) -> str:
    if node.op is None:
        return node.name
    kind = stored_name(node)
    if kind == "Custom":
        kind = f"Custom {stored_attrs(node)['op_type']}"
    if kind in _DETAILS and node.op.schema.fields:  # a placeholder's attributes are not typed
        kind = f"{kind} {_DETAILS[kind](node.attrs)}".rstrip()
    return f"{node.name}\n{kind}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _with(attrs: Mapping[str, object]) -> str:
    return "[" + " ".join(f"{name}={_quoted(str(value))}" for name, value in attrs.items()) + "]"


def plot_network(symbol: Symbol, title: str = "plot", save_format: str = "pdf",
                 shape: Mapping[str, Sequence[int]] | None = None, dtype: object = None,
                 node_attrs: Mapping[str, str] | None = None, hide_weights: bool = True) -> Plot:
    """Draw a graph for Graphviz, the outputs on top.

    Parameters
    ----------
    symbol : Symbol
        What to draw.
    title : str
        The drawing's name.
    save_format : str
        The format of pictures: pdf, png, svg, …
    shape : dict of str to tuple, optional
        Shapes of arguments; with them every edge shows what flows, without the batch.
    dtype : ignored
        Types are not drawn; MXNet has the parameter.
    node_attrs : dict, optional
        Graphviz attributes of all nodes.
    hide_weights : bool
        Whether to leave out parameters and auxiliary states.

    Warns
    -----
    RuntimeWarning
        Nodes bear one name; they are drawn apart, but by name only one of them is found.

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
    graph, shape_of = _shapes(symbol, "plot_network", shape)
    repeated = [name for name, count in Counter(node.name for node in graph.nodes).items() if count > 1]
    if repeated:
        warnings.warn("There are multiple variables with the same name in your graph, which are drawn apart. Repeated "
                      f"names: {', '.join(repeated)}", RuntimeWarning, stacklevel=2)
    learned, states, _ = _roles(graph)
    hidden = learned | states if hide_weights else set()
    names = _unique(graph)
    lines = [f"digraph {_quoted(title)} {{"]
    edges = []
    for node in graph.nodes:
        if node in hidden:
            continue
        kind = stored_name(node)
        colour = next((colour for colour, kinds in _COLOURS.items() if kind in kinds), _OTHER)
        look = {"label": _label(node), "shape": "oval" if node.op is None else "box", "style": "filled",
                "fillcolor": colour, **(node_attrs or {})}
        lines.append(f"    {_quoted(names[node])} {_with(look)}")
        for source, index in node.inputs:
            if source not in hidden:
                flow = {"dir": "back", "arrowtail": "open", "label": _by_sample(shape_of[source][index])}
                edges.append(f"    {_quoted(names[node])} -> {_quoted(names[source])} {_with(flow)}")
    return Plot("\n".join([*lines, *edges, "}"]) + "\n", title, save_format)


def _unique(graph: Graph) -> dict[Node, str]:
    """A name of its own for every node."""
    taken: dict[str, int] = {}
    names = {}
    for node in graph.nodes:
        again = taken[node.name] = taken.get(node.name, 0) + 1
        names[node] = node.name if again == 1 else f"{node.name} ({again})"
    return names
