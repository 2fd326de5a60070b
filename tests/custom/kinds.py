"""One function, ``by * x * tanh(y)``, written as an operator of each kind that users have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import opreg as mx

__all__ = ["IN_GRAPHS", "EVERYWHERE", "TWICE", "expected", "gradients", "operator_of"]

define = mx.operator.define

#: Kinds for graphs, kinds that compute on arrays alone, and kinds that are differentiated twice. They are made on
#: demand: tests hide objects from the garbage collector (``gc.freeze``), and a trace does not find those.
IN_GRAPHS: dict[str, Callable[[], Any]] = {}
EVERYWHERE: dict[str, Callable[[], Any]] = {}
TWICE: set[str] = set()


@functools.cache
def operator_of(kind: str) -> Callable[..., Any]:
    """The operator of a kind."""
    return EVERYWHERE[kind]()


def expected(x: np.ndarray, y: np.ndarray, by: float) -> np.ndarray:
    """The function by NumPy."""
    return by * x * np.tanh(y)


def gradients(g: np.ndarray, x: np.ndarray, y: np.ndarray, by: float) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of the function, by NumPy."""
    return g * by * np.tanh(y), g * by * x * (1 - np.tanh(y) ** 2)


def _forward(x: Any, y: Any, by: float) -> Any:
    return by * x * mx.nd.tanh(y)


def _backward(g: Any, x: Any, y: Any, by: float) -> Any:
    t = mx.nd.tanh(y)
    return g * by * t, g * by * x * (1 - t * t)


# ---------------------------------------------------------------------------------------------------- Props


class InArrays(mx.operator.CustomOp):
    def __init__(self, by: float) -> None:
        self.by = by

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], _forward(*in_data, self.by))

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        for dst, request, value in zip(in_grad, req, _backward(*out_grad, *in_data, self.by)):
            self.assign(dst, request, value)


class InNumPy(InArrays):
    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        x, y = [each.asnumpy() for each in in_data]
        self.kept = x, y
        self.assign(out_data[0], req[0], expected(x, y, self.by).astype(x.dtype))

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        g = out_grad[0].asnumpy()
        for dst, request, value in zip(in_grad, req, gradients(g, *self.kept, self.by)):
            self.assign(dst, request, value.astype(g.dtype))


def _prop(name: str, run: Any, **members: Any) -> Any:
    class Prop(mx.operator.CustomOpProp):
        def __init__(self, by: float = 2.0) -> None:
            super().__init__()
            self.by = by

        def list_arguments(self) -> Any:
            return ["x", "y"]

        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
            return run(self.by)

    for member, value in members.items():
        setattr(Prop, member, value)
    mx.operator.register(f"kinds_{name}")(Prop)
    return mx.operator.get(f"custom.kinds_{name}")


def _rule(self: Any, g: Any, ins: Any, outs: Any) -> Any:
    return _backward(g, *ins, self.by)


IN_GRAPHS["prop"] = lambda: _prop("prop", InArrays)
IN_GRAPHS["prop in NumPy"] = lambda: _prop("prop_numpy", InNumPy)
IN_GRAPHS["prop traced"] = lambda: _prop("prop_traced", InArrays, traced=True)
IN_GRAPHS["prop with a rule"] = lambda: _prop("prop_rule", InNumPy, gradient=_rule)
TWICE |= {"prop traced", "prop with a rule"}


# ------------------------------------------------------------------------------------------------ functions


def _function(name: str, body: Callable[[Any, Any, float], Any], rule: Any, **options: Any) -> Any:
    @define(name=f"kinds_{name}", **options)
    def function(x: Any, y: Any, *, by: float = 2.0) -> Any:
        return body(x, y, by)

    if rule is not None:
        @function.grad
        def function_grad(g: Any, ins: Any, outs: Any, *, by: float) -> Any:
            return rule(g, *ins, by)

    return function


def _numpy_forward(x: Any, y: Any, by: float) -> Any:
    return expected(x.asnumpy(), y.asnumpy(), by).astype(x.dtype)


def _numpy_backward(g: Any, x: Any, y: Any, by: float) -> Any:
    return [each.astype(g.dtype) for each in gradients(g.asnumpy(), x.asnumpy(), y.asnumpy(), by)]


def _with_a_kernel() -> Any:
    op = _function("function_kernel", _forward, _backward)

    @op.kernel("at once")
    def at_once(xp: Any, x: Any, y: Any, *, by: float) -> Any:
        return (by * x * xp.tanh(y)).astype(x.dtype)

    return op


IN_GRAPHS["function"] = lambda: _function("function", _forward, _backward)
IN_GRAPHS["function in NumPy"] = lambda: _function("function_numpy", _numpy_forward, _numpy_backward)
IN_GRAPHS["function traced"] = lambda: _function("function_traced", _forward, None, traced=True)
IN_GRAPHS["function traced in NumPy"] = lambda: _function(
    "function_traced_numpy", lambda x, y, by: by * x.asnumpy() * np.tanh(y.asnumpy()), None, traced=True)
IN_GRAPHS["function traced with a rule"] = lambda: _function("function_rule", _forward, _backward, traced=True)
IN_GRAPHS["function with a kernel"] = _with_a_kernel
TWICE |= {kind for kind in IN_GRAPHS if kind.startswith("function")} - {"function in NumPy"}


# --------------------------------------------------------------------------------------- before ``CustomOp``


class _Old:
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def list_arguments(self) -> Any:
        return ["x", "y"]

    def infer_shape(self, in_shape: Any) -> Any:
        return in_shape, [in_shape[0]]


class OldInNumPy(_Old, mx.operator.NumpyOp):
    def forward(self, in_data: Any, out_data: Any) -> None:
        out_data[0][...] = expected(*in_data, self.by)

    def backward(self, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any) -> None:
        in_grad[0][...], in_grad[1][...] = gradients(*out_grad, *in_data, self.by)


class OldInArrays(_Old, mx.operator.NDArrayOp):
    def forward(self, in_data: Any, out_data: Any) -> None:
        out_data[0][:] = _forward(*in_data, self.by)

    def backward(self, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any) -> None:
        in_grad[0][:], in_grad[1][:] = _backward(*out_grad, *in_data, self.by)


IN_GRAPHS["NumpyOp"] = lambda: lambda *values, by=2.0, **keywords: OldInNumPy(by)(*values, **keywords)
IN_GRAPHS["NDArrayOp"] = lambda: lambda *values, by=2.0, **keywords: OldInArrays(by)(*values, **keywords)


# ------------------------------------------------------------------------------------- without a place in files


class Function(mx.autograd.Function):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Any, y: Any) -> Any:
        self.save_for_backward(x, y)
        return _forward(x, y, self.by)

    def backward(self, g: Any) -> Any:
        return _backward(g, *self.saved_tensors, self.by)


class WithBprop(mx.nn.Cell):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def construct(self, x: Any, y: Any) -> Any:
        return self.by * x * mx.ops.tanh(y)

    def bprop(self, x: Any, y: Any, out: Any, dout: Any) -> Any:
        t = mx.ops.tanh(y)
        return dout * self.by * t, dout * self.by * x * (1 - t * t)


def _by_ops_custom(x: Any, y: Any, by: float = 2.0) -> Any:
    def forward(x: Any, y: Any) -> Any:
        return expected(x, y, by).astype(x.dtype)

    def backward(x: Any, y: Any, out: Any, dout: Any) -> Any:
        t = mx.ops.tanh(y)
        return dout * by * t, dout * by * x * (1 - t * t)

    return mx.ops.Custom(forward, lambda x, y: x, lambda x, y: x, "pyfunc", bprop=backward)(x, y)


EVERYWHERE.update(IN_GRAPHS)
EVERYWHERE["autograd.Function"] = lambda: lambda x, y, by=2.0: Function(by)(x, y)
EVERYWHERE["Cell with bprop"] = lambda: lambda x, y, by=2.0: WithBprop(by)(x, y)
EVERYWHERE["ops.Custom"] = lambda: _by_ops_custom
TWICE |= {"Cell with bprop", "ops.Custom"}
