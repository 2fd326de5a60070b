"""Copies and casts of values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from ...core.attrs import Few
from ...core.declarations import ZERO
from ...core.gradient import CUT
from ...core.registry import declare, ops
from ...core.spec import is_floating
from ...core.value import Value
from ...custom.composed import composed
from ...typing import Array, ArrayModule
from ..outputs import as_output, linear, names_of_outputs
from ..samples import alike
from ..shapes.shape import declare_unchanged


def pass_gradient(g: Value, ins: Sequence[Value], outs: Sequence[Value]) -> tuple[Value | None, ...]:
    """The gradient rule of an operator that returns its first input; other inputs have no gradient."""
    return (g, *[None] * (len(ins) - 1))


@declare(name="_copy", aliases=("identity",), inplace=(0,))
def copy(data):
    """The same values."""


@declare(name="BlockGrad", aliases=("stop_gradient", "_sparse_stop_gradient"), inplace=(0,), loss=True)
def stop_gradient(data):
    """The same values, through which no gradient passes."""


@declare(name="_identity_with_attr_like_rhs", inplace=(0,), unread=(1,))
def identity_like(lhs, rhs):
    """``lhs``; in inference, its shape and dtype are those of ``rhs``."""


@declare(aliases=("_sparse_cast_storage",), inplace=(0,))
def cast_storage(data, *, stype: Literal["default", "row_sparse", "csr"]):
    """``data`` converted to the storage type ``stype``. In a graph, only arguments and their gradients may be sparse;
    other arrays are dense."""


for _op in (copy, stop_gradient, identity_like, cast_storage):
    declare_unchanged(_op)
    _op.grad(ZERO if _op is stop_gradient else pass_gradient)

for _op in (copy, stop_gradient):
    alike(_op)


# ---------------------------------------------------------------------------------------- in another dtype


@declare(name="Cast", aliases=("cast", "_npi_cast", "_npx_cast"), types="T->@dtype", casts=True)
def cast(data, *, dtype: np.dtype):
    """``data`` cast to ``dtype``; fractions are rounded towards zero."""


alike(cast)


@cast.view
def cast_view(array, *, dtype):
    return array if array.dtype == dtype else None


@declare(name="_backward_cast", types="T,U->U", unread=(1,), casts=True, cheap=True)
def cast_like(g, data):
    """``g`` cast to the dtype of ``data``."""


alike(cast_like)


def _cast(xp: ArrayModule, data: Array, like: Array | None = None, *, dtype: np.dtype | None = None,
          out: Array | None = None) -> Array:
    """The kernel of ``Cast`` and of its gradient, which notes the fractions that integers lose."""
    if out is None:
        out = data.astype(dtype if like is None else like.dtype)
    else:
        out[...] = data  # assignment casts like astype
    if like is not None and xp is np and like.dtype.kind in "iub" and is_floating(data.dtype):
        lost = out != data
        if lost.any():
            CUT.note(like.dtype, data[lost][0], out[lost][0])
    return out


for _op in (cast, cast_like):
    _op.kernel()(_cast)  # no body: bodies use it to cast
    linear(_op, cast_like, slice(0, 1))


# ------------------------------------------------------------------------------------- mixed precision


@composed(mixes=True)
def amp_cast(data, *, dtype: np.dtype):
    """``data`` cast to ``dtype`` if it is floating-point; otherwise unchanged."""
    data_dtype = np.dtype(data.dtype)
    return ops.Cast(data, dtype=dtype if is_floating(data_dtype) else data_dtype)


amp_cast.fill(as_output)


@amp_cast.types
def amp_cast_types(ins, outs, *, dtype):
    if ins[0] is None:
        return ins, outs
    return ins, [dtype if is_floating(ins[0]) else ins[0]]


def _common(dtypes: Iterable[np.dtype | None], cast_narrow: bool) -> np.dtype | None:
    """The widest or narrowest of the floating dtypes."""
    floating = [dtype for dtype in dtypes if dtype is not None and is_floating(dtype)]
    return (min if cast_narrow else max)(floating, key=lambda dtype: dtype.itemsize) if floating else None


@composed(variadic="num_outputs", outputs=lambda *, num_outputs: names_of_outputs(num_outputs), mixes=True)
def amp_multicast(*data, num_outputs: Few, cast_narrow: bool = False):
    """The inputs cast to the widest of their floating dtypes, or with ``cast_narrow`` to the narrowest; integers are
    not changed."""
    dtypes = [np.dtype(each.dtype) for each in data]
    common = _common(dtypes, cast_narrow)
    return tuple([ops.Cast(array, dtype=common if is_floating(dtype) else dtype) for array, dtype in zip(data, dtypes)])


amp_multicast.fill(as_output)


@amp_multicast.types
def amp_multicast_types(ins, outs, *, cast_narrow):
    if any(dtype is None for dtype in ins):
        return ins, outs
    common = _common(ins, cast_narrow)
    return ins, [common if dtype is not None and is_floating(dtype) else dtype for dtype in ins]
