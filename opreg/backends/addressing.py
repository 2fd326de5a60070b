"""Extents and strides of arrays, for libraries and compiled functions that take addresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from opreg.core.addresses import address_of
from opreg.core.spec import Shape
from opreg.typing import Array

__all__ = ["Operands", "bounds_of", "joined_axes", "operands_of", "overlap"]


def bounds_of(array: Array, first: int | None = None) -> tuple[int, int]:
    """The first address of an array's memory, and the address after its last byte. With ``first``, the addresses as if
    the first element had this address.

    Examples
    --------
    >>> import numpy as np
    >>> bounds_of(np.zeros((2, 3))[:, :2], 100), bounds_of(np.zeros((2, 3))[::-1], 100)
    ((100, 140), (76, 124))
    """
    if first is None:
        first = address_of(array)
    if array.flags.c_contiguous:
        return first, first + array.nbytes
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides)]
    return (first + sum(step for step in steps if step < 0),
            first + sum(step for step in steps if step > 0) + array.itemsize)


def overlap(bounds: Iterable[tuple[int, int]], written: set[int | None]) -> bool:
    """Whether a written array overlaps another in memory; ``written`` holds the indices of written arrays.

    Examples
    --------
    >>> overlap([(0, 8), (4, 12), (12, 16)], {2}), overlap([(0, 8), (4, 12), (12, 16)], {1})
    (False, True)
    """
    end = written_end = -1  # the ends of all arrays so far, and of the written ones
    for (first, last), number in sorted([(bound, number) for number, bound in enumerate(bounds)]):
        if first < (end if number in written else written_end):
            return True
        end = max(end, last)
        if number in written:
            written_end = max(written_end, last)
    return False


class Operands(NamedTuple):
    """The different arrays among inputs and outputs that broadcast together.

    Attributes
    ----------
    arrays : list of arrays
        An output that uses an input's memory is the same array.
    steps : list of tuple of int
        For each array, its strides in elements along the axes of the outputs.
    ins, outs : tuple of int
        For each input and output, the index of its array; None for an output that is not read.
    """

    arrays: list[Array]
    steps: list[tuple[int, ...]]
    ins: tuple[int, ...]
    outs: tuple[int | None, ...]


def operands_of(ins: Sequence[Array], outs: Sequence[Array | None]) -> Operands | str:
    """The operands of a function of arrays, or the reason why compiled code cannot access them.

    Examples
    --------
    >>> x, y = np.zeros((2, 3)), np.zeros((1, 3))
    >>> found = operands_of([x, y, y], [x])
    >>> found.steps, found.ins, found.outs
    ([(3, 1), (0, 1)], (0, 1, 1), (0,))
    """
    shape = next(out.shape for out in outs if out is not None)
    arrays: list[Array] = []
    steps: list[tuple[int, ...]] = []
    places: dict[tuple[int, tuple[int, ...], np.dtype], int] = {}
    numbers: list[int | None] = []
    for array in (*ins, *outs):
        if array is None:
            numbers.append(None)
            continue
        if any(stride % array.itemsize for stride in array.strides):
            return "an array is not aligned"
        step = (0,) * (len(shape) - array.ndim) + tuple([0 if have == 1 else stride // array.itemsize for have, stride
                                                         in zip(array.shape, array.strides)])
        key = address_of(array), step, array.dtype
        if key not in places:
            places[key] = len(arrays)
            arrays.append(array)
            steps.append(step)
        numbers.append(places[key])
    if overlap(map(bounds_of, arrays), set(numbers[len(ins):])):
        return "an input overlaps an output"
    return Operands(arrays, steps, tuple(numbers[:len(ins)]), tuple(numbers[len(ins):]))  # type: ignore[arg-type]


def joined_axes(shape: Shape, steps: Sequence[Sequence[int]]) -> tuple[list[int], list[tuple[int, ...]]]:
    """The sizes of axes, outermost first, without axes of one element and with neighbouring axes joined where the
    strides of all arrays allow it; and for each axis the stride of every array.

    Examples
    --------
    >>> joined_axes((5, 4, 32), [(128, 32, 1), (128, 32, 1)]), joined_axes((5, 4, 32), [(128, 32, 1), (1, 0, 0)])
    (([640], [(1, 1)]), ([5, 128], [(128, 1), (1, 0)]))
    """
    sizes: list[int] = []
    strides: list[tuple[int, ...]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        along = tuple([step[axis] for step in steps])
        if sizes and all(outer == size * step for outer, step in zip(strides[-1], along)):
            sizes[-1] *= size
            strides[-1] = along
        else:
            sizes.append(size)
            strides.append(along)
    return sizes or [1], strides or [(1,) * len(steps)]
