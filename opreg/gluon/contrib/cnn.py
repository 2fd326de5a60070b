"""Deformable convolutions: another convolution computes offsets of the kernel positions."""

from __future__ import annotations

from typing import Any

from opreg.errors import ArgumentError
from opreg.symbol.function import surface
from opreg.symbol.symbol import Variable

from ...aliases import inner
from ...train.initializer import InitializerLike
from ..block import HybridBlock
from ..nn import Activation
from ..nn.conv_layers import describe_convolution, per_axis

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]

Pair = int | tuple[int, int]


class _Deformable(HybridBlock):
    """A convolution, and the convolution that computes its offsets."""

    #: Outputs of the offset convolution for each kernel position, and whether its parameters come first in files.
    _numbers: int
    _offset_first: bool

    def __init__(self, channels: int, kernel_size: Pair = (1, 1), strides: Pair = (1, 1), padding: Pair = (0, 0),
                 dilation: Pair = (1, 1), groups: int = 1, num_deformable_group: int = 1, layout: str = "NCHW",
                 use_bias: bool = True, in_channels: int = 0, activation: str | None = None,
                 weight_initializer: InitializerLike = None, bias_initializer: InitializerLike = "zeros",
                 offset_weight_initializer: InitializerLike = "zeros",
                 offset_bias_initializer: InitializerLike = "zeros", offset_use_bias: bool = True,
                 op_name: str = "DeformableConvolution", adj: Any = None, prefix: str | None = None,
                 params: Any = None):
        super().__init__(prefix=prefix, params=params)
        if layout != "NCHW":
            raise ArgumentError(f"{type(self).__name__}: layout={layout!r}: expected 'NCHW'")
        kernel = per_axis(kernel_size, 2)
        both = {"kernel": kernel, "stride": per_axis(strides, 2), "dilate": per_axis(dilation, 2),
                "pad": per_axis(padding, 2), "num_group": groups}
        places = kernel[0] * kernel[1] * num_deformable_group
        self._split = 2 * places
        self._first = {**both, "num_filter": self._numbers * places, "no_bias": not offset_use_bias, "layout": layout}
        self._second = {**both, "num_filter": channels, "num_deformable_group": num_deformable_group,
                        "no_bias": not use_bias, "layout": layout}
        applied = surface("Convolution")(Variable("data", shape=(1, in_channels or -1, -1, -1)), **self._first)
        shapes = applied.infer_shape_partial()[0]
        inputs = in_channels // groups if in_channels else 0
        offset = [("offset_weight", shapes[1], offset_weight_initializer),
                  ("offset_bias", shapes[2] if offset_use_bias else None, offset_bias_initializer)]
        main = [("deformable_conv_weight", (channels, inputs, *kernel), weight_initializer),
                ("deformable_conv_bias", (channels,) if use_bias else None, bias_initializer)]
        with self.name_scope():
            for name, shape, init in offset + main if self._offset_first else main + offset:
                setattr(self, name, None if shape is None else self.params.get(
                    name, shape=shape, init=init, allow_deferred_init=True))
            self.act = Activation(activation, prefix=f"{activation}_") if activation else None

    def _windows(self, F: Any, offset: Any) -> dict[str, Any]:
        """Arguments of the main convolution, from the output of the offset convolution."""
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any, offset_weight: Any, deformable_conv_weight: Any, offset_bias: Any = None,
                       deformable_conv_bias: Any = None) -> Any:
        """See ``HybridBlock``."""
        offset = F.Convolution(x, offset_weight, *(() if offset_bias is None else (offset_bias,)), **self._first)
        bias = {} if deformable_conv_bias is None else {"bias": deformable_conv_bias}
        operator = getattr(F.contrib, type(self).__name__)
        out = operator(data=x, weight=deformable_conv_weight, name="fwd", **self._windows(F, offset), **bias,
                       **self._second)
        return out if self.act is None else self.act(out)

    def __repr__(self) -> str:
        return describe_convolution(self, self._second, self.deformable_conv_weight, self.deformable_conv_bias,
                                    self.act)

    deformable_conv_weight: Any
    deformable_conv_bias: Any


class DeformableConvolution(_Deformable):
    """A convolution whose kernel positions are shifted by computed offsets.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size, strides, padding, dilation, groups, use_bias, in_channels, activation
        See ``gluon.nn.Conv2D``.
    num_deformable_group : int
        Number of groups of channels with offsets of their own.
    weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer : Initializer or str
        Initial values. The initial weights of the offsets are zeros, so that the layer begins as an ordinary
        convolution.
    offset_use_bias : bool
        Whether offsets have a bias.
    layout, op_name, adj
        The layout "NCHW", and settings of MXNet.
    """

    _numbers, _offset_first = 2, True

    def _windows(self, F: Any, offset: Any) -> dict[str, Any]:
        return {"offset": offset}

    def _alias(self) -> str:
        return "deformable_conv"


class ModulatedDeformableConvolution(_Deformable):
    """A convolution whose kernel positions are shifted by computed offsets, and weighted by a computed mask.

    Parameters
    ----------
    channels : int
        Number of output channels; for the other parameters see ``DeformableConvolution``.
    """

    _numbers, _offset_first = 3, False

    def _windows(self, F: Any, offset: Any) -> dict[str, Any]:
        return {"offset": F.slice_axis(offset, axis=1, begin=0, end=self._split),
                "mask": F.sigmoid(F.slice_axis(offset, axis=1, begin=self._split, end=None)) * 2}

    def _alias(self) -> str:
        return "modulated_deformable_conv"


__path__: list[str] = []  # its submodules are this module itself
__getattr__ = inner(__name__)
