"""NDArray: numbers on a device, over a NumPy or CuPy array, on which operators compute now."""

from __future__ import annotations

import operator
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from opreg import custom
from opreg.errors import ArgumentError, DeviceError, OpError, ShapeError, note
from opreg.mode import MODE
from opreg.op import Op
from opreg.registry import get, ops
from opreg.spec import as_dtype, show
from opreg.value import Value

from . import tape
from .context import Context, cpu, current_context
from .eager import run

__all__ = ["NDArray", "FrozenNDArray", "array", "wrap", "raw"]

_SCALARS: dict[tuple[Any, Any], np.ndarray] = {}


def _scalar(value: Any, dtype: np.dtype) -> np.ndarray:
    """A number as a 0-d array, which a ufunc takes twice as fast as a Python number."""
    if len(_SCALARS) > 1024:
        _SCALARS.clear()
    with np.errstate(all="ignore"):
        made = _SCALARS[value, dtype] = np.array(value).astype(dtype)
    return made


def _fast(name: str, ufunc: Any, reflected: bool) -> Callable:
    """Python's operator for floating arrays on the host, when nothing is recorded; the general way otherwise."""
    array_class = np.ndarray

    def method(self: NDArray, other: Any) -> Any:
        data = self._data
        if data.__class__ is array_class and not MODE.recording:
            kind = other.__class__
            dtype = data.dtype
            if kind is NDArray or kind is FrozenNDArray:
                right = other._data
                if right.__class__ is not array_class or right.dtype is not dtype or self._ctx is not other._ctx:
                    return self._binary(name, other, reflected)
            elif (kind is int or kind is float) and dtype.kind == "f":
                try:
                    right = _SCALARS[other, dtype]
                except KeyError:
                    right = _scalar(other, dtype)
            else:
                return self._binary(name, other, reflected)
            try:
                found = ufunc(right, data) if reflected else ufunc(data, right)
            except ValueError:
                return self._binary(name, other, reflected)  # says what does not broadcast
            if found.__class__ is array_class and found.dtype is dtype:
                result = _new(NDArray)
                result._data = found
                result._ctx = self._ctx
                result._entry = None
                return result
        return self._binary(name, other, reflected)

    method.__name__ = f"__{'r' if reflected else ''}{name}__"
    return method


class NDArray(Value):
    """Numbers on a device.

    Arithmetic broadcasts and computes at once. ``a[i]``, ``a[i:j]`` and ``reshape`` are views that write through;
    other subscripts, ``T`` and operators give new arrays.

    Parameters
    ----------
    data : array of the context's array module
        Held, not copied. Programs make arrays with ``nd.array`` and its like.
    ctx : Context
        Where it lives.

    Examples
    --------
    >>> a = array([[1, 2], [3, 4]])
    >>> (a * 2 + 1).asnumpy().tolist()
    [[3.0, 5.0], [7.0, 9.0]]
    """

    __slots__ = ("_data", "_ctx", "_entry", "__weakref__")
    __array_priority__ = 1000.0  # numpy_array + nd asks this class first
    _rank = 0
    _broadcasts = True
    _data: Any
    _ctx: Context
    _entry: Any  # (tape node, output number) while recorded, else None

    def __init__(self, data: Any, ctx: Context | None = None):
        if isinstance(data, NDArray):
            data, ctx = data._data, data._ctx
        self._data = data if hasattr(data, "dtype") and hasattr(data, "flags") else np.asarray(data)
        self._ctx = ctx if ctx is not None else cpu()
        self._entry = None

    # ------------------------------------------------------------------------------------------- operators

    def _apply(self, op: Op, values: Sequence[Any], given: Any) -> Any:
        attrs = op.complete(given)
        settled, results = _compute(op, attrs, values, self._ctx)
        visible = settled.visible
        return results[0] if visible == 1 else results[:visible]

    @classmethod
    def _surface(cls, name: str) -> Callable:
        from . import function

        return function.surface(name)

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        if isinstance(other, np.ndarray) or (isinstance(other, np.generic) and other.ndim):
            other = array(other, ctx=self._ctx, dtype=self._data.dtype)
        return super()._binary(name, other, reflected)

    for _name, _ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        locals()[f"__{_name}__"] = _fast(_name, _ufunc, False)
        locals()[f"__r{_name}__"] = _fast(_name, _ufunc, True)
    del _name, _ufunc

    def _inplace(self, name: str, other: Any) -> NDArray:
        if MODE.recording and self._entry is not None:
            raise OpError("in-place change of an array that is recorded: its old value may be needed for the "
                          "gradient; write x = x + y, or pause recording")
        result = getattr(operator, name)(self, other)
        if result.shape != self.shape:
            raise ShapeError(f"in-place {name}: the result has shape {show(result.shape)}, the array "
                             f"{show(self.shape)}")
        self._store(Ellipsis, result._data)
        return self

    def __iadd__(self, other: Any) -> NDArray:
        return self._inplace("add", other)

    def __isub__(self, other: Any) -> NDArray:
        return self._inplace("sub", other)

    def __imul__(self, other: Any) -> NDArray:
        return self._inplace("mul", other)

    def __itruediv__(self, other: Any) -> NDArray:
        return self._inplace("truediv", other)

    def __imod__(self, other: Any) -> NDArray:
        return self._inplace("mod", other)

    def __ipow__(self, other: Any) -> NDArray:
        return self._inplace("pow", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self.asscalar())
        raise ShapeError(f"the truth of an array with {self.size} elements is ambiguous")

    def __len__(self) -> int:
        if not self._data.shape:
            raise TypeError("len() of a 0-d array")
        return self._data.shape[0]

    def __iter__(self) -> Iterator[NDArray]:
        for i in range(len(self)):
            yield self[i]

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iu" or self.size != 1:
            raise TypeError("only an integer array with one element is an index")
        return int(self.asscalar())

    # -------------------------------------------------------------------------------------------- questions

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions."""
        return self._data.shape

    @property
    def dtype(self) -> type:
        """The dtype as a NumPy scalar class."""
        return self._data.dtype.type

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self._data.size)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._data.ndim

    @property
    def context(self) -> Context:
        """Where it lives."""
        return self._ctx

    ctx = context

    @property
    def stype(self) -> str:
        """Storage type, always ``default``: dense."""
        return "default"

    @property
    def T(self) -> NDArray:
        """The array with its axes reversed, copied."""
        return self if self.ndim < 2 else ops.transpose(self)

    # ----------------------------------------------------------------------------------- to and from others

    def asnumpy(self) -> np.ndarray:
        """A NumPy array holding a copy.

        Examples
        --------
        >>> array([1, 2]).asnumpy()
        array([1., 2.], dtype=float32)
        """
        return self._ctx.backend.to_numpy(self._data)

    def asscalar(self) -> Any:
        """The only element as a NumPy scalar.

        Raises
        ------
        ShapeError
            When there is more than one, or none.
        """
        if self.size != 1:
            raise ShapeError(f"asscalar: expected one element, the array has shape {show(self.shape)}")
        return self.asnumpy().reshape(-1)[0]

    item = asscalar

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.asnumpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        host = self._data if isinstance(self._data, np.ndarray) else self.asnumpy()
        return np.array(host, dtype=dtype) if copy is not False else np.asarray(host, dtype=dtype)

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._data.__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule that shares the memory, for reading."""
        return self._data.__dlpack__()

    def to_dlpack_for_write(self) -> Any:
        """A DLPack capsule that shares the memory, for writing."""
        return self._data.__dlpack__()

    @property
    def __cuda_array_interface__(self) -> dict:
        interface = getattr(self._data, "__cuda_array_interface__", None)
        if interface is None:
            raise AttributeError(f"an array on {self._ctx} has no __cuda_array_interface__")
        return interface

    def __reduce__(self) -> Any:
        return _restore, (self.asnumpy(), self._ctx)

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> NDArray:
        return self.copy()

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"\n{self.asnumpy()}\n<{type(self).__name__.replace('Frozen', '')} {shape} @{self._ctx}>"

    # ---------------------------------------------------------------------------------------- copies, places

    def copy(self) -> NDArray:
        """A copy in the same place."""
        return ops._copy(self)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array of the same shape, or to a context as a new array."""
        if isinstance(other, Context):
            return NDArray(other.backend.asarray(self._data, device=other.device_id), other)
        if not isinstance(other, NDArray):
            raise ArgumentError(f"copyto: expected an NDArray or a Context, got {type(other).__name__}")
        if other.shape != self.shape:
            raise ShapeError(f"copyto: expected an array of shape {show(self.shape)}, got {show(other.shape)}")
        other[:] = self
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """This array when it lives there already, else a copy there."""
        return self if context == self._ctx else self.copyto(context)

    as_in_ctx = as_in_context

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """A copy with another dtype; itself when the dtype is the same and ``copy`` is False."""
        if not copy and self._data.dtype == as_dtype(dtype):
            return self
        return ops.Cast(self, dtype=as_dtype(dtype))

    def wait_to_read(self) -> None:
        """Wait until the device has computed it."""
        self._ctx.backend.synchronize(self._ctx.device_id)

    wait_to_write = wait_to_read

    def tostype(self, stype: str) -> NDArray:
        """This array; ``default`` is the only storage type."""
        if stype != "default":
            raise ArgumentError(f"storage type {stype!r}: expected 'default', arrays here are dense")
        return self

    def as_nd_ndarray(self) -> NDArray:
        """This array."""
        return self

    # -------------------------------------------------------------------------------------------- subscripts

    def reshape(self, *shape: Any, **keywords: Any) -> NDArray:
        """A view with another shape, by MXNet's codes.

        0 keeps a dimension, -1 is inferred, -2 takes all that remain, -3 merges two, -4 splits one in the next two
        numbers; ``reverse=True`` reads codes and dimensions from the right.

        Examples
        --------
        >>> array([[1, 2, 3], [4, 5, 6]]).reshape((-3, 1)).shape
        (6, 1)
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        wanted = keywords.pop("shape", shape)
        if MODE.recording and self._entry is not None:
            return ops.Reshape(self, shape=tuple(wanted), **keywords)
        attrs = get("Reshape").complete({"shape": tuple(wanted), **keywords})
        _, (found,) = get("Reshape").infer_shapes([self.shape], [None], attrs)
        return self._view(self._data.reshape(found))

    def reshape_view(self, shape: tuple[int, ...]) -> NDArray:
        """A view with exactly this shape."""
        return self._view(self._data.reshape(shape))

    def _view(self, data: Any) -> NDArray:
        result = _new(type(self))
        result._data, result._ctx, result._entry = data, self._ctx, None
        return result

    def at(self, index: int) -> NDArray:
        """The view ``self[index]``."""
        return self[index]

    def slice(self, *args: Any, **keywords: Any) -> NDArray:
        """The operator ``slice`` applied to this."""
        return self._surface("slice")(self, *args, **keywords)

    def __getitem__(self, key: Any) -> NDArray:
        key, basic = _key(key, self.shape)
        if MODE.recording and self._entry is not None:
            result = ops._subscript(self, key=key)
            return result if result.shape else result.reshape((1,))
        found = self._data[key]
        if not getattr(found, "shape", ()):  # one element is an array of one element
            ones = tuple(key) if isinstance(key, tuple) else (key,)
            found = self._data[tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in ones)] \
                .reshape(1) if basic and Ellipsis not in ones else self._data[key].reshape(1)
        if basic and found.flags.c_contiguous and self._data.flags.c_contiguous:
            return self._view(found)
        result = _new(NDArray)
        result._data, result._ctx, result._entry = found.copy() if basic else found, self._ctx, None
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        if MODE.recording and self._entry is not None:
            raise OpError("assignment to an array that is recorded: its old value may be needed for the gradient")
        if key is not Ellipsis:
            key, _ = _key(key, self.shape)
        self._store(key, value)

    def _store(self, key: Any, value: Any) -> None:
        data = self._data
        if isinstance(value, NDArray):
            source = value._data
            if type(source) is not type(data) or value._ctx.device_id != self._ctx.device_id:
                source = self._ctx.backend.asarray(source, device=self._ctx.device_id)
            data[key] = source
        elif isinstance(value, (int, float, complex, np.generic)) or isinstance(data, np.ndarray):
            data[key] = value
        else:
            data[key] = self._ctx.backend.asarray(value, data.dtype, self._ctx.device_id)

    # --------------------------------------------------------------------------------------------- gradients

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Ask for this array's gradient: ``backward`` stores it in ``grad``.

        Parameters
        ----------
        grad_req : {"write", "add", "null"}
            Whether backward overwrites the gradient, adds to it, or leaves it.
        """
        xp = self._ctx.xp
        self._entry = tape.leaf(self, NDArray(xp.zeros(self._data.shape, self._data.dtype), self._ctx), grad_req)

    @property
    def grad(self) -> NDArray | None:
        """The gradient that ``backward`` stored, None when ``attach_grad`` was not called."""
        entry = self._entry
        return None if entry is None else entry[0].grad

    def zero_grad(self) -> None:
        """Set the gradient to zeros."""
        if self.grad is not None:
            self.grad[...] = 0

    @property
    def fresh_grad(self) -> bool:
        """Whether a backward pass has stored a gradient since this was last set to False."""
        return self._entry is not None and self._entry[0].fresh

    @fresh_grad.setter
    def fresh_grad(self, value: bool) -> None:
        if self._entry is not None:
            self._entry[0].fresh = value

    def detach(self) -> NDArray:
        """The same numbers, not recorded; memory is shared."""
        return NDArray(self._data, self._ctx)

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Gradients of this array with respect to all that asked for theirs; see ``autograd.backward``."""
        tape.backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)


_new = NDArray.__new__


class FrozenNDArray(NDArray):
    """An array that an operator is shown and may not change: its inputs."""

    __slots__ = ()

    def _store(self, key: Any, value: Any) -> None:
        raise OpError("this array is an input of the operator and is read-only: copy it first, x = x.copy()")


def _key(key: Any, shape: tuple[int, ...]) -> tuple[Any, bool]:
    """A subscript in NumPy's terms, and whether it is a basic one; boolean and float arrays count as integers."""
    if key.__class__ is int or key.__class__ is slice:
        if key.__class__ is int and not (shape and -shape[0] <= key < shape[0]):
            raise IndexError(f"index {key} is out of range for axis 0 of an array of shape {show(shape)}")
        return key, True
    if not isinstance(key, tuple):
        key = (key,)
    parts, basic = [], True
    for part in key:
        if isinstance(part, NDArray):
            part = part._data
        if isinstance(part, (list, np.ndarray)) or hasattr(part, "dtype") and getattr(part, "ndim", 0):
            part = np.asarray(part) if isinstance(part, list) else part
            if part.dtype.kind not in "iu":
                part = part.astype(np.int64)
            basic = False
        elif isinstance(part, np.generic):
            part = int(part)
        parts.append(part)
    return (parts[0] if len(parts) == 1 else tuple(parts)), basic


def _restore(host: np.ndarray, ctx: Context) -> NDArray:
    try:
        return NDArray(ctx.backend.asarray(host, device=ctx.device_id), ctx)
    except DeviceError:  # saved on a device that this machine lacks
        return NDArray(host, cpu())


def wrap(data: Any, ctx: Context, frozen: bool = False) -> NDArray:
    """An NDArray over a raw array; a frozen one refuses writes."""
    if frozen and isinstance(data, np.ndarray):
        data = data.view()
        data.flags.writeable = False
    result = _new(FrozenNDArray if frozen else NDArray)
    result._data, result._ctx, result._entry = data, ctx, None
    return result


def raw(value: Any, ctx: Context, like: Any = None) -> Any:
    """The raw array of an NDArray on a context; a NumPy array or number becomes one."""
    if isinstance(value, NDArray):
        if value._ctx is not ctx and value._ctx != ctx:
            raise DeviceError(f"arrays live on {value._ctx} and {ctx}: move one with as_in_context")
        return value._data
    if isinstance(value, (np.ndarray, np.generic, int, float, list, tuple)) and not isinstance(value, bool):
        return array(value, ctx=ctx, dtype=like)._data
    raise ArgumentError(f"expected an NDArray, got {type(value).__name__}")


def _compute(op: Op, attrs: Any, values: Sequence[Any], ctx: Context, out: Any = None) -> tuple[Any, list[NDArray]]:
    """Run an operator, store what it changes in place, record it where somebody wants a gradient."""
    arrays = []
    for value in values:
        if value.__class__ is NDArray and value._ctx is ctx:
            arrays.append(value._data)
        else:
            try:
                arrays.append(raw(value, ctx))
            except (ArgumentError, DeviceError) as error:
                note(error, f"input {len(arrays)} of operator {op.name}")
                raise
    settled, results = run(op, attrs, arrays, ctx, out, wrap)
    count = settled.count
    if len(results) > count:
        first = len(op.arguments(attrs))
        for state, new in zip(op.states, results[count:]):
            values[first + state]._store(Ellipsis, NDArray(new, ctx))
        del results[count:]
    outs = []
    for data in results:
        result = _new(NDArray)
        result._data, result._ctx, result._entry = data, ctx, None
        outs.append(result)
    if MODE.recording:
        tape.record(op, attrs, values, arrays, outs)
    return settled, outs


def array(source: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """An array holding a copy of numbers.

    Parameters
    ----------
    source : sequence, NumPy array or NDArray
        The numbers.
    ctx : Context
        Where; the current context by default.
    dtype : dtype
        float32 by default, whatever the source's; an NDArray's own.

    Examples
    --------
    >>> array(np.arange(3)).dtype
    <class 'numpy.float32'>
    """
    ctx = current_context() if ctx is None else Context(ctx) if not isinstance(ctx, Context) else ctx
    if isinstance(source, NDArray):
        dtype = source._data.dtype if dtype is None else as_dtype(dtype)
        return NDArray(ctx.backend.asarray(source._data, dtype, ctx.device_id), ctx)
    if isinstance(source, (list, tuple)) and any(isinstance(each, NDArray) for each in source):
        source = [each.asnumpy() if isinstance(each, NDArray) else each for each in source]
    dtype = np.dtype(np.float32) if dtype is None else as_dtype(dtype)
    try:
        return NDArray(ctx.backend.asarray(source, dtype, ctx.device_id), ctx)
    except (ValueError, TypeError) as error:
        note(error, "nd.array: expected numbers in a regular nesting, or an array")
        raise


custom.host_array = lambda data: wrap(data, cpu())
