"""Quantisation and dequantisation, and calibration of ranges."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...core.declarations import ZERO
from ...core.registry import declare, ops
from ...core.spec import as_dtype
from ...core.value import Value
from ...custom.composed import composed
from ...errors import DTypeError
from ...typing import Array, ArrayModule
from ..forms import declare_form
from ..outputs import names_of_outputs
from .ranges import EDGES, ENDS, FLOAT, bytewise, calibrated_reach, distance, number, per_unit, real_values, to_integers

Byte = Literal["int8", "uint8"]
AutoByte = Literal["auto", "int8", "uint8"]


def _dtype(out_type: str, least: float | None, most: float | None) -> str:
    """The dtype that data in a range are quantised to: with "auto", uint8 if no value is negative."""
    if out_type != "auto":
        return out_type
    return "int8" if least is None or most is None or least < 0 else "uint8"


def _range_ends(dtype: str, low: Value, high: Value, reach: Value) -> tuple[Value, Value]:
    """The ends of the range of a result; those of int8 are symmetric."""
    return (-reach, reach) if dtype == "int8" else (low, high)


def _least_and_most(data: Any) -> tuple[Value, Value]:
    """The smallest and largest element of an array; zeros for an empty one."""
    if 0 in data.shape:
        return (number(ops.size_array(data), 0),) * 2
    return ops.min(data), ops.max(data)


# ----------------------------------------------------------------------------------------- quantisation


@composed(name="_contrib_quantize", types="float32,float32,float32->@out_type,float32,float32",
          outputs=names_of_outputs(3))
def quantize(data, min_range, max_range, *, out_type: Byte = "uint8"):
    """``data`` quantised in its range, and the range: 127 steps of int8, or 255 of uint8, reach the end of the range
    that is farther from zero."""
    reach = distance(min_range, max_range)
    return (to_integers(data * per_unit(ENDS[out_type], reach), dtype=out_type),
            *_range_ends(out_type, min_range, max_range, reach))


@composed(name="_contrib_quantize_v2", outputs=names_of_outputs(3))
def quantize_v2(data, *, out_type: AutoByte = "int8", min_calib_range: float | None = None,
                max_calib_range: float | None = None):
    """``data`` quantised in the calibrated range, by default in its own range; and the range.

    127.5 steps of int8, or 255.5 of uint8, reach the end of the range that is farther from zero. "auto" is uint8 for a
    calibrated range without negative values. Quantised data are returned unchanged.
    """
    source_dtype, kind = np.dtype(data.dtype).name, _dtype(out_type, min_calib_range, max_calib_range)
    limit: Any = calibrated_reach(min_calib_range, max_calib_range)
    if source_dtype not in EDGES and limit is None:
        low, high = _least_and_most(data)
        reach = distance(low, high)
        return to_integers(data * per_unit(EDGES[kind], reach), dtype=kind), *_range_ends(kind, low, high, reach)
    limits: tuple[Any, Any] = min_calib_range, max_calib_range
    if source_dtype not in EDGES:
        data = to_integers(data * per_unit(EDGES[kind], limit), dtype=kind)
        limits = (-limit, limit) if kind == "int8" else limits
    elif limit is None:
        limits = -EDGES[source_dtype] if source_dtype == "int8" else 0, EDGES[source_dtype]
    return data, *[number(ops.size_array(data), end) for end in limits]


@quantize_v2.types
def quantize_v2_types(ins, outs, *, out_type, min_calib_range, max_calib_range):
    output_dtype = as_dtype(_dtype(out_type, min_calib_range, max_calib_range))
    if ins[0] is not None and ins[0] != FLOAT:
        bytewise(ins)
        if out_type != "auto" and ins[0] != output_dtype:
            raise DTypeError(f"data: quantised to {ins[0]} already, out_type is {out_type!r}")
        output_dtype = ins[0]
    return ins, [output_dtype if ins[0] is not None or out_type != "auto" else None, FLOAT, FLOAT]


@composed(name="_contrib_quantize_asym", outputs=("output", "scale", "shift"))
def quantize_asym(data, *, min_calib_range: float | None = None, max_calib_range: float | None = None):
    """``data * scale + shift`` as uint8, and ``scale`` and ``shift``, which map the smallest and largest element to 0
    and 255."""
    source_dtype, steps, size = np.dtype(data.dtype).name, ENDS["uint8"], ops.size_array(data)
    if source_dtype in EDGES:
        shift = 128.0 if source_dtype == "int8" else 0.0
        return ops.Cast(ops.Cast(data, dtype="float32") + shift, dtype="uint8"), number(size, 1), number(size, shift)
    if calibrated_reach(min_calib_range, max_calib_range) is None:
        low, high = _least_and_most(data)
    else:
        low, high = number(size, min_calib_range), number(size, max_calib_range)
    scale = per_unit(steps, high - low)
    shift = steps - high * scale
    return to_integers(data * scale + shift, dtype="uint8"), scale, shift


@quantize_asym.types
def quantize_asym_types(ins, outs):
    if ins[0] is not None and ins[0] != FLOAT:
        bytewise(ins)
    return ins, [as_dtype("uint8"), FLOAT, FLOAT]


# ------------------------------------------------------------------------------------------- from sums


@composed(name="_contrib_requantize", outputs=names_of_outputs(3))
def requantize(data, min_range, max_range, *, out_type: AutoByte = "int8", min_calib_range: float | None = None,
               max_calib_range: float | None = None):
    """32-bit sums requantised to 8 bits, and their new range: the calibrated one, or by default that of the largest
    sum.

    127 steps of int8, or 255 of uint8, reach the end of the range. "auto" is uint8 for a calibrated range
    without negative values. Values beyond a calibrated range are clipped to -128 or 127.
    """
    kind = _dtype(out_type, min_calib_range, max_calib_range)
    step = distance(min_range, max_range) / ENDS["int32"]
    reach = calibrated_reach(min_calib_range, max_calib_range)
    numbers = ops.Cast(data, dtype="float32")
    own_reach = distance(*_least_and_most(numbers)) * step if reach is None else number(step, reach)
    steps = step * per_unit(ENDS[kind], own_reach if reach is None else reach)
    low = -own_reach if kind == "int8" else ops.zeros_like(own_reach)
    return to_integers(numbers * steps, dtype=kind), low, own_reach


@requantize.types
def requantize_types(ins, outs, *, out_type, min_calib_range, max_calib_range):
    output_dtype = as_dtype(_dtype(out_type, min_calib_range, max_calib_range))
    return [as_dtype("int32"), FLOAT, FLOAT], [output_dtype, FLOAT, FLOAT]


# --------------------------------------------------------------------------------------- dequantisation


@composed(name="_contrib_dequantize", types="T:byte,float32,float32->float32")
def dequantize(data, min_range, max_range, *, out_type: Literal["float32"] = "float32"):
    """The floating-point values of quantised data: 127.5 steps of int8, or 255.5 of uint8, reach the end of the range
    that is farther from zero."""
    return real_values(data, distance(min_range, max_range))


declare_form(dequantize, "(...) (1) (1) -> (...)")
for _op in (quantize, requantize):
    declare_form(_op, "(...) (1) (1) -> (...) (1) (1)")
for _op in (quantize_v2, quantize_asym):
    declare_form(_op, "(...) -> (...) (1) (1)")
for _op in (quantize, quantize_v2, quantize_asym, requantize, dequantize):
    _op.grad(ZERO)


# ---------------------------------------------------------------------------------------- calibration


_SMOOTH = 1e-4  # count of an empty bin, so that its logarithm exists


@declare(name="_contrib_calibrate_entropy", types="float32,float32->float32,float32",
         outputs=("threshold", "divergence"))
def calibrate_entropy(hist, hist_edges, *, num_quantized_bins: int = 255):
    """The threshold for which the quantised distribution has the least divergence, and this divergence.

    ``hist`` counts elements in bins around zero; ``hist_edges``, one element longer, are the edges of the bins. All
    ranges of ``num_quantized_bins`` or more bins around the middle one are tried. In each, elements beyond the range
    count in its outermost bins; the Kullback-Leibler divergence compares this distribution with itself in
    ``num_quantized_bins`` bins.
    """


declare_form(calibrate_entropy, "-> (1) (1)")


@calibrate_entropy.kernel()  # no body: the number of ranges tried depends on the histogram
def calibrate_entropy_xp(xp, hist, hist_edges, *, num_quantized_bins):
    counts, middle = hist.astype("float64").ravel(), hist.size // 2
    widths = range(num_quantized_bins // 2, middle + 1)
    ranges = [slice(middle - width, middle + width + 1) for width in widths]
    divergences = xp.stack([_divergence(xp, counts, part, num_quantized_bins) for part in ranges])
    best = xp.argmin(divergences).reshape(1)
    edges = hist_edges.ravel()[ranges[0].stop:ranges[-1].stop + 1]
    return edges[best], divergences[best].astype("float32")


calibrate_entropy.grad(ZERO)


def _divergence(xp: ArrayModule, counts: Array, part: slice, bins: int) -> Array:
    """The divergence of a part of a distribution from itself in ``bins`` bins; infinite if it is undefined."""
    p = counts[part].copy()
    p[0], p[-1] = counts[:part.start + 1].sum(), counts[part.stop - 1:].sum()
    inner = counts[part].copy()
    inner[0] = 0
    group = xp.minimum(xp.arange(p.size) // (p.size // bins), bins - 1)
    means = xp.bincount(group, inner, bins) / xp.maximum(xp.bincount(group, inner != 0, bins), 1)
    q = means[group] * (p != 0)
    p, _ = _smooth_zeros(xp, p)
    q, sound = _smooth_zeros(xp, q)
    p, q = p / p.sum(), xp.where(sound, q / xp.where(sound, q.sum(), 1), p)
    return xp.where(sound, (p * xp.log(p / q)).sum(), xp.inf)


def _smooth_zeros(xp: ArrayModule, numbers: Array) -> tuple[Array, Array]:
    """A distribution whose zeros take a small share from the other elements, and whether those had enough."""
    nonzero = numbers != 0
    share = _SMOOTH * (~nonzero).sum() / xp.maximum(nonzero.sum(), 1)
    return numbers + xp.where(nonzero, -share, _SMOOTH), nonzero.any() & (share < 1)
