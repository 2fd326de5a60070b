"""Permutations of axes: transposes, which are views of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller

from ...core.op import Op
from ...core.registry import declare, ops
from ...core.rules import Rule
from ...core.spec import check_axis
from ...errors import AttrError
from ..outputs import linear
from ..samples import shift_axes
from .shape import declare_view


def _declare_permutation(op: Op, order: Callable[..., tuple[int, ...]]) -> None:
    """Declare shapes and view of an operator that permutes axes.

    ``order(rank, **attrs)`` returns the input axes in the order of the output.
    """
    rule = Rule(order)

    @op.fill
    def reordering_fill(ins, outs, **attrs):
        (out,) = outs
        if out is None:
            return ins
        axes = rule(attrs, len(out))
        return [tuple([out[axes.index(i)] for i in range(len(out))])]

    @op.infer
    def reordering_infer(data, **attrs):
        return tuple([data[axis] for axis in rule(attrs, len(data))])

    declare_view(op, lambda data, *_, **attrs: methodcaller("transpose", rule(attrs, len(data))))


def _order(rank: int, *, axes: Sequence[int] | None) -> tuple[int, ...]:
    if not axes:
        return tuple(range(rank))[::-1]
    order = tuple([check_axis(axis, rank, "axes") for axis in axes])
    if sorted(order) != list(range(rank)):
        raise AttrError(f"axes={tuple(axes)}: expected a permutation of the {rank} axes")
    return order


@declare(aliases=("_np_transpose",))
def transpose(data, *, axes: tuple[int, ...] | None = ()):
    """``data`` with its axes in the order of ``axes``, or in reverse."""


_declare_permutation(transpose, _order)


@transpose.grad
def transpose_grad(g, ins, outs, *, axes):
    order = tuple([axis % len(axes) for axis in axes]) if axes else ()
    return (ops.transpose(g, axes=tuple([order.index(i) for i in range(len(order))])),)


@transpose.vmap
def transpose_vmap(ins, batched, *, axes):
    rank = len(ins[0].shape) - 1
    return ops.transpose(ins[0], axes=(0, *[axis + 1 for axis in _order(rank, axes=axes)]))


def _exchange_order(rank: int, *, dim1: int, dim2: int) -> tuple[int, ...]:
    order = list(range(rank))
    left, right = check_axis(dim1, rank, "dim1"), check_axis(dim2, rank, "dim2")
    order[left], order[right] = right, left
    return tuple(order)


@declare(name="SwapAxis", aliases=("swapaxes", "_npi_swapaxes"))
def swapaxes(data, *, dim1: int = 0, dim2: int = 0):
    """``data`` with two axes swapped."""


_declare_permutation(swapaxes, _exchange_order)
shift_axes(swapaxes, "dim1", "dim2")


linear(swapaxes, swapaxes)
