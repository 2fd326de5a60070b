"""Users' operators of every kind agree with NumPy in every public entry."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import gluon, nd, nn, sym
from opreg.contrib import amp
from opreg.errors import ArgumentError, AttrError, NotDifferentiableError, UnknownOperatorError
from tests.custom.kinds import EVERYWHERE, IN_GRAPHS, TWICE, OldInNumPy, expected, gradients, operator_of

pytestmark = [pytest.mark.filterwarnings("ignore:.*runs once for each"),
              pytest.mark.filterwarnings("ignore:.*autograd.Function")]

_RNG = np.random.default_rng(5)
X, Y, G = _RNG.standard_normal((3, 3, 4)).astype(np.float32)
BY = 3.0
VALUE, (GX, GY) = expected(X, Y, BY), gradients(G, X, Y, BY)
_NAMES = itertools.count()

Operator = Callable[..., Any]


def close(found: Any, wanted: Any, rtol: float = 2e-5) -> None:
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=rtol, atol=rtol)


def node(op: Operator, **keywords: Any) -> Any:
    return op(sym.var("x"), sym.var("y"), by=BY, name="node", **keywords)


def computed(symbol: Any, backward: bool = True, **options: Any) -> Any:
    """An executor of a symbol of ``x`` and ``y``, after forward and backward."""
    executor = symbol.simple_bind(mx.cpu(), x=X.shape, y=Y.shape, **options)
    executor.arg_dict["x"][:], executor.arg_dict["y"][:] = X, Y
    executor.forward(is_train=True)
    if backward:
        executor.backward([nd.array(G)])
    return executor


def right(executor: Any) -> None:
    close(executor.outputs[0], VALUE)
    close(executor.grad_dict["x"], GX)
    close(executor.grad_dict["y"], GY)


# ------------------------------------------------------------------------------------------- entries of graphs

GRAPHS: list[Callable[[Operator, Path], None]] = []


def in_graphs(entry: Callable[[Operator, Path], None]) -> Callable[[Operator, Path], None]:
    GRAPHS.append(entry)
    return entry


@in_graphs
def _bound(op: Operator, path: Path) -> None:
    for options in ({}, {"check_kernels": True}, {"recompute": True}, {"check_numbers": True},
                    {"group2ctx": {"apart": mx.cpu(1)}}):
        with mx.AttrScope(ctx_group="apart"):
            symbol = node(op)
        executor = computed(symbol, **options)
        right(executor)
        assert executor.explain() and executor.debug_str() and str(executor.profile(runs=1))
    small = executor.reshape(x=(2, 4), y=(2, 4))
    small.forward(x=nd.array(X[:2]), y=nd.array(Y[:2]))
    close(small.outputs[0], VALUE[:2])


@in_graphs
def _requests(op: Operator, path: Path) -> None:
    for request in ("write", "add", "null"):
        gradient = {"x": nd.ones(X.shape), "y": nd.ones(X.shape)}
        executor = node(op).bind(mx.cpu(), {"x": nd.array(X), "y": nd.array(Y)}, gradient, request)
        executor.forward(is_train=True)
        executor.backward(nd.array(G))
        for name, wanted in (("x", GX), ("y", GY)):
            close(gradient[name], {"write": wanted, "add": wanted + 1, "null": np.ones_like(wanted)}[request])


@in_graphs
def _named_and_saved(op: Operator, path: Path) -> None:
    symbol = node(op)
    assert (symbol.list_arguments(), symbol.list_outputs()) == (["x", "y"], ["node_output"])
    assert symbol.infer_shape(x=X.shape, y=Y.shape)[1] == [X.shape]
    assert symbol.get_internals()["node_output"].name == "node"
    symbol.save(str(path / "net.json"))
    for other in (copy.deepcopy(symbol), pickle.loads(pickle.dumps(symbol)), sym.load(str(path / "net.json")),
                  symbol(x=sym.var("x") + 0.0)):
        right(computed(other))
    assert mx.viz.plot_network(symbol, shape={"x": X.shape, "y": Y.shape}) is not None
    seen: list[str] = []
    executor = symbol.simple_bind(mx.cpu(), x=X.shape, y=Y.shape)
    executor.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
    executor.forward()
    assert any("node" in name for name in seen)


@in_graphs
def _among_others(op: Operator, path: Path) -> None:
    symbol = node(op)
    executor = sym.Group([symbol, symbol * 2.0, sym.BlockGrad(symbol)]).simple_bind(mx.cpu(), x=X.shape, y=Y.shape)
    executor.arg_dict["x"][:], executor.arg_dict["y"][:] = X, Y
    executor.forward(is_train=True)
    executor.backward([nd.array(G)] * 3)
    close(executor.outputs[1], 2 * VALUE)
    close(executor.grad_dict["y"], 3 * GY)
    x = sym.var("x")
    same = op(x, x, by=BY, name="same").simple_bind(mx.cpu(), x=X.shape)
    same.forward(is_train=True, x=nd.array(X))
    same.backward([nd.array(G)])
    close(same.grad_dict["x"], sum(gradients(G, X, X, BY)))


@in_graphs
def _loops(op: Operator, path: Path) -> None:
    outs, _ = sym.contrib.foreach(lambda d, s: (op(*d, by=BY, name="inner"), s), [sym.var("x"), sym.var("y")],
                                  sym.var("state"))
    executor = outs.simple_bind(mx.cpu(), x=X.shape, y=Y.shape) if "state" not in outs.list_arguments() else \
        outs.simple_bind(mx.cpu(), x=X.shape, y=Y.shape, state=(1,))
    executor.forward(is_train=True, x=nd.array(X), y=nd.array(Y))
    executor.backward([nd.array(G)])
    close(executor.outputs[0], VALUE)
    close(executor.grad_dict["y"], GY)
    x, y = sym.var("x"), sym.var("y")
    right(computed(sym.contrib.cond(sym.sum(x) < 1e9, lambda: op(x, y, by=BY, name="chosen"), lambda: x)))


@in_graphs
def _module(op: Operator, path: Path) -> None:
    weight = sym.var("act_weight", shape=(4, 3), init=mx.init.One())
    net = op(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"), weight, by=BY, name="act")
    net = sym.SoftmaxOutput(net, name="softmax")
    data = mx.io.NDArrayIter(_RNG.standard_normal((8, 5)).astype(np.float32), np.arange(8) % 3, batch_size=4)
    module = mx.mod.Module(net)
    module.fit(data, num_epoch=2, optimizer="sgd", monitor=mx.mon.Monitor(1))
    assert (module.get_params()[0]["act_weight"].asnumpy() != 1).any()
    module.save_checkpoint(str(path / "net"), 1)
    again = mx.mod.Module.load(str(path / "net"), 1)
    again.bind(data.provide_data, for_training=False)
    close(again.predict(data), module.predict(data).asnumpy())
    close(nd.array(mx.model.FeedForward.load(str(path / "net"), 1).predict(data)), module.predict(data).asnumpy())


@in_graphs
def _buckets(op: Operator, path: Path) -> None:
    def net(key: int) -> Any:
        data = sym.var("data")
        return sym.SoftmaxOutput(op(data, data, by=BY, name="act"), name="softmax"), ["data"], ["softmax_label"]

    module = mx.mod.BucketingModule(net, default_bucket_key=4)
    module.bind([("data", (2, 4))], [("softmax_label", (2,))], inputs_need_grad=True)
    module.init_params()
    for key in (4, 3):
        shapes = {"provide_data": [("data", (2, key))], "provide_label": [("softmax_label", (2,))]}
        x = X[:2, :key]
        batch = mx.io.DataBatch([nd.array(x)], [nd.zeros((2,))], bucket_key=key, **shapes)
        module.forward_backward(batch)
        odds = nd.softmax(nd.array(expected(x, x, BY))).asnumpy()
        close(module.get_outputs()[0], odds)
        odds[:, 0] -= 1
        close(module.get_input_grads()[0], sum(gradients(odds, x, x, BY)), 1e-4)


@in_graphs
def _amp(op: Operator, path: Path) -> None:
    net = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc")
    net = op(net, sym.var("act_weight", shape=(2, 4)), by=BY, name="act")
    for dtype in ("float16", "bfloat16"):
        amp.convert_symbol(net, target_dtype=dtype).simple_bind(mx.cpu(), data=(2, 3)).forward()


@in_graphs
def _blocks(op: Operator, path: Path) -> None:
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any, y: Any) -> Any:
            return op(x, y, by=BY)

    for options in ({"active": False}, {}, {"static_alloc": True, "static_shape": True}):
        net = Net()
        net.hybridize(**options)
        for _ in range(2):
            _recorded(net)
    net.export(str(path / "net"))
    block = gluon.SymbolBlock.imports(str(path / "net-symbol.json"), ["data0", "data1"], None)
    close(block(nd.array(X), nd.array(Y)), VALUE)
    block = gluon.SymbolBlock(op(sym.var("x"), sym.var("y", shape=Y.shape), by=BY, name="n"), [sym.var("x")])
    block.initialize(mx.init.One())
    trainer = gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.1})
    with mx.autograd.record():
        loss = block(nd.array(X)).sum()
    loss.backward()
    trainer.step(1)
    (weight,) = [each.data() for each in block.collect_params().values()]
    close(weight, 1 - 0.1 * gradients(np.ones_like(X), X, np.ones_like(Y), BY)[1])


@in_graphs
def _onnx(op: Operator, path: Path) -> None:
    pytest.importorskip("onnx")
    mx.onnx.export(node(op), str(path / "net.onnx"), X, Y)
    symbol = mx.onnx.import_model(str(path / "net.onnx"))[0]
    close(symbol.eval(x=nd.array(X), y=nd.array(Y))[0], VALUE)
    close(mx.onnx.import_to_cell(str(path / "net.onnx"))(mx.Tensor(X), mx.Tensor(Y)), VALUE)


@in_graphs
def _symbols_and_cells(op: Operator, path: Path) -> None:
    cell = nn.from_symbol(node(op), inputs=["x", "y"])
    for each in (cell, mx.jit(cell)):
        close(each(mx.Tensor(X), mx.Tensor(Y)), VALUE)


@pytest.mark.parametrize("entry", GRAPHS, ids=lambda entry: entry.__name__[1:])
@pytest.mark.parametrize("kind", IN_GRAPHS)
def test_every_kind_of_operator_takes_every_entry_in_graphs(kind: str, entry: Callable[[Operator, Path], None],
                                                            tmp_path: Path) -> None:
    entry(operator_of(kind), tmp_path)


# ------------------------------------------------------------------------------------------- entries of arrays

ARRAYS: list[Callable[[Operator], None]] = []


def of_arrays(entry: Callable[[Operator], None]) -> Callable[[Operator], None]:
    ARRAYS.append(entry)
    return entry


def _recorded(function: Operator, kind: Any = nd, **keywords: Any) -> Any:
    x, y = kind.array(X), kind.array(Y)
    x.attach_grad()
    y.attach_grad(grad_req="add")
    y.grad[:] = 1
    with mx.autograd.record():
        out = function(x, y, **keywords)
    out.backward(kind.array(G))
    close(out, VALUE)
    close(x.grad, GX)
    close(y.grad, GY + 1)
    return out


@of_arrays
def _arrays(op: Operator) -> None:
    _recorded(op, by=BY)
    assert isinstance(_recorded(op, mx.np, by=BY), nd.NDArray)
    wide = nd.array(np.repeat(X, 2, 0))[::2], nd.array(Y.T.copy()).T
    close(op(*wide, by=BY), VALUE)
    for shape in ((0, 3), (1,), ()):
        one = mx.np.ones(shape)
        assert op(one, one, by=BY).shape == shape
    for dtype in ("float16", "float64"):
        x = nd.array(X, dtype=dtype)
        assert op(x, x, by=BY).dtype == x.dtype


@in_graphs
def _called(op: Operator, path: Path) -> None:
    x, y = nd.array(X), nd.array(Y)
    close(op(y=y, x=x, by=BY), VALUE)
    close(op(x, y=y, by=BY), VALUE)
    close(op(sym.var("x"), y=sym.var("y"), by=BY, name="node").eval(x=x, y=y)[0], VALUE)
    close(op(x, y, by=BY, out=x), VALUE)
    if hasattr(op, "op_type"):
        x, name = nd.array(X), op.op_type
        for each in (nd.Custom(x, y, op_type=name, by=BY), nd.Custom(x, op_type=name, y=y, by="3.0"),
                     getattr(nd.custom, name)(x, y, by=BY), nd.op.Custom(x, y, op_type=name, by=BY),
                     sym.op.Custom(sym.var("x"), sym.var("y"), op_type=name, by=BY).eval(x=x, y=y)[0],
                     mx.ops.Custom(mx.Tensor(X), mx.Tensor(Y), op_type=name, by=BY)):
            close(each, VALUE)
        for call in (lambda: op(x, x=x), lambda: op(x, y, x), lambda: op(x, y, bye=1.0), lambda: op(x, y, by="z")):
            with pytest.raises((ArgumentError, AttrError, TypeError)) as found:
                call()
            assert name in " ".join([str(found.value), *getattr(found.value, "__notes__", ())])


@of_arrays
def _tensors(op: Operator) -> None:
    x, y = mx.Tensor(X), mx.Tensor(Y)

    def loss(x: Any, y: Any) -> Any:
        return (op(x, y, by=BY) * mx.Tensor(G)).sum()

    for compiled in (lambda function: function, mx.jit):
        out = compiled(lambda x, y: op(x, y, by=BY))(x, y)
        assert type(out) is mx.Tensor
        close(out, VALUE)
        for found, wanted in zip(compiled(mx.grad(loss, (0, 1)))(x, y), (GX, GY)):
            close(found, wanted)
        value, pull = mx.vjp(lambda x, y: op(x, y, by=BY), x, y)
        close(value, VALUE)
        for found, wanted in zip(pull(mx.Tensor(G)), (GX, GY)):
            close(found, wanted)


@of_arrays
def _cells(op: Operator) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.y = mx.Parameter(mx.Tensor(Y), name="y")

        def construct(self, x: Any) -> Any:
            return op(x, self.y, by=BY)

    class Loss(nn.Cell):
        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net = net

        def construct(self, x: Any) -> Any:
            return (self.net(x) * mx.Tensor(G)).sum()

    for recomputed in (False, True):
        net = Net()
        if recomputed:
            net.recompute()
        close(net(mx.Tensor(X)), VALUE)
        close(mx.jit(net)(mx.Tensor(X)), VALUE)
        step = nn.TrainOneStepCell(Loss(net), nn.SGD(net.trainable_params(), 0.1))
        step(mx.Tensor(X))
        close(net.y, Y - 0.1 * GY)


@of_arrays
def _loop_over_arrays(op: Operator) -> None:
    x = nd.array(X)
    x.attach_grad()
    with mx.autograd.record():
        outs, _ = nd.contrib.foreach(lambda d, s: (op(d, s, by=BY), s), x, nd.array(Y[0]))
    outs.backward(nd.array(G))
    close(x.grad, gradients(G, X, Y[:1], BY)[0])


@of_arrays
def _threads(op: Operator) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            _recorded(op, by=BY)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.parametrize("entry", ARRAYS, ids=lambda entry: entry.__name__[1:])
@pytest.mark.parametrize("kind", EVERYWHERE)
def test_every_kind_of_operator_takes_every_entry_on_arrays(kind: str, entry: Callable[[Operator], None]) -> None:
    if kind == "ops.Custom" and entry is _arrays:
        pytest.skip("it makes tensors of arrays")
    entry(operator_of(kind))


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_operators_of_every_kind_have_vmap_jvp_and_second_derivatives(kind: str) -> None:
    op, x, y = operator_of(kind), mx.Tensor(X), mx.Tensor(Y)
    if kind == "autograd.Function":
        with pytest.raises(TypeError, match=r"it calls Function, an autograd\.Function"):
            mx.vmap(lambda x, y: op(x, y, by=BY))(x, y)
    else:
        close(mx.vmap(lambda x, y: op(x, y, by=BY))(x, y), VALUE)

    def slope(y: Any) -> Any:
        return mx.grad(lambda y: op(x, y, by=BY).sum())(y)

    def second() -> Any:
        return mx.grad(lambda y: (slope(y) * mx.Tensor(G)).sum())(y)

    if kind in TWICE:
        t = np.tanh(Y)
        close(second(), G * BY * X * -2 * t * (1 - t * t))
        close(mx.jvp(lambda x, y: op(x, y, by=BY), (x, y), (mx.Tensor(G), mx.Tensor(G)))[1], GX + GY)
    elif kind != "autograd.Function":
        with pytest.raises(NotDifferentiableError, match=r"Prop|OldIn|kinds_function_numpy"):
            second()


def test_a_traced_body_finds_operators_of_every_kind_in_a_dict() -> None:
    operators: dict[str, Any] = {kind: operator_of(kind) for kind in IN_GRAPHS}
    operators["built in"] = mx.operator.get("softsign")

    def body(x: Any, y: Any) -> Any:
        return sum(operators[kind](x, y, by=BY) for kind in IN_GRAPHS) + operators["built in"](x)

    op = mx.operator.define(body, traced=True, name="_example_first_of_each")
    wanted = len(IN_GRAPHS) * VALUE + X / (1 + np.abs(X))
    for _ in range(2):
        close(op(nd.array(X), nd.array(Y)), wanted, 1e-4)
    close(computed(op(sym.var("x"), sym.var("y"))).outputs[0], wanted, 1e-4)


@pytest.mark.parametrize("kind", ["autograd.Function", "Cell with bprop", "ops.Custom"])
def test_errors_for_symbols_name_a_remedy(kind: str) -> None:
    with pytest.raises((ArgumentError, TypeError)) as found:
        operator_of(kind)(sym.var("x"), sym.var("y"), by=BY)
    told = " ".join([str(found.value), *getattr(found.value, "__notes__", ())])
    assert "to_symbol" in told if kind == "Cell with bprop" else "mx.operator.define" in told or \
        "opreg.operator.define" in told


def test_a_cell_with_bprop_is_written_to_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnx")

    class Net(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return operator_of("Cell with bprop")(x, y, by=BY) + 1.0

    mx.onnx.export(Net(), str(tmp_path / "net.onnx"), mx.Tensor(X), mx.Tensor(Y))
    close(mx.onnx.import_to_cell(str(tmp_path / "net.onnx"))(mx.Tensor(X), mx.Tensor(Y)), VALUE + 1)


def test_onnx_takes_attributes_of_any_name_and_refuses_operators_that_nobody_registered(unregistered: None) -> None:
    pytest.importorskip("onnx")

    def body(x: Any, *, domain: str = "d", inputs: int = 3, kind: float = 1.0) -> Any:
        return x * 1.0

    symbol = mx.operator.define(body, name="_example_first_odd")(sym.var("x"), inputs=4, name="node")
    kept = {each.name: each for each in mx.onnx.to_model(symbol, X).graph.node[0].attribute}
    assert (kept["domain"].s, kept["inputs"].i, kept["kind"].f) == (b"d", 4, 1)
    with pytest.raises(UnknownOperatorError, match="'node' needs the custom operator '_example_first_none'"):
        mx.onnx.to_model(sym.load_json(symbol.tojson().replace("first_odd", "first_none")), X)


@pytest.mark.parametrize("auxiliary", [(), ("y",)])
def test_onnx_export_refuses_a_variable_without_shape_and_value(auxiliary: tuple[str, ...]) -> None:
    pytest.importorskip("onnx")
    op = mx.operator.define(lambda x, y: x * y, name=f"_example_first_{next(_NAMES)}", auxiliary=auxiliary)
    for symbol in (node_of(op), sym.broadcast_mul(sym.var("x"), sym.var("y"), name="node")):
        with pytest.raises(ArgumentError, match=r"'node'.*input '.*' .*neither an example nor a value"):
            mx.onnx.to_model(symbol, X)


def node_of(op: Operator) -> Any:
    return op(sym.var("x"), sym.var("y"), name="node")


# ------------------------------------------------------------------------------------------- before CustomOp


def test_a_numpy_op_may_have_rules_and_is_registered_once() -> None:
    class Cube(mx.operator.NumpyOp):
        def forward(self, in_data: Any, out_data: Any) -> None:
            out_data[0][...] = in_data[0] ** 3

        def gradient(self, g: Any, ins: Any, outs: Any) -> Any:
            return 3 * g * ins[0] ** 2

        def vmap(self, ins: Any, batched: Any) -> Any:
            return cube(ins[0])

    cube, x = Cube(), nd.array(X)
    x.attach_grad()
    with mx.autograd.record():
        [slope] = mx.autograd.grad(cube(x), [x], create_graph=True)
    slope.backward()
    close(x.grad, 6 * X)
    close(mx.autograd.vmap(cube)(x), X ** 3)
    first, second = cube(sym.var("x"), name="n").tojson(), cube(sym.var("x"), name="n").tojson()
    assert first == second
    report = mx.operator.check(OldInNumPy(BY), X[:2], Y[:2])
    assert report.ok, report
    with pytest.raises(ArgumentError, match="make an object of it"):
        mx.operator.check(Cube, X)


def test_a_cheap_operator_is_computed_again_in_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    for kind in IN_GRAPHS:
        right(computed(node(operator_of(kind))))
