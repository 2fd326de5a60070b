# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from opreg.core.value import Value
from opreg.cells.tensor import Tensor
from opreg.cells.typing import AnyShape, ArrayLike, Axes, Number, Sizes, TensorDType, TensorLike

Operand = TensorLike
_int = int
_float = float
_bool = bool

class Methods(Value):
    """Functions of ``ops`` as methods."""
    def __add__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __iadd__(self, other: Operand) -> Tensor: ...
    def __sub__(self, other: Operand) -> Tensor: ...
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __isub__(self, other: Operand) -> Tensor: ...
    def __mul__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __imul__(self, other: Operand) -> Tensor: ...
    def __truediv__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __itruediv__(self, other: Operand) -> Tensor: ...
    def __mod__(self, other: Operand) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __imod__(self, other: Operand) -> Tensor: ...
    def __pow__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __ipow__(self, other: Operand) -> Tensor: ...
    def __eq__(self, other: Operand) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Operand) -> Tensor: ...  # type: ignore[override]
    def __gt__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __ge__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __lt__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def __le__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]
    def abs(self) -> Tensor:
        """The absolute value."""
    def absolute(self) -> Tensor:
        """The absolute value."""
    def acos(self) -> Tensor:
        """The angle in radians whose cosine it is."""
    def acosh(self) -> Tensor:
        """The inverse of the hyperbolic cosine."""
    def add(self, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
        """The sum with ``alpha`` times another tensor."""
    def add_(self, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
        """Add numbers, times ``alpha``."""
    def addbmm(self, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = 1,
               alpha: TensorLike = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the sum of all products ``batch1 @ batch2``."""
    def addcdiv(self, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``."""
    def addcmul(self, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``."""
    def addmm(self, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
        """``beta * input + alpha * mat1 @ mat2``."""
    def addmm_(self, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
        """``x[...] = ops.addmm(x, …)``."""
    def addmv(self, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
        """``beta * input + alpha * mat @ vec``."""
    def addr(self, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
        """``beta * x + alpha * outer(vec1, vec2)``."""
    def adjoint(self) -> Tensor:
        """Matrices with their last two axes swapped."""
    def all(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """Whether all elements are true, or nonzero."""
    def allclose(self, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08,
                 equal_nan: _bool = False) -> Tensor:
        """Whether all elements are close to those of another tensor, within ``atol + rtol * |other|``."""
    def amax(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The largest number, ``initial`` at least, of those where ``where`` holds."""
    def amin(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The smallest number, ``initial`` at most, of those where ``where`` holds."""
    def aminmax(self, *, axis: _int | None = 0, keepdims: _bool = False) -> tuple[Tensor, Tensor]:
        """The smallest and the largest element."""
    def any(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """Whether any element is true, or nonzero."""
    def approximate_equal(self, y: TensorLike, tolerance: _float = 1e-05) -> Tensor:
        """Whether elements differ by less than ``tolerance``."""
    def arccos(self) -> Tensor:
        """The angle in radians whose cosine it is."""
    def arccosh(self) -> Tensor:
        """The inverse of the hyperbolic cosine."""
    def arcsin(self) -> Tensor:
        """The angle in radians whose sine it is."""
    def arcsinh(self) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def arctan(self) -> Tensor:
        """The angle in radians whose tangent it is."""
    def arctan2(self, other: TensorLike) -> Tensor:
        """The angle in radians, from -pi to pi, of the point with ordinate ``input`` and abscissa ``other``."""
    def arctanh(self) -> Tensor:
        """The inverse of the hyperbolic tangent."""
    def argmax(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the largest element, as int64."""
    def argmax_with_value(self, axis: _int = 0, keep_dims: _bool = False) -> tuple[Tensor, Tensor]:
        """The largest element along an axis, and its index."""
    def argmin(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The index of the smallest element, as int32."""
    def argmin_with_value(self, axis: _int = 0, keep_dims: _bool = False) -> tuple[Tensor, Tensor]:
        """The smallest element along an axis, and its index."""
    def argsort(self, axis: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """Indices that sort the elements along an axis."""
    def argwhere(self) -> Tensor:
        """Indices of the nonzero elements, one in each row."""
    def asin(self) -> Tensor:
        """The angle in radians whose sine it is."""
    def asinh(self) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def atan(self) -> Tensor:
        """The angle in radians whose tangent it is."""
    def atan2(self, other: TensorLike) -> Tensor:
        """The angle in radians, from -pi to pi, of the point with ordinate ``input`` and abscissa ``other``."""
    def atanh(self) -> Tensor:
        """The inverse of the hyperbolic tangent."""
    def baddbmm(self, batch1: TensorLike, batch2: TensorLike, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
        """``beta * input + alpha * batch1 @ batch2``."""
    def bernoulli(self, p: Tensor | Number = 0.5, seed: _int | None = None) -> Tensor:
        """1 with probability ``p``, 0 otherwise, in the shape and dtype of ``input``."""
    def bincount(self, weights: TensorLike | None = None, minlength: _int = 0) -> Tensor:
        """Counts of each integer from 0 up, or sums of weights."""
    def bitwise_and(self, other: TensorLike) -> Tensor:
        """The bits that are set in both."""
    def bitwise_left_shift(self, other: TensorLike) -> Tensor:
        """Integers shifted ``other`` bits to the left."""
    def bitwise_or(self, other: TensorLike) -> Tensor:
        """The bits that are set in either."""
    def bitwise_right_shift(self, other: TensorLike) -> Tensor:
        """Integers shifted ``other`` bits to the right."""
    def bitwise_xor(self, other: TensorLike) -> Tensor:
        """The bits that are set in just one."""
    def bmm(self, mat2: TensorLike) -> Tensor:
        """Products of two batches of matrices."""
    def bool(self) -> Tensor:
        """The numbers as _bool."""
    def broadcast_to(self, *shape: _int | Sequence[_int]) -> Tensor:
        """Broadcast to a shape."""
    def byte(self) -> Tensor:
        """The numbers as uint8."""
    def ceil(self) -> Tensor:
        """The next whole number above."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """The lower triangular ``L`` with ``A = L @ L.T`` for symmetric positive definite matrices."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of matrices, given their factors by ``cholesky``."""
    def cholesky_solve(self, input2: TensorLike, upper: _bool = False) -> Tensor:
        """The solution ``x`` of ``A @ x = input``, given the Cholesky factor ``input2`` of ``A``."""
    def chunk(self, chunks: _int, axis: _int = 0) -> tuple[Tensor, ...]:
        """Split along an axis into at most ``chunks`` parts."""
    def clamp(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Elements clipped to a range."""
    def clamp_(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """``x[...] = ops.clamp(x, …)``."""
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Elements clipped to a range."""
    def clone(self) -> Tensor:
        """A tensor with the same values, through which gradients pass."""
    def col2im(self, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes, padding_value: Sizes,
               stride: Sizes) -> Tensor:
        """Columns of shape (batch, channels, elements of a window, windows), added at their positions in images."""
    def conj(self) -> Tensor:
        """The same numbers."""
    def contiguous(self) -> Tensor:
        """This tensor."""
    def copy_(self, src: TensorLike, non_blocking: _bool = False) -> Tensor:
        """Copy the elements of a tensor."""
    def copysign(self, other: TensorLike) -> Tensor:
        """The absolute value of ``x`` with the sign of ``other``."""
    def cos(self) -> Tensor:
        """The cosine, of radians."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def count_nonzero(self, axis: Axes = (), keepdims: _bool = False, dtype: TensorDType = None) -> Tensor:
        """The number of nonzero elements."""
    def cov(self, *, correction: _int = 1, fweights: TensorLike | None = None,
            aweights: TensorLike | None = None) -> Tensor:
        """The covariance matrix of variables, which are the rows."""
    def cross(self, other: TensorLike, dim: _int | None = None) -> Tensor:
        """The cross product along an axis of length three, by default the first one."""
    def cummax(self, axis: _int) -> tuple[Tensor, Tensor]:
        """The largest number so far along an axis."""
    def cummin(self, axis: _int) -> tuple[Tensor, Tensor]:
        """The smallest number so far along an axis."""
    def cumprod(self, axis: _int, dtype: TensorDType = None) -> Tensor:
        """Cumulative products along an axis."""
    def cumsum(self, axis: _int | None = None, dtype: TensorDType = None) -> Tensor:
        """Cumulative sums along an axis, or of the flat tensor."""
    def deg2rad(self) -> Tensor:
        """Radians from degrees."""
    def det(self) -> Tensor:
        """The determinant of matrices."""
    def diag(self) -> Tensor:
        """A diagonal matrix from a vector."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """A diagonal matrix of all elements of a tensor."""
    def diagonal(self, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, *, dim1: _int | None = None,
                 dim2: _int | None = None) -> Tensor:
        """A diagonal over two axes, which have two names each."""
    def diagonal_scatter(self, src: TensorLike, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The tensor with a diagonal over two axes replaced by ``src``, whose last axis it is."""
    def diff(self, n: _int = 1, axis: _int = -1, prepend: TensorLike | None = None,
             append: TensorLike | None = None) -> Tensor:
        """The ``n``-th differences of neighbouring elements along an axis."""
    def digamma(self) -> Tensor:
        """The derivative of ``lgamma``."""
    def div(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient."""
    def div_(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """``x[...] = ops.div(x, …)``."""
    def divide(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient."""
    def dot(self, other: TensorLike) -> Tensor:
        """Products over the last axis of ``input`` and the last but one of ``other``."""
    def double(self) -> Tensor:
        """The numbers as float64."""
    def dsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """``tensor_split`` along the third axis."""
    def eq(self, other: TensorLike) -> Tensor:
        """Whether numbers are equal."""
    def equal(self, other: TensorLike) -> Tensor:
        """Whether numbers are equal."""
    def erf(self) -> Tensor:
        """The error function."""
    def erfc(self) -> Tensor:
        """One minus the error function."""
    def erfinv(self) -> Tensor:
        """The inverse of the error function."""
    def erfinv_(self) -> Tensor:
        """``x[...] = ops.erfinv(x, …)``."""
    def exp(self) -> Tensor:
        """The exponential."""
    def exp2(self) -> Tensor:
        """Two to the power of each element."""
    def exp_(self) -> Tensor:
        """``x[...] = ops.exp(x, …)``."""
    def expand(self, *shape: _int | Sequence[_int]) -> Tensor:
        """Broadcast to a shape."""
    def expand_as(self, other: TensorLike) -> Tensor:
        """The tensor broadcast to the shape of another one."""
    def expand_dims(self, axis: _int) -> Tensor:
        """Insert an axis of length one at position ``axis`` of the result."""
    def expm1(self) -> Tensor:
        """The exponential less one, exact near zero."""
    def fill(self, value: Tensor | Number) -> Tensor:
        """A tensor of this shape and dtype, filled with a value."""
    def fill_(self, value: Tensor | Number) -> Tensor:
        """Write a number to all elements."""
    def fill_diagonal(self, fill_value: Number, wrap: _bool = False) -> Tensor:
        """The tensor with one number on its main diagonal, whose indices are equal along all axes."""
    def flatten(self, order: str | _int = 'C', end: _int = -1, *, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Join the axes from ``start_dim`` to ``end_dim``, by default all."""
    def flip(self, *dims: _int | Sequence[_int]) -> Tensor:
        """Reverse the order along axes."""
    def fliplr(self) -> Tensor:
        """Reverse the order along the second axis."""
    def flipud(self) -> Tensor:
        """Reverse the order along the first axis."""
    def float(self) -> Tensor:
        """The numbers as float32."""
    def float_power(self, exponent: TensorLike) -> Tensor:
        """``input`` to the power ``exponent``, in float64."""
    def floor(self) -> Tensor:
        """The next whole number below."""
    def floor_(self) -> Tensor:
        """``x[...] = ops.floor(x, …)``."""
    def floor_divide(self, other: TensorLike) -> Tensor:
        """The quotient, rounded down."""
    def floor_divide_(self, other: TensorLike) -> Tensor:
        """``x[...] = ops.floor_divide(x, …)``."""
    def fmax(self, other: TensorLike) -> Tensor:
        """The larger one, or NaN."""
    def fmin(self, other: TensorLike) -> Tensor:
        """The smaller one, or NaN."""
    def fmod(self, other: TensorLike) -> Tensor:
        """The remainder of a division rounded towards zero, with the sign of ``input``."""
    def fold(self, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
             stride: Sizes = 1) -> Tensor:
        """Columns, as ``unfold`` makes them, added at their positions in images of ``output_size``."""
    def frac(self) -> Tensor:
        """The fractional part of each element."""
    def gather(self, input_indices: Any = None, axis: Any = None, batch_dims: _int = 0, *,
               index: TensorLike | None = None) -> Tensor:
        """Slices at indices, ``gather(indices, axis)``."""
    def gather_elements(self, dim: _int, index: TensorLike) -> Tensor:
        """Elements along an axis at the indices in ``index``, which has the same number of axes."""
    def gather_nd(self, indices: TensorLike) -> Tensor:
        """The parts at coordinates, given along the last axis of ``indices``, for the leading axes."""
    def gcd(self, other: TensorLike) -> Tensor:
        """The greatest common divisor of integers, by as many steps of Euclid's algorithm as the widest …."""
    def ge(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are no less."""
    def ger(self, vec2: TensorLike) -> Tensor:
        """The outer product of two vectors."""
    def greater(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are greater."""
    def greater_equal(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are no less."""
    def gt(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are greater."""
    def half(self) -> Tensor:
        """The numbers as float16."""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """``x`` where it is farther than ``lambd`` from zero, and 0 elsewhere."""
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 below zero, 1 above, and ``values`` at zero."""
    def histc(self, bins: _int = 100, min: _float = 0.0, max: _float = 0.0) -> Tensor:
        """The number of elements in each of ``bins`` equal intervals from ``min`` to ``max``."""
    def hooks(self) -> list[Callable]:
        """The functions that were registered with ``register_hook``, in order."""
    def hsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """``tensor_split`` along the second axis."""
    def hypot(self, other: TensorLike) -> Tensor:
        """The square root of the sum of the squares."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""
    def igamma(self, other: TensorLike) -> Tensor:
        """The lower regularized incomplete gamma function."""
    def igammac(self, other: TensorLike) -> Tensor:
        """The upper regularized incomplete gamma function, ``1 - igamma(input, other)``."""
    def index_add(self, indices: Any = None, y: Any = None, axis: Any = None, use_lock: _bool = True,
                  check_index_bound: _bool = True, *, index: Any = None, source: Any = None,
                  alpha: Number = 1) -> Tensor:
        """The tensor with slices added at indices along an axis."""
    def index_add_(self, indices: TensorLike, y: TensorLike, axis: _int, use_lock: _bool = True,
                   check_index_bound: _bool = True) -> Tensor:
        """``x[...] = ops.index_add(x, …)``."""
    def index_fill(self, axis: _int, index: TensorLike, value: TensorLike) -> Tensor:
        """The tensor with the slices at indices along an axis filled with a number."""
    def index_fill_(self, axis: _int, index: TensorLike, value: TensorLike) -> Tensor:
        """``x[...] = ops.index_fill(x, …)``."""
    def index_put(self, indices: Sequence[TensorLike], values: TensorLike, accumulate: _bool = False) -> Tensor:
        """The tensor with values written at indices, one tensor for each of the first axes, as ``x[indices] = …."""
    def index_select(self, axis: _int, index: TensorLike) -> Tensor:
        """The slices along an axis at the indices of a vector."""
    def inner(self, other: TensorLike) -> Tensor:
        """Inner products over the last axis of both."""
    def int(self) -> Tensor:
        """The numbers as int32."""
    def inv(self) -> Tensor:
        """One by the number."""
    def inverse(self) -> Tensor:
        """The inverse of matrices."""
    def invert(self) -> Tensor:
        """Integers with all bits inverted."""
    def is_contiguous(self) -> _bool:
        """True."""
    def is_floating_point(self) -> _bool:
        """Whether its dtype is floating-point."""
    def is_signed(self) -> _bool:
        """Whether its dtype represents negative values."""
    def isclose(self, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether elements differ by at most ``atol + rtol * |other|``."""
    def isfinite(self) -> Tensor:
        """Whether it is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether it is infinite."""
    def isnan(self) -> Tensor:
        """Whether it is NaN."""
    def isneginf(self) -> Tensor:
        """Whether elements are negative infinity."""
    def isposinf(self) -> Tensor:
        """Whether elements are positive infinity."""
    def itemset(self, *args: Any) -> Tensor:
        """A copy with one element replaced."""
    def kron(self, other: TensorLike) -> Tensor:
        """The Kronecker product."""
    def lcm(self, other: TensorLike) -> Tensor:
        """The least common multiple of integers."""
    def ldexp(self, other: TensorLike) -> Tensor:
        """``x * 2 ** other``."""
    def le(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are no greater."""
    def lerp(self, end: TensorLike, weight: TensorLike) -> Tensor:
        """``input + weight * (end - input)``."""
    def less(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are less."""
    def less_equal(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are no greater."""
    def lgamma(self) -> Tensor:
        """The natural logarithm of the gamma function's absolute value."""
    def log(self) -> Tensor:
        """The natural logarithm."""
    def log10(self) -> Tensor:
        """The logarithm to base ten."""
    def log1p(self) -> Tensor:
        """The natural logarithm of one more, exact near zero."""
    def log2(self) -> Tensor:
        """The logarithm to base two."""
    def log_(self) -> Tensor:
        """``x[...] = ops.log(x, …)``."""
    def log_matrix_determinant(self) -> tuple[Tensor, Tensor]:
        """The signs of determinants, and the logarithms of their absolute values."""
    def log_softmax(self, axis: _int | Sequence[_int] = -1) -> Tensor:
        """The logarithm of ``softmax``, computed without its rounding."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """The logarithm of the sum of the exponentials."""
    def logaddexp2(self, other: TensorLike) -> Tensor:
        """The base-two logarithm of the sum of the powers of two."""
    def logcumsumexp(self, axis: _int) -> Tensor:
        """The logarithm of cumulative sums of exponentials along an axis, by repeated doubling."""
    def logdet(self) -> Tensor:
        """The logarithms of determinants."""
    def logical_and(self, other: TensorLike) -> Tensor:
        """Whether both are true, or not zero."""
    def logical_not(self) -> Tensor:
        """Whether it is zero, or false."""
    def logical_or(self, other: TensorLike) -> Tensor:
        """Whether one is true, or not zero."""
    def logical_xor(self, other: TensorLike) -> Tensor:
        """Whether just one is true, or not zero."""
    def logit(self, eps: _float | None = None) -> Tensor:
        """``log(x / (1 - x))``."""
    def logsumexp(self, axis: Axes, keepdims: _bool = False) -> Tensor:
        """The logarithm of the sum of exponentials."""
    def long(self) -> Tensor:
        """The numbers as int64."""
    def lstsq(self, A: TensorLike) -> Tensor:
        """The matrix ``x`` for which ``input @ x`` is nearest to ``A``."""
    def lt(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are less."""
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """``value`` where the mask holds, ``input_x`` elsewhere."""
    def masked_fill_(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """``x[...] = ops.masked_fill(x, …)``."""
    def masked_scatter(self, mask: TensorLike, source: TensorLike) -> Tensor:
        """The tensor with elements of ``source``, in their order, where a mask holds."""
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The elements where a mask holds, as a vector."""
    def matmul(self, other: TensorLike) -> Tensor:
        """Products of matrices in the last two axes."""
    def matrix_determinant(self) -> Tensor:
        """The determinant of matrices."""
    def matrix_power(self, n: _int) -> Tensor:
        """Matrices to the power ``n``."""
    def max(self, *args: Any, **keywords: Any) -> Tensor:
        """The maximum of all, or along an axis."""
    def maximum(self, other: TensorLike) -> Tensor:
        """The larger one, or NaN."""
    def mean(self, axis: Axes = None, keepdims: _bool = False, *, dtype: TensorDType = None) -> Tensor:
        """The mean."""
    def median(self, axis: _int = -1, keepdims: _bool = False) -> tuple[Tensor, Tensor]:
        """The median along an axis and its index."""
    def min(self, *args: Any, **keywords: Any) -> Tensor:
        """The minimum of all, or along an axis."""
    def minimum(self, other: TensorLike) -> Tensor:
        """The smaller one, or NaN."""
    def mm(self, mat2: TensorLike) -> Tensor:
        """The product of two matrices."""
    def moveaxis(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Move axes to other positions."""
    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Move axes to other positions."""
    def msort(self) -> Tensor:
        """Elements sorted along the first axis."""
    def mul(self, other: TensorLike) -> Tensor:
        """The product."""
    def mul_(self, other: TensorLike) -> Tensor:
        """``x[...] = ops.mul(x, …)``."""
    def multinomial(self, num_samples: _int, replacement: _bool = True, seed: _int | None = None) -> Tensor:
        """Indices along the last axis, drawn with probabilities proportional to the elements."""
    def multiply(self, other: TensorLike) -> Tensor:
        """The product."""
    def mv(self, vec: TensorLike) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the ``p``-dimensional gamma function."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None,
                   neginf: _float | None = None) -> Tensor:
        """Finite values in the place of NaN (0), infinity and negative infinity (the largest and smallest of …."""
    def nanmean(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The mean of the elements that are not NaN."""
    def nanmedian(self, axis: _int = -1, keepdims: _bool = False) -> tuple[Tensor, Tensor]:
        """The median of the elements along an axis that are not NaN, the lower of two middle elements, and its …."""
    def nanquantile(self, q: TensorLike, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """Quantiles of the elements that are not NaN."""
    def nansum(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The sum of the elements that are not NaN."""
    def narrow(self, axis: _int, start: _int, length: _int) -> Tensor:
        """``length`` slices along an axis, from ``start`` on."""
    def ndimension(self) -> _int:
        """The number of axes."""
    def ne(self, other: TensorLike) -> Tensor:
        """Whether numbers differ."""
    def neg(self) -> Tensor:
        """The negative of each element."""
    def negative(self) -> Tensor:
        """The negative of each element."""
    def nelement(self) -> _int:
        """The number of elements."""
    def new_empty(self, size: AnyShape, dtype: TensorDType = None) -> Tensor:
        """A tensor of a shape, in this dtype or another."""
    def new_full(self, size: AnyShape, fill_value: Tensor | Number, dtype: TensorDType = None) -> Tensor:
        """A tensor of a shape filled with a value, in this dtype or another."""
    def new_ones(self, size: AnyShape, dtype: TensorDType = None) -> Tensor:
        """Ones of a shape, in this dtype or another."""
    def new_zeros(self, size: AnyShape, dtype: TensorDType = None) -> Tensor:
        """Zeros of a shape, in this dtype or another."""
    def nextafter(self, other: TensorLike) -> Tensor:
        """The next floating-point number after ``input`` in the direction of ``other``."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Indices of the nonzero elements."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """Indices of the nonzero elements."""
    def norm(self, ord: Number | str | None = None, dim: Axes = None, keepdim: _bool = False, *,
             dtype: TensorDType = None) -> Tensor:
        """The norm of all elements, or along axes."""
    def normal_(self, mean: Number = 0, std: Number = 1) -> Tensor:
        """Write normal values with a mean and a standard deviation."""
    def not_equal(self, other: TensorLike) -> Tensor:
        """Whether numbers differ."""
    def numel(self) -> _int:
        """The number of elements."""
    def numpy(self) -> np.ndarray:
        """The values as a NumPy array."""
    def one_hot(self, depth: _int | Tensor, on_value: Tensor | Number = 1, off_value: Tensor | Number = 0,
                axis: _int = -1) -> Tensor:
        """One-hot vectors of length ``depth`` along a new axis."""
    def ones_like(self, *, dtype: TensorDType = None) -> Tensor:
        """Ones with the shape of a tensor, in its dtype or another."""
    def outer(self, vec2: TensorLike) -> Tensor:
        """The outer product of two vectors."""
    def pad(self, padding: Sizes, mode: str = 'constant', value: _float | None = None) -> Tensor:
        """Pad a tensor."""
    def permute(self, *axis: _int | Sequence[_int]) -> Tensor:
        """Permute the axes."""
    def positive(self) -> Tensor:
        """The same numbers."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """``input`` to the power ``exponent``."""
    def prod(self, axis: Axes = None, keepdims: _bool = False, dtype: TensorDType = None) -> Tensor:
        """The product."""
    def ptp(self, axis: Axes = None, keepdims: _bool = False) -> Tensor:
        """The largest element minus the smallest."""
    def qr(self, some: _bool = True) -> tuple[Tensor, Tensor]:
        """The QR decomposition, with a square ``q`` unless ``some``."""
    def quantile(self, q: TensorLike, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """Quantiles along an axis, interpolated between neighbours."""
    def rad2deg(self) -> Tensor:
        """Degrees from radians."""
    def ravel(self) -> Tensor:
        """All elements as a vector."""
    def reciprocal(self) -> Tensor:
        """One by the number."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call a function with the gradient of this tensor each time it is computed."""
    def relu(self, inplace: _bool = False) -> Tensor:
        """The larger of each element and zero."""
    def remainder(self, other: TensorLike) -> Tensor:
        """The remainder, with the sign of the divisor."""
    def remainder_(self, other: TensorLike) -> Tensor:
        """``x[...] = ops.remainder(x, …)``."""
    def renorm(self, p: _int, axis: _int, maxnorm: _float) -> Tensor:
        """The slices along an axis, each scaled down to a norm of ``maxnorm`` if its norm of order ``p`` is …."""
    def repeat(self, *repeats: _int | Sequence[_int], axis: _int | None = None) -> Tensor:
        """Repeat the tensor a number of times along each axis."""
    def repeat_interleave(self, repeats: AnyShape, axis: _int | None = None) -> Tensor:
        """Repeat each slice along an axis, or each element."""
    def reshape(self, *shape: _int | Sequence[_int]) -> Tensor:
        """The same values in another shape."""
    def reshape_as(self, other: TensorLike) -> Tensor:
        """The same values in the shape of another tensor."""
    def resize(self, *new_shape: _int) -> Tensor:
        """The first elements in another shape, filled up with zeros."""
    def reverse(self, axis: Axes) -> Tensor:
        """Reverse the order along axes."""
    def reverse_sequence(self, seq_lengths: TensorLike, seq_dim: _int, batch_dim: _int = 0) -> Tensor:
        """Sequences along ``seq_dim`` reversed up to their lengths, which are given for ``batch_dim``."""
    def rint(self, *, decimals: _int = 0) -> Tensor:
        """Elements rounded to ``decimals`` digits after the decimal point, halves to the even digit."""
    def roll(self, shifts: Axes, dims: Axes = None) -> Tensor:
        """Shift along axes, or the flat tensor."""
    def rot90(self, k: _int, dims: Sequence[_int]) -> Tensor:
        """Rotate ``k`` times by 90 degrees, from the first of two axes to the second."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """Elements rounded to ``decimals`` digits after the decimal point, halves to the even digit."""
    def rsqrt(self) -> Tensor:
        """One by the square root."""
    def scatter(self, axis: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """The tensor with ``src`` written at indices along an axis."""
    def scatter_(self, axis: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """``x[...] = ops.scatter(x, …)``."""
    def scatter_add(self, dim: Any = None, index: Any = None, src: TensorLike | None = None, *,
                    indices: TensorLike | None = None, updates: TensorLike | None = None) -> Tensor:
        """The tensor with elements of ``src`` added at indices along an axis, ``scatter_add(dim, index, src)``."""
    def scatter_div(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """What is there divided by all of ``updates`` that name the place."""
    def scatter_max(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """The larger of what is there and all of ``updates`` that name the place."""
    def scatter_min(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """The smaller of what is there and all of ``updates`` that name the place."""
    def scatter_mul(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """What is there times all of ``updates`` that name the place."""
    def scatter_sub(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """The tensor with ``updates`` subtracted at coordinates."""
    def searchsorted(self, v: TensorLike, side: str = 'left', sorter: TensorLike | None = None) -> Tensor:
        """Insertion indices into the sorted last axis, in int32."""
    def select(self, condition: TensorLike | _int | None = None, y: TensorLike | _int | None = None, *,
               dim: _int | None = None, index: _int | None = None) -> Tensor:
        """The slice at an index along an axis, ``select(dim, index)``."""
    def select_scatter(self, src: TensorLike, axis: _int, index: _int) -> Tensor:
        """The tensor with the slice at ``index`` along an axis replaced by ``src``."""
    def set_const_arg(self, const_arg: _bool = True) -> Tensor:
        """This tensor."""
    def sgn(self) -> Tensor:
        """-1, 0 or 1."""
    def short(self) -> Tensor:
        """The numbers as int16."""
    def sigmoid(self) -> Tensor:
        """``1 / (1 + exp(-x))``."""
    def sigmoid_(self) -> Tensor:
        """``x[...] = ops.sigmoid(x, …)``."""
    def sign(self) -> Tensor:
        """-1, 0 or 1."""
    def sign_(self) -> Tensor:
        """``x[...] = ops.sign(x, …)``."""
    def signbit(self) -> Tensor:
        """Whether it is below zero."""
    def sin(self) -> Tensor:
        """The sine, of radians."""
    def sinc(self) -> Tensor:
        """``sin(pi x) / (pi x)``, and 1 at zero."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine."""
    def slice(self, begin: AnyShape, size: AnyShape) -> Tensor:
        """The part from ``begin`` on, of a size."""
    def slice_scatter(self, src: TensorLike, axis: _int = 0, start: _int | None = None, end: _int | None = None,
                      step: _int = 1) -> Tensor:
        """The tensor with the slice ``start:end:step`` along an axis replaced by ``src``."""
    def slogdet(self) -> tuple[Tensor, Tensor]:
        """The signs of determinants, and the logarithms of their absolute values."""
    def soft_shrink(self, lambd: _float = 0.5) -> Tensor:
        """``x`` moved towards zero by ``lambd``, and 0 where it is nearer than that."""
    def softmax(self, axis: _int | Sequence[_int] = -1, *, dtype: TensorDType = None) -> Tensor:
        """Exponentials scaled to a sum of one along an axis."""
    def softmin(self, axis: _int | Sequence[_int] = -1, *, dtype: TensorDType = None) -> Tensor:
        """The ``softmax`` of ``-x``."""
    def sort(self, axis: _int = -1, descending: _bool = False, stable: _bool = False) -> tuple[Tensor, Tensor]:
        """Elements sorted along an axis, and their indices."""
    def split(self, split_size_or_sections: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Split along an axis."""
    def sqrt(self) -> Tensor:
        """The square root."""
    def square(self) -> Tensor:
        """The square."""
    def squeeze(self, *axis: _int | Sequence[_int] | None) -> Tensor:
        """Remove the given axes, or all axes of length one."""
    def std(self, axis: Axes = None, ddof: _int | _bool = 0, keepdims: _bool = False, *,
            correction: _int | None = None) -> Tensor:
        """The square root of ``var``."""
    def stride(self, dim: _int | None = None) -> list[_int] | _int:
        """Strides of each axis, or of one, counted in elements."""
    def sub(self, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
        """The difference from ``alpha`` times another tensor."""
    def sub_(self, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
        """Subtract numbers, times ``alpha``."""
    def subtract(self, other: TensorLike, *, alpha: _float = 1) -> Tensor:
        """``input - alpha * other``."""
    def sum(self, axis: Axes = None, keepdims: _bool | TensorDType = False, dtype: TensorDType = None,
            initial: TensorLike | None = None) -> Tensor:
        """The sum."""
    def sum_to_size(self, *size: _int) -> Tensor:
        """Sums over the axes along which ``size`` has length one, or which it lacks."""
    def svd(self, full_matrices: _bool = False, compute_uv: _bool = True) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """The singular value decomposition ``input = u @ diag(s) @ v.T`` of matrices."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Swap two axes."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Swap two axes."""
    def t(self) -> Tensor:
        """The transpose of a matrix."""
    def take(self, indices: TensorLike, axis: _int | None = None, mode: str = 'clip') -> Tensor:
        """Slices along an axis, or elements of the flat tensor, at indices."""
    def tan(self) -> Tensor:
        """The tangent, of radians."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """``x[...] = ops.tanh(x, …)``."""
    def tensor_split(self, indices_or_sections: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Split along an axis."""
    def tile(self, *dims: _int | Sequence[_int]) -> Tensor:
        """Repeat the tensor a number of times along each axis."""
    def to(self, *args: Any, **keywords: Any) -> Tensor:
        """The values in another dtype, or in the dtype of another tensor."""
    def top_k(self, k: _int, sorted: _bool = True) -> tuple[Tensor, Tensor]:
        """The ``k`` largest elements along the last axis, and their indices as int32."""
    def topk(self, k: _int, dim: _int | None = None, largest: _bool = True,
             sorted: _bool = True) -> tuple[Tensor, Tensor]:
        """The ``k`` largest or smallest elements along an axis, and their indices as int32."""
    def trace(self, offset: _int = 0, axis1: _int = 0, axis2: _int = 1, dtype: TensorDType = None) -> Tensor:
        """The sum of a diagonal over two axes."""
    def transpose(self, *axes: _int | Sequence[_int], dim0: _int | None = None, dim1: _int | None = None) -> Tensor:
        """Permute the axes, by default reverse them."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of matrices, with zeros above a diagonal."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of matrices, with zeros below a diagonal."""
    def true_divide(self, other: TensorLike) -> Tensor:
        """The quotient."""
    def trunc(self) -> Tensor:
        """The next whole number towards zero."""
    def type(self, dtype: TensorDType = None) -> Any:
        """The dtype."""
    def type_as(self, other: TensorLike) -> Tensor:
        """The values in the dtype of another tensor."""
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, without that axis."""
    def unfold(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
        """The windows of images as columns."""
    def uniform_(self, from_: _float = 0, to: _float = 1) -> Tensor:
        """Write uniform values from ``from_`` to before ``to``."""
    def unique(self) -> tuple[Tensor, Tensor]:
        """The distinct elements in order of first occurrence, and for each element its index among them."""
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False,
                           dim: _int | None = None) -> Tensor | tuple[Tensor, ...]:
        """The elements without those equal to their predecessor."""
    def unique_with_pad(self, pad_num: _int | TensorLike) -> tuple[Tensor, Tensor]:
        """The distinct elements of a vector, padded to its length with ``pad_num``."""
    def unsorted_segment_max(self, segment_ids: TensorLike, num_segments: _int | Tensor) -> Tensor:
        """The largest of the slices along the first axes that have the same number in ``segment_ids``."""
    def unsorted_segment_min(self, segment_ids: TensorLike, num_segments: _int | Tensor) -> Tensor:
        """The smallest of the slices with the same number, the greatest finite number of the dtype if there …."""
    def unsorted_segment_prod(self, segment_ids: TensorLike, num_segments: _int | Tensor) -> Tensor:
        """The product of the slices with the same number, 1 if there are none."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """Insert an axis of length one at position ``dim`` of the result."""
    def var(self, axis: Axes = None, ddof: _int | _bool = 0, keepdims: _bool = False, *,
            correction: _int | None = None) -> Tensor:
        """The variance."""
    def view(self, *shape: Any) -> Tensor:
        """Reshape."""
    def view_as(self, other: TensorLike) -> Tensor:
        """The same values in the shape of another tensor."""
    def vsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """``tensor_split`` along the first axis."""
    def where(self, condition: TensorLike, y: TensorLike) -> Tensor:
        """This tensor where the condition holds, ``y`` elsewhere."""
    def xdivy(self, y: TensorLike) -> Tensor:
        """``x / y``, and 0 where ``x`` is 0."""
    def xlogy(self, other: TensorLike) -> Tensor:
        """``input * log(other)``, and 0 where ``input`` is 0."""
    def zero_(self) -> Tensor:
        """Write zero to all elements."""
    def zeros_like(self, *, dtype: TensorDType = None) -> Tensor:
        """Zeros with the shape of a tensor, in its dtype or another."""
