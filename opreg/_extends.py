"""Names of MindSpore's ``_extends`` that programs use: a decorator of the constructors of Cells."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .aliases import inner
from .core.parameters import signature_of
from .errors import ArgumentError

__all__ = ["cell_attr_register"]

if not TYPE_CHECKING:
    __getattr__ = inner(__name__)


def cell_attr_register(fn: Callable | None = None, attrs: str | Sequence[str] | None = None) -> Callable:
    """Store the arguments that a Cell is made with as the text ``cell_init_args``.

    Parameters
    ----------
    fn : function
        ``__init__`` of a Cell; without it the decorator is returned.
    attrs : str or list of str, optional
        Attributes whose values are stored; by default the arguments of the call are.

    Raises
    ------
    ValueError
        When ``attrs`` is neither.

    Examples
    --------
    >>> class Line:
    ...     @cell_attr_register
    ...     def __init__(self, slope, shift=0):
    ...         self.slope = slope
    >>> Line(2, shift=1).cell_init_args
    'Line[2, 1]'
    """
    names = [attrs] if isinstance(attrs, str) else attrs
    if names is not None and not (isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)):
        raise ArgumentError(f"cell_attr_register: attrs must be text or a list of texts, got {attrs!r}")

    def wrap(init: Callable) -> Callable:
        signature = signature_of(init)

        @functools.wraps(init)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            values = ([getattr(self, name) for name in names if hasattr(self, name)] if names is not None else
                      list(signature.bind(self, *args, **kwargs).arguments.values())[1:])
            self.cell_init_args = f"{type(self).__name__}{values}"

        return wrapped

    return wrap if fn is None else wrap(fn)
