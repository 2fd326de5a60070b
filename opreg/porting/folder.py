"""``opreg port``: changes in the files of a folder, as a diff or written."""

from __future__ import annotations

import ast
import difflib
import functools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

import opreg

from ..core.files import atomic_write, open_to_read
from ..errors import FileFormatError
from . import NeedsParser, Ported, Problem, rewritten
from .python2 import ConvertedText, modern
from .rules import looks_old
from .source import Place, Source, decode, unbuilt

__all__ = ["Change", "changes", "diff", "write"]

#: Folders that are skipped.
_SKIPPED = {"build", "dist", "node_modules", "site-packages", "__pycache__", "venv", "env"}
_BINARY = (".so", ".pyd", ".dll", ".dylib")


class Change(NamedTuple):
    """A file: its path, encoding and line ends, its text before and after, remarks for the user, and for each line of
    the new text its old line, and whether it is unchanged."""

    path: Path
    encoding: str
    newline: str
    before: str
    after: str
    problems: list[Problem]
    origins: list[tuple[int, bool]]

    @property
    def unread(self) -> bool:
        """Whether the file could not be read; its remark has the reason."""
        return not self.encoding


class _InFolder(Place):
    """Place of a file in a folder that is ported."""

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
        entry.name.startswith(path.name + ".") and entry.suffix in _BINARY
        for entry in (path.parent.iterdir() if path.parent.is_dir() else ()))


def _files(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (path for name in sorted(names) if name.endswith(".py")
                    and not (path := Path(folder, name)).is_symlink())


#: Exceptions of Python's parser, and of visitors of its trees, for a file with too deep nesting.
_TOO_DEEP = (RecursionError, MemoryError, SystemError)


def changes(root: Path) -> Iterator[Change]:
    """Changes and remarks for all files below a folder, or for one file.

    An unreadable file is one of these; it does not affect the others.

    Raises
    ------
    OSError, FileFormatError
        When a single file is missing, or not a file.
    """
    files: dict[Path, tuple[str, str, str, ConvertedText]] = {}
    old: set[Path] = set()
    for path in _files(root):
        try:
            text, encoding, newline = _read(path)
            today = modern(text)
            files[path] = text, encoding, newline, today
            if today.old or looks_old(Source(today.text)):
                old.add(path.parent)
        except (OSError, FileFormatError) as error:
            if path == root:
                raise
            yield _unread(path, getattr(error, "strerror", None) or str(error).removeprefix(f"{path}: "))
        except (SyntaxError, NeedsParser) as error:
            yield _unread(path, getattr(error, "msg", None) or str(error), getattr(error, "lineno", None) or 1)
        except _TOO_DEEP:
            yield _unread(path, "nested too deeply")
    base = root if root.is_dir() else root.parent
    for path, (text, encoding, newline, today) in files.items():
        try:
            ported = rewritten(text, today, _InFolder(path, base, "__main__" in text, path.parent in old))
            problems = sorted({*ported.problems, *_absent(ported)})
        except _TOO_DEEP:
            yield _unread(path, "nested too deeply")
            continue
        if ported.text != text or problems:
            yield Change(path, encoding, newline, text, ported.text, problems, ported.origins())


def _read(path: Path) -> tuple[str, str, str]:
    """The text of a file, its encoding, and its line ends."""
    with open_to_read(path) as file:
        text, encoding = decode(file.read())
    return text.replace("\r\n", "\n"), encoding, "\r\n" if "\r\n" in text else "\n"


def _unread(path: Path, why: str, line: int = 1) -> Change:
    return Change(path, "", "", "", "", [Problem(line, f"not read: {why}")], [])


def _absent(ported: Ported) -> Iterator[Problem]:
    """Names of the library that this package lacks."""
    source = ported.source
    for node in source.parents:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "opreg" and not node.level:
            modules = [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*"]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names if alias.name.startswith("opreg.")]
        elif isinstance(node, ast.Attribute) and not isinstance(source.parents[node], ast.Attribute):
            modules = [full] if (full := source.resolve(node)).startswith("opreg.") else []
        else:
            continue
        if not source.is_guarded(node):
            yield from (Problem(node.lineno, reason) for full in modules if (reason := _import_failure(full)))


@functools.cache
def _import_failure(full: str) -> str:
    """The reason why a name of this package cannot be imported; empty if it can."""
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


_Opcode: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


class _Known(difflib.SequenceMatcher[str]):
    """A difflib matcher with known edits, since searching them is slow if many lines are equal."""

    def __init__(self, opcodes: Iterable[_Opcode]) -> None:
        super().__init__()
        self._known = list(opcodes)

    def get_opcodes(self) -> list[_Opcode]:
        return self._known


def diff(change: Change) -> str:
    """A unified diff of a file."""
    name = os.fspath(change.path)
    before, after = _lines(change.before), _lines(change.after)
    text = [f"--- {name}\n", f"+++ {name}\n"]
    for group in _Known(_opcodes(before, after, change.origins)).get_grouped_opcodes():
        text.append(f"@@ -{_range(group[0][1], group[-1][2])} +{_range(group[0][3], group[-1][4])} @@\n")
        for tag, first, last, start, end in group:
            if tag == "equal":
                text += [f" {line}" for line in before[first:last]]
            else:
                text += [f"-{line}" for line in before[first:last]] + [f"+{line}" for line in after[start:end]]
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in text)


def _lines(text: str) -> list[str]:
    """Lines with their ends, split as programs that apply diffs do."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _range(start: int, end: int) -> str:
    return str(end) if end - start == 1 else f"{start + (end > start)},{end - start}"


def _opcodes(before: Sequence[str], after: Sequence[str], origins: Sequence[tuple[int, bool]]) -> Iterator[_Opcode]:
    """Edits from old lines to new ones, in the form of ``difflib``."""
    i = j = length = 0  # the first lines of the last run of equal lines, and its length
    for number, (line, same) in enumerate([*origins[:len(after)], (len(before) + 1, True)]):
        old, end = line - 1, number == len(after)
        if not same or old < i + length or (not end and before[old] != after[number]):
            continue
        if end or (old, number) != (i + length, j + length):
            if length:
                yield "equal", i, i + length, j, j + length
            if (old, number) != (i + length, j + length):
                tag: Any = "insert" if old == i + length else "delete" if number == j + length else "replace"
                yield tag, i + length, old, j + length, number
            i, j, length = old, number, 0
        length += 1


def write(change: Change) -> None:
    """Write the new text to its file, completely or not at all, with the same encoding and line ends."""
    data = change.after.replace("\n", change.newline).encode(change.encoding)
    with atomic_write(change.path) as file:
        file.write(data)
