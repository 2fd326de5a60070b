"""Changed files choose their tests: by name, by folder, by import, and operators by their rows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.changed import changed, choose, declared

FILES = {
    "opreg/__init__.py": "",
    "opreg/nn/__init__.py": "",
    "opreg/nn/jit.py": "from .guards import look\n",
    "opreg/nn/guards.py": "look = 1\n",
    "opreg/nn/late.py": "def load():\n    from . import guards\n",
    "opreg/builtin/layers/softmax.py": "def softmax(x): ...\n\nROW = row('log_softmax', x)\n",
    "tests/__init__.py": "",
    "tests/helper.py": "",
    "tests/nn/test_jit.py": "from opreg.nn.jit import look\n",
    "tests/nn/test_jit_state.py": "",
    "tests/nn/test_jitter.py": "",
    "tests/nn/test_late.py": "import opreg.nn.late\n",
    "tests/builtin/test_operators.py": "from tests import helper\n",
    "tests/builtin/conftest.py": "",
    "tests/rows/__init__.py": "",
    "tests/rows/dense.py": "",
    "tests/interop/test_show.py": "import tests.rows\nfrom opreg.symbol import plan\nfrom tests.reading import SAVED\n",
    "tests/reading.py": "SAVED = Path('tests') / 'saved' / 'net.json'\nPAGES = Path('docs').glob('*.md')\n",
    "symbol/plan.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "opreg" / "symbol").symlink_to("../symbol", target_is_directory=True)
    return tmp_path


@pytest.mark.parametrize("file, expected", [
    ("opreg/nn/jit.py", {"tests/nn/test_jit.py": "name", "tests/nn/test_jit_state.py": "name"}),
    ("opreg/nn/guards.py", {"tests/nn/test_jit.py": "folder", "tests/nn/test_jit_state.py": "folder",
                            "tests/nn/test_jitter.py": "folder", "tests/nn/test_late.py": "folder"}),
    ("opreg/nn/late.py", {"tests/nn/test_late.py": "name"}),
    ("opreg/builtin/layers/softmax.py", {"tests/builtin/test_operators.py": "folder"}),
    ("tests/helper.py", {"tests/builtin/test_operators.py": "import"}),
    ("tests/nn/test_jit.py", {"tests/nn/test_jit.py": "changed"}),
    ("tests/builtin/conftest.py", {"tests/builtin/test_operators.py": "folder"}),
    ("tests/rows/dense.py", {"tests/interop/test_show.py": "import"}),
    ("tests/saved/net.json", {"tests/interop/test_show.py": "mention"}),
    ("tests/saved/other.json", {"tests/interop/test_show.py": "mention"}),
    ("symbol/plan.py", {"tests/interop/test_show.py": "import"}),
    ("docs/page.md", {"tests/interop/test_show.py": "mention"}),
    ("opreg/nn/names.txt", {"tests/nn/test_jit.py": "name", "tests/nn/test_jit_state.py": "name",
                            "tests/nn/test_late.py": "name", "tests/nn/test_jitter.py": "folder"}),
    ("notes.md", {}),
    ("SAVED", {}),
])
def test_a_changed_file_chooses_tests(tree: Path, file: str, expected: dict[str, str]) -> None:
    assert choose(tree, [file]) == expected


def test_tests_that_import_a_changed_file_through_others_are_chosen(tree: Path) -> None:
    """Imports inside of functions do not count."""
    (tree / "tests" / "data").mkdir()
    (tree / "tests" / "data" / "test_all.py").write_text("from opreg.nn import jit, late\n")
    assert choose(tree, ["opreg/nn/guards.py"])["tests/data/test_all.py"] == "import"
    (tree / "tests" / "data" / "test_late.py").write_text("from opreg.nn import late\n")
    assert "tests/data/test_late.py" not in choose(tree, ["opreg/nn/guards.py"])


def test_operators_of_a_changed_file_are_found(tree: Path) -> None:
    files = ["opreg/builtin/layers/softmax.py", "opreg/nn/jit.py", "opreg/builtin/gone.py"]
    assert declared(tree, files, {"softmax", "log_softmax", "relu"}) == ["log_softmax", "softmax"]


def test_files_changed_since_a_commit_are_found(tree: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=tree, check=True,
                       capture_output=True)

    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "all")
    assert changed(tree) == []
    (tree / "opreg" / "nn" / "new.py").write_text("")
    (tree / "opreg" / "nn" / "jit.py").unlink()
    assert changed(tree) == changed(tree, "HEAD") == ["opreg/nn/jit.py", "opreg/nn/new.py"]
    git("checkout", "-b", "side")
    git("add", "-A")
    git("commit", "-m", "more")
    assert changed(tree) == ["opreg/nn/jit.py", "opreg/nn/new.py"] and changed(tree, "HEAD") == []
