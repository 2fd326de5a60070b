"""What is declared of an operator that is a function is read at once, and held eagerly as in graphs."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DTypeError

nd, sym = mx.nd, mx.sym
_NUMBERS = itertools.count()


def defined(function: Callable[..., Any], **options: Any) -> Any:
    """An operator under a name of its own."""
    return mx.operator.define(function, name=f"test_declared_{next(_NUMBERS)}", **options)


def eager(op: Any, *arrays: Any, **attrs: Any) -> Any:
    return op(*[nd.array(each, dtype=np.asarray(each).dtype) for each in arrays], **attrs)


def graph(op: Any, *arrays: Any, **attrs: Any) -> Any:
    arrays = tuple(map(np.asarray, arrays))
    names = [f"x{i}" for i in range(len(arrays))]
    net = op(*map(sym.var, names), name="node", **attrs)
    executor = net.simple_bind(mx.cpu(), grad_req="null", type_dict={n: a.dtype for n, a in zip(names, arrays)},
                               **{n: a.shape for n, a in zip(names, arrays)})
    return executor.forward(**{n: nd.array(a, dtype=a.dtype) for n, a in zip(names, arrays)})[0]


def cell(op: Any, *arrays: Any, **attrs: Any) -> Any:
    return mx.jit(lambda *tensors: op(*tensors, **attrs))(*map(mx.Tensor, arrays))


BOTH = pytest.mark.parametrize("run", [eager, graph])
ALL = pytest.mark.parametrize("run", [eager, graph, cell])


# ----------------------------------------------------------------------------------------------------- dtypes


def _one(x: Any) -> Any:
    return x


def _two(x: Any, ids: Any) -> Any:
    return x


def _state(x: Any, mean: Any) -> Any:
    return x - mean


def _many(x: Any, *xs: Any) -> Any:
    return x


WRONG_TYPES: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (_one, {"types": "flaot32->T"}, "types='flaot32->T': dtype 'flaot32' is not one .* Did you mean 'float32'"),
    (_one, {"types": "T->flaot32"}, "Did you mean 'float32'"),
    (_one, {"types": "T,T->T"}, r"types='T,T->T' names 2 inputs, there is 1 \(x\)"),
    (_two, {"types": "T->T"}, r"names 1 input, there are 2 \(x, ids\): write 'T,T' where"),
    (_two, {"types": "T,U,V->T"}, r"names 3 inputs, there are 2 \(x, ids\)"),
    (_one, {"types": "T->T,T"}, r"names 2 outputs, there is 1 \(output\)"),
    (_one, {"types": "T->T", "outputs": ["a", "b"]}, r"names 1 output, there are 2 \(a, b\)"),
    (_one, {"types": "T->"}, r"names 0 outputs, there is 1"), (_one, {"types": "->T"}, "names 0 inputs"),
    (_one, {"types": "T"}, "expected dtypes of inputs, an arrow and dtypes of outputs, as in 'T->T'"),
    (_one, {"types": "T->T->T"}, "an arrow"), (_one, {"types": "T=>T"}, "an arrow"), (_one, {"types": ""}, "an arrow"),
    (_two, {"types": "T,,->T"}, "nothing between"), (_one, {"types": 3}, "expected text, got 3"),
    (_one, {"types": "T->U"}, "'U' follows from no input"),
    (_one, {"types": "T->@dtpye"}, "no attribute 'dtpye'"),
    (_many, {"types": "T,T,T->T"}, r"names 3 inputs, there are 2 kinds \(x, \*xs\)"),
    (_state, {"types": "T,T,T->T", "auxiliary": ["mean"]}, r"names 3 inputs, there are 2 \(x, mean\)"),
]


@pytest.mark.parametrize("function, options, words", WRONG_TYPES)
def test_dtypes_that_cannot_be_meant_are_refused_at_once(function: Any, options: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=f"define: {function.__name__}.*{words}"):
        defined(function, **options)


@pytest.mark.parametrize("function, options", [
    (_one, {"types": "T->T"}), (_two, {"types": "T,int32->T"}), (_two, {"types": " T , U -> T "}),
    (_two, {"types": "*T->T"}), (_one, {"types": "T->*T", "outputs": ["a", "b"]}), (_one, {"types": "?->bool"}),
    (_one, {"types": "half->float32"}), (_many, {"types": "T,*U->T"}), (_many, {"types": "*T->T"}),
    (_many, {"types": "T,U->T"}), (_state, {"types": "T->T", "auxiliary": ["mean"]}),
    (_state, {"types": "T,float32->T", "auxiliary": ["mean"]}),
    (lambda x, *, dtype: x.astype(dtype), {"types": "T->@dtype"}), (lambda: nd.ones(2), {"types": "->float32"}),
])
def test_dtypes_that_can_be_meant(function: Any, options: Any) -> None:
    defined(function, **options)


def test_states_have_the_dtype_of_the_first_input_where_nothing_is_said() -> None:
    op = defined(lambda x, ids, mean: x - mean, types="T,int32->T", auxiliary=["mean"])
    assert op.infer_type([np.float64, np.int32])[2] == [np.float64]


@ALL
def test_inputs_of_other_dtypes_are_refused(run: Any) -> None:
    op = defined(lambda x, ids: x.take(ids), types="T,int32->T")
    with pytest.raises(DTypeError, match=f"operator '{op.op_type}': input 'ids' is float32, types='T,int32->T' say "
                                         "int32"):
        run(op, np.ones((3, 2), np.float32), np.float32([0, 1]))
    with pytest.raises(DTypeError, match="input 'y' is float64, types='T,T->T' say float32, as 'x' is"):
        run(defined(lambda x, y: x, types="T,T->T"), np.float32([1]), np.float64([1]))
    assert run(op, np.ones((3, 2), np.float32), np.int32([0, 1])).shape == (2, 2)


@ALL
@pytest.mark.parametrize("made, types, words", [
    (lambda x: x * 1, "T->int32", "types='T->int32' say int32"),
    (lambda x: x * 1, "T->float64", "types='T->float64' say float64"),  # no wider one either
    (lambda x: np.float64(x.asnumpy()), "T->T", "types='T->T' say float32"),
])
def test_results_of_other_dtypes_are_refused(run: Any, made: Any, types: str, words: str) -> None:
    op = defined(lambda x: made(x), types=types)
    op.infer(lambda x: x)
    found = "float64" if types == "T->T" else "float32"
    with pytest.raises(DTypeError, match=f"operator '{op.op_type}': output 'output' is {found}, {re.escape(words)}"):
        run(op, np.float32([1, 2]))


@ALL
def test_numbers_take_the_dtype_that_is_declared(run: Any) -> None:
    op = defined(lambda x: 3.0, types="T->T")
    assert np.dtype(run(op, np.float32([1, 2])).asnumpy().dtype) == np.float32
    op = defined(lambda x: x.shape[0], types="T->int32")
    assert run(op, np.float32([1, 2])).asnumpy() == 2
    assert run(op, np.float32([1, 2])).asnumpy().dtype == np.int32


@BOTH
def test_a_rule_for_dtypes_is_held_as_their_words_are(run: Any) -> None:
    op = defined(lambda x: x * 1)
    op.infer(lambda x: x)
    op.types(lambda ins, outs: (ins, [np.dtype(np.int32)]))
    with pytest.raises(DTypeError, match="output 'output' is float32, its dtype rule says int32"):
        run(op, np.float32([1, 2]))


def test_shapes_are_found_on_the_dtypes_that_are_declared() -> None:
    seen = []

    def taking(x: Any, ids: Any) -> Any:
        seen.append(np.dtype(ids.dtype))
        return x.take(ids)

    op = defined(taking, types="T,int32->T")
    assert op(sym.var("x"), sym.var("ids")).infer_shape(x=(3, 2), ids=(4,))[1] == [(4, 2)]
    assert set(seen) == {np.dtype(np.int32)}


def test_an_input_of_another_dtype_is_named_with_what_it_comes_from() -> None:
    op = defined(lambda x, ids: x * 1, types="T,int32->T")
    net = op(sym.var("data"), sym.var("ids_label"), name="segment")
    with pytest.raises(DTypeError) as caught:
        net.simple_bind(mx.cpu(), data=(2, 3), ids_label=(2,), type_dict={"ids_label": "float32"})
    assert "input 'ids' is float32, types='T,int32->T' say int32" in str(caught.value)
    assert "ids_label" in "".join([str(caught.value), *caught.value.__notes__])


# ------------------------------------------------------------------------------------------------- attributes


@pytest.mark.parametrize("made, x, y", [
    (lambda op: op, nd.ones(2), nd.ones(2)), (lambda op: op, sym.var("x"), sym.var("y")),
    (lambda op: op, mx.Tensor([1.0]), mx.Tensor([1.0])), (lambda op: op, nd.ones(2), 2.0),
    (lambda op: getattr(nd.custom, op.op_type), nd.ones(2), nd.ones(2)),
    (lambda op: getattr(nd.custom, op.op_type), nd.ones(2), 2.0),
    (lambda op: getattr(sym.custom, op.op_type), sym.var("x"), 2.0),
])
def test_attributes_go_by_keyword_alone(made: Any, x: Any, y: Any) -> None:
    op = defined(lambda x, *, beta=1.0: x * beta)
    with pytest.raises(ArgumentError, match=r"takes 1 input \(x\), got 2; attributes go by keyword, as in beta=1.0"):
        made(op)(x, y)
    made(op)(x, beta=2.0)
    with pytest.raises(ArgumentError, match=r"takes 2 inputs \(x, y\), got 3(\n|$)"):
        made(defined(lambda x, y: x))(x, x, y)


def test_signatures_keep_the_star() -> None:
    op = defined(lambda x, *, beta=1.0, axis: x)
    for function in (op, getattr(nd.custom, op.op_type), getattr(sym.custom, op.op_type)):
        parameters = inspect.signature(function).parameters
        assert parameters["beta"].kind is parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY
    assert str(inspect.signature(op)).startswith("(x, *, beta")


# ------------------------------------------------------------------------------------------------------ rules


def _gradient_in_another_order(ins: Any, outs: Any, g: Any) -> Any: ...
def _gradient_of_two(g: Any, ins: Any) -> Any: ...
def _gradient_of_others(g: Any, ins: Any, outs: Any, *, betta: Any) -> Any: ...
def _gradient_in_a_place(g: Any, ins: Any, outs: Any, *, ctx: Any) -> Any: ...
def _shape_of_one(x: Any) -> Any: ...
def _shape_of_three(x: Any, y: Any, z: Any) -> Any: ...
def _shape_of_others(x: Any, y: Any, *, betta: Any) -> Any: ...
def _filled_by_one(ins: Any) -> Any: ...
def _filled_in_another_order(outs: Any, ins: Any) -> Any: ...


WRONG_RULES: list[tuple[str, Any, str]] = [
    ("grad", _gradient_in_another_order, r"takes \(ins, outs, g\), expected \(g, ins, outs, \*, beta\)"),
    ("grad", _gradient_of_two, r"takes \(g, ins\), expected \(g, ins, outs, \*, beta\)"),
    ("grad", _gradient_of_others, "keyword 'betta'. Did you mean 'beta'"),
    ("grad", _gradient_in_a_place, "keyword 'ctx'"),
    ("infer", _shape_of_one, r"takes \(x\), expected \(x, y, \*, beta\): a shape for each"),
    ("infer", _shape_of_three, r"takes \(x, y, z\), expected \(x, y, \*, beta\)"),
    ("infer", _shape_of_others, "keyword 'betta'. Did you mean 'beta'"),
    ("infer_from_data", _shape_of_one, r"takes \(x\), expected \(x, y, \*, beta\): an array for each"),
    ("fill", _filled_by_one, r"takes \(ins\), expected \(ins, outs, \*, beta\)"),
    ("fill", _filled_in_another_order, r"takes \(outs, ins\), expected \(ins, outs, \*, beta\)"),
    ("types", _filled_by_one, r"takes \(ins\), expected \(ins, outs, \*, beta\)"),
    ("shapes", _filled_by_one, r"takes \(ins\), expected \(ins, outs, \*, beta\)"),
    ("grad", 3, "expected a function, got 3"),
]


@pytest.mark.parametrize("kind, rule, words", WRONG_RULES)
def test_rules_that_cannot_be_called_are_refused_at_once(kind: str, rule: Any, words: str) -> None:
    op = defined(lambda x, y, *, beta: x)
    with pytest.raises((ArgumentError, TypeError), match=words) as caught:
        getattr(op, kind)(rule)
    assert op.op_type in str(caught.value)
    if callable(rule):
        assert "test_custom_declared.py:" in str(caught.value)
    assert not op.has_grad and not op.data_dependent  # what was refused is not there


@pytest.mark.parametrize("kind, rule", [
    ("grad", lambda g, ins, outs: g), ("grad", lambda dy, xs, ys, *, beta: dy), ("grad", lambda *given, beta: given),
    ("grad", lambda g, ins, outs, *, is_train, needs: g), ("grad", lambda g, ins, outs, **attrs: g),
    ("grad", lambda g, ins, outs, *, eps=1e-3: g), ("infer", lambda *shapes: shapes[0]),
    ("infer", lambda a, b, *, beta: a), ("infer", lambda a, b, c=None: a), ("fill", lambda shapes, others: shapes),
])
def test_rules_that_can_be_called(kind: str, rule: Any) -> None:
    getattr(defined(lambda x, y, *, beta: x), kind)(rule)


def test_a_shape_rule_of_any_number_of_inputs_takes_any_number() -> None:
    op = defined(lambda x, *xs: x)
    with pytest.raises(ArgumentError, match=r"takes \(x\), expected \(x, \*xs\)"):
        op.infer(lambda x: x)
    op.infer(lambda x, *xs: x)
