"""Ranges of quantised integers, in the arithmetic of MXNet 1.9.1 on a CPU.

A quantised array comes with the ends of its range, two float32 arrays of one number. Only the end that is farther from
zero counts, its distance: so many steps reach from zero to there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.op import Op, agreed
from ...core.rules import Attrs, Dtypes, Shapes
from ...core.spec import as_dtype, limits
from ...errors import DTypeError
from ...typing import Array, ArrayModule

__all__ = ["EDGES", "ENDS", "FLOAT", "OUTPUTS", "bytewise", "calibrated", "distance", "exact", "of_products",
           "of_whole", "per_unit", "run", "with_ranges", "whole"]

#: How many steps reach an end of the range: to the middle of the outermost number, or to its far edge. Weights and sums
#: go by the first, what flows between layers by the second.
ENDS = {"int8": 127.0, "uint8": 255.0, "int32": 2147483647.0}
EDGES = {"int8": 127.5, "uint8": 255.5, "int32": 2147483647.0}

#: Outputs of an operator on quantised arrays.
OUTPUTS = ("output", "min_output", "max_output")

FLOAT = as_dtype("float32")
_BYTES = as_dtype("int8"), as_dtype("uint8")


def distance(xp: ArrayModule, low: Any, high: Any) -> Any:
    """How far the farther end of a range is from zero."""
    return xp.maximum(xp.abs(low), xp.abs(high))


def calibrated(min_calib_range: float | None, max_calib_range: float | None) -> float | None:
    """The same of a range that attributes tell; None where they do not."""
    if min_calib_range is None or max_calib_range is None:
        return None
    return max(abs(min_calib_range), abs(max_calib_range))


def per_unit(steps: float, reach: Any) -> Any:
    """How many steps one is, where so many go that far; where nothing does, all numbers are zero."""
    return steps / (reach + (reach == 0))


def whole(xp: ArrayModule, numbers: Array, dtype: str) -> Array:
    """The nearest numbers of an integer dtype, of halves the even ones; those beyond it become the outermost."""
    return xp.clip(xp.rint(numbers), *limits(as_dtype(dtype))).astype(dtype)


def of_whole(data: Array, reach: Any) -> Array:
    """The fractions that a quantised array stands for."""
    return data * (reach / EDGES[data.dtype.name])


def of_products(xp: ArrayModule, data: Array, reach: Any, weight_reach: Any) -> Any:
    """How far sums of 32 bits reach whose steps are products of one of the data and one of the weights."""
    return reach / ENDS[data.dtype.name] * (weight_reach / ENDS["int8"]) * ENDS["int32"]


def exact(count: int) -> str:
    """A floating dtype in which sums of so many products of bytes are whole numbers without loss.

    Examples
    --------
    >>> exact(500), exact(5000)
    ('float32', 'float64')
    """
    return "float32" if count * 255 * 128 < 1 << 24 else "float64"


def run(op: Op, xp: ArrayModule, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Results of an operator's reference kernel in inference."""
    return op.kernels[0].rule({**attrs, "is_train": False}, xp, *arrays)


# ----------------------------------------------------------------------------------------------- shapes, dtypes


def with_ranges(names: Sequence[str], ins: Sequence[Any], outs: Sequence[Any], count: int) -> tuple[Shapes, Shapes]:
    """Shapes of inputs and outputs of which all but the first ``count`` inputs, and the first output, are ends of
    ranges."""
    ends = [agreed(name, shape, (1,)) for name, shape in zip(names[count:], ins[count:])]
    return [*ins[:count], *ends], [outs[0], *[(1,)] * (len(outs) - 1)]


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
