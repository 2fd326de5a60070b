"""Arrays that executors are bound to: by name, new ones, and others in new shapes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np

from opreg.core.spec import Shape, known, show, size
from opreg.errors import ShapeError, did_you_mean
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.typing import Array, DTypeLike

__all__ = ["Gradients", "Named", "Requests", "Values", "front", "reshaped", "zeros"]

#: Arrays of variables as a caller gives them: in their order, or by name.
Values: TypeAlias = Sequence[NDArray | np.ndarray] | Mapping[str, NDArray | np.ndarray]

#: Where gradients of variables go, of some: None, or a name that is left out, stands for none.
Gradients: TypeAlias = Sequence[NDArray | None] | Mapping[str, NDArray | None]

#: What is asked of gradients: one word for all, one for each, or some by name.
Requests: TypeAlias = str | Sequence[str] | Mapping[str, str]

A = TypeVar("A", bound=NDArray | None)


class Named(dict[str, A]):
    """Arrays by name, whose missing names are answered with the nearest there are."""

    def __init__(self, what: str, names: Sequence[str], arrays: Sequence[A]):
        super().__init__(zip(names, arrays))
        self.what = what

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f"{self.what}: there is no {name!r}. {did_you_mean(name, self)}")

    def __setitem__(self, name: str, value: A) -> None:
        warnings.warn(f"{self.what}[{name!r}] = … changes this dict alone, as in MXNet, not what is bound: write into "
                      f"the array, {self.what}[{name!r}][:] = …", UserWarning, stacklevel=2)
        super().__setitem__(name, value)


def zeros(ctx: Context, shape: Shape, dtype: DTypeLike) -> Array:
    """A raw array of zeros."""
    return ctx.backend.zeros(tuple(shape), np.dtype(dtype), ctx.device_id)


def reshaped(name: str, old: NDArray, shape: Shape | None, allowed: bool, larger: bool) -> NDArray:
    """An array for a variable of another shape: the front of the old one, if that is large enough."""
    if not known(shape):
        raise ShapeError(f"reshape: the shape of {name} does not follow; give it too")
    if old.shape == shape:
        return old
    if not allowed:
        raise ShapeError(f"reshape: the shape of {name}, which was not named, changes from {show(old.shape)} to "
                         f"{show(shape)}; allow it with partial_shaping=True")
    if size(shape) > old.size:
        if not larger:
            raise ShapeError(f"reshape: {name} of shape {show(shape)} is larger than its array {show(old.shape)}; "
                             "allow it with allow_up_sizing=True")
        return NDArray(zeros(old.context, shape, old.dtype), old.context)
    return front(old, shape)


def front(old: NDArray, shape: Shape) -> NDArray:
    """The first numbers of an array, in another shape."""
    return NDArray(old._data.reshape(-1)[:size(shape)].reshape(shape), old.context)
