"""linearize, jet, derivative: first and higher derivatives of a function at its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.named_errors import name_errors
from ..core.registry import ops
from ..core.spec import is_floating, show
from ..errors import ArgumentError, ShapeError
from . import tree
from .jacobian import Several, jvp
from .tensor import tensor
from .tensor_base import TensorBase

__all__ = ["derivative", "jet", "linearize"]


def linearize(fn: Callable[..., Any], inputs: Several) -> tuple[Any, Callable[..., Any]]:
    """The results of a function, and its derivative as a function of directions.

    Parameters
    ----------
    fn : callable
        A function that returns a tensor, or several.
    inputs : tensor, or tuple or list of them
        Its inputs.

    Returns
    -------
    value
        ``fn(*inputs)``.
    jvp_fn : callable
        A function of directions, as in ``jvp``; returns the derivative along them.

    Examples
    --------
    >>> value, along = linearize(lambda x: x * x, tensor(3.0))
    >>> along(tensor(1.0)), along(tensor(2.0))
    (Tensor(shape=[], dtype=Float32, value= 6), Tensor(shape=[], dtype=Float32, value= 12))
    """
    if not isinstance(inputs, (TensorBase, tuple, list)):
        raise ArgumentError(f"linearize: the inputs must be a Tensor, or a tuple or list of them, got "
                            f"{type(inputs).__name__}")
    value = fn(inputs) if isinstance(inputs, TensorBase) else fn(*inputs)
    return value, lambda *v: jvp(fn, inputs, v[0] if len(v) == 1 else v)[1]


def _derivative_of(curve: Callable[[TensorBase], Any], tangent: TensorBase) -> Callable[[TensorBase], Any]:
    return lambda t: jvp(curve, t, tangent)[1]


def _floating_tensors(values: Several) -> list[TensorBase]:
    """Tensors in a list, with integers cast to float32."""
    listed: Any = values if isinstance(values, (list, tuple)) else [values]
    for each in listed:
        if not isinstance(each, TensorBase):
            raise ArgumentError(f"expected tensors, got {type(each).__name__}")
    return [each if is_floating(each._dt) else each._cast(np.dtype(np.float32)) for each in listed]


def _derivatives(fn: Callable[..., Any], primals: Sequence[TensorBase], series: Sequence[TensorBase], orders: int
                 ) -> list[Any]:
    """The results of a function at the start of a curve, and its derivatives along the curve there."""
    zero, one = (tensor(number, primals[0]._dt) for number in (0.0, 1.0))

    def moving(t: TensorBase) -> Any:
        """The function at the point ``t`` of the curve, evaluated by Horner's scheme."""
        moved = []
        for value, terms in zip(primals, series):
            horner = ops.zeros_like(value)
            for order in range(orders, 0, -1):
                horner = (terms[order - 1] + horner) * t / order
            moved.append(value + horner)
        return fn(*moved)

    curve: Callable[[TensorBase], Any] = moving
    derivatives = [curve(zero)]
    for _ in range(orders):
        curve = _derivative_of(curve, one)
        derivatives.append(curve(zero))
    return derivatives


def jet(fn: Callable[..., Any], primals: Several, series: Several) -> tuple[Any, Any]:
    """The results of a function, and its derivatives along a curve, given the derivatives of its inputs along the
    curve.

    Parameters
    ----------
    fn : callable
        A function that returns a tensor, or several.
    primals : tensor, or tuple or list of them
        Its inputs; integers are cast to float32.
    series : tensor, or tuple or list of them
        For each input its derivatives, of shape (orders, *input shape), the first derivative in front. With ones as the
        first derivative and zeros as the others, the results are derivatives with respect to the inputs.

    Returns
    -------
    out_primals, out_series
        ``fn(*primals)``, and its derivatives in the layout of ``series``; lists of these if it returns several tensors.

    Raises
    ------
    ShapeError
        When a series does not fit its input, or series differ in length.

    Examples
    --------
    >>> value, derivatives = jet(lambda x: x * x * x, tensor(2.0), tensor([1.0, 0.0, 0.0]))
    >>> print(value, derivatives)
    8.0 [12. 12.  6.]
    """
    inputs, terms = _floating_tensors(primals), _floating_tensors(series)
    orders = terms[0].shape[0] if terms and terms[0].shape else 0
    expected, shapes = [(orders, *value.shape) for value in inputs], [term.shape for term in terms]
    if not orders or expected != shapes:
        raise ShapeError(f"jet: expected series of the shapes {', '.join(map(show, expected))}, (orders, *shape of the "
                         f"primal), got {', '.join(map(show, shapes))}")
    levels = [tree.tensors(result) for result in _derivatives(fn, inputs, terms, orders)]
    values, stacked = levels[0], [ops.stack(*level, axis=0, num_args=orders) for level in zip(*levels[1:])]
    return (values[0], stacked[0]) if len(values) == 1 else (values, stacked)


def derivative(fn: Callable[..., Any], primals: Several, order: int) -> tuple[Any, Any]:
    """The results of a function, and its derivative of a given order along equal growth of all inputs.

    Parameters
    ----------
    fn : callable
        A function that returns a tensor, or several.
    primals : tensor, or tuple or list of them
        Its inputs; integers are cast to float32.
    order : int
        Order of the derivative, from 1 on.

    Examples
    --------
    >>> print(*derivative(lambda x: x * x * x, tensor(2.0), 2))
    8.0 12.0
    """
    if type(order) is not int or order < 1:
        raise ArgumentError(f"derivative: order must be an int of 1 at least, got {order!r}")
    inputs, series = _floating_tensors(primals), []
    for value in inputs:
        first = ops.ones_like(value)
        series.append(ops.stack(first, *[ops.zeros_like(value)] * (order - 1), axis=0, num_args=order))
    values, derivatives = jet(fn, inputs, series)
    return values, [level[-1] for level in derivatives] if isinstance(derivatives, list) else derivatives[-1]


name_errors(__name__, globals(), __all__)
