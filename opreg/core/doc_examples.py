"""Examples of many small functions in one file of text, ``examples.txt`` in the folder of a package.

The file has a paragraph for each function: its name in the first line, below it the example as in a docstring. Built-in
operators and functions of ``ops`` and ``mint`` have such files. One file serves the two packages with NumPy's names:
``opreg.np`` and ``opreg.numpy``. A function of ``npx``, or a primitive without settings, shows the example of the
function behind it, with its own name. Tests run the examples as doctests.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from inspect import cleandoc
from typing import Any

__all__ = ["add_examples", "doc_examples", "translate_example"]


def add_examples(package: str, functions: Mapping[str, Callable[..., Any]], *imports: str) -> None:
    """Append a package's examples to the docstrings of functions, given by name; names without a function are skipped.

    A function that stands under several names shows the first example.
    """
    for name, section in doc_examples(package, *imports):
        function = functions.get(name)
        if function is not None and "\nExamples\n" not in (function.__doc__ or ""):
            function.__doc__ = cleandoc(function.__doc__ or "") + section


def doc_examples(package: str, *imports: str) -> Iterator[tuple[str, str]]:
    """The functions that a package's file of examples names, each with the section that follows its docstring.

    Parameters
    ----------
    package : str
        Import name of the package.
    imports : str
        Lines that each example begins with.
    """
    text = (pkgutil.get_data(package, "examples.txt") or b"").decode()
    begin = "".join([f">>> {line}\n" for line in imports])
    for paragraph in text.strip().split("\n\n"):
        name, _, example = paragraph.strip().partition("\n")
        yield name, f"\n\nExamples\n--------\n{begin}{example}\n"


def translate_example(doc: str, function: Callable[..., Any], *changes: tuple[str, str]) -> None:
    """Append the example in a docstring to that of another function, if it has the first of the given texts, with each
    text replaced by the one beside it.

    Examples
    --------
    >>> def negative(x): "The negative."
    >>> translate_example("Minus.\\n\\nExamples\\n--------\\n>>> minus(1)\\n-1\\n", negative, ("minus(", "negative("))
    >>> negative.__doc__.splitlines()[-2:]
    ['>>> negative(1)', '-1']
    """
    _, heading, example = doc.partition("\n\nExamples\n")
    if changes[0][0] in example:
        for before, after in changes:
            example = example.replace(before, after)
        function.__doc__ = cleandoc(function.__doc__ or "") + heading + example
