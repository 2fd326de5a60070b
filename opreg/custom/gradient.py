"""Uses of users' operators, and gradients of them that are operators themselves.

An operator that is ``traced`` promises that its body depends on nothing but its arguments. In a graph the body is then
called once, with values that stand for numbers, and what it did takes the operator's place. So its gradient exists
without being written: it is one more operator of that kind, whose body is the derivative of the first one's.

A user's gradient that needs values, in NumPy for one, is an operator as well: it runs as Python, as
the body does.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ..core.attrs import AS_GIVEN, Attributes
from ..core.comparisons import Check
from ..core.gradient import fitted
from ..core.launch import Call
from ..core.mode import MODE
from ..core.op import Op
from ..core.rules import AttrsRule
from ..core.slots import Slot
from ..core.spec import Spec
from ..core.tracing import NeedsNumbers, RuleTracer, TracedValue
from ..core.value import Value
from ..errors import NotDifferentiableError

if TYPE_CHECKING:
    from ..ndarray.context import Context
    from ..typing import Array

__all__ = ["Use", "GradientUse", "by_rule", "derive", "own", "shown", "Arriving", "COMPUTED", "READS"]

T = TypeVar("T")

#: Output gradients of an operator: a value, or several; None where there is none.
Arriving: TypeAlias = Value | Sequence[Value | None] | None

#: A function that computes a gradient derived from a body, on the arrays of a call.
COMPUTED = Slot("bodies")
#: Makes a `BodyReads` of the functions and classes that are traced together.
READS = Slot("bodies")


class Outside(Protocol):
    """Values that users' code reads from outside while a graph is made."""

    def version(self) -> object:
        """A value that stays the same object while all of it stays; None where not everything is known."""

    def check(self) -> Check | None:
        """A function that says what of it has changed from now on; None where nothing could."""


class Use(Attributes):
    """Attributes of one use of a user's operator.

    Attributes
    ----------
    op : Op
        The operator.
    memo : dict
        What an eager forward leaves for its backward.
    runs : dict
        What is prepared for eager calls of a function.
    derived : bool
        Whether it is the use of a gradient that follows from a body.
    """

    op: Op
    memo: dict
    runs: dict
    derived = False

    @functools.cached_property
    def gradients(self) -> dict[tuple[bool, ...], GradientUse]:
        """Uses of the gradient that follows from the body, by the arguments whose gradient is wanted."""
        return {}

    @property
    def ruled(self) -> bool:
        """Whether the user wrote its gradient."""
        return self.op.rules.grad is not None

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """A key that stays equal while a traced body would do the same again with such arrays; None if unknown.
        """
        return None

    def outside(self) -> Outside | None:
        """Reads, while a graph is made, of values that others may change; None where nobody knows them."""
        return None


def shown(value: Any) -> Any:
    """Values as users' code is given them, also in lists: arrays that refuse to be changed."""
    if isinstance(value, (list, tuple)):
        return type(value)([shown(part) for part in value])
    return value.shown() if isinstance(value, Value) else value


def own(names: Sequence[str], gradients: Iterable[Any], ins: Sequence[Any], title: str) -> list[Value | None]:
    """Gradients that a user's rule returned for the arguments of these names, in the right shapes: one for each input,
    or None.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the input.
    """
    results: list[Value | None] = []
    for name, g, like in zip(names, gradients, ins):
        if isinstance(g, numbers.Real) and g == 0:  # none at all
            g = None
        if g is not None:
            g = fitted(g if isinstance(g, Value) else like._lift(g), like, f"{title} of input {name!r}")
        results.append(g)
    return results + [None] * (len(ins) - len(names))


#: A user's rule with its results checked: a function of the gradients of outputs, inputs, outputs, the inputs that
#: want a
#: gradient, and the mode.
UserRule = Callable[[Arriving, Sequence[Value], Sequence[Value], Sequence[bool], bool], list[Value | None]]


def by_rule(rule: UserRule, use: Use, g: Arriving, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
            is_train: bool) -> list[Value | None]:
    """Gradients of the inputs by a user's rule: its operators, or the rule as an operator if it needs values."""
    try:
        if MODE.recording and outs and hasattr(outs[0], "_data"):  # as a graph would have it
            _rehearse(rule, g, ins, outs, needs, is_train)
        return rule(g, ins, outs, needs, is_train)
    except NeedsNumbers:
        count = len(use.op.signature.arguments(use))
        return _through(rule, use, g, ins, [*ins[:count], *outs, *ins[count:]], needs)


def _rehearse(rule: UserRule, g: Arriving, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
              is_train: bool) -> None:
    tracer = RuleTracer()

    def stand(array: Any) -> TracedValue:
        return tracer.value(tracer.variable("array", Spec(array.shape, array._data.dtype)))

    rule(tuple(map(stand, g)) if isinstance(g, (tuple, list)) else stand(g), list(map(stand, ins)),
         list(map(stand, outs)), needs, is_train)


def derive(use: Use, g: Arriving, ins: Sequence[Value], needs: Sequence[bool]) -> list[Value | None]:
    """Gradients of the inputs, from the derivative of what the body does."""
    return _through(None, use, g, ins, ins, needs)


# -------------------------------------------------------------------------------- gradients that are operators


class GradientUse(Use):
    """Attributes of one use of a gradient.

    Attributes
    ----------
    inner : Use
        Those of the operator it is the gradient of.
    needs : tuple of bool
        The arguments whose gradient is wanted.
    rule : function, or None
        The user's rule; None for a gradient derived from the body.
    """

    def __init__(self, op: Op, inner: Use, needs: tuple[bool, ...], rule: UserRule | None):
        super().__init__(inner)
        self.op, self.inner, self.needs, self.rule, self.memo = op, inner, needs, rule, {}
        self.derived = rule is None

    @property
    def ruled(self) -> bool:
        """Never where it follows from a body."""
        return not self.derived

    def version(self, ctx: Context, arrays: Sequence[Array]) -> Hashable:
        """The version of the operator."""
        inner = self.inner
        if not self.derived:
            return None
        first = inner.op.signature.visible(inner)
        version = inner.version(ctx, arrays[first:])
        return None if version is None else (self, version)

    def outside(self) -> Outside | None:
        """That of the operator."""
        return self.inner.outside()

    def arguments(self) -> tuple[str, ...]:
        """Names of the gradients of the outputs, then those of the inputs; where a user's rule reads them, outputs."""
        forward, inner = self.inner.op, self.inner
        outputs = forward.signature.outputs(inner)
        visible = outputs[:forward.signature.visible(inner)]
        return (*[f"{name}_grad" for name in visible], *forward.signature.arguments(inner),
                *(() if self.derived else outputs))

    def like_arguments(self, ins: list[T], outs: list[T]) -> tuple[list[T], list[T]]:
        """Shapes, or dtypes: gradients look like the arguments."""
        first = self.inner.op.signature.visible(self.inner)
        return ins, ins[first:first + len(outs)]

    def differentiate(self, g: Arriving, ins: Sequence[Value], outs: Sequence[Value], needs: Sequence[bool],
                      is_train: bool) -> list[Value | None]:
        """Gradients of the gradient, where the body is traced."""
        if self.op.traits.traced:
            return derive(self, g, ins, needs)
        raise NotDifferentiableError(
            f"the gradient of operator {self.inner.op.op_type!r} is Python code that needs numbers, or shapes that are "
            "known in a bound graph alone, and cannot be differentiated again; write it in operators, or let it be "
            "traced with traced=True")


def _gradient(forward: Op, derived: bool, visible: int) -> Op:
    """The operator that computes gradients of a user's operator."""
    op = Op(f"_gradient_{forward.name}", AS_GIVEN, AttrsRule(GradientUse.arguments),
            outputs=AttrsRule(lambda use: tuple([f"{name}_grad" for name in forward.signature.arguments(use.inner)])),
            auxiliary=AttrsRule(lambda use: forward.signature.auxiliary(use.inner)),
            types=AttrsRule(GradientUse.like_arguments), unread=[visible + i for i in forward.traits.unread], mode=True,
            per_instance=True, traced=derived or forward.traits.traced, capturable=forward.traits.capturable)
    op.shapes(AttrsRule(GradientUse.like_arguments))
    op.moves(AttrsRule(lambda use: ()))  # it is shown states, and cannot change them
    op.grad(AttrsRule(GradientUse.differentiate))
    if derived:
        op.kernel("traced", bound=True)(lambda call: [COMPUTED.function(call)])
    else:
        op.kernel("gradient", bound=True)(_called)
    return op


def _through(rule: UserRule | None, use: Use, g: Arriving, ins: Sequence[Value], read: Sequence[Value],
             needs: Sequence[bool]) -> list[Value | None]:
    """Gradients of the inputs from an operator that reads the output gradient, and these values."""
    op = use.op
    visible, count = op.signature.visible(use), len(op.signature.arguments(use))
    tops: list[Any] = list(g)[:visible] if isinstance(g, (tuple, list)) else [g]
    key = "derived" if rule is None else "written", visible
    if key not in op.related:
        op.related[key] = _gradient(op, rule is None, visible)
    gradient = op.related[key]
    wanted = tuple(needs[:count])
    own = use.gradients.get(wanted) if rule is None else None
    if own is None or own.op is not gradient:
        own = GradientUse(gradient, use, wanted, rule)
        if rule is None:
            use.gradients[wanted] = own
    computed = tops[0]._apply(gradient, [*tops, *read], own)
    results = [computed] if count == 1 else list(computed)
    return [result if need and i not in op.traits.unread else None
            for i, (result, need) in enumerate(zip(results, needs))] + [None] * (len(ins) - count)


def _called(call: Call) -> list[Callable[[], None]]:
    """The step that calls a user's rule."""
    use: Any = call.attrs
    inner, forward, rule = use.inner, use.inner.op, use.rule
    visible, count = forward.signature.visible(inner), len(forward.signature.arguments(inner))
    values = [call.wrap(data, call.ctx, True) for data in call.ins]
    g, ins, rest = values[:visible], values[visible:visible + count], values[visible + count:]
    outs = rest[:len(forward.signature.outputs(inner))]
    ins += rest[len(outs):]  # auxiliary states
    needs = [*use.needs, *[False] * (len(ins) - count)]

    def run() -> None:
        gradients = rule(g[0] if visible == 1 else tuple(g), ins, outs, needs, call.is_train)
        for out, result in zip(call.outs, gradients):
            if out is not None:
                out[...] = 0 if result is None else result._data

    return [run]
