"""Graphs as JSON text: files of Apache MXNet 0.8 to 1.9.1 are read, files of 1.9.1 are written.

A file holds the nodes in topological order, the indices of the variables (``arg_nodes``), the index of the first output
of each node among all outputs (``node_row_ptr``), the outputs of the graph (``heads``) and the version of MXNet. Files
of older versions differ in details, which ``Loader`` converts one by one. Only graphs within graphs are read and
written by recursion, so deep graphs are no problem.
"""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring

from opreg.core.conversions import has_text
from opreg.core.files import atomic_write, open_to_read
from opreg.core.graph import Entry, Graph, Node, rewrite
from opreg.core.json_text import json_of
from opreg.core.mode import MODE
from opreg.core.placeholder import PYTHON_CODE, placeholder, python_code, warn_of, warn_of_python
from opreg.core.rules import Attrs
from opreg.errors import ArgumentError, AttrError, FileFormatError
from opreg.ndarray.params_file import FILE_MAGIC

from .entries import DUMPS, SAVE
from .json_loader import VERSION, Json, Loader, stored_order
from .program import without_gc
from .symbol import Symbol

__all__ = ["dumps", "loads", "load_json", "fromjson", "save", "load", "VERSION"]

_CHANNELS_FIRST = (None, "None", "NCW", "NCHW", "NCDHW")


def _pooling_outputs(attrs: Attrs) -> int:
    """The number of outputs that MXNet counts for pooling: max pooling has a second one where oneDNN may compute it."""
    first = attrs.get("layout") in _CHANNELS_FIRST
    return 1 + (attrs["pool_type"] == "max" and first and len(attrs.get("kernel") or ()) > 0)


# For operators of MXNet that have hidden outputs, the number of all outputs. ``node_row_ptr`` in a file holds sums of
# these numbers.
_OUTPUTS: dict[str, int | Callable[[Attrs], int]] = {
    "BatchNorm": 3, "BatchNorm_v1": 3, "_contrib_SyncBatchNorm": 3, "_contrib_BatchNormWithReLU": 4,
    "LayerNorm": 3, "GroupNorm": 3, "InstanceNorm": 3, "L2Normalization": 2, "LRN": 2, "Dropout": 2,
    "CTCLoss": 2, "BilinearSampler": 2, "GridGenerator": 2, "SpatialTransformer": 3, "Correlation": 3,
    "ROIPooling": 2, "_contrib_DeformablePSROIPooling": 2, "_contrib_Proposal": 2, "_contrib_MultiProposal": 2,
    "_contrib_box_nms": 2, "_linalg_det": 3, "_linalg_slogdet": 4, "sort": 2,
    "topk": lambda attrs: 1 + (attrs["ret_typ"] in ("value", "both")),
    "LeakyReLU": lambda attrs: 1 + (attrs["act_type"] == "rrelu"),
    "Pooling": _pooling_outputs,
}


def _count(node: Node) -> int:
    if node.op is None:
        return 1
    if placeholder(node):
        return node.count
    count = _OUTPUTS.get(node.op.name)
    if count is None:
        return node.op.signature.visible(node.attrs)
    return count(node.attrs) if callable(count) else count


def stored_name(node: Node) -> str:
    """The name of a node's operator in files: ``null`` for variables, ``Custom`` for users' operators."""
    if node.op is None:
        return "null"
    stands = placeholder(node)
    if stands is not None:
        return stands.stored
    return node.op.name if node.op.op_type is None else "Custom"


def stored_attrs(node: Node) -> dict[str, str]:
    """The attributes of a node as text, sorted by name."""
    texts = {} if node.op is None else node.op.signature.schema.texts(node.keywords)
    texts.update(node.tags)
    if node.op is not None and node.op.op_type is not None:
        texts.setdefault("op_type", node.op.op_type)
    return texts if len(texts) < 2 else {name: texts[name] for name in sorted(texts)}


def versions(graph: Graph) -> dict[Node, list[int]]:
    """Versions of the inputs of each node: for a variable, the count of nodes so far that had it as an auxiliary state.

    Examples
    --------
    >>> x = Node(None, "x")
    >>> versions(Graph([(x, 0)]))
    {}
    """
    rows: dict[Node, list[int]] = {}
    changes: dict[Node, int] = {}
    for node in graph.nodes:
        stands = placeholder(node)
        if stands is not None:
            rows[node] = list(stands.versions)
        elif node.op is not None and node.inputs:
            argument_count = len(node.op.signature.arguments(node.attrs))
            row = rows[node] = []
            for position, (source, _) in enumerate(node.inputs):
                if source.op is None and (position >= argument_count or position in node.op.traits.mutates):
                    changes[source] = changes.get(source, 0) + 1
                row.append(changes.get(source, 0))
    return rows


def bodies(node: Node) -> Sequence[Graph]:
    """The graphs that a node holds, such as the bodies of loops."""
    stands = placeholder(node)
    if stands is not None:
        return stands.subgraphs
    return [symbol._graph() for symbol in node.attrs.get("subgraphs", ())] if node.op is not None else ()


def _holds_fused_graph(node: Node) -> bool:
    """Whether a node holds a graph of fused operators, which MXNet writes without versions."""
    return node.op is not None and "subgraphs" in node.op.signature.schema and node.op.rules.unrolled is None


def _check_readable(node: Node, texts: Mapping[str, str]) -> None:
    """Raise an error for an attribute of a user's operator whose value cannot be read from its text."""
    if node.op is None or node.op.op_type is None:
        return
    for name, value in node.attrs.items():
        if name in texts and not has_text(value):
            raise AttrError(f"operator {node.op.op_type!r}, node {node.name!r}: attribute {name} is a "
                            f"{type(value).__name__}, which has no text for a file. Expected numbers, text, None, "
                            f"dtypes, members of an Enum, or tuples, lists, sets and dicts of these")


def _node_dict(graph: Graph, called: dict[str, str], versioned: bool = True) -> dict[str, Json]:
    """The graph for a file; the Python code that nodes call is added to ``called``, by the node's name."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    version = versions(graph) if versioned else {node: [0] * len(node.inputs) for node in graph.nodes}
    nodes, rows = [], [0]
    for node in graph.nodes:
        written: dict[str, Json] = {"op": stored_name(node), "name": node.name}
        attrs, code = stored_attrs(node), python_code(node)
        if code is not None:
            called[node.name] = code
            attrs = {PYTHON_CODE: code, **attrs}
        if attrs:
            _check_readable(node, attrs)
            written["attrs"] = attrs
        inputs = [[number[source], i, v] for (source, i), v in zip(node.inputs, version.get(node, ()))]
        order = None if node.op is None else stored_order(node.op, node.attrs)
        written["inputs"] = inputs if order is None else [inputs[place] for place in order]
        inner = bodies(node)
        if inner:
            written["subgraphs"] = [_node_dict(graph, called, not _holds_fused_graph(node)) for graph in inner]
        nodes.append(written)
        rows.append(rows[-1] + _count(node))
    return {"nodes": nodes, "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op is None],
            "node_row_ptr": rows, "heads": [[number[node], i, 0] for node, i in graph.heads]}


_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _quote(text: str) -> str:
    """A text in quotes, with MXNet's escapes; other control characters are unchanged."""
    quoted = encode_basestring(text)
    return f'"{text.translate(_ESCAPES)}"' if "\\" in quoted else quoted


def _text(value: Json, margin: str = "") -> str:
    """JSON formatted as by MXNet: short lists and dicts of one item on one line, and a space after the comma at a
    line's end."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int):
        return str(value)
    inner = margin + "  "
    if isinstance(value, dict):
        first, last, tall = "{", "}", len(value) > 1
        parts = [f"{_quote(key)}: {_quote(part) if part.__class__ is str else _text(part, inner)}"
                 for key, part in value.items()]
    else:
        assert isinstance(value, Sequence)
        item = value[0] if value else None
        first, last, tall = "[", "]", len(value) > 10 or isinstance(item, dict)
        if isinstance(item, list) and not tall:  # a list of inputs or heads, each with three numbers
            return str(value)
        parts = [_text(part, inner) for part in value]
    if not tall:
        return first + ", ".join(parts) + last
    between = f", \n{inner}"
    return f"{first}\n{inner}{between.join(parts)}\n{margin}{last}"


def _drop_casts(graph: Graph) -> Graph:
    """The graph without the casts of mixed precision, so that it computes in the dtypes of its inputs."""

    def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
        return inputs if node.op is not None and node.op.traits.mixes else None

    return rewrite(graph, change)


@DUMPS.provide
def dumps(symbol: Symbol, remove_amp_cast: bool = False) -> str:
    """A symbol as the JSON text that MXNet 1.9.1 writes, character for character.

    Parameters
    ----------
    symbol : Symbol
        The symbol.
    remove_amp_cast : bool
        Whether to leave out ``amp_cast`` and ``amp_multicast``.

    Examples
    --------
    >>> from opreg.symbol import Variable
    >>> print(dumps(Variable("x")))
    {
      "nodes": [
        {
          "op": "null",
          "name": "x",
          "inputs": []
        }
      ],
      "arg_nodes": [0],
      "node_row_ptr": [0, 1],
      "heads": [[0, 0, 0]],
      "attrs": {"mxnet_version": ["int", 10901]}
    }
    """
    graph = _drop_casts(symbol._graph()) if remove_amp_cast else symbol._graph()
    called: dict[str, str] = {}
    written = _node_dict(graph, called)
    if called:
        warn_of_python(called)
    attrs: dict[str, Json] = {"is_np_shape": ["int", 1]} if MODE.np_shape else {}
    return _text({**written, "attrs": {**attrs, "mxnet_version": ["int", VERSION]}})


@SAVE.provide
def save(symbol: Symbol, fname: str | os.PathLike, remove_amp_cast: bool = True) -> None:
    """Write a symbol to a file. If writing fails, the file is as it was before.

    Parameters
    ----------
    symbol : Symbol
        The symbol.
    fname : str or path
        The file, by convention named ``…-symbol.json``.
    remove_amp_cast : bool
        See ``dumps``.
    """
    content = dumps(symbol, remove_amp_cast).encode()
    with atomic_write(fname) as file:
        file.write(content)


# ---------------------------------------------------------------------------------------------- reading


@without_gc
def loads(text: str, name: str = "<text>") -> Symbol:
    """Read a symbol from JSON text of any version of MXNet.

    Parameters
    ----------
    text : str
        The text that ``dumps`` or MXNet wrote.
    name : str
        The name of the file in errors.

    Returns
    -------
    Symbol
        A node whose operator is not registered is a placeholder. It can be listed, drawn and saved; running it is an
        error. An operator that is registered before the graph runs replaces the placeholder.

    Raises
    ------
    FileFormatError
        The text is no JSON, or no graph. The error names the file and the node.
    AttrError
        An attribute of a node has a value that its operator does not accept. A note names the file and the node.

    Warns
    -----
    UserWarning
        The file is of a newer version; it holds control dependencies, which are dropped; or a node has an attribute
        that its operator does not have, which is stored and has no effect.

    Examples
    --------
    >>> from opreg.symbol import Variable
    >>> loads(dumps(Variable("x") * 2)).list_arguments()
    ['x']
    >>> loads('{"nodes": [], "heads": []}')
    Traceback (most recent call last):
    opreg.errors.FileFormatError: <text>: 'arg_nodes' is missing
    """
    if not isinstance(text, str):
        raise ArgumentError(f"loads: expected text, got {type(text).__name__}")
    loader = Loader(name)
    if not text.strip():
        loader.fail("", "expected a graph in JSON, the text is empty")
    graph = loader.graph(json_of(text, name))
    for (op, attribute), nodes in loader.strangers.items():
        warn_of(name, op, nodes, attribute)
    return Symbol(graph.heads)


load_json = loads
fromjson = loads


def load(fname: str | os.PathLike) -> Symbol:
    """Read a symbol from a file; see ``loads``.

    Raises
    ------
    FileFormatError
        The file is not UTF-8, no JSON, or no graph.
    """
    name = os.fsdecode(fname)
    with open_to_read(name) as file:
        content = file.read()
    if content.startswith((FILE_MAGIC.to_bytes(8, "little"), b"PK\x03\x04")):
        raise FileFormatError(f"{name}: expected the JSON of a graph, found a file of arrays: nd.load reads it")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{name}: byte {error.start}: expected UTF-8, got 0x{content[error.start]:02x}") from None
    return loads(text, name)


# Symbols are pickled as JSON text.
copyreg.pickle(Symbol, lambda symbol: (loads, (dumps(symbol),)))
