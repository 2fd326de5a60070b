"""Control flow over tensors: branches and loops, which compiled functions can hold as nodes.

Eagerly they are plain Python. In a compiled function each is one node, whose body is a graph. Bodies may use tensors
and Parameters from outside, and gradients pass through them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.symbol.control_flow import COND, FOREACH, WHILE_LOOP, Operands
from opreg.symbol.symbol import Symbol

from ...cells.state import STATE
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.trace import FunctionTracer
from ...cells.traced_tensor import TracedTensor
from ...cells.tree import flatten, rebuild
from ...cells.typing import TensorLike
from ...core.mode import Recording
from ...core.op import Op
from ...core.registry import ops
from ...core.spec import Spec
from ...errors import ArgumentError, ShapeError
from .array import stack
from .lift import tensor

__all__ = ["cond", "fori_loop", "scan", "switch", "switch_layer", "while_loop"]

T = TypeVar("T")


class _Body:
    """A function traced to a separate graph.

    Attributes
    ----------
    symbol : Symbol
        Graph of its computation.
    inputs : list of Node
        The variables of the graph, in its order.
    structure
        The nesting of the function's results.
    values : list of TracedTensor
        The tensors among the results.
    outside : dict
        Outer values of the variables: arrays, or values of the trace.
    """

    def __init__(self, title: str, function: Callable, arguments: tuple[Any, ...], needs_all: bool = False):
        leaves: list[TracedTensor] = []
        structure = flatten(arguments, leaves)
        outer = STATE.trace
        assert outer is not None  # bodies belong to a trace
        self.trace = FunctionTracer(title, outer)
        self.trace.assigns = False
        self.slots = [self.trace.input(outer.unique(f"{title}_arg"), leaf._spec.shape, leaf._dt) for leaf in leaves]
        with self.trace:
            results = function(*rebuild(structure, iter(self.slots)))
            values: list[Tensor] = []
            self.structure = flatten(results, values)
            self.values = [self.trace.read(value) for value in values]
            heads = [ops._copy(value) if value._entry[0].op is None else value for value in self.values]
            if needs_all:  # every loop value needs an input
                used = {node for node in Symbol([head._entry for head in heads])._graph().nodes if node.op is None}
                heads = [ops._copy(slot) for slot in self.slots if slot._entry[0] not in used] + heads
        if self.trace.updated:
            raise ArgumentError(f"{title}: its body assigns a Parameter, which a compiled function can only do outside "
                                f"of it")
        self.extra = len(heads) - len(self.values)
        self.symbol = Symbol([head._entry for head in heads])
        self.inputs = [node for node in self.symbol._graph().nodes if node.op is None]
        arrays = {node: array for array, node in self.trace.variables.values()}
        self.outside = {node: arrays.get(node, value) for node, value in self.trace.outer.items()}

    def places(self) -> list[int]:
        """Indices of slots among the inputs."""
        return [self.inputs.index(slot._entry[0]) for slot in self.slots]


def _node(op: Op, inputs: Sequence[TensorBase | NDArray], bodies: Sequence[_Body], **attrs: object
          ) -> list[TracedTensor]:
    attrs |= {"num_args": len(inputs) + len(bodies), "subgraphs": tuple(body.symbol for body in bodies)}
    assert STATE.trace is not None
    with Recording(None, True):  # operators in a body store their mode
        outputs = STATE.trace.call(op, inputs, attrs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def _places_among(operands: Operands, values: Sequence[Any]) -> tuple[int, ...]:
    """Indices of values among the operands of a loop or branch."""
    trace = STATE.trace
    assert trace is not None
    return tuple([operands.place(trace.read(value)._entry, value) for value in values])


def _tensors(value: Any) -> Any:
    """A nesting with its arrays and numbers converted to tensors."""
    if isinstance(value, tuple):
        return tuple(_tensors(part) for part in value)
    if isinstance(value, list):
        return [_tensors(part) for part in value]
    return value if value is None else tensor(value)


def _live(value: Any) -> Any:
    """The tensors of a nested structure, replaced by the values that the trace reads for them."""
    leaves: list[Tensor] = []
    structure = flatten(value, leaves)
    assert STATE.trace is not None
    return rebuild(structure, iter([STATE.trace.read(leaf) for leaf in leaves]))


# ------------------------------------------------------------------------------------------------------ branches


def cond(pred: TensorLike, true_fn: Callable, false_fn: Callable, *inputs: Any) -> Any:
    """Call one of two functions with the same inputs, chosen by a condition.

    Parameters
    ----------
    pred : tensor of one element, or bool
        The condition; true unless zero.
    true_fn, false_fn : callable
        Return tensors of the same shapes and dtypes, in the same nesting.

    Examples
    --------
    >>> print(cond(tensor(True), lambda x: x + 1, lambda x: x - 1, tensor([1.0])))
    [2.]
    """
    if STATE.trace is None or not STATE.trace.knows(pred):
        return (true_fn if bool(pred) else false_fn)(*inputs)
    truth: TensorBase = STATE.trace.read(pred)
    if truth.size != 1:
        raise ShapeError(f"cond: expected a condition of one number, got shape {truth.shape}")
    truth = truth.reshape((1,))
    inputs = _live(_tensors(inputs))
    test = _Body("cond_pred", lambda truth: truth, (truth,))
    branches = [_Body(f"cond_{name}", function, inputs) for name, function in (("then", true_fn), ("else", false_fn))]
    then, otherwise = branches
    if [v._spec for v in then.values] != [v._spec for v in otherwise.values] or \
            then.structure != otherwise.structure:
        raise ShapeError("cond: both functions must return tensors of the same shapes and dtypes, in equal structures")
    leaves: list[TracedTensor] = []
    flatten(inputs, leaves)
    operands, locations = Operands(), []
    for body, values in ((test, [truth]), (then, leaves), (otherwise, leaves)):
        value_of = dict(zip([slot._entry[0] for slot in body.slots], values))
        read = [value_of[node] if node in value_of else body.outside[node] for node in body.inputs]
        locations.append(_places_among(operands, read))
    outputs = _node(COND, operands.values, [test, then, otherwise], num_outputs=len(then.values),
                    cond_input_locs=locations[0], then_input_locs=locations[1], else_input_locs=locations[2])
    return rebuild(then.structure, iter(outputs))


# --------------------------------------------------------------------------------------------------------- loops


def while_loop(cond_func: Callable, loop_func: Callable, init_val: Any, max_iterations: int | None = None) -> Any:
    """Apply a function repeatedly to a value, or a nesting of values, while a condition on the value holds.

    Parameters
    ----------
    cond_func : callable
        A function of the value that returns one number.
    loop_func : callable
        A function of the value that returns the next value, of the same shapes and dtypes.
    max_iterations : int, optional
        Largest number of rounds. In a compiled function it decides the memory for gradients; without it the loop is a
        Python loop, traced round by round.

    Examples
    --------
    >>> print(while_loop(lambda x: x < 100, lambda x: x * 2, tensor(3.0)))
    192.0
    """
    value = _tensors(init_val)
    if STATE.trace is None or max_iterations is None:
        rounds = 0
        while bool(cond_func(value)) and (max_iterations is None or rounds < max_iterations):
            value, rounds = loop_func(value), rounds + 1
        return value
    if max_iterations < 1:
        raise ArgumentError(f"while_loop: max_iterations must be an int from 1, got {max_iterations!r}")
    return while_true(cond_func, lambda value: (loop_func(value), None), value, max_iterations)[0]


def while_true(cond_func: Callable, loop_func: Callable, init: Any, max_iterations: int) -> tuple[Any, Any]:
    """One node for a loop with a condition, in a trace.

    Parameters
    ----------
    cond_func : callable
        A function of the value that returns one number.
    loop_func : callable
        A function of the value that returns the next value, of the same shapes and dtypes, and an output.
    max_iterations : int
        Largest number of rounds.

    Returns
    -------
    value, outputs
        The last value, and the outputs stacked along a new first axis of length ``max_iterations``, with zeros after
        the last round; None for outputs that are None.

    Raises
    ------
    ShapeError
        When the next value has other shapes or dtypes.
    """
    value = _live(_tensors(init))
    leaves: list[TracedTensor] = []
    structure = flatten(value, leaves)
    outs: list[Any] = []
    test = _Body("while_cond", lambda value: tensor(cond_func(value)).reshape((1,)), (value,))
    body = _Body("while_body", _outputs_first(loop_func, outs), (value,), needs_all=True)
    count = len(body.values) - len(leaves)
    _check("while_loop", structure, leaves, body.structure[2][1], body.values[count:])
    operands, locations = Operands(leaves), []
    for part in (test, body):
        place_of = {slot._entry[0]: i for i, slot in enumerate(part.slots)}
        locations.append(tuple([place_of[node] if node in place_of else _places_among(operands, [part.outside[node]])[0]
                                for node in part.inputs]))
    first = body.extra + count
    outputs = _node(WHILE_LOOP, operands.values, [test, body], num_outputs=first + len(leaves), num_out_data=first,
                    max_iterations=max_iterations, cond_input_locs=locations[0], func_input_locs=locations[1],
                    func_var_locs=tuple(body.places()))
    return rebuild(structure, iter(outputs[first:])), rebuild(outs[0], iter(outputs[body.extra:first]))


def _outputs_first(loop_func: Callable, outs: list[Any]) -> Callable:
    """The body of a loop in the operator's order: outputs, then the next value. ``outs`` receives their nesting."""

    def step(*values: Any) -> tuple[Any, Any]:
        new, out = loop_func(*values)
        out = None if out is None else _tensors(out)
        outs.append(flatten(out, []))
        return out, _tensors(new)

    return step


def _check(name: str, structure: object, before: Sequence[TracedTensor], new: object, after: Sequence[TracedTensor]
           ) -> None:
    specs = [[(v._spec.shape, str(v._dt)) for v in values] for values in (before, after)]
    if structure != new or specs[0] != specs[1]:
        raise ShapeError(f"{name}: the body must return values of the shapes, dtypes and structure of its arguments: "
                         f"{specs[0]}, "
                         f"not {specs[1]}")


def scan(loop_func: Callable, init: Any, xs: Any, length: int | None = None, unroll: bool = True) -> tuple[Any, Any]:
    """Apply a function to each row of a tensor, or element of a list, passing a value from one call to the next.

    Parameters
    ----------
    loop_func : callable
        A function of the value and a row or element that returns the next value and an output.
    xs : tensor, list, tuple or None
        The rows or elements; None passes None, ``length`` times.
    unroll : bool
        Whether a compiled function holds every round; otherwise it holds the body once.

    Returns
    -------
    value, outputs
        The last value, and the outputs: those of rows stacked along a new first axis, or None if they are None; the
        others as a list.

    Examples
    --------
    >>> total, sums = scan(lambda total, x: (total + x, total + x), tensor(0.0), tensor([1.0, 2.0, 3.0]))
    >>> print(total, sums)
    6.0 [1. 3. 6.]
    >>> scan(lambda total, x: (total + x, x * 2), tensor(0.0), [1, 2, 3])[1]
    [2, 4, 6]
    """
    value = _tensors(init)
    if STATE.trace is not None and not unroll and isinstance(xs, (TensorBase, np.ndarray)):
        return foreach(loop_func, value, [xs])
    if xs is None and length is None:
        raise ArgumentError("scan: expected xs or length")
    count = length if xs is None else len(xs)
    outputs = []
    for i in range(count or 0):
        value, out = loop_func(value, None if xs is None else xs[i])
        outputs.append(out)
    return value, _stack_outputs(outputs) if isinstance(xs, (TensorBase, np.ndarray)) else outputs


def _stack_outputs(outputs: list[Any]) -> Any:
    if not outputs or outputs[0] is None:
        return None
    rows: list[list[Tensor]] = []
    structure: Any = None
    for out in outputs:
        leaves: list[Tensor] = []
        structure = flatten(_tensors(out), leaves)
        rows.append(leaves)
    return rebuild(structure, iter([stack(column) for column in zip(*rows)]))


def foreach(loop_func: Callable, init: Any, xs: Sequence[TensorLike]) -> tuple[Any, Any]:
    """One node for a loop over the rows of tensors, in a trace.

    Parameters
    ----------
    loop_func : callable
        A function of the value and a row of each tensor that returns the next value, of the same shapes and dtypes, and
        an output.
    xs : sequence of tensors
        Tensors of one length along the first axis.

    Returns
    -------
    value, outputs
        The last value, and the outputs stacked along a new first axis; None for outputs that are None.

    Raises
    ------
    ShapeError
        When the next value has other shapes or dtypes.
    """
    assert STATE.trace is not None
    value = _live(_tensors(init))
    data = [STATE.trace.read(tensor(x)) for x in xs]
    scalars = [len(value._spec.shape or ()) == 1 for value in data]  # the operator has shape (1,) for scalars
    data = [STATE.trace.read(value.reshape(-1, 1)) if single else value for value, single in zip(data, scalars)]
    leaves: list[TracedTensor] = []
    structure = flatten(value, leaves)
    outs: list[Any] = []

    def rows_of(value: Any, *parts: Tensor) -> tuple[Any, Any]:
        return loop_func(value, *[part.reshape(()) if single else part for part, single in zip(parts, scalars)])

    body = _Body("scan_body", _outputs_first(rows_of, outs), (value, *map(_Slice, data)), needs_all=True)
    count = len(body.values) - len(leaves)
    _check("scan", structure, leaves, body.structure[2][1], body.values[count:])
    places = body.places()
    states, rows = places[:len(leaves)], places[len(leaves):]
    captured = [i for i in range(len(body.inputs)) if i not in places]
    inputs = [*data, *leaves, *(body.outside[body.inputs[i]] for i in captured)]
    outputs = _node(FOREACH, inputs, [body], num_outputs=body.extra + len(body.values),
                    num_out_data=body.extra + count, in_state_locs=tuple(states), in_data_locs=tuple(rows),
                    remain_locs=tuple(captured))
    first = body.extra + count
    return rebuild(structure, iter(outputs[first:])), rebuild(outs[0], iter(outputs[body.extra:first]))


class _Slice(TensorBase):
    """Stands for a slice of a tensor when only its shape and dtype are needed."""

    __slots__ = ("_spec",)

    def __init__(self, xs: TracedTensor):
        assert xs._spec.shape is not None  # only the number of its rows is used
        self._spec = Spec(xs._spec.shape[1:], xs._dt)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a slice."""
        return self._spec.shape or ()

    @property
    def _dt(self) -> np.dtype:
        return np.dtype(self._spec.dtype)


def fori_loop(lower: int, upper: int, loop_func: Callable, init_val: Any, unroll: bool = True) -> Any:
    """Apply a function repeatedly to a counter and a value.

    Parameters
    ----------
    lower, upper : int
        The counter goes from ``lower`` to before ``upper``.
    loop_func : callable
        A function of the counter, which is a tensor if the loop is not unrolled, and the value; returns the next value.
    unroll : bool
        Whether a compiled function holds every round; otherwise it holds the body once.

    Examples
    --------
    >>> print(fori_loop(0, 4, lambda i, x: x + i, tensor(0.0)))
    6.0
    """
    if STATE.trace is not None and not unroll and upper > lower:
        counter = tensor(np.arange(lower, upper))
        return foreach(lambda value, i: (loop_func(i, value), None), init_val, [counter])[0]
    value = _tensors(init_val)
    for i in range(lower, upper):
        value = loop_func(i, value)
    return value


def switch(condition: Any, true: T, false: T) -> T:
    """One of two values or functions, chosen by a truth value that Python reads.

    ``cond`` chooses without reading the value in Python, and ``select`` chooses for each element.

    Examples
    --------
    >>> switch(tensor(False), 1, 2)
    2
    """
    return true if condition else false


def switch_layer(index: Any, layers: Sequence[T]) -> T:
    """One of several functions or Cells, selected by an index that is read on the host.

    Examples
    --------
    >>> switch_layer(tensor(1), [min, max])(3, 4)
    4
    """
    return layers[operator.index(index)]
