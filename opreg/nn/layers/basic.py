"""Basic layers: Dense, Embedding, Dropout and its relatives, Flatten, padding, and others that move numbers about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.initializer import InitializerLike
from ...cells.tensor import Tensor, tensor
from ...cells.typing import Sizes, TensorDType, TensorShape
from ...core.registry import ops
from ...core.spec import as_dtype, show
from ...errors import ArgumentError, ShapeError
from ..ops import ResizeBilinearV2, array, creation, indexing, linalg, nn, random, reduce
from ..ops import math as math_
from ..ops.lift import plain, rank_of, scalar
from ..optim.settings import number
from .activation import Activation, callable_cell
from .checks import bound_of, chance, channels_apart, fan_filled, filled, flag, of_one_dtype, several, whole, word

__all__ = ["Dense", "Flatten", "Unflatten", "Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding",
           "OneHot", "Pad", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d",
           "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
           "Upsample", "ResizeBilinear", "PixelShuffle", "PixelUnshuffle", "BiDense", "Linear", "EmbeddingLookup",
           "L1Regularizer", "TimeDistributed"]


class Dense(Cell):
    """``x @ weight.T + bias`` over the last axis, and perhaps an activation.

    Parameters
    ----------
    in_channels, out_channels : int
        Lengths of the last axis before and after.
    weight_init, bias_init
        As ``initializer`` takes them; by default numbers within ``1 / sqrt(in_channels)``.
    has_bias : bool
    activation : str, Cell or callable, optional
        Applied to the result.

    Examples
    --------
    >>> Dense(3, 2)
    Dense(input_channels=3, output_channels=2, has_bias=True)
    """

    def __init__(self, in_channels: int, out_channels: int, weight_init: InitializerLike | None = None,
                 bias_init: InitializerLike | None = None, has_bias: bool = True, activation: Activation | None = None,
                 dtype: TensorDType = float32):
        super().__init__()
        self.in_channels = whole(self, "in_channels", in_channels)
        self.out_channels = whole(self, "out_channels", out_channels)
        self.has_bias = flag(self, "has_bias", has_bias)
        shape = (out_channels, in_channels)
        self.weight = fan_filled(weight_init, shape, "weight", dtype)
        self.bias = filled(bound_of(bias_init, shape), (out_channels,), "bias", dtype) if has_bias else None
        self.activation = callable_cell(self, "activation", activation)

    def construct(self, x: Tensor) -> Tensor:
        """The layer of ``x`` (..., in_channels)."""
        weight = self.weight
        of_one_dtype(self, x, weight)
        y = linalg.dense(x, weight, self.bias)
        return y if self.activation is None else self.activation(y)

    def misfit(self, *inputs: Any) -> str | None:
        return channels_apart(self, inputs[0], -1, self.in_channels, "features")

    def extend_repr(self) -> str:
        """Sizes and what is there."""
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        text += ", has_bias=True" if self.has_bias else ""
        return text if self.activation is None else f"{text}, activation={self.activation}"


# ---------------------------------------------------------------------------------------------- shapes


class Flatten(Cell):
    """Axes from ``start_dim`` to ``end_dim`` joined to one.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> Flatten()(nn.Tensor([[[1.0, 2.0], [3.0, 4.0]]])).shape
    (1, 4)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        for name, value in (("start_dim", start_dim), ("end_dim", end_dim)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentError(f"Flatten: {name} must be an int, got {value!r}")
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x: Tensor) -> Tensor:
        """``x`` with fewer axes."""
        rank = rank_of(x)
        if rank is not None and not (-rank <= self.start_dim < rank and -rank <= self.end_dim < rank):
            raise ShapeError(f"Flatten: start_dim {self.start_dim} or end_dim {self.end_dim} is not an axis of "
                             f"{show(x.shape)}")
        if rank is not None and self.start_dim % rank > self.end_dim % rank:
            raise ShapeError(f"Flatten: start_dim {self.start_dim} comes behind end_dim {self.end_dim}")
        return array.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(Cell):
    """One axis split into several."""

    def __init__(self, axis: int, unflattened_size: tuple[int, ...]):
        super().__init__()
        self.axis = axis
        self.unflattened_size = several(self, "unflattened_size", tuple(unflattened_size), len(unflattened_size))

    def construct(self, input_x: Tensor) -> Tensor:
        """``input_x`` with more axes."""
        axis = self.axis % len(input_x.shape)
        return input_x.reshape(*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1:])


class Identity(Cell):
    """Its input, whatever it is made with: it stands where another layer was."""

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """``input`` itself."""
        return input


# --------------------------------------------------------------------------------------------- dropout


class Dropout(Cell):
    """In training numbers are set to zero at random and the others scaled up; otherwise nothing happens.

    Parameters
    ----------
    keep_prob : float
        The probability with which a number stays, in (0, 1].
    p : float, optional
        Instead: the probability with which it goes, in [0, 1).

    Examples
    --------
    >>> Dropout(p=0.3)
    Dropout(p=0.3)
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: TensorDType = float32):
        super().__init__()
        self.p = None if p is None else chance(self, "p", p, high=False)
        self.keep_prob = chance(self, "keep_prob", keep_prob, low=False)

    def construct(self, x: Tensor) -> Tensor:
        """``x`` with holes, in training."""
        rate = 1 - self.keep_prob if self.p is None else self.p
        return random.dropout(x, rate, self.training)

    def extend_repr(self) -> str:
        """The probability, as it was given."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _DropoutChannels(Cell):
    """In training whole channels are set to zero at random and the others scaled up.

    Parameters
    ----------
    p : float
        The probability with which a channel goes.
    """

    _axes = 0
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5):
        super().__init__()
        self.p = chance(self, "p", p)

    def construct(self, x: Tensor) -> Tensor:
        """``x`` without some of its channels, in training."""
        if not self.training or not self.p:
            return x
        rank = len(x.shape)
        if rank != self._axes + 2 and (rank, self._axes) != (2, 1):
            raise ShapeError(f"{type(self).__name__}: expected {self._axes + 2} axes, got the shape {show(x.shape)}")
        return self._function(x, self.p)

    def extend_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout1d(_DropoutChannels):
    __doc__ = _DropoutChannels.__doc__
    _axes, _function = 1, staticmethod(random.dropout1d)


class Dropout2d(_DropoutChannels):
    __doc__ = _DropoutChannels.__doc__
    _axes, _function = 2, staticmethod(random.dropout2d)


class Dropout3d(_DropoutChannels):
    __doc__ = _DropoutChannels.__doc__
    _axes, _function = 3, staticmethod(random.dropout3d)


# -------------------------------------------------------------------------------------------- indices


class Embedding(Cell):
    """Rows of a table picked by indices: negative ones count from its end, those beyond it are refused.

    Parameters
    ----------
    vocab_size, embedding_size : int
        Rows and columns of the table.
    use_one_hot : bool
        Whether rows are picked by a product with vectors of one 1. Slower, with the same result, except that an index
        outside of the table, or a negative one, picks zeros.
    embedding_table
        Initial values of the table, as ``initializer`` takes them.
    padding_idx : int, optional
        A row that begins as zeros.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> Embedding(10, 3)(nn.Tensor([[1, 2], [3, 4]])).shape
    (2, 2, 3)
    """

    def __init__(self, vocab_size: int, embedding_size: int, use_one_hot: bool = False,
                 embedding_table: InitializerLike = "normal", dtype: TensorDType = float32,
                 padding_idx: int | None = None):
        super().__init__()
        self.vocab_size = whole(self, "vocab_size", vocab_size)
        self.embedding_size = whole(self, "embedding_size", embedding_size)
        self.use_one_hot, self.padding_idx = flag(self, "use_one_hot", use_one_hot), padding_idx
        self.dtype = dtype
        self.embedding_table = filled(embedding_table, (vocab_size, embedding_size), "embedding_table", dtype)
        if padding_idx is not None:
            if whole(self, "padding_idx", padding_idx, 0) >= vocab_size:
                raise ArgumentError(f"Embedding: padding_idx must be below {vocab_size}, got {padding_idx}")
            self.embedding_table[padding_idx] = 0

    def construct(self, ids: Tensor) -> Tensor:
        """Rows for ``ids``, in a new last axis."""
        if not self.use_one_hot:
            return nn.embedding(ids, self.embedding_table)
        rows = ops.one_hot(ids, depth=self.vocab_size, dtype=self.embedding_table._dt)
        return ops._npi_matmul(rows, self.embedding_table)

    def extend_repr(self) -> str:
        """Sizes, table, and row of padding."""
        return (f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
                f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}")


class OneHot(Cell):
    """Rows of ``depth`` elements along a new axis, an index each, ``on_value`` at its place and ``off_value``
    elsewhere."""

    def __init__(self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0,
                 dtype: TensorDType = float32):
        super().__init__()
        self.axis, self.depth = axis, whole(self, "depth", depth)
        self.on_value, self.off_value, self.dtype = on_value, off_value, dtype

    def construct(self, indices: Tensor) -> Tensor:
        """Numbers for ``indices``."""
        dtype = as_dtype(self.dtype)
        on, off = [scalar(value, dtype) for value in (self.on_value, self.off_value)]
        return creation.one_hot(indices, self.depth, on, off, self.axis)


# -------------------------------------------------------------------------------------------- padding


class Pad(Cell):
    """Numbers around the data.

    Parameters
    ----------
    paddings : tuple of pairs of int
        How many before and after, for each axis.
    mode : {"CONSTANT", "REFLECT", "SYMMETRIC"}
        Zeros; what a mirror on the outermost number shows; what a mirror behind it shows.
    """

    def __init__(self, paddings: Sequence[Sequence[int]], mode: str = "CONSTANT"):
        super().__init__()
        if not isinstance(paddings, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in paddings):
            raise ArgumentError(f"Pad: paddings must be a tuple of pairs, got {paddings!r}")
        self.paddings = tuple(several(self, "paddings", pair, 2, 0) for pair in paddings)
        self.mode = word(self, "mode", mode, ("constant", "reflect", "symmetric"))

    def construct(self, x: Tensor) -> Tensor:
        """``x`` and what is around it."""
        if len(self.paddings) != len(x.shape):
            raise ShapeError(f"Pad: {len(self.paddings)} pairs do not fit the shape {show(x.shape)}")
        if self.mode != "symmetric":
            return array.pad(x, [width for pair in reversed(self.paddings) for width in pair], self.mode)
        for axis, (before, after) in enumerate(self.paddings):
            size = x.shape[axis]
            places = np.pad(np.arange(size), (before, after), mode="symmetric")
            x = indexing.gather(x, tensor(places), axis)
        return x


class _PadAround(Cell):
    """Numbers around the last axes of data.

    Parameters
    ----------
    padding : int or tuple of int
        How many, on all sides or one for each: before and after along the last axis, then along the one before it.
        Numbers below zero cut some off.
    """

    _axes = 0
    _mode = "constant"

    def __init__(self, padding: Sizes):
        super().__init__()
        sides = 2 * self._axes
        widths = (padding,) * sides if isinstance(padding, int) else padding
        fine = isinstance(widths, tuple) and all(isinstance(width, int) for width in widths)
        if not fine or len(widths) > sides or len(widths) % 2:
            raise ArgumentError(f"{type(self).__name__}: padding must be an int or {sides} of them, got {padding!r}")
        self.padding = widths
        self.value: float = 0

    def construct(self, x: Tensor) -> Tensor:
        """``x`` and what is around it."""
        rank, pairs = len(x.shape), len(self.padding) // 2
        if rank < pairs:
            raise ShapeError(f"{type(self).__name__}: padding for {pairs} axes does not fit the shape {show(x.shape)}")
        return array.pad(x, self.padding, self._mode, self.value)


class ZeroPad2d(_PadAround):
    """Zeros around the last two axes; ``padding`` is (left, right, top, bottom), or one value for all."""

    _axes = 2


class _ConstantPad(_PadAround):
    """Numbers around the last axes, all of one value."""

    def __init__(self, padding: Sizes, value: float):
        super().__init__(padding)
        self.value = plain(value)


class ConstantPad1d(_ConstantPad):
    """``value`` around the last axis; ``padding`` is (before, after), or one number for both."""

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """``value`` around the last two axes; ``padding`` is (left, right, top, bottom), or one value for all."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """``value`` around the last three axes; ``padding`` has six numbers, last axis first, or is one for all."""

    _axes = 3


class ReflectionPad1d(_PadAround):
    """Pad the last axis by reflection at its outermost elements; ``padding`` is (before, after)."""

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Pad the last two axes by reflection at their outermost elements; ``padding`` is (left, right, top, bottom)."""

    _axes = 2


class ReflectionPad3d(ReflectionPad1d):
    """Pad the last three axes by reflection at their outermost elements; ``padding`` has six numbers."""

    _axes = 3


class ReplicationPad1d(_PadAround):
    """The outermost elements of the last axis repeated; ``padding`` is (before, after)."""

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """The outermost elements of the last two axes repeated; ``padding`` is (left, right, top, bottom)."""

    _axes = 2


class ReplicationPad3d(ReplicationPad1d):
    """The outermost elements of the last three axes repeated; ``padding`` has six numbers."""

    _axes = 3


# --------------------------------------------------------------------------------------------- images


class Upsample(Cell):
    """Images enlarged, or made smaller, along all axes behind the second.

    Parameters
    ----------
    size : int or tuple of int, optional
        The new lengths.
    scale_factor : float or tuple of float, optional
        Instead: by how much they grow.
    mode : {"nearest", "linear", "bilinear", "trilinear", "bicubic", "area"}
        The nearest number at the left; a mixture of neighbours, for images of one, two or three axes, of four along
        each of two; or means over cells.
    align_corners : bool, optional
        Whether the outermost elements of a mixture stay where they are.
    """

    def __init__(self, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
                 mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None):
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise ArgumentError("Upsample: expected either size or scale_factor")
        self.size, self.scale_factor = size, scale_factor
        self.mode = word(self, "mode", mode, ("nearest", "linear", "bilinear", "trilinear", "bicubic", "area"))
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        """``x`` (batch, channels, ...) in its new size."""
        old = x.shape[2:]
        setting = self.scale_factor if self.size is None else self.size
        numbers: tuple[Any, ...] = tuple(setting) if isinstance(setting, (tuple, list)) else (setting,) * len(old)
        if len(numbers) != len(old):
            raise ShapeError(f"Upsample: {len(numbers)} numbers do not fit the shape {show(x.shape)}")
        axes = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}.get(self.mode, len(old))
        if len(old) != axes:
            raise ShapeError(f"Upsample: mode {self.mode!r} needs images of {axes} axes, got the shape {show(x.shape)}")
        size, factor = (None, numbers) if self.size is None else (numbers, None)
        return nn.interpolate(x, size, factor, self.mode, self.align_corners, self.recompute_scale_factor)


class ResizeBilinear(Cell):
    """Images in another size, a mixture of the four nearest numbers in each place.

    Parameters
    ----------
    half_pixel_centers : bool
        Whether pixels are met in their middle, and not in their corner.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> ResizeBilinear()(nn.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), scale_factor=2).shape
    (1, 1, 4, 4)
    """

    def __init__(self, half_pixel_centers: bool = False):
        super().__init__()
        self.half_pixel_centers = flag(self, "half_pixel_centers", half_pixel_centers)

    def construct(self, x: Tensor, size: TensorShape | None = None, scale_factor: int | None = None,
                  align_corners: bool = False) -> Tensor:
        """``x`` (batch, channels, height, width) with a new height and width, or both by a factor."""
        resized = ResizeBilinearV2(align_corners, self.half_pixel_centers)
        if size is not None and scale_factor is None:
            return resized(x, size)
        if size is None and scale_factor is not None:
            return resized(x, [length * whole(self, "scale_factor", scale_factor) for length in x.shape[2:]])
        raise ArgumentError("ResizeBilinear: expected either size or scale_factor")


class PixelShuffle(Cell):
    """Groups of ``upscale_factor ** 2`` channels laid out as squares of pixels.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> PixelShuffle(2)(nn.Tensor([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]])).shape
    (1, 1, 2, 2)
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = whole(self, "upscale_factor", upscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        """``input`` (..., channels, height, width) with fewer channels and more pixels."""
        r, shape = self.upscale_factor, input.shape
        if len(shape) < 3 or shape[-3] % (r * r):
            raise ShapeError(f"PixelShuffle: expected channels that divide by {r * r}, got the shape {show(shape)}")
        return nn.pixel_shuffle(input, r)


class PixelUnshuffle(Cell):
    """Squares of ``downscale_factor ** 2`` pixels as channels; the reverse of ``PixelShuffle``."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = whole(self, "downscale_factor", downscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        """``input`` (..., channels, height, width) with more channels and fewer pixels."""
        r, shape = self.downscale_factor, input.shape
        if len(shape) < 3 or shape[-2] % r or shape[-1] % r:
            raise ShapeError(f"PixelUnshuffle: expected images that divide by {r}, got the shape {show(shape)}")
        return nn.pixel_unshuffle(input, r)


# ------------------------------------------------------------------------------- products, penalties, wrappers


class BiDense(Cell):
    """``x @ weight[k] @ y + bias[k]`` of the last axes of two inputs, for each of ``out_channels`` results.

    Parameters
    ----------
    in1_channels, in2_channels, out_channels : int
        Lengths of the last axes of both inputs and of the result.
    weight_init, bias_init
        As ``initializer`` takes them; by default numbers within ``1 / sqrt(in1_channels)``.
    has_bias : bool

    Examples
    --------
    >>> import opreg.nn as nn
    >>> BiDense(3, 4, 2)(nn.Tensor([[1.0, 2.0, 3.0]]), nn.Tensor([[1.0, 2.0, 3.0, 4.0]])).shape
    (1, 2)
    """

    def __init__(self, in1_channels: int, in2_channels: int, out_channels: int,
                 weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
                 has_bias: bool = True, dtype: TensorDType = float32):
        super().__init__()
        self.in1_channels = whole(self, "in1_channels", in1_channels)
        self.in2_channels = whole(self, "in2_channels", in2_channels)
        self.out_channels = whole(self, "out_channels", out_channels)
        self.has_bias = flag(self, "has_bias", has_bias)
        near = bound_of(None, (out_channels, in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = filled(near if weight_init is None else weight_init, shape, "weight", dtype)
        self.bias = filled(near if bias_init is None else bias_init, (out_channels,), "bias", dtype) if has_bias \
            else None

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        """The layer of ``input1`` (..., in1_channels) and ``input2`` (..., in2_channels)."""
        return linalg.bidense(input1, input2, self.weight, self.bias)

    def extend_repr(self) -> str:
        """Sizes and what is there."""
        text = (f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, "
                f"output_channels={self.out_channels}")
        return f"{text}, has_bias=True" if self.has_bias else text


class Linear(Dense):
    """``Dense``, by other names of its parameters.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    weight_init, bias_init, dtype
        As of ``Dense``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
                 dtype: TensorDType | None = None):
        super().__init__(in_features, out_features, weight_init, bias_init, bias,
                         dtype=float32 if dtype is None else dtype)


class EmbeddingLookup(Cell):
    """Rows of a table picked by indices, zeros for those beyond it.

    Parameters
    ----------
    vocab_size, embedding_size : int
        Rows and columns of the table.
    param_init
        Initial values of the table, as ``initializer`` takes them.
    max_norm : float, optional
        Rows that are longer are scaled to it.
    target, slice_mode, manual_shapes, sparse
        Accepted, without effect here: there is one table, on the device of the indices.
    """

    def __init__(self, vocab_size: int, embedding_size: int, param_init: InitializerLike = "normal",
                 target: str = "CPU", slice_mode: str = "batch_slice", manual_shapes: object = None,
                 max_norm: float | None = None, sparse: bool = True, dtype: TensorDType = float32):
        super().__init__()
        self.vocab_size = whole(self, "vocab_size", vocab_size)
        self.embedding_size = whole(self, "embedding_size", embedding_size)
        word(self, "target", target, ("cpu", "device"))
        self.target, self.slice_mode, self.max_norm = target, slice_mode, max_norm
        self.embedding_table = filled(param_init, (vocab_size, embedding_size), "embedding_table", dtype)

    def construct(self, indices: Tensor) -> Tensor:
        """Rows for ``indices``, in a new last axis."""
        rows = nn.embedding(math_.minimum(indices, self.vocab_size - 1), self.embedding_table)
        rows = math_.where(ops.expand_dims(indices < self.vocab_size, axis=-1), rows, 0.0)
        return rows if self.max_norm is None else reduce.clipped_along(rows, self.max_norm, -1)


class L1Regularizer(Cell):
    """The sum of magnitudes times a number.

    Parameters
    ----------
    scale : float
        The number, above 0.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> L1Regularizer(0.5)(nn.Tensor([[1.0, -2.0], [3.0, -4.0]]))
    Tensor(shape=[], dtype=Float32, value= 5)
    """

    def __init__(self, scale: float):
        super().__init__()
        self.scale = number("L1Regularizer", "scale", scale, inside=True)

    def construct(self, weights: Tensor) -> Tensor:
        """The penalty of ``weights``."""
        return reduce.sum(math_.abs(weights)) * self.scale


class TimeDistributed(Cell):
    """A layer that is called for each step of time.

    Parameters
    ----------
    layer : Cell or Primitive
        Called with an input that has one axis less.
    time_axis : int
        Which axis counts the steps, in what goes in and what comes out.
    reshape_with_axis : int, optional
        An axis that the steps are laid along, so that the layer is called once: faster, for layers that do the same to
        all along it. In what comes out the steps stay beside it.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> TimeDistributed(nn.Dense(3, 2), time_axis=1)(nn.Tensor(np.zeros((4, 5, 3), np.float32))).shape
    (4, 5, 2)
    """

    def __init__(self, layer: Callable[..., Tensor], time_axis: int, reshape_with_axis: int | None = None):
        super().__init__()
        if not callable(layer):
            raise ArgumentError(f"TimeDistributed: layer must be a Cell or Primitive, got {type(layer).__name__}")
        for name, axis in (("time_axis", time_axis), ("reshape_with_axis", reshape_with_axis)):
            if isinstance(axis, bool) or not isinstance(axis, (int, type(None) if name != "time_axis" else int)):
                raise ArgumentError(f"TimeDistributed: {name} must be an int, got {axis!r}")
        self.layer, self.time_axis, self.reshape_with_axis = layer, time_axis, reshape_with_axis

    def construct(self, inputs: Tensor) -> Tensor:
        """Apply the layer to each step of ``inputs``."""
        rank = len(inputs.shape)
        if rank < 3:
            raise ShapeError(f"TimeDistributed: expected 3 axes at least, got the shape {show(inputs.shape)}")
        time = self.time_axis % rank
        if self.reshape_with_axis is None:
            return array.stack([self.layer(step) for step in array.unstack(inputs, time)], time)
        along = self.reshape_with_axis % rank
        if along == time:
            raise ArgumentError("TimeDistributed: reshape_with_axis must be another axis than time_axis")
        beside = along + 1 if time > along else along - 1
        moved, at = array.moveaxis(inputs, time, beside), min(along, beside)
        pair = moved.shape[at:at + 2]
        out = self.layer(moved.reshape((*moved.shape[:at], pair[0] * pair[1], *moved.shape[at + 2:])))
        if len(out.shape) <= at or out.shape[at] != pair[0] * pair[1]:
            raise ShapeError(f"TimeDistributed: the layer made {show(out.shape)}, which has another length along "
                             f"reshape_with_axis={self.reshape_with_axis}")
        return out.reshape((*out.shape[:at], *pair, *out.shape[at + 1:]))
