"""The examples of operators, and of functions of ``ops``, ``mint``, ``np`` and ``numpy``, print what they show."""

from __future__ import annotations

import doctest
import operator

import pytest

import opreg as mx
from opreg.core.doc_examples import doc_examples
from opreg.core.registry import operators
from tests.questions import of_each

_WORDS = "\nExamples\n"
DOCUMENTED = {op.name: op.doc for op in operators() if _WORDS in op.doc and not op.name.startswith("custom.")}


#: Packages with a file of examples for functions, which are run in each module that shows them.
FACES = {"ops": "opreg.nn.ops", "mint": "opreg.nn.mint", "mint.nn": "opreg.nn.mint.nn",
         "np": "opreg.builtin.numpy_names", "numpy": "opreg.builtin.numpy_names"}


def _run(name: str, example: str) -> None:
    test = doctest.DocTestParser().get_doctest(example, {}, name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert not said, "".join(said)


@of_each(DOCUMENTED)
def test_the_example_of_an_operator_runs(name: str) -> None:
    _run(name, DOCUMENTED[name])


@of_each(FACES)
def test_the_examples_of_functions_run(face: str) -> None:
    """Each example is part of a docstring; those that two modules share print the same in both."""
    shown = {name: getattr(operator.attrgetter(face)(mx), name, None) for name, _ in doc_examples(FACES[face])}
    functions = {name: function for name, function in shown.items() if function is not None}
    assert face.startswith(("np", "numpy")) or functions.keys() == shown.keys()
    for name, function in functions.items():
        if _WORDS in (function.__doc__ or ""):
            _run(f"{face}.{name}", function.__doc__.partition(_WORDS)[2])


#: Functions and classes that show the example of another function, with their own name.
TRANSLATED = {name: getattr(face, name).__doc__ for face in (mx.npx, mx.ops) for name in face.__all__
              if f".{name}(" in (getattr(face, name).__doc__ or "").partition(_WORDS)[2]
              and (face is mx.npx or isinstance(getattr(face, name), type))}


@of_each(TRANSLATED)
def test_a_translated_example_runs(name: str) -> None:
    _run(name, TRANSLATED[name].partition(_WORDS)[2])


def test_functions_of_npx_and_primitives_have_examples() -> None:
    assert len(TRANSLATED) >= 170 and {"softmax", "box_nms", "Abs", "Transpose"} <= TRANSLATED.keys()


def test_an_example_of_numpys_functions_belongs_to_a_function() -> None:
    names = {name for name, _ in doc_examples("opreg.builtin.numpy_names")}
    assert {name for name in names if not hasattr(mx.np, name) and not hasattr(mx.numpy, name)} == set()


def test_the_most_used_operators_have_an_example() -> None:
    assert len(DOCUMENTED) >= 100


@pytest.mark.parametrize("function", [mx.nd.FullyConnected, mx.nd.concat, mx.nd.NDArray.sum, mx.nd.linalg.inverse,
                                      mx.sym.softmax])
def test_help_shows_the_example(function: object) -> None:
    assert _WORDS in (function.__doc__ or "")
