"""Convolutions, transposed convolutions, pooling, and reflection padding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from opreg.symbol.function import surface
from opreg.symbol.symbol import Variable

from ...base import numeric_types
from ...core.attrs import Count
from ...core.settings import dimensions, whole_number
from ...errors import did_you_mean
from ...train.initializer import InitializerLike
from ..errors import BlockError
from ..hybrid_block import HybridBlock
from .activations import Activation

__all__ = ["Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "MaxPool1D",
           "MaxPool2D", "MaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D",
           "GlobalMaxPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "ReflectionPad2D"]

#: One value for all spatial axes, or one for each.
Sizes: TypeAlias = int | Sequence[int]


def per_axis(value: Any, dims: int) -> Any:
    """A value for each axis of space, given one for all or one for each."""
    return (value,) * dims if isinstance(value, numeric_types) else value


class _Windows(HybridBlock):
    """Base of convolutions and poolings; its layouts tell the number of spatial axes."""

    #: The layouts that it accepts; if empty, it accepts any.
    _layouts: tuple[str, ...] = ()

    def _sizes(self, what: str, value: Any, least: float = -math.inf) -> Any:
        """A value of at least ``least`` for each axis of space, checked."""
        if not self._layouts:
            return value
        dims = len(self._layouts[0]) - 2
        value = per_axis(value, dims)
        if len(value) != dims:
            raise BlockError(f"{type(self).__name__}: {what} must be an int or a list of {dims} ints, got {value!r}")
        for length in value:
            whole_number(f"{type(self).__name__}: {what}", length, least)
        return value

    def _check_layout(self, layout: str) -> str:
        """The layout, checked."""
        if self._layouts and layout not in self._layouts:
            raise BlockError(f"{type(self).__name__}: layout {layout!r}. {did_you_mean(layout, self._layouts)}")
        return layout


def describe_convolution(layer: HybridBlock, settings: Mapping[str, Any], weight: Any, bias: Any, act: Any) -> str:
    """The repr of a convolution."""
    shape, dims = weight.shape or (0, 0), len(settings["kernel"])
    parts = [f"{shape[1] or None} -> {shape[0]}", f"kernel_size={settings['kernel']}", f"stride={settings['stride']}"]
    for name, key, usual in (("padding", "pad", (0,) * dims), ("dilation", "dilate", (1,) * dims),
                             ("groups", "num_group", 1)):
        if settings[key] != usual:
            parts.append(f"{name}={settings[key]}")
    if bias is None:
        parts.append("bias=False")
    if act is not None:
        parts.append(repr(act))
    return f"{type(layer).__name__}({', '.join(parts)})"


class _Conv(_Windows):
    """A convolution, or its transpose."""

    _op_name = "Convolution"

    def __init__(self, channels: int, kernel_size: Any, strides: Any, padding: Any, dilation: Any, groups: int,
                 layout: str, in_channels: Count = 0, activation: str | None = None, use_bias: bool = True,
                 weight_initializer: InitializerLike = None, bias_initializer: InitializerLike = "zeros",
                 op_name: str | None = None, adj: Any = None, prefix: str | None = None, params: Any = None):
        kernel_size, layout = self._sizes("kernel_size", kernel_size), self._check_layout(layout)
        adj = None if adj is None else self._sizes("output_padding", adj)
        super().__init__(prefix=prefix, params=params)
        dims = len(kernel_size)
        channels = whole_number(f"{type(self).__name__}: channels", channels, 1)
        self._channels, self._in_channels = channels, in_channels
        if op_name is not None:
            self._op_name = op_name
        self._kwargs = {"kernel": kernel_size, "stride": per_axis(strides, dims), "dilate": per_axis(dilation, dims),
                        "pad": per_axis(padding, dims), "num_filter": channels, "num_group": groups,
                        "no_bias": not use_bias, "layout": layout}
        if adj is not None:
            self._kwargs["adj"] = self.outpad = adj
        shape = [-1] * (dims + 2)
        shape[layout.find("N")], shape[layout.find("C")] = 1, in_channels or -1
        applied = surface(self._op_name)(Variable("data", shape=shape), **self._kwargs)
        shapes = applied.infer_shape_partial()[0]
        with self.name_scope():
            self.weight = self.params.get("weight", shape=shapes[1], init=weight_initializer,
                                          allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=shapes[2], init=bias_initializer,
                                        allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """See ``HybridBlock``."""
        weights = (weight,) if bias is None else (weight, bias)
        out = getattr(F, self._op_name)(x, *weights, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def _alias(self) -> str:
        return "conv"

    def __repr__(self) -> str:
        return describe_convolution(self, self._kwargs, self.weight, self.bias, self.act)


class Conv1D(_Conv):
    """A convolution over one axis of space.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of int
        Lengths of the kernel.
    strides, padding, dilation : int or tuple of int
        Strides of the kernel, zeros around the input, dilation of the kernel.
    groups : int
        Number of groups of channels.
    layout : str
        Order of the axes: ``NCW``.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_channels : int
        Number of input channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Conv1D(4, 3)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 8))).shape
    (1, 4, 6)
    """

    _layouts = ("NCW",)

    def __init__(self, channels: int, kernel_size: Sizes, strides: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
                 groups: int = 1, layout: str = "NCW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: InitializerLike = None, bias_initializer: InitializerLike = "zeros",
                 in_channels: Count = 0, **kwargs: Any):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation,
                         use_bias, weight_initializer, bias_initializer, **kwargs)


class Conv2D(_Conv):
    """A convolution over two spatial axes.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of int
        Lengths of the kernel.
    strides, padding, dilation : int or tuple of int
        Strides of the kernel, zeros around the input, dilation of the kernel.
    groups : int
        Number of groups of channels.
    layout : str
        Order of the axes: ``NCHW`` or ``NHWC``.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_channels : int
        Number of input channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Conv2D(8, 3, padding=1, in_channels=3)
    >>> layer
    Conv2D(3 -> 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer.initialize()
    >>> layer(nd.ones((1, 3, 5, 5))).shape
    (1, 8, 5, 5)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(self, channels: int, kernel_size: Sizes, strides: Sizes = (1, 1), padding: Sizes = (0, 0),
                 dilation: Sizes = (1, 1), groups: int = 1, layout: str = "NCHW", activation: str | None = None,
                 use_bias: bool = True, weight_initializer: InitializerLike = None,
                 bias_initializer: InitializerLike = "zeros", in_channels: Count = 0, **kwargs: Any):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation,
                         use_bias, weight_initializer, bias_initializer, **kwargs)


class Conv3D(_Conv):
    """A convolution over three spatial axes.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of int
        Lengths of the kernel.
    strides, padding, dilation : int or tuple of int
        Strides of the kernel, zeros around the input, dilation of the kernel.
    groups : int
        Number of groups of channels.
    layout : str
        Order of the axes: ``NCDHW`` or ``NDHWC``.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_channels : int
        Number of input channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Conv3D(4, 3, padding=1)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 5, 5, 5))).shape
    (1, 4, 5, 5, 5)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, channels: int, kernel_size: Sizes, strides: Sizes = (1, 1, 1), padding: Sizes = (0, 0, 0),
                 dilation: Sizes = (1, 1, 1), groups: int = 1, layout: str = "NCDHW", activation: str | None = None,
                 use_bias: bool = True, weight_initializer: InitializerLike = None,
                 bias_initializer: InitializerLike = "zeros", in_channels: Count = 0, **kwargs: Any):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation,
                         use_bias, weight_initializer, bias_initializer, **kwargs)


class _Transpose(_Conv):
    """A transposed convolution."""

    _op_name = "Deconvolution"


class Conv1DTranspose(_Transpose):
    """A transposed convolution over one axis of space.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of int
        Lengths of the kernel.
    strides, padding, output_padding, dilation : int or tuple of int
        Strides of the kernel, zeros around the input, extra length of the output, dilation of the kernel.
    groups : int
        Number of groups of channels.
    layout : str
        Order of the axes: ``NCW``.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_channels : int
        Number of input channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Conv1DTranspose(4, 2, strides=2)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 8))).shape
    (1, 4, 16)
    """

    _layouts = ("NCW",)

    def __init__(self, channels: int, kernel_size: Sizes, strides: Sizes = 1, padding: Sizes = 0,
                 output_padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1, layout: str = "NCW",
                 activation: str | None = None, use_bias: bool = True, weight_initializer: InitializerLike = None,
                 bias_initializer: InitializerLike = "zeros", in_channels: Count = 0, **kwargs: Any):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation,
                         use_bias, weight_initializer, bias_initializer, adj=output_padding, **kwargs)


class Conv2DTranspose(_Transpose):
    """A transposed convolution over two spatial axes.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of int
        Lengths of the kernel.
    strides, padding, output_padding, dilation : int or tuple of int
        Strides of the kernel, zeros around the input, extra length of the output, dilation of the kernel.
    groups : int
        Number of groups of channels.
    layout : str
        Order of the axes: ``NCHW`` or ``NHWC``.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_channels : int
        Number of input channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Conv2DTranspose(4, 2, strides=2)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 3, 5, 5))).shape
    (1, 4, 10, 10)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(self, channels: int, kernel_size: Sizes, strides: Sizes = (1, 1), padding: Sizes = (0, 0),
                 output_padding: Sizes = (0, 0), dilation: Sizes = (1, 1), groups: int = 1, layout: str = "NCHW",
                 activation: str | None = None, use_bias: bool = True, weight_initializer: InitializerLike = None,
                 bias_initializer: InitializerLike = "zeros", in_channels: Count = 0, **kwargs: Any):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation,
                         use_bias, weight_initializer, bias_initializer, adj=output_padding, **kwargs)


class Conv3DTranspose(_Transpose):
    """A transposed convolution over three spatial axes.

    Parameters
    ----------
    channels : int
        Number of output channels.
    kernel_size : int or tuple of int
        Lengths of the kernel.
    strides, padding, output_padding, dilation : int or tuple of int
        Strides of the kernel, zeros around the input, extra length of the output, dilation of the kernel.
    groups : int
        Number of groups of channels.
    layout : str
        Order of the axes: ``NCDHW`` or ``NDHWC``.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_channels : int
        Number of input channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Conv3DTranspose(4, 2, strides=2)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 3, 3, 3))).shape
    (1, 4, 6, 6, 6)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, channels: int, kernel_size: Sizes, strides: Sizes = (1, 1, 1), padding: Sizes = (0, 0, 0),
                 output_padding: Sizes = (0, 0, 0), dilation: Sizes = (1, 1, 1), groups: int = 1,
                 layout: str = "NCDHW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: InitializerLike = None, bias_initializer: InitializerLike = "zeros",
                 in_channels: Count = 0, **kwargs: Any):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, in_channels, activation,
                         use_bias, weight_initializer, bias_initializer, adj=output_padding, **kwargs)


class _Pooling(_Windows):
    """Base of poolings: one value for each window."""

    def __init__(self, pool_size: Any, strides: Any, padding: Any, ceil_mode: bool, global_pool: bool, pool_type: str,
                 layout: str, count_include_pad: bool | None = None, **kwargs: Any):
        pool_size, layout = self._sizes("pool_size", pool_size, 1), self._check_layout(layout)
        super().__init__(**kwargs)
        dims = len(pool_size)
        strides = pool_size if strides is None else self._sizes("strides", strides, 1)
        self._kwargs = {"kernel": pool_size, "stride": per_axis(strides, dims),
                        "pad": per_axis(self._sizes("padding", padding, 0), dims),
                        "global_pool": global_pool, "pool_type": pool_type, "layout": layout,
                        "pooling_convention": "full" if ceil_mode else "valid"}
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return ("{name}(size={kernel}, stride={stride}, padding={pad}, ceil_mode={ceil_mode}, "
                "global_pool={global_pool}, pool_type={pool_type}, layout={layout})").format(
                    name=type(self).__name__, ceil_mode=self._kwargs["pooling_convention"] == "full", **self._kwargs)


class MaxPool1D(_Pooling):
    """The maximum of each window over one axis of space.

    Parameters
    ----------
    pool_size : int or tuple of int
        Lengths of the kernel.
    strides : int or tuple of int, optional
        Strides of the window; its lengths by default.
    padding : int or tuple of int
        Padding around the input.
    layout : str
        Order of the axes: ``NCW`` or ``NWC``.
    ceil_mode : bool
        Whether the output has values for windows that extend beyond the end.

    Examples
    --------
    >>> from opreg import nd
    >>> MaxPool1D()(nd.array([[[1, 3, 5, 7]]])).asnumpy()
    array([[[3., 7.]]], dtype=float32)
    """

    _layouts = ("NCW", "NWC")

    def __init__(self, pool_size: Sizes = 2, strides: Sizes | None = None, padding: Sizes = 0, layout: str = "NCW",
                 ceil_mode: bool = False, **kwargs: Any):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool2D(_Pooling):
    """The maximum of each window over two spatial axes.

    Parameters
    ----------
    pool_size : int or tuple of int
        Lengths of the kernel.
    strides : int or tuple of int, optional
        Strides of the window; its lengths by default.
    padding : int or tuple of int
        Padding around the input.
    layout : str
        Order of the axes: ``NCHW`` or ``NHWC``.
    ceil_mode : bool
        Whether the output has values for windows that extend beyond the end.

    Examples
    --------
    >>> from opreg import nd
    >>> MaxPool2D()(nd.array([[[[1, 3], [5, 7]]]])).asnumpy()
    array([[[[7.]]]], dtype=float32)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(self, pool_size: Sizes = (2, 2), strides: Sizes | None = None, padding: Sizes = 0,
                 layout: str = "NCHW", ceil_mode: bool = False, **kwargs: Any):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool3D(_Pooling):
    """The maximum of each window over three spatial axes.

    Parameters
    ----------
    pool_size : int or tuple of int
        Lengths of the kernel.
    strides : int or tuple of int, optional
        Strides of the window; its lengths by default.
    padding : int or tuple of int
        Padding around the input.
    layout : str
        Order of the axes: ``NCDHW`` or ``NDHWC``.
    ceil_mode : bool
        Whether the output has values for windows that extend beyond the end.

    Examples
    --------
    >>> from opreg import nd
    >>> MaxPool3D()(nd.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, pool_size: Sizes = (2, 2, 2), strides: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, layout: str = "NCDHW", **kwargs: Any):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "max", layout, **kwargs)


class AvgPool1D(_Pooling):
    """The mean of each window over one axis of space.

    Parameters
    ----------
    pool_size : int or tuple of int
        Lengths of the kernel.
    strides : int or tuple of int, optional
        Strides of the window; its lengths by default.
    padding : int or tuple of int
        Padding around the input.
    layout : str
        Order of the axes: ``NCW`` or ``NWC``.
    ceil_mode : bool
        Whether the output has values for windows that extend beyond the end.
    count_include_pad : bool
        Whether zeros around the input count.

    Examples
    --------
    >>> from opreg import nd
    >>> AvgPool1D()(nd.array([[[1, 3, 5, 7]]])).asnumpy()
    array([[[2., 6.]]], dtype=float32)
    """

    _layouts = ("NCW", "NWC")

    def __init__(self, pool_size: Sizes = 2, strides: Sizes | None = None, padding: Sizes = 0, layout: str = "NCW",
                 ceil_mode: bool = False, count_include_pad: bool = True, **kwargs: Any):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool2D(_Pooling):
    """The mean of each window over two spatial axes.

    Parameters
    ----------
    pool_size : int or tuple of int
        Lengths of the kernel.
    strides : int or tuple of int, optional
        Strides of the window; its lengths by default.
    padding : int or tuple of int
        Padding around the input.
    layout : str
        Order of the axes: ``NCHW`` or ``NHWC``.
    ceil_mode : bool
        Whether the output has values for windows that extend beyond the end.
    count_include_pad : bool
        Whether zeros around the input count.

    Examples
    --------
    >>> from opreg import nd
    >>> AvgPool2D()(nd.array([[[[1, 3], [5, 7]]]])).asnumpy()
    array([[[[4.]]]], dtype=float32)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(self, pool_size: Sizes = (2, 2), strides: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True, **kwargs: Any):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool3D(_Pooling):
    """The mean of each window over three spatial axes.

    Parameters
    ----------
    pool_size : int or tuple of int
        Lengths of the kernel.
    strides : int or tuple of int, optional
        Strides of the window; its lengths by default.
    padding : int or tuple of int
        Padding around the input.
    layout : str
        Order of the axes: ``NCDHW`` or ``NDHWC``.
    ceil_mode : bool
        Whether the output has values for windows that extend beyond the end.
    count_include_pad : bool
        Whether zeros around the input count.

    Examples
    --------
    >>> from opreg import nd
    >>> AvgPool3D()(nd.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, pool_size: Sizes = (2, 2, 2), strides: Sizes | None = None, padding: Sizes = 0,
                 ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True, **kwargs: Any):
        super().__init__(pool_size, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class GlobalMaxPool1D(_Pooling):
    """The maximum of each channel, over one axis of space.

    Parameters
    ----------
    layout : str
        Order of the axes: ``NCW`` or ``NWC``.

    Examples
    --------
    >>> from opreg import nd
    >>> GlobalMaxPool1D()(nd.array([[[1, 2, 6]]])).asnumpy()
    array([[[6.]]], dtype=float32)
    """

    _layouts = ("NCW", "NWC")

    def __init__(self, layout: str = "NCW", **kwargs: Any):
        super().__init__(1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool2D(_Pooling):
    """The maximum of each channel, over two spatial axes.

    Parameters
    ----------
    layout : str
        Order of the axes: ``NCHW`` or ``NHWC``.

    Examples
    --------
    >>> from opreg import nd
    >>> GlobalMaxPool2D()(nd.ones((1, 8, 7, 7))).shape
    (1, 8, 1, 1)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(self, layout: str = "NCHW", **kwargs: Any):
        super().__init__(1, None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool3D(_Pooling):
    """The maximum of each channel, over three spatial axes.

    Parameters
    ----------
    layout : str
        Order of the axes: ``NCDHW`` or ``NDHWC``.

    Examples
    --------
    >>> from opreg import nd
    >>> GlobalMaxPool3D()(nd.ones((1, 8, 4, 7, 7))).shape
    (1, 8, 1, 1, 1)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, layout: str = "NCDHW", **kwargs: Any):
        super().__init__(1, None, 0, True, True, "max", layout, **kwargs)


class GlobalAvgPool1D(_Pooling):
    """The mean of each channel, over one axis of space.

    Parameters
    ----------
    layout : str
        Order of the axes: ``NCW`` or ``NWC``.

    Examples
    --------
    >>> from opreg import nd
    >>> GlobalAvgPool1D()(nd.array([[[1, 2, 6]]])).asnumpy()
    array([[[3.]]], dtype=float32)
    """

    _layouts = ("NCW", "NWC")

    def __init__(self, layout: str = "NCW", **kwargs: Any):
        super().__init__(1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool2D(_Pooling):
    """The mean of each channel, over two spatial axes.

    Parameters
    ----------
    layout : str
        Order of the axes: ``NCHW`` or ``NHWC``.

    Examples
    --------
    >>> from opreg import nd
    >>> GlobalAvgPool2D()(nd.ones((1, 8, 7, 7))).shape
    (1, 8, 1, 1)
    """

    _layouts = ("NCHW", "NHWC")

    def __init__(self, layout: str = "NCHW", **kwargs: Any):
        super().__init__(1, None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool3D(_Pooling):
    """The mean of each channel, over three spatial axes.

    Parameters
    ----------
    layout : str
        Order of the axes: ``NCDHW`` or ``NDHWC``.

    Examples
    --------
    >>> from opreg import nd
    >>> GlobalAvgPool3D()(nd.ones((1, 8, 4, 7, 7))).shape
    (1, 8, 1, 1, 1)
    """

    _layouts = ("NCDHW", "NDHWC")

    def __init__(self, layout: str = "NCDHW", **kwargs: Any):
        super().__init__(1, None, 0, True, True, "avg", layout, **kwargs)


class ReflectionPad2D(HybridBlock):
    """Images padded by their reflection.

    Parameters
    ----------
    padding : int or tuple of int
        Elements added on each side, or before and after each of the four axes.

    Examples
    --------
    >>> from opreg import nd
    >>> ReflectionPad2D(1)(nd.array([[[[1, 2], [3, 4]]]])).asnumpy()
    array([[[[4., 3., 4., 3.],
             [2., 1., 2., 1.],
             [4., 3., 4., 3.],
             [2., 1., 2., 1.]]]], dtype=float32)
    """

    def __init__(self, padding: Sizes = 0, **kwargs: Any):
        super().__init__(**kwargs)
        padding = dimensions("ReflectionPad2D: padding", padding)
        if len(padding) == 1:
            padding = (0, 0, 0, 0, *padding * 4)
        if len(padding) != 8:
            raise BlockError(f"ReflectionPad2D: expected a number, or 8 of them, got {padding}")
        self._padding = padding

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.pad(x, mode="reflect", pad_width=self._padding)
