"""Keys of caches, which are equal only for values that mean the same.

In Python, ``1``, ``1.0`` and ``True`` are equal, and so are ``0.0`` and ``-0.0``. Their keys differ. A key holds its
value rather than an address, which another object may have later. ``Same`` is the key of an object that is compared by
identity, and holds it.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from .cache import Recent

__all__ = ["PLAIN", "Same", "cached_by_value", "exact", "has_fixed_key"]

R = TypeVar("R")

#: Classes whose equal values mean the same.
PLAIN = frozenset({int, bool, str, bytes, type, type(None), type(Ellipsis)})


def exact(value: object) -> Hashable:
    """The key of a value. Keys are equal only for values of the same class that mean the same.

    The key of a list is that of its current elements; ``has_fixed_key`` tells whether a key may change.

    Raises
    ------
    TypeError
        For a value without a key: it is mutable, or its class is unknown.

    Examples
    --------
    >>> exact((1, 0)) == exact((1, 0)), exact((1, 0)) == exact((True, False)), exact(0.0) == exact(-0.0)
    (True, False, False)
    >>> exact({})
    Traceback (most recent call last):
        ...
    TypeError: a dict has no key
    """
    kind = value.__class__
    if kind in PLAIN:
        return kind, value
    if kind is float:  # 0.0 == -0.0, and NaN != NaN
        return kind, value if value and value == value else struct.pack("d", value)
    if kind is tuple or kind is list:
        kinds = tuple(map(type, value))  # type: ignore[call-overload]  # a tuple or list
        if PLAIN.issuperset(kinds):
            return kind, None, kinds, tuple(value)  # type: ignore[arg-type]
        return kind, *map(exact, value)  # type: ignore[call-overload]
    if kind is complex:
        return kind, struct.pack("dd", value.real, value.imag)  # type: ignore[attr-defined]
    if kind is slice:
        return kind, exact(value.start), exact(value.stop), exact(value.step)  # type: ignore[attr-defined]
    if kind is range:
        return kind, repr(value)
    if kind is frozenset:
        return kind, frozenset(map(exact, value))  # type: ignore[call-overload]
    if isinstance(value, np.dtype):
        return np.dtype, value
    if isinstance(value, np.generic) and value.dtype.kind != "O":
        return kind, value.dtype.str, value.tobytes()
    if isinstance(value, enum.Enum):
        return kind, exact(value.value)
    raise TypeError(f"a {kind.__name__} has no key")


class Same:
    """The key of an object that is compared by identity. It needs no hash of the object, and holds it.

    Examples
    --------
    >>> value = [1]
    >>> Same(value) == Same(value), Same(value) == Same([1]), {Same(value): "found"}[Same(value)]
    (True, False, 'found')
    """

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Same and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def has_fixed_key(value: object) -> bool:
    """Whether a value has a key that never changes.

    Examples
    --------
    >>> has_fixed_key((1, "same", (2.0, None))), has_fixed_key(([1],)), has_fixed_key(object())
    (True, False, False)
    """
    kind = value.__class__
    if kind is tuple:
        return all(map(has_fixed_key, value))  # type: ignore[call-overload]  # a tuple
    if kind is list:
        return False
    try:
        exact(value)
    except TypeError:
        return False
    return True


def cached_by_value(limit: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A decorator that caches the results of a function by the keys of its arguments; see ``exact``.

    Examples
    --------
    >>> @cached_by_value(8)
    ... def shown(x):
    ...     return repr(x)
    >>> shown(1), shown(True), shown(1.0), shown(-0.0), shown(0.0)
    ('1', 'True', '1.0', '-0.0', '0.0')
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        name = function.__qualname__.partition(".<locals>")[0]
        cache = Recent(limit, f"{function.__module__.removeprefix('opreg.')}.{name}")

        @functools.wraps(function)
        def cached_call(*args: object) -> R:
            key = exact(args)
            result = cache[key]
            if result is None:
                result = function(*args)
                cache.keep(key, result)
            return result

        return cached_call

    return decorate
