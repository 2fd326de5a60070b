"""A compiled function watches the values that it has read: it is traced anew when one changes, and only then."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.grad import grad
from opreg.cells.jit import WASTED, jit
from opreg.cells.parameter import Parameter
from opreg.cells.parameter_container import ParameterContainer
from opreg.cells.tensor import Tensor
from opreg.nn.layers import CellList, Dense, Identity, ReLU, SequentialCell

X = np.array([1.0, -2.0, 3.0], np.float32)


def x() -> Tensor:
    return Tensor(X)


class Scale(Cell):
    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.scale, self.unread = scale, 0
        self.numbers, self.options, self.nested = [1.0, 2.0], {"factor": 2.0}, ([1.0], {"a": [3.0]})
        self.table = Tensor([1.0, 1.0, 1.0])
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")

    def construct(self, a: Any) -> Any:
        return a * self.scale


class Reads(Scale):
    """A Cell that reads all kinds of settings."""

    def construct(self, a: Any) -> Any:
        a = a * self.scale * self.numbers[0] * self.options["factor"] * self.nested[1]["a"][0] + self.table
        if hasattr(self, "later"):
            a = a * self.later
        return a * self.w if self.w.requires_grad else a


scale = 2.0
shift = [1.0]
cell = Scale()
box: Any = [cell]


def multiplied(a: Any) -> Any:
    return a * scale


class UsesGlobal(Cell):
    def construct(self, a: Any) -> Any:
        return a * scale


def _globally(name: str, value: Any) -> None:
    globals()[name] = value


def closure(what: Any) -> tuple[Callable, Callable]:
    """A function that reads a variable from outside, and a function that sets this variable."""
    def set_to(value: Any) -> None:
        nonlocal what
        what = value

    return lambda a: a * what, set_to


#: A function, and another one that changes the state that it reads.
def _cases() -> dict[str, tuple[Any, Callable[[], Any]]]:
    one, two, three = Scale(), Reads(), Scale()
    tree: Any = {"deep": [(one,)]}
    holder = type("Plain", (), {})()
    holder.cell = one
    with_closure, set_to = closure(2.0)
    listed = CellList([Scale(), Scale()])
    chain = SequentialCell(Scale(), Identity())
    cases: dict[str, tuple[Any, Callable[[], Any]]] = {
        "a Cell in a list": (lambda a: a * box[0].scale, lambda: setattr(cell, "scale", 3.0)),
        "another Cell in a list": (lambda a: a * box[0].scale, lambda: box.__setitem__(0, Scale(7.0))),
        "a Cell in a nesting": (lambda a: a * tree["deep"][0][0].scale, lambda: setattr(one, "scale", 3.0)),
        "a Cell on an object": (lambda a: a * holder.cell.scale, lambda: setattr(one, "scale", 3.0)),
        "a Cell from outside": (lambda a: a * one.scale, lambda: setattr(one, "scale", 3.0)),
        "a Cell that is called": (lambda a: box[0](a), lambda: setattr(box[0], "scale", 5.0)),
        "an attribute": (two, lambda: setattr(two, "scale", 5.0)),
        "a list, in place": (two, lambda: two.numbers.__setitem__(0, 4.0)),
        "a list, longer": (two, lambda: two.numbers.insert(0, 4.0)),
        "a dict, in place": (two, lambda: two.options.update(factor=9.0)),
        "a nesting, in place": (two, lambda: two.nested[1]["a"].__setitem__(0, 8.0)),
        "a tensor": (two, lambda: setattr(two, "table", Tensor([5.0, 5.0, 5.0]))),
        "an attribute that comes": (two, lambda: setattr(two, "later", 3.0)),
        "an attribute that goes": (two, lambda: delattr(two, "later")),
        "a Parameter": (two, lambda: setattr(two, "w", Parameter(Tensor([7.0, 7.0, 7.0]), name="v"))),
        "whether a Parameter is trained": (two, lambda: setattr(two.w, "requires_grad", False)),
        "the class of a child": (chain, lambda: chain.__setitem__(1, ReLU())),
        "a child that comes": (lambda a: [a := each(a) for each in listed][-1], lambda: listed.append(Scale(3.0))),
        "a cast": (three, lambda: three.to_float(np.float16)),
        "a hook": (three, lambda: three.register_forward_hook(lambda cell, args, out: out * 2.0)),
        "a global": (lambda a: a * scale, lambda: _globally("scale", 3.0)),
        "a global of a function it calls": (lambda a: multiplied(a), lambda: _globally("scale", 4.0)),
        "a global of a Cell": (UsesGlobal(), lambda: _globally("scale", 5.0)),
        "a global list": (lambda a: a + shift[0], lambda: shift.__setitem__(0, 5.0)),
        "another Cell of a name": (lambda a: a * cell.scale, lambda: _globally("cell", Scale(11.0))),
        "a variable of a function": (with_closure, lambda: set_to(5.0)),
        "its kind": (with_closure, lambda: set_to(5)), "a tensor from outside": (with_closure, lambda: set_to(x())),
    }
    return cases


NAMES = list(_cases())


@pytest.mark.parametrize("mode", ["jit", "gradient", "graph mode"])
@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_seen(name, mode):
    saved = globals()["scale"], globals()["cell"], box[0], shift[0]
    try:
        function, change = _cases()[name]
        eager = grad(function) if mode == "gradient" else function
        made = jit(eager) if mode != "graph mode" or not isinstance(function, Cell) else function
        if name == "an attribute that goes":
            function.later = 2.0

        def compiled(a: Any) -> Any:
            set_context(mode=GRAPH_MODE if mode == "graph mode" else PYNATIVE_MODE)
            try:
                return made(a)
            finally:
                set_context(mode=PYNATIVE_MODE)

        for _ in range(2):
            np.testing.assert_array_equal(compiled(x()).asnumpy(), eager(x()).asnumpy())
        before = function(x()).asnumpy()
        change()
        assert function(x()).asnumpy().tolist() != before.tolist() or name in (
            "its kind", "the class of a child", "a cast"), "nothing changes"
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x()).asnumpy(), eager(x()).asnumpy())
    finally:
        _globally("scale", saved[0])
        _globally("cell", saved[1])
        box[0], shift[0] = saved[2:]
        cell.scale = 2.0


def test_values_that_a_bprop_reads_are_watched():
    """The gradient is taken inside of the compiled function or around it."""
    class Own(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.slope, self.slopes = 2.0, [1.0]

        def construct(self, a: Any) -> Any:
            return a * 1.0

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (dout * self.slope * self.slopes[0],)

    net = Own()
    inner = jit(net)
    ways = [grad(lambda a: inner(a)), jit(grad(net)), grad(net), grad(lambda a: jit(lambda b: net(b))(a))]
    for change in (lambda: None, lambda: setattr(net, "slope", 5.0), lambda: net.slopes.__setitem__(0, 3.0)):
        change()
        for way in ways:
            assert way(x()).asnumpy().tolist() == [net.slope * net.slopes[0]] * 3


def test_a_bprop_that_a_cell_alone_has_is_watched():
    class Own(Cell):
        def construct(self, a: Any) -> Any:
            return a * 1.0

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (dout * 2.0,)

    net = Own()
    inner = jit(net)
    ways = [grad(lambda a: inner(a)), jit(grad(net)), grad(net), grad(lambda a: jit(lambda b: net(b))(a))]
    for change, slope in ((lambda: None, 2.0), (lambda: setattr(net, "bprop", lambda a, out, dout: (dout * 5.0,)), 5.0),
                          (lambda: delattr(net, "bprop"), 2.0)):
        change()
        for way in ways:
            assert way(x()).asnumpy().tolist() == [slope] * 3


def test_a_cell_that_a_bprop_calls_is_watched():
    class Slope(Cell):
        def construct(self, a: Any) -> Any:
            return a * (100.0 if self.training else 2.0)

    class Own(Cell):
        def construct(self, a: Any) -> Any:
            return a * 1.0

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (slope(dout),)

    slope, net = Slope(), Own()
    inner = jit(net)
    ways = [grad(lambda a: inner(a)), jit(grad(net)), grad(net)]

    def all_give(expected: float) -> None:
        for way in ways:
            assert way(x()).asnumpy().tolist() == [expected] * 3

    all_give(2.0)
    slope.set_train()
    all_give(100.0)
    handle = slope.register_forward_hook(lambda cell, inputs, out: out * 3.0)
    all_give(300.0)
    handle.remove()
    slope.construct = lambda a: a * 7.0
    all_give(7.0)


def test_a_setting_that_a_bprop_reads_is_watched():
    class Wide(Cell):
        def construct(self, a: Any) -> Any:
            return a * 2.0

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (Tensor(np.ones((2, 3), np.float32)),)

    net = Wide()
    inner = jit(net)
    way = grad(lambda a: inner(a))
    assert way(x()).asnumpy().tolist() == [2.0, 2.0, 2.0]
    set_context(check_bprop=True)
    try:
        with pytest.raises(ValueError, match="shape"):
            way(x())
    finally:
        set_context(check_bprop=False)
    assert way(x()).asnumpy().tolist() == [2.0, 2.0, 2.0]


@pytest.fixture
def seen() -> list[int]:
    return []


def counted(function: Any, seen: list[int]) -> Any:
    def call(a: Any) -> Any:
        seen.append(1)
        return function(a)

    return call


def test_changes_of_unread_state_cause_no_trace(seen):
    one, other = Scale(), Scale()
    compiled = jit(counted(one, seen))
    compiled(x())
    for change in (lambda: setattr(one, "unread", 5), lambda: setattr(one, "numbers", [9.0]), lambda: one.set_train(),
                   lambda: setattr(other, "scale", 9.0), lambda: one.w.set_data(0.0), lambda: one.numbers.append(3.0),
                   lambda: setattr(one, "scale", 2.0), lambda: other.register_forward_hook(print)):
        change()
        compiled(x())
    assert len(seen) == 1


def test_state_that_changes_back_is_not_traced_again(seen):
    """A network that is trained and evaluated in turn is traced once for each mode."""
    class Mode(Cell):
        def construct(self, a: Any) -> Any:
            return a * 2 if self.training else a

    net = Mode()
    compiled = jit(counted(net, seen))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3 * WASTED):
            for training in (True, False):
                net.set_train(training)
                assert compiled(x()).asnumpy().tolist() == (2 * X if training else X).tolist()
    assert len(seen) == 2


def test_state_that_changes_on_every_call_is_left_to_python(seen):
    net = Scale()
    compiled = jit(counted(net, seen))

    def run() -> None:
        for number in range(3 * WASTED):
            net.scale = float(number)
            assert compiled(x()).asnumpy().tolist() == (number * X).tolist()

    with pytest.warns(UserWarning, match=r"runs as Python: Scale.scale changes from call to call") as told:
        run()
    assert len(told) == 1


class Counts(Cell):
    """A Cell that changes an attribute that it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.mark, self.made = 0, "", False

    def construct(self, a: Any) -> Any:
        self.n += 1
        self.mark = "seen"
        return a * self.n


@pytest.mark.filterwarnings("ignore:.*runs as Python")
def test_state_that_a_function_changes_is_current_in_each_call(seen):
    for run in (jit, lambda net: net):
        net = Counts()
        call = run(net)
        for number in range(1, 2 * WASTED):
            assert call(x()).asnumpy().tolist() == (number * X).tolist() and net.n == number


def test_state_that_a_function_sets_is_set_on_every_run(seen):
    class Marks(Cell):
        def construct(self, a: Any) -> Any:
            seen.append(1)
            self.mark = "seen"
            return a * 2

    net = Marks()
    compiled = jit(net)
    for _ in range(3):
        compiled(x())
    assert len(seen) == 1
    net.mark = "other"
    compiled(x())
    assert net.mark == "seen"


def test_layers_that_complete_themselves_are_traced_once(seen):
    class Lazy(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = None

        def construct(self, a: Any) -> Any:
            seen.append(1)
            if self.inner is None:
                self.inner = Dense(3, 2)
            return self.inner(a.reshape(1, 3))

    net = Lazy()
    compiled = jit(net)
    first = compiled(x()).asnumpy()
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x()).asnumpy(), first)
    assert len(seen) <= 2


def test_side_effects_of_a_function_cause_no_trace(seen):
    """A list to which tracing appends does not count as changed from outside."""
    log: list[str] = []

    def function(a: Any) -> Any:
        seen.append(1)
        log.append("traced")
        return a * 2

    compiled = jit(function)
    for value in (x(), Tensor(X[:2]), x(), Tensor(X[:2]), x()):
        compiled(value)
    assert log == ["traced"] * 2


def test_a_changed_entry_of_a_large_dict_is_seen(seen):
    table = dict.fromkeys(range(1000), 1.0)
    compiled = jit(counted(lambda a: a * table[0], seen))
    for _ in range(3):
        compiled(x())
    assert len(seen) == 1
    table[0] = 2.0
    assert compiled(x()).asnumpy().tolist() == (2 * X).tolist() and len(seen) == 2


def test_nothing_is_recorded_outside_of_a_trace():
    jit(Scale())(x())
    assert "__getattribute__" not in vars(ParameterContainer) and "__getattribute__" not in vars(Cell)
    with pytest.raises(ZeroDivisionError):
        jit(lambda a: a * (1 // 0))(x())
    assert "__getattribute__" not in vars(ParameterContainer)


def test_a_call_from_another_thread_while_something_is_traced():
    import threading

    inside, done = threading.Event(), threading.Event()
    found: list[Any] = []

    def slow(a: Any) -> Any:
        inside.set()
        assert done.wait(30)
        return a * 2

    thread = threading.Thread(target=lambda: found.append(jit(slow)(x()).asnumpy().tolist()))
    thread.start()
    assert inside.wait(30)
    other = Scale(5.0)
    assert other(x()).asnumpy().tolist() == (5 * X).tolist()
    assert jit(other)(x()).asnumpy().tolist() == (5 * X).tolist()
    done.set()
    thread.join()
    assert found == [(2 * X).tolist()]


def test_layers_are_read_by_their_settings(seen):
    """A mode that no layer reads does not matter; a setting, a child or the mode of Dropout does."""
    from opreg.nn.layers import Dropout

    net, dropping = SequentialCell(Dense(3, 3), ReLU()), SequentialCell(Dense(3, 3), Dropout(p=0.5))
    for each, changes in ((net, 0), (dropping, 1)):
        del seen[:]
        compiled = jit(counted(each, seen))
        for training in (False, True, False, True):
            each.set_train(training)
            compiled(Tensor(np.ones((1, 3), np.float32)))
        assert len(seen) == 1 + changes
    del seen[:]
    compiled = jit(counted(net, seen))
    value = Tensor(np.ones((1, 3), np.float32))
    compiled(value)
    net[0].has_bias = net[0].has_bias
    compiled(value)
    assert len(seen) == 1
    net[1] = Identity()
    np.testing.assert_array_equal(compiled(value).asnumpy(), net(value).asnumpy())


def test_positive_and_negative_zero_are_distinguished():
    cell = Scale(0.0)
    function = jit(cell)
    for scale in (0.0, -0.0, 0.0, -0.0):
        cell.scale = scale
        assert np.signbit(function(x()).asnumpy()).tolist() == np.signbit(X * np.float32(scale)).tolist()
