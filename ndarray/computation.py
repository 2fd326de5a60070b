"""Eager calls of operators: raw arrays of the operands, the computation, states, and the record on the tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from opreg.core import effects
from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import as_dtype, is_floating
from opreg.core.versions import must_record_write, wrote
from opreg.errors import ArgumentError, DeviceError, DTypeError, OpError, note
from opreg.typing import Array

from . import tape
from .arithmetic import leave_trace
from .context import Context
from .eager import run
from .ndarray import COMPUTE, NDArray, array, wrap

__all__ = ["Applied", "compute", "operand_dtype", "raw"]

_new = NDArray.__new__


def operand_dtype(op: Op, attrs: Attrs, array: np.ndarray | np.generic, values: Sequence[object]) -> np.dtype | None:
    """The dtype in which an operator takes a NumPy array beside other values.

    The array's own dtype is used if one of the ``values`` has it. Otherwise a floating array gets the dtype of the
    first floating one among them. Any other array keeps its dtype if the operator accepts that, as for indices;
    otherwise it gets the first dtype among them that holds its elements. None if there is no such dtype.
    """
    dtypes = [np.dtype(value.dtype) for value in values if isinstance(value, NDArray)]
    if array.dtype in dtypes:
        return array.dtype
    if is_floating(array.dtype):
        return next(filter(is_floating, dtypes), None)
    if dtypes and _takes(op, attrs, array, values):
        return array.dtype
    return next((dtype for dtype in dtypes if is_floating(dtype) or np.can_cast(array.dtype, dtype, "same_kind")), None)


def _takes(op: Op, attrs: Attrs, array: np.ndarray | np.generic, values: Sequence[object]) -> bool:
    """Whether the declared dtypes of an operator allow the dtype of a NumPy array beside NDArrays."""
    if op.where is not None or len(values) != len(op.signature.inputs(attrs)):
        return False
    try:
        array_dtype = as_dtype(array.dtype)
        dtypes = [array_dtype if value is array else np.dtype(value.dtype) if isinstance(value, NDArray) else None
                  for value in values]
        inferred, _ = op.infer_dtypes([*dtypes], [None] * len(op.signature.outputs(attrs)), attrs)
    except DTypeError:
        return False
    return all(old in (None, new) for old, new in zip(dtypes, inferred))


def raw(op: Op, attrs: Attrs, value: object, ctx: Context, values: Sequence[object]) -> Array:
    """The raw array of one of the values that an operator takes: of an NDArray in a context, or of a NumPy array, which
    is copied there."""
    if isinstance(value, NDArray):
        if not value._ctx.shares(ctx):
            raise DeviceError(f"an array lives on {value._ctx}, the first one on {ctx}: move it, as in "
                              f"x.as_in_context(mx.{ctx})")
        return value._data
    if isinstance(value, (np.ndarray, np.generic)):
        return array(value, ctx, operand_dtype(op, attrs, value, values))._data
    raise ArgumentError(f"expected an NDArray, got {type(value).__name__}")


class Applied(Protocol):
    """The form in which an operator was run, or traced."""

    visible: int  # the number of visible outputs


@COMPUTE.provide
def compute(op: Op, attrs: Any, values: Sequence[Any], ctx: Context, out: Array | None = None,
            result_class: type[NDArray] | None = None) -> tuple[Applied, list[NDArray]]:
    """Run an operator eagerly, store states that it changes, and record it if a gradient is requested.

    While a function is traced, the results are constants of its graph. They are of the class ``result_class``, by
    default NDArray.
    """
    if op.signature.stateful and op.signature.auxiliary(attrs):
        _open_states(op, attrs, values)
    arrays = []
    for value in values:
        if isinstance(value, NDArray) and value._ctx is ctx and value._rank < 4:
            arrays.append(value._data)
            if value._alike:
                result_class = result_class or value.__class__
        else:
            if hasattr(value, "_trace_call"):  # a traced value, in the body of an operator or in a gradient
                return value._trace_call(op, attrs, values)
            try:
                arrays.append(raw(op, attrs, value, ctx, values))
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
                try:
                    values[first + state]._store(Ellipsis, NDArray(new, ctx), references=1)
                except OpError as error:
                    note(error, f"{op.signature.inputs(attrs)[first + state]} of operator {op.name}")
                    raise
            residuals = ()
    for i in op.traits.mutates:
        if i >= len(arrays):
            break
        # Values that are no NDArray were copied before the change.
        if isinstance(values[i], NDArray) and must_record_write(values[i], 1):
            wrote(arrays[i])
    outs = []
    for data in results:
        result = _new(result_class or NDArray)
        result._data, result._ctx, result._entry = data, ctx, None
        outs.append(result)
        if tracer is not None:
            tracer.constant(result)
    if recording := thread["current"]().recording:
        tape.record(op, attrs, values, arrays, outs, prepared, recording, residuals)
    return prepared, outs


def _open_states(op: Op, attrs: Any, values: Sequence[Any]) -> None:
    """Prepare the states of an operator to be changed in place, and store them for the backward of a Prop."""
    states = [state for state in values[len(op.signature.arguments(attrs)):] if isinstance(state, NDArray)]
    for state in states:
        state._before_write()
    if op.signature.per_instance and effects.opaque(op):
        attrs.memo["states"] = states
