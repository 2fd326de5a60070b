"""``mint.nn.functional``: functional layers with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....cells.tensor import Tensor, tensor
from ....cells.typing import Axes, Sizes, TensorDType, TensorLike
from ....core.named_errors import name_errors
from ....core.registry import ops as operators
from ....errors import ArgumentError
from ... import ops
from ...ops import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool2d,
    binary_cross_entropy,
    cosine_embedding_loss,
    cross_entropy,
    embedding,
    fold,
    gelu,
    grid_sample,
    group_norm,
    hardshrink,
    hardsigmoid,
    hardswish,
    interpolate,
    layer_norm,
    mish,
    mse_loss,
    pixel_shuffle,
    prelu,
    relu,
    selu,
    sigmoid,
    soft_margin_loss,
    softplus,
    softshrink,
    tanh,
    unfold,
    upsample,
)
from ...ops import dense as linear
from ...ops.lift import as_floating, like, to_common_dtype
from ...ops.nn import batch_norm_of, sizes
from ...ops.windows import adaptive_max
from ..functions import flatten

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "conv1d", "conv2d", "conv3d", "conv_transpose2d", "cosine_embedding_loss", "cross_entropy", "dropout", "dropout2d",
    "elu", "embedding", "flatten", "fold", "gelu", "glu", "grid_sample", "group_norm", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "max_pool2d", "max_unpool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad",
    "pixel_shuffle", "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss",
    "softmax", "softplus", "softshrink", "tanh", "threshold", "unfold", "upsample"]


# ----------------------------------------------------------------------------------------------------- activations


def elu(input: TensorLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` if positive, else ``alpha * (exp(x) - 1)``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.elu(Tensor([-1.0, 2.0])).asnumpy().round(3))
    [-0.632  2.   ]
    """
    x = as_floating(input)
    return ops.where(x > 0, x, alpha * ops.expm1(ops.minimum(x, 0)))


def relu6(input: TensorLike, inplace: bool = False) -> Tensor:
    """The input clipped to [0, 6].

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.relu6(Tensor([-1.0, 3.0, 8.0])))
    [0. 3. 6.]
    """
    return ops.relu6(input)


def hardtanh(input: TensorLike, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The input clipped to [``min_val``, ``max_val``].

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.hardtanh(Tensor([-2.0, 0.5, 2.0])))
    [-1.   0.5  1. ]
    """
    return ops.hardtanh(input, min_val, max_val)


def leaky_relu(input: TensorLike, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` if positive, else ``negative_slope * x``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.leaky_relu(Tensor([-1.0, 2.0]), 0.1))
    [-0.1  2. ]
    """
    return ops.leaky_relu(input, negative_slope)


def silu(input: TensorLike, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.silu(Tensor([0.0, 1.0])).asnumpy().round(4))
    [0.     0.7311]
    """
    return ops.silu(input)


def threshold(input: TensorLike, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it exceeds the threshold, else ``value``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.threshold(Tensor([0.1, 2.0]), 1.0, 0.0))
    [0. 2.]
    """
    return ops.threshold(input, threshold, value)


def logsigmoid(input: TensorLike) -> Tensor:
    """The logarithm of the sigmoid.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.logsigmoid(Tensor([0.0])).asnumpy().round(4))
    [-0.6931]
    """
    return ops.logsigmoid(input)


def glu(input: TensorLike, dim: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.glu(Tensor([1.0, 0.0])))
    [0.5]
    """
    return ops.glu(input, dim)


def _axis(dim: int | None, x: Tensor) -> int:
    """The default axis of classes: the first for up to one axis or three axes, else the second."""
    return dim if dim is not None else 0 if x.ndim in (0, 1, 3) else 1


def softmax(input: TensorLike, dim: int | None = None, dtype: TensorDType = None) -> Tensor:
    """The softmax along an axis.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.softmax(Tensor([0.0, 0.0]), dim=0))
    [0.5 0.5]
    """
    x = tensor(input)
    return ops.softmax(x, _axis(dim, x), dtype=dtype)


def log_softmax(input: TensorLike, dim: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """The logarithm of the softmax along an axis.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.log_softmax(Tensor([0.0, 0.0]), dim=0).asnumpy().round(4))
    [-0.6931 -0.6931]
    """
    x = tensor(input)
    return ops.log_softmax(x if dtype is None else x.astype(dtype), _axis(dim, x))


# ------------------------------------------------------------------------------------------------------- windows


def conv1d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """The convolution of sequences (batch, channels, length); see ``conv2d``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.conv1d(mint.ones((1, 2, 8)), mint.ones((3, 2, 3))).shape
    (1, 3, 6)
    """
    return ops.conv1d(input, weight, bias, stride, *_padding(padding, 1), dilation, groups)


def conv2d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """The convolution of images (batch, channels, height, width).

    Parameters
    ----------
    weight : tensor of shape (filters, channels / groups, height, width)
        The kernels.
    padding : int or tuple of 2 int, "valid" or "same"
        Zero padding on both sides of each axis.

    Examples
    --------
    >>> from opreg import ops
    >>> conv2d(ops.ones((1, 2, 5, 5)), ops.ones((3, 2, 3, 3)), padding=1).shape
    (1, 3, 5, 5)
    """
    return ops.conv2d(input, weight, bias, stride, *_padding(padding, 2), dilation, groups)


def conv3d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """The convolution of volumes (batch, channels, depth, height, width); see ``conv2d``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.conv3d(mint.ones((1, 2, 4, 4, 4)), mint.ones((3, 2, 3, 3, 3))).shape
    (1, 3, 2, 2, 2)
    """
    return ops.conv3d(input, weight, bias, stride, *_padding(padding, 3), dilation, groups)


def _padding(padding: Sizes | str, count: int) -> tuple[str, Sizes]:
    """The padding mode and widths that ``ops`` takes."""
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise ArgumentError(f"padding must be an int, {count} of them, 'valid' or 'same', got {padding!r}")
        return padding, 0
    return "pad", sizes(padding, count, "padding")


def conv_transpose2d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
                     padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """The transposed convolution of images.

    Parameters
    ----------
    weight : tensor of shape (channels, filters / groups, height, width)
    output_padding : int or tuple of 2 int
        Additional rows and columns at the end of the output.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.conv_transpose2d(mint.ones((1, 2, 4, 4)), mint.ones((2, 3, 3, 3))).shape
    (1, 3, 6, 6)
    """
    x, w = to_common_dtype(input, weight)
    inputs = (x, w) if bias is None else (x, w, like(bias, x))
    return operators.Deconvolution(*inputs, kernel=w.shape[2:], stride=sizes(stride, 2, "stride"),
                                   dilate=sizes(dilation, 2, "dilation"), pad=sizes(padding, 2, "padding"),
                                   adj=sizes(output_padding, 2, "output_padding"), num_filter=w.shape[1] * groups,
                                   num_group=groups, no_bias=bias is None)


def avg_pool1d(input: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window of sequences; the stride is the window size by default.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.avg_pool1d(Tensor([[[1.0, 3.0, 5.0, 7.0]]]), 2))
    [[[2. 6.]]]
    """
    return ops.avg_pool1d(input, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad)


def avg_pool2d(input: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None
               ) -> Tensor:
    """The mean of each window of images, or the sum divided by ``divisor_override``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.avg_pool2d(mint.ones((1, 2, 4, 4)), 2).shape
    (1, 2, 2, 2)
    """
    return ops.avg_pool2d(input, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad,
                          divisor_override or 0)


def avg_pool3d(input: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None
               ) -> Tensor:
    """The mean of each window of volumes, or the sum divided by ``divisor_override``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.avg_pool3d(mint.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return ops.avg_pool3d(input, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad,
                          divisor_override or 0)


def max_pool2d(input: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               dilation: Sizes = 1, ceil_mode: bool = False, return_indices: bool = False
               ) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of images; with ``return_indices`` their indices, too.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.max_pool2d(mint.ones((1, 2, 4, 4)), 2).shape
    (1, 2, 2, 2)
    """
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def max_unpool2d(input: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """The partial inverse of ``max_pool2d``: values at the given indices, and zeros elsewhere."""
    return ops.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def adaptive_max_pool1d(input: TensorLike, output_size: int, return_indices: bool = False
                       ) -> Tensor | tuple[Tensor, Tensor]:
    """The maxima over ``output_size`` windows of sequences; with ``return_indices`` also their places.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.adaptive_max_pool1d(Tensor([[[1.0, 3.0, 5.0, 7.0]]]), 2))
    [[[3. 7.]]]
    """
    return adaptive_max(1, input, output_size, return_indices)


def pad(input: TensorLike, pad: Sizes, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads a tensor, starting with the last axis; negative widths crop.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.pad(Tensor([1.0, 2.0]), (1, 1)))
    [0. 1. 2. 0.]
    """
    return ops.pad(input, pad, mode, value)


# ---------------------------------------------------------------------------------------- normalization, dropout


def batch_norm(input: TensorLike, running_mean: TensorLike, running_var: TensorLike, weight: TensorLike | None = None,
               bias: TensorLike | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5
               ) -> Tensor:
    """Batch normalization: mean ``bias`` and standard deviation ``weight`` in each channel, 0 and 1 by default.

    With ``training`` the statistics are those of the data, and running ones that are Parameters move towards them by
    the part ``momentum``; otherwise the running ones take their place.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.batch_norm(mint.ones((2, 3)), mint.zeros(3), mint.ones(3)).shape
    (2, 3)
    """
    x = as_floating(input)
    scale = ops.ones(x.shape[1], x._dt) if weight is None else weight
    shift = ops.zeros(x.shape[1], x._dt) if bias is None else bias
    return batch_norm_of(x, scale, shift, running_mean, running_var, training=training, momentum=momentum, eps=eps)


def normalize(input: TensorLike, p: float = 2.0, dim: Axes = 1, eps: float = 1e-12) -> Tensor:
    """The input divided by its norm along axes, or by ``eps`` if that is larger.

    Examples
    --------
    >>> print(normalize([[3.0, 4.0]]))
    [[0.6 0.8]]
    """
    x = as_floating(input)
    return x / ops.maximum(ops.vector_norm(x, p, dim, True), eps)


def dropout(input: TensorLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout: each element set to zero with probability ``p``, the others divided by ``1 - p``, if ``training``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.dropout(Tensor([1.0, 2.0]), p=0.5, training=False))
    [1. 2.]
    """
    return ops.dropout(input, p, training)


def dropout2d(input: TensorLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout of channels: each set to zero with probability ``p``, the others divided by ``1 - p``, if
    ``training``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> mint.nn.functional.dropout2d(mint.ones((1, 2, 4, 4)), p=0.5).shape
    (1, 2, 4, 4)
    """
    return ops.dropout2d(input, p, training)


def one_hot(tensor: TensorLike, num_classes: int = -1) -> Tensor:
    """The one-hot encoding, int64; -1 infers the number of classes from the maximum.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.one_hot(Tensor([0, 2]), 3))
    [[1 0 0]
     [0 0 1]]
    """
    index = _classes(tensor)
    depth = int(ops.amax(index)) + 1 if num_classes == -1 else num_classes
    return ops.one_hot(index, depth)._cast(np.dtype(np.int64))


def _classes(value: TensorLike) -> Tensor:
    return tensor(value)


# ---------------------------------------------------------------------------------------------------------- losses


def binary_cross_entropy_with_logits(input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
                                     reduction: str = "mean", pos_weight: TensorLike | None = None) -> Tensor:
    """The binary cross entropy of logits.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.binary_cross_entropy_with_logits(Tensor([0.0]), Tensor([1.0])).asnumpy().round(4))
    0.6931
    """
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input: TensorLike, target: TensorLike, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """``target * (log(target) - input)``, or 0 where the target is 0; "batchmean" divides the sum by the batch size.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.kl_div(Tensor([0.0]), Tensor([1.0]), reduction="sum"))
    0.0
    """
    x, y = to_common_dtype(input, target, real=True)
    loss = ops.exp(y) * (y - x) if log_target else ops.xlogy(y, y) - y * x
    return ops.sum(loss) / x.shape[0] if reduction == "batchmean" else _reduce_loss(loss, reduction)


def l1_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The absolute error.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.l1_loss(Tensor([1.0, 2.0]), Tensor([1.0, 4.0])))
    1.0
    """
    return ops.l1_loss(input, target, reduction)


def smooth_l1_loss(input: TensorLike, target: TensorLike, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The smooth L1 loss: ``d**2 / (2 * beta)`` for errors below ``beta``, else ``d - beta / 2``.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.smooth_l1_loss(Tensor([1.0, 2.0]), Tensor([1.0, 4.0])))
    0.75
    """
    if beta == 0:
        return l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, beta, reduction)


def nll_loss(input: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """The negative log likelihood of the labelled class.

    Examples
    --------
    >>> from opreg import Tensor, mint
    >>> print(mint.nn.functional.nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])))
    2.0
    """
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def _reduce_loss(loss: Tensor, reduction: str) -> Any:
    """The loss reduced to its mean or sum, or unreduced."""
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return ops.mean(loss) if reduction == "mean" else ops.sum(loss) if reduction == "sum" else loss


name_errors(__name__, globals(), __all__)
