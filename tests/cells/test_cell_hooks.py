"""Hooks of Cells: their arguments and results, in both modes."""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg
from opreg.cells.cell import Cell
from opreg.cells.grad import grad, value_and_grad
from opreg.cells.handles import convention
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.tensor import Tensor
from opreg.cells.tensor_hooks import HookBackward
from opreg.core.registry import ops
from opreg.ndarray import autograd
from tests.cells.hooked_cells import RUNS, Weighted, X, numbers, x
from tests.questions import of_each
from tests.recorded.mindspore_hooks import CASES, asked


class Triple(Cell):
    def construct(self, x: Any) -> Any:
        return x * 3


class Outer(Cell):
    def __init__(self, inner: Cell) -> None:
        super().__init__()
        self.inner = inner

    def construct(self, *inputs: Any, **keywords: Any) -> Any:
        return self.inner(*inputs, **keywords)


class Own(Cell):
    """A Cell that doubles; its bprop returns seven times the output gradient."""

    def construct(self, x: Any) -> Any:
        return x * 2

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (dout * 7,)


# ------------------------------------------------------------------------------------------------ forward


@pytest.mark.parametrize("returned, factor", [
    (lambda args: None, 3), (lambda args: (args[0] * 2,), 6), (lambda args: args[0] * 2, 6)])
def test_forward_pre_hook_replaces_inputs(run, returned, factor):
    cell, seen = Triple(), []

    def hook(which: Any, args: Any) -> Any:
        assert which is cell
        seen.append(numbers(args))
        return returned(args)

    cell.register_forward_pre_hook(hook)
    value, gradient = run(value_and_grad(cell))(x())
    assert numbers(value) == (X * factor).tolist() and numbers(gradient) == [factor] * 3
    assert seen == [(X.tolist(),)]


def test_a_list_from_a_forward_pre_hook_is_one_input(run):
    cell = Triple()
    cell.construct = lambda first: first[0] * 3  # type: ignore[method-assign]
    cell.register_forward_pre_hook(lambda which, args: [args[0]])
    assert numbers(run(lambda a: cell(a))(x())) == (X * 3).tolist()


def test_hooks_may_receive_and_replace_keywords(run):
    cell, seen = Weighted(), []
    net = Outer(cell)

    def pre(which: Any, args: Any, kwargs: Any) -> Any:
        seen.append(sorted(kwargs))
        return args, {"scale": kwargs["scale"] * 2}

    def post(which: Any, args: Any, kwargs: Any, out: Any) -> Any:
        seen.append(kwargs)
        return out[0]

    cell.register_forward_pre_hook(pre, with_kwargs=True)
    cell.register_forward_hook(post, with_kwargs=True)
    out = run(lambda a, b: net(a, b, scale=5.0))(x(), x())
    assert numbers(out) == (X * np.array([1, 2, 3]) * 10).tolist()
    assert seen == [["scale"], {"scale": 10.0}]


def test_forward_hooks_run_in_order_and_receive_the_last_result(run):
    cell, seen = Triple(), []
    for name, add, first in (("a", 1, False), ("b", 10, False), ("c", 100, True)):
        def hook(which: Any, args: Any, out: Any, name: str = name, add: int = add) -> Any:
            seen.append((name, numbers(out)[0]))
            return out + add

        cell.register_forward_hook(hook, prepend=first)
    assert numbers(run(cell)(x()) if run is not jit else cell.compile(x())(x())) == (X * 3 + 111).tolist()
    assert seen == [("c", 3.0), ("a", 103.0), ("b", 104.0)]


@pytest.mark.parametrize("returned, expected", [
    (lambda out: (out, out[:1]), (X * 3, X[:1] * 3)), (lambda out: {"y": out}, None), (lambda out: out.sum(), None),
    (lambda out: out.astype(np.float16), None)])
def test_a_forward_hook_may_return_anything(returned, expected):
    cell, calls = Triple(), []
    before = Outer(cell)
    before.register_forward_pre_hook(lambda which, args: calls.append("pre"))
    cell.register_forward_hook(lambda which, args, out: (calls.append("hook"), returned(out))[1])
    eager, compiled = before(x()), before.compile(x())
    for _ in range(2):
        found = compiled(x())
        assert type(found) is type(eager)
        for a, b in zip(_leaves(found), _leaves(eager)):
            np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
            assert a.dtype == b.dtype
    assert calls == ["pre", "hook"] * 3  # no hook runs twice when the function is traced again


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, (tuple, list)) else [value]


def test_fresh_data_cuts_the_gradient(run):
    for register in ("register_forward_pre_hook", "register_forward_hook"):
        cell = Triple()
        getattr(cell, register)(lambda *_: Tensor(np.ones(3, np.float32)))
        assert numbers(run(grad(cell))(x())) == [0, 0, 0]


def test_a_hook_with_always_call_runs_after_an_exception():
    class Fails(Cell):
        def construct(self, x: Any) -> Any:
            raise ArithmeticError("no")

    cell, seen = Fails(), []
    cell.register_forward_hook(lambda which, args, out: seen.append(("always", out)), always_call=True)
    cell.register_forward_hook(lambda which, args, out: seen.append(("never", out)))
    with pytest.raises(ArithmeticError, match="no"):
        cell(x())
    assert seen == [("always", None)]


def test_forward_hooks_of_a_cell_with_bprop_run(run):
    cell, seen = Own(), []
    cell.register_forward_pre_hook(lambda which, args: seen.append("pre"))
    cell.register_forward_hook(lambda which, args, out: (seen.append("post"), out * 10)[1])
    cell.register_backward_hook(lambda which, arriving, leaving: seen.append((numbers(arriving), numbers(leaving))))
    assert numbers(run(grad(cell))(x())) == [70, 70, 70]
    assert seen == ["pre", "post", (([10] * 3,), ([70] * 3,))]


# ------------------------------------------------------------------------------------------------ backward


def test_a_backward_hook_gets_input_and_output_gradients(run):
    cell, seen = Triple(), []
    handle = cell.register_backward_hook(lambda *given: seen.append((given[0], numbers(given[1:]))))
    gradient = run(grad(lambda a: cell(a * 5) * 2))
    assert numbers(gradient(x())) == [30] * 3
    assert seen == [(f"Triple({id(cell)})", (([2] * 3,), ([6] * 3,)))]
    handle.remove()
    handle.remove()
    assert numbers(gradient(x())) == [30] * 3 and len(seen) == 1


@pytest.mark.parametrize("how", ["full", "argument", "manager"])
def test_full_backward_hooks_receive_cell_and_gradients(run, how):
    cell, seen = Triple(), []

    def hook(which: Any, grad_input: Any, grad_output: Any) -> None:
        seen.append((which is cell, numbers(grad_input), numbers(grad_output)))

    if how == "full":
        cell.register_full_backward_hook(hook)
    elif how == "argument":
        cell.register_backward_hook(hook, convention="2.4")
    else:
        with convention("2.4"):
            cell.register_backward_hook(hook)
    run(grad(lambda a: cell(a * 5) * 2))(x())
    assert seen == [(True, ([6] * 3,), ([2] * 3,))]


#: Answers of MindSpore 2.10, by kind of hook, its place, and its result.
RECORDED = {tuple(case): answer for case, answer in json.loads(
    (Path(__file__).parent.parent / "recorded" / "mindspore_hooks.json").read_text())["cases"]}


@pytest.mark.filterwarnings("ignore:.*it returns")  # several outputs, whose gradients are summed
@of_each(itertools.product(CASES, RUNS), by=lambda case: f"{case[1]}-{case[0][0]}")
def test_hooks_are_called_and_replace_as_in_mindspore(case, way):
    """MindSpore's convention holds for arguments, results, the gradients that follow, and the kinds of errors."""
    run = RUNS[way]
    with convention("2.4"):
        answer, expected = json.loads(json.dumps(asked(opreg, case, run))), RECORDED[case]
    assert answer["called"] == expected["called"]
    assert answer.get("gradient") == expected.get("gradient")
    assert expected.get("error") in [None, *answer.get("error", ())]


@pytest.mark.parametrize("returned, expected", [
    (lambda g: None, 3), (lambda g: (g[0] * 2,), 6), (lambda g: g[0] * 2, 6)])
def test_a_backward_hook_replaces_the_gradients_of_inputs(run, returned, expected):
    cell = Triple()
    cell.register_backward_hook(lambda name, arriving, leaving: returned(leaving))
    assert numbers(run(grad(cell))(x())) == [expected] * 3


def test_backward_pre_hook_runs_first_and_changes_weights_gradients_too(run):
    cell, seen = Weighted(), []
    cell.register_backward_pre_hook(lambda which, g: (seen.append(("pre", numbers(g))), (g[0] * 10, g[1]))[1])
    cell.register_full_backward_hook(lambda which, gi, go: (seen.append(("post", numbers(gi), numbers(go))),
                                                            (gi[0] * 0, gi[1]))[1])
    y = Tensor([1.0, 1.0, 1.0])
    gradients, by_weight = run(grad(lambda a, b: sum(cell(a, b), Tensor([0.0] * 3)), (0, 1), cell.w))(x(), y)
    one = [1.0] * 3
    assert seen == [("pre", (one, one)), ("post", ([10, 20, 30], [2] * 3), ([10] * 3, one))]
    assert numbers(gradients) == ([0] * 3, [2] * 3)
    assert numbers(by_weight) == (X * 10).tolist()


def test_backward_hooks_see_outputs_before_or_after_forward_hooks(run):
    """By the documents, backward hooks see the output before forward hooks; by later versions, after them."""
    seen: list[Any] = []
    inner = Triple()
    inner.register_forward_hook(lambda which, inputs, out: out * inputs[0])
    handle = inner.register_backward_hook(lambda name, arriving, leaving: seen.append((arriving, leaving)))
    assert numbers(run(grad(lambda a: inner(a)))(x())) == (6 * X).tolist()
    handle.remove()
    inner.register_full_backward_hook(lambda which, leaving, arriving: seen.append((arriving, leaving)))
    inner.register_backward_pre_hook(lambda which, arriving: arriving[0] * 2)
    assert numbers(run(grad(lambda a: inner(a)))(x())) == (12 * X).tolist()
    assert numbers(seen) == (((X.tolist(),), ((3 * X).tolist(),)), (([2, 2, 2],), ((12 * X).tolist(),)))


def test_output_gradients_of_unused_outputs_are_none(run):
    cell, seen = Weighted(), []
    cell.register_full_backward_hook(lambda which, gi, go: seen.append((go[1], numbers(gi))))
    run(grad(lambda a, b: cell(a, b)[0], 0))(x(), x())
    assert seen[0][0] is None and seen[0][1][0] == [1, 2, 3]


def test_a_hook_is_called_even_if_no_input_needs_a_gradient(run):
    cell, seen = Weighted(), []
    cell.register_full_backward_hook(lambda which, gi, go: seen.append((gi, numbers(go[0]))))
    run(grad(lambda a: cell(a, a)[0], None, cell.w))(x())
    assert len(seen) == 1 and seen[0][1] == [1] * 3 and all(g is None for g in seen[0][0])


def test_hooks_cannot_set_gradients_that_are_not_requested(run):
    """If only gradients of weights are wanted, a gradient that a hook returns for an input has no effect."""
    cell = Weighted()
    cell.register_full_backward_hook(lambda which, leaving, arriving: (arriving[0], arriving[0]))
    assert numbers(run(grad(lambda a: cell(a, a)[0], None, cell.w))(x())) == X.tolist()


def test_backward_hooks_are_not_called_in_inference(run):
    cell, seen = Triple(), []
    cell.register_backward_hook(lambda *_: seen.append(1))
    run(lambda a: cell(a))(x())
    assert seen == []


def test_one_call_of_the_hook_for_each_call_of_the_cell(run):
    cell, seen = Triple(), []
    cell.register_backward_hook(lambda name, arriving, leaving: seen.append(numbers(arriving)[0][0]))
    run(grad(lambda a: cell(cell(a))))(x())
    assert seen == [1.0, 3.0]


def test_a_backward_hook_is_called_for_second_derivatives(run):
    """The hook is called for the first gradient, and again for the part of it that is differentiated, as in
    MindSpore."""
    class Square(Cell):
        def construct(self, a: Any) -> Any:
            return a * a

    cell, seen = Square(), []
    cell.register_full_backward_hook(lambda which, gi, go: seen.append((numbers(gi), numbers(go))))
    assert numbers(run(grad(grad(lambda a: cell(a) * a)))(Tensor(2.0))) == 12
    assert seen == [((8,), (2,)), ((8,), (1,))]


# ------------------------------------------------------------------------------------- handles and life time


def test_hooks_may_be_registered_and_removed_after_compilation():
    cell, seen = Triple(), []
    compiled = jit(grad(lambda a: cell(a)))
    compiled(x())
    with cell.register_backward_hook(lambda *_: seen.append("backward")):
        with cell.register_forward_hook(lambda *_: seen.append("forward")):
            compiled(x())
            compiled(x())
        compiled(x())
    compiled(x())
    assert seen == ["forward", "backward"] * 2 + ["backward"]


def test_a_hook_may_remove_itself(run):
    cell, seen = Triple(), []

    def hook(*_: Any) -> None:
        seen.append(1)
        handle.remove()

    handle = cell.register_forward_hook(hook)
    function = run(lambda a: cell(a))
    function(x())
    function(x())
    assert seen == [1]


def test_handles_do_not_keep_cells_alive():
    cell = Triple()
    handle = cell.register_forward_hook(lambda *_: None)
    gone = weakref.ref(cell)
    del cell
    gc.collect()
    assert gone() is None
    handle.remove()


def test_hooks_are_listed_and_dropped():
    net = Outer(Weighted())
    net.inner.register_forward_hook(lambda *_: None)
    net.register_backward_hook(lambda *_: None)
    net.inner.w.register_hook(lambda g: None)
    assert sorted(net.hooks()) == [":backward", "inner.w:gradient", "inner:forward"]
    assert all(__file__ in str(hook) for hooks in net.hooks().values() for hook in hooks)
    net.remove_hooks()
    assert net.hooks() == {}


def test_deepcopy_keeps_hooks():
    import copy

    cell, seen = Triple(), []
    cell.register_forward_hook(lambda which, args, out: seen.append(which))
    other = copy.deepcopy(cell)
    other(x())
    assert len(seen) == 1 and seen[0] is other


# --------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("register", ["register_forward_pre_hook", "register_forward_hook", "register_backward_hook",
                                      "register_backward_pre_hook", "register_full_backward_hook"])
def test_objects_that_are_no_functions_are_refused(register):
    with pytest.raises(TypeError, match="Expected a callable hook function, but got int"):
        getattr(Triple(), register)(3)
    with pytest.raises(TypeError, match="compiled"):
        getattr(Triple(), register)(jit(lambda *_: None))


@pytest.mark.parametrize("returned, kind, message", [
    (lambda g: (g[0], g[0]), TypeError, "size is 2 not equal to expect grad input size 1"),
    (lambda g: 3, TypeError, "got int"), (lambda g: [g[0]], TypeError, "got list"),
    (lambda g: (None,), TypeError, "got NoneType at 0"), (lambda g: (np.ones(3),), TypeError, "ndarray at 0"),
    (lambda g: g[0].sum(), ValueError, r"shape \(\), expected \(3,\)"),
    (lambda g: g[0].astype(np.float16), ValueError, "dtype float16, expected float32")])
def test_wrong_returns_of_backward_hooks(run, returned, kind, message):
    net = Outer(Triple())
    net.inner.register_backward_hook(lambda name, arriving, leaving: returned(leaving))
    with pytest.raises(kind, match=message) as caught:
        run(grad(lambda a: net(a)))(x())
    assert "Outer.inner" in str(caught.value)
    with pytest.raises(kind, match=message):
        run(grad(lambda a: HookBackward(returned)(a) * 2))(x())
    net.remove_hooks()
    assert numbers(run(grad(lambda a: net(a)))(x())) == [3] * 3


def test_kinds_of_errors_of_wrong_returns(run):
    """A wrong count is a ValueError from a HookBackward, a RuntimeError from a pre-hook with keywords."""
    with pytest.raises(ValueError, match="size is 4 not equal to expect grad input size 2"):
        run(grad(lambda a: sum(HookBackward(lambda g: g + g)(a, a))))(x())
    net = Outer(Triple())
    handle = net.register_backward_pre_hook(lambda cell, arriving: arriving * 2)
    with pytest.raises(TypeError, match="size is 2 not equal to expect output size 1"):
        run(grad(lambda a: net(a)))(x())
    handle.remove()
    net.register_forward_pre_hook(lambda cell, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), got tuple"):
        run(net)(x())


@pytest.mark.parametrize("register", ["register_forward_pre_hook", "register_forward_hook", "register_backward_hook",
                                      "register_backward_pre_hook"])
def test_exceptions_keep_their_type_and_leave_no_state_behind(run, register):
    cell = Triple()

    class Mine(Exception):
        pass

    def hook(*_: Any) -> None:
        raise Mine("hook")

    function = run(grad(grad(lambda a: cell(a * a) * a)))
    plain = run(grad(lambda a: a * a * a))
    handle = getattr(cell, register)(hook)
    for _ in range(2):
        with pytest.raises(Mine, match="hook"):
            function(x())
        np.testing.assert_allclose(plain(x()).asnumpy(), 3 * X * X)
    handle.remove()
    np.testing.assert_allclose(function(x()).asnumpy(), 18 * X)


def test_gradients_in_hooks_are_copies(run):
    """A hook that changes a gradient in place has no effects elsewhere."""

    class Sibling(Cell):
        def construct(self, a: Any) -> Any:
            return a + 0

    cell = Sibling()

    def hook(name: str, arriving: Any, leaving: Any) -> None:
        arriving[0][0] = 100.0
        leaving[0][0] = 100.0

    cell.register_backward_hook(hook)
    assert numbers(run(grad(lambda a: cell(a) + a))(x())) == [2] * 3


def test_a_backward_hook_may_call_grad():
    cell, seen = Triple(), []
    cell.register_backward_hook(lambda *_: seen.append(numbers(grad(lambda b: b * b)(Tensor(3.0)))))
    grad(cell)(x())
    assert seen == [6]


def test_backward_hooks_inside_a_cell_with_bprop_are_not_called():
    class ParameterContainer(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Triple()

        def construct(self, a: Any) -> Any:
            return self.inner(a)

        def bprop(self, a: Any, out: Any, dout: Any) -> Any:
            return (dout,)

    for run in (lambda function: function, jit):
        cell, seen = ParameterContainer(), []
        cell.inner.register_forward_hook(lambda *_: seen.append("forward"))
        cell.inner.register_backward_hook(lambda *_: seen.append("backward"))
        run(grad(lambda a: cell(a)))(x())
        assert seen == ["forward"]


def test_a_hook_may_call_operators(run):
    cell = Triple()
    cell.register_forward_hook(lambda which, args, out: ops.exp(out))
    np.testing.assert_allclose(run(grad(lambda a: cell(a)))(x()).asnumpy(), 3 * np.exp(3 * X), rtol=1e-6)


# --------------------------------------------------------------------------------------------- hooks of each run


class Registers(Cell):
    """A Cell that registers hooks while it runs, in each possible way."""

    def __init__(self, how: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.how, self.w = how, Parameter(Tensor([1.0]), name="w")

    def construct(self, x: Any) -> Any:
        self.how(self, x)
        return x * self.w


def _twice(cell: Any, x: Any) -> None:
    for hook in (lambda *_: None, _look):
        cell.register_forward_hook(hook).remove()
    if not cell.hooks():
        cell.register_forward_hook(_look)


def _look(*_: Any) -> None:
    pass


@pytest.mark.parametrize("how, on", [
    (lambda cell, x: cell.register_forward_hook(lambda *_: None), "Registers"),
    (lambda cell, x: cell.register_forward_hook(_look), "Registers"),
    (lambda cell, x: cell.w.register_hook(lambda g: None), "Parameter")])
def test_a_hook_that_every_run_registers_is_reported(how: Callable[[Any, Any], Any], on: str) -> None:
    cell = Registers(how)
    cell(Tensor([1.0]))
    with pytest.warns(UserWarning, match=f"is registered on {on}.* each time that a Cell runs.*in __init__") as said:
        cell(Tensor([1.0]))
    assert [(each.filename, each.lineno) for each in said] == [(__file__, how.__code__.co_firstlineno)]


def test_hooks_that_are_removed_or_registered_once_are_not_reported() -> None:
    def inside(cell: Any, x: Any) -> None:
        with cell.register_forward_hook(lambda *_: None):
            pass
        x.register_hook(lambda g: None)

    for how in (_twice, inside):
        cell = Registers(how)
        for _ in range(3):
            grad(lambda x, cell=cell: cell(x))(Tensor([1.0]))
    plain = Registers(lambda cell, x: None)
    for hook in (_look, _look):
        plain.register_forward_hook(hook)


def test_each_input_of_a_cell_with_hooks_has_its_own_gradient() -> None:
    class Both(Cell):
        def construct(self, x: Any, y: Any) -> Any:
            self.held = x, y
            return x * 2 + y * 3

    cell = Both()
    cell.register_backward_hook(lambda *_: None)
    x, y = Tensor(np.float32([1])), Tensor(np.float32([2]))
    for each in (x, y):
        each.attach_grad()
    with autograd.record():
        out = cell(x, y)
    out.backward()
    assert [each.grad.asnumpy().tolist() for each in cell.held] == [[2.0], [3.0]]


@of_each([
    ("register_forward_pre_hook", {}, "a forward pre-hook takes 2 arguments: cell, inputs"),
    ("register_forward_pre_hook", {"with_kwargs": True}, "takes 3 arguments: cell, inputs, keywords"),
    ("register_forward_hook", {}, "a forward hook takes 3 arguments: cell, inputs, output"),
    ("register_backward_pre_hook", {}, "a backward pre-hook takes 2 arguments: cell, output_gradients"),
    ("register_backward_hook", {}, "a backward hook takes 3 arguments: cell_id, output_gradients, input_gradients"),
])
def test_the_error_of_a_hook_that_does_not_take_its_arguments_lists_them(method: str, options: dict[str, bool],
                                                                         words: str) -> None:
    cell = Triple()
    getattr(cell, method)(lambda: None, **options)
    with pytest.raises(TypeError) as caught:
        grad(lambda a: cell(a))(x())
    assert any(words in note for note in caught.value.__notes__)
