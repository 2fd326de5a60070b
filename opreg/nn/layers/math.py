"""Layers that apply one function."""

from __future__ import annotations

from collections.abc import Sequence

from ...cells.cell import Cell
from ...cells.tensor import Tensor
from ...cells.typing import Axes, Number, TensorLike
from ...errors import ArgumentError
from ..ops import array, creation, indexing, linalg, math, nn, reduce, special
from ..ops.lift import to_common_dtype
from .checks import check_int, flag

__all__ = ["ChannelShuffle", "ClipByNorm", "DiGamma", "IGamma", "LBeta", "LGamma", "LRN", "MatDet", "MatInverse",
           "MatMul", "Moments", "Norm", "Range", "ReduceLogSumExp", "Roll", "Tril", "Triu"]


class MatMul(Cell):
    """Products of matrices in the last two axes, which may be transposed; the axes before broadcast.

    A vector is a row on the left and a column on the right, and is not transposed.

    Parameters
    ----------
    transpose_x1, transpose_x2 : bool

    Examples
    --------
    >>> import opreg.nn as nn
    >>> MatMul(transpose_x2=True)(nn.Tensor([[1.0, 2.0]]), nn.Tensor([[3.0, 4.0]]))
    Tensor(shape=[1, 1], dtype=Float32, value=
    [[ 1.10000000e+01]])
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False):
        super().__init__()
        self.transpose_x1 = flag(self, "transpose_x1", transpose_x1)
        self.transpose_x2 = flag(self, "transpose_x2", transpose_x2)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The product of ``x1`` and ``x2``."""
        return linalg.matmul(_transposed_if(x1, self.transpose_x1), _transposed_if(x2, self.transpose_x2))


def _transposed_if(x: Tensor, transpose: bool) -> Tensor:
    return x.swapaxes(-1, -2) if transpose and len(x.shape) > 1 else x


# ------------------------------------------------------------------------------------------------- reductions


def _axes(cell: Cell, axis: Axes) -> Axes:
    """Check axes: an int or several."""
    many = axis if isinstance(axis, (tuple, list)) else (axis,)
    if not all(isinstance(axis, int) and not isinstance(axis, bool) for axis in many):
        raise ArgumentError(f"{type(cell).__name__}: axis must be an int or a tuple of them, got {axis!r}")
    return axis


class Norm(Cell):
    """The 2-norm of all elements, or along axes.

    Parameters
    ----------
    axis : int or tuple of int
        The axes; () means all.
    keep_dims : bool
        Whether the axes are kept with length one.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> print(Norm(axis=1)(nn.Tensor([[3.0, 4.0], [5.0, 12.0]])))
    [ 5. 13.]
    """

    def __init__(self, axis: Axes = (), keep_dims: bool = False):
        super().__init__()
        self.axis, self.keep_dims = _axes(self, axis), flag(self, "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        """The norm of ``x``."""
        return reduce.norm(x, None, self.axis, self.keep_dims)

    def extend_repr(self) -> str:
        """The axes."""
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class ReduceLogSumExp(Cell):
    """The logarithm of the sum of exponentials along axes.

    Parameters
    ----------
    axis : int or tuple of int
    keep_dims : bool

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ReduceLogSumExp(1)(Tensor([[0.0, 0.0]])).asnumpy().round(3))
    [0.693]
    """

    def __init__(self, axis: Axes, keep_dims: bool = False):
        super().__init__()
        self.axis, self.keep_dims = _axes(self, axis), flag(self, "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        """Reduce ``x``."""
        return reduce.logsumexp(x, self.axis, self.keep_dims)


class Moments(Cell):
    """The mean and the variance, of all elements or along axes.

    Parameters
    ----------
    axis : int or tuple of int, optional
    keep_dims : bool, optional

    Examples
    --------
    >>> from opreg import Tensor
    >>> mean, variance = Moments(1)(Tensor([[1.0, 3.0]]))
    >>> print(mean, variance)
    [2.] [1.]
    """

    def __init__(self, axis: Axes = None, keep_dims: bool | None = None):
        super().__init__()
        self.axis = () if axis is None else _axes(self, axis)
        self.keep_dims = keep_dims is not None and flag(self, "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of ``x``."""
        return reduce.mean(x, self.axis, self.keep_dims), reduce.var(x, self.axis, 0, self.keep_dims)


class ClipByNorm(Cell):
    """Scales values so that their norm, over all or along axes, is at most a bound.

    Parameters
    ----------
    axis : int or tuple of int, optional
        The axes; all by default.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(ClipByNorm()(Tensor([3.0, 4.0]), Tensor(1.0)))
    [0.6 0.8]
    """

    def __init__(self, axis: Axes = None):
        super().__init__()
        self.axis = None if axis is None else _axes(self, axis)

    def construct(self, x: Tensor, clip_norm: TensorLike) -> Tensor:
        """``x`` with a norm of at most ``clip_norm``."""
        return reduce.clipped_along(x, clip_norm, self.axis)


# ----------------------------------------------------------------------------------------------- places


class ChannelShuffle(Cell):
    """Interleaves groups of channels: the first of each group, then the second of each, and so on.

    Parameters
    ----------
    groups : int
        Number of groups.

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.ChannelShuffle(2)(Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]])).asnumpy().ravel())
    [1. 3. 2. 4.]
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = check_int(self, "groups", groups)

    def construct(self, x: Tensor) -> Tensor:
        """Shuffle the channels of ``x`` (batch, channels, ...)."""
        return array.channel_shuffle(x, self.groups)

    def extend_repr(self) -> str:
        """The groups."""
        return f"groups={self.groups}"


class Roll(Cell):
    """Shifts elements along axes; those shifted out at the end enter at the front.

    Parameters
    ----------
    shift, axis : int, or tuples of as many

    Examples
    --------
    >>> from opreg import Tensor, nn
    >>> print(nn.Roll(1, 0)(Tensor([1.0, 2.0, 3.0])))
    [3. 1. 2.]
    """

    def __init__(self, shift: int | Sequence[int], axis: int | Sequence[int]):
        super().__init__()
        self.shift, self.axis = shift, axis

    def construct(self, input_x: Tensor) -> Tensor:
        """Shift ``input_x``."""
        return array.roll(input_x, self.shift, self.axis)


class Tril(Cell):
    """Zeros above a diagonal of the matrices in the last two axes.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.Tril()(ops.ones((2, 2))))
    [[1. 0.]
     [1. 1.]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        """``x`` with zeros above the ``k``-th diagonal."""
        return indexing.tril(x, k)


class Triu(Cell):
    """Zeros below a diagonal of the matrices in the last two axes.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.Triu()(ops.ones((2, 2))))
    [[1. 1.]
     [0. 1.]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        """``x`` with zeros below the ``k``-th diagonal."""
        return indexing.triu(x, k)


class Range(Cell):
    """Values from ``start`` to before ``limit`` in steps of ``delta``; from 0 to before ``start`` if only that is
    given.

    Examples
    --------
    >>> print(Range(1, 8, 2)())
    [1 3 5 7]
    """

    def __init__(self, start: Number, limit: Number | None = None, delta: Number = 1):
        super().__init__()
        if delta == 0:
            raise ArgumentError("Range: delta must not be 0")
        self.start: Number = 0 if limit is None else start
        self.limit, self.delta = start if limit is None else limit, delta

    def construct(self) -> Tensor:
        """The values."""
        whole = not any(isinstance(each, float) for each in (self.start, self.limit, self.delta))
        return creation.arange(self.start, self.limit, self.delta, dtype="int32" if whole else None)


# -------------------------------------------------------------------------------------- functions of numbers


class LGamma(Cell):
    """The logarithm of the gamma function.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.LGamma()(Tensor([4.0])).asnumpy().round(4))
    [1.7918]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to each element of ``x``."""
        return math.lgamma(x)


class DiGamma(Cell):
    """The derivative of the logarithm of the gamma function.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.DiGamma()(Tensor([1.0])).asnumpy().round(4))
    [-0.5772]
    """

    def construct(self, x: Tensor) -> Tensor:
        """Apply the function to each element of ``x``."""
        return math.digamma(x)


class IGamma(Cell):
    """The lower regularized incomplete gamma function; see ``ops.igamma``, which needs SciPy.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.IGamma()(Tensor([1.0]), Tensor([1.0])).asnumpy().round(4))
    [0.6321]
    """

    def construct(self, a: Tensor, x: Tensor) -> Tensor:
        """The function of each pair of elements."""
        return special.igamma(a, x)


class LBeta(Cell):
    """The natural logarithm of the beta function.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.LBeta()(Tensor([1.0]), Tensor([2.0])).asnumpy().round(4))
    [-0.6931]
    """

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        """The function of each pair of elements."""
        x, y = to_common_dtype(x, y, real=True)
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)


class MatDet(Cell):
    """The determinants of matrices.

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> print(nn.MatDet()(Tensor([[2.0, 0.0], [0.0, 3.0]])))
    6.0
    """

    def construct(self, a: Tensor) -> Tensor:
        """The determinants of the matrices in the last two axes of ``a``."""
        return linalg.det(a)


class MatInverse(Cell):
    """The inverses of matrices.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(MatInverse()(Tensor([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """

    def construct(self, a: Tensor) -> Tensor:
        """The inverses of the matrices in the last two axes of ``a``."""
        return linalg.inverse(a)


class LRN(Cell):
    """Local response normalisation: each element is divided by ``(bias + alpha * s) ** beta``, where ``s`` is the sum
    of squares over neighbouring channels.

    Parameters
    ----------
    depth_radius : int
        Number of neighbouring channels on each side.
    bias, alpha, beta : float
    norm_region : {"ACROSS_CHANNELS"}

    Examples
    --------
    >>> from opreg import Tensor, mint, nn, ops
    >>> nn.LRN()(ops.ones((1, 4, 2, 2))).shape
    (1, 4, 2, 2)
    """

    def __init__(self, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
                 norm_region: str = "ACROSS_CHANNELS"):
        super().__init__()
        self.depth_radius = check_int(self, "depth_radius", depth_radius, 0)
        self.bias, self.alpha, self.beta, self.norm_region = bias, alpha, beta, norm_region

    def construct(self, input_x: Tensor) -> Tensor:
        """Normalise ``input_x`` (batch, channels, height, width)."""
        return nn.lrn(input_x, self.depth_radius, self.bias, self.alpha, self.beta, self.norm_region)
