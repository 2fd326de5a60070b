"""Rows of layers: a line of facts for each use of a layer, which ``test_layers`` runs in every way to use a layer.

Expected values are MindSpore's recorded answers, or functions of NumPy for layers that MindSpore does not compute.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opreg.cells.cell import Cell
from opreg.nn import Parameter, Tensor, layers, ops

__all__ = ["FUNCTIONS", "ROWS", "WITHOUT_FUNCTION", "LayerRow", "close", "flat", "made", "numbers", "value", "widened"]


@dataclass(frozen=True)
class LayerRow:
    """One use of one layer.

    ``layer`` is the call that makes it, and its parameters are ``numbers``. ``inputs`` are as ``value`` has them.
    ``expected`` computes the output with NumPy from the inputs, and from parameters by their names where it asks for
    them; ``recorded`` has MindSpore's outputs, states afterwards and gradients instead. ``train`` is the mode;
    ``smooth`` says whether gradients are compared with central differences.
    """

    layer: str
    inputs: Sequence[Any]
    expected: Callable[..., Any] | None = None
    train: bool = False
    smooth: bool = True
    recorded: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The class of the layer."""
        return self.layer.partition("(")[0]

    def __str__(self) -> str:
        return f"{self.layer}-{'train-' if self.train else ''}{[*self.inputs, ''][0]}".replace(" ", "")


# --------------------------------------------------------------------------------------------------- inputs


def numbers(shape: Any, seed: int) -> np.ndarray:
    """Values that look random, and are the same for the layer and its reference."""
    at = np.arange(int(np.prod(shape, dtype=int)))
    return np.sin(at * 1.7 + seed * 0.9 + 0.3).reshape(shape).astype("f4")


def value(spec: Any, seed: int) -> Any:
    """An input: random floating values of a shape, or the values of a dict."""
    if spec is None:
        return None
    if isinstance(spec, list):
        return Tensor(numbers(spec, seed))
    if "tuple" in spec:
        return tuple(value(each, seed + 10 + i) for i, each in enumerate(spec["tuple"]))
    if "int" in spec:
        at = np.arange(int(np.prod(spec["int"])))
        return Tensor(((at * 3 + seed) % 3).reshape(spec["int"]).astype("i4"))
    if spec["given"] is True:
        return True
    return Tensor(np.array(spec["given"], spec["dtype"]))


def made(layer: str, train: bool) -> Cell:
    """A layer with the recorded parameters."""
    net = eval(layer, vars(layers).copy())
    net.set_train(train)
    for i, (name, parameter) in enumerate(sorted(net.parameters_and_names())):
        numbers_ = numbers(parameter.shape, i + 3) * np.float32(0.5)
        if "moving_var" in name:
            numbers_ = abs(numbers_) + np.float32(0.5)
        if name.endswith("gamma"):
            numbers_ = numbers_ + 1
        parameter.set_data(Tensor(numbers_.astype("f4")))
    return net


def widened(given: Any) -> Any:
    """Inputs, or a layer, with float64 in place of float32."""
    if isinstance(given, Cell):
        for _, cell in given.cells_and_names():
            for name, p in list(cell.parameters_and_names(expand=False)):
                setattr(cell, name, Parameter(widened(p.data), name=p.name, requires_grad=p.requires_grad))
        return given
    if isinstance(given, (list, tuple)):
        return type(given)(map(widened, given))
    wide = isinstance(given, Tensor) and given.asnumpy().dtype == np.float32
    return Tensor(given.asnumpy().astype(np.float64)) if wide else given


def flat(out: Any) -> list[Any]:
    """All tensors of a nested result."""
    if isinstance(out, (tuple, list)):
        return [each for part in out for each in flat(part)]
    return [] if out is None else [out]


def close(found: Any, expected: Any, what: str, rtol: float = 2e-4, atol: float = 2e-5) -> None:
    """Asserts that values are equal up to rounding."""
    np.testing.assert_allclose(np.ravel(found.asnumpy()), np.ravel(expected), rtol, atol, err_msg=what)


# --------------------------------------------------------------------------------------------------- the rows

_CASES = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_layers.json").read_text())["cases"]
#: Layers with steps in the values, for which central differences are meaningless.
_STEPS = ("OneHot", "Range")

ROWS = [LayerRow(case["layer"], case["inputs"], None, case["train"], not case["layer"].startswith(_STEPS), case)
        for case in _CASES]


def _padded(mode: str) -> Callable[..., Any]:
    """Three axes padded by (1, 0, 2, 1, 0, 1), last axis first."""
    return lambda x: np.pad(x, ((0, 0), (0, 0), (0, 1), (2, 1), (1, 0)), mode)


def _instance_norm(eps: float = 1e-5) -> Callable[..., Any]:
    def expected(x: Any, *, gamma: Any, beta: Any) -> Any:
        axes, shape = tuple(range(2, x.ndim)), (-1, *(1,) * (x.ndim - 2))
        y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
        return y * gamma.reshape(shape) + beta.reshape(shape)

    return expected


def _moving_norm(x: Any, *, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    mean, variance, gamma, beta = (each.reshape(-1, 1, 1) for each in (mean, variance, gamma, beta))
    return (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta


def _selu(x: Any) -> Any:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))


def _patches(x: Any, kernel: Any, stride: Any, rate: Any) -> Any:
    """Windows of images as channels, ordered by channel of the image (innermost), column of the window, then row."""
    spans = [(k - 1) * r + 1 for k, r in zip(kernel, rate)]
    apart = np.lib.stride_tricks.sliding_window_view(x, spans, (2, 3))[..., ::rate[0], ::rate[1]]
    apart = apart[:, :, ::stride[0], ::stride[1]].transpose(0, 4, 5, 1, 2, 3)
    return apart.reshape(len(x), -1, *apart.shape[4:])


def _normed_pixels(x: Any, *, weight: Any, gamma: Any, beta: Any, moving_mean: Any, moving_variance: Any) -> Any:
    """A convolution with windows of one pixel, a norm by moving statistics, and a leaky relu."""
    y = np.einsum("oi,nihw->nohw", weight[..., 0, 0], x)
    mean, variance, gamma, beta = (each[:, None, None] for each in (moving_mean, moving_variance, gamma, beta))
    y = (y - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    return np.where(y > 0, y, 0.2 * y)


def _twice_as_high(x: Any) -> Any:
    """Images of twice the height; each new row is the mean of its neighbours, and the last row is repeated."""
    below = np.concatenate([x[..., 1:, :], x[..., -1:, :]], -2)
    return np.stack([x, (x + below) / 2], -2).reshape(*x.shape[:2], -1, x.shape[-1])


def _at_most(x: Any, most: Any) -> Any:
    """Rows scaled down to a largest norm."""
    return x * most / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), most)


def _largest(x: Any) -> Any:
    """Maxima over each half along each of three axes of length 4."""
    return x.reshape(*x.shape[:2], 2, 2, 2, 2, 2, 2).max((3, 5, 7))


def _positive(*numbers_: float) -> dict[str, Any]:
    return {"given": list(numbers_), "dtype": "f4"}


def _log_beta(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda a, b: math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))(x, y)


def _lower_gamma(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The power series, term by term."""
    return sum(np.exp((a + n) * np.log(x) - x) / np.vectorize(math.gamma)(a + n + 1) for n in range(40))


ROWS += [
    LayerRow("Dropout1d(0.3)", [[2, 3, 4]], lambda x: x), LayerRow("Dropout3d()", [[2, 1, 2, 2, 2]], lambda x: x),
    LayerRow("Dropout1d(0.0)", [[2, 3, 4]], lambda x: x, train=True),
    LayerRow("Dropout3d(0.0)", [[2, 1, 2, 2, 2]], lambda x: x, train=True),
    LayerRow("ReflectionPad3d((1, 0, 2, 1, 0, 1))", [[1, 2, 2, 3, 2]], _padded("reflect")),
    LayerRow("ReplicationPad3d((1, 0, 2, 1, 0, 1))", [[1, 2, 2, 3, 2]], _padded("edge")),
    LayerRow("MatMul()", [[2, 3], [3, 4]], np.matmul),
    LayerRow("LBeta()", [_positive(0.5, 2.0, 4.5), _positive(1.5, 0.7, 3.0)], _log_beta),
    LayerRow("IGamma()", [_positive(0.5, 2.0, 4.5), _positive(1.5, 0.7, 3.0)], _lower_gamma),
    LayerRow("MatMul(True, False)", [[3, 2], [3, 4]], lambda x, y: x.T @ y),
    LayerRow("SyncBatchNorm(3)", [[2, 3, 4, 2]], _moving_norm),
    LayerRow("InstanceNorm1d(3)", [[2, 3, 4]], _instance_norm(), train=True),
    LayerRow("InstanceNorm2d(3, affine=False)", [[2, 3, 4, 2]], _instance_norm(), train=True),
    LayerRow("InstanceNorm3d(3, 0.1)", [[2, 3, 4, 2, 3]], _instance_norm(0.1), train=True),
    LayerRow("AdaptiveMaxPool3d(2)", [[1, 2, 4, 4, 4]], _largest),
    LayerRow("RReLU(0.3, 0.3)", [[3, 4]], lambda x: np.where(x > 0, x, 0.3 * x)),
    LayerRow("SELU()", [[3, 4]], _selu), LayerRow("SeLU()", [[3, 4]], _selu),
    LayerRow("FractionalMaxPool2d(2, 1)", [[2, 3, 4, 5]], lambda x: x[..., -2:, -2:].max((-2, -1), keepdims=True)),
    LayerRow("FractionalMaxPool2d((1, 2), output_ratio=(0.99, 0.25))", [[2, 2, 5]],
             lambda x: x[:, -1:, -2:].max((-2, -1), keepdims=True)),
    LayerRow("FractionalMaxPool3d((2, 3, 1), (1, 1, 1))", [[1, 2, 3, 4, 2]],
             lambda x: x[..., -2:, -3:, -1:].max((-3, -2, -1), keepdims=True)),
    LayerRow("Roll(1, 0)", [[3, 4]], lambda x: np.roll(x, 1, 0)),
    LayerRow("Roll((2, -1), (0, 1))", [[3, 4]], lambda x: np.roll(x, (2, -1), (0, 1))),
    LayerRow("MatDet()", [[2, 3, 3]], np.linalg.det), LayerRow("MatInverse()", [[2, 2, 2]], np.linalg.inv),
    LayerRow("ClipByNorm(1)", [[2, 3], {"given": 0.75, "dtype": "f4"}], lambda x, most: _at_most(x, most)),
    LayerRow("ClipByNorm()", [{"given": [0.0, 0.0], "dtype": "f4"}, {"given": 0.75, "dtype": "f4"}], lambda x, _: x),
    LayerRow("EmbeddingLookup(5, 3, max_norm=0.6)", [{"given": [[1, 7], [4, 0]], "dtype": "i4"}],
             lambda at, *, embedding_table: _at_most(embedding_table[at % 5], 0.6) * (at < 5)[..., None]),
    LayerRow("Unfold([1, 2, 3, 1], [1, 1, 2, 1], [1, 2, 1, 1])", [[2, 3, 4, 6]],
             lambda x: _patches(x, (2, 3), (1, 2), (2, 1))),
    LayerRow("Unfold((1, 2, 2, 1), (1, 2, 1, 1), (1, 1, 2, 1), 'same')", [[1, 2, 3, 4]],
             lambda x: _patches(np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 1))), (2, 2), (2, 1), (1, 2))),
    LayerRow("Conv2dBnAct(2, 3, 1, has_bn=True, activation='leakyrelu')", [[2, 2, 3, 2]], _normed_pixels),
    LayerRow("Conv2dBnAct(2, 3, 1, pad_mode='valid', has_bias=True)", [[2, 2, 3, 2]],
             lambda x, *, weight, bias: np.einsum("oi,nihw->nohw", weight[..., 0, 0], x) + bias[:, None, None]),
    LayerRow("DenseBnAct(3, 2, activation='relu')", [[4, 3]],
             lambda x, *, weight, bias: np.maximum(x @ weight.T + bias, 0)),
    LayerRow("ResizeBilinear()", [[1, 2, 3, 2], {"given": [6, 2], "dtype": "i4"}], lambda x, _: _twice_as_high(x)),
    LayerRow("LPPool2d(2.0, (2, 1), (1, 2))", [[2, 3, 3]], lambda x: np.sqrt(x[:, :-1, ::2] ** 2 + x[:, 1:, ::2] ** 2)),
]


# -------------------------------------------------------------------------------------- the functions of layers


def _padded_by(mode: str) -> Callable[..., Any]:
    return lambda net, x: ops.pad(x, net.padding, mode, net.value)


def _conv(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(net: Any, x: Any) -> Any:
        weight = net.weight.reshape((*net.weight.shape[:2], -1)) if function is ops.conv1d else net.weight
        count = weight.ndim - 2
        sides = [width for pair in net._sides[-count:] for width in pair]
        padding = 0 if net.pad_mode != "pad" else sides[:1] if count == 1 else sides
        stride, dilation = net.stride[-count:], net.dilation[-count:]
        return function(x, weight, net.bias, stride, net.pad_mode, padding, dilation, net.group)

    return call


def _pooled(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(net: Any, x: Any) -> Any:
        if net.pad_mode == "SAME":
            return None  # the functions have no such padding
        if "max" in function.__name__:
            more = {"dilation": net.dilation, "return_indices": net.return_indices}
        else:
            more = {"count_include_pad": net.count_include_pad}
            more |= {"divisor_override": net.divisor_override} if net.divisor_override else {}
        return function(x, net._kernel, net._stride, net._pad, ceil_mode=net.ceil_mode, **more)

    return call


def _normed(net: Any, x: Any) -> Any:
    net = getattr(net, "bn2d", net)
    if net._axis != 1:
        return None  # the function has channels in the second axis
    training = net.training if net.use_batch_statistics is None else net.use_batch_statistics
    states = net.moving_mean, net.moving_variance
    return ops.batch_norm(x, *states, net.gamma, net.beta, training, 1 - net.momentum, net.eps)


def _layer_normed(net: Any, x: Any) -> Any:
    if net.begin_norm_axis != net.begin_params_axis:
        return None
    return ops.layer_norm(x, net.normalized_shape, net.gamma, net.beta, net.epsilon)


def _dense(net: Any, x: Any) -> Any:
    y = ops.dense(x, net.weight, net.bias)
    return y if net.activation is None else net.activation(y)


def _one_hot(net: Any, x: Any) -> Any:
    on, off = (Tensor(value, net.dtype) for value in (net.on_value, net.off_value))
    return ops.one_hot(x, net.depth, on, off, net.axis)


def _resized(net: Any, x: Any) -> Any:
    return ops.interpolate(x, net.size, net.scale_factor, net.mode, net.align_corners, net.recompute_scale_factor)


def _product(net: Any, x: Any, y: Any) -> Any:
    return ops.matmul(*[each.swapaxes(-1, -2) if turn and each.ndim > 1 else each
                        for each, turn in ((x, net.transpose_x1), (y, net.transpose_x2))])


#: For each layer's name, the function of ``ops`` that it computes, given the layer, its settings, and the inputs; None
#: if the function lacks such a setting.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lambda net, x, function=function: function(x) for name, function in {
        "ReLU": ops.relu, "ReLU6": ops.relu6, "SeLU": ops.selu, "SELU": ops.selu, "FastGelu": ops.fast_gelu,
        "SiLU": ops.silu, "Mish": ops.mish, "Sigmoid": ops.sigmoid, "LogSigmoid": ops.logsigmoid, "Tanh": ops.tanh,
        "Softsign": ops.softsign, "HSigmoid": ops.hardsigmoid, "HSwish": ops.hardswish, "Tanhshrink": ops.tanhshrink,
        "Softmax2d": lambda x: ops.softmax(x, -3), "Identity": ops.identity}.items()},
    **{name: lambda net, x, function=function: function(x, net.axis) for name, function in {
        "Softmax": ops.softmax, "LogSoftmax": ops.log_softmax, "Softmin": ops.softmin, "GLU": ops.glu}.items()},
    **{name: lambda net, x, function=function: function(x, net.alpha) for name, function in {
        "LeakyReLU": ops.leaky_relu, "ELU": ops.elu, "CELU": ops.celu}.items()},
    "RReLU": lambda net, x: ops.rrelu(x, net.lower, net.upper),
    "GELU": lambda net, x: ops.gelu(x, "tanh" if net.approximate else "none"),
    "Hardtanh": lambda net, x: ops.hardtanh(x, net.min_val, net.max_val),
    "HShrink": lambda net, x: ops.hardshrink(x, net.lambd), "SoftShrink": lambda net, x: ops.softshrink(x, net.lambd),
    "Threshold": lambda net, x: ops.threshold(x, net.threshold, net.value), "PReLU": lambda net, x: ops.prelu(x, net.w),
    "Dense": _dense, "OneHot": _one_hot, "MatMul": _product, "Upsample": _resized,
    "Embedding": lambda net, x: None if net.use_one_hot else ops.embedding(x, net.embedding_table),
    "Flatten": lambda net, x: ops.flatten(x, start_dim=net.start_dim, end_dim=net.end_dim),
    "Dropout": lambda net, x: ops.dropout(x, 1 - net.keep_prob if net.p is None else net.p, net.training),
    **{f"Dropout{n}d": lambda net, x, function=function: function(x, net.p, net.training)
       for n, function in enumerate((ops.dropout1d, ops.dropout2d, ops.dropout3d), 1)},
    "PixelShuffle": lambda net, x: ops.pixel_shuffle(x, net.upscale_factor),
    "PixelUnshuffle": lambda net, x: ops.pixel_unshuffle(x, net.downscale_factor),
    "ZeroPad2d": _padded_by("constant"),
    **{f"{name}Pad{n}d": _padded_by(mode) for n in (1, 2, 3) for name, mode in (
        ("Constant", "constant"), ("Reflection", "reflect"), ("Replication", "replicate"))},
    "Conv1d": _conv(ops.conv1d), "Conv2d": _conv(ops.conv2d), "Conv3d": _conv(ops.conv3d),
    "MaxPool2d": _pooled(ops.max_pool2d), "MaxPool3d": _pooled(ops.max_pool3d), "AvgPool1d": _pooled(ops.avg_pool1d),
    "AvgPool2d": _pooled(ops.avg_pool2d), "AvgPool3d": _pooled(ops.avg_pool3d),
    "AdaptiveAvgPool1d": lambda net, x: ops.adaptive_avg_pool1d(x, *net.output_size),
    "AdaptiveAvgPool2d": lambda net, x: ops.adaptive_avg_pool2d(x, net.output_size),
    "AdaptiveMaxPool2d": lambda net, x: ops.adaptive_max_pool2d(x, net.output_size),
    "BatchNorm1d": _normed, "BatchNorm2d": _normed, "BatchNorm3d": _normed, "LayerNorm": _layer_normed,
    "GroupNorm": lambda net, x: ops.group_norm(x, net.num_groups, net.gamma, net.beta, net.eps),
    "BiDense": lambda net, x, y: ops.bidense(x, y, net.weight, net.bias), "Linear": _dense,
    "ChannelShuffle": lambda net, x: ops.channel_shuffle(x, net.groups),
    "LGamma": lambda net, x: ops.lgamma(x), "DiGamma": lambda net, x: ops.digamma(x),
    "MatDet": lambda net, x: ops.det(x), "MatInverse": lambda net, x: ops.inverse(x),
    "LRN": lambda net, x: ops.lrn(x, net.depth_radius, net.bias, net.alpha, net.beta, net.norm_region),
    "Norm": lambda net, x: ops.norm(x, None, net.axis, net.keep_dims),
    "ReduceLogSumExp": lambda net, x: ops.logsumexp(x, net.axis, net.keep_dims),
    "Roll": lambda net, x: ops.roll(x, net.shift, net.axis),
    "Tril": lambda net, x, *k: ops.tril(x, *k), "Triu": lambda net, x, *k: ops.triu(x, *k),
    "Range": lambda net: ops.arange(net.start, net.limit, net.delta, dtype="int32"),
    **{f"LPPool{n}d": lambda net, x, function=function: function(x, net.norm_type, net.kernel_size, net.stride,
                                                                 net.ceil_mode)
       for n, function in enumerate((ops.lp_pool1d, ops.lp_pool2d), 1)},
    **{f"MaxUnpool{n}d": lambda net, x, indices, *size, function=function: function(
        x, indices, net.kernel_size, net.stride, net.padding, *size)
       for n, function in enumerate((ops.max_unpool1d, ops.max_unpool2d, ops.max_unpool3d), 1)},
    **{f"FractionalMaxPool{n}d": lambda net, x, function=function: function(
        x, net.kernel_size, net.output_size, net.output_ratio, net.return_indices, net._random_samples)
       for n, function in enumerate((ops.fractional_max_pool2d, ops.fractional_max_pool3d), 2)},
}

#: Layers without a function in ``ops``.
WITHOUT_FUNCTION = {
    "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool3d", "CentralCrop", "ClipByNorm", "Conv1dTranspose",
    "Conv2dBnAct", "Conv2dTranspose", "Conv3dTranspose", "DenseBnAct", "EmbeddingLookup", "GRU",
    "GRUCell", "IGamma", "ImageGradients", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "L1Regularizer",
    "LBeta", "LSTM", "LSTMCell", "MSSSIM", "MaxPool1d", "Moments",
    "MultiheadAttention", "PSNR", "Pad", "RNN", "RNNCell", "ResizeBilinear", "SSIM", "SequentialCell", "SyncBatchNorm",
    "TimeDistributed", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "Unflatten", "Unfold",
}
