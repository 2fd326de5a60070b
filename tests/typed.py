"""A typed program as users write it: it runs, and ``mypy --strict`` finds no error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import opreg as mx
from opreg import Parameter, Tensor, nn, ops
from opreg.ndarray import NDArray


class Swish(mx.operator.CustomOp):
    """x times the sigmoid of ``beta * x``."""

    def __init__(self, beta: float):
        super().__init__()
        self.beta = beta

    def forward(self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray],
                aux: list[NDArray]) -> None:
        x = in_data[0]
        self.assign(out_data[0], req[0], x * mx.nd.sigmoid(self.beta * x))

    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray],
                 in_grad: list[NDArray], aux: list[NDArray]) -> None:
        s = (in_data[0] * self.beta).sigmoid()
        self.assign(in_grad[0], req[0], out_grad[0] * (s + self.beta * out_data[0] * (1 - s)))


@mx.operator.register("typed_swish")
class SwishProp(mx.operator.CustomOpProp):
    """The Prop of ``Swish``."""

    def __init__(self, beta: float = 1.0):
        super().__init__(need_top_grad=True)
        self.beta = beta

    def list_arguments(self) -> list[str]:
        return ["data"]

    def infer_shape(self, in_shape: list[Sequence[int]]) -> tuple[list[Sequence[int]], list[Sequence[int]], list[Any]]:
        return in_shape, [in_shape[0]], []

    def create_operator(self, ctx: mx.Context, shapes: list[Sequence[int]], dtypes: list[Any]) -> Swish:
        return Swish(self.beta)


@mx.operator.define(name="typed_cube", traced=True)
def cube(x: NDArray, *, scale: float = 1.0) -> NDArray:
    """The third power."""
    return x * x * x * scale


@mx.operator.define(name="typed_twice")
def twice(x: NDArray) -> NDArray:
    """Two times x."""
    return x * 2


@twice.grad
def twice_grad(g: NDArray, ins: Sequence[NDArray], outs: Sequence[NDArray]) -> NDArray:
    """Twice the output gradient."""
    return g * 2


@mx.operator.define(outputs=["sum", "difference"])
def both(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """The sum and the difference."""
    return x + y, x - y


@mx.operator.define(name="typed_total", traced=True)
def total_of(*xs: NDArray, by: int = 1) -> NDArray:
    """The sum of any number."""
    return sum(xs[1:], xs[0]) * by


@mx.operator.define(name="typed_fresh")
def fresh(*, size: int) -> NDArray:
    """Ones, from no input."""
    return mx.nd.ones(size)


@mx.operator.define(name="typed_halved", auxiliary={"runs": "zeros"})
def halved(x: NDArray, runs: NDArray, *, is_train: bool = False) -> NDArray:
    """Half of x in training, whose runs are counted."""
    if is_train:
        runs[:] = runs + 1
    return x * 0.5 if is_train else x * 1


def scaled(x: Tensor, *, factor: float = 1.0) -> Tensor:
    """A multiple of x."""
    return x * factor


@mx.jit(jit_level="O0")
def compiled(x: Tensor) -> Tensor:
    """Two times x."""
    return scaled(x, factor=2.0)


def own_operators() -> list[NDArray]:
    """Users' operators on arrays, tensors and symbols, and functions made from functions."""
    x, t, s = mx.nd.ones(2), Tensor([1.0, 2.0]), mx.sym.var("s")
    arrays: list[NDArray] = [cube(x), cube(x, scale=2.0), cube(np.ones(2)), total_of(x, x, by=2), twice(x),
                             halved(x, mx.nd.zeros(1)), cube(x=x), cube(scale=2.0, x=x), halved(x=x, runs=x * 0),
                             cube(x=t), fresh(size=2)]
    tensors: list[Tensor] = [cube(t, scale=2.0), total_of(t, t), compiled(t), mx.jit(scaled)(t, factor=2.0)]
    symbols: list[mx.Symbol] = [cube(s, scale=2.0), cube(s, name="a"), cube(x=s, name="b"), total_of(s, s),
                                halved(s, name="c")]
    arrays += [*both(x, x), *both(x=x, y=x), *both(x, y=x)]
    parts: tuple[Tensor, ...] = both(t, t)
    cube(x, out=arrays[0])
    value, gradient = mx.value_and_grad(scaled)(t, factor=2.0)
    number: Tensor = value
    assert len(parts) == 2 and gradient.shape == number.shape and len(tensors) + len(symbols) == 9
    assert mx.grad(scaled)(t).shape == mx.jit(mx.value_and_grad(scaled))(t)[0].shape == (2,)
    assert fresh(size=2).shape == (2,)
    return arrays


class Cube(mx.autograd.Function):
    """The third power."""

    def forward(self, x: NDArray) -> NDArray:
        self.save_for_backward(x)
        return x * x * x

    def backward(self, dy: NDArray) -> NDArray:
        x, = self.saved_tensors
        return 3 * dy * x * x


class Same(mx._Function):
    """x itself."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


def eager() -> NDArray:
    """Arrays, operators and the tape."""
    x = mx.nd.array([[1, 2], [3, 4]], ctx=mx.cpu(), dtype="float32")
    x.attach_grad()
    with mx.autograd.record():
        y: NDArray = mx.nd.Custom(x, op_type="typed_swish", beta=2.0)
        z: NDArray = (y + 1) * x - 0.5 / x + cube(x, scale=0.5) + twice(x) + Cube()(x)
        loss = mx.nd.softmax(z, axis=1).log().mean(axis=0, keepdims=True).sum()
    loss.backward()
    weight = mx.nd.random.uniform(-1, 1, shape=(3, 1, 2, 2))
    image = mx.nd.ones((1, 1, 4, 4))
    conv = mx.nd.Convolution(image, weight, no_bias=True, kernel=(2, 2), num_filter=3, name="conv")
    mx.nd.exp(x, out=y)
    mask: NDArray = (x > 2) * (x == x)
    parts = mx.nd.split(mx.nd.linalg.gemm2(x, x), num_outputs=2, axis=1)
    joined = mx.nd.concat(*parts, dim=1).reshape((-1,)).expand_dims(axis=0)
    values: np.ndarray[Any, Any] = joined.asnumpy()
    rows: tuple[int, ...] = conv.shape
    assert values.size == 4 and len(rows) == 4
    x += mask
    if x.grad is None:
        raise ValueError("no gradient")
    return x.grad


def graph() -> list[NDArray]:
    """A graph, bound and run."""
    data = mx.sym.Variable("data")
    fc = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    net = mx.sym.Activation(fc, act_type="relu") * 2.0 + mx.sym.broadcast_mul(fc, fc).sum(axis=1, keepdims=True)
    net = mx.sym.Custom(data=fc, op_type="typed_swish", name="swish") - fc
    executor = net.simple_bind(mx.cpu(), data=(2, 4))
    executor.forward(is_train=True, data=mx.nd.ones((2, 4)))
    executor.backward([mx.nd.ones((2, 3))])
    return executor.outputs


def train() -> float:
    """A Module."""
    x, y = np.random.default_rng(0).random((8, 4), np.float32), np.arange(8) % 2
    batches = mx.io.NDArrayIter(x, y, batch_size=4, label_name="softmax_label")
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    module = mx.mod.Module(out, data_names=["data"], label_names=["softmax_label"], context=mx.cpu())
    module.fit(batches, num_epoch=1, optimizer="sgd", optimizer_params={"learning_rate": 0.1},
               initializer=mx.init.Xavier(), eval_metric="acc")
    return dict(module.score(batches, mx.metric.Accuracy()))["accuracy"]


class Layer(nn.Cell):
    """A Cell with a parameter and a child."""

    def __init__(self, size: int):
        super().__init__()
        self.dense = nn.Dense(size, size)
        self.scale = Parameter(Tensor(np.ones(size, np.float32)), name="scale")

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self.dense(x)) * self.scale + x.mean(axis=-1, keepdims=True)


def cells() -> Tensor:
    """Cells and their gradients."""
    net = Layer(3)
    x = Tensor([[1.0, 2.0, 3.0]], mx.float32)
    x += Same.apply(x)
    y = net(x)
    loss = nn.MSELoss()

    def forward(data: Tensor, label: Tensor) -> Tensor:
        return loss(net(data), label)

    step = mx.value_and_grad(forward, None, net.trainable_params())
    value, gradients = step(x, ops.zeros_like(x))
    assert len(gradients) == 3
    total: Tensor = ops.cat((x, y), axis=0).sum() - 1 / value + ops.ReduceSum(keep_dims=False)(x)
    return total


def functions(x: Tensor) -> Tensor:
    """Functions of tensors and of values that become tensors."""
    value, place = ops.max(x, axis=0)
    one: Tensor = ops.atleast_1d(np.float32(2.5))
    several: tuple[Tensor, ...] = ops.atleast_1d([1, [2, 3]])
    rows: tuple[Tensor, ...] = ops.split(ops.reshape([1, 2, 3, 4], (2, 2)), 1)
    places: tuple[Tensor, ...] = ops.nonzero(x, as_tuple=True)
    count: int = ops.size(x) + len(rows) + len(places) + len(several)
    kept: int = ops.depend(count, value + place)
    halves = ops.where(x > ops.full((), 0.5, dtype=mx.float32), x, 0.5) * np.float32(0.5)
    return ops.Softmax(axis=-1)(halves - ops.sum([1.0, 2.0], dtype="float32")) + one * kept + ops.nonzero(x).sum()


if __name__ == "__main__":
    assert functions(Tensor([[1.0, 2.0]])).shape == (1, 2) and len(own_operators()) == 17
    print(eager().shape, len(graph()), train(), cells().shape)
