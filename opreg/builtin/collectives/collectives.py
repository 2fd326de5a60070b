"""Collectives as operators; all ranks of a group apply the same ones in the same order.

Each declares a side effect, so none is left out, run twice or folded into a constant. A gradient is that of the sum of
the losses of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from ...core.op import Op
from ...core.registry import declare, ops
from ...core.spec import ANY, Shape, show
from ...core.value import Value
from ...distributed import Group
from ...distributed import group as find
from ...errors import NotDifferentiableError, ShapeError
from ...typing import Array
from ..outputs import linear

#: Reductions of the values of several ranks; ``avg`` is MindSpore's word for the mean.
Reduction = Literal["sum", "mean", "avg", "max", "min", "prod"]


def _word(op: str) -> str:
    return "mean" if op == "avg" else op


def _collective(name: str, run: Callable[..., Array], gradient: Callable[..., Any] | str,
                shape: Callable[[Shape, int], Shape] | None = None, grad_reads: bool = False
                ) -> Callable[[Callable], Op]:
    """Declare a collective operator.

    Parameters
    ----------
    name : str
        Name of the operator.
    run : callable
        ``f(group, data, out, **attrs)`` returns the result: ``out`` if it could be written there, else a new array.
    gradient : callable or str
        The gradient rule, or the name of the adjoint.
    shape : callable
        ``f(data, size)``, the shape of the result for a group of ``size`` ranks; by default that of the data.
    grad_reads : bool
        See ``Op``.
    """

    def declared(function: Callable) -> Op:
        op = declare(function, name=name, has_side_effect=True, grad_reads=grad_reads)
        if isinstance(gradient, str):
            linear(op, gradient)
        else:
            op.grad(gradient)

        @op.kernel()  # no body: processes exchange arrays
        def collective_xp(xp, data, *, group, out=None, **attrs):
            result = run(find(group), data, out, **attrs)
            if out is None or result is out:
                return result
            out[...] = result
            return out

        if shape is not None:
            @op.infer
            def collective_infer(data, *, group):
                if not data:
                    raise ShapeError(f"{name}: expected an array with an axis, got shape {show(data)}")
                return data if data[0] is ANY else shape(data, find(group).size)

        return op

    return declared


def _part(data: Shape, size: int) -> Shape:
    if data[0] % size:
        raise ShapeError(f"the first axis is divided among {size} ranks, got shape {show(data)}")
    return (data[0] // size, *data[1:])


def _all_reduce_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, op: Reduction, group: str) -> Value:
    if _word(op) in ("sum", "mean"):
        return ops.AllReduce(g, op=op, group=group)
    if op == "prod":
        return ops.AllReduce(g * outs[0], group=group) / ins[0]
    return ops.AllReduce(g, group=group) * (ins[0] == outs[0])


@_collective("AllReduce", lambda group, data, out, op: group.allreduce(data, _word(op), out), _all_reduce_grad,
             grad_reads=True)
def all_reduce(data, *, op: Reduction = "sum", group: str = "world"):
    """The sum, mean, maximum, minimum or product of the arrays of all ranks of a group, on each of them."""


@_collective("AllGather", lambda group, data, out: group.all_gather(data, out),
             "ReduceScatter",
             lambda data, size: (data[0] * size, *data[1:]))
def all_gather(data, *, group: str = "world"):
    """Arrays of all ranks of a group, concatenated along the first axis in the order of ranks."""


def _reduce_scatter_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, op: Reduction, group: str) -> Value:
    if _word(op) not in ("sum", "mean"):
        raise NotDifferentiableError(f"ReduceScatter with op={op!r} has no gradient; only 'sum' and 'mean' have one")
    gathered = ops.AllGather(g, group=group)
    return gathered if op == "sum" else gathered / find(group).size


@_collective("ReduceScatter", lambda group, data, out, op: group.reduce_scatter(data, _word(op), out),
             _reduce_scatter_grad, _part)
def reduce_scatter(data, *, op: Reduction = "sum", group: str = "world"):
    """``AllReduce``, then each rank keeps its part of the result: the first axis is divided evenly."""


def _broadcast_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, root_rank: int, group: str) -> Value:
    total = ops.AllReduce(g, group=group)
    return total if find(group).rank == root_rank else ops.zeros_like(total)


@_collective("Broadcast", lambda group, data, out, root_rank: group.broadcast(data, root_rank, out), _broadcast_grad)
def broadcast(data, *, root_rank: int, group: str = "world"):
    """The array of the rank ``root_rank``, copied to all ranks of a group. Other ranks pass an array of the same shape
    and dtype."""


@_collective("AlltoAll", lambda group, data, out: group.alltoall(data, out),
             "AlltoAll",
             lambda data, size: (_part(data, size)[0] * size, *data[1:]))
def all_to_all(data, *, group: str = "world"):
    """Part ``i`` along the first axis is sent to rank ``i``; received parts are concatenated in the order of ranks."""


# --------------------------------------------------------------------------------------- sending and receiving


def _sent(group: Group, data: Array, out: Array | None, dest_rank: int, sr_tag: int) -> Array:
    group.send(data, dest_rank, sr_tag)
    return data


@_collective("Send", _sent, lambda g, ins, outs, *, dest_rank, sr_tag, group:
             g + ops.Receive(g, src_rank=dest_rank, sr_tag=sr_tag, group=group))
def send(data, *, dest_rank: int, sr_tag: int = 0, group: str = "world"):
    """Send an array to a rank of a group, which runs ``Receive``; returns the array. The gradient is sent back."""


@_collective("Receive", lambda group, data, out, src_rank, sr_tag:
             group.recv(data.copy() if out is None else out, src_rank, sr_tag),
             lambda g, ins, outs, *, src_rank, sr_tag, group:
             ops.zeros_like(g) * ops.Send(g, dest_rank=src_rank, sr_tag=sr_tag, group=group))
def receive(data, *, src_rank: int, sr_tag: int = 0, group: str = "world"):
    """Receive an array from a rank of a group. ``data`` is any array of its shape and dtype. The gradient is sent back
    to that rank."""
