"""Several questions about one case are one test: all are asked, and what fails names its question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

from opreg.core import generators

Function = Callable[..., None]


class Questions:
    """Functions that assert something of a case. Each is asked of the cases that it is for, once for every combination
    of its choices, which are functions from a case to what is chosen among."""

    def __init__(self) -> None:
        self._asked: list[tuple[Function, Callable[[Any], Any], dict[str, Callable[[Any], Iterable[Any]]]]] = []

    def __call__(self, asked_of: Callable[[Any], Any] = lambda case: True,
                 **choices: Callable[[Any], Iterable[Any]]) -> Callable[[Function], Function]:
        def add(question: Function) -> Function:
            self._asked.append((question, asked_of, choices))
            return question

        return add

    def ask(self, case: Any) -> None:
        """Ask all; each begins with the same random numbers, as a test does."""
        failed: list[BaseException] = []
        for question, asked_of, choices in self._asked:
            if asked_of(case):
                for chosen in product(*[values(case) for values in choices.values()]):
                    failed += _failures(question, case, dict(zip(choices, chosen)))
        _raise(failed, f"questions about {case}")


def of_each(cases: Iterable[Any]) -> Callable[[Function], Callable[[], None]]:
    """One test in place of one for each case: all are looked at, and what fails names its case."""

    def gathered(question: Function) -> Callable[[], None]:
        def test() -> None:
            _raise([error for case in cases for error in _failures(question, case, {})], "cases")

        test.__name__, test.__qualname__ = question.__name__, question.__qualname__
        test.__doc__, test.__module__ = question.__doc__, question.__module__
        return test

    return gathered


def _failures(question: Function, case: Any, chosen: dict[str, Any]) -> list[BaseException]:
    generators.seed(0)
    try:
        question(case, **chosen)
    except (Exception, pytest.fail.Exception) as error:
        words = [question.__name__.strip("_"), *(f"{name} {value}" for name, value in chosen.items())]
        error.add_note(f"asked of {case}: {', '.join(words)}")
        return [error]
    return []


def _raise(failed: list[BaseException], what: str) -> None:
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} {what}", failed)
