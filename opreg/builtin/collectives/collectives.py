"""What the ranks of a group do together, as operators: all of them apply the same ones in the same order.

Each says that it does something beside computing, so none is left out, done twice or computed ahead. A gradient is that
of the sum of what all ranks make of it, as of a loss on each rank.
"""

from __future__ import annotations

from typing import Literal

from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, show
from ...distributed import group as find
from ...errors import NotDifferentiableError, ShapeError
from ...typing import Array

__all__: list[str] = []

#: What numbers of several ranks become; ``avg`` is MindSpore's word for the mean.
Reduction = Literal["sum", "mean", "avg", "max", "min", "prod"]


def _word(op: str) -> str:
    return "mean" if op == "avg" else op


def _stored(result: Array, out: Array | None) -> Array:
    if out is None or result is out:
        return result
    out[...] = result
    return out


def _first(what: str, data: Shape) -> int:
    if not data:
        raise ShapeError(f"{what}: expected an array with an axis, got shape {show(data)}")
    return data[0]


def _part(what: str, data: Shape, size: int) -> Shape:
    if _first(what, data) is ANY:
        return data
    if data[0] % size:
        raise ShapeError(f"{what}: the first axis is divided among {size} ranks, got shape {show(data)}")
    return (data[0] // size, *data[1:])


@declare(name="AllReduce", has_side_effect=True)
def all_reduce(data, *, op: Reduction = "sum", group: str = "world"):
    """The sum, mean, maximum, minimum or product of what all ranks of a group bring, on each of them."""


@all_reduce.infer
def all_reduce_infer(data):
    return data


@all_reduce.kernel()
def all_reduce_xp(xp, data, *, op, group, out=None):
    return find(group).allreduce(data, _word(op), out)


@all_reduce.grad
def all_reduce_grad(g, ins, outs, *, op, group):
    if _word(op) in ("sum", "mean"):
        return (ops.AllReduce(g, op=op, group=group),)
    if op == "prod":
        return (ops.AllReduce(g * outs[0], group=group) / ins[0],)
    return (ops.AllReduce(g, group=group) * (ins[0] == outs[0]),)


@declare(name="AllGather", has_side_effect=True, grad_reads=False)
def all_gather(data, *, group: str = "world"):
    """What all ranks of a group bring, joined along the first axis in the order of ranks."""


@all_gather.infer
def all_gather_infer(data, *, group):
    return data if _first("AllGather", data) is ANY else (data[0] * find(group).size, *data[1:])


@all_gather.kernel()
def all_gather_xp(xp, data, *, group, out=None):
    return find(group).all_gather(data, out)


@all_gather.grad
def all_gather_grad(g, ins, outs, *, group):
    return (ops.ReduceScatter(g, group=group),)


@declare(name="ReduceScatter", has_side_effect=True, grad_reads=False)
def reduce_scatter(data, *, op: Reduction = "sum", group: str = "world"):
    """As ``AllReduce``, but each rank gets its part along the first axis, which is divided evenly."""


@reduce_scatter.infer
def reduce_scatter_infer(data, *, group):
    return _part("ReduceScatter", data, find(group).size)


@reduce_scatter.kernel()
def reduce_scatter_xp(xp, data, *, op, group, out=None):
    return find(group).reduce_scatter(data, _word(op), out)


@reduce_scatter.grad
def reduce_scatter_grad(g, ins, outs, *, op, group):
    if _word(op) not in ("sum", "mean"):
        raise NotDifferentiableError(f"ReduceScatter with op={op!r} has no gradient; that of 'sum' and 'mean' is known")
    whole = ops.AllGather(g, group=group)
    return (whole if op == "sum" else whole / find(group).size,)


@declare(name="Broadcast", has_side_effect=True, grad_reads=False)
def broadcast(data, *, root_rank: int, group: str = "world"):
    """What one rank of a group brings, on all of them; that of the others says shape and dtype."""


@broadcast.infer
def broadcast_infer(data):
    return data


@broadcast.kernel()
def broadcast_xp(xp, data, *, root_rank, group, out=None):
    return find(group).broadcast(data, root_rank, out)


@broadcast.grad
def broadcast_grad(g, ins, outs, *, root_rank, group):
    total = ops.AllReduce(g, group=group)
    return (total if find(group).rank == root_rank else ops.zeros_like(total),)


@declare(name="AlltoAll", has_side_effect=True, grad_reads=False)
def all_to_all(data, *, group: str = "world"):
    """Part ``i`` along the first axis goes to rank ``i``; what comes is joined in the order of ranks."""


@all_to_all.infer
def all_to_all_infer(data, *, group):
    _part("AlltoAll", data, find(group).size)
    return data


@all_to_all.kernel()
def all_to_all_xp(xp, data, *, group, out=None):
    return find(group).alltoall(data, out)


@all_to_all.grad
def all_to_all_grad(g, ins, outs, *, group):
    return (ops.AlltoAll(g, group=group),)


# ------------------------------------------------------------------------------------------------- between two


@declare(name="Send", has_side_effect=True, grad_reads=False)
def send(data, *, dest_rank: int, sr_tag: int = 0, group: str = "world"):
    """Bring an array to one rank of a group, which has a ``Receive``; the array itself. Its gradient comes back."""


@send.infer
def send_infer(data):
    return data


@send.kernel()
def send_xp(xp, data, *, dest_rank, sr_tag, group, out=None):
    find(group).send(data, dest_rank, sr_tag)
    return _stored(data, out)


@send.grad
def send_grad(g, ins, outs, *, dest_rank, sr_tag, group):
    return (g + ops.Receive(g, src_rank=dest_rank, sr_tag=sr_tag, group=group),)


@declare(name="Receive", has_side_effect=True, grad_reads=False)
def receive(data, *, src_rank: int, sr_tag: int = 0, group: str = "world"):
    """What one rank of a group sends; ``data`` says of which shape and dtype. Its gradient goes back there."""


@receive.infer
def receive_infer(data):
    return data


@receive.kernel()
def receive_xp(xp, data, *, src_rank, sr_tag, group, out=None):
    return find(group).recv(xp.empty_like(data) if out is None else out, src_rank, sr_tag)


@receive.grad
def receive_grad(g, ins, outs, *, src_rank, sr_tag, group):
    return (ops.zeros_like(g) * ops.Send(g, dest_rank=src_rank, sr_tag=sr_tag, group=group),)
