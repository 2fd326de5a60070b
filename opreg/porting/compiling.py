"""The compiled code of a ported file, with the line numbers of the original."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from . import port
from .legacy import divide, divide_in_place, element, format_percent, number
from .source import Place, aliases, bound, decode, unbuilt

__all__ = ["compiled"]


class _ImportedModule(Place):
    """The place of a module that is being imported."""

    def __init__(self, path: str, package: str) -> None:
        self.folder = os.path.dirname(os.path.abspath(path))
        self.package = package

    def sibling(self, top: str, old: bool) -> bool:
        is_sibling = bool(self.package) and _is_module(os.path.join(self.folder, top))
        return is_sibling and (old or (top not in sys.modules and importlib.util.find_spec(top) is None))

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
    """The code of a file, ported, with the line numbers of the original.

    In addition to the changes of ``port``, arrays of one element may stand for numbers, as in older NumPys: in
    ``float(x)``, ``"%f" % x`` and ``array[0] = x``. In a file for Python 2 only, ``/`` divides as it did there.

    Parameters
    ----------
    data : bytes
        Content of the file.
    path : str
        Path of the file.
    package : str
        The package for relative imports; empty if there is none.
    change : function, optional
        A function of the syntax tree and its text that may change the tree.

    Raises
    ------
    SyntaxError
        When the file is valid in neither Python.
    """
    try:
        ported = port(decode(data)[0], _ImportedModule(path, package))
    except SyntaxError as error:
        error.filename = path
        raise
    tree = ast.parse(ported.text, path)
    divides = ported.old and not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(
        alias.name == "division" for alias in node.names) for node in tree.body)
    if change is not None:
        change(tree, ported.text)
    tree = _ChangedMeanings(tree, divides).changed()
    if ported.text != ported.before:
        _restore_line_numbers(tree, ported.origins(), ported.before.split("\n"))
    return compile(tree, path, "exec", dont_inherit=True)


def _restore_line_numbers(tree: ast.AST, origins: list[tuple[int, bool]], before: list[str]) -> None:
    """Give nodes their original line numbers; a changed line covers all lines of its change."""
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


class _ChangedMeanings(ast.NodeTransformer):
    """Replaces expressions whose meaning has changed by function calls.

    Parameters
    ----------
    tree : ast.Module
        A module.
    divides : bool
        Whether ``/`` is that of Python 2.
    """

    def __init__(self, tree: ast.Module, divides: bool) -> None:
        self._tree = tree
        self._divides = divides
        self._bound = set(bound(tree))
        self._aliases = dict(aliases(tree))
        self._used: list[Callable[..., Any]] = []

    def changed(self) -> ast.Module:
        """The module, with imports of the called functions."""
        tree = self.visit(self._tree)
        if self._used:
            names = [ast.alias(function.__name__, _hidden(function)) for function in self._used]
            place = next((i for i, node in enumerate(tree.body) if not _comes_first(node, i)), 0)
            line = tree.body[place]
            tree.body.insert(place, ast.copy_location(ast.ImportFrom(number.__module__, names, 0), line))
        for node in ast.walk(tree):  # a node that has only a start position ends where it starts
            if getattr(node, "lineno", None) is not None and node.end_lineno is None:  # type: ignore[attr-defined]
                node.end_lineno, node.end_col_offset = node.lineno, node.col_offset  # type: ignore[attr-defined]
        return ast.fix_missing_locations(tree)

    def _call(self, node: ast.AST, function: Callable[..., Any], *args: ast.expr) -> ast.Call:
        if function not in self._used:
            self._used.append(function)
        return ast.copy_location(ast.Call(ast.Name(_hidden(function), ast.Load()), list(args), []), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and self._divides:
            return self._call(node, divide, node.left, node.right)
        if isinstance(node.op, ast.Mod) and not isinstance(node.right, ast.Constant) and not (
                isinstance(node.left, ast.Constant) and not isinstance(node.left.value, (str, bytes))):
            return self._call(node, format_percent, node.left, node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and self._divides and not any(
                isinstance(part, ast.Call) for part in ast.walk(node.target)):
            quotient = self._call(node, divide_in_place, _read(node.target),
                                  self._value_to_store(node.target, node.value))
            return ast.copy_location(ast.Assign([node.target], quotient), node)
        node.value = self._value_to_store(node.target, node.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if len(node.targets) == 1:
            node.value = self._value_to_store(node.targets[0], node.value)
        return node

    def _value_to_store(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value to store for ``array[i] = value``."""
        if not isinstance(target, ast.Subscript) or not _is_name(target.value) or isinstance(
                value, (ast.Constant, ast.Tuple, ast.List)):
            return value
        return self._call(value, element, _read(target.value), value)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name):
            takes = (function.id in ("float", "int", "complex") and function.id not in self._bound) or (
                self._aliases.get(function.id, "").startswith("math."))
        else:
            takes = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) \
                and self._aliases.get(function.value.id) == "math"
        if takes:
            node.args = [each if isinstance(each, (ast.Constant, ast.Starred)) else self._call(each, number, each)
                         for each in node.args]
        return node


def _hidden(function: Callable[..., Any]) -> str:
    """The name under which rewritten code calls a function."""
    return f"__{function.__name__}__"


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_name(node.value))


def _read(target: ast.expr) -> ast.expr:
    """The expression that reads an assignment's target."""
    read = ast.parse(ast.unparse(target), mode="eval").body
    for node in ast.walk(read):
        ast.copy_location(node, target)
    return read


def _comes_first(node: ast.stmt, number: int) -> bool:
    """Whether a statement has to come first: a docstring, or a future import."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) \
        and isinstance(node.value.value, str)
