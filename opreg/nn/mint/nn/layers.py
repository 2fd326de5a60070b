"""Layers of ``mint.nn``: functions of ``mint.nn.functional`` with their settings, and those that have weights.

Weights are ``weight`` and ``bias``, statistics ``running_mean`` and ``running_var``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ....cells.cell import Cell
from ....cells.dtype import float32, int64
from ....cells.initializer import InitializerLike, Uniform, initializer
from ....cells.parameter import Parameter
from ....cells.tensor import Tensor
from ....cells.typing import Sizes, TensorDType, TensorLike
from ....core.named_errors import bind
from ....errors import ArgumentError
from ... import ops
from ...layers.checks import check_int, check_ints, check_word, flag
from . import functional

__all__ = [
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCEWithLogitsLoss", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "CrossEntropyLoss", "Dropout",
    "Dropout2d", "ELU", "Embedding", "Fold", "GELU", "GLU", "GroupNorm", "Hardtanh", "KLDivLoss", "L1Loss",
    "LayerNorm", "LogSoftmax", "MaxPool2d", "MaxUnpool2d", "NLLLoss", "PReLU", "ReLU6", "SiLU", "SmoothL1Loss",
    "Softmax", "Threshold", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d"]


# ------------------------------------------------------------------------------------- functions with their settings


class _Applied(Cell):
    """A layer that applies a function with settings."""

    _signature = inspect.Signature()
    _function: Callable[..., Any]

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        bound = bind(type(self).__name__, self._signature, args, kwargs)
        bound.apply_defaults()
        self.settings = dict(bound.arguments)

    def construct(self, *inputs: Tensor) -> Tensor:
        """The function applied to the inputs."""
        return self._function(*inputs, **self.settings)

    def extend_repr(self) -> str:
        """The settings."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items())


def _layer_of(name: str, function: Callable[..., Any], says: str, inputs: int = 1) -> type[_Applied]:
    """The layer class of a function whose first parameters are the inputs."""
    parameters = list(inspect.signature(function).parameters.values())[inputs:]
    signature = inspect.Signature([item.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for item in parameters])
    return type(name, (_Applied,), {"__doc__": says, "__module__": __name__, "__signature__": signature,
                                    "_signature": signature, "_function": staticmethod(function)})


def _pool(mean: str, what: str) -> str:
    return f"The {mean} of each window of {what}; by default windows do not overlap."


AvgPool1d = _layer_of("AvgPool1d", functional.avg_pool1d, _pool("mean", "sequences"))
AvgPool2d = _layer_of("AvgPool2d", functional.avg_pool2d, _pool("mean", "images"))
AvgPool3d = _layer_of("AvgPool3d", functional.avg_pool3d, _pool("mean", "volumes"))
MaxPool2d = _layer_of("MaxPool2d", ops.max_pool2d, _pool("largest number", "images"))
MaxUnpool2d = _layer_of("MaxUnpool2d", lambda x, indices, kernel_size, stride=None, padding=0:
                        functional.max_unpool2d(x, indices, kernel_size, stride, padding),
                        "Images with numbers at the places where ``MaxPool2d`` found them.", 2)
AdaptiveMaxPool1d = _layer_of("AdaptiveMaxPool1d", functional.adaptive_max_pool1d,
                              "The largest number of each of so many cells of sequences.")
AdaptiveMaxPool2d = _layer_of("AdaptiveMaxPool2d", functional.adaptive_max_pool2d,
                              "The largest number of each cell of a grid.")
ELU = _layer_of("ELU", functional.elu, "``x`` above zero, else ``alpha * (exp(x) - 1)``.")
GELU = _layer_of("GELU", functional.gelu, "``x`` times the normal distribution function of x.")
GLU = _layer_of("GLU", functional.glu, "The first half of an axis times the sigmoid of the second.")
Hardtanh = _layer_of("Hardtanh", functional.hardtanh, "Numbers cut to be from ``min_val`` to ``max_val``.")
ReLU6 = _layer_of("ReLU6", functional.relu6, "Numbers cut to be from 0 to 6.")
SiLU = _layer_of("SiLU", functional.silu, "``x * sigmoid(x)``.")
Threshold = _layer_of("Threshold", functional.threshold, "``x`` where it is above a threshold, else ``value``.")
Softmax = _layer_of("Softmax", lambda x, dim=None: functional.softmax(x, dim),
                    "The shares of exponentials in their sum along an axis.")
LogSoftmax = _layer_of("LogSoftmax", lambda x, dim=None: functional.log_softmax(x, dim),
                       "The logarithms of ``Softmax``.")
Unfold = _layer_of("Unfold", functional.unfold, "The windows of images as columns.")
Fold = _layer_of("Fold", functional.fold, "Columns added up where they came from in images.")
Upsample = _layer_of("Upsample", functional.upsample, "Images, sequences or volumes of another size.")
UpsamplingNearest2d = _layer_of("UpsamplingNearest2d", lambda x, size=None, scale_factor=None:
                                functional.interpolate(x, size, scale_factor, "nearest"),
                                "Images of another size: the nearest number.")
UpsamplingBilinear2d = _layer_of("UpsamplingBilinear2d", lambda x, size=None, scale_factor=None:
                                 functional.interpolate(x, size, scale_factor, "bilinear", True),
                                 "Images of another size: numbers on the lines between neighbours; corners stay.")
BCEWithLogitsLoss = _layer_of("BCEWithLogitsLoss", functional.binary_cross_entropy_with_logits,
                              "The binary cross entropy of the sigmoid of numbers.", 2)
CrossEntropyLoss = _layer_of("CrossEntropyLoss", functional.cross_entropy,
                             "Less the logarithm of the softmax of the right class.", 2)
KLDivLoss = _layer_of("KLDivLoss", functional.kl_div, "The divergence of a distribution from another.", 2)
L1Loss = _layer_of("L1Loss", functional.l1_loss, "The absolute difference.", 2)
NLLLoss = _layer_of("NLLLoss", functional.nll_loss, "Less the logarithm, which is given, of the right class.", 2)
SmoothL1Loss = _layer_of("SmoothL1Loss", functional.smooth_l1_loss,
                         "The difference, with its square in place of what is below ``beta``.", 2)


class _DropoutLayer(Cell):
    """Base of the dropout layers."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"{type(self).__name__}: p must be from 0 to 1, got {p!r}")
        self.p = p

    def extend_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout(_DropoutLayer):
    """Dropout: each element set to zero with probability ``p``, the others divided by ``1 - p``, in training."""

    def construct(self, input: Tensor) -> Tensor:
        """The input after dropout."""
        return functional.dropout(input, self.p, self.training)


class Dropout2d(_DropoutLayer):
    """Dropout of channels: each set to zero with probability ``p``, the others divided by ``1 - p``, in training."""

    def construct(self, input: Tensor) -> Tensor:
        """The input after dropout."""
        return functional.dropout2d(input, self.p, self.training)


class _ZeroPad(Cell):
    """Base of the zero padding layers."""

    _axes = 1

    def __init__(self, padding: Sizes):
        super().__init__()
        self.padding = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self._axes:
            raise ArgumentError(f"{type(self).__name__}: padding must be an int or {2 * self._axes} of them, got "
                                f"{padding!r}")

    def construct(self, input: Tensor) -> Tensor:
        """The padded input."""
        return functional.pad(input, self.padding)

    def extend_repr(self) -> str:
        """The padding widths."""
        return f"padding={self.padding}"


class ZeroPad1d(_ZeroPad):
    """Zero padding of sequences; negative widths crop."""


class ZeroPad2d(_ZeroPad):
    """Zero padding of images (left, right, top, bottom); negative widths crop."""

    _axes = 2


class ZeroPad3d(_ZeroPad):
    """Zero padding of volumes; negative widths crop."""

    _axes = 3


# ------------------------------------------------------------------------------------------------- with weights


def _new_parameter(init: InitializerLike, shape: Sequence[int], name: str, dtype: TensorDType) -> Parameter:
    return Parameter(initializer(init, tuple(shape), float32 if dtype is None else dtype), name)


class _Conv(Cell):
    """Base of the convolution layers."""

    _axes = 1
    _transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", dtype: TensorDType = None):
        super().__init__()
        self.in_channels = check_int(self, "in_channels", in_channels)
        self.out_channels = check_int(self, "out_channels", out_channels)
        self.kernel_size = check_ints(self, "kernel_size", kernel_size, self._axes)
        self.stride = check_ints(self, "stride", stride, self._axes)
        self.dilation = check_ints(self, "dilation", dilation, self._axes)
        self.padding = padding if isinstance(padding, str) else check_ints(self, "padding", padding, self._axes, 0)
        self.groups = check_int(self, "groups", groups)
        if in_channels % groups or out_channels % groups:
            raise ArgumentError(f"{type(self).__name__}: groups {groups} must divide in_channels {in_channels} and "
                                f"out_channels {out_channels}")
        self.padding_mode = check_word(self, "padding_mode", padding_mode, ("zeros", "reflect", "replicate"))
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight = _new_parameter(Uniform(bound), shape, "weight", dtype)
        self.bias = _new_parameter(Uniform(bound), (out_channels,), "bias", dtype) if flag(self, "bias", bias) else None

    def construct(self, input: Tensor) -> Tensor:
        """The convolution of ``input`` (batch, in_channels, ...)."""
        function = (functional.conv1d, functional.conv2d, functional.conv3d)[self._axes - 1]
        padding: Sizes | str = self.padding
        if self.padding_mode != "zeros":
            if isinstance(padding, str):
                raise ArgumentError(f"{type(self).__name__}: padding must be an int or ints with padding_mode "
                                    f"{self.padding_mode!r}, got {padding!r}")
            assert isinstance(padding, tuple)
            sides = tuple(width for amount in reversed(padding) for width in (amount, amount))
            input, padding = functional.pad(input, sides, self.padding_mode), 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extend_repr(self) -> str:
        """Channels and kernel settings."""
        return (f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
                f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, groups={self.groups}, bias={self.bias is not None}")


class Conv1d(_Conv):
    """Convolution of sequences (batch, channels, length); see ``Conv2d``."""


class Conv2d(_Conv):
    """Convolution of images (batch, channels, height, width).

    Parameters
    ----------
    in_channels, out_channels : int
        Input and output channels.
    kernel_size, stride, dilation : int or tuple of 2 int
        Lengths, strides and dilations of the kernel.
    padding : int or tuple of 2 int, "valid" or "same"
        Padding on both sides of each axis.
    groups : int
        Number of groups of channels, each convolved by itself.
    bias : bool
    padding_mode : {"zeros", "reflect", "replicate"}
        How the padding is filled.

    Examples
    --------
    >>> from opreg import ops
    >>> Conv2d(3, 8, 3, stride=2, padding=1)(ops.ones((1, 3, 5, 5))).shape
    (1, 8, 3, 3)
    """

    _axes = 2


class Conv3d(_Conv):
    """Convolution of volumes (batch, channels, depth, height, width); see ``Conv2d``."""

    _axes = 3


class ConvTranspose2d(_Conv):
    """Transposed convolution of images; see ``Conv2d``.

    Parameters
    ----------
    output_padding : int or tuple of 2 int
        Additional rows and columns at the end of the output.

    Examples
    --------
    >>> from opreg import ops
    >>> ConvTranspose2d(3, 8, 3, stride=2, padding=1, output_padding=1)(ops.ones((1, 3, 5, 5))).shape
    (1, 8, 10, 10)
    """

    _axes = 2
    _transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
                 output_padding: Sizes = 0, groups: int = 1, bias: bool = True, dilation: Sizes = 1,
                 padding_mode: str = "zeros", dtype: TensorDType = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                         dtype)
        check_word(self, "padding_mode", padding_mode, ("zeros",))
        self.output_padding = check_ints(self, "output_padding", output_padding, 2, 0)

    def construct(self, input: Tensor) -> Tensor:
        """The transposed convolution of ``input`` (batch, in_channels, height, width)."""
        assert isinstance(self.padding, tuple)
        return functional.conv_transpose2d(input, self.weight, self.bias, self.stride, self.padding,
                                           self.output_padding, self.groups, self.dilation)


class _BatchNorm(Cell):
    """Base of the batch normalization layers."""

    _ranks: tuple[int, ...] = (4,)

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
                 track_running_stats: bool = True, dtype: TensorDType = None):
        super().__init__()
        self.num_features = check_int(self, "num_features", num_features)
        self.eps, self.momentum, self.affine = eps, momentum, flag(self, "affine", affine)
        self.track_running_stats = flag(self, "track_running_stats", track_running_stats)
        shape = (num_features,)
        self.weight = _new_parameter("ones", shape, "weight", dtype) if affine else None
        self.bias = _new_parameter("zeros", shape, "bias", dtype) if affine else None
        if track_running_stats:
            self.running_mean = Parameter(initializer("zeros", shape, float32), "running_mean", requires_grad=False)
            self.running_var = Parameter(initializer("ones", shape, float32), "running_var", requires_grad=False)
            self.num_batches_tracked = Parameter(initializer("zeros", (), int64), "num_batches_tracked",
                                                 requires_grad=False)

    def construct(self, input: Tensor) -> Tensor:
        """The normalized data."""
        if len(input.shape) not in self._ranks or input.shape[1] != self.num_features:
            raise ArgumentError(f"{type(self).__name__}: expected {' or '.join(map(str, self._ranks))} axes and "
                                f"{self.num_features} channels in the second, got the shape {input.shape}")
        training = self.training and self.track_running_stats
        if training:
            ops.assign(self.num_batches_tracked, self.num_batches_tracked + 1)
        batch = training or not self.track_running_stats
        # Not through the attribute, which casts after ``to_float``: the statistics are updated in place.
        states: dict[str, Any] = dict(self._params)
        mean = states.get("running_mean", ops.zeros(self.num_features))
        var = states.get("running_var", ops.ones(self.num_features))
        return functional.batch_norm(input, mean, var, states.get("weight"), states.get("bias"), batch, self.momentum,
                                     self.eps)

    def extend_repr(self) -> str:
        """Channels and settings."""
        return (f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class BatchNorm1d(_BatchNorm):
    """Batch normalization of sequences or vectors; see ``BatchNorm2d``."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images: mean ``bias`` and standard deviation ``weight`` in each channel.

    In training the statistics are those of the data, and ``running_mean`` and ``running_var`` move towards them by the
    part ``momentum``; otherwise the running ones take their place. Like all Cells, it is not in training before
    ``set_train``.

    Parameters
    ----------
    num_features : int
        Channels.
    eps, momentum : float
    affine : bool
        Whether there are ``weight`` and ``bias``.
    track_running_stats : bool
        Whether running statistics are computed; otherwise those of the data are always used.
    """


class BatchNorm3d(_BatchNorm):
    """Batch normalization of volumes; see ``BatchNorm2d``."""

    _ranks = (5,)


class GroupNorm(Cell):
    """Group normalization: mean ``bias`` and standard deviation ``weight`` in groups of channels of each sample.

    Parameters
    ----------
    num_groups, num_channels : int
        Number of groups, which must divide the number of channels.
    eps : float
    affine : bool
        Whether there are ``weight`` and ``bias``.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 dtype: TensorDType = None):
        super().__init__()
        self.num_groups = check_int(self, "num_groups", num_groups)
        self.num_channels = check_int(self, "num_channels", num_channels)
        if num_channels % num_groups:
            raise ArgumentError(f"GroupNorm: num_groups {num_groups} must divide num_channels {num_channels}")
        self.eps, self.affine = eps, flag(self, "affine", affine)
        self.weight = _new_parameter("ones", (num_channels,), "weight", dtype) if affine else None
        self.bias = _new_parameter("zeros", (num_channels,), "bias", dtype) if affine else None

    def construct(self, input: Tensor) -> Tensor:
        """The normalized data."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        """Groups, channels and settings."""
        return (f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, "
                f"affine={self.affine}")


class LayerNorm(Cell):
    """Layer normalization: mean ``bias`` and standard deviation ``weight`` over the last axes of each sample.

    Parameters
    ----------
    normalized_shape : int, tuple or list of int
        Lengths of these axes.
    eps : float
    elementwise_affine, bias : bool
        Whether there are ``weight`` and ``bias``; whether there is ``bias``.

    Examples
    --------
    >>> LayerNorm(2)([[1.0, 3.0]]).asnumpy().round(3)
    array([[-1.,  1.]], dtype=float32)
    """

    def __init__(self, normalized_shape: Sizes, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 dtype: TensorDType = None):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = check_ints(self, "normalized_shape", shape, len(shape))
        self.eps, self.elementwise_affine = eps, flag(self, "elementwise_affine", elementwise_affine)
        self.weight = _new_parameter("ones", shape, "weight", dtype) if elementwise_affine else None
        self.bias = _new_parameter("zeros", shape, "bias", dtype) if elementwise_affine and bias else None

    def construct(self, input: TensorLike) -> Tensor:
        """The normalized data."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        """Lengths and settings."""
        return (f"normalized_shape={self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}")


class Embedding(Cell):
    """An embedding table: integers select its rows. The row ``padding_idx`` gets no gradient.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Number of rows and their length. They are drawn from the standard normal distribution; the row ``padding_idx``
        is zero.
    padding_idx : int, optional
    _weight : Tensor, optional
        The table.
    _freeze : bool
        Whether the table is not trained.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
                 dtype: TensorDType = None):
        super().__init__()
        self.num_embeddings = check_int(self, "num_embeddings", num_embeddings)
        self.embedding_dim = check_int(self, "embedding_dim", embedding_dim)
        self.padding_idx = padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        table = _weight
        if table is None:
            table = ops.randn(num_embeddings, embedding_dim, dtype=float32 if dtype is None else dtype)
            if padding_idx is not None:
                table[padding_idx] = 0
        self.weight = Parameter(table, "weight", requires_grad=not _freeze)

    def construct(self, input: TensorLike) -> Tensor:
        """The selected rows."""
        return functional.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                                    self.scale_grad_by_freq)

    def extend_repr(self) -> str:
        """The number of rows and their length."""
        return (f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
                f"padding_idx={self.padding_idx}")


class PReLU(Cell):
    """PReLU: ``x`` if positive, else ``weight * x``.

    Parameters
    ----------
    num_parameters : int
        Number of weights: one, or one per channel.
    init : float
        Initial weight.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: TensorDType = None):
        super().__init__()
        self.weight = _new_parameter(init, (check_int(self, "num_parameters", num_parameters),), "weight", dtype)

    def construct(self, input: TensorLike) -> Tensor:
        """The activation."""
        return functional.prelu(input, self.weight)
