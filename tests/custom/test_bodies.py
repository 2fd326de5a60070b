"""Traced operators called eagerly: recipes of their bodies are cached, and give the results of the bodies."""

from __future__ import annotations

import itertools
import textwrap
import tracemalloc
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.errors import NotDifferentiableError, OpError, ShapeError
from opreg.ndarray import bodies

nd, autograd = mx.nd, mx.autograd
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def registered(unregistered: None) -> None:
    """Removes the operators of a test after it."""


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of operators, one for each trace of a body."""
    traced: list[str] = []
    trace = bodies.trace_body

    def watch(op: Any, *args: Any) -> Any:
        traced.append(op.name.removeprefix("custom."))
        return trace(op, *args)

    monkeypatch.setattr(bodies, "trace_body", watch)
    bodies._BODIES.clear()
    return traced


def defined(function: Callable, **how: Any) -> Any:
    return mx.operator.define(function, name=f"test_body_{next(_NUMBERS)}", traced=True, **how)


def as_prop(function: Callable) -> Callable:
    """The function as a traced Prop of one input and one output."""
    name = f"test_body_{next(_NUMBERS)}"

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], function(in_data[0]))

    @mx.operator.register(name)
    class Prop(mx.operator.CustomOpProp):
        traced = True

        def create_operator(self, ctx, shapes, dtypes):
            return Op()

    return lambda x: nd.Custom(x, op_type=name)


KINDS = {"function": defined, "Prop": as_prop}


def differentiated(function: Callable, *arrays: np.ndarray, train_mode: bool = True) -> list[np.ndarray]:
    """Outputs, then gradients of all inputs, for output gradients that differ from each other."""
    inputs = [nd.array(array, dtype=array.dtype) for array in arrays]
    for each in inputs:
        each.attach_grad()
    with autograd.record(train_mode):
        outs = function(*inputs)
    outs = outs if isinstance(outs, (list, tuple)) else [outs]
    autograd.backward(list(outs), [nd.array(np.arange(1, out.size + 1).reshape(out.shape), dtype=out.dtype)
                                   for out in outs], train_mode=train_mode)
    return [each.asnumpy() for each in outs] + [each.grad.asnumpy() for each in inputs]


def agree(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-6 if one.dtype == np.float32 else 1e-12, atol=1e-7)


X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


# ------------------------------------------------------------------------------------ the same as what is called

def paused(x: nd.NDArray) -> nd.NDArray:
    with autograd.pause(autograd.is_training()):
        scale = nd.tanh(x)
    return scale * x


def written_detached(x: nd.NDArray) -> nd.NDArray:
    part = (x * 2).detach()
    part[0] = 3.0
    return part * x


BODIES: dict[str, tuple[Callable, int]] = {
    "swish": (lambda x: x * nd.sigmoid(x * 2), 1),
    "identity": (lambda x: x, 1),
    "the same twice": (lambda x: [x * 2] * 2, 1),
    "an input beside a result": (lambda x, y: (x, x * y), 2),
    "a constant": (lambda x: nd.ones((2, 3), dtype=x.dtype), 1),
    "constants within": (lambda x: x * nd.array([[1, 2, 3]]).astype(x.dtype), 1),
    "broadcast": (lambda x, y: nd.broadcast_mul(x, y.sum(axis=0, keepdims=True)) + y, 2),
    "layer norm": (lambda x, y: nd.LayerNorm(x, y[0], y[1]) * x, 2),
    "products": (lambda x, y: nd.dot(x, y.T), 2),
    "in parts": (lambda x: nd.concat(x[:1] * x[1:], nd.exp(x[1:]), dim=0), 1),
    "where": (lambda x: nd.where(x > 0, x, 0.1 * x), 1),
    "one unused": (lambda x, y: x * 3, 2),
    "no gradient": (lambda x: nd.floor(x) + nd.BlockGrad(x) * x, 1),
    "detached": (lambda x: x.detach() * x + (x * x).detach(), 1),
    "a written detached array": (written_detached, 1),
    "paused": (paused, 1),
    "NumPy": (lambda x: np.tanh(x.asnumpy()) * x.asnumpy(), 1),
}


def _arrays(count: int, dtype: str) -> list[np.ndarray]:
    return [(X * scale).astype(dtype) for scale in (1, 0.75)[:count]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in BODIES if name != "NumPy"])
def test_eager_calls_equal_the_function(name: str, dtype: str) -> None:
    function, count = BODIES[name]
    arrays = _arrays(count, dtype)
    outputs = {"the same twice": 2, "an input beside a result": 2}.get(name, 1)
    op = defined(function, outputs=[f"output{i}" for i in range(outputs)])
    expected = differentiated(function, *arrays) if name != "a constant" else [np.ones((2, 3), dtype), X * 0]
    for _ in range(3):
        found = differentiated(op, *arrays)
        agree(found, [each.astype(dtype) for each in expected])
    other = [each * each.dtype.type(0.5) for each in arrays]  # through stored values
    if name != "a constant":
        agree(differentiated(op, *other), differentiated(function, *other))


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_in_numpy_are_traced(kind: str) -> None:
    op, x = KINDS[kind](BODIES["NumPy"][0]), X.astype("float64")
    for _ in range(3):
        agree(differentiated(op, x), [np.tanh(x) * x, np.arange(1, 7).reshape(2, 3) * (np.tanh(x) + x / np.cosh(x)**2)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["swish", "where", "in parts", "no gradient", "constants within"])
def test_bodies_have_second_derivatives(kind: str, name: str) -> None:
    function = BODIES[name][0]

    def second(call: Callable) -> list[np.ndarray]:
        x = nd.array(X, dtype="float64")
        x.attach_grad()
        with autograd.record():
            first = autograd.grad([call(x)], [x], create_graph=True, retain_graph=True)[0]
            y = (first * first * x).sum()
        y.backward()
        return [first.asnumpy(), x.grad.asnumpy()]

    op = KINDS[kind](function)
    for _ in range(3):
        agree(second(op), second(function))


def test_only_requested_inputs_get_gradients() -> None:
    op = defined(lambda x, y: nd.exp(x) * y + nd.dot(x, nd.dot(x.T, y)))
    for wanted in ([0], [1], [0, 1], [1], [0]):
        inputs = [nd.array(each, dtype="float64") for each in _arrays(2, "float64")]
        for i in wanted:
            inputs[i].attach_grad()
        with autograd.record():
            y = op(*inputs)
        y.backward()
        expected = differentiated(lambda x, y: (nd.exp(x) * y + nd.dot(x, nd.dot(x.T, y))).sum(),
                                  *_arrays(2, "float64"))[1:]
        for i in wanted:
            np.testing.assert_allclose(inputs[i].grad.asnumpy(), expected[i], rtol=1e-12)


def test_integers_have_no_gradient() -> None:
    op = defined(lambda x, i: nd.take(x, i) * 2, types="T,int32->T")
    x, i = nd.array(X, dtype="float64"), nd.array([1, 0, 1], dtype="int32")
    x.attach_grad()
    for _ in range(2):
        with autograd.record():
            y = op(x, i)
        y.backward()
        assert x.grad.asnumpy().tolist() == [[2] * 3, [4] * 3]


def test_gradients_are_added_on_request() -> None:
    op, x = defined(lambda x: x * x), nd.array(X)
    x.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            y = op(x)
        y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * X, rtol=1e-6)


@pytest.mark.parametrize("is_train", [True, False])
@pytest.mark.parametrize("body", [lambda x: nd.Dropout(x, p=0.5) * 2, lambda x: nd.Dropout(x, p=0.5)],
                         ids=["within", "last"])
def test_random_values_are_drawn_anew_and_gradients_are_those_of_the_draw(body: Callable, is_train: bool) -> None:
    op, x = defined(body), np.ones((40,))
    draws = [differentiated(op, x, train_mode=is_train) for _ in range(3)]
    for out, grad in draws:
        np.testing.assert_allclose(grad, out * np.arange(1, 41))
    same = np.array_equal(draws[0][0], draws[1][0]) and np.array_equal(draws[1][0], draws[2][0])
    assert same != is_train, "in training each call draws its own"
    mx.random.seed(3)
    first = differentiated(op, x, train_mode=is_train)
    mx.random.seed(3)
    agree(differentiated(op, x, train_mode=is_train), first)


def test_the_mode_is_that_of_the_call() -> None:
    op = defined(lambda x, *, is_train: x * (2 if is_train else 3))
    x = nd.ones(2)
    for _ in range(2):
        with autograd.train_mode():
            assert op(x).asnumpy().tolist() == [2, 2]
        assert op(x).asnumpy().tolist() == [3, 3]


def test_attributes_shapes_and_dtypes_are_distinguished() -> None:
    op = defined(lambda x, *, k: x * k)
    for k, dtype, size in itertools.product((1, 2.5, True, 2), ("float32", "float64", "int32"), (2, 3)):
        if dtype == "int32" and k == 2.5:
            continue
        found = op(nd.ones(size, dtype=dtype), k=k)
        assert (found.asnumpy().tolist(), found.dtype.__name__) == ([k] * size, dtype)


def test_a_traced_operator_may_call_another() -> None:
    inner = defined(lambda x: nd.tanh(x) * x)
    outer = defined(lambda x: inner(x * 2) + x)
    plain = lambda x: nd.tanh(x * 2) * (x * 2) + x  # noqa: E731
    for _ in range(3):
        agree(differentiated(outer, X), differentiated(plain, X))


def test_an_operator_that_is_called_inside_a_traced_one() -> None:
    @mx.operator.define(name=f"test_body_{next(_NUMBERS)}")
    def opaque(x):
        return nd.array(np.cumsum(x.asnumpy(), 1), dtype=x.dtype)

    @opaque.grad
    def _(g, ins, outs):
        return nd.array(np.cumsum(g.asnumpy()[:, ::-1], 1)[:, ::-1].copy(), dtype=g.dtype)

    outer = defined(lambda x: opaque(x) * 2)
    for _ in range(3):
        agree(differentiated(outer, X), differentiated(lambda x: nd.cumsum(x, axis=1) * 2, X))


# ------------------------------------------------------------------------------------- built-in operators with a body


def test_a_built_in_operator_with_a_body_is_one_node_of_a_graph() -> None:
    net = mx.sym.random_pdf_normal(mx.sym.var("x"), mx.sym.var("mu"), mx.sym.var("sigma"), is_log=True, name="pdf")
    again = mx.sym.load_json(net.tojson())
    assert "_random_pdf_normal" in net.tojson() and again.tojson() == net.tojson()
    assert again.list_outputs() == ["pdf_output"]
    arrays = {"x": np.array([[0.5, -1.0], [2.0, 0.25]]), "mu": np.array([0.1, 0.2]), "sigma": np.array([1.0, 2.0])}
    executor = again.bind(mx.cpu(), {name: nd.array(each, dtype="float64") for name, each in arrays.items()})
    z = (arrays["x"] - arrays["mu"][:, None]) / arrays["sigma"][:, None]
    np.testing.assert_allclose(executor.forward()[0].asnumpy(), -z * z / 2 - np.log(
        arrays["sigma"] * np.sqrt(2 * np.pi))[:, None])


@pytest.mark.parametrize("is_log", [True, False])
def test_a_built_in_operator_with_a_body_has_gradients_of_any_order(is_log: bool) -> None:
    def third(call: Callable) -> list[np.ndarray]:
        x, mu = nd.array([[0.5, -1.0]], dtype="float64"), nd.array([0.25], dtype="float64")
        mu.attach_grad()
        with autograd.record():
            y = call(x, mu)
            first = autograd.grad([y], [mu], create_graph=True, retain_graph=True)[0]
            second = autograd.grad([first * first], [mu], create_graph=True, retain_graph=True)[0]
        second.backward()
        return [first.asnumpy(), second.asnumpy(), mu.grad.asnumpy()]

    def plain(x: Any, mu: Any) -> Any:
        log = -0.5 * nd.square(nd.broadcast_sub(x, mu.reshape((1, 1)))) - 0.5 * np.log(2 * np.pi)
        return log if is_log else nd.exp(log)

    for _ in range(2):
        agree(third(lambda x, mu: nd.random_pdf_normal(x, mu, nd.ones(1, dtype="float64"), is_log=is_log)),
              third(plain))


# --------------------------------------------------------------------------------------------------------- caches


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_traced_once(kind: str, traces: list[str]) -> None:
    op = KINDS[kind](lambda x: x * nd.sigmoid(x))
    for _ in range(5):
        differentiated(op, X)
    assert len(traces) <= 3, "a first call of a Prop is watched"
    traces.clear()
    for _ in range(5):
        differentiated(op, X * 2)
    assert not traces


def test_a_declared_gradient_is_used_and_cached() -> None:
    calls = []
    op = defined(lambda x: x * x)

    @op.grad
    def _(g, ins, outs):
        calls.append(len(ins))
        return g * 10 * ins[0]

    for _ in range(4):
        agree(differentiated(op, X)[1:], [np.arange(1, 7).reshape(2, 3) * 10 * X])

    @op.grad
    def _(g, ins, outs):
        return g * 7

    agree(differentiated(op, X)[1:], [np.arange(1, 7).reshape(2, 3) * 7.0])


def test_residuals_belong_to_one_call() -> None:
    """The gradient refuses an output that was overwritten; intermediate values cannot be reached from outside."""
    op, x = defined(lambda x: nd.exp(x)), nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = op(x)
        z = y * 1
    y[:] = 0
    with pytest.raises(OpError, match="changed in place"):
        z.backward()


def test_an_input_that_is_not_read_may_be_changed() -> None:
    op, x, y = defined(lambda x, y: x + y * 2), nd.array(X), nd.array(X)
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        a = x * 1
        z = op(a, y)
    a[:] = 5
    z.backward()
    assert (x.grad.asnumpy() == 1).all() and (y.grad.asnumpy() == 2).all()


def test_intermediate_values_are_freed_after_their_last_read() -> None:
    def body(x):
        for _ in range(20):
            x = nd.exp(x * 0.5)
        return x

    op, x = defined(body), nd.zeros((256, 1024))
    for _ in range(2):
        op(x)
    tracemalloc.start()
    op(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * x.size * 4


def test_outputs_share_no_memory() -> None:
    op = defined(lambda x: (x, x.reshape((3, 2)), x), outputs=("a", "b", "c"))
    x = nd.array(X)
    for _ in range(2):
        outs = op(x)
        for out in outs:
            out[:] = 0
        assert (x.asnumpy() == X.astype("float32")).all()


def test_errors_of_a_body_keep_their_type() -> None:
    op = defined(lambda x: nd.dot(x, x))
    for _ in range(2):
        with pytest.raises(ShapeError, match="dot"):
            op(nd.array(X))
    assert op(nd.ones((2, 2))).shape == (2, 2)


def test_bodies_that_cannot_be_traced_are_called() -> None:
    op = defined(lambda x: x * (2 if float(x.sum().asscalar()) > 0 else -1))
    for sign, factor in ((1, 2), (-1, -1), (1, 2)):
        assert op(nd.ones(2) * sign).asnumpy().tolist() == [sign * factor] * 2


def test_an_error_names_operators_without_a_gradient() -> None:
    inner = mx.operator.define(lambda x: x * 2, name=f"test_body_{next(_NUMBERS)}")
    op, x = defined(lambda x: inner(x) + 1), nd.ones(3)
    x.attach_grad()
    for _ in range(2):
        with autograd.record():
            y = op(x)
        with pytest.raises(NotDifferentiableError, match="has no gradient"):
            y.backward()


# ------------------------------------------------------------------------------------- state that changes between

#: A module with a function ``body(x)``, and statements that change the module's state.
CHANGES = {
    "a global": ("scale = 2.0\ndef body(x): return x * scale", "scale = 3.0"),
    "a global of another type": ("scale = 2\ndef body(x): return x * scale", "scale = 2.5"),
    "a global that was missing": ("def body(x): return x * (scale if 'scale' in globals() else 2)", "scale = 3.0"),
    "a helper": ("def helper(x): return x * 2\ndef body(x): return helper(x)", "def helper(x): return x * 3"),
    "a global of a helper": ("scale = 2.0\ndef helper(x): return x * scale\ndef body(x): return helper(x)",
                             "scale = 3.0"),
    "a helper in a list": ("def one(x): return x * 2\nsteps = [one]\ndef body(x):\n    for step in steps: x = step(x)\n"
                           "    return x", "steps.append(lambda x: x + 1)"),
    "an element": ("scales = [2.0, 1.0]\ndef body(x): return x * scales[0]", "scales[0] = 3.0"),
    "a key": ("scales = {'a': 2.0}\ndef body(x): return x * scales['a']", "scales['a'] = 3.0"),
    "a NumPy array": ("w = np.full((2, 3), 2.0)\ndef body(x): return x * nd.array(w, dtype=x.dtype)", "w[:] = 3"),
    "an NDArray": ("w = nd.ones((2, 3), dtype='float64')\ndef body(x): return x * w", "w[:] = 3"),
    "an NDArray in another's place": ("w = nd.ones((2, 3), dtype='float64')\ndef body(x): return x * w",
                                      "w = nd.ones((2, 3), dtype='float64') * 3"),
    "a default": ("def helper(x, k=2.0): return x * k\ndef body(x): return helper(x)", "helper.__defaults__ = (3.0,)"),
    "a keyword default": ("def helper(x, *, k=2.0): return x * k\ndef body(x): return helper(x)",
                          "helper.__kwdefaults__ = {'k': 3.0}"),
    "an element of keyword defaults": ("def helper(x, *, k=2.0): return x * k\ndef body(x): return helper(x)",
                                       "helper.__kwdefaults__['k'] = 3.0"),
    "code": ("def helper(x): return x * 2\ndef other(x): return x * 3\ndef body(x): return helper(x)",
             "helper.__code__ = other.__code__"),
    "a closure": ("def make():\n    k = 2.0\n    def body(x): return x * k\n    def change():\n        nonlocal k\n"
                  "        k = 3.0\n    return body, change\nbody, change = make()", "change()"),
    "a closure of a helper": ("def make():\n    k = 2.0\n    def helper(x): return x * k\n    def change():\n"
                              "        nonlocal k\n        k = 3.0\n    return helper, change\n"
                              "helper, change = make()\n"
                              "def body(x): return helper(x)", "change()"),
    "an attribute of a function": ("def helper(x): return x * helper.k\nhelper.k = 2.0\ndef body(x): return helper(x)",
                                   "helper.k = 3.0"),
    "an attribute of an object": ("class A: pass\na = A()\na.k = 2.0\ndef body(x): return x * a.k", "a.k = 3.0"),
    "an attribute of a class": ("class A:\n    k = 2.0\ndef body(x): return x * A.k", "A.k = 3.0"),
    "a method": ("class A:\n    @staticmethod\n    def f(x): return x * 2\ndef body(x): return A.f(x)",
                 "A.f = staticmethod(lambda x: x * 3)"),
    "a base class": ("class B:\n    k = 2.0\nclass A(B): pass\ndef body(x): return x * A.k", "B.k = 3.0"),
    "an attribute that hides one": ("class B:\n    k = 2.0\nclass A(B): pass\ndef body(x): return x * A.k",
                                    "A.k = 3.0"),
    "an attribute of a module": ("settings.k = 2.0\ndef body(x): return x * settings.k", "settings.k = 3.0"),
    "a function of a module": ("settings.f = lambda x: x * 2\ndef body(x): return settings.f(x)",
                               "settings.f = lambda x: x * 3"),
    "a bound method": ("class A:\n    def __init__(self, k): self.k = k\n    def f(self, x): return x * self.k\n"
                       "a = A(2.0)\nf = a.f\ndef body(x): return f(x)", "a.k = 3.0"),
    "a partial": ("import functools\ndef helper(k, x): return x * k[0]\nk = [2.0]\nf = functools.partial(helper, k)\n"
                  "def body(x): return f(x)", "k[0] = 3.0"),
    "an inner function": ("scale = 2.0\ndef body(x):\n    def inner(y): return y * scale\n    return inner(x)",
                          "scale = 3.0"),
    "a comprehension": ("scale = 2.0\ndef body(x): return [y * scale for y in (x,)][0]", "scale = 3.0"),
    "a generator of NumPy": ("rng = np.random.default_rng(0)\nk = [2.0]\ndef body(x): return x * k[0]",
                             "k[0] = 3.0"),
    "a traced operator": ("@mx.operator.define(name='test_body_inner', traced=True)\ndef inner(x): return x * 2\n"
                          "def body(x): return inner(x)",
                          "@mx.operator.define(name='test_body_inner', traced=True)\ndef inner(x): return x * 3"),
    "a global of a traced operator": ("scale = 2.0\n@mx.operator.define(name='test_body_inner', traced=True)\n"
                                      "def inner(x): return x * scale\ndef body(x): return inner(x)", "scale = 3.0"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_values_that_a_body_reads_are_seen(name: str, kind: str) -> None:
    source, change = CHANGES[name]
    settings = types.ModuleType("test_settings")
    space: dict[str, Any] = {"np": np, "nd": nd, "mx": mx, "settings": settings, "__name__": "test_module"}
    exec(textwrap.dedent(source), space)
    op, body = KINDS[kind](space["body"]), space["body"]
    for _ in range(3):
        agree(differentiated(op, X), differentiated(body, X))
    before = differentiated(body, X)[0]
    exec(textwrap.dedent(change), space)
    expected = differentiated(body, X)
    assert not np.array_equal(before, expected[0]), "the change changes nothing"
    for _ in range(3):
        agree(differentiated(op, X), expected)


_READS = ["scale", "table[0]", "table[1]", "helper.k", "Holder.k", "thing.k", "settings.k", "outer()", "array[0, 0]"]
_WRITES = {"scale": "scale = {}", "table[0]": "table[0] = {}", "table[1]": "table[1] = {}", "helper.k": "helper.k = {}",
           "Holder.k": "Holder.k = {}", "thing.k": "thing.k = {}", "settings.k": "settings.k = {}",
           "outer()": "def outer(): return {}", "array[0, 0]": "array[0, 0] = {}"}
_TERMS = st.lists(st.tuples(st.sampled_from(["x * {}", "nd.tanh(x) * {}", "x + {}", "nd.exp(x * {})", "{} - x"]),
                            st.sampled_from(_READS)), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(terms=_TERMS, writes=st.lists(st.tuples(st.sampled_from(_READS), st.sampled_from([0.5, -1.0, 2.0, 0.25])),
                                     max_size=6), kind=st.sampled_from(sorted(KINDS)))
def test_random_bodies_with_state_that_changes_at_random(terms: Any, writes: Any, kind: str) -> None:
    """State changes between calls; the operator and its gradients agree with a call of its body."""
    lines = [f"    x = {form.format(read)}" for form, read in terms]
    source = ("scale, table, array = 1.0, [0.5, 1.5], np.ones((1, 1))\ndef helper(): pass\nhelper.k = 1.0\n"
              "class Holder:\n    k = 1.0\nclass Thing: pass\nthing = Thing()\nthing.k = 1.0\ndef outer(): return 1.0\n"
              "def body(x):\n" + "\n".join(lines) + "\n    return x")
    space: dict[str, Any] = {"np": np, "nd": nd, "settings": types.ModuleType("test_settings"), "__name__": "test_one"}
    space["settings"].k = 1.0
    exec(source, space)
    op = KINDS[kind](space["body"])
    agree(differentiated(op, X), differentiated(space["body"], X))
    for place, value in writes:
        exec(_WRITES[place].format(value), space)
        for _ in range(2):
            agree(differentiated(op, X), differentiated(space["body"], X))
