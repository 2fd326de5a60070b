"""A kernel, gradient or rule registered for an operator in use takes effect in everything that was prepared before."""

from __future__ import annotations

import functools
import gc
import inspect
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import opreg as mx
from opreg.core import invalidation as records
from opreg.core.attrs import Schema
from opreg.core.declarations import ZERO
from opreg.core.invalidation import invalidate
from opreg.core.op import Op
from opreg.core.parameters import parameters_of
from opreg.core.registry import _OPS, REGISTERED, alias, declare, get, ops, register
from opreg.core.spec import Spec
from opreg.core.subgraph import Subgraph, fits, rule_graph
from opreg.errors import ArgumentError, AttrError, ShapeError
from opreg.testing.uses import Use
from tests.questions import of_each
from tests.rows import all_rows

nd, sym, autograd = mx.nd, mx.sym, mx.autograd
X = np.float32([1, 2, 3])


def operator() -> Op:
    """An operator that doubles, with a wrong gradient; it is not registered."""
    op = Op("doubled", Schema([]), ("data",))
    op.where = None  # like a built-in one; users' operators are not prepared
    op.kernel()(lambda xp, data: data * 2)
    op.grad(lambda g, ins, outs: (g * 5,))
    return op


class Eager:
    """Eager calls and their gradients."""

    def __init__(self, op):
        self.op = op
        self.x = nd.array(X)
        self.x.attach_grad()

    def __call__(self):
        with autograd.record():
            y = self.op(self.x)
        y.backward()
        return y.asnumpy(), self.x.grad.asnumpy()


class OfTheGradient(Eager):
    """Calls of an operator whose gradient contains the tested one."""

    def __init__(self, op):
        outer = operator()
        outer.grad(lambda g, ins, outs: (op(g),))
        super().__init__(outer)

    def __call__(self):
        return super().__call__()[1], None


class Called(Eager):
    """Calls of a symbol on arrays."""

    def __init__(self, op):
        super().__init__(nd.CachedOp(op(mx.sym.var("x"))))


class Bound:
    """Executors of the operator alone, and fused with others."""

    def __init__(self, op, more=lambda y: y, monitor=None):
        self.executor = more(op(mx.sym.var("x"))).simple_bind(mx.cpu(), x=(3,))
        self.executor.arg_dict["x"][:] = X
        if monitor:
            self.executor.set_monitor_callback(monitor)

    def __call__(self):
        y = self.executor.forward(is_train=True)[0].asnumpy()
        inference = self.executor.forward(is_train=False)[0].asnumpy()
        np.testing.assert_array_equal(y, inference)
        self.executor.forward(is_train=True)
        self.executor.backward(nd.ones(3))
        return y, self.executor.grad_dict["x"].asnumpy()


class Compiled:
    """Calls of a compiled function and of a compiled gradient."""

    def __init__(self, op):
        self.function = mx.jit(lambda x: op(x))
        self.gradient = mx.jit(mx.grad(lambda x: op(x).sum()))

    def __call__(self):
        x = mx.Tensor(X)
        np.testing.assert_array_equal(mx.grad(self.function)(x).asnumpy(), self.gradient(x).asnumpy())
        return self.function(x).asnumpy(), self.gradient(x).asnumpy()


USES = {
    "eager": Eager, "in a gradient": OfTheGradient, "CachedOp": Called, "executor": Bound,
    "fused": lambda op: Bound(op, lambda y: y * 1 + 0), "watched": lambda op: Bound(op, monitor=lambda *_: None),
    "compiled": Compiled,
}


def kernel(op):
    op.kernel("better")(lambda xp, data: data * 3)
    return 3, 5


def kernel_that_declines(op):
    op.kernel("better", accepts=lambda call: "no")(lambda xp, data: data * 3)
    return 2, 5


def gradient(op):
    op.grad(lambda g, ins, outs: (g * 2,))
    return 2, 2


def no_gradient(op):
    op.grad(ZERO)
    return 2, 0


REGISTRATIONS = {each.__name__: each for each in (kernel, kernel_that_declines, gradient, no_gradient)}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_a_later_registration_is_used(registration, use):
    op = operator()
    run = USES[use](op)
    for _ in range(3):
        value, slope = run()
        np.testing.assert_array_equal(value, X * 2 if slope is not None else [2, 2, 2])
    factor, expected = REGISTRATIONS[registration](op)
    for _ in range(2):
        value, slope = run()
        if slope is None:
            np.testing.assert_array_equal(value, [factor] * 3)
        else:
            np.testing.assert_array_equal(value, X * factor)
            np.testing.assert_array_equal(slope, [expected] * 3)


def test_symbols_that_are_kept_call_an_operator_that_is_registered_again():
    def register(factor):
        mx.operator.define(lambda x: x * factor, name="_example_registered_again")

    register(2)
    symbol, x = mx.sym.custom._example_registered_again(mx.sym.var("x")), nd.array(X)
    block = mx.gluon.SymbolBlock(symbol, mx.sym.var("x"))
    ways = [nd.CachedOp(symbol), block, lambda x: symbol.eval(x=x)[0]]
    for factor in (2, 3, 5):
        register(factor)
        for way in ways:
            np.testing.assert_array_equal(way(x).asnumpy(), X * factor)


def test_later_rules_for_shapes_and_dtypes_are_used():
    op = operator()
    assert op(nd.array(X)).asnumpy().tolist() == [2, 4, 6]
    op.types(lambda ins, outs: (ins, [np.dtype("float64")]))
    assert op(nd.array(X)).dtype is np.float64
    op.infer(lambda data: (1, *data))
    op.kernel()(lambda xp, data: data[None])
    assert op(nd.array(X)).shape == (1, 3)
    assert op(mx.sym.var("x")).infer_shape(x=(3,))[1] == [(1, 3)]


def test_earlier_records_use_a_gradient_that_is_registered_later():
    op, x = operator(), nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = op(x)
    y.backward(retain_graph=True)
    op.grad(lambda g, ins, outs: (g * 2,))
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]


def test_a_function_registered_again_is_the_new_one():
    def define(factor):
        @mx.operator.define(name="test_registration_again")
        def function(x):
            return x * factor

    x = nd.array(X)
    define(2)
    assert nd.custom.test_registration_again(x).asnumpy().tolist() == [2, 4, 6]
    assert mx.sym.custom.test_registration_again(mx.sym.var("x")).eval(x=x)[0].asnumpy().tolist() == [2, 4, 6]
    define(3)
    assert nd.custom.test_registration_again(x).asnumpy().tolist() == [3, 6, 9]
    assert mx.sym.custom.test_registration_again(mx.sym.var("x")).eval(x=x)[0].asnumpy().tolist() == [3, 6, 9]


# ------------------------------------------------------------------------- replaced operators


@pytest.fixture
def instead():
    """Registers an operator under a used name, with a kernel and a gradient; the old one is restored afterwards."""
    before: dict[str, Op] = {}

    def put(name: str, kernel: Callable, gradient: Callable | None = None,
            signature: Callable = lambda data: None) -> Op:
        before.setdefault(name, get(name))
        op = declare(signature, name=name)
        op.kernel()(kernel)
        if gradient is not None:
            op.grad(gradient)
        return op

    yield put
    for op in before.values():
        register(op)


def test_every_way_to_call_an_operator_calls_its_replacement(instead):
    from opreg.nd import tanh

    function, x, old, before = nd.tanh, nd.array(X), sym.tanh(sym.var("x")), get("tanh")
    compiled = mx.jit(lambda x: ops.tanh(x))
    ways = {
        "kept": lambda: function(x), "imported": lambda: tanh(x), "found": lambda: nd.tanh(x),
        "nd.op": lambda: nd.op.tanh(x), "ops": lambda: ops.tanh(x), "method": lambda: x.tanh(),
        "symbol": lambda: sym.tanh(sym.var("x")).eval(x=x)[0], "old symbol": lambda: old.eval(x=x)[0],
        "part of an old one": lambda: (old + 0).get_internals()[old.list_outputs()[0]].eval(x=x)[0],
        "old CachedOp": lambda: nd.CachedOp(old)(x), "compiled": lambda: compiled(mx.Tensor(X)),
        "file": lambda: sym.load_json(old.tojson()).eval(x=x)[0], "tensor": lambda: mx.Tensor(X).tanh()}
    first = {name: way().asnumpy() for name, way in ways.items()}
    instead("tanh", lambda xp, data: data + 100)
    for name, way in ways.items():
        np.testing.assert_array_equal(way().asnumpy(), X + 100, name)
    np.testing.assert_array_equal(before(x).asnumpy(), first["found"])  # the record itself does not change
    register(before)
    for name, way in ways.items():
        np.testing.assert_array_equal(way().asnumpy(), first[name], name)


def test_a_bound_executor_keeps_its_operators_and_takes_up_new_ones_in_gradients(instead):
    y = sym.tanh(sym.var("x"))
    executor, x = y.simple_bind(mx.cpu(), x=(3,)), nd.array(X)

    def both(executor):
        out = executor.forward(is_train=True, x=x)[0].asnumpy()
        executor.backward([nd.ones(3)])
        return out, executor.grad_dict["x"].asnumpy()

    out, _ = both(executor)
    instead("_backward_tanh", lambda xp, g, output: g * 7, signature=lambda g, output: None)
    for bound in (executor, y.simple_bind(mx.cpu(), x=(3,))):
        np.testing.assert_array_equal(both(bound)[1], [7, 7, 7])
    instead("tanh", lambda xp, data: data + 100, lambda g, ins, outs: (g * 9,))
    with pytest.warns(UserWarning, match="operator 'tanh' was registered again after an executor was bound"):
        np.testing.assert_array_equal(both(executor)[0], out)
    np.testing.assert_array_equal(both(executor)[0], out)
    np.testing.assert_array_equal(executor.forward(x=x)[0].asnumpy(), out)
    np.testing.assert_array_equal(both(y.simple_bind(mx.cpu(), x=(3,))), [X + 100, [9, 9, 9]])


def test_earlier_records_keep_the_gradient_of_the_replaced_operator(instead):
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = nd.square(x)
    instead("square", lambda xp, data: data + 100, lambda g, ins, outs: (g * 9,))
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * X)


@pytest.mark.parametrize("name, function", [
    ("_mul_scalar", lambda x: x * 2), ("_rminus_scalar", lambda x: 2 - x), ("_greater_scalar", lambda x: x > 2)])
def test_pythons_operators_use_a_new_registration(name, function, instead):
    x, before = nd.array(X), get(name)
    first = function(x).asnumpy()

    def signature(data, *, scalar: float = 1.0, is_int: bool = True):
        pass

    instead(name, lambda xp, data, *, scalar, is_int: data * 0 + 50, signature=signature)
    assert function(x).asnumpy().tolist() == [50, 50, 50]
    x += 0  # an array whose class is the same
    assert function(x).asnumpy().tolist() == [50, 50, 50]
    register(before)
    np.testing.assert_array_equal(function(x).asnumpy(), first)
    before.kernel("another")(lambda xp, data, *, scalar, is_int: data * 0 + 60)
    try:
        assert function(x).asnumpy().tolist() == [60, 60, 60]
    finally:
        before.kernels.pop()
        invalidate(before)
    np.testing.assert_array_equal(function(x).asnumpy(), first)


@pytest.mark.parametrize("name, build", [
    ("_copy", lambda x: sym._copy(x)), ("BlockGrad", lambda x: sym.BlockGrad(x)), ("relu", lambda x: sym.relu(x)),
    ("Cast", lambda x: sym.Cast(x * 2, dtype="float32")), ("zeros_like", lambda x: x + sym.zeros_like(x))])
def test_passes_ignore_users_operators_with_built_in_names(name, build, instead):
    """A pass for a built-in operator does not apply to a user's operator of the same name."""
    def cast(data, *, dtype: str):
        pass

    instead(name, lambda xp, data, **attrs: data + 100, lambda g, ins, outs, **attrs: (g,),
            cast if name == "Cast" else lambda data: None)
    executor = (build(sym.var("x")) * 2).simple_bind(mx.cpu(), x=(3,))
    factor = {"Cast": 2, "zeros_like": 2}.get(name, 1)
    np.testing.assert_array_equal(executor.forward(x=nd.array(X))[0].asnumpy(), (X * factor + 100) * 2)


def test_an_error_names_a_symbol_that_does_not_fit_the_new_operator(instead):
    y, z = sym.square(sym.var("x"), name="mine"), sym.sum(sym.var("x"), axis=1, name="reduced")
    instead("square", lambda xp, a, b: a, signature=lambda a, b: None)
    with pytest.raises(ArgumentError, match=r"'mine'.* has 2 inputs \(a, b\), the node has 1.*make the symbol again"):
        y.simple_bind(mx.cpu(), x=(3,))
    instead("sum", lambda xp, data: data)
    with pytest.raises(AttrError, match="unknown attribute 'axis'") as caught:
        z.simple_bind(mx.cpu(), x=(3, 3))
    assert any("'reduced'" in text for text in caught.value.__notes__)


def test_an_alias_that_is_given_to_another():
    x = nd.array(X)
    try:
        alias(get("square"), "_test_alias")
        function, symbol = nd._test_alias, sym._test_alias(sym.var("x"))
        assert function(x).asnumpy().tolist() == [1, 4, 9]
        alias(get("negative"), "_test_alias")
        assert function(x).asnumpy().tolist() == nd._test_alias(x).asnumpy().tolist() == [-1, -2, -3]
        # the node has the operator that the alias named before
        assert symbol.eval(x=x)[0].asnumpy().tolist() == [1, 4, 9]
        assert nd.square(x).asnumpy().tolist() == [1, 4, 9]
    finally:
        del _OPS["_test_alias"]
        for op in (get("square"), get("negative")):
            op.aliases = tuple([name for name in op.aliases if name != "_test_alias"])


def test_a_registration_while_a_call_is_prepared_is_used_by_the_next_call():
    op = operator()
    op.kernels.clear()

    @functools.partial(op.in_parts, takes_out=False)
    def decide(xp, data):  # as another thread may
        if len(op.kernels) == 1:
            op.kernel("better")(lambda xp, data: data * 3)
        return lambda data: data * 2

    assert [op(nd.array(X)).asnumpy().tolist() for _ in range(3)] == [[2, 4, 6], [3, 6, 9], [3, 6, 9]]


def _rule(use: Use) -> Subgraph:
    """The traced gradient rule of a use."""
    op, attrs = use.op, use.attrs
    ins, nothing = [Spec(each.shape, each.dtype) for each in use.arrays], [None] * len(op.signature.outputs(attrs))
    _, shapes = op.infer_shapes([spec.shape for spec in ins], list(nothing), attrs)
    _, dtypes = op.infer_dtypes([spec.dtype for spec in ins], list(nothing), attrs)
    outs = list(map(Spec, shapes, dtypes))
    arriving = [i < op.signature.visible(attrs) for i in range(len(outs))]
    needs = [np.issubdtype(each.dtype, np.floating) for each in use.arrays]
    return rule_graph(op, attrs, arriving, needs, use.train, [*outs, *ins, *outs])


RULES = {row.op: row for row in reversed(all_rows())
         if row.grad and fits(get(row.op)) and get(row.op).rules.grad is not None}


@of_each(sorted(RULES))
def test_rules_of_gradients_call_operators_by_name(name):
    use = Use.of(RULES[name])
    for other in dict.fromkeys(op for op, *_ in _rule(use).steps):
        # derived from a body: it is found through the body's operator, not by name
        if other.name.startswith("_gradient_"):
            continue
        assert REGISTERED[other.name] is other
        try:
            twin = Op.__new__(Op)  # a copy with the same state, registered under the name
            vars(twin).update(vars(other))
            register(twin)
            assert other not in [op for op, *_ in _rule(use).steps], f"{other.name} is called as the object it was"
        finally:
            register(other)


def test_unused_libraries_are_not_notified():
    told = []

    class Keeper:
        def on_register(self, op):
            told.append(op)

    keeper, op = Keeper(), operator()
    records.watch(keeper)
    op.kernel("unused")(lambda xp, data: data)
    assert not told
    op(nd.array(X))
    for attach in (op.infer, op.fill, op.types, op.view, op.in_parts, op.grad, op.flops, op.recompute, op.few_rows,
                   op.norm, op.tail, op.kernel(), op.raw_grad, op.inline, op.body):
        attach(lambda *_: None)
    assert told == [op] * 15
    keeper = None
    op.grad(lambda *_: None)
    assert len(told) == 15


def test_dependents_of_an_operator_are_not_kept_alive():
    op = operator()
    run, function = Bound(op), mx.jit(lambda x: op(x))
    run()
    held = [weakref.ref(run.executor), weakref.ref(function)]
    del run, function
    gc.collect()
    assert [each() for each in held] == [None, None]


def test_a_user_hears_of_an_annotation_that_means_nothing_at_the_declaration():
    def _example_annotated(data, *, factor: Missing = 1.0): ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(NameError, match="Missing"):
        declare(_example_annotated)
    assert "_example_annotated" not in REGISTERED


def _plain(data, /, weight, *rest, axis, keepdims=False, **attrs):
    pass


@functools.wraps(_plain)
def _wrapped(*args, **attrs):
    pass


class _Called:
    def __call__(self, data, *, axis=1):
        pass


@pytest.mark.parametrize("function", [
    _plain, _wrapped, functools.partial(_plain, axis=3), _Called(), _Called().__call__, lambda: None,
    lambda data, *more: None, lambda *, axis: None], ids=[
    "plain", "wrapped", "partial", "object", "method", "of nothing", "variadic", "keywords"])
def test_parameters_are_those_of_the_signature(function: Callable):
    """The fast reading of parameters agrees with ``inspect.signature``."""
    parameters, names = inspect.signature(function).parameters.values(), parameters_of(function)
    assert names.positional == tuple(p.name for p in parameters if p.kind in (
        p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    assert names.keyword_only == tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    assert dict(names.defaults) == {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY
                                    and p.default is not p.empty}
    assert (names.variadic, names.open) == (any(p.kind is p.VAR_POSITIONAL for p in parameters),
                                            any(p.kind is p.VAR_KEYWORD for p in parameters))


@pytest.mark.parametrize(("name", "attrs", "shapes", "wrong"), [
    ("_backward_ctc_loss", {}, [(2,), (5, 2, 4), (2, 3), (2,), (5, 2, 7)], {"g": 0, "output0": 3, "output1": 4}),
    ("_contrib_backward_hawkesll", {}, [(2,), (2, 3), (2, 3), (3,), (3,), (2, 3), (2, 4), (2, 4), (2,), (2,)],
     {"g": 0, "g_out_state": 1}),
    ("_backward_softmax_cross_entropy", {}, [(1,), (2, 4), (2,)], {"g": 0}),
    ("_backward_Pooling_v1", {"kernel": (2, 2)}, [(1, 1, 3, 3), (1, 1, 4, 4), (1, 1, 3, 3)], {"g": 0, "maxima": 2}),
    ("_backward_diag", {"k": 1}, [(2,), (3, 3)], {"g": 0}),
    ("_backward_subscript", {"key": (slice(None), 0)}, [(2,), (2, 3)], {"g": 0}),
])
def test_gradients_by_name_refuse_other_shapes(name, attrs, shapes, wrong):
    """Gradients of outputs, and outputs, have the shapes that the operator gives them for its inputs."""
    op = get(name)
    typed = op.complete(attrs)
    outs = [None] * len(op.signature.outputs(typed))
    ins = [shape for key, shape in zip(op.signature.arguments(typed), shapes) if key not in wrong]
    assert op.infer_shapes(list(shapes), list(outs), typed)[1] == ins[:len(outs)]
    for key, place in wrong.items():
        others = [*shapes[:place], (9,) * len(shapes[place]), *shapes[place + 1:]]
        with pytest.raises(ShapeError, match=rf"^{key}: expected shape \(.*, got \(9"):
            op.infer_shapes(others, list(outs), typed)
