"""Signature: the names by which an operator is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import passing
from .attrs import Schema
from .cache import cached
from .rules import Attrs, AttrsRule, Rule

__all__ = ["Names", "Signature"]

#: Names in order, or a function of attributes that returns them.
Names = Sequence[str] | Callable[..., Sequence[str]]


def _names(names: Names) -> Callable[[Attrs], tuple[str, ...]]:
    if isinstance(names, AttrsRule):
        return names.function
    if callable(names):
        rule = Rule(names)
        return lambda attrs: tuple(rule(attrs))
    return _fixed(tuple(names))


@cached(1024)
def _fixed(names: tuple[str, ...]) -> Callable[[Attrs], tuple[str, ...]]:
    """Names whatever the attributes: one function for all operators that have them."""
    return lambda attrs: names


class Signature:
    """The names of an operator's attributes, inputs, auxiliary states and outputs.

    Attributes
    ----------
    schema : Schema
        Its attributes; ``AS_GIVEN`` for an operator that only graphs and tapes apply. For a user's operator it holds
        the user's definition, and makes one use of it when it completes attributes.
    arguments, auxiliary, outputs : function of the attributes
        Names, in order, hidden outputs included. Auxiliary states follow the arguments among a node's inputs.
    stateful : bool
        Whether it may have auxiliary states.
    variadic : str or None
        The attribute that holds the number of inputs, for an operator that takes any number.
    many : str
        The name of all inputs together, for an operator that takes any number.
    per_instance : bool
        Whether each use has attributes of its own, and not even the names of the inputs are known without them.
    tags : dict of dict of str
        Tags, by input name, of variables that are made for inputs left out.
    """

    __slots__ = ("schema", "arguments", "auxiliary", "outputs", "stateful", "variadic", "many", "per_instance", "tags",
                 "_visible", "_inputs")

    def __init__(self, schema: Schema, arguments: Names, auxiliary: Names = (), outputs: Names = ("output",), *,
                 visible: Callable[..., int] | None = None, variadic: str | None = None,
                 input_names: Sequence[str] | None = None, per_instance: bool = False):
        self.schema, self.variadic, self.many, self.per_instance = schema, variadic, "data", per_instance
        self.arguments, self.auxiliary, self.outputs = _names(arguments), _names(auxiliary), _names(outputs)
        self.stateful = bool(auxiliary)
        self.tags: dict[str, dict[str, str]] = {}
        self._visible = Rule.of(visible) if visible else None
        self._inputs = input_names

    def inputs(self, attrs: Attrs) -> tuple[str, ...]:
        """Names of the arguments, then of the auxiliary states."""
        return self.arguments(attrs) + self.auxiliary(attrs)

    def visible(self, attrs: Attrs) -> int:
        """Number of outputs that are visible to a user; they come before the hidden ones."""
        return len(self.outputs(attrs)) if self._visible is None else self._visible(attrs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """All inputs that the operator can have, in the order of a call; none if they are unknown without
        attributes."""
        if self._inputs is not None:
            return tuple(self._inputs)
        if not self.per_instance:
            return self.inputs({})
        try:
            return self.inputs(self.schema.complete({}))
        except Exception as error:
            if passing(error):  # the answer is cached in signatures
                raise
            return ()
