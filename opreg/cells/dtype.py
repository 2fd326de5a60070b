"""Dtypes by MindSpore's names, and their promotion.

``float32`` prints as ``Float32`` and is accepted wherever NumPy takes a dtype. ``bfloat16`` exists where the
package ml_dtypes does.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.named_errors import name_errors
from ..core.spec import as_dtype, is_floating
from ..errors import DTypeError, did_you_mean
from ..typing import DTypeLike

if TYPE_CHECKING:
    from ..typing import Number

__all__ = [
    "DType", "of", "promote", "promote_number", "dtype_to_nptype", "dtype_to_pytype", "pytype_to_dtype",
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_",
    "half", "single", "double", "float_", "byte", "short", "intc", "long", "intp", "int_",
    "ubyte", "ushort", "uintc", "uintp", "uint", "complex64", "complex128", "cfloat", "cdouble", "string",
    "number_type",
]


class DType:
    """A dtype with the behaviour of MindSpore's. Each dtype is one object, which ``of`` finds.

    It equals itself, the NumPy dtype, the NumPy scalar class and its names.

    Attributes
    ----------
    dtype : numpy.dtype
        The NumPy dtype.

    Examples
    --------
    >>> str(float32), float32
    ('Float32', mindspore.float32)
    >>> float32 == np.float32, np.dtype(float32), np.zeros(2, float32)
    (True, dtype('float32'), array([0., 0.], dtype=float32))
    """

    __slots__ = ("dtype", "_name")

    dtype: np.dtype

    def __init__(self, name: str, dtype: DTypeLike):
        self._name, self.dtype = name, np.dtype(dtype)
        _KNOWN[self.dtype] = _KNOWN[name] = self

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def is_floating_point(self) -> bool:
        """Whether it is a floating-point dtype."""
        return is_floating(self.dtype)

    @property
    def is_signed(self) -> bool:
        """Whether it represents negative values."""
        return self.is_floating_point or self.dtype.kind == "i"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if isinstance(other, np.dtype):
            return self.dtype == other
        return other is self.dtype.type or (isinstance(other, str) and other in (self._name, self.dtype.name))

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"mindspore.{self._name.lower()}"

    def __reduce__(self) -> tuple[Callable[[object], DType], tuple[str]]:
        return of, (self._name,)


_KNOWN: dict[object, DType] = {}

float16 = half = DType("Float16", np.float16)
float32 = single = DType("Float32", np.float32)
float64 = double = float_ = DType("Float64", np.float64)
int8 = byte = DType("Int8", np.int8)
int16 = short = DType("Int16", np.int16)
int32 = intc = DType("Int32", np.int32)
int64 = long = intp = int_ = DType("Int64", np.int64)
uint8 = ubyte = DType("UInt8", np.uint8)
uint16 = ushort = DType("UInt16", np.uint16)
uint32 = uintc = DType("UInt32", np.uint32)
uint64 = uintp = uint = DType("UInt64", np.uint64)
bool_ = DType("Bool", np.bool_)
#: Complex dtypes, with which programs compare; no tensor has one.
complex64 = cfloat = DType("Complex64", np.complex64)
complex128 = cdouble = DType("Complex128", np.complex128)
#: All dtypes of numbers, but for bfloat16.
number_type = (int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64,
               complex128)
#: Texts in columns of datasets; no tensor has them.
string = DType("String", np.str_)


def __getattr__(name: str) -> DType:
    if name != "bfloat16":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. {did_you_mean(name, __all__)}")
    try:
        dtype = _bfloat16()
    except DTypeError as error:
        raise AttributeError(str(error)) from None
    globals()[name] = dtype
    return dtype


def _bfloat16() -> DType:
    dtype = as_dtype("bfloat16")
    return _KNOWN.get(dtype) or DType("BFloat16", dtype)


# ------------------------------------------------------------------------------- conversion from and to others


def of(value: object) -> DType:
    """The DType of a NumPy dtype or scalar class, a Python type, or a name.

    Raises
    ------
    DTypeError
        When there is no such dtype, or for bfloat16 where ml_dtypes is missing.

    Examples
    --------
    >>> of(np.dtype("int8")), of("Float16"), of(bool)
    (mindspore.int8, mindspore.float16, mindspore.bool)
    """
    try:
        return _KNOWN[value]
    except (KeyError, TypeError):
        pass
    dtype = _KNOWN.get(_numpy_dtype(value))
    if dtype is None:
        raise DTypeError(f"there is no dtype {value!r}. {did_you_mean(str(value), _names(), limit=20)}")
    return dtype


def _numpy_dtype(value: object) -> np.dtype | None:
    """NumPy's dtype of a name, a dtype, a scalar class or a Python type; None for other values."""
    if isinstance(value, type):
        word = value.__name__
        valid = value in (int, float, bool) or (issubclass(value, np.generic) and not value.__subclasses__())
    elif isinstance(value, (str, np.dtype)):
        word, valid = str(value), True
    else:
        return None
    if not valid:
        return None
    if word.lower() == "bfloat16":
        return _bfloat16().dtype
    try:
        return np.dtype(value)
    except TypeError:
        return None


def _names() -> list[str]:
    return [repr(dtype).partition(".")[2] for name, dtype in _KNOWN.items() if isinstance(name, str)]


def dtype_to_nptype(type_: DTypeLike) -> type:
    """NumPy's scalar class of a dtype.

    Examples
    --------
    >>> dtype_to_nptype(int8) is np.int8
    True
    """
    return of(type_).dtype.type


def dtype_to_pytype(type_: DTypeLike) -> type:
    """The Python type of a dtype's values: bool, int or float.

    Examples
    --------
    >>> dtype_to_pytype(float16)
    <class 'float'>
    """
    dtype = of(type_)
    return bool if dtype is bool_ else float if dtype.is_floating_point else int


def pytype_to_dtype(obj: type) -> DType:
    """The dtype of a Python type or a NumPy scalar class; int64 and float64 for int and float.

    Raises
    ------
    DTypeError
        When the argument is no type, or no numeric one.

    Examples
    --------
    >>> pytype_to_dtype(int), pytype_to_dtype(np.float32)
    (mindspore.int64, mindspore.float32)
    """
    if not isinstance(obj, type):
        raise DTypeError(f"pytype_to_dtype: expected a type, such as int or float, got {obj!r}")
    return of(obj)


# ----------------------------------------------------------------------------------------------- promotion

_PROMOTED: dict[tuple[DTypeLike, DTypeLike], np.dtype] = {}


def promote(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype of an operator's result on arrays of two dtypes.

    Unlike NumPy's, integers beside floating-point values do not widen them: int64 and float16 give float16. Unsigned
    integers of 16 bits and more mix with booleans alone, as in MindSpore's ``+``. ``/`` of integers gives float32.

    Returns
    -------
    numpy.dtype
        The common dtype.

    Raises
    ------
    DTypeError
        When the two have no common dtype.

    Examples
    --------
    >>> promote(int64, float16), promote(np.dtype("uint8"), np.dtype("int8"))
    (dtype('float16'), dtype('int16'))
    """
    try:
        return _PROMOTED[a, b]
    except KeyError:
        return _PROMOTED.setdefault((a, b), _promote(of(a), of(b)).dtype)


def _promote(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if bool_ in (a, b):
        return a if b is bool_ else b
    if a in (uint16, uint32, uint64) or b in (uint16, uint32, uint64):
        raise DTypeError(f"{a} and {b} have no common dtype: convert one of them with astype")
    if a.is_floating_point != b.is_floating_point:
        return a if a.is_floating_point else b
    if a.itemsize != b.itemsize:
        return a if a.itemsize > b.itemsize else b
    return float32 if a.is_floating_point else int16  # float16 with bfloat16; int8 with uint8


def promote_number(a: DTypeLike, number: Number) -> np.dtype:
    """The dtype of an operator's result on an array and a Python number.

    A Python number has no width: it changes the dtype only if its kind ranks above the array's kind. Kinds rank:
    booleans, integers, floating-point values.

    Examples
    --------
    >>> promote_number(float16, 2.5), promote_number(int8, 1000), promote_number(int8, 0.5), promote_number(bool_, 2)
    (dtype('float16'), dtype('int8'), dtype('float32'), dtype('int64'))
    """
    array_dtype = of(a)
    if array_dtype.is_floating_point or isinstance(number, (bool, np.bool_)):
        return array_dtype.dtype
    if isinstance(number, numbers.Integral):
        return int64.dtype if array_dtype is bool_ else array_dtype.dtype
    return float32.dtype


name_errors(__name__, globals(), ["dtype_to_nptype", "dtype_to_pytype", "pytype_to_dtype"])
