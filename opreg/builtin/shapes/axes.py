"""Axes exchanged: the transposes, which are views of their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.registry import declare, ops
from ...core.spec import check_axis
from ...errors import AttrError
from ..samples import along
from .shape import stored

__all__: list[str] = []


def _order(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """The axes of the input in the order of the output."""
    if not axes:
        return tuple(range(rank))[::-1]
    order = tuple([check_axis(axis, rank, "axes") for axis in axes])
    if sorted(order) != list(range(rank)):
        raise AttrError(f"axes={tuple(axes)}: expected each of the {rank} axes once")
    return order


@declare
def transpose(data, *, axes: tuple[int, ...] = ()):
    """``data`` with its axes in the order of ``axes``, or in reverse."""


@transpose.fill
def transpose_fill(ins, outs, *, axes):
    (out,) = outs
    if out is None:
        return ins
    order = _order(axes, len(out))
    return [tuple([out[order.index(i)] for i in range(len(out))])]


@transpose.infer
def transpose_infer(data, *, axes):
    return tuple([data[axis] for axis in _order(axes, len(data))])


@transpose.view
def transpose_view(array, *, axes):
    return array.transpose(_order(axes, array.ndim))


@transpose.kernel()
def transpose_xp(xp, data, *, axes, out=None):
    return stored(xp, data.transpose(_order(axes, data.ndim)), out)


@transpose.grad
def transpose_grad(g, ins, outs, *, axes):
    order = tuple([axis % len(axes) for axis in axes])
    return (ops.transpose(g, axes=tuple([order.index(i) for i in range(len(order))])),)


@transpose.vmap
def transpose_vmap(ins, batched, *, axes):
    rank = len(ins[0].shape) - 1
    return ops.transpose(ins[0], axes=(0, *[axis + 1 for axis in _order(axes, rank)]))


@declare(name="SwapAxis", aliases=("swapaxes", "_npi_swapaxes"))
def swapaxes(data, *, dim1: int = 0, dim2: int = 0):
    """``data`` with two axes exchanged."""


along(swapaxes, "dim1", "dim2")


@swapaxes.fill
def swapaxes_fill(ins, outs, *, dim1, dim2):
    return ins if outs[0] is None else [swapaxes_infer(outs[0], dim1=dim1, dim2=dim2)]


@swapaxes.infer
def swapaxes_infer(data, *, dim1, dim2):
    left, right = check_axis(dim1, len(data), "dim1"), check_axis(dim2, len(data), "dim2")
    result = list(data)
    result[left], result[right] = data[right], data[left]
    return tuple(result)


@swapaxes.view
def swapaxes_view(array, *, dim1, dim2):
    return array.swapaxes(dim1, dim2)


@swapaxes.kernel()
def swapaxes_xp(xp, data, *, dim1, dim2, out=None):
    return stored(xp, data.swapaxes(dim1, dim2), out)


@swapaxes.grad
def swapaxes_grad(g, ins, outs, *, dim1, dim2):
    return (ops.SwapAxis(g, dim1=dim1, dim2=dim2),)
