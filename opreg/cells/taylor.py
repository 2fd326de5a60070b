"""linearize, jet, derivative: a function near its inputs, by its derivatives of first and higher orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.registry import ops
from ..core.spec import is_floating, show
from ..errors import ArgumentError, ShapeError
from . import tree
from .jacobian import Several, jvp
from .tensor import tensor
from .tensor_base import TensorBase

__all__ = ["derivative", "jet", "linearize"]


def linearize(fn: Callable[..., Any], inputs: Several) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its derivative as a function of directions.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or several.
    inputs : tensor, or tuple or list of them
        Its inputs.

    Returns
    -------
    value
        ``fn(*inputs)``.
    jvp_fn : callable
        Of directions as ``jvp`` takes them; returns the derivative along them.

    Examples
    --------
    >>> value, along = linearize(lambda x: x * x, tensor(3.0))
    >>> along(tensor(1.0)), along(tensor(2.0))
    (Tensor(shape=[], dtype=Float32, value= 6), Tensor(shape=[], dtype=Float32, value= 12))
    """
    if not isinstance(inputs, (TensorBase, tuple, list)):
        raise TypeError(f"linearize: the inputs must be a Tensor, or a tuple or list of them, got "
                        f"{type(inputs).__name__}")
    value = fn(inputs) if isinstance(inputs, TensorBase) else fn(*inputs)
    return value, lambda *v: jvp(fn, inputs, v[0] if len(v) == 1 else v)[1]


def _differentiated(curve: Callable[[TensorBase], Any], one: TensorBase) -> Callable[[TensorBase], Any]:
    return lambda t: jvp(curve, t, one)[1]


def _floating(values: Several) -> list[TensorBase]:
    """Tensors in a list, integers as float32."""
    listed = [values] if isinstance(values, TensorBase) else values
    return [each if is_floating(each._dt) else each._cast(np.dtype(np.float32)) for each in listed]


def _derivatives(fn: Callable[..., Any], primals: Sequence[TensorBase], series: Sequence[TensorBase], orders: int
                 ) -> list[Any]:
    """The value of a function along a curve at its beginning, and the derivatives there, one after the other."""
    zero, one = (tensor(number, primals[0]._dt) for number in (0.0, 1.0))

    def moving(t: TensorBase) -> Any:
        """The function at inputs that move as their series say, summed up from the highest power."""
        moved = []
        for value, terms in zip(primals, series):
            rest = ops.zeros_like(value)
            for order in range(orders, 0, -1):
                rest = (terms[order - 1] + rest) * t / order
            moved.append(value + rest)
        return fn(*moved)

    curve: Callable[[TensorBase], Any] = moving
    found = [curve(zero)]
    for _ in range(orders):
        curve = _differentiated(curve, one)
        found.append(curve(zero))
    return found


def jet(fn: Callable[..., Any], primals: Several, series: Several) -> tuple[Any, Any]:
    """The value of a function, and its derivatives along a curve, from those of its inputs along the curve.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or several.
    primals : tensor, or tuple or list of them
        Its inputs; integers count as float32.
    series : tensor, or tuple or list of them
        For each input its derivatives, the first one in front: of shape (orders, *that of the input). A first one of
        ones and others of zeros give derivatives by the inputs themselves.

    Returns
    -------
    out_primals, out_series
        ``fn(*primals)``, and its derivatives as ``series`` has them; lists of these where it returns several tensors.

    Raises
    ------
    ShapeError
        When the series are others than the inputs have, or of several lengths.

    Examples
    --------
    >>> value, derivatives = jet(lambda x: x * x * x, tensor(2.0), tensor([1.0, 0.0, 0.0]))
    >>> print(value, derivatives)
    8.0 [12. 12.  6.]
    """
    inputs, terms = _floating(primals), _floating(series)
    orders = terms[0].shape[0] if terms and terms[0].shape else 0
    wanted, given = [(orders, *value.shape) for value in inputs], [each.shape for each in terms]
    if not orders or wanted != given:
        raise ShapeError(f"jet: expected series of the shapes {', '.join(map(show, wanted))}, the orders in front of "
                         f"those of the primals, got {', '.join(map(show, given))}")
    found = [tree.tensors(each) for each in _derivatives(fn, inputs, terms, orders)]
    values, stacked = found[0], [ops.stack(*each, axis=0, num_args=orders) for each in zip(*found[1:])]
    return (values[0], stacked[0]) if len(values) == 1 else (values, stacked)


def derivative(fn: Callable[..., Any], primals: Several, order: int) -> tuple[Any, Any]:
    """The value of a function, and its derivative of some order where all inputs grow alike.

    Parameters
    ----------
    fn : callable
        Returns a tensor, or several.
    primals : tensor, or tuple or list of them
        Its inputs; integers count as float32.
    order : int
        Which derivative, from 1 on.

    Examples
    --------
    >>> print(*derivative(lambda x: x * x * x, tensor(2.0), 2))
    8.0 12.0
    """
    if type(order) is not int or order < 1:
        raise ArgumentError(f"derivative: order must be an int of 1 at least, got {order!r}")
    inputs, series = _floating(primals), []
    for value in inputs:
        first = ops.ones_like(value)
        series.append(ops.stack(first, *[ops.zeros_like(value)] * (order - 1), axis=0, num_args=order))
    values, found = jet(fn, inputs, series)
    return values, [each[-1] for each in found] if isinstance(found, list) else found[-1]
