"""A residual network learns to read handwritten digits, with skip connections and a compiled training step.

A block adds the result of two convolutions to its input, so that gradients can bypass the convolutions. At the end the
network is saved, and a new network that loads the weights must give the same predictions.

    python examples/residual_network.py [--epochs 12] [--save FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import opreg as mx
from opreg import Tensor, nn, ops
from opreg.examples.pictures import Digits, load

BATCH, RATE, DECAY = 32, 0.1, 2e-3


def convolution(channels_in: int, channels: int, kernel: int = 3, stride: int = 1) -> nn.SequentialCell:
    """A convolution whose results have mean zero and deviation one in every channel."""
    return nn.SequentialCell(nn.Conv2d(channels_in, channels, kernel, stride), nn.BatchNorm2d(channels))


class Block(nn.Cell):
    """``relu(x + f(x))`` with two convolutions as ``f``; where sizes differ, a 1 × 1 convolution adapts ``x``."""

    def __init__(self, channels_in: int, channels: int, stride: int = 1):
        super().__init__()
        self.first = convolution(channels_in, channels, stride=stride)
        self.second = convolution(channels, channels)
        self.fit = None if channels_in == channels else convolution(channels_in, channels, 1, stride)
        self.relu = nn.ReLU()

    def construct(self, x):
        change = self.second(self.relu(self.first(x)))
        return self.relu(change + (x if self.fit is None else self.fit(x)))


class ResidualNetwork(nn.Cell):
    """Three blocks, of which the last two halve height and width; then the mean of each channel, and a dense layer."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.stem = nn.SequentialCell(convolution(1, width), nn.ReLU())
        self.blocks = nn.SequentialCell(Block(width, width), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2))
        self.head = nn.Dense(4 * width, 10)

    def construct(self, images):
        features = self.blocks(self.stem(images))
        return self.head(ops.mean(features, (2, 3)))


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each picture moved by at most one pixel in each direction, which does not change its digit."""
    padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
    places = np.lib.stride_tricks.sliding_window_view(padded, (8, 8), axis=(1, 2))
    down, right = rng.integers(0, 3, (2, len(images)))
    return places[np.arange(len(images)), down, right][:, None]


def train(net: nn.Cell, digits: Digits, epochs: int) -> None:
    """Minimise the cross-entropy; one plan computes loss, gradients and the optimizer's update."""
    rng = np.random.default_rng(0)
    steps = len(digits.labels) // BATCH
    rates = RATE * (1 + np.cos(np.pi * np.arange(steps * epochs) / (steps * epochs))) / 2
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), rates.tolist(), momentum=0.9, weight_decay=DECAY)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    images, labels = digits.images, digits.labels.astype(np.int32)
    step = step.compile(Tensor(images[:BATCH]), Tensor(labels[:BATCH]))
    for epoch in range(1, epochs + 1):
        start, total = time.perf_counter(), 0.0
        for rows in rng.permutation(len(labels))[:steps * BATCH].reshape(steps, BATCH):
            total += step(Tensor(shifted(images[rows], rng)), Tensor(labels[rows])).item()
        print(f"epoch {epoch:2}   loss {total / steps:.4f}   {time.perf_counter() - start:.1f} s")


def read(net: nn.Cell, images: np.ndarray) -> np.ndarray:
    """The digits that a network predicts for pictures."""
    return ops.argmax(net.set_train(False)(Tensor(images)), 1).asnumpy()


def main() -> None:
    """Train, save, load, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--save", type=Path, help="a .ckpt or .npz file; in a temporary folder by default")
    options = parser.parse_args()
    mx.set_seed(0)
    digits, held_out = load()
    net = ResidualNetwork()
    print(f"{sum(p.size for p in net.trainable_params())} numbers to train on {len(digits.labels)} digits")
    train(net, digits, options.epochs)
    answers = read(net, held_out.images)
    print(f"{(answers == held_out.labels).mean():.1%} of {len(answers)} held-out digits are read right")

    with tempfile.TemporaryDirectory() as folder:
        path = options.save or Path(folder) / "residual_network.ckpt"
        mx.save_checkpoint(net, path)
        again = ResidualNetwork()
        missing, _ = mx.load_param_into_net(again, mx.load_checkpoint(path))
        if missing or (read(again, held_out.images) != answers).any():
            raise SystemExit("the loaded network answers differently")
        print(f"saved {path.name}, loaded it into a new network: the same answers")


if __name__ == "__main__":
    main()
