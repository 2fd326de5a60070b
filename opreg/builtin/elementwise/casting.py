"""The same numbers, as they are or in another dtype."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from ...core.attrs import Few
from ...core.gradient import CUT
from ...core.op import ZERO
from ...core.registry import declare, ops
from ...core.spec import is_floating
from ...errors import AttrError
from ...typing import Array, ArrayModule
from ..outputs import as_output, numbered
from ..samples import alike
from ..shapes.joining import single
from ..shapes.shape import stored

__all__: list[str] = []


@declare(name="_copy", aliases=("identity",), inplace=(0,))
def copy(data):
    """The same numbers."""


alike(copy)


@copy.view
def copy_view(array):
    return array


@copy.kernel()
def copy_xp(xp, data, *, out=None):
    return stored(xp, data, out)


@copy.grad
def copy_grad(g, ins, outs):
    return (g,)


@declare(name="BlockGrad", aliases=("stop_gradient", "_sparse_stop_gradient"), inplace=(0,), loss=True)
def stop_gradient(data):
    """The same numbers, through which no gradient passes."""


alike(stop_gradient)


@stop_gradient.view
def stop_gradient_view(array):
    return array


@stop_gradient.kernel()
def stop_gradient_xp(xp, data, *, out=None):
    return stored(xp, data, out)


stop_gradient.grad(ZERO)


@declare(name="_identity_with_attr_like_rhs", inplace=(0,), unread=(1,))
def identity_like(lhs, rhs):
    """``lhs``, whose shape and dtype are those of ``rhs``."""


@identity_like.view
def identity_like_view(array):
    return array


@identity_like.kernel()
def identity_like_xp(xp, lhs, rhs, *, out=None):
    return stored(xp, lhs, out)


@identity_like.grad
def identity_like_grad(g, ins, outs):
    return (g, None)


# ---------------------------------------------------------------------------------------- in another dtype


def _cast(xp: ArrayModule, data: Array, dtype: np.dtype, out: Array | None) -> Array:
    if out is None:
        return data.astype(dtype)
    out[...] = data  # assignment casts as astype does
    return out


@declare(name="Cast", aliases=("cast", "_npi_cast", "_npx_cast"), types="T->@dtype")
def cast(data, *, dtype: np.dtype):
    """``data`` as numbers of ``dtype``; fractions are cut off towards zero."""


alike(cast)


@cast.view
def cast_view(array, *, dtype):
    return array if array.dtype == dtype else None


@cast.kernel()
def cast_xp(xp, data, *, dtype, out=None):
    return _cast(xp, data, dtype, out)


@cast.grad
def cast_grad(g, ins, outs):
    return (ops._backward_cast(g, ins[0]),)


@declare(name="_backward_cast", types="T,U->U", unread=(1,))
def cast_like(g, data):
    """``g`` as numbers of the dtype of ``data``."""


alike(cast_like)


@cast_like.kernel()
def cast_like_xp(xp, g, data, *, out=None):
    result = _cast(xp, g, data.dtype, out)
    if xp is np and data.dtype.kind in "iub" and is_floating(g.dtype) and (lost := result != g).any():
        CUT.note(data.dtype, g[lost][0], result[lost][0])
    return result


@cast_like.grad
def cast_like_grad(g, ins, outs):
    return (ops._backward_cast(g, ins[0]), None)


# ------------------------------------------------------------------------------------- mixed precision


@declare
def amp_cast(data, *, dtype: np.dtype):
    """``data`` as numbers of ``dtype`` if it holds floating numbers; others stay as they are."""


alike(amp_cast)


@amp_cast.types
def amp_cast_types(ins, outs, *, dtype):
    if ins[0] is None:
        return ins, outs
    return ins, [dtype if is_floating(ins[0]) else ins[0]]


@amp_cast.kernel()
def amp_cast_xp(xp, data, *, dtype, out=None):
    return _cast(xp, data, dtype if is_floating(data.dtype) else data.dtype, out)


@amp_cast.grad
def amp_cast_grad(g, ins, outs):
    return (ops._backward_cast(g, ins[0]),)


def _common(dtypes: Iterable[np.dtype | None], cast_narrow: bool) -> np.dtype | None:
    """The widest or narrowest of the floating dtypes."""
    known = [dtype for dtype in dtypes if dtype is not None and is_floating(dtype)]
    return (min if cast_narrow else max)(known, key=lambda dtype: dtype.itemsize) if known else None


@declare(variadic="num_outputs", outputs=lambda *, num_outputs: numbered(num_outputs))
def amp_multicast(*data, num_outputs: Few, cast_narrow: bool = False):
    """The inputs in the widest of their floating dtypes, or the narrowest; integers stay as they are."""


@amp_multicast.fill
def amp_multicast_fill(ins, outs):
    return outs


@amp_multicast.infer
def amp_multicast_infer(*data):
    return list(data)


@amp_multicast.types
def amp_multicast_types(ins, outs, *, cast_narrow):
    if any(dtype is None for dtype in ins):
        return ins, outs
    common = _common(ins, cast_narrow)
    return ins, [common if dtype is not None and is_floating(dtype) else dtype for dtype in ins]


@amp_multicast.kernel()
def amp_multicast_xp(xp, *data, cast_narrow):
    common = _common([array.dtype for array in data], cast_narrow)
    return single([array.astype(common if is_floating(array.dtype) else array.dtype) for array in data])


@amp_multicast.grad
def amp_multicast_grad(g, ins, outs):
    gs = [g] if len(ins) == 1 else g
    return tuple([None if g is None else ops._backward_cast(g, x) for g, x in zip(gs, ins)])


@declare(aliases=("_sparse_cast_storage",), inplace=(0,))
def cast_storage(data, *, stype: Literal["default", "row_sparse", "csr"]):
    """``data``, stored densely."""


cast_storage.fill(as_output)


@cast_storage.infer
def cast_storage_infer(data, *, stype):
    if stype != "default":
        raise AttrError(f"stype={stype!r}: arrays are dense here, expected 'default'")
    return data


@cast_storage.view
def cast_storage_view(array):
    return array


@cast_storage.kernel()
def cast_storage_xp(xp, data, *, out=None):
    return stored(xp, data, out)


@cast_storage.grad
def cast_storage_grad(g, ins, outs):
    return (g,)
