"""Parts of attention: what an operator is where a graph computes attention by several, as its rule ``attends`` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ..core.spec import Shape

__all__ = ["Dropped", "Laid", "Part", "Product", "Seen", "Weights", "multiplies"]

#: The matrices in an input, by operators: a value of shape (*lead, rows, columns), where ``lead`` are two axes that
#: count them.
Laid: TypeAlias = Callable[[Any, Shape], Any]


class Product(NamedTuple):
    """Products of the matrices in the last two axes of two inputs, times a factor; the axes before are equal.

    Attributes
    ----------
    transpose_a, transpose_b : bool
        Whether the matrices of an input are transposed.
    factor : float
    places : tuple of two int
        The inputs that are multiplied.
    laid : tuple of two Laid or None
        How matrices are found in an input where they are not its last two axes.
    result : function or None
        The output of products (*lead, rows, columns), where it is laid in another way.
    """

    transpose_a: bool
    transpose_b: bool
    factor: float = 1.0
    places: tuple[int, int] = (0, 1)
    laid: tuple[Laid | None, Laid | None] = (None, None)
    result: Callable[[Any], Any] | None = None


class Seen(NamedTuple):
    """The second input, with a number in the places that are not seen.

    Attributes
    ----------
    where : bool
        The truth of the first input in the places that are.
    fill : float
        That number.
    """

    where: bool
    fill: float


class Weights(NamedTuple):
    """The softmax of the first input along its last axis, in its dtype."""


class Dropped(NamedTuple):
    """Dropout of each element by itself.

    Attributes
    ----------
    p : float
    mode : str
        ``training`` or ``always``.
    """

    p: float
    mode: str


Part: TypeAlias = Product | Seen | Weights | Dropped


def multiplies(a: Shape, b: Shape, *, transpose_a: bool = False, transpose_b: bool = False) -> Part | None:
    """The part of operators that multiply as many matrices as both inputs have."""
    return Product(transpose_a, transpose_b) if len(a) > 1 and a[:-2] == b[:-2] and len(a) == len(b) else None
