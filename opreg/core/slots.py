"""Slots: places on a floor for functions that are defined on one above it.

Arrays, graphs and built-in operators are asked for below them in a few places: an operator called with plain numbers
makes arrays, a recorded array becomes a graph. There the floor below has a slot, which a module above fills when it is
imported. The front door says who those modules are; they are imported when a slot that is empty is asked for.
"""

from __future__ import annotations

import gc
import importlib

TYPE_CHECKING = False  # the module typing takes longer to load than all of this one
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["Slot", "import_all", "install", "load"]

_PROVIDERS: dict[str, Sequence[str]] = {}


def install(providers: Mapping[str, Sequence[str]]) -> None:
    """Say which modules fill slots, by what slots call them together."""
    _PROVIDERS.update(providers)


def load(provider: str) -> None:
    """Import the modules of a provider."""
    import_all(_PROVIDERS[provider])


def import_all(modules: Iterable[str]) -> None:
    """Import modules, while Python's collector rests: it would look again and again at tens of thousands of objects
    that all stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        for module in modules:
            importlib.import_module(module)
    finally:
        if collects:
            if not gc.get_freeze_count():  # a user's stay frozen
                gc.freeze()
                gc.unfreeze()  # now they are of the oldest generation, without a look at each
            gc.enable()


class Slot:
    """A place for a function.

    Parameters
    ----------
    provider : str
        Who fills it.

    Attributes
    ----------
    function : callable
        What it holds; its provider is loaded where it holds nothing yet.

    Examples
    --------
    >>> slot = Slot("arrays")
    >>> @slot.provide
    ... def twice(number):
    ...     return number * 2
    >>> slot.function(3)
    6
    """

    __slots__ = ("provider", "function")
    function: Any

    def __init__(self, provider: str):
        self.provider = provider

    def provide(self, function: F) -> F:
        """Put a function there; returns it, so that this is a decorator."""
        self.function = function
        return function

    def __getattr__(self, name: str) -> Any:  # of what is not there yet
        if name == "function":
            load(self.provider)
        return object.__getattribute__(self, name)
