"""The cost of a graph grows in proportion to its size, counted in executed lines of Python, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import opreg as mx

#: Largest ratio of the cost for four times the size: fixed parts make it less than 4, a quadratic part much more.
MOST = 4.1


def lines(run: Callable[[], Any]) -> int:
    """Number of lines that run; each turn of a loop or comprehension counts."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def chain(n: int) -> mx.sym.Symbol:
    y = mx.sym.Variable("x")
    for i in range(n):
        y = mx.sym.relu(y) if i % 2 else y * 0.5
    return y


def weighted(n: int) -> mx.sym.Symbol:
    y = mx.sym.Variable("x")
    for i in range(n):
        y = y * mx.sym.Variable(f"w{i}_weight")
    return mx.sym.MakeLoss(y)


def normalized(n: int) -> mx.sym.Symbol:
    y = mx.sym.Variable("x")
    for i in range(n):
        y = mx.sym.BatchNorm(y, name=f"norm{i}")
    return mx.sym.MakeLoss(y)


def step(net: mx.sym.Symbol) -> Callable[[], Any]:
    """Binds the symbol, and runs forward and backward."""
    def run() -> None:
        executor = net.simple_bind(mx.cpu(), x=(2, 3))
        executor.forward(is_train=True)
        executor.backward(None if net.name.startswith("makeloss") else mx.nd.ones((2, 3)))
    return run


def updated(net: mx.sym.Symbol, optimizer: str) -> Callable[[], Any]:
    """Runs a ``Module`` with initial values of parameters and an update."""
    def run() -> None:
        module = mx.mod.Module(net, data_names=["x"], label_names=[])
        module.bind([("x", (2, 3))])
        module.init_params(mx.init.One())
        module.init_optimizer(optimizer=optimizer)
        module.forward_backward(mx.io.DataBatch([mx.nd.ones((2, 3))]))
        module.update()
        module.get_params()
    return run


CASES = {
    "composing": lambda n: lambda: chain(n),
    "a chain": lambda n: step(chain(n)),
    "parameters": lambda n: step(weighted(n)),
    "states": lambda n: step(normalized(n)),
    "a module with SGD": lambda n: updated(weighted(n), "sgd"),
    "a module with Adam": lambda n: updated(weighted(n), "adam"),
}


@pytest.mark.parametrize("case", CASES)
def test_time_and_memory_grow_in_proportion_to_the_graph(case: str) -> None:
    make = CASES[case]
    for n in (64, 256):
        make(n)()  # work that is done once in a process
    assert lines(make(256)) < MOST * lines(make(64))


def test_a_dict_of_arrays_is_made_once() -> None:
    """Programs read the dict in every round of a loop over names."""
    executor = weighted(64).simple_bind(mx.cpu(), x=(2, 3))
    executor.arg_dict, executor.grad_dict, executor.aux_dict, executor.output_dict  # noqa: B018
    assert lines(lambda: [getattr(executor, f"{what}_dict") for what in ("arg", "grad", "aux", "output")]) < 40
