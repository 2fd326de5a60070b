"""nd.*: the registry seen from arrays."""

from __future__ import annotations

import functools
from typing import Any, Callable

import numpy as np

from opreg.calls import ordered, split
from opreg.errors import ArgumentError, ShapeError, UnknownOperatorError, did_you_mean
from opreg.custom import custom as user_operator
from opreg.op import Op
from opreg.registry import find, names
from opreg.spec import show
from opreg.surface import Namespace, dressed

from .context import Context, current_context
from .ndarray import NDArray, _compute, raw

__all__ = ["surface", "invoke", "Custom", "linalg", "contrib", "image", "op", "custom", "sparse"]


def _is_array(value: Any) -> bool:
    return isinstance(value, (NDArray, np.ndarray))


def invoke(op: Op, args: Any, keywords: dict[str, Any]) -> Any:
    """Call an operator as users write it.

    ``out=`` stores results in existing arrays, ``ctx=`` says where an operator without inputs computes.
    """
    out, ctx = keywords.pop("out", None), keywords.pop("ctx", None)
    keywords.pop("name", None)
    inputs, given = split(op, args, keywords, _is_array)
    attrs = op.complete({key: value for key, value in given.items() if value is not None or key in op.schema})
    values = inputs if isinstance(inputs, list) else ordered(op, inputs, attrs)
    if ctx is None:
        ctx = next((value._ctx for value in values if isinstance(value, NDArray)), None) or current_context()
    elif not isinstance(ctx, Context):
        name, _, number = str(ctx).partition("(")
        ctx = Context(name, int(number.rstrip(")") or 0))
    if out is None:
        settled, outs = _compute(op, attrs, values, ctx)
        return outs[0] if settled.visible == 1 else outs[:settled.visible]
    return _into(op, attrs, values, ctx, out)


def Custom(*args: Any, op_type: str | None = None, **keywords: Any) -> Any:
    """Apply a user's operator, registered as ``op_type``.

    Inputs go by position or by the names its Prop lists; the other keywords are its attributes.
    """
    return invoke(user_operator(op_type), args, keywords)


def _into(op: Op, attrs: Any, values: list[Any], ctx: Context, out: Any) -> Any:
    targets = list(out) if isinstance(out, (list, tuple)) else [out]
    direct = None
    if len(targets) == 1 and len(op.kernels) == 1 and op.kernels[0].takes_out and op.visible(attrs) == 1:
        # The kernel may write there itself, unless that would overwrite an input it still reads.
        shared = [i for i, value in enumerate(values) if isinstance(value, NDArray)
                  and ctx.xp.may_share_memory(value._data, targets[0]._data)]
        if all(i in op.inplace for i in shared) and len(op.outputs(attrs)) == 1:
            arrays = [raw(value, ctx) for value in values]
            _, shapes = op.infer_shapes([a.shape for a in arrays], [None], attrs)
            _, dtypes = op.infer_dtypes([a.dtype for a in arrays], [None], attrs)
            if shapes[0] == targets[0].shape and dtypes[0] == targets[0]._data.dtype:
                direct = targets[0]._data
    settled, outs = _compute(op, attrs, values, ctx, direct)
    visible = outs[:settled.visible]
    if len(targets) != len(visible):
        raise ArgumentError(f"operator {op.name}: out= has {len(targets)} arrays, expected {len(visible)}")
    for target, result in zip(targets, visible):
        if target.shape != result.shape:
            raise ShapeError(f"operator {op.name}: out= has shape {show(target.shape)}, the result "
                             f"{show(result.shape)}")
        if result._data is not target._data:
            target._store(Ellipsis, result)
        target._entry = result._entry if result._entry is not None else target._entry
    return out


def _function(op: Op, name: str) -> Callable:
    def call(*args: Any, **keywords: Any) -> Any:
        return invoke(op, args, keywords)

    return dressed(call, op, name, "ndarray")


@functools.cache
def surface(name: str) -> Callable:
    """The function ``nd.<name>``.

    Raises
    ------
    UnknownOperatorError
        With the nearest names.
    """
    op = find(name) or find(f"_{name}")
    if op is None or op.name.startswith("custom."):
        raise UnknownOperatorError(f"nd has no operator {name!r}. {did_you_mean(name, names())}")
    return _function(op, name)


linalg = Namespace("nd.linalg", ("_linalg_", "linalg_"), _function)
contrib = Namespace("nd.contrib", ("_contrib_",), _function)
image = Namespace("nd.image", ("_image_",), _function)
custom = Namespace("nd.custom", ("custom.",), _function)
sparse = Namespace("nd.sparse", ("", "_"), _function)
op = Namespace("nd.op", ("", "_"), _function)
