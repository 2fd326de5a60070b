"""In-place methods of tensors: ``x.add_(y)`` is ``x[...] = x + y``, and returns the tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...cells.tensor import Tensor
from ...cells.typing import Number, TensorLike
from . import activation, indexing, linalg, math, random

__all__ = ["METHODS", "add", "sub"]


def _method(name: str, function: Callable[..., Tensor], doc: str = "") -> Callable[..., Tensor]:
    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        self[...] = function(self, *args, **keywords)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc or f"``x[...] = ops.{function.__name__}(x, …)``; gives the tensor itself."
    return method


def add(x: Tensor, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
    """The sum with ``alpha`` times another tensor."""
    return math.add(x, other if alpha == 1 else math.mul(other, alpha))


def sub(x: Tensor, other: TensorLike, *, alpha: Tensor | Number = 1) -> Tensor:
    """The difference from ``alpha`` times another tensor."""
    return math.sub(x, other if alpha == 1 else math.mul(other, alpha))


def fill_(self: Tensor, value: Tensor | Number) -> Tensor:
    """Write a number to all elements; returns the tensor."""
    self[...] = value
    return self


def copy_(self: Tensor, src: TensorLike, non_blocking: bool = False) -> Tensor:
    """Copy the elements of a tensor; returns the tensor. ``non_blocking`` has no effect."""
    self[...] = src
    return self


def zero_(self: Tensor) -> Tensor:
    """Write zero to all elements; returns the tensor."""
    self[...] = 0
    return self


def uniform_(self: Tensor, from_: float = 0, to: float = 1) -> Tensor:
    """Write uniform values from ``from_`` to before ``to``; returns the tensor."""
    self[...] = random.uniform(self.shape, from_, to)
    return self


def normal_(self: Tensor, mean: Number = 0, std: Number = 1) -> Tensor:
    """Write normal values with a mean and a standard deviation; returns the tensor."""
    self[...] = random.normal(self.shape, mean, std)
    return self


#: Functions that become methods, by name.
METHODS: dict[str, Callable] = {
    **{f"{function.__name__}_": _method(f"{function.__name__}_", function) for function in (
        math.mul, math.div, math.floor_divide, math.remainder, math.exp, math.log, math.tanh, math.floor, math.sign,
        math.clamp, math.erfinv, math.masked_fill, activation.sigmoid, indexing.index_add, indexing.index_fill,
        indexing.scatter, linalg.addmm)},
    "add_": _method("add_", add, "Add numbers, times ``alpha``; gives the tensor itself."),
    "sub_": _method("sub_", sub, "Subtract numbers, times ``alpha``; gives the tensor itself."),
    "fill_": fill_, "copy_": copy_, "zero_": zero_, "uniform_": uniform_,
    "normal_": normal_}
