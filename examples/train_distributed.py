"""Learn to read handwritten digits with several processes; each computes a part of every batch.

    opreg launch -n 2 examples/train_distributed.py --folder run
    mpirun -n 64 -hostfile hosts python examples/train_distributed.py --folder run
    opreg launch -n 4 examples/train_distributed.py --folder run --resume

All processes draw the same random values and take their rows of the same batches. So the result does not depend on the
number of processes, except for rounding, even if the run is resumed with another number. Rank 0 writes a checkpoint
after each epoch; a file of it is complete or missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import opreg as mx
from opreg.examples.digits import network, shifted
from opreg.examples.pictures import Digits, load

BATCH = 60


def own_rows(count: int, kv: mx.kv.KVStore) -> slice:
    """This process's part of ``count`` rows."""
    return slice(count * kv.rank // kv.num_workers, count * (kv.rank + 1) // kv.num_workers)


def accuracy(executor: mx.Executor, digits: Digits, kv: mx.kv.KVStore) -> float:
    """The fraction of images that are classified correctly; each process classifies a part of them."""
    size, right, total = executor.arg_dict["data"].shape[0], 0, 0
    for start in range(0, len(digits.labels) - BATCH + 1, BATCH):
        rows = slice(start + kv.rank * size, start + (kv.rank + 1) * size)
        (probabilities,) = executor.forward(data=digits.images[rows])
        right += int((probabilities.asnumpy().argmax(axis=1) == digits.labels[rows]).sum())
        total += BATCH
    return int(mx.distributed.world().allreduce(np.array(right))) / total


def latest(folder: Path) -> int:
    """The last epoch with a checkpoint; 0 without any."""
    return max((int(path.stem.rpartition("-")[2]) for path in folder.glob("digits-*.params")), default=0)


def save(executor: mx.Executor, kv: mx.kv.KVStore, weights: list[str], folder: Path, epoch: int) -> None:
    """Write weights and states of the optimizer. The weights are written last, so if their file exists, the checkpoint
    is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    kv.save_optimizer_states(str(folder / f"digits-{epoch:04}.states"), dump_optimizer=True)
    mx.nd.save(folder / f"digits-{epoch:04}.params", {f"arg:{name}": executor.arg_dict[name] for name in weights})


def begin(executor: mx.Executor, kv: mx.kv.KVStore, weights: list[str], folder: Path | None, epoch: int,
          optimizer: mx.optimizer.Optimizer) -> None:
    """Initialize weights and the optimizer, from a checkpoint if ``epoch`` is not 0."""
    initialise = mx.init.Xavier(magnitude=2)
    for name in weights:
        initialise(mx.init.InitDesc(name), executor.arg_dict[name])
    if epoch and folder is not None:
        for name, value in mx.nd.load(folder / f"digits-{epoch:04}.params").items():
            executor.arg_dict[name.removeprefix("arg:")][:] = value
    arrays = [executor.arg_dict[name] for name in weights]
    kv.broadcast(weights, arrays, out=arrays)  # all begin with the weights of rank 0
    kv.set_optimizer(optimizer)
    if epoch and folder is not None:
        kv.load_optimizer_states(str(folder / f"digits-{epoch:04}.states"))


def train(executor: mx.Executor, kv: mx.kv.KVStore, weights: list[str], digits: Digits, epoch: int) -> float:
    """Train for one epoch; returns the seconds."""
    rng, start = np.random.default_rng(epoch), time.perf_counter()
    order = rng.permutation(len(digits.labels))
    grads = [executor.grad_dict[name] for name in weights]
    arrays = [executor.arg_dict[name] for name in weights]
    for first in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[first:first + BATCH]
        images, own = shifted(digits.images[rows], rng), own_rows(BATCH, kv)
        executor.forward(is_train=True, data=images[own], label=digits.labels[rows][own])
        executor.backward()
        kv.pushpull(weights, grads, out=arrays)
    return time.perf_counter() - start


def main() -> None:
    """Train, save, and print the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--folder", type=Path, help="where checkpoints are written, which all processes see")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    options = parser.parse_args()
    kv = mx.kv.create("dist_sync")
    if BATCH % kv.num_workers:
        parser.error(f"batches of {BATCH} are not divided evenly among {kv.num_workers} processes")
    mx.random.seed(2)
    digits, held_out = load()
    net = network()
    weights = [name for name in net.list_arguments() if name not in ("data", "label")]
    executor = net.simple_bind(mx.cpu(), data=(BATCH // kv.num_workers, 1, 8, 8),
                               grad_req=dict.fromkeys(weights, "write"))
    steps = len(digits.labels) // BATCH * options.epochs
    schedule = mx.lr_scheduler.CosineScheduler(max_update=steps, base_lr=0.1, final_lr=0.0)
    optimizer = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, wd=5e-4, rescale_grad=1 / BATCH,
                                 lr_scheduler=schedule)
    done = latest(options.folder) if options.resume and options.folder else 0
    begin(executor, kv, weights, options.folder, done, optimizer)
    for epoch in range(done + 1, options.epochs + 1):
        seconds = train(executor, kv, weights, digits, epoch)
        right = accuracy(executor, held_out, kv)
        if kv.rank == 0:
            print(f"epoch {epoch:2}   held out {right:6.1%}   {seconds:.1f} s", flush=True)
            if options.folder is not None:
                save(executor, kv, weights, options.folder, epoch)
    right = accuracy(executor, held_out, kv)
    if kv.rank == 0:
        print(f"\n{right:.1%} of the held-out digits are read right, learned by {kv.num_workers} processes")


if __name__ == "__main__":
    main()
