"""Traced values: they have a shape and a dtype but no elements, and operators on them become nodes.

A user's operator that is ``traced`` is called with them once, when a graph is compiled. Arrays in ``in_data`` and the
other lists are ``TracedNDArray``; ``asnumpy`` returns a ``TracedArray``, which acts as a NumPy array. Reading elements
is an error, since there are none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opreg.core.graph import Entry, Node
from opreg.core.held_values import bytes_of
from opreg.core.keys import Same
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.registry import get, ops
from opreg.core.rules import Attrs
from opreg.core.spec import Shape, Spec, broadcast, is_floating, show
from opreg.core.tracing import Sized, TraceError, Tracer
from opreg.errors import user_line
from opreg.typing import Array, DTypeLike

from . import traced_numpy as numpy_rules
from .computation import Applied, operand_dtype
from .context import Context
from .ndarray import NDArray, wrap
from .subscripts import index_of, parts_of
from .traced_numpy import INSTEAD

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["BodyTracer", "TracedArray", "TracedNDArray", "wrap_traced"]


class _TracedCall:
    """A traced call of an operator: the number of its outputs, and of the visible ones."""

    def __init__(self, visible: int, count: int):
        self.visible, self.count = visible, count


class BodyTracer(Tracer):
    """The trace of a body: nodes over variables of its inputs, and of arrays that it holds.

    Attributes
    ----------
    truths : dict of Entry to Entry
        For boolean entries, the floating-point zeros and ones that they were made from.
    instead : str
        Advice in errors about functions without an operator.
    out_of_range : {"wrap", "raise"}
        The treatment of indices out of range.
    mode : bool or None
        Whether the user's code runs in training; None while it does not run. No gradient passes through operators that
        it calls while it pauses recording.
    """

    instead, out_of_range = INSTEAD, "wrap"
    mode: bool | None = None

    def __init__(self, name: str, tags: Mapping[str, str], ctx: Context):
        super().__init__()
        self.name, self.tags, self.ctx = name, tags, ctx
        self.truths: dict[Entry, Entry] = {}
        self._lifted: dict[Same, Entry] = {}

    def extend(self) -> BodyTracer:
        """A copy of the trace, to which nodes may be added."""
        tracer = BodyTracer(self.name, self.tags, self.ctx)
        tracer.nodes, tracer.specs, tracer.arrays = list(self.nodes), dict(self.specs), dict(self.arrays)
        tracer.truths, tracer._lifted = dict(self.truths), dict(self._lifted)
        return tracer

    def _node(self, op: Op, attrs: Attrs, inputs: Sequence[Entry], keywords: Attrs | None) -> Node:
        hint = op.name.lower().strip("_")
        if self.mode is not None and op.traits.minds_training and self.mode is not MODE.training:
            raise TraceError(f"the body calls {op.name} in another mode than its own, inside of a scope like "
                             "predict_mode(). Leave traced off")
        return Node(op, f"{self.name}_{hint}{len(self.nodes)}", attrs, inputs, keywords, self.tags, user_line())

    def infer(self, node: Node, ins: Sequence[Spec]) -> list[Spec]:
        """Infer specs of the outputs of a node; a dtype that no rule determines is float32."""
        return [Spec(shape, dtype or np.dtype(np.float32)) for shape, dtype in super().infer(node, ins)]

    def apply(self, op: Op, inputs: Sequence[Entry], keywords: Attrs) -> list[Entry]:
        entries = super().apply(op, inputs, keywords)
        return entries if self.mode is None else self.recorded(op, entries)

    def single(self, name: str, *entries: Entry, **attrs: Any) -> Entry:
        """Apply an operator with one output, and return the entry of the output."""
        return self.apply(get(name), entries, attrs)[0]

    def zeros(self, spec: Spec) -> Entry:
        """The entry of an array of zeros."""
        return self.single("_zeros", shape=spec.shape, dtype=spec.dtype)

    def cast(self, entry: Entry, dtype: DTypeLike) -> Entry:
        """The entry cast to a dtype."""
        dtype = np.dtype(dtype)
        if self.spec(entry).dtype == dtype:
            return entry
        if is_floating(dtype) and entry in self.truths:
            return self.cast(self.truths[entry], dtype)
        return self.single("Cast", entry, dtype=dtype)

    def fit_to_spec(self, entry: Entry, spec: Spec) -> Entry:
        """The entry cast and broadcast to the spec of the array that it is stored in."""
        target_shape: Any = spec.shape
        entry = self.trim_axes(self.cast(entry, spec.dtype), len(target_shape))
        shape: Any = self.spec(entry).shape
        if shape == target_shape:
            return entry
        if broadcast(shape, target_shape) != target_shape:
            raise TraceError(f"expected shape {show(target_shape)}, got {show(shape)}")
        return self.single("broadcast_to", entry, shape=target_shape)

    def trim_axes(self, entry: Entry, rank: int) -> Entry:
        """The entry without surplus leading axes of length one, as in NumPy's assignments."""
        shape: Any = self.spec(entry).shape
        surplus = max(len(shape) - rank, 0)
        if not surplus or any(dim != 1 for dim in shape[:surplus]):
            return entry
        return self.single("_np_reshape", entry, newshape=shape[surplus:])

    def entry(self, value: Any) -> Entry:
        """The entry of a traced value, or of a variable for an array that the body holds."""
        if isinstance(value, TracedNDArray):
            value = value._data
        if isinstance(value, TracedArray):
            if value.body is not self:
                raise TraceError("a value of another body: backward cannot read values that forward stores on self. "
                                 "Read in_data and out_data, or make it an output")
            return value.entry
        lifted = self._lifted.get(Same(value))
        array = value if isinstance(value, NDArray) else NDArray(
            self.ctx.backend.asarray(np.array(value), None, self.ctx.device_id), self.ctx)
        # The body may have changed the array since. Bytes are compared, since 0.0 == -0.0 and NaN != NaN.
        if lifted is None or bytes_of(self.arrays[lifted[0]].asnumpy()) != bytes_of(array.asnumpy()):
            entry = self.variable(f"{self.name}_constant{len(self.arrays)}", Spec(array.shape, array._data.dtype))
            self.arrays[entry[0]] = NDArray(array._ctx.run(array._data.copy), array._ctx)
            lifted = self._lifted[Same(value)] = entry
        return lifted

    def operand(self, op: Op, attrs: Attrs, value: Any, values: Sequence[object]) -> Entry:
        """The entry of a value that an operator takes beside others; NumPy's arrays are converted as in eager calls."""
        entry = self.entry(value)
        if not isinstance(value, (np.ndarray, np.generic)):
            return entry
        dtype = operand_dtype(op, attrs, value, values)
        return entry if dtype is None else self.cast(entry, dtype)

    def value(self, entry: Entry) -> TracedArray:
        """The traced NumPy-like array of an entry."""
        return TracedArray(self, self.spec(entry), entry)

    def call(self, op: Op, attrs: Attrs, values: Sequence[object]) -> tuple[Applied, list[NDArray]]:
        """Trace a call of an operator."""
        entries = self.apply(op, [self.operand(op, attrs, value, values) for value in values], attrs)
        if op.traits.mutates:
            raise TraceError(f"operator {op.name} changes its inputs in place")
        return (_TracedCall(len(entries), len(op.signature.outputs(attrs))),
                [wrap_traced(self.value(entry), self.ctx) for entry in entries])


#: Advice for bodies with a branch.
_CHOOSE = ("Choose between numbers by where(condition, x, y), or leave traced off; around the operator ops.cond chooses"
           " between computations")


def _refuse(what: str, instead: str = "") -> Callable[..., NoReturn]:
    """A method that raises an error, since it would read elements."""

    def method(self: object, *_: object, **__: object) -> NoReturn:
        """Raises an error, since a traced value has no elements."""
        raise TraceError(f"{what} reads elements, and a traced body has none. {instead or INSTEAD}")

    return method


# ---------------------------------------------------------------------------------------- traced NumPy arrays


class TracedArray(Sized):
    """A traced value that acts as a NumPy array.

    Subscripts, ``reshape`` and ``transpose`` make views, which follow changes of their base. Writes to a basic
    subscript change the base; writes to other views are an error.

    Attributes
    ----------
    body : BodyTracer
        The trace that records operators on the value.
    unwritten : bool
        Whether it is an output to which nothing was written yet.
    """

    __slots__ = ("body", "spec", "frozen", "_made", "_base", "_read", "_write", "_key", "_seen")
    __hash__ = object.__hash__
    __array_priority__ = 100.0

    def __init__(self, body: BodyTracer, spec: Spec, entry: Entry | None, base: TracedArray | None = None,
                 read: Callable[[Entry], Entry] | None = None, write: Callable[[Entry, Entry], Entry] | None = None,
                 key: object = None):
        self.body, self.spec, self._made = body, spec, entry
        self._base, self._read, self._write, self._key = base, read, write, key
        self._seen: Entry | None = None
        self.frozen = False

    # --------------------------------------------------------------------------------------------- its numbers

    @property
    def unwritten(self) -> bool:
        """Whether nothing was written to it yet."""
        return self._made is None if self._base is None else self._base.unwritten

    @property
    def entry(self) -> Entry:
        """The entry of its current value."""
        if self._base is not None:
            below = self._base.entry
            if below is not self._seen:
                self._seen, self._made = below, self._read(below)  # type: ignore[misc]
        if self._made is None:
            raise TraceError("an output is read before it is written")
        return self._made

    def store(self, entry: Entry) -> None:
        """Set its value."""
        self._check()
        entry = self.body.fit_to_spec(entry, self.spec)
        if self._base is None:
            self._made = entry
        elif self._write is None:
            raise TraceError("a view made by reshape or transpose is changed in place: copy it first, x = x.copy()")
        else:
            self._base.store(self._write(self._base.current(), entry))

    def current(self) -> Entry:
        """The entry of its current value, or of zeros if nothing was written."""
        return self.body.zeros(self.spec) if self.unwritten else self.entry

    def _check(self) -> None:
        if self.frozen:
            raise TraceError("this array is an input of the operator and is read-only: copy it first, x = x.copy()")
        if self._base is not None:
            self._base._check()

    def view(self, spec: Spec, read: Callable[[Entry], Entry], write: Callable[[Entry, Entry], Entry] | None = None,
             key: object = None) -> TracedArray:
        """Make a view."""
        return TracedArray(self.body, spec, None, self, read, write, key)

    def holds(self, value: object, key: object) -> bool:
        """Whether a value is this array's view by a subscript."""
        return isinstance(value, TracedArray) and value._base is self and value._key == key

    def copy(self, order: str = "C") -> TracedArray:
        """A copy."""
        return TracedArray(self.body, self.spec, self.entry)

    def as_ndarray(self, dtype: DTypeLike = None) -> NDArray:
        """The NDArray that ``nd.array`` makes of it."""
        return wrap_traced(self.body.value(self.body.cast(self.entry, np.float32 if dtype is None else dtype)),
                             self.body.ctx)

    # ---------------------------------------------------------------------------------------------- questions

    @property
    def shape(self) -> Shape:
        """Dimensions."""
        return self.spec.shape  # type: ignore[return-value]

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.spec.dtype  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<value of a traced body, {show(self.shape)} {self.dtype}>"

    # --------------------------------------------------------------------------------------------- subscripts

    def __getitem__(self, key: object) -> TracedArray:
        return numpy_rules.item(self, key)

    def __setitem__(self, key: object, value: object) -> None:
        self._check()
        numpy_rules.put(self, key, value)

    def fill(self, value: object) -> None:
        """One value everywhere."""
        self[...] = value

    # ---------------------------------------------------------------------------------------------- functions

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return numpy_rules.ufunc(self.body, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any],
                           keywords: dict[str, Any]) -> Any:
        return numpy_rules.function(self.body, function, args, keywords)

    def astype(self, dtype: DTypeLike, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
               ) -> TracedArray:
        """A copy with another dtype."""
        return self.body.value(self.body.cast(self.entry, dtype))

    @property
    def T(self) -> TracedArray:
        """The array with its axes reversed."""
        return self.transpose()

    def reshape(self, *shape: Any, order: str = "C") -> TracedArray:
        """The array in another shape."""
        return numpy_rules.reshape(self.body, self, shape[0] if len(shape) == 1 else shape, order)

    def transpose(self, *axes: Any) -> TracedArray:
        """The array with its axes in another order."""
        return numpy_rules.transpose(self.body, self, (axes[0] if len(axes) == 1 else axes) or None)

    def flatten(self, order: str = "C") -> TracedArray:
        """A copy with one axis."""
        return self.reshape(-1, order=order).copy()

    def __matmul__(self, other: ArrayLike) -> TracedArray:
        return np.matmul(self, other)

    def __rmatmul__(self, other: ArrayLike) -> TracedArray:
        return np.matmul(other, self)

    __bool__ = _refuse("a branch or a loop condition", _CHOOSE)
    __float__, __int__, __complex__ = map(_refuse, ("float()", "int()", "complex()"))
    __index__ = _refuse("an index")
    __array__ = _refuse("an array in memory")
    __format__ = _refuse("a format")
    item, tolist, tobytes, tofile = map(_refuse, ("item()", "tolist()", "tobytes()", "tofile()"))


def _dunder(name: str, ufunc: np.ufunc) -> None:
    def forward(self: TracedArray, other: ArrayLike) -> TracedArray:
        return NotImplemented if isinstance(other, NDArray) else ufunc(self, other)

    def reflected(self: TracedArray, other: ArrayLike) -> TracedArray:
        return NotImplemented if isinstance(other, NDArray) else ufunc(other, self)

    def in_place(self: TracedArray, other: ArrayLike) -> TracedArray:
        return ufunc(self, other, out=(self,))

    setattr(TracedArray, f"__{name}__", forward)
    if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(TracedArray, f"__r{name}__", reflected)
        setattr(TracedArray, f"__i{name}__", in_place)


for _name, _ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
                      "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "and": np.bitwise_and,
                      "or": np.bitwise_or, "xor": np.bitwise_xor, "eq": np.equal, "ne": np.not_equal,
                      "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}.items():
    _dunder(_name, _ufunc)
for _name in ("negative", "positive", "absolute", "invert"):
    _word = {"invert": "invert"}.get(_name, _name[:3])
    setattr(TracedArray, f"__{_word}__", functools.partialmethod(getattr(np, _name)))


for _name in ("sum", "mean", "prod", "max", "min", "var", "std", "argmax", "argmin", "any", "all", "cumsum", "clip",
              "round", "ravel", "squeeze", "swapaxes", "repeat", "take", "dot"):
    setattr(TracedArray, _name, functools.partialmethod(getattr(np, _name)))


# --------------------------------------------------------------------------------------------- traced NDArrays


class TracedNDArray(NDArray):
    """An NDArray of a traced body; its ``_data`` is a ``TracedArray``."""

    __slots__ = ()
    _rank = 4
    _data: TracedArray  # type: ignore[assignment]  # it acts as an array

    def _apply(self, op: Op, values: Sequence[Any], keywords: Attrs) -> Any:
        prepared, outs = self._data.body.call(op, op.complete(keywords), values)
        return outs[0] if prepared.visible == 1 else outs

    def _trace_call(self, op: Op, attrs: Attrs, values: Sequence[object]) -> tuple[Applied, list[NDArray]]:
        return self._data.body.call(op, attrs, values)

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        if isinstance(other, TracedArray):
            other = other.as_ndarray(self._data.dtype)
        return super()._binary(name, other, reflected)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        name = numpy_rules.ARITHMETIC.get(ufunc.__name__)
        if method == "__call__" and name is not None and not keywords:
            left, right = inputs
            return right._binary(name, left, True) if isinstance(right, NDArray) else left._binary(name, right, False)
        return ufunc(*[value._data if isinstance(value, TracedNDArray) else value for value in inputs], **keywords)

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any],
                           keywords: dict[str, Any]) -> Any:
        return numpy_rules.function(self._data.body, function, args, keywords)

    @property
    def writable(self) -> bool:
        """Whether its elements may be changed."""
        return not self._data.frozen

    def check_writable(self, name: str = "") -> None:
        self._data._check()

    def shown(self) -> NDArray:
        return wrap_traced(self._data, self._ctx, True)

    def asnumpy(self) -> TracedArray:  # type: ignore[override]  # it acts as a NumPy array
        """A copy as a NumPy-like array."""
        return self._data.copy()

    def as_ndarray(self, dtype: DTypeLike = None) -> NDArray:
        """The NDArray that ``nd.array`` makes of it."""
        return self._data.as_ndarray(self._data.dtype if dtype is None else dtype)

    def detach(self) -> NDArray:
        view = self._data.view(self._data.spec, self._data.body.block_gradient, lambda _, new: new)
        return wrap_traced(view, self._ctx)

    __bool__ = _refuse("a branch or a loop condition", _CHOOSE)
    __float__, __int__, __round__, __trunc__ = map(_refuse, ("float()", "int()", "round()", "trunc()"))
    __index__ = _refuse("an index")
    __format__ = _refuse("a format")
    asscalar, item, tolist = map(_refuse, ("asscalar()", "item()", "tolist()"))
    __array__ = __jax_array__ = __reduce__ = _refuse("an array in memory")
    __dlpack__ = to_dlpack_for_read = to_dlpack_for_write = _refuse("DLPack")
    attach_grad = backward = _refuse("autograd inside of a body", "Leave traced off, or let the gradient follow from "
                                                                  "the body by itself")

    def reshape(self, *shape: Any, **keywords: Any) -> NDArray:
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        target = tuple(keywords.pop("shape", shape))
        if not (target or keywords):  # an empty ``shape`` of Reshape means that it is missing
            return wrap_traced(self._data.reshape(()), self._ctx)
        attrs = ops.Reshape.complete({"shape": target, **keywords})
        _, (inferred,) = ops.Reshape.infer_shapes([self.shape], [None], attrs)
        return wrap_traced(self._data.reshape(inferred), self._ctx)

    def __getitem__(self, key: object) -> NDArray:
        part = self._data[self._plain(key)]
        return wrap_traced(part if part.shape else part.reshape(1), self._ctx)

    def _store(self, key: object, value: object, basic: bool = True, references: int = 0) -> None:
        self._data[self._plain(key, True)] = getattr(value, "_data", value)

    def __setitem__(self, key: object, value: object) -> None:
        self._store(key, value)

    def _plain(self, key: object, written: bool = False) -> object:
        """A subscript as NumPy takes it, in which floating-point and boolean arrays are converted to integers."""
        parts = [part._data if isinstance(part, NDArray) else part for part in parts_of(key, len(self.shape), written)]
        parts = [part.astype(np.int64) if isinstance(part, TracedArray) and part.dtype.kind not in "iu"
                 else part if isinstance(part, TracedArray)
                 else index_of(list(part) if isinstance(part, tuple) else part, self.shape, self._ctx)[0]
                 for part in parts]
        return parts[0] if len(parts) == 1 and not isinstance(key, tuple) else tuple(parts)

    def __repr__(self) -> str:
        return f"<NDArray of a traced body, {show(self.shape)} {self._data.dtype} @{self._ctx}>"


def wrap_traced(data: Array | TracedArray, ctx: Context, frozen: bool = False) -> NDArray:
    """A traced NDArray over a traced value, read-only if it is ``frozen``; an NDArray over a raw array."""
    if not isinstance(data, TracedArray):
        return wrap(data, ctx, frozen)
    result = NDArray.__new__(TracedNDArray)
    if frozen:
        data = TracedArray(data.body, data.spec, data.entry)
        data.frozen = True
    result._data, result._ctx, result._entry = data, ctx, None
    return result
