"""Basic layers: Dense, Embedding, Dropout and its variants, Flatten, and others without a family of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.initializer import InitializerLike
from ...cells.tensor import Tensor
from ...cells.typing import TensorDType
from ...core.registry import ops
from ...core.settings import real_number
from ...core.spec import as_dtype, show
from ...errors import ArgumentError, ShapeError
from ..ops import array, creation, linalg, nn, random, reduce
from ..ops import math as math_
from ..ops.lift import rank_of, scalar
from .activation import Activation, callable_cell
from .checks import (
    bound_of,
    chance,
    channels_apart,
    check_int,
    check_ints,
    check_word,
    fan_parameter,
    flag,
    new_parameter,
    of_one_dtype,
)

__all__ = ["Dense", "Flatten", "Unflatten", "Identity", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Embedding",
           "OneHot", "BiDense", "Linear", "EmbeddingLookup", "L1Regularizer", "TimeDistributed"]


class Dense(Cell):
    """``x @ weight.T + bias`` over the last axis, and an optional activation.

    Parameters
    ----------
    in_channels, out_channels : int
        Lengths of the last axis before and after.
    weight_init, bias_init
        Initial values, see ``initializer``; by default uniform within ``1 / sqrt(in_channels)``.
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
        self.in_channels = check_int(self, "in_channels", in_channels)
        self.out_channels = check_int(self, "out_channels", out_channels)
        self.has_bias = flag(self, "has_bias", has_bias)
        shape = (out_channels, in_channels)
        self.weight = fan_parameter(weight_init, shape, "weight", dtype)
        self.bias = new_parameter(bound_of(bias_init, shape), (out_channels,), "bias", dtype) if has_bias else None
        self.activation = callable_cell(self, "activation", activation)

    def construct(self, x: Tensor) -> Tensor:
        """Apply the layer to ``x`` (..., in_channels)."""
        weight = self.weight
        of_one_dtype(self, x, weight)
        y = linalg.dense(x, weight, self.bias)
        return y if self.activation is None else self.activation(y)

    def misfit(self, *inputs: Any) -> str | None:
        return channels_apart(self, inputs[0], -1, self.in_channels, "features")

    def extend_repr(self) -> str:
        """Sizes, and the optional parts that exist."""
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        text += ", has_bias=True" if self.has_bias else ""
        return text if self.activation is None else f"{text}, activation={self.activation}"


# ---------------------------------------------------------------------------------------------- shapes


class Flatten(Cell):
    """Joins the axes from ``start_dim`` to ``end_dim``.

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
            raise ShapeError(f"Flatten: start_dim {self.start_dim} is behind end_dim {self.end_dim}")
        return array.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(Cell):
    """Splits one axis into several; the length -1 of one of them is inferred from the others.

    Examples
    --------
    >>> from opreg import ops
    >>> Unflatten(1, (2, 3))(ops.ones((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, axis: int, unflattened_size: tuple[int, ...]):
        super().__init__()
        self.axis = axis
        self.unflattened_size = check_ints(self, "unflattened_size", tuple(unflattened_size), len(unflattened_size), -1)

    def construct(self, input_x: Tensor) -> Tensor:
        """``input_x`` with more axes."""
        axis = self.axis % len(input_x.shape)
        return input_x.reshape(*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1:])


class Identity(Cell):
    """Returns its input; accepts any arguments, to take the place of another layer.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(Identity()(Tensor([1.0, 2.0])))
    [1. 2.]
    """

    def __init__(self, *args: object, **kwargs: object):
        super().__init__()

    def construct(self, input: Tensor) -> Tensor:
        """``input`` itself."""
        return input


# --------------------------------------------------------------------------------------------- dropout


class Dropout(Cell):
    """In training random elements are set to zero and the others scaled up; otherwise the input is returned.

    Parameters
    ----------
    keep_prob : float
        Probability with which an element is kept, in (0, 1].
    p : float, optional
        Instead of it, the probability with which an element is set to zero, in [0, 1).

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
        """Apply dropout to ``x``, in training."""
        rate = 1 - self.keep_prob if self.p is None else self.p
        return random.dropout(x, rate, self.training)

    def extend_repr(self) -> str:
        """The probability that was given."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class _DropoutChannels(Cell):
    """In training random channels are set to zero and the others scaled up.

    Parameters
    ----------
    p : float
        Probability with which a channel is set to zero.
    """

    _axes = 0
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5):
        super().__init__()
        self.p = chance(self, "p", p)

    def construct(self, x: Tensor) -> Tensor:
        """Apply dropout to the channels of ``x``, in training."""
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
    """Rows of a table, picked by indices. A negative index counts from the end; one beyond the table is refused.

    Parameters
    ----------
    vocab_size, embedding_size : int
        Rows and columns of the table.
    use_one_hot : bool
        Whether rows are picked by a product with one-hot vectors. This is slower and gives the same result, except that
        an index outside of the table, or a negative one, picks zeros.
    embedding_table
        Initial values of the table; see ``initializer``.
    padding_idx : int, optional
        A row whose initial values are zeros.

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
        self.vocab_size = check_int(self, "vocab_size", vocab_size)
        self.embedding_size = check_int(self, "embedding_size", embedding_size)
        self.use_one_hot, self.padding_idx = flag(self, "use_one_hot", use_one_hot), padding_idx
        self.dtype = dtype
        self.embedding_table = new_parameter(embedding_table, (vocab_size, embedding_size), "embedding_table", dtype)
        if padding_idx is not None:
            if check_int(self, "padding_idx", padding_idx, 0) >= vocab_size:
                raise ArgumentError(f"Embedding: padding_idx must be below {vocab_size}, got {padding_idx}")
            self.embedding_table[padding_idx] = 0

    def construct(self, ids: Tensor) -> Tensor:
        """The rows of ``ids``, along a new last axis."""
        if not self.use_one_hot:
            return nn.embedding(ids, self.embedding_table)
        rows = ops.one_hot(ids, depth=self.vocab_size, dtype=self.embedding_table._dt)
        return ops._npi_matmul(rows, self.embedding_table)

    def extend_repr(self) -> str:
        """Sizes, table, and padding row."""
        return (f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
                f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}")


class OneHot(Cell):
    """One-hot vectors of length ``depth`` along a new axis: ``on_value`` at the index, ``off_value`` elsewhere.

    Examples
    --------
    >>> from opreg import Tensor
    >>> print(OneHot(depth=3)(Tensor([0, 2])))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """

    def __init__(self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0,
                 dtype: TensorDType = float32):
        super().__init__()
        self.axis, self.depth = axis, check_int(self, "depth", depth)
        self.on_value, self.off_value, self.dtype = on_value, off_value, dtype

    def construct(self, indices: Tensor) -> Tensor:
        """One-hot vectors of ``indices``."""
        dtype = as_dtype(self.dtype)
        on, off = [scalar(value, dtype) for value in (self.on_value, self.off_value)]
        return creation.one_hot(indices, self.depth, on, off, self.axis)


# ------------------------------------------------------------------------------- products, penalties, wrappers


class BiDense(Cell):
    """``x @ weight[k] @ y + bias[k]`` of the last axes of two inputs, for each of ``out_channels`` results.

    Parameters
    ----------
    in1_channels, in2_channels, out_channels : int
        Lengths of the last axes of both inputs and of the result.
    weight_init, bias_init
        Initial values, see ``initializer``; by default uniform within ``1 / sqrt(in1_channels)``.
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
        self.in1_channels = check_int(self, "in1_channels", in1_channels)
        self.in2_channels = check_int(self, "in2_channels", in2_channels)
        self.out_channels = check_int(self, "out_channels", out_channels)
        self.has_bias = flag(self, "has_bias", has_bias)
        near = bound_of(None, (out_channels, in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        self.weight = new_parameter(near if weight_init is None else weight_init, shape, "weight", dtype)
        init = near if bias_init is None else bias_init
        self.bias = new_parameter(init, (out_channels,), "bias", dtype) if has_bias else None

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply the layer to ``input1`` (..., in1_channels) and ``input2`` (..., in2_channels)."""
        return linalg.bidense(input1, input2, self.weight, self.bias)

    def extend_repr(self) -> str:
        """Sizes, and the optional parts that exist."""
        text = (f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, "
                f"output_channels={self.out_channels}")
        return f"{text}, has_bias=True" if self.has_bias else text


class Linear(Dense):
    """``Dense`` under another name, with other names of its parameters.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    weight_init, bias_init, dtype
        See ``Dense``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 weight_init: InitializerLike | None = None, bias_init: InitializerLike | None = None,
                 dtype: TensorDType | None = None):
        super().__init__(in_features, out_features, weight_init, bias_init, bias,
                         dtype=float32 if dtype is None else dtype)


class EmbeddingLookup(Cell):
    """Rows of a table, picked by indices; zeros for an index beyond the table.

    Parameters
    ----------
    vocab_size, embedding_size : int
        Rows and columns of the table.
    param_init
        Initial values of the table; see ``initializer``.
    max_norm : float, optional
        Greatest norm of a row; longer rows are scaled down.
    target, slice_mode, manual_shapes, sparse
        Accepted without effect: there is one table, on the device of the indices.
    """

    def __init__(self, vocab_size: int, embedding_size: int, param_init: InitializerLike = "normal",
                 target: str = "CPU", slice_mode: str = "batch_slice", manual_shapes: object = None,
                 max_norm: float | None = None, sparse: bool = True, dtype: TensorDType = float32):
        super().__init__()
        self.vocab_size = check_int(self, "vocab_size", vocab_size)
        self.embedding_size = check_int(self, "embedding_size", embedding_size)
        check_word(self, "target", target, ("cpu", "device"))
        self.target, self.slice_mode, self.max_norm = target, slice_mode, max_norm
        self.embedding_table = new_parameter(param_init, (vocab_size, embedding_size), "embedding_table", dtype)

    def construct(self, indices: Tensor) -> Tensor:
        """The rows of ``indices``, along a new last axis."""
        rows = nn.embedding(math_.minimum(indices, self.vocab_size - 1), self.embedding_table)
        rows = math_.where(ops.expand_dims(indices < self.vocab_size, axis=-1), rows, 0.0)
        return rows if self.max_norm is None else reduce.clipped_along(rows, self.max_norm, -1)


class L1Regularizer(Cell):
    """The sum of absolute values, times a factor.

    Parameters
    ----------
    scale : float
        The factor, above 0.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> L1Regularizer(0.5)(nn.Tensor([[1.0, -2.0], [3.0, -4.0]]))
    Tensor(shape=[], dtype=Float32, value= 5)
    """

    def __init__(self, scale: float):
        super().__init__()
        self.scale = real_number("L1Regularizer: scale", scale, inside=True)

    def construct(self, weights: Tensor) -> Tensor:
        """The penalty of ``weights``."""
        return reduce.sum(math_.abs(weights)) * self.scale


class TimeDistributed(Cell):
    """Applies a layer to each time step.

    Parameters
    ----------
    layer : Cell or Primitive
        A layer for an input without the time axis.
    time_axis : int
        The time axis of input and output.
    reshape_with_axis : int, optional
        An axis into which the time axis is merged, so that the layer is called once. This is faster, and valid for
        layers that treat all positions of the axis alike. In the output the time axis stays beside it.

    Examples
    --------
    >>> import numpy as np
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
        folded_axis = along + 1 if time > along else along - 1
        moved, at = array.moveaxis(inputs, time, folded_axis), min(along, folded_axis)
        pair = moved.shape[at:at + 2]
        out = self.layer(moved.reshape((*moved.shape[:at], pair[0] * pair[1], *moved.shape[at + 2:])))
        if len(out.shape) <= at or out.shape[at] != pair[0] * pair[1]:
            raise ShapeError(f"TimeDistributed: the layer made {show(out.shape)}, whose length differs along "
                             f"reshape_with_axis={self.reshape_with_axis}")
        return out.reshape((*out.shape[:at], *pair, *out.shape[at + 1:]))
