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
        """The arccosine in radians, from 0 to pi."""
    def arccosh(self, *, name: str | None = None) -> Symbol:
        """The inverse of the hyperbolic cosine."""
    def arcsin(self, *, name: str | None = None) -> Symbol:
        """The arcsine in radians, from -pi/2 to pi/2."""
    def arcsinh(self, *, name: str | None = None) -> Symbol:
        """The inverse of the hyperbolic sine."""
    def arctan(self, *, name: str | None = None) -> Symbol:
        """The arctangent in radians, from -pi/2 to pi/2."""
    def arctanh(self, *, name: str | None = None) -> Symbol:
        """The inverse of the hyperbolic tangent."""
    def argmax(self, axis: int | None = None, keepdims: bool = False, *, name: str | None = None) -> Symbol:
        """The index of the largest element along ``axis``, or if None in the flattened data, in the dtype of …."""
    def argmax_channel(self, *, name: str | None = None) -> Symbol:
        """The index of the largest element along axis 1."""
    def argmin(self, axis: int | None = None, keepdims: bool = False, *, name: str | None = None) -> Symbol:
        """The index of the smallest element along ``axis``, or if None in the flattened data, in the dtype of …."""
    def argsort(self, axis: int | None = -1, is_ascend: bool = True, dtype: DType = 'float32', *,
                name: str | None = None) -> Symbol:
        """Indices that sort ``data`` along ``axis``, or flattened if None."""
    def broadcast_axes(self, axis: Ints = (), size: Ints = (), *, name: str | None = None) -> Symbol:
        """``data`` repeated ``size`` times along axes of length one."""
    def broadcast_like(self, rhs: Input, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None, *,
                       name: str | None = None) -> Symbol:
        """``lhs`` broadcast to the shape of ``rhs``, or only ``lhs_axes`` to the lengths of ``rhs_axes``."""
    def broadcast_to(self, shape: Ints = (), *, name: str | None = None) -> Symbol:
        """``data`` broadcast to ``shape``."""
    def cbrt(self, *, name: str | None = None) -> Symbol:
        """The cube root."""
    def ceil(self, *, name: str | None = None) -> Symbol:
        """Each element rounded up to an integer."""
    def clip(self, a_min: float, a_max: float, *, name: str | None = None) -> Symbol:
        """Elements clipped to the range from ``a_min`` to ``a_max``."""
    def cos(self, *, name: str | None = None) -> Symbol:
        """The cosine of an angle in radians."""
    def cosh(self, *, name: str | None = None) -> Symbol:
        """The hyperbolic cosine."""
    def degrees(self, *, name: str | None = None) -> Symbol:
        """Radians converted to degrees."""
    def depth_to_space(self, block_size: int, *, name: str | None = None) -> Symbol:
        """Moves channels to blocks of height and width."""
    def diag(self, k: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None) -> Symbol:
        """The ``k``-th diagonal over two axes of ``data``, as the last axis."""
    def exp(self, *, name: str | None = None) -> Symbol:
        """The exponential."""
    def expand_dims(self, axis: int, *, name: str | None = None) -> Symbol:
        """``data`` with an axis of length one inserted at position ``axis`` of the result."""
    def expm1(self, *, name: str | None = None) -> Symbol:
        """``exp(x) - 1``, accurate near 0."""
    def fix(self, *, name: str | None = None) -> Symbol:
        """Each element rounded towards zero to an integer."""
    def flatten(self, *, name: str | None = None) -> Symbol:
        """``data`` with all axes but the first joined."""
    def flip(self, axis: Ints, *, name: str | None = None) -> Symbol:
        """``data`` in reverse order along each ``axis``."""
    def floor(self, *, name: str | None = None) -> Symbol:
        """Each element rounded down to an integer."""
    def log(self, *, name: str | None = None) -> Symbol:
        """The natural logarithm."""
    def log10(self, *, name: str | None = None) -> Symbol:
        """The logarithm to base ten."""
    def log1p(self, *, name: str | None = None) -> Symbol:
        """``log(1 + x)``, accurate near 0."""
    def log2(self, *, name: str | None = None) -> Symbol:
        """The logarithm to base two."""
    def log_softmax(self, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                    use_length: bool | None = False, *, name: str | None = None) -> Symbol:
        """The logarithm of ``softmax``, without an intermediate rounding of the softmax."""
    def max(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None) -> Symbol:
        """The largest element along ``axis``."""
    def mean(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
             name: str | None = None) -> Symbol:
        """The mean of the elements along ``axis``."""
    def min(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None) -> Symbol:
        """The smallest element along ``axis``."""
    def nanprod(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
                name: str | None = None) -> Symbol:
        """The product of the elements along ``axis`` that are not NaN."""
    def nansum(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
               name: str | None = None) -> Symbol:
        """The sum of the elements along ``axis`` that are not NaN."""
    def norm(self, ord: Literal[1, 2] = 2, axis: Ints | None = None, out_dtype: DType | None = None,
             keepdims: bool = False, *, name: str | None = None) -> Symbol:
        """The norm of the elements along ``axis``."""
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
        """One element along ``axis`` for each position of the other axes, at the index that ``index`` holds at …."""
    def prod(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
             name: str | None = None) -> Symbol:
        """The product of the elements along ``axis``."""
    def radians(self, *, name: str | None = None) -> Symbol:
        """Degrees converted to radians."""
    def rcbrt(self, *, name: str | None = None) -> Symbol:
        """``1 / cbrt(x)``."""
    def reciprocal(self, *, name: str | None = None) -> Symbol:
        """``1 / x``."""
    def relu(self, *, name: str | None = None) -> Symbol:
        """``max(x, 0)``."""
    def repeat(self, repeats: int, axis: int | None = None, *, name: str | None = None) -> Symbol:
        """Each element of ``data`` repeated along ``axis``, or of the flat array."""
    def reshape_like(self, rhs: Input, lhs_begin: int | None = None, lhs_end: int | None = None,
                     rhs_begin: int | None = None, rhs_end: int | None = None, *, name: str | None = None) -> Symbol:
        """``lhs`` in the shape of ``rhs``."""
    def rint(self, *, name: str | None = None) -> Symbol:
        """The nearest integer."""
    def round(self, *, name: str | None = None) -> Symbol:
        """The nearest integer."""
    def rsqrt(self, *, name: str | None = None) -> Symbol:
        """``1 / sqrt(x)``."""
    def shape_array(self, *, name: str | None = None) -> Symbol:
        """The shape of ``data``, as int64."""
    def sigmoid(self, *, name: str | None = None) -> Symbol:
        """``1 / (1 + exp(-x))``."""
    def sign(self, *, name: str | None = None) -> Symbol:
        """The sign."""
    def sin(self, *, name: str | None = None) -> Symbol:
        """The sine of an angle in radians."""
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
        """The first elements of ``data`` along ``axes`` (all by default), as many as ``shape_like`` has there."""
    def softmax(self, length: Input | None = None, axis: int = -1, temperature: float | None = None,
                dtype: DType | None = None, use_length: bool | None = False, *, name: str | None = None) -> Symbol:
        """Exponentials of ``data / temperature``, scaled to a sum of one along ``axis``."""
    def softmin(self, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                use_length: bool | None = False, *, name: str | None = None) -> Symbol:
        """Exponentials of ``-data / temperature``, scaled to a sum of one along ``axis``."""
    def sort(self, axis: int | None = -1, is_ascend: bool = True, *, name: str | None = None) -> Symbol:
        """``data`` sorted along ``axis``, or flattened if None."""
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
        """``data`` without the axes ``axis``, or if None without all axes of length one."""
    def sum(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            name: str | None = None) -> Symbol:
        """The sum of the elements along ``axis``."""
    def swapaxes(self, dim1: int = 0, dim2: int = 0, *, name: str | None = None) -> Symbol:
        """``data`` with two axes swapped."""
    def take(self, indices: Input, axis: int = 0, mode: Literal['raise', 'wrap', 'clip', 'index'] = 'clip', *,
             name: str | None = None) -> Symbol:
        """The slices of ``a`` along ``axis`` at ``indices``."""
    def tan(self, *, name: str | None = None) -> Symbol:
        """The tangent of an angle in radians."""
    def tanh(self, *, name: str | None = None) -> Symbol:
        """The hyperbolic tangent."""
    def tile(self, reps: Ints, *, name: str | None = None) -> Symbol:
        """``data`` repeated ``reps`` times along each axis."""
    def topk(self, axis: int | None = -1, k: int = 1,
             ret_typ: Literal['value', 'indices', 'mask', 'both'] = 'indices', is_ascend: bool = False,
             dtype: DType = 'float32', *, name: str | None = None) -> Symbol:
        """The ``k`` largest elements along ``axis``, or of the flattened ``data``."""
    def transpose(self, axes: Ints | None = (), *, name: str | None = None) -> Symbol:
        """``data`` with its axes in the order of ``axes``, or in reverse."""
    def trunc(self, *, name: str | None = None) -> Symbol:
        """Each element rounded towards zero to an integer."""
    def zeros_like(self, *, name: str | None = None) -> Symbol:
        """An array of the shape and dtype of ``data``, filled with 0."""
