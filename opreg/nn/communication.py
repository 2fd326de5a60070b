"""Communication: the processes of a program by MindSpore's names, over ``opreg.distributed``.

Examples
--------
>>> from opreg.communication import init, get_rank, get_group_size
>>> init()
>>> get_rank(), get_group_size()
(0, 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..aliases import inner
from ..cells.parameter import Parameter
from ..cells.tensor import Tensor
from ..core.named_errors import name_errors
from ..distributed import Group, add_group, drop_group, group, world
from ..distributed.launchers import LOCAL_RANKS, LOCAL_SIZES, number_of_launcher
from ..errors import ArgumentError

__all__ = ["GlobalComm", "init", "release", "get_rank", "get_group_size", "get_local_rank", "get_local_rank_size",
           "get_world_rank_from_group_rank", "get_group_rank_from_world_rank", "create_group", "destroy_group",
           "get_process_group_ranks", "broadcast_parameters", "HCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP",
           "MCCL_WORLD_COMM_GROUP"]

if not TYPE_CHECKING:  # MindSpore has these names in modules of a package
    __getattr__ = inner(__name__)

#: Names of the group of all processes; they mean the same here.
HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"

_BACKENDS = (None, "mccl", "nccl", "mpi")


class GlobalComm:
    """Names of the group of all processes, which programs read."""

    WORLD_COMM_GROUP = "world"
    BACKEND = "mpi"
    INITED = False


def init(backend_name: str | None = None) -> None:
    """Connect to the other processes, which a launcher has started.

    Parameters
    ----------
    backend_name : {"mccl", "nccl", "mpi"}, optional
        Accepted by name; the device of the arrays decides which backend is used.

    Raises
    ------
    ArgumentError
        For ``hccl``: there are no Ascend devices here.
    """
    if backend_name not in _BACKENDS:
        raise ArgumentError(f"communication.init: there is no backend {backend_name!r}; expected 'mccl' or 'nccl', "
                            "which are MPI on CPUs and NCCL between GPUs")
    world()
    GlobalComm.INITED = True


def release() -> None:
    """Mark the communication as not initialized; the processes stay connected until they end."""
    GlobalComm.INITED = False


def _group(name: str) -> Group:
    if not isinstance(name, str):
        raise ArgumentError(f"communication: group must be the name of a group, got {type(name).__name__}")
    return group(name)


def get_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The rank of this process in a group.

    Examples
    --------
    >>> get_rank()
    0
    """
    return _group(group).rank


def get_group_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Number of processes of a group.

    Examples
    --------
    >>> get_group_size()
    1
    """
    return _group(group).size


def get_local_rank(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """The rank of this process on its machine, from the launcher; else its rank in the group."""
    return number_of_launcher(LOCAL_RANKS, _group(group).rank)


def get_local_rank_size(group: str = GlobalComm.WORLD_COMM_GROUP) -> int:
    """Number of processes on this machine, from the launcher; else the size of the group."""
    return number_of_launcher(LOCAL_SIZES, _group(group).size)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The world rank of a process, given its rank in a group."""
    ranks = _group(group).ranks
    if not 0 <= group_rank_id < len(ranks):
        raise ArgumentError(f"communication: the group {group!r} has ranks 0 to {len(ranks) - 1}, got {group_rank_id}")
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a process, given its world rank."""
    ranks = _group(group).ranks
    if world_rank_id not in ranks:
        raise ArgumentError(f"communication: rank {world_rank_id} is not in the group {group!r}, which has "
                            f"{', '.join(map(str, ranks))}")
    return ranks.index(world_rank_id)


def get_process_group_ranks(group: str = GlobalComm.WORLD_COMM_GROUP) -> list[int]:
    """World ranks of the processes of a group."""
    return list(_group(group).ranks)


def create_group(group: str, rank_ids: Sequence[int], options: object = None) -> None:
    """Create a group of processes by name; each of its processes calls this.

    Parameters
    ----------
    group : str
        The name.
    rank_ids : list of int
        World ranks of its processes, including this one.
    """
    if world().rank not in rank_ids:
        raise ArgumentError(f"create_group: rank {world().rank} is not among the ranks of {group!r}, "
                            f"{', '.join(map(str, rank_ids))}")
    group_made = world().create(rank_ids, group)
    assert group_made is not None
    add_group(group_made)


def destroy_group(group: str) -> None:
    """Delete a group."""
    drop_group(group)


def broadcast_parameters(parameters: Iterable[Parameter], root: int = 0, group: str = GlobalComm.WORLD_COMM_GROUP
                         ) -> None:
    """Copy the weights of one process to all; names, shapes and dtypes are compared first.

    Raises
    ------
    RankError
        When the parameters of ranks differ in name, shape or dtype.
    """
    parameters, ranks = list(parameters), _group(group)
    ranks.agree("the parameters", "\n".join(f"{each.name}: {each.dtype} {each.shape}" for each in parameters))
    for parameter in parameters:
        parameter.set_data(Tensor(ranks.broadcast(parameter.asnumpy(), root)))


name_errors(__name__, globals(), __all__)
