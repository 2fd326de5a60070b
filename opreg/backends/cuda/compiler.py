"""Kernels from their text, and launches of them.

The array module compiles (CuPy with NVRTC) and keeps what was compiled in its own cache of files. Nothing here needs a
GPU before a kernel is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opreg.core.cache import cached
from opreg.core.launch import Call
from opreg.core.steps import PlainStep
from opreg.typing import ArrayModule

from .instructions import PRELUDE

__all__ = ["Launch", "can_compile", "declined", "grid_of", "keep", "kernel_of"]

# Blocks for each processor of a GPU: enough to hide how long memory takes.
_BLOCKS = 8


def can_compile(xp: ArrayModule) -> bool:
    """Whether an array module loads modules of CUDA C++."""
    return hasattr(xp, "RawModule")


def declined(found: object | str) -> str | None:
    """Why nothing was found, which a text in its place says; None where something was."""
    return found if isinstance(found, str) else None


def keep(call: Call, found: object | str) -> str | None:
    """Leave with a call what its kernel was found to need, or say why nothing was found."""
    call.found = found
    return declined(found)


@cached(1024)
def kernel_of(xp: ArrayModule, text: str, name: str) -> Callable[..., object]:
    """The function of that name in a text that follows the prelude."""
    return xp.RawModule(code=PRELUDE + text, options=("-std=c++17",)).get_function(name)


def grid_of(xp: ArrayModule, items: int, block: int) -> int:
    """How many blocks share items of work, one a thread at a time."""
    return max(1, min(-(-items // block), _processors(xp) * _BLOCKS))


@cached(16)
def _processors(xp: ArrayModule) -> int:
    """How many processors a GPU has; asked once, as the answer names everything that the device knows of itself."""
    return xp.cuda.Device().attributes["MultiProcessorCount"]


class Launch(PlainStep):
    """A kernel with its grid and its arguments, which it holds alive.

    Attributes
    ----------
    capturable : bool
        That it may be a part of a graph that is replayed, also where it draws: what changes is in the device's memory.
    read, written : int or None
        Bytes of memory that it moves. What it runs through several times counts each time, what its threads share,
        as numbers that are repeated along an axis or windows that overlap, once. Indices are taken
        to differ. None where each array is run through once.
    """

    __slots__ = ("kernel", "grid", "block", "arguments", "read", "written")
    capturable = True

    def __init__(self, kernel: Callable[..., object], blocks: int, threads: int, arguments: Sequence[object],
                 read: int | None = None, written: int | None = None):
        self.kernel, self.grid, self.block, self.arguments = kernel, (blocks,), (threads,), tuple(arguments)
        self.read, self.written = read, written

    def __call__(self) -> None:
        self.kernel(self.grid, self.block, self.arguments)
