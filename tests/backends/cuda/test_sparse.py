"""Sparse arrays on a GPU: the tests of the host with ``gpu(0)`` as the default context, and copies between both."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, nd
from opreg.errors import DeviceError
from tests.cuda.device import gpus
from tests.custom import test_sparse as custom
from tests.ndarray import test_sparse as arrays
from tests.symbol import test_sparse_executor as executors

for _module in (arrays, executors, custom):
    globals().update({name: value for name, value in vars(_module).items() if name.startswith("test_")})


@pytest.fixture(autouse=True)
def on_device():
    """Makes ``gpu(0)`` the context of new arrays."""
    with gpus(count=2), mx.gpu(0):
        yield


X = np.float32([[0, 1, 0], [2, 0, -3], [0, 0, 0], [4, 0, 0]])
BOTH = pytest.mark.parametrize("stype", ["csr", "row_sparse"])


@BOTH
def test_sparse_arrays_are_copied_between_host_and_devices(stype, tmp_path):
    with mx.cpu():
        host = nd.array(X).tostype(stype)
    for ctx in (mx.gpu(0), mx.gpu(1)):
        x = host.as_in_context(ctx)
        parts = [x.data, x.indices, *([x.indptr] if stype == "csr" else [])]
        assert [part.context for part in (x, *parts)] == [ctx] * (1 + len(parts))
        nd.save(str(tmp_path / "x.params"), [x])
        kept = nd.zeros(X.shape, mx.cpu(), stype=stype)
        x.copyto(kept)
        for same in (x.copyto(mx.gpu(0)), x.copyto(mx.cpu()), pickle.loads(pickle.dumps(x)), kept,
                     nd.load(str(tmp_path / "x.params"))[0], x.tostype("default"), x.as_in_context(ctx)):
            assert (same.asnumpy() == X).all()
        assert pickle.loads(pickle.dumps(x)).context == nd.load(str(tmp_path / "x.params"))[0].context == ctx


@BOTH
def test_arrays_are_made_where_their_context_says(stype):
    make = nd.sparse.csr_matrix if stype == "csr" else nd.sparse.row_sparse_array
    for source in (X, nd.array(X, mx.cpu()), nd.array(X), nd.array(X, mx.gpu(1)), nd.array(X, mx.gpu(1)).tostype(stype),
                   nd.array(X, mx.cpu()).tostype(stype)):
        for ctx in (mx.cpu(), mx.gpu(0), mx.gpu(1)):
            made = [make(source, ctx=ctx), make(source, X.shape, ctx, "float64")]
            if getattr(source, "stype", "default") != "default":
                made += [nd.array(source, ctx), nd.sparse.array(source, ctx)]
            for each in made:
                assert each.context == each.data.context == ctx and each.stype == stype
                assert (each.asnumpy() == X).all()
            assert made[1].dtype == np.float64


#: Results on a device that is not the current one.
RESULTS = {
    "x + x": 2 * X, "x * d": X * (X + 1), "nd.dot(c, d.T)": X @ (X + 1).T, "nd.exp(x)": np.exp(X),
    "nd.sparse.retain(r, i)": X * [[0], [1], [0], [1]], "nd.dot(c, d, transpose_a=True)": X.T @ (X + 1),
    "c.tostype('row_sparse').tostype('csr')": X, "nd.take(c, i)": X[[3, 1]], "c[1:3]": X[1:3],
    "nd.concat(c, c, dim=0)": np.concatenate([X, X]), "nd.add_n(r, r)": 2 * X, "nd.dot(d.T, c)": (X + 1).T @ X,
    "nd.broadcast_div(c, d[:1])": X / (X + 1)[:1], "nd.square(x) + d": X * X + X + 1,
}


@BOTH
@pytest.mark.parametrize("text", RESULTS)
def test_operators_run_on_the_device_of_their_inputs(text, stype):
    ctx = mx.gpu(1)
    d = nd.array(X + 1, ctx)
    x, c, r, i = nd.array(X, ctx).tostype(stype), nd.array(X, ctx).tostype("csr"), nd.array(X, ctx).tostype(
        "row_sparse"), nd.array([3, 1], ctx)
    result = eval(text, {"nd": nd, "x": x, "c": c, "r": r, "d": d, "i": i})
    assert result.context == ctx
    np.testing.assert_allclose(result.asnumpy(), RESULTS[text], 1e-6)


@BOTH
def test_arrays_of_two_contexts_are_refused(stype):
    x, dense = nd.array(X).tostype(stype), nd.ones(X.shape, mx.cpu())
    for call in (lambda: x * dense, lambda: x * dense.tostype(stype), lambda: dense * x, lambda: nd.exp(x) * dense):
        with pytest.raises(DeviceError, match=r"lives on .*, the first one on"):
            call()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_sums_of_rows_do_not_mix_rows(dtype):
    """A sum that is the difference of two running sums would lose the small numbers behind a large one."""
    large = np.zeros((3, 4), dtype)
    large[0], large[2] = 60000, [1, 0, 2, 4]
    product = nd.dot(nd.array(large, dtype=dtype).tostype("csr"), nd.ones((4, 1), dtype=dtype) / 4)
    assert product.asnumpy().tolist()[1:] == [[0], [0 if dtype == "int32" else 1.75]]
    if dtype != "int32":
        large[0] = np.nan
        matrix = nd.array(large, dtype=dtype).tostype("csr")
        assert nd.dot(matrix, nd.ones((4, 1), dtype=dtype)).asnumpy()[2].tolist() == [7]
        assert nd.elemwise_add(matrix, matrix).asnumpy()[2].tolist() == [2, 0, 4, 8]


def test_a_store_on_a_device_takes_row_numbers_from_the_host():
    store = mx.kv.create("device")
    store.init("w", nd.arange(8).reshape((4, 2)).tostype("row_sparse"))
    for ctx in (mx.cpu(), mx.gpu(0), mx.gpu(1)):
        out = nd.zeros((4, 2), ctx, stype="row_sparse")
        store.row_sparse_pull("w", out=out, row_ids=nd.array([3, 1, 3], ctx))
        assert out.context == ctx and out.indices.asnumpy().tolist() == [1, 3]


@pytest.mark.parametrize("name", ["sgd", "adam", "adagrad"])
def test_lazy_updates_launch_no_work_for_other_rows_and_do_not_wait(name):
    with gpus() as xp:
        optimizer = mx.optimizer.create(name, learning_rate=0.1)
        weight, grad = nd.ones((1000, 4)), nd.sparse.row_sparse_array((np.ones((2, 4), "f"), [5, 900]), (1000, 4))
        state = optimizer.create_state(0, weight)
        optimizer.update(0, weight, grad, state)
        before = xp.synchronisations
        optimizer.update(0, weight, grad, state)
        assert xp.synchronisations == before
        assert np.flatnonzero((weight.asnumpy() != 1).any(1)).tolist() == [5, 900]


def test_gradients_of_rows_are_recorded_on_the_device():
    weight = nd.ones((5, 2), mx.gpu(1))
    weight.attach_grad(stype="row_sparse")
    with autograd.record():
        out = nd.Embedding(nd.array([4, 1, 4], mx.gpu(1)), weight, input_dim=5, output_dim=2, sparse_grad=True)
        loss = (out * out).sum() + weight[0:1].sum()
    loss.backward()
    assert weight.grad.context == weight.grad.data.context == mx.gpu(1)
    assert weight.grad.asnumpy().tolist() == [[1, 1], [2, 2], [0, 0], [0, 0], [4, 4]]
