"""Scores of attention: the products of queries and keys, masks, and dropout, for blocks of queries and keys."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

from ...backends.blas import matmul
from ...core.spec import Shape
from ...core.threads import chunks
from ...typing import Array, ArrayModule
from ..outputs import wide

__all__ = ["Scores", "scale_of", "fills", "heads_by_key", "product", "dropout_factors", "dropout_key", "in_blocks",
           "several_blocks"]

# The number of queries and of keys in a block on the host. BLAS packs the keys and the values of a block once for all
# of its queries.
_QUERIES, _KEYS = 512, 512
# A head has its own blocks if its scores fill at least a fourth of a block, so that they stay in the cache.
_WORTH = 4
# The number of scores in a block on a device, of all heads together.
_SCORES = 1 << 24


class Scores(NamedTuple):
    """The operands from which scores are computed.

    Attributes
    ----------
    query, key, value : arrays
        Queries (batch, key heads, query heads for each key head, queries, size); keys and values (batch, key heads,
        keys, size).
    mask : array or None
        Booleans, or terms to add, of shape (batch, key heads, query heads for each key head, queries, keys).
    draw : array or None
        Random key of the dropout; see ``dropout_factors``.
    scale, p : float
        Factor of the products, and probability of dropout.
    causal : bool
        Whether query ``i`` attends only to keys up to ``i``.
    fill : array or None
        Scores of masked keys, see ``fills``, of shape (batch, key heads, query heads for each key head, queries, 1).
    """

    xp: ArrayModule
    query: Array
    key: Array
    value: Array
    mask: Array | None
    draw: Array | None
    scale: float
    p: float
    causal: bool
    fill: Array | None

    @classmethod
    def of(cls, xp: ArrayModule, query: Array, key: Array, value: Array, mask: Array | None, draw: Array | None,
           scale: float | None, p: float, causal: bool, fill: float) -> Scores:
        """Scores of an operator's inputs."""
        query = heads_by_key(wide(query), key.shape[1])
        filled = None
        if mask is not None:
            shape = (*query.shape[:4], key.shape[2])
            filled = fills(xp, mask, fill, causal, (shape[0], shape[1] * shape[2], *shape[3:]))
            if filled is not None:
                filled = filled.astype(query.dtype).reshape(*shape[:4], 1)
            mask = xp.broadcast_to(mask, (shape[0], shape[1] * shape[2], *shape[3:])).reshape(shape)
            if mask.dtype.kind != "b":
                mask = wide(mask)
        return cls(xp, query, wide(key), wide(value), mask, draw, scale_of(scale, query.shape[-1]), p, causal,
                   filled)

    def block(self, at: Any, rows: slice, columns: slice) -> tuple[Array, Array]:
        """Scaled queries of a block of heads, and their scores for a block of keys."""
        xp = self.xp
        query = self.query[at][..., rows, :] * self.scale
        many, stop, keys = query.shape[-3], min(rows.stop, self.query.shape[3]), self.key[at][..., columns, :]
        query = query.reshape(*query.shape[:-3], many * query.shape[-2], query.shape[-1])
        scores = product(xp, query, xp.swapaxes(keys, -1, -2))
        by_head = scores.reshape(*scores.shape[:-2], many, scores.shape[-2] // many, scores.shape[-1])
        if self.mask is not None:
            mask = self.mask[at][..., rows, columns]
            if mask.dtype.kind == "b":
                by_head[...] = xp.where(mask, by_head, -math.inf if self.fill is None else self.fill[at][..., rows, :])
            else:
                by_head += mask
        last = columns.start + scores.shape[-1] - 1
        if self.causal and last > rows.start:
            later = xp.arange(rows.start, stop)[:, None] < xp.arange(columns.start, last + 1)
            by_head[...] = xp.where(later, -math.inf, by_head)
        return query, scores

    def multiples(self, at: Any, rows: slice, columns: slice) -> Array | None:
        """Factors of dropout for the weights of a block, in the shape of its scores."""
        if self.draw is None:
            return None
        batch, heads, many, queries, _ = self.query.shape
        numbers = self.xp.arange(batch * heads * many * queries).reshape(batch, heads, many, queries)[at][..., rows]
        factors = dropout_factors(self.xp, self.draw, self.p, numbers.reshape(*numbers.shape[:-2], -1),
                                  self.xp.arange(columns.start, min(columns.stop, self.key.shape[2])))
        return factors.astype(self.query.dtype)

    def blocks(self, on_host: bool) -> tuple[list[Any], list[slice], list[slice]]:
        """Blocks of heads that are independent, blocks of queries, and blocks of keys; one of each for few scores."""
        batch, heads, many, queries, _ = self.query.shape
        keys = self.key.shape[2]
        if not several_blocks(batch * heads * many * queries * keys, on_host):
            return [()], [slice(0, queries)], [slice(0, keys)]
        if on_host:
            rows, columns = max(1, _QUERIES // many), _KEYS
            places: list[Any] = list(itertools.product(range(batch), range(heads)))
        else:
            columns = min(keys, 1 << 11)
            rows, places = max(1, _SCORES // max(1, batch * heads * many * columns)), [()]
        return places, chunks(queries, rows), chunks(keys, columns)

    def attends(self, rows: slice, columns: slice) -> bool:
        """Whether a query of a block attends to any of its keys."""
        return not self.causal or columns.start < rows.stop


def scale_of(scale: float | None, size: int) -> float:
    """The factor of the products."""
    return 1.0 / math.sqrt(max(size, 1)) if scale is None else scale


def fills(xp: ArrayModule, mask: Array, fill: float, causal: bool, shape: Shape) -> Array | None:
    """For each row, the score of keys that a boolean mask excludes.

    None stands for minus infinity. In rows without any key all scores are equal, so zero is used: a large number would
    round the logarithm of the row's sum.
    """
    if mask.dtype.kind != "b" or fill == -math.inf or not shape[3]:
        return None
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    first = xp.where(mask.any(axis=-1), mask.argmax(axis=-1), max(shape[2:]))
    last = xp.arange(shape[2]) if causal else shape[3] - 1
    return xp.broadcast_to(xp.where(first <= last, fill, 0.0), shape[:3])


def heads_by_key(x: Array, heads: int) -> Array:
    """An array (batch, query heads, ...) as (batch, key heads, query heads for each key head, ...)."""
    return x.reshape(x.shape[0], heads, x.shape[1] // heads, *x.shape[2:])


def product(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The matrix products of two stacks."""
    return matmul(xp, a, b)


# ---------------------------------------------------------------------------------------------- dropout


def _hash_bits(x: Array) -> Array:
    """Hashes of 32-bit values, in which each bit depends on all bits of a value: the last step of A. Appleby's
    MurmurHash3."""
    x = x ^ (x >> 16)
    x = x * 0x85EBCA6B
    x ^= x >> 13
    x *= 0xC2B2AE35
    x ^= x >> 16
    return x


def dropout_factors(xp: ArrayModule, draw: Array, p: float, rows: Array, columns: Array) -> Array:
    """Factors of dropout for weights: zero with probability ``p``, else ``1 / (1 - p)``.

    ``draw`` has two random numbers, then 1 if weights are dropped and 0 if not. ``rows`` and ``columns`` are the
    positions of the weights.
    """
    key = draw.astype(xp.uint32)
    row = _hash_bits(rows.astype(xp.uint32) * 0x9E3779B1 + key[0])
    column = _hash_bits(columns.astype(xp.uint32) * 0x85EBCA77 + key[1])
    is_kept = (_hash_bits(row[..., None] + column) >> 8) < round((1.0 - p) * (1 << 24))
    is_kept = xp.logical_or(is_kept, key[2] == 0)
    return is_kept * xp.where(key[2] == 0, 1.0, 1.0 / (1.0 - p) if p < 1.0 else 0.0)


def dropout_key(xp: ArrayModule, drops: bool, rng: Any) -> Array:
    """Random integers that are the key of the dropout; zeros without dropout."""
    if not drops:
        return xp.zeros(3, dtype=xp.int32)
    draw = xp.ones(3, dtype=xp.int32)
    draw[:2] = rng.integers(0, (1 << 31) - 1, size=2)
    return draw


def in_blocks(scores: Shape) -> bool:
    """Whether the scores of each head, (..., queries, keys), are so many that blocks of them are faster on the host."""
    return len(scores) > 1 and _WORTH * scores[-2] * scores[-1] > _QUERIES * _KEYS


def several_blocks(count: int, on_host: bool) -> bool:
    """Whether this number of scores, of all heads, is worth more than one block."""
    return count > (_QUERIES * _KEYS // _WORTH if on_host else _SCORES)
