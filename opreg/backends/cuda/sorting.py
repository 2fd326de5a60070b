"""A stable sort of small integers on the device: by eight bits a pass, from the lowest.

A block has a tile of the keys, and each of its 256 threads one value of the eight bits. So a pass needs no atomics, and
keys that are equal stay in order. Nothing waits for the device, so a graph may hold it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opreg.core.spec import Shape
from opreg.typing import Array, ArrayModule

from .compiler import Launch, grid_of, kernel_of

__all__ = ["DEAL", "OFFSETS", "TALLY", "bound_sort"]

# The threads of a block, one for each value of the bits; the keys of a tile; the threads that add up.
_BLOCK, _TILE, _ADDING = 256, 1024, 1024

_TILES = f"""
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
        const unsigned begin = tile * {_TILE}u, size = count - begin < {_TILE}u ? count - begin : {_TILE}u;
        for (unsigned i = threadIdx.x; i < size; i += {_BLOCK}u) own[i] = keys[begin + i];
        __syncthreads();"""

#: The text of the kernel ``tally``, which counts for each value of the bits its keys in each tile.
TALLY = f"""extern "C" __global__ void __launch_bounds__({_BLOCK}) tally(
    const unsigned* keys, unsigned* counts, unsigned count, unsigned tiles, unsigned shift) {{
    __shared__ unsigned own[{_TILE}];{_TILES}
        unsigned found = 0;
        for (unsigned i = 0; i < size; ++i) found += (own[i] >> shift & 255u) == threadIdx.x;
        counts[threadIdx.x * tiles + tile] = found;
        __syncthreads();
    }}
}}
"""

#: The text of the kernel ``offsets``, in which one block replaces counts by the sums of all before them.
OFFSETS = f"""extern "C" __global__ void __launch_bounds__({_ADDING}) offsets(unsigned* counts, unsigned total) {{
    __shared__ unsigned sums[{_ADDING}];
    const unsigned part = (total + {_ADDING - 1}u) / {_ADDING}u, begin = threadIdx.x * part;
    const unsigned end = begin + part < total ? begin + part : total;
    unsigned sum = 0;
    for (unsigned i = begin; i < end; ++i) sum += counts[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned distance = 1; distance < {_ADDING}u; distance *= 2) {{
        const unsigned before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0u;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }}
    unsigned offset = sums[threadIdx.x] - sum;
    for (unsigned i = begin; i < end; ++i) {{
        const unsigned own = counts[i];
        counts[i] = offset;
        offset += own;
    }}
}}
"""

#: The text of the kernel ``deal``, which moves keys and their original positions to the sorted positions.
DEAL = f"""extern "C" __global__ void __launch_bounds__({_BLOCK}) deal(
    const unsigned* keys, const unsigned* places, const unsigned* counts, unsigned* to_keys, unsigned* to_places,
    unsigned count, unsigned tiles, unsigned shift) {{
    __shared__ unsigned own[{_TILE}];{_TILES}
        unsigned offset = counts[threadIdx.x * tiles + tile];
        for (unsigned i = 0; i < size; ++i) {{
            if ((own[i] >> shift & 255u) != threadIdx.x) continue;
            to_keys[offset] = own[i];
            to_places[offset++] = shift ? places[begin + i] : begin + i;
        }}
        __syncthreads();
    }}
}}
"""


def bound_sort(xp: ArrayModule, keys: Array, largest: int, scratch: Callable[[int, Shape, np.dtype], Array]
               ) -> tuple[list[Launch], Array, Array]:
    """Steps without arguments that sort keys, the sorted keys, and their original positions.

    Parameters
    ----------
    xp : module
    keys : array
        uint32, fewer than 2^31, which are written over.
    largest : int
        The largest possible key.
    scratch : function of number, shape and dtype
        Gives memory for the numbers 0 to 3.
    """
    count, tiles = keys.size, -(-keys.size // _TILE)
    word = np.dtype(np.uint32)
    counts = scratch(0, (_BLOCK * tiles,), word)
    others, *places = [scratch(1 + i, (count,), word) for i in range(3)]
    blocks = grid_of(xp, tiles * _BLOCK, _BLOCK)
    tally, offsets, deal = [kernel_of(xp, text, name, "sort")
                            for text, name in ((TALLY, "tally"), (OFFSETS, "offsets"), (DEAL, "deal"))]
    sizes = np.uint32(count), np.uint32(tiles)
    all_keys, all_counts = 4 * count, 4 * _BLOCK * tiles
    steps = []
    for shift in range(0, max(1, largest.bit_length()), 8):
        steps += [Launch(tally, blocks, _BLOCK, [keys, counts, *sizes, np.uint32(shift)], all_keys, all_counts),
                  Launch(offsets, 1, _ADDING, [counts, np.uint32(_BLOCK * tiles)], 2 * all_counts, all_counts),
                  Launch(deal, blocks, _BLOCK, [keys, places[0], counts, others, places[1], *sizes, np.uint32(shift)],
                         all_keys * (2 if shift else 1) + all_counts, 2 * all_keys)]
        keys, others = others, keys
        places.reverse()
    return steps, keys, places[0]
