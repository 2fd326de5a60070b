"""A result of a compiled function or block that is an argument, or a weight, is the caller's own, as in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import opreg as ms
from opreg import Parameter, Tensor, nn, ops
from opreg.cells import tree
from opreg.ndarray import autograd

#: Functions of two tensors, some of whose results are arguments.
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "alone": lambda x, y: x,
    "the second": lambda x, y: y,
    "beside a computed one": lambda x, y: (x, x * y),
    "behind computed ones": lambda x, y: [x + y, {"y": y, "z": x * 2.0}, x],
    "twice": lambda x, y: (x, x),
    "in other order": lambda x, y: (y, x),
    "through functions": lambda x, y: (ms.jit(lambda a: a)(x), (lambda a: a)(y)),
    "copied": lambda x, y: (x.copy(), y + 0.0),
    "computed without change": lambda x, y: (x.reshape((2,)), ops.identity(y)),
    "a branch": lambda x, y: x if x.sum() > 0 else y,
}


class Pair(NamedTuple):
    """Two results."""

    first: Any
    second: Any


FUNCTIONS["a named tuple"] = lambda x, y: Pair(y, x * 3.0)


def places(function: Callable[..., Any], recorded: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """For each result the index of the argument that was returned as it; the arguments after a write into each result;
    and the gradients of the sum of the results."""
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 5.0])
    if recorded:
        for each in (x, y):
            each.attach_grad()
        with autograd.record():
            results = tree.tensors(function(x, y))
            total = sum((each * 2.0).sum() for each in results)
        autograd.backward([total])
        found = [next((i for i, each in enumerate((x, y)) if each is result), None) for result in results]
        return found, [], [each.grad.asnumpy().tolist() for each in (x, y)]
    results = tree.tensors(function(x, y))
    found = [next((i for i, each in enumerate((x, y)) if each is result), None) for result in results]
    for number, result in enumerate(results):
        result[0] = 10.0 + number
    return found, [each.asnumpy().tolist() for each in (x, y)], []


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_returned_argument_is_the_callers_own_tensor(name: str, recorded: bool) -> None:
    function = FUNCTIONS[name]
    compiled = ms.jit(function)
    expected = places(function, recorded)
    for _ in range(2):
        assert places(compiled, recorded) == expected


def test_numpy_arrays_are_tensors_of_their_own() -> None:
    numbers = np.ones(2, np.float32)
    result = ms.jit(lambda x: x)(numbers)
    result[0] = 5.0
    assert numbers.tolist() == [1.0, 1.0]


class _Weighted(ms.gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.w = self.params.get("w", shape=(2,), init="ones")

    def hybrid_forward(self, F: Any, x: Any, y: Any, w: Any) -> Any:
        return x, w, [x + y * w, y]


@pytest.mark.parametrize("way", ["arrays", "recorded", "NumPy's"])
def test_a_block_returns_its_input_itself_when_it_is_hybridized(way: str) -> None:
    """MXNet's results share the memory of the inputs and weights."""
    found = []
    for hybridized in (False, True):
        block = _Weighted()
        block.initialize()
        if hybridized:
            block.hybridize()
        for _ in range(2):
            x, y = ms.nd.array([1.0, 2.0]), ms.nd.array([3.0, 5.0])
            if way == "NumPy's":
                x, y = x.as_np_ndarray(), y.as_np_ndarray()
            if way == "recorded":
                with autograd.record():
                    a, w, (computed, b) = block(x, y)
            else:
                a, w, (computed, b) = block(x, y)
            a[0], b[1], w[0], computed[0] = 7.0, 8.0, 9.0, 6.0
            found.append((a is x, b is y, x.asnumpy().tolist(), y.asnumpy().tolist(), block.w.data().asnumpy().tolist(),
                          computed.asnumpy().tolist()))
    assert found[:2] == found[2:]


class _Given(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([4.0, 4.0]), name="w")

    def construct(self, x: Any) -> Any:
        return self.w, x, x + self.w


def test_a_symbol_has_all_results_as_outputs() -> None:
    symbol = _Given().to_symbol(Tensor([1.0, 2.0]))
    outs = symbol.eval(x=ms.nd.array([1.0, 2.0]), w=ms.nd.array([4.0, 4.0]))
    assert [out.asnumpy().tolist() for out in outs] == [[4.0, 4.0], [1.0, 2.0], [5.0, 6.0]]
