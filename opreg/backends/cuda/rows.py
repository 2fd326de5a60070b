"""Expressions along rows as CUDA kernels: a warp or a block has a row, which it reads once where its registers hold it.

Sums over rows, one for each column, are taken in two steps: of a part of the rows by each block, then of these parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core.cache import cached
from opreg.elementwise.expression import Expression
from opreg.elementwise.rows import REDUCTIONS, Along, RowExpression
from opreg.typing import Array, ArrayModule

from .compiler import Launch, grid_of, kernel_of
from .instructions import STORED, Value, computed_in, converted, indented, literal, statement
from .layout import address_of

__all__ = ["Shape", "bound_columns", "bound_rows", "columns_source", "rows_source", "shape_of"]

# Threads of a block whose warps have a row each, and numbers that a thread holds at most.
_WARPS, _HELD = 128, 32
# Columns and rows side by side of a block that sums columns, and rows that it sums at least.
_WIDE, _HIGH, _LEAST = 32, 8, 64
_KINDS = {"row_sum": "Sum", "row_max": "Largest"}


class Shape(NamedTuple):
    """What the text of a kernel depends on beside its expression.

    Attributes
    ----------
    ins, outs : tuple of dtype
        None for an output that nobody reads.
    threads : int
        Threads that have a row together.
    lanes : int
        Numbers that are read at once.
    packs : int
        Times that each of these threads reads; 0 where the registers do not hold the row, which is read once a phase.
    far : bool
        Whether indices need 64 bits.
    """

    ins: tuple[np.dtype, ...]
    outs: tuple[np.dtype | None, ...]
    threads: int
    lanes: int
    packs: int
    far: bool


def shape_of(expression: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], rows: int, n: int) -> Shape:
    """How rows of ``n`` numbers are shared out."""
    whole = [array for array, along in zip((*ins, *outs), (*expression.inputs, *expression.results))
             if array is not None and along is not Along.ROW]
    lanes = 16 // min(array.itemsize for array in whole)
    if n % lanes or any(address_of(array) % min(16, lanes * array.itemsize) for array in whole):
        lanes = 1
    held = max(1, sum(along is Along.ELEMENT for along in expression.inputs))
    width = 2 if any(array.dtype.itemsize == 8 for array in whole) else 1
    room = max(1, _HELD // (held * width * lanes))
    most = 1024 // width  # a double takes two registers, of which there are so many for all threads of a block
    threads = next((threads for threads in (32, 256, most) if n <= threads * lanes * min(room, 8)), most)
    packs = -(-n // (threads * lanes))
    return Shape(tuple([array.dtype for array in ins]), tuple([None if out is None else out.dtype for out in outs]),
                 threads, lanes, packs if packs <= room else 0, rows * n >= 1 << 30)


class _Text:
    """The lines of a kernel, and what the registers of the expression are called."""

    def __init__(self, expression: Expression):
        self.expression = expression
        self.values: list[Value] = [Value("", "float")] * (expression.arity + len(expression.code))

    def line(self, position: int) -> str:
        """The statement of an instruction."""
        prim, args = self.expression.code[position]
        register = self.expression.arity + position
        if prim.name in ("column", "row_size"):
            self.values[register] = Value(f"r{position}", "float")
            return f"const float r{position} = (float)({'at + lane' if prim.name == 'column' else 'n'});"
        text, self.values[register] = statement(f"r{position}", prim, args, self.values)
        return text

    def result(self, register: int | float, stored: str) -> str:
        """A result as it is stored."""
        value = self.values[register].text if isinstance(register, int) else literal(register, "double")
        return f"narrow<{stored}>({value})"


def _parameters(ins: Sequence[np.dtype], outs: Sequence[np.dtype | None]) -> list[str]:
    # An output may take over an input's memory: none of them is said to be alone.
    return [*[f"const {STORED[dtype.name]}* a{i}" for i, dtype in enumerate(ins)],
            *[f"{STORED[dtype.name]}* b{i}" for i, dtype in enumerate(outs) if dtype is not None]]


@cached(512)
def rows_source(rows: RowExpression, shape: Shape) -> str:
    """The text of the kernel ``rows``; its parameters are inputs and outputs, how many rows, and numbers in each."""
    expression, text = rows.expression, _Text(rows.expression)
    for i, dtype in enumerate(shape.ins):
        text.values[i] = Value(f"x{i}", computed_in(dtype))
    index = "unsigned long long" if shape.far else "unsigned"
    block = max(shape.threads, _WARPS)
    kind = "double" if any(value.type == "double" for value in text.values[:expression.arity]) else "float"
    elements = [i for i, along in enumerate(rows.inputs) if along is Along.ELEMENT]
    packed = [i for i, along in enumerate(rows.inputs) if along is not Along.ROW]
    lines = [f'extern "C" __global__ void __launch_bounds__({block}) rows('
             f"{', '.join([*_parameters(shape.ins, shape.outs), f'{index} rows', f'{index} n'])}) {{"]
    shared = "(" + kind + "*)0"
    if shape.threads > 32:
        lines.append(f"    __shared__ {kind} shared[{2 * shape.threads // 32}];")
        shared = "shared"
    lines += ["    int turn = 0;", f"    const {index} own = threadIdx.x % {shape.threads}u;",
              f"    const {index} side = {block // shape.threads}u;  // rows that a block has at once",
              f"    for ({index} row = blockIdx.x * side + threadIdx.x / {shape.threads}u; row < rows; "
              "row += gridDim.x * side) {"]
    inner = [f"const {computed_in(shape.ins[i])} x{i} = wide(a{i}[row]);"
             for i, along in enumerate(rows.inputs) if along is Along.ROW]
    inner += _of_the_row(rows, text, 0)
    if shape.packs:
        for i in elements:
            inner.append(f"Pack<{STORED[shape.ins[i].name]}, {shape.lanes}> h{i}[{shape.packs}];")
        loads = [f"h{i}[k] = load<{shape.lanes}>(a{i} + row * n + at);" for i in elements]
        inner += _over(shape, loads, index)
    last = max(rows.phases, default=0)
    for phase in range(last + 1):
        reduced = [p for p, (prim, args) in enumerate(expression.code)
                   if prim.name in REDUCTIONS and rows.phases[expression.arity + p] == phase + 1]
        results = [(i, r) for i, r in enumerate(expression.results)
                   if phase == last and shape.outs[i] is not None and rows.results[i] is Along.ELEMENT]
        if reduced or results:
            inner += _phase(rows, shape, text, packed, reduced, [r for _, r in results], [i for i, _ in results],
                            kind, index)
        for p in reduced:
            name = _KINDS[expression.code[p].prim.name]
            inner.append(f"const {kind} r{p} = across<{name}, {shape.threads}>(t{p}, {shared}, turn);")
            text.values[expression.arity + p] = Value(f"r{p}", kind)
        inner += _of_the_row(rows, text, phase + 1)
    for i, (result, stored) in enumerate(zip(expression.results, shape.outs)):
        if stored is not None and rows.results[i] is Along.ROW:
            inner.append(f"if (own == 0) b{i}[row] = {text.result(result, STORED[stored.name])};")
    return "\n".join([*lines, *indented(inner, 2), "    }", "}", ""])


def _of_the_row(rows: RowExpression, text: _Text, phase: int) -> list[str]:
    """The statements of what a row has one number of and a phase is the first to know."""
    arity = rows.expression.arity
    return [text.line(p) for p, (prim, _) in enumerate(rows.expression.code)
            if rows.registers[arity + p] is Along.ROW and rows.phases[arity + p] == phase
            and prim.name not in REDUCTIONS]


def _over(shape: Shape, body: Sequence[str], index: str) -> list[str]:
    """Lines that are run for each pack of a row that a thread has, which begins ``at``."""
    step = shape.threads * shape.lanes
    if shape.packs:
        return ["#pragma unroll", f"for (int k = 0; k < {shape.packs}; ++k) {{",
                f"    const {index} at = k * {step}u + own * {shape.lanes}u;",
                "    if (at < n) {", *indented(body, 2), "    }", "}"]
    return [f"for ({index} at = own * {shape.lanes}u; at < n; at += {step}u) {{", *indented(body), "}"]


def _phase(rows: RowExpression, shape: Shape, text: _Text, packed: Sequence[int], reduced: Sequence[int],
           results: Sequence[int | float], outs: Sequence[int], kind: str, index: str) -> list[str]:
    """Run through a row: add to what the phase reduces, or store the results."""
    expression = rows.expression
    wanted = [*[expression.code[p].args[0] for p in reduced], *results]
    needed = rows.needed(wanted)
    read = {a for p in needed for a in expression.code[p].args} | set(wanted)
    lines = [f"{kind} t{p} = {_KINDS[expression.code[p].prim.name]}::none<{kind}>();" for p in reduced]
    before, inside, after = [], [], []
    for i in packed:
        if i in read:
            if rows.inputs[i] is Along.ELEMENT and shape.packs:
                pack = f"h{i}[k]"
            else:
                pack = f"p{i}"
                place = "at" if rows.inputs[i] is Along.COLUMN else "row * n + at"
                before.append(f"const auto p{i} = load<{shape.lanes}>(a{i} + {place});")
            inside.append(f"const {computed_in(shape.ins[i])} x{i} = wide({pack}.at[lane]);")
    inside += [text.line(p) for p in needed]
    for p in reduced:
        arg = expression.code[p].args[0]
        value = converted(text.values[arg], kind) if isinstance(arg, int) else literal(arg, kind)
        inside.append(f"t{p} = {_KINDS[expression.code[p].prim.name]}::both(t{p}, {value});")
    for i, result in zip(outs, results):
        dtype = shape.outs[i]
        assert dtype is not None
        stored = STORED[dtype.name]
        before.append(f"Pack<{stored}, {shape.lanes}> q{i};")
        inside.append(f"q{i}.at[lane] = {text.result(result, stored)};")
        after.append(f"store(b{i} + row * n + at, q{i});")
    body = [*before, "#pragma unroll", f"for (int lane = 0; lane < {shape.lanes}; ++lane) {{", *indented(inside), "}",
            *after]
    return [*lines, *_over(shape, body, index)]


def bound_rows(rows: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], count: int, n: int,
               xp: ArrayModule) -> Callable[[], None]:
    """A step without arguments that computes ``count`` rows of ``n`` numbers side by side."""
    shape = shape_of(rows, ins, outs, count, n)
    index = np.uint64 if shape.far else np.uint32
    block = max(shape.threads, _WARPS)
    blocks = grid_of(xp, count * shape.threads, block)
    arguments = [*ins, *[out for out in outs if out is not None], index(count), index(n)]
    return Launch(kernel_of(xp, rows_source(rows, shape), "rows"), blocks, block, arguments)


# ---------------------------------------------------------------------------------------------------- columns


@cached(256)
def columns_source(expression: Expression, inputs: tuple[Along, ...], ins: tuple[np.dtype, ...],
                   outs: tuple[np.dtype | None, ...], far: bool) -> str:
    """The text of the kernel ``columns``: for every column the sums of the results over a part of the rows."""
    text = _Text(expression)
    for i, dtype in enumerate(ins):
        text.values[i] = Value(f"x{i}", computed_in(dtype))
    index = "unsigned long long" if far else "unsigned"
    wanted = [i for i, dtype in enumerate(outs) if dtype is not None]
    kind = {i: computed_in(outs[i]) for i in wanted}  # type: ignore[arg-type]
    body = [text.line(p) for p in range(len(expression.code))]
    place = {Along.ELEMENT: "row * n + column", Along.ROW: "row", Along.COLUMN: "column"}
    loads = [f"const {computed_in(dtype)} x{i} = wide(a{i}[{place[along]}]);"
             for i, (dtype, along) in enumerate(zip(ins, inputs))]
    adds = []
    for i in wanted:
        result = expression.results[i]
        value = text.values[result].text if isinstance(result, int) else literal(result, kind[i])
        adds.append(f"t{i} += ({kind[i]})({value});")
    lines = [f'extern "C" __global__ void __launch_bounds__({_WIDE * _HIGH}) columns('
             f"{', '.join([*_parameters(ins, outs), f'{index} rows', f'{index} n', f'{index} part'])}) {{"]
    for i in wanted:
        lines.append(f"    __shared__ {kind[i]} shared{i}[{_HIGH}][{_WIDE}];")
    lines += [f"    const {index} tiles = (n + {_WIDE - 1}u) / {_WIDE}u, chunk = blockIdx.x / tiles;",
              f"    const {index} column = blockIdx.x % tiles * {_WIDE}u + threadIdx.x % {_WIDE}u;",
              f"    const {index} end = chunk * part + part < rows ? chunk * part + part : rows;",
              *[f"    {kind[i]} t{i} = 0;" for i in wanted],
              "    if (column < n)",
              f"        for ({index} row = chunk * part + threadIdx.x / {_WIDE}u; row < end; row += {_HIGH}u) {{",
              *indented([*loads, *body, *adds], 3), "        }",
              *[f"    shared{i}[threadIdx.x / {_WIDE}u][threadIdx.x % {_WIDE}u] = t{i};" for i in wanted],
              "    __syncthreads();", f"    if (threadIdx.x < {_WIDE}u && column < n) {{"]
    for i in wanted:
        lines += ["        #pragma unroll",
                  f"        for (int high = 1; high < {_HIGH}; ++high) t{i} += shared{i}[high][threadIdx.x];",
                  f"        b{i}[chunk * n + column] = narrow<{STORED[outs[i].name]}>(t{i});"]  # type: ignore[union-attr]
    return "\n".join([*lines, "    }", "}", ""])


def bound_columns(expression: Expression, inputs: Sequence[Along], ins: Sequence[Array], outs: Sequence[Array | None],
                  rows: int, n: int, xp: ArrayModule, scratch: Callable[[int, tuple[int, ...], np.dtype], Array]
                  ) -> list[Callable[[], None]]:
    """Steps without arguments that sum the results of an expression over rows, column by column."""
    tiles = -(-n // _WIDE)
    parts = max(1, min(-(-rows // _LEAST), grid_of(xp, 1 << 30, _WIDE * _HIGH) // tiles))
    part = -(-rows // parts)
    parts = -(-rows // part)
    identity = Expression.of(1, [], [0])
    wide = [None if out is None else np.dtype(np.float64 if out.dtype.itemsize == 8 else np.float32) for out in outs]
    places = list(outs) if parts == 1 else [None if dtype is None else scratch(i, (parts, n), dtype)
                                            for i, dtype in enumerate(wide)]

    def launch(expression: Expression, inputs: Sequence[Along], ins: Sequence[Array], outs: Sequence[Array | None],
               rows: int, parts: int, part: int) -> Callable[[], None]:
        far = rows * n >= 1 << 30
        text = columns_source(expression, tuple(inputs), tuple([array.dtype for array in ins]),
                              tuple([None if out is None else out.dtype for out in outs]), far)
        index = np.uint64 if far else np.uint32
        return Launch(kernel_of(xp, text, "columns"), tiles * parts, _WIDE * _HIGH,
                      [*ins, *[out for out in outs if out is not None], index(rows), index(n), index(part)])

    steps = [launch(expression, inputs, ins, places, rows, parts, part)]
    if parts > 1:
        steps += [launch(identity, (Along.ELEMENT,), [place], [out], parts, 1, parts)
                  for place, out in zip(places, outs) if place is not None and out is not None]
    return steps
