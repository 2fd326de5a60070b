"""Program: the nodes of a bound graph with all that is inferred about them. Passes take and return programs."""

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

from .naming import MONITORED
from .reduction import GradientBuckets, Reduction, divide_into_buckets

__all__ = ["OBSERVED", "Bound", "Program", "name_for_monitors", "nbytes", "replace_inputs", "without_gc"]

P = ParamSpec("P")
R = TypeVar("R")

#: Runs a trace of users' code, which a title names in warnings. Returns the result of the trace, and a function that
#: names a value which the code read and which has changed since.
OBSERVED = Slot("observers")

Change: TypeAlias = Callable[[Node, dict[Entry, Entry]], Sequence[Node] | None]


def _new_memory(ctx: Context, nbytes: int) -> Array:
    """New memory on a device."""
    return ctx.backend.arena(nbytes, ctx.device_id)


@dataclass
class Bound:
    """A graph with the arrays that it is bound to: those of its variables, outputs and gradients.

    Attributes
    ----------
    graph : Graph
        The forward graph.
    specs : dict by node
        Shapes and dtypes of its entries.
    ctx, group2ctx
        The default device, and that of each ``ctx_group``.
    arrays, contexts : dict by variable
        Arguments and auxiliary states, and their devices.
    grads : dict by variable
        Gradient arrays with their requests, ``(array, "write" | "add")``.
    outputs : list of arrays
        The arrays that the outputs are written into.
    head_grads : list of (array or None)
        The arrays that gradients of the outputs are read from; None for losses.
    memo : dict
        The state of users' operators between forward and backward.
    recompute : bool or "all"
        Whether backward computes cheap results of forward, or with ``"all"`` all that it can, again instead of storing
        them.
    tf32 : bool
        Whether matrix products and convolutions of float32 on a GPU may round their factors to TF32.
    arena : function of a context and a number of bytes
        Allocates the memory of results; by default it is the plan's own.
    reduced : Reduced or None
        The gradients that are reduced over ranks.
    unnoted : set of variables
        The variables whose arrays are written between runs with no note in ``opreg.core.versions``: nothing that
        follows from their values is cached.
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
    arena: Callable[[Context, int], Array] = _new_memory
    reduced: GradientBuckets | None = None
    unnoted: Set[Node] = frozenset()

    def reduce(self, reduction: Reduction | None) -> None:
        """Set the reduction of gradients over ranks; None for none."""
        self.reduced = None if reduction is None else divide_into_buckets(reduction, self.graph, {
            node: (self.specs[node][0], self.contexts[node], req) for node, (_, req) in self.grads.items()})

    @property
    def reduction(self) -> Reduction | None:
        """The reduction of gradients over ranks."""
        return None if self.reduced is None else self.reduced.reduction

    def place(self, node: Node) -> Context:
        """The device of a node."""
        return self.group2ctx.get(node.tags.get("__ctx_group__", ""), self.ctx)

    @property
    def places(self) -> list[Context]:
        """The devices of the outputs."""
        return [self.ctx if node.op is None else self.place(node) for node, _ in self.graph.heads]


@dataclass
class Program:
    """Nodes in execution order, with their shapes, dtypes and devices.

    Attributes
    ----------
    bound : Bound
        The bound graph, which passes do not modify.
    is_train : bool
        The mode of the forward pass.
    backward : bool or None
        The mode of the gradients; None without gradients.
    watched : bool
        Whether every node has a step of its own, as monitors need.
    nodes : list of Node
        In topological order, forward before backward.
    heads : list of Entry
        Outputs, then the gradients of ``wanted``.
    wanted : list of variables
        The variables of ``bound.grads`` that the outputs depend on.
    destinations : list of (array, request)
        The arrays that gradients, the heads after the outputs, are written or added to.
    specs, arrays, contexts
        As in ``bound``, extended by the passes; after the last pass, every node has specs and a context.
    pinned : dict of Entry to array
        Intermediate results that must be computed in these arrays.
    outside : dict of BodyReads or int to (str, function), or None
        The reads of users' functions outside of themselves while the program was made: for each the name of its
        operator, and a function that tells whether these values have changed; None if these reads are not recorded.
    changed_by_rules : list of str
        The names of values that gradient rules have changed and read while they were traced.
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
    changed_by_rules: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, bound: Bound, is_train: bool, backward: bool | None = None, watched: bool = False) -> Program:
        """The program of a bound graph's forward pass."""
        return cls(bound, is_train, list(bound.graph.nodes), list(bound.graph.heads), [], dict(bound.specs),
                   dict(bound.arrays), dict(bound.contexts), backward=backward, watched=watched)

    def trace_users_code(self, nodes: Iterable[Node], trace: Callable[[], R]) -> R:
        """Trace users' code (bodies or gradients of nodes), and record the values that it reads from outside: from its
        byte code if that shows all of them, else while the code runs."""
        outside = self.outside
        if outside is None:
            return trace()
        opaque: list[Node] = []
        for node in nodes:
            reads = node.attrs.outside() if hasattr(node.attrs, "outside") else None
            if reads is not None and reads.version() is None:
                opaque.append(node)
            elif reads is not None and reads not in outside:
                outside[reads] = _title(node), reads.check()
        if not opaque:
            return trace()
        title = " and ".join(dict.fromkeys(map(_title, opaque)))
        result, check = OBSERVED.function(title, trace)
        outside[len(outside)] = title, check  # a node's gradient and its body are two traces
        return result

    def trace_rules(self, nodes: Sequence[Node], trace: Callable[[], R]) -> R:
        """Trace gradient rules of nodes as ``trace_users_code`` does. A rule that changes what it reads, such as a
        counter, gives the gradients of the first run by its trace; from then on each run calls it."""
        result, outside = self.trace_users_code(nodes, trace), self.outside or {}
        found = {key: label for key, (_, check) in outside.items()
                 if check is not None and (label := check()) is not None}
        for key, label in found.items():
            self.changed_by_rules.append(label)
            del outside[key]
        observed = any(isinstance(key, int) for key in found)
        uses: list[Any] = [node.attrs for node in nodes if found and hasattr(node.attrs, "outside")]
        for use in uses:
            reads = use.outside()
            if reads is not None and (reads in found or (observed and reads.version() is None)):
                use.calls_rule = True
        return result

    def changed_outside(self) -> Check | None:
        """A function that names a recorded value that has changed, if any; None if there are no such values. Bodies
        that change what they read, such as a log, are left out, since otherwise every run would build the program
        again."""
        checks = list(map(_from_second_call, self.changed_by_rules))
        for title, check in ({} if self.outside is None else self.outside).values():
            label = None if check is None else check()
            if label is not None:
                warn(f"{title} changes {label} while it is traced, so later changes of it would have no effect. Leave "
                     f"traced off, so that the function runs each time")
            elif check is not None:
                checks.append(check)
        return functools.partial(_first_change, checks) if len(checks) > 1 else checks[0] if checks else None

    @property
    def graph(self) -> Graph:
        """The graph of the nodes."""
        return Graph(self.heads, self.nodes)

    def rebuild(self, change: Change) -> None:
        """Replace nodes, in execution order.

        ``change(node, became)`` returns the nodes that replace this one, after it has set their specs and contexts and
        entered in ``became`` the entries that replace its outputs. It returns None for a node that stays; its inputs
        are then replaced as ``became`` says.
        """
        became: dict[Entry, Entry] = {}
        self.nodes = self.changed(self.nodes, change, became)
        self.heads = [became.get(entry, entry) for entry in self.heads]

    def changed(self, nodes: Sequence[Node], change: Change, became: dict[Entry, Entry]) -> list[Node]:
        """Replace some of the given nodes, as ``rebuild`` does. A change calls this where its new nodes may be
        replaced, too."""
        result: list[Node] = []
        for node in nodes:
            instead = change(node, became)
            if instead is not None:
                result += instead
                continue
            new = node
            if became:
                new = replace_inputs(node, [became.get(entry, entry) for entry in node.inputs], self.specs, became)
            if new is not node and node in self.contexts:
                self.contexts[new] = self.contexts[node]
            result.append(new)
        return result

    @property
    def mutates(self) -> bool:
        """Whether a node overwrites one of its inputs, so that nodes cannot be reordered freely."""
        return any(node.op is not None and node.op.traits.mutates for node in self.nodes)


def replace_inputs(node: Node, inputs: Sequence[Entry], specs: dict[Node, list[Spec]],
                   became: dict[Entry, Entry]) -> Node:
    """The node with other inputs. A new node gets the specs of the old one, and its entries are entered in
    ``became``."""
    new = node.with_inputs(inputs)
    if new is not node:
        _enter_instead(node, new, specs, became)
    return new


def name_for_monitors(node: Node, names: Sequence[str], specs: dict[Node, list[Spec]], became: dict[Entry, Entry]
                      ) -> Node:
    """A node in place of another one, as ``replace_inputs`` makes it, whose outputs have these names for a monitor. Its
    inputs are those that ``became`` gives."""
    new = node.copy([became.get(entry, entry) for entry in node.inputs], tags={MONITORED: " ".join(names)})
    _enter_instead(node, new, specs, became)
    return new


def _enter_instead(node: Node, new: Node, specs: dict[Node, list[Spec]], became: dict[Entry, Entry]) -> None:
    specs[new] = specs[node]
    for i in range(len(specs[node])):
        became[node, i] = new, i


def nbytes(specs: Iterable[Spec]) -> int:
    """The number of bytes of arrays with these specs, all of them known."""
    return sum([size(spec.shape or ()) * as_dtype(spec.dtype).itemsize for spec in specs])


def without_gc(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with Python's garbage collector disabled while it runs.

    Reading, binding and planning allocate several objects for each node, which all live on and form no cycles. The
    collector would traverse them again and again; for a graph of ten thousand nodes that takes about as long as the
    work itself.
    It stays enabled while other threads live: all share one collector, and a process forked by one of them meanwhile
    would never enable it again.
    """

    @functools.wraps(function)
    def without_collector(*args: P.args, **keywords: P.kwargs) -> R:
        if not gc.isenabled() or not threads.no_foreign_threads():
            return function(*args, **keywords)
        try:
            gc.disable()
            return function(*args, **keywords)
        finally:
            gc.enable()

    return without_collector


def _first_change(checks: Iterable[Check]) -> str | None:
    """The first text that one of several checks returns; None if all return None."""
    for check in checks:
        label = check()
        if label is not None:
            return label
    return None


def _from_second_call(label: str) -> Check:
    """A check that names a change, but not in its first call, which is before the first run."""
    labels = iter([None])
    return lambda: next(labels, label)


def _title(node: Node) -> str:
    """The operator of a node as warnings name it."""
    attrs: Any = node.attrs
    if hasattr(attrs, "traced_title"):
        return attrs.traced_title
    return f"operator {attrs.inner.op.op_type if hasattr(attrs, 'inner') else attrs.op.op_type!r}"
