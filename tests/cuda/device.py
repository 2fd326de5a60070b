"""A stand-in for a GPU and CuPy: the strict array module, and modules of CUDA C++ that run on the host at once."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from opreg.backends.cuda.instructions import PRELUDE
from opreg.core import array_module, generators, invalidation
from tests.cuda import strict

from . import bed, kernels, traffic
from .compiled import LINKER, built
from .host import meets
from .machine import MACHINE, Cuda
from .recorded import recorded


@functools.cache
def _library(text: str, name: str, counts: bool = False) -> Any:
    """The function that launches a kernel with blocks, threads and addresses of arguments; if it counts, also with the
    memory whose accesses it counts."""
    header = "host"
    if text.startswith(PRELUDE):  # kernels of ours, which differ only by an operator's name, are compiled once
        header, text, name = "kernels", text.removeprefix(PRELUDE).replace(name, _untitled(name)), _untitled(name)
    header, flags = (f"counted {header}", traffic.FLAGS) if counts else (header, ())
    more, begin, end = (", traffic::Span* spans, unsigned count", "traffic::watch(spans, count);",
                        "traffic::watch(nullptr, 0);") if counts else ("", "", "")
    program = "\n".join([text, f'extern "C" void launch(unsigned blocks, unsigned threads, void** arguments{more}) '
                         f"{{ {begin} host::launch({name}, blocks, threads, arguments, "
                         f"{'true' if meets(text) else 'false'}); {end} }}"])
    path = built(program, "-O1", "-shared", "-fPIC", *flags, *LINKER, header=header, suffix=".so")
    return ctypes.CDLL(str(path)).launch


def _untitled(name: str) -> str:
    return name.partition("__")[0]


class _Kernel:
    def __init__(self, xp: Any, code: str, name: str):
        self.xp, self.code, self.name = xp, code, name

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: Sequence[Any]) -> None:
        strict.check_device(self.name, arguments)
        for argument in arguments:
            if not isinstance(argument, (strict.StrictArray, np.generic)):
                raise strict.StrictError(f"a kernel is given a {type(argument).__name__}: CuPy takes its arrays, and "
                                         "numbers of NumPy's types")
        hosts = tuple(each._host if isinstance(each, strict.StrictArray) else each for each in arguments)
        MACHINE.run(self.name, functools.partial(self._launch, grid[0], block[0]), hosts, {})

    def _launch(self, blocks: int, threads: int, *arguments: Any) -> None:
        values: list[Any] = [ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else
                             ctypes.create_string_buffer(each.tobytes(), each.nbytes) for each in arguments]
        table = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        name = _untitled(self.name)
        if self.xp.counts is None:
            _library(self.code, self.name)(blocks, threads, table)
        else:
            arrays = [each for each in arguments if isinstance(each, np.ndarray)]
            launch = _library(self.code, self.name, True)
            self.xp.counts.append(traffic.counted(name, launch, blocks, threads, table, arrays))
        if MACHINE.capturing() is None:
            self.xp.kernels.append(name)
            self.xp.titled.append(self.name)


class _RawModule:
    def __init__(self, xp: Any, code: str):
        self.xp, self.code = xp, code

    def get_function(self, name: str) -> _Kernel:
        """The kernel of that name."""
        return _Kernel(self.xp, self.code, name)


class Gpu(strict._Module):
    """The array module of the stand-in; ``kernels`` has the names of launched kernels, ``titled`` their full names,
    ``counts`` the bytes that they moved, while these are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[str] = []
        self.titled: list[str] = []
        self.counts: list[traffic.Launched] | None = None
        self.cuda = Cuda

    @contextlib.contextmanager
    def counting(self) -> Iterator[list[traffic.Launched]]:
        """Context that appends launches to the list, with the bytes that they move."""
        self.counts = []
        try:
            yield self.counts
        finally:
            self.counts = None

    def RawModule(self, code: str, options: Sequence[str] = ()) -> _RawModule:
        """A module of kernels."""
        return _RawModule(self, code)

    def RawKernel(self, code: str, name: str, options: Sequence[str] = ()) -> Any:
        """A kernel of a user."""
        kernel = _Kernel(self, code, name)
        return lambda grid, block, arguments: kernel(grid, block, [*map(kernels.as_argument, arguments)])

    def ElementwiseKernel(self, in_params: str, out_params: str, operation: str, name: str = "kernel"
                          ) -> kernels.ElementwiseKernel:
        """A user's element-wise kernel."""
        return kernels.ElementwiseKernel(self, in_params, out_params, operation, name)

    def from_dlpack(self, source: Any) -> strict.StrictArray:
        """An array over memory shared by DLPack, on the device of this memory."""
        kind, place = source.__dlpack_device__()
        if kind != 2:
            raise strict.StrictError(f"from_dlpack: not memory of a GPU, but of DLPack's kind {kind}")
        shared = source.__dlpack__(stream=1)
        return strict.StrictArray(shared._host, place)

    def asarray(self, a: Any, dtype: Any = None, order: Any = None, copy: Any = None) -> strict.StrictArray:
        """An array; over the memory of an object with ``__cuda_array_interface__``, for which the host waits. Arrays of
        other devices are not supported; CuPy copies them."""
        if isinstance(a, strict.StrictArray) or not hasattr(a, "__cuda_array_interface__"):
            return strict._function("asarray")(a, dtype=dtype, order=order, copy=copy)
        interface = a.__cuda_array_interface__
        if interface.get("stream") is not None:
            strict.Device().synchronize()
        address = interface["data"][0]
        found = strict.StrictArray(np.asarray(_Interface(interface)),
                                   self.cuda.runtime.pointerGetAttributes(address).device if address else None)
        strict.check_device("asarray", (found,))
        return found


class _Interface:
    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = {key: value for key, value in interface.items() if key != "stream"}


class GpuBackend(strict.StrictBackend):
    """The back end of ``gpu(i)``."""

    name = "gpu"

    def __init__(self) -> None:
        self.xp = Gpu()


def late() -> contextlib.AbstractContextManager[None]:
    """Context in which the bed runs work only when the host waits for it, if it can; the stand-in always delays copies
    to the host, and refuses unordered accesses."""
    return bed.ordered("late") if os.environ.get("OPREG_TEST_GPU") == "bed" else contextlib.nullcontext()


def require(count: int) -> None:
    """Skips a test on a machine with fewer devices."""
    if (array_module.backend("gpu").count() or 0) < count:
        pytest.skip(f"needs {count} devices")


@contextlib.contextmanager
def gpus(processors: int = 1, count: int = 1) -> Iterator[Gpu]:
    """Context in which ``gpu(0)`` and ``gpu(1)`` are stand-ins with the given number of processors. With
    ``OPREG_TEST_GPU=bed`` they are devices of the bed, with ``real`` real GPUs. A test that needs more devices than
    there are is skipped."""
    if os.environ.get("OPREG_TEST_GPU") in ("real", "bed"):
        on_bed = os.environ["OPREG_TEST_GPU"] == "bed"
        require(count)
        with recorded(array_module.backend("gpu").xp, processors if on_bed else None) as xp:
            yield xp
        return
    real = array_module._REGISTERED["gpu"]
    array_module.register_backend("gpu", GpuBackend)
    Cuda.Device.processors = processors
    try:
        yield array_module.backend("gpu").xp
    finally:
        Cuda.Device.processors = 1
        array_module.register_backend("gpu", real)
        for cache in invalidation._FOLLOWING:  # eager calls keep the generators that go
            cache.clear()
        for held in (generators._GENERATORS, generators._COUNTERS, generators._ORDERS):
            for place in [each for each in held if each[0] == "gpu"]:
                del held[place]
