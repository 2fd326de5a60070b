"""Derivatives of products: products of all other elements, exact in the presence of zeros.

If one other element is zero, the product of the others is zero; without zeros it is the product of all divided by the
element. So zeros are counted, and the product is taken of the nonzero elements.
"""

from __future__ import annotations

from typing import Any

from ...core.registry import declare, ops
from ...core.value import Value
from ...elementwise.expression import equal, greater_equal, where
from ...elementwise.loops import Sets, sets
from ...elementwise.rows import RowLayout, row_product, row_sum
from ..looped import looped
from ..outputs import declare_gradient
from ..samples import shift_axes

Axes = int | tuple[int, ...] | None


@declare(name="_prod_of_others")
def product_of_others(data, *, axis: Axes = None, exclude: bool = False):
    """For each element the product of all other elements along ``axis``: all axes if None, no axis if ()."""


def _others(x: Any) -> Any:
    zero = equal(x, 0.0)
    nonzero = where(zero, 1.0, x)
    return where(greater_equal(zero, row_sum(zero)), row_product(nonzero) / nonzero, 0.0)


@looped(product_of_others)
def product_of_others_loop(*, axis: Axes, exclude: bool) -> Sets:
    return sets(_others, axis, exclude=exclude, scalar=True)


@declare(name="_prod_of_pairs")
def pair_products(h, data, *, axis: Axes = None, exclude: bool = False):
    """For each element ``i`` the sum, over the other elements ``j``, of ``h[j]`` times the product of all elements
    except ``i`` and ``j``."""


def _pairs(h: Any, x: Any) -> Any:
    zero = equal(x, 0.0)
    nonzero, zeros = where(zero, 1.0, x), row_sum(zero)
    at_zeros, elsewhere = where(zero, h, 0.0), where(zero, 0.0, h / nonzero)
    one = where(equal(zero, zeros - 1.0), row_sum(at_zeros) - at_zeros, 0.0)
    return where(greater_equal(zero, zeros), row_sum(elsewhere) - elsewhere, one) * (row_product(nonzero) / nonzero)


@looped(pair_products)
def pair_products_loop(*, axis: Axes, exclude: bool) -> Sets:
    return sets(_pairs, axis, (RowLayout.ELEMENT,) * 2, exclude=exclude, scalar=True)


for _op in (product_of_others, pair_products):
    shift_axes(_op)

# A loop's derivative would lose the product of the others where an element is zero.
declare_gradient(product_of_others, pair_products)


@pair_products.grad
def pair_products_grad(g, ins, outs, *, axis, exclude):
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
