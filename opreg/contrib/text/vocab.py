"""Vocabularies: words and their indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from opreg.errors import ArgumentError

from ...core.settings import CheckedMethods

__all__ = ["TextError", "Vocabulary"]


class TextError(ArgumentError, AssertionError):
    """Words, or vectors of words, are not as expected."""


class Vocabulary(CheckedMethods):
    """Words and their indices: the unknown word is 0, then come reserved words, then those of a counter.

    Parameters
    ----------
    counter : Counter, optional
        The number of occurrences of each word; frequent words come first, and equally frequent ones are sorted.
    most_freq_count : int, optional
        The most words that are taken from the counter.
    min_freq : int
        The least number of occurrences of a word.
    unknown_token : hashable
        The word that replaces words without an index.
    reserved_tokens : sequence of hashable, optional
        Words that always have an index, such as padding.

    Raises
    ------
    TextError
        When ``min_freq`` is below 1, or reserved words are not distinct, or include the unknown word.

    Examples
    --------
    >>> words = Vocabulary(Counter("abbccc"), min_freq=2, reserved_tokens=["<pad>"])
    >>> words.idx_to_token, words.to_indices(["b", "a"]), words.to_tokens(2)
    (['<unk>', '<pad>', 'c', 'b'], [3, 0], 'c')
    """

    def __init__(self, counter: Counter | None = None, most_freq_count: int | None = None, min_freq: int = 1,
                 unknown_token: Hashable = "<unk>", reserved_tokens: Sequence[Any] | None = None):
        if min_freq < 1:
            raise TextError(f"Vocabulary: min_freq must be at least 1, got {min_freq}")
        if not isinstance(counter, Counter | None):
            raise TextError(f"Vocabulary: expected a collections.Counter, got {type(counter).__name__}")
        first = [unknown_token, *(reserved_tokens or ())]
        if len(set(first)) < len(first):
            raise TextError(f"Vocabulary: reserved_tokens must be distinct, and without the unknown token "
                            f"{unknown_token!r}, got {reserved_tokens!r}")
        self._reserved = None if reserved_tokens is None else list(reserved_tokens)
        self._words, self._numbers = [], {}
        self._add(first)
        if counter:
            ranked = sorted(sorted(counter), key=counter.__getitem__, reverse=True)
            self._add([word for word in ranked if counter[word] >= min_freq and word not in first][:most_freq_count])

    _words: list[Any]
    _numbers: dict[Any, int]

    def _add(self, words: Iterable[Any]) -> None:
        for word in words:
            self._numbers[word] = len(self._words)
            self._words.append(word)

    def __len__(self) -> int:
        return len(self._words)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The number of each word."""
        return self._numbers

    @property
    def idx_to_token(self) -> list[Any]:
        """The words, in the order of their indices."""
        return self._words

    @property
    def unknown_token(self) -> Any:
        """The word that replaces words without a number."""
        return self._words[0]

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """Words that are in the vocabulary whatever the counts are."""
        return self._reserved

    def to_indices(self, tokens: Any) -> Any:
        """The index of a word, or the indices of a list of words; 0 for unknown words."""
        if isinstance(tokens, list):
            return [self._numbers.get(word, 0) for word in tokens]
        return self._numbers.get(tokens, 0)

    def to_tokens(self, indices: Any) -> Any:
        """The word with an index, or the words of a list of indices.

        Raises
        ------
        TextError
            When a number is none of a word.
        """
        if isinstance(indices, list):
            return [self.to_tokens(index) for index in indices]
        if not isinstance(indices, int) or not 0 <= indices < len(self):
            raise TextError(f"to_tokens: expected an integer from 0 to {len(self) - 1}, got {indices!r}")
        return self._words[indices]
