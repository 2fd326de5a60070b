"""Derivatives of products: products of all other elements, exact in the presence of zeros.

If one other element is zero, the product of the others is zero; without zeros it is the product of all divided by the
element. So zeros are counted, and the product is taken of the nonzero elements.
"""

from __future__ import annotations

from typing import Any

from ...core.registry import declare, ops
from ...core.spec import check_axes
from ...core.value import Value
from ...typing import Array, ArrayModule
from ..outputs import wide
from ..samples import along

__all__: list[str] = []

Axes = int | tuple[int, ...] | None


class _ZeroFree:
    """Numbers that are multiplied with each other along some axes, apart from the zeros among them."""

    def __init__(self, xp: ArrayModule, a: Array, axis: Axes, exclude: bool):
        axes = () if axis == () else check_axes(axis, a.ndim)
        if exclude:
            axes = tuple([i for i in range(a.ndim) if i not in axes])
        # An array that is not reduced gets an axis of length one.
        self.data, self.axes = (wide(a), axes) if axes else (wide(a).reshape(1, *a.shape), (0,))
        self.zero = self.data == 0
        self.rest = xp.where(self.zero, 1, self.data)
        #: How many of the others are zero, and the product of those that are not.
        self.zeros = self.sums(xp, self.zero.astype(xp.int64))
        self.product = xp.prod(self.rest, axis=self.axes, keepdims=True) / self.rest

    def sums(self, xp: ArrayModule, values: Array) -> Array:
        """Sums over the other elements."""
        return xp.sum(values, axis=self.axes, keepdims=True) - values


@declare(name="_prod_of_others")
def of_others(data, *, axis: Axes = None, exclude: bool = False):
    """The product of the other elements along ``axis`` (all axes for None, none for ()), for each element."""


along(of_others)


@of_others.kernel()  # no body: zeros are counted on the way
def of_others_xp(xp, data, *, axis, exclude):
    parted = _ZeroFree(xp, data, axis, exclude)
    return xp.where(parted.zeros == 0, parted.product, 0).reshape(data.shape)


@of_others.grad
def of_others_grad(g, ins, outs, **attrs):
    return ops._prod_of_pairs(g, ins[0], **attrs)


@declare(name="_prod_of_pairs")
def of_pairs(h, data, *, axis: Axes = None, exclude: bool = False):
    """For each element, the sum over other elements of ``h`` times the product of all except the two."""


along(of_pairs)


@of_pairs.kernel()  # no body: zeros are counted on the way
def of_pairs_xp(xp, h, data, *, axis, exclude):
    parted = _ZeroFree(xp, data, axis, exclude)
    h = wide(h).reshape(parted.data.shape)
    of_zeros = parted.sums(xp, xp.where(parted.zero, h, 0))
    of_rest = parted.sums(xp, xp.where(parted.zero, 0, h / parted.rest))
    others = xp.where(parted.zeros == 0, of_rest, xp.where(parted.zeros == 1, of_zeros, 0))
    return (others * parted.product).reshape(data.shape)


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
