"""Primitive: an operator that is configured once and applied many times; and classes of primitives made from table
rows."""

from __future__ import annotations

import copy
import functools
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ...core.cache import Recent
from ...core.keys import exact
from ...core.parameters import signature_of
from ...core.settings import Checked
from ...errors import ArgumentError, did_you_mean
from ..compiler_settings import constexpr as constexpr
from .primitive_docs import DOCS

__all__ = ["Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "adder", "prim_attr_register", "primitive"]

#: Settings that do not affect the computation.
_NOT_SHOWN = ("input_names", "output_names")


class Primitive(Checked):
    """An operator with its settings, called with tensors.

    Parameters
    ----------
    name : str
        Its name in the repr.

    Attributes
    ----------
    name : str
        The same.
    attrs : dict
        The settings.

    Examples
    --------
    >>> from opreg.ops import MatMul
    >>> MatMul(transpose_b=True)
    Prim[MatMul]<transpose_a=False, transpose_b=True>
    """

    def __init__(self, name: str):
        self.name = self.instance_name = name
        self.attrs: dict[str, Any] = {}

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        raise NotImplementedError(f"Primitive {self.name} must define __call__")

    def add_prim_attr(self, name: str, value: object) -> Self:
        """Store a further setting; it appears in the repr and has no effect."""
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Self:
        """Remove a setting of ``add_prim_attr``."""
        self.attrs.pop(name, None)
        return self

    def set_prim_instance_name(self, name: str) -> Self:
        """Set the name of this instance, without effect."""
        self.instance_name = name
        return self

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Name inputs and outputs; these settings do not appear in the repr."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def clone(self) -> Self:
        """A copy."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.attrs.items() if name not in _NOT_SHOWN)
        return f"Prim[{self.name}]" + (f"<{shown}>" if shown else "")


class PrimitiveWithInfer(Primitive):
    """A primitive that declares its results: derive from it, and define ``infer_shape`` and ``infer_dtype``.

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
        """The shape of the result, or of several, for the input shapes; None if unknown."""

    def infer_dtype(self, *dtypes: Any) -> Any:
        """The dtype of the result, or of several, for the input dtypes; None if unknown."""

    def infer_value(self, *values: Any) -> Any:
        """The result for constant inputs; None if unknown."""

    def __infer__(self, *inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Shape, dtype and value of the result, for mappings with the keys ``dtype``, ``shape`` and ``value``."""
        return {what: getattr(self, f"infer_{what}")(*[value[what] for value in inputs])
                for what in ("dtype", "shape", "value")}


class PrimitiveWithCheck(Primitive):
    """A primitive that checks its inputs: derive from it, and define ``check_shape`` and ``check_dtype``, which raise
    an error or return None.

    Examples
    --------
    >>> class Row(PrimitiveWithCheck):
    ...     @prim_attr_register
    ...     def __init__(self):
    ...         pass
    ...     def check_shape(self, x):
    ...         if len(x) != 1:
    ...             raise ValueError(f"expected a row, got shape {x}")
    >>> Row().__check__({"shape": (3,), "dtype": "float32"})
    """

    def check_shape(self, *shapes: Any) -> None:
        """Refuse wrong input shapes."""

    def check_dtype(self, *dtypes: Any) -> None:
        """Refuse wrong input dtypes."""

    def __check__(self, *inputs: Mapping[str, Any]) -> None:
        """Check dtypes, and shapes if they are known, for mappings with the keys ``dtype`` and ``shape``."""
        self.check_dtype(*[value["dtype"] for value in inputs])
        shapes = [value["shape"] for value in inputs]
        if not any(shape is None or min(shape, default=0) < 0 for shape in shapes):
            self.check_shape(*shapes)


def _get_cache_prim(cls: type[Primitive]) -> Callable[..., Primitive]:
    """A function that makes a primitive of the class, or returns the one that was made with the same arguments. With
    arguments that have no key, such as tensors, it makes a new one."""
    made = _MADE.setdefault(cls, Recent(256))

    def get(*args: Any, **keywords: Any) -> Primitive:
        try:
            key = exact((args, *sorted(keywords.items())))
        except TypeError:
            return cls(*args, **keywords)
        found: Primitive | None = made[key]
        if found is None:
            found = cls(*args, **keywords)
            made.keep(key, found)
        return found

    return get


#: Primitives of ``_get_cache_prim``, by class and arguments.
_MADE: weakref.WeakKeyDictionary[type[Primitive], Recent] = weakref.WeakKeyDictionary()


def prim_attr_register(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate the ``__init__`` of a primitive: it sets the primitive's name to that of the class, and records the
    parameters as its settings."""
    signature = signature_of(function)

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
    """Make a class of primitives.

    Parameters
    ----------
    name : str
        Name of the class.
    function : callable
        A function of the inputs by position and the settings by keyword.
    settings : mapping
        Constructor parameters in order, with defaults; ``...`` marks a required one.
    doc : str
        Docstring of the class.
    check : callable
        A function of the settings by keyword, called by the constructor: it refuses invalid ones, and may return values
        for the repr.
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
    """A function that makes a class of primitives from a table row, and adds it to a module."""
    def add(name: str, function: Callable, settings: Mapping[str, object] | None = None,
            check: Callable[..., Mapping[str, object] | None] | None = None) -> None:
        namespace[name] = primitive(name, function, settings, DOCS.get(name, ""), check)
        names.append(name)

    return add
