"""The plugin for pytest: a test for each operator that a module registers."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path

import pytest

MODULE = """
    import numpy as np
    import opreg as mx

    @mx.operator.define(name="plugged_gate")
    def gate(x, *, beta: float = 1.0):
        return x * mx.nd.sigmoid(beta * x)

    @gate.grad
    def gate_grad(g, ins, outs, *, beta):
        s = mx.nd.sigmoid(beta * ins[0])
        return g * (s + beta * outs[0] * (1 - s))

    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * FACTOR)

    FACTOR = 2

    @mx.operator.register("plugged_twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Twice()

    @mx.operator.define(name="plugged_needs", types="T,int32->T")
    def needs(x, ids, *, depth: int):
        return x * depth

    @needs.grad
    def needs_grad(g, ins, outs, *, depth):
        return g * depth, None

    opreg_inputs = {"plugged_needs": (np.ones((2, 3)), [0, 1], {"depth": 3})}
"""


def run(folder: Path, *options: str, module: str = MODULE, others: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs pytest with this plugin alone, or with ``others`` that are installed, too."""
    (folder / "plugged.py").write_text(textwrap.dedent(module))
    plugins = ["-n0"] if others else ["-p", "opreg.pytest_plugin"]
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugins, "-q", "-rs", "--rootdir",
                           str(folder), *options], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, **({} if others else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})})


def test_the_plugin_is_an_entry_point() -> None:
    (found,) = [each for each in entry_points(group="pytest11") if each.name == "opreg"]
    assert found.value == "opreg.pytest_plugin"


@pytest.mark.parametrize("what", ["plugged", "plugged.py"])
def test_each_operator_of_a_module_is_a_test(tmp_path: Path, what: str) -> None:
    found = run(tmp_path, "--opreg-check", what, others=what == "plugged")
    assert found.returncode == 0 and "3 passed" in found.stdout, found.stdout + found.stderr


def test_operator_tests_are_selected_like_others(tmp_path: Path) -> None:
    listed = run(tmp_path, "--opreg-check", "plugged", "--collect-only", "-k", "gate or twice").stdout
    assert [line for line in listed.splitlines() if "::" in line] == ["plugged::plugged_gate", "plugged::plugged_twice"]


def test_failures_are_shown_as_a_report(tmp_path: Path) -> None:
    found = run(tmp_path, "--opreg-check", "plugged", module=MODULE.replace("FACTOR = 2", "FACTOR = 3"))
    assert found.returncode == 1 and "1 failed, 2 passed" in found.stdout
    assert "failed   gradient" in found.stdout and "multiply it by 0.6667" in found.stdout
    assert "Traceback" not in found.stdout


def test_inputs_that_cannot_be_guessed_are_skipped_with_the_line_to_write(tmp_path: Path) -> None:
    found = run(tmp_path, "--opreg-check", "plugged", module=MODULE.replace("opreg_inputs", "others"))
    assert found.returncode == 0 and "2 passed, 1 skipped" in found.stdout, found.stdout
    assert "opreg_inputs = {'plugged_needs': (x, ids, {'depth': …})}" in found.stdout


@pytest.mark.parametrize("what, module, words", [
    ("pluged", MODULE, "--opreg-check pluged: there is no module 'pluged'"),
    ("plugged", "import opreg", "--opreg-check plugged: it registers no operators"),
    ("plugged", MODULE.replace("plugged_needs\": (", "plugged_need\": ("),
     "opreg_inputs names 'plugged_need', which is not registered there. Did you mean 'plugged_needs'"),
])
def test_impossible_arguments_are_refused(tmp_path: Path, what: str, module: str, words: str) -> None:
    found = run(tmp_path, "--opreg-check", what, module=module)
    assert found.returncode == 4 and words in found.stderr + found.stdout, found.stdout + found.stderr


def test_the_plugin_loads_nothing_by_default(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(textwrap.dedent("""
        import sys

        def test_one():
            assert "opreg.core.op" not in sys.modules
            assert "numpy" not in sys.modules
            import opreg.core.op
            assert "rewrite" not in type(opreg.core.op.__loader__).__module__
        """))
    found = run(tmp_path, "-p", "no:hypothesispytest", "test_one.py", others=True)
    assert found.returncode == 0, found.stdout
