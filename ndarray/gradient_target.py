"""Gradient targets: arrays from which a compiled update reads gradients, so that backward can compute them in place.

A backward pass writes a gradient into its target only if the array that was returned there before is dead: an array
that a caller still holds, or a view of it, is never overwritten. If it is held, the next gradient is computed in new
memory and copied.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from opreg.core.host_memory import LARGE, empty
from opreg.core.spec import Spec
from opreg.typing import Array

__all__ = ["GradientTarget"]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class GradientTarget:
    """The memory of one gradient at a time. Its reader holds the array; this object does not.

    A backward pass or a copy takes the only token while it writes, so that no other thread does.

    Attributes
    ----------
    shape, dtype
        The shape and dtype of the gradient.
    """

    __slots__ = ("shape", "dtype", "_array", "_tokens", "_base", "_returned")

    def __init__(self, array: Array):
        self.shape, self.dtype = array.shape, array.dtype
        self._array = weakref.ref(array)
        self._tokens = [None]
        # Weak references to the array that was returned last, and to the base of its views.
        self._base: Any = None
        self._returned: Any = None

    @staticmethod
    def fits(spec: Spec) -> bool:
        """Whether a gradient is large enough for a target."""
        return spec.shape is not None and spec.dtype in _DTYPES and math.prod(spec.shape) * spec.dtype.itemsize >= LARGE

    @classmethod
    def of(cls, spec: Spec) -> tuple[Array, GradientTarget]:
        """A new array of zeros, and its target."""
        array = empty(spec.shape, spec.dtype)  # type: ignore[arg-type]  # it fits
        array.fill(0)
        return array, cls(array)

    def reserve(self) -> Array | None:
        """The array to write, if no caller holds the last gradient; else None. Call ``release`` afterwards."""
        try:
            self._tokens.pop()
        except IndexError:
            return None
        array = self._array()
        if array is None or (self._base is not None and self._base() is not None):
            self._tokens.append(None)
            return None
        return array

    def release(self) -> None:
        """Return the token."""
        self._tokens.append(None)

    def fill(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Compute a function of arrays into the array, or into new memory if a caller holds the last gradient."""
        array = self.reserve()
        if array is None:
            return function(*arrays)
        # Views, and views of views, have an array over a buffer as their base.
        base = np.frombuffer(array.data, array.dtype)
        handed = base.reshape(array.shape)
        self._base, self._returned = weakref.ref(base), weakref.ref(handed)
        self.release()
        function(*arrays, out=handed)
        return handed

    def holds(self, data: object) -> bool:
        """Whether an array is the one that was returned last."""
        return self._returned is not None and self._returned() is data
