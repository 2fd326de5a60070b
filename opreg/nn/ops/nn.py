"""Functions of layers: convolutions, pooling, normalisation, embedding, resizing.

They read shapes only where a result depends on them, so that layers may be traced without example inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...cells.parameter import Parameter
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import Sizes, TensorLike
from ...core.mode import Recording
from ...core.registry import ops
from ...errors import ArgumentError, DTypeError, ShapeError
from .array import expand_dims, squeeze
from .creation import ones, zeros
from .lift import as_floating, like, rank_of, tensor, to_common_dtype
from .math import maximum, minimum, where

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "affine_grid", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_norm", "conv1d", "conv2d", "conv3d", "cosine_similarity", "embedding", "fold", "group_norm",
    "interpolate", "iou", "layer_norm", "lrn", "pixel_shuffle", "pixel_unshuffle", "rms_norm", "unfold", "upsample"]


def sizes(value: Sizes, count: int, what: str) -> tuple[int, ...]:
    """One value for each axis of an image, given as one for all or as a tuple, which may begin with two ones."""
    if isinstance(value, (int, np.integer)):
        lengths = () if isinstance(value, bool) else (int(value),) * count
    else:
        lengths = tuple(map(int, value))
    if len(lengths) == count + 2 and lengths[:2] == (1, 1):
        lengths = lengths[2:]
    if len(lengths) == 1:
        lengths *= count
    if len(lengths) != count:
        raise ArgumentError(f"{what} must be an int or {count} of them, got {value!r}")
    return lengths


def same_total(length: int, kernel: int, stride: int, dilation: int = 1) -> int:
    """The padding that makes ``ceil(length / stride)`` windows fit exactly; negative if elements are left over.

    Examples
    --------
    >>> same_total(5, 4, 1), same_total(6, 1, 2)
    (3, -1)
    """
    return (-(-length // stride) - 1) * stride + dilation * (kernel - 1) + 1 - length


def same_pads(lengths: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
              ) -> list[tuple[int, int]]:
    """Padding before and after each axis that gives ``ceil(length / stride)`` windows."""
    totals = [max(same_total(*sizes_of_axis), 0) for sizes_of_axis in zip(lengths, kernel, stride, dilation)]
    return [(total // 2, total - total // 2) for total in totals]


def padded(x: Tensor, pads: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """Images padded with a value."""
    width = (0, 0, 0, 0, *(count for pair in pads for count in pair))
    if not any(width):
        return x
    return ops.Pad(x, mode="constant", pad_width=width, constant_value=value)


# ---------------------------------------------------------------------------------------------- convolutions


def _conv(name: str, count: int, input: TensorLike, weight: TensorLike, bias: TensorLike | None, stride: Sizes,
          pad_mode: str, padding: Sizes, dilation: Sizes, groups: int) -> Tensor:
    x, w = to_common_dtype(input, weight)
    axes = rank_of(x)
    single = axes == count + 1
    if axes not in (None, count + 1, count + 2) or w.ndim != count + 2:
        raise ShapeError(f"{name}: expected {count + 2} axes, got shapes {x.shape} and {w.shape} of the weight")
    x = ops.expand_dims(x, axis=0) if single else x
    kernel, strides = w.shape[2:], sizes(stride, count, f"{name}: stride")
    dilate, pads = sizes(dilation, count, f"{name}: dilation"), [(0, 0)] * count
    if pad_mode == "same":
        # with a stride of one the padding does not depend on the length
        lengths = strides if all(step == 1 for step in strides) else x.shape[2:]
        pads = same_pads(lengths, kernel, strides, dilate)
    elif pad_mode == "pad":
        widths = (padding,) * count if isinstance(padding, int) else tuple(padding)
        pads = list(zip(widths[::2], widths[1::2])) if len(widths) == 2 * count and count > 1 else \
            [(width, width) for width in sizes(widths, count, f"{name}: padding")]
    elif pad_mode != "valid":
        raise ArgumentError(f"{name}: pad_mode must be 'same', 'valid' or 'pad', got {pad_mode!r}")
    elif padding not in (0, (0,) * count):
        raise ArgumentError(f"{name}: padding={padding!r} needs pad_mode='pad'")
    if any(before != after for before, after in pads):
        x, pads = padded(x, pads), [(0, 0)] * count
    inputs = (x, w) if bias is None else (x, w, like(bias, x))
    y = ops.Convolution(*inputs, kernel=kernel, stride=strides, dilate=dilate, pad=tuple(pair[0] for pair in pads),
                        num_filter=w.shape[0], num_group=int(groups), no_bias=bias is None)
    return squeeze(y, 0) if single else y


def conv1d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           pad_mode: str = "valid", padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """A convolution of sequences (batch, channels, length); see ``conv2d``."""
    return _conv("conv1d", 1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv2d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           pad_mode: str = "valid", padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """A convolution of images (batch, channels, height, width).

    Parameters
    ----------
    weight : tensor of shape (filters, channels / groups, height, width)
        The kernels.
    pad_mode : {"valid", "same", "pad"}
        No padding; padding that makes the length of the result ``ceil(length / stride)``; or ``padding`` on each side.
    """
    return _conv("conv2d", 2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv3d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           pad_mode: str = "valid", padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """A convolution of volumes (batch, channels, depth, height, width); see ``conv2d``."""
    return _conv("conv3d", 3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


# --------------------------------------------------------------------------------------------------- pooling


def _pooled(kind: str, x: TensorLike) -> Tensor:
    """The tensor to pool, cast to a floating dtype, except integers for maximum pooling."""
    x = tensor(x)
    return x if kind == "max" and x._dt.kind in "iu" else as_floating(x)


def windows_along(length: int, kernel: int, stride: int, pad: int, ceil: bool) -> int:
    """The number of windows of length ``kernel`` along an axis. With ``ceil``, the last one may extend beyond the end,
    but does not begin in the padding after it."""
    room = length + 2 * pad - kernel
    count = (-(-room // stride) if ceil else room // stride) + 1
    return count - (ceil and (count - 1) * stride >= length + pad)


def pool(kind: str, count: int, x: TensorLike, kernel: Sizes, stride: Sizes, padding: Sizes, ceil: bool, **attrs: object
        ) -> Tensor:
    """Maxima, sums or means of windows; maxima of integers stay integers."""
    x = _pooled(kind, x)
    axes = rank_of(x)
    single = axes == count + 1
    if axes not in (None, count + 1, count + 2):
        raise ShapeError(f"{kind} pooling: expected {count + 2} axes, got shape {x.shape}")
    x = ops.expand_dims(x, axis=0) if single else x
    if kind != "max" and isinstance(padding, (tuple, list)) and len(padding) == 2 * count > 2:  # before and after
        x, padding = padded(x, list(zip(padding[::2], padding[1::2]))), 0
    geometry = sizes(kernel, count, "kernel_size"), sizes(stride, count, "stride"), sizes(padding, count, "padding")
    y = ops.Pooling(x, kernel=geometry[0], stride=geometry[1], pad=geometry[2], pool_type=kind,
                    pooling_convention="full" if ceil else "valid", **attrs)
    for axis, (size, step, pad) in enumerate(zip(*geometry), 2):
        if ceil and step + pad > size:  # MXNet adds a window that begins in the padding after the end
            y = ops.slice_axis(y, axis=axis, begin=0, end=windows_along(x.shape[axis], size, step, pad, ceil))
    return squeeze(y, 0) if single else y


def _no(name: str, **settings: tuple[object, object]) -> None:
    for what, (value, only) in settings.items():
        if value not in (only, (only,), (only, only), (only, only, only)):
            raise ArgumentError(f"{name}: {what}={value!r} is not available, only {only!r}")


def avg_pool1d(input_x: TensorLike, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window of sequences."""
    return pool("avg", 1, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad=count_include_pad)


def avg_pool2d(input_x: TensorLike, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0) -> Tensor:
    """The mean of each window of images, or the sum divided by ``divisor_override``."""
    return averages(2, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input_x: TensorLike, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0) -> Tensor:
    """The mean of each window of volumes, or the sum divided by ``divisor_override``."""
    return averages(3, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def averages(count: int, x: TensorLike, kernel: Sizes, stride: Sizes, padding: Sizes, ceil: bool, include: bool,
             divisor: int) -> Tensor:
    """Means of windows, or their sums divided by ``divisor``; ``include`` tells whether padding counts."""
    if divisor:
        return pool("sum", count, x, kernel, stride, padding, ceil) / divisor
    return pool("avg", count, x, kernel, stride, padding, ceil, count_include_pad=bool(include))


def adaptive_pool(kind: str, count: int, input: TensorLike, output_size: int | Sequence[int | None]) -> Tensor:
    """Means or maxima over the cells of a grid on the last axes; None keeps a length.

    Cell ``i`` of ``m`` along an axis of length ``n`` covers ``floor(i n / m)`` to before ``ceil((i + 1) n / m)``.
    """
    x = _pooled(kind, input)
    target = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(target) != count or x.ndim not in (count + 1, count + 2):
        raise ShapeError(f"adaptive pooling: expected {count + 1} or {count + 2} axes and {count} lengths, got shape "
                         f"{x.shape} and {tuple(target)}")
    lead, lengths = x.shape[:-count], x.shape[-count:]
    grid = tuple([n if m is None else int(m) for n, m in zip(lengths, target)])
    if kind == "avg" and count < 3:
        flat = (1,) * (2 - count)
        y = ops._contrib_AdaptiveAvgPooling2D(x.reshape((1, math.prod(lead), *flat, *lengths)),
                                              output_size=(*flat, *grid))
        return y.reshape((*lead, *grid))
    reduce = ops._np_max if kind == "max" else ops._npi_mean
    for axis, (n, m) in enumerate(zip(lengths, grid), len(lead)):
        if m != n:  # the maximum of a box is taken along one axis after the other
            cells = [reduce(ops.slice_axis(x, axis=axis, begin=i * n // m, end=-(-(i + 1) * n // m)), axis=axis,
                            keepdims=True) for i in range(m)]
            x = ops.Concat(*cells, num_args=m, dim=axis)
    return x


def adaptive_avg_pool2d(input: TensorLike, output_size: int | Sequence[int | None]) -> Tensor:
    """Means over the cells of a grid of ``output_size``, (height, width) or one value for both; None keeps a length."""
    return adaptive_pool("avg", 2, input, output_size)


def adaptive_avg_pool1d(input: TensorLike, output_size: int) -> Tensor:
    """Means over ``output_size`` cells of sequences."""
    return adaptive_pool("avg", 1, input, output_size)


def adaptive_avg_pool3d(input: TensorLike, output_size: int | Sequence[int | None]) -> Tensor:
    """Means over the cells of a grid of volumes; see ``adaptive_avg_pool2d``."""
    return adaptive_pool("avg", 3, input, output_size)


# --------------------------------------------------------------------------------------------- normalisation


def batch_norm(input_x: TensorLike, running_mean: TensorLike, running_var: TensorLike, weight: TensorLike,
               bias: TensorLike, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalise each channel to mean ``bias`` and standard deviation ``weight``.

    With ``training`` the statistics are the batch's; running statistics that are Parameters then move towards them by
    the factor ``momentum``, with the unbiased variance. Otherwise the running statistics are used.
    """
    return batch_norm_of(input_x, weight, bias, running_mean, running_var, training=training, momentum=momentum,
                         eps=eps)


def batch_norm_of(x: TensorLike, weight: TensorLike, bias: TensorLike, running_mean: TensorLike,
                  running_var: TensorLike, *, training: bool, momentum: float, eps: float, axis: int = 1) -> Tensor:
    """``batch_norm`` with the channels along any axis."""
    data = as_floating(x)
    gamma, beta, mean, var = map(tensor, (weight, bias, running_mean, running_var))
    if isinstance(mean, Parameter) and isinstance(var, Parameter):
        states = (data, gamma, beta, mean, var)
        if not training:
            return ops.BatchNorm(*states, eps=float(eps), axis=axis, fix_gamma=False, use_global_stats=True)
        with Recording(None, True):
            return ops._nn_batch_norm(*states, eps=float(eps), axis=axis, momentum=1 - float(momentum))
    axis %= data.ndim
    if training:
        over = tuple(i for i in range(data.ndim) if i != axis)
        mean, var = ops._npi_mean(data, axis=over), ops._npi_var(data, axis=over)
    wide = tuple(-1 if i == axis else 1 for i in range(data.ndim))
    scale = gamma * ops.rsqrt(var + eps)
    return data * scale.reshape(wide)._cast(data._dt) + (beta - mean * scale).reshape(wide)._cast(data._dt)


def layer_norm(input: TensorLike, normalized_shape: int | Sequence[int], weight: TensorLike | None = None,
               bias: TensorLike | None = None, eps: float = 1e-5) -> Tensor:
    """Normalise to mean zero and standard deviation one over the last axes, whose lengths are given; then multiply by
    ``weight`` and add ``bias``."""
    x = as_floating(input)
    shape = tuple([normalized_shape] if isinstance(normalized_shape, int) else normalized_shape)
    rank = rank_of(x)
    if not shape or (rank is not None and x.shape[-len(shape):] != shape):
        raise ShapeError(f"layer_norm: normalized_shape must be the last lengths of {x.shape}, got {shape}")
    count = math.prod(shape)
    gamma = ones((count,), x._dt) if weight is None else like(weight, x)
    beta = zeros((count,), x._dt) if bias is None else like(bias, x)
    if len(shape) == 1:
        return ops.LayerNorm(x, gamma, beta, axis=-1, eps=float(eps))
    flat = x.reshape((*x.shape[:-len(shape)], count))
    gamma, beta = gamma.reshape((count,)), beta.reshape((count,))
    return ops.LayerNorm(flat, gamma, beta, axis=-1, eps=float(eps)).reshape(x.shape)


def group_norm(input: TensorLike, num_groups: int, weight: TensorLike | None = None, bias: TensorLike | None = None,
               eps: float = 1e-5) -> Tensor:
    """Normalise each group of channels of each sample to mean zero and standard deviation one; then multiply by
    ``weight`` and add ``bias``."""
    x = as_floating(input)
    y = ops.GroupNorm(x, ones((num_groups,), x._dt), zeros((num_groups,), x._dt), num_groups=int(num_groups),
                      eps=float(eps))
    wide = (-1,) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * like(weight, x).reshape(wide)
    return y if bias is None else y + like(bias, x).reshape(wide)


def rms_norm(x: TensorLike, gamma: TensorLike, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Divide by the root of the mean square over the axes of ``gamma``, and multiply by ``gamma``; also returns the
    reciprocal of the root.

    B. Zhang, R. Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467.
    """
    x, gamma = as_floating(x), tensor(gamma)
    over = tuple(range(x.ndim - gamma.ndim, x.ndim))
    scale = ops.rsqrt(ops._npi_mean(x * x, axis=over, keepdims=True) + epsilon)
    return x * scale * like(gamma, x), scale


def lrn(x: TensorLike, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS") -> Tensor:
    """Divide by ``(bias + alpha s) ** beta``, where ``s`` is the sum of squares over channels within
    ``depth_radius``."""
    size = 2 * depth_radius + 1
    return ops.LRN(as_floating(x), nsize=size, alpha=float(alpha) * size, beta=float(beta), knorm=float(bias))


def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The inner product along an axis divided by the product of both norms, which are at least ``eps``."""
    x, y = to_common_dtype(x1, x2, real=True)
    lengths = [ops.sqrt(ops._np_sum(vectors * vectors, axis=dim)) for vectors in (x, y)]
    a, b = (ops._maximum_scalar(length, scalar=float(eps)) for length in lengths)
    return ops._np_sum(x * y, axis=dim) / (a * b)


# ------------------------------------------------------------------------------------------------- the rest


def embedding(input: TensorLike, weight: TensorLike, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False) -> Tensor:
    """Rows of a table at integer indices; the row ``padding_idx`` has no gradient.

    Negative indices count from the end; indices beyond the table are refused.
    """
    _no("embedding", max_norm=(max_norm, None), scale_grad_by_freq=(scale_grad_by_freq, False))
    index, table = tensor(input), tensor(weight)
    if index._dt.kind not in "iu":
        raise DTypeError(f"embedding: indices must be integers, got dtype {index._dt}")
    rows = ops.take(table, index, axis=0, mode="index")
    if padding_idx is None:
        return rows
    padding = padding_idx % table.shape[0]
    named = (index == padding) | (index == padding - table.shape[0])
    return where(expand_dims(named, -1), ops.BlockGrad(rows), rows)


def pixel_shuffle(input: TensorLike, upscale_factor: int) -> Tensor:
    """Move channels to blocks of height and width."""
    x, r = tensor(input), int(upscale_factor)
    *lead, c, h, w = x.shape
    n = len(lead)
    wide = x.reshape((*lead, c // (r * r), r, r, h, w)).transpose((*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return wide.reshape((*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: TensorLike, downscale_factor: int) -> Tensor:
    """Move blocks of height and width to channels: the inverse of ``pixel_shuffle``."""
    x, r = tensor(input), int(downscale_factor)
    *lead, c, h, w = x.shape
    n = len(lead)
    wide = x.reshape((*lead, c, h // r, r, w // r, r)).transpose((*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return wide.reshape((*lead, c * r * r, h // r, w // r))


def interpolate(input: TensorLike, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None
               ) -> Tensor:
    """Resize images, sequences or volumes.

    Parameters
    ----------
    size : int or sequence of int
        The new lengths. With ``scale_factor`` instead, they are the old lengths times the factor, rounded down.
    mode : {"nearest", "linear", "bilinear", "trilinear", "bicubic", "area"}
        The nearest element, linear or cubic interpolation, or means over cells.
    align_corners : bool
        Whether the corner elements of input and output are mapped to each other; otherwise coordinates refer to centers
        of pixels.
    recompute_scale_factor : bool
        Whether ``trilinear`` uses the quotient of the lengths in place of ``scale_factor``; other modes always do.
    """
    x = tensor(input) if mode == "nearest" else as_floating(input)
    count, factors = x.ndim - 2, list[float]()
    if size is not None and scale_factor is None:
        target = sizes(size, count, "size")
    elif size is not None or scale_factor is None:
        raise ArgumentError("interpolate: expected size or scale_factor, one of both")
    else:
        factors = [scale_factor] * count if isinstance(scale_factor, (int, float)) else list(scale_factor)
        target = tuple(math.floor(n * f) for n, f in zip(x.shape[2:], factors))
    if mode == "area":
        return _means(x, target)
    if mode not in ("nearest", "linear", "bilinear", "trilinear", "bicubic"):
        raise ArgumentError("interpolate: mode must be nearest, linear, bilinear, trilinear, bicubic or area, got "
                            f"{mode!r}")
    # The operator would take a single element from the front instead of the middle.
    if mode == "bilinear" and count == 2 and 1 not in target:
        return ops._contrib_BilinearResize2D(x, height=target[0], width=target[1], align_corners=bool(align_corners))
    steps = [n / m for n, m in zip(x.shape[2:], target)]
    # The given factor is used, not the quotient of the rounded lengths.
    if mode == "trilinear" and factors and not recompute_scale_factor:
        steps = [1 / factor for factor in factors]
    for axis, (m, step) in enumerate(zip(target, steps), 2):
        x = _resize_axis(x, axis, m, mode, bool(align_corners), step)
    return x


def _means(x: Tensor, target: tuple[int, ...]) -> Tensor:
    """Means over cells; of volumes first along height and width, then along depth."""
    if len(target) == 1:
        return adaptive_avg_pool1d(x, target[0])
    if len(target) == 2:
        return adaptive_avg_pool2d(x, target)
    n, channels, depth, *plane = x.shape
    flat = adaptive_avg_pool2d(x.reshape((n, channels * depth, *plane)), target[1:])
    rows = adaptive_avg_pool2d(flat.reshape((n, channels, depth, -1)), (target[0], target[1] * target[2]))
    return rows.reshape((n, channels, *target))


def _resize_axis(x: Tensor, axis: int, m: int, mode: str, align: bool, step: float) -> Tensor:
    """Resize one axis to ``m`` elements, ``step`` old ones apart."""
    n = x.shape[axis]
    if n == m and step == 1:
        return x
    steps = np.arange(m)
    if mode == "nearest":
        return ops.take(x, tensor(np.minimum(steps * n // m, n - 1)), axis=axis)
    at = steps * ((n - 1) / max(m - 1, 1)) if align else (steps + 0.5) * step - 0.5
    if mode != "bicubic":
        at = np.maximum(at, 0)
    lower = np.floor(at).astype(np.int64)
    along = [-1 if i == axis else 1 for i in range(x.ndim)]

    def sample(offset: int) -> Tensor:
        return ops.take(x, tensor(np.clip(lower + offset, 0, n - 1)), axis=axis)

    if mode == "bicubic":
        shares = _cubic(at - lower, lower, n, align)
        return ops.add_n(*[sample(offset) * tensor(share.reshape(along).astype(x._dt))
                           for offset, share in zip((-1, 0, 1, 2), shares)], num_args=4)
    before = sample(0)
    return before + (sample(1) - before) * tensor((at - lower).reshape(along).astype(x._dt))


def _cubic(part: np.ndarray, left: np.ndarray, n: int, align: bool) -> np.ndarray:
    """Weights of four neighbours at a point between the second and the third, as in MindSpore.

    The cubic kernel has the slope -0.75 at distance one if corners are aligned; else -0.5, and neighbours beyond the
    ends are left out. The point is rounded to 1/1024.
    """
    offsets = np.arange(-1, 3)[:, None]
    distance, slope = np.abs(np.rint(part * 1024) / 1024 - offsets), -0.75 if align else -0.5
    near = ((slope + 2) * distance - (slope + 3)) * distance * distance + 1
    far = ((slope * distance - 5 * slope) * distance + 8 * slope) * distance - 4 * slope
    shares = np.where(distance <= 1, near, far)
    if align:
        return shares
    shares = shares * ((left + offsets >= 0) & (left + offsets < n))
    return shares / shares.sum(0)


upsample = interpolate


def unfold(input: TensorLike, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
           ) -> Tensor:
    """The windows of images as columns: (batch, channels * elements of a window, windows).

    Examples
    --------
    >>> unfold(ones((1, 3, 4, 4)), 2).shape
    (1, 12, 9)
    """
    x = tensor(input)
    if x.ndim != 4:
        raise ShapeError(f"unfold: expected images (batch, channels, height, width), got the shape {x.shape}")
    return ops.im2col(x, **_window_attributes(kernel_size, dilation, padding, stride))


def fold(input: TensorLike, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
         stride: Sizes = 1) -> Tensor:
    """Columns, as ``unfold`` makes them, added at their positions in images of ``output_size``."""
    x = tensor(input)
    if x.ndim != 3:
        raise ShapeError(f"fold: expected columns (batch, places, windows), got the shape {x.shape}")
    size = output_size.asnumpy().tolist() if isinstance(output_size, TensorBase) else output_size
    return ops.col2im(x, output_size=sizes(size, 2, "output_size"),
                      **_window_attributes(kernel_size, dilation, padding, stride))


def _window_attributes(kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> dict[str, tuple[int, ...]]:
    return {"kernel": sizes(kernel, 2, "kernel_size"), "dilate": sizes(dilation, 2, "dilation"),
            "pad": sizes(padding, 2, "padding"), "stride": sizes(stride, 2, "stride")}


def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Sampling coordinates for ``grid_sample`` that transform images by matrices.

    Parameters
    ----------
    theta : Tensor
        Matrices of shape (batch, 2, 3), or (batch, 3, 4) for volumes.
    size : sequence of int
        Shape of the transformed images: (batch, channels, height, width), for volumes with a depth before the height.
    align_corners : bool
        Whether -1 and 1 are the centers of the first and last element of an axis, instead of their outer edges.

    Returns
    -------
    Tensor
        Coordinates of shape (batch, height, width, 2), or (batch, depth, height, width, 3).
    """
    matrices, lengths = as_floating(theta), tuple(int(length) for length in size[2:])
    count = len(lengths)
    if matrices.shape != (size[0], count, count + 1) or count not in (2, 3):
        raise ShapeError(f"affine_grid: expected theta of shape {(size[0], count, count + 1)} for the size "
                         f"{tuple(size)}, got {matrices.shape}")
    along = [np.linspace(-1, 1, length) * (1 if align_corners else (length - 1) / length) if length > 1
             else np.zeros(1) for length in lengths]
    places = np.stack([*np.meshgrid(*along, indexing="ij")[::-1], np.ones(lengths)], -1).reshape((-1, count + 1))
    grid = ops._npi_matmul(like(places, matrices), matrices.transpose((0, 2, 1)))
    return grid.reshape((size[0], *lengths, count))


def iou(anchor_boxes: TensorLike, gt_boxes: TensorLike, mode: str = "iou") -> Tensor:
    """Intersection over union of each pair of boxes: a row for each of ``gt_boxes``.

    Parameters
    ----------
    anchor_boxes, gt_boxes : Tensor
        Boxes of shapes (n, 4) and (m, 4): the first and last column and row, both included.
    mode : {"iou", "iof"}
        Whether the intersection is divided by the union, or by the area of the box of ``gt_boxes``.
    """
    x, y = to_common_dtype(anchor_boxes, gt_boxes, real=True)
    if mode not in ("iou", "iof"):
        raise ArgumentError(f"iou: mode must be 'iou' or 'iof', got {mode!r}")
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != 4 or y.shape[1] != 4:
        raise ShapeError(f"iou: expected boxes of four numbers, got shapes {x.shape} and {y.shape}")
    a, b = expand_dims(x, 0), expand_dims(y, 1)
    both = minimum(a[..., 2:], b[..., 2:]) - maximum(a[..., :2], b[..., :2]) + 1
    both = ops.relu(both)
    inside = both[..., 0] * both[..., 1]
    area_a, area_b = ((box[..., 2] - box[..., 0] + 1) * (box[..., 3] - box[..., 1] + 1) for box in (a, b))
    return inside / (area_b if mode == "iof" else area_a + area_b - inside)
