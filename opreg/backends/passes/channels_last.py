"""Channels last: convolutions that a library computes, and the operators between them, get channels as the last axis.

Libraries are fastest on arrays whose last axis is the channels. This pass changes the layout of the convolutions that a
library computes, and of the operators after them that have a layout rule, ``Op.layout``, or are element-wise. The
layout of weights is not changed. An array that is needed in its declared layout is copied, after the operator that
computes it or before the first one that reads it.

An operator other than a convolution is changed if one of its inputs already has its channels last. ``explain`` shows
which operators were changed, and for convolutions that were not, the reason. Each back end has a pass that calls
``bring_channels_last`` with a description of its library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from opreg.builtin.layouts import LAST
from opreg.core.graph import Entry, Node
from opreg.core.launch import ChannelsLast
from opreg.core.op import Op
from opreg.core.rules import Attrs, Rule
from opreg.core.spec import Shape, Spec
from opreg.errors import ArgumentError
from opreg.symbol.program import Program
from opreg.typing import ArrayModule

from ..private_operators import to_channels_first, to_channels_last

__all__ = ["Library", "bring_channels_last"]


class Move(NamedTuple):
    """How a node is changed to channels last: the attributes that change, and the indices of the inputs and outputs
    with channels last."""

    attrs: dict[str, Any]
    ins: Sequence[int]
    outs: Sequence[int]


class Library(NamedTuple):
    """A library that computes convolutions.

    Attributes
    ----------
    serves : function of an array module
        Whether it can be used for arrays of the module.
    kernel : str
        The name of its kernels. If an operator has such a kernel with ``channels_last``, its layout is changed only if
        the kernel would compute it. Operators with the rule ``flops``, such as convolutions, are changed whatever their
        inputs' layout; others only if an input has channels last.
    """

    serves: Callable[[ArrayModule], bool]
    kernel: str

    def refuses(self, op: Op) -> ChannelsLast | None:
        """The ``channels_last`` of its kernel for an operator, which gives a reason if it does not compute it; None if
        it has no such kernel."""
        return next((kernel.channels_last for kernel in op.kernels
                     if kernel.channels_last is not None and kernel.name == self.kernel), None)

    def starts_layout(self, node: Node) -> bool:
        """Whether a node is changed for its own sake, whatever the layout of its inputs."""
        op = node.op
        return op is not None and op.rules.flops is not None and self.refuses(op) is not None


def _elementwise(ins: Sequence[Shape]) -> tuple[dict[str, Any], Sequence[int], Sequence[int]] | str:
    """The layout rule of operators with an expression."""
    if any(len(shape) != len(ins[0]) for shape in ins):
        return "its inputs differ in their numbers of axes"
    return {}, range(len(ins)), (0,)


_ELEMENTWISE = Rule(_elementwise)


def _checked_move(op: Op, answer: Any) -> Move | str:
    """The result of a layout rule, checked."""
    if isinstance(answer, str):
        return answer
    try:
        return Move(*answer)
    except TypeError:
        raise ArgumentError(f"operator {op.op_type or op.name!r}: its layout rule returned {answer!r}, expected the "
                            "attributes that change, the inputs and the outputs whose channels come last, or as text "
                            "the reason why it cannot be decided") from None


def _rule(op: Op) -> Rule | None:
    return op.rules.layout or (None if op.rules.expression is None else _ELEMENTWISE)


# ------------------------------------------------------------------------------------------------- the pass


def bring_channels_last(program: Program, library: Library) -> Program:
    """Change the layout to channels last for the convolutions that a library computes."""
    if not any(library.starts_layout(node) and library.serves(program.contexts[node].xp)
               for node in program.nodes):
        return program
    moves, reasons = _Decisions(program, library).taken()
    if moves or reasons:
        program.rebuild(_Rewriter(program, moves, reasons).change)
    return program


def _channels_last_spec(spec: Spec) -> Spec:
    n, c, *size = spec.shape or ()
    return Spec((n, *size, c), spec.dtype)


class _Decisions:
    """The nodes to change, found in one pass from inputs to outputs."""

    def __init__(self, program: Program, library: Library):
        self.program, self.specs, self.library = program, program.specs, library
        self.moves: dict[Node, Move] = {}
        self.reasons: dict[Node, str] = {}
        self.last: set[Entry] = set()  # entries whose channels come last
        self.written = {node.inputs[i] for node in program.nodes if node.op is not None for i in node.op.traits.mutates}

    def taken(self) -> tuple[dict[Node, Move], dict[Node, str]]:
        """How nodes are changed, and the reasons why convolutions are not."""
        for node in self.program.nodes:
            op = node.op
            if op is None or not self.library.serves(self.program.contexts[node].xp):
                continue
            rule, begins = _rule(op), self.library.starts_layout(node)
            if rule is None or not (begins or not self.last.isdisjoint(node.inputs)):
                continue
            move = self._decide(node, op, rule)
            if isinstance(move, Move):
                self.moves[node] = move
                self.last.update((node, i) for i in move.outs)
            elif begins:
                self.reasons[node] = move
        return self.moves, self.reasons

    def _decide(self, node: Node, op: Op, rule: Rule) -> Move | str:
        shapes = [self.specs[source][index].shape or () for source, index in node.inputs]
        if len(shapes[0]) not in LAST:
            return "it has too many or too few axes"
        move = _checked_move(op, rule(node.attrs, shapes))
        if isinstance(move, str):
            return move
        moved = [node.inputs[i] for i in move.ins if i not in op.traits.unread]
        if any(entry not in self.last and self._is_written(entry) for entry in moved):
            return "an input is overwritten"
        refuses = self.library.refuses(op)
        if refuses is not None:
            # Without an input that has channels last, the library must also compute the node in its declared layout.
            alone = self.last.isdisjoint(moved)
            reason = (self._reason_to_keep(node, refuses, Move({}, (), ())) if alone else None) or self._reason_to_keep(
                node, refuses, move)
            if reason is not None:
                return reason
        return move

    def _reason_to_keep(self, node: Node, refuses: ChannelsLast, move: Move) -> str | None:
        ins = [self.specs[source][index] for source, index in node.inputs]
        ins = [_channels_last_spec(spec) if i in move.ins else spec for i, spec in enumerate(ins)]
        outs = [_channels_last_spec(spec) if i in move.outs else spec for i, spec in enumerate(self.specs[node])]
        place = self.program.contexts[node]
        return refuses({**node.attrs, **move.attrs}, ins, outs, self.program.is_train, place.xp, place.device_id)

    def _is_written(self, entry: Entry) -> bool:
        """Whether an operator overwrites an entry, or an entry that it is a view of: a copy might be made too early."""
        while entry not in self.written:
            node = entry[0]
            if node.op is None or node.op.rules.view is None:
                return False
            entry = node.inputs[0]
        return True


def _moved_attributes(node: Node, move: Move) -> Attrs:
    """The attributes of a changed node."""
    # an operator of the user's, whose attributes are more than values by name
    if node.op is not None and node.op.where is not None:
        attributes = {name: value for name, value in node.keywords.items() if name != "op_type"}
        return node.op.complete({**attributes, **move.attrs}) if move.attrs else node.attrs
    attrs = {**node.attrs, **move.attrs}
    attrs.pop("members", None)  # members are written for the declared layout
    return attrs


class _Rewriter:
    """Builds the new nodes, with copies between changed nodes and others."""

    def __init__(self, program: Program, moves: dict[Node, Move], reasons: dict[Node, str]):
        self.program, self.moves, self.reasons = program, moves, reasons
        self.nodes: list[Node] = []  # the nodes that replace the current one
        self.first: dict[Entry, Entry] = {}  # new entries in the declared layout, by old ones
        self.last: dict[Entry, Entry] = {}  # new entries with channels last, by old ones
        self.needed = set(program.heads)  # in the declared layout
        for node in program.nodes:
            ins = moves[node].ins if node in moves else ()
            unread = () if node.op is None else node.op.traits.unread
            self.needed.update(entry for i, entry in enumerate(node.inputs) if i not in ins and i not in unread)

    def change(self, node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        """The new nodes for a node that is changed, or for a convolution that is not; None for others."""
        move, reason = self.moves.get(node), self.reasons.get(node)
        if node.op is None or (move is None and reason is None):
            return None
        self.nodes, self.first = [], became
        if move is None:
            inputs = [became.get(entry, entry) for entry in node.inputs]
            self._add(node, inputs, node.attrs, f"as declared: {reason}", ())
        else:
            unread = node.op.traits.unread
            inputs = [self._last(entry, i in unread) if i in move.ins else became.get(entry, entry)
                      for i, entry in enumerate(node.inputs)]
            self._add(node, inputs, _moved_attributes(node, move), "channels last", move.outs)
        return self.nodes

    def _add(self, node: Node, inputs: list[Entry], attrs: Attrs, layout: str, outs: Sequence[int]) -> None:
        """Add a new node for a node, and after it copies of its outputs in the declared layout, if needed."""
        program, specs = self.program, self.program.specs[node]
        new = node.copy(inputs, attrs=attrs, tags={"__layout__": layout})
        program.specs[new] = [_channels_last_spec(spec) if i in outs else spec for i, spec in enumerate(specs)]
        program.contexts[new] = program.contexts[node]
        self.nodes.append(new)
        for i, spec in enumerate(specs):
            (self.last if i in outs else self.first)[node, i] = new, i
            if i in outs and (node, i) in self.needed:
                self.first[node, i] = self._copy(to_channels_first, (new, i), spec)

    def _last(self, entry: Entry, unread: bool) -> Entry:
        """An entry with its channels last, copied if needed; for an input that is not read, a variable with the
        shape."""
        moved = self.last.get(entry)
        if moved is None:
            now = self.first.get(entry, entry)
            spec = _channels_last_spec(self.program.specs[entry[0]][entry[1]])
            if unread:
                # a variable without memory, like all inputs that are not read
                shape = Node(None, f"{now[0].name}_shape")
                self.program.specs[shape] = [spec]
                return shape, 0
            moved = self.last[entry] = self._copy(to_channels_last, now, spec)
        return moved

    def _copy(self, op: Op, entry: Entry, spec: Spec) -> Entry:
        source, _ = entry
        node = Node(op, f"{source.name}{op.name}", {}, [entry], where=source.where)
        self.program.specs[node], self.program.contexts[node] = [spec], self.program.contexts[source]
        self.nodes.append(node)
        return node, 0
