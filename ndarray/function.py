"""Functions of ``nd``, which apply the registered operators to arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from opreg.core.arguments import ordered_inputs, split
from opreg.core.dispatch import INVOKE
from opreg.core.invalidation import operator_cache
from opreg.core.keys import PLAIN, exact, has_fixed_key
from opreg.core.mode import MODE
from opreg.core.namespaces import CONTRIB, WRITTEN, Namespace, front, give_signature, user_function
from opreg.core.op import Op
from opreg.core.placeholder import is_tag
from opreg.core.random_functions import Sampling, zipfian
from opreg.core.registry import user_operator
from opreg.core.rules import Attrs, as_list
from opreg.core.spec import show
from opreg.core.update_functions import updates
from opreg.core.value import ARITHMETIC
from opreg.core.versions import must_record_write, wrote
from opreg.custom.prop import RegisteredProp
from opreg.custom.prop_use import CallCache
from opreg.errors import ArgumentError, AttrError, DTypeError, ShapeError

from . import changes, sparse_arrays, sparse_creation
from .arithmetic import leave_trace
from .computation import compute
from .context import Context, current_context
from .control_flow import cond, foreach, while_loop
from .ndarray import SURFACE, NDArray
from .sparse_rules import cast_storage

__all__ = ["surface", "invoke", "Custom", "linalg", "contrib", "image", "op", "custom", "sparse"]

#: Arrays that results are stored in: one, or a list with one for each result.
Out = TypeVar("Out", bound=NDArray | Sequence[NDArray])


def _is_array(value: object) -> bool:
    return isinstance(value, (NDArray, np.ndarray)) or hasattr(value, "_trace_call")


class _Slot(int):
    """The index of an array argument, in the place of the array while the form of a call is analysed."""


_FORMS = operator_cache(4096, "forms of eager calls")


def _prepare_by_form(op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The complete attributes of a call, and its inputs in order. Calls of the same form are analysed once."""
    if op.signature.per_instance:  # each call has its own attributes
        return _split_arguments(op, args, keywords)
    form: list[object] = [op, *keywords]
    arrays: list[NDArray] = []
    completed = None
    try:
        for value in (*args, *keywords.values()):
            if isinstance(value, NDArray):
                arrays.append(value)
                form.append(None)
            else:
                kind = value.__class__
                form.append((kind, value) if kind in PLAIN else exact(value))
        key = tuple(form)
        completed = _FORMS[key]
    except TypeError:  # an argument without a key, such as a NumPy array or a list of arrays
        key = None
    if key is None:
        listed = _tuples_for_arrays(op, keywords)
        return _prepare_by_form(op, args, listed) if listed else _split_arguments(op, args, keywords)
    if completed is None:
        inputs, attributes, slotted = _split_form(op, args, keywords)
        # The element of an array that is an attribute is the value, and may change.
        attributes.update((name, _number(op, name, arrays[attributes[name]])) for name in slotted)
        completed = _fill_in_order(op, inputs, attributes)
        signature = op.signature
        # A call with unknown keywords warns each time, so it is not cached.
        warns = not signature.schema.fields and not keywords.keys() <= set(signature.input_names)
        if not slotted and completed[0].lasting and not warns:
            _FORMS.keep(key, completed)
    attrs, order = completed
    return attrs, [arrays[i] for i in order]


def _tuples_for_arrays(op: Op, keywords: dict[str, Any]) -> dict[str, Any] | None:
    """The keywords, with NumPy arrays for attributes of a declared type converted to tuples; None if there are no such
    arrays."""
    converted = {name: tuple(value.tolist()) for name, value in keywords.items()
             if value.__class__ is np.ndarray and value.ndim == 1
             and name in op.signature.schema and op.signature.schema[name].kind is not Any}
    return {**keywords, **converted} if converted else None


def _prepare_by_prop(op: Any, args: Sequence[Any], keywords: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Prepares a call like ``_prepare_by_form``, for an operator that is a Prop. Each call has its own Prop; the rest
    is cached by the form of the call."""
    form: list[object] = [*keywords, None]
    arrays: list[NDArray] = []
    for value in (*args, *keywords.values()):
        if isinstance(value, NDArray):
            arrays.append(value)
            form.append(None)
        else:
            try:
                form.append(exact(value))
            except TypeError:
                return _split_arguments(op, args, keywords)
    key, registered = tuple(form), op.signature.schema
    cache = registered.calls[key]
    if cache is not None:
        attrs: Any = cache.shared()
        if attrs is None and not registered.follow_class():
            attrs = registered.make_use(cache.given, cache)
            if attrs.cache is cache:
                cache.share(attrs)
        if attrs is not None:
            if attrs.cache is cache:
                return attrs, [arrays[i] for i in cache.order]
            inputs, _ = split(op, args, keywords, _is_array)
            return attrs, ordered_inputs(op, inputs, attrs)
    attrs, values = _split_arguments(op, args, keywords)
    inputs, _, slotted = _split_form(op, args, keywords)
    if not slotted and not op.rules.data_dependent and all(
            has_fixed_key(value) for name, value in attrs.items() if name in keywords):
        attrs.cache = CallCache(attrs, ordered_inputs(op, inputs, attrs))
        registered.calls.keep(key, attrs.cache)
    return attrs, values


def _number(op: Op, name: str, value: NDArray) -> np.generic:
    if value.size != 1:
        raise AttrError(f"operator {op.name}: attribute {name}: expected {op.signature.schema[name].describes}, "
                        f"got an array of shape {show(value.shape)}")
    return value.asscalar()


def _split_arguments(op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> tuple[Any, list[Any]]:
    return _fill_in_order(op, *split(op, args, _without_tags(op, keywords), _is_array))


def _without_tags(op: Op, keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call without tags such as ``__layout__``, which only nodes have; a user's Prop may take them.
    """
    return {key: value for key, value in keywords.items() if op.op_type is not None or not is_tag(key)}


def _split_form(op: Op, args: Sequence[Any], keywords: dict[str, Any]
                ) -> tuple[dict[str, Any] | list[Any], dict[str, Any], list[str]]:
    """The inputs and attributes of a call, with the index of each array in its place, and the attributes that are
    arrays."""
    slots = map(_Slot, itertools.count())
    inputs, attributes = split(op, [next(slots) if isinstance(value, NDArray) else value for value in args],
                               {name: next(slots) if isinstance(value, NDArray) else value
                                for name, value in _without_tags(op, keywords).items()},
                               lambda value: isinstance(value, _Slot))
    return inputs, attributes, [name for name, value in attributes.items() if isinstance(value, _Slot)]


def _fill_in_order(op: Op, inputs: dict[str, Any] | list[Any], attributes: dict[str, Any]) -> tuple[Any, list[Any]]:
    attrs = op.complete({key: value for key, value in attributes.items()
                         if value is not None or key in op.signature.schema or op.signature.schema.open})
    return attrs, ordered_inputs(op, inputs, attrs)


def _place(values: Sequence[object]) -> Context:
    """The context of a call: that of the first array, or the current one."""
    for value in values:
        if isinstance(value, NDArray):
            return value._ctx
    return current_context()


@INVOKE.provide
def invoke(op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Call an operator with the arguments of a user's call.

    ``out=`` stores results in existing arrays, and ``ctx=`` is the device of an operator without inputs.
    """
    out = ctx = None
    if keywords:
        out, ctx = keywords.pop("out", None), keywords.pop("ctx", None)
        keywords.pop("name", None)
    prepare = _prepare_by_prop if op.signature.schema.__class__ is RegisteredProp else _prepare_by_form
    attrs, values = prepare(op, args, keywords)
    ctx = _place(values) if ctx is None else Context(ctx)
    if out is not None:
        return _call_into(op, attrs, values, ctx, out)
    if (tracer := MODE.tracer) is not None and tracer.takes(op, values):
        prepared, outs = tracer.trace_call(op, attrs, values)
    else:
        prepared, outs = compute(op, attrs, values, ctx, None, None if op.op_type is None else _kind(values))
    return outs[0] if prepared.visible == 1 else outs[:prepared.visible]


def _kind(values: Sequence[Any]) -> type[NDArray] | None:
    """The class of the results of a user's operator: tensors if inputs are tensors, so that Cells can call it."""
    for value in values:
        kind = getattr(value, "_results", None)
        if kind is not None:
            return kind
    return None


def Custom(*args: Any, op_type: str | None = None, **keywords: Any) -> NDArray:
    """Apply a user's operator, registered as ``op_type``.

    Inputs are passed by position, or by the names that its Prop lists. Other keywords are its attributes.
    """
    return invoke(user_operator(op_type), args, keywords)


def _call_into(op: Op, attrs: Attrs, values: list[Any], ctx: Context, out: Out) -> Out:
    """Call an operator and store its results in existing arrays."""
    targets: list[Any] = as_list(out)
    if MODE.tracer is not None:
        leave_trace((*values, *targets))
    for target in targets:
        if not isinstance(target, NDArray):
            raise ArgumentError(f"operator {op.name}: out= must be an NDArray, got {type(target).__name__}")
        target.check_writable()
    recording = MODE.__dict__["current"]().recording
    if recording and any(getattr(value, "_entry", None) is not None for value in values):
        # copies of inputs that the result overwrites, since the tape holds the inputs
        values = changes.without_overlap(values, targets)
    place = targets[0] if len(targets) == 1 and not (recording or targets[0]._sparse) else None
    prepared, outs = compute(op, attrs, values, ctx, None if place is None else place._data)
    # the kernel has written directly into the target
    if place is not None and len(outs) == 1 and outs[0]._data is place._data:
        if must_record_write(targets[0], 1):
            wrote(targets[0]._data)
        return out
    visible = outs[:prepared.visible]
    if len(targets) != len(visible):
        raise ArgumentError(f"operator {op.name}: out= has {len(targets)} arrays, expected {len(visible)}")
    for target, result in zip(targets, visible):
        if target.shape != result.shape:
            raise ShapeError(f"operator {op.name}: out= has shape {show(target.shape)}, the result "
                             f"{show(result.shape)}")
        if values and target._data.dtype != result._data.dtype:
            raise DTypeError(f"operator {op.name}: out= has dtype {target._data.dtype}, the result "
                             f"{result._data.dtype}")
    for target, result in zip(targets, visible):
        if recording or target._entry is not None:
            changes.assign(target, Ellipsis, result, True)
        else:
            target._store(Ellipsis, result)
    return out


def _function(op: Op, name: str) -> Callable[..., Any]:
    def dress(function: Callable[..., Any], op: Op) -> Callable[..., Any]:
        takes = op.signature.variadic or op.signature.per_instance or op.signature.input_names
        return give_signature(function, op, name, "opreg.ndarray", ("out", "name") if takes else ("ctx", "out", "name"))

    return user_function(invoke, op, dress)


surface = SURFACE.provide(front("nd", _function))


def _arithmetic_by_shape() -> dict[str, Callable[..., Any]]:
    """Arithmetic functions that keep the storage type of two arrays of the same shape; broadcasting operators do
    not."""
    def method(name: str) -> Callable[..., Any]:
        def compute(lhs: Any, rhs: Any) -> Any:
            if isinstance(lhs, NDArray) and isinstance(rhs, NDArray) and rhs.stype != "default":
                return rhs._binary(ARITHMETIC[name][0], lhs, True)
            return WRITTEN[name](lhs, rhs)

        compute.__name__, compute.__doc__ = name, WRITTEN[name].__doc__
        return compute

    return {name: method(name) for name in ("add", "subtract", "multiply", "divide")}


linalg = Namespace("nd.linalg", ("_linalg_", "linalg_"), _function)
contrib = Namespace("nd.contrib", ("_contrib_",), _function)
contrib.extend(foreach=foreach, while_loop=while_loop, cond=cond, rand_zipfian=zipfian(Sampling(surface, (1,))),
               **CONTRIB, **updates(surface))
image = Namespace("nd.image", ("_image_",), _function)
custom = Namespace("nd.custom", ("custom.",), _function)
sparse = Namespace("nd.sparse", ("_sparse_", "", "_"), _function)
sparse.extend(array=sparse_creation.sparse_array, cast_storage=cast_storage, csr_matrix=sparse_creation.csr_matrix,
              empty=sparse_arrays.empty, row_sparse_array=sparse_creation.row_sparse_array, zeros=sparse_arrays.zeros,
              BaseSparseNDArray=sparse_arrays.BaseSparseNDArray, CSRNDArray=sparse_arrays.CSRNDArray, NDArray=NDArray,
              RowSparseNDArray=sparse_arrays.RowSparseNDArray, **_arithmetic_by_shape())
op = Namespace("nd.op", ("", "_"), _function)
op.extend(Custom=Custom)
