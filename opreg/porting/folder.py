"""``opreg port``: what changes in the files of a folder, as a diff or written."""

from __future__ import annotations

import ast
import difflib
import io
import os
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import opreg

from ..core.files import whole
from . import NeedsParser, Ported, Problem, modern, port
from .rules import looks_old
from .source import Place, Source, unbuilt

__all__ = ["Change", "changes", "diff", "write"]

#: Folders in which nobody's own files are.
_SKIPPED = {"build", "dist", "node_modules", "site-packages", "__pycache__", "venv", "env"}
_BINARY = (".so", ".pyd", ".dll", ".dylib")


class Change(NamedTuple):
    """A file: its path, encoding and line ends, its text before and after, and what is left to a person."""

    path: Path
    encoding: str
    newline: str
    before: str
    after: str
    problems: list[Problem]
    origins: list[int]


class _InFolder(Place):
    """Where a file is in a folder that is ported."""

    names = {"mxnet": "opreg", "mindspore": "opreg"}

    def __init__(self, path: Path, root: Path, main: bool, old_package: bool) -> None:
        self.folder = path.parent
        self.root = root
        self.in_package = not main and (self.folder / "__init__.py").exists()
        self.old_package = old_package

    def sibling(self, top: str, old: bool) -> bool:
        if not self.in_package or not _is_module(self.folder / top):
            return False
        return old or (self.old_package and not _is_module(self.root / top) and top not in sys.stdlib_module_names)

    def found(self, module: str, level: int) -> bool:
        parts = module.split(".")
        if not level and unbuilt(os.path.join(self.folder, *parts)):
            return False
        return any(_is_module(base.joinpath(*parts)) for base in self.bases(level))

    def bases(self, level: int) -> Iterable[Path]:
        if level:
            return [self.folder.joinpath(*[".."] * (level - 1))]
        inside = [up for up in self.folder.parents if up.is_relative_to(self.root)]
        return [self.folder, *inside, self.root, *(up / "lib" for up in (self.folder, *inside))]


def _is_module(path: Path) -> bool:
    return path.with_name(path.name + ".py").is_file() or (path / "__init__.py").is_file() or any(
        each.name.startswith(path.name + ".") and each.suffix in _BINARY
        for each in (path.parent.iterdir() if path.parent.is_dir() else ()))


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (path for name in sorted(names) if name.endswith(".py")
                    and not (path := Path(folder, name)).is_symlink())


def changes(root: Path) -> Iterator[Change]:
    """What there is to change, or to say, of the files below a folder, or of one file.

    Raises
    ------
    NeedsParser
        A file is of Python 2, and the parser for it is not installed.
    """
    texts: dict[Path, tuple[str, str, str]] = {}
    old: dict[Path, bool] = {}
    for path in _files(root):
        try:
            data = path.read_bytes()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding)
            newline = "\r\n" if "\r\n" in text else "\n"
            texts[path] = text.replace("\r\n", "\n"), encoding, newline
            python3, python2, _ = modern(texts[path][0])
            old[path] = python2 or looks_old(Source(python3))
        except NeedsParser as error:
            raise NeedsParser(f"{path}: {error}") from None
        except (SyntaxError, UnicodeDecodeError) as error:
            line = getattr(error, "lineno", None) or 1
            problem = Problem(line, f"not read: {getattr(error, 'msg', None) or error}")
            yield Change(path, "", "", "", "", [problem], [])
    packages = {path.parent for path, is_old in old.items() if is_old}
    base = root if root.is_dir() else root.parent
    for path in old:
        text, encoding, newline = texts[path]
        main = "__main__" in text
        ported = port(text, _InFolder(path, base, main, path.parent in packages))
        problems = sorted({*ported.problems, *_absent(ported)})
        if ported.text != text or problems:
            yield Change(path, encoding, newline, text, ported.text, problems,
                         [line for line, _ in ported.origins()])


def _absent(ported: Ported) -> Iterator[Problem]:
    """Names of the library that are not here."""
    source = Source(ported.text)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "opreg" and not node.level:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*"]
        elif isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names if alias.name.startswith("opreg.")]
        elif isinstance(node, ast.Attribute) and not isinstance(source.parents[node], ast.Attribute):
            wanted = [full] if (full := source.resolve(node)).startswith("opreg.") else []
        else:
            continue
        if not source.guarded(node):
            yield from (Problem(node.lineno, said) for full in wanted if (said := _said(full)))


def _said(full: str) -> str:
    """Why a name of this package cannot be had; empty where it can."""
    if full.split(".")[1] in ("porting", "command"):
        return ""
    thing: object = opreg
    for part in full.split(".")[1:]:
        if not isinstance(thing, ModuleType) and not isinstance(thing, type(opreg.nd.contrib)):
            return ""
        try:
            thing = getattr(thing, part)
        except AttributeError as error:
            return str(error)
        except ImportError:
            return ""
    return ""


def diff(change: Change) -> str:
    """A unified diff of a file."""
    name = os.fspath(change.path)
    lines = difflib.unified_diff(change.before.splitlines(keepends=True), change.after.splitlines(keepends=True),
                                 name, name)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def write(change: Change) -> None:
    """Put the new text into its file, whole or not at all; its encoding and line ends stay."""
    data = change.after.replace("\n", change.newline).encode(change.encoding)
    with whole(change.path) as file:
        file.write(data)
