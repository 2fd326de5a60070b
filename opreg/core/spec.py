"""Spec: the shape and the dtype of an array, as far as they are known before it exists.

A shape is a tuple of ints. An unknown dimension is ``ANY``, and a shape of unknown rank is ``None``. Arithmetic on
``ANY`` gives ``ANY``, and it equals every number; so a shape rule written for known shapes also runs on partly known
ones, and rejects only those that are certainly wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..errors import AttrError, DTypeError, ShapeError, did_you_mean
from ..typing import DTypeLike
from .mode import MODE

__all__ = [
    "ANY", "Spec", "Shape", "is_known", "parse_shape", "size", "strides_of", "bytes_of", "unify", "common_dims",
    "broadcast", "check_axis", "check_axes", "axis_from_front", "reduced_axes", "show", "holds_any", "cut_length",
    "DTYPES", "as_dtype", "dtype_flag", "TypeFlag", "common_dtype",
    "is_floating", "is_numpy_float", "is_single_or_double", "is_narrow", "largest_exact_integer", "limits",
]


class _Any:
    """An unknown dimension: arithmetic on it gives an unknown one, and it equals any number."""

    __slots__ = ()

    def _stay(self, *_: object) -> _Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _stay
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __pow__ = _stay

    def _no(self, _: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _no

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "?"

    def __reduce__(self) -> str:
        return "ANY"


ANY: Any = _Any()

Shape = tuple[int, ...]


class Spec(NamedTuple):
    """Shape and dtype of one array; either may be None while unknown.

    Examples
    --------
    >>> Spec((2, ANY), np.dtype("float32"))
    (2, ?) float32
    """

    shape: Shape | None = None
    dtype: np.dtype | None = None

    def __repr__(self) -> str:
        return f"{show(self.shape)} {self.dtype or '?'}"


def is_known(shape: Shape | None) -> TypeGuard[Shape]:
    """Whether the rank and every dimension are known.

    Examples
    --------
    >>> is_known((2, 3)), is_known((2, ANY)), is_known(None)
    (True, False, False)
    """
    if shape is None:
        return False
    for dim in shape:
        if dim is ANY:
            return False
    return True


def holds_any(value: object) -> bool:
    """Whether a value is ``ANY``, or a tuple, a list or a slice with it.

    Examples
    --------
    >>> holds_any((2, slice(None, ANY))), holds_any((2, None))
    (True, False)
    """
    if isinstance(value, slice):
        return holds_any((value.start, value.stop, value.step))
    return value is ANY or (isinstance(value, (tuple, list)) and any(map(holds_any, value)))


def cut_length(dim: int, part: slice) -> int:
    """The length of a slice of an axis; ``ANY`` if it depends on what is unknown.

    Examples
    --------
    >>> cut_length(5, slice(1, None, 2)), cut_length(ANY, slice(1, None)), cut_length(5, slice(1, ANY))
    (2, ?, ?)
    """
    return ANY if holds_any((dim, part)) else len(range(*part.indices(dim)))


def parse_shape(dims: Iterable[int] | None, np_shape: bool | None = None) -> Shape | None:
    """A shape as users write it: 0 is an unknown dimension and ``()`` an unknown shape, except under ``np_shape``,
    which by default is the mode set in ``opreg.util``.

    Examples
    --------
    >>> parse_shape((2, 0, -1)), parse_shape(())
    ((2, ?, ?), None)
    """
    if dims is None:
        return None
    if np_shape is None:
        np_shape = MODE.np_shape
    shape = tuple([ANY if dim < 0 or (dim == 0 and not np_shape) else int(dim) for dim in dims])
    return shape if shape or np_shape else None


def size(shape: Shape) -> int:
    """Number of elements."""
    return math.prod(shape)


def strides_of(shape: Shape) -> Shape:
    """Strides of a contiguous array, in elements.

    Examples
    --------
    >>> strides_of((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([math.prod(shape[axis + 1:]) for axis in range(len(shape))])


def bytes_of(shape: Shape, dtype: DTypeLike) -> str:
    """Size of an array in memory, as an error message prints it: ``24 bytes``."""
    return f"{math.prod(map(int, shape)) * np.dtype(dtype).itemsize:,} bytes"


def show(shape: Shape | None) -> str:
    """A shape as an error message prints it: ``(2, ?)``, or ``?`` for an unknown rank."""
    return "?" if shape is None else str(tuple(shape))


def unify(left: Shape | None, right: Shape | None) -> Shape | None:
    """Merge two descriptions of one shape.

    Raises
    ------
    ShapeError
        When they contradict each other.

    Examples
    --------
    >>> unify((2, ANY), (ANY, 3))
    (2, 3)
    """
    if left is right or right is None:
        return left
    if left is None:
        return right
    if left != right:  # ANY equals everything, so they contradict each other
        raise ShapeError(f"shapes {show(left)} and {show(right)} differ")
    if is_known(left):
        return left
    return tuple([b if a is ANY else a for a, b in zip(left, right)])


def common_dims(shapes: Sequence[Shape]) -> Shape | None:
    """The dimensions that all shapes have in common, ``ANY`` where they differ; None for different ranks.

    Examples
    --------
    >>> common_dims([(2, 3), (5, 3)]), common_dims([(2,), (2, 2)])
    ((?, 3), None)
    """
    if len({*map(len, shapes)}) > 1:
        return None
    return tuple([dims[0] if len({*dims}) == 1 else ANY for dims in zip(*shapes)])


def broadcast(*shapes: Shape) -> Shape:
    """The shape of the result by NumPy's broadcasting rule.

    Raises
    ------
    ShapeError
        When a dimension is neither equal nor one.

    Examples
    --------
    >>> broadcast((4, 1), (3,))
    (4, 3)
    """
    first = shapes[0]
    if all(shape is first or (shape == first and is_known(shape)) for shape in shapes[1:]) and is_known(first):
        return first
    rank = max(len(shape) for shape in shapes)
    result = []
    for position in range(-rank, 0):
        dim: Any = 1
        for shape in shapes:
            if -position > len(shape):
                continue
            length = shape[position]
            if dim is ANY:
                # An unknown dimension beside n > 1 must be n or 1: the result is n either way.
                dim = length if length is not ANY and length != 1 else ANY
            elif length is ANY:
                dim = ANY if dim == 1 else dim
            elif dim == 1:
                dim = length
            elif length != 1 and length != dim:
                text = " and ".join(show(shape) for shape in shapes)
                raise ShapeError(f"shapes {text} do not broadcast: {dim} and {length} in dimension {position}")
        result.append(dim)
    return tuple(result)


def check_axis(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front.

    Raises
    ------
    AttrError
        When it is outside ``[-rank, rank)``.

    Examples
    --------
    >>> check_axis(-1, 3)
    2
    """
    if not -rank <= axis < rank:
        raise AttrError(f"{what}={axis} is out of range for an array of rank {rank}: "
                        f"expected {-rank} to {rank - 1}" if rank else f"{what}={axis}: the array has no axes")
    return axis + rank if axis < 0 else axis


def axis_from_front(shape: Shape, axis: int | None) -> tuple[Shape, int]:
    """A shape and an axis of it counted from the front; for None the shape of all elements in a row, and its axis.

    Raises
    ------
    AttrError
        When the axis is out of range.

    Examples
    --------
    >>> axis_from_front((2, 3), -1), axis_from_front((2, 3), None)
    (((2, 3), 1), ((6,), 0))
    """
    return ((math.prod(shape),), 0) if axis is None else (shape, check_axis(axis, len(shape)))


def check_axes(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes counted from the front, sorted; all of them for None or an empty tuple.

    Raises
    ------
    AttrError
        When one is out of range or named twice.

    Examples
    --------
    >>> check_axes((-1, 0), 3)
    (0, 2)
    """
    if axes is None or axes == ():
        return tuple(range(rank))
    numbers = [check_axis(axis, rank) for axis in ((axes,) if isinstance(axes, int) else axes)]
    if len(set(numbers)) != len(numbers):
        raise AttrError(f"axis={axes} has an axis twice")
    return tuple(sorted(numbers))


# ---------------------------------------------------------------------------------------------- dtypes

#: Dtypes by the integers that MXNet's files and attributes use; its Python has no names for 8 to 11.
DTYPES: dict[int, str] = {
    0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool",
    8: "int16", 9: "uint16", 10: "uint32", 11: "uint64", 12: "bfloat16",
}
_FLAGS = {name: flag for flag, name in DTYPES.items()}
#: Dtypes by names, numbers and classes of these packages, which are few and never get another dtype.
_CACHE: dict[tuple[type, object], np.dtype] = {}
_FIXED = frozenset({"builtins", "numpy", "opreg", "ml_dtypes"})


def reduced_axes(axis: int | Sequence[int] | None, exclude: bool, rank: int) -> tuple[int, ...]:
    """The axes to reduce; None or an empty tuple means all, whatever ``exclude`` is. An array without axes may be
    reduced along its axis 0 or -1, as in NumPy."""
    if rank == 0 and axis in (0, -1, (0,), (-1,)):
        return ()
    named = check_axes(axis, rank)
    if exclude and axis is not None and axis != ():
        return tuple([i for i in range(rank) if i not in named])
    return named


def as_dtype(value: object) -> np.dtype:
    """The NumPy dtype of anything that NumPy takes as one, or of MXNet's integer.

    Raises
    ------
    DTypeError
        For a dtype that arrays here cannot have, or bfloat16 without the package ml_dtypes.

    Examples
    --------
    >>> as_dtype("float32"), as_dtype("half"), as_dtype("<i4"), as_dtype(np.int8), as_dtype(1)
    (dtype('float32'), dtype('float16'), dtype('int32'), dtype('int8'), dtype('float64'))
    """
    key = value.__class__, value  # 1, True and 1.0 are equal, and so are 2 and np.float64(2)
    try:
        return _CACHE[key]
    except (KeyError, TypeError):
        pass
    name: Any = value
    if isinstance(value, TypeFlag):
        name = value.name
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        name = DTYPES.get(int(value), value)
    if isinstance(name, str) and name.isdigit():
        name = DTYPES.get(int(name), name)
    if not isinstance(name, str) or name not in _FLAGS:
        try:
            name = np.dtype(name).name
        except (TypeError, ValueError, SyntaxError):  # text that NumPy parses and rejects: "i4,", "(2"
            name = getattr(name, "__name__", name)
    if not isinstance(name, str) or name not in _FLAGS:
        raise DTypeError(f"dtype {value!r} is not a dtype of arrays. {did_you_mean(name, _FLAGS)}")
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise DTypeError("dtype bfloat16 needs the package ml_dtypes, which is not installed") from None
        dtype = np.dtype(ml_dtypes.bfloat16)
    else:
        dtype = np.dtype(name)
    kind = value if isinstance(value, type) else value.__class__
    if kind.__module__.partition(".")[0] in _FIXED:
        try:
            _CACHE[key] = dtype
        except TypeError:
            pass
    return dtype


def is_floating(dtype: np.dtype) -> bool:
    """Whether a dtype is a floating-point one: NumPy's own, or bfloat16, whose ``kind`` in NumPy is another.

    Examples
    --------
    >>> is_floating(np.dtype("float16")), is_floating(np.dtype("int32"))
    (True, False)
    """
    kind = dtype.kind
    return kind == "f" or (kind == "V" and dtype.name == "bfloat16")


def is_numpy_float(dtype: np.dtype) -> bool:
    """Whether a dtype is one of NumPy's own floating-point ones, not bfloat16, which some fast code cannot handle.

    Examples
    --------
    >>> is_numpy_float(np.dtype("float16"))
    True
    """
    return dtype.kind == "f"


def is_single_or_double(dtype: np.dtype) -> bool:
    """Whether a dtype is float32 or float64, which BLAS computes in. To ask for the name takes twenty times as long.

    Examples
    --------
    >>> is_single_or_double(np.dtype("float32")), is_single_or_double(np.dtype("complex64"))
    (True, False)
    """
    return dtype.char in "fd"


def is_narrow(dtype: np.dtype) -> bool:
    """Whether sums of a dtype are accumulated in a wider one: of float16 and bfloat16.

    Examples
    --------
    >>> is_narrow(np.dtype("float16")), is_narrow(np.dtype("int16")), is_narrow(np.dtype("float32"))
    (True, False, False)
    """
    return dtype.itemsize == 2 and is_floating(dtype)


def largest_exact_integer(dtype: np.dtype) -> int:
    """The largest n such that a dtype represents all integers from 0 to n.

    Examples
    --------
    >>> largest_exact_integer(np.dtype("uint8")), largest_exact_integer(np.dtype("float16"))
    (255, 2048)
    """
    if not is_floating(dtype):
        return int(np.iinfo(dtype).max)
    return 2 << (np.finfo(dtype).nmant if is_numpy_float(dtype) else 7)


def limits(dtype: np.dtype) -> tuple[float, float]:
    """The least and the largest finite value of a dtype; integers for an integer dtype.

    Examples
    --------
    >>> limits(np.dtype("int8"))
    (-128, 127)
    """
    if not is_floating(dtype):
        integer_limits = np.iinfo(dtype)
        return int(integer_limits.min), int(integer_limits.max)
    largest = float(np.finfo(dtype).max) if is_numpy_float(dtype) else 2.0 ** 128 - 2.0 ** 120
    return -largest, largest


def fits(number: float, dtype: np.dtype) -> bool:
    """Whether a number is between the limits of a dtype."""
    least, largest = limits(dtype)
    return least <= number <= largest


def wrapped(number: int, dtype: np.dtype) -> int:
    """An integer converted to an integer dtype; a value out of range wraps around.

    Examples
    --------
    >>> wrapped(300, np.dtype("uint8")), wrapped(-1, np.dtype("uint64"))
    (44, 18446744073709551615)
    """
    least, largest = limits(dtype)
    return int((number - least) % (largest - least + 1) + least)


def dtype_flag(dtype: object) -> int:
    """MXNet's integer for a dtype.

    Examples
    --------
    >>> dtype_flag("uint8")
    3
    """
    return _FLAGS[as_dtype(dtype).name]


class TypeFlag(int):
    """MXNet's integer for a dtype, which also compares and converts as the NumPy dtype.

    ``create_operator`` of a CustomOpProp receives these: programs written for MXNet compare them with integers, newer
    ones with dtypes; ``np.dtype(flag)`` is the dtype.

    Examples
    --------
    >>> flag = TypeFlag("float64")
    >>> flag == 1, flag == np.float64, flag == "float64", np.zeros(2, flag.dtype).dtype
    (True, True, True, dtype('float64'))
    """

    dtype: np.dtype

    def __new__(cls, value: object) -> TypeFlag:
        dtype = as_dtype(value)
        self = super().__new__(cls, _FLAGS[dtype.name])
        self.dtype = dtype
        return self

    @property
    def name(self) -> str:
        """The dtype's name."""
        return self.dtype.name

    @property
    def type(self) -> type:
        """The NumPy scalar class."""
        return self.dtype.type

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, np.integer)):
            return int(self) == int(other)
        try:
            return self.dtype == np.dtype(other)  # type: ignore[call-overload]
        except TypeError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __repr__(self) -> str:
        return f"{int(self)}:{self.name}"


def common_dtype(dtypes: Iterable[np.dtype | None]) -> np.dtype | None:
    """The common dtype of those that are known; None if none is known.

    Raises
    ------
    DTypeError
        When two differ.
    """
    common: np.dtype | None = None
    for dtype in dtypes:
        if dtype is None or dtype is common:
            continue
        if common is not None and dtype != common:
            raise DTypeError(f"dtypes {common} and {dtype} differ; .astype({common.name!r}) converts the other")
        common = dtype
    return common
