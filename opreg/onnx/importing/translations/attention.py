"""The row of attention: it splits heads, joins caches, combines masks, and then applies one operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opreg.core.registry import ops
from opreg.core.spec import ANY
from opreg.errors import ArgumentError, ShapeError

from ..graph import Node
from ..rows import row
from ..tensors import dtype_of
from .parts import padded

__all__ = ["heads_of", "joined", "places"]


def heads_of(node: Node, name: str, x: Any, heads: int | None) -> Any:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    if node.rank(x) == 4:
        return x
    size = node.length(x, 2)
    if not heads or size % heads:
        raise ShapeError(f"{node.op_type}: {name} has {size} elements for each position, which cannot be divided among "
                         f"{heads} heads")
    return ops.transpose(ops.reshape(x, shape=(0, 0, heads, size // heads)), axes=(0, 2, 1, 3))


def places(node: Node, x: Any) -> Any:
    """The indices along the third axis."""
    length = node.lengths(x)[2]
    if length is ANY:
        return node.cast(ops._contrib_arange_like(x, axis=2), np.int64)
    return node.lift(np.arange(length, dtype=np.int64))


def _window_mask(node: Node, query: Any, key: Any, offset: Any, left: int, right: int) -> Any:
    """Whether each key is within the window of each query, whose position is shifted by ``offset``; -1 is no limit.
    """
    query_places = ops.broadcast_add(ops.reshape(places(node, query), shape=(1, 1, -1, 1)), offset)
    keys, mask = places(node, key), None
    if right >= 0:
        mask = ops._npi_less_equal(keys, query_places + right)
    return mask if left < 0 else joined(mask, ops._npi_greater_equal(keys, query_places - left))


def joined(mask: Any, more: Any) -> Any:
    """Truth values that hold where both do; None holds everywhere."""
    return more if mask is None else ops._npi_logical_and(mask, more)


def _visibility_mask(added: Any, visible: Any) -> tuple[Any, Any]:
    """The mask of scores, and whether each query has a key: one without gets all, and its output is set to zero.

    ``added`` is a mask to add to scores, ``visible`` has truth values; either may be None.
    """
    some = visible
    if added is not None:
        some = joined(visible, ops._npi_greater_scalar(added, scalar=-math.inf))
    if some is None:
        return None, None
    some = ops._np_any(some, axis=-1, keepdims=True)
    covered = None if visible is None else ops._npi_logical_or(visible, ops._npi_logical_not(some))
    if added is None:
        return covered, some
    added = ops._npi_where_rscalar(some, added, scalar=0.0)
    if covered is not None:
        added = ops._npi_where_rscalar(covered, added, scalar=-math.inf)
    return added, some


@row("Attention")
def attention(node: Node, query: Any, key: Any, value: Any, mask: Any = None, past_key: Any = None,
              past_value: Any = None, filled: Any = None, *, is_causal: int = 0, kv_num_heads: int | None = None,
              left_window_size: int = -1, q_num_heads: int | None = None, qk_matmul_output_mode: int = 0,
              right_window_size: int = -1, scale: float | None = None, softcap: float = 0.0,
              softmax_precision: int | None = None) -> Any:
    if (past_key is None) != (past_value is None):
        raise ArgumentError("Attention: expected both past_key and past_value, or neither")
    flat, dtype = node.rank(query) == 3, node.dtype(query)
    query, key = heads_of(node, "Q", query, q_num_heads), heads_of(node, "K", key, kv_num_heads)
    value = node.cast(heads_of(node, "V", value, kv_num_heads), dtype)
    offset = node.lift(np.zeros((), np.int64))
    if past_key is not None:
        offset = node.lift(np.asarray(node.length(past_key, 2), np.int64))
        key, value = [ops.Concat(past, new, dim=2, num_args=2)
                      for past, new in ((past_key, key), (node.cast(past_value, dtype), value))]
    elif filled is not None:
        filled = ops.reshape(node.cast(filled, np.int64), shape=(-1, 1, 1, 1))
        offset = filled - node.length(query, 2)
    added, visible = None, None
    if mask is not None:
        truth = node.dtype(mask) == np.bool_
        mask = _widen_mask(node, mask, key, truth)
        added, visible = (None, mask) if truth else (node.cast(mask, dtype), None)
    if filled is not None:
        visible = joined(visible, ops._npi_less(places(node, key), filled))
    scale = 1 / math.sqrt(node.length(query, 3)) if scale is None else scale
    precise = dtype if softmax_precision is None else dtype_of(softmax_precision)
    wants_scores = len(node.outputs) > 3 and bool(node.outputs[3])
    plain = not softcap and not wants_scores and precise.itemsize <= 4
    right = 0 if is_causal else right_window_size
    causal = right == 0 and left_window_size < 0 and plain and mask is filled is past_key is None
    if not causal and (right >= 0 or left_window_size >= 0):
        visible = joined(visible, _window_mask(node, query, key, offset, left_window_size, right))
    added, some = _visibility_mask(added, visible)
    scores = None
    if plain:
        operands = [query, key, value] if added is None else [query, key, value, added]
        result = ops._contrib_scaled_dot_product_attention(*operands, causal=causal, scale=scale,
                                                           use_mask=added is not None)
        result = result[0] if isinstance(result, (list, tuple)) else result
    else:
        result, scores = _compose_attention(node, query, key, value, added, some, scale, softcap, precise,
                                            qk_matmul_output_mode)
    if some is not None:
        result = ops._npi_where_rscalar(some, result, scalar=0.0)
    if flat:
        result = ops.reshape(ops.transpose(result, axes=(0, 2, 1, 3)), shape=(0, 0, -3))
    return (result, key, value, scores) if len(node.outputs) > 1 else result


def _widen_mask(node: Node, mask: Any, key: Any, truth: bool) -> Any:
    """A mask with as many positions as keys; additional ones are masked."""
    own, keys = node.lengths(mask)[-1], node.lengths(key)[2]
    if own is ANY or keys is ANY or own in (1, keys):
        return mask
    pads = [0] * 2 * node.rank(mask)
    pads[-1] = keys - own
    if not truth:
        return padded(node, mask, pads, -math.inf, "constant")
    return node.cast(padded(node, node.cast(mask, np.int64), pads, 0, "constant"), np.bool_)


def _compose_attention(node: Node, query: Any, key: Any, value: Any, mask: Any, some: Any, scale: float, softcap: float,
                       precise: np.dtype, mode: int) -> tuple[Any, Any]:
    """The output, and the scores after the step ``mode``."""
    dtype, many = node.dtype(query), node.length(query, 1) // max(node.length(key, 1), 1)
    if many > 1:
        key, value = [ops.repeat(each, repeats=many, axis=1) for each in (key, value)]
    root = math.sqrt(scale)
    steps = [ops._npi_matmul(query * root, ops.swapaxes(key, dim1=2, dim2=3) * root)]
    steps.append(ops.tanh(steps[0] / softcap) * softcap if softcap else steps[0])
    if mask is None:
        steps.append(steps[1])
    elif node.dtype(mask) == np.bool_:
        steps.append(ops._npi_where_rscalar(mask, steps[1], scalar=-math.inf))
    else:
        steps.append(ops.broadcast_add(steps[1], mask))
    weights = node.cast(ops.softmax(node.cast(steps[2], precise), axis=-1), dtype)
    if some is not None:
        weights = ops._npi_where_rscalar(some, weights, scalar=0.0)
        steps[2] = ops._npi_where_rscalar(some, steps[2], scalar=-math.inf)
    return ops._npi_matmul(weights, value), (*steps, weights)[mode]
