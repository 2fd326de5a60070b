"""Attention by blocks, with the softmax of each block compiled by numba, where it is there.

Products stay with BLAS. Between them a block is run through twice in forward, for the largest score and for
exponentials with their sum, and once in backward.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from opreg.builtin.layers import scaled_attention
from opreg.builtin.layers.scaled_attention import backward_attention, scaled_dot_product_attention
from opreg.builtin.outputs import wide
from opreg.core.addresses import address_of
from opreg.core.launch import Call, Rank
from opreg.typing import Array

from ..compiler import Function, cut, function_of, steps, unavailable
from ..values import FORMATS

__all__: list[str] = []

# The arrays are the weights, and for each row the largest score, the sum, and what earlier sums are multiplied by.
_SOFTEN = """\
def kernel(table, first, last):
    weights = address(table[0])
    tops = address(table[1])
    totals = address(table[2])
    shrunk = address(table[3])
    least = address(table[4])[0]
    n = table[5]
    for row in range(first, last):
        o = row * n
        here = least
        for i in range(n):
            here = largest(here, weights[o + i])
        before = tops[row]
        here = largest(here, before)
        tops[row] = here
        base = here
        if here == least:
            base = place(0)
        total = place(0)
        for i in range(n):
            grown = exp(weights[o + i] - base)
            weights[o + i] = grown
            total = plus(total, grown)
        factor = exp(before - base)
        shrunk[row] = factor
        totals[row] = totals[row] * factor + total
"""

# The arrays are the weights, their gradients, and for each row the logarithm of its sum, and the sum of the gradient
# times the output.
_TURN = """\
def kernel(table, first, last):
    weights = address(table[0])
    gradients = address(table[1])
    logsums = address(table[2])
    deltas = address(table[3])
    n = table[4]
    for row in range(first, last):
        o = row * n
        logsum = logsums[row]
        delta = deltas[row]
        for i in range(n):
            weight = exp(load(weights, o + i, 0, 2) - logsum)
            gradient = (load(gradients, o + i, 1, 2) - delta) * weight
            store(weights, o + i, weight, 0, 2)
            store(gradients, o + i, gradient, 1, 2)
"""
# Instructions that a number takes, about.
_LENGTH = 8


def _ran(function: Function, arrays: Sequence[Array], rest: Sequence[int], rows: int) -> None:
    """Run a compiled function over all rows, in the calling thread."""
    table = np.array([*map(address_of, arrays), *rest], np.int64)
    cut(function, table, [slice(0, rows)], None)[0]()


def _soften(function: Function, least: Array, weights: Array, top: Array, total: Array) -> Array:
    """As ``scaled_attention.soften``."""
    shrunk = np.empty_like(top)
    _ran(function, (weights, top, total, shrunk, least), (weights.shape[-1],), top.size)
    return shrunk


def _turn(function: Function, weights: Array, d_scores: Array, logsum: Array, delta: Array) -> None:
    """As ``scaled_attention.turn``."""
    logsum, delta = [np.ascontiguousarray(x, weights.dtype) for x in (logsum, delta)]
    _ran(function, (weights, d_scores, logsum, delta), (weights.shape[-1],), logsum.size)


def _declines(call: Call) -> str | None:
    """Why a call is left to NumPy."""
    reason = unavailable(call) or scaled_attention.several(call)
    if reason is not None:
        return reason
    known = wide(call.ins[0][:0]).dtype in FORMATS
    return None if known else f"dtype {call.ins[0].dtype}: float32 and float64 are compiled"


@scaled_dot_product_attention.kernel("numba", bound=True, accepts=_declines, rank=Rank.COMPILED)
def attention_numba(call: Call) -> list[Callable[[], object]]:
    outs = [call.scratch(i, spec.shape, spec.dtype) if out is None else out
            for i, (out, spec) in enumerate(zip(call.outs, call.specs))]
    dtype = wide(call.ins[0][:0]).dtype
    function = function_of(_SOFTEN, dtype, _LENGTH)

    def compute(soften: scaled_attention.Soften) -> Callable[[], None]:
        return functools.partial(scaled_attention.run, np, soften, call.ins, outs, call.is_train, call.rng,
                                 **{name: call.attrs[name] for name in ("causal", "scale", "p", "mode")})

    compiled = functools.partial(_soften, function, np.array([-np.inf], dtype))
    return steps(function, lambda: compute(compiled),
                 lambda: [compute(functools.partial(scaled_attention.soften, np))])


@backward_attention.kernel("numba", bound=True, accepts=_declines, rank=Rank.COMPILED)
def backward_attention_numba(call: Call) -> list[Callable[[], object]]:
    function = function_of(_TURN, wide(call.ins[1][:0]).dtype, _LENGTH)
    words = {name: call.attrs[name] for name in ("causal", "scale", "p", "use_mask")}

    def compute(turn: scaled_attention.Turn) -> None:
        found = scaled_attention.run_back(np, turn, call.ins, **words)
        for out, result in zip(call.outs, found):
            if out is not None:
                out[...] = result

    return steps(function, lambda: functools.partial(compute, functools.partial(_turn, function)),
                 lambda: [functools.partial(compute, functools.partial(scaled_attention.turn, np))])
