"""How users call operators by name: inputs first, attributes in the order of the signature, both by keyword too."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Sequence

from .errors import ArgumentError, did_you_mean
from .op import Op

__all__ = ["split", "ordered", "signature"]


def split(op: Op, args: Sequence[Any], keywords: Mapping[str, Any], is_value: Callable[[Any], bool]
          ) -> tuple[dict[str, Any] | list[Any], dict[str, Any]]:
    """Inputs and attributes of a call.

    Parameters
    ----------
    op : Op
        The operator called.
    args, keywords
        As the user wrote them, less ``name``, ``attr``, ``out`` and ``ctx``.
    is_value : function
        Whether something may be an input.

    Returns
    -------
    inputs : dict by name, or list for an operator that takes any number
    attrs : dict
        As given; ``op.complete`` makes them typed.

    Raises
    ------
    ArgumentError
        When an input is given twice, or too much is given.
    """
    attrs: dict[str, Any] = {}
    if op.variadic or op.late:
        values = list(args)
        if len(values) == 1 and isinstance(values[0], (list, tuple)):
            values = list(values[0])
        named = {}
        for name, value in keywords.items():
            if name in op.schema:
                attrs[name] = value
            elif is_value(value):
                named[name] = value
            else:
                attrs[name] = value
        if named and values:
            raise ArgumentError(f"operator {op.name}: inputs go by position or by keyword, not both")
        if op.variadic:
            values = values or list(named.values())
            attrs.setdefault(op.variadic, len(values))
        return named or values, attrs
    names = op.input_names
    inputs: dict[str, Any] = {}
    rest = list(args)
    for name in names:
        if not rest:
            break
        if not is_value(rest[0]) and rest[0] is not None:
            if inputs or name in keywords:
                break
            raise ArgumentError(f"operator {op.name}: input {name} must be an array or symbol, "
                                f"got {type(rest[0]).__name__}")
        inputs[name] = rest.pop(0)
    fields = op.schema.names
    if len(rest) > len(fields):
        raise ArgumentError(f"operator {op.name}: expected at most {len(names)} inputs"
                            f" ({', '.join(names)}) and {len(fields)} attributes, got {len(args)} arguments")
    for name, value in zip(fields, rest):
        attrs[name] = value
    for name, value in keywords.items():
        if name in names:
            if name in inputs:
                raise ArgumentError(f"operator {op.name}: input {name} is given twice")
            inputs[name] = value
        elif name in attrs:
            raise ArgumentError(f"operator {op.name}: attribute {name} is given twice")
        elif name not in op.schema and is_value(value):
            raise ArgumentError(f"operator {op.name}: there is no input {name!r}. {did_you_mean(name, names)}")
        else:
            attrs[name] = value
    return inputs, attrs


def ordered(op: Op, inputs: dict[str, Any], attrs: Mapping[str, Any]) -> list[Any]:
    """The named inputs in the operator's order.

    Raises
    ------
    ArgumentError
        Naming the inputs that are missing, or that these attributes leave no room for.
    """
    names = op.arguments(attrs) + op.auxiliary(attrs)
    missing = [name for name in names if inputs.get(name) is None]
    surplus = [name for name, value in inputs.items() if value is not None and name not in names]
    if missing or surplus:
        what = f"missing {', '.join(missing)}" if missing else f"no room for {', '.join(surplus)}"
        raise ArgumentError(f"operator {op.name}: expected inputs {', '.join(names) or 'none'}; {what}")
    return [inputs[name] for name in names]


def signature(op: Op) -> inspect.Signature:
    """The signature users see in ``help``: inputs, then attributes with their defaults."""
    kinds = inspect.Parameter
    parameters = []
    if op.variadic or op.late:
        parameters.append(kinds("data", kinds.VAR_POSITIONAL))
        kind = kinds.KEYWORD_ONLY
    else:
        parameters += [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=None) for name in op.input_names]
        kind = kinds.POSITIONAL_OR_KEYWORD
    for field in op.schema.fields:
        if field.name.isidentifier() and field.name not in {p.name for p in parameters}:
            default = ... if field.required else field.default
            parameters.append(kinds(field.name, kind, default=default, annotation=field.kind))
    parameters.append(kinds("name", kinds.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)
