"""Graphs as JSON text: files of Apache MXNet 0.8 to 1.9.1 are read, files of 1.9.1 are written.

A file holds the nodes in topological order, the indices of the variables (``arg_nodes``), the index of the first output
of each node among all outputs (``node_row_ptr``), the outputs of the graph (``heads``) and the version of MXNet. Files
of older versions differ in details, which ``_Loader`` converts one by one. Only graphs within graphs are read and
written by recursion, so deep graphs are no problem.
"""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from json.encoder import encode_basestring
from typing import NamedTuple, NoReturn, TypeAlias

from opreg.core.attrs import to_text
from opreg.core.files import atomic_write, reading
from opreg.core.graph import Entry, Graph, Node, declared_shape, rewrite
from opreg.core.json_text import json_of
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.placeholder import Placeholder, is_tag, lookup, placeholder, sort_attributes, strange, warn_of
from opreg.core.rules import Attrs
from opreg.errors import FileFormatError, Where, did_you_mean, listed, note, warn

from .control_flow import check_locations
from .infer import mxnet_shape
from .naming import HIDDEN, hide
from .program import uncollected
from .symbol import DUMPS, SAVE, Symbol

__all__ = ["dumps", "loads", "load_json", "fromjson", "save", "load", "VERSION"]

#: A JSON value.
Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | None"

#: The version whose layout is written: 1.9.1.
VERSION = 10901

# Sets of keys, in the order of files: all of a graph or a node, and those that it must have.
_GRAPH_KEYS = dict.fromkeys(("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs")).keys()
_GRAPH_NEEDED = dict.fromkeys(("nodes", "arg_nodes", "heads")).keys()
_NODE_KEYS = dict.fromkeys(("op", "name", "attrs", "attr", "param", "inputs", "control_deps", "subgraphs",
                            "backward_source_id")).keys()
_NODE_NEEDED = dict.fromkeys(("op", "name", "inputs")).keys()
#: The keys of a node's attributes, those of older files first.
_ATTRIBUTES = ("param", "attr", "attrs")
_MOST_OUTPUTS = 1 << 16  # most per node: a larger count means a damaged file, and would take memory
_DEEPEST = 32  # levels of graphs within graphs


# ---------------------------------------------------------------------------------------------- writing

_CHANNELS_FIRST = (None, "None", "NCW", "NCHW", "NCDHW")


def _pooling_outputs(attrs: Attrs) -> int:
    """The number of outputs that MXNet counts for pooling: max pooling has a second one where oneDNN may compute it."""
    first = attrs.get("layout") in _CHANNELS_FIRST
    return 1 + (attrs["pool_type"] == "max" and first and len(attrs.get("kernel") or ()) > 0)


# Numbers of outputs, hidden ones included, of the operators of MXNet that have hidden outputs. ``node_row_ptr`` adds
# them up.
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
    texts = {} if node.op is None else node.op.signature.schema.texts(node.given)
    texts.update(node.tags)
    if node.op is not None and node.op.op_type is not None:
        texts.setdefault("op_type", node.op.op_type)
    return texts if len(texts) < 2 else {name: texts[name] for name in sorted(texts)}


def stored_order(op: Op, attrs: Attrs) -> list[int] | None:
    """The order of a node's inputs in files, for operators whose files list auxiliary states before other inputs; else
    None.

    Examples
    --------
    >>> from opreg.core.registry import get
    >>> stored_order(get("_contrib_quantized_batch_norm"), {})
    [0, 1, 2, 5, 6, 3, 4]
    """
    auxiliary = op.signature.auxiliary(attrs)
    if not auxiliary:
        return None
    names = [*op.signature.arguments(attrs), *auxiliary]
    order = [names.index(name) for name in op.signature.input_names if name in names]
    return order if len(order) == len(names) and order != sorted(order) else None


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


def _fused(node: Node) -> bool:
    """Whether a node holds a graph of fused operators, which MXNet writes without versions."""
    return node.op is not None and "subgraphs" in node.op.signature.schema and node.op.rules.unrolled is None


def _as_dict(graph: Graph, versioned: bool = True) -> dict[str, Json]:
    number = {node: i for i, node in enumerate(graph.nodes)}
    version = versions(graph) if versioned else {node: [0] * len(node.inputs) for node in graph.nodes}
    nodes, rows = [], [0]
    for node in graph.nodes:
        written: dict[str, Json] = {"op": stored_name(node), "name": node.name}
        attrs = stored_attrs(node)
        if attrs:
            written["attrs"] = attrs
        inputs = [[number[source], i, v] for (source, i), v in zip(node.inputs, version.get(node, ()))]
        order = None if node.op is None else stored_order(node.op, node.attrs)
        written["inputs"] = inputs if order is None else [inputs[place] for place in order]
        inner = bodies(node)
        if inner:
            written["subgraphs"] = [_as_dict(graph, not _fused(node)) for graph in inner]
        nodes.append(written)
        rows.append(rows[-1] + _count(node))
    return {"nodes": nodes, "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.op is None],
            "node_row_ptr": rows, "heads": [[number[node], i, 0] for node, i in graph.heads]}


_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _quoted(text: str) -> str:
    """A text in quotes, with MXNet's escapes; other control characters are unchanged."""
    quoted = encode_basestring(text)
    return f'"{text.translate(_ESCAPES)}"' if "\\" in quoted else quoted


def _text(value: Json, margin: str = "") -> str:
    """JSON formatted as by MXNet: short lists and dicts of one item on one line, and a space behind the comma at a
    line's end."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    inner = margin + "  "
    if isinstance(value, dict):
        first, last, tall = "{", "}", len(value) > 1
        parts = [f"{_quoted(key)}: {_quoted(part) if part.__class__ is str else _text(part, inner)}"
                 for key, part in value.items()]
    else:
        assert isinstance(value, Sequence)
        item = value[0] if value else None
        first, last, tall = "[", "]", len(value) > 10 or isinstance(item, dict)
        if isinstance(item, list) and not tall:  # inputs or heads, of three numbers each
            return str(value)
        parts = [_text(part, inner) for part in value]
    if not tall:
        return first + ", ".join(parts) + last
    between = f", \n{inner}"
    return f"{first}\n{inner}{between.join(parts)}\n{margin}{last}"


def _without_casts(graph: Graph) -> Graph:
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
    graph = _without_casts(symbol._graph()) if remove_amp_cast else symbol._graph()
    attrs: dict[str, Json] = {"is_np_shape": ["int", 1]} if MODE.np_shape else {}
    return _text({**_as_dict(graph), "attrs": {**attrs, "mxnet_version": ["int", VERSION]}})


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


class _Stored(NamedTuple):
    """A node of the file, after its JSON types were checked."""

    place: str
    op: str
    name: str
    texts: dict[str, str]
    inputs: list[tuple[int, int, int]]  # node, output, version
    subgraphs: Sequence[Json]


class _Loader:
    """Reads one file. Each method checks what it reads; errors name the file ``name``."""

    def __init__(self, name: str):
        self.name = name
        self.version = VERSION
        self.unmarked = False  # whether 0 means an unknown dimension in the file, but not in this program
        self.strangers: dict[tuple[Op, str], list[str]] = {}  # nodes by unknown attribute

    def fail(self, place: str, what: str) -> NoReturn:
        raise FileFormatError(f"{self.name}: {place}: {what}" if place else f"{self.name}: {what}")

    # ---------------------------------------------------------------------------------------- types

    def keys(self, place: str, read: Json, valid: Set[str], needed: Set[str]) -> Mapping[str, Json]:
        if not isinstance(read, dict):
            self.fail(place, f"expected an object in braces, got {_short(read)}")
        if not read.keys() <= valid:
            unknown = next(key for key in read if key not in valid)
            self.fail(place, f"unknown key {unknown!r}. {did_you_mean(unknown, valid)}")
        if not read.keys() >= needed:
            self.fail(place, f"{next(key for key in needed if key not in read)!r} is missing")
        return read

    def items(self, place: str, what: str, read: Json) -> Sequence[Json]:
        if not isinstance(read, list):
            self.fail(place, f"{what}: expected a list, got {_short(read)}")
        return read

    def number(self, place: str, what: str, read: Json, end: int | None = None) -> int:
        if type(read) is not int or read < 0 or (end is not None and read >= end):
            limit = "" if end is None else f" below {end}"
            self.fail(place, f"{what}: expected a whole number{limit}, got {_short(read)}")
        return read

    def string(self, place: str, what: str, read: Json) -> str:
        if not isinstance(read, str):
            self.fail(place, f"{what}: expected text, got {_short(read)}")
        if not read.isascii() and any("\ud800" <= letter <= "\udfff" for letter in read):
            self.fail(place, f"{what}: half of a character, {read!r}")
        return read

    def entry(self, place: str, kind: str, i: int, read: Json, end: int, total: int) -> tuple[int, int, int]:
        """Read ``[node, output]`` or ``[node, output, version]``; the index of the node is below ``end``."""
        if read.__class__ is list and len(read) == 3:
            number, index, version = read
            if (number.__class__ is index.__class__ is version.__class__ is int and 0 <= number < end
                    and index >= 0 <= version):
                return number, index, version
        what = f"{kind} {i}"
        if len(self.items(place, what, read)) not in (2, 3):
            self.fail(place, f"{what}: expected [node, output, version], got {_short(read)}")
        parts = [self.number(place, what, part) for part in self.items(place, what, read)]
        if parts[0] >= total:
            self.fail(place, f"{what} is an output of node {parts[0]}, but there are {total} nodes")
        if parts[0] >= end:
            self.fail(place, f"{what} is an output of node {parts[0]}, which comes later")
        return parts[0], parts[1], parts[2] if len(parts) == 3 else 0

    # ---------------------------------------------------------------------------------------- graphs

    def graph(self, read: Json, depth: int = 0, place: str = "") -> Graph:
        """Read the graph of a JSON object."""
        if depth > _DEEPEST:
            self.fail(place, f"graphs within graphs, {depth} deep")
        top = self.keys(place, read, _GRAPH_KEYS, _GRAPH_NEEDED)
        if depth == 0:
            self.version = self.find_version(top)
            attrs = top.get("attrs", {})
            self.unmarked = MODE.np_shape and isinstance(attrs, dict) and "is_np_shape" not in attrs
        inside = f"{place}, " if place else ""
        rows = self.items(place, "nodes", top["nodes"])
        total = len(rows)
        stored = [self.stored(i, total, row, inside) for i, row in enumerate(rows)]
        heads = [self.entry(place, "head", i, head, total, total)
                 for i, head in enumerate(self.items(place, "heads", top["heads"]))]
        if not heads:
            self.fail(place, "'heads' is empty: the graph has no outputs")
        for number in self.items(place, "arg_nodes", top["arg_nodes"]):
            self.number(place, "arg_nodes", number, total)
        counts = self.counts(place, top, stored, heads)
        nodes: list[Node] = []
        for i, row in enumerate(stored):
            inputs = [self.picked(row.place, "input", j, nodes, entry) for j, entry in enumerate(row.inputs)]
            nodes.append(self.node(row, i, inputs, counts[i], depth))
        return Graph([self.picked(place, "head", i, nodes, entry) for i, entry in enumerate(heads)])

    def find_version(self, top: Mapping[str, Json]) -> int:
        """The version of MXNet that wrote the file. Files of 0.8 have none."""
        attrs = top.get("attrs", {})
        if not isinstance(attrs, dict):
            self.fail("attrs", f"expected an object in braces, got {_short(attrs)}")
        if "mxnet_version" not in attrs:
            return 800
        parts = self.items("attrs", "mxnet_version", attrs["mxnet_version"])
        if len(parts) != 2 or parts[0] != "int":
            self.fail("attrs", f'mxnet_version: expected ["int", number], got {_short(parts)}')
        version = self.number("attrs", "mxnet_version", parts[1])
        if version > VERSION:
            warn(f"{self.name} was written by version {_dotted(version)}, newer than {_dotted(VERSION)}, the newest "
                 f"known layout: the meaning of entries may have changed")
        return version

    def stored(self, i: int, total: int, read: Json, inside: str) -> _Stored:
        """Read node ``i`` and check its JSON types."""
        place = f"{inside}node {i}"
        if isinstance(read, dict) and isinstance(read.get("name"), str):
            place = f"{place} {read['name']!r}"
        row = self.keys(place, read, _NODE_KEYS, _NODE_NEEDED)
        if "attrs" in row and "attr" in row:
            self.fail(place, "expected either 'attrs' or 'attr', got both")
        texts: dict[str, str] = {}
        for key in _ATTRIBUTES:
            if key not in row:
                continue
            attrs = row[key]
            if not isinstance(attrs, dict):
                self.fail(place, f"{key}: expected an object in braces, got {_short(attrs)}")
            for name, text in attrs.items():
                if not (text.__class__ is str and text.isascii() and name.isascii()):
                    self.string(place, "attribute", name)
                    self.string(place, f"attribute {name}", text)
                texts[name] = text
        if "control_deps" in row:
            dependencies = self.items(place, "control_deps", row["control_deps"])
            for number in dependencies:
                self.number(place, "control_deps", number, total)
            if dependencies:
                warn(f"{self.name}: {place}: control dependencies are not kept: steps run in the order of the graph")
        if "backward_source_id" in row and type(row["backward_source_id"]) is not int:
            self.fail(place, f"backward_source_id: expected a number, got {_short(row['backward_source_id'])}")
        inputs = [self.entry(place, "input", j, entry, i, total)
                  for j, entry in enumerate(self.items(place, "inputs", row["inputs"]))]
        return _Stored(place, self.string(place, "op", row["op"]), self.string(place, "name", row["name"]), texts,
                       inputs, self.items(place, "subgraphs", row["subgraphs"]) if "subgraphs" in row else ())

    def counts(self, place: str, top: Mapping[str, Json], stored: list[_Stored], heads: list[tuple[int, int, int]]
               ) -> list[int]:
        """The number of outputs of each node that the file suggests, for nodes whose operator is unknown."""
        numbers = [1] * len(stored)
        for number, index, _ in (*heads, *(entry for row in stored for entry in row.inputs)):
            numbers[number] = max(numbers[number], index + 1)
        rows = [self.number(place, "node_row_ptr", row)
                for row in self.items(place, "node_row_ptr", top.get("node_row_ptr", []))]
        if len(rows) != len(stored) + 1:  # missing, or not of these nodes: MXNet does not read it, either
            return numbers
        return [max(most, after - before) for most, before, after in zip(numbers, rows, rows[1:])]

    def picked(self, place: str, kind: str, i: int, nodes: list[Node], entry: tuple[int, int, int]) -> Entry:
        number, index, _ = entry
        node = nodes[number]
        if index >= node.count:
            self.fail(place, f"{kind} {i} is output {index} of node {node.name!r}, which has {node.count}")
        return node, index

    # ---------------------------------------------------------------------------------------- nodes

    def node(self, stored: _Stored, i: int, inputs: list[Entry], count: int, depth: int) -> Node:
        """Make a node of the graph, converted to the current version."""
        texts = stored.texts
        if self.version < VERSION:
            texts = {hide(name): text for name, text in texts.items()}
        where = Where((self.name, f"node {i}"))
        if stored.op == "null":
            if inputs:
                self.fail(stored.place, f"a variable has no inputs, got {len(inputs)}")
            if self.unmarked and "__shape__" in texts:
                dims = mxnet_shape(declared_shape(texts.pop("__shape__"), np_shape=False))
                texts.update({} if dims is None else {"__shape__": to_text(dims)})
            return Node(None, stored.name, tags=texts, where=where)
        self.before_905(stored, texts)
        op_type = None
        if stored.op == "Custom":
            if "op_type" not in texts:
                self.fail(stored.place, "Custom needs the attribute 'op_type', the name of the operator")
            op_type = texts["op_type"]
        op = lookup(stored.op, op_type)
        if op is not None and "subgraphs" in op.signature.schema:
            return self.with_bodies(stored, op, texts, inputs, depth, where)
        if op is None or stored.subgraphs:
            return self.placeholder(stored, op_type, texts, inputs, count, depth, where)
        moved = self.inherited(op, texts)
        try:
            attrs, written, tags = sort_attributes(op, texts)
        except Exception as error:
            note(error, f"{self.name}: {stored.place}")
            raise
        if tags:
            self.note_strange(stored, op, strange(op, tags))
        self.sane(stored, op, attrs, inputs)
        if self.version < 900:  # such files have no nodes for auxiliary states
            inputs += [(Node(None, f"{stored.name}_{name}", tags=texts, where=where), 0)
                       for name in op.signature.inputs(attrs)[len(inputs):]]
        inputs = self.arranged(stored, op, attrs, inputs)
        if self.version < VERSION:
            tags.update(self.hand_down(stored, op, dict(zip(op.signature.inputs(attrs), inputs)), moved))
        return Node(op, stored.name, attrs, inputs, written, tags, where)

    def arranged(self, stored: _Stored, op: Op, attrs: Attrs, inputs: list[Entry]) -> list[Entry]:
        """The inputs of a node in the order of its signature."""
        names = op.signature.inputs(attrs)
        if len(inputs) != len(names):
            self.fail(stored.place, f"operator {op.name}: expected {len(names)} inputs ({listed(names)}), got "
                                    f"{len(inputs)}")
        order = stored_order(op, attrs)
        return inputs if order is None else [entry for _, entry in sorted(zip(order, inputs), key=lambda pair: pair[0])]

    def with_bodies(self, stored: _Stored, op: Op, texts: dict[str, str], inputs: list[Entry], depth: int,
                    where: Where) -> Node:
        """Make a node that holds graphs: a loop, a branch, or fused operators."""
        subgraphs = tuple(Symbol(self.graph(inner, depth + 1, f"{stored.place}, subgraph {k}").heads)
                          for k, inner in enumerate(stored.subgraphs))
        self.note_strange(stored, op, strange(op, texts))
        try:
            attrs, written, tags = sort_attributes(op, texts, subgraphs=subgraphs)
            if op.rules.unrolled is not None:
                check_locations(op.name, attrs, len(inputs))
            else:
                inputs = self.arranged(stored, op, attrs, inputs)
        except Exception as error:
            note(error, f"{self.name}: {stored.place}")
            raise
        return Node(op, stored.name, attrs, inputs, written, tags, where)

    def note_strange(self, stored: _Stored, op: Op, attributes: Iterable[str]) -> None:
        """Record attributes that an operator does not have, such as those of a newer version."""
        for attribute in attributes:
            self.strangers.setdefault((op, attribute), []).append(stored.name)

    def sane(self, stored: _Stored, op: Op, attrs: Attrs, inputs: list[Entry]) -> None:
        """Refuse an attribute that counts the inputs and exceeds their number."""
        count = attrs.get(op.signature.variadic) if op.signature.variadic else None
        if isinstance(count, int) and count > len(inputs):
            self.fail(stored.place, f"operator {op.name}: {op.signature.variadic} is {count}, "
                                    f"the node has {len(inputs)} inputs")

    def placeholder(self, stored: _Stored, op_type: str | None, texts: dict[str, str], inputs: list[Entry],
                    count: int, depth: int, where: Where) -> Node:
        """Make a node whose operator is not registered (yet). The last inputs, if they are variables with a version
        above 0, are taken as auxiliary states."""
        if count > _MOST_OUTPUTS:
            self.fail(stored.place, f"{count} outputs, more than anybody means")
        version = [entry[2] for entry in stored.inputs]
        states = 0
        while states < len(inputs) and version[-1 - states] and inputs[-1 - states][0].op is None:
            states += 1
        subgraphs = [self.graph(inner, depth + 1, f"{stored.place}, subgraph {k}")
                     for k, inner in enumerate(stored.subgraphs)]
        op = Placeholder(stored.op, op_type, stored.name, self.name, version, subgraphs).operator(
            len(inputs) - states, states, count)
        written = {name: text for name, text in texts.items() if not is_tag(name)}
        tags = {name: text for name, text in texts.items() if is_tag(name)}
        return Node(op, stored.name, op.complete(written), inputs, written, tags, where)

    # ---------------------------------------------------------------------------------------- older versions

    def inherited(self, op: Op, texts: dict[str, str]) -> dict[str, str]:
        """Remove and return attributes such as ``weight_lr_mult``: before 1.9.1, nodes could hold attributes of their
        inputs."""
        if self.version >= VERSION or op.signature.schema.open:
            return {}
        moved = [name for name in texts if name not in op.signature.schema and not name.startswith("__")
                 and any(name.endswith(f"_{ending}") for ending in HIDDEN)]
        return {name: texts.pop(name) for name in moved}

    def before_905(self, stored: _Stored, texts: dict[str, str]) -> None:
        """Convert attributes of files before 0.9.5: ``axis=-1`` meant all axes, and ``mode`` of SoftmaxActivation was
        ``type``."""
        if self.version < 905 and stored.op == "SoftmaxActivation" and "type" in texts:
            texts.setdefault("mode", texts.pop("type"))
        if self.version < 905 and stored.op in ("argmax", "argmin") and texts.get("axis") == "-1":
            del texts["axis"]

    def hand_down(self, stored: _Stored, op: Op, inputs: dict[str, Entry], moved: dict[str, str]) -> dict[str, str]:
        """Move to variables the attributes that their node held for them, and the defaults that 0.9.4 introduced.
        Returns attributes of inputs that are no variables."""
        tags: dict[str, dict[str, str]] = {}
        if self.version < 904:
            tags = {name: dict(tag) for name, tag in op.signature.tags.items()}
        unassigned = {}
        for key, text in moved.items():
            ending = next(ending for ending in HIDDEN if key.endswith(f"_{ending}"))
            name = key[:-len(ending) - 1]
            if name in inputs and inputs[name][0].op is None:
                inputs[name][0].tags = {**inputs[name][0].tags, hide(ending): text}
            else:
                unassigned[key] = text
        for name, tag in tags.items():
            if name in inputs and inputs[name][0].op is None:
                inputs[name][0].tags = {**tag, **inputs[name][0].tags}
        self.note_strange(stored, op, unassigned)
        return unassigned


def _short(value: object) -> str:
    """A value of a file as text, shortened for an error."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _dotted(version: int) -> str:
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


@uncollected
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
        raise TypeError(f"loads: expected text, got {type(text).__name__}")
    loader = _Loader(name)
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
    with reading(name) as file:
        content = file.read()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{name}: byte {error.start}: expected UTF-8, got 0x{content[error.start]:02x}") from None
    return loads(text, name)


# Symbols are pickled as JSON text.
copyreg.pickle(Symbol, lambda symbol: (loads, (dumps(symbol),)))
