"""Normalization layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.attrs import Amount, Count, Fraction, Positive
from ...core.spec import as_dtype
from ...train.initializer import InitializerLike
from ...typing import DTypeLike
from ..base_parameter import Parameter
from ..hybrid_block import HybridBlock

__all__ = ["BatchNorm", "BatchNormReLU", "InstanceNorm", "LayerNorm", "GroupNorm"]


class _Norm(HybridBlock):
    """A layer that normalizes: its settings, and its scale and offset."""

    _kwargs: dict[str, Any]
    gamma: Parameter

    def _make(self, length: int, scale: bool, center: bool, gamma: InitializerLike, beta: InitializerLike,
              **kwargs: Any) -> None:
        """Make scale and offset, each trained or fixed."""
        for name, init, trained in (("gamma", gamma, scale), ("beta", beta, center)):
            more = {"differentiable": trained} if kwargs.get("differentiable") else {}
            setattr(self, name, self.params.get(name, grad_req="write" if trained else "null", shape=(length,),
                                                init=init, allow_deferred_init=True, **more))

    def _said(self, extra: str = "") -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._kwargs.items())
        return f"{type(self).__name__}({settings}{extra})"

    def _length(self) -> int:
        return int((self.gamma.shape or (0,))[0])

    def __repr__(self) -> str:
        return self._said(f", in_channels={self._length()}")


class BatchNorm(_Norm):
    """Batch normalization: by the batch's mean and variance in training, by their moving averages in inference.

    Parameters
    ----------
    axis : int
        The axis of channels.
    momentum : float
        Factor of the old moving averages at each step.
    epsilon : float
        Added to variances.
    center, scale : bool
        Whether there is an offset ``beta`` and a factor ``gamma``.
    use_global_stats : bool
        Whether the moving averages are used in training, too.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : Initializer or str
        Initial values.
    in_channels : int
        Number of channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = BatchNorm(in_channels=2)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2))).shape, sorted(layer.collect_params(".*running"))[0][-12:]
    ((1, 2), 'running_mean')
    """

    _operator = "BatchNorm"

    def __init__(self, axis: int = 1, momentum: Fraction = 0.9, epsilon: Amount = 1e-5, center: bool = True,
                 scale: bool = True, use_global_stats: bool = False, beta_initializer: InitializerLike = "zeros",
                 gamma_initializer: InitializerLike = "ones", running_mean_initializer: InitializerLike = "zeros",
                 running_variance_initializer: InitializerLike = "ones", in_channels: Count = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale,
                        "use_global_stats": use_global_stats}
        if in_channels:
            self.in_channels = in_channels
        self._make(in_channels, scale, center, gamma_initializer, beta_initializer, differentiable=True)
        for name, init in (("running_mean", running_mean_initializer), ("running_var", running_variance_initializer)):
            setattr(self, name, self.params.get(name, grad_req="null", shape=(in_channels,), init=init,
                                                allow_deferred_init=True, differentiable=False))

    def cast(self, dtype: DTypeLike) -> None:
        """Cast all parameters, to float32 in place of float16."""
        super().cast("float32" if as_dtype(dtype) == np.float16 else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See ``HybridBlock``."""
        return F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return self._said(f", in_channels={self._length() or None}")


class BatchNormReLU(BatchNorm):
    """Batch normalization followed by ``relu``; see ``BatchNorm``.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = BatchNormReLU(in_channels=2)
    >>> layer.initialize()
    >>> layer(nd.array([[-1, 2]])).asnumpy().round(3)
    array([[0., 2.]], dtype=float32)
    """

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See ``HybridBlock``."""
        return F.contrib.BatchNormWithReLU(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class InstanceNorm(_Norm):
    """Normalization of each channel of each sample.

    Parameters
    ----------
    axis : int
        The axis of channels.
    epsilon : float
        Added to variances.
    center, scale : bool
        Whether offset and factor are trained.
    beta_initializer, gamma_initializer : Initializer or str
        Initial values.
    in_channels : int
        Number of channels; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = InstanceNorm()
    >>> layer.initialize()
    >>> layer(nd.array([[[1, 3], [2, 6]]])).asnumpy().round(2)
    array([[[-1.,  1.],
            [-1.,  1.]]], dtype=float32)
    """

    def __init__(self, axis: int = 1, epsilon: Amount = 1e-5, center: bool = True, scale: bool = False,
                 beta_initializer: InitializerLike = "zeros", gamma_initializer: InitializerLike = "ones",
                 in_channels: Count = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis, self._epsilon = axis, epsilon
        self._make(in_channels, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """See ``HybridBlock``."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        x = F.swapaxes(x, dim1=1, dim2=self._axis)
        return F.swapaxes(F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon), dim1=1, dim2=self._axis)


class LayerNorm(_Norm):
    """Normalization along an axis.

    Parameters
    ----------
    axis : int
        The axis.
    epsilon : float
        Added to variances.
    center, scale : bool
        Whether offset and factor are trained.
    beta_initializer, gamma_initializer : Initializer or str
        Initial values.
    in_channels : int
        Length of the axis; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = LayerNorm()
    >>> layer.initialize()
    >>> layer(nd.array([[1, 3], [2, 6]])).asnumpy().round(2)
    array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """

    def __init__(self, axis: int = -1, epsilon: Amount = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: InitializerLike = "zeros", gamma_initializer: InitializerLike = "ones",
                 in_channels: Count = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis, self._epsilon, self._center, self._scale = axis, epsilon, center, scale
        self._make(in_channels, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """See ``HybridBlock``."""
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """Normalization of groups of channels of each sample.

    Parameters
    ----------
    num_groups : int
        Number of groups.
    epsilon : float
        Added to variances.
    center, scale : bool
        Whether offset and factor are trained.
    beta_initializer, gamma_initializer : Initializer or str
        Initial values.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = GroupNorm(num_groups=2)
    >>> layer.initialize()
    >>> layer(nd.array([[[1, 3], [5, 5], [0, 4], [2, 2]]])).asnumpy().round(2)
    array([[[-1.51, -0.3 ],
            [ 0.9 ,  0.9 ],
            [-1.41,  1.41],
            [ 0.  ,  0.  ]]], dtype=float32)
    """

    def __init__(self, num_groups: Positive = 1, epsilon: Amount = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: InitializerLike = "zeros", gamma_initializer: InitializerLike = "ones",
                 **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups, self._epsilon, self._center, self._scale = num_groups, epsilon, center, scale
        self._make(num_groups, scale, center, gamma_initializer, beta_initializer)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """See ``HybridBlock``."""
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)

    def __repr__(self) -> str:
        return self._said()
