# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.symbol.symbol import Symbol
from opreg.core.value import Value

Input = Symbol
Operand = Symbol | float | np.number[Any] | np.bool_
Ints = int | Sequence[int]
Floats = float | Sequence[float]
DType = str | type[Any] | np.dtype[Any]

class Methods(Value):
    """Operators as methods."""
    def __add__(self, other: Operand) -> Symbol: ...
    def __radd__(self, other: Operand) -> Symbol: ...
    def __sub__(self, other: Operand) -> Symbol: ...
    def __rsub__(self, other: Operand) -> Symbol: ...
    def __mul__(self, other: Operand) -> Symbol: ...
    def __rmul__(self, other: Operand) -> Symbol: ...
    def __truediv__(self, other: Operand) -> Symbol: ...
    def __rtruediv__(self, other: Operand) -> Symbol: ...
    def __mod__(self, other: Operand) -> Symbol: ...
    def __rmod__(self, other: Operand) -> Symbol: ...
    def __pow__(self, other: Operand) -> Symbol: ...
    def __rpow__(self, other: Operand) -> Symbol: ...
    def __eq__(self, other: Operand) -> Symbol: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> Symbol: ...  # type: ignore[override]
    def __gt__(self, other: Operand) -> Symbol: ...
    def __ge__(self, other: Operand) -> Symbol: ...
    def __lt__(self, other: Operand) -> Symbol: ...
    def __le__(self, other: Operand) -> Symbol: ...
    def __neg__(self) -> Symbol: ...
    def __abs__(self) -> Symbol: ...
    def __matmul__(self, other: Symbol) -> Symbol: ...
    def abs(self, *, name: str | None = None) -> Symbol:
        """The absolute value."""
    def arccos(self, *, name: str | None = None) -> Symbol:
        """The angle in radians, from 0 to pi, whose cosine it is."""
    def arccosh(self, *, name: str | None = None) -> Symbol:
        """The inverse of the hyperbolic cosine, from 1 on."""
    def arcsin(self, *, name: str | None = None) -> Symbol:
        """The angle in radians, from -pi/2 to pi/2, whose sine it is."""
    def arcsinh(self, *, name: str | None = None) -> Symbol:
        """The inverse of the hyperbolic sine."""
    def arctan(self, *, name: str | None = None) -> Symbol:
        """The angle in radians, from -pi/2 to pi/2, whose tangent it is."""
    def arctanh(self, *, name: str | None = None) -> Symbol:
        """The inverse of the hyperbolic tangent."""
    def argmax(self, axis: int | None = None, keepdims: bool = False, *, name: str | None = None) -> Symbol:
        """The place of the largest number along an axis, or among all in a row, in the dtype of the data."""
    def argmax_channel(self, *, name: str | None = None) -> Symbol:
        """The index of the largest element along axis 1."""
    def argmin(self, axis: int | None = None, keepdims: bool = False, *, name: str | None = None) -> Symbol:
        """The place of the smallest number along an axis, or among all in a row, in the dtype of the data."""
    def argsort(self, axis: int | None = -1, is_ascend: bool = True, dtype: DType = 'float32', *,
                name: str | None = None) -> Symbol:
        """Indices that sort ``data`` along ``axis``, or flat."""
    def broadcast_axes(self, axis: Ints = (), size: Ints = (), *, name: str | None = None) -> Symbol:
        """``data`` repeated ``size`` times along axes of length one."""
    def broadcast_like(self, rhs: Input, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None, *,
                       name: str | None = None) -> Symbol:
        """``lhs`` broadcast to the shape of ``rhs``, or only ``lhs_axes`` to the lengths of ``rhs_axes``."""
    def broadcast_to(self, shape: Ints = (), *, name: str | None = None) -> Symbol:
        """``data`` broadcast to ``shape``, in which 0 keeps a length."""
    def cbrt(self, *, name: str | None = None) -> Symbol:
        """The cube root."""
    def ceil(self, *, name: str | None = None) -> Symbol:
        """The next whole number above."""
    def clip(self, a_min: float, a_max: float, *, name: str | None = None) -> Symbol:
        """Elements clipped to the range from ``a_min`` to ``a_max``."""
    def cos(self, *, name: str | None = None) -> Symbol:
        """The cosine, of radians."""
    def cosh(self, *, name: str | None = None) -> Symbol:
        """The hyperbolic cosine."""
    def degrees(self, *, name: str | None = None) -> Symbol:
        """Degrees from radians."""
    def depth_to_space(self, block_size: int, *, name: str | None = None) -> Symbol:
        """Moves channels to blocks of height and width."""
    def diag(self, k: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None) -> Symbol:
        """The ``k``-th diagonal over two axes of ``data``, as the last axis."""
    def exp(self, *, name: str | None = None) -> Symbol:
        """The exponential."""
    def expand_dims(self, axis: int, *, name: str | None = None) -> Symbol:
        """``data`` with an axis of length one inserted at position ``axis`` of the result."""
    def expm1(self, *, name: str | None = None) -> Symbol:
        """The exponential less one, exact near zero."""
    def fix(self, *, name: str | None = None) -> Symbol:
        """The next whole number towards zero."""
    def flatten(self, *, name: str | None = None) -> Symbol:
        """``data`` with all axes but the first joined."""
    def flip(self, axis: Ints, *, name: str | None = None) -> Symbol:
        """``data`` in reverse order along each ``axis``."""
    def floor(self, *, name: str | None = None) -> Symbol:
        """The next whole number below."""
    def log(self, *, name: str | None = None) -> Symbol:
        """The natural logarithm."""
    def log10(self, *, name: str | None = None) -> Symbol:
        """The logarithm to base ten."""
    def log1p(self, *, name: str | None = None) -> Symbol:
        """The natural logarithm of one more, exact near zero."""
    def log2(self, *, name: str | None = None) -> Symbol:
        """The logarithm to base two."""
    def log_softmax(self, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                    use_length: bool | None = False, *, name: str | None = None) -> Symbol:
        """The logarithm of ``softmax``, computed without its rounding."""
    def max(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None) -> Symbol:
        """The largest number, or NaN."""
    def mean(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
             name: str | None = None) -> Symbol:
        """The mean."""
    def min(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None) -> Symbol:
        """The smallest number, or NaN."""
    def nanprod(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
                name: str | None = None) -> Symbol:
        """The product of all but NaN."""
    def nansum(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
               name: str | None = None) -> Symbol:
        """The sum of all but NaN."""
    def norm(self, ord: Literal[1, 2] = 2, axis: Ints | None = None, out_dtype: DType | None = None,
             keepdims: bool = False, *, name: str | None = None) -> Symbol:
        """The sum of absolute values, or the square root of the sum of squares."""
    def one_hot(self, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = 'float32', *,
                name: str | None = None) -> Symbol:
        """One-hot vectors."""
    def ones_like(self, *, name: str | None = None) -> Symbol:
        """An array of the shape and dtype of ``data``, filled with 1."""
    def pad(self, mode: Literal['constant', 'edge', 'reflect'], pad_width: Ints, constant_value: float = 0.0, *,
            name: str | None = None) -> Symbol:
        """``data`` padded with a constant, with its outermost elements, or with its reflection."""
    def pick(self, index: Input | None = None, axis: int | None = -1, keepdims: bool = False,
             mode: Literal['wrap', 'clip', 'index'] = 'clip', *, name: str | None = None) -> Symbol:
        """One element along ``axis`` for each position of the other axes, at the index given there."""
    def prod(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
             name: str | None = None) -> Symbol:
        """The product."""
    def radians(self, *, name: str | None = None) -> Symbol:
        """Radians from degrees."""
    def rcbrt(self, *, name: str | None = None) -> Symbol:
        """One by the cube root."""
    def reciprocal(self, *, name: str | None = None) -> Symbol:
        """One by the number."""
    def relu(self, *, name: str | None = None) -> Symbol:
        """The number, or zero if that is more."""
    def repeat(self, repeats: int, axis: int | None = None, *, name: str | None = None) -> Symbol:
        """Each element of ``data`` repeated along ``axis``, or of the flat array."""
    def reshape_like(self, rhs: Input, lhs_begin: int | None = None, lhs_end: int | None = None,
                     rhs_begin: int | None = None, rhs_end: int | None = None, *, name: str | None = None) -> Symbol:
        """``lhs`` in the shape of ``rhs``, or with its lengths ``[lhs_begin, lhs_end)`` replaced by the …."""
    def rint(self, *, name: str | None = None) -> Symbol:
        """The nearest whole number, halves down."""
    def round(self, *, name: str | None = None) -> Symbol:
        """The nearest whole number, halves away from zero."""
    def rsqrt(self, *, name: str | None = None) -> Symbol:
        """One by the square root."""
    def shape_array(self, *, name: str | None = None) -> Symbol:
        """The shape of ``data``, as int64."""
    def sigmoid(self, *, name: str | None = None) -> Symbol:
        """1 / (1 + exp(-x))."""
    def sign(self, *, name: str | None = None) -> Symbol:
        """-1, 0 or 1."""
    def sin(self, *, name: str | None = None) -> Symbol:
        """The sine, of radians."""
    def sinh(self, *, name: str | None = None) -> Symbol:
        """The hyperbolic sine."""
    def size_array(self, *, name: str | None = None) -> Symbol:
        """Number of elements of ``data``, as an int64 scalar."""
    def slice(self, begin: int | Sequence[int | None], end: int | Sequence[int | None],
              step: int | Sequence[int | None] | None = (), *, name: str | None = None) -> Symbol:
        """The slice of ``data`` from ``begin`` to before ``end`` along the first axes."""
    def slice_axis(self, axis: int, begin: int, end: int | None, *, name: str | None = None) -> Symbol:
        """The slice of ``data`` from ``begin`` to before ``end`` along ``axis``."""
    def slice_like(self, shape_like: Input, axes: Ints = (), *, name: str | None = None) -> Symbol:
        """The first elements of ``data`` along ``axes`` (all by default), as many as ``shape_like`` has."""
    def softmax(self, length: Input | None = None, axis: int = -1, temperature: float | None = None,
                dtype: DType | None = None, use_length: bool | None = False, *, name: str | None = None) -> Symbol:
        """Exponentials of ``data / temperature``, scaled to a sum of one along ``axis``."""
    def softmin(self, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                use_length: bool | None = False, *, name: str | None = None) -> Symbol:
        """Exponentials of ``-data / temperature``, scaled to a sum of one along ``axis``."""
    def sort(self, axis: int | None = -1, is_ascend: bool = True, *, name: str | None = None) -> Symbol:
        """``data`` sorted along ``axis``, or flat."""
    def space_to_depth(self, block_size: int, *, name: str | None = None) -> Symbol:
        """Moves blocks of height and width to channels, ordered by block row, block column, channel."""
    def split(self, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, *,
              name: str | None = None) -> Symbol:
        """``data`` split into equal parts along ``axis``."""
    def split_v2(self, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False) -> Symbol:
        """Split an array or symbol along an axis."""
    def sqrt(self, *, name: str | None = None) -> Symbol:
        """The square root."""
    def square(self, *, name: str | None = None) -> Symbol:
        """The square."""
    def squeeze(self, axis: Ints | None = None, *, name: str | None = None) -> Symbol:
        """``data`` without the given axes, or for None without all axes of length one."""
    def sum(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None) -> Symbol:
        """The sum."""
    def swapaxes(self, dim1: int = 0, dim2: int = 0, *, name: str | None = None) -> Symbol:
        """``data`` with two axes swapped."""
    def take(self, indices: Input, axis: int = 0, mode: Literal['raise', 'wrap', 'clip', 'index'] = 'clip', *,
             name: str | None = None) -> Symbol:
        """The slices of ``a`` along ``axis`` at ``indices``."""
    def tan(self, *, name: str | None = None) -> Symbol:
        """The tangent, of radians."""
    def tanh(self, *, name: str | None = None) -> Symbol:
        """The hyperbolic tangent."""
    def tile(self, reps: Ints, *, name: str | None = None) -> Symbol:
        """``data`` repeated ``reps`` times along each axis."""
    def topk(self, axis: int | None = -1, k: int = 1,
             ret_typ: Literal['value', 'indices', 'mask', 'both'] = 'indices', is_ascend: bool = False,
             dtype: DType = 'float32', *, name: str | None = None) -> Symbol:
        """The ``k`` largest elements along ``axis`` or of flat ``data``, or with ``is_ascend`` the smallest."""
    def transpose(self, axes: Ints | None = (), *, name: str | None = None) -> Symbol:
        """``data`` with its axes in the order of ``axes``, or in reverse."""
    def trunc(self, *, name: str | None = None) -> Symbol:
        """The next whole number towards zero."""
    def zeros_like(self, *, name: str | None = None) -> Symbol:
        """An array of the shape and dtype of ``data``, filled with 0."""
