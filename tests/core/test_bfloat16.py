"""bfloat16 counts as a floating dtype everywhere, although NumPy does not say so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import nn, ops
from tests.questions import of_each

ml_dtypes = pytest.importorskip("ml_dtypes")

BF16, F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
RECORDED = json.loads((Path(__file__).parent.parent / "recorded" / "mindspore_ops.json").read_text())
ARRAYS = {name: eval(text, {"np": np}) for name, text in RECORDED["inputs"].items()}


def x() -> ms.Tensor:
    return ms.Tensor([0.5, 0.25, 1.5], ms.bfloat16)


def layer() -> nn.Cell:
    return nn.Dense(3, 1, weight_init=ms.Tensor([[1.0, 1.0, 0.0]]), has_bias=False).to_float(ms.float16)


class Other(nn.Cell):
    """An operator whose gradient has another floating dtype than its input."""

    def construct(self, v: Any) -> Any:
        return v * 2

    def bprop(self, v: Any, out: Any, dout: Any) -> Any:
        return (dout * 3).astype(ms.float32 if v.dtype == ms.bfloat16 else ms.bfloat16)


@pytest.mark.parametrize("text, dtype, expected", [
    ("ops.sum(x)", "bfloat16", 2.25), ("x.sum()", "bfloat16", 2.25), ("ops.ReduceSum()(x)", "bfloat16", 2.25),
    ("ops.nansum(x)", "bfloat16", 2.25), ("ops.prod(x)", "bfloat16", 0.1875),
    ("ms.grad(ops.prod)(x)", "bfloat16", [0.375, 0.75, 0.125]),
    ("ops.div(x, 0.2, rounding_mode='trunc')", "bfloat16", [2, 1, 7]),
    ("layer()(x)", "float16", [0.75]),
    ("ms.grad(Other())(x)", "bfloat16", [3, 3, 3]), ("ms.grad(Other())(x.float())", "float32", [3, 3, 3]),
    ("ops.sigmoid(x)", "bfloat16", [0.62245935, 0.5621765, 0.8175745]),
    ("ops.softmax(x)", "bfloat16", [0.22262, 0.17338, 0.6040]),
    ("ops.clamp(x, 0.3, 1.0)", "bfloat16", [0.5, 0.30078125, 1]), ("ops.std(x)", "bfloat16", 0.5400617),
    ("nn.MSELoss()(x, x * 2)", "bfloat16", 0.8515625),
    ("ops.log_softmax(x)", "bfloat16", [-1.5, -1.75, -0.50390625]),
    ("x // 0.2", "bfloat16", [2, 1, 7]), ("x.max()", "bfloat16", 1.5),
    ("ms.jit(lambda v: ms.grad(ops.sum)(v))(x)", "bfloat16", [1, 1, 1])])
@pytest.mark.parametrize("compiled", [False, True])
def test_bfloat16_counts_as_a_floating_dtype(text: str, dtype: str, expected: Any, compiled: bool) -> None:
    def run(x: Any) -> Any:
        return eval(text, {"ops": ops, "ms": ms, "nn": nn, "x": x, "layer": layer, "Other": Other})

    found = (ms.jit(run) if compiled else run)(x())
    assert str(found.dtype).lower() == dtype
    np.testing.assert_allclose(found.float().asnumpy(), expected, rtol=2 ** -7)


def test_bfloat16_tensors_are_floating_point() -> None:
    assert x().is_floating_point() and not ms.Tensor([1]).is_floating_point()


def test_parameters_refuse_wider_dtypes() -> None:
    """Parameters refuse a wider dtype, and cast one that is no wider, like Parameters of other floating dtypes."""
    p = ms.Parameter(x(), name="p")
    with pytest.raises(TypeError, match="BFloat16"):
        p.set_data(ms.Tensor([1.0, 2.0, 3.0], ms.float32))
    ms.Parameter(ms.Tensor([1.0, 2.0, 3.0]), name="q").set_data(x())
    with pytest.raises(TypeError, match="Float32"):
        ops.assign(p, ms.Tensor([1.0, 2.0, 3.0], ms.float32))


def test_loops_have_gradients() -> None:
    """The body of a loop in a graph treats bfloat16 inputs as floating, too."""
    import opreg as mx

    data = mx.sym.var("data")
    out, _ = mx.sym.contrib.foreach(lambda each, state: (each * state, state), data, mx.sym.var("state"))
    ctx = mx.cpu()
    args = {"data": mx.nd.array([1.0, 2.0], dtype="bfloat16").reshape((2, 1)),
            "state": mx.nd.array([3.0], dtype="bfloat16")}
    grads = {name: array * 0 for name, array in args.items()}
    executor = out.bind(ctx, args, grads)
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2, 1), dtype="bfloat16"))
    np.testing.assert_array_equal(grads["data"].astype("float32").asnumpy(), [[3], [3]])
    np.testing.assert_array_equal(grads["state"].astype("float32").asnumpy(), [3])


# ----------------------------------------------------------------------------------- every function of ops

#: Expressions that draw random numbers, or name a dtype.
OWN_WAY = re.compile(r"float16|\.half|bernoulli|dropout")


def used(text: str) -> list[str]:
    return [name for name in ARRAYS if re.search(rf"(?<![\w.]){name}(?![\w(=])", text)]


CASES = [(group, text) for group in ("functions", "primitives", "methods") for text in RECORDED[group]
         if any(ARRAYS[name].dtype == np.float32 for name in used(text)) and not OWN_WAY.search(text)]


def run(text: str, dtype: Any) -> Any:
    """Result or error for floating inputs of a dtype, which were rounded to bfloat16 before."""
    values = {name: ms.Tensor(array.astype(BF16).astype(dtype) if array.dtype.kind == "f" else array)
              for name, array in ARRAYS.items()}
    try:
        return eval(text, {"ops": ops, "ms": ms, "np": np, **values})
    except Exception as error:
        return error


def same(narrow: Any, half: Any, wide: Any) -> None:
    assert type(narrow) is type(half)
    if isinstance(narrow, (tuple, list)):
        assert len(narrow) == len(half)
        for parts in zip(narrow, half, wide):
            same(*parts)
    elif isinstance(narrow, ms.Tensor):
        assert narrow._dt == (BF16 if half._dt == F16 else half._dt)
        if narrow._dt == BF16:
            found, expected = narrow.asnumpy().astype("f8"), wide.asnumpy().astype("f8")
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
            np.testing.assert_allclose(found, expected, rtol=2 ** -6, atol=2 ** -6 * scale)


@of_each(CASES, by=lambda case: case[0])
def test_operators_on_bfloat16_have_the_dtypes_of_float16(group: str, text: str) -> None:
    """Dtypes are inferred like those of float16, and values are those of float32, rounded."""
    narrow, half, wide = (run(text, dtype) for dtype in (BF16, F16, np.dtype(np.float32)))
    same(narrow, half, wide)


#: Expressions with kinks or steps in the inputs, or with results without a gradient.
ROUGH = re.compile(r"round|cast|float\(|floor|mod|trunc|max|min|sort|sign|stop_gradient|median|topk|[<>=]=? |"
                   r"clip_by_norm|ceil|heaviside|rint|Rint|lgamma|digamma|ReduceStd|argsort|unique|nan|matrix_norm|z\b")


def gradient(text: str, dtype: Any) -> Any:
    """Gradient of the sum of all outputs for the first floating input."""
    name = next(name for name in used(text) if ARRAYS[name].dtype == np.float32)
    values = {name: ms.Tensor(array.astype(BF16).astype(dtype) if array.dtype.kind == "f" else array)
              for name, array in ARRAYS.items()}

    def function(given: Any) -> Any:
        found = eval(text, {"ops": ops, "ms": ms, "np": np, **values, name: given})
        parts = [part for part in (found if isinstance(found, (tuple, list)) else [found])
                 if isinstance(part, ms.Tensor) and part.is_floating_point()]
        return sum((part.float().sum() for part in parts), start=ms.Tensor(0.0))

    try:
        return ms.grad(function)(values[name])
    except Exception as error:
        return error


@of_each([case for case in CASES if not ROUGH.search(case[1])], by=lambda case: case[0])
def test_gradients_in_bfloat16_have_the_dtypes_of_float16(group: str, text: str) -> None:
    same(*[gradient(text, dtype) for dtype in (BF16, F16, np.dtype(np.float32))])
