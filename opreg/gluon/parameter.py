"""Parameters: arrays of weights, a copy on each of their contexts, with their gradients; and dicts of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from opreg.ndarray import autograd
from opreg.ndarray.context import Context, cpu, current_context
from opreg.ndarray.creation import zeros
from opreg.ndarray.io import load, save
from opreg.ndarray.ndarray import _STORAGE_TYPE_STR_TO_ID, NDArray, array
from opreg.symbol.symbol import Symbol, Variable

from ..core.mode import MODE
from ..errors import did_you_mean, warn
from ..train import initializer
from ..train.initializer import InitDesc, InitializerLike
from ..typing import DTypeLike
from .errors import BlockError, DeferredInitializationError
from .structure import faced

__all__ = ["Parameter", "Constant", "ParameterDict", "DeferredInitializationError", "tensor_types"]

#: Arguments of blocks.
tensor_types = (Symbol, NDArray)

#: Contexts of parameters: one, several, or the current one.
Contexts: TypeAlias = Context | Sequence[Context] | None
#: A shape in which 0 or -1 is not known yet.
Dims: TypeAlias = Sequence[int]
T = TypeVar("T")

_REQUESTS = ("write", "add", "null")
_STORAGE = tuple(kind for kind, number in _STORAGE_TYPE_STR_TO_ID.items() if number >= 0)


def _contexts(ctx: Contexts) -> list[Context]:
    """Contexts as a list; the current one by default."""
    if ctx is None:
        return [current_context()]
    return [ctx] if isinstance(ctx, Context) else list(ctx)


def _place(ctx: Context) -> tuple[str, int]:
    """The key of a parameter's context: pinned memory is the host's."""
    return "cpu" if ctx.device_type.startswith("cpu") else ctx.device_type, ctx.device_id


def known(shape: Dims | None) -> bool:
    """Whether every dimension of a shape is known.

    Examples
    --------
    >>> known((2, 3)), known((2, 0)), known(None)
    (True, False, False)
    """
    least = 0 if MODE.np_shape else 1
    return shape is not None and all(dim >= least for dim in shape)


def _open(dim: int) -> bool:
    return dim == -1 or (dim == 0 and not MODE.np_shape)


class Parameter:
    """A weight of a block: its name, shape and dtype, and once it is initialized an array for each context.

    Parameters
    ----------
    name : str
        Its whole name, with the prefix of its block.
    grad_req : {"write", "add", "null"}
        Whether a backward pass overwrites its gradient, adds to it, or leaves it out.
    shape : int or tuple of int, optional
        Its shape; 0 and -1 are dimensions that follow from the first input.
    dtype : dtype
        Its dtype, float32 by default.
    lr_mult, wd_mult : float
        What optimizers multiply learning rate and weight decay by.
    init : Initializer or str, optional
        Initial value; that of ``initialize`` where there is none.
    allow_deferred_init : bool
        Whether ``initialize`` may wait until the shape is known.
    differentiable : bool
        Whether it may have a gradient at all.
    stype, grad_stype : str
        How it is stored, and its gradient: ``default``, ``row_sparse`` or ``csr``.

    Examples
    --------
    >>> from opreg import init
    >>> weight = Parameter("weight", shape=(2, 2))
    >>> weight.initialize(init.One())
    >>> weight.data().asnumpy().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    >>> weight
    Parameter weight (shape=(2, 2), dtype=<class 'numpy.float32'>)
    """

    def __init__(self, name: str, grad_req: str = "write", shape: int | Dims | None = None,
                 dtype: DTypeLike = np.float32, lr_mult: float = 1.0, wd_mult: float = 1.0,
                 init: InitializerLike = None, allow_deferred_init: bool = False, differentiable: bool = True,
                 stype: str = "default", grad_stype: str = "default"):
        for what, value in (("grad_stype", grad_stype), ("stype", stype)):
            if value not in _STORAGE:
                raise BlockError(f"Parameter {name!r}: {what} {value!r}. {did_you_mean(str(value), _STORAGE)}")
        self.name, self.init, self.lr_mult, self.wd_mult = name, init, lr_mult, wd_mult
        self._dtype, self._stype, self._grad_stype = dtype, stype, grad_stype
        self._shape: Any = (shape,) if isinstance(shape, int) else shape
        self._allow_deferred_init, self._differentiable = allow_deferred_init, differentiable
        self._var: Symbol | None = None
        self._data: list[NDArray] | None = None
        self._grad: list[NDArray] | None = None
        self._ctx_list: list[Context] = []
        self._trainer: Any = None
        # Until the shape is known: initializer, contexts, the initializer of all, and numbers that were set.
        self._deferred_init: tuple[Any, ...] = ()
        self._grad_req = ""
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_trainer": None, "_var": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._grad is not None:  # copies of arrays are on no tape
            autograd.mark_variables(self._data or [], self._grad, self.grad_req)

    # ------------------------------------------------------------------------------------- what it is like

    @property
    def grad_req(self) -> str:
        """The request for the gradient: ``write``, ``add`` or ``null``."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in _REQUESTS:
            raise BlockError(f"Parameter {self.name!r}: grad_req must be 'write', 'add' or 'null', got {req!r}")
        req = req if self._differentiable else "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        if req == "null" and self._grad is not None:
            self._grad = None
            self._data = [each.detach() for each in self._data or ()]
        elif self._data is not None:
            self._init_grad()

    @property
    def dtype(self) -> DTypeLike:
        """The dtype, as it was given; setting it casts."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: DTypeLike) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape, None where nothing is known; one that is set must agree in what is known."""
        if self._shape is None or not MODE.np_shape:
            return self._shape
        return tuple(dim if dim != 0 else -1 for dim in self._shape)

    @shape.setter
    def shape(self, new_shape: Dims) -> None:
        old = self._shape
        if old is not None and (len(old) != len(new_shape) or not all(
                before in (-1, 0, dim) for before, dim in zip(old, new_shape))):
            raise BlockError(f"Parameter {self.name!r}: expected shape {old}, which is incompatible with given shape "
                             f"{tuple(new_shape)}")
        self._shape = new_shape

    @property
    def stype(self) -> str:
        """The storage type of its arrays."""
        return self._stype

    def _rename(self, name: str) -> None:
        """Give it another name."""
        self.name, self._var = name, None

    def _set_trainer(self, trainer: Any) -> None:
        if self._stype != "default" and self._trainer is not None and trainer is not None \
                and self._trainer is not trainer:
            raise BlockError(f"Failed to set the trainer for Parameter '{self.name}' because it was already set. More "
                             f"than one trainers for a {self._stype} Parameter is not supported.")
        self._trainer = trainer

    # -------------------------------------------------------------------------------------------- its arrays

    def _check_and_get(self, arrays: list[NDArray] | None, ctx: Any) -> Any:
        """The array of a context, of one array a context; all with ``ctx=list``."""
        if arrays is not None:
            if ctx is list:
                return arrays
            if ctx is None:
                if len(arrays) == 1:
                    return arrays[0]
                ctx = current_context()
            place = _place(ctx)
            for own, each in zip(self._ctx_list, arrays):
                if _place(own) == place:
                    return each
            raise BlockError(f"Parameter '{self.name}' was not initialized on context {ctx}. It was only initialized "
                             f"on {self._ctx_list}.")
        if self._deferred_init:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred: its shape "
                f"{self.shape} follows from the first input. Run the network on one batch first, or give in_units, "
                "in_channels and their like")
        raise BlockError(f"Parameter '{self.name}' has not been initialized: call initialize() of the block, or of "
                         "block.collect_params(); block.params leaves out those of its children")

    def data(self, ctx: Context | None = None) -> NDArray:
        """Its array on a context.

        Parameters
        ----------
        ctx : Context, optional
            By default the only one, or of several the current one.

        Raises
        ------
        BlockError
            When it was not initialized, or not there.
        DeferredInitializationError
            When its shape is not known yet.
        """
        return self._check_and_get(self._data, ctx)

    def list_data(self) -> list[NDArray]:
        """Its arrays on all contexts, in the order they were initialized in."""
        return self._check_and_get(self._data, list)

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """Some rows of its array, on the context of their numbers; all others are zero.

        Parameters
        ----------
        row_id : NDArray
            Numbers of rows, in any order.

        Raises
        ------
        BlockError
            When it was not made with ``stype="row_sparse"``.

        Examples
        --------
        >>> weight = Parameter("weight", shape=(4, 2), stype="row_sparse")
        >>> weight.initialize(initializer.One())
        >>> weight.row_sparse_data(array([2, 0])).indices.asnumpy().tolist()
        [0, 2]
        """
        self._refuse_dense("row_sparse_data")
        rows: NDArray = self._check_and_get(self._data, row_id.context)._with_rows(row_id)
        return rows

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """The same rows of its arrays on all contexts."""
        self._refuse_dense("list_row_sparse_data")
        return [each._with_rows(row_id) for each in self._check_and_get(self._data, list)]

    def _refuse_dense(self, method: str) -> None:
        if self._stype != "row_sparse":
            raise BlockError(f"Parameter '{self.name}': {method} is for stype='row_sparse', this one is "
                             f"{self._stype!r}. Use data()")

    def _ungraded(self) -> None:
        if self._data is not None and self._grad is None:
            raise BlockError(f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'")

    def grad(self, ctx: Context | None = None) -> NDArray:
        """Its gradient on a context.

        Raises
        ------
        BlockError
            When it was not initialized, not there, or has none.
        """
        self._ungraded()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[NDArray]:
        """Its gradients on all contexts."""
        self._ungraded()
        return self._check_and_get(self._grad, list)

    def list_ctx(self) -> list[Context]:
        """Its contexts."""
        if self._data is not None:
            return self._ctx_list
        if self._deferred_init:
            return self._deferred_init[1]
        raise BlockError(f"Parameter '{self.name}' has not been initialized")

    def zero_grad(self) -> None:
        """Set its gradients to zero; nothing happens where it has none."""
        for gradient in self._grad or ():
            gradient[:] = 0

    def var(self) -> Symbol:
        """The variable that stands for it in graphs."""
        if self._var is None:
            self._var = Variable(self.name, shape=self.shape, dtype=self.dtype, lr_mult=self.lr_mult,
                                 wd_mult=self.wd_mult, init=self.init,  # type: ignore[arg-type]  # a function
                                 stype=_STORAGE_TYPE_STR_TO_ID[self._stype])
        return self._var

    # --------------------------------------------------------------------------------------- how it begins

    def initialize(self, init: InitializerLike = None, ctx: Contexts = None,
                   default_init: InitializerLike = None, force_reinit: bool = False) -> None:
        """Make its arrays, or note how, where the shape is not known yet.

        Parameters
        ----------
        init : Initializer or str, optional
            Initial value, whatever it was made with.
        ctx : Context or list of Context, optional
            Where it lives; the current context by default.
        default_init : Initializer or str, optional
            Initial value where nothing else says so; uniform values by default.
        force_reinit : bool
            Whether to begin anew when it is initialized already.

        Raises
        ------
        BlockError
            When its shape is not known, and it was not made with ``allow_deferred_init``.
        """
        if self._data is not None and not force_reinit:
            warn(f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.")
            return
        self._data = self._grad = None
        default_init = initializer.Uniform() if default_init is None else default_init
        if init is None:
            init = default_init if self.init is None else self.init
        waiting = init, _contexts(ctx), default_init, None
        if not known(self.shape) and not self._allow_deferred_init:
            raise BlockError(f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}.")
        self._deferred_init = waiting
        if known(self.shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Make its arrays now that the shape is known."""
        if not self._deferred_init:
            return
        if not known(self.shape):
            raise BlockError(f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}. "
                             "Give in_units, in_channels and their like")
        init, contexts, default_init, data = self._deferred_init
        self._deferred_init = ()
        with autograd.pause():
            if data is None:
                data = zeros(self.shape or (), ctx=cpu(), dtype=self.dtype)
                initializer.create(default_init)(InitDesc(self.name, {"__init__": init}), data)
            self._init_impl(data, contexts)

    def _init_impl(self, data: NDArray, contexts: Sequence[Context]) -> None:
        """Begin with these numbers on contexts."""
        self._ctx_list = list(contexts)
        self._data = [faced(data.copyto(ctx).tostype(self._stype)) for ctx in self._ctx_list]
        self._init_grad()

    def _init_grad(self) -> None:
        """Make gradients, and ask for them."""
        if self.grad_req == "null":
            self._grad = None
            return
        self._grad = [faced(zeros(each.shape, each.context, each.dtype, self._grad_stype))
                      for each in self._data or ()]
        autograd.mark_variables(self._data or [], self._grad, self.grad_req)

    def _load_init(self, data: NDArray, ctx: Contexts, cast_dtype: bool = False, dtype_source: str = "current"
                   ) -> None:
        """Take over numbers that were read."""
        if cast_dtype and dtype_source not in ("current", "saved"):
            raise BlockError(f"dtype_source: expected 'current' or 'saved', got {dtype_source!r}")
        if self.shape:
            if len(self.shape) != len(data.shape) or not all(
                    _open(own) or own == dim for own, dim in zip(self.shape, data.shape)):
                raise BlockError(f"Failed loading Parameter '{self.name}' from saved params: shape incompatible "
                                 f"expected {self.shape} vs saved {data.shape}")
            self.shape = data.shape
        if self.dtype is not None and np.dtype(self.dtype) != np.dtype(data.dtype):
            if not cast_dtype:
                raise BlockError(f"Failed loading Parameter '{self.name}' from saved params: dtype incompatible "
                                 f"expected {np.dtype(self.dtype)} vs saved {np.dtype(data.dtype)}. Set "
                                 "cast_dtype=True to cast the dtype of saved params.")
            if dtype_source == "current":
                data = data.astype(self.dtype, copy=False)
            else:
                self.dtype = data.dtype
        contexts = None if ctx is None else _contexts(ctx)
        if contexts is not None and (self._data is not None or self._deferred_init) \
                and set(contexts) != set(self.list_ctx()):
            raise BlockError(f"Failed to load Parameter '{self.name}' on {contexts} because it was previous "
                             f"initialized on {self.list_ctx()}.")
        if self._data is not None:
            self.set_data(data)
        else:
            with autograd.pause():
                self._init_impl(data, self._deferred_init[1] if self._deferred_init else contexts or [cpu()])
        self._deferred_init = ()

    def _reduce(self) -> NDArray:
        """Its numbers on the host: the mean over contexts."""
        with autograd.pause():
            first, *rest = [each.copyto(cpu()) for each in self.list_data()]
            return sum(rest, first) / (1 + len(rest)) if rest else first

    # ----------------------------------------------------------------------------------------- how it changes

    def set_data(self, data: Any) -> None:
        """Write numbers into its arrays on all contexts; before they are made, note them.

        Raises
        ------
        BlockError
            When the shape does not agree, or it was not initialized.
        """
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise BlockError(f"Parameter '{self.name}' has not been initialized")
            data = data if isinstance(data, NDArray) else array(data, dtype=self.dtype)
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        if self._trainer is not None:
            self._trainer._numbers_set(self)
        with autograd.pause():
            for each in self._data:
                _overwrite(each, data)

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move it to other contexts.

        Raises
        ------
        BlockError
            When it was not initialized.
        """
        contexts = _contexts(ctx)
        if self._data is not None:
            data = self._reduce()
            with autograd.pause():
                self._init_impl(data, contexts)
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = init, contexts, default_init, data
        else:
            raise BlockError(f"Cannot reset context for Parameter '{self.name}' because it has not been initialized.")

    def cast(self, dtype: DTypeLike) -> None:
        """Give it another dtype: its values, its gradients, and its initial values."""
        self._dtype, self._var = dtype, None
        if self._data is None:
            return
        with autograd.pause():
            self._data = [each.astype(dtype) for each in self._data]
            if self._grad is not None:
                self._grad = [each.astype(dtype) for each in self._grad]
                autograd.mark_variables(self._data, self._grad, self.grad_req)


def _overwrite(target: NDArray, data: Any) -> None:
    """Write numbers into an array with ``attach_grad``, which keeps its place on tapes."""
    entry, target._entry = target._entry, None
    try:
        target[:] = data
    finally:
        target._entry = entry


class Constant(Parameter):
    """A parameter that is not trained and begins with numbers of its own.

    Parameters
    ----------
    name : str
        Its whole name.
    value : NDArray or array-like
        Its numbers.

    Examples
    --------
    >>> two = Constant("two", [[1, 2], [3, 4]])
    >>> two.initialize()
    >>> two.data().asnumpy().tolist(), two.grad_req
    ([[1.0, 2.0], [3.0, 4.0]], 'null')
    """

    def __init__(self, name: str, value: Any):
        self.value: NDArray = value if isinstance(value, NDArray) else array(value)
        super().__init__(name, "null", self.value.shape, self.value.dtype, init=initializer.Constant(self.value))

    @property
    def grad_req(self) -> str:
        """``null``: it has no gradient."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warn(f'Constant parameter "{self.name}" does not support grad_req other than "null", and new value '
                 f'"{req}" is ignored.')


class ParameterDict:
    """Parameters by their whole names, in the order they were made.

    Parameters
    ----------
    prefix : str
        What ``get`` puts before names.
    shared : ParameterDict, optional
        Where ``get`` looks for parameters that are not here yet.

    Examples
    --------
    >>> params = ParameterDict("net_")
    >>> params.get("weight", shape=(2, 3)).name, list(params)
    ('net_weight', ['net_weight'])
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None):
        self._prefix, self._shared = prefix, shared
        self._params: dict[str, Parameter] = {}

    def __repr__(self) -> str:
        inner = "\n".join(f"  {parameter!r}" for parameter in self.values())
        return f"{self._prefix} (\n{inner}\n)" if self._prefix else f"(\n{inner}\n)"

    def __getitem__(self, key: str) -> Parameter:
        try:
            return self._params[key]
        except KeyError:
            raise KeyError(f"there is no parameter {key!r}. {did_you_mean(key, self._params)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> Any:
        """Pairs of name and parameter."""
        return self._params.items()

    def keys(self) -> Any:
        """The names."""
        return self._params.keys()

    def values(self) -> Any:
        """The parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """The prefix that ``get`` puts before names."""
        return self._prefix

    def _get_impl(self, name: str) -> Parameter | None:
        """The parameter of a whole name, here or shared."""
        if name not in self._params and self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
        return self._params.get(name)

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter of a name, made with these keywords where there is none.

        Raises
        ------
        BlockError
            When there is one that is otherwise.
        """
        name = self.prefix + name
        parameter = self._get_impl(name)
        if parameter is None:
            parameter = self._params[name] = Parameter(name, **kwargs)
            return parameter
        for key, value in kwargs.items():
            existing = getattr(parameter, key, None)
            if existing is None:
                setattr(parameter, key, value)
                continue
            if key == "shape" and value is not None:
                value = (value,) if isinstance(value, int) else value
                joined = _joined(value, existing)
                if joined is not None:
                    parameter._shape = joined
                    continue
            elif key == "dtype" and np.dtype(value) == np.dtype(existing):
                continue
            if value is not None and value != existing:
                raise BlockError(f"Cannot retrieve Parameter '{name}' because desired attribute does not match with "
                                 f"stored for attribute '{key}': desired '{value}' vs stored '{existing}'.")
        return parameter

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The constant of a name, made with these numbers where there is none.

        Raises
        ------
        KeyError
            When there is none, and no value is given.
        BlockError
            When there is one with other numbers.
        """
        name = self.prefix + name
        parameter = self._get_impl(name)
        if parameter is None:
            if value is None:
                raise KeyError(f"No constant named '{name}'. Please specify value if you want to create a new "
                               "constant.")
            parameter = self._params[name] = Constant(name, value)
        elif value is not None:
            if not isinstance(parameter, Constant):
                raise BlockError(f"Parameter '{name}' already exists but it is not a constant.")
            value = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            if parameter.shape != value.shape or not (parameter.value.asnumpy() == value).all():
                raise BlockError(f"Constant '{name}' already exists but it's value doesn't match new value")
        return parameter

    def update(self, other: ParameterDict | Mapping[str, Parameter], select: str | re.Pattern[str] | None = None
               ) -> None:
        """Take in the parameters of another dict; of ``select`` those whose names begin as this pattern says.

        Raises
        ------
        BlockError
            When both have different parameters of one name.
        """
        for name, parameter in other.items():
            if self._params.get(name, parameter) is not parameter:
                raise BlockError("Cannot update self with other because they have different Parameters with the same "
                                 f"name '{name}'")
        self._params.update((name, parameter) for name, parameter in other.items()
                            if select is None or re.match(select, name))

    # ------------------------------------------------------------------------------------------- all at once

    def initialize(self, init: InitializerLike = None, ctx: Contexts = None, verbose: bool = False,
                   force_reinit: bool = False) -> None:
        """Initialize all; see ``Parameter.initialize``.

        Parameters
        ----------
        init : Initializer or str, optional
            For those that have none of their own; uniform values by default.
        verbose : bool
            Whether to log each.
        """
        init = initializer.Uniform() if init is None else init
        if verbose:
            init = initializer.create(init)
            init.set_verbosity(verbose=verbose)  # type: ignore[union-attr]
        for parameter in self.values():
            parameter.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for parameter in self.values():
            parameter.zero_grad()

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move all to other contexts."""
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """All contexts."""
        return list(dict.fromkeys(ctx for parameter in self.values() for ctx in parameter.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all, as ``params.setattr("grad_req", "null")``."""
        for parameter in self.values():
            setattr(parameter, name, value)

    def save(self, filename: str | os.PathLike[str], strip_prefix: str = "") -> None:
        """Write all to a ``.params`` file.

        Parameters
        ----------
        strip_prefix : str
            What is taken off the front of names.

        Raises
        ------
        BlockError
            When a name does not begin so.
        """
        arrays = {}
        for parameter in self.values():
            if not parameter.name.startswith(strip_prefix):
                raise BlockError(f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name "
                                 f"'{parameter.name}' does not start with it: it is shared with another block, or "
                                 "its block was made outside of name_scope()")
            arrays[parameter.name[len(strip_prefix):]] = parameter._reduce()
        save(filename, arrays)

    def load(self, filename: str | os.PathLike[str], ctx: Contexts = None, allow_missing: bool = False,
             ignore_extra: bool = False, restore_prefix: str = "", cast_dtype: bool = False,
             dtype_source: str = "current") -> None:
        """Read all from a ``.params`` file.

        Parameters
        ----------
        ctx : Context or list of Context, optional
            Where those live that were not initialized; the host by default.
        allow_missing, ignore_extra : bool
            Whether the file may leave out parameters, or have others.
        restore_prefix : str
            What is put before names of the file.
        cast_dtype : bool
            Whether other dtypes are converted.
        dtype_source : {"current", "saved"}
            Which of the two dtypes counts.

        Raises
        ------
        BlockError
            When names, shapes or dtypes do not agree.
        """
        for name in self.keys() if restore_prefix else ():
            if not name.startswith(restore_prefix):
                raise BlockError(f"restore_prefix is '{restore_prefix}' but Parameters name '{name}' does not start "
                                 "with it")
        self.load_dict(load(filename), ctx, allow_missing, ignore_extra, restore_prefix, filename, cast_dtype,
                       dtype_source)

    def load_dict(self, param_dict: Any, ctx: Contexts = None, allow_missing: bool = False,
                  ignore_extra: bool = False, restore_prefix: str = "",
                  filename: str | os.PathLike[str] | None = None, cast_dtype: bool = False,
                  dtype_source: str = "current") -> None:
        """Take over all from arrays by name; see ``load``."""
        pairs = param_dict.items() if isinstance(param_dict, Mapping) else param_dict
        arrays = {restore_prefix + re.sub("^(arg|aux):", "", name): value for name, value in pairs}
        source, cut = f"file '{filename}'" if filename else "param_dict", len(restore_prefix)
        for name in () if allow_missing else self.keys():
            if name not in arrays:
                raise BlockError(f"Parameter '{name[cut:]}' is missing in {source}, which contains parameters: "
                                 f"{brief(arrays)}. Make sure that source and target networks have the same prefix, "
                                 "or set allow_missing=True")
        for name, value in arrays.items():
            if name in self._params:
                self[name]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            elif not ignore_extra:
                raise BlockError(f"Parameter '{name[cut:]}' loaded from {source} is not present in ParameterDict, "
                                 f"choices are: {brief(self._params)}. Set ignore_extra=True to ignore. "
                                 "Make sure that source and target networks have the same prefix.")


def _joined(new: Dims, old: Dims) -> tuple[int, ...] | None:
    """Two shapes, either of which may leave dimensions open, as one; None where they differ."""
    if len(new) != len(old) or any(a != b and a > 0 and b > 0 for a, b in zip(new, old)):
        return None
    return tuple(b if a in (0, -1) else a for a, b in zip(new, old))


def brief(names: Any, limit: int = 7) -> str:
    """Names in quotes, the first and the last where there are many.

    Examples
    --------
    >>> brief(["a", "b"])
    "'a', 'b'"
    """
    names = list(names)
    if len(names) > limit:
        return f"{brief(names[:limit // 2], limit)}, ..., {brief(names[-limit // 2:], limit)}"
    return ", ".join(f"'{name}'" for name in names)
