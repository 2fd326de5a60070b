"""The text of a file, its syntax tree, and small edits that do not change the rest of the text."""

from __future__ import annotations

import ast
import functools
import io
import os
import re
import tokenize
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Problem", "Place", "Source", "aliases", "bound", "children", "decode", "unbuilt", "walk"]

#: Names that scripts test for Python 2 or 3; code under such a test is not changed.
_VERSION = re.compile(r"version_info|PY2|PY3|PYTHON2|PYTHON3|python_version|sys\.version")
_MISSING = {"ImportError", "ModuleNotFoundError", "NameError", "AttributeError"}


#: Begin and end of a piece of text, in bytes, and its replacement.
_Edit: TypeAlias = tuple[int, int, str]


class Problem(NamedTuple):
    """A line that the user has to check: the reason, and whether it is only a warning."""

    line: int
    text: str
    warning: bool = False


class Place:
    """The place of a module, for resolving its imports.

    This one is in no folder, has no neighbouring modules, and resolves all its imports. ``names`` are packages that are
    imported under another name.
    """

    names: Mapping[str, str] = {}

    def sibling(self, top: str, old: bool) -> bool:
        """Whether ``import top`` means the module beside this one, as in packages for Python 2."""
        return False

    def found(self, module: str, level: int) -> bool:
        """Whether ``from module import name`` would succeed."""
        return True

    def unbuilt(self, module: str, level: int) -> bool:
        """Whether there is the source of a compiled module, but not its binary."""
        return any(unbuilt(os.path.join(base, *module.split("."))) for base in self.bases(level))

    def bases(self, level: int) -> Iterable[str | os.PathLike[str]]:
        """Folders that are searched for a module whose name has ``level`` dots before it."""
        return ()


def decode(data: bytes) -> tuple[str, str]:
    """The text of a Python file, and its encoding: the declared one, or UTF-8.

    Raises
    ------
    SyntaxError
        When it cannot be decoded; the error has the line of the first wrong byte.

    Examples
    --------
    >>> decode(b"# -*- coding: latin-1 -*-\\n\\xe4 = 1\\n")
    ('# -*- coding: latin-1 -*-\\nä = 1\\n', 'iso-8859-1')
    """
    if b"\0" in data:
        raise SyntaxError("not text: it has a zero byte", ("<file>", data.count(b"\n", 0, data.index(0)) + 1, 0, ""))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding), encoding
    except (UnicodeError, LookupError) as error:  # LookupError: the encoding is unknown, or not one of text
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise SyntaxError(f"no text: {error}", ("<file>", line, 0, "")) from None


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Classes of nodes that only mark other nodes, such as ``Load``; half of a tree's nodes are of them.
_MARKS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


def children(node: ast.AST) -> list[ast.AST]:
    """The children of a node that ``ast.iter_child_nodes`` gives, except marks like ``Load``."""
    results: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            results += [each for each in value if isinstance(each, ast.AST) and not isinstance(each, _MARKS)]
        elif isinstance(value, ast.AST) and not isinstance(value, _MARKS):
            results.append(value)
    return results


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes in it, in the order of ``ast.walk``, but several times as fast."""
    results = [node]
    for each in results:
        results += children(each)
    return results


def unbuilt(path: str) -> bool:
    """Whether there is the source of a compiled module, but not its binary; ``path`` has no suffix.

    In Python 2 it comes before a package of that name elsewhere.
    """
    folder, name = os.path.split(path)
    endings = {each[len(name):] for each in (os.listdir(folder) if os.path.isdir(folder) else ())
               if each.startswith(f"{name}.")}
    return bool(endings & {".pyx", ".cpp", ".c", ".cu"}) and not any(
        ending.endswith((".so", ".pyd", ".dll", ".dylib", ".py")) for ending in endings)


class Source:
    """The text of a module for Python 3, facts about its code, and the changes to make.

    Changes are collected and applied at once: of two that overlap only the first is applied, and the other one is found
    again in the text that ``changed`` returns.

    Parameters
    ----------
    text : str
        Lines end in ``\\n`` alone.
    place : Place
        The module's place. old : bool Whether the file was written only for Python 2: then code with another meaning in
        Python 3 is rewritten, too.

    Attributes
    ----------
    tree : ast.Module
        The syntax tree. parents : dict of ast.AST The enclosing node of each node, in the order of ``ast.walk``.
        positions : dict of int The positions of positional arguments of calls. bound, functions, aliases Bound names,
        names of functions, and names that imports bind, with their full names. problems : list of Problem Problems
        reported so far.

    Raises
    ------
    SyntaxError
        When the text is not valid Python 3.

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
        self.lines = re.split(r"\r\n|\r|\n", text)
        nodes = walk(self.tree)
        self.parents = {child: node for node in nodes for child in children(node)}
        self.positions = {argument: i for node in self.parents if isinstance(node, ast.Call)
                          for i, argument in enumerate(node.args)}
        self.bound = {name for node in nodes for name in _binds(node)}
        self.functions = {node.name for node in self.parents if isinstance(node, ast.FunctionDef)}
        self.aliases = {name: full for node in nodes for name, full in _imports(node)}
        self._bytes = text.encode()  # columns of trees count bytes
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._changes: list[list[_Edit]] = []
        self._imports: dict[str, None] = {}
        self._said: set[Problem] = set()
        self._guarded: dict[ast.AST, bool] = {}
        self._asking: dict[ast.AST, Container[ast.AST]] = {}
        self._named: dict[ast.AST, dict[str, list[ast.Name]]] = {}
        self._inside: dict[ast.AST, set[str]] = {}
        self._answers: dict[Hashable, bool] = {}
        self._assigned: dict[ast.AST, dict[str, list[ast.expr]]] = {}

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Bounds of a node, in bytes."""
        return (self._starts[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
                self._starts[node.end_lineno - 1] + node.end_col_offset)  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self._bytes[start:end].decode()

    def between(self, start: int, end: int) -> str:
        """The text between two positions."""
        return self._bytes[start:end].decode()

    def replace(self, node: ast.AST, text: str) -> None:
        """Replace a node by a text."""
        self._changes.append([(*self.span(node), text)])

    def put(self, start: int, end: int, text: str) -> None:
        """Replace the text between two positions."""
        self._changes.append([(start, end, text)])

    def wrap(self, node: ast.AST, before: str, after: str) -> None:
        """Insert texts before and after a node."""
        start, end = self.span(node)
        self._changes.append([(start, start, before), (end, end, after)])

    def wrap_argument(self, call: ast.Call, argument: ast.AST, before: str, after: str) -> None:
        """Insert texts before and after an argument of a call, outside of the argument's own parentheses."""
        start, end = self.span(argument)
        first = self._bytes.index(b"(", self.span(call.func)[1]) + 1
        while (left := self._bytes[first:start].rstrip()).endswith(b"("):
            start = first + len(left) - 1
            end = self._bytes.index(b")", end) + 1
        self._changes.append([(start, start, before), (end, end, after)])

    def rename(self, node: ast.Name | ast.Attribute, name: str) -> None:
        """Replace a name, or the last part of a dotted name."""
        _, end = self.span(node)
        length = len((node.id if isinstance(node, ast.Name) else node.attr).encode())
        self._changes.append([(end - length, end, name)])

    def add_import(self, line: str) -> None:
        """Add an import to those at the beginning of the file."""
        if line not in self._own_imports:
            self._imports[line] = None

    def report(self, node: ast.AST, text: str, *, warning: bool = False) -> None:
        """Report a line that the user has to check."""
        problem = Problem(getattr(node, "lineno", 1), text, warning)
        if problem not in self._said:
            self._said.add(problem)
            self.problems.append(problem)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Enclosing nodes of a node, the innermost first."""
        while (up := self.parents.get(node)) is not None:
            yield up
            node = up

    def scope(self, node: ast.AST) -> ast.AST:
        """The function that contains a node, otherwise the module."""
        for up in self.ancestors(node):
            if isinstance(up, (*_FUNCTIONS, ast.Module)):
                return up
        return self.tree

    def named(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Occurrences of a name within a node."""
        if scope not in self._named:
            result = self._named[scope] = {}
            for node in walk(scope):
                if isinstance(node, ast.Name):
                    result.setdefault(node.id, []).append(node)
        return self._named[scope].get(name, [])

    def assigned_values(self, scope: ast.AST, name: str) -> list[ast.expr]:
        """The values that are assigned to a single name within a node."""
        if scope not in self._assigned:
            result = self._assigned[scope] = {}
            for node in walk(scope):
                if isinstance(node, ast.Assign):
                    for name_given in {target.id for target in node.targets if isinstance(target, ast.Name)}:
                        result.setdefault(name_given, []).append(node.value)
        return self._assigned[scope].get(name, [])

    def once(self, question: Hashable, answer: Callable[[], bool]) -> bool:
        """The cached answer to a yes-or-no question about the file. While the answer is being computed, it is no."""
        if question not in self._answers:
            self._answers[question] = False
            self._answers[question] = answer()
        return self._answers[question]

    @functools.cached_property
    def futures(self) -> set[str]:
        """Names that the module imports from ``__future__``."""
        return {alias.name for node in self.tree.body if isinstance(node, ast.ImportFrom)
                and node.module == "__future__" for alias in node.names}

    @functools.cached_property
    def generators(self) -> set[str]:
        """Names of functions that have a ``yield`` in them or in nested functions."""
        return {up.name for node in self.parents if isinstance(node, (ast.Yield, ast.YieldFrom))
                for up in self.ancestors(node) if isinstance(up, ast.FunctionDef)}

    @functools.cached_property
    def _own_imports(self) -> set[str]:
        return {ast.unparse(node) for node in self.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))}

    def reads(self, name: str) -> bool:
        """Whether a name is read and neither the module nor an enclosing function binds it."""
        return name not in self._of_module and not all(
            any(name in self._bound_in(up) for up in self.ancestors(node) if isinstance(up, _FUNCTIONS))
            for node in self.named(self.tree, name))

    def _bound_in(self, function: ast.AST) -> set[str]:
        if function not in self._inside:
            self._inside[function] = set(bound(function))
        return self._inside[function]

    @functools.cached_property
    def _of_module(self) -> set[str]:
        """Names that are bound at module level."""
        nodes: list[ast.AST] = [self.tree]
        for node in nodes:
            nodes += () if isinstance(node, _FUNCTIONS) else children(node)
        return {name for node in nodes for name in _binds(node)}

    def is_guarded(self, node: ast.AST) -> bool:
        """Whether enclosing code tests the version of Python, or handles missing names."""
        below: list[ast.AST] = []
        while (known := self._guarded.get(node)) is None:
            below.append(node)
            up = self.parents.get(node)
            if up is None or self._tests_version(up, node):
                known = up is not None
                break
            node = up
        self._guarded.update(dict.fromkeys(below, known))
        return known

    def _tests_version(self, up: ast.AST, node: ast.AST) -> bool:
        if not isinstance(up, (ast.If, ast.IfExp, ast.ExceptHandler, ast.Try)):
            return False
        if up not in self._asking:
            self._asking[up] = _version_parts(up)
        return node in self._asking[up]

    def resolve(self, node: ast.AST) -> str:
        """The full name of a dotted name, according to the file's imports; empty if it is unknown.

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
        """The text with all changes that do not overlap; unchanged without changes."""
        parts, at = [], 0
        for start, end, text in self._chosen():
            parts += [self._bytes[at:start], text.encode()]
            at = end
        return b"".join([*parts, self._bytes[at:]]).decode()

    def origins(self) -> list[int]:
        """For each line of the changed text its line in this text."""
        lines, line, at = [1], 1, 0
        for start, end, text in [*self._chosen(), (len(self._bytes), len(self._bytes), "")]:
            kept, replaced = self._bytes.count(b"\n", at, start), self._bytes.count(b"\n", start, end)
            lines += range(line + 1, line + 1 + kept)
            line += kept
            lines += [line + min(i, replaced) for i in range(1, text.count("\n") + 1)]
            line, at = line + replaced, end
            if not text and self._bytes[start - 1:start] in (b"", b"\n"):  # a complete line is removed
                lines[-1] = line
        return lines

    def _chosen(self) -> list[_Edit]:
        """The changes to apply, by position: of two that overlap the first one."""
        taken = _Taken(len(self._bytes))
        edits = [edit for change in self._changes if taken.take(change) for edit in change]
        if self._imports:
            place = self._head()
            edits.insert(0, (place, place, "".join(line + "\n" for line in self._imports)))
        return sorted(edits, key=lambda edit: edit[:2])

    def _head(self) -> int:
        """Offset for a new import: before the first import, but after those from ``__future__``."""
        body = self.tree.body
        after = 0
        for place, node in enumerate(body):
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if future or (place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                after = self._starts[node.end_lineno or 1]
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                return max(after, self._starts[node.lineno - 1])
        return after if after or not body else self._starts[body[0].lineno - 1]


class _Taken:
    """The replaced byte ranges of a text, and the positions of insertions."""

    def __init__(self, length: int) -> None:
        self.replaced, self.inside, self.between = (bytearray(length + 1) for _ in range(3))

    def take(self, change: Sequence[_Edit]) -> bool:
        """Accept a change, unless it overlaps an accepted one; two insertions at the same position overlap, since their
        order is unknown."""
        for start, end, _ in change:
            if start == end and (self.between[start] or self.inside[start]):
                return False
            if start < end and (self.replaced.find(1, start, end) >= 0 or self.between.find(1, start + 1, end) >= 0):
                return False
        for start, end, _ in change:
            if start == end:
                self.between[start] = 1
            else:
                self.replaced[start:end] = b"\1" * (end - start)
                self.inside[start + 1:end] = b"\1" * (end - start - 1)
        return True


def _version_parts(up: ast.If | ast.IfExp | ast.ExceptHandler | ast.Try) -> Container[ast.AST]:
    """The parts of a statement or expression that a test of the version, or a handler of missing names, guards."""
    if isinstance(up, (ast.If, ast.IfExp)):
        asks = _VERSION.search(ast.unparse(up.test)) is not None
        return {*ast.iter_child_nodes(up)} - {up.test} if asks else ()
    if isinstance(up, ast.ExceptHandler):
        return {*ast.iter_child_nodes(up)} if _caught_errors(up) & _MISSING else ()
    caught = set().union(*(_caught_errors(handler) for handler in up.handlers))
    only_imports = all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in up.body)
    return {*up.body} if caught & _MISSING or (only_imports and caught) else ()


def _caught_errors(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"Exception"}
    kinds: Iterable[ast.expr] = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind) for kind in kinds}


def bound(tree: ast.AST) -> Iterator[str]:
    """All names that a tree binds."""
    for node in walk(tree):
        yield from _binds(node)


def aliases(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that imports in a tree bind, with their full names."""
    for node in walk(tree):
        yield from _imports(node)


def _binds(node: ast.AST) -> Iterator[str]:
    """Names that a node itself binds."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        yield node.name or ""
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name.partition(".")[0]) for alias in node.names)


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that an import binds, with their full names."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
