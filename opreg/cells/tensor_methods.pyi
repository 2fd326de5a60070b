# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from opreg.core.value import Value
from opreg.cells.tensor import Tensor
from opreg.cells.typing import ArrayLike, Axes, Number, Sizes, TensorDType, TensorLike, TensorShape

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
    def add(self, other: TensorLike) -> Tensor:
        """The sum."""
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
    def all(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """Whether none is false, or zero."""
    def allclose(self, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08,
                 equal_nan: _bool = False) -> Tensor:
        """Whether all elements are near those of another tensor, by ``rtol`` times these and ``atol``."""
    def amax(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The largest number, ``initial`` at least, of those where ``where`` holds."""
    def amin(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The smallest number, ``initial`` at most, of those where ``where`` holds."""
    def aminmax(self, *, axis: _int | None = 0, keepdims: _bool = False) -> tuple[Tensor, Tensor]:
        """The smallest and the largest number."""
    def any(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """Whether one is true, or not zero."""
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
        """The angle in radians, from -pi to pi, of the point whose height is ``input`` and whose width is …."""
    def arctanh(self) -> Tensor:
        """The inverse of the hyperbolic tangent."""
    def argmax(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The place of the largest number, as int64."""
    def argmax_with_value(self, axis: _int = 0, keep_dims: _bool = False) -> tuple[Tensor, Tensor]:
        """The largest number along an axis and its place."""
    def argmin(self, axis: _int | None = None, keepdims: _bool = False) -> Tensor:
        """The place of the smallest number, as int32."""
    def argmin_with_value(self, axis: _int = 0, keep_dims: _bool = False) -> tuple[Tensor, Tensor]:
        """The smallest number along an axis and its place."""
    def argsort(self, axis: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """The places along an axis that its numbers in order come from."""
    def argwhere(self) -> Tensor:
        """Places of numbers that are not zero, one a row."""
    def asin(self) -> Tensor:
        """The angle in radians whose sine it is."""
    def asinh(self) -> Tensor:
        """The inverse of the hyperbolic sine."""
    def atan(self) -> Tensor:
        """The angle in radians whose tangent it is."""
    def atan2(self, other: TensorLike) -> Tensor:
        """The angle in radians, from -pi to pi, of the point whose height is ``input`` and whose width is …."""
    def atanh(self) -> Tensor:
        """The inverse of the hyperbolic tangent."""
    def baddbmm(self, batch1: TensorLike, batch2: TensorLike, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
        """``beta * input + alpha * batch1 @ batch2``."""
    def bernoulli(self, p: Tensor | Number = 0.5, seed: _int | None = None) -> Tensor:
        """1 with probability ``p``, 0 otherwise, in the shape and dtype of ``input``."""
    def bincount(self, weights: TensorLike | None = None, minlength: _int = 0) -> Tensor:
        """How often each number from 0 up occurs, or the sums of weights."""
    def bitwise_and(self, other: TensorLike) -> Tensor:
        """The bits that are set in both."""
    def bitwise_or(self, other: TensorLike) -> Tensor:
        """The bits that are set in either."""
    def bitwise_xor(self, other: TensorLike) -> Tensor:
        """The bits that are set in just one."""
    def bmm(self, mat2: TensorLike) -> Tensor:
        """Products of matrices, as many on either side."""
    def bool(self) -> Tensor:
        """The numbers as _bool."""
    def broadcast_to(self, *shape: _int | Sequence[_int]) -> Tensor:
        """Repeated to fill a shape."""
    def byte(self) -> Tensor:
        """The numbers as uint8."""
    def ceil(self) -> Tensor:
        """The next whole number above."""
    def cholesky(self, upper: _bool = False) -> Tensor:
        """The lower triangular ``L`` of which symmetric positive definite matrices are ``L @ L.T``."""
    def cholesky_inverse(self, upper: _bool = False) -> Tensor:
        """The inverse of the matrices whose factors ``cholesky`` gives."""
    def cholesky_solve(self, input2: TensorLike, upper: _bool = False) -> Tensor:
        """The columns ``x`` for which ``A @ x`` are the columns ``input``, where ``input2`` are the factors of …."""
    def chunk(self, chunks: _int, axis: _int = 0) -> tuple[Tensor, ...]:
        """At most ``chunks`` parts along an axis."""
    def clamp(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """The number, or ``min`` if that is more, or ``max`` if that is less."""
    def clamp_(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """``x[...] = ops.clamp(x, …)``."""
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """The number, or ``min`` if that is more, or ``max`` if that is less."""
    def clone(self) -> Tensor:
        """A tensor with the same values, through which gradients pass."""
    def contiguous(self) -> Tensor:
        """This tensor."""
    def copy_(self, value: TensorLike) -> Tensor:
        """Take over the elements of a tensor."""
    def copysign(self, other: TensorLike) -> Tensor:
        """The size of ``x`` with the sign of ``other``."""
    def cos(self) -> Tensor:
        """The cosine, of radians."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""
    def count_nonzero(self, axis: Axes = (), keepdims: _bool = False, dtype: TensorDType = None) -> Tensor:
        """The number of nonzero elements."""
    def cov(self, *, correction: _int = 1, fweights: TensorLike | None = None,
            aweights: TensorLike | None = None) -> Tensor:
        """The covariance of variables."""
    def cross(self, other: TensorLike, dim: _int | None = None) -> Tensor:
        """The cross product along an axis of length three, by default the first such."""
    def cummax(self, axis: _int) -> tuple[Tensor, Tensor]:
        """The largest number so far along an axis."""
    def cummin(self, axis: _int) -> tuple[Tensor, Tensor]:
        """The smallest number so far along an axis."""
    def cumprod(self, axis: _int, dtype: TensorDType = None) -> Tensor:
        """The products so far along an axis."""
    def cumsum(self, axis: _int | None = None, dtype: TensorDType = None) -> Tensor:
        """The sums so far along an axis, or of all in a row."""
    def deg2rad(self) -> Tensor:
        """Radians from degrees."""
    def det(self) -> Tensor:
        """The determinant of matrices."""
    def diag(self) -> Tensor:
        """The matrix that has a vector on its diagonal."""
    def diagflat(self, offset: _int = 0) -> Tensor:
        """The matrix that has all elements of a tensor on a diagonal, and zeros elsewhere."""
    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A diagonal over two axes, as last axis."""
    def diagonal_scatter(self, src: TensorLike, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The numbers with ``src`` in the place of a diagonal over two axes, which is its last axis."""
    def diff(self, n: _int = 1, axis: _int = -1, prepend: TensorLike | None = None,
             append: TensorLike | None = None) -> Tensor:
        """Every element along an axis less the one before it, ``n`` times."""
    def digamma(self) -> Tensor:
        """The derivative of ``lgamma``."""
    def div(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient."""
    def div_(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """``x[...] = ops.div(x, …)``."""
    def divide(self, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient."""
    def dot(self, other: TensorLike) -> Tensor:
        """The last axis of ``input`` multiplied with the last but one of ``other``."""
    def double(self) -> Tensor:
        """The numbers as float64."""
    def dsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Parts along the third axis."""
    def eq(self, other: TensorLike) -> Tensor:
        """Whether numbers are equal."""
    def equal(self, other: TensorLike) -> Tensor:
        """Whether numbers are equal."""
    def erf(self) -> Tensor:
        """The error function."""
    def erfc(self) -> Tensor:
        """One less the error function."""
    def erfinv(self) -> Tensor:
        """The inverse of the error function."""
    def erfinv_(self) -> Tensor:
        """``x[...] = ops.erfinv(x, …)``."""
    def exp(self) -> Tensor:
        """The exponential."""
    def exp2(self) -> Tensor:
        """Two to the power of the number."""
    def exp_(self) -> Tensor:
        """``x[...] = ops.exp(x, …)``."""
    def expand(self, *shape: _int | Sequence[_int]) -> Tensor:
        """Repeated to fill a shape."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Repeated to fill the shape of another tensor."""
    def expand_dims(self, axis: _int) -> Tensor:
        """An axis of length one inserted, so that it is ``axis`` of the result."""
    def expm1(self) -> Tensor:
        """The exponential less one, exact near zero."""
    def fill(self, value: Tensor | Number) -> Tensor:
        """One number in this shape and dtype."""
    def fill_(self, value: Tensor | Number) -> Tensor:
        """Put a number everywhere."""
    def flatten(self, order: str = 'C', *, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Axes from ``start_dim`` to ``end_dim`` made one, by default all."""
    def flip(self, *dims: _int | Sequence[_int]) -> Tensor:
        """The tensor in reverse order along axes."""
    def fliplr(self) -> Tensor:
        """The tensor in reverse order along the second axis."""
    def flipud(self) -> Tensor:
        """The tensor in reverse order along the first axis."""
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
        """The remainder of the quotient cut towards zero, with the sign of ``input``."""
    def fold(self, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
             stride: Sizes = 1) -> Tensor:
        """Columns, as ``unfold`` makes them, added up where they came from in images of ``output_size``."""
    def frac(self) -> Tensor:
        """The number less what is before its point."""
    def gather(self, input_indices: TensorLike, axis: Any, batch_dims: _int = 0) -> Tensor:
        """Slices that indices name, ``gather(indices, axis)``."""
    def gather_elements(self, dim: _int, index: TensorLike) -> Tensor:
        """Numbers along an axis at the places that ``index``, of as many axes, names."""
    def gather_nd(self, indices: TensorLike) -> Tensor:
        """The parts at places whose indices, one an axis from the first on, lie along the last axis of …."""
    def gcd(self, other: TensorLike) -> Tensor:
        """The greatest common divisor of integers, by Euclid's steps, as many as the widest integers need."""
    def ge(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are no less."""
    def ger(self, vec2: TensorLike) -> Tensor:
        """Every element of a vector times every one of another."""
    def greater(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are greater."""
    def greater_equal(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are no less."""
    def gt(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are greater."""
    def half(self) -> Tensor:
        """The numbers as float16."""
    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """``x``, and 0 within ``lambd`` of zero."""
    def heaviside(self, values: TensorLike) -> Tensor:
        """0 below zero, 1 above, ``values`` at zero."""
    def histc(self, bins: _int = 100, min: _float = 0.0, max: _float = 0.0) -> Tensor:
        """How many elements are in each of ``bins`` stretches from ``min`` to ``max``, or over all where both …."""
    def hooks(self) -> list[Callable]:
        """The functions that were registered with ``register_hook``, in order."""
    def hsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """``tensor_split`` along the second axis, of vectors along their only one."""
    def hypot(self, other: TensorLike) -> Tensor:
        """The square root of both squares' sum."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""
    def index_add(self, indices: TensorLike, y: TensorLike, axis: _int, use_lock: _bool = True,
                  check_index_bound: _bool = True) -> Tensor:
        """Slices of ``y`` added to those along an axis that indices name."""
    def index_add_(self, indices: TensorLike, y: TensorLike, axis: _int, use_lock: _bool = True,
                   check_index_bound: _bool = True) -> Tensor:
        """``x[...] = ops.index_add(x, …)``."""
    def index_fill(self, axis: _int, index: TensorLike, value: TensorLike) -> Tensor:
        """One number in all slices along an axis that indices name."""
    def index_fill_(self, axis: _int, index: TensorLike, value: TensorLike) -> Tensor:
        """``x[...] = ops.index_fill(x, …)``."""
    def index_select(self, axis: _int, index: TensorLike) -> Tensor:
        """The slices along an axis that a vector of indices names."""
    def inner(self, other: TensorLike) -> Tensor:
        """Sums of products along the last axis of both."""
    def int(self) -> Tensor:
        """The numbers as int32."""
    def inv(self) -> Tensor:
        """One by the number."""
    def inverse(self) -> Tensor:
        """The inverse of matrices."""
    def is_contiguous(self) -> _bool:
        """Whether its numbers lie one behind another."""
    def is_floating_point(self) -> _bool:
        """Whether it holds floating-point values."""
    def is_signed(self) -> _bool:
        """Whether its dtype has numbers below zero."""
    def isclose(self, other: TensorLike, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Whether numbers are within ``atol + rtol * |other|`` of each other."""
    def isfinite(self) -> Tensor:
        """Whether it is neither infinite nor NaN."""
    def isinf(self) -> Tensor:
        """Whether it is infinite."""
    def isnan(self) -> Tensor:
        """Whether it is NaN."""
    def isneginf(self) -> Tensor:
        """Whether it is infinite and below zero."""
    def isposinf(self) -> Tensor:
        """Whether it is infinite and above zero."""
    def itemset(self, *args: Any) -> Tensor:
        """A copy with another number at a flat or full index."""
    def kron(self, other: TensorLike) -> Tensor:
        """The Kronecker product."""
    def lcm(self, other: TensorLike) -> Tensor:
        """The least common multiple of integers."""
    def ldexp(self, other: TensorLike) -> Tensor:
        """``x`` times the power of two ``other``."""
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
        """The signs of determinants, and the logarithms of their sizes."""
    def log_softmax(self, axis: _int | Sequence[_int] = -1) -> Tensor:
        """The logarithm of ``softmax``, without the rounding of taking it afterwards."""
    def logaddexp(self, other: TensorLike) -> Tensor:
        """The logarithm of the sum of both exponentials."""
    def logaddexp2(self, other: TensorLike) -> Tensor:
        """The logarithm to base two of the sum of two to both powers."""
    def logcumsumexp(self, axis: _int) -> Tensor:
        """The logarithm of running sums of exponentials along an axis, with as many sums at once as are known."""
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
        """``log(x / (1 - x))``, x kept ``eps`` away from 0 and 1."""
    def logsumexp(self, axis: Axes, keepdims: _bool = False) -> Tensor:
        """The logarithm of the sum of exponentials."""
    def long(self) -> Tensor:
        """The numbers as int64."""
    def lt(self, other: TensorLike) -> Tensor:
        """Whether numbers of the first are less."""
    def masked_fill(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """A number, or that of a tensor without axes, where the mask holds."""
    def masked_fill_(self, mask: TensorLike, value: TensorLike) -> Tensor:
        """``x[...] = ops.masked_fill(x, …)``."""
    def masked_select(self, mask: TensorLike) -> Tensor:
        """The numbers where a mask holds, in a row."""
    def matmul(self, other: TensorLike) -> Tensor:
        """Products of the matrices in the last two axes."""
    def matrix_determinant(self) -> Tensor:
        """The determinant of matrices."""
    def matrix_power(self, n: _int) -> Tensor:
        """The product of ``n`` equal matrices."""
    def max(self, *args: Any, **keywords: Any) -> Tensor:
        """The maximum of all, or along an axis."""
    def maximum(self, other: TensorLike) -> Tensor:
        """The larger one, or NaN."""
    def mean(self, axis: Axes = None, keepdims: _bool = False, *, dtype: TensorDType = None) -> Tensor:
        """The mean."""
    def median(self, axis: _int = -1, keepdims: _bool = False) -> tuple[Tensor, Tensor]:
        """The number in the middle along an axis, the lower of two, and its place as int64."""
    def min(self, *args: Any, **keywords: Any) -> Tensor:
        """The minimum of all, or along an axis."""
    def minimum(self, other: TensorLike) -> Tensor:
        """The smaller one, or NaN."""
    def mm(self, mat2: TensorLike) -> Tensor:
        """The product of two matrices."""
    def moveaxis(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Axes moved to other places."""
    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """Axes moved to other places."""
    def msort(self) -> Tensor:
        """Numbers in order along the first axis."""
    def mul(self, other: TensorLike) -> Tensor:
        """The product."""
    def mul_(self, other: TensorLike) -> Tensor:
        """``x[...] = ops.mul(x, …)``."""
    def multinomial(self, num_samples: _int, replacement: _bool = True, seed: _int | None = None) -> Tensor:
        """Places along the last axis drawn with the probabilities there, in proportion to each other."""
    def multiply(self, other: TensorLike) -> Tensor:
        """The product."""
    def mv(self, vec: TensorLike) -> Tensor:
        """The product of a matrix and a vector."""
    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the gamma function of ``p`` dimensions."""
    def nan_to_num(self, nan: _float | None = None, posinf: _float | None = None,
                   neginf: _float | None = None) -> Tensor:
        """Finite numbers in place of NaN (0), infinity and negative infinity (the largest and least of the …."""
    def nanmean(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The mean of all but NaN."""
    def nansum(self, axis: Axes = None, keepdims: _bool = False, **further: Any) -> Tensor:
        """The sum of all but NaN."""
    def narrow(self, axis: _int, start: _int, length: _int) -> Tensor:
        """A number of slices along an axis, from one on."""
    def ndimension(self) -> _int:
        """The number of axes."""
    def ne(self, other: TensorLike) -> Tensor:
        """Whether numbers differ."""
    def neg(self) -> Tensor:
        """The number with the other sign."""
    def negative(self) -> Tensor:
        """The number with the other sign."""
    def nelement(self) -> _int:
        """The number of elements."""
    def new_empty(self, size: TensorShape, dtype: TensorDType = None) -> Tensor:
        """A tensor of a shape, in this dtype or another."""
    def new_full(self, size: TensorShape, fill_value: Tensor | Number, dtype: TensorDType = None) -> Tensor:
        """One number in a shape, in this dtype or another."""
    def new_ones(self, size: TensorShape, dtype: TensorDType = None) -> Tensor:
        """Ones of a shape, in this dtype or another."""
    def new_zeros(self, size: TensorShape, dtype: TensorDType = None) -> Tensor:
        """Zeros of a shape, in this dtype or another."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Places of numbers that are not zero, one a row, or as a tuple of one vector an axis."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """Places of numbers that are not zero, one a row, or as a tuple of one vector an axis."""
    def norm(self, ord: Number | str | None = None, dim: Axes = None, keepdim: _bool = False, *,
             dtype: TensorDType = None) -> Tensor:
        """The norm of all elements, or along axes."""
    def not_equal(self, other: TensorLike) -> Tensor:
        """Whether numbers differ."""
    def numel(self) -> _int:
        """The number of elements."""
    def numpy(self) -> np.ndarray:
        """The numbers as a NumPy array."""
    def one_hot(self, depth: _int | Tensor, on_value: Tensor | Number = 1, off_value: Tensor | Number = 0,
                axis: _int = -1) -> Tensor:
        """Rows of ``off_value`` in ``depth`` places with ``on_value`` at that of the index, along a new axis."""
    def ones_like(self, *, dtype: TensorDType = None) -> Tensor:
        """Ones in the shape of a tensor, and in its dtype or another."""
    def outer(self, vec2: TensorLike) -> Tensor:
        """Every element of a vector times every one of another."""
    def pad(self, padding: Sizes, mode: str = 'constant', value: _float | None = None) -> Tensor:
        """Numbers around a tensor."""
    def permute(self, *axis: _int | Sequence[_int]) -> Tensor:
        """Axes in another order."""
    def positive(self) -> Tensor:
        """The same numbers."""
    def pow(self, exponent: TensorLike) -> Tensor:
        """``input`` to the power ``exponent``."""
    def prod(self, axis: Axes = None, keepdims: _bool = False, dtype: TensorDType = None) -> Tensor:
        """The product."""
    def ptp(self, axis: Axes = None, keepdims: _bool = False) -> Tensor:
        """The largest number less the smallest."""
    def rad2deg(self) -> Tensor:
        """Degrees from radians."""
    def ravel(self) -> Tensor:
        """All elements in a row."""
    def reciprocal(self) -> Tensor:
        """One by the number."""
    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call a function with the gradient of this tensor whenever one is computed."""
    def relu(self, inplace: _bool = False) -> Tensor:
        """The number, or zero if that is more."""
    def remainder(self, other: TensorLike) -> Tensor:
        """The remainder, with the sign of the divisor."""
    def remainder_(self, other: TensorLike) -> Tensor:
        """``x[...] = ops.remainder(x, …)``."""
    def renorm(self, p: _int, axis: _int, maxnorm: _float) -> Tensor:
        """The parts along an axis, each scaled down to a norm of ``maxnorm`` where its norm of order ``p`` is …."""
    def repeat(self, *repeats: _int | Sequence[_int], axis: _int | None = None) -> Tensor:
        """Laid side by side, so many times along each axis."""
    def repeat_interleave(self, repeats: TensorShape, axis: _int | None = None) -> Tensor:
        """Every slice along an axis repeated in place, or every element of all in a row."""
    def reshape(self, *shape: _int | Sequence[_int]) -> Tensor:
        """The same values in another shape."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """The same values in the shape of another tensor."""
    def resize(self, *new_shape: _int) -> Tensor:
        """The first numbers in another shape, with zeros behind them where it has more."""
    def reverse(self, axis: Axes) -> Tensor:
        """The tensor in reverse order along axes."""
    def reverse_sequence(self, seq_lengths: TensorLike, seq_dim: _int, batch_dim: _int = 0) -> Tensor:
        """Sequences along ``seq_dim`` turned around up to the length of each, one a place along ``batch_dim``."""
    def rint(self, *, decimals: _int = 0) -> Tensor:
        """Elements rounded to ``decimals`` digits behind the point, halves to the even digit."""
    def roll(self, shifts: Axes, dims: Axes = None) -> Tensor:
        """Moved on along axes, or all in a row."""
    def rot90(self, k: _int, dims: Sequence[_int]) -> Tensor:
        """Turned ``k`` times by a quarter, from the first of two axes to the second."""
    def round(self, *, decimals: _int = 0) -> Tensor:
        """Elements rounded to ``decimals`` digits behind the point, halves to the even digit."""
    def rsqrt(self) -> Tensor:
        """One by the square root."""
    def scatter(self, axis: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """``src`` put at the places along an axis that indices name."""
    def scatter_(self, axis: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """``x[...] = ops.scatter(x, …)``."""
    def scatter_add(self, dim: _int, index: TensorLike, src: TensorLike) -> Tensor:
        """The numbers with those of ``src`` added at places along an axis."""
    def scatter_div(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """What is there divided by all of ``updates`` that name the place."""
    def scatter_max(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """The larger of what is there and all of ``updates`` that name the place."""
    def scatter_min(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """The smaller of what is there and all of ``updates`` that name the place."""
    def scatter_mul(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """What is there times all of ``updates`` that name the place."""
    def scatter_sub(self, indices: TensorLike, updates: TensorLike) -> Tensor:
        """``updates`` subtracted at places, those of equal indices one after the other."""
    def searchsorted(self, values: TensorLike, *, out_int32: _bool = False, right: _bool = False,
                     side: str | None = None, sorter: TensorLike | None = None) -> Tensor:
        """Insertion indices along the sorted last axis."""
    def select(self, condition: TensorLike, y: TensorLike) -> Tensor:
        """These numbers where the condition holds, of ``y`` elsewhere."""
    def select_scatter(self, src: TensorLike, axis: _int, index: _int) -> Tensor:
        """The numbers with ``src`` in the place of those at ``index`` along an axis."""
    def sgn(self) -> Tensor:
        """-1, 0 or 1."""
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
    def slice(self, begin: TensorShape, size: TensorShape) -> Tensor:
        """The part that begins at a place and has a size, -1 for all that is left."""
    def slogdet(self) -> tuple[Tensor, Tensor]:
        """The signs of determinants, and the logarithms of their sizes."""
    def softmax(self, axis: _int | Sequence[_int] = -1, *, dtype: TensorDType = None) -> Tensor:
        """Exponentials, scaled to add up to one along an axis."""
    def softmin(self, axis: _int | Sequence[_int] = -1, *, dtype: TensorDType = None) -> Tensor:
        """``softmax`` of the numbers with the other sign."""
    def sort(self, axis: _int = -1, descending: _bool = False, stable: _bool = False) -> tuple[Tensor, Tensor]:
        """Numbers in order along an axis, and the places they come from."""
    def split(self, split_size_or_sections: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Parts along an axis."""
    def sqrt(self) -> Tensor:
        """The square root."""
    def square(self) -> Tensor:
        """The square."""
    def squeeze(self, *axis: _int | Sequence[_int] | None) -> Tensor:
        """The tensor without those axes, or without all of length one."""
    def std(self, axis: Axes = None, ddof: _int | _bool = 0, keepdims: _bool = False) -> Tensor:
        """The square root of ``var``."""
    def stride(self, dim: _int | None = None) -> list[_int] | _int:
        """Steps in elements between neighbours along each axis, or along one."""
    def sub(self, other: TensorLike) -> Tensor:
        """The difference."""
    def sub_(self, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
        """Subtract numbers, times ``alpha``."""
    def subtract(self, other: TensorLike, *, alpha: _float = 1) -> Tensor:
        """``input - alpha * other``."""
    def sum(self, axis: Axes = None, keepdims: _bool | TensorDType = False, dtype: TensorDType = None,
            initial: TensorLike | None = None) -> Tensor:
        """The sum."""
    def sum_to_size(self, *size: _int) -> Tensor:
        """Sums over the axes along which ``size`` has length one, or which it has not."""
    def swapaxes(self, axis0: _int, axis1: _int) -> Tensor:
        """Two axes exchanged."""
    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """Two axes exchanged."""
    def t(self) -> Tensor:
        """A matrix with its axes exchanged."""
    def take(self, indices: TensorLike, axis: _int | None = None, mode: str = 'clip') -> Tensor:
        """Slices along an axis that indices name, or numbers of all in a row."""
    def tan(self) -> Tensor:
        """The tangent, of radians."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
    def tanh_(self) -> Tensor:
        """``x[...] = ops.tanh(x, …)``."""
    def tensor_split(self, indices_or_sections: _int | Sequence[_int], axis: _int = 0) -> tuple[Tensor, ...]:
        """Parts along an axis."""
    def tile(self, *dims: _int | Sequence[_int]) -> Tensor:
        """Laid side by side, so many times along each axis."""
    def to(self, *args: Any, **keywords: Any) -> Tensor:
        """The numbers in another dtype, or that of another tensor."""
    def topk(self, k: _int, dim: _int | None = None, largest: _bool = True,
             sorted: _bool = True) -> tuple[Tensor, Tensor]:
        """The ``k`` largest elements along an axis, or the smallest, and their places as int32."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, *axes: _int | Sequence[_int], dim0: _int | None = None, dim1: _int | None = None) -> Tensor:
        """Axes in another order, reversed by default."""
    def tril(self, diagonal: _int = 0) -> Tensor:
        """Matrices with zeros above a diagonal."""
    def triu(self, diagonal: _int = 0) -> Tensor:
        """Matrices with zeros below a diagonal."""
    def true_divide(self, other: TensorLike) -> Tensor:
        """The quotient."""
    def trunc(self) -> Tensor:
        """The next whole number towards zero."""
    def type(self, dtype: TensorDType = None) -> Any:
        """Its dtype, or the numbers in another one."""
    def type_as(self, other: Tensor) -> Tensor:
        """The numbers in the dtype of another tensor."""
    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis, which is gone."""
    def unfold(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
        """The windows of images as columns."""
    def unique(self) -> tuple[Tensor, Tensor]:
        """The different elements in the order they first occur, and for each element which it is."""
    def unique_consecutive(self, return_inverse: _bool = False, return_counts: _bool = False,
                           dim: _int | None = None) -> Tensor | tuple[Tensor, ...]:
        """The numbers without those that equal the one before, or parts along an axis."""
    def unsqueeze(self, dim: _int) -> Tensor:
        """An axis of length one inserted, so that it is ``dim`` of the result."""
    def var(self, axis: Axes = None, ddof: _int | _bool = 0, keepdims: _bool = False) -> Tensor:
        """The mean of squared distances from the mean."""
    def view(self, *shape: _int | Sequence[_int]) -> Tensor:
        """The same values in another shape."""
    def view_as(self, other: Tensor) -> Tensor:
        """The same values in the shape of another tensor."""
    def vsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """``tensor_split`` along the first axis."""
    def where(self, condition: TensorLike, y: TensorLike) -> Tensor:
        """These numbers where the condition holds, of ``y`` elsewhere."""
    def xdivy(self, y: TensorLike) -> Tensor:
        """``x / y``, and 0 where ``x`` is."""
    def xlogy(self, other: TensorLike) -> Tensor:
        """``input * log(other)``, and 0 where ``input`` is."""
    def zero_(self) -> Tensor:
        """Put zero everywhere."""
    def zeros_like(self, *, dtype: TensorDType = None) -> Tensor:
        """Zeros in the shape of a tensor, and in its dtype or another."""
