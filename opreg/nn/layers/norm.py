"""Normalisation: BatchNorm, LayerNorm, GroupNorm, InstanceNorm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.initializer import InitializerLike
from ...cells.tensor import Tensor
from ...cells.typing import TensorDType
from ...core.mode import Recording
from ...core.registry import ops
from ...core.settings import real_number
from ...core.spec import show
from ...distributed import world
from ...errors import ArgumentError, ShapeError
from ..ops import nn
from ..ops.lift import rank_of
from .checks import chance, channels_apart, check_int, check_ints, flag, new_parameter, no_tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm1d",
           "InstanceNorm2d", "InstanceNorm3d"]


class _BatchNormBase(Cell):
    """Base of batch norms: scales, offsets and moving statistics for each channel."""

    _ranks: tuple[int, ...] = ()
    _axis = 1

    def __init__(self, num_features: int, eps: float, momentum: float, affine: bool, gamma_init: InitializerLike,
                 beta_init: InitializerLike, moving_mean_init: InitializerLike, moving_var_init: InitializerLike,
                 dtype: TensorDType):
        super().__init__()
        self.num_features = check_int(self, "num_features", num_features)
        self.eps = real_number(f"{self.cls_name}: eps", eps)
        self.momentum = chance(self, "momentum", momentum)
        shape, affine = (num_features,), flag(self, "affine", affine)
        self.moving_mean = new_parameter(moving_mean_init, shape, "mean", dtype, requires_grad=False)
        self.moving_variance = new_parameter(moving_var_init, shape, "variance", dtype, requires_grad=False)
        self.gamma = new_parameter(gamma_init, shape, "gamma", dtype, requires_grad=affine)
        self.beta = new_parameter(beta_init, shape, "beta", dtype, requires_grad=affine)

    def extend_repr(self) -> str:
        """Attributes and parameters."""
        return (f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, "
                f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}")

    def _check(self, x: Tensor) -> None:
        rank = rank_of(x)
        if rank is not None and (rank not in self._ranks or x.shape[self._axis] != self.num_features):
            raise ShapeError(f"{type(self).__name__}: expected {' or '.join(map(str, self._ranks))} axes, "
                             f"{self.num_features} channels in axis {self._axis}, got the shape {show(x.shape)}")


class BatchNorm2d(_BatchNormBase):
    """Normalises images (batch, channels, height, width) to mean beta and standard deviation gamma in each channel.

    In training the statistics are the batch's, and ``moving_mean`` and ``moving_variance`` become ``momentum * moving +
    (1 - momentum) * batch``, with the unbiased variance. Otherwise the moving statistics are used.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps, momentum : float
    affine : bool
        Whether gamma and beta are trained.
    gamma_init, beta_init, moving_mean_init, moving_var_init
        Initial values; see ``initializer``.
    use_batch_statistics : bool, optional
        Whether to use the batch's statistics always (True) or never (False); by default in training only.

    Notes
    -----
    S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167.

    Examples
    --------
    >>> from opreg import ops
    >>> layer = BatchNorm2d(3)
    >>> layer(ops.ones((2, 3, 4, 4))).shape, layer.moving_mean.shape
    ((2, 3, 4, 4), (3,))
    """

    _ranks: tuple[int, ...] = (4,)

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
                 gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
                 moving_mean_init: InitializerLike = "zeros", moving_var_init: InitializerLike = "ones",
                 use_batch_statistics: bool | None = None, data_format: str = "NCHW", dtype: TensorDType = float32):
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init,
                         moving_var_init, dtype)
        if data_format not in ("NCHW", "NHWC"):
            raise ArgumentError(f"{type(self).__name__}: data_format must be NCHW or NHWC, got {data_format!r}")
        if use_batch_statistics is not None:
            flag(self, "use_batch_statistics", use_batch_statistics)
        self.use_batch_statistics, self._axis = use_batch_statistics, 1 if data_format == "NCHW" else -1

    def construct(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        self._check(x)
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        # not read as attributes, which to_float would cast: the statistics are changed in place
        states: list[Any] = [self._params[name] for name in ("gamma", "beta", "moving_mean", "moving_variance")]
        return nn.batch_norm_of(x, *states, training=batch, momentum=1 - self.momentum, eps=self.eps, axis=self._axis)


class BatchNorm1d(BatchNorm2d):
    """``BatchNorm2d`` of data (batch, channels) or (batch, channels, length).

    Examples
    --------
    >>> from opreg import Tensor
    >>> layer = BatchNorm1d(1).set_train()
    >>> print(layer(Tensor([[1.0], [3.0]])).asnumpy().round(2))
    [[-1.]
     [ 1.]]
    """

    _ranks = (2, 3)


#: MindSpore's name of the base of these layers, by which programs find them.
_BatchNorm = BatchNorm2d


class SyncBatchNorm(BatchNorm2d):
    """``BatchNorm2d`` of data (batch, channels) or images, with statistics over the samples of all processes.

    All processes have equally many samples. The moving variance is the biased one.

    Parameters
    ----------
    num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, use_batch_statistics
        See ``BatchNorm2d``.
    process_groups : list of lists of int, optional
        A list with all processes, or None, which means the same.

    Examples
    --------
    >>> from opreg import ops
    >>> SyncBatchNorm(3)(ops.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    _ranks = (2, 4)

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
                 gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
                 moving_mean_init: InitializerLike = "zeros", moving_var_init: InitializerLike = "ones",
                 use_batch_statistics: bool | None = None, process_groups: Sequence[Sequence[int]] | None = None,
                 dtype: TensorDType = float32):
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init,
                         moving_var_init, use_batch_statistics, dtype=dtype)
        if process_groups is not None and [sorted(group) for group in process_groups] != [list(range(world().size))]:
            raise ArgumentError(f"SyncBatchNorm: process_groups must be all {world().size} processes in one, got "
                                f"{process_groups!r}")

    def construct(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if not batch or world().size == 1:
            return super().construct(x)
        self._check(x)
        values = (x, *(self._params[name] for name in ("gamma", "beta", "moving_mean", "moving_variance")))
        with Recording(None, True):
            return ops._contrib_SyncBatchNorm(*values, eps=self.eps, momentum=self.momentum, fix_gamma=False,
                                              ndev=world().size, key="")


class BatchNorm3d(Cell):
    """``BatchNorm2d`` of data (batch, channels, depth, height, width); its attribute ``bn2d`` is the
    ``BatchNorm2d``.

    Examples
    --------
    >>> from opreg import nn, ops
    >>> nn.BatchNorm3d(3)(ops.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
                 gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
                 moving_mean_init: InitializerLike = "zeros", moving_var_init: InitializerLike = "ones",
                 use_batch_statistics: bool | None = None, dtype: TensorDType = float32):
        super().__init__()
        self.bn2d = BatchNorm2d(num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init,
                                moving_var_init, use_batch_statistics, dtype=dtype)
        self.bn2d._ranks = (5,)

    def construct(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        return self.bn2d(x)


class LayerNorm(Cell):
    """Normalises to mean zero and standard deviation one over the axes from ``begin_norm_axis`` on, then multiplies by
    gamma and adds beta.

    Parameters
    ----------
    normalized_shape : tuple or list of int
        Shape of gamma and beta, equal to that of the data from ``begin_params_axis`` on.
    begin_norm_axis, begin_params_axis : int
    gamma_init, beta_init
        Initial values; see ``initializer``.
    epsilon : float

    Notes
    -----
    J. L. Ba, J. R. Kiros, G. E. Hinton, Layer Normalization, arXiv:1607.06450.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(LayerNorm((2,))(Tensor([[1.0, 3.0], [2.0, 6.0]])).asnumpy().round(2))
    [[-1.  1.]
     [-1.  1.]]
    """

    def __init__(self, normalized_shape: Sequence[int], begin_norm_axis: int = -1, begin_params_axis: int = -1,
                 gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros", epsilon: float = 1e-7,
                 dtype: TensorDType = float32):
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)) or not normalized_shape:
            raise ArgumentError(f"LayerNorm: normalized_shape must be a tuple or list of int, got {normalized_shape!r}")
        self.normalized_shape, self.epsilon = normalized_shape, real_number(f"{self.cls_name}: epsilon", epsilon)
        self.begin_norm_axis, self.begin_params_axis = begin_norm_axis, begin_params_axis
        shape = check_ints(self, "normalized_shape", tuple(normalized_shape), len(normalized_shape))
        self.gamma = new_parameter(gamma_init, shape, "gamma", dtype)
        self.beta = new_parameter(beta_init, shape, "beta", dtype)

    def misfit(self, *inputs: Any) -> str | None:
        x, shape = inputs[0], tuple(self.normalized_shape)
        if no_tensor(x) or len(shape) == 1 == -self.begin_params_axis:
            return channels_apart(self, x, -1, shape[-1], "numbers")
        return None

    def construct(self, input_x: Tensor) -> Tensor:
        """Normalise ``input_x``."""
        gamma, beta = self.gamma, self.beta
        if self.begin_norm_axis == self.begin_params_axis == -1 and len(gamma.shape) == 1:
            return nn.layer_norm(input_x, gamma.shape, gamma, beta, self.epsilon)
        shape, rank = input_x.shape, len(input_x.shape)
        begins = (self.begin_norm_axis, self.begin_params_axis)
        if not all(-rank <= begin < rank for begin in begins) or shape[begins[1] % rank:] != gamma.shape:
            raise ShapeError(f"LayerNorm: the shape {show(shape)} from axis {begins[1]} on must be "
                             f"{show(gamma.shape)}, and must have an axis {begins[0]}")
        over, of = begins[0] % rank, begins[1] % rank
        if over == of:
            return nn.layer_norm(input_x, gamma.shape, gamma, beta, self.epsilon)
        return nn.layer_norm(input_x, shape[over:], None, None, self.epsilon) * gamma + beta

    def extend_repr(self) -> str:
        """Attributes and parameters."""
        return (f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
                f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}")


class GroupNorm(Cell):
    """Normalises each group of channels of each sample to mean zero and standard deviation one, then multiplies by the
    channel's gamma and adds its beta.

    Parameters
    ----------
    num_groups, num_channels : int
        Number of groups, which divides the number of channels.
    eps : float
    affine : bool
        Whether gamma and beta are trained.
    gamma_init, beta_init
        Initial values; see ``initializer``.

    Notes
    -----
    Y. Wu, K. He, Group Normalization, arXiv:1803.08494.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(GroupNorm(1, 2)(Tensor([[[[1.0]], [[3.0]]]])).asnumpy().round(2).ravel())
    [-1.  1.]
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
                 dtype: TensorDType = float32):
        super().__init__()
        self.num_groups = check_int(self, "num_groups", num_groups)
        self.num_channels = check_int(self, "num_channels", num_channels)
        if num_channels % num_groups:
            raise ArgumentError(f"GroupNorm: num_groups {num_groups} must divide num_channels {num_channels}")
        self.eps = real_number(f"{self.cls_name}: eps", eps)
        affine = flag(self, "affine", affine)
        self.gamma = new_parameter(gamma_init, (num_channels,), "gamma", dtype, requires_grad=affine)
        self.beta = new_parameter(beta_init, (num_channels,), "beta", dtype, requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        """Normalise ``x`` (batch, num_channels, ...)."""
        if len(x.shape) < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(f"GroupNorm: expected {self.num_channels} channels in the second axis, got the shape "
                             f"{show(x.shape)}")
        return nn.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        """Groups and channels."""
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class InstanceNorm2d(_BatchNormBase):
    """Normalises images (batch, channels, height, width) to mean beta and standard deviation gamma in each channel of
    each sample.

    The statistics are those of the data in training and inference; ``moving_mean`` and ``moving_variance`` never
    change.

    Notes
    -----
    D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance Normalization, arXiv:1607.08022.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(InstanceNorm2d(1)(Tensor([[[[1.0, 3.0]]]])).asnumpy().round(2))
    [[[[-1.  1.]]]]
    """

    _ranks = (4,)

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
                 gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros",
                 dtype: TensorDType = float32):
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, "zeros", "ones", dtype)

    def construct(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        self._check(x)
        return ops.InstanceNorm(x, self.gamma, self.beta, eps=self.eps)


class InstanceNorm1d(InstanceNorm2d):
    """``InstanceNorm2d`` of data (batch, channels, length).

    Examples
    --------
    >>> from opreg import nn, ops
    >>> nn.InstanceNorm1d(3)(ops.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    _ranks = (3,)


class InstanceNorm3d(InstanceNorm2d):
    """``InstanceNorm2d`` of data (batch, channels, depth, height, width)."""

    _ranks = (5,)
