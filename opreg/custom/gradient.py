"""What users' operators have in common, and gradients of them that are operators themselves.

An operator that is ``traced`` promises that its body depends on nothing but its arguments. In a graph the body is then
called once, with values that stand for numbers, and what it did takes the operator's place. So its gradient exists
without being written: it is one more operator of that kind, whose body is the derivative of the first one's.

A gradient that somebody wrote and that needs numbers, in NumPy for one, is an operator as well: it runs as Python, as
the body does.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from ..core.attrs import Schema
from ..core.dispatch import INVOKE, leading
from ..core.gradient import fitted
from ..core.launch import Call
from ..core.mode import MODE
from ..core.op import Op
from ..core.registry import get
from ..core.slots import Slot
from ..core.spec import Spec
from ..core.tracing import NeedsNumbers, RuleTracer
from ..core.value import Value
from ..errors import NotDifferentiableError

__all__ = ["UserOp", "Attrs", "Derived", "Written", "shown", "COMPUTED"]

#: What computes a gradient that follows from a body, on the arrays of a call.
COMPUTED = Slot("graphs")


class Attrs(dict):
    """Attributes of one use of a user's operator.

    Attributes
    ----------
    memo : dict
        What an eager forward leaves for its backward.
    runs : dict
        What is settled for eager calls of a function.
    """

    memo: dict
    runs: dict


def shown(value: Any) -> Any:
    """Values as users' code is given them, also in lists: arrays that refuse to be changed."""
    if isinstance(value, (list, tuple)):
        return type(value)([shown(each) for each in value])
    return value.shown() if isinstance(value, Value) else value


class UserOp(Op):
    """A user's operator, or a gradient of one.

    Attributes
    ----------
    traced : bool
        Whether its body is followed instead of run, inside graphs.
    """

    traced = False
    op_type = ""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Apply the operator as functions of ``nd`` and ``sym`` are called; its inputs decide which it is."""
        inside = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else ()
        first = leading((*args, *inside, *keywords.values()))
        if first is None:  # NumPy arrays, or nothing
            return INVOKE.function(self, args, keywords)
        return first._called(self, args, keywords)

    def __reduce__(self) -> Any:
        return get, (self.name,)

    def own(self, found: Any, ins: Sequence[Any], attrs: Any, title: str) -> list[Any]:
        """What a user's rule returned, as a gradient in the right shape, or None, for each of its inputs.

        Raises
        ------
        ArgumentError, ShapeError
            Naming the input.
        """
        names = self.arguments(attrs)
        results: list[Any] = []
        for name, g, like in zip(names, found, ins):
            if isinstance(g, numbers.Real) and g == 0:  # none at all
                g = None
            if g is not None:
                g = fitted(g if isinstance(g, Value) else like._lift(g), like, f"{title} of input {name!r}")
            results.append(g)
        return results + [None] * (len(ins) - len(names))

    def ruled(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool) -> list[Any]:
        """What the user's rule for the gradient gives, checked."""
        raise NotImplementedError

    def by_rule(self, g: Any, ins: Sequence[Any], outs: Sequence[Any], attrs: Any, needs: Sequence[bool],
                is_train: bool) -> list[Any]:
        """Gradients of the inputs by the user's rule: what it does, or where that needs numbers it as an operator."""
        try:
            if MODE.recording and outs and hasattr(outs[0], "_data"):  # as a graph would have it
                self._rehearse(g, ins, outs, attrs, needs, is_train)
            return self.ruled(g, ins, outs, attrs, needs, is_train)
        except NeedsNumbers:
            count = len(self.arguments(attrs))
            return self._through(Written, g, ins, [*ins[:count], *outs, *ins[count:]], attrs, needs)

    def _rehearse(self, g: Any, ins: Any, outs: Any, *rest: Any) -> None:
        tracer = RuleTracer()

        def stand(array: Any) -> Any:
            return tracer.value(tracer.variable("array", Spec(array.shape, array._data.dtype)))

        self.ruled(tuple(map(stand, g)) if isinstance(g, (tuple, list)) else stand(g), list(map(stand, ins)),
                   list(map(stand, outs)), *rest)

    # ---------------------------------------------------------------------------- gradients that are operators

    def derive(self, g: Any, ins: Sequence[Any], attrs: Any, needs: Sequence[bool]) -> list[Any]:
        """Gradients of the inputs, from the derivative of what the body does."""
        return self._through(Derived, g, ins, ins, attrs, needs)

    def _through(self, kind: type[_Gradient], g: Any, ins: Sequence[Any], read: Sequence[Any], attrs: Any,
                 needs: Sequence[bool]) -> list[Any]:
        """Gradients of the inputs from an operator that reads what arrives, and these values."""
        visible, count = self.visible(attrs), len(self.arguments(attrs))
        tops = list(g)[:visible] if isinstance(g, (tuple, list)) else [g]
        given = _GradientAttrs(attrs)
        given.inner, given.needs, given.memo = attrs, tuple(needs[:count]), {}
        made = self.__dict__.setdefault("_gradients", {})
        if (kind, visible) not in made:
            made[kind, visible] = kind(self, visible)
        found = tops[0]._apply(made[kind, visible], [*tops, *read], given)
        results = [found] if count == 1 else list(found)
        return [result if need and i not in self.unread else None
                for i, (result, need) in enumerate(zip(results, needs))] + [None] * (len(ins) - count)


class _GradientAttrs(Attrs):
    """Attributes of one use of a gradient.

    Attributes
    ----------
    inner : mapping
        Those of the operator it is the gradient of.
    needs : tuple of bool
        The arguments whose gradient is wanted.
    """

    inner: Any
    needs: tuple[bool, ...]


class _Gradient(UserOp):
    """The gradient of a user's operator: its inputs are the gradients of the outputs, then the inputs."""

    def __init__(self, forward: UserOp, visible: int):
        super().__init__(f"_gradient_{forward.name}", Schema([], True), (),
                         unread=[visible + i for i in forward.unread])
        self.forward, self.mode = forward, True

    def complete(self, given: Any) -> Any:
        return given

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        inner, forward = attrs.inner, self.forward
        tops = forward.outputs(inner)[:forward.visible(inner)]
        return (*[f"{name}_grad" for name in tops], *forward.arguments(inner))

    def auxiliary(self, attrs: Any) -> tuple[str, ...]:
        return self.forward.auxiliary(attrs.inner)

    def outputs(self, attrs: Any) -> tuple[str, ...]:
        return tuple([f"{name}_grad" for name in self.forward.arguments(attrs.inner)])

    def visible(self, attrs: Any) -> int:
        return len(self.forward.arguments(attrs.inner))

    @property
    def differentiable(self) -> bool:
        return True

    def _like_arguments(self, ins: Any, outs: Any, attrs: Any) -> Any:
        first = self.forward.visible(attrs.inner)
        return ins, list(ins[first:first + len(outs)])

    infer_shapes = infer_dtypes = _like_arguments

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        return self.derive(g, ins, attrs, needs)


class Derived(_Gradient):
    """The gradient that follows from a body."""

    traced = True

    def __init__(self, forward: UserOp, visible: int):
        super().__init__(forward, visible)
        self.kernel("followed", bound=True)(_followed)


class Written(_Gradient):
    """The gradient that a user's rule gives, called with arrays. It reads the outputs too, behind the inputs."""

    def __init__(self, forward: UserOp, visible: int):
        super().__init__(forward, visible)
        self.traced = forward.traced
        self.kernel("gradient", bound=True)(_called)

    def arguments(self, attrs: Any) -> tuple[str, ...]:
        return (*super().arguments(attrs), *self.forward.outputs(attrs.inner))

    def differentiate(self, g: Any, ins: Any, outs: Any, attrs: Any, needs: Any, is_train: bool = True) -> Any:
        if self.traced:
            return self.derive(g, ins, attrs, needs)
        raise NotDifferentiableError(
            f"the gradient of operator {self.forward.op_type!r} is Python code that needs numbers, or shapes that are "
            "known in a bound graph alone, and cannot be differentiated again; write it in operators, or let it be "
            "followed with traced=True")


def _followed(call: Call) -> list[Callable]:
    return [COMPUTED.function(call)]


def _called(call: Call) -> list[Callable]:
    """The step that calls a user's rule."""
    attrs: Any = call.attrs
    forward: Any = call.op.forward  # type: ignore[attr-defined]
    inner, visible = attrs.inner, forward.visible(attrs.inner)
    count = len(forward.arguments(inner))
    values = [call.wrap(data, call.ctx, True) for data in call.ins]
    g, ins, rest = values[:visible], values[visible:visible + count], values[visible + count:]
    outs = rest[:len(forward.outputs(inner))]
    ins += rest[len(outs):]  # auxiliary states
    needs = [*attrs.needs, *[False] * (len(ins) - count)]

    def run() -> None:
        found = forward.ruled(g[0] if visible == 1 else tuple(g), ins, outs, inner, needs, call.is_train)
        for out, result in zip(call.outs, found):
            if out is not None:
                out[...] = 0 if result is None else result._data

    return [run]
