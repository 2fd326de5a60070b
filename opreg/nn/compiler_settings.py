"""Settings of MindSpore's compiler, accepted without effect."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, overload

from ..cells.context_settings import get_context, set_context
from ..core.named_errors import name_errors
from ..errors import ArgumentError, did_you_mean

__all__ = ["JitConfig", "add_flags", "compile_config", "constexpr", "jit_class", "lazy_inline", "recompute",
           "set_deterministic", "set_device", "set_recursion_limit"]

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_LEVELS = ("", "O0", "O1", "O2")


class JitConfig:
    """Settings of a compilation; stored in ``jit_config_dict`` without effect.

    Examples
    --------
    >>> JitConfig(jit_level="O1").jit_config_dict["jit_level"]
    'O1'
    """

    def __init__(self, jit_level: str = "", exc_mode: str = "auto", jit_syntax_level: str = "",
                 debug_level: str = "RELEASE", infer_boost: str = "off", **settings: object):
        if jit_level not in _LEVELS:
            raise ArgumentError(f"JitConfig: jit_level {jit_level!r}. {did_you_mean(str(jit_level), _LEVELS[1:])}")
        self.jit_config_dict = {"jit_level": jit_level, "exc_mode": exc_mode, "jit_syntax_level": jit_syntax_level,
                                "debug_level": debug_level, "infer_boost": infer_boost, **settings}


class _CompilerSettings:
    """MindSpore's settings of its compiler. ``CHECK_BPROP`` is ``set_context(check_bprop=...)``; others are stored and
    have no effect."""

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return ""  # as in MindSpore, for each setting that is not set

    @property
    def CHECK_BPROP(self) -> bool:
        """Whether a bprop that returns another shape or dtype raises an error."""
        return bool(get_context("check_bprop"))

    @CHECK_BPROP.setter
    def CHECK_BPROP(self, value: bool | int | str) -> None:
        set_context(check_bprop=bool(value))


#: The settings of the compiler, as attributes.
compile_config = _CompilerSettings()


def jit_class(cls: C) -> C:
    """Return the class: every class may be used in compiled functions.

    Examples
    --------
    >>> @jit_class
    ... class Pair:
    ...     pass
    """
    if not isinstance(cls, type):
        raise ArgumentError(f"Decorator jit_class can only be used for class type, but got {cls}.")
    return cls


def lazy_inline(fn: F | None = None, attrs: object = None, policy: str | None = None) -> F | Callable[[F], F]:
    """Return the constructor of a Cell: it decides in MindSpore when the Cell's graph becomes part of another one.

    Examples
    --------
    >>> class Block:
    ...     @lazy_inline
    ...     def __init__(self):
    ...         self.width = 2
    >>> Block().width
    2
    """
    if policy not in (None, "front"):
        raise ArgumentError(f"lazy_inline: policy must be None or 'front', got {policy!r}")
    return fn if fn is not None else lambda constructor: constructor


@overload
def constexpr(fn: F, get_instance: bool = True, name: str | None = None, reuse_result: bool = True,
              check: bool = True) -> F: ...


@overload
def constexpr(fn: None = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True,
              check: bool = True) -> Callable[[F], F]: ...


def constexpr(fn: F | None = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True,
              check: bool = True) -> F | Callable[[F], F]:
    """Return the function: every function of Python values may run while a function is compiled.

    Examples
    --------
    >>> @constexpr
    ... def half(n):
    ...     return n // 2
    >>> half(5)
    2
    """
    return fn if fn is not None else lambda function: function


@overload
def add_flags(fn: F, **flags: Any) -> F: ...


@overload
def add_flags(fn: None = None, **flags: Any) -> Callable[[F], F]: ...


def add_flags(fn: F | None = None, **flags: Any) -> F | Callable[[F], F]:
    """Remember flags of a Cell or function; also a decorator.

    Examples
    --------
    >>> @add_flags(has_effect=True)
    ... def identity(x):
    ...     return x
    >>> identity._func_graph_flags
    {'has_effect': True}
    """
    if fn is None:
        return functools.partial(add_flags, **flags)
    if hasattr(fn, "add_flags"):
        return fn.add_flags(**flags)
    fn._func_graph_flags = {**getattr(fn, "_func_graph_flags", {}), **flags}  # type: ignore[attr-defined]
    return fn


def recompute(block: Callable[..., R], *args: Any, use_reentrant: bool = True, output_recompute: bool = False,
              early_stop: bool = True,
              context_fn: Callable[[], tuple[AbstractContextManager[object], object]] | None = None, **kwargs: Any
             ) -> R:
    """Call a Cell or function; values that its gradient needs are stored, so nothing is computed twice.

    Parameters
    ----------
    block : Cell or callable
        A Cell or function of ``args`` and ``kwargs``.
    context_fn : callable or None
        Returns two context managers. The call runs in the first; the second is not used.

    Returns
    -------
    The result of ``block``.

    Examples
    --------
    >>> recompute(abs, -2)
    2
    """
    if not callable(block):
        raise ArgumentError(f"recompute: expected a Cell or a function, got {type(block).__name__}")
    with nullcontext() if context_fn is None else context_fn()[0]:
        return block(*args, **kwargs)


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Check the depth of calls in compiled functions, which here is Python's: ``sys.setrecursionlimit`` sets it."""
    limit: object = recursion_limit
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ArgumentError(f"set_recursion_limit: expected an int above 0, got {limit!r}")


def set_deterministic(deterministic: bool) -> None:
    """Accepted without effect, as ``set_context(deterministic="ON")``."""
    if not isinstance(deterministic, bool):
        raise ArgumentError(f"set_deterministic: expected a bool, got {type(deterministic).__name__}")
    set_context(deterministic="ON" if deterministic else "OFF")


def set_device(device_target: str, device_id: int = 0) -> None:
    """Set the device of new tensors, as ``set_context`` does."""
    set_context(device_target=device_target, device_id=device_id)


name_errors(__name__, globals(), __all__)
