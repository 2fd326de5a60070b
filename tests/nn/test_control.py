"""Branches and loops on values in compiled functions: they agree with eager calls, and are traced once for each way."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg
from opreg import random
from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, set_context
from opreg.cells.grad import grad, no_grad, value_and_grad
from opreg.cells.jacobian import jvp, vjp
from opreg.cells.jit import VARIANTS, jit
from opreg.cells.parameter import Parameter, assign
from opreg.cells.tensor import Tensor
from opreg.cells.tensor_hooks import HookBackward
from opreg.core.registry import ops
from opreg.core.tracing import TraceError
from opreg.custom import operator as custom
from opreg.ndarray import autograd
from opreg.nn import ops as functions
from opreg.nn.layers import BatchNorm1d, CellList, Dropout, ReLU, Sigmoid, Tanh
from tests.questions import of_each

VALUES = ([1.0, -2.0, 3.0], [-1.0, 2.0, 0.5], [1.0, -2.0, 3.0], [4.0, 4.0, -9.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0])


def branch(x: Any) -> Any:
    if x[0] > 0:
        return x * x
    return x * 3.0 - x[1]


def branches(x: Any) -> Any:
    y = x * 2.0
    if x.sum() > 0:
        y = y * x
        if y[1] > 0:
            y = y + 1.0
        elif y[2] == 0:
            y = y - 1.0
    return y if x[2] > 0 and not x[0] < 0 else -y


def loop(x: Any) -> Any:
    i, y = 0, x
    while (y * y).sum() < 50.0 and i < 6:
        y, i = y * 1.5 + x, i + 1
    return y


def counted(x: Any) -> Any:
    i = Tensor(0)
    total = x * 0.0
    while i < 4:
        i = i + 1
        if i == 2:
            continue
        if total.sum() > 20.0:
            break
        total = total + x * i
    return total


def nested(x: Any) -> Any:
    y = x
    for i in range(int(x[0] > 0) + 1):
        for _ in range(i + int(abs(x[1]))):
            y = y * x + i
    return y


def indexed(x: Any) -> Any:
    i = x.argmax()
    return x[int(i)] * x + [1.0, 2.0, 3.0][i] * x[:int(i) + 1].sum()


def numbers(x: Any) -> Any:
    return x * float(x[0]) + x * x.asnumpy().max() + x.sum().item() * x[1] + x.tolist()[2]


def checked(x: Any) -> Any:
    assert x[0] < 100.0
    if not bool(x.any()):
        return x + 1.0
    return (x * x).sum()


def in_place(x: Any) -> Any:
    y = x * 1.0
    i = int(x[0] > 0)
    y[i] = 7.0
    if y.sum() > 6.0:
        y[1:] = x[:2] * 2.0
    return y


def masked(x: Any) -> Any:
    return opreg.ops.masked_select(x * x, x > 0).sum() + x[x > 0].sum()


def inner_gradient(x: Any) -> Any:
    g = grad(branch)(x)
    return g * x if g.sum() > 2.0 else g - x


FUNCTIONS: list[Callable] = [branch, branches, loop, counted, nested, indexed, numbers, checked, in_place, masked,
                             inner_gradient]


def in_graph_mode(function: Callable) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        set_context(mode=GRAPH_MODE)
        try:
            return function(*args, **kwargs)
        finally:
            set_context(mode=PYNATIVE_MODE)

    return call


class Of(Cell):
    """A Cell that computes a function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Any) -> Any:
        return self.function(x)


def through(function: Callable) -> Callable:
    """The gradient of an eager call on the tape."""
    def call(x: Any) -> Any:
        x.attach_grad()
        with autograd.record():
            y = function(x) * 1.0
        y.backward()
        return y, x.grad

    return call


def called(function: Callable) -> Callable:
    """The gradient of a function that calls the given one."""
    return grad(lambda x: function(x) * 1.0)


def back(function: Callable) -> Callable:
    return lambda x: vjp(function, x)[1](function(x))


def along(function: Callable) -> Callable:
    return lambda x: jvp(function, x, x)[1]


#: Ways to call a function, each eagerly and compiled.
WAYS: dict[str, tuple[Callable, Callable]] = {
    "value": (lambda f: f, jit), "cell": (lambda f: f, lambda f: Of(f).compile(Tensor(VALUES[0]))),
    "graph mode": (lambda f: f, lambda f: in_graph_mode(Of(f))),
    "jit in jit": (lambda f: f, lambda f: jit(lambda x: jit(f)(x))),
    "gradient inside": (grad, lambda f: jit(grad(f))), "gradient around": (grad, lambda f: grad(jit(f))),
    "gradient of a call": (called, lambda f: called(jit(f))),
    "gradient in graph mode": (grad, lambda f: in_graph_mode(grad(Of(f)))),
    "value and gradient": (value_and_grad, lambda f: jit(value_and_grad(f))),
    "tape": (through, lambda f: through(jit(f))),
    "second order": (lambda f: grad(grad(f)), lambda f: jit(grad(grad(f)))),
    "second order around": (lambda f: grad(grad(f)), lambda f: grad(called(jit(f)))),
    "vjp": (back, lambda f: jit(back(f))), "jvp": (along, lambda f: jit(along(f))),
    "no_grad": (lambda f: no_grad()(f), lambda f: no_grad()(jit(f)))}


def plain(value: Any) -> Any:
    return [plain(each) for each in value] if isinstance(value, (tuple, list)) else value.asnumpy()


def flat(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in flat(each)] if isinstance(value, list) else [value]


@of_each([(function, way) for turn, function in enumerate(FUNCTIONS) for way in list(WAYS)[turn % 2::2]],
         by=lambda case: case[0].__name__)
def test_branches_and_loops_equal_eager_code(function, way):
    if function is inner_gradient and way == "no_grad":
        pytest.skip("eagerly refused")
    eager, compiled = (make(function) for make in WAYS[way])
    for value in VALUES:
        found, expected = plain([compiled(Tensor(value))]), plain([eager(Tensor(value))])
        for a, b in zip(*map(flat, (found, expected)), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_each_path_is_traced_once(function):
    seen: list[int] = []

    def watched(x: Any) -> Any:
        seen.append(1)
        return function(x)

    compiled = jit(watched)
    for _ in range(2):
        count = len(seen)
        for value in VALUES:
            compiled(Tensor(value))
    assert len(seen) == count and compiled.cache_size == 1


@pytest.mark.parametrize("function", [
    lambda x: x[x > 0], lambda x: opreg.ops.masked_select(x * x, x > 0), lambda x: x[x.sum(axis=1) > 0] * 2,
    lambda x: x[Tensor([True, False, True, True])[:3]]])
@pytest.mark.parametrize("ask", [lambda f: f, lambda f: value_and_grad(lambda x: (f(x) ** 2).sum())])
@pytest.mark.filterwarnings("error:.*runs as Python")
def test_the_count_of_a_mask_is_read(function: Any, ask: Any) -> None:
    """Masks with the same count of true elements share a plan."""
    rows = [np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32) for seed in range(40)]
    compiled = jit(ask(function))
    for numbers in (*rows, -abs(rows[0]), abs(rows[1])):
        x = Tensor(numbers)
        for found, expected in zip(flat(plain([compiled(x)])), flat(plain([ask(function)(x)])), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert compiled.explain().count("_guard") <= 13 * 2


def test_values_of_parameters_may_be_read():
    class Switch(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.on = Parameter(Tensor(1.0), name="on", requires_grad=False)
            self.a, self.b = Parameter(Tensor([1.0]), name="a"), Parameter(Tensor([2.0]), name="b")

        def construct(self, x: Any) -> Any:
            if self.on:
                return x * float(self.a)
            return x * 10.0 if self.a < self.b else x * self.b.asnumpy()[0]

    for run in (lambda f: f, jit, in_graph_mode):
        net = Switch()
        call = run(net)
        assert call(Tensor([2.0])).asnumpy() == [2.0]
        net.a.set_data(Tensor([5.0]))
        assert call(Tensor([2.0])).asnumpy() == [10.0]
        net.on.set_data(0.0)
        assert call(Tensor([2.0])).asnumpy() == [4.0]
        assign(net.b, Tensor([9.0]))
        assert call(Tensor([2.0])).asnumpy() == [20.0]


def test_assigned_values_are_stored_once():
    """An assigned value is stored once, also if a later guard fails and the run is repeated, whatever memory the
    parameter has."""
    class Counter(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = Parameter(Tensor(0.0), name="count", requires_grad=False)
            self.w = Parameter(Tensor([1.0, 1.0]), name="w")

        def construct(self, x: Any) -> Any:
            assign(self.count, self.count + 1.0)
            y = x * self.w
            if self.count > 2:
                assign(self.w, self.w * 2.0)
                if y.sum() > 10:
                    self.count = self.count * 0.0
            return y

    def run(make: Callable) -> list[Any]:
        net = Counter()
        call, step = make(net), make(lambda x: grad(net, 0, [net.w])(x))
        found = []
        for i in range(9):
            value = Tensor([1.0, float(i % 3)])
            found += [plain(call(value)), plain(step(value)), net.count.asnumpy().copy(), net.w.asnumpy().copy()]
        return found

    for compiled in (jit, in_graph_mode):
        np.testing.assert_equal(run(compiled), run(lambda f: f))


def test_random_numbers_before_a_branch_are_drawn_once():
    def function(x: Any) -> Any:
        noise = opreg.ops.uniform((3,), Tensor(0.0), Tensor(1.0))
        unused = opreg.ops.uniform((2,), Tensor(0.0), Tensor(1.0))  # noqa: F841
        y = x + noise
        if noise[0] > 0.5:
            y = y + opreg.ops.uniform((3,), Tensor(5.0), Tensor(6.0))
        return y, noise[0] > 0.5

    random.seed(3)
    expected = [plain(function(Tensor(VALUES[0]))) for _ in range(8)]
    assert len({bool(answer) for _, answer in expected}) == 2
    compiled = jit(function)
    for _ in range(2):  # the second time nothing is traced
        random.seed(3)
        for y, answer in expected:
            found, branch = plain(compiled(Tensor(VALUES[0])))
            np.testing.assert_allclose(found, y, rtol=1e-6)
            assert branch == answer


def test_states_move_once_before_a_branch():
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.bn, self.drop = BatchNorm1d(3), Dropout(p=0.5)

        def construct(self, x: Any) -> Any:
            y = self.drop(self.bn(x))
            return y * 2.0 if y.sum() > 0 else y - 1.0

    def run(make: Callable) -> list[Any]:
        random.seed(5)
        net = Net().set_train()
        call, found = make(net), []
        for i in range(6):
            value = Tensor(np.arange(12.0).reshape(4, 3) * (-1) ** i).astype("float32")
            found += [call(value).asnumpy(), net.bn.moving_mean.asnumpy().copy()]
        return found

    for a, b in zip(run(jit), run(lambda f: f)):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_an_error_in_a_branch_keeps_its_type_and_leaves_no_state():
    w = Parameter(Tensor([1.0]), name="w")

    def function(x: Any) -> Any:
        assign(w, w + 1.0)
        assert x[0] < 5, "too large"
        if x[0] < 0:
            raise KeyError("negative")
        return x * w

    compiled = jit(function)
    for value, kind in ((1.0, None), (9.0, AssertionError), (2.0, None), (-1.0, KeyError), (9.0, AssertionError)):
        before = w.asnumpy().copy()
        if kind is None:
            assert compiled(Tensor([value])).asnumpy() == [value * (before[0] + 1)]
        else:
            with pytest.raises(kind):
                compiled(Tensor([value]))
            assert w.asnumpy() == before  # stored when the function has run
    assert isinstance(Tensor([1.0]) * 2, Tensor)


def test_nan_and_negative_zero_choose_their_own_branches():
    def function(x: Any) -> Any:
        return x * 0.0 + (1.0 if float(x[0]) == float(x[0]) else 2.0) + float(np.copysign(1.0, float(x[1])))

    compiled = jit(function)
    for value in ([np.nan, 0.0], [1.0, -0.0], [1.0, 0.0], [np.nan, -0.0]):
        np.testing.assert_equal(compiled(Tensor(value)).asnumpy(), function(Tensor(value)).asnumpy())


def test_loops_and_branches_of_ops_stay_nodes():
    def function(x: Any) -> Any:
        total = opreg.ops.while_loop(lambda v: v.sum() < 40.0, lambda v: v * 2.0, x, 20)
        return opreg.ops.cond(x[0] > 0, lambda v: v + 1.0, lambda v: v - 1.0, total) if x[1] > 0 else total

    compiled = jit(function)
    for value in ([1.0, 2.0], [2.0, -1.0], [-1.0, 9.0]):
        np.testing.assert_allclose(compiled(Tensor(value)).asnumpy(), function(Tensor(value)).asnumpy())
    assert "_while_loop" in compiled.explain() and "_guard" in compiled.explain()


def test_a_loop_without_a_bound_is_unrolled():
    def function(x: Any) -> Any:
        return opreg.ops.while_loop(lambda v: v.sum() < 40.0, lambda v: v * 2.0, x)

    compiled = jit(function)
    for value in ([1.0, 2.0], [30.0, 30.0], [1.0, 2.0]):
        np.testing.assert_allclose(compiled(Tensor(value)).asnumpy(), function(Tensor(value)).asnumpy())
        found, expected = jit(grad(function))(Tensor(value)), grad(function)(Tensor(value))
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy())


# ----------------------------------------------------------------------------------------------- left to Python


def left(function: Any, match: str, *values: Any) -> list[Any]:
    """Results of a function that is left to Python, after a check that one warning says so."""
    with pytest.warns(UserWarning, match=match) as told:
        found = [function(value) for value in values]
    assert len([each for each in told if "runs as Python" in str(each.message)]) == 1
    return found


def test_the_number_of_variants_is_bounded():
    seen: list[int] = []

    @jit
    def function(x: Any) -> Any:
        seen.append(1)
        return x * int(x[0])

    values = [Tensor([float(i), 1.0]) for i in range(VARIANTS + 8)]
    found = left(function, f"test_control.py:.* more than {VARIANTS} combinations", *values)
    assert [each.asnumpy().tolist() for each in found] == [[float(i * i), float(i)] for i in range(VARIANTS + 8)]
    count = len(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(values[0])
    assert len(seen) == count + 1 and "runs as Python" in function.explain()


def test_a_long_loop_over_values_runs_as_python():
    @jit
    def function(x: Any) -> Any:
        i = x[0] * 0.0
        while i < 1200:
            i = i + 1
        return x * i

    (found,) = left(function, "reads more than 1000 values", Tensor([2.0]))
    assert found.asnumpy() == [2400.0]


class Hooked(Cell):
    """A Cell that branches on a value computed by a child with hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Of(lambda x: x * 2.0)

    def construct(self, x: Any) -> Any:
        y = self.inner(x)
        return y * x if y.sum() > 0 else y - 1.0


def test_reading_a_value_after_a_hook_runs_as_python():
    """The hook is called as often as eagerly, and the gradient passes through it."""
    def run(make: Callable, values: list[Any]) -> tuple[list[Any], list[Any]]:
        net, log = Hooked(), list[Any]()
        net.inner.register_forward_hook(lambda cell, args, out: (log.append(out.asnumpy().tolist()), out * 3.0)[1])
        net.inner.register_backward_hook(lambda which, arriving, leaving: log.append(arriving[0].asnumpy().tolist()))
        call = make(lambda x: grad(net)(x))
        return [plain(call(value)) for value in values], log

    values = [Tensor([1.0, 2.0]), Tensor([-1.0, -2.0]), Tensor([1.0, 2.0])]
    with pytest.warns(UserWarning, match="after a hook"):
        found = run(jit, values)
    np.testing.assert_equal(found, run(lambda f: f, values))


@pytest.mark.parametrize("kind", ["forward_pre", "forward", "backward_pre", "backward"])
def test_hooks_after_read_values_are_compiled(kind):
    """The hooks run once in every call, whichever way it takes and however many guards fail."""
    class Net(Hooked):
        def construct(self, x: Any) -> Any:
            return self.inner(x) * x if x[0] > 0 else self.inner(x * 2.0) - 1.0

    def run(make: Callable) -> tuple[list[Any], list[Any]]:
        net, log = Net(), list[Any]()

        def hook(which: Any, *groups: Any) -> Any:
            log.append([None if each is None else np.asarray(each.asnumpy()).tolist() for each in groups[-1]
                        ] if isinstance(groups[-1], tuple) else groups[-1].asnumpy().tolist())

        getattr(net.inner, f"register_{kind}_hook")(hook)
        call, step = make(net), make(grad(lambda x: net(x)))
        return [[plain(each(Tensor(value))) for each in (call, step)] for value in VALUES], log

    expected = run(lambda f: f)
    for make in (jit, in_graph_mode, lambda f: f if not isinstance(f, Cell) else jit(f)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_equal(run(make), expected)


def test_gradients_may_be_read_and_hooked_in_branches():
    def function(x: Any) -> Any:
        double = HookBackward(lambda gradients: gradients[0] * 2.0)
        g = grad(lambda v: v * v * x[0] if x[0] > 0 else v * 3.0)(x)
        return double(g) * x if x[1] > 0 else g

    compiled = jit(grad(function))
    for value in VALUES:
        expected = grad(function)(Tensor(value)).asnumpy()
        np.testing.assert_allclose(compiled(Tensor(value)).asnumpy(), expected, rtol=1e-5)


class Own(Cell):
    """A Cell whose bprop branches on values, like its construct."""

    def construct(self, x: Any) -> Any:
        return x * 2.0 if x.sum() > 0 else x * x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        if dout.sum() > 0:
            return (dout * 5.0,)
        return (dout * 7.0 if x[0] > 0 else dout * 9.0,)


def test_a_bprop_may_read_values():
    net = Own()
    functions = [net, lambda x: net(x) * x[1], lambda x: net(net(x) - 1.0)]
    for function in functions:
        ways = [jit(function), in_graph_mode(function)]
        inner = jit(function)
        gradients = [jit(grad(function)), in_graph_mode(grad(function)), grad(lambda x: inner(x) * 1.0)]
        for value in VALUES:
            expected = function(Tensor(value)).asnumpy()
            for compiled in ways:
                np.testing.assert_allclose(compiled(Tensor(value)).asnumpy(), expected, rtol=1e-6)
            expected = grad(lambda x: function(x) * 1.0)(Tensor(value)).asnumpy()
            for compiled in gradients:
                np.testing.assert_allclose(compiled(Tensor(value)).asnumpy(), expected, rtol=1e-6)


@custom.register("nn_test_counts_calls")
class _CountsProp(custom.CustomOpProp):
    calls: list[int] = []

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
        class Counts(custom.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                _CountsProp.calls.append(1)
                self.assign(out_data[0], req[0], in_data[0] * 2)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], out_grad[0] * 2)

        return Counts()


def test_users_operators_are_called_once():
    def function(x: Any) -> Any:
        y = opreg.ops.Custom(x, op_type="nn_test_counts_calls")
        return y if y.sum() > 0 else -y

    _CountsProp.calls.clear()
    compiled = jit(function)
    left(compiled, "after the operator", *map(Tensor, VALUES))
    assert len(_CountsProp.calls) == len(VALUES)


def test_reading_values_in_loop_bodies_runs_as_python():
    def function(x: Any) -> Any:
        return opreg.ops.while_loop(lambda v: v.sum() < 40.0, lambda v: v * 2.0 if v[0] > 3 else v + 3.0, x, 20)

    found = left(jit(function), "in the body of a loop", Tensor([1.0, 2.0]), Tensor([20.0, 2.0]))
    for value, like in zip(found, ([1.0, 2.0], [20.0, 2.0])):
        np.testing.assert_allclose(value.asnumpy(), function(Tensor(like)).asnumpy())


def in_a_branch(x: Any) -> Any:
    most = x.max()
    return opreg.ops.cond(x.sum() > 0, lambda: x * int(most), lambda: -x)


def in_a_loop(x: Any) -> Any:
    most = abs(x).max() + 1.0
    return opreg.ops.while_loop(lambda v: v.sum() < 20.0, lambda v: v + int(most), x)


@pytest.mark.parametrize("function", [in_a_branch, in_a_loop])
@pytest.mark.parametrize("ask", [lambda function: function, lambda function: grad(lambda x: function(x).sum())])
def test_bodies_may_read_outside_values(function: Any, ask: Any) -> None:
    compiled = jit(ask(function))
    np.testing.assert_equal([plain(compiled(Tensor(value))) for value in VALUES],
                            [plain(ask(function)(Tensor(value))) for value in VALUES])


@pytest.mark.parametrize("function", [
    lambda x: opreg.ops.cond(x.sum() > 0, lambda: x * int(x.max()), lambda: -x),
    lambda x: opreg.ops.cond(x.sum() > 0, lambda y: y * int((x * y).max()), lambda y: -y, x)])
def test_reading_values_computed_in_branches_runs_as_python(function: Any) -> None:
    found = left(jit(function), r"int\(\) asks for numbers in the body of a loop or a branch", *map(Tensor, VALUES))
    np.testing.assert_equal([plain(each) for each in found], [plain(function(Tensor(value))) for value in VALUES])


def test_a_symbol_has_no_values_to_read():
    with pytest.raises(TraceError, match=r"test_control.py:\d+: bool\(\) reads the values of a tensor.*ops.cond"):
        Of(branch).to_symbol(Tensor(VALUES[0]))


def test_compile_makes_a_plan_without_a_run():
    cell = Of(branch)
    compiled = cell.compile(Tensor(VALUES[0]))
    assert compiled.cache_size == 1 and "_guard" in compiled.explain()
    for value in VALUES:
        np.testing.assert_allclose(compiled(Tensor(value)).asnumpy(), branch(Tensor(value)).asnumpy())


def test_threads_may_take_different_branches():
    """Threads that take different ways do not disturb each other."""
    import threading

    compiled, wrong = jit(branches), list[Any]()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            value = Tensor(rng.standard_normal(3).astype(np.float32))
            if not np.allclose(compiled(value).asnumpy(), branches(value).asnumpy(), rtol=1e-4, atol=1e-5):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_variants_are_freed_with_the_function():
    compiled = jit(branches)
    for value in VALUES:
        compiled(Tensor(value))
    found = [each for each in gc.get_objects() if type(each).__name__ == "Compiled"]
    count = len(found)
    del found, compiled
    gc.collect()
    assert sum(type(each).__name__ == "Compiled" for each in gc.get_objects()) < count
    assert ops.exp is not None


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_a_tensor_chooses_one_of_several_layers(way):
    layers = CellList([ReLU(), Tanh(), Sigmoid()])

    def chosen(at, x):
        return layers[at](x), functions.switch_layer(at, layers)(x), functions.switch(at == 1, x * 2, x)

    run = chosen if way == "eager" else jit(chosen)
    x = Tensor(np.array([-1.0, 2.0], np.float32))
    for at, function in ((0, lambda x: np.maximum(x, 0)), (1, np.tanh), (-1, lambda x: 1 / (1 + np.exp(-x)))):
        by_index, by_switch, doubled = run(Tensor(np.int32(at)), x)
        np.testing.assert_allclose(by_index.asnumpy(), function(x.asnumpy()), 1e-6)
        np.testing.assert_array_equal(by_index.asnumpy(), by_switch.asnumpy())
        np.testing.assert_array_equal(doubled.asnumpy(), x.asnumpy() * (2 if at == 1 else 1))
    with pytest.raises(TypeError, match="index"):
        layers[Tensor(1.0)]
    with pytest.raises(IndexError, match=r"range \[-3, 3\)"):
        layers[Tensor(3)]
