"""The letters of two operands of ``einsum`` by their part in a product of matrices."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

__all__ = ["Contraction", "contraction", "implied_result"]


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


def implied_result(terms: str) -> str:
    """The letters of the result of an equation without an arrow: those that occur once, in alphabetical order.

    Examples
    --------
    >>> implied_result("ij,jk")
    'ik'
    """
    return "".join(sorted(letter for letter in {*terms} - {","} if terms.count(letter) == 1))
