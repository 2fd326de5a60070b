"""Tensor: an NDArray with MindSpore's behaviour."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeGuard

import numpy as np

from opreg.ndarray import backward_pass
from opreg.ndarray.arithmetic import attach
from opreg.ndarray.computation import compute
from opreg.ndarray.context import Context, cpu, current_context
from opreg.ndarray.ndarray import FOREIGN, NDArray, numbers_of
from opreg.ndarray.nesting import arrays_in, leaves, on_host
from opreg.ndarray.tape import TapedFunction, TapeEntry, TapeNode, Variable, frame
from opreg.ndarray.traced import TracedArray, TracedNDArray

from ..core import host_memory
from ..core.array_module import put
from ..core.mode import MODE, quiet
from ..core.named_errors import name_errors, named
from ..core.op import Op
from ..core.patches import Patched
from ..core.registry import ops
from ..core.rules import Attrs
from ..core.spec import as_dtype, is_floating, show
from ..core.value import COMPARISONS, Value
from ..core.versions import keeps_all_bits, must_record_write, share, wrote
from ..errors import ArgumentError, ShapeError, SubscriptError, as_op_error, note, refuse_keywords
from ..typing import Array, ArrayModule, DTypeLike
from . import dtype as dtypes
from . import printing
from .state import STATE
from .subscripts import mask_of, subscript
from .tensor_base import TensorBase, is_number

if TYPE_CHECKING:
    from .initializer import Initializer
    from .traced_tensor import TracedTensor
    from .typing import TensorDType, TensorLike

__all__ = ["Tensor", "InitialisedTensor", "LentTensor", "tensor", "tensor_over", "as_array", "as_tensor", "zeros_as",
           "argument", "fresh", "copy_on_write", "lent_raw", "take_slices", "take_masked", "from_numpy",
           "is_tensor", "operand",
           "stack_nesting", "has_values", "TENSORS", "FRESH"]

#: A shape whose lengths may be unknown, None or -1.
OpenShape: TypeAlias = int | Sequence[int | None]

#: Exact classes that operators accept without further checks; ``Parameter`` joins them.
TENSORS: set[type] = set()


class _TensorType(Patched):
    def __instancecheck__(cls, value: object) -> bool:
        # In compiled functions tensors have no values, and a class of their own; isinstance() accepts them as tensors.
        return super().__instancecheck__(value) or (cls is Tensor and isinstance(value, TensorBase))


class Tensor(TensorBase, NDArray, metaclass=_TensorType):  # type: ignore[misc]  # its methods are those of ops
    """A tensor on a device, with MindSpore's behaviour.

    Parameters
    ----------
    input_data : Tensor, NDArray, NumPy array, number or nested sequence of numbers, optional
        The elements, copied. Python's integers become int64, real numbers float32, booleans bool; arrays keep their
        dtype.
    dtype : dtype, optional
        Dtype of the tensor; the values are cast.
    shape : tuple of int, optional
        The shape; with an unknown length, None or -1, the tensor has no values: it only states a shape and dtype, for
        ``Cell.set_inputs``.
    init : Initializer, optional
        Initial values of a tensor with a shape; zeros by default.

    Examples
    --------
    >>> Tensor([0.1, 2], dtypes.float32)
    Tensor(shape=[2], dtype=Float32, value= [ 1.00000001e-01,  2.00000000e+00])
    >>> (Tensor([1, 2]) * 0.5).dtype
    mindspore.float32
    """

    __slots__ = ("__dict__",)  # programs set attributes on tensors
    _rank = 1
    _requires_grad = False  # only Parameters are trained

    def __new__(cls, *positional: Any, init: Initializer | None = None, shape: OpenShape | None = None,
                **keywords: Any) -> Self:
        value = positional[0] if positional else keywords.get("input_data")
        if STATE.trace is not None and cls is Tensor and (traced := _trace_value(value)) is not None:  # a copy
            dtype = positional[1] if len(positional) > 1 else keywords.get("dtype")
            return ops.BlockGrad(traced if dtype is None else traced._cast(as_dtype(dtype)))
        lengths = positional[2] if len(positional) > 2 else shape
        if cls is Tensor and (_open(lengths) if lengths is not None else value is None and init is None):
            return _new(OpenTensor)
        return _new(cls if init is None or cls is not Tensor else InitialisedTensor)

    @named
    def __init__(self, input_data: TensorLike | None = None, dtype: TensorDType = None, shape: OpenShape | None = None,
                 init: Initializer | None = None,
                 **keywords: object):
        keywords.pop("internal", None)
        keywords.pop("const_arg", None)
        refuse_keywords("Tensor", keywords, ("input_data", "dtype", "shape", "init"))
        target = None if dtype is None else as_dtype(dtype)
        ctx = current_context()
        if input_data is None:
            if shape is None or target is None:  # of a subclass
                raise ArgumentError("Tensor: expected values, or shape= and dtype=, and optionally init=")
            lengths = _lengths(shape)
            host = np.zeros(lengths, target) if init is None else init.fill(lengths, target)
        else:
            if isinstance(input_data, NDArray):
                ctx = input_data._ctx if isinstance(input_data, Tensor) else ctx
                host = input_data._data
                if not isinstance(host, np.ndarray):  # a copy on its device
                    self._data = ctx.backend.asarray(host, target or host.dtype, ctx.device_id)
                    self._ctx, self._entry = ctx, None
                    return
            else:
                host = _host(input_data, target)
            if shape is not None and _lengths(shape) != host.shape:
                raise ShapeError(f"Tensor: expected shape {show(_lengths(shape))}, the values have {show(host.shape)}")
            host = quiet(np.array, host, target or as_dtype(host.dtype), order="C")
        self._data = host if ctx.backend_name == "cpu" else ctx.backend.asarray(host, None, ctx.device_id)
        self._ctx, self._entry = ctx, None
        if STATE.trace is not None:
            STATE.trace.constant(self)

    # ----------------------------------------------------------------------------------------- as a TensorBase

    @property
    def _dt(self) -> np.dtype:
        return self._data.dtype

    def _lift(self, value: TensorLike) -> Tensor:
        return operand(value, ctx=self._ctx)

    def _apply(self, op: Op, values: Sequence[Value], keywords: Attrs) -> Any:
        if STATE.trace is not None and STATE.trace.takes(op, values):
            return STATE.trace.call(op, values, keywords)
        attrs = op.complete(keywords)
        prepared, results = compute(op, attrs, values, self._ctx, result_class=Tensor)
        return results[0] if prepared.visible == 1 else tuple(results[:prepared.visible])

    def _variable(self) -> TracedTensor | None:
        """The variable of the current trace that stands for this tensor, or None."""
        trace = STATE.trace
        return None if trace is None or not trace.knows(self) else trace.read(self)

    def _watched(self) -> str | None:
        if STATE.trace is not None and STATE.trace.knows(self):
            return "trace"
        return super()._watched()

    def shown(self) -> Tensor:
        return copy_on_write(self)

    # -------------------------------------------------------------------------------------------- questions

    @property
    def dtype(self) -> dtypes.DType:  # type: ignore[override]  # MindSpore's
        """The dtype, such as ``mindspore.float32``."""
        return dtypes.of(self._data.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._data.nbytes)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._data.dtype.itemsize)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._data.strides

    def dim(self) -> int:
        """Number of dimensions."""
        return self._data.ndim

    #: Whether an initializer made it.
    has_init = False

    def __repr__(self) -> str:
        return printing.show(self._shown())

    def __str__(self) -> str:
        return str(self._shown())

    def _shown(self) -> np.ndarray:
        """The elements for repr. If a traced function converts them to text, each run computes and compares them."""
        variable = self._variable()
        return self._copied() if variable is None or not variable.has_text else variable.asnumpy()

    # --------------------------------------------------------------------------------------- numbers for Python

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """The elements as a NumPy array, copied, into ``out`` if it is given; see ``NDArray.asnumpy``."""
        variable = self._variable()
        return super().asnumpy(out, blocking) if variable is None else variable.asnumpy(out, blocking)

    def asscalar(self) -> Any:
        """The only element as a NumPy scalar."""
        variable = self._variable()
        return super().asscalar() if variable is None else variable.asscalar()

    def item(self, index: int | tuple[int, ...] | None = None) -> Any:
        """The only element, or the one at a flat or full index, as a Python number."""
        variable = self._variable()
        return super().item(index) if variable is None else variable.item(index)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(f"the truth value of a tensor of shape {show(self.shape)} is ambiguous; use any() or "
                                f"all()")
        variable = self._variable()
        return bool(self.asnumpy().reshape(-1)[0]) if variable is None else bool(variable)

    def __int__(self) -> int:
        variable = self._variable()
        return super().__int__() if variable is None else int(variable)

    def __float__(self) -> float:
        variable = self._variable()
        return super().__float__() if variable is None else float(variable)

    def __index__(self) -> int:
        variable = self._variable()
        return super().__index__() if variable is None else operator.index(variable)

    def _as_numpy(self, dtype: DTypeLike, copy: bool | None) -> np.ndarray:
        variable = self._variable()
        return super()._as_numpy(dtype, copy) if variable is None else np.asarray(variable.asnumpy(), dtype)

    def __dlpack__(self, **keywords: Any) -> object:
        if STATE.trace is not None and STATE.trace.knows(self):
            STATE.trace.leave("it shares the memory of a tensor by DLPack")
        return super().__dlpack__(**keywords)

    def value(self) -> Tensor:
        """This tensor."""
        return self

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """A tensor over the memory of a NumPy array; see ``opreg.from_numpy``."""
        return from_numpy(array)

    # --------------------------------------------------------------------------------- copies and subscripts

    def copy(self) -> Tensor:
        """A copy, through which gradients pass."""
        return ops._copy(self)

    def __deepcopy__(self, memodict: object) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[type[Tensor], tuple[np.ndarray]]:
        return Tensor, (self.asnumpy(),)

    def __getitem__(self, key: Any) -> Tensor:
        if STATE.trace is not None and (mask := mask_of(key, self.shape)) is not None:
            return take_masked(self, mask)
        key = subscript(key, self.shape)
        if isinstance(key, TensorBase):
            return take_slices(self, key)
        if (MODE.current().recording and self._entry is not None) or STATE.trace is not None:
            return ops._subscript(self, key=key)
        try:
            return tensor_over(_copy_of_part(np, self._data, key) if self._ctx.backend_name == "cpu" else
                               self._ctx.run(_copy_of_part, self._ctx.xp, self._data, key), self._ctx)
        except IndexError as error:
            raise SubscriptError(str(error)) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        if STATE.trace is not None:
            STATE.trace.change(self, key, value)
            return
        key = subscript(key, self.shape)
        if isinstance(value, (list, tuple)) and (joined := stack_nesting(value)) is not None:
            value = joined
        if MODE.current().recording and (self._entry is not None or getattr(value, "_entry", None) is not None):
            value = value if isinstance(value, TensorBase) else tensor(numbers_of(value, self._dt), ctx=self._ctx)
            changed = ops._subscript_assign(self, value._cast(self._dt), key=key)
            self._data, self._entry = changed._data, changed._entry
            return
        self._write(key, value)

    def _write(self, key: Any, value: Any) -> None:
        """Write elements in place; values of another dtype are cast."""
        source: Any = value._data if isinstance(value, NDArray) else value if is_number(value) else _host(value)
        if getattr(source, "size", 0) == 1:  # NumPy assigns no array with axes to a scalar
            source = source.reshape(())
        if not isinstance(self._data, np.ndarray) and isinstance(source, np.ndarray):
            source = self._ctx.backend.asarray(source, None, self._ctx.device_id)
        self._before_write()
        watched = must_record_write(self)
        try:
            if watched and self._ctx.xp is np and quiet(keeps_all_bits, self._data[key], source):
                return
            self._ctx.run(put, self._ctx.xp, self._data, key, source)
        except OverflowError:  # an integer wraps around, as in arithmetic
            self._data[key] = numbers_of(value, self._dt)
        except IndexError as error:
            raise SubscriptError(str(error)) from None
        if watched:
            wrote(self._data, key)

    def _before_write(self) -> None:
        mode, outside = MODE.current(), STATE.outside
        # records refer to the old values, and so does a plan that calls this code
        if mode.recording or mode.paused or (outside is not None and outside.holds(self)):
            self._data = self._ctx.run(self._data.copy)

    # --------------------------------------------------------------------------------------------- gradients

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool | None = None
                 ) -> None:
        """Compute gradients of this tensor for all arrays with ``attach_grad``; see ``autograd.backward``. By default
        each operator is differentiated in the mode in which it was computed."""
        backward_pass.backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` stored, None when ``attach_grad`` was not called."""
        entry = self._entry
        while entry is not None and entry[0].op is not None and entry[0].op.traits.hooks:
            entry = entry[0].inputs[entry[1]]  # skips the nodes of the tensor's hooks
        gradient = None if entry is None else entry[0].grad
        return None if gradient is None else tensor_over(gradient._data, gradient._ctx)

    def detach(self) -> Tensor:
        """The same values, unrecorded, in shared memory."""
        return tensor_over(self._data, self._ctx) if self._variable() is None else ops.BlockGrad(self)


attach(Tensor, TENSORS, {name: (both, both, number) for name, (both, number, _) in COMPARISONS.items()}, "bool", True)
setattr(Tensor, "__hash__", object.__hash__)  # noqa: B010  == makes a tensor, identity makes a key
for _name in ("add", "sub", "mul", "truediv", "mod", "pow"):  # x += y is x = x + y: other references see no change
    setattr(Tensor, f"__i{_name}__", getattr(Tensor, f"__{_name}__"))

_new: Any = NDArray.__new__
Tensor._results = Tensor
TENSORS.add(Tensor)


class InitialisedTensor(Tensor):
    """A tensor filled by an initializer, which stays in ``init``."""

    __slots__ = ("init",)
    has_init = True

    @named
    def __init__(self, input_data: TensorLike | None = None, dtype: TensorDType = None, shape: OpenShape | None = None,
                 init: Initializer | None = None):
        super().__init__(input_data, dtype, shape, init)
        self.init = init

    def init_data(self, slice_index: object = None, shape: object = None, opt_shard_group: object = None) -> Tensor:
        """A tensor of these values."""
        return tensor_over(self._ctx.run(self._data.copy), self._ctx)


TENSORS.add(InitialisedTensor)


class OpenTensor(Tensor):
    """A shape with unknown lengths, or of unknown rank, and a dtype, without values."""

    __slots__ = ("_shape", "_dtype")

    def __init__(self, input_data: TensorLike | None = None, dtype: TensorDType = None, shape: OpenShape | None = None,
                 init: Initializer | None = None, **keywords: object):
        refuse_keywords("Tensor", keywords, ("input_data", "dtype", "shape", "init"))
        if input_data is None and shape is None and dtype is None:
            raise ArgumentError("Tensor: expected values, or shape= and dtype=, and optionally init=")
        if input_data is not None or init is not None or dtype is None:
            raise ArgumentError("Tensor: a shape with unknown lengths needs a dtype, and neither values nor init")
        lengths = shape if isinstance(shape, (tuple, list)) else (-2 if shape is None else shape,)
        self._shape = tuple([-1 if length is None else int(length) for length in lengths])
        self._dtype, self._ctx, self._entry = as_dtype(dtype), current_context(), None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; -1 for an unknown length, ``(-2,)`` for an unknown rank."""
        return self._shape

    @property
    def dtype(self) -> dtypes.DType:  # type: ignore[override]  # MindSpore's
        """The dtype, such as ``mindspore.float32``."""
        return dtypes.of(self._dtype)

    @property
    def _data(self) -> Any:  # type: ignore[override]
        raise ArgumentError(f"a tensor of shape {show(self._shape)} has no values: it only describes an argument for "
                            f"set_inputs")

    def copy(self) -> Tensor:
        """This tensor, which never changes."""
        return self

    def __repr__(self) -> str:
        return f"Tensor(shape={list(self._shape)}, dtype={self.dtype}, value=\n)"

    __str__ = __repr__


class LentTensor(Tensor):
    """Values in shared memory; writing to this tensor copies them first."""

    __slots__ = ()

    def _before_write(self) -> None:
        self._data = self._ctx.run(self._data.copy)
        self.__class__ = Tensor  # type: ignore[assignment]


TENSORS.add(LentTensor)


class BodyTensor(TensorBase, TracedNDArray):  # type: ignore[misc]  # its methods are those of ops
    """A tensor of a traced body of a user's operator, which calls functions of ``ops`` or ``mint``."""

    __slots__ = ()
    __hash__ = object.__hash__
    _rank = 5
    has_init = False

    @property
    def _dt(self) -> np.dtype:
        return self._data.dtype

    @property
    def dtype(self) -> dtypes.DType:  # type: ignore[override]  # MindSpore's
        """The dtype, such as ``mindspore.float32``."""
        return dtypes.of(self._dt)

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def _lift(self, value: Any) -> Any:
        body = self._data.body
        return body_tensor(value if isinstance(value, TracedNDArray) else body.value(body.entry(value)), self)

    def _apply(self, op: Op, values: Sequence[Any], given: Attrs) -> Any:
        results = super()._apply(op, values, given)
        if isinstance(results, (list, tuple)):
            return tuple([body_tensor(result, self) for result in results])
        return body_tensor(results, self)

    def __getitem__(self, key: Any) -> Any:
        return ops._subscript(self, key=subscript(key, self.shape))

    def copy(self) -> Any:
        """A copy, through which gradients pass."""
        return ops._copy(self)

    def detach(self) -> Any:
        """The same values, through which no gradient passes."""
        return ops.BlockGrad(self)


def body_tensor(value: TracedNDArray | TracedArray | NDArray, like: NDArray) -> Any:
    """A value of a traced body as a tensor on the device of another."""
    data = value._data if isinstance(value, NDArray) else value
    result = NDArray.__new__(BodyTensor)
    result._data, result._ctx, result._entry = data, like._ctx, None  # type: ignore[assignment]  # as an array
    return result


# ------------------------------------------------------------------------------------------------ making


def _host(value: object, dtype: np.dtype | None = None) -> np.ndarray:
    """Values as a NumPy array with the dtype that a tensor of them would have, or an intermediate one for ``dtype``."""
    if isinstance(value, np.ndarray):
        return value
    if not isinstance(value, (list, tuple, int, float)) and (shared := FOREIGN.function(value)) is not None:
        return shared._data if isinstance(shared._data, np.ndarray) else shared.asnumpy()
    if isinstance(value, (list, tuple)) and arrays_in(value):
        value = on_host(value)
    try:
        host = np.array(value)
    except (ValueError, TypeError, OverflowError) as error:
        note(error, "Tensor: expected an array, or nested lists of numbers with equal lengths")
        raise
    if isinstance(value, numbers.Real) and host.dtype == object and not isinstance(value, int):
        host = np.array(float(value))  # a Fraction, for the module statistics
    if host.dtype == object or (host.dtype == np.float64 and isinstance(value, (list, tuple)) and _is_large(host)):
        host = _large(value, host, dtype)
    if host.dtype.kind not in "iub" and not is_floating(host.dtype):
        raise ArgumentError(f"Tensor: expected numbers, got {type(value).__name__}")
    if host.dtype == np.float64 and dtype is None and not isinstance(value, np.generic):
        host = quiet(host.astype, np.float32)
    return host


def _trace_value(value: Any) -> Any:
    """A tensor, or a nesting that contains traced tensors, as a value of the current trace; None if it contains
    none."""
    trace = STATE.trace
    assert trace is not None
    if not isinstance(value, (list, tuple)):
        return trace.read(value) if trace.knows(value) else None
    if not any(map(trace.knows, leaves(value))):
        return None
    return _stack_nested(value, _host(_zeros_like_tree(value)).dtype)


def _zeros_like_tree(value: Any) -> Any:
    """A nesting with zeros in the places of tensors."""
    if isinstance(value, (list, tuple)):
        return list(map(_zeros_like_tree, value))
    return np.zeros(value.shape, value._data.dtype if isinstance(value, NDArray) else value._dt) \
        if isinstance(value, (TensorBase, NDArray)) else value


def _stack_nested(value: Any, dtype: np.dtype) -> Any:
    """Nested lists of scalars and tensors, stacked to one tensor."""
    if isinstance(value, (list, tuple)):
        return ops.stack(*[_stack_nested(part, dtype) for part in value], axis=0, num_args=len(value))
    return tensor(value if isinstance(value, (TensorBase, NDArray)) else np.asarray(value, dtype))._cast(dtype)
def _is_large(host: np.ndarray) -> bool:
    """Whether some values exceed int64."""
    return bool(host.size) and not -2.0 ** 63 <= host.min() <= host.max() < 2.0 ** 63


def _large(value: Any, host: np.ndarray, dtype: np.dtype | None) -> np.ndarray:
    """Values of which some exceed int64, where NumPy would make floats or objects."""
    leaves = list(np.array(value, object).flat)
    if not all(isinstance(leaf, numbers.Real) for leaf in leaves):
        return host
    if not all(isinstance(leaf, numbers.Integral) for leaf in leaves) or (dtype is not None and is_floating(dtype)):
        return np.array(value, np.float64)
    if dtype is not None:
        return numbers_of(value, dtype)
    if min(leaves) < 0 or max(leaves) >= 1 << 64:
        raise as_op_error(OverflowError(f"Tensor: integers from {min(leaves)} to {max(leaves)} fit no integer dtype; "
                                        f"give a floating one, such as float32"))
    return np.array(value, np.uint64)


def _lengths(shape: OpenShape) -> tuple[Any, ...]:
    """A shape as a tuple."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _open(shape: OpenShape) -> bool:
    """Whether a shape has unknown lengths."""
    return any(length is None or length == -1 for length in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def tensor(input_data: TensorLike | None = None, dtype: TensorDType = None, shape: OpenShape | None = None,
           init: Initializer | None = None, const_arg: bool = False, *, ctx: Context | None = None) -> Tensor:
    """A value as a tensor; tensors, including traced ones, are returned unchanged, or cast.

    Parameters
    ----------
    input_data, dtype, shape, init
        See ``Tensor``; gradients pass through casts.
    const_arg
        Accepted without effect.
    ctx : Context, optional
        Device of a tensor made from numbers.

    Examples
    --------
    >>> tensor([1, 2])
    Tensor(shape=[2], dtype=Int64, value= [1, 2])
    >>> tensor([1, 2], dtypes.float32)
    Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    value = input_data
    if isinstance(value, TensorBase) and shape is None and init is None:
        return value if dtype is None else value._cast(as_dtype(dtype))  # type: ignore[return-value]  # to users Tensors
    if value is None or dtype is not None or shape is not None:
        return Tensor(value, dtype, shape, init)
    if isinstance(value, TracedNDArray):
        return body_tensor(value, value)
    if isinstance(value, NDArray):
        if STATE.trace is not None:
            return STATE.trace.read(value)  # type: ignore[return-value]
        result = tensor_over(value._data, value._ctx)
        result._entry = value._entry
        return result
    ctx = ctx or current_context()
    if STATE.trace is not None and isinstance(value, (list, tuple)) and (traced := _trace_value(value)) is not None:
        return ops.BlockGrad(traced)
    host = _host(value)
    as_dtype(host.dtype)
    data = host_memory.copied(host) if ctx.backend_name == "cpu" else ctx.backend.asarray(host, None, ctx.device_id)
    result = tensor_over(data, ctx)
    if STATE.trace is not None:
        STATE.trace.constant(result)
    return result


def stack_nesting(value: list[Any] | tuple[Any, ...]) -> Tensor | None:
    """A nesting of tensors and numbers as one tensor, through which gradients pass; None if no gradient does."""
    if STATE.trace is not None:
        return _trace_value(value)
    arrays = [leaf for leaf in leaves(value) if isinstance(leaf, NDArray)] if MODE.current().recording else ()
    if any(array._entry is not None for array in arrays):
        return _stack_nested(value, _host(_zeros_like_tree(value)).dtype)
    return None


def operand(value: Any, *, ctx: Context | None = None) -> Tensor:
    """An operand as a tensor. Gradients pass to tensors in a list or tuple, unlike those of ``tensor``.

    Examples
    --------
    >>> from opreg import grad
    >>> grad(lambda x: operand([x, 2.0]) * 3)(Tensor(1.0))
    Tensor(shape=[], dtype=Float32, value= 3)
    """
    result = stack_nesting(value) if isinstance(value, (list, tuple)) else None
    return tensor(value, ctx=ctx) if result is None else result


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor over the memory of a NumPy array.

    Examples
    --------
    >>> numbers = np.zeros(2, np.float32)
    >>> shared = from_numpy(numbers)
    >>> shared[0] = 1.0
    >>> numbers
    array([1., 0.], dtype=float32)
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"from_numpy: Expected a NumPy array, got {type(array).__name__}.")
    as_dtype(array.dtype)
    if current_context().backend_name != "cpu":
        return tensor(array)
    share(array)
    return tensor_over(array)


def is_tensor(obj: object) -> bool:
    """Whether a value is a tensor.

    Examples
    --------
    >>> is_tensor(Tensor(1)), is_tensor(1)
    (True, False)
    """
    return isinstance(obj, TensorBase)


def has_values(value: object) -> TypeGuard[Tensor]:
    """Whether a value is a tensor with values, not a traced one.

    Examples
    --------
    >>> has_values(Tensor(1)), has_values(1)
    (True, False)
    """
    return isinstance(value, NDArray) and isinstance(value, TensorBase)


def as_tensor(array: NDArray | TensorBase) -> Any:
    """An array as a tensor with the same values and record; tensors, including traced ones, are returned unchanged."""
    if isinstance(array, TensorBase):
        return array
    result = tensor_over(array._data, array._ctx)
    result._entry = array._entry
    return result


def as_array(value: Any) -> Any:
    """A tensor as an NDArray with the same values and record; traced tensors are returned unchanged."""
    if not (isinstance(value, NDArray) and isinstance(value, TensorBase)):
        return value
    result = NDArray(value._data, value._ctx)
    result._entry = value._entry
    return result


def zeros_as(array: NDArray) -> Tensor:
    """Zeros with the shape, dtype and device of an array."""
    ctx = array._ctx
    return tensor_over(ctx.run(ctx.xp.zeros_like, array._data), ctx)


def _copy_of_part(xp: ArrayModule, source: Array, key: Any) -> Array:
    """The part of a raw array that a subscript selects, in memory of its own."""
    data = source[key]
    return data if isinstance(data, xp.ndarray) and data.flags.owndata else xp.array(data, order="C")


def tensor_over(data: Array, ctx: Context | None = None) -> Tensor:
    """A Tensor over a raw array, without a copy."""
    result = _new(Tensor)
    result._data, result._ctx, result._entry = data, cpu() if ctx is None else ctx, None
    return result


def copy_on_write(value: NDArray) -> Tensor:
    """The same values and record; writing to the result copies them first."""
    result = _new(LentTensor)
    result._data, result._ctx, result._entry = value._data, value._ctx, value._entry
    return result


def lent_raw(data: Array, ctx: Context) -> Tensor:
    """A tensor over a raw array that others read; writing to it copies it first."""
    result = _new(LentTensor)
    result._data, result._ctx, result._entry = data, ctx, None
    return result


#: The same values as a separate variable, so that a function can be differentiated in it; with the tensor's hooks, if
#: it has some.
FRESH = TapedFunction("argument",
                      lambda g, ins, outs, attrs, needs, is_train=True: [g if attrs is None else attrs.through(g)])


def argument(value: NDArray) -> TapeEntry:
    """The entry of a separate variable with the same values, placed after the nodes that computed them."""
    entry = value._entry
    if entry is None:
        return Variable(value), 0
    return TapeNode(FRESH, None, (entry,), [value._data], [value._data], 1, value._ctx, frame()), 0


def fresh(value: NDArray) -> Tensor:
    """The same values, recorded as a separate variable after the nodes that computed them."""
    result = _new(LentTensor)
    result._data, result._ctx, result._entry = value._data, value._ctx, argument(value)
    return result


def take_slices(value: TensorBase, places: TensorBase) -> Tensor:
    """The slices along the first axis at the given indices; negative ones count from the end."""
    return ops.take(value, places, axis=0, mode="index")


def take_masked(value: Any, mask: Any) -> Tensor:
    """The slices where a mask over the first axes holds, stacked."""
    rows = value.reshape((mask.size, *value.shape[mask.ndim:]))
    return ops._contrib_boolean_mask(rows, mask.reshape((mask.size,)))


name_errors(__name__, globals(), ["from_numpy"])
