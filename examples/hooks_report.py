"""Find vanishing gradients: hooks on every layer of a network report the sizes of outputs and gradients.

Each sigmoid makes the gradient smaller, so the first layers hardly learn. With relus and He initialization all layers
learn. Hooks get the same values whether a Cell runs as Python or compiled.

    python examples/hooks_report.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import opreg as mx
from opreg import Tensor, nn, ops
from opreg.examples.pictures import load

BATCH, WIDTH = 64, 64


class Network(nn.Cell):
    """A convolution and three dense layers with activations, then a layer that gives ten scores."""

    def __init__(self, activation: type[nn.Cell], weight_init: str | None = None):
        super().__init__()
        self.front = nn.SequentialCell(nn.Conv2d(1, 8, 3, stride=2, weight_init=weight_init), activation())
        self.deep = nn.SequentialCell([
            nn.SequentialCell(nn.Dense(size, WIDTH, weight_init=weight_init), activation())
            for size in (8 * 4 * 4, WIDTH, WIDTH)])
        self.scores = nn.Dense(WIDTH, 10)

    def construct(self, images):
        return self.scores(self.deep(ops.flatten(self.front(images))))


@dataclass
class Row:
    """One line of the table: values that the two hooks of a layer record."""

    path: str
    kind: str
    shape: tuple[int, ...] = ()
    mean: float = np.nan
    deviation: float = np.nan
    gradient: float = np.nan

    def forward(self, cell, inputs, output):
        """Forward hook: it is called with the inputs and the output of the layer."""
        numbers = output.asnumpy()
        self.shape, self.mean, self.deviation = output.shape, float(numbers.mean()), float(numbers.std())

    def backward(self, cell_id, arriving, leaving):
        """Backward hook: it is called with the output gradients and the input gradients of the layer."""
        self.gradient = float(np.linalg.norm(arriving[0].asnumpy()))

    def __str__(self) -> str:
        return (f"  {self.path:9} {self.kind:8} {self.shape!s:14} {self.mean:6.3f} {self.deviation:10.3f} "
                f"{self.gradient:14.6f}")


def watch(net: nn.Cell) -> list[Row]:
    """A row for every Cell without child Cells; hooks fill it whenever the network runs."""
    rows = []
    for path, cell in net.cells_and_names():
        if not cell.cells():
            row = Row(path, type(cell).__name__)
            cell.register_forward_hook(row.forward)
            cell.register_backward_hook(row.backward)
            rows.append(row)
    return rows


def observed(net: nn.Cell, step: Callable, *inputs: Tensor) -> list[Row]:
    """The rows after one step, during which hooks are on the network."""
    rows = watch(net)
    step(*inputs)
    net.remove_hooks()
    return rows


def report(net: nn.Cell, images: Tensor, labels: Tensor) -> None:
    """The table of a step, the same eagerly and compiled."""
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = mx.grad(loss, None, net.trainable_params())
    eager = observed(net, step, images, labels)
    compiled = observed(net, mx.jit(step), images, labels)
    print("  layer     kind     output           mean  deviation       gradient")
    print(*eager, sep="\n")
    for one, other in zip(eager, compiled):
        for name in ("mean", "deviation", "gradient"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-7)
    print("  compiled: the same numbers")


def main() -> None:
    """Print the reports of two networks, then list the hooks of one."""
    mx.set_seed(0)
    digits, _ = load()
    images, labels = Tensor(digits.images[:BATCH]), Tensor(digits.labels[:BATCH].astype(np.int32))
    print("Sigmoids:")
    report(Network(nn.Sigmoid), images, labels)
    print("\nRelus, and weights as large as He et al. advise:")
    report(Network(nn.ReLU, "he_uniform"), images, labels)

    net = Network(nn.ReLU)
    watch(net)
    print(f"\nHooks on {len(net.hooks())} places, the first two of which:")
    for place, hooks in list(net.hooks().items())[:2]:
        print(f"  {place:18} {hooks}")
    net.remove_hooks()
    print(f"After remove_hooks(): {net.hooks()}")


if __name__ == "__main__":
    main()
