"""Sizes of text: each letter is 0.6 of its height wide."""

from __future__ import annotations

__all__ = ["CHAR", "LABEL_CHAR", "LABEL_HEIGHT", "LINE", "PADDING", "TITLE", "shorten"]

CHAR, LINE = 6.7, 14.0  # for names, 11 pixels high
LABEL_CHAR, LABEL_HEIGHT = 5.5, 14.0  # for shapes below nodes, 9 pixels high
PADDING, TITLE = 12.0, 16.0  # for groups

#: Longest name in letters; a longer name is shortened in the middle.
_LONGEST = 30


def shorten(text: str, longest: int = _LONGEST) -> str:
    """A text shortened to fit into a line.

    Examples
    --------
    >>> shorten("a name that is much too long for any box", 16)
    'a name … any box'
    """
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    front = longest // 2 - 1
    return f"{text[:front]}…{text[front - longest + 1:]}"
