"""Ranges of quantised integers, with the arithmetic of MXNet 1.9.1 on a CPU.

A quantised array comes with its range, two float32 arrays of one element. Only the end farther from zero counts: a
fixed number of steps lies between zero and that end.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import declare, ops
from ...core.rules import Dtypes
from ...core.spec import as_dtype, limits
from ...core.value import Value
from ...errors import DTypeError
from ..forms import formed

__all__ = ["EDGES", "ENDS", "FLOAT", "OUTPUTS", "bytewise", "calibrated", "distance", "exact", "kind", "number",
           "of_products", "of_whole", "per_unit", "product", "whole"]

#: How many steps reach an end of the range: to the middle of the outermost number, or to its far edge. Weights and sums
#: go by the first, what flows between layers by the second.
ENDS = {"int8": 127.0, "uint8": 255.0, "int32": 2147483647.0}
EDGES = {"int8": 127.5, "uint8": 255.5, "int32": 2147483647.0}

_LIMITS = {name: tuple(map(float, limits(as_dtype(name)))) for name in ENDS}

#: Outputs of an operator on quantised arrays.
OUTPUTS = ("output", "min_output", "max_output")

FLOAT = as_dtype("float32")
_BYTES = as_dtype("int8"), as_dtype("uint8")


def kind(data: Any) -> str:
    """The dtype of quantised numbers, by its name: int8 where shapes alone are asked for, and none is known."""
    name = np.dtype(data.dtype).name
    return name if name in EDGES else "int8"


def distance(low: Value, high: Value) -> Value:
    """How far the farther end of a range is from zero."""
    return ops._maximum(ops.abs(low), ops.abs(high))


def calibrated(min_calib_range: float | None, max_calib_range: float | None) -> float | None:
    """The same of a range that attributes tell, in single precision; None where they do not."""
    if min_calib_range is None or max_calib_range is None:
        return None
    return float(np.float32(max(abs(min_calib_range), abs(max_calib_range))))


def number(like: Value, value: Any) -> Value:
    """An array of one element, as ends of ranges are; ``like`` is another of its shape."""
    return ops._npi_full_like(like, fill_value=value, dtype="float32")


def per_unit(steps: float, reach: Any) -> Any:
    """How many steps one is, where so many go that far; where nothing does, all elements are zero."""
    if isinstance(reach, float):
        return float(np.float32(steps) / np.float32(reach or 1))
    return steps / (reach + (reach == 0))


@declare(name="_quantized_whole", types="T->@dtype")
def whole(data, *, dtype: Literal["int8", "uint8", "int32"]):
    """The nearest numbers of an integer dtype, of halves the even ones; those beyond it become the outermost."""


@whole.kernel()  # no body: operators would round halves down, and each take an array of its own
def whole_xp(xp, data, *, dtype):
    near, (least, most) = xp.rint(data), _LIMITS[dtype]
    return near.clip(least, most, out=near).astype(dtype)


whole.grad(ZERO)


@declare(name="_quantized_product", types="T:byte,U->U")
def product(data, factor):
    """``data``, integers of eight bits, times numbers of another dtype, in that dtype."""


formed(product, "(...) (...factor) -> (...)")


@product.kernel()  # no body: a cast of the data would be a pass over memory more
def product_xp(xp, data, factor, *, out=None):
    return xp.multiply(data, factor, out=out)


product.grad(ZERO)


def of_whole(data: Value, reach: Value) -> Value:
    """The fractions that a quantised array stands for, in the dtype of the range."""
    return product(data, reach / EDGES[kind(data)])


def of_products(data: Value, reach: Value, weight_reach: Value) -> Value:
    """How far sums of 32 bits reach whose steps are products of one of the data and one of the weights."""
    return reach / ENDS[kind(data)] * (weight_reach / ENDS["int8"]) * ENDS["int32"]


def exact(count: int) -> str:
    """A floating dtype in which sums of so many products of bytes are integers without loss.

    Examples
    --------
    >>> exact(500), exact(5000)
    ('float32', 'float64')
    """
    return "float32" if count * 255 * 128 < 1 << 24 else "float64"


def bytewise(dtypes: Dtypes) -> Dtypes:
    """The dtypes, which have to be those of eight bits where they are known.

    Raises
    ------
    DTypeError
        For another.
    """
    for dtype in dtypes:
        if dtype is not None and dtype not in _BYTES:
            raise DTypeError(f"expected quantised numbers, int8 or uint8, got {dtype}")
    return dtypes
