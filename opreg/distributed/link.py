"""Links between ``opreg launch`` and the watchdogs of its ranks: sockets, a lock, and the standard input.

No data is sent over the sockets. The launcher has one end, and all processes of the job inherit the other. A reader
notices when the other side has closed its end, or has died: then watchdogs end their ranks, and the launcher knows that
no process is left. MPICH's ``mpiexec`` ends all ranks as soon as one watchdog has failed, so watchdogs wait for each
other: each holds a shared lock of an inherited file while its rank lives. The launcher's standard input is inherited,
too, and becomes that of rank 0. ``mpiexec`` would read it, and fail if the program does not read everything.
"""

from __future__ import annotations

import os
import select
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress

from ..errors import OpError

try:
    import fcntl
except ModuleNotFoundError:
    raise OpError("processes are started and connected only on a system with POSIX, such as Linux") from None

__all__ = ["Launcher", "hold_rank", "inherited_descriptor", "wait_for_others", "LINK", "LOCK", "SINCE", "STDIN",
           "PATIENCE"]

#: Variables with the numbers of inherited file descriptors, each with the file's identity.
LINK, LOCK, STDIN = "OPREG_DISTRIBUTED_LINK", "OPREG_DISTRIBUTED_LOCK", "OPREG_DISTRIBUTED_STDIN"
#: The variable with the start time of the job, for removing shared memory that it leaves.
SINCE = "OPREG_DISTRIBUTED_SINCE"
#: Seconds that ranks have to end after a request, as schedulers give.
PATIENCE = 30


def _descriptor_identity(number: int) -> str:
    """A file descriptor with its file's identity, so that it is not confused with another one."""
    status = os.fstat(number)
    return f"{number}:{status.st_dev}:{status.st_ino}"


def inherited_descriptor(variable: str) -> int | None:
    """The file descriptor named by an environment variable, which is removed; None if this process has not inherited
    it."""
    with suppress(OSError, ValueError):
        text = os.environ.pop(variable, "")
        number = int(text.partition(":")[0])
        if text == _descriptor_identity(number):
            os.set_inheritable(number, False)
            return number
    return None


def hold_rank(lock: int) -> None:
    """Mark the rank of this process as alive."""
    fcntl.lockf(lock, fcntl.LOCK_SH)


def wait_for_others(lock: int) -> None:
    """Mark the rank as gone, and wait until no other one is alive."""
    fcntl.lockf(lock, fcntl.LOCK_UN)  # otherwise processes that wait at the same time would wait for each other
    fcntl.lockf(lock, fcntl.LOCK_EX)
    fcntl.lockf(lock, fcntl.LOCK_UN)


class Launcher:
    """The launcher's end of the link.

    Attributes
    ----------
    numbers : list of int
        File descriptors that the job inherits.
    environ : dict
        Variables that describe them.
    """

    def __init__(self, stdin: bool):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:  # one of the three standard descriptors was closed
            os.set_inheritable(number, True)
        os.close(number)
        self._own, self._theirs = socket.socketpair()
        self._lock = tempfile.TemporaryFile()  # noqa: SIM115 - the job inherits it
        self.numbers = [self._theirs.fileno(), self._lock.fileno()]
        self.environ: Mapping[str, str] = {LINK: _descriptor_identity(self.numbers[0]),
                                           LOCK: _descriptor_identity(self.numbers[1])}
        self._stdin: int | None = None
        if stdin:
            self._stdin = os.dup(0)
            self.numbers.append(self._stdin)
            self.environ = {**self.environ, STDIN: _descriptor_identity(self._stdin)}

    def given(self) -> None:
        """Close the job's ends in this process, after the job has inherited them."""
        self._theirs.close()
        self._lock.close()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def end(self) -> None:
        """Make the ranks end, including those not yet started."""
        self._own.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> None:
        """Wait until all processes with the other end are gone, for a limited time."""
        select.select([self._own], [], [], seconds)

    def close(self) -> None:
        """Close all descriptors that this process still holds."""
        self.given()
        self._own.close()

