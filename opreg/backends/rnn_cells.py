"""Recurrent cells and their gradients, for one element, as expressions that back ends compile."""

from __future__ import annotations

from typing import Any

from opreg.elementwise.expression import Expression, greater, maximum, tanh
from opreg.elementwise.rows import traced

__all__ = ["CELLS"]


def _sigmoid(x: Any) -> Any:
    return tanh(x * 0.5) * 0.5 + 0.5


def _tanh_derivative(y: Any) -> Any:
    """The derivative of tanh where its value is ``y``."""
    return 1.0 - y * y


def lstm_forward(enter: Any, forget: Any, candidate: Any, leave: Any, cell: Any) -> tuple[Any, ...]:
    """The gates, the new cell and the new state."""
    enter, forget, candidate, leave = _sigmoid(enter), _sigmoid(forget), tanh(candidate), _sigmoid(leave)
    cell = forget * cell + enter * candidate
    return enter, forget, candidate, leave, cell, leave * tanh(cell)


def lstm_backward(enter: Any, forget: Any, candidate: Any, leave: Any, before: Any, cell: Any, dy: Any, dh: Any, dc: Any
                  ) -> tuple[Any, ...]:
    """The gradients of the gates' pre-activations and of the previous cell; then zero."""
    shown, dh = tanh(cell), dh + dy
    dc = dc + dh * leave * _tanh_derivative(shown)
    return (dc * candidate * (enter * (1.0 - enter)), dc * before * (forget * (1.0 - forget)),
            dc * enter * _tanh_derivative(candidate), dh * shown * (leave * (1.0 - leave)), dc * forget, 0.0)


def gru_forward(reset: Any, update: Any, candidate: Any, part: Any, state: Any) -> tuple[Any, ...]:
    """The gates, the candidate's part from the state, and the new state."""
    reset, update = _sigmoid(reset), _sigmoid(update)
    candidate = tanh(candidate + reset * part)
    return reset, update, candidate, part, (state - candidate) * update + candidate


def gru_backward(reset: Any, update: Any, candidate: Any, part: Any, before: Any, dy: Any, dh: Any) -> tuple[Any, ...]:
    """The gradients of the gates' pre-activations, first their parts from the input, then from the state; and of the
    previous state."""
    dh = dh + dy
    inner = dh * (1.0 - update) * _tanh_derivative(candidate)
    gates = inner * part * (reset * (1.0 - reset)), dh * (before - candidate) * (update * (1.0 - update))
    return *gates, inner, *gates, inner * reset, dh * update


def rnn_tanh_forward(x: Any) -> Any:
    """The new state."""
    return tanh(x)


def rnn_tanh_backward(y: Any, dy: Any, dh: Any) -> tuple[Any, ...]:
    """The gradient of the pre-activation; then zero, since it is the only path to the previous state."""
    return (dh + dy) * _tanh_derivative(y), 0.0


def rnn_relu_forward(x: Any) -> Any:
    """The new state."""
    return maximum(x, 0.0)


def rnn_relu_backward(y: Any, dy: Any, dh: Any) -> tuple[Any, ...]:
    """The gradient of the pre-activation; then zero, since it is the only path to the previous state."""
    return (dh + dy) * greater(y, 0.0), 0.0


#: The expressions by the names that texts use.
CELLS: dict[str, Expression] = {cell.__name__: traced(cell, cell.__code__.co_argcount) for cell in (
    lstm_forward, lstm_backward, gru_forward, gru_backward, rnn_tanh_forward, rnn_tanh_backward, rnn_relu_forward,
    rnn_relu_backward)}
