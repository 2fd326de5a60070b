"""Head gradients: gradients of the outputs of an executor, which are bound with it or given to ``backward``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from opreg.core import threads
from opreg.core.spec import Spec, is_known, show, size, unify
from opreg.core.versions import wrote
from opreg.errors import ArgumentError, DeviceError, DTypeError, ShapeError, did_you_mean, other_count
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray, array
from opreg.typing import Array

from .arrays import front

__all__ = ["HeadGradients", "OutGrads", "check_head_gradients", "order_gradients"]

#: Gradients of outputs that a caller gives: one array for one output, a list in the order of the outputs, or a dict by
#: name.
OutGrads: TypeAlias = NDArray | np.ndarray | Sequence[NDArray | np.ndarray | None] | Mapping[
    str, NDArray | np.ndarray | None] | None


def order_gradients(what: str, gradients: OutGrads, names: Sequence[str]) -> list[NDArray | np.ndarray | None]:
    """Gradients in the order of the outputs. The list may be shorter than that of the outputs."""
    if gradients.__class__ is list:
        return gradients
    if isinstance(gradients, (NDArray, np.ndarray)):
        return [gradients]
    if isinstance(gradients, Mapping):
        for name in gradients:
            if name not in names:
                raise ArgumentError(f"{what}: there is no output {name!r}. {did_you_mean(name, names)}")
        return [gradients.get(name) for name in names]
    if gradients is not None and not isinstance(gradients, Iterable):
        raise ArgumentError(f"{what}: expected an NDArray, a list, or a dict by output name, got "
                            f"{type(gradients).__name__}")
    return list(gradients or ())


def check_head_gradients(gradients: OutGrads, names: Sequence[str], specs: Sequence[Spec], ctx: Context,
                         reshaped: bool = False) -> list[NDArray | None]:
    """The bound gradient of each output, an array that a plan can read in place; None for an output without one.

    A reshaped executor reads the first elements of arrays, and drops arrays that are too small.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError, DeviceError
        For an array whose kind, shape, dtype or device is not that of its output.
    """
    listed = order_gradients("head_grads", gradients, names)
    if len(listed) > len(names):
        raise ArgumentError(f"head_grads: {other_count(names, len(listed), 'array')}")
    fitting: list[NDArray | None] = []
    for name, gradient, (shape, dtype) in zip(names, [*listed, *[None] * len(names)], specs):
        if isinstance(gradient, np.ndarray):
            gradient = array(gradient, ctx=ctx, dtype=gradient.dtype)
        if gradient is not None and reshaped and shape is not None and is_known(shape):
            gradient = None if size(shape) > gradient.size else gradient if gradient.shape == shape else front(
                gradient, shape)
        if gradient is not None:
            _check(name, gradient, Spec(shape, dtype), ctx)
        fitting.append(gradient)
    return fitting


def _check(name: str, gradient: NDArray, spec: Spec, ctx: Context) -> None:
    if not isinstance(gradient, NDArray):
        raise ArgumentError(f"head_grads: {name} must be an NDArray, got {type(gradient).__name__}")
    try:
        unify(gradient.shape, spec.shape)
    except ShapeError:
        raise ShapeError(f"head_grads: {name} has shape {show(gradient.shape)}, its output "
                         f"{show(spec.shape)}") from None
    if gradient._data.dtype != spec.dtype:
        raise DTypeError(f"head_grads: {name} has dtype {gradient._data.dtype}, its output {spec.dtype}")
    if gradient.context != ctx:
        raise DeviceError(f"head_grads: {name} lives on {gradient.context}, expected {ctx}; move it with as_in_context")


class HeadGradients:
    """The arrays from which plans read the gradients of outputs. Gradients given to ``backward`` are copied into them.

    Parameters
    ----------
    targets : list of (array or None)
        The arrays that plans read; None for losses.
    bound : list of (NDArray or None)
        The arrays that the caller has bound; None for the others.
    names : sequence of str
        The names of the outputs.
    ctx : Context
        The device of the arrays.
    """

    def __init__(self, targets: Sequence[Array | None], bound: Sequence[NDArray | None], names: Sequence[str],
                 ctx: Context):
        self._targets, self._names, self._ctx = targets, names, ctx
        self._bound = [gradient is not None for gradient in bound]
        self._only = targets[0] if len(targets) == 1 else None
        #: Whether every needed gradient is bound, so that ``backward`` needs no arguments.
        self.complete = all(target is None or is_bound for target, is_bound in zip(targets, self._bound))

    def take(self, read: set[int], gradients: OutGrads) -> None:
        """Copy gradients into the arrays that a plan reads; ``read`` holds the identities of these."""
        target = self._only
        if target is not None and gradients.__class__ is NDArray:
            data = gradients._data
            if data is target:
                return
            if (data.__class__ is target.__class__ is np.ndarray and data.dtype is target.dtype
                    and data.shape == target.shape):
                threads.copy(target, data)
                if self._bound[0]:
                    wrote(target)
                return
        names, listed = self._names, order_gradients("backward", gradients, self._names)
        for i, target in enumerate(self._targets):
            gradient = listed[i] if i < len(listed) else None
            if target is None or getattr(gradient, "_data", None) is target:
                continue
            if gradient is None:
                if self._bound[i] or id(target) not in read:  # no requested gradient depends on this output
                    continue
                raise ArgumentError(f"backward: output {names[i]!r} comes from no loss operator, so backward needs its "
                                    f"output gradient: pass it in out_grads, bind it with head_grads, or make the "
                                    f"output a loss "
                                    "with MakeLoss")
            if not hasattr(gradient, "shape"):
                raise ArgumentError(f"backward: the gradient of {names[i]!r} must be an NDArray, got "
                                    f"{type(gradient).__name__}")
            if tuple(gradient.shape) != target.shape:
                raise ShapeError(f"backward: the gradient of {names[i]!r} has shape {show(gradient.shape)}, expected "
                                 f"{show(target.shape)}")
            values = getattr(gradient, "_data", None)
            if values.__class__ is target.__class__ is np.ndarray and values.dtype is target.dtype:
                target[...] = values
                wrote(target)
            else:
                NDArray(target, self._ctx)._store(Ellipsis, gradient)
