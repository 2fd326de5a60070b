"""Reductions: one value from the elements along some axes.

``axis`` is one axis, several, or None for all; ``exclude`` reduces the other axes instead. No result has rank zero: a
reduction over all axes has the shape (1,). Results have the dtype of the data; float16 is summed in float32. Gradients
are written in operators, so all of them can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np

from ...core.attrs import Limit
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import BatchedCall, Rule
from ...core.spec import Shape, axis_from_front, is_narrow, reduced_axes
from ...elementwise.expression import absolute, equal, sqrt, square, where
from ...elementwise.loops import check_some, reduced, sets
from ...elementwise.rows import row_max, row_mean, row_min, row_product, row_sum
from ..looped import by_loop, looped
from ..outputs import as_output, declare_gradient, declare_input_shape, linear
from ..samples import repeat_inputs, shift_axes
from ..shapes.broadcasting import declare_repeat

__all__ = ["declare_arg_reduction", "reduction", "spreads", "sum_", "types_of_totals"]

Axes = int | tuple[int, ...] | None
_SUMMED = ("float16", "float32", "float64", "int32", "int64", "int8")
#: Dtypes in which sums may be requested.
Summed = Annotated[np.dtype, Limit(f"among {', '.join(_SUMMED)}", lambda dtype: dtype.name in _SUMMED)]


# ----------------------------------------------------------------------- gradients in the shape of the data


def spreads(op: Op, axes: Callable[..., tuple[int, ...]], left: Callable[..., Shape], mean: bool = False) -> None:
    """Declare that an operator broadcasts its first input along the reduced axes of the second.

    Parameters
    ----------
    op : Op
        The operator, with an attribute ``keepdims``.
    axes : function
        ``axes(rank, **attrs)`` returns the reduced axes.
    left : function
        ``left(shape, axes, keepdims)`` returns the shape of the reduction's output.
    mean : bool
        Whether to divide by the number of elements reduced to one.
    """
    rule = Rule(axes)

    declare_input_shape(op, 0,
                        lambda g, data, *, keepdims, **attrs: (data, left(data, rule(attrs, len(data)), keepdims)))
    declare_repeat(op, lambda g, data: data, lambda data, **attrs: reduced(data, rule(attrs, len(data)), True), mean)


def _reduced_axes(rank: int, *, axis: Axes, exclude: bool) -> tuple[int, ...]:
    return reduced_axes(axis, exclude, rank)


@declare(name="_backward_sum", types="T,U->T", unread=(1,))
def sum_backward(g, data, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False):
    """``g`` repeated along the reduced axes."""


spreads(sum_backward, _reduced_axes, reduced)
linear(sum_backward, "sum", slice(1, -1))


@declare(name="_backward_mean", types="T,U->T", unread=(1,), cheap=True)
def mean_backward(g, data, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False):
    """``g`` repeated along the reduced axes, and divided by the number of elements."""


spreads(mean_backward, _reduced_axes, reduced, mean=True)
linear(mean_backward, "mean", slice(1, -1))


def _spread_at_once(op: Op) -> None:
    @op.vmap
    def spread_vmap(ins, batched, *, axis, keepdims, exclude):
        g, data = repeat_inputs(ins, batched)
        axes = tuple([i + 1 for i in reduced_axes(axis, exclude, len(data.shape) - 1)])
        return BatchedCall([g.reshape(reduced(data.shape, axes, True)), data],
                           {"axis": axes, "keepdims": True}) if axes \
            else NotImplemented


_spread_at_once(sum_backward)
_spread_at_once(mean_backward)


# --------------------------------------------------------------------------------------------- the family


def reduction(name: str, function: Callable[[Any], Any], doc: str, aliases: Sequence[str] = ()) -> Op:
    """Register a reduction: a function of the elements along axes. Its gradient is that of the function, unless the
    operator has a better one.

    Examples
    --------
    >>> from opreg import nd
    >>> op = reduction("_example_length", lambda x: sqrt(row_sum(square(x))), "The length.")
    >>> op(nd.array([[3.0, 4.0], [6.0, 8.0]]), axis=1).asnumpy().tolist()
    [5.0, 10.0]
    """

    @declare(name=name, aliases=aliases)
    def op(data, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False):
        """A reduction."""

    op.doc = doc
    shift_axes(op)
    looped(op)(lambda *, axis, keepdims, exclude: sets(function, axis, exclude=exclude, keepdims=keepdims))
    by_loop(op)
    op.layout(_channel_layout)
    return op


def _channel_layout(ins, *, axis, keepdims, exclude):
    """The layout rule of reductions over all places of a channel."""
    rank = len(ins[0])
    axes = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if exclude or sorted(a % rank for a in axes) != list(range(2, rank)):
        return "it reduces other axes than the places"
    return {"axis": tuple(range(1, rank - 1))}, (0,), (0,) if keepdims else ()


def _replace_nan(x: Any, otherwise: float) -> Any:
    """``x`` with each NaN replaced by ``otherwise``."""
    return where(equal(x, x), x, otherwise)


sum_ = reduction("sum", row_sum, "The sum of the elements along ``axis``.", ("sum_axis",))
mean = reduction("mean", row_mean, "The mean of the elements along ``axis``; for integers truncated towards zero.")
prod = reduction("prod", row_product, "The product of the elements along ``axis``.")
reduction("max", row_max, "The largest element along ``axis``; NaN if one is NaN.", ("max_axis",))
reduction("min", row_min, "The smallest element along ``axis``; NaN if one is NaN.", ("min_axis",))
nansum = reduction("nansum", lambda x: row_sum(_replace_nan(x, 0.0)),
                   "The sum of the elements along ``axis`` that are not NaN.")
nanprod = reduction("nanprod", lambda x: row_product(_replace_nan(x, 1.0)),
                    "The product of the elements along ``axis`` that are not NaN.")
reduction("_square_sum", lambda x: row_sum(square(x)), "The sum of the squares of the elements along ``axis``.")


declare_gradient(mean, mean_backward)  # the gradient is divided before it is repeated


# Gradients of products do not divide by the elements, as their loops' derivatives do, so they are right at zeros, too.


@prod.grad
def prod_grad(g, ins, outs, *, axis, keepdims, exclude):
    (x,) = ins
    reduces_all = axis is None or axis == ()
    others = ops._prod_of_others(x, axis=None if reduces_all else axis, exclude=exclude and not reduces_all)
    return ops.elemwise_mul(ops._backward_sum(g, x, axis=axis, keepdims=keepdims, exclude=exclude), others)


@nanprod.grad
def nanprod_grad(g, ins, outs, **attrs):
    (x,) = ins
    is_number = ops._equal(x, x)
    slope = prod_grad(g, [ops.where(is_number, x, ops.ones_like(x))], outs, **attrs)
    return ops.where(is_number, slope, ops.zeros_like(x))


# -------------------------------------------------------------------------------------------------- norm


@declare(types="T->@out_dtype=T")
def norm(data, *, ord: Literal[1, 2] = 2, axis: Axes = None, out_dtype: Summed | None = None, keepdims: bool = False):
    """The norm of the elements along ``axis``: the sum of absolute values (``ord=1``), or the root of the sum of
    squares (``ord=2``)."""


shift_axes(norm)


def _norm(x: Any, *, ord: int) -> Any:
    return row_sum(absolute(x)) if ord == 1 else sqrt(row_sum(square(x)))


@looped(norm)
def norm_loop(*, ord, axis, keepdims):
    return sets(_norm, axis, keepdims=keepdims, integer_dtype="float64", ord=ord)


@norm.grad  # the derivative of the loop knows no ``out_dtype``
def norm_grad(g, ins, outs, *, ord, axis, keepdims, out_dtype):
    (x,), (y,) = ins, outs
    share = ops._backward_sum(g if ord == 1 else ops.elemwise_div(g, y), x, axis=axis, keepdims=keepdims)
    if out_dtype is not None:
        share = ops._backward_cast(share, x)
    return (ops.elemwise_mul(share, ops.sign(x) if ord == 1 else x),)


# ----------------------------------------------------------------------------------------------- moments


@declare(outputs=("output0", "output1"))
def moments(data, *, axes: Axes = None, keepdims: bool = False):
    """Mean and variance of the elements along ``axes``."""


def _moments(x: Any) -> Any:
    mean = row_mean(x)
    return mean, row_mean(square(x - mean))


@looped(moments)
def moments_loop(*, axes, keepdims):
    return sets(_moments, axes, keepdims=keepdims, integer_dtype="float64")


@moments.grad  # the derivative of the loop adds differences to the mean, whose sum is zero
def moments_grad(g, ins, outs, *, axes, keepdims):
    (x,), (mean, _) = ins, outs
    apart = ops.elemwise_sub(x, ops._backward_sum(mean, x, axis=axes, keepdims=keepdims))
    means, spreads = (ops._backward_mean(head, x, axis=axes, keepdims=keepdims) for head in g)
    return (ops.elemwise_add(means, ops.elemwise_mul(spreads, ops._mul_scalar(apart, scalar=2.0))),)


# ------------------------------------------------------------------------------------------------ places


def declare_arg_reduction(op: Op, function: str, left: Callable[..., Shape], axis: int | None = None) -> None:
    """Declare that an operator finds an index along its attribute ``axis``, or along this axis, by a function of the
    array module.

    ``left(shape, axes, keepdims)`` returns the shape of the reduction's output.
    """
    op.grad(ZERO)
    if axis is None:
        shift_axes(op, flat=True)

    @op.infer
    def placing_infer(data, *, axis=axis, keepdims=False):
        axes = reduced_axes(axis, False, len(data))
        check_some(data, axes)
        return left(data, axes, keepdims)

    @op.kernel()  # no body: the function is the array module's
    def placing_xp(xp, data, *, axis=axis, keepdims=False):
        indices = getattr(xp, function)(data, axis=axis if data.ndim else None)
        return indices.reshape(left(data.shape, reduced_axes(axis, False, data.ndim), keepdims))


def _place(name: str, doc: str) -> None:
    """Register ``argmax`` or ``argmin``."""

    @declare(name=name, cheap=True)
    def op(data, *, axis: int | None = None, keepdims: bool = False):
        """A place."""

    op.doc = doc
    declare_arg_reduction(op, name, reduced)


_place("argmax", "The index of the largest element along ``axis``, or if None in the flattened data, in the dtype of "
                 "the data; the first one of equal elements, or of NaN.")
_place("argmin", "The index of the smallest element along ``axis``, or if None in the flattened data, in the dtype of "
                 "the data; the first one of equal elements, or of NaN.")


@declare(cheap=True)
def argmax_channel(data):
    """The index of the largest element along axis 1."""


declare_arg_reduction(argmax_channel, "argmax", reduced, axis=1)


# ------------------------------------------------------------------------------------------ running sums


@declare(name="_np_cumsum", aliases=("cumsum",), cheap=True)
def cumsum(a, *, axis: int | None = None, dtype: Summed | None = None):
    """Cumulative sums along ``axis``, or if None of the flattened array; ``dtype`` is the dtype of the sums."""


shift_axes(cumsum, flat=True)


@cumsum.fill
def cumsum_fill(ins, outs, *, axis):
    return ins if axis is None else as_output(ins, outs)


@cumsum.infer
def cumsum_infer(a, *, axis):
    return axis_from_front(a, axis)[0]


@cumsum.types
def types_of_totals(ins, outs, *, dtype):
    """The dtype of sums and products: the attribute ``dtype`` if given, int64 for booleans, else that of the data."""
    a = ins[0] if ins[0] is not None else outs[0]
    if dtype is not None:
        return ins, [dtype]
    return [a], [np.dtype(np.int64) if a is not None and a.kind == "b" else a]


@declare(name="_backward_cumsum", types="T,U->U", unread=(1,), cheap=True)
def cumsum_backward(g, a, *, axis: int | None = None):
    """Sums of the elements of ``g`` from each position to the end, in the shape and dtype of ``a``."""


shift_axes(cumsum_backward, of=1, flat=True)


declare_gradient(cumsum, cumsum_backward)


def _declare_cumulative_sum(op: Op) -> None:
    """Declare the kernel of running sums; with a second input they run from the end, and have the shape of that one."""

    @op.kernel()  # no body: loops have no running sums
    def running_xp(xp, a, *like, axis, dtype=None):
        a = a if dtype is None else a.astype(dtype, copy=False)
        wide = xp.float32 if is_narrow(a.dtype) else None
        if not like:
            return xp.cumsum(a, axis=axis, dtype=wide)
        turned = (*(slice(None),) * axis_from_front(like[0].shape, axis)[1], slice(None, None, -1))
        return xp.cumsum(a[turned], axis=axis, dtype=wide)[turned].reshape(like[0].shape)


_declare_cumulative_sum(cumsum)
_declare_cumulative_sum(cumsum_backward)


@cumsum_backward.grad
def cumsum_backward_grad(g, ins, outs, *, axis):
    return (ops._backward_cast(ops._np_cumsum(g, axis=axis), ins[0]), None)
