"""Links between ``opreg launch`` and the processes that look after its ranks: sockets, a lock, and the input.

Nothing is sent over the sockets. The launcher has one, and all processes of the job inherit the other. A reader
finds out that the other side has closed its end, or is gone, however it ended: the processes that look after ranks
then end these, and the launcher knows that no process is left. MPICH's ``mpiexec`` ends all ranks as soon as one of
the processes that look after them has failed, so these wait for each other: each holds a shared lock of an
inherited file while its rank lives. The launcher's input is inherited as well, and becomes that of rank 0.
``mpiexec`` would read it, and fail where a program does not read as much.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress

__all__ = ["Launcher", "hold", "inherited", "wait_for_others", "LINK", "LOCK", "SINCE", "STDIN", "PATIENCE"]

#: The variables that say which file descriptors they are, each with the file it stands for.
LINK, LOCK, STDIN = "OPREG_DISTRIBUTED_LINK", "OPREG_DISTRIBUTED_LOCK", "OPREG_DISTRIBUTED_STDIN"
#: The variable with the time when the job began, for who removes shared memory that it leaves.
SINCE = "OPREG_DISTRIBUTED_SINCE"
#: Seconds that ranks have to end when they are told to, as schedulers give.
PATIENCE = 30


def _described(number: int) -> str:
    """A file descriptor, and the file it stands for, so that nobody takes another one for it."""
    status = os.fstat(number)
    return f"{number}:{status.st_dev}:{status.st_ino}"


def inherited(variable: str) -> int | None:
    """The file descriptor that a variable of the environment names, and taken out of there; None where this process has
    not inherited it."""
    with suppress(OSError, ValueError):
        text = os.environ.pop(variable, "")
        number = int(text.partition(":")[0])
        if text == _described(number):
            os.set_inheritable(number, False)
            return number
    return None


def hold(lock: int) -> None:
    """Say that the rank that this process looks after lives."""
    fcntl.lockf(lock, fcntl.LOCK_SH)


def wait_for_others(lock: int) -> None:
    """Say that the rank is gone, and wait until no other one lives."""
    fcntl.lockf(lock, fcntl.LOCK_UN)  # else those who wait at the same time would wait for each other
    fcntl.lockf(lock, fcntl.LOCK_EX)
    fcntl.lockf(lock, fcntl.LOCK_UN)


class Launcher:
    """The launcher's end.

    Attributes
    ----------
    numbers : list of int
        File descriptors that the job inherits.
    environ : dict
        Variables that say so.
    """

    def __init__(self, stdin: bool):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:  # one of the three that programs expect was closed
            os.set_inheritable(number, True)
        os.close(number)
        self._own, self._theirs = socket.socketpair()
        self._lock = tempfile.TemporaryFile()  # noqa: SIM115 - the job inherits it
        self.numbers = [self._theirs.fileno(), self._lock.fileno()]
        self.environ: Mapping[str, str] = {LINK: _described(self.numbers[0]), LOCK: _described(self.numbers[1])}
        self._stdin: int | None = None
        if stdin:
            self._stdin = os.dup(0)
            self.numbers.append(self._stdin)
            self.environ = {**self.environ, STDIN: _described(self._stdin)}

    def given(self) -> None:
        """The job has inherited its ends: close them in this process."""
        self._theirs.close()
        self._lock.close()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def end(self) -> None:
        """Have the ranks ended, also those that are yet to be started."""
        self._own.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> None:
        """Wait until all that have inherited the other end are gone, but no longer than this."""
        select.select([self._own], [], [], seconds)

    def close(self) -> None:
        """Close all that this process still has of it."""
        self.given()
        self._own.close()

