"""Operators that are a function, made by ``define``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import arguments as calls
from ..core.attrs import Schema
from ..core.dispatch import call
from ..core.launch import Call, FirstRun, Step
from ..core.mode import MODE
from ..core.op import Names, Op, agreed
from ..core.registry import ops
from ..core.rules import SAME_TYPE, AttrsRule, Dtypes, Rule, Shapes
from ..core.spec import Spec, as_dtype, known, show
from ..core.value import Value
from ..errors import ArgumentError, DTypeError, NotDifferentiableError, ShapeError, Where, note
from .dry_run import dry_run, spec_of
from .first_run import note_given
from .gradient import Arriving, Use, by_rule, derive, own, shown
from .signature import GIVEN, Signature, read

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..ndarray.ndarray import NDArray

__all__ = ["DefinedFunction", "FunctionUse", "of_function"]

_FLOAT32 = np.dtype(np.float32)


class DefinedFunction(Schema):
    """The attributes of an operator that is a function: its keyword-only parameters.

    Attributes
    ----------
    op : Op
        The operator.
    rule : Rule
        The function.
    given : list of str
        What it is given that is no attribute.
    """

    op: Op

    def __init__(self, function: Callable, signature: Signature):
        super().__init__(signature.schema.fields)
        self.rule = Rule(function)
        self.given = [name for name in GIVEN if name in self.rule.names]

    def complete(self, given: Mapping[str, object]) -> FunctionUse:
        """Typed attributes, and what is settled for them."""
        attributes = super().complete(given)
        use = FunctionUse(attributes, attributes.lasting)
        use.defined, use.op, use.memo, use.runs = self, self.op, {}, {}
        return use


class FunctionUse(Use):
    """Attributes of one use of an operator that is a function.

    Attributes
    ----------
    defined : DefinedFunction
        What was defined.
    shapes : list of Shape, or None
        Those of the inputs, once they are known.
    """

    defined: DefinedFunction
    shapes: Shapes | None = None

    def compute(self, arrays: Sequence[NDArray], ctx: Context, is_train: bool) -> list[Any]:
        """What the function makes of NDArrays: an NDArray, array or number for each output."""
        rule, op = self.defined.rule, self.op
        keywords = rule.select(self)
        for name in self.defined.given:
            keywords[name] = ctx if name == "ctx" else is_train
        try:
            returned = rule.function(*arrays, **keywords)
        except Exception as error:
            names = op.arguments(self) + op.auxiliary(self)
            shown = ", ".join(f"{name} {show(a.shape)} {np.dtype(a.dtype)}" for name, a in zip(names, arrays))
            note_given(error, f"operator {op.op_type!r}", shown or "nothing")
            raise
        results = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        names = op.outputs(self)
        if len(results) != len(names):
            raise ArgumentError(f"operator {op.op_type!r} returned {len(results)} values, expected {len(names)} "
                                f"({', '.join(names)})")
        for name, result in zip(names, results):
            if result is None:
                raise ArgumentError(f"operator {op.op_type!r} returned None for {name!r}, expected an array")
            if hasattr(result, "_data"):  # an array of ours
                continue
            try:
                as_dtype(getattr(result, "dtype", float))
            except DTypeError as error:
                note(error, f"operator {op.op_type!r} returned it for {name!r}")
                raise
        return results

    # --------------------------------------------------------------------------------------------- inference

    def _dry_run(self, specs: Sequence[Spec]) -> list[Spec]:
        """Shapes and dtypes of the results, found once for a use."""
        key = tuple(specs)
        if key not in self.memo:
            self.memo[key] = dry_run(str(self.op.op_type),
                                     lambda arrays, ctx: self.compute(arrays, ctx, MODE.training), specs)
        return self.memo[key]

    def infer_shapes(self, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
        """Shapes from a run on other numbers."""
        op = self.op
        if op.data_dependent:
            return ins, outs
        ins = op.filled(ins, outs, self)
        if not all(known(shape) for shape in ins):
            return ins, outs
        self.shapes = list(ins)
        specs = self._dry_run([Spec(shape, _FLOAT32) for shape in ins])
        return ins, [agreed(name, old, spec.shape) for name, old, spec in zip(op.outputs(self), outs, specs)]

    def infer_dtypes(self, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        """Dtypes from a run on other numbers, where shapes came from one; else all are the same."""
        if self.shapes is None or any(dtype is None for dtype in ins):
            return SAME_TYPE(ins, outs, self)
        return ins, [spec.dtype for spec in self._dry_run(list(map(Spec, self.shapes, ins)))]

    # --------------------------------------------------------------------------------------------- gradient

    def gradient(self, g: Arriving, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool], is_train: bool
                 ) -> list[Value | None]:
        """What the user's rule gives."""
        g, ins, outs = shown(g), list(map(shown, ins)), list(map(shown, outs))
        gradients = self.op.by_rule(g, ins, outs, self, needs, is_train)
        return own(self.op.arguments(self), gradients, ins, f"operator {self.op.op_type!r}: the gradient")


def of_function(name: str | None, function: Callable, outputs: Sequence[str], auxiliary: Sequence[str],
                types: str | None, loss: bool, traced: bool, capturable: bool = False) -> Op:
    """The operator that a function is: called with NDArrays, returning one, or several as a tuple."""
    signature = read(function, auxiliary)
    name = name or getattr(function, "__name__", None)
    if name is None or name == "<lambda>":
        raise ArgumentError(f"define: {function!r} has no name: give it one, as in define(function, name='twice')")
    defined = DefinedFunction(function, signature)
    op = defined.op = Op(f"custom.{name}", defined, _arguments(signature), outputs=_outputs(name, outputs),
                         auxiliary=signature.auxiliary, types=types or AttrsRule(FunctionUse.infer_dtypes), loss=loss,
                         variadic="num_args" if signature.many else None, mode=True,
                         input_names=signature.inputs + signature.auxiliary, op_type=name, traced=traced,
                         capturable=bool(capturable), call=call,
                         differentiate=_gradients, doc=inspect.getdoc(function) or "")
    op.many = signature.many or op.many
    if hasattr(function, "__code__"):
        op.where = Where((function.__code__.co_filename, function.__code__.co_firstlineno))
    op.shapes(AttrsRule(FunctionUse.infer_shapes))
    op.kernel("function", bound=True)(_steps)
    op.__name__ = op.__qualname__ = name
    op.__module__, op.__doc__, op.__wrapped__ = function.__module__, op.doc, function  # type: ignore[attr-defined]
    op.__signature__ = calls.signature(op)  # type: ignore[attr-defined]
    return op


def _gradients(op: Op, g: Arriving, ins: Sequence[Value], outs: Sequence[Value], use: FunctionUse,
               needs: Sequence[bool], is_train: bool) -> list[Value | None]:
    """Gradients of the inputs, by the user's rule, or from what a body that is followed does."""
    ruled = op.has_grad
    if not (ruled or op.traced):
        raise NotDifferentiableError(f"operator {op.op_type!r} has no gradient: add one, written in operators, "
                                     f"with @{op.op_type}.grad (registered at {op.where})")
    if op.loss(use):  # nothing need arrive at it
        g = ([ops.ones_like(out) if top is None else top for top, out in zip(g, outs)]
             if isinstance(g, (tuple, list)) else ops.ones_like(outs[0]) if g is None else g)
    return by_rule(use.gradient, use, g, ins, outs, needs, is_train) if ruled else derive(use, g, ins, needs)


def _steps(call: Call) -> list[Step]:
    """The step that calls the function."""
    use: Any = call.attrs
    op, count = use.op, len(use.op.arguments(use))
    ins = [call.wrap(data, call.ctx, i < count) for i, data in enumerate(call.ins)]

    def compute() -> list[Any]:
        return use.compute(ins, call.ctx, call.is_train)

    def store(results: list[Any]) -> None:
        for out, expected, result in zip(call.outs, call.specs, results):
            if getattr(result, "shape", ()) != expected.shape:
                raise _misfit(call, results)
            if out is not None:
                out[...] = getattr(result, "_data", result)

    def run() -> None:
        store(compute())

    def first() -> list[Step]:
        results = compute()
        for name, expected, spec in zip(op.outputs(use), call.specs, map(spec_of, results)):
            if spec.dtype.kind != expected.dtype.kind:  # type: ignore[union-attr]
                raise DTypeError(f"operator {op.op_type!r}, {name}: expected dtype {expected.dtype}, the "
                                 f"function returned {spec.dtype}; say so with types=, as in 'T->{spec.dtype}'")
        store(results)
        return [run]

    return [FirstRun(first)]


def _misfit(call: Call, results: Sequence[object]) -> ShapeError:
    op = call.op
    name, expected, spec = next(row for row in zip(op.outputs(call.attrs), call.specs, map(spec_of, results))
                                if row[1].shape != row[2].shape)
    return ShapeError(f"operator {op.op_type!r}, {name}: expected shape {show(expected.shape)}, the function "
                      f"returned {show(spec.shape)}")


def _arguments(signature: Signature) -> Names:
    """Names of the inputs; a function of how many there are where that is not fixed."""
    fixed, many = signature.inputs, signature.many
    if many is None:
        return fixed

    def names(*, num_args: int) -> list[str]:
        return [*fixed, *[f"{many}{i}" for i in range(num_args - len(fixed))]]

    return names


def _outputs(name: str, outputs: Sequence[str]) -> tuple[str, ...]:
    if (isinstance(outputs, str) or not outputs or not all(isinstance(output, str) for output in outputs)
            or len(set(outputs)) < len(outputs)):
        raise ArgumentError(f"define: {name}: outputs={outputs!r}: expected a list of different names")
    return tuple(outputs)
