"""Checks of what methods of a ``CustomOpProp`` return: names, shapes, dtypes and storage types.

``title`` is the name of the method in errors.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.op import combined_shape
from ..core.rules import Dtypes, Shapes
from ..core.spec import ANY, Shape, as_dtype
from ..errors import ArgumentError, DTypeError, note

__all__ = ["agree_dtypes", "agree_shapes", "check_dtype", "check_groups", "check_names", "check_shape", "check_stypes"]

_TEXT = {str}
_LISTED = {"infer_shape": "shapes", "infer_type": "dtypes"}
_STYPES = {"default", "row_sparse", "csr"}


def check_names(title: str, answer: object) -> tuple[str, ...]:
    """The names that a method lists, after a check."""
    if not isinstance(answer, (list, tuple)) or not (
            {*map(type, answer)} <= _TEXT or all(isinstance(name, str) for name in answer)):
        raise ArgumentError(f"{title} returned {answer!r}, expected a list of names")
    names = tuple(answer)
    if len(names) > 1 and len(set(names)) < len(names):
        raise ArgumentError(f"{title} returned {answer!r}, which has a name twice")
    return names


def check_groups(title: str, method: str, answer: object, expected: Sequence[Sequence[str]]) -> list[list]:
    """An answer of ``infer_shape`` or ``infer_type`` as three lists, after a check.

    ``expected`` has the names of arguments, outputs and auxiliary states.
    """
    groups: list = [*answer] if isinstance(answer, (tuple, list)) else []
    if any(_is_single(part, method) for part in groups):  # one shape or dtype instead of a list
        parts = [part for part in groups if part is not None]
        shown = [f"[{part!r}]" if _is_single(part, method) else f"{part!r}" for part in parts]
        raise ArgumentError(f"{title} returned {answer!r}, expected lists of {_LISTED[method]}: return "
                            f"{', '.join(shown + ['[]'] * (3 - len(shown)))}")
    if len(groups) == 2:
        groups.append(())
    try:
        if [*map(len, groups)] == [*map(len, expected)]:
            return groups
    except TypeError:  # a part without a length is no list
        groups = []
    if len(groups) != 3:
        raise ArgumentError(f"{title} returned {answer!r}, expected 2 or 3 lists: of arguments, outputs and auxiliary "
                            "states")
    kind, names, group = next(row for row in zip(("arguments", "outputs", "auxiliary states"), expected, groups)
                              if len(row[1]) != len(row[2]))
    more = ": write infer_shape, whose third list has a shape for each"
    raise ArgumentError(f"{title} returned {len(group)} entries for its {kind}, expected {len(names)}"
                        f" ({', '.join(names) or 'none'})"
                        + more * (method == "infer_shape" and names is expected[2] and len(names) > len(group)))


def _is_single(part: object, method: str) -> bool:
    """Whether a part of an answer is a single shape or dtype instead of a list."""
    if method == "infer_shape":
        dims = part if isinstance(part, (tuple, list)) else ()
        return len(dims) > 0 and all(isinstance(dim, (int, np.integer)) for dim in dims)
    return isinstance(part, (str, type, np.dtype))


def check_stypes(title: str, answer: object, expected: Sequence[Sequence[str]], states: list[str]) -> list[list[str]]:
    """An answer about storage types as lists, after a check. The answer may lack the storage types of the states."""
    groups: list = [*answer] if isinstance(answer, (list, tuple)) else []
    if len(groups) == len(expected) - 1:
        groups.append(states)
    if len(groups) != len(expected) or not all(
            isinstance(group, (list, tuple)) and len(group) == len(names) and {*group} <= _STYPES
            for group, names in zip(groups, expected)):
        counts = ", ".join(str(len(names)) for names in expected)
        raise ArgumentError(f"{title} returned {answer!r}, expected lists of {counts} storage types, "
                            f"each of {', '.join(sorted(_STYPES))}")
    return groups


def agree_shapes(names: Sequence[str], olds: Shapes, news: Shapes) -> Shapes:
    """Known and returned shapes, combined; an error if they disagree."""
    return [new if old is None else combined_shape(name, old, new) for name, old, new in zip(names, olds, news)]


def check_shape(title: str, shape: Any, complete: bool) -> Shape | None:
    """Check a shape that a Prop returned. An empty shape means an unknown one, unless ``complete``."""
    try:
        if complete:
            result: Shape | None = tuple(map(operator.index, shape))
        else:
            result = None if shape is None else tuple([ANY if dim is ANY or dim is None else operator.index(dim)
                                                      for dim in shape]) or None
    except TypeError:
        raise ArgumentError(f"{title} returned the shape {shape!r}, expected a tuple or list of "
                            "ints") from None
    if result and any(dim is not ANY and dim < 0 for dim in result):
        raise ArgumentError(f"{title} returned the shape {shape!r}, expected no negative dimensions")
    return result


def agree_dtypes(names: Sequence[str], olds: Dtypes, news: Dtypes) -> Dtypes:
    """Known and returned dtypes, combined; an error if they disagree."""
    for name, old, new in zip(names, olds, news):
        if old is not new and old is not None and new is not None and old != new:
            raise DTypeError(f"{name}: expected dtype {new}, got {old}")
    return [new if old is None else old for old, new in zip(olds, news)]


def check_dtype(title: str, dtype: object) -> np.dtype | None:
    """Check a dtype that a Prop returned: a scalar class, a dtype, a name, or MXNet's integer."""
    try:
        return None if dtype is None else as_dtype(dtype)
    except DTypeError as error:
        note(error, f"{title} returned {dtype!r}")
        raise
