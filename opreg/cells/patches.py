"""Patches: methods that a program gives to the class of tensors, which the tensors of traces get, too."""

from __future__ import annotations

import inspect
import sys
from typing import Any, NamedTuple

from ..core.comparisons import ABSENT
from ..core.invalidation import renew
from ..errors import is_ours

__all__ = ["Patched", "follow"]


class _Original(NamedTuple):
    """An attribute before a program replaced it: that of the class of tensors, and the own one of the class of traced
    tensors."""

    first: Any
    own: Any
    shared: bool


class _Replaced:
    """A method of tensors that a program has replaced, where tensors of traces have one of their own."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is not None:
            tensor._trace.leave(f"it uses Tensor.{self.name}, which was replaced")
        return self


class Patched(type):
    """The type of tensor classes: when a program replaces an attribute of one, functions are compiled anew."""

    def __setattr__(cls, name: str, value: Any) -> None:
        before = inspect.getattr_static(cls, name, ABSENT)
        super().__setattr__(name, value)
        if not is_ours(sys._getframe(1)):
            _patch(cls, name, before)

    def __delattr__(cls, name: str) -> None:
        before = inspect.getattr_static(cls, name, ABSENT)
        super().__delattr__(name)
        if not is_ours(sys._getframe(1)):
            _patch(cls, name, before)


#: The class of tensors, by that of tensors of traces.
_FOLLOWERS: dict[type, type] = {}
_ORIGINALS: dict[str, _Original] = {}


def follow(tensors: type, traced: type) -> None:
    """From now on give tensors of traces the attributes that a program gives to tensors.

    A method that both have alike, or that is new, is taken over; in the place of one that tensors of traces have for
    themselves, the new one leaves a compiled function to Python.
    """
    _FOLLOWERS[tensors] = traced


def _patch(cls: type, name: str, before: object) -> None:
    """Follow a program that has set or deleted an attribute of a class."""
    renew()
    traced = _FOLLOWERS.get(cls)
    if traced is None:
        return
    original = _ORIGINALS.setdefault(name, _Original(
        before, vars(traced).get(name, ABSENT), inspect.getattr_static(traced, name, ABSENT) is before))
    now = inspect.getattr_static(cls, name, ABSENT)
    if now is not original.first:
        setattr(traced, name, now if original.shared else _Replaced(name))
        return
    del _ORIGINALS[name]
    if original.own is not ABSENT:
        setattr(traced, name, original.own)
    elif name in vars(traced):
        delattr(traced, name)
