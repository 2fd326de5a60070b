"""The reader of graphs as JSON text, in the layouts of Apache MXNet 0.8 to 1.9.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple, NoReturn, TypeAlias

from opreg.core.attrs import to_text
from opreg.core.graph import Entry, Graph, Node, declared_shape
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.placeholder import PYTHON_CODE, Placeholder, is_tag, lookup, sort_attributes, strange
from opreg.core.rules import Attrs
from opreg.errors import FileFormatError, Where, did_you_mean, note, other_count, warn

from .control_flow import check_locations
from .infer import mxnet_shape
from .naming import HIDDEN, hide
from .symbol import Symbol

__all__ = ["Json", "Loader", "VERSION", "stored_order"]

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
_DEEPEST = 32  # the most levels of graphs within graphs


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


class _StoredNode(NamedTuple):
    """A node of the file, after its JSON types were checked."""

    place: str
    op: str
    name: str
    texts: dict[str, str]
    inputs: list[tuple[int, int, int]]  # node, output, version
    subgraphs: Sequence[Json]


class Loader:
    """Reads one file. Each method checks what it reads; errors name the file ``name``."""

    def __init__(self, name: str):
        self.name = name
        self.version = VERSION
        self.unmarked = False  # whether the file has 0 for an unknown dimension, where this program has another mark
        self.strangers: dict[tuple[Op, str], list[str]] = {}  # nodes by unknown attribute

    def fail(self, place: str, what: str) -> NoReturn:
        """Raise the error of a file, with the place in it."""
        raise FileFormatError(f"{self.name}: {place}: {what}" if place else f"{self.name}: {what}")

    # ---------------------------------------------------------------------------------------- types

    def keys(self, place: str, read: Json, valid: Set[str], needed: Set[str]) -> Mapping[str, Json]:
        """An object, after a check of its keys."""
        if not isinstance(read, dict):
            self.fail(place, f"expected an object in braces, got {_short(read)}")
        if not read.keys() <= valid:
            unknown = next(key for key in read if key not in valid)
            self.fail(place, f"unknown key {unknown!r}. {did_you_mean(unknown, valid)}")
        if not read.keys() >= needed:
            self.fail(place, f"{next(key for key in needed if key not in read)!r} is missing")
        return read

    def items(self, place: str, what: str, read: Json) -> Sequence[Json]:
        """A list, after a check that it is one."""
        if not isinstance(read, list):
            self.fail(place, f"{what}: expected a list, got {_short(read)}")
        return read

    def number(self, place: str, what: str, read: Json, end: int | None = None) -> int:
        """A natural number, below ``end`` if that is given."""
        if type(read) is not int or read < 0 or (end is not None and read >= end):
            limit = "" if end is None else f" below {end}"
            self.fail(place, f"{what}: expected a whole number{limit}, got {_short(read)}")
        return read

    def string(self, place: str, what: str, read: Json) -> str:
        """A text, after a check that it is one."""
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
        stored = [self.read_node(i, total, row, inside) for i, row in enumerate(rows)]
        heads = [self.entry(place, "head", i, head, total, total)
                 for i, head in enumerate(self.items(place, "heads", top["heads"]))]
        if not heads:
            self.fail(place, "'heads' is empty: the graph has no outputs")
        for number in self.items(place, "arg_nodes", top["arg_nodes"]):
            self.number(place, "arg_nodes", number, total)
        counts = self.counts(place, top, stored, heads)
        nodes: list[Node] = []
        for i, row in enumerate(stored):
            inputs = [self.entry_of(row.place, "input", j, nodes, entry) for j, entry in enumerate(row.inputs)]
            nodes.append(self.node(row, i, inputs, counts[i], depth))
        return Graph([self.entry_of(place, "head", i, nodes, entry) for i, entry in enumerate(heads)])

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
            warn(f"{self.name} was written by version {_version_as_text(version)}, newer than "
                 f"{_version_as_text(VERSION)}, the newest known layout: the meaning of entries may have changed")
        return version

    def read_node(self, i: int, total: int, read: Json, inside: str) -> _StoredNode:
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
        return _StoredNode(place, self.string(place, "op", row["op"]), self.string(place, "name", row["name"]), texts,
                           inputs, self.items(place, "subgraphs", row["subgraphs"]) if "subgraphs" in row else ())

    def counts(self, place: str, top: Mapping[str, Json], stored: list[_StoredNode], heads: list[tuple[int, int, int]]
               ) -> list[int]:
        """The number of outputs of each node that the file suggests, for nodes whose operator is unknown."""
        numbers = [1] * len(stored)
        for number, index, _ in (*heads, *(entry for row in stored for entry in row.inputs)):
            numbers[number] = max(numbers[number], index + 1)
        rows = [self.number(place, "node_row_ptr", row)
                for row in self.items(place, "node_row_ptr", top.get("node_row_ptr", []))]
        if len(rows) != len(stored) + 1:  # the list is missing or wrong; MXNet ignores it, too
            return numbers
        return [max(most, after - before) for most, before, after in zip(numbers, rows, rows[1:])]

    def entry_of(self, place: str, kind: str, i: int, nodes: list[Node], entry: tuple[int, int, int]) -> Entry:
        """The output of a node that an entry names, after a check that the node has it."""
        number, index, _ = entry
        node = nodes[number]
        if index >= node.count:
            self.fail(place, f"{kind} {i} is output {index} of node {node.name!r}, which has {node.count}")
        return node, index

    # ---------------------------------------------------------------------------------------- nodes

    def node(self, stored: _StoredNode, i: int, inputs: list[Entry], count: int, depth: int) -> Node:
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
        moved = self.take_old_attributes(op, texts)
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
        inputs = self.order_inputs(stored, op, attrs, inputs)
        if self.version < VERSION:
            tags.update(self.hand_down(stored, op, dict(zip(op.signature.inputs(attrs), inputs)), moved))
        return Node(op, stored.name, attrs, inputs, written, tags, where)

    def order_inputs(self, stored: _StoredNode, op: Op, attrs: Attrs, inputs: list[Entry]) -> list[Entry]:
        """The inputs of a node in the order of its signature."""
        names = op.signature.inputs(attrs)
        if len(inputs) != len(names):
            self.fail(stored.place, f"operator {op.name}: {other_count(names, len(inputs))}")
        order = stored_order(op, attrs)
        return inputs if order is None else [entry for _, entry in sorted(zip(order, inputs), key=lambda pair: pair[0])]

    def with_bodies(self, stored: _StoredNode, op: Op, texts: dict[str, str], inputs: list[Entry], depth: int,
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
                inputs = self.order_inputs(stored, op, attrs, inputs)
        except Exception as error:
            note(error, f"{self.name}: {stored.place}")
            raise
        return Node(op, stored.name, attrs, inputs, written, tags, where)

    def note_strange(self, stored: _StoredNode, op: Op, attributes: Iterable[str]) -> None:
        """Record attributes that an operator does not have, such as those of a newer version."""
        for attribute in attributes:
            self.strangers.setdefault((op, attribute), []).append(stored.name)

    def sane(self, stored: _StoredNode, op: Op, attrs: Attrs, inputs: list[Entry]) -> None:
        """Refuse an attribute that counts the inputs and exceeds their number."""
        count = attrs.get(op.signature.variadic) if op.signature.variadic else None
        if isinstance(count, int) and count > len(inputs):
            self.fail(stored.place, f"operator {op.name}: {op.signature.variadic} is {count}, "
                                    f"the node has {len(inputs)} inputs")

    def placeholder(self, stored: _StoredNode, op_type: str | None, texts: dict[str, str], inputs: list[Entry],
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
        written = {name: text for name, text in texts.items() if not is_tag(name)}
        tags = {name: text for name, text in texts.items() if is_tag(name)}
        op = Placeholder(stored.op, op_type, stored.name, self.name, version, subgraphs, tags.get(PYTHON_CODE)
                         ).operator(len(inputs) - states, states, count)
        return Node(op, stored.name, op.complete(written), inputs, written, tags, where)

    # ---------------------------------------------------------------------------------------- older versions

    def take_old_attributes(self, op: Op, texts: dict[str, str]) -> dict[str, str]:
        """Remove and return attributes such as ``weight_lr_mult``: before 1.9.1, nodes could hold attributes of their
        inputs."""
        if self.version >= VERSION or op.signature.schema.open:
            return {}
        moved = [name for name in texts if name not in op.signature.schema and not name.startswith("__")
                 and any(name.endswith(f"_{ending}") for ending in HIDDEN)]
        return {name: texts.pop(name) for name in moved}

    def before_905(self, stored: _StoredNode, texts: dict[str, str]) -> None:
        """Convert attributes of files before 0.9.5: ``axis=-1`` meant all axes, and ``mode`` of SoftmaxActivation was
        ``type``."""
        if self.version < 905 and stored.op == "SoftmaxActivation" and "type" in texts:
            texts.setdefault("mode", texts.pop("type"))
        if self.version < 905 and stored.op in ("argmax", "argmin") and texts.get("axis") == "-1":
            del texts["axis"]

    def hand_down(self, stored: _StoredNode, op: Op, inputs: dict[str, Entry], moved: dict[str, str]) -> dict[str, str]:
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


def _version_as_text(version: int) -> str:
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"
