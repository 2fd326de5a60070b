"""Parameter: a tensor of a Cell that training changes; ParameterTuple: several of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opreg.ndarray.gradient_target import GradientTarget
from opreg.ndarray.ndarray import NDArray

from ..core.mode import MODE
from ..core.named_errors import name_errors, named
from ..core.registry import ops
from ..core.reports import report
from ..core.spec import as_dtype, show
from ..errors import ArgumentError, DTypeError, OpError, ShapeError
from ..typing import DTypeLike
from . import dtype as dtypes
from .buffers import Buffer as _Buffer  # noqa: F401  the name MindSpore has for it here
from .context_settings import EPOCH
from .handles import HookHandle, Hooks
from .initializer import InitializerLike, initializer
from .state import STATE
from .subscripts import subscript
from .tensor import TENSORS, Tensor, copy_on_write, has_values, tensor
from .tensor_base import TensorBase, is_number
from .typing import TensorDType, TensorLike

__all__ = ["CastParameter", "Parameter", "ParameterTuple", "assign"]

#: Names of Parameters without a name begin so.
_UNNAMED = "Parameter#"
_PREFIX = re.compile(r"^\w+[0-9a-zA-Z_.]*$")
#: Longest name of a Parameter, in characters.
LONGEST_NAME = 1024


class Parameter(Tensor):
    """A tensor that training changes.

    Arithmetic gives plain tensors. ``p[i] = x``, ``set_data`` and ``ops.assign`` change its values in place, and
    compiled functions read the new values.

    Parameters
    ----------
    default_input : Tensor, NumPy array, list, int or float
        Its values, copied; an int becomes int32, a float float32.
    name : str, optional
        Its name; the default is the name of the Cell's attribute that it is assigned to.
    requires_grad : bool
        Whether it is trained.
    layerwise_parallel, parallel_optimizer
        Stored without effect, like the attributes ``comm_fusion`` and ``cache_enable``.

    Examples
    --------
    >>> Parameter(Tensor([[1.0, 2.0]]), name="w")
    Parameter (name=w, shape=(1, 2), dtype=Float32, requires_grad=True)
    """

    _unnamed = 0
    _gradient_target: GradientTarget | None = None  # memory from which an optimizer reads its gradient
    _mindspore_name: str | None = None  # if it differs from its name

    @named
    def __init__(self, default_input: TensorLike, name: str | None = None, requires_grad: bool = True,
                 layerwise_parallel: bool = False, parallel_optimizer: bool = True, storage_format: str = ""):
        for what, value in (("requires_grad", requires_grad), ("layerwise_parallel", layerwise_parallel)):
            if not isinstance(value, bool):
                raise ArgumentError(f"Parameter: {what} must be a bool, got {type(value).__name__}")
        if STATE.trace is not None and STATE.trace.knows(default_input):
            STATE.trace.leave("it makes a Parameter of a tensor")
        if isinstance(default_input, bool):
            raise ArgumentError("Parameter: expected a Tensor, int, float, NumPy array or list, got bool")
        if isinstance(default_input, int):
            source = tensor(np.asarray(default_input, np.int32))
        elif isinstance(default_input, (float, NDArray, np.ndarray, list)):
            source = tensor(default_input)
        else:
            raise ArgumentError("Parameter: expected a Tensor, int, float, NumPy array or list, got "
                                f"{type(default_input).__name__}")
        self._data, self._ctx, self._entry = source._ctx.run(source._data.copy), source._ctx, None
        self._name, self._given = _checked_name(name), name is not None
        if name is None:
            self._name = f"{_UNNAMED}{Parameter._unnamed}"
            Parameter._unnamed += 1
        self._requires_grad = requires_grad
        self.layerwise_parallel, self.parallel_optimizer = layerwise_parallel, parallel_optimizer
        self.comm_fusion = 1
        self.cache_enable = False
        self._version = 0
        self._hooks: Hooks | None = None  # hooks of its gradient, once there are some

    # -------------------------------------------------------------------------------------------- questions

    @property
    def name(self) -> str:
        """Its name: the one given by the user, or by its position in a Cell."""
        return self._name

    @name.setter
    def name(self, value: str | None) -> None:
        self._name, self._given = _checked_name(value), value is not None
        self._mindspore_name = None

    @property
    def mindspore_name(self) -> str:
        """Its name in MindSpore: that of its place, except in lists of Cells that are filled later.

        MindSpore names a Cell that is added to a list or dict without the attribute of that list: ``0.weight``, where
        the name here is ``layers.0.weight``. ``load_param_into_net`` accepts both.
        """
        return self._mindspore_name or self._name

    def _name_after(self, prefix: str, other: Parameter, between: str = ".") -> Parameter:
        """Set the name to a prefix and the name of another parameter; returns this one."""
        self.name = f"{prefix}{between}{other.name}"
        self._mindspore_name = other._mindspore_name and f"{prefix}{between}{other._mindspore_name}"
        return self

    @property
    def has_name(self) -> bool:
        """Whether it has a name, from the user or from its position."""
        return self._given

    @property
    def requires_grad(self) -> bool:
        """Whether it is trained."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise ArgumentError(f"Parameter {self._name}: requires_grad must be a bool, got {type(value).__name__}")
        self._requires_grad = value
        self._touch()

    def _touch(self) -> None:
        """Note a change that invalidates compiled functions."""
        self._version += 1
        EPOCH[0] += 1

    @property
    def data(self) -> Tensor:
        """A tensor that shares its memory, through which no gradient passes."""
        return ops.BlockGrad(STATE.trace.read(self)) if STATE.trace is not None else self.detach()

    @data.setter
    def data(self, value: TensorLike) -> None:
        self.set_data(value)

    def value(self) -> Tensor:
        """A tensor over its memory, through which gradients pass; writing to the tensor copies it first.

        Examples
        --------
        >>> print(Parameter(Tensor([1.0, 2.0]), name="w").value())
        [1. 2.]
        """
        return copy_on_write(self) if STATE.trace is None else STATE.trace.read(self)  # type: ignore[return-value]  # a Tensor

    def __repr__(self) -> str:
        return report([f"Parameter (name={self._name}, shape={self.shape}, dtype={self.dtype}, "
                       f"requires_grad={self._requires_grad})"])

    __str__ = __repr__

    def __hash__(self) -> int:
        return id(self)

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """Its values as a NumPy array: on the host a view that can be written to outside of compiled functions; with
        ``out``, or without ``blocking``, a copy; see ``NDArray.asnumpy``."""
        if out is not None or not blocking:
            return super().asnumpy(out, blocking)
        if STATE.trace is not None:
            host = super().asnumpy()
            host.flags.writeable = False
            return host
        return self._data if isinstance(self._data, np.ndarray) else super().asnumpy()  # type: ignore[redundant-expr]

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        host = super().__array__(dtype, copy)
        return host.copy() if copy and host is self._data else host

    def __deepcopy__(self, memodict: object) -> Tensor:
        return self.__copy__()

    def copy(self) -> Tensor:
        """A parameter with the same name and values, through which gradients pass; in a compiled function a plain
        value."""
        values = super().copy()
        if STATE.trace is not None:
            return values
        result = self.clone()
        result._data, result._entry = values._data, values._entry
        return result

    def __copy__(self) -> Tensor:
        return self.clone() if STATE.trace is None else self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameter, (np.array(self.asnumpy()), self._name, self._requires_grad)

    # ---------------------------------------------------------------------------------------------- changing

    def __setitem__(self, key: Any, value: Any) -> None:
        if STATE.trace is not None:
            STATE.trace.change(self, key, value)
            return
        self._write(subscript(key, self.shape), value)

    def set_data(self, data: TensorLike, slice_shape: bool = False) -> Parameter:
        """Copy the elements of a tensor into this parameter.

        Parameters
        ----------
        data : Tensor, int or float
            A tensor of the same shape, and of a dtype that can be cast without loss; or a number for all elements.
        slice_shape : bool
            Whether the tensor may have another shape, which the parameter then gets; not in compiled functions.

        Returns
        -------
        Parameter
            This parameter.
        """
        if is_number(data) and not isinstance(data, (bool, np.bool_)):
            if isinstance(data, float) and self._dt.kind in "iu":
                raise ArgumentError(f"Parameter {self._name}: a float does not fit dtype {self.dtype}")
            self[...] = data
            return self
        if not isinstance(data, (NDArray, TensorBase)):
            raise ArgumentError(f"Parameter {self._name}: set_data expects a Tensor, int or float, got "
                                f"{type(data).__name__}")
        sliced = data.shape != self.shape
        if sliced and (not slice_shape or STATE.trace is not None):
            raise ShapeError("Can not change the shape of Parameter which has been initialized. Current shape is "
                             f"{self.shape}, and incoming is {data.shape}. (Parameter {self._name})")
        data = tensor(data)
        _check_cast(self, data._dt)
        if sliced:
            self._data = data._cast(self._dt)._data.copy()
            self._touch()
        else:
            self[...] = data
        return self

    def set_dtype(self, dtype: TensorDType) -> dtypes.DType:
        """Change the dtype of the values; returns this parameter."""
        self._data = self._cast(as_dtype(dtype))._data.copy()
        self._touch()
        return self.dtype

    def clone(self, init: InitializerLike = "same") -> Parameter:
        """A copy of the same name, with the same values or others.

        Parameters
        ----------
        init : Tensor, str, Initializer or number
            Values of the copy, as in ``initializer``.
        """
        same = isinstance(init, str) and init == "same"
        source = self if same else initializer(init, self.shape, self.dtype)
        result = Parameter(source, self._name, self._requires_grad, self.layerwise_parallel, self.parallel_optimizer)
        result._given, result.comm_fusion = self._given, self.comm_fusion
        result._mindspore_name = self._mindspore_name
        return result

    def init_data(self, layout: object = None, set_sliced: bool = False) -> Parameter:
        """This parameter; its values exist already."""
        return self

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call a function with this parameter's gradient each time it is computed; see ``Tensor.register_hook``.

        Raises
        ------
        RuntimeError
            When the parameter is not trained, so that it has no gradient.
        """
        if not self._requires_grad:
            raise OpError("The tensor requires grad is false, which can not register tensor hook: Parameter "
                          f"{self._name} is not trained")
        if self._hooks is None:
            self._hooks = Hooks()
        return HookHandle.add(self, self._hooks, hook)

    def hooks(self) -> list[Callable[..., Any]]:
        """The functions that were registered with ``register_hook``, in order."""
        return [hook.function for hook in (self._hooks or {}).values()]


TENSORS.add(Parameter)


def is_prefix(value: object) -> bool:
    """Whether a value is a valid prefix of Parameter names: letters, digits, dots and underscores."""
    return isinstance(value, str) and _PREFIX.match(value) is not None


def _checked_name(name: object) -> str:
    if name is None:
        return "Parameter"
    if not isinstance(name, str):
        raise ArgumentError(f"Parameter: the name must be text or None, got {type(name).__name__}")
    name = name.strip()
    if not name or len(name) > LONGEST_NAME:
        raise ArgumentError(f"Parameter: a name has 1 to {LONGEST_NAME} characters, got {len(name)}")
    return name


def _check_cast(parameter: Parameter, incoming: np.dtype) -> None:
    """Refuse a lossy cast; floating dtypes may be widened, and integers may become wider or floating."""
    if not _fits(parameter._data.dtype, incoming):
        raise ArgumentError(f"Data type {tensor_type(incoming)} of the input can not be converted to current dtype "
                            f"implicitly: Parameter {parameter.name} has {parameter.dtype}")


def _fits(stored: np.dtype, incoming: np.dtype) -> bool:
    """Whether values of one dtype may be stored in another one: if arithmetic between the two gives the other one."""
    if stored == incoming or np.can_cast(incoming, stored, "safe"):
        return True
    try:
        return dtypes.promote(stored, incoming) == stored
    except DTypeError:
        return False


def tensor_type(dtype: np.dtype) -> str:
    """The name of a dtype in messages."""
    return str(dtypes.of(dtype))


def _is_parameter_generated(param_name: object) -> bool:
    """Whether a Parameter's name was made for it; scripts import this by MindSpore's name."""
    return isinstance(param_name, str) and param_name.startswith(_UNNAMED)


class CastParameter:
    """The base of tensors with the values of a Parameter in another dtype: changes go to the Parameter."""

    __slots__ = ()

    if TYPE_CHECKING:
        cast_of: Parameter

    @property
    def name(self) -> str:
        """Name of the Parameter."""
        return self.cast_of.name

    @property
    def requires_grad(self) -> bool:
        """Whether the Parameter is trained."""
        return self.cast_of.requires_grad

    def set_data(self, data: TensorLike, slice_shape: bool = False) -> Parameter:
        """Copy the elements of a tensor into the Parameter; see ``Parameter.set_data``."""
        return self.cast_of.set_data(data, slice_shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.cast_of[key] = value


def assign(variable: Tensor, value: TensorLike) -> Tensor:
    """Store a value in a Parameter or another tensor, now, or at the end of a compiled function's run.

    Parameters
    ----------
    variable : Parameter or Tensor
        The tensor to change in place.
    value : Tensor or number
        A value of the same shape; integers are cast to the variable's floating dtype.

    Returns
    -------
    Tensor
        The new value of the variable. Its gradient is the Parameter's own, and does not reach the tensors that the
        value was computed from.

    Raises
    ------
    ValueError
        When shapes differ.
    TypeError
        When the cast of the dtype would be lossy.
    """
    if isinstance(variable, CastParameter):
        variable = variable.cast_of
    concrete = has_values(variable)  # otherwise it is an argument or a result of a compiled function
    if not (concrete or (STATE.trace is not None and isinstance(variable, TensorBase))):
        raise ArgumentError(f"assign: expected a Parameter or Tensor, got {type(variable).__name__}")
    if is_number(value):
        value = tensor(np.full(variable.shape, value, variable._dt))
    value = tensor(value)
    if value.shape != variable.shape:
        raise ShapeError(f"assign: expected shape {show(variable.shape)}, that of {_title_of(variable)}, got "
                         f"{show(value.shape)}")
    stored, incoming = variable._dt, value._dt
    if stored != incoming:
        if not _fits(stored, incoming):
            raise DTypeError(f"assign: a value of dtype {tensor_type(incoming)} does not fit {_title_of(variable)} of "
                             f"dtype {tensor_type(stored)}")
        value = value._cast(stored)
    if not concrete:
        variable[...] = value
        return variable
    if STATE.trace is not None:
        STATE.trace.assign(variable, value)
        return STATE.trace.read(variable)  # type: ignore[return-value]  # to users it is a Tensor
    if MODE.recording:  # nodes of the tape refer to the old values, so the variable gets a copy of them
        variable._data = value._ctx.run(value._data.copy)
        if not isinstance(variable, Parameter):
            variable._entry = value._entry
            return value
        value = copy_on_write(value)
        value._entry = variable._entry
    else:
        variable._write(Ellipsis, value)
    return value


def _title_of(variable: Tensor) -> str:
    return f"Parameter {variable.name}" if isinstance(variable, Parameter) else "the tensor"


class ParameterTuple(tuple[Parameter, ...]):
    """Several Parameters with different names.

    Examples
    --------
    >>> pair = ParameterTuple((Parameter(1.0, name="a"), Parameter(2.0, name="b")))
    >>> [p.name for p in pair.clone("copy")]
    ['copy.a', 'copy.b']
    """

    @named
    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        members = tuple(iterable)
        by_name: dict[str, Parameter] = {}
        for i, member in enumerate(members):
            if not isinstance(member, Parameter):
                raise ArgumentError(f"ParameterTuple: expected Parameters, got {type(member).__name__} at {i}")
            if by_name.setdefault(member.name, member) is not member and member.has_name:
                raise ArgumentError(f"ParameterTuple: two different Parameters are named {member.name!r}")
        return super().__new__(cls, members)

    def clone(self, prefix: str, init: InitializerLike = "same") -> ParameterTuple:
        """Copies, each named ``prefix.name``.

        Parameters
        ----------
        prefix : str
            A prefix of letters, digits, dots and underscores.
        init
            See ``Parameter.clone``.
        """
        if not is_prefix(prefix):
            raise ArgumentError(f"ParameterTuple.clone: the prefix {prefix!r} is not of letters, digits, dots and "
                                "underscores, with a letter, digit or underscore first")
        return ParameterTuple([member.clone(init)._name_after(prefix, member) for member in self])



#: A Parameter, or several, as a caller gives them.
Parameters: TypeAlias = Parameter | Sequence[Parameter]


def parameters(value: object, what: str) -> Sequence[Parameter]:
    """A Parameter, or several, as a list."""
    if isinstance(value, (Parameter, CastParameter)):
        return [value.cast_of if isinstance(value, CastParameter) else value]
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{what}: expected a Parameter or a list of them, got {type(value).__name__}")
    members = [member.cast_of if isinstance(member, CastParameter) else member for member in value]
    for i, member in enumerate(members):
        if not isinstance(member, Parameter):
            raise ArgumentError(f"{what}: expected Parameters, got {type(member).__name__} at {i}")
    return members


name_errors(__name__, globals(), __all__)
