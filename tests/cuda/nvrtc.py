"""CUDA's compiler at run time, which needs no GPU: machine code of kernels for each architecture."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from opreg.backends.cuda.instructions import PRELUDE

from .compiled import KernelError, kept

#: The oldest architecture that is supported, and the newest. No kernel asks for its architecture.
ARCHITECTURES = (75, 90)


class Compiled(NamedTuple):
    """A kernel as machine code.

    Attributes
    ----------
    registers, spills, stack
        Registers of a thread, bytes spilled from registers, and bytes of its stack.
    accesses : frozenset of str
        Instructions that read and write the memory of arrays, such as ``ld.global.nc.v4.f32``.
    repeated : list of str
        The instructions that are in a loop.
    """

    registers: int
    spills: int
    stack: int
    accesses: frozenset[str]
    repeated: list[str]

    @property
    def divisions(self) -> int:
        """Number of 64-bit divisions in loops; each takes about a hundred instructions."""
        return sum(re.match(r"(?:div|rem)\.[su]64", each) is not None for each in self.repeated)


def _libraries() -> Iterator[str]:
    """The folder of the package ``nvidia-cuda-nvrtc``, and the system's libraries."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or () if spec else ()):
        yield from map(str, sorted(Path(folder).glob("*/lib/libnvrtc.so.*")))
    yield from ("libnvrtc.so.13", "libnvrtc.so.12")


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiler; None where there is none."""
    for path in _libraries():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _text(program: ctypes.c_void_p, what: str) -> bytes:
    nvrtc = library()
    assert nvrtc is not None
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    content = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, content)
    return content.raw.rstrip(b"\0")


@functools.cache
def _version() -> str:
    nvrtc = library()
    assert nvrtc is not None
    numbers = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(*map(ctypes.byref, numbers))
    return f"nvrtc {numbers[0].value}.{numbers[1].value}"


def check(text: str, *options: str) -> list[str]:
    """PTX code of a text, and the log of the compiler.

    Raises
    ------
    KernelError
        The compiler refuses the text; the message is its own.
    """
    return json.loads(kept(lambda: json.dumps(_compile(text, options)), _version(), *options, text))


def _compile(text: str, options: Sequence[str]) -> tuple[str, str]:
    nvrtc = library()
    assert nvrtc is not None
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    table = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), table)
    log = _text(program, "ProgramLog").decode(errors="replace")
    if status:
        raise KernelError(log[:6000])
    found = _text(program, "PTX").decode(), log
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return found


def compile(texts: Sequence[str], architecture: int | None = None) -> list[Compiled]:
    """Compiles kernels, whose texts follow the prelude, for an architecture such as 90.

    Without an architecture, each text is compiled for one of ``ARCHITECTURES``: the first and the last of four texts
    for the oldest, and the two between them for the newest.

    Raises
    ------
    KernelError
        The compiler refuses a text; the message is its own.
    """
    if architecture is None:
        found: dict[int, Compiled] = {}
        for turn, each in enumerate(ARCHITECTURES):
            places = [i for i in range(len(texts)) if (i + 1) // 2 % 2 == turn]
            if places:
                found.update(zip(places, compile([texts[i] for i in places], each)))
        return [found[i] for i in range(len(texts))]
    program = PRELUDE + "".join(f"namespace space{i} {{\n{_named(text, f'kernel{i}')}\n}}\n"
                                for i, text in enumerate(texts))
    ptx, log = check(program, "-std=c++17", "-default-device", f"-arch=sm_{architecture}", "--ptxas-options=-v")
    code = dict(re.findall(r"\.entry (kernel\d+)\((.*?)\n}", ptx, re.S))
    notes = {part.partition("'")[0]: part for part in log.split("Compiling entry function '")[1:]}
    return [_compiled(notes[name], code[name]) for name in (f"kernel{i}" for i in range(len(texts)))]


# The name of a kernel, where it is declared.
_KERNEL = re.compile(r'(extern "C" __global__ void (?:__launch_bounds__\(\d+\) )?)\w+\(')


def _named(text: str, name: str) -> str:
    return _KERNEL.sub(rf"\1{name}(", text)


def _compiled(notes: str, code: str) -> Compiled:
    numbers = functools.partial(re.findall, string=notes)
    return Compiled(int(numbers(r"Used (\d+) registers")[0]), sum(map(int, numbers(r"(\d+) bytes spill"))),
                    max(map(int, numbers(r"(\d+) bytes stack frame")), default=0),
                    frozenset(re.findall(r"\b(?:ld|st)\.global[.\w]*", code)), _repeated(code))


def _repeated(code: str) -> list[str]:
    """Instructions between a label and a jump back to it."""
    lines = [line.strip() for line in code.splitlines()]
    labels = {line[:-1]: number for number, line in enumerate(lines) if line.endswith(":")}
    inside: set[int] = set()
    for number, line in enumerate(lines):
        jump = re.search(r"\bbra(?:\.uni)?\s+(\$\w+);", line)
        if jump and labels[jump[1]] < number:
            inside.update(range(labels[jump[1]], number))
    return [lines[number] for number in sorted(inside)]
