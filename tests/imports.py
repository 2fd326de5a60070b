"""Imports of a Python file, read from its text."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Import", "imports"]


class Import(NamedTuple):
    """An import statement, or a call of ``import_module``.

    Attributes
    ----------
    names : list of pair of str
        Modules, each with the name that is taken from it, which is empty where the module itself is imported; none of
        a call.
    node : ast.AST
        The statement, or the call.
    early : bool
        Whether it runs when the file is itself imported.
    for_types : bool
        Whether only type checkers see it.
    """

    names: list[tuple[str, str]]
    node: ast.Import | ast.ImportFrom | ast.Call
    early: bool
    for_types: bool


def imports(text: str, package: str) -> Iterator[Import]:
    """Imports of a file; relative ones begin at ``package``.

    Examples
    --------
    >>> [each.names for each in imports("import a.b, c\\nfrom .d import e\\nfrom . import f", "x.y")]
    [[('a.b', ''), ('c', '')], [('x.y.d', 'e')], [('x.y', 'f')]]
    """
    called = "import_module" in text or "__import__" in text  # otherwise no expression matters
    waiting: deque[tuple[ast.AST, bool, bool]] = deque([(ast.parse(text), True, False)])
    while waiting:
        node, early, for_types = waiting.popleft()
        early = early and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for_types = for_types or (isinstance(node, ast.If) and any(
            "TYPE_CHECKING" in (getattr(part, "id", ""), getattr(part, "attr", "")) for part in ast.walk(node.test)))
        children = ast.iter_child_nodes(node) if called else _statements(node)
        waiting.extend([(child, early, for_types) for child in children])
        names: list[tuple[str, str]] = []
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            names = [(base, alias.name) for alias in node.names]
        elif not (isinstance(node, ast.Call) and (
                getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in ("import_module", "__import__")):
            continue
        yield Import(names, node, early, for_types)


def _statements(node: ast.AST) -> list[ast.AST]:
    """Statements directly inside of a statement, with its branches for exceptions and patterns."""
    return [each for name in ("body", "orelse", "finalbody", "handlers", "cases") for each in getattr(node, name, ())]
