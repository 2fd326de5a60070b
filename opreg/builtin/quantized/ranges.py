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
from ..forms import declare_form

__all__ = ["EDGES", "ENDS", "FLOAT", "OUTPUTS", "bytewise", "calibrated_reach", "distance", "exact", "kind", "number",
           "product_range", "real_values", "per_unit", "product", "to_integers"]

#: Number of steps up to an end of the range: to the middle of the outermost integer's interval, or to its outer edge.
#: Weights and sums use the first, activations the second.
ENDS = {"int8": 127.0, "uint8": 255.0, "int32": 2147483647.0}
EDGES = {"int8": 127.5, "uint8": 255.5, "int32": 2147483647.0}

_LIMITS = {name: tuple(map(float, limits(as_dtype(name)))) for name in ENDS}

#: Outputs of an operator on quantised arrays.
OUTPUTS = ("output", "min_output", "max_output")

FLOAT = as_dtype("float32")
_BYTES = as_dtype("int8"), as_dtype("uint8")


def kind(data: Any) -> str:
    """The name of the dtype of quantised data; int8 if it is unknown, as in shape inference."""
    name = np.dtype(data.dtype).name
    return name if name in EDGES else "int8"


def distance(low: Value, high: Value) -> Value:
    """The larger absolute value of the ends of a range."""
    return ops._maximum(ops.abs(low), ops.abs(high))


def calibrated_reach(min_calib_range: float | None, max_calib_range: float | None) -> float | None:
    """The largest absolute value of a range given by attributes, in single precision; None without a range."""
    if min_calib_range is None or max_calib_range is None:
        return None
    return float(np.float32(max(abs(min_calib_range), abs(max_calib_range))))


def number(like: Value, value: Any) -> Value:
    """An array of one element, as the ends of ranges are, in the shape of ``like``."""
    return ops._npi_full_like(like, fill_value=value, dtype="float32")


def per_unit(steps: float, reach: Any) -> Any:
    """The number of steps per unit, with ``steps`` steps up to ``reach``; if ``reach`` is zero, all elements are
    zero."""
    if isinstance(reach, float):
        return float(np.float32(steps) / np.float32(reach or 1))
    return steps / (reach + (reach == 0))


@declare(name="_quantized_whole", types="T->@dtype")
def to_integers(data, *, dtype: Literal["int8", "uint8", "int32"]):
    """Values rounded to the integer dtype ``dtype``, halves to even, and clipped to its range."""


@to_integers.kernel()  # no body: the operators round halves down, and each of them would allocate an array
def whole_xp(xp, data, *, dtype):
    near, (least, most) = xp.rint(data), _LIMITS[dtype]
    # NumPy's result of a 0-d array is a number, which is not written to.
    return (near.clip(least, most, out=near) if data.shape else near.clip(least, most)).astype(dtype)


to_integers.grad(ZERO)


@declare(name="_quantized_product", types="T:byte,U->U")
def product(data, factor):
    """8-bit integers ``data`` times ``factor``, in the dtype of ``factor``."""


declare_form(product, "(...) (...factor) -> (...)")


@product.kernel()  # no body: a cast of the data would be another pass over memory
def product_xp(xp, data, factor, *, out=None):
    return xp.multiply(data, factor, out=out)


product.grad(ZERO)


def real_values(data: Value, reach: Value) -> Value:
    """The real values of a quantised array, in the dtype of the range."""
    return product(data, reach / EDGES[kind(data)])


def product_range(data: Value, reach: Value, weight_reach: Value) -> Value:
    """The range of 32-bit sums whose steps are products of the steps of data and weights."""
    return reach / ENDS[kind(data)] * (weight_reach / ENDS["int8"]) * ENDS["int32"]


def exact(count: int) -> str:
    """A floating dtype in which sums of ``count`` products of bytes are exact.

    Examples
    --------
    >>> exact(500), exact(5000)
    ('float32', 'float64')
    """
    return "float32" if count * 255 * 128 < 1 << 24 else "float64"


def bytewise(dtypes: Dtypes) -> Dtypes:
    """The dtypes, which must be 8-bit where they are known.

    Raises
    ------
    DTypeError
        For another dtype.
    """
    for dtype in dtypes:
        if dtype is not None and dtype not in _BYTES:
            raise DTypeError(f"expected quantised data, int8 or uint8, got {dtype}")
    return dtypes
