"""Counts of words."""

from __future__ import annotations

import re
from collections import Counter

from ...core.named_errors import name_errors

__all__ = ["count_tokens_from_str"]


def count_tokens_from_str(source_str: str, token_delim: str = " ", seq_delim: str = "\n", to_lower: bool = False,
                          counter_to_update: Counter | None = None) -> Counter:
    """The number of occurrences of each word in a text.

    Parameters
    ----------
    source_str : str
        The text.
    token_delim, seq_delim : str
        Regular expressions that match between words and between sentences.
    to_lower : bool
        Whether words are counted in lower case.
    counter_to_update : Counter, optional
        The counter to which the counts are added.

    Examples
    --------
    >>> sorted(count_tokens_from_str("Life is great\\nlife is good", to_lower=True).items())
    [('good', 1), ('great', 1), ('is', 2), ('life', 2)]
    """
    counter = Counter() if counter_to_update is None else counter_to_update
    words = filter(None, re.split(f"{token_delim}|{seq_delim}", source_str))
    counter.update(word.lower() if to_lower else word for word in words)
    return counter


name_errors(__name__, globals(), __all__)
