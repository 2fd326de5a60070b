"""Output gradients that are bound with an executor, and read from their owner's arrays."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DeviceError, DTypeError, ShapeError

SHAPE = (6, 4)


def net() -> mx.sym.Symbol:
    x = mx.sym.Variable("x")
    return mx.sym.broadcast_mul(mx.sym.tanh(x), x, name="y")


def bound(head_grads, symbol=None, **keywords) -> mx.executor.Executor:
    executor = (net() if symbol is None else symbol).simple_bind(mx.cpu(), x=SHAPE, head_grads=head_grads, **keywords)
    executor.arg_dict["x"][:] = np.random.default_rng(0).uniform(-1, 1, SHAPE)
    return executor


def head(seed: int = 1, dtype: str = "float32", shape=SHAPE) -> mx.nd.NDArray:
    return mx.nd.array(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def stepped(executor: mx.executor.Executor, *out_grads) -> np.ndarray:
    executor.forward(is_train=True)
    executor.backward(*out_grads)
    return executor.grad_arrays[0].asnumpy()


def expected(executor: mx.executor.Executor, gradient: mx.nd.NDArray) -> np.ndarray:
    x = executor.arg_dict["x"].asnumpy()
    return gradient.asnumpy() * (np.tanh(x) + x * (1 - np.tanh(x) ** 2))


@pytest.mark.parametrize("form", [lambda g: g, lambda g: [g], lambda g: (g,), lambda g: {"y_output": g},
                                  lambda g: g.asnumpy(), lambda g: [g.asnumpy()]],
                         ids=["array", "list", "tuple", "dict", "numpy", "list of numpy"])
def test_backward_without_arguments_uses_bound_head_gradients(form):
    gradient = head()
    executor = bound(form(gradient))
    for _ in range(2):
        np.testing.assert_allclose(stepped(executor), expected(executor, gradient), rtol=1e-4, atol=1e-5)


def test_bind_takes_head_gradients():
    gradient, x, dx = head(), head(2), mx.nd.zeros(SHAPE)
    executor = net().bind(mx.cpu(), {"x": x}, args_grad={"x": dx}, head_grads={"y_output": gradient})
    np.testing.assert_allclose(stepped(executor), expected(executor, gradient), rtol=1e-4, atol=1e-5)
    names = list(inspect.signature(mx.sym.Symbol.bind).parameters)
    assert names[:8] == ["self", "ctx", "args", "args_grad", "grad_req", "aux_states", "group2ctx", "shared_exec"]


def test_gradients_of_arguments_go_into_arrays_that_stay():
    with pytest.raises(ArgumentError, match="args_grad: x must be an NDArray, got ndarray"):
        net().bind(mx.cpu(), [mx.nd.ones(SHAPE)], [np.zeros(SHAPE, "float32")])


def test_a_bound_head_gradient_is_read_in_place():
    gradient = head()
    executor = bound(gradient)
    assert executor.head_grads == [gradient]
    before = stepped(executor)
    gradient *= 2
    np.testing.assert_array_equal(stepped(executor), before * 2)
    executor.backward()  # runs forward by itself
    np.testing.assert_array_equal(executor.grad_arrays[0].asnumpy(), before * 2)
    plan = executor.plan(True)
    assert any(array is gradient._data for array in plan.arrays.values())


def test_head_gradients_passed_to_backward_are_copied_into_the_bound_array():
    gradient, other = head(1), head(2)
    for form in (other, [other], {"y_output": other}, other.astype("float64"), other.asnumpy()):
        executor, plan = bound(gradient), None
        for _ in range(2):
            np.testing.assert_allclose(stepped(executor, form), expected(executor, other), rtol=1e-4, atol=1e-5)
            assert plan in (None, executor.plan(True))
            plan = executor.plan(True)
        np.testing.assert_array_equal(gradient.asnumpy(), other.asnumpy())
        np.testing.assert_allclose(stepped(executor), expected(executor, other), rtol=1e-4, atol=1e-5)
        gradient[:] = head(1)


def test_a_mistake_in_backward_changes_nothing():
    gradient = head()
    executor, before = bound(gradient), gradient.asnumpy()
    with pytest.raises(ShapeError, match=r"the gradient of 'y_output' has shape \(3,\), expected \(6, 4\)"):
        stepped(executor, mx.nd.ones(3))
    np.testing.assert_array_equal(gradient.asnumpy(), before)
    np.testing.assert_allclose(stepped(executor), expected(executor, gradient), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("out_grads", "words"), [
    (1.0, "expected an NDArray, a list, or a dict by output name, got float"),
    ([1.0], "the gradient of 'y_output' must be an NDArray, got float"),
], ids=["number", "list of numbers"])
def test_backward_refuses_values_that_are_no_arrays(out_grads, words):
    with pytest.raises(ArgumentError, match=words):
        stepped(bound(None), out_grads)


def two() -> mx.sym.Symbol:
    x = mx.sym.Variable("x")
    return mx.sym.Group([mx.sym.identity(x * 2, name="a"), mx.sym.identity(x * 3, name="b")])


@pytest.mark.parametrize("head_grads", [lambda g: {"b_output": g}, lambda g: [None, g]], ids=["dict", "list"])
def test_some_outputs_may_lack_head_gradients(head_grads):
    gradient = head()
    executor = bound(head_grads(gradient), two())
    assert executor.head_grads == [None, gradient]
    with pytest.raises(ArgumentError, match=r"'a_output' comes from no loss.*head_grads"):
        stepped(executor)
    for out_grads in ([mx.nd.ones(SHAPE)], {"a_output": mx.nd.ones(SHAPE)}, [mx.nd.ones(SHAPE), None]):
        np.testing.assert_allclose(stepped(executor, out_grads), 2 + 3 * gradient.asnumpy(), rtol=1e-6)


def test_two_outputs_may_share_a_head_gradient():
    gradient = head()
    np.testing.assert_allclose(stepped(bound([gradient, gradient], two())), 5 * gradient.asnumpy(), rtol=1e-6)


def test_losses_have_no_head_gradients():
    executor = bound(head(), mx.sym.MakeLoss(mx.sym.Variable("x") * 2))
    np.testing.assert_array_equal(stepped(executor), np.full(SHAPE, 2))


def test_head_gradients_without_gradients_have_no_effect():
    executor = bound(head(), grad_req="null")
    executor.forward(is_train=True)
    executor.backward()
    assert executor.grad_arrays == [None]


def test_head_gradients_may_be_arguments_or_gradients_of_the_executor():
    x = head()
    executor = net().bind(mx.cpu(), {"x": x}, {"x": mx.nd.zeros(SHAPE)}, head_grads=x)
    np.testing.assert_allclose(stepped(executor), expected(executor, x), rtol=1e-4, atol=1e-5)
    x, dx = head(1), head(2)
    executor, before = net().bind(mx.cpu(), {"x": x}, {"x": dx}, head_grads=dx), dx.copy()
    np.testing.assert_allclose(stepped(executor), expected(executor, before), rtol=1e-4, atol=1e-5)


def test_gradients_requested_with_add_stay_sums():
    gradient = head()
    executor = bound(gradient, grad_req="add")
    for _ in range(5):
        stepped(executor)
    np.testing.assert_allclose(executor.grad_arrays[0].asnumpy(), 5 * expected(executor, gradient), rtol=1e-4,
                               atol=1e-4)


def test_a_chain_of_executors_needs_no_copies():
    second = bound(head())
    x = second.arg_dict["x"]
    first = mx.sym.exp(mx.sym.Variable("z")).simple_bind(mx.cpu(), z=SHAPE, head_grads=second.grad_arrays)
    x[:] = first.forward(is_train=True)[0]
    second.forward(is_train=True)
    second.backward()
    first.backward()
    np.testing.assert_allclose(first.grad_arrays[0].asnumpy(), second.grad_arrays[0].asnumpy(), rtol=1e-6)


@pytest.mark.parametrize(("head_grads", "error", "words"), [
    (lambda: mx.nd.ones((3, 4)), ShapeError, r"head_grads: y_output has shape \(3, 4\), its output \(6, 4\)"),
    (lambda: head(dtype="float64"), DTypeError, "head_grads: y_output has dtype float64, its output float32"),
    (lambda: {"y_outptu": head()}, ArgumentError, "head_grads: there is no output 'y_outptu'.*y_output"),
    (lambda: [head(), head()], ArgumentError, r"head_grads: expected 1 array \(y_output\), got 2"),
    (lambda: [1.0], ArgumentError, "head_grads: y_output must be an NDArray, got float"),
    (lambda: 1.0, ArgumentError, "head_grads: expected"),
    (lambda: mx.nd.ones(SHAPE, ctx=mx.cpu(1)), DeviceError,
     r"head_grads: y_output lives on cpu\(1\), expected cpu\(0\)"),
], ids=["shape", "dtype", "name", "count", "type", "number", "device"])
def test_bind_refuses_wrong_head_gradients(head_grads, error, words):
    with pytest.raises(error, match=words):
        bound(head_grads())
    with pytest.raises(error, match=words):
        net().bind(mx.cpu(), [mx.nd.ones(SHAPE)], [mx.nd.ones(SHAPE)], head_grads=head_grads())


def test_reshape_uses_the_front_of_head_gradients():
    gradient = head()
    executor = bound(gradient)
    same, smaller = executor.reshape(x=SHAPE), executor.reshape(x=(3, 4))
    assert same.head_grads == [gradient]
    gradient *= 2
    np.testing.assert_allclose(stepped(smaller), expected(executor, gradient)[:3], rtol=1e-4, atol=1e-5)
    larger = executor.reshape(allow_up_sizing=True, x=(9, 4))
    assert larger.head_grads == [None]
    with pytest.raises(ArgumentError, match="'y_output' comes from no loss"):
        stepped(larger)
    stepped(larger, mx.nd.ones((9, 4)))


def test_a_monitor_changes_nothing():
    gradient, seen = head(), []
    executor = bound(gradient)
    executor.set_monitor_callback(lambda name, array: seen.append(name))
    np.testing.assert_allclose(stepped(executor), expected(executor, gradient), rtol=1e-4, atol=1e-5)
    assert seen


def masked() -> mx.sym.Symbol:
    """An operator whose second output has a row for each one in the mask."""
    x, mask = mx.sym.Variable("x"), mx.sym.Variable("mask")
    return mx.sym.Group([mx.sym.identity(x * 2, name="a"), mx.sym.contrib.boolean_mask(x, mask, name="b")])


def test_value_dependent_shapes_have_head_gradients():
    early, late = head(1), head(2, shape=(2, 4))
    x, mask, dx = head(3), mx.nd.array([0, 1, 0, 0, 1, 0]), mx.nd.zeros(SHAPE)
    executor = masked().bind(mx.cpu(), {"x": x, "mask": mask}, {"x": dx}, head_grads=[early, late])
    total = 2 * early.asnumpy()
    total[[1, 4]] += late.asnumpy()
    np.testing.assert_allclose(stepped(executor), total, rtol=1e-6)
    early *= 2
    out_grads: list = [None]
    np.testing.assert_allclose(stepped(executor, out_grads), total + early.asnumpy(), rtol=1e-6)
    assert out_grads == [None]
    other = head(4, shape=(2, 4))
    stepped(executor, {"b_output": other})
    np.testing.assert_array_equal(late.asnumpy(), other.asnumpy())
    mask[:] = 1
    with pytest.raises(ShapeError, match=r"has shape \(2, 4\), expected \(6, 4\)"):
        stepped(executor)
    for wrong, words in ((mx.nd.ones((3, 4)), r"a_output has shape"), (head(dtype="float64"), "a_output has dtype")):
        with pytest.raises(mx.MXNetError, match=words):
            masked().bind(mx.cpu(), {"x": x, "mask": mask}, {"x": dx}, head_grads=[wrong])


class _Five(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], 5)


@mx.operator.register("_example_five")
class _FiveProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _Five()


# a loss, and its gradient at 3
LOSSES = {"MakeLoss": (lambda F, x: F.MakeLoss(x * x), 6),
          "Custom": (lambda F, x: F.Custom(x, op_type="_example_five"), 5),
          "LinearRegressionOutput": (lambda F, x: F.LinearRegressionOutput(x, F.zeros_like(x)), 3)}
# operators through which no gradient passes, and the gradient that the input has beside that of the loss
BEHIND = {"BlockGrad": (lambda F, loss, x: F.BlockGrad(loss), 0), ">": (lambda F, loss, x: loss > 0, 0),
          "argmax": (lambda F, loss, x: F.argmax(loss, axis=1), 0),
          "zeros_like": (lambda F, loss, x: F.zeros_like(loss), 0),
          "where": (lambda F, loss, x: F.where(F.BlockGrad(loss) > 0, x, x), 1),
          "slice_like": (lambda F, loss, x: F.slice_like(x * 1, loss), 1)}


@pytest.mark.parametrize("way", ["executor", "tape", "block"])
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_has_its_gradient_behind_operators_that_pass_none(loss, behind, way):
    (make, own), (use, rest) = LOSSES[loss], BEHIND[behind]
    x = mx.nd.full((1, 1), 3)
    x.attach_grad()

    def compute(F, x):
        return use(F, make(F, x), x)

    if way == "executor":
        executor = compute(mx.sym, mx.sym.Variable("x")).bind(mx.cpu(), {"x": x}, {"x": x.grad})
        executor.backward([mx.nd.ones_like(out) for out in executor.forward(is_train=True)])
    else:
        block = mx.gluon.nn.HybridLambda(compute)
        block.hybridize(way == "block")
        with mx.autograd.record():
            result = block(x)
        result.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[own + rest]])
