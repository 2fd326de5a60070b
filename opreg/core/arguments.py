"""Arguments of operator calls: inputs, then attributes in the order of the signature; both also by keyword."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..errors import ArgumentError, did_you_mean, list_names, nearest, other_count, warn
from .conversions import AsText
from .op import Op
from .rules import Attrs
from .signature import GIVEN_INPUTS

__all__ = ["split", "superfluous", "non_none", "ordered_inputs", "signature", "method_signature", "LateSignature",
           "examples", "is_tensor", "value_error"]

#: Inputs of a call: by name, or in order for an operator that takes any number.
Inputs: TypeAlias = dict[str, Any] | list[Any]


def split(op: Op, args: Sequence[Any], keywords: Mapping[str, Any], is_value: Callable[[object], bool]
          ) -> tuple[Inputs, dict[str, Any]]:
    """Divide the arguments of a call into inputs and attributes.

    Parameters
    ----------
    op : Op
        The operator.
    args, keywords
        The arguments of the call, without ``name``, ``attr``, ``out`` and ``ctx``.
    is_value : function
        Tells whether a value may be an input.

    Returns
    -------
    inputs : dict by name, or list for an operator that takes any number
    attrs : dict
        Untyped attributes, for ``op.complete``.

    Warns
    -----
    UserWarning
        For unknown keywords of an operator without attributes.

    Raises
    ------
    ArgumentError
        If an input is given twice, or there are too many arguments.
    """
    if keywords and (dropped := superfluous(op, keywords, is_value)):
        keywords = {name: value for name, value in keywords.items() if name not in dropped}
    if op.signature.variadic or op.signature.per_instance:
        return _split_many(op, args, keywords, is_value)
    names, fields = op.signature.input_names, op.signature.schema.names
    if not keywords and len(args) <= len(names) and all(map(is_value, args)):
        inputs = dict(zip(names, args))
        return inputs, op.signature.with_given_inputs(inputs, {})
    inputs = {}
    remaining = list(args)
    for name in names:
        if not remaining or not (remaining[0] is None or is_value(remaining[0])):
            break
        inputs[name] = remaining.pop(0)
    following = names[len(inputs):len(inputs) + 1]
    # an operator of the user's, whose attributes are keyword-only
    if remaining and op.op_type is not None and len(args) > len(names):
        example = f"; attributes go by keyword, as in {_keyword_text(op)}" if fields else ""
        raise ArgumentError(f"operator {op.name}: takes {len(names)} input{'s' * (len(names) != 1)} "
                            f"({', '.join(names) or 'none'}), got {len(args)}{example}")
    if remaining and following and following[0] not in keywords and (
            not inputs or len(remaining) > len(fields) or is_tensor(remaining[0])):
        raise value_error(op, following[0], remaining[0])
    if len(remaining) > len(fields):
        raise ArgumentError(f"operator {op.name}: expected at most {len(names)} inputs"
                            f" ({', '.join(names)}) and {len(fields)} attributes, got {len(args)} arguments; "
                            "out and name go by keyword")
    attrs = dict(zip(fields, remaining))
    _add_keywords(op, keywords, is_value, inputs, attrs)
    if op.signature.optional:
        return inputs, op.signature.with_given_inputs(inputs, attrs)
    return _check_holes(op, inputs, attrs, [name for name in inputs if name not in keywords]), attrs


def _add_keywords(op: Op, keywords: Mapping[str, Any], is_value: Callable[[object], bool], inputs: dict[str, Any],
                  attrs: dict[str, Any]) -> None:
    """Add the keywords of a call to its inputs and attributes by position."""
    names = op.signature.input_names
    for name, value in keywords.items():
        if name in inputs or name in attrs:
            what = "input" if name in inputs else "attribute"
            raise ArgumentError(f"operator {op.name}: {what} {name} is given twice")
        if name not in names and (name in op.signature.schema or not is_value(value)):
            attrs[name] = value
        elif name not in names:
            raise ArgumentError(f"operator {op.name}: there is no input {name!r}. {did_you_mean(name, names)}")
        elif value is None or is_value(value):
            inputs[name] = value
        else:
            raise value_error(op, name, value)


def _keyword_text(op: Op) -> str:
    """The first attribute as a keyword of a call, for an error."""
    field = op.signature.schema.fields[0]
    return f"{field.name}={'…' if field.required else repr(field.default)}"


def superfluous(op: Op, keywords: Mapping[str, Any], is_value: Callable[[object], bool]) -> list[str]:
    """The unknown keywords of a call of a built-in operator without attributes. They are ignored with a warning, as in
    MXNet.
    """
    signature = op.signature
    if (signature.schema.fields or signature.schema.open or signature.variadic or signature.per_instance
            or op.op_type is not None):
        return []
    names = [name for name, value in keywords.items()
             if name not in op.signature.input_names and value is not None and not is_value(value)]
    if names:
        warn(f"operator {op.name} has no attributes: {list_names(names)} {'is' if len(names) == 1 else 'are'} ignored")
    return names


def non_none(**keywords: Any) -> dict[str, Any]:
    """The keywords whose values are not None.

    Examples
    --------
    >>> non_none(shape=(2,), out=None)
    {'shape': (2,)}
    """
    return {name: value for name, value in keywords.items() if value is not None}


def _check_holes(op: Op, inputs: dict[str, Any], attrs: Attrs, placed: list[str]) -> dict[str, Any]:
    """The inputs of a call, in which positional ones take, in order, the names that exist with these attributes."""
    present = [name for name in placed if inputs[name] is not None]
    if len(present) < 2:
        return inputs
    names = op.signature.inputs(op.complete(attrs))
    if all(name in names for name in present):
        return inputs
    free = [name for name in names if name in placed or name not in inputs]
    if len(free) < len(present):
        return inputs  # too many inputs; the error names them
    return {**dict(zip(free, [inputs[name] for name in present])),
            **{name: value for name, value in inputs.items() if name not in placed}}


def _name_of_input(op: Op, attrs: dict[str, Any], place: int) -> str:
    """The name of an input that depends on attributes; its number if the attributes are wrong."""
    try:
        return op.signature.arguments(op.complete(attrs))[place]
    except Exception:
        return str(place)


def is_tensor(value: object) -> bool:
    """Whether a value is an array or a symbol, which cannot be an attribute."""
    return hasattr(value, "list_arguments") or hasattr(value, "asnumpy")


def value_error(op: Op, name: str, value: object) -> ArgumentError:
    """The error for a value that cannot be an input."""
    if hasattr(value, "list_arguments"):
        return ArgumentError(f"operator {op.name}: input {name} is a Symbol, which has no values to compute with. "
                             f"Write sym.{op.name} for a symbol of the result; decorate the function around it by "
                             "operator.define(traced=True), and it takes symbols; or bind and run the symbol for its "
                             "values")
    if hasattr(value, "asnumpy"):
        return ArgumentError(f"operator {op.name}: input {name} is an array, expected a symbol. Write nd.{op.name} to "
                             f"compute now, or pass a Variable here and the array to bind")
    return ArgumentError(f"operator {op.name}: input {name} must be an array or symbol, got {type(value).__name__}; "
                         "nd.array(...) makes an array of numbers")


def _split_many(op: Op, args: Sequence[Any], keywords: Mapping[str, Any], is_value: Callable[[object], bool]
                ) -> tuple[Inputs, dict[str, Any]]:
    """Divide the arguments of an operator with any number of inputs, or whose inputs depend on attributes."""
    values = list(args)
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = list(values[0])
    attrs = {name: value for name, value in keywords.items() if name in op.signature.schema or not is_value(value)}
    for i, value in enumerate(values):
        if not is_value(value):
            raise value_error(op, _name_of_input(op, attrs, i), value)
    named = {name: value for name, value in keywords.items() if name not in attrs}
    if named and values:
        if op.signature.variadic:
            raise ArgumentError(f"operator {op.name}: give inputs by position or by keyword, not both")
        return {**_match_names(op, values, named, attrs), **named}, attrs
    if op.signature.variadic:
        values = values or list(named.values())
        attrs.setdefault(op.signature.variadic, len(values))
        return values, attrs
    return named or values, attrs


def _match_names(op: Op, values: Sequence[Any], named: Attrs, attrs: Attrs) -> dict[str, Any]:
    """Match positional inputs with names, where others are given by keyword and the attributes decide which inputs
    there are."""
    names = op.signature.inputs(op.complete(non_none(**attrs)))
    placed = dict(zip(names, values))
    if len(values) > len(names):
        raise ArgumentError(f"operator {op.name}: {other_count(names, len(values) + len(named))}")
    for name in named:
        if name in placed:
            raise ArgumentError(f"operator {op.name}: input {name} is given twice")
    return placed


def ordered_inputs(op: Op, inputs: Inputs, attrs: Attrs) -> list[Any]:
    """The inputs in the operator's order.

    Raises
    ------
    ArgumentError
        If inputs are missing, or do not exist with these attributes. The error names them.
    """
    names = op.signature.inputs(attrs)
    if isinstance(inputs, list):
        if len(inputs) != len(names):
            raise ArgumentError(f"operator {op.name}: {other_count(names, len(inputs))}")
        return inputs
    missing = [name for name in names if inputs.get(name) is None]
    surplus = [name for name, value in inputs.items() if value is not None and name not in names]
    if surplus:
        raise input_error(op, surplus[0], names)
    if missing:
        what = f"missing {list_names(missing)}"
        if missing[0] in op.signature.auxiliary(attrs):
            what += f", {'states' if len(missing) > 1 else 'a state'}: an array, in a Cell a Parameter"
        raise ArgumentError(f"operator {op.name}: expected inputs {list_names(names) or 'none'}; {what}")
    return [inputs[name] for name in names]


def input_error(op: Op, name: str, names: Sequence[str]) -> ArgumentError:
    """The error for an input that an operator does not have, or not with the attributes of a call, whose inputs are
    ``names``."""
    there = f"with these attributes there is no input {name}" if name in op.signature.input_names else (
        f"there is no input {name!r}")
    near = f". Did you mean {nearest(name, names)[0]!r}?" if nearest(name, names) else ""
    return ArgumentError(f"operator {op.name}: expected inputs {list_names(names) or 'none'}; {there}{near}")


def signature(op: Op, further: Sequence[str] = ("out", "name"), made: bool = False) -> inspect.Signature:
    """The signature that ``help`` shows: inputs, attributes with their defaults, and keywords of every operator.

    Inputs that exist only with some attributes have the default None. A required attribute after such an input is
    keyword-only, and so are all parameters after it.

    Parameters
    ----------
    op : Op
        The operator.
    further : sequence of str
        Keywords of every operator.
    made : bool
        Whether inputs whose shapes are inferred may be left out, too, as for symbols.

    Examples
    --------
    >>> from opreg.core.registry import get
    >>> str(signature(get("LeakyReLU"))).partition(", act_type")[0]
    '(data, gamma=None'
    """
    kinds: Any = inspect.Parameter
    names = _names_of_inputs(op)
    if names is None:
        parameters, kind = [kinds(op.signature.many, kinds.VAR_POSITIONAL)], kinds.KEYWORD_ONLY
    else:
        kind = kinds.POSITIONAL_OR_KEYWORD
        needed = names if op.signature.per_instance else _required_inputs(op)
        if made and op.rules.fill is not None:
            needed = [name for name in names[:1] if name in needed]
        first = next((i for i, name in enumerate(names) if name not in needed), None)
        parameters = [kinds(name, kind, default=kinds.empty if first is None or i < first else None)
                      for i, name in enumerate(names)]
    if op.op_type is not None:  # attributes of a user's function are keyword-only
        kind = kinds.KEYWORD_ONLY
    for field in op.signature.schema.fields:
        if (field.name == op.signature.variadic and field.required) or (
                # attributes that follow from the inputs of a call
                field.name == GIVEN_INPUTS and op.signature.optional):
            continue
        if field.name.isidentifier() and field.name not in {p.name for p in parameters}:
            default = kinds.empty if field.required else field.default
            if field.required and parameters and parameters[-1].default is not kinds.empty:
                kind = kinds.KEYWORD_ONLY
            annotation = kinds.empty if field.kind in (Any, AsText) else field.kind
            parameters.append(kinds(field.name, kind, default=default, annotation=annotation))
    taken = {parameter.name for parameter in parameters}
    parameters += [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in further if name not in taken]
    return inspect.Signature(parameters)


def _names_of_inputs(op: Op) -> Sequence[str] | None:
    """Names of the inputs; None if it takes any number, or if a Prop lists others with other attributes."""
    if op.signature.variadic:
        return None
    if not op.signature.per_instance:
        return op.signature.input_names
    usual, *others = examples(op)
    others += [{**usual, name: type(value)(int(value) + 1)} for name, value in usual.items()
               if type(value) is int or (isinstance(value, str) and value.isdigit())]
    try:
        found = {tuple(op.signature.inputs(op.complete(attrs))) for attrs in (usual, *others)}
    except Exception:  # a user's Prop refuses the attributes
        return None
    return [*found.pop()] if len(found) == 1 else None


def method_signature(op: Op) -> inspect.Signature:
    """The signature of a method that calls an operator with ``self`` as the first input."""
    first, *parameters = signature(op, ()).parameters.values()
    if first.kind is first.VAR_POSITIONAL:
        parameters = [first, *parameters]
    return inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *parameters])


class LateSignature(inspect.Signature):
    """A signature that is computed at the first access: of a method of a class that exists before its operator, or of
    an operator whose Prop lists the names of its inputs."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], inspect.Signature]):
        self._make = make

    def __getattr__(self, name: str) -> Any:
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        made = self._make()
        self._parameters, self._return_annotation = made.parameters, made.return_annotation
        return getattr(self, name)

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        return inspect.Signature(list(self.parameters.values())).replace(**changes)


def examples(op: Op) -> list[dict[str, Any]]:
    """Sets of attributes to try: the defaults, and the defaults with one attribute changed."""
    fields = op.signature.schema.fields
    usual = {field.name: _example(field.kind) if field.required else field.default for field in fields}
    return [usual] + [{**usual, field.name: option} for field in fields
                      for option in ((True, False) if field.kind is bool else typing.get_args(field.kind)
                                     if typing.get_origin(field.kind) is Literal else ())]


def _example(kind: Any) -> Any:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return (_example(args[0]), _example(args[0]))
    return args[0] if origin is Literal else _example(args[0]) if args else 2 if kind in (int, float) else None


def _required_inputs(op: Op) -> list[str]:
    """The inputs that exist with all attributes."""
    names = list(op.signature.input_names)
    try:
        # the names are the same with all attributes
        if set(names) == set(op.signature.arguments({}) + op.signature.auxiliary({})):
            return names
    except (KeyError, TypeError):
        pass
    for attrs in examples(op):
        existing = op.signature.inputs(attrs)
        names = [name for name in names if name in existing]
    return names
