"""Communication primitives: each is a registered operator of a process group, which is given by name."""

from __future__ import annotations

from ...cells.tensor import Tensor
from ...cells.typing import TensorDType, TensorLike
from ...core.registry import ops
from ...distributed import REDUCTIONS
from ...distributed import group as find
from ...errors import ArgumentError, ShapeError
from . import array, creation
from .lift import tensor
from .primitive import Primitive

__all__ = ["ReduceOp", "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "Send", "Receive",
           "Barrier"]


class ReduceOp:
    """Names of reductions over processes."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "avg"


class _Collective(Primitive):
    """Base of the primitives of a group."""

    def __init__(self, group: str, **settings: object):
        super().__init__(type(self).__name__)
        if not isinstance(group, str):
            raise ArgumentError(f"{self.name}: group must be the name of a group, got {type(group).__name__}")
        op = settings.get("op", "sum")
        if not isinstance(op, str):
            raise ArgumentError(f"{self.name}: op must be a str, got {type(op).__name__}")
        if op not in (*REDUCTIONS, "avg"):
            raise ArgumentError(f"{self.name}: op must be one of sum, max, min, prod and avg, got {op!r}")
        self.group = group
        self.attrs = {**settings, "group": group}
        for name, value in settings.items():
            setattr(self, name, value)


class AllReduce(_Collective):
    """The sum, or the reduction ``op``, of the tensors of all processes of a group, on each of them.

    Parameters
    ----------
    op : {"sum", "max", "min", "prod", "avg"}
    group : str

    Examples
    --------
    >>> print(AllReduce()(Tensor([1.0, 2.0])))
    [1. 2.]
    """

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = "world"):
        super().__init__(group, op=op)

    def __call__(self, input_x: TensorLike) -> Tensor:
        return ops.AllReduce(tensor(input_x), op=self.op, group=self.group)


class AllGather(_Collective):
    """Concatenate the tensors of all processes of a group along the first axis, in the order of ranks."""

    def __init__(self, group: str = "world"):
        super().__init__(group)

    def __call__(self, input_x: TensorLike) -> Tensor:
        return ops.AllGather(tensor(input_x), group=self.group)


class ReduceScatter(_Collective):
    """``AllReduce``, whose result is divided evenly along the first axis: each process gets its part."""

    op: str

    def __init__(self, op: str = ReduceOp.SUM, group: str = "world"):
        super().__init__(group, op=op)

    def __call__(self, input_x: TensorLike) -> Tensor:
        return ops.ReduceScatter(tensor(input_x), op=self.op, group=self.group)


class Broadcast(_Collective):
    """Copy the tensors of one process of a group to all; called with a tuple, it returns a tuple.

    Parameters
    ----------
    root_rank : int
        Rank of that process in the group.
    group : str

    Examples
    --------
    >>> print(*Broadcast(0)((Tensor([1.0]), Tensor([2.0]))))
    [1.] [2.]
    """

    root_rank: int

    def __init__(self, root_rank: int, group: str = "world"):
        super().__init__(group, root_rank=root_rank)

    def __call__(self, input_x: tuple[TensorLike, ...]) -> tuple[Tensor, ...]:
        if not isinstance(input_x, tuple):
            raise ArgumentError(f"Broadcast: expected a tuple of tensors, got {type(input_x).__name__}")
        return tuple(ops.Broadcast(tensor(item), root_rank=self.root_rank, group=self.group) for item in input_x)


class AlltoAll(_Collective):
    """Send parts along one axis to the processes of a group, in the order of ranks, and concatenate the received parts
    along another.

    Parameters
    ----------
    split_count : int
        The size of the group.
    split_dim, concat_dim : int
    group : str

    Examples
    --------
    >>> AlltoAll(1, 0, 1)(Tensor([[1.0], [2.0]])).shape
    (2, 1)
    """

    split_count: int
    split_dim: int
    concat_dim: int

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = "world"):
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)
        if split_count != find(group).size:
            raise ArgumentError(f"AlltoAll: split_count must be the size of the group, {find(group).size}, got "
                                f"{split_count!r}")

    def __call__(self, input_x: TensorLike) -> Tensor:
        x = tensor(input_x)
        if x.shape[self.split_dim] % self.split_count:
            raise ShapeError(f"AlltoAll: axis {self.split_dim} is divided among {self.split_count} processes, got the "
                             f"shape {x.shape}")
        length = x.shape[self.split_dim] // self.split_count
        sent = array.stack(array.split(x, length, self.split_dim))
        return array.cat(array.unbind(ops.AlltoAll(sent, group=self.group)), self.concat_dim)


class Send(_Collective):
    """Send a tensor to a process of a group, which runs a ``Receive`` with the same tag; the gradient is sent back.

    Parameters
    ----------
    sr_tag : int
        Tag that distinguishes transfers between the same two processes.
    dest_rank : int
    group, group_back : str
        ``group_back`` has no effect.
    """

    sr_tag: int
    dest_rank: int

    def __init__(self, sr_tag: int, dest_rank: int, group: str = "world", group_back: str = "world"):
        super().__init__(group, sr_tag=sr_tag, dest_rank=dest_rank)

    def __call__(self, input_x: TensorLike) -> Tensor:
        return ops.Send(tensor(input_x), dest_rank=self.dest_rank, sr_tag=self.sr_tag, group=self.group)


class Receive(_Collective):
    """Receive a tensor from a process of a group.

    Parameters
    ----------
    sr_tag : int
    src_rank : int
    shape, dtype
        Shape and dtype of the tensor.
    group, group_back : str
        ``group_back`` has no effect.

    The gradient is sent back if it is called with a tensor through which gradients pass; the tensor's values are not
    used.
    """

    sr_tag: int
    src_rank: int
    shape: tuple[int, ...]
    dtype: TensorDType

    def __init__(self, sr_tag: int, src_rank: int, shape: list[int] | tuple[int, ...], dtype: TensorDType,
                 group: str = "world", group_back: str = "world"):
        super().__init__(group, sr_tag=sr_tag, src_rank=src_rank, shape=tuple(shape), dtype=dtype)

    def __call__(self, input_x: TensorLike | None = None) -> Tensor:
        place = creation.zeros(self.shape, self.dtype)
        if input_x is not None:
            place = place + ops.sum(tensor(input_x)) * 0
        return ops.Receive(place, src_rank=self.src_rank, sr_tag=self.sr_tag, group=self.group)


class Barrier(_Collective):
    """Wait until all processes of a group have called it."""

    def __init__(self, group: str = "world"):
        super().__init__(group)

    def __call__(self) -> None:
        find(self.group).barrier()
