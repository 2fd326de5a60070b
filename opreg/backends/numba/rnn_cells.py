"""Recurrent cells and their gradients, for one element."""

from __future__ import annotations

from collections.abc import Callable

from .values import FloatValue
from .vector import fma, maximum, tanh

__all__ = ["STEPS"]


def _sigmoid(x: FloatValue) -> FloatValue:
    return fma(tanh(0.5 * x), 0.5, 0.5)


def _tanh_derivative(y: FloatValue) -> FloatValue:
    """The derivative of tanh where its value is ``y``."""
    return 1.0 - y * y


def lstm_forward(enter: FloatValue, forget: FloatValue, candidate: FloatValue, leave: FloatValue, cell: FloatValue
                 ) -> tuple[FloatValue, ...]:
    """The gates, the new cell and the new state."""
    enter, forget, candidate, leave = _sigmoid(enter), _sigmoid(forget), tanh(candidate), _sigmoid(leave)
    cell = forget * cell + enter * candidate
    return enter, forget, candidate, leave, cell, leave * tanh(cell)


def lstm_backward(enter: FloatValue, forget: FloatValue, candidate: FloatValue, leave: FloatValue, before: FloatValue,
                  cell: FloatValue, dy: FloatValue, dh: FloatValue, dc: FloatValue) -> tuple[FloatValue, ...]:
    """The gradients of the gates' pre-activations and of the previous cell; then zero."""
    shown, dh = tanh(cell), dh + dy
    dc = dc + dh * leave * _tanh_derivative(shown)
    return (dc * candidate * (enter * (1.0 - enter)), dc * before * (forget * (1.0 - forget)),
            dc * enter * _tanh_derivative(candidate), dh * shown * (leave * (1.0 - leave)), dc * forget,
            dh.constant(0.0))


def gru_forward(reset: FloatValue, update: FloatValue, candidate: FloatValue, part: FloatValue, state: FloatValue
                ) -> tuple[FloatValue, ...]:
    """The gates, the candidate's part from the state, and the new state."""
    reset, update = _sigmoid(reset), _sigmoid(update)
    candidate = tanh(candidate + reset * part)
    return reset, update, candidate, part, (state - candidate) * update + candidate


def gru_backward(reset: FloatValue, update: FloatValue, candidate: FloatValue, part: FloatValue, before: FloatValue,
                 dy: FloatValue, dh: FloatValue) -> tuple[FloatValue, ...]:
    """The gradients of the gates' pre-activations, first their parts from the input, then from the state; and of the
    previous state."""
    dh = dh + dy
    inner = dh * (1.0 - update) * _tanh_derivative(candidate)
    gates = inner * part * (reset * (1.0 - reset)), dh * (before - candidate) * (update * (1.0 - update))
    return *gates, inner, *gates, inner * reset, dh * update


def rnn_tanh_forward(x: FloatValue) -> tuple[FloatValue, ...]:
    """The new state."""
    return (tanh(x),)


def rnn_tanh_backward(y: FloatValue, dy: FloatValue, dh: FloatValue) -> tuple[FloatValue, ...]:
    """The gradient of the pre-activation; then zero, since it is the only path to the previous state."""
    return (dh + dy) * _tanh_derivative(y), dh.constant(0.0)


def rnn_relu_forward(x: FloatValue) -> tuple[FloatValue, ...]:
    """The new state."""
    return (maximum(x, x.constant(0.0)),)


def rnn_relu_backward(y: FloatValue, dy: FloatValue, dh: FloatValue) -> tuple[FloatValue, ...]:
    """The gradient of the pre-activation; then zero, since it is the only path to the previous state."""
    return (dh + dy) * y.as_number(y > 0.0), dh.constant(0.0)


#: The functions by the names that texts use.
STEPS: dict[str, Callable[..., tuple[FloatValue, ...]]] = {step.__name__: step for step in (
    lstm_forward, lstm_backward, gru_forward, gru_backward, rnn_tanh_forward, rnn_tanh_backward, rnn_relu_forward,
    rnn_relu_backward)}
