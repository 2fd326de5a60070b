"""How kernels run through the memory of their arrays: what they read as packs, as one number, or by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from opreg.core.addresses import address_of
from opreg.typing import Array

from ..addressing import bounds_of, joined_axes, overlap

__all__ = ["Arrangement", "Layout", "Operand", "Reach", "arrange"]

# Beyond this many numbers an index has 64 bits; what a grid steps over is left free.
_NEAR = 1 << 30


class Reach(Enum):
    """How the elements of an array are found."""

    FIXED = "one number"
    FLAT = "side by side from the first to the last"
    PACKED = "by strides, side by side along the last axis"
    GATHERED = "by strides"


class Operand(NamedTuple):
    """An array as the text of a kernel knows it."""

    dtype: np.dtype
    reach: Reach
    written: bool
    shared: bool  # read and written: one memory for both


class Layout(NamedTuple):
    """Facts that the text of a kernel depends on beside its expression; the kernel reads sizes and strides when it
    runs.

    Attributes
    ----------
    ins, outs : tuple of int
        For each input and output the number of its operand; None for an output that nobody reads.
    operands : tuple of Operand
    axes : int
        Axes that are left when those are joined that all arrays run through as one; 1 where no array has strides.
    lanes : int
        Numbers that a thread computes side by side.
    far : bool
        Whether indices need 64 bits.
    """

    ins: tuple[int, ...]
    outs: tuple[int | None, ...]
    operands: tuple[Operand, ...]
    axes: int
    lanes: int
    far: bool


class Arrangement(NamedTuple):
    """Arrays and how they are run through: ``sizes`` of the axes, ``strides`` in numbers by operand and axis."""

    layout: Layout
    arrays: list[Array]
    sizes: list[int]
    strides: list[tuple[int, ...]]

    @property
    def total(self) -> int:
        """Number of elements that are computed."""
        return math.prod(self.sizes)


def arrange(ins: Sequence[Array], outs: Sequence[Array | None]) -> Arrangement | str:
    """How arrays that broadcast are run through by a kernel, or why they cannot be."""
    shape = next(out.shape for out in outs if out is not None)
    arrays: list[Array] = []
    steps: list[tuple[int, ...]] = []
    numbers: list[int | None] = []
    places: dict[tuple[int, tuple[int, ...], np.dtype], int] = {}
    for array in (*ins, *outs):
        if array is None:
            numbers.append(None)
            continue
        strides = _strides(array, shape)
        if strides is None:
            return f"strides of {array.strides} bytes"
        key = address_of(array), strides, array.dtype
        if key not in places:
            places[key] = len(arrays)
            arrays.append(array)
            steps.append(strides)
        numbers.append(places[key])
    written = set(numbers[len(ins):]) - {None}
    reads = set(numbers[:len(ins)])
    if any(stride == 0 and size > 1 for n in written if n is not None for stride, size in zip(steps[n], shape)):
        return "an output has numbers in one place"
    if overlap(map(bounds_of, arrays), written):
        return "an input overlaps an output"
    sizes, by_axis = joined_axes(shape, steps)
    by_array = list(zip(*by_axis))
    lanes = _lanes(arrays, sizes, by_array)
    operands = tuple([Operand(array.dtype, _reach(array, sizes, strides, lanes), n in written,
                              n in written and n in reads)
                      for n, (array, strides) in enumerate(zip(arrays, by_array))])
    if all(operand.reach in (Reach.FLAT, Reach.FIXED) for operand in operands):
        sizes, by_array = [math.prod(sizes)], [(1,)] * len(arrays)
    far = math.prod(sizes) >= _NEAR or any(_span(sizes, strides) >= _NEAR for strides in by_array)
    layout = Layout(tuple(numbers[:len(ins)]), tuple(numbers[len(ins):]),  # type: ignore[arg-type]
                    operands, len(sizes), lanes, far)
    return Arrangement(layout, arrays, sizes, by_array)


def _strides(array: Array, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Steps in elements along the axes of the shape that an array broadcasts to; None where they are not whole."""
    if any(stride % array.itemsize for stride in array.strides):
        return None
    before = len(shape) - array.ndim
    return (0,) * before + tuple([0 if have == 1 else stride // array.itemsize
                                  for have, stride in zip(array.shape, array.strides)])


def _span(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """How far from its first number an array reaches."""
    return sum((size - 1) * abs(stride) for size, stride in zip(sizes, strides))


def _flat(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if stride != expected:
            return False
        expected *= size
    return True


def _lanes(arrays: Sequence[Array], sizes: Sequence[int], strides: Sequence[tuple[int, ...]]) -> int:
    """Numbers of the smallest dtype in a pack of 16 bytes, where flat arrays begin at one and rows end at one; else
    1."""
    lanes = 16 // min(array.itemsize for array in arrays)
    flat = [array for array, steps in zip(arrays, strides) if _flat(sizes, steps)]
    if any(address_of(array) % min(16, lanes * array.itemsize) for array in flat):
        return 1
    alone = all(_flat(sizes, steps) or not any(steps) for steps in strides)
    return lanes if alone or sizes[-1] % lanes == 0 else 1


def _reach(array: Array, sizes: Sequence[int], strides: Sequence[int], lanes: int) -> Reach:
    if _flat(sizes, strides):
        return Reach.FLAT
    if not any(strides):
        return Reach.FIXED
    aligned = address_of(array) % min(16, lanes * array.itemsize) == 0
    packed = strides[-1] == 1 and aligned and not any(step % lanes for step in strides[:-1])
    return Reach.PACKED if packed else Reach.GATHERED
