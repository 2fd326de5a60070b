"""Users' operators on sparse arrays, whose Prop says by ``infer_storage_type`` how inputs and outputs are stored."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from opreg.core.mode import MODE
from opreg.core.op import Op
from opreg.core.spec import Shape
from opreg.custom.invocation import run_backward, run_forward
from opreg.custom.prop_use import PropUse, operator_specs
from opreg.errors import NotDifferentiableError

from . import tape
from .context import Context
from .ndarray import NDArray, wrap
from .sparse_arrays import BaseSparseNDArray, RowSparseNDArray, sparse_array, takes_rows, with_stype, zeros
from .sparse_numbers import Rows

__all__ = ["by_prop"]


def by_prop(op: Op, attrs: PropUse, values: list[NDArray], ctx: Context) -> tuple[Any, list[NDArray]]:
    """Compute a user's operator: make its ``CustomOp`` for this call, and run it on arrays of the storage types that
    its Prop asks for."""
    count = len(attrs.arguments)
    inputs, aux, is_train = values[:count], values[count:], MODE.training
    in_stypes, out_stypes, _ = attrs.stypes("infer_storage_type", _stypes(inputs))
    _, shapes = attrs.infer_shapes([value.shape for value in values], [None] * len(attrs.outputs))
    _, dtypes = attrs.infer_dtypes([np.dtype(value.dtype) for value in values], [None] * len(attrs.outputs))
    custom_op = attrs.make(ctx, *operator_specs(inputs))
    attrs.check(custom_op)
    ins = [_cast_storage(value, stype) for value, stype in zip(inputs, in_stypes)]
    outs = [_empty(stype, shape, dtype, ctx) for stype, shape, dtype in zip(out_stypes, shapes, dtypes)]
    run_forward(attrs, custom_op, is_train, ["write"] * len(outs), ins, [*outs], aux)

    def back(_: object, out_grads: Sequence[Any], needs: Sequence[bool], ctx: Context) -> list[Any]:
        tops = [sparse_array(g, ctx) if isinstance(g, Rows) else wrap(g, ctx) for g in out_grads]
        top_stypes, in_stypes, out_stypes, grad_stypes, _ = attrs.stypes(
            "infer_storage_type_backward", *map(_stypes, (written, ins, written, inputs, aux)))
        grads = [_empty(stype, value.shape, np.dtype(value.dtype), ctx) for stype, value in zip(grad_stypes, inputs)]
        tops, read, shown_outs = [[_cast_storage(value, stype) for value, stype in zip(*group)] for group in (
            (tops, top_stypes), (ins, in_stypes), (written, out_stypes))]
        run_backward(attrs, custom_op, attrs.op.traits.traced, ["write" if need else "null" for need in needs[:count]],
                     tops, read, shown_outs, [*grads], aux)
        return [None if not need else grad._stored if isinstance(grad, RowSparseNDArray) and takes_rows(entry)
                else grad._data for need, grad, entry in zip(needs, grads, entries)] + [None] * len(aux)

    if recording := MODE.recording:
        written = [out.detach() for out in outs]
        entries = [value._entry for value in inputs]
        taped = tape.TapedFunction(op.name, _no_second, len(outs), grad_reads=False, raw_gradient=back)
        tape.record(taped, {}, values, [], outs, None, recording)
    return types.SimpleNamespace(visible=len(outs)), outs


def _stypes(values: Sequence[NDArray]) -> list[str]:
    return [value.stype for value in values]


def _cast_storage(value: NDArray, stype: str) -> NDArray:
    """An input in the storage type that an operator expects. The operator must not write to it: the caller would not
    see the change."""
    converted = with_stype(stype, value)
    return converted if isinstance(converted, BaseSparseNDArray) else wrap(converted._data, converted._ctx, True)


def _empty(stype: str, shape: Shape | None, dtype: np.dtype | None, ctx: Context) -> NDArray:
    """An array for a result: zeros, densely or with nothing stored."""
    assert shape is not None and dtype is not None
    return zeros(stype, shape, ctx, dtype)


def _no_second(*_: object) -> NoReturn:
    raise NotDifferentiableError("gradients of users' operators with sparse arrays are not recorded: convert the "
                                 "arrays with tostype('default')")
