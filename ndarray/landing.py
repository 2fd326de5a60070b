"""Landings: where the gradient of an array is read, so that it may be computed there instead of copied there.

A compiled update reads gradients at places that it keeps. Gradients of a backward pass go to such a place if the
one handed out there before is free: an array, or a view of one, that somebody still holds is never written again.
A caller that holds one longer loses nothing; the next gradient then lies elsewhere, and is copied.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.core.host_memory import LARGE, empty
from opreg.core.spec import Spec
from opreg.typing import Array

__all__ = ["Landing"]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Landing:
    """A place that one gradient at a time lies in; who reads it there holds the array, this does not.

    A writer, a backward pass or a copy, takes the only token meanwhile, so that no other thread writes.

    Attributes
    ----------
    shape, dtype
        Of what may lie there.
    """

    __slots__ = ("shape", "dtype", "_array", "_tokens", "_base", "_handed")

    def __init__(self, array: Array):
        self.shape, self.dtype = array.shape, array.dtype
        self._array = weakref.ref(array)
        self._tokens = [None]
        # Arrays handed out, and owners of arrays made of them, as long as they exist.
        self._base: Any = None
        self._handed: Any = None

    @staticmethod
    def fits(spec: Spec) -> bool:
        """Whether a gradient is worth a place of its own."""
        return spec.shape is not None and spec.dtype in _DTYPES and math.prod(spec.shape) * spec.dtype.itemsize >= LARGE

    @classmethod
    def of(cls, spec: Spec) -> tuple[Array, Landing]:
        """An array of zeros, and itself as a landing."""
        array = empty(spec.shape, spec.dtype)  # type: ignore[arg-type]  # it fits
        array.fill(0)
        return array, cls(array)

    def reserve(self) -> Array | None:
        """The array, to be written, if nobody has what is in it; ``release`` it then."""
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
        """Let others write again."""
        self._tokens.append(None)

    def fill(self, function: Callable[..., Array], arrays: Sequence[Array]) -> Array:
        """Compute a function of arrays into the reserved buffer if nobody references its contents, else anywhere."""
        array = self.reserve()
        if array is None:
            return function(*arrays)
        # An array over a buffer is what views of it name as their base, and so do views of views.
        base = np.frombuffer(array.data, array.dtype)
        handed = base.reshape(array.shape)
        self._base, self._handed = weakref.ref(base), weakref.ref(handed)
        self.release()
        function(*arrays, out=handed)
        return handed

    def holds(self, data: object) -> bool:
        """Whether an array is what was handed out last."""
        return self._handed is not None and self._handed() is data
