"""Sparse arrays: `RowSparseNDArray` stores some rows of an array, `CSRNDArray` a matrix in compressed sparse rows.

A sparse array is an NDArray with a `Stored`. Operators with rules in ``sparse_rules`` compute on stored elements. For
others, a dense array is made, which is MXNet's storage fallback. A write replaces all stored elements.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.registry import ops
from opreg.core.rules import Attrs
from opreg.core.slots import Slot
from opreg.core.spec import as_dtype, show
from opreg.core.value import set_operators
from opreg.errors import (
    ArgumentError,
    NotSupportedForSparseNDArray,
    ShapeError,
    SubscriptError,
    did_you_mean,
)
from opreg.typing import Array, DTypeLike

from . import params_file, tape
from .arithmetic import leave_trace
from .computation import Applied
from .context import Context, cpu, current_context, present_context
from .ndarray import NDArray
from .records import Record, Sparse
from .sparse_numbers import INDEX, Csr, Rows, Stored, on_host, scipy_sparse

__all__ = ["BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "empty", "with_stype", "sparse_array", "stored_as",
           "zeros"]

#: Applies an operator where one of its inputs is sparse.
APPLY = Slot("arrays")

_KINDS: dict[str, Any] = {"row_sparse": Rows, "csr": Csr}


def _in_place(name: str) -> Any:
    compute = getattr(operator, name)

    def method(self: BaseSparseNDArray, other: Any) -> BaseSparseNDArray:
        self._store(Ellipsis, compute(self, other))
        return self

    method.__name__ = f"__i{name}__"
    return method


class BaseSparseNDArray(NDArray):
    """The base class of sparse arrays. Programs make them with ``nd.sparse.csr_matrix`` and
    ``nd.sparse.row_sparse_array``."""

    __slots__ = ("_stored",)
    _rank = 4
    _sparse = True
    _stored: Any  # Rows or Csr
    _parts: ClassVar[tuple[str, ...]] = ()  # attributes of the index arrays

    def __init__(self, stored: Stored, ctx: Context | None = None):
        ctx = current_context() if ctx is None else Context(ctx)
        self._stored, self._ctx, self._entry = stored.to(ctx), ctx, None

    # ------------------------------------------------------------------------------------------- operators

    @property
    def _data(self) -> Array:  # type: ignore[override]  # computed when read
        """A read-only dense array of the values."""
        dense: Array = self._ctx.run(self._read().dense)
        if isinstance(dense, np.ndarray):  # CuPy's arrays lack the flag
            dense.setflags(write=False)
        return dense

    @property
    def _memory(self) -> Stored:
        return self._stored

    def _read(self) -> Any:
        """The stored elements as values; a trace ends here, since it has no values."""
        if MODE.tracer is not None:
            leave_trace((self,))
        return self._stored

    def _trace_call(self, op: Op, attrs: Attrs, values: Sequence[Any]) -> tuple[Applied, list[NDArray]]:
        if MODE.tracer is not None:
            leave_trace(values)
        result: tuple[Applied, list[NDArray]] = APPLY.function(op, attrs, values)
        return result

    def _binary(self, name: str, other: Any, reflected: bool) -> Any:
        if isinstance(other, NDArray) and name in ("add", "sub", "mul", "truediv") and other.shape == self.shape:
            op = getattr(ops, {"truediv": "elemwise_div"}.get(name, f"elemwise_{name}"))
            return op(other, self) if reflected else op(self, other)
        return super()._binary(name, other, reflected)

    def __neg__(self) -> NDArray:
        return ops.negative(self)

    __iadd__, __isub__, __imul__ = _in_place("add"), _in_place("sub"), _in_place("mul")
    __itruediv__, __imod__, __ipow__ = _in_place("truediv"), _in_place("mod"), _in_place("pow")

    def _shape_is(self, other: object) -> bool:
        return isinstance(other, NDArray) and self.shape == other.shape

    # -------------------------------------------------------------------------------------------- questions

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        shape: tuple[int, ...] = self._stored.shape
        return shape

    @property
    def dtype(self) -> type:
        """The dtype as a NumPy scalar class."""
        kind: type = self._stored.dtype.type
        return kind

    @property
    def size(self) -> int:
        """The number of elements, including those that are not stored."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def stype(self) -> str:
        """The storage type, ``row_sparse`` or ``csr``."""
        stype: str = self._stored.stype
        return stype

    @property
    def data(self) -> NDArray:
        """A copy of the stored elements."""
        return NDArray(self._ctx.run(self._read().elements.copy), self._ctx)

    @property
    def indices(self) -> NDArray:
        """A copy of the indices: of rows for a `RowSparseNDArray`, of columns for a `CSRNDArray`."""
        return NDArray(self._ctx.run(self._read().indices.copy), self._ctx)

    @property
    def _num_aux(self) -> int:
        return len(self._parts)

    def check_format(self, full_check: bool = True) -> None:
        """Check that indices are valid for the storage type.

        Parameters
        ----------
        full_check : bool
            Whether to check all indices, not only their number.

        Raises
        ------
        ArgumentError
            If they are not. The error names the wrong indices.
        """
        check_indices(self._stored, full_check)

    # ----------------------------------------------------------------------------------- to and from others

    def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """The dense array as a NumPy array.

        Examples
        --------
        >>> from opreg import nd
        >>> nd.sparse.row_sparse_array(([[1, 2]], [1]), shape=(3, 2)).asnumpy()
        array([[0., 0.],
               [1., 2.],
               [0., 0.]], dtype=float32)
        """
        dense = self._dense()
        return dense._data if out is None and isinstance(dense._data, np.ndarray) else dense.asnumpy(out, blocking)

    def _dense(self) -> NDArray:
        """A dense copy, which is not recorded."""
        return NDArray(self._ctx.run(self._read().dense), self._ctx)

    def _copied(self) -> np.ndarray:
        return self.asnumpy()

    def asscalar(self) -> Any:
        """The only element as a NumPy scalar."""
        return self.tostype("default").asscalar()

    def tostype(self, stype: str) -> NDArray:
        """The same values in another storage type: ``default``, ``row_sparse`` or ``csr``.

        Examples
        --------
        >>> from opreg import nd
        >>> nd.sparse.csr_matrix([[0, 1], [2, 0]]).tostype("row_sparse")
        <BLANKLINE>
        <RowSparseNDArray 2x2 @cpu(0)>
        """
        return self if stype == self.stype else ops.cast_storage(self, stype=stype)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array of the same shape and any storage type, or to a context."""
        if isinstance(other, Context):
            return type(self)(self._stored, other)
        return super().copyto(other)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> NDArray:
        """A copy with another dtype. With ``copy=False``, an array that has the dtype is returned itself."""
        target = as_dtype(dtype)
        return self if not copy and self._stored.dtype == target else ops.Cast(self, dtype=target)

    def detach(self) -> NDArray:
        """An array with the same values that is not recorded."""
        return type(self)(self._stored, self._ctx)

    def shown(self) -> NDArray:
        """The array itself, since stored elements are immutable."""
        return self

    def reshape(self, *shape: Any, **keywords: Any) -> NDArray:
        """Raises an error, since stored elements cannot be reshaped.

        Raises
        ------
        NotSupportedForSparseNDArray
            Always.
        """
        raise NotSupportedForSparseNDArray("reshape: a sparse array cannot change its shape; convert it first with "
                                           "tostype('default')")

    def __reduce__(self) -> Any:
        stored = self._stored.to(cpu())
        return _restore, (self._ctx, self.stype, stored.elements, *(getattr(stored, part) for part in self._parts),
                          self.shape)

    def __getstate__(self) -> Any:
        return {"handle": params_file.to_bytes(record_of(self))}

    def __repr__(self) -> str:
        return f"\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self._ctx}>"

    def _repr_html_(self) -> str | None:
        return None

    # -------------------------------------------------------------------------------------------- subscripts

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace all elements, as in ``x[:] = value``."""
        self._store(key, value)

    def _store(self, key: Any, value: Any, basic: bool = True, references: int = 0) -> None:
        if key is not Ellipsis and not (isinstance(key, slice) and key == slice(None)):
            raise SubscriptError(f"{type(self).__name__}: only all of a sparse array can be written, x[:] = value")
        if isinstance(value, NDArray):
            if value.shape != self.shape:
                raise ShapeError(f"{type(self).__name__} of shape {show(self.shape)}: got one of {show(value.shape)}")
            new = stored_as(value, self.stype)
        else:
            if isinstance(value, (int, float)) and self.stype == "csr":
                raise ArgumentError("CSRNDArray: expected an array, since a number would fill the whole matrix")
            host = value.toarray() if hasattr(value, "toarray") else np.asarray(value)
            new = _KINDS[self.stype].of(np.broadcast_to(host, self.shape).astype(self._stored.dtype))
        self._store_elements(new.to(self._ctx))

    def _store_elements(self, new: Stored) -> None:
        """Store these elements, in the array's own dtype."""
        dtype = self._stored.dtype
        self._stored = new if new.dtype == dtype else new.with_elements(self._ctx.run(new.elements.astype, dtype))

    # --------------------------------------------------------------------------------------------- gradients

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Request the gradient of this array, by default in its own storage type."""
        gradient = zeros(stype or self.stype, self.shape, self._ctx, self.dtype)
        self._entry = tape.leaf(self, gradient, grad_req)

    def _receive(self, req: str, gradient: Any) -> None:
        """Store a raw gradient as requested; it is `Rows`, a dense array, or zero."""
        if req == "null":
            return
        before = self._stored
        if isinstance(gradient, Rows) and self.stype == "row_sparse":
            self._store_elements(gradient)
        elif isinstance(gradient, Rows) or hasattr(gradient, "dtype"):
            dense = self._ctx.run(gradient.dense) if isinstance(gradient, Rows) else gradient
            self._store_elements(self._ctx.run(_KINDS[self.stype].of, dense))
        else:
            self._stored = empty_of(self.stype, self.shape, before.dtype, self._ctx)
        if req == "add":
            self._stored = self._ctx.run(before.joined, self._stored, operator.add)


set_operators(BaseSparseNDArray)  # in place of the faster ones of ``NDArray``, which compute on dense arrays


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which some rows are stored; all others are zero.

    Examples
    --------
    >>> from opreg import nd
    >>> a = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [4, 1]), shape=(5, 2))
    >>> a.indices.asnumpy().tolist(), a.data.asnumpy().tolist()
    ([1, 4], [[3.0, 4.0], [1.0, 2.0]])
    """

    __slots__ = ()
    _parts = ("indices",)

    def __getitem__(self, key: Any) -> NDArray:
        if isinstance(key, slice) and key == slice(None):
            return self
        raise SubscriptError("RowSparseNDArray: x[:] is its only subscript; use retain(rows), or tostype('default')")

    def retain(self, *args: Any, **keywords: Any) -> NDArray:
        """The rows at ``indices``; see ``nd.sparse.retain``."""
        result: NDArray = ops._sparse_retain(self, *args, **keywords)
        return result

    def _take_rows(self, row_id: NDArray) -> RowSparseNDArray:
        """The rows at these indices, with the tape entry of the whole array, to which their gradients belong."""
        rows = row_id.as_in_context(self._ctx)._data
        part = RowSparseNDArray(self._ctx.run(lambda: self._stored.retain(rows.astype(np.int64))), self._ctx)
        part._entry = self._entry
        return part


class CSRNDArray(BaseSparseNDArray):
    """A matrix in compressed sparse rows: each row has the columns of its stored elements, and the elements.

    Examples
    --------
    >>> from opreg import nd
    >>> a = nd.sparse.csr_matrix(([1, 2, 3], [0, 2, 1], [0, 2, 2, 3]), shape=(3, 3))
    >>> a.asnumpy().tolist()
    [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, 0.0]]
    >>> a[0:2].asnumpy().tolist()
    [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """

    __slots__ = ()
    _parts = ("indptr", "indices")

    @property
    def indptr(self) -> NDArray:
        """A copy of the start of each row among the stored elements, and the end of the last row."""
        return NDArray(self._ctx.run(self._read().indptr.copy), self._ctx)

    def asscipy(self) -> Any:
        """A copy as SciPy's ``csr_matrix``.

        Raises
        ------
        ImportError
            If SciPy is not installed.
        """
        library = scipy_sparse()
        if library is None:
            raise ImportError("asscipy needs SciPy: pip install scipy")
        stored = self._stored
        parts = [np.array(on_host(part)) for part in (stored.elements, stored.indices, stored.indptr)]
        return library.csr_matrix(tuple(parts), stored.shape)

    def __getitem__(self, key: Any) -> NDArray:
        if isinstance(key, (int, np.integer)):
            if not -len(self) <= key < len(self):
                raise SubscriptError(f"row {key} of a matrix with {len(self)} rows")
            begin = int(key) % len(self)
            return ops.slice(self, begin=(begin,), end=(begin + 1,))
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) > 2 or not all(isinstance(part, slice) and part.step in (None, 1) for part in parts):
            raise SubscriptError(f"CSRNDArray: expected a row, or slices without a step, got {key!r}")
        if all(part == slice(None) for part in parts):
            return self
        spans = [part.indices(length) for part, length in zip(parts, self.shape)]
        if any(begin >= end for begin, end, _ in spans):
            raise SubscriptError(f"CSRNDArray of shape {show(self.shape)}: {key!r} names nothing")
        return ops.slice(self, begin=tuple(span[0] for span in spans), end=tuple(span[1] for span in spans))


_CLASSES: dict[str, type[BaseSparseNDArray]] = {"row_sparse": RowSparseNDArray, "csr": CSRNDArray}


# --------------------------------------------------------------------------------------------- stored elements


def check_stype(stype: str) -> str:
    """Check a storage type.

    Raises
    ------
    ArgumentError
        For an unknown one. The error suggests the nearest.
    """
    if stype not in ("default", *_KINDS):
        raise ArgumentError(f"storage type {stype!r}. {did_you_mean(str(stype), ('default', *_KINDS))}")
    return stype


def stored_as(value: NDArray, stype: str) -> Any:
    """The `Stored` of an array in a sparse storage type."""
    if isinstance(value, BaseSparseNDArray) and value.stype == stype:
        return value._stored
    return value._ctx.run(_KINDS[stype].of, value._data)


def sparse_array(stored: Stored, ctx: Context) -> NDArray:
    """The sparse array of a `Stored`."""
    return _CLASSES[stored.stype](stored, ctx)


def with_stype(stype: str, value: NDArray) -> NDArray:
    """An array in a storage type with the same values, which is not recorded."""
    if check_stype(stype) == "default":
        return value._dense() if isinstance(value, BaseSparseNDArray) else value
    return sparse_array(stored_as(value, stype), value._ctx)


def empty_of(stype: str, shape: tuple[int, ...], dtype: np.dtype, ctx: Context) -> Any:
    """The `Stored` of an array of zeros in a context."""
    if stype == "csr" and len(shape) != 2:
        raise ShapeError(f"csr: expected the shape of a matrix, got {show(shape)}")
    make = functools.partial(ctx.backend.zeros, device=ctx.device_id)
    if stype == "row_sparse":
        return Rows(make((0, *shape[1:]), dtype), make((0,), INDEX), shape)
    return Csr(make((0,), dtype), make((0,), INDEX), make((shape[0] + 1,), INDEX), shape)


def takes_rows(entry: Any) -> bool:
    """Whether the gradient of an entry is stored in a ``row_sparse`` array, and may be `Rows`."""
    return entry is not None and isinstance(entry[0].grad, RowSparseNDArray)


def check_indices(stored: Stored, full: bool) -> None:
    """Raise an error if indices are not valid for the storage type. For indices on a device, the host waits for a
    copy."""
    count, shape = stored.elements.shape[0], stored.shape
    indices = on_host(stored.indices)

    def refuse(what: str) -> None:
        raise ArgumentError(f"{stored.stype} array of shape {show(shape)}: {what}")

    if len(indices) != count:
        refuse(f"{len(indices)} indices for {count} stored elements")
    end = shape[0] if isinstance(stored, Rows) else shape[1]
    if isinstance(stored, Csr):
        starts = on_host(stored.indptr)
        if len(starts) != shape[0] + 1 or starts[0] != 0 or starts[-1] != count or (np.diff(starts) < 0).any():
            refuse(f"indptr must rise from 0 to {count} in {shape[0] + 1} steps, got {starts.tolist()[:8]}")
    if not full or not count:
        return
    if indices.min() < 0 or indices.max() >= end:
        refuse(f"indices must lie from 0 to {end - 1}, got {indices.min()} to {indices.max()}")
    steps = np.diff(indices if isinstance(stored, Rows) else on_host(stored.rows) * (end + 1) + indices)
    if (steps <= 0).any():
        refuse("indices must rise" + ("" if isinstance(stored, Rows) else " in each row"))


def _restore(ctx: Context, stype: str, elements: np.ndarray, *parts_and_shape: Any) -> NDArray:
    *parts, shape = parts_and_shape  # in the order of ``_parts``
    return sparse_array(_KINDS[stype](elements, *reversed(parts), shape), present_context(ctx))


def record_of(value: NDArray) -> Record:
    """The file record of an array."""
    device = (value.context.device_type, value.context.device_id)
    if not isinstance(value, BaseSparseNDArray):
        return Record(value.asnumpy(), device)
    stored = value._stored.to(cpu())
    return Record(stored.elements, device, Sparse(
        value.stype, tuple(getattr(stored, part) for part in value._parts), value.shape))


def of_record(record: Record, ctx: Context) -> NDArray:
    """The sparse array of a file record."""
    elements, sparse = record.array, record.sparse
    assert elements is not None and sparse is not None
    parts = [part.astype(INDEX, copy=False) for part in sparse.indices]
    return sparse_array(_KINDS[sparse.stype](elements, *reversed(parts), sparse.shape), ctx)


def zeros(stype: str, shape: int | Sequence[int], ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """An array of zeros in a storage type, with no stored elements.

    Examples
    --------
    >>> zeros("csr", (2, 3))
    <BLANKLINE>
    <CSRNDArray 2x3 @cpu(0)>
    """
    dims = (shape,) if isinstance(shape, int) else tuple(map(int, shape))
    target, ctx = as_dtype("float32" if dtype is None else dtype), current_context() if ctx is None else Context(ctx)
    if check_stype(stype) == "default":
        return NDArray(ctx.backend.zeros(dims, target, ctx.device_id), ctx)
    return sparse_array(empty_of(stype, dims, target, ctx), ctx)


def empty(stype: str, shape: int | Sequence[int], ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """The same as ``zeros``."""
    return zeros(stype, shape, ctx, dtype)
