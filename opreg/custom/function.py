"""Operators made from a function by ``define``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import arguments as calls
from ..core.dispatch import call
from ..core.invalidation import EDITION, renew
from ..core.launch import Call, FirstRun, Step
from ..core.mode import MODE
from ..core.op import Op, combined_shape, filled_shapes
from ..core.registry import ops
from ..core.rules import SAME_TYPE, AttrsRule, Dtypes, Rule, TypeRule, as_list, counted
from ..core.signature import Names
from ..core.spec import ANY, Spec, as_dtype, common_dims, is_known, show
from ..core.states import INITIALIZER
from ..core.value import Value
from ..errors import ArgumentError, DTypeError, NotDifferentiableError, ShapeError, Where, note
from .dry_run import dry_run, spec_of
from .first_run import note_given
from .gradient import READS, OutGrads, OutsideValues, Use, UsersSchema, by_rule, derive
from .signature import GIVEN, Signature, check_rule, read, read_types

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..ndarray.ndarray import NDArray
    from ..typing import Array

__all__ = ["DefinedFunction", "FunctionUse", "SpecsChanged", "of_function"]

_FLOAT32, _INT32 = np.dtype(np.float32), np.dtype(np.int32)
#: Lengths in place of an unknown one. Each divides the next, since functions divide axes; they are far apart, since
#: functions cut axes to some length.
_LENGTHS = 12, 60, 1020


class DefinedFunction(UsersSchema):
    """The schema of an operator that is a function: its keyword-only parameters are the attributes.

    Attributes
    ----------
    rule : Rule
        The function.
    given : list of str
        Keyword-only parameters that are no attributes, ``ctx`` and ``is_train``.
    types : str or None
        The declared dtypes, as text.
    by_types : TypeRule or None
        The dtype rule of that text, states included.
    by_run, shapes_by_run : Rule
        The dtype rule and the shape rule where none are declared.
    """

    shapes_by_run: Rule | None

    def __init__(self, function: Callable, signature: Signature, types: str | None, by_types: TypeRule | None):
        super().__init__(signature.schema.fields)
        self.rule = Rule(function)
        self.given = [name for name in GIVEN if name in self.rule.names]
        self.types, self.by_types = types, by_types
        self.by_run = AttrsRule(_equal_dtypes)
        self._auxiliary = signature.auxiliary
        self._defaults = (*(getattr(function, "__kwdefaults__", None) or {}).values(),)

    @functools.cached_property
    def function_reads(self) -> OutsideValues:
        """Reads of the function, on which the result of a dry run depends."""
        return READS.function([self.rule.function])

    @property
    def written(self) -> Any:
        """The function."""
        return self.rule.function

    @property
    def rule_code(self) -> Any:
        """The declared gradient rule."""
        rule = self.op.rules.grad
        return rule.function if isinstance(rule, Rule) else None

    def follow_defaults(self) -> None:
        """Read the defaults of the attributes again if a program has changed them."""
        given = getattr(self.rule.function, "__kwdefaults__", None) or {}
        if len(given) == len(self._defaults) and all(map(operator.is_, given.values(), self._defaults)):
            return
        self._defaults = tuple(given.values())
        super().__init__(read(self.rule.function, self._auxiliary).schema.fields)
        renew(self.op)

    def complete(self, keywords: Mapping[str, object]) -> FunctionUse:
        """Typed attributes, with caches of their own."""
        self.follow_defaults()
        attributes = super().complete(keywords)
        use = FunctionUse(attributes, attributes.lasting)
        use.defined, use.op, use.memo, use.runs = self, self.op, {}, {}
        return use


def _guesses(dtypes: Dtypes) -> list[list[np.dtype]]:
    """Dtypes to try where some are unknown and a run on float32 fails: int32 for all of these but the first, for each
    alone, and for all."""
    unknown = [i for i, dtype in enumerate(dtypes) if dtype is None]
    integers = dict.fromkeys([tuple(unknown[1:]), *[(i,) for i in unknown], tuple(unknown)])
    integers.pop((), None)
    return [[dtype or (_INT32 if i in chosen else _FLOAT32) for i, dtype in enumerate(dtypes)] for chosen in integers]


def _equal_dtypes(use: FunctionUse, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Infer dtypes if none are declared and shapes for a dry run are missing: all dtypes are equal, unless known ones
    differ."""
    return SAME_TYPE(ins, outs, use) if len({*ins} - {None}) < 2 else (ins, outs)


class FunctionUse(Use):
    """The attributes of one use of an operator that is a function.

    Attributes
    ----------
    defined : DefinedFunction
        The schema.
    """

    defined: DefinedFunction

    def compute(self, arrays: Sequence[NDArray], ctx: Context, is_train: bool) -> list[Any]:
        """Call the function with NDArrays. It returns an NDArray, another array or a scalar for each output."""
        rule, op = self.defined.rule, self.op
        declared = self._declared(arrays)
        keywords = rule.select(self)
        for name in self.defined.given:
            keywords[name] = ctx if name == "ctx" else is_train
        try:
            returned = rule.function(*op.signature.in_all_places(self, arrays), **keywords)
        except Exception as error:
            names = op.signature.inputs(self)
            shown = ", ".join(f"{name} {show(a.shape)} {np.dtype(a.dtype)}" for name, a in zip(names, arrays))
            note_given(error, f"operator {op.op_type!r}", shown or "nothing")
            raise
        results = as_list(returned)
        names = op.signature.outputs(self)
        if len(results) != len(names):
            raise self._count_error(returned, names)
        for i, (name, result) in enumerate(zip(names, results)):
            if result is None:
                raise ArgumentError(f"operator {op.op_type!r} returned None for {name!r}, expected an array")
            if not (hasattr(result, "_data") or hasattr(result, "dtype")) and np.asarray(result).dtype.kind in "OSU":
                raise ArgumentError(f"operator {op.op_type!r} returned {type(result).__name__} for {name!r}, expected "
                                    "an array or a number")
            if declared is not None:
                results[i] = self._check_declared_dtype(name, result, declared[i])
            if hasattr(result, "_data"):  # an NDArray
                continue
            try:
                as_dtype(getattr(result, "dtype", float))
            except DTypeError as error:
                note(error, f"operator {op.op_type!r} returned this object for {name!r}")
                raise
        return results

    def _count_error(self, returned: Any, names: Sequence[str]) -> ArgumentError:
        several = isinstance(returned, (list, tuple))
        expected = f"{len(names)} ({', '.join(names)})"
        if not several:
            expected = f"a list of {len(names)} values ({', '.join(names)})"
        elif len(names) == 1:
            expected += ". A list or tuple has one value for each output; define(outputs=[…]) names them"
        return ArgumentError(f"operator {self.op.op_type!r} returned {counted(returned)}, expected {expected}")

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """A key that stays equal until a value changes that the function, or its gradient rule, has read."""
        version = self.defined.reads().version() if self.lasting else None
        return None if version is None else (self, version)

    def outside(self) -> OutsideValues:
        """Reads of the function, where it is traced, and of its gradient rule."""
        return self.defined.reads(not self.calls_rule)

    # ---------------------------------------------------------------------------------------------- dtypes

    @property
    def declares(self) -> bool:
        """Whether dtypes were declared."""
        return self.op.rules.types is not self.defined.by_run

    def _declared(self, arrays: Sequence[NDArray]) -> Dtypes | None:
        """The declared dtypes of the results for these arrays; None without a declaration."""
        op = self.op
        if not self.declares:
            return None
        dtypes, rule = [as_dtype(array.dtype) for array in arrays], op.rules.types
        key = rule, *dtypes
        found: Dtypes | None = self.memo.get(key)
        if found is None:
            found = op.infer_dtypes([*dtypes], [None] * len(op.signature.outputs(self)), self)[1]
            # the rule is a declared text; a function of the user's may read a value that changes
            if isinstance(rule, AttrsRule):
                self.memo[key] = found
        return found

    def _check_declared_dtype(self, name: str, result: Any, dtype: np.dtype | None) -> Any:
        """The result, after a check of its declared dtype. A Python scalar is converted to it."""
        if dtype is None:
            return result
        if type(result) in (bool, int, float) and not (type(result) is float and dtype.kind in "iub"):
            return np.asarray(result, dtype)
        found = as_dtype(getattr(result, "dtype", type(result)))
        if found != dtype:
            by_text = isinstance(self.op.rules.types, AttrsRule)
            says = f"types={self.defined.types!r} say" if by_text else "its dtype rule says"
            raise DTypeError(f"operator {self.op.op_type!r}: output {name!r} is {found}, {says} {dtype}: return it as "
                             f"{dtype}, or declare its dtype")
        return result

    def declared_dtypes(self, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
        """Infer dtypes by the declaration."""
        rule: Any = self.defined.by_types
        signature = self.op.signature
        placed = list(signature.in_all_places(self, ins))
        try:
            found, results = rule(placed, outs, self)
            return list(signature.present_values(self, found)), results
        except DTypeError:
            names = signature.input_names if signature.optional else signature.inputs(self)
            raise self._conflict(rule, names, [*placed, *outs]) from None

    def _conflict(self, rule: TypeRule, inputs: Sequence[str], dtypes: Dtypes) -> DTypeError:
        """The error for dtypes that contradict the declaration. It names the first input or output with a wrong one."""
        op, count, names = self.op, len(inputs), (*inputs, *self.op.signature.outputs(self))

        def following(*indices: int) -> Dtypes:
            shown = [dtype if i in indices else None for i, dtype in enumerate(dtypes)]
            ins, outs = rule(shown[:count], shown[count:], self)
            return ins + outs

        for i, dtype in enumerate(dtypes):
            expected = following(*range(i))[i]
            if dtype is not None and expected is not None and expected != dtype:
                break
        alone = following()[i]
        like = "" if alone is not None else next((f", as {names[j]!r} is" for j in range(i)
                                                  if following(j)[i] is not None), "")
        what = "input" if i < count else "output"
        return DTypeError(f"operator {op.op_type!r}: {what} {names[i]!r} is {dtype}, types={self.defined.types!r} say "
                          f"{expected}{like}; .astype('{expected}') converts it")

    # --------------------------------------------------------------------------------------------- inference

    @property
    def inferred_by_run(self) -> bool:
        """See ``Use.inferred_by_run``."""
        return self.op.rules.shapes is self.defined.shapes_by_run

    def _dry_run(self, specs: Sequence[Spec], traced: bool = False) -> list[Spec]:
        """Shapes and dtypes of the results by a dry run, cached for the use until a value or an operator changes that
        the function reads; not cached if such a value cannot be compared."""
        key, version = (traced, *specs), (self.defined.function_reads.version(), EDITION[0])
        if version[0] is None or key not in self.memo or self.memo[key][0] != version:
            self.memo[key] = version, dry_run(str(self.op.op_type), lambda arrays, ctx: self.compute(
                arrays, ctx, MODE.training), specs, traced)
        found: list[Spec] = self.memo[key][1]
        return found

    def infer_specs(self, ins: Sequence[Spec], outs: Sequence[Spec]) -> tuple[list[Spec], list[Spec]]:
        """Infer shapes and dtypes by the declared rules, and by a dry run where there are none."""
        op, rules, by_run = self.op, self.op.rules, self.inferred_by_run
        if self.declares or not by_run or rules.data_dependent:
            dtypes = op.infer_dtypes([spec.dtype for spec in ins], [spec.dtype for spec in outs], self)
            ins, outs = ([Spec(spec.shape, dtype) for spec, dtype in zip(*side)] for side in zip((ins, outs), dtypes))
        if not by_run:
            shapes = op.infer_shapes([spec.shape for spec in ins], [spec.shape for spec in outs], self)
            ins, outs = ([Spec(shape, spec.dtype) for spec, shape in zip(*side)] for side in zip((ins, outs), shapes))
        if not by_run or rules.data_dependent:
            return list(ins), list(outs)
        if rules.fill is not None:
            filled = filled_shapes(op, [spec.shape for spec in ins], [spec.shape for spec in outs], self)
            ins = [Spec(shape, spec.dtype) for spec, shape in zip(ins, filled)]
        typed: Sequence[Spec] = outs
        if all(is_known(spec.shape) for spec in ins):
            found = self._dry_run_specs(ins)
            if not self.declares and all(spec.dtype is not None for spec in ins):  # float64 equals None
                typed = found
        elif op.traits.traced and all(spec.shape is not None for spec in ins):
            found = self._partly_known(ins)
        else:
            found = [Spec()] * len(outs)
        return list(ins), [Spec(combined_shape(name, old.shape, new.shape), dtyped.dtype) for name, old, new, dtyped in
                           zip(op.signature.outputs(self), outs, found, typed)]

    def _partly_known(self, ins: Sequence[Spec]) -> list[Spec]:
        """Shapes of the results of a traced function, of inputs with unknown dimensions: a trace for each of several
        lengths in their place. Dimensions that differ between them are unknown, and if a trace fails, all shapes."""
        traced_shapes = []
        for length in _LENGTHS:
            specs = [Spec(tuple([length if dim is ANY else dim for dim in spec.shape or ()]), spec.dtype)
                     for spec in ins]
            try:
                traced_shapes.append([spec.shape or () for spec in self._dry_run_specs(specs, traced=True)])
            except Exception:
                return [Spec()] * len(self.op.signature.outputs(self))
        return [Spec(common_dims(shapes)) for shapes in zip(*traced_shapes)]

    def _dry_run_specs(self, specs: Sequence[Spec], traced: bool = False) -> list[Spec]:
        """Specs of the results by a dry run on float32 where a dtype is unknown, or on int32 if the function fails."""
        try:
            return self._dry_run([Spec(spec.shape, spec.dtype or _FLOAT32) for spec in specs], traced)
        except Exception:
            for guess in _guesses([spec.dtype for spec in specs]):
                with contextlib.suppress(Exception):
                    return self._dry_run([Spec(spec.shape, dtype) for spec, dtype in zip(specs, guess)], traced)
            raise


def of_function(name: str | None, function: Callable, outputs: Sequence[str],
                auxiliary: Sequence[str] | Mapping[str, Any], types: str | None, loss: bool, traced: bool,
                capturable: bool = False, cheap: bool = False) -> Op:
    """Make the operator of a function of NDArrays that returns one array, or several as a tuple."""
    signature = read(function, [*auxiliary] if isinstance(auxiliary, Mapping) else auxiliary)
    begins = _beginnings(getattr(function, "__name__", name), auxiliary)
    if name == "" or not isinstance(name, str | None):
        raise ArgumentError(f"define: expected a name, as in define(function, name='twice'), got {name!r}")
    name = name or getattr(function, "__name__", None)
    if name is None or name == "<lambda>":
        raise ArgumentError(f"define: {function!r} has no name: give it one, as in define(function, name='twice')")
    results = _outputs(name, outputs)
    by_types = None if types is None else TypeRule(read_types(
        f"define: {getattr(function, '__name__', name)}", types, signature, results))
    defined = DefinedFunction(function, signature, types, by_types)
    op = defined.op = Op(f"custom.{name}", defined, _arguments(signature), outputs=results,
                         auxiliary=signature.auxiliary,
                         types=defined.by_run if types is None else AttrsRule(FunctionUse.declared_dtypes), loss=loss,
                         variadic="num_args" if signature.many else None, mode=True,
                         input_names=signature.inputs + signature.auxiliary, op_type=name, traced=traced,
                         capturable=bool(capturable), cheap=bool(cheap), call=_call, differentiate=_gradients,
                         check_rule=check_rule, doc=inspect.getdoc(function) or "")
    op.signature.many, op.signature.tags = signature.many or op.signature.many, begins
    op.signature.optional = signature.optional
    if hasattr(function, "__code__"):
        op.where = Where((function.__code__.co_filename, function.__code__.co_firstlineno))
    types_rule = op.rules.types
    op.together(AttrsRule(FunctionUse.infer_specs))
    op.rules.types, defined.shapes_by_run = types_rule, op.rules.shapes
    op.kernel("function", bound=True)(_steps)
    op.__name__ = op.__qualname__ = name
    op.__module__, op.__doc__, op.__wrapped__ = function.__module__, op.doc, function  # type: ignore[attr-defined]
    op.__signature__ = calls.signature(op)  # type: ignore[attr-defined]
    return op


def _call(op: Op, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Apply the operator, with the defaults that its function has now."""
    op.signature.schema.follow_defaults()
    return call(op, args, keywords)


def _gradients(op: Op, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], use: FunctionUse,
               needs: Sequence[bool], is_train: bool) -> list[Value | None]:
    """Gradients of the inputs, by the user's rule, or by the derivative of a traced body."""
    has_rule = op.rules.grad is not None
    if not (has_rule or op.traits.traced):
        raise NotDifferentiableError(f"operator {op.op_type!r} has no gradient: add one, written in operators, "
                                     f"with @{op.op_type}.grad (registered at {op.where})")
    if op.loss(use):  # a loss may have no output gradient
        g = ([ops.ones_like(out) if top is None else top for top, out in zip(g, outs)]
             if isinstance(g, (tuple, list)) else ops.ones_like(outs[0]) if g is None else g)
    if has_rule:
        return by_rule(use.declared_gradient, use, g, ins, outs, needs, is_train)
    return derive(use, g, ins, needs)


def _steps(call: Call) -> list[Step]:
    """The step that calls the function."""
    use: Any = call.attrs
    op, count = use.op, len(use.op.signature.arguments(use))
    ins, backend = [call.wrap(data, call.ctx, i < count) for i, data in enumerate(call.ins)], call.ctx.backend

    def compute() -> list[Any]:
        return use.compute(ins, call.ctx, call.is_train)

    by_run = use.inferred_by_run and not (use.declares or op.rules.data_dependent)

    def store(results: list[Any]) -> None:
        for out, expected, result in zip(call.outs, call.specs, results):
            if getattr(result, "shape", ()) != expected.shape:
                raise _misfit(call, results)
            data = getattr(result, "_data", result)
            if by_run and spec_of(data).dtype != expected.dtype:
                raise _changed_dtype(call, results)
            if out is not None:
                if isinstance(data, np.ndarray) and not isinstance(out, np.ndarray):
                    data = backend.asarray(data, device=call.ctx.device_id)
                out[...] = data

    def run() -> None:
        store(compute())

    def first() -> list[Step]:
        results = compute()
        for name, expected, spec in zip(op.signature.outputs(use), call.specs, map(spec_of, results)):
            if not by_run and spec.dtype.kind != expected.dtype.kind:  # type: ignore[union-attr]
                raise DTypeError(f"operator {op.op_type!r}, {name}: expected dtype {expected.dtype}, the "
                                 f"function returned {spec.dtype}; declare it with types=, as in 'T->{spec.dtype}'")
        store(results)
        return [run]

    return [FirstRun(first)]


#: The beginning of the advice for a result whose spec a dry run has found.
_FOUND = ("a run on other numbers found the first. If the function reads or calls something else since the symbol was "
          "bound, bind it again; ")


class SpecsChanged(ShapeError, DTypeError):
    """A result has another shape or dtype than a dry run has found: a value that the function reads has changed, or
    they depend on the inputs' numbers."""


def _changed_dtype(call: Call, results: Sequence[object]) -> SpecsChanged:
    name, expected, spec = next(row for row in zip(call.op.signature.outputs(call.attrs), call.specs,
                                                   map(spec_of, results)) if row[1].dtype != row[2].dtype)
    return SpecsChanged(f"operator {call.op.op_type!r}, {name}: expected dtype {expected.dtype}, the function returned "
                        f"{spec.dtype}; {_FOUND}else declare it with types=")


def _misfit(call: Call, results: Sequence[object]) -> ShapeError:
    op, use = call.op, call.attrs
    name, expected, spec = next(row for row in zip(op.signature.outputs(call.attrs), call.specs, map(spec_of, results))
                                if row[1].shape != row[2].shape)
    why = f"its rule, @{op.op_type}.infer_from_data, says the first" if op.rules.data_dependent else \
        f"its shape rule, @{op.op_type}.infer, says the first" if op.rules.infer is not None \
        else (f"{_FOUND}if the shape depends on values, say how with @{op.op_type}.infer_from_data")
    error = SpecsChanged if use.inferred_by_run else ShapeError  # type: ignore[attr-defined]
    return error(f"operator {op.op_type!r}, {name}: expected shape {show(expected.shape)}, the function "
                 f"returned {show(spec.shape)}; {why}")


def _arguments(signature: Signature) -> Names:
    """The names of the inputs. For a variable number of inputs it is a function of this number, and for optional
    inputs a function of the inputs in a call."""
    fixed, many, optional = signature.inputs, signature.many, signature.optional
    if optional:
        return lambda *, given_inputs=(): [name for name in fixed if name not in optional or name in given_inputs]
    if many is None:
        return fixed

    def names(*, num_args: int) -> list[str]:
        return [*fixed, *[f"{many}{i}" for i in range(num_args - len(fixed))]]

    return names


def _beginnings(title: str | None, auxiliary: Sequence[str] | Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Tags with initializers for the variables of states."""
    tags = {}
    for name, value in auxiliary.items() if isinstance(auxiliary, Mapping) else ():
        if value is None:
            continue
        try:
            initializer = INITIALIZER.function(value)
            if not hasattr(initializer, "dumps"):
                raise ArgumentError(f"expected an initializer or its name, got {value!r}")
            tags[name] = {"__init__": INITIALIZER.function(initializer.dumps()).dumps()}
        except Exception as error:
            note(error, f"define: {title}: the state {name!r} begins with {value!r}")
            raise
    return tags


def _outputs(name: str, outputs: Any) -> tuple[str, ...]:
    if (isinstance(outputs, str) or not isinstance(outputs, Sequence) or not outputs
            or not all(isinstance(output, str) for output in outputs) or len(set(outputs)) < len(outputs)):
        raise ArgumentError(f"define: {name}: outputs={outputs!r}: expected a list of different names")
    return tuple(outputs)
