"""Attributes of every type: eagerly, in graphs and files, and in the report of ``check``."""

from __future__ import annotations

import enum
import itertools
from typing import Any, Literal

import numpy as np
import pytest

import opreg as mx
from opreg import nd, sym
from opreg.errors import AttrError

X = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
_NAMES = itertools.count()


class Pace(enum.Enum):
    SLOW = "s"
    FAST = "f"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Part(enum.Flag):
    A = 1
    B = 2


ATTRIBUTES: list[tuple[Any, Any, list[Any]]] = [
    (float, 1.0, [2.5, 3]), (int, 1, [4]), (bool, False, [True]), (str, "a", ["b", "it's \"so\"", "7"]),
    (tuple, (1, 2), [(0.5, 2), (4,), ((1, 2), (0.5,)), ("a", 1), ()]), (list, [1, 2], [[0.5, 2], [[1], [2, 3]], []]),
    (tuple[int, float], (1, 2.5), [(2, 0.5)]), (tuple[float, ...], (1.0,), [(0.5, 2.0)]),
    (tuple[tuple[int, ...], ...], ((1,),), [((1, 2), (3,))]), (float | None, None, [2.5, None]),
    (Literal["p", "q"], "p", ["q"]), (np.dtype, np.dtype("float32"), ["float64"]),
    (None, 1.0, [2.5, 3]), (None, True, [False]), (None, (1, 2), [(0.5, 2), ((1,), 2)]), (None, [1, 2], [[0.5, 2]]),
    (None, None, [2.5, "mean", None]), (None, "a", ["b", "7"]),
    (complex, 1j, [2 - 1j, 3]), (bytes, b"a", [b"it's"]), (slice, slice(1), [slice(1, None, -2)]),
    (range, range(2), [range(1, 9, 3)]), (set, {1}, [{"b"}, set()]), (frozenset[int], frozenset({1}), [frozenset()]),
    (dict, {"a": 1}, [{"b": (1, 2.0), "c": [{}]}, {"nan": float("-inf")}]), (dict[str, float], {"a": 1}, [{"b": 2}]),
    (dict | None, None, [{"a": None}, None]), (np.float32, np.float32(1), [np.float32(2), 0.5]),
    (Pace, Pace.SLOW, [Pace.FAST, "FAST"]), (Pace | None, None, [Pace.FAST]), (list[Pace], [Pace.SLOW], [[Pace.FAST]]),
    (Level, Level.LOW, [Level.HIGH, 2]), (Word, Word.YES, [Word.NO, "no"]), (Part, Part.A, [Part.B, Part.A | Part.B]),
    (Literal[1, True, "a", None], 1, [True, None]), (Any, 1, [2, (1, 2), {"a": 1j}, "mean"]),
    (None, 1j, [2j]), (None, b"a", [b"b"]), (None, slice(1), [slice(2)]), (None, {"a": 1}, [{"b": 2}]),
    (None, ..., [1, ...]), (None, Pace.SLOW, [Pace.FAST, 1.5, "other"])]


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


def test_a_value_that_has_no_text_is_refused_by_files_alone() -> None:
    def body(x: Any, *, value: Any = None) -> Any:
        return x * 1.0

    op = mx.operator.define(body, name="_example_attributes_object")
    for value in (object(), [object()], {"a": object()}):
        symbol = op(sym.var("x"), value=value, name="node")
        assert symbol.eval(x=nd.array(X))[0].shape == X.shape
        with pytest.raises(AttrError, match=r"'_example_attributes_object', node 'node': attribute value is a .*, "
                                            r"which has no text for a file\. Expected numbers"):
            symbol.tojson()


def test_a_misspelt_member_names_the_nearest() -> None:
    def body(x: Any, *, pace: Pace = Pace.SLOW) -> Any:
        return x * 1.0

    body.__annotations__["pace"] = Pace
    op = mx.operator.define(body, name="_example_attributes_pace")
    with pytest.raises(AttrError, match=r"pace: expected one of SLOW, FAST, got .FASTT.\. Did you mean .FAST."):
        op(nd.array(X), pace="FASTT")


class _Rate(mx.operator.CustomOp):
    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


class _RateBlock(mx.gluon.HybridBlock):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Custom(x, op_type="_example_attributes_rate", given=4) + 1


def test_defaults_of_a_prop_are_no_text_in_any_manner_of_running() -> None:
    """None and False become 'None' and 'False' as text, which a Prop takes for a number and for true."""
    seen: list[Any] = []

    @mx.operator.register("_example_attributes_rate")
    class Prop(mx.operator.CustomOpProp):
        def __init__(self, given, rate=None, fill=False, typed: int = 2):
            super().__init__()
            seen.append((given, rate, fill, typed))

        def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> _Rate:
            return _Rate()

    block, static = _RateBlock(), _RateBlock()
    block.hybridize()
    static.hybridize(static_alloc=True, static_shape=True)
    symbol = sym.Custom(sym.var("x"), op_type="_example_attributes_rate", given=4)
    x = nd.array(X)
    x.attach_grad()
    for run in (_RateBlock(), block, static, lambda x: nd.Custom(x, op_type="_example_attributes_rate", given=4)):
        for _ in range(2):
            with mx.autograd.record():
                y = run(x)
            y.backward()
        run(x)
    mx.jit(_RateBlock())(mx.Tensor(X))
    function = mx.jit(lambda x: mx.ops.Custom(x, op_type="_example_attributes_rate", given=4) * 2)
    mx.grad(function)(mx.Tensor(X))
    for graph in (symbol, sym.load_json(symbol.tojson())):
        executor = graph.simple_bind(mx.cpu(), x=X.shape)
        executor.forward(is_train=True)
        executor.backward([x])
    assert set(seen) == {("4", None, False, 2)}


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
