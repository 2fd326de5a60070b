"""Layers: dense, dropout, embedding, flatten, and functions as blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opreg import ndarray, symbol

from ...core.attrs import Count, Fraction, Positive
from ...core.settings import whole_number
from ...train.initializer import InitializerLike
from ...typing import DTypeLike
from ..base_block import Block
from ..errors import BlockError
from ..hybrid_block import HybridBlock
from .activations import Activation
from .containers import HybridSequential, Sequential
from .normalization import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm

__all__ = ["Sequential", "HybridSequential", "Dense", "Dropout", "Embedding", "BatchNorm", "BatchNormReLU",
           "InstanceNorm", "LayerNorm", "GroupNorm", "Flatten", "Lambda", "HybridLambda"]


class Dense(HybridBlock):
    """A dense layer: ``x @ weight.T + bias``, and an optional activation.

    Parameters
    ----------
    units : int
        Length of the output features.
    activation : str, optional
        The name of an activation.
    use_bias : bool
        Whether there is a bias.
    flatten : bool
        Whether all axes but the first are flattened; otherwise the layer works on the last axis.
    dtype : dtype
        Dtype of the parameters.
    weight_initializer, bias_initializer : Initializer or str, optional
        Initial values.
    in_units : int
        Length of the input features; 0 where the first input decides it.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Dense(3, activation="relu", in_units=2)
    >>> layer
    Dense(2 -> 3, Activation(relu))
    >>> layer.initialize()
    >>> layer(nd.ones((4, 2))).shape
    (4, 3)
    """

    def __init__(self, units: Positive, activation: str | None = None, use_bias: bool = True, flatten: bool = True,
                 dtype: DTypeLike = "float32", weight_initializer: InitializerLike = None,
                 bias_initializer: InitializerLike = "zeros", in_units: Count = 0, **kwargs: Any):
        super().__init__(**kwargs)
        units = whole_number("Dense: units", units)
        self._flatten, self._units, self._in_units = flatten, units, in_units
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(units, in_units), init=weight_initializer, dtype=dtype,
                                          allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype,
                                        allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """See ``HybridBlock``."""
        out = F.FullyConnected(x, weight, bias, no_bias=bias is None, num_hidden=self._units, flatten=self._flatten,
                               name="fwd")
        return out if self.act is None else self.act(out)

    def __repr__(self) -> str:
        units, in_units = self.weight.shape or (0, 0)
        return f"{type(self).__name__}({in_units or None} -> {units}, {self.act or 'linear'})"


class Dropout(HybridBlock):
    """A layer that sets random elements to zero, in training.

    Parameters
    ----------
    rate : float
        Fraction of elements set to zero; the others are scaled up.
    axes : tuple of int
        Axes along which elements are dropped together.

    Examples
    --------
    >>> from opreg import autograd, nd
    >>> layer = Dropout(0.5)
    >>> layer(nd.ones(3)).asnumpy()
    array([1., 1., 1.], dtype=float32)
    >>> with autograd.train_mode():
    ...     set(layer(nd.ones(100)).asnumpy().tolist())
    {0.0, 2.0}
    """

    def __init__(self, rate: Fraction, axes: Any = (), **kwargs: Any):
        super().__init__(**kwargs)
        self._rate, self._axes = rate, axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """An embedding layer: it looks up rows of its weight by number.

    Parameters
    ----------
    input_dim, output_dim : int
        Number of rows, and length of a row.
    dtype : dtype
        Dtype of the weight.
    weight_initializer : Initializer or str, optional
        Initial value.
    sparse_grad : bool
        MXNet's setting for sparse gradients.

    Examples
    --------
    >>> from opreg import nd
    >>> layer = Embedding(10, 3)
    >>> layer.initialize()
    >>> layer(nd.array([1, 4])).shape
    (2, 3)
    """

    def __init__(self, input_dim: Positive, output_dim: Positive, dtype: DTypeLike = "float32",
                 weight_initializer: InitializerLike = None, sparse_grad: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": sparse_grad}
        self.weight = self.params.get("weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                                      allow_deferred_init=True,
                                      grad_stype="row_sparse" if sparse_grad else "default")

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """See ``HybridBlock``."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return "{name}({input_dim} -> {output_dim}, {dtype})".format(name=type(self).__name__, **self._kwargs)


class Flatten(HybridBlock):
    """A layer that flattens all axes but the first.

    Examples
    --------
    >>> from opreg import nd
    >>> Flatten()(nd.ones((2, 3, 4))).shape
    (2, 12)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See ``HybridBlock``."""
        return F.flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


def _wrong_function(name: str, function: object) -> BlockError:
    return BlockError(f"{name}: expected a function or the name of one, got {function!r} of type {type(function)}")


class Lambda(Block):
    """A function of arrays, or the name of one in ``nd``, as a block.

    Examples
    --------
    >>> from opreg import nd
    >>> Lambda("tanh")(nd.zeros((2,))).asnumpy()
    array([0., 0.], dtype=float32)
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None):
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            if not hasattr(ndarray, function):
                raise BlockError(f"Lambda: nd has no function {function}")
            function = getattr(ndarray, function)
        if not callable(function):
            raise _wrong_function("Lambda", function)
        self._func_impl: Callable[..., Any] = function

    def forward(self, *args: Any) -> Any:
        """Call the function."""
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_impl.__name__})"


class HybridLambda(HybridBlock):
    """A function of ``F`` and values, or the name of one in ``nd`` and ``sym``, as a hybrid block.

    Examples
    --------
    >>> from opreg import nd
    >>> HybridLambda(lambda F, x: F.relu(x) + 1)(nd.array([-1, 1])).asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None):
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            name = function
            if not (hasattr(ndarray, name) and hasattr(symbol, name)):
                raise BlockError(f"HybridLambda: there is no function {name} in nd and sym")

            def function(F: Any, *args: Any) -> Any:
                return getattr(F, name)(*args)
        elif callable(function):
            name = function.__name__
        else:
            raise _wrong_function("HybridLambda", function)
        self._func: Callable[..., Any] = function
        self._func_name = name

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """See ``HybridBlock``."""
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"
