"""The text of loops as generated Python functions, which call ufuncs of NumPy or CuPy.

The generated function takes inputs and outputs for some of the sets, in the shape of the loop's view. Every instruction
is one call that writes to free memory: to an output whose own result is computed later, to a temporary that is no
longer read, else to a new one.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import NamedTuple

from ..core.cache import cached
from .expression import Primitive
from .output_memory import OutputMemory
from .rows import REDUCTIONS, RowExpression, RowLayout

__all__ = ["Layout", "loop_text", "text_and_constants"]

# Functions that return a new array: ``where`` has no ``out``, and ``sign`` with one takes ten times as long.
_WITHOUT_OUT = ("where", "sign")


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
            output = self.outputs.borrow(register, position, fits)
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
    return text_and_constants(rows, layout)[0]


@cached(512)
def text_and_constants(rows: RowExpression, layout: Layout) -> tuple[str, list[float]]:
    """The text, and the constants that it reads as ``c0``, ``c1`` and so on."""
    writer = _Writer(rows, layout)
    text = writer.text()
    return text, [float(number) for number in writer.constants]
