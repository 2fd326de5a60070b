"""How a program is started several times on this machine: which command, in which environment."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..core.processor import processor
from ..errors import OpError

__all__ = ["mpiexec", "command", "environment"]

#: What libraries take for the number of their threads.
_THREADS = ("OPREG_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def mpiexec() -> str:
    """The path of the launcher that belongs to this Python's MPI, else of the first that is found.

    Raises
    ------
    OpError
        When MPI or mpi4py is missing; it says how to install them.
    """
    own = Path(sys.executable).parent / "mpiexec"
    found = str(own) if own.exists() else shutil.which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        raise OpError(f"{'mpiexec' if found is None else 'mpi4py'} is missing: pip install 'opreg[mpi]' brings mpi4py "
                      "and MPICH; where a cluster has an MPI of its own, load it and pip install mpi4py")
    return found


def command(count: int, program: Sequence[str]) -> list[str]:
    """What starts a program ``count`` times.

    Parameters
    ----------
    count : int
        How many processes.
    program : sequence of str
        A script, or ``-m`` and a module, and arguments of its own.
    """
    launcher = mpiexec()
    more = ["--oversubscribe"] if Path(launcher).with_name("ompi_info").exists() else []
    return [launcher, *more, "-n", str(count), sys.executable, "-m", "opreg.distributed.start", *program]


def environment(count: int, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the processes: the cores are divided among them, where nobody has said how many threads.

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
