"""Rank and size of a process in the world and on its machine, read from the launcher's environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ..core import environment

__all__ = ["number_of_launcher", "count_processes", "RANKS", "SIZES", "LOCAL_RANKS", "LOCAL_SIZES"]

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE")


def number_of_launcher(names: Sequence[str], default: int) -> int:
    """A number that a launcher set, under any of these names.

    Examples
    --------
    >>> number_of_launcher(("NOBODY_SAYS",), 7)
    7
    """
    return next((_whole(os.environ, name) for name in names if name in os.environ), default)


def count_processes(environ: Mapping[str, str]) -> int:
    """Number of processes according to the launcher; 1 without a launcher.

    Examples
    --------
    >>> count_processes({"PMI_SIZE": "4"}), count_processes({})
    (4, 1)
    """
    slurm = _whole(environ, "SLURM_NTASKS") if "SLURM_PROCID" in environ and "SLURM_STEP_ID" in environ else 1
    return max([slurm, *(_whole(environ, name) for name in SIZES if name in environ)])


def _whole(environ: Mapping[str, str], name: str) -> int:
    return int(environment.number(name, 1, -1, True, environ))
