"""Primitives of layers: convolutions, pooling, norms, resizing of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.typing import AnyShape, Axes, Sizes, TensorLike
from ...core.mode import Recording
from ...core.registry import ops
from ...errors import ArgumentError, ShapeError
from . import creation, linalg, nn, reduce, sampling, windows
from .lift import as_floating, like, scalar, shape_of, tensor, to_common_dtype
from .primitive import adder

__all__: list[str] = []

_add = adder(globals(), __all__)


def _nchw(name: str) -> Callable[..., None]:
    def check(*, data_format: str = "NCHW", mode: int = 1, **_: object) -> None:
        if data_format not in ("NCHW", "NCDHW") or mode != 1:
            raise ArgumentError(f"{name}: data_format must have channels second, and mode be 1, got {data_format!r} "
                                f"and {mode}")

    return check


def _conv(function: Callable[..., Tensor], name: str, count: int) -> Callable[..., Tensor]:
    def call(x: TensorLike, weight: TensorLike, *, out_channel: int, kernel_size: Sizes, mode: int, pad_mode: str,
             pad: Sizes, stride: Sizes, dilation: Sizes, group: int, data_format: str) -> Tensor:
        weight = tensor(weight)
        kernel = nn.sizes(kernel_size, count, f"{name}: kernel_size")
        if weight.shape[0] != out_channel or weight.shape[2:] != kernel:
            raise ShapeError(f"{name}: expected a weight of {out_channel} filters and kernel {kernel}, got shape "
                             f"{weight.shape}")
        return function(x, weight, None, stride, pad_mode.lower(), pad, dilation, group)

    return call


_CONV = {"out_channel": ..., "kernel_size": ..., "mode": 1, "pad_mode": "valid", "pad": 0, "stride": 1, "dilation": 1,
         "group": 1}
_add("Conv2D", _conv(nn.conv2d, "Conv2D", 2), {**_CONV, "data_format": "NCHW"}, _nchw("Conv2D"))
_add("Conv3D", _conv(nn.conv3d, "Conv3D", 3), {**_CONV, "data_format": "NCDHW"}, _nchw("Conv3D"))


def _conv_transpose(dout: TensorLike, weight: TensorLike, input_size: Sequence[int], *, kernel_size: Sizes,
                    pad_mode: str, pad: Sizes, stride: Sizes, dilation: Sizes, group: int, **_: object) -> Tensor:
    """The gradient of a convolution with respect to its data, of shape ``input_size``."""
    dout, weight = to_common_dtype(dout, weight)
    kernel, strides, dilate = weight.shape[2:], nn.sizes(stride, 2, "stride"), nn.sizes(dilation, 2, "dilation")
    size = tuple(input_size)[2:]
    pads = nn.same_pads(size, kernel, strides, dilate) if pad_mode.lower() == "same" else \
        [(count, count) for count in nn.sizes(pad, 2, "pad")]
    lengths = [n + before + after for n, (before, after) in zip(size, pads)]
    adj = [n - (s * (m - 1) + d * (k - 1) + 1)
           for n, s, m, d, k in zip(lengths, strides, dout.shape[2:], dilate, kernel)]
    x = ops.Deconvolution(dout, weight, kernel=kernel, stride=strides, dilate=dilate, adj=tuple(adj),
                          num_filter=weight.shape[1] * group, num_group=group)
    for axis, ((before, _after), n) in enumerate(zip(pads, size), 2):
        x = ops.slice_axis(x, axis=axis, begin=before, end=before + n)
    return x


for _name in ("Conv2DTranspose", "Conv2DBackpropInput"):
    _add(_name, _conv_transpose, {"out_channel": ..., "kernel_size": ..., "pad_mode": "valid", "pad": 0,
                                  "pad_list": None, "mode": 1, "stride": 1, "dilation": 1, "group": 1,
                                  "data_format": "NCHW"}, _nchw(_name))


def _pool(kind: str, count: int) -> Callable[..., Tensor]:
    def call(x: TensorLike, *, kernel_size: Sizes, strides: Sizes, pad_mode: str, data_format: str) -> Tensor:
        x = as_floating(x)
        kernel, stride = nn.sizes(kernel_size, count, "kernel_size"), nn.sizes(strides, count, "strides")
        pads = nn.same_pads(x.shape[2:], kernel, stride, (1,) * count) if _pad_mode(pad_mode) == "same" else []
        wide = nn.padded(x, pads, -np.inf if kind == "max" else 0.0)
        y = nn.pool(kind, count, wide, kernel, stride, 0, False)
        if kind == "max" or wide is x:
            return y
        inside = nn.padded(creation.ones((1, 1, *x.shape[2:]), x._dt), pads)
        return y / nn.pool(kind, count, inside, kernel, stride, 0, False)

    return call


def _pool_of_volumes(kind: str) -> Callable[..., Tensor]:
    """Pooling of volumes, which may have a padding of its own, ``pad`` or ``pad_list``."""
    unpadded = _pool(kind, 3)

    def call(x: TensorLike, *, kernel_size: Sizes, strides: Sizes, pad_mode: str, data_format: str,
             pad: Sizes = 0, pad_list: Sizes = 0, ceil_mode: bool | None = None, count_include_pad: bool = True,
             divisor_override: int = 0) -> Tensor:
        if pad_mode.lower() != "pad":
            return unpadded(x, kernel_size=kernel_size, strides=strides, pad_mode=pad_mode, data_format=data_format)
        given = pad_list if kind == "max" else pad
        if kind == "max":
            if isinstance(given, (tuple, list)) and len(given) == 6:  # before and after
                x, given = nn.padded(as_floating(x), list(zip(given[::2], given[1::2])), -np.inf), 0
            return nn.pool("max", 3, x, kernel_size, strides, given, bool(ceil_mode))
        return nn.averages(3, x, kernel_size, strides, given, bool(ceil_mode), count_include_pad, divisor_override)

    return call


def _pool_shown(name: str) -> Callable[..., dict[str, object]]:
    def check(*, kernel_size: Sizes, strides: Sizes, pad_mode: str, data_format: str, pad: Sizes = 0,
              pad_list: Sizes = 0, **more: object) -> dict[str, object]:
        _nchw(name)(data_format=data_format)
        count = len(data_format) - 2
        given = pad or pad_list
        if given and pad_mode.lower() != "pad":
            raise ArgumentError(f"{name}: pad_mode must be 'pad' for a padding of {given!r}, got {pad_mode!r}")
        wide = {what: (1, 1, *nn.sizes(value, count, f"{name}: {what}"))
                for what, value in (("kernel_size", kernel_size), ("strides", strides))}
        return {**wide, "pad_mode": pad_mode.upper(), "data_format": data_format}

    return check


def _max_pool_with_places(x: TensorLike, *, kernel_size: Sizes, strides: Sizes, pad_mode: str, data_format: str
                          ) -> tuple[Tensor, Tensor]:
    """The maximum of each window of images, and its flat index among all channels of its image, as int32."""
    x = as_floating(x)
    kernel, stride = nn.sizes(kernel_size, 2, "kernel_size"), nn.sizes(strides, 2, "strides")
    pads = nn.same_pads(x.shape[2:], kernel, stride, (1, 1)) if _pad_mode(pad_mode) == "same" else [(0, 0), (0, 0)]
    values, places = windows.max_windows(nn.padded(x, pads, -np.inf), 2, kernel, stride, 0, 1, False)
    channels, height, width = x.shape[1:]
    wide = width + sum(pads[1])
    rows, columns = places // wide - pads[0][0], places % wide - pads[1][0]
    first = tensor(np.arange(channels).reshape((channels, 1, 1)) * (height * width))
    return values, (first + rows * width + columns)._cast(np.dtype(np.int32))


def _pad_mode(pad_mode: str) -> str:
    if pad_mode.lower() not in ("same", "valid"):
        raise ArgumentError(f"pad_mode must be same or valid, got {pad_mode!r}")
    return pad_mode.lower()


_add("MaxPoolWithArgmax", _max_pool_with_places, {"kernel_size": 1, "strides": 1, "pad_mode": "valid",
                                                  "data_format": "NCHW"}, _pool_shown("MaxPoolWithArgmax"))

for _name, _kind in (("MaxPool", "max"), ("AvgPool", "avg")):
    _add(_name, _pool(_kind, 2), {"kernel_size": 1, "strides": 1, "pad_mode": "valid", "data_format": "NCHW"},
         _pool_shown(_name))
for _name, _kind, _more in (
        ("MaxPool3D", "max", {"pad_list": 0, "ceil_mode": None}),
        ("AvgPool3D", "avg", {"pad": 0, "ceil_mode": False, "count_include_pad": True, "divisor_override": 0})):
    _add(_name, _pool_of_volumes(_kind), {"kernel_size": 1, "strides": 1, "pad_mode": "valid", **_more,
                                          "data_format": "NCDHW"}, _pool_shown(_name))


def _bias_add(x: TensorLike, bias: TensorLike, *, data_format: str) -> Tensor:
    return linalg.bias_add(x, bias)


def _no_settings(**_: object) -> dict[str, object]:
    return {}


def _layer_norm(x: TensorLike, gamma: TensorLike, beta: TensorLike, *, begin_norm_axis: int, begin_params_axis: int,
                epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    x = as_floating(x)
    first = begin_norm_axis % x.ndim
    over = tuple(range(first, x.ndim))
    mean, var = (function(x, axis=over, keepdims=True) for function in (ops._npi_mean, ops._npi_var))
    y = (x - mean) * ops.rsqrt(var + epsilon)
    return y * like(gamma, x) + like(beta, x), mean, var


def _l2_normalize(x: TensorLike, *, axis: Axes, epsilon: float) -> Tensor:
    x = as_floating(x)
    total = reduce.sum(x * x, axis, True)
    return x * ops.rsqrt(ops._maximum_scalar(total, scalar=float(epsilon)))


_add("BiasAdd", _bias_add, {"data_format": "NCHW"}, _nchw("BiasAdd"))
_add("AdaptiveAvgPool2D", nn.adaptive_avg_pool2d, {"output_size": ...})
_add("LayerNorm", _layer_norm, {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 1e-7})
_add("L2Normalize", _l2_normalize, {"axis": 0, "epsilon": 1e-4},
     lambda axis, epsilon: {"axis": [axis] if isinstance(axis, int) else list(axis), "epsilon": epsilon})
_add("LRN", nn.lrn, {"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5, "norm_region": "ACROSS_CHANNELS"},
     _no_settings)


def _batch_norm(x: TensorLike, scale: TensorLike, bias: TensorLike, mean: TensorLike, variance: TensorLike, *,
                epsilon: float, momentum: float, is_training: bool, data_format: str) -> tuple[Tensor, ...]:
    x, scale, bias, mean, variance = as_floating(x), *map(tensor, (scale, bias, mean, variance))
    axis = x.ndim - 1 if data_format == "NHWC" else 1
    over = tuple(i for i in range(x.ndim) if i != axis)
    wide = tuple(-1 if i == axis else 1 for i in range(x.ndim))
    if not is_training:
        factor = scale * ops.rsqrt(variance + epsilon)
        y = x * factor.reshape(wide)._cast(x._dt) + (bias - mean * factor).reshape(wide)._cast(x._dt)
        return y, mean, variance, mean, variance
    statistics = ops._npi_mean(x, axis=over), ops._npi_var(x, axis=over)
    if isinstance(mean, Parameter) and isinstance(variance, Parameter):
        with Recording(None, True):
            y = ops._nn_batch_norm(x, scale, bias, mean, variance, eps=epsilon, axis=axis, momentum=1 - momentum)
    else:
        factor = scale * ops.rsqrt(statistics[1] + epsilon)
        y = (x - statistics[0].reshape(wide)) * factor.reshape(wide) + bias.reshape(wide)
    return y, *statistics, *statistics


def _batch_norm_check(*, is_training: bool, epsilon: float, momentum: float, data_format: str) -> None:
    if not isinstance(is_training, bool):
        raise ArgumentError(f"BatchNorm: is_training must be a bool, got {type(is_training).__name__}")
    if not (is_number(epsilon) and 0 < epsilon <= 1 and is_number(momentum) and 0 <= momentum <= 1):
        raise ArgumentError(f"BatchNorm: epsilon must be above 0 and momentum at least 0, both at most 1, got "
                            f"{epsilon!r} and {momentum!r}")
    if data_format not in ("NCHW", "NHWC", "NCDHW"):
        raise ArgumentError(f"BatchNorm: data_format must be NCHW, NHWC or NCDHW, got {data_format!r}")


_add("BatchNorm", _batch_norm, {"is_training": False, "epsilon": 1e-5, "momentum": 0.1, "data_format": "NCHW"},
     _batch_norm_check)


def _weights(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Interpolation weights, of shape (new, old), from ``old`` to ``new`` elements."""
    scale = (old - 1) / (new - 1) if align_corners and new > 1 else old / new
    places = np.arange(new, dtype=np.float64)
    places = (places + 0.5) * scale - 0.5 if half_pixel_centers else places * scale
    lower = np.clip(np.floor(places), 0, old - 1).astype(np.int64)
    right = np.minimum(lower + 1, old - 1)
    part = np.clip(places - lower, 0.0, 1.0)
    shares = np.zeros((new, old))
    np.add.at(shares, (np.arange(new), lower), 1.0 - part)
    np.add.at(shares, (np.arange(new), right), part)
    return shares


def _resize_bilinear(image: TensorLike, size: AnyShape, *, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    x, new = _image("ResizeBilinearV2", image, size, as_floating)
    rows, columns = (scalar(_weights(n, m, align_corners, half_pixel_centers), x._dt) for n, m in zip(x.shape[2:], new))
    return ops._npi_matmul(ops._npi_matmul(rows, x), ops.transpose(columns, axes=(1, 0)))


def _nearest(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """For each of ``new`` elements the index of the nearest of ``old`` ones, computed in float32 as in MindSpore."""
    scale = np.float32((old - 1) / (new - 1) if align_corners and new > 1 else old / new)
    places = (np.arange(new, dtype=np.float32) + np.float32(half_pixel_centers / 2)) * scale
    return np.minimum(np.floor(places + np.float32(align_corners / 2)), old - 1).astype(np.int64)


def _resize_nearest(image: TensorLike, size: AnyShape, *, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    x, new = _image("ResizeNearestNeighbor", image, size, tensor)
    for axis, length in enumerate(new, 2):
        x = ops.take(x, tensor(_nearest(x.shape[axis], length, align_corners, half_pixel_centers)), axis=axis)
    return x


def _image(name: str, image: TensorLike, size: AnyShape, as_tensor: Callable[[TensorLike], Tensor]
           ) -> tuple[Tensor, tuple[int, ...]]:
    """Images with two spatial axes, and their requested size."""
    x, new = as_tensor(image), shape_of(size)
    if x.ndim != 4:
        raise ShapeError(f"{name}: the image rank must be equal to 4, but got shape {x.shape}")
    if len(new) != 2 or min(new) < 1:
        raise ArgumentError(f"{name}: size must be two lengths, a height and a width, got {size!r}")
    return x, new


def _resize_check(*, align_corners: bool, half_pixel_centers: bool, size: object = None) -> None:
    for name, value in (("align_corners", align_corners), ("half_pixel_centers", half_pixel_centers)):
        if not isinstance(value, bool):
            raise ArgumentError(f"Resize: {name} must be a bool, got {type(value).__name__}")
    if align_corners and half_pixel_centers:
        raise ArgumentError("Resize: half_pixel_centers must be false when align_corners is true")


_CORNERS = {"align_corners": False, "half_pixel_centers": False}
_add("ResizeBilinearV2", _resize_bilinear, _CORNERS, _resize_check)
_add("ResizeBilinear", _resize_bilinear, {"size": ..., **_CORNERS}, _resize_check)
_add("ResizeNearestNeighborV2", _resize_nearest, _CORNERS, _resize_check)
_add("ResizeNearestNeighbor", _resize_nearest, {"size": ..., **_CORNERS}, _resize_check)


def _crop_and_resize(image: TensorLike, boxes: TensorLike, box_indices: TensorLike, crop_size: Sequence[int], *,
                     method: str, extrapolation_value: float) -> Tensor:
    return sampling.crop_and_resize(image, boxes, box_indices, crop_size, method, extrapolation_value)


_add("CropAndResize", _crop_and_resize, {"method": "bilinear", "extrapolation_value": 0.0})
