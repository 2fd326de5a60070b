"""Values that annotations of arguments allow, and the words for them in errors."""

from __future__ import annotations

import numbers
import os
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from . import conversions
from .cache import cached

__all__ = ["PLAIN", "expected_words", "is_number", "kinds_of"]


def is_number(value: object) -> bool:
    """Whether a value is a number: Python's, NumPy's, or an array of one element."""
    if isinstance(value, bool) or not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        return False
    return bool(getattr(value, "size", 1) == 1)


def _is_int(value: object) -> bool:
    """Whether a value is a whole number; a float may be one, as Python's division gives it."""
    if isinstance(value, numbers.Real) and not hasattr(type(value), "__index__"):
        return float(value).is_integer()
    return is_number(value) and hasattr(type(value), "__index__")


def _of_each(allows: Callable[[Any], bool], count: int | None = None) -> Callable[[Any], bool]:
    """Whether a value is a sequence, and no text, whose items are allowed, and of which there are ``count``."""
    return lambda value: (isinstance(value, Iterable) and hasattr(type(value), "__len__") and not isinstance(
        value, (str, bytes)) and getattr(value, "ndim", 1) != 0 and count in (None, len([*value]))
        and all(map(allows, value)))


def _derives(value: object, base: str) -> bool:
    """Whether the class of a value derives from one with a name."""
    return any(each.__name__ == base for each in type(value).__mro__)


_of_names = _of_each(lambda name: isinstance(name, str))


def _is_pair(value: object) -> bool:
    return isinstance(value, (tuple, list)) and len(value) >= 2


def _is_mapping(value: object) -> bool:
    return hasattr(type(value), "keys") and hasattr(type(value), "__getitem__")


#: Annotations that are checked: the values that they allow, and the words for them.
_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "float": (is_number, "a number"),
    "int": (_is_int, "an int"),
    "bool": (lambda value: value is None or isinstance(value, (bool, np.bool_)) or is_number(value), "True or False"),
    "None": (lambda value: value is None, "None"),
    "str": (lambda value: isinstance(value, (str, os.PathLike)), "text"),
    "os.PathLike": (lambda value: isinstance(value, os.PathLike), "a path"),
    "DataIter": (lambda value: hasattr(value, "provide_data") and hasattr(value, "reset"), "a data iterator"),
    "Sequence[DataIter]": (lambda value: isinstance(value, (list, tuple)) and len(value) > 0,
                           "a list of data iterators"),
    "SampleSequence": (lambda value: hasattr(value, "__getitem__") and hasattr(value, "__len__"),
                       "a list or a dataset"),
    "NDArray": (lambda value: hasattr(value, "shape"), "an array"),
    "Sequence[float]": (_of_each(is_number), "a list of numbers"),
    "Sequence[int]": (_of_each(_is_int), "a tuple of ints"),
    "Cell": (lambda value: _derives(value, "Cell"), "a Cell"),
    "Callable": (callable, "a function"),
    "ArrayLike": (lambda value: hasattr(type(value), "dtype") or is_number(value) or isinstance(value, bool),
                  "a tensor or a number"),
    "TensorLike": (lambda value: hasattr(type(value), "dtype") or isinstance(value, (bool, list, tuple))
                   or is_number(value), "a tensor, a number or a list of numbers"),
    "Tensor": (lambda value: hasattr(type(value), "dtype"), "a tensor"),
    "Sequence[TensorLike]": (lambda value: isinstance(value, (list, tuple)), "a list of tensors"),
    "Mapping": (_is_mapping, "a dict"),
    "Sequence[Callable]": (_of_each(callable), "a list of functions"),
    "Sequence[str]": (lambda value: isinstance(value, Iterator) or _of_names(value), "a list of names"),
    "tuple[float, float]": (_of_each(is_number, 2), "two numbers"),
    "Symbol": (lambda value: hasattr(type(value), "list_arguments"), "a Symbol"),
    "Module": (lambda value: _derives(value, "Module"), "a Module"),
    "BaseModule": (lambda value: _derives(value, "BaseModule"), "a module"),
    "Monitor": (lambda value: hasattr(value, "install"), "a Monitor"),
    "Sampler": (lambda value: hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__"), "a sampler"),
    "LRScheduler": (callable, "a scheduler"),
    "EvalMetric": (lambda value: hasattr(value, "update"), "a metric"),
    "Descriptions": (_of_each(lambda pair: hasattr(pair, "shape") or (_is_pair(pair) and isinstance(pair[0], str))),
                     "a list of pairs of a name and a shape"),
    "Optimizer": (lambda value: hasattr(value, "update") or callable(value), "an optimizer"),
    "Settings": (lambda value: _is_mapping(value) or _of_each(_is_pair)(value), "a dict"),
}
#: Annotations that stand for others.
_STAND_FOR = {"Number": "float", "Sizes": "int | Sequence[int]", "tuple[int, ...]": "Sequence[int]",
              "AnyShape": "int | Sequence[int]", "ShapeLike": "int | Sequence[int]",
              "Axes": "int | Sequence[int] | None", "Measure": "Callable", "Sequence[Tensor]": "Sequence[TensorLike]",
              "Callbacks": "Callable | Sequence[Callable] | None", "Weights": "Mapping | None",
              "Sequence[Block]": "Sequence[Callable]", "Transform": "Callable",
              "SymbolMaker": "Callable",
              "GradReq": "str | Sequence[str] | Mapping", "Requests": "str | Sequence[str] | Mapping"}


def _limited(kind: Any) -> tuple[Callable[[Any], bool], str]:
    """The check of a type with limits, as attributes of operators have it."""
    plain, *limits = typing.get_args(kind)
    allows, words = _CHECKS[plain.__name__]
    return (lambda value: allows(value) and all(limit.holds(value) for limit in limits),
            " ".join([words, *[limit.words for limit in limits]]))


_LIMITED = {"Amount": conversions.Amount, "Count": conversions.Count, "Fraction": conversions.Fraction,
            "Positive": conversions.Positive}
_CHECKS.update({name: _limited(kind) for name, kind in _LIMITED.items()})
#: The plain type, as text, of each annotation with limits.
PLAIN = {name: typing.get_args(kind)[0].__name__ for name, kind in _LIMITED.items()}


def kinds_of(annotation: object) -> list[str]:
    """The types of an annotation, such as ``float | None``, by their names.

    Examples
    --------
    >>> kinds_of("float | None"), kinds_of(int)
    (['float', 'None'], ['int'])
    """
    return (annotation.__name__ if isinstance(annotation, type) else str(annotation)).split(" | ")


def expected_words(value: object, annotation: object) -> str:
    """The values that an annotation allows, in words; empty if this is one, or a type is not checked.

    Examples
    --------
    >>> expected_words("a", "float | None"), expected_words(1, "float | None")
    ('a number or None', '')
    """
    checks = _checks_of(annotation)
    if not checks or any(allows(value) for allows, _ in checks):
        return ""
    return " or ".join(words for _, words in checks)


@cached(256)
def _checks_of(annotation: object) -> tuple[tuple[Callable[[object], bool], str], ...]:
    """The checks of an annotation's types; none if one of the types has no check."""
    kinds = [each for kind in kinds_of(annotation) for each in kinds_of(_STAND_FOR.get(kind, kind))]
    kinds = [kind.partition("[")[0] if kind.startswith(("Callable[", "Mapping[", "os.PathLike[")) else kind
             for kind in kinds]
    return tuple(_CHECKS[kind] for kind in kinds) if all(kind in _CHECKS for kind in kinds) else ()
