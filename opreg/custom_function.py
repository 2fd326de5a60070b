"""The record of a function that ``define`` made an operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .attrs import Schema
from .custom_gradient import Attrs, UserOp
from .errors import ArgumentError, DTypeError, NotDifferentiableError, ShapeError, Where, note
from .op import Call, FirstRun, Rule
from .spec import Shape, Spec, as_dtype, known, show

__all__ = ["FunctionRecord"]

#: Makes an NDArray of a NumPy array. The package of arrays stands above this one and sets it.
host_array: Callable[[Any], Any] = np.asarray


class FunctionRecord(UserOp):
    """The record of a function: called with NDArrays, returning one, or several as a tuple."""

    def __init__(self, name: str, function: Callable, traced: bool = False, **options: Any):
        positional = [p.name for p in inspect.signature(function).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        super().__init__(f"custom.{name}", Schema.of(function), positional, input_names=positional,
                         doc=inspect.getdoc(function) or "", **options)
        self.op_type, self.traced = name, traced
        self._dry = "types" not in options
        self.where = (Where((function.__code__.co_filename, function.__code__.co_firstlineno))
                      if hasattr(function, "__code__") else self.where)
        self._called = Rule(function)
        self.kernel("function", bound=True)(self._bind)

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        attrs: Any = Attrs(super().complete(given))
        attrs.memo = {}
        return attrs

    def compute(self, arrays: Sequence[Any], attrs: Any) -> list[Any]:
        """What the function makes of NDArrays: an NDArray, array or number for each output."""
        try:
            found = self._called(attrs, *arrays)
        except Exception as error:
            given = ", ".join(f"{name} {show(a.shape)} {np.dtype(a.dtype)}"
                              for name, a in zip(self.input_names, arrays))
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
            try:
                as_dtype(getattr(each, "dtype", float))
            except DTypeError as error:
                note(error, f"operator {self.op_type!r} returned it for {name!r}")
                raise
        return found

    def _dry_run(self, shapes: Sequence[Shape], dtypes: Sequence[np.dtype], attrs: Any) -> list[Spec]:
        """Shapes and dtypes of the results, from one run on zeros."""
        key = tuple(shapes), tuple(dtypes)
        if key not in attrs.memo:
            zeros = [host_array(np.zeros(shape, dtype)) for shape, dtype in zip(shapes, dtypes)]
            try:
                found = self.compute(zeros, attrs)
            except Exception as error:
                note(error, f"in the dry run on zeros that finds the shapes of operator {self.op_type!r}; declare them "
                            f"with @{self.op_type}.infer to do without")
                raise
            attrs.memo[key] = [_spec(each) for each in found]
        return attrs.memo[key]

    @property
    def differentiable(self) -> bool:
        return self.traced or self._gradient is not None

    def shapes_from_data(self, call: Call) -> list[Shape]:
        found = self._from_data(call.attrs, *[call.wrap(each, call.ctx, True) for each in call.ins])  # type: ignore
        return found if isinstance(found, list) else [found]

    def infer_shapes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        if self._shapes is not None:
            return super().infer_shapes(ins, outs, attrs)
        if self.data_dependent:
            return ins, outs
        if not all(known(shape) for shape in ins):
            return ins, outs
        attrs.shapes = list(ins)
        specs = self._dry_run(ins, [np.dtype(np.float32)] * len(ins), attrs)
        return ins, [self._agree(name, old, spec.shape) for name, old, spec in zip(self.outputs(attrs), outs, specs)]

    def infer_dtypes(self, ins: Any, outs: Any, attrs: Any) -> Any:
        shapes = getattr(attrs, "shapes", None)
        if not self._dry or shapes is None or any(dtype is None for dtype in ins):
            return super().infer_dtypes(ins, outs, attrs)
        return ins, [spec.dtype for spec in self._dry_run(shapes, ins, attrs)]

    def _bind(self, call: Call) -> list[Callable]:
        ins = [call.wrap(data, call.ctx, True) for data in call.ins]
        attrs, outs = call.attrs, call.outs

        def run() -> None:
            self._store(outs, self.compute(ins, attrs))

        def first() -> list[Callable]:
            found = self.compute(ins, attrs)
            for name, expected, got in zip(self.outputs(attrs), call.specs, map(_spec, found)):
                if got.shape != expected.shape:
                    raise ShapeError(f"operator {self.op_type!r}, {name}: expected shape {show(expected.shape)}, the "
                                     f"function returned {show(got.shape)}")
                if np.dtype(got.dtype).kind != np.dtype(expected.dtype).kind:
                    raise DTypeError(f"operator {self.op_type!r}, {name}: expected dtype {expected.dtype}, the "
                                     f"function returned {got.dtype}")
            self._store(outs, found)
            return [run]

        return [FirstRun(first)]

    def _store(self, outs: Sequence[Any], found: Sequence[Any]) -> None:
        for out, result in zip(outs, found):
            if out is not None:
                out[...] = getattr(result, "_data", result)

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        if self._gradient is None and self.traced:
            return self.derive(g, ins, attrs, needs)
        if self._gradient is None:
            raise NotDifferentiableError(f"operator {self.op_type!r} has no gradient: add one, written in operators, "
                                         f"with @{self.op_type}.grad (registered at {self.where})")
        return super().differentiate(g, ins, outs, attrs, needs, is_train)


def _spec(value: Any) -> Spec:
    return Spec(tuple(getattr(value, "shape", ())), np.dtype(getattr(value, "dtype", type(value))))
