"""Scaled dot product attention in one operator: a mean of values, weighted by the softmax of scaled products of queries
and keys.

The reference kernel multiplies, takes the softmax and multiplies again. The other kernel does this for blocks of
queries and keys, so the array of all scores never exists: only the logarithm of each row's sum is stored, from which
the gradient recomputes the weights of a block. Dropout draws one random key. The key and the position of a weight
decide whether the weight is dropped, so forward and backward drop the same weights.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ...backends.blas import share
from ...core.attrs import Fraction
from ...core.launch import Call, Rank
from ...core.op import Op
from ...core.registry import declare, get, ops
from ...core.rules import BatchedCall
from ...core.spec import ANY, Shape, as_dtype, is_floating, show
from ...custom.composed import composed
from ...errors import DTypeError, ShapeError
from ...typing import Array, ArrayModule
from ..outputs import common_floating, like_inputs, wide
from ..samples import fold_samples, size_of
from .attention_scores import Scores, dropout_factors, dropout_key, heads_by_key, product, scale_of, several_blocks

__all__ = ["PARTS", "run", "backward_attention_xp", "decline_few_scores"]

#: Parts of the gradient that threads may share, where there are as many blocks of keys.
PARTS = 8


# ---------------------------------------------------------------------------------------------- dropout


@declare(name="_attention_dropout", types="T,int32->T", unread=(0,))
def attention_dropout(scores, draw, *, p: float):
    """The factors, 0 or ``1 / (1 - p)``, by which dropout multiplies the attention weights of ``scores``, drawn with
    the key ``draw``."""


attention_dropout.infer(like_inputs(0))


@attention_dropout.kernel()  # no body: a mask is drawn
def attention_dropout_xp(xp, scores, draw, *, p):
    rows = xp.arange(math.prod(scores.shape[:-1])).reshape(scores.shape[:-1])
    return dropout_factors(xp, draw, p, rows, xp.arange(scores.shape[-1])).astype(scores.dtype)


attention_dropout.grad(lambda g, ins, outs: (None, None))


# --------------------------------------------------------------------------------------------- operators


def _arguments(*before: str, dropout: bool = False) -> Any:
    def arguments(*, use_mask: bool, p: float) -> tuple[str, ...]:
        return (*before, *(("mask",) if use_mask else ()), *(("draw",) if dropout and p else ()))

    return arguments


@declare(name="_contrib_scaled_dot_product_attention", random=True, mode=True, optional_out_grads=True,
         arguments=_arguments("query", "key", "value"), outputs=("output", "logsum", "draw"), visible=lambda: 1)
def scaled_dot_product_attention(query, key, value, mask, *, causal: bool = False, scale: float | None = None,
                                 p: Fraction = 0.0, use_mask: bool = False,
                                 mode: Literal["always", "training"] = "training", fill: float = -math.inf):
    """Attention: for each query the mean of the values, weighted by the softmax of the products of query and keys.

    Queries (batch, heads, queries, size), keys (batch, key heads, keys, size) and values (batch, key heads, keys,
    features) give (batch, heads, queries, features); each key head serves a group of neighbouring query heads. Products
    are multiplied by ``scale``, by default one by the root of ``size``. With ``use_mask``, ``mask`` broadcasts to
    (batch, heads, queries, keys). A boolean mask is true for the keys that a query attends to, and gives other keys the
    score ``fill``; another mask is added to the scores. With ``causal``, query ``i`` attends to keys up to ``i``.
    Dropout sets weights to zero with probability ``p`` and divides the others by ``1 - p``, in training only, unless
    ``mode`` is ``always``. A query without any key gives NaN. Memory grows linearly with the length, unless the
    gradient of a mask is computed.

    A. Vaswani et al., Attention Is All You Need, arXiv:1706.03762; T. Dao et al., FlashAttention, arXiv:2205.14135.
    """


def _check_shapes(query: Shape, key: Shape, value: Shape, mask: Sequence[Shape]) -> None:
    for name, shape in (("query", query), ("key", key), ("value", value)):
        if len(shape) != 4:
            raise ShapeError(f"{name}: expected shape (batch, heads, length, size), got {show(shape)}")
    if query[0] != key[0] or query[3] != key[3]:
        raise ShapeError(f"key: expected shape {show((query[0], key[1], key[2], query[3]))} with query {show(query)}, "
                         f"got {show(key)}")
    if value[:3] != key[:3]:
        raise ShapeError(f"value: expected shape {show((*key[:3], value[3]))} with key {show(key)}, got {show(value)}")
    if query[1] is not ANY and key[1] is not ANY and (not key[1] or query[1] % key[1]):
        raise ShapeError(f"query {show(query)}: {query[1]} heads of queries cannot be divided evenly among the "
                         f"{key[1]} heads of keys")
    full_shape = (*query[:3], key[2])
    for shape in mask:
        if len(shape) > 4 or any(dim != 1 and dim != full for dim, full in zip(reversed(shape), reversed(full_shape))):
            raise ShapeError(f"mask: expected a shape that broadcasts to {show(full_shape)}, got {show(shape)}")


@scaled_dot_product_attention.infer
def attention_infer(query, key, value, *mask):
    _check_shapes(query, key, value, mask)
    return [(*query[:3], value[3]), query[:3], (3,)]


def _attention_dtypes(ins: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The dtype of the data, that of the sums, and that of the mask."""
    dtype = common_floating([*ins[:3], *outs])
    mask = ins[3] if len(ins) > 3 else None
    if mask is not None and mask != np.bool_ and (not is_floating(mask) or dtype not in (None, mask)):
        raise DTypeError(f"mask: expected bool or {dtype or 'a floating dtype'}, got {mask}")
    return dtype, _sums(dtype), mask or dtype


def _sums(dtype: np.dtype | None) -> np.dtype | None:
    return dtype if dtype is None or dtype.itemsize > 4 else as_dtype("float32")


@scaled_dot_product_attention.types
def attention_types(ins, outs):
    dtype, sums, mask = _attention_dtypes(ins, outs[:1])
    return [dtype, dtype, dtype, *([mask] if len(ins) > 3 else [])], [dtype, sums, as_dtype("int32")]


@scaled_dot_product_attention.chance
def scaled_dot_product_attention_chance(*, p):
    return p > 0


@scaled_dot_product_attention.kernel()  # no body: scores are held for a block of queries alone
def attention_xp(xp, query, key, value, *mask, causal, scale, p, mode, fill, is_train, rng):
    drops = p > 0 and (is_train or mode == "always")
    draw = dropout_key(xp, drops, rng)
    scores = Scores.of(xp, query, key, value, mask[0] if mask else None, draw if drops else None, scale, p,
                       causal, fill)
    full = slice(0, query.shape[2]), slice(0, key.shape[2])
    shape = (*query.shape[:3], value.shape[3])
    if not key.size or not query.size:
        empty = xp.full(shape, math.nan if query.size else 0.0, dtype=query.dtype)
        return empty, xp.full(shape[:3], -math.inf, dtype=_sums(query.dtype)), draw
    _, weights = scores.block((), *full)
    top = weights.max(axis=-1, keepdims=True)
    weights = xp.exp(weights - _score_offset(xp, top))
    total = weights.sum(axis=-1, keepdims=True)
    weights /= total
    multiples = scores.multiples((), *full)
    if multiples is not None:
        weights *= multiples
    output = product(xp, weights, scores.value).reshape(shape).astype(query.dtype)
    return output, (xp.log(total) + top).reshape(shape[:3]), draw


def _score_offset(xp: ArrayModule, top: Array) -> Array:
    """Offset that is subtracted from scores before ``exp``: the largest score, or zero in rows that see no key."""
    return xp.where(top == -math.inf, xp.zeros_like(top), top)


@scaled_dot_product_attention.grad
def attention_grad(g, ins, outs, *, needs, causal, scale, p, use_mask, fill):
    (g, g_sums, _), (output, logsum, draw) = g, outs
    if g is None and g_sums is None:
        return [None] * len(ins)
    g = ops.zeros_like(output) if g is None else g
    delta = ops.sum(_cast_like(g, logsum) * _cast_like(output, logsum), axis=3)
    if g_sums is not None:
        delta = delta - g_sums
    operands = (g, *ins[:3], logsum, delta, *ins[3:], *((draw,) if p else ()))
    words = {"causal": causal, "scale": scale, "p": p, "use_mask": use_mask, "fill": fill}
    if use_mask and needs[3] and not _is_boolean(ins[3]):
        return ops._attention_gradients(*operands, **words)
    return (*ops._backward_scaled_dot_product_attention(*operands, **words), *[None] * use_mask)


def _cast_like(x: Any, like: Any) -> Any:
    """A value in the dtype of another."""
    dtype = as_dtype(like.dtype)
    return x if as_dtype(x.dtype) == dtype else ops.Cast(x, dtype=dtype)


def _is_boolean(mask: Any) -> bool:
    """Whether a mask is boolean, rather than a term to add to the scores."""
    return as_dtype(mask.dtype).kind == "b"


def _merged_samples(ins: Sequence[Any], batched: Sequence[bool], mask: int) -> list[Any]:
    """The inputs of a vmapped call with all samples in one batch; ``mask`` is the index of the mask."""
    size = size_of(ins, batched)
    merged = []
    for i, (value, has_samples) in enumerate(zip(ins, batched)):
        if i == mask:
            shape = value.shape[has_samples:]
            if not has_samples and (len(shape) < 4 or shape[0] == 1):
                merged.append(value)
                continue
            batch = ins[1].shape[batched[1]]
            value = value.reshape((*([size] if has_samples else [1]), *[1] * (4 - len(shape)), *shape))
            value = ops.broadcast_to(value, shape=(size, batch, *value.shape[2:]))
        elif not has_samples:
            value = ops.broadcast_to(value.reshape((1, *value.shape)), shape=(size, *value.shape))
        merged.append(fold_samples(value))
    return merged


def _declare_samples(op: Op, mask: int) -> None:
    """Declare the vmap rule of an operator of attention; ``mask`` is the index of the mask."""

    @op.vmap
    def attention_vmap(ins, batched, *, p, **attrs):
        if p:
            return NotImplemented  # each sample draws its own mask, which its gradient expects
        return BatchedCall(_merged_samples(ins, batched, mask), {"p": p, **attrs})


_declare_samples(scaled_dot_product_attention, 3)


# ---------------------------------------------------------------------------------------------- gradients

_GRADIENT_INPUTS = "g", "query", "key", "value", "logsum", "delta"


@declare(name="_backward_scaled_dot_product_attention", outputs=("query", "key", "value"),
         arguments=_arguments(*_GRADIENT_INPUTS, dropout=True))
def backward_attention(g, query, key, value, logsum, delta, mask, draw, *, causal: bool = False,
                       scale: float | None = None, p: Fraction = 0.0, use_mask: bool = False, fill: float = -math.inf):
    """The gradients of ``_contrib_scaled_dot_product_attention``, without that of the mask.

    ``delta`` is the sum of ``g`` times the output for each query, less the gradient of ``logsum``.
    """


@composed(name="_attention_gradients", arguments=_arguments(*_GRADIENT_INPUTS, dropout=True),
          outputs=lambda *, use_mask: ("query", "key", "value", *(("mask",) if use_mask else ())))
def attention_gradients(g, query, key, value, logsum, delta, mask=None, draw=None, *, causal: bool = False,
                        scale: float | None = None, p: Fraction = 0.0, use_mask: bool = False, fill: float = -math.inf):
    """All gradients of ``_contrib_scaled_dot_product_attention``, including that of a mask, from the array of all
    scores."""
    reference = query
    g, query, key, value = [_cast_like(x, logsum) for x in (g, query, key, value)]
    many, scale = query.shape[1] // max(key.shape[1], 1), scale_of(scale, query.shape[3])
    all_keys, all_values = [ops.repeat(x, repeats=many, axis=1) if many > 1 else x for x in (key, value)]
    scores = ops._npi_matmul(query * scale, _transposed(all_keys))
    if not use_mask:  # without a mask, the optional input is the random draw
        mask, draw = None, mask
    if mask is not None and _is_boolean(mask):
        if fill == -math.inf:
            scores = ops._npi_where_rscalar(mask, scores, scalar=fill)
        else:  # see ``fills``
            sees = ops.broadcast_mul(ops.ones_like(scores), ops.Cast(mask, dtype=as_dtype(scores.dtype)))
            sees = ops.max(ops._npi_tril(sees) if causal else sees, axis=3, keepdims=True)
            scores = ops._npi_where(mask, scores, sees * fill)
    elif mask is not None:
        scores = ops.broadcast_add(scores, _cast_like(mask, logsum))
    if causal:
        scores = ops._npi_where_rscalar(ops._npi_tril(ops.ones_like(scores)), scores, scalar=-math.inf)
    weights = ops.exp(ops.broadcast_sub(scores, ops.expand_dims(logsum, axis=3)))
    used_weights, d_weights = weights, ops._npi_matmul(g, _transposed(all_values))
    if p:
        multiples = ops._attention_dropout(scores, draw, p=p)
        used_weights, d_weights = weights * multiples, d_weights * multiples
    d_scores = weights * ops.broadcast_sub(d_weights, ops.expand_dims(delta, axis=3))
    if mask is not None and _is_boolean(mask) and fill != -math.inf:
        d_scores = ops._npi_where_rscalar(mask, d_scores, scalar=0.0)
    d_query = ops._npi_matmul(d_scores, all_keys) * scale
    d_key = ops._npi_matmul(_transposed(d_scores), query * scale)
    d_value = ops._npi_matmul(_transposed(used_weights), g)
    if many > 1:
        # Reshape would take a length of zero for one that it keeps.
        d_key, d_value = [ops.sum(ops._np_reshape(x, newshape=(x.shape[0], x.shape[1] // many, many, *x.shape[2:])),
                                  axis=2) for x in (d_key, d_value)]
    results = [_cast_like(x, reference) for x in (d_query, d_key, d_value)]
    if mask is None:
        return tuple(results)
    return (*results, ops.zeros_like(mask) if _is_boolean(mask) else ops._reduce_like(_cast_like(d_scores, mask), mask))


def _transposed(x: Any) -> Any:
    return ops.swapaxes(x, dim1=2, dim2=3)


def _declare_gradient_shapes(op: Op, results: int) -> None:
    """Declare the shapes of an operator that returns the gradients of the first ``results`` inputs of attention."""

    @op.infer
    def gradients_infer(g, query, key, value, logsum, delta, *others, use_mask):
        mask = others[:1] if use_mask else ()
        _check_shapes(query, key, value, mask)
        for name, shape, expected in (("g", g, (*query[:3], value[3])), ("logsum", logsum, query[:3]),
                                      ("delta", delta, query[:3])):
            if shape != expected:
                raise ShapeError(f"{name}: expected shape {show(expected)}, got {show(shape)}")
        return [query, key, value, *mask][:results]


_declare_gradient_shapes(backward_attention, 3)
_declare_gradient_shapes(attention_gradients, 4)


def _gradient_types(ins, outs, *, use_mask):
    dtype, sums, mask = _attention_dtypes([*ins[1:4], *(ins[6:7] if use_mask else ())], [ins[0], *outs[:3]])
    behind = [as_dtype("int32")] * (len(ins) - 6 - use_mask)
    return ([dtype] * 4 + [sums] * 2 + [mask] * use_mask + behind), [dtype] * 3 + [mask] * (len(outs) - 3)


backward_attention.types(_gradient_types)
attention_gradients.types(_gradient_types)


class _Backward(NamedTuple):
    """The operands of a gradient that is computed block by block: the scores, the other arrays that it reads, and the
    gradients to which each block is added."""

    scores: Scores
    g: Array
    logsum: Array
    delta: Array
    query: Array
    key: Array
    value: Array

    @classmethod
    def of(cls, scores: Scores, g: Array, sums: Sequence[Array], results: Sequence[Array]) -> _Backward:
        """Operands from the arrays of an operator; the results are in the dtype of the computation."""
        (logsum, delta), (query, key, value) = sums, results
        g, logsum, delta, query = [heads_by_key(x, key.shape[1]) for x in (wide(g), logsum, delta, query)]
        return cls(scores, g, logsum, delta, query, key, value)

    def block(self, at: Any, rows: slice, columns: slice) -> None:
        """Add the contributions of a block of scores to the gradients."""
        xp, scores = self.scores.xp, self.scores
        query, weights = scores.block(at, rows, columns)
        g, logsum, delta = self.g[at][..., rows, :], self.logsum[at][..., rows], self.delta[at][..., rows]
        g = g.reshape(*query.shape[:-1], g.shape[-1])
        logsum, delta = [x.reshape(*query.shape[:-1], 1) for x in (logsum, delta)]
        d_scores = product(xp, g, xp.swapaxes(scores.value[at][..., columns, :], -1, -2))
        multiples = scores.multiples(at, rows, columns)
        if multiples is not None:
            d_scores *= multiples
        _to_score_gradients(xp, weights, d_scores, logsum, delta)
        if scores.mask is not None and scores.fill is not None:
            mask = scores.mask[at][..., rows, columns]
            further = d_scores.reshape(mask.shape)
            further[...] = xp.where(mask, further, 0.0)
        used_weights = weights if multiples is None else weights * multiples
        into = self.value[at][..., columns, :]
        into += product(xp, xp.swapaxes(used_weights, -1, -2), g)
        into = self.key[at][..., columns, :]
        into += product(xp, xp.swapaxes(d_scores, -1, -2), query)
        into = self.query[at][..., rows, :]
        d_query = product(xp, d_scores, scores.key[at][..., columns, :])
        d_query *= scores.scale
        into += d_query.reshape(into.shape)


def _products(query: Shape, key: Shape, value: Shape, with_size: int, with_features: int) -> int:
    """The arithmetic of products over all scores: ``with_size`` of them sum over the size of keys, ``with_features``
    over the features of values."""
    return 2 * math.prod(query[:3]) * key[2] * (with_size * query[3] + with_features * value[3])


scaled_dot_product_attention.flops(lambda ins, outs: _products(ins[0], ins[1], ins[2], 1, 1))
for _gradient in (backward_attention, attention_gradients):
    _gradient.flops(lambda ins, outs: _products(ins[1], ins[2], ins[3], 3, 2))


@backward_attention.grad
def backward_attention_grad(h, ins, outs, *, needs, causal, scale, p, use_mask, fill):
    op = get("_attention_gradients")
    use = op.complete({"causal": causal, "scale": scale, "p": p, "use_mask": use_mask, "fill": fill})
    return op.differentiate([*h, *[ops.zeros_like(mask) for mask in ins[6:6 + use_mask]]], ins, outs, use, needs)


_declare_samples(backward_attention, 6)


# ------------------------------------------------------------------------------ blocks of queries and keys


def decline_few_scores(call: Call) -> str | None:
    """The reason why blocks have no advantage: scores are few."""
    query, key = call.ins[call.op is backward_attention:][:2]
    if not query.size or not key.size:
        return "nothing to compute"
    several = several_blocks(math.prod(query.shape[:3]) * key.shape[2], call.xp is np)
    return None if several else "all scores are one block"


@scaled_dot_product_attention.kernel("blocks", accepts=decline_few_scores, rank=Rank.OPERATOR)
def attention_blocks(xp, query, key, value, *mask, causal, scale, p, mode, fill, is_train, rng, out=None):
    ins, shape = (query, key, value, *mask), (*query.shape[:3], value.shape[3])
    if out is None:
        out = [xp.empty(shape, dtype=query.dtype), xp.empty(shape[:3], dtype=_sums(query.dtype)),
               xp.empty(3, dtype=xp.int32)]
    run(xp, ins, out, is_train, rng, causal, scale, p, mode, fill)
    return tuple(out)


def run(xp: ArrayModule, ins: Sequence[Array], out: Sequence[Array], is_train: bool, rng: Any, causal: bool,
        scale: float | None, p: float, mode: str, fill: float) -> None:
    """Compute attention in blocks into the outputs."""
    query, key, value, *mask = ins
    drops = p > 0 and (is_train or mode == "always")
    draw = dropout_key(xp, drops, rng)
    scores = Scores.of(xp, query, key, value, mask[0] if mask else None, draw if drops else None, scale, p,
                       causal, fill)
    out[2][...] = draw
    heads = key.shape[1]
    output, logsum = [xp.empty(x.shape, dtype=x.dtype) if not x.flags.c_contiguous else x for x in out[:2]]
    places, queries, keys = scores.blocks(xp is np)
    work = functools.partial(_rows, scores, keys, heads_by_key(output, heads), heads_by_key(logsum, heads))
    share(xp, [functools.partial(work, at, rows) for at in places for rows in queries], _multiplications(scores))
    for target, result in zip(out, (output, logsum)):
        if target is not result:
            target[...] = result


def _multiplications(scores: Scores) -> int:
    """Multiplications of a pass."""
    return math.prod(scores.query.shape) * scores.key.shape[2] * 2


def _exponentials(xp: ArrayModule, weights: Array, top: Array, total: Array) -> Array:
    """Replace the scores of a block by exponentials, and update the largest score and the sum of each row by them.

    It returns the factor by which the earlier sums are multiplied.
    """
    largest = xp.maximum(weights.max(axis=-1, keepdims=True), top)
    base = _score_offset(xp, largest)
    weights -= base
    xp.exp(weights, out=weights)
    shrunk = xp.exp(top - base)
    total *= shrunk
    total += weights.sum(axis=-1, keepdims=True)
    top[...] = largest
    return shrunk


def _rows(scores: Scores, keys: Sequence[slice], output: Array, logsum: Array, at: Any, rows: slice) -> None:
    """The output for some queries, from one block of keys after the other.

    M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.
    """
    xp = scores.xp
    top: Any = None
    total: Any = None
    sums: Any = None
    for columns in keys:
        if not scores.attends(rows, columns):
            break
        _, weights = scores.block(at, rows, columns)
        if top is None:
            top = xp.full((*weights.shape[:-1], 1), -math.inf, dtype=weights.dtype)
            total = xp.zeros_like(top)
        shrunk = _exponentials(xp, weights, top, total)
        multiples = scores.multiples(at, rows, columns)
        if multiples is not None:
            weights *= multiples
        weighted = product(xp, weights, scores.value[at][..., columns, :])
        if sums is None:
            sums = weighted
        else:
            sums *= shrunk
            sums += weighted
    sums /= total
    place = output[at][..., rows, :]
    place[...] = sums.reshape(place.shape)
    place = logsum[at][..., rows]
    place[...] = (xp.log(total) + top).reshape(place.shape)


@backward_attention.kernel()  # no body: scores are computed again, a block at a time
def backward_attention_xp(xp, g, query, key, value, *rest, causal, scale, p, use_mask, fill):
    """The gradients of queries, keys and values."""
    if not key.size or not query.size:
        return tuple([xp.zeros_like(x) for x in (query, key, value)])
    scores = Scores.of(xp, query, key, value, rest[2] if use_mask else None, rest[-1] if p else None, scale, p, causal,
                       fill)
    places, queries, keys = scores.blocks(xp is np)
    of_key, of_value = [xp.zeros(x.shape, dtype=wide(x[:0]).dtype) for x in (key, value)]
    if len(places) == len(queries) == len(keys) == 1:
        of_query = xp.zeros(query.shape, dtype=of_key.dtype)
        _Backward.of(scores, g, rest[:2], (of_query, of_key, of_value)).block(places[0], queries[0], keys[0])
        return tuple([found.astype(x.dtype, copy=False)
                      for found, x in zip((of_query, of_key, of_value), (query, key, value))])
    # Blocks of keys add to the gradient of queries. With few heads, each block has its own sum, and the sums are added.
    count = min(len(keys), -(-PARTS // len(places))) if xp is np else 1
    cuts = [keys[len(keys) * i // count:len(keys) * (i + 1) // count] for i in range(count)]
    of_queries = [xp.zeros(query.shape, dtype=of_key.dtype) for _ in cuts]
    parts = []
    for cut, of_query in zip(cuts, of_queries):
        back = _Backward.of(scores, g, rest[:2], (of_query, of_key, of_value))
        parts += [functools.partial(_all_blocks, back, queries, cut, at) for at in places]
    share(xp, parts, 3 * _multiplications(scores))
    for more in of_queries[1:]:
        of_queries[0] += more
    return tuple([found.astype(x.dtype, copy=False)
                  for found, x in zip((of_queries[0], of_key, of_value), (query, key, value))])


def _to_score_gradients(xp: ArrayModule, weights: Array, d_scores: Array, logsum: Array, delta: Array) -> None:
    """Replace the scores of a block by weights, and the gradients of the weights by those of the scores, in place."""
    weights -= logsum
    xp.exp(weights, out=weights)
    d_scores -= delta
    d_scores *= weights


def _all_blocks(back: _Backward, queries: Sequence[slice], keys: Sequence[slice], at: Any) -> None:
    for columns, rows in itertools.product(keys, queries):
        if back.scores.attends(rows, columns):
            back.block(at, rows, columns)
