"""The code of a file as it runs today, with the lines that the file has."""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import sys
import tokenize
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from types import CodeType

from . import port
from .legacy import divide, divide_in_place
from .source import Place, unbuilt

__all__ = ["compiled"]

#: Python 2's division, by the names that rewritten code calls it.
_DIVISIONS = {"__divide__": divide, "__divide_in_place__": divide_in_place}
_DIVIDE, _DIVIDE_IN_PLACE = _DIVISIONS


class _Here(Place):
    """Where a module is that is being imported."""

    def __init__(self, path: str, package: str) -> None:
        self.folder = os.path.dirname(os.path.abspath(path))
        self.package = package

    def sibling(self, top: str, old: bool) -> bool:
        there = bool(self.package) and _is_module(os.path.join(self.folder, top))
        return there and (old or (PathFinder.find_spec(top) is None and top not in sys.builtin_module_names))

    def found(self, module: str, level: int) -> bool:
        if level and not self.package:
            return True
        if not level and unbuilt(os.path.join(self.folder, *module.split("."))):
            return False
        try:
            return importlib.util.find_spec("." * level + module, self.package or None) is not None \
                or _is_module(os.path.join(self.folder, *module.split(".")))
        except (ImportError, ValueError):
            return False

    def bases(self, level: int) -> Iterable[str]:
        return [os.path.join(self.folder, *[".."] * (level - 1))] if level else [self.folder, *sys.path]


def _is_module(path: str) -> bool:
    return os.path.isfile(path + ".py") or os.path.isfile(os.path.join(path, "__init__.py"))


def compiled(data: bytes, path: str, package: str = "", change: Callable[[ast.Module, str], None] | None = None
             ) -> CodeType:
    """The code of a file, rewritten, with the lines of the file as it is.

    In a file for Python 2 alone ``/`` divides as it did there.

    Parameters
    ----------
    data : bytes
        What the file holds.
    path : str
        Where it is.
    package : str
        The package that its imports are relative to; empty where there is none.
    change : function, optional
        It is given the tree and the text that the tree was read from, and may change the tree.

    Raises
    ------
    SyntaxError
        The file is of neither Python.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        ported = port(data.decode(encoding), _Here(path, package))
    except SyntaxError as error:
        error.filename = path
        raise
    tree = ast.parse(ported.text, path)
    if ported.old and not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(
            alias.name == "division" for alias in node.names) for node in tree.body):
        tree = _divided(tree)
    if change is not None:
        change(tree, ported.text)
    if ported.text != ported.before:
        _place_back(tree, ported.origins(), ported.before.split("\n"))
    return compile(tree, path, "exec", dont_inherit=True)


def _place_back(tree: ast.AST, origins: list[tuple[int, bool]], before: list[str]) -> None:
    """Give nodes the lines that they had; those of lines that have changed stretch over all of it."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias)):
            continue
        first, same = origins[node.lineno - 1]
        last, same_end = origins[(node.end_lineno or node.lineno) - 1]
        if not (same and same_end):
            line = before[first - 1]
            node.col_offset = len(line) - len(line.lstrip())
            node.end_col_offset = len(before[last - 1].encode())
        node.lineno, node.end_lineno = first, last


class _Divisions(ast.NodeTransformer):
    """Calls of functions that divide as Python 2 does."""

    found = False

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return self._call(node, _DIVIDE, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or any(isinstance(each, ast.Call) for each in ast.walk(node.target)):
            return node
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        quotient = self._call(node, _DIVIDE_IN_PLACE, read, node.value)
        return ast.copy_location(ast.Assign([node.target], quotient), node)

    def _call(self, node: ast.AST, name: str, a: ast.expr, b: ast.expr) -> ast.Call:
        self.found = True
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [a, b], []), node)


def _divided(tree: ast.Module) -> ast.Module:
    """The module with Python 2's division, whose functions it imports where it divides."""
    divisions = _Divisions()
    tree = divisions.visit(tree)
    if divisions.found:
        names = [ast.alias(function.__name__, name) for name, function in _DIVISIONS.items()]
        place = next((number for number, node in enumerate(tree.body) if not _comes_first(node, number)), 0)
        line = tree.body[place]
        tree.body.insert(place, ast.copy_location(ast.ImportFrom(divide.__module__, names, 0), line))
    return ast.fix_missing_locations(tree)


def _comes_first(node: ast.stmt, number: int) -> bool:
    """Whether a statement has to stand before all others: a docstring, or an import of the future."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) \
        and isinstance(node.value.value, str)
