"""Memory of compiled functions: caches are bounded for any arguments, and every object is freed with its last user."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.grad import grad, value_and_grad
from opreg.cells.jit import KINDS, jit
from opreg.cells.parameter import Parameter, assign
from opreg.cells.tensor import Tensor
from opreg.core.registry import ops
from opreg.ndarray import autograd, cpu
from opreg.nn.layers import Dense, ReLU, SequentialCell

# ------------------------------------------------------------------------------------------------------ bounds

FEW = 16


@pytest.fixture
def few_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound of the number of kinds of inputs that is soon exceeded."""
    monkeypatch.setattr("opreg.cells.jit.KINDS", FEW)


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def largest(function: Any) -> int:
    """Bytes of memory of all plans of a compiled function."""
    return function._cache.memories.nbytes


@pytest.mark.filterwarnings("ignore:.*compiled for more than")
@pytest.mark.parametrize("way, order", [("value", "up"), ("value", "down"), ("value", "mixed"), ("gradient", "up")])
def test_plans_of_many_lengths_share_memory(way, order):
    """All lengths together take at most a few times the memory of the longest one."""
    lengths = np.arange(1000, 1000 + KINDS + 8)
    if order == "mixed":
        np.random.default_rng(0).shuffle(lengths)

    def through(f: Callable, value: Any) -> Any:
        return f(value) if way == "value" else grad(lambda a: f(a))(value)

    make = lambda: jit(lambda v: ops.tanh(v) * 2.0)  # noqa: E731
    alone, function = make(), make()
    through(alone, ones(int(lengths[-1])))
    for length in lengths[::-1] if order == "down" else lengths:
        value = ones(int(length))
        expected = through(lambda v: ops.tanh(v) * 2.0, value).asnumpy()
        np.testing.assert_allclose(through(function, value).asnumpy(), expected, rtol=1e-6)
    assert largest(function) <= 4 * largest(alone) and function.cache_size == KINDS


@pytest.mark.usefixtures("few_kinds")
def test_more_kinds_of_inputs_than_are_cached():
    seen: list[int] = []

    @jit
    def function(a: Any, k: float) -> Any:
        seen.append(1)
        return a * k

    def run(numbers: Any) -> None:
        for k in numbers:
            assert function(ones(2), float(k)).asnumpy().tolist() == [float(k)] * 2

    run(range(FEW))
    with pytest.warns(UserWarning, match=f"function was compiled for more than {FEW} kinds of inputs") as told:
        run(range(FEW, 2 * FEW))
    assert len(told) == 1 and function.cache_size == FEW and len(seen) == 2 * FEW
    run(range(FEW, 2 * FEW))  # the plans used last are kept
    assert len(seen) == 2 * FEW


@pytest.mark.usefixtures("few_kinds")
def test_recently_used_kinds_stay_cached():
    seen: list[int] = []

    @jit
    def function(a: Any, k: int) -> Any:
        seen.append(k)
        return a * k

    with pytest.warns(UserWarning, match="more than"):
        run = [function(ones(1), k) for i in range(2 * FEW) for k in (0, i)]
    assert len(run) == 4 * FEW and seen.count(0) == 1


def test_runs_that_wait_for_their_gradients_have_their_own_memory():
    """Runs with other shapes in between do not overwrite this memory."""
    function = jit(lambda a: ops.exp(a) * a)
    plain = lambda a: ops.exp(a) * a  # noqa: E731

    def several(f: Callable) -> Callable:
        def call(a: Any, b: Any) -> Any:
            first, second = f(a), f(b)
            third = f(a * 0.5)
            f(ones(7))
            return first.sum() * second.sum() + third.sum()

        return call

    for sizes in ((3, 4), (4, 3), (3, 3), (9, 2), (3, 4)):
        values = [Tensor(np.linspace(0, 1, n).astype(np.float32)) for n in sizes]
        found, expected = grad(several(function), (0, 1))(*values), grad(several(plain), (0, 1))(*values)
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5)


def test_a_hook_may_call_its_own_cell():
    """The hook calls the Cell with another shape during the first run."""
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = ReLU()

        def construct(self, a: Any) -> Any:
            return self.inner(a * 2.0) * 3.0 + a

    net, found = Net(), list[Any]()
    compiled = jit(net)

    def hook(cell: Any, args: Any, out: Any) -> None:
        if out.shape == (3,):
            found.append(compiled(ones(5)).asnumpy())

    net.inner.register_forward_hook(hook)
    for _ in range(3):
        assert compiled(ones(3)).asnumpy().tolist() == [7.0] * 3
    assert [each.tolist() for each in found] == [[7.0] * 5] * 3


def test_threads_compile_several_kinds_of_inputs():
    import threading

    function, wrong = jit(lambda a: (a * 2.0 + 1.0) * a), list[Any]()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            value = rng.standard_normal(int(rng.integers(1, 6))).astype(np.float32)
            if not np.allclose(function(Tensor(value)).asnumpy(), (value * 2 + 1) * value, rtol=1e-5, atol=1e-6):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ------------------------------------------------------------------------------------------------------ cycles


class Net(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Dense(3, 4), Dense(4, 2)
        self.count = Parameter(Tensor(0.0), name="count", requires_grad=False)

    def construct(self, a: Any) -> Any:
        assign(self.count, self.count + 1.0)
        return self.second(ops.tanh(self.first(a)) * 2.0 + 1.0)


class Branches(Net):
    def construct(self, a: Any) -> Any:
        return super().construct(a) if a.sum() > 0 else self.second(self.first(a))


class Own(Net):
    def __init__(self) -> None:
        super().__init__()
        self.internal_params = [self.first.weight]

    def bprop(self, a: Any, out: Any, dout: Any) -> Any:
        return (a * dout.sum(),), {self.first.weight: self.first.weight * 2.0}


class Left(Net):
    def construct(self, a: Any) -> Any:
        self.last = a
        return super().construct(a)


class Method(Net):
    @jit
    def construct(self, a: Any) -> Any:
        return self.second(self.first(a))


def hooked() -> Cell:
    net = Net()
    for cell in (net, net.first):
        cell.register_forward_pre_hook(lambda cell, args: None)
        cell.register_forward_hook(lambda cell, args, out: out * 2.0)
        cell.register_backward_hook(lambda which, arriving, leaving: None)
        cell.register_backward_pre_hook(lambda which, arriving: None)
    net.first.weight.register_hook(lambda g: g * 2.0)
    return net


def trained(net: Any, *_: Any) -> None:
    weights = net.trainable_params()
    step = value_and_grad(lambda a: net(a).sum(), None, weights)
    step(ones(5, 3))
    jit(step)(ones(5, 3))


def recorded(net: Any, call: Callable) -> None:
    value = ones(5, 3)
    value.attach_grad()
    with autograd.record():
        out = call(value) * 2.0
    out.backward()


def twice(net: Any, call: Callable) -> None:
    grad(grad(lambda a: (call(a) ** 2).sum()))(ones(5, 3))


def in_graph_mode(net: Any, call: Callable) -> None:
    set_context(mode=GRAPH_MODE)
    try:
        net(ones(5, 3))
        net(ones(6, 3))
        grad(net)(ones(5, 3))
    finally:
        set_context(mode=PYNATIVE_MODE)


USES: dict[str, Callable[[Any, Callable], Any]] = {
    "called": lambda net, call: [call(ones(5, 3)), call(-ones(5, 3)), call(ones(2, 3))],
    "gradients": lambda net, call: grad(lambda a: call(a), 0, net.trainable_params())(ones(5, 3)),
    "gradients asked twice": lambda net, call: _asked_twice(call), "trained": trained, "recorded": recorded,
    "twice": twice, "in graph mode": in_graph_mode, "as a symbol": lambda net, call: _bound(net),
    "failing": lambda net, call: _fails(call),
    "evaluated": lambda net, call: [call(ones(5, 3)), net.set_train(), call(ones(5, 3)), net.set_train(False)]}


def _asked_twice(call: Callable) -> None:
    value = ones(5, 3)
    value.attach_grad()
    with autograd.record():
        out = call(value)
    out.backward(retain_graph=True)
    out.backward()


def _fails(call: Callable) -> None:
    with pytest.raises(ValueError, match="shape"):
        call(ones(5, 4))


def _bound(net: Cell) -> None:
    if not isinstance(net, Net):  # a Net assigns
        net.to_symbol(ones(5, 3)).simple_bind(cpu(), input_data=(5, 3)).forward()


NETS: dict[str, Callable[[], Any]] = {
    "plain": lambda: SequentialCell(Dense(3, 4), ReLU(), Dense(4, 2)), "assigns": Net, "branches": Branches,
    "bprop": Own, "hooks": hooked, "left": Left, "method": Method}


@pytest.mark.filterwarnings("ignore:.*runs as Python")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", NETS)
def test_no_cycle_holds_cells_or_arrays(uncollected, make, use):
    """Without the cycle collector a compiled function is freed with its Cell, and the Cell with its last reference."""
    net = NETS[make]()
    compiled = jit(net)
    USES[use](net, compiled)
    watched = [weakref.ref(net), weakref.ref(compiled._cache.memories)]
    watched += [weakref.ref(each._data) for each in net.get_parameters()]
    watched += [weakref.ref(memory) for memory in compiled._cache.memories._memories]
    del net
    alive = [each() is not None for each in watched[:2]]
    assert all(alive)  # the user's compiled function keeps it
    del compiled
    assert not any(each() is not None for each in watched)


@pytest.mark.parametrize("make", ["plain", "assigns", "branches", "bprop", "hooks"])
def test_no_cycle_holds_closure_variables(uncollected, make):
    def use() -> list[Any]:
        net = NETS[make]()
        function = jit(lambda a: net(a).sum())
        step = grad(function, None, net.trainable_params())
        step(ones(5, 3))
        grad(lambda a: function(a))(ones(5, 3))
        return [weakref.ref(net), weakref.ref(function._cache), weakref.ref(step),
                *[weakref.ref(each._data) for each in net.get_parameters()]]

    assert not any(each() is not None for each in use())


def test_a_dropped_kind_frees_its_arrays(uncollected):
    function = jit(lambda a, k: a * k + Tensor([float(k)]))
    function(ones(3), 1)
    (kind,) = function._cache.kinds.values()
    (compiled,) = kind.variants.compiled
    watched = [weakref.ref(compiled), weakref.ref(compiled.traced.trace), weakref.ref(compiled.idle[0].memory)]
    del kind, compiled
    function._cache.kinds.clear()
    assert not any(each() is not None for each in watched)
