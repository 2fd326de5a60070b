"""Random trees of Cells give the same eagerly, compiled, in GRAPH_MODE, recorded, and as a Symbol; nothing is
leaked."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.grad import grad, no_grad, value_and_grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter, assign
from opreg.cells.state import STATE
from opreg.cells.tensor import Tensor
from opreg.core.mode import MODE
from opreg.core.registry import ops
from opreg.ndarray import array, autograd, cpu
from tests.running import examples

N = 3
pytestmark = pytest.mark.filterwarnings("ignore:.*runs as Python")  # values computed after hooks
RULES = settings(max_examples=examples(40), deadline=None, derandomize=True)
UNARY: dict[str, Callable[[Any], Any]] = {
    "double": lambda a: a * 2.0, "tanh": ops.tanh, "square": lambda a: a * a * 0.25,
    "shifted": lambda a: 1.0 - a, "sigmoid": ops.sigmoid, "flip": lambda a: a.T, "sum": lambda a: a.sum() + a * 0.5,
    "in place": lambda a: _changed(a)}
#: Properties that read values.
ASKING: dict[str, Callable[[Any], Any]] = {
    "branch": lambda a: a * 0.5 if a[0, 0] > 0.1 else a + 0.25, "row": lambda a: a + a[int(a[1, 1] > 0.1)],
    "rounds": lambda a: _rounds(a), "number": lambda a: a * (1.0 + round(a[2, 2].item()))}
UNARY.update(ASKING)


def _changed(a: Any) -> Any:
    b = a * 1.0
    b[0] = a[1] * 2.0
    return b


def _rounds(a: Any) -> Any:
    count = 0
    while count < 3 and a[0, 1] + a[1, 0] < 1.1:
        a, count = a * 0.5 + 1.0, count + 1
    return a


# ----------------------------------------------------------------------------------------------------- the trees


class Node(Cell):
    """A Cell whose hooks record that they were called."""

    log: list[Any]


class Unary(Node):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = UNARY[name]

    def construct(self, a: Any) -> Any:
        return self.function(a)


class Weighted(Node):
    def __init__(self, weight: Parameter, how: str) -> None:
        super().__init__()
        self.w, self.how = weight, how

    def construct(self, a: Any) -> Any:
        return ops.dot(a, self.w) * 0.5 if self.how == "dot" else a * self.w


class Own(Node):
    """A Cell with a right bprop, which also computes the gradient of one internal weight."""

    def __init__(self, weight: Parameter) -> None:
        super().__init__()
        self.w = weight
        self.internal_params = [self.w]

    def construct(self, a: Any) -> Any:
        return a * self.w * a

    def bprop(self, a: Any, out: Any, dout: Any) -> Any:
        return (dout * self.w * a * 2.0,), {self.w: dout * a * a}


class Counting(Node):
    """A Cell that counts its calls, and keeps a moving average of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.count = Parameter(Tensor(0.0), name="count", requires_grad=False)
        self.average = Parameter(Tensor(np.zeros((N, N), np.float32)), name="average", requires_grad=False)

    def construct(self, a: Any) -> Any:
        assign(self.count, self.count + 1.0)
        self.average = self.average * 0.5 + a * 0.5
        return a * self.count * 0.5 + self.average * 0.1


class Chain(Node):
    def __init__(self, first: Cell, second: Cell) -> None:
        super().__init__()
        self.first, self.second = first, second

    def construct(self, a: Any) -> Any:
        return self.second(self.first(a))


class Fork(Node):
    """A Cell with two children; a third Cell joins their outputs, which are nested."""

    def __init__(self, left: Cell, right: Cell) -> None:
        super().__init__()
        self.left, self.right, self.join = left, right, Join()

    def construct(self, a: Any) -> Any:
        return self.join({"a": self.left(a), "rest": [(self.right(a), 2.0)]})


class Blocked(Node):
    """A Cell that stops the gradient of its child."""

    def __init__(self, child: Cell) -> None:
        super().__init__()
        self.child = child

    def construct(self, a: Any) -> Any:
        with no_grad():
            held = self.child(a)
        return held + a * 0.5


class Keyword(Node):
    """A Cell that calls its child by keyword."""

    def __init__(self, child: Cell) -> None:
        super().__init__()
        self.child = child

    def construct(self, a: Any) -> Any:
        return self.child(a=a) * 0.5


class Join(Node):
    def construct(self, nested: Any) -> Any:
        (value, factor), = nested["rest"]
        return nested["a"] * 0.5 + value / factor


LEAVES = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY))),
    st.tuples(st.just("weighted"), st.sampled_from(["dot", "times"]), st.integers(0, 1)),
    st.tuples(st.just("own"), st.integers(0, 1)), st.tuples(st.just("counting")))
TREES = st.recursive(LEAVES, lambda parts: st.one_of(
    st.tuples(st.sampled_from(["chain", "fork", "twice"]), parts, parts),
    st.tuples(st.sampled_from(["blocked", "keyword"]), parts)), max_leaves=5)
KINDS = ("forward_pre", "forward", "backward_pre", "backward")
HOOKS = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(KINDS), st.sampled_from(["look", "scale", "spoil"])),
                 max_size=4)


def weights() -> list[Parameter]:
    rng = np.random.default_rng(3)
    return [Parameter(Tensor(rng.standard_normal((N, N)).astype(np.float32) * 0.5), name=f"shared{i}")
            for i in range(2)]


def build(description: Any, shared: list[Parameter], log: list[Any]) -> Node:
    """Builds the tree of a description, with these parameters."""
    kind, *parts = description
    if kind == "unary":
        cell: Node = Unary(*parts)
    elif kind == "weighted":
        cell = Weighted(shared[parts[1]], parts[0])
    elif kind == "own":
        cell = Own(shared[parts[0]])
    elif kind == "counting":
        cell = Counting()
    elif kind in ("blocked", "keyword"):
        cell = (Blocked if kind == "blocked" else Keyword)(build(parts[0], shared, log))
    else:
        first, second = (build(part, shared, log) for part in parts)
        cell = Fork(first, second) if kind == "fork" else Chain(first, first if kind == "twice" else second)
    for _, each in cell.cells_and_names():
        each.__dict__["log"] = log
    return cell


def hang(net: Cell, hooks: list[tuple[int, str, str]]) -> list[Any]:
    """Registers hooks on a Cell somewhere in a tree."""
    cells = [cell for _, cell in net.cells_and_names() if not isinstance(cell, Join)]
    handles = []
    for number, (place, kind, action) in enumerate(hooks):
        cell = cells[place % len(cells)]

        def hook(which: Any, *groups: Any, number: int = number, kind: str = kind, action: str = action) -> Any:
            values = groups[-1] if kind in ("backward", "forward", "backward_pre") else groups[0]
            values = values if isinstance(values, tuple) else (values,)
            net.log.append((number, kind, [None if v is None else v.asnumpy().copy() for v in values]))
            if action == "scale":
                return tuple(None if v is None else v * 2.0 for v in values) if kind != "forward" else values[0] * 2.0
            if action == "spoil" and kind.startswith("backward") and values and values[0] is not None:
                values[0][0] = 100.0
            return None

        handles.append(getattr(cell, f"register_{kind}_hook")(hook))
    return handles


def inputs() -> Tensor:
    return Tensor(np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 0.75]], np.float32))


# ---------------------------------------------------------------------------------------------------- the questions


def eager(function: Callable) -> Callable:
    return function


def in_graph_mode(function: Callable) -> Callable:
    def call(*args: Any) -> Any:
        set_context(mode=GRAPH_MODE)
        try:
            return function(*args)
        finally:
            set_context(mode=PYNATIVE_MODE)

    return call


def numbers(tree: Any) -> Any:
    if isinstance(tree, (tuple, list)):
        return [numbers(each) for each in tree]
    return tree.asnumpy().copy()


def close(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            close(a, b)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    else:
        assert found == expected


def answers(description: Any, hooks: Any, run: Callable[[Any], Any], order: int) -> Any:
    """Outputs, gradients, values of parameters and calls of hooks in three calls, between which hooks change."""
    log: list[Any] = []
    shared = weights()
    net = build(description, shared, log)
    handles = hang(net, hooks)
    forward, backward = run(lambda a: net(a)), _gradients(net, shared, order, run)
    found = []
    for step in range(3):
        value = inputs() * (-1.0) ** step
        found.append((numbers(forward(value)), numbers(backward(value)), numbers(list(net.get_parameters()))))
        if step == 0:
            for handle in handles[:1]:
                handle.remove()
            shared[0].set_data(shared[0] * 0.5)
        elif step == 1:
            shared[1].requires_grad = False
            for _, cell in net.cells_and_names():
                if isinstance(cell, Unary):
                    cell.function = UNARY["double"]
    left_behind()
    return found, log


def _gradients(net: Cell, trained: list[Parameter], order: int, run: Callable[[Any], Any]) -> Callable:
    if order == 1:
        return run(value_and_grad(lambda a: (net(a) * a).sum(), 0, trained))
    return run(grad(lambda a: grad(lambda b: (net(b) * b).sum())(a).sum(), 0, trained))


def left_behind() -> None:
    assert (STATE.trace, STATE.inside, STATE.nested, STATE.runs, STATE.blocked) == (None, False, False, None, 0)
    assert (MODE.recording, MODE.training) == (False, False)


def agree(found: Any, expected: Any) -> None:
    assert [entry[:2] for entry in found[1]] == [entry[:2] for entry in expected[1]]
    close(found, expected)


@pytest.mark.parametrize("order", [1, 2])
@RULES
@given(description=TREES, hooks=HOOKS, run=st.sampled_from([jit, in_graph_mode]))
def test_compiled_cells_equal_eager_ones(order, description, hooks, run):
    agree(answers(description, hooks, run, order), answers(description, hooks, eager, order))


@RULES
@given(description=TREES, hooks=HOOKS)
def test_a_compiled_cell_is_recorded_as_an_eager_one(description, hooks):
    def recorded(compiled: bool) -> Any:
        log: list[Any] = []
        shared = weights()
        net = build(description, shared, log)
        hang(net, hooks)
        function = jit(lambda a: net(a)) if compiled else lambda a: net(a)
        value = inputs()
        value.attach_grad()
        found = []
        for weight in shared:
            weight.attach_grad()
        for _ in range(2):
            with autograd.record():
                out = function(value * 1.5)
                out = function(out * 0.5) + out
            out.backward()
            found.append((numbers(out), numbers(value.grad), numbers([w.grad for w in shared]),
                          numbers(list(net.get_parameters()))))
        left_behind()
        return found, log

    agree(recorded(True), recorded(False))


@RULES
@given(description=TREES.filter(lambda tree: not any(word in str(tree) for word in ("counting", *ASKING))))
def test_a_cell_as_a_symbol_gives_the_same(description):
    shared = weights()
    net = build(description, shared, [])
    value = inputs()
    expected, (by_input, by_weight) = value_and_grad(lambda a: net(a), 0, net.trainable_params())(value)
    symbol = net.to_symbol(value)
    executor = symbol.simple_bind(cpu(), a=(N, N))
    executor.arg_dict["a"][:] = value
    for name, weight in net.parameters_dict().items():
        executor.arg_dict[name][:] = weight
    (out,) = executor.forward(is_train=True)
    close(out.asnumpy(), numbers(expected))
    executor.backward(array(np.ones((N, N))))
    close(executor.grad_dict["a"].asnumpy(), numbers(by_input))
    for name, g in zip(net.parameters_dict(), by_weight):
        close(executor.grad_dict[name].asnumpy(), numbers(g))


class Oops(Exception):
    """An error that tests raise on purpose."""


@settings(RULES, max_examples=examples(60))
@given(run=st.sampled_from([eager, jit, in_graph_mode]), description=TREES, place=st.integers(0, 8),
       kind=st.sampled_from([*KINDS, "construct", "bprop"]), order=st.integers(1, 2))
def test_an_exception_anywhere_leaves_no_state_behind(run, description, place, kind, order):
    def of(spoiled: bool) -> Any:
        shared = weights()
        net = build(description, shared, [])
        function = _gradients(net, shared, order, run)
        if spoiled:
            with _spoiled(net, place, kind) as called:
                try:
                    function(inputs())
                except Oops:
                    assert called
                else:
                    assert not called
            left_behind()
            for cell in (each for _, each in net.cells_and_names() if isinstance(each, Counting)):
                cell.count.set_data(0.0)
                cell.average.set_data(0.0)
        return numbers(function(inputs())), numbers(list(net.get_parameters()))

    close(of(True), of(False))


class _spoiled:
    """A tree in which a hook, ``construct`` or ``bprop`` raises."""

    def __init__(self, net: Cell, place: int, kind: str) -> None:
        cells = [cell for _, cell in net.cells_and_names() if kind != "bprop" or isinstance(cell, Own)]
        self.cell = cells[place % len(cells)] if cells else None
        self.kind, self.called, self.handle = kind, list[int](), None

    def __enter__(self) -> list[int]:
        def fail(*_: Any, **__: Any) -> None:
            self.called.append(1)
            raise Oops

        if self.cell is not None and self.kind in KINDS:
            self.handle = getattr(self.cell, f"register_{self.kind}_hook")(fail)
        elif self.cell is not None:
            setattr(self.cell, self.kind, fail)
        return self.called

    def __exit__(self, *_: Any) -> None:
        if self.handle is not None:
            self.handle.remove()
        elif self.cell is not None:
            delattr(self.cell, self.kind)


@RULES
@given(description=TREES)
def test_copies_are_independent(description):
    shared = weights()
    net = build(description, shared, [])
    compiled = net.compile(inputs())
    before = copy.deepcopy(net)
    expected = numbers(before(inputs()))
    other = copy.deepcopy(net)
    close(numbers(other.compile(inputs())(inputs())), expected)
    for parameter in other.get_parameters():
        parameter.set_data(0.0)
    close(numbers(compiled(inputs())), expected)


# -------------------------------------------------------------------------------------------------------- memory


def _steps(run: Callable[[Any], Any]) -> Iterator[None]:
    """Training steps between which hooks are added and removed."""
    shared = weights()
    net = build(("chain", ("fork", ("weighted", "dot", 0), ("own", 1)), ("counting",)), shared, [])
    function = run(grad(lambda a: net(a).sum(), 0, shared))
    while True:
        with net.register_forward_hook(lambda *_: None), net.register_backward_hook(lambda *_: None):
            value = inputs()
            value.register_hook(lambda g: None)
            function(value)
        handle = shared[0].register_hook(lambda g: g * 2)
        function(inputs())
        handle.remove()
        yield


@pytest.mark.filterwarnings("ignore:.*runs as Python")  # other hooks on every call
@pytest.mark.parametrize("run", [eager, jit], ids=["eager", "compiled"])
def test_hooks_that_are_added_and_removed_leave_nothing_behind(run):
    steps, counts = _steps(run), []
    for count in (10, 100):
        for _ in range(count):
            next(steps)
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[1] - counts[0] < 50


def test_constants_are_not_compiled_without_end():
    function = jit(lambda a, k: a * k)
    for _ in range(50):
        function(inputs(), np.float32(0.5))
    assert function.cache_size == 1
