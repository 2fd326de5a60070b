"""Answers follow from what is asked, whatever was asked before."""

from __future__ import annotations

import random
import zlib
from collections import namedtuple

import numpy as np
import pytest

import opreg as mx
from opreg.core import cache
from opreg.core.attrs import Field, Schema
from opreg.core.registry import _OPS, get, operators, ops
from opreg.ndarray import eager

nd, sym = mx.nd, mx.sym
X = np.float32([[0.5, -0.0, 2.0], [-1.5, 0.0, 3.0]])

# ------------------------------------------------------------------------------------------ states to begin from


def forget():
    """Empty every cache, as in a new process."""
    for each in (*cache._RECENT, *cache._CACHED):
        (each.clear if isinstance(each, cache.Recent) else each.cache_clear)()
    for op in operators():
        op.schema._cache.clear()
        if hasattr(op.schema, "calls"):
            op.schema.calls.clear()


def outcome(call):
    """What came of a call, as something that is compared."""
    try:
        result = call()
    except Exception as error:
        return type(error).__name__, str(error)
    arrays = result if isinstance(result, (list, tuple)) else [result]
    return [(str(np.asarray(a).dtype), np.shape(a), np.asarray(a).tobytes()) for a in
            (each.asnumpy() if hasattr(each, "asnumpy") else each for each in arrays)]


# ---------------------------------------------------------------------------------------------------- attributes

Pair = namedtuple("Pair", "first second")
NAN = float("nan")
AXES = [(1, 0), [1, 0], np.array([1, 0]), "(1, 0)", "[1, 0]", " ( 1 , 0 ) ", (1.0, 0.0), [1.0, 0.0],
        np.array([1.0, 0.0]), "(1.0, 0.0)", (True, False), [True, False], np.array([True, False]), "(True, False)",
        (np.int64(1), np.int32(0)), (np.bool_(True), np.bool_(False)), (np.float32(1), np.float32(0)), Pair(1, 0),
        range(1, -1, -1), (-1, 0), (1, 0.0), ([1], [0]), ((1, 0),), None, "None", (), 1, True, 1.0]
NUMBERS = [0.0, -0.0, 0, False, np.float32(-0.0), np.float64(0.0), np.bool_(False), "0", "-0.0", "0.0", 1, True, 1.0,
           np.int64(1), np.float16(1), "1", "True", NAN, -NAN, np.float32("nan"), "nan", float("inf"), None, [1.0],
           np.array([1.0]), np.array(1.0), 1 << 53, float(1 << 53), "1_0"]
ANY = [*AXES, *NUMBERS, frozenset({1}), frozenset({True}), frozenset({1.0}), 0j, complex(-0.0, 0.0), slice(1, 2),
       slice(True, 2), {"a": 1}, {"a": True}, b"1", np.float32, np.dtype("float32"), Ellipsis, [[1], [True]],
       ((1,), 1.0)]


def _number(values):
    """A number that tells values apart, by what they look like."""
    return zlib.crc32(repr(values).encode()) % 9973


@pytest.fixture(scope="module")
def users():
    """Operators of users with attributes that are declared, and not, which answer with what they are given."""

    def told(x, *values):
        return nd.full((len(repr(values)),), _number(values))

    @mx.operator.define(name="told_typed")
    def typed(x, *, sizes: tuple[float, ...] = (1.0,), count: int = 1, rate: float = 1.0, flag: bool = False):
        return told(x, sizes, count, rate, flag)

    @mx.operator.define(name="told_any")
    def anything(x, *, value=None):
        return told(x, value)

    class Told(mx.operator.CustomOp):
        def __init__(self, values):
            self.number = _number(values)

        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * 0 + self.number)

    @mx.operator.register("told_prop")
    class Prop(mx.operator.CustomOpProp):
        def __init__(self, sizes: tuple[float, ...] = (1.0,), count: int = 1, rate: float = 1.0, value="none"):
            super().__init__()
            self.values = sizes, count, rate, value

        def create_operator(self, ctx, shapes, dtypes):
            return Told(self.values)

    yield
    for name in ("told_typed", "told_any", "told_prop"):
        del _OPS[f"custom.{name}"]


def _json(symbol):
    return sym.load_json(symbol.tojson())


ASKED = {
    "transpose": lambda value: nd.transpose(nd.array(X), axes=value),
    "ops.transpose": lambda value: ops.transpose(nd.array(X), axes=value),
    "sym.transpose": lambda value: sym.transpose(sym.var("x"), axes=value).eval(x=nd.array(X))[0],
    "a file": lambda value: _json(sym.transpose(sym.var("x"), axes=value)).eval(x=nd.array(X))[0],
    "sum": lambda value: nd.sum(nd.array(X), axis=value),
    "plus": lambda value: nd._plus_scalar(nd.array(X), scalar=value),
    "sym plus": lambda value: 1 / sym._plus_scalar(sym.var("x"), scalar=value).eval(x=nd.array(X))[0],
    "operator": lambda value: nd.array(X) * value,
    "clip": lambda value: nd.clip(nd.array(X), value, 1.0),
    "softmax": lambda value: nd.softmax(nd.array(X), temperature=value),
    "typed sizes": lambda value: nd.custom.told_typed(nd.array(X), sizes=value),
    "typed count": lambda value: nd.custom.told_typed(nd.array(X), count=value),
    "typed rate": lambda value: nd.custom.told_typed(nd.array(X), rate=value),
    "typed flag": lambda value: nd.custom.told_typed(nd.array(X), flag=value),
    "sym typed": lambda value: sym.custom.told_typed(sym.var("x"), sizes=value).eval(x=nd.array(X))[0],
    "any": lambda value: nd.custom.told_any(nd.array(X), value=value),
    "sym any": lambda value: sym.custom.told_any(sym.var("x"), value=value).eval(x=nd.array(X))[0],
    "prop sizes": lambda value: nd.Custom(nd.array(X), op_type="told_prop", sizes=value),
    "prop count": lambda value: nd.Custom(nd.array(X), op_type="told_prop", count=value),
    "prop rate": lambda value: nd.Custom(nd.array(X), op_type="told_prop", rate=value),
    "prop text": lambda value: nd.Custom(nd.array(X), op_type="told_prop", value=value),
    "sym prop": lambda value: sym.Custom(sym.var("x"), op_type="told_prop", rate=value).eval(x=nd.array(X))[0],
    "update": lambda value: nd.sgd_update(nd.array([-0.0]), nd.array([1.0]), lr=value),
    "compiled": lambda value: mx.jit(lambda x: x * 1.0)(mx.Tensor(X)) * value,
}
TUPLES = {"transpose", "ops.transpose", "sym.transpose", "a file", "sum", "typed sizes", "sym typed", "prop sizes"}
ANYTHING = {"any", "sym any", "prop text"}


def _values(asked):
    return AXES if asked in TUPLES else ANY if asked in ANYTHING else NUMBERS


@pytest.mark.parametrize("asked", ASKED)
def test_an_attribute_means_the_same_whatever_was_asked_before(asked, users):
    call, values = ASKED[asked], _values(asked)
    alone = []
    for value in values:
        forget()
        alone.append(outcome(lambda: call(value)))
    forget()
    order = [*range(len(values)), *reversed(range(len(values)))]
    random.Random(1).shuffle(order)
    for i in (*order, *order):
        assert outcome(lambda: call(values[i])) == alone[i], values[i]


def test_a_list_that_changes_is_what_it_is_now(users):
    values = [1, 0]
    first = outcome(lambda: nd.custom.told_any(nd.array(X), value=values))
    values.reverse()
    assert outcome(lambda: nd.custom.told_any(nd.array(X), value=[1, 0])) == first
    assert outcome(lambda: nd.custom.told_any(nd.array(X), value=values)) != first
    assert nd.transpose(nd.array(X), axes=values).shape == (2, 3)
    values.reverse()
    assert nd.transpose(nd.array(X), axes=values).shape == (3, 2)


def test_equal_attributes_are_one_object_however_they_are_written():
    complete = get("transpose").complete
    assert len({id(complete({"axes": axes})) for axes in ((1, 0), [1, 0], np.array([1, 0]), "(1, 0)", "[1,0]")}) == 1
    assert complete({"axes": (1, 0)}).lasting and complete({}) is complete({"axes": ()})
    schema = Schema([Field("rate", float), Field("flag", bool, False)])
    assert schema.complete({"rate": 0.0}) is schema.complete({"rate": 0, "flag": 0})
    assert schema.complete({"rate": 0.0}) is not schema.complete({"rate": -0.0})
    assert schema.complete({"rate": NAN}) is schema.complete({"rate": "nan"})


@pytest.mark.parametrize("axes", [[1, 0], np.array([1, 0]), "(1, 0)"], ids=["list", "array", "text"])
@pytest.mark.parametrize("call", [nd.transpose, lambda x, axes: ops.transpose(x, axes=axes)], ids=["nd", "ops"])
def test_attributes_of_no_hash_fill_no_cache(call, axes):
    x = nd.array(X)
    call(x, axes=(1, 0))
    before = len([*eager._RUNNERS.entries()])
    for _ in range(20):
        call(x, axes=axes)
    assert len([*eager._RUNNERS.entries()]) == before


def test_what_cannot_be_known_by_value_is_not_kept(users):
    x, before = nd.array(X), None
    for _ in range(20):
        nd.custom.told_any(x, value=[1, object()])
        x[np.array([0, 1])]
        ops._subscript(x, key=(np.array([0, 1]), 0))
        after = {each.name: each.entries for each in mx.caches()}
        assert before is None or after == before
        before = after
