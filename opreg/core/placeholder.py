"""Placeholders: operators of nodes in a file that are not registered.

Graphs with placeholders can be listed, drawn, saved and partly inferred. ``resolve`` replaces placeholders by operators
that have been registered since, and raises an error for those that are missing; it is called before a graph runs. It
also replaces an operator by another one that was registered later under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ..errors import ArgumentError, FileFormatError, OpError, UnknownOperatorError, did_you_mean, note, warn
from .attrs import Attributes, Schema
from .graph import Entry, Graph, Node, rewrite
from .op import Op
from .registry import find, names

__all__ = ["Placeholder", "placeholder", "lookup", "is_tag", "sort_attributes", "strange", "warn_of",
           "PYTHON_CODE", "python_code", "warn_of_python", "resolve"]

_USER = "custom."  # prefix of users' operators in the registry
#: The tag of nodes in files that called Python code.
PYTHON_CODE = "__python__"
_IN_FILES = "Files hold operators: remove the hooks before saving, or register the gradient with mx.operator.define"


class Placeholder(Schema):
    """The schema of an unregistered operator, made for one node of a file, which accepts all attributes.

    Parameters
    ----------
    stored : str
        The name of the operator in the file.
    op_type : str or None
        The name of a user's operator.
    node, file : str
        The names of the node and of the file.
    versions : sequence of int
        The versions of its inputs in the file.
    subgraphs : sequence of Graph
        Bodies of loops and branches.
    python : str or None
        The Python code that the node called in the program that saved it, such as ``gradient hooks``.
    """

    def __init__(self, stored: str, op_type: str | None, node: str, file: str, versions: Sequence[int] = (),
                 subgraphs: Sequence[Graph] = (), python: str | None = None):
        super().__init__([], open=True)
        self.stored, self.op_type, self.node, self.file = stored, op_type, node, file
        self.versions, self.subgraphs, self.python = tuple(versions), tuple(subgraphs), python

    def complete(self, keywords: Mapping[str, Any]) -> Attributes:
        """The attributes as in the file."""
        return Attributes(keywords)

    def operator(self, arguments: int, auxiliary: int, outputs: int) -> Op:
        """Make the placeholder's operator, with these numbers of inputs and outputs."""
        op = Op(self.stored if self.op_type is None else _USER + self.op_type, self,
                [f"arg{i}" for i in range(arguments)], auxiliary=[f"aux{i}" for i in range(auxiliary)],
                outputs=["output"] if outputs == 1 else [f"output{i}" for i in range(outputs)],
                types=lambda ins, outs: (ins, outs), op_type=self.op_type, call=self._refuse,
                differentiate=self._refuse)
        op.shapes(lambda ins, outs: (ins, outs))
        return op

    def _refuse(self, *_: Any) -> NoReturn:
        raise self.missing()

    def missing(self) -> UnknownOperatorError:
        """The error that names the missing operator, its node, and the nearest names."""
        if self.subgraphs:
            return UnknownOperatorError(f"{self.file}: node {self.node!r} needs the operator {self.stored!r} on "
                                        f"{len(self.subgraphs)} inner graphs, which cannot be run")
        if self.python is not None:
            return UnknownOperatorError(f"{self.file}: node {self.node!r} called {self.python}, Python code of the "
                                        f"program that saved it. {_IN_FILES}")
        where = f"{self.file}: node {self.node!r} needs the"
        if self.op_type is None:
            return UnknownOperatorError(f"{where} operator {self.stored!r}, which is not registered. "
                                        + did_you_mean(self.stored, names()))
        users = [name[len(_USER):] for name in names(_USER)]
        nearest = f" {did_you_mean(self.op_type, users)}" if users else ""
        return UnknownOperatorError(f"{where} custom operator {self.op_type!r}, which is not registered: import the "
                                    f"module that registers it first.{nearest}")


def placeholder(node: Node) -> Placeholder | None:
    """The placeholder of a node; None if its operator is registered."""
    schema = None if node.op is None else node.op.signature.schema
    return schema if isinstance(schema, Placeholder) else None


def python_code(node: Node) -> str | None:
    """The noun for the Python code of this program that a node calls, such as ``gradient hooks``; None for operators,
    which have a name in files."""
    op = node.op
    if op is None or op.op_type is not None or placeholder(node) is not None or find(op.name) is not None:
        return None
    return op.doc or "Python code"


def warn_of_python(nodes: Mapping[str, str]) -> None:
    """Warn that a file does not hold the Python code that these nodes call, by name of the node."""
    (name, code), *others = nodes.items()
    more = f" and {len(others)} more" if others else ""
    warn(f"node {name!r}{more}: files do not hold {code}, which is Python code of this program. The file can be listed "
         f"and drawn, but not run. {_IN_FILES}")


def lookup(stored: str, op_type: str | None) -> Op | None:
    """The registered operator of a file's node, or None."""
    if op_type is not None:
        return find(_USER + op_type)
    return None if stored.startswith(_USER) else find(stored)


def is_tag(name: str) -> bool:
    """Whether an attribute is written ``__like_this__`` and belongs to the node, not to its operator."""
    return name.startswith("__") and name.endswith("__")


def strange(op: Op, texts: Mapping[str, str]) -> list[str]:
    """The attributes of a node in a file that its operator does not have.

    Examples
    --------
    >>> strange(find("transpose"), {"axes": "(1, 0)", "__ctx_group__": "dev1", "colour": "red"})
    ['colour']
    """
    if op.op_type is not None or op.signature.schema.open or not op.signature.schema.fields:
        return []
    return [name for name in texts if name not in op.signature.schema and not is_tag(name)]


def warn_of(file: str, op: Op, nodes: Sequence[str], attribute: str) -> None:
    """Warn of an attribute of nodes in a file that their operator does not have."""
    others = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    warn(f"{file}: operator {op.name}, node {nodes[0]!r}{others}: unknown attribute {attribute!r}. It is saved again "
         f"with the graph and has no effect. {did_you_mean(attribute, op.signature.schema.names)}")


def sort_attributes(op: Op, texts: Mapping[str, str], **extra: object
           ) -> tuple[Attributes, dict[str, str], dict[str, str]]:
    """Divide the attributes of a node in a file into those of its operator and tags. ``extra`` are attributes that are
    no text.

    Returns
    -------
    attrs : Attributes
        Complete typed attributes.
    keywords, tags : dict of str
        The operator's attributes as text, and all others.

    Raises
    ------
    AttrError, ArgumentError
        If the operator does not accept a value; and all errors of a user's Prop.

    Examples
    --------
    >>> sort_attributes(find("Flatten"), {"__ctx_group__": "dev1"})
    ({}, {}, {'__ctx_group__': 'dev1'})
    """
    user = op.op_type is not None
    schema = op.signature.schema
    attributes_of_op: dict[str, str] = {}
    tags: dict[str, str] = {}
    for name, text in texts.items():
        of_operator = not is_tag(name) and (user or schema.open or name in schema)
        (attributes_of_op if of_operator else tags)[name] = text
    attributes: dict[str, object] = {**attributes_of_op, **extra}
    if user:
        attributes.pop("op_type", None)
    if op.signature.per_instance and schema.open:
        attributes.update(tags)
    return op.complete(attributes), attributes_of_op, tags


def resolve(graph: Graph, strict: bool = True) -> Graph:
    """Replace placeholders, and operators that were replaced under their names, by the registered operators.

    Parameters
    ----------
    graph : Graph
        The graph.
    strict : bool
        Whether a missing operator is an error; otherwise its placeholder stays.

    Raises
    ------
    UnknownOperatorError
        If an operator is missing. The error names it, its node, the file, and the nearest names.
    FileFormatError, ArgumentError
        If a node does not have the inputs or outputs of the registered operator.

    Examples
    --------
    >>> graph = Graph([(Node(None, "x"), 0)])
    >>> resolve(graph) is graph
    True
    """
    if not any(map(_stale, graph.nodes)):
        return graph
    used: dict[Node, int] = {}
    for source, index in (*graph.heads, *(entry for node in graph.nodes for entry in node.inputs)):
        used[source] = max(used.get(source, 0), index + 1)

    def change(node: Node, inputs: list[Entry]) -> list[Entry] | None:
        if node.op is None or not _stale(node):
            return None
        stands = placeholder(node)
        if stands is None:
            op: Op | None = node.op.current
        else:
            op = None if stands.subgraphs else lookup(stands.stored, stands.op_type)
        if op is None:
            if strict:
                raise stands.missing()  # type: ignore[union-attr]  # only placeholders can be missing
            return None
        new = _apply_operator(op, node, stands, inputs)
        if used[node] > new.count:
            raise _misfit(stands, f"node {node.name!r}: operator {op.name} has {new.count} outputs, but number "
                                  f"{used[node] - 1} is used")
        return [(new, i) for i in range(new.count)]

    return rewrite(graph, change)


def _stale(node: Node) -> bool:
    """Whether the operator of a node is a placeholder or was replaced."""
    op = node.op
    return op is not None and (op.successor is not None or isinstance(op.signature.schema, Placeholder))


def _misfit(stands: Placeholder | None, what: str) -> OpError:
    """The error for a node that does not fit the operator now registered under its name."""
    if stands is not None:
        return FileFormatError(f"{stands.file}: {what}")
    return ArgumentError(f"{what}; the operator was registered again after the symbol was made: make the symbol again")


def _apply_operator(op: Op, node: Node, stands: Placeholder | None, inputs: Sequence[Entry]) -> Node:
    attrs: Attributes
    keywords, tags = node.keywords, node.tags
    try:
        if stands is None:
            attrs = op.complete({**{name: value for name, value in keywords.items() if name != "op_type"},
                                 **(tags if op.signature.per_instance and op.signature.schema.open else {}),
                                 **{name: value for name, value in node.attrs.items() if name == "subgraphs"}})
        else:
            attrs, keywords, tags = sort_attributes(op, {**keywords, **tags})
    except Exception as error:
        note(error, ("" if stands is None else f"{stands.file}: ") + f"node {node.name!r}")
        raise
    if stands is not None:
        for attribute in strange(op, node.keywords):
            warn_of(stands.file, op, [node.name], attribute)
    expected = op.signature.inputs(attrs)
    if len(inputs) != len(expected):
        raise _misfit(stands, f"node {node.name!r}: operator {op.name} has {len(expected)} inputs "
                              f"({', '.join(expected)}), the node has {len(inputs)}")
    return Node(op, node.name, attrs, inputs, keywords, tags, node.where)
