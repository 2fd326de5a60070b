"""Attention by MindSpore's name, over an operator whose memory grows linearly with the length."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorLike
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError, did_you_mean
from .lift import as_floating, like, tensor, to_common_dtype

__all__ = ["flash_attention_score"]

_LAYOUTS = ("BSH", "BNSD", "SBH", "BSND")


def flash_attention_score(query: TensorLike, key: TensorLike, value: TensorLike, head_num: int,
                          real_shift: TensorLike | None = None, drop_mask: None = None, padding_mask: None = None,
                          attn_mask: TensorLike | None = None, prefix: None = None, actual_seq_qlen: None = None,
                          actual_seq_kvlen: None = None, keep_prob: float = 1.0, scalar_value: float = 1.0,
                          pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0,
                          input_layout: str = "BSH", sparse_mode: int = 0) -> Tensor:
    """Attention: for each query the mean of the values, weighted by the softmax of the products of query and keys.

    ``input_layout`` names the axes of queries, keys and values: batch B, length S, heads N of size D, or H = N D
    features. Keys may have fewer heads, each of which serves a group of neighbouring query heads. Products are
    multiplied by ``scalar_value``, and ``real_shift`` is added. A query does not attend to keys where ``attn_mask``,
    which broadcasts to (B, N, S of queries, S of keys), is true, nor to keys that ``sparse_mode`` excludes:

    - 0: with an ``attn_mask``, keys more than ``pre_tokens`` before the query's place and ``next_tokens`` after it;
    - 1: none;
    - 2: keys after the query's position; 3: the same, with the last query at the position of the last key. The mask
      is not read;
    - 4: as 0, with the last query at the position of the last key. The mask is not read.

    A query without any key weighs all keys alike. The output has the layout of the queries. All floating dtypes are
    accepted.

    Raises
    ------
    ArgumentError
        For another layout or mode, and for options that are not available: dropout (its mask comes from the caller in
        MindSpore), ``padding_mask``, ``prefix`` and lengths of single sequences.
    ShapeError
        When numbers of heads do not fit.

    Examples
    --------
    >>> x = Tensor(np.ones((2, 4, 64)))
    >>> flash_attention_score(x, x, x, 4, sparse_mode=2).shape
    (2, 4, 64)
    """
    _check_options(keep_prob, input_layout, sparse_mode, drop_mask=drop_mask, padding_mask=padding_mask, prefix=prefix,
                   actual_seq_qlen=actual_seq_qlen, actual_seq_kvlen=actual_seq_kvlen)
    q, k, v = to_common_dtype(as_floating(query), key, value)
    size = _size(q, head_num, input_layout)
    heads = [_split_heads(name, x, size, input_layout) for name, x in (("query", q), ("key", k), ("value", v))]
    lengths = heads[0].shape[2], heads[1].shape[2]
    hidden = None if attn_mask is None or sparse_mode > 1 else tensor(attn_mask)._cast(np.dtype(np.bool_))
    causal = sparse_mode == 2 or (sparse_mode == 3 and lengths[0] == lengths[1])
    outside = None if causal else _mode_mask(sparse_mode, hidden is not None, pre_tokens, next_tokens, *lengths)
    if outside is not None:
        hidden = tensor(outside) if hidden is None else ops.broadcast_logical_or(hidden, tensor(outside))
    mask, words = [], dict[str, Any](causal=causal)
    if real_shift is not None:
        mask = [like(real_shift, q)]
        if hidden is not None:  # the scores of queries without any key are zeros
            sees = 1 - ops.min(hidden._cast(q._dt), axis=-1, keepdims=True)
            heads[0] = heads[0] * sees
            mask = [ops._npi_where_lscalar(hidden._cast(q._dt) * sees, mask[0] * sees, scalar=-math.inf)]
    elif hidden is not None:
        mask = [ops.logical_not(hidden)._cast(np.dtype(np.bool_))]
        words["fill"] = float(np.finfo(np.float16 if q._dt.itemsize == 2 else q._dt).min)
    output = ops._contrib_scaled_dot_product_attention(*heads, *mask, use_mask=bool(mask), scale=float(scalar_value),
                                                       **words)
    return _to_layout(output, q.shape, input_layout)


def _check_options(keep_prob: float, input_layout: str, sparse_mode: int, **unavailable: object) -> None:
    for name, setting in unavailable.items():
        if setting is not None:
            raise ArgumentError(f"flash_attention_score: {name} is not available: expected None")
    if keep_prob != 1.0:
        raise ArgumentError(f"flash_attention_score: keep_prob={keep_prob!r} is not available, only 1.0; "
                            "nn.MultiheadAttention has dropout")
    if input_layout not in _LAYOUTS:
        raise ArgumentError(f"flash_attention_score: input_layout {input_layout!r}. "
                            f"{did_you_mean(str(input_layout), _LAYOUTS)}")
    if sparse_mode not in range(5):
        raise ArgumentError(f"flash_attention_score: sparse_mode must be a number from 0 to 4, got {sparse_mode!r}")


def _size(query: Tensor, head_num: Any, layout: str) -> int:
    """Length of a head."""
    if isinstance(head_num, bool) or not isinstance(head_num, (int, np.integer)) or head_num < 1:
        raise ArgumentError(f"flash_attention_score: head_num must be a positive integer, got {head_num!r}")
    axes = "axes " + " ".join(layout)
    if query.ndim != len(layout):
        raise ShapeError(f"flash_attention_score: query: expected {axes}, got shape {show(query.shape)}")
    heads = query.shape[layout.index("N")] if "N" in layout else head_num
    if heads != head_num or ("H" in layout and query.shape[2] % head_num):
        raise ShapeError(f"flash_attention_score: query: expected {head_num} heads in {axes}, got shape "
                         f"{show(query.shape)}")
    return int(query.shape[3] if "D" in layout else query.shape[2] // head_num)


def _split_heads(name: str, x: Tensor, size: int, layout: str) -> Tensor:
    """An input with its axes permuted to batch, heads, length and size."""
    if x.ndim != len(layout) or (x.shape[-1] % size if "H" in layout else x.shape[-1] != size):
        raise ShapeError(f"flash_attention_score: {name}: expected axes {' '.join(layout)} with heads of size {size}, "
                         f"got shape {show(x.shape)}")
    if "H" in layout:
        x, layout = x.reshape((*x.shape[:2], x.shape[2] // size, size)), layout.replace("H", "ND")
    return x.transpose([layout.index(axis) for axis in "BNSD"])


def _to_layout(output: Tensor, shape: tuple[int, ...], layout: str) -> Tensor:
    """The output, with axes batch, heads, length and size, in the given layout."""
    return output.transpose(["BNSD".index(axis) for axis in layout.replace("H", "ND")]).reshape(shape)


def _mode_mask(mode: int, masked: bool, before: float, behind: float, queries: int, keys: int) -> np.ndarray | None:
    """A mask of the keys that a mode excludes besides the given mask; None without any."""
    if mode == 3:
        before, behind = math.inf, 0
    elif mode != 4 and not (mode == 0 and masked):
        return None
    places = np.arange(queries)[:, None] + (keys - queries if mode > 2 else 0)
    far = np.arange(keys) - places
    return (far > behind) | (far < -before) if min(before, behind) < max(queries, keys) else None
