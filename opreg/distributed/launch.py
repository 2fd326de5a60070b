"""Launching a program several times on this machine: the command, its environment, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from ..core.processor import processor
from ..errors import ArgumentError, OpError
from . import segments
from .link import PATIENCE, SINCE, Launcher

__all__ = ["mpiexec", "command", "environment", "run"]

#: Largest number of processes: for each core, and in total.
_BY_CORE, _MOST = 16, 128
#: Seconds that processes have to disappear after their job has ended.
_LAST = 5.0

#: Variables from which libraries read their number of threads.
_THREADS = ("OPREG_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def mpiexec() -> str:
    """The path of the launcher that belongs to the MPI of this Python, else of the first one found.

    Raises
    ------
    OpError
        When MPI or mpi4py is missing; the message tells how to install them.
    """
    beside_python = Path(sys.executable).parent / "mpiexec"
    path = str(beside_python) if beside_python.exists() else shutil.which("mpiexec")
    if path is None or find_spec("mpi4py") is None:
        raise OpError(f"{'mpiexec' if path is None else 'mpi4py'} is missing: pip install 'opreg[mpi]' brings mpi4py "
                      "and MPICH; on a cluster with its own MPI, load that one and pip install mpi4py")
    return path


def command(count: int, program: Sequence[str]) -> list[str]:
    """The command that starts a program ``count`` times.

    Parameters
    ----------
    count : int
        Number of processes.
    program : sequence of str
        A script, or ``-m`` and a module, and its arguments.
    """
    launcher = mpiexec()
    more = ["--oversubscribe"] if _is_open_mpi(launcher) else []
    return [launcher, *more, "-n", str(count), sys.executable, "-m", "opreg.distributed.start", *program]


def _is_open_mpi(launcher: str) -> bool:
    return Path(launcher).with_name("ompi_info").exists()


def environment(count: int, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the processes: cores are divided among them, unless the number of threads is set.

    Examples
    --------
    >>> environment(10 ** 6, {"OMP_NUM_THREADS": "3"})["OMP_NUM_THREADS"]
    '3'
    >>> environment(10 ** 6, {})["OMP_NUM_THREADS"]
    '1'
    """
    if any(name in environ for name in _THREADS):
        return dict(environ)
    threads = str(max(1, processor().cores // count))
    return {**environ, **dict.fromkeys(_THREADS, threads)}


def run(count: int, program: Sequence[str], environ: Mapping[str, str]) -> int:
    """Start a program ``count`` times, and wait until all processes have ended.

    A signal to this process is forwarded to the ranks, which have half a minute to end, or until the next signal. If
    this process is killed, they are killed. Shared memory left by a failed job is removed.

    Parameters
    ----------
    count : int
        Number of processes.
    program : sequence of str
        A script, or ``-m`` and a module, and its arguments.
    environ : dict of str
        The environment; cores are divided among the processes.

    Returns
    -------
    int
        Exit status of the job; 128 plus the number of a signal that ended it.

    Raises
    ------
    ArgumentError
        When ``count`` is not positive, or too large.
    OpError
        When MPI is missing.
    """
    most = max(_MOST, _BY_CORE * processor().cores)
    if not 1 <= count <= most:
        raise ArgumentError(f"{count} processes: expected 1 to {most} on this machine, which has "
                            f"{processor().cores} cores")
    words, since = command(count, program), segments.current_time()
    open_mpi = _is_open_mpi(words[0])  # it passes no file descriptors on, and reads its own input
    link = Launcher(stdin=not open_mpi)
    try:
        with _ForwardedSignals(link) as forwarded:
            process = subprocess.Popen(words, stdin=None if open_mpi else subprocess.DEVNULL, pass_fds=link.numbers,
                                       env={**environment(count, environ), **link.environ, SINCE: str(since)})
            link.given()
            forwarded.begin(process)
            code = process.wait()
        if code or forwarded.received:
            link.wait(_LAST)
            segments.remove_unused(since)
    finally:
        link.close()
    return 128 + forwarded.received[0] if forwarded.received else code if code >= 0 else 128 - code


class _ForwardedSignals:
    """Forwards signals from the launcher to the job, while the job runs.

    Attributes
    ----------
    received : list of int
        Received signals.
    """

    def __init__(self, link: Launcher) -> None:
        self.received: list[int] = []
        self._link = link
        self._process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> _ForwardedSignals:
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):  # a system may lack some of them
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup requires
                self._before[number] = signal.signal(number, self._note)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._kill)
        return self

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        """Forward received and future signals to this process."""
        signals = set(self._before)
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        self._process = process
        for time, number in enumerate(self.received):
            self._pass_on(number, again=time > 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

    def __exit__(self, *error: object) -> None:
        signal.alarm(0)
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received.append(number)
        if self._process is not None:
            self._pass_on(number, again=len(self.received) > 1)

    def _pass_on(self, number: int, again: bool) -> None:
        assert self._process is not None
        if again:
            self._process.kill()
        elif number != signal.SIGINT:
            self._link.end()
            self._process.terminate()  # it may lose a signal while it is still starting processes
            signal.alarm(PATIENCE + 1)
        elif not _at_terminal():
            self._process.send_signal(number)

    def _kill(self, number: int, frame: FrameType | None) -> None:
        assert self._process is not None
        self._process.kill()


def _at_terminal() -> bool:
    """Whether the terminal interrupts this process and its children together."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
