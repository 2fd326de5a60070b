"""What notebooks show in the place of text: HTML and SVG, made where somebody looks and nowhere before."""

from __future__ import annotations

from .slots import Slot

__all__ = ["Explanation", "HTML", "SVG", "Shown"]

#: A value as HTML, and as SVG.
HTML, SVG = Slot("pictures"), Slot("pictures")


class Shown:
    """What has a table for notebooks."""

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
