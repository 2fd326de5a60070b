"""Signature: the names by which an operator is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import is_transient
from .attrs import Schema
from .cache import cached
from .rules import Attrs, AttrsRule, Rule

__all__ = ["GIVEN_INPUTS", "Names", "Signature"]

#: The attribute that names the optional inputs of a call.
GIVEN_INPUTS = "given_inputs"

#: Names in order, or a function of attributes that returns them.
Names = Sequence[str] | Callable[..., Sequence[str]]


def _names(names: Names) -> Callable[[Attrs], tuple[str, ...]]:
    if isinstance(names, AttrsRule):
        return names.function
    if callable(names):
        rule = Rule(names)
        return lambda attrs: tuple(rule(attrs))
    return _constant_names(tuple(names))


@cached(1024)
def _constant_names(names: tuple[str, ...]) -> Callable[[Attrs], tuple[str, ...]]:
    """The function that returns these names for all attributes; operators with equal names share it."""
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
    optional : tuple of str
        Inputs that a call may leave out, whatever its attributes; the attribute ``given_inputs`` names the others.
    tags : dict of dict of str
        Tags, by input name, of variables that are made for inputs left out.
    """

    __slots__ = ("schema", "arguments", "auxiliary", "outputs", "stateful", "variadic", "many", "per_instance", "tags",
                 "optional",                 "_visible", "_inputs")

    def __init__(self, schema: Schema, arguments: Names, auxiliary: Names = (), outputs: Names = ("output",), *,
                 visible: Callable[..., int] | None = None, variadic: str | None = None,
                 input_names: Sequence[str] | None = None, per_instance: bool = False):
        self.schema, self.variadic, self.many, self.per_instance = schema, variadic, "data", per_instance
        self.arguments, self.auxiliary, self.outputs = _names(arguments), _names(auxiliary), _names(outputs)
        self.stateful = bool(auxiliary)
        self.tags: dict[str, dict[str, str]] = {}
        self.optional: tuple[str, ...] = ()
        self._visible = Rule.of(visible) if visible else None
        self._inputs = input_names

    def inputs(self, attrs: Attrs) -> tuple[str, ...]:
        """Names of the arguments, then of the auxiliary states."""
        return self.arguments(attrs) + self.auxiliary(attrs)

    def visible(self, attrs: Attrs) -> int:
        """Number of outputs that are visible to a user; they come before the hidden ones."""
        return len(self.outputs(attrs)) if self._visible is None else self._visible(attrs)

    def with_given_inputs(self, inputs: Mapping[str, Any], attrs: dict[str, Any]) -> dict[str, Any]:
        """Attributes of a call, with the names of the optional inputs that it gives."""
        if not self.optional or GIVEN_INPUTS in attrs:
            return attrs
        return {**attrs, GIVEN_INPUTS: tuple([name for name in self.optional if inputs.get(name) is not None])}

    def in_all_places(self, attrs: Attrs, values: Sequence[Any]) -> Sequence[Any]:
        """A value for each input that the operator can have: None for an optional one that is left out."""
        if not self.optional:
            return values
        by_name = dict(zip(self.inputs(attrs), values))
        return [by_name.get(name) for name in self.input_names]

    def present_values(self, attrs: Attrs, values: Sequence[Any]) -> Sequence[Any]:
        """The values of inputs that are given, of values for all that the operator can have."""
        if not self.optional or len(values) != len(self.input_names):
            return values
        names = self.inputs(attrs)
        return [value for name, value in zip(self.input_names, values) if name in names]

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
            if is_transient(error):  # the answer is cached in signatures
                raise
            return ()
