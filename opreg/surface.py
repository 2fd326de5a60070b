"""Namespaces of operator functions, ``nd`` and ``sym`` and their parts: closures with real signatures."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .calls import signature
from .errors import UnknownOperatorError, did_you_mean
from .op import Op
from .registry import find, names

__all__ = ["Namespace", "dressed"]


def dressed(function: Callable, op: Op, name: str, module: str) -> Callable:
    """Give a closure the name, documentation and signature of the operator it calls."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = op.doc
    function.__signature__ = signature(op)  # type: ignore[attr-defined]
    return function


class Namespace:
    """Operators whose names begin with one of some prefixes, as functions made at first use.

    Parameters
    ----------
    title : str
        How errors call it, such as ``nd.linalg``.
    prefixes : sequence of str
        Tried in order before a name.
    make : function of an operator and a name
        Makes the function users call.
    """

    def __init__(self, title: str, prefixes: Sequence[str], make: Callable[[Op, str], Callable]):
        self.__name__ = title
        self._prefixes, self._make = tuple(prefixes), make

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for prefix in self._prefixes:
            op = find(prefix + name)
            if op is not None:
                function = self._make(op, name)
                setattr(self, name, function)
                return function
        raise UnknownOperatorError(f"{self.__name__} has no operator {name!r}. {did_you_mean(name, dir(self))}")

    def __dir__(self) -> list[str]:
        return sorted({full[len(prefix):] for prefix in self._prefixes for full in names(prefix)
                       if full[len(prefix):].isidentifier()})

    def __repr__(self) -> str:
        return f"<operators {self.__name__}>"
