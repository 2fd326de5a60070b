"""The real CuPy on a machine without a GPU: a driver, a compiler and libraries of CUDA over the memory of the host.

CuPy itself is unchanged; the libraries that it calls are replaced. Its static runtime jumps into ``driver.cpp``, which
is also ``libcuda.so.1``; the texts that it gives to NVRTC go to the system's C++ compiler; cuBLAS is ``blas.cpp``;
sorts, random numbers, cuSOLVER and cuFFT are NumPy on the same memory. `install` has to come before anything imports
CuPy.

Settings, from the environment:

=================== ==================================================================================================
``BED_DEVICES``     how many devices there are, 2 by default
``BED_PROCESSORS``  how many multiprocessors a device has, 132 by default
``BED_GIGABYTES``   how much memory all devices have together, 16 by default
``BED_ORDER``       ``now``: work runs at once; ``late``: when the host waits for it; a number: when that seed says
``BED_NVRTC``       architectures, as ``80,90``, for which the real NVRTC compiles each text, too
=================== ==================================================================================================
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from . import compiler, loading
from .compiler import checked

__all__ = ["checked", "install", "missing", "ordered", "waits"]


def missing() -> str:
    """The reason why the bed cannot be used; empty if it can."""
    return loading.missing()


@contextlib.contextmanager
def ordered(order: str) -> Iterator[None]:
    """Context in which work runs at once (``"now"``), ``"late"``, or at random by a seed."""
    driver = loading.driver()
    driver.bed_order(order.encode())
    try:
        yield
    finally:
        driver.bed_order(os.environ.get("BED_ORDER", "now").encode())


def waits() -> int:
    """Number of times that the host was asked to wait for the device."""
    return int(loading.driver().bed_waits())


def install() -> Any:
    """Puts the bed beneath CuPy, and returns CuPy.

    Raises
    ------
    RuntimeError
        A library is missing, or CuPy was imported before.
    """
    reason = missing()
    if reason:
        raise RuntimeError(reason)
    if "cupy" in sys.modules:
        raise RuntimeError("the bed has to be installed before CuPy is imported")
    os.environ.setdefault("CUPY_ACCELERATORS", "")  # CUB's kernels can only be compiled for GPUs
    os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")  # its cache is not to hold what is no code of a GPU
    loading.driver()
    loading.redirect("cupy_backends.cuda.api.runtime")
    loading.load_libraries()
    import cupy

    compiler.install()
    for name in ("cupy.cuda.thrust", "cupy.cuda.cub", "cupy.random._generator_api"):
        importlib.import_module(name)
        loading.redirect(name)
    from . import libraries

    libraries.install()
    return cupy
