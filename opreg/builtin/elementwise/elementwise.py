"""Element-wise operators: each is an expression, with an optional derivative.

The expression gives two kernels: the reference computes with the array module's functions, the other runs the same
instructions into planned memory, one tile at a time. The gradient is another element-wise operator,
``_backward_<name>``, whose inputs are only the arrays that it reads, the output rather than the input where either will
do. Its own gradient is derived from its expression and lowered to operators, so gradients of any order exist without
further code. The operators themselves are rows in ``unary`` and ``binary``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...backends import expressions as kernels_of_backends
from ...core.attrs import Few, Schema
from ...core.cache import Recent, cached
from ...core.declarations import ZERO
from ...core.keys import cached_by_value, exact
from ...core.launch import Call, Rank
from ...core.op import Op
from ...core.registry import declare, ops, register
from ...core.rules import Attrs, Rule
from ...core.spec import Shape, broadcast, is_numpy_float, show, unify
from ...core.value import Value
from ...elementwise.expression import Expression, OpenExpressions, accepts_expression, derive, trace
from ...elementwise.settings import Answers
from ...elementwise.tiling import steps
from ...errors import ShapeError
from ...typing import Array, ArrayModule
from ..outputs import like_inputs
from ..samples import alike

__all__ = ["elementwise", "attach", "expressions_of"]

Traced = Callable[[Attrs], Expression]
#: The largest number of traces that one operator keeps for different answers about its settings.
_TRACES = 4
Part = Callable[[Value, Sequence[Value], Value, Attrs], Value | None]


# -------------------------------------------------------------------------------------------- expressions


def expressions_of(function: Callable, arity: int) -> Traced:
    """Expressions of a function of terms, by attributes; the latest thousand are cached."""
    names = Rule(function).names
    if not names:
        fixed = _fixed(function, arity)
        return lambda attrs: fixed

    @cached_by_value(1024)
    def at(*values: object) -> Expression:
        return trace(functools.partial(function, **dict(zip(names, values))), arity)

    return lambda attrs: at(*[attrs[name] for name in names])


def open_expressions(function: Callable, derivative: Callable | None, differentiable: bool
                     ) -> Callable[[Attrs], tuple[OpenExpressions, list[float]] | None]:
    """The expressions that different floats share, of an operator of one input, by attributes. A float that is new in
    each step then needs no new trace."""
    forward_rule, slope_rule = Rule(function), None if derivative is None else Rule(derivative)
    names = list(dict.fromkeys([*forward_rule.names, *([] if slope_rule is None else slope_rule.names)]))
    known = Recent(64)  # lists of expressions, by the other attributes

    def trace_open(values: Sequence[Any], numbers: Sequence[float]) -> OpenExpressions:
        answers = Answers(numbers)
        settings = iter(answers.settings)
        attrs = {name: next(settings) if value.__class__ is float else value for name, value in zip(names, values)}
        forward = trace(functools.partial(function, **forward_rule.select(attrs)), 1)
        if slope_rule is None:
            slope = derive(forward, 0, output=True)
        else:
            slope = trace(functools.partial(slope_rule.function, **slope_rule.select(attrs)), 3)
        used = slope.used
        narrow = Expression([slope.inputs[i] for i in used], slope.term)  # type: ignore[arg-type]  # it was traced
        return OpenExpressions(answers, forward, narrow if differentiable else None, used)

    def find(attrs: Attrs) -> tuple[OpenExpressions, list[float]] | None:
        values = [attrs[name] for name in names]
        numbers = [value for value in values if value.__class__ is float]
        if not numbers:
            return None
        others = None if len(numbers) == len(values) else exact([v for v in values if v.__class__ is not float])
        traces: list[OpenExpressions] | None = known[others]
        if traces is None:
            traces = []
            known.keep(others, traces)
        try:
            for each in traces:
                if each.answers.hold(numbers):
                    return each, numbers
            if len(traces) < _TRACES:
                made = trace_open(values, numbers)
                if made.answers.common and made.forward.code:
                    traces.append(made)
                    return made, numbers
        except (ArithmeticError, TypeError):  # the trace with floats raises a clearer error, or needs their values
            pass
        return None

    return find


#: The expression of a function without attributes, and a derivative: once for all forms of an operator.
_fixed, _slope = cached(1024)(trace), cached(4096)(functools.partial(derive, output=True))


def _derivative(expression: Traced, wrt: int) -> Traced:
    """The derivative with respect to one input, an expression of ``g``, the inputs and the output."""
    return lambda attrs: _slope(expression(attrs), wrt)


def _drop_unread_inputs(expression: Traced, used: tuple[int, ...]) -> Traced:
    """The same expression, reduced to the inputs that it reads."""
    return lambda attrs: _narrow(expression(attrs), used)


@cached(4096)
def _narrow(expression: Expression, used: tuple[int, ...]) -> Expression:
    assert expression.term is not None
    return Expression([expression.inputs[i] for i in used], expression.term)


# ------------------------------------------------------------------------------------------------ kernels


def _accepts(call: Call) -> str | None:
    for array in (*call.outs, *call.ins):
        if array is not None and not is_numpy_float(array.dtype):
            return f"dtype {array.dtype}: the instructions compute floating dtypes"
    return None


@cached(256)
def _read(expression: Expression, is_read: tuple[bool, ...]) -> Expression:
    """The expression, reduced to the results that are read."""
    return Expression.of(expression.arity, expression.code, list(itertools.compress(expression.results, is_read)))


def attach(op: Op, expression: Traced, finite: bool = False, broadcasts: bool = False,
           on_integers: Callable[..., Callable] | None = None) -> Callable[[Call], list[Callable[[], object]]]:
    """Give an operator an expression and its two kernels; returns the one that writes. With ``finite``, an integer
    result is zero where the value is not finite; ``on_integers`` is as in ``elementwise``."""
    op.rules.expression = expression
    alike(op, broadcasts)

    @functools.partial(op.in_parts, takes_out=False)  # no body: it evaluates the expression
    def elementwise_in_parts(xp: ArrayModule, *arrays: Array, **attrs: Any) -> Callable[..., Array]:
        formula, dtype = expression(attrs), arrays[0].dtype
        if on_integers is not None and dtype.kind in "iub":
            return on_integers(xp, *arrays, **attrs)
        one_dtype = xp is np and all(array.dtype == dtype for array in arrays)
        return (formula.integer_function(dtype) if one_dtype else None) or functools.partial(evaluate, xp, formula)

    def evaluate(xp: ArrayModule, formula: Expression, *arrays: Array) -> Array:
        result = formula(xp, *arrays)
        if finite and is_numpy_float(result.dtype) and arrays[0].dtype.kind in "iub":
            result = xp.where(xp.isfinite(result), result, 0.0)
        return result

    def accepts(formula: Expression, call: Call) -> str | None:
        call.details = None
        if len(call.outs) == 1 and call.outs[0] is not None and not finite:
            call.details = formula.on_integers(call.xp, call.ins, call.outs[0])
        return _accepts(call) if call.details is None else None

    @op.kernel("ufuncs", bound=True, accepts=accepts_expression(expression, accepts), rank=Rank.OPERATOR)
    def elementwise_ufuncs(call: Call) -> list[Callable]:
        formula, outs = expression(call.attrs), call.outs
        if outs[0] is not None and outs[0].dtype.kind in "iu":
            return [call.details]
        if any(out is None for out in outs):
            formula = _read(formula, tuple([out is not None for out in outs]))
            outs = [out for out in outs if out is not None]
        return steps(formula, call.xp, call.ins, outs, call.scratch)

    kernels_of_backends.attach(op, expression, elementwise_ufuncs)
    return elementwise_ufuncs


# --------------------------------------------------------------------------------------------- the record


def elementwise(function: Callable, *, name: str, arguments: Sequence[str], schema: Schema | None = None,
                aliases: Sequence[str] = (), derivatives: Sequence[Callable | None] | None = None,
                broadcasts: bool = False, on_integers: Callable[..., Callable] | None = None, doc: str = "") -> Op:
    """Register an element-wise operator.

    Parameters
    ----------
    function : callable
        A function of terms, one for each input; its keyword-only parameters are attributes.
    name : str
        Name of the operator.
    arguments : sequence of str
        Names of the inputs.
    schema : Schema
        Attributes, if the function does not name them all.
    aliases : sequence of str
        Further names of the operator.
    derivatives : sequence of callable or None
        For each input a function of terms ``f(g, *inputs, y)``; derived from the expression where None.
    broadcasts : bool
        Whether inputs broadcast or have one shape.
    on_integers : function
        ``on_integers(xp, *arrays, **attrs)`` returns the function of arrays that computes integers and booleans like
        these, where the expression does not.
    doc : str
        Its docstring, a sentence.

    Returns
    -------
    Op
        The operator.
    """
    expression = expressions_of(function, len(arguments))
    op = Op(name, schema or Schema.of(function), arguments, inplace=range(len(arguments)),
            doc=doc or inspect.getdoc(function) or "")
    _declare_shapes(op, broadcasts)
    attach(op, expression, broadcasts=broadcasts, on_integers=on_integers)
    written = derivatives or [None] * len(arguments)
    slopes = [_derivative(expression, i) if derivative is None else expressions_of(derivative, len(arguments) + 2)
              for i, derivative in enumerate(written)]
    ends = [""] if len(arguments) == 1 else [f"_{argument}" for argument in arguments]
    parts = [_backward(op, slope, f"_backward_{_stem(name)}{end}", broadcasts)
             for slope, end in zip(slopes, ends)]
    _differentiate(op, parts, broadcasts)
    if len(arguments) == 1 and any(rule is not None and Rule(rule).names for rule in (function, *written)):
        op.rules.open_expressions = open_expressions(function, written[0], op.rules.grad is not ZERO)
    return register(op, *aliases)


def _stem(name: str) -> str:
    return name.removeprefix("_").removeprefix("elemwise_")


def _declare_shapes(op: Op, broadcasts: bool) -> None:
    """Declare the shape rule; an operator of one input needs none."""
    if broadcasts:
        op.infer(broadcast)
        return
    if len(op.signature.arguments({})) == 1:
        return
    wide = f"broadcast_{_stem(op.name)}"

    @op.fill
    def same(ins: list, outs: list) -> list[Shape | None]:
        common: Shape | None = None
        for shape in (*ins, *outs):
            try:
                common = unify(common, shape)
            except ShapeError:
                raise ShapeError(f"expected equal shapes, got {' and '.join(map(show, ins))}; "
                                 f"{wide} broadcasts") from None
        return [common] * len(ins)

    op.infer(like_inputs(0))


def _sample(schema: Schema) -> dict[str, Any]:
    """Attributes of typical values: the inputs that an expression reads do not depend on them."""
    return {field.name: 0.37 if field.kind is float else field.default for field in schema.fields}


def _backward(op: Op, slope: Traced, name: str, broadcasts: bool) -> Part | None:
    """The computation of a gradient: a new operator, or an existing one; None if the gradient is zero."""
    sample = slope(_sample(op.signature.schema))
    if isinstance(sample.result, float):
        return None
    if len(sample.code) < 2:
        return lambda g, ins, y, attrs: slope(attrs).lower(g, *ins, y, broadcasts=broadcasts)
    used = sample.used
    arguments = op.signature.arguments({})
    expression = _drop_unread_inputs(slope, tuple(used))
    backward = Op(name, op.signature.schema, [("g", *arguments, "output")[i] for i in used], inplace=range(len(used)),
                  doc=f"The gradient of ``{op.name}``" + (f" with respect to ``{name.rpartition('_')[2]}``."
                                                          if len(arguments) > 1 else "."))
    if broadcasts:
        backward.infer(broadcast)
    attach(backward, expression, finite=True, broadcasts=broadcasts)
    parts = [_gradient_part(_derivative(expression, i), broadcasts) for i in range(len(used))]
    _differentiate(backward, parts, broadcasts)
    register(backward)

    def apply(g: Value, ins: Sequence[Value], y: Value, attrs: Attrs) -> Value:
        values = (g, *ins, y)
        return backward.current(*[values[i] for i in used], **attrs)

    return apply


def _gradient_part(slope: Traced, broadcasts: bool) -> Part:
    def apply(g: Value, ins: Sequence[Value], y: Value, attrs: Attrs) -> Value | None:
        expression = slope(attrs)
        if isinstance(expression.result, float):
            return None
        return expression.lower(g, *ins, y, broadcasts=broadcasts)

    return apply


def _differentiate(op: Op, parts: Sequence[Part | None], broadcasts: bool) -> None:
    """Declare a gradient with a part for each input."""
    if all(part is None for part in parts):
        op.grad(ZERO)
        return

    @op.grad
    def elementwise_grad(g: Value, ins: Sequence[Value], outs: Sequence[Value], *, needs: Sequence[bool], **attrs: Any
                         ) -> list[Value | None]:
        gradients = [part(g, ins, outs[0], attrs) if need and part is not None else None
                     for part, need in zip(parts, needs)]
        if broadcasts:
            return [gradient if gradient is None or gradient._shape_is(x) else ops._reduce_like(gradient, x)
                    for gradient, x in zip(gradients, ins)]
        return gradients


# --------------------------------------------------------------------------------------------- any number


@declare(aliases=("ElementWiseSum",), inplace=range(64))
def add_n(*args, num_args: Few = 1):
    """The sum of arrays of one shape."""


@cached(64)
def _sum(count: int) -> Expression:
    return trace(lambda *terms: functools.reduce(lambda left, right: left + right, terms), count)


attach(add_n, lambda attrs: _sum(attrs["num_args"]))


@add_n.grad
def add_n_grad(g, ins, outs):
    return (g,) * len(ins)
