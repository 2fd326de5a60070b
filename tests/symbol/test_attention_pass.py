"""Graphs that compute attention by several operators: one operator replaces them, with the same results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import opreg as mx
from opreg import sym
from opreg.builtin.layers import attention_scores
from opreg.core.registry import get
from opreg.symbol import compile as compiling
from opreg.symbol.symbol import Symbol

OPERATOR = "_contrib_scaled_dot_product_attention"
Q, K, V, M = map(sym.var, ("q", "k", "v", "m"))
QUERIES, KEYS, SIZE = 12, 10, 4
THREE = {"q": (6, QUERIES, SIZE), "k": (6, KEYS, SIZE), "v": (6, KEYS, 3)}
FOUR = {"q": (2, 3, QUERIES, SIZE), "k": (2, 3, KEYS, SIZE), "v": (2, 3, KEYS, 3)}
TWO = {"q": (QUERIES, SIZE), "k": (KEYS, SIZE), "v": (KEYS, 3)}
#: Projections of 2 samples with 3 heads: queries, keys and values of a head side by side, and queries by themselves.
LAID = {"q": (QUERIES, 2, 3 * 3 * SIZE)}
LAID_APART = {"q": (QUERIES, 2, 3 * SIZE), "k": (KEYS, 2, 3 * 2 * SIZE)}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(attention_scores, "_QUERIES", 5)
    monkeypatch.setattr(attention_scores, "_KEYS", 4)
    monkeypatch.setattr(attention_scores, "_WORTH", 1)


def _scores(scale: float = 0.5) -> Symbol:
    return sym.batch_dot(Q, K, transpose_b=True) * scale


def _apply(name: str, *inputs: Symbol, **attrs: object) -> Symbol:
    return get(name)(*inputs, **attrs)


def _values(weights: Symbol) -> Symbol:
    return sym.batch_dot(weights, V)


def _run(y: Symbol, shapes: dict, one_by_one: bool, monkeypatch: pytest.MonkeyPatch, moved: str = "qkv") -> tuple:
    """Output in training, gradients, and the description of the plan."""
    draw = np.random.default_rng(4)
    with monkeypatch.context() as patch:
        if one_by_one:
            patch.setattr(compiling, "PASSES", tuple([change for change in compiling.PASSES
                                                      if change.__name__ != "attention"]))
        executor = y.simple_bind(mx.cpu(), grad_req={name: "write" if name in moved else "null" for name in shapes},
                                 **shapes)
        for name, shape in shapes.items():
            executor.arg_dict[name][:] = draw.normal(size=shape)
        output = executor.forward(is_train=True)[0].asnumpy()
        executor.backward([mx.nd.array(draw.normal(size=output.shape))])
        grads = {name: array.asnumpy() for name, array in executor.grad_dict.items() if array is not None}
        return output, grads, executor.explain()


def _same(y: Symbol, shapes: dict, monkeypatch: pytest.MonkeyPatch, moved: str = "qkv") -> tuple[str, str]:
    """Descriptions of both plans, after a check that they give the same."""
    one, grads, plan = _run(y, shapes, False, monkeypatch, moved)
    several, expected, other = _run(y, shapes, True, monkeypatch, moved)
    assert np.allclose(one, several, atol=2e-6, equal_nan=True)
    for name, grad in expected.items():
        assert np.allclose(grads[name], grad, atol=5e-6, equal_nan=True), name
    return plan, other


def _self_scores() -> Symbol:
    return sym.contrib.interleaved_matmul_selfatt_qk(Q, heads=3)


def _self_values(weights: Symbol) -> Symbol:
    return sym.contrib.interleaved_matmul_selfatt_valatt(Q, weights, heads=3)


def _apart(weigh: Callable[[Symbol], Symbol]) -> Symbol:
    scores = sym.contrib.interleaved_matmul_encdec_qk(Q, K, heads=3)
    return sym.contrib.interleaved_matmul_encdec_valatt(K, weigh(scores), heads=3)


def _beside(x: Symbol, weigh: Callable[[Symbol], Symbol] = lambda x: x) -> Symbol:
    return sym.broadcast_add(_values(weigh(x)), x.sum())


WRITTEN: dict[str, tuple[Callable[[], Symbol], dict]] = {
    "batch_dot": (lambda: _values(sym.softmax(_scores())), THREE),
    "no scale": (lambda: _values(sym.softmax(sym.batch_dot(Q, K, transpose_b=True))), THREE),
    "divided, of transposed keys": (
        lambda: _values(sym.softmax(sym.batch_dot(Q, sym.transpose(K, axes=(0, 2, 1))) / 2, axis=2)), THREE),
    "transposed queries": (
        lambda: _values(sym.softmax(sym.batch_dot(sym.SwapAxis(Q, dim1=1, dim2=2), K, transpose_a=True,
                                                  transpose_b=True))), THREE),
    "transposed values": (
        lambda: sym.batch_dot(sym.softmax(_scores()), sym.SwapAxis(V, dim1=1, dim2=2), transpose_b=True), THREE),
    "matmul": (lambda: _apply("_npi_matmul", sym.softmax(_apply("_npi_matmul", Q, K.swapaxes(2, 3)) * 0.5), V), FOUR),
    "gemm2": (lambda: sym.linalg_gemm2(sym.softmax(sym.linalg_gemm2(Q, K, transpose_b=True, alpha=0.5)), V), FOUR),
    "matrices": (lambda: sym.dot(sym.softmax(sym.dot(Q, K, transpose_b=True)), V), TWO),
    "mask": (lambda: _values(sym.softmax(sym.broadcast_add(M, _scores()))), {**THREE, "m": (1, QUERIES, KEYS)}),
    "mask of the same shape": (lambda: _values(sym.softmax(_scores() + M)), {**THREE, "m": (6, QUERIES, KEYS)}),
    "mask in heads": (
        lambda: _values(sym.softmax(sym.broadcast_add(sym.reshape(_scores(), shape=(2, 3, QUERIES, KEYS)), M)
                                    ).reshape((6, QUERIES, KEYS))), {**THREE, "m": (2, 1, 1, KEYS)}),
    "seen": (lambda: _values(sym.softmax(_apply("_npi_where_rscalar", M > -1, _scores(), scalar=-np.inf))),
             {**THREE, "m": (QUERIES, KEYS)}),
    "hidden": (lambda: _values(sym.softmax(_apply("_npi_where_lscalar", M > 1, _scores(), scalar=-np.inf))),
               {**THREE, "m": (QUERIES, KEYS)}),
    "finite where not seen": (
        lambda: _values(sym.softmax(_apply("_npi_where_rscalar", M > 0, _scores(), scalar=-1.5))),
        {**THREE, "m": (QUERIES, KEYS)}),
    "far where hidden": (
        lambda: _values(sym.softmax(_apply("_npi_where_lscalar", M > 1, _scores(), scalar=-1e9))),
        {**THREE, "m": (6, QUERIES, KEYS)}),
    **{f"queries that see nothing, {fill}": (
        lambda fill=fill: _values(sym.softmax(_apply("_npi_where_rscalar", M > 0.5, _scores(), scalar=fill))),
        {**THREE, "m": (QUERIES, 1)}) for fill in (-65504.0, -1e9, -3e38)},
    "projections": (lambda: _self_values(sym.softmax(_self_scores())), LAID),
    "projections of queries and of keys": (lambda: _apart(sym.softmax), LAID_APART),
    "projections and a mask": (lambda: _apart(lambda scores: sym.softmax(sym.broadcast_add(scores, M))),
                               {**LAID_APART, "m": (6, 1, KEYS)}),
    "projections and a mask of samples": (
        lambda: _apart(lambda scores: sym.softmax(sym.broadcast_add(scores.reshape((2, 3, QUERIES, KEYS)), M)).reshape(
            (6, QUERIES, KEYS))), {**LAID_APART, "m": (2, 1, 1, KEYS)}),
    "scores of projections": (lambda: sym.batch_dot(sym.softmax(_self_scores()), V), {**LAID, "v": (6, QUERIES, 3)}),
    "values of projections": (
        lambda: sym.contrib.interleaved_matmul_encdec_valatt(V, sym.softmax(_scores()), heads=3),
        {"q": (6, QUERIES, SIZE), "k": (6, KEYS, SIZE), "v": (KEYS, 2, 3 * 2 * SIZE)}),
    "dropout of nothing": (lambda: _values(sym.Dropout(sym.softmax(_scores()), p=0.0)), THREE),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_one_operator_gives_the_values_and_gradients_of_several(way, monkeypatch):
    write, shapes = WRITTEN[way]
    plan, other = _same(write(), shapes, monkeypatch)
    assert OPERATOR in plan and "softmax" not in plan.replace(OPERATOR, "")
    assert OPERATOR not in other


ELSEWHERE: dict[str, tuple[Callable[[], Symbol], dict, str]] = {
    "weights are read": (lambda: _beside(sym.softmax(_scores())), THREE, "qkv"),
    "scores are read": (lambda: _beside(_scores(), sym.softmax), THREE, "qkv"),
    "softmax along queries": (lambda: _values(sym.softmax(_scores(), axis=1)), THREE, "qkv"),
    "temperature": (lambda: _values(sym.softmax(_scores(), temperature=2.0)), THREE, "qkv"),
    "gradient of a mask": (lambda: _values(sym.softmax(sym.broadcast_add(_scores(), M))),
                           {**THREE, "m": (1, QUERIES, KEYS)}, "qkvm"),
    "scale behind the mask": (lambda: _values(sym.softmax(sym.broadcast_add(_scores(), M) * 2)),
                              {**THREE, "m": (1, QUERIES, KEYS)}, "qkv"),
    "weights on the right": (lambda: sym.batch_dot(V, sym.softmax(_scores()), transpose_a=True, transpose_b=True),
                             {**THREE, "v": (6, KEYS, 3)}, "qkv"),
    "weights transposed": (lambda: sym.batch_dot(sym.softmax(_scores()), V, transpose_a=True),
                           {**THREE, "v": (6, QUERIES, 3)}, "qkv"),
    "weights scaled": (lambda: _values(sym.softmax(_scores()) * 2), THREE, "qkv"),
    "shared dropout": (lambda: _values(sym.Dropout(sym.softmax(_scores()), p=0.0, axes=(1,))), THREE, "qkv"),
    "weights as values": (lambda: sym.batch_dot(sym.softmax(V), _self_scores()),
                          {**LAID, "v": (6, QUERIES, QUERIES)}, "qv"),
    "scores that are weighed values": (lambda: sym.batch_dot(sym.softmax(_self_values(V)), K),
                                       {**LAID, "v": (6, QUERIES, QUERIES), "k": (QUERIES, QUERIES, 5)}, "qkv"),
    "activation between": (lambda: _values(sym.softmax(sym.tanh(_scores()))), THREE, "qkv"),
}


@pytest.mark.parametrize("way", ELSEWHERE)
def test_graphs_that_differ_from_attention_stay(way, monkeypatch):
    write, shapes, moved = ELSEWHERE[way]
    plan, _ = _same(write(), shapes, monkeypatch, moved)
    assert OPERATOR not in plan


def test_weights_that_are_an_output_stay():
    weights = sym.softmax(_scores())
    executor = sym.Group([_values(weights), weights]).simple_bind(mx.cpu(), **THREE)
    assert OPERATOR not in executor.explain()


def test_short_attention_stays():
    short = {"q": (6, 4, SIZE), "k": (6, 5, SIZE), "v": (6, 5, 3)}
    executor = _values(sym.softmax(_scores())).simple_bind(mx.cpu(), **short)
    assert OPERATOR not in executor.explain()


def test_dropout_is_drawn_by_the_operator():
    y = _values(sym.Dropout(sym.softmax(_scores()), p=0.5))
    executor = y.simple_bind(mx.cpu(), **THREE)
    for array in executor.arg_dict.values():
        array[:] = 1.0
    assert OPERATOR in executor.explain()
    assert np.allclose(executor.forward(is_train=False)[0].asnumpy(), 1.0, atol=1e-6)
    found = executor.forward(is_train=True)[0].asnumpy()
    assert not np.allclose(found, 1.0) and np.allclose(found * KEYS / 2, (found * KEYS / 2).round(), atol=1e-5)


def test_two_attention_layers_keep_their_names(monkeypatch):
    first = _values(sym.softmax(_scores()))
    both = sym.batch_dot(sym.softmax(sym.batch_dot(first, first, transpose_b=True)), first, name="second")
    plan, _ = _same(both, THREE, monkeypatch)
    assert plan.count(f" {OPERATOR} ") == 2 and f"{OPERATOR} second" in plan
    assert both.simple_bind(mx.cpu(), **THREE).output_dict.keys() == {"second_output"}


def test_a_monitor_sees_every_operator():
    executor = _values(sym.softmax(_scores(), name="weights")).simple_bind(mx.cpu(), **THREE)
    seen: list[str] = []
    executor.set_monitor_callback(lambda name, array: seen.append(name))
    executor.forward(is_train=False)
    assert "weights_output" in seen


def test_memory_grows_with_the_length():
    def needed(length: int) -> int:
        shapes = dict.fromkeys("qkv", (2, length, SIZE))
        executor = _values(sym.softmax(_scores())).simple_bind(mx.cpu(), **shapes)
        executor.forward(is_train=True)
        return int(executor.explain().split(" bytes beside")[0].rpartition(" ")[2])

    assert needed(400) < 3 * needed(200) < 100 * 2 * 200 * SIZE * 4
