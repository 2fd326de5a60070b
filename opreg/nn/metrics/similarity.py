"""Similarity of texts, rows and regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.settings import flag, real_number, whole_number
from ...errors import ArgumentError
from .metric import Mean, Metric, rearrange_inputs

__all__ = ["BleuScore", "CosineSimilarity", "Dice"]


class BleuScore(Metric):
    """BLEU: the fraction of n-grams of translations that occur in a reference, with a penalty for short translations.

    Parameters
    ----------
    n_gram : int
        The longest n-grams, from 1 to 4.
    smooth : bool
        Whether 1 is added to the counts.

    Examples
    --------
    >>> BleuScore(2)([["a", "b", "c"]], [[["a", "b", "d"]]]).round(4)
    np.float64(0.5774)
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False):
        super().__init__()
        self.n_gram = whole_number("BleuScore: n_gram", n_gram, 1)
        if self.n_gram > 4:
            raise ArgumentError(f"BleuScore: n_gram must be from 1 to 4, got {n_gram}")
        self.smooth = flag("BleuScore: smooth", smooth)
        self.clear()

    def clear(self) -> None:
        self._found, self._written = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._length = self._reference_length = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add translations, which are lists of words, and for each of them a list of references."""
        if len(inputs) != 2:
            raise ArgumentError(f"BleuScore.update: expected 2 inputs, translations and references, got {len(inputs)}")
        if len(inputs[0]) != len(inputs[1]):
            raise ArgumentError(f"BleuScore.update: {len(inputs[0])} translations have {len(inputs[1])} lists of "
                                f"references")
        for translation, references in zip(*inputs):
            self._length += len(translation)
            self._reference_length += min(map(len, references), key=lambda length: abs(length - len(translation)))
            written, known = self._grams(translation), Counter[tuple[Any, ...]]()
            for reference in references:
                known |= self._grams(reference)
            for counts, grams in (self._found, written & known), (self._written, written):
                for gram, times in grams.items():
                    counts[len(gram) - 1] += times

    def _grams(self, words: Sequence[Any]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(words[i:i + n]) for n in range(1, self.n_gram + 1) for i in range(len(words) - n + 1))

    def eval(self) -> Any:
        self._some(self._length)
        if not self._found.all():
            return np.float64(0.0)
        shares = (self._found + self.smooth) / (self._written + self.smooth)
        brevity = min(0.0, 1 - self._reference_length / self._length)
        return np.exp(np.log(shares).mean() + brevity)


class CosineSimilarity(Metric):
    """The similarity of all pairs of rows of a matrix, for the latest batch.

    Parameters
    ----------
    similarity : {"cosine", "dot"}
        Whether rows are normalised.
    reduction : {"none", "sum", "mean"}
        Reduction of the products of a row.
    zero_diagonal : bool
        Whether the product of a row with itself is set to 0.

    Examples
    --------
    >>> CosineSimilarity("dot", "sum")([[1.0, 2.0], [3.0, 4.0]])
    array([11., 11.])
    """

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True):
        super().__init__()
        self.similarity = _one_of("similarity", similarity, ("dot", "cosine"))
        self.reduction = _one_of("reduction", reduction, ("none", "sum", "mean"))
        self.zero_diagonal = flag("CosineSimilarity: zero_diagonal", zero_diagonal)
        self.clear()

    def clear(self) -> None:
        self._products: np.ndarray | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Set the matrix."""
        rows, = self._arrays(inputs, "a matrix")
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._products = rows @ rows.T

    def eval(self) -> Any:
        self._some(self._products is not None)
        products = np.array(self._products)
        if self.zero_diagonal:
            np.fill_diagonal(products, 0)
        return products if self.reduction == "none" else getattr(products, self.reduction)(axis=-1)


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ArgumentError(f"CosineSimilarity: {name} must be {' or '.join(map(repr, choices))}, got {value!r}")
    return value


class Dice(Mean):
    """The Dice coefficient ``2 * sum(p * y) / (sum(p * p) + sum(y * y) + smooth)``, summed over batches and divided by
    the number of samples.

    Parameters
    ----------
    smooth : float
        Term that keeps the denominator from zero.

    Examples
    --------
    >>> round(Dice()([[1.0, 0.0, 1.0]], [[1.0, 1.0, 0.0]]), 4)
    0.5
    """

    def __init__(self, smooth: float = 1e-5):
        super().__init__()
        self.smooth = real_number("Dice: smooth", smooth, inside=True)
        self.clear()

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add predictions and labels of the same shape."""
        y_pred, y = self._pair(inputs)
        if y_pred.shape != y.shape:
            raise ArgumentError(f"Dice.update: predictions have the shape {y_pred.shape}, labels {y.shape}")
        p, t = y_pred.ravel(), y.ravel()
        self._sum += 2 * float(p @ t) / float(p @ p + t @ t + self.smooth)
        self._samples += len(y)
