"""Rows looked up by index, and the sums that carry gradients back: take, Embedding, gather_nd, pick, one_hot.

The gradient of a row is summed by one block, in the order of the indices of that row, without atomics; so the same
inputs give the same bits. Each block searches all indices, as many at a time as it has threads, so there is a limit on
their number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.builtin.lookup import gather, indexing
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.spec import Shape, check_axis
from opreg.core.steps import own_bytes
from opreg.typing import Array

from ..compiler import Launch, attach, grid_of, kernel_of
from ..instructions import STORED, computed_in, declines, indented, literal

__all__ = ["picked_source", "put_source", "read_source", "sum_source"]

_BLOCK, _SUMMING = 256, 128
#: The dtypes of indices, and their types in C++.
INDICES = {**STORED, "int8": "signed char", "uint8": "unsigned char", "int32": "int", "int64": "long long"}
#: The greatest number of indices for a gradient.
MOST = 1 << 16


def _named(dtype: np.dtype, mode: str) -> list[str]:
    """The text of a function that converts a stored value to an index along an axis of a given length."""
    stored = INDICES[dtype.name]
    number = "wide(index)" if dtype.name in STORED else "index"
    inside = {"clip": "place < 0 ? 0 : place >= length ? length - 1 : place", "none": "place",
              "wrap": "(place % length + length) % length"}[mode]
    return [f"__device__ __forceinline__ long long named({stored} index, long long length) {{",
            f"    const long long place = (long long){number};", f"    return {inside};", "}"]


def _flat(dtype: np.dtype, mode: str, axes: int) -> list[str]:
    """``_named`` and a function for one value per axis, ``count`` elements apart: the index over all of these axes."""
    parameters = ["long long at", "long long count", *[f"long long n{axis}" for axis in range(axes)]]
    more = [f"    place = place * n{axis} + named(indices[{axis} * count + at], n{axis});" for axis in range(1, axes)]
    return [*_named(dtype, mode), "__device__ __forceinline__ long long place_of("
            f"const {INDICES[dtype.name]}* indices, {', '.join(parameters)}) {{",
            "    long long place = named(indices[at], n0);", *more, "    return place;", "}"]


def _sizes(axes: int) -> str:
    return ", ".join(f"n{axis}" for axis in range(axes))


@cached(256)
def read_source(dtype: np.dtype, index: np.dtype, mode: str, axes: int, lanes: int) -> str:
    """The text of the kernel ``look_up``, which copies the rows at the indices, pack by pack, for each of several
    tables of ``length`` rows."""
    stored = STORED[dtype.name]
    return "\n".join([*_flat(index, mode, axes), "",
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) look_up(const {stored}* data, '
        f"const {INDICES[index.name]}* indices, {stored}* out, long long total, long long packs, long long count, "
        f"long long length, {', '.join(f'long long n{axis}' for axis in range(axes))}) {{",
        f"    const long long step = gridDim.x * {_BLOCK}ll;",
        f"    for (long long item = blockIdx.x * {_BLOCK}ll + threadIdx.x; item < total; item += step) {{",
        "        const long long row = item / packs, pack = item % packs;",
        f"        const long long from = row / count * length + place_of(indices, row % count, count, {_sizes(axes)});",
        f"        store(out + item * {lanes}, load<{lanes}>(data + (from * packs + pack) * {lanes}));",
        "    }", "}", ""])


@cached(256)
def sum_source(dtype: np.dtype, index: np.dtype, mode: str, axes: int, lanes: int) -> str:
    """The text of the kernel ``add_up``, which adds rows at the indices. A block has a strip of a row; for the first
    occurrence of an index it sums the rows of all its occurrences. Rows without an index must be zero before."""
    stored, kind = STORED[dtype.name], computed_in(dtype)
    sizes, find = _sizes(axes), "place_of(indices, {0}, count, {1})"
    same = f"{find.format('other', sizes)} == place"
    return "\n".join([*_flat(index, mode, axes), "",
        f'extern "C" __global__ void __launch_bounds__({_SUMMING}) add_up(const {stored}* g, '
        f"const {INDICES[index.name]}* indices, {stored}* out, long long items, long long strips, long long packs, "
        f"long long count, long long length, {', '.join(f'long long n{axis}' for axis in range(axes))}) {{",
        f"    __shared__ float shared[{2 * _SUMMING // 32}];", "    int turn = 0;",
        "    for (long long item = blockIdx.x; item < items; item += gridDim.x) {",
        "        const long long row = item / strips, table = row / count, at = row % count;",
        f"        const long long place = {find.format('at', sizes)};",
        f"        const long long pack = item % strips * {_SUMMING} + threadIdx.x;",
        "        float met = 0.0f;",
        f"        for (long long other = threadIdx.x; other < at && met == 0.0f; other += {_SUMMING})",
        f"            if ({same}) met = 1.0f;",
        f"        if (across<Largest, {_SUMMING}>(met, shared, turn) > 0.0f) continue;",
        f"        {kind} t[{lanes}] = {{}};",
        f"        for (long long first = at; first < count; first += {_SUMMING}) {{",
        "            long long other = first + threadIdx.x;",
        f"            const bool mine = other < count && {same};",
        f"            if (across<Largest, {_SUMMING}>(mine ? 1.0f : 0.0f, shared, turn) == 0.0f) continue;",
        "            if (pack >= packs) continue;",
        f"            const long long end = first + {_SUMMING} < count ? first + {_SUMMING} : count;",
        "            for (other = first; other < end; ++other) {", f"                if (!({same})) continue;",
        f"                const auto p = load<{lanes}>(g + ((table * count + other) * packs + pack) * {lanes});",
        "                #pragma unroll",
        f"                for (int lane = 0; lane < {lanes}; ++lane) t[lane] += wide(p.at[lane]);",
        "            }", "        }", "        if (pack >= packs) continue;", f"        Pack<{stored}, {lanes}> sums;",
        "        #pragma unroll",
        f"        for (int lane = 0; lane < {lanes}; ++lane) sums.at[lane] = narrow<{stored}>(t[lane]);",
        f"        store(out + ((table * length + place) * packs + pack) * {lanes}, sums);", "    }", "}", ""])


def _items(index: np.dtype, name: str, arrays: str, numbers: str, body: Sequence[str], mode: str) -> str:
    """The text of a kernel whose threads compute one element at a time."""
    return "\n".join([*_named(index, mode), "",
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) {name}({arrays}, long long total, {numbers}) {{',
        f"    for (long long at = blockIdx.x * {_BLOCK}ll + threadIdx.x; at < total; at += gridDim.x * {_BLOCK}ll) {{",
        *indented(body, 2), "    }", "}", ""])


@cached(64)
def picked_source(dtype: np.dtype, index: np.dtype, mode: str) -> str:
    """The text of the kernel ``pick``, which copies from each set along an axis the element at the set's index."""
    stored = STORED[dtype.name]
    return _items(index, "pick", f"const {stored}* data, const {INDICES[index.name]}* indices, {stored}* out",
                  "long long length, long long inner",
                  ["const long long place = at / inner * length + named(indices[at], length);",
                   "out[at] = data[place * inner + at % inner];"], mode)


@cached(64)
def put_source(dtype: np.dtype, index: np.dtype, mode: str, given: bool, on: float = 1.0, off: float = 0.0) -> str:
    """The text of the kernel ``put``, which writes along an axis, at each index, ``on`` or an element of an array, and
    ``off`` elsewhere."""
    stored, kind = STORED[dtype.name], computed_in(dtype)
    source = f"const {stored}* g, " if given else ""
    number = "g[set]" if given else f"narrow<{stored}>({literal(on, kind)})"
    return _items(index, "put", f"{source}const {INDICES[index.name]}* indices, {stored}* out",
                  "long long length, long long inner",
                  ["const long long set = at / (length * inner) * inner + at % inner;",
                   f"out[at] = named(indices[set], length) == at / inner % length ? {number} "
                   f": narrow<{stored}>({literal(off, kind)});"], mode)


# ----------------------------------------------------------------------------------------------- operators


def _declines(values: Sequence[Array | None], indices: Array, mode: str) -> str | None:
    if indices.dtype.name not in INDICES:
        return f"indices of dtype {indices.dtype}: {', '.join(INDICES)} are compiled"
    if mode == "raise":
        return "mode 'raise' looks at all indices first"
    if not indices.flags.c_contiguous or not indices.size:
        return "there are no indices in one piece"
    return declines(values)


def _lanes(arrays: Sequence[Array], row: int) -> int:
    lanes = 16 // arrays[0].dtype.itemsize
    return 1 if row % lanes or any(address_of(array) % 16 for array in arrays) else lanes


def _look_up(call: Call, data: Array, indices: Array, mode: str, sizes: Shape, tables: int) -> list[Callable]:
    """Steps that copy rows of several tables; the rows of a table are along axes of these sizes."""
    (out,) = call.outs
    count, length = indices.size // len(sizes), math.prod(sizes)
    row = data.size // (tables * length)
    lanes = _lanes([data, out], row)
    text = read_source(data.dtype, indices.dtype, mode, len(sizes), lanes)
    numbers = [out.size // lanes, row // lanes, count, length, *sizes]
    return [Launch(kernel_of(call.xp, text, "look_up"), grid_of(call.xp, numbers[0], _BLOCK), _BLOCK,
                   [data, indices, out, *map(np.int64, numbers)],
                   own_bytes(indices) + min(own_bytes(data), own_bytes(out)), own_bytes(out))]


def _add_up(call: Call, g: Array, indices: Array, mode: str, sizes: Shape, tables: int) -> list[Callable]:
    """Steps of the gradient of ``_look_up``."""
    (out,) = call.outs
    count, length = indices.size // len(sizes), math.prod(sizes)
    row = out.size // (tables * length)
    lanes = _lanes([g, out], row)
    packs = row // lanes
    strips = -(-packs // _SUMMING)
    text = sum_source(g.dtype, indices.dtype, mode, len(sizes), lanes)
    numbers = [tables * count * strips, strips, packs, count, length, *sizes]
    return [functools.partial(out.fill, 0),
            Launch(kernel_of(call.xp, text, "add_up"), grid_of(call.xp, numbers[0] * _SUMMING, _SUMMING), _SUMMING,
                   [g, indices, out, *map(np.int64, numbers)], own_bytes(g) + own_bytes(indices),
                   min(own_bytes(g), own_bytes(out)))]


def _attach(op: Op, reads: Sequence[int], index: int, mode: str | None, steps: Callable[[Call], list[Callable]],
            sums: bool = False) -> None:
    """Give an operator the kernel ``cuda``; ``reads`` are the inputs with values, ``index`` is the one with indices."""

    def accepts(call: Call) -> str | None:
        indices = call.ins[index]
        reason = _declines([*[call.ins[i] for i in reads], *call.outs], indices, mode or call.attrs.get("mode", "clip"))
        if reason is None and sums and indices.size > MOST:
            return f"more than {MOST} indices: every block looks through all of them"
        return reason

    attach(op, accepts, steps)


#: Gives the number of tables, and the sizes of the axes that indices refer to, for a shape of the values.
Places = Callable[[Call, Shape], tuple[int, Shape]]


def _axis(call: Call, shape: Shape) -> tuple[int, Shape]:
    axis = check_axis(call.attrs.get("axis", 0), len(shape))
    return math.prod(shape[:axis]), (shape[axis],)


def _first(call: Call, shape: Shape) -> tuple[int, Shape]:
    """One table; indices refer to as many leading axes as they have rows."""
    return 1, shape[:call.ins[1].shape[0]]


def _by_table(op: Op, values: int, index: int, mode: str | None, places: Places, sums: bool = False) -> None:
    """Give an operator that copies rows of tables, or with ``sums`` adds rows to those of its output, the kernel
    ``cuda``."""

    def table_steps(call: Call) -> list[Callable]:
        data, run = call.ins[values], _add_up if sums else _look_up
        tables, sizes = places(call, (call.outs[0] if sums else data).shape)
        return run(call, data, call.ins[index], mode or _mode(call), sizes, tables)

    _attach(op, [values], index, mode, table_steps, sums)


def _mode(call: Call) -> str:
    mode = call.attrs.get("mode", "clip")
    return "wrap" if mode == "index" else mode  # indices are not checked on devices


def _by_item(op: Op, index: int, mode: str | None, name: str, axis: int, text: Callable[[Call, str], str]) -> None:
    """Give an operator that reads or writes one element along an axis for each index the kernel ``cuda``;
    ``text(call, mode)`` is the text of the function ``name``."""

    def item_steps(call: Call) -> list[Callable]:
        out = call.outs[0]
        arrays, sized = [*call.ins[:index + 1], out], call.ins[0] if name == "pick" else out
        place = check_axis(call.attrs.get("axis", axis), sized.ndim)
        return [Launch(kernel_of(call.xp, text(call, mode or _mode(call)), name), grid_of(call.xp, out.size, _BLOCK),
                       _BLOCK, [*arrays, *map(np.int64, (out.size, sized.shape[place],
                                                         math.prod(sized.shape[place + 1:])))],
                       sum(min(own_bytes(array), out.size * array.itemsize) for array in arrays[:-1]), own_bytes(out))]

    _attach(op, range(index), index, mode, item_steps)


def _picked_text(call: Call, mode: str) -> str:
    return picked_source(call.ins[0].dtype, call.ins[1].dtype, mode)


_by_table(indexing.take, 0, 1, None, _axis)
_by_table(indexing.take_sum, 0, 1, None, _axis, sums=True)
_by_table(indexing.embedding, 1, 0, "clip", lambda call, shape: (1, shape[:1]))
_by_table(gather.gather_nd, 0, 1, "wrap", _first)
_by_table(gather.gather_sum, 0, 1, "wrap", _first, sums=True)
_by_item(indexing.pick, 1, None, "pick", -1, _picked_text)
_by_item(indexing.batch_take, 1, "clip", "pick", 1, _picked_text)
_by_item(indexing.pick_put, 1, None, "put", -1, lambda call, mode: put_source(
    call.outs[0].dtype, call.ins[1].dtype, mode, True))
_by_item(indexing.one_hot, 0, "none", "put", -1, lambda call, mode: put_source(
    call.outs[0].dtype, call.ins[0].dtype, mode, False, call.attrs["on_value"], call.attrs["off_value"]))
