"""Values that bodies and gradients of operators read from outside: a bound graph compares them before each run."""

from __future__ import annotations

import itertools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from tests.cells.test_stale_answers import NAMED, NO_BODIES, SEEN, changes
from tests.questions import of_each

HEADER = """
import numpy as np
import opreg as mx
from types import SimpleNamespace
"""
OBJECT = """
class Inner:
    def __init__(self): self.values = [2.0]
class Settings:
    scale = 1.0
    def __init__(self): self.inner, self.own = Inner(), 1.0
    @property
    def k(self): return self.own * self.scale
    def method(self): return self.inner.values[0]
o = Settings()
"""
PROP = """
k = 2.0
class Op(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * k)
class Prop(mx.operator.CustomOpProp):
    traced = True
    def create_operator(self, ctx, in_shapes, in_dtypes): return Op()
mx.operator.register("_example_stale_prop")(Prop)
f = lambda x: (mx.sym if isinstance(x, mx.sym.Symbol) else mx.nd).Custom(x, op_type="_example_stale_prop")
"""
RULE = """
k = 2.0
@mx.operator.define(name="_example_stale_rule")
def f(x): return x.asnumpy() * 1
@f.grad
def gradient(g, x, y): return g * k
"""


NUMBERS = itertools.count()


def body(result: str, setup: str = "") -> str:
    """Text of a traced operator, and of the state that it reads."""
    name = f"_example_stale_body_{next(NUMBERS)}"
    return f"{setup}\n@mx.operator.define(traced=True, name={name!r})\ndef f(x): return {result}"


#: Operators, and changes between their runs.
CHANGES: dict[str, tuple[str, ...]] = {
    "global": (body("x * k", "k = 2.0"), "k = 3.0", "del k; k = 4.0"),
    "helper": (body("h(x)", "def h(x): return x * 2"), "def h(x): return x * 3"),
    "element of a list": (body("x * k[0]", "k = [2.0]"), "k[0] = 3.0", "k.insert(0, 4.0)"),
    "value of a dict": (body("x * k['a']", "k = {'a': 2.0}"), "k['a'] = 3.0"),
    "element of an array": (body("x * float(k[0])", "k = np.ones(1)"), "k[0] = 3.0"),
    "default of a helper": (body("h(x)", "def h(x, k=2.0): return x * k"), "h.__defaults__ = (3.0,)"),
    "code of the body": (body("x * 2"), "f.__wrapped__.__code__ = (lambda x: x * 3).__code__"),
    "closure variable": ("def make():\n    k = 2.0\n    def put(v):\n        nonlocal k\n        k = v\n"
                         "    @mx.operator.define(traced=True, name='_example_stale_closure')\n"
                         "    def f(x): return x * k\n    return f, put\nf, put = make()", "put(3.0)"),
    "attribute of an object": (body("x * o.k", OBJECT), "o.own = 3.0", "Settings.scale = 2.0", "o = Settings()"),
    "object in an object": (body("x * o.method()", OBJECT), "o.inner.values[0] = 3.0", "o.inner = Inner()",
                            "o.method = lambda: 4.0"),
    "namespace": (body("x * o.k", "o = SimpleNamespace(k=2.0)"), "o.k = 3.0"),
    "traced operator in a body": (
        "k = 2.0\n@mx.operator.define(traced=True, name='_example_stale_inner')\ndef inner(x): return x * k\n"
        + body("inner(x)"), "k = 3.0"),
    "module that a helper imports": (
        body("h(x)", "import sys, types\nsys.modules['_stale_import'] = m = types.ModuleType('m')\nm.k = 2.0\n"
                     "def h(x):\n    import _stale_import\n    return x * _stale_import.k"), "m.k = 3.0",
        "sys.modules['_stale_import'] = m = types.ModuleType('m'); m.k = 4.0", "del sys.modules['_stale_import']; "
        "h = lambda x: x"),
    "Prop": (PROP, "k = 3.0", "def later(self, is_train, req, in_data, out_data, aux):\n"
                   "    self.assign(out_data[0], req[0], in_data[0] * 5)\nOp.forward = later"),
    "dataclass in a Prop": (
        PROP.replace("k = 2.0", "import dataclasses\n@dataclasses.dataclass\nclass K: a: float = 2.0\nk = K()")
        .replace("* k)", "* k.a)").replace("stale_prop", "stale_data"), "k.a = 3.0",
        "Op.assign = lambda self, dst, req, src: dst.__setitem__(slice(None), src * 5)"),
    "gradient that is written": (RULE, "k = 3.0"),
    "list that it only adds to": (body("log.append(1) or x * k", "log, k = [], 2.0"), "k = 3.0"),
    "closure variable that it only adds to": (
        "k = 2.0\ndef make(log):\n    @mx.operator.define(traced=True, name='_example_stale_log')\n    def f(x):\n"
        "        log.append(1)\n        return x * k\n    return f\nf = make([])", "k = 3.0"),
    "list that holds itself": (body("x * k[1]", "k = [0, 2.0]\nk[0] = k"), "k[1] = 3.0"),
    "module that holds itself": (body("x * m.m.k", "import types\nm = types.ModuleType('m')\nm.m, m.k = m, 2.0"),
                                 "m.k = 3.0"),
    "array": (body("x * k", "k = mx.nd.array([2.0, 3.0, 4.0])"), "k[:] = 3.0", "k = mx.nd.ones(3)"),
    "dataclass in the gradient of a body": (
        "import dataclasses\n@dataclasses.dataclass\nclass K: a: float = 2.0\nk, b = K(), K()\n"
        + body("x * b.a") + "\n@f.grad\ndef gradient(g, x, y): return g * k.a", "k.a = 3.0", "b.a = 3.0"),
    "array in a gradient": (RULE.replace("k = 2.0", "k = mx.nd.array([2.0, 3.0, 4.0])"), "k[:] = 3.0"),
}


def answers(f: object, x: mx.nd.NDArray) -> tuple[np.ndarray, np.ndarray]:
    """Output and gradient of an eager call."""
    x.attach_grad()
    with mx.autograd.record():
        y = f(x)  # type: ignore[operator]
    y.backward()
    assert x.grad is not None
    return y.asnumpy(), x.grad.asnumpy()


@of_each(CHANGES)
def test_a_change_is_seen(name: str) -> None:
    module, x = types.ModuleType("state"), mx.nd.array([1.0, -2.0, 0.5])
    executors = []
    for i, statement in enumerate(CHANGES[name]):
        exec(compile((HEADER if i == 0 else "") + statement, "<state>", "exec", dont_inherit=True), vars(module))
        if i == 0:
            net = module.f(mx.sym.Variable("x"))
            executors = [net.simple_bind(mx.cpu(), x=(3,)), net.simple_bind(mx.cpu(), x=(3,), grad_req="null")]
        y, gradient = answers(module.f, x)
        training, inference = executors
        np.testing.assert_array_equal(training.forward(is_train=True, x=x)[0].asnumpy(), y)
        training.backward(mx.nd.ones(3))
        np.testing.assert_array_equal(training.grad_dict["x"].asnumpy(), gradient)
        np.testing.assert_array_equal(inference.forward(x=x)[0].asnumpy(), y)


def in_a_bound_graph(program: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function as the body of a traced operator in a bound graph."""
    traced = mx.operator.define(traced=True, name=f"_example_stale_bound_{next(NUMBERS)}")(program)
    executor = traced(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(3,), grad_req="null")
    return lambda x: executor.forward(x=x.asnumpy())[0]


#: A graph is bound to its own device, whichever is the current one.
OF_THE_DEVICE = {f"setting of this library, {name}" for name in ("context", "default_ctx")}


@of_each([name for name in SEEN if name not in NO_BODIES | OF_THE_DEVICE])
def test_a_change_is_seen_by_a_bound_graph(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*does not see changes of.*")
        assert changes(SEEN[name], in_a_bound_graph)


@of_each(NAMED)
def test_a_change_that_is_not_compared_is_named(name: str) -> None:
    case, title = NAMED[name]
    with pytest.warns(UserWarning, match=f"does not see changes of .*({title})"):
        changes(case, in_a_bound_graph)


def test_backward_belongs_to_the_forward_that_ran() -> None:
    module = types.ModuleType("state")
    exec(HEADER + body("x * k", "k = 2.0"), vars(module))
    executor = module.f(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True)
    module.k = 3.0  # type: ignore[attr-defined]
    for expected in (2.0, 3.0):  # the second runs its forward by itself, since it was asked twice
        executor.backward(mx.nd.ones(2))
        assert executor.grad_dict["x"].asnumpy().tolist() == [expected] * 2


@pytest.mark.parametrize("owner", ["class", "operator"])
@pytest.mark.parametrize("way", ["executor", "eager", "recorded before"])
def test_replaced_methods_are_called(way: str, owner: str) -> None:
    made = []

    class Op(mx.operator.CustomOp):
        def __init__(self) -> None:
            made.append(self)

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 3)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 5)

    name = f"_example_stale_methods_{next(NUMBERS)}"
    prop = type("Prop", (mx.operator.CustomOpProp,), {"create_operator": lambda self, ctx, in_shapes, in_dtypes: Op()})
    mx.operator.register(name)(prop)
    x = mx.nd.ones(2)
    executor = mx.sym.Custom(mx.sym.var("x"), op_type=name).bind(mx.cpu(), [x], [mx.nd.zeros(2)])
    x.attach_grad()

    def replace() -> None:
        if owner == "class":
            Op.forward, Op.backward = forward, backward  # type: ignore[method-assign]
        for each in made if owner == "operator" else ():
            each.forward, each.backward = types.MethodType(forward, each), types.MethodType(backward, each)

    def answer(between: Callable[[], None] = lambda: None) -> list[float]:
        if way == "executor":
            y = executor.forward(is_train=True)[0]
            between()
            executor.backward(mx.nd.ones(2))
            return [y.asnumpy()[0], executor.grad_arrays[0].asnumpy()[0]]
        with mx.autograd.record():
            y = mx.nd.Custom(x, op_type=name)
        between()
        y.backward()
        return [y.asnumpy()[0], x.grad.asnumpy()[0]]

    assert answer() == [2, 2]
    if way == "recorded before":
        assert answer(replace) == [2, 5]
    else:
        replace()
        assert answer() == [3, 5] or (way == "eager" and owner == "operator")  # an eager call makes one of its own


@pytest.mark.parametrize("name", ["relu", "__mul__"])
def test_a_replaced_method_of_arrays_is_seen_by_a_body(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = types.ModuleType("state"), mx.nd.array([1.0, -2.0, 0.5])
    exec(HEADER + body("x.relu() * 3"), vars(module))
    executor = module.f(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(3,), grad_req="null")

    def found() -> list[list[float]]:
        return [out.asnumpy().tolist() for out in (module.f(x), executor.forward(x=x)[0])]

    before = found()
    with monkeypatch.context() as patch:
        patch.setattr(mx.nd.NDArray, name, lambda self, *other: self + 8)
        plain = (x.relu() * 3).asnumpy().tolist()
        assert found() == [plain, plain] != before
    assert found() == before


def test_a_change_is_seen_by_a_module() -> None:
    module = types.ModuleType("state")
    exec(HEADER + body("x * k", "k = 2.0"), vars(module))
    net = mx.mod.Module(module.f(mx.sym.Variable("data")), label_names=None)
    net.bind([("data", (2,))], for_training=False)
    net.init_params()
    for k in (2.0, 3.0):
        module.k = k  # type: ignore[attr-defined]
        net.forward(mx.io.DataBatch([mx.nd.ones(2)]))
        assert net.get_outputs()[0].asnumpy().tolist() == [k, k]


def test_a_body_that_changes_its_own_reads_is_not_traced_in_each_run() -> None:
    module = types.ModuleType("state")
    exec(HEADER + "log = []\n" + body("log.append(1) or x * len(log)"), vars(module))
    with pytest.warns(UserWarning, match="_example_stale_body_.* changes the global log while"):
        executor = module.f(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(2,), grad_req="null")
    calls = len(module.log)
    for _ in range(3):
        executor.forward()
    assert len(module.log) == calls


@pytest.mark.parametrize("name", ["arg_arrays", "grad_arrays", "aux_arrays", "outputs"])
def test_replacing_an_array_in_a_list_causes_a_warning(name: str) -> None:
    executor = mx.sym.BatchNorm(mx.sym.Variable("x"), name="norm").simple_bind(mx.cpu(), x=(2, 3))
    arrays = getattr(executor, name)
    with pytest.warns(UserWarning, match=rf"{name}\[0\] = … changes only this list"):
        arrays[0] = arrays[0].copy()
    assert type(arrays[:1]) is list


@pytest.mark.parametrize("where", ["pause", "record"])
def test_new_values_of_a_recorded_parameter_are_seen_by_an_executor(where: str) -> None:
    """The parameter gets other memory, since the recorded graph reads its old values."""
    net = mx.gluon.nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    weight, x = net.weight.data(), mx.nd.ones((1, 2))
    w = mx.sym.Variable("w")
    products = mx.sym.FullyConnected(mx.sym.Variable("x"), w, num_hidden=1, no_bias=True)
    executor = mx.sym.Group([products, w]).bind(mx.cpu(), {"x": x, "w": weight}, {"x": mx.nd.zeros((1, 2))})
    for k in (3.0, 4.0):
        executor.forward(is_train=True)
        with mx.autograd.record():
            y = net(x)
            if where == "pause":
                with mx.autograd.pause():
                    net.weight.set_data(mx.nd.full((1, 2), k))
            else:
                net.weight.set_data(mx.nd.full((1, 2), k))
        y.backward()
        product, shown = executor.forward(is_train=True)
        assert (product.asscalar(), shown.asnumpy().tolist()) == (2 * k, [[k, k]])
        executor.backward([mx.nd.ones((1, 1)), mx.nd.zeros((1, 2))])
        assert executor.grad_dict["x"].asnumpy().tolist() == [[k, k]]
        net.weight.set_data(mx.nd.full((1, 2), k + 0.5))
        assert executor.forward()[0].asscalar() == 2 * k + 1
