"""The code in CONTRIBUTING.md runs unchanged on the installed back ends, and has as many lines as the text says."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
import opreg.builtin
from opreg.backends.numba import compiler
from opreg.core import registry
from tests.cuda import host
from tests.cuda.device import gpus

pytestmark = pytest.mark.usefixtures("unregistered")

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def block(word: str) -> str:
    """The block of code that contains a word."""
    (found,) = [each for each in BLOCKS if word in each]
    return found


def run(word: str) -> dict[str, Any]:
    """Names that a block of code defines."""
    space: dict[str, Any] = {"__name__": "contributed"}
    exec(compile(block(word), "CONTRIBUTING.md", "exec"), space)
    return space


def lines(text: str) -> int:
    """Number of lines of code."""
    return sum(bool(line.strip()) and not line.startswith(("import ", "from ")) for line in text.splitlines())


@contextlib.contextmanager
def entered(device: str) -> Iterator[mx.Context]:
    """Context in which one back end computes, and no other."""
    if device == "gpu":
        if host.COMPILER is None:
            pytest.skip("needs a C++ compiler")
        with gpus():
            yield mx.Context("gpu", 0)
        return
    if device == "numba" and importlib.util.find_spec("numba") is None:
        pytest.skip("numba is not installed")
    with compiler.use(device):
        yield mx.cpu()


@pytest.mark.parametrize("device, kernel", [("numpy", "ufuncs"), ("numba", "numba"), ("gpu", "cuda")])
@pytest.mark.parametrize("word", ["share", "rms"])
def test_rows_and_reductions_have_kernels_and_gradients_on_three_back_ends(word: str, device: str, kernel: str) -> None:
    """Values and gradients follow from the function of terms alone."""
    run(f"{word}_loop" if word == "share" else f'"{word}"')
    x = np.random.default_rng(0).uniform(0.5, 2.0, (3, 5)).astype(np.float32) * np.float32([1, -1, 1, 1, -1])
    g = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 5) if word == "share" else (3,)).astype(np.float32)
    if word == "share":
        size = np.abs(x).sum(1, keepdims=True)
        expected, gradient = x / size, g / size - np.sign(x) * (g * x).sum(1, keepdims=True) / size ** 2
    else:
        expected = np.sqrt((x ** 2).mean(1))
        gradient = (g / expected)[:, None] * x / 5
    net = registry.get(word)(mx.sym.Variable("x"), axis=1)
    with entered(device) as ctx:
        executor = net.bind(ctx, {"x": mx.nd.array(x, ctx=ctx)}, {"x": mx.nd.zeros((3, 5), ctx=ctx)})
        (out,) = executor.forward(is_train=True)
        executor.backward(mx.nd.array(g, ctx=ctx))
        np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), gradient, rtol=1e-4, atol=1e-6)
        (step,) = [step for step in executor.plan(True).forward.steps if step.node and step.node.op.name == word]
        assert step.kernel == kernel


def test_the_operator_of_the_page_has_a_kernel_and_a_gradient() -> None:
    scale = run("def scale_xp")["scale"]
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = scale(x, factor=3.0)
    y.backward()
    assert y.asnumpy().tolist() == [3, 6] and x.grad.asnumpy().tolist() == [3, 3]
    assert mx.nd._example_scale(x, factor=0.5).asnumpy().tolist() == [0.5, 1]


def test_the_operator_of_a_program_passes_the_check() -> None:
    swish = run("def swish")["swish"]
    mx.operator.check(swish, mx.nd.array([[0.5, -1.0, 2.0]])).raise_if_failed()


def test_the_row_of_a_layer_is_valid() -> None:
    row = eval(block("LayerRow(").split("\n\n")[1], run("LayerRow("))
    assert row.layer == "MatMul(True, False)"


def test_additions_take_as_many_lines_as_the_page_says() -> None:
    table = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|", PAGE, re.MULTILINE))
    most = {"operator of rows, as softmax": ("share_loop", 10), "reduction": ('"rms"', 5),
            "optimizer's update": ("@update(", 8), "pass": ("Program:", 40)}
    assert table.keys() - most.keys() == {"back end that plans and runs"}
    for what, (word, limit) in most.items():
        assert lines(block(word)) == int(table[what]) <= limit, what


def test_every_block_is_run_by_a_test() -> None:
    words = ("def scale_xp", "share_loop", '"rms"', "def swish", "LayerRow(", "@update(", "Program:")
    assert sorted(map(block, words)) == sorted(BLOCKS)
