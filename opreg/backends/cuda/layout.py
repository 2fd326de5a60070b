"""How kernels access the memory of their arrays: in packs, as a single element, or by strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from opreg.core.addresses import address_of
from opreg.typing import Array

from ..addressing import joined_axes, operands_of

__all__ = ["DRAW", "Arrangement", "Layout", "Operand", "Reach", "arrange"]

# From this number of elements on, indices have 64 bits; it leaves room for an index one step beyond the end.
_NEAR = 1 << 30
#: The dtype of draws.
DRAW = np.dtype(np.uint64)


class Reach(Enum):
    """How the elements of an array are accessed."""

    FIXED = "one number"
    FLAT = "side by side from the first to the last"
    PACKED = "by strides, side by side along the last axis"
    GATHERED = "by strides"
    DRAWN = "not at all: it is a draw, from which the number of each element follows"


class Operand(NamedTuple):
    """The properties of an array that the text of a kernel depends on."""

    dtype: np.dtype
    reach: Reach
    written: bool
    shared: bool  # an operand that is read and written has one memory


class Layout(NamedTuple):
    """Properties that the text of a kernel depends on besides its expression; sizes and strides are parameters of the
    kernel.

    Attributes
    ----------
    ins, outs : tuple of int
        For each input and output, the index of its operand; None for an output that is not read.
    operands : tuple of Operand
    axes : int
        The number of axes after neighbouring ones are joined where all strides allow it; 1 if no array needs strides.
    lanes : int
        The number of neighbouring elements that a thread computes at a time.
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
    """Arrays with the ``sizes`` of the axes, and the ``strides`` in elements by operand and axis."""

    layout: Layout
    arrays: list[Array]
    sizes: list[int]
    strides: list[tuple[int, ...]]

    @property
    def total(self) -> int:
        """The number of elements that are computed."""
        return math.prod(self.sizes)


def arrange(ins: Sequence[Array], outs: Sequence[Array | None]) -> Arrangement | str:
    """How a kernel accesses arrays that broadcast, or the reason why it cannot. Arrays of uint64 are draws, which have
    one for all elements; see ``opreg.elementwise.counting``."""
    result = operands_of([array[:1] if array.dtype == DRAW else array for array in ins], outs)
    if isinstance(result, str):
        return result
    whole = {n: array for n, array in zip(result.ins, ins) if array.dtype == DRAW}
    arrays = [whole.get(n, array) for n, array in enumerate(result.arrays)]
    shape = next(out.shape for out in outs if out is not None)
    written, reads = set(result.outs) - {None}, set(result.ins)
    if any(stride == 0 and size > 1 for n in written if n is not None for stride, size in zip(result.steps[n], shape)):
        return "an output has several elements at one address"
    sizes, by_axis = joined_axes(shape, result.steps)
    by_array = list(zip(*by_axis))
    lanes = _lanes(arrays, sizes, by_array)
    operands = tuple([Operand(array.dtype, Reach.DRAWN if n in whole else _reach(array, sizes, strides, lanes),
                              n in written, n in written and n in reads)
                      for n, (array, strides) in enumerate(zip(arrays, by_array))])
    if all(operand.reach in (Reach.FLAT, Reach.FIXED, Reach.DRAWN) for operand in operands):
        sizes, by_array = [math.prod(sizes)], [(1,)] * len(arrays)
    far = math.prod(sizes) >= _NEAR or any(_span(sizes, strides) >= _NEAR for strides in by_array)
    layout = Layout(result.ins, result.outs, operands, len(sizes), lanes, far)
    return Arrangement(layout, arrays, sizes, by_array)


def _span(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """The distance from the first element of an array to the farthest one, in elements."""
    return sum((size - 1) * abs(stride) for size, stride in zip(sizes, strides))


def _flat(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if stride != expected:
            return False
        expected *= size
    return True


def _lanes(arrays: Sequence[Array], sizes: Sequence[int], strides: Sequence[tuple[int, ...]]) -> int:
    """The number of elements of the smallest dtype in a pack of 16 bytes; 1 unless flat arrays are aligned to packs and
    rows consist of whole packs."""
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
