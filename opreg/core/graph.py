"""Node and Graph: immutable graphs of operators.

A node applies an operator to entries of other nodes; an entry is ``(node, output index)``. A variable is a node without
operator. Passes do not modify nodes, but make new ones; users may set the name and tags of one in a symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ..errors import OpError, Where, note
from . import effects
from .attrs import Attributes, Field
from .op import Op
from .reports import report
from .spec import Shape, Spec, parse_shape

__all__ = ["Node", "Entry", "Graph", "INFERENCE", "topological", "reachable", "rewrite", "verify", "fail",
           "declared_shape"]

#: The tag of a node that computes as in inference, even in a plan for training.
INFERENCE = "__inference__"


class Node:
    """An application of an operator, or a variable.

    Attributes
    ----------
    op : Op or None
        The operator; None for a variable.
    name : str
        The name, which should be unique in a graph, but need not be.
    attrs : mapping
        Complete typed attributes.
    keywords : mapping
        The attributes that the caller passed, without defaults, for files.
    tags : mapping of str to str
        Attributes that the operator does not declare: ``__ctx_group__``, ``__lr_mult__``, …
    inputs : tuple of Entry
        Arguments, then auxiliary states.
    where : Where or None
        The line of user code that made it.
    """

    __slots__ = ("op", "name", "attrs", "keywords", "tags", "inputs", "where", "_count", "__weakref__")

    def __init__(self, op: Op | None, name: str, attrs: Mapping[str, Any] = {}, inputs: Sequence[Entry] = (),
                 keywords: Mapping[str, Any] | None = None, tags: Mapping[str, str] = {}, where: Where | None = None):
        if op is not None and attrs.__class__ is dict:
            attrs = Attributes(attrs)
        self.op, self.name, self.attrs, self.inputs = op, name, attrs, tuple(inputs)
        self.keywords = attrs if keywords is None else keywords
        self.tags, self.where = tags, where
        self._count = 0

    def __repr__(self) -> str:
        return report([f"<{'variable' if self.op is None else self.op.name} {self.name}>"])

    @property
    def built_in(self) -> str:
        """The name of its built-in operator; empty for variables and for users' operators."""
        op = self.op
        return "" if op is None or op.where is not None else op.name

    @property
    def count(self) -> int:
        """The number of outputs, hidden ones included."""
        if not self._count:
            self._count = 1 if self.op is None else len(self.op.signature.outputs(self.attrs))
        return self._count

    def with_inputs(self, inputs: Sequence[Entry]) -> Node:
        """The node with other inputs; the node itself if they are the same."""
        return self if tuple(inputs) == self.inputs else self.copy(inputs)

    def copy(self, inputs: Sequence[Entry], name: str | None = None, attrs: Mapping[str, Any] | None = None,
             tags: Mapping[str, str] = {}) -> Node:
        """A copy of the node with other inputs and, if given, another name, other attributes and additional tags."""
        return Node(self.op, self.name if name is None else name, self.attrs if attrs is None else attrs, inputs,
                    self.keywords, {**self.tags, **tags} if tags else self.tags, self.where)

    def exchange(self, other: Node) -> None:
        """Exchange all content of two nodes, so that readers of one read the other."""
        for slot in ("op", "name", "attrs", "keywords", "tags", "inputs", "where", "_count"):
            mine, yours = getattr(self, slot), getattr(other, slot)
            setattr(self, slot, yours)
            setattr(other, slot, mine)

    def in_training(self, is_train: bool | None) -> bool:
        """Whether it computes as in training, given the mode of its plan."""
        return bool(is_train) and INFERENCE not in self.tags

    def describe(self) -> str:
        """The node as text for an error."""
        kind = "variable" if self.op is None else f"operator {self.op.name}"
        origin = "" if self.where is None else f", made at {self.where}"
        return f"{kind}, node {self.name!r}{origin}"


Entry = tuple[Node, int]


def fail(error: Exception, node: Node, specs: Sequence[Spec] = ()) -> NoReturn:
    """Raise an error of a node's rules or kernels, with a note that names the node; see ``Op.fail``."""
    try:
        note(error, node.describe())
        if node.op is None:
            raise error
        node.op.fail(error, specs, node.name)
    finally:
        del error  # its traceback references this frame


def declared_shape(text: str, np_shape: bool | None = None) -> Shape | None:
    """The shape that a variable's tag ``__shape__`` declares; see ``parse_shape``."""
    return parse_shape(Field("__shape__", tuple[int, ...])(text), np_shape)


def topological(heads: Iterable[Entry]) -> list[Node]:
    """The nodes that the heads depend on, inputs before users, in depth-first order of first use."""
    order: list[Node] = []
    visited: set[Node] = set()
    for head, _ in heads:
        if head in visited:
            continue
        visited.add(head)
        stack = [(head, iter(head.inputs))]
        while stack:
            node, sources = stack[-1]
            for source, _ in sources:
                if source not in visited:
                    visited.add(source)
                    if source.inputs:
                        stack.append((source, iter(source.inputs)))
                        break
                    order.append(source)
            else:
                order.append(node)
                stack.pop()
    return order


class Graph:
    """Heads, and the nodes that they depend on.

    Examples
    --------
    >>> x = Node(None, "x")
    >>> Graph([(x, 0)]).nodes
    [<variable x>]
    """

    __slots__ = ("heads", "nodes", "_variables")

    def __init__(self, heads: Sequence[Entry], nodes: list[Node] | None = None):
        self.heads = tuple(heads)
        self.nodes = topological(self.heads) if nodes is None else nodes
        self._variables: tuple[list[Node], list[Node]] | None = None

    def variables(self) -> tuple[list[Node], list[Node]]:
        """Arguments and auxiliary states, in order of first use."""
        if self._variables is None:
            self._variables = self._arguments_and_states()
        return self._variables

    def _arguments_and_states(self) -> tuple[list[Node], list[Node]]:
        auxiliary: set[Node] = set()
        for node in self.nodes:
            if node.op is not None and node.op.signature.auxiliary(node.attrs):
                names = node.op.signature.arguments(node.attrs)
                auxiliary.update(source for source, _ in node.inputs[len(names):])
        variables = [node for node in self.nodes if node.op is None]
        return ([node for node in variables if node not in auxiliary],
                [node for node in variables if node in auxiliary])


def reachable(nodes: Sequence[Node], heads: Iterable[Entry], read: bool = False, known_entries: Collection[Entry] = ()
              ) -> list[Node]:
    """The nodes that heads depend on, in the given order, inputs before users.

    Parameters
    ----------
    read : bool
        Whether to leave out nodes of which only the shapes are read, and to include nodes that must run in any case.
    known_entries : collection of entries
        Entries that are computed already, so that their nodes are not needed.
    """
    needed = {entry[0] for entry in heads if entry not in known_entries}
    if read:
        needed.update([node for node in nodes if node.op is not None and effects.runs_unread(node.op, node.attrs)])
    for node in reversed(nodes):
        if node in needed and node.op is not None:
            unread = node.op.traits.unread if read else ()
            for i, entry in enumerate(node.inputs):
                if i not in unread and entry not in known_entries:
                    needed.add(entry[0])
    return [node for node in nodes if node in needed]


def rewrite(graph: Graph, change: Callable[[Node, list[Entry]], Sequence[Entry] | None]) -> Graph:
    """A graph in which ``change(node, inputs)`` replaces nodes.

    ``inputs`` are the node's inputs after earlier replacements. The function returns an entry for each output, or None
    for the same operator on these inputs. This is for graphs of users; bound graphs have an order, specs and contexts,
    which ``Program.rebuild`` maintains.
    """
    became: dict[Entry, Entry] = {}
    for node in graph.nodes:
        inputs = [became.get(entry, entry) for entry in node.inputs]
        new = change(node, inputs)
        if new is None:
            same = node.with_inputs(inputs)
            if same is node:
                continue
            new = [(same, i) for i in range(node.count)]
        for i, entry in enumerate(new):
            if entry[0] is not node:
                became[node, i] = entry
    if not became:
        return graph
    return Graph([became.get(entry, entry) for entry in graph.heads])


def verify(graph: Graph) -> None:
    """Check the invariants of a graph: the order of nodes, the number of inputs, and the indices of outputs.

    Raises
    ------
    OpError
        If one is violated. The error names the first such node.
    """
    visited: set[Node] = set()
    for node in graph.nodes:
        for i, (source, index) in enumerate(node.inputs):
            if source not in visited and i not in node.op.traits.unread:  # type: ignore[union-attr]
                raise OpError(f"{node.describe()}: its input {source.name!r} comes later or is not in the graph")
            if not 0 <= index < source.count:
                raise OpError(f"{node.describe()}: {source.name!r} has no output {index}")
        if node.op is not None:
            expected = len(node.op.signature.inputs(node.attrs))
            if len(node.inputs) != expected:
                raise OpError(f"{node.describe()}: expected {expected} inputs, got {len(node.inputs)}")
        visited.add(node)
    for head, index in graph.heads:
        if head not in visited or not 0 <= index < head.count:
            raise OpError(f"{head.describe()}: is no output {index} of this graph")
