"""Type checkers find current stubs, no error in a typed program, and one error in each wrong program."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import opreg as mx
from opreg.core.value import METHODS, Value
from tests.cuda.compiled import folder
from tests.questions import of_each

ROOT = Path(__file__).parent.parent
PROGRAM = Path(__file__).parent / "typed.py"
REPEATED = "python -m opreg.builtin --stubs"

#: Mistakes, and mypy's codes for them.
WRONG = [
    ("mx.nope", "attr-defined"),
    ("mx.nd.nope(x)", "attr-defined"),
    ("mx.sym.nope(s)", "attr-defined"),
    ("mx.nd.linalg.gem2(x, x)", "attr-defined"),
    ("mx.nn.Dence(1, 2)", "attr-defined"),
    ("mx.ops.rellu(t)", "attr-defined"),
    ("mx.autograd.recrd()", "attr-defined"),
    ("x.men()", "attr-defined"),
    ("s.shape", "attr-defined"),
    ("mx.nd.Convolution(x, x, kernel=(2, 2), num_filter=1, strid=(1, 1))", "call-arg"),
    ("mx.nd.Convolution(x, x, num_filter=1)", "call-arg"),
    ("mx.nd.expand_dims(x)", "call-arg"),
    ("mx.nd.expand_dims(x, axis='first')", "arg-type"),
    ("mx.nd.Convolution(x, x, kernel=(2, 2), num_filter='three')", "arg-type"),
    ("mx.nd.Activation(x, act_type='rellu')", "arg-type"),
    ("mx.nd.exp(s)", "arg-type"),
    ("mx.sym.exp(x)", "arg-type"),
    ("mx.sym.FullyConnected(s, num_hidden=3, nme='fc')", "call-arg"),
    ("x.mean(axs=1)", "call-arg"),
    ("s.sum(axis='all')", "arg-type"),
    ("x + 'text'", "operator"),
    ("s * [1, 2]", "operator"),
    ("t.mean(axs=1)", "call-arg"),
    ("mx.nn.Dense(3)", "call-arg"),
    ("mx.ops.softmax(t, axes=1)", "call-arg"),
    ("mx.ops.softmax(t, axis='first')", "arg-type"),
    ("mx.ops.exp('text')", "arg-type"),
    ("mx.ops.Softmax(axis='first')", "arg-type"),
    ("mx.ops.ReduceSum(True)(t).nope", "attr-defined"),
    ("mx.ops.nonzero(t, as_tuple=True).shape", "attr-defined"),
    ("t.where('text', t)", "arg-type"),
    ("mx.operator.register(3)", "arg-type"),
    ("typed.cube(x, scal=2.0)", "call-overload"),
    ("typed.cube(x, scale='two')", "call-overload"),
    ("typed.cube()", "call-overload"),
    ("typed.cube('text')", "call-overload"),
    ("typed.cube(x, 2.0)", "call-overload"),
    ("typed.cube(t, scal=2.0)", "call-overload"),
    ("typed.both(x)", "call-overload"),
    ("typed.both(x, x, x)", "call-overload"),
    ("text = typed.cube(x)", "assignment"),
    ("text = typed.cube(t)", "assignment"),
    ("text = typed.cube(s)", "assignment"),
    ("text = typed.both(x, x)", "assignment"),
    ("typed.cube(x=x, scal=2.0)", "call-overload"),
    ("typed.cube(x=x, scale='two')", "call-overload"),
    ("typed.cube(x='text')", "call-overload"),
    ("typed.cube(y=x)", "call-overload"),
    ("typed.both(x=x)", "call-overload"),
    ("text = typed.cube(x=x)", "assignment"),
    ("typed.total_of(t, bye=2)", "call-overload"),
    ("typed.fresh(sise=2)", "call-overload"),
    ("typed.fresh()", "call-overload"),
    ("text = typed.fresh(size=2)", "assignment"),
    ("typed.cube.grdd(3)", "attr-defined"),
    ("mx.jit(typed.scaled)(t, facto=2.0)", "call-arg"),
    ("typed.compiled(t, 2.0)", "call-arg"),
    ("text = mx.jit(typed.scaled)(t)", "assignment"),
    ("mx.grad(typed.scaled)(t, facto=2.0)", "call-arg"),
    ("mx.value_and_grad(typed.scaled)(t, factor='two')", "arg-type"),
    ("text = mx.value_and_grad(typed.scaled)(t)[0]", "assignment"),
    ("mx.value_and_grad(typed.scaled, has_aux=True)(t, facto=2.0)", "call-arg"),
    ("mx.jit(mx.value_and_grad(typed.scaled))(t, facto=2.0)", "call-arg"),
    ("text = mx.nd.exp(x)", "assignment"),
    ("number: int = mx.nn.ReLU()(t)", "assignment"),
]


def test_stubs_are_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, *REPEATED.split()[1:], str(tmp_path)], check=True, cwd=ROOT,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.pyi")}
    kept = {path.relative_to(ROOT): path.read_text() for part in ("opreg", "ndarray", "symbol")
            for path in (ROOT / part).rglob("*.pyi")}
    kept = {Path(*path.parts[1:]) if path.parts[0] == "opreg" else path: text for path, text in kept.items()}
    assert sorted(made) == sorted(kept)
    for path, text in made.items():
        assert text == kept[path], f"{path} is not current: {REPEATED}"


def test_typed_program_runs(capsys: Any) -> None:
    runpy.run_path(str(PROGRAM), run_name="__main__")
    assert capsys.readouterr().out.startswith("(2, 2) 1 ")


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_mypy_sees_mistakes_and_nothing_else(tmp_path: Path) -> None:
    public = [f"mx.{name}" for name in dir(mx) if not inspect.ismodule(getattr(mx, name))]
    public += [f"mx.{name}.{word}" for name in dir(mx) if inspect.ismodule(module := getattr(mx, name))
               for word in dir(module)]
    (tmp_path / "public.py").write_text("\n".join(["import opreg as mx", *public]))
    head = ["import opreg as mx", "from tests import typed", "text: str",
            "x, s, t = mx.nd.ones(2), mx.sym.var('s'), mx.Tensor([1.0])"]
    (tmp_path / "wrong.py").write_text("\n".join([*head, *[line for line, _ in WRONG]]))
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--no-error-summary",
         "--hide-error-context", f"--cache-dir={folder() / 'mypy'}", str(PROGRAM), "wrong.py", "public.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)})
    assert not found.stderr, found.stderr
    said = re.findall(r"^(.*?)([\w]+)\.py:(\d+): error: .*\[([\w-]+)\]$", found.stdout, re.M)
    assert not [line for line in said if line[1] != "wrong"], found.stdout
    by_line = {int(number): code for _, name, number, code in said if name == "wrong"}
    expected = {number: code for number, (_, code) in enumerate(WRONG, len(head) + 1)}
    assert by_line == expected, found.stdout


@pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="needs basedpyright")
def test_pyright_sees_the_same_mistakes(tmp_path: Path) -> None:
    """pyright's mode ``standard``, which basedpyright has, too, reports them."""
    head = ["import opreg as mx", "import typed", "text: str",
            "x, s, t = mx.nd.ones(2), mx.sym.var('s'), mx.Tensor([1.0])"]
    (tmp_path / "typed.py").write_text(PROGRAM.read_text())
    (tmp_path / "wrong.py").write_text("\n".join([*head, *[line for line, _ in WRONG]]))
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(
        {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)], "include": ["typed.py", "wrong.py"]}))
    found = subprocess.run([sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
                           capture_output=True, text=True, check=False, cwd=tmp_path)
    said = [(Path(each["file"]).name, each["range"]["start"]["line"])
            for each in json.loads(found.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    assert {name for name, _ in said} == {"wrong.py"}, found.stdout
    assert {number for _, number in said} == {*range(len(head), len(head) + len(WRONG))}, found.stdout


def test_the_constructor_of_tensors_is_typed() -> None:
    """A checker that reads ``__new__`` before ``__init__`` learns nothing from a result of type Any."""
    assert inspect.signature(mx.Tensor.__new__).return_annotation == "Self"


@of_each(METHODS)
def test_methods_have_signatures(name: str) -> None:
    signature = inspect.signature(getattr(mx.nd.ones(1), name))
    assert all(each.kind is not each.VAR_KEYWORD for each in signature.parameters.values())
    assert not getattr(Value, name).__doc__.startswith("The operator ``")


@pytest.mark.parametrize("method, text", [
    (mx.nd.NDArray.mean, "(self, /, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, "),
    (mx.Symbol.expand_dims, "(self, /, axis: int)"),
    (mx.nd.Convolution, "(data, weight, bias=None, *, kernel: tuple[int, ...], stride: tuple[int, ...] = ()"),
    (mx.sym.Convolution, "(data, weight=None, bias=None, *, kernel: tuple[int, ...], "),
    (mx.nd.zeros_like, "(data, *, out=None, name=None)"),
    (mx.nd.random_uniform, "(low: float = 0.0, high: float = 1.0, "),
])
def test_signatures_have_the_required_inputs(method: Any, text: str) -> None:
    assert str(inspect.signature(method)).startswith(text)
