"""From fractions to whole numbers of eight bits and back, and the range that loses least."""

from __future__ import annotations

from typing import Any, Literal

from ...core.declarations import ZERO
from ...core.op import agreed
from ...core.registry import declare
from ...core.rules import Shapes
from ...core.spec import as_dtype
from ...errors import DTypeError
from ...typing import Array, ArrayModule
from ..forms import formed
from ..outputs import numbered
from .ranges import EDGES, ENDS, FLOAT, bytewise, calibrated, distance, of_whole, per_unit, whole, with_ranges

__all__: list[str] = []

Byte = Literal["int8", "uint8"]
AutoByte = Literal["auto", "int8", "uint8"]


def _dtype(out_type: str, least: float | None, most: float | None) -> str:
    """The dtype that data in a range are quantised to: with "auto" the unsigned one where nothing is below zero."""
    if out_type != "auto":
        return out_type
    return "int8" if least is None or most is None or least < 0 else "uint8"


def _ends(xp: ArrayModule, dtype: str, low: Any, high: Any, reach: Any) -> tuple[Any, Any]:
    """The ends of the range of a result, those of int8 equally far from zero."""
    return (-reach, reach) if dtype == "int8" else (low, high)


def _converted(ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Shapes of inputs and outputs: first one array in two forms, and then ends of ranges."""
    one = agreed("output", outs[0], ins[0])
    return with_ranges(["data", "min_range", "max_range"], [one, *ins[1:]], [one, *outs[1:]], 1)


# --------------------------------------------------------------------------------------------- to bytes


@declare(name="_contrib_quantize", types="float32,float32,float32->@out_type,float32,float32", outputs=numbered(3))
def quantize(data, min_range, max_range, *, out_type: Byte = "uint8"):
    """``data`` in steps of its range, of which 127 of int8, or 255 of uint8, reach the end that is farther from zero;
    and the range."""


quantize.shapes(_converted)


@quantize.kernel()
def quantize_xp(xp, data, min_range, max_range, *, out_type):
    reach = distance(xp, min_range, max_range)
    return (whole(xp, data * per_unit(ENDS[out_type], reach), out_type),
            *_ends(xp, out_type, min_range, max_range, reach))


quantize.grad(ZERO)


@declare(name="_contrib_quantize_v2", outputs=numbered(3))
def quantize_v2(data, *, out_type: AutoByte = "int8", min_calib_range: float | None = None,
                max_calib_range: float | None = None):
    """``data`` in steps of the range that calibration found, or of its own; and the range.

    127.5 steps of int8, or 255.5 of uint8, reach the end that is farther from zero. "auto" is uint8 for a calibrated
    range without negative numbers. What is quantised already stays.
    """


@quantize_v2.types
def quantize_v2_types(ins, outs, *, out_type, min_calib_range, max_calib_range):
    made = as_dtype(_dtype(out_type, min_calib_range, max_calib_range))
    if ins[0] is not None and ins[0] != FLOAT:
        bytewise(ins)
        if out_type != "auto" and ins[0] != made:
            raise DTypeError(f"data: quantised to {ins[0]} already, out_type is {out_type!r}")
        made = ins[0]
    return ins, [made if ins[0] is not None or out_type != "auto" else None, FLOAT, FLOAT]


quantize_v2.shapes(_converted)


@quantize_v2.kernel()
def quantize_v2_xp(xp, data, *, out_type, min_calib_range, max_calib_range):
    made, kind = data.dtype.name, _dtype(out_type, min_calib_range, max_calib_range)
    if calibrated(min_calib_range, max_calib_range) is not None:
        low, high = _one(xp, min_calib_range), _one(xp, max_calib_range)
    elif made in EDGES:
        low, high = _one(xp, -EDGES[made] if made == "int8" else 0.0), _one(xp, EDGES[made])
    else:
        low, high = _least_and_most(xp, data)
    if made in EDGES:
        return data, low, high
    reach = distance(xp, low, high)
    return whole(xp, data * per_unit(EDGES[kind], reach), kind), *_ends(xp, kind, low, high, reach)


quantize_v2.grad(ZERO)


def _one(xp: ArrayModule, number: float) -> Array:
    return xp.full((1,), number, "float32")


def _least_and_most(xp: ArrayModule, data: Array) -> tuple[Array, Array]:
    """The range of an array, that of an empty one being nothing."""
    if not data.size:
        return xp.zeros((1,), data.dtype), xp.zeros((1,), data.dtype)
    return data.min().reshape(1), data.max().reshape(1)


@declare(name="_contrib_quantize_asym", outputs=("output", "scale", "shift"))
def quantize_asym(data, *, min_calib_range: float | None = None, max_calib_range: float | None = None):
    """``data * scale + shift`` as uint8, of which the least and the largest number become 0 and 255; scale and
    shift."""


@quantize_asym.types
def quantize_asym_types(ins, outs):
    if ins[0] is not None and ins[0] != FLOAT:
        bytewise(ins)
    return ins, [as_dtype("uint8"), FLOAT, FLOAT]


quantize_asym.shapes(_converted)


@quantize_asym.kernel()
def quantize_asym_xp(xp, data, *, min_calib_range, max_calib_range):
    if data.dtype.name in EDGES:
        shift = _one(xp, 128.0 if data.dtype.name == "int8" else 0.0)
        return (data + shift).astype("uint8"), _one(xp, 1.0), shift
    if calibrated(min_calib_range, max_calib_range) is None:
        low, high = _least_and_most(xp, data)
    else:
        low, high = _one(xp, min_calib_range), _one(xp, max_calib_range)
    scale = per_unit(ENDS["uint8"], high - low)
    shift = ENDS["uint8"] - high * scale
    return whole(xp, data * scale + shift, "uint8"), scale, shift


quantize_asym.grad(ZERO)


# ------------------------------------------------------------------------------------------- from sums


@declare(name="_contrib_requantize", outputs=numbered(3))
def requantize(data, min_range, max_range, *, out_type: AutoByte = "int8", min_calib_range: float | None = None,
               max_calib_range: float | None = None):
    """Sums of 32 bits in larger steps, which 8 bits can count: those of the range that calibration found, or of the
    largest sum; and the range.

    127 steps of int8, or 255 of uint8, reach the end of the range. "auto" is uint8 for a calibrated range without
    negative numbers. What is beyond a calibrated range becomes the outermost number, -128 or 127.
    """


@requantize.types
def requantize_types(ins, outs, *, out_type, min_calib_range, max_calib_range):
    made = as_dtype(_dtype(out_type, min_calib_range, max_calib_range))
    return [as_dtype("int32"), FLOAT, FLOAT], [made, FLOAT, FLOAT]


requantize.shapes(_converted)


@requantize.kernel()
def requantize_xp(xp, data, min_range, max_range, *, out_type, min_calib_range, max_calib_range):
    kind = _dtype(out_type, min_calib_range, max_calib_range)
    step = distance(xp, min_range, max_range) / ENDS["int32"]
    reach = calibrated(min_calib_range, max_calib_range)
    if reach is None:
        low, high = _least_and_most(xp, data)
        made = distance(xp, low.astype("float64"), high).astype("float32") * step
    else:
        made = _one(xp, reach)
    numbers = whole(xp, data.astype("float32") * (step * per_unit(ENDS[kind], made)), kind)
    return numbers, -made if kind == "int8" else xp.zeros_like(made), made


requantize.grad(ZERO)


# ----------------------------------------------------------------------------------------- to fractions


@declare(name="_contrib_dequantize", types="T:byte,float32,float32->float32")
def dequantize(data, min_range, max_range, *, out_type: Literal["float32"] = "float32"):
    """The fractions that quantised numbers stand for: 127.5 of int8, or 255.5 of uint8, are the end of the range that
    is farther from zero."""


dequantize.shapes(_converted)


@dequantize.kernel()
def dequantize_xp(xp, data, min_range, max_range):
    return of_whole(data, distance(xp, min_range, max_range))


dequantize.grad(ZERO)


# ---------------------------------------------------------------------------------------- calibration


_SMOOTH = 1e-4  # what a bin without numbers counts, so that its logarithm exists


@declare(name="_contrib_calibrate_entropy", types="float32,float32->float32,float32",
         outputs=("threshold", "divergence"))
def calibrate_entropy(hist, hist_edges, *, num_quantized_bins: int = 255):
    """The range that changes a distribution least when it is quantised: the threshold, and by how much it is changed.

    ``hist`` counts numbers in bins around zero, ``hist_edges`` are the edges, one more. Of the ranges of bins around
    the middle one, from ``num_quantized_bins`` bins up, the one is chosen of which the distribution with all beyond in
    its outermost bins, and the same in ``num_quantized_bins`` bins, have the least divergence (Kullback and Leibler).
    """


formed(calibrate_entropy, "-> (1) (1)")


@calibrate_entropy.kernel()
def calibrate_entropy_xp(xp, hist, hist_edges, *, num_quantized_bins):
    counts, middle = hist.astype("float64").ravel(), hist.size // 2
    widths = range(num_quantized_bins // 2, middle + 1)
    ranges = [slice(middle - width, middle + width + 1) for width in widths]
    found = xp.stack([_divergence(xp, counts, part, num_quantized_bins) for part in ranges])
    best = xp.argmin(found).reshape(1)
    edges = hist_edges.ravel()[ranges[0].stop:ranges[-1].stop + 1]
    return edges[best], found[best].astype("float32")


calibrate_entropy.grad(ZERO)


def _divergence(xp: ArrayModule, counts: Array, part: slice, bins: int) -> Array:
    """How far a part of a distribution is from itself in so many bins; infinite where that says nothing."""
    p = counts[part].copy()
    p[0], p[-1] = counts[:part.start + 1].sum(), counts[part.stop - 1:].sum()
    inner = counts[part].copy()
    inner[0] = 0
    group = xp.minimum(xp.arange(p.size) // (p.size // bins), bins - 1)
    held = xp.bincount(group, inner, bins) / xp.maximum(xp.bincount(group, inner != 0, bins), 1)
    q = held[group] * (p != 0)
    p, _ = _smoothed(xp, p)
    q, sound = _smoothed(xp, q)
    p, q = p / p.sum(), xp.where(sound, q / xp.where(sound, q.sum(), 1), p)
    return xp.where(sound, (p * xp.log(p / q)).sum(), xp.inf)


def _smoothed(xp: ArrayModule, numbers: Array) -> tuple[Array, Array]:
    """A distribution whose zeros have taken a little from the rest, and whether the rest had it."""
    there = numbers != 0
    given = _SMOOTH * (~there).sum() / xp.maximum(there.sum(), 1)
    return numbers + xp.where(there, -given, _SMOOTH), there.any() & (given < 1)
