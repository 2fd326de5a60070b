"""Reductions of columns as CUDA kernels: a block reduces some columns over a part of the rows. A second step reduces
the results of the parts, in an order that does not depend on which block ends first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opreg.core.cache import cached
from opreg.core.steps import own_bytes
from opreg.elementwise.rows import REDUCTIONS, RowExpression, RowLayout
from opreg.typing import Array, ArrayModule

from .compiler import Launch, kernel_of
from .instructions import STORED, Value, computed_in, converted, indented, literal
from .rows import KINDS, Text, counted_in, of_the_row, parameters, sized

__all__ = ["LEAST", "WIDE", "bound_columns", "columns_source"]

#: How many neighbouring columns a block has, and how many rows it reduces at least.
WIDE, LEAST = 32, 64
# How many rows a block reads at a time.
_HIGH = 8


@cached(256)
def columns_source(columns: RowExpression, ins: tuple[np.dtype, ...], outs: tuple[np.dtype | None, ...], far: bool,
                   counted: str = "float") -> str:
    """The text of the kernel ``columns``, for consecutive matrices in memory.

    Its parameters are the inputs and outputs, the number of rows in a matrix and of elements in a row, the number of
    rows that a block reduces, and the number of blocks per tile of columns in a matrix. If the expression reads it, the
    last one is the size of a column, in the type ``counted``.
    """
    expression, text = columns.expression, Text(columns.expression, counted)
    arity, index = expression.arity, "unsigned long long" if far else "unsigned"
    for i, dtype in enumerate(ins):
        text.values[i] = Value(f"x{i}", computed_in(dtype))
    kind = "double" if any(value.type == "double" for value in text.values[:arity]) else "float"
    reductions = [p for p, (prim, _) in enumerate(expression.code) if prim.name in REDUCTIONS]
    place = {RowLayout.ELEMENT: "(matrix * rows + row) * n + column", RowLayout.ROW: "matrix * rows + row",
             RowLayout.COLUMN: "matrix * n + column"}
    reads = [f"const {computed_in(dtype)} x{i} = wide(a{i}[{place[along]}]);"
             for i, (dtype, along) in enumerate(zip(ins, columns.inputs)) if along is not RowLayout.COLUMN]
    numbers = ["rows", "n", "part", "parts", *["size"] * sized(expression)]
    lines = [f'extern "C" __global__ void __launch_bounds__({WIDE * _HIGH}) columns('
             f"{', '.join([*parameters(ins, outs), *[f'{index} {name}' for name in numbers]])}) {{"]
    lines += [f"    __shared__ {kind} shared{p}[{_HIGH}][{WIDE}];" for p in reductions]
    lines += [f"    const {index} tiles = (n + {WIDE - 1}u) / {WIDE}u, block = blockIdx.x / tiles;",
              f"    const {index} column = blockIdx.x % tiles * {WIDE}u + threadIdx.x % {WIDE}u;",
              f"    const {index} matrix = block / parts, begin = block % parts * part;",
              f"    const {index} end = begin + part < rows ? begin + part : rows;"]
    lines += [f"    const {computed_in(dtype)} x{i} = column < n ? wide(a{i}[{place[along]}]) : 0;"
              for i, (dtype, along) in enumerate(zip(ins, columns.inputs)) if along is RowLayout.COLUMN]
    lines += indented(of_the_row(columns, text, 0))
    lines += [f"    {kind} t{p} = {KINDS[expression.code[p].prim.name]}::none<{kind}>();" for p in reductions]
    read = [expression.code[p].args[0] for p in reductions]
    body = [text.line(p) for p in columns.needed(read)]
    for p, arg in zip(reductions, read):
        value = converted(text.values[arg], kind) if isinstance(arg, int) else literal(arg, kind)
        body.append(f"t{p} = {KINDS[expression.code[p].prim.name]}::both(t{p}, {value});")
    lines += ["    if (column < n)",
              f"        for ({index} row = begin + threadIdx.x / {WIDE}u; row < end; row += {_HIGH}u) {{",
              *indented([*reads, *body], 3), "        }",
              *[f"    shared{p}[threadIdx.x / {WIDE}u][threadIdx.x % {WIDE}u] = t{p};" for p in reductions],
              "    __syncthreads();", f"    if (threadIdx.x < {WIDE}u && column < n) {{"]
    for p in reductions:
        name = KINDS[expression.code[p].prim.name]
        lines += ["        #pragma unroll", f"        for (int high = 1; high < {_HIGH}; ++high) "
                  f"t{p} = {name}::both(t{p}, shared{p}[high][threadIdx.x]);"]
        text.values[arity + p] = Value(f"t{p}", kind)
    lines += indented(of_the_row(columns, text, 1), 2)
    lines += [f"        b{i}[block * n + column] = {text.result(result, STORED[dtype.name])};"
              for i, (result, dtype) in enumerate(zip(expression.results, outs)) if dtype is not None]
    return "\n".join([*lines, "    }", "}", ""])


def bound_columns(columns: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], count: int, rows: int,
                  n: int, xp: ArrayModule, size: int | None = None, part: int | None = None) -> Callable[[], None]:
    """A step without arguments that reduces the columns of ``count`` matrices, each of ``rows`` rows of ``n`` values.

    The expression reads ``size`` as the size of a column, by default ``rows``. With ``part``, matrices are split into
    parts of so many rows, and there is a result for each part.
    """
    part = rows if part is None else part
    parts = -(-rows // part)
    far = count * rows * n >= 1 << 30
    text = columns_source(columns, tuple([array.dtype for array in ins]),
                          tuple([None if out is None else out.dtype for out in outs]), far,
                          counted_in(rows if size is None else size))
    index = np.uint64 if far else np.uint32
    numbers = [rows, n, part, parts, *[rows if size is None else size] * sized(columns.expression)]
    written = [out for out in outs if out is not None]
    return Launch(kernel_of(xp, text, "columns"), -(-n // WIDE) * count * parts, WIDE * _HIGH,
                  [*ins, *written, *map(index, numbers)], sum(own_bytes(ins[i]) for i in columns.expression.used),
                  sum(map(own_bytes, written)))
