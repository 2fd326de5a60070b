"""The instructions of expressions in code that a compiler vectorises: plain arithmetic, no branch and no call.

Every function takes and returns ``FloatValue``s, values of the code that is being emitted; calling it appends
instructions. A number is float32 or float64, and so is what is made of it; most functions take as many at once as a
register holds, too. Functions that would need care in float32 are computed in float64 and rounded. Errors stay near
one unit in the last place, three at most, over the whole range: subnormal numbers, zeros of either sign, infinities
and NaN included. ``fma`` leaves the processor the choice whether it rounds once or twice, and nothing relies on
either.

The polynomials are near-minimax, by interpolation at Chebyshev nodes in 50 digits.

Written as plain functions for numba, each with constants of the dtype and ``contract`` for its products and sums, exp,
tanh, gelu and its gradient run as long (0.98 to 1.01 times, 16,384 numbers, least of 400 runs in turn) and compile two
to seven times as long, since each function goes through all of numba (processor time of a new process: gelu 1.2 s
for 0.17 s, its gradient then 0.41 s for 0.19 s). Compiling is what people wait for, so instructions are emitted here.
"""

from __future__ import annotations

import copy
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opreg.elementwise import special_functions as special
from opreg.typing import DTypeLike

if TYPE_CHECKING:
    from llvmlite import ir

__all__ = ["DETOURS", "FORMATS", "VECTOR", "FloatFormat", "FloatValue", "largest", "plus"]


@functools.cache
def _ir() -> ModuleType:
    return importlib.import_module("llvmlite.ir")


class FloatFormat:
    """A floating type and what the functions below know of it.

    Attributes
    ----------
    dtype, bits, mantissa, bias
        Its NumPy dtype, its width, and how its exponent is stored.
    magic : float
        Added to a number it leaves the nearest whole number in the last bits.
    log2_high, log2_low : float
        Two parts of log 2, the first short enough for exact products with an exponent.
    low, high : float
        Beyond these ``exp`` is zero or infinite.
    exp, log : tuple of float
        ``(exp(r) - 1 - r) / r ** 2`` for r to half of log 2, and ``(log((1 + s) / (1 - s)) / s - 2) / s ** 2`` in
        ``s ** 2``; highest power first, as all polynomials here.
    lanes : int
        How many numbers a value stands for: one, whose loop the compiler vectorises, or all in a register.
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
    def whole(self) -> ir.Type:
        """The type of integers as wide."""
        return self._wide(_ir().IntType(self.bits))

    def _wide(self, type: ir.Type) -> ir.Type:
        return type if self.lanes == 1 else _ir().VectorType(type, self.lanes)

    def many(self, lanes: int) -> FloatFormat:
        """The same for so many numbers at once. Functions that go through float64 do not know it."""
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
    """A value of emitted code, together with what appends to that code."""

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
    """An integer as wide as the numbers it is made of."""

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
        """The smaller one."""
        more = self.builder.icmp_signed(">", self.ir, self._of(limit))
        return IntValue(self.builder, self.builder.select(more, self._of(limit), self.ir))

    def number(self, kind: FloatFormat) -> FloatValue:
        """The integer as a number."""
        return FloatValue(self.builder, self.builder.sitofp(self.ir, kind.type), kind)


class FloatValue(Value):
    """A floating number of emitted code; Python numbers are constants of its kind."""

    __slots__ = ("kind",)

    def __init__(self, builder: ir.IRBuilder, ir: ir.Value, kind: FloatFormat):
        super().__init__(builder, ir)
        self.kind = kind

    def of(self, other: Operand) -> ir.Value:
        """Another number, or a constant, as an operand."""
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
        """Whether two numbers are equal."""
        return self._compare("==", other)

    def differs(self, other: Operand) -> BoolValue:
        """Whether they are not, or one is NaN."""
        return self._compare("!=", other)

    def call(self, name: str, *others: Operand) -> FloatValue:
        """An intrinsic function of the compiler that is an instruction of the processor."""
        values = [self.ir, *map(self.of, others)]
        module = self.builder.module
        suffix = f"f{self.kind.bits}" if self.kind.lanes == 1 else f"v{self.kind.lanes}f{self.kind.bits}"
        function = module.declare_intrinsic(f"llvm.{name}.{suffix}", (),
                                            _ir().FunctionType(self.kind.type, [self.kind.type] * len(values)))
        return self._new(self.builder.call(function, values))

    def constant(self, value: float) -> FloatValue:
        """A constant of its kind."""
        return self._new(self.of(value))

    def bits(self) -> IntValue:
        """Its bits as an integer."""
        return IntValue(self.builder, self.builder.bitcast(self.ir, self.kind.whole))

    def number(self, bits: IntValue) -> FloatValue:
        """The number of this kind that has these bits."""
        return self._new(self.builder.bitcast(bits.ir, self.kind.type))

    def power_of_two(self, exponent: IntValue) -> FloatValue:
        """Two to a whole power, a normal number of this kind."""
        return self.number((exponent + self.kind.bias) << self.kind.mantissa)

    def wide(self) -> FloatValue:
        """The number as float64."""
        return FloatValue(self.builder, self.builder.fpext(self.ir, DOUBLE.type), DOUBLE)

    def narrow(self) -> FloatValue:
        """The number as float32."""
        return FloatValue(self.builder, self.builder.fptrunc(self.ir, SINGLE.type), SINGLE)

    def select(self, condition: BoolValue, other: Operand) -> FloatValue:
        """The number where the condition holds, else the other."""
        return self._new(self.builder.select(condition.ir, self.ir, self.of(other)))

    def replaced(self, condition: BoolValue, other: Operand) -> FloatValue:
        """The other where the condition holds, else the number."""
        return self._new(self.builder.select(condition.ir, self.of(other), self.ir))

    def truth(self) -> BoolValue:
        """Whether it is not zero."""
        return self.differs(0.0)

    def as_number(self, condition: BoolValue) -> FloatValue:
        """1 or 0 of this kind."""
        return self._new(self.builder.select(condition.ir, self.of(1.0), self.of(0.0)))


#: What a number is added to, compared with, and so on.
Operand: TypeAlias = FloatValue | float

def fma(a: FloatValue, b: Operand, c: Operand) -> FloatValue:
    """``a * b + c``."""
    return a.call("fmuladd", b, c)


def _polynomial(x: FloatValue, coefficients: Sequence[float]) -> FloatValue:
    total = fma(x, coefficients[0], coefficients[1])
    for coefficient in coefficients[2:]:
        total = fma(total, x, coefficient)
    return total


def _at_most(x: FloatValue, limit: float) -> FloatValue:
    return x.replaced(x > limit, limit)  # NaN stays


def _signed(size: FloatValue, x: FloatValue) -> FloatValue:
    """The size with the sign of ``x``."""
    return size.call("copysign", x)


#: The instructions that float32 makes a detour for, at twice the cost of a ufunc that does not.
DETOURS = {"power"}


def _in_double(function: Callable[..., FloatValue]) -> Callable[..., FloatValue]:
    """A function of float64 for float32 too, which it rounds once."""
    DETOURS.add(function.__name__)

    @functools.wraps(function)
    def either(*args: FloatValue) -> FloatValue:
        if args[0].kind is DOUBLE:
            return function(*args)
        return function(*[arg.wide() for arg in args]).narrow()

    return either


# --------------------------------------------------------------------------- exponentials and their relatives


def _reduced(x: FloatValue) -> tuple[FloatValue, IntValue]:
    """``y`` and ``k`` with ``exp(x) = (1 + y) * 2 ** k``; ``y`` is exact near zero."""
    kind = x.kind
    shifted = fma(x, 1.0 / math.log(2.0), kind.magic)
    whole = shifted - kind.magic
    r = fma(whole, -kind.log2_low, fma(whole, -kind.log2_high, x))
    return fma(r * r, _polynomial(r, kind.exp), r), shifted.bits() - kind.pattern(kind.magic)


def _scaled(x: FloatValue, k: IntValue) -> FloatValue:
    """``x * 2 ** k``, rounded once when the result is subnormal."""
    half = k >> 1
    return x * x.power_of_two(half) * x.power_of_two(k - half)


def _exp(x: FloatValue, shift: int = 0) -> FloatValue:
    """``exp(x) * 2 ** shift``."""
    x = _at_most(x, x.kind.high + 1)
    x = x.replaced(x < x.kind.low, x.kind.low)
    y, k = _reduced(x)
    return _scaled(1.0 + y, k + shift)


def exp(x: FloatValue) -> FloatValue:
    """The exponential."""
    return _exp(x)


def expm1(x: FloatValue) -> FloatValue:
    """The exponential less one."""
    low = -float(x.kind.mantissa)
    y, k = _reduced(_at_most(x.replaced(x < low, low), x.kind.high))
    return _signed(_scaled(y + (1.0 - x.power_of_two(0 - k.at_most(x.kind.mantissa + 8))), k), x)


def tanh(x: FloatValue) -> FloatValue:
    """The hyperbolic tangent."""
    size = _at_most(abs(x), 0.4 * x.kind.mantissa)  # from there on it is one
    y, k = _reduced(size + size)
    power = x.power_of_two(k)
    t = fma(y, power, power - 1.0)  # exp(2 * size) - 1
    return _signed(t / (t + 2.0), x)


@_in_double
def sinh(x: FloatValue) -> FloatValue:
    """The hyperbolic sine."""
    size = abs(x)
    t = expm1(size)
    near = 0.5 * (t + t / (t + 1.0))
    return _signed(near.replaced(size > 22.0, _exp(size, -1)), x)


@_in_double
def cosh(x: FloatValue) -> FloatValue:
    """The hyperbolic cosine."""
    half = _exp(abs(x), -1)
    return half + 0.25 / half


# ------------------------------------------------------------------------------ logarithms and their relatives


def _split(x: FloatValue) -> IntValue:
    """The ``k`` for which ``x / 2 ** k`` lies between the square roots of one half and of two."""
    return (x.bits() - x.kind.pattern(math.sqrt(0.5))) >> x.kind.mantissa


def _parts(x: FloatValue) -> tuple[FloatValue, FloatValue]:
    """``whole`` and ``f`` with ``x = (1 + f) * 2 ** whole``."""
    shift = x.kind.mantissa + 2
    small = x < x.kind.tiny
    normal = x.replaced(small, x * 2.0 ** shift)
    k = _split(normal)
    mantissa = x.number(normal.bits() - (k << x.kind.mantissa))
    whole = k.number(x.kind)
    return whole.replaced(small, whole - float(shift)), mantissa - 1.0


def _log(whole: FloatValue, f: FloatValue) -> FloatValue:
    """``log(1 + f) + whole * log(2)``: with s = f / (2 + f) the first is 2 s + s R, and 2 s is f - s f."""
    s = f / (f + 2.0)
    z = s * s
    rest = s * (f - z * _polynomial(z, f.kind.log))
    return fma(whole, f.kind.log2_high, fma(whole, f.kind.log2_low, -rest) + f)


def _of_positive(y: FloatValue, x: FloatValue) -> FloatValue:
    """A logarithm of ``x`` where ``x`` is an ordinary number or not."""
    y = y.replaced(x.equals(math.inf), math.inf)
    y = y.replaced(x.equals(0.0), -math.inf)
    return y.select(x >= 0.0, math.nan)


def log(x: FloatValue) -> FloatValue:
    """The natural logarithm."""
    return _of_positive(_log(*_parts(x)), x)


def log2(x: FloatValue) -> FloatValue:
    """The logarithm to base two."""
    whole, f = _parts(x)
    part = _log(whole * 0.0, f)
    return _of_positive(fma(part, 1.0 / math.log(2.0), whole), x)


@_in_double
def log10(x: FloatValue) -> FloatValue:
    """The logarithm to base ten."""
    whole, f = _parts(x)
    part = _log(whole * 0.0, f) * (1.0 / math.log(10.0))
    # Two parts of log10 2.
    return _of_positive(fma(whole, 3.01029995663611771306e-1, fma(whole, 3.69423907715893078616e-13, part)), x)


def _log1p(x: FloatValue) -> FloatValue:
    u = x + 1.0
    k = _split(u)
    half = k >> 1
    first, second = x.power_of_two(0 - half), x.power_of_two(half - k)
    # Multiplied by a power of two numbers stay exact, so the one rounding is that of the sum.
    y = _log(k.number(x.kind), x * first * second + (first * second - 1.0))
    return y.replaced(abs(x) < 0.25 * x.kind.epsilon, x)


def log1p(x: FloatValue) -> FloatValue:
    """The logarithm of one more."""
    y = _log1p(x).replaced(x.equals(math.inf), math.inf)
    y = y.replaced(x.equals(-1.0), -math.inf)
    return y.select(x >= -1.0, math.nan)


@_in_double
def arcsinh(x: FloatValue) -> FloatValue:
    """The inverse of the hyperbolic sine."""
    size = abs(x)
    large = size > 2.0 ** 28
    squared = size * size
    near = size + squared / ((squared + 1.0).call("sqrt") + 1.0)
    y = log1p(near.replaced(large, size - 1.0))
    return _signed(y.replaced(large, y + math.log(2.0)), x)


@_in_double
def arccosh(x: FloatValue) -> FloatValue:
    """The inverse of the hyperbolic cosine."""
    large = x > 2.0 ** 28
    rest = x - 1.0
    y = log1p((rest + (rest * rest + 2.0 * rest).call("sqrt")).replaced(large, rest))
    return y.replaced(large, y + math.log(2.0)).select(x >= 1.0, math.nan)


@_in_double
def arctanh(x: FloatValue) -> FloatValue:
    """The inverse of the hyperbolic tangent."""
    size = abs(x)
    return _signed(0.5 * log1p((size + size) / (1.0 - size)), x)


# ---------------------------------------------------------------------------------------------------- angles

# (atan(y) / y - 1) / y ** 2 in y ** 2, to tan(pi / 8); the same of asin, to one half.
_ARCTAN = (0.01627194475162406, -0.03455809255141380, 0.04551108126325172, -0.05230347873016074, 0.05878914544400622,
           -0.06666423628069258, 0.07692296304974470, -0.09090908751076637, 0.1111111110510671, -0.1428571428565933,
           0.1999999999999980253, -0.3333333333333333322)
_ARCSIN = (0.02875785136742156, -0.01485188707124720, 0.01740087944269402, 0.005457506718640358, 0.01032281435018578,
           0.01147917741518491, 0.01397121297355293, 0.01735239272086997, 0.02237217294214989, 0.03038194413853125,
           0.04464285714635543, 0.07499999999998433, 0.1666666666666666783)
#: What pi / 2 and pi / 4 as numbers leave out.
_HALF_PI_LOW, _QUARTER_PI_LOW = 6.123233995736766e-17, 3.061616997868383e-17


@_in_double
def arctan(x: FloatValue) -> FloatValue:
    """The angle of a tangent."""
    size = abs(x)
    far, middle = size > math.tan(0.375 * math.pi), size > math.tan(0.125 * math.pi)
    top = size.replaced(middle, size - 1.0).replaced(far, -1.0)
    bottom = x.constant(1.0).replaced(middle, size + 1.0).replaced(far, size)
    y = top.replaced(far | middle, top / bottom)
    z = y * y
    high = x.constant(0.0).replaced(middle, 0.25 * math.pi).replaced(far, 0.5 * math.pi)
    low = x.constant(0.0).replaced(middle, _QUARTER_PI_LOW).replaced(far, _HALF_PI_LOW)
    return _signed(high + (y + (y * (z * _polynomial(z, _ARCTAN)) + low)), x)


def _arc(size: FloatValue) -> tuple[FloatValue, FloatValue, BoolValue]:
    """``y`` and ``rest``: the arcsine is ``y + rest``, or for more than one half pi / 2 less twice that."""
    large = size > 0.5
    z = (size * size).replaced(large, fma(size, -0.5, 0.5))
    y = size.replaced(large, z.call("sqrt"))
    return y, y * (z * _polynomial(z, _ARCSIN)), large


def _root_rest(y: FloatValue, size: FloatValue) -> FloatValue:
    """What the square root ``y`` of ``(1 - size) / 2`` leaves out."""
    error = fma(-y, y, fma(size, -0.5, 0.5))
    return (error / (y + y)).replaced(y.equals(0.0), 0.0)


@_in_double
def arcsin(x: FloatValue) -> FloatValue:
    """The angle of a sine."""
    size = abs(x)
    y, rest, large = _arc(size)
    twice = 2.0 * (rest + _root_rest(y, size)) - _HALF_PI_LOW
    far = 0.25 * math.pi - (twice - (0.25 * math.pi - (y + y)))
    return _signed((y + rest).replaced(large, far), x)


@_in_double
def arccos(x: FloatValue) -> FloatValue:
    """The angle of a cosine."""
    size = abs(x)
    y, rest, large = _arc(size)
    rest = rest.replaced(large, rest + _root_rest(y, size))
    near = 0.5 * math.pi - (_signed(y, x) - (_HALF_PI_LOW - _signed(rest, x)))
    far = 2.0 * (y + rest)
    below = math.pi - (far - 2.0 * _HALF_PI_LOW)
    return near.replaced(large, far.replaced(x < 0.0, below))


# ---------------------------------------------------------------------------------------- roots and powers


@_in_double
def cbrt(x: FloatValue) -> FloatValue:
    """The cube root: a good guess and one step of Newton's method."""
    size = abs(x)
    y = exp(log(size) * (1.0 / 3.0))
    y = y - (y - size / (y * y)) * (1.0 / 3.0)
    y = y.replaced(size.equals(0.0) | size.equals(math.inf), size)
    return _signed(y, x)


@_in_double
def hypot(x: FloatValue, y: FloatValue) -> FloatValue:
    """The square root of both squares' sum, scaled where a square would leave the range."""
    a, b = abs(x), abs(y)
    more = maximum(a, b)
    large, small = more > 2.0 ** 500, more < 2.0 ** -480
    down = x.constant(1.0).replaced(large, 2.0 ** -600).replaced(small, 2.0 ** 600)
    up = x.constant(1.0).replaced(large, 2.0 ** 600).replaced(small, 2.0 ** -600)
    a, b = a * down, b * down
    value = fma(a, a, b * b).call("sqrt") * up
    return value.replaced(abs(x).equals(math.inf) | abs(y).equals(math.inf), math.inf)


def power(x: FloatValue, y: FloatValue) -> FloatValue:
    """``x`` to the power ``y``, in float32: float64 leaves no room for the rounding of the logarithm."""
    if x.kind is DOUBLE:
        raise NotImplementedError("a power in float64 has no vectorised form")
    x, y = x.wide(), y.wide()
    size = abs(x)
    value = exp(y * log(size))
    half = 0.5 * y
    whole, even = y.equals(y.call("floor")), half.equals(half.call("floor"))
    sign = _signed(x.constant(1.0), x)
    value = value.replaced(whole & ~even & (sign < 0.0), -value)
    value = value.replaced((x < 0.0) & (x > -math.inf) & ~whole, math.nan)
    value = value.replaced(size.equals(1.0) & abs(y).equals(math.inf), 1.0)
    return value.replaced(x.equals(1.0) | y.equals(0.0), 1.0).narrow()


# -------------------------------------------------------------------------------------------- error function

# erf(x) / x - 1 in x ** 2, up to one and to one half; log(erfc(x)) from one to four, for float32.
_ERF_TO_ONE = (7.875750626854885e-5, -8.016864287165870e-4, 5.189087423433974e-3, -2.685421201062641e-2,
               0.1128359471516022, -0.3761262666672033, 0.1283791658483509)
_ERF_TO_HALF = (1.472586548055674e-6, -1.484584925970787e-5, 1.205333512435374e-4, -8.548297753674967e-4,
                5.223977373021470e-3, -2.686617063288793e-2, 0.1128379167092535, -0.3761263890318347,
                0.1283791670955125696)
_LOG_ERFC = (-7.582681969725274e-8, 3.321684590731722e-6, -6.229835325161451e-5, 6.858366830115038e-4,
             -5.064946920216485e-3, 2.709952329399037e-2, -0.1110550173718800, -0.6309530298165722,
             -1.130675144181817, 4.163292177097496e-4)


def _near_erf(size: FloatValue, coefficients: Sequence[float]) -> FloatValue:
    return fma(size, _polynomial(size * size, coefficients), size)


def _erfc(size: FloatValue) -> FloatValue:
    """One less the error function, from one half to six."""
    return exp(-(size * size)) * (_polynomial(size, special._ERFC_P) / _polynomial(size, special._ERFC_Q))


def erf(x: FloatValue) -> FloatValue:
    """The error function."""
    if x.kind is SINGLE:
        size = _at_most(abs(x), 4.0)
        y, k = _reduced(_polynomial(size, _LOG_ERFC))
        far = 1.0 - (1.0 + y) * x.power_of_two(k)
        return _signed(far.replaced(size <= 1.0, _near_erf(size, _ERF_TO_ONE)), x)
    size = _at_most(abs(x), 6.0)
    return _signed((1.0 - _erfc(size)).replaced(size <= 0.5, _near_erf(size, _ERF_TO_HALF)), x)


@_in_double
def erfinv(x: FloatValue) -> FloatValue:
    """The inverse of the error function, by the formulas of ``special.erfinv``."""
    size = abs(x)
    rest = 1.0 - size
    half = 0.5 * log(rest * (1.0 + size))
    middle = half + 2.0 / (math.pi * 0.147)
    guess = ((middle * middle - half * (2.0 / 0.147)).call("sqrt") - middle).call("sqrt")
    y = guess.replaced(size < 0.1, size * (0.5 * math.sqrt(math.pi)))
    for _ in range(2):
        squared = y * y
        # From one half on the difference of two small numbers.
        error = (rest - _erfc(y)).replaced(size < 0.5, _near_erf(y, _ERF_TO_HALF) - size)
        step = error * exp(squared) * (0.5 * math.sqrt(math.pi))
        y = y - step / (1.0 + y * step)
    return _signed(y.replaced(size.equals(1.0), math.inf).select(size <= 1.0, math.nan), x)


# ----------------------------------------------------------------------------------- arithmetic, comparisons


def maximum(a: FloatValue, b: FloatValue) -> FloatValue:
    """The larger one, or NaN."""
    return a.select((a >= b) | a.differs(a), b)


def minimum(a: FloatValue, b: FloatValue) -> FloatValue:
    """The smaller one, or NaN."""
    return a.select((a <= b) | a.differs(a), b)


def sign(x: FloatValue) -> FloatValue:
    """-1, 0, 1 or NaN."""
    return _signed(x.constant(1.0), x).replaced(x.equals(0.0), 0.0).replaced(x.differs(x), x)


def plus(total: FloatValue, x: FloatValue) -> FloatValue:
    """A sum of many, whose order the compiler may choose."""
    return total._new(total.builder.fadd(total.ir, x.ir, flags=("reassoc",)))


def largest(top: FloatValue, x: FloatValue) -> FloatValue:
    """The largest of many, or NaN."""
    return top.call("maximum", x)


#: Instruction by name. What is not here has no vectorised form.
VECTOR: dict[str, Callable[..., FloatValue]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda a: -a,
    "absolute": abs,
    "square": lambda a: a * a,
    "reciprocal": lambda a: 1.0 / a,
    "sign": sign,
    "positive": sign,
    "greater": lambda a, b: a.as_number(a > b),
    "greater_equal": lambda a, b: a.as_number(a >= b),
    "less": lambda a, b: a.as_number(a < b),
    "less_equal": lambda a, b: a.as_number(a <= b),
    "equal": lambda a, b: a.as_number(a.equals(b)),
    "not_equal": lambda a, b: a.as_number(a.differs(b)),
    "logical_and": lambda a, b: a.as_number(a.truth() & b.truth()),
    "logical_or": lambda a, b: a.as_number(a.truth() | b.truth()),
    "logical_xor": lambda a, b: a.as_number(a.truth() ^ b.truth()),
    "logical_not": lambda a: a.as_number(~a.truth()),
    "where": lambda c, a, b: a.select(c.truth(), b),
    "floor": lambda a: a.call("floor"),
    "ceil": lambda a: a.call("ceil"),
    "trunc": lambda a: a.call("trunc"),
    "sqrt": lambda a: a.call("sqrt"),
    **{function.__name__: function for function in (
        maximum, minimum, exp, expm1, tanh, sinh, cosh, log, log2, log10, log1p, arcsinh, arccosh, arctanh, arctan,
        arcsin, arccos, cbrt, hypot, power, erf, erfinv)},
}
