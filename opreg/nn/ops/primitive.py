"""Primitive: an operator configured once and applied many times; and what makes classes of them from rows."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ...cells.settings import constexpr as constexpr  # programs look for it here
from ...errors import ArgumentError, did_you_mean
from .primitive_docs import DOCS

__all__ = ["Primitive", "PrimitiveWithInfer", "adder", "prim_attr_register", "primitive"]

#: Settings that say nothing of what is computed.
_NOT_SHOWN = ("input_names", "output_names")


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
        self.name = self.instance_name = name
        self.attrs: dict[str, Any] = {}

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        raise NotImplementedError(f"Primitive {self.name} does not say how it is computed")

    def add_prim_attr(self, name: str, value: object) -> Self:
        """Keep a further setting; it is shown, and changes nothing."""
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Self:
        """Forget a setting that was kept with ``add_prim_attr``."""
        self.attrs.pop(name, None)
        return self

    def set_prim_instance_name(self, name: str) -> Self:
        """Give this one a name of its own, which changes nothing."""
        self.instance_name = name
        return self

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Name inputs and outputs; these settings are not shown."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def clone(self) -> Self:
        """One like this."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.attrs.items() if name not in _NOT_SHOWN)
        return f"Prim[{self.name}]" + (f"<{shown}>" if shown else "")


class PrimitiveWithInfer(Primitive):
    """A primitive that declares its results: derive, and define ``infer_shape`` and ``infer_dtype``.

    Examples
    --------
    >>> class Same(PrimitiveWithInfer):
    ...     @prim_attr_register
    ...     def __init__(self, scale=2.0):
    ...         pass
    ...     def infer_shape(self, x):
    ...         return x
    ...     def __call__(self, x):
    ...         return x * self.scale
    >>> Same(3.0), Same(3.0).infer_shape((2, 3))
    (Prim[Same]<scale=3.0>, (2, 3))
    """

    def infer_shape(self, *shapes: Any) -> Any:
        """The shape of the result, or of several, for those of the inputs; None where nothing is known."""

    def infer_dtype(self, *dtypes: Any) -> Any:
        """The dtype of the result, or of several, for those of the inputs; None where nothing is known."""

    def infer_value(self, *values: Any) -> Any:
        """The result for values that are known; None where it is not."""

    def __infer__(self, *inputs: Mapping[str, Any]) -> dict[str, Any]:
        """All three at once, of mappings with ``dtype``, ``shape`` and ``value``."""
        return {what: getattr(self, f"infer_{what}")(*[value[what] for value in inputs])
                for what in ("dtype", "shape", "value")}


def prim_attr_register(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate the ``__init__`` of a primitive: its name is that of the class, and its parameters are its settings."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def init(self: Primitive, *args: Any, **keywords: Any) -> None:
        Primitive.__init__(self, type(self).__name__)
        bound = signature.bind(self, *args, **keywords)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
            setattr(self, name, value)
        function(self, *args, **keywords)

    return init


def primitive(name: str, function: Callable, settings: Mapping[str, object] | None = None, doc: str = "",
              check: Callable[..., Mapping[str, object] | None] | None = None) -> type[Primitive]:
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
        Documentation of its computation.
    check : callable
        Of the settings by keyword, when one is made: refuses wrong ones, and may return how they are shown.
    """
    kind = inspect.Parameter
    defaults = dict(settings or {})
    signature = inspect.Signature([kind(setting, kind.POSITIONAL_OR_KEYWORD,
                                        default=kind.empty if value is ... else value)
                                   for setting, value in defaults.items()])

    class Configured(Primitive):
        def __init__(self, *args: Any, **keywords: Any):
            super().__init__(name)
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                wrong = next((keyword for keyword in keywords if keyword not in defaults), "")
                hint = f". {did_you_mean(wrong, defaults)}" if wrong else ""
                raise ArgumentError(f"{name}: {error}{hint}") from None
            bound.apply_defaults()
            self.settings = dict(bound.arguments)
            shown = check(**self.settings) if check is not None else None
            self.attrs = dict(self.settings if shown is None else shown)
            for setting, value in self.settings.items():
                setattr(self, setting, value)

        def __call__(self, *inputs: Any, **keywords: Any) -> Any:
            return function(*inputs, **keywords, **self.settings)

    Configured.__name__ = Configured.__qualname__ = name
    Configured.__doc__ = doc or (inspect.getdoc(function) or "").partition("\n\nExamples\n")[0]
    Configured.__module__ = __package__
    Configured.__init__.__signature__ = signature  # type: ignore[attr-defined]
    Configured.__signature__ = signature  # type: ignore[attr-defined]
    return Configured


def adder(namespace: dict[str, Any], names: list[str]) -> Callable[..., None]:
    """The function that makes a class of primitives of a row, and a name of a module."""
    def add(name: str, function: Callable, settings: Mapping[str, object] | None = None,
            check: Callable[..., Mapping[str, object] | None] | None = None) -> None:
        namespace[name] = primitive(name, function, settings, DOCS.get(name, ""), check)
        names.append(name)

    return add
