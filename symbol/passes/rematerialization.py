"""rematerialization: cheap results of forward that backward reads are computed again there, instead of being stored.

The idea of T. Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174, and of MXNet's variable
``MXNET_BACKWARD_DO_MIRROR``, with the choice made by bytes. Only operators that go over their memory once or twice are
run again, those of users where they say ``cheap``; no products, sorts or random numbers. Dropout follows from its mask
and a norm from its statistics, see ``opreg.builtin.rematerialization``. With the choice ``all``, products and other
built-in operators are run again, too. A node that is tagged ``__force_mirroring__`` is run again whatever it costs,
unless it draws random numbers or changes something.

A result is computed again from what is there in backward in any case. A result that is not there, of a product as a
rule, is kept in the place of those that follow from it if it is smaller than these. Chains of nodes that are run again
are no longer than the root of what forward has of them: before a gradient reaches the first of a chain, all of it is
there at once.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence

from opreg.core.graph import Entry, Node, reachable
from opreg.core.op import Op
from opreg.core.tracing import RuleTracer
from opreg.errors import ArgumentError

from .. import infer as inference
from ..program import Program, nbytes, replaced
from .cse import pure

__all__ = ["rematerialize", "asked", "AGAIN"]

_LEAST = 8  # how long a chain may be in any case
_FORCED = "__force_mirroring__"
#: Tag of copies, whose numbers are those of forward to the last bit: gradients of maxima compare them with others.
AGAIN = "__again__"


def asked(choice: bool | str | None) -> bool | str:
    """The results to compute again, as ``bind`` was told, else as the environment says: none, cheap ones, ``all``."""
    if choice is None:
        return os.environ.get("MXNET_BACKWARD_DO_MIRROR", "").strip().lower() in ("1", "true")
    if choice not in (False, True, "all"):
        raise ArgumentError(f"recompute={choice!r}: expected True, False or 'all'")
    return choice


def _forced(node: Node) -> bool:
    return node.tags.get(_FORCED, "").lower() in ("1", "true")


def _cheap(op: Op) -> bool:
    """Whether a run takes about as long as to read what it reads and to write what it writes."""
    rules = op.rules
    return rules.flops is None and (op.traits.cheap or rules.expression is not None or rules.sets is not None
                                    or rules.view is not None)


def rematerialize(program: Program) -> Program:
    """Compute in backward again what is cheaper to compute than to keep."""
    choice = program.bound.recompute
    if not program.destinations or not (choice or any(node.tags and _forced(node) for node in program.nodes)):
        return program
    if program.mutates:
        return program
    outputs = program.heads[:len(program.bound.graph.heads)]
    forward = reachable(program.nodes, outputs)
    chosen = _Choice(program, forward, outputs)
    if not chosen.again:
        return program
    return _Copies(program, forward, chosen).program()


class _Choice:
    """Entries of forward that are computed again: ``again``.

    Every entry of forward has a root: itself when it would have to be kept, None when it is there in backward or can be
    computed there, and else the one entry that would have to be kept for that.
    """

    def __init__(self, program: Program, forward: Sequence[Node], outputs: Sequence[Entry]):
        self.program, self.asked = program, program.bound.recompute
        self.again: set[Entry] = set()
        inside = set(forward)
        wanted = {entry for node in program.nodes if node not in inside for i, entry in enumerate(node.inputs)
                  if entry[0] in inside and entry[0].op is not None and node.op and i not in node.op.traits.unread}
        for node in reversed(forward):  # a view is there when what it is of is there
            if node.op is not None and node.op.rules.view is not None and any((node, i) in wanted
                                                                         for i in range(len(program.specs[node]))):
                wanted.add(node.inputs[0])
        self.wanted, self.outputs = wanted, set(outputs)
        _, states = program.graph.variables()
        self.moving = set(states)
        self.root: dict[Entry, Entry | None] = {}
        self.depth: dict[Entry, int] = {}
        self.saved: dict[Entry, list[Entry]] = {}  # what would not be kept if a root were
        self.most = max(_LEAST, math.isqrt(sum(self._may(node) for node in forward)))
        for node in forward:
            self._visit(node)
        for root, entries in self.saved.items():
            if self._nbytes(entries) > self._nbytes([root]):
                self.again.update(entries)

    def _nbytes(self, entries: Iterable[Entry]) -> int:
        return nbytes(self.program.specs[node][i] for node, i in entries)

    def _may(self, node: Node) -> bool:
        """Whether a node may be run again, or has a rule in the place of that."""
        op = node.op
        if op is None or not (self.asked or _forced(node)):
            return False
        if op.rules.again is not None:
            return True
        if _forced(node) or (op.where is not None and op.traits.cheap):  # users say it of a node, or of an operator
            return not (op.traits.random or op.traits.has_side_effect or op.traits.states or op.traits.mutates)
        return pure(op) and (self.asked == "all" or _cheap(op))

    def _visit(self, node: Node) -> None:
        entries = [(node, i) for i in range(len(self.program.specs[node]))]
        if node.op is None:
            self._note(entries[0], None, 0)
            return
        if not self._may(node):
            for entry in entries:
                self._keep(entry)
            return
        sources = [entry for i, entry in enumerate(node.inputs) if i not in node.op.traits.unread]
        if node.op.rules.again is not None:  # the other outputs are kept, the first follows
            for entry in entries[1:]:
                self._keep(entry)
            sources = [entry for entry in (*sources, *entries[1:]) if entry[0] not in self.moving]
            entries = entries[:1]
        roots = {self.root[entry] for entry in sources} - {None}
        depth = (node.op.rules.view is None) + max([self.depth[entry] for entry in sources], default=0)
        moved = any(entry[0] in self.moving for entry in sources)  # when backward begins
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
                    self.again.add(entry)
                else:
                    self.saved.setdefault(root, []).append(entry)

    def _keep(self, entry: Entry) -> None:
        """An entry that is not computed again is there if backward reads it, or if it is an output."""
        self._note(entry, None if entry in self.wanted or entry in self.outputs else entry, 0)

    def there(self, entry: Entry) -> bool:
        """Whether backward finds the entry as forward left it."""
        return entry not in self.again and (entry in self.wanted or entry in self.outputs
                                            or self.root.get(entry, entry) == entry or entry[0].op is None)

    def _note(self, entry: Entry, root: Entry | None, depth: int) -> None:
        """Enter from which kept entry this follows, itself being none, in how many steps."""
        self.root[entry], self.depth[entry] = root, depth


class _Copies:
    """Backward with the copies of forward's nodes that it needs, each in front of its first reader."""

    def __init__(self, program: Program, forward: Sequence[Node], chosen: _Choice):
        self.source, self.there = program, chosen.there
        self.place = {node: number for number, node in enumerate(forward)}
        self.became: dict[Entry, Entry] = {}  # entries of forward, computed again
        self.nodes: list[Node] = list(forward)

    def program(self) -> Program:
        """The program with the copies in it."""
        program = self.source
        moved: dict[Entry, Entry] = {}
        for node in program.nodes:
            if node in self.place:
                continue
            unread = node.op.traits.unread if node.op is not None else ()
            inputs = [moved.get(entry, entry) if i in unread or entry[0] not in self.place else self._here(entry)
                      for i, entry in enumerate(node.inputs)]
            self.nodes.append(replaced(node, inputs, program.specs, moved))
        program.heads = [moved.get(entry, entry) for entry in program.heads]
        program.nodes = reachable(self.nodes, program.heads, read=True)
        if any(node not in program.specs for node in program.nodes):  # made by rules
            program.specs = inference.infer(program.graph, {}, {}, program.specs)
        return program

    def _here(self, entry: Entry) -> Entry:
        """An entry of forward as backward has it."""
        if not self.there(entry) and entry not in self.became:
            needed: set[Node] = set()
            waiting = [entry[0]]
            while waiting:
                node = waiting.pop()
                if node not in needed:
                    needed.add(node)
                    waiting += [source[0] for source in node.inputs
                                if not self.there(source) and source not in self.became]
            for node in sorted(needed, key=self.place.__getitem__):
                self._copy(node)
        return self.became.get(entry, entry)

    def _copy(self, node: Node) -> None:
        op, specs = node.op, self.source.specs
        assert op is not None
        inputs = [self.became.get(entry, entry) for entry in node.inputs]
        if op.rules.again is not None:
            entry = self._followed(node, inputs)
            if entry is not None:
                self.became[node, 0] = entry
                return
            if op.traits.random or op.traits.states:  # kept after all
                return
        again = Node(op, f"{node.name}_again", node.attrs, inputs, node.given, {**node.tags, AGAIN: "1"}, node.where)
        specs[again] = specs[node]
        self.nodes.append(again)
        self.became.update(((node, i), (again, i)) for i in range(len(specs[node])) if not self.there((node, i)))

    def _followed(self, node: Node, inputs: Sequence[Entry]) -> Entry | None:
        """The first output by the operator's rule, from inputs and the other outputs."""
        assert node.op is not None and node.op.rules.again is not None
        tracer = RuleTracer(self.nodes, {}, node)
        specs = [self.source.specs[source][i] for source, i in node.inputs]
        value = node.op.rules.again({**node.attrs, "specs": specs}, list(map(tracer.value, inputs)),
                               [tracer.value((node, i)) for i in range(node.count)])
        return None if value is None else value._entry
