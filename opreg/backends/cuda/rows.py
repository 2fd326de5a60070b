"""Row expressions as CUDA kernels: a warp or a block computes a row, and reads it once if its registers can hold it.

If there are few long rows that are only reduced, they are split into parts; each part is treated as a row, and a last
step combines them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core import spec
from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.steps import own_bytes
from opreg.elementwise.expression import Expression
from opreg.elementwise.rows import ACROSS, RowExpression, RowLayout
from opreg.typing import Array, ArrayModule

from .compiler import Launch, grid_of, kernel_of
from .instructions import STORED, Value, computed_in, converted, indent, literal, statement

__all__ = ["KINDS", "Shape", "Text", "bound_rows", "bound_rows_with_sums", "counted_in", "of_the_row", "parameters",
           "rows_source", "shape_of", "reads_row_size"]

# Threads of a block if each warp computes a row, and the greatest number of elements that a thread holds in registers.
_WARPS, _REGISTERS = 128, 32
# The least number of rows that each team of threads adds up, if there are enough rows for all multiprocessors; and the
# largest number of threads of a team, since with more of them each has too few registers for the sums beside the row.
_EACH, _ADDING = 16, 256
#: Names of the reductions in ``device.cuh``.
KINDS = {"row_sum": "Sum", "row_max": "Largest", "row_min": "Smallest", "row_product": "Product"}


class Shape(NamedTuple):
    """Properties that the text of a kernel depends on besides its expression.

    Attributes
    ----------
    ins, outs : tuple of dtype
        None for an output that is not read.
    threads : int
        The number of threads that compute a row together.
    lanes : int
        The number of elements that a thread reads at a time.
    packs : int
        How many times each of these threads reads; 0 if the registers cannot hold the row, which is then read once per
        phase.
    far : bool
        Whether indices need 64 bits.
    cut : bool
        Whether rows are split into parts.
    counted : str
        The type of indices of columns and of the size of a row in expressions; see ``counted_in``.
    summed : tuple of int
        The results that are added over rows. Their rows must be held in registers: each team of threads that computes
        rows stores one row of sums.
    """

    ins: tuple[np.dtype, ...]
    outs: tuple[np.dtype | None, ...]
    threads: int
    lanes: int
    packs: int
    far: bool
    cut: bool = False
    counted: str = "float"
    summed: tuple[int, ...] = ()

    @property
    def block(self) -> int:
        """The number of threads of a block."""
        return max(self.threads, _WARPS)

    @property
    def side(self) -> int:
        """The number of rows that a block computes at a time, by a team of threads each."""
        return self.block // self.threads


def counted_in(size: int) -> str:
    """The smallest integer type for all integers up to a size: ``float``, or ``double`` if ``float`` does not."""
    return "float" if size <= 1 << 24 else "double"


def shape_of(expression: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], rows: int, n: int,
             part: int | None = None, size: int | None = None) -> Shape:
    """How rows of ``n`` values are distributed over threads.

    Parameters
    ----------
    part : int, optional
        The length of the parts that rows are split into.
    size : int, optional
        The size of a row as the expression reads it; ``n`` by default.
    """
    counted = counted_in(n if size is None else max(n, size))
    elementwise = [array for array, along in zip((*ins, *outs), (*expression.inputs, *expression.results))
                   if array is not None and along in (RowLayout.ELEMENT, RowLayout.COLUMN)]
    lanes = 16 // min(array.itemsize for array in elementwise)
    total, n = rows * n, n if part is None else part
    aligned = not any(address_of(array) % min(16, lanes * array.itemsize) for array in elementwise)
    if not aligned or n % lanes or total // max(rows, 1) % lanes:
        lanes = 1
    inputs = max(1, sum(along is RowLayout.ELEMENT for along in expression.inputs))
    width = 2 if any(array.dtype.itemsize == 8 for array in elementwise) else 1
    most_packs = max(1, _REGISTERS // (inputs * width * lanes))
    most = 1024 // width  # a double takes two registers, and the number of registers per block is limited
    threads = next((threads for threads in (32, 256, most) if n <= threads * lanes * min(most_packs, 8)), most)
    packs = -(-n // (threads * lanes))
    return Shape(tuple([array.dtype for array in ins]), tuple([None if out is None else out.dtype for out in outs]),
                 threads, lanes, packs if packs <= most_packs else 0, total >= 1 << 30, part is not None, counted)


class Text:
    """The statements of a kernel, and the values of the expression's registers; ``counted`` is the type of indices and
    sizes."""

    def __init__(self, expression: Expression, counted: str):
        self.expression, self.counted = expression, counted
        self.values: list[Value] = [Value("", "float")] * (expression.arity + len(expression.code))

    def line(self, position: int) -> str:
        """The statement of an instruction."""
        prim, args = self.expression.code[position]
        register = self.expression.arity + position
        if prim.name in ("column", "row_size"):
            self.values[register] = Value(f"r{position}", self.counted)
            count = "begin + at + lane" if prim.name == "column" else "size"
            return f"const {self.counted} r{position} = ({self.counted})({count});"
        text, self.values[register] = statement(f"r{position}", prim, args, self.values)
        return text

    def result(self, register: int | float, stored: str) -> str:
        """The text of a result, converted to the stored type."""
        value = self.values[register].text if isinstance(register, int) else literal(register, "double")
        return f"narrow<{stored}>({value})"


def parameters(ins: Sequence[np.dtype], outs: Sequence[np.dtype | None]) -> list[str]:
    """The parameters of a kernel for its arrays."""
    # An output may use an input's memory, so none is declared ``__restrict__``.
    return [*[f"const {STORED[dtype.name]}* a{i}" for i, dtype in enumerate(ins)],
            *[f"{STORED[dtype.name]}* b{i}" for i, dtype in enumerate(outs) if dtype is not None]]


def reads_row_size(expression: Expression) -> bool:
    """Whether an expression reads the size of a row."""
    return any(prim.name == "row_size" for prim, _ in expression.code)


@cached(512)
def rows_source(rows: RowExpression, shape: Shape) -> str:
    """The text of the kernel ``rows``.

    Its parameters are the inputs and outputs, the number of rows, and the number of elements in each; if rows are
    split, the number of elements in a part and of parts in a row; and if the expression reads them, the size of a row
    and the number of rows after which inputs repeat.
    """
    expression, text = rows.expression, Text(rows.expression, shape.counted)
    for i, dtype in enumerate(shape.ins):
        text.values[i] = Value(f"x{i}", computed_in(dtype))
    index = "unsigned long long" if shape.far else "unsigned"
    kind = "double" if any(value.type == "double" for value in text.values[:expression.arity]) else "float"
    elements = [i for i, along in enumerate(rows.inputs) if along is RowLayout.ELEMENT]
    packed = [i for i, along in enumerate(rows.inputs) if along in (RowLayout.ELEMENT, RowLayout.COLUMN)]
    numbers = ["rows", "n", *["part", "parts"] * shape.cut, *["size"] * reads_row_size(expression),
               *["cycle"] * (RowLayout.CYCLE in rows.inputs)]
    lines = [f'extern "C" __global__ void __launch_bounds__({shape.block}) rows('
             f"{', '.join([*parameters(shape.ins, shape.outs), *[f'{index} {name}' for name in numbers]])}) {{"]
    shared = "(" + kind + "*)0"
    if shape.threads > 32:
        lines.append(f"    __shared__ {kind} shared[{2 * shape.threads // 32}];")
        shared = "shared"
    lines += ["    int turn = 0;", f"    const {index} own = threadIdx.x % {shape.threads}u;",
              f"    const {index} side = {shape.side}u;  // rows that a block has at once",
              *[f"    {kind} s{i}[{shape.packs * shape.lanes}] = {{}};" for i in shape.summed],
              f"    for ({index} row = blockIdx.x * side + threadIdx.x / {shape.threads}u; row < rows; "
              "row += gridDim.x * side) {"]
    row = "row / parts" if shape.cut else "row"
    inner = [f"const {index} begin = {'row % parts * part' if shape.cut else '0'}, base = {row} * n + begin;",
             f"const {index} length = {'n - begin < part ? n - begin : part' if shape.cut else 'n'};"]
    own_place = {RowLayout.ROW: row, RowLayout.CYCLE: f"{row} % cycle", RowLayout.ALL: "0"}
    inner += [f"const {computed_in(shape.ins[i])} x{i} = wide(a{i}[{own_place[along]}]);"
              for i, along in enumerate(rows.inputs) if along in own_place]
    inner += of_the_row(rows, text, 0)
    if shape.packs:
        for i in elements:
            inner.append(f"Pack<{STORED[shape.ins[i].name]}, {shape.lanes}> h{i}[{shape.packs}];")
        loads = [f"h{i}[k] = load<{shape.lanes}>(a{i} + base + at);" for i in elements]
        inner += _pack_loop(shape, loads, index)
    for phase, (reduced, outs) in enumerate(_phases(rows, shape)):
        if reduced or outs:
            inner += _phase(rows, shape, text, packed, reduced, outs, kind, index)
        for p in reduced:
            name = KINDS[expression.code[p].prim.name]
            inner.append(f"const {kind} r{p} = across<{name}, {shape.threads}>(t{p}, {shared}, turn);")
            text.values[expression.arity + p] = Value(f"r{p}", kind)
        inner += of_the_row(rows, text, phase + 1)
    for i, (result, stored) in enumerate(zip(expression.results, shape.outs)):
        if stored is not None and rows.results[i] is RowLayout.ROW:
            inner.append(f"if (own == 0) b{i}[row] = {text.result(result, STORED[stored.name])};")
    return "\n".join([*lines, *indent(inner, 2), "    }", *indent(_stored_sums(shape, kind, index)), "}", ""])


def _stored_sums(shape: Shape, kind: str, index: str) -> list[str]:
    """The lines after all rows, which store the sums of a team."""
    if not shape.summed:
        return []
    body = []
    for i in shape.summed:
        body += [f"Pack<{kind}, {shape.lanes}> q{i};", "#pragma unroll",
                 f"for (int lane = 0; lane < {shape.lanes}; ++lane) q{i}.at[lane] = s{i}[k * {shape.lanes} + lane];",
                 f"store(b{i} + team * n + at, q{i});"]
    return [f"const {index} team = blockIdx.x * side + threadIdx.x / {shape.threads}u, length = n;",
            *_pack_loop(shape, body, index)]


def _phases(rows: RowExpression, shape: Shape) -> list[tuple[list[int], list[int]]]:
    """For each phase of a kernel, its reductions and the outputs that it stores. A phase without either reads no
    rows."""
    stored = [i for i, along in enumerate(rows.results) if along is RowLayout.ELEMENT and shape.outs[i] is not None]
    return [(rows.reduced(phase), stored if phase == rows.last_phase else []) for phase in range(rows.last_phase + 1)]


def _phase_instructions(rows: RowExpression, reduced: Sequence[int], outs: Sequence[int]
                        ) -> tuple[list[int], set[int | float]]:
    """The instructions of a phase, and the registers that it reads."""
    registers = [*[rows.expression.code[p].args[0] for p in reduced], *[rows.expression.results[i] for i in outs]]
    needed = rows.needed(registers)
    return needed, {a for p in needed for a in rows.expression.code[p].args} | set(registers)


def _passes(rows: RowExpression, shape: Shape) -> list[int]:
    """Number of times that a kernel reads each of its inputs."""
    reads = [_phase_instructions(rows, reduced, outs)[1] for reduced, outs in _phases(rows, shape)]
    return [sum(i in read for read in reads) if along is RowLayout.ELEMENT and not shape.packs else
            int(i in rows.expression.used) for i, along in enumerate(rows.inputs)]


def of_the_row(rows: RowExpression, text: Text, phase: int) -> list[str]:
    """The statements of registers with one value per row that can be computed from this phase on."""
    return list(map(text.line, rows.of_rows(phase)))


def _pack_loop(shape: Shape, body: Sequence[str], index: str) -> list[str]:
    """A loop over the packs of a row that a thread has; in ``body``, a pack begins ``at``."""
    step = shape.threads * shape.lanes
    if shape.packs:
        return ["#pragma unroll", f"for (int k = 0; k < {shape.packs}; ++k) {{",
                f"    const {index} at = k * {step}u + own * {shape.lanes}u;",
                "    if (at < length) {", *indent(body, 2), "    }", "}"]
    return [f"for ({index} at = own * {shape.lanes}u; at < length; at += {step}u) {{", *indent(body), "}"]


def _phase(rows: RowExpression, shape: Shape, text: Text, packed: Sequence[int], reduced: Sequence[int],
           outs: Sequence[int], kind: str, index: str) -> list[str]:
    """The lines of one pass over a row, which reduce or store results."""
    expression = rows.expression
    needed, read = _phase_instructions(rows, reduced, outs)
    lines = [f"{kind} t{p} = {KINDS[expression.code[p].prim.name]}::none<{kind}>();" for p in reduced]
    before, inside, after = [], [], []
    for i in packed:
        if i in read:
            if rows.inputs[i] is RowLayout.ELEMENT and shape.packs:
                pack = f"h{i}[k]"
            else:
                pack = f"p{i}"
                place = "begin + at" if rows.inputs[i] is RowLayout.COLUMN else "base + at"
                before.append(f"const auto p{i} = load<{shape.lanes}>(a{i} + {place});")
            inside.append(f"const {computed_in(shape.ins[i])} x{i} = wide({pack}.at[lane]);")
    inside += [text.line(p) for p in needed]
    for p in reduced:
        arg = expression.code[p].args[0]
        value = converted(text.values[arg], kind) if isinstance(arg, int) else literal(arg, kind)
        inside.append(f"t{p} = {KINDS[expression.code[p].prim.name]}::both(t{p}, {value});")
    for i in outs:
        dtype, result = shape.outs[i], expression.results[i]
        assert dtype is not None
        if i in shape.summed:
            inside.append(f"s{i}[k * {shape.lanes} + lane] += {text.result(result, kind)};")
            continue
        stored = STORED[dtype.name]
        before.append(f"Pack<{stored}, {shape.lanes}> q{i};")
        inside.append(f"q{i}.at[lane] = {text.result(result, stored)};")
        after.append(f"store(b{i} + base + at, q{i});")
    body = [*before, "#pragma unroll", f"for (int lane = 0; lane < {shape.lanes}; ++lane) {{", *indent(inside), "}",
            *after]
    return [*lines, *_pack_loop(shape, body, index)]


def bound_rows(rows: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], count: int, n: int,
               xp: ArrayModule, cycle: int = 1, size: int | None = None, part: int | None = None
               ) -> Callable[[], None]:
    """A step without arguments that computes ``count`` contiguous rows of ``n`` values.

    The expression reads ``size`` as the size of a row, by default ``n``. Rows that are only reduced may be split into
    parts of ``part`` elements; then there is a result for each part.
    """
    shape = shape_of(rows, ins, outs, count, n, part, size)
    index = np.uint64 if shape.far else np.uint32
    parts = 1 if part is None else -(-n // part)
    blocks = grid_of(xp, count * parts * shape.threads, shape.block)
    numbers = [count * parts, n, *([] if part is None else [part, parts]),
               *[n if size is None else size] * reads_row_size(rows.expression),
               *[cycle] * (RowLayout.CYCLE in rows.inputs)]
    written = [out for out in outs if out is not None]
    read = sum(own_bytes(array) * times for array, times in zip(ins, _passes(rows, shape)))
    return Launch(kernel_of(xp, rows_source(rows, shape), "rows"), blocks, shape.block,
                  [*ins, *written, *map(index, numbers)], read, sum(map(own_bytes, written)))


def bound_rows_with_sums(rows: RowExpression, ins: Sequence[Array], outs: Sequence[Array | None], count: int, n: int,
                         xp: ArrayModule, scratch: Callable[[int, spec.Shape, np.dtype], Array]
                         ) -> tuple[Launch, dict[int, Array]] | None:
    """A step without arguments that computes rows as ``bound_rows`` does, and adds values over rows in the same pass.
    It is returned with the sums of the teams of threads, by result, or values of rows, which are still to be added up.

    Parameters
    ----------
    rows : RowExpression
        Its results for columns are the sums; of those for all, the values of rows are stored.
    outs : sequence of arrays or None
        None for results that are not requested.
    scratch : function of number, shape and dtype
        Gives memory for the sums.

    Returns
    -------
    tuple or None
        None if registers do not hold a row and its sums.
    """
    requested = {i: rows.results[i] for i, out in enumerate(outs) if out is not None and rows.results[i] in ACROSS}
    summed = [i for i, along in requested.items() if along is RowLayout.COLUMN]
    expression = rows.expression
    added = [rows.expression.results[i] if rows.addend(i) is None else rows.addend(i) for i in range(len(outs))]
    rows = RowExpression(Expression.of(expression.arity, expression.code, [r for r in added if r is not None]),
                         rows.inputs)
    shape = shape_of(rows, ins, [None if i in requested else out for i, out in enumerate(outs)], count, n)
    if summed and (not shape.packs or shape.threads > _ADDING):
        return None
    # Each team gets a few rows, so that its sums are small beside the data; but not so many that a multiprocessor has
    # no block.
    each = max(1, min(_EACH, 8 * count // (shape.side * grid_of(xp, 1 << 30, 1))))
    blocks = -(-count // (shape.side * each))
    dtype = np.dtype(np.float64 if any(array.dtype.itemsize == 8 for array in ins) else np.float32)
    sums = {i: scratch(i, (blocks * shape.side, n) if i in summed else (count,), dtype) for i in requested}
    shape = shape._replace(outs=tuple([dtype if i in sums else stored for i, stored in enumerate(shape.outs)]),
                           summed=tuple(summed))
    written = [out for i, array in enumerate(outs) if (out := sums.get(i, array)) is not None]
    numbers = [count, n, *[n] * reads_row_size(rows.expression)]
    index = np.uint64 if shape.far else np.uint32
    return Launch(kernel_of(xp, rows_source(rows, shape), "rows"), blocks, shape.block,
                  [*ins, *written, *map(index, numbers)],
                  sum(own_bytes(array) * times for array, times in zip(ins, _passes(rows, shape))),
                  sum(map(own_bytes, written))), sums
