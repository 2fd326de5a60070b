"""Rules of operators for sparse arrays, by name, which compute on stored elements.

A rule returns None for storage types that it does not support. Then, as without a rule, the operator computes on dense
arrays.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.core.array_module import module_of
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.registry import get
from opreg.core.rules import Attrs, enter_under
from opreg.core.spec import Spec, show
from opreg.custom.prop_use import PropUse
from opreg.errors import ArgumentError, ShapeError
from opreg.typing import Array

from . import backward_pass, tape
from .computation import compute, raw
from .context import Context, cpu
from .ndarray import CAST_STORAGE, NDArray
from .sparse_arrays import (
    APPLY,
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    check_stype,
    empty_of,
    sparse_array,
    takes_rows,
    with_stype,
    zeros,
)
from .sparse_custom import by_prop
from .sparse_numbers import INDEX, Csr, Rows, on_host

__all__ = ["apply_sparse", "cast_storage", "result_stype", "update_weight"]

#: A function of an operator, its attributes and inputs that returns the result.
Rule: TypeAlias = Callable[[Op, Attrs, Sequence[Any]], NDArray | None]

RULES: dict[str, Rule] = {}


_rule = enter_under(RULES)


@APPLY.provide
def apply_sparse(op: Op, attrs: Attrs, values: Sequence[Any]) -> tuple[Any, list[NDArray]]:
    """Apply an operator to inputs of which at least one is sparse."""
    ctx = next(value._ctx for value in values if isinstance(value, BaseSparseNDArray))
    values = [value if isinstance(value, NDArray) and value._ctx.shares(ctx) else
              NDArray(raw(op, attrs, value, ctx, values), ctx) for value in values]
    if isinstance(attrs, PropUse) and attrs.says_stypes:
        with ctx.entered():
            return by_prop(op, attrs, values, ctx)
    rule = RULES.get(op.name) if op.family else None
    result = None if rule is None else ctx.run(rule, op, attrs, values)
    if result is None:
        return _apply_to_dense(op, attrs, values, ctx)
    if (recording := MODE.recording) and result._entry is None and _is_any_recorded(values):
        arrays = [raw(op, attrs, value, result._ctx, values) for value in values]
        tape.record(op, attrs, values, arrays, [result], None, recording)
    return types.SimpleNamespace(visible=1), [result]


def result_stype(op: Op, attrs: Attrs, inputs: Sequence[tuple[str, Spec]]) -> str | None:
    """The storage type of an operator's result for inputs of these storage types, shapes and dtypes; None where it
    computes on dense arrays."""
    rule = RULES.get(op.name) if op.family else None
    if rule is None:
        return None
    result = rule(op, attrs, [zeros(stype, spec.shape or (), cpu(), spec.dtype) for stype, spec in inputs])
    return None if result is None else result.stype


def _is_any_recorded(values: Sequence[Any]) -> bool:
    return any(getattr(value, "_entry", None) is not None for value in values)


def _apply_to_dense(op: Op, attrs: Attrs, values: Sequence[NDArray], ctx: Context) -> tuple[Any, list[NDArray]]:
    """Apply an operator to dense arrays; inputs that it changes in place are stored again in their storage types."""
    dense = []
    for value in values:
        if isinstance(value, BaseSparseNDArray):
            dense_value = value._dense()
            dense_value._entry = value._entry
            dense.append(dense_value)
        else:
            dense.append(value)
    prepared, outs = compute(op, attrs, dense, ctx)
    first = len(op.signature.arguments(attrs))
    for i in {*op.traits.mutates, *[first + state for state in op.traits.states]}:
        if i < len(values) and isinstance(values[i], BaseSparseNDArray):
            values[i]._store(Ellipsis, dense[i].detach())
    return prepared, outs


# ---------------------------------------------------------------------------------------- element by element


def _apply_to_elements(op: Op, attrs: Attrs, ctx: Context, *elements: Array) -> Array:
    """Apply an operator to stored elements."""
    _, (out,) = compute(op, attrs, [NDArray(number, ctx) for number in elements], ctx)
    return out._data


@_rule("abs", "sign", "rint", "ceil", "floor", "trunc", "fix", "round", "sqrt", "cbrt", "square", "sin", "tan",
       "arcsin", "arctan", "degrees", "radians", "sinh", "tanh", "arcsinh", "arctanh", "log1p", "expm1", "relu",
       "negative", "make_loss", "BlockGrad", "_copy", "Cast", "_mul_scalar", "_div_scalar",
       "_scatter_plus_scalar", "_scatter_minus_scalar")
def _keeps_zeros(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    (x,) = values
    elements = _apply_to_elements(op, attrs, x._ctx, x._stored.elements)
    return sparse_array(x._stored.with_elements(elements), x._ctx)


@_rule("_plus_scalar", "_minus_scalar", "_greater_scalar", "_lesser_scalar", "_not_equal_scalar",
       "_greater_equal_scalar", "_lesser_equal_scalar", "_equal_scalar", "clip", "_contrib_quadratic")
def _may_keep_zeros(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    (x,) = values
    if _apply_to_elements(op, attrs, cpu(), np.zeros(1, x._stored.dtype))[0] != 0:
        return None
    return _keeps_zeros(op, attrs, values)


@_rule("zeros_like")
def _zeros_like(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    (x,) = values
    return sparse_array(empty_of(x.stype, x.shape, x._stored.dtype, x._ctx), x._ctx)


@_rule("elemwise_add", "elemwise_sub", "_maximum", "_minimum", "_hypot")
def _keeps_common_zeros(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    left, right = values
    _same_shape(op, left, right)
    if _stype(left) != _stype(right):
        return None
    return sparse_array(left._stored.joined(right._stored, functools.partial(_apply_to_elements, op, attrs, left._ctx)),
                        left._ctx)


def _stype(value: Any) -> str:
    return value.stype if isinstance(value, NDArray) else "default"


def _same_shape(op: Op, left: Any, right: Any) -> None:
    if left.shape != right.shape:
        raise ShapeError(f"operator {op.name}: expected two arrays of one shape, got {show(left.shape)} and "
                         f"{show(right.shape)}")


def _stored_elements(dense: Array, stored: Any) -> Array:
    """The elements of a dense array at the places that a sparse one stores."""
    if isinstance(stored, Rows):
        return dense[stored.indices]
    return stored.xp.broadcast_to(dense, stored.shape)[stored.rows, stored.indices]


@_rule("elemwise_mul")
def _product(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    left, right = values
    _same_shape(op, left, right)
    kinds = {_stype(left), _stype(right)}
    if len(kinds) == 1:
        return sparse_array(left._stored.joined(right._stored, operator.mul), left._ctx)
    if "default" not in kinds:
        return None
    x, dense = (left, right) if isinstance(left, BaseSparseNDArray) else (right, left)
    return sparse_array(x._stored.with_elements(x._stored.elements * _stored_elements(dense._data, x._stored)), x._ctx)


@_rule("_scatter_elemwise_div")
def _stored_quotient(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    left, right = values
    if not isinstance(left, RowSparseNDArray):
        return None
    _same_shape(op, left, right)
    rows = left._stored
    others = right._stored.rows_at(rows.indices) if isinstance(right, RowSparseNDArray) else right._data[rows.indices]
    return sparse_array(rows.with_elements(_apply_to_elements(op, attrs, left._ctx, rows.elements, others)), left._ctx)


def _broadcast(compute: Callable[[Array, Array], Array], op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    left, right = values
    if not isinstance(left, CSRNDArray) or _stype(right) != "default" or len(right.shape) > 2:
        return None
    if np.broadcast_shapes(left.shape, right.shape) != left.shape:
        return None
    elements = compute(left._stored.elements, _stored_elements(right._data, left._stored))
    return sparse_array(left._stored.with_elements(elements), left._ctx)


_rule("broadcast_mul")(functools.partial(_broadcast, operator.mul))
_rule("broadcast_div")(functools.partial(_broadcast, operator.truediv))


@_rule("add_n")
def _sum_of_all(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    if not all(isinstance(value, RowSparseNDArray) for value in values):
        return None
    total = values[0]._stored
    for value in values[1:]:
        _same_shape(op, values[0], value)
        total = total + value._stored
    return sparse_array(total, values[0]._ctx)


# ------------------------------------------------------------------------------------------ parts and sums


@_rule("slice")
def _slice(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    (x,) = values
    begin, end, step = ((bound,) if isinstance(bound, int) else bound or () for bound in (
        attrs["begin"], attrs["end"], attrs["step"]))
    if x.stype != "csr" or any(number not in (None, 1) for number in step):
        return None
    op.infer_shapes([x.shape], [None], attrs)
    spans = [slice(first, last).indices(length)[:2] for first, last, length in zip(begin, end, x.shape)]
    return sparse_array(x._stored.part(*[place for span in spans for place in span]), x._ctx)


@_rule("Concat")
def _concat(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    if attrs["dim"] != 0 or not all(isinstance(value, CSRNDArray) for value in values):
        return None
    parts = [value._stored for value in values]
    width = parts[0].shape[1]
    if any(part.shape[1] != width for part in parts):
        return None
    ends, join = itertools.accumulate((part.elements.size for part in parts), initial=0), parts[0].xp.concatenate
    indptr = join([parts[0].indptr[:1], *[part.indptr[1:] + end for part, end in zip(parts, ends)]])
    return sparse_array(Csr(join([part.elements for part in parts]), join([part.indices for part in parts]), indptr,
                            (sum(part.shape[0] for part in parts), width)), values[0]._ctx)


@_rule("take")
def _take(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    x, indices = values
    if not isinstance(x, CSRNDArray) or attrs["axis"] != 0 or _stype(indices) != "default" or indices.ndim != 1:
        return None
    places = indices._data.astype(np.int64)
    count, stored, xp = x.shape[0], x._stored, x._stored.xp
    places = places % count if attrs["mode"] == "wrap" else xp.clip(places, 0, count - 1)
    ends = xp.cumsum(xp.diff(stored.indptr)[places])
    indptr = xp.concatenate([xp.zeros(1, dtype=INDEX), ends])
    numbered = xp.arange(int(on_host(indptr[-1:])[0]))
    row = xp.searchsorted(ends, numbered, side="right")
    chosen = stored.indptr[places[row]] - indptr[row] + numbered
    return sparse_array(Csr(stored.elements[chosen], stored.indices[chosen], indptr, (places.size, x.shape[1])), x._ctx)


@_rule("_square_sum")
def _square_sum(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    (x,) = values
    axis = attrs["axis"]
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    if not isinstance(x, RowSparseNDArray) or x.ndim != 2 or axis not in (1, -1) or not attrs["keepdims"]:
        return None
    stored = x._stored
    sums = stored.xp.square(stored.elements).sum(axis=1, keepdims=True)
    return sparse_array(Rows(sums, stored.indices, (x.shape[0], 1)), x._ctx)


@_rule("_contrib_getnnz")
def _stored_count(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    (x,) = values
    if not isinstance(x, CSRNDArray):
        return None
    stored, axis, xp = x._stored, attrs["axis"], x._stored.xp
    if axis is None:
        counts = xp.full(1, stored.elements.size)
    else:
        counts = xp.diff(stored.indptr) if axis else xp.bincount(stored.indices, minlength=x.shape[1])
    return NDArray(counts.astype(np.int64), x._ctx)


@_rule("_sparse_retain")
def _retain(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    x, indices = values
    if not isinstance(x, RowSparseNDArray):
        return None
    places = indices._data.astype(np.int64).reshape(-1)
    result = sparse_array(x._stored.retain(places), x._ctx)
    if MODE.recording and x._entry is not None:
        def back(attrs: Attrs, out_grads: Sequence[Any], needs: Sequence[bool], ctx: Context) -> list[Any]:
            g = out_grads[0]
            g = g if isinstance(g, Rows) else Rows.of(g)
            return [g.retain(places) if takes_rows(x._entry) else g.retain(places).dense(), None]

        tape.record(tape.TapedFunction(op.name, _no_second, grad_reads=False, raw_gradient=back), {}, [x, indices], [],
                    [result], None, MODE.recording)
    return result


# --------------------------------------------------------------------------------------------- storage types


def _no_second(*_: Any) -> Any:
    raise ArgumentError("gradients of operators with sparse arrays are not recorded: convert the arrays with "
                        "tostype('default')")


#: A change of the storage type, whose gradient is the identity.
_CAST = tape.TapedFunction("cast_storage", lambda g, ins, outs, attrs, needs, is_train=True: [g], grad_reads=False,
                   raw_gradient=lambda attrs, out_grads, needs, ctx: list(out_grads))


@CAST_STORAGE.provide
def cast_storage(data: NDArray, stype: str, *, out: NDArray | None = None) -> NDArray:
    """Convert an array to another storage type.

    Parameters
    ----------
    data : NDArray
        An array of any storage type.
    stype : {"default", "row_sparse", "csr"}
        The new storage type; ``row_sparse`` stores rows that are not all zero, ``csr`` elements that are not zero.
    out : NDArray, optional
        The array to store the values in.

    Examples
    --------
    >>> from opreg import nd
    >>> nd.cast_storage(nd.array([[0, 1], [0, 0]]), "row_sparse").indices.asnumpy().tolist()
    [0]
    """
    if not isinstance(data, NDArray):
        raise ArgumentError(f"cast_storage: expected an NDArray, got {type(data).__name__}")
    if check_stype(stype) == "row_sparse" and isinstance(data, CSRNDArray):
        result: NDArray = sparse_array(data._ctx.run(data._stored.by_row), data._ctx)
    else:
        result = with_stype(stype, data)
    if result is data:
        result = data.detach()
    if MODE.recording and data._entry is not None:
        tape.record(_CAST, {}, [data], [data._data], [result], None, MODE.recording)
    if out is None:
        return result
    out[:] = result
    return out


@_rule("cast_storage")
def _cast(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    return cast_storage(values[0], attrs["stype"])


# --------------------------------------------------------------------------------------------------- products


@_rule("dot")
def _dot(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    left, right = values
    turn, turn_right, wanted = attrs["transpose_a"], attrs["transpose_b"], attrs["forward_stype"]
    op.infer_shapes([left.shape, right.shape], [None], attrs)
    if isinstance(left, CSRNDArray) and _stype(right) != "csr" and right.ndim <= 2 and left._entry is None:
        stored: Csr = left._stored
        if isinstance(right, RowSparseNDArray) and not turn and not turn_right:
            result: NDArray = NDArray(stored.times_rows(right._stored), left._ctx)
        else:
            dense = right._data.T if turn_right else right._data
            rows = stored.transposed_times(dense) if turn else None
            result = NDArray(stored.times(dense), left._ctx) if rows is None else sparse_array(rows, left._ctx)
        stype = wanted or ("row_sparse" if turn and not turn_right else "default")
        result = with_stype(stype, result)
        if MODE.recording and right._entry is not None:
            _record_dot(left, right, result, turn, turn_right)
        return result
    if isinstance(right, CSRNDArray) and _stype(left) == "default" and left.ndim == 2 and not turn:
        elements = (right._stored if turn_right else right._stored.transposed()).times(left._data.T).T
        result = with_stype(wanted or "csr", NDArray(left._ctx.xp.ascontiguousarray(elements), left._ctx))
        return result
    if wanted in (None, "default"):
        return None
    complete = op.complete({**attrs, "forward_stype": None})
    return with_stype(wanted, _apply_to_dense(op, complete, values, left._ctx)[1][0])


def _record_dot(left: CSRNDArray, right: NDArray, result: NDArray, turn: bool, turn_right: bool) -> None:
    """Record the product of a constant matrix and an array. The gradient of the array stores rows for the columns of
    the matrix that store elements."""
    stored: Csr = left._stored

    def back(attrs: Attrs, out_grads: Sequence[Any], needs: Sequence[bool], ctx: Context) -> list[Any]:
        g = out_grads[0].dense() if isinstance(out_grads[0], Rows) else out_grads[0]
        if turn:
            gradient: Any = stored.times(g)
        else:
            gradient = stored.transposed_times(g)
            if turn_right or not takes_rows(right_entry):
                gradient = gradient.dense()
        return [None, gradient.T if turn_right else gradient]

    right_entry = right._entry
    op = tape.TapedFunction("dot", _no_second, grad_reads=False, raw_gradient=back)
    tape.record(op, {}, [left, right], [], [result], None, MODE.recording)


# ---------------------------------------------------------------------------------------------------- Embedding


@_rule("Embedding", "_contrib_SparseEmbedding")
def _embedding(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    data, weight = values
    if not isinstance(weight, RowSparseNDArray) or _stype(data) != "default":
        return None
    op.infer_shapes([data.shape, weight.shape], [None], attrs)
    result = NDArray(weight._stored.rows_at(_rows_of(data._data, weight.shape[0])), weight._ctx)
    if MODE.recording and weight._entry is not None:  # the tape holds dense arrays
        tape.record(op, attrs, values, [data._data, weight._data], [result], None, MODE.recording)
    return result


def _rows_of(data: Array, count: int) -> Array:
    """Indices of rows of a weight, clipped to the valid range."""
    return module_of(data).clip(data.astype(np.int64), 0, count - 1)


def _embedding_rows(node: tape.TapeNode, out_grads: Sequence[Any]) -> list[Any] | None:
    """The gradient of the weight of ``Embedding``, which stores the rows that were looked up."""
    if not takes_rows(node.inputs[1]) or node.ins is None:
        return None
    data, shape = node.ins[0], node.ins[1].shape
    indices = _rows_of(data, shape[0]).reshape(-1)
    return [None, Rows.summed(out_grads[0].reshape(indices.size, *shape[1:]), indices, shape)]


backward_pass.ROW_GRADIENTS.update(dict.fromkeys(("Embedding", "_contrib_SparseEmbedding"), _embedding_rows))


# -------------------------------------------------------------------------------------------------- updates


#: Update operators that by default update only the rows that a sparse gradient stores.
LAZY = ("sgd_update", "sgd_mom_update", "adam_update", "ftrl_update", "_sparse_adagrad_update",
        "_contrib_group_adagrad_update")


def update_weight(name: str, weight: NDArray, grad: NDArray, states: Sequence[NDArray], attrs: dict[str, Any]) -> None:
    """Update a weight in place by an update operator, where the weight, its gradient or a state is sparse.

    An operator in ``LAZY`` updates only the rows that the gradient stores, unless its attribute ``lazy_update`` is
    False. Others update all rows.
    """
    ctx = weight._ctx
    if isinstance(grad, RowSparseNDArray) and name in LAZY and attrs.get("lazy_update", True):
        ctx.run(update_rows, name, weight, grad, states, attrs)
        return
    arrays = [ctx.run(value._stored.dense if isinstance(value, BaseSparseNDArray) else value._data.copy)
              for value in (weight, grad, *states)]
    rule = get(name).kernels[0].rule
    ctx.run(rule.function, ctx.xp, *arrays, out=arrays[0], **rule.select(attrs))
    for value, moved in zip((weight, *states), (arrays[0], *arrays[2:])):
        value._store(Ellipsis, NDArray(moved, ctx))


def update_rows(name: str, weight: NDArray, grad: RowSparseNDArray, states: Sequence[NDArray],
                attrs: dict[str, Any]) -> None:
    """Update the rows of a weight, and of its states, that a gradient stores.

    Parameters
    ----------
    name : str
        The update operator of dense weights.
    weight, grad : NDArray, RowSparseNDArray
        The weight, which may be sparse, too, and the gradient.
    states : sequence of NDArray
        The states of the operator, changed in place.
    attrs : dict
        Attributes of the operator.
    """
    rows: Rows = grad._stored
    if not rows.indices.size:
        return
    arrays = [value._stored.rows_at(rows.indices) if isinstance(value, RowSparseNDArray) else value._data[rows.indices]
              for value in (weight, *states)]
    rule, ctx = get(name).kernels[0].rule, weight._ctx
    parts = [arrays[0], rows.elements.astype(arrays[0].dtype), *arrays[1:]]
    ctx.run(rule.function, ctx.xp, *parts, out=parts[0], **rule.select(attrs))
    for value, moved in zip((weight, *states), arrays):
        if isinstance(value, RowSparseNDArray):
            stored_rows: Rows = value._stored
            stored_rows = stored_rows if stored_rows.is_full else stored_rows.joined(rows, lambda elements, _: elements)
            elements = stored_rows.elements.copy()
            elements[stored_rows.places(rows.indices)] = moved
            value._stored = stored_rows.with_elements(elements)
        else:
            value._store(rows.indices, NDArray(moved, ctx), False)


@_rule(*LAZY)
def _update(op: Op, attrs: Attrs, values: Sequence[Any]) -> NDArray | None:
    weight, grad, *states = values
    if not isinstance(grad, RowSparseNDArray) or not attrs.get("lazy_update", True):
        return None
    moved = weight.copy()
    update_rows(op.name, moved, grad, states, dict(attrs))
    return moved
