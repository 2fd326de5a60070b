"""Faster kernels that users attach to their operators."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx


def _swish(name, traced=True):
    op = mx.operator.define(lambda x: x * mx.nd.sigmoid(x), name=name, traced=traced)
    if not traced:
        op.grad(lambda g, ins, outs: g * (mx.nd.sigmoid(ins[0]) + outs[0] * (1 - mx.nd.sigmoid(ins[0]))))
    return op


def _swish_of_a_prop(name):
    class Swish(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] * mx.nd.sigmoid(in_data[0]))

    @mx.operator.register(name)
    class SwishProp(mx.operator.CustomOpProp):
        traced = True

        def create_operator(self, ctx, shapes, dtypes):
            return Swish()

    return mx.operator.get(f"custom.{name}")


WITH_KERNELS = {"traced": _swish, "as Python": lambda name: _swish(name, traced=False), "a Prop": _swish_of_a_prop}


@pytest.mark.parametrize("kind", WITH_KERNELS)
def test_a_kernel_computes_in_the_place_of_the_code(kind):
    """The kernel computes eagerly, in graphs and in compiled functions; the gradient is still that of the code."""
    op = WITH_KERNELS[kind](f"_example_with_kernel_{kind.replace(' ', '_')}")
    x, calls = mx.nd.array([0.5, -1.0, 2.0], dtype="float64"), []
    x.attach_grad()
    with mx.autograd.record():
        expected = op(x)
    expected.backward()
    slope = x.grad.asnumpy()

    @op.kernel("by hand")
    def by_hand(xp, x):
        calls.append(type(x))
        return x / (1 + xp.exp(-x))

    with mx.autograd.record():
        result = op(x)
    result.backward()
    assert calls == [np.ndarray]
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-15)
    np.testing.assert_allclose(x.grad.asnumpy(), slope, rtol=1e-14)
    executor = op(mx.sym.Variable("x"), name="y").bind(mx.cpu(), {"x": x}, {"x": mx.nd.zeros(3, dtype="float64")})
    out = executor.forward(is_train=True)[0]
    executor.backward(mx.nd.ones(3, dtype="float64"))
    assert "y: by hand" in str(executor.explain(True)) and len(calls) > 1
    np.testing.assert_allclose(out.asnumpy(), expected.asnumpy(), rtol=1e-15)
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), slope, rtol=1e-14)
    before = len(calls)
    compiled = mx.jit(lambda z: op(z))(mx.Tensor(x.asnumpy()))
    np.testing.assert_allclose(compiled.asnumpy(), expected.asnumpy(), rtol=1e-15)
    assert len(calls) > before


@pytest.mark.parametrize("kind", WITH_KERNELS)
def test_a_wrong_kernel_is_found_by_the_code_beside_it(kind):
    op = WITH_KERNELS[kind](f"_example_wrong_kernel_{kind.replace(' ', '_')}")
    op.kernel("in a hurry")(lambda xp, x: x * 1)
    x = mx.nd.array([0.5, -1.0, 2.0])
    executor = op(mx.sym.Variable("x"), name="y").bind(mx.cpu(), {"x": x}, check_kernels=True)
    with pytest.raises(mx.errors.OpError, match=r"kernel in a hurry of custom.\w+ y computes -1.0 at \(1,\), the ref"):
        executor.forward()


@pytest.mark.parametrize("settings, runs", [({"serves": lambda xp: xp is not np}, "_fused"),
                                            ({"accepts": lambda call: "it is a Monday"}, "declined: it is a Monday")])
def test_the_code_computes_where_a_kernel_does_not(settings, runs):
    """The body is fused if no kernel serves the device; a kernel that declines tells the reason."""
    op = _swish(f"_example_declined_{len(runs)}")
    op.kernel("never", **settings)(lambda xp, x: 1 / 0)
    x = mx.nd.array([0.5, -1.0, 2.0])
    executor = op(mx.sym.Variable("x")).bind(mx.cpu(), {"x": x})
    assert runs in str(executor.explain())
    for each in (op(x), executor.forward()[0]):
        np.testing.assert_allclose(each.asnumpy(), x.asnumpy() / (1 + np.exp(-x.asnumpy())), rtol=1e-6)
