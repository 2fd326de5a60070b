"""Reductions of columns as CUDA kernels: a block reduces some columns over a part of the rows. A second step reduces
the results of the parts, in an order that does not depend on which block ends first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.steps import own_bytes
from opreg.elementwise.rows import REDUCTIONS, RowExpression, RowLayout
from opreg.typing import Array, ArrayModule

from .compiler import Launch, kernel_of
from .instructions import STORED, Value, computed_in, converted, indent, literal
from .rows import KINDS, Text, counted_in, of_the_row, parameters, reads_row_size

__all__ = ["LEAST", "Tile", "bound_columns", "columns_source", "tile_of"]

#: The least number of rows that a block reduces.
LEAST = 64
# Threads of a block, and the largest number of them that read one row of a tile together.
_BLOCK, _WIDE = 256, 32


class Tile(NamedTuple):
    """The columns that a block reduces, and its threads.

    Attributes
    ----------
    lanes : int
        The number of neighbouring columns that a thread reads at a time, as a pack of up to 16 bytes.
    wide : int
        The number of threads that read a row together.
    """

    lanes: int
    wide: int

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.lanes * self.wide

    def high(self, rows: int) -> int:
        """The number of rows that a block reads at a time, given how many it reduces; a power of two."""
        return max(-(-32 // self.wide), min(_BLOCK // self.wide, _power_of_two(rows)))


def _power_of_two(least: int) -> int:
    """The smallest power of two from a number on."""
    return 1 << max(0, least - 1).bit_length()


def tile_of(ins: Sequence[Array], inputs: Sequence[RowLayout], n: int) -> Tile:
    """The tile for inputs of these layouts, whose rows have ``n`` values.

    A pack has 16 bytes of the smallest dtype, or fewer if rows or addresses are no multiples of that.
    """
    whole = [array for array, along in zip(ins, inputs)
             if along in (RowLayout.ELEMENT, RowLayout.COLUMN)]
    lanes = 16 // min([array.itemsize for array in whole], default=16)
    while lanes > 1 and (n % lanes or any(address_of(each) % min(16, lanes * each.itemsize) for each in whole)):
        lanes //= 2
    return Tile(lanes, min(_WIDE, _power_of_two(-(-n // lanes))))


@cached(256)
def columns_source(columns: RowExpression, ins: tuple[np.dtype, ...], outs: tuple[np.dtype | None, ...], tile: Tile,
                   high: int, far: bool, counted: str = "float") -> str:
    """The text of the kernel ``columns``, for consecutive matrices in memory; a block reads ``high`` rows at a time.

    Its parameters are the inputs and outputs, the number of rows in a matrix and of elements in a row, the number of
    rows that a block reduces, and the number of blocks per tile of columns in a matrix. If the expression reads it, the
    last one is the size of a column, in the type ``counted``.
    """
    expression, text = columns.expression, Text(columns.expression, counted)
    arity, index, lanes, wide = expression.arity, "unsigned long long" if far else "unsigned", tile.lanes, tile.wide
    for i, dtype in enumerate(ins):
        text.values[i] = Value(f"x{i}", computed_in(dtype))
    kind = "double" if any(value.type == "double" for value in text.values[:arity]) else "float"
    reductions = [p for p, (prim, _) in enumerate(expression.code) if prim.name in REDUCTIONS]
    kinds = {p: KINDS[expression.code[p].prim.name] for p in reductions}
    numbers = ["rows", "n", "part", "parts", *["size"] * reads_row_size(expression)]
    lines = [f'extern "C" __global__ void __launch_bounds__({wide * high}) columns('
             f"{', '.join([*parameters(ins, outs), *[f'{index} {name}' for name in numbers]])}) {{"]
    lines += [f"    __shared__ {kind} shared{p}[{high}][{tile.columns}];" for p in reductions]
    lines += [f"    const {index} tiles = (n + {tile.columns - 1}u) / {tile.columns}u, block = blockIdx.x / tiles;",
              f"    const {index} left = blockIdx.x % tiles * {tile.columns}u, own = threadIdx.x % {wide}u * {lanes}u;",
              f"    const {index} matrix = block / parts, begin = block % parts * part;",
              f"    const {index} end = begin + part < rows ? begin + part : rows;"]
    for p in reductions:
        lines += [f"    {kind} t{p}[{lanes}];", "    #pragma unroll",
                  f"    for (int lane = 0; lane < {lanes}; ++lane) t{p}[lane] = {kinds[p]}::none<{kind}>();"]
    over = _over_rows(columns, text, ins, tile, high, index, kind, kinds)
    lines += ["    if (left + own < n) {", *indent(over, 2), "    }"]
    for p in reductions:
        lines += ["    #pragma unroll",
                  f"    for (int lane = 0; lane < {lanes}; ++lane) "
                  f"shared{p}[threadIdx.x / {wide}u][own + lane] = t{p}[lane];"]
    lines += ["    __syncthreads();",
              f"    for ({index} at = threadIdx.x; at < {tile.columns}u && left + at < n; at += {wide * high}u) {{",
              f"        const {index} column = left + at;"]
    lines += [f"        const {computed_in(dtype)} x{i} = wide(a{i}[matrix * n + column]);"
              for i, (dtype, along) in enumerate(zip(ins, columns.inputs)) if along is RowLayout.COLUMN]
    lines += indent(of_the_row(columns, text, 0), 2)
    for p in reductions:
        lines += [f"        {kind} r{p} = shared{p}[0][at];", "        #pragma unroll",
                  f"        for (int high = 1; high < {high}; ++high) "
                  f"r{p} = {kinds[p]}::both(r{p}, shared{p}[high][at]);"]
        text.values[arity + p] = Value(f"r{p}", kind)
    lines += indent(of_the_row(columns, text, 1), 2)
    lines += [f"        b{i}[block * n + column] = {text.result(result, STORED[dtype.name])};"
              for i, (result, dtype) in enumerate(zip(expression.results, outs)) if dtype is not None]
    return "\n".join([*lines, "    }", "}", ""])


def _over_rows(columns: RowExpression, text: Text, ins: Sequence[np.dtype], tile: Tile, high: int, index: str,
               kind: str, kinds: dict[int, str]) -> list[str]:
    """The lines in which a thread reduces its columns of all rows that it reads."""
    expression = columns.expression
    packs = {RowLayout.ELEMENT: "(matrix * rows + row) * n", RowLayout.COLUMN: "matrix * n"}
    loads: dict[RowLayout, list[str]] = {along: [] for along in RowLayout}
    inside = []
    for i, (dtype, along) in enumerate(zip(ins, columns.inputs)):
        if along in packs:
            loads[along].append(f"const auto p{i} = load<{tile.lanes}>(a{i} + {packs[along]} + left + own);")
            inside.append(f"const {computed_in(dtype)} x{i} = wide(p{i}.at[lane]);")
        else:
            loads[along].append(f"const {computed_in(dtype)} x{i} = wide(a{i}[row]);")
    read = [expression.code[p].args[0] for p in kinds]
    inside += [*of_the_row(columns, text, 0), *[text.line(p) for p in columns.needed(read)]]
    for (p, name), arg in zip(kinds.items(), read):
        value = converted(text.values[arg], kind) if isinstance(arg, int) else literal(arg, kind)
        inside.append(f"t{p}[lane] = {name}::both(t{p}[lane], {value});")
    return [*loads[RowLayout.COLUMN],
            f"for ({index} row = begin + threadIdx.x / {tile.wide}u; row < end; row += {high}u) {{",
            *indent([*loads[RowLayout.ELEMENT], *loads[RowLayout.ROW], "#pragma unroll",
                     f"for (int lane = 0; lane < {tile.lanes}; ++lane) {{", *indent(inside), "}"]), "}"]


def bound_columns(columns: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], count: int, rows: int,
                  n: int, xp: ArrayModule, size: int | None = None, part: int | None = None) -> Callable[[], None]:
    """A step without arguments that reduces the columns of ``count`` matrices, each of ``rows`` rows of ``n`` values.

    The expression reads ``size`` as the size of a column, by default ``rows``. With ``part``, matrices are split into
    parts of that many rows, and each part has a result.
    """
    part = rows if part is None else part
    parts = -(-rows // part)
    far = count * rows * n >= 1 << 30
    tile = tile_of(ins, columns.inputs, n)
    high = tile.high(part)
    text = columns_source(columns, tuple([array.dtype for array in ins]),
                          tuple([None if out is None else out.dtype for out in outs]), tile, high, far,
                          counted_in(rows if size is None else size))
    index = np.uint64 if far else np.uint32
    numbers = [rows, n, part, parts, *[rows if size is None else size] * reads_row_size(columns.expression)]
    written = [out for out in outs if out is not None]
    return Launch(kernel_of(xp, text, "columns"), -(-n // tile.columns) * count * parts, tile.wide * high,
                  [*ins, *written, *map(index, numbers)], sum(own_bytes(ins[i]) for i in columns.expression.used),
                  sum(map(own_bytes, written)))
