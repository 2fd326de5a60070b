"""A rank and who looks after it: ``mpiexec -n 4 python -m opreg.distributed.start script.py``.

Launchers end all processes as soon as one has died, before the others could say which it was and why they stop. So the
process that a launcher knows runs the rank as its child, and where that dies without a word gives the others time.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import time
from collections.abc import Sequence

from ..errors import ArgumentError
from .launchers import RANKS, told
from .watch import LIFELINE, TOGETHER

__all__ = ["main"]

#: Seconds that the others have to notice that a rank is gone, and to end.
_GRACE = 10.0
_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> int:
    """Run a program in a process of its own; what it ends with.

    Parameters
    ----------
    argv : sequence of str
        A script, or ``-m`` and a module, and arguments of its own.
    """
    if not argv or argv == ["-m"]:
        raise ArgumentError("expected a script, or -m and a module")
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        os.environ[LIFELINE] = str(theirs)
        _die_with_parent()
        _run(list(argv))
        return 0  # the interpreter ends as it does, with what is registered for that
    os.close(theirs)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(child, number))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.set_blocking(ours, False)
    try:
        last = os.read(ours, 16)[-1:]
    except BlockingIOError:  # a grandchild has the other end
        last = b""
    if code < 0:
        print(f"opreg: rank {told(RANKS, 0)}, process {child}, was ended by {signal.Signals(-code).name}",
              file=sys.stderr, flush=True)
    if code and last == TOGETHER:  # and has not told the others, who will notice, and end all processes
        time.sleep(_GRACE)
    return code if code >= 0 else 128 - code


def _die_with_parent() -> None:
    """Have the system end this process when its parent is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


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
