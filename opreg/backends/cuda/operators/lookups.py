"""Rows looked up by index, and the sums that carry gradients back: take, Embedding, gather_nd, pick, one_hot.

The gradient of a row is summed in the order of the indices of that row, without atomics; so the same inputs give the
same bits. If there are few indices, a block searches all of them for those of its row; many indices are sorted first.

A thread computes the digits of its first item by divisions. For each further item it adds the digits of the distance
between two items, with carries.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from opreg.builtin.lookup import gather, indexing
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.keys import cached_by_value
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.spec import Shape, check_axis
from opreg.core.steps import own_bytes
from opreg.typing import Array

from ..compiler import Launch, attach, grid_of, kernel_of
from ..instructions import STORED, computed_in, declines, indent, literal
from ..sorting import bound_sort

__all__ = ["keys_source", "picked_source", "put_source", "read_source", "run_source", "stretch_source", "sum_source"]

_BLOCK, _SUMMING = 256, 128
#: The dtypes of indices, and their types in C++.
INDICES = {**STORED, "int8": "signed char", "uint8": "unsigned char", "int32": "int", "int64": "long long"}
#: From this number of indices on they are sorted before rows are added, so that no block searches all of them.
SORTED = 1 << 12
# Rows with one index are added in stretches of this length; then the sums of the stretches are added.
_STRETCH = 64


def _index_function(dtype: np.dtype, mode: str) -> list[str]:
    """The text of the function ``named``, which converts a stored value to an index along an axis of a given length."""
    stored = INDICES[dtype.name]
    number = "wide(index)" if dtype.name in STORED else "index"
    inside = {"clip": ["return place < 0 ? 0 : place >= length ? length - 1 : place;"], "none": ["return place;"],
              "wrap": ["if (place >= -length && place < length) return place < 0 ? place + length : place;",
                       # This loop rarely runs. A division of 64 bits would need registers of the frequent path.
                       "unsigned long long rest = place < 0 ? 0ull - place : place;",
                       "#pragma unroll 1", "for (int bit = 63; bit >= 0; --bit)",
                       "    if (rest >> bit >= (unsigned long long)length) rest -= (unsigned long long)length << bit;",
                       "return place < 0 && rest ? length - (long long)rest : (long long)rest;"]}[mode]
    return [f"__device__ __forceinline__ long long named({stored} index, long long length) {{",
            f"    const long long place = (long long){number};", *indent(inside), "}"]


def _index_functions(dtype: np.dtype, mode: str, axes: int) -> list[str]:
    """The texts of the device functions ``named`` and ``place_of``. ``place_of`` computes a flat index from one index
    per axis; the indices of neighbouring axes lie ``count`` elements apart."""
    parameters = ["long long at", "long long count", *[f"long long n{axis}" for axis in range(axes)]]
    more = [f"    place = place * n{axis} + named(indices[{axis} * count + at], n{axis});" for axis in range(1, axes)]
    return [*_index_function(dtype, mode), "__device__ __forceinline__ long long place_of("
            f"const {INDICES[dtype.name]}* indices, {', '.join(parameters)}) {{",
            "    long long place = named(indices[at], n0);", *more, "    return place;", "}"]


def _sizes(axes: int) -> str:
    return ", ".join(f"n{axis}" for axis in range(axes))


_THREADS = f"blockIdx.x * {_BLOCK}ll + threadIdx.x", f"gridDim.x * {_BLOCK}ll"
_BLOCKS = "blockIdx.x", "gridDim.x"


def _item_loop(digits: Sequence[str], sizes: Sequence[str], body: Sequence[str], begin: str = _THREADS[0],
               step: str = _THREADS[1]) -> list[str]:
    """The loop over the ``items`` of a thread or block. The variables ``digits`` are the digits of an item; the last
    changes fastest.

    ``sizes`` are the sizes of all digits but the first, which is unbounded. Parameters of the kernel are ``items`` and,
    for each digit, ``step_`` and its name: the digits of the distance to the next item.
    """
    lines, further = [f"long long item = {begin}, rest = item, carry;"], [f"item += {step}", "carry = 0"]
    for digit, size in [*zip(digits[1:], sizes)][::-1]:
        lines += [f"long long {digit} = rest % {size};", f"rest /= {size};"]
        further += [f"{digit} += step_{digit} + carry", f"carry = {digit} >= {size}",
                    f"{digit} -= carry ? {size} : 0"]
    further.append(f"{digits[0]} += step_{digits[0]} + carry")
    return [*lines, f"long long {digits[0]} = rest;", f"for (; item < items; {', '.join(further)}) {{", *indent(body),
            "}"]


def _parameters(digits: Sequence[str]) -> str:
    """The parameters of ``_item_loop``."""
    return ", ".join(["long long items", *[f"long long step_{digit}" for digit in digits]])


def _loop_arguments(items: int, distance: int, sizes: Sequence[int]) -> list[int]:
    """The values of the parameters that ``_item_loop`` declares, for a distance to the next item."""
    digits = []
    for size in reversed(sizes):
        digits.append(distance % size)
        distance //= size
    return [items, distance, *digits[::-1]]


@cached(256)
def read_source(dtype: np.dtype, index: np.dtype, mode: str, axes: int, lanes: int) -> str:
    """The text of the kernel ``look_up``, which copies the rows at the indices, pack by pack, for each of several
    tables of ``length`` rows."""
    stored = STORED[dtype.name]
    body = [f"const long long from = table * length + place_of(indices, row, count, {_sizes(axes)});",
            f"store(out + item * {lanes}, load<{lanes}>(data + (from * packs + pack) * {lanes}));"]
    digits = "table", "row", "pack"
    return "\n".join([*_index_functions(index, mode, axes), "",
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) look_up(const {stored}* data, '
        f"const {INDICES[index.name]}* indices, {stored}* out, {_parameters(digits)}, "
        "long long packs, long long count, long long length, "
        f"{', '.join(f'long long n{axis}' for axis in range(axes))}) {{",
        *indent(_item_loop(digits, ["count", "packs"], body)), "}", ""])


@cached(256)
def sum_source(dtype: np.dtype, index: np.dtype, mode: str, axes: int, lanes: int) -> str:
    """The text of the kernel ``add_up``, which adds rows at the indices. A block has a strip of a row; for the first
    occurrence of an index it sums the rows of all its occurrences. Rows without an index must be zero before."""
    stored, kind = STORED[dtype.name], computed_in(dtype)
    sizes, find = _sizes(axes), "place_of(indices, {0}, count, {1})"
    same, digits = f"{find.format('other', sizes)} == place", ("table", "at", "strip")
    return "\n".join([*_index_functions(index, mode, axes), "",
        f'extern "C" __global__ void __launch_bounds__({_SUMMING}) add_up(const {stored}* g, '
        f"const {INDICES[index.name]}* indices, {stored}* out, {_parameters(digits)}, long long strips, "
        "long long packs, long long count, long long length, "
        f"{', '.join(f'long long n{axis}' for axis in range(axes))}) {{",
        f"    __shared__ float shared[{2 * _SUMMING // 32}];", "    int turn = 0;",
        *indent(_item_loop(digits, ["count", "strips"], [
        f"const long long place = {find.format('at', sizes)};",
        f"const long long pack = strip * {_SUMMING} + threadIdx.x;",
        "float met = 0.0f;",
        f"for (long long other = threadIdx.x; other < at && met == 0.0f; other += {_SUMMING})",
        f"    if ({same}) met = 1.0f;",
        f"if (across<Largest, {_SUMMING}>(met, shared, turn) > 0.0f) continue;",
        f"{kind} t[{lanes}] = {{}};",
        f"for (long long first = at; first < count; first += {_SUMMING}) {{",
        "    long long other = first + threadIdx.x;",
        f"    const bool mine = other < count && {same};",
        f"    if (across<Largest, {_SUMMING}>(mine ? 1.0f : 0.0f, shared, turn) == 0.0f) continue;",
        "    if (pack >= packs) continue;",
        f"    const long long end = first + {_SUMMING} < count ? first + {_SUMMING} : count;",
        "    for (other = first; other < end; ++other) {", f"        if (!({same})) continue;",
        f"        const auto p = load<{lanes}>(g + ((table * count + other) * packs + pack) * {lanes});",
        "        #pragma unroll",
        f"        for (int lane = 0; lane < {lanes}; ++lane) t[lane] += wide(p.at[lane]);",
        "    }", "}", "if (pack >= packs) continue;", f"Pack<{stored}, {lanes}> sums;",
        "#pragma unroll",
        f"for (int lane = 0; lane < {lanes}; ++lane) sums.at[lane] = narrow<{stored}>(t[lane]);",
        f"store(out + ((table * length + place) * packs + pack) * {lanes}, sums);"], *_BLOCKS)), "}", ""])


@cached(64)
def keys_source(index: np.dtype, mode: str, axes: int) -> str:
    """The text of the kernel ``keys``, which writes the number of the row that each index selects."""
    return "\n".join([*_index_functions(index, mode, axes), "",
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) keys(const {INDICES[index.name]}* indices, '
        f"unsigned* out, long long count, {', '.join(f'long long n{axis}' for axis in range(axes))}) {{",
        f"    for (long long at = blockIdx.x * {_BLOCK}ll + threadIdx.x; at < count; at += gridDim.x * {_BLOCK}ll)",
        f"        out[at] = (unsigned)place_of(indices, at, count, {_sizes(axes)});", "}", ""])


def _sorted_rows_source(dtype: np.dtype, lanes: int, threads: int, name: str, out: str, size: str, body: Sequence[str]
                        ) -> str:
    """The text of a kernel over the sorted rows of several tables; a block has a strip of a row."""
    stored, digits = STORED[dtype.name], ("table", "own", "strip")
    strip = [f"const long long pack = strip * {threads} + threadIdx.x;", "if (pack >= packs) continue;",
             f"const {stored}* from = g + (table * count * packs + pack) * {lanes};", f"N t[{lanes}] = {{}};"]
    return "\n".join([
        f"typedef {computed_in(dtype)} N;", "",
        "// Adds consecutive sorted rows with one key, up to the end of the stretch.",
        "__device__ __forceinline__ long long add_run("
        f"N (&t)[{lanes}], const {stored}* g, const unsigned* keys, const unsigned* places, long long at, "
        "long long count, long long packs) {",
        f"    const long long begin = at, next = (at / {_STRETCH} + 1) * {_STRETCH};",
        "    const long long end = next < count ? next : count;",
        "    for (; at < end && keys[at] == keys[begin]; ++at) {",
        f"        const auto p = load<{lanes}>(g + places[at] * packs * {lanes});", "        #pragma unroll",
        f"        for (int lane = 0; lane < {lanes}; ++lane) t[lane] += wide(p.at[lane]);", "    }",
        "    return at;", "}", "",
        f'extern "C" __global__ void __launch_bounds__({threads}) {name}(const {stored}* g, const unsigned* keys, '
        f"const unsigned* places, {out}, {_parameters(digits)}, long long strips, long long packs, "
        "long long count, long long stretches, long long length) {",
        *indent(_item_loop(digits, [size, "strips"], [*strip, *body], *_BLOCKS)), "}", ""])


@cached(64)
def stretch_source(dtype: np.dtype, lanes: int, threads: int) -> str:
    """The text of the kernel ``stretch``. If a stretch of sorted rows begins behind the first row of an index, the
    kernel adds the rows of this index in the stretch."""
    store = [f"for (int lane = 0; lane < {lanes}; ++lane) sums[((table * stretches + own) * packs + pack) * {lanes} "
             "+ lane] = t[lane];"]
    return _sorted_rows_source(dtype, lanes, threads, "stretch", "N* sums", "stretches", [
        f"const long long at = own * {_STRETCH};", "if (at == 0 || keys[at] != keys[at - 1]) continue;",
        "add_run(t, from, keys, places, at, count, packs);", *store])


@cached(64)
def run_source(dtype: np.dtype, lanes: int, threads: int) -> str:
    """The text of the kernel ``run``, which adds the sorted rows of each index: first the rows up to the end of a
    stretch, then the sums of the following stretches."""
    stored = STORED[dtype.name]
    return _sorted_rows_source(dtype, lanes, threads, "run", f"const N* sums, {stored}* out", "count", [
        "if (own && keys[own] == keys[own - 1]) continue;",
        "long long at = add_run(t, from, keys, places, own, count, packs);",
        f"for (; at < count && at % {_STRETCH} == 0 && keys[at] == keys[own]; at += {_STRETCH})",
        f"    for (int lane = 0; lane < {lanes}; ++lane)",
        f"        t[lane] += sums[((table * stretches + at / {_STRETCH}) * packs + pack) * {lanes} + lane];",
        f"Pack<{stored}, {lanes}> q;",
        f"for (int lane = 0; lane < {lanes}; ++lane) q.at[lane] = narrow<{stored}>(t[lane]);",
        f"store(out + ((table * length + keys[own]) * packs + pack) * {lanes}, q);"])


@cached(64)
def picked_source(dtype: np.dtype, index: np.dtype, mode: str) -> str:
    """The text of the kernel ``pick``, which copies from each set along an axis the element at the set's index."""
    stored = STORED[dtype.name]
    body = ["const long long place = outer * length + named(indices[item], length);",
            "out[item] = data[place * inner + column];"]
    digits = "outer", "column"
    return "\n".join([*_index_function(index, mode), "",
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) pick(const {stored}* data, '
        f"const {INDICES[index.name]}* indices, {stored}* out, {_parameters(digits)}, long long length, "
        "long long inner) {", *indent(_item_loop(digits, ["inner"], body)), "}", ""])


@cached_by_value(64)
def put_source(dtype: np.dtype, index: np.dtype, mode: str, from_data: bool, lanes: int = 1, last: bool = True,
               on: float = 1.0, off: float = 0.0) -> str:
    """The text of the kernel ``put``: along an axis it writes ``on``, or an element of an array, at each index, and
    ``off`` elsewhere. A thread writes ``lanes`` elements at a time; ``last`` tells whether the axis is the last
    one."""
    stored, kind = STORED[dtype.name], computed_in(dtype)
    source = f"const {stored}* g, " if from_data else ""
    number = "g[set]" if from_data else f"narrow<{stored}>({literal(on, kind)})"
    off_text = f"narrow<{stored}>({literal(off, kind)})"
    chosen = f"q.at[lane] = {{0}} ? {number} : {off_text};"
    if last:
        body = ["const long long set = outer, place = named(indices[set], length);", f"Pack<{stored}, {lanes}> q;",
                "#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane)",
                f"    {chosen.format(f'place == pack * {lanes} + lane')}"]
        digits, sizes = ["outer", "pack"], ["packs"]
    else:
        body = [f"Pack<{stored}, {lanes}> q;", "#pragma unroll", f"for (int lane = 0; lane < {lanes}; ++lane) {{",
                f"    const long long set = (outer * packs + pack) * {lanes} + lane;",
                f"    {chosen.format('named(indices[set], length) == place')}", "}"]
        digits, sizes = ["outer", "place", "pack"], ["length", "packs"]
    return "\n".join([*_index_function(index, mode), "",
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) put({source}const {INDICES[index.name]}* indices, '
        f"{stored}* out, {_parameters(digits)}, long long length, long long packs) {{",
        *indent(_item_loop(digits, sizes, [*body, f"store(out + item * {lanes}, q);"])), "}", ""])


# ----------------------------------------------------------------------------------------------- operators


def _declines(values: Sequence[Array | None], indices: Array, mode: str) -> str | None:
    if indices.dtype.name not in INDICES:
        return f"indices of dtype {indices.dtype}: kernels are compiled for {', '.join(INDICES)}"
    if mode == "raise":
        return "mode 'raise' has to check all indices first"
    if not indices.flags.c_contiguous or not indices.size:
        return "the indices are not contiguous"
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
    items, packs = out.size // lanes, row // lanes
    blocks = grid_of(call.xp, items, _BLOCK)
    numbers = [*_loop_arguments(items, blocks * _BLOCK, (count, packs)), packs, count, length, *sizes]
    return [Launch(kernel_of(call.xp, text, "look_up"), blocks, _BLOCK, [data, indices, out, *map(np.int64, numbers)],
                   own_bytes(indices) + min(own_bytes(data), own_bytes(out)), own_bytes(out))]


def _add_up(call: Call, g: Array, indices: Array, mode: str, sizes: Shape, tables: int) -> list[Callable]:
    """Steps of the gradient of ``_look_up``."""
    (out,) = call.outs
    count, length = indices.size // len(sizes), math.prod(sizes)
    row = out.size // (tables * length)
    lanes = _lanes([g, out], row)
    packs = row // lanes
    moved = own_bytes(g), min(own_bytes(g), own_bytes(out))
    if count >= SORTED and length < 1 << 32 and count < 1 << 31:
        return [functools.partial(out.fill, 0), *_add_sorted(call, g, indices, mode, sizes, tables, lanes, packs)]
    strips = -(-packs // _SUMMING)
    text = sum_source(g.dtype, indices.dtype, mode, len(sizes), lanes)
    items = tables * count * strips
    blocks = grid_of(call.xp, items * _SUMMING, _SUMMING)
    numbers = [*_loop_arguments(items, blocks, (count, strips)), strips, packs, count, length, *sizes]
    return [functools.partial(out.fill, 0),
            Launch(kernel_of(call.xp, text, "add_up"), blocks, _SUMMING,
                   [g, indices, out, *map(np.int64, numbers)], own_bytes(indices) + moved[0], moved[1])]


def _add_sorted(call: Call, g: Array, indices: Array, mode: str, sizes: Shape, tables: int, lanes: int, packs: int
                ) -> list[Launch]:
    """Steps that sort indices and add the rows of each, in a fixed order."""
    (out,), xp = call.outs, call.xp
    count, length = indices.size // len(sizes), math.prod(sizes)
    result = call.scratch(10, (count,), np.dtype(np.uint32))
    text = keys_source(indices.dtype, mode, len(sizes))
    named = Launch(kernel_of(xp, text, "keys"), grid_of(xp, count, _BLOCK), _BLOCK,
                   [indices, result, *map(np.int64, (count, *sizes))], own_bytes(indices), 4 * count)
    steps, keys, places = bound_sort(xp, result, length - 1, call.scratch)
    threads = min(_SUMMING, max(32, 1 << (packs - 1).bit_length()))
    strips, stretches = -(-packs // threads), -(-count // _STRETCH)
    number = np.dtype(np.float64 if g.dtype.itemsize == 8 else np.float32)
    sums = call.scratch(11, (tables, stretches, packs * lanes), number)
    added = []
    for name, source, rows, arrays in (("stretch", stretch_source, stretches, [sums]),
                                       ("run", run_source, count, [sums, out])):
        items = tables * rows * strips
        blocks = grid_of(xp, items * threads, threads)
        counted = [*_loop_arguments(items, blocks, (rows, strips)), strips, packs, count, stretches, length]
        added.append(Launch(kernel_of(xp, source(g.dtype, lanes, threads), name), blocks, threads,
                            [g, keys, places, *arrays, *map(np.int64, counted)]))
    return [named, *steps, *added]


def _attach(op: Op, reads: Sequence[int], index: int, mode: str | None, steps: Callable[[Call], list[Callable]],
            ) -> None:
    """Give an operator the kernel ``cuda``; ``reads`` are the inputs with values, ``index`` is the one with indices."""

    def accepts(call: Call) -> str | None:
        indices = call.ins[index]
        return _declines([*[call.ins[i] for i in reads], *call.outs], indices, mode or call.attrs.get("mode", "clip"))

    attach(op, accepts, steps)


#: Gives the number of tables, and the sizes of the axes that indices refer to, for a shape of the values.
Places = Callable[[Call, Shape], tuple[int, Shape]]


def _axis(call: Call, shape: Shape) -> tuple[int, Shape]:
    axis = check_axis(call.attrs.get("axis", 0), len(shape))
    return math.prod(shape[:axis]), (shape[axis],)


def _first(call: Call, shape: Shape) -> tuple[int, Shape]:
    """The number of tables, one, and the sizes of the leading axes, each of which has a row of indices."""
    return 1, shape[:call.ins[1].shape[0]]


def _attach_by_table(op: Op, values: int, index: int, mode: str | None, places: Places, sums: bool = False) -> None:
    """Attach the kernel ``cuda`` to an operator that copies rows of tables, or with ``sums`` adds rows to its
    output."""

    def table_steps(call: Call) -> list[Callable]:
        data, run = call.ins[values], _add_up if sums else _look_up
        tables, sizes = places(call, (call.outs[0] if sums else data).shape)
        return run(call, data, call.ins[index], mode or _mode(call), sizes, tables)

    _attach(op, [values], index, mode, table_steps)


def _mode(call: Call) -> str:
    mode = call.attrs.get("mode", "clip")
    return "wrap" if mode == "index" else mode  # indices are not checked on devices


#: The text of a kernel, the number of its items, the sizes of the digits of its loop, and further arguments.
Items = tuple[str, int, Sequence[int], Sequence[int]]


def _attach_by_item(op: Op, index: int, mode: str | None, name: str, axis: int,
                    items: Callable[[Call, str, int, int], Items]) -> None:
    """Attach the kernel ``cuda`` to an operator that reads or writes, for each index, one element along an axis.
    ``items(call, mode, length, inner)`` describes its function ``name``; ``length`` is that of the axis, and ``inner``
    the number of elements of the axes after it."""

    def item_steps(call: Call) -> list[Callable]:
        out = call.outs[0]
        arrays, sized = [*call.ins[:index + 1], out], call.ins[0] if name == "pick" else out
        place = check_axis(call.attrs.get("axis", axis), sized.ndim)
        text, count, sizes, numbers = items(call, mode or _mode(call), sized.shape[place],
                                            math.prod(sized.shape[place + 1:]))
        blocks = grid_of(call.xp, count, _BLOCK)
        return [Launch(kernel_of(call.xp, text, name), blocks, _BLOCK,
                       [*arrays, *map(np.int64, [*_loop_arguments(count, blocks * _BLOCK, sizes), *numbers])],
                       sum(min(own_bytes(array), out.size * array.itemsize) for array in arrays[:-1]), own_bytes(out))]

    _attach(op, range(index), index, mode, item_steps)


def _pick_items(call: Call, mode: str, length: int, inner: int) -> Items:
    text = picked_source(call.ins[0].dtype, call.ins[1].dtype, mode)
    return text, call.outs[0].size, (inner,), (length, inner)


def _put(call: Call, mode: str, length: int, inner: int, from_data: bool, on: float = 1.0, off: float = 0.0) -> Items:
    out, last = call.outs[0], inner == 1
    lanes = _lanes([out], length if last else inner)
    text = put_source(out.dtype, call.ins[1 if from_data else 0].dtype, mode, from_data, lanes, last, on, off)
    packs = (length if last else inner) // lanes
    return text, out.size // lanes, (packs,) if last else (length, packs), (length, packs)


_attach_by_table(indexing.take, 0, 1, None, _axis)
_attach_by_table(indexing.take_sum, 0, 1, None, _axis, sums=True)
_attach_by_table(indexing.embedding, 1, 0, "clip", lambda call, shape: (1, shape[:1]))
_attach_by_table(gather.gather_nd, 0, 1, "wrap", _first)
_attach_by_table(gather.gather_sum, 0, 1, "wrap", _first, sums=True)
_attach_by_item(indexing.pick, 1, None, "pick", -1, _pick_items)
_attach_by_item(indexing.batch_take, 1, "clip", "pick", 1, _pick_items)
_attach_by_item(indexing.pick_put, 1, None, "put", -1, functools.partial(_put, from_data=True))
_attach_by_item(indexing.one_hot, 0, "none", "put", -1, lambda call, mode, length, inner: _put(
    call, mode, length, inner, False, call.attrs["on_value"], call.attrs["off_value"]))
