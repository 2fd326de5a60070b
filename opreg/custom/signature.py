"""Signatures of users' functions: division of parameters into inputs, states and attributes, with checks."""

from __future__ import annotations

import enum
import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from ..core.attrs import REQUIRED, AsDefault, Few, Field, Schema
from ..core.op import Op
from ..core.parameters import annotations_of, signature_of
from ..core.signature import GIVEN_INPUTS
from ..core.spec import as_dtype
from ..errors import ArgumentError, AttrError, DTypeError, Where, did_you_mean, is_transient, warn

__all__ = ["Signature", "attribute", "read", "read_types", "hints", "RULES", "check_keywords", "check_rule",
           "warn_misspelt"]

#: Keyword-only parameters that are no attributes.
GIVEN = ("is_train", "ctx")
#: Keywords of every operator call, which parameters may not use.
_TAKEN = ("name", "attr", "out", "op_type", GIVEN_INPUTS)


class Signature(NamedTuple):
    """The parameters of a function, divided by their roles in an operator.

    Attributes
    ----------
    inputs, auxiliary : tuple of str
        Names of inputs and of auxiliary states.
    many : str or None
        The name of ``*xs`` for any number of last inputs; None without it.
    schema : Schema
        The attributes.
    optional : tuple of str
        Inputs with the default None.
    """

    inputs: tuple[str, ...]
    many: str | None
    auxiliary: tuple[str, ...]
    schema: Schema
    optional: tuple[str, ...] = ()


def hints(function: Callable) -> dict[str, Any]:
    """Types of the annotated parameters, without annotations that cannot be evaluated."""
    types = {}
    for name, hint in annotations_of(function).items():
        try:
            while isinstance(hint, str):
                hint = eval(hint, function.__globals__)
        except Exception as error:
            if is_transient(error):
                raise
            continue  # the annotation names a type that only type checkers import
        types[name] = hint
    return types


def read(function: Any, auxiliary: Sequence[str] = ()) -> Signature:
    """Read the signature of a function that becomes an operator.

    Raises
    ------
    TypeError
        If it is no function.
    ArgumentError
        If it has parameters that an operator cannot have. The error tells how to write them.

    Examples
    --------
    >>> def f(x, weight, mean, *, eps: float = 1e-5): ...
    >>> signature = read(f, ["mean"])
    >>> signature.inputs, signature.auxiliary, signature.schema.names
    (('x', 'weight'), ('mean',), ('eps',))
    """
    if inspect.isclass(function) or not callable(function):
        what = f"the class {function.__name__}" if inspect.isclass(function) else repr(function)
        name = f"; a name is a keyword: @define(name={function!r})" if isinstance(function, str) else ""
        raise ArgumentError(f"define: expected a function, got {what}{name}")
    title = f"define: {getattr(function, '__name__', function)}"
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        raise ArgumentError(f"{title} has no readable signature: write a def that calls it") from None
    title += str(signature.replace(return_annotation=signature.empty))
    bodies = [function, getattr(type(function), "__call__", None)]  # noqa: B004 (the body of an object that is called)
    if any(inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body) for body in bodies):
        raise ArgumentError(f"{title} is an async def: an operator computes when it is called; write a plain def")
    if any(map(inspect.isgeneratorfunction, bodies)):
        raise ArgumentError(f"{title} is a generator: an operator returns its outputs, several as a tuple")
    kinds: Any = inspect.Parameter
    inputs: list[str] = []
    optional: list[str] = []
    fields: list[Field] = []
    many, annotated = None, hints(getattr(function, "func", function))
    for parameter in signature.parameters.values():
        name, kind, default = parameter.name, parameter.kind, parameter.default
        if name in _TAKEN or (name in GIVEN and kind is not kinds.KEYWORD_ONLY):
            raise ArgumentError(f"{title}: a parameter cannot be called {name!r}, which has another meaning in a call "
                                f"of an operator")
        if kind is kinds.VAR_KEYWORD:
            raise ArgumentError(f"{title}: **{name} does not declare attributes: write each with its type after *, as "
                                f"in (x, *, alpha: float = 1.0)")
        if kind is kinds.VAR_POSITIONAL:
            many = name
        elif kind is kinds.KEYWORD_ONLY:
            if name not in GIVEN:
                try:
                    fields.append(_field(name, annotated, REQUIRED if default is kinds.empty else default))
                except AttrError as error:
                    raise ArgumentError(f"{title}: the default of {error}") from None
        elif default is not kinds.empty and default is not None:
            raise ArgumentError(f"{title}: positional parameters are inputs, which have no default but None. If {name} "
                                f"is an attribute put * before it: (…, *, {name}={default!r})")
        else:
            inputs.append(name)
            if default is None:
                optional.append(name)
    states = _states(title, inputs, many, auxiliary)
    optional = [name for name in optional if name not in states]
    if many is not None:
        if optional:
            raise ArgumentError(f"{title}: an operator cannot have both inputs that may be left out, as {optional[0]}, "
                                f"and any number of inputs, *{many}: a call could not say which it gives")
        fields.append(Field("num_args", int, REQUIRED, Few))
    if optional:
        fields.append(Field(GIVEN_INPUTS, tuple[str, ...], ()))
    return Signature(tuple(inputs[:len(inputs) - len(states)]), many, states, Schema(fields), tuple(optional))


def attribute(name: str, hint: Any, default: Any) -> Field:
    """The attribute of a parameter with an annotation. One of type Any keeps every value and reads text."""
    return Field(name, hint, default, AsDefault if hint is Any else hint)


def _field(name: str, annotated: dict[str, Any], default: Any) -> Field:
    """The attribute of a parameter. An annotated default is converted as given values are, so that lists are tuples."""
    if name in annotated:
        field = attribute(name, annotated[name], default)
        if default is not REQUIRED and default is not None:
            converted = field(default)
            if isinstance(default, list):
                field.default = converted
        return field
    if isinstance(default, str) and not isinstance(default, enum.Enum):
        return Field(name, Any, default)
    return Field(name, Any, default, type(default) | AsDefault if isinstance(default, enum.Enum) else AsDefault)


def _states(title: str, inputs: Sequence[str], many: str | None, auxiliary: Sequence[str]) -> tuple[str, ...]:
    """The names of auxiliary states, after a check that they are the last positional parameters."""
    if isinstance(auxiliary, str) or not isinstance(auxiliary, Iterable):
        raise ArgumentError(f"{title}: auxiliary={auxiliary!r}: expected a list of names")
    states = tuple(auxiliary)
    for name in states:
        if name not in inputs:
            raise ArgumentError(f"{title}: the auxiliary state {name!r} is not an input. "
                                f"{did_you_mean(name, inputs)}")
    if states and (many is not None or tuple(inputs[-len(states):]) != states):
        raise ArgumentError(f"{title}: auxiliary states come last, after all inputs: "
                            f"{', '.join([name for name in inputs if name not in states] + list(states))}")
    return states


def read_types(title: str, text: object, signature: Signature, outputs: Sequence[str]) -> str:
    """Check declared dtypes. States without a declared dtype get that of the first input.

    Raises
    ------
    ArgumentError
        If the text is not valid. The error suggests the nearest valid word.

    Examples
    --------
    >>> def f(x, ids, mean): ...
    >>> read_types("f", "T,int32->T", read(f, ["mean"]), ["output"])
    'T,int32,T->T'
    """
    inputs, states, many = signature.inputs, signature.auxiliary, signature.many
    title += f": types={text!r}"
    if not isinstance(text, str):
        raise ArgumentError(f"{title}: expected text, got {text!r}, as in {_example(len(inputs), len(outputs))!r}")
    sides = text.split("->")
    if len(sides) != 2:
        raise ArgumentError(f"{title}: expected dtypes of inputs, an arrow and dtypes of outputs, as in "
                            f"{_example(len(inputs), len(outputs))!r}")
    left, right = [[word.strip() for word in side.split(",")] if side.strip() else [] for side in sides]
    for word in left + right:
        if not word.lstrip("*"):
            raise ArgumentError(f"{title}: a dtype is missing between two commas")
        _check_dtype(title, word.lstrip("*"), signature)
    every = [*inputs, *states] + ([f"*{many}"] if many else [])
    _check_count(title, text, "input", left, every, [len(every), len(inputs)] if not many else
                 range(1, len(every) + 1))
    _check_count(title, text, "output", right, outputs, [len(outputs)])
    letters = {word.lstrip("*") for word in left}
    for word in right:
        letter = word.lstrip("*")
        if len(letter) == 1 and letter != "?" and letter not in letters:
            raise ArgumentError(f"{title}: {letter!r} is not a dtype of any input: name a dtype, as in float32")
    starred = any(word.startswith("*") for word in left)
    if states and not starred and len(left) == len(inputs):
        left += left[:1] * len(states)
    return f"{','.join(left)}->{','.join(right)}"


def _example(ins: int, outs: int) -> str:
    return f"{','.join('T' * ins)}->{','.join('T' * outs)}"


def _check_dtype(title: str, word: str, signature: Signature) -> None:
    """Raise an error for a word that is no letter, no dtype, and not ``@`` followed by an attribute."""
    if word.startswith("@"):
        if word[1:] not in signature.schema:
            raise ArgumentError(f"{title}: there is no attribute {word[1:]!r}. "
                                f"{did_you_mean(word[1:], signature.schema.names)}")
    elif len(word) > 1:
        try:
            as_dtype(word)
        except DTypeError as error:
            raise ArgumentError(f"{title}: {error}") from None


def _check_count(title: str, text: str, what: str, words: Sequence[str], names: Sequence[str],
                 counts: Sequence[int]) -> None:
    """Raise an error unless there is one word for each name. A word with a star stands for any number."""
    if len(words) in counts or (any(word.startswith("*") for word in words) and len(words) <= len(names) + 1):
        return
    declared = f"is 1 ({names[0]})" if len(names) == 1 else \
        f"are {len(names)}{' kinds' * any(name.startswith('*') for name in names)} ({', '.join(names) or 'none'})"
    like = "" if len(words) >= len(names) or not words else \
        f": write {','.join([*words, *[words[-1]] * (len(names) - len(words))])!r} where they are alike"
    raise ArgumentError(f"{title} names {len(words)} {what}{'s' * (len(words) != 1)}, there {declared}{like}")


#: For each rule of an operator that is a function: its title, its parameters (None for the operator's inputs), and
#: their kind.
_RULES: dict[str, tuple[str, tuple[str, ...] | None, str]] = {
    "grad": ("gradient", ("g", "ins", "outs"), ""),
    "infer": ("shape rule", None, ": a shape for each input"),
    "infer_from_data": ("rule for shapes that depend on values", None, ": an array for each input"),
    "fill": ("rule for shapes of inputs", ("ins", "outs"), ""),
    "shapes": ("rule for all shapes", ("ins", "outs"), ""),
    "types": ("dtype rule", ("ins", "outs"), ""),
    "vmap": ("vmap rule", ("ins", "batched"), ""),
    "jvp": ("jvp rule", ("t", "ins", "outs"), ""),
    "flops": ("rule for arithmetic", ("ins", "outs"), ": the shapes of each"),
    "layout": ("layout rule", ("ins",), ": the shapes of the inputs"),
    "identity": ("rule for identities", ("ins", "outs"), ": the specs of each"),
    "few_rows": ("rule for rows", ("stypes",), ": the storage types of the inputs"),
    "norm": ("rule for norms", (), ""),
    "tail": ("rule for tails", (), "")}

#: Keyword-only parameters that rules may have beside attributes.
_RULE_KEYWORDS = {"grad": ("needs", "is_train"), "identity": ("is_train",)}


def _takes_name(function: Any, other: Any) -> bool:
    """Whether a ``def`` stores a function under the name of another one."""
    name = getattr(function, "__qualname__", None)
    return name is not None and not name.endswith("<lambda>") and (
        (function.__module__, name) == (other.__module__, getattr(other, "__qualname__", None)))


def check_rule(op: Op, what: str, function: Any) -> None:
    """Check that a rule can be called with the arguments that it will get.

    Raises
    ------
    ArgumentError, TypeError
        If it cannot. The error lists its parameters and the expected ones.
    """
    title, names, words = _RULES.get(what, (what, None, ""))
    title = f"the {title} of operator {op.op_type!r}"
    if not callable(function):
        raise ArgumentError(f"{title}: expected a function, got {function!r}")
    code = getattr(function, "__code__", None)
    if code is not None:
        title += f" ({Where((code.co_filename, code.co_firstlineno))})"
        if _takes_name(function, getattr(op, "__wrapped__", op)):
            raise ArgumentError(f"{title}: the rule has the name of its operator and would replace it: "
                                f"name it {function.__name__}_{what}")
    if what not in _RULES:  # the rule is a kernel, or one that only built-in operators declare
        return
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return
    parameters = [*signature.parameters.values()]
    kinds: Any = inspect.Parameter
    placed = [each for each in parameters if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    many = any(parameter.kind is kinds.VAR_POSITIONAL for parameter in parameters)
    expected = op.signature.input_names if names is None else names
    least, shown = sum(parameter.default is kinds.empty for parameter in placed), [*expected]
    fits = least <= len(expected) and (many or len(expected) <= len(placed))
    if names is None and op.signature.variadic:
        shown.append(f"*{op.signature.many}")
        fits = many and least <= len(expected)
    for i, each in enumerate(placed):
        fits = fits and (each.name not in expected or expected.index(each.name) == i)
    attributes = [name for name in op.signature.schema.names if name not in (op.signature.variadic, GIVEN_INPUTS)]
    if not fits:
        text = ", ".join(str(each) for each in [parameter.replace(annotation=kinds.empty) for parameter in parameters]
                         if "=" not in str(each) or each.kind is not kinds.KEYWORD_ONLY)
        shown += ["*", *attributes] if attributes and not (names is None and op.signature.variadic) else attributes
        raise ArgumentError(f"{title} takes ({text}), expected ({', '.join(shown)}){words}")
    known = [*op.signature.schema.names, *_RULE_KEYWORDS.get(what, ())]
    for each in parameters:
        if (each.kind is kinds.KEYWORD_ONLY and each.default is kinds.empty and each.name not in known
                and not op.signature.schema.open):
            raise ArgumentError(f"{title} is not called with a keyword {each.name!r}. {did_you_mean(each.name, known)}")


_CHECKED: weakref.WeakSet = weakref.WeakSet()


def check_keywords(method: Callable, names: Sequence[str], title: str) -> None:
    """Raise an error if a method cannot be called with these keywords."""
    function = getattr(method, "__func__", method)
    if function in _CHECKED:
        return
    try:
        signature = signature_of(method)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError:
        raise ArgumentError(f"{title} takes {signature}; it is called by keyword, so its parameters must be named "
                            f"{', '.join(names)}") from None
    _CHECKED.add(function)


#: Classes of members that are methods.
_METHODS = (FunctionType, staticmethod, classmethod)
#: Optional methods of a Prop, which the base class lacks.
RULES = ("gradient", "vmap", "jvp", "infer_shape_from_data", "to_onnx")
#: Methods of MXNet's symbols, with the name of the Prop's method.
_OTHERWISE = {"list_inputs": "list_arguments"}


def warn_misspelt(cls: type, base: type, methods: Sequence[str] | None = None) -> None:
    """Warn of methods of a user's class whose names resemble those of methods that the class does not override.

    Names with a prefix or suffix, such as ``forward_cpu`` and ``my_forward``, are taken as helpers. ``methods`` are the
    names to compare with, by default those of all methods of the base.
    """
    import difflib  # slow to load, and programs without users' operators need none

    known = [name for name in dir(base) if name[0] != "_" and callable(getattr(base, name))] + [*RULES] \
        if methods is None else methods
    missing = [name for name in known if getattr(cls, name, None) is getattr(base, name, None)]
    for name, value in vars(cls).items():
        if name.startswith("_") or name in known or not isinstance(value, _METHODS):
            continue
        close = difflib.get_close_matches(name.lower(), missing, n=1, cutoff=0.75 if methods is None else 0.8)
        near = _OTHERWISE.get(name, "".join(close))
        if near in missing and not (name.startswith(f"{near}_") or name.endswith(f"_{near}")):
            warn(f"class {cls.__name__}: {base.__name__} has no method {name!r}, so opreg never calls it. Did you mean "
                 f"{near!r}?")
