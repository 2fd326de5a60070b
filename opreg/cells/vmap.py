"""vmap: applies a function of one sample to many samples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray.autograd import VMAP

from ..core.named_errors import name_errors
from ..core.registry import ops
from ..core.spec import show
from ..errors import ArgumentError, ShapeError
from . import tree
from .batching import BatchedValue, map_samples
from .jit import Jitted
from .pullback import name_of
from .state import STATE
from .tensor import as_array, as_tensor, tensor
from .tensor_base import TensorBase
from .tree import LEAF, Structure

#: An axis, None for a value that all samples share, or a nesting of these.
Axes: TypeAlias = int | Sequence["Axes"] | dict[Any, "Axes"] | None

__all__ = ["vmap"]


class _Vmap:
    """The function that ``vmap`` returns; see there."""

    def __init__(self, fn: Callable[..., Any], in_axes: Axes, out_axes: Axes):
        if not callable(fn):
            raise ArgumentError(f"vmap: fn must be a Cell or a function, got {type(fn).__name__}")
        for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
            _check(what, axes)
        if in_axes is None:
            raise ArgumentError("vmap: in_axes is None: give the axis of samples of each input")
        self.fn = fn.function if isinstance(fn, Jitted) else fn
        self.in_axes, self.out_axes = in_axes, out_axes
        self.__name__ = f"vmap_{name_of(fn)}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        title = f"vmap of {name_of(self.fn)}"
        leaves: list[Any] = []
        structure = tree.flatten(args, leaves, lambda value: isinstance(value, np.ndarray))
        axes: list[int | None] = []
        in_axes = self.in_axes
        if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
            raise ArgumentError(f"{title}: in_axes has {len(in_axes)} members, there are {len(args)} inputs")
        _tree_axes(in_axes, structure, axes, f"{title}: in_axes")
        values = [tensor(leaf) if isinstance(leaf, np.ndarray) else as_tensor(leaf) for leaf in leaves]
        sizes: dict[int, int] = {}
        for i, (value, axis) in enumerate(zip(values, axes)):
            if axis is not None:
                what = f"{title}: tensor {i} of the inputs, {show(value.shape)}"
                axes[i] = axis = _axis(axis, len(value.shape), what)
                sizes[i] = value.shape[axis]
        if not sizes:
            raise ArgumentError(f"{title}: no input has an axis of samples: each of them is None in in_axes or not a "
                                f"tensor")
        first, size = next(iter(sizes.items()))
        for i, count in sizes.items():
            if count != size:
                raise ShapeError(f"{title}: tensor {i} of the inputs has {count} samples along axis {axes[i]} of "
                                 f"{show(values[i].shape)}, tensor {first} has {size} along axis {axes[first]} of "
                                 f"{show(values[first].shape)}")
        batched_values = [BatchedValue(value if axis is None else _move_axis(value, axis, 0), axis is not None)
                          for value, axis in zip(values, axes)]

        if STATE.trace is not None and STATE.trace.reads.observer is not None:
            STATE.trace.reads.observer.note_use(self.fn)

        def function(*samples: Any) -> Any:
            return self.fn(*tree.rebuild(structure, iter(samples)), **kwargs)

        results, nested = map_samples(function, batched_values, size, title)
        out_axes: list[int | None] = []
        _tree_axes(self.out_axes, nested, out_axes, f"{title}: out_axes")
        outs = [_place_samples(result, axis, size, f"{title}: output {i}")
                for i, (result, axis) in enumerate(zip(results, out_axes))]
        if any(not isinstance(leaf, (TensorBase, np.ndarray)) for leaf in leaves):
            outs = list(map(as_array, outs))
        return tree.rebuild(nested, iter(outs))


def _check(what: str, axes: object) -> None:
    """Refuse a value that is no axis and no nesting of axes."""
    if isinstance(axes, (tuple, list)):
        for part in axes:
            _check(what, part)
    elif isinstance(axes, dict):
        for part in axes.values():
            _check(what, part)
    elif axes is not None and (isinstance(axes, bool) or not isinstance(axes, (int, np.integer))):
        raise ArgumentError(f"vmap: {what} must be an int, None, or a tuple, list or dict of these, got {axes!r}")


def _tree_axes(axes: Any, structure: Structure, tensor_axes: list[int | None], title: str) -> None:
    """The axis of each tensor in a tree."""
    if structure is LEAF:
        if isinstance(axes, (tuple, list, dict)):
            raise ArgumentError(f"{title} has {axes!r} in the place of one tensor")
        tensor_axes.append(None if axes is None else int(axes))
    elif structure[0] == "constant":
        return
    elif axes is None or isinstance(axes, (int, np.integer)):
        tensor_axes += [None if axes is None else int(axes)] * tree.count(structure)
    else:
        kind, keys, parts = *structure[:2], structure.members
        if kind == "mutable":
            _tree_axes(axes, parts[0], tensor_axes, title)
            return
        if isinstance(axes, dict):
            if kind != "dict" or set(axes) != set(keys):
                raise ArgumentError(f"{title} has a dict of {', '.join(map(str, axes))} in the place of "
                                    + (f"one of {', '.join(map(str, keys))}" if kind == "dict" else f"a {kind}"))
            axes = [axes[key] for key in keys]
        if len(axes) != len(parts):
            raise ArgumentError(f"{title} has {len(axes)} axes in the place of {len(parts)} values")
        for part, inner in zip(axes, parts):
            _tree_axes(part, inner, tensor_axes, title)
        for part in structure[2][len(parts):]:  # attributes
            _tree_axes(None, part, tensor_axes, title)


def _axis(axis: int, rank: int, title: str) -> int:
    if not -rank <= axis < rank:
        raise ShapeError(f"{title}, has no axis {axis}")
    return axis % rank


def _move_axis(value: Any, source: int, target: int) -> Any:
    """A tensor with one axis moved to another position."""
    if source == target:
        return value
    order = [i for i in range(len(value.shape)) if i != source]
    order.insert(target, source)
    return ops.transpose(value, axes=tuple(order))


def _place_samples(result: BatchedValue, axis: int | None, size: int, title: str) -> Any:
    """A result with its samples along the requested axis."""
    value, batched = result
    if axis is None:
        if batched:
            raise ArgumentError(f"{title} differs from sample to sample: out_axes must say along which axis they lie, "
                                "not None")
        return value
    target = _axis(axis, len(value.shape) + (not batched), f"{title}, of {len(value.shape) + (not batched)} axes")
    if not batched:
        shape = value.shape
        value = value.reshape((1, *shape))
        value = ops.broadcast_to(value, shape=(size, *shape)) if size else value[0:0]
    return _move_axis(value, 0, target)


@VMAP.provide
def vmap(fn: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """A function that applies a function of one sample to many samples at once.

    The function is traced once, with values that have the shape of a sample and no elements; each of its operators is
    then applied to all samples. It may compute gradients, and gradients may be computed of it.

    Parameters
    ----------
    fn : Cell or callable
        A function that returns a tensor, or a nesting of tensors. All samples share arrays from outside, such as
        weights.
    in_axes : int, None, or nesting of them
        The axis of samples in each input; None for an input that all samples share. A single axis applies to all
        inputs, and an axis in the place of an input to all tensors in it. All samples share keyword arguments.
    out_axes : int, None, or nesting of them
        The axis of samples in each output; None for an output that all samples share.

    Raises
    ------
    ShapeError
        When inputs differ in the number of samples, or lack the axis.
    ArgumentError
        When no input has samples, or the nesting of axes does not fit the inputs or outputs.
    TraceError
        When the function reads values of a sample, or shapes that depend on them.

    Notes
    -----
    If an input is an NDArray, the results are NDArrays.

    Users' operators use their rule ``@op.vmap``, or their traced body. Others run once for each sample, with a warning.
    Random operators draw separate values for each sample. Backward hooks are called once, while the function is traced,
    for gradients that the function itself computes; they are not called for gradients of the mapped function.

    Examples
    --------
    >>> from opreg import Tensor
    >>> x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> vmap(lambda row: row.sum())(x)
    Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  7.00000000e+00])
    >>> vmap(lambda a, b: a * b, in_axes=(0, None), out_axes=1)(x, Tensor([1.0, 10.0])).asnumpy()
    array([[ 1.,  3.],
           [20., 40.]], dtype=float32)
    """
    return _Vmap(fn, in_axes, out_axes)


name_errors(__name__, globals(), __all__)
