"""Primitive: an operator configured once and applied many times; and what makes classes of them from rows."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import ArgumentError, did_you_mean

__all__ = ["Primitive", "primitive"]


class Primitive:
    """An operator with its settings, to be called on tensors.

    Parameters
    ----------
    name : str
        How it is shown.

    Attributes
    ----------
    name : str
        The same.
    attrs : dict
        The settings.

    Examples
    --------
    >>> from . import MatMul
    >>> MatMul(transpose_b=True)
    Prim[MatMul]<transpose_a=False, transpose_b=True>
    """

    def __init__(self, name: str):
        self.name = name
        self.attrs: dict[str, Any] = {}

    def __call__(self, *inputs: Any) -> Any:
        raise NotImplementedError(f"Primitive {self.name} does not say how it is computed")

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Keep a further setting; it is shown, and changes nothing."""
        self.attrs[name] = value
        return self

    def clone(self) -> Primitive:
        """One like this."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.attrs.items())
        return f"Prim[{self.name}]" + (f"<{shown}>" if shown else "")


def primitive(name: str, function: Callable, settings: Mapping[str, Any] | None = None, doc: str = "",
              check: Callable[..., Mapping[str, Any] | None] | None = None) -> type[Primitive]:
    """A class of primitives.

    Parameters
    ----------
    name : str
        Of the class.
    function : callable
        Of the inputs by position and the settings by keyword.
    settings : mapping
        Constructor parameters in order, with defaults; ``...`` stands for none.
    doc : str
        What it computes.
    check : callable
        Of the settings by keyword, when one is made: refuses wrong ones, and may return how they are shown.
    """
    kind = inspect.Parameter
    defaults = dict(settings or {})
    signature = inspect.Signature([kind(each, kind.POSITIONAL_OR_KEYWORD, default=kind.empty if value is ... else value)
                                   for each, value in defaults.items()])

    class Made(Primitive):
        def __init__(self, *args: Any, **keywords: Any):
            super().__init__(name)
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                wrong = next((each for each in keywords if each not in defaults), "")
                hint = f". {did_you_mean(wrong, defaults)}" if wrong else ""
                raise ArgumentError(f"{name}: {error}{hint}") from None
            bound.apply_defaults()
            self.settings = dict(bound.arguments)
            shown = check(**self.settings) if check is not None else None
            self.attrs = dict(self.settings if shown is None else shown)
            for each, value in self.settings.items():
                setattr(self, each, value)

        def __call__(self, *inputs: Any, **keywords: Any) -> Any:
            return function(*inputs, **keywords, **self.settings)

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = doc or (inspect.getdoc(function) or "").partition("\n\nExamples\n")[0]
    Made.__module__ = __package__
    Made.__init__.__signature__ = signature  # type: ignore[attr-defined]
    Made.__signature__ = signature  # type: ignore[attr-defined]
    return Made
