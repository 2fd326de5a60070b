"""How large what is written becomes: letters are all as wide as 0.6 of their height."""

from __future__ import annotations

__all__ = ["CHAR", "LABEL_CHAR", "LABEL_HEIGHT", "LINE", "PADDING", "TITLE", "shortened"]

CHAR, LINE = 6.7, 14.0  # of names, in letters of 11 pixels
LABEL_CHAR, LABEL_HEIGHT = 5.5, 14.0  # of shapes under nodes, in letters of 9 pixels
PADDING, TITLE = 12.0, 16.0  # of groups

#: Letters of a line that are written; a name that is longer loses its middle.
_LONGEST = 30


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text that fits a line.

    Examples
    --------
    >>> shortened("a name that is much too long for any box", 16)
    'a name … any box'
    """
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    front = longest // 2 - 1
    return f"{text[:front]}…{text[front - longest + 1:]}"
