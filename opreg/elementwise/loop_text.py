"""Loops as generated Python functions, which call ufuncs of NumPy or CuPy.

The generated function takes inputs and outputs for some of the sets, in the shape of the loop's view. Every instruction
is one call that writes to free memory: to an output whose own result is computed later, to a temporary that is no
longer read, else to a new one. If it is faster, the sets are split into parts that fit into the cache, and threads
share the parts.
"""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import string
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..core.addresses import address_of
from ..core.array_module import einsum_of
from ..core.cache import cached
from ..core.host_memory import LARGE, empty
from ..core.spec import Shape, is_numpy_float
from ..core.steps import own_bytes
from ..core.threads import parts_of, run
from ..typing import Array, ArrayModule
from .expression import Primitive
from .loops import Loop
from .output_memory import OutputMemory
from .rows import ACROSS, REDUCTIONS, RowExpression, RowLayout

__all__ = ["LONG", "Layout", "bound_loop", "computed_in", "loop_text", "prepared_loop", "run_loop"]

# Sets of up to _SHORT elements are transposed before their reduction: reductions of short rows cost more than two
# transpositions. Sums of more than LONG elements are pairwise.
_SHORT, LONG = 32, 1 << 14
# Functions that return a new array: ``where`` has no ``out``, and ``sign`` with one takes ten times as long.
_WITHOUT_OUT = ("where", "sign")
# Threads are used from this number of element-wise instructions on: with fewer, memory is the limit.
_SHARED = 4


class Layout(NamedTuple):
    """Properties that the text of a loop depends on besides its instructions.

    Attributes
    ----------
    rank : int
        Number of axes of the view.
    axes : tuple of int
        The axes that sets lie along.
    converted : tuple of bool
        For each input, whether its dtype differs from the one that the loop is computed in.
    direct : tuple of (bool or None)
        For each output, whether results are computed directly into it; None if it is not read.
    shared : tuple of (tuple of int)
        For each output, the inputs that share its memory.
    turned : bool
        Whether sets are computed transposed.
    long : bool
        Whether sums are pairwise.
    reduces : bool
        Whether no result has a value per element.
    """

    rank: int
    axes: tuple[int, ...]
    converted: tuple[bool, ...]
    direct: tuple[bool | None, ...]
    shared: tuple[tuple[int, ...], ...]
    turned: bool
    long: bool
    reduces: bool = False


def computed_in(loop: Loop, ins: Sequence[np.dtype], outs: Sequence[np.dtype | None]) -> np.dtype:
    """The dtype that a loop is computed in.

    It is float64 if an input or output with a value per element, or an output of a reduction, has this dtype. It is
    ``loop.integer_dtype`` if all such inputs, or all outputs of a reduction, are integers. Otherwise it is float32.
    """
    reduces = RowLayout.ELEMENT not in loop.rows.results
    read = [dtype for dtype, along in zip(ins, loop.rows.inputs) if along is RowLayout.ELEMENT]
    result_dtypes = [dtype for dtype, along in zip(outs, loop.rows.results)
            if dtype is not None and (reduces or along is RowLayout.ELEMENT)]
    wide = any(is_numpy_float(dtype) and dtype.itemsize == 8 for dtype in (*read, *result_dtypes))
    if reduces and result_dtypes and all(dtype.kind in "iu" for dtype in result_dtypes):
        return np.dtype(loop.integer_dtype)
    if not wide and all(dtype.kind in "iub" for dtype in read):
        return np.dtype(loop.integer_dtype)
    return np.dtype(np.float64 if wide else np.float32)


# ------------------------------------------------------------------------------------------------ the text


class _Writer:
    """Generates the text of a loop, instruction by instruction."""

    def __init__(self, rows: RowExpression, layout: Layout):
        self.rows, self.layout = rows, layout
        self.code, self.arity = rows.expression.code, rows.expression.arity
        self.lines: list[str] = []
        self.names = [f"x{i}" for i in range(self.arity)] + [f"r{p}" for p in range(len(self.code))]
        self.axes = (0,) if layout.turned else layout.axes
        letters = string.ascii_lowercase[8:8 + layout.rank]
        kept_letters = "".join(letter for axis, letter in enumerate(letters) if axis not in self.axes)
        self.letters = letters, kept_letters
        self.new_axes, self.new_set_axes = [
            f"[{', '.join('None' if (axis in self.axes) is reduced else ':' for axis in range(layout.rank))}]"
            for reduced in (True, False)]
        self.axis = str(self.axes[0] if len(self.axes) == 1 else self.axes)
        # Whether the values of a register differ within a set, and among sets.
        self.within = [along in (RowLayout.ELEMENT, RowLayout.COLUMN) for along in rows.inputs]
        self.among = [along is not RowLayout.COLUMN for along in rows.inputs]
        self.spans = list(self.among)  # whether its array has values for all sets
        for prim, args in self.code:
            read = [a for a in args if isinstance(a, int)]
            self.spans.append(any(self.spans[a] for a in read))
            reduced = prim.name in REDUCTIONS
            self.within.append(prim.name == "column" or (not reduced and any(self.within[a] for a in read)))
            # If a reduction runs over values that differ only within a set, its result is the same for all sets, and is
            # an array.
            self.among.append(prim.name != "column_sum" and any(
                self.among[a] or (reduced and self.within[a]) for a in read))
        self.factors = self._factors()
        self.last = self._last_uses()
        self.constants: dict[str, int] = {}
        self.memory: dict[int, str] = {}  # names of arrays by register; an input's own memory has none
        self.free: list[str] = []
        self.outputs = OutputMemory(rows.expression.results, self.arity, self.last, layout.shared)
        self.first = next((i for i, along in enumerate(rows.inputs) if along is RowLayout.ELEMENT), None)

    # A product that is only summed is not stored.

    def _factors(self) -> dict[int, tuple[int, int]]:
        """For each sum of a product or a square that nothing else reads, its two factors."""
        if self.layout.long or self.layout.turned:
            return {}
        uses: dict[int, int] = {}
        for a in (*self.rows.expression.results, *[a for _, args in self.code for a in args]):
            if isinstance(a, int):
                uses[a] = uses.get(a, 0) + 1
        found: dict[int, tuple[int, int]] = {}
        for position, (prim, args) in enumerate(self.code):
            source = args[0] if prim.name in ("row_sum", "column_sum") else None
            if not isinstance(source, int) or source < self.arity or uses[source] > 1:
                continue
            inner, factors = self.code[source - self.arity]
            pair = (factors[0], factors[0]) if inner.name == "square" else factors if inner.name == "multiply" else ()
            if len(pair) == 2 and all(isinstance(a, int) and self._is_full(a) for a in pair):
                found[self.arity + position] = pair  # type: ignore[assignment]  # of two registers
        return found

    @functools.cached_property
    def skipped(self) -> set[int]:
        """The products that are summed without being stored."""
        return {self.code[register - self.arity].args[0] for register in self.factors}  # type: ignore[misc]

    @functools.cached_property
    def conditions(self) -> set[int]:
        """Logical registers that only ``where`` reads; they stay boolean arrays."""
        elsewhere = {a for prim, args in self.code for a in args[prim.name == "where":]}
        return {self.arity + p for p, (prim, _) in enumerate(self.code) if prim.logical} - elsewhere - {
            *self.rows.expression.results}

    def _reads(self, register: int) -> tuple[int | float, ...]:
        return self.factors.get(register, self.code[register - self.arity].args)

    def _last_uses(self) -> dict[int, int]:
        """For each register, the position of the last instruction that reads it; results are read after all of them."""
        last: dict[int, int] = {}
        for position in range(len(self.code)):
            if self.arity + position not in self.skipped:
                last.update({a: position for a in self._reads(self.arity + position) if isinstance(a, int)})
        last.update({result: len(self.code) for result in self.rows.expression.results if isinstance(result, int)})
        return last

    def text(self) -> str:
        """The function ``tile(x0, ..., y0, ...)``."""
        layout, expression = self.layout, self.rows.expression
        outs = [f"y{j}" for j, direct in enumerate(layout.direct) if direct is not None]
        self.lines.append(f"def tile({', '.join([*self.names[:self.arity], *outs])}):")
        self._open()
        for position in range(len(self.code)):
            if self.arity + position not in self.skipped:
                self._instruct(position)
        for j, (result, direct) in enumerate(zip(expression.results, layout.direct)):
            if direct is None or (isinstance(result, int) and self.memory.get(result) == f"y{j}"):
                continue
            turned = layout.turned and isinstance(result, int)
            self._line(f"y{j}[...] = {self._operand(result)}{'.T' if turned else ''}")
        return "\n".join([*self.lines, ""])

    def _line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def _open(self) -> None:
        """Write the lines that convert, transpose or copy inputs."""
        for i, (converted, along) in enumerate(zip(self.layout.converted, self.rows.inputs)):
            if i not in self.last:
                continue
            name, full = self.names[i], along is RowLayout.ELEMENT
            if converted and self.layout.reduces and all(
                    prim.name in REDUCTIONS for prim, args in self.code if i in args):
                continue  # the reduction converts the elements itself
            if self.layout.turned:
                self._line(f"{name} = array({name}.T, dtype, order='C')" if full or converted else f"{name} = {name}.T")
            elif converted:
                self._line(f"{name} = {name}.astype(dtype)")
            elif self._is_overwritten(i):
                self._line(f"{name} = {name}.copy()")
            if converted or (self.layout.turned and full):
                self.memory[i] = name

    def _is_overwritten(self, i: int) -> bool:
        """Whether an input is itself a result, and another output shares its memory."""
        is_result = [isinstance(result, int) and result == i for result in self.rows.expression.results]
        return any(is_result) and any(i in inputs and not same for inputs, same in zip(self.layout.shared, is_result))

    def _operand(self, value: int | float) -> str:
        if isinstance(value, int):
            return self.memory.get(value, self.names[value])
        return f"c{self.constants.setdefault(repr(value), len(self.constants))}"

    def _instruct(self, position: int) -> None:
        register = self.arity + position
        prim, _ = self.code[position]
        reads = self._reads(register)
        name = self.names[register]
        if prim.name in REDUCTIONS:
            self._release(position, [a for a in reads if isinstance(a, int)])
            call = self._reduction_text(prim.name, register, reads)
            if register in self.memory:
                self._line(call)
            else:
                self._line(f"{name} = {call}")
                self.memory[register] = name
        elif prim.name == "column_sum":
            self._release(position, [a for a in reads if isinstance(a, int)])
            self._line(f"{name} = {self._set_sum_text(register, reads)}")
        elif prim.name in ("column", "row_size"):
            self._line(f"{name} = {'places()' if prim.name == 'column' else 'size'}")
        elif not self.within[register] and not self.among[register]:
            self._line(f"{name} = float(host_{prim.name}({', '.join(map(self._operand, reads))}))")
        else:
            self._compute(prim, register, position, reads)

    def _reduction_text(self, kind: str, register: int, reads: Sequence[int | float]) -> str:
        """The text of the call of a reduction."""
        (letters, output_letters), value = self.letters, self._operand(reads[0])
        source = reads[0]
        if not isinstance(source, int) or not self.within[source]:  # the same value for all elements of a set
            return {"row_sum": f"{value} * size", "row_product": f"power({value}, size)"}.get(kind, f"{value} + 0.0")
        is_full = self._is_full(source)
        if kind == "row_sum" and len(reads) == 2 and register in self.factors:
            second = self._operand(reads[1])
            return f"einsum('{letters},{letters}->{output_letters}', {value}, {second}){self.new_axes}"
        if kind == "row_sum" and is_full and self.layout.turned:
            return f"ones.dot({value})[None]"  # the ufunc matmul takes twice as long
        if kind == "row_sum" and is_full and not self.layout.long:
            return f"einsum('{letters}->{output_letters}', {value}){self.new_axes}"
        if source >= self.arity or source in self.memory or not self.layout.converted[source]:
            return f"{kind}({value}, {self.axis}, None, {self._target(register)}, True)"
        if kind in ("row_sum", "row_product"):  # converts the elements itself
            return f"{kind}({value}, {self.axis}, dtype, {self._target(register)}, True)"
        return f"{kind}({value}, {self.axis}, None, None, True)"  # an extreme of the elements as they are

    def _set_sum_text(self, register: int, reads: Sequence[int | float]) -> str:
        """The text of a sum over sets."""
        letters = self.letters[0]
        kept = "".join([letters[axis] for axis in self.axes]) if self.within[register] else ""
        if not isinstance(reads[0], int) or not self.among[reads[0]]:  # the same values for all sets
            return f"{self._operand(reads[0])} * (x{self.first}.size / size)"
        read = ",".join([letters] * len(reads))
        return f"einsum('{read}->{kept}', {', '.join(map(self._operand, reads))}){self.new_set_axes if kept else ''}"

    def _target(self, register: int) -> str:
        """The output that a register with a value per set is computed into: its own, or that of the only instruction
        which reads it."""
        of_sets = self.layout.reduces and self.spans[register] and not self.within[register]
        for j, result in enumerate(self.rows.expression.results if of_sets else ()):
            place = f"y{j}"
            if not self.layout.direct[j] or self.layout.shared[j] or not isinstance(result, int):
                continue
            if result == register or (j not in self.outputs.lent and self.last[register] == result - self.arity):
                self.outputs.lent[j] = register
                self.memory[register] = place
                return place
        return "None"

    def _is_full(self, register: int) -> bool:
        return self.within[register] and self.among[register]

    def _compute(self, prim: Primitive, register: int, position: int, reads: Sequence[int | float]) -> None:
        """Write an instruction that is computed per element or per set."""
        operands = [self._operand(a) for a in reads]
        name, function = self.names[register], prim.name
        if function == "reciprocal":  # takes twice as long as the division
            operands, function = [self._operand(1.0), *operands], "divide"
        dying = [a for a in dict.fromkeys(reads) if isinstance(a, int) and self.last[a] == position]
        call = f"{function}({', '.join(operands)}"
        if not self._is_full(register):
            self._release(position, dying)
            target = "None" if prim.logical or function == "where" else self._target(register)
            if target != "None":
                self._line(f"{call}, {'out=' if prim.name in ('maximum', 'minimum') else ''}{target})")
                return
            self._line(f"{name} = {call})" + ".astype(dtype)" * prim.logical)
            self.memory[register] = name
            return
        if function in _WITHOUT_OUT or register in self.conditions:  # these allocate their result themselves
            self._release(position, dying)
            self._line(f"{name} = {call})")
            if function in _WITHOUT_OUT and self.spans[register]:
                self.memory[register] = name
            return
        place = self._place(register, position, dying)
        self.memory[register] = place
        named = "out=" if prim.name in ("maximum", "minimum") else ""
        self._line(f"{call}, {named}{place})")

    def _release(self, position: int, registers: Sequence[int]) -> None:
        """Free the memory of registers that are read for the last time here."""
        for register in dict.fromkeys(registers):
            place = self.memory.get(register)
            if self.last[register] != position or place is None or not self._is_full(register):
                continue
            if not (self.outputs.give_back(register) or place in self.free or place.startswith("y")):
                self.free.append(place)

    def _place(self, register: int, position: int, dying: Sequence[int]) -> str:
        """The memory for a register with a value per element: its own output, another output until the result of that
        is computed, a free temporary, or a new one."""
        self._release(position, dying)

        def fits(j: int) -> bool:
            return bool(self.layout.direct[j]) and self.rows.results[j] is RowLayout.ELEMENT

        output = self.outputs.own(register, position)
        if output is None or not fits(output):
            output = self.outputs.borrowed(register, position, fits)
        if output is not None:
            return f"y{output}"
        if self.free:
            return self.free.pop()
        name = f"t{position}"
        self._line(f"{name} = empty({self._shape()}, dtype)")
        return name

    def _shape(self) -> str:
        if self.first is None:
            return "shape"
        turned = self.layout.turned and self.first not in self.last  # an input that is never read was not transposed
        return f"x{self.first}{'.T' if turned else ''}.shape"


def loop_text(rows: RowExpression, layout: Layout) -> str:
    """The text of a function ``tile`` of the inputs and outputs of some sets.

    Examples
    --------
    >>> from opreg.elementwise.expression import exp
    >>> from opreg.elementwise.rows import row_sum, trace_rows
    >>> rows = trace_rows(lambda x: exp(x) / row_sum(exp(x)), (RowLayout.ELEMENT,))
    >>> print(loop_text(rows, Layout(2, (1,), (False,), (True,), ((),), False, False)))
    def tile(x0, y0):
        exp(x0, y0)
        r1 = einsum('ij->i', y0)[:, None]
        divide(y0, r1, y0)
    <BLANKLINE>
    """
    return _text_and_constants(rows, layout)[0]


@cached(512)
def _text_and_constants(rows: RowExpression, layout: Layout) -> tuple[str, list[float]]:
    """The text, and the constants that it reads as ``c0``, ``c1`` and so on."""
    writer = _Writer(rows, layout)
    text = writer.text()
    return text, [float(number) for number in writer.constants]


# ------------------------------------------------------------------------------------------------ functions


@cached(512)
def _compiled(text: str) -> CodeType:
    module_code = compile(text, "<loop>", "exec")
    return next(const for const in module_code.co_consts if isinstance(const, CodeType))


def _places(xp: ArrayModule, size: int, dtype: np.dtype, shape: Shape) -> Array:
    """Index of each element in its set."""
    return xp.arange(size, dtype=dtype).reshape(shape)


def _reduction(xp: ArrayModule, name: str) -> Callable[..., Array]:
    """A reduction with the parameters of ``ufunc.reduce``."""
    if xp is np:
        ufunc: np.ufunc = {"row_sum": np.add, "row_max": np.maximum, "row_min": np.minimum, "row_product": np.multiply}[
            name]
        return ufunc.reduce
    if name in ("row_max", "row_min"):
        if name == "row_max":
            return lambda array, axis, dtype, out, _: xp.max(array, axis=axis, out=out, keepdims=True)

        def least(array: Array, axis: Any, dtype: Any, out: Array | None, _: bool) -> Array:
            found = xp.min(array, axis=axis, keepdims=True)  # CuPy 14.2 fails with `out`, which it takes for a dtype
            if out is None:
                return found
            out[...] = found
            return out

        return least
    add = xp.sum if name == "row_sum" else xp.prod
    return lambda array, axis, dtype, out, _: add(array, axis=axis, dtype=dtype, out=out, keepdims=True)


@cached(512)
def _tile(loop: Loop, layout: Layout, dtype: np.dtype, xp: ArrayModule) -> Callable[..., None]:
    """The compiled function of the inputs and outputs of some sets."""
    size = loop.size
    space: dict[str, Any] = {
        "__builtins__": builtins, "dtype": dtype, "divide": xp.divide,
        "empty": empty if xp is np else xp.empty, "array": xp.array, "einsum": einsum_of(xp),
        "power": xp.power, "shape": loop.view, "size": np.asarray(size, dtype) if xp is np else float(size)}
    for prim, _ in loop.rows.expression.code:
        if prim.name in REDUCTIONS:
            space[prim.name] = _reduction(xp, prim.name)
        elif prim.name == "column":
            place = (size, 1) if layout.turned else loop.place(RowLayout.COLUMN)
            make = functools.partial(_places, xp, size, dtype, place)
            # On the host one array serves all runs, since making it takes as long as comparing 300 elements with it.
            space["places"] = itertools.repeat(make()).__next__ if xp is np and size <= LONG else make
        elif prim.name not in ("row_size", "column_sum"):
            space[prim.name] = prim.resolve(xp)
            # Values that are the same for all sets are computed on the host.
            space[f"host_{prim.name}"] = prim.resolve(np)
    if layout.turned:
        space["ones"] = xp.ones(size, dtype)
    text, constants = _text_and_constants(loop.rows, layout)
    # a ufunc of the host takes half as long for a constant in an array as for a Python number
    for number, value in enumerate(constants):
        space[f"c{number}"] = np.asarray(value, dtype) if xp is np else value
    tile = FunctionType(_compiled(text), space)
    tile.__dict__["plain"] = True  # the function calls only ufuncs
    return tile


def _layout_of(loop: Loop, ins: Sequence[np.dtype], outs: Sequence[np.dtype | None], dtype: np.dtype, xp: ArrayModule,
               shared: tuple[tuple[int, ...], ...] | None = None) -> Layout:
    rows, size = loop.rows, loop.size
    extreme = any(prim.name in ("row_max", "row_min") for prim, _ in rows.expression.code)
    reduces = RowLayout.ELEMENT not in rows.results
    turned = xp is np and len(loop.view) == 2 and size <= _SHORT and extreme and not reduces
    floating = is_numpy_float(dtype)  # a quotient of integers cannot be written to an integer array
    direct = tuple([None if out is None else out == dtype and floating and not (turned and along is RowLayout.ELEMENT)
                    for out, along in zip(outs, rows.results)])
    return Layout(len(loop.view), loop.axes, tuple([dtype_in != dtype for dtype_in in ins]), direct,
                  shared or ((),) * len(outs), turned, reduces or size > LONG, reduces)


def _as_view(loop: Loop, array: Array, along: RowLayout) -> Array:
    """An array reshaped to the view of a loop."""
    shape = loop.place(along)
    return array if array.shape == shape else array.reshape(shape)


def _is_empty(loop: Loop) -> bool:
    """Whether there is nothing to compute, and nothing to reduce."""
    return math.prod(loop.view) == 0 and all(along is RowLayout.ELEMENT for along in loop.rows.results)


def _parts(loop: Loop, arrays: Sequence[Array], row_layouts: Sequence[RowLayout], rows: slice) -> list[Array]:
    """The parts of the arrays that belong to some sets."""
    length = loop.view[0]
    return [array if array.shape[0] != length or along is RowLayout.COLUMN else array[rows]
            for array, along in zip(arrays, row_layouts)]


def run_loop(loop: Loop, xp: ArrayModule, ins: Sequence[Array], outs: Sequence[Array | None] | None,
             dtype: np.dtype) -> list[Array]:
    """The results of a loop, computed in ``dtype``: in ``outs`` if given, else in new arrays."""
    rows = loop.rows
    ins = ins[:len(rows.inputs)]
    views = [_as_view(loop, array, along) for array, along in zip(ins, rows.inputs)]
    made: list[Array] = []
    for i, along in enumerate(rows.results):
        out, shape = None if outs is None else outs[i], loop.place(along)
        if out is None or not out.flags.c_contiguous:
            made.append(empty(shape, dtype) if xp is np else xp.empty(shape, dtype))
        else:
            made.append(out.reshape(shape))
    if not _is_empty(loop):
        shared = tuple([tuple([i for i, view in enumerate(views) if xp.may_share_memory(view, array)])
                        for array in made])
        layout = _layout_of(loop, [array.dtype for array in ins], [array.dtype for array in made], dtype, xp, shared)
        tile = _tile(loop, layout, dtype, xp)
        arrays, row_layouts = [*views, *made], (*rows.inputs, *rows.results)
        parts = _slices(loop, dtype) if xp is np else [slice(None)]
        _run(*_in_parts(loop, tile, arrays, row_layouts, parts, dtype))
    results = [array.reshape(shape) for array, shape in zip(made, loop.results)]
    for i, out in enumerate(outs or ()):
        if out is not None and not out.flags.c_contiguous:
            out[...] = results[i]
            results[i] = out
    return results


def _in_parts(loop: Loop, tile: Callable[..., None], arrays: Sequence[Array], row_layouts: Sequence[RowLayout],
              parts: Sequence[slice], dtype: np.dtype, ins: int | None = None,
              scratch: Callable[[int, Shape, np.dtype], Array] | None = None
              ) -> tuple[list[Callable[[], None]], list[Callable[[], object]]]:
    """Functions that run parts of a loop, and functions that then add up the parts' results over sets.

    Each part stores its own sums over sets, in arrays that ``scratch`` gives; ``ins`` is the number of arrays that are
    inputs.
    """
    if len(parts) == 1:
        return [functools.partial(tile, *arrays)], []
    divided = [_parts(loop, arrays, row_layouts, part) for part in parts]
    endings: list[Callable[[], object]] = []
    for place in range(len(loop.rows.inputs) if ins is None else ins, len(arrays)):
        if row_layouts[place] in ACROSS:
            shape = (len(parts), *arrays[place].shape)
            sums = empty(shape, dtype) if scratch is None else scratch(place, shape, dtype)
            for each, own in zip(divided, sums):
                each[place] = own
            endings.append(functools.partial(np.add.reduce, sums, 0, None, arrays[place]))
    return [functools.partial(tile, *each) for each in divided], endings


def _run(calls: Sequence[Callable[[], None]], endings: Sequence[Callable[[], object]]) -> None:
    run(calls)
    for ending in endings:
        ending()


def _do_nothing(*arrays: Array) -> None:
    """Does nothing, for sets without elements."""


def _slices(loop: Loop, dtype: np.dtype) -> list[slice]:
    """Slices of the first axis that are computed separately: parts that fit into the cache, shared among threads."""
    rows = loop.rows
    count = sum(rows.registers[a] is RowLayout.ELEMENT for _, args in rows.expression.code for a in args[:1]
                if isinstance(a, int))
    # A comparison with the places of elements is stored, and read at once: in the cache, if it is a part.
    spans = 0 in loop.axes and any(prim.name in REDUCTIONS for prim, _ in rows.expression.code)
    if (count < _SHARED and not loop.numbers_places) or spans:
        return [slice(None)]
    return parts_of(np.broadcast_to(np.empty((), dtype), loop.view))


def prepared_loop(loop: Loop, xp: ArrayModule, ins: Sequence[Array], result: np.dtype | None = None
                  ) -> Callable[..., Any]:
    """A function ``run(*arrays, out=None)`` of arrays with the shapes and dtypes of ``ins``. It returns the results as
    new arrays, in the dtype that the loop is computed in for results of the dtype ``result``, or writes them to
    ``out``."""
    rows, shapes = loop.rows, loop.results
    count = len(ins)
    ins = ins[:len(rows.inputs)]
    dtypes = [array.dtype for array in ins]
    dtype = computed_in(loop, dtypes, [result] * len(rows.results))
    layout = _layout_of(loop, dtypes, [dtype] * len(rows.results), dtype, xp)
    tile = _do_nothing if _is_empty(loop) else _tile(loop, layout, dtype, xp)
    places = [loop.place(along) for along in rows.inputs]
    targets = [loop.place(along) for along in rows.results]
    row_layouts = (*rows.inputs, *rows.results)
    seen = [None if array.shape == place else place for array, place in zip(ins, places)]
    reshaped = [None if target == shape else shape for target, shape in zip(targets, shapes)]
    parts = _slices(loop, dtype) if xp is np else [slice(None)]

    def compute(arrays: Sequence[Array], outs: Sequence[Array]) -> None:
        views = [*[array if place is None else array.reshape(place) for array, place in zip(arrays, seen)], *outs]
        if len(parts) == 1:
            tile(*views)
        else:
            _run(*_in_parts(loop, tile, views, row_layouts, parts, dtype))

    def write(arrays: Sequence[Array], out: Any) -> Any:
        outs = out if isinstance(out, tuple) else (out,)
        if all(each.dtype == dtype and each.flags.c_contiguous for each in outs) and not any(
                xp.may_share_memory(array, each) for array in arrays[:len(seen)] for each in outs):
            compute(arrays, [each.reshape(target) for each, target in zip(outs, targets)])
        else:
            run_loop(loop, xp, arrays, outs, computed_in(loop, dtypes, [each.dtype for each in outs]))
        return out

    if count == len(shapes) == 1 and len(parts) == 1:
        (place,), (target,), (shape,) = seen, targets, reshaped
        code, keeps = rows.expression.code, shape is None
        small = math.prod(target) * dtype.itemsize < LARGE
        make: Callable[..., Array] = empty if xp is np and not small else xp.empty

        def run_one(array: Array, out: Array | None = None) -> Array:
            if out is not None:
                return write((array,), out)
            made = make(target, dtype)
            tile(array if place is None else array.reshape(place), made)
            return made if shape is None else made.reshape(shape)

        if xp is np and layout.reduces and place is None and loop.axes and len(code) == 1 and (
                code[0][0].name in REDUCTIONS):
            reduce, axes = _reduction(np, code[0][0].name), loop.axes if len(loop.axes) > 1 else loop.axes[0]
            sums = dtype if layout.converted[0] and code[0][0].name in ("row_sum", "row_product") else None
            # A single call computes the result, if the array is contiguous.
            if keeps or len(shapes[0]) == len(target) - len(loop.axes) > 0:
                return lambda array, out=None: (reduce(array, axes, sums, None, keeps)
                                                if out is None and array.flags.c_contiguous else run_one(array, out))
            return lambda array, out=None: (reduce(array, axes, sums, None, True).reshape(shape)
                                            if out is None and array.flags.c_contiguous else run_one(array, out))
        return run_one

    def run_all(*arrays: Array, out: Any = None) -> Any:
        if out is not None:
            return write(arrays, out)
        outs = [empty(target, dtype) if xp is np else xp.empty(target, dtype) for target in targets]
        compute(arrays, outs)
        results = [made if shape is None else made.reshape(shape) for made, shape in zip(outs, reshaped)]
        return results[0] if len(results) == 1 else tuple(results)

    return run_all


def bound_loop(loop: Loop, xp: ArrayModule, ins: Sequence[Array], outs: Sequence[Array | None],
               scratch: Callable[[int, Shape, np.dtype], Array] | None = None) -> list[Callable[[], object]]:
    """Functions without arguments that compute a loop into ``outs``; all arrays are contiguous.

    ``scratch`` gives memory by number, shape and dtype."""
    if _is_empty(loop):
        return []
    rows = loop.rows
    ins = ins[:len(rows.inputs)]
    dtype = computed_in(loop, [array.dtype for array in ins], [None if out is None else out.dtype for out in outs])
    places = [address_of(array) for array in ins]
    shared = tuple([() if out is None else tuple([i for i, place in enumerate(places) if place == address_of(out)])
                    for out in outs])
    layout = _layout_of(loop, [array.dtype for array in ins], [None if out is None else out.dtype for out in outs],
                        dtype, xp, shared)
    tile = _tile(loop, layout, dtype, xp)
    pairs = [(_as_view(loop, array, along), along) for array, along in zip((*ins, *outs), (*rows.inputs, *rows.results))
             if array is not None]
    arrays, row_layouts = [array for array, _ in pairs], [along for _, along in pairs]
    parts = _slices(loop, dtype) if xp is np else [slice(None)]
    calls, endings = _in_parts(loop, tile, arrays, row_layouts, parts, dtype, len(ins), scratch)
    step = functools.partial(run, calls) if len(calls) > 1 else functools.partial(tile, *arrays)
    moved = list(map(own_bytes, arrays))
    step.__dict__.update(read=sum(moved[:len(ins)]), written=sum(moved[len(ins):]))
    return [step, *endings]
