"""Attributes of users' operators, and their gradients, which are operators themselves.

The body of a ``traced`` operator depends only on its arguments. In a graph it is called once, with traced values, and
the recorded operators replace the user's operator. So it needs no gradient rule: its gradient is an operator of the
same kind, whose body is the derivative of the first body.

A gradient rule that reads elements, for instance in NumPy, becomes an operator as well, which runs Python.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ..core.attrs import AS_GIVEN, Attributes, Schema
from ..core.comparisons import Check
from ..core.gradient import fit_gradient
from ..core.launch import Call
from ..core.mode import MODE
from ..core.op import Op, gradients_by_rule
from ..core.rules import AttrsRule
from ..core.slots import Slot
from ..core.spec import Spec
from ..core.tracing import NeedsNumbers, RuleTracer, TracedValue
from ..core.value import Value
from ..errors import ArgumentError, NotDifferentiableError, OpError

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..typing import Array

__all__ = ["Use", "UsersSchema", "GradientUse", "by_rule", "derive", "check_gradients", "read_only", "OutGrads",
           "COMPUTED", "READS"]

T = TypeVar("T")

#: Output gradients of an operator: one value or several, None for an output without a gradient.
OutGrads: TypeAlias = Value | Sequence[Value | None] | None

#: Makes the function that computes the derivative of a body on the arrays of a call.
COMPUTED = Slot("bodies")
#: Makes a `BodyReads` of the functions and classes that are traced together.
READS = Slot("bodies")


class OutsideValues(Protocol):
    """Outside values that users' code reads while a graph is built."""

    def version(self) -> object:
        """An object that is replaced when one of the values changes; None if not all of them can be compared."""

    def check(self) -> Check | None:
        """A function that returns the name of a value that has changed since this call, if any; None if no value can
        change."""


class UsersSchema(Schema):
    """The schema of a user's operator.

    Attributes
    ----------
    op : Op
        The operator.
    """

    op: Op
    _reads: tuple[list[Any], OutsideValues] | None = None

    @property
    def written(self) -> Any:
        """The function or the class that the user has written."""
        raise NotImplementedError

    @property
    def rule_code(self) -> Any:
        """The function or method that is the user's gradient rule; None if there is none."""
        raise NotImplementedError

    def traced_code(self, with_rule: bool = True) -> list[Any]:
        """Functions and classes that are traced when the operator, or its gradient, becomes a part of a graph."""
        return [*([self.written] if self.op.traits.traced else []),
                *([self.rule_code] if with_rule and self.rule_code is not None else [])]

    def reads(self, with_rule: bool = True) -> OutsideValues:
        """Reads of the traced code. They are determined anew when this is other code."""
        code = self.traced_code(with_rule)
        if self._reads is None or self._reads[0] != code:
            self._reads = code, READS.function(code)
        return self._reads[1]


class Use(Attributes):
    """The attributes of one use of a user's operator.

    Attributes
    ----------
    op : Op
        The operator.
    memo : dict
        Values that an eager forward stores for its backward.
    runs : dict
        Prepared eager calls of a function.
    derived : bool
        Whether the operator is the derivative of a body.
    calls_rule : bool
        Whether graphs call the gradient rule in each run, since it has changed a value that it reads, such as a
        counter. A trace would keep the first value.
    """

    op: Op
    memo: dict
    runs: dict
    derived = calls_rule = False

    @functools.cached_property
    def gradients(self) -> dict[tuple[bool, ...], GradientUse]:
        """Attributes of the derivative of the body, by the arguments whose gradient is requested."""
        return {}

    @property
    def has_rule(self) -> bool:
        """Whether there is a user's gradient rule."""
        return self.op.rules.grad is not None

    @property
    def inferred_by_run(self) -> bool:
        """Whether shapes are found by a dry run, since no rule is declared."""
        return False

    def named_rule(self, rule: str) -> str:
        """A rule that its author may write, in the form of its kind."""
        return f"@{self.op.op_type}.{rule}"

    def declared_gradient(self, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
                          is_train: bool) -> list[Value | None]:
        """Call the gradient rule that the user declared by ``@op.grad``; one gradient for each input."""
        g, ins, outs = read_only(g), list(map(read_only, ins)), list(map(read_only, outs))
        signature = self.op.signature
        gradients = signature.present_values(self, gradients_by_rule(
            self.op, g, signature.in_all_places(self, ins), outs, self, signature.in_all_places(self, needs), is_train))
        title = f"operator {self.op.op_type!r}: the gradient"
        return check_gradients(self.op.signature.arguments(self), gradients, ins, title)

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """A key that stays equal as long as tracing the body for such arrays gives the same result; None if unknown.
        """
        return None

    def outside(self) -> OutsideValues | None:
        """The outside values that the body reads while a graph is built; None if they are unknown."""
        return None


def read_only(value: Any) -> Any:
    """Values, also in lists, as read-only arrays for users' code."""
    if isinstance(value, (list, tuple)):
        return type(value)([read_only(part) for part in value])
    return value.shown() if isinstance(value, Value) else value


def check_gradients(names: Sequence[str], gradients: Iterable[Any], ins: Sequence[Any], title: str
                    ) -> list[Value | None]:
    """The gradients that a user's rule returned for named arguments, with checked shapes: one for each input, or None.

    Raises
    ------
    ArgumentError, ShapeError
        If a gradient does not fit. The error names the input.
    """
    results: list[Value | None] = []
    for name, g, like in zip(names, gradients, ins):
        if isinstance(g, numbers.Real) and g == 0:  # 0 means no gradient
            g = None
        if g is not None:
            what = f"{title} of input {name!r}"
            g = fit_gradient(g if isinstance(g, Value) else _gradient_as_array(g, like, what), like, what)
        results.append(g)
    return results + [None] * (len(ins) - len(names))


def _gradient_as_array(g: object, like: Any, what: str) -> Any:
    """A gradient that is NumPy's, a list or a number as an array; an error that names anything else."""
    try:
        return like._lift(g)
    except (TypeError, ValueError) as error:
        if isinstance(error, OpError) and not error.converted:
            raise
        raise ArgumentError(f"{what}: expected an array or a number, got {type(g).__name__}") from error


#: A user's rule with checked results: a function of output gradients, inputs, outputs, whether each input needs a
#: gradient, and the mode.
UserRule = Callable[[OutGrads, Sequence[Value], Sequence[Value], Sequence[bool], bool], list[Value | None]]


def by_rule(rule: UserRule, use: Use, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
            is_train: bool) -> list[Value | None]:
    """Gradients of the inputs by a user's rule, which is called here, or becomes an operator if it reads elements or
    ``calls_rule`` says so."""
    eager = bool(outs) and hasattr(outs[0], "_data")
    if eager or not use.calls_rule:
        try:
            if eager and MODE.recording:  # does the rule read elements?
                _rehearse(rule, g, ins, outs, needs, is_train)
            return rule(g, ins, outs, needs, is_train)
        except NeedsNumbers:
            pass
    count = len(use.op.signature.arguments(use))
    return _through(rule, use, g, ins, [*ins[:count], *outs, *ins[count:]], needs)


def _rehearse(rule: UserRule, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
              is_train: bool) -> None:
    tracer = RuleTracer()

    def stand(array: Any) -> TracedValue:
        return tracer.value(tracer.variable("array", Spec(array.shape, array._data.dtype)))

    rule(tuple(map(stand, g)) if isinstance(g, (tuple, list)) else stand(g), list(map(stand, ins)),
         list(map(stand, outs)), needs, is_train)


def derive(use: Use, g: OutGrads, ins: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
    """Gradients of the inputs by the derivative of the body."""
    return _through(None, use, g, ins, ins, needs)


# -------------------------------------------------------------------------------- gradients that are operators


class GradientUse(Use):
    """The attributes of one use of a gradient operator.

    Attributes
    ----------
    inner : Use
        The attributes of the forward operator.
    needs : tuple of bool
        Whether the gradient of each argument is requested.
    rule : function, or None
        The user's rule; None for a gradient derived from the body.
    """

    def __init__(self, op: Op, inner: Use, needs: tuple[bool, ...], rule: UserRule | None):
        super().__init__(inner)
        self.op, self.inner, self.needs, self.rule, self.memo = op, inner, needs, rule, {}
        self.derived = rule is None

    @property
    def has_rule(self) -> bool:
        """Whether it is a user's rule, not the derivative of a body."""
        return not self.derived

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """The version of the forward operator."""
        inner = self.inner
        if not self.derived:
            return None
        first = inner.op.signature.visible(inner)
        version = inner.version(ctx, arrays[first:])
        return None if version is None else (self, version)

    def outside(self) -> OutsideValues | None:
        """The outside values of the forward operator."""
        return self.inner.outside()

    def arguments(self) -> tuple[str, ...]:
        """Names of the output gradients and of the inputs; for a user's rule, also of the outputs."""
        forward, inner = self.inner.op, self.inner
        outputs = forward.signature.outputs(inner)
        visible = outputs[:forward.signature.visible(inner)]
        return (*[f"{name}_grad" for name in visible], *forward.signature.arguments(inner),
                *(() if self.derived else outputs))

    def like_arguments(self, ins: list[T], outs: list[T]) -> tuple[list[T], list[T]]:
        """Shapes or dtypes of the gradients, which are those of the arguments."""
        first = self.inner.op.signature.visible(self.inner)
        return ins, ins[first:first + len(outs)]

    def differentiate(self, g: OutGrads, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
                      is_train: bool) -> list[Value | None]:
        """Gradients of the gradient, if the body is traced."""
        if self.op.traits.traced:
            return derive(self, g, ins, needs)
        raise NotDifferentiableError(
            f"the gradient of operator {self.inner.op.op_type!r} is Python code that reads elements, or shapes that "
            f"are only known in a bound graph, so it cannot be differentiated again; write it in operators, or let it "
            f"be "
            "traced with traced=True")


def _gradient(forward: Op, derived: bool, traced: bool, visible: int) -> Op:
    """Make the gradient operator of a user's operator."""
    op = Op(f"_gradient_{forward.name}", AS_GIVEN, AttrsRule(GradientUse.arguments),
            outputs=AttrsRule(lambda use: tuple([f"{name}_grad" for name in forward.signature.arguments(use.inner)])),
            auxiliary=AttrsRule(lambda use: forward.signature.auxiliary(use.inner)),
            types=AttrsRule(GradientUse.like_arguments), unread=[visible + i for i in forward.traits.unread], mode=True,
            per_instance=True, traced=traced, capturable=forward.traits.capturable)
    op.shapes(AttrsRule(GradientUse.like_arguments))
    op.moves(AttrsRule(lambda use: ()))  # states are read-only inputs
    op.grad(AttrsRule(GradientUse.differentiate))
    if derived:
        op.kernel("traced", bound=True)(lambda call: [COMPUTED.function(call)])
    else:
        op.kernel("gradient", bound=True)(_step_of_rule)
    return op


def _through(rule: UserRule | None, use: Use, g: OutGrads, ins: Sequence[Value], read: Sequence[Value],
             needs: Sequence[bool]) -> list[Value | None]:
    """Gradients of the inputs by a gradient operator that reads the output gradients and these values."""
    op = use.op
    visible, count = op.signature.visible(use), len(op.signature.arguments(use))
    tops: list[Any] = list(g)[:visible] if isinstance(g, (tuple, list)) else [g]
    traced = rule is None or (op.traits.traced and not use.calls_rule)
    key = "gradient", rule is None, traced, visible
    if key not in op.related:
        op.related[key] = _gradient(op, rule is None, traced, visible)
    gradient = op.related[key]
    wanted_inputs = tuple(needs[:count])
    use_of_gradient = use.gradients.get(wanted_inputs) if rule is None else None
    if use_of_gradient is None or use_of_gradient.op is not gradient:
        use_of_gradient = GradientUse(gradient, use, wanted_inputs, rule)
        if rule is None:
            use.gradients[wanted_inputs] = use_of_gradient
    computed = tops[0]._apply(gradient, [*tops, *read], use_of_gradient)
    results = [computed] if count == 1 else list(computed)
    return [result if need and i not in op.traits.unread else None
            for i, (result, need) in enumerate(zip(results, needs))] + [None] * (len(ins) - count)


def _step_of_rule(call: Call) -> list[Callable[[], None]]:
    """The step that calls a user's rule."""
    use: Any = call.attrs
    inner, forward, rule = use.inner, use.inner.op, use.rule
    visible, count = forward.signature.visible(inner), len(forward.signature.arguments(inner))
    values = [call.wrap(data, call.ctx, True) for data in call.ins]
    g, ins, values_after = values[:visible], values[visible:visible + count], values[visible + count:]
    outs = values_after[:len(forward.signature.outputs(inner))]
    ins += values_after[len(outs):]  # auxiliary states
    needs = [*use.needs, *[False] * (len(ins) - count)]

    def run() -> None:
        gradients = rule(g[0] if visible == 1 else tuple(g), ins, outs, needs, call.is_train)
        for out, result in zip(call.outs, gradients):
            if out is not None:
                out[...] = 0 if result is None else result._data

    return [run]
