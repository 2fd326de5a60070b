"""Reports for terminals and notebooks: text without control characters, and HTML and SVG on demand."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .slots import Slot

__all__ = ["Explanation", "HTML", "SVG", "NotebookTable", "html_text", "printable", "report", "printable_text"]

#: Convert a value to HTML, and to SVG.
HTML, SVG = Slot("pictures"), Slot("pictures")

#: Characters that XML cannot contain, that are invisible, or that change the direction of text; except tabs and ends of
#: lines.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069"
                          "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def printable(text: str) -> str:
    """A text without unprintable characters: control characters become their symbols, others U+FFFD, one for one.

    Examples
    --------
    >>> printable("a\\0b\\ud800")
    'a␀b\ufffd'
    """
    return _UNPRINTABLE.sub(lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd", text)


def html_text(text: str) -> str:
    """A text escaped for HTML and SVG, between tags or in quotes.

    Examples
    --------
    >>> html_text("a<b>\\0")
    'a&lt;b&gt;␀'
    """
    return printable(text).translate(_ENTITIES)


_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
#: Characters that end a line or return to its beginning, except the newline.
_ENDS = str.maketrans({"\r": "␍", "\x85": "\ufffd", "\u2028": "\ufffd", "\u2029": "\ufffd"})


def printable_text(text: str) -> str:
    r"""A text whose only control characters are newlines and tabs, so that it is safe for terminals.

    Examples
    --------
    >>> printable_text("fc\x1b[31m\r")
    'fc␛[31m␍'
    """
    return printable(text).translate(_ENDS)


def report(lines: Iterable[str]) -> str:
    r"""Join lines to a text for terminals. Newlines inside of a line are replaced. All reports are made by this
    function.

    Examples
    --------
    >>> report(["forward:", "  exp a\nb"])
    'forward:\n  exp a␊b'
    """
    return "\n".join(printable_text(line).replace("\n", "␊") for line in lines)


class NotebookTable:
    """An object that notebooks display as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        html: str | None = HTML.function(self)
        return html


class Explanation(NotebookTable, str):
    """An explanation as text, in which lines without indentation are titles.

    Examples
    --------
    >>> Explanation("forward:").upper()
    'FORWARD:'
    """

    __slots__ = ()
