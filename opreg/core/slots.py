"""Slots: places in a lower layer for functions that a higher layer defines.

A lower layer needs arrays, graphs and built-in operators in a few places: an operator called with scalars makes arrays,
a recorded array becomes a graph. For these the lower layer has a slot, which a module of a higher layer fills when it
is imported. ``opreg/__init__.py`` says which modules fill slots; they are imported when an empty slot is first read.
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
    """Say which modules fill slots, by the provider names that slots use."""
    _PROVIDERS.update(providers)


def load(provider: str) -> None:
    """Import the modules of a provider."""
    import_all(_PROVIDERS[provider])


def import_all(modules: Iterable[str]) -> None:
    """Import modules with Python's garbage collector off: it would examine tens of thousands of objects again and
    again, all of which stay."""
    collects = gc.isenabled()
    try:
        gc.disable()
        for module in modules:
            importlib.import_module(module)
    finally:
        if collects:
            if not gc.get_freeze_count():  # objects that a program has frozen stay frozen
                gc.freeze()
                gc.unfreeze()  # moves all objects to the oldest generation without visiting them
            gc.enable()


class Slot:
    """A place for a function that another module defines.

    Parameters
    ----------
    provider : str
        The name of the modules that fill it.

    Attributes
    ----------
    function : callable
        The function; reading it from an empty slot imports the provider first.

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
        """Fill the slot with a function and return it, so that this is a decorator."""
        self.function = function
        return function

    def __getattr__(self, name: str) -> Any:  # called for missing attributes only
        if name == "function":
            load(self.provider)
        return object.__getattribute__(self, name)
