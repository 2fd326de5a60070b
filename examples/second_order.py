"""Second-order gradients, of built-in operators and of a user's operator.

A gradient is computed by operators, so it can be recorded and differentiated again. For an operator made by ``define``
this works if its gradient rule is written in operators.

    python examples/second_order.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx


@mx.operator.define
def swish(x, *, beta: float = 1.0):
    """``x * sigmoid(beta x)``."""
    return x * mx.nd.sigmoid(x * beta)


@swish.grad
def swish_grad(g, ins, outs, *, beta):
    """Written for arrays and symbols alike."""
    (x,), (y,) = ins, outs
    s = (x * beta).sigmoid()
    return g * (s + y * beta * (1 - s))


def derivatives(function, at: np.ndarray, order: int) -> list[np.ndarray]:
    """Values of the derivatives of a function of one variable, up to an order."""
    x = mx.nd.array(at, dtype="float64")
    x.attach_grad()
    found = []
    with mx.autograd.record():
        y = function(x)
        for _ in range(order):
            (y,) = mx.autograd.grad(y, x, create_graph=True)
            found.append(y.asnumpy())
    return found


def main() -> None:
    """Compare with central differences, then train with a penalty on the gradient's length."""
    at, step = np.linspace(-3, 3, 7), 1e-4
    first, second = derivatives(lambda x: swish(x, beta=1.5), at, 2)

    def value(points: np.ndarray) -> np.ndarray:
        return swish(mx.nd.array(points, dtype="float64"), beta=1.5).asnumpy()

    print("     x    swish'   by differences   swish''   by differences")
    slopes = (value(at + step) - value(at - step)) / (2 * step)
    bends = (value(at + step) - 2 * value(at) + value(at - step)) / step**2
    for row in zip(at, first, slopes, second, bends):
        print("  {:5.1f}  {:8.5f}  {:14.5f}  {:8.5f}  {:15.5f}".format(*row))

    # A gradient penalty: the length of the gradient with respect to the data is part of the loss.
    rng = np.random.default_rng(0)
    data = mx.nd.array(rng.standard_normal((16, 4)))
    weight = mx.nd.array(rng.standard_normal((1, 4)) * 0.2)
    bias = mx.nd.zeros((1,))
    for each in (data, weight):
        each.attach_grad()
    print("\nstep   mean length of the gradient")
    for number in range(5):
        with mx.autograd.record():
            score = mx.nd.tanh(mx.nd.FullyConnected(data, weight, bias, num_hidden=1))
            (slope,) = mx.autograd.grad(score, data, create_graph=True)
            length = mx.nd.sqrt(mx.nd.sum(slope * slope, axis=1) + 1e-9)
            penalty = mx.nd.mean(mx.nd.square(length - 1))
        penalty.backward()
        print(f"{number:4}   {length.asnumpy().mean():.4f}")
        weight -= 0.5 * weight.grad

    # The same with symbols: the gradient of a graph is a graph.
    x = mx.sym.Variable("x")
    bend = swish(x, beta=1.5).gradient(["x"]).gradient(["x"])
    again = bend.eval(x=mx.nd.array(at, dtype="float64"))[0].asnumpy()
    print(f"\nas a symbol: largest difference {np.abs(again - second).max():.1e}")


if __name__ == "__main__":
    main()
