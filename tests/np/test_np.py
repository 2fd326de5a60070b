"""``np`` and ``npx``: arrays with NumPy's rules, and Gluon with them."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, npx
from opreg import np as mnp
from tests.questions import of_each

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
Y = np.array([[2, -1, 0.5], [1, 3, -2]], np.float32)

#: Expressions of NumPy's that mean the same here; x and y are arrays of float32.
ALIKE = [
    "x + y", "2 - x", "x / 2", "x ** 2", "y % 2", "-y", "abs(y)", "x @ y.T", "x > y", "(x > 2) & (y > 0)", "~(x > 2)",
    "x.sum()", "x.sum(axis=0, keepdims=True)", "x.mean()", "x.std(axis=1)", "x.var()", "x.max(axis=1)", "x.argmax()",
    "x.prod(axis=0)", "(x > 2).any()", "x.T", "x.reshape(3, 2)", "x.reshape((-1,))", "x.transpose(1, 0)", "x.flatten()",
    "x[0]", "x[1, 2]", "x[:, 1]", "x[..., None]", "x[x > 2]", "x[[1, 0]]", "x[1, [0, 2]]", "x[::-1]", "x[-1, ::2]",
    "x[:0]", "x[True]", "x[False]", "x[np.array(True, dtype='bool'), 1]", "x[:, True]", "x.copy()",
    "x[x[:, 0] > 1]", "np.exp(y)", "np.maximum(x, y)", "np.minimum(x, 2)",
    "np.where(x > 2, x, y)",
    "np.where(x > 2, x, 0)", "np.clip(x, 2, 4)", "np.concatenate([x, y], axis=1)", "np.concatenate([x, y], axis=None)",
    "np.stack([x, y], axis=1)", "np.vstack([x, y])", "np.hstack([x, y])", "np.split(x, 3, axis=1)[1]",
    "np.hsplit(x, 3)[1]", "np.vsplit(x, [1])[1]", "np.dsplit(x[:, None], 3)[2]", "np.hsplit(x[0], [1])[1]",
    "np.expand_dims(x, 0)", "np.squeeze(x[:1])", "np.swapaxes(x, 0, 1)", "np.tile(x, (2, 1))",
    "np.repeat(x, 2, axis=0)",
    "np.flip(x, 1)", "np.roll(x, 1, 0)", "np.tril(x)", "np.triu(x, 1)", "np.dot(x, y.T)", "np.dot(x, y[0])",
    "np.tensordot(x, y, ((0, 1), (0, 1)))", "np.inner(x, y)", "np.outer(x[0], y[0])", "np.einsum('ij,kj->ik', x, y)",
    "np.einsum('ij,ij->', x, y)", "np.einsum('ij,ij->i', x, y)", "np.einsum('ij,j->i', x, y[0])",
    "np.einsum('i,j->ij', x[0], y[1])", "np.einsum('bij,bkj->bik', x[None], y[None])",
    "np.einsum('ij,kj,kl->il', x, y, y)", "np.cumsum(x, axis=1)", "np.sort(y)",
    "np.argsort(y, axis=0)", "np.take(x, [0, 2], axis=1)", "np.linalg.norm(x)", "np.linalg.norm(x, axis=1)",
    "np.broadcast_to(x[0], (2, 3))", "np.median(x)", "np.diff(x)", "np.logical_and(x > 2, y > 0)", "np.isnan(x)",
    "np.around(x / 3, 1)", "np.round(y)", "np.flipud(x)", "np.fliplr(x)", "np.rot90(x)", "np.rot90(x, 2)",
    "np.rot90(x, 3)",
    "np.moveaxis(x[None], 0, -1)", "np.moveaxis(x[None], [0, 2], [2, 0])", "np.average(x, weights=y + 4)",
    "np.average(x, axis=1, weights=y[0] + 4)", "np.average(x, axis=0, weights=y + 4, returned=True)[1]",
    "np.diff(x, 2)", "np.diff(x, axis=0)", "np.diff(x, axis=-2, append=y)", "np.diff(x > 2)", "np.ediff1d(x, y[0])",
    "np.append(x, y)", "np.append(x, y, axis=1)", "np.trace(x)", "np.trace(x[None] * y, 1, 1, 2)", "np.diagonal(x, -1)",
    "np.polyval(y[0], x)", "np.atleast_1d(x.sum())", "np.atleast_2d(x[0])", "np.atleast_3d(x)",
    "np.nan_to_num(np.where(x > 4, x * np.inf, np.where(x > 2, x * np.nan, x)), nan=7.0, posinf=9.0)",
    "np.zeros_like(x)", "np.full_like(x, 3)", "np.linalg.norm(x, ord=1, axis=0)", "np.square(x)[0, 0]", "np.ravel(y)",
    "np.insert(x, 1, 7, axis=1)", "np.insert(x, 2, y[0], axis=0)", "np.insert(x, slice(0, 3, 2), 5, axis=1)",
    "np.delete(x, 1, axis=1)", "np.delete(x, slice(0, 2))", "np.pad(x, 1, mode='edge')", "np.pad(x, ((1, 0), (0, 2)))",
    "np.pad(x, ((2, 1), (1, 2)), mode='symmetric')", "np.arctan2(x, y)", "np.copysign(x, y)", "np.hypot(x, y)",
    "np.arctan2(2.0, x)", "np.ldexp(x, 2)", "np.diag(x)", "np.diag(x[0], 1)", "np.diagflat(x, -1)", "np.vdot(x, y)",
    "np.dot(x[None], y.T)", "np.dot(x, y.T[None])", "np.tensordot(x, y[0], ([1], [0]))", "np.einsum('ij->ji', x)",
    "np.einsum('...j,...j->...', x, y)", "np.einsum('ii->i', x @ y.T)",
    "np.einsum('ijk,jkl->il', x[None], y[..., None])",
    "np.resize(x, (3, 4))", "np.column_stack([x[0], y[0]])", "np.dstack([x, y])", "np.array_split(x, 2, axis=1)[0]",
    "np.squeeze(x[:1, :1])", "np.linalg.norm(x, 'nuc')", "np.linalg.norm(x, 3, axis=1)", "np.linalg.norm(x, 2)",
    "np.linalg.norm(x, -1, axis=(0, 1))",
    "np.linalg.solve(x @ x.T, y)", "np.linalg.det(x @ x.T)", "np.linalg.slogdet(x @ x.T)[1]", "np.unique(x)",
    "np.tril(x[0])", "np.rot90(x, -1)", "np.percentile(x, 30.0, axis=1)",
    "np.broadcast_arrays(y, x[:1])[1]", "np.broadcast_arrays(x[0, 0], y, x)[0]", "np.meshgrid(x[0], y[1])[0]",
    "np.meshgrid(y[0], x[0], y[1], indexing='ij')[1]", "np.meshgrid(x[0], y[:, 0], sparse=True)[0]",
    "np.meshgrid(y[0, 0], x)[1]",
]
#: Expressions whose sum has a gradient, which agrees with central differences.
GRADED = [text for text in ALIKE if "x" in text.replace("np.exp", "") and not any(word in text for word in (
    " > y", "(x > 2) &", "~", "arg", "any", "median", "x > 2)", "round", "returned", "nan",
    "logical", "isnan", "_like", "std", "var", "[:0]", "unique", "percentile"))]


#: Calls with MXNet's names and order of arguments -> dtype and values.
CALLS: dict[str, tuple[str, Any]] = {
    "np.full((2,), True)": ("bool", [True, True]), "np.full((2,), 3, 'int32', 'C')": ("int32", [3, 3]),
    "np.full(2, 2)": ("float32", [2, 2]), "np.ones(2, 'int8', 'C')": ("int8", [1, 1]),
    "np.empty_like(prototype=x, dtype='int32', shape=0)": ("int32", []),
    "np.squeeze(a=x[:1, :1])": ("float32", 1), "np.copy(a=x[0])": ("float32", [1, 2, 3]),
    "np.column_stack(tup=(x[0], x[1]))": ("float32", [[1, 4], [2, 5], [3, 6]]),
    "np.hstack((x[0], x[1]), out=None)": ("float32", [1, 2, 3, 4, 5, 6]),
    "np.vstack(tup=[x[0]], out=np.zeros((1, 3)))": ("float32", [[1, 2, 3]]),
    "x[0].as_in_ctx(ctx=mx.cpu())": ("float32", [1, 2, 3]), "np.copysign(x[0], True)": ("float32", [1, 2, 3]),
    "np.arctan2(True, np.array([1, 0], dtype='int32'))": ("float32", [np.pi / 4, np.pi / 2]),
    "np.lcm(np.array([2, 3], dtype='int32'), True)": ("int32", [2, 3]),
    "np.std(np.array([1, 2, 4], dtype='float16'), dtype='float64')": ("float64", np.std([1, 2, 4])),
    "np.var(np.array([1, 2, 4], dtype='int32'), dtype='float64')": ("float64", np.var([1, 2, 4])),
    "np.trapz(x)": ("float32", [4, 10]), "np.msort(x[::-1])": ("float32", [[1, 2, 3], [4, 5, 6]]),
    "np.in1d(x, np.array([2, 6]))": ("bool", [False, True, False, False, False, True]),
    "np.linalg.lstsq(x.T, np.ones(3), rcond='warn')[2]": ("int32", 2),
    "np.random.multivariate_normal(np.zeros(2), np.zeros((2, 2)), 1, 'warn', 1e-8)": ("float32", [[0, 0]]),
}


@pytest.fixture
def numpy_manners() -> Iterator[None]:
    npx.set_np()
    yield
    npx.reset_np()


@pytest.mark.parametrize(("text", "shares"), [
    ("x[0]", True), ("x[:1]", True), ("x[...]", True), ("x.reshape_view(3, 2)", True), ("x.reshape_view((-1,))", True),
    ("x.reshape(3, 2)", False), ("x[0].reshape(3, 1)", False), ("np.reshape(x, -1)", False), ("x.ravel()", False),
    ("np.split(x, 2)[0]", False), ("np.vsplit(x, 2)[1]", False), ("np.split(x, 3, axis=1)[0]", False),
    ("np.array_split(x, 2)[0]", False), ("x.T", False), ("x[:, 1]", False), ("x.squeeze()", False)])
def test_memory_is_shared_where_mxnet_shares_it(numpy_manners: None, text: str, shares: bool) -> None:
    x = mnp.array(X)
    eval(text, {"np": mnp, "x": x})[:] = 9
    assert bool((x == 9).any()) == shares


@pytest.mark.parametrize("text", CALLS)
def test_calls_with_the_arguments_of_mxnet(numpy_manners: None, text: str) -> None:
    dtype, expected = CALLS[text]
    result = eval(text, {"np": mnp, "mx": mx, "x": mnp.array(X)})
    assert result.dtype == dtype
    assert np.allclose(result.asnumpy() if isinstance(result, mx.nd.NDArray) else result, expected, rtol=1e-6, atol=0)



def _value(text: str, space: Any, x: Any, y: Any) -> Any:
    return eval(text, {"np": space, "x": x, "y": y})


@of_each(ALIKE)
def test_expressions_are_those_of_numpy(text: str) -> None:
    found, expected = _value(text, mnp, mnp.array(X), mnp.array(Y)), np.asarray(_value(text, np, X, Y))
    assert type(found) is mnp.ndarray and found.shape == expected.shape
    assert (found.dtype == bool) == (expected.dtype == bool)
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5)


#: Expressions that symbols refuse, since shapes depend on values, or are read.
SHAPED = {"x[x > 2]", "x[x[:, 0] > 1]", "np.median(x)", "x.copy()", *[
    text for text in ALIKE if "broadcast_arrays" in text or ("meshgrid" in text and "sparse" not in text)]}


@pytest.mark.usefixtures("numpy_manners")
@of_each([text for text in ALIKE if text not in SHAPED])
def test_symbols_compute_the_same(text: str) -> None:
    x, y = (mx.sym.Variable(name).as_np_ndarray() for name in "xy")
    graph = _value(text, mx.sym.np, x, y)
    (found,) = graph.eval(**{name: mx.nd.array(value) for name, value in zip("xy", (X, Y))
                             if name in graph.list_arguments()})
    expected = np.asarray(_value(text, np, X, Y))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5)


def test_operators_in_place_write_to_the_array() -> None:
    for dtype, name, other in (("int32", "iand", 6), ("int32", "ior", 8), ("int32", "ixor", 5), ("bool", "iand", True),
                               ("int32", "ifloordiv", 2), ("float32", "ifloordiv", 2), ("float32", "iadd", 1.5)):
        values = np.array([[7, 2], [0, 12]], dtype)
        x, expected = mnp.array(values), values.copy()
        for operand in (other, np.full((2, 2), other, dtype)):
            y = x
            y = getattr(operator, name)(y, mnp.array(operand) if isinstance(operand, np.ndarray) else operand)
            expected = getattr(operator, name)(expected, operand)
            assert y is x
            np.testing.assert_array_equal(x.asnumpy(), expected)


@pytest.mark.usefixtures("numpy_manners")
@of_each(["sum", "prod", "mean", "std", "var", "cumsum", "max", "average"])
def test_blocks_reduce_integers_to_the_same_dtypes_in_both_ways(name: str) -> None:
    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return getattr(F.np, name)(x)

    for dtype in ("bool", "uint8", "int32", "int64", "float16"):
        x, block = mnp.array([[1, 2], [3, 100]], dtype=dtype), Block()
        eager = block(x)
        block.hybridize()
        assert (eager.dtype, eager.shape) == (block(x).dtype, block(x).shape)
        np.testing.assert_array_equal(eager.asnumpy(), block(x).asnumpy())
        if name in ("sum", "prod"):
            assert eager.dtype == ("int64" if dtype == "bool" else dtype)
            wide = getattr(mnp, name)(x, dtype="int64")  # the sum is computed in this dtype
            assert wide.dtype == "int64" and wide == getattr(np, name)(x.asnumpy(), dtype="int64")


@pytest.mark.parametrize("text", ["x / y", "x / 2", "2 / y", "(x > 2) / y", "x / (x * 0.5)", "np.true_divide(x, y)"])
def test_quotients_of_integers_are_the_same_in_symbols(text: str) -> None:
    x, y = (mx.sym.Variable(name).as_np_ndarray() for name in "xy")
    values = {"x": np.array([[7, -7], [3, 1]]), "y": np.array([2, -4])}
    graph = _value(text, mx.sym.np, x, y)
    (found,) = graph.eval(**{name: mx.nd.array(value, dtype="int64") for name, value in values.items()
                             if name in graph.list_arguments()})
    eager = _value(text, mnp, *[mnp.array(value) for value in values.values()])
    np.testing.assert_array_equal(found.asnumpy(), eager.asnumpy())
    np.testing.assert_allclose(found.asnumpy(), _value(text, np, *values.values()), 1e-6)


@pytest.mark.usefixtures("numpy_manners")
@pytest.mark.parametrize("text", [
    "np.logspace(0, 2, 5)", "np.logspace(1, 2, 3, False, 2.0)", "np.hanning(7)", "np.hanning(1)", "np.hamming(6)",
    "np.blackman(5)", "np.linspace(0, 1, 4)", "np.eye(2, 3)"])
def test_symbols_are_made_as_arrays_are(text: str) -> None:
    (found,) = _value(text, mx.sym.np, None, None).eval()
    np.testing.assert_allclose(found.asnumpy(), _value(text, np, None, None), 1e-5, 1e-6)
    np.testing.assert_allclose(_value(text, mnp, None, None).asnumpy(), _value(text, np, None, None), 1e-5, 1e-6)


@pytest.mark.parametrize("text", sorted(SHAPED))
def test_symbols_refuse_functions_that_read_shapes(text: str) -> None:
    x, y = (mx.sym.Variable(name).as_np_ndarray() for name in "xy")
    with pytest.raises((mx.errors.OpError, AttributeError)):
        _value(text, mx.sym.np, x, y).eval(x=mx.nd.array(X))


#: MXNet's operators.
NAMES = frozenset((Path(mx.__file__).parent / "builtin" / "mxnet_names.txt").read_text().split()) | {"null"}


@pytest.mark.usefixtures("numpy_manners")
@of_each([text for text in GRADED if text not in SHAPED and not any(
    word in text for word in ("[", "resize", "triu", "linalg.det"))])  # MXNet has no such operators
def test_files_hold_mxnets_names(text: str) -> None:
    graph = _value(text, mx.sym.np, *[mx.sym.Variable(name).as_np_ndarray() for name in "xy"])
    assert {node["op"] for node in json.loads(graph.tojson())["nodes"]} <= NAMES


def test_an_error_says_that_a_function_has_no_operator() -> None:
    x = mx.sym.Variable("x").as_np_ndarray()
    with pytest.raises(mx.errors.ArgumentError, match=r"np\.median is not an operator"):
        mx.sym.np.median(x)


@pytest.mark.usefixtures("numpy_manners")
@of_each([text for text in GRADED if text not in SHAPED])
def test_graphs_of_symbols_are_stored_and_have_the_same_gradients(text: str) -> None:
    """The graph read from JSON computes the same as the stored one, and the gradient equals that of the tape."""
    x, y = mnp.array(X), mnp.array(Y)
    x.attach_grad()
    with mx.autograd.record():
        total = _value(text, mnp, x, y).sum()
    total.backward()
    graph = _value(f"({text}).sum()", mx.sym.np, *[mx.sym.Variable(name).as_np_ndarray() for name in "xy"])
    names, again = graph.list_arguments(), mx.sym.load_json(graph.tojson())
    shapes = dict.fromkeys(names, (2, 3))
    assert again.list_arguments() == names
    assert again.infer_shape(**shapes)[1] == graph.infer_shape(**shapes)[1] == [()]
    made = again.simple_bind(mx.cpu(), grad_req="write", **shapes)
    (found,) = made.forward(is_train=True, **{name: mx.nd.array(value) for name, value in zip("xy", (X, Y))
                                              if name in names})
    made.backward([mnp.ones(()).as_nd_ndarray()])
    np.testing.assert_allclose(found.asnumpy(), total.asnumpy(), 1e-5)
    np.testing.assert_allclose(made.grad_dict["x"].asnumpy(), x.grad.asnumpy(), 1e-5, 1e-6)


@of_each(GRADED)
def test_expressions_have_gradients(text: str) -> None:
    wide = X.astype(np.float64) + 0.25  # far from kinks
    x, y = mnp.array(wide), mnp.array(Y, dtype="float64")
    x.attach_grad()
    with autograd.record():
        total = (_value(text, mnp, x, y) * 1.0).sum()
    total.backward()
    assert type(x.grad) is mnp.ndarray
    steps = np.zeros_like(wide)
    for place in np.ndindex(*X.shape):
        ends = [np.sum(_value(text, np, wide + sign * 1e-5 * (np.arange(6).reshape(2, 3) ==
                                                              np.ravel_multi_index(place, X.shape)),
                              Y.astype(np.float64))) for sign in (1, -1)]
        steps[place] = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(x.grad.asnumpy(), steps, 1e-4, 1e-6)


@pytest.mark.parametrize(("text", "dtype"), [
    ("np.array([1, 2])", "float32"), ("np.array(onp.arange(2))", "int64"), ("np.arange(3)", "float32"),
    ("np.arange(3, dtype='int32') * np.ones(3)", "float32"), ("np.arange(3, dtype='int32') / 2", "float32"),
    ("np.ones(3, dtype='float16') + np.arange(3, dtype='int64')", "float16"),
    ("np.arange(3, dtype='int32').sum()", "int32"), ("np.ones(2) == 1", "bool"), ("np.full((), 3)", "float32"),
    ("np.arange(3, dtype='int32').mean()", "float32"), ("np.random.randint(0, 5, (3,))", "int64")])
def test_dtypes_are_those_of_mxnet(text: str, dtype: str) -> None:
    assert eval(text, {"np": mnp, "onp": np}).dtype == dtype


def test_arrays_without_axes_act_as_scalars() -> None:
    x = mnp.array(2.5)
    assert x.shape == () and x.item() == 2.5 and float(x) == 2.5 and f"{x:.2f}" == "2.50" and repr(x) == "array(2.5)"
    assert mnp.zeros((2, 0)).sum().item() == 0 and mnp.ones((0, 3)).mean(axis=1).shape == (0,)


def test_writes_are_those_of_numpy() -> None:
    x, host = mnp.array(X), X.copy()
    for key, value in ((0, 5), ((slice(None), 1), [7, 8]), (host > 6, 0), ((1, [0, 2]), 9)):
        x[mnp.array(key) if isinstance(key, np.ndarray) else key] = value
        host[key] = value
    x += 1
    assert (x.asnumpy() == host + 1).all()
    for truth in (True, False):
        x[True, 1, truth, mnp.array([True, False, True], dtype="bool")] = 4 if truth else 9
    assert (x.asnumpy()[1] == [4, host[1, 1] + 1, 4]).all()


#: Expressions of integers ``i`` that mean the same here, symbols included.
WHOLE = ["i & 1", "1 & i", "i | 3", "i ^ 6", "np.bitwise_and(i, 1)", "np.bitwise_or(2, i)", "np.bitwise_xor(i, i)",
         "i // 2", "7 // i", "i // -2", "np.floor_divide(i, 2)", "np.floor_divide(9, i)", "np.logical_and(i, 2)",
         "np.logical_or(0, i)"]


@of_each(WHOLE)
def test_integers_beside_numbers_stay_integers(text: str) -> None:
    host = np.array([[5, -7, 3], [1, 2, -4]], np.int32)
    expected = eval(text, {"np": np, "i": host})
    found = eval(text, {"np": mnp, "i": mnp.array(host, dtype="int32")})
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.asnumpy(), expected)
    graph = eval(text, {"np": mnp, "i": mx.sym.Variable("i").as_np_ndarray()})
    np.testing.assert_array_equal(graph.eval(i=mx.nd.array(host, dtype="int32"))[0].asnumpy(), expected)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "argmax", "argmin", "std", "var", "any", "all",
                                  "average"])
@pytest.mark.parametrize("axis", [0, -1])
def test_an_array_without_axes_is_reduced_along_one(name: str, axis: int) -> None:
    x = np.array(3.0, np.float32)
    expected = getattr(np, name)(x)
    graph = getattr(mnp, name)(mx.sym.Variable("x").as_np_ndarray(), axis=axis)
    for found in (getattr(mnp, name)(mnp.array(x), axis=axis), graph.eval(x=mnp.array(x))[0]):
        assert found.shape == () and found.asnumpy() == expected
    with pytest.raises(mx.errors.AttrError, match="no axes"):
        getattr(mnp, name)(mnp.array(x), axis=1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_vectors_of_a_normal_distribution_in_graphs_are_float32(dtype: str) -> None:
    mean, cov = (mx.sym.Variable(name).as_np_ndarray() for name in ("mean", "cov"))
    drawn = mx.sym.np.random.multivariate_normal(mean, cov, (3,))
    found = drawn.eval(mean=mnp.zeros(2, dtype=dtype), cov=mnp.array(np.eye(2), dtype=dtype))[0]
    assert found.shape == (3, 2) and found.dtype == np.float32


@pytest.mark.parametrize("mean, cov", [((2,), (2, 2)), ((3, 2), (2, 2)), ((2,), (3, 2, 2)), ((3, 2), (4, 3, 2, 2))])
def test_batches_of_normal_distributions_are_broadcast(mean: tuple[int, ...], cov: tuple[int, ...]) -> None:
    mx.random.seed(5)
    means = mnp.broadcast_to(mnp.array([0.25, 10]), mean)
    covs = mnp.broadcast_to(mnp.array([[1, 0.5], [0.5, 4]]), cov)
    symbols = [mx.sym.Variable(name).as_np_ndarray() for name in ("mean", "cov")]
    batch = np.broadcast_shapes(mean, cov[:-1])
    for size, front in ((None, ()), (1, (1,)), ((), ()), ((2, 0), (2, 0)), (400, (400,))):
        graph = mx.sym.np.random.multivariate_normal(*symbols, size).eval(mean=means, cov=covs)[0]
        for found in (mnp.random.multivariate_normal(means, covs, size), graph):
            assert found.shape == front + batch
            if size == 400:
                rows = found.asnumpy().reshape(400, -1, 2)
                np.testing.assert_allclose(rows.mean(0), [[0.25, 10]] * rows.shape[1], atol=0.4)
                np.testing.assert_allclose([np.cov(rows[:, i].T) for i in range(rows.shape[1])],
                                           [[[1, 0.5], [0.5, 4]]] * rows.shape[1], atol=0.9)


def test_covariances_that_are_none_are_refused() -> None:
    for mean, cov in (([0, 0], [[1, 0], [0, -1]]), ([0, 0], np.eye(3)), ([0], [1])):
        with pytest.raises(mx.errors.ArgumentError, match="multivariate_normal: expected"):
            mnp.random.multivariate_normal(mnp.array(mean), mnp.array(cov))


@pytest.mark.parametrize("size, replace", [(5, True), ((2, 3), True), (4, False), ((2, 2), False), (None, True)])
@pytest.mark.parametrize("chances", [None, [0, 0, 1, 2, 1, 1, 1, 0, 0, 0]])
def test_graphs_draw_choices_from_their_values(size: Any, replace: bool, chances: list[int] | None) -> None:
    a, p = (mx.sym.Variable(name).as_np_ndarray() for name in "ap")
    drawn = mx.sym.np.random.choice(a, size, replace, None if chances is None else p)
    values = {"a": mnp.arange(10) * 10, **({} if chances is None else {"p": mnp.array(chances) / 6})}
    found = drawn.eval(**values)[0].asnumpy()
    assert found.shape == np.empty(size or ()).shape
    assert set(found.ravel()) <= {10.0 * i for i in range(10) if chances is None or chances[i]}
    assert replace or len(np.unique(found)) == found.size


@of_each([
    ("rand", (2, 3), {}, np.float32, 1), ("randn", (4,), {}, np.float32, 99),
    ("randint", (3, None, 2), {}, np.int64, 2),
    ("randint", (-2, 1, (2, 3)), {}, np.int64, 0), ("randint", (3, 5, 4), {"dtype": "int32"}, np.int32, 4)])
def test_graphs_draw_what_arrays_draw(name: str, args: tuple[Any, ...], more: dict[str, Any], dtype: Any, most: int
                                      ) -> None:
    found = getattr(mx.sym.np.random, name)(*args, **more).eval()[0]
    assert found.dtype == dtype and found.max() <= most and name in dir(mx.sym.np.random)
    assert found.shape == getattr(mnp.random, name)(*args, **more).shape


@pytest.mark.parametrize("replace", [False, True])
def test_choices_in_graphs_follow_their_chances(replace: bool) -> None:
    mx.random.seed(3)
    drawn = mx.sym.np.random.choice(3, 1 if not replace else 2000, replace, mx.sym.Variable("p").as_np_ndarray())
    p = mnp.array([0.2, 0.3, 0.5])
    found = np.concatenate([drawn.eval(p=p)[0].asnumpy() for _ in range(1 if replace else 500)])
    assert found.dtype == np.int64
    np.testing.assert_allclose(np.bincount(found) / found.size, [0.2, 0.3, 0.5], atol=0.08)


@pytest.mark.parametrize("text", ["i & j", "i | j", "i ^ j", "np.bitwise_and(i, j)", "np.bitwise_xor(j, i)", "~i"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool"])
def test_bits_of_symbols_are_those_of_arrays(text: str, dtype: str) -> None:
    values = {"i": np.array([0, 1, 5, 7]).astype(dtype), "j": np.array([1, 0, 3, 7]).astype(dtype)}
    expected = eval(text, {"np": np, **values})
    graph = eval(text, {"np": mnp, **{name: mx.sym.Variable(name).as_np_ndarray() for name in values}})
    read = {name: mx.nd.array(values[name], dtype=dtype) for name in graph.list_arguments()}
    found = graph.eval(**read)[0]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.asnumpy(), expected)


@pytest.mark.parametrize("index", [(4,), (-1,), (1, 2), ((1, 2),), (np.int64(1), 0)])
def test_an_item_has_a_flat_index_or_one_for_each_axis(index: tuple[Any, ...]) -> None:
    x = np.arange(6).reshape(2, 3)
    assert mnp.array(x, dtype="int32").item(*index) == x.item(*index)
    with pytest.raises(ValueError, match="incorrect number of indices"):
        mnp.array(x).item(1, 2, 0)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("text", [
    "norm(x)", "norm(x, axis=1)", "norm(x, 1, axis=0)", "norm(x, np.inf, axis=1)", "norm(x, 'fro')",
    "norm(x, 3, axis=1)", "norm(x, 0, axis=1)", "norm(x, 'nuc')", "norm(x, 2)", "eigvals(x[:3, :3])",
    "eigvalsh(x[:3, :3])"])
def test_norms_and_eigenvalues_of_integers_are_floating(text: str, dtype: str) -> None:
    x = (np.arange(20).reshape(4, 5) % 8 - (0 if dtype in ("uint8", "bool") else 3)).astype(dtype)
    expected = eval(text, {"np": np, **vars(np.linalg), "x": x.astype(float)})
    found = eval(text, {"np": mnp, **vars(mnp.linalg), "x": mnp.array(x, dtype=dtype)})
    assert found.dtype == ("float64" if "eig" in text else "float32")
    np.testing.assert_allclose(np.sort(found.asnumpy().ravel()), np.sort(np.real(expected).ravel()), rtol=1e-5,
                               atol=1e-5)


@pytest.mark.parametrize(("text", "error"), [
    ("i & 1.5", TypeError), ("1.5 | i", TypeError), ("np.bitwise_and(i, 1.5)", mx.errors.DTypeError),
    ("i // 'a'", TypeError)])
def test_operators_of_integers_refuse_floats_and_text(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        eval(text, {"np": mnp, "i": mnp.array(X, dtype="int32")})


@pytest.mark.parametrize("text", [
    "np.tril(x[0])", "np.triu(x[0], 1)", "np.inner(x, x[0, 0])", "np.sum(x, axis=onp.array(1))",
    "np.roll(x, onp.array(1))", "np.linalg.det(x[:, :2])", "np.linalg.slogdet(x[:, :2])[1]"])
def test_shapes_are_numpys(text: str) -> None:
    expected = np.asarray(eval(text, {"np": np, "onp": np, "x": X}))
    found = eval(text, {"np": mnp, "onp": np, "x": mnp.array(X)})
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.asnumpy(), expected, 1e-5)


@of_each([
    "np.exp(x)", "np.sum(x)", "np.mean(x, axis=0)", "np.concatenate([x, x])", "np.unique(x)", "np.isclose(x, x)",
    "np.cumprod(x)", "np.kron(x, x)", "np.modf(x)", "np.split(x, 2)", "np.add.reduce(x)", "np.nonzero(x)",
    "np.median(x, axis=0)", "np.linalg.inv(x)", "np.cov(x)", "np.argmax(x)", "np.where(x > 2, x, 0)"])
def test_functions_of_numpy_give_arrays_of_np(text: str) -> None:
    host = np.array([[1, 2.5], [3, 4]], np.float32)
    found, expected = (eval(text, {"np": np, "x": x}) for x in (mnp.array(host), host))
    parts = [found, expected] if not isinstance(expected, (list, tuple)) else [*found, *expected]
    half = len(parts) // 2
    for mine, numpys in zip(parts[:half], parts[half:], strict=True):
        assert type(mine) is mnp.ndarray and mine.shape == numpys.shape
        assert mine.dtype == (np.float32 if numpys.dtype.kind == "f" else numpys.dtype)
        np.testing.assert_allclose(mine.asnumpy(), numpys, 1e-6)


def test_functions_of_numpy_keep_what_is_no_array_of_np() -> None:
    x, out = mnp.array([1.0, 4.0]), np.zeros(2, np.float32)
    assert np.sqrt(x, out=out) is out and out.tolist() == [1, 2]
    assert np.shape(x) == (2,) and np.allclose(x, x) is True and np.array_equal(x, x) is True
    assert isinstance(np.median(x), np.float32)
    assert isinstance(np.fft.fft(x), np.ndarray)  # there are no complex dtypes
    assert isinstance(np.exp(mx.nd.ones(2)), np.ndarray)


def test_memory_is_shared_by_an_array_and_its_views() -> None:
    x, y = mnp.array(X), mnp.array(X)
    for share in (mnp.may_share_memory, mnp.shares_memory, np.may_share_memory, np.shares_memory):
        assert share(x, x) and share(x, x[1:]) and share(x.as_nd_ndarray(), x.reshape_view(-1)) and not share(x, y)


@pytest.mark.parametrize(("dtype", "expected"), [
    ("float32", "array([1., 2.])"), ("float64", "array([1., 2.], dtype=float64)"),
    ("int64", "array([1, 2], dtype=int64)"), ("int32", "array([1, 2], dtype=int32)"),
    ("bool", "array([ True,  True])")])
def test_a_repr_names_the_dtype_as_in_mxnet(dtype: str, expected: str) -> None:
    assert repr(mnp.array([1, 2], dtype=dtype)) == expected


@pytest.mark.parametrize("compare", [lambda x: x > mnp.array(X), lambda x: x[:1] <= x, lambda x: x == 3])
def test_comparisons_have_gradients_of_zero(compare: Callable[[Any], Any]) -> None:
    x = mnp.array(X)
    x.attach_grad()
    x.grad[:] = 7
    with autograd.record():
        truth = compare(x)
    truth.backward()
    assert truth.dtype == bool and (x.grad.asnumpy() == 0).all()


@pytest.mark.parametrize("make", [mnp.zeros, mnp.ones, mnp.empty])
def test_arrays_are_made_in_the_order_c_alone(make: Callable[..., Any]) -> None:
    with pytest.raises(NotImplementedError, match="'F'"):
        make((2, 2), order="F")


def test_both_kinds_of_arrays_share_memory_and_tape() -> None:
    x = mnp.array(X)
    x.attach_grad()
    with autograd.record():
        y = mx.nd.relu(x.as_nd_ndarray())
        total = y.as_np_ndarray().sum()
    total.backward()
    assert type(y) is mx.nd.NDArray and (x.grad.asnumpy() == 1).all()
    x.as_nd_ndarray()[:] = 0
    assert x.sum().item() == 0 and type(mx.nd.relu(x)) is mnp.ndarray


@pytest.mark.parametrize(("call", "expected"), [
    (lambda x: npx.softmax(x), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    (lambda x: npx.relu(x - 3), lambda x: np.maximum(x - 3, 0)),
    (lambda x: npx.pick(x, mnp.array([0, 2])), lambda x: x[[0, 1], [0, 2]]),
    (lambda x: npx.topk(x, k=1, ret_typ="value"), lambda x: x.max(1, keepdims=True)),
    (lambda x: npx.reshape(x, (-2, 1, -1)), lambda x: x.reshape(2, 1, 3)),
    (lambda x: npx.reshape(x, (-5,)), lambda x: x.reshape(6)),
    (lambda x: npx.reshape(x[:1], (-3, -4)), lambda x: x[0]),
    (lambda x: npx.masked_softmax(x, x > 1)[0, 0], lambda x: np.float32(0)),
    (lambda x: npx.image.to_tensor(x[..., None]), lambda x: x[None] / 255),
    (lambda x: npx.image.crop(x[..., None], 0, 0, 1, 2)[..., 0], lambda x: x[:2, :1]),
    (lambda x: npx.one_hot(x[0].astype("int32"), 4), lambda x: np.eye(4)[x[0].astype(int) % 4] * (x[0] < 4)[:, None]),
])
def test_npx_functions_give_np_arrays(call: Callable[[Any], Any], expected: Callable[[Any], Any]) -> None:
    found = call(mnp.array(X))
    assert type(found) is mnp.ndarray
    np.testing.assert_allclose(found.asnumpy(), expected(X), 1e-5)


def test_an_array_without_axes_is_not_iterable() -> None:
    """Libraries ask ``iter``, as ``np.iterable`` does, before they take elements."""
    assert not np.iterable(mnp.array(1.5)) and not np.iterable(mx.nd.array(1.5).sum().reshape(()))
    assert np.iterable(mnp.array([1.5])) and [float(x) for x in mnp.array([1.5, 2.5])] == [1.5, 2.5]
    with pytest.raises(TypeError, match="0-d array"):
        iter(mnp.array(1.5))


def test_random_numbers_follow_the_seed() -> None:
    draws: list[Callable[[], Any]] = [
        lambda: mnp.random.uniform(1, 2, (3, 2)), lambda: mnp.random.normal(size=4), lambda: mnp.random.choice(9, 4),
        lambda: mnp.random.randint(3, size=(2,)), lambda: mnp.random.permutation(8),
        lambda: mnp.random.gamma(2.0, size=(2,)), lambda: mnp.random.laplace(size=(2, 2))]
    for draw in draws:
        mx.random.seed(3)
        first = draw()
        mx.random.seed(3)
        assert (draw().asnumpy() == first.asnumpy()).all()
    assert mnp.random.uniform(size=()).shape == () and mnp.random.rand(2, 0).shape == (2, 0)


class _Net(gluon.HybridBlock):
    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.convolution, self.dense = gluon.nn.Conv2D(4, 3, activation="relu"), gluon.nn.Dense(3)
            self.norm = gluon.nn.BatchNorm()
            self.scale = self.params.get("scale", shape=(3,), init="ones")

    def hybrid_forward(self, F: Any, x: Any, scale: Any) -> Any:
        x = self.dense(self.norm(self.convolution(x))) * scale
        x = x - F.np.mean(x, axis=-1, keepdims=True)
        return F.np.concatenate([x[:, :1], F.npx.sigmoid(x[:, 1:])], axis=1)


@pytest.mark.usefixtures("numpy_manners")
def test_blocks_make_np_arrays_and_run_as_plans() -> None:
    mx.random.seed(1)
    net = _Net()
    net.initialize()
    x, label = mnp.random.normal(size=(4, 1, 6, 6)), mnp.array([0, 1, 2, 0])
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    results = []
    for _ in range(2):
        with autograd.record():
            value = loss(net(x), label)
        value.backward()
        results.append((value.asnumpy(), net.dense.weight.grad().asnumpy()))
        net.hybridize()
    for first, second in zip(*results):
        np.testing.assert_allclose(first, second, 1e-4, 1e-6)
    assert value.shape == (4,)
    assert {type(each) for each in (value, net(x), net.scale.data(), net.scale.grad())} == {mnp.ndarray}
    before = net.dense.weight.data().asnumpy()
    gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}).step(4)
    assert (net.dense.weight.data().asnumpy() != before).any()


@npx.use_np
class _Product(gluon.HybridBlock):
    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(0, 4), allow_deferred_init=True, init="ones")

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return F.np.dot(x, weight)


@pytest.mark.parametrize("hybrid", [False, True])
def test_parameters_under_use_np_are_arrays_of_np_and_get_their_shapes_from_products(hybrid: bool) -> None:
    net = _Product()
    net.initialize()
    if hybrid:
        net.hybridize()
    out = net(mnp.array(X))
    np.testing.assert_array_equal(out.asnumpy(), X @ np.ones((3, 4), np.float32))
    assert type(net.weight.data()) is type(net.weight.grad()) is mnp.ndarray


@pytest.mark.parametrize("kind", [mnp.array, mx.nd.array])
def test_hybridized_blocks_equal_their_code(kind: Callable[[Any], Any]) -> None:
    class Both(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return x.as_nd_ndarray() + 1, x.as_np_ndarray() + 1, x + 1

    net, x = Both(), kind(X)
    before = net(x)
    net.hybridize()
    for _ in range(2):
        assert [type(each) for each in net(x)] == [type(each) for each in before]


def test_parts_of_symbols_survive_a_file() -> None:
    keys: list[Any] = [1, slice(1, None), None, Ellipsis, (slice(None), -1), (slice(None, None, -1), None), [1, 0],
                       np.array([[True, False, True], [False, True, False]]), (slice(None), np.array([2, 0])), []]
    x = mx.sym.Variable("x").as_np_ndarray()
    for key in keys:
        (found,) = mx.sym.load_json(x[key].tojson()).eval(x=mx.nd.array(X))
        np.testing.assert_array_equal(found.asnumpy(), X[key], str(key))


def test_optimizers_know_whether_arrays_of_np_were_on() -> None:
    assert not mx.optimizer.SGD().allow_np_array and npx.use_np(lambda: mx.optimizer.SGD())().allow_np_array


@pytest.mark.usefixtures("numpy_manners")
def test_loaders_make_np_arrays() -> None:
    data = gluon.data.ArrayDataset(mnp.ones((4, 2)), mnp.arange(4))
    for x, y in gluon.data.DataLoader(data, batch_size=2):
        assert type(x) is type(y) is mnp.ndarray and x.shape == (2, 2)


def test_use_np_ends_with_its_scope() -> None:
    @npx.use_np
    class Asking:
        def ask(self) -> tuple[bool, bool]:
            return npx.is_np_array(), npx.is_np_shape()

    assert Asking().ask() == (True, True) and not npx.is_np_array()

    class Parent:
        def ask(self) -> bool:
            return npx.is_np_array()

    @npx.use_np
    class Heir(Parent):
        pass

    assert Heir().ask() and not Parent().ask()
    with pytest.raises(mx.errors.ArgumentError, match="NumPy's shapes"):
        npx.set_np(shape=False, array=True)


def test_symbols_follow_numpy() -> None:
    x = mx.sym.Variable("x").as_np_ndarray()
    graph = mx.sym.np.where((x + x[0]).sum(axis=1, keepdims=True) > 6, x, mx.sym.np.zeros((2, 3)))
    found = graph.eval(x=mx.nd.array(X))[0].asnumpy()
    np.testing.assert_allclose(found, np.where((X + X[0]).sum(1, keepdims=True) > 6, X, 0))
    parts = [each.eval(x=mx.nd.array(X))[0].asnumpy() for sections in (3, [1]) for each in mnp.split(x, sections, 1)]
    for part, expected in zip(parts, [*np.split(X, 3, 1), *np.split(X, [1], 1)], strict=True):
        np.testing.assert_array_equal(part, expected)
    with pytest.raises(mx.errors.ArgumentError, match=r"np\.median is not an operator"):
        mnp.median(x)


@pytest.mark.usefixtures("numpy_manners")
def test_blocks_are_compared_with_themselves_hybridized() -> None:
    class Doubled(gluon.HybridBlock):
        factor = 2.0

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            if F is mx.nd:
                return x * 2
            return F.np.sin(x) * self.factor

    class Sine(Doubled):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.np.sin(x)

    check = mx.test_utils.check_gluon_hybridize_consistency
    check(Sine, [mnp.array(X)], np.sin)
    with pytest.raises(AssertionError):
        check(Doubled, [mnp.array(X)])
    with pytest.raises(AssertionError):
        check(Sine, [mnp.array(X)], np.cos)


def test_nan_to_num_takes_bfloat16():
    found = mx.np.nan_to_num(mx.np.array([1.0, np.inf, -np.inf, np.nan], dtype="bfloat16"))
    largest = 2.0 ** 128 - 2.0 ** 120
    np.testing.assert_array_equal(found.astype("float32").asnumpy(), [1.0, largest, -largest, 0.0])
