"""Arrays and symbols with NumPy's behaviour: scalars without axes, booleans, dtype promotion, methods with NumPy's
names.

``NumpyValue`` has the methods of both; each method is the function of that name in ``functions``.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from opreg.builtin.numpy_names.numpy_like_numbers import common_dtype
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.registry import get, ops
from opreg.core.rules import Attrs
from opreg.core.slots import Slot
from opreg.core.spec import as_dtype, is_floating
from opreg.core.value import COMPARISONS, FORMS, LOGIC, Value
from opreg.core.versions import view_at
from opreg.errors import ArgumentError, SubscriptError
from opreg.ndarray.arithmetic import attach, in_place, leave_trace
from opreg.ndarray.context import Context, current_context
from opreg.ndarray.ndarray import AS_NUMPY, NDArray, numbers_of
from opreg.ndarray.nesting import on_host
from opreg.ndarray.traced import TracedArray, wrap_traced
from opreg.symbol.symbol import Symbol
from opreg.typing import Array, DTypeLike

__all__ = ["NumpyValue", "NumpySymbol", "ndarray", "new_array", "as_value", "common_dtype"]

#: The function of ``np`` of that name.
FUNCTION = Slot("np")
#: The result of NumPy's function of that name as arrays of ``np``.
NUMPYS = Slot("np")

_FLOAT32 = np.dtype(np.float32)


def _is_whole(value: Any) -> bool:
    return not isinstance(value, Value) and isinstance(value, (numbers.Integral, np.bool_))


class NumpyValue(Value):
    """Methods that arrays and symbols of ``mx.np`` share."""

    __slots__ = ()
    _broadcasts = True
    _scalars = True

    def _operand(self, other: Any) -> Any:
        """Another operand as an array or symbol of this kind, unless it is a number."""
        raise NotImplementedError

    def _pair(self, other: Any, divided: bool = False) -> tuple[Any, Any]:
        """Two operands cast to their common dtype."""
        return self, other

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        if not isinstance(other, Value) and isinstance(other, (numbers.Real, np.bool_)):
            return self._with_number(name, other, reflected)
        operand = self._operand(other)
        if operand is NotImplemented:
            if name in ("eq", "ne"):
                return NotImplemented
            return super()._binary(name, other, reflected)
        left, right = (operand, self) if reflected else (self, operand)
        left, right = left._pair(right, name == "truediv")
        if name in COMPARISONS:
            return get(COMPARISONS[name][0])(left, right)
        return get(FORMS[name][1] if name in FORMS else f"broadcast_{name}")(left, right)

    def _with_number(self, name: str, number: Any, reflected: bool) -> Any:
        value, is_int = self._for_number(name, number), isinstance(number, (numbers.Integral, np.bool_))
        number = int(number) if is_int else float(number)
        if name in COMPARISONS:
            return get(COMPARISONS[name][1 + reflected])(value, scalar=number, is_int=is_int)
        op = get(FORMS[name][2 + reflected] if name in FORMS else f"_{name}_scalar")
        return op(value, scalar=float(number), is_int=is_int) if "is_int" in op.signature.schema else \
            op(value, scalar=float(number))

    def _for_number(self, name: str, number: Any) -> Any:
        """This operand in the dtype of an operation with a number."""
        return self

    def _constant(self, number: Any) -> Any:
        """A value of this dtype that broadcasts and holds a number."""
        raise NotImplementedError

    def _logic(self, name: str, other: Any) -> Any:
        if _is_whole(other):
            kind = "b" if isinstance(other, (bool, np.bool_)) else "i"
            value = self if kind == "b" else self._for_number(name, other)
            return get(f"_npi_{'logical' if kind == getattr(value, '_kind', '') == 'b' else 'bitwise'}_{name}_scalar")(
                value, scalar=int(other))
        other = self._operand(other)
        if other is NotImplemented:
            return NotImplemented
        left, right = self._pair(other)
        return get(LOGIC[name][getattr(left, "_kind", "") != "b"])(left, right)  # unknown dtypes count as integers

    def __and__(self, other: Any) -> Any:
        return self._logic("and", other)

    def __or__(self, other: Any) -> Any:
        return self._logic("or", other)

    def __xor__(self, other: Any) -> Any:
        return self._logic("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _floor_quotient(self, other: Any, reflected: bool) -> Any:
        value = self
        if not isinstance(other, Value) and isinstance(other, (numbers.Real, np.bool_)):
            value = self._for_number("floordiv", other)
            other = value._constant(other)
        other = value._operand(other)
        if other is NotImplemented:
            return NotImplemented
        left, right = (other, value) if reflected else (value, other)
        return ops._npi_floor_divide(*left._pair(right))

    def __floordiv__(self, other: Any) -> Any:
        return self._floor_quotient(other, False)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._floor_quotient(other, True)

    def __matmul__(self, other: Any) -> Any:
        return FUNCTION.function("matmul")(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return FUNCTION.function("matmul")(other, self)

    def __invert__(self) -> Any:
        return FUNCTION.function("invert")(self)

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Self:
        return self

    @property
    def T(self) -> Any:
        """The array with its axes in reverse order."""
        return FUNCTION.function("transpose")(self)

    def reshape(self, *shape: Any, order: str = "C", **keywords: Any) -> Any:
        """The array in another shape, given literally; one -1 is inferred."""
        new_shape: Any = keywords.pop("newshape", keywords.pop("shape", shape))
        if isinstance(new_shape, tuple) and len(new_shape) == 1 and not isinstance(new_shape[0], numbers.Integral):
            (new_shape,) = new_shape
        return FUNCTION.function("reshape")(self, new_shape, order)

    def transpose(self, *axes: Any) -> Any:
        """Permute the axes; by default reverse them."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], numbers.Integral) else axes or None
        return FUNCTION.function("transpose")(self, order)

    def flatten(self, order: str = "C") -> Any:
        """A copy with one axis."""
        return FUNCTION.function("reshape")(self, -1, order)

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
               ) -> Any:
        """The values in another dtype."""
        return ops.Cast(self, dtype=as_dtype(dtype))


def _method(name: str) -> Any:
    def method(self: NumpyValue, *args: Any, **keywords: Any) -> Any:
        return FUNCTION.function(name)(self, *args, **keywords)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``np.{name}`` of this."
    return method


for _name in ("all", "any", "argmax", "argmin", "argsort", "clip", "cumsum", "diag", "dot", "expand_dims", "max",
              "mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "sort", "split", "squeeze", "std", "sum",
              "swapaxes", "take", "tile", "var", "abs", "exp", "log", "sqrt", "square", "sign", "sin", "cos", "tanh",
              "floor", "ceil", "broadcast_to"):
    setattr(NumpyValue, _name, _method(_name))


class ndarray(NumpyValue, NDArray):  # type: ignore[misc]  # its methods are NumPy's
    """An array on a device, with NumPy's behaviour, made by ``mx.np.array`` and similar functions.

    Examples
    --------
    >>> from opreg import np
    >>> x = np.arange(6).reshape(2, 3)
    >>> x[x > 3], x.sum(), (x @ x.T).shape
    (array([4., 5.]), array(15.), (2, 2))
    """

    __slots__ = ()
    _rank = 0.5
    _alike = True

    __iand__, __ior__, __ixor__ = in_place("and_"), in_place("or_"), in_place("xor")
    __ifloordiv__ = in_place("floordiv")

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]  # NumPy's
        """The dtype, as NumPy has it."""
        return self._data.dtype

    @property
    def _kind(self) -> str:
        return self._data.dtype.kind

    # ------------------------------------------------------------------------------------------- operators

    def _apply(self, op: Op, values: Sequence[Any], keywords: Attrs) -> Any:
        if any(isinstance(value, np.ndarray) for value in values):
            values = [new_array(value, self._ctx) if isinstance(value, np.ndarray) else value for value in values]
        return super()._apply(op, values, keywords)

    def _lift(self, value: Any) -> ndarray:
        return new_array(value, self._ctx)

    def _held(self, host: np.ndarray) -> ndarray:
        return new_array(host, self._ctx)

    def _operand(self, other: Any) -> Any:
        if isinstance(other, NDArray):
            return other.as_np_ndarray()
        if isinstance(other, TracedArray):
            return wrap_traced(other, self._ctx).as_np_ndarray()
        return new_array(other, self._ctx) if isinstance(other, (np.ndarray, np.generic, list, tuple)) \
            else NotImplemented

    def _constant(self, number: Any) -> Any:
        return new_array(np.asarray(number, self._data.dtype), self._ctx)

    def _cast(self, dtype: np.dtype) -> Any:
        return self if self._data.dtype == dtype else ops.Cast(self, dtype=dtype)

    def _pair(self, other: Any, divided: bool = False) -> tuple[Any, Any]:
        dtype = common_dtype(self._data.dtype, other._data.dtype)
        if divided and not is_floating(dtype):
            dtype = _FLOAT32
        return self._cast(dtype), other._cast(dtype)

    def _for_number(self, name: str, number: Any) -> Any:
        kind = self._kind
        if kind in "iub" and (name == "truediv" or not isinstance(number, (numbers.Integral, np.bool_))):
            return self._cast(_FLOAT32)
        return self._cast(np.dtype(np.int64)) if kind == "b" and name not in COMPARISONS else self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        result = super().__array_ufunc__(ufunc, method, *inputs, **keywords)
        return NUMPYS.function(self, ufunc.__name__, result, inputs, keywords)

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any],
                           keywords: dict[str, Any]) -> Any:
        result = super().__array_function__(function, types, args, dict(keywords))
        name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
        return NUMPYS.function(self, name, result, args, keywords)

    # ------------------------------------------------------------------------------------------- subscripts

    def __getitem__(self, key: Any) -> Any:
        if MODE.tracer is not None:
            leave_trace((self, key))
        key, basic = _subscript(key, self._data.shape)
        if self._entry is not None and MODE.current().recording:
            return ops._subscript(self, key=key)
        try:
            data = view_at(self._data, key) if basic else self._ctx.run(self._data.__getitem__, key)
        except IndexError as error:
            raise SubscriptError(str(error)) from None
        if basic and data.flags.c_contiguous:
            return self._view(data, key)
        data = self._ctx.xp.asarray(data)
        return _array_over(data if data.flags.c_contiguous and not basic else self._ctx.run(data.copy, order="C"),
                           self._ctx)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, (np.ndarray, np.generic, list, tuple)):
            value = new_array(value, self._ctx)
        key = _subscript(key, self._data.shape)[0]
        # a key with False selects no element
        if not any(part is False for part in (key if isinstance(key, tuple) else (key,))):
            super().__setitem__(key, value)

    # --------------------------------------------------------------------------------------- copies, gradients

    @property
    def grad(self) -> Any:
        """The gradient that ``backward`` stored, None when ``attach_grad`` was not called."""
        gradient = super().grad
        return None if gradient is None else gradient.as_np_ndarray()

    def copy(self, order: str = "C") -> Any:
        """A copy; only the order C is supported."""
        if order != "C":
            raise NotImplementedError(f"copy: expected order 'C', got {order!r}")
        return super().copy()

    def detach(self) -> ndarray:
        """The same values, unrecorded, in shared memory."""
        return _array_over(self._data, self._ctx)

    def copyto(self, other: Any) -> Any:
        """Copy into another array of the same shape, or to a context as a new array."""
        return super().copyto(other).as_np_ndarray()

    def as_nd_ndarray(self) -> NDArray:
        """The same memory and record on the tape, as an array of ``mx.nd``."""
        result = NDArray(self._data, self._ctx)
        result._entry = self._entry
        return result

    def as_np_ndarray(self) -> ndarray:
        """This array."""
        return self

    def reshape_view(self, *shape: Any, **keywords: Any) -> Any:
        """A view with another shape, which ``reshape`` copies, given by the codes of ``nd``.

        Examples
        --------
        >>> from opreg import np
        >>> x = np.zeros((2, 2))
        >>> x.reshape_view(-1)[0] = 1
        >>> x.reshape(-1)[1] = 1
        >>> x
        array([[1., 0.],
               [0., 0.]])
        """
        return NDArray.reshape(self, *shape, **keywords)

    def astype(self, dtype: DTypeLike, order: str = "K", casting: str = "unsafe",  # type: ignore[override]  # NumPy's
               subok: bool = True, copy: bool = True) -> Any:
        """A copy with another dtype; itself when the dtype is the same and ``copy`` is False."""
        return self if not copy and self._data.dtype == as_dtype(dtype) else ops.Cast(self, dtype=as_dtype(dtype))

    def item(self, *index: Any) -> Any:
        """The only element, or the one at a flat or full index, ``x.item(1, 2)``, as a Python number."""
        return super().item(index if len(index) > 1 else index[0] if index else None)

    def asscalar(self) -> Any:
        """The only element as a NumPy scalar."""
        return self.asnumpy().reshape(-1)[0] if self.size == 1 else super().asscalar()

    def __reduce__(self) -> Any:
        return new_array, (self.asnumpy(), self._ctx)

    def __repr__(self) -> str:
        host = self._copied()
        text = re.sub(r",\s+dtype=\w+(?=\)$)", "", repr(host))[:-1]
        dtype = "" if host.dtype in ("float32", "bool") else f", dtype={host.dtype.name}"
        return f"{text}{dtype})" if self._ctx.device_type == "cpu" else f"{text}{dtype}, ctx={self._ctx})"

    def __str__(self) -> str:
        return str(self._copied())

    def __format__(self, form: str) -> str:
        if form and self.shape:
            raise ArgumentError(f"format {form!r} is for one number, got an array of shape {self.shape}")
        return format(self.item(), form) if form else str(self)


attach(ndarray, {ndarray}, {name: (both, both, number) for name, (both, number, _) in COMPARISONS.items()}, "bool")
setattr(ndarray, "__hash__", object.__hash__)  # noqa: B010  == makes an array, identity makes a key
_new = NDArray.__new__


def _array_over(data: Array, ctx: Context) -> ndarray:
    result: ndarray = _new(ndarray)
    result._data, result._ctx, result._entry = data, ctx, None
    if MODE.tracer is not None:
        MODE.tracer.constant(result)
    return result


def new_array(source: Any, ctx: Context | None = None, dtype: DTypeLike = None) -> ndarray:
    """An array holding a copy of values: arrays keep their dtype, numbers and lists become float32."""
    ctx = current_context() if ctx is None else Context(ctx)
    if isinstance(source, NDArray):
        data = source._data
        return _array_over(ctx.backend.asarray(data, as_dtype(dtype or data.dtype), ctx.device_id).copy(), ctx)
    if dtype is None:
        dtype = source.dtype if isinstance(source, (np.ndarray, np.generic)) else _FLOAT32
    host = numbers_of(on_host(source) if isinstance(source, (list, tuple)) else source, as_dtype(dtype))
    return _array_over(host if ctx.backend_name == "cpu" else ctx.backend.asarray(host, None, ctx.device_id), ctx)


def as_value(value: Any) -> Any:
    """A value as an array or symbol of this package: itself, a view that shares memory, or a copy."""
    return value if isinstance(value, NumpyValue) else value.as_np_ndarray() if isinstance(value, (NDArray, Symbol)) \
        else new_array(value)


def _subscript(key: Any, shape: tuple[int, ...] | None) -> tuple[Any, bool]:
    """A subscript in NumPy's terms, with masks as indices; and whether it is basic indexing. Masks must fit the shape,
    if that is known."""
    parts: list[Any] = []
    basic = True
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, NDArray):
            part = part.asnumpy()
        elif isinstance(part, (list, range)):
            part = np.asarray(part, None if len(part) else np.int64)
        if isinstance(part, (bool, np.bool_)):
            part = np.asarray(part)
        if isinstance(part, (np.ndarray, np.generic)):
            part = np.asarray(part)
            if part.dtype.kind == "b" and part.ndim == 0:
                parts.append(bool(part))  # an axis of length zero or one
                basic = False
                continue
            if part.dtype.kind == "b":
                at = sum(part is not None and part.__class__ is not bool for part in parts)
                if shape is not None and not any(part is Ellipsis for part in parts) \
                        and part.shape != shape[at:at + part.ndim]:
                    raise SubscriptError(f"a mask of shape {part.shape} does not fit axes of shape "
                                         f"{shape[at:at + part.ndim]}")
                parts += np.nonzero(part)
                basic = False
                continue
            if is_floating(part.dtype):
                part = part.astype(np.int64)
            if part.ndim == 0:
                part = int(part)
            else:
                basic = False
        parts.append(part)
    return (parts[0] if len(parts) == 1 and not isinstance(key, tuple) else tuple(parts)), basic


#: Operators of two symbols, whose dtypes are unknown and may differ.
_PROMOTING = {"add": "_npi_add", "sub": "_npi_subtract", "mul": "_npi_multiply", "truediv": "_npi_true_divide",
              "mod": "_npi_mod", "pow": "_npi_power", "hypot": "_npi_hypot"}


#: Operators of a symbol and a number, on the right and on the left.
_WITH_NUMBERS = {"add": ("add", "add"), "sub": ("subtract", "rsubtract"), "mul": ("multiply", "multiply"),
                 "pow": ("power", "rpower")}


class NumpySymbol(NumpyValue, Symbol):  # type: ignore[misc]  # its methods are NumPy's
    """A symbol with NumPy's behaviour: arithmetic broadcasts, comparisons give booleans, subscripts give slices."""

    __slots__ = ()
    _rank = 2.5
    _shown_as = "_Symbol"  # the name of MXNet's class
    __hash__ = None  # == makes a symbol

    def _operand(self, other: Any) -> Any:
        return other.as_np_ndarray() if isinstance(other, Symbol) else NotImplemented

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        op, operand = _PROMOTING.get(name), self._operand(other)
        if op is None or operand is NotImplemented:
            return super()._binary(name, other, reflected)
        return get(op)(*((operand, self) if reflected else (self, operand)))

    def _with_number(self, name: str, number: Any, reflected: bool) -> Any:
        if name == "truediv":
            return get(f"_npi_{'r' * reflected}true_divide_scalar")(self, scalar=float(number))
        result = _WITH_NUMBERS.get(name)
        if result is None:
            return super()._with_number(name, number, reflected)
        is_integer = isinstance(number, (numbers.Integral, np.bool_))
        return get(f"_npi_{result[reflected]}_scalar")(self, scalar=float(number), is_int=is_integer)

    def _constant(self, number: Any) -> Any:
        return ops._npi_full_like(self, fill_value=float(number))

    def as_nd_ndarray(self) -> Symbol:
        """This symbol as one of ``mx.sym``."""
        return Symbol(self._entries)

    def as_np_ndarray(self) -> NumpySymbol:
        """This symbol."""
        return self

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) or len(self._entries) > 1:
            return Symbol.__getitem__(self, key)
        if any(isinstance(part, Symbol) for part in (key if isinstance(key, tuple) else (key,))):
            raise ArgumentError("a symbol cannot be a subscript: use np.take, npx.pick or npx.gather_nd")
        return ops._subscript(self, key=_subscript(key, None)[0])



@AS_NUMPY.provide
def _as_numpy(value: Any) -> Any:
    if isinstance(value, Symbol):
        return NumpySymbol(value._entries)
    result = _array_over(value._data, value._ctx)
    result._entry = value._entry
    return result
