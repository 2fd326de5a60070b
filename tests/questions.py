"""Several questions about one case in one test: all are asked, and a failure names its question."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from opreg.core import generators

Function = Callable[..., None]


class Questions:
    """Functions that assert facts about a case. Each is asked for its cases, once for every combination of its choices,
    which are functions from a case to the possible values."""

    def __init__(self) -> None:
        self._asked: list[tuple[Function, Callable[[Any], Any], dict[str, Callable[[Any], Iterable[Any]]]]] = []

    def __call__(self, asked_of: Callable[[Any], Any] = lambda case: True,
                 **choices: Callable[[Any], Iterable[Any]]) -> Callable[[Function], Function]:
        def add(question: Function) -> Function:
            self._asked.append((question, asked_of, choices))
            return question

        return add

    def ask(self, case: Any) -> None:
        """Asks all questions; each begins with the same random numbers, like a test."""
        failed: list[BaseException] = []
        for question, asked_of, choices in self._asked:
            if asked_of(case):
                for chosen in product(*[values(case) for values in choices.values()]):
                    failed += _failures(question, case, dict(zip(choices, chosen)))
        _raise(failed, f"questions about {_said(case)}")


def of_each(cases: Iterable[Any], by: Callable[[Any], object] | None = None) -> Callable[[Function], Function]:
    """One test for all cases: every case is tested, and a failure names its case. A question with several parameters
    takes the parts of a case. With ``by`` there is a test for each group of cases, by the name of the group:
    ``by=lambda row: row.op`` makes one for each operator."""
    groups: dict[str, list[Any]] = {} if by else {"": []}
    for case in cases:
        groups.setdefault(str(by(case)) if by else "", []).append(case)

    def gathered(question: Function) -> Function:
        parts = len(inspect.signature(question).parameters) > 1

        def test(group: str = "") -> None:
            _look_at(question, groups[group], parts)

        # Name, marks and place are the question's; the arguments are the test's own.
        functools.update_wrapper(test, question)
        test.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)] if by else [])
        return pytest.mark.parametrize("group", groups)(test) if by else test

    return gathered


def function_of(text: str) -> str:
    """Name of the function that an expression calls first, by which expressions are grouped: ``add`` of ``ops.add(x,
    y)``, ``x.add(y)``."""
    found = re.search(r"(\w+)\(", text)
    return found[1] if found else text


def _look_at(question: Function, cases: list[Any], parts: bool) -> None:
    failed: list[BaseException] = []
    skipped: list[BaseException] = []
    for case in cases:
        try:
            failed += _failures(question, case, {}, parts)
        except pytest.skip.Exception as skip:  # this case, and not those after it
            skipped.append(skip)
    _raise(failed, "cases")
    if skipped and len(skipped) == len(cases):
        raise skipped[0]


def _said(case: Any) -> str:
    """Name of a case, or its text shortened to a line; for several parts, the names of all; for a lambda its line."""
    if isinstance(case, tuple):
        return ", ".join(map(_said, case))
    name = getattr(case, "__name__", "")
    if name == "<lambda>":
        return f"lambda of line {case.__code__.co_firstlineno}"
    return name or textwrap.shorten(str(case), 200, placeholder=" ...")


def _failures(question: Function, case: Any, chosen: dict[str, Any], parts: bool = False) -> list[BaseException]:
    generators.seed(0)
    try:
        question(*(case if parts else (case,)), **chosen)
    except (Exception, pytest.fail.Exception) as error:
        words = [question.__name__.strip("_"), *(f"{name} {value}" for name, value in chosen.items())]
        error.add_note(f"asked of {_said(case)}: {', '.join(words)}")
        return [error]
    return []


def _raise(failed: list[BaseException], what: str) -> None:
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} {what}", failed)
