"""Rows of branches and loops, and of sequences and optional values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.cells.state import STATE
from opreg.core.registry import ops
from opreg.core.spec import is_floating
from opreg.errors import ArgumentError, DTypeError, OpError, ShapeError
from opreg.nn.ops import cond
from opreg.nn.ops.control import foreach, while_true

from ..graph import Graph, Node, UnknownNumbers
from ..rows import Given, Host, row
from ..tensors import computes, dtype_of
from .parts import parts_of
from .shapes import MOST, numbers

#: The largest number of rounds that an array of round indices may have, and of nodes to which a model's loops are
#: unrolled.
_MANY, _UNROLLED = 1 << 16, 1 << 15
_ENDLESS = "it has no greatest number of rounds that could be reached"


def _single_number(node: Node, array: Any, what: str) -> Any:
    """The single number of an array that decides what a node runs.

    Raises
    ------
    ShapeError, DTypeError
        If it has another number of elements, or an element that is no number.
    """
    if array.size != 1:
        raise ShapeError(f"{node.op_type}: its {what} has shape {array.shape}, expected one number")
    if not (is_floating(array.dtype) or array.dtype.kind in "biu"):
        raise DTypeError(f"{node.op_type}: its {what} has dtype {array.dtype}")
    return array.reshape(-1)[0]


@row("If")
def branch(node: Node, condition: Given, *, then_branch: Graph, else_branch: Graph) -> Any:
    try:
        truth = bool(_single_number(node, node.host(condition), "condition"))
    except UnknownNumbers:
        def side(graph: Graph) -> Any:
            return lambda: tuple([node.lift(value) for value in node.body(graph, [])])

        results = cond(condition, side(then_branch), side(else_branch))
        return tuple(results) if isinstance(results, (list, tuple)) else results
    return tuple(node.body(then_branch if truth else else_branch, []))


def _stack_results(node: Node, values: Sequence[Any], info: Any, axis: int = 0) -> Any:
    """The results of all iterations, stacked along a new axis."""
    if not values:
        kind = info.type.tensor_type
        dtype = dtype_of(kind.elem_type) if kind.elem_type else np.dtype(np.float32)
        return np.zeros((0, *[dim.dim_value for dim in kind.shape.dim]), dtype)
    if all(isinstance(value, np.ndarray) for value in values):
        return np.stack(values, axis)
    return ops.stack(*[node.lift(value) for value in values], axis=axis, num_args=len(values))


@row("Loop")
def loop(node: Node, most: Host, condition: Given, *states: Given, body: Graph) -> Any:
    rounds = None if most is None else int(_single_number(node, most, "number of rounds"))
    bounded = rounds is not None and rounds <= MOST
    if STATE.trace is not None and rounds is not None and 1 < rounds <= MOST:
        for one_node in (_loop_of_known_length, _conditional):
            try:
                return one_node(node, rounds, condition, states, body)
            except OpError:  # a body that cannot be one node is unrolled, which raises the error otherwise
                pass
    on = condition is None or bool(_single_number(node, node.host(condition), "condition"))
    carried, count, step = list(states), len(states), 0
    before, since, watched = carried, 0, not bounded and _repeats(body)
    columns: list[list[Any]] = [[] for _ in body.outputs[1 + count:]]
    while on and (rounds is None or step < rounds):
        if STATE.trace is not None:
            _count_unrolled(node, body)
        results = node.body(body, [np.array(step, np.int64), np.array(True), *carried])
        on = bool(_single_number(node, node.host(results[0]), "condition"))
        fixed = _fixed_condition(body) if on and not bounded and step == 0 else None
        if fixed is not None:
            raise ArgumentError(f"Loop: it never ends: no iteration changes its condition {fixed!r}, and {_ENDLESS}")
        carried = results[1:1 + count]
        if on and watched and _same_states(node, before, carried):
            raise ArgumentError(f"Loop: it never ends: after iteration {step + 1} its states are those of iteration "
                                f"{since}, and {_ENDLESS}")
        # Each state is compared with that of an earlier step, which advances at powers of two, so that a cycle of any
        # length is found.
        if step + 1 == 2 * since or step == 0:
            before, since = carried, step + 1
        for column, value in zip(columns, results[1 + count:]):
            column.append(value)
        step += 1
    infos = body.output_infos[1 + count:]
    return (*carried, *[_stack_results(node, column, info) for column, info in zip(columns, infos)])


def _count_unrolled(node: Node, body: Graph) -> None:
    """Count the nodes of a round that is unrolled.

    Raises
    ------
    UnknownNumbers
        If all loops of the model together come to more than a graph should have.
    """
    node.model.unrolled += len(body.nodes)
    if node.model.unrolled > _UNROLLED:
        raise UnknownNumbers.of("Loop", f"more than {_UNROLLED} nodes for its iterations")


def _repeats(body: Graph) -> bool:
    """Whether an iteration depends only on the states: it neither reads its number nor draws random numbers."""
    number = body.inputs[0] if body.inputs else ""
    return not any(number in node.reads() or node.draws or not all(map(_repeats, node.bodies())) for node in body.nodes
                   ) and number not in body.outputs


def _same_states(node: Node, before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether two iterations have equal states; the smallest states are compared first. The shapes decide
    if the numbers are known only when the graph runs."""
    if any(isinstance(value, list) or value is None for value in (*before, *now)):
        return False
    if any(node.lengths(a) != node.lengths(b) for a, b in zip(before, now)):
        return False
    pairs = [(node.open_numbers(a), node.open_numbers(b)) for a, b in zip(before, now)]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return all(a.tobytes() == b.tobytes() for a, b in sorted(known, key=lambda pair: pair[0].size))


def _fixed_condition(body: Graph) -> str | None:
    """The name of the value that a body copies as its condition, if it is the same in each iteration."""
    copied = {copy: name for node in body.nodes if node.op_type == "Identity"
              for name, copy in zip(node.inputs, node.outputs)}
    others = {name for node in body.nodes if node.op_type != "Constant" for name in node.outputs}
    others.update(body.inputs[:1], body.inputs[2:])  # the iteration's index, and the states
    name = body.outputs[0]
    while name in copied:
        name = copied[name]
    return None if name in others else name


def _loop_of_known_length(node: Node, rounds: int, condition: Any, states: Sequence[Any], body: Graph
                          ) -> tuple[Any, ...]:
    """A loop with a known number of iterations, whose condition is always true, as one node.

    Raises
    ------
    UnknownNumbers
        If the condition is known only when the graph runs, or is false, or if the rounds are too many to be numbered
        in a constant.
    """
    if condition is not None and not _single_number(node, node.host(condition), "condition"):
        raise UnknownNumbers("no round")
    if rounds > _MANY:
        raise UnknownNumbers("values of many iterations")

    def step(carried: Any, number: Any) -> tuple[Any, Any]:
        on, *results = node.body(body, [number, np.array(True), *carried])
        if not _single_number(node, node.host(on), "condition"):
            raise UnknownNumbers("one round")
        lifted = [node.lift(value) for value in results]
        return tuple(lifted[:len(states)]), tuple(lifted[len(states):])

    kept, outs = foreach(step, tuple(map(node.lift, states)), [np.arange(rounds)])
    return (*kept, *outs)


def _conditional(node: Node, rounds: int, condition: Any, states: Sequence[Any], body: Graph) -> tuple[Any, ...]:
    """A loop with a condition as one node. The length of stacked outputs is the number of iterations, known only when
    it runs."""
    start = np.array([True]) if condition is None else ops._np_reshape(node.lift(condition), newshape=(1,))

    def step(value: Any) -> tuple[Any, Any]:
        number, _, *carried = value
        on, *results = node.body(body, [ops._np_reshape(number, newshape=()), np.array(True), *carried])
        lifted = [node.lift(value) for value in results]
        return ((number + 1, ops._np_reshape(node.lift(on), newshape=(1,)), *lifted[:len(states)]),
                tuple(lifted[len(states):]))

    init = (np.zeros(1, np.int64), start, *map(node.lift, states))
    (count, _, *carried), outs = while_true(lambda value: value[1], step, init, rounds)
    return (*carried, *[ops._contrib_boolean_mask(out, ops.broadcast_lesser(node.cast(
        ops._contrib_arange_like(out, axis=0), np.int64), count)) for out in outs])


@row("Scan")
def scan_of_batches(node: Node, lengths: Host, *values: Any, body: Graph, num_scan_inputs: int, directions: Any = None
                    ) -> Any:
    if lengths is not None and len(set(numbers(lengths))) > 1:
        raise ArgumentError("Scan: sequences of several lengths in one batch")
    batch = node.shape(values[-1])[0]
    each = []
    for i in range(batch):
        rows = [_slice_at(node, value, 0, i) for value in values]
        each.append(_scan(node, rows, body, num_scan_inputs, directions, None, None, None))
    return tuple([_stack_results(node, column, None) for column in zip(*each)])


@row("Scan", since=9)
def scan(node: Node, *values: Any, body: Graph, num_scan_inputs: int, scan_input_axes: Any = None,
         scan_input_directions: Any = None, scan_output_axes: Any = None, scan_output_directions: Any = None) -> Any:
    return _scan(node, list(values), body, num_scan_inputs, scan_input_directions, scan_input_axes,
                 scan_output_axes, scan_output_directions)


def _slice_at(node: Node, value: Any, axis: int, place: int) -> Any:
    shape = node.lengths(value)
    return ops._np_reshape(ops.slice_axis(value, axis=axis, begin=place, end=place + 1),
                           newshape=tuple([dim for i, dim in enumerate(shape) if i != axis]))


def _scan(node: Node, values: list[Any], body: Graph, count: int, directions: Any, axes: Any, out_axes: Any,
          out_directions: Any) -> tuple[Any, ...]:
    if not 0 <= count <= len(values):
        raise ArgumentError(f"Scan: num_scan_inputs={count} of {len(values)} inputs")
    states, data = values[:len(values) - count], values[len(values) - count:]
    along = [node.axis(axis, value) for axis, value in zip(axes or [0] * count, data)]
    backwards = list(directions or [0] * count)
    infos = body.output_infos[len(states):]
    columns: Sequence[Any]
    if STATE.trace is not None:
        rows = [_move_axis(node, _reverse(value, axis) if back else value, axis, 0)
                for value, axis, back in zip(data, along, backwards)]
        try:
            states, columns = _scanned_as_one(node, states, rows, body)
        except OpError:  # a body that cannot be one node is unrolled, which raises the error otherwise
            pass
        else:
            ordered = [_reverse(column, 0) if out_directions and out_directions[i] else column
                       for i, column in enumerate(columns)]
            return (*states, *[_move_axis(node, column, 0, node.axis(out_axes[i] if out_axes else 0, column))
                               for i, column in enumerate(ordered)])
    lengths = {node.shape(value)[axis] for value, axis in zip(data, along)}
    if len(lengths) != 1:
        raise ShapeError(f"Scan: its inputs have lengths {sorted(lengths)}")
    length, = lengths
    columns = [[] for _ in infos]
    for step in range(length):
        rows = [_slice_at(node, value, axis, length - 1 - step if back else step)
                for value, axis, back in zip(data, along, backwards)]
        results = node.body(body, [*states, *rows])
        states = results[:len(states)]
        for column, value in zip(columns, results[len(states):]):
            column.append(value)
    outs = []
    for i, (column, info) in enumerate(zip(columns, infos)):
        ordered = column[::-1] if out_directions and out_directions[i] else column
        axis = out_axes[i] if out_axes else 0
        rank = node.rank(column[0]) + 1 if column else 1
        outs.append(_stack_results(node, ordered, info, axis % rank))
    return (*states, *outs)


def _reverse(value: Any, axis: int) -> Any:
    """A value reversed along an axis."""
    return ops.reverse(value, axis=(axis,))


def _move_axis(node: Node, value: Any, axis: int, place: int) -> Any:
    """A value with one of its axes moved."""
    order = [each for each in range(node.rank(value)) if each != axis]
    order.insert(place, axis)
    return value if order == sorted(order) else ops.transpose(value, axes=tuple(order))


def _scanned_as_one(node: Node, states: Sequence[Any], data: Sequence[Any], body: Graph) -> tuple[Any, Any]:
    """The last states and the stacked outputs of a scan, as one node."""

    def step(carried: Any, *rows: Any) -> tuple[Any, Any]:
        results = [node.lift(value) for value in node.body(body, [*carried, *rows])]
        return tuple(results[:len(states)]), tuple(results[len(states):])

    return foreach(step, tuple(states), data)


# --------------------------------------------------------------------------------------------------- sequences


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ArgumentError(f"expected a sequence, got {type(value).__name__}")
    return value


def _place(position: Any, count: int, more: int = 0) -> int:
    at = int(np.asarray(position).reshape(-1)[0])
    if not -count <= at < count + more:
        raise ArgumentError(f"index {at} of a sequence of {count}")
    return at + count if at < 0 else at


@row("SequenceConstruct")
def sequence_construct(node: Node, *values: Given) -> Any:
    return list(values)


@row("SequenceEmpty")
def sequence_empty(node: Node, *, dtype: int = 1) -> Any:
    return []


@row("SequenceAt")
def sequence_at(node: Node, sequence: Given, position: Host) -> Any:
    return _sequence(sequence)[_place(position, len(_sequence(sequence)))]


@row("SequenceLength")
def sequence_length(node: Node, sequence: Given) -> Any:
    return np.array(len(_sequence(sequence)), np.int64)


@row("SequenceInsert")
def sequence_insert(node: Node, sequence: Given, value: Given, position: Host = None) -> Any:
    longer = list(_sequence(sequence))
    longer.insert(len(longer) if position is None else _place(position, len(longer), 1), value)
    return longer


@row("SequenceErase")
def sequence_erase(node: Node, sequence: Given, position: Host = None) -> Any:
    shorter = list(_sequence(sequence))
    del shorter[-1 if position is None else _place(position, len(shorter))]
    return shorter


@row("SequenceMap")
def sequence_map(node: Node, sequence: Given, *others: Given, body: Graph) -> Any:
    columns: list[list[Any]] = [[] for _ in body.outputs]
    for i, value in enumerate(_sequence(sequence)):
        elements = [other[i] if isinstance(other, list) else other for other in others]
        for column, result in zip(columns, node.body(body, [value, *elements])):
            column.append(result)
    return tuple(columns)


@row("SplitToSequence")
def split_to_sequence(node: Node, x: Any, lengths: Host = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    axis = node.axis(axis, x)
    whole = node.shape(x)[axis]
    if lengths is None:
        parts = list(parts_of(node, x, [1] * whole, axis, whole))
        return parts if keepdims else [_slice_at(node, part, axis, 0) for part in parts]
    if lengths.ndim == 0:
        each = int(lengths)
        if each < 1:
            raise ShapeError(f"SplitToSequence: expected parts of positive length, got {each}")
        sizes = [min(each, whole - start) for start in range(0, whole, each)]
    else:
        sizes = list(numbers(lengths))
    return list(parts_of(node, x, sizes, axis, len(sizes)))


@row("ConcatFromSequence")
def concat_from_sequence(node: Node, sequence: Given, *, axis: int, new_axis: int = 0) -> Any:
    values = _sequence(sequence)
    if all(isinstance(value, np.ndarray) and not computes(value.dtype) for value in values):
        return (np.stack if new_axis else np.concatenate)(values, axis)
    lifted = [node.lift(value) for value in values]
    place = node.axis(axis, lifted[0], extra=new_axis)
    if new_axis:
        return ops.stack(*lifted, axis=place, num_args=len(lifted))
    return ops.Concat(*lifted, dim=place, num_args=len(lifted))


@row("Optional")
def optional(node: Node, value: Given = None, *, type: Any = None) -> Any:
    return value


@row("OptionalHasElement")
def optional_has_element(node: Node, value: Given = None) -> Any:
    return np.array(value is not None)


@row("OptionalGetElement")
def optional_get_element(node: Node, value: Given) -> Any:
    if value is None:
        raise ArgumentError("OptionalGetElement: there is no element")
    return value
