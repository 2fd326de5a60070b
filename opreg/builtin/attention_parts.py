"""Parts of attention: the role that an operator's rule ``attends`` gives it in a graph that computes attention by
several operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ..core.spec import Shape

__all__ = ["DroppedWeights", "MatrixView", "Part", "Product", "MaskedScores", "Weights", "multiplies"]

#: The matrices in an input, by operators: a value of shape (*lead, rows, columns), where ``lead`` are two batch axes.
MatrixView: TypeAlias = Callable[[Any, Shape], Any]


class Product(NamedTuple):
    """Products of the matrices in the last two axes of two inputs, times a factor; the batch axes are equal.

    Attributes
    ----------
    transpose_a, transpose_b : bool
        Whether the matrices of an input are transposed.
    factor : float
    places : tuple of two int
        The inputs that are multiplied.
    laid : tuple of two MatrixView or None
        For an input whose matrices are not its last two axes, the operators that extract them.
    result : function or None
        Makes the output from products (*lead, rows, columns), if its layout differs.
    """

    transpose_a: bool
    transpose_b: bool
    factor: float = 1.0
    places: tuple[int, int] = (0, 1)
    laid: tuple[MatrixView | None, MatrixView | None] = (None, None)
    result: Callable[[Any], Any] | None = None


class MaskedScores(NamedTuple):
    """The second input, with a constant in the masked positions.

    Attributes
    ----------
    where : bool
        Value of the first input at unmasked positions.
    fill : float
        The constant.
    """

    where: bool
    fill: float


class Weights(NamedTuple):
    """The softmax of the first input along its last axis, in its dtype."""


class DroppedWeights(NamedTuple):
    """Dropout with a separate draw for each element. A second output is the mask: the factor of each element.

    Attributes
    ----------
    p : float
    mode : str
        ``training`` or ``always``.
    """

    p: float
    mode: str


Part: TypeAlias = Product | MaskedScores | Weights | DroppedWeights


def multiplies(a: Shape, b: Shape, *, transpose_a: bool = False, transpose_b: bool = False) -> Part | None:
    """The role of operators that multiply batches of matrices."""
    return Product(transpose_a, transpose_b) if len(a) > 1 and a[:-2] == b[:-2] and len(a) == len(b) else None
