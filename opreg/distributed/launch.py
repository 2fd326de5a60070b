"""How a program is started several times on this machine: which command, in which environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ..core.processor import processor
from ..errors import OpError

__all__ = ["mpiexec", "command", "environment", "told", "RANKS", "SIZES", "LOCAL_RANKS", "LOCAL_SIZES"]

#: What launchers tell each process: which it is, how many there are, and both for its machine.
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE")

#: What libraries take for the number of their threads.
_THREADS = ("OPREG_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def told(names: Sequence[str], default: int) -> int:
    """What a launcher says, by any of the names that launchers have for it.

    Examples
    --------
    >>> told(("NOBODY_SAYS",), 7)
    7
    """
    return int(next((os.environ[name] for name in names if name in os.environ), default))


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
