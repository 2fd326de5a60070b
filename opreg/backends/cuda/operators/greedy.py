"""Greedy choices among boxes as CUDA kernels: suppression of boxes that overlap, and one-to-one matching by scores.

Suppression compares all pairs of boxes at once and stores the result as bits. One block of threads an image then goes
through these bits, in order. Matching stores the best remaining score of each line, of a row or of a column, whichever
are fewer. One block a matrix chooses the best of these and searches only the lines that lost theirs.

The kernels round where the reference rounds, so they choose what the host chooses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.builtin.vision.greedy import Format, matching, survivors
from opreg.core.cache import cached
from opreg.core.launch import Call, Rank
from opreg.typing import Array, ArrayModule

from ..compiler import Launch, can_compile, grid_of, kernel_of
from ..instructions import STORED, computed_in, indent
from .lookups import INDICES

__all__ = ["SURVIVE", "bound_matching", "bound_suppression", "compare_source", "match_source", "search_source"]

#: Boxes in a tile: the bits of a word, and the threads of a block that compares two tiles.
TILE = 64
#: Threads of a block that goes through the bits of an image, or matches the lines of a matrix.
_BLOCK = 256
#: The bytes of bits that are in memory at once; images are suppressed in groups whose bits are fewer.
MOST_BYTES = 1 << 28


@cached(64)
def compare_source(dtype: np.dtype, group: np.dtype | None, form: Format, border: int, closed: bool) -> str:
    """The text of the kernel ``compare``, which writes for each box and tile the boxes that it would remove as bits."""
    stored, kind = STORED[dtype.name], computed_in(dtype)
    mul = "__dmul_rn" if kind == "double" else "__fmul_rn"
    length = "rounded(rounded(end - begin) + N(1))" if border else "rounded(end - begin)"
    if form == "center":
        corners = ["const N w = wide(at[2]), h = wide(at[3]), x = rounded(w / N(2)), y = rounded(h / N(2));",
                   "Box box{rounded(wide(at[0]) - x), rounded(wide(at[1]) - y), rounded(wide(at[0]) + x), "
                   "rounded(wide(at[1]) + y)};"]
        sides = "w", "h"
    else:
        corners = ["Box box{wide(at[0]), wide(at[1]), wide(at[2]), wide(at[3])};"]
        sides = "side(box.left, box.right)", "side(box.top, box.bottom)"
    groups, value = "", ""
    if group is not None:
        groups = f"const {INDICES[group.name]}* groups, "
        value = "wide(groups[{0}])" if group.name in STORED else "groups[{0}]"
    together = "" if group is None else f"{value.format('first + row')} == {value.format('first + other')} && "
    return "\n".join([
        f"typedef {stored} Stored;", f"typedef {kind} N;", "typedef unsigned long long Word;", "",
        "struct Box { N left, top, right, bottom, area; };", "",
        "// A number as the reference has it behind each of its operations.",
        "__device__ __forceinline__ N rounded(N number) { return wide(narrow<Stored>(number)); }", "",
        "// A product that is rounded before something is added to it.",
        "__device__ __forceinline__ N times(N a, N b) {", "#ifdef __CUDA_ARCH__", f"    return rounded({mul}(a, b));",
        "#else", "    return rounded(a * b);", "#endif", "}", "",
        f"__device__ __forceinline__ N side(N begin, N end) {{ return {length}; }}", "",
        "__device__ __forceinline__ Box box_at(const Stored* at) {", *indent(corners),
        f"    box.area = times(larger({sides[0]}, N(0)), larger({sides[1]}, N(0)));", "    return box;", "}", "",
        "__device__ __forceinline__ bool clash(const Box& one, const Box& other, N limit) {",
        "    const N wide_ = side(larger(one.left, other.left), smaller(one.right, other.right));",
        "    const N high = side(larger(one.top, other.top), smaller(one.bottom, other.bottom));",
        "    const N both = times(larger(wide_, N(0)), larger(high, N(0)));",
        "    const N either = rounded(rounded(one.area + other.area) - both);",
        f"    return rounded(both / either) {'>=' if closed else '>'} limit;", "}", "",
        f'extern "C" __global__ void __launch_bounds__({TILE}) compare(const Stored* boxes, const long long* counts, '
        f"{groups}Word* bits, long long items, long long n, long long tiles, N limit) {{",
        f"    __shared__ Box others[{TILE}];",
        "    for (long long item = blockIdx.x; item < items; item += gridDim.x) {",
        "        const long long image = item / (tiles * tiles), pair = item % (tiles * tiles);",
        f"        const long long tile = pair % tiles, first = image * n, row = pair / tiles * {TILE} + threadIdx.x;",
        "        const long long count = counts[image] < n ? counts[image] : n;",
        f"        if (tile < pair / tiles || tile * {TILE} >= count) continue;",
        f"        const long long begin = tile * {TILE};",
        "        if (begin + threadIdx.x < count)",
        "            others[threadIdx.x] = box_at(boxes + (first + begin + threadIdx.x) * 4);",
        "        __syncthreads();", "        if (row < count) {",
        "            const Box own = box_at(boxes + (first + row) * 4);", "            Word removed = 0;",
        f"            const long long end = begin + {TILE} < count ? begin + {TILE} : count;",
        "            for (long long other = row < begin ? begin : row + 1; other < end; ++other)",
        f"                if ({together}clash(own, others[other - begin], limit)) removed |= 1ull << (other - begin);",
        "            bits[(first + row) * tiles + tile] = removed;", "        }", "        __syncthreads();",
        "    }", "}", ""])


#: The text of the kernel ``survive``, which writes whether each box remains.
SURVIVE = f"""typedef unsigned long long Word;

extern "C" __global__ void __launch_bounds__({_BLOCK}) survive(
    const long long* counts, const Word* bits, Word* removed, bool* out, long long n, long long tiles, long long most
) {{
    __shared__ Word own[{TILE}];
    __shared__ int chosen[{TILE}], chosen_count;
    const long long image = blockIdx.x, count = counts[image] < n ? counts[image] : n;
    bits += image * n * tiles, removed += image * tiles, out += image * n;
    for (long long tile = threadIdx.x; tile < tiles; tile += {_BLOCK}) removed[tile] = 0;
    for (long long tile = 0; tile < tiles; ++tile) {{
        const long long begin = tile * {TILE}, place = begin + threadIdx.x;
        if (threadIdx.x < {TILE} && place < count) own[threadIdx.x] = bits[place * tiles + tile];
        __syncthreads();
        if (threadIdx.x == 0) {{
            Word gone = removed[tile];
            int found = 0;
            for (int i = 0; i < {TILE} && begin + i < count && most > 0; ++i) {{
                if (gone >> i & 1) continue;
                gone |= own[i];
                chosen[found++] = i;
                --most;
            }}
            chosen_count = found;
        }}
        __syncthreads();
        for (long long other = tile + 1 + threadIdx.x; other < tiles && other * {TILE} < count; other += {_BLOCK}) {{
            Word word = removed[other];
            for (int i = 0; i < chosen_count; ++i) word |= bits[(begin + chosen[i]) * tiles + other];
            removed[other] = word;
        }}
        if (threadIdx.x < {TILE} && place < n) {{
            bool stays = false;
            for (int i = 0; i < chosen_count; ++i) stays |= chosen[i] == (int)threadIdx.x;
            out[place] = stays;
        }}
        __syncthreads();
    }}
}}
"""


def bound_suppression(xp: ArrayModule, boxes: Array, counts: Array, groups: Array | None, bits: Array, removed: Array,
                      out: Array, *, threshold: float, closed: bool, form: Format, border: int, most: int
                      ) -> list[Launch]:
    """Steps without arguments that write whether each box remains.

    Parameters
    ----------
    xp : module
    boxes, counts, groups, out : arrays
        Contiguous arrays of shapes (images, n, 4), (images,), (images, n) and (images, n); counts are int64.
    bits, removed : arrays
        Memory for some images: uint64 of shapes (group, n, tiles) and (group, tiles).
    threshold, closed, form, border, most
        Attributes of the operator.
    """
    images, n, _ = boxes.shape
    group, _, tiles = bits.shape
    text = compare_source(boxes.dtype, None if groups is None else groups.dtype, form, border, closed)
    compare, survive = [kernel_of(xp, text, name, survivors.name)
                        for text, name in ((text, "compare"), (SURVIVE, "survive"))]
    limit = np.float64(threshold) if boxes.dtype.itemsize == 8 else np.float32(threshold)
    steps = []
    for start in range(0, images, group):
        part = slice(start, start + group)
        items = boxes[part].shape[0] * tiles * tiles
        own = [] if groups is None else [groups[part]]
        steps += [Launch(compare, min(items, (1 << 31) - 1), TILE,
                         [boxes[part], counts[part], *own, bits, *map(np.int64, (items, n, tiles)), limit]),
                  Launch(survive, boxes[part].shape[0], _BLOCK,
                         [counts[part], bits, removed, out[part], *map(np.int64, (n, tiles, n if most < 0 else most))])]
    return steps


def _accepts(call: Call) -> str | None:
    boxes, groups = call.ins[0], call.ins[2] if len(call.ins) > 2 else None
    if boxes.dtype.name not in STORED:
        return f"dtype {boxes.dtype}: kernels are compiled for {', '.join(STORED)}"
    if groups is not None and groups.dtype.name not in INDICES:
        return f"groups of dtype {groups.dtype}: kernels are compiled for groups of {', '.join(INDICES)}"
    return None


@survivors.kernel("cuda", accepts=_accepts, serves=can_compile, rank=Rank.COMPILED)
def survivors_cuda(xp: ArrayModule, boxes: Array, counts: Array, groups: Array | None = None, *, threshold: float,
                   closed: bool, form: Format, border: int, most: int) -> Array:
    *outer, n, _ = boxes.shape
    images, tiles = math.prod(outer), -(-n // TILE)
    out = xp.empty((images, n), dtype=bool)
    if out.size:
        size = max(1, min(images, MOST_BYTES // (n * tiles * 8)))
        for step in bound_suppression(
                xp, xp.ascontiguousarray(boxes.reshape(images, n, 4)), counts.reshape(images).astype(xp.int64),
                None if groups is None else xp.ascontiguousarray(groups.reshape(images, n)),
                xp.empty((size, n, tiles), dtype=xp.uint64), xp.empty((size, tiles), dtype=xp.uint64), out,
                threshold=threshold, closed=closed, form=form, border=border, most=most):
            step()
    return out.reshape(*outer, n)


# ----------------------------------------------------------------------------------------------- matching


_NUMBERS = "int n, int m, bool by_column"


def _lines(dtype: np.dtype) -> list[str]:
    """The text of the functions that both kernels of matching share."""
    stored, kind = STORED[dtype.name], computed_in(dtype)
    return [
        f"typedef {stored} Stored;", f"typedef {kind} N;", "",
        "// A score and its place: the greater one is better, of equal ones the one in the first row, then column.",
        "struct Best { N score; int row, column; };", "",
        "__device__ __forceinline__ Best better(Best a, Best b) {",
        "    const bool before = b.row != a.row ? b.row < a.row : b.column < a.column;",
        "    return b.score > a.score || (b.score == a.score && before) ? b : a;", "}", "",
        "__device__ __forceinline__ Best none() { return Best{N(bits_as<float>(0xff800000u)), 0x7fffffff, 0}; }", "",
        "// The best of a warp.", "__device__ __forceinline__ Best of_warp(Best best) {", "    #pragma unroll",
        "    for (int distance = 16; distance; distance /= 2)",
        "        best = better(best, Best{__shfl_xor_sync(0xffffffffu, best.score, distance),",
        "                                 __shfl_xor_sync(0xffffffffu, best.row, distance),",
        "                                 __shfl_xor_sync(0xffffffffu, best.column, distance)});",
        "    return best;", "}", "",
        "// The best score of a line where it meets lines that are free, by a warp.",
        "__device__ __forceinline__ Best best_of(const Stored* scores, const long long* taken, int line, "
        f"{_NUMBERS}) {{",
        "    Best best = none();",
        "    for (int other = threadIdx.x % 32; other < (by_column ? n : m); other += 32) {",
        "        if (taken && taken[other] >= 0) continue;",
        "        const int row = by_column ? other : line, column = by_column ? line : other;",
        "        best = better(best, Best{wide(scores[(long long)row * m + column]), row, column});  // NaN never is",
        "    }", "    return of_warp(best);", "}", ""]


@cached(16)
def search_source(dtype: np.dtype) -> str:
    """The text of the kernel ``search``, which finds the best score of each line. With ``by_column`` the lines are
    columns, else rows."""
    return "\n".join([
        *_lines(dtype),
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) search(const Stored* scores, N* best, int* places, '
        f"long long total, {_NUMBERS}) {{",
        "    const long long lines = by_column ? m : n;",
        f"    for (long long item = (blockIdx.x * {_BLOCK}ll + threadIdx.x) / 32; item < total; "
        f"item += gridDim.x * {_BLOCK // 32}ll) {{",
        "        const Best found = best_of(scores + item / lines * n * m, nullptr, item % lines, n, m, by_column);",
        "        if (threadIdx.x % 32 == 0)",
        "            best[item] = found.score, places[item] = by_column ? found.row : found.column;",
        "    }", "}", ""])


@cached(16)
def match_source(dtype: np.dtype) -> str:
    """The text of the kernel ``match``, which chooses among the best scores of the lines."""
    return "\n".join([
        *_lines(dtype),
        f'extern "C" __global__ void __launch_bounds__({_BLOCK}) match(const Stored* scores, N* best, int* places, '
        f"long long* columns, long long* rows, N above, int rounds, {_NUMBERS}) {{",
        f"    __shared__ Best tops[{_BLOCK // 32}];",
        "    const int lines = by_column ? m : n;", "    const long long matrix = blockIdx.x;",
        "    scores += matrix * n * m, best += matrix * lines, places += matrix * lines;",
        "    columns += matrix * n, rows += matrix * m;",
        f"    for (int i = threadIdx.x; i < n; i += {_BLOCK}) columns[i] = -1;",
        f"    for (int i = threadIdx.x; i < m; i += {_BLOCK}) rows[i] = -1;",
        "    __syncthreads();", "    for (; rounds; --rounds) {", "        Best top = none();",
        f"        for (int line = threadIdx.x; line < lines; line += {_BLOCK}) {{",
        "            const int other = places[line];",
        "            top = better(top, Best{best[line], by_column ? other : line, by_column ? line : other});",
        "        }",
        "        top = of_warp(top);", "        if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;",
        "        __syncthreads();",
        f"        for (int warp = 0; warp < {_BLOCK // 32}; ++warp) top = better(top, tops[warp]);",
        "        if (!(top.score > above)) return;",
        "        const int line = by_column ? top.column : top.row, gone = by_column ? top.row : top.column;",
        "        if (threadIdx.x == 0) {",
        "            columns[top.row] = top.column, rows[top.column] = top.row;",
        "            best[line] = none().score, places[line] = -1;", "        }", "        __syncthreads();",
        f"        for (int each = threadIdx.x / 32; each < lines; each += {_BLOCK // 32}) {{",
        "            if (places[each] != gone) continue;",
        "            const Best found = best_of(scores, by_column ? columns : rows, each, n, m, by_column);",
        "            if (threadIdx.x % 32 == 0)",
        "                best[each] = found.score, places[each] = by_column ? found.row : found.column;",
        "        }", "        __syncthreads();", "    }", "}", ""])


def bound_matching(xp: ArrayModule, scores: Array, best: Array, places: Array, columns: Array, rows: Array, *,
                   above: float, most: int) -> list[Launch]:
    """Steps without arguments that match the rows and columns of matrices.

    Parameters
    ----------
    xp : module
    scores, columns, rows : arrays
        Contiguous arrays of shapes (matrices, n, m), (matrices, n) and (matrices, m); the latter two are int64.
    best, places : arrays
        Memory for a value and an int32 per line; a matrix has as many lines as the smaller of its numbers of rows and
        columns.
    above, most
        Attributes of the operator.
    """
    matrices, n, m = scores.shape
    lines = min(n, m)
    number: Any = np.float64 if scores.dtype.itemsize == 8 else np.float32
    numbers = [np.int32(n), np.int32(m), np.bool_(m < n)]
    return [Launch(kernel_of(xp, search_source(scores.dtype), "search", matching.name),
                   grid_of(xp, matrices * lines * 32, _BLOCK), _BLOCK,
                   [scores, best, places, np.int64(matrices * lines), *numbers]),
            Launch(kernel_of(xp, match_source(scores.dtype), "match", matching.name), matrices, _BLOCK,
                   [scores, best, places, columns, rows, number(scores.dtype.type(above)),
                    np.int32(lines if most < 0 else min(lines, most)), *numbers])]


def _accepts_matching(call: Call) -> str | None:
    scores = call.ins[0]
    if max(scores.shape[-2:]) >= 1 << 31:
        return "more than 2^31 rows or columns"
    if scores.dtype.name in STORED:
        return None
    return f"dtype {scores.dtype}: kernels are compiled for {', '.join(STORED)}"


@matching.kernel("cuda", accepts=_accepts_matching, serves=can_compile, rank=Rank.COMPILED)
def matching_cuda(xp: ArrayModule, scores: Array, *, above: float, most: int) -> Sequence[Array]:
    *outer, n, m = scores.shape
    matrices, lines = math.prod(outer), min(n, m)
    if not scores.size:
        columns, rows = (xp.full((matrices, count), -1, dtype=xp.int64) for count in (n, m))
    else:
        columns, rows = (xp.empty((matrices, count), dtype=xp.int64) for count in (n, m))
        number = xp.float64 if scores.dtype.itemsize == 8 else xp.float32
        best, places = (xp.empty((matrices, lines), dtype=dtype) for dtype in (number, xp.int32))
        for step in bound_matching(xp, xp.ascontiguousarray(scores.reshape(matrices, n, m)), best, places, columns,
                                   rows, above=above, most=most):
            step()
    return columns.reshape(*outer, n), rows.reshape(*outer, m)
