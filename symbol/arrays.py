"""Arrays that an executor is bound to: access by name, new arrays of zeros, and views in other shapes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from opreg.backends.devices import copier_to
from opreg.core.graph import Graph
from opreg.core.mode import quiet
from opreg.core.settings import named_methods
from opreg.core.spec import Shape, is_known, show, size
from opreg.core.versions import wrote
from opreg.errors import ArgumentError, ShapeError, WrongNameError, did_you_mean
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.typing import Array, DTypeLike

from .naming import output_name

__all__ = ["BoundArrays", "Gradients", "ArrayList", "Named", "Requests", "Values", "front", "reshape_array", "zeros",
           "zeros_in_shape"]

#: Arrays of variables that a caller gives, in the order of the variables or by name.
Values: TypeAlias = Sequence[NDArray | np.ndarray] | Mapping[str, NDArray | np.ndarray]

#: Arrays for gradients of variables. A variable whose array is None, or whose name is left out, gets no gradient.
Gradients: TypeAlias = Sequence[NDArray | None] | Mapping[str, NDArray | None]

#: Gradient requests (``write``, ``add``, ``null``): one for all variables, a list with one for each, or some by name.
Requests: TypeAlias = str | Sequence[str] | Mapping[str, str]

A = TypeVar("A", bound=NDArray | None)


class Named(dict[str, A]):
    """Arrays by name; the error for a missing name suggests the nearest one."""

    def __init__(self, what: str, names: Sequence[str], arrays: Sequence[A]):
        super().__init__(zip(names, arrays))
        self.what = what

    def __missing__(self, name: str) -> NoReturn:
        raise WrongNameError(f"{self.what}: there is no {name!r}. {did_you_mean(name, self)}")

    def __setitem__(self, name: str, value: A) -> None:
        warnings.warn(f"{self.what}[{name!r}] = … changes only this dict, as in MXNet, and not the bound array: write "
                      f"into the array, {self.what}[{name!r}][:] = …", UserWarning, stacklevel=2)
        super().__setitem__(name, value)


class ArrayList(list[A]):
    """A list of arrays, which warns when an item is replaced: the executor would not see that."""

    def __init__(self, what: str, arrays: Iterable[A]):
        super().__init__(arrays)
        self.what = what

    def __setitem__(self, index: Any, value: Any) -> None:
        warnings.warn(f"{self.what}[{index!r}] = … changes only this list, and not the bound array: write into the "
                      f"array, {self.what}[{index!r}][:] = …", UserWarning, stacklevel=2)
        super().__setitem__(index, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def zeros(ctx: Context, shape: Shape, dtype: DTypeLike) -> Array:
    """A raw array of zeros."""
    return ctx.backend.zeros(tuple(shape), np.dtype(dtype), ctx.device_id)


def zeros_in_shape(old: NDArray, shape: Shape) -> NDArray:
    """Zeros like an array in another shape, on its context and in its storage type."""
    return NDArray(zeros(old.context, shape, old.dtype), old.context).tostype(old.stype)


def reshape_array(name: str, old: NDArray, shape: Shape | None, allowed: bool, larger: bool) -> NDArray:
    """An array for a variable with a new shape: a part of the old array, if that is large enough, or else a new
    array."""
    if not is_known(shape):
        raise ShapeError(f"reshape: the shape of {name} cannot be inferred; give it, too")
    if old.shape == shape:
        return old
    if not allowed:
        raise ShapeError(f"reshape: the shape of {name}, which was not named, changes from {show(old.shape)} to "
                         f"{show(shape)}; allow it with partial_shaping=True")
    if size(shape) > old.size:
        if not larger:
            raise ShapeError(f"reshape: {name} of shape {show(shape)} is larger than its array {show(old.shape)}; "
                             "allow it with allow_up_sizing=True")
        return zeros_in_shape(old, shape)
    return zeros_in_shape(old, shape) if old._sparse else front(old, shape)


def front(old: NDArray, shape: Shape) -> NDArray:
    """The first elements of an array, as a view in another shape."""
    return NDArray(old._data.reshape(-1)[:size(shape)].reshape(shape), old.context)


@named_methods()
class BoundArrays:
    """The arrays that a graph is bound to, in their order and by name.

    Parameters
    ----------
    graph : Graph
    ctx : Context
    args, grads, reqs, aux
        Arguments, their gradients and gradient requests, and auxiliary states, in the order of ``list_arguments`` and
        ``list_auxiliary_states``.
    head_grads : list of (NDArray or None)
        Bound gradients of the outputs; None for those that are not bound.
    """

    def __init__(self, graph: Graph, ctx: Context, args: list[NDArray], grads: list[NDArray | None], reqs: list[str],
                 aux: list[NDArray], head_grads: list[NDArray | None]):
        self._ctx, self._reqs, self.head_grads = ctx, reqs, head_grads
        self._arguments, self._auxiliary = graph.variables()
        self._output_names = [output_name(entry) for entry in graph.heads]
        self.arg_arrays: list[NDArray] = ArrayList("arg_arrays", args)
        self.grad_arrays: list[NDArray | None] = ArrayList("grad_arrays", grads)
        self.aux_arrays: list[NDArray] = ArrayList("aux_arrays", aux)
        self.outputs: list[NDArray] = []
        self._dicts: dict[str, Named[Any]] = {}
        self._staging: dict[str, Callable[[np.ndarray], None] | None] = {}  # copies from host to device, by argument

    @property
    def _keeps_gradients(self) -> bool:
        return any(grad is not None and req != "null" for grad, req in zip(self.grad_arrays, self._reqs))

    def _dict(self, what: str, named: Iterable[str], arrays: Sequence[A]) -> Named[A]:
        """Arrays by name. The dict is made once, since programs ask for it again for every array."""
        if what not in self._dicts:
            names = list(named)
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ArgumentError(f"{what}: the name {min(twice)!r} occurs twice; use the list instead")
            self._dicts[what] = Named(what, names, arrays)
        return self._dicts[what]

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """Arguments by name."""
        return self._dict("arg_dict", (node.name for node in self._arguments), self.arg_arrays)

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradients by argument name; None for an argument without one."""
        return self._dict("grad_dict", (node.name for node in self._arguments), self.grad_arrays)

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """Auxiliary states by name."""
        return self._dict("aux_dict", (node.name for node in self._auxiliary), self.aux_arrays)

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs by name."""
        return self._dict("output_dict", self._output_names, self.outputs)

    def _feed(self, values: Mapping[str, NDArray | np.ndarray]) -> None:
        arguments = self.arg_dict
        for name, value in values.items():
            if name not in arguments:
                raise ArgumentError(f"forward: unknown argument {name!r}. {did_you_mean(name, arguments)}")
            if not isinstance(value, (NDArray, np.ndarray)):
                raise ArgumentError(f"forward: {name} must be an NDArray or a NumPy array, got {type(value).__name__}")
            if tuple(value.shape) != arguments[name].shape:
                raise ShapeError(f"forward: {name} has shape {show(value.shape)}, but it is bound with shape "
                                 f"{show(arguments[name].shape)}; executor.reshape binds another shape")
            if not arguments[name].writable:
                arguments[name].check_writable(f"forward: {name}")
        for name, value in values.items():
            argument = arguments[name]
            if isinstance(value, NDArray) or argument._sparse or isinstance(argument._data, np.ndarray):
                argument._store(Ellipsis, value)
            else:
                self._copy_to_device(name, argument, value)

    def _copy_to_device(self, name: str, argument: NDArray, value: np.ndarray) -> None:
        """Copy an array of the host into an argument on a device, without waiting for the copy."""
        if name not in self._staging:
            ctx = argument.context
            self._staging[name] = copier_to(ctx.xp, argument._data, ctx.device_id)
        bring = self._staging[name]
        if bring is None:
            argument._store(Ellipsis, value)
        else:
            quiet(bring, value)
            wrote(argument._data)

    def _get_outputs(self) -> list[NDArray]:
        """The outputs as a new list; programs of MXNet call this name."""
        return list(self.outputs)

    def copy_params_from(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None = None,
                         allow_extra_params: bool = False) -> None:
        """Copy values into arguments and auxiliary states by name, cast to the dtype of each.

        Raises
        ------
        ArgumentError
            For a name that the graph does not have, unless ``allow_extra_params``.
        """
        todo = []
        for what, arrays, params in (("argument", self.arg_dict, arg_params),
                                  ("auxiliary state", self.aux_dict, aux_params or {})):
            if not hasattr(type(params), "items"):
                raise ArgumentError(f"copy_params_from: expected a dict of arrays, got {type(params).__name__}")
            for name, value in params.items():
                if name in arrays:
                    if tuple(value.shape) != arrays[name].shape:
                        raise ShapeError(f"copy_params_from: {name} has shape {show(value.shape)}, expected "
                                         f"{show(arrays[name].shape)}")
                    todo.append((arrays[name], value))
                elif not allow_extra_params:
                    raise ArgumentError(f"copy_params_from: there is no {what} {name!r}. {did_you_mean(name, arrays)}")
        for target, value in todo:  # only after all checks, so that an error copies nothing
            target._store(Ellipsis, value)
