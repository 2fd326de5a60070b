"""Channels last: convolutions that a library computes, and what lies between them, have their channels at the end.

Libraries are fastest on arrays whose channels are the last axis. Convolutions that one takes see their data so, and so
does every operator behind them that can be told where the channels are, or for which they are an axis like any other.
Weights stay as they are. Where an array is needed in the order it was declared in, a copy is made: behind the operator
that computes it, or in front of the first that reads it.

An operator follows when one of its inputs has its channels last already. What it cannot be told stays as it was.
``explain`` shows what was moved, and of convolutions that were not, why. Back ends have a pass each that calls
``bring_channels_last`` with what there is to know of their library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from opreg.core.graph import Entry, Node
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec
from opreg.symbol.program import Program
from opreg.typing import ArrayModule

from .private_operators import to_channels_first, to_channels_last

__all__ = ["CONVOLUTIONS", "Library", "bring_channels_last"]

#: The layouts by how many axes there are.
FIRST, LAST = {3: "NCW", 4: "NCHW", 5: "NCDHW"}, {3: "NWC", 4: "NHWC", 5: "NDHWC"}


class Move(NamedTuple):
    """What makes a node one with channels last: attributes that change, which inputs and outputs have them so."""

    attrs: dict[str, Any]
    ins: Sequence[int]
    outs: Sequence[int] = (0,)


#: Given a node and the shapes of its inputs, how it is told that the channels come last, or why it cannot be.
Rule: TypeAlias = Callable[[Node, list[Shape]], Move | str]


class Library(NamedTuple):
    """What convolves.

    Attributes
    ----------
    serves : function of an array module
        Whether it is there for arrays of that.
    computes : set of str
        The operators that follow only where it computes them.
    refused : function of an operator, attributes, specs of inputs and outputs, mode, array module and device
        Why it does not compute a node over contiguous arrays, or None where it does.
    """

    serves: Callable[[ArrayModule], bool]
    computes: frozenset[str]
    refused: Callable[[Op, Attrs, Sequence[Spec], Sequence[Spec], bool, ArrayModule, int],
                      str | None]


# ------------------------------------------------------------------------------------------------- the rules


def _named(ins: Sequence[int], outs: Sequence[int] = (0,), **attrs: Any) -> Rule:
    """Of operators with an attribute ``layout``."""

    def rule(node: Node, shapes: list[Shape]) -> Move | str:
        rank = len(shapes[0])
        if node.attrs["layout"] not in (None, FIRST[rank]):
            return f"its layout is {node.attrs['layout']}"
        also = [len(shapes) - 1] if node.attrs.get("added") else []
        return Move({"layout": LAST[rank], **attrs}, [*ins, *also], outs)

    return rule


def _axis(ins: Sequence[int], name: str = "axis", outs: Sequence[int] = (0,)) -> Rule:
    """Of operators that are told the axis of the channels."""

    def rule(node: Node, shapes: list[Shape]) -> Move | str:
        rank = len(shapes[0])
        if node.attrs.get("over", "batch") != "batch" or node.attrs[name] % rank != 1:
            return "the channels are not along its axis"
        return Move({name: rank - 1}, ins, outs)

    return rule


def _joined(node: Node, shapes: list[Shape]) -> Move | str:
    return _axis(range(len(shapes)), "dim")(node, shapes)


def _reduced(node: Node, shapes: list[Shape]) -> Move | str:
    """Of reductions over all places of a channel."""
    rank, axis = len(shapes[0]), node.attrs["axis"]
    named = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if node.attrs["exclude"] or sorted(a % rank for a in named) != list(range(2, rank)):
        return "it reduces other axes than the places"
    return Move({"axis": tuple(range(1, rank - 1))}, [0], [0] if node.attrs["keepdims"] else [])


def _elementwise(node: Node, shapes: list[Shape]) -> Move | str:
    if any(len(shape) != len(shapes[0]) for shape in shapes):
        return "its inputs differ in their numbers of axes"
    return Move({}, range(len(shapes)))


#: What this is for.
CONVOLUTIONS: dict[str, Rule] = {
    "Convolution": _named([0], weights_first=True),
    "_folded_convolution": _named([0], weights_first=True),
    "_backward_Convolution_data": _named([0, 2], weights_first=True),
    "_backward_Convolution_weight": _named([0, 1], [], weights_first=True),
}
#: What follows.
_FOLLOWERS: dict[str, Rule] = {
    "BatchNorm": _axis([0]),
    "_batch_norm_gradient": _axis([0, 1]),
    "_backward_normalize_sums": _axis([0, 1], outs=[]),
    "_backward_Convolution_bias": _named([0], []),
    "Pooling": _named([0]),
    "_backward_Pooling_max": _named([0, 1, 2]),
    "_backward_Pooling_sum": _named([0, 1]),
    "Concat": _joined,
    **dict.fromkeys(("mean", "sum", "max", "min"), _reduced),
}


def _rule(node: Node, op: Op) -> Rule | None:
    rule = CONVOLUTIONS.get(node.built_in) or _FOLLOWERS.get(node.built_in)
    return rule or (_elementwise if op.rules.expression is not None else None)


# ------------------------------------------------------------------------------------------------- the pass


def bring_channels_last(program: Program, library: Library) -> Program:
    """Bring channels to the end where a library convolves."""
    if not any(node.built_in in CONVOLUTIONS and library.serves(program.contexts[node].xp)
               for node in program.nodes):
        return program
    moves, reasons = _Decisions(program, library).taken()
    return _Rewriting(program, moves, reasons).done() if moves or reasons else program


def _moved(spec: Spec) -> Spec:
    n, c, *size = spec.shape or ()
    return Spec((n, *size, c), spec.dtype)


class _Decisions:
    """Which nodes are moved, in one sweep from inputs to outputs."""

    def __init__(self, program: Program, library: Library):
        self.program, self.specs, self.library = program, program.specs, library
        self.moves: dict[Node, Move] = {}
        self.reasons: dict[Node, str] = {}
        self.last: set[Entry] = set()  # entries whose channels come last
        self.written = {node.inputs[i] for node in program.nodes if node.op is not None for i in node.op.traits.mutates}

    def taken(self) -> tuple[dict[Node, Move], dict[Node, str]]:
        """How nodes are moved, and why convolutions are not."""
        for node in self.program.nodes:
            op = node.op
            if op is None or not self.library.serves(self.program.contexts[node].xp):
                continue
            rule = _rule(node, op)
            if rule is None or (node.built_in not in CONVOLUTIONS and self.last.isdisjoint(node.inputs)):
                continue
            move = self._decide(node, op, rule)
            if isinstance(move, Move):
                self.moves[node] = move
                self.last.update((node, i) for i in move.outs)
            elif node.built_in in CONVOLUTIONS:
                self.reasons[node] = move
        return self.moves, self.reasons

    def _decide(self, node: Node, op: Op, rule: Rule) -> Move | str:
        shapes = [self.specs[source][index].shape or () for source, index in node.inputs]
        if len(shapes[0]) not in LAST:
            return "it has too many or too few axes"
        move = rule(node, shapes)
        if isinstance(move, str):
            return move
        arriving = [node.inputs[i] for i in move.ins if i not in op.traits.unread]
        if any(entry not in self.last and self._is_written(entry) for entry in arriving):
            return "what it reads is written over"
        if node.built_in in CONVOLUTIONS or node.built_in in self.library.computes:
            # One that nothing moved comes to must be better off in the library wherever its channels are.
            alone = self.last.isdisjoint(arriving)
            reason = (self._refused(node, op, Move({}, (), ())) if alone else None) or self._refused(node, op, move)
            if reason is not None:
                return reason
        return move

    def _refused(self, node: Node, op: Op, move: Move) -> str | None:
        ins = [self.specs[source][index] for source, index in node.inputs]
        ins = [_moved(spec) if i in move.ins else spec for i, spec in enumerate(ins)]
        outs = [_moved(spec) if i in move.outs else spec for i, spec in enumerate(self.specs[node])]
        place = self.program.contexts[node]
        return self.library.refused(op, {**node.attrs, **move.attrs}, ins, outs, self.program.is_train, place.xp,
                                    place.device_id)

    def _is_written(self, entry: Entry) -> bool:
        """Whether an operator writes over an entry or what it is a view of: a copy might be made too early."""
        while entry not in self.written:
            node = entry[0]
            if node.op is None or node.op.rules.view is None:
                return False
            entry = node.inputs[0]
        return True


class _Rewriting:
    """The nodes made anew, with copies where moved ones meet others."""

    def __init__(self, program: Program, moves: dict[Node, Move], reasons: dict[Node, str]):
        self.program, self.moves, self.reasons = program, moves, reasons
        self.nodes: list[Node] = []
        self.first: dict[Entry, Entry] = {}  # what became of entries, with channels where they were declared
        self.last: dict[Entry, Entry] = {}  # and with channels last
        self.needed = set(program.heads)  # with channels where they were declared
        for node in program.nodes:
            ins = moves[node].ins if node in moves else ()
            unread = () if node.op is None else node.op.traits.unread
            self.needed.update(entry for i, entry in enumerate(node.inputs) if i not in ins and i not in unread)

    def done(self) -> Program:
        """The program of the new nodes."""
        for node in self.program.nodes:
            move = self.moves.get(node)
            if node.op is None:
                self.nodes.append(node)
            elif move is None:
                inputs = [self.first.get(entry, entry) for entry in node.inputs]
                self._add(node, inputs, node.attrs, self._tags(node), ())
            else:
                unread = node.op.traits.unread
                inputs = [self._last(entry, i in unread) if i in move.ins else self.first.get(entry, entry)
                          for i, entry in enumerate(node.inputs)]
                attrs = {**node.attrs, **move.attrs}
                attrs.pop("members", None)  # they are told of other layouts
                self._add(node, inputs, attrs, {**node.tags, "__layout__": "channels last"}, move.outs)
        self.program.heads = [self.first.get(entry, entry) for entry in self.program.heads]
        self.program.nodes = self.nodes
        return self.program

    def _tags(self, node: Node) -> Mapping[str, str]:
        if node not in self.reasons:
            return node.tags
        return {**node.tags, "__layout__": f"as declared: {self.reasons[node]}"}

    def _add(self, node: Node, inputs: list[Entry], attrs: Attrs, tags: Mapping[str, str],
             outs: Sequence[int]) -> None:
        """A node in the place of another; copies of its outputs behind it, where they are needed."""
        program, specs = self.program, self.program.specs[node]
        new = Node(node.op, node.name, attrs, inputs, node.given, tags, node.where)
        program.specs[new] = [_moved(spec) if i in outs else spec for i, spec in enumerate(specs)]
        program.contexts[new] = program.contexts[node]
        self.nodes.append(new)
        for i, spec in enumerate(specs):
            (self.last if i in outs else self.first)[node, i] = new, i
            if i in outs and (node, i) in self.needed:
                self.first[node, i] = self._copy(to_channels_first, (new, i), spec)

    def _last(self, entry: Entry, unread: bool) -> Entry:
        """An entry with its channels last, copied there if need be; of one that is not read only the shape."""
        moved = self.last.get(entry)
        if moved is None:
            now = self.first.get(entry, entry)
            spec = _moved(self.program.specs[entry[0]][entry[1]])
            if unread:
                shape = Node(None, f"{now[0].name}_shape")  # in no place, as all inputs that are not read
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
