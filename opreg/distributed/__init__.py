"""Programs of several processes: groups of ranks over MPI and NCCL, which are loaded at first use.

``world`` is the group of all processes. A program without a launcher has a world of one, without any library;
``mpiexec``, ``srun`` or ``opreg launch`` start it several times, with a world of that size over MPI.

Examples
--------
>>> world().size, world().allreduce(np.ones(2)).tolist()
(1, [1.0, 1.0])
"""

from __future__ import annotations

import os
import sys

import numpy as np

from ..errors import ArgumentError, OpError, RankError, did_you_mean
from .groups import REDUCTIONS, Call, Group, Request
from .launchers import count_processes
from .mpi import MpiGroup
from .segments import forget_names
from .watch import Watch, set_timeout, timeout
from .window import Window

__all__ = ["world", "group", "add_group", "drop_group", "Group", "Request", "Call", "Window", "REDUCTIONS", "RankError",
           "timeout", "set_timeout"]

#: Groups by the names that operators use.
_GROUPS: dict[str, Group] = {}
#: Other names of the world in MindSpore's programs.
_WORLDS = ("world", "nccl_world_group", "hccl_world_group", "mccl_world_group")


def world() -> Group:
    """The group of all processes; the first call connects them.

    Raises
    ------
    OpError
        When a launcher started several processes, and MPI is missing or is not the launcher's.
    RankError
        When ranks run different versions.
    """
    result = _GROUPS.get("world")
    if result is None:
        count = count_processes(os.environ)
        result = _GROUPS["world"] = Group() if count == 1 and "mpi4py.MPI" not in sys.modules else _over_mpi(count)
    return result


def group(name: str = "world") -> Group:
    """A group by its name.

    Raises
    ------
    ArgumentError
        When there is no such group.
    """
    if name in _WORLDS:
        return world()
    if name not in _GROUPS:
        raise ArgumentError(f"there is no group {name!r}. {did_you_mean(name, [*_GROUPS, 'world'])}")
    return _GROUPS[name]


def add_group(group: Group) -> Group:
    """Register a group, so that operators find it by name; returns it."""
    if group.name in _WORLDS:
        raise ArgumentError(f"{group.name!r} is the name of the group of all processes")
    _GROUPS[group.name] = group
    return group


def drop_group(name: str) -> None:
    """Remove a group by its name.

    Raises
    ------
    ArgumentError
        When there is no such group, or it is the world.
    """
    if name in _WORLDS:
        raise ArgumentError(f"{name!r} is the group of all processes, which cannot be freed")
    _GROUPS.pop(group(name).name)


def _over_mpi(count: int) -> Group:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise OpError(f"{count} processes were started, and MPI is not here ({error}). Install opreg[mpi], which "
                      "brings mpi4py and MPICH; on a cluster, mpi4py with the cluster's MPI") from None
    if MPI.COMM_WORLD.size == 1:
        if count > 1:
            raise OpError(f"{count} processes were started by another MPI than mpi4py uses, which counts one: "
                          f"{MPI.Get_library_version().splitlines()[0]}. opreg launch starts programs by the right one")
        return Group()
    watch = Watch(MPI.COMM_WORLD.Dup())
    forget_names()  # names of memory that all ranks have mapped by now
    group = MpiGroup(MPI, MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup(), watch, range(MPI.COMM_WORLD.size), "world")
    group.agree("the versions", _versions())
    return group


def _versions() -> str:
    version = getattr(sys.modules["opreg"], "__version__", "?")
    return f"opreg {version}, NumPy {np.__version__}, Python {sys.version.split()[0]}, {sys.byteorder} endian"


def __dir__() -> list[str]:
    return sorted(__all__)
