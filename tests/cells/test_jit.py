"""Compilation: traces, guards, errors, and conversion to Symbols and back."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import opreg
import opreg.symbol as sym
from opreg.cells.cell import Cell
from opreg.cells.context_settings import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context
from opreg.cells.grad import grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter, assign
from opreg.cells.symbolic import from_symbol
from opreg.cells.tensor import Tensor
from opreg.cells.traced_tensor import TracedTensor
from opreg.cells.tree import mutable
from opreg.common import api
from opreg.core.registry import ops
from opreg.core.tracing import TraceError
from opreg.custom import operator as custom
from opreg.errors import DeviceError
from opreg.ndarray import array, cpu
from opreg.nn import ops as functions

X = np.array([1.0, -2.0, 3.0], np.float32)


def x() -> Tensor:
    return Tensor(X)


class Scale(Cell):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")
        self.factor = factor

    def construct(self, a: Any) -> Any:
        return self.w * a * self.factor


def in_graph_mode(function: Any) -> Any:
    def call(*args: Any) -> Any:
        set_context(mode=GRAPH_MODE)
        try:
            return function(*args)
        finally:
            set_context(mode=PYNATIVE_MODE)

    return call


def traces(function: Any, seen: list[Any]) -> Any:
    """A function that counts the runs of its Python code."""

    def counted(*args: Any, **keywords: Any) -> Any:
        seen.append(1)
        return function(*args, **keywords)

    return counted


def test_a_function_is_traced_once_for_each_kind_of_inputs():
    seen: list[Any] = []
    function = jit(traces(lambda a, n=1, flag=None: a * n, seen))
    for value, keywords, count in ((x(), {}, 1), (Tensor(-X), {}, 1), (Tensor(X[:2]), {}, 2), (x(), {"n": 3}, 3),
                                   (x(), {"n": 3}, 3), (x(), {"n": 3.0}, 4), (Tensor(X, np.float16), {}, 5),
                                   (x(), {"flag": "a"}, 6), (x(), {"flag": "b"}, 7)):
        found = function(value, **keywords)
        np.testing.assert_array_equal(found.asnumpy(), value.asnumpy() * keywords.get("n", 1))
        assert len(seen) == count
    assert function.cache_size == 7


def test_mutable_numbers_that_change_are_traced_once():
    def scaled(a: Any, b: Any) -> Any:
        return a * b["rate"][0] + b["rate"][1] if isinstance(b, dict) else a * b

    seen: list[Any] = []
    compiled = jit(traces(scaled, seen))
    for rate in (0.5, 2.0):
        np.testing.assert_array_equal(compiled(x(), mutable(rate)).asnumpy(), X * np.float32(rate))
        np.testing.assert_array_equal(compiled(x(), mutable({"rate": (rate, 3)})).asnumpy(), X * np.float32(rate) + 3)
    assert len(seen) == 2
    np.testing.assert_array_equal(compiled(x(), 0.5).asnumpy(), X / 2)
    assert len(seen) == 3 and grad(compiled, 1)(x(), mutable(2.0)).asnumpy() == X.sum()


def test_a_tuple_of_tensors_is_no_row_of_arguments():
    first, a, b = jit(lambda *args: args[0][0]), Tensor([[1.0, 2.0]]), Tensor([[3.0, 4.0]])
    for args, expected in (((a,), [1.0, 2.0]), (((a,),), [[1.0, 2.0]]), ((b, a), [3.0, 4.0]), (((b, a),), [[3.0, 4.0]]),
                           (([b, a],), [[3.0, 4.0]]), (((b, a), a), [[3.0, 4.0]])):
        np.testing.assert_array_equal(first(*args).asnumpy(), np.array(expected, np.float32))
    assert first.cache_size == 6


def test_arguments_and_results_may_be_nested():
    @jit
    def function(pair: Any, options: Any) -> Any:
        a, (b,) = pair
        return {"sum": a + b, "rest": [options["c"] * 2, "text", None, (3,)]}

    found = function((x(), [x()]), {"c": x(), "n": 2})
    assert found["rest"][1:] == ["text", None, (3,)]
    np.testing.assert_array_equal(found["sum"].asnumpy(), 2 * X)
    np.testing.assert_array_equal(found["rest"][0].asnumpy(), 2 * X)


def test_results_are_not_overwritten_by_later_calls():
    function = jit(lambda a: (a * 2, a))
    first, same = function(x())
    second, _ = function(Tensor([0.0, 0.0, 0.0]))
    assert first.asnumpy().tolist() == (2 * X).tolist() and same.asnumpy().tolist() == X.tolist()
    second[0] = 9.0
    assert function(x())[0].asnumpy().tolist() == (2 * X).tolist()


class Holds(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([3.0]), name="w")
        self.held = {"list": [self.w, x()], "n": 3, "counts": collections.Counter(a=2)}

    def construct(self, a: Any) -> Any:
        return a * self.w, self.held, [self.held["list"], (self.held["counts"],)]


def test_containers_from_outside_are_returned_as_they_are() -> None:
    net, one = Holds(), Tensor([1.0])
    for function in (net, jit(net)):
        for _ in range(2):
            out, held, (inner, (counts,)) = function(one)
            assert out.asnumpy().tolist() == [3]
            assert held is net.held
            assert inner is held["list"]
            assert counts is held["counts"]
        held["n"] += 1
        assert function(one)[1]["n"] == net.held["n"]


def test_functions_that_return_containers_from_outside_have_gradients() -> None:
    net, one = Holds(), Tensor([2.0])
    for function in (net, jit(net)):
        first = grad(lambda a, function=function: function(a)[0])
        assert first(one).asnumpy().tolist() == [3]
        second = grad(grad(lambda a, function=function: function(a)[0] * function(a)[0]))
        assert second(one).asnumpy().tolist() == [18]


@pytest.mark.parametrize("text", [
    str, repr, lambda a: f"{a}", lambda a: f"{a!r} {[a, {'a': a[0]}]}",
    lambda a: f"{a * 2} and {a[0]:.3f}", "{0} {0}".format,
    lambda a: ", ".join(map(str, [a]))])
def test_the_text_of_a_tensor_is_that_of_its_numbers(text: Any) -> None:
    def function(a: Any) -> Any:
        return a + 1, text(a), [text(a * 2)]

    compiled = jit(function)
    for numbers in ([1.0, 2.0], [1.0, 2.0], [-3.0, 0.5]):
        assert compiled(Tensor(numbers))[1:] == function(Tensor(numbers))[1:]


def test_a_traced_tensor_is_printed_without_values() -> None:
    said = []

    class Says(Cell):
        def construct(self, a: Any) -> Any:
            said.append(str(a))
            return a * 2

    Says().to_symbol(x())
    assert said == ["<tensor of a trace, shape (3,), float32, a>"]


def test_shapes_and_dtypes_are_known_while_tracing():
    @jit
    def function(a: Any) -> Any:
        assert a.shape == (3,) and str(a.dtype) == "Float32" and len(a) == 3 and a.ndim == 1 and a.size == 3
        total = a * 0
        for row in range(a.shape[0]):
            total = total + a[row]
        return total if a.dtype == np.float32 else a

    np.testing.assert_allclose(function(x()).asnumpy(), [2, 2, 2])


def test_subscripts_are_assigned_in_place():
    @jit
    def function(a: Any) -> Any:
        b = a * 1
        b[0] = 7.0
        b[1:] = a[:2]
        return b, a

    changed, same = function(x())
    assert changed.asnumpy().tolist() == [7, 1, -2] and same.asnumpy().tolist() == X.tolist()
    np.testing.assert_allclose(jit(grad(lambda a: function(a)[0] * 2))(x()).asnumpy(), [2, 2, 0])


def test_bounds_and_axes_may_be_tensors():
    def function(a: Any, n: Any) -> Any:
        return a[:n], a[n - 1:n + 1, 0], a.sum(n - 1), a.expand_dims(n)

    a = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for call in (function, jit(function)):
        for n in (1, 2):
            if n == 2:
                found = call(a, Tensor(n))
                assert found[0].asnumpy().tolist() == [[1, 2], [3, 4]] and found[1].asnumpy().tolist() == [3, 5]
                assert found[2].asnumpy().tolist() == [3, 7, 11] and found[3].shape == (3, 2, 1)
            else:
                assert call(a, Tensor(n))[2].asnumpy().tolist() == [9, 12]
        with pytest.raises(TypeError):
            call(a, Tensor(1.0))


# ------------------------------------------------------------------------------------------------- watched state


def test_parameters_are_read_on_every_run():
    cell = Scale()
    compiled = cell.compile(x())
    for change in (lambda: cell.w.set_data(Tensor([0.0, 1.0, 0.0])), lambda: cell.w.__setitem__(0, 5.0),
                   lambda: assign(cell.w, Tensor([9.0, 9.0, 9.0])), lambda: cell.w.asnumpy().__setitem__(1, -1.0),
                   lambda: setattr(cell, "w", Parameter(Tensor([4.0, 4.0, 4.0]), name="w")),
                   lambda: setattr(cell, "w", Tensor([6.0, 6.0, 6.0]))):
        change()
        np.testing.assert_array_equal(compiled(x()).asnumpy(), cell(x()).asnumpy())


def test_attributes_are_watched():
    cell = Scale()
    compiled = cell.compile(x())
    compiled(x())
    cell.factor = 10.0
    np.testing.assert_array_equal(compiled(x()).asnumpy(), cell(x()).asnumpy())


def test_a_change_of_the_training_mode_is_noticed():
    class Mode(Cell):
        def construct(self, a: Any) -> Any:
            return a * 2 if self.training else a

    cell = Mode()
    compiled = cell.compile(x())
    assert compiled(x()).asnumpy().tolist() == X.tolist()
    cell.set_train()
    assert compiled(x()).asnumpy().tolist() == (2 * X).tolist()


def test_changes_of_other_cells_cause_no_trace():
    seen: list[Any] = []
    function, other = jit(traces(lambda a: a * 2, seen)), Scale()
    function(x())
    other.factor = 3.0
    function(x())
    assert len(seen) == 1


def test_assigned_values_are_stored_after_the_run():
    cell = Scale()

    @jit
    def function(a: Any) -> Any:
        before = cell.w * 1
        assign(cell.w, cell.w + a)
        assign(cell.w, cell.w * 2)
        return before, cell.w * 1

    before, after = function(x())
    assert before.asnumpy().tolist() == [1, 2, 3] and after.asnumpy().tolist() == [4, 0, 12]
    assert cell.w.asnumpy().tolist() == [4, 0, 12]
    function(x())
    assert cell.w.asnumpy().tolist() == [10, -4, 30]


def test_an_assignment_does_not_change_the_gradient_before_it():
    """The gradient belongs to the computed value, which used the parameter before the assignment."""
    w = Parameter(Tensor([2.0]), name="w")

    def function(a: Any) -> Any:
        out = a * w
        assign(w, w * 10)
        return out

    for run in (lambda f: f, jit):
        w.set_data(Tensor([2.0]))
        assert run(grad(function))(Tensor([3.0])).asnumpy().tolist() == [2]
        assert w.asnumpy().tolist() == [20]
    w.set_data(Tensor([2.0]))
    inner = jit(function)
    assert grad(lambda a: inner(a))(Tensor([3.0])).asnumpy().tolist() == [2]
    assert w.asnumpy().tolist() == [20]


def test_eager_and_compiled_code_assign_the_same_parameter():
    """Two compiled functions and eager code share one parameter, even if one of them moves it to other memory."""
    w = Parameter(Tensor([1.0]), name="w")

    def add(a: Any) -> Any:
        assign(w, w + a)
        return w * 1

    one, two = jit(add), jit(lambda a: add(a) * 1)
    expected = 1.0
    for step in range(6):
        expected += 1
        value = (one, two, lambda a: grad(lambda b: add(b) * b)(a))[step % 3](Tensor([1.0]))
        assert w.asnumpy().tolist() == [expected], step
        del value


# ---------------------------------------------------------------------------------------- code that is no graph


def test_values_that_leave_the_graph_are_refused():
    for function, instead in ((lambda a: np.asarray(a), "x.asnumpy"), (lambda a: a.backward(), "Use grad")):
        with pytest.raises(TraceError, match=instead) as caught:
            jit(function)(x())
        assert __file__ in str(caught.value)


def test_executors_have_names():
    """Programs written for MindSpore compile and synchronize with these names."""
    cell = Scale()
    assert api._cell_graph_executor.compile(cell, x(), phase="train") == ("train", True)
    with pytest.raises(ValueError, match="shapes"):
        api._cell_graph_executor.compile(cell, Tensor([1.0, 2.0]))
    assert api._pynative_executor.sync() is None and api.ms_function is jit


def test_mistakes_name_the_line_and_the_cell():
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Scale()

        def construct(self, a: Any) -> Any:
            return self.inner(a)

    with pytest.raises(ValueError, match="shapes") as caught:
        Net().compile(Tensor([1.0, 2.0]))
    text = "\n".join(caught.value.__notes__)
    assert __file__ in text and "in Cell Net.inner" in text and "(3,) float32" in text


class Kept:
    """A place for a tensor."""

    it: Any = None


@pytest.mark.parametrize("program", [
    lambda kept, a: (setattr(kept, "it", kept.it + a), a * 2)[1],
    lambda kept, a: (setattr(kept, "new", [a]), a * 2)[1],
    lambda kept, a: (vars(kept).update(it=a * 3), a * kept.it)[1],
])
def test_a_function_that_stores_a_tensor_on_an_object_runs_as_python(program: Any) -> None:
    found = []
    for run in (jit, lambda function: function):
        kept = Kept()
        kept.it = Tensor([1.0, 2.0, 3.0])
        function = run(lambda a, kept=kept: program(kept, a))
        with pytest.warns(UserWarning, match="it keeps a tensor in ") if run is jit else contextlib.nullcontext():
            results = [function(x()).asnumpy().tolist() for _ in range(3)]
        found.append((results, _numbers(vars(kept))))
    assert found[0] == found[1]


def test_objects_that_a_function_makes_or_only_reads_are_compiled() -> None:
    kept = Kept()
    kept.it = Tensor([1.0, 2.0, 3.0])

    def function(a: Any) -> Any:
        made = Kept()
        made.it = Kept()
        made.it.it = a * kept.it
        return made.it.it + kept.it

    compiled = jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert compiled(x()).asnumpy().tolist() == function(x()).asnumpy().tolist()


def test_values_of_a_trace_must_not_be_stored_outside():
    """The trace does not see a variable of a context that is not current; a later use of the value raises an error."""
    kept: contextvars.ContextVar[Any] = contextvars.ContextVar("kept")
    context = contextvars.copy_context()
    with pytest.warns(UserWarning, match="does not see changes of elements of the variable context"):
        jit(lambda a: (context.run(lambda: kept.set(a)), a * 2)[1])(x())
    assert isinstance(context[kept], TracedTensor)
    with pytest.raises(TraceError, match="belongs to another compiled function, which is over"):
        jit(lambda a: a * context[kept])(x())


def _keeps_in_its_cache(cache: dict[str, Any], seen: list[Any], a: Any) -> Any:
    if "last" in cache:
        a = a + cache["last"]
    cache["last"] = a * 2
    seen.append((len(seen), a))
    return a


def _numbers(value: Any) -> Any:
    """Tensors in containers as lists of numbers."""
    if isinstance(value, dict):
        return {key: _numbers(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return [_numbers(each) for each in value]
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


@pytest.mark.parametrize("program", [
    lambda cache, seen, last, a: _keeps_in_its_cache(cache, seen, a),
    lambda cache, seen, last, a: (cache.update(last=(a, [a * 2])), a)[1],
    lambda cache, seen, last, a: (seen.append(a), seen.append(3), a + 1)[2],
    lambda cache, seen, last, a: (seen.insert(0, {"a": a}), a + 1)[1],
    lambda cache, seen, last, a: (last.append(a), a + 1)[1],
])
def test_a_function_that_stores_a_tensor_in_a_container_runs_as_python(program: Any) -> None:
    states: list[Any] = [({"first": 1.5}, [7], collections.deque([4])) for _ in range(2)]
    found = []
    for run, state in zip((jit, lambda function: function), states):
        function = run(lambda a, state=state: program(*state, a))
        with pytest.warns(UserWarning, match="it keeps a tensor in ") if run is jit else contextlib.nullcontext():
            found.append([function(x()).asnumpy().tolist() for _ in range(3)])
    assert found[0] == found[1]
    assert _numbers(states[0]) == _numbers(states[1])


@pytest.mark.parametrize("change", [
    lambda held, a: held.__setitem__("a", a * 2), lambda held, a: held.pop("n"), lambda held, a: held.update(n=4),
    lambda held, a: held["l"].append(a), lambda held, a: held["l"].reverse(), lambda held, a: held["l"].clear(),
])
def test_an_argument_that_is_a_container_is_changed_as_by_python(change: Any) -> None:
    def function(held: dict[str, Any], a: Any) -> Any:
        change(held, a)
        return a + 1

    given: list[dict[str, Any]] = [{"a": x(), "n": 3, "l": [x(), 5]} for _ in range(2)]
    with pytest.warns(UserWarning, match="function is not compiled but runs as Python: it changes an argument"):
        compiled = jit(function)(given[0], x())
    assert compiled.asnumpy().tolist() == function(given[1], x()).asnumpy().tolist()
    assert _numbers(given[0]) == _numbers(given[1])


def test_containers_that_a_function_makes_or_only_changes_in_numbers_are_compiled() -> None:
    log: list[int] = []

    def function(pairs: list[Any]) -> Any:
        made = {"sum": [pairs[0]]}
        made["sum"].append(pairs[1] * 2)
        log.append(len(made["sum"]))
        return made["sum"][0] + made["sum"][1]

    compiled = jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert compiled([x(), x()]).asnumpy().tolist() == (x() * 3).asnumpy().tolist()
    assert log == [2]  # while it is traced


class Keeps(Cell):
    """A Cell that stores a tensor in an attribute, which is no Parameter, and reads it in the next run."""

    def __init__(self) -> None:
        super().__init__()
        self.last = Tensor([0.0, 0.0, 0.0])

    def construct(self, a: Any) -> Any:
        self.last = self.last + a
        return self.last * 2


class KeepsInList(Keeps):
    def construct(self, a: Any) -> Any:
        self.seen = [a]
        return a * 2


class KeepsInBuffer(Keeps):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sum", Tensor([0.0, 0.0, 0.0]))

    def construct(self, a: Any) -> Any:
        self.sum = self.sum + a
        return self.sum * 2


class Registers(Keeps):
    """A Cell that registers a hook in every run, and one that it removes again."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = Scale(), list[str]()

    def construct(self, a: Any) -> Any:
        self.inner.register_forward_hook(lambda cell, args, out: self.calls.append("kept"))
        with self.inner.register_forward_pre_hook(lambda cell, args: (args[0] * 2,)):
            return self.inner(a)


def changes_its_argument(a: Any) -> Any:
    a[0] = 7.0
    return a * 2


def assigns_its_argument(a: Any) -> Any:
    return assign(a, a + 1.0) * 2


@pytest.mark.parametrize("make, reason", [
    (Keeps, r"keeps a value on Keeps.last, which is no Parameter \(.*test_jit.py:"),
    (KeepsInList, "KeepsInList.seen"),
    (KeepsInBuffer, "KeepsInBuffer.sum"), (Registers, "it registers a hook, which every run would do again"),
    (lambda: changes_its_argument, "it changes an argument in place"),
    (lambda: assigns_its_argument, "it changes an argument in place")],
    ids=["attribute", "list", "buffer", "hook", "in place", "assigned"])
@pytest.mark.parametrize("mode", ["jit", "graph mode", "gradient"])
@pytest.mark.filterwarnings("ignore:the hook .* is registered on")
def test_functions_that_cannot_be_graphs_run_as_python(make, reason, mode):
    """Each run has the same effects as in Python, and a warning is given once."""
    def run(make_call: Any) -> list[Any]:
        function, parameter, found = make(), Parameter(Tensor(X), name="p"), list[Any]()
        call = make_call(function)
        for value in (x(), x(), parameter, parameter):
            found += [call(value).asnumpy().copy(), value.asnumpy().copy(), len(getattr(function, "calls", ()))]
        return found

    def compiled(function: Any) -> Any:
        if mode == "gradient":
            return jit(grad(function))
        if mode == "jit":
            return jit(function)
        return in_graph_mode(function if isinstance(function, Cell) else jit(function))

    expected = run(grad if mode == "gradient" else lambda function: function)
    if mode == "gradient" and make not in (Keeps, KeepsInList, KeepsInBuffer, Registers):
        found = run(compiled)  # it differentiates in a copy
    else:
        with pytest.warns(UserWarning, match=f"runs as Python: .*{reason}") as told:
            found = run(compiled)
        assert sum("runs as Python" in str(each.message) for each in told) == 1
    np.testing.assert_equal(found, expected)


def test_hooks_of_one_run_are_compiled():
    """``h = register(); cell(x); h.remove()`` calls the hook on every run, in both modes."""
    class Temporary(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls = Scale(), list[str]()

        def construct(self, a: Any) -> Any:
            handle = self.inner.register_forward_hook(lambda cell, args, out: (self.calls.append("f"), out * 3)[1])
            out = self.inner(a)
            handle.remove()
            with self.inner.register_forward_pre_hook(lambda cell, args: self.calls.append("p")):
                return self.inner(out)

    for run in (lambda net: net, jit, in_graph_mode):
        net = Temporary()
        call = run(net)
        for count in (1, 2, 3):
            assert call(x()).asnumpy().tolist() == (12 * X * np.array([1, 4, 9])).tolist()
            assert net.calls == ["f", "p"] * count and not net.hooks()


def test_an_exception_while_tracing_leaves_no_state_behind():
    class Mine(Exception):
        pass

    def function(a: Any) -> Any:
        a * 2
        raise Mine

    with pytest.raises(Mine):
        jit(grad(function))(x())
    assert isinstance(x() * 2, Tensor)
    np.testing.assert_allclose(jit(grad(lambda a: a * a))(x()).asnumpy(), 2 * X)


def test_jit_takes_functions_and_cells():
    with pytest.raises(TypeError, match="a function or a Cell, got int"):
        jit(3)
    cell = Scale()
    np.testing.assert_array_equal(jit(cell)(x()).asnumpy(), cell(x()).asnumpy())

    class Decorated(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.k = 3.0

        @jit
        def construct(self, a: Any) -> Any:
            return a * self.k

    one, other = Decorated(), Decorated()
    other.k = 5.0
    assert one(x()).asnumpy().tolist() == (3 * X).tolist() and other(x()).asnumpy().tolist() == (5 * X).tolist()

    @jit(jit_config=None)
    def function(a: Any) -> Any:
        """Doubles."""
        return a * 2

    assert function.__name__ == "function" and function.__doc__ == "Doubles."


# ---------------------------------------------------------------------------------------------------- contexts


def test_graph_mode_compiles_outermost_cells():
    seen: list[Any] = []

    class Inner(Cell):
        def construct(self, a: Any) -> Any:
            seen.append(type(a).__name__)
            return a * 2

    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def construct(self, a: Any) -> Any:
            return self.inner(a)

    net = Net()
    try:
        set_context(mode=GRAPH_MODE)
        for _ in range(3):
            assert net(x()).asnumpy().tolist() == (2 * X).tolist()
        assert seen == ["TracedTensor"]
        assert grad(net)(x()).asnumpy().tolist() == [2] * 3
    finally:
        set_context(mode=PYNATIVE_MODE)
    net(x())
    assert seen[-1] == "Tensor" and get_context("mode") == PYNATIVE_MODE


@pytest.mark.parametrize("settings, message", [
    ({"mode": 7}, "mode must be one of"), ({"device_target": "NPU"}, "GPU, Ascend"),
    ({"devise_id": 0}, "device_id"), ({"device_id": "0"}, "must be an int")])
def test_wrong_settings_of_the_context_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        set_context(**settings)


@pytest.mark.parametrize("target", ["Ascend", "GPU"])
def test_the_cpu_computes_in_place_of_a_missing_device(target, monkeypatch):
    def missing(name):
        raise DeviceError(f"{name}: there is none")

    monkeypatch.setattr("opreg.cells.context_settings.backend", missing)
    with pytest.warns(UserWarning, match=f"the CPU computes in place of device_target='{target}': "):
        set_context(device_target=target, device_id=3)
    assert get_context("device_target") == "CPU" and Tensor([1.0]).asnumpy().tolist() == [1]
    set_context(device_id=0)


def test_settings_without_effect_are_accepted():
    before = get_context("mode")
    assert (get_context("save_graphs"), get_context("enable_ge"), get_context("deterministic")) == (0, False, "OFF")
    set_context(enable_sparse=False, save_graphs=True, op_timeout=3)
    assert get_context("mode") == before and get_context("save_graphs") is True
    set_context(save_graphs=0, op_timeout=900)


# ---------------------------------------------------------------------------------------- empty dimensions


@pytest.mark.parametrize("make, shape", [
    (lambda: functions.zeros((0, 2)), (0, 2)), (lambda: functions.ones(0), (0,)),
    (lambda: functions.full((2, 0), 1.5), (2, 0)), (lambda: functions.arange(3, 1), (0,)),
    (lambda: functions.rand(0, 2), (0, 2)), (lambda: functions.randint(0, 3, (0,)), (0,)),
    (lambda: functions.standard_normal((3, 0)), (3, 0)), (lambda: Tensor([1.0]).new_zeros((0, 2)), (0, 2)),
    (lambda: functions.cond(Tensor(True), lambda: functions.ones((0,)), lambda: functions.zeros((0,))), (0,)),
    (lambda: functions.cat([functions.zeros((0, 2)), functions.ones((3, 2))]), (3, 2))])
def test_an_empty_dimension_is_known(make, shape):
    assert make().shape == jit(make)().shape == shape


def test_gradients_of_empty_arrays_are_empty():
    def loss(x):
        return functions.cat([functions.zeros((0, 2)), x * x]).sum() + functions.ones((0,)).sum()

    x = functions.ones((3, 2))
    for found in (grad(loss), jit(grad(loss)), grad(jit(loss))):
        assert found(x).asnumpy().tolist() == [[2, 2]] * 3
    assert not opreg.util.is_np_shape()


# ------------------------------------------------------------------------------------------------ Symbols


def test_a_cell_becomes_a_symbol_and_a_cell_again():
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = Scale()

        def construct(self, data: Any) -> Any:
            return ops.exp(self.first(data) * 0.1)

    net = Net()
    symbol = net.to_symbol()
    assert symbol.list_arguments() == ["first.w", "data"]
    executor = symbol.simple_bind(cpu(), data=(3,))
    executor.copy_params_from({"first.w": net.first.w, "data": array(X)})
    expected = net(x()).asnumpy()
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), expected, rtol=1e-6)
    again = from_symbol(sym.load_json(symbol.tojson()), params={"first.w": net.first.w})
    np.testing.assert_allclose(again(x()).asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(again.compile(x())(x()).asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(grad(again, 0, again.trainable_params())(x())[1][0].asnumpy(),
                               grad(net, 0, net.trainable_params())(x())[1][0].asnumpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="give example inputs"):
        Cell.to_symbol(_Asks())
    assert _Asks().to_symbol((2, 3)).list_arguments() == ["a"]


class _Asks(Cell):
    def construct(self, a: Any) -> Any:
        return a.reshape(a.shape[0], -1)


def test_a_cell_with_bprop_is_one_node_of_a_symbol():
    class Own(Cell):
        def construct(self, a: Any) -> Any:
            return a * 2

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (dout * 7,)

    symbol = Own().to_symbol()
    assert [node.op.name for node in symbol._graph().nodes if node.op is not None] == ["_cell"]
    executor = symbol.simple_bind(cpu(), a=(3,))
    executor.arg_dict["a"][:] = X
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == (2 * X).tolist()
    executor.backward(array(np.ones(3)))
    assert executor.grad_dict["a"].asnumpy().tolist() == [7] * 3
    with pytest.warns(UserWarning, match="files do not hold the bprop of a Cell"):
        text = symbol.tojson()
    assert "_cell" in text and sym.load_json(text).list_arguments() == ["a"]


@pytest.mark.parametrize("created, low, high", [
    (lambda: sym.zeros((3,)), 0, 0), (lambda: sym.ones((3,)) * 2, 2, 2), (lambda: sym.arange(3), 0, 2),
    (lambda: sym.random.uniform(1, 2, shape=(3,)), 1, 2),
    (lambda: sym.split(sym.ones((6,)), num_outputs=2, axis=0)[0], 1, 1)])
def test_from_symbol_runs_operators_without_inputs(created, low, high):
    """Eagerly, compiled as a whole, and inside of a compiled function."""
    cell = from_symbol(sym.Variable("data") + created())
    data = Tensor(np.zeros(3, np.float32))
    for call in (cell, from_symbol(sym.Variable("data") + created()).compile(data), jit(lambda x: cell(x) * 1)):
        found = call(data).asnumpy()
        assert found.min() >= low and found.max() <= high
    if low == 1 and high == 2:
        run = jit(lambda x: cell(x) * 1)
        assert (run(data).asnumpy() != run(data).asnumpy()).any()


def test_from_symbol_makes_parameters():
    data, label = sym.Variable("data"), sym.Variable("label")
    hidden = sym.Activation(sym.FullyConnected(data, num_hidden=4, name="fc"), act_type="relu", name="act")
    normed = sym.BatchNorm(hidden, fix_gamma=False, name="bn")
    cell = from_symbol(sym.Group([normed, label * 1]), inputs=("data", "label"))
    out, passed = cell(Tensor(np.ones((5, 3), np.float32)), x())
    assert out.shape == (5, 4) and passed.shape == (3,)
    assert sorted(cell.parameters_dict()) == ["bn_beta", "bn_gamma", "bn_moving_mean", "bn_moving_var", "fc_bias",
                                              "fc_weight"]
    assert [p.name for p in cell.untrainable_params()] == ["bn_moving_mean", "bn_moving_var"]
    before = cell._params["bn_moving_mean"].asnumpy().copy()
    cell.set_train()
    cell(Tensor(np.ones((5, 3), np.float32)), x())
    moved = cell._params["bn_moving_mean"].asnumpy().copy()
    assert (moved != before).any()
    cell.compile(Tensor(np.ones((5, 3), np.float32)), x())(Tensor(np.ones((5, 3), np.float32)), x())
    assert (cell._params["bn_moving_mean"].asnumpy() != moved).any()
    with pytest.raises(ValueError, match=r"no argument 'dat'. Did you mean 'data'"):
        from_symbol(normed, inputs="dat")
    with pytest.raises(ValueError, match="'strange' is neither an input nor in params="):
        from_symbol(data * sym.Variable("strange"))(x())


@custom.register("nn_test_twice")
class _TwiceProp(custom.CustomOpProp):
    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
        class Twice(custom.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * 2)

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], out_grad[0] * 5)

        return Twice()


def test_construct_may_call_a_custom_operator():
    class Net(Cell):
        def construct(self, a: Any) -> Any:
            return opreg.ops.Custom(a * 3, op_type="nn_test_twice")

    net = Net()
    for run in (lambda f: f, jit):
        assert run(lambda a: net(a))(x()).asnumpy().tolist() == (6 * X).tolist()
        assert run(grad(lambda a: net(a)))(x()).asnumpy().tolist() == [15] * 3
    symbol = net.to_symbol()
    executor = symbol.bind(cpu(), {"a": array(X)})
    assert executor.forward()[0].asnumpy().tolist() == (6 * X).tolist()


def test_explain_lists_the_steps_of_a_compiled_function():
    function = jit(lambda a: ops.exp(a * 2))
    function(x())
    assert "exp" in function.explain()


def test_a_compiled_cell_has_the_attributes_of_the_cell():
    cell = Scale()
    compiled = cell.compile(x())
    assert compiled.trainable_params() == [cell.w] and compiled.set_train() is cell and cell.training
    with pytest.raises(AttributeError, match="no attribute 'wat'"):
        compiled.wat  # noqa: B018
    with pytest.raises(AttributeError, match="a compiled function has no 'wat'"):
        jit(lambda a: a).wat  # noqa: B018


def test_compiling_again_does_nothing_new():
    seen: list[Any] = []

    class Counts(Cell):
        def construct(self, a: Any) -> Any:
            seen.append(1)
            return a * 2

    cell = Counts()
    for _ in range(3):
        cell.compile(x())(x())
    assert len(seen) == 1


def test_an_attribute_set_to_its_own_value_changes_nothing():
    seen: list[Any] = []

    class Counts(Cell):
        def construct(self, a: Any) -> Any:
            seen.append(1)
            return a * 2

    cell = Counts().set_train()
    compiled = cell.compile(x())
    for _ in range(3):
        compiled(x())
        cell.set_train()
    assert len(seen) == 1


def test_a_decorated_method_keeps_its_signature():
    class Net(Cell):
        @jit
        def construct(self, a: Any, b: Any = None) -> Any:
            return a * 2

    net = Net()
    assert list(inspect.signature(net.construct).parameters) == ["a", "b"]
    net.set_inputs(Tensor(shape=[None], dtype=np.float32))
    assert net(x()).asnumpy().tolist() == (2 * X).tolist()
    with pytest.raises(TypeError, match=r"'c'.*Valid: a, b"):
        net.set_inputs(c=x())


def test_an_iterator_that_is_returned_is_a_list():
    function = jit(lambda a: (each * 2 for each in (a, a + 1)))
    for _ in range(2):
        found = function(x())
        assert isinstance(found, list)
        assert [each.asnumpy().tolist() for each in found] == [(2 * X).tolist(), (2 * X + 2).tolist()]
    assert jit(lambda a: map(len, ("one", "three")))(x()) == [3, 5]


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE])
def test_isinstance_finds_tensors(mode: int) -> None:
    """``isinstance`` also finds tensors that stand for numbers in a compiled function."""
    asked = []

    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor([2.0]), name="w")

        def construct(self, x: Any, n: Any = 3) -> Any:
            asked.append([isinstance(each, Tensor) for each in (x, x * self.w, self.w, n)] + [
                isinstance(x, (int, Tensor)), isinstance(self.w, Parameter), isinstance(x, Parameter)])
            return x * self.w if isinstance(x, Tensor) else self.w

    set_context(mode=mode)
    try:
        assert grad(Net())(Tensor([3.0])).asnumpy() == 2
        assert jit(Net())(Tensor([3.0])).asnumpy() == 6
    finally:
        set_context(mode=PYNATIVE_MODE)
    assert asked
    assert all(each == [True, True, True, False, True, True, False] for each in asked), asked


def test_a_tensor_made_of_a_tensor_is_a_copy_without_a_gradient() -> None:
    def function(x: Any) -> Any:
        return x * Tensor(x) + Tensor(x, opreg.float32) + Tensor(x.shape[0], opreg.float32)

    for wrap in (lambda function: function, jit):
        assert wrap(function)(Tensor([3.0])).asnumpy().tolist() == [13]
        assert grad(wrap(function))(Tensor([3.0])).asnumpy().tolist() == [3]


@pytest.mark.parametrize("decorate", [jit, jit(), jit(check_numbers=True)], ids=["plain", "called", "numbers"])
def test_a_class_of_cells_is_compiled_by_its_construct(decorate: Any) -> None:
    seen: list[int] = []

    @decorate
    class Net(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(Tensor([2.0, 3.0]), name="weight")

        def construct(self, x: Tensor) -> Tensor:
            seen.append(1)
            return x * self.weight

    class Child(Net):
        pass

    assert isinstance(Net, type)
    for net in (Net(), Child()):
        assert isinstance(net, Cell)
        for k in range(3):
            np.testing.assert_array_equal(net(Tensor([1.0, k])).asnumpy(), [2, 3 * k])
        gradient = grad(lambda x, net=net: net(x).sum(), None, net.trainable_params())(Tensor([5.0, 7.0]))
        np.testing.assert_array_equal(gradient[0].asnumpy(), [5, 7])
    assert len(seen) <= 4
