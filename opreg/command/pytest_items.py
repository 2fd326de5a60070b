"""Operators of a module as tests of pytest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.core.op import Op
from opreg.core.registry import operators
from opreg.core.rules import Shapes
from opreg.core.spec import is_floating, is_known
from opreg.custom.prop import RegisteredProp
from opreg.errors import ArgumentError, OpError, did_you_mean
from opreg.testing.checking import examine

from .parsing import import_or_load

if TYPE_CHECKING:
    import pytest

__all__ = ["collect_operators"]

#: Name of the dict in a module with the inputs on which its operators are checked.
_INPUTS = "opreg_inputs"
#: Shape of inputs that are neither given nor inferred.
_SHAPE = (2, 3)


class Failed(Exception):
    """An operator failed a check."""


class Unknown(Exception):
    """The inputs of a check are not given and cannot be guessed."""


def collect_operators(session: pytest.Session, name: str) -> list[pytest.Item]:
    """A test for each operator that a module registers.

    Raises
    ------
    pytest.UsageError
        When there is no such module, or it registers no operator.
    """
    import pytest

    class Operators(pytest.Collector):
        """The operators of one module."""

        def collect(self) -> Iterable[pytest.Item]:
            return [Operator.from_parent(self, name=op_type) for op_type in registered_ops]

    class Operator(pytest.Item):
        """The check of one operator."""

        def runtest(self) -> None:
            try:
                check(registered_ops[self.name], inputs_by_name.get(self.name))
            except Unknown as why:
                pytest.skip(str(why))

        def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
            return str(excinfo.value) if isinstance(excinfo.value, Failed) else super().repr_failure(excinfo, style)

        def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
            filename, line = registered_ops[self.name].where or ("", 1)
            return filename, line - 1, f"operator {self.name}"

    try:
        registered_ops, inputs_by_name = registered(name)
    except (OpError, OSError) as error:
        raise pytest.UsageError(f"--opreg-check {name}: {error}") from None
    return list(Operators.from_parent(session, name=name, nodeid=name).collect())


def registered(name: str) -> tuple[dict[str, Op], Mapping[str, Sequence[Any]]]:
    """The operators that a module registers, by name, and the inputs for their checks.

    Raises
    ------
    ArgumentError
        When there is no such module, or it registers no operator.
    OSError
        When there is no such file.
    """
    module = import_or_load(name)
    by_name = {op.op_type: op for op in operators() if op.op_type is not None and _is_of(op, module)}
    if not by_name:
        raise ArgumentError("it registers no operators")
    inputs_by_name: Mapping[str, Sequence[Any]] = getattr(module, _INPUTS, {})
    for each in inputs_by_name:
        if each not in by_name:
            raise ArgumentError(f"{_INPUTS} names {each!r}, which is not registered there. "
                                f"{did_you_mean(each, by_name)}")
    return by_name, inputs_by_name


def _is_of(op: Op, module: ModuleType) -> bool:
    """Whether an operator is defined in a module, or in a module of a package."""
    schema = op.signature.schema
    place = schema.prop_class.__module__ if isinstance(schema, RegisteredProp) else op.__module__
    return f"{place}.".startswith(f"{module.__name__}.")


def check(op: Op, inputs_given: Sequence[Any] | None) -> None:
    """Check an operator on given inputs, which may end with a dict of attributes, or on random inputs.

    Raises
    ------
    Failed, Unknown
        With the report of the check; with the line to add to the module.
    """
    if inputs_given is not None:
        inputs, attrs = list(inputs_given), {}
        if inputs and isinstance(inputs[-1], Mapping):
            attrs = dict(inputs.pop())
        report = examine(op, inputs, attrs)
    else:
        try:
            report = examine(op, _guess_inputs(op), {})
        except Exception as error:  # the user's code got unsuitable random inputs
            raise Unknown(_line_to_add(op, str(error).partition("\n")[0])) from None
        if report["runs"].outcome == "failed":
            raise Unknown(_line_to_add(op, report["runs"].text))
    if not report.ok:
        raise Failed(str(report))


def _line_to_add(op: Op, why: str) -> str:
    """The line to add to the module if inputs cannot be guessed."""
    signature = op.signature
    needed = [field.name for field in signature.schema.fields if field.required and field.name != signature.variadic]
    words = [*(signature.input_names or ["x"]),
             *([f"{{{', '.join(f'{name!r}: …' for name in needed)}}}"] if needed else [])]
    return f"{why}. Say what it is checked on: {_INPUTS} = {{{op.op_type!r}: ({', '.join(words)})}}"


def _guess_inputs(op: Op) -> list[np.ndarray]:
    """Small random inputs, with shapes and dtypes inferred from the first one."""
    attrs = op.complete({op.signature.variadic: 2} if op.signature.variadic else {})
    names, outs = op.signature.inputs(attrs), len(op.signature.outputs(attrs))
    first: Shapes = [_SHAPE, *[None] * (len(names) - 1)]
    shapes, _ = op.infer_shapes(first[:len(names)], [None] * outs, attrs)
    dtypes, _ = op.infer_dtypes([np.dtype(np.float64), *[None] * (len(names) - 1)][:len(names)], [None] * outs, attrs)
    rng, arrays = np.random.default_rng(0), []
    for shape, dtype in zip(shapes, dtypes):
        size, kind = shape if is_known(shape) else _SHAPE, dtype or np.dtype(np.float64)
        numbers = rng.uniform(0.2, 1.2, size) * rng.choice([-1, 1], size) if is_floating(kind) else \
            rng.integers(0, 2, size)
        arrays.append(numbers.astype(kind))
    return arrays
