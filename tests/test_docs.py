"""Checks of the documentation: the page of operators, README's code, the examples."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opreg.command import COMMANDS, main

from . import processes

pytestmark = pytest.mark.usefixtures("unregistered")

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def _run(*words: str) -> str:
    """The output of ``python WORDS``."""
    named = words[0] == "-m"
    sys_path = "sys.path.insert(0, os.path.dirname(sys.argv[0])); " if not named else ""
    found = processes.run(
        f"import os, runpy, sys; del sys.argv[:{1 + named}]; {sys_path}"
        f"runpy.run_{'module' if named else 'path'}(sys.argv[0], run_name='__main__'{', alter_sys=True' * named})",
        *words, env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"})  # the products are small
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_no_name_of_mxnet_is_missing():
    assert _run("-m", "opreg.builtin", "--missing") == ""


def test_the_page_of_operators_is_current():
    page = (ROOT / "docs" / "operators.md").read_text()
    assert page == _run("-m", "opreg.builtin", "--docs"), "python -m opreg.builtin --docs > docs/operators.md"


def _blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


def _commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Commands in the text of a console, each with the lines that it prints."""
    for each in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *printed = each.rstrip().split("\n")
        yield command, printed


def _fits(printed: str, expected: list[str]) -> bool:
    """Whether a printed text equals the expected one; dots match any text."""
    pattern = re.escape("\n".join(expected)).replace(r"\.\.\.", ".*")
    return re.fullmatch(pattern, printed.rstrip("\n"), re.S) is not None


def test_commands_print_the_text_of_the_page(tmp_path, monkeypatch, capsys):
    """Every command prints the text of the page; dots match any text."""
    page = (ROOT / "docs" / "command.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPREG_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "ops", raising=False)
    (block,) = _blocks("docs/command.md")
    exec(compile(block, "command.md", "exec"), {})
    shown = [each for text in re.findall(r"```console\n(.*?)```", page, re.S) for each in _commands(text)]
    for command, expected in shown:
        words = shlex.split(command, comments=True)
        assert words[0] == "opreg"
        code = main(words[1:])
        printed, errors = capsys.readouterr()
        assert (code, errors) == (0, "") and _fits(printed, expected), f"{command}\n{printed}{errors}"
    used = {shlex.split(command)[1] for command, _ in shown} | {*re.findall(r"`([\w-]+)`", page)}
    assert {*COMMANDS} <= used, "the page leaves some out"


def test_the_page_on_other_libraries_shows_the_output():
    """The blocks of the page are one session; blocks that need a missing library are left out."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    space: dict = {}
    blocks = re.findall(r"```pycon\n(.*?)```", (ROOT / "docs" / "interop.md").read_text(), re.S)
    for block in blocks:
        library = re.match(r">>> import (\w+)", block)
        if library is None or importlib.util.find_spec(library[1]):
            test = doctest.DocTestParser().get_doctest(block, space, "interop.md", None, 0)
            runner.run(test, clear_globs=False)
            space.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0 and len(blocks) == 9


def test_targets_of_links_exist():
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md"),
                 *ROOT.glob("opreg/examples/data/*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_files_that_pages_name_exist():
    """A page names a file by its path, or by its name alone if this is unique."""
    folders = ("opreg", "ndarray", "symbol", "tests", "benchmarks", "examples", "docs")
    there = {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")}
    names = {path.rpartition("/")[2] for path in there}
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        for name in re.findall(r"`([a-z_/]+\.py)`", (ROOT / page).read_text()):
            assert name in (there if "/" in name else names), f"{page} names {name}"


#: Arguments of examples: a test needs less training than a reader.
ARGUMENTS = {"residual_network": ["--epochs", "1"]}
#: Texts that examples print.
PRINTED = {"custom_softmax": "The weights differ"}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_examples_run(name, capsys):
    printed = _run(str(EXAMPLES / f"{name}.py"), *ARGUMENTS.get(name, []))
    assert printed and PRINTED.get(name, "") in printed


def test_the_first_program_learns_and_saves_its_weights(tmp_path):
    printed = _run("-m", "opreg.examples.digits", "--epochs", "1", "--save", str(tmp_path))
    assert "of the held-out digits are read right" in printed and "loaded them back: the same answers" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"digits-symbol.json", "digits-0001.params"}


def test_readme_stands_alone_on_the_page_of_an_index():
    """The package index has no other files, so links lead to the public sources, or become plain text."""
    pytest.importorskip("setuptools", reason="builds the package; environments of Python 3.12 and later begin without")
    alone = runpy.run_path(str(ROOT / "setup.py"))["standing_alone"]
    text = "See [the *page*](docs/a.md) and [that](https://example.org), [this](#here)."
    assert alone(text) == "See the *page* and [that](https://example.org), [this](#here)."
    assert alone(text, "https://example.org/opreg").startswith(
        "See [the *page*](https://example.org/opreg/blob/main/docs/a.md) and [that](https://example.org),")
    assert not re.search(r"\]\((?!https?:|#)", alone((ROOT / "README.md").read_text()))


def test_the_version_is_in_one_place():
    """The package reads its version there, and the changelog has this version."""
    (version,) = re.findall(r'__version__ = "(.*)"', (ROOT / "opreg" / "__init__.py").read_text())
    assert f"## [{version}] - 20" in (ROOT / "CHANGELOG.md").read_text()
    assert "version = attr: opreg.__version__" in (ROOT / "setup.cfg").read_text()
