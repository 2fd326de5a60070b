"""Recomputation in backward: the same values with less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.core.registry import get
from opreg.symbol import compile as compiler
from opreg.symbol.passes.fuse import fuse
from tests.symbol.test_cse import assert_same, bound, networks, operators

sym, nd = mx.sym, mx.nd


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    """Verifies each pass."""
    monkeypatch.setattr(compiler, "CHECK", True)


def both(net: Any, shapes: dict[str, tuple], tolerance: float = 1e-12, **more: Any) -> tuple[Any, Any]:
    """Two executors, of which one recomputes, after a check that they agree."""
    ours, theirs = (bound(net, shapes, recompute=choice, **more) for choice in (True, False))
    assert_same(ours, theirs, tolerance)
    return ours, theirs


def nbytes(executor: Any) -> int:
    return executor.plan(True).nbytes


def again(executor: Any) -> list[str]:
    """Operators of forward that backward runs again."""
    return [step.node.op.name for step in executor.plan(True).backward.steps
            if step.node is not None and step.node.name.endswith("_again")]


def layer(x: Any, i: int, *, norm: Any = None, act: str = "tanh", p: float = 0.0) -> Any:
    """A fully connected layer of 64 and the operators after it."""
    x = sym.FullyConnected(x, num_hidden=64, name=f"fc{i}")
    x = norm(x, name=f"norm{i}") if norm else x
    x = sym.Activation(x, act_type=act, name=f"act{i}")
    return sym.Dropout(x, p=p, name=f"drop{i}") if p else x


def network(count: int = 8, **more: Any) -> Any:
    x = sym.Variable("data")
    for i in range(count):
        x = layer(x, i, **more)
    return sym.sum(x)


def batch_norm(x: Any, name: str) -> Any:
    return sym.BatchNorm(x, fix_gamma=False, name=name)


# -------------------------------------------------------------------------------------------- the numbers


@pytest.mark.once
@settings(max_examples=80, deadline=None)
@given(networks(), st.integers(0, 2**16), st.sampled_from(["write", "add"]), st.booleans(),
       st.sampled_from([True, "all"]))
def test_random_graphs_give_the_same_with_recomputation(net, seed, grad_req, fused, choice):
    shapes = {name: (1, 4) if name == "row" else (3, 4) for name in net.list_arguments()}
    without = () if fused else (fuse,)
    assert_same(bound(net, shapes, without, seed=seed, grad_req=grad_req, recompute=choice),
                bound(net, shapes, without, seed=seed, grad_req=grad_req))


NORMS = {
    "BatchNorm": batch_norm,
    "BatchNorm fixed": lambda x, name: sym.BatchNorm(x, name=name),
    "BatchNorm global": lambda x, name: sym.BatchNorm(x, use_global_stats=True, name=name),
    "BatchNorm shown": lambda x, name: sym.BatchNorm(x, fix_gamma=False, output_mean_var=True, name=name)[0],
    "with relu": lambda x, name: sym.contrib.BatchNormWithReLU(x, fix_gamma=False, name=name),
    "LayerNorm": lambda x, name: sym.LayerNorm(x, name=name),
    "LayerNorm first": lambda x, name: sym.LayerNorm(x, axis=0, name=name),
}


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-11), ("float32", 1e-5), ("float16", 1e-2)])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_norms_dropout_and_activations_give_the_same_with_recomputation(norm, dtype, tolerance):
    net = sym.Variable("data")
    for i in range(3):
        net = sym.Dropout(sym.Activation(norm(sym.Convolution(
            net, kernel=(3, 3), pad=(1, 1), num_filter=4, name=f"conv{i}"), f"norm{i}"), act_type="softrelu"), p=0.3)
    ours, theirs = both(net, {"data": (2, 4, 5, 5)}, tolerance, dtype=dtype)
    assert nbytes(ours) <= nbytes(theirs)


def test_dropout_masks_do_not_change():
    """Backward multiplies by the mask of forward, although other random numbers are drawn between them."""
    executor = bound(sym.Dropout(sym.tanh(sym.Variable("x")), p=0.5) * sym.Variable("w"), {"x": (64,), "w": (64,)},
                     recompute=True, dtype="float32")
    x = executor.arg_dict["x"].asnumpy()
    for _ in range(3):
        out = executor.forward(is_train=True)[0].asnumpy()
        mx.nd.random.uniform(shape=(7,))
        executor.backward(nd.ones((64,)))
        factor = out / executor.arg_dict["w"].asnumpy() / np.tanh(x)
        assert 0 < np.count_nonzero(factor) < 64
        np.testing.assert_allclose(executor.grad_dict["w"].asnumpy(), factor * np.tanh(x), rtol=1e-5)


def test_states_are_updated_once():
    ours, theirs = both(network(3, norm=batch_norm, p=0.2), {"data": (8, 16)}, 1e-9)
    assert any("moving" in name for name in ours.aux_dict)
    for _ in range(2):
        for executor in (ours, theirs):
            mx.random.seed(5)
            executor.forward(is_train=True)
            executor.backward(nd.ones((1,), dtype="float64"))
    for name, state in ours.aux_dict.items():
        np.testing.assert_allclose(state.asnumpy(), theirs.aux_dict[name].asnumpy(), rtol=1e-9)


def test_nothing_is_computed_again_from_states_that_have_moved():
    x, mean = sym.Variable("x"), sym.Variable("mean")
    normal = sym.BatchNorm(x, moving_mean=mean, momentum=0.1, fix_gamma=False, name="norm")
    y = sym.broadcast_add(x, mean)
    both(sym.tanh(y) * sym.sigmoid(y) * normal, {"x": (4, 3)})


# --------------------------------------------------------------------------------------------- the memory


def test_recomputing_norm_activation_and_dropout_halves_memory():
    ours, theirs = both(network(12, norm=batch_norm, p=0.2), {"data": (32, 64)}, 1e-7)
    assert nbytes(ours) < 0.6 * nbytes(theirs)
    assert "Dropout" not in again(ours) and "BatchNorm" not in again(ours)


def test_products_are_not_computed_again():
    ours, theirs = both(network(6), {"data": (32, 64)}, 1e-7)
    assert operators(ours, True)[1].count("FullyConnected") == 0
    assert nbytes(ours) <= nbytes(theirs)


def test_one_stored_value_replaces_several():
    """Three activations read one product, which is kept in place of the activations."""
    x = sym.Variable("x")
    y = sym.dot(x, sym.Variable("w"))
    net = sym.sum(sym.Concat(*[sym.dot(act(y), sym.Variable(f"v{i}"))
                               for i, act in enumerate((sym.tanh, sym.sigmoid, sym.relu))]))
    shapes = {"x": (64, 64), "w": (64, 64), **{f"v{i}": (64, 1) for i in range(3)}}
    ours, theirs = both(net, shapes, 1e-9)
    assert sorted(again(ours)) == ["relu", "sigmoid", "tanh"]
    assert nbytes(ours) < nbytes(theirs)


def test_one_activation_of_a_product_stays():
    ours, theirs = both(network(3, act="tanh"), {"data": (8, 64)}, 1e-9)
    assert again(ours) == []
    assert nbytes(ours) == nbytes(theirs)


def test_long_chains_are_recomputed_in_parts():
    net = sym.Variable("x")
    for _ in range(144):
        net = sym.softmax(sym.tanh(net))
    ours, theirs = both(net, {"x": (4, 256)}, 1e-9)
    assert nbytes(ours) < 0.25 * nbytes(theirs)
    assert len(again(ours)) < 2 * 144


def test_memory_of_a_deep_network_grows_with_the_square_root():
    ours, theirs = (bound(network(64, act="relu"), {"data": (64, 64)}, recompute=choice, grad_req="write")
                    for choice in ("all", False))
    assert_same(ours, theirs, 1e-6)
    assert nbytes(ours) < 0.4 * nbytes(theirs)
    assert "FullyConnected" in again(ours)


def test_other_choices_are_refused():
    with pytest.raises(mx.MXNetError, match="recompute='some': expected True, False or 'all'"):
        bound(network(1), {"data": (2, 2)}, recompute="some")


def test_inference_and_plans_without_gradients_stay():
    net = network(3, norm=batch_norm, p=0.2)
    ours, theirs = (bound(net, {"data": (8, 16)}, recompute=choice) for choice in (True, False))
    assert ours.explain(False) == theirs.explain(False)
    ours, theirs = (bound(net, {"data": (8, 16)}, recompute=choice, grad_req="null") for choice in (True, False))
    assert ours.explain(True) == theirs.explain(True)


# ------------------------------------------------------------------------------------- who asks, and for what


@pytest.mark.parametrize("value, choice, expected", [("1", None, True), ("0", None, False), ("1", False, False),
                                                     ("", True, True), ("true", None, True)])
def test_an_environment_variable_turns_recomputation_on(monkeypatch, value, choice, expected):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", value)
    net = network(4, norm=batch_norm, p=0.2)
    plain = nbytes(bound(net, {"data": (32, 64)}, recompute=False))
    executor = bound(net, {"data": (32, 64)}, recompute=choice)
    assert (nbytes(executor) < plain) is expected
    assert (nbytes(executor.reshape(data=(32, 64))) < plain) is expected


class Cubed(mx.operator.CustomOp):
    """An operator that counts the runs of its forward."""

    runs = 0

    def forward(self, is_train, req, in_data, out_data, aux):
        Cubed.runs += 1
        self.assign(out_data[0], req[0], in_data[0] ** 3)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 3 * in_data[0] ** 2)


@mx.operator.register("test_recompute_cubed")
class CubedProp(mx.operator.CustomOpProp):
    """The Prop of ``Cubed``, without declarations."""

    def create_operator(self, ctx, shapes, dtypes):
        return Cubed()


@pytest.mark.parametrize("choice", [True, False])
@pytest.mark.parametrize("tag, runs", [(None, 1), ("True", 2), ("False", 1)])
def test_users_operators_run_again_if_they_declare_it(choice, tag, runs):
    attr = {} if tag is None else {"force_mirroring": tag}
    net = sym.square(sym.Custom(sym.tanh(sym.Variable("x") * 2.0), op_type="test_recompute_cubed", attr=attr))
    executor = bound(net, {"x": (5,)}, recompute=choice)
    assert_same(executor, bound(net, {"x": (5,)}))
    Cubed.runs = 0
    executor.forward(is_train=True)
    executor.backward(nd.ones((5,), dtype="float64"))
    assert Cubed.runs == runs


def cheap_cubed(count: list[int], how: str, cheap: bool) -> str:
    """Name of a cheap user's operator, made in one of several ways, that counts its runs."""
    name = f"test_recompute_{how}_{cheap}"
    if how == "function":
        @mx.operator.define(name=name, cheap=cheap)
        def cubed(x):
            count.append(1)
            return x ** 3

        cubed.infer(lambda x: x)
        cubed.grad(lambda g, ins, outs: g * 3.0 * ins[0] * ins[0])
    else:
        class Counting(Cubed):
            def forward(self, is_train, req, in_data, out_data, aux):
                count.append(1)
                super().forward(is_train, req, in_data, out_data, aux)

        said = cheap

        @mx.operator.register(name)
        class CountingProp(mx.operator.CustomOpProp):
            cheap = said

            def create_operator(self, ctx, shapes, dtypes):
                return Counting()

    return name


@pytest.mark.parametrize("choice", [True, False])
@pytest.mark.parametrize("cheap", [True, False])
@pytest.mark.parametrize("how", ["function", "class"])
def test_users_operators_that_are_cheap_run_again(how, cheap, choice):
    count: list[int] = []
    name = cheap_cubed(count, how, cheap)
    net = sym.square(sym.Custom(sym.tanh(sym.Variable("x") * 2.0), op_type=name))
    executor = bound(net, {"x": (5,)}, recompute=choice)
    assert_same(executor, bound(net, {"x": (5,)}))
    executor.forward(is_train=True)
    count.clear()
    executor.forward(is_train=True)
    executor.backward(nd.ones((5,), dtype="float64"))
    assert len(count) == 1 + (cheap and choice)


def test_a_tagged_product_is_computed_again():
    """A tagged node is computed again without the option, too, as in MXNet; other nodes are kept."""
    with mx.AttrScope(force_mirroring="True"):
        y = sym.dot(sym.Variable("x"), sym.Variable("w"), name="product")
    net = sym.sum(sym.tanh(sym.square(y)))
    executor = bound(net, {"x": (16, 8), "w": (8, 16)}, (fuse,))
    assert again(executor) == ["dot"]
    assert_same(executor, bound(net, {"x": (16, 8), "w": (8, 16)}))


@pytest.mark.parametrize("name", ["Dropout", "BatchNorm", "_contrib_BatchNormWithReLU"])
def test_operators_have_recompute_rules(name):
    assert get(name).rules.recompute is not None


def test_recompute_rules_may_decline():
    """In float16 the statistics have another dtype than the data, or were rounded, so the rule does not apply."""
    for norm in (batch_norm, NORMS["LayerNorm"]):
        ours, _ = both(network(2, norm=norm), {"data": (4, 8)}, 1e-2, dtype="float16")
        assert "BatchNorm" not in again(ours)


COMPARED = {
    "clip": lambda y: sym.clip(y, a_min=-0.5, a_max=0.5),
    "max": lambda y: sym.broadcast_mul(y, sym.max(y, axis=(2, 3), keepdims=True)),
    "pooling": lambda y: sym.Pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max"),
    "max of a view": lambda y: sym.max(sym.reshape(y, shape=(0, -1)), axis=1),
}
MAKERS = {
    "BatchNorm": batch_norm,
    "LayerNorm": NORMS["LayerNorm"],
    "sums": lambda y, name: (sym.sigmoid(y) * y) * 0.1 + (y + 1) * 0.01,
}


@pytest.mark.parametrize("choice", [True, "all"])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("compared", COMPARED.values(), ids=COMPARED)
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_gradients_of_maxima_find_equal_elements_with_recomputation(maker, compared, head, choice):
    """Recomputed values equal those of forward to the last bit, since they are compared with others."""
    y = maker(sym.Convolution(sym.Variable("data"), kernel=(1, 1), num_filter=4, name="conv"), "norm")
    z = compared(y)
    net = sym.Group([z, sym.exp(z)]) if head else sym.sum(sym.exp(z) + sym.tanh(z))
    shapes = {"data": (2, 3, 6, 6)}
    for seed, dtype, tolerance in (*[(seed, "float64", 1e-9) for seed in range(5)], (5, "float32", 1e-3)):
        assert_same(bound(net, shapes, seed=seed, dtype=dtype, recompute=choice),
                    bound(net, shapes, seed=seed, dtype=dtype), tolerance)
