"""A rank and its watchdog: ``mpiexec -n 4 python -m opreg.distributed.start script.py``.

Launchers end all processes as soon as one has died, before the others can report which one and why. So the launcher's
process is a watchdog that runs the rank as its child, and gives the others time if the rank dies silently.
"""

from __future__ import annotations

import os
import runpy
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..core.processes import die_with
from ..errors import ArgumentError
from .launchers import RANKS, number_of_launcher
from .link import LINK, LOCK, PATIENCE, SINCE, STDIN, hold_rank, inherited_descriptor, wait_for_others
from .segments import remove_unused
from .watch import APART, LIFELINE, OVER, TOGETHER

__all__ = ["main"]

#: Seconds that the others have to notice a dead rank, and to end; and to disappear when all are ended.
_GRACE, _LAST = 10.0, 10.0
#: Linux's flag of processes that have not called exec since their fork.
_NO_EXEC = 0x40


def main(argv: Sequence[str]) -> int:
    """Run a program in a child process; returns its exit status.

    Parameters
    ----------
    argv : sequence of str
        A script, or ``-m`` and a module, and its arguments.
    """
    if not argv or argv == ["-m"]:
        raise ArgumentError("expected a script, or -m and a module")
    rank = number_of_launcher(RANKS, 0)
    _take_input(rank)
    link, lock = inherited_descriptor(LINK), inherited_descriptor(LOCK)
    if lock is not None:
        hold_rank(lock)
    if link is not None:  # with a link, the parent is MPICH's proxy, which has one thread
        die_with(os.getppid())
    since = int(os.environ.pop(SINCE, "0"))  # the time must be taken before another rank can create its memory
    ours, theirs = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if not child:
        os.close(ours)
        _run_as_child(argv, parent, theirs)
        return 0  # the interpreter ends as usual, with its exit handlers
    os.close(theirs)
    ended: list[int] = []  # signals that this process has sent to end the rank

    def end(number: int) -> None:
        if number not in ended:  # MPI's launcher may send the signal a second time
            ended.append(number)
            with suppress(ProcessLookupError):
                os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: end(number))
    if link is not None:
        threading.Thread(target=_end_with_launcher, args=(link, end), daemon=True).start()
    replaced = _is_replaced(child)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.set_blocking(ours, False)
    try:
        message = os.read(ours, 64)
    except BlockingIOError:  # a grandchild still holds the other end
        message = b""
    together = TOGETHER in message and APART not in message
    if code < 0 and -code not in ended:
        print(f"opreg: rank {rank}, process {child}, was ended by {signal.Signals(-code).name}",
              file=sys.stderr, flush=True)
    if not code and not replaced and not ended and (together or OVER not in message):
        print(f"opreg: rank {rank}, process {child}, has ended before its program did, as by os._exit(0)",
              file=sys.stderr, flush=True)
        code = 1
    if code:
        if together and not ended:  # the others were not notified; they will notice, and end all processes
            time.sleep(_GRACE)
        _end_group()
        if lock is not None and ended:  # the others may take time to end, and the launcher may be gone
            wait_for_others(lock)
            remove_unused(since, _LAST)
    return code if code >= 0 else 128 - code


def _run_as_child(argv: Sequence[str], parent: int, lifeline: int) -> None:
    """Run the program, and tell the parent over the pipe when it is over."""
    os.environ[LIFELINE] = str(lifeline)
    die_with(parent)
    pid = os.getpid()
    try:
        _run(list(argv))
    finally:
        if os.getpid() == pid:  # a forked child of the program also gets here, and must not do this
            # An interrupt comes twice, from MPI's launcher and from the parent: the second one would kill this
            # process before it has ended MPI, and the other ranks would wait forever.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with suppress(OSError):
                os.write(lifeline, OVER)


def _take_input(rank: int) -> None:
    """Give the launcher's input to rank 0, and an empty one to the others, which would wait forever."""
    number = inherited_descriptor(STDIN)
    if rank:
        source = os.open(os.devnull, os.O_RDONLY)
    elif number is not None:
        source = number
    else:
        return
    os.dup2(source, 0)
    for each in {source, number} - {0, None}:
        os.close(each)  # type: ignore[arg-type]


def _end_group() -> None:
    """End all processes of the rank's session, if the launcher gave it a separate session."""
    if os.getsid(0) == os.getpid():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(os.getpid(), signal.SIGTERM)


def _end_with_launcher(link: int, end: Callable[[int], None]) -> None:
    """Wait for the launcher's request, or its end, and end the rank, by force if needed."""
    with socket.socket(fileno=link) as connection:
        connection.recv(1)
    end(signal.SIGTERM)
    time.sleep(PATIENCE)
    end(signal.SIGKILL)


def _is_replaced(process: int) -> bool:
    """Wait until a child has ended; returns whether it had called exec, as far as the system tells."""
    try:
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        with open(f"/proc/{process}/stat", "rb") as file:
            return not int(file.read().rpartition(b")")[2].split()[6]) & _NO_EXEC
    except (AttributeError, OSError, ValueError, IndexError):
        return True


def _run(argv: list[str]) -> None:
    module = argv[0] == "-m"
    sys.argv = argv[module:]
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
