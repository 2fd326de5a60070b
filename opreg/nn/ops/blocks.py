"""Diagonals of matrices as rows and the other way round, and blocks of images as samples of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import TensorLike
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from .array import pad, reshape
from .lift import like, tensor
from .math import where
from .primitive import adder

__all__ = ["batch_to_space_nd", "matrix_diag", "matrix_diag_part", "matrix_set_diag", "padding", "space_to_batch_nd"]

_add = adder(globals(), __all__)

_ALIGNED = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


# ------------------------------------------------------------------------------------------- diagonals


def _offsets(name: str, k: TensorLike) -> tuple[int, int]:
    """The lowest and the highest of the diagonals that ``k``, one number or two, stands for."""
    numbers = np.atleast_1d(tensor(k).asnumpy())
    if numbers.dtype.kind not in "iu" or numbers.shape not in ((1,), (2,)) or numbers[0] > numbers[-1]:
        raise ArgumentError(f"{name}: k must be an int, or two in ascending order, got {numbers.tolist()}")
    return int(numbers[0]), int(numbers[-1])


def _diagonal_indices(name: str, rows: int, columns: int, low: int, high: int, align: str) -> np.ndarray:
    """For each diagonal, highest first, and each place in it: the index of the element in the flat matrix, or -1."""
    if align not in _ALIGNED:
        raise ArgumentError(f"{name}: align must be one of {', '.join(_ALIGNED)}, got {align!r}")
    if not (-rows < low and high < columns) and rows and columns:
        raise ArgumentError(f"{name}: k from {low} to {high} is beyond a matrix of {rows} rows and {columns} columns")
    above, below = align.split("_")
    found = [[(i, i + k) for i in range(rows) if 0 <= i + k < columns] for k in range(high, low - 1, -1)]
    longest = max(map(len, found))
    table = np.full((len(found), longest), -1, np.int64)
    for line, diagonal, k in zip(table, found, range(high, low - 1, -1)):
        first = longest - len(diagonal) if (above if k >= 0 else below) == "RIGHT" else 0
        line[first:first + len(diagonal)] = [i * columns + j for i, j in diagonal]
    return table


def _take_or_pad(flat: Tensor, table: np.ndarray, padding: TensorLike) -> Tensor:
    """Elements of the last axis by indices, and ``padding`` in place of those that are -1."""
    values = ops.take(flat, tensor(np.maximum(table, 0).reshape(-1)), axis=-1)
    values = values.reshape((*flat.shape[:-1], *table.shape))
    return where(tensor(table >= 0), values, like(padding, flat)) if (table < 0).any() else values


def matrix_diag_part(x: TensorLike, k: TensorLike, padding_value: TensorLike, align: str = "RIGHT_LEFT") -> Tensor:
    """Diagonals of matrices.

    Parameters
    ----------
    x : Tensor
        Matrices of shape :math:`(.., M, N)`.
    k : int or Tensor
        The diagonal, 0 for the main one and above 0 above it; or the lowest and the highest of several.
    padding_value : number or Tensor
        Number that fills up diagonals that are shorter than the longest.
    align : {"RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"}
        The end to which short diagonals are moved: those above the main one, and those below.

    Returns
    -------
    Tensor
        A tensor of shape :math:`(.., L)`, of several diagonals :math:`(.., D, L)`, the highest first.

    Examples
    --------
    >>> print(matrix_diag_part(tensor([[1.0, 2.0], [3.0, 4.0]]), 0, 0))
    [1. 4.]
    """
    matrices, (low, high) = tensor(x), _offsets("matrix_diag_part", k)
    if matrices.ndim < 2:
        raise ShapeError(f"matrix_diag_part: expected matrices, got shape {show(matrices.shape)}")
    *stack, rows, columns = matrices.shape
    table = _diagonal_indices("matrix_diag_part", rows, columns, low, high, align)
    flat = reshape(matrices, (*stack, rows * columns))
    return _take_or_pad(flat, table if low < high else table[0], padding_value)


def matrix_diag(x: TensorLike, k: TensorLike = 0, num_rows: int | Tensor = -1, num_cols: int | Tensor = -1,
                padding_value: TensorLike = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with given diagonals, and ``padding_value`` elsewhere.

    Parameters
    ----------
    x : Tensor
        Diagonals as ``matrix_diag_part`` returns them.
    k, align
        See ``matrix_diag_part``.
    num_rows, num_cols : int or Tensor
        The shape of the matrices; by default as small as the diagonals allow, and square.

    Examples
    --------
    >>> print(matrix_diag(tensor([1.0, 2.0])))
    [[1. 0.]
     [0. 2.]]
    """
    lines, (low, high) = tensor(x), _offsets("matrix_diag", k)
    if lines.ndim < 1 + (low < high):
        raise ShapeError(f"matrix_diag: expected {1 + (low < high)} axes at least, got shape {show(lines.shape)}")
    longest = lines.shape[-1]
    rows, columns = int(num_rows), int(num_cols)
    least = longest - min(high, 0), longest + max(low, 0)
    if rows < 0 and columns < 0:
        rows = columns = max(least)
    rows, columns = least[0] if rows < 0 else rows, least[1] if columns < 0 else columns
    return _place_diagonals("matrix_diag", lines, rows, columns, low, high, align, like(padding_value, lines))


def _place_diagonals(name: str, lines: Tensor, rows: int, columns: int, low: int, high: int, align: str,
                     rest: Tensor) -> Tensor:
    """Diagonals at their places in matrices, and ``rest`` at the others."""
    table = _diagonal_indices(name, rows, columns, low, high, align)
    stack = lines.shape[:-2] if low < high else lines.shape[:-1]
    if lines.shape[len(stack):] != (table.shape if low < high else table.shape[1:]):
        raise ShapeError(f"{name}: expected diagonals of shape {show(table.shape if low < high else table.shape[1:])}, "
                         f"got {show(lines.shape)}")
    sources = np.full(rows * columns, -1, np.int64)
    sources[table[table >= 0]] = np.flatnonzero(table >= 0)
    return _take_or_pad(reshape(lines, (*stack, table.size)), sources.reshape(rows, columns), rest)


def matrix_set_diag(x: TensorLike, diagonal: TensorLike, k: TensorLike = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with other elements on some diagonals; see ``matrix_diag_part``.

    Examples
    --------
    >>> print(matrix_set_diag(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([8.0, 9.0])))
    [[8. 2.]
     [3. 9.]]
    """
    matrices, (low, high) = tensor(x), _offsets("matrix_set_diag", k)
    if matrices.ndim < 2:
        raise ShapeError(f"matrix_set_diag: expected matrices, got shape {show(matrices.shape)}")
    rows, columns = matrices.shape[-2:]
    return _place_diagonals("matrix_set_diag", like(diagonal, matrices), rows, columns, low, high, align, matrices)


def _diag(x: TensorLike, k: TensorLike, num_rows: int | Tensor, num_cols: int | Tensor, padding_value: TensorLike, *,
          align: str) -> Tensor:
    return matrix_diag(x, k, num_rows, num_cols, padding_value, align)


def _set_diag(x: TensorLike, diagonal: TensorLike, k: TensorLike, *, align: str) -> Tensor:
    return matrix_set_diag(x, diagonal, k, align)


_add("MatrixDiagV3", _diag, {"align": "RIGHT_LEFT"})
_add("MatrixDiagPartV3", matrix_diag_part, {"align": "RIGHT_LEFT"})
_add("MatrixSetDiagV3", _set_diag, {"align": "RIGHT_LEFT"})


# ---------------------------------------------------------------------------------------------- blocks


def _pairs(name: str, what: str, block: int | Sequence[int], ends: Sequence[Sequence[int]]
           ) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    """The lengths of a block, and a pair of numbers for each of its axes."""
    sizes = (block,) * len(ends) if isinstance(block, int) else tuple(int(size) for size in block)
    pairs = [(int(begin), int(end)) for begin, end in ends]
    if len(sizes) != len(pairs) or any(size < 1 for size in sizes) or any(min(pair) < 0 for pair in pairs):
        raise ArgumentError(f"{name}: expected lengths of at least 1 and two numbers of at least 0 for each, got block "
                            f"{sizes} and {what} {[list(pair) for pair in pairs]}")
    return sizes, pairs


def space_to_batch_nd(input_x: TensorLike, block_size: int | Sequence[int], paddings: Sequence[Sequence[int]]
                      ) -> Tensor:
    """Elements at the same place in each block of the last axes, as samples of a larger batch.

    Parameters
    ----------
    input_x : Tensor
        A tensor of shape :math:`(N, C, H, W)`, or with another number of axes after C.
    block_size : int or sequence of int
        Length of a block in each of the last axes.
    paddings : sequence of pairs of int
        Zeros added before and after each of these axes, whose lengths the blocks then divide.

    Examples
    --------
    >>> space_to_batch_nd(tensor(np.zeros((1, 3, 4, 6))), 2, [[0, 0], [0, 0]]).shape
    (4, 3, 2, 3)
    """
    x = tensor(input_x)
    sizes, pairs = _pairs("space_to_batch_nd", "paddings", block_size, paddings)
    count = len(sizes)
    if x.ndim <= count:
        raise ShapeError(f"space_to_batch_nd: expected more than {count} axes, got shape {show(x.shape)}")
    if any(map(any, pairs)):
        x = pad(x, [n for pair in reversed(pairs) for n in pair])
    first, last = x.shape[:x.ndim - count], x.shape[x.ndim - count:]
    if any(length % size for length, size in zip(last, sizes)):
        raise ShapeError(f"space_to_batch_nd: blocks of {sizes} do not divide the padded axes {show(last)}")
    split = [n for length, size in zip(last, sizes) for n in (length // size, size)]
    at = len(first)
    order = (*range(at + 1, at + 2 * count, 2), *range(at), *range(at, at + 2 * count, 2))
    shape = (first[0] * math.prod(sizes), *first[1:], *split[::2])
    return x.reshape((*first, *split)).transpose(order).reshape(shape)


def batch_to_space_nd(input_x: TensorLike, block_shape: int | Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
    """Samples of a batch as elements at the same place in each block of the last axes: the inverse of
    ``space_to_batch_nd``.

    Parameters
    ----------
    input_x : Tensor
        A tensor of shape :math:`(N, C, H, W)`, or with another number of axes after C.
    block_shape : int or sequence of int
        Length of a block in each of the last axes; their product divides N.
    crops : sequence of pairs of int
        Elements cut off at the begin and at the end of each of these axes.
    """
    x = tensor(input_x)
    sizes, pairs = _pairs("batch_to_space_nd", "crops", block_shape, crops)
    count, block = len(sizes), math.prod(sizes)
    if x.ndim <= count or x.shape[0] % block:
        raise ShapeError(f"batch_to_space_nd: expected more than {count} axes and a batch that {block} divides, got "
                         f"shape {show(x.shape)}")
    batch, middle, last = x.shape[0] // block, x.shape[1:x.ndim - count], x.shape[x.ndim - count:]
    at = count + 1 + len(middle)
    order = (*range(count, at), *[axis for i in range(count) for axis in (at + i, i)])
    long = tuple(length * size for length, size in zip(last, sizes))
    x = x.reshape((*sizes, batch, *middle, *last)).transpose(order).reshape((batch, *middle, *long))
    for axis, ((begin, end), length) in enumerate(zip(pairs, long), 1 + len(middle)):
        if begin + end > length:
            raise ShapeError(f"batch_to_space_nd: crops {begin} and {end} are longer than the axis of {length}")
        if begin or end:
            x = ops.slice_axis(x, axis=axis, begin=begin, end=length - end)
    return x


def padding(x: TensorLike, pad_dim_size: int = 8) -> Tensor:
    """The last axis, which has length one, filled up with zeros to a length."""
    x = tensor(x)
    if x.ndim < 2 or x.shape[-1] != 1:
        raise ShapeError(f"padding: expected at least two axes, the last of length 1, got shape {show(x.shape)}")
    if pad_dim_size < 1:
        raise ArgumentError(f"padding: pad_dim_size must be at least 1, got {pad_dim_size}")
    return pad(x, (0, pad_dim_size - 1))


_add("SpaceToBatchND", lambda x, *, block_shape, paddings: space_to_batch_nd(x, block_shape, paddings),
     {"block_shape": ..., "paddings": ...})
_add("BatchToSpaceND", lambda x, *, block_shape, crops: batch_to_space_nd(x, block_shape, crops),
     {"block_shape": ..., "crops": ...})
_add("SpaceToBatch", lambda x, *, block_size, paddings: space_to_batch_nd(x, block_size, paddings),
     {"block_size": ..., "paddings": ...})
_add("BatchToSpace", lambda x, *, block_size, crops: batch_to_space_nd(x, block_size, crops),
     {"block_size": ..., "crops": ...})
_add("Padding", padding, {"pad_dim_size": 8})
