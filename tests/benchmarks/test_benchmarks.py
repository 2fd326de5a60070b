"""Benchmarks on a device: everything but the times, which mean nothing on a stand-in."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opreg as mx
from benchmarks import counts, device, gpu_kernels, gpu_questions, imported, planted, run_numpy, traced, worker
from benchmarks.workloads import WORKLOADS
from opreg.builtin.outputs import as_output, like_inputs
from opreg.core.attrs import Schema
from opreg.core.declarations import ZERO
from opreg.core.op import Op
from opreg.symbol.inspect.estimate import H100
from tests.cuda.device import gpus
from tests.cuda.host import COMPILER
from tests.questions import of_each

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu.sh"

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def place(out: Path | None = None) -> gpu_questions.Place:
    """The device inside of ``gpus()``."""
    return gpu_questions.Place(mx.gpu(0), mx.gpu(0).xp, True, out, {})


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "BENCHMARK_DEVICE": "dry", **variables})


# ---------------------------------------------------------------------------------------------- the questions


def test_all_questions_are_registered() -> None:
    assert "".join(gpu_questions.QUESTIONS) == "abcdefg"
    assert all((function.__doc__ or "").endswith("?") for function in gpu_questions.QUESTIONS.values())


@needs_compiler
@pytest.mark.parametrize("letter", ["a", "b", "d", "e"])
def test_a_question_is_answered_on_the_stand_in(letter: str) -> None:
    """All rows have numbers, except those that need CuPy, PyTorch or JAX; these say so."""
    with gpus():
        where = place()
        text = gpu_questions.answered(letter, where)
    dataclasses.replace(H100, **where.figures)
    assert where.figures.keys() >= {"b": {"launch"}, "d": {"memory_rate"}, "e": {"product_rates"}}.get(letter, set())
    assert text.startswith(f"### ({letter}) ") and "No answer" not in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    mine = [row for row in rows if not row[0].startswith(("| PyTorch", "| JAX", "| CuPy, replayed"))]
    assert mine
    for row in mine:
        assert any(_is_number(cell) for cell in row), row


def _is_number(text: str) -> bool:
    try:
        return float(text.strip("| ").replace(",", "")) > 0
    except ValueError:
        return False


def test_a_capture_that_fails_ends() -> None:
    def work() -> None:
        if stream.is_capturing():
            raise KeyError("mine")

    with gpus() as xp, (stream := xp.cuda.Stream(non_blocking=True)):
        with pytest.raises(KeyError):
            gpu_questions._capture(stream, work)
        assert not stream.is_capturing()


@needs_compiler
def test_replays_are_compared_with_the_host() -> None:
    with gpus():
        for net, shapes in gpu_questions._networks(place()).values():
            worst, _ = gpu_questions._replayed(place(), net, shapes)
            assert worst < 1e-4


def test_an_exception_is_reported_as_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(place: Any) -> str:
        """Is it so?"""
        raise RuntimeError("no such thing\nand more")

    monkeypatch.setitem(gpu_questions.QUESTIONS, "a", fails)
    text = gpu_questions.answered("a", None)  # type: ignore[arg-type]
    assert text.startswith("### (a) Is it so?\n\nNo answer: RuntimeError: no such thing (`test_benchmarks.py`, line ")


@pytest.mark.parametrize("letter", ["c", "g"])
def test_a_missing_library_is_reported_as_an_answer(letter: str, monkeypatch: pytest.MonkeyPatch,
                                                    tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "cudnn", None)
    assert "No answer: " in gpu_questions.answered(letter, gpu_questions.Place(None, None, True, tmp_path, {}))


def test_a_sanitizer_runs_and_its_errors_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ran(words: list[str], **_: Any) -> Any:
        asked.append(words)
        return subprocess.CompletedProcess(words, 9, "========= ERROR SUMMARY: 2 errors\n", "")

    monkeypatch.setattr(shutil, "which", lambda name: "/there/compute-sanitizer")
    monkeypatch.setattr(subprocess, "run", ran)
    text = gpu_questions.answered("g", gpu_questions.Place(None, None, True, None, {}))
    assert "| memcheck | 9 | ========= ERROR SUMMARY: 2 errors |" in text
    assert all(words[-3:] == ["-m", "benchmarks.gpu_questions", "--kernels"] for words in asked)


# -------------------------------------------------------------------------------------------------- workloads


def test_sizes_are_small_on_the_stand_in_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {each.key: each.sizes for each in WORKLOADS}
    assert device.DEVICE == "cpu" and device.sized(sizes["gelu"]) is sizes["gelu"]
    monkeypatch.setattr(device, "DEVICE", "dry")
    for key, whole in sizes.items():
        small = device.sized(whole)
        assert small.keys() == whole.keys()
        assert all(small[name] <= whole[name] for name in whole if isinstance(whole[name], int)), key


def test_a_device_is_timed_between_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Event:
        def record(self) -> None:
            seen.append("record")

        def synchronize(self) -> None:
            seen.append("wait")

    xp = SimpleNamespace(cuda=SimpleNamespace(Event=Event, get_elapsed_time=lambda begin, end: 8.0))
    monkeypatch.setattr(device, "DEVICE", "gpu")
    clock = device.clock_of(xp)
    assert clock(lambda: seen.append("run"), 2) == 0.008
    assert seen == ["record", "run", "run", "record", "wait"]
    workload = WORKLOADS[0]._replace(sizes={"calls": 4})
    figures = worker.measure(lambda: None, workload, 0.0, clock)
    assert figures[0] == 0.002  # a fourth of a run that takes 8 ms by the clock


@needs_compiler
def test_the_benchmark_runs_on_the_stand_in(tmp_path: Path) -> None:
    """The table shows the expectation of the cost model beside the measured time."""
    figures = tmp_path / "machine.json"
    figures.write_text('{"name": "slow", "launch": 1.0, "product_rates": {"float32": 1e9}}')
    done = run(sys.executable, "-m", "benchmarks", "--machine", str(figures), "--device", "dry", "--here",
               "--rounds", "1", "--seconds", "0.001", "--columns", "opreg", "MXNet",
               "--only", "elementwise", "eager", "import", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "performance.md").read_text()
    titles, _, first, second, *_ = [line.strip("| ").split(" | ") for line in text.splitlines()]
    assert titles[2:] == ["opreg", "ours / best not compiled", "ours / best", "launches", "expected one by one",
                          "expected replayed"]
    assert first[5] == "1" and first[6] == "1,000,000" and _is_number(first[7]) and second[5] == "–"
    assert "These times mean nothing" in text and "import" not in text
    kept = json.loads((tmp_path / "performance.json").read_text())
    assert [each["work"] for each in kept["rows"]] == ["elementwise", "eager"]
    assert kept["rows"][0]["expected"]["launches"] == 1 and kept["device"] == "dry"
    assert "measured: python -m benchmarks" in (ROOT / "docs" / "performance.md").read_text()


# ------------------------------------------------------------------------------------------- the same work


#: Small sizes for the work of hand-written loops.
BY_HAND: dict[str, dict[str, Any]] = {
    **{key: {"count": 9, "n": 4} for key in (
        "custom_numpy", "custom_identity", "elementwise", "elementwise_training", "chain")},
    "gelu": {"n": 20_000}, "gelu_training": {"n": 20_000}, "norm_softmax": {"rows": 32, "width": 1024},
    **{key: {"batch": 2, "channels": 3, "size": 6, "count": 2} for key in ("conv_training", "conv_inference")},
    "block": {"batch": 2, "tokens": 5, "width": 8, "heads": 2, "ratio": 2},
    **{key: {"batch": 1, "heads": 2, "tokens": 300, "size": 3} for key in (
        "attention", "attention_training", "attention_long", "attention_long_training")},
    **{key: {"batch": 2, "size": 32} for key in ("resnet_1", "resnet_8")}, "lenet": {"batch": 3, "rate": 0.1},
    "lstm": {"steps": 3, "batch": 2, "hidden": 5}, "mlp": {"batch": 6, "layers": (7, 5, 4, 10), "rate": 0.1},
    "few_rows": {"batch": 2, "layers": (7, 5, 4, 10)},
    "adam": {"count": 5, "rate": 1e-3}, "eager": {"n": 10, "calls": 2},
}


def test_all_work_by_hand_is_compared() -> None:
    assert {*BY_HAND, "import", "first_result"} == run_numpy.CASES["NumPy"].keys()


@of_each(BY_HAND)
def test_hand_written_numpy_equals_opreg(key: str) -> None:
    from benchmarks import run_opreg

    (run, check), (mine, wanted) = [module[key](**BY_HAND[key]) for module in (
        run_numpy.CASES["NumPy"], run_opreg.CASES["opreg"])]
    run()
    mine()
    assert check() == pytest.approx(wanted(), rel=1e-5)


@of_each(["gelu", "gelu_training", "norm_softmax", "adam"])
def test_loops_of_numba_equal_opreg(key: str) -> None:
    pytest.importorskip("numba")
    from benchmarks import run_numba, run_opreg

    (run, check), (mine, wanted) = [module[key](**BY_HAND[key]) for module in (
        run_numba.CASES["numba"], run_opreg.CASES["opreg"])]
    run()
    mine()
    assert check() == pytest.approx(wanted(), rel=1e-4)


@pytest.mark.parametrize("key, sizes", [
    ("gelu", {"n": 64}), ("elementwise", {"count": 8, "n": 4}),
    ("conv_inference", {"batch": 1, "channels": 2, "size": 6, "count": 2}),
    ("attention", {"batch": 1, "heads": 2, "tokens": 5, "size": 3})])
def test_onnx_runtime_equals_opreg(key: str, sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
                                  ) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    from benchmarks import run_onnx, run_opreg

    (run, check), (mine, wanted) = run_onnx.CASES["ONNX Runtime"][key](**sizes), run_opreg.CASES["opreg"][key](**sizes)
    run()
    mine()
    assert check() == pytest.approx(wanted(), rel=1e-5)


# ------------------------------------------------------------------------------------- kernels compiled before


def test_texts_of_rows_are_those_of_a_large_gpu() -> None:
    """No kernel runs, so no compiler is needed."""
    texts = gpu_kernels.texts_of_rows(["softmax", "tanh", "BatchNorm"])
    names = {re.search(r"\) (\w+)\(", text.source[text.source.index('extern "C"'):])[1] for text in texts}  # type: ignore
    assert {"rows__softmax", "elementwise__tanh"} <= names and all(text.options == ("-std=c++17",) for text in texts)
    assert len(texts) == len(set(texts)) > 5


@pytest.fixture
def compiling() -> None:
    compiler = pytest.importorskip("cupy.cuda.compiler", reason="needs CuPy")
    try:
        compiler._get_nvrtc_version()
    except Exception as error:  # an error of a package that finds libraries
        pytest.skip(f"needs NVRTC: {error}")


TEXTS = [gpu_kernels.Text('extern "C" __global__ void one(float* x) { x[0] = 1; }'),
         gpu_kernels.Text("template <class T> __global__ void two(T* x) { x[0] = 2; }", names=("two<float>",))]


@pytest.mark.usefixtures("compiling")
@pytest.mark.parametrize("text", TEXTS, ids=["raw", "named"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_kernel_compiled_before_is_found_by_cupy(text: gpu_kernels.Text, whole: bool, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    if whole:
        text = text._replace(options=gpu_kernels._given(text, "90")[0])
    assert gpu_kernels.found(tmp_path, text) is None
    name = gpu_kernels.write(tmp_path, text)
    code = gpu_kernels.found(tmp_path, text)
    assert code is not None and (tmp_path / name).read_bytes().endswith(code) and b"ELF" in code[:80]
    assert gpu_kernels.found(tmp_path, text, "80") is None
    assert gpu_kernels.rename(tmp_path) == (1, 0) and len(list(tmp_path.iterdir())) == 2

    given = gpu_kernels._given  # on other machines CuPy is in another folder
    def moved(text: gpu_kernels.Text, arch: str) -> tuple[tuple[str, ...], str]:
        options, headers = given(text, arch)
        return tuple([option.replace("-I", "-I/elsewhere") for option in options]), headers

    monkeypatch.setattr(gpu_kernels, "_given", moved)
    there = text._replace(options=moved(TEXTS[0], "90")[0]) if whole else text
    assert gpu_kernels.found(tmp_path, there) is None
    assert gpu_kernels.rename(tmp_path) == (1, 0)
    assert gpu_kernels.found(tmp_path, there) == code
    monkeypatch.setattr(gpu_kernels, "_versions", lambda: {"cupy": "15.0", "nvrtc": [15, 0]})
    assert gpu_kernels.rename(tmp_path) == (0, 1)


# --------------------------------------------------------------------------------------------------- the script


@needs_bash
def test_the_script_is_bash() -> None:
    assert run("bash", "-n", str(SCRIPT)).stderr == ""
    assert os.access(SCRIPT, os.X_OK)
    assert run("bash", str(SCRIPT), "--help").stdout.startswith("usage: benchmarks/gpu.sh")
    assert run("bash", str(SCRIPT), "--what").returncode == 2


@needs_bash
def test_the_script_runs_the_tests_of_the_stand_in_on_a_gpu() -> None:
    """The script also selects tests that get the stand-in by a fixture: replay, users' kernels, devices, updates."""
    text = SCRIPT.read_text()
    found = re.search(r"mapfile -t files < <\((.*)\)\n", text), re.search(r"-m '(.*)' \"\$\{files", text)
    assert found[0] is not None and found[1] is not None
    files = run("bash", "-c", found[0][1]).stdout.split()
    done = run(sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "--collect-only", "-m",
               found[1][1], *files, OPREG_TEST_GPU="real")
    tests = collections.Counter(line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line)
    for name in ("symbol/test_replay", "custom/test_users_kernels", "backends/test_devices",
                 "symbol/test_executor_update", "backends/cuda/test_rows"):
        assert tests[f"tests/{name}.py"] >= 8, (name, tests)
    assert not tests["tests/backends/cuda/test_machine.py"]  # tests of the stand-in itself


@needs_bash
def test_the_script_goes_on_when_stages_fail(tmp_path: Path) -> None:
    """With an interpreter that always fails, every stage reports its failure, and there is a summary."""
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho nothing works >&2\nexit 3\n")
    broken.chmod(0o755)
    done = run("bash", str(SCRIPT), "--dry", str(tmp_path / "out"), PYTHON=str(broken))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "summary.md").read_text()
    assert len(re.findall(r"\| exit status 3, \d+ s \| nothing works \|", text)) == 4 and "cupy is not there" in text
    assert "A stand-in for a GPU" in text and "It took" in text
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["log.txt", "summary.md", "tests.txt"]


def test_a_rule_counts_where_an_operator_holds_it() -> None:
    """Rules that one function makes count as one, whatever its arguments; functions of other libraries do not count."""
    one, two = (Op(name, Schema([]), ("data",)) for name in ("_counted_one", "_counted_two"))
    one.infer(like_inputs(0))
    two.infer(like_inputs(0, 0))
    assert counts.held([one, two], "infer") == 1
    two.infer(functools.partial(as_output, outs=[]))
    assert counts.held([one, two], "infer") == 2
    one.kernel()(np.add)
    assert counts.held([one, two], "kernel") == 0
    one.kernel("attached")(as_output)
    one.grad(ZERO)
    assert counts.held([one, two], "kernel") == 1 and counts.held([one, two], "grad") == 0


@pytest.mark.parametrize("order", traced.ORDERS)
def test_a_traced_operator_calls_as_little_of_python_as_its_line(order: str) -> None:
    """A gradient takes no more calls of Python; forward alone looks an operator up by its attributes and inputs."""
    line, *others = traced.measure(order, 1, 1)
    assert [row.way for row in others] == ["a function", "a Prop"]
    for row in others:
        assert row.calls <= line.calls * (1.2 if order != "forward" else 2.2), (row, line)


def test_planted_mistakes_are_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of the check find the other mistakes, and check the other correct operators."""
    page = (ROOT / "docs" / "write_an_operator.md").read_text()
    assert f"puts {len(planted.MORE) + len(planted.MISTAKES)} mistakes into correct operators" in page
    assert f"passes all of {len(planted.CASES)} correct operators" in page
    for name in ("MISTAKES", "CASES"):
        monkeypatch.setattr(planted, name, dict(list(vars(planted)[name].items())[:2]))
    planted.main()
    printed, number = capsys.readouterr().out, len(planted.MORE) + 2
    assert f"\n{number} of {number} mistakes found, by " in printed, printed
    assert "\n0 false alarms on 2 right operators\n" in printed, printed


def test_imported_models_are_timed_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    monkeypatch.setattr(imported, "RUNS", 1)
    symbol = mx.sym.relu(mx.sym.Variable("x0"))
    mx.onnx.export_model(symbol, {}, [(2, 3)], np.float32, str(tmp_path / "small.onnx"))
    x = np.array([[-1, 0, 1], [2, -3, 4]], np.float32)
    np.savez(tmp_path / "small.npz", x0=x, y=np.maximum(x, 0))
    imported.main(["opreg", str(tmp_path)])
    assert re.fullmatch(r"small +\d+\.\d\d ms, numbers differ by 0e\+00\n", capsys.readouterr().out)
