"""Products of two operands of ``einsum``, whose axes have letters, as products of matrices."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

__all__ = ["Contraction", "contraction", "implied", "product"]


class Contraction(NamedTuple):
    """The letters of two operands by their part in a product of matrices.

    Attributes
    ----------
    stack, summed : list of str
        Letters of both operands: axes of the stack of matrices, and axes that are summed over.
    rows, columns : list of str
        Letters of the left operand alone, and of the right one alone.
    """

    stack: list[str]
    summed: list[str]
    rows: list[str]
    columns: list[str]


def contraction(left: str, right: str, later: Collection[str]) -> Contraction:
    """The parts of letters in a product; letters of both operands that are needed ``later`` are not summed over.

    Examples
    --------
    >>> contraction("bij", "bjk", "bik")
    Contraction(stack=['b'], summed=['j'], rows=['i'], columns=['k'])
    """
    both = [letter for letter in left if letter in right]
    stack, summed = [[letter for letter in both if (letter in later) == needed] for needed in (True, False)]
    rows, columns = [[letter for letter in letters if letter not in both] for letters in (left, right)]
    return Contraction(stack, summed, rows, columns)


def implied(terms: str) -> str:
    """The letters of the result of an equation without an arrow: those that occur once, in alphabetical order.

    Examples
    --------
    >>> implied("ij,jk")
    'ik'
    """
    return "".join(sorted(letter for letter in {*terms} - {","} if terms.count(letter) == 1))


def product(left: str, x: Any, right: str, y: Any, later: Collection[str]) -> tuple[str, Any]:
    """The letters and the value of the product of two arrays of one kind, of known lengths, each letter once in an
    array; letters of both that are not needed ``later`` are summed over.

    Examples
    --------
    >>> import numpy as np
    >>> letters, value = product("ij", np.ones((2, 3)), "jk", np.ones((3, 4)), "ik")
    >>> letters, value.shape
    ('ik', (2, 4))
    """
    stack, summed, rows, columns = contraction(left, right, later)
    length = {**dict(zip(left, x.shape)), **dict(zip(right, y.shape))}

    def laid(letters: str, value: Any, *groups: list[str]) -> Any:
        order = tuple([letters.index(letter) for group in groups for letter in group])
        value = value.transpose(order) if order else value
        return value.reshape([math.prod([length[letter] for letter in group]) for group in groups])

    values = laid(left, x, stack, rows, summed) @ laid(right, y, stack, summed, columns)
    letters = [*stack, *rows, *columns]
    return "".join(letters), values.reshape([length[letter] for letter in letters])
