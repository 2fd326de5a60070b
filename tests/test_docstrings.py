"""Docstrings agree with the code: parameters and attributes that they list exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from .questions import of_each

ROOT = Path(__file__).parent.parent
FILES = sorted({*ROOT.glob("opreg/**/*.py"), *ROOT.glob("symbol/**/*.py"), *ROOT.glob("ndarray/**/*.py")})


def _listed(node: ast.ClassDef | ast.FunctionDef, title: str) -> list[str]:
    """The names that a section of a docstring lists."""
    section = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\n\n\w|\Z)", ast.get_docstring(node) or "",
                        re.DOTALL | re.MULTILINE)
    heads = [] if section is None else [line.partition(" : ")[0] for line in re.findall(r"^\S.*", section[1], re.M)]
    names = [name.strip().lstrip("*") for head in heads for name in head.split(",")]
    return [name for name in names if name.isidentifier()]


def _parameters(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg,
                                  arguments.kwarg) if each is not None}


def _unknown(node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    """Listed names that a function or class does not have; attributes only of classes without bases."""
    functions = [node] if isinstance(node, ast.FunctionDef) else [
        each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__call__")]
    known = set().union(*map(_parameters, functions))
    if functions and not any(each.args.kwarg for each in functions):
        yield from [name for name in _listed(node, "Parameters") if name not in known]
    if isinstance(node, ast.ClassDef) and not node.bases:
        known = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        known |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        known |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        yield from [name for name in _listed(node, "Attributes") if name not in known]


@of_each(FILES, by=lambda path: path.parts[len(ROOT.parts)])
def test_parameters_and_attributes_of_docstrings_exist(path):
    text = path.read_text()
    tree = ast.parse(text if re.search(r"^ *(Parameters|Attributes)\n *-", text, re.MULTILINE) else "")
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    assert {node.name: names for node in nodes if (names := [*_unknown(node)])} == {}
