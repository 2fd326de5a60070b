"""Derivatives of products: products of all other elements, exact in the presence of zeros.

If one other element is zero, the product of the others is zero; without zeros it is the product of all divided by the
element. So zeros are counted, and the product is taken of the nonzero elements.
"""

from __future__ import annotations

from typing import Any

from ...core.registry import ops
from ...core.spec import Shape, check_axes
from ...core.value import Value
from ...custom.composed import composed
from ..outputs import in_dtype_of, like_inputs, widened

__all__: list[str] = []

Axes = int | tuple[int, ...] | None


class _ZeroFree:
    """Numbers that are multiplied with each other along some axes, apart from the zeros among them."""

    def __init__(self, data: Any, axis: Axes, exclude: bool):
        shape = data.shape
        axes = () if axis == () else check_axes(axis, len(shape))
        if exclude:
            axes = tuple([i for i in range(len(shape)) if i not in axes])
        # An array that is not reduced gets an axis of length one.
        self.axes: Shape = axes or (0,)
        self.shape: Shape = shape if axes else (1, *shape)
        data = self.seen(data)
        self.zero = ops._equal_scalar(data, scalar=0.0)
        self.rest = ops._npi_where_lscalar(self.zero, data, scalar=1.0)
        #: How many are zero; and of the others, whether none is, and the product of those that are not.
        self.zeros = ops.sum(self.zero, axis=self.axes, keepdims=True)
        self.none = ops._npi_greater_equal(self.zero, self.zeros)
        self.product = ops.broadcast_div(ops.prod(self.rest, axis=self.axes, keepdims=True), self.rest)

    def seen(self, data: Any) -> Any:
        """An array in the shape and dtype that is computed in."""
        return widened(data if data.shape == self.shape else ops._np_reshape(data, newshape=self.shape))

    def sums(self, values: Any) -> Any:
        """Sums over the other elements."""
        return ops.broadcast_sub(ops.sum(values, axis=self.axes, keepdims=True), values)

    def like(self, values: Any, data: Any) -> Any:
        """Values in the shape and dtype of the data."""
        return in_dtype_of(values if data.shape == self.shape else ops._np_reshape(values, newshape=data.shape), data)


@composed(name="_prod_of_others")
def of_others(data, *, axis: Axes = None, exclude: bool = False):
    """The product of the other elements along ``axis`` (all axes for None, none for ()), for each element."""
    parted = _ZeroFree(data, axis, exclude)
    return parted.like(ops._npi_where_rscalar(parted.none, parted.product, scalar=0.0), data)


@of_others.grad  # a body's derivative would lose the product of the others where an element is zero
def of_others_grad(g, ins, outs, **attrs):
    return ops._prod_of_pairs(g, ins[0], **attrs)


@composed(name="_prod_of_pairs")
def of_pairs(h, data, *, axis: Axes = None, exclude: bool = False):
    """For each element, the sum over other elements of ``h`` times the product of all except the two."""
    parted = _ZeroFree(data, axis, exclude)
    h = parted.seen(h)
    of_zeros = parted.sums(ops._npi_where_rscalar(parted.zero, h, scalar=0.0))
    of_rest = parted.sums(ops._npi_where_lscalar(parted.zero, h / parted.rest, scalar=0.0))
    one = ops._npi_equal(parted.zero, parted.zeros - 1.0)
    others = ops._npi_where(parted.none, of_rest, ops._npi_where_rscalar(one, of_zeros, scalar=0.0))
    return parted.like(others * parted.product, data)


for _op in (of_others, of_pairs):
    _op.infer(like_inputs(0))


@of_pairs.grad
def of_pairs_grad(g, ins, outs, *, axis, exclude):
    """The third derivative of a product contains divisions: it is not finite at zeros."""
    h, a = ins
    where: dict[str, Any] = {"axis": axis, "exclude": exclude}

    def total(value: Value) -> Value:
        return value if axis == () else ops._backward_sum(ops.sum(value, **where), a, **where)

    left, right = ops.elemwise_div(h, a), ops.elemwise_div(g, a)
    both = ops.elemwise_mul(left, right)
    pairs = total(left) * total(right) - total(both)
    single = total(right) * left + total(left) * right - both * 2.0
    return ops._prod_of_pairs(g, a, **where), ops._prod_of_others(a, **where) * (pairs - single)
