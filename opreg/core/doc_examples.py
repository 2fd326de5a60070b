"""Examples of many small functions in one file of text, ``examples.txt`` in the folder of a package.

The file has a paragraph for each function: its name in the first line, below it the example as in a docstring. Built-in
operators and functions of ``ops`` have such files; ``./run test`` runs the examples as doctests of the functions.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator

__all__ = ["doc_examples"]


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
