"""Programs of another time: their text rewritten for the Python and NumPy of today.

``port`` gives the text of a module as it runs today. ``python -m opreg port`` shows what it changes in the files of a
folder, ``python -m opreg as-mxnet script.py`` runs a script through it and leaves the files alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import imports as _imports
from . import numpy_rules as _numpy_rules
from .python2 import Modern, NeedsParser, modern
from .rules import RULES, looks_old
from .source import Place, Problem, Source

__all__ = ["port", "rewritten", "Ported", "Place", "Problem", "NeedsParser"]

#: Modules of the rules; importing them puts the rules into the table.
_RULES = (_imports, _numpy_rules)


class Ported:
    """A text as it runs today.

    Attributes
    ----------
    source : Source
        The new text, and what is in it.
    text : str
        The new text.
    old : bool
        Whether it was written for Python 2 alone.
    problems : list of Problem
        What a person has to look at, at lines of the new text.
    """

    def __init__(self, before: str, source: Source, problems: list[Problem], lines: Sequence[int]) -> None:
        self.before = before
        self.source = source
        self.text = source.text
        self.old = source.old
        self.problems = problems
        self._lines = lines

    def origins(self) -> list[tuple[int, bool]]:
        """Lines of the old text that those of the new one come from, and whether each is still the same."""
        before, after = self.before.split("\n"), self.text.split("\n")
        lines = [min(line, len(before)) for line in self._lines]
        origins = [(line, before[line - 1] == text) for line, text in zip(lines, after, strict=True)]
        return origins + origins[-1:] * self.text.count("\r")  # which end lines of Python, too


def port(text: str, place: Place | None = None) -> Ported:
    """The text of a module as it runs on the Python and NumPy of today.

    Parameters
    ----------
    text : str
        Of Python 2 or 3.
    place : Place, optional
        What its imports mean. Without it those of other modules of the same program stay as they are.

    Returns
    -------
    Ported
        The new text, and what a person has to look at. Text that runs today stays as it is.

    Raises
    ------
    SyntaxError
        It is of neither Python.
    NeedsParser
        It is of Python 2, and fissix, which the extra ``port`` brings, is not installed.

    Examples
    --------
    >>> print(port("for k, v in d.iteritems():\\n    print(k, np.float(v))").text)
    for k, v in d.items():
        print(k, np.float(v))
    """
    before = text.replace("\r\n", "\n")
    return rewritten(before, modern(before), place)


def rewritten(before: str, today: Modern, place: Place | None = None) -> Ported:
    """Result of ``port`` for a text that is valid Python 3 by now."""
    source, lines = Source(today.text, place, today.old), today.origins
    source.old = today.old or looks_old(source)
    for _ in range(30):  # what lies inside of a change is changed in the next round
        for node in source.parents:
            for rule in RULES.get(type(node), ()):
                rule(node, source)
        said = source.problems
        if (changed := source.changed()) == source.text:
            break
        lines = [lines[line - 1] for line in source.origins()]
        source = Source(changed, place, source.old)
    problems = sorted({*said, *(Problem(1, each) for each in today.failed)})
    return Ported(before, source, problems, lines)
