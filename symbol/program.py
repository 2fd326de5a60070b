"""Program: a bound graph on its way to a plan, what the passes take and return."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeAlias, TypeVar

from opreg.core import threads
from opreg.core.comparisons import Check
from opreg.core.graph import Entry, Graph, Node
from opreg.core.rounding import tf32
from opreg.core.slots import Slot
from opreg.core.spec import Spec, as_dtype, size
from opreg.errors import warn
from opreg.ndarray.context import Context
from opreg.typing import Array

from .reduction import Reduced, Reduction, bucketed

__all__ = ["OBSERVED", "Bound", "Program", "nbytes", "replaced", "uncollected"]

P = ParamSpec("P")
R = TypeVar("R")

#: Runs a trace of users' code by this title; its result, and what says that something it read has changed.
OBSERVED = Slot("observers")

Change: TypeAlias = Callable[[Node, dict[Entry, Entry]], Sequence[Node] | None]


def _own(ctx: Context, nbytes: int) -> Array:
    """Memory of its own."""
    return ctx.backend.arena(nbytes, ctx.device_id)


@dataclass
class Bound:
    """The arrays that a graph is bound to: those of its variables and outputs, and requests for their gradients.

    Attributes
    ----------
    graph : Graph
        The forward graph.
    specs : dict by node
        Shapes and dtypes of its entries.
    ctx, group2ctx
        Where nodes compute.
    arrays, contexts : dict by variable
        Arguments and auxiliary states, and where they live.
    grads : dict by variable
        Gradient arrays with their request, ``(array, "write" | "add")``.
    outputs : list of arrays
        Where the heads go.
    head_grads : list of (array or None)
        Where the gradients of the heads arrive; None for losses.
    memo : dict
        State of users' operators between forward and backward.
    recompute : bool or "all"
        Whether backward computes cheap results of forward again, or all it can, which are not kept then.
    tf32 : bool
        Whether products and convolutions of float32 on a GPU may round their factors to TF32.
    arena : function of a context and a number of bytes
        Gives the memory to compute in; it is the plan's own by default.
    reduced : Reduced or None
        Which gradients become those of all ranks of a group.
    unnoted : set of variables
        Those whose arrays are written between runs with no note in ``opreg.core.versions``: nothing that follows from
        their numbers is kept.
    """

    graph: Graph
    specs: dict[Node, list[Spec]]
    ctx: Context
    group2ctx: Mapping[str, Context]
    arrays: dict[Node, Array]
    contexts: dict[Node, Context]
    grads: dict[Node, tuple[Array, str]]
    outputs: list[Array] = field(default_factory=list)
    head_grads: list[Array | None] = field(default_factory=list)
    memo: dict[Any, Any] = field(default_factory=dict)
    recompute: bool | str = False
    tf32: bool = field(default_factory=tf32)
    arena: Callable[[Context, int], Array] = _own
    reduced: Reduced | None = None
    unnoted: Set[Node] = frozenset()

    def reduce(self, reduction: Reduction | None) -> None:
        """Let gradients become those of all ranks."""
        self.reduced = None if reduction is None else bucketed(reduction, self.graph, {
            node: (self.specs[node][0], self.contexts[node], req) for node, (_, req) in self.grads.items()})

    @property
    def reduction(self) -> Reduction | None:
        """How they do."""
        return None if self.reduced is None else self.reduced.reduction

    def place(self, node: Node) -> Context:
        """Context of a node."""
        return self.group2ctx.get(node.tags.get("__ctx_group__", ""), self.ctx)

    @property
    def places(self) -> list[Context]:
        """Contexts of the outputs."""
        return [self.ctx if node.op is None else self.place(node) for node, _ in self.graph.heads]


@dataclass
class Program:
    """Nodes in the order they will run, and what is known of them.

    Attributes
    ----------
    bound : Bound
        What it was made of; never changed.
    is_train : bool
        The mode that its forward is planned for.
    backward : bool or None
        The mode that gradients are taken in; None where none are.
    watched : bool
        Whether every node keeps a step of its own, whose result a monitor can be told.
    nodes : list of Node
        Inputs before users, forward before backward.
    heads : list of Entry
        Outputs, then the gradients of ``wanted``.
    wanted : list of variables
        Those of ``bound.grads`` that the outputs depend on.
    destinations : list of (array, request)
        Where the heads behind the outputs go, once everything has run.
    specs, arrays, contexts
        As in ``bound``, extended by the passes; in the end every node has specs and a context.
    pinned : dict of Entry to array
        Results between that have a place of their own.
    outside : dict of BodyReads or Node to (str, function), or None
        By what users' code read while the program was made: the name of its operator, and what says whether that has
        changed; None where nobody asks.
    """

    bound: Bound
    is_train: bool
    nodes: list[Node]
    heads: list[Entry]
    wanted: list[Node]
    specs: dict[Node, list[Spec]]
    arrays: dict[Node, Array]
    contexts: dict[Node, Context]
    destinations: list[tuple[Array, str]] = field(default_factory=list)
    backward: bool | None = None
    watched: bool = False
    pinned: dict[Entry, Array] = field(default_factory=dict)
    outside: dict[Any, tuple[str, Check | None]] | None = field(default_factory=dict)

    @classmethod
    def of(cls, bound: Bound, is_train: bool, backward: bool | None = None, watched: bool = False) -> Program:
        """The forward graph alone."""
        return cls(bound, is_train, list(bound.graph.nodes), list(bound.graph.heads), [], dict(bound.specs),
                   dict(bound.arrays), dict(bound.contexts), backward=backward, watched=watched)

    def noting(self, nodes: Iterable[Node], trace: Callable[[], R]) -> R:
        """The result of a trace of users' code, the bodies or the gradients of nodes. The reads of the code are noted:
        by its byte code where that tells all of them, else while it runs."""
        outside = self.outside
        if outside is None:
            return trace()
        opaque: dict[Any, Node] = {}
        for node in nodes:
            reads = node.attrs.outside() if hasattr(node.attrs, "outside") else None
            if reads is not None and reads.version() is None:
                opaque[reads] = node
            elif reads is not None and reads not in outside:
                outside[reads] = _title(node), reads.check()
        if not opaque:
            return trace()
        title = " and ".join(dict.fromkeys(map(_title, opaque.values())))
        result, check = OBSERVED.function(title, trace)
        outside[next(iter(opaque.values()))] = title, check
        return result

    def changed_outside(self) -> Check | None:
        """A function that says what has changed of all that was noted; None where nothing could. A body that changes
        what it reads, as a log, is left out: the program would be made anew for ever."""
        checks = []
        for title, check in ({} if self.outside is None else self.outside).values():
            label = None if check is None else check()
            if label is not None:
                warn(f"{title} changes {label} itself while it is traced, and does not see later changes of what it "
                     "reads. Leave traced off, so that it runs each time")
            elif check is not None:
                checks.append(check)
        return functools.partial(_changed, checks) if len(checks) > 1 else checks[0] if checks else None

    @property
    def graph(self) -> Graph:
        """The nodes as a graph."""
        return Graph(self.heads, self.nodes)

    def rebuild(self, change: Change) -> None:
        """Go over the nodes in their order and let others take the places of some.

        ``change(node, became)`` gives the nodes that come where this one stood, with specs and contexts, and enters
        what its entries became, or gives None for a node that stays, over what its inputs became.
        """
        became: dict[Entry, Entry] = {}
        self.nodes = self.changed(self.nodes, change, became)
        self.heads = [became.get(entry, entry) for entry in self.heads]

    def changed(self, nodes: Sequence[Node], change: Change, became: dict[Entry, Entry]) -> list[Node]:
        """Go over nodes as ``rebuild`` does; a change whose own nodes are to be changed, too, asks for that."""
        kept: list[Node] = []
        for node in nodes:
            instead = change(node, became)
            if instead is not None:
                kept += instead
                continue
            new = node
            if became:
                new = replaced(node, [became.get(entry, entry) for entry in node.inputs], self.specs, became)
            if new is not node and node in self.contexts:
                self.contexts[new] = self.contexts[node]
            kept.append(new)
        return kept

    @property
    def mutates(self) -> bool:
        """Whether a node writes over one of its inputs, so that it matters when that is read."""
        return any(node.op is not None and node.op.traits.mutates for node in self.nodes)


def replaced(node: Node, inputs: Sequence[Entry], specs: dict[Node, list[Spec]], became: dict[Entry, Entry]) -> Node:
    """The node over other inputs, its specs known and its entries entered in ``became`` if it is a new one."""
    new = node.with_inputs(inputs)
    if new is not node:
        specs[new] = specs[node]
        for i in range(len(specs[node])):
            became[node, i] = new, i
    return new


def nbytes(specs: Iterable[Spec]) -> int:
    """Bytes of arrays of these shapes and dtypes, which are known."""
    return sum([size(spec.shape or ()) * as_dtype(spec.dtype).itemsize for spec in specs])


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with Python's collector of cycles at rest while it runs.

    Binding and planning make several objects a node, which all stay and form no cycles; the collector would go over all
    of them again and again, in a graph of ten thousand nodes for a good part of the time that everything else takes.
    There is one collector for all threads, and a child that another one forks meanwhile would never see it work again:
    so it rests only where no other lives.
    """

    @functools.wraps(function)
    def undisturbed(*args: P.args, **keywords: P.kwargs) -> R:
        if not gc.isenabled() or not threads.alone():
            return function(*args, **keywords)
        gc.disable()
        try:
            return function(*args, **keywords)
        finally:
            gc.enable()

    return undisturbed


def _changed(checks: Iterable[Check]) -> str | None:
    """The first thing that one of several functions says."""
    for check in checks:
        label = check()
        if label is not None:
            return label
    return None


def _title(node: Node) -> str:
    """The operator of a node as warnings name it."""
    attrs: Any = node.attrs
    return f"operator {attrs.inner.op.op_type if hasattr(attrs, 'inner') else attrs.op.op_type!r}"
