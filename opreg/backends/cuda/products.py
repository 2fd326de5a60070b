"""Matrix products by cublasLt: descriptions of arrays for it, and the steps that multiply.

Arrays here are stored by rows, matrices of the library by columns. A matrix stored by rows is the transposed matrix if
read by columns. So the library computes the transpose of the product: the transposed right factor times the transposed
left one. No elements are moved for that. A factor that is stored by columns here is transposed by the library.

The library chooses an algorithm once for each kind of product: sizes, dtype, layout and alignment of the arrays.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core.addresses import address_of
from opreg.core.cache import cached
from opreg.core.locks import lock
from opreg.core.rounding import tf32
from opreg.core.steps import PlainStep, Work, index_at, own_bytes
from opreg.errors import OpError
from opreg.typing import Array, ArrayModule

from ..addressing import joined_axes
from .cublaslt import (
    Algorithm,
    ComputeType,
    DataType,
    Descriptor,
    DescriptorAttribute,
    Epilogue,
    Heuristic,
    LayoutAttribute,
    Library,
    Operation,
    PreferenceAttribute,
    Status,
    answer,
    library,
)

__all__ = ["ChosenAlgorithm", "DTYPES", "Matrices", "Multiply", "Product", "choose", "describe", "multiply"]

#: For each dtype, the type of stored elements, the type of the computation, and the type of scale factors.
DTYPES: dict[str, tuple[DataType, ComputeType, DataType]] = {
    "float16": (DataType.R_16F, ComputeType.COMPUTE_32F, DataType.R_32F),
    "bfloat16": (DataType.R_16BF, ComputeType.COMPUTE_32F, DataType.R_32F),
    "float32": (DataType.R_32F, ComputeType.COMPUTE_32F, DataType.R_32F),
    "float64": (DataType.R_64F, ComputeType.COMPUTE_64F, DataType.R_64F),
}

# The largest workspace of an algorithm, in bytes: NVIDIA's recommendation for Hopper.
_WORKSPACE = 32 << 20
# The alignment in bytes that the library assumes by default, for arrays and its workspace.
_ALIGNED = 256
# The reason to refuse a stack whose matrices are multiplied one by one instead, and the largest number of such
# matrices.
_APART, _PARTS = "the matrices are not equally far apart", 8


class Matrices(NamedTuple):
    """A matrix, or a batch of them, in memory.

    Attributes
    ----------
    rows, columns : int
    by_columns : bool
        Whether the elements of a column are contiguous, not those of a row.
    step, apart : int
        The distance from one row (or column) to the next, and from one matrix to the next, in elements.
    """

    rows: int
    columns: int
    by_columns: bool
    step: int
    apart: int


class Product(NamedTuple):
    """Everything that the choice of an algorithm depends on.

    Attributes
    ----------
    dtype : str
    batch : int
        Number of products.
    left, right, out : Matrices
    alignments : tuple of int
        The alignments of the three and of a bias, in bytes; zero without a bias.
    add : bool
        Whether the product is added to the output's present elements.
    epilogue : Epilogue
    tf32 : bool
        Whether factors of float32 may be rounded to TF32.
    """

    dtype: str
    batch: int
    left: Matrices
    right: Matrices
    out: Matrices
    alignments: tuple[int, int, int, int]
    add: bool
    epilogue: Epilogue
    tf32: bool

    def __str__(self) -> str:
        sizes = f"{self.left.rows} x {self.left.columns} by {self.right.rows} x {self.right.columns}"
        return f"{f'{self.batch} products of ' * (self.batch > 1)}{sizes} in {self.dtype}"


def describe(a: Array, b: Array, out: Array, *, add: bool = False, epilogue: Epilogue = Epilogue.DEFAULT,
             bias: Array | None = None, tf32: bool = False) -> Product | str:
    """The description of the product ``out = a @ b``, whose axes before the last two broadcast; or the reason why
    cublasLt cannot compute it.

    ``bias`` is the array that the epilogue reads or writes.
    """
    if out.dtype.name not in DTYPES or not a.dtype == b.dtype == out.dtype:
        return f"dtypes {a.dtype}, {b.dtype} and {out.dtype}: cublasLt multiplies arrays of one, {', '.join(DTYPES)}"
    if not math.prod(out.shape) or not a.shape[-1]:
        return "nothing to multiply"
    stack = out.shape[:-2]
    steps = [_batch_steps(each, stack) for each in (a, b, out)]
    sizes, by_axis = joined_axes(stack, steps)
    if len(sizes) > 1:
        return _APART
    batch, aparts = (sizes[0], by_axis[0]) if sizes[0] > 1 else (1, (0, 0, 0))
    results = [_matrices(each, apart) for each, apart in zip((a, b, out), aparts)]
    left, right, into = results
    if left is None or right is None or into is None or into.by_columns:
        return "neither rows nor columns of an array are contiguous"
    if batch > 1 and (into.apart < into.rows * into.step or min(left.apart, right.apart) < 0):
        return "matrices overlap"
    alignments = tuple([0 if each is None else math.gcd(address_of(each), _ALIGNED) for each in (a, b, out, bias)])
    return Product(out.dtype.name, batch, left, right, into, alignments, add, epilogue,  # type: ignore[arg-type]
                   tf32 and out.dtype == np.float32)


def _batch_steps(array: Array, stack: tuple[int, ...]) -> list[int]:
    """The strides of an array, in bytes, along the axes of its stack of matrices; zero where it broadcasts."""
    missing = len(stack) - (array.ndim - 2)
    return [0] * missing + [0 if size == 1 else step for size, step in zip(array.shape[:-2], array.strides)]


def _matrices(array: Array, apart: int) -> Matrices | None:
    """The layout of the last two axes; None if the library would need a copy."""
    size = array.itemsize
    (rows, columns), (down, along) = array.shape[-2:], array.strides[-2:]
    if apart % size:
        return None
    by_rows, by_columns = along == size or columns == 1, down == size or rows == 1
    # The stride of a single row or column has no meaning, but the library requires one that is long enough.
    down, along = max(down, columns * size) if rows == 1 else down, max(along, rows * size) if columns == 1 else along
    if by_rows and down % size == 0 and down >= columns * size:
        return Matrices(rows, columns, False, down // size, apart // size)
    if by_columns and along % size == 0 and along >= rows * size:
        return Matrices(rows, columns, True, along // size, apart // size)
    return None


# ------------------------------------------------------------------------------------- descriptors of the library


class _Descriptors:
    """The library's descriptors of a product: one of the operation, and one for the layout of each factor and of the
    result."""

    __slots__ = ("matmul", "layouts")

    def __init__(self, library: Library, product: Product, bias: int):
        stored, compute, scale = DTYPES[product.dtype]
        self.matmul = Descriptor(library, "MatmulDesc", ComputeType.COMPUTE_32F_FAST_TF32 if product.tf32 else compute,
                                 scale)
        for attribute, factor in ((DescriptorAttribute.TRANSA, product.right),
                                  (DescriptorAttribute.TRANSB, product.left)):
            self.matmul.set(attribute, ctypes.c_int32(Operation.T if factor.by_columns else Operation.N))
        self.matmul.set(DescriptorAttribute.EPILOGUE, ctypes.c_uint32(product.epilogue))
        if bias:
            self.matmul.set(DescriptorAttribute.BIAS_POINTER, ctypes.c_void_p(bias))
        self.layouts = []
        for matrix in (product.right, product.left, product.out):
            rows, columns = (matrix.rows, matrix.columns) if matrix.by_columns else (matrix.columns, matrix.rows)
            layout = Descriptor(library, "MatrixLayout", stored, rows, columns, matrix.step)
            if product.batch > 1:
                layout.set(LayoutAttribute.BATCH_COUNT, ctypes.c_int32(product.batch))
                layout.set(LayoutAttribute.STRIDED_BATCH_OFFSET, ctypes.c_int64(matrix.apart))
            self.layouts.append(layout)


@cached(1024)
def _describe(library: Library, product: Product) -> _Descriptors:
    """The descriptors of a product without a bias, cached for products that are not part of a plan."""
    return _Descriptors(library, product, 0)


class ChosenAlgorithm(NamedTuple):
    """The algorithm for a kind of product, and the size of its workspace in bytes."""

    algorithm: Algorithm
    workspace: int


@cached(1024)
def choose(library: Library, device: int, product: Product) -> ChosenAlgorithm | str:
    """The library's preferred algorithm for a kind of product, or the reason why it has none."""
    left, right, out, bias = product.alignments
    described = _Descriptors(library, product, bias)  # the alignment of the bias takes the place of its address
    preference = Descriptor(library, "MatmulPreference")
    preference.set(PreferenceAttribute.MAX_WORKSPACE_BYTES, ctypes.c_uint64(_WORKSPACE))
    for name, alignment in zip("ABCD", (right, left, out, out)):
        preference.set(PreferenceAttribute[f"MIN_ALIGNMENT_{name}_BYTES"], ctypes.c_uint32(alignment))
    best, count = Heuristic(), ctypes.c_int()
    first, second, result = [layout.value for layout in described.layouts]
    status = library.functions["cublasLtMatmulAlgoGetHeuristic"](
        library.handle(device), described.matmul.value, first, second, result, result, preference.value, 1,
        ctypes.byref(best), ctypes.byref(count))
    if status or not count.value or best.state:
        return answer("cublasLtMatmulAlgoGetHeuristic", status or best.state or Status.NOT_SUPPORTED)
    return ChosenAlgorithm(best.algo, best.workspaceSize)


class Multiply(PlainStep):
    """One product, or a batch of them, with its arrays, to which it holds references.

    Parameters
    ----------
    xp : module
        The array module.
    device : int
        The index of the current device.
    title : str
        The node's name, for error messages.
    product : Product
    chosen : ChosenAlgorithm
    arrays : tuple of arrays
        The two factors and the output.
    scratch : function of shape and dtype
        Gives memory for the workspace.
    scale : float
        The factor by which the product is multiplied.
    bias : array or None
        The array that the epilogue reads or writes.
    described : optional
        The library's descriptors, if there are some already.
    """

    __slots__ = ("call", "stream", "title", "held", "read", "written", "arguments", "function")
    capturable = True

    def __init__(self, xp: ArrayModule, device: int, title: str, product: Product, chosen: ChosenAlgorithm,
                 arrays: tuple[Array, Array, Array], scratch: Callable[..., Array], scale: float,
                 bias: Array | None, described: _Descriptors | None = None):
        found = library(xp)
        assert isinstance(found, Library)
        if described is None:
            described = _Descriptors(found, product, 0 if bias is None else address_of(bias))
        number = ctypes.c_double if DTYPES[product.dtype][2] is DataType.R_64F else ctypes.c_float
        a, b, out = map(address_of, arrays)
        first, second, result = [layout.value for layout in described.layouts]
        workspace, place = None, None
        if chosen.workspace:
            workspace = scratch((chosen.workspace + _ALIGNED,), np.uint8)
            place = -(-address_of(workspace) // _ALIGNED) * _ALIGNED
        arguments: list[Any] = [
            found.handle(device), described.matmul.value, ctypes.byref(number(scale)), b, first, a, second,
            ctypes.byref(number(product.add)), out, result, out, result, ctypes.byref(chosen.algorithm), place,
            chosen.workspace]
        function = found.functions["cublasLtMatmul"]
        self.call = lambda stream: function(*arguments, stream)
        self.arguments, self.function = arguments, function
        self.stream, self.title = xp.cuda.get_current_stream, f"{title}: {product}"
        self.held = described, arrays, bias, workspace
        left, right, into = map(own_bytes, arrays)
        bias_bytes = 0 if bias is None else own_bytes(bias)
        summed = product.epilogue is Epilogue.BGRADB  # writes the bias's gradient; other epilogues read a bias
        self.read = left + right + into * product.add + bias_bytes * (not summed)
        self.written = into + bias_bytes * summed

    def __call__(self) -> None:
        self._check(self.call(self.stream().ptr))

    def _check(self, status: int) -> None:
        if status:
            raise OpError(f"{self.title}: {answer('cublasLtMatmul', status)}")

    def work(self, arrays: Sequence[Array]) -> Work:
        """The product of other arrays; the address of a bias is stored in the library's descriptor."""
        described, operands, bias, workspace = self.held
        a, b, out, scratch, added = [None if array is None else index_at(arrays, array)
                                     for array in (*operands, workspace, bias)]
        moved = [(i, number) for i, number in ((3, b), (5, a), (8, out), (10, out)) if number is not None]
        constants, function, stream, check = self.arguments, self.function, self.stream, self._check
        held = described, [operand for operand, number in zip(operands, (a, b, out)) if number is None]
        using = lock()

        def multiply(others: Sequence[Array]) -> None:
            arguments = constants.copy()
            for i, number in moved:
                arguments[i] = address_of(others[number])
            if scratch is not None:
                arguments[13] = -(-address_of(others[scratch]) // _ALIGNED) * _ALIGNED
            if added is None:
                check(function(*arguments, stream().ptr))
                return
            with using:
                held[0].matmul.set(DescriptorAttribute.BIAS_POINTER, ctypes.c_void_p(address_of(others[added])))
                check(function(*arguments, stream().ptr))

        return multiply


def multiply(xp: ArrayModule, a: Array, b: Array, out: Array | None = None) -> Array:
    """``xp.matmul(a, b, out=out)`` by cublasLt, which a graph may hold; by the array module if the library has no
    algorithm for it.

    Vectors are matrices of one row or column, as there.
    """
    left, right = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*stack, left.shape[-2], right.shape[-1])
    if out is not None:
        into = out.reshape(shape) if a.ndim == 1 or b.ndim == 1 else out
    else:
        into = xp.empty(shape, dtype=a.dtype)
    if into.shape != shape or not _multiply_by_library(xp, left, right, into):
        return xp.matmul(a, b, out=out)
    return into.reshape((*stack, *shape[-2:-1] * (a.ndim > 1), *shape[-1:] * (b.ndim > 1))) if out is None else out


def _multiply_by_library(xp: ArrayModule, a: Array, b: Array, out: Array) -> bool:
    """Write a product and return True, if the library has an algorithm for it. A small stack whose matrices do not lie
    at equal distances is multiplied matrix by matrix."""
    found, device = library(xp), xp.cuda.Device().id
    product = describe(a, b, out, tf32=tf32())
    if product == _APART and out.shape[0] <= _PARTS:
        return all(_multiply_by_library(xp, _part(a, i, out.ndim), _part(b, i, out.ndim), out[i])
                   for i in range(out.shape[0]))
    if isinstance(found, str) or isinstance(product, str):
        return False
    chosen = choose(found, device, product)
    if isinstance(chosen, str):
        return False
    Multiply(xp, device, "matmul", product, chosen, (a, b, out), xp.empty, 1.0, None, _describe(found, product))()
    return True


def _part(array: Array, i: int, rank: int) -> Array:
    """A part of a stack of this rank, in which a smaller array repeats."""
    return array if array.ndim < rank else array[i if array.shape[0] > 1 else 0]
