"""The command ``opreg`` on files: it checks, runs, draws and profiles models, and converts weights."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.numba import cache
from opreg.command import check, main
from tests import processes
from tests.test_architecture import ROOT

#: An operator that one test registers is not registered in another.
NUMBERS = itertools.count()
#: Runs the command in a folder of its own: its exit code, output and errors.
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def opreg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    monkeypatch.chdir(tmp_path)
    path, modules = sys.path[:], set(sys.modules)

    def run(*words: object) -> tuple[int, str, str]:
        code = main([*map(str, words)])
        return code, *capsys.readouterr()

    yield run
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def net(opreg: Command, tmp_path: Path) -> mx.Symbol:
    """A model saved at two epochs, and a file with an input."""
    symbol = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax")
    for epoch in (1, 12):
        weights = {"fc_weight": mx.nd.arange(12).reshape((3, 4)) * epoch / 99, "fc_bias": mx.nd.array([0.0, 1.0, 2.0])}
        mx.model.save_checkpoint("net", epoch, symbol, weights, {})
    np.save("x.npy", np.arange(8.0).reshape(2, 4))
    return symbol


# ------------------------------------------------------------------------------------------------------ check


#: Operators that do not return: their action, whether only their gradient does it, and the message.
BREAKING = {
    "exits at once": ("os._exit(0)", False, "it has ended the process with 0, as os._exit does"),
    "exits with a code": ("os._exit(3)", False, "it has ended the process with 3"),
    "exits within a line": ("[os.write(int(fd[14:]), b'{') for fd in glob.glob('/proc/self/fd/*')"
                            " if 'pipe' in os.path.realpath(fd) and int(fd[14:]) > 2]; os._exit(4)",
                            False, "it has ended the process with 4"),
    "crashes": ("os.kill(os.getpid(), 11)", False, "it has ended the process by SIGSEGV"),
    "ends the program": ("sys.exit(0)", False, "SystemExit: 0"),
    "never ends": ("while True: pass", False, "it has not ended after 1 seconds; --timeout gives it longer"),
    "never ends in its gradient": ("while True: pass", True, "it has not ended after 1 seconds"),
    "exits in its gradient": ("os._exit(0)", True, "it has ended the process with 0"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("kind", BREAKING)
def test_an_operator_that_exits_or_hangs_fails_the_check(opreg: Command, kind: str) -> None:
    does, in_gradient, said = BREAKING[kind]
    threads = set(threading.enumerate())
    in_forward = "return x * 2" if in_gradient else does
    Path("ops.py").write_text("import glob, os, sys\nimport opreg as mx\nprint('imported')\n"
                              f"@mx.operator.define(name='_breaking{next(NUMBERS)}')\n"
                              f"def f(x):\n    open('process', 'w').write(str(os.getpid()))\n    {in_forward}\n"
                              f"@f.grad\ndef f_grad(g, ins, outs):\n    {does}\n")
    code, out, _ = opreg("check", "ops.py:f", "--input", "2", "--json", "--timeout", 1 if "never" in kind else 60)
    told = json.loads(out)
    failed = [each for each in told["verdicts"] if each["outcome"] == "failed"]
    assert code == 1 and not told["ok"] and said in failed[0]["text"]
    assert (told["verdicts"][0]["outcome"] == "ok") == in_gradient
    if "sys" not in does:
        assert told["verdicts"][-1]["text"] == f"not asked after {failed[0]['name']!r} failed"
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("process").read_text()), 0)
    assert threads.issuperset(threading.enumerate())


def test_modules_that_end_the_process_cannot_be_imported(opreg: Command) -> None:
    Path("ops.py").write_text("import os\nos._exit(0)\n")
    code, out, err = opreg("check", "ops.py:f", "--input", "2")
    assert (code, out) == (2, "")
    assert err == "opreg check: ops.py:f: it has ended the process with 0, as os._exit does, while it was imported\n"


@pytest.mark.parametrize("words", ["0", "-1", "nan", "inf"])
def test_an_invalid_timeout_of_a_check_is_refused(opreg: Command, words: str) -> None:
    assert opreg("check", "relu", "--input", "2", "--timeout", words)[0] == 2


@pytest.fixture
def swish(opreg: Command, tmp_path: Path) -> Path:
    path, number = tmp_path / "cells.py", next(NUMBERS)
    path.write_text("import opreg as mx\n"
                    "@mx.operator.define(traced=True, name='_cells_swish" f"{number}')\n"
                    "def swish(x, *, beta: float = 1.0):\n"
                    "    return x * mx.nd.sigmoid(x * beta)\n"
                    "@mx.operator.define(name='_cells_wrong" f"{number}')\n"
                    "def wrong(x):\n"
                    "    return x * x\n"
                    "@wrong.grad\n"
                    "def wrong_grad(g, ins, outs):\n"
                    "    return g * ins[0]\n"
                    "class Group:\n"
                    "    dense = mx.nn.Dense(3, 2)\n"
                    "1 / (__name__ != 'broken')\n")
    (tmp_path / "broken.py").write_text(path.read_text().replace("_cells", "_broken"))
    return path


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks run in processes that are forked: imports take most of the time of those that the command starts."""

    @contextlib.contextmanager
    def process(words: dict[str, Any]) -> Iterator[tuple[Any, check.Lines]]:
        program = f"import os, sys\nsys.argv[2] = str(os.getppid())\n{check._BEGIN}"
        done = processes.run(program, json.dumps(sys.path), 0, json.dumps(words), folder=Path.cwd())
        lines: check.Lines = queue.SimpleQueue()
        for line in (*map(json.loads, done.stdout.splitlines()), None):
            lines.put(line)
        yield SimpleNamespace(wait=lambda: done.returncode), lines

    monkeypatch.setattr(check, "_process", process)


def test_check_reports_verdicts_of_a_function(opreg: Command, swish: Path, forked: None) -> None:
    code, out, _ = opreg("check", "cells.py:swish", "--input", "2x3", "--attr", "beta=2.0")
    assert code == 0 and ": 21 ok, 0 failed, " in out
    code, out, _ = opreg("check", f"{swish}:wrong", "--input", "2x3", "--json")
    told = json.loads(out)
    assert code == 1 and not told["ok"]
    assert [each["name"] for each in told["verdicts"] if each["outcome"] == "failed"] == ["gradient"]
    np.save("x.npy", np.ones((2, 3), np.float32))
    code, out, _ = opreg("check", "cells:Group.dense", "--input", "x.npy")
    assert code == 0 and out.startswith("Cell Dense")
    code, out, _ = opreg("check", "square", "--input", "2x3")
    assert code == 0 and out.startswith("operator 'square'")
    code, out, _ = opreg("check", "square", "--input", "():float64")
    assert code == 0 and out.startswith("operator 'square'")


def test_an_operator_without_inputs_is_checked(opreg: Command) -> None:
    assert opreg("check", "_ones", "--attr", "shape=(2, 3)")[0] == 0


@pytest.mark.parametrize("words, message", [
    (["cells.py:swosh", "--input", "2"], "cells.py defines no 'swosh'. Did you mean 'swish'?"),
    (["cell.py:swish", "--input", "2"], "no such file or folder: cell.py. Did you mean 'cells.py'?"),
    (["cells.py", "--input", "2"], "the object in it is not named. Write cells.py:Name"),
    (["nowhere:swish", "--input", "2"], "there is no module 'nowhere'"),
    (["cells.py:swish"], "inputs are given as --input 2x3"), (["relu"], "inputs are given as --input 2x3"),
    (["cells.py:swish", "--input", "999999999x999999999x999"], "999999999x999999999x999: "),
    (["cells.py:swish", "--input", "2y3"], "'2y3' is no input; give a .npy file, or a shape"),
    (["cells.py:swish", "--input", "2:flot32"], "float32"),
    (["cells.py:swish", "--input", "y.npy"], "no such file or folder: y.npy"),
    (["cells.py:swish", "--input", "2", "--attr", "beta"], "an attribute is written as name=value"),
    (["cells.py:swish", "--input", "2", "--attr", "bta=1.0"], "Did you mean 'beta'?"),
    (["relo", "--input", "2"], "Did you mean 'relu'"),
    (["broken.py:swish", "--input", "2"], "\n    1 / (__name__ != 'broken')\n"),
])
def test_files_that_cannot_be_checked_are_refused(opreg: Command, swish: Path, forked: None, words: list[str],
                                                  message: str) -> None:
    code, out, err = opreg("check", *words)
    assert (code, out) == (2, "") and message in err
    assert "__init__.py" not in err


# ------------------------------------------------------------------------------------------------------ models


def test_summary_counts_parameters_of_a_graph(opreg: Command, net: mx.Symbol) -> None:
    code, out, _ = opreg("summary", "net", "data=2x4")
    assert code == 0 and "fc(FullyConnected)" in out and "Total params: 15" in out
    code, out, _ = opreg("summary", "net-symbol.json", "data=2x4", "--json")
    told = json.loads(out)
    assert code == 0 and told["arguments"]["fc_weight"] == [3, 4]
    assert told["nodes"]["fc"] == {"operator": "FullyConnected", "shapes": [[2, 3]],
                                   "inputs": ["data", "fc_weight", "fc_bias"]}
    code, _, err = opreg("summary", "net", "dta=2x4")
    assert code == 2 and "Did you mean 'data'?" in err
    code, _, err = opreg("summary", "net", "2x4")
    assert code == 2 and "the input of this shape is unknown. Write data=2x4" in err
    code, _, err = opreg("summary", "nett-symbol.json")
    assert code == 2 and "Did you mean 'net-symbol.json'?" in err


def expected(epoch: int = 12) -> np.ndarray:
    scores = np.arange(8.0).reshape(2, 4) @ (np.arange(12.0).reshape(3, 4).T * epoch / 99) + np.arange(3.0)
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("words, epoch", [
    (["net", "--input", "x.npy"], 12), (["net-symbol.json", "--input", "data=x.npy"], 12),
    (["net", "--input", "x.npy", "--params", "net-0001.params"], 1), (["net", "--input", "x.npy", "--repeat", "3"], 12),
], ids=["prefix", "graph", "params", "repeat"])
def test_run_computes_a_graph_and_writes_its_output(opreg: Command, net: mx.Symbol, words: list[str],
                                                    epoch: int) -> None:
    code, out, err = opreg("run", *words, "--output", "out.npy")
    assert (code, err) == (0, "") and out.startswith("softmax_output  float32  2x3  least ")
    assert ("3 runs: " in out) == ("--repeat" in words)
    np.testing.assert_allclose(np.load("out.npy"), expected(epoch), rtol=1e-4)


def test_weights_beside_the_graph_are_found_in_any_format(opreg: Command, net: mx.Symbol) -> None:
    for ending in ("safetensors", "ckpt", "npz", "params"):
        opreg("convert", "net-0012.params", f"{ending}.{ending}")
        net.save(f"{ending}-symbol.json")
        assert opreg("run", ending, "--input", "x.npy", "--output", "out.npy")[0] == 0
        np.testing.assert_allclose(np.load("out.npy"), expected(), rtol=1e-4)


def test_run_gives_several_outputs(opreg: Command, net: mx.Symbol) -> None:
    both = mx.sym.Group([net, net.get_internals()["data"] * 2])
    both.save("both-symbol.json")
    for name in ("out.npz", "out.safetensors"):
        code, out, err = opreg("run", "both", "--input", "x.npy", "--params", "net-0012.params", "--output", name,
                               "--json")
        assert err == ""
        told = json.loads(out)
        assert code == 0 and [each["shape"] for each in told["outputs"].values()] == [[2, 3], [2, 4]]
        assert sorted(mx.nd.load(name)) == sorted(told["outputs"])
    code, _, err = opreg("run", "both", "--input", "x.npy", "--params", "net-0012.params", "--output", "o.npy")
    assert code == 2 and "holds one array, and there are 2 outputs" in err and not Path("o.npy").exists()


@pytest.mark.parametrize("words, message", [
    (["net"], "data is missing; inputs are given by --input name=x.npy"),
    (["net", "--input", "dta=x.npy"], "the graph has no input 'dta'. Did you mean 'data'?"),
    (["net", "--input", "x.npy", "x.npy"], "the graph has no input left for it; its inputs are data"),
    (["net", "--input", "3x5"], "weight: expected shape (3, 5), got (3, 4)\n"),
    (["net", "--input", "x.npy", "--output", "y.npx"], "unknown format '.npx'. Did you mean '.npz' or '.npy'?"),
    (["net", "--input", "x.npy", "--repeat", "0"], "expected at least 1"),
    (["net", "--input", "x.npy", "--params", "net-0002.params"], "Did you mean 'net-00"),
    (["alone", "--input", "x.npy"], "fc_weight, fc_bias are missing; "),
])
def test_files_that_cannot_be_run_are_refused(opreg: Command, net: mx.Symbol, words: list[str], message: str) -> None:
    net.save("alone-symbol.json")
    code, out, err = opreg("run", *words)
    assert (code, out) == (2, "") and message in err


def test_a_file_that_is_no_array_is_refused(opreg: Command, net: mx.Symbol) -> None:
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    code, _, err = opreg("run", "net", "--input", "objects.npy")
    assert code == 2 and "objects.npy: " in err


def test_commands_import_users_operators(opreg: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import opreg as mx\n@mx.operator.define(name='_command_third')\n"
                                      "def third(x):\n    return x / 3\n")
    program = ("import mine, opreg as mx\n"
               "mx.sym.custom._command_third(mx.sym.var('x'), name='t').save('t-symbol.json')")
    done = processes.run(program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    code, out, _ = opreg("show-missing", "t-symbol.json")
    assert code == 1 and "Custom _command_third, 1 of them, the first is 't': not registered" in out
    code, _, err = opreg("run", "t", "--input", "2x3")
    assert code == 2 and "import the module that registers it" in err
    code, out, _ = opreg("run", "t", "--input", "2x3", "--import", "mine.py")
    assert code == 0 and out.startswith("t_output  float32  2x3")
    code, out, _ = opreg("show-missing", "t-symbol.json", "--import", "mine.py")
    assert (code, out) == (0, "t-symbol.json: all there\n")


def test_missing_operators_are_listed(opreg: Command) -> None:
    body = mx.sym.contrib.foreach(lambda x, s: (mx.sym.relu(x, name="inner"), s), mx.sym.var("x"), [])[0]
    mx.sym.Group([body, mx.sym.exp(mx.sym.var("x"), name="e"), mx.sym.exp(mx.sym.var("y"), name="f")]).save("a.json")
    text = Path("a.json").read_text()
    Path("b.json").write_text(text.replace('"relu"', '"relo"').replace('"exp"', '"exq"'))
    code, out, _ = opreg("show-missing", "a.json", "b.json", "--json")
    told = json.loads(out)
    assert code == 1 and told["a.json"] == []
    assert [(row["operator"], row["nodes"], "relu" in row["near"] or "exp" in row["near"]) for row in told["b.json"]] \
        == [("relo", ["inner"], True), ("exq", ["e", "f"], True)]
    assert opreg("show-missing", "a.json")[:2] == (0, "a.json: all there\n")


def test_plot_writes_a_drawing(opreg: Command, net: mx.Symbol, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = opreg("plot", "net", "data=2x4", "--output", "net.gv")
    assert (code, out) == (0, "net.gv\n") and Path("net.gv").read_text().startswith('digraph "net" {')

    def render(self: Any, filename: str) -> str:
        Path(f"{filename}.{self.format}").write_text(f"picture of {self.title}")
        return f"{filename}.{self.format}"

    kind = type(mx.viz.plot_network(net))
    monkeypatch.setattr(kind, "render", render)
    assert opreg("plot", "net")[:2] == (0, "net.svg\n")
    assert Path("net.svg").read_text() == "picture of net"
    monkeypatch.setattr(kind, "render", lambda self, filename: self.save(filename))
    code, _, err = opreg("plot", "net", "--output", "net.pdf")
    assert code == 2 and "needs the program dot" in err and not Path("net.pdf").exists()


def test_profile_prints_the_steps_of_a_model(opreg: Command, net: mx.Symbol) -> None:
    code, out, _ = opreg("profile", "net", "--input", "2x4", "--train", "--repeat", "2", "--trace", "t.json")
    assert code == 0 and "training plan" in out and "_backward_FullyConnected" in out
    names = {event["name"] for event in json.loads(Path("t.json").read_text())["traceEvents"]}
    assert "FullyConnected" in names and "_backward_FullyConnected_weight" in names
    code, out, _ = opreg("profile", "net", "--input", "2x4", "--repeat", "1", "--json")
    assert code == 0 and {"FullyConnected", "SoftmaxOutput"} <= {row["operator"] for row in json.loads(out)}
    Path("net-0001.params").unlink()
    Path("net-0012.params").unlink()
    # without a file of weights, they are random
    assert opreg("profile", "net", "--input", "2x4", "--repeat", "1")[0] == 0
    code, _, err = opreg("profile", "net")
    assert code == 2 and "--input data=" in err


def test_profile_prints_the_operators_of_a_script(opreg: Command, tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text("import sys\nimport opreg as mx\nprint(sys.argv[1:])\n"
                                      "mx.nd.exp(mx.nd.ones((2, 3)))\nif sys.argv[1:]: sys.exit(int(sys.argv[1]))\n")
    code, out, _ = opreg("profile", "loop.py", "--trace", "t.json")
    assert code == 0 and out.startswith("[]\n") and re.search(r" 1  exp\n", out) and "loop.py:4" in out
    assert any(event["name"] == "exp" for event in json.loads(Path("t.json").read_text())["traceEvents"])
    code, out, err = opreg("profile", "loop.py", "--json", "--args", "3", "--json")
    assert code == 3 and json.loads(out)["operator"][0]["calls"] == 1 and err == "['3', '--json']\n"
    code, out, err = opreg("profile", "loop.py", "--args", "x")
    assert code == 1 and "ValueError" in err and " exp\n" in out
    assert opreg("profile", "lop.py")[0] == 2


# ------------------------------------------------------------------------------------------------------ weights


def every_kind() -> dict[str, mx.nd.NDArray]:
    pytest.importorskip("ml_dtypes", reason="has bfloat16")
    return {"arg:w": mx.nd.array([[1.5, float("nan")]]), "arg:h": mx.nd.ones((3,), dtype="bfloat16"),
            "aux:n": mx.nd.array([1, 2], dtype="int8"), "arg:b": mx.nd.array([1, 0], dtype="bool"),
            "arg:none": mx.nd.zeros((2,), dtype="float16")}


@pytest.mark.parametrize("first", ["params", "npz", "safetensors", "ckpt", "pt", "pth"])
@pytest.mark.parametrize("second", ["params", "npz", "safetensors", "ckpt", "pt"])
def test_two_conversions_restore_all_arrays(opreg: Command, first: str, second: str) -> None:
    """Two conversions restore all arrays, and their names in order."""
    arrays = every_kind()
    if "npz" in (first, second):
        del arrays["arg:h"]
    mx.nd.save("a.params", arrays)
    for source, target in [("a.params", f"b.{first}"), (f"b.{first}", f"c.{second}"), (f"c.{second}", "d.params")]:
        code, out, err = opreg("convert", source, target)
        assert (code, err) == (0, "") and out.startswith(f"{len(arrays)} arrays, ")
    assert Path("d.params").read_bytes() == Path("a.params").read_bytes()
    assert opreg("params", "a.params", f"c.{second}")[:2] == (0, f"{len(arrays)} arrays, all equal\n")


def test_convert_files_of_pytorch_mindspore_and_onnx(opreg: Command) -> None:
    """Files of PyTorch, MindSpore and ONNX are read; the report names what is left out."""
    data = Path(__file__).parent.parent / "recorded"
    code, out, err = opreg("convert", data / "torch_training.pt", "a.safetensors", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "") and told["arrays"] == 19
    assert re.search("2 entries that are not tensors are left out: epoch, optimizer", told["notes"][0])
    code, out, err = opreg("convert", str(data / "mindspore_checked.ckpt"), "b.npz")
    assert (code, err) == (0, "") and out.startswith("3 arrays, ")
    assert float(np.load("b.npz")["lr"]) == 0.5
    helper = pytest.importorskip("onnx.helper")
    weights = pytest.importorskip("onnx.numpy_helper").from_array(np.float32([[1, 2], [3, 4]]), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [
        helper.make_tensor_value_info("x", 1, [1, 2])], [helper.make_tensor_value_info("y", 1, [1, 2])], [weights])
    Path("c.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    assert opreg("convert", "c.onnx", "c.params")[:2] == (0, "1 arrays, 16 bytes: c.params\n")
    assert mx.nd.load("c.params")["w"].asnumpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("source, target, message", [
    ("a.params", "b.npz", "a .npz file has no dtype bfloat16"),
    ("list.params", "b.safetensors", "its arrays have no names"), ("list.params", "b.ckpt", "its arrays have no names"),
    ("a.params", "c.npz", "c.npz: the file exists; --force replaces it"),
    ("a.params", "net.onnx", "a model is a graph with weights, but a.params holds only weights"),
    ("a.params", "net-symbol.json", "only an .onnx file can be converted"),
    ("bare-symbol.json", "b.pt", "no file with weights was found; give one by --params"),
    ("c.npz", "b.params", "a .params file has no dtype complex64"),
    ("a.params", "b.ptt", "unknown format '.ptt'. Did you mean '.pt'"), ("a.params", "b", "unknown format ''"),
    ("a.parms", "b.npz", "Did you mean 'a.params'"), ("text.params", "b.npz", "expected the magic number"),
    ("a.params", "nowhere/b.ckpt", "no such file or folder: "),
])
def test_files_that_cannot_be_converted_are_refused(opreg: Command, source: str, target: str, message: str) -> None:
    mx.nd.save("a.params", every_kind())
    mx.nd.save("list.params", [mx.nd.ones((2,))])
    np.savez("c.npz", c=np.ones(2, np.complex64))
    Path("text.params").write_text("some text that is no file of weights")
    mx.sym.Variable("x").save("bare-symbol.json")
    before = sorted(Path().iterdir())
    code, out, err = opreg("convert", source, target)
    assert (code, out) == (2, "") and message in err
    assert sorted(Path().iterdir()) == before


def test_convert_a_graph_to_onnx_and_back(opreg: Command) -> None:
    """The ONNX file has the names of the graph; converted back, it becomes a graph and weights with the same
    results."""
    onnx = pytest.importorskip("onnx")
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net.save("net-symbol.json")
    params = {"arg:fc_weight": mx.nd.array(np.arange(12).reshape(3, 4)), "arg:fc_bias": mx.nd.array([1, 2, 3])}
    mx.nd.save("net-0003.params", params)
    code, out, err = opreg("convert", "net-symbol.json", "net.onnx", "--input", "data=2x4", "--dynamic", "--opset",
                           "17")
    assert (code, err) == (0, "") and out.startswith("data -> fc_output, ")
    model = onnx.load("net.onnx")
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert model.opset_import[0].version == 17
    code, _, err = opreg("convert", "net-symbol.json", "other.onnx")
    assert code == 2 and "--input data=" in err and not Path("other.onnx").exists()
    assert opreg("convert", "net-symbol.json", "net.onnx", "--input", "2x4")[0] == 2
    assert opreg("convert", "net-symbol.json", "net.onnx", "--input", "2x4", "--force")[0] == 0
    code, out, err = opreg("convert", "net.onnx", "again-symbol.json")
    assert (code, err) == (0, "") and out.startswith("2 arrays: again-symbol.json, again-0000.params")
    again, arguments, states = mx.model.load_checkpoint("again", 0)
    data = mx.nd.array(np.arange(8).reshape(2, 4))
    wanted = mx.nd.FullyConnected(data, params["arg:fc_weight"], params["arg:fc_bias"], num_hidden=3).asnumpy()
    found = again.bind(mx.cpu(), {**arguments, "data": data}, aux_states=states, grad_req="null").forward()[0]
    np.testing.assert_allclose(found.asnumpy(), wanted)


def test_a_model_of_onnx_becomes_a_graph_a_picture_and_gradients(opreg: Command) -> None:
    """Both commands accept a model of a product and a tanh; gradients are those of the sum of outputs."""
    pytest.importorskip("onnx")
    x, w = np.float64([[1, 2], [3, 4]]), np.float64([[0.1, -0.2, 0.3], [0.2, 0.1, -0.1]])
    net = mx.sym.tanh(mx.sym.dot(mx.sym.Variable("x"), mx.sym.Variable("w")))
    mx.onnx.export(net, "net.onnx", x, params={"w": mx.nd.array(w, dtype="float64")})
    np.save("x.npy", x)
    code, out, err = opreg("convert", "net.onnx", "net-symbol.json", "--picture", "net.svg")
    assert (code, out, err) == (0, "1 arrays: net-symbol.json, net-0000.params, net.svg\n", "")
    assert "tanh" in Path("net.svg").read_text()
    code, _, err = opreg("convert", "net.onnx", "other-symbol.json", "--picture", "net.svg")
    assert code == 2 and "net.svg: the file exists" in err and not Path("other-symbol.json").exists()
    assert "w.npz holds only weights" in opreg("convert", "net.onnx", "w.npz", "--picture", "w.svg")[2]
    slope = 1 - np.tanh(x @ w) ** 2
    for name in ("net", "net.onnx"):
        assert opreg("run", name, "--input", "x=x.npy", "--gradients", "slopes.npz")[0] == 0
        found = mx.nd.load("slopes.npz")
        assert sorted(found) == ["w", "x"]
        np.testing.assert_allclose(found["x"].asnumpy(), slope @ w.T, 1e-12)
        np.testing.assert_allclose(found["w"].asnumpy(), x.T @ slope, 1e-12)
    assert "--gradients g.npy: a .npy file holds one array" in opreg(
        "run", "net", "--input", "x=x.npy", "--gradients", "g.npy")[2]


def test_commands_for_graphs_read_onnx_models(opreg: Command) -> None:
    """ONNX models are shown, drawn, run and converted like graphs with weights; given shapes fix open lengths."""
    helper = pytest.importorskip("onnx.helper")
    from_array = pytest.importorskip("onnx.numpy_helper").from_array
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Size", ["m"], ["s"]),
         helper.make_node("Cast", ["s"], ["f"], to=1), helper.make_node("Mul", ["m", "f"], ["y"])], "scaled",
        [helper.make_tensor_value_info("x", 1, ["n", 2])], [helper.make_tensor_value_info("y", 1, ["n", 3])],
        [from_array(np.float32([[1, 2, 3], [4, 5, 6]]), "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    Path("c.onnx").write_bytes(made.SerializeToString())
    np.save("x.npy", np.float32([[1, 0], [0, 1]]))
    code, _, err = opreg("convert", "c.onnx", "open-symbol.json")
    assert code == 2 and "the inputs have dynamic lengths: give them by --input x=SHAPE" in err
    assert opreg("convert", "c.onnx", "c-symbol.json", "--input", "2x2")[0] == 0
    assert opreg("run", "c.onnx", "--input", "x=x.npy", "--output", "y.npy")[0] == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.float32([[6, 12, 18], [24, 30, 36]]))
    assert opreg("plot", "c.onnx", "x=2x2")[:2] == (0, "c.svg\n") and "<svg" in Path("c.svg").read_text()
    assert "matmul" in opreg("summary", "c.onnx", "x=2x2")[1]
    code, _, err = opreg("show", "c.onnx")
    assert code == 2 and "Size needs lengths" in err
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    Path("closed.onnx").write_bytes(made.SerializeToString())
    assert opreg("show", "closed.onnx")[1].startswith("Arguments (2): x, w\n")
    assert opreg("show-missing", "closed.onnx")[:2] == (0, "closed.onnx: all there\n")
    assert opreg("profile", "c.onnx", "--input", "2x2", "--train")[0] == 0
    code, _, err = opreg("run", "c.onnx", "--input", "z=2x2")
    assert code == 2 and "the model has no input 'z'" in err


def test_convert_reports_changes(opreg: Command) -> None:
    """The report names weights that are no part of the graph, and numbers that become constants of it."""
    pytest.importorskip("onnx")
    scaled = mx.sym.broadcast_mul(mx.sym.Variable("data"), mx.sym.Variable("scale"))
    mx.sym.broadcast_add(scaled, mx.sym.Variable("w")).save("net-symbol.json")
    mx.nd.save("net-0003.params", {"arg:scale": mx.nd.array(2), "arg:w": mx.nd.ones((4,)), "arg:old": mx.nd.ones(1)})
    code, out, err = opreg("convert", "net-symbol.json", "net.onnx", "--input", "data=2x4")
    assert (code, err) == (0, "") and out.endswith("\nleft out, since the graph has none of that name: old\n")
    code, out, err = opreg("convert", "net.onnx", "again-symbol.json")
    assert (code, err) == (0, "") and "constants of the graph, not weights: scale\n" in out
    assert opreg("convert", "net.onnx", "again-symbol.json")[2].endswith(
        "again-symbol.json: the file exists; --force replaces it\n")
    Path("again-symbol.json").unlink()
    assert "again-0000.params: the file exists" in opreg("convert", "net.onnx", "again-symbol.json")[2]
    for target in ("w.pt", "w.ckpt", "w.safetensors"):  # the weights of a graph, by its names
        assert opreg("convert", "net-symbol.json", target)[0] == 0
        assert opreg("params", target)[1].splitlines() == ["scale  float32 scalar", "w      float32 4",
                                                           "old    float32 1"]


def test_convert_shows_its_progress(opreg: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress appears on a line of the error stream if wanted, and is gone at the end."""
    mx.nd.save("a.params", {str(i): mx.nd.ones((4,)) for i in range(9)})
    monkeypatch.setenv("OPREG_PROGRESS", "1")
    ticks = itertools.count()
    monkeypatch.setattr("opreg.core.progress._clock", lambda: float(next(ticks)))
    monkeypatch.setattr("opreg.core.progress.is_rewritable", lambda stream: True)
    for target in ("b.pt", "b.npz", "b.ckpt", "b.safetensors", "b.params"):
        code, out, err = opreg("convert", "a.params", target)
        assert code == 0 and out.startswith("9 arrays, 144 bytes") and re.search(r"writing \[#.*/144 ", err)
        assert opreg("params", "a.params", target)[0] == 0


def test_an_array_has_one_hash_in_all_formats(opreg: Command) -> None:
    """An array has the same hash in all formats, and another one for each dtype and shape."""
    mx.nd.save("a.params", {"x": mx.nd.ones((2, 3)), "y": mx.nd.ones((3, 2)), "z": mx.nd.ones((2, 3), dtype="float64")})
    opreg("convert", "a.params", "a.safetensors")
    one, two = (json.loads(opreg("params", name, "--json")[1]) for name in ("a.params", "a.safetensors"))
    assert one == two and len({each["sha256"] for each in one.values()}) == 3
    out = opreg("params", "a.params", "--hash")[1]
    assert out.splitlines()[0] == f"x  float32 2x3  {one['x']['sha256'][:16]}"


def test_diff_lists_different_arrays(opreg: Command) -> None:
    a = {"same": [1, float("nan")], "one": [1, 2], "lost": [1, float("nan")], "b": [1, 2]}
    b = {"same": [1, float("nan")], "one": [1, 4], "lost": [1, 2], "b": [1, 2, 3]}
    for name, values in {"a": a, "b": b}.items():
        mx.nd.save(f"{name}.npz", {key: mx.nd.array(each) for key, each in values.items()})
    code, out, _ = opreg("params", "a.npz", "b.npz")
    assert code == 1 and out.splitlines() == [
        "one   differ by up to 2, in 1 of 2", "lost  differ by up to nan, in 1 of 2",
        "b     float32 (2,) in the first, float32 (3,) in the second"]


def test_trace_cache_lists_and_clears_the_cache(opreg: Command, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kept"
    monkeypatch.setenv("OPREG_CACHE_DIR", str(folder))
    assert opreg("trace-cache") == (0, f"0 files in {folder}\n", "")
    cache.store("a.code", b"code")
    cache.store("b.choices", b"{}")
    (folder / "notes.txt").write_text("somebody else's")
    code, out, _ = opreg("trace-cache")
    assert code == 0 and out.startswith(f"2 files in {folder}\n") and re.search(r"^1  \d+ bytes  compiled", out, re.M)
    code, out, _ = opreg("trace-cache", "clear", "--json")
    assert code == 0 and json.loads(out)["files"] == {".code": 1, ".choices": 1}
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


# ------------------------------------------------------------------------------------------------------ the rest


@pytest.mark.parametrize("words", [["params", "net-0001.params", "--json"], ["show", "net-symbol.json", "--json"],
                                   ["show", "relu", "--json"], ["ops", "relu", "--json"], ["info", "--json"],
                                   ["port", "script.py", "--json"], ["summary", "net", "--json"]],
                         ids=lambda words: words[0])
def test_json_output_is_valid(opreg: Command, net: mx.Symbol, words: list[str]) -> None:
    Path("script.py").write_text("import mxnet as mx\n")
    code, out, _ = opreg(*words)
    assert code == 0 and json.loads(out)


def test_misspelt_commands_get_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["profle"])
    assert end.value.code == 2 and "there is no 'profle'. Did you mean 'profile'?" in capsys.readouterr().err
    assert main(["ops", "softmx"]) == 1
    assert "Did you mean 'softmax'" in capsys.readouterr().err


def test_a_closed_pipe_ends_the_command(tmp_path: Path) -> None:
    done = subprocess.run(f"{sys.executable} -m opreg ops | head -n 1", shell=True, text=True, capture_output=True,
                          check=True, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert done.stderr == "" and done.stdout.count("\n") == 1
