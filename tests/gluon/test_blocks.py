"""Blocks, hybrid blocks, parameters: names, shapes, files, and plans that are updated after every change."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd
from opreg.gluon import nn
from opreg.gluon.structure import flatten


def _net(**kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten(), nn.Dense(3))
    return net


def _image(seed=0, rows=2):
    return nd.array(np.random.default_rng(seed).normal(size=(rows, 3, 6, 6)).astype("float32"))


def _trained(net, x):
    """Output and all gradients of a training step."""
    with autograd.record():
        y = net(x)
        loss = (y * y).sum()
    loss.backward()
    return y.asnumpy(), {name: parameter.grad().asnumpy().copy() for name, parameter in net.collect_params().items()
                         if parameter.grad_req != "null"}


def test_the_error_of_a_shape_that_inputs_do_not_determine_names_the_operator_that_takes_it():
    """Shape rules of custom operators lead from inputs to outputs, and not back."""
    @mx.operator.register("_example_copies_weights")
    class CopyProp(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], []

    class Convolution(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.weight = self.params.get("weight", shape=(4, 0, 3, 3), allow_deferred_init=True)

        def hybrid_forward(self, F, x, weight):
            kernel = F.Custom(weight, op_type="_example_copies_weights")
            return F.Convolution(x, kernel, no_bias=True, kernel=(3, 3), num_filter=4)

    net = Convolution(prefix="binary_")
    net.initialize()
    with pytest.raises(mx.OpError, match=r"binary_weight: \(4, \?, 3, 3\), an input of custom\._example_copies_weights "
                       r"'.*'. Give these parameters their whole shapes"):
        net(_image())


def test_a_dense_layer_without_units_can_be_made_and_refuses_to_compute():
    """Programs make lists of layers, ``[nn.Dense(10 * i) for i in range(6)]``, and use some of them."""
    layer = nn.Dense(0)
    layer.initialize()
    with pytest.raises(ValueError, match="shape"):
        layer(nd.ones((2, 3, 4)))



def test_names_are_those_of_mxnet():
    net = _net(prefix="net_")
    assert list(net.collect_params()) == [
        "net_conv0_weight", "net_conv0_bias", "net_batchnorm0_gamma", "net_batchnorm0_beta",
        "net_batchnorm0_running_mean", "net_batchnorm0_running_var", "net_dense0_weight", "net_dense0_bias"]
    assert list(net.collect_params(".*conv0|.*dense0_bias")) == [
        "net_conv0_weight", "net_conv0_bias", "net_dense0_bias"]
    assert net[0].prefix == "net_conv0_" and net[0].name == "net_conv0"
    assert nn.Dense(2, prefix="a_").name == "a"


def test_blocks_are_printed_as_mxnet_prints_them():
    assert repr(_net()) == """HybridSequential(
  (0): Conv2D(None -> 4, kernel_size=(3, 3), stride=(1, 1), Activation(relu))
  (1): BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, in_channels=None)
  (2): MaxPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False, global_pool=False, pool_type=max, \
layout=NCHW)
  (3): Flatten
  (4): Dense(None -> 3, linear)
)"""


def test_shapes_that_are_left_open_follow_from_the_first_input():
    net = _net()
    net.initialize()
    with pytest.raises(gluon.DeferredInitializationError, match="conv0_weight"):
        net[0].weight.data()
    assert net(_image()).shape == (2, 3)
    assert net[4].weight.shape == (3, 16) and net[0].weight.data().shape == (4, 3, 3, 3)


@pytest.mark.parametrize("body", [
    lambda F, x: F.split(x, num_outputs=2),
    lambda F, x: [x * 2, F.split(x, num_outputs=2)],
    lambda F, x: (F.split(x, num_outputs=2), [x + 1, F.split(x * 3, num_outputs=4)], F.sum(x))])
def test_operators_of_several_outputs_are_nested_as_without_a_plan(body):
    class Several(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return body(F, x)

    x, results = _image(rows=4).reshape((2, 8, -1)), []
    for hybrid in (False, True):
        net = Several()
        if hybrid:
            net.hybridize()
        x.attach_grad()
        with autograd.record():
            heads, form = flatten(net(x), "output")
            loss = sum((i + 1) * (head * head).sum() for i, head in enumerate(heads))
        loss.backward()
        results.append((form, [head.asnumpy().tolist() for head in heads], x.grad.asnumpy()))
    assert results[0][:2] == results[1][:2]
    np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-6)


def test_a_plan_equals_operators_one_by_one():
    x, net = _image(), _net()
    net.initialize(mx.init.Xavier())
    before = net(x).asnumpy()
    mean = net[1].running_mean.data().copy()
    eager, gradients = _trained(net, x)
    moved = net[1].running_mean.data().asnumpy()
    net[1].running_mean.set_data(mean)
    net[1].running_var.set_data(nd.ones((4,)))
    net.hybridize(static_alloc=True, static_shape=True)
    np.testing.assert_allclose(net(x).asnumpy(), before, rtol=1e-5, atol=1e-6)
    planned, again = _trained(net, x)
    np.testing.assert_allclose(planned, eager, rtol=1e-5, atol=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(again[name], gradient, rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(net[1].running_mean.data().asnumpy(), moved, rtol=1e-5, atol=1e-6)


def _cast(net):
    net.cast("float64")


def _set(net):
    net[4].weight.set_data(nd.ones((3, 16)))


def _begun_anew(net):
    net.initialize(mx.init.One(), force_reinit=True)


def _moved(net):
    net.collect_params().reset_ctx(mx.cpu())


def _without_gradient(net):
    net[0].weight.grad_req = "null"


def _added(net):
    net.collect_params().setattr("grad_req", "add")


def _replaced(net):
    child = nn.Dense(5, in_units=16, prefix="other_")
    child.initialize(mx.init.One())
    net.register_child(child, "4")


def _deeper(net):
    net[1]._kwargs = {**net[1]._kwargs, "use_global_stats": True}
    net[1].eps = 1


def _setting(net):
    net[4]._flatten = False
    net[3].name_of_setting = 1


def _loaded(net):
    net.collect_params().load_dict({name: parameter.data() * 2 for name, parameter in net.collect_params().items()})


@pytest.mark.parametrize("change", [_cast, _set, _begun_anew, _moved, _without_gradient, _added, _replaced, _setting,
                                    _loaded])
def test_plans_are_dropped_with_the_state_they_were_made_of(change):
    """After a change, a block that was hybridized and called before agrees with one that never was."""
    x, nets = _image(), []
    for hybrid in (False, True):
        mx.random.seed(1)
        net = _net(prefix="net_")
        net.initialize(mx.init.Xavier())
        if hybrid:
            net.hybridize()
        _trained(net, x)
        net(x)
        change(net)
        nets.append(net)
    data = x.astype(nets[0][0].weight.dtype)
    for _ in range(2):
        (plain, expected), (planned, found) = (_trained(net, data) for net in nets)
        np.testing.assert_allclose(planned, plain, rtol=1e-4, atol=1e-5)
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(nets[1](data).asnumpy(), nets[0](data).asnumpy(), rtol=1e-4, atol=1e-5)


def test_replacing_a_grandchild_discards_plans():
    inner = nn.HybridSequential()
    inner.add(nn.Dense(2, in_units=2))
    net = nn.HybridSequential()
    net.add(inner)
    net.initialize(mx.init.One())
    net.hybridize()
    assert net(nd.ones((1, 2))).shape == (1, 2)
    other = nn.Dense(5, in_units=2)
    other.initialize()
    inner.register_child(other, "0")
    assert net(nd.ones((1, 2))).shape == (1, 5)


def test_calls_that_wait_for_their_gradients_do_not_share_a_plan():
    layer = nn.Dense(1, use_bias=False, in_units=2)
    layer.initialize(mx.init.One())
    layer.hybridize()
    with autograd.record():
        first, second = layer(nd.array([[1, 2]])), layer(nd.array([[3, 4]]))
    second.backward()
    assert layer.weight.grad().asnumpy().tolist() == [[3, 4]]
    first.backward()
    assert layer.weight.grad().asnumpy().tolist() == [[1, 2]]
    assert first.asscalar() == 3 and second.asscalar() == 7


def test_a_hybridized_layer_has_second_derivatives():
    x = nd.array([[1.0, 2.0]])
    x.attach_grad()
    layer = nn.HybridLambda(lambda F, x: x * x * x)
    layer.hybridize()
    with autograd.record():
        y = layer(x)
        (first,) = autograd.grad(y, x, create_graph=True)
        assert type(first) is nd.NDArray
        total = first.sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [[6, 12]]


def test_a_plan_is_part_of_the_symbol_of_what_was_recorded():
    net, x = nn.HybridSequential(), nd.array([[1, -2, 3]])
    net.add(nn.Dense(4, in_units=3, activation="relu"), nn.Dense(2, in_units=4))
    net.initialize(mx.init.Uniform(1))
    net.hybridize()
    x.attach_grad()
    with autograd.record():
        y = net(x * 2) + net(x)
    symbol = autograd.get_symbol(y)
    assert symbol.get_internals().tojson().count('"FullyConnected"') == 4
    weights = [each.data() for each in net.collect_params().values()]
    found = symbol.eval(**dict(zip(symbol.list_arguments(), [x, *weights], strict=True)))[0]
    np.testing.assert_array_equal(found.asnumpy(), y.asnumpy())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_do_not_share_parameters(copied):
    x, net = _image(), _net()
    net.initialize()
    net.hybridize()
    _trained(net, x)
    other = copied(net)
    assert (other(x) == net(x)).min().asscalar() == 1
    (_, expected), (_, found) = _trained(net, x), _trained(other, x)
    assert found.keys() == expected.keys() and all((found[name] == expected[name]).all() for name in found)
    other[4].weight.set_data(nd.zeros((3, 16)))
    assert net[4].weight.data().asnumpy().any() and not other(x).asnumpy().any()


@pytest.mark.parametrize("hybrid", [False, True])
def test_shapes_that_follow_from_numbers_and_loops_run(hybrid):
    class Loop(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.contrib.foreach(lambda row, state: (row + state, row + state), x, F.zeros_like(x[0]) if F is nd
                                     else F.zeros_like(F.reshape(F.slice_axis(x, axis=0, begin=0, end=1), (-1,))))[0]

    kept, loop = nn.HybridLambda(lambda F, x: F.contrib.boolean_mask(x, x > 0)), Loop()
    if hybrid:
        kept.hybridize()
        loop.hybridize()
    assert kept(nd.array([1, -1, 2])).shape == (2,) and kept(nd.array([1, -1, -2])).shape == (1,)
    x = nd.array([[1], [2], [3]])
    x.attach_grad()
    with autograd.record():
        y = loop(x)
    y.backward()
    assert y.asnumpy().ravel().tolist() == [1, 3, 6] and x.grad.asnumpy().ravel().tolist() == [3, 2, 1]


def test_hooks_of_operators_receive_names():
    told, net = [], nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2))
    net.initialize()
    net.hybridize()
    plain = net(nd.ones((1, 3))).asnumpy()
    net.register_op_hook(lambda name, operator, array: told.append((name, operator, array.shape)), monitor_all=True)
    assert (net(nd.ones((1, 3))).asnumpy() == plain).all()
    assert told == [("net_dense0_fwd_data", "FullyConnected", (1, 3)),
                    ("net_dense0_fwd_weight", "FullyConnected", (2, 3)),
                    ("net_dense0_fwd_bias", "FullyConnected", (2,)),
                    ("net_dense0_fwd_output", "FullyConnected", (1, 2))]


def test_parameters_share_by_their_dicts():
    first = nn.Dense(2, in_units=3, prefix="shared_")
    second = nn.Dense(2, in_units=3, params=first.params)
    first.initialize()
    assert second.weight is first.weight and list(second.collect_params()) == ["shared_weight", "shared_bias"]


@pytest.mark.parametrize("hybrid", [False, True])
def test_files_restore_the_saved_values(tmp_path, hybrid):
    x, net = _image(), _net(prefix="a_")
    net.initialize()
    if hybrid:
        net.hybridize()
    expected = net(x).asnumpy()
    by_path, by_name = str(tmp_path / "path.params"), str(tmp_path / "name.params")
    net.save_parameters(by_path)
    net.collect_params().save(by_name, strip_prefix="a_")
    assert sorted(nd.load(by_path)) == sorted([
        "0.weight", "0.bias", "1.gamma", "1.beta", "1.running_mean", "1.running_var", "4.weight", "4.bias"])
    for path in (by_path, by_name):
        other = _net(prefix="b_")
        other.load_parameters(path)
        assert (other(x).asnumpy() == expected).all()
    more = _net()
    more.add(nn.Dense(1))
    with pytest.raises(AssertionError, match=r"'5\.weight' is missing"):
        more.load_parameters(by_path)
    less = nn.HybridSequential()
    less.add(nn.Conv2D(4, 3))
    with pytest.raises(ValueError, match="ignore_extra=True"):
        less.load_parameters(by_path)
    less.load_parameters(by_path, ignore_extra=True)


def test_an_exported_block_runs_as_block_and_as_module(tmp_path):
    x, net = _image(), _net(prefix="net_")
    net.initialize()
    with pytest.raises(RuntimeError, match="hybridize"):
        net.export(str(tmp_path / "model"))
    net.hybridize()
    _trained(net, x)
    expected = net(x).asnumpy()
    graph, arrays = net.export(str(tmp_path / "model"), epoch=7)
    assert arrays.endswith("model-0007.params") and "aux:net_batchnorm0_running_var" in nd.load(arrays)
    block = gluon.SymbolBlock.imports(graph, ["data"], arrays)
    np.testing.assert_allclose(block(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    module = mx.mod.Module.load(str(tmp_path / "model"), 7, label_names=None)
    module.bind([("data", x.shape)], for_training=False)
    module.forward(mx.io.DataBatch([x]), is_train=False)
    np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert "net_dense0_weight" in block.collect_params()
    y = block(mx.sym.var("x"))
    assert y.list_arguments()[0] == "x"


def test_a_network_of_another_structure_is_saved_and_loaded(tmp_path):
    x, net = _image(), _net()
    net.initialize()
    net.hybridize()
    expected = net(x).asnumpy()
    net.save(str(tmp_path / "whole"))
    other = _net()
    other.load(str(tmp_path / "whole"))
    np.testing.assert_allclose(other(x).asnumpy(), expected, rtol=1e-6)
    assert other.name == net.name and other[0].name == net[0].name


def test_a_network_is_not_loaded_from_a_damaged_file_or_that_of_another_structure(tmp_path):
    net, path = _net(), tmp_path / "whole-model.json"
    net.initialize()
    net(_image())
    net.save(str(tmp_path / "whole"))
    good = path.read_bytes()
    for content in (b"", good[:-1], b"[]", b"{}", b'{"hybridsequential0": 3}', good.replace(b"orig_name", b"other"),
                    good.replace(b"children", b"parents")):
        path.write_bytes(content)
        other = _net()
        name = other.name
        with pytest.raises(mx.OpError, match="whole-model"):
            other.load(str(tmp_path / "whole"))
        assert other.name == name
    path.unlink()
    with pytest.raises(mx.OpError, match="whole-model"):
        _net().load(str(tmp_path / "whole"))


def test_hooks_see_inputs_and_outputs():
    seen, layer = [], nn.Dense(1, in_units=1)
    layer.initialize(mx.init.One())
    before = layer.register_forward_pre_hook(lambda block, args: seen.append(("before", block, args[0].shape)))
    with layer.register_forward_hook(lambda block, args, out: seen.append(("after", block, out.asscalar()))):
        layer(nd.array([[2]]))
    before.detach()
    layer(nd.array([[2]]))
    assert seen == [("before", layer, (1, 1)), ("after", layer, 2)]


def test_summary_counts_parameters(capsys):
    net = _net()
    net.initialize()
    net.summary(_image())
    said = capsys.readouterr().out
    assert "         BatchNorm-4                                (2, 4, 4, 4)              16\n" in said
    assert "Total params: 179" in said and "Non-trainable params: 8" in said


def test_constants_keep_their_values():
    class Shift(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.by = self.params.get_constant("by", [[1, 2]])

        def hybrid_forward(self, F, x, by):
            return F.broadcast_add(x, by)

    net = Shift()
    net.initialize()
    for _ in range(2):
        assert net(nd.zeros((1, 2))).asnumpy().tolist() == [[1, 2]]
        net.hybridize()
    with pytest.warns(UserWarning, match="grad_req"):
        net.by.grad_req = "write"


def test_a_hybridized_block_refuses_inputs_of_several_contexts():
    class Sum(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return x + y

    net = Sum()
    net.hybridize()
    here, there = nd.ones((2,)), nd.ones((2,), ctx=mx.cpu(1))
    assert net(here, here).asnumpy().tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"\['cpu\(0\)', 'cpu\(1\)'\]"):
        net(here, there)


def test_several_contexts_hold_copies():
    weight = gluon.Parameter("weight", shape=(2,))
    weight.initialize(mx.init.One(), ctx=[mx.cpu(0), mx.cpu(1)])
    assert [each.context for each in weight.list_data()] == [mx.cpu(0), mx.cpu(1)]
    assert weight.data(mx.cpu(1)).context == mx.cpu(1) and len(weight.list_grad()) == 2
    with pytest.raises(RuntimeError, match="not initialized on context"):
        weight.data(mx.cpu(2))
    assert weight._ctx_map == [[], [0, 1]]
    weight.reset_ctx(mx.cpu(2))
    assert weight.list_ctx() == [mx.cpu(2)] and weight._ctx_map == [[], [None, None, 0]]


@pytest.mark.parametrize("wrong, words", [
    (lambda: gluon.Parameter("w", grad_req="ad"), "grad_req must be"),
    (lambda: gluon.Parameter("w", shape=(2, 0)).initialize(), "invalid shape"),
    (lambda: gluon.Parameter("w", shape=(2,)).data(), "has not been initialized"),
    (lambda: gluon.ParameterDict().get_constant("c"), "No constant named"),
    (lambda: nn.HybridSequential().add(nn.Sequential()), "must also be HybridBlock"),
    (lambda: nn.Dense(2)(3), "one NDArray or one Symbol"),
    (lambda: nn.Conv2D(2, (1, 2, 3)), "kernel_size must be"),
    (lambda: nn.Conv2D(2, 3, layout="NHCW"), "Did you mean"),
    (lambda: gluon.Blok, "Did you mean 'Block'"),
])
def test_mistakes_with_blocks_are_refused(wrong, words):
    with pytest.raises((ValueError, RuntimeError, KeyError, AttributeError), match=words):
        wrong()


def test_variables_that_a_block_makes_by_itself_are_named():
    net = nn.HybridLambda(lambda F, x: x + F.var("z"), prefix="sum_")
    net.hybridize()
    with pytest.raises(RuntimeError, match=r"sum: .*variable 'z', which is neither an input \(data\) nor a parameter"):
        net(_image())


@pytest.mark.parametrize("base, name, misspelt", [(gluon.Block, "forward", "foward"),
                                                  (gluon.HybridBlock, "hybrid_forward", "hybird_forward")])
def test_a_misspelt_forward_is_reported(base, name, misspelt):
    net = type("Net", (base,), {misspelt: lambda self, *args: args[-1]})()
    with pytest.raises(NotImplementedError, match=f"Net has no {name}; is it '{misspelt}'"):
        net(mx.nd.ones((2,)))
