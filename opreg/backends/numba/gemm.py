"""Matrix products inside compiled functions, for recurrences whose products are too small for a call of BLAS.

The right matrix is packed first, into panels of a few columns: as many as fit into two registers. The rows of a panel
are consecutive in memory, so that it is read in order. A tile is some rows of the left matrix times one or two
neighbouring panels; its sums stay in registers to the end, and are then added to the output.

The code of a tile is emitted instruction by instruction, since the compiler does not hold the sums of a plain loop in
registers. With the loop over columns as the outer one, 32 x 128 by 128 x 512 takes 19 times as long in float32 and 8
times in float64; with the loop over features as the outer one, 6 and 26 times; 8 x 20 by 20 x 32 takes 1.6 to 6 times
as long (minimum of alternating rounds, one core).
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opreg.core.cache import cached
from opreg.typing import Array

from .simd import lanes, registers

if TYPE_CHECKING:
    from llvmlite.ir import Constant, IRBuilder, Value
    from numba.core.base import BaseContext
    from numba.core.types import Type
    from numba.core.typing import Signature
    from numba.core.typing.context import BaseContext as Typing

__all__ = ["DEPTH", "FEW", "pack", "padded", "product", "transposed", "pack_transpose", "width"]

#: Rows of the smaller tile. If the number of rows is a multiple of it, no row is computed singly.
FEW = 4
# The number of registers in a row of a panel, and of panels in a tile with 32 registers: with two panels, fewer
# elements are loaded for each sum.
_VECTORS, _PANELS = 2, 2
# The numbers of rows of the larger tile: of one panel with 32 registers, of one panel with 16, and of two panels. Sums
# take two registers per row and panel, the row of a panel takes two, and the element of the left matrix takes one. With
# more rows, sums would be stored and loaded again at every step.
_MOST, _MOST_OF_16, _MOST_OF_TWO = 8, 6, 6
#: The number of rows of a panel that stay in the first-level cache while many tiles read them.
DEPTH = 128


def width(dtype: np.dtype) -> int:
    """The number of columns of a panel."""
    return _VECTORS * lanes(dtype)


def padded(columns: int, dtype: np.dtype) -> int:
    """A number of columns, rounded up to whole panels."""
    return -(-columns // width(dtype)) * width(dtype)


@cached(16)
def _rows(dtype: np.dtype, panels: int) -> Callable[..., None]:
    """A compiled function, which texts of kernels call: it multiplies a matrix by neighbouring panels, and adds the
    product to columns of another matrix.

    Its parameters are those of a tile, and the number of rows.
    """
    numba = importlib.import_module("numba")
    large = _MOST_OF_16 if registers() <= 16 else _MOST if panels == 1 else _MOST_OF_TWO
    tall, short, single = [_tile(dtype, rows, panels) for rows in (large, FEW, 1)]

    @numba.njit(error_model="numpy")
    def add_rows(a: Array, a0: int, apart: int, step: int, features: int, b: Array, b0: int, c: Array, c0: int,
                 wide: int, rows: int) -> None:
        rest = rows % large
        # with one large tile fewer, fewer rows are computed singly
        if rows > large and (rest + large) % FEW < rest % FEW:
            rest += large
        whole, half = rows - rest, rows - rest % FEW
        for row in range(0, whole, large):
            tall(a, a0 + row * apart, apart, step, features, b, b0, c, c0 + row * wide, wide)
        for row in range(whole, half, FEW):
            short(a, a0 + row * apart, apart, step, features, b, b0, c, c0 + row * wide, wide)
        for row in range(half, rows):
            single(a, a0 + row * apart, apart, step, features, b, b0, c, c0 + row * wide, wide)

    return add_rows


@cached(16)
def _panels(dtype: np.dtype) -> Callable[..., None]:
    """A function for generated code: it adds the product of a matrix and panels to a matrix, several panels at a time.

    Its parameters are those of a tile, and the numbers of panels and of rows.
    """
    numba = importlib.import_module("numba")
    columns, count = width(dtype), _PANELS if registers() > 16 else 1
    several, one = _rows(dtype, count), _rows(dtype, 1)

    @numba.njit(error_model="numpy")
    def add_panels(a: Array, a0: int, apart: int, step: int, features: int, b: Array, b0: int, c: Array, c0: int,
                   wide: int, panels: int, rows: int) -> None:
        whole = panels // count * count
        for panel in range(0, whole, count):
            several(a, a0, apart, step, features, b, b0 + panel * features * columns, c, c0 + panel * columns, wide,
                    rows)
        for panel in range(whole, panels):
            one(a, a0, apart, step, features, b, b0 + panel * features * columns, c, c0 + panel * columns, wide, rows)

    return add_panels


def product(dtype: np.dtype) -> Callable[..., None]:
    """A function for generated code: it adds a product to a matrix.

    ``product(a, a0, apart, features, b, b0, c, c0, wide, panels, rows)``: the left matrix begins at ``a[a0]``, with
    ``features`` values (at least one) in a row and a distance of ``apart`` from row to row. It is multiplied by the
    panels that begin at ``b[b0]``, and the product is added to rows at a distance of ``wide`` that begin at ``c[c0]``.
    """
    numba = importlib.import_module("numba")
    add_panels = _panels(dtype)

    @numba.njit(error_model="numpy")
    def add_product(a: Array, a0: int, apart: int, features: int, b: Array, b0: int, c: Array, c0: int, wide: int,
                    panels: int, rows: int) -> None:
        add_panels(a, a0, apart, 1, features, b, b0, c, c0, wide, panels, rows)

    return add_product


@cached(16)
def pack(dtype: np.dtype) -> Callable[..., None]:
    """A function for generated code: it packs a matrix into panels (panels, rows, width), the last padded with zeros.

    ``pack(a, a0, rows, across, out, out0)``: the matrix has ``rows`` rows of ``across`` values and begins at ``a[a0]``.
    """
    numba = importlib.import_module("numba")
    columns = width(dtype)

    @numba.njit(error_model="numpy")
    def pack_rows(a: Array, a0: int, rows: int, across: int, out: Array, out0: int) -> None:
        for panel in range(-(-across // columns)):
            some = min(columns, across - panel * columns)
            for row in range(rows):
                start, to = a0 + row * across + panel * columns, out0 + (panel * rows + row) * columns
                for i in range(some):
                    out[to + i] = a[start + i]
                for i in range(some, columns):
                    out[to + i] = 0

    return pack_rows


def pack_transpose(dtype: np.dtype) -> Callable[..., None]:
    """A function for generated code: it packs the transpose of a matrix.

    ``pack_transpose(a, a0, rows, across, out, out0)``: like ``pack``, but the rows of the matrix become columns of
    panels. The last panel is not padded: products with its unused columns give results that are not read.
    """
    numba = importlib.import_module("numba")
    columns, count, square = width(dtype), lanes(dtype), _square(dtype)

    @numba.njit(error_model="numpy")
    def pack_columns(a: Array, a0: int, rows: int, across: int, out: Array, out0: int) -> None:
        for row in range(0, rows, count):
            start, to, many = a0 + row * across, out0 + row // columns * columns * across + row % columns, rows - row
            whole = across // count * count if many >= count else 0
            for k in range(0, whole, count):
                square(a, start + k, across, out, to + k * columns, columns)
            for k in range(whole, across):
                for i in range(min(many, count)):
                    out[to + k * columns + i] = a[start + i * across + k]

    return pack_columns


def transposed(dtype: np.dtype) -> Callable[..., None]:
    """A function for generated code: it adds the product of a transpose to a matrix.

    ``transposed(a, a0, many, features, b, across, work, work0, c, c0, wide, rows)``: the matrix at ``a`` has
    ``features`` rows of ``many`` values; ``rows`` of its columns, from ``a0`` on, are the rows of the left factor. The
    matrix at ``b`` has rows of ``across`` values. Some of these at a time are packed to ``work``, which holds ``DEPTH *
    wide`` values.
    """
    numba = importlib.import_module("numba")
    columns, prepare, add_panels = width(dtype), pack(dtype), _panels(dtype)

    @numba.njit(error_model="numpy")
    def add_transposed(a: Array, a0: int, many: int, features: int, b: Array, across: int, work: Array, work0: int,
                       c: Array, c0: int, wide: int, rows: int) -> None:
        for start in range(0, features, DEPTH):
            deep = min(DEPTH, features - start)
            prepare(b, start * across, deep, across, work, work0)
            add_panels(a, a0 + start * many, 1, many, deep, work, work0, c, c0, wide, wide // columns, rows)

    return add_transposed


def _tile(dtype: np.dtype, rows: int, panels: int) -> Callable[..., None]:
    """The instructions of a tile: ``tile(a, a0, row, step, features, b, b0, c, c0, wide)``.

    In ``a``, the distance from row to row is ``row``, and that of neighbouring values in a row ``step``.
    """
    types, extending = (importlib.import_module(f"numba.{name}") for name in ("types", "extending"))
    ir = importlib.import_module("llvmlite.ir")
    number, whole = getattr(types, dtype.name), types.int64
    pointer = types.CPointer(number)
    scalar = ir.FloatType() if dtype.itemsize == 4 else ir.DoubleType()
    count = lanes(dtype)
    vector = ir.VectorType(scalar, count)

    def constant(value: int) -> Constant:
        return ir.Constant(ir.IntType(64), value)

    def emit(context: BaseContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        a, a0, apart, step, features, b, b0, c, c0, wide = args
        multiply_add = builder.module.declare_intrinsic(
            f"llvm.fmuladd.v{count}f{dtype.itemsize * 8}", fnty=ir.FunctionType(vector, [vector] * 3))
        unset = ir.Constant(vector, ir.Undefined)
        first_lane = ir.Constant(ir.VectorType(ir.IntType(32), count), None)

        def at(base: Value, *offsets: Value) -> Value:
            for offset in offsets:
                base = builder.gep(base, [offset])
            return base

        def vectors(base: Value, apart: Value) -> list[Value]:
            starts = [at(base, builder.mul(apart, constant(panel))) for panel in range(panels)]
            return [builder.bitcast(at(start, constant(i * count)), vector.as_pointer())
                    for start in starts for i in range(_VECTORS)]

        def loaded(places: list[Value]) -> list[Value]:
            return [builder.load(place, align=dtype.itemsize) for place in places]

        def broadcast(value: Value) -> Value:
            first = builder.insert_element(unset, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(first, unset, first_lane)

        lines = [at(a, a0, builder.mul(apart, constant(row))) for row in range(rows)]
        next_panel = builder.mul(features, constant(_VECTORS * count))
        targets = [vectors(at(c, c0, builder.mul(wide, constant(row))), constant(_VECTORS * count))
                   for row in range(rows)]
        start = [loaded(target) for target in targets]
        before, loop, done = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(features.type)
        sums = [[builder.phi(vector) for _ in range(panels * _VECTORS)] for _ in range(rows)]
        right_row = loaded(vectors(at(b, b0, builder.mul(k, constant(_VECTORS * count))), next_panel))
        here, more = builder.mul(k, step), []
        for row in range(rows):
            left = broadcast(builder.load(at(lines[row], here)))
            more.append([builder.call(multiply_add, [left, right, total])
                         for right, total in zip(right_row, sums[row])])
        following = builder.add(k, constant(1))
        builder.cbranch(builder.icmp_signed("<", following, features), loop, done)
        for value, first, next_one in [(k, constant(0), following), *itertools.chain(*map(zip, sums, start, more))]:
            value.add_incoming(first, before)
            value.add_incoming(next_one, loop)

        builder.position_at_end(done)
        for total, place in zip(itertools.chain(*more), itertools.chain(*targets)):
            builder.store(total, place, align=dtype.itemsize)
        return context.get_dummy_value()

    def tile(typing: Typing, a: Type, a0: Type, row: Type, step: Type, features: Type, b: Type, b0: Type, c: Type,
             c0: Type, wide: Type) -> tuple[Signature, Callable[..., Value]]:
        return types.void(pointer, *[whole] * 4, pointer, whole, pointer, whole, whole), emit

    return extending.intrinsic(tile)


def _square(dtype: np.dtype) -> Callable[..., None]:
    """The instructions that transpose a square block with as many rows and columns as a register has elements.

    ``square(a, a0, apart, out, out0, wide)``: the rows begin at ``a[a0]`` and at ``out[out0]``, at distances of
    ``apart`` and ``wide``.
    """
    types, extending = (importlib.import_module(f"numba.{name}") for name in ("types", "extending"))
    ir = importlib.import_module("llvmlite.ir")
    number, whole = getattr(types, dtype.name), types.int64
    pointer, count = types.CPointer(number), lanes(dtype)
    vector = ir.VectorType(ir.FloatType() if dtype.itemsize == 4 else ir.DoubleType(), count)

    def emit(context: BaseContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        a, a0, apart, out, out0, wide = args

        def places(base: Value, start: Value, distance: Value) -> list[Value]:
            offsets = [builder.add(start, builder.mul(distance, ir.Constant(ir.IntType(64), i))) for i in range(count)]
            return [builder.bitcast(builder.gep(base, [offset]), vector.as_pointer()) for offset in offsets]

        def merged(one: Value, other: Value, numbers: Sequence[int]) -> Value:
            return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), count), numbers))

        rows = [builder.load(place, align=dtype.itemsize) for place in places(a, a0, apart)]
        step = 1
        while step < count:  # in blocks of twice ``step`` rows, the two quarters off the diagonal are exchanged
            upper = [i + count - step if i & step else i for i in range(count)]
            lower = [i + count if i & step else i + step for i in range(count)]
            for i in range(count):
                if not i & step:
                    pair = rows[i], rows[i + step]
                    rows[i], rows[i + step] = merged(*pair, upper), merged(*pair, lower)
            step *= 2
        for row, place in zip(rows, places(out, out0, wide)):
            builder.store(row, place, align=dtype.itemsize)
        return context.get_dummy_value()

    def square(typing: Typing, a: Type, a0: Type, apart: Type, out: Type, out0: Type, wide: Type
               ) -> tuple[Signature, Callable[..., Value]]:
        return types.void(pointer, whole, whole, pointer, whole, whole), emit

    return extending.intrinsic(square)
