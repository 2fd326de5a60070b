"""Counter-based random values: Philox4x32-10 gives four values for each key and position in a sequence.

A draw is an array of a key and the first place, uint64 of shape (2,). Element ``i`` has the number ``i % 4`` of the
place ``i // 4`` after the first. So a draw can be repeated, and no values need to be stored.

J. K. Salmon and others, Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
"""

from __future__ import annotations

from ..typing import Array, ArrayModule

__all__ = ["is_below", "uniform"]

_WORD = 0xFFFFFFFF
_FACTORS = 0xD2511F53, 0xCD9E8D57
_STEPS = 0x9E3779B9, 0xBB67AE85


def is_below(xp: ArrayModule, x: Array, draw: Array, share: float, out: Array | None = None) -> Array:
    """Whether the number of each element of ``x`` is below ``share``."""
    truths: Array = uniform(xp, draw, x.size).reshape(x.shape) < share
    if out is None:
        return truths
    out[...] = truths
    return out


def uniform(xp: ArrayModule, draw: Array, count: int) -> Array:
    """The first ``count`` values of a draw, at least 0 and below 1, multiples of 2**-24 in float32.

    Examples
    --------
    >>> import numpy as np
    >>> uniform(np, np.array([0, 0], np.uint64), 3)
    array([0.39904642, 0.88052016, 0.73571277], dtype=float32)
    """
    places = draw[1] + xp.arange(-(-count // 4), dtype=xp.uint64)
    zeros = xp.zeros_like(places)
    words = [places & _WORD, places >> 32, zeros, zeros]
    keys = [draw[0] & _WORD, draw[0] >> 32]
    for _ in range(10):
        a, b = words[0] * _FACTORS[0], words[2] * _FACTORS[1]
        words = [(b >> 32) ^ words[1] ^ keys[0], b & _WORD, (a >> 32) ^ words[3] ^ keys[1], a & _WORD]
        keys = [(key + step) & _WORD for key, step in zip(keys, _STEPS)]
    return (xp.stack(words, axis=1).reshape(-1)[:count] >> 8).astype(xp.float32) * 2.0 ** -24
