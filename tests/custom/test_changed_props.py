"""Methods of a ``CustomOpProp`` that a program replaces between two calls, and names that they read."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import autograd, gluon, nd, sym
from tests.questions import of_each

SETUP = """
import numpy as np
import opreg as mx
half = 1
class Op(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        same = out_data[0].shape == in_data[0].shape
        self.assign(out_data[0], req[0], in_data[0] * 2 if same else in_data[0].sum(axis=1))
    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], in_data[0] * 0 + (2 if out_grad[0].shape == in_data[0].shape else 1))
class Base(mx.operator.CustomOpProp):
    def infer_shape(self, in_shape): return in_shape, [in_shape[0]], []
class Derived(Base):
    def infer_shape(self, in_shape): return super().infer_shape(in_shape)
    def create_operator(self, ctx, shapes, dtypes): return Op()
class Plain(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes): return Op()
class Reading(Plain):
    def infer_shape(self, in_shape): return in_shape, [list(in_shape[0])], []
    def infer_type(self, in_type): return in_type, [np.float32], []
class Outside(Plain):
    def infer_shape(self, in_shape): return in_shape, [in_shape[0][::half]], []
"""
ROWS = "lambda self, in_shape: (in_shape, [in_shape[0][:1]], [])"

#: The class of a Prop, and a statement after which its output has another shape or dtype.
CHANGES: dict[str, tuple[str, str]] = {
    "method": ("Derived", f"Derived.infer_shape = {ROWS}"),
    "method of a base": ("Derived", f"Base.infer_shape = {ROWS}"),
    "code of a method": ("Derived", f"Base.infer_shape.__code__ = ({ROWS}).__code__"),
    "shapes that were the default": ("Plain", f"Plain.infer_shape = {ROWS}"),
    "dtypes that were the default": ("Plain", "Plain.infer_type = lambda self, in_type: (in_type, [np.float64], [])"),
    "name of a built-in function": ("Reading", "list = lambda shape: tuple(shape)[:1]"),
    "name of a library": ("Reading", "class np: float32 = 'float64'"),
    "number": ("Outside", "half = 2"),
}


def eager(name: str) -> Callable[[nd.NDArray], nd.NDArray]:
    return lambda x: nd.Custom(x, op_type=name)


def hybridized(name: str) -> Callable[[nd.NDArray], nd.NDArray]:
    class Block(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.Custom(x, op_type=name) * 1

    block = Block()
    block.hybridize()
    return block


def compiled(name: str) -> Callable[[nd.NDArray], Any]:
    function = mx.jit(lambda x: mx.ops.Custom(x, op_type=name) * 1)
    return lambda x: function(mx.Tensor(x.asnumpy()))


def bound(name: str) -> Callable[[nd.NDArray], nd.NDArray]:
    graph = sym.Custom(sym.var("x"), op_type=name)
    return lambda x: graph.bind(mx.cpu(), {"x": x}).forward()[0]


WAYS = {"eager": eager, "hybridized": hybridized, "compiled": compiled, "bound": bound}


@of_each(itertools.product(WAYS, CHANGES), by=lambda case: case[0])
def test_a_changed_prop_is_asked_again(way: str, change: str) -> None:
    names: dict[str, Any] = {"__name__": "module_of_a_prop"}
    exec(SETUP, names)
    kind, statement = CHANGES[change]
    name = f"_example_changed_prop_{way}_{[*CHANGES].index(change)}"
    mx.operator.register(name)(names[kind])
    call, x = WAYS[way](name), nd.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for _ in range(2):
        before = call(x).asnumpy()
    np.testing.assert_array_equal(before, x.asnumpy() * 2)
    assert before.dtype == np.float32
    exec(statement, names)
    for _ in range(2):
        after = call(x).asnumpy()
        if change in ("dtypes that were the default", "name of a library"):
            np.testing.assert_array_equal(after, x.asnumpy() * 2)
            assert after.dtype == np.float64
        else:
            np.testing.assert_array_equal(after, [6.0, 15.0])


#: Statements that change what was read of a class when it was registered.
DECLARED: dict[str, str] = {
    "default": "Scaled.__init__.__defaults__ = (3.0,)",
    "default by keyword": "Keyed.__init__.__kwdefaults__ = {'factor': 3.0}",
    "element of defaults by keyword": "Keyed.__init__.__kwdefaults__['factor'] = 3.0",
    "constructor": "def made(self, factor=3.0):\n    Plain.__init__(self)\n    self.factor = float(factor)\n"
                   "Scaled.__init__ = made",
    "constructor with another attribute": "def made(self, factor=1.0, more=3.0):\n    Plain.__init__(self)\n"
                                          "    self.factor = float(factor) * float(more)\nScaled.__init__ = made",
    "constructor of a base": "def made(self, factor=3.0):\n    Plain.__init__(self)\n"
                             "    self.factor = float(factor)\nScaled.__init__ = made",
    "traced": "Scaled.__init__.__defaults__ = (3.0,)\nScaled.traced = Scaled.cheap = True",
}
SCALED = SETUP + """
class By(mx.operator.CustomOp):
    def __init__(self, factor): self.factor = factor
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * self.factor)
class Scaled(Plain):
    def __init__(self, factor=2.0):
        Plain.__init__(self)
        self.factor = float(factor)
    def create_operator(self, ctx, shapes, dtypes): return By(self.factor)
class Keyed(Scaled):
    def __init__(self, *, factor=2.0): Scaled.__init__(self, factor)
class Deeper(Scaled): pass
"""
KINDS = {"default by keyword": "Keyed", "element of defaults by keyword": "Keyed",
         "constructor of a base": "Deeper"}


def composed(name: str) -> Callable[[nd.NDArray], nd.NDArray]:
    return lambda x: bound(name)(x)


@of_each(itertools.product([*WAYS, "composed"], DECLARED), by=lambda case: case[0])
def test_a_changed_constructor_gives_the_attributes(way: str, change: str) -> None:
    """A symbol keeps its Prop, and one that is composed later has a new one."""
    names: dict[str, Any] = {"__name__": "module_of_a_constructor"}
    exec(SCALED, names)
    name = f"_example_changed_constructor_{way}_{[*DECLARED].index(change)}"
    mx.operator.register(name)(names[KINDS.get(change, "Scaled")])
    call, x = (WAYS | {"composed": composed})[way](name), nd.array([[1.0, 2.0, 3.0]])
    for factor in (2, 2 if way == "bound" else 3):
        for _ in range(2):
            np.testing.assert_array_equal(call(x).asnumpy(), x.asnumpy() * factor)
        exec(DECLARED[change], names)
    np.testing.assert_array_equal(nd.Custom(x, op_type=name, factor=2.0).asnumpy(), x.asnumpy() * (
        6 if "another" in change else 2))


def test_a_class_gets_a_rule_for_shapes_that_depend_on_values() -> None:
    names: dict[str, Any] = {"__name__": "module_of_methods"}
    exec(SETUP, names)
    name, x = "_example_later_shapes", nd.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mx.operator.register(name)(names["Plain"])
    np.testing.assert_array_equal(nd.Custom(x, op_type=name).asnumpy(), x.asnumpy() * 2)
    names["Plain"].infer_shape = lambda self, in_shape: (in_shape, [None], [])
    names["Plain"].infer_shape_from_data = lambda self, in_data: [in_data[0].shape[:1]]
    np.testing.assert_array_equal(composed(name)(x).asnumpy(), [6.0, 15.0])
    np.testing.assert_array_equal(nd.Custom(x, op_type=name).asnumpy(), [6.0, 15.0])


def test_a_class_gets_a_rule_for_samples() -> None:
    names: dict[str, Any] = {"__name__": "module_of_a_rule_for_samples"}
    exec(SETUP, names)
    name, x = "_example_later_vmap", mx.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mx.operator.register(name)(names["Plain"])
    rows: Any = mx.ops.vmap(lambda row: getattr(mx.nd.custom, name)(row))
    with pytest.warns(UserWarning, match="has no vmap rule"):
        np.testing.assert_array_equal(rows(x).asnumpy(), x.asnumpy() * 2)
    names["Plain"].vmap = lambda self, ins, batched: ins[0] * 7
    np.testing.assert_array_equal(rows(x).asnumpy(), x.asnumpy() * 7)


def test_a_dry_run_is_repeated_when_the_function_reads_another_value() -> None:
    """The shape of the result of a function without a shape rule."""
    count = 1
    for traced in (False, True):
        @mx.operator.define(name=f"_example_first_rows_{traced}", traced=traced)
        def first_rows(x):  # type: ignore[no-untyped-def]
            return x[:count]

        graph = getattr(sym.custom, first_rows.__name__)(sym.var("x"))
        for count in (1, 2, 1):
            assert graph.infer_shape(x=(3, 2))[1] == [(count, 2)]
            assert graph.bind(mx.cpu(), {"x": nd.ones((3, 2))}).forward()[0].shape == (count, 2)


@pytest.mark.filterwarnings("ignore:operator '_example_called_rows'")
def test_a_dry_run_is_repeated_for_what_cannot_be_compared() -> None:
    """A value that code of text reads, and an operator that another one has replaced."""
    names = {"count": 1}
    mx.operator.define(lambda x: x[:1], name="_example_called_rows")

    @mx.operator.define(name="_example_hidden_rows")
    def hidden(x):  # type: ignore[no-untyped-def]
        return x[:eval("count", names)]

    @mx.operator.define(name="_example_calling_rows")
    def calling(x):  # type: ignore[no-untyped-def]
        return nd.custom._example_called_rows(x)

    graphs = [hidden(sym.var("x")), calling(sym.var("x"))]
    for names["count"], first in ((1, lambda x: x[:1]), (2, lambda x: x[:2]), (1, lambda x: x[:1])):
        mx.operator.define(first, name="_example_called_rows")
        for graph in graphs:
            assert graph.infer_shape(x=(3, 2))[1] == [(names["count"], 2)]
            assert graph.bind(mx.cpu(), {"x": nd.ones((3, 2))}).forward()[0].shape == (names["count"], 2)


#: Ways to call an operator of one array in a graph.
IN_GRAPHS: dict[str, Callable[[Any], Callable[[nd.NDArray], Any]]] = {
    "compiled": lambda op: _of_arrays(mx.jit(lambda x: op(x) * 2)),
    "recorded": lambda op: _of_arrays(mx.jit(lambda x: op(x) * 2), recording=True),
    "block": lambda op: _block(op(sym.var("x")) * 2),
    "bound": lambda op: lambda x: (op(sym.var("x")) * 2).bind(mx.cpu(), {"x": x}).forward()[0],
    "called": lambda op: lambda x: op(x) * 2,
}


def _of_arrays(function: Callable[[mx.Tensor], mx.Tensor], recording: bool = False) -> Callable[[nd.NDArray], Any]:
    def call(x: nd.NDArray) -> mx.Tensor:
        value = mx.Tensor(x.asnumpy())
        value.attach_grad()
        with autograd.record() if recording else contextlib.nullcontext():
            return function(value)

    return call


def _block(graph: mx.Symbol) -> gluon.SymbolBlock:
    block = gluon.SymbolBlock(graph, sym.var("x"))
    block.hybridize()
    return block


@of_each(itertools.product(IN_GRAPHS, ("shape", "dtype", "dtype by a rule", "dtype of a traced one")))
def test_a_result_gets_another_spec(way: str, part: str) -> None:
    """If the operator has no shape rule, no value is cut or converted to a spec of an earlier run."""
    now = {"rows": 1, "kind": np.dtype("float16")}

    def function(x):  # type: ignore[no-untyped-def]
        return x[:now["rows"]].astype(now["kind"])

    op = mx.operator.define(function, name=f"_example_another_spec_{way}_{part}".replace(" ", "_"),
                            traced="traced" in part)
    op.grad(lambda g, ins, outs: ins[0])
    if "rule" in part:
        op.types(lambda ins, outs: (ins, [now["kind"]]))
    call, x = IN_GRAPHS[way](op), nd.array([[1.0, 2.0], [3.0, 4.0]])
    for rows, kind in ((1, "float16"), (2, "float16"), (1, "float16")) if part == "shape" else (
            (1, "float16"), (1, "float64"), (1, "float16")):
        now.update(rows=rows, kind=np.dtype(kind))
        for _ in range(2):
            y = call(x).asnumpy()
            assert y.dtype == kind
            np.testing.assert_array_equal(y, x.asnumpy()[:rows] * 2)


_FEW = [1]


@mx.operator.define(name="_example_few_rows")
def _few_rows(x: nd.NDArray) -> nd.NDArray:
    return x[:_FEW[0]]


class Counting(mx.nn.Cell):
    """A Cell that counts its calls and draws."""

    def __init__(self) -> None:
        super().__init__()
        self.count = mx.Parameter(mx.Tensor(np.zeros(1, np.float32)), name="count")

    def construct(self, x: mx.Tensor) -> mx.Tensor:
        self.count += 1
        return _few_rows(x + mx.ops.standard_normal((2, 1)))


def test_a_run_that_starts_over_for_another_spec_changes_and_draws_once() -> None:
    def answers(compiled: bool) -> list[np.ndarray]:
        cell = Counting()
        call, found = mx.jit(cell) if compiled else cell, []
        mx.set_seed(5)
        for _FEW[0] in (1, 2, 1):
            found += [call(mx.Tensor(np.zeros((2, 1), np.float32))).asnumpy(), cell.count.asnumpy()]
        return found

    for eager, compiled in zip(answers(False), answers(True), strict=True):
        np.testing.assert_array_equal(eager, compiled)


def test_a_spec_that_depends_on_numbers_is_refused() -> None:
    op = mx.operator.define(lambda x: nd.array(x.asnumpy()[x.asnumpy() > 1]), name="_example_spec_of_numbers")
    x = nd.array([1.0, 2.0, 3.0])
    for way in ("compiled", "block", "bound"):
        with pytest.raises(mx.errors.ShapeError, match="a run on other numbers found the first"):
            IN_GRAPHS[way](op)(x)


def test_an_executor_whose_body_calls_another_operator_asks_to_be_bound_again() -> None:
    def register(count: int) -> None:
        mx.operator.define(lambda x: x[:count], name="_example_rows_inside").infer(lambda x: (count, *x[1:]))

    register(1)
    outer = mx.operator.define(lambda x: nd.custom._example_rows_inside(x), name="_example_rows_outside")
    graph, x = outer(sym.var("x")), nd.ones((3, 2))
    executor = graph.bind(mx.cpu(), {"x": x})
    assert executor.forward()[0].shape == (1, 2)
    register(2)
    with pytest.raises(mx.errors.ShapeError, match="since the symbol was bound, bind it again"):
        executor.forward()
    assert graph.bind(mx.cpu(), {"x": x}).forward()[0].shape == (2, 2)


def test_a_function_gets_other_defaults() -> None:
    def scaled(x, *, factor: float = 2.0):  # type: ignore[no-untyped-def]
        return x * factor

    op, x = mx.operator.define(scaled, name="_example_other_defaults", traced=True), nd.array([1.0, 2.0])
    ways = [IN_GRAPHS[way](op) for way in ("called", "compiled", "bound")]
    for factor in (2.0, 3.0, 5.0):
        scaled.__kwdefaults__["factor"] = factor
        for way in ways:
            np.testing.assert_array_equal(way(x).asnumpy(), x.asnumpy() * factor * 2)
        assert op(x, factor=7.0).asnumpy().tolist() == [7.0, 14.0]


def test_a_shape_rule_is_asked_again_by_a_compiled_function() -> None:
    names: dict[str, Any] = {"__name__": "module_of_a_rule", "mx": mx, "count": 1}
    exec("rows = mx.operator.define(lambda x: x[:count], name='_example_rows_by_rule')\n"
         "rows.infer(lambda x: [(count, *x[1:])])", names)
    rows = names["rows"]
    function = mx.jit(lambda x: rows(x) * 1)
    for names["count"] in (1, 2, 1):
        assert function(mx.Tensor(np.ones((3, 2), np.float32))).shape == (names["count"], 2)
