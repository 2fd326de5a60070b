"""A replacement for NVRTC: the system's C++ compiler, and the real NVRTC beside it if requested.

A module of kernels becomes a library of the host with two functions for each kernel, ``launch_<name>`` and
``sizes_<name>``, which ``driver.cpp`` looks up. The image that CuPy loads names the library.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from opreg.backends.cuda.instructions import PRELUDE

from ..compiled import KernelError, built
from ..host import meets
from . import loading
from .checking import check

__all__ = ["checked", "install", "library"]

#: Declaration of a kernel that CuPy looks up by its own name.
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+'
                     r'(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(')
#: Shared memory whose size the launch says.
_DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w:<> ]+?)\s*(?:__align__\(\d+\)\s*)?(\w+)\s*\[\s*\]\s*;")
#: Positions in the compiler's messages, which NVRTC writes in another way.
_PLACE = re.compile(r"/\S+\.cpp:(\d+):\d+: (error|note|warning)")
_FLAGS = "-O1", "-shared", "-fPIC"
# Kernels of several modules have one name, and their libraries are in one process.
_OF_CUPY = "-fno-gnu-unique", "-fvisibility=hidden", "-fpermissive", "-Wl,-Bsymbolic"


#: For these the real NVRTC compiles each text, too.
_ARCHITECTURES = [int(each) for each in os.environ.get("BED_NVRTC", "").split(",") if each]


@contextlib.contextmanager
def checked(*architectures: int) -> Iterator[None]:
    """Context in which the real NVRTC compiles each text for GPUs, also texts that were compiled before."""
    import cupy

    place = cupy.cuda.compiler
    with mock.patch.object(sys.modules[__name__], "_ARCHITECTURES", list(architectures)), \
            mock.patch.object(place, "_kernel_cache_backend", type(place._kernel_cache_backend)()):
        cupy.clear_memo()
        yield


def library(source: str, options: Sequence[str], expressions: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Library of a text, and the names of the kernels that expressions ask for.

    Raises
    ------
    KernelError
        The compiler refuses the text; the message is its own.
    """
    names = {name: name for name in _KERNEL.findall(source)}
    lowered = {expression: f"expression{i}" for i, expression in enumerate(expressions)}
    if source.startswith(PRELUDE):
        text, header, flags = source.removeprefix(PRELUDE), "bed-kernels", _FLAGS
    else:
        text = _DYNAMIC.sub(r"\1* \2 = reinterpret_cast<\1*>(dynamic_shared_memory);", source)
        header, flags = "bed", (*_FLAGS, *_OF_CUPY, *(each for each in options if each.startswith("-D")))
    together = "true" if meets(text) else "false"
    entries = {**names, **{entry: expression for expression, entry in lowered.items()}}
    text += "".join(f"\nBED_KERNEL({entry}, ({kernel}), {together})" for entry, kernel in entries.items()) + "\n"
    try:
        path = built(text, *flags, *loading.include_flags(), header=header, suffix=".so")
    except KernelError as error:
        before = PRELUDE.count("\n") if source.startswith(PRELUDE) else 0
        raise KernelError(_PLACE.sub(lambda at: f"kernel.cu({int(at[1]) + before}): {at[2]}", str(error))) from None
    return str(path), lowered


def install() -> None:
    """Replaces NVRTC in CuPy."""
    import cupy

    place = cupy.cuda.compiler

    class Program:
        """A text to compile, with the interface of CuPy's own class."""

        def __init__(self, src: Any, name: str = "", headers: Sequence[str] = (), include_names: Sequence[str] = (),
                     name_expressions: Sequence[str] | None = None, method: str = "ptx"):
            self.source = src.decode() if isinstance(src, bytes) else src
            self.expressions = tuple(name_expressions or ())

        def compile(self, options: Sequence[str] = (), log_stream: Any = None) -> tuple[bytes, Any]:
            """The compiled image, and the names of the expressions."""
            try:
                if _ARCHITECTURES and self.source:
                    check(self.source, options, _ARCHITECTURES)
                path, lowered = library(self.source, options, self.expressions)
            except KernelError as error:
                raise place.CompileException(str(error), self.source, "kernel.cu", options, "nvrtc") from None
            return f"bed\n{path}\0".encode(), lowered

    place._NVRTCProgram = Program
    place._get_nvrtc_version = cupy.cuda.nvrtc.getVersion = lambda: (13, 0)
