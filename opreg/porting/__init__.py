"""Programs of another time: their text rewritten for the Python and NumPy of today.

``port`` gives the text of a module as it runs today. ``python -m opreg port`` shows what it changes in the files of a
folder, ``python -m opreg as-mxnet script.py`` runs a script through it and leaves the files alone.
"""

from __future__ import annotations

import difflib

from . import imports as _imports
from . import numpy_rules as _numpy_rules
from .python2 import NeedsParser, modern
from .rules import RULES, looks_old
from .source import Place, Problem, Source

__all__ = ["port", "Ported", "Place", "Problem", "NeedsParser"]

#: Where rules are; importing these modules puts them into the table.
_RULES = (_imports, _numpy_rules)


class Ported:
    """A text as it runs today.

    Attributes
    ----------
    text : str
        The new text.
    old : bool
        Whether it was written for Python 2 alone.
    problems : list of Problem
        What a person has to look at, at lines of the new text.
    """

    def __init__(self, before: str, text: str, old: bool, problems: list[Problem]) -> None:
        self.before = before
        self.text = text
        self.old = old
        self.problems = problems

    def origins(self) -> list[tuple[int, bool]]:
        """For each line of the new text the line that it was before, and whether it is still the same."""
        if self.text == self.before:
            return [(number, True) for number in range(1, self.text.count("\n") + 2)]
        before, after = self.before.split("\n"), self.text.split("\n")
        lines: list[tuple[int, bool]] = []
        for tag, a, z, b, y in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            lines += [(min(a + each, max(z - 1, a)) + 1, tag == "equal") for each in range(y - b)]
        return lines


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
    text, old, failed = modern(before)
    source = Source(text, place, old)
    old = old or looks_old(source)
    for _ in range(30):  # what lies inside of a change is changed in the next round
        source = Source(text, place, old)
        for node in list(source.parents):
            for rule in RULES.get(type(node), ()):
                rule(node, source)
        if (changed := source.changed()) == text:
            break
        text = changed
    problems = sorted({*source.problems, *(Problem(1, each) for each in failed)})
    return Ported(before, text, old, problems)
