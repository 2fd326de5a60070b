"""Attention over interleaved projections: scores of queries and keys, and weighted sums of values.

A projection holds the query, key and value of each head next to each other, with shape (length, batch, heads * parts *
size). Each operator is one product of matrices for each head, which are read and written in place; operators differ in
the factors of the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...backends.blas import multiplier
from ...core.attrs import Positive
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.spec import Shape
from ...custom.composed import composed
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..attention_parts import Product
from ..forms import declare_form
from ..outputs import declare_gradient, wide
from ..shapes.shape import stored_in

__all__ = ["Factor"]


class Factor(NamedTuple):
    """A factor of a product: its input, the number of parts for each head in it, and the part; zero parts for an input
    of attention weights, (batch * heads, queries, keys)."""

    place: int
    parts: int = 0
    which: int = 0

    def of(self, x: Array, heads: int) -> Array:
        """The matrices of an array with the input's layout: a view of shape (batch, heads, length, size or keys)."""
        if not self.parts:
            return x.reshape(x.shape[0] // heads, heads, *x.shape[1:])
        length, batch, features = x.shape
        split = x.reshape(length, batch, heads, self.parts, features // (heads * self.parts))
        return split[..., self.which, :].transpose(1, 2, 0, 3)

    def laid(self, x: Any, lead: Shape) -> Any:
        """The same matrices by operators, of shape (*lead, length, size)."""
        features = x.reshape((x.shape[0], *lead, x.shape[1] * x.shape[2] // math.prod(lead)))
        size = features.shape[3] // self.parts
        part = ops.slice_axis(features, axis=3, begin=self.which * size, end=(self.which + 1) * size)
        return ops.transpose(part, axes=(1, 2, 0, 3))


#: Layouts of attention weights, and of features by head, as separate arrays.
_WEIGHTS, _FEATURES = Factor(0), Factor(0, 1)


def _swap_last_axes(x: Array) -> Array:
    return x.transpose(0, 1, 3, 2)


def _scale(size: int) -> float:
    return 1.0 / math.sqrt(max(size, 1))


def _product(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    return multiplier(xp, a, b)(a, b, out)


def _declare_interleaved(op: Op, form: str, left: Factor, right: Factor) -> None:
    """Number of features of a head."""
    scores = left.parts > 0
    names = tuple(op.signature.arguments({}))
    # the number of parts of each input that no factor reads
    others = [max(each.parts - 1 for each in (left, right) if each.place == i) for i in range(len(names))]
    if left.place == right.place:
        others[left.place] -= 1
    back = register(Op(
        op.name.replace("_contrib", "_backward"), op.signature.schema, ("g", *names),
        outputs=names if len(names) > 1 else ("output",),
        doc=f"The gradient{'s' if len(names) > 1 else ''} of ``{op.name}``."))

    def work(weights: Shape, projection: Shape, heads: int) -> int:
        return 2 * math.prod(weights) * (projection[2] // (heads * right.parts))

    op.flops(lambda ins, outs, *, heads: work(outs[0] if scores else ins[left.place], ins[right.place], heads))
    back.flops(lambda ins, outs, *, heads: 2 * work(ins[0 if scores else 1 + left.place], ins[1 + right.place], heads))

    declare_form(op, form)

    @op.kernel()  # no body: factors are views here, which a body would copy
    def interleaved_xp(xp: ArrayModule, *arrays: Array, heads: int, out: Array | None = None) -> Array:
        a, b = left.of(wide(arrays[left.place]), heads), right.of(wide(arrays[right.place]), heads)
        batch, _, rows, _ = a.shape
        if not scores:
            y = _product(xp, a, b).transpose(2, 0, 1, 3)
            return stored_in(y.reshape(rows, batch, heads * b.shape[3]), out)
        a, turned, shape = a * _scale(a.shape[3]), _swap_last_axes(b), (batch * heads, rows, b.shape[2])
        if out is None or out.dtype != a.dtype or not out.flags.c_contiguous:
            return stored_in(_product(xp, a, turned).reshape(shape), out)
        _product(xp, a, turned, _WEIGHTS.of(out, heads))
        return out

    @op.attends
    def interleaved_attends(*shapes: Shape, heads: int) -> Product:
        if scores:
            size = shapes[left.place][2] // (heads * left.parts)
            return Product(False, True, _scale(size), (left.place, right.place), (left.laid, right.laid))
        attention, (_, batch, projected) = shapes[left.place], shapes[right.place]
        shape = (attention[1], batch, projected // right.parts)
        return Product(False, False, 1.0, (left.place, right.place), (None, right.laid),
                       lambda y: ops.transpose(y, axes=(2, 0, 1, 3)).reshape(shape))

    declare_gradient(op, back)

    @back.kernel()  # no body: parts of one array are written in place
    def interleaved_back_xp(xp: ArrayModule, g: Array, *arrays: Array, heads: int) -> Sequence[Array]:
        arrays = tuple(map(wide, arrays))
        a, b = left.of(arrays[left.place], heads), right.of(arrays[right.place], heads)
        results = [xp.zeros_like(x) if count > 0 else xp.empty_like(x) for x, count in zip(arrays, others)]
        if scores:
            g = _WEIGHTS.of(g, heads) * _scale(a.shape[3])
            left.of(results[left.place], heads)[...] = _product(xp, g, b)
            right.of(results[right.place], heads)[...] = _product(xp, _swap_last_axes(g), a)
        else:
            g = _FEATURES.of(g, heads)
            right.of(results[right.place], heads)[...] = _product(xp, _swap_last_axes(a), g)
            results[left.place] = _product(xp, g, _swap_last_axes(b)).reshape(arrays[left.place].shape)
        return results if len(results) > 1 else results[0]

    @back.grad
    def interleaved_back_grad(h, ins, outs, *, heads):
        g, *factors = ins
        product = op.current
        if len(factors) == 2:
            (a, b), (ha, hb) = factors, h
            return (product(ha, b, heads=heads) + product(a, hb, heads=heads),
                    back.current(g, a, hb, heads=heads)[0], back.current(g, ha, b, heads=heads)[1])
        (x,) = factors
        # the product is bilinear: its mixed derivative multiplies the first factor of each by the second factor of the
        # other
        mixed = product(x + h, heads=heads) - product(x, heads=heads) - product(h, heads=heads)
        return mixed, back.current(g, h, heads=heads)


# ---------------------------------------------------------------------------------------------- operators


@declare(name="_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(queries_keys_values, *, heads: Positive):
    """Scores of self-attention, (batch * heads, length, length), from projections (length, batch, heads * 3 * size).

    A. Vaswani et al., Attention Is All You Need, arXiv:1706.03762, equation 1, before the softmax.
    """


@declare(name="_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(queries_keys_values, attention, *, heads: Positive):
    """Weighted sums of the values of self-attention, with weights ``attention`` (batch * heads, length, length).

    The output has the shape (length, batch, heads * size).
    """


@declare(name="_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(queries, keys_values, *, heads: Positive):
    """Scores (batch * heads, queries, keys) from queries (queries, batch, heads * size) and the keys in projections
    (keys, batch, heads * 2 * size)."""


@declare(name="_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(keys_values, attention, *, heads: Positive):
    """Weighted sums of the values in projections (keys, batch, heads * 2 * size), with weights ``attention`` (batch *
    heads, queries, keys).

    The output has the shape (queries, batch, heads * size).
    """


_declare_interleaved(selfatt_qk, "(length, batch, @heads*3size) -> (@heads*batch, length, length)",
                     Factor(0, 3, 0), Factor(0, 3, 1))
_declare_interleaved(selfatt_valatt, "(length, batch, @heads*3size) (@heads*batch, length, length) "
                     "-> (length, batch, @heads*size)", Factor(1), Factor(0, 3, 2))
_declare_interleaved(encdec_qk, "(queries, batch, @heads*size) (keys, batch, @heads*2size) "
                     "-> (@heads*batch, queries, keys)", Factor(0, 1, 0), Factor(1, 2, 0))
_declare_interleaved(encdec_valatt, "(keys, batch, @heads*2size) (@heads*batch, queries, keys) "
                     "-> (queries, batch, @heads*size)", Factor(1), Factor(0, 2, 1))


# ----------------------------------------------------------------------------------------------- scaling


@composed(name="_contrib_div_sqrt_dim", inplace=(0,))
def div_sqrt_dim(data):
    """``data`` divided by the square root of the length of its last axis; for integers the root is rounded down."""
    if not data.shape:
        raise ShapeError("data: expected at least one axis")
    last, kind = data.shape[-1], np.dtype(data.dtype).kind
    if kind == "b":
        return ops._copy(data)
    # integers are divided by the integer part of the root, as in MXNet
    return data / math.isqrt(last) if kind in "iu" else data * (1.0 / math.sqrt(last or 1))


declare_form(div_sqrt_dim, "(..., n) -> (..., n)")
