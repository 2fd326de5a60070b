"""Executors with sparse arrays: they agree with dense ones, keep storage types, and compute on stored elements."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym
from opreg.errors import ArgumentError
from opreg.ndarray.sparse_numbers import Csr, Rows

#: By name: a graph of x, w and b, the storage types of x and w, and those of the outputs.
GRAPHS = {
    "kept": (lambda x, w, b: sym.relu(x), "csr", "default", ["csr"]),
    "a chain": (lambda x, w, b: sym.sqrt(sym.abs(x)) * 2, "csr", "default", ["csr"]),
    "filled": (lambda x, w, b: sym.sigmoid(x), "csr", "default", ["default"]),
    "filled by a number": (lambda x, w, b: sym.relu(x) + 1, "csr", "default", ["default"]),
    "a linear model": (lambda x, w, b: sym.broadcast_add(sym.dot(x, w, name="scores"), b, name="shifted"), "csr",
                       "row_sparse", ["default"]),
    "a product from the left": (lambda x, w, b: sym.dot(x, w, transpose_a=True), "csr", "default", ["row_sparse"]),
    "dense": (lambda x, w, b: sym.FullyConnected(x, sym.transpose(w), b, num_hidden=2), "csr", "row_sparse",
              ["default"]),
    "weights computed before": (lambda x, w, b: sym.dot(x, sym.tanh(w)), "csr", "default", ["default"]),
    "weights in both parts": (lambda x, w, b: sym.broadcast_add(sym.tanh(sym.dot(x, w)), sym.sum(w)), "csr",
                              "default", ["default"]),
    "sparse weights in both parts": (lambda x, w, b: sym.broadcast_add(sym.tanh(sym.dot(x, w)), sym.sum(w)), "csr",
                                     "row_sparse", ["default"]),
    "outputs of both parts": (lambda x, w, b: sym.Group([sym.square(x), sym.sin(b), sym.dot(x, w)]), "csr", "default",
                              ["csr", "default", "default"]),
    "a variable": (lambda x, w, b: sym.Group([x, sym.dot(x, w)]), "csr", "default", ["csr", "default"]),
    "a loss": (lambda x, w, b: sym.MakeLoss(sym.square(sym.dot(x, w))), "csr", "default", ["default"]),
    "blocked": (lambda x, w, b: sym.BlockGrad(sym.square(w)) + sym.negative(w), "default", "row_sparse",
                ["row_sparse"]),
    "nothing differentiable": (lambda x, w, b: sym.BlockGrad(sym.square(w)), "default", "row_sparse", ["row_sparse"]),
}


def graph_of(name):
    make, x_stype, w_stype, expected = GRAPHS[name]
    x, w, b = sym.var("x", stype=x_stype), sym.var("w", stype=w_stype), sym.var("b")
    return make(x, w, b), {"x": x_stype, "w": w_stype}, expected


def executors(symbol, stypes, req):
    """Executors of sparse and of dense arrays with the same values."""
    rng = np.random.default_rng(1)
    shapes = {"x": (4, 4) if "x" in stypes else (), "w": (4, 2), "b": (2,)}
    values = {name: np.float32(rng.normal(size=shapes[name]) * (rng.random(shapes[name]) < 0.6))
              for name in symbol.list_arguments()}
    start = {name: np.float32(rng.normal(size=value.shape)) for name, value in values.items()}

    def bound(stype_of):
        stored = {name: nd.array(value).tostype(stype_of(name)) for name, value in values.items()}
        return symbol.bind(mx.current_context(), stored,
                           {name: nd.array(value).tostype(stype_of(name)) for name, value in start.items()}, req)

    return bound(lambda name: stypes.get(name, "default")), bound(lambda name: "default")


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("name", GRAPHS)
def test_sparse_results_equal_dense_ones(name, req):
    symbol, stypes, expected = graph_of(name)
    sparse, dense = executors(symbol, stypes, req)
    tops = [nd.ones(out.shape) * (i + 1) for i, out in enumerate(dense.forward(is_train=True))]
    for _ in range(2):
        outs = sparse.forward(is_train=True)
        sparse.backward(tops)
        dense.forward(is_train=True)
        dense.backward(tops)
        assert [out.stype for out in outs] == expected
        for ours, theirs in zip(outs, dense.outputs):
            np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-6)
        for key, grad in sparse.grad_dict.items():
            assert grad.stype == stypes.get(key, "default")
            np.testing.assert_allclose(grad.asnumpy(), dense.grad_dict[key].asnumpy(), 1e-5, 1e-6, err_msg=key)


@pytest.mark.parametrize("name", ["a linear model", "outputs of both parts"])
def test_backward_runs_forward_again_where_it_has_to(name):
    symbol, stypes, _ = graph_of(name)
    sparse, dense = executors(symbol, stypes, "write")
    tops = [nd.ones(out.shape) for out in dense.forward()]
    for executor in (sparse, dense):
        executor.forward(is_train=False)
        executor.backward(tops)
        executor.backward(tops, is_train=False)
    for key, grad in sparse.grad_dict.items():
        np.testing.assert_allclose(grad.asnumpy(), dense.grad_dict[key].asnumpy(), rtol=1e-5, err_msg=key)


def test_a_module_never_makes_the_matrix_or_the_gradient_dense(monkeypatch):
    """The linear model has many columns, few of which are stored."""
    width, rng = 1000, np.random.default_rng(0)
    x = nd.sparse.csr_matrix((np.ones(8), rng.integers(0, width, 8), np.arange(0, 9, 2)), shape=(4, width))
    weight = sym.var("weight", stype="row_sparse", shape=(width, 2))
    scores = sym.broadcast_add(sym.dot(sym.var("data", stype="csr"), weight), sym.var("bias", shape=(2,)))
    net = sym.LinearRegressionOutput(scores, sym.var("label"))
    module = mx.mod.Module(net, label_names=["label"])
    batches = mx.io.NDArrayIter(x, {"label": np.ones((4, 2), "f")}, batch_size=2, last_batch_handle="discard")
    module.bind(batches.provide_data, batches.provide_label)
    module.init_params(mx.init.Zero())
    module.init_optimizer(optimizer="sgd", kvstore=None, optimizer_params={"learning_rate": 1.0})

    def refuse(self):
        raise AssertionError(f"dense array of {self.shape}")

    for kind in (Csr, Rows):
        monkeypatch.setattr(kind, "dense", refuse)
    for batch in batches:
        module.forward_backward(batch)
        module.update()
    monkeypatch.undo()
    moved = module.get_params()[0]["weight"].asnumpy()
    assert set(np.flatnonzero(moved.any(axis=1))) == set(x.indices.asnumpy().tolist())


def test_an_output_of_stored_elements_needs_its_gradient():
    symbol, stypes, _ = graph_of("kept")
    sparse, _ = executors(symbol, stypes, "write")
    sparse.forward(is_train=True)
    with pytest.raises(ArgumentError, match=r"output '.*_output' comes from no loss operator"):
        sparse.backward()


def test_states_may_be_sparse():
    x = np.float32(np.arange(6).reshape(3, 2))
    symbol = sym.BatchNorm(sym.var("x", stype="row_sparse"), name="bn", momentum=0.5, fix_gamma=False)
    executor = symbol.bind(mx.current_context(), {"x": nd.array(x).tostype("row_sparse"), "bn_gamma": nd.ones(2),
                                                  "bn_beta": nd.zeros(2)},
                           aux_states=[nd.zeros(2).tostype("row_sparse"), nd.ones(2).tostype("row_sparse")])
    executor.forward(is_train=True)
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [1, 1.5]


def test_reports_name_operators_that_run_one_by_one():
    symbol, stypes, _ = graph_of("a linear model")
    executor, _ = executors(symbol, stypes, "write")
    seen = []
    executor.set_monitor_callback(lambda name, value: seen.append(name))
    executor.forward(is_train=True)
    assert seen == ["scores_output", "shifted_output"]
    lines = executor.explain().split("\n")
    assert lines[0] == "one by one:" and "csr, row_sparse -> default" in lines[1]
    assert any("broadcast_add" in line for line in lines[2:])
    with pytest.raises(ArgumentError, match="arrays are sparse, so it has several plans"):
        executor.plan(True)


def test_a_sparse_executor_is_reshaped():
    symbol, stypes, _ = graph_of("a linear model")
    executor, _ = executors(symbol, stypes, "write")
    other = executor.reshape(x=(2, 4))
    assert other.arg_dict["x"].stype == "csr" and other.arg_dict["w"] is executor.arg_dict["w"]
    other.forward(is_train=True, x=nd.ones((2, 4)).tostype("csr"))
    other.backward(nd.ones((2, 2)))
    assert other.outputs[0].shape == (2, 2) and other.grad_dict["x"].stype == "csr"
    expected = nd.ones((2, 4)).asnumpy() @ executor.arg_dict["w"].asnumpy() + executor.arg_dict["b"].asnumpy()
    np.testing.assert_allclose(other.outputs[0].asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("stype, number", [("default", "0"), ("row_sparse", "1"), ("csr", "2")])
def test_the_storage_type_of_a_variable_is_a_number_in_files(stype, number):
    """MXNet reads the attribute as a number, and stops at other text. Files with names are read, too."""
    symbol = sym.dot(sym.var("x", stype=stype), sym.var("w"))
    assert symbol.attr_dict()["x"] == {"__storage_type__": number}
    text = symbol.tojson()
    for graph in (text, text.replace(f'"{number}"', f'"{stype}"')):
        assert sym.load_json(graph).simple_bind(mx.cpu(), x=(2, 3), w=(3, 2)).arg_dict["x"].stype == stype


def test_a_misspelt_storage_type_is_an_error():
    with pytest.raises(ArgumentError, match=r"no storage type 'row-sparse'\. Did you mean 'row_sparse'"):
        sym.var("x", stype="row-sparse")
