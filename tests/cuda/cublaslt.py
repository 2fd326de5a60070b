"""A stand-in for cublasLt: ``cublaslt.cpp``, loaded in place of the library."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from opreg.backends.cuda import cublaslt
from opreg.backends.cuda.cublaslt import Epilogue
from opreg.backends.cuda.products import _describe, choose

from .compiled import HERE, built
from .device import Gpu, gpus
from .machine import MACHINE


class Multiplied(NamedTuple):
    """One call of ``cublasLtMatmul``, in its terms."""

    transposed_a: int
    transposed_b: int
    m: int
    n: int
    k: int
    batch: int
    compute: int
    epilogue: int
    added: int
    stream: int


@functools.cache
def _compiled() -> ctypes.CDLL:
    text = (HERE / "cublaslt.cpp").read_text(encoding="utf-8")
    return ctypes.CDLL(str(built(text, "-O2", "-shared", "-fPIC", header=None, suffix=".so")))


class _Runtime:
    """A CUDA runtime that pretends to be installed; without one no library is looked for."""

    @staticmethod
    def runtimeGetVersion() -> int:
        """The version; its thousands are the major number."""
        return 13000


class Installed:
    """The stand-in in place of the library, and its device."""

    def __init__(self, xp: Gpu, library: ctypes.CDLL):
        self.xp, self.library = xp, library

    def refuse(self, *epilogues: Epilogue) -> None:
        """Lets the library have no algorithm for some epilogues, in all dtypes."""
        self.library.standin_refuse(sum(epilogues))

    def taken(self) -> list[Multiplied]:
        """Products computed since the last call of this method."""
        count = self.library.standin_count()
        rows = (ctypes.c_int64 * (10 * count))()
        self.library.standin_take(rows)
        return [Multiplied(*rows[10 * i:10 * i + 10]) for i in range(count)]


def _launch(function: Callable[..., int], *arguments: Any) -> int:
    """Puts work into the current stream, which may be capturing."""
    status = 0

    def run(*arrays: np.ndarray) -> None:
        nonlocal status
        status = function(*arguments)

    places = [arguments[i] for i in (3, 5, 10, 13) if arguments[i]]  # both factors, the result, the workspace
    MACHINE.run("cublasLt", run, tuple([MACHINE.memory_at(place) for place in places]), {})
    return status


@contextlib.contextmanager
def installed() -> Iterator[Installed]:
    """Context in which ``gpu(0)`` is a stand-in whose CUDA has this library."""
    real, library = cublaslt.load, _compiled()
    cublaslt.load = lambda major: library  # type: ignore[assignment]
    try:
        with gpus() as xp:
            runtime = type("runtime", (_Runtime, xp.cuda.runtime), {})
            xp.cuda = type("cuda", (xp.cuda,), {"runtime": runtime})
            functions = cublaslt.library(xp).functions  # type: ignore[union-attr]
            functions["cublasLtMatmul"] = functools.partial(_launch, functions["cublasLtMatmul"])
            found = Installed(xp, library)
            found.taken()
            found.refuse()
            yield found
    finally:
        cublaslt.load = real
        cublaslt.library.cache_clear()  # type: ignore[attr-defined]
        choose.cache_clear()  # type: ignore[attr-defined]
        _describe.cache_clear()  # type: ignore[attr-defined]
