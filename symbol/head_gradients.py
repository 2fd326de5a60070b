"""Arrivals: how the gradients of an executor's outputs come in."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from opreg.core import threads
from opreg.core.spec import show
from opreg.errors import ArgumentError, ShapeError, did_you_mean
from opreg.ndarray.ndarray import NDArray

from .program import Bound

__all__ = ["Arrivals", "listed"]

# Bytes of a gradient that is read where it lies: from here on a copy takes as long as a new plan soon.
_LARGE = 1 << 20


class Arrivals:
    """Gradients of outputs, copied to where a plan reads them.

    A large one is read where its owner keeps it once the same array has come twice, as from another executor: the plan
    is made anew over its memory. When another array comes the plan gets memory of its own again, for good.

    Parameters
    ----------
    bound : Bound
        Whose ``head_grads`` these are.
    names : sequence of str
        Of the outputs.
    """

    def __init__(self, bound: Bound, names: Sequence[str]):
        self._bound, self._names = bound, names
        self._targets = bound.head_grads
        self._only = self._targets[0] if len(self._targets) == 1 else None
        self._last: Any = None  # a weak reference to the array that came last
        self._lent = False
        #: Whether the plan may yet read an array of the caller's. Where forward runs a second time it has to compute
        #: the same.
        self.lends = isinstance(self._only, np.ndarray) and self._only.nbytes >= _LARGE and not any(
            node.op.random or node.op.per_instance or node.op.has_side_effect or node.op.mutates
            for node in bound.graph.nodes if node.op is not None)

    def take(self, read: set[int], given: Any) -> bool:
        """Take the gradients for a plan that reads the arrays of these identities.

        Returns
        -------
        bool
            Whether the plan, and what its forward has left, can no longer be used.
        """
        target = self._only
        if target is not None and given.__class__ is NDArray:
            data = given._data
            if data is target:
                return False
            if data.__class__ is np.ndarray and data.dtype is target.dtype and data.shape == target.shape and (
                    not self._lent):
                threads.copy(target, data)
                return False
        if not self._lent:
            self._copy(self._targets, read, given)
            return False
        own = np.empty_like(target)
        self._copy([own], {id(own)} if id(target) in read else set(), given)
        self._only = self._targets[0] = own
        self._lent = False
        return True

    def settle(self, given: Any) -> bool:
        """Decide, when backward has run, where the gradient is read from now on; True if the plan must be made anew."""
        data, target = getattr(given, "_data", None), cast(np.ndarray, self._only)
        fits = data.__class__ is np.ndarray and data.dtype is target.dtype and data.shape == target.shape and (
            data.flags.c_contiguous and data.flags.aligned)
        again = self._last is not None and self._last() is data
        self._last = weakref.ref(data) if fits else None
        if not (fits and again):
            return False
        self.lends = False  # once is enough: a plan takes long to make
        if self._written(data):
            return False
        self._only = self._targets[0] = data
        self._lent = True
        return True

    def _written(self, data: Any) -> bool:
        """Whether runs write to an array's memory."""
        bound = self._bound
        written = [*bound.outputs, *bound.arrays.values(), *[array for array, _ in bound.grads.values()]]
        return any(isinstance(array, np.ndarray) and np.may_share_memory(array, data) for array in written)

    def _copy(self, targets: Sequence[Any], read: set[int], given: Any) -> None:
        names, given = self._names, listed(given, self._names)
        for i, target in enumerate(targets):
            value = given[i] if i < len(given) else None
            if target is None or getattr(value, "_data", None) is target:
                continue
            if value is None:
                if id(target) not in read:  # it leads to no argument whose gradient is kept
                    continue
                raise ArgumentError(f"backward: output {names[i]!r} comes from no loss operator, so its gradient is "
                                    "needed: give it in out_grads, or make the output a loss with MakeLoss")
            if tuple(value.shape) != target.shape:
                raise ShapeError(f"backward: the gradient of {names[i]!r} has shape {show(value.shape)}, expected "
                                 f"{show(target.shape)}")
            data = getattr(value, "_data", None)
            if data.__class__ is target.__class__ is np.ndarray and data.dtype is target.dtype:
                target[...] = data
            else:
                NDArray(target, self._bound.ctx)._store(Ellipsis, value)


def listed(given: Any, names: Sequence[str]) -> list[Any]:
    """Gradients of outputs in their order, from one, a list, or a dict by name."""
    if given.__class__ is list:
        return given
    if isinstance(given, NDArray):
        return [given]
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ArgumentError(f"backward: there is no output {name!r}. {did_you_mean(name, names)}")
        return [given.get(name) for name in names]
    return list(given or ())
