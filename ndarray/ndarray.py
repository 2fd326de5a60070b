"""NDArray: an array on a device, held as a NumPy or CuPy array. Operators on NDArrays compute eagerly."""

from __future__ import annotations

import numbers
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from opreg.core import host_memory
from opreg.core.array_module import put
from opreg.core.dispatch import INVOKE
from opreg.core.mode import MODE, quiet
from opreg.core.op import Op
from opreg.core.other_names import name_others, own_names
from opreg.core.registry import get, ops
from opreg.core.reports import HTML
from opreg.core.rules import Attrs
from opreg.core.slots import Slot
from opreg.core.spec import as_dtype, is_numpy_float, show, wrapped
from opreg.core.value import BINARY, Value
from opreg.core.versions import keeps_all_bits, must_record_write, view_at, wrote
from opreg.errors import ArgumentError, DTypeError, OpError, ShapeError, SubscriptError, as_op_error, note
from opreg.typing import Array, DTypeLike

from . import backward_pass, changes, params_file, tape
from .arithmetic import attach, in_place, leave_trace
from .context import Context, cpu, current_context, present_context
from .protocols import Protocols
from .records import Record
from .scalars import ScalarConversions
from .subscripts import index_of, one_element

if TYPE_CHECKING:  # a stub, made from the operators
    from numpy.typing import ArrayLike

    from .methods import Methods
else:
    Methods = Value

__all__ = ["LENT", "NDArray", "FrozenNDArray", "array", "over", "wrap", "numbers_of"]

#: Returns the function of ``nd`` with a name.
SURFACE = Slot("arrays")
#: Python's ``slice``, by the name that it has in MXNet's module, where ``slice`` is the operator.
py_slice = slice
#: The codes of storage types in MXNet's files.
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
#: The storage types of arrays.
STORAGE_TYPES = tuple(kind for kind, number in _STORAGE_TYPE_STR_TO_ID.items() if number >= 0)
#: Converts an array to another storage type.
CAST_STORAGE = Slot("arrays")
#: Makes a matrix of the storage type ``csr``.
CSR_MATRIX = Slot("arrays")
#: Computes an operator of arrays.
COMPUTE = Slot("arrays")
#: Makes an NDArray over the memory of another library's array; None for other values.
FOREIGN = Slot("arrays")
#: Makes an array of ``mx.np`` over the memory of an NDArray.
AS_NUMPY = Slot("np")

_FLOAT32, _ALL = np.dtype(np.float32), slice(None)


class NDArray(ScalarConversions, Protocols, Methods):
    """An array on a device.

    Arithmetic broadcasts and is computed eagerly. ``a[i]``, ``a[i:j]`` and ``reshape`` are views that share memory;
    other subscripts, ``T`` and operators make new arrays.

    Parameters
    ----------
    data : array of the context's array module
        The array, which is not copied. Programs make arrays by ``nd.array`` and other functions of ``nd``.
    ctx : Context
        The device of the array.

    Examples
    --------
    >>> a = array([[1, 2], [3, 4]])
    >>> (a * 2 + 1).asnumpy().tolist()
    [[3.0, 5.0], [7.0, 9.0]]
    """

    __slots__ = ("_data", "_ctx", "_entry", "_part_of", "_views", "__weakref__")
    __array_priority__ = 1000.0  # Python asks this class before NumPy's about numpy_array + nd
    _rank: float = 0
    _broadcasts = True
    _alike = False  # whether functions of nd return arrays of this class
    _sparse = False  # whether it is stored sparsely
    _scalars = False  # whether operators may return 0-d arrays
    _results: type[NDArray] | None = None  # class of the results of users' operators; None for NDArray
    _instead = "Use an operator of nd in its place, or asnumpy() where no gradient is wanted"
    _data: Array
    _ctx: Context
    _entry: tape.TapeEntry | None  # its place on the tape; None if it is not recorded
    _part_of: tuple[NDArray, object]  # the base of a view, and its subscript, or None for a reshape
    _views: list[weakref.ref[NDArray]]  # views of it, once there are any

    def __init__(self, data: ArrayLike | NDArray, ctx: Context | None = None):
        if isinstance(data, NDArray):
            if MODE.tracer is not None:
                leave_trace((data,))
            ctx, data = data._ctx, data._data
        if MODE.tracer is not None:
            MODE.tracer.constant(self)
        self._data = data if hasattr(data, "dtype") and hasattr(data, "flags") else np.asarray(data)  # type: ignore
        if self._data.dtype.kind in "OSUMm":  # Fractions, which the module statistics passes; text is an error
            self._data = numbers_of(self._data, _FLOAT32)
        self._ctx = ctx if ctx is not None else cpu()
        self._entry = None

    @property
    def _memory(self) -> Any:
        """The object that holds the elements: the raw array, or the `Stored` of a sparse array."""
        return self._data

    # ------------------------------------------------------------------------------------------- operators

    def _apply(self, op: Op, values: Sequence[Any], keywords: Attrs) -> Any:
        attrs = op.complete(keywords)
        prepared, results = COMPUTE.function(op, attrs, values, self._ctx)
        visible = prepared.visible
        return results[0] if visible == 1 else results[:visible]

    def _shape_is(self, other: object) -> bool:
        return isinstance(other, NDArray) and self._data.shape == other._data.shape

    def _invoke(self, op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        return INVOKE.function(op, args, keywords)

    @classmethod
    def _surface(cls, name: str) -> Callable[..., Any]:
        return SURFACE.function(name)

    def _lift(self, value: Any) -> NDArray:
        """A value as an array of the same dtype on the same device."""
        return array(value, self._ctx, self._data.dtype)

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        if not isinstance(other, (Value, np.ndarray, float, int)) and (shared := FOREIGN.function(other)) is not None:
            other = shared._data if isinstance(shared._data, np.ndarray) else shared
        if isinstance(other, np.ndarray):
            if not np.can_cast(other.dtype, self._data.dtype, "same_kind"):
                raise DTypeError(f"a NumPy array of dtype {other.dtype} does not fit an array of dtype "
                                 f"{self._data.dtype}: convert one with astype")
            other = array(other, ctx=self._ctx, dtype=self._data.dtype)
        return super()._binary(name, other, reflected)

    def __neg__(self) -> NDArray:
        return self * -1

    __iadd__, __isub__, __imul__ = in_place("add"), in_place("sub"), in_place("mul")
    __itruediv__, __imod__, __ipow__ = in_place("truediv"), in_place("mod"), in_place("pow")

    def __bool__(self) -> bool:
        if self.size < 2:
            return self.size == 1 and bool(self.asscalar())
        raise ShapeError(f"the truth value of an array with {self.size} elements, shape {show(self.shape)}, is "
                         f"ambiguous; ask for all() or any() of asnumpy()")

    def __len__(self) -> int:
        if not self._data.shape:
            raise ArgumentError("len() of a 0-d array")
        return self._data.shape[0]

    def __iter__(self) -> Iterator[NDArray]:
        return map(self.__getitem__, range(len(self)))

    # -------------------------------------------------------------------------------------------- questions

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
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
        """The context of the array."""
        return self._ctx

    ctx = context

    @property
    def writable(self) -> bool:
        """Whether elements may be changed. Inputs of operators and read-only memory may not."""
        return True

    def check_writable(self, name: str = "") -> None:
        """Raise an error, which begins with ``name``, if elements must not be changed.

        Raises
        ------
        OpError
            While recording, for an array whose elements a gradient may need; always for inputs of operators, and for
            read-only memory.
        """
        if self._entry is not None and MODE.current().recording and not changes.writable(self):
            self._refuse(name)

    _refusal = "an array that is recorded cannot be changed in place: the gradient may need its elements. " \
               "Write x = x + y, or change it inside autograd.pause()"

    def _refuse(self, name: str) -> NoReturn:
        raise OpError(f"{name}: {self._refusal}" if name else self._refusal)

    def shown(self) -> NDArray:
        """A read-only array over the same memory."""
        result = wrap(self._data, self._ctx, True)
        result._entry = self._entry
        return result

    @property
    def stype(self) -> str:
        """The storage type: ``default`` for dense arrays."""
        return "default"

    @property
    def T(self) -> NDArray:
        """A copy with the axes in reverse order."""
        return self if self.ndim < 2 else ops.transpose(self)

    # ----------------------------------------------------------------------------------- to and from others

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """Copy the array to a NumPy array.

        Parameters
        ----------
        out : numpy.ndarray, optional
            The array to copy to, of the same shape and dtype. If its memory is pinned (``cupyx.empty_pinned``), a GPU
            copies without help of the host.
        blocking : bool
            False returns before a GPU has copied, as CuPy's ``get`` does. The copy runs on the current stream; it is
            complete after ``wait_to_read()``, or after an event that is recorded after this call. Keep the returned
            array until then. Without ``out``, it is in pinned memory, and may be given as ``out`` again. On the host,
            the copy is complete at once.

        Raises
        ------
        ShapeError, DTypeError
            If ``out`` has another shape or dtype.
        ArgumentError
            If ``out`` is no writable NumPy array, or, with ``blocking=False``, is not contiguous.

        Examples
        --------
        >>> array([1, 2]).asnumpy()
        array([1., 2.], dtype=float32)
        >>> place = np.empty(2, np.float32)
        >>> array([3, 4]).asnumpy(out=place) is place, place.tolist()
        (True, [3.0, 4.0])
        """
        if MODE.tracer is not None:
            leave_trace((self,))
        if out is None and blocking:
            return self._copied()
        if out is not None:
            self._check_place(out, blocking)
        return self._ctx.backend.to_numpy(self._data, out, blocking)

    def _check_place(self, out: np.ndarray, blocking: bool) -> None:
        """Raise an error for an ``out`` that cannot be copied to."""
        if not isinstance(out, np.ndarray):
            raise ArgumentError(f"asnumpy: out: expected a NumPy array, got {type(out).__name__}")
        if out.shape != self._data.shape:
            raise ShapeError(f"asnumpy: out: expected shape {self._data.shape}, got {out.shape}")
        if out.dtype != self._data.dtype:
            raise DTypeError(f"asnumpy: out: expected dtype {self._data.dtype}, got {out.dtype}")
        if not out.flags.writeable or not (blocking or out.flags.c_contiguous):
            raise ArgumentError("asnumpy: out: expected a writable array"
                                + ("" if blocking else " that is contiguous"))

    def _copied(self) -> np.ndarray:
        """A copy as a NumPy array, even while a function is traced."""
        data = self._data
        return data.copy("K") if data.__class__ is np.ndarray else self._ctx.backend.to_numpy(data)

    def _watched(self) -> str | None:
        """Whether operators on this array are recorded (``tape``) or traced (``trace``); None for neither."""
        return "tape" if self._entry is not None and MODE.current().recording else None

    def _held(self, host: np.ndarray) -> NDArray:
        """A NumPy array as an NDArray on the same device."""
        return NDArray(self._ctx.backend.asarray(host, None, self._ctx.device_id), self._ctx)

    def __reduce__(self) -> tuple[Callable[..., NDArray], tuple[object, ...]]:
        return _restore, (self.asnumpy(), self._ctx)

    def __getstate__(self) -> dict[str, bytes]:
        record = Record(self.asnumpy(), (self._ctx.device_type, self._ctx.device_id))
        return {"handle": params_file.to_bytes(record)}

    def __setstate__(self, state: Mapping[str, bytes]) -> None:
        """Load the state of a pickle of MXNet, a record as in a ``.params`` file."""
        record = params_file.from_bytes(state["handle"])
        host, device = cast("np.ndarray", record.dense()), record.device
        restored = _restore(host, Context(*device))
        self._data, self._ctx, self._entry = restored._data, restored._ctx, None

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> NDArray:
        return self.copy()

    def __dir__(self) -> list[str]:
        return own_names(type(self), super().__dir__())

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"\n{self._copied()}\n<NDArray {shape} @{self._ctx}>"

    def _repr_html_(self) -> str | None:
        html: str | None = HTML.function(self)
        return html

    # ---------------------------------------------------------------------------------------- copies, places

    def copy(self) -> NDArray:
        """A copy on the same device."""
        return ops._copy(self)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array of the same shape, or to a context as a new array."""
        if MODE.tracer is not None:
            leave_trace((self, other))
        if isinstance(other, Context):
            result = NDArray(other.backend.asarray(self._data, device=other.device_id), other)
            if MODE.current().recording:
                tape.record(tape.TRANSFER, {"source": self._ctx}, [self], [self._data], [result])
            return result
        if not isinstance(other, NDArray):
            raise ArgumentError(f"copyto: expected an NDArray or a Context, got {type(other).__name__}")
        if other.shape != self.shape:
            raise ShapeError(f"copyto: expected an array of shape {show(self.shape)}, got {show(other.shape)}")
        other[:] = self
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """This array if it is in that context, or else a copy there."""
        return self if context is self._ctx else self.copyto(context)

    def as_in_ctx(self, ctx: Context) -> NDArray:
        """``as_in_context``, as MXNet's ``np`` calls it."""
        return self.as_in_context(ctx)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> NDArray:
        """A copy with another dtype. With ``copy=False``, an array that has the dtype is returned itself."""
        if not copy and self._data.dtype == as_dtype(dtype):
            return self
        return ops.Cast(self, dtype=as_dtype(dtype))

    def wait_to_read(self) -> None:
        """Wait until the device has computed the array."""
        self._ctx.backend.synchronize(self._ctx.device_id)

    wait_to_write = wait_to_read

    def tostype(self, stype: str) -> NDArray:
        """The values in a storage type, ``default``, ``row_sparse`` or ``csr``; the array itself if it has that
        type."""
        if stype == "default":
            return self
        result: NDArray = CAST_STORAGE.function(self, stype)
        return result

    def as_nd_ndarray(self) -> NDArray:
        """This array."""
        return self

    def as_np_ndarray(self) -> Any:
        """An array of ``mx.np`` over the same memory, recorded in the same way."""
        return AS_NUMPY.function(self)

    # -------------------------------------------------------------------------------------------- subscripts

    def reshape(self, *shape: Any, **keywords: Any) -> NDArray:
        """A view with another shape, which may contain MXNet's codes.

        0 copies a dimension, -1 infers one, -2 copies all remaining ones, -3 merges two, and -4 splits one into the two
        sizes that follow. ``reverse=True`` matches codes and dimensions from the right.

        Examples
        --------
        >>> array([[1, 2, 3], [4, 5, 6]]).reshape((-3, 1)).shape
        (6, 1)
        """
        if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
            shape = tuple(shape[0])
        target = tuple(keywords.pop("shape", shape))
        if MODE.tracer is not None:
            leave_trace((self,))
        if MODE.current().recording and self._entry is not None:
            # An empty ``shape`` of Reshape means that it is missing.
            result = ops.Reshape(self, shape=target, **keywords) if target or keywords else \
                ops._np_reshape(self, newshape=())
            return self._link_part(result, None) if changes.writable(self) else result
        data = None
        try:
            if not keywords and 0 not in target and min([-1, *target]) == -1:  # no codes
                data = self._data.reshape(target)
        except (TypeError, ValueError):
            pass  # the operator's error is clearer
        if data is None:
            reshape = get("Reshape")
            attrs = reshape.complete({"shape": target, **keywords})
            _, (inferred,) = reshape.infer_shapes([self.shape], [None], attrs)
            data = self._data.reshape(inferred)
        return self._view(data, None)

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """Apply the operator ``expand_dims``; with ``inplace`` the result is a view."""
        return self._view_part(ops.expand_dims(self, axis=axis), inplace)

    def flatten(self, inplace: bool = False) -> NDArray:
        """Apply the operator ``flatten``; with ``inplace`` the result is a view."""
        return self._view_part(ops.Flatten(self), inplace)

    def squeeze(self, axis: int | tuple[int, ...] | None = None, inplace: bool = False) -> NDArray:
        """Apply the operator ``squeeze``; with ``inplace`` the result is a view."""
        return self._view_part(ops.squeeze(self, axis=axis), inplace)

    def _view_part(self, result: NDArray, inplace: bool) -> NDArray:
        return self.reshape(result.shape) if inplace else result

    def _view(self, data: Array, key: object) -> NDArray:
        """A view of this array: ``data`` is a part of it by a basic subscript, or all of it in another shape."""
        result = _new(self.__class__)
        result._data, result._ctx, result._entry = data, self._ctx, None
        return self._link_part(result, key)

    def _link_part(self, part: NDArray, key: object) -> NDArray:
        """Link a part and this array to each other."""
        part._part_of = self, key
        try:
            views = self._views
        except AttributeError:
            views = self._views = []
        if len(views) in _MANY:
            views[:] = [view for view in views if view() is not None]
        views.append(_reference(part))
        return part

    def __getitem__(self, key: Any) -> NDArray:
        if MODE.tracer is not None:
            leave_trace((self, key))
        if self._entry is not None and MODE.current().recording:
            return self._taken(key)
        if key.__class__ is slice and self._data.shape:
            data, basic = self._data[key], True
        else:
            key, basic = index_of(key, self._data.shape, self._ctx)
            try:
                data = view_at(self._data, key) if basic else self._ctx.run(self._data.__getitem__, key)
            except IndexError as error:
                raise SubscriptError(str(error)) from None
            if not data.shape:  # a single element has shape (1,)
                data, key = data.reshape(1), one_element(key)
        if basic and data.flags.c_contiguous:
            return self._view(data, key)
        if basic or not data.flags.c_contiguous:
            data = self._ctx.run(data.copy, order="C")
        result = _new(NDArray)
        result._data, result._ctx, result._entry = data, self._ctx, None
        return result

    def _taken(self, key: Any) -> NDArray:
        """A part of a recorded array, as a copy. If the array may be written while recording, the part acts as a view
        of it."""
        key, basic = index_of(key, self.shape, self._ctx)
        result = ops._subscript(self, key=key)
        result = result if result.shape else result.reshape((1,))
        if not changes.writable(self):
            return result
        if basic and (part := view_at(self._data, key)).flags.c_contiguous:
            return self._link_part(result, key if part.shape else one_element(key))
        changes.make_writable(result)
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._entry is not None or self.__class__ is not NDArray:
            self.check_writable()
        if MODE.tracer is not None:
            leave_trace((self, key, value))
        key, basic = index_of(key, self.shape, self._ctx, True)
        try:
            if MODE.__dict__["current"]().recording or self._entry is not None:
                changes.assign(self, key, value, basic)
            else:
                self._store(key, value, basic)
        except IndexError as error:
            raise SubscriptError(str(error)) from None

    def _before_write(self) -> None:
        """Called before an operator writes the array in place; sparse arrays need it."""

    def _store(self, key: Any, value: Any, basic: bool = True, references: int = 0) -> None:
        """Write values in place, without recording. ``references`` is the number of the caller's references to the raw
        array."""
        source: Array | float
        if isinstance(value, NDArray):
            source = value._data
            if type(source) is not type(self._data) or value._ctx.device_id != self._ctx.device_id:
                source = self._ctx.backend.asarray(source, device=self._ctx.device_id)
        elif isinstance(value, (int, float)):
            source = value
        elif value.__class__ is self._data.__class__ is np.ndarray and (
                value.dtype.kind in "biu" or is_numpy_float(value.dtype)):
            source = value  # the assignment converts it as ``numbers_of`` does, without a copy
        elif not isinstance(value, (np.ndarray, list, tuple)) and (shared := FOREIGN.function(value)) is not None:
            self._store(key, shared, basic, references)
            return
        else:
            source = numbers_of(value, self._data.dtype)
            if not isinstance(self._data, np.ndarray):
                source = self._ctx.backend.asarray(source, device=self._ctx.device_id)
        everything = key is Ellipsis or (key.__class__ is slice and key == _ALL)
        part = view_at(self._data, key) if basic and not everything else None
        watched = must_record_write(self, references if part is None else references + 1)
        if watched and self._ctx.xp is np and quiet(keeps_all_bits, self._data[key] if part is None else part, source):
            return
        run = quiet if self._ctx.backend_name == "cpu" else self._ctx.run
        try:
            if not basic:
                run(put, self._ctx.xp, self._data, key, source)
            elif part is None:
                run(self._data.__setitem__, key, source)
            else:
                run(part.__setitem__, Ellipsis, source)
            if watched:
                wrote(self._data if part is None else part, None if basic else key)
        except OverflowError:  # the value exceeds the dtype: it wraps around, as in arithmetic
            self._store(key, numbers_of(value, self._data.dtype), basic, references)
        except ValueError as error:
            if "broadcast" not in str(error):  # it may be read-only
                raise
            chosen = self._data[key] if part is None else part
            raise ShapeError(f"values of shape {show(np.shape(source))} do not broadcast to elements of shape "
                             f"{show(chosen.shape)}") from None

    # --------------------------------------------------------------------------------------------- gradients

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Request the gradient of this array, which ``backward`` stores in ``grad``.

        Parameters
        ----------
        grad_req : {"write", "add", "null"}
            Whether backward overwrites the gradient, adds to it, or ignores it.
        stype : str, optional
            The storage type of the gradient, by default dense.
        """
        zeros = NDArray(self._ctx.backend.zeros(self._data.shape, self._data.dtype, self._ctx.device_id), self._ctx)
        self._entry = tape.leaf(self, zeros.tostype(stype or "default"), grad_req)

    @property
    def grad(self) -> NDArray | None:
        """The gradient that ``backward`` stored; None if ``attach_grad`` was not called."""
        entry = self._entry
        return None if entry is None else entry[0].grad

    @property
    def _fresh_grad(self) -> bool:
        """Whether ``backward`` has stored a gradient since this was set to False. Training loops of MXNet use it."""
        entry = self._entry
        return entry is not None and getattr(entry[0], "fresh", False)

    @_fresh_grad.setter
    def _fresh_grad(self, state: bool) -> None:
        if self._entry is None or not isinstance(self._entry[0], tape.Leaf):
            raise OpError("_fresh_grad: the array has no gradient; call attach_grad() first")
        self._entry[0].fresh = bool(state)

    def detach(self) -> NDArray:
        """An array over the same memory that is not recorded."""
        return NDArray(self)

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Compute the gradients of this array with respect to all arrays with ``attach_grad``; see
        ``autograd.backward``."""
        backward_pass.backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)


_new, _reference = NDArray.__new__, weakref.ref
_MANY = frozenset(1 << i for i in range(6, 40))  # when a list of views has one of these lengths, dead ones are removed


#: The error of a write to memory such as that of ``bytes``.
LENT = "this array is over memory that its owner does not let be written: copy it first, x = x.copy()"


class FrozenNDArray(NDArray):
    """A read-only array: an input of an operator."""

    __slots__ = ()
    writable = False
    _refusal = "this array is an input of the operator and is read-only: copy it first, x = x.copy(). (In MXNet the " \
               "write would go through to whoever else reads it)"

    def check_writable(self, name: str = "") -> None:
        self._refuse(name)

    def _store(self, key: Any, value: Any, basic: bool = True, references: int = 0) -> None:
        self.check_writable()


class LentNDArray(FrozenNDArray):
    """An array over read-only memory, such as that of ``bytes`` or of a file that was mapped for reading."""

    __slots__ = ()
    _refusal = LENT


def over(data: Array, ctx: Context) -> NDArray:
    """An array over memory of another library, writable if that memory is."""
    may_be_written = getattr(data.flags, "writeable", True)  # CuPy's flags lack it
    return (NDArray if may_be_written else LentNDArray)(data, ctx)


for _kind in (FrozenNDArray, LentNDArray):  # users see one class: Python's errors say "NDArray"
    _kind.__name__ = _kind.__qualname__ = NDArray.__name__

name_others(NDArray)
attach(NDArray, {NDArray, FrozenNDArray, LentNDArray},
       {name: BINARY[name] for name in ("eq", "ne", "gt", "ge", "lt", "le")}, "number")


def numbers_of(source: ArrayLike, dtype: np.dtype) -> np.ndarray:
    """Anything that NumPy converts, as an array of a dtype. Integers that do not fit wrap around.

    Raises
    ------
    OverflowError
        If an integer has more than 64 bits. The error is an `OpError` as well.
    TypeError, ValueError
        If an element is no number, or if nested lists have several lengths. The errors are `OpError` as well.
    """
    if source is None:  # NumPy would convert it to NaN
        raise ArgumentError("expected numbers, got None")
    try:
        return quiet(host_memory.copied, source, dtype)
    except OverflowError as error:
        values = np.array(source, object)
        if not all(isinstance(number, numbers.Integral) for number in values.flat):
            return quiet(np.array(source).astype, dtype)
        if not all(-1 << 63 <= number < 1 << 64 for number in values.flat):
            raise as_op_error(error, f"an array of {dtype}") from None
        return np.array([wrapped(int(number), dtype) for number in values.flat], dtype).reshape(values.shape)
    except (TypeError, ValueError) as error:
        raise as_op_error(error, f"an array of {dtype}") from None


def _restore(host: np.ndarray, ctx: Context) -> NDArray:
    ctx = present_context(ctx)
    return NDArray(ctx.backend.asarray(host, device=ctx.device_id), ctx)


@tape.WRAP.provide
def wrap(data: Array, ctx: Context, frozen: bool = False) -> NDArray:
    """An NDArray over a raw array, read-only if it is ``frozen``."""
    if not frozen:
        result = _new(NDArray)
    else:
        result = _new(FrozenNDArray)
        if isinstance(data, np.ndarray):
            data = data.view()
            # The positional argument is ``write``. This takes a third of the time of ``flags.writeable = False``.
            data.setflags(False)  # type: ignore[call-arg]  # NumPy's stub knows keywords only
    result._data, result._ctx, result._entry = data, ctx, None
    return result


def array(source: Any, ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """Make an array that holds a copy of values.

    Parameters
    ----------
    source : sequence, NumPy array, NDArray or SciPy's sparse matrix
        The values. A sparse array or matrix gives a sparse array.
    ctx : Context
        The device, by default the current context.
    dtype : dtype
        By default the dtype of an NDArray or a sparse matrix, and float32 for every other source.

    Examples
    --------
    >>> array(np.arange(3)).dtype
    <class 'numpy.float32'>
    """
    if hasattr(source, "as_ndarray"):  # a value in a traced body
        return source.as_ndarray(dtype)
    ctx = current_context() if ctx is None else Context(ctx)
    shared = None if isinstance(source, (Value, np.ndarray, list, tuple, int, float)) else FOREIGN.function(source)
    if shared is not None:
        source, dtype = shared, _FLOAT32 if dtype is None else dtype
    if isinstance(source, NDArray) and source._sparse:
        return source.astype(source.dtype if dtype is None else dtype).as_in_context(ctx)
    if isinstance(source, NDArray):
        dtype = source._data.dtype if dtype is None else as_dtype(dtype)
        return NDArray(quiet(ctx.backend.asarray, source._data, dtype, ctx.device_id), ctx)
    if hasattr(source, "tocsr"):
        matrix: NDArray = CSR_MATRIX.function(source, None, ctx, dtype)
        return matrix
    dtype = _FLOAT32 if dtype is None else as_dtype(dtype)
    try:
        host = numbers_of(source, dtype)
    except (ValueError, TypeError) as error:
        note(error, "nd.array: expected an array, or nested lists of numbers with equal lengths")
        raise
    return NDArray(host if ctx.backend_name == "cpu" else ctx.backend.asarray(host, None, ctx.device_id), ctx)
