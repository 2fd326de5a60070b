"""Further layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import opreg.ndarray as nd
from opreg.errors import ArgumentError
from opreg.ndarray.context import num_gpus
from opreg.typing import DTypeLike

from ...aliases import inner
from ...train.initializer import InitializerLike
from ..block import HybridBlock
from ..nn import BatchNorm, Embedding, HybridSequential, Sequential

__all__ = ["Concurrent", "HybridConcurrent", "Identity", "SparseEmbedding", "SyncBatchNorm", "PixelShuffle1D",
           "PixelShuffle2D", "PixelShuffle3D"]


class Concurrent(Sequential):
    """Blocks that run on the same input; their outputs are concatenated.

    Parameters
    ----------
    axis : int
        Axis of the concatenation.

    Examples
    --------
    >>> import opreg as mx
    >>> net = Concurrent(axis=1)
    >>> net.add(Identity(), Identity())
    >>> net(mx.nd.ones((2, 3))).shape
    (2, 6)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any, *args: Any) -> Any:
        """Run the blocks, and concatenate."""
        return nd.concat(*[block(x, *args) for block in self._children.values()], dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks that run on the same input; their outputs are concatenated.

    Parameters
    ----------
    axis : int
        Axis of the concatenation.

    Examples
    --------
    >>> net = HybridConcurrent(axis=1)
    >>> net.add(Identity(), Identity())
    >>> net(nd.ones((2, 3))).shape
    (2, 6)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """See ``HybridBlock``."""
        return F.concat(*[block(x, *args) for block in self._children.values()], dim=self.axis)


class Identity(HybridBlock):
    """A block that returns its input, for a branch of a ``HybridConcurrent``.

    Examples
    --------
    >>> import opreg as mx
    >>> Identity()(mx.nd.ones((2, 3))).shape
    (2, 3)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return x


class SparseEmbedding(Embedding):
    """An embedding layer whose gradient is sparse: it holds only the rows that were looked up.

    Parameters
    ----------
    input_dim, output_dim : int
        Number of rows, and length of a row.
    dtype : dtype
        Dtype of the weight.
    weight_initializer : Initializer or str, optional
        Initial value.
    """

    def __init__(self, input_dim: int, output_dim: int, dtype: DTypeLike = "float32",
                 weight_initializer: InitializerLike = None, **kwargs: Any):
        super().__init__(input_dim, output_dim, dtype, weight_initializer, sparse_grad=True, **kwargs)


class SyncBatchNorm(BatchNorm):
    """Batch normalization whose mean and variance include the parts of the batch on all devices.

    Parameters
    ----------
    in_channels : int
        Number of channels; 0 where the first input decides it.
    num_devices : int
        Number of devices that share the batch; by default the number of GPUs, or one.
    momentum, epsilon, center, scale, use_global_stats
        See ``BatchNorm``, also for the initializers.

    Examples
    --------
    >>> import opreg as mx
    >>> layer = SyncBatchNorm(in_channels=3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    def __init__(self, in_channels: int = 0, num_devices: int | None = None, momentum: float = 0.9,
                 epsilon: float = 1e-5, center: bool = True, scale: bool = True, use_global_stats: bool = False,
                 beta_initializer: InitializerLike = "zeros", gamma_initializer: InitializerLike = "ones",
                 running_mean_initializer: InitializerLike = "zeros",
                 running_variance_initializer: InitializerLike = "ones", **kwargs: Any):
        super().__init__(1, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer,
                         running_mean_initializer, running_variance_initializer, in_channels, **kwargs)
        self._kwargs = {"eps": epsilon, "momentum": momentum, "fix_gamma": not scale,
                        "use_global_stats": use_global_stats,
                        "ndev": max(1, num_gpus()) if num_devices is None else num_devices, "key": self.prefix}

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See ``HybridBlock``."""
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Moves channels to the spatial axes: (n, c * f1 * f2, h, w) becomes (n, c, h * f1, w * f2)."""

    _dims: int

    def __init__(self, factor: int | Sequence[int]):
        super().__init__()
        factors: tuple[Any, ...] = tuple(factor) if isinstance(factor, Sequence) else (factor,) * self._dims
        if len(factors) != self._dims:
            raise ArgumentError(f"{type(self).__name__}: factor={factor}: expected a number, or {self._dims}")
        self._factors = tuple(map(int, factors))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        dims, unchanged = self._dims, (0,) * self._dims
        remaining = math.prod(self._factors)
        x = F.reshape(x, (0, -4, -1, remaining, *unchanged))
        for number, factor in enumerate(self._factors[:-1]):
            remaining //= factor
            x = F.reshape(x, (0, 0, *(0,) * number, -4, factor, remaining, *unchanged))
        x = F.transpose(x, (0, 1, *[axis for dim in range(dims) for axis in (2 + dims + dim, 2 + dim)]))
        return F.reshape(x, (0, 0, *(-3,) * dims))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"


class PixelShuffle1D(_PixelShuffle):
    """Moves channels to the axis of space: (n, c * f, w) becomes (n, c, w * f).

    Parameters
    ----------
    factor : int
        Upscaling factor.

    Examples
    --------
    >>> PixelShuffle1D(2)(nd.arange(8).reshape((1, 2, 4))).asnumpy()
    array([[[0., 4., 1., 5., 2., 6., 3., 7.]]], dtype=float32)
    """

    _dims = 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors[0]})"


class PixelShuffle2D(_PixelShuffle):
    """Moves channels to the spatial axes: (n, c * f1 * f2, h, w) becomes (n, c, h * f1, w * f2).

    Parameters
    ----------
    factor : int or (int, int)
        Upscaling factor, for both axes or each.

    Examples
    --------
    >>> PixelShuffle2D((2, 3))(nd.zeros((1, 12, 3, 5))).shape
    (1, 2, 6, 15)
    """

    _dims = 2


class PixelShuffle3D(_PixelShuffle):
    """Moves channels to the spatial axes: (n, c * f1 * f2 * f3, d, h, w) becomes (n, c, d * f1, h * f2, w * f3).

    Parameters
    ----------
    factor : int or (int, int, int)
        Upscaling factor, for all axes or each.

    Examples
    --------
    >>> PixelShuffle3D((2, 3, 4))(nd.zeros((1, 48, 3, 5, 7))).shape
    (1, 2, 6, 15, 28)
    """

    _dims = 3


__path__: list[str] = []  # its submodules are this module itself
__getattr__ = inner(__name__)
