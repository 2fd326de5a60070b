"""Attributes of every type: eagerly, in graphs and files, and in the report of ``check``."""

from __future__ import annotations

import itertools
from typing import Any, Literal

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym

X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
_NAMES = itertools.count()


ATTRIBUTES: list[tuple[Any, Any, list[Any]]] = [
    (float, 1.0, [2.5, 3]), (int, 1, [4]), (bool, False, [True]), (str, "a", ["b", "it's \"so\"", "7"]),
    (tuple, (1, 2), [(0.5, 2), (4,), ((1, 2), (0.5,)), ("a", 1), ()]), (list, [1, 2], [[0.5, 2], [[1], [2, 3]], []]),
    (tuple[int, float], (1, 2.5), [(2, 0.5)]), (tuple[float, ...], (1.0,), [(0.5, 2.0)]),
    (tuple[tuple[int, ...], ...], ((1,),), [((1, 2), (3,))]), (float | None, None, [2.5, None]),
    (Literal["p", "q"], "p", ["q"]), (np.dtype, np.dtype("float32"), ["float64"]),
    (None, 1.0, [2.5, 3]), (None, True, [False]), (None, (1, 2), [(0.5, 2), ((1,), 2)]), (None, [1, 2], [[0.5, 2]]),
    (None, None, [2.5, "mean", None]), (None, "a", ["b", "7"])]


@pytest.mark.parametrize("kind, default, values", ATTRIBUTES, ids=[f"{i}" for i in range(len(ATTRIBUTES))])
def test_attributes_of_each_type_are_the_same_eagerly_in_graphs_and_in_files(kind: Any, default: Any,
                                                                           values: list[Any]) -> None:
    seen: list[Any] = []

    def body(x: Any, *, value: Any = default) -> Any:
        seen.append(value)
        return x * 1.0

    if kind is not None:
        body.__annotations__["value"] = kind
    else:
        del body.__annotations__["value"]
    op = mx.operator.define(body, name=f"_example_attributes_{next(_NAMES)}")
    for value in [default, *values]:
        x, symbol = nd.array(X), op(sym.var("x"), value=value)
        seen.clear()
        op(x, value=value)
        symbol.eval(x=x)
        sym.load_json(symbol.tojson()).eval(x=x)
        mx.jit(lambda x, value=value: op(x, value=value))(mx.Tensor(X))
        assert len({repr(each) for each in seen}) == 1, seen
    report = mx.operator.check(op, X[:1, :2], value=values[-1])
    assert report.without("gradient").ok, report


def test_keywords_of_props_that_are_text_pass_the_check() -> None:
    @mx.operator.register("_example_attributes_text")
    class Prop(mx.operator.CustomOpProp):
        def __init__(self, k="1"):
            super().__init__()
            self.k = float(k)

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return _Times(self.k)

    report = mx.operator.check("_example_attributes_text", X[:2], k=3)
    assert report.ok, report


class _Times(mx.operator.CustomOp):
    def __init__(self, k: float) -> None:
        self.k = k

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] * self.k)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * self.k)


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "int32", "float16"])
def test_results_of_another_dtype_pass_the_check(dtype: str) -> None:
    op = mx.operator.define(lambda x: (x * 2).astype(dtype), name=f"_example_attributes_{next(_NAMES)}")
    op.grad(lambda g, ins, outs: g.astype(ins[0].dtype) * 2)
    report = mx.operator.check(op, X[:2])
    assert report.ok, report
