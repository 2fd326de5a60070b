"""Scaled dot product attention as CUDA kernels on tensor cores: no scores are in memory, in forward or backward.

The kernels are in ``attention*.cuh``. They hold a block of queries, or of keys in the gradients of keys and values, in
registers, and go through the others tile by tile. The gradient computes the weights of a tile again from the logarithm
of each row's sum. Each output is written by one block, so that every run gives the same bits.

Factors of float32 are split into three parts of bfloat16, which together have all of its digits, or where TF32 is
allowed into two, which have 16. An infinite factor gives NaN, since it meets parts of the other factor that are zero.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from opreg.builtin.layers import attention_scores
from opreg.builtin.layers.scaled_attention import backward_attention, scaled_dot_product_attention
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.rounding import tf32
from opreg.core.steps import own_bytes
from opreg.typing import Array

from ..compiler import Launch, attach, kernel_of
from ..instructions import STORED
from .dropout import DrawingLaunch, counter_of

__all__ = ["KEY", "PASSES", "Kind", "source"]

_BLOCK, _THREADS = 64, 128
#: The kernels: of the result, of the gradient of queries, and of those of keys and values.
PASSES = "attention", "attention_query", "attention_key"
#: The text of the kernel ``draw_key``, for one thread: the key of the dropout, as ``attention_scores.dropout_key``
#: gives it.
KEY = """extern "C" __global__ void draw_key(unsigned long long* counter, int* draw, int drops) {
    const Words words = drops ? drawn(counter[0], atomicAdd(counter + 1, 1ull)) : Words{};
    draw[0] = words.at[0] >> 1;
    draw[1] = words.at[1] >> 1;
    draw[2] = drops;
}
"""
_SHARED, *_KERNELS = [Path(__file__).parents[1].joinpath(f"attention{part}.cuh").read_text(encoding="utf-8")
                      for part in ("", "_result", "_query", "_key")]


class Kind(NamedTuple):
    """The properties that the text of a kernel depends on.

    Attributes
    ----------
    dtype : str
    size, features : int
        Elements of a key and of a value.
    parts : int
        The number of 16-bit parts of a factor.
    mask : int
        0 without a mask, 1 for a boolean mask, 2 for a mask that is added to scores.
    filled : bool
        Whether keys that a mask hides have another score than minus infinity.
    causal, drops : bool
    """

    dtype: str
    size: int
    features: int
    parts: int
    mask: int
    filled: bool
    causal: bool
    drops: bool


@cached(64)
def source(kind: Kind, name: str) -> str:
    """The text of one of the kernels ``attention``, ``attention_query`` and ``attention_key``."""
    size, features = [-(-n // 16) * 16 for n in (kind.size, kind.features)]
    wide = max(size, features) > 64
    tile = 32 if kind.parts > 1 or (wide and name == PASSES[2]) else 64
    stored = STORED[kind.dtype]
    factor = "BFloat" if kind.parts > 1 else stored
    constants = {"SIZE": size, "FEATURES": features, "PARTS": kind.parts, "TILE": tile,
                 "TALL": 1 if wide or kind.parts > 1 else 2, "MASK": kind.mask}
    truths = {"FILLED": kind.filled, "CAUSAL": kind.causal, "DROPS": kind.drops, "IS_HALF": factor == "Half"}
    return "\n".join([f"typedef {stored} Stored;", f"typedef {factor} Factor;",
                      f"typedef {'unsigned char' if kind.mask == 1 else stored} Mask;",
                      *[f"constexpr int {constant} = {number};" for constant, number in constants.items()],
                      *[f"constexpr bool {constant} = {str(truth).lower()};" for constant, truth in truths.items()],
                      _SHARED, _KERNELS[PASSES.index(name)]])


class _Uses(NamedTuple):
    """The arrays of a call: those that both passes read."""

    query: Array
    key: Array
    value: Array
    mask: Array | None
    drops: bool


def _uses_of(call: Call, forward: bool) -> _Uses:
    query, key, value = call.ins[not forward:][:3]
    drops = call.attrs["p"] > 0 and (not forward or call.is_train or call.attrs["mode"] == "always")
    return _Uses(query, key, value, call.ins[3 if forward else 6] if call.attrs["use_mask"] else None, drops)


def _declines(forward: bool, call: Call) -> str | None:
    uses = _uses_of(call, forward)
    query, key, value, mask, _ = uses
    if query.dtype.name not in STORED or query.dtype.itemsize > 4:
        return f"dtype {query.dtype}: kernels are compiled for dtypes of 16 and 32 bits"
    most = 64 if query.dtype.itemsize == 4 else 128
    if any(n % 8 or n > most for n in (query.shape[3], value.shape[3])):
        return f"sizes {query.shape[3]} and {value.shape[3]}: expected multiples of 8, up to {most}"
    if not query.size or not key.size:
        return "nothing to compute"
    if int(call.xp.cuda.Device().compute_capability) < 80:
        return "the device is older than compute capability 8.0"
    by_rows = [query, key, value, *([] if forward else call.ins[:1])]
    if not all(map(_lies_in_rows, by_rows)):
        return "rows of an array are not aligned to 16 bytes"
    whole = [*call.outs, *([] if forward else call.ins[4:6])]
    if not all(array is None or array.flags.c_contiguous for array in whole):
        return "an array is not contiguous"
    if mask is not None and mask.dtype != query.dtype and mask.dtype.kind != "b":
        return f"a mask of {mask.dtype}"
    return None


def _lies_in_rows(array: Array) -> bool:
    """Whether elements of the last axis are contiguous, and its rows aligned to 16 bytes."""
    *steps, last = array.strides
    return last == array.itemsize and not any(
        place % 16 for place in (address_of(array), *[step for step, n in zip(steps, array.shape) if n > 1]))


def _kind(call: Call, uses: _Uses) -> Kind:
    query, _, value, mask, drops = uses
    parts = 1 if query.dtype.itemsize == 2 else 2 if tf32() else 3
    truths = mask is not None and mask.dtype.kind == "b"
    return Kind(query.dtype.name, query.shape[3], value.shape[3], parts, 0 if mask is None else 1 if truths else 2,
                truths and call.attrs["fill"] != -np.inf, call.attrs["causal"], drops)


def _array_parameters(array: Array) -> list[object]:
    """The parameters of an array: it, and the distances between batches, heads and rows."""
    return [array, *[np.int64(step // array.itemsize) for step in array.strides[:3]]]


def _score_parameters(call: Call, uses: _Uses, kind: Kind, draw: Array, fill: Array) -> list[object]:
    """The parameters of the rules that hold for scores."""
    query, key, value, mask, _ = uses
    p, heads = call.attrs["p"], query.shape[1]
    if mask is None:
        mask, steps = query, (0, 0, 0, 0)
    else:
        steps = call.xp.broadcast_to(mask, (*query.shape[:3], key.shape[2])).strides
    sizes = (heads, heads // key.shape[1], query.shape[2], key.shape[2], query.shape[3], value.shape[3])
    scale = attention_scores.scale_of(call.attrs["scale"], query.shape[3])
    return [mask, *[np.int64(step // mask.itemsize) for step in steps], fill, draw,
            np.uint32(round((1.0 - p) * (1 << 24))), np.float32(1.0 / (1.0 - p) if p < 1.0 else 0.0), np.float32(scale),
            *map(np.int32, sizes)]


def _score_steps(call: Call, uses: _Uses, kind: Kind) -> tuple[list[Callable], Array]:
    """The steps that compute the scores of hidden keys by row, and the array that they write, if there are any."""
    query, key, mask = uses.query, uses.key, uses.mask
    if not kind.filled or mask is None:
        return [], query  # not read
    shape = (*query.shape[:3], key.shape[2])
    fill, truths = call.scratch(0, shape[:3], np.dtype(np.float32)), mask

    def fill_rows() -> None:
        fill[...] = attention_scores.fills(call.xp, truths, call.attrs["fill"], call.attrs["causal"], shape)

    return [fill_rows], fill


def _launch(call: Call, kind: Kind, name: str, blocks: int, arguments: Sequence[object], written: Sequence[Array]
            ) -> Launch:
    arrays = [array for array in arguments if isinstance(array, call.xp.ndarray)]
    read = {id(array): own_bytes(array) for array in arrays}
    for array in written:
        del read[id(array)]
    return Launch(kernel_of(call.xp, source(kind, name), name), blocks, _THREADS, arguments, sum(read.values()),
                  sum(map(own_bytes, written)))


def attention_cuda(call: Call) -> list[Callable]:
    uses = _uses_of(call, True)
    kind = _kind(call, uses)
    out, logsum, draw = call.outs
    query, key, value = uses[:3]
    out = call.scratch(1, (*query.shape[:3], value.shape[3]), query.dtype) if out is None else out
    logsum = call.scratch(2, query.shape[:3], np.dtype(np.float32)) if logsum is None else logsum
    steps, fill = _score_steps(call, uses, kind)
    if draw is not None or uses.drops:
        draw = call.scratch(3, (3,), np.dtype(np.int32)) if draw is None else draw
        steps.append(_key(call, draw, uses.drops))
    arguments = [*_array_parameters(query), *_array_parameters(key), *_array_parameters(value),
                 *_score_parameters(call, uses, kind, fill if draw is None else draw, fill), out, logsum]
    rows = _BLOCK * (2 if "TALL = 2" in source(kind, PASSES[0]) else 1)
    blocks = query.shape[0] * query.shape[1] * -(-query.shape[2] // rows)
    return [*steps, _launch(call, kind, "attention", blocks, arguments, [out, logsum])]


def _key(call: Call, draw: Array, drops: bool) -> Launch:
    """The step that draws the key of the dropout."""
    counter = counter_of(call)
    return DrawingLaunch(kernel_of(call.xp, KEY, "draw_key"), 1, 1, [counter, draw, np.int32(drops)],
                         counter.nbytes * drops, draw.nbytes + counter.itemsize * drops)


def backward_attention_cuda(call: Call) -> list[Callable]:
    uses = _uses_of(call, False)
    kind = _kind(call, uses)
    (query, key, value), (g, logsum, delta) = uses[:3], (call.ins[0], *call.ins[4:6])
    steps, fill = _score_steps(call, uses, kind)
    draw = call.ins[-1] if call.attrs["p"] else fill
    arguments = [*_array_parameters(g), *_array_parameters(query), *_array_parameters(key), *_array_parameters(value),
                 *_score_parameters(call, uses, kind, draw, fill), logsum, delta]
    d_query, d_key, d_value = call.outs
    if d_query is not None:
        blocks = query.shape[0] * query.shape[1] * -(-query.shape[2] // _BLOCK)
        steps.append(_launch(call, kind, "attention_query", blocks, [*arguments, d_query], [d_query]))
    if d_key is not None or d_value is not None:
        d_key = call.scratch(1, key.shape, key.dtype) if d_key is None else d_key
        d_value = call.scratch(2, value.shape, value.dtype) if d_value is None else d_value
        blocks = key.shape[0] * key.shape[1] * -(-key.shape[2] // _BLOCK)
        steps.append(_launch(call, kind, "attention_key", blocks, [*arguments, d_key, d_value], [d_key, d_value]))
    return steps


attach(scaled_dot_product_attention, functools.partial(_declines, True), attention_cuda)
attach(backward_attention, functools.partial(_declines, False), backward_attention_cuda)
