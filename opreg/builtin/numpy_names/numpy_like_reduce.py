"""Reductions with NumPy's rules, under MXNet's names for them.

``axis`` is one axis, several, or None for all; ``()`` reduces nothing. A reduction over all axes has rank zero. Unless
``dtype`` is given, sums and products of integers keep the dtype, as in MXNet, those of booleans are int64, and means
and deviations of both are float32; float16 is summed in float32. Gradients are written in operators, so all of them can
be differentiated again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import declare, ops
from ...core.spec import is_floating, reduced_axes
from ...core.value import Value
from ...custom.composed import composed
from ...elementwise.expression import maximum, sqrt, square
from ...elementwise.loops import reduced, sets
from ...elementwise.rows import row_max, row_mean, row_min, row_product, row_size, row_sum
from ..looped import looped
from ..outputs import linear
from ..reductions.reduce import declare_arg_reduction, spreads, types_of_totals
from ..samples import shift_axes
from .numpy_like_numbers import floating_of

Axes = int | tuple[int, ...] | None


def _axes(axis: Axes, rank: int) -> tuple[int, ...]:
    return () if axis == () else reduced_axes(axis, False, rank)


#: The shape that is left of data.
_reduced_shape = functools.partial(reduced, scalar=True)


# ---------------------------------------------------------------------- gradients in the shape of the data


@declare(name="_backward_np_sum", types="T,U->T", unread=(1,))
def spread(g, a, *, axis: Axes = None, keepdims: bool = False):
    """``g`` repeated along the reduced axes of ``a``."""


shift_axes(spread, of=1)
spreads(spread, lambda rank, *, axis: _axes(axis, rank), _reduced_shape)
linear(spread, "_np_sum", slice(1, -1))


@composed(name="_backward_npi_mean", types="T,U->T", unread=(1,))
def share(g, a, *, axis: Axes = None, ddof: int = 0):
    """``g`` divided by the number of elements of ``a`` that are reduced to one, less ``ddof``."""
    count = math.prod([a.shape[i] for i in _axes(axis, len(a.shape))]) - ddof
    return ops._mul_scalar(g, scalar=1 / count if count > 0 else math.inf)


def _repeat_gradient(g: Value, a: Value, axis: Axes, keepdims: bool, dtype: np.dtype | None) -> Value:
    """``g`` repeated to fill the shape of ``a``, and cast to the dtype of ``a`` if the reduction has another dtype."""
    filled = ops._backward_np_sum(g, a, axis=axis, keepdims=keepdims)
    return filled if dtype is None else ops._backward_cast(filled, a)


# ----------------------------------------------------------------------------------------- sums and products


def _total(name: str, kind: str, function: Callable, doc: str, *aliases: str) -> None:
    """Register a sum, mean or product."""

    @declare(name=name, aliases=aliases)
    def op(a, *, axis: Axes = None, dtype: np.dtype | None = None, keepdims: bool = False, initial: None = None):
        """A total."""

    op.doc = doc
    shift_axes(op)
    if kind == "mean":
        floating_of(op)
    else:
        op.types(types_of_totals)

    @looped(op)
    def total_loop(*, axis, dtype, keepdims):
        exact = kind != "mean" and (dtype is None or not is_floating(dtype))
        return sets(function, axis, keepdims=keepdims, integer_dtype="int64" if exact else "float64", scalar=True)

    @op.grad
    def total_grad(g, ins, outs, *, axis, dtype, keepdims):
        (a,) = ins
        part = ops._backward_npi_mean(g, a, axis=axis) if kind == "mean" else g
        filled = _repeat_gradient(part, a, axis, keepdims, dtype)
        return ops.elemwise_mul(filled, ops._prod_of_others(a, axis=axis)) if kind == "prod" else filled


_total("_np_sum", "sum", row_sum, "The sum of the elements along ``axis``.")
_total("_npi_mean", "mean", row_mean, "The mean of the elements along ``axis``; NaN without elements.")
_total("_np_prod", "prod", row_product, "The product of the elements along ``axis``. Its gradient is exact also at "
                                        "zeros.", "_np_product")


# ------------------------------------------------------------------------------------------------ extremes


def _extreme(name: str, function: Callable, alias: str, doc: str) -> None:
    """Register ``max`` or ``min``."""

    @declare(name=name, aliases=(alias,))
    def op(a, *, axis: Axes = None, keepdims: bool = False, initial: None = None):
        """An extreme."""

    op.doc = f"{doc} Equal ones share a gradient evenly."
    shift_axes(op)
    looped(op)(lambda *, axis, keepdims: sets(function, axis, keepdims=keepdims, scalar=True))

    @op.grad
    def extreme_grad(g, ins, outs, *, axis, keepdims):
        (a,), (y,) = ins, outs
        where: dict[str, Any] = dict(axis=axis, keepdims=keepdims)
        equal = ops._equal(a, ops._backward_np_sum(y, a, **where))
        part = ops.elemwise_div(g, ops._backward_cast(ops._np_sum(equal, **where), g))
        return (ops.elemwise_mul(ops._backward_np_sum(part, a, **where), equal),)


_extreme("_np_max", row_max, "_np_amax", "The largest element along ``axis``; NaN if one is NaN.")
_extreme("_np_min", row_min, "_np_amin", "The smallest element along ``axis``; NaN if one is NaN.")


# ---------------------------------------------------------------------------------------------- deviations


def _var(x: Any, *, ddof: int) -> Any:
    return row_sum(square(x - row_mean(x))) / maximum(row_size() - float(ddof), 0.0)


def _deviation(name: str, takes_root: bool, doc: str) -> None:
    """Register the mean of squared distances from the mean, or its root."""

    @declare(name=name)
    def op(a, *, axis: Axes = None, dtype: np.dtype | None = None, ddof: int = 0, keepdims: bool = False):
        """A deviation."""

    op.doc = doc
    shift_axes(op)
    floating_of(op)
    function = (lambda x, *, ddof: sqrt(_var(x, ddof=ddof))) if takes_root else _var
    looped(op)(lambda *, axis, ddof, keepdims: sets(
        function, axis, keepdims=keepdims, integer_dtype="float64", scalar=True, ddof=ddof))

    @op.grad
    def deviation_grad(g, ins, outs, *, axis, dtype, ddof, keepdims):
        (a,) = ins
        g = ops.elemwise_div(g, ops._mul_scalar(outs[0], scalar=2.0)) if takes_root else g
        apart = ops.broadcast_sub(a, ops._npi_mean(a, axis=axis, keepdims=True))
        part = ops._backward_npi_mean(ops._mul_scalar(g, scalar=2.0), a, axis=axis, ddof=ddof)
        return ops.elemwise_mul(_repeat_gradient(part, a, axis, keepdims, dtype), apart)


_deviation("_npi_var", False, "The mean of squared distances from the mean; the divisor is the number of elements less "
           "``ddof``.")
_deviation("_npi_std", True, "The standard deviation: the square root of ``_npi_var``.")


# ------------------------------------------------------------------------------------------ argmax, any, all


def _place(name: str, function: str, doc: str) -> None:
    """Register ``argmax`` or ``argmin``."""

    @declare(name=name, types="T->int64")
    def op(data, *, axis: int | None = None, keepdims: bool = False):
        """A place."""

    op.doc = doc
    declare_arg_reduction(op, function, _reduced_shape)


_place("_npi_argmax", "argmax", "The index of the largest element along ``axis``, or if None in the flattened array, "
                                "as int64; the first one of equal elements, or of NaN.")
_place("_npi_argmin", "argmin", "The index of the smallest element along ``axis``, or if None in the flattened array, "
                                "as int64; the first one of equal elements, or of NaN.")


def _truth(name: str, function: str, doc: str, *aliases: str) -> None:
    """Register ``any`` or ``all``."""

    @declare(name=name, aliases=aliases, types="T->bool")
    def op(data, *, axis: Axes = None, keepdims: bool = False):
        """Truth."""

    op.doc = doc
    op.grad(ZERO)
    shift_axes(op)
    op.infer(lambda data, *, axis, keepdims: _reduced_shape(data, _axes(axis, len(data)), keepdims))

    @op.kernel()  # no body: the function is the array module's
    def truth_xp(xp, data, *, axis, keepdims):
        axes = _axes(axis, data.ndim)
        narrow = getattr(xp, function)(data, axis=axes, keepdims=True) if axes else data.astype(bool)
        return narrow.reshape(_reduced_shape(data.shape, axes, keepdims))


_truth("_np_any", "any", "True where at least one of the elements along ``axis`` is not zero.", "_np_sometrue")
_truth("_np_all", "all", "True where no element along ``axis`` is zero.")
