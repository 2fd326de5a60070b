"""A real GPU in the place of the stand-in: the same tests run on it, and are told the same of our kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from opreg.backends.cuda.compiler import _compiled

__all__ = ["Recorded", "recorded"]


class _Kernel:
    def __init__(self, kernel: Any, name: str, kernels: list[str]):
        self._kernel, self.name, self._kernels = kernel, name, kernels

    def __call__(self, *args: Any, **more: Any) -> Any:
        result = self._kernel(*args, **more)
        self._kernels.append(self.name.partition("__")[0])
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class Recorded:
    """What tests ask of the stand-in, of an array module: ``kernels`` are the names of those that were launched."""

    def __init__(self, xp: Any):
        self._xp, self.kernels = xp, list[str]()

    def RawKernel(self, code: str, name: str, *args: Any, **keywords: Any) -> _Kernel:
        """A kernel of a user."""
        return _Kernel(self._xp.RawKernel(code, name, *args, **keywords), name, self.kernels)

    def ElementwiseKernel(self, in_params: str, out_params: str, operation: str, name: str = "kernel",
                          **keywords: Any) -> _Kernel:
        """A user's arithmetic of one element."""
        return _Kernel(self._xp.ElementwiseKernel(in_params, out_params, operation, name, **keywords), name,
                       self.kernels)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._xp, name)


@contextlib.contextmanager
def recorded(xp: Any) -> Iterator[Recorded]:
    """While inside, the kernels that the array module compiles write their names down."""
    found, module, forget = Recorded(xp), xp.RawModule, cast(Any, _compiled).cache_clear

    class RawModule:
        def __init__(self, *args: Any, **keywords: Any):
            self._module = module(*args, **keywords)

        def get_function(self, name: str) -> _Kernel:
            return _Kernel(self._module.get_function(name), name, found.kernels)

    forget()
    xp.RawModule = RawModule
    try:
        yield found
    finally:
        xp.RawModule = module
        forget()
