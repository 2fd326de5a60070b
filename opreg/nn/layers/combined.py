"""A layer with weights, followed by an optional norm and activation, in one Cell."""

from __future__ import annotations

from ...cells.cell import Cell
from ...cells.initializer import InitializerLike
from ...cells.tensor import Tensor
from ...cells.typing import Sizes
from .activation import Activation, LeakyReLU, callable_cell
from .basic import Dense
from .checks import flag
from .conv import Conv2d
from .norm import BatchNorm1d, BatchNorm2d

__all__ = ["Conv2dBnAct", "DenseBnAct"]


class _NormAndActivation(Cell):
    """The base of ``Conv2dBnAct`` and ``DenseBnAct``, with their optional norm and activation."""

    def _attach(self, norm: Cell | None, activation: Activation | None, alpha: float, after_fake: bool) -> None:
        self.has_bn, self.has_act = norm is not None, activation is not None
        self.after_fake = flag(self, "after_fake", after_fake)
        if norm is not None:
            self.batchnorm = norm
        self.activation = LeakyReLU(alpha) if activation == "leakyrelu" else callable_cell(
            self, "activation", activation)

    def _normalize_and_activate(self, x: Tensor) -> Tensor:
        x = self.batchnorm(x) if self.has_bn else x
        return x if self.activation is None else self.activation(x)


class Conv2dBnAct(_NormAndActivation):
    """A convolution of images, with an optional batch norm and activation.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init, bias_init
        See ``Conv2d``.
    has_bn : bool
        Whether ``BatchNorm2d(out_channels, eps, momentum)`` is applied to the result.
    activation : str, Cell or callable, optional
        Activation of the result; ``"leakyrelu"`` has the slope ``alpha``.
    after_fake : bool
        Accepted without effect: nothing is quantized.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> Conv2dBnAct(1, 2, 3, has_bn=True, activation="relu")(nn.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).shape
    (1, 2, 2, 2)
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
                 pad_mode: str = "same", padding: Sizes = 0, dilation: Sizes = 1, group: int = 1,
                 has_bias: bool = False, weight_init: InitializerLike = "normal", bias_init: InitializerLike = "zeros",
                 has_bn: bool = False, momentum: float = 0.997, eps: float = 1e-5,
                 activation: Activation | None = None, alpha: float = 0.2, after_fake: bool = True):
        super().__init__()
        self.conv = Conv2d(in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
                           weight_init, bias_init)
        self._attach(BatchNorm2d(out_channels, eps, momentum) if flag(self, "has_bn", has_bn) else None,
                     activation, alpha, after_fake)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the layer to ``x`` (batch, in_channels, height, width)."""
        return self._normalize_and_activate(self.conv(x))


class DenseBnAct(_NormAndActivation):
    """A dense layer, with an optional batch norm and activation.

    Parameters
    ----------
    in_channels, out_channels, weight_init, bias_init, has_bias
        See ``Dense``.
    has_bn : bool
        Whether ``BatchNorm1d(out_channels, eps, momentum)`` is applied to the result.
    activation : str, Cell or callable, optional
        Activation of the result; ``"leakyrelu"`` has the slope ``alpha``.
    after_fake : bool
        Accepted without effect: nothing is quantized.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> DenseBnAct(3, 2, has_bn=True, activation="relu")(nn.Tensor([[1.0, 2.0, 3.0]])).shape
    (1, 2)
    """

    def __init__(self, in_channels: int, out_channels: int, weight_init: InitializerLike = "normal",
                 bias_init: InitializerLike = "zeros", has_bias: bool = True, has_bn: bool = False,
                 momentum: float = 0.9, eps: float = 1e-5, activation: Activation | None = None, alpha: float = 0.2,
                 after_fake: bool = True):
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._attach(BatchNorm1d(out_channels, eps, momentum) if flag(self, "has_bn", has_bn) else None,
                     activation, alpha, after_fake)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the layer to ``x`` (..., in_channels)."""
        return self._normalize_and_activate(self.dense(x))
