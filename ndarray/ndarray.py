"""NDArray: numbers on a device, over a NumPy or CuPy array, on which operators compute now."""

from __future__ import annotations

import numbers
import operator
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from opreg.core import effects, host_memory
from opreg.core.cache import cached
from opreg.core.dispatch import INVOKE
from opreg.core.edition import watch
from opreg.core.looks import HTML
from opreg.core.mode import MODE, quiet
from opreg.core.op import Op
from opreg.core.other_names import name_others, without_others
from opreg.core.registry import get, ops
from opreg.core.rules import Attrs
from opreg.core.slots import Slot
from opreg.core.spec import Shape, as_dtype, is_numpy_float, show, wrapped
from opreg.core.value import BINARY, Value
from opreg.core.versions import held, share, unchanged, wrote
from opreg.errors import ArgumentError, DeviceError, DTypeError, OpError, ShapeError, SubscriptError, adopted, note
from opreg.typing import Array, DTypeLike

from . import changes, dlpack, params_file, tape
from .context import Context, cpu, current_context
from .eager import run
from .finite import SHORT_WAYS
from .scalars import OneNumber

if TYPE_CHECKING:  # a stub, made from the operators
    from .methods import Methods
else:
    Methods = Value

__all__ = ["NDArray", "FrozenNDArray", "array", "attach", "leave_trace", "over", "wrap", "raw", "numbers_of"]

#: The function of ``nd`` of that name.
SURFACE = Slot("arrays")
#: Python's ``slice`` beside the operator of that name, as MXNet's module has it.
py_slice = slice
#: Numbers of storage types, as in MXNet's files.
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
#: An array in another storage type.
CAST_STORAGE = Slot("arrays")
#: NumPy's ufuncs and functions on arrays.
UFUNC, FUNCTION = Slot("arrays"), Slot("arrays")
#: An array over the memory of another library's array on a device; None of anything else.
FOREIGN = Slot("arrays")
#: An array as one with NumPy's manners.
AS_NUMPY = Slot("np")

_FLOAT32, _ALL = np.dtype(np.float32), slice(None)
_SCALARS: dict[np.dtype, dict[float | str, np.ndarray]] = {}


def _scalar(value: float, dtype: np.dtype) -> np.ndarray:
    """A number as a 0-d array of a floating dtype, which a ufunc takes twice as fast as a Python number."""
    scalars = _SCALARS.setdefault(dtype, {})
    if len(scalars) > 1024:
        scalars.clear()
    scalars[value or str(value)] = scalar = quiet(np.array(value).astype, dtype)
    return scalar


@cached(1024, typed=True)
def _recorded(name: str, number: float | str | None = None) -> tuple[Op, Attrs]:
    """A built-in operator between arrays or with a number, and its attributes."""
    op = get(name)
    return op, op.complete({} if number is None else {"scalar": number})


def _fast(name: str, ufunc: np.ufunc, forms: Sequence[str], result_class: type[NDArray], classes: set[type],
          reflected: bool = False, exact: bool = False, truth: str | None = None,
          silent: bool = False) -> Callable[[NDArray, Any], Any]:
    """Python's operator for floating arrays of one dtype on the host; the general way otherwise.

    Parameters
    ----------
    name : str
        Of the operator, as ``BINARY`` has it.
    ufunc : ufunc
        What computes it.
    forms : sequence of str
        Operators that are recorded: between arrays of one shape, of several, with a number.
    result_class, classes : type, set of type
        The class of the result; classes of arrays that compute with each other.
    reflected : bool
        Whether the number is on the left.
    exact : bool
        Whether the ufunc does for integers what the operator does.
    truth : {"number", "bool"}, optional
        Of comparisons: what booleans are given as.
    silent : bool
        Whether it is not recorded.
    """
    array_class: type | None = np.ndarray
    new, scalars, kinds = NDArray.__new__, _SCALARS, "fiu" if exact else "f"
    same, broadcast, with_number = forms
    as_number = truth == "number"

    def method(self: NDArray, other: Any) -> Any:
        data = self._data
        dtype = data.dtype
        kind = other.__class__
        thread = MODE.__dict__
        if data.__class__ is not array_class or thread["tracer"] is not None:
            return self._binary(name, other, reflected)
        if kind is not result_class and (kind is int or kind is float):
            try:
                right = scalars[dtype][other or str(other)]  # 0.0 == -0.0
            except KeyError:
                if not is_numpy_float(dtype):
                    return self._binary(name, other, reflected)
                right = _scalar(other, dtype)
        elif (kind is result_class or kind in classes) and not reflected:
            right = other._data
            if (right.__class__ is not array_class or right.dtype is not dtype or self._ctx is not other._ctx
                    or dtype.kind not in kinds):
                return self._binary(name, other, False)
        else:
            return self._binary(name, other, reflected)
        mode = thread["now"]()
        try:
            numbers = mode.run(ufunc, right, data) if reflected else mode.run(ufunc, data, right)
        except (ValueError, RuntimeError):
            numbers = None
        if numbers is None:
            return self._binary(name, other, reflected)  # says what does not broadcast
        if as_number:
            numbers = numbers.astype(dtype)
        result = new(result_class)
        result._data = numbers if numbers.__class__ is array_class else np.asarray(numbers)
        result._ctx = self._ctx
        result._entry = None
        entry = self._entry
        if kind is int or kind is float:
            if entry is not None and (recording := mode.recording) and not silent:
                op, attrs = _recorded(with_number, other or str(other))
                tape.add(op, attrs, (entry,), (data,), result, recording)
        elif (entry is not None or other._entry is not None) and (recording := mode.recording) and not silent:
            op, attrs = _recorded(same if data.shape == right.shape else broadcast)
            tape.add(op, attrs, (entry or tape.CONSTANT, other._entry or tape.CONSTANT), (data, right), result,
                     recording)
        return result

    def choose() -> None:
        nonlocal array_class
        array_class = np.ndarray if all(map(_as_built, forms)) else None  # the class of no array

    method.__name__ = f"__{'r' if reflected else ''}{name}__"
    SHORT_WAYS.add(method.__code__)
    for form in forms:
        _CHOICES.setdefault(form, []).append(choose)
    return method


#: By the operators that short ways leave out: functions that see again whether they may.
_CHOICES: dict[str, list[Callable[[], None]]] = {}


def _as_built(name: str) -> bool:
    """Whether the operator of a name is the built-in one, and computes arrays of the host as it did at first."""
    op = get(name)
    return op.family != "" and sum([not kernel.bound and kernel.serves is None for kernel in op.kernels]) == 1


class _Keeper:
    def on_register(self, op: Op | None) -> None:
        """Python's operators go the general way if their operator was registered anew."""
        for choose in () if op is None else _CHOICES.get(op.name, ()):
            choose()


_KEEPER = _Keeper()
watch(_KEEPER)


_ARITHMETIC: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide}
_COMPARISONS: dict[str, np.ufunc] = {"eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal,
                                "lt": np.less, "le": np.less_equal}


#: Python's operators of classes of arrays, which are short ways, with the general ones.
SHORT: list[tuple[type[NDArray], str, Callable[[NDArray, Any], Any]]] = []


def attach(cls: type[NDArray], classes: set[type], comparisons: Mapping[str, Sequence[str]], truth: str,
           silent: bool = False) -> None:
    """Give a class of arrays Python's operators; see ``_fast``. ``comparisons`` has their forms by name, which are not
    recorded if they are ``silent``."""
    def set_method(start: str, name: str, method: Callable[[NDArray, Any], Any]) -> None:
        setattr(cls, f"__{start}{name}__", method)
        SHORT.append((cls, f"__{start}{name}__", lambda self, other: self._binary(name, other, bool(start))))

    for name, ufunc in _ARITHMETIC.items():
        same, broadcast, right, left = BINARY[name]
        for start, number in (("", right), ("r", left)):
            set_method(start, name, _fast(name, ufunc, (same, broadcast, number), cls, classes, bool(start),
                                          name != "truediv"))
    for name, ufunc in _COMPARISONS.items():
        set_method("", name, _fast(name, ufunc, comparisons[name][:3], cls, classes, False, truth == "bool", truth,
                                   silent))


def leave_trace(values: Iterable[Any]) -> None:
    """Leave a function that is traced to Python where arrays are computed with at once that may be others in another
    run: arrays from outside, and tensors of the graph."""
    tracer = MODE.tracer
    for value in values:
        if tracer.knows(value):
            tracer.leave("it computes with an NDArray that is no value of the graph; functions of nd take one, and "
                           "Tensor(array) makes a tensor of it")


def _in_place(name: str) -> Callable[[NDArray, Any], NDArray]:
    """Python's operator that changes its left operand."""
    compute = getattr(operator, name)

    def method(self: NDArray, other: Any) -> NDArray:
        if MODE.tracer is not None:
            leave_trace((self, other))
        self.check_writable()
        if MODE.__dict__["now"]().recording or self._entry is not None:
            changes.update(self, other, compute, name)
            return self
        result = compute(self, other)
        if result.shape != self.shape:
            raise ShapeError(f"in-place {name}: the result has shape {show(result.shape)}, the array "
                             f"{show(self.shape)}")
        self._store(Ellipsis, result)
        return self

    method.__name__ = f"__i{name}__"
    return method


class NDArray(OneNumber, Methods):
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

    __slots__ = ("_data", "_ctx", "_entry", "_part_of", "_views", "__weakref__")
    __array_priority__ = 1000.0  # numpy_array + nd asks this class first
    _rank: float = 0
    _broadcasts = True
    _alike = False  # whether functions of nd make arrays of its class
    _sparse = False  # whether it is stored sparsely
    _scalars = False  # whether one of no axes is as good as any
    _results: type[NDArray] | None = None  # of users' operators that functions of arrays call; None for this class
    _instead = "Use an operator of nd in its place, or asnumpy() where no gradient is wanted"
    _data: Array
    _ctx: Context
    _entry: tape.TapeEntry | None  # while it is recorded
    _part_of: tuple[NDArray, object]  # of a view: what it is a view of, and the subscript; None for another shape
    _views: list[weakref.ref[NDArray]]  # of it, when there were some

    def __init__(self, data: ArrayLike | NDArray, ctx: Context | None = None):
        if isinstance(data, NDArray):
            if MODE.tracer is not None:
                leave_trace((data,))
            ctx, data = data._ctx, data._data
        if MODE.tracer is not None:
            MODE.tracer.constant(self)
        self._data = data if hasattr(data, "dtype") and hasattr(data, "flags") else np.asarray(data)  # type: ignore
        if self._data.dtype == object:  # a Fraction, as of the module statistics
            self._data = numbers_of(self._data, _FLOAT32)
        self._ctx = ctx if ctx is not None else cpu()
        self._entry = None

    # ------------------------------------------------------------------------------------------- operators

    def _apply(self, op: Op, values: Sequence[Any], given: Attrs) -> Any:
        attrs = op.complete(given)
        prepared, results = _compute(op, attrs, values, self._ctx)
        visible = prepared.visible
        return results[0] if visible == 1 else results[:visible]

    def _shape_is(self, other: object) -> bool:
        return isinstance(other, NDArray) and self._data.shape == other._data.shape

    def _called(self, op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        return INVOKE.function(op, args, keywords)

    @classmethod
    def _surface(cls, name: str) -> Callable[..., Any]:
        return SURFACE.function(name)

    def _lift(self, value: Any) -> NDArray:
        """Numbers as an array beside this one: of its dtype, where it lives."""
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

    __iadd__, __isub__, __imul__ = _in_place("add"), _in_place("sub"), _in_place("mul")
    __itruediv__, __imod__, __ipow__ = _in_place("truediv"), _in_place("mod"), _in_place("pow")

    def __bool__(self) -> bool:
        if self.size < 2:
            return self.size == 1 and bool(self.asscalar())
        raise ShapeError(f"the truth of an array with {self.size} elements, shape {show(self.shape)}, is ambiguous; "
                         "ask for all() or any() of asnumpy()")

    def __len__(self) -> int:
        if not self._data.shape:
            raise TypeError("len() of a 0-d array")
        return self._data.shape[0]

    def __iter__(self) -> Iterator[NDArray]:
        for i in range(len(self)):
            yield self[i]

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
        """Context of the array."""
        return self._ctx

    ctx = context

    @property
    def writable(self) -> bool:
        """Whether its numbers may be changed; not those of an operator's inputs, and of memory that may not be."""
        return True

    def check_writable(self) -> None:
        """Refuse a change of numbers that the gradient may still need, or that are shown only.

        Raises
        ------
        OpError
            While recording, of an array that is recorded; of an operator's input, and of memory that its owner does not
            let be written, always.
        """
        if self._entry is not None and MODE.now().recording and not changes.writable(self):
            raise OpError("an array that is recorded cannot be changed in place: its numbers may be needed for the "
                          "gradient. Write x = x + y, or change it inside autograd.pause()")

    def shown(self) -> NDArray:
        """The same array, which refuses to be changed."""
        result = wrap(self._data, self._ctx, True)
        result._entry = self._entry
        return result

    @property
    def stype(self) -> str:
        """Storage type: ``default``, dense, unless it is a sparse array."""
        return "default"

    @property
    def T(self) -> NDArray:
        """The array with its axes reversed, copied."""
        return self if self.ndim < 2 else ops.transpose(self)

    # ----------------------------------------------------------------------------------- to and from others

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """A NumPy array holding a copy.

        Parameters
        ----------
        out : numpy.ndarray, optional
            Where the copy goes, of the array's shape and dtype. In pinned memory (``cupyx.empty_pinned``) a GPU copies
            there by itself.
        blocking : bool
            False returns at once, as CuPy's ``get`` does: a GPU copies when its current stream comes to it, and the
            numbers are there after ``wait_to_read()``, or an event that was recorded behind this call. Until then
            keep what is returned. Without ``out`` it is pinned memory, which can be given as ``out`` again. On the host
            it is a plain copy.

        Raises
        ------
        ShapeError, DTypeError
            When ``out`` has another shape or dtype.
        ArgumentError
            When ``out`` is no NumPy array that can be written, or, with ``blocking=False``, none in one piece.

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
        """Refuse what a copy cannot go to."""
        if not isinstance(out, np.ndarray):
            raise ArgumentError(f"asnumpy: out: expected a NumPy array, got {type(out).__name__}")
        if out.shape != self._data.shape:
            raise ShapeError(f"asnumpy: out: expected shape {self._data.shape}, got {out.shape}")
        if out.dtype != self._data.dtype:
            raise DTypeError(f"asnumpy: out: expected dtype {self._data.dtype}, got {out.dtype}")
        if not out.flags.writeable or not (blocking or out.flags.c_contiguous):
            raise ArgumentError("asnumpy: out: expected an array that can be written"
                                + ("" if blocking else ", and that lies in one piece"))

    def _copied(self) -> np.ndarray:
        """The elements as a NumPy array, whatever trace goes on."""
        data = self._data
        return data.copy("K") if data.__class__ is np.ndarray else self._ctx.backend.to_numpy(data)

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        self._warn_recorded("a recorded array becomes a NumPy array, which has no gradient: say asnumpy()")
        return self._as_numpy(dtype, copy)

    def _as_numpy(self, dtype: DTypeLike, copy: bool | None) -> np.ndarray:
        """The array that NumPy's protocol ``__array__`` returns."""
        if copy is False and not isinstance(self._data, np.ndarray):
            raise ValueError(f"an array on {self._ctx} becomes a NumPy array only by copying")
        if copy is not False:
            return np.asarray(self.asnumpy(), dtype)
        share(self._data)
        return np.array(self._data, dtype, copy=False)

    def _watched(self) -> str | None:
        """Whether what is done with it is recorded (``tape``), or noted for later (``trace``)."""
        return "tape" if self._entry is not None and MODE.now().recording else None

    def _held(self, host: np.ndarray) -> NDArray:
        """A NumPy array as one of this class, beside it."""
        return NDArray(self._ctx.backend.asarray(host, None, self._ctx.device_id), self._ctx)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return UFUNC.function(self, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any],
                           keywords: dict[str, Any]) -> Any:
        return FUNCTION.function(self, function, types, args, keywords)

    def _warn_recorded(self, text: str) -> None:
        """Say that numbers of an array that is recorded leave the tape, where the program did not ask for that."""
        if self._entry is not None and MODE.now().recording:
            warnings.warn(f"{text} where that is meant", stacklevel=3)

    def __jax_array__(self) -> Any:
        """A copy as an array of JAX, whose functions ask for it."""
        import jax.numpy as jnp

        self._warn_recorded("a recorded array becomes one of JAX, which has no gradient here: say asnumpy()")
        return jnp.asarray(self.asnumpy())

    def __dlpack__(self, **keywords: Any) -> object:
        self._warn_recorded("a recorded array shares its memory, and what is done there has no gradient: say detach()")
        if isinstance(self._data, np.ndarray):
            share(self._data)
            return dlpack.export(self._data, **keywords)
        with self._ctx.entered():  # whose current stream is the one that computed it
            return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def to_dlpack_for_read(self) -> object:
        """A DLPack capsule that shares the memory, for reading."""
        return self.__dlpack__()

    def to_dlpack_for_write(self) -> object:
        """A DLPack capsule that shares the memory, for writing."""
        return self.__dlpack__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        with self._ctx.entered():  # whose current stream it names
            interface = getattr(self._data, "__cuda_array_interface__", None)
        if interface is None:
            raise AttributeError(f"an array on {self._ctx} has no __cuda_array_interface__")
        if self._data.dtype.name == "bfloat16":
            raise DTypeError("__cuda_array_interface__ has no name for bfloat16, and who reads it takes numbers for "
                             "bytes: take the array by DLPack, as cupy.from_dlpack(x) and torch.from_dlpack(x) do")
        return interface

    def __reduce__(self) -> tuple[Callable[..., NDArray], tuple[object, ...]]:
        return _restore, (self.asnumpy(), self._ctx)

    def __getstate__(self) -> dict[str, bytes]:
        record = params_file.Record(self.asnumpy(), (self._ctx.device_type, self._ctx.device_id))
        return {"handle": params_file.to_bytes(record)}

    def __setstate__(self, state: Mapping[str, bytes]) -> None:
        """Load the state of MXNet's pickles: a record of a ``.params`` file."""
        record = params_file.from_bytes(state["handle"])
        host, device = cast("np.ndarray", record.dense()), record.device
        restored = _restore(host, Context(*device))
        self._data, self._ctx, self._entry = restored._data, restored._ctx, None

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> NDArray:
        return self.copy()

    def __dir__(self) -> list[str]:
        return without_others(type(self), super().__dir__())

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"\n{self._copied()}\n<NDArray {shape} @{self._ctx}>"

    def _repr_html_(self) -> str | None:
        html: str | None = HTML.function(self)
        return html

    # ---------------------------------------------------------------------------------------- copies, places

    def copy(self) -> NDArray:
        """A copy in the same place."""
        return ops._copy(self)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array of the same shape, or to a context as a new array."""
        if MODE.tracer is not None:
            leave_trace((self, other))
        if isinstance(other, Context):
            result = NDArray(other.backend.asarray(self._data, device=other.device_id), other)
            if MODE.now().recording:
                tape.record(tape.TRANSFER, {"source": self._ctx}, [self], [self._data], [result])
            return result
        if not isinstance(other, NDArray):
            raise ArgumentError(f"copyto: expected an NDArray or a Context, got {type(other).__name__}")
        if other.shape != self.shape:
            raise ShapeError(f"copyto: expected an array of shape {show(self.shape)}, got {show(other.shape)}")
        other[:] = self
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """This array when it lives there already, else a copy there."""
        return self if context is self._ctx else self.copyto(context)

    as_in_ctx = as_in_context

    def astype(self, dtype: DTypeLike, copy: bool = True) -> NDArray:
        """A copy with another dtype; itself when the dtype is the same and ``copy`` is False."""
        if not copy and self._data.dtype == as_dtype(dtype):
            return self
        return ops.Cast(self, dtype=as_dtype(dtype))

    def wait_to_read(self) -> None:
        """Wait until the device has computed it."""
        self._ctx.backend.synchronize(self._ctx.device_id)

    wait_to_write = wait_to_read

    def tostype(self, stype: str) -> NDArray:
        """The same values in a storage type, ``default``, ``row_sparse`` or ``csr``; itself where it has that."""
        if stype == "default":
            return self
        result: NDArray = CAST_STORAGE.function(self, stype)
        return result

    def as_nd_ndarray(self) -> NDArray:
        """This array."""
        return self

    def as_np_ndarray(self) -> Any:
        """The same memory, and place on the tape, as an array of ``mx.np``."""
        return AS_NUMPY.function(self)

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
        if len(shape) == 1 and isinstance(shape[0], (tuple, list, np.ndarray)):
            shape = tuple(shape[0])
        wanted = tuple(keywords.pop("shape", shape))
        if MODE.tracer is not None:
            leave_trace((self,))
        if MODE.now().recording and self._entry is not None:
            result = ops.Reshape(self, shape=wanted, **keywords)
            return self._linked(result, None) if changes.writable(self) else result
        data = None
        try:
            if not keywords and 0 not in wanted and min([-1, *wanted]) == -1:  # there are no codes in it
                data = self._data.reshape(wanted)
        except (TypeError, ValueError):
            pass  # the operator says better what is wrong
        if data is None:
            reshape = get("Reshape")
            attrs = reshape.complete({"shape": wanted, **keywords})
            _, (inferred,) = reshape.infer_shapes([self.shape], [None], attrs)
            data = self._data.reshape(inferred)
        return self._view(data, None)

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """The operator ``expand_dims`` applied to this; a view when ``inplace``."""
        return self._viewed(ops.expand_dims(self, axis=axis), inplace)

    def flatten(self, inplace: bool = False) -> NDArray:
        """The operator ``flatten`` applied to this; a view when ``inplace``."""
        return self._viewed(ops.Flatten(self), inplace)

    def squeeze(self, axis: int | tuple[int, ...] | None = None, inplace: bool = False) -> NDArray:
        """The operator ``squeeze`` applied to this; a view when ``inplace``."""
        return self._viewed(ops.squeeze(self, axis=axis), inplace)

    def _viewed(self, result: NDArray, inplace: bool) -> NDArray:
        return self.reshape(result.shape) if inplace else result

    def _view(self, data: Array, key: object) -> NDArray:
        """A view: part of the memory, by a basic subscript, or all of it in another shape."""
        result = _new(self.__class__)
        result._data, result._ctx, result._entry = data, self._ctx, None
        return self._linked(result, key)

    def _linked(self, part: NDArray, key: object) -> NDArray:
        """A part that knows what it is a part of, and is known to it."""
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
        if self._entry is not None and MODE.now().recording:
            return self._taken(key)
        if key.__class__ is slice and self._data.shape:
            data, basic = self._data[key], True
        else:
            key, basic = _key(key, self._data.shape, self._ctx)
            try:
                data = self._part(key) if basic else self._ctx.run(self._data.__getitem__, key)
            except IndexError as error:
                raise SubscriptError(str(error)) from None
            if not data.shape:  # one element is an array of one element
                data, key = data.reshape(1), _single(key)
        if basic and data.flags.c_contiguous:
            return self._view(data, key)
        if basic or not data.flags.c_contiguous:
            data = self._ctx.run(data.copy, order="C")
        result = _new(NDArray)
        result._data, result._ctx, result._entry = data, self._ctx, None
        return result

    def _taken(self, key: Any) -> NDArray:
        """Part of a recorded array that a subscript names: a copy; one that may be filled acts as the view that it
        would be else."""
        key, basic = _key(key, self.shape, self._ctx)
        result = ops._subscript(self, key=key)
        result = result if result.shape else result.reshape((1,))
        if not changes.writable(self):
            return result
        if basic and (part := self._part(key)).flags.c_contiguous:
            return self._linked(result, key if part.shape else _single(key))
        changes.own(result)
        return result

    def _part(self, key: Any) -> Array:
        """The raw view that a basic subscript names; NumPy gives a number, and no view, for a single element."""
        part = self._data[key]
        return part if hasattr(part, "flags") and not isinstance(part, np.generic) else self._data[
            (*key, Ellipsis) if isinstance(key, tuple) else (key, Ellipsis)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._entry is not None or self.__class__ is not NDArray:
            self.check_writable()
        if MODE.tracer is not None:
            leave_trace((self, key, value))
        key, basic = _key(key, self.shape, self._ctx, True)
        try:
            if MODE.__dict__["now"]().recording or self._entry is not None:
                changes.assign(self, key, value, basic)
            else:
                self._store(key, value, basic)
        except IndexError as error:
            raise SubscriptError(str(error)) from None

    def _before_write(self) -> None:
        """Announce a write in place: arrays that share the memory see it."""

    def _store(self, key: Any, value: Any, basic: bool = True, known: int = 0) -> None:
        """Write numbers in place, whatever is recorded; ``known`` references to the raw array are the caller's."""
        source: Array | float
        if isinstance(value, NDArray):
            source = value._data
            if type(source) is not type(self._data) or value._ctx.device_id != self._ctx.device_id:
                source = self._ctx.backend.asarray(source, device=self._ctx.device_id)
        elif isinstance(value, (int, float)):
            source = value
        elif not isinstance(value, (np.ndarray, list, tuple)) and (shared := FOREIGN.function(value)) is not None:
            self._store(key, shared, basic, known)
            return
        else:
            source = numbers_of(value, self._data.dtype)
            if not isinstance(self._data, np.ndarray):
                source = self._ctx.backend.asarray(source, device=self._ctx.device_id)
        whole = key is Ellipsis or (key.__class__ is slice and key == _ALL)
        part = self._part(key) if basic and not whole else None
        watched = held(self, known if part is None else known + 1)
        if watched and self._ctx.xp is np and quiet(unchanged, self._data[key] if part is None else part, source):
            return
        run = quiet if self._ctx.backend_name == "cpu" else self._ctx.run
        try:
            if part is None:
                run(self._data.__setitem__, key, source)
            else:
                run(part.__setitem__, Ellipsis, source)
            if watched:
                wrote(self._data if part is None else part, None if basic else key)
        except OverflowError:  # an integer wraps around, as in arithmetic
            self._store(key, numbers_of(value, self._data.dtype), basic, known)

    # --------------------------------------------------------------------------------------------- gradients

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Ask for this array's gradient: ``backward`` stores it in ``grad``.

        Parameters
        ----------
        grad_req : {"write", "add", "null"}
            Whether backward overwrites the gradient, adds to it, or leaves it.
        stype : str, optional
            How the gradient is stored, by default densely.
        """
        zeros = NDArray(self._ctx.backend.zeros(self._data.shape, self._data.dtype, self._ctx.device_id), self._ctx)
        self._entry = tape.leaf(self, zeros.tostype(stype or "default"), grad_req)

    @property
    def grad(self) -> NDArray | None:
        """The gradient that ``backward`` stored, None when ``attach_grad`` was not called."""
        entry = self._entry
        return None if entry is None else entry[0].grad

    @property
    def _fresh_grad(self) -> bool:
        """Whether ``backward`` has stored a gradient since this was last set to False; training loops of MXNet ask."""
        entry = self._entry
        return entry is not None and getattr(entry[0], "fresh", False)

    @_fresh_grad.setter
    def _fresh_grad(self, state: bool) -> None:
        if self._entry is None or not isinstance(self._entry[0], tape.Leaf):
            raise OpError("_fresh_grad: the array has no gradient; call attach_grad() first")
        self._entry[0].fresh = bool(state)

    def detach(self) -> NDArray:
        """The same values, not recorded; memory is shared."""
        return NDArray(self)

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Gradients of this array with respect to all that asked for theirs; see ``autograd.backward``."""
        tape.backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)


_new, _reference = NDArray.__new__, weakref.ref
_MANY = frozenset(1 << i for i in range(6, 40))  # lengths at which a list of views is looked through


class FrozenNDArray(NDArray):
    """An array that an operator is shown and may not change: its inputs."""

    __slots__ = ()
    writable = False
    _refusal = "this array is an input of the operator and is read-only: copy it first, x = x.copy(). (In MXNet the " \
               "write would go through to whoever else reads it)"

    def check_writable(self) -> None:
        raise OpError(self._refusal)


class LentNDArray(FrozenNDArray):
    """An array over memory that its owner does not let be written: text of bytes, a file mapped to be read."""

    __slots__ = ()
    _refusal = "this array is over memory that its owner does not let be written: copy it first, x = x.copy()"


def over(data: Array, ctx: Context) -> NDArray:
    """An array over memory of another library, which may be written where its owner lets it."""
    may_be_written = getattr(data.flags, "writeable", True)  # CuPy's flags do not know of it
    return (NDArray if may_be_written else LentNDArray)(data, ctx)


for _kind in (FrozenNDArray, LentNDArray):  # Python's errors name them as the code that is given them does
    _kind.__name__ = _kind.__qualname__ = NDArray.__name__

name_others(NDArray)
attach(NDArray, {NDArray, FrozenNDArray, LentNDArray},
       {name: BINARY[name] for name in ("eq", "ne", "gt", "ge", "lt", "le")}, "number")


def _key(key: Any, shape: Shape, ctx: Context, written: bool = False) -> tuple[Any, bool]:
    """A subscript in NumPy's terms, and whether it is a basic one; booleans and real numbers in arrays count as
    integers. Arrays in it come to the context."""
    if key.__class__ is slice or key is Ellipsis:
        return Ellipsis if not shape and key == slice(None) else key, True
    if key.__class__ is int and shape and -shape[0] <= key < shape[0]:
        return key, True
    parts, basic = [], True
    for part in parts_of(key, len(shape), written):
        if isinstance(part, NDArray):
            part = part._data
        elif isinstance(part, (list, tuple, range)):
            part = np.asarray(part, None if len(part) else np.int64)
        if getattr(part, "ndim", 0):
            part = part if part.dtype.kind in "iu" else ctx.run(part.astype, np.int64)
            if isinstance(part, np.ndarray) and ctx.xp is not np:
                part = ctx.backend.asarray(part, device=ctx.device_id)
            basic = False
        elif isinstance(part, (bool, np.generic)) or hasattr(part, "dtype"):
            part = int(part)
        parts.append(part)
    return (parts[0] if len(parts) == 1 and not isinstance(key, tuple) else tuple(parts)), basic


def parts_of(key: object, rank: int, written: bool) -> tuple[Any, ...]:
    """The parts of a subscript less the booleans of Python that it passes over, as MXNet does: all of them, but
    those of a subscript of integers alone that is read."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(part.__class__ is bool for part in parts) and (
            written or len(parts) > rank or not all(isinstance(part, int) for part in parts)):
        return tuple(part for part in parts if part.__class__ is not bool)
    return parts


def _single(key: object) -> tuple[object, ...]:
    """The subscript that gives one element an axis."""
    return (*key, None) if isinstance(key, tuple) else (key, None)


def numbers_of(source: ArrayLike, dtype: np.dtype) -> np.ndarray:
    """Anything NumPy takes for numbers, as an array of a dtype; integers that do not fit wrap around.

    Raises
    ------
    OverflowError
        One has more than 64 bits; it is an `OpError` as well.
    """
    try:
        return quiet(host_memory.copied, source, dtype)
    except OverflowError as error:
        given = np.array(source, object)
        if not all(isinstance(number, numbers.Integral) for number in given.flat):
            return quiet(np.array(source).astype, dtype)
        if not all(-1 << 63 <= number < 1 << 64 for number in given.flat):
            raise adopted(error, f"an array of {dtype}") from None
        return np.array([wrapped(int(number), dtype) for number in given.flat], dtype).reshape(given.shape)


def _restore(host: np.ndarray, ctx: Context) -> NDArray:
    try:
        return NDArray(ctx.backend.asarray(host, device=ctx.device_id), ctx)
    except DeviceError:  # saved on a device that this machine lacks
        return NDArray(host, cpu())


@tape.WRAP.provide
def wrap(data: Array, ctx: Context, frozen: bool = False) -> NDArray:
    """An NDArray over a raw array; a frozen one refuses writes."""
    if not frozen:
        result = _new(NDArray)
    else:
        result = _new(FrozenNDArray)
        if isinstance(data, np.ndarray):
            data = data.view()
            # To write: a third of the time that ``flags.writeable = False`` takes.
            data.setflags(False)  # type: ignore[call-arg]  # NumPy's stub knows keywords only
    result._data, result._ctx, result._entry = data, ctx, None
    return result


def raw(value: object, ctx: Context) -> Array:
    """The raw array of an NDArray on a context; a NumPy array becomes one."""
    if isinstance(value, NDArray):
        if not value._ctx.shares(ctx):
            raise DeviceError(f"an array lives on {value._ctx}, the first one on {ctx}: move it, as in "
                              f"x.as_in_context(mx.{ctx})")
        return value._data
    if isinstance(value, (np.ndarray, np.generic)):
        return array(value, ctx)._data
    raise ArgumentError(f"expected an NDArray, got {type(value).__name__}")


class Applied(Protocol):
    """An operator that has run, or that a trace has noted."""

    visible: int  # how many of the outputs a user sees


def _compute(op: Op, attrs: Any, values: Sequence[Any], ctx: Context, out: Array | None = None,
             result_class: type[NDArray] | None = None) -> tuple[Applied, list[NDArray]]:
    """Run an operator, store what it changes in place, record it where somebody wants a gradient.

    While a function is traced, what is computed here is a constant of its graph. Results are of the class
    ``result_class``, by default NDArray.
    """
    if op.signature.stateful and op.signature.auxiliary(attrs):
        _open_states(op, attrs, values)
    arrays = []
    for value in values:
        if isinstance(value, NDArray) and value._ctx is ctx and value._rank != 4:
            arrays.append(value._data)
            if value._alike:
                result_class = result_class or value.__class__
        else:
            if hasattr(value, "_trace_call"):  # it stands for an array, in a traced body or a gradient
                return value._trace_call(op, attrs, values)
            try:
                arrays.append(raw(value, ctx))
            except (ArgumentError, DeviceError) as error:
                note(error, f"input {len(arrays)} of operator {op.name}")
                raise
    thread = MODE.__dict__
    tracer = thread["tracer"]
    if tracer is not None:
        leave_trace(values)
    prepared, results = run(op, attrs, arrays, ctx, out, wrap)
    count = prepared.count
    residuals: Sequence[Array] = ()
    if len(results) > count:
        residuals = results[count:]
        del results[count:]
        if op.traits.states:
            first = len(op.signature.arguments(attrs))
            for state, new in zip(op.traits.states, residuals):
                values[first + state]._store(Ellipsis, NDArray(new, ctx), known=1)
            residuals = ()
    for i in op.traits.mutates:
        if i >= len(arrays):
            break
        if isinstance(values[i], NDArray) and held(values[i], 1):  # of what is none a copy was changed
            wrote(arrays[i])
    outs = []
    for data in results:
        result = _new(result_class or NDArray)
        result._data, result._ctx, result._entry = data, ctx, None
        outs.append(result)
        if tracer is not None:
            tracer.constant(result)
    if recording := thread["now"]().recording:
        tape.record(op, attrs, values, arrays, outs, prepared, recording, residuals)
    return prepared, outs


def _open_states(op: Op, attrs: Any, values: Sequence[Any]) -> None:
    """The states of an operator are about to be changed in place; a Prop's backward is given them as they are then."""
    states = [state for state in values[len(op.signature.arguments(attrs)):] if isinstance(state, NDArray)]
    for state in states:
        state._before_write()
    if op.signature.per_instance and effects.opaque(op):
        attrs.memo["states"] = states


def array(source: Any, ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """An array holding a copy of values.

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
    if hasattr(source, "as_ndarray"):  # of a traced body
        return source.as_ndarray(dtype)
    ctx = current_context() if ctx is None else Context(ctx)
    shared = None if isinstance(source, (Value, np.ndarray, list, tuple, int, float)) else FOREIGN.function(source)
    if shared is not None:
        source, dtype = shared, _FLOAT32 if dtype is None else dtype
    if isinstance(source, NDArray) and source._sparse:
        return source.astype(source.dtype if dtype is None else dtype)
    if isinstance(source, NDArray):
        dtype = source._data.dtype if dtype is None else as_dtype(dtype)
        return NDArray(quiet(ctx.backend.asarray, source._data, dtype, ctx.device_id), ctx)
    dtype = _FLOAT32 if dtype is None else as_dtype(dtype)
    try:
        host = numbers_of(source, dtype)
    except (ValueError, TypeError) as error:
        note(error, "nd.array: expected numbers in a regular nesting, or an array")
        raise
    return NDArray(host if ctx.backend_name == "cpu" else ctx.backend.asarray(host, None, ctx.device_id), ctx)
