"""Rows of ONNX Runtime's operators of attention, with projections, caches of keys and values, and rotary places."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.core.spec import ANY
from opreg.errors import ArgumentError, ShapeError

from ..graph import Node
from ..rows import Given, Host, row
from .attention import heads_of, joined, places
from .fused_operators import plus
from .parts import gather, gather_along, padded
from .quantized import product_of_integers
from .reductions import mat_mul

DOMAIN = "com.microsoft"


def _refuse_options(node: Node, **options: Any) -> None:
    """Raise the error of inputs and attributes that the row does not compute."""
    for name, value in options.items():
        if value is not None and not (isinstance(value, int) and value == 0):
            raise ArgumentError(f"{node.op_type}: {name} is not supported")


def _split(x: Any, axis: int, *sizes: int) -> list[Any]:
    """Split an array along an axis into parts of the given sizes."""
    ends = [0, *itertools.accumulate(sizes)]
    return [ops.slice_axis(x, axis=axis, begin=begin, end=end) for begin, end in itertools.pairwise(ends)]


def _flat(x: Any) -> Any:
    """(batch, heads, length, size) as (batch, length, heads * size)."""
    return ops.reshape(ops.transpose(x, axes=(0, 2, 1, 3)), shape=(0, 0, -3))


def _append_to_cache(past: Any, new: Any) -> Any:
    """Keys or values after those of the steps before."""
    return new if past is None else ops.Concat(past, new, dim=2, num_args=2)


def _attend(node: Node, query: Any, key: Any, value: Any, bias: Any, scale: float | None, causal: bool) -> Any:
    """Attention of heads; ``causal`` lets the last query see all keys."""
    if causal:
        before = node.lengths(key)[2] - node.lengths(query)[2]
        if bias is None and before.__class__ is int and not before:
            return ops._contrib_scaled_dot_product_attention(query, key, value, causal=True, scale=scale or None)
        query_places = ops.reshape(places(node, query), shape=(1, 1, -1, 1))
        if before.__class__ is not int or before:
            last = ops.slice_axis(places(node, key), axis=0, begin=-1, end=None)
            query_places = ops.broadcast_add(query_places, ops.broadcast_sub(last, ops.slice_axis(
                places(node, query), axis=0, begin=-1, end=None)))
        mask = ops._npi_less_equal(places(node, key), query_places)
        bias = mask if bias is None else ops._npi_where_rscalar(mask, bias, scalar=-math.inf)
    operands = [query, key, value] if bias is None else [query, key, value, bias]
    return ops._contrib_scaled_dot_product_attention(*operands, scale=scale or None, use_mask=bias is not None)


def _bias(node: Node, query: Any, key: Any, mask: Any, added: Any, fill: float) -> Any:
    """The bias of the scores: ``fill`` where a mask hides a key, and the node's own addend."""
    if mask is None:
        return added
    rank, dtype = node.rank(mask), node.dtype(query)
    if rank == 1:
        count, batch = node.lengths(mask)[0], node.lengths(query)[0]
        both = count.__class__ is batch.__class__ is int and count == 2 * batch != batch
        if not both and count.__class__ is batch.__class__ is int and count != batch:
            raise ArgumentError(f"{node.op_type}: a mask of {count} elements for {batch} sequences is not supported")
        ends, *begins = ops.split(mask, num_outputs=2, axis=0) if both else [mask]
        visible = ops._npi_less(places(node, key), ops.reshape(node.cast(ends, np.int64), shape=(-1, 1, 1, 1)))
        for begin in begins:
            visible = joined(visible, ops._npi_greater_equal(places(node, key), ops.reshape(
                node.cast(begin, np.int64), shape=(-1, 1, 1, 1))))
    else:
        if rank == 4:  # the mask has room for the longest sequences
            keys, queries = node.length(key, 2), node.length(query, 2)
            mask = ops.slice_axis(mask, axis=2, begin=keys - queries, end=keys)
            mask = ops.slice_axis(mask, axis=3, begin=0, end=keys)
        elif rank == 3:
            mask = ops.expand_dims(mask, axis=1)
        else:
            mask = ops.reshape(mask, shape=(0, 1, 1, -1))
        visible = ops._npi_greater_scalar(mask, scalar=0)
    hidden = node.cast(ops._npi_logical_not(visible), dtype) * fill
    return hidden if added is None else ops.broadcast_add(hidden, added)


# -------------------------------------------------------------------------------------- heads of equal number


@row("Attention", domain=DOMAIN)
def attention(node: Node, x: Any, weights: Any, bias: Any = None, mask: Any = None, past: Any = None,
              added: Any = None, past_length: Any = None, *, num_heads: int, do_rotary: int = 0,
              mask_filter_value: float = -10000.0, past_present_share_buffer: int = 0, qkv_hidden_sizes: Any = None,
              rotary_embedding_dim: int = 0, scale: float = 0.0, unidirectional: int = 0) -> Any:
    _refuse_options(node, do_rotary=do_rotary, past_present_share_buffer=past_present_share_buffer)
    sizes = list(qkv_hidden_sizes or [node.length(weights, 1) // 3] * 3)
    return _project(node, plus(mat_mul(node, x, weights), bias), sizes, mask, past, added, num_heads,
                    mask_filter_value, scale, unidirectional)


@row("QAttention", domain=DOMAIN)
def q_attention(node: Node, x: Any, weights: Given, bias: Any, x_scale: Any, weight_scale: Any, mask: Any = None,
                x_zero: Any = None, weight_zero: Given = None, past: Any = None, *, num_heads: int,
                do_rotary: int = 0, mask_filter_value: float = -10000.0, past_present_share_buffer: int = 0,
                scale: float = 0.0, unidirectional: int = 0) -> Any:
    _refuse_options(node, do_rotary=do_rotary, past_present_share_buffer=past_present_share_buffer)
    product = product_of_integers(node, x, weights, x_scale, weight_scale, x_zero, weight_zero, bias)
    return _project(node, product, [node.length(weights, 1) // 3] * 3, mask, past, None, num_heads,
                    mask_filter_value, scale, unidirectional)


def _project(node: Node, joint: Any, sizes: list[int], mask: Any, past: Any, added: Any, heads: int, fill: float,
             scale: float, unidirectional: int) -> Any:
    """Attention of queries, keys and values that lie side by side."""
    query, key, value = [heads_of(node, name, part, heads) for name, part in zip(
        ("query", "key", "value"), _split(joint, 2, *sizes))]
    if past is not None:
        before = ops.split(past, num_outputs=2, axis=0, squeeze_axis=True)
        key, value = _append_to_cache(before[0], key), _append_to_cache(before[1], value)
    y = _attend(node, query, key, value, _bias(node, query, key, mask, added, fill), scale, bool(unidirectional))
    return (_flat(y), ops.stack(key, value, axis=0, num_args=2)) if len(node.outputs) > 1 else _flat(y)


@row("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(node: Node, query: Any, key: Any = None, value: Any = None, bias: Any = None, mask: Any = None,
                         added: Any = None, past_key: Any = None, past_value: Any = None, past_length: Any = None,
                         beams: Any = None, *, num_heads: int, mask_filter_value: float = -10000.0, scale: float = 0.0,
                         unidirectional: int = 0) -> Any:
    _refuse_options(node, past_sequence_length=past_length, cache_indirection=beams,
                    qk=node.outputs[3] or None if len(node.outputs) > 3 else None)
    packed = [query] if node.rank(query) == 5 else [key] if key is not None and node.rank(key) == 5 else []
    for x in packed:  # (batch, length, heads, kinds, size)
        parts = [ops.reshape(part, shape=(0, 0, -3)) for part in ops.split(
            x, num_outputs=node.length(x, 3), axis=3, squeeze_axis=True)]
        query, key, value = parts if len(parts) == 3 else (query, *parts)
    if key is None or value is None:
        raise ArgumentError("MultiHeadAttention: expected keys and values")
    kinds = [query, key, value]
    if bias is not None:
        own = [node.length(x, 2) if node.rank(x) == 3 else num_heads * node.length(x, 3) for x in kinds]
        kinds = [plus(x, part) if node.rank(x) == 3 else x for x, part in zip(kinds, _split(bias, 0, *own))]
    query, key, value = [heads_of(node, name, x, num_heads) for name, x in zip(("query", "key", "value"), kinds)]
    key, value = _append_to_cache(past_key, key), _append_to_cache(past_value, value)
    y = _attend(node, query, key, value, _bias(node, query, key, mask, added, mask_filter_value), scale,
                bool(unidirectional))
    return (_flat(y), key, value) if len(node.outputs) > 1 else _flat(y)


# ------------------------------------------------------------------------------------------- rotary places


def _rotate_heads(node: Node, x: Any, at: Any, cos: Any, sin: Any, interleaved: int) -> Any:
    """Heads with rotary position embedding: the first elements of each are rotated by the angles of the positions
    ``at``, (batch, length)."""
    half, size = node.length(cos, 1), node.length(x, 3)
    if 2 * half > size:
        raise ShapeError(f"{node.op_type}: {half} angles for heads of {size} numbers")
    cos, sin = [ops.expand_dims(gather(node, table, at), axis=1) for table in (cos, sin)]
    turned = ops.slice_axis(x, axis=3, begin=0, end=2 * half)
    if interleaved:
        turned = ops.reshape(turned, shape=(0, 0, 0, half, 2))
        real, imaginary = ops.split(turned, num_outputs=2, axis=4, squeeze_axis=True)
    else:
        real, imaginary = ops.split(turned, num_outputs=2, axis=3)
    parts = [ops.broadcast_sub(ops.broadcast_mul(real, cos), ops.broadcast_mul(imaginary, sin)),
             ops.broadcast_add(ops.broadcast_mul(real, sin), ops.broadcast_mul(imaginary, cos))]
    if interleaved:
        parts = [ops.reshape(ops.stack(*parts, axis=4, num_args=2), shape=(0, 0, 0, -3))]
    if 2 * half < size:
        parts.append(ops.slice_axis(x, axis=3, begin=2 * half, end=size))
    return ops.Concat(*parts, dim=3, num_args=len(parts)) if len(parts) > 1 else parts[0]


@row("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(node: Node, x: Any, at: Any, cos: Any, sin: Any, *, interleaved: int = 0,
                     is_packed_batching: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0,
                     scale: float = 1.0) -> Any:
    _refuse_options(node, is_packed_batching=is_packed_batching)  # ONNX Runtime does not read ``scale``
    heads = x
    if node.rank(x) == 3:
        size = node.length(x, 2)
        heads = heads_of(node, "input", x, num_heads if rotary_embedding_dim else size // (2 * node.length(cos, 1)))
    if node.rank(at) == 1:  # ``at`` has only the position of the first token
        at = ops.broadcast_add(ops.expand_dims(places(node, heads), axis=0), node.cast(at, np.int64))
    y = _rotate_heads(node, heads, at, cos, sin, interleaved)
    return _flat(y) if node.rank(x) == 3 else y


# -------------------------------------------------------------------------------------------- shared heads


@row("GroupQueryAttention", domain=DOMAIN)
def group_query_attention(
        node: Node, query: Any, key: Any = None, value: Any = None, past_key: Any = None, past_value: Any = None,
        last: Any = None, total: Host = None, cos: Any = None, sin: Any = None, at: Any = None, added: Any = None,
        sink: Any = None, k_scale: Any = None, v_scale: Any = None, q_norm: Any = None, k_norm: Any = None,
        new: Any = None, *, num_heads: int, kv_num_heads: int, causal: int = 1, do_rotary: int = 0,
        k_norm_epsilon: float = 0.0, k_quant_type: str = "NONE", kv_cache_bit_width: int = 0,
        local_window_size: int = -1, q_norm_epsilon: float = 0.0, qk_norm_epsilon: float = 1e-6, qk_output: int = 0,
        rotary_interleaved: int = 0, scale: float = 0.0, sliding_window_cache: int = 0, smooth_softmax: int = 0,
        softcap: float = 0.0, v_quant_type: str = "NONE") -> Any:
    _refuse_options(node, k_scale=k_scale, v_scale=v_scale, q_norm_weight=q_norm, k_norm_weight=k_norm,
                    qk_output=qk_output, sliding_window_cache=sliding_window_cache)
    if last is None or total is None:
        raise ArgumentError("GroupQueryAttention: expected seqlens_k and total_sequence_length")
    if key is None:  # all heads side by side
        size = node.length(query, 2) // (num_heads + 2 * kv_num_heads)
        query, key, value = _split(query, 2, num_heads * size, kv_num_heads * size, kv_num_heads * size)
    query = heads_of(node, "query", query, num_heads)
    key, value = heads_of(node, "key", key, kv_num_heads), heads_of(node, "value", value, kv_num_heads)
    filled = ops.reshape(node.cast(last, np.int64), shape=(-1, 1)) + 1  # keys of each sequence, with the new ones
    length = node.cast(ops.slice_axis(places(node, query), axis=0, begin=-1, end=None), np.int64) + 1
    new = ops._npi_minimum(filled, length) if new is None else ops.reshape(node.cast(new, np.int64), shape=(-1, 1))
    before = ops.broadcast_sub(filled, new)
    query_places = ops.broadcast_add(before, places(node, query))
    if do_rotary:
        at = query_places if at is None else at
        query, key = [_rotate_heads(node, x, at, cos, sin, rotary_interleaved) for x in (query, key)]
    room = _cache_length(node, int(total.reshape(-1)[0]), past_key, key)
    key, value = [_write_to_cache(node, past, x, before, room) for past, x in ((past_key, key), (past_value, value))]
    spots, query_places = node.lift(np.arange(room, dtype=np.int64)), ops.reshape(query_places, shape=(0, 1, -1, 1))
    mask = ops._npi_less(spots, ops.reshape(filled, shape=(0, 1, 1, 1)))
    if causal:
        mask = joined(mask, ops._npi_less_equal(spots, query_places))
    if local_window_size >= 0:
        mask = joined(mask, ops._npi_greater(spots, query_places - local_window_size))
    if added is not None:
        missing = room - node.length(added, 3)
        added = padded(node, added, [0] * 7 + [missing], 0, "constant") if missing else added
    if softcap or smooth_softmax or sink is not None:
        y = _attention_with_bounds(node, query, key, value, mask, added, scale, softcap, smooth_softmax, sink)
    else:
        bias = mask if added is None else ops._npi_where_rscalar(mask, added, scalar=-math.inf)
        y = _attend(node, query, key, value, bias, scale, False)
    return (_flat(y), key, value) if len(node.outputs) > 1 else _flat(y)


def _cache_length(node: Node, total: int, past: Any, new: Any) -> int:
    """Number of keys in the cache after a step: the larger of ``total`` and the length of the cache before the step.

    Raises
    ------
    ShapeError
        If ``total`` is more than the keys of the cache and the new ones together.
    """
    count, added = 0 if past is None else node.length(past, 2), node.lengths(new)[2]
    if added is not ANY and total > count + added:
        raise ShapeError(f"{node.op_type}: total_sequence_length is {total}; the cache holds {count} keys, and "
                         f"{added} are new")
    return max(total, count)


def _write_to_cache(node: Node, past: Any, new: Any, before: Any, room: int) -> Any:
    """A cache for ``room`` keys or values of a sequence, in which the new ones follow the ``before`` earlier ones."""
    count = 0 if past is None else node.length(past, 2)
    if past is None or not count:
        past = ops.slice_axis(ops.zeros_like(new), axis=2, begin=0, end=1)
        past = ops.repeat(past, repeats=room, axis=2)
    elif count < room:
        past = padded(node, past, [0] * 6 + [room - count, 0], 0, "constant")
    spots = ops.broadcast_sub(node.lift(np.arange(room, dtype=np.int64)), before)
    chosen = ops.broadcast_like(ops.reshape(spots, shape=(0, 1, -1, 1)), past)
    length = node.length(new, 2)
    taken = gather_along(node, new, ops.clip(chosen, a_min=0, a_max=length - 1), 2)
    inside = ops._npi_logical_and(ops._npi_greater_equal_scalar(chosen, scalar=0), ops._npi_less_scalar(
        chosen, scalar=length))
    return ops._npi_where(inside, taken, past)


def _attention_with_bounds(node: Node, query: Any, key: Any, value: Any, mask: Any, added: Any, scale: float,
                           softcap: float, smooth: int, sink: Any) -> Any:
    """Attention with bounded scores, or with one more score for no key: of each head, or zero."""
    many = node.length(query, 1) // max(node.length(key, 1), 1)
    if many > 1:
        key, value = [ops.repeat(x, repeats=many, axis=1) for x in (key, value)]
    scores = ops._npi_matmul(query, ops.swapaxes(key, dim1=2, dim2=3)) * (scale or node.length(query, 3) ** -0.5)
    if softcap:
        scores = ops.tanh(scores / softcap) * softcap
    if added is not None:
        scores = ops.broadcast_add(scores, added)
    scores = ops._npi_where_rscalar(mask, scores, scalar=-math.inf)
    if not smooth and sink is None:
        return ops._npi_matmul(ops.softmax(scores, axis=-1), value)
    none = ops.zeros_like(ops.slice_axis(scores, axis=3, begin=0, end=1))
    if sink is not None:
        none = ops.broadcast_add(none, ops.reshape(sink, shape=(1, -1, 1, 1)))
    weights = ops.softmax(ops.Concat(scores, none, dim=3, num_args=2), axis=-1)
    return ops._npi_matmul(ops.slice_axis(weights, axis=3, begin=0, end=-1), value)
