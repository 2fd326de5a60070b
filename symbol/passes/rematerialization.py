"""rematerialization: cheap results of forward that backward reads are computed again there, instead of being stored.

The method is that of T. Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174, and of MXNet's
variable ``MXNET_BACKWARD_DO_MIRROR``; bytes decide what is stored. Only operators that pass over their memory once or
twice are run again, and users' operators that are declared ``cheap``; but no matrix products, sorts or random numbers.
The result of dropout is computed from its mask and that of a norm from its statistics, see
``opreg.builtin.rematerialization``. With ``all``, matrix products and other built-in operators are run again, too. A
node with the tag ``__force_mirroring__`` is run again at any cost, unless it draws random numbers or has side effects.

Results are computed again from values that are stored anyway. If one further value is needed, usually the result of a
matrix product, it is stored instead of the results, provided that it is smaller than they are. A chain of nodes that
are run again is no longer than the square root of the number of such nodes in forward, since backward holds all results
of a chain at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from opreg.core import environment
from opreg.core.graph import Entry, Node, reachable
from opreg.core.op import Op
from opreg.core.tracing import RuleTracer
from opreg.errors import ArgumentError

from .. import infer as inference
from ..program import Program, nbytes, replace_inputs
from .cse import pure

__all__ = ["rematerialize", "recompute_setting", "RECOMPUTED"]

_LEAST = 8  # a chain of at most this length is always accepted
_FORCED = "__force_mirroring__"
#: The tag of nodes that are run again. Their values must equal those of forward to the last bit, since gradients of
#: maxima compare them with others.
RECOMPUTED = "__again__"


def recompute_setting(choice: bool | str | None) -> bool | str:
    """The results to compute again: none (False), cheap ones (True), or ``"all"``. With None, the environment variable
    decides."""
    if choice is None:
        return environment.switch("MXNET_BACKWARD_DO_MIRROR", False)
    if choice not in (False, True, "all"):
        raise ArgumentError(f"recompute={choice!r}: expected True, False or 'all'")
    return choice


def _is_forced(node: Node) -> bool:
    return node.tags.get(_FORCED, "").lower() in ("1", "true")


def _cheap(op: Op) -> bool:
    """Whether the time of a run is about that of reading its inputs and writing its outputs."""
    rules = op.rules
    return rules.flops is None and (op.traits.cheap or rules.expression is not None or rules.sets is not None
                                    or rules.view is not None)


def rematerialize(program: Program) -> Program:
    """Compute results again in backward that are cheaper to compute than to store."""
    choice = program.bound.recompute
    if not program.destinations or not (choice or any(node.tags and _is_forced(node) for node in program.nodes)):
        return program
    if program.mutates:
        return program
    outputs = program.heads[:len(program.bound.graph.heads)]
    forward = reachable(program.nodes, outputs)
    chosen = _Choice(program, forward, outputs)
    if not chosen.recomputed:
        return program
    return _Copies(program, forward, chosen).program()


class _Choice:
    """Chooses which entries of forward are computed again, and collects them in ``recomputed``.

    The root of an entry is the one entry that must be stored so that backward has it: itself if it cannot be computed
    again, and None if it is stored anyway or can be computed from such entries.
    """

    def __init__(self, program: Program, forward: Sequence[Node], outputs: Sequence[Entry]):
        self.program, self.recompute = program, program.bound.recompute
        self.recomputed: set[Entry] = set()
        inside = set(forward)
        read = {entry for node in program.nodes if node not in inside for i, entry in enumerate(node.inputs)
                  if entry[0] in inside and entry[0].op is not None and node.op and i not in node.op.traits.unread}
        for node in reversed(forward):  # a view is stored when its input is stored
            if node.op is not None and node.op.rules.view is not None and any((node, i) in read
                                                                         for i in range(len(program.specs[node]))):
                read.add(node.inputs[0])
        self.wanted, self.outputs = read, set(outputs)
        _, states = program.graph.variables()
        self._changed_states = set(states)
        self.root: dict[Entry, Entry | None] = {}
        self.depth: dict[Entry, int] = {}
        self.saved: dict[Entry, list[Entry]] = {}  # by root, the entries that need not be stored if the root is
        self.most = max(_LEAST, math.isqrt(sum(self._is_repeatable(node) for node in forward)))
        for node in forward:
            self._visit(node)
        for root, entries in self.saved.items():
            if self._nbytes(entries) > self._nbytes([root]):
                self.recomputed.update(entries)

    def _nbytes(self, entries: Iterable[Entry]) -> int:
        return nbytes(self.program.specs[node][i] for node, i in entries)

    def _is_repeatable(self, node: Node) -> bool:
        """Whether a node may be run again, or has a rule that computes its result otherwise."""
        op = node.op
        if op is None or not (self.recompute or _is_forced(node)):
            return False
        if op.rules.recompute is not None:
            return True
        if _is_forced(node) or (op.where is not None and op.traits.cheap):  # declared by users
            return not (op.traits.random or op.traits.has_side_effect or op.traits.states or op.traits.mutates)
        return pure(op) and (self.recompute == "all" or _cheap(op))

    def _visit(self, node: Node) -> None:
        entries = [(node, i) for i in range(len(self.program.specs[node]))]
        if node.op is None:
            self._note(entries[0], None, 0)
            return
        if not self._is_repeatable(node):
            for entry in entries:
                self._keep(entry)
            return
        sources = [entry for i, entry in enumerate(node.inputs) if i not in node.op.traits.unread]
        if node.op.rules.recompute is not None:  # the first output is computed from the others, which are stored
            for entry in entries[1:]:
                self._keep(entry)
            sources = [entry for entry in (*sources, *entries[1:]) if entry[0] not in self._changed_states]
            entries = entries[:1]
        roots = {self.root[entry] for entry in sources} - {None}
        depth = (node.op.rules.view is None) + max([self.depth[entry] for entry in sources], default=0)
        moved = any(entry[0] in self._changed_states for entry in sources)  # stored before backward begins
        if len(roots) > 1 or depth > self.most or moved:
            for entry in entries:
                self._keep(entry)
            return
        root = next(iter(roots), None)
        for entry in entries:
            if entry in self.outputs:
                self._note(entry, None, 0)
            elif entry not in self.wanted:
                self._note(entry, root, depth)
            else:
                self._note(entry, None, depth)
                if root is None:
                    self.recomputed.add(entry)
                else:
                    self.saved.setdefault(root, []).append(entry)

    def _keep(self, entry: Entry) -> None:
        """Record an entry that is not recomputed. It is stored anyway if backward reads it, or if it is an
        output."""
        self._note(entry, None if entry in self.wanted or entry in self.outputs else entry, 0)

    def has(self, entry: Entry) -> bool:
        """Whether backward has the entry that forward computed."""
        return entry not in self.recomputed and (entry in self.wanted or entry in self.outputs
                                            or self.root.get(entry, entry) == entry or entry[0].op is None)

    def _note(self, entry: Entry, root: Entry | None, depth: int) -> None:
        """Enter the root of an entry, and the number of nodes that compute it from there."""
        self.root[entry], self.depth[entry] = root, depth


class _Copies:
    """The program with copies of nodes of forward inserted into backward, each before its first reader."""

    def __init__(self, program: Program, forward: Sequence[Node], chosen: _Choice):
        self.source, self.has = program, chosen.has
        self.place = {node: number for number, node in enumerate(forward)}
        self.became: dict[Entry, Entry] = {}  # copies of forward's entries, by entry
        self.nodes: list[Node] = list(forward)

    def program(self) -> Program:
        """Insert the copies; the program."""
        program = self.source
        moved: dict[Entry, Entry] = {}
        for node in program.nodes:
            if node in self.place:
                continue
            unread = node.op.traits.unread if node.op is not None else ()
            inputs = [moved.get(entry, entry) if i in unread or entry[0] not in self.place
                      else self._entry_for_backward(entry) for i, entry in enumerate(node.inputs)]
            self.nodes.append(replace_inputs(node, inputs, program.specs, moved))
        program.heads = [moved.get(entry, entry) for entry in program.heads]
        program.nodes = reachable(self.nodes, program.heads, read=True)
        if any(node not in program.specs for node in program.nodes):  # nodes without specs, which rules have made
            program.specs = inference.infer(program.graph, {}, {}, program.specs)
        return program

    def _entry_for_backward(self, entry: Entry) -> Entry:
        """The entry that backward reads for one of forward: itself, or a copy."""
        if not self.has(entry) and entry not in self.became:
            needed: set[Node] = set()
            waiting = [entry[0]]
            while waiting:
                node = waiting.pop()
                if node not in needed:
                    needed.add(node)
                    waiting += [source[0] for source in node.inputs
                                if not self.has(source) and source not in self.became]
            for node in sorted(needed, key=self.place.__getitem__):
                self._copy(node)
        return self.became.get(entry, entry)

    def _copy(self, node: Node) -> None:
        op, specs = node.op, self.source.specs
        assert op is not None
        inputs = [self.became.get(entry, entry) for entry in node.inputs]
        if op.rules.recompute is not None:
            entry = self._recompute_output(node, inputs)
            if entry is not None:
                self.became[node, 0] = entry
                return
            if op.traits.random or op.traits.states:  # stored after all
                return
        again = node.copy(inputs, f"{node.name}_again", tags={RECOMPUTED: "1"})
        specs[again] = specs[node]
        self.nodes.append(again)
        self.became.update(((node, i), (again, i)) for i in range(len(specs[node])) if not self.has((node, i)))

    def _recompute_output(self, node: Node, inputs: Sequence[Entry]) -> Entry | None:
        """The first output, computed by the operator's rule from inputs and the other outputs; None if the rule
        declines."""
        assert node.op is not None and node.op.rules.recompute is not None
        tracer = RuleTracer(self.nodes, {}, node)
        specs = [self.source.specs[source][i] for source, i in node.inputs]
        value = node.op.rules.recompute({**node.attrs, "specs": specs}, list(map(tracer.value, inputs)),
                               [tracer.value((node, i)) for i in range(node.count)])
        return None if value is None else value._entry
