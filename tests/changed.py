"""Tests for the files that differ from a commit, for ``./run test --changed [BASE]``: prints the arguments of pytest.

A changed source file chooses the tests of its name in the folder that mirrors its own, or all of that folder where none
has its name; the tests that import it when they are imported, through other modules too; and the rows of the operators
that it declares. A ``conftest.py`` chooses all tests below it. Any other file, a page or a header, chooses the tests
that mention it; one in a package that no test mentions is read by its neighbours, so it chooses the tests of these.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from tests.imports import imports

__all__ = ["changed", "choose", "declared"]

_ROOT = Path(__file__).parent.parent
_PACKAGES = ("opreg", "ndarray", "symbol", "tests")


def changed(root: Path, base: str | None = None) -> list[str]:
    """Files that differ from a commit, new files included; the default is HEAD's last commit in common with main."""

    def git(*words: str) -> list[str]:
        return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")

    base = base or git("merge-base", "HEAD", "main")[0]
    return sorted({*git("diff", "--name-only", base, "--"), *git("ls-files", "--others", "--exclude-standard")} - {""})


def choose(root: Path, files: Collection[str]) -> dict[str, str]:
    """Test files for changed files, each with the reason: itself, by name, by folder, by import or by mention."""
    tests = {str(path.relative_to(root).as_posix()) for path in root.glob("tests/**/test_*.py")}
    chosen = {file: "changed" for file in files if file in tests}
    reached = {test: _reach(root, test) for test in tests} if set(files) - tests else {}
    for file in files:
        if file not in tests:
            found = _by_source(root, [file], tests, reached) if file.endswith(".py") else {}
            found = found or _by_mention(root, file, reached)
            found = found or _by_source(root, _neighbours(root, file), tests, reached, packages=True)
            for test, why in found.items():
                chosen.setdefault(test, why)
    return dict(sorted(chosen.items()))


def _by_source(root: Path, files: Collection[str], tests: Collection[str], reached: dict[str, set[str]],
               packages: bool = False) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in files:
        if file.endswith("conftest.py"):
            found |= {test: "folder" for test in tests if PurePosixPath(file).parent in PurePosixPath(test).parents}
        elif packages or not file.endswith("/__init__.py"):  # all that import a part of a package import this
            module = _module(_inside(root, file))
            found |= {test: "import" for test in tests if module in reached[test]}
        found |= _mirror(file, tests)
    return found


def _by_mention(root: Path, file: str, reached: dict[str, set[str]]) -> dict[str, str]:
    """Tests that mention a file, or the folder of one that is in no package, or import what does."""
    path = PurePosixPath(file)
    name = re.escape(_module(_inside(root, file)) if path.suffix == ".py" else path.name)
    words = [name if path.suffix else rf"\./{name}"]
    if path.parts[0] not in _PACKAGES or not _neighbours(root, file):
        words += [rf"[\"'/]{folder}[\"'/]" for folder in path.parts[:-1] if folder not in _PACKAGES]
    said = re.compile("|".join(rf"(?<![\w.]){word}(?!\w)" for word in words))
    mentions = {_module(str(each.relative_to(root).as_posix())) for each in root.glob("tests/**/*.py")
                if said.search(each.read_text(encoding="utf-8"))}
    return {test: "mention" for test in reached if mentions & reached[test]}


def _neighbours(root: Path, file: str) -> list[str]:
    path = PurePosixPath(file)
    if len(path.parts) < 3 and path.parts[0] in ("opreg", "tests"):
        return []  # they know of all
    return sorted(str(each.relative_to(root).as_posix()) for each in (root / path.parent).glob("*.py"))


def _inside(root: Path, file: str) -> str:
    """The file's path in opreg, of which some folders are links."""
    return f"opreg/{file}" if (root / "opreg" / PurePosixPath(file).parts[0]).is_symlink() else file


def declared(root: Path, files: Collection[str], operators: Collection[str]) -> list[str]:
    """Operators whose functions or texts are in changed files of built-in ones."""
    found: set[str] = set()
    for file in files:
        if file.startswith("opreg/builtin/") and file.endswith(".py") and (root / file).exists():
            for node in ast.walk(ast.parse((root / file).read_text())):
                if isinstance(node, ast.FunctionDef):
                    found.add(node.name)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    return sorted(found.intersection(operators))


def _mirror(file: str, tests: Collection[str]) -> dict[str, str]:
    path = PurePosixPath(file)
    folder = PurePosixPath("tests", *path.parts[path.parts[0] == "opreg":-1])
    stem = path.parent.name if path.stem == "__init__" else path.stem
    while folder.name:
        inside = [test for test in tests if PurePosixPath(test).parent == folder]
        named = [test for test in inside if f"{PurePosixPath(test).stem}_".startswith(f"test_{stem}_")]
        if named or folder == PurePosixPath("tests"):
            return dict.fromkeys(named, "name")
        if inside:
            return dict.fromkeys(inside, "folder")
        folder = folder.parent
    return {}


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@functools.cache
def _imports(root: Path, file: str) -> frozenset[str]:
    """Files of the tree that a file imports at its top level."""
    package = _module(file) if file.endswith("__init__.py") else _module(file).rpartition(".")[0]
    pairs = [pair for each in imports((root / file).read_text(), package)
             if each.early and not each.for_types for pair in each.names]
    names = {name for base, taken in pairs for name in (base, *([f"{base}.{taken}"] if taken else []))}
    files = [f"{name.replace('.', '/')}{end}" for name in names for end in (".py", "/__init__.py")]
    return frozenset(each for each in files if (root / each).exists())


def _reach(root: Path, file: str) -> set[str]:
    """Modules that a file imports, and those that these import."""
    seen, waiting = {file}, [file]
    while waiting:
        new = _imports(root, waiting.pop()) - seen
        seen |= new
        waiting += new
    return set(map(_module, seen))


def main(base: str | None = None) -> None:
    """Prints arguments of pytest, and one line with their reasons on stderr."""
    from tests.rows import all_rows

    files = changed(_ROOT, base)
    chosen = choose(_ROOT, files)
    operators = declared(_ROOT, files, {row.op for row in all_rows()})
    reasons = list(chosen.values())
    whys = [f"{reasons.count(why)} {'' if why == 'changed' else 'by '}{why}"
            for why in ("changed", "name", "folder", "import", "mention") if why in reasons]
    rows = "tests/builtin/test_operators.py"
    if operators and chosen.get(rows, "folder") == "folder":
        chosen[rows] = "rows"
        print(*[f"--op={name}" for name in operators], sep="\n")
        whys.append(f"the rows of {', '.join(operators)}")
    print(f"run: {len(files)} files changed, {len(chosen)} of tests chosen: {', '.join(whys) or 'none'}",
          file=sys.stderr)
    print(*chosen, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
