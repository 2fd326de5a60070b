"""Composed operators: built-in operators whose kernel is a body of other operators.

The body is traced in graphs, and in the first eager call of a kind, as that of a user's ``traced`` operator is. So it
has gradients of any order, fusion, and the kernels of every back end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.attrs import Attributes, Schema
from ..core.graph import Entry, Node
from ..core.invalidation import EDITION, keep, operator_cache
from ..core.launch import Call
from ..core.op import Op, combined_shape, filled_shapes, gradients_by_rule
from ..core.registry import declare
from ..core.rules import Attrs, AttrsRule, Rule, Shapes
from ..core.spec import ANY, Shape, Spec, common_dims, holds_any, is_known
from ..core.tracing import RuleTracer, SpecsAsked, TracedValue
from ..core.value import Value
from ..errors import ShapeError
from .gradient import OutGrads, Use, derive

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..typing import Array

__all__ = ["composed", "constant"]


class ComposedUse(Use):
    """Attributes of one use of a composed operator."""

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """The use itself, since a body reads no values that may change."""
        return self if self.lasting else None


class _ComposedSchema(Schema):
    """The attributes of a composed operator."""

    __slots__ = ("op",)
    op: Op

    def made(self, typed: dict[str, Any], lasting: bool) -> Attributes:
        use = ComposedUse(typed, lasting)
        use.op, use.memo = self.op, {}
        return use


def composed(function: Callable | None = None, /, *, like: Op | None = None, **options: Any) -> Any:
    """Declare an operator whose body is the function. It calls operators on values, and returns one value or a tuple.
    NumPy arrays that it makes, of shapes and attributes, are constants of the body.

    Shapes are inferred by tracing the body, also partly known ones: dimensions that the body reads may be ``ANY``, and
    so may be attributes that it computes of them. Arrays made of dimensions are a ``constant``. Dtypes are declared, as
    for other operators. The body may read both.

    Parameters
    ----------
    function : callable
        The body; see ``declare``, also for the options.
    like : Op, optional
        The operator whose attributes it has, if the function takes ``**attrs``.

    Examples
    --------
    >>> from opreg import nd
    >>> @composed(name="_example_swish")
    ... def swish(data, *, beta: float = 1.0):
    ...     "The data, where they are large."
    ...     return data * nd.sigmoid(data * beta)
    >>> x = nd.array([0.0, 100.0])
    >>> swish(x).asnumpy().tolist()
    [0.0, 100.0]
    """
    if function is None:
        return lambda function: composed(function, like=like, **options)
    op = declare(function, traced=True, differentiate=_gradients, **options)
    schema = (op if like is None else like).signature.schema.copied(_ComposedSchema)
    schema.op, op.signature.schema = op, schema
    rule = Rule(function)
    op.shapes(AttrsRule(lambda use, ins, outs: _shapes(op, rule, use, ins, outs)))

    @op.kernel("composed", bound=True)
    def body(call: Call) -> list[Callable[[], None]]:
        values = [call.wrap(data, call.ctx, True) for data in call.ins]

        def run() -> None:
            results = rule(call.attrs, *values)
            for out, result in zip(call.outs, results if isinstance(results, (tuple, list)) else [results]):
                if out is not None:
                    out[...] = getattr(result, "_data", result)

        return [run]

    return op


#: Lengths in place of an unknown one.
_SAMPLES = 60, 127


class OpenConstant:
    """A constant of a body of which only a shape with unknown dimensions and a dtype are known."""

    def __init__(self, shape: Shape, dtype: np.dtype):
        self.shape, self.dtype = shape, dtype


def constant(make: Callable[..., np.ndarray], *lengths: int) -> Any:
    """A constant of a body that depends on dimensions, which may be unknown while shapes are inferred.

    Parameters
    ----------
    make : callable
        The function of the lengths that returns the array.
    *lengths : int
        The lengths. If one is unknown, the result has only a shape and a dtype. The function is then called with two
        lengths in its place; dimensions that differ between the two results are unknown.

    Examples
    --------
    >>> constant(lambda n: 2 * np.arange(n), 3)
    array([0, 2, 4])
    >>> constant(lambda n: np.ones((2, n)), ANY).shape
    (2, ?)
    """
    if not holds_any(lengths):
        return make(*lengths)
    try:
        few, many = [make(*[sample if length is ANY else length for length in lengths]) for sample in _SAMPLES]
    except ShapeError:
        raise SpecsAsked from None
    shape: Any = common_dims([few.shape, many.shape])
    return OpenConstant(shape, few.dtype)


def _gradients(op: Op, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], use: Any, needs: Sequence[bool],
               is_train: bool) -> list[Value | None]:
    """The declared gradient rule, or else the derivative of the body."""
    if op.rules.grad is not None:
        return list(gradients_by_rule(op, g, ins, outs, use, needs, is_train))
    return derive(use, g, ins, needs)


# --------------------------------------------------------------------------------------------- shapes of a body


#: Shapes of outputs by operator, use and known shapes of inputs.
_SHAPES = operator_cache(4096, "shapes of composed operators")


class _ShapeTracer(RuleTracer):
    """Traces a body to infer shapes, in which dimensions may be unknown."""

    def value(self, entry: Entry) -> TracedValue:
        """The value of an entry."""
        return _ShapedValue(self, entry)

    def call(self, op: Op, values: Sequence[object], keywords: Attrs) -> list[TracedValue]:
        """Apply an operator to values and constants. Attributes may hold unknown dimensions."""
        entries = [self.entry(value) for value in values]
        open_attrs = {name: _freeze(value) for name, value in keywords.items() if holds_any(value)}
        if not open_attrs:
            return list(map(self.value, self.apply(op, entries, keywords)))
        checked = op.complete({**keywords, **{name: _fill_unknown(value) for name, value in open_attrs.items()}})
        attrs = op.signature.schema.made({**checked, **open_attrs}, False)
        node = self.add(op, attrs, entries, keywords)
        return [self.value((node, i)) for i in range(op.signature.visible(attrs))]

    def entry(self, value: object) -> Entry:
        """The entry of a value, or of a variable for a constant."""
        if isinstance(value, (np.ndarray, OpenConstant)):
            return self.variable("constant", Spec(value.shape, value.dtype))
        return value._entry  # type: ignore[attr-defined]

    def _note_failure(self, error: Exception, node: Node, ins: Sequence[Spec]) -> None:
        """Add no note to the error, since the caller names the composed operator."""


class _ShapedValue(TracedValue):
    """A value whose shape may be partly known, and whose dtype is float32 if it is unknown."""

    __slots__ = ()

    @property
    def shape(self) -> Shape:
        """The dimensions, some of which may be ``ANY``."""
        shape = self._tracer.spec(self._entry).shape
        if shape is None:
            raise SpecsAsked
        return shape

    @property
    def _dt(self) -> np.dtype:
        return self._tracer.spec(self._entry).dtype or np.dtype(np.float32)


def _fill_unknown(value: Any) -> Any:
    """An attribute with a one for each unknown dimension."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_fill_unknown, value))
    if isinstance(value, slice):
        return slice(*map(_fill_unknown, (value.start, value.stop, value.step)))
    return 1 if value is ANY else value


def _freeze(value: Any) -> Any:
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _shapes(op: Op, rule: Rule, use: Attributes, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Infer shapes of inputs and outputs by tracing a body, as far as possible."""
    ins = filled_shapes(op, ins, outs, use)
    if any(shape is None for shape in ins):
        return ins, outs
    lasting, edition = use.lasting and all(map(is_known, ins)), EDITION[0]
    key = (op, use, *ins)
    inferred = _SHAPES[key] if lasting else None
    if inferred is None:
        try:
            inferred = _shapes_of_rule(rule, use, ins)
        except SpecsAsked:
            return ins, outs
        except (TypeError, ValueError) as error:
            if isinstance(error, ShapeError) or all(map(is_known, ins)):
                raise
            return ins, outs  # the body computes with a dimension that is unknown so far
        if lasting:
            keep(_SHAPES, key, inferred, edition)
    outs = [combined_shape(name, old, new) for name, old, new in zip(op.signature.outputs(use), outs, inferred)]
    return ins if all(map(is_known, ins)) else filled_shapes(op, ins, outs, use), outs


def _shapes_of_rule(rule: Rule, use: Attributes, ins: Shapes) -> Shapes:
    tracer = _ShapeTracer()
    results = rule(use, *[tracer.value(tracer.variable(f"input{i}", Spec(shape))) for i, shape in enumerate(ins)])
    return [tracer.spec(tracer.entry(result)).shape
            for result in (results if isinstance(results, (tuple, list)) else [results])]
