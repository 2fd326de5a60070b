"""Reductions with NumPy's rules, under MXNet's names for them.

``axis`` is one axis, several, or None for all; ``()`` reduces nothing. A reduction over all axes has rank zero. Sums
and products of integers are int64, their means and standard deviations float64, unless ``dtype`` is given; float16 is
summed in float32. Gradients are written in operators, so all of them can be differentiated again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declarations import ZERO
from ...core.launch import Call, Rank
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, check_axes, is_narrow, is_single_or_double
from ...core.value import Value
from ...custom.composed import composed
from ...elementwise.loops import check_some
from ...typing import Array, ArrayModule, DTypeLike
from ..outputs import linear
from ..reductions.reduce import placing, reducing, spreads
from ..samples import along

__all__: list[str] = []

Axes = int | tuple[int, ...] | None
Dtypes = list[np.dtype | None]


def _axes(axis: Axes, rank: int) -> tuple[int, ...]:
    return () if axis == () else check_axes(axis, rank)


def _kept(data: Shape, axes: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape that is left of ``data``."""
    if keepdims:
        return tuple([1 if i in axes else dim for i, dim in enumerate(data)])
    return tuple([dim for i, dim in enumerate(data) if i not in axes])


def _laid(a: Array, axis: Axes) -> tuple[Array, tuple[int, ...]]:
    """The data and the axes to reduce, at least one: what reduces nothing gets an axis of length one."""
    axes = _axes(axis, a.ndim)
    return (a, axes) if axes else (a.reshape(1, *a.shape), (0,))


def _count(data: Shape, axes: tuple[int, ...], ddof: int = 0) -> int:
    return max(math.prod([data[i] for i in axes]) - ddof, 0)


def _wide(xp: ArrayModule, dtype: np.dtype) -> DTypeLike:
    """The dtype to add up in."""
    return xp.float32 if is_narrow(dtype) else dtype


# ------------------------------------------------------------------------------------------------- dtypes


def _result(dtype: np.dtype, given_dtype: np.dtype | None, whole: type) -> np.dtype:
    """The dtype asked for, or ``whole`` for integers and booleans, or that of the data."""
    return given_dtype or (np.dtype(whole) if dtype.kind in "iub" else dtype)


def _results(whole: type) -> Callable:
    def types(ins: Dtypes, outs: Dtypes, *, dtype: np.dtype | None) -> tuple[Dtypes, Dtypes]:
        (a,) = ins
        return ins, [dtype or outs[0] if a is None else _result(a, dtype, whole)]

    return types


# --------------------------------------------------------------------------- back to the shape of the data


@declare(name="_backward_np_sum", types="T,U->T", unread=(1,))
def spread(g, a, *, axis: Axes = None, keepdims: bool = False):
    """``g`` repeated along the reduced axes of ``a``."""


along(spread, of=1)


spreads(spread, lambda rank, *, axis: _axes(axis, rank), _kept)
linear(spread, "_np_sum", slice(1, -1))


@composed(name="_backward_npi_mean", types="T,U->T", unread=(1,))
def share(g, a, *, axis: Axes = None, ddof: int = 0):
    """``g`` divided by the number of elements of ``a`` that are reduced to one, less ``ddof``."""
    count = _count(a.shape, _axes(axis, len(a.shape)), ddof)
    return ops._mul_scalar(g, scalar=1 / count if count else math.inf)


@share.infer
def share_infer(g, a, *, axis):
    _axes(axis, len(a))
    return g


def _filled(g: Value, a: Value, axis: Axes, keepdims: bool, dtype: np.dtype | None) -> Value:
    """``g`` repeated to fill the shape of the data, in its dtype if a reduction chose another."""
    filled = ops._backward_np_sum(g, a, axis=axis, keepdims=keepdims)
    return filled if dtype is None else ops._backward_cast(filled, a)


# ---------------------------------------------------------------------------------------------- the family


def _reduces(op: Op, function: Callable, *, whole: type | None = None, single: str = "", empty: bool = True) -> None:
    """Attach shapes, dtypes and kernels.

    Parameters
    ----------
    op : Op
        A reduction with attributes ``axis``, ``keepdims`` and perhaps ``dtype`` and ``ddof``.
    function : callable
        ``f(xp, a, axes, dtype)``, and ``ddof`` where the operator has it; the reduced axes stay at length one.
        ``dtype`` is that of the result.
    whole : type
        The dtype of results of integers, where there is an attribute ``dtype``.
    single : str
        The function of the array module that does the same to float32 and float64 in one call.
    empty : bool
        Whether there is a result for no numbers at all.
    """

    @op.infer
    def reduction_infer(a, *, axis, keepdims):
        axes = _axes(axis, len(a))
        if not empty:
            check_some(a, axes)
        return _kept(a, axes, keepdims)

    if whole is not None:
        op.types(_results(whole))

    @op.kernel()  # no body: the function is the array module's
    def reduction_xp(xp, a, *, axis, keepdims, dtype=None, ddof=None):
        wide = a.dtype if whole is None else _result(a.dtype, dtype, whole)
        result = function(xp, *_laid(a, axis), wide, *(() if ddof is None else (ddof,)))
        return result.reshape(_kept(a.shape, _axes(axis, a.ndim), keepdims))

    if single:
        _attach_bound(op, single)


def _attach_bound(op: Op, name: str) -> None:
    """Attach a kernel that is a single call of the array module's function, with all arguments bound in advance."""

    def accepts(call: Call) -> str | None:
        a, out = call.ins[0], call.outs[0]
        if a.dtype != out.dtype or not is_single_or_double(out.dtype):
            return "for float32 and float64"
        return None if out.flags.c_contiguous and a.size and _axes(call.attrs["axis"], a.ndim) else "the layout"

    @op.kernel("specialised", bound=True, accepts=accepts, rank=Rank.OPERATOR)
    def reduction_specialised(call: Call) -> Callable:
        xp, a, out = call.xp, call.ins[0], call.outs[0]
        axes = _axes(call.attrs["axis"], a.ndim)
        return functools.partial(getattr(xp, name), a, axis=axes, out=out.reshape(_kept(a.shape, axes, True)),
                                 keepdims=True)


# ----------------------------------------------------------------------------------------- sums and products


def _sum(xp: ArrayModule, a: Array, axes: tuple[int, ...], dtype: np.dtype) -> Array:
    return xp.sum(a.astype(dtype, copy=False) if dtype.kind in "iub" else a, axis=axes, dtype=_wide(xp, dtype),
                  keepdims=True)


def _mean(xp: ArrayModule, a: Array, axes: tuple[int, ...], dtype: np.dtype) -> Array:
    wide = xp.dtype(xp.float64) if dtype.kind in "iub" else dtype
    return _sum(xp, a, axes, wide) / _count(a.shape, axes)


def _prod(xp: ArrayModule, a: Array, axes: tuple[int, ...], dtype: np.dtype) -> Array:
    return xp.prod(a.astype(dtype, copy=False) if dtype.kind in "iub" else a, axis=axes, dtype=_wide(xp, dtype),
                   keepdims=True)


def _total(name: str, single: str, function: Callable, whole: type, doc: str, *aliases: str) -> None:
    """Register a sum, mean or product, what the array module calls ``single``."""

    @declare(name=name, aliases=aliases)
    def op(a, *, axis: Axes = None, dtype: np.dtype | None = None, keepdims: bool = False, initial: None = None):
        """A total."""

    op.doc = doc
    along(op)
    _reduces(op, function, whole=whole, single=single)

    @op.grad
    def total_grad(g, ins, outs, *, axis, dtype, keepdims):
        (a,) = ins
        part = ops._backward_npi_mean(g, a, axis=axis) if single == "mean" else g
        filled = _filled(part, a, axis, keepdims, dtype)
        return ops.elemwise_mul(filled, ops._prod_of_others(a, axis=axis)) if single == "prod" else filled

    if single != "prod":
        @op.prepare
        def total_prepare(a, *, axis, dtype, keepdims):
            axes = _axes(axis, a.ndim)
            return None if dtype or not axes else reducing(np.add, a, axes, _kept(a.shape, axes, keepdims),
                                                           mean=single == "mean")


_total("_np_sum", "sum", _sum, np.int64, "The sum.")
_total("_npi_mean", "mean", _mean, np.float64, "The mean; NaN of no numbers.")
_total("_np_prod", "prod", _prod, np.int64, "The product. Its gradient is right at zeros too.", "_np_product")


# ------------------------------------------------------------------------------------------------ extremes


def _extreme(name: str, function: str, alias: str, doc: str) -> None:
    """Register ``max`` or ``min``."""

    @declare(name=name, aliases=(alias,))
    def op(a, *, axis: Axes = None, keepdims: bool = False, initial: None = None):
        """An extreme."""

    op.doc = f"{doc} Equal ones share a gradient evenly."
    along(op)
    _reduces(op, lambda xp, a, axes, dtype: getattr(xp, function)(a, axis=axes, keepdims=True), single=function,
             empty=False)

    @op.grad
    def extreme_grad(g, ins, outs, *, axis, keepdims):
        (a,), (y,) = ins, outs
        where: dict[str, Any] = dict(axis=axis, keepdims=keepdims)
        equal = ops._equal(a, ops._backward_np_sum(y, a, **where))
        part = ops.elemwise_div(g, ops._np_sum(equal, **where))
        return (ops.elemwise_mul(ops._backward_np_sum(part, a, **where), equal),)


_extreme("_np_max", "max", "_np_amax", "The largest number, or NaN.")
_extreme("_np_min", "min", "_np_amin", "The smallest number, or NaN.")


# ---------------------------------------------------------------------------------------------- deviations


def _var(xp: ArrayModule, a: Array, axes: tuple[int, ...], dtype: np.dtype, ddof: int) -> Array:
    wide = xp.float64 if dtype.kind in "iub" else _wide(xp, dtype)
    apart = a.astype(wide, copy=False)
    apart = apart - xp.sum(apart, axis=axes, keepdims=True) / _count(a.shape, axes)
    return xp.sum(apart * apart, axis=axes, keepdims=True) / _count(a.shape, axes, ddof)


def _deviation(name: str, rooted: bool, doc: str) -> None:
    """Register the mean of squared distances from the mean, or its root."""

    @declare(name=name)
    def op(a, *, axis: Axes = None, dtype: np.dtype | None = None, ddof: int = 0, keepdims: bool = False):
        """A deviation."""

    op.doc = doc
    along(op)
    _reduces(op, (lambda xp, *args: xp.sqrt(_var(xp, *args))) if rooted else _var, whole=np.float64)

    @op.grad
    def deviation_grad(g, ins, outs, *, axis, dtype, ddof, keepdims):
        (a,) = ins
        g = ops.elemwise_div(g, ops._mul_scalar(outs[0], scalar=2.0)) if rooted else g
        apart = ops.broadcast_sub(a, ops._npi_mean(a, axis=axis, keepdims=True))
        part = ops._backward_npi_mean(ops._mul_scalar(g, scalar=2.0), a, axis=axis, ddof=ddof)
        return ops.elemwise_mul(_filled(part, a, axis, keepdims, dtype), apart)


_deviation("_npi_var", False, "The mean of squared distances from the mean; the divisor is the number of numbers less "
                              "``ddof``.")
_deviation("_npi_std", True, "The square root of ``_npi_var``.")


# ------------------------------------------------------------------------------------------ places and truth


def _place(name: str, function: str, doc: str) -> None:
    """Register ``argmax`` or ``argmin``."""

    @declare(name=name, types="T->int64")
    def op(data, *, axis: int | None = None, keepdims: bool = False):
        """A place."""

    op.doc = doc
    placing(op, function, _kept)


_place("_npi_argmax", "argmax", "The place of the largest number along an axis, or among all in a row, as int64: the "
                                "first of equals, or of NaN.")
_place("_npi_argmin", "argmin", "The place of the smallest number along an axis, or among all in a row, as int64: the "
                                "first of equals, or of NaN.")


def _truth(name: str, function: str, doc: str, *aliases: str) -> None:
    """Register ``any`` or ``all``."""

    @declare(name=name, aliases=aliases, types="T->bool")
    def op(data, *, axis: Axes = None, keepdims: bool = False):
        """Truth."""

    op.doc = doc
    _reduces(op, lambda xp, data, axes, dtype: getattr(xp, function)(data, axis=axes, keepdims=True))
    op.grad(ZERO)
    along(op)


_truth("_np_any", "any", "Whether one of the numbers is not zero, as bool.", "_np_sometrue")
_truth("_np_all", "all", "Whether none of the numbers is zero, as bool.")
