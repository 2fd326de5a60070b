"""The driver and libraries in place of NVIDIA's, loaded before CuPy looks for them."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import mmap
import platform
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..compiled import COMPILER, built

__all__ = ["driver", "include_flags", "load_libraries", "missing", "redirect", "site"]

_HERE = Path(__file__).parent
_PAGE = mmap.PAGESIZE


@functools.cache
def site() -> Path:
    """The folder that CuPy is installed in."""
    spec = importlib.util.find_spec("cupy")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


@functools.cache
def _headers() -> Path | None:
    """CUDA's headers, of the packages ``nvidia-cuda-runtime`` and ``nvidia-cuda-crt``."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or () if spec else ()):
        for found in sorted(Path(folder).glob("*/include/cuda_fp16.h")):
            if (found.parent / "crt" / "host_defines.h").exists():
                return found.parent
    return None


def missing() -> str:
    """The reason why the bed cannot be used; empty if it can."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return "the bed is for Linux on x86-64: it writes jumps into CuPy's runtime"
    if COMPILER is None:
        return "no C++ compiler: install g++"
    if importlib.util.find_spec("cupy") is None:
        return "no CuPy: pip install 'cupy-cuda13x>=14'"
    if _headers() is None:
        return "no headers of CUDA: pip install nvidia-cuda-runtime nvidia-cuda-crt"
    return ""


def include_flags() -> tuple[str, ...]:
    """Compiler flags for the folders of CuPy's headers and of CUDA's."""
    cupy = site() / "cupy" / "_core" / "include"
    parts = [cupy, *(cupy / "cupy" / "_cccl" / name for name in ("libcudacxx", "thrust", "cub"))]
    return *(f"-I{each}" for each in parts), f"-isystem{_headers()}"


@functools.cache
def driver() -> ctypes.CDLL:
    """The library of ``driver.cpp``, which CuPy and others know as libcuda."""
    text = (_HERE / "driver.cpp").read_text(encoding="utf-8")
    return _loaded(text, "-O1", f"-isystem{_headers()}", "-Wl,-soname,libcuda.so.1")


# ------------------------------------------------------------------------------------------------------ the runtime


def redirect(module: str) -> int:
    """Redirects the runtime in a module of CuPy to the driver; returns the number of redirected functions.

    A jump is the address in a register and a jump to it, 12 bytes. Functions that the driver lacks say their name and
    that they are not supported.
    """
    path = Path(importlib.import_module(module).__file__ or "").resolve()
    found = {name: int(address, 16) for address, name in re.findall(r"^(\w+) t (cuda[A-Z]\w*)$", _output("nm", path),
                                                                    re.M)}
    if not found:
        raise RuntimeError(f"{path.name}: no names of CUDA's runtime are left in it")
    start = _loaded_at(path)
    library = driver()
    _make_writable({(start + address + more) & -_PAGE for address in found.values() for more in (0, 12)})
    for name, address in found.items():
        target = getattr(library, "bed_" + re.sub("_pts[zd]$", "", name), None)
        where = ctypes.cast(target, ctypes.c_void_p).value if target else _says_missing(name)
        assert where is not None
        ctypes.memmove(start + address, _jump(where), 12)
    return len(found)


def _loaded_at(path: Path) -> int:
    with open("/proc/self/maps", encoding="utf-8") as lines:
        return min(int(line.partition("-")[0], 16) for line in lines if line.rstrip().endswith(str(path)))


def _make_writable(pages: set[int]) -> None:
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for page in pages:
        if mprotect(page, _PAGE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "the runtime's code cannot be written to")


def _jump(target: int) -> bytes:
    return b"\x48\xb8" + target.to_bytes(8, "little") + b"\xff\xe0"  # mov rax, target; jmp rax


@functools.cache
def _room() -> mmap.mmap:
    """Memory for the small functions of `_says_missing`."""
    return mmap.mmap(-1, 1 << 20, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


@functools.cache
def _says_missing(name: str) -> int:
    """Address of a function that fails with an error about this name."""
    text = name.encode() + b"\0"
    say = ctypes.cast(driver().bed_missing, ctypes.c_void_p).value
    assert say is not None
    room = _room()
    start = ctypes.addressof(ctypes.c_char.from_buffer(room)) + room.tell()
    code_size = 10 + 12
    room.write((b"\x48\xbf" + (start + code_size).to_bytes(8, "little") + _jump(say) + text).ljust(128, b"\0"))
    return start


# ---------------------------------------------------------------------------------------------------- the libraries

_HEAD = """#define LIBRARY extern "C" __attribute__((visibility("default"))) int
extern "C" int bed_missing(const char*);
"""
_NOT_SUPPORTED = 15  # a status that none of the libraries takes for success


def load_libraries() -> None:
    """Loads replacements for the libraries that modules of CuPy link to; missing functions fail with an error."""
    found: dict[str, ctypes.CDLL] = {}
    lt = (_HERE.parent / "cublaslt.cpp").read_text(encoding="utf-8")
    version = _soname("cublas").rpartition(".")[2]
    _loaded(lt, "-O2", f"-Wl,-soname,libcublasLt.so.{version}")
    for name, source in (("cublas", "blas.cpp"), ("cusolver", "solver.cpp"), ("curand", ""), ("cufft", ""),
                         ("cusparse", "")):
        text = _HEAD + ((_HERE / source).read_text(encoding="utf-8") if source else "")
        # The versions of NVIDIA's functions are the names of their libraries.
        flags = "-O2", f"-Wl,-soname,{_soname(name)}", "-Wl,--default-symver"
        wanted = set(re.findall(rf"\bU ({name}\w+)", _output("nm", "-D", _module(name))))
        have = _output("nm", "-D", _shared(text, *flags)) if source else ""
        wanted -= set(re.findall(r"\bT (\w+)", have))
        text += "".join(f'LIBRARY {each}(void) {{ bed_missing("{each}"); return {_NOT_SUPPORTED}; }}\n'
                        for each in sorted(wanted))
        found[name] = _loaded(text, *flags)
    # Before a module of CuPy is loaded, CuPy has this function find NVIDIA's library.
    finder: Any = importlib.import_module("cuda.pathfinder")

    def find(name: str) -> SimpleNamespace:
        if name not in found:
            raise finder.DynamicLibNotFoundError(f"the bed has no {name}")
        return SimpleNamespace(_handle_uint=found[name]._handle)

    finder.load_nvidia_dynamic_lib = find


def _module(name: str) -> Path:
    """The module of CuPy that is linked to a library."""
    folder = site() / ("cupy/cuda" if name == "cufft" else "cupy_backends/cuda/libs")
    return next(folder.glob(f"{name}.*.so"))


def _soname(name: str) -> str:
    found = re.search(rf"lib{name}\.so\.\d+", _output("readelf", "-d", _module(name)))
    assert found is not None, name
    return found.group()


def _shared(text: str, *flags: str) -> Path:
    return built(text, "-shared", "-fPIC", *flags, header=None, suffix=".so")


def _loaded(text: str, *flags: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(_shared(text, *flags)), mode=ctypes.RTLD_GLOBAL)


def _output(*command: object) -> str:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout
