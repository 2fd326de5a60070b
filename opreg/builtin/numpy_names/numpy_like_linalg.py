"""Linear algebra with NumPy's rules, under MXNet's names: decompositions, solutions of equations, inverses, norms.

Matrices lie in the last two axes, and results are float32 or wider. Eigenvalues and pseudo-inverses have no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ...core.attrs import Number
from ...core.declarations import ZERO
from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import Shape, broadcast, check_axes, check_axis, show
from ...custom.composed import composed
from ...elementwise.loops import reduced
from ...errors import AttrError, ShapeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..matrices.linalg import transposed
from ..outputs import declare_array_function
from .numpy_like_numbers import floating_of, widest_float

Axes = int | tuple[int, ...] | None


def _matrices(A: Shape, square: bool = False) -> tuple[Shape, int, int]:
    """The stack, the rows and the columns."""
    if len(A) < 2 or (square and A[-1] != A[-2]):
        raise ShapeError(f"expected {'square ' * square}matrices, got shape {show(A)}")
    return A[:-2], A[-2], A[-1]


@composed(name="_of_matrices", types="T,*?->T", unread=(1,))
def broadcast_to_matrices(data, A):
    """``data``, one element for each of the matrices ``A``, in the shape of the leading axes of ``A``."""
    return ops._np_reshape(data, newshape=A.shape[:-2])


# ------------------------------------------------------------------------------------------- singular values


@declare(name="_npi_svd", outputs=("output0", "output1", "output2"), types="T:solvable->T,T,T")
def svd(A):
    """The singular value decomposition ``A = U @ diag(L) @ V`` of matrices with no more rows than columns; the singular
    values ``L`` are in descending order."""


declare_form(svd, "(..., rows, columns >= rows) -> (..., rows, rows) (..., rows) (..., rows, columns)")


def _check_finite(xp: ArrayModule, A: Array) -> None:
    """Refuse NaN and infinity on the host, where LAPACK's decomposition of an infinity may never end."""
    if xp is np and not np.isfinite(A).all():
        raise np.linalg.LinAlgError("expected finite numbers, got NaN or infinity")


def _decompose(xp: ArrayModule, A: Array) -> tuple[Array, ...]:
    _check_finite(xp, A)
    if not A.size:
        return tuple(xp.zeros(shape, A.dtype) for shape in ((*A.shape[:-1], A.shape[-2]), A.shape[:-1], A.shape))
    return tuple(xp.linalg.svd(A, full_matrices=False))


declare_array_function(svd, _decompose)


@svd.grad
def svd_grad(g, ins, outs):
    u, length, v = outs
    gu, gl, gv = [ops.zeros_like(out) if one is None else one for one, out in zip(g, outs)]
    row, column = ops.expand_dims(length, axis=-2), ops.expand_dims(length, axis=-1)
    squares = ops.broadcast_sub(ops.square(row), ops.square(column))
    equal = ops._equal_scalar(squares, scalar=0.0)
    apart = ops.elemwise_div(ops._rminus_scalar(equal, scalar=1.0), ops.elemwise_add(squares, equal))
    lefts, rights = ops._npi_matmul(transposed(u), gu), ops._npi_matmul(gv, transposed(v))
    left = ops.broadcast_mul(ops.broadcast_mul(apart, ops.broadcast_sub(lefts, transposed(lefts))), row)
    right = ops.broadcast_mul(ops.broadcast_mul(apart, ops.broadcast_sub(transposed(rights), rights)), column)
    inner = ops.broadcast_add(ops.broadcast_add(left, right), ops._linalg_makediag(gl))
    # the part of the gradient that is orthogonal to the rows of v
    beside = ops.broadcast_sub(gv, ops._npi_matmul(rights, v))
    return (ops._npi_matmul(u, ops.broadcast_add(ops._npi_matmul(inner, v), ops.broadcast_div(beside, column))),)


# -------------------------------------------------------------------------------------- equations and inverses


def _solution(A: Shape, B: Shape) -> Shape:
    """The shape of a solution; with one axis less than ``A``, ``B`` holds vectors."""
    stack, rows, _ = _matrices(A, square=True)
    vector = len(B) == len(A) - 1
    if not B or B[-1 if vector else -2] != rows:
        raise ShapeError(f"B: expected {rows} rows, as {show(A)} has, got shape {show(B)}")
    return (*broadcast(stack, B[:-1]), rows) if vector else (*broadcast(stack, B[:-2]), *B[-2:])


@declare(name="_npi_solve")
def solve(A, B):
    """The solution ``x`` of ``A @ x = B``, for square matrices ``A``. If ``B`` has one axis less than ``A``, it holds
    vectors."""


solve.infer(_solution)


def _solve(xp: ArrayModule, A: Array, B: Array) -> Array:
    shape = _solution(A.shape, B.shape)
    if 0 in shape:
        return xp.zeros(shape, A.dtype)
    vector = B.ndim == A.ndim - 1
    return xp.linalg.solve(A, B[..., None] if vector else B).reshape(shape)


declare_array_function(solve, _solve)


@solve.grad
def solve_grad(g, ins, outs):
    A, B = ins
    vector = len(B.shape) == len(A.shape) - 1
    gradient = ops._npi_solve(transposed(A), g)
    one, other = [ops.expand_dims(value, axis=-1) if vector else value for value in (gradient, outs[0])]
    return (ops._reduce_like(ops.negative(ops._npi_matmul(one, transposed(other))), A), ops._reduce_like(gradient, B))


@composed(name="_npi_tensorinv")
def tensorinv(a, *, ind: int = 2):
    """The inverse of ``a`` as a matrix: its first ``ind`` axes are the rows, the others the columns."""
    if not 0 < ind <= len(a.shape):
        raise AttrError(f"ind={ind}: expected a number from 1 to {len(a.shape)}, the axes of {show(a.shape)}")
    size = math.prod(a.shape[:ind])
    if size != math.prod(a.shape[ind:]):
        raise ShapeError(f"{show(a.shape)}: expected as many elements in the first {ind} axes as in the others")
    shape = a.shape[ind:] + a.shape[:ind]
    return ops._np_reshape(ops._linalg_inverse(ops._np_reshape(a, newshape=(size, size))), newshape=shape)


def _last(a: Shape, a_axes: Sequence[int] | None) -> tuple[int, ...]:
    """The order of axes in which some are the last."""
    axes = [check_axis(axis, len(a), "a_axes") for axis in a_axes or ()]
    return (*[axis for axis in range(len(a)) if axis not in axes], *axes)


@composed(name="_npi_tensorsolve")
def tensorsolve(a, b, *, a_axes: tuple[int, ...] | None = None):
    """The solution ``x`` of ``tensordot(a, x, x.ndim) = b``. Axes ``a_axes`` of ``a`` are moved to its end first.

    The shape of ``x`` is ``a.shape[b.ndim - a.ndim:]``, as in NumPy.
    """
    a = ops.transpose(a, axes=_last(a.shape, a_axes)) if a_axes else a
    size, shape = math.prod(b.shape), a.shape[len(b.shape) - len(a.shape):]
    if math.prod(shape) != size or math.prod(a.shape) != size * size:
        raise ShapeError(f"b of shape {show(b.shape)} does not fit {show(a.shape)}: expected its first axes, and as "
                         "many elements in the others")
    matrix, vector = ops._np_reshape(a, newshape=(size, size)), ops._np_reshape(b, newshape=(size,))
    return ops._np_reshape(ops._npi_solve(matrix, vector), newshape=shape)


def _pseudo_inverse(xp: ArrayModule, A: Array, rcond: Any, hermitian: bool) -> Array:
    _check_finite(xp, A)
    stack = np.broadcast_shapes(A.shape[:-2], getattr(rcond, "shape", ()))
    A = xp.broadcast_to(A, (*stack, *A.shape[-2:]))
    if not hermitian or not A.size:
        return xp.linalg.pinv(A, rcond)
    values, vectors = xp.linalg.eigh(A)  # CuPy's pinv has no such keyword
    sizes = xp.abs(values)
    large = sizes > xp.asarray(rcond)[..., None] * xp.max(sizes, axis=-1, keepdims=True)
    inverse = xp.where(large, 1 / xp.where(large, values, 1), 0).astype(A.dtype)
    result: Array = xp.matmul(vectors * inverse[..., None, :], vectors.swapaxes(-1, -2))
    return result


def _declare_pseudo_inverse(name: str, doc: str, **inputs: Any) -> None:
    """Declare the pseudo-inverse, with the threshold as an input or as a number."""
    op: Op

    if inputs:
        @declare(name=name)
        def op(A, *, rcond: Number = 1e-15, hermitian: bool = False):
            """A pseudo-inverse."""
    else:
        @declare(name=name)
        def op(A, rcond, *, hermitian: bool = False):
            """A pseudo-inverse."""

    op.doc = doc
    op.grad(ZERO)

    @op.infer
    def inverting_infer(A, *rcond):
        stack, rows, columns = _matrices(A)
        return (*(broadcast(stack, *rcond) if rcond else stack), columns, rows)

    declare_array_function(op, lambda xp, A, *given, hermitian, rcond=None: _pseudo_inverse(
        xp, A, given[0] if given else rcond, hermitian))


_declare_pseudo_inverse("_npi_pinv_scalar_rcond",
                        "The pseudo-inverse of matrices, where singular values below ``rcond`` times the "
                        "largest count as zero.", rcond=1e-15)
_declare_pseudo_inverse("_npi_pinv",
                        "The pseudo-inverse of matrices, where singular values below ``rcond`` times the largest "
                        "count as zero; ``rcond`` is a number for each matrix.")


# ----------------------------------------------------------------------------------------------- eigenvalues


def _declare_eigenvalues(name: str, vectors: bool, symmetric: bool, doc: str) -> None:
    """Declare eigenvalues, and eigenvectors."""
    outputs = ("output0", "output1") if vectors else ("output",)
    op: Op
    if symmetric:
        @declare(name=name, outputs=outputs)
        def op(A, *, UPLO: Literal["L", "U"] = "L"):
            """Eigenvalues."""
    else:
        @declare(name=name, outputs=outputs)
        def op(A):
            """Eigenvalues."""
    op.doc = doc
    op.grad(ZERO)

    floating_of(op, integers="float64")
    declare_form(op, f"(..., n, n) -> (..., n){' (..., n, n)' * vectors}")

    def eigen(xp: ArrayModule, A: Array, **attrs: Any) -> Any:
        result = getattr(xp.linalg, name.removeprefix("_npi_"))(A, **attrs)
        dtype = widest_float(A.dtype, integers="float64")
        parts = [xp.real(part).astype(dtype) for part in (result if vectors else (result,))]
        return tuple(parts) if vectors else parts[0]

    declare_array_function(op, eigen)


_declare_eigenvalues("_npi_eig", True, False,
                     "The real parts of the eigenvalues of square matrices, and of the eigenvectors, which are "
                     "columns.")
_declare_eigenvalues("_npi_eigh", True, True,
                     "The eigenvalues of symmetric matrices in ascending order, and the eigenvectors, which "
                     "are columns. Only the triangle ``UPLO`` is read.")
_declare_eigenvalues("_npi_eigvals", False, False, "The real parts of the eigenvalues of square matrices.")
_declare_eigenvalues("_npi_eigvalsh", False, True,
                     "The eigenvalues of symmetric matrices in ascending order. Only the triangle "
                     "``UPLO`` is read.")


# ------------------------------------------------------------------------------------------------------ norms


def _places(shape: Shape, axis: Axes) -> tuple[int, ...]:
    return () if axis == () else check_axes(axis, len(shape))


def _vector_norm(x: Any, ord: float, axes: Axes, keepdims: bool) -> Any:
    sizes = ops.abs(x)
    if math.isinf(ord):
        return (ops._np_max if ord > 0 else ops._np_min)(sizes, axis=axes, keepdims=keepdims)
    if ord == 0:
        return ops._np_sum(ops.Cast(ops._npi_not_equal_scalar(x, scalar=0.0), dtype=x.dtype), axis=axes,
                           keepdims=keepdims)
    if ord == 1:
        return ops._np_sum(sizes, axis=axes, keepdims=keepdims)
    if ord == 2:
        return ops.sqrt(ops._np_sum(ops.square(x), axis=axes, keepdims=keepdims))
    if x.dtype == np.float16:  # powers would exceed the range of float16
        return ops.Cast(_vector_norm(ops.Cast(x, dtype="float32"), ord, axes, keepdims), dtype="float16")
    total = ops._np_sum(ops._power_scalar(sizes, scalar=ord), axis=axes, keepdims=keepdims)
    return ops._power_scalar(total, scalar=1 / ord)


def _singular_values(x: Any, axes: Sequence[int]) -> Any:
    """The singular values of the matrices over two axes, along the last axis."""
    rows, columns = axes if x.shape[axes[0]] <= x.shape[axes[1]] else (axes[1], axes[0])
    order = (*[axis for axis in range(len(x.shape)) if axis not in axes], rows, columns)
    return ops._npi_svd(ops.transpose(x, axes=order))[1]


def _matrix_norm(x: Any, ord: float, axes: Sequence[int], keepdims: bool, nuclear: bool) -> Any:
    if nuclear or abs(ord) == 2:
        values = _singular_values(x, axes)
        result = ops._np_sum(values, axis=-1) if nuclear else (ops._np_max if ord > 0 else ops._np_min)(values, axis=-1)
    elif abs(ord) == 1 or math.isinf(ord):
        over, across = axes if abs(ord) == 1 else (axes[1], axes[0])
        sums = ops._np_sum(ops.abs(x), axis=over, keepdims=True)
        result = (ops._np_max if ord > 0 else ops._np_min)(sums, axis=(over, across), keepdims=True)
    else:
        raise AttrError(f"ord={ord}: expected 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc' for matrices")
    return ops._np_reshape(result, newshape=reduced(x.shape, tuple(axes), keepdims, scalar=True))


@composed(name="_npi_norm")
def norm(data, *, ord: Number = 2.0, axis: Axes = None, flag: int = -1, keepdims: bool = False):
    """The norm of all elements, of vectors along one axis, or of matrices over two. ``flag`` is 1 for the Frobenius
    norm, 2 for the nuclear norm, -2 for the norm of all elements; otherwise ``ord`` chooses the norm. Without ``axis``,
    ``data`` is a vector or a matrix according to its rank. Integers give float32."""
    dtype = widest_float(data.dtype)
    if data.dtype != dtype:
        data = ops.Cast(data, dtype=dtype)
    if flag in (-2, 1):
        return _vector_norm(data, 2.0, axis, keepdims)
    places = _places(data.shape, axis)
    if len(places) == 2:
        order = axis if isinstance(axis, tuple) else places  # a tuple may name the columns before the rows
        return _matrix_norm(data, ord, [check_axis(each, len(data.shape)) for each in order], keepdims, flag == 2)
    if len(places) != 1 or flag == 2:
        raise AttrError(f"axis={axis}: expected one axis or two, got {len(places)}")
    return _vector_norm(data, ord, places, keepdims)


floating_of(norm)
