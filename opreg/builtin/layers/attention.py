"""Attention: scores of queries and keys, and values weighed by them, of projections that lie interleaved.

A projection holds for each head its query, key and value one after the other, so its shape is
(length, batch, heads * parts * size). Matrix products read these parts in place.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...backends.blas import multiplier
from ...core.array_module import number_on
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, show
from ...elementwise.integers import quotient
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..outputs import as_output, wide, write_out
from ..shapes.shape import stored

__all__: list[str] = []


def _part(x: Array, heads: int, parts: int, which: int) -> Array:
    """One part of every head, a view of shape (batch, heads, length, size)."""
    length, batch, features = x.shape
    return x.reshape(length, batch, heads, parts, features // (heads * parts))[..., which, :].transpose(1, 2, 0, 3)


def _features(name: str, x: Shape, heads: int, parts: int) -> int:
    """Features of a head."""
    if len(x) != 3:
        raise ShapeError(f"{name}: expected shape (length, batch, features), got {show(x)}")
    if heads < 1 or x[2] % (heads * parts) != 0:
        raise ShapeError(f"{name} {show(x)}: {x[2]} features are not {parts} parts of {heads} heads")
    return x[2] // (heads * parts)


def _by_head(x: Array, heads: int) -> Array:
    """(batch, heads, ...) of (batch * heads, ...)."""
    return x.reshape(x.shape[0] // heads, heads, *x.shape[1:])


def _scale(q: Array) -> float:
    return 1.0 / math.sqrt(max(q.shape[3], 1))


def _product(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    return multiplier(xp, a, b)(a, b, out)


def _scores(xp: ArrayModule, q: Array, k: Array, out: Array | None) -> Array:
    """``q k^T / sqrt(size)`` as (batch * heads, queries, keys)."""
    scaled, turned = q * _scale(q), k.transpose(0, 1, 3, 2)
    if out is None or out.dtype != q.dtype or not out.flags.c_contiguous:
        return write_out(out, None, _product(xp, scaled, turned), (q.shape[0] * q.shape[1], q.shape[2], k.shape[2]))
    _product(xp, scaled, turned, _by_head(out, q.shape[1]))
    return out


def _scores_back(xp: ArrayModule, g: Array, q: Array, k: Array, dq: Array, dk: Array) -> None:
    scaled = _by_head(g, q.shape[1]) * _scale(q)
    dq[...] = _product(xp, scaled, k)
    dk[...] = _product(xp, scaled.transpose(0, 1, 3, 2), q)


def _weigh(xp: ArrayModule, attention: Array, v: Array, out: Array | None) -> Array:
    """Values weighed, as (queries, batch, heads * size)."""
    batch, heads, _, size = v.shape
    y = _product(xp, _by_head(attention, heads), v).transpose(2, 0, 1, 3)
    return write_out(out, None, y, (attention.shape[1], batch, heads * size))


def _weigh_back(xp: ArrayModule, g: Array, v: Array, attention: Array, dv: Array) -> Array:
    """Fill ``dv`` and return the gradient of the weights."""
    by_head = _part(g, v.shape[1], 1, 0)
    dv[...] = _product(xp, _by_head(attention, v.shape[1]).transpose(0, 1, 3, 2), by_head)
    return _product(xp, by_head, v.transpose(0, 1, 3, 2)).reshape(attention.shape)


def _check_attention(attention: Shape, batch: int, heads: int, keys: int) -> None:
    if len(attention) != 3 or attention[0] != batch * heads or attention[2] != keys:
        raise ShapeError(f"attention: expected shape ({batch * heads}, queries, {keys}), got {show(attention)}")


# ---------------------------------------------------------------------------------------- self attention


@declare(name="_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(queries_keys_values, *, heads: int):
    """Scores of self attention, (batch * heads, length, length), of projections (length, batch, heads * 3 * size).

    A. Vaswani et al., Attention Is All You Need, arXiv:1706.03762, equation 1, before the softmax.
    """


@selfatt_qk.infer
def selfatt_qk_infer(x, *, heads):
    _features("queries_keys_values", x, heads, 3)
    return (x[1] * heads, x[0], x[0])


@selfatt_qk.kernel()
def selfatt_qk_xp(xp, x, *, heads, out=None):
    x = wide(x)
    return _scores(xp, _part(x, heads, 3, 0), _part(x, heads, 3, 1), out)


@selfatt_qk.grad
def selfatt_qk_grad(g, ins, outs, *, heads):
    return ops._backward_interleaved_matmul_selfatt_qk(g, ins[0], heads=heads)


@declare(name="_backward_interleaved_matmul_selfatt_qk")
def backward_selfatt_qk(g, queries_keys_values, *, heads: int):
    """The gradient of ``_contrib_interleaved_matmul_selfatt_qk``."""


@backward_selfatt_qk.infer
def backward_selfatt_qk_infer(g, x, *, heads):
    if g != selfatt_qk_infer(x, heads=heads):
        raise ShapeError(f"g: expected shape {show(selfatt_qk_infer(x, heads=heads))}, got {show(g)}")
    return x


@backward_selfatt_qk.kernel()
def backward_selfatt_qk_xp(xp, g, x, *, heads):
    x = wide(x)
    dx = xp.empty_like(x)
    q, k = _part(x, heads, 3, 0), _part(x, heads, 3, 1)
    _scores_back(xp, g, q, k, _part(dx, heads, 3, 0), _part(dx, heads, 3, 1))
    _part(dx, heads, 3, 2)[...] = 0.0
    return dx


@backward_selfatt_qk.grad
def backward_selfatt_qk_grad(h, ins, outs, *, heads):
    g, x = ins
    scores = ops._contrib_interleaved_matmul_selfatt_qk
    # The scores are bilinear: what remains of those of the sum is h's queries with x's keys and the reverse.
    mixed = scores(x + h, heads=heads) - scores(x, heads=heads) - scores(h, heads=heads)
    return mixed, ops._backward_interleaved_matmul_selfatt_qk(g, h, heads=heads)


@declare(name="_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(queries_keys_values, attention, *, heads: int):
    """Values of self attention, weighed by ``attention`` (batch * heads, length, length).

    The output has the shape (length, batch, heads * size).
    """


@selfatt_valatt.infer
def selfatt_valatt_infer(x, attention, *, heads):
    size = _features("queries_keys_values", x, heads, 3)
    _check_attention(attention, x[1], heads, x[0])
    return (attention[1], x[1], heads * size)


@selfatt_valatt.kernel()
def selfatt_valatt_xp(xp, x, attention, *, heads, out=None):
    return _weigh(xp, attention, _part(wide(x), heads, 3, 2), out)


@selfatt_valatt.grad
def selfatt_valatt_grad(g, ins, outs, *, heads):
    return ops._backward_interleaved_matmul_selfatt_valatt(g, *ins, heads=heads)


@declare(name="_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(keys_values, attention, *, heads: int):
    """Values of projections (keys, batch, heads * 2 * size), weighed by ``attention`` (batch * heads, queries, keys).

    The output has the shape (queries, batch, heads * size).
    """


@encdec_valatt.infer
def encdec_valatt_infer(x, attention, *, heads):
    size = _features("keys_values", x, heads, 2)
    _check_attention(attention, x[1], heads, x[0])
    return (attention[1], x[1], heads * size)


@encdec_valatt.kernel()
def encdec_valatt_xp(xp, x, attention, *, heads, out=None):
    return _weigh(xp, attention, _part(wide(x), heads, 2, 1), out)


@encdec_valatt.grad
def encdec_valatt_grad(g, ins, outs, *, heads):
    return ops._backward_interleaved_matmul_encdec_valatt(g, *ins, heads=heads)


@declare(name="_backward_interleaved_matmul_selfatt_valatt", outputs=("queries_keys_values", "attention"))
def backward_selfatt_valatt(g, queries_keys_values, attention, *, heads: int):
    """The gradients of ``_contrib_interleaved_matmul_selfatt_valatt``."""


@declare(name="_backward_interleaved_matmul_encdec_valatt", outputs=("keys_values", "attention"))
def backward_encdec_valatt(g, keys_values, attention, *, heads: int):
    """The gradients of ``_contrib_interleaved_matmul_encdec_valatt``."""


def _valatt_backward(backward: Op, forward: Op, infer: Callable[..., Shape], parts: int) -> None:
    """Give the two backward operators, which differ in the number of parts alone, their rules."""

    @backward.infer
    def valatt_backward_infer(g, x, attention, *, heads):
        if g != infer(x, attention, heads=heads):
            raise ShapeError(f"g: expected shape {show(infer(x, attention, heads=heads))}, got {show(g)}")
        return [x, attention]

    @backward.kernel()
    def valatt_backward_xp(xp, g, x, attention, *, heads):
        x, last = wide(x), parts - 1
        dx = xp.zeros_like(x)
        return dx, _weigh_back(xp, g, _part(x, heads, parts, last), attention, _part(dx, heads, parts, last))

    @backward.grad
    def valatt_backward_grad(h, ins, outs, *, heads):
        g, x, attention = ins
        hx, ha = h
        return (forward.current(hx, attention, heads=heads) + forward.current(x, ha, heads=heads),
                backward.current(g, x, ha, heads=heads)[0], backward.current(g, hx, attention, heads=heads)[1])


_valatt_backward(backward_selfatt_valatt, selfatt_valatt, selfatt_valatt_infer, 3)
_valatt_backward(backward_encdec_valatt, encdec_valatt, encdec_valatt_infer, 2)


# ---------------------------------------------------------------------------- attention to another sequence


@declare(name="_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(queries, keys_values, *, heads: int):
    """Scores (batch * heads, queries, keys) of queries (queries, batch, heads * size) and the keys among projections
    (keys, batch, heads * 2 * size)."""


@encdec_qk.infer
def encdec_qk_infer(queries, x, *, heads):
    size = _features("keys_values", x, heads, 2)
    if _features("queries", queries, heads, 1) != size or queries[1] != x[1]:
        raise ShapeError(f"queries: expected shape (queries, {x[1]}, {heads * size}) with keys_values {show(x)}, "
                         f"got {show(queries)}")
    return (x[1] * heads, queries[0], x[0])


@encdec_qk.kernel()
def encdec_qk_xp(xp, queries, x, *, heads, out=None):
    return _scores(xp, _part(wide(queries), heads, 1, 0), _part(wide(x), heads, 2, 0), out)


@encdec_qk.grad
def encdec_qk_grad(g, ins, outs, *, heads):
    return ops._backward_interleaved_matmul_encdec_qk(g, *ins, heads=heads)


@declare(name="_backward_interleaved_matmul_encdec_qk", outputs=("queries", "keys_values"))
def backward_encdec_qk(g, queries, keys_values, *, heads: int):
    """The gradients of ``_contrib_interleaved_matmul_encdec_qk``."""


@backward_encdec_qk.infer
def backward_encdec_qk_infer(g, queries, x, *, heads):
    if g != encdec_qk_infer(queries, x, heads=heads):
        raise ShapeError(f"g: expected shape {show(encdec_qk_infer(queries, x, heads=heads))}, got {show(g)}")
    return [queries, x]


@backward_encdec_qk.kernel()
def backward_encdec_qk_xp(xp, g, queries, x, *, heads):
    queries, x = wide(queries), wide(x)
    dq, dx = xp.empty_like(queries), xp.zeros_like(x)
    _scores_back(xp, g, _part(queries, heads, 1, 0), _part(x, heads, 2, 0), _part(dq, heads, 1, 0),
                 _part(dx, heads, 2, 0))
    return dq, dx


@backward_encdec_qk.grad
def backward_encdec_qk_grad(h, ins, outs, *, heads):
    g, queries, x = ins
    hq, hx = h
    backward, scores = ops._backward_interleaved_matmul_encdec_qk, ops._contrib_interleaved_matmul_encdec_qk
    return (scores(hq, x, heads=heads) + scores(queries, hx, heads=heads),
            backward(g, queries, hx, heads=heads)[0], backward(g, hq, x, heads=heads)[1])


# ----------------------------------------------------------------------------------------------- scaling


@declare(name="_contrib_div_sqrt_dim", inplace=(0,))
def div_sqrt_dim(data):
    """The data divided by the square root of their last dimension; integers by its whole part, and cut."""


div_sqrt_dim.fill(as_output)


@div_sqrt_dim.infer
def div_sqrt_dim_infer(data):
    if not data:
        raise ShapeError("data: expected at least one axis")
    return data


@div_sqrt_dim.kernel()
def div_sqrt_dim_xp(xp, data, *, out=None):
    if data.dtype.kind in "iu":  # by the whole part of the root, as in MXNet
        return stored(xp, quotient(xp, data, number_on(xp, math.isqrt(data.shape[-1]), data.dtype)), out)
    if data.dtype.kind == "b":
        return stored(xp, data, out)
    scale = 1.0 / math.sqrt(data.shape[-1]) if data.size else 1.0
    return xp.multiply(data, number_on(xp, scale, data.dtype), out=out)


@div_sqrt_dim.grad
def div_sqrt_dim_grad(g, ins, outs):
    return ops._contrib_div_sqrt_dim(g)
