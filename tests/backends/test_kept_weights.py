"""Weights that oneDNN keeps in a layout of its own count as they are when a plan runs, whoever has written them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.backends.onednn.operators import convolution
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from opreg.symbol import compile as compiler

sym = mx.sym
X = np.random.default_rng(0).normal(size=(2, 4, 9, 9)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 8, 4, 3, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Every pass is verified, and the library takes small arrays, too."""
    monkeypatch.setattr(compiler, "CHECK", True)
    monkeypatch.setattr(convolution, "LEAST", 0)


def convolve(x: Any, w: Any) -> Any:
    """A convolution, of symbols or of arrays."""
    return (sym if isinstance(x, sym.Symbol) else mx.nd).Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True)


def _while(x: Any, w: Any) -> Any:
    """Rounds whose state is the weight."""
    return sym.contrib.while_loop(lambda w, i: i < 3, lambda w, i: (convolve(x, w), [w * 2, i + 1]),
                                  [sym.slice_axis(w, axis=0, begin=0, end=1).reshape((8, 4, 3, 3)), sym.zeros((1,))],
                                  max_iterations=3)[0]


#: Symbols in which a body convolves with a weight that is not a variable of the whole.
BODIES = {
    "slices": lambda x, w: sym.contrib.foreach(lambda w, s: (convolve(x, w), s), w, sym.zeros((1,)))[0],
    "state": lambda x, w: sym.contrib.foreach(
        lambda d, s: (convolve(x, s), s + d), w, sym.sum(w, axis=0))[0],
    "computed before": lambda x, w: sym.contrib.foreach(
        lambda d, s, v=sym.sum(w, axis=0): (convolve(d, v), s), x.expand_dims(1), sym.zeros((1,)))[0],
    "state of a condition": _while,
    "branch": lambda x, w: sym.contrib.cond(
        sym.sum(w) < 1e9, lambda v=sym.sum(w, axis=0): convolve(x, v), lambda: convolve(x, sym.zeros((8, 4, 3, 3)))),
    "behind lengths that follow from values": lambda x, w: convolve(
        sym.contrib.boolean_mask(x, sym.ones((2,))), sym.sum(w, axis=0)),
}


@pytest.mark.parametrize("name", BODIES)
def test_of_bodies(name):
    """A body is given other weights in each round, and in each run."""
    net = BODIES[name](sym.Variable("x"), sym.Variable("w"))
    w = mx.nd.array(W)
    args = {"x": mx.nd.array(X), "w": w}
    executor = net.bind(mx.cpu(), args, grad_req="null")
    for factor in (1.0, -2.0, 0.5):
        w[:] = W * np.float32(factor)
        found = executor.forward(is_train=False)[0].asnumpy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolution, "LEAST", 1 << 62)
            want = net.bind(mx.cpu(), args, grad_req="null").forward(is_train=False)[0].asnumpy()
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-3)
