# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.core.value import Value

Input = NDArray | np.ndarray[Any, Any]
Operand = NDArray | np.ndarray[Any, Any] | float | np.number[Any] | np.bool_
Out = NDArray | Sequence[NDArray] | None
Ints = int | Sequence[int]
Floats = float | Sequence[float]
DType = str | type[Any] | np.dtype[Any]

class Methods(Value):
    """Operators as methods."""
    def __add__(self, other: Operand) -> NDArray: ...
    def __radd__(self, other: Operand) -> NDArray: ...
    def __sub__(self, other: Operand) -> NDArray: ...
    def __rsub__(self, other: Operand) -> NDArray: ...
    def __mul__(self, other: Operand) -> NDArray: ...
    def __rmul__(self, other: Operand) -> NDArray: ...
    def __truediv__(self, other: Operand) -> NDArray: ...
    def __rtruediv__(self, other: Operand) -> NDArray: ...
    def __mod__(self, other: Operand) -> NDArray: ...
    def __rmod__(self, other: Operand) -> NDArray: ...
    def __pow__(self, other: Operand) -> NDArray: ...
    def __rpow__(self, other: Operand) -> NDArray: ...
    def __eq__(self, other: Operand) -> NDArray: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> NDArray: ...  # type: ignore[override]
    def __gt__(self, other: Operand) -> NDArray: ...  # type: ignore[misc]
    def __ge__(self, other: Operand) -> NDArray: ...  # type: ignore[misc]
    def __lt__(self, other: Operand) -> NDArray: ...  # type: ignore[misc]
    def __le__(self, other: Operand) -> NDArray: ...  # type: ignore[misc]
    def __neg__(self) -> NDArray: ...
    def __abs__(self) -> NDArray: ...
    def __matmul__(self, other: NDArray) -> NDArray: ...
    def abs(self, *, out: Out = None) -> NDArray:
        """The absolute value."""
    def arccos(self, *, out: Out = None) -> NDArray:
        """The arccosine in radians, from 0 to pi."""
    def arccosh(self, *, out: Out = None) -> NDArray:
        """The inverse of the hyperbolic cosine."""
    def arcsin(self, *, out: Out = None) -> NDArray:
        """The arcsine in radians, from -pi/2 to pi/2."""
    def arcsinh(self, *, out: Out = None) -> NDArray:
        """The inverse of the hyperbolic sine."""
    def arctan(self, *, out: Out = None) -> NDArray:
        """The arctangent in radians, from -pi/2 to pi/2."""
    def arctanh(self, *, out: Out = None) -> NDArray:
        """The inverse of the hyperbolic tangent."""
    def argmax(self, axis: int | None = None, keepdims: bool = False, *, out: Out = None) -> NDArray:
        """The index of the largest element along ``axis``, or if None in the flattened data, in the dtype of …."""
    def argmax_channel(self, *, out: Out = None) -> NDArray:
        """The index of the largest element along axis 1."""
    def argmin(self, axis: int | None = None, keepdims: bool = False, *, out: Out = None) -> NDArray:
        """The index of the smallest element along ``axis``, or if None in the flattened data, in the dtype of …."""
    def argsort(self, axis: int | None = -1, is_ascend: bool = True, dtype: DType = 'float32', *,
                out: Out = None) -> NDArray:
        """Indices that sort ``data`` along ``axis``, or flattened if None."""
    def broadcast_axes(self, axis: Ints = (), size: Ints = (), *, out: Out = None) -> NDArray:
        """``data`` repeated ``size`` times along axes of length one."""
    def broadcast_like(self, rhs: Input, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None, *,
                       out: Out = None) -> NDArray:
        """``lhs`` broadcast to the shape of ``rhs``, or only ``lhs_axes`` to the lengths of ``rhs_axes``."""
    def broadcast_to(self, shape: Ints = (), *, out: Out = None) -> NDArray:
        """``data`` broadcast to ``shape``."""
    def cbrt(self, *, out: Out = None) -> NDArray:
        """The cube root."""
    def ceil(self, *, out: Out = None) -> NDArray:
        """Each element rounded up to an integer."""
    def clip(self, a_min: float, a_max: float, *, out: Out = None) -> NDArray:
        """Elements clipped to the range from ``a_min`` to ``a_max``."""
    def cos(self, *, out: Out = None) -> NDArray:
        """The cosine of an angle in radians."""
    def cosh(self, *, out: Out = None) -> NDArray:
        """The hyperbolic cosine."""
    def degrees(self, *, out: Out = None) -> NDArray:
        """Radians converted to degrees."""
    def depth_to_space(self, block_size: int, *, out: Out = None) -> NDArray:
        """Moves channels to blocks of height and width."""
    def diag(self, k: int = 0, axis1: int = 0, axis2: int = 1, *, out: Out = None) -> NDArray:
        """The ``k``-th diagonal over two axes of ``data``, as the last axis."""
    def exp(self, *, out: Out = None) -> NDArray:
        """The exponential."""
    def expm1(self, *, out: Out = None) -> NDArray:
        """``exp(x) - 1``, accurate near 0."""
    def fix(self, *, out: Out = None) -> NDArray:
        """Each element rounded towards zero to an integer."""
    def flip(self, axis: Ints, *, out: Out = None) -> NDArray:
        """``data`` in reverse order along each ``axis``."""
    def floor(self, *, out: Out = None) -> NDArray:
        """Each element rounded down to an integer."""
    def log(self, *, out: Out = None) -> NDArray:
        """The natural logarithm."""
    def log10(self, *, out: Out = None) -> NDArray:
        """The logarithm to base ten."""
    def log1p(self, *, out: Out = None) -> NDArray:
        """``log(1 + x)``, accurate near 0."""
    def log2(self, *, out: Out = None) -> NDArray:
        """The logarithm to base two."""
    def log_softmax(self, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                    use_length: bool | None = False, *, out: Out = None) -> NDArray:
        """The logarithm of ``softmax``, without an intermediate rounding of the softmax."""
    def max(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            out: Out = None) -> NDArray:
        """The largest element along ``axis``."""
    def mean(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
             out: Out = None) -> NDArray:
        """The mean of the elements along ``axis``."""
    def min(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            out: Out = None) -> NDArray:
        """The smallest element along ``axis``."""
    def nanprod(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
                out: Out = None) -> NDArray:
        """The product of the elements along ``axis`` that are not NaN."""
    def nansum(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
               out: Out = None) -> NDArray:
        """The sum of the elements along ``axis`` that are not NaN."""
    def norm(self, ord: Literal[1, 2] = 2, axis: Ints | None = None, out_dtype: DType | None = None,
             keepdims: bool = False, *, out: Out = None) -> NDArray:
        """The norm of the elements along ``axis``."""
    def one_hot(self, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = 'float32', *,
                out: Out = None) -> NDArray:
        """One-hot vectors."""
    def ones_like(self, *, out: Out = None) -> NDArray:
        """An array of the shape and dtype of ``data``, filled with 1."""
    def pad(self, mode: Literal['constant', 'edge', 'reflect'], pad_width: Ints, constant_value: float = 0.0, *,
            out: Out = None) -> NDArray:
        """``data`` padded with a constant, with its outermost elements, or with its reflection."""
    def pick(self, index: Input, axis: int | None = -1, keepdims: bool = False,
             mode: Literal['wrap', 'clip', 'index'] = 'clip', *, out: Out = None) -> NDArray:
        """One element along ``axis`` for each position of the other axes, at the index that ``index`` holds at …."""
    def prod(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
             out: Out = None) -> NDArray:
        """The product of the elements along ``axis``."""
    def radians(self, *, out: Out = None) -> NDArray:
        """Degrees converted to radians."""
    def rcbrt(self, *, out: Out = None) -> NDArray:
        """``1 / cbrt(x)``."""
    def reciprocal(self, *, out: Out = None) -> NDArray:
        """``1 / x``."""
    def relu(self, *, out: Out = None) -> NDArray:
        """``max(x, 0)``."""
    def repeat(self, repeats: int, axis: int | None = None, *, out: Out = None) -> NDArray:
        """Each element of ``data`` repeated along ``axis``, or of the flat array."""
    def reshape_like(self, rhs: Input, lhs_begin: int | None = None, lhs_end: int | None = None,
                     rhs_begin: int | None = None, rhs_end: int | None = None, *, out: Out = None) -> NDArray:
        """``lhs`` in the shape of ``rhs``."""
    def rint(self, *, out: Out = None) -> NDArray:
        """The nearest integer."""
    def round(self, *, out: Out = None) -> NDArray:
        """The nearest integer."""
    def rsqrt(self, *, out: Out = None) -> NDArray:
        """``1 / sqrt(x)``."""
    def shape_array(self, *, out: Out = None) -> NDArray:
        """The shape of ``data``, as int64."""
    def sigmoid(self, *, out: Out = None) -> NDArray:
        """``1 / (1 + exp(-x))``."""
    def sign(self, *, out: Out = None) -> NDArray:
        """The sign."""
    def sin(self, *, out: Out = None) -> NDArray:
        """The sine of an angle in radians."""
    def sinh(self, *, out: Out = None) -> NDArray:
        """The hyperbolic sine."""
    def size_array(self, *, out: Out = None) -> NDArray:
        """Number of elements of ``data``, as an int64 scalar."""
    def slice(self, begin: int | Sequence[int | None], end: int | Sequence[int | None],
              step: int | Sequence[int | None] | None = (), *, out: Out = None) -> NDArray:
        """The slice of ``data`` from ``begin`` to before ``end`` along the first axes."""
    def slice_axis(self, axis: int, begin: int, end: int | None, *, out: Out = None) -> NDArray:
        """The slice of ``data`` from ``begin`` to before ``end`` along ``axis``."""
    def slice_like(self, shape_like: Input, axes: Ints = (), *, out: Out = None) -> NDArray:
        """The first elements of ``data`` along ``axes`` (all by default), as many as ``shape_like`` has there."""
    def softmax(self, length: Input | None = None, axis: int = -1, temperature: float | None = None,
                dtype: DType | None = None, use_length: bool | None = False, *, out: Out = None) -> NDArray:
        """Exponentials of ``data / temperature``, scaled to a sum of one along ``axis``."""
    def softmin(self, axis: int = -1, temperature: float | None = None, dtype: DType | None = None,
                use_length: bool | None = False, *, out: Out = None) -> NDArray:
        """Exponentials of ``-data / temperature``, scaled to a sum of one along ``axis``."""
    def sort(self, axis: int | None = -1, is_ascend: bool = True, *, out: Out = None) -> NDArray:
        """``data`` sorted along ``axis``, or flattened if None."""
    def space_to_depth(self, block_size: int, *, out: Out = None) -> NDArray:
        """Moves blocks of height and width to channels, ordered by block row, block column, channel."""
    def split(self, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, *, out: Out = None) -> list[NDArray]:
        """``data`` split into equal parts along ``axis``."""
    def split_v2(self, indices_or_sections: int | Sequence[int], axis: int = 0,
                 squeeze_axis: bool = False) -> list[NDArray]:
        """Split an array or symbol along an axis."""
    def sqrt(self, *, out: Out = None) -> NDArray:
        """The square root."""
    def square(self, *, out: Out = None) -> NDArray:
        """The square."""
    def sum(self, axis: Ints | None = None, keepdims: bool = False, exclude: bool = False, *,
            out: Out = None) -> NDArray:
        """The sum of the elements along ``axis``."""
    def swapaxes(self, dim1: int = 0, dim2: int = 0, *, out: Out = None) -> NDArray:
        """``data`` with two axes swapped."""
    def take(self, indices: Input, axis: int = 0, mode: Literal['raise', 'wrap', 'clip', 'index'] = 'clip', *,
             out: Out = None) -> NDArray:
        """The slices of ``a`` along ``axis`` at ``indices``."""
    def tan(self, *, out: Out = None) -> NDArray:
        """The tangent of an angle in radians."""
    def tanh(self, *, out: Out = None) -> NDArray:
        """The hyperbolic tangent."""
    def tile(self, reps: Ints, *, out: Out = None) -> NDArray:
        """``data`` repeated ``reps`` times along each axis."""
    def topk(self, axis: int | None = -1, k: int = 1,
             ret_typ: Literal['value', 'indices', 'mask', 'both'] = 'indices', is_ascend: bool = False,
             dtype: DType = 'float32', *, out: Out = None) -> NDArray:
        """The ``k`` largest elements along ``axis``, or of the flattened ``data``."""
    def transpose(self, axes: Ints | None = (), *, out: Out = None) -> NDArray:
        """``data`` with its axes in the order of ``axes``, or in reverse."""
    def trunc(self, *, out: Out = None) -> NDArray:
        """Each element rounded towards zero to an integer."""
    def zeros_like(self, *, out: Out = None) -> NDArray:
        """An array of the shape and dtype of ``data``, filled with 0."""
