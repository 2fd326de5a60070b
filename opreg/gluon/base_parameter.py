"""Parameters and constants: weights of blocks, with a copy and a gradient on each context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from opreg.ndarray import autograd
from opreg.ndarray.context import Context, cpu, current_context
from opreg.ndarray.creation import zeros
from opreg.ndarray.ndarray import STORAGE_TYPES, NDArray, array
from opreg.symbol.symbol import Symbol, Variable

from ..core.chosen import override
from ..core.invalidation import renew_memory
from ..core.mode import MODE
from ..core.settings import CheckedMethods, dimensions, number
from ..core.spec import as_dtype
from ..errors import did_you_mean, warn
from ..train import initializer
from ..train.initializer import InitDesc, InitializerLike
from ..typing import DTypeLike
from .errors import BlockError, DeferredInitializationError
from .structure import gluon_value

__all__ = ["Contexts", "Dims", "Parameter", "Constant", "is_known"]

#: Contexts of parameters: one, several, or the current one.
Contexts: TypeAlias = Context | Sequence[Context] | None
#: A shape in which 0 or -1 is an unknown length.
Dims: TypeAlias = Sequence[int]
T = TypeVar("T")

_REQUESTS = ("write", "add", "null")


def _contexts(ctx: Contexts) -> list[Context]:
    """Contexts as a list; the current one by default."""
    if ctx is None:
        return [current_context()]
    contexts = [ctx] if isinstance(ctx, Context) else [*ctx] if hasattr(ctx, "__iter__") else []
    if not contexts or not all(isinstance(each, Context) for each in contexts):
        raise BlockError(f"ctx={ctx!r}: expected a context or a list of contexts, as in ctx=mx.cpu()")
    return contexts


def _place(ctx: Context) -> tuple[str, int]:
    """The key of a parameter's context; pinned memory counts as the host's."""
    return "cpu" if ctx.device_type.startswith("cpu") else ctx.device_type, ctx.device_id


def is_known(shape: Dims | None) -> bool:
    """Whether every dimension of a shape is known.

    Examples
    --------
    >>> is_known((2, 3)), is_known((2, 0)), is_known(None)
    (True, False, False)
    """
    least = 0 if MODE.np_shape else 1
    return shape is not None and all(dim >= least for dim in shape)


def _open(dim: int) -> bool:
    return dim == -1 or (dim == 0 and not MODE.np_shape)


class _Factor:
    """A factor of a parameter's learning rate or weight decay, which must be a number."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, parameter: Any, owner: type) -> Any:
        return self if parameter is None else vars(parameter)[self._name]

    def __set__(self, parameter: Any, value: float) -> None:
        vars(parameter)[self._name] = number(f"Parameter {parameter.name!r}: {self._name}", value)


class Parameter(CheckedMethods):
    """A weight of a block: its name, shape and dtype, and after initialization an array for each context.

    Parameters
    ----------
    name : str
        Its full name, with the prefix of its block.
    grad_req : {"write", "add", "null"}
        Whether a backward pass overwrites its gradient, adds to it, or computes none.
    shape : int or tuple of int, optional
        Its shape; the first input decides lengths given as 0 or -1.
    dtype : dtype
        Its dtype, float32 by default.
    lr_mult, wd_mult : float
        Factors of learning rate and weight decay.
    init : Initializer or str, optional
        Initial value; by default the one given to ``initialize``.
    allow_deferred_init : bool
        Whether ``initialize`` may wait until the shape is known.
    differentiable : bool
        Whether it may have a gradient.
    stype, grad_stype : str
        Storage types of its array and its gradient: ``default``, ``row_sparse`` or ``csr``.

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

    lr_mult, wd_mult = _Factor(), _Factor()
    _plain_methods = "data", "grad", "list_data", "list_grad"

    def __init__(self, name: str, grad_req: str = "write", shape: int | Dims | None = None,
                 dtype: DTypeLike = np.float32, lr_mult: float = 1.0, wd_mult: float = 1.0,
                 init: InitializerLike = None, allow_deferred_init: bool = False, differentiable: bool = True,
                 stype: str = "default", grad_stype: str = "default"):
        for what, value in (("grad_stype", grad_stype), ("stype", stype)):
            if value not in STORAGE_TYPES:
                raise BlockError(f"Parameter {name!r}: {what} {value!r}. {did_you_mean(str(value), STORAGE_TYPES)}")
        self.name, self.init, self.lr_mult, self.wd_mult = name, init, lr_mult, wd_mult
        self._dtype, self._stype, self._grad_stype = dtype, stype, grad_stype
        self._shape = None if shape is None else dimensions(f"Parameter {name!r}: shape", shape, -1)
        self._allow_deferred_init, self._differentiable = allow_deferred_init, differentiable
        self._var: Symbol | None = None
        self._data: list[NDArray] | None = None
        self._grad: list[NDArray] | None = None
        self._ctx_list: list[Context] = []
        #: Two lists, for devices with even and with odd ``device_typeid``. The number of a device is the index of its
        #: place in ``_ctx_list``. Parameters of other libraries copy the lists or look up the place.
        self._ctx_map: list[list[int | None]] = [[], []]
        self._trainer: Any = None
        # While the shape is unknown: initializer, contexts, the initializer of all parameters, and values that were
        # set.
        self._deferred_init: tuple[Any, ...] = ()
        self._grad_req = ""
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_trainer": None, "_var": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._grad is not None:  # copied arrays are on no tape
            autograd.mark_variables(self._data or [], self._grad, self.grad_req)

    # -------------------------------------------------------------------------- shape, dtype, storage type

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
        """The dtype in the form that was given; setting it casts."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: DTypeLike) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape, or None if unknown; a shape that is set has to agree in the known lengths."""
        if self._shape is None or not MODE.np_shape:
            return self._shape
        return tuple(dim if dim != 0 else -1 for dim in self._shape)

    @shape.setter
    def shape(self, new_shape: Dims) -> None:
        old, new_shape = self._shape, dimensions(f"Parameter {self.name!r}: shape", new_shape, -1)
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
        """Change the name."""
        self.name, self._var = name, None

    def _set_trainer(self, trainer: Any) -> None:
        if self._stype != "default" and self._trainer is not None and trainer is not None \
                and self._trainer is not trainer:
            raise BlockError(f"Failed to set the trainer for Parameter '{self.name}' because it was already set. More "
                             f"than one trainers for a {self._stype} Parameter is not supported.")
        self._trainer = trainer

    # -------------------------------------------------------------------------------------------- its arrays

    def _check_and_get(self, arrays: list[NDArray] | None, ctx: Any) -> Any:
        """The array of a context, from a list with one for each context; the list itself for ``ctx=list``."""
        if arrays is not None:
            if ctx is list:
                return arrays
            if ctx is None:
                if len(arrays) == 1:
                    return arrays[0]
                ctx = current_context()
            for place_ctx, each in zip(self._ctx_list, arrays):
                if place_ctx is ctx or _place(place_ctx) == _place(ctx):
                    return each
            raise BlockError(f"Parameter '{self.name}' was not initialized on context {ctx}. It was only initialized "
                             f"on {self._ctx_list}.")
        if self._deferred_init:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred: its shape "
                f"{self.shape} follows from the first input. Run the network on one batch first, or give in_units, "
                "in_channels and their like")
        raise self._uninitialized()

    def _uninitialized(self) -> BlockError:
        return BlockError(f"Parameter '{self.name}' has not been initialized: call initialize() of the block, or of "
                          "block.collect_params(); block.params leaves out those of its children")

    def data(self, ctx: Context | None = None) -> NDArray:
        """Its array on a context.

        Parameters
        ----------
        ctx : Context, optional
            The context; by default the only one, or the current one of several.

        Raises
        ------
        BlockError
            When it was not initialized, or not on this context.
        DeferredInitializationError
            When its shape is still unknown.
        """
        arrays = self._data
        if arrays is not None and len(arrays) == 1 and (ctx is None or ctx is self._ctx_list[0]):  # the usual case
            return arrays[0]
        return self._check_and_get(arrays, ctx)

    def list_data(self) -> list[NDArray]:
        """Its arrays on all contexts, in the order of initialization."""
        return self._check_and_get(self._data, list)

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """Some rows of its array, on the context of ``row_id``; the other rows of the result are zero.

        Parameters
        ----------
        row_id : NDArray
            Row numbers, in any order.

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
        rows: NDArray = self._check_and_get(self._data, row_id.context)._take_rows(row_id)
        return rows

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """The same rows of its arrays on all contexts."""
        self._refuse_dense("list_row_sparse_data")
        return [each._take_rows(row_id) for each in self._check_and_get(self._data, list)]

    def _refuse_dense(self, method: str) -> None:
        if self._stype != "row_sparse":
            raise BlockError(f"Parameter '{self.name}': {method} is for stype='row_sparse', this one is "
                             f"{self._stype!r}. Use data()")

    def _gradient_error(self) -> None:
        if self._data is not None and self._grad is None:
            raise BlockError(f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'")

    def grad(self, ctx: Context | None = None) -> NDArray:
        """Its gradient on a context.

        Raises
        ------
        BlockError
            When it was not initialized, is not on this context, or has no gradient.
        """
        self._gradient_error()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[NDArray]:
        """Its gradients on all contexts."""
        self._gradient_error()
        return self._check_and_get(self._grad, list)

    def list_ctx(self) -> list[Context]:
        """Its contexts."""
        if self._data is not None:
            return self._ctx_list
        if self._deferred_init:
            return self._deferred_init[1]
        raise self._uninitialized()

    def zero_grad(self) -> None:
        """Set its gradients to zero, if it has any."""
        for gradient in self._grad or ():
            gradient[:] = 0

    def var(self) -> Symbol:
        """Its variable in graphs."""
        if self._var is None:
            self._var = Variable(self.name, shape=self.shape, dtype=self.dtype, lr_mult=self.lr_mult,
                                 wd_mult=self.wd_mult, init=self.init,  # type: ignore[arg-type]  # a function
                                 stype=self._stype)
        return self._var

    # -------------------------------------------------------------------------------------- initialization

    def initialize(self, init: InitializerLike = None, ctx: Contexts = None,
                   default_init: InitializerLike = None, force_reinit: bool = False) -> None:
        """Make the arrays of the parameter. If its shape is unknown, the arguments are stored until it is known.

        Parameters
        ----------
        init : Initializer or str, optional
            Initial value; overrides the parameter's own.
        ctx : Context or list of Context, optional
            Its contexts; the current one by default.
        default_init : Initializer or str, optional
            Initial value if neither ``init`` nor the parameter gives one; uniform values by default.
        force_reinit : bool
            Whether to initialize it again if it is initialized already.

        Raises
        ------
        BlockError
            When its shape is unknown, and ``allow_deferred_init`` is not set.
        """
        if self._data is not None and not force_reinit:
            warn(f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.")
            return
        self._data = self._grad = None
        default_init = initializer.Uniform() if default_init is None else default_init
        if init is None:
            init = default_init if self.init is None else self.init
        waiting = init, _contexts(ctx), default_init, None
        if not is_known(self.shape) and not self._allow_deferred_init:
            raise BlockError(f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}.")
        self._deferred_init = waiting
        if is_known(self.shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Make its arrays now that the shape is known."""
        if not self._deferred_init:
            return
        if not is_known(self.shape):
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
        """Make arrays of these values on the contexts."""
        self._ctx_list, self._ctx_map = list(contexts), [[], []]
        for place, ctx in enumerate(contexts):
            places = self._ctx_map[ctx.device_typeid & 1]
            places += [None] * (ctx.device_id + 1 - len(places))
            places[ctx.device_id] = place
        self._data = [gluon_value(data.copyto(ctx).tostype(self._stype)) for ctx in self._ctx_list]
        self._init_grad()

    def _init_grad(self) -> None:
        """Make its gradients, and mark its arrays as variables of the tape."""
        if self.grad_req == "null":
            self._grad = None
            return
        self._grad = [gluon_value(zeros(each.shape, each.context, each.dtype, self._grad_stype))
                      for each in self._data or ()]
        autograd.mark_variables(self._data or [], self._grad, self.grad_req)

    def _load_init(self, data: NDArray, ctx: Contexts, cast_dtype: bool = False, dtype_source: str = "current"
                   ) -> None:
        """Set the values that were read from a file."""
        if cast_dtype and dtype_source not in ("current", "saved"):
            raise BlockError(f"dtype_source: expected 'current' or 'saved', got {dtype_source!r}")
        if self.shape:
            if len(self.shape) != len(data.shape) or not all(
                    _open(known_dim) or known_dim == dim for known_dim, dim in zip(self.shape, data.shape)):
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
        """Its values on the host: the mean over contexts."""
        with autograd.pause():
            first, *others = [each.copyto(cpu()) for each in self.list_data()]
            return sum(others, first) / (1 + len(others)) if others else first

    # ------------------------------------------------------------------------------------------------ changes

    def set_data(self, data: Any) -> None:
        """Write values to its arrays on all contexts; before initialization, store them.

        Raises
        ------
        BlockError
            When the shape differs, or it was not initialized.
        """
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise self._uninitialized()
            data = data if isinstance(data, NDArray) else array(data, dtype=self.dtype)
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        if self._trainer is not None:
            self._trainer._values_set(self)
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
        """Cast its values, gradients and initial values to another dtype."""
        as_dtype(dtype)  # refuses one that no array has
        self._dtype, self._var = dtype, None
        if self._data is None:
            return
        with autograd.pause():
            self._data = [each.astype(dtype) for each in self._data]
            if self._grad is not None:
                self._grad = [each.astype(dtype) for each in self._grad]
                autograd.mark_variables(self._data, self._grad, self.grad_req)


def _overwrite(target: NDArray, data: Any) -> None:
    """Write values to an array with ``attach_grad``, which stays the same variable of the tape."""
    with override(target, _entry=None):
        if MODE.current().paused:  # recorded operators read the old values
            target._data = target._ctx.run(target._data.copy)
            renew_memory(target)
        target[:] = data


class Constant(Parameter):
    """A parameter that is not trained, with given values.

    Parameters
    ----------
    name : str
        Its full name.
    value : NDArray or array-like
        Its values.

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
