"""A network of spiking neurons learns to read handwritten digits, with a surrogate gradient.

A neuron adds up its inputs until the sum passes a threshold; then its output is 1 for one step, a spike, and the
threshold is subtracted from the sum. The derivative of this step function is zero almost everywhere, so nothing would
be learned. A Cell with ``bprop`` uses the derivative of a steep sigmoid instead; everything else is differentiated as
usual.

    python examples/spiking_network.py
"""

from __future__ import annotations

import numpy as np

import opreg as mx
from opreg import Tensor, grad, nn, ops
from opreg.examples.pictures import Digits, load

STEPS, BATCH, EPOCHS, RATE = 8, 32, 12, 5e-3


class Spike(nn.Cell):
    """1 above zero and 0 elsewhere, differentiated as if it were ``sigmoid(5 x)``."""

    def construct(self, x):
        return (x > 0).astype(x.dtype)

    def bprop(self, x, out, dout):
        s = ops.sigmoid(x * 5.0)
        return (dout * (1 - s) * s * 5.0,)


class IFNode(nn.Cell):
    """Integrate-and-fire neurons: from currents and earlier charges they compute spikes and remaining charges.

    With ``fire=False`` they only add up.
    """

    def __init__(self, v_threshold: float = 1.0, fire: bool = True):
        super().__init__()
        self.v_threshold, self.fire = v_threshold, fire
        self.surrogate_function = Spike()

    def construct(self, x, v):
        v = v + x
        if not self.fire:
            return v, v
        spike = self.surrogate_function(v - self.v_threshold) * self.v_threshold
        return spike, v - spike


class SpikingNetwork(nn.Cell):
    """Two layers of spiking neurons and one that adds up ten scores; the input is one picture for several time
    steps."""

    def __init__(self):
        super().__init__()
        self.steps = STEPS
        self.synapses = nn.CellList([nn.Dense(64, 128), nn.Dense(128, 64), nn.Dense(64, 10)])
        self.neurons = nn.CellList([IFNode(), IFNode(), IFNode(fire=False)])

    def construct(self, images):
        charges = [0.0, 0.0, 0.0]
        for _ in range(self.steps):
            signal = ops.flatten(images)
            for i, (synapses, neurons) in enumerate(zip(self.synapses, self.neurons)):
                signal, charges[i] = neurons(synapses(signal), charges[i])
        return charges[-1] / self.steps


def check_gradient() -> None:
    """Check that the gradient is the surrogate of ``bprop``, and differs from the derivative of the function."""
    x = np.linspace(-0.7, 0.7, 8, dtype=np.float32)
    found = grad(Spike())(Tensor(x)).asnumpy()
    s = 1 / (1 + np.exp(-5 * x))
    np.testing.assert_allclose(found, 5 * s * (1 - s), rtol=1e-5)
    for name, row in (("x", x), ("spike", Spike()(Tensor(x)).asnumpy()), ("gradient", found)):
        print(f"{name:9}", *(f"{number:5.2f}" for number in row))
    try:
        Spike().check_bprop(Tensor(x))
    except AssertionError as difference:
        print(f"It differs from the derivative, as it should:\n{difference}\n")
    else:
        raise SystemExit("check_bprop should have seen a difference")


def train(net: nn.Cell, digits: Digits) -> None:
    """Minimise the cross-entropy of the scores; one compiled training step contains all time steps."""
    rng = np.random.default_rng(0)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), RATE))
    images, labels = digits.images, digits.labels.astype(np.int32)
    step = step.compile(Tensor(images[:BATCH]), Tensor(labels[:BATCH]))
    for epoch in range(1, EPOCHS + 1):
        batches = rng.permutation(len(labels))[:len(labels) // BATCH * BATCH].reshape(-1, BATCH)
        total = sum(step(Tensor(images[rows]), Tensor(labels[rows])).item() for rows in batches)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2}   loss {total / len(batches):.3f}")


def main() -> None:
    """Check the gradient, train, and print how many neurons fire and the accuracy for several numbers of time steps."""
    check_gradient()
    mx.set_seed(0)
    digits, held_out = load()
    net = SpikingNetwork()
    train(net, digits)

    spikes: list[list[np.ndarray]] = [[], []]
    for neurons, seen in zip(net.neurons, spikes):
        neurons.register_forward_hook(lambda cell, inputs, out, seen=seen: seen.append(out[0].asnumpy()))
    print("\nsteps   neurons that fire in one: first layer, second   held-out digits read right")
    for steps in (1, 2, 4, STEPS):
        net.steps = steps
        right = ops.argmax(net(Tensor(held_out.images)), 1).asnumpy() == held_out.labels
        first, second = (np.mean(seen[-steps:]) for seen in spikes)
        print(f"{steps:5}   {first:38.0%}{second:8.0%}   {right.mean():26.1%}")


if __name__ == "__main__":
    main()
