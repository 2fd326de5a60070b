"""Removal of MPICH's named shared memory, which outlives processes that are killed."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import suppress

__all__ = ["forget_names", "current_time", "remove_unused"]

#: The folder of shared memory, and prefixes of MPICH's names.
_FOLDER, _MPICH = "/dev/shm", ("mpich_shm_", "mpich_vci_")
#: Seconds between two checks.
_PAUSE = 0.05
#: Nanoseconds by which file times may lag behind the clock: kernels use the time of their last tick.
_TICK = 10 ** 7


def current_time() -> int:
    """The time, in nanoseconds, for ``remove_unused``: shared memory made from now on is not older."""
    return time.time_ns() - _TICK


def _names(since: int) -> set[str]:
    """The paths of MPICH's memory that this user made since a time."""
    paths = set()
    with suppress(OSError), os.scandir(_FOLDER) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if entry.name.startswith(_MPICH) and status.st_uid == os.getuid() and status.st_ctime_ns >= since:
                    paths.add(entry.path)
    return paths


def forget_names() -> None:
    """Remove the names of the memory that this process has mapped.

    The memory itself is freed with the last process that has mapped it, however that ends. All processes that share it
    must have mapped it by now; MPICH opens names only during its start.
    """
    for path in _mapped_paths("self"):
        with suppress(OSError):  # another rank has removed it first
            os.unlink(path)


def remove_unused(since: int, seconds: float = 0.0) -> None:
    """Remove names of memory that was made since a time and is neither open nor mapped in any process.

    Parameters
    ----------
    since : int
        Result of ``current_time`` before the start of the job.
    seconds : float
        Time during which to check repeatedly, while other processes are ending. Only the pauses between checks count,
        so a busy machine does not check less often.
    """
    for pauses in itertools.count():
        unused = _names(since)
        if not unused:
            break
        used: set[str] = set()
        for process in filter(str.isdecimal, os.listdir("/proc")):
            used.update(_open_segment(process),
                        _mapped_paths(process))  # mapped files need not be open, so maps are checked last
        for path in unused - used:
            with suppress(OSError):
                os.unlink(path)
        if pauses * _PAUSE >= seconds:
            break
        time.sleep(_PAUSE)


def _open_segment(process: str) -> Iterator[str]:
    with suppress(OSError):  # it has ended, or belongs to another user
        for number in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/{process}/fd/{number}")


def _mapped_paths(process: str) -> Iterator[str]:
    """The paths of MPICH's memory that a process has mapped."""
    with suppress(OSError), open(f"/proc/{process}/maps", "rb") as lines:
        for line in lines:
            path = os.fsdecode(line).rstrip("\n").partition("/")
            if (path[1] + path[2]).startswith(tuple(f"{_FOLDER}/{name}" for name in _MPICH)):
                yield path[1] + path[2]
