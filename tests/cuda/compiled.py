"""Programs that tests compile: each text once, whichever process asks for it first.

The common head of all kernels is compiled in advance, once for each set of flags. Compilers that cannot, or that find
no such header in time, read it as text, which takes longer and gives the same.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import opreg.backends.cuda

__all__ = ["COMPILER", "LINKER", "KernelError", "built", "folder", "forget", "kept", "line_of"]

COMPILER = shutil.which("g++") or shutil.which("c++")
#: A flag for the linker that takes a quarter of the usual one's time, a tenth of that of compiling a small kernel.
LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()
HERE = Path(__file__).parent
_FLAGS = ("-std=c++17", "-ffp-contract=off", "-w")
_KERNELS = Path(opreg.backends.cuda.__file__).with_name("device.cuh")
_HOST, _FUNCTIONS, _COUNTS, _ENTRY = HERE / "host.h", HERE / "functions.h", HERE / "traffic.h", HERE / "bed" / "entry.h"
_HEADERS = {None: [], "host": [_FUNCTIONS, _HOST], "kernels": [_FUNCTIONS, _HOST, _KERNELS],
            "counted host": [_FUNCTIONS, _HOST, _COUNTS], "counted kernels": [_FUNCTIONS, _HOST, _COUNTS, _KERNELS],
            "bed-kernels": [_FUNCTIONS, _HOST, _ENTRY, _KERNELS],
            "bed": [HERE / "bed" / "types.h", _HOST, _ENTRY, HERE / "bed" / "cupy.h"]}
# Definitions of functions that a header only declares; they are compiled in advance, too.
_OBJECTS = {header: [each.with_suffix(end) for end in (".h", ".cpp") for each in files if each in (_HOST, _COUNTS)]
            for header, files in _HEADERS.items()}
#: The folder of a run of tests, for all of its processes.
_VARIABLE = "OPREG_TEST_COMPILED"


class KernelError(AssertionError):
    """An invalid action of a kernel, or an error of the compiler, in the words of the compiler or sanitizer."""


@functools.cache
def folder() -> Path:
    """Folder of the compiled files. The process that asks first deletes it when it ends; its children do not.

    A folder named in the environment is kept between runs, without the files that no run has read for a week.
    """
    if _VARIABLE not in os.environ:
        place, owner = tempfile.mkdtemp(prefix="opreg-kernels-"), os.getpid()
        os.environ[_VARIABLE] = place
        atexit.register(lambda: owner == os.getpid() and shutil.rmtree(place, ignore_errors=True))
    found = Path(os.environ[_VARIABLE]).resolve()
    found.mkdir(parents=True, exist_ok=True)
    if "PYTEST_XDIST_WORKER" not in os.environ:  # the workers of a run already use the folder
        forget(found, time.time() - 7 * 24 * 3600)
    return found


def forget(place: Path, before: float) -> None:
    """Deletes compiled files of a folder, those of numba too, that nobody has read or written since a time, in seconds
    since 1970. Names that are no hashes stay: they are not of tests."""
    for path in place.rglob("*"):
        with contextlib.suppress(OSError):
            used = path.stat()
            if re.match(r"[0-9a-f]{24}", path.name) and max(used.st_atime, used.st_mtime) < before:
                path.unlink()


def built(text: str, *flags: str, header: str | None = "kernels", suffix: str = "") -> Path:
    """File that the compiler makes of a text.

    Parameters
    ----------
    text : str
    *flags : str
        Flags beside those of every text.
    header : {"kernels", "host", "counted kernels", "counted host", "bed-kernels", "bed", None}
        Header before the text: ``host.h``, with or without the beginning of generated kernels, and with counters of
        their accesses; the bed's driver, and CuPy's headers; or nothing.
    suffix : str
        Suffix of the file.

    Raises
    ------
    KernelError
        The compiler refuses the text; the message is its own.
    """
    path = _place(header, flags, text, suffix)
    if not path.exists():
        # If a library is among its arguments, a compiler links the header instead of precompiling it.
        compiling = tuple(flag for flag in flags if flag != "-c" and not flag.startswith(("-Wl,", "-l", "-fuse-ld=")))
        before = [] if header is None else ["-include", str(_header(header, compiling))]
        after = [] if header is None or "-c" in flags else [f"-Wl,{_object(header, compiling)}"]
        source = path.with_suffix(".cpp")
        with _complete(source) as part:
            part.write_text(text)
        with _complete(path) as part:
            _compile(*_FLAGS, *flags, *before, str(source), *after, "-o", str(part))
    return path


def kept(make: Callable[[], str], *parts: str) -> str:
    """A text that depends on these parts alone: an earlier run has left it in the folder, or it is made now and left
    there."""
    path = _place(None, (), "\n".join(parts), ".txt")
    if not path.exists():
        with _complete(path) as part:
            part.write_text(make())
    return path.read_text()


@functools.cache
def _object(header: str, flags: tuple[str, ...]) -> Path:
    return built(_joined(_OBJECTS[header]), "-c", *flags, header=None, suffix=".o")


@functools.cache
def _header(name: str, flags: tuple[str, ...]) -> Path:
    """A header to include first, beside its compiled form if the compiler supports that."""
    path = _place(name, flags, "", ".h")
    if not path.exists():
        with _complete(path) as part:  # this file shows that a process compiles it; others read the text until then
            part.write_text("".join(f'#include "{each}"\n' for each in _HEADERS[name]))
        with contextlib.suppress(KernelError), _complete(Path(f"{path}.gch")) as part:
            _compile(*_FLAGS, *flags, "-x", "c++-header", str(path), "-o", str(part))
    return path


def _place(header: str | None, flags: tuple[str, ...], text: str, suffix: str) -> Path:
    name = hashlib.sha256("\n".join([_content(header), *flags, text]).encode()).hexdigest()[:24]
    return folder() / f"{name}{suffix}"


@functools.cache
def _content(header: str | None) -> str:
    """The text of a header without the words of its comments, by which compiled files are named."""
    return re.sub("//.*", "", _joined([*_HEADERS[header], *_OBJECTS[header]]))


def _joined(paths: Sequence[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


@contextlib.contextmanager
def _complete(path: Path) -> Iterator[Path]:
    """A temporary path that is renamed to this one when it is complete, so that no other process or thread sees a
    part."""
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    yield part
    os.replace(part, path)


def _compile(*arguments: str) -> None:
    done = subprocess.run([str(COMPILER), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(done.stderr[:6000])


def line_of(report: str) -> str:
    """The line of a compiled text or header that a sanitizer's report names first; empty without one."""
    for name, number in re.findall(r"(/[^\s:]+\.(?:cpp|cuh)):(\d+)", report):
        with contextlib.suppress(OSError, IndexError):
            return f"{Path(name).name}, line {number}: {Path(name).read_text().splitlines()[int(number) - 1].strip()}"
    return ""
