"""What users' operators have in common, and the gradient of one whose body is followed.

An operator that is ``traced`` promises that its body depends on nothing but its arguments. In a graph the body is then
called once, with values that stand for numbers, and what it did takes the operator's place. So its gradient exists
without being written: it is one more operator of that kind, whose body is the derivative of the first one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .attrs import Schema
from .op import Call, Op

__all__ = ["UserOp", "Attrs", "Derived"]


class Attrs(dict):
    """Attributes of one use of a user's operator.

    Attributes
    ----------
    memo : dict
        What an eager forward leaves for its backward.
    """

    memo: dict


class UserOp(Op):
    """A user's operator, or a gradient of one.

    Attributes
    ----------
    traced : bool
        Whether its body is followed instead of run, inside graphs.
    """

    traced = False

    def derive(self, g: Any, ins: Sequence[Any], attrs: Any, needs: Sequence[bool]) -> list[Any]:
        """Gradients of the inputs, from the derivative of what the body does."""
        visible, count = self.visible(attrs), len(self.arguments(attrs))
        tops = list(g)[:visible] if isinstance(g, (tuple, list)) else [g]
        given = _DerivedAttrs(attrs)
        given.inner, given.needs, given.memo = attrs, tuple(needs[:count]), {}
        found = tops[0]._apply(self._derived(visible), [*tops, *ins], given)
        results = [found] if count == 1 else list(found)
        return [result if need and i not in self.unread else None
                for i, (result, need) in enumerate(zip(results, needs))] + [None] * (len(ins) - count)

    def _derived(self, visible: int) -> Derived:
        made = self.__dict__.setdefault("_gradients", {})
        if visible not in made:
            made[visible] = Derived(self, visible)
        return made[visible]


class _DerivedAttrs(Attrs):
    """Attributes of one use of a derived gradient.

    Attributes
    ----------
    inner : mapping
        Those of the operator it is the gradient of.
    needs : tuple of bool
        The arguments whose gradient is wanted.
    """

    inner: Any
    needs: tuple[bool, ...]


class Derived(UserOp):
    """The gradient that follows from a body: from the gradients of its outputs and from its inputs."""

    traced = True

    def __init__(self, forward: UserOp, visible: int):
        super().__init__(f"_gradient_{forward.name}", Schema([], True), (),
                         unread=[visible + i for i in forward.unread])
        self.forward, self.mode = forward, True
        self.kernel("followed", bound=True)(_steps)

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


def _steps(call: Call) -> list[Callable]:
    from opreg.symbol.passes.follow import computed  # it grows graphs, which stand above

    return [computed(call)]
