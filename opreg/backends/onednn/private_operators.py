"""Operators of plans whose arrays have their channels last; see ``channels_last``, which puts them there.

No file, no list of operators has them.
"""

from __future__ import annotations

from typing import Any

from opreg.builtin.layers.normalize import backward_normalize_xp, backward_sums_xp
from opreg.core.attrs import Schema
from opreg.core.op import Names, Op
from opreg.typing import Array, ArrayModule

__all__ = ["batch_norm_gradient", "to_channels_first", "to_channels_last"]


def _private(name: str, arguments: Names, doc: str, **words: Any) -> Op:
    op = Op(name, Schema([]), arguments, doc=doc, **words)
    op.where = None
    return op


# ----------------------------------------------------------------------------------------------- borders

to_channels_last = _private("_to_channels_last", ("data",), "The second axis brought to the end.")
to_channels_first = _private("_to_channels_first", ("data",), "The last axis brought to the second place.")


@to_channels_last.infer
def to_channels_last_infer(data):
    return (data[0], *data[2:], data[1])


@to_channels_first.infer
def to_channels_first_infer(data):
    return (data[0], data[-1], *data[1:-1])


@to_channels_last.kernel()
def to_channels_last_xp(xp, data, *, out=None):
    return _copied(xp, data.transpose(0, *range(2, data.ndim), 1), out)


@to_channels_first.kernel()
def to_channels_first_xp(xp, data, *, out=None):
    return _copied(xp, data.transpose(0, data.ndim - 1, *range(1, data.ndim - 1)), out)


def _copied(xp: ArrayModule, view: Array, out: Array | None) -> Array:
    out = xp.empty(view.shape, view.dtype) if out is None else out
    out[...] = view
    return out


# -------------------------------------------------------------------------------------------- batch norm

batch_norm_gradient = _private(
    "_batch_norm_gradient", lambda *, scaled: ("g", "data", *(("gamma",) if scaled else ()), "mean", "inverse"),
    "The gradient of batch norm's data, and the sums that those of gamma and beta are.",
    outputs=("gradient", "product", "total"), inplace=(0,))


@batch_norm_gradient.infer
def batch_norm_gradient_infer(g, data, *rest):
    return [data, rest[-1], rest[-1]]


@batch_norm_gradient.kernel()
def batch_norm_gradient_xp(xp, g, data, *rest, axis):
    *gamma, mean, inverse = rest
    words = {"over": "batch", "axis": axis, "num_groups": 0}
    product, total = backward_sums_xp(xp, g, data, mean, inverse, **words)
    return backward_normalize_xp(xp, g, data, *gamma, mean, inverse, product, total, **words), product, total
