"""State that changes between two calls of a hybridized block is seen, or an error names it."""

from __future__ import annotations

import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd
from opreg.core import comparisons
from opreg.gluon import hybrid_block
from tests.cells.test_stale_answers import NAMED, NO_BODIES, SEEN, changes
from tests.questions import of_each

HEADER = """
import dataclasses, functools, operator
import numpy as np
import opreg as mx
from types import SimpleNamespace
from opreg import autograd, gluon, nd
from opreg.gluon import nn
def inside(block):
    net = nn.HybridSequential()
    net.add(block)
    return net, block
"""


def written(forward: str, setup: str = "", attributes: str = "pass") -> str:
    """Text of a block: statements before it, statements of its constructor, and the result of ``hybrid_forward``."""
    return f"""{setup}
class Net(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        {attributes}
    def hybrid_forward(self, F, x):
        return {forward}
net = Net()"""


LEAKY = "nn.LeakyReLU(0.1)"
INNER = """
class Inner(gluon.HybridBlock):
    k, table = 1.0, [1.0]
    def hybrid_forward(self, F, x):
        return x * self.k * self.table[0]
"""
CHILDREN = """
net, inner = nn.HybridSequential(), nn.HybridSequential()
inner.add(nn.LeakyReLU(0.1), nn.LeakyReLU(0.1))
net.add(inner)
"""
DENSE = """
import copy, pickle
def dense():
    made = nn.Dense(2, in_units=1)
    made.initialize("ones")
    return made
"""
COPIED = """
k = nd.array([2.0, 3.0, 4.0])
@mx.operator.define(traced=True, name="_example_stale_array_of_a_block")
def body(x): return x * k
"""
TRACED = """
k, table = 2.0, [1.0]
def helper(x): return x * table[0]
@mx.operator.define(traced=True, name="_example_stale_of_a_block")
def body(x): return helper(x) * k
"""

#: Blocks, and changes between their calls.
BLOCKS: dict[str, tuple[str, ...]] = {
    "number": (written("x * self.k", attributes="self.k = 2"), "net.k = 3", "net.k = 2.5"),
    "None": (written("x if self.k is None else x * self.k", attributes="self.k = None"), "net.k = 3", "net.k = None"),
    "element of a list": (written("x * self.k[0]", attributes="self.k = [2]"), "net.k[0] = 3", "net.k = [4]"),
    "value of a dict": (written("x * self.k['a']", attributes="self.k = {'a': 2}"), "net.k['a'] = 3"),
    "element of an array": (written("x * float(self.k[0])", attributes="self.k = np.ones(1)"), "net.k[0] = 3",
                            "net.k = np.full(1, 5)"),
    "function": (written("self.k(x)", attributes="self.k = lambda x: x * 2"), "net.k = lambda x: x * 3"),
    "attribute that is added": (written("x * getattr(self, 'k', 1)"), "net.k = 3", "del net.k"),
    "attribute past the block": (written("x * self.k", attributes="self.k = 2"), "vars(net)['k'] = 3"),
    "attribute of the class": (written("x * self.k") + "\nNet.k = 2", "Net.k = 3", "net.k = 4"),
    "property": (written("x * self.k", attributes="self.q = 2") + "\nNet.k = property(lambda self: self.q)",
                 "net.q = 3", "Net.k = property(lambda self: 4)"),
    "method": (written("x * self.m()") + "\nNet.m = lambda self: 2", "Net.m = lambda self: 3", "net.m = lambda: 4"),
    "hybrid_forward": (written("x * 2"), "Net.hybrid_forward = lambda self, F, x: x * 3",
                       "net.hybrid_forward = lambda F, x: x * 4"),
    **{f"hybrid_forward of a block inside, {kind}": (
        f"{INNER}\nimport types\nnet, inner = inside({made})",
        "inner.hybrid_forward = types.MethodType(lambda self, F, x: x * 3, inner)",
        "inner.hybrid_forward = lambda F, x: x * 4", "del inner.hybrid_forward",
        "vars(inner)['hybrid_forward'] = lambda F, x: x * 5", "vars(inner).pop('hybrid_forward')",
        "inner.hybrid_forward = lambda F, x: x * 6", "vars(inner).pop('hybrid_forward')")
       for kind, made in (("a user's", "Inner()"), ("a layer", LEAKY))},
    **{f"element of the settings of a layer {how}": (
        f"import copy, pickle\nmade = nn.BatchNorm(0, in_channels=3)\nmade.initialize()\nnet, layer = inside({made})",
        "layer._kwargs['eps'] = 1.0", "layer._kwargs.update(eps=2.0)")
       for how, made in (("itself", "made"), ("of a copy", "copy.deepcopy(made)"),
                         ("from a file", "pickle.loads(pickle.dumps(made))"))},
    "global": (written("x * k", "k = 2"), "k = 3"),
    "element of a global": (written("x * k[0]", "k = [2]"), "k[0] = 3", "k.insert(0, 4)"),
    "helper": (written("f(x)", "def f(x): return x * 2"), "def f(x): return x * 3"),
    "closure variable": ("def make():\n    k = 2\n    def put(v):\n        nonlocal k\n        k = v\n"
                         + "    class Net(gluon.HybridBlock):\n        def hybrid_forward(self, F, x): return x * k\n"
                         + "    return Net(), put\nnet, put = make()", "put(3)"),
    "object": (written("x * o.k", "o = SimpleNamespace(k=2)"), "o.k = 3"),
    "dataclass": (written("x * o.k", "@dataclasses.dataclass\nclass D: k: int = 2\no = D()"), "o.k = 3"),
    "partial": (written("f(x)", "f = functools.partial(operator.mul, 2)"), "f = functools.partial(operator.mul, 3)"),
    "NDArray": (written("x * float(k.asnumpy()[0])", "k = nd.array([2])"), "k[:] = 3", "k = nd.array([4])"),
    "NDArray in a block": (written("x * self.k.asscalar()", attributes="self.k = nd.array([2])"), "net.k += 3"),
    "flag": (written("x * 2 if self.on else x", attributes="self.on = True"), "net.on = False", "net.on = True"),
    "mode": (written("x * 2 if mx.autograd.is_training() else x"), "train = True", "train = False"),
    "child": (written("self.c(x)", attributes=f"self.c = {LEAKY}"), "net.c = nn.LeakyReLU(0.5)"),
    "setting of a child": (written("self.c(x)", attributes=f"self.c = {LEAKY}"), "net.c._alpha = 0.5"),
    "block in a list": (written("blocks[0](x)", f"blocks = [{LEAKY}]"), "blocks[0]._alpha = 0.5",
                        "blocks[0] = nn.LeakyReLU(0.9)"),
    "attribute of a child": (written("self.c(x)", INNER, "self.c = Inner()"), "net.c.k = 3", "Inner.k = 4; del net.c.k",
                             "Inner.table[0] = 5"),
    "attribute further below": (f"{INNER}\nnet = nn.HybridSequential()\nnet.add(nn.HybridSequential())\n"
                                + "net[0].add(Inner())", "net[0][0].k = 3", "Inner.table[0] = 5"),
    "child that is set past the block": (f"{CHILDREN}", "inner._children['0'] = nn.LeakyReLU(0.5)",
                                         "inner._children.pop('1')", "net._children.clear(); net.add(inner[0])"),
    **{f"class of a block {where}": (
        f"{INNER}\nclass Other(Inner):\n    def hybrid_forward(self, F, x): return x * 5\n"
        f"net, inner = {net}", "inner.__class__ = Other")
       for where, net in (("itself", "(lambda block: (block, block))(Inner())"), ("inside", "inside(Inner())"))},
    "child of a copy": (f"{CHILDREN}\nimport copy, pickle\nnet = pickle.loads(pickle.dumps(copy.deepcopy(net)))",
                        "net[0]._children['0'] = nn.LeakyReLU(0.5)"),
    "children in another order": (f"{CHILDREN}\ninner.add(nn.HybridLambda(lambda F, x: x + 1))",
                                  "inner._children.move_to_end('0')"),
    **{f"parameter that is set past the block {where}": (
        f"{DENSE}\nnet, dense = {net}\nother = gluon.Parameter(dense.weight.name, shape=(2, 1), init='zeros')\n"
        "other.initialize()",
        "dense._reg_params['weight'] = other", "dense._reg_params.update(weight=dense.weight)")
       for where, net in (("itself", "(lambda d: (d, d))(dense())"), ("inside", "inside(dense())"),
                          ("of a copy", "(lambda d: (d, d))(copy.deepcopy(dense()))"),
                          ("from a file", "inside(pickle.loads(pickle.dumps(dense())))"))},
    "function of HybridLambda": ("k = 2\nnet = nn.HybridLambda(lambda F, x: x * k)", "k = 3",
                                 "net._func = lambda F, x: x * 4"),
    "setting of a layer that its class has": ("net, layer = inside(nn.SELU())", "layer._act_type = 'gelu'",
                                              "del layer._act_type"),
    "setting of a layer by vars()": ("net, layer = inside(nn.SELU())", "vars(layer)['_act_type'] = 'gelu'",
                                     "layer._act_type = 'elu'"),
    "setting of a loss": ("net = gluon.loss.L2Loss()\ninputs = 2", "net._weight = 7.0"),
    "function behind a wrapper of hybrid_forward": (
        "def wrap(f):\n    @functools.wraps(f)\n    def wrapper(*args, **kwargs): return f(*args, **kwargs)\n"
        "    return wrapper\ndef part(self, F, x): return x * 2\n"
        "class Net(nn.LeakyReLU): hybrid_forward = wrap(part)\nnet, layer = inside(Net(0.1))",
        "part.__code__ = (lambda self, F, x: x * 3).__code__",
        "Net.hybrid_forward.__closure__[0].cell_contents = lambda self, F, x: x * 4",
        "Net.hybrid_forward = wrap(lambda self, F, x: x * 5)"),
    "code of a function of a layer": ("def f(F, x): return F.relu(x)\nnet, layer = inside(nn.HybridLambda(f))",
                                      "f.__code__ = (lambda F, x: F.tanh(x)).__code__"),
    "default of a function of a layer": ("def f(F, x, k=2): return x * k\nnet, layer = inside(nn.HybridLambda(f))",
                                         "f.__defaults__ = (3,)"),
    "settings of a layer that are others": (
        "net, layer = inside(nn.BatchNorm(0, in_channels=3))\nlayer.initialize()",
        "layer._kwargs = dict(layer._kwargs, eps=1.0)", "layer._kwargs['eps'] = 2.0"),
    "children that are others": (f"{CHILDREN}\nimport collections",
                                 "inner._children = collections.OrderedDict(a=nn.Activation('tanh'))",
                                 "inner._children = inner[0:0]._children"),
    "parameters that are others": (
        f"{DENSE}\nnet, layer = inside(dense())\n"
        "other = gluon.Parameter(layer.weight.name, shape=(2, 1), init='zeros')\nother.initialize()",
        "layer._reg_params = {'weight': other, 'bias': layer.bias}"),
    **{f"{name} of a Parameter of a layer": (
        written(f"x * float(layers[0].weight.{read})", f"{DENSE}\nlayers = [dense()]"), *changed)
       for name, read, changed in (
           ("rate", "lr_mult", ("layers[0].weight.lr_mult = 3",)),
           ("request", "grad_req == 'write'", ("layers[0].weight.grad_req = 'null'",)),
           ("length", "shape[0]", ("layers[0].weight._shape = (5, 1)",)),
           ("dtype", "data().dtype().itemsize", ("layers[0].weight.cast('float64')",)),
           ("value", "data().asnumpy()[0, 0]", (
               "layers[0].weight.initialize(mx.init.Constant(7), force_reinit=True)", "layers[0].weight.data()[:] = 8",
               "layers[0].weight.set_data(nd.ones((2, 1)) * 9)", "layers[0].weight._data = [nd.ones((2, 1)) * 3]")))},
    "values of a module": (
        written("x * float(m.get_params()[0]['q'].asnumpy()[0])",
                "m = mx.mod.Module(mx.sym.var('q') + mx.sym.var('d'), ['d'], None)\nm.bind([('d', (1,))])\n"
                "m.init_params(arg_params={'q': nd.ones(1)})"),
        "m.set_params({'q': nd.ones(1) * 5}, {})", "m._exec_group.execs[0].arg_dict['q'][:] = 4"),
    "outputs of an executor": (
        written("x * e.outputs[0].asscalar()", "e = (mx.sym.var('q') * 2).bind(mx.cpu(), {'q': nd.ones(1)})\n"
                "e.forward()"), "e.forward(q=nd.ones(1) * 4)"),
    "rate of a Trainer": (
        written("x * trainer.learning_rate", f"{DENSE}\ntrainer = gluon.Trainer(dense().collect_params(), 'sgd')"),
        "trainer.set_learning_rate(3)", "trainer._optimizer.lr = 5"),
    "element of a dataset": (written("x * data[0]", "data = gluon.data.ArrayDataset([1.0, 2.0])"),
                             "data._data[0][0] = 3.0"),
    "values of another block": (
        written("x * float(d(nd.ones((1, 1))).asnumpy()[0, 0])", f"{DENSE}\nd = dense()"),
        "d.weight.set_data(nd.ones((2, 1)) * 5)", "d.bias.data()[:] = 9", "d.hybridize()", "d.bias.data()[:] = 4",
        "d.weight.initialize(mx.init.Constant(3), force_reinit=True)"),
    "arrays of an executor": (
        written("x * float(e.forward()[0].asnumpy()[0])",
                "e = (mx.sym.var('q') * 2).bind(mx.cpu(), {'q': nd.ones(1)})"),
        "e.arg_dict['q'][:] = 4", "e.copy_params_from({'q': nd.ones(1) * 9})"),
    "array of a traced operator": (written("body(x)", COPIED), "k[:] = 5.0", "k = nd.ones(3)"),
    "global of a traced operator": (written("body(x)", TRACED), "k = 3.0", "table[0] = 2.0",
                                    "def helper(x): return x * 9"),
}


class Calling(gluon.HybridBlock):
    """A block that calls a function."""

    def __init__(self, function: Callable[[Any], Any]):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.function(x)


def hybridized(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of tensors as a hybridized block."""
    block = Calling(function)
    block.hybridize()
    return lambda x: block(nd.array(x.asnumpy()))


@of_each([name for name in SEEN if name not in NO_BODIES])
def test_a_change_is_seen(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*does not see changes of.*")
        assert changes(SEEN[name], hybridized)


@of_each(NAMED)
def test_a_change_that_is_not_compared_is_named(name: str) -> None:
    case, title = NAMED[name]
    with pytest.warns(UserWarning, match=f"does not see changes of .*({title})"):
        changes(case, hybridized)


@of_each(BLOCKS)
def test_a_change_of_a_block_is_seen(name: str) -> None:
    setup, *statements = BLOCKS[name]
    plain, hybrid = types.ModuleType("plain"), types.ModuleType("hybrid")
    x = nd.array(np.array([1.0, -2.0, 0.5], np.float32))
    for statement in (setup, *statements):
        answers = []
        for module in (plain, hybrid):
            exec(compile(HEADER + setup if statement is setup else statement, "<block>", "exec", dont_inherit=True),
                 vars(module))
            if module is hybrid and statement is setup:
                module.net.hybridize()
            with mx.autograd.train_mode() if getattr(module, "train", False) else mx.autograd.predict_mode():
                inputs = [x, x * 0][:getattr(module, "inputs", 1)]
                answers.append([module.net(*inputs).asnumpy() for _ in range(2)])
        np.testing.assert_array_equal(answers[0], answers[1])


class Layers(gluon.HybridBlock):
    """A block with layers, and with operators as functions and as methods."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = gluon.nn.HybridSequential()
        self.layers.add(gluon.nn.Dense(3, in_units=3), gluon.nn.LeakyReLU(0.5))
        self.initialize("ones")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.erf(self.layers(x)).tanh() * 0.5


#: Functions and methods of this library that programs replace, each by one that doubles its result.
PATCHES: dict[str, list[tuple[Any, str]]] = {
    "hybrid_forward of a layer": [(gluon.nn.Dense, "hybrid_forward")],
    "hybrid_forward of a container": [(gluon.nn.HybridSequential, "hybrid_forward")],
    "forward of a layer": [(gluon.nn.LeakyReLU, "forward")],
    "call of a layer": [(gluon.nn.Dense, "__call__")],
    "call of all blocks": [(gluon.HybridBlock, "__call__")],
    "function that a block calls": [(nd, "erf"), (mx.sym, "erf")],
    "function that a layer calls": [(nd, "FullyConnected"), (mx.sym, "FullyConnected")],
    "method of arrays": [(nd.NDArray, "tanh"), (mx.sym.Symbol, "tanh")],
    "arithmetic of arrays": [(nd.NDArray, "__mul__"), (mx.sym.Symbol, "__mul__")],
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_replaced_function_of_this_library_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        def doubled(*args: Any, **keywords: Any) -> Any:
            result = function(*args, **keywords)
            return result + result

        return doubled

    plain, hybrid, x = Layers(), Layers(), nd.array([[0.125, -0.25, 0.5], [0.5, -1.0, 0.25]])
    hybrid.hybridize()

    def answers() -> list[np.ndarray]:
        return [block(x).asnumpy() for block in (plain, hybrid)]

    before = answers()
    with monkeypatch.context() as patch:
        for owner, attribute in PATCHES[name]:
            patch.setattr(owner, attribute, twice(getattr(owner, attribute)))
        expected, found = answers()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert not np.allclose(expected, before[0])
    for after in answers():
        np.testing.assert_allclose(after, before[0], rtol=1e-6)


def test_a_change_is_seen_that_another_thread_makes_while_a_block_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(gluon.HybridBlock):
        k = 2

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return x * self.k

    class Plans(hybrid_block.BlockPlans):
        def __init__(self, *args: Any):
            if threading.current_thread() is planning:
                inside.set()
                leave.wait()
            super().__init__(*args)

    net, x, answers = Net(), nd.ones(2), list[list[float]]()
    net.hybridize()
    monkeypatch.setattr(hybrid_block, "BlockPlans", Plans)
    inside, leave = threading.Event(), threading.Event()
    planning = threading.Thread(target=lambda: answers.append(net(x).asnumpy().tolist()))
    planning.start()
    inside.wait()
    Net.k = 3
    assert net(x).asnumpy().tolist() == [3, 3]
    leave.set()
    planning.join()
    assert answers == [[2, 2]] and net(x).asnumpy().tolist() == [3, 3]


def test_a_scope_of_names_is_entered_by_several_threads_at_once() -> None:
    block, turns, names = gluon.Block(prefix="net_"), [threading.Event() for _ in range(3)], list[str]()

    def other() -> None:
        turns[0].wait()
        with block.name_scope():
            turns[1].set()
            turns[2].wait()
            names.append(gluon.nn.Dense(1, prefix="b_").prefix)

    thread = threading.Thread(target=other)
    thread.start()
    with block.name_scope():
        turns[0].set()
        turns[1].wait()
        names.append(gluon.nn.Dense(1, prefix="a_").prefix)
    names.append(gluon.nn.Dense(1, prefix="c_").prefix)
    turns[2].set()
    thread.join()
    assert names == ["net_a_", "c_", "net_b_"]


def test_alike_blocks_share_the_code_that_compares_what_they_read() -> None:
    def misses() -> int:
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(2, in_units=3))
        net.initialize()
        net.hybridize()
        net(nd.ones((1, 3)))
        return comparisons._code.cache_info().misses  # type: ignore[attr-defined]

    assert misses() == misses()


def test_a_change_of_what_a_gradient_rule_reads_is_seen() -> None:
    factors, x = [2.0], nd.array([1.0, 2.0])
    for traced in (False, True):
        op = mx.operator.define(lambda x: x * 2, name=f"_example_rule_of_factors_{traced}", traced=traced)
        op.grad(lambda g, ins, outs: g * factors[0])
        block = gluon.SymbolBlock(op(mx.sym.var("x")), mx.sym.var("x"))
        block.hybridize()
        x.attach_grad()
        for factors[0] in (2.0, 3.0, 4.0):
            with autograd.record():
                y = block(x)
            y.backward()
            np.testing.assert_array_equal(x.grad.asnumpy(), factors * 2)
