"""Reports in terminals and notebooks: text without control characters; HTML and SVG, made where somebody looks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .slots import Slot

__all__ = ["Explanation", "HTML", "SVG", "Shown", "escaped", "printable", "report", "shown"]

#: A value as HTML, and as SVG.
HTML, SVG = Slot("pictures"), Slot("pictures")

#: Characters that XML cannot hold, that are invisible, or that turn the letters behind them around; tabs and ends
#: of lines excepted.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069"
                          "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def printable(text: str) -> str:
    """A text that any picture can hold: pictures of control characters, and replacement characters, one for one.

    Examples
    --------
    >>> printable("a\\0b\\ud800")
    'a␀b\ufffd'
    """
    return _UNPRINTABLE.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] < " " else "\ufffd", text)


def escaped(text: str) -> str:
    """A text as it stands in HTML and SVG, between tags or within quotes.

    Examples
    --------
    >>> escaped("a<b>\\0")
    'a&lt;b&gt;␀'
    """
    return printable(text).translate(_ENTITIES)


_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
#: Characters that end a line or return to its beginning, except the newline.
_ENDS = str.maketrans({"\r": "␍", "\x85": "\ufffd", "\u2028": "\ufffd", "\u2029": "\ufffd"})


def shown(text: str) -> str:
    r"""A text that does nothing to a terminal but end lines, whatever names it holds.

    Examples
    --------
    >>> shown("fc\x1b[31m\r")
    'fc␛[31m␍'
    """
    return printable(text).translate(_ENDS)


def report(lines: Iterable[str]) -> str:
    r"""A text of lines, each of which is one, whatever names it holds: all reports are made here.

    Examples
    --------
    >>> report(["forward:", "  exp a\nb"])
    'forward:\n  exp a␊b'
    """
    return "\n".join(shown(line).replace("\n", "␊") for line in lines)


class Shown:
    """An object that shows itself as a table in notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        html: str | None = HTML.function(self)
        return html


class Explanation(Shown, str):
    """A text that explains, in lines of which those without indentation are titles.

    Examples
    --------
    >>> Explanation("forward:").upper()
    'FORWARD:'
    """

    __slots__ = ()
