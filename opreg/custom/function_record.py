"""The record of a function that ``define`` made an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from ..core import arguments as calls
from ..core.launch import Call, FirstRun
from ..core.mode import MODE
from ..core.op import F
from ..core.registry import ops
from ..core.rules import SAME_TYPE, Rule
from ..core.spec import Shape, Spec, as_dtype, known, show
from ..core.value import Value
from ..errors import ArgumentError, DTypeError, NotDifferentiableError, ShapeError, Where, note
from .dry_run import dry_run, spec_of
from .gradient import Attrs, UserOp, shown
from .signature import GIVEN, Signature, read

__all__ = ["FunctionRecord"]

V = TypeVar("V", bound=Value)

_FLOAT32 = np.dtype(np.float32)


class FunctionRecord(UserOp):
    """The record of a function: called with NDArrays, returning one, or several as a tuple."""

    def __init__(self, name: str | None, function: Callable, outputs: Sequence[str], auxiliary: Sequence[str],
                 types: str | None, loss: bool, traced: bool):
        signature = read(function, auxiliary)
        name = name or getattr(function, "__name__", None)
        if name is None or name == "<lambda>":
            raise ArgumentError(f"define: {function!r} has no name: give it one, as in define(function, name='twice')")
        super().__init__(f"custom.{name}", signature.schema, _arguments(signature), outputs=_outputs(name, outputs),
                         auxiliary=signature.auxiliary, types=types or SAME_TYPE.text, loss=loss,
                         variadic="num_args" if signature.many else None,
                         input_names=signature.inputs + signature.auxiliary, doc=inspect.getdoc(function) or "")
        self.op_type, self.traced = name, traced
        self.many = signature.many or self.many
        self.where = (Where((function.__code__.co_filename, function.__code__.co_firstlineno))
                      if hasattr(function, "__code__") else self.where)
        self._function = Rule(function)
        self._given = [each for each in GIVEN if each in self._function.names]
        self._typed = types is not None
        self.mode = "is_train" in self._given
        self.kernel("function", bound=True)(self._bind)
        self.__name__ = self.__qualname__ = name
        self.__module__, self.__doc__, self.__wrapped__ = function.__module__, self.doc, function
        self.__signature__ = calls.signature(self)

    if TYPE_CHECKING:  # gives what it is given: arrays for arrays, symbols for symbols

        @overload
        def __call__(self, value: V, /, *values: Any, **keywords: Any) -> V: ...

        @overload
        def __call__(self, *values: Any, **keywords: Any) -> Any: ...

        def __call__(self, *values: Any, **keywords: Any) -> Any: ...

    def types(self, function: F) -> F:
        self._typed = True
        return super().types(function)

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        attrs: Any = Attrs(super().complete(given))
        attrs.memo, attrs.runs = {}, {}
        return attrs

    def compute(self, arrays: Sequence[Any], attrs: Any, ctx: Any, is_train: bool) -> list[Any]:
        """What the function makes of NDArrays: an NDArray, array or number for each output."""
        keywords = self._function.select(attrs)
        for name in self._given:
            keywords[name] = ctx if name == "ctx" else is_train
        try:
            found = self._function.function(*arrays, **keywords)
        except Exception as error:
            names = self.arguments(attrs) + self.auxiliary(attrs)
            given = ", ".join(f"{name} {show(a.shape)} {np.dtype(a.dtype)}" for name, a in zip(names, arrays))
            note(error, f"in operator {self.op_type!r}, given {given or 'nothing'}")
            raise
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        names = self.outputs(attrs)
        if len(found) != len(names):
            raise ArgumentError(f"operator {self.op_type!r} returned {len(found)} values, expected {len(names)} "
                                f"({', '.join(names)})")
        for name, each in zip(names, found):
            if each is None:
                raise ArgumentError(f"operator {self.op_type!r} returned None for {name!r}, expected an array")
            if hasattr(each, "_data"):  # an array of ours
                continue
            try:
                as_dtype(getattr(each, "dtype", float))
            except DTypeError as error:
                note(error, f"operator {self.op_type!r} returned it for {name!r}")
                raise
        return found

    # --------------------------------------------------------------------------------------------- inference

    def _dry_run(self, specs: Sequence[Spec], attrs: Any) -> list[Spec]:
        """Shapes and dtypes of the results, found once for a use."""
        key = tuple(specs)
        if key not in attrs.memo:
            attrs.memo[key] = dry_run(
                self.op_type, lambda arrays, ctx: self.compute(arrays, attrs, ctx, MODE.training), specs)
        return attrs.memo[key]

    def shapes_from_data(self, call: Call) -> list[Shape]:
        found = self._from_data(call.attrs, *[call.wrap(each, call.ctx, True) for each in call.ins])  # type: ignore
        return found if isinstance(found, list) else [found]

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        if self._shapes is not None or self._all_shapes is not None:
            return super().infer_shapes(ins, outs, attrs)
        if self.data_dependent:
            return ins, outs
        ins = self._filled(ins, outs, attrs)
        if not all(known(shape) for shape in ins):
            return ins, outs
        attrs.shapes = list(ins)
        specs = self._dry_run([Spec(shape, _FLOAT32) for shape in ins], attrs)
        return ins, [self._agree(name, old, spec.shape) for name, old, spec in zip(self.outputs(attrs), outs, specs)]

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        shapes = getattr(attrs, "shapes", None)
        if self._typed or shapes is None or any(dtype is None for dtype in ins):
            return super().infer_dtypes(ins, outs, attrs)
        return ins, [spec.dtype for spec in self._dry_run(list(map(Spec, shapes, ins)), attrs)]

    # --------------------------------------------------------------------------------------------- running

    def _bind(self, call: Call) -> list[Callable]:
        attrs, count = call.attrs, len(self.arguments(call.attrs))
        ins = [call.wrap(data, call.ctx, i < count) for i, data in enumerate(call.ins)]

        def compute() -> list[Any]:
            return self.compute(ins, attrs, call.ctx, call.is_train)

        def store(found: list[Any]) -> None:
            for out, expected, result in zip(call.outs, call.specs, found):
                if getattr(result, "shape", ()) != expected.shape:
                    raise self._misfit(call, found)
                if out is not None:
                    out[...] = getattr(result, "_data", result)

        def run() -> None:
            store(compute())

        def first() -> list[Callable]:
            found = compute()
            for name, expected, got in zip(self.outputs(attrs), call.specs, map(spec_of, found)):
                if got.dtype.kind != expected.dtype.kind:  # type: ignore[union-attr]
                    raise DTypeError(f"operator {self.op_type!r}, {name}: expected dtype {expected.dtype}, the "
                                     f"function returned {got.dtype}; say so with types=, as in 'T->{got.dtype}'")
            store(found)
            return [run]

        return [FirstRun(first)]

    def _misfit(self, call: Call, found: Sequence[Any]) -> ShapeError:
        name, expected, got = next(each for each in zip(self.outputs(call.attrs), call.specs, map(spec_of, found))
                                   if each[1].shape != each[2].shape)
        return ShapeError(f"operator {self.op_type!r}, {name}: expected shape {show(expected.shape)}, the function "
                          f"returned {show(got.shape)}")

    # --------------------------------------------------------------------------------------------- gradient

    @property
    def differentiable(self) -> bool:
        return self.traced or self._gradient is not None

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        if not self.differentiable:
            raise NotDifferentiableError(f"operator {self.op_type!r} has no gradient: add one, written in operators, "
                                         f"with @{self.op_type}.grad (registered at {self.where})")
        if self.loss(attrs):  # nothing need arrive at it
            g = ([ops.ones_like(out) if each is None else each for each, out in zip(g, outs)]
                 if isinstance(g, (tuple, list)) else ops.ones_like(outs[0]) if g is None else g)
        if self._gradient is None:
            return self.derive(g, ins, attrs, needs)
        return self.by_rule(g, ins, outs, attrs, needs, is_train)

    def ruled(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool) -> list[Any]:
        g, ins, outs = shown(g), list(map(shown, ins)), list(map(shown, outs))
        found = super().differentiate(g, ins, outs, attrs, needs, is_train)
        return self.own(found, ins, attrs, f"operator {self.op_type!r}: the gradient")


def _arguments(signature: Signature) -> Any:
    """Names of the inputs; a function of how many there are where that is not fixed."""
    fixed, many = signature.inputs, signature.many
    if many is None:
        return fixed

    def names(*, num_args: int) -> list[str]:
        return [*fixed, *[f"{many}{i}" for i in range(num_args - len(fixed))]]

    return names


def _outputs(name: str, outputs: Any) -> tuple[str, ...]:
    if (isinstance(outputs, str) or not outputs or not all(isinstance(each, str) for each in outputs)
            or len(set(outputs)) < len(outputs)):
        raise ArgumentError(f"define: {name}: outputs={outputs!r}: expected a list of different names")
    return tuple(outputs)
