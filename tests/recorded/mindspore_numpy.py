"""Results of ``mindspore.numpy``'s functions, asked of MindSpore or of opreg, which have the same names.

The answers of MindSpore 2.10 are kept in ``mindspore_numpy.json``. Where it is installed, this file writes them:

    python tests/recorded/mindspore_numpy.py tests/recorded/mindspore_numpy.json
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["CASES", "DIFFERENT", "asked"]

_INPUTS = {
    "f": "np.array([[-2.1, -0.7, 0.3], [0.9, 1.6, 3.2]], 'f4')", "g": "np.array([[0.5, -1.2, 2.2]], 'f4')",
    "p": "np.array([0.15, 0.35, 0.55, 0.9], 'f4')", "i": "np.array([[1, 5, -3], [4, 0, 2]], 'i4')",
    "j": "np.array([3, 2, 4], 'i4')", "k": "np.array([0, 2, 1, 2], 'i4')", "b": "np.array([True, False, True])",
    "c": "np.arange(24.0).reshape(2, 3, 4).astype('f4')", "h": "np.array([1.5, 2.5, -1.5], 'f2')",
    "m": "np.array([[4.0, 1.0], [2.0, 3.0]], 'f4')", "v": "np.array([1.0, 2.0, 4.0, 7.0], 'f4')",
    "n": "np.array([[1.0, np.nan, 3.0], [np.inf, 2.0, -np.inf]], 'f4')", "u": "np.array([3, 200, 7], 'u1')",
    "l": "np.array([7, -2, 3], 'i8')",
}
_ONE = [
    "abs", "absolute", "cbrt", "ceil", "cos", "cosh", "deg2rad", "exp", "exp2", "expm1", "fabs", "floor",
    "isfinite", "isinf", "isnan", "log10", "log1p", "log2", "log", "negative", "positive", "rad2deg", "radians",
    "reciprocal", "rint", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "logical_not",
    "arctan", "arcsinh", "signbit"]
_NEAR = ["arccos", "arcsin", "arctanh"]
_TWO = [
    "add", "arctan2", "copysign", "divide", "equal", "float_power", "floor_divide", "fmod", "greater",
    "greater_equal", "heaviside", "hypot", "less", "less_equal", "maximum", "minimum",
    "mod", "multiply", "not_equal", "power", "remainder", "subtract", "true_divide"]
_WHOLE = ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"]
_OVER = [
    "amax", "amin", "max", "min", "mean", "ptp", "std", "sum", "var", "nanmax", "nanmean", "nanmin", "nanstd",
    "nansum", "nanvar"]
#: Cases: expressions of ``mnp``, ``ms``, ``np`` and the inputs, as tensors.
CASES = [
    *(f"mnp.{name}({x})" for name in _ONE for x in ("f", "i", "h") if not name.startswith("log") or x != "i"),
    *(f"mnp.{name}(f, dtype=ms.float64)" for name in ("exp", "abs", "sin", "square", "floor")),
    *(f"mnp.{name}(p)" for name in _NEAR), "mnp.arccosh(v)", "mnp.isneginf(n)", "mnp.isposinf(n)", "mnp.fix(f)",
    "mnp.isnan(n)", "mnp.isinf(n)", "mnp.exp(2.0)", "mnp.bitwise_not(i)", "mnp.invert(i)",
    *(f"mnp.{name}({pair})" for name in _TWO
      for pair in ("f, g", "i, j", "i, f", "i, 2", "f, 2", "2, v", "h, g", "j, l")
      if name not in ("power", "float_power") or pair in ("v, 2", "f, 2", "2, v", "i, 2")),
    "mnp.add(b, b)", "mnp.add(b, i)", "mnp.add(u, j)", "mnp.multiply(u, 2.5)", "mnp.add([1, 2], [3, 4])",
    "mnp.add(i, 1.5)", "mnp.add(f, f, dtype=ms.float64)", "mnp.power(v, 2)", "mnp.power(2, j)", "mnp.divmod(f, 2)",
    "mnp.divmod(i, 2)", *(f"mnp.{name}(i, j)" for name in _WHOLE), "mnp.logical_and(b, [True, True, False])",
    "mnp.logical_or(b, [True, True, False])", "mnp.logical_xor(b, [True, True, False])", "mnp.logical_and(f > 0, b)",
    *(f"mnp.{name}({x}{rest})" for name in _OVER for x in ("f", "i") for rest in ("", ", axis=1", ", 0")),
    *(f"mnp.{name}(n)" for name in ("nanmax", "nanmin", "nanmean", "nansum")),
    *(f"mnp.{name}(f, axis=1, keepdims=True)" for name in _OVER), "mnp.max(f, axis=(0, 1))", "mnp.std(f, ddof=1)",
    "mnp.var(f, axis=0, ddof=1)", "mnp.sum(f, initial=2)", "mnp.sum(i, dtype=ms.float32)", "mnp.sum(b)",
    "mnp.max(f, initial=9.0)", "mnp.max(f, where=f < 1, initial=-5.0)", "mnp.mean(b)", "mnp.mean(c, axis=(0, 2))",
    "mnp.sum(f, axis=5)", "mnp.argmax(f)", "mnp.argmax(f, axis=0)", "mnp.argmin(f)", "mnp.argmin(f, axis=1)",
    "mnp.average(f)", "mnp.average(f, axis=1, weights=j)", "mnp.average(f, weights=f, returned=True)",
    "mnp.count_nonzero(i)", "mnp.count_nonzero(i, axis=0, keepdims=True)", "mnp.sometrue(i)",
    "mnp.sometrue(i, axis=1)", "mnp.cumsum(f)", "mnp.cumsum(f, axis=1)", "mnp.cumsum(i, axis=0)", "mnp.cumsum(b)",
    "mnp.cumprod(f, axis=1)", "mnp.cumprod(i)", "mnp.cumprod(v)", "mnp.nancumsum(n[0])", "mnp.diff(v)",
    "mnp.diff(f, n=2)", "mnp.diff(f, axis=0)", "mnp.diff(v, prepend=0, append=9)", "mnp.ediff1d(v)",
    "mnp.ediff1d(v, to_end=5, to_begin=-1)", "mnp.trapz(v)", "mnp.trapz(v, dx=2.0)", "mnp.trapz(v, x=[0, 1, 3, 4])",
    "mnp.gradient(v)", "mnp.gradient(v, 2.0)", "mnp.gradient(c)", "mnp.gradient(c, axis=1)", "mnp.clip(f, -1, 1)",
    "mnp.clip(i, 0, 3)", "mnp.clip(f, None, 1)", "mnp.clip(f, g, 2)", "mnp.unwrap(3 * v)",
    # made of nothing
    "mnp.array([1, 2])", "mnp.array([1.0, 2])", "mnp.array([[True], [False]])", "mnp.array(3)", "mnp.array(3.5)",
    "mnp.array(f, dtype=ms.int32)", "mnp.array([f, f])", "mnp.array([1, 2], ndmin=3)", "mnp.array((1, [2]))",
    "mnp.array(np.arange(3))", "mnp.array(np.ones(2))", "mnp.array('x')", "mnp.asarray([1, 2])", "mnp.asarray(f)",
    "mnp.asarray([1, 2], dtype='float16')", "mnp.asfarray([1, 2])", "mnp.asfarray(i)", "mnp.ones((2, 3))",
    "mnp.ones(2, ms.int32)", "mnp.zeros((2, 3))", "mnp.zeros(3, dtype='int32')", "mnp.ones(-1)", "mnp.zeros(2.5)",
    "mnp.empty((2, 2)).shape", "mnp.full((2, 2), 3)", "mnp.full((2,), 3.5)", "mnp.full((2, 3), [1, 2, 3])",
    "mnp.full(2, True)", "mnp.full((2, 2), 3, dtype=ms.float16)", "mnp.ones_like(i)", "mnp.zeros_like(f)",
    "mnp.zeros_like([1, 2])", "mnp.full_like(i, 7)", "mnp.full_like(i, 2.5)", "mnp.full_like(f, 1, shape=(2,))",
    "mnp.ones_like(f, dtype=ms.int32)", "mnp.ones_like(f, shape=(4,))", "mnp.empty_like(f).shape",
    "mnp.arange(5)", "mnp.arange(1, 5)", "mnp.arange(0, 1, 0.25)", "mnp.arange(5.0)", "mnp.arange(3, dtype=ms.float32)",
    "mnp.arange(5, 1, -2)", "mnp.linspace(0, 1, 5)", "mnp.linspace(0, 1, 4, endpoint=False)",
    "mnp.linspace(0, 10, 3, retstep=True)", "mnp.linspace([0, 1], [1, 3], 3)", "mnp.linspace(0, 4, 5, dtype=ms.int32)",
    "mnp.linspace([0, 1], [1, 3], 3, axis=1)",
    "mnp.logspace(0, 2, 3)", "mnp.logspace(0, 4, 3, base=2.0)", "mnp.geomspace(1, 1000, 4)", "mnp.eye(2)",
    "mnp.eye(2, 3, 1)", "mnp.eye(2, dtype=ms.int32)", "mnp.identity(2)", "mnp.tri(2, 3)", "mnp.tri(3, k=-1)",
    "mnp.tril(f)", "mnp.triu(f, 1)", "mnp.tril(c, -1)", "mnp.diag([1, 2])", "mnp.diag(m)", "mnp.diag(v, k=1)",
    "mnp.diag(f, 1)", "mnp.diagflat(m)", "mnp.diagflat([1, 2], -1)", "mnp.diagonal(f)", "mnp.diagonal(c, 1, 0, 2)",
    "mnp.diag_indices(3)", "mnp.diag_indices(2, 3)", "mnp.trace(m)", "mnp.trace(c, 1)", "mnp.trace(i)",
    "mnp.tril_indices(3)", "mnp.triu_indices(3, 1)", "mnp.tril_indices(2, m=3)", "mnp.tril_indices_from(m)",
    "mnp.triu_indices_from(f, 1)", "mnp.vander([1, 2, 3])", "mnp.vander(v, 3, increasing=True)",
    "mnp.meshgrid([1, 2], [3, 4, 5])", "mnp.meshgrid([1, 2], [3, 4, 5], indexing='ij')",
    "mnp.meshgrid([1, 2], [3, 4], sparse=True)", "mnp.mgrid[0:3]", "mnp.mgrid[0:2, 0:3]", "mnp.mgrid[0:1:3j]",
    "mnp.ogrid[0:2, 0:3]", "mnp.indices((2, 2))", "mnp.indices((2, 3), sparse=True)", "mnp.ix_([0, 1], [2])",
    "mnp.bartlett(5)", "mnp.blackman(5)", "mnp.hamming(5)", "mnp.hanning(5)", "mnp.hanning(1)",
    "mnp.rand(2, 3).shape", "mnp.randn(2).dtype", "mnp.randint(3, shape=(4,)).shape", "mnp.rand().shape",
    # moved
    "mnp.reshape(f, (3, 2))", "mnp.reshape(f, -1)", "mnp.ravel(f)", "mnp.transpose(f)", "mnp.transpose(c, (1, 0, 2))",
    "mnp.swapaxes(c, 0, 2)", "mnp.moveaxis(c, 0, -1)", "mnp.moveaxis(c, [0, 1], [1, 2])", "mnp.rollaxis(c, 2)",
    "mnp.rollaxis(c, 0, 2)", "mnp.expand_dims(f, 0)", "mnp.expand_dims(f, (0, 2))", "mnp.squeeze(g)",
    "mnp.squeeze(g, 0)", "mnp.squeeze(f, 0)", "mnp.flip(f)", "mnp.flip(f, 1)", "mnp.flip(c, (0, 2))", "mnp.fliplr(f)",
    "mnp.flipud(f)", "mnp.roll(f, 1)", "mnp.roll(f, 1, 1)", "mnp.roll(f, (1, 2), (0, 1))", "mnp.rot90(f)",
    "mnp.rot90(f, 2)", "mnp.rot90(c, -1, (1, 2))", "mnp.tile(f, 2)", "mnp.tile(f, (2, 1))", "mnp.tile(v, (2, 2))",
    "mnp.repeat(f, 2)", "mnp.repeat(f, 2, axis=0)", "mnp.repeat(f, [1, 2], axis=0)", "mnp.append(f, g)",
    "mnp.append(f, g, axis=0)", "mnp.concatenate((f, g))", "mnp.concatenate((f, f), 1)",
    "mnp.concatenate((f, f), axis=None)", "mnp.concatenate((i, f))", "mnp.stack((f, f))", "mnp.stack([i, i], axis=-1)",
    "mnp.hstack((f, f))", "mnp.hstack((v, v))", "mnp.vstack((v, v))", "mnp.vstack((f, g))", "mnp.dstack((f, f))",
    "mnp.column_stack((v, v))", "mnp.split(v, 2)", "mnp.split(v, [1, 3])", "mnp.split(v, 3)",
    "mnp.array_split(v, 3)", "mnp.array_split(f, 2, axis=1)", "mnp.hsplit(f, 3)", "mnp.vsplit(f, 2)",
    "mnp.dsplit(c, 2)", "mnp.hsplit(f, [1])", "mnp.atleast_1d(2.0)", "mnp.atleast_2d(v)", "mnp.atleast_3d(v)",
    "mnp.atleast_3d(f)", "mnp.atleast_2d(1.0, v)", "mnp.broadcast_to(g, (2, 3))", "mnp.broadcast_to(2.0, (2,))",
    "mnp.broadcast_arrays(f, g)", "mnp.pad(v, 1)", "mnp.pad(f, ((1, 0), (0, 2)))", "mnp.pad(v, 2, mode='edge')",
    "mnp.pad(v, (1, 2), mode='reflect')", "mnp.pad(v, 2, mode='symmetric')", "mnp.pad(v, 2, mode='wrap')",
    "mnp.pad(v, 1, constant_values=9)", "mnp.pad(v, 2, mode='mean')", "mnp.pad(v, 2, mode='maximum', stat_length=2)",
    "mnp.pad(v, 2, mode='minimum')", "mnp.pad(v, 2, mode='linear_ramp', end_values=1.0)",
    "mnp.pad(v, 1, mode='empty').shape",
    # products
    "mnp.matmul(m, m)", "mnp.matmul(c, c.swapaxes(1, 2))", "mnp.matmul(i, j)", "mnp.matmul(f, j)", "mnp.dot(m, m)",
    "mnp.dot(v, v)", "mnp.dot(f, g[0])", "mnp.dot(c, c[0].T)", "mnp.dot(f, 2)", "mnp.inner(f, g)", "mnp.inner(v, v)",
    "mnp.outer(v, j)", "mnp.outer(f, g)", "mnp.tensordot(c, c, ([0, 1], [0, 1]))", "mnp.tensordot(f, f.T, 1)",
    "mnp.kron(m, m)", "mnp.kron(v, m)", "mnp.cross(f, g)", "mnp.cross([1, 2, 3], [4, 5, 6])",
    "mnp.cross([1, 2], [3, 4])",
    "mnp.multi_dot((f, f.T, m))", "mnp.convolve(v, [0, 1, 0.5])", "mnp.convolve(v, [1, 2], mode='same')",
    "mnp.convolve(v, [1, 2], 'valid')", "mnp.correlate(v, [1, 2])", "mnp.correlate(v, [1, 2, 3], 'full')",
    "mnp.correlate(v, [1, 2, 3], 'same')", "mnp.norm(f)", "mnp.norm(f, axis=1)", "mnp.norm(f, ord=1, axis=0)",
    "mnp.norm(m, 'fro')", "mnp.norm(v, ord=np.inf)", "mnp.norm(f, axis=1, keepdims=True)",
    "mnp.norm(m, 1)", "mnp.norm(v, ord=3)",
    "mnp.cov(f)", "mnp.cov(v, v * 2)", "mnp.cov(f, rowvar=False, bias=True)", "mnp.corrcoef(f)",
    # looked up, compared
    "mnp.take(v, [0, 2])", "mnp.take(f, [1], axis=0)", "mnp.take(f, [[0, 5]], mode='clip')", "mnp.take(f, 4)",
    "mnp.take(v, [-1, 5], mode='wrap')",
    "mnp.take_along_axis(f, ms.Tensor([[0], [2]]), 1)", "mnp.where(f > 0, f, 0)", "mnp.where(f > 0, f, g)",
    "mnp.where(b, 1, 0)", "mnp.where(f > 0, i, f)", "mnp.select([f > 1, f > 0], [f, f * 10], 5)",
    "mnp.choose([0, 1, 0], [[1, 2, 3], [4, 5, 6]])", "mnp.choose([0, 3, 1], [[1, 2, 3], [4, 5, 6]], mode='wrap')",
    "mnp.searchsorted(v, [0, 2.5, 9])", "mnp.searchsorted(v, 2.0, side='right')", "mnp.digitize(p, [0.2, 0.5])",
    "mnp.digitize(p, [0.5, 0.2], right=True)", "mnp.bincount(k)", "mnp.bincount(k, weights=v)",
    "mnp.bincount(k, minlength=5)", "mnp.argwhere(i)", "mnp.unique(k)", "mnp.unique(k, return_inverse=True)",
    "mnp.isin(i, [1, 2])", "mnp.in1d(k, [2], invert=True)", "mnp.intersect1d([1, 2, 3], [2, 3, 4])",
    "mnp.intersect1d([1, 2, 3], [3, 2], return_indices=True)", "mnp.setdiff1d([1, 2, 3, 2], [2])",
    "mnp.isclose(f, f + 1e-9)", "mnp.isclose(n, n)", "mnp.isclose(n, n, equal_nan=True)", "mnp.array_equal(f, f)",
    "mnp.array_equal(f, g)", "mnp.array_equiv(g, g[0])", "mnp.isscalar(3)", "mnp.isscalar(f)", "mnp.isscalar('a')",
    "mnp.size(f)", "mnp.size(f, 1)", "mnp.unravel_index([1, 5], (2, 3))", "mnp.unravel_index(4, (2, 3), order='F')",
    "mnp.ravel_multi_index(([0, 1], [1, 2]), (2, 3))", "mnp.ravel_multi_index(([0, 3], [1, 2]), (2, 3), mode='wrap')",
    "mnp.interp([1.5, 9.0], [1, 2, 3], [3.0, 2.0, 0.0])", "mnp.interp(0.0, [1, 2], [3.0, 2.0], left=7.0)",
    "mnp.histogram(v, 3)", "mnp.histogram(v, [0, 2, 8])", "mnp.histogram(v, 3, density=True)",
    "mnp.histogram(v, 2, range=(0, 8), weights=v)", "mnp.histogram_bin_edges(v, 4)", "mnp.histogram2d(v, v, 2)",
    "mnp.histogramdd(f.T, bins=2)", "mnp.polyadd([1, 2], [1, 1, 1])", "mnp.polysub([1, 2], [1, 1, 1])",
    "mnp.polymul([1, 2], [1, -1])", "mnp.polyval([1, 2, 3], 2.0)", "mnp.polyval([1, 2, 3], v)",
    "mnp.polyder([1, 2, 3])",
    "mnp.polyder([1, 2, 3, 4], 2)", "mnp.polyint([6, 2])", "mnp.polyint([6, 2], k=3)",
    "mnp.piecewise(v, [v < 3, v >= 3], [-1, 1])",
    "mnp.piecewise(v, [v < 3], [lambda x: -x, lambda x: x * 2])", "mnp.apply_along_axis(lambda x: x.sum(), 1, f)",
    "mnp.apply_along_axis(lambda x: x * 2, 0, f)", "mnp.apply_over_axes(lambda x, a: mnp.sum(x, a), c, (0, 2))",
    "mnp.array_str(v)", "mnp.promote_types(ms.float32, ms.int32)", "mnp.promote_types('int8', 'float16')",
    "mnp.result_type(f, i)", "mnp.result_type(i, ms.float16)", "mnp.result_type('i2', 'i4')",
    "mnp.float_", "mnp.int_", "mnp.bool_", "mnp.uint8", "mnp.pi", "mnp.inf", "mnp.e", "mnp.newaxis", "mnp.nan",
]
#: Cases in which opreg differs on purpose: expressions, and the reason.
DIFFERENT: dict[str, str] = {
    **dict.fromkeys(("mnp.cbrt(h)", "mnp.ceil(h)"), "float16 stays what it is"),
    "mnp.cbrt(i)": "the root of zero is zero, and not NaN",
    "mnp.tanh(i)": "MindSpore's is wrong by a ten-thousandth",
    **dict.fromkeys(("mnp.std(i)", "mnp.std(i, 0)", "mnp.var(i)", "mnp.var(i, 0)"), "the mean is not cut off"),
    "mnp.squeeze(f, 0)": "an axis that is longer than one is an error",
    **dict.fromkeys(("mnp.ravel_multi_index(([0, 1], [1, 2]), (2, 3))",
                     "mnp.ravel_multi_index(([0, 3], [1, 2]), (2, 3), mode='wrap')"), "places are int32, not float32"),
}


def _plain(value: Any) -> Any:
    """An answer in the form of JSON: values with dtype and shape, nested as they were."""
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if hasattr(value, "asnumpy") or isinstance(value, (np.ndarray, np.generic)):
        numbers = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
        return {"dtype": str(value.dtype), "shape": list(numbers.shape),
                "numbers": [repr(float(each)) for each in numbers.astype(np.float64).ravel()]}
    return f"{type(value).__name__} {value}" if isinstance(value, (bool, int, float, str)) else str(value)


def asked(ms: Any, mnp: ModuleType, case: str) -> Any:
    """Result of one expression, or the name of the error that it raises."""
    names = {"ms": ms, "mnp": mnp, "np": np}
    names |= {name: ms.Tensor(eval(text)) for name, text in _INPUTS.items()}
    try:
        return _plain(eval(case, names))
    except Exception as error:
        return {"error": type(error).__name__}


if __name__ == "__main__":
    import mindspore
    import mindspore.numpy

    answers = [[case, asked(mindspore, mindspore.numpy, case)] for case in CASES]
    functions = {name: getattr(mindspore.numpy, name) for name in sorted(mindspore.numpy.__all__)}
    parameters = {name: list(inspect.signature(function).parameters) for name, function in functions.items()
                  if inspect.isfunction(function)}
    lines = ",\n".join(json.dumps(answer) for answer in answers)
    Path(sys.argv[1]).write_text('{"about": "What MindSpore 2.10.0 answers; see mindspore_numpy.py for what it '
                                 f'is asked.",\n"parameters": {json.dumps(parameters)},\n"cases": [\n{lines}\n]}}\n')
