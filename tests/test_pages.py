"""The code on teaching pages, and in the notebook, runs from top to bottom and prints the text below it.

Blocks that begin with a library that is not here are left out.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx

pytestmark = pytest.mark.usefixtures("unregistered")

ROOT = Path(__file__).parent.parent

#: Pages, each with the names that its first block assumes.
PAGES: dict[str, dict[str, Any]] = {"README": {}, "write_an_operator": {}, "twelve_operators": {}, "train_a_model": {},
                                    "from_torch_and_jax": {}, "mxnet": {"mx": mx, "np": np},
                                    "gluon": {}, "gluon_data": {}, "mindspore": {}, "distributed": {}, "onnx": {}}

_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_prints_the_shown_output(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "twelve_operators":
        pytest.importorskip("scipy", reason="one of the twelve computes with SciPy")
    if name == "onnx":
        pytest.importorskip("onnx", reason="the page writes and reads a model")
    if name == "write_an_operator" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy 2.0 exports nothing that is read-only by DLPack")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / (f"{name}.md" if name == "README" else f"docs/{name}.md")).read_text()
    space = {"__name__": name, **PAGES[name]}
    checker = doctest.OutputChecker()
    for block in _BLOCK.finditer(page):
        library = re.match(r"import (torch|jax)\n", block[1])
        if library is not None and importlib.util.find_spec(library[1]) is None:
            continue
        line = page.count("\n", 0, block.start(1))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * line + block[1], f"{name}.md", "exec"), space)
        wanted, got = block[2] or "", printed.getvalue()
        assert checker.check_output(wanted, got, _FLAGS), f"{name}.md:{line + 1} prints\n{got}"


def test_rows_of_a_table_have_a_cell_for_each_column() -> None:
    broken = []
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")):
        columns = 0
        for i, line in enumerate(page.read_text().splitlines(), 1):
            bars = re.sub(r"`[^`]*`", "", line).replace("\\|", "").count("|") if line.startswith("|") else 0
            if columns and bars not in (0, columns):
                broken.append(f"{page.name}:{i}")
            columns = bars
    assert not broken


def test_the_notebook_prints_its_stored_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook runs in its own kernel. Cells whose output depends on the machine have no output in the file."""
    nbformat = pytest.importorskip("nbformat", reason="reads notebooks")
    nbclient = pytest.importorskip("nbclient", reason="runs notebooks")
    pytest.importorskip("ipykernel", reason="what notebooks run in")
    notebook = nbformat.read(ROOT / "examples" / "write_an_operator.ipynb", as_version=4)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPREG_PROGRESS", "0")  # a slow machine would show the line
    wanted = [printed(cell) for cell in notebook.cells]
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(ROOT / "examples")}}).execute()
    assert sum(map(bool, wanted)) == 3
    assert [printed(cell) for cell, text in zip(notebook.cells, wanted) if text] == list(filter(None, wanted))


def printed(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", ()))
