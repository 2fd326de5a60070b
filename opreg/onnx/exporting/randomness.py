"""Translations of random operators: distributions, of which ONNX has two, and layers in training mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...interop.translation import Untranslatable
from ..package import onnx
from .builder import Builder, Value, dynamic, product
from .table import Use, says

__all__ = ["add_dropout"]

_INT64 = np.dtype(np.int64)
_FLOAT32 = np.dtype(np.float32)


def _dtype_code(dtype: np.dtype) -> int:
    """ONNX's code of a floating dtype that it can draw."""
    if dtype.name not in ("float16", "float32", "float64"):
        raise Untranslatable(f"ONNX cannot draw random numbers of {dtype}")
    return int(onnx("helper").np_dtype_to_tensor_dtype(dtype))


def _distribution(use: Use) -> tuple[str, Mapping[str, Any]]:
    """ONNX's operator and attributes for a distribution."""
    attrs = use.attrs
    if "uniform" in use.op.name:
        return "RandomUniform", {"low": float(attrs["low"]), "high": float(attrs["high"])}
    return "RandomNormal", {"mean": float(attrs["loc"]), "scale": float(attrs["scale"])}


def _drawn(g: Builder, kind: str, shape: Sequence[Any], dtype: np.dtype, **words: Any) -> Value:
    """Values drawn from one of ONNX's distributions, in a shape that may depend on inputs."""
    if any(map(dynamic, shape)):
        return g(f"{kind}Like", g.broadcast(g.constant(np.zeros((1,) * len(shape), dtype)), shape),
                 dtype=_dtype_code(dtype), **words)
    return g(kind, shape=[int(length) for length in shape], dtype=_dtype_code(dtype), **words)


@says("_random_uniform", "_random_normal")
def _random(g: Builder, use: Use) -> Value:
    kind, words = _distribution(use)
    return _drawn(g, kind, use.out.shape, use.out.dtype, **words)


@says("_random_uniform_like", "_random_normal_like")
def _random_like(g: Builder, use: Use, x: Value) -> Value:
    kind, words = _distribution(use)
    return g(f"{kind}Like", x, dtype=_dtype_code(use.out.dtype), **words)


@says("_random_exponential", "_random_exponential_like")
def _exponential(g: Builder, use: Use, *like: Value) -> Value:
    _dtype_code(use.out.dtype)
    if like:
        drawn = g("RandomUniformLike", *like, dtype=_dtype_code(use.out.dtype))
    else:
        drawn = _drawn(g, "RandomUniform", use.out.shape, use.out.dtype)
    return -g("Log", 1.0 - drawn) / float(use.attrs["lam"])  # 1 - drawn is never zero


@says("_random_randint")
def _randint(g: Builder, use: Use) -> Value:
    low, high = use.attrs["low"], use.attrs["high"]
    if not -1 << 53 <= low < high <= 1 << 53:
        raise Untranslatable("ONNX draws floating-point numbers, which cannot represent all of these integers")
    drawn = _drawn(g, "RandomUniform", use.out.shape, np.dtype(np.float64), low=float(low), high=float(high))
    return g.cast(g.smaller(g("Floor", drawn), float(high - 1)), use.out.dtype)  # rounding may give the upper bound


@says("_sample_uniform", "_sample_normal", "_sample_exponential")
def _sample(g: Builder, use: Use, *parameters: Value) -> Value:
    rank, dtype = len(use.out.shape), use.out.dtype
    first, *others = [g.unsqueeze(g.cast(each, dtype), list(range(len(each.shape), rank))) for each in parameters]
    if "normal" in use.op.name:
        result = first + others[0] * _drawn(g, "RandomNormal", use.out.shape, dtype)
        sound = others[0] >= 0.0
    elif "uniform" in use.op.name:
        result = first + (others[0] - first) * _drawn(g, "RandomUniform", use.out.shape, dtype)
        sound = g.compare("LessOrEqual", first, others[0])
    else:
        result = -g("Log", 1.0 - _drawn(g, "RandomUniform", use.out.shape, dtype)) / first
        sound = first > 0.0
    return g.where(sound, result, float("nan"))


@says("_sample_multinomial")
def _multinomial(g: Builder, use: Use, x: Value) -> Value | list[Value]:
    classes, count = x.shape[-1], product(use.out.shape[len(x.shape) - 1:])
    if dynamic(classes) or dynamic(count):
        raise Untranslatable("the number of draws, or of classes, is dynamic")
    if not all(use.out.shape[:len(x.shape) - 1]) or not count:
        raise Untranslatable("ONNX draws at least one number")
    logarithms = g("Log", g.reshape(x, (product(x.shape[:-1]), classes)))
    places = g("Multinomial", g.cast(logarithms, _FLOAT32), sample_size=int(count),
               dtype=int(onnx("helper").np_dtype_to_tensor_dtype(_INT64)))
    results = [g.cast(g.reshape(places, use.out.shape), use.out.dtype)]
    if use.attrs["get_prob"]:
        results.append(g.reshape(g("GatherElements", logarithms, places, axis=1), use.out.shape))
    return results


@says("_shuffle")
def _shuffle(g: Builder, use: Use, x: Value) -> Value:
    count = x.shape[0]
    drawn = _drawn(g, "RandomUniform", (count,), _FLOAT32)
    _, order = g.topk(drawn, g.length(x, 0) if dynamic(count) else count, 0, False)
    return g.gather(x, order, 0)


def add_dropout(g: Builder, x: Value, rate: float) -> Value:
    """Dropout in training mode: some elements are zero, the others are scaled."""
    if g.opset < 12:
        raise Untranslatable("it draws random numbers as in training, which ONNX supports from opset 12 on")
    return g("Dropout", x, g.constant(np.asarray(rate, _FLOAT32)), g.constant(np.asarray(True)))


@says("Dropout")
def _dropout(g: Builder, use: Use, x: Value) -> Value:
    attrs = use.attrs
    if not attrs["p"] or not (use.is_train or attrs["mode"] == "always"):
        return x
    axes = {axis % len(x.shape) for axis in attrs["axes"] or ()}
    if not axes:
        return add_dropout(g, x, attrs["p"])
    # the first elements along the axes that share their random values
    firsts = g.slice(x, [0] * len(axes), [1] * len(axes), sorted(axes))
    return x * add_dropout(g, g.constant_like(1.0, firsts, x.dtype), attrs["p"])
