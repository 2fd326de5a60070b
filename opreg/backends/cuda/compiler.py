"""Compiles kernels from their text, and launches them.

The array module compiles, CuPy with NVRTC, and caches the compiled code in files of its own. Nothing here needs a GPU
until a kernel is requested.
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
from opreg.core.steps import PlainStep, Work, index_at
from opreg.errors import OpError, is_transient
from opreg.typing import Array, ArrayModule

from .instructions import PRELUDE, declines

__all__ = ["Launch", "attach", "can_compile", "reason_in", "first_error", "grid_of", "in_pieces",
           "keep_details", "kernel_of"]

# Blocks for each multiprocessor of a GPU: enough to hide the latency of memory.
_BLOCKS = 8


def can_compile(xp: ArrayModule) -> bool:
    """Whether an array module compiles CUDA C++."""
    return hasattr(xp, "RawModule")


def reason_in(details: object | str) -> str | None:
    """The reason, if ``details`` is a text that gives one; None otherwise."""
    return details if isinstance(details, str) else None


def keep_details(call: Call, details: object | str) -> str | None:
    """Store on a call the details that its kernel needs; if ``details`` is a text, it is the reason to decline, and is
    returned."""
    call.details = details
    return reason_in(details)


# The operator's name, which becomes a part of the names of kernels compiled now.
_TITLE: ContextVar[str] = ContextVar("_TITLE", default="")
# The greatest length of a title: profilers show names in a column.
_MOST = 60


def attach(op: Op, accepts: Callable[[Call], str | None], steps: Callable[[Call], Any]) -> None:
    """Give an operator the kernel ``cuda``: its steps' compiled functions have the operator in their names."""

    @functools.wraps(steps)
    def named(call: Call) -> Any:
        token = _TITLE.set(_title(call))
        try:
            return steps(call)
        finally:
            _TITLE.reset(token)

    op.kernel("cuda", bound=True, accepts=accepts, serves=can_compile, rank=Rank.COMPILED)(named)


def in_pieces(call: Call) -> str | None:
    """The reason why ``declines`` rejects the arrays that a call reads and writes, or None."""
    unread = call.op.traits.unread
    return declines([*[array for i, array in enumerate(call.ins) if i not in unread], *call.outs])


def _title(call: Call) -> str:
    """The operator's name; for a fused group, the names of its instructions."""
    group = call.attrs.get("expression")
    return call.op.name if group is None else "_".join(dict.fromkeys(prim.name for prim, _ in group.code))


def kernel_of(xp: ArrayModule, text: str, name: str, title: str = "") -> Callable[..., object]:
    """The function of that name in a text, compiled after the prelude.

    For profilers, its compiled name also contains the operator, as in ``rows__softmax``, or the title if given.
    """
    title = re.sub(r"\W+", "_", title or _TITLE.get(), flags=re.ASCII)[:_MOST].strip("_")
    if title:
        text = text.replace(f" {name}(", f" {name}__{title}(", 1)
    return _compile_function(xp, text, f"{name}__{title}" if title else name)


@cached(1024)
def _compile_function(xp: ArrayModule, text: str, name: str) -> Callable[..., object]:
    """The compiled function of that name.

    Raises
    ------
    OpError
        When the text does not compile, with the compiler's message and the line.
    """
    code = PRELUDE + text
    try:
        return xp.RawModule(code=code, options=("-std=c++17",)).get_function(name)
    except Exception as error:  # CuPy's own
        if is_transient(error):
            raise
        raise OpError(f"the kernel {name!r} does not compile: {first_error(str(error), code)}") from error


# An error as NVRTC reports it: the file, the line number, the message.
_WRONG = re.compile(r"\((\d+)\): (?:catastrophic )?error:? *(.*)")


def first_error(report: str, code: str) -> str:
    """The first error in a compiler's report, with the line of the text; if none is found, the whole report in one
    line."""
    match = _WRONG.search(report)
    lines = code.splitlines()
    if match is None or not 0 < int(match[1]) <= len(lines):
        return " ".join(report.split())
    return f"{match[2]}, in line {match[1]}: {lines[int(match[1]) - 1].strip()}"


def grid_of(xp: ArrayModule, items: int, block: int) -> int:
    """The number of blocks for a number of work items; a thread computes one item at a time."""
    return max(1, min(-(-items // block), _processors(xp, xp.cuda.Device().id) * _BLOCKS))


@cached(16)
def _processors(xp: ArrayModule, device: int) -> int:
    """The number of multiprocessors of a device, the current one; cached, since each query reads all attributes of the
    device."""
    return xp.cuda.Device().attributes["MultiProcessorCount"]


class Launch(PlainStep):
    """A kernel with its grid and its arguments, to which it holds references.

    Attributes
    ----------
    capturable : bool
        True: it may be part of a graph that is replayed, even if it draws random numbers, since all changing state is
        in the device's memory.
    read, written : int or None
        Bytes of memory that it reads and writes. Memory that is read several times counts each time. Elements that
        threads share, as when they are repeated along an axis or windows overlap, count once. Indices are assumed to
        differ. None if each array is read or written once.
    """

    __slots__ = ("kernel", "grid", "block", "arguments", "read", "written")
    capturable = True

    def __init__(self, kernel: Callable[..., object], blocks: int, threads: int, arguments: Sequence[object],
                 read: int | None = None, written: int | None = None):
        self.kernel, self.grid, self.block, self.arguments = kernel, (blocks,), (threads,), tuple(arguments)
        self.read, self.written = read, written

    def __call__(self) -> None:
        self.kernel(self.grid, self.block, self.arguments)

    def work(self, arrays: Sequence[Array]) -> Work:
        """The launch with other arrays."""
        kind, kernel, grid, block = type(arrays[0]), self.kernel, self.grid, self.block
        places = {i: number for i, argument in enumerate(self.arguments)
                  if isinstance(argument, kind) and (number := index_at(arrays, argument)) is not None}
        constants = [None if i in places else argument for i, argument in enumerate(self.arguments)]
        moved = [*places.items()]

        def launch(others: Sequence[Array]) -> None:
            arguments = constants.copy()
            for i, number in moved:
                arguments[i] = others[number]
            kernel(grid, block, tuple(arguments))

        return launch
