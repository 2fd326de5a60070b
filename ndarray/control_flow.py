"""Eager ``foreach``, ``while_loop`` and ``cond``, with the signatures of those of symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from opreg.core.registry import ops
from opreg.core.rules import as_list
from opreg.core.value import Value
from opreg.errors import ArgumentError

from .ndarray import NDArray

__all__ = ["foreach", "while_loop", "cond", "check_rounds"]

T = TypeVar("T")


def check_rounds(max_iterations: object) -> None:
    """Raise an error unless ``max_iterations`` is a positive int."""
    if type(max_iterations) is not int or max_iterations < 1:
        raise ArgumentError(f"while_loop: max_iterations must be an int from 1, got {max_iterations!r}")


def _stack_rounds(rounds: list[Any]) -> Any:
    """The outputs of all rounds, nested as those of one, each stacked along a new first axis."""
    if isinstance(rounds[0], Value):
        return ops.stack(*rounds, axis=0, num_args=len(rounds))
    return [_stack_rounds([outputs[i] for outputs in rounds]) for i in range(len(rounds[0]))]


def foreach(body: Callable[[Any, Any], tuple[Any, Any]], data: NDArray | Sequence[NDArray], init_states: Any,
            name: str = "foreach") -> tuple[Any, Any]:
    """Apply a body to every slice of the data along the first axis, passing states from each to the next.

    Parameters
    ----------
    body : function of data and states
        Returns outputs, which are stacked along a new first axis, and new states.
    data, init_states : NDArray or list of them
        The inputs that are sliced, and the initial states.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> sums, last = foreach(lambda x, total: (x + total, x + total), array([[1], [2], [3]]), array([0]))
    >>> sums.asnumpy().ravel()
    array([1., 3., 6.], dtype=float32)
    """
    parts = as_list(data)
    lengths = {len(part) for part in parts}
    if len(lengths) != 1 or 0 in lengths:
        raise ArgumentError(f"foreach: the data must have one common first dimension of at least 1, got "
                            f"{[part.shape for part in parts]}")
    states, outputs = init_states, []
    for i in range(lengths.pop()):
        slices = [part[i] for part in parts]
        output, states = body(slices if isinstance(data, (list, tuple)) else slices[0], states)
        outputs.append(output)
    return _stack_rounds(outputs), states


def while_loop(cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: int,
               name: str = "while_loop") -> tuple[Any, Any]:
    """Apply a function to loop variables while a condition on them holds.

    Parameters
    ----------
    cond : function of the loop variables
        Returns an array with one element.
    func : function of the loop variables
        Returns outputs, which are stacked, and new loop variables.
    loop_vars : NDArray or list of them
        The initial states.
    max_iterations : int
        The largest number of rounds. Stacked outputs have this length, with zeros after the last round. Without any
        round, outputs are an empty list, since their shapes are unknown.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> squares, last = while_loop(lambda i: i < 3, lambda i: (i * i, i + 1), array([1]), max_iterations=3)
    >>> squares.asnumpy().ravel(), last.asnumpy()
    (array([1., 4., 0.], dtype=float32), array([3.], dtype=float32))
    """
    check_rounds(max_iterations)
    single = isinstance(loop_vars, Value)
    variables = as_list(loop_vars)
    outputs: list[Any] = []
    while len(outputs) < max_iterations and bool(cond(*variables)):
        output, changed = func(*variables)
        outputs.append([] if output is None else output)
        changed = as_list(changed)
        if len(changed) != len(variables):
            raise ArgumentError(f"while_loop: func returned {len(changed)} loop variables, expected {len(variables)}")
        variables = changed
    stacked = _pad_rounds(_stack_rounds(outputs), max_iterations) if outputs else []
    return stacked, variables[0] if single else variables


def _pad_rounds(outputs: Any, length: int) -> Any:
    if isinstance(outputs, (list, tuple)):
        return [_pad_rounds(output, length) for output in outputs]
    missing = length - len(outputs)
    if not missing:
        return outputs
    padding = ops.broadcast_axis(ops.zeros_like(outputs[:1]), axis=0, size=missing)
    return ops.Concat(outputs, padding, dim=0, num_args=2)


def cond(pred: NDArray | Callable[[], NDArray], then_func: Callable[[], T], else_func: Callable[[], T],
         name: str = "cond") -> T:
    """Compute one of two branches.

    Parameters
    ----------
    pred : NDArray, or function without arguments
        The condition, one element: zero selects ``else_func``, any other value ``then_func``.
    then_func, else_func : function without arguments
        Return arrays.

    Examples
    --------
    >>> from opreg.ndarray import array
    >>> cond(array([1]), lambda: "yes", lambda: "no")
    'yes'
    """
    return then_func() if bool(pred() if callable(pred) else pred) else else_func()
