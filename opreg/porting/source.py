"""A file's text, its tree, and small changes of the text that leave the rest of it as its author wrote it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["Problem", "Place", "Source", "aliases", "bound", "unbuilt"]

#: What tells one Python from the other; code below such a question knows what it does.
_VERSION = re.compile(r"version_info|PY2|PY3|PYTHON2|PYTHON3|python_version|sys\.version")
_MISSING = {"ImportError", "ModuleNotFoundError", "NameError", "AttributeError"}


class Problem(NamedTuple):
    """What a person has to look at: a line, why, and whether it is a warning only."""

    line: int
    text: str
    warning: bool = False


class Place:
    """Where a module is, as far as its imports ask.

    One that is nowhere has no siblings, and finds what it imports. ``names`` are packages that go by another name.
    """

    names: Mapping[str, str] = {}

    def sibling(self, top: str, old: bool) -> bool:
        """Whether ``import top`` means the module beside this one, as in packages for Python 2."""
        return False

    def found(self, module: str, level: int) -> bool:
        """Whether what ``from module import`` names is there."""
        return True

    def unbuilt(self, module: str, level: int) -> bool:
        """Whether a compiled module lies there as source, and not as a binary."""
        return any(unbuilt(os.path.join(base, *module.split("."))) for base in self.bases(level))

    def bases(self, level: int) -> Iterable[str | os.PathLike[str]]:
        """Folders in which modules are looked for, with so many dots before their names."""
        return ()


def unbuilt(path: str) -> bool:
    """Whether a compiled module lies there, a path without its ending, as source and not as a binary.

    In Python 2 it comes before a package of that name elsewhere.
    """
    folder, name = os.path.split(path)
    endings = {each[len(name):] for each in (os.listdir(folder) if os.path.isdir(folder) else ())
               if each.startswith(f"{name}.")}
    return bool(endings & {".pyx", ".cpp", ".c", ".cu"}) and not any(
        each.endswith((".so", ".pyd", ".dll", ".dylib", ".py")) for each in endings)


class Source:
    """The text of a module for Python 3, what is in it, and what is to be changed.

    Changes are collected and applied at once: of two that overlap the first stays, and the other one is found again in
    the text that ``changed`` gives.

    Parameters
    ----------
    text : str
        Lines end in ``\\n`` alone.
    place : Place
        Where it is.
    old : bool
        Whether the file was written for Python 2 alone: what Python 3 takes in another sense is rewritten, too.

    Raises
    ------
    SyntaxError
        The text is not of Python 3.

    Examples
    --------
    >>> source = Source("x = f(1)\\n")
    >>> source.wrap(source.tree.body[0].value, "int(", ")")
    >>> source.changed()
    'x = int(f(1))\\n'
    """

    def __init__(self, text: str, place: Place | None = None, old: bool = False) -> None:
        self.text = text
        self.place = place or Place()
        self.old = old
        self.tree = ast.parse(text)
        self.problems: list[Problem] = []
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.bound = set(bound(self.tree))
        self.functions = {node.name for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}
        self.aliases = dict(aliases(self.tree))
        self._bytes = text.encode()  # columns of trees count bytes
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._changes: list[list[tuple[int, int, str]]] = []
        self._imports: list[str] = []
        self._guarded: dict[ast.AST, bool] = {}

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        return (self._starts[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
                self._starts[node.end_lineno - 1] + node.end_col_offset)  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self._bytes[start:end].decode()

    def between(self, start: int, end: int) -> str:
        """The text between two places."""
        return self._bytes[start:end].decode()

    def replace(self, node: ast.AST, text: str) -> None:
        """Put a text in the place of a node."""
        self._changes.append([(*self.span(node), text)])

    def put(self, start: int, end: int, text: str) -> None:
        """Put a text in the place of what stands between two places."""
        self._changes.append([(start, end, text)])

    def wrap(self, node: ast.AST, before: str, after: str) -> None:
        """Put texts before and behind a node."""
        start, end = self.span(node)
        self._changes.append([(start, start, before), (end, end, after)])

    def rename(self, node: ast.Name | ast.Attribute, name: str) -> None:
        """Give a name, or the last part of a dotted one, another text."""
        _, end = self.span(node)
        length = len((node.id if isinstance(node, ast.Name) else node.attr).encode())
        self._changes.append([(end - length, end, name)])

    def need(self, line: str) -> None:
        """Have an import among those at the head of the file."""
        if line not in self._imports and not any(ast.unparse(each) == line for each in self.tree.body):
            self._imports.append(line)

    def report(self, node: ast.AST, text: str, *, warning: bool = False) -> None:
        """Say what a person has to look at."""
        problem = Problem(getattr(node, "lineno", 1), text, warning)
        if problem not in self.problems:
            self.problems.append(problem)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node lies in, from the innermost."""
        while (up := self.parents.get(node)) is not None:
            yield up
            node = up

    def scope(self, node: ast.AST) -> ast.AST:
        """The function that a node lies in, else the module."""
        for up in self.ancestors(node):
            if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                return up
        return self.tree

    def reads(self, name: str) -> bool:
        """Whether a name is read where nothing binds it: neither the module, nor the functions around."""
        used = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name) and node.id == name]
        if not used or any(self.scope(node) is self.tree and name in _binds(node) for node in ast.walk(self.tree)):
            return False
        return any(not any(name in set(bound(up)) for up in self.ancestors(node) if up is not self.tree
                           and isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef))) for node in used)

    def guarded(self, node: ast.AST) -> bool:
        """Whether code around a node has asked which Python this is, or is ready for names that are not there."""
        known = self._guarded.get(node)
        if known is None:
            up = self.parents.get(node)
            known = up is not None and (_asks(up, node) or self.guarded(up))
            self._guarded[node] = known
        return known

    def resolve(self, node: ast.AST) -> str:
        """The full name of what a dotted name means by the imports of the file, else empty.

        Examples
        --------
        >>> source = Source("import numpy as np\\nnp.random.choice")
        >>> source.resolve(source.tree.body[1].value)
        'numpy.random.choice'
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return ""
        return ".".join([self.aliases[node.id], *reversed(parts)])

    def changed(self) -> str:
        """The text with all changes that do not overlap; itself where there are none."""
        taken: list[tuple[int, int, str]] = []
        for change in self._changes:
            if not any(_overlap(new, old) for new in change for old in taken):
                taken += change
        result = self._bytes
        for start, end, text in sorted(taken, key=lambda change: change[:2], reverse=True):
            result = result[:start] + text.encode() + result[end:]
        if self._imports:
            place = self._head()
            place += sum(len(text.encode()) - (end - start) for start, end, text in taken if start < place)
            result = result[:place] + "".join(line + "\n" for line in self._imports).encode() + result[place:]
        return result.decode()

    def _head(self) -> int:
        """Where an import goes: before the first one, but for those of the future."""
        body = self.tree.body
        after = 0
        for place, node in enumerate(body):
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if future or (place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                after = self._starts[node.end_lineno or 1]
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                return max(after, self._starts[node.lineno - 1])
        return after if after or not body else self._starts[body[0].lineno - 1]


def _overlap(a: tuple[int, int, str], b: tuple[int, int, str]) -> bool:
    """Whether two changes meet; insertions at one place do, since nobody could say which comes first."""
    if a[0] == a[1] and b[0] == b[1]:
        return a[0] == b[0]
    return a[0] < b[1] and b[0] < a[1]


def _asks(up: ast.AST, node: ast.AST) -> bool:
    if isinstance(up, (ast.If, ast.IfExp)):
        return node is not up.test and _VERSION.search(ast.unparse(up.test)) is not None
    if isinstance(up, ast.ExceptHandler):
        return _caught(up) & _MISSING != set()
    if isinstance(up, ast.Try) and node in up.body:
        caught = set().union(*(_caught(handler) for handler in up.handlers))
        only_imports = all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in up.body)
        return bool(caught & _MISSING) or (only_imports and bool(caught))
    return False


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"Exception"}
    kinds: Iterable[ast.expr] = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind) for kind in kinds}


def bound(tree: ast.AST) -> Iterator[str]:
    """Names that anything in the file binds."""
    for node in ast.walk(tree):
        yield from _binds(node)


def _binds(node: ast.AST) -> Iterator[str]:
    """Names that a node binds by itself."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        yield node.name or ""
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name.partition(".")[0]) for alias in node.names)


def aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that imports bind, each with what it means."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
