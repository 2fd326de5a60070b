"""The text of a tensor, in MindSpore's format.

NumPy's print options have no effect: the number of digits is fixed, and so are the elements that are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtype as dtypes

__all__ = ["show"]

#: Elements shown at either end of a shortened axis.
_ENDS = 3
#: An array of one axis is shortened if it has more elements; in others every axis that is longer than its two ends.
_MOST = 1000

#: Digits and least width of an element, and elements on a line.
_FORMS: dict[str, tuple[str, int, int]] = {"float16": (".4e", 11, 12), "float32": (".8e", 15, 12),
                                           "float64": (".8e", 15, 12), "bool": ("", 5, 12)}
#: For other dtypes: six digits at most, and the width of the widest element shown.
_FORM = ("", 0, 24)


def show(array: np.ndarray) -> str:
    """The text of an array as a tensor.

    Examples
    --------
    >>> show(np.float32([20, 0.2, 0.3]))
    'Tensor(shape=[3], dtype=Float32, value= [ 2.00000000e+01,  2.00000003e-01,  3.00000012e-01])'
    >>> print(show(np.arange(2000).reshape(2, 1000)))
    Tensor(shape=[2, 1000], dtype=Int64, value=
    [[   0,    1,    2 ...  997,  998,  999],
     [1000, 1001, 1002 ... 1997, 1998, 1999]])
    """
    gap = " " if array.ndim < 2 else "\n"
    return f"Tensor(shape={list(array.shape)}, dtype={dtypes.of(array.dtype)}, value={gap}{_numbers(array)})"


def _numbers(array: np.ndarray) -> str:
    if array.size == 0:
        return ""
    if array.ndim == 0:
        return _writer(array.dtype, "")(array[()])
    most = _MOST if array.ndim == 1 else 2 * _ENDS
    cut = [length > most for length in array.shape]
    for axis in np.flatnonzero(cut):
        array = np.delete(array, np.s_[_ENDS:-_ENDS], axis)
    digits, width, line = _FORMS.get(array.dtype.name, _FORM)
    write = _writer(array.dtype, digits)
    words = [write(element) for element in array.ravel()]
    width = width or max(map(len, words))
    table = np.array([word.rjust(width) for word in words], object).reshape(array.shape)
    return _block(table, cut, line, " ")


def _writer(dtype: np.dtype, digits: str) -> Callable[[object], str]:
    """The function that formats one element."""
    if not dtypes.of(dtype).is_floating_point:
        return str
    signed = dtype.name != "bfloat16"  # MindSpore widens these first, and so loses the sign of nan

    def write(element: Any) -> str:
        number = float(element)
        if math.isnan(number):
            return "-nan" if signed and math.copysign(1, number) < 0 else "nan"
        return format(number, digits or "g")

    return write


def _block(table: np.ndarray, cut: list[bool], line: int, indent: str) -> str:
    """Nested brackets; rows of a block are aligned, and dots replace omitted elements."""
    if table.ndim == 1:
        return f"[{_row(list(table), cut[0], line)}]"
    parts = [_block(part, cut[1:], line, indent + " ") for part in table]
    comma = ",\n" + indent
    if cut[0]:
        return f"[{comma.join(parts[:_ENDS])}{comma}...\n{indent}{comma.join(parts[_ENDS:])}]"
    return f"[{comma.join(parts)}]"


def _row(words: list[str], cut: bool, line: int) -> str:
    if cut:
        return f"{', '.join(words[:_ENDS])} ... {', '.join(words[_ENDS:])}"
    lines = [", ".join(words[start:start + line]) for start in range(0, len(words), line)]
    end = "\n " if len(words) % line == 0 else ""  # a full line is ended, the last one too
    return ", \n ".join(lines) + end
