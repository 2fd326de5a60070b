"""The registry: every operator by name, and the decorator that declares one.

An operator is declared by a function: its positional parameters are the inputs, its keyword-only ones the attributes
with types and defaults, its docstring the documentation. A body is not needed.
"""

from __future__ import annotations

import copyreg
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..aliases import inner
from ..errors import ArgumentError, UnknownOperatorError, did_you_mean
from .attrs import Schema
from .cache import cached
from .invalidation import invalidate
from .op import Op
from .parameters import parameters_of
from .setting_reads import reads_setting
from .slots import load

__all__ = ["REGISTERED", "count_of_names", "declare", "register", "register_while_held", "alias", "get", "find",
           "unknown_operator", "user_operator", "names", "nearest", "on_names", "operators", "ops"]

__getattr__ = inner(__name__)  # functions of MXNet's module ``registry``, which registers classes

_OPS: dict[str, Op] = {}
#: The operators registered so far, for modules that add to some when imported; ``find`` imports the others first.
REGISTERED: Mapping[str, Op] = types.MappingProxyType(_OPS)
#: Operators that objects have for themselves, by names that no other operator gets.
_HELD: weakref.WeakValueDictionary[str, Op] = weakref.WeakValueDictionary()
_RENEWALS: list[Callable[[Sequence[str]], None]] = []
_loading: list[bool] = []  # not empty from the moment the import of the built-in operators begins


def register(op: Op, *aliases: str) -> Op:
    """Register an operator under its name and aliases.

    A later registration of the same name replaces it: for calls by that name, gradient rules that call it, symbols
    bound from then on, and everything cached. Registering the earlier operator again brings it back.
    """
    op.aliases = tuple(dict.fromkeys((*op.aliases, *aliases)))
    before = [(name, _OPS.get(name)) for name in (op.name, *aliases)]
    _OPS.update(dict.fromkeys((op.name, *aliases), op))
    vars(ops).clear()
    if op.successor is not None:
        op.replace(None)
    for name, earlier in before:
        if earlier is not None and earlier is not op:
            if name == earlier.name:
                earlier.replace(op)
            else:  # an operator with several names loses this one
                invalidate(earlier)
    for renew in _RENEWALS:
        renew([name for name, _ in before])
    return op


def register_while_held(op: Op) -> Op:
    """Register an operator under a name that is new, until nothing holds it any more."""
    _HELD[op.name] = op
    return op


def on_names(renew: Callable[[Sequence[str]], None]) -> None:
    """Have a function called at every registration from now on, with the registered names."""
    _RENEWALS.append(renew)


def alias(op: Op, *names: str) -> None:
    """Give a registered operator further names."""
    register(op, *names)


def declare(function: Callable | None = None, /, *, name: str | None = None, aliases: Sequence[str] = (),
            **options: Any) -> Any:
    """Declare and register an operator from a function's signature.

    Parameters
    ----------
    function : callable
        Positional parameters are inputs, keyword-only ones attributes. ``*data`` declares any number of inputs,
        counted by the attribute ``num_args`` unless ``variadic`` names another.
    name : str
        Registered name; the function's name by default.
    aliases : sequence of str
        Further names.
    **options
        See ``Op``. ``auxiliary`` lists positional parameters that are auxiliary states.

    Returns
    -------
    Op
        The record, to which rules are attached.

    Examples
    --------
    >>> @declare(name="_example_twice")
    ... def twice(data, *, times: int = 2):
    ...     "A number of times the data."
    >>> twice.list_arguments(), twice.signature.schema.names
    (['data'], ('times',))
    """
    if function is None:
        return lambda function: declare(function, name=name, aliases=aliases, **options)
    parameters = parameters_of(function)
    positional = parameters.positional
    auxiliary = options.get("auxiliary", ())
    arguments: Any = [input_name for input_name in positional if callable(auxiliary) or input_name not in auxiliary]
    if parameters.variadic:
        count = options.setdefault("variadic", "num_args")
        fixed = tuple(arguments)

        def arguments(**attrs: Any) -> list[str]:
            return [*fixed, *(f"arg{i}" for i in range(attrs[count]))]

    options.setdefault("arguments", arguments)
    options.setdefault("input_names", positional)
    op = Op(name or function.__name__, Schema.of(function), doc=inspect.getdoc(function) or "", **options)
    if op.where is not None:  # a user's
        op.signature.schema.read()
        op.traits = op.traits.but(capturable=bool(op.traits.capturable))
    return register(op, *aliases)


def _load() -> None:
    """Import the built-in operators and their faster kernels, once; a failed import is tried again."""
    if not _loading:
        _loading.append(True)
        try:
            load("operators")
        except BaseException:
            _loading.clear()
            raise


def find(name: str) -> Op | None:
    """The operator of that name, or None."""
    if not name.startswith("custom."):  # a user's operator does not depend on the built-in ones
        _load()
    return _OPS.get(name) or _HELD.get(name)


def count_of_names() -> int:
    """The number of registered names.

    Examples
    --------
    >>> count_of_names() > 1000
    True
    """
    _load()
    return len(_OPS)


@reads_setting(answer=count_of_names)
def unknown_operator(message: str) -> UnknownOperatorError:
    """The error for a name without an operator. A trace notes it: an operator may be registered under the name later.
    """
    return UnknownOperatorError(message)


@reads_setting(answer=count_of_names)
def get(name: str, what: str = "operator") -> Op:
    """The operator of that name. A user's ``softmax`` is ``custom.softmax``; ``softmax`` finds it too if no built-in
    operator has that name.

    Raises
    ------
    UnknownOperatorError
        With the nearest names.

    Examples
    --------
    >>> get("Convolution")
    <operator Convolution>
    """
    if not isinstance(name, str):
        raise ArgumentError(f"expected the name of an {what}, got {name!r}")
    op = find(name) or _OPS.get(f"custom.{name}")
    if op is None:
        raise unknown_operator(f"unknown {what} {name!r}. {nearest(name)}")
    return op


def user_operator(op_type: Any) -> Op:
    """A user's operator by its ``op_type``.

    Raises
    ------
    UnknownOperatorError
        With the nearest names.
    """
    if op_type is None:
        raise ArgumentError("Custom: the keyword op_type is required: the name an operator was registered by, as in "
                            "Custom(x, op_type='name')")
    op = find(f"custom.{op_type}")
    if op is None:
        load("users' operators")  # opreg registers some operators of this kind itself
        op = find(f"custom.{op_type}")
    if op is None:
        if not isinstance(op_type, str):
            raise unknown_operator(f"Custom: op_type is the name an operator was registered by, got {op_type!r}")
        options = [name[len("custom."):] for name in names("custom.")]
        raise unknown_operator(f"there is no custom operator {op_type!r}. " + (
            f"A built-in one has the name: nd.{op_type}, sym.{op_type}" if find(str(op_type)) else
            f"{did_you_mean(op_type, options)} @mx.operator.register({op_type!r}) above a Prop registers one"))
    return op


def nearest(name: str, others: Iterable[str] = ()) -> str:
    """The sentence that offers the operators, and other functions, nearest to a name; internal operators only for an
    internal name."""
    _load()
    return _nearest(name, tuple(others), len(_OPS))


@cached(256)
def _nearest(name: str, others: tuple[str, ...], count: int) -> str:
    """``nearest`` for ``count`` registered names; cached, since programs look up the same missing name often."""
    internal, of_users = name.startswith("_"), name.startswith("custom.")
    return did_you_mean(name, [candidate for candidate in (*names(), *others) if candidate.startswith("_") == internal
                               and (of_users or not candidate.startswith("custom."))])


def names(prefix: str = "") -> list[str]:
    """All names, aliases included, sorted."""
    _load()
    return sorted(name for name in list(_OPS) if name.startswith(prefix))  # another thread may register one


def operators() -> Iterator[Op]:
    """Every operator once, in the order of registration."""
    _load()
    return iter(dict.fromkeys(list(_OPS.values())))


class _Operators:
    """The registry as attributes: ``ops.softmax(x, axis=1)``. Gradient rules call operators this way.

    Examples
    --------
    >>> ops.Convolution
    <operator Convolution>
    """

    def __getattr__(self, name: str) -> Op:
        if name.startswith("__"):
            raise AttributeError(name)
        op = self.__dict__[name] = get(name)  # stored until the next registration, which clears the dict
        return op


ops = _Operators()

# An operator is pickled by its name: the name stands for the same operator in every process that registers it.
copyreg.pickle(Op, lambda op: (get, (op.name,)))
