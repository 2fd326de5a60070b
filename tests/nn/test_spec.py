"""Cells, parameters, gradients, bprop and hooks: facts in rows, eagerly and compiled."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opreg import nn, ops
from opreg.cells.cell import Cell
from opreg.cells.grad import grad, no_grad
from opreg.cells.jit import jit
from opreg.cells.parameter import Parameter
from opreg.cells.state import STATE
from opreg.cells.tensor import Tensor
from opreg.core.mode import MODE
from opreg.ndarray import autograd, cpu

Run = Callable[[Any], Any]
X = np.array([1.0, -2.0, 3.0], np.float32)


@pytest.fixture(params=["eager", "compiled"])
def run(request: pytest.FixtureRequest) -> Run:
    return (lambda function: function) if request.param == "eager" else jit


def x() -> Tensor:
    return Tensor(X)


def zeros(name: str = "w") -> Parameter:
    return Parameter(Tensor([0.0, 0.0, 0.0]), name=name)


def numbers(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [numbers(each) for each in value]
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def cell_of(construct: Callable, bprop: Callable | None = None, **attributes: Any) -> Cell:
    """A Cell with this ``construct``, this ``bprop`` and these attributes."""
    cell = type("Made", (Cell,), {"construct": construct} | ({} if bprop is None else {"bprop": bprop}))()
    for name, value in attributes.items():
        setattr(cell, name, value)
    return cell


# ---------------------------------------------------------------------------------------- parameters and state


def _assigns(store: Callable[[Parameter, Any], Any]) -> Callable[[Run], Any]:
    """The result of a function that assigns to a parameter, and the parameter's value, after two runs."""

    def row(run: Run) -> Any:
        w = zeros()

        def function(a: Any) -> Any:
            store(w, a)
            return w + 1

        function = run(function)
        function(x())
        return numbers(function(x())), numbers(w)

    return row


def _gradient_beside(store: Callable[[Parameter, Any], Any]) -> Callable[[Run], Any]:
    """Gradients of a product for its factor and for the parameter, which is assigned before it is read."""

    def row(run: Run) -> Any:
        w = Parameter(Tensor([2.0]), name="w")

        def function(a: Any) -> Any:
            found = store(w, a)
            return (w if found is None else found[0]) * a

        return numbers(run(grad(function, 0, w))(Tensor([5.0]))), numbers(w)

    return row


def _quiet(_: Any) -> None:
    pass


def _whole(w: Parameter, a: Any) -> None:
    w[:] = a


STATE_ROWS = {
    "set_data": (_assigns(lambda w, a: w.set_data(a * 2)), ([3, -3, 7], [2, -4, 6])),
    "set_data of a number": (_assigns(lambda w, a: w.set_data(7.0)), ([8] * 3, [7] * 3)),
    "in place": (_assigns(_whole), ([2, -1, 4], [1, -2, 3])),
    "accumulating": (_assigns(lambda w, a: ops.assign(w, w + a)), ([3, -3, 7], [2, -4, 6])),
    # a Parameter that was assigned holds another number, and is still what is trained (MindSpore in both modes)
    "of itself": (_gradient_beside(lambda w, a: _quiet(ops.assign(w, w * 3))), ([[6], [5]], [6])),
    "of an input": (_gradient_beside(lambda w, a: _quiet(ops.assign(w, a * 3))), ([[15], [5]], [15])),
    "what assign returns": (_gradient_beside(lambda w, a: [ops.assign(w, w * 3 * a)]), ([[30], [5]], [30])),
}


@pytest.mark.parametrize("row", STATE_ROWS)
def test_assignments_set_the_values_of_parameters(run, row):
    function, expected = STATE_ROWS[row]
    assert function(run) == expected


def test_a_tensor_assigned_to_the_attribute_of_a_parameter_is_stored(run):
    def construct(self: Any, a: Any) -> Any:
        self.w = self.w + a
        return self.w * 1

    cell = cell_of(construct, w=zeros())
    function = run(lambda a: cell(a))
    function(x())
    assert numbers(function(x())) == (2 * X).tolist() == numbers(cell.w) and isinstance(cell.w, Parameter)


def test_tensors_that_are_no_parameters_may_be_changed(run):
    held = Tensor([0.0, 0.0, 0.0])

    def function(a: Any) -> Any:
        fresh = Tensor([0.0, 0.0, 0.0])
        fresh[0] = a[1]
        ops.assign(held, a)
        return fresh + a, held * 2, held[0]

    assert numbers(run(function)(x())) == [[-1, -2, 3], [2, -4, 6], 1]
    assert numbers(held) == X.tolist()


def test_mistakes_with_parameters_are_the_same(run):
    narrow, w = Parameter(np.ones(3, np.float16), name="narrow"), zeros()

    def out_of_range(a: Any) -> Any:
        w[5] = 1.0
        return a

    with pytest.raises(TypeError, match="can not be converted to current dtype implicitly: Parameter narrow"):
        run(lambda a: narrow.set_data(a))(x())
    with pytest.raises(ValueError, match="Can not change the shape"):
        run(lambda a: w.set_data(a[:2]))(x())
    with pytest.raises(IndexError):
        run(out_of_range)(x())


def test_an_assignment_to_a_buffer_replaces_it():
    cell = Cell()
    cell.register_buffer("mean", Tensor([1.0]))
    cell.mean = Tensor([5.0])
    assert numbers(cell.mean) == numbers(cell.state_dict()["mean"]) == [5] and numbers(list(cell.buffers())) == [[5]]
    with pytest.raises(TypeError, match="Buffer 'mean' already exists in network, can not assign this type int"):
        cell.mean = 3
    cell.mean = None
    assert cell.mean is None and list(cell.buffers()) == []


# --------------------------------------------------------------------------------------------------- gradients


def test_integers_have_integer_gradients(run):
    found = run(grad(lambda a: a * 3))(Tensor([1, 2]))
    assert str(found.dtype) == "Int64" and numbers(found) == [3, 3]


def test_no_grad_decorates_functions(run):
    @no_grad()
    def held(a: Any) -> Any:
        return a * a

    assert numbers(run(grad(lambda a: held(a) * a))(x())) == (X * X).tolist()
    with pytest.raises(RuntimeError, match="In no_grad context, you can not calculate gradient"):
        run(no_grad()(lambda a: grad(lambda b: b * b)(a)))(x())


def test_no_grad_around_cells_gives_constants(run):
    own = cell_of(lambda self, a: a * 2, lambda self, a, out, dout: (dout * 7,))
    dense = nn.Dense(3, 1, weight_init="ones", has_bias=False)

    def function(a: Any) -> Any:
        with no_grad():
            held, other = own(a), dense(a.reshape(1, 3))
        return (held * a).sum() + (other * a).sum()

    by_input, by_weight = run(grad(function, 0, dense.weight))(x())
    assert numbers(by_input) == (2 * X + 2).tolist() and numbers(by_weight) == [[0] * 3]


def test_a_compiled_function_reads_tensors_from_outside(run):
    def function(c: Any) -> Any:
        return run(lambda a: a * c)(x())

    assert numbers(grad(function)(Tensor([2.0, 2.0, 2.0]))) == X.tolist()
    assert numbers(grad(grad(lambda c: function(c) * c))(x())) == (2 * X).tolist()


# ------------------------------------------------------------------------------------------------------- bprop


def test_bprop_gets_output_gradients_nested_like_the_outputs(run):
    cell = cell_of(lambda self, a: {"p": a * 2, "q": [a * 3, (a * 4,)]},
                   lambda self, a, out, dout: (dout[0] + dout[1][0] * 10 + dout[1][1] * 100,))

    def function(a: Any) -> Any:
        out = cell(a)
        return out["p"] + out["q"][0] + out["q"][1][0]

    assert numbers(run(grad(function))(x())) == [111] * 3


def test_bprop_gives_gradients_of_childrens_parameters_and_unknown_keys_are_ignored(run):
    dense = nn.Dense(3, 1, has_bias=False, weight_init="ones")
    cell = cell_of(lambda self, a: self.dense(a), lambda self, a, out, dout:
                   ((a * 9,), {self.dense.weight: a * 5, "extra": 3}), dense=dense, internal_params=[dense.weight])
    assert numbers(run(grad(lambda a: cell(a), 0, dense.weight))(Tensor([[1.0, 2.0, 3.0]]))) == [
        [[9, 18, 27]], [[5, 10, 15]]]


def test_errors_in_signatures_are_pythons(run):
    cell = cell_of(lambda self, a: a * 2, lambda self, a: a)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 4 were given"):
        run(grad(lambda a: cell(a)))(x())


# ------------------------------------------------------------------------------------------------------- hooks


@pytest.mark.parametrize("register", [
    lambda cell, hook: cell.register_backward_hook(lambda which, arriving, leaving: hook(leaving)),
    lambda cell, hook: cell.register_full_backward_hook(lambda which, leaving, arriving: hook(leaving)),
    lambda cell, hook: cell.register_backward_pre_hook(lambda which, arriving: hook(arriving)),
    lambda cell, hook: cell.register_forward_hook(lambda which, args, out: nn_hook(hook)(out))])
def test_a_gradient_that_a_hook_changes_in_place_and_returns_is_taken(run, register):
    """MindSpore does the same, but ignores in-place changes that are not returned."""
    for returns, first in ((True, 100), (False, 1)):
        cell = cell_of(lambda self, a: a * 1)

        def hook(gradients: Any, returns: bool = returns) -> Any:
            gradients[0][0] = 100.0
            return gradients if returns else None

        register(cell, hook)
        assert numbers(run(grad(lambda a: cell(a)))(x())) == [first, 1, 1]


def nn_hook(hook: Callable) -> Callable:
    """Registers a gradient hook on a tensor."""

    def function(out: Any) -> Any:
        return ops.HookBackward(hook)(out)

    return function


@pytest.mark.parametrize("returned, expected", [
    (lambda g: g[0] * 2, 6), (lambda g: (g[0] * 2,), 6), (lambda g: (g[0], g[0]), TypeError),
    (lambda g: [g[0]], TypeError), (lambda g: 3, TypeError), (lambda g: (None,), TypeError)])
def test_backward_pre_hooks_may_replace_gradients(run, returned, expected):
    cell = cell_of(lambda self, a: a * 3)
    cell.register_backward_pre_hook(lambda which, g: returned(g))
    if expected is TypeError:
        with pytest.raises(TypeError, match="Made: The backward pre hook"):
            run(grad(lambda a: cell(a)))(x())
    else:
        assert numbers(run(grad(lambda a: cell(a)))(x())) == [expected] * 3


def test_a_hook_returns_a_gradient_for_an_unused_output():
    cell = cell_of(lambda self, a: (a * 2, a * 3))
    cell.register_backward_pre_hook(lambda which, g: (g[0], Tensor([1.0] * 3)))
    assert numbers(grad(lambda a: cell(a)[0])(x())) == [5] * 3
    with pytest.raises(ValueError, match="returned a gradient for a missing one"):
        jit(grad(lambda a: cell(a)[0]))(x())


def test_keyword_inputs_are_not_among_the_gradients(run):
    cell, seen = cell_of(lambda self, a, b=None: a * b), []
    cell.register_full_backward_hook(lambda which, leaving, arriving: seen.append(len(leaving)))
    run(grad(lambda a, b: cell(a, b=b), (0, 1)))(x(), x())
    assert seen == [1]


def test_hooks_of_a_cell_without_tensors_run_every_time(run):
    cell, seen = cell_of(lambda self, k: k * 2), []
    cell.register_forward_pre_hook(lambda which, args: seen.append(args))
    cell.register_forward_hook(lambda which, args, out: (seen.append(out), out + 1)[1])
    function = run(lambda a: a * cell(3))
    assert numbers(function(x())) == numbers(function(x())) == (7 * X).tolist()
    assert seen == [(3,), 6] * 2


def test_a_hook_may_return_arrays_and_nan(run):
    cell, traced = cell_of(lambda self, a: (traced.append(1), a * 2)[1]), []
    cell.register_forward_hook(lambda which, args, out: (out, np.ones(2), float("nan")))
    function = run(lambda a: cell(a)[0])
    for _ in range(3):
        assert numbers(function(x())) == (2 * X).tolist()


@pytest.mark.parametrize("raising", ["pre", "construct", "hook"])
def test_hooks_may_be_called_after_an_exception(raising):
    def fail(*_: Any) -> Any:
        raise ArithmeticError("no")

    cell, seen = cell_of(fail if raising == "construct" else lambda self, a: a * 2), []
    if raising == "pre":
        cell.register_forward_pre_hook(fail)
    if raising == "hook":
        cell.register_forward_hook(fail)
    cell.register_forward_hook(lambda which, args, out: seen.append(numbers(out)), always_call=True)
    cell.register_forward_hook(lambda *_: seen.append("never"))
    with pytest.raises(ArithmeticError, match="no"):
        cell(x())
    assert seen == [(2 * X).tolist() if raising == "hook" else None]


def test_hooks_on_arguments_have_the_whole_gradient(run):
    def function(a: Any, hooked: bool = True) -> Any:
        before = a * 3
        if hooked:
            a.register_hook(lambda g: g * 10)
        return before + a * a

    assert numbers(run(grad(function))(x())) == (30 + 20 * X).tolist()
    inner = grad(lambda a: function(a) * a)
    assert numbers(run(inner)(x())) == (10 * (6 * X + 3 * X * X)).tolist()
    assert numbers(run(lambda a: inner(a) + function(a, False))(x())) == (10 * (6 * X + 3 * X * X) + 3 * X + X * X
                                                                          ).tolist()
    outer = grad(lambda a: (a.register_hook(lambda g: g * 2), grad(lambda b: b * b * b)(a))[1])
    assert numbers(run(outer)(x())) == numbers(outer(x()))


def test_hooks_on_tensors_before_anything_is_recorded():
    value, seen = x(), []
    handle = value.register_hook(lambda g: (seen.append(numbers(g)), g * 10)[1])
    value.register_hook(lambda g: g + 1)
    assert numbers(grad(lambda a: a * 2)(value)) == [21] * 3 and seen == [[2] * 3]
    handle.remove()
    assert numbers(grad(lambda a: a * 2)(value)) == [3] * 3

    value = x()
    value.attach_grad()
    value.register_hook(lambda g: g * 10)
    with autograd.record():
        out = value * 2
    out.backward()
    assert numbers(value.grad) == [20] * 3


# --------------------------------------------------------------------------- compiled functions in eager gradients


def _counting(count: Parameter, seen: list[Any]) -> Cell:
    def construct(self: Any, a: Any) -> Any:
        ops.assign(count, count + 1)
        return a * a * count

    cell = cell_of(construct)
    cell.register_forward_hook(lambda *_: seen.append("forward"))
    cell.register_backward_hook(lambda *_: seen.append("backward"))
    return cell


@pytest.mark.parametrize("order", [1, 2])
def test_side_effects_happen_once(run, order):
    """Two calls whose gradients are still pending have gradients of their own values; nothing runs again for them."""
    count, seen = Parameter(Tensor([0.0]), name="count", requires_grad=False), []
    cell = _counting(count, seen)
    inner = run(lambda a: cell(a))
    function: Any = lambda a: inner(a) + inner(a)  # noqa: E731
    for _ in range(order):
        function = grad(function)
    assert numbers(function(Tensor([1.0]))) == [6] and numbers(count) == [2]
    assert seen == ["forward"] * 2 + ["backward"] * 2 * order


def test_random_numbers_of_calls_that_wait_for_their_gradients(run):
    drop = nn.Dropout(p=0.5)
    drop.set_train()
    inner, seen = run(lambda a: drop(a)), []

    def function(a: Any) -> Any:
        seen[:] = inner(a), inner(a)
        return seen[0] + seen[1] * 100

    for _ in range(2):
        found = grad(function)(Tensor(np.ones(64, np.float32)))
        np.testing.assert_allclose(found.asnumpy(), seen[0].asnumpy() + seen[1].asnumpy() * 100)
        seen.clear()  # the holder of the record holds its plan


def test_a_hook_may_call_its_own_cell(run):
    inner = cell_of(lambda self, a: a * 3)
    net = cell_of(lambda self, a: self.inner(a * 2) + a, inner=inner)
    function, asked, seen = run(lambda a: net(a)), [], []

    def hook(*_: Any) -> None:
        if asked:
            asked.pop()
            seen.append(numbers(function(Tensor([10.0] * 3))))

    inner.register_forward_hook(hook)
    for _ in range(3):
        assert numbers(function(x())) == (7 * X).tolist()
        asked.append(1)
    assert seen == [[70] * 3] * 2


def test_a_gradient_may_be_computed_twice(run):
    cell = cell_of(lambda self, a: ops.exp(a) * a)
    function, value = run(lambda a: cell(a)), x()
    value.attach_grad()
    with autograd.record():
        out = function(value) * 2
    for last in (False, True):
        out.backward(retain_graph=not last)
        np.testing.assert_allclose(value.grad.asnumpy(), 2 * np.exp(X) * (1 + X), rtol=1e-5)


def test_errors_in_hooks_name_the_hooks(run):
    def fail(*_: Any) -> None:
        raise ValueError("no")

    for kind, title in (("forward_pre", "forward pre-hook"), ("forward", "forward hook"),
                        ("backward_pre", "backward pre-hook"), ("backward", "backward hook")):
        net = nn.SequentialCell(nn.Dense(3, 3), nn.ReLU())
        getattr(net[1], f"register_{kind}_hook")(lambda *_: None)
        getattr(net[1], f"register_{kind}_hook")(fail)
        with pytest.raises(ValueError, match="no") as caught:
            run(grad(lambda a, net=net: net(a)))(Tensor(X.reshape(1, 3)))
        line = _line(test_errors_in_hooks_name_the_hooks, 'f"register_{kind}_hook")(fail)')
        assert [f"in the {title} {fail.__qualname__} ({__file__}:{line}) of SequentialCell.1"] == [
            note for note in caught.value.__notes__ if "hook " in note]


def test_errors_in_hooks_of_tensors_name_the_hooks(run):
    def fail(_: Any) -> None:
        raise ValueError("no")

    p = Parameter(Tensor(X), name="p")
    p.register_hook(fail)
    line = _line(test_errors_in_hooks_of_tensors_name_the_hooks, "p.register_hook(fail)")
    with pytest.raises(ValueError, match="no") as caught:
        run(grad(lambda a: p * a, None, p))(Tensor(X))
    assert f"in the hook {fail.__qualname__} ({__file__}:{line}) of Parameter p" in caught.value.__notes__

    def hooked(a: Any) -> Any:
        b = a * a
        b.register_hook(fail)
        return ops.HookBackward(fail)(b) if twice else b

    for twice, title in ((False, "hook {} of a tensor"), (True, "function {} of a HookBackward")):
        with pytest.raises(ValueError, match="no") as caught:
            run(grad(hooked))(Tensor(X))
        line = _line(test_errors_in_hooks_of_tensors_name_the_hooks, "HookBackward(fail)" if twice else "b.register_")
        assert f"in the {title.format(f'{fail.__qualname__} ({__file__}:{line})')}" in caught.value.__notes__


def _line(function: Callable, text: str) -> int:
    """Number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


class Thing:
    pass


@pytest.mark.parametrize("returned", ["text", Thing(), {"a": (1, {2})}, [b""], Thing])
@pytest.mark.parametrize("kind", ["forward", "forward_pre"])
def test_results_of_forward_hooks_are_checked_at_once(run, kind, returned):
    def hook(*_: Any) -> Any:
        return returned

    net = nn.SequentialCell(nn.Dense(3, 3), nn.ReLU())
    getattr(net[0], f"register_{kind}_hook")(hook)
    message = r"SequentialCell\.0: the forward (pre-)?hook must return None, or tensors"
    with pytest.raises(TypeError, match=message) as caught:
        run(net)(Tensor(X.reshape(1, 3)))
    assert any(hook.__qualname__ in note for note in caught.value.__notes__)


def test_a_hook_may_return_an_earlier_tensor(run):
    """A hook may return arguments or earlier results of the Cell, and numbers."""

    class Named(Cell):
        def construct(self, a: Any, how: str) -> Any:
            return {"result": a if how == "plain" else a * 2, "how": how}

    net = Named()
    net.register_forward_pre_hook(lambda cell, args: (args[0], "other"))
    net.register_forward_hook(lambda cell, args, out: {"result": out["result"], "how": "hooked", "count": 2})
    found = run(lambda a: net(a, "plain"))(Tensor(X))
    assert found["how"] == "hooked" and found["count"] == 2 and found["result"].asnumpy().tolist() == (2 * X).tolist()


def test_a_pre_hook_that_returns_invalid_inputs_is_named(run):
    net = nn.SequentialCell(nn.Dense(3, 3))

    def cut(cell: Any, args: tuple) -> Any:
        return args[0][:, :2]

    net[0].register_forward_pre_hook(cut)
    line = _line(test_a_pre_hook_that_returns_invalid_inputs_is_named, "hook(cut)")
    with pytest.raises(ValueError, match="2") as caught:
        run(net)(Tensor(X.reshape(1, 3)))
    assert (f"the forward pre-hook {cut.__qualname__} ({__file__}:{line}) of SequentialCell.0 had made Tensor (1, 2) "
            "of its inputs, Tensor (1, 3)") in caught.value.__notes__
    with pytest.raises(ValueError, match="5") as caught:  # an earlier error is not attributed to the hook
        run(nn.SequentialCell(nn.Dense(5, 3)))(Tensor(X.reshape(1, 3)))
    assert not any("pre-hook" in note for note in caught.value.__notes__)


def test_parameters_that_are_not_trained_take_no_hooks():
    p = Parameter(Tensor(X), name="frozen", requires_grad=False)
    with pytest.raises(RuntimeError, match=r"requires grad is false, which can not register tensor hook.*frozen"):
        p.register_hook(print)
    p.requires_grad = True
    p.register_hook(print)
    assert p.hooks() == [print]


def test_hooks_of_tensors_are_listed(run):
    def function(a: Any) -> Any:
        b = a * a
        for each in (a, b):
            assert each.hooks() == []
            handles = each.register_hook(once), each.register_hook(twice)
            assert each.hooks() == [once, twice]
            handles[0].remove()
            assert each.hooks() == [twice]
        return b

    def once(g: Any) -> None:
        raise AssertionError

    def twice(g: Any) -> Any:
        return g * 2

    assert run(grad(function))(Tensor(X)).asnumpy().tolist() == (8 * X).tolist()


# --------------------------------------------------------------------------------------- watched attributes


def test_uncalled_cells_may_have_their_attributes_read():
    class Decorated(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.k = 2.0

        @jit
        def construct(self, a: Any) -> Any:
            return a * self.k

    child = cell_of(lambda self, a: a * self.k, k=2.0)
    net = cell_of(lambda self, a: a * self.child.k, child=child)
    own = Decorated()
    for function, holder in ((net.compile(x()), child), (jit(lambda a: child.construct(a)), child),
                             (jit(child.construct), child), (own, own), (copy.deepcopy(own), None)):
        function(x())
        holder = holder or function
        holder.k = 5.0
        assert numbers(function(x())) == (5 * X).tolist()
        holder.k = 2.0
    assert numbers(own(x())) == (2 * X).tolist()


def test_constants_of_calls_are_distinguished_by_type_and_value():
    function = jit(lambda a, k: a * (k if isinstance(k, np.generic) else k.k))
    for _ in range(3):
        assert numbers(function(x(), np.float32(2))) == (2 * X).tolist()
    assert function.cache_size == 1
    for k in (3.0, 4.0):
        assert numbers(function(x(), type("Same", (), {"k": k}))) == (k * X).tolist()


def test_compiled_functions_compute_in_the_context_of_the_call():
    function = jit(lambda a: a * 2)
    function(x())
    with cpu(1):
        value = x()
    for found in (value * 2, function(value), grad(lambda a: a * a)(value), jit(grad(lambda a: a * a))(value)):
        assert found._ctx == cpu(1)
    assert function(x())._ctx == cpu(0)


def test_dataclasses_are_taken_apart():
    @dataclasses.dataclass(frozen=True)
    class Pair:
        a: Any
        n: int

    found = jit(lambda pair: Pair(pair.a * pair.n, 7))(Pair(x(), 2))
    assert type(found) is Pair and numbers(found.a) == (2 * X).tolist() and found.n == 7


def test_arguments_of_symbols_have_different_names_for_nested_or_equally_named_inputs():
    cell = cell_of(lambda self, p, d: p[0] * p[1][0] + d["k"] * self.d, d=zeros("d"))
    for given in (((x(), [x()]), {"k": x()}), (((3,), [(3,)]), {"k": (3,)})):
        symbol = cell.to_symbol(*given)
        assert sorted(symbol.list_arguments()) == ["d", "d_0", "p_0", "p_1"]
    clash = cell_of(lambda self, w: self.w * w, w=zeros())
    names = clash.to_symbol(x()).list_arguments()
    assert len(set(names)) == 2 and "w" in names


# ------------------------------------------------------------------------------------- copies, threads, processes


def test_pickled_and_copied_cells_compute_the_same():
    net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())
    value = Tensor(X.reshape(1, 3))
    compiled = net.compile(value)
    expected = numbers(compiled(value))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert numbers(other(value)) == numbers(other.compile(value)(value)) == expected
        assert other[0].path == net[0].path and [p.name for p in other.get_parameters()] == [
            p.name for p in net.get_parameters()]
        other[0].weight.set_data(0.0)
        assert numbers(compiled(value)) == expected
    assert pickle.loads(pickle.dumps(_decorated)) is _decorated


@jit
def _decorated(a: Any) -> Any:
    return a * 2


def _in_threads(work: Callable[[int], Any], count: int = 3) -> list[Any]:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda i=i: found.append((i, work(i)))) for i in range(count)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return [value for _, value in sorted(found)]


@pytest.mark.parametrize("hooked", [False, True])
def test_threads_share_a_compiled_function(hooked):
    cell = cell_of(lambda self, a: ops.exp(a * 2) * a)
    if hooked:
        cell.register_forward_hook(lambda which, args, out: out + 1)
        cell.register_backward_hook(lambda *_: None)
    forward, backward = jit(lambda a: cell(a)), jit(grad(lambda a: cell(a)))

    def work(i: int) -> bool:
        data = np.full((64, 64), 0.1 * (i + 1), np.float32)
        return all(np.allclose(forward(Tensor(data)).asnumpy(), np.exp(2 * data) * data + hooked, rtol=1e-5)
                   and np.allclose(backward(Tensor(data)).asnumpy(), np.exp(2 * data) * (1 + 2 * data), rtol=1e-5)
                   for _ in range(20))

    assert _in_threads(work) == [True] * 3


def test_threads_compile_at_once():
    def work(i: int) -> bool:
        return all(np.allclose(jit(grad(lambda a, k=k: ops.exp(a * float(i)) * float(k)))(x()).asnumpy(),
                               k * i * np.exp(X * i), rtol=1e-4) for k in range(10))

    assert _in_threads(work) == [True] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_computes_the_same_with_compiled_functions():
    function = jit(lambda a: ops.exp(a) @ a)
    value = Tensor(np.full((64, 64), 0.1, np.float32))
    expected = numbers(function(value))
    child = os.fork()
    if child == 0:
        os._exit(0 if numbers(function(value)) == expected and numbers(jit(grad(lambda a: a * a))(x())) == (
            2 * X).tolist() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_hooks_and_traces_are_freed():
    assert (STATE.trace, STATE.inside, STATE.nested, STATE.runs, STATE.blocked) == (None, False, False, None, 0)
    assert (MODE.recording, MODE.training) == (False, False)
