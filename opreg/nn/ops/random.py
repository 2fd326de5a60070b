"""Random values; ``set_seed`` makes them reproducible. A compiled function draws new values in each run.

The parameter ``seed`` of MindSpore's functions is accepted without effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ...cells.state import STATE
from ...cells.tensor import Tensor
from ...cells.tensor_base import is_number
from ...cells.trace import create
from ...cells.typing import AnyShape, Number, TensorDType, TensorLike
from ...core.registry import get, ops
from ...core.spec import is_floating
from ...errors import ArgumentError, ShapeError
from .indexing import topk
from .lift import as_floating, shape_of, tensor, whole_dtype
from .math import where

__all__ = [
    "bernoulli", "dropout", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax", "laplace", "multinomial",
    "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "shuffle",
    "standard_laplace", "standard_normal", "uniform"]

_F32 = np.dtype(np.float32)


def live(value: TensorLike) -> Tensor:
    """A tensor as one of the current trace, so that values drawn for it are drawn in each run."""
    array = tensor(value)
    # users see traced tensors as Tensors
    return array if STATE.trace is None else STATE.trace.read(array)  # type: ignore[return-value]


def _shape(size: Sequence[Any]) -> tuple[int, ...]:
    """A shape given as arguments, or as one tuple."""
    return shape_of(size[0] if len(size) == 1 else size)


def _uniform(shape: Sequence[int], dtype: np.dtype = _F32, low: float = 0.0, high: float = 1.0) -> Tensor:
    drawn = dtype if is_floating(dtype) else _F32
    return create(get("_random_uniform"), low=low, high=high, shape=tuple(shape), dtype=drawn)


def standard_normal(shape: AnyShape, seed: int | None = None) -> Tensor:
    """Normal values with mean 0 and standard deviation 1; float32."""
    return create(get("_random_normal"), loc=0.0, scale=1.0, shape=shape_of(shape), dtype=_F32)


def normal(shape: AnyShape, mean: Tensor | Number, stddev: Tensor | Number, seed: int | None = None) -> Tensor:
    """Normal values; mean and standard deviation are numbers or tensors that broadcast to the shape."""
    return standard_normal(_spread(shape, mean, stddev)) * stddev + mean


def _spread(shape: AnyShape, *parameters: Tensor | Number) -> tuple[int, ...]:
    shapes = [() if is_number(parameter) else tensor(parameter).shape for parameter in parameters]
    return np.broadcast_shapes(shape_of(shape), *shapes)


def uniform(shape: AnyShape, minval: Tensor | float, maxval: Tensor | float, seed: int | None = None,
            dtype: TensorDType = None) -> Tensor:
    """Uniform values from ``minval`` to before ``maxval``; integers for an integer dtype."""
    target = whole_dtype(dtype, _F32)
    drawn = _uniform(_spread(shape, minval, maxval)) * (maxval - minval) + minval
    return (drawn if is_floating(target) else ops.floor(drawn))._cast(target)


def laplace(shape: AnyShape, mean: Tensor | Number, lambda_param: Tensor | Number, seed: int | None = None
           ) -> Tensor:
    """Values of the Laplace distribution with a given mean and scale."""
    return standard_laplace(_spread(shape, mean, lambda_param)) * lambda_param + mean


def standard_laplace(shape: AnyShape, seed: int | None = None) -> Tensor:
    """Values of the Laplace distribution with mean 0 and scale 1."""
    drawn = _uniform(shape_of(shape), low=-0.5, high=0.5)
    return -ops.sign(drawn) * ops.log(1 - 2 * ops.abs(drawn) + float(np.finfo(np.float32).tiny))


def randint(low: int, high: int, size: AnyShape, seed: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """Random integers from ``low`` to before ``high``; int64 by default."""
    if not low < high:
        raise ArgumentError(f"randint: low must be less than high, got {low} and {high}")
    return create(get("_random_randint"), low=int(low), high=int(high), shape=shape_of(size),
                  dtype=np.dtype(np.int64))._cast(whole_dtype(dtype, np.int64))


def randint_like(input: TensorLike, low: int, high: int, seed: int | None = None, *, dtype: TensorDType = None
                ) -> Tensor:
    """``randint`` in the shape of a tensor, and in its dtype or another."""
    x = tensor(input)
    target = whole_dtype(dtype, x._dt)
    if target.kind not in "iu":
        raise ArgumentError(f"randint_like: dtype must be an integer dtype, got {target}")
    return randint(low, high, x.shape, dtype=target)


def rand(*size: AnyShape, dtype: TensorDType = None, seed: int | None = None) -> Tensor:
    """Uniform values from 0 to before 1; the shape is given as arguments, or as one tuple."""
    return _uniform(_shape(size), whole_dtype(dtype, _F32))


def rand_like(input: TensorLike, seed: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """``rand`` in the shape of a tensor, and in its dtype or another."""
    x = tensor(input)
    return _uniform(x.shape, whole_dtype(dtype, x._dt))


def randn(*size: AnyShape, dtype: TensorDType = None, seed: int | None = None) -> Tensor:
    """Standard normal values; the shape is given as arguments, or as one tuple."""
    return standard_normal(_shape(size))._cast(whole_dtype(dtype, _F32))


def randn_like(input: TensorLike, seed: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """``randn`` in the shape of a tensor, and in its dtype or another."""
    x = tensor(input)
    return standard_normal(x.shape)._cast(whole_dtype(dtype, x._dt))


def randperm(n: int | Tensor, seed: int = 0, offset: int = 0, dtype: TensorDType = None) -> Tensor:
    """A random permutation of the integers below ``n``; int64 by default."""
    count = int(n)
    if not count:
        return tensor(np.zeros(0, whole_dtype(dtype, np.int64)))
    return ops._shuffle(create(get("_arange"), start=0, stop=count, dtype=whole_dtype(dtype, np.int64)))


def shuffle(x: TensorLike, seed: int | None = None) -> Tensor:
    """The slices along the first axis in random order."""
    return ops._shuffle(live(x))


def bernoulli(input: TensorLike, p: Tensor | Number = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability ``p``, 0 otherwise, in the shape and dtype of ``input``."""
    x = tensor(input)
    if is_number(p) and not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli: p must be from 0 to 1, got {p}")
    return (_uniform(x.shape) < p)._cast(x._dt)


def multinomial(input: TensorLike, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Indices along the last axis, drawn with probabilities proportional to the elements; int32.

    Parameters
    ----------
    replacement : bool
        Whether an index may be drawn twice.
    """
    x = as_floating(input)
    if x.ndim not in (1, 2):
        raise ShapeError(f"multinomial: expected one or two axes, got shape {x.shape}")
    if replacement:
        return ops._sample_multinomial(live(x), shape=(int(num_samples),), dtype=np.dtype(np.int32))
    if num_samples > x.shape[-1]:
        raise ArgumentError(f"multinomial: {num_samples} different indices cannot be drawn from {x.shape[-1]}")
    tiny = float(np.finfo(np.float32).tiny)  # an exponential race
    race = ops.log(where(x > 0, x, tiny)) - ops.log(-ops.log(ops.clip(_uniform(x.shape), a_min=tiny, a_max=1 - 6e-8)))
    return topk(where(x > 0, race, -math.inf), int(num_samples))[1]


# --------------------------------------------------------------------------------------------------- dropout


def _dropout(name: str, axes: tuple[int, ...], doc: str) -> Callable[..., Tensor]:
    def function(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
        if not is_number(p) or not 0 <= p <= 1:
            raise ArgumentError(f"{name}: p must be from 0 to 1, got {p!r}")
        x = tensor(input)
        if not training or p == 0:
            return x
        if axes and not 2 <= x.ndim - len(axes) + 1 <= 3:
            raise ShapeError(f"{name}: expected {len(axes) + 1} or {len(axes) + 2} axes, got shape {x.shape}")
        x = as_floating(x)
        if p == 1:
            return ops.zeros_like(x)
        return ops.Dropout(x, p=float(p), mode="always", axes=tuple(axis % x.ndim for axis in axes))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def drop_elements(x: Tensor, keep: float, alone: Collection[int]) -> tuple[Tensor, Tensor]:
    """Elements kept with a probability and divided by it, the others 0; and the mask of the kept ones.

    The mask is drawn for each index of the ``alone`` axes, and shared along the other axes.
    """
    shape = tuple(dim if i in alone else 1 for i, dim in enumerate(x.shape))
    mask = ops._npi_less_scalar(_uniform(shape), scalar=float(keep))
    mask = mask if shape == x.shape else ops._np_broadcast_to(mask, shape=x.shape)
    return x * mask._cast(x._dt) * (1 / keep if keep else 0.0), mask


_plain = _dropout("dropout", (), "")


def dropout(input: TensorLike, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Each element set to zero with probability ``p`` and the others divided by ``1 - p``, when ``training``.

    N. Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting, 2014.
    """
    return _plain(input, p, training)


dropout1d = _dropout("dropout1d", (-1,), "Whole channels of sequences set to zero; see ``dropout``.")
dropout2d = _dropout("dropout2d", (-2, -1), "Whole channels of images set to zero; see ``dropout``.")
dropout3d = _dropout("dropout3d", (-3, -2, -1), "Whole channels of volumes set to zero; see ``dropout``.")


def gumbel_softmax(logits: TensorLike, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """The softmax of scores with Gumbel noise: a differentiable random sample, close to one-hot.

    Parameters
    ----------
    tau : float
        Temperature; the smaller, the closer to one-hot.
    hard : bool
        Whether the result is one-hot, with the gradient of the soft one.
    """
    x = as_floating(logits)
    if tau <= 0:
        raise ArgumentError(f"gumbel_softmax: tau must be above 0, got {tau}")
    tiny = float(np.finfo(np.float32).tiny)
    numbers = _uniform(x.shape, x._dt if x._dt.itemsize > 2 else np.dtype(np.float32))  # float16 cannot represent it
    noise = -ops.log(-ops.log(numbers * (1 - tiny) + tiny))
    soft = ops.softmax((live(x) + noise._cast(x._dt)) / tau, axis=dim)
    if not hard:
        return soft
    largest = soft == ops._np_max(soft, axis=dim, keepdims=True)
    return ops.BlockGrad(largest._cast(x._dt) - soft) + soft
