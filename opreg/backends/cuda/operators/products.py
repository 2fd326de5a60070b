"""Operators that are matrix products, by cublasLt, which can add a bias in the same launch, or add to the output.

A bias is added by a separate step if the library has no epilogue for it, as for float64. The node that
``fuse_dense_backward`` makes computes the gradients of a weight and of a bias in one launch; if the library has no
epilogue for this, a second launch computes the latter. Sums of columns by themselves are computed as products with
ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from opreg.builtin.matrices.dense import FACTORS, are_views, dense_weight, factors_of
from opreg.core.launch import Call, Rank
from opreg.core.registry import REGISTERED
from opreg.core.rounding import tf32
from opreg.elementwise.rows import RowLayout, row_sum, traced
from opreg.errors import OpError
from opreg.typing import Array, ArrayModule

from ... import blas
from .. import cublaslt
from ..compiler import can_compile, keep_details, reason_in
from ..cublaslt import Epilogue
from ..folds import bound_fold, groups_of
from ..products import ChosenAlgorithm, Multiply, Product, choose, describe, multiply
from .private import dense_backward


class _Plan(NamedTuple):
    """A product with its algorithm and its arrays: the factors and the output."""

    product: Product
    chosen: ChosenAlgorithm
    arrays: tuple[Array, Array, Array]


def _planned(call: Call, arrays: tuple[Array, Array, Array], epilogue: Epilogue = Epilogue.DEFAULT,
             bias: Array | None = None) -> _Plan | str:
    """The plan for the product of a call, or the reason why the library does not compute it."""
    library = cublaslt.library(call.xp)
    if isinstance(library, str):
        return library
    product = describe(*arrays, add=call.reqs[0] == "add", epilogue=epilogue, bias=bias, tf32=tf32())
    if isinstance(product, str):
        return product
    try:
        chosen = choose(library, call.ctx.device_id, product)
    except OpError as error:
        return str(error)
    return chosen if isinstance(chosen, str) else _Plan(product, chosen, arrays)


def _multiply(call: Call, bias: Array | None = None) -> Multiply:
    plan: _Plan = call.details
    return Multiply(call.xp, call.ctx.device_id, call.op.name, plan.product, plan.chosen, plan.arrays,
                    functools.partial(call.scratch, 0), call.attrs.get("alpha", 1.0), bias)


def _bias(call: Call) -> Array | None:
    """The third input, if its elements are read; else None."""
    return None if 2 in call.op.traits.unread or len(call.ins) < 3 else call.ins[2]


def _accepts(call: Call) -> str | None:
    bias, out = _bias(call), call.outs[0]
    reason = reason_in(cublaslt.library(call.xp))
    if reason is not None:
        return reason
    if not out.flags.c_contiguous or (bias is not None and (bias.dtype != out.dtype or not bias.flags.c_contiguous)):
        return "an array is not contiguous"
    factors = factors_of(call)
    if factors is None:
        return "its factors are no views of its inputs"
    a, b, shape = factors
    arrays = a, b, out.reshape(shape)
    plan = _planned(call, arrays) if bias is None else _planned(call, arrays, Epilogue.BIAS, bias)
    if isinstance(plan, str) and bias is not None:
        plan = _planned(call, arrays)
    return keep_details(call, plan)


def _bound(call: Call) -> list[Callable]:
    bias, out = _bias(call), call.details.arrays[2]
    if bias is None or call.details.product.epilogue is Epilogue.BIAS:
        return [_multiply(call, bias)]
    return [_multiply(call), functools.partial(call.xp.add, out, bias, out)]


for _op in FACTORS:
    _op.kernel("cublasLt", bound=True, accepts=_accepts, serves=can_compile, adds=True, rank=Rank.LIBRARY)(_bound)


# --------------------------------------------------------------------------------- gradients of dense layers


def _accepts_dense_backward(call: Call) -> str | None:
    reason = reason_in(cublaslt.library(call.xp))
    if reason is not None:
        return reason
    (g, data, _), (out, bias) = call.ins, call.outs
    if out is None or bias is None or call.reqs[1] == "add":
        return "a gradient is not requested, or that of the bias is added"
    if not bias.flags.c_contiguous:
        return "the gradient of the bias is not contiguous"
    a, b = dense_weight(g, data, flatten=call.attrs["flatten"])(g, data)
    if not are_views(call, (a, b)):
        return "its factors are no views of its inputs"
    plan = _planned(call, (a, b, out), Epilogue.BGRADB, bias)
    if isinstance(plan, str) and g.flags.c_contiguous:
        plan = _planned(call, (a, b, out))
    return keep_details(call, plan)


@dense_backward.kernel("cublasLt", bound=True, accepts=_accepts_dense_backward, serves=can_compile, adds=True,
                       rank=Rank.LIBRARY)
def dense_backward_cuda(call: Call) -> list[Callable]:
    g, bias = call.ins[0], call.outs[1]
    if call.details.product.epilogue is Epilogue.BGRADB:
        return [_multiply(call, bias)]
    return [_multiply(call), *bound_fold(traced(row_sum, 1), [g], [RowLayout.ELEMENT], [bias],
                                         groups_of(g.shape, range(g.ndim - 1)), call.xp, call.scratch)]


def _accepts_sum(call: Call) -> str | None:
    """The reason why the library does not compute a sum, or None; it computes sums along all axes but the last, as for
    the gradient of a bias."""
    reason = reason_in(cublaslt.library(call.xp)) or _sums_columns(call)
    if reason is not None:
        return reason
    rows = call.ins[0].reshape(-1, call.ins[0].shape[-1])
    ones = call.xp.ones((1, rows.shape[0]), rows.dtype)
    return keep_details(call, _planned(call, (ones, rows, call.outs[0].reshape(1, -1))))


def _sums_columns(call: Call) -> str | None:
    data, out = call.ins[0], call.outs[0]
    if call.attrs["axis"] not in (-1, data.ndim - 1) or not call.attrs["exclude"]:
        return "sums are only taken along all axes but the last, as for the gradient of a bias"
    if data.dtype != out.dtype or not (data.flags.c_contiguous and out.flags.c_contiguous) or not (
            data.size and data.ndim):
        return "an array is not contiguous"
    return None


REGISTERED["sum"].kernel("cublasLt", bound=True, accepts=_accepts_sum, serves=can_compile, adds=True,
                         rank=Rank.LIBRARY)(_multiply)


# ------------------------------------------------------------------------------- products inside of kernels


def _product_on(xp: ArrayModule) -> Callable[..., Array] | None:
    """``multiply`` for the array module of a GPU, if the library loads."""
    if not can_compile(xp) or isinstance(cublaslt.library(xp), str):
        return None
    return functools.partial(multiply, xp)


blas.device_products.append(_product_on)
