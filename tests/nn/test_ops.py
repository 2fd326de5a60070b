"""Functions and methods of tensors: MindSpore 2.10's recorded answers, and gradients."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import ops
from opreg.core.value import METHODS as FLUENT
from opreg.core.value import Value
from opreg.errors import OpError
from opreg.nn.ops import methods
from opreg.nn.ops.methods import METHODS, MXNET_ONLY
from tests.questions import function_of, of_each

RECORDED = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_ops.json").read_text())
ARRAYS = {name: eval(text, {"np": np}) for name, text in RECORDED["inputs"].items()}


#: Without gradient by central differences: random, rounded to another dtype, or kinks in the inputs.
ROUGH = re.compile(
    r"cast|astype|float64|float16|\.half|\.to\(|round|float_power|max_pool3d|MaxPool3D|\bh\b|nan|z\b|long\(|new_|type_as|"
    r"SoftmaxCrossEntropyWithLogits|\bops\.max\(|\bd\b|stop_gradient|heaviside|Rint|lgamma|digamma|std\(s|var\(s|"
    r"CumulativeLogsumexp\(True|"
    r"clip_by_norm|prelu|PReLU|Logit|b \*\* x|float\(|"
    r"(floor_div|floor_divide|floor_mod|fmod|remainder|Mod\(\))\(x, y\)|(fmod|remainder|floor_divide)\(y\)")


def used(text: str) -> list[str]:
    """Names of inputs in an expression."""
    return [name for name in ARRAYS if re.search(rf"(?<![\w.]){name}(?![\w(=])", text)]


def run(text: str, values: dict[str, Any]) -> Any:
    return eval(text, {"ops": ops, "ms": ms, "np": np, **values})


def expect(wanted: Any, got: Any) -> None:
    """Compares a result with its record, dtype and shape included."""
    if "items" in wanted:
        assert isinstance(got, (tuple, list))
        assert len(got) == len(wanted["items"])
        for each, found in zip(wanted["items"], got):
            expect(each, found)
    elif "plain" in wanted:
        assert got == wanted["plain"] or str(got) == str(wanted["plain"])
    else:
        assert isinstance(got, ms.Tensor)
        assert (got.asnumpy().dtype.name, list(got.shape)) == (wanted["dtype"], wanted["shape"])
        if "values" in wanted:
            numbers = np.array([float(each) for each in wanted["values"]]).reshape(wanted["shape"])
            near = 3e-3 if wanted["dtype"] == "float16" else 2e-5
            np.testing.assert_allclose(got.asnumpy().astype("f8"), numbers, rtol=near, atol=near)


CASES = [(group, text) for group in ("functions", "primitives", "methods", "random") for text in RECORDED[group]]


@of_each(CASES, by=lambda case: function_of(case[1]))
def test_functions_give_the_recorded_results_of_mindspore(group: str, text: str) -> None:
    wanted, names = RECORDED[group][text], used(text)
    values = {name: ms.Tensor(array) for name, array in ARRAYS.items()}
    expect(wanted, run(text, values))
    compiled = ms.jit(lambda *given: run(text, {**values, **dict(zip(names, given))}))
    inputs = [values[name] for name in names]
    expect(wanted, compiled(*inputs))


def _floating(wanted: Any) -> bool:
    return all(map(_floating, wanted["items"])) if "items" in wanted else wanted.get("dtype") == "float32"


SMOOTH = [(group, text) for group, text in CASES if group != "random" and not ROUGH.search(text)
          and any(ARRAYS[name].dtype == np.float32 for name in used(text))
          and _floating(RECORDED[group][text])]


def _sum(found: Any) -> Any:
    """A weighted sum of all elements of a result, with a different gradient for each."""
    parts = found if isinstance(found, (tuple, list)) else [found]
    total = ms.Tensor(np.float64(0))
    for k, part in enumerate(parts):
        weights = np.cos(np.arange(part.size) + k).reshape(part.shape)
        total = total + (part.astype(ms.float64) * ms.Tensor(weights)).sum()
    return total


@of_each(SMOOTH, by=lambda case: function_of(case[1]))
def test_gradients_agree_with_central_differences(group: str, text: str) -> None:
    """Gradients of float64 inputs agree with central differences in a random direction, eager and compiled."""
    names = [name for name in used(text) if ARRAYS[name].dtype == np.float32]
    fixed = {name: ms.Tensor(array.astype("f8") if array.dtype == np.float32 else array)
             for name, array in ARRAYS.items()}

    def function(*given: Any) -> Any:
        return _sum(run(text, {**fixed, **dict(zip(names, given))}))

    points = [ARRAYS[name].astype("f8") for name in names]
    inputs = [ms.Tensor(point) for point in points]
    where = tuple(range(len(names)))
    found = ms.grad(function, where)(*inputs)
    found = found if isinstance(found, tuple) else (found,)
    again = ms.jit(ms.grad(function, where))(*inputs)
    for eager, compiled in zip(found, again if isinstance(again, tuple) else (again,)):
        np.testing.assert_allclose(compiled.asnumpy(), eager.asnumpy(), rtol=1e-9, atol=1e-9)
    rng = np.random.default_rng(5)
    ways, step = [rng.normal(size=point.shape) for point in points], 1e-6
    ahead, behind = (float(function(*[ms.Tensor(point + sign * step * way) for point, way in zip(points, ways)]))
                     for sign in (1, -1))
    expected = sum(float((g.asnumpy() * way).sum()) for g, way in zip(found, ways))
    # A sensible share of float32 constants inside limits what differences can show.
    assert (ahead - behind) / (2 * step) == pytest.approx(expected, rel=1e-4, abs=2e-5)


# --------------------------------------------------------------------------------------------------- methods


def test_no_method_is_silently_mxnets() -> None:
    """Every method of ``Value`` that MindSpore has, too, follows MindSpore."""
    for name in FLUENT:
        ours = getattr(ms.Tensor, name)
        if name in MXNET_ONLY:
            assert not hasattr(ops, name), f"{name} is a function of ops, and another method"
        else:
            assert ours is not getattr(Value, name), f"Tensor.{name} is MXNet's"
            assert ours is METHODS[name]


def test_methods_do_not_depend_on_the_order_of_imports() -> None:
    program = ("from opreg.cells.tensor import Tensor\n"
               "assert Tensor([[1, 2]]).sum().shape == (), Tensor.sum\n"
               "assert Tensor([1.0, 2.0]).max().shape == ()\n")
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent.parent.parent)


def test_a_parameter_may_be_spelled_as_in_pytorch() -> None:
    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    for keywords in (dict(axis=1, keepdims=True), dict(dim=1, keepdim=True), dict(axis=1, keep_dims=True)):
        assert x.sum(**keywords).shape == (2, 1)
    with pytest.raises(TypeError, match="one parameter"):
        x.sum(axis=1, dim=1)
    with pytest.raises(TypeError, match="unknown parameter 'axes'"):
        x.max(axes=1)


def test_sum_takes_its_older_order_of_arguments() -> None:
    assert ms.Tensor([1.0, 2.0]).sum(0, ms.float64, True).shape == (1,)


def test_methods_table_names_functions() -> None:
    assert all(callable(each) for each in METHODS.values())
    assert not set(METHODS) & MXNET_ONLY
    assert methods.__all__


# -------------------------------------------------------------------------------------------------- beyond it


@of_each([
    ("ops.roll(x, 1, 1)", [[0.3, -2.1, -0.7], [3.2, 0.9, 1.6]]),
    ("ops.einsum('ij,jk->ik', x, q)", "x @ q"),
    ("ops.einsum('ij,ij->', x, y)", "(x * y).sum()"),
    ("ops.einsum('ij->ji', x)", "x.T"),
    ("ops.einsum('bij,bjk,k->bi', r, t, v)", "np.einsum('bij,bjk,k->bi', r, t, v)"),
    ("ops.einsum('ii->i', q[:, :3])", "np.diag(q[:, :3])"),
    ("ops.einsum('ij,kj', x, y)", "x @ y.T"),
    ("ops.einsum('...j,j->...', r, f4)", "r @ f4"),
    ("ops.diagonal(x, 5)", np.zeros(0)),
    ("ops.diagonal(r, -9, 1, 2)", "np.diagonal(r, -9, 1, 2)"),
    ("ops.layer_norm(r, (4,), f4, f4 + 1)", "(r - r.mean(-1, keepdims=True)) / np.sqrt(r.var(-1, keepdims=True) + 1e-5)"
                                            " * f4 + f4 + 1"),
    ("ops.rms_norm(r, f4)[0]", "r / np.sqrt((r * r).mean(-1, keepdims=True) + 1e-6) * f4"),
    ("ops.embedding(k, q)", "q[k]"),
    ("ops.tensor_dot(r, q, 1)", None),
    ("ops.take(x, i)", "x.ravel()[i]"),
    ("ops.soft_margin_loss(x, ops.sign(y))", "np.log1p(np.exp(-np.sign(y) * x)).mean()"),
    ("ops.full((2,), 2.5)", [2.5, 2.5]),
    ("ops.full((2,), np.float32(2.5))", [2.5, 2.5]),
    ("ops.arange(0, np.float32(2), np.float32(0.5))", [0, 0.5, 1, 1.5]),
    ("ops.one_hot(ops.arange(2), 2, np.float32(0.5), 0)", [[0.5, 0], [0, 0.5]]),
    ("ops.hstack(([1.0, 2.0], x[0]))", "np.hstack(([1, 2], x[0]))"),
    ("ops.vstack(([1.0, 2.0, 3.0], x[0]))", "np.vstack(([1, 2, 3], x[0]))"),
    ("ops.exp(n)", "np.exp(n.astype('f4'))"),
    ("x.repeat(2, 1)", "np.tile(x, (2, 1))"),
    ("ops.unsorted_segment_sum(x, k, 3)", "[x[k == j].sum() for j in range(3)]"),
    ("ops.index_add(q, i, x[:, :1] * q[:2], 0)", "q + np.vstack([x[1:, :1] * q[1:2], x[:1, :1] * q[:1], 0 * q[:1]])"),
    ("ops.pixel_unshuffle(ops.pixel_shuffle(a, 2), 2)", "a"),
    ("ops.adaptive_avg_pool1d(l, 7)", "l"),
    ("ops.hardshrink(x * np.nan)", np.zeros((2, 3))),  # MindSpore: 0, as where a number is within the bounds
    ("ops.broadcast_to(x[:1, :1], (1, 0))", np.zeros((1, 0))),
    ("ops.repeat_interleave(x, 0, 0)", np.zeros((0, 3))),
    ("ops.narrow(x, 1, 1, 0)", np.zeros((2, 0))),
    ("ops.cosine_embedding_loss(r, r * 2, ops.ones((2, 4)), reduction='none')", np.zeros((2, 4))),
])
def test_functions_compute_where_mindspore_refuses(text: str, value: Any) -> None:
    values = {name: ms.Tensor(array) for name, array in ARRAYS.items()}
    if value is None:
        with pytest.raises(ValueError, match="differ in length"):
            run(text, values)
        return
    wanted = eval(value, {"np": np, **ARRAYS}) if isinstance(value, str) else value
    np.testing.assert_allclose(run(text, values).asnumpy(), wanted, rtol=1e-5, atol=1e-6)
    compiled = ms.jit(lambda *given: run(text, dict(zip(ARRAYS, given))))
    np.testing.assert_allclose(compiled(*values.values()).asnumpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
def test_distances_of_equal_rows_have_no_slope(p: float) -> None:
    x = ms.Tensor(ARRAYS["x"][:1])
    for run_ in (lambda function: function, ms.jit):
        gradients = run_(ms.grad(lambda a, b: ops.cdist(a, b, p), (0, 1)))(x, ms.Tensor(ARRAYS["x"][:1]))
        assert not any(g.asnumpy().any() for g in gradients)


@pytest.mark.parametrize("ord_", [2, "nuc"])
def test_norms_of_matrices_of_low_rank_have_slopes(ord_: Any) -> None:
    """Singular values of zero do not make the gradient NaN."""
    row = np.array([[1.0, 2.0, 2.0]])
    x = ms.Tensor(np.vstack([row, 2 * row]))
    g = ms.grad(lambda a: ops.norm(a, ord_))(x).asnumpy()
    assert np.isfinite(g).all()
    assert (g * x.asnumpy()).sum() == pytest.approx(float(ops.norm(x, ord_).asnumpy()))


@of_each([
    ("ops.mm(r, q)", ValueError, "expected 2 and 2 axes"),
    ("ops.dot(v, v)", ValueError, "at least two axes"),
    ("ops.conv2d(a, w, pad_mode='valid', padding=1)", ValueError, "pad_mode='pad'"),
    ("ops.conv2d(a, w, pad_mode='half')", ValueError, "'same', 'valid' or 'pad'"),
    ("ops.gather(q, x, 0)", TypeError, "must be integers"),
    ("ops.concat(x)", TypeError, "list or tuple"),
    ("ops.split(q, (1, 1), 0)", ValueError, "do not add up"),
    ("ops.squeeze(x, 1)", ValueError, "has length 3"),
    ("ops.broadcast_to(x, (2, 4))", ValueError, "does not broadcast"),
    ("ops.clamp(x)", ValueError, "min, max or both"),
    ("ops.mse_loss(x, y, 'most')", ValueError, "'mean', 'sum' or 'none'"),
    ("ops.topk(x, 9)", ValueError, "from 1 to 3"),
    ("ops.dropout(x, 1.5)", ValueError, "from 0 to 1"),
    ("ops.interpolate(a)", ValueError, "size or scale_factor"),
    ("ops.max_pool2d(a, 6, dilation=2)", ValueError, "windows of 11 do not fit a length of 6"),
    ("ops.max_pool2d(v, 2, return_indices=True)", ValueError, "expected 3 or 4 axes"),
    ("ops.max_unpool2d(a, ops.zeros_like(a), 2)", TypeError, "int32 or int64"),
    ("ops.max_unpool2d(x, i, 2)", ValueError, "an index for each element"),
    ("ops.max_unpool2d(x.reshape((1, 2, 3)), m.reshape((1, 2, 3)), 2)", ValueError, "from 0 to 23.*got -3 to 5"),
    ("ops.max_unpool2d(x.reshape((1, 2, 3)), u.astype(ms.int32).reshape((1, 2, 3)), 2, output_size=(2, 6))", ValueError,
     "less than the stride"),
    ("ops.fractional_max_pool2d(a, 3)", ValueError, "output_size or output_ratio"),
    ("ops.fractional_max_pool2d(a, 3, 5)", ValueError, "do not fit"),
    ("ops.fractional_max_pool2d(a, 3, output_ratio=1.0)", ValueError, "between 0 and 1"),
    ("ops.fractional_max_pool2d(a, 3, 2, _random_samples=x)", ValueError, "must have the shape"),
    ("ops.fractional_max_pool2d(x, 3, 2)", ValueError, "expected 3 or 4 axes"),
    ("ops.lp_pool1d(l, 'a', 2)", TypeError, "norm_type"),
    ("ops.lp_pool2d(a, 0, 2)", ValueError, "must not be 0"),
    ("ops.randint(3, 3, (2,))", ValueError, "less than"),
    ("ops.layer_norm(r, (3,))", ValueError, "must be the last lengths of"),
    ("ops.sum(x, 1.5)", ValueError, "dim=1.5: expected an int"),
    ("ops.slice(x, (0,), (1,))", ValueError, r"one entry for each of the 2 axes of \(2, 3\)"),
    ("ops.slice(x, (0, 2), (1, 2))", ValueError, "does not lie within"),
    ("ops.slice(x, (0, -1), (1, 1))", ValueError, "does not lie within"),
    ("ops.slice(x, (0, 0), (1, -2))", ValueError, "does not lie within"),
    ("ops.norm(x, 3)", ValueError, "for matrices ord must be"),
    ("ops.norm(v, 'nuc')", ValueError, "for matrices 'nuc'"),
    ("ops.matrix_norm(v)", ValueError, "axis=-2 is out of range"),
    ("ops.cdist(v, v)", ValueError, "at least two"),
    ("ops.cdist(x, r)", ValueError, "equally many axes"),
    ("ops.cdist(x, q)", ValueError, "rows of equal length"),
    ("ops.cdist(n, n)", TypeError, "floating"),
    ("ops.cdist(x, y, -1.0)", ValueError, "at least 0"),
])
def test_errors_of_wrong_calls(text: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        run(text, {name: ms.Tensor(array) for name, array in ARRAYS.items()})


@of_each([
    ("ops.clamp(b, 0, 256)", [0, 5, 200]), ("ops.clamp(b, -7, 100)", [0, 5, 100]), ("b.clip(10, 2**70)", [10, 10, 200]),
    ("ops.maximum(b, -1)", [0, 5, 200]), ("ops.minimum(300, b)", [0, 5, 200]), ("ops.maximum(b, 300)", [255] * 3),
    ("ops.clamp(s, -1000, 10)", [-128, 10]), ("ops.minimum(w, 2**53 + 1)", [2 ** 53 + 1]),
    ("ops.where(b > 3, b, 300)", [44, 5, 200]), ("b + 300", [44, 49, 244]),
])
def test_scalars_outside_an_integer_dtype_clip_or_wrap(text: str, wanted: list[int]) -> None:
    """A bound beyond the range is replaced by the nearest number in it; other numbers wrap around, as in arithmetic."""
    values = {"b": ms.Tensor(np.array([0, 5, 200], np.uint8)), "s": ms.Tensor(np.array([-128, 100], np.int8)),
              "w": ms.Tensor(np.array([2 ** 53 + 3]))}
    assert run(text, values).asnumpy().tolist() == wanted
    compiled = ms.jit(eval(f"lambda b, s, w: {text}", {"ops": ms.ops}))
    assert compiled(**values).asnumpy().tolist() == wanted


def test_an_assigned_scalar_wraps_around() -> None:
    x = ms.Tensor(np.zeros(2, np.uint8))
    x[0] = 300
    assert x.asnumpy().tolist() == [44, 0]
    with pytest.raises(OpError, match=r"an array of uint8: .* too large"):
        x[0] = 2 ** 70


# ---------------------------------------------------------------------------------------------------- random


def test_random_values_repeat_by_seed_and_differ_in_every_run() -> None:
    draw = ms.jit(lambda: (ops.standard_normal((4,)), ops.randperm(6), ops.randint(0, 100, (3,))))
    ms.random.seed(3)
    first = [each.asnumpy() for each in draw()]
    second = [each.asnumpy() for each in draw()]
    assert not np.array_equal(first[0], second[0])
    ms.random.seed(3)
    for one, other in zip(first, draw()):
        np.testing.assert_array_equal(one, other.asnumpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_random_functions_draw_from_their_distributions(compiled: bool) -> None:
    ms.random.seed(11)

    def draw(function: Any) -> np.ndarray:
        return (ms.jit(function) if compiled else function)().asnumpy()

    n = (20000,)
    assert draw(lambda: ops.normal(n, 2.0, 3.0)).std() == pytest.approx(3, rel=0.05)
    assert draw(lambda: ops.laplace(n, 1.0, 2.0)).mean() == pytest.approx(1, abs=0.15)
    whole = draw(lambda: ops.uniform(n, 1, 4, dtype=ms.int32))
    assert set(whole.tolist()) == {1, 2, 3}
    assert draw(lambda: ops.bernoulli(ops.zeros(n), 0.3)).mean() == pytest.approx(0.3, abs=0.02)
    rare = draw(lambda: ops.multinomial(ms.Tensor(np.full((500, 3), [0.0, 1.0, 3.0], "f4")), 2, False))
    assert set(map(tuple, np.sort(rare, 1).tolist())) == {(1, 2)}
    assert (rare[:, 0] == 2).mean() == pytest.approx(0.75, abs=0.07)
    kept = draw(lambda: ops.dropout2d(ops.ones((100, 20, 2, 2)), 0.25))
    assert set(np.unique(kept).round(4).tolist()) == {0.0, np.float32(4 / 3).round(4)}
    assert (kept.min((2, 3)) == kept.max((2, 3))).all()


# ---------------------------------------------------------------------------------------------- control flow


X = ms.Tensor([1.0, -2.0])
W = ms.Parameter(ms.Tensor([2.0, 3.0]), name="w")
FLOWS = {
    "yes": lambda x: ops.cond(x.sum() < 0, lambda v: v * W, lambda v: v - W, x),
    "no": lambda x: ops.cond(x.sum() > 0, lambda v: v * W, lambda v: v - W, x),
    "constant": lambda x: ops.cond(True, lambda v: v * W, lambda v: v, x),
    "while": lambda x: ops.while_loop(lambda v: v.sum().abs() < 50, lambda v: v * W, x, 10),
    "while of three": lambda x: ops.while_loop(lambda v: v[0] < 4, lambda v: (v[0] + 1, v[1] * W, v[2]),
                                               (ms.Tensor(0.0), x, x), 10)[1],
    "scan": lambda x: ops.scan(lambda s, part: (s + part * W[0], s * part), ms.Tensor(0.0), x, unroll=False)[1],
    "scan unrolled": lambda x: ops.scan(lambda s, part: (s + part * W[0], s * part), ms.Tensor(0.0), x)[1],
    "scan without output": lambda x: ops.scan(lambda s, part: (s * 2, None), x, ms.Tensor([1.0, 2.0]), unroll=False)[0],
    "counted": lambda x: ops.fori_loop(0, 3, lambda i, v: v * W + i, x, unroll=False),
    "primitives": lambda x: ops.ForiLoop()(0, 3, lambda i, v: v * W, x),
}


@of_each(FLOWS)
def test_control_flow_is_the_same_eager_and_compiled(name: str) -> None:
    """Results and gradients, for inputs and Parameters, are equal eagerly and compiled."""
    function = FLOWS[name]
    compiled = ms.jit(function)
    np.testing.assert_allclose(compiled(X).asnumpy(), function(X).asnumpy())
    eager = ms.grad(function, 0, W)(X)
    for found in (ms.jit(ms.grad(function, 0, W))(X), ms.grad(compiled, 0, W)(X)):
        for one, other in zip(found, eager):
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy())


def test_scan_of_a_list_gives_a_list_of_outputs() -> None:
    """MindSpore's Scan does so; the rows of a tensor have their outputs stacked."""
    def scanned(values: Any, length: Any, unroll: bool) -> Any:
        return ops.Scan()(lambda total, x: (total + (2 if x is None else x),) * 2, 0, values, length, unroll)
    for run in (scanned, ms.jit(scanned)):
        for unroll in (False, True):
            assert run([1, 2, 3, 4], None, unroll) == (10, [1, 3, 6, 10])
            assert run(None, 2, unroll) == (4, [2, 4])
            assert run((), 0, unroll) == (0, [])


def test_control_flow_refuses_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="max_iterations"):
        ms.jit(lambda x: ops.while_loop(lambda v: v.sum() > 0, lambda v: v, x, 0))(X)
    with pytest.raises(ValueError, match="same shapes"):
        ms.jit(lambda x: ops.cond(x.sum() > 0, lambda v: v, lambda v: v.sum(), x))(X)
    with pytest.raises(ValueError, match="must return values of the shapes"):
        ms.jit(lambda x: ops.fori_loop(0, 2, lambda i, v: v.sum(), x, unroll=False))(X)
    with pytest.raises(ValueError, match="assigns a Parameter"):
        ms.jit(lambda x: ops.cond(x.sum() > 0, lambda v: ops.assign(W, v), lambda v: v, x))(X)


@of_each([
    ("ops.scalar_add(1, 2.5)", 3.5), ("ops.scalar_usub(3)", -3), ("ops.scalar_floordiv(7, 2)", 3),
    ("ops.scalar_ge(2, 2)", True), ("ops.bool_not(3)", False), ("ops.string_concat('a', 'b')", "ab"),
    ("ops.is_not(None, 1)", True), ("ops.make_tuple(1, 2)", (1, 2)), ("ops.make_list(1, 2)", [1, 2]),
    ("ops.tuple_getitem((1, 2), 1)", 2), ("ops.dict_getitem({'a': 4}, 'a')", 4), ("ops.tuple_len((1, 2))", 2),
    ("ops.tail((1, 2, 3))", (2, 3)), ("ops.tail(())", ()), ("ops.depend(1, 2)", 1),
    ("ops.scalar_cast(8.5, ms.int64)", 8), ("ops.scalar_cast(2, ms.bool_)", True),
    ("ops.scalar_cast(np.float32(2.5), ms.float64)", 2.5), ("ops.Partial()(max, 3)(2, 5)", 5)])
def test_operations_on_python_values_give_python_values(text: str, wanted: Any) -> None:
    names = {"ops": ops, "ms": ms, "np": np}
    for found in (eval(text, names), ms.jit(lambda: eval(text, names))()):
        assert (type(found), found) == (type(wanted), wanted)


@pytest.mark.parametrize("compiled", [False, True])
def test_operations_have_their_older_names(compiled: bool) -> None:
    x, y = ms.Tensor([1.0, 5.0]), ms.Tensor([2.0, 2.0])
    for name, wanted in (("add", [3, 7]), ("sub", [-1, 3]), ("mul", [2, 10]), ("div", [0.5, 2.5]), ("mod", [1, 1]),
                         ("floordiv", [0, 2]), ("pow", [1, 25]), ("lt", [True, False]), ("ge", [False, True])):
        function = getattr(ops, f"tensor_{name}")
        assert (ms.jit(function) if compiled else function)(x, y).asnumpy().tolist() == wanted
    assert ops.scalar_mul(x, 2).asnumpy().tolist() == [2, 10]


@pytest.mark.parametrize("values, dtype", [(range(3), ms.int32), ((0.0, 1, 2), ms.float32), ((0, 1.5, 2), ms.int32)])
def test_a_tuple_becomes_a_tensor(values: Any, dtype: Any) -> None:
    found = ops.tuple_to_array(values)
    assert found.dtype == dtype and found.asnumpy().tolist() == [0, 1, 2]


def test_scalar_casts_refuse_invalid_values() -> None:
    with pytest.raises(TypeError, match="should be a number, but got Tensor"):
        ops.scalar_cast(ms.Tensor(1), ms.int64)
    with pytest.raises(ValueError, match="the supported type is in the list"):
        ops.scalar_cast(1, ms.float32)


def test_listed_names_exist() -> None:
    assert len(set(ops.__all__)) == len(ops.__all__)
    for name in ops.__all__:
        assert hasattr(ops, name), name


@of_each([
    ("x.squeeze(axis=0)", (2, 3)), ("x.squeeze(axis=(0,))", (2, 3)), ("x.squeeze(axis=None)", (2, 3)),
    ("x.permute(dims=(0, 2, 1))", (1, 3, 2)), ("x.transpose(dim0=0, dim1=2)", (3, 2, 1)),
    ("x.broadcast_to(shape=(4, 2, 3))", (4, 2, 3)), ("x.flip(dims=(1,))", (1, 2, 3)),
    ("x.tile(reps=(2, 1, 1))", (2, 2, 3)), ("x.tile(dims=(2, 1, 1))", (2, 2, 3)),
    ("x.reshape(shape=(3, 2))", (3, 2)), ("x.view(shape=(3, 2))", (3, 2)), ("x.t()", (1, 2, 3)), ("x[0].t()", (3, 2))])
def test_lists_of_methods_are_keywords_too(text, shape):
    x = ms.Tensor(np.arange(6.0).reshape(1, 2, 3))
    assert eval(text, {"x": x}).shape == shape


@pytest.mark.parametrize("values, dtype, shape", [
    ([0.0, 1.0], "int32", (2,)), ([[0.0, 1.0]], "int16", (1, 4)), ([[0.0, 1.0]], "float64", (1, 1)),
    (1.5, "uint32", ()), ([1.0, 2.0], "bfloat16", (4,))])
def test_view_with_a_dtype_takes_the_bytes(values, dtype, shape):
    x, dtype = ms.Tensor(values, ms.float32), getattr(ms, dtype)
    for viewed in (x.view(dtype), x.view(dtype=dtype), ms.jit(lambda x: x.view(dtype))(x)):
        assert (viewed.shape, viewed.dtype) == (shape, dtype)
        np.testing.assert_array_equal(viewed.view(ms.float32).asnumpy(), x.asnumpy())
    with pytest.raises(ValueError, match="cannot be divided into elements of"):
        ms.Tensor([[1.0, 2.0, 3.0]], ms.float32).view(ms.float64)


@pytest.mark.parametrize("text", [
    "x.reshape(3, shape=(3, 2))", "x.tile((2, 1, 1), reps=(2, 1, 1))", "x.transpose(dim0=0)",
    "x.transpose((0, 2, 1), dim0=0, dim1=1)", "x.permute(axis=(0, 2, 1))"])
def test_a_list_of_a_method_is_given_once_and_by_its_name(text):
    with pytest.raises(TypeError):
        eval(text, {"x": ms.Tensor(np.zeros((1, 2, 3)))})


@pytest.mark.parametrize("arguments, keywords, expected", [
    ((), {}, 7), ((1,), {}, ([5, 7], [1, 0])), ((), {"dim": 1}, ([5, 7], [1, 0])), ((), {"axis": 1}, [5, 7]),
    ((1, True), {}, ([[5], [7]], [[1], [0]])), ((), {"axis": 1, "return_indices": True}, ([5, 7], [1, 0])),
    ((1,), {"initial": 6.0}, [6, 7]), ((1, True), {"initial": None, "where": True}, [[5], [7]]),
    ((1, False), {"initial": 2.0, "where": [[True, False, True], [False, True, True]]}, [2, 3]),
])
def test_max_returns_values_with_or_without_indices(arguments: Any, keywords: Any, expected: Any) -> None:
    keywords = {name: ms.Tensor(value) if isinstance(value, list) else value for name, value in keywords.items()}
    found = ms.Tensor(np.array([[1.0, 5, 2], [7, 0, 3]], np.float32)).max(*arguments, **keywords)
    if isinstance(expected, tuple):
        assert [each.asnumpy().tolist() for each in found] == [*expected]
    else:
        assert found.asnumpy().tolist() == expected
