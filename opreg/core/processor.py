"""The processor that this process runs on: its name, the number of cores the process may use, and the cache sizes per
thread.

Block sizes are computed from it, so that they fit this machine and not the one they were measured on. It is read once
per process, when the first block is cut: from files on Linux, by ``sysctl`` on macOS. Values that the system does not
give, or impossible ones, are taken from ``USUAL``. Reading never fails.

The environment variable ``OPREG_PROCESSOR`` overrides what was read, to compute as a smaller machine would: ``"l2=256K
l3=4M cores=1"``.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from ..errors import ArgumentError, did_you_mean

__all__ = ["FEATURES", "USUAL", "Processor", "processor", "read"]


class Processor(NamedTuple):
    """The properties of a processor that choices here depend on.

    Attributes
    ----------
    name : str
        The name that its maker or the system gives it.
    cores : int
        How many logical cores this process may use, by its affinity and the quota of its control group; two hardware
        threads of one core count as two.
    l1, l2 : int
        Bytes of first-level data cache, and of second-level cache, per thread when as many threads run as there are
        cores.
    l3 : int
        Bytes of the whole last-level cache; zero if there is none.
    features : tuple of str
        Names among ``FEATURES``.
    """

    name: str
    cores: int
    l1: int
    l2: int
    l3: int
    features: tuple[str, ...]


#: SIMD instruction sets, by Linux's names.
FEATURES = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
            "amx_bf16", "asimd", "sve", "sve2")
#: Values assumed where the system gives none.
USUAL = Processor("", 1, 32 << 10, 1 << 20, 16 << 20, ())

# Credible cache sizes: others are errors, or come from a simulator.
_BOUNDS = {"l1": (4 << 10, 4 << 20), "l2": (64 << 10, 256 << 20), "l3": (0, 16 << 30)}
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PAGE = 1 << 12
# How many bytes of a file are read at most, and how many levels of nested folders are searched at most.
_LONGEST, _DEEPEST = 1 << 14, 32


@functools.cache
def processor() -> Processor:
    """This processor, or the one that ``OPREG_PROCESSOR`` describes.

    Raises
    ------
    ArgumentError
        When the variable is not a list of sizes.

    Examples
    --------
    >>> processor().cores >= 1 and processor().l2 >= 1 << 16
    True
    """
    return _override(read(), os.environ.get("OPREG_PROCESSOR", ""))


def read(root: str | os.PathLike[str] = "/") -> Processor:
    """The processor as the system describes it; on Linux by files under ``root``."""
    allowed = _allowed_cores()
    folder = os.fspath(root)  # text, since loading pathlib takes a thirtieth of the time of all operators
    cache_sizes: dict[str, int] = {}
    if sys.platform == "darwin":
        name, cache_sizes, features = _read_sysctl()
    else:
        name, features = _read_cpuinfo(_text(f"{folder}/proc/cpuinfo"))
        # A processor with two kinds of cores numbers those of one kind before the others; blocks must fit both.
        for cpu in dict.fromkeys((allowed[0], allowed[-1])):
            for level, size in _caches(f"{folder}/sys/devices/system/cpu/cpu{cpu}/cache", frozenset(allowed)):
                cache_sizes[level] = min(size, cache_sizes.get(level, size))
    sizes = {level: cache_sizes.get(level, getattr(USUAL, level)) for level in _BOUNDS}
    if "l2" in cache_sizes and "l3" not in cache_sizes:
        sizes["l3"] = 0
    return Processor(name or os.environ.get("PROCESSOR_IDENTIFIER", "") or _machine(),
                     min(len(allowed), _quota(folder)), features=features, **sizes)


def _machine() -> str:
    """The kind of processor, for one without a name."""
    return os.uname().machine if hasattr(os, "uname") else ""


def _allowed_cores() -> list[int]:
    """The numbers of the logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        with suppress(OSError):
            return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _text(path: str) -> str:
    """The beginning of a small file; empty if it cannot be read."""
    with suppress(OSError, ValueError), open(path, "rb") as file:
        return file.read(_LONGEST).decode("utf-8", "replace")
    return ""


def _size(text: str) -> int | None:
    """The number of bytes in text such as ``2048K``; None if it is not one."""
    match = re.fullmatch(r"([0-9]{1,12})([KMG]?)", text.strip())
    return int(match[1]) * _UNITS[match[2]] if match else None


def _whole_number(text: str) -> int | None:
    """A positive whole number; None for other text."""
    return (_size(text) or None) if text.strip().isdigit() else None


def _is_plausible(level: str, size: int | None) -> bool:
    low, high = _BOUNDS[level]
    return size is not None and low <= size <= high


# ------------------------------------------------------------------------------------------------- Linux


def _read_cpuinfo(text: str) -> tuple[str, tuple[str, ...]]:
    """Name and features of the first processor listed."""
    words: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        words.setdefault(key.strip(), " ".join(value.split()))
    parts = [words[key] for key in ("CPU implementer", "CPU part") if words.get(key)]  # Arm's, which have no names
    flags = {*words.get("flags", "").split(), *words.get("Features", "").split()}
    return (words.get("model name") or " ".join(parts))[:100], tuple([name for name in FEATURES if name in flags])


def _caches(folder: str, allowed: frozenset[int]) -> Iterator[tuple[str, int]]:
    """Levels and sizes of one core's caches; those of the first two levels are divided by the cores that share them."""
    for index in range(_DEEPEST):
        level = f"l{_text(f'{folder}/index{index}/level').strip()}"
        if level == "l":
            return
        if level not in _BOUNDS or _text(f"{folder}/index{index}/type").strip() not in ("Data", "Unified"):
            continue
        size = _size(_text(f"{folder}/index{index}/size"))
        if size is not None and level != "l3":
            sharing = len(allowed.intersection(_numbers_in(_text(f"{folder}/index{index}/shared_cpu_list"))))
            size = size // max(sharing, 1) // _PAGE * _PAGE
        if size is not None and _is_plausible(level, size):
            yield level, size


def _numbers_in(text: str) -> Iterable[int]:
    """The numbers in ``0-3,8``."""
    for part in text.strip().split(","):
        ends = [_size(end) for end in part.split("-")]
        if ends[0] is not None and ends[-1] is not None:
            yield from range(ends[0], min(ends[-1], ends[0] + _LONGEST) + 1)


def _quota(root: str) -> int:
    """Number of cores whose time the control groups of this process allow, rounded up."""
    least = math.inf
    for line in _text(f"{root}/proc/self/cgroup").splitlines():
        _, _, fields = line.partition(":")
        controllers, _, path = fields.partition(":")
        parts = path.strip().strip("/").split("/")
        if ".." in parts:
            continue
        mounts = ("", "unified") if not controllers else (controllers,) if "cpu" in controllers.split(",") else ()
        groups = ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]
        for mount, group in itertools.product(mounts, groups[:_DEEPEST]):
            folder = f"{root}/sys/fs/cgroup/{mount}/{group}"
            if controllers:
                words = [_text(f"{folder}/cpu.cfs_{word}_us") for word in ("quota", "period")]
            else:
                words = _text(f"{folder}/cpu.max").split()
            time, period = map(_whole_number, words if len(words) == 2 else ("", ""))
            if time and period:
                least = min(least, math.ceil(time / period))
    return max(1, int(min(least, 1 << 20)))


# ------------------------------------------------------------------------------------------------- macOS


def _read_sysctl() -> tuple[str, dict[str, int], tuple[str, ...]]:
    """Name, caches and features; where there are two kinds of cores, the smaller caches count."""
    cache_sizes: dict[str, int] = {}
    for level, key, by in (("l1", "l1dcachesize", ""), ("l2", "l2cachesize", "cpusperl2"),
                           ("l3", "l3cachesize", "")):
        for kind in ("perflevel0.", "perflevel1.", ""):
            size = _sysctl(f"hw.{kind}{key}")
            sharing = _sysctl(f"hw.{kind}{by}") if by and kind else None
            if isinstance(size, int) and (kind or level not in cache_sizes):
                size = size // (sharing if isinstance(sharing, int) and sharing else 1) // _PAGE * _PAGE
                if _is_plausible(level, size):
                    cache_sizes[level] = min(size, cache_sizes.get(level, size))
    name = _sysctl("machdep.cpu.brand_string", text=True)
    features = ("asimd",) if _machine() == "arm64" else tuple([
        word for word, key in (("avx2", "avx2_0"), ("avx512f", "avx512f")) if _sysctl(f"hw.optional.{key}")])
    return name if isinstance(name, str) else "", cache_sizes, features


def _sysctl(name: str, text: bool = False) -> int | str | None:
    """The value of a ``sysctl`` name; None if the system has none."""
    with suppress(OSError, AttributeError, ValueError):
        function = ctypes.CDLL(None).sysctlbyname
        buffer = ctypes.create_string_buffer(256)
        length = ctypes.c_size_t(len(buffer))
        if not function(name.encode(), buffer, ctypes.byref(length), None, ctypes.c_size_t(0)):
            raw = buffer.raw[:length.value]
            return raw.rstrip(b"\0").decode("utf-8", "replace") if text else int.from_bytes(raw, sys.byteorder)
    return None


# ------------------------------------------------------------------------------------------------- overridden


def _override(processor: Processor, text: str) -> Processor:
    """A processor with some values replaced by those in a text such as ``"l2=256K cores=1"``."""
    values: dict[str, int] = {}
    for word in text.replace(",", " ").split():
        key, _, value = word.partition("=")
        if key not in ("cores", *_BOUNDS):
            raise ArgumentError(f"OPREG_PROCESSOR: {word!r}. {did_you_mean(key, ('cores', *_BOUNDS))}")
        size = _size(value.upper())
        if not (1 <= (size or 0) <= _LONGEST if key == "cores" else _is_plausible(key, size)):
            low, high = _BOUNDS.get(key, (1, _LONGEST))
            raise ArgumentError(f"OPREG_PROCESSOR: {word!r}: expected from {low} to {high}, as 512K or 2M")
        assert size is not None
        values[key] = size
    return processor._replace(**values)  # type: ignore[arg-type]
