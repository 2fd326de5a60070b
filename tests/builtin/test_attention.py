"""Attention as one operator: dropout, memory, gradients of any order, vmap, and mistakes."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import opreg as mx
import opreg.nn as nn
from opreg import autograd, nd, sym, vmap
from opreg.backends.numba import compiler
from opreg.builtin.layers import attention_scores, scaled_attention
from opreg.core.registry import ops
from opreg.errors import AttrError, DTypeError, ShapeError

attention = nd.contrib.scaled_dot_product_attention


def _arrays(heads: int = 2, queries: int = 5, keys: int = 7, batch: int = 2, dtype: str = "float64") -> list:
    draw = np.random.default_rng(3)
    return [nd.array(draw.normal(size=(batch, heads, length, 4)), dtype=dtype) for length in (queries, keys, keys)]


def _dropped(arrays: list, p: float) -> tuple:
    """Output in training, and the weights of attention in it."""
    query, key, _ = arrays
    seen = nd.array(np.broadcast_to(np.eye(key.shape[2]), (*key.shape[:3], key.shape[2])), dtype=query.dtype)
    return attention(query, key, seen, p=p)


@pytest.mark.parametrize("blocks", [(128, 512), (2, 3)])
def test_dropout_keeps_some_weights_and_scales_them(blocks, monkeypatch):
    monkeypatch.setattr(attention_scores, "_QUERIES", blocks[0])
    monkeypatch.setattr(attention_scores, "_KEYS", blocks[1])
    arrays = _arrays(queries=40, keys=50)
    whole = _dropped(arrays, 0.0).asnumpy()
    with autograd.train_mode():
        found = _dropped(arrays, 0.3).asnumpy() / whole
    assert set(np.unique(found.round(6))) == {0.0, round(1 / 0.7, 6)}
    assert 0.25 < (found == 0).mean() < 0.35
    rows = (found == 0).reshape(-1, 50)
    assert len(np.unique(rows, axis=0)) == len(rows)  # each query, head and sample loses other weights
    assert np.array_equal(_dropped(arrays, 0.3).asnumpy(), whole)  # nothing outside of training


def test_dropout_draws_anew_and_from_the_seed():
    arrays = _arrays()
    with autograd.train_mode():
        mx.random.seed(5)
        first, second = attention(*arrays, p=0.5), attention(*arrays, p=0.5)
        mx.random.seed(5)
        again = attention(*arrays, p=0.5)
    assert np.array_equal(first.asnumpy(), again.asnumpy())
    assert not np.array_equal(first.asnumpy(), second.asnumpy())


@pytest.mark.parametrize("blocks", [(128, 512), (2, 3)])
def test_the_gradient_drops_the_same_weights_as_forward(blocks, monkeypatch):
    monkeypatch.setattr(attention_scores, "_QUERIES", blocks[0])
    monkeypatch.setattr(attention_scores, "_KEYS", blocks[1])
    arrays = _arrays()
    for x in arrays:
        x.attach_grad()
    step = 1e-6

    def run(*moved: nd.NDArray) -> nd.NDArray:
        mx.random.seed(7)
        return attention(*moved, p=0.4)

    with autograd.record():
        y = run(*arrays)
    y.backward()
    for i, x in enumerate(arrays):
        direction = np.random.default_rng(i).normal(size=x.shape)
        ends = []
        for sign in (step, -step):
            moved = [*arrays]
            moved[i] = nd.array(x.asnumpy() + sign * direction, dtype="float64")
            with autograd.train_mode():
                ends.append(run(*moved).asnumpy().sum())
        assert np.isclose((x.grad.asnumpy() * direction).sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-5)


def test_a_query_that_sees_no_key_gives_nan_as_softmax_does():
    arrays = _arrays(batch=1, heads=1)
    mask = np.ones((5, 7), bool)
    mask[2] = False
    y = attention(*arrays, nd.array(mask, dtype="bool"), use_mask=True).asnumpy()
    assert np.isnan(y[0, 0, 2]).all()
    assert np.isfinite(np.delete(y, 2, axis=2)).all()


def test_samples_of_vmap_are_a_batch():
    draw = np.random.default_rng(5)
    query, key, value = [nn.Tensor(draw.normal(size=(3, 2, 2, length, 4)).astype("float32")) for length in (5, 7, 7)]
    mask = nn.Tensor(draw.normal(size=(5, 7)).astype("float32"))

    def one(q, k, v):
        return ops._contrib_scaled_dot_product_attention(q, k, v, mask, use_mask=True)

    found = vmap(one, in_axes=(0, None, 0))(query, key[0], value).asnumpy()
    expected = [one(query[i], key[0], value[i]).asnumpy() for i in range(3)]
    assert np.allclose(found, expected, atol=1e-6)


def test_symbols_say_shapes_that_are_known_in_part():
    y = sym.contrib.scaled_dot_product_attention(*map(sym.var, ("q", "k", "v")))
    _, outs, _ = y.infer_shape_partial(q=(2, 4, 0, 8), k=(2, 2, 5, 8), v=(2, 2, 5, 3))
    assert outs == [(2, 4, 0, 3)]


@pytest.mark.parametrize(("shapes", "attrs", "error", "said"), [
    ([(2, 4, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)], {}, ShapeError, "4 heads of queries cannot be divided"),
    ([(2, 4, 5, 8), (2, 4, 7, 6), (2, 4, 7, 6)], {}, ShapeError, "key: expected shape"),
    ([(2, 4, 5, 8), (2, 4, 7, 8), (2, 4, 6, 8)], {}, ShapeError, "value: expected shape"),
    ([(2, 5, 8), (2, 5, 8), (2, 5, 8)], {}, ShapeError, "query: expected shape"),
    ([(2, 4, 5, 8)] * 3 + [(3, 5)], {"use_mask": True}, ShapeError, "mask: expected a shape that broadcasts"),
    ([(2, 4, 5, 8)] * 3, {"p": 1.5}, AttrError, "attribute p: expected float from 0 to 1"),
])
def test_mistakes_are_refused(shapes, attrs, error, said):
    with pytest.raises(error, match=said):
        attention(*[nd.ones(shape) for shape in shapes], **attrs)


def test_a_mask_of_integers_is_refused():
    with pytest.raises(DTypeError, match="mask: expected bool or float32"):
        attention(*[nd.ones((1, 1, 2, 2))] * 3, nd.ones((2, 2), dtype="int32"), use_mask=True)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("attrs", [{}, {"causal": True}, {"p": 0.3}, {"use_mask": True},
                                   {"use_mask": True, "fill": -2.0},
                                   {"use_mask": True, "fill": -1e4, "causal": True}], ids=str)
@pytest.mark.parametrize("heads", [1, 4])
def test_compiled_blocks_equal_those_of_numpy(heads, attrs, dtype, monkeypatch):
    monkeypatch.setattr(attention_scores, "_QUERIES", 16)
    monkeypatch.setattr(attention_scores, "_KEYS", 8)
    compiled = importlib.import_module("opreg.backends.numba.operators.attention")
    for name, size in (("_ROWS", 7), ("_COLUMNS", 20), ("_CHUNK", 15)):
        monkeypatch.setattr(compiled, name, size)
    draw = np.random.default_rng(8)
    shapes = {"q": (2, heads, 40, 4), "k": (2, 1, 50, 4), "v": (2, 1, 50, 3)}
    if "use_mask" in attrs:
        shapes["m"] = (40, 50)
    y = sym.contrib.scaled_dot_product_attention(*map(sym.var, shapes), **attrs)
    numbers = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    if "m" in numbers:
        numbers["m"] = np.where(numbers["m"] > 1, -np.inf, 0.0)
        numbers["m"][3, :24] = -np.inf  # a row whose first blocks are not seen at all
    if "fill" in attrs:
        numbers["m"] = numbers["m"] == 0
        numbers["m"][5], numbers["m"][7, :10] = False, False  # a row that sees nothing, and one that sees late keys
    g = draw.normal(size=(2, heads, 40, 3))
    found = []
    for mode in ("numba", "numpy"):
        with compiler.use(mode):
            reqs = {name: "null" if name == "m" else "write" for name in shapes}
            executor = y.simple_bind(mx.cpu(), grad_req=reqs, type_dict=dict.fromkeys(shapes, dtype) | (
                {"m": "bool"} if "fill" in attrs else {}), **shapes)
            for name, array in executor.arg_dict.items():
                array[:] = numbers[name]
            mx.random.seed(2)
            outs = executor.forward(is_train=True)
            executor.backward([nd.array(g, dtype=dtype)])
            steps = [line for line in executor.explain().splitlines() if "dot_product_attention " in line]
            assert len(steps) == 2 and all((": numba" in line) == (mode == "numba") for line in steps)
            found.append([outs[0].asnumpy(), *[executor.grad_dict[name].asnumpy() for name in "qkv"]])
    tolerance = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    for one, other in zip(*found, strict=True):
        assert np.isfinite(one).all() and np.allclose(one, other, atol=tolerance, rtol=tolerance)


def test_the_gradient_of_one_head_is_a_sum_over_parts(monkeypatch):
    monkeypatch.setattr(attention_scores, "_QUERIES", 4)
    monkeypatch.setattr(attention_scores, "_KEYS", 3)
    arrays = _arrays(heads=1, batch=1, queries=30, keys=40)
    found = []
    for parts in (1, 8):
        monkeypatch.setattr(scaled_attention, "PARTS", parts)
        for x in arrays:
            x.attach_grad()
        with autograd.record():
            y = attention(*arrays, causal=True)
        y.backward()
        found.append([x.grad.asnumpy() for x in arrays])
    for one, other in zip(*found, strict=True):
        assert np.abs(one).max() > 0.1 and np.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("fill", [-np.inf, -1.0])
def test_gradients_without_keys_are_empty_or_zero(dtype, fill):
    query, key, value = [mx.nd.ones(shape) for shape in ((2, 4, 3, 4), (2, 2, 0, 4), (2, 2, 0, 2))]
    mask = mx.nd.array(np.zeros((3, 0)), dtype=dtype)
    arrays = [query, key, value] if dtype == "bool" else [query, key, value, mask]
    for array in arrays:
        array.attach_grad()
    with mx.autograd.record():
        out = mx.nd.contrib.scaled_dot_product_attention(query, key, value, mask, use_mask=True, fill=fill)
    out.backward()
    assert out.shape == (2, 4, 3, 2)
    assert not query.grad.asnumpy().any()
    assert [array.grad.shape for array in arrays] == [array.shape for array in arrays]
