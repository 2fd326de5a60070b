"""Values in emitted code: floating-point values, integers and conditions, whose operations append instructions.

A floating-point value is float32 or float64, a single one or a whole register of them. Its arithmetic uses Python's
operators, so that functions in ``vector`` read like formulas.

The alternative, plain functions for numba with constants of the dtype and ``contract`` for products and sums, is as
fast: exp, tanh, gelu and its gradient on 16,384 elements of float32 take 0.98 to 1.01 times as long (minimum of 400
alternating runs, one core). But it takes two to seven times as long to compile, since each function passes through all
stages of numba: 1.2 s instead of 0.17 s for gelu, and 0.41 s instead of 0.19 s for its gradient after that (processor
time of new processes). Users wait while a function is compiled.
"""

from __future__ import annotations

import copy
import functools
import importlib
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opreg.typing import DTypeLike

if TYPE_CHECKING:
    from llvmlite import ir

__all__ = ["DOUBLE", "FORMATS", "SINGLE", "BoolValue", "FloatFormat", "FloatValue", "IntValue", "Operand"]


@functools.cache
def _ir() -> ModuleType:
    return importlib.import_module("llvmlite.ir")


class FloatFormat:
    """A floating-point type, and the constants that the functions of ``vector`` use for it.

    Attributes
    ----------
    dtype, bits, mantissa, bias
        Its NumPy dtype, its width and that of its mantissa in bits, and the bias of its exponent.
    magic : float
        If it is added to a value, the nearest integer is in the last bits of the sum.
    log2_high, log2_low : float
        Two parts of log 2; the first has few enough bits for exact products with an exponent.
    low, high : float
        Below ``low``, ``exp`` is zero; above ``high`` it is infinite.
    exp, log : tuple of float
        Coefficients of ``(exp(r) - 1 - r) / r ** 2`` for r up to half of log 2, and of
        ``(log((1 + s) / (1 - s)) / s - 2) / s ** 2`` in ``s ** 2``; highest power first, as in all polynomials here.
    lanes : int
        How many elements a value has: one, in loops that the compiler vectorises, or as many as a register holds.
    """

    lanes = 1

    def __init__(self, dtype: DTypeLike, parts: tuple[float, float], limits: tuple[float, float],
                 exp: tuple[float, ...], log: tuple[float, ...]):
        self.dtype = np.dtype(dtype)
        info = np.finfo(self.dtype)
        self.bits, self.mantissa, self.bias = info.bits, info.nmant, int(info.maxexp) - 1
        self.tiny, self.epsilon = float(info.tiny), float(info.eps)
        self.magic = 1.5 * 2.0 ** self.mantissa
        (self.log2_high, self.log2_low), (self.low, self.high) = parts, limits
        self.exp, self.log = exp, log

    @property
    def type(self) -> ir.Type:
        """Its type in emitted code."""
        return self._wide(_ir().FloatType() if self.bits == 32 else _ir().DoubleType())

    @property
    def integer_type(self) -> ir.Type:
        """The type of integers with the same width."""
        return self._wide(_ir().IntType(self.bits))

    def _wide(self, type: ir.Type) -> ir.Type:
        return type if self.lanes == 1 else _ir().VectorType(type, self.lanes)

    def vector_of(self, lanes: int) -> FloatFormat:
        """The same type with ``lanes`` elements in a value. Functions that compute in float64 do not accept it."""
        vector = copy.copy(self)
        vector.lanes = lanes
        return vector

    def pattern(self, value: float) -> int:
        """The bits of a number."""
        return int(np.array(value, self.dtype).view(f"i{self.bits // 8}"))


SINGLE = FloatFormat("float32", (0.693145751953125, 1.42860682030941723e-6), (-104.0, 89.0),
              (0.001392625083149761, 0.008363232883682618, 0.04166655421298415, 0.1666657666611993, 0.5),
              (0.2333161447184349, 0.2855077863319196, 0.4000012221181065, 0.6666666655404201))
DOUBLE = FloatFormat("float64", (6.93147180369123816490e-1, 1.90821492927058770002e-10), (-746.0, 710.0),
              (2.091475532589320e-9, 2.510531272962210e-8, 2.755727347871858e-7, 2.755725517000089e-6,
               2.480158737746193e-5, 1.984126987500228e-4, 1.388888888888371e-3, 8.333333333326083e-3,
               4.166666666666667e-2, 0.1666666666666667103, 0.5),
              (0.1461780715341732, 0.1533161172205501, 0.1818289243253687, 0.2222221108937950, 0.2857142862625384,
               0.3999999999989889, 0.6666666666666669708))
FORMATS = {kind.dtype: kind for kind in (SINGLE, DOUBLE)}


class Value:
    """A value in emitted code, and the builder that appends instructions."""

    __slots__ = ("builder", "ir")

    def __init__(self, builder: ir.IRBuilder, ir: ir.Value):
        self.builder, self.ir = builder, ir


class BoolValue(Value):
    """A condition."""

    __slots__ = ()

    def __and__(self, other: BoolValue) -> BoolValue:
        return BoolValue(self.builder, self.builder.and_(self.ir, other.ir))

    def __or__(self, other: BoolValue) -> BoolValue:
        return BoolValue(self.builder, self.builder.or_(self.ir, other.ir))

    def __xor__(self, other: BoolValue) -> BoolValue:
        return BoolValue(self.builder, self.builder.xor(self.ir, other.ir))

    def __invert__(self) -> BoolValue:
        return BoolValue(self.builder, self.builder.not_(self.ir))


class IntValue(Value):
    """An integer with the width of a floating-point type."""

    __slots__ = ()

    def _of(self, other: IntValue | int) -> ir.Value:
        return other.ir if isinstance(other, IntValue) else _ir().Constant(self.ir.type, other)

    def __add__(self, other: IntValue | int) -> IntValue:
        return IntValue(self.builder, self.builder.add(self.ir, self._of(other)))

    def __sub__(self, other: IntValue | int) -> IntValue:
        return IntValue(self.builder, self.builder.sub(self.ir, self._of(other)))

    def __rsub__(self, other: int) -> IntValue:
        return IntValue(self.builder, self.builder.sub(self._of(other), self.ir))

    def __lshift__(self, count: int) -> IntValue:
        return IntValue(self.builder, self.builder.shl(self.ir, self._of(count)))

    def __rshift__(self, count: int) -> IntValue:
        return IntValue(self.builder, self.builder.ashr(self.ir, self._of(count)))

    def at_most(self, limit: int) -> IntValue:
        """The smaller of the integer and a limit."""
        more = self.builder.icmp_signed(">", self.ir, self._of(limit))
        return IntValue(self.builder, self.builder.select(more, self._of(limit), self.ir))

    def number(self, kind: FloatFormat) -> FloatValue:
        """The integer converted to a floating-point value."""
        return FloatValue(self.builder, self.builder.sitofp(self.ir, kind.type), kind)


class FloatValue(Value):
    """A floating-point value in emitted code; Python numbers are taken as constants of its type."""

    __slots__ = ("kind",)

    def __init__(self, builder: ir.IRBuilder, ir: ir.Value, kind: FloatFormat):
        super().__init__(builder, ir)
        self.kind = kind

    def of(self, other: Operand) -> ir.Value:
        """Another value, or a constant, as an operand."""
        return other.ir if isinstance(other, FloatValue) else _ir().Constant(self.kind.type, float(other))

    def _new(self, ir: ir.Value) -> FloatValue:
        return FloatValue(self.builder, ir, self.kind)

    def __add__(self, other: Operand) -> FloatValue:
        return self._new(self.builder.fadd(self.ir, self.of(other)))

    def __radd__(self, other: float) -> FloatValue:
        return self._new(self.builder.fadd(self.of(other), self.ir))

    def __sub__(self, other: Operand) -> FloatValue:
        return self._new(self.builder.fsub(self.ir, self.of(other)))

    def __rsub__(self, other: float) -> FloatValue:
        return self._new(self.builder.fsub(self.of(other), self.ir))

    def __mul__(self, other: Operand) -> FloatValue:
        return self._new(self.builder.fmul(self.ir, self.of(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> FloatValue:
        return self._new(self.builder.fdiv(self.ir, self.of(other)))

    def __rtruediv__(self, other: float) -> FloatValue:
        return self._new(self.builder.fdiv(self.of(other), self.ir))

    def __neg__(self) -> FloatValue:
        return self._new(self.builder.fneg(self.ir))

    def __abs__(self) -> FloatValue:
        return self.call("fabs")

    def _compare(self, how: str, other: Operand) -> BoolValue:
        compare = self.builder.fcmp_unordered if how == "!=" else self.builder.fcmp_ordered
        return BoolValue(self.builder, compare(how, self.ir, self.of(other)))

    def __gt__(self, other: Operand) -> BoolValue:
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> BoolValue:
        return self._compare(">=", other)

    def __lt__(self, other: Operand) -> BoolValue:
        return self._compare("<", other)

    def __le__(self, other: Operand) -> BoolValue:
        return self._compare("<=", other)

    def equals(self, other: Operand) -> BoolValue:
        """Whether two values are equal."""
        return self._compare("==", other)

    def differs(self, other: Operand) -> BoolValue:
        """Whether two values differ, or one is NaN."""
        return self._compare("!=", other)

    def call(self, name: str, *others: Operand) -> FloatValue:
        """Call an intrinsic function of LLVM."""
        values = [self.ir, *map(self.of, others)]
        module = self.builder.module
        suffix = f"f{self.kind.bits}" if self.kind.lanes == 1 else f"v{self.kind.lanes}f{self.kind.bits}"
        function = module.declare_intrinsic(f"llvm.{name}.{suffix}", (),
                                            _ir().FunctionType(self.kind.type, [self.kind.type] * len(values)))
        return self._new(self.builder.call(function, values))

    def constant(self, value: float) -> FloatValue:
        """A constant of the value's type."""
        return self._new(self.of(value))

    def bits(self) -> IntValue:
        """The bits of the value as an integer."""
        return IntValue(self.builder, self.builder.bitcast(self.ir, self.kind.integer_type))

    def number(self, bits: IntValue) -> FloatValue:
        """The value of this type with these bits."""
        return self._new(self.builder.bitcast(bits.ir, self.kind.type))

    def power_of_two(self, exponent: IntValue) -> FloatValue:
        """Two to an integer power, if it is a normal number of this type."""
        return self.number((exponent + self.kind.bias) << self.kind.mantissa)

    def wide(self) -> FloatValue:
        """The value converted to float64."""
        return FloatValue(self.builder, self.builder.fpext(self.ir, DOUBLE.type), DOUBLE)

    def narrow(self) -> FloatValue:
        """The value converted to float32."""
        return FloatValue(self.builder, self.builder.fptrunc(self.ir, SINGLE.type), SINGLE)

    def select(self, condition: BoolValue, other: Operand) -> FloatValue:
        """The value where the condition holds, else the other one."""
        return self._new(self.builder.select(condition.ir, self.ir, self.of(other)))

    def replaced(self, condition: BoolValue, other: Operand) -> FloatValue:
        """``other`` where the condition holds, else this value."""
        return self._new(self.builder.select(condition.ir, self.of(other), self.ir))

    def truth(self) -> BoolValue:
        """Whether the value is not zero."""
        return self.differs(0.0)

    def as_number(self, condition: BoolValue) -> FloatValue:
        """A condition as 1 or 0 of this type."""
        return self._new(self.builder.select(condition.ir, self.of(1.0), self.of(0.0)))


#: The other operand of an addition, a comparison and so on.
Operand: TypeAlias = FloatValue | float
