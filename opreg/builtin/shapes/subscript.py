"""Reading and writing by a subscript, ``x[key]``, as operators with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.attrs import Key
from ...core.registry import declare
from ...core.rules import BatchedCall
from ...core.spec import Shape, cut_length, holds_any, is_known
from ...errors import SubscriptError
from ..outputs import add_into, adjoint_pair, linear
from ..places import read_elements
from ..samples import repeat_inputs
from .shape import copy_view, is_scattered


def _on_device(part: object) -> bool:
    """Whether a part of a subscript is an array on a device other than the host."""
    return hasattr(part, "shape") and not isinstance(part, (np.ndarray, np.generic))


def _open_shape(data: Shape, parts: Sequence[Any]) -> Shape | None:
    """The shape of a subscript of integers, slices and new axes if lengths are unknown; None for other subscripts."""
    if not all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts):
        return None
    used = sum(isinstance(part, (int, slice)) for part in parts)
    spare = (slice(None),) * (len(data) - used)
    place = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    lengths, shape = iter(data), list[int]()
    for part in (*parts[:place], *spare, *parts[place + 1:]):
        length = 1 if part is None else next(lengths)
        if not isinstance(part, int):
            shape.append(cut_length(length, part or slice(None)))
    return tuple(shape)


@declare(name="_subscript", cheap=True)
def subscript(data, *, key: Key):
    """A copy of ``data[key]``, by NumPy's rules."""


@subscript.infer
def subscript_infer(data, *, key):
    parts = key if isinstance(key, tuple) else (key,)
    if not is_known(data) or holds_any(parts):
        return _open_shape(data, parts)
    parts = tuple(np.zeros(part.shape, np.int64) if _on_device(part) else part for part in parts)  # not read there
    try:
        return np.broadcast_to(np.empty((), np.bool_), data)[parts].shape
    except IndexError as error:
        raise SubscriptError(str(error)) from None


@subscript.in_parts  # no body: bodies use it to read at indices
def subscript_in_parts(xp, data, *, key):
    parts = key if isinstance(key, tuple) else (key,)
    basic = all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts)
    if basic and not any(isinstance(part, bool) for part in parts) and not is_scattered(data[key]):
        return lambda data, out=None: data[key].copy() if out is None else copy_view(xp, data[key], out)
    return lambda data, out=None: read_elements(xp, data, key, out)


def _key_of_samples(key: Any) -> tuple[Any, ...] | None:
    """The key for a batch of samples; None if axes indexed by arrays would move to the front."""
    parts = key if isinstance(key, tuple) else (key,)
    plain = [part is None or part is Ellipsis or (isinstance(part, (int, slice)) and not isinstance(part, bool))
             for part in parts]
    arrays = len(parts) - sum(plain)
    if arrays > 1 or (arrays and any(isinstance(part, int) for part in parts)):
        return None
    return slice(None), *parts


@declare(name="_backward_subscript", unread=(1,), cheap=True)
def subscript_scatter(g, data, *, key: Key):
    """Zeros of the shape of ``data`` with ``g`` added at ``key``; repeated indices add up."""


adjoint_pair(subscript, subscript_scatter)


@subscript_scatter.kernel()  # no body: it adds at the elements that a key selects
def subscript_scatter_xp(xp, g, data, *, key):
    result = xp.zeros(data.shape, g.dtype)
    add_into(xp, result, key, g.reshape(result[key].shape))
    return result


@subscript.vmap
@subscript_scatter.vmap
def subscript_vmap(ins, batched, *, key):
    key = _key_of_samples(key)
    return NotImplemented if key is None else BatchedCall(repeat_inputs(ins, batched), {"key": key})


@declare(name="_CrossDeviceCopy", cheap=True)
def cross_device_copy(data):
    """A copy of an array on another device."""


@cross_device_copy.kernel("transfer", bound=True)
def cross_device_copy_bound(call):
    source, (target,) = call.ins[0], call.outs
    if type(source) is type(target) and getattr(source, "device", None) == getattr(target, "device", None):
        return [lambda: target.__setitem__(Ellipsis, source)]
    backend, device = call.ctx.backend, call.ctx.device_id
    return [lambda: target.__setitem__(Ellipsis, backend.asarray(source, device=device))]


linear(cross_device_copy, cross_device_copy)
