"""Learn to read handwritten digits with a user-defined operator.

The loss is a ``CustomOp`` written in NumPy and registered with a decorator; the network is a ``Symbol``; an
executor trains it. At the end the model is saved in MXNet's files, loaded again, and must answer the same.

    python -m opreg.examples.digits [--epochs 12] [--ctx gpu] [--save FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import opreg as mx

from .pictures import Digits, load, show

__all__ = ["BATCH", "Softmax", "SoftmaxProp", "accuracy", "batches", "main", "network", "shifted", "train"]

BATCH = 30


class Softmax(mx.operator.CustomOp):
    """Probabilities, and the gradient of their cross-entropy."""

    def forward(self, is_train: bool, req: list[str], in_data: list[mx.NDArray], out_data: list[mx.NDArray],
                aux: list[mx.NDArray]) -> None:
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True), ctx=out_data[0].context))

    def backward(self, req: list[str], out_grad: list[mx.NDArray], in_data: list[mx.NDArray],
                 out_data: list[mx.NDArray], in_grad: list[mx.NDArray], aux: list[mx.NDArray]) -> None:
        label = in_data[1].asnumpy().astype(int)
        y = out_data[0].asnumpy()
        y[np.arange(len(label)), label] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(y, ctx=in_grad[0].context))


@mx.operator.register("digit_softmax")
class SoftmaxProp(mx.operator.CustomOpProp):
    """A loss: its gradient needs none from above."""

    def __init__(self) -> None:
        super().__init__(need_top_grad=False)

    def list_arguments(self) -> list[str]:
        return ["data", "label"]

    def infer_shape(self, in_shape: list[tuple[int, ...]]) -> tuple[list, list, list]:
        data = in_shape[0]
        return [data, (data[0],)], [data], []

    def create_operator(self, ctx: mx.Context, shapes: list[tuple[int, ...]], dtypes: list[type]) -> Softmax:
        return Softmax()


def network() -> mx.Symbol:
    """Two convolutions, two fully connected layers, and the loss."""
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=32, name="conv1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=64, name="conv2")
    net = mx.sym.Activation(net, act_type="relu", name="relu2")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=128, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu3")
    net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
    return mx.sym.Custom(data=net, label=mx.sym.Variable("label"), op_type="digit_softmax", name="softmax")


def batches(digits: Digits, order: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of equal size in the given order; the remaining rows are left out."""
    for start in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[start:start + BATCH]
        yield digits.images[rows], digits.labels[rows]


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each picture moved by at most one pixel in each direction, which does not change its digit."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(0, 3, (2, len(images)))
    rows, columns = down[:, None] + np.arange(8), right[:, None] + np.arange(8)
    return padded[np.arange(len(images))[:, None, None], 0, rows[:, :, None], columns[:, None, :]][:, None]


def accuracy(executor: mx.Executor, digits: Digits) -> float:
    """The share of pictures read right."""
    right = total = 0
    for images, labels in batches(digits, np.arange(len(digits.labels))):
        (probabilities,) = executor.forward(data=images)
        right += int((probabilities.asnumpy().argmax(axis=1) == labels).sum())
        total += len(labels)
    return right / total


def bar(done: int, total: int, text: str) -> None:
    """A progress bar, on a terminal."""
    if sys.stdout.isatty():
        filled = 24 * done // total
        print(f"\r  [{'█' * filled}{'░' * (24 - filled)}] {text}\033[K", end="", flush=True)


def train(executor: mx.Executor, digits: Digits, held_out: Digits, epochs: int) -> None:
    """Minimise the loss with SGD, a line an epoch."""
    rng = np.random.default_rng(2)
    steps = len(digits.labels) // BATCH
    schedule = mx.lr_scheduler.CosineScheduler(max_update=steps * epochs, base_lr=0.05, final_lr=0.0)
    executor.set_optimizer(mx.optimizer.SGD(
        learning_rate=0.05, momentum=0.9, wd=5e-4, rescale_grad=1 / BATCH, lr_scheduler=schedule))
    for epoch in range(1, epochs + 1):
        start, loss = time.perf_counter(), 0.0
        for step, (images, labels) in enumerate(batches(digits, rng.permutation(len(digits.labels))), start=1):
            (probabilities,) = executor.step(data=shifted(images, rng), label=labels)
            picked = probabilities.asnumpy()[np.arange(BATCH), labels.astype(int)]
            loss -= float(np.log(picked + 1e-10).mean())
            bar(step, steps, f"epoch {epoch}, loss {loss / step:.3f}")
        line = (f"epoch {epoch:2}   loss {loss / steps:.3f}   held out {accuracy(executor, held_out):6.1%}   "
                f"{time.perf_counter() - start:.1f} s")
        print(f"\r{line}\033[K" if sys.stdout.isatty() else line)


def print_some(executor: mx.Executor, held_out: Digits) -> None:
    """Print a few digits side by side, with the network's predictions."""
    images = held_out.images[:BATCH]
    (probabilities,) = executor.forward(data=images)
    read = probabilities.asnumpy()[:5]
    pictures = [[f"{line:16}" for line in (show(image).split("\n") + [""] * 8)[:8]] for image in images[:5]]
    for lines in zip(*pictures):
        print("   ".join(lines).rstrip())
    print("   ".join(f"{f'a {row.argmax()}, {row.max():.0%} sure':16}" for row in read).rstrip())


def save_and_check(executor: mx.Executor, net: mx.Symbol, held_out: Digits, folder: Path) -> None:
    """Write the model in MXNet's files, load it as a stranger would, and compare."""
    params = {f"arg:{name}": value for name, value in executor.arg_dict.items() if name not in ("data", "label")}
    net.save(folder / "digits-symbol.json")
    mx.nd.save(folder / "digits-0001.params", params)

    again = mx.sym.load(folder / "digits-symbol.json")
    loaded = again.simple_bind(executor.arg_dict["data"].context, grad_req="null", data=(BATCH, 1, 8, 8))
    loaded.copy_params_from({name[4:]: value for name, value in mx.nd.load(folder / "digits-0001.params").items()})
    images = held_out.images[:BATCH]
    before, after = executor.forward(data=images)[0], loaded.forward(data=images)[0]
    if not np.array_equal(before.asnumpy(), after.asnumpy()):
        sys.exit("the loaded model answers differently")
    print(f"saved digits-symbol.json and digits-0001.params to {folder}, loaded them back: the same answers")


def main() -> None:
    """Train, show, save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--ctx", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--save", type=Path, help="where to keep the model; a temporary folder by default")
    options = parser.parse_args()
    ctx = mx.gpu(0) if options.ctx == "gpu" else mx.cpu()
    mx.random.seed(2)
    digits, held_out = load()
    net = network()
    executor = net.simple_bind(ctx, data=(BATCH, 1, 8, 8), grad_req={
        name: "write" for name in net.list_arguments() if name not in ("data", "label")})
    initialise = mx.init.Xavier(magnitude=2)
    for name, value in executor.arg_dict.items():
        if name not in ("data", "label"):
            initialise(mx.init.InitDesc(name), value)
    print(f"{len(digits.labels)} digits to learn from, {len(held_out.labels)} held out, on {ctx}\n")
    start = time.perf_counter()
    train(executor, digits, held_out, options.epochs)
    print(f"\n{accuracy(executor, held_out):.1%} of the held-out digits are read right, after "
          f"{time.perf_counter() - start:.0f} s. Some of them:\n")
    print_some(executor, held_out)
    print()
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
        save_and_check(executor, net, held_out, options.save)
    else:
        with tempfile.TemporaryDirectory() as folder:
            save_and_check(executor, net, held_out, Path(folder))


if __name__ == "__main__":
    main()
