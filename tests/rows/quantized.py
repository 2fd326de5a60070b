"""Rows of the operators on 8-bit integers; ``tests/builtin/test_quantized.py`` has MXNet's answers."""

from __future__ import annotations

import numpy as np

from . import Row, integers, uniform

__all__ = ["ROWS"]

_FLOAT = ("float32",)


def _end(*numbers: float) -> list[np.ndarray]:
    """An end of a range, as an array of one element."""
    return [np.array([float(number)]) for number in numbers]


def _i8(*shape: int, seed: int = 0) -> np.ndarray:
    return integers(-127, 128, *shape, seed=seed, dtype="int8")


def _u8(*shape: int, seed: int = 0) -> np.ndarray:
    return integers(0, 256, *shape, seed=seed, dtype="uint8")


def _far(low, high):
    return np.maximum(abs(low), abs(high))


def _steps(numbers, kind):
    return np.clip(np.rint(numbers), *((-128, 127) if kind == "int8" else (0, 255))).astype(kind)


def _products(data, far, weight_far):
    """Range of sums of products."""
    end = far / (255 if data.dtype == np.uint8 else 127) * weight_far / 127 * (2.0 ** 31 - 1)
    return [(-end).astype("float32"), end.astype("float32")]


def _dense(data, weight, *rest):
    y = data.reshape(len(data), -1).astype("int64") @ weight.T.astype("int64")
    bias, ends = (rest[0], rest[1:]) if len(rest) % 2 else (None, rest)
    far = [_far(*ends[i:i + 2]) for i in range(0, len(ends), 2)]
    if bias is not None:
        edge = 255.5 if data.dtype == np.uint8 else 127.5
        y = y + np.trunc(bias * (far[2] / 127.5) * (edge / far[0]) * (127.5 / far[1])).astype("int64")
    return [y.astype("int32"), *_products(data, *far[:2])]


def _conv(data, weight, *rest):
    """A convolution with windows of two by two, as a dense layer of each window's elements."""
    n, c, h, w = data.shape
    windows = np.stack([data[:, :, i:h - 1 + i, j:w - 1 + j] for i in (0, 1) for j in (0, 1)], 2)
    rows = windows.transpose(0, 3, 4, 1, 2).reshape(-1, c * 4)
    y, *ends = _dense(rows, weight.reshape(len(weight), -1), *rest)
    return [y.reshape(n, h - 1, w - 1, -1).transpose(0, 3, 1, 2), *ends]


def _kept(change):
    return lambda x, low, high: [change(x), low, high]


def _joined(a, b, *ends):
    kind = "int8" if "int8" in (a.dtype, b.dtype) else "uint8"
    low, high = min(ends[0], ends[2], [0.0]), max(ends[1], ends[3], [0.0])
    far = _far(np.array(low), np.array(high))
    edges = {"int8": 127.5, "uint8": 255.5}
    parts = [x * (_far(*ends[i:i + 2]) / edges[x.dtype.name]) for i, x in ((0, a), (2, b))]
    return [_steps(np.concatenate(parts, 1) * (edges[kind] / far), kind), np.array(low, "float32"),
            np.array(high, "float32")]


def _added(a, b, *ends):
    far, edges = [_far(*ends[:2]), _far(*ends[2:])], {"int8": 127.5, "uint8": 255.5}
    total = sum(x.astype("float64") * far[i] / edges[x.dtype.name] for i, x in enumerate((a, b)))
    reach = (far[0] + far[1]).astype("float32")
    return [np.rint(total / reach.astype("float64") * (2.0 ** 31 - 1)).astype("int32"), -reach, reach]


_X, _S = uniform(-3, 2, 3, 4), integers(-30000, 30000, 3, 4)
_SUM = [_i8(2, 3), _u8(2, 3, seed=1), *_end(-1, 2, 0, 3)]
_STATISTICS = [np.array([1.0, 2, 0.5]), np.array([0.5, -0.5, 0])], [np.array([0.1, 0.2, -0.3]), np.array([1.0, 2, 0.5])]


def _normed(x, gamma, beta, low, high, mean, variance):
    shape = (1, -1, 1, 1)
    y = x * (_far(low, high) / 127.5)
    y = (y - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-3) * gamma.reshape(shape) + beta.reshape(shape)
    return [_steps(y * (127.5 / 4), "int8"), np.array([-4], "float32"), np.array([3], "float32")]


ROWS: list[Row] = [
    Row("_quantized_whole", [np.array([0.5, 1.5, -2.5, 130.2, -300.0])], {"dtype": "int8"},
        expected=lambda x: np.array([0, 2, -2, 127, -128], "int8")),
    Row("_quantized_whole", [np.array(1.5)], {"dtype": "int8"}, expected=lambda x: np.array(2, "int8"), name="0-d"),
    Row("_quantized_whole", [np.array([[0.5, 254.6], [-1.0, 3e10]])], {"dtype": "uint8"},
        expected=lambda x: np.array([[0, 255], [0, 255]], "uint8")),
    Row("_quantized_product", [_i8(3, 4), *_end(0.25)], dtypes=_FLOAT,
        expected=lambda x, factor: x.astype("float32") * factor),
    Row("_quantized_product", [_i8(3, 4), _i8(3, 4, seed=1).astype("int32")],
        expected=lambda x, factor: x.astype("int32") * factor),
    Row("_contrib_quantize", [_X, *_end(-3, 2)], {"out_type": "int8"}, dtypes=_FLOAT,
        expected=lambda x, low, high: [_steps(x * (127 / 3), "int8"), np.float32([-3]), np.float32([3])]),
    Row("_contrib_quantize", [_X + 3, *_end(0.5, 5)], dtypes=_FLOAT,
        expected=lambda x, low, high: [_steps(x * 51, "uint8"), low, high]),
    Row("_contrib_quantize_v2", [_X], {"min_calib_range": -2, "max_calib_range": 1}, dtypes=_FLOAT,
        expected=lambda x: [_steps(x * (127.5 / 2), "int8"), np.float32([-2]), np.float32([2])]),
    Row("_contrib_quantize_v2", [_X + 4], {"out_type": "uint8"}, dtypes=_FLOAT,
        expected=lambda x: [_steps(x * (255.5 / x.max()), "uint8"), x.min(keepdims=True)[0], x.max(keepdims=True)[0]]),
    Row("_contrib_quantize_v2", [_u8(3)], {"out_type": "auto"},
        expected=lambda x: [x, np.float32([0]), np.float32([255.5])]),
    Row("_contrib_quantize_v2", [np.zeros((2, 2))], dtypes=_FLOAT, name="nothing but zeros",
        expected=lambda x: [np.zeros((2, 2), "int8"), np.float32([0]), np.float32([0])]),
    Row("_contrib_quantize_asym", [_X], {"min_calib_range": -3, "max_calib_range": 2}, dtypes=_FLOAT,
        expected=lambda x: [_steps(x * 51 + 153, "uint8"), np.float32([51]), np.float32([153])]),
    Row("_contrib_quantize_asym", [_X], dtypes=_FLOAT),
    Row("_contrib_quantize_asym", [_i8(3)],
        expected=lambda x: [(x.astype("int32") + 128).astype("uint8"), np.float32([1]), np.float32([128])]),
    Row("_contrib_requantize", [_S, *_end(-4, 2)], {"min_calib_range": -3e-5, "max_calib_range": 1e-5}, dtypes=_FLOAT,
        expected=lambda x, low, high: [_steps(x * (4 / (2 ** 31 - 1) * 127 / 3e-5), "int8"), np.float32([-3e-5]),
                                       np.float32([3e-5])]),
    Row("_contrib_requantize", [_S, *_end(-4, 2)], {"out_type": "uint8"}, dtypes=_FLOAT,
        expected=lambda x, low, high: [_steps(x * (255 / abs(x).max()), "uint8"), np.float32([0]),
                                       np.float32([abs(x).max() * 4 / (2.0 ** 31 - 1)])]),
    Row("_contrib_dequantize", [_i8(3, 4), *_end(-4, 2)], dtypes=_FLOAT,
        expected=lambda x, low, high: (x * (4 / 127.5)).astype("float32")),
    Row("_contrib_dequantize", [_u8(3, 4), *_end(0, 2)], dtypes=_FLOAT,
        expected=lambda x, low, high: (x * (2 / 255.5)).astype("float32")),
    Row("_contrib_calibrate_entropy", [np.histogram(uniform(-1, 1, 400) ** 3, 41, (-1, 1))[0].astype("float64"),
                                       np.linspace(-1, 1, 42)], {"num_quantized_bins": 9}, dtypes=_FLOAT),
    Row("_contrib_quantized_fully_connected", [_i8(3, 2, 2), _i8(5, 4), _i8(5), *_end(-1, 2, -3, 1, -0.5, 0.25)],
        {"num_hidden": 5}, _dense, dtypes=_FLOAT),
    Row("_contrib_quantized_fully_connected", [_u8(3, 4), _i8(5, 4), *_end(0, 2, -3, 1)],
        {"num_hidden": 5, "no_bias": True}, _dense, dtypes=_FLOAT),
    Row("_contrib_quantized_fully_connected", [np.full((1, 600), 255, "uint8"), np.full((1, 600), 127, "int8"),
                                               *_end(0, 2, -3, 1)], {"num_hidden": 1, "no_bias": True}, _dense,
        dtypes=_FLOAT, name="sums beyond the whole numbers of float32"),
    Row("_contrib_quantized_conv", [_i8(2, 3, 4, 3), _i8(4, 3, 2, 2), _i8(4), *_end(-1, 2, -3, 1, -0.5, 0.25)],
        {"kernel": (2, 2), "num_filter": 4}, _conv, dtypes=_FLOAT),
    Row("_contrib_quantized_conv", [_u8(2, 3, 4, 3), _i8(4, 3, 2, 2), *_end(0, 2, -3, 1)],
        {"kernel": (2, 2), "num_filter": 4, "no_bias": True}, _conv, dtypes=_FLOAT),
    Row("_contrib_quantized_pooling", [_i8(2, 3, 4, 4), *_end(-1, 2)], {"kernel": (4, 4), "pool_type": "avg"},
        _kept(lambda x: np.rint(x.mean((2, 3), keepdims=True, dtype="float32")).astype("int8")), dtypes=_FLOAT),
    Row("_contrib_quantized_pooling", [_u8(2, 3, 4, 4), *_end(0, 2)], {"global_pool": True},
        _kept(lambda x: x.max((2, 3), keepdims=True)), dtypes=_FLOAT),
    Row("_contrib_quantized_flatten", [_u8(2, 3, 4), *_end(0, 2)], {}, _kept(lambda x: x.reshape(2, -1)),
        dtypes=_FLOAT),
    Row("_contrib_quantized_act", [_i8(2, 3), *_end(-1, 2)], {"act_type": "relu"}, _kept(lambda x: np.maximum(x, 0)),
        dtypes=_FLOAT),
    Row("_contrib_quantized_embedding", [integers(0, 5, 2, 3), _i8(5, 4), *_end(-1, 2)],
        {"input_dim": 5, "output_dim": 4}, lambda x, w, low, high: [w[x], low, high], dtypes=_FLOAT),
    Row("_contrib_quantized_concat", [_i8(2, 3), _u8(2, 4), *_end(-1, 2, 0, 3)], {"num_args": 2}, _joined,
        dtypes=_FLOAT),
    Row("_contrib_quantized_concat", [_u8(2, 3), _u8(2, 4, seed=1), *_end(0, 2, 0.5, 3)], {"num_args": 2}, _joined,
        dtypes=_FLOAT),
    Row("_contrib_quantized_elemwise_add", _SUM, {}, _added, dtypes=_FLOAT),
    Row("_contrib_quantized_elemwise_add", _SUM, {"min_calib_range": -2, "max_calib_range": 5}, dtypes=_FLOAT,
        expected=lambda a, b, *_: [_steps((a * (2 / 127.5) + b * (3 / 255.5)) * 25.5, "int8"), np.float32([-2]),
                                   np.float32([5])]),
    Row("_contrib_quantized_elemwise_mul", [_i8(2, 3), _i8(2, 3, seed=1), *_end(-1, 2, -3, 3)], dtypes=_FLOAT,
        expected=lambda a, b, *ends: [a.astype("int32") * b, *_products(a, np.array([2.0]), np.array([3.0]))]),
    Row("_contrib_quantized_elemwise_mul", [_i8(2, 3), _i8(2, 3, seed=1), *_end(-1, 2, -3, 3)],
        {"min_calib_range": -6, "max_calib_range": 5}, dtypes=_FLOAT,
        expected=lambda a, b, *_: [_steps(a.astype("float32") * b / 127.5, "int8"), np.float32([-6]), np.float32([5])]),
    Row("_contrib_quantized_elemwise_mul", [_i8(2, 3), _i8(2, 3, seed=1), *_end(-1, 2, -3, 3)],
        {"enable_float_output": True}, dtypes=_FLOAT,
        expected=lambda a, b, *_: (a.astype("float32") * b * (6 / 127.5 ** 2)).astype("float32")),
    Row("_contrib_quantized_batch_norm", [_i8(2, 3, 2, 2), *_STATISTICS[0], *_end(-1, 2), *_STATISTICS[1]],
        {"min_calib_range": -4, "max_calib_range": 3, "fix_gamma": False}, _normed, dtypes=_FLOAT),
]
