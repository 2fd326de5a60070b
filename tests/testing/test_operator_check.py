"""``mx.operator.check``: planted mistakes are found, and right operators pass."""

from __future__ import annotations

import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as mx
from examples.custom_softmax import SoftmaxProp
from examples.running_scale import RunningScaleProp
from opreg import Tensor, nn, ops
from opreg.core import generators
from opreg.core.registry import get
from opreg.custom.function import of_function
from opreg.custom.prop import of_prop
from opreg.errors import ArgumentError, OpError
from opreg.ndarray import Context
from opreg.testing import Report, Verdict, checking, variations
from opreg.testing.contract import Check, Failed
from opreg.testing.uses import Use
from tests import processes
from tests.cuda import strict  # noqa: F401  whose device serves
from tests.questions import of_each
from tests.rows import Row, all_rows

X = np.array([[0.3, -1.2, 0.7], [1.4, 0.9, -0.4]])
Y = np.array([[1.1, 0.6, -0.8], [0.5, -1.3, 0.2]])


# ------------------------------------------------------------------------------------------- Props


class Square(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


class Product(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], in_data[1] * out_grad[0])
        self.assign(in_grad[1], req[1], in_data[0] * out_grad[0])


def prop(base: type[mx.operator.CustomOp] = Square, top: bool = True, init: Callable | None = None, traced_body=False,
         forward: Callable | None = None, backward: Callable | None = None, **answers: Any) -> Any:
    """An operator of a right Prop, with some methods replaced."""
    methods = {name: method for name, method in (("forward", forward), ("backward", backward)) if method}
    body = type("Body", (base,), methods)

    class Prop(mx.operator.CustomOpProp):
        traced = traced_body

        def __init__(self, **keywords):
            super().__init__(need_top_grad=top)
            if init:
                init(self, **keywords)

        def list_arguments(self):
            return ["x", "y"] if base is Product else ["x"]

        def create_operator(self, ctx, shapes, dtypes):
            return body()

    for name, answer in answers.items():
        setattr(Prop, name, answer)
    return of_prop("planted", Prop)


def _half_written(self, is_train, req, in_data, out_data, aux):
    out_data[0][:1] = in_data[0][:1] * in_data[0][:1]


def _stores(self, is_train, req, in_data, out_data, aux):
    out_data[0][:] = in_data[0] * in_data[0]


def _stores_gradient(self, req, out_grad, in_data, out_data, in_grad, aux):
    in_grad[0][:] = 2 * in_data[0] * out_grad[0]


def _adds_to_null(self, req, out_grad, in_data, out_data, in_grad, aux):
    value = 2 * in_data[0] * out_grad[0]
    in_grad[0][:] = in_grad[0] + value if req[0] == "add" else value


def _forgets_one(self, req, out_grad, in_data, out_data, in_grad, aux):
    self.assign(in_grad[0], req[0], in_data[1] * out_grad[0])


def _swaps(self, req, out_grad, in_data, out_data, in_grad, aux):
    self.assign(in_grad[0], req[0], in_data[0] * out_grad[0])
    self.assign(in_grad[1], req[1], in_data[1] * out_grad[0])


def _without_top(self, req, out_grad, in_data, out_data, in_grad, aux):
    self.assign(in_grad[0], req[0], 2 * in_data[0])


def _one_element(self, req, out_grad, in_data, out_data, in_grad, aux):
    g = (2 * in_data[0] * out_grad[0]).asnumpy()
    g[-1, -1] = 0
    self.assign(in_grad[0], req[0], mx.nd.array(g, dtype=g.dtype))


def _changing_infer(self, in_shape):
    in_shape[0].append(1)
    return [in_shape[0][:-1]], [in_shape[0][:-1]], []


def _counting_names(self):
    self.asked = getattr(self, "asked", 0) + 1
    return ["output"] if self.asked < 3 else [f"output{self.asked}"]


def _flat(self, in_shape):
    return in_shape, [[2] + list(in_shape[0])], []


def _keeps_a_column(self, in_shape):
    return in_shape, [[in_shape[0][0], 1]], []


def _row_sums(self, is_train, req, in_data, out_data, aux):
    self.assign(out_data[0], req[0], mx.nd.sum(in_data[0], axis=1))


def _always_float32(self, in_type):
    return in_type, [np.float32], []


def _always_int(self, in_type):
    return in_type, [np.int32], []


def _double(self, is_train, req, in_data, out_data, aux):
    self.assign(out_data[0], req[0], mx.nd.array(in_data[0].asnumpy() * 2.0, dtype=in_data[0].dtype))


def _only_out_grad(self, out_grad, in_data, out_data):
    return list(out_grad)


_CALLS = {"count": 0, "x": None}


def _counts(self, is_train, req, in_data, out_data, aux):
    _CALLS["count"] += 1
    self.assign(out_data[0], req[0], in_data[0] * in_data[0] + 1e-3 * _CALLS["count"])


def _keeps_input(self, is_train, req, in_data, out_data, aux):
    _CALLS["x"] = in_data[0].copy()
    self.assign(out_data[0], req[0], in_data[0] * in_data[0])


def _reads_kept(self, req, out_grad, in_data, out_data, in_grad, aux):
    self.assign(in_grad[0], req[0], 2 * _CALLS["x"] * out_grad[0])


def _other_gradient(self, g, ins, outs):
    return 2 * ins[0].detach() * g if hasattr(ins[0], "detach") else 2 * mx.nd.BlockGrad(ins[0]) * g


def _rebinds(self, is_train, req, in_data, out_data, aux):
    out_data[0] = in_data[0] * in_data[0]


# -------------------------------------------------------------------------------------- one function


def defined(body: Callable, gradient: Callable | None = None, infer: Callable | None = None, **keywords: Any) -> Any:
    """An operator made of one function, not registered."""
    op = of_function("planted", body, keywords.pop("outputs", ("output",)), keywords.pop("auxiliary", ()),
                     keywords.pop("types", None), keywords.pop("loss", False), keywords.pop("traced", False))
    if gradient:
        op.grad(gradient)
    if infer:
        op.infer(infer)
    return op


def _square(x):
    return x * x


def _square_grad(g, ins, outs):
    return 2 * g * ins[0]


def _noisy(x):
    return x + mx.nd.array(np.random.default_rng().normal(size=x.shape), dtype=x.dtype)


def _numpy_noise(x):
    return x + mx.nd.array(np.random.normal(size=x.shape), dtype=x.dtype)  # noqa: NPY002


def _in_memory_order(x):
    return mx.nd.array(x.asnumpy().ravel(order="K").reshape(x.shape) ** 2, dtype=x.dtype)


def _tiny(x):
    return x * x / (x * x + 1e-9)


def _first_row(x):
    return x - float(x[0][0].asnumpy()[0])


_SETTING = {"scale": 2.0}


def _changing_scale(x):
    _SETTING["scale"] = 5.0 - _SETTING["scale"]
    return x * _SETTING["scale"]


def _rank(x):
    rows = [x.asnumpy()[i] for i in range(max(1, x.shape[0]))]
    return np.stack(rows)


def _traced_number(x):
    return x * (2.0 if "Traced" in type(x).__name__ or type(x).__module__.endswith("traced") else 3.0)


def _detached_grad(g, ins, outs):
    return 2 * g * mx.nd.BlockGrad(ins[0])


_INFERRED = [0]


def _changing_rule(x):
    _INFERRED[0] += 1
    return x if _INFERRED[0] % 2 else (x[0], x[1] + 1)


# --------------------------------------------------------------------------------------- Functions, Cells


class RightFunction(mx.autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, dy):
        (x,) = self.saved_tensors
        return 2 * x * dy


class WrongFunction(RightFunction):
    def backward(self, dy):
        (x,) = self.saved_tensors
        return x * dy


class KeepsOnClass(RightFunction):
    def forward(self, x):
        type(self).x = x
        return x * x

    def backward(self, dy):
        return 2 * type(self).x * dy


class ReturnsInput(RightFunction):
    def forward(self, x):
        return x

    def backward(self, dy):
        return dy


class ChangesInput(RightFunction):
    def forward(self, x):
        self.save_for_backward(x)
        y = x * x
        x[:] = 0
        return y


class TooMany(RightFunction):
    def backward(self, dy):
        return dy, dy


class RightCell(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (2 * x * dout,)


class WrongCell(RightCell):
    def bprop(self, x, out, dout):
        return (2 * x,)


class NegatedCell(RightCell):
    def bprop(self, x, out, dout):
        return (-2 * x * dout,)


class CountingCell(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = 0

    def construct(self, x):
        self.count += 1
        return x * self.count


class NoWeightGradient(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = mx.Parameter(Tensor(np.array([0.5, -0.3, 0.8])), name="w")

    def construct(self, x):
        return x * ops.stop_gradient(self.w) * self.w


class EagerOnly(nn.Cell):
    def construct(self, x):
        return x * (2.0 if hasattr(x, "_data") else 3.0)


@mx.jit
def drawn_once(x):
    return x + float(np.random.default_rng().normal())


@mx.jit
def compiled_otherwise(x):
    return x * (2.0 if hasattr(x, "_data") else 3.0)


def _absolute(x):
    return mx.nd.sqrt(x * x)


def _counts_always(x, n):
    n[:] = n + 1
    return x * 1


def _kept_by_shape(kept: dict[Any, Any]) -> Callable[..., Any]:
    def scaled(x, *, k: float = 2.0):
        return x * kept.setdefault(x.shape, k)

    return scaled


def _shared_scratch() -> Callable[..., Any]:
    scratch: dict[Any, Any] = {}

    def twice(x):
        place = scratch.setdefault(x.shape, np.zeros(x.shape, x.dtype))
        place[...] = x.asnumpy()
        return place * 2

    return twice


#: A mistake: the function that makes the operator, its inputs, the check that finds it, and words of its text and of
#: the change.
MISTAKES: dict[str, tuple[Callable[[], Any], tuple[Any, ...], str, str, str]] = {
    "half an output is written": (lambda: prop(forward=_half_written), (X,), "written", "never writes 'output' at (1",
                                  "self.assign(out_data[0]"),
    "an output is put into the "
    "list": (lambda: prop(forward=_rebinds), (X,), "runs", "replaced an array in the list", ""),
    "forward stores whatever is asked": (lambda: prop(forward=_stores), (X,), "requests", "with the request 'add'",
                                         "self.assign(out_data[0]"),
    "backward stores whatever is asked": (lambda: prop(backward=_stores_gradient), (X,), "requests",
                                          "the gradient of 'x': with the request 'add'", "self.assign(in_grad[0]"),
    "backward writes what nobody wants": (lambda: prop(backward=_adds_to_null), (X,), "requests",
                                          "with the request 'null'", "self.assign(in_grad[0]"),
    "a gradient is forgotten": (lambda: prop(Product, backward=_forgets_one), (X, Y), "written",
                                "never writes the gradient of 'y'", "self.assign(in_grad[1]"),
    "gradients are swapped": (lambda: prop(Product, backward=_swaps), (X, Y), "gradient", "the gradient of 'x'",
                              "in_grad[0]"),
    "the output gradient is left out": (lambda: prop(backward=_without_top), (X,), "gradient", "central",
                                        "multiply by the output gradient"),
    "an element of a gradient is wrong": (lambda: prop(backward=_one_element), (X,), "gradient", "is 0, central",
                                          "in_grad[0]"),
    "infer_shape changes its list": (lambda: prop(infer_shape=_changing_infer), (X,), "pure", "changes the list",
                                     "make a new list"),
    "list_outputs counts": (lambda: prop(list_outputs=_counting_names), (X,), "pure", "list_outputs returns",
                            "arguments alone"),
    "a result is repeated over its output": (lambda: prop(infer_shape=_flat), (X,), "inferred", "repeated to fill it",
                                             "infer_shape"),
    "a sum has another shape": (lambda: prop(forward=_row_sums, infer_shape=_keeps_a_column),
                                (X[:, :2],), "runs", "expected shape (2, 1), got (2,)", ""),
    "infer_type narrows": (lambda: prop(infer_type=_always_float32), (X,), "inferred", "assigned float64",
                           "in_type[0]"),
    "infer_type drops fractions": (lambda: prop(infer_type=_always_int), (X,), "inferred", "inferred to be int32",
                                   "let infer_type return float64"),
    "backward reads what it did not declare": (
        lambda: prop(declare_backward_dependency=_only_out_grad), (X,), "backward",
        "in_data[0] is not available in backward", "return in_data too"),
    "a loss reads the output gradient": (lambda: prop(top=False), (X,), "backward", "out_grad[0] is not available",
                                         "need_top_grad=True"),
    "forward counts its calls": (lambda: prop(forward=_counts), (X,), "deterministic", "stores something",
                                 "auxiliary state"),
    "forward keeps its input elsewhere": (lambda: prop(forward=_keeps_input, backward=_reads_kept), (X,), "interleaved",
                                          "once more before backward", "outside of the call"),
    "the second derivative is cut": (lambda: prop(gradient=_other_gradient), (X,), "second order",
                                     "the second derivative in 'x'", "BlockGrad"),
    "a factor is missing": (lambda: defined(_square, lambda g, ins, outs: g * ins[0]), (X,), "gradient",
                            "the gradient of 'x' at (", "multiply it by 2, all of it is 0.5 times"),
    "a generator of its own": (lambda: defined(_noisy, lambda g, ins, outs: g), (X,), "deterministic",
                               "even with the same seeds", "mx.nd.random"),
    "NumPy's generator": (lambda: defined(_numpy_noise, lambda g, ins, outs: g), (X,), "deterministic",
                          "NumPy's or Python's", "mx.nd.random"),
    "elements in the order of memory": (lambda: defined(_in_memory_order, _square_grad), (X,), "strided",
                                        "on transposed inputs", "ascontiguousarray"),
    "a constant that is zero in float16": (lambda: defined(_tiny, lambda g, ins, outs: g * 0), (np.floor(X),),
                                           "dtypes", "in float16", "range of float16"),
    "no rows are forgotten": (lambda: defined(_rank, lambda g, ins, outs: g, types="T->T"), (X,), "empty", "IndexError",
                              "without rows"),
    "a setting that changes": (lambda: defined(_changing_scale, lambda g, ins, outs: 2 * g), (X,), "deterministic",
                               "stores something", "auxiliary state"),
    "traced to something else": (lambda: defined(_traced_number, lambda g, ins, outs: 3 * g, traced=True), (X,),
                                 "traced", "traced", "mx.nd.where"),
    "numbers are taken out of a gradient": (lambda: defined(_square, _detached_grad), (X,), "second order",
                                            "second derivative", "operators"),
    "a shape rule that changes": (lambda: defined(_square, _square_grad, _changing_rule), (X,), "pure", "infer returns",
                                  "alone"),
    "an attribute that no text has": (
        lambda: mx.operator.define(lambda x, *, f=np.square: f(x.asnumpy()), name="_check_function"), (X,), "saved",
        "attribute f=", "annotate"),
    "a gradient that is none at zero": (lambda: defined(_absolute, lambda g, ins, outs: g * ins[0] / outs[0]),
                                        (np.array([0.0, 1.0, -2.0]),), "gradient",
                                        "the gradient of 'x' at (0,) is nan, where", "give it a number there"),
    "a state that moves in predict mode": (lambda: defined(_counts_always, lambda g, ins, outs: g, auxiliary=["n"]),
                                           (X, np.zeros(1)), "states", "changes the state 'n' outside of training",
                                           "if is_train:"),
    "an attribute is cached by shape": (lambda: defined(_kept_by_shape({}), lambda g, ins, outs, *, k: g * k), (X,),
                                        "attributes", "with k=3.25 its results are still those of k=2.0",
                                        "part of the key"),
    "a gradient leaves an attribute out": (lambda: defined(lambda x, *, k=2.0: x * k, lambda g, ins, outs: g * 2.0),
                                           (X,), "attributes", "with k=3.25 the gradient of 'x'", "read k"),
    "scratch is shared between threads": (lambda: defined(_shared_scratch(), lambda g, ins, outs: g * 2), (X,),
                                          "threads", "in two threads at once", "outside of the call"),
    "a Function with half a gradient": (lambda: WrongFunction, (X,), "gradient", "central",
                                        "multiply it by 2"),
    "a Function that keeps on its class": (lambda: KeepsOnClass, (X,), "interleaved", "once more", "outside"),
    "a Function that returns its input": (lambda: ReturnsInput, (X,), "own memory", "shares memory with the input 'x'",
                                          "copy"),
    "a Function that changes its input": (lambda: ChangesInput, (X,), "inputs", "changes the input 'x'", "copy"),
    "a Function with a gradient too many": (lambda: TooMany, (X,), "backward", "2", ""),
    "a bprop without dout": (WrongCell, (Tensor(X),), "gradient", "central", "dout"),
    "a bprop of the wrong sign": (NegatedCell, (Tensor(X),), "gradient", "central", "multiply it by -1"),
    "a Cell that counts": (CountingCell, (Tensor(X),), "deterministic", "stores something", "Parameter"),
    "a Cell that stops a weight's gradient": (NoWeightGradient, (Tensor(X),), "gradient", "of 'w'", ""),
    "a Cell that is another when compiled": (EagerOnly, (Tensor(X),), "compiled", "compiled output 0", "inputs alone"),
    "a compiled function that draws": (lambda: drawn_once, (Tensor(X),), "deterministic", "even with the same seeds",
                                       "mx.nd.random"),
    "a function that is another when compiled": (lambda: compiled_otherwise, (Tensor(X),), "compiled",
                                                 "compiled output 0", "inputs alone"),
}


@of_each(MISTAKES)
def test_mistakes_are_found(name: str) -> None:
    make, inputs, verdict, words, change = MISTAKES[name]
    found = mx.operator.check(make(), *inputs)
    assert not found.ok and not found
    assert found[verdict].outcome == "failed", found
    assert words in found[verdict].text, found
    assert change in found[verdict].change, found
    assert found[verdict].example


def test_there_are_at_least_thirty_mistakes() -> None:
    assert len(MISTAKES) >= 30


# ----------------------------------------------------------------------------------------------- no false alarms


class Softplus(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.log(1 + mx.nd.exp(in_data[0])))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] / (1 + mx.nd.exp(-in_data[0])))


class CrossEntropy(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], mx.nd.softmax(in_data[0]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        hot = mx.nd.one_hot(in_data[1], depth=out_data[0].shape[1])
        self.assign(in_grad[0], req[0], out_data[0] - hot)


@mx.operator.register("_check_cross_entropy")
class CrossEntropyProp(mx.operator.CustomOpProp):
    def __init__(self, scale: float = 1.0):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return CrossEntropy()


def _sorting():
    def slope(g, ins, outs):
        back = np.argsort(np.argsort(ins[0].asnumpy(), axis=-1), axis=-1)
        return mx.nd.array(np.take_along_axis(g.asnumpy(), back, -1), dtype=g.dtype)

    return defined(lambda x: np.sort(x.asnumpy(), axis=-1), slope)


def _locked_scratch() -> Callable[..., Any]:
    scratch, lock = np.empty((2, 3)), threading.Lock()

    def twice(x):
        with lock:
            place = scratch if x.shape == scratch.shape else np.empty(x.shape)
            place[...] = x.asnumpy()
            return (place * 2).astype(x.dtype)

    return twice


def _different():
    op = defined(lambda x: np.unique(x.asnumpy()), lambda g, ins, outs: ins[0] * 0)
    op.infer_from_data(lambda x: (len(np.unique(x.asnumpy())),))
    return op


def _scaled(x, i):
    return x * i.astype(x.dtype)


def _sum(*xs):
    return sum(xs[1:], xs[0])


def _summed(x, *, axis: int = 0):
    return x.sum(axis=axis)


def _two(x, y, *, by: float = 2.0):
    return x * y * by, x + y


def _two_grad(g, ins, outs, *, by):
    return g[0] * ins[1] * by + g[1], g[0] * ins[0] * by + g[1]


@mx.operator.define(name="_check_swish", traced=True)
def swish(x, *, beta: float = 1.0):
    return x * mx.nd.sigmoid(x * beta)


@mx.operator.define(name="_check_centre", auxiliary=["mean"])
def centre(x, mean, *, momentum: float = 0.9, is_train):
    y = x - mean
    if is_train:
        mean[:] = momentum * mean + (1 - momentum) * x.mean(axis=0)
    return y


centre.fill(lambda ins, outs: [ins[0], ins[0][1:]])
centre.grad(lambda g, ins, outs: g)


@mx.operator.define(name="_check_halved")
def halved(x, *, is_train):
    return x * 0.5 if is_train else x


@halved.grad
def _halved_grad(g, ins, outs, *, is_train):
    return g * 0.5 if is_train else g


@mx.operator.define(name="_check_drop", outputs=["y", "mask"], auxiliary=["runs"])
def drop(x, runs, *, p: float = 0.5, is_train):
    if not is_train:
        return x, mx.nd.ones_like(x)
    runs[:] = runs + 1
    mask = (mx.nd.random.uniform(shape=x.shape, dtype=x.dtype) > p) / (1 - p)
    return x * mask, mask


drop.fill(lambda ins, outs: [ins[0], (1,)])
drop.grad(lambda g, ins, outs: g[0] * outs[1])


class Noise(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] + mx.nd.random.normal(shape=in_data[0].shape,
                                                                          dtype=in_data[0].dtype))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.LayerNorm((4,)), nn.Dense(4, 2))

    def construct(self, x):
        return self.net(x)


@mx.jit
def gated(x, y):
    return ops.sigmoid(x) * y, x.sum()


#: Right operators.
RIGHT: dict[str, tuple[Callable[[], Any], tuple[Any, ...], dict[str, Any]]] = {
    "a Prop": (prop, (X,), {}),
    "a Prop of two inputs": (lambda: prop(Product), (X, Y), {}),
    "a Prop in float32": (lambda: prop(Softplus), (X.astype(np.float32),), {}),
    "a traced Prop": (lambda: prop(Softplus, traced_body=True), (X,), {}),
    "a loss by its class": (lambda: CrossEntropyProp, (X.astype("float32"), [0, 2]), {}),
    "a loss by its name": (lambda: "_check_cross_entropy", (X.astype("float32"),), {"scale": 2.0}),
    "scratch behind a lock": (lambda: defined(_locked_scratch(), lambda g, ins, outs: g * 2), (X,), {}),
    "a result that float32 holds as its input": (_sorting, (np.float32([[0.5, 0.51], [0.2, 0.201]]),), {}),
    "a shape that depends on values that are equal": (_different, (np.float32([2, 1, 2]),), {}),
    "floats and integers without types": (
        lambda: defined(lambda x, i: x * i.astype(x.dtype), traced=True), (np.float32(X), np.int64([[1, 2, 3]] * 2)),
        {}),
    "a Prop that draws": (lambda: prop(Noise), (X,), {}),
    "a function of two": (lambda: defined(_two, _two_grad, outputs=("a", "b")), (X, Y), {"by": 3.0}),
    "a traced function": (lambda: swish, (X,), {"beta": 1.5}),
    "a function with a state": (lambda: centre, (X,), {}),
    "a function that minds its mode": (lambda: halved, (X,), {}),
    "a function with a mode, a state and random numbers": (lambda: drop, (X,), {"p": 0.25}),
    "a Prop with a state that follows its input": (lambda: RunningScaleProp, (X,), {}),
    "a Prop of the examples": (lambda: SoftmaxProp, (X.astype(np.float32), [0, 2]), {}),
    "a function without gradient": (lambda: defined(_square), (X,), {}),
    "a function in NumPy": (lambda: defined(lambda x: np.tanh(x.asnumpy()),
                                            lambda g, ins, outs: g.asnumpy() * (1 - outs[0].asnumpy() ** 2)), (X,), {}),
    "numbers in bfloat16": (lambda: defined(_square, _square_grad), (mx.nd.array(X).astype("bfloat16"),), {}),
    "what is no number": (lambda: defined(_square, _square_grad), (np.array([np.nan, np.inf, 1.0]),), {}),
    "no numbers at all": (lambda: defined(_square, _square_grad), (np.zeros((0, 3)),), {}),
    "any number of inputs": (lambda: defined(_sum, lambda g, ins, outs: [g] * len(ins)), (X, Y, X), {}),
    "a function of integers": (lambda: defined(_scaled, lambda g, ins, outs: (g * ins[1].astype(ins[0].dtype), None),
                                               types="T,int32->T"),
                               (X, np.arange(6, dtype=np.int32).reshape(2, 3)), {}),
    "a function with corners": (lambda: mx.nd.relu, (np.round(X),), {}),
    "an infinite slope": (lambda: defined(lambda x: mx.nd.sqrt(x), lambda g, ins, outs: g / (2 * outs[0])),
                          (np.array([0.0, 1.0]),), {}),
    "an attribute that changes shapes": (lambda: defined(_summed,
                                                         lambda g, ins, outs, *, axis: mx.nd.broadcast_to(
                                                             mx.nd.expand_dims(g, axis), ins[0].shape)), (X,), {}),
    "numbers and a list": (lambda: defined(lambda x, y: x * y, lambda g, ins, outs: (g * ins[1], g * ins[0])),
                           (X[0], [1.0, 2.0, 3.0]), {}),
    "a linear function": (lambda: defined(lambda x: 2 * x, lambda g, ins, outs: 2 * g), (X,), {}),
    "one number": (lambda: swish, (np.array([0.5]),), {}),
    "a Function": (lambda: RightFunction, (X,), {}),
    "an instance of a Function": (RightFunction, (X.astype(np.float32),), {}),
    "a Cell with bprop": (RightCell, (Tensor(X),), {}),
    "a network": (Network, (Tensor(X.astype(np.float32)),), {}),
    "a layer that drops": (lambda: nn.Dropout(p=0.5).set_train(), (Tensor(X),), {}),
    "a layer that normalizes": (lambda: nn.BatchNorm1d(3).set_train(), (Tensor(X.astype(np.float32)),), {}),
    "a compiled function": (lambda: gated, (Tensor(X), Tensor(Y)), {}),
    "a compiled Cell": (lambda: mx.jit(RightCell()), (Tensor(X),), {}),
    "a function of tensors": (lambda: ops.tanh, (Tensor(X),), {}),
    "a built-in operator by name": (lambda: "FullyConnected", (X,), {"num_hidden": 4}),
    "a built-in operator by function": (lambda: mx.nd.softmax, (X,), {"axis": 1}),
    "a built-in operator of symbols": (lambda: mx.sym.broadcast_mul, (X, Y[:1]), {}),
    "a built-in operator with states": (lambda: "BatchNorm", (X,), {}),
}


#: Operators with a mode, states or random numbers, which a Cell around them declares.
DECLARED = ["a function with a state", "a function that minds its mode", "a Prop that draws",
            "a function with a mode, a state and random numbers", "a layer that drops",
            "a Prop with a state that follows its input"]


@of_each(RIGHT)
def test_correct_operators_pass(name: str) -> None:
    make, inputs, attrs = RIGHT[name]
    found = mx.operator.check(make(), *inputs, **attrs)
    found.raise_if_failed()
    if name in DECLARED:
        asked = [found[each] for each in ("compiled", "in a Cell", *([] if "layer" in name else ["graph"]))]
        assert [each.outcome for each in asked] == ["ok"] * len(asked)


def test_a_mode_that_a_cell_does_not_tell_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Cell that does not pass on its mode is reported; the check once blamed all right operators that read their
    mode."""
    monkeypatch.setattr(nn.Cell, "_has_mode", False)
    found = mx.operator.check(halved, X)
    assert [each.name for each in found.failed] == ["in a Cell"]
    assert "in a Cell in training output 0 differs" in found["in a Cell"].text


#: A few of the rows with differences for all inputs. Third derivatives of products are not finite at zeros.
SAMPLE = [row for row in [row for row in all_rows() if row.grad and row.deterministic and "_subscript" not in row.op
                          and row.op != "_prod_of_others"][::24] if Use.of(row).wanted == list(row.grad)]


@pytest.mark.parametrize("row", SAMPLE, ids=str)
def test_built_in_operators_pass(row: Row) -> None:
    mx.operator.check(get(row.op), *row.inputs, **row.attrs).raise_if_failed()


# ------------------------------------------------------------------------------------------------- devices


def _by_device(x):
    return x * (2.0 if x.context.device_type == "cpu" else 3.0)


def test_a_device_is_compared_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variations, "num_gpus", lambda: 1)
    monkeypatch.setattr(variations, "gpu", lambda number: Context("strict", number))
    assert mx.operator.check(prop(), X)["devices"].outcome == "ok"
    assert mx.operator.check(RightCell(), Tensor(X))["devices"].outcome == "ok"
    found = mx.operator.check(defined(_by_device, lambda g, ins, outs: g * 2), X)
    assert [each.name for each in found.failed] == ["devices"]
    assert "on the GPU output 0 differs" in found["devices"].text


# ----------------------------------------------------------------------------------------------------- messages


def test_the_smallest_failing_inputs_are_shown() -> None:
    data = np.random.default_rng(0).normal(size=(8, 5))
    found = mx.operator.check(prop(backward=_without_top), data)["gradient"]
    assert found.example.startswith("x = [[") and found.example.count(",") == 0


def test_a_report_is_a_truth_value_a_text_and_html() -> None:
    good, bad = mx.operator.check(swish, X), mx.operator.check(WrongCell(), Tensor(X))
    assert good and good.ok and not good.failed and good.raise_if_failed() is good
    assert "failed   gradient" in str(bad) and "change: " in str(bad) and repr(bad) == str(bad)
    assert "<td" in bad._repr_html_() and "&#x27;x&#x27;" in bad._repr_html_()
    assert "gradient" in [verdict.name for verdict in bad.failed]
    assert bad.without(*[verdict.name for verdict in bad.failed]).ok
    with pytest.raises(AssertionError, match="failed   gradient"):
        bad.raise_if_failed()
    with pytest.raises(KeyError, match="there is no check 'gradeint', but runs, "):
        bad["gradeint"]


def test_sporadic_failures_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for smaller inputs repeats the check, whose last answer may differ."""
    asked: list[Any] = []

    def ask(use: Any) -> None:
        asked.append(use)
        if len(asked) < 3:
            raise Failed(f"wrong at {use.arrays[0].shape}", "")

    monkeypatch.setattr(checking, "CHECKS", [Check("runs", "", ask, ()), *checking.CHECKS[1:]])
    found = mx.operator.check(defined(_square, _square_grad), X)["runs"]
    assert (found.outcome, found.text) == ("failed", f"wrong at {asked[1].arrays[0].shape}") and asked[2:]


def test_a_cause_is_reported_once() -> None:
    """An unwritten output has random content in every kind of run, but only one verdict reports it."""
    found = mx.operator.check(prop(forward=_half_written), X)
    assert [each.name for each in found.failed] == ["written"]
    assert "not asked after 'written' failed: deterministic" in str(found)
    found = mx.operator.check(defined(_traced_number, lambda g, ins, outs: 3 * g, traced=True), X)
    assert [each.name for each in found.failed] == ["graph", "traced"]  # and does not mention other causes
    same = Report("f", [Verdict("graph", "", "failed", "KeyError: 3"), Verdict("runs", "", "ok"),
                        Verdict("saved", "", "failed", "KeyError: 3")])
    assert str(same).count("KeyError") == 1 and "failed   graph, saved" in str(same)
    assert "graph, saved" in same._repr_html_()


def test_outside_values_that_a_traced_body_reads_are_noted() -> None:
    factor = np.float64(3.0)

    def scaled(x):
        return x * factor * GLOBAL_FACTOR + len(NAMES)

    found = mx.operator.check(defined(scaled, traced=True), X)["traced"]
    assert (found.outcome, found.text) == (
        "ok", "it reads GLOBAL_FACTOR, NAMES, factor from outside: graphs use their values at the time of tracing")
    assert mx.operator.check(swish, X)["traced"].text == ""


GLOBAL_FACTOR = 2.0
NAMES = ["a"]


def test_second_order_of_linear_operators_and_of_operators_with_states() -> None:
    found = mx.operator.check(defined(lambda x: 2 * x, lambda g, ins, outs: 2 * g), X)["second order"]
    assert (found.outcome, found.text) == ("ok", "it is zero: the function is linear here")
    found = mx.operator.check(centre, X)["second order"]
    assert found.outcome == "ok"
    moving = defined(_centred_square, lambda g, ins, outs: 2 * g * (ins[0] - ins[1]), auxiliary=["mean"])
    found = mx.operator.check(moving, X, np.zeros(3))
    assert found["gradient"].outcome == found["second order"].outcome == "ok", found
    assert "outside of training" in found["second order"].text


def _centred_square(x, mean, *, is_train):
    if is_train:
        mean[:] = 0.5 * mean + 0.5 * x.mean(axis=0)
    return (x - mean) * (x - mean)


def test_gradients_of_integers_are_not_checked() -> None:
    op = defined(_square, _square_grad)
    with pytest.warns(UserWarning, match="the inputs are int64, so no gradient was looked at: give floating numbers"):
        found = mx.operator.check(op, np.array([1, 2]))
    assert found["gradient"].text == "no gradient was looked at: the inputs are int64, give floating numbers"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.operator.check(defined(_square), np.array([1, 2]))  # it has none
        mx.operator.check(op, X)


def test_a_list_has_the_dtype_that_goes_with_the_others() -> None:
    seen: list[Any] = []

    def looking(x, y, ids):
        seen.append((np.dtype(x.dtype).name, np.dtype(y.dtype).name, np.dtype(ids.dtype).name))
        return x * y

    op = defined(looking, lambda g, ins, outs: (g * ins[1], g * ins[0], None), types="T,T,int32->T")
    mx.operator.check(op, X[0], [1.0, 2.0, 3.0], [0, 1, 2])
    assert seen[0] == ("float64", "float64", "int32")
    seen.clear()
    mx.operator.check(op, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0, 1, 2])
    assert seen[0] == ("float32", "float32", "int32")


def test_skipped_questions_say_why() -> None:
    found = mx.operator.check(swish, X)
    assert all(verdict.text for verdict in found if verdict.outcome == "skipped")
    assert all(verdict.asks.endswith(".") for verdict in found)


@pytest.mark.parametrize("what, inputs, words", [
    (3, (), "expected an operator"),
    (RightCell, (X,), "make a Cell of it"),
    (RightCell(), (), "has no input"),
    ("FullyConnectde", (X,), "FullyConnected"),
    (swish, (X, X), "takes 1 inputs"),
    ("dot", (X,), "rhs"),
])
def test_operators_that_cannot_be_checked_are_refused(what: Any, inputs: tuple[Any, ...], words: str) -> None:
    with pytest.raises((ArgumentError, LookupError), match=words):
        mx.operator.check(what, *inputs)


def test_a_check_leaves_no_state_behind() -> None:
    mx.random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    cell, x = Network(), Tensor(X.astype(np.float32))
    weights = {each.name: each.asnumpy() for each in cell.get_parameters()}
    names = mx.operator.get_all_registered_operators()
    before = generators.state("cpu"), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    for what, inputs in ((cell, (x,)), (prop(Noise), (X,)), (defined(_numpy_noise), (X,)), (swish, (X,)),
                         (prop(Product, backward=_forgets_one), (X, Y))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mx.operator.check(what, *inputs)
    after = generators.state("cpu"), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    assert str(after) == str(before)
    assert mx.operator.get_all_registered_operators() == names
    assert not mx.autograd.is_recording() and not mx.autograd.is_training()
    for each in cell.get_parameters():
        np.testing.assert_array_equal(each.asnumpy(), weights[each.name])
        assert each.asnumpy().dtype == np.float32
    np.testing.assert_array_equal(x.asnumpy(), X.astype(np.float32))


def test_weights_of_a_cell_that_a_function_calls_stay() -> None:
    norm = nn.BatchNorm1d(3).set_train()
    mean = norm.moving_mean.asnumpy()
    mx.operator.check(lambda x: norm(x) * 2, Tensor(X.astype(np.float32)))
    np.testing.assert_array_equal(norm.moving_mean.asnumpy(), mean)


def test_a_check_does_not_suppress_later_warnings() -> None:
    op = prop(Product, backward=_forgets_one)
    mx.operator.check(op, X, Y)
    x, y = mx.nd.array(X), mx.nd.array(Y)
    y.attach_grad()
    with mx.autograd.record():
        z = op(x, y)
    with pytest.warns(UserWarning, match="'y'"):
        z.backward()


def test_importing_the_library_does_not_load_the_checks() -> None:
    program = "import sys, opreg; opreg.operator.CustomOp, opreg.nd.ones; assert 'opreg.testing' not in sys.modules"
    done = processes.run(program)
    assert done.returncode == 0, done.stderr


def test_tensors_passed_by_keyword_are_inputs() -> None:
    class Scaled(nn.Cell):
        def construct(self, x, *, scale):
            return x * ops.stop_gradient(scale) + scale

    report = mx.operator.check(Scaled(), mx.Tensor([1.0, 2.0]), scale=mx.Tensor([3.0, 4.0]))
    assert [verdict.name for verdict in report.failed] == ["gradient"] and "scale" in report["gradient"].text


@pytest.mark.parametrize("value", [[np.ones((2, 3)), np.ones(3)], [[1.0, 2.0], [3.0]], "abc", {"x": 1}, object()])
def test_an_input_that_is_no_array_is_refused_with_the_form_of_a_call(value):
    with pytest.raises(OpError) as caught:
        mx.operator.check("sin", value)
    assert "each input as an argument of its own: check(op, x, w)" in "".join(caught.value.__notes__)
