"""The examples in the docstrings of operators run, and print the output that they show."""

from __future__ import annotations

import doctest

import pytest

import opreg as mx
from opreg.core.registry import operators
from tests.questions import of_each

_WORDS = "\nExamples\n"
DOCUMENTED = {op.name: op.doc for op in operators() if _WORDS in op.doc and not op.name.startswith("custom.")}


@of_each(DOCUMENTED)
def test_the_example_of_an_operator_runs(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(DOCUMENTED[name], {}, name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


def test_the_most_used_operators_have_an_example() -> None:
    assert len(DOCUMENTED) >= 100


@pytest.mark.parametrize("function", [mx.nd.FullyConnected, mx.nd.concat, mx.nd.NDArray.sum, mx.nd.linalg.inverse,
                                      mx.sym.softmax])
def test_help_shows_the_example(function: object) -> None:
    assert _WORDS in (function.__doc__ or "")
