"""Patches: methods that a program gives to a class of arrays, tensors or symbols. A patch discards existing traces,
and tensors in traces get the methods, too."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import is_ours
from .held_values import ABSENT

__all__ = ["Patched", "copy_patches"]


class _Original(NamedTuple):
    """An attribute before a program replaced it: the one of the class of tensors, and the one that the class of traced
    tensors defines itself."""

    first: Any
    own: Any
    shared: bool


class _ReplacedMethod:
    """A method of tensors that a program has replaced, where tensors of traces have one of their own."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is not None:
            tensor._trace.leave(f"it uses Tensor.{self.name}, which was replaced")
        return self


class Patched(type):
    """The type of classes of values: when a program replaces an attribute of one, graphs are traced anew."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if is_ours(sys._getframe(1)):
            super().__setattr__(name, value)
            return
        before = inspect.getattr_static(cls, name, ABSENT)
        super().__setattr__(name, value)
        _patch(cls, name, before)

    def __delattr__(cls, name: str) -> None:
        if is_ours(sys._getframe(1)):
            super().__delattr__(name)
            return
        before = inspect.getattr_static(cls, name, ABSENT)
        super().__delattr__(name)
        _patch(cls, name, before)


#: Functions that drop traces. The module ``invalidation`` adds one, since this module cannot import it.
RENEWALS: list[Callable[[], None]] = []
#: The class of tensors in traces, by the class of tensors.
_FOLLOWERS: dict[type, type] = {}
_ORIGINALS: dict[str, _Original] = {}


def copy_patches(tensors: type, traced: type) -> None:
    """From now on, copy attributes that a program sets on the class of tensors to the class of tensors in traces.

    A new method, or one that both classes share, is copied. A method that the class of traced tensors defines itself
    is replaced by one that makes a compiled function run as Python.
    """
    _FOLLOWERS[tensors] = traced


def _patch(cls: type, name: str, before: object) -> None:
    """Drop traces after a program has set or deleted an attribute of a class, and set or delete it on the class of
    traced tensors, too."""
    for renew in RENEWALS:
        renew()
    traced = _FOLLOWERS.get(cls)
    if traced is None:
        return
    original = _ORIGINALS.setdefault(name, _Original(
        before, vars(traced).get(name, ABSENT), inspect.getattr_static(traced, name, ABSENT) is before))
    now = inspect.getattr_static(cls, name, ABSENT)
    if now is not original.first:
        setattr(traced, name, now if original.shared else _ReplacedMethod(name))
        return
    del _ORIGINALS[name]
    if original.own is not ABSENT:
        setattr(traced, name, original.own)
    elif name in vars(traced):
        delattr(traced, name)
