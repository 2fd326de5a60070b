"""The command ``opreg``: unchanged scripts that run, and folders that are ported."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import opreg as mx
from opreg.command import COMMANDS, main
from opreg.porting.finder import VERSIONS
from tests import processes
from tests.test_architecture import ROOT


def opreg(*args: object, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path[:0] = ['', {str(ROOT)!r}]; from opreg.command import main; sys.exit(main())"
    return processes.run(program, *args, folder=folder)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program in two folders for MXNet, older NumPy and an older Python, which this Python can parse."""
    (tmp_path / "lib" / "rpn").mkdir(parents=True)
    (tmp_path / "lib" / "rpn" / "__init__.py").write_text("")
    (tmp_path / "lib" / "rpn" / "sizes.py").write_text("import numpy as np\nhalf = np.float(0.5)\n")
    (tmp_path / "lib" / "rpn" / "net.py").write_text(
        "from distutils.util import strtobool\n"
        "import mxnet.ndarray as nd\n"
        "from sizes import half\n"
        "from cython_bbox import bbox_overlaps\n"
        "def net(n):\n"
        "    for k, v in dict(a=n).iteritems():\n"
        "        return nd.ones((v / 2,)) * half, strtobool('yes'), bbox_overlaps.__module__\n")
    path = tmp_path / "train.py"
    path.write_text(
        "import os\n"
        "import sys\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\n"
        "import find_mxnet\n"
        "import mxnet as mx, mxnet\n"
        "from mxnet.module import Module\n"
        "import mxnet.contrib.autograd\n"
        "import numpy as np\n"
        "from rpn.net import net\n"
        "class Here(object):\n"
        "    pass\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], mx.__version__, mx is mxnet, Here.__module__,\n"
        "          os.getcwd() != os.path.dirname(__file__))\n"
        "    y, yes, where = net(5)\n"
        "    print(y.asnumpy().tolist(), yes, where, Module.__name__, hasattr(np, 'float'))\n"
        "    if sys.argv[1:] == ['--fail', '--', '-x']:\n"
        "        for i in xrange(1): net(None)\n"
        "    sys.exit(3)\n")
    return path


def test_script_runs_as_it_is(script: Path) -> None:
    done = opreg("as-mxnet", script, "--epochs", "-1")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "['--epochs', '-1'] 1.9.1 True __main__ True",
        "[0.5, 0.5] 1 opreg.contrib.detection Module False"]
    assert done.returncode == 3
    assert not list(script.parent.rglob("__pycache__"))


def test_traceback_is_that_of_the_script(script: Path) -> None:
    done = opreg("as-mxnet", script.name, "--fail", "--", "-x", folder=script.parent)
    assert done.returncode == 1
    shown = done.stderr.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[1].endswith('train.py", line 18, in <module>')
    assert shown[2].strip() == "for i in xrange(1): net(None)"
    assert any(line.endswith('net.py", line 7, in net') for line in shown)
    assert "TypeError" in shown[-1] and "run.py" not in done.stderr


def test_the_error_for_a_missing_module_names_a_replacement(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import mxnet.tvmop\n")
    done = opreg("as-mxnet", tmp_path / "a.py")
    assert done.returncode == 1 and "tvmop" in done.stderr and "numba" in done.stderr


def test_a_script_of_mindspore_runs(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import mindspore as ms\nimport mindspore.nn as nn\nfrom mindspore import ops, Tensor\n"
        "from mindspore.common.initializer import initializer\nimport numpy as np\n"
        "print(nn.Dense(2, 3)(Tensor(np.ones((1, 2), np.float32))).shape, ops.relu is ms.ops.relu, np.float(1))\n")
    done = opreg("as-mindspore", tmp_path / "a.py")
    assert (done.stdout, done.stderr) == ("(1, 3) True 1.0\n", "")


@pytest.mark.parametrize("variable, options, expected", [
    ("", [], "[2.0, 2.0] Twice"), ("", ["--convention", "document"], "[1.0, 1.0] str"),
    ("document", [], "[1.0, 1.0] str"), ("document", ["--convention", "2.4"], "[2.0, 2.0] Twice")])
def test_hooks_are_called_as_by_the_version_that_mindspore_says(variable: str, options: list[str], expected: str,
                                                                tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that returns ``grad_input`` gets the gradient of the Cell's input, not its output gradient."""
    monkeypatch.setenv("OPREG_CONVENTION", variable)
    (tmp_path / "a.py").write_text(
        "import mindspore as ms\nfrom mindspore import nn\n"
        "class Twice(nn.Cell):\n    def construct(self, x):\n        return x * 2\n"
        "seen, twice = [], Twice()\n"
        "def keep(cell, grad_input, grad_output):\n    seen.append(type(cell).__name__)\n    return grad_input\n"
        "twice.register_backward_hook(keep)\n"
        "print(ms.grad(twice)(ms.Tensor([1., 2.])).asnumpy().tolist(), *seen)\n"
        "import os\nprint(os.environ['OPREG_CONVENTION'])\n")
    done = opreg("as-mindspore", *options, tmp_path / "a.py")
    assert (done.stdout, done.stderr) == (f"{expected}\n{'document' if 'str' in expected else '2.4'}\n", "")


def test_an_unknown_hook_convention_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("import mindspore as ms\nms.get_context('mode')\n")
    assert "invalid choice: '3'" in opreg("as-mindspore", "--convention", "3", tmp_path / "a.py").stderr
    monkeypatch.setenv("OPREG_CONVENTION", "3")
    assert "OPREG_CONVENTION must be one of document, 2.4, got '3'" in opreg("as-mindspore", tmp_path / "a.py").stderr


@pytest.mark.parametrize("program", [
    "import mindspore.nn.probability.bijector", "import mindspore as ms\nms.hal",
    "import mindspore.rewrite", "import mindspore.boost"])
def test_errors_in_scripts_of_mindspore_name_mindspore(program: str, tmp_path: Path) -> None:
    """The error names MindSpore, also if MXNet has something of the same name."""
    (tmp_path / "a.py").write_text(program)
    said = opreg("as-mindspore", tmp_path / "a.py").stderr.splitlines()[-1]
    assert "of MindSpore is no part of opreg" in said and "docs/mindspore_names.md" in said
    assert "mxnet" not in said.lower()


@pytest.mark.parametrize("name, library", [("tvmop", "MXNet"), ("hal", "MindSpore")])
def test_the_error_for_a_missing_name_names_its_library(name: str, library: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}' of {library} is no part of opreg"):
        getattr(mx, name)


@pytest.mark.parametrize("program", [
    "import mxnet.numpy\nnumpy = mxnet.numpy", "from mxnet import numpy", "import mxnet as mx\nnumpy = mx.numpy"])
def test_scripts_get_the_modules_of_their_own_library(program: str, tmp_path: Path) -> None:
    """``numpy`` of MindSpore and ``numpy`` of MXNet are different modules."""
    program += "\nprint(type(numpy.ones(2)).__module__)"
    (tmp_path / "a.py").write_text(program)
    assert opreg("as-mxnet", tmp_path / "a.py").stdout == "opreg.np.values\n"
    (tmp_path / "b.py").write_text(program.replace("mxnet", "mindspore"))
    assert opreg("as-mindspore", tmp_path / "b.py").stdout == "opreg.cells.tensor\n"


def test_libraries_are_left_as_they_are(tmp_path: Path) -> None:
    """Other code does not see the names that the command adds for a script."""
    (tmp_path / "a.py").write_text(
        "import numpy, sys, mxnet\nx = numpy.int(3)\n"
        "names = {}\nexec('import numpy\\ntry:\\n    numpy.int\\n    found = True\\nexcept AttributeError:\\n"
        "    found = False', names)\n"
        "print(x, names['found'], 'distutils' in sys.modules)\n")
    assert opreg("as-mxnet", tmp_path / "a.py").stdout == "3 False False\n"


def test_modules_that_a_script_loads_from_files_are_rewritten(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "import imp\nfrom importlib import util\nfound = util.spec_from_file_location('one', 'config.txt.py')\n"
        "one = util.module_from_spec(found)\nfound.loader.exec_module(one)\n"
        "print(one.x, imp.load_source('two', 'config.txt.py').x, util.spec_from_file_location('a', 'a.txt'))\n")
    (tmp_path / "config.txt.py").write_text("import numpy as np\nimport mxnet\nx = np.float(3), mxnet.__version__\n")
    done = opreg("as-mxnet", "a.py", folder=tmp_path)
    assert done.stdout == "(3.0, '1.9.1') (3.0, '1.9.1') None\n", done.stderr


def test_a_script_of_python_2_runs(tmp_path: Path) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    (tmp_path / "a.py").write_text("import mxnet as mx\nx = 7\n\nprint x / 2, mx.nd.ones((x / 4,)).shape\n"
                                   "raise ValueError, `x`\n")
    done = opreg("as-mxnet", tmp_path / "a.py")
    assert done.stdout == "3 (1,)\n"
    assert 'line 5, in <module>\n    raise ValueError, `x`\nValueError: 7' in done.stderr


@pytest.mark.parametrize("library", ["mxnet", "mindspore"])
def test_a_file_named_like_a_library_in_a_package_does_not_replace_it(tmp_path: Path, library: str) -> None:
    """A package for several libraries has one file for each, named like the library that it imports."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "__init__.py").write_text("")
    (tmp_path / "book" / f"{library}.py").write_text(f"import {library}\nfrom {library} import context\n"
                                                     f"name = context.__name__, {library}.__version__\n")
    (tmp_path / "a.py").write_text(f"from book import {library} as book\nprint(*book.name)\n")
    done = opreg(f"as-{library}", tmp_path / "a.py")
    assert done.stdout.split() == ["opreg.context", VERSIONS[library]], done.stderr


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that is run by name; its modules import each other, and are written for older NumPy."""
    inner = tmp_path / "work" / "tools"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("")
    (inner / "__init__.py").write_text("import numpy as np\nhalf = np.float(0.5)\n")
    (inner / "net.py").write_text("from . import half\nimport mxnet as mx\n\ndef net(n):\n"
                                  "    return (mx.nd.ones((n,)) * half).asnumpy().tolist()\n")
    text = ("import os\nimport sys\nfrom .net import net\nimport numpy as np\n"
            "print(__name__, __package__, __spec__.name, os.path.basename(sys.argv[0]), sys.argv[1:], net(np.int(2)))\n"
            "print(sys.argv[0] == os.path.abspath(__file__), sys.path[0] == os.getcwd())\n"
            "1 / (len(sys.argv) - 2)\n")
    (inner / "train.py").write_text(text)
    (inner / "__main__.py").write_text(text)
    return tmp_path


@pytest.mark.parametrize("name,file", [("work.tools.train", "train"), ("work.tools", "__main__")])
def test_a_module_is_run_by_its_name(package: Path, name: str, file: str) -> None:
    done = opreg("as-mxnet", "-m", name, "--epochs", "-m", folder=package)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"__main__ work.tools work.tools.{file} {file}.py ['--epochs', '-m'] [0.5, 0.5]", "True True"]
    failed = opreg("as-mxnet", "-m", name, "one", folder=package)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[1].endswith(f'{file}.py", line 7, in <module>')


@pytest.mark.parametrize("name,said", [
    ("work.absent", "No module named 'work.absent'"), ("no_such.module", "No module named 'no_such'"),
    ("mxnet.module", "'module.__main__' of MXNet is no part of opreg. See docs/mxnet.md")])
def test_a_missing_module_is_named(package: Path, name: str, said: str) -> None:
    done = opreg("as-mxnet", "-m", name, folder=package)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"ModuleNotFoundError: {said}"]


def test_a_package_that_fails_shows_where(package: Path) -> None:
    (package / "work" / "__init__.py").write_text("import no_such\n")
    done = opreg("as-mxnet", "-m", "work.tools.train", folder=package)
    assert done.returncode == 1
    assert f"{package / 'work' / '__init__.py'}\", line 1" in done.stderr


@pytest.fixture
def tested(tmp_path: Path) -> Path:
    """Tests for older Python and NumPy, with a conftest, a plugin and a module that they import."""
    files = {
        "pytest.ini": "[pytest]\n",
        "conftest.py": "import numpy as np\nimport pytest\n\n@pytest.fixture\ndef half():\n    return np.float(0.5)\n",
        "plugged.py": "import numpy as np\n\ndef pytest_report_header():\n    return 'plugged %s' % np.int(3)\n",
        "helper.py": "def keys(d):\n    return [k for k, v in d.iteritems()]\n",
        "test_new.py": "\"\"\"Tests,\n\nof several lines.\"\"\"\n"
                       "import unittest\nimport mxnet as mx\nimport numpy as np\nfrom helper import keys\n\n"
                       "def test_right(half):\n    assert mx.nd.ones((2,)).asnumpy().tolist() == [half * 2] * 2\n\n"
                       "def test_wrong():\n    assert len(keys({'a': 1})) == np.int(2)\n\n"
                       "class TestCase(unittest.TestCase):\n    def test_keys(self):\n"
                       "        assert keys({'a': np.int(1)}) == ['a']\n",
        "test_old.py": "def test_old():\n    x = 7\n    print 'said'\n    assert x / 2 == 4\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("options", [["--import-mode=prepend"], ["--import-mode=importlib"]])
def test_pytest_rewrites_assertions_of_rewritten_tests(tested: Path, options: list[str]) -> None:
    pytest.importorskip("fissix", reason="reads Python 2")
    path = {} if "prepend" in options[0] else {"pythonpath": "."}
    (tested / "pytest.ini").write_text("[pytest]\n" + "".join(f"{key} = {value}\n" for key, value in path.items()))
    done = opreg("as-mxnet", "-m", "pytest", "-p", "plugged", "-p", "no:cacheprovider", "-rA", *options, folder=tested)
    assert "plugged 3" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("=") and "2 failed, 2 passed" in done.stdout.splitlines()[-1]
    assert ">       assert len(keys({'a': 1})) == np.int(2)\n" \
           "E       AssertionError: assert 1 == 2\nE        +  where 1 = len(['a'])\n" in done.stdout
    assert ">       assert x / 2 == 4\nE       assert (7 / 2) == 4\n" in done.stdout
    assert "test_old.py:4: AssertionError" in done.stdout
    assert not list(tested.rglob("__pycache__"))


def test_pytest_runs_without_rewritten_asserts(tested: Path) -> None:
    (tested / "test_old.py").unlink()
    done = opreg("as-mxnet", "-m", "pytest", "-p", "no:cacheprovider", "--assert=plain", folder=tested)
    assert "1 failed, 2 passed" in done.stdout and ">       assert len(keys({'a': 1})) == np.int(2)\nE       Assert" \
        in done.stdout


def test_compiled_files_of_pytest_are_left_alone(tested: Path) -> None:
    """Runs of pytest with and without the command do not share compiled files."""
    (tested / "test_a.py").write_text("import numpy as np\n\ndef test_a():\n    assert np.int(1)\n")
    alone = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_a.py"]
    for _ in range(2):
        assert subprocess.run(alone, cwd=tested, capture_output=True, check=False).returncode == 1
        done = opreg("as-mxnet", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_a.py", folder=tested)
        assert done.returncode == 0, done.stdout


def test_script_runs_pytest_itself(tested: Path) -> None:
    (tested / "run.py").write_text("import sys\nimport pytest\n"
                                   "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'test_new.py']))\n")
    done = opreg("as-mxnet", "run.py", folder=tested)
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout and "where 1 = len(['a'])" in done.stdout


def test_pytest_runs_tests_of_mindspore(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("import mindspore as ms\nimport numpy as np\n\ndef test_a():\n"
                                        "    assert ms.Tensor([np.float(1)]).asnumpy().tolist() == [2]\n")
    done = opreg("as-mindspore", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)
    assert "E       assert [1.0] == [2]" in done.stdout


def test_workers_of_pytest_find_the_modules(tested: Path) -> None:
    pytest.importorskip("xdist")
    done = opreg("as-mxnet", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n1", "test_new.py", folder=tested)
    assert "1 failed, 2 passed" in done.stdout and "where 1 = len(['a'])" in done.stdout


def test_unittest_runs_ported_tests(tested: Path) -> None:
    (tested / "test_new.py").write_text("".join(
        line for line in (tested / "test_new.py").read_text().splitlines(keepends=True) if "pytest" not in line))
    done = opreg("as-mxnet", "-m", "unittest", "test_new", folder=tested)
    assert done.stderr.endswith("\nOK\n") and "Ran 1 test" in done.stderr


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_child_processes_import_the_script(tmp_path: Path, method: str) -> None:
    """Child processes, and their children, import the script under its own name, and modules beside it."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    (tmp_path / "helper.py").write_text("import numpy as np\ndef half(x):\n    return np.float(x) / 2\n")
    (tmp_path / "run.py").write_text(
        "import multiprocessing as mp\nimport sys\nimport mxnet as mx\nfrom helper import half\nimport numpy as np\n\n"
        "def work(queue, depth):\n"
        "    if depth:\n"
        "        child = mp.Process(target=work, args=(queue, depth - 1))\n"
        "        child.start()\n"
        "        child.join()\n"
        "    queue.put((depth, half(mx.nd.ones((2,)).sum().asscalar()), __name__, mx.__version__, np.int(1)))\n\n"
        "if __name__ == '__main__':\n"
        "    mp.set_start_method(sys.argv[1])\n"
        "    queue = mp.Queue()\n"
        "    work(queue, 2)\n"
        "    for _ in range(3): print(*queue.get())\n")
    done = opreg("as-mxnet", "run.py", method, folder=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["0 1.0 __mp_main__ 1.9.1 1", "1 1.0 __mp_main__ 1.9.1 1",
                                        "2 1.0 __main__ 1.9.1 1"]


NO_SCRIPTS = {"binary.py": (b"\x7fELF\0\1\2\3\xff\xfe", "binary.py:1: expected a script, "),
              "zero.py": (b"import os\nx = 1\0\n", "zero.py:2: expected a script, not text: it has a zero byte"),
              "latin.py": (b"a = 1\nb = 2\nc = '\xe4'\n", "latin.py:3: expected a script, no text: 'utf-8' codec"),
              "odd.py": (b"# coding: rot13\n", "odd.py:1: expected a script, no text: 'rot13' is not a text encoding"),
              "folder.py": (None, "Is a directory: '{}folder.py'"),
              "missing.py": (None, "no such file or folder: {}missing.py")}


@pytest.mark.parametrize("name", NO_SCRIPTS)
@pytest.mark.parametrize("command", ["as-mxnet", "as-mindspore", "profile"])
def test_files_that_are_not_scripts_are_refused(command: str, name: str, tmp_path: Path,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    content, words = NO_SCRIPTS[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.py").mkdir()
    assert main([command, str(tmp_path / name)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and words.format(f"{tmp_path}{os.sep}") in said[0], said


def test_port_reports_changes_and_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.py"
    path.write_text("import mxnet as mx\nimport imp\nfor i in xrange(3):\n    imp.find_module('x')\n")
    assert main(["port", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "-for i in xrange(3):\n+for i in range(3):\n" in out
    assert err == f"{path}:2: imp is gone: importlib has what it did\n1 file would change, 1 left to you\n"
    assert path.read_text().startswith("import mxnet")
    assert main(["port", "--write", str(tmp_path)]) == 0
    assert path.read_text() == "import opreg as mx\nimport imp\nfor i in range(3):\n    imp.find_module('x')\n"
    capsys.readouterr()
    assert main(["port", str(tmp_path)]) == 0
    assert "0 files would change" in capsys.readouterr().err
    assert main(["port", str(tmp_path / "nothing")]) == 2


def test_ops_lists_matching_operators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "fullyconn*"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["FullyConnected"]
    assert main(["ops", "no_such_operator"]) == 1
    assert main(["ops", "sign", "--json"]) == 0
    assert "signsgd_update" in json.loads(capsys.readouterr().out)
    assert main(["show", "FullyConnected"]) == 0
    assert capsys.readouterr().out.startswith("FullyConnected(data, weight, bias=None, *, num_hidden: int")
    assert main(["show", "FulyConnected"]) == 2
    assert "FullyConnected" in capsys.readouterr().err


def test_ops_lists_operators_of_users(tmp_path: Path, capsys: pytest.CaptureFixture[str], unregistered: None) -> None:
    (tmp_path / "mine.py").write_text("import opreg as mx\n\n"
                                      "@mx.operator.define(name='_example_command')\n"
                                      "def example(x, *, by: float = 2.0):\n"
                                      "    'A multiple.'\n"
                                      "    return x * by\n")
    file = str(tmp_path / "mine.py")
    assert main(["ops", "_example_comm*", "--import", file]) == 0
    assert "custom._example_command  A multiple." in capsys.readouterr().out
    assert main(["show", "_example_command", "--import", file]) == 0
    assert capsys.readouterr().out.startswith("custom._example_command(x, *, by: float = 2.0)")


def test_show_prints_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.json"
    mx.sym.relu(mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")).save(str(path))
    assert main(["show", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[:1] == ["Arguments (3): x, fc_weight, fc_bias"]


def test_params_lists_and_compares_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = str(tmp_path / "a.params"), str(tmp_path / "b.params")
    mx.nd.save(a, {"w": mx.nd.ones((2, 3)), "v": mx.nd.ones((1,))})
    mx.nd.save(b, {"w": mx.nd.ones((2, 3)) * 1.5, "u": mx.nd.ones((1,))})
    assert main(["params", a]) == 0
    assert capsys.readouterr().out == "w  float32 2x3\nv  float32 1\n"
    assert main(["params", a, a]) == 0
    assert capsys.readouterr().out == "2 arrays, all equal\n"
    assert main(["params", a, b]) == 1
    assert capsys.readouterr().out == "w  differ by up to 0.5, in 6 of 6\nv  only in the first\nu  only in the second\n"
    assert main(["params", str(tmp_path / "none.params")]) == 2


def test_info_prints_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["opreg"] == mx.__version__
    assert main(["info"]) == 0
    assert "NumPy" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0 and capsys.readouterr().out.startswith(f"usage: opreg {name}")


def test_an_unknown_command_is_refused_and_none_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["nonsense"])
    assert end.value.code == 2 and "as-mxnet" in capsys.readouterr().err
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: opreg ") and set(COMMANDS) >= {"ops", "run"}


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"opreg {mx.__version__}\n"


def test_plain_names_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    private = [name.startswith("_") for name in names]
    assert private == sorted(private) and True in private and names[0].lower() < names[1].lower()


@pytest.mark.parametrize("argv, words", [
    (["run", "net.json", "--inpt", "x=1"], r"unrecognized arguments: --inpt.*Did you mean '--input'"),
    (["as-mxnet"], "required: script$"), (["plot"], "required: MODEL$"),
    (["ops", "--al=1"], "all"), (["ops", "--jsn"], "Did you mean '--json'"), (["ops", "a", "b"], "arguments: b$"),
    (["profile", "net.json", "--trase=f"], "Did you mean '--trace'"),
    (["--versoin"], "Did you mean '--version'")])
def test_errors_for_misspelt_options_name_the_nearest(argv: list[str], words: str,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(argv)
    told = capsys.readouterr().err
    assert end.value.code == 2 and re.search(words, told.strip().splitlines()[-1]), told
