"""fuse: groups of element-wise operators become one node each, so that intermediate values stay in the cache.

A fused node holds one expression, composed of those of its members. It has an output for each value that is read
outside of the group, and computes one tile of all outputs before the next. In forward, values are exactly those of the
single operators: the instructions are the same, in the same order, with equal ones computed once. In backward, sums of
gradients may be rearranged by ``algebra``, since no user has written these down.

Groups are found in one sweep. An operator joins the groups that compute its inputs, as long as no operator outside has
read from them; a group takes the place of its last member. So the inputs of a group come before it and its readers
after it, and there is no cycle. No group has members in both forward and backward, or on two devices.

Large values of forward that backward reads are computed again there, if that is cheaper than storing and loading them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from opreg.backends import axpy
from opreg.backends.expressions import fuses
from opreg.builtin.elementwise.elementwise import attach
from opreg.core.attrs import Schema
from opreg.core.cache import cached
from opreg.core.graph import Entry, Node, reachable
from opreg.core.keys import Same
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec, size
from opreg.elementwise.algebra import factor_sums
from opreg.elementwise.composition import Composition
from opreg.elementwise.expression import Expression, Instruction, astype
from opreg.errors import Where

from ..program import Program, nbytes
from .rematerialization import RECOMPUTED

__all__ = ["Part", "fuse"]

# The largest number of members of a group: more would exceed the cache.
_MOST = 64
# The number of elements from which on an array does not stay in the cache from forward to backward.
_LARGE = 1 << 17
# The cost of storing and loading an element, in additions of cached elements, if the last-level cache holds a part of
# the array. In compiled functions this cost is much higher.
_STORING = 10
# The cost of storing and loading four bytes on a device, in instructions: as many as an H200 computes while it moves
# eight bytes, by its data sheet. A function such as exp takes there about five times as many instructions as its cost
# in additions.
_STORING_ON_DEVICE, _FUNCTION, _STEPS_OF_FUNCTIONS = 50, 4, 5

# Dtypes whose sums may be rearranged. In dtypes of fewer bits, a rearranged product overflows too easily.
_EXACT = (np.dtype("float32"), np.dtype("float64"))


# ------------------------------------------------------------------------------------------- the operator


@cached(256)
def _operator(full: int) -> Op:
    """The operator of fused nodes whose first ``full`` inputs have the shape and dtype of the first output.

    It exists only in plans, and is not registered.
    """
    op = Op("_fused", Schema([]), lambda *, expression: [f"arg{i}" for i in range(expression.arity)],
            outputs=lambda *, expression: [f"output{i}" for i in range(len(expression.results))],
            inplace=range(full), doc="Element-wise operators computed together.")
    op.where = None
    axpy.attach(op, _expression_attribute, attach(op, _expression_attribute))
    return op


def _expression_attribute(attrs: Attrs) -> Expression:
    return attrs["expression"]


def _expressions(program: Program) -> dict[Node, Expression]:
    """The expressions of nodes that can be fused. Their arguments are the inputs that the nodes read."""
    expressions: dict[Node, Expression] = {}
    scalar: dict[tuple[Op, Same], Expression | None] = {}
    for node in program.nodes:
        if node.op is not None and (node.op.rules.expression is not None or node.op.traits.casts):
            expression = _expression(node, program, scalar)
            if expression is not None:
                expressions[node] = expression
    return expressions


def _expression(node: Node, program: Program, scalar: dict[tuple[Op, Same], Expression | None]) -> Expression | None:
    """The expression of a node, or None; ``scalar`` caches those of operators and attributes."""
    op, specs = node.op, program.specs
    if op is None or len(specs[node]) != 1:
        return None
    if op.traits.casts:
        return _cast(node, program)
    dtype = specs[node][0].dtype
    if op.rules.view is not None or not fuses(program.contexts[node].xp, dtype):  # type: ignore[arg-type]
        return None
    key = op, Same(node.attrs)
    if key not in scalar:
        expression = op.rules.expression(node.attrs)
        scalar[key] = None if expression is None or isinstance(expression.result, float) else expression
    expression = scalar[key]
    for place, (source, index) in enumerate(node.inputs):
        input_dtype = specs[source][index].dtype
        if input_dtype is not dtype and input_dtype != dtype and (expression is None or place not in expression.draws):
            return None
    return expression


def _cast(node: Node, program: Program) -> Expression | None:
    source, index = node.inputs[0]
    before, after = program.specs[source][index].dtype, program.specs[node][0].dtype
    xp = program.contexts[node].xp
    if not (fuses(xp, before) and fuses(xp, after)):  # type: ignore[arg-type]
        return None
    assert after is not None
    if before == after:
        return Expression.of(1, [], [0])
    return Expression.of(1, [Instruction(astype(after), (0,))], [1])


def _constant(node: Node) -> float | None:
    """The value of all elements of a node's output, if they are equal by declaration; else None."""
    return None if node.op is None else node.op.traits.constant


def _read(node: Node) -> Sequence[Entry]:
    """The inputs whose elements a node reads."""
    unread = node.op.traits.unread if node.op is not None else ()
    return [entry for i, entry in enumerate(node.inputs) if i not in unread] if unread else node.inputs


# ----------------------------------------------------------------------------------------------- grouping


class _Group:
    """The members of a group in execution order, and the state that decides whether more may join."""

    __slots__ = ("members", "shape", "era", "busy", "last", "into")

    def __init__(self, shape: Shape, era: int):
        self.members: list[Node] = []
        self.shape = shape
        self.era = era  # the era in which the group began; -1 once an operator outside of the group has read from it
        self.busy = 0  # the count of other operators before its last member
        self.last = -1
        self.into: _Group | None = None  # the group that it was merged into

    def merged(self) -> _Group:
        group = self
        while group.into is not None:
            group = group.into
        return group


def _groups_of_nodes(program: Program, expressions: dict[Node, Expression], split: int) -> dict[Node, _Group]:
    """The group of every node that has an expression."""
    last = functools.cache(functools.partial(_last_read, program))
    groups: dict[Node, _Group] = {}
    era = busy = 0
    for position, node in enumerate(program.nodes):
        if position == split:
            era += 1
        op = node.op
        if op is None:
            continue
        sources: list[_Group] = []
        for source, _ in _read(node):
            if source in groups:
                group = groups[source].merged()
                if group not in sources:
                    sources.append(group)
        if node not in expressions:
            for group in sources:
                group.era = -1
            busy += op.rules.view is None
            if op.traits.mutates:  # reads before the overwrite must not move after it
                era += 1
            continue
        shape: Shape = program.specs[node][0].shape  # type: ignore[assignment]
        joined: _Group | None = None
        for group in sources if len(sources) < 2 else sorted(sources, key=lambda group: -group.last):
            count = len(group.members) + (len(joined.members) if joined else 0)
            if (group.era != era or group.shape != shape or count >= _MOST
                    or (group.busy != busy and not _lighter(group, program, last()))):
                group.era = -1
            elif joined is None:
                joined = group
            else:
                joined.members = group.members + joined.members
                group.into = joined
        if joined is None:
            joined = _Group(shape, era)
        joined.members.append(node)
        joined.last, joined.busy = position, busy
        groups[node] = joined
    return {node: group.merged() for node, group in groups.items()}


def _last_read(program: Program) -> dict[Entry, int]:
    """The position at which an entry is read for the last time."""
    last = {entry: position for position, node in enumerate(program.nodes) for entry in _read(node)}
    last.update((entry, len(program.nodes)) for entry in program.heads)
    return last


def _lighter(group: _Group, program: Program, last: dict[Entry, int]) -> bool:
    """Whether running a group later needs no more memory: the inputs that it reads last are no larger than its
    results."""
    inputs = {entry for node in group.members for entry in _read(node)} - {(node, 0) for node in group.members}

    read = [program.specs[node][index] for node, index in inputs
            if node.op is not None and last[node, index] <= group.last]
    lasting = [program.specs[node][0] for node in group.members if last.get((node, 0), -1) > group.last]
    return nbytes(read) <= nbytes(lasting)


# ------------------------------------------------------------------------------------------ computing again


def _costs(program: Program, expressions: dict[Node, Expression], split: int) -> tuple[dict[Entry, int], set[Entry]]:
    """The cost of each value of forward in backward, and the values to compute again there.

    Values that are stored anyway cost nothing: arguments, outputs, and inputs of other operators of backward. Auxiliary
    states are not among them, since they change after forward.
    """
    _, states = program.graph.variables()
    moving = set(states)
    stored: set[Entry] = set(program.heads)
    read: set[Entry] = set()
    for node in program.nodes[split:]:
        for entry in _read(node):
            if node in expressions and program.specs[entry[0]][entry[1]].shape == program.specs[node][0].shape:
                read.add(entry)
            else:
                stored.add(entry)
    costs: dict[Entry, int] = {}
    again: set[Entry] = set()
    for node in program.nodes[:split]:
        expression = expressions.get(node)
        if expression is None:
            if node not in moving:
                costs.update(((node, i), 0) for i in range(len(program.specs[node]))
                             if node.op is None or (node, i) in stored or (node, i) in read)
            continue
        entry, spec = (node, 0), program.specs[node][0]
        assert spec.dtype is not None
        on_host = program.contexts[node].xp is np
        storing = _STORING if on_host else _STORING_ON_DEVICE * spec.dtype.itemsize // 4
        cost = storing + 1
        if entry not in stored and size(spec.shape) >= _LARGE and (  # type: ignore[arg-type]  # shapes are known
                spec.dtype.itemsize > 2 or not on_host):
            cost = sum([cost if prim.cost is None else _cost(prim.cost, on_host) for prim, _ in expression.code])
            for source in _read(node):
                same = program.specs[source[0]][source[1]].shape == spec.shape
                cost += costs.get(source, storing + 1) if same or not costs.get(source) else storing + 1
        if cost <= storing:
            costs[entry] = max(cost, 1)  # at least 1, since the entry is not stored
            if entry in read:
                again.add(entry)
        elif entry in stored or entry in read:
            costs[entry] = 0
    return costs, again


def _cost(additions: int, on_host: bool) -> int:
    """The cost of an instruction in additions on the host, or in instructions of a device."""
    return additions if on_host or additions < _FUNCTION else _STEPS_OF_FUNCTIONS * additions


# --------------------------------------------------------------------------------------------- composing


class _Composer:
    """Makes the fused nodes, in the order of the program."""

    def __init__(self, program: Program, expressions: dict[Node, Expression], groups: dict[Node, _Group], split: int):
        self.program, self.expressions, self.groups = program, expressions, groups
        self.costs: dict[Entry, int] = {}
        self.again: set[Entry] = set()
        if any(size(shape or ()) >= _LARGE for shape in {program.specs[node][0].shape for node in expressions}):
            self.costs, self.again = _costs(program, expressions, split)
        self.backward = {groups[node] for node in program.nodes[split:] if node in groups}
        self.outside = set(program.heads)  # entries that are read outside of their group
        self.inlining: set[_Group] = set()  # groups that compute a value of another group a second time
        for node in program.nodes:
            group = groups.get(node)
            for entry in _read(node):
                if group is not None and groups.get(entry[0]) is group:
                    continue
                if group is not None and self._inline(entry, group):
                    self.inlining.add(group)
                else:
                    self.outside.add(entry)

    def _inline(self, entry: Entry, group: _Group) -> bool:
        """Whether a group computes a value of another group again."""
        return _constant(entry[0]) is not None or (entry in self.again and group in self.backward)

    def change(self, node: Node, became: dict[Entry, Entry]) -> list[Node] | None:
        """Replace the last member of a group by the fused node, and drop the others."""
        group = self.groups.get(node)
        if group is None:
            return None
        return self._fuse_group(group, became) if group.members[-1] is node else []

    def _free(self, group: _Group, exported: Sequence[Node]) -> bool:
        """Whether sums may be rearranged: in backward, where no value must equal one of forward exactly."""
        if group not in self.backward or self.program.specs[group.members[-1]][0].dtype not in _EXACT:
            return False
        return not any(RECOMPUTED in node.tags for node in exported) and not any(
            prim.equality for node in group.members for prim, _ in self.expressions[node].code)

    def _fuse_group(self, group: _Group, became: dict[Entry, Entry]) -> list[Node] | None:
        exported = [node for node in group.members if (node, 0) in self.outside]
        if not exported:
            return []
        if len(group.members) == 1 and group not in self.inlining:
            return None
        specs, last = self.program.specs, group.members[-1]
        terms = _Terms(self.expressions, became, self.costs if group in self.backward else {})
        for node in group.members:
            terms.add(node)
        dtype = specs[last][0].dtype
        assert dtype is not None
        composed = _compose(tuple(terms.terms), tuple([(terms.places[node, 0], specs[node][0]) for node in exported]),
                          tuple([specs[node][index] for node, index in terms.inputs]), dtype,
                          factor_sums if self._free(group, exported) else None)
        sources = list(terms.inputs)
        for node, result in zip(exported, composed.results):
            if result < 0:  # the result equals an input
                became[node, 0] = sources[-1 - result]
        if composed.expression is None:
            return []
        fused = Node(_operator(composed.full), last.name,
                     {"expression": composed.expression, "operators": tuple(terms.operators), "parts": composed.parts,
                      "origins": tuple(terms.origins)},
                     [sources[-1 - number] for number in composed.read], where=last.where)
        specs[fused] = list(composed.specs)
        self.program.contexts[fused] = self.program.contexts[last]
        for node, result in zip(exported, composed.results):
            if result >= 0:
                became[node, 0] = fused, result
        return [fused]


#: An expression and its operands: indices of earlier terms, indices of inputs (-1, -2, …), or constants as text.
Term = tuple[Expression, tuple[int | str, ...]]


class _Terms:
    """The terms of a group: an expression for each member, and for each value that is computed again.

    ``costs`` are those of the values that may be computed again.
    """

    def __init__(self, expressions: dict[Node, Expression], became: dict[Entry, Entry], costs: dict[Entry, int]):
        self.expressions, self.became, self.costs = expressions, became, costs
        self.terms: list[Term] = []
        self.places: dict[Entry, int] = {}
        self.inputs: dict[Entry, int] = {}
        self.operators: list[str] = []
        self.origins: list[tuple[str, Where | None]] = []  # node name and line of each term

    def add(self, node: Node) -> int:
        """Add the term of a node, and terms of its inputs that are computed again; return the index of the term."""
        operands = tuple([self._operand(entry) for entry in _read(node)])
        self.operators.append(node.op.name)  # type: ignore[union-attr]
        self.origins.append((node.name, node.where))
        self.terms.append((self.expressions[node], operands))
        place = self.places[node, 0] = len(self.terms) - 1
        return place

    def _operand(self, entry: Entry) -> int | str:
        node = entry[0]
        if entry in self.places:
            return self.places[entry]
        constant = _constant(node)
        if constant is not None:
            return repr(constant)  # a text differs from all indices, and distinguishes 0.0 from -0.0
        if self.costs.get(entry):
            return self.add(node)
        return self.inputs.setdefault(self.became.get(entry, entry), -1 - len(self.inputs))


#: An expression, its operands and its result: indices of values (integers), or constants (floats).
Part: TypeAlias = tuple[Expression, Sequence[int | float], int | float]


class _GroupExpression(NamedTuple):
    """The expression of a group.

    Attributes
    ----------
    expression : Expression or None
        None if all results equal inputs.
    read : list of int
        Indices of the inputs that it reads. The first ``full`` of them have the shape and dtype of its first result.
    results, specs
        For each wanted term, the index of its result, or the negative index of the input that it equals; shapes and
        dtypes of the results.
    parts
        The parts that it was composed of, by which checks compute them one by one.
    """

    expression: Expression | None
    read: list[int]
    full: int
    results: list[int]
    specs: list[Spec]
    parts: tuple[Sequence[Part], Sequence[int], Sequence[int | float]] | None


@cached(256)
def _compose(terms: tuple[Term, ...], requested: tuple[tuple[int, Spec], ...], ins: tuple[Spec, ...], dtype: np.dtype,
             arranged: Callable[[Expression], Expression] | None) -> _GroupExpression:
    """Compose the expression of a group. Groups with the same terms, as in equal layers, share it.

    ``arranged`` rearranges an expression without casts.
    """
    composition = Composition(dtype)
    for _ in ins:
        composition.input()
    values: list[int | float] = []
    parts: list[Part] = []
    for expression, operands in terms:
        numbers = [float(operand) if isinstance(operand, str) else operand if operand < 0 else values[operand]
                   for operand in operands]
        values.append(composition.add(expression, numbers))
        parts.append((expression, numbers, values[-1]))
    # The result of the last instruction comes first, since it may overwrite an input. Constants come last, 0.0 and -0.0
    # apart.
    ranks = {place: (isinstance(values[place], float), -values[place], math.copysign(1.0, values[place]))
             for place, _ in requested if isinstance(values[place], float) or values[place] >= 0}
    if not ranks:
        return _GroupExpression(None, [], 0, [int(values[place]) for place, _ in requested], [], None)
    specs = {ranks[place]: spec for place, spec in requested if place in ranks}
    order = sorted(specs)
    heads = [-number for _, number, _ in order]
    full = {-1 - i for i, spec in enumerate(ins) if spec == specs[order[0]] and not order[-1][0]}
    composed, read = composition.finish(
        heads, sorted(range(-1, -1 - len(ins), -1), key=lambda number: number not in full))
    if arranged is not None and not any(prim.dtype for prim, _ in composed.code):
        composed = arranged(composed)
    results = [order.index(ranks[place]) if place in ranks else int(values[place]) for place, _ in requested]
    return _GroupExpression(composed, read, len(full.intersection(read)), results, [specs[rank] for rank in order],
                            (parts, read, heads))


def fuse(program: Program) -> Program:
    """Fuse element-wise operators that read each other's results."""
    expressions = _expressions(program)
    if not expressions:
        return program
    outputs = program.heads[:len(program.bound.graph.heads)]
    needed = set(reachable(program.nodes, outputs))
    split = max((i + 1 for i, node in enumerate(program.nodes) if node in needed), default=0)
    program.rebuild(_Composer(program, expressions, _groups_of_nodes(program, expressions, split), split).change)
    program.nodes = reachable(program.nodes, program.heads, read=True)
    return program
