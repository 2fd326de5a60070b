"""Attention compiled with numba: products, masks, softmax and dropout of a block in one function.

A block of keys and values is packed (see ``gemm``) for some hundred queries; their scores stay in the second-level
cache while weights are computed from them. One call does all of it without Python, and threads need not synchronise: in
forward each thread has some queries, in backward some keys, and only it adds to the gradients of these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.builtin.layers import attention_scores, scaled_attention
from opreg.builtin.layers.scaled_attention import backward_attention, scaled_dot_product_attention
from opreg.builtin.outputs import wide
from opreg.core import host_memory, threads
from opreg.core.addresses import address_of
from opreg.core.launch import Call, Rank
from opreg.core.rules import Attrs
from opreg.typing import Array

from ... import blas
from .. import gemm
from ..compiler import Function, calls_of_parts, function_of, steps, unavailable
from ..values import FORMATS

# Queries and keys of a block, whose scores fill half of a second-level cache of 256 KiB; and the number of queries for
# which keys and values are packed once.
_ROWS, _COLUMNS, _CHUNK = 128, 256, 512
# Parts for each thread: several, so that one slow thread does not delay the rest much.
_PARTS = 4
# About how many instructions an element of a block takes.
_LENGTH = 64

# ------------------------------------------------------------------------------------------------------ texts

_ARRAYS = {
    "forward": ("query", "key", "value", "mask", "fills", "numbers", "work", "output", "logsums"),
    "backward": ("query", "key", "value", "mask", "fills", "numbers", "work", "g", "logsums", "deltas", "d_query",
                 "d_key", "d_value"),
}
_SIZES = ("many", "queries", "keys", "size", "features", "chunk", "rows", "columns", "work_size", "share", "causal",
          "by_batch", "by_head", "by_row", "by_column", "heads", "limit", "first_key", "second_key", "item", "cuts",
          "units", "filled")
_BEGIN = """\
wide = -(-columns // width) * width
across = -(-features // width) * width
deep = -(-size // width) * width
least = numbers[0]
scale = numbers[1]
multiple = numbers[2]
work_start = first // share * work_size
scaled = work_start
scores = scaled + rows * deep
packed_keys = scores + rows * wide
packed_values = packed_keys + wide * deep
rest = packed_values + wide * max(across, features)
"""
# Computes the scores of ``some`` queries of a head from ``row0`` on, with ``n`` keys from ``start`` on. The mask is
# added; or with ``filled``, a score is replaced by the element of its row in ``fills`` where the mask is not zero.
_SCORES = """\
for row in range(some):
    for i in range(size):
        work[scaled + row * size + i] = query[(head * queries + row0 + row) * size + i] * scale
for row in range(some):
    o = scores + row * wide
    m = head // heads * by_batch + head % heads * by_head + (row0 + row) * by_row + start * by_column
    if filled:
        for i in range(n):
            work[o + i] = 0
    elif by_column == 1:
        for i in range(n):
            work[o + i] = mask[m + i]
    else:
        for i in range(n):
            work[o + i] = mask[m]
product(work, scaled, size, size, work, packed_keys, work, scores, wide, -(-n // width), some)
if filled:
    for row in range(some):
        o = scores + row * wide
        m = head // heads * by_batch + head % heads * by_head + (row0 + row) * by_row + start * by_column
        for i in range(n):
            if mask[m + i * by_column] != place(0):
                work[o + i] = fills[head * queries + row0 + row]
if causal:
    for row in range(some):
        for i in range(max(0, row0 + row + 1 - start), n):
            work[scores + row * wide + i] = least
"""
# The mask of dropout for a block, from the same random numbers as ``attention_scores.dropout_factors``.
_DROP = """\
for row in range(some):
    by_place = (((head * queries + row0 + row) * 0x9E3779B1) + first_key) & 0xFFFFFFFF
    {mix_row}
    for i in range(n):
        mixed = (((start + i) * 0x85EBCA77) + second_key) & 0xFFFFFFFF
        {mix}
        mixed = (mixed + by_place) & 0xFFFFFFFF
        {mix}
        multiplier = place(1 if (mixed >> 8) < limit else 0) * multiple
        {use}
"""
_MIX = """\
{x} = {x} ^ ({x} >> 16)
{x} = ({x} * 0x85EBCA6B) & 0xFFFFFFFF
{x} = {x} ^ ({x} >> 13)
{x} = ({x} * 0xC2B2AE35) & 0xFFFFFFFF
{x} = {x} ^ ({x} >> 16)"""
_FORWARD = """
sums = rest
tops = sums + chunk * across
totals = tops + chunk
chunks = -(-queries // chunk)
for unit in range(first, last):
    head = unit // chunks
    begin = unit % chunks * chunk
    end = min(begin + chunk, queries)
    of_keys = head // many * keys
    for i in range((end - begin) * across):
        work[sums + i] = 0
    for i in range(end - begin):
        work[tops + i] = least
        work[totals + i] = 0
    for start in range(0, end if causal and end < keys else keys, columns):
        n = min(columns, keys - start)
        pack_transpose(key, (of_keys + start) * size, n, size, work, packed_keys)
        pack(value, (of_keys + start) * features, n, features, work, packed_values)
        for row0 in range(begin, end, rows):
            some = min(rows, end - row0)
            if causal and start >= row0 + some:
                continue
            {scores}
            for row in range(some):
                o = scores + row * wide
                now = row0 - begin + row
                here = least
                for i in range(n):
                    here = largest(here, work[o + i])
                before = work[tops + now]
                here = largest(here, before)
                work[tops + now] = here
                base = here
                if here == least:
                    base = place(0)
                total = place(0)
                for i in range(n):
                    grown = exp(work[o + i] - base)
                    work[o + i] = grown
                    total = plus(total, grown)
                factor = exp(before - base)
                work[totals + now] = work[totals + now] * factor + total
                if factor != place(1):
                    for i in range(across):
                        work[sums + now * across + i] *= factor
            if limit >= 0:
                {drop}
            product(work, scores, wide, n, work, packed_values, work, sums + (row0 - begin) * across, across,
                    across // width, some)
    for row in range(end - begin):
        total = work[totals + row]
        for i in range(features):
            output[(head * queries + begin + row) * features + i] = work[sums + row * across + i] / total
        logsums[head * queries + begin + row] = log(total) + work[tops + row]
"""
_BACKWARD = """
d_scores = rest
packed_back = d_scores + rows * wide
packing = packed_back + columns * deep
of_key = packing + {depth} * max(across, deep)
of_value = of_key + columns * deep
blocks = -(-keys // columns)
for unit in range(first, last):
    key_head = unit // cuts
    part = unit % cuts
    for block in range(blocks * part // cuts, blocks * (part + 1) // cuts):
        start = block * columns
        n = min(columns, keys - start)
        at = key_head * keys + start
        pack_transpose(key, at * size, n, size, work, packed_keys)
        pack_transpose(value, at * features, n, features, work, packed_values)
        pack(key, at * size, n, size, work, packed_back)
        for i in range(n * deep):
            work[of_key + i] = 0
        for i in range(n * across):
            work[of_value + i] = 0
        for head in range(key_head * many, key_head * many + many):
            for row0 in range(start // rows * rows if causal else 0, queries, rows):
                some = min(rows, queries - row0)
                {scores}
                for i in range(some * wide):
                    work[d_scores + i] = 0
                product(g, (head * queries + row0) * features, features, features, work, packed_values, work,
                        d_scores, wide, -(-n // width), some)
                if limit >= 0:
                    {drop_gradients}
                for row in range(some):
                    o = scores + row * wide
                    to = d_scores + row * wide
                    logsum = logsums[head * queries + row0 + row]
                    delta = deltas[head * queries + row0 + row]
                    for i in range(n):
                        weight = exp(load(work, o + i, 0, 2) - logsum)
                        gradient = (load(work, to + i, 1, 2) - delta) * weight
                        store(work, o + i, weight, 0, 2)
                        store(work, to + i, gradient, 1, 2)
                if filled:
                    for row in range(some):
                        to = d_scores + row * wide
                        m = (head // heads * by_batch + head % heads * by_head + (row0 + row) * by_row
                             + start * by_column)
                        for i in range(n):
                            if mask[m + i * by_column] != place(0):
                                work[to + i] = 0
                product(work, d_scores, wide, n, work, packed_back, d_query,
                        ((part * units + head) * queries + row0) * deep, deep, deep // width, some)
                transposed(work, d_scores, wide, some, address(table[6] + scaled * item), size, work, packing,
                           work, of_key, deep, n)
                if limit >= 0:
                    {drop}
                transposed(work, scores, wide, some, address(table[7] + (head * queries + row0) * features * item),
                           features, work, packing, work, of_value, across, n)
        for row in range(n):
            for i in range(size):
                d_key[(at + row) * size + i] = work[of_key + row * deep + i]
            for i in range(features):
                d_value[(at + row) * features + i] = work[of_value + row * across + i]
"""


def _indent_text(text: str, by: int) -> str:
    """The lines of a text, with all but the first indented."""
    return ("\n" + " " * by).join(text.strip("\n").split("\n"))


def _drop(use: str, by: int) -> str:
    mixed = _DROP.format(mix_row=_indent_text(_MIX.format(x="by_place"), 4),
                         mix=_indent_text(_MIX.format(x="mixed"), 8),
                         use=use)
    return _indent_text(mixed, by)


def _text(part: str) -> str:
    """The text of a function ``kernel(table, first, last)`` that computes the units of work from ``first`` to
    ``last``."""
    weights = "work[scores + row * wide + i] *= multiplier"
    if part == "forward":
        body = _FORWARD.format(scores=_indent_text(_SCORES, 12), drop=_drop(weights, 16))
    else:
        body = _BACKWARD.format(scores=_indent_text(_SCORES, 16), depth=gemm.DEPTH, drop=_drop(weights, 20),
                                drop_gradients=_drop("work[d_scores + row * wide + i] *= multiplier", 20))
    lines = [f"{name} = address(table[{i}])" for i, name in enumerate(_ARRAYS[part])]
    lines += [f"{name} = table[{i}]" for i, name in enumerate(_SIZES, len(_ARRAYS[part]))]
    lines += [*_BEGIN.strip("\n").split("\n"), *body.strip("\n").split("\n")]
    return "def kernel(table, first, last):\n" + "".join(f"    {line}\n" for line in lines)


# --------------------------------------------------------------------------------------------------- running


class _Operands:
    """The arrays and sizes of one run; arrays are contiguous and in the dtype of the computation."""

    def __init__(self, ins: Sequence[Array], mask: Array | None, draw: Array | None, attrs: Attrs):
        query, self.key, self.value = [np.ascontiguousarray(wide(x)) for x in ins]
        self.query, self.dtype = query, query.dtype
        (self.batch, self.heads, self.queries, self.size), (_, self.key_heads, self.keys, self.features) = (
            query.shape, self.value.shape)
        shape = (self.batch, self.heads, self.queries, self.keys)
        fills = None if mask is None else attention_scores.fills(np, mask, attrs["fill"], attrs["causal"], shape)
        self.filled = int(fills is not None)
        self.fills = np.ascontiguousarray(np.zeros(1) if fills is None else fills, self.dtype)
        if mask is None:
            mask = np.zeros(1, self.dtype)
        elif mask.dtype.kind == "b":
            mask = np.where(mask, self.dtype.type(0), self.dtype.type(1 if self.filled else -math.inf))
        mask = np.ascontiguousarray(wide(mask))
        self.mask = np.broadcast_to(mask, shape)
        p = attrs["p"]
        drops = draw is not None and bool(draw[2])
        self.numbers = np.array([-math.inf, attention_scores.scale_of(attrs["scale"], self.size),
                                 1.0 / (1.0 - p) if drops and p < 1.0 else 0.0], self.dtype)
        self.drop = [round((1.0 - p) * (1 << 24)), *map(int, draw[:2])] if drops and draw is not None else [-1, 0, 0]
        self.causal = int(attrs["causal"])
        self.work = self.query.size * self.keys * 2
        self.rows, self.columns = min(_ROWS, self.queries), min(_COLUMNS, self.keys)

    def calls(self, function: Function, arrays: Sequence[Array], units: int, chunk: int, cuts: int, work_size: int
              ) -> list[Callable[[], None]]:
        """Calls of a compiled function for some units each; each call has ``work_size`` elements of memory for
        temporaries."""
        shared = self.work >= blas.LEAST
        share = -(-units // min(units, _PARTS * threads.count() if shared else 1))
        work_size = gemm.padded(work_size, self.dtype)  # each part begins at a cache line
        work = host_memory.empty((-(-units // share) * work_size,), self.dtype)
        operands = [self.query, self.key, self.value, self.mask, self.fills, self.numbers, work, *arrays]
        steps = [step // self.dtype.itemsize for step in self.mask.strides]
        table = np.array([*map(address_of, operands), self.heads // self.key_heads, self.queries, self.keys, self.size,
                          self.features, chunk, self.rows, self.columns, work_size, share, self.causal, *steps,
                          self.heads, *self.drop, self.dtype.itemsize, cuts, self.batch * self.heads,
                          self.filled], np.int64)
        return list(calls_of_parts(function, table, threads.chunks(units, share), [*operands, table]))

    def up(self) -> tuple[int, int, int]:
        """The columns of a block, features and size, rounded up to whole panels."""
        columns, features, size = [gemm.padded(n, self.dtype) for n in (self.columns, self.features, self.size)]
        return columns, features, size

    def work_size(self) -> int:
        """Number of elements of memory that a call needs, in forward and backward."""
        columns, features, size = self.up()
        return self.rows * (columns + size) + columns * (size + max(features, self.features))


def _forward(function: Function, call: Call, outs: Sequence[Array]) -> None:
    """Compute attention into all outputs of a call."""
    query, key, value, *mask = call.ins
    draw = attention_scores.dropout_key(np, call.attrs["p"] > 0 and (call.is_train or call.attrs["mode"] == "always"),
                                        call.rng)
    outs[2][...] = draw
    operands = _Operands((query, key, value), mask[0] if mask else None, draw, call.attrs)
    results = [out if out.dtype == operands.dtype and out.flags.c_contiguous
               else host_memory.empty(out.shape, operands.dtype) for out in outs[:2]]
    chunk = min(_CHUNK, operands.queries)
    units = operands.batch * operands.heads * -(-operands.queries // chunk)
    work_size = operands.work_size() + chunk * (operands.up()[1] + 2)
    threads.run(operands.calls(function, results, units, chunk, 1, work_size), apart=True)
    for out, result in zip(outs, results):
        if out is not result:
            out[...] = result


def _backward(function: Function, call: Call) -> None:
    """Compute the gradients of a call."""
    g, query, key, value, logsum, delta, *optional = call.ins
    operands = _Operands((query, key, value), optional[0] if call.attrs["use_mask"] else None,
                         optional[-1] if call.attrs["p"] else None, call.attrs)
    g, logsum, delta = [np.ascontiguousarray(x, operands.dtype) for x in (g, logsum, delta)]
    places, (columns, features, size) = operands.batch * operands.key_heads, operands.up()
    # Every block of keys adds to the gradient of queries. If there are few heads, the keys are split into parts, each
    # with a sum of its own, which are added up at the end.
    cuts = min(-(-operands.keys // operands.columns), -(-scaled_attention.PARTS // places))
    of_query = host_memory.zeros((cuts, *operands.query.shape[:3], size), operands.dtype)
    of_key, of_value = [host_memory.empty(x.shape, operands.dtype) for x in (key, value)]
    work_size = (operands.work_size() + operands.rows * columns + gemm.DEPTH * max(features, size)
                 + columns * (2 * size + features))
    arrays = [g, logsum, delta, of_query, of_key, of_value]
    threads.run(operands.calls(function, arrays, places * cuts, operands.rows, cuts, work_size), apart=True)
    for more in of_query[1:]:
        of_query[0] += more
    query_grad = of_query[0][..., :operands.size]
    query_grad *= operands.numbers[1]
    for out, result in zip(call.outs, (query_grad, of_key, of_value)):
        if out is not None:
            out[...] = result


# --------------------------------------------------------------------------------------------------- kernels


def _declines(call: Call) -> str | None:
    """The reason why a call is left to NumPy, or None."""
    reason = unavailable(call) or scaled_attention.decline_few_scores(call)
    if reason is not None:
        return reason
    compiled = wide(call.ins[0][:0]).dtype in FORMATS
    return None if compiled else f"dtype {call.ins[0].dtype}: functions are compiled for float32 and float64"


@scaled_dot_product_attention.kernel("numba", bound=True, accepts=_declines, rank=Rank.COMPILED)
def attention_numba(call: Call) -> list[Callable[[], object]]:
    outs, words = call.places(), {name: call.attrs[name] for name in (
        "causal", "scale", "p", "mode", "fill")}
    function = function_of(_text("forward"), wide(call.ins[0][:0]).dtype, _LENGTH)
    by_numpy = functools.partial(scaled_attention.run, np, call.ins, outs, call.is_train, call.rng, **words)
    return steps(function, lambda: functools.partial(_forward, function, call, outs), lambda: [by_numpy])


@backward_attention.kernel("numba", bound=True, accepts=_declines, rank=Rank.COMPILED)
def backward_attention_numba(call: Call) -> list[Callable[[], object]]:
    function = function_of(_text("backward"), wide(call.ins[1][:0]).dtype, _LENGTH)
    words = {name: call.attrs[name] for name in ("causal", "scale", "p", "use_mask", "fill")}

    def by_numpy() -> None:
        for out, result in zip(call.outs, scaled_attention.backward_attention_xp(np, *call.ins, **words)):
            if out is not None:
                out[...] = result

    return steps(function, lambda: functools.partial(_backward, function, call), lambda: [by_numpy])
