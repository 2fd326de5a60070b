"""Linear algebra of matrices in the last two axes; the other axes are a batch.

Operators of a triangular or symmetric matrix read only one triangle. Gradients are composed of operators, after M.
Seeger, A. Hetzel, Z. Dai, E. Meissner, N. D. Lawrence, Auto-Differentiating Linear Algebra, arXiv:1710.08717, so they
can be differentiated again. A failed decomposition raises the array module's ``LinAlgError``, which is also an
``MXNetError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.launch import Call
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, show
from ...core.value import Value
from ...custom.composed import composed
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..attention_parts import Product
from ..forms import declare_form
from ..outputs import adjoint_pair, declare_array_function, declare_input_shape
from ..places import declare_reads, declare_writes
from .dense import FACTORS, product, transposable

__all__ = ["transposed"]


#: One dtype, float32 or float64.
_TYPES = "*T:solvable->*T"


def _linalg(function: Callable | None = None, /, declare: Callable = declare, **options: Any) -> Any:
    """Declare ``_linalg_<name>``, publicly ``linalg_<name>``."""
    if function is None:
        return lambda function: _linalg(function, declare, **options)
    name = function.__name__
    aliases = (f"linalg_{name}", *options.pop("aliases", ()))
    return declare(function, name=f"_linalg_{name}", aliases=aliases, types=_TYPES, **options)


def _matrices(shape: Shape, name: str = "A") -> tuple[Shape, int, int]:
    """The shape of the stack, and the numbers of rows and columns."""
    if len(shape) < 2:
        raise ShapeError(f"{name}: expected a matrix or a stack of them, got shape {show(shape)}")
    return shape[:-2], shape[-2], shape[-1]


def _square(shape: Shape, name: str = "A") -> tuple[Shape, int]:
    stack, rows, columns = _matrices(shape, name)
    if rows != columns:
        raise ShapeError(f"{name}: expected square matrices, got shape {show(shape)}")
    return stack, columns if rows is ANY else rows


def _t(array: Array) -> Array:
    return array.swapaxes(-1, -2)


def transposed(value: Value) -> Value:
    """Matrices with their rows as columns."""
    return ops.SwapAxis(value, dim1=-1, dim2=-2)


def _half(xp: ArrayModule, array: Array, lower: bool) -> Array:
    return xp.tril(array) if lower else xp.triu(array)


# ----------------------------------------------------------------------------------------------- products


def _product_form(*, transpose_a: bool, transpose_b: bool, axis: int) -> str:
    """The form of a product of matrices with rows along ``axis`` and columns along the last axis."""
    if axis == -1:
        raise AttrError("axis=-1 is the last axis, which holds the columns")
    named = ", ".join([f"axis{i}" for i in range(axis if axis >= 0 else -2 - axis)])
    before, behind = (named, "...") if axis >= 0 else ("...", named)

    def matrix(rows: str, columns: str, turned: bool = False) -> str:
        rows, columns = (columns, rows) if turned else (rows, columns)
        return f"({before}, {rows}, {behind}, {columns})"

    product = matrix("rows", "columns")
    return f"{matrix('rows', 'inner', transpose_a)} {matrix('inner', 'columns', transpose_b)} {product} -> {product}"


def _multiply(xp: ArrayModule, lhs: Array, rhs: Array, transpose_a: bool, transpose_b: bool, alpha: float, axis: int,
              out: Array | None = None) -> Array:
    plain = axis in (-2, lhs.ndim - 2)
    left, right = (operand if plain else xp.moveaxis(operand, axis, -2) for operand in (lhs, rhs))
    left, right = _t(left) if transpose_a else left, _t(right) if transpose_b else right
    result = product(xp, left, right, out if plain else None)
    if alpha != 1.0:
        result *= alpha
    if plain:
        return result
    result = xp.moveaxis(result, -2, axis)
    if out is None:
        return result
    out[...] = result
    return out


@_linalg
def gemm2(A, B, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, axis: int = -2):
    """``alpha`` times the product of matrices with rows along ``axis``."""


declare_form(gemm2, _product_form)


def _products_xp(xp: ArrayModule, A: Array, B: Array, *C: Array, transpose_a: bool, transpose_b: bool, alpha: float,
                 axis: int, beta: float = 1.0, out: Array | None = None) -> Array:
    """The kernel of both: the third term is added in place, where a body would need one more array."""
    result = _multiply(xp, A, B, transpose_a, transpose_b, alpha, axis, out)
    for added in C:
        result += added if beta == 1.0 else beta * added
    return result


gemm2.kernel()(_products_xp)  # no body: bodies use it to multiply


def _gemm2(call: Call) -> tuple[Array, Array] | None:
    (A, B), attrs = call.ins, call.attrs
    if attrs["axis"] not in (-2, A.ndim - 2):
        return None
    return _t(A) if attrs["transpose_a"] else A, _t(B) if attrs["transpose_b"] else B


FACTORS[gemm2] = _gemm2


gemm2_grad = transposable(gemm2)


@gemm2.attends
def gemm2_attends(A, B, *, transpose_a, transpose_b, alpha, axis):
    return Product(transpose_a, transpose_b, alpha) if axis in (-2, len(A) - 2) and A[:-2] == B[:-2] else None


@_linalg
def gemm(A, B, C, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, beta: float = 1.0,
         axis: int = -2):
    """``alpha`` times the product of ``A`` and ``B``, plus ``beta * C``; the matrices have rows along ``axis``."""


declare_form(gemm, _product_form)
gemm.kernel()(_products_xp)  # no body: the third term is added in place


@gemm.grad
def gemm_grad(g, ins, outs, *, needs, transpose_a, transpose_b, alpha, beta, axis):
    parts = gemm2_grad(g, ins[:2], outs, needs=needs, transpose_a=transpose_a, transpose_b=transpose_b, alpha=alpha,
                       axis=axis)
    return (*parts, ops._mul_scalar(g, scalar=beta) if needs[2] else None)


@_linalg(declare=composed)
def syrk(A, *, transpose: bool = False, alpha: float = 1.0):
    """``alpha * A @ A.T``, or with ``transpose`` ``alpha * A.T @ A``."""
    return ops._linalg_gemm2(A, A, transpose_a=transpose, transpose_b=not transpose, alpha=alpha)


# The gradient takes one product; the derivative of the body takes two.
@syrk.grad
def syrk_grad(g, ins, outs, *, transpose, alpha):
    both = ops.elemwise_add(g, transposed(g))
    pair = (ins[0], both) if transpose else (both, ins[0])
    return (ops._linalg_gemm2(*pair, alpha=alpha),)


# ---------------------------------------------------------------------------------------------- triangles


def _triangular_form(*, rightside: bool) -> str:
    matrix = "(..., m, n)" if rightside else "(..., n, m)"
    return f"(..., n, n) {matrix} -> {matrix}"


def _triangle_of(A: Value, lower: bool = True) -> Value:
    """The lower or upper triangle with the diagonal; other elements are zero."""
    return ops._npi_tril(A) if lower else ops._npi_triu(A)


@_linalg(declare=composed)
def trmm(A, B, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0):
    """``alpha * A @ B`` for a triangular matrix ``A``, or with ``rightside`` ``alpha * B @ A``."""
    half = _triangle_of(A, lower)
    if rightside:
        return ops._linalg_gemm2(B, half, transpose_b=transpose, alpha=alpha)
    return ops._linalg_gemm2(half, B, transpose_a=transpose, alpha=alpha)


declare_form(trmm, _triangular_form)


@_linalg
def trsm(A, B, *, transpose: bool = False, rightside: bool = False, lower: bool = True, alpha: float = 1.0):
    """The solution ``X`` of ``A @ X = alpha * B`` for a triangular matrix ``A``, or with ``rightside`` of ``X @ A =
    alpha * B``."""


declare_form(trsm, _triangular_form)




def _solve(xp: ArrayModule, A: Array, B: Array, *, transpose: bool, rightside: bool, lower: bool, alpha: float
           ) -> Array:
    half = _half(xp, A, lower)
    half = _t(half) if transpose != rightside else half
    right = B if alpha == 1.0 else alpha * B
    return _t(xp.linalg.solve(half, _t(right))) if rightside else xp.linalg.solve(half, right)


declare_array_function(trsm, _solve)


@trsm.grad
def trsm_grad(g, ins, outs, *, transpose, rightside, lower, alpha):
    (A, _), (x,) = ins, outs
    solved = ops._linalg_trsm(A, g, transpose=not transpose, rightside=rightside, lower=lower)
    pair = (x, solved) if rightside != transpose else (solved, x)
    slope = ops._linalg_gemm2(*pair, transpose_a=rightside, transpose_b=not rightside, alpha=-1.0)
    return _triangle_of(slope, lower), ops._mul_scalar(solved, scalar=alpha)


# ----------------------------------------------------------------------------------------- decompositions


def _mirror_lower(value: Value) -> Value:
    """The symmetric matrix with the lower triangle of a value."""
    low = _triangle_of(value)
    strict = ops.elemwise_sub(value, _triangle_of(value, False))
    return ops.elemwise_add(low, transposed(strict))


@_linalg(aliases=("_npi_cholesky",))
def potrf(A, *, lower: bool = True):
    """The Cholesky factor: lower triangular ``L`` with ``A = L @ L.T``; without ``lower``, ``L.T``."""


declare_form(potrf, "(..., n, n) -> (..., n, n)")
declare_array_function(potrf, lambda xp, A, *, lower: xp.linalg.cholesky(A) if lower else _t(xp.linalg.cholesky(_t(A))))


@potrf.grad
def potrf_grad(g, ins, outs, *, lower):
    low, g = (outs[0], g) if lower else (transposed(outs[0]), transposed(g))
    middle = _mirror_lower(ops._linalg_gemm2(low, g, transpose_a=True))
    half = ops._linalg_trsm(low, middle, transpose=True, alpha=0.5)
    return (ops._linalg_trsm(low, half, rightside=True),)


@_linalg
def potri(A, *, lower: bool = True):
    """The inverse of ``L @ L.T``, given the lower triangular ``A = L``; without ``lower``, ``A`` is ``L.T``."""


def _inverse_of_square(xp: ArrayModule, A: Array, *, lower: bool) -> Array:
    inverse = xp.linalg.inv(xp.tril(A if lower else _t(A)))
    return inverse.swapaxes(-1, -2) @ inverse


# A body takes 50% longer for small matrices.
declare_form(potri, "(..., n, n) -> (..., n, n)")
declare_array_function(potri, _inverse_of_square)


@potri.grad
def potri_grad(g, ins, outs, *, lower):
    low = ins[0] if lower else transposed(ins[0])
    both = ops.elemwise_add(g, transposed(g))
    slope = ops._linalg_trsm(low, ops._linalg_gemm2(outs[0], both), rightside=True, transpose=True, alpha=-1.0)
    dA = _triangle_of(slope)
    return (dA if lower else transposed(dA),)


@_linalg(outputs=("output0", "output1"))
def gelqf(A):
    """The LQ decomposition: ``A = L @ Q`` with orthonormal rows ``Q`` and a lower triangular ``L``."""


declare_form(gelqf, "(..., rows, columns >= rows) -> (..., rows, columns) (..., rows, rows)")


declare_array_function(gelqf, lambda xp, A: tuple(map(_t, xp.linalg.qr(_t(A)))))


@gelqf.grad
def gelqf_grad(g, ins, outs):
    (g_q, g_l), (q, low) = g, outs
    middle = ops.elemwise_sub(ops._linalg_gemm2(low, g_l, transpose_a=True),
                              ops._linalg_gemm2(g_q, q, transpose_b=True))
    inner = ops._linalg_gemm(_mirror_lower(middle), q, g_q)
    return (ops._linalg_trsm(low, inner, transpose=True),)


@_linalg(outputs=("output0", "output1"))
def syevd(A):
    """Eigenvectors, the rows of ``U``, and ascending eigenvalues ``L`` of symmetric matrices.

    The element of largest absolute value of each eigenvector is positive.
    """


def _eigenvectors(xp: ArrayModule, A: Array) -> tuple[Array, Array]:
    values, vectors = xp.linalg.eigh(A)
    rows = _t(vectors)
    if not rows.size:
        return rows, values
    largest = xp.take_along_axis(rows, xp.argmax(xp.abs(rows), axis=-1)[..., None], -1)
    return xp.where(largest < 0, -rows, rows), values


declare_form(syevd, "(..., n, n) -> (..., n, n) (..., n)")
declare_array_function(syevd, _eigenvectors)


@syevd.grad
def syevd_grad(g, ins, outs):
    (g_u, g_l), (u, values) = g, outs
    across, down = ops.expand_dims(values, axis=-2), ops.expand_dims(values, axis=-1)
    equal = ops.broadcast_equal(across, down)
    gaps = ops.elemwise_add(ops.broadcast_sub(across, down), equal)
    apart = ops.elemwise_div(ops._rminus_scalar(equal, scalar=1.0), gaps)
    turn = ops.elemwise_mul(ops._linalg_gemm2(u, g_u, transpose_b=True), apart)
    middle = ops.elemwise_add(turn, ops._linalg_makediag(g_l))
    slope = ops._linalg_gemm2(ops._linalg_gemm2(u, middle, transpose_a=True), u)
    return (ops._mul_scalar(ops.elemwise_add(slope, transposed(slope)), scalar=0.5),)


# ----------------------------------------------------------------------------- inverses and determinants


@_linalg(aliases=("_npi_inv",))
def inverse(A):
    """The inverse of matrices."""


declare_form(inverse, "(..., n, n) -> (..., n, n)")
declare_array_function(inverse, lambda xp, A: xp.linalg.inv(A))


@inverse.grad
def inverse_grad(g, ins, outs):
    (y,) = outs
    left = ops._linalg_gemm2(y, g, transpose_a=True)
    return (ops._linalg_gemm2(left, y, transpose_b=True, alpha=-1.0), *[None] * (len(ins) - 1))


def _scalar_per_matrix(A: Shape) -> Shape:
    """The shape of one scalar per square matrix."""
    stack, _ = _square(A)
    return stack or (1,)


def _declare_scalars(op: Op) -> None:
    """Declare that each output has one scalar per matrix."""
    op.infer(lambda A: [_scalar_per_matrix(A)] * len(op.signature.outputs({})))


@declare(name="_linalg_regular_inverse", types=_TYPES)
def regular_inverse(A, det):
    """The inverse of matrices, or zeros where the determinant ``det`` is zero."""


declare_input_shape(regular_inverse, 1, lambda A, det: (A, _scalar_per_matrix(A)))


def _regular(xp: ArrayModule, A: Array, det: Array) -> Array:
    singular = det.reshape((*A.shape[:-2], 1, 1)) == 0
    inverse = xp.linalg.inv(xp.where(singular, xp.eye(A.shape[-1], dtype=A.dtype), A))
    return xp.where(singular, 0, inverse)


declare_array_function(regular_inverse, _regular)
regular_inverse.grad(inverse_grad)


def _scale_per_matrix(A: Any, factor: Value) -> Value:
    """A scalar per matrix, reshaped to broadcast over the matrices."""
    return ops.Reshape(factor, shape=(-2, 1) if len(A.shape) == 2 else (-2, 1, 1))


def _slope_of_log(A: Value, det: Value, g: Value) -> Value:
    """The gradient of ``A`` from the gradient ``g`` of the logarithm of its determinant."""
    return ops.broadcast_mul(transposed(ops._linalg_regular_inverse(A, det)), _scale_per_matrix(A, g))


@_linalg(outputs=("output0",), aliases=("_npi_det",))
def det(A):
    """The determinant of matrices."""


_declare_scalars(det)


declare_array_function(det, lambda xp, A: xp.linalg.det(A))


@det.grad
def det_grad(g, ins, outs):
    return (_slope_of_log(ins[0], outs[0], ops.elemwise_mul(g, outs[0])),)


@_linalg(outputs=("output0", "output1"), aliases=("_npi_slogdet",))
def slogdet(A):
    """The sign of the determinant, and the logarithm of its absolute value."""


_declare_scalars(slogdet)


declare_array_function(slogdet, lambda xp, A: tuple(xp.linalg.slogdet(A)))


@slogdet.grad
def slogdet_grad(g, ins, outs):
    return (_slope_of_log(ins[0], outs[0], g[1]),)


@_linalg
def sumlogdiag(A):
    """The sum of the logarithms of the diagonal elements."""


_declare_scalars(sumlogdiag)


# The kernel is one step; a body would be three.
declare_array_function(sumlogdiag, lambda xp, A: xp.sum(xp.log(A.diagonal(0, -2, -1)), axis=-1))


@sumlogdiag.grad
def sumlogdiag_grad(g, ins, outs):
    slope = ops._linalg_makediag(ops.reciprocal(ops._linalg_extractdiag(ins[0])))
    return (ops.broadcast_mul(slope, _scale_per_matrix(ins[0], g)),)


# ------------------------------------------------------------------------------------ parts of a matrix


def _diagonal_length(size: int, offset: int) -> int:
    """The length of a diagonal."""
    if abs(offset) >= size:
        raise ShapeError(f"offset={offset}: a matrix of {size} rows has no such diagonal")
    return size - abs(offset)


def _declare_part(take: Op, put: Op, count: Callable[[int], int], side: Callable[[int], int],
                  places: Callable[..., tuple[Array, Array]]) -> None:
    """Declare two operators, one of which gathers elements of a matrix and the other scatters them.

    ``count`` gives the number of elements from the length of the diagonal at which they begin, ``side`` is its inverse,
    and ``places`` gives their rows and columns. The gathering operator has its own kernel.
    """

    @take.infer
    def take_infer(A, *, offset):
        stack, size = _square(A)
        return (*stack, count(_diagonal_length(size, offset)))

    @put.infer
    def put_infer(A, *, offset):
        size = side(A[-1]) + abs(offset)
        return (*A[:-1], size, size)

    def to_places(xp: ArrayModule, A: Array, **attrs: Any) -> tuple[Shape, tuple, Array]:
        length = side(A.shape[-1])
        size = length + abs(attrs["offset"])
        return (*A.shape[:-1], size, size), (..., *places(xp, length, **attrs)), A

    declare_writes(put, to_places)

    adjoint_pair(take, put, like=False)


@_linalg
def extractdiag(A, *, offset: int = 0):
    """The elements of a diagonal: the main one, or the one ``offset`` places above it."""


declare_array_function(extractdiag, lambda xp, A, *, offset: A.diagonal(offset, -2, -1))


@_linalg
def makediag(A, *, offset: int = 0):
    """Zeros with the elements of ``A`` on a diagonal: the main one, or the one ``offset`` places above it."""


def _diagonal(xp: ArrayModule, length: int, *, offset: int) -> tuple[Array, Array]:
    rows = xp.arange(length) + max(-offset, 0)
    return rows, rows + offset


_declare_part(extractdiag, makediag, lambda length: length, lambda count: count, _diagonal)


@_linalg
def extracttrian(A, *, offset: int = 0, lower: bool = True):
    """The elements of a triangle as a vector: the diagonal ``offset`` and all diagonals beyond it, which are below for
    a negative ``offset``, above for a positive one; for 0 ``lower`` decides."""


@_linalg
def maketrian(A, *, offset: int = 0, lower: bool = True):
    """Zeros with the elements of ``A`` in a triangle; the reverse of ``extracttrian``."""


def _triangle(xp: ArrayModule, length: int, *, offset: int, lower: bool) -> tuple[Array, Array]:
    """The rows and columns of a triangle: row by row if lower, else column by column."""
    far, near = xp.tril_indices(length)
    far = far + abs(offset)
    return (far, near) if offset < 0 or (offset == 0 and lower) else (near, far)


def _length(count: int) -> int:
    """The side of a triangle with that many elements."""
    if count is ANY:
        return ANY
    side = math.isqrt(2 * count)
    if side * (side + 1) // 2 != count or count == 0:
        raise ShapeError(f"{count} elements do not fill a triangle: expected 1, 3, 6, 10, ...")
    return side


declare_reads(extracttrian, lambda xp, A, *, offset, lower: (
    A, (..., *_triangle(xp, A.shape[-1] - abs(offset), offset=offset, lower=lower))))


_declare_part(extracttrian, maketrian, lambda length: length * (length + 1) // 2, _length, _triangle)


@gemm.flops
@gemm2.flops
def gemm_flops(ins, outs, *, transpose_a, axis):
    return 2 * math.prod(outs[0]) * ins[0][axis if transpose_a else -1]


@syrk.flops
def syrk_flops(ins, outs, *, transpose):
    return 2 * math.prod(outs[0]) * ins[0][-2 if transpose else -1]


@trmm.flops
def trmm_flops(ins, outs):
    """The count includes multiplications by the zeros of the triangle."""
    return 2 * math.prod(outs[0]) * ins[0][-1]


@trsm.flops
def trsm_flops(ins, outs):
    return math.prod(outs[0]) * ins[0][-1]


@potri.flops
def potri_flops(ins, outs):
    """The product of the factor's inverse and its transpose."""
    return 2 * math.prod(outs[0]) * ins[0][-1]
