"""A real GPU, or the bed, in place of the stand-in: it records the same facts for the same tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast
from unittest import mock

from opreg.backends.cuda import compiler

from . import bed

__all__ = ["Recorded", "recorded"]


class _Kernel:
    def __init__(self, kernel: Any, name: str, seen: Recorded):
        self._kernel, self.name, self._seen = kernel, name, seen

    def __call__(self, *args: Any, **more: Any) -> Any:
        result = self._kernel(*args, **more)
        self._seen.kernels.append(self.name.partition("__")[0])
        self._seen.titled.append(self.name)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class Recorded:
    """Array module that records the kernels that it launches: their names in ``kernels``, and the names with what
    follows ``__``, as text, in ``titled``."""

    def __init__(self, xp: Any):
        self._xp, self.kernels, self.titled = xp, list[str](), list[str]()

    @property
    def synchronisations(self) -> int:
        """Number of times that the host was asked to wait; the bed counts them."""
        return bed.waits()

    def RawKernel(self, code: str, name: str, *args: Any, **keywords: Any) -> _Kernel:
        """A kernel of a user."""
        return _Kernel(self._xp.RawKernel(code, name, *args, **keywords), name, self)

    def ElementwiseKernel(self, in_params: str, out_params: str, operation: str, name: str = "kernel",
                          **keywords: Any) -> _Kernel:
        """A user's element-wise kernel."""
        return _Kernel(self._xp.ElementwiseKernel(in_params, out_params, operation, name, **keywords), name,
                       self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._xp, name)


@contextlib.contextmanager
def recorded(xp: Any, processors: int | None = None) -> Iterator[Recorded]:
    """Context in which compiled kernels record their names, and the bed's devices have so many processors."""
    found, module = Recorded(xp), xp.RawModule

    class RawModule:
        def __init__(self, *args: Any, **keywords: Any):
            self._module = module(*args, **keywords)

        def get_function(self, name: str) -> _Kernel:
            return _Kernel(self._module.get_function(name), name, found)

    with contextlib.ExitStack() as stack:
        stack.callback(_forget)
        stack.enter_context(mock.patch.object(xp, "RawModule", RawModule))
        for device in range(xp.cuda.runtime.getDeviceCount() if processors else 0):
            shown = xp.cuda.Device(device).attributes  # CuPy asks for them once
            stack.enter_context(mock.patch.dict(shown, MultiProcessorCount=processors))
        _forget()
        yield found


def _forget() -> None:
    for cache in (compiler._compile_function, compiler._processors):
        cast(Any, cache).cache_clear()
