"""Functions whose shapes are found by a dry run on the given dtypes, and on integers if floats are impossible."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym

X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
_NAMES = itertools.count()

INDEXING: list[tuple[Callable[..., Any], list[np.ndarray]]] = [
    (lambda x, i: x.asnumpy()[i.asnumpy()], [X, np.array([0, 2], np.int32)]),
    (lambda i, x: x.asnumpy()[i.asnumpy()], [np.array([0, 2], np.int64), X]),
    (lambda x, i, j: x.asnumpy()[i.asnumpy(), j.asnumpy()], [X, np.array([0, 2]), np.array([1, 3])]),
    (lambda x, mask: x.asnumpy() * ~mask.asnumpy(), [X, X > 0]),
    (lambda i: np.unpackbits(i.asnumpy()), [np.array([3, 5], np.uint8)]),
    (lambda i: np.left_shift(i.asnumpy(), 1), [np.array([3, 5], np.int16)])]


@pytest.mark.parametrize("case", range(len(INDEXING)))
@pytest.mark.parametrize("declared", [False, True])
def test_functions_that_fail_on_floats_work_in_graphs(case: int, declared: bool) -> None:
    body, arrays = INDEXING[case]
    wanted = body(*[nd.array(each, dtype=each.dtype) for each in arrays])
    types = f"{','.join('ABC'[:len(arrays)])}->{wanted.dtype}" if declared else None
    op = mx.operator.define(body, name=f"_example_dry_run_{next(_NAMES)}", types=types)
    names = ["a", "b", "c"][:len(arrays)]
    symbol = op(*map(sym.var, names))
    kinds = {name: each.dtype for name, each in zip(names, arrays)}
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", type_dict=kinds,
                                  **{name: each.shape for name, each in zip(names, arrays)})
    values = {name: nd.array(each, dtype=each.dtype) for name, each in zip(names, arrays)}
    for out in (executor.forward(**values)[0], symbol.eval(**values)[0], op(*values.values()),
                mx.jit(lambda *inputs: op(*inputs))(*map(mx.Tensor, arrays)),
                sym.load_json(symbol.tojson()).eval(**values)[0]):
        assert out.dtype == wanted.dtype
        np.testing.assert_array_equal(out.asnumpy(), wanted)


def test_shapes_alone_are_enough_for_functions_of_indices() -> None:
    op = mx.operator.define(INDEXING[0][0], name=f"_example_dry_run_{next(_NAMES)}")
    assert op(sym.var("x"), sym.var("i")).infer_shape(x=(3, 4), i=(2,))[1] == [(2, 4)]


def test_a_function_that_fails_on_known_dtypes_is_tried_on_no_others() -> None:
    """A failing bind runs the function once more, to raise its error."""
    runs = []

    def body(x: Any) -> Any:
        runs.append(x.dtype)
        raise ValueError("no")

    op = mx.operator.define(body, name=f"_example_dry_run_{next(_NAMES)}", types="float32->float32")
    with pytest.raises(ValueError, match="no"):
        op(sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    assert runs == [np.float32] * 2


#: Bodies of traced functions, and the shapes of their inputs and results; 0 is an unknown length.
PARTLY_KNOWN: list[tuple[Callable[..., Any], list[tuple[int, ...]], list[tuple[int, ...]]]] = [
    (lambda x: x * nd.sigmoid(x), [(0, 4)], [(0, 4)]),
    (lambda x: np.tanh(x.asnumpy()) * 2, [(3, 0)], [(3, 0)]),
    (lambda x: x.reshape((x.shape[0], -1)), [(0, 3, 4)], [(0, 12)]),
    (lambda x: x.asnumpy().reshape(-1, 2, x.shape[1] // 2), [(0, 6)], [(0, 2, 3)]),
    (lambda x, w: nd.dot(x, w), [(0, 4), (4, 5)], [(0, 5)]),
    (lambda x, y: nd.concat(x, y, dim=0), [(0, 4), (2, 4)], [(0, 4)]),
    (lambda x: (x.sum(axis=0), x.sum(axis=1)), [(0, 4)], [(4,), (0,)]),
    (lambda x: x[:50], [(0, 4)], [(0, 4)]),
    (lambda x: nd.zeros((max(len(x), 100), 2)), [(0, 4)], [(0, 2)]),
    (lambda x: x if len(x) > 20 else x[0], [(0, 4)], [()]),  # ranks differ
    (lambda x: x[5000], [(0, 4)], [()]),  # no length has this index
    (lambda x: x + nd.ones((7, 4)), [(0, 4)], [()]),
]


@pytest.mark.parametrize(("body", "shapes", "wanted"), PARTLY_KNOWN)
def test_traced_functions_infer_from_partly_known_shapes(body: Any, shapes: Any, wanted: Any) -> None:
    op = mx.operator.define(body, name=f"_example_dry_run_{next(_NAMES)}", traced=True,
                            outputs=[f"out{i}" for i in range(len(wanted))])
    names = "xyw"[:len(shapes)]
    net = op(*map(sym.var, names))
    assert net.infer_shape_partial(**dict(zip(names, shapes)))[1] == wanted
    if all(wanted):
        known = [tuple([dim or 24 for dim in shape]) for shape in shapes]
        for found, partly in zip(net.infer_shape(**dict(zip(names, known)))[1], wanted):
            assert len(found) == len(partly)
            assert all(dim in (0, length) for length, dim in zip(found, partly))


def test_weights_behind_a_traced_function_need_no_batch() -> None:
    op = mx.operator.define(lambda x: x * nd.sigmoid(x), name=f"_example_dry_run_{next(_NAMES)}", traced=True)
    net = sym.FullyConnected(op(sym.var("x")), num_hidden=3, name="dense")
    shapes = dict(zip(net.list_arguments(), net.infer_shape_partial(x=(0, 4))[0]))
    assert shapes == {"x": (0, 4), "dense_weight": (3, 4), "dense_bias": (3,)}


# -------------------------------------------------------------------------- shapes and dtypes that depend on each other


def _op(body: Callable[..., Any]) -> Any:
    return mx.operator.define(body, name=f"_example_dry_run_{next(_NAMES)}")


@pytest.mark.parametrize("stated", [{}, {"w_weight": (3, 4), "w_bias": (3,)}])
def test_weights_behind_a_function_have_the_dtype_of_its_result(stated: dict[str, Any]) -> None:
    net = sym.FullyConnected(_op(lambda x: x.astype("float64"))(sym.var("x")), num_hidden=3, name="w")
    executor = net.simple_bind(mx.cpu(), x=(2, 4), **stated)
    assert {name: array.dtype for name, array in executor.arg_dict.items()} == {
        "x": np.float32, "w_weight": np.float64, "w_bias": np.float64}
    assert executor.forward()[0].dtype == np.float64
    assert mx.viz.plot_network(net, shape={"x": (2, 4)}) is not None


def test_an_input_has_the_dtype_of_what_is_added_to_the_result() -> None:
    net = _op(lambda x: x * 2)(sym.var("x")) + sym.var("y", dtype="float16")
    executor = net.simple_bind(mx.cpu(), x=(2,), y=(2,))
    assert [array.dtype for array in executor.arg_arrays] == [np.float16] * 2


def test_shapes_follow_from_the_declared_dtype_of_a_variable() -> None:
    op = _op(lambda x: x.asnumpy().view(np.uint8))
    for dtype, length in (("float64", 32), ("float32", 16), ("int8", 4)):
        assert op(sym.var("x", dtype=dtype)).infer_shape(x=(4,))[1] == [(length,)]


@pytest.mark.parametrize("weights", [False, True])
def test_two_nodes_of_one_application_are_inferred_apart(weights: bool) -> None:
    net = _op(lambda x: x.asnumpy().view(np.uint8))(sym.var("x"), name="node")
    heads = [net(x=sym.var("a")), net(x=sym.var("b"))]
    if weights:
        heads.append(sym.FullyConnected(sym.var("y"), num_hidden=3))
    executor = sym.Group(heads).simple_bind(mx.cpu(), a=(4,), b=(4,), type_dict={"a": "float64", "b": "int16"},
                                            grad_req="null", **({"y": (2, 2)} if weights else {}))
    assert [out.shape for out in executor.forward()][:2] == [(32,), (8,)]


def test_functions_in_loops_and_branches_are_inferred_by_their_dtypes() -> None:
    op = _op(lambda x: x.asnumpy().view(np.uint8))
    x = sym.var("x")
    loop = sym.contrib.foreach(lambda d, s: (op(d), s), x, sym.var("s"))[0]
    branch = sym.contrib.cond(sym.sum(x) > 0, lambda: op(x), lambda: op(x + 1))
    for net, shape, keywords in ((loop, (3, 16), {"s": (1,)}), (branch, (3, 16), {})):
        for _ in range(2):
            bound = net.simple_bind(mx.cpu(), x=(3, 2), type_dict={"x": "float64"}, grad_req="null", **keywords)
            assert bound.forward()[0].shape == shape
            assert bound.outputs[0].dtype == np.uint8


@pytest.mark.parametrize("traced", [False, True])
def test_a_function_may_read_an_object_that_refers_to_many_others(traced: bool) -> None:
    chain: Any = None
    for _ in range(5000):
        chain = types.SimpleNamespace(next=chain)
    op = mx.operator.define(name=f"_example_chain_{traced}", traced=traced)(lambda x: x * (chain is not None))
    assert op(sym.var("x")).infer_shape(x=(2, 3))[1] == [(2, 3)]
    for _ in range(2):
        assert op(nd.ones(2)).asnumpy().tolist() == [1, 1]
