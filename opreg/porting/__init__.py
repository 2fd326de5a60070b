"""Porting of old programs: rewrites their code for today's Python and NumPy.

``port`` returns the code of a module in a form that runs today. ``python -m opreg port`` shows the changes in the files
of a folder; ``python -m opreg as-mxnet script.py`` runs a script with these changes and does not modify files.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import imports as _imports
from . import numpy_rules as _numpy_rules
from .python2 import ConvertedText, NeedsParser, modern
from .rules import RULES, looks_old
from .source import Place, Problem, Source

__all__ = ["port", "rewritten", "Ported", "Place", "Problem", "NeedsParser"]

#: Modules with rules; importing them registers the rules.
_RULES = (_imports, _numpy_rules)


class Ported:
    """Ported code.

    Attributes
    ----------
    source : Source
        The new text with its syntax tree.
    text : str
        The new text.
    old : bool
        Whether it was written for Python 2 only.
    problems : list of Problem
        Places that the user has to check, by lines of the new text.
    """

    def __init__(self, before: str, source: Source, problems: list[Problem], lines: Sequence[int]) -> None:
        self.before = before
        self.source = source
        self.text = source.text
        self.old = source.old
        self.problems = problems
        self._lines = lines

    def origins(self) -> list[tuple[int, bool]]:
        """For each line of the new text its line in the old one, and whether it is unchanged."""
        before, after = self.before.split("\n"), self.text.split("\n")
        lines = [min(line, len(before)) for line in self._lines]
        origins = [(line, before[line - 1] == text) for line, text in zip(lines, after, strict=True)]
        return origins + origins[-1:] * self.text.count("\r")  # Python splits lines at these characters, too


def port(text: str, place: Place | None = None) -> Ported:
    """The code of a module, rewritten for today's Python and NumPy.

    Parameters
    ----------
    text : str
        Code of Python 2 or 3.
    place : Place, optional
        Resolves its imports. Without it imports of the program's own modules are not changed.

    Returns
    -------
    Ported
        The new text, and places to check. Code that runs today is not changed.

    Raises
    ------
    SyntaxError
        When the code is valid in neither Python.
    NeedsParser
        For Python 2 code, when the package fissix (``opreg[port]``) is not installed.

    Examples
    --------
    >>> print(port("for k, v in d.iteritems():\\n    print(k, np.float(v))").text)
    for k, v in d.items():
        print(k, np.float(v))
    """
    before = text.replace("\r\n", "\n")
    return rewritten(before, modern(before), place)


def rewritten(before: str, today: ConvertedText, place: Place | None = None) -> Ported:
    """Result of ``port`` for code that already is valid Python 3."""
    source, lines = Source(today.text, place, today.old), today.origins
    source.old = today.old or looks_old(source)
    for _ in range(30):  # a change inside of another change is made in the next round
        for node in source.parents:
            for rule in RULES.get(type(node), ()):
                rule(node, source)
        said = source.problems
        if (changed := source.changed()) == source.text:
            break
        lines = [lines[line - 1] for line in source.origins()]
        source = Source(changed, place, source.old)
    problems = sorted({*said, *(Problem(1, failure) for failure in today.failed)})
    return Ported(before, source, problems, lines)
