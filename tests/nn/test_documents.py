"""Examples of MindSpore's documents on Cells, parameters, bprop and hooks, with their output, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opreg as mindspore
import opreg as ms
from opreg import Parameter, ParameterTuple, Tensor, nn, ops
from opreg import dtype as mstype
from opreg.common.initializer import initializer

Run = Callable[[Any], Any]


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs every example in both modes."""
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def printed(capsys: pytest.CaptureFixture) -> list[str]:
    return capsys.readouterr().out.splitlines()


# ------------------------------------------------------------------------------------- Cell and Parameter


class Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(7)
        self.w = Parameter(Tensor(rng.standard_normal((5, 3)), mindspore.float32), name="w")
        self.b = Parameter(Tensor(rng.standard_normal((3,)), mindspore.float32), name="b")

    def construct(self, x):
        z = ops.matmul(x, self.w) + self.b
        return z


def test_parameters_of_a_network_print_as_documented(capsys):
    net = Network()
    numbers = net.b.asnumpy().copy()
    print(net.trainable_params())
    print(type(net.get_parameters()))
    for name, param in net.parameters_and_names():
        print(f"{name}:\n{param.asnumpy()}")
    net.b[0] = 1.0
    assert printed(capsys) == [
        "[Parameter (name=w, shape=(5, 3), dtype=Float32, requires_grad=True), "
        "Parameter (name=b, shape=(3,), dtype=Float32, requires_grad=True)]",
        "<class 'generator'>",
        "w:", *str(net.w.asnumpy()).splitlines(), "b:", str(numbers)]
    assert net.b.asnumpy()[0] == 1 and (net.b.asnumpy()[1:] == numbers[1:]).all()
    net.b.set_data(Tensor([3, 4, 5]))
    print(net.b.asnumpy())
    assert printed(capsys) == ["[3. 4. 5.]"]
    x = np.ones((2, 5), np.float32)
    np.testing.assert_allclose(net(Tensor(x)).asnumpy(), x @ net.w.asnumpy() + net.b.asnumpy(), rtol=1e-6)


def test_assign_in_a_compiled_function_prints_as_documented(capsys):
    net = Network()

    @ms.jit
    def modify_parameter():
        b_hat = ms.Tensor([7, 8, 9])
        ops.assign(net.b, b_hat)
        return True

    assert modify_parameter() is True
    print(net.b.asnumpy())
    assert printed(capsys) == ["[7. 8. 9.]"]
    net.b.set_data(Tensor([0, 0, 0]))
    modify_parameter()
    assert net.b.asnumpy().tolist() == [7, 8, 9]


def test_a_parameter_tuple_prints_as_documented(capsys):
    x = Parameter(default_input=ms.Tensor(np.arange(2 * 3).reshape((2, 3))), name="x")
    y = Parameter(default_input=initializer("ones", [1, 2, 3], ms.float32), name="y")
    z = Parameter(default_input=2.0, name="z")
    params = ParameterTuple((x, y, z))
    params_copy = params.clone("params_copy")
    print(params)
    print(params_copy)
    assert printed(capsys) == [
        "(Parameter (name=x, shape=(2, 3), dtype=Int64, requires_grad=True), "
        "Parameter (name=y, shape=(1, 2, 3), dtype=Float32, requires_grad=True), "
        "Parameter (name=z, shape=(), dtype=Float32, requires_grad=True))",
        "(Parameter (name=params_copy.x, shape=(2, 3), dtype=Int64, requires_grad=True), "
        "Parameter (name=params_copy.y, shape=(1, 2, 3), dtype=Float32, requires_grad=True), "
        "Parameter (name=params_copy.z, shape=(), dtype=Float32, requires_grad=True))"]


def test_the_phase_follows_set_train(capsys):
    net = Network()
    net.set_train()
    print(net.phase)
    net.set_train(False)
    print(net.phase)
    assert printed(capsys) == ["train", "predict"]


class Threshold(nn.Cell):
    def __init__(self, threshold, value):
        super().__init__()
        self.threshold = threshold
        self.value = value

    def construct(self, inputs):
        cond = ops.gt(inputs, self.threshold)
        value = ops.fill(inputs.dtype, inputs.shape, self.value)
        return ops.select(cond, inputs, value)


def test_the_documented_threshold_runs():
    m = Threshold(0.1, 20)
    inputs = mindspore.Tensor([0.1, 0.2, 0.3], mindspore.float32)
    assert repr(m(inputs)) == ("Tensor(shape=[3], dtype=Float32, value= [ 2.00000000e+01,  2.00000003e-01, "
                               " 3.00000012e-01])")


class Dropout2d(nn.Cell):
    def __init__(self, keep_prob):
        super().__init__()
        self.keep_prob = keep_prob
        self.dropout2d = ops.Dropout2D(keep_prob)

    def construct(self, x):
        return self.dropout2d(x)

    def bprop(self, x, out, dout):
        _, mask = out
        dy, _ = dout
        if self.keep_prob != 0:
            dy = dy * (1 / self.keep_prob)
        dy = mask.astype(mindspore.float32) * dy
        return (dy.astype(x.dtype), )


@pytest.mark.parametrize("debug", [True, False])
def test_dropout2d_with_bprop_prints_as_documented(debug):
    dropout_2d = Dropout2d(0.8)
    dropout_2d.bprop_debug = debug
    x = Tensor(np.ones((4, 50, 2, 2), np.float32))

    def forward(x):
        y, mask = dropout_2d(x)
        return y, mask

    (y, mask), gradient = ms.value_and_grad(lambda x: (lambda pair: (pair[0] * 3, pair[1]))(forward(x)),
                                            has_aux=True)(x)
    kept = mask.asnumpy()
    assert kept.dtype == bool and kept.shape == x.shape and 0.7 < kept.mean() < 0.9
    assert (kept == kept[:, :, :1, :1]).all()  # whole channels
    np.testing.assert_allclose(y.asnumpy(), np.where(kept, 3 / 0.8, 0), rtol=1e-6)
    np.testing.assert_allclose(gradient.asnumpy(), np.where(kept, 3 / 0.8, 0), rtol=1e-6)


class NetWithParam(nn.Cell):
    def __init__(self):
        super(NetWithParam, self).__init__()
        self.w = Parameter(Tensor(np.array([2.0], dtype=np.float32)), name="weight")
        self.internal_params = [self.w]

    def construct(self, x):
        output = self.w * x
        return output

    def bprop(self, *args):
        return (self.w * args[-1],), {self.w: args[0] * args[-1]}


def test_the_documented_bprop_with_weights_runs():
    net = NetWithParam()
    x = Tensor([3.0], ms.float32)
    gradient, by_weight = ms.grad(net, 0, net.trainable_params())(x)
    assert gradient.asnumpy().tolist() == [2] and by_weight[0].asnumpy().tolist() == [3]
    assert net.check_bprop(x) < 1e-3


# -------------------------------------------------------------------------------------------------- hooks


def test_hook_backward_prints_as_documented(capsys):
    def hook_fn(grad_out):
        """Print Gradient"""
        print("hook_fn print grad_out:", grad_out)

    hook = ops.HookBackward(hook_fn)

    def hook_test(x, y):
        z = x * y
        z = hook(z)
        z = z * y
        return z

    def net(x, y):
        return ms.grad(hook_test, grad_position=(0, 1))(x, y)

    output = net(ms.Tensor(1, ms.float32), ms.Tensor(2, ms.float32))
    print("output:", output)
    assert printed(capsys) == [
        "hook_fn print grad_out: (Tensor(shape=[], dtype=Float32, value= 2),)",
        "output: (Tensor(shape=[], dtype=Float32, value= 4), Tensor(shape=[], dtype=Float32, value= 4))"]


def ones() -> Tensor:
    return ms.Tensor(np.ones([1]).astype(np.float32))


def pair(value: str) -> str:
    one = f"Tensor(shape=[1], dtype=Float32, value= [ {value}])"
    return f"({one}, {one})"


SHOWN = "forward inputs:  (Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00]),)"


def forward_pre_hook_fn(cell_id, inputs):
    print("forward inputs: ", inputs)
    input_x = inputs[0]
    return input_x


def forward_hook_fn(cell_id, inputs, outputs):
    print("forward inputs: ", inputs)
    print("forward outputs: ", outputs)
    outputs = outputs + outputs
    return outputs


class Net(nn.Cell):
    """A network of the documents; the given function registers hooks."""

    def __init__(self, register):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        register(self)

    def construct(self, x, y):
        x = x + y
        x = self.relu(x)
        return x


def test_a_forward_pre_hook_prints_as_documented(capsys):
    def register(net):
        net.handle = net.relu.register_forward_pre_hook(forward_pre_hook_fn)

    net = Net(register)
    grad_net = ms.grad(net, grad_position=(0, 1))
    x, y = ones(), ones()
    output = net(x, y)
    print(output)
    gradient = grad_net(x, y)
    print(gradient)
    net.handle.remove()
    gradient = grad_net(x, y)
    print(gradient)
    one = pair("1.00000000e+00")
    assert printed(capsys) == [SHOWN, "[2.]", SHOWN, one, one]


def test_forward_pre_hook_that_returns_new_data_cuts_the_gradient(capsys):
    def hook(cell_id, inputs):
        print("forward inputs: ", inputs)
        return ms.Tensor(np.ones([1]).astype(np.float32))

    def register(net):
        net.handle = net.relu.register_forward_pre_hook(hook)

    gradient = ms.grad(Net(register), grad_position=(0, 1))(ones(), ones())
    print(gradient)
    assert printed(capsys) == [SHOWN, pair("0.00000000e+00")]


def test_a_forward_hook_prints_as_documented(capsys):
    def register(net):
        net.handle = net.relu.register_forward_hook(forward_hook_fn)

    net = Net(register)
    grad_net = ms.grad(net, grad_position=(0, 1))
    x, y = ones(), ones()
    print(grad_net(x, y))
    net.handle.remove()
    print(grad_net(x, y))
    assert printed(capsys) == [SHOWN, "forward outputs:  [2.]", pair("2.00000000e+00"), pair("1.00000000e+00")]


def test_a_backward_hook_prints_as_documented(capsys):
    def backward_hook_function(cell_id, grad_input, grad_output):
        print(grad_input)
        print(grad_output)

    class Net(nn.Cell):
        def __init__(self):
            super(Net, self).__init__()
            self.conv = nn.Conv2d(1, 2, kernel_size=2, stride=1, padding=0, weight_init="ones", pad_mode="valid")
            self.bn = nn.BatchNorm2d(2, momentum=0.99, eps=0.00001, gamma_init="ones")
            self.handle = self.bn.register_backward_hook(backward_hook_function)
            self.relu = nn.ReLU()

        def construct(self, x):
            x = self.conv(x)
            x = self.bn(x)
            x = self.relu(x)
            return x

    net = Net()
    grad_net = ms.grad(net)
    output = grad_net(ms.Tensor(np.ones([1, 1, 2, 2]).astype(np.float32)))
    print(output)
    net.handle.remove()
    output = grad_net(ms.Tensor(np.ones([1, 1, 2, 2]).astype(np.float32)))
    print("-------------\n", output)
    tensor = "(Tensor(shape=[1, 2, 1, 1], dtype=Float32, value="
    assert printed(capsys) == [
        tensor, "[[[[ 1.00000000e+00]],", "  [[ 1.00000000e+00]]]]),)",
        tensor, "[[[[ 9.99994993e-01]],", "  [[ 9.99994993e-01]]]]),)",
        "[[[[1.99999 1.99999]", "   [1.99999 1.99999]]]]",
        "-------------", " [[[[1.99999 1.99999]", "   [1.99999 1.99999]]]]"]


def test_three_hooks_together_print_as_documented(capsys):
    def backward_hook_fn(cell_id, grad_input, grad_output):
        assert cell_id == f"ReLU({id(net.relu)})"
        print("grad input: ", grad_input)
        print("grad output: ", grad_output)

    def register(net):
        net.handle = net.relu.register_forward_pre_hook(forward_pre_hook_fn)
        net.handle2 = net.relu.register_forward_hook(forward_hook_fn)
        net.handle3 = net.relu.register_backward_hook(backward_hook_fn)

    net = Net(register)
    gradient = ms.grad(net, grad_position=(0, 1))(ones(), ones())
    print(gradient)
    two = "(Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00]),)"
    assert printed(capsys) == [SHOWN, SHOWN, "forward outputs:  [2.]", f"grad input:  {two}", f"grad output:  {two}",
                               pair("2.00000000e+00")]


# -------------------------------------------------------------------------------------------------- bprop


class MatMulNet(nn.Cell):
    def __init__(self):
        super(MatMulNet, self).__init__()
        self.matmul = ops.MatMul()

    def construct(self, x, y):
        out = self.matmul(x, y)
        return out

    def bprop(self, x, y, out, dout):
        dx = x + 1
        dy = y + 1
        return dx, dy


class GradNet(nn.Cell):
    def __init__(self, net):
        super(GradNet, self).__init__()
        self.net = net
        self.grad_op = ops.GradOperation(get_all=True)

    def construct(self, x, y):
        gradient_function = self.grad_op(self.net)
        return gradient_function(x, y)


def test_the_documented_bprop_of_a_product_runs():
    x = ms.Tensor([[0.5, 0.6, 0.4], [1.2, 1.3, 1.1]], dtype=ms.float32)
    y = ms.Tensor([[0.01, 0.3, 1.1], [0.1, 0.2, 1.3], [2.1, 1.2, 3.3]], dtype=ms.float32)
    out = GradNet(MatMulNet())(x, y)
    assert repr(out) == (
        "(Tensor(shape=[2, 3], dtype=Float32, value=\n"
        "[[ 1.50000000e+00,  1.60000002e+00,  1.39999998e+00],\n"
        " [ 2.20000005e+00,  2.29999995e+00,  2.09999990e+00]]), Tensor(shape=[3, 3], dtype=Float32, value=\n"
        "[[ 1.00999999e+00,  1.29999995e+00,  2.09999990e+00],\n"
        " [ 1.10000002e+00,  1.20000005e+00,  2.29999995e+00],\n"
        " [ 3.09999990e+00,  2.20000005e+00,  4.30000019e+00]]))")


class ReluNet(nn.Cell):
    def __init__(self):
        super(ReluNet, self).__init__()
        self.relu = ops.ReLU()

    def construct(self, x):
        return self.relu(x)


class Relu6Net(nn.Cell):
    def __init__(self):
        super(Relu6Net, self).__init__()
        self.relu6 = ops.ReLU6()
        self.relu = ReluNet()

    def construct(self, x):
        return self.relu6(x)

    def bprop(self, x, out, dout):
        dx = self.relu(x)
        return (dx, )


def test_the_documented_second_derivative_through_bprop_is_right():
    x = Tensor([[0.5, 0.6, 0.4], [1.2, 1.3, 1.1]], dtype=mstype.float32)
    net = Relu6Net()
    out = ops.grad(ops.grad(net))(x)
    assert str(out) == "[[1. 1. 1.]\n [1. 1. 1.]]"


class relusigmoid(nn.Cell):
    def __init__(self):
        super().__init__()
        self.sigmoid = ops.Sigmoid()
        self.greater = ops.Greater()

    def construct(self, x):
        spike = self.greater(x, 0)
        return spike.astype(mindspore.float32)

    def bprop(self, x, out, dout):
        sgax = self.sigmoid(x * 5.0)
        grad_x = dout * (1 - sgax) * sgax * 5.0
        return (grad_x,)


class IFNode(nn.Cell):
    def __init__(self, v_threshold=1.0, fire=True, surrogate_function=None):
        super().__init__()
        self.v_threshold = v_threshold
        self.fire = fire
        self.surrogate_function = surrogate_function or relusigmoid()

    def construct(self, x, v):
        v = v + x
        if self.fire:
            spike = self.surrogate_function(v - self.v_threshold) * self.v_threshold
            v -= spike
            return spike, v
        return v, v


def test_a_surrogate_gradient_replaces_that_of_a_step():
    node = IFNode()
    x, v = Tensor([0.2, 0.9, 1.5]), Tensor([0.3, 0.3, 0.3])
    spike, left = node(x, v)
    assert spike.asnumpy().tolist() == [0, 1, 1]
    np.testing.assert_allclose(left.asnumpy(), [0.5, 0.2, 0.8], rtol=1e-6)
    gradient = ms.grad(lambda x: node(x, v)[0])(x).asnumpy()
    s = 1 / (1 + np.exp(-5 * (np.array([0.2, 0.9, 1.5]) + 0.3 - 1)))
    np.testing.assert_allclose(gradient, 5 * s * (1 - s), rtol=1e-5)
    assert IFNode(fire=False)(x, v)[0].asnumpy().tolist() == pytest.approx([0.5, 1.2, 1.8])
