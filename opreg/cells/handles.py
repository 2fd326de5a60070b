"""Handles of registered hooks, with which users remove them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from ..core.mode import Mode, Recording, Scope
from ..core.parameters import signature_of
from ..errors import ArgumentError, note, user_line, warn
from .context_settings import check_setting
from .state import STATE

__all__ = ["Hook", "Hooks", "HookHandle", "HookOwner", "convention", "running_hook", "takes_count", "KINDS"]

#: The kinds of hooks of a Cell, in the order in which they run.
KINDS = ("forward_pre", "forward", "backward_pre", "backward")
_NUMBERS = itertools.count()


class Hook:
    """A registered function with its options."""

    __slots__ = ("function", "with_kwargs", "always_call", "convention", "where", "__weakref__")

    def __init__(self, function: Callable, with_kwargs: bool = False, always_call: bool = False,
                 convention: str | None = None):
        self.function, self.with_kwargs, self.always_call = function, with_kwargs, always_call
        self.convention, self.where = convention, user_line()

    def repeats(self, other: Hook) -> bool:
        """Whether the same line registered the same code before."""
        return self.where == other.where and _code(self.function) == _code(other.function)

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"{name} ({self.where})" if self.where else name


def _code(function: Callable) -> object:
    """A key shared by all functions that one line makes, since a ``lambda`` makes a new one each time."""
    return getattr(function, "__code__", function)


def takes_count(function: Callable[..., Any], count: int) -> bool:
    """Whether a function accepts this many arguments."""
    try:
        signature_of(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


class running_hook(Recording):
    """A context in which a hook runs, in the mode of its Cell. An exception gets a note that names the hook; if the
    hook does not take its arguments, a second one lists them."""

    __slots__ = ("_kind", "_hook", "_owner", "_arguments")

    def __init__(self, kind: str, hook: Hook, owner: object, arguments: tuple[str, ...]):
        self._choice = None, getattr(owner, "training", None)
        self._kind, self._hook, self._owner, self._arguments = kind, hook, owner, arguments

    def __exit__(self, *raised: Any) -> None:
        Recording.__exit__(self)  # without ``super()``, which takes longer
        error = raised[1]
        if isinstance(error, Exception):
            note(error, f"in the {self._kind} {self._hook} of {getattr(self._owner, 'path', self._owner)}")
            if isinstance(error, TypeError) and not takes_count(self._hook.function, len(self._arguments)):
                note(error, f"a {self._kind} takes {len(self._arguments)} argument{'s' * (len(self._arguments) > 1)}: "
                            f"{', '.join(self._arguments)}")


class Hooks(dict[int, Hook]):
    """Hooks of one kind by number, in the order in which they run."""

    __slots__ = ("__weakref__",)


class HookOwner(Protocol):
    """An owner of hooks: a Cell, a Parameter, or a tensor."""

    def _touch(self) -> None: ...


class HookHandle:
    """The handle of a registered hook: ``remove()``, or leaving a ``with`` block, removes the hook.

    It does not keep the hook's Cell, Parameter or tensor alive.
    """

    def __init__(self, owner: HookOwner, hooks: Hooks, number: int):
        self._owner, self._hooks, self.hook_id = weakref.ref(owner), weakref.ref(hooks), number

    @classmethod
    def add(cls, owner: HookOwner, hooks: Hooks, function: Callable, prepend: bool = False, **options: Any
           ) -> HookHandle:
        """Register a function."""
        if not callable(function):
            raise ArgumentError(f"Expected a callable hook function, but got {type(function).__name__}.")
        if getattr(function, "compiled", False):
            raise ArgumentError("a hook is a Python function; a compiled function has no values that it could pass")
        number, hook = next(_NUMBERS), Hook(function, **options)
        if STATE.inside and STATE.trace is None and any(hook.repeats(hook_before) for hook_before in hooks.values()):
            warn(f"the hook {hook} is registered on {getattr(owner, 'path', owner)} each time that a Cell runs, in "
                 f"addition to the hooks of earlier runs: register it in __init__, or remove it with its handle")
        hooks[number] = hook
        if prepend:
            later_hooks = [(key, hooks.pop(key)) for key in list(hooks) if key != number]
            hooks.update(later_hooks)
        owner._touch()
        handle = cls(owner, hooks, number)
        # the owner is a Cell or Parameter, and the hook is not part of the traced graph
        if STATE.trace is not None and hasattr(owner, "_version"):
            STATE.trace.root.registered.append(handle)
        return handle

    @property
    def registered(self) -> bool:
        """Whether the hook is still registered."""
        return self.hook_id in (self._hooks() or ())

    def remove(self) -> None:
        """Remove the hook, if it is still registered."""
        hooks, owner = self._hooks(), self._owner()
        if hooks is not None and hooks.pop(self.hook_id, None) is not None and owner is not None:
            owner._touch()

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        hooks = self._hooks()
        return f"<handle of hook {hooks[self.hook_id]}>" if hooks and self.hook_id in hooks else "<handle, removed>"


class convention(Scope):
    """A context that sets the convention of backward hooks registered in it, ``document`` or ``2.4``.

    Examples
    --------
    >>> with convention("2.4"):
    ...     pass
    """

    _chosen = ("convention",)

    def __init__(self, name: str):
        check_setting("convention", name)
        self._name, self._key = name, ("convention", name)

    def _next(self, mode: Mode) -> Mode:
        return mode.but(convention=self._name)

    def _new_scope(self) -> convention:
        return convention(self._name)
