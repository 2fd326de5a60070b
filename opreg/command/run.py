"""``opreg run MODEL --input x.npy``: runs a model."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Mapping

import numpy as np

from opreg.core.files import atomic_write
from opreg.core.progress import counted
from opreg.core.spec import is_floating, is_numpy_float
from opreg.errors import ArgumentError, DTypeError, did_you_mean
from opreg.ndarray import formats
from opreg.ndarray.records import Record
from opreg.typing import Array

from . import models, weights
from .output import add_json, columns, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    models.add_model(parser)
    parser.add_argument("--output", metavar="FILE", help="a .npy file for one output, .npz or .safetensors for several")
    parser.add_argument("--gradients", metavar="FILE",
                        help="write the gradients of inputs and weights in training, for output gradients of 1: a "
                             ".npz, .safetensors or .params file")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times, and print the time")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run the model, and write or print the outputs."""
    if options.repeat < 1:
        raise ArgumentError(f"--repeat {options.repeat}: expected at least 1")
    net = models.model(options)
    names = net.symbol.list_outputs()
    if options.output:
        _writable(options.output, len(names))
    if options.gradients:
        _writable(options.gradients, len(net.symbol.list_arguments()), "--gradients", "gradients")
    executor = models.bound(net, models.inputs(net, options.input), options, train=bool(options.gradients))
    seconds = []
    for _ in counted(range(options.repeat), "run", options.repeat):
        begin = time.perf_counter()
        executor.forward(is_train=bool(options.gradients))
        for out in executor.outputs:
            out.wait_to_read()
        seconds.append(time.perf_counter() - begin)
    outputs = {name: out.asnumpy() for name, out in zip(names, executor.outputs)}
    if options.output:
        _write(options.output, outputs)
    if options.gradients:
        executor.backward([out.ones_like() for out in executor.outputs])
        slopes = {name: each.asnumpy() for name, each in executor.grad_dict.items() if each is not None}
        _write(options.gradients, slopes)
    least, median = min(seconds), statistics.median(seconds)
    summary = {name: {"dtype": value.dtype.name, "shape": list(value.shape), **_range(value)}
               for name, value in outputs.items()}
    lines = [columns([(name, value.dtype.name, "x".join(map(str, value.shape)) or "scalar",
                       *[f"{what} {number:.4g}" for what, number in _range(value).items()])
                      for name, value in outputs.items()])]
    if options.repeat > 1:
        lines.append(f"{options.repeat} runs: {least * 1e3:.4g} ms at least, {median * 1e3:.4g} ms in the middle")
    say(options, {"outputs": summary, "runs": options.repeat, "least": least, "median": median}, "\n".join(lines))
    return 0


def _range(value: Array) -> dict[str, float]:
    if not value.size:
        return {}
    wide = value.astype(np.float64)
    return {"least": float(wide.min()), "mean": float(wide.mean()), "most": float(wide.max())}


def _writable(path: str, count: int, option: str = "--output", what: str = "outputs") -> None:
    """Refuse an output file before there is anything to write."""
    endings = (".npy", *weights.ENDINGS[:3])
    ending = os.path.splitext(path)[1]
    if ending not in endings:
        raise ArgumentError(f"{option} {path}: unknown format {ending!r}. {did_you_mean(ending, endings)}")
    if ending == ".npy" and count > 1:
        raise ArgumentError(f"{option} {path}: a .npy file holds one array, and there are {count} {what}; .npz "
                            "holds several")


def _write(path: str, outputs: Mapping[str, Array]) -> None:
    if not path.endswith(".npy"):
        formats.save(path, [Record(value) for value in outputs.values()], list(outputs))
        return
    (value,) = outputs.values()
    if is_floating(value.dtype) and not is_numpy_float(value.dtype):
        raise DTypeError(f"--output {path}: a .npy file has no dtype {value.dtype}; .safetensors has")
    with atomic_write(path) as file:
        np.lib.format.write_array(file, value, allow_pickle=False)
