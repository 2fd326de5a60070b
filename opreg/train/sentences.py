"""Sentences: words encoded as integers, and batches of sentences of similar length."""

from __future__ import annotations

import bisect
import logging
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import array

from ..core.named_errors import name_errors
from ..data.batches import DataBatch, DataDesc, DataIter
from ..errors import ArgumentError, did_you_mean

__all__ = ["BucketSentenceIter", "encode_sentences"]


def encode_sentences(sentences: Sequence[Sequence[str]], vocab: dict[str, int] | None = None, invalid_label: int = -1,
                     invalid_key: str = "\n", start_label: int = 0, unknown_token: str | None = None
                     ) -> tuple[list[list[int]], dict[str, int]]:
    """Encode words as integers.

    Parameters
    ----------
    sentences : list of lists of str
        The sentences to encode.
    vocab : dict of str to int or None
        Numbers of words; by default words are numbered from ``start_label`` on, in order of first occurrence.
    invalid_label, invalid_key
        Number and word of the padding.
    unknown_token : str or None
        The word that replaces words missing in ``vocab``.

    Examples
    --------
    >>> encode_sentences([["a", "b"], ["b", "c"]], invalid_label=0, start_label=1)
    ([[1, 2], [2, 3]], {'\\n': 0, 'a': 1, 'b': 2, 'c': 3})
    """
    grow = vocab is None
    vocab = {invalid_key: invalid_label} if vocab is None else vocab
    following = start_label
    encoded = []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in vocab:
                if not grow and unknown_token is None:
                    raise ArgumentError(f"encode_sentences: the word {word!r} is not in vocab; set unknown_token for "
                                        f"unknown words")
                if unknown_token is not None:
                    word = unknown_token
                if word not in vocab:
                    if following == invalid_label:
                        following += 1
                    vocab[word] = following
                    following += 1
            numbers.append(vocab[word])
        encoded.append(numbers)
    return encoded, vocab


class BucketSentenceIter(DataIter):
    """Batches of sentences of similar length; the labels are the next words.

    Parameters
    ----------
    sentences : list of lists of int
        Sentences encoded by ``encode_sentences``.
    batch_size : int
        Number of sentences of a batch.
    buckets : list of int or None
        Lengths of the buckets; by default those of at least ``batch_size`` sentences. A sentence goes into the smallest
        bucket that holds it; longer ones are dropped.
    invalid_label : int
        The number that pads a sentence to the length of its bucket.
    layout : {"NT", "TN"}
        Order of the axes of a batch: N is the axis of sentences, T the axis of words.
    """

    def __init__(self, sentences: Sequence[Sequence[int]], batch_size: int, buckets: Sequence[int] | None = None,
                 invalid_label: int = -1, data_name: str = "data", label_name: str = "softmax_label",
                 dtype: Any = "float32", layout: str = "NT"):
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise ArgumentError(f"there is no layout {layout!r}. {did_you_mean(layout, ('NT', 'TN'))}")
        if not buckets:
            counts = np.bincount([len(sentence) for sentence in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        if not buckets:
            raise ArgumentError(f"BucketSentenceIter: no length occurs {batch_size} times, so no bucket could be "
                                f"chosen; give buckets")
        self.buckets, self.invalid_label, self.dtype, self.layout = sorted(buckets), invalid_label, dtype, layout
        self.data_name, self.label_name = data_name, label_name
        rows: list[list[np.ndarray]] = [[] for _ in self.buckets]
        left = 0
        for sentence in sentences:
            place = bisect.bisect_left(self.buckets, len(sentence))
            if place == len(self.buckets):
                left += 1
                continue
            row = np.full(self.buckets[place], invalid_label, dtype)
            row[:len(sentence)] = sentence
            rows[place].append(row)
        filled = [place for place, batch in enumerate(rows) if batch]
        if not filled:
            raise ArgumentError(f"BucketSentenceIter: no sentence fits a bucket; the longest is {self.buckets[-1]}")
        self.buckets, rows = [self.buckets[place] for place in filled], [rows[place] for place in filled]
        if left:
            logging.warning("BucketSentenceIter: %d sentences are longer than the largest bucket and left out", left)
        self.data = [np.array(batch, dtype).reshape(-1, length) for batch, length in zip(rows, self.buckets)]
        self.default_bucket_key = self.buckets[-1]
        self.provide_data = [self._describe(data_name, self.default_bucket_key)]
        self.provide_label = [self._describe(label_name, self.default_bucket_key)]
        self.idx = [(bucket, first) for bucket, data in enumerate(self.data)
                    for first in range(0, len(data) - batch_size + 1, batch_size)]
        self.reset()

    def _describe(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length)
        return DataDesc(name, shape if self.layout == "NT" else shape[::-1], self.dtype, self.layout)

    def reset(self) -> None:
        """Restart in another order; ``random.seed`` and ``np.random.seed`` seed it."""
        random.shuffle(self.idx)
        for data in self.data:
            np.random.shuffle(data)  # noqa: NPY002 (as MXNet, from the generators that programs seed)
        self.curr_idx = 0

    def next(self) -> DataBatch:
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, first = self.idx[self.curr_idx]
        self.curr_idx += 1
        length, data = self.buckets[bucket], self.data[bucket][first:first + self.batch_size]
        label = np.full_like(data, self.invalid_label)
        label[:, :-1] = data[:, 1:]
        if self.layout == "TN":
            data, label = data.T, label.T
        return DataBatch([array(data, dtype=self.dtype)], [array(label, dtype=self.dtype)], pad=0, bucket_key=length,
                         provide_data=[self._describe(self.data_name, length)],
                         provide_label=[self._describe(self.label_name, length)])


name_errors(__name__, globals(), __all__)
