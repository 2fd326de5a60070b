"""Functions whose answers depend on settings of the process or the thread.

Code that is traced and calls one of them is traced again if the answer differs before a later run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

__all__ = ["READERS", "reads_setting"]

F = TypeVar("F", bound=Callable[..., Any])

#: By the identity of a function's code, the function that a trace asks for the setting.
READERS: dict[int, Callable[..., Any]] = {}


@overload
def reads_setting(function: F, /) -> F: ...


@overload
def reads_setting(*, answer: Callable[[], object]) -> Callable[[F], F]: ...


def reads_setting(function: Any = None, /, *, answer: Callable[[], object] | None = None) -> Any:
    """Declare that the answer of a function depends on a setting.

    Parameters
    ----------
    function : function
        Its arguments must be numbers or text.
    answer : function, optional
        A function without arguments, which is called in place of the declared one. It returns another value, by its
        text, after each change of the setting.

    Examples
    --------
    >>> speed = [1]
    >>> @reads_setting
    ... def current_speed():
    ...     return speed[0]
    >>> current_speed() == READERS[id(current_speed.__code__)]()
    True
    """
    def declare(declared: F) -> F:
        READERS[id(declared.__code__)] = answer or declared
        return declared

    return declare if function is None else declare(function)
