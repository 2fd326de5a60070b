"""Declarations of an operator made of a function are checked at once, and hold eagerly and in graphs."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DTypeError, OpError, ShapeError
from tests.questions import of_each

nd, sym = mx.nd, mx.sym
_NUMBERS = itertools.count()


def defined(function: Callable[..., Any], **options: Any) -> Any:
    """Defines an operator under a new name."""
    return mx.operator.define(function, name=f"test_declared_{next(_NUMBERS)}", **options)


def eager(op: Any, *arrays: Any, **attrs: Any) -> Any:
    return op(*[nd.array(each, dtype=np.asarray(each).dtype) for each in arrays], **attrs)


def graph(op: Any, *arrays: Any, **attrs: Any) -> Any:
    arrays = tuple(map(np.asarray, arrays))
    names = [f"x{i}" for i in range(len(arrays))]
    net = op(*map(sym.var, names), name="node", **attrs)
    executor = net.simple_bind(mx.cpu(), grad_req="null", type_dict={n: a.dtype for n, a in zip(names, arrays)},
                               **{n: a.shape for n, a in zip(names, arrays)})
    return executor.forward(**{n: nd.array(a, dtype=a.dtype) for n, a in zip(names, arrays)})[0]


def cell(op: Any, *arrays: Any, **attrs: Any) -> Any:
    return mx.jit(lambda *tensors: op(*tensors, **attrs))(*map(mx.Tensor, arrays))


BOTH = pytest.mark.parametrize("run", [eager, graph])
ALL = pytest.mark.parametrize("run", [eager, graph, cell])


# ----------------------------------------------------------------------------------------------------- dtypes


def _one(x: Any) -> Any:
    return x


def _two(x: Any, ids: Any) -> Any:
    return x


def _state(x: Any, mean: Any) -> Any:
    return x - mean


def _many(x: Any, *xs: Any) -> Any:
    return x


WRONG_TYPES: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (_one, {"types": "flaot32->T"}, "types='flaot32->T': dtype 'flaot32' is not a dtype .* Did you mean 'float32'"),
    (_one, {"types": "T->flaot32"}, "Did you mean 'float32'"),
    (_one, {"types": "T,T->T"}, r"types='T,T->T' names 2 inputs, there is 1 \(x\)"),
    (_two, {"types": "T->T"}, r"names 1 input, there are 2 \(x, ids\): write 'T,T' where"),
    (_two, {"types": "T,U,V->T"}, r"names 3 inputs, there are 2 \(x, ids\)"),
    (_one, {"types": "T->T,T"}, r"names 2 outputs, there is 1 \(output\)"),
    (_one, {"types": "T->T", "outputs": ["a", "b"]}, r"names 1 output, there are 2 \(a, b\)"),
    (_one, {"types": "T->"}, r"names 0 outputs, there is 1"), (_one, {"types": "->T"}, "names 0 inputs"),
    (_one, {"types": "T"}, "expected dtypes of inputs, an arrow and dtypes of outputs, as in 'T->T'"),
    (_one, {"types": "T->T->T"}, "an arrow"), (_one, {"types": "T=>T"}, "an arrow"), (_one, {"types": ""}, "an arrow"),
    (_two, {"types": "T,,->T"}, "missing between"), (_one, {"types": 3}, "expected text, got 3"),
    (_one, {"types": "T->U"}, "'U' is not a dtype of any input"),
    (_one, {"types": "T->@dtpye"}, "no attribute 'dtpye'"),
    (_many, {"types": "T,T,T->T"}, r"names 3 inputs, there are 2 kinds \(x, \*xs\)"),
    (_state, {"types": "T,T,T->T", "auxiliary": ["mean"]}, r"names 3 inputs, there are 2 \(x, mean\)"),
]


@of_each(WRONG_TYPES)
def test_invalid_dtype_signatures_are_refused_at_declaration(function: Any, options: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=f"define: {function.__name__}.*{words}"):
        defined(function, **options)


@of_each([
    (_one, {"types": "T->T"}), (_two, {"types": "T,int32->T"}), (_two, {"types": " T , U -> T "}),
    (_two, {"types": "*T->T"}), (_one, {"types": "T->*T", "outputs": ["a", "b"]}), (_one, {"types": "?->bool"}),
    (_one, {"types": "half->float32"}), (_many, {"types": "T,*U->T"}), (_many, {"types": "*T->T"}),
    (_many, {"types": "T,U->T"}), (_state, {"types": "T->T", "auxiliary": ["mean"]}),
    (_state, {"types": "T,float32->T", "auxiliary": ["mean"]}),
    (lambda x, *, dtype: x.astype(dtype), {"types": "T->@dtype"}), (lambda: nd.ones(2), {"types": "->float32"}),
])
def test_valid_dtype_signatures_are_accepted(function: Any, options: Any) -> None:
    defined(function, **options)


def test_states_have_the_dtype_of_the_first_input_by_default() -> None:
    op = defined(lambda x, ids, mean: x - mean, types="T,int32->T", auxiliary=["mean"])
    assert op.infer_type([np.float64, np.int32])[2] == [np.float64]


@ALL
def test_inputs_of_other_dtypes_are_refused(run: Any) -> None:
    op = defined(lambda x, ids: x.take(ids), types="T,int32->T")
    with pytest.raises(DTypeError, match=f"operator '{op.op_type}': input 'ids' is float32, types='T,int32->T' say "
                                         "int32"):
        run(op, np.ones((3, 2), np.float32), np.float32([0, 1]))
    with pytest.raises(DTypeError, match="input 'y' is float64, types='T,T->T' say float32, as 'x' is"):
        run(defined(lambda x, y: x, types="T,T->T"), np.float32([1]), np.float64([1]))
    assert run(op, np.ones((3, 2), np.float32), np.int32([0, 1])).shape == (2, 2)


@ALL
@pytest.mark.parametrize("made, types, words", [
    (lambda x: x * 1, "T->int32", "types='T->int32' say int32"),
    (lambda x: x * 1, "T->float64", "types='T->float64' say float64"),  # a wider one is refused, too
    (lambda x: np.float64(x.asnumpy()), "T->T", "types='T->T' say float32"),
])
def test_results_of_other_dtypes_are_refused(run: Any, made: Any, types: str, words: str) -> None:
    op = defined(lambda x: made(x), types=types)
    op.infer(lambda x: x)
    found = "float64" if types == "T->T" else "float32"
    with pytest.raises(DTypeError, match=f"operator '{op.op_type}': output 'output' is {found}, {re.escape(words)}"):
        run(op, np.float32([1, 2]))


@ALL
def test_numbers_take_the_dtype_that_is_declared(run: Any) -> None:
    op = defined(lambda x: 3.0, types="T->T")
    assert np.dtype(run(op, np.float32([1, 2])).asnumpy().dtype) == np.float32
    op = defined(lambda x: x.shape[0], types="T->int32")
    assert run(op, np.float32([1, 2])).asnumpy() == 2
    assert run(op, np.float32([1, 2])).asnumpy().dtype == np.int32


@BOTH
def test_results_must_have_the_dtypes_that_a_rule_gives(run: Any) -> None:
    op = defined(lambda x: x * 1)
    op.infer(lambda x: x)
    op.types(lambda ins, outs: (ins, [np.dtype(np.int32)]))
    with pytest.raises(DTypeError, match="output 'output' is float32, its dtype rule says int32"):
        run(op, np.float32([1, 2]))


def test_shapes_are_found_on_the_dtypes_that_are_declared() -> None:
    seen = []

    def taking(x: Any, ids: Any) -> Any:
        seen.append(np.dtype(ids.dtype))
        return x.take(ids)

    op = defined(taking, types="T,int32->T")
    assert op(sym.var("x"), sym.var("ids")).infer_shape(x=(3, 2), ids=(4,))[1] == [(4, 2)]
    assert set(seen) == {np.dtype(np.int32)}


def test_an_input_of_another_dtype_is_named_with_its_source() -> None:
    op = defined(lambda x, ids: x * 1, types="T,int32->T")
    net = op(sym.var("data"), sym.var("ids_label"), name="segment")
    with pytest.raises(DTypeError) as caught:
        net.simple_bind(mx.cpu(), data=(2, 3), ids_label=(2,), type_dict={"ids_label": "float32"})
    assert "input 'ids' is float32, types='T,int32->T' say int32" in str(caught.value)
    assert "ids_label" in "".join([str(caught.value), *caught.value.__notes__])


# ------------------------------------------------------------------------------------------------- attributes


@pytest.mark.parametrize("made, x, y", [
    (lambda op: op, nd.ones(2), nd.ones(2)), (lambda op: op, sym.var("x"), sym.var("y")),
    (lambda op: op, mx.Tensor([1.0]), mx.Tensor([1.0])), (lambda op: op, nd.ones(2), 2.0),
    (lambda op: getattr(nd.custom, op.op_type), nd.ones(2), nd.ones(2)),
    (lambda op: getattr(nd.custom, op.op_type), nd.ones(2), 2.0),
    (lambda op: getattr(sym.custom, op.op_type), sym.var("x"), 2.0),
])
def test_attributes_go_by_keyword_alone(made: Any, x: Any, y: Any) -> None:
    op = defined(lambda x, *, beta=1.0: x * beta)
    with pytest.raises(ArgumentError, match=r"takes 1 input \(x\), got 2; attributes go by keyword, as in beta=1.0"):
        made(op)(x, y)
    made(op)(x, beta=2.0)
    with pytest.raises(ArgumentError, match=r"takes 2 inputs \(x, y\), got 3(\n|$)"):
        made(defined(lambda x, y: x))(x, x, y)


def test_signatures_show_the_star() -> None:
    op = defined(lambda x, *, beta=1.0, axis: x)
    for function in (op, getattr(nd.custom, op.op_type), getattr(sym.custom, op.op_type)):
        parameters = inspect.signature(function).parameters
        assert parameters["beta"].kind is parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY
    assert str(inspect.signature(op)).startswith("(x, *, beta")


# ------------------------------------------------------------------------------------------------------ rules


def _gradient_in_another_order(ins: Any, outs: Any, g: Any) -> Any: ...
def _gradient_of_two(g: Any, ins: Any) -> Any: ...
def _gradient_of_others(g: Any, ins: Any, outs: Any, *, betta: Any) -> Any: ...
def _gradient_in_a_place(g: Any, ins: Any, outs: Any, *, ctx: Any) -> Any: ...
def _shape_of_one(x: Any) -> Any: ...
def _shape_of_three(x: Any, y: Any, z: Any) -> Any: ...
def _shape_of_others(x: Any, y: Any, *, betta: Any) -> Any: ...
def _filled_by_one(ins: Any) -> Any: ...
def _filled_in_another_order(outs: Any, ins: Any) -> Any: ...


WRONG_RULES: list[tuple[str, Any, str]] = [
    ("grad", _gradient_in_another_order, r"takes \(ins, outs, g\), expected \(g, ins, outs, \*, beta\)"),
    ("grad", _gradient_of_two, r"takes \(g, ins\), expected \(g, ins, outs, \*, beta\)"),
    ("grad", _gradient_of_others, "keyword 'betta'. Did you mean 'beta'"),
    ("grad", _gradient_in_a_place, "keyword 'ctx'"),
    ("infer", _shape_of_one, r"takes \(x\), expected \(x, y, \*, beta\): a shape for each"),
    ("infer", _shape_of_three, r"takes \(x, y, z\), expected \(x, y, \*, beta\)"),
    ("infer", _shape_of_others, "keyword 'betta'. Did you mean 'beta'"),
    ("infer_from_data", _shape_of_one, r"takes \(x\), expected \(x, y, \*, beta\): an array for each"),
    ("fill", _filled_by_one, r"takes \(ins\), expected \(ins, outs, \*, beta\)"),
    ("fill", _filled_in_another_order, r"takes \(outs, ins\), expected \(ins, outs, \*, beta\)"),
    ("types", _filled_by_one, r"takes \(ins\), expected \(ins, outs, \*, beta\)"),
    ("shapes", _filled_by_one, r"takes \(ins\), expected \(ins, outs, \*, beta\)"),
    ("grad", 3, "expected a function, got 3"),
]


@of_each(WRONG_RULES)
def test_rules_that_cannot_be_called_are_refused_at_once(kind: str, rule: Any, words: str) -> None:
    op = defined(lambda x, y, *, beta: x)
    with pytest.raises((ArgumentError, TypeError), match=words) as caught:
        getattr(op, kind)(rule)
    assert op.op_type in str(caught.value)
    if callable(rule):
        assert "test_declared.py:" in str(caught.value)
    assert op.rules.grad is None and not op.rules.data_dependent  # a refused operator is not registered


@of_each([
    ("grad", lambda g, ins, outs: g), ("grad", lambda dy, xs, ys, *, beta: dy), ("grad", lambda *given, beta: given),
    ("grad", lambda g, ins, outs, *, is_train, needs: g), ("grad", lambda g, ins, outs, **attrs: g),
    ("grad", lambda g, ins, outs, *, eps=1e-3: g), ("infer", lambda *shapes: shapes[0]),
    ("infer", lambda a, b, *, beta: a), ("infer", lambda a, b, c=None: a), ("fill", lambda shapes, others: shapes),
])
def test_rules_of_every_valid_signature_are_accepted(kind: str, rule: Any) -> None:
    getattr(defined(lambda x, y, *, beta: x), kind)(rule)


def test_a_shape_rule_of_any_number_of_inputs_takes_any_number() -> None:
    op = defined(lambda x, *xs: x)
    with pytest.raises(ArgumentError, match=r"takes \(x\), expected \(x, \*xs\)"):
        op.infer(lambda x: x)
    op.infer(lambda x, *xs: x)


# ------------------------------------------------------------------------------- shapes that depend on values


def _positive(x: Any) -> Any:
    x = x.asnumpy()
    return nd.array(x[x > 0], dtype=x.dtype)


def _count(x: Any) -> Any:
    return (int((x.asnumpy() > 0).sum()),)


def _scattered(g: Any, ins: Any, outs: Any) -> Any:
    x, g = ins[0].asnumpy(), g.asnumpy()
    result = np.zeros_like(x)
    result[x > 0] = g
    return nd.array(result, dtype=x.dtype)


def compressing(shape: Any = _count) -> Any:
    op = defined(_positive)
    op.infer_from_data(shape)
    op.grad(_scattered)
    return op


ROWS = [[1.0, -1.0, 2.0], [-1.0, -2.0, 3.0], [1.0, 2.0, 3.0], [-1.0, -1.0, -1.0]]


def test_executors_compute_value_dependent_shapes_and_their_gradients() -> None:
    op = compressing()
    net = op(sym.var("x"), name="op") * 2
    executor = net.simple_bind(mx.cpu(), x=(3,))
    loaded = sym.load_json(net.tojson()).simple_bind(mx.cpu(), x=(3,))
    for row in ROWS:
        expected = 2 * np.float32([each for each in row if each > 0])
        slope = [2.0 * (each > 0) for each in row]
        for each in (executor, loaded):
            (out,) = each.forward(is_train=True, x=nd.array(row))
            np.testing.assert_array_equal(out.asnumpy(), expected)
            each.backward(nd.ones(out.shape))
            np.testing.assert_array_equal(each.grad_dict["x"].asnumpy(), slope)
        x = nd.array(row)
        x.attach_grad()
        with mx.autograd.record():
            y = op(x) * 2
        y.backward()
        np.testing.assert_array_equal(y.asnumpy(), expected)
        np.testing.assert_array_equal(x.grad.asnumpy(), slope)  # type: ignore[union-attr]
    mx.operator.check(op, [0.5, -0.3, 1.2]).raise_if_failed()


def compressed(prop: bool, dims: Any = (None,)) -> Callable[[Any], Any]:
    """An operator that keeps the positive elements, as a function or as a Prop."""
    if not prop:
        return compressing()

    class Body(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], _positive(in_data[0]))

        def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
            self.assign(in_grad[0], req[0], _scattered(out_grad[0], in_data, out_data))

    name = f"test_declared_{next(_NUMBERS)}"

    @mx.operator.register(name)
    class Prop(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape: Any) -> Any:
            return in_shape, [dims], []

        def infer_shape_from_data(self, in_data: Any) -> Any:
            return [_count(in_data[0])]

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Body()

    return lambda z: mx.ops.Custom(z, op_type=name)


def test_a_prop_whose_shapes_follow_from_numbers_has_none_by_default() -> None:
    class Positive(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], _positive(in_data[0]))

    class Prop(mx.operator.CustomOpProp):
        def infer_shape_from_data(self, in_data: Any) -> Any:
            return [_count(in_data[0])]

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return Positive()

    name = f"test_declared_{next(_NUMBERS)}"
    mx.operator.register(name)(Prop)
    executor = mx.sym.Custom(mx.sym.var("x"), op_type=name).simple_bind(mx.cpu(), x=(3,), grad_req="null")
    for row in ROWS:
        expected = np.float32([each for each in row if each > 0])
        np.testing.assert_array_equal(mx.nd.Custom(mx.nd.array(row), op_type=name).asnumpy(), expected)
        np.testing.assert_array_equal(executor.forward(x=mx.nd.array(row))[0].asnumpy(), expected)


#: Functions of an operator ``op`` whose shape depends on values.
BEHIND: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda op, x: op(x),
    "a sum": lambda op, x: (op(x) * 2).sum(),
    "products": lambda op, x: op(x) * op(x) * x.sum(),
    "its shape": lambda op, x: op(x) * op(x).shape[0] + len(op(x)),
    "a branch on its shape": lambda op, x: op(x).sum() if op(x).shape[0] > 1 else x * 3,
    "a number before": lambda op, x: op(x * 2) if x.sum() > 0 else op(-x),
    "one behind another": lambda op, x: op(op(x * 2) - 2.5) * 3,
    "in a Cell": lambda op, x: _Inner(op)(x) * 2,
    "recomputed": lambda op, x: _Inner(op).recompute()(x * 2) + 1,
    "a branch of ops": lambda op, x: mx.ops.cond(x.sum() > 0, lambda: op(x).sum(), lambda: x.sum()),
    "before and behind": lambda op, x: mx.ops.exp(x).sum() * mx.ops.exp(op(mx.ops.relu(x) - 0.5)).sum()}


class _Inner(mx.nn.Cell):
    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op

    def construct(self, x: Any) -> Any:
        return self.op(x)

    def recompute(self) -> Any:  # type: ignore[override]
        super().recompute()
        return self


#: Ways to use a function.
GOES: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "value": lambda f: f, "gradient": lambda f: mx.value_and_grad(lambda x: (f(x) ** 2).sum())}


@pytest.mark.parametrize("goes", GOES)
@pytest.mark.parametrize("body", BEHIND)
@pytest.mark.parametrize("prop", [False, True])
@pytest.mark.filterwarnings("error:.*runs as Python")
def test_compiled_functions_continue_after_value_dependent_shapes(prop: bool, body: str, goes: str) -> None:
    op, asked = compressed(prop), GOES[goes]

    def function(x: Any) -> Any:
        return BEHIND[body](op, x)

    for compiled in (mx.jit(asked(function)), asked(mx.jit(function))):
        for row in ROWS + ROWS:
            x = mx.Tensor(np.float32(row))
            for found, expected in zip(_flat(compiled(x)), _flat(asked(function)(x)), strict=True):
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_allclose(found, expected, rtol=1e-6)


def _flat(value: Any) -> list[Any]:
    return [each.asnumpy() for each in (value if isinstance(value, tuple) else [value])]


def test_there_is_a_plan_for_each_shape_and_the_operator_runs_once_in_each_run() -> None:
    calls = []

    def body(x: Any) -> Any:
        calls.append(1)
        return _positive(x)

    op = defined(body)
    op.infer_from_data(_count)
    compiled = mx.jit(lambda z: op(z * 2).sum())
    for row in [*ROWS, *reversed(ROWS)]:
        compiled(mx.Tensor(np.float32(row)))
    assert len(calls) == 2 * len(ROWS) and compiled.cache_size == 1
    assert compiled.explain().count("_guard") == 4  # three, two, one and none


def test_training_after_value_dependent_shapes_equals_eager_training() -> None:
    op = compressing()

    class Net(mx.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = mx.Parameter(mx.Tensor(np.float32([1, 2, 3])), name="w")
            self.drop = mx.nn.Dropout(p=0.5)

        def construct(self, x: Any) -> Any:
            return (op(self.drop(x * self.w)) ** 2).sum()

    def trained(compiled: bool) -> list[Any]:
        mx.random.seed(4)
        net = Net()
        step = mx.nn.TrainOneStepCell(net, mx.nn.SGD(net.trainable_params(), 0.01))
        step.set_train()
        run = mx.jit(step) if compiled else step
        return [[run(mx.Tensor(np.float32(row))).asnumpy().tolist(), net.w.asnumpy().tolist()] for row in ROWS * 3]

    for found, expected in zip(trained(True), trained(False)):
        np.testing.assert_allclose(np.hstack(found), np.hstack(expected), rtol=1e-6)


@pytest.mark.filterwarnings("error:.*runs as Python")
def test_gradient_rules_may_have_such_shapes_within() -> None:
    op = defined(lambda x: x * x, traced=True)

    def slope(g: Any, ins: Any, outs: Any) -> Any:
        x = ins[0]
        kept = mx.nd.contrib.boolean_mask(2 * g * x, x > 0)
        return mx.nd._internal._backward_contrib_boolean_mask(kept, x > 0, x)

    op.grad(slope)
    first = mx.grad(lambda x: (op(x) * x).sum())
    for asked in (first, mx.grad(lambda x: (first(x) ** 2).sum())):
        compiled = mx.jit(asked)
        for row in ROWS:
            x = mx.Tensor(np.float32(row))
            np.testing.assert_array_equal(compiled(x).asnumpy(), asked(x).asnumpy())


@pytest.mark.parametrize("function, why", [
    (lambda op, x: op(_printed(x)), "after a hook, a print or what several processes do, which would be called twice"),
    (lambda op, x: mx.ops.cond(x.sum() > 0, lambda: op(x * 2).sum(), lambda: x.sum()),
     "in the body of a loop or a branch, where they differ between iterations")])
def test_a_trace_that_cannot_go_on_says_why_and_where(function: Any, why: str) -> None:
    op = compressing()
    compiled, rows = mx.jit(lambda z: function(op, z)), [mx.Tensor(np.float32(row)) for row in ROWS]
    with pytest.warns(UserWarning, match=rf"runs as Python: the output shape of operator {op.op_type!r} depends on "
                                         rf"values {why} \(.*test_declared.py:\d+\)"):
        found = [compiled(x).asnumpy() for x in rows]
    np.testing.assert_equal(found, [function(op, x).asnumpy() for x in rows])


def _printed(x: Any) -> Any:
    mx.ops.Print()("", x)
    return x


@pytest.mark.filterwarnings("error:.*runs as Python")
def test_states_of_such_an_operator_move() -> None:
    def body(x: Any, seen: Any) -> Any:
        found = _positive(x)
        seen[:] = seen + len(found)
        return found

    op = defined(body, auxiliary=["seen"])
    op.infer_from_data(lambda x, seen: _count(x))
    op.grad(lambda g, ins, outs: _scattered(g, ins, outs))

    def run(make: Any) -> list[Any]:
        state = mx.Parameter(mx.Tensor(np.float32([0])), name="seen", requires_grad=False)
        call = make(mx.value_and_grad(lambda z: (op(z * 2, state) ** 2).sum() + state.sum()))
        return [[*_flat(call(mx.Tensor(np.float32(row)))), state.asnumpy().copy()] for row in ROWS * 2]

    np.testing.assert_equal(run(mx.jit), run(lambda f: f))


@pytest.mark.parametrize("rule, words", [
    (lambda x: [(1,), (2,)], "expected a shape for each of its outputs"), (lambda x: (1,), "function returned"),
    (lambda x: 1 // 0, "by zero")])
def test_a_wrong_rule_is_reported_in_compiled_functions(rule: Any, words: str) -> None:
    op = compressing(rule)
    with pytest.raises((OpError, ZeroDivisionError), match=words) as told:
        mx.jit(lambda z: op(z).sum())(mx.Tensor(np.float32(ROWS[0])))
    assert op.op_type in "".join([str(told.value), *told.value.__notes__])


@pytest.mark.parametrize("dims", [(None,), [None]])
@pytest.mark.filterwarnings("error:.*runs as Python")
def test_props_leave_dimensions_open_as_tuples_and_lists(dims: Any) -> None:
    compress = compressed(True, dims)
    assert mx.jit(compress)(mx.Tensor(np.float32(ROWS[0]))).asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize("shape, words", [
    (lambda x: [(1,), (2,)], r"returned \[\(1,\), \(2,\)\], expected a shape for each of its outputs \(output\)"),
    (lambda x: "ab", "returned 'ab', expected a shape"), (lambda x: None, "returned None, expected a shape"),
    (lambda x: (1.5,), r"returned \(1.5,\), expected a shape"),
])
def test_invalid_results_of_shape_rules_are_refused(shape: Any, words: str) -> None:
    op = compressing(shape)
    executor = op(sym.var("x")).simple_bind(mx.cpu(), x=(3,))
    with pytest.raises(ArgumentError, match=f"operator {op.op_type!r}: its rule infer_from_data "
                                            f"{words}"):
        executor.forward(x=nd.array(ROWS[0]))


def test_a_rule_that_is_wrong_is_named() -> None:
    op = compressing(lambda x: (1,))
    executor = op(sym.var("x")).simple_bind(mx.cpu(), x=(3,))
    with pytest.raises(ShapeError, match=rf"function returned \(2,\); its rule, @{op.op_type}.infer_from_data, says"):
        executor.forward(x=nd.array(ROWS[0]))


def test_known_dimensions_may_be_declared() -> None:
    op = defined(lambda x: nd.array(x.asnumpy()[x.asnumpy()[:, 0] > 0]))
    op.infer(lambda x: (None, x[1]))
    op.infer_from_data(lambda x: (int((x.asnumpy()[:, 0] > 0).sum()), x.shape[1]))
    net = op(sym.var("x"))
    assert net.infer_shape_partial(x=(3, 2))[1] == [(0, 2)]
    executor = net.simple_bind(mx.cpu(), x=(3, 2))
    for numbers in (np.float32([[1, 2], [-1, 3], [4, 5]]), np.float32([[-1, 2], [-1, 3], [4, 5]])):
        out = executor.forward(x=nd.array(numbers))[0]
        np.testing.assert_array_equal(out.asnumpy(), numbers[numbers[:, 0] > 0])
