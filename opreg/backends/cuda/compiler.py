"""Kernels from their text, and launches of them.

The array module compiles (CuPy with NVRTC) and keeps what was compiled in its own cache of files. Nothing here needs a
GPU before a kernel is asked for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from opreg.core.cache import cached
from opreg.core.launch import Call, Rank
from opreg.core.op import Op
from opreg.core.steps import PlainStep
from opreg.errors import OpError, passing
from opreg.typing import ArrayModule

from .instructions import PRELUDE, declines

__all__ = ["Launch", "attach", "can_compile", "declined", "grid_of", "in_pieces", "keep", "kernel_of"]

# Blocks for each processor of a GPU: enough to hide how long memory takes.
_BLOCKS = 8


def can_compile(xp: ArrayModule) -> bool:
    """Whether an array module loads modules of CUDA C++."""
    return hasattr(xp, "RawModule")


def declined(found: object | str) -> str | None:
    """The reason why nothing was found, a text in its place; None where something was."""
    return found if isinstance(found, str) else None


def keep(call: Call, found: object | str) -> str | None:
    """Leave with a call what its kernel was found to need, or say why nothing was found."""
    call.found = found
    return declined(found)


# The operator that kernels made now are called after.
_TITLE: ContextVar[str] = ContextVar("_TITLE", default="")
# Characters of a title at most: profilers show names in a column.
_MOST = 60


def attach(op: Op, accepts: Callable[[Call], str | None], steps: Callable[[Call], Any]) -> None:
    """Give an operator the kernel ``cuda``: steps whose compiled functions are called after it."""

    @functools.wraps(steps)
    def named(call: Call) -> Any:
        token = _TITLE.set(_title(call))
        try:
            return steps(call)
        finally:
            _TITLE.reset(token)

    op.kernel("cuda", bound=True, accepts=accepts, serves=can_compile, rank=Rank.COMPILED)(named)


def in_pieces(call: Call) -> str | None:
    """The reason why arrays that a use reads and writes cannot be traversed, or None; see ``declines``."""
    unread = call.op.traits.unread
    return declines([*[array for i, array in enumerate(call.ins) if i not in unread], *call.outs])


def _title(call: Call) -> str:
    """The operator's name; of a group of them, those of its instructions."""
    group = call.attrs.get("expression")
    return call.op.name if group is None else "_".join(dict.fromkeys(prim.name for prim, _ in group.code))


def kernel_of(xp: ArrayModule, text: str, name: str, title: str = "") -> Callable[..., object]:
    """The function of that name in a text that follows the prelude.

    For profilers it is called after the operator as well, ``rows__softmax``, or after a title.
    """
    title = re.sub(r"\W+", "_", title or _TITLE.get(), flags=re.ASCII)[:_MOST].strip("_")
    if title:
        text = text.replace(f" {name}(", f" {name}__{title}(", 1)
    return _compiled(xp, text, f"{name}__{title}" if title else name)


@cached(1024)
def _compiled(xp: ArrayModule, text: str, name: str) -> Callable[..., object]:
    """The function of that name.

    Raises
    ------
    OpError
        Where it does not compile: what the compiler says, and of which line.
    """
    code = PRELUDE + text
    try:
        return xp.RawModule(code=code, options=("-std=c++17",)).get_function(name)
    except Exception as error:  # CuPy's own
        if passing(error):
            raise
        raise OpError(f"the kernel {name!r} does not compile: {_said(str(error), code)}") from error


# As NVRTC writes it: a file, the number of a line, what is wrong there.
_WRONG = re.compile(r"\((\d+)\): (?:catastrophic )?error:? *(.*)")


def _said(report: str, code: str) -> str:
    """The first mistake that a compiler reports, with the line of the text; else all of the report in one line."""
    found = _WRONG.search(report)
    lines = code.splitlines()
    if found is None or not 0 < int(found[1]) <= len(lines):
        return " ".join(report.split())
    return f"{found[2]}, in line {found[1]}: {lines[int(found[1]) - 1].strip()}"


def grid_of(xp: ArrayModule, items: int, block: int) -> int:
    """How many blocks share items of work, one a thread at a time."""
    return max(1, min(-(-items // block), _processors(xp, xp.cuda.Device().id) * _BLOCKS))


@cached(16)
def _processors(xp: ArrayModule, device: int) -> int:
    """How many processors a device, the current one, has; asked once, as the answer names everything that the device
    knows of itself."""
    return xp.cuda.Device().attributes["MultiProcessorCount"]


class Launch(PlainStep):
    """A kernel with its grid and its arguments, which it holds alive.

    Attributes
    ----------
    capturable : bool
        That it may be a part of a graph that is replayed, also where it draws: what changes is in the device's memory.
    read, written : int or None
        Bytes of memory that it moves. Memory that it reads several times counts each time; elements that its
        threads share, as those repeated along an axis or in overlapping windows, count once. Indices are taken to
        differ. None where each array is run through once.
    """

    __slots__ = ("kernel", "grid", "block", "arguments", "read", "written")
    capturable = True

    def __init__(self, kernel: Callable[..., object], blocks: int, threads: int, arguments: Sequence[object],
                 read: int | None = None, written: int | None = None):
        self.kernel, self.grid, self.block, self.arguments = kernel, (blocks,), (threads,), tuple(arguments)
        self.read, self.written = read, written

    def __call__(self) -> None:
        self.kernel(self.grid, self.block, self.arguments)
