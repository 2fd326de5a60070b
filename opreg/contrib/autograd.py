"""MXNet's first autograd, in which recording and training mode are one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from opreg.core.mode import Recording
from opreg.errors import ArgumentError
from opreg.ndarray import NDArray, zeros_like
from opreg.ndarray import autograd as now
from opreg.ndarray.autograd import mark_variables

from ..core.named_errors import name_errors

__all__ = ["set_is_training", "train_section", "test_section", "mark_variables", "backward", "compute_gradient",
           "grad_and_loss", "grad"]


def set_is_training(is_train: bool) -> bool:
    """Turn recording and training mode on or off; return whether training mode was on."""
    now.set_recording(is_train)
    return now.set_training(is_train)


def train_section() -> Recording:
    """A section of code that is recorded, in training mode: ``with train_section():``."""
    return now.record()


def test_section() -> Recording:
    """A section of code within ``train_section`` that is neither recorded nor in training mode."""
    return now.pause()


def backward(outputs: Sequence[NDArray], out_grads: Sequence[NDArray | None] | None = None, retain_graph: bool = False
             ) -> None:
    """Compute the gradients of the variables of a list of outputs."""
    if not isinstance(outputs, (list, tuple)):
        raise ArgumentError(f"outputs: expected a list of NDArrays, got {type(outputs).__name__}")
    now.backward(outputs, out_grads, retain_graph)


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """Compute the gradients of the variables of a list of outputs."""
    backward(outputs)


def grad_and_loss(func: Callable[..., Any], argnum: int | Sequence[int] | None = None
                  ) -> Callable[..., tuple[list[NDArray], Any]]:
    """A function that returns the gradients of its arguments, or of those at the given positions, and the loss.

    Examples
    --------
    >>> import opreg as mx
    >>> (gradient,), loss = grad_and_loss(lambda x: x * x)(mx.nd.array([3.0]))
    >>> gradient.asscalar().item(), loss.asscalar().item()
    (6.0, 9.0)
    """

    @functools.wraps(func)
    def wrapped(*args: NDArray) -> tuple[list[NDArray], Any]:
        chosen = range(len(args)) if argnum is None else [argnum] if isinstance(argnum, int) else argnum
        variables = [args[i] for i in chosen]
        for variable in variables:
            if not isinstance(variable, NDArray):
                raise ArgumentError(f"grad_and_loss: expected NDArrays, got {type(variable).__name__}")
        gradients = [zeros_like(variable) for variable in variables]
        mark_variables(variables, gradients)
        with train_section():
            outputs = func(*args)
        compute_gradient([outputs] if isinstance(outputs, NDArray) else outputs)
        return gradients, outputs

    return wrapped


def grad(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable[..., list[NDArray]]:
    """A function that returns the gradients of its arguments, or of those at the given positions.

    Examples
    --------
    >>> import opreg as mx
    >>> [g.asscalar().item() for g in grad(lambda x, y: x * y)(mx.nd.array([2.0]), mx.nd.array([3.0]))]
    [3.0, 2.0]
    """
    both = grad_and_loss(func, argnum)

    @functools.wraps(func)
    def wrapped(*args: NDArray) -> list[NDArray]:
        return both(*args)[0]

    return wrapped


name_errors(__name__, globals(), __all__)
