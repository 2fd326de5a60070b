"""A softmax loss as a CustomOp in NumPy, used in two ways: eagerly with autograd, and in a graph.

Eagerly, it trains a layer in an ordinary Python loop. In a graph, which is bound once and run many times, it trains
the same layer. Both start with the same weights and data, so both end with the same weights.

    python examples/custom_softmax.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx

CLASSES, FEATURES, BATCH, STEPS, RATE = 3, 2, 60, 40, 0.5


class Softmax(mx.operator.CustomOp):
    """The computation: methods get lists of arrays and write results by ``assign``."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))  # the largest becomes 1, so nothing overflows
        self.assign(out_data[0], req[0], y / y.sum(axis=1, keepdims=True))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        # The gradient of the cross-entropy: the probabilities, minus one at the label's class.
        y, label = out_data[0].asnumpy(), in_data[1].asnumpy().astype(int)
        y[np.arange(len(label)), label] -= 1
        self.assign(in_grad[0], req[0], y)


@mx.operator.register("softmax_loss")
class SoftmaxProp(mx.operator.CustomOpProp):
    """The description: inputs, outputs, and how the shapes of outputs follow from those of inputs."""

    def __init__(self):
        super().__init__(need_top_grad=False)  # a loss: the gradient starts here

    def list_arguments(self):
        return ["data", "label"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        data, _ = in_shape
        return [data, [data[0]]], [data], []

    def create_operator(self, ctx, shapes, dtypes):
        return Softmax()


def points() -> tuple[np.ndarray, np.ndarray]:
    """Points around the three corners of a triangle, and the index of each point's corner."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, CLASSES, BATCH)
    corners = np.array([[0, 2], [2, -1], [-2, -1]])
    return corners[label] + 0.8 * rng.standard_normal((BATCH, FEATURES)), label


def train_recorded(data: mx.nd.NDArray, label: mx.nd.NDArray) -> mx.nd.NDArray:
    """The weights after some steps of gradient descent by ``autograd``."""
    weight = mx.nd.zeros((CLASSES, FEATURES))
    weight.attach_grad()
    for step in range(STEPS):
        with mx.autograd.record():
            probability = mx.nd.Custom(mx.nd.dot(data, weight, transpose_b=True), label, op_type="softmax_loss")
        probability.backward()
        weight -= weight.grad * (RATE / BATCH)
        if step % 13 == 0:
            picked = mx.nd.pick(probability, label)
            print(f"  step {step:2}: loss {-mx.nd.log(picked).mean().asscalar():.3f}")
    return weight


def train_bound(data: mx.nd.NDArray, label: mx.nd.NDArray) -> mx.nd.NDArray:
    """The weights after the same steps with a bound graph."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=CLASSES, no_bias=True, name="layer")
    net = mx.sym.Custom(data=net, name="softmax", op_type="softmax_loss")
    print("  arguments:", ", ".join(net.list_arguments()))
    executor = net.simple_bind(mx.cpu(), data=data.shape)
    weight, gradient = executor.arg_dict["layer_weight"], executor.grad_dict["layer_weight"]
    for _ in range(STEPS):
        executor.forward(is_train=True, data=data, softmax_label=label)
        executor.backward()
        weight -= gradient * (RATE / BATCH)
    (probability,) = executor.forward(data=data)
    right = probability.argmax(axis=1) == label
    print(f"  {int(right.sum().asscalar())} of {BATCH} points are told apart")
    return weight


def main() -> None:
    """Train both ways and compare."""
    data, label = map(mx.nd.array, points())
    print("Recorded:")
    recorded = train_recorded(data, label)
    print("Bound:")
    bound = train_bound(data, label)
    difference = mx.nd.max(mx.nd.abs(recorded - bound)).asscalar()
    print(f"The weights differ by {difference:.0e} at most.")
    if difference > 1e-4:
        raise SystemExit("they should not")


if __name__ == "__main__":
    main()
