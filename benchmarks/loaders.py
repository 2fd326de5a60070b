"""Batches by two worker processes, of opreg's ``gluon.data`` and of PyTorch.

    python -m benchmarks.loaders --peer PYTHON_WITH_TORCH

Each round starts one process for each library; it loads images of 28 by 28 and of 224 by 224 as bytes, converts them to
floats with channels first, and reads each batch. The first epoch is not counted. The output has milliseconds per epoch,
the minimum and the median of all rounds, and ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

#: Data sets: the shape of an image, the number of images, and the number in a batch.
SIZES = {"28x28": ((28, 28, 1), 8192, 128), "224x224": ((224, 224, 3), 384, 32)}

#: Timed epochs of a process.
EPOCHS = 3


def _images(shape: tuple[int, ...], count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, *shape), np.uint8)


def _opreg(images: np.ndarray, batch: int) -> Iterable[Any]:
    import opreg as mx
    from opreg.gluon.data import ArrayDataset, DataLoader
    from opreg.gluon.data.vision import transforms

    pairs = ArrayDataset(mx.nd.array(images, dtype="uint8"), mx.nd.arange(len(images), dtype="int64"))
    return DataLoader(pairs.transform_first(transforms.ToTensor()), batch, num_workers=2)


def _numpy(images: np.ndarray, batch: int) -> Iterable[Any]:
    from opreg.gluon.data import DataLoader

    return DataLoader(_Pairs(images, lambda image: image), batch, num_workers=2)


class _Pairs:
    """Images as floats with channels first, and their indices."""

    def __init__(self, images: np.ndarray, as_array: Callable[[np.ndarray], Any]):
        self.images, self.as_array = images, as_array

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, idx: int) -> tuple[Any, int]:
        image = np.ascontiguousarray(self.images[idx].transpose(2, 0, 1)).astype(np.float32)
        image /= 255
        return self.as_array(image), idx


def _torch(images: np.ndarray, batch: int) -> Iterable[Any]:
    import torch
    from torch.utils.data import DataLoader

    return DataLoader(_Pairs(images, torch.from_numpy), batch, num_workers=2, persistent_workers=True)


LOADERS = {"opreg, ToTensor": _opreg, "opreg, NumPy": _numpy, "PyTorch, NumPy": _torch}


def measure(name: str) -> dict[str, float]:
    """The minimal milliseconds of an epoch, by size."""
    took = {}
    for size, (shape, count, batch) in SIZES.items():
        loader, times = LOADERS[name](_images(shape, count), batch), []
        for _ in range(1 + EPOCHS):
            start, seen = time.perf_counter(), 0
            for images, places in loader:
                seen += len(places) + int(images[0, 0, 0, 0] > 2)
            times.append(time.perf_counter() - start)
            if seen != count:
                raise RuntimeError(f"{name}: {seen} of {count} samples came")
        took[size] = min(times[1:]) * 1e3
    return took


def main() -> None:
    """Measure in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", default=sys.executable, help="an interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", choices=LOADERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in LOADERS}
    for _ in range(options.rounds):
        for name, rows in found.items():
            python = options.peer if name.startswith("PyTorch") else sys.executable
            done = subprocess.run([python, "-m", "benchmarks.loaders", "--one", name], capture_output=True, text=True,
                                  check=True, cwd=Path(__file__).parent.parent)
            rows.append(json.loads(done.stdout))
    for size in SIZES:
        peer = [row[size] for row in found["PyTorch, NumPy"]]
        for name, rows in found.items():
            mine = [row[size] for row in rows]
            print(f"{size:8} {name:16} least {min(mine):7.1f} ms ({min(mine) / min(peer):.2f}), median "
                  f"{statistics.median(mine):7.1f} ms ({statistics.median(mine) / statistics.median(peer):.2f})")


if __name__ == "__main__":
    main()
