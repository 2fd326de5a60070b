"""Damaged files: ONNX models and files of weights, changed at random and read.

``python -m tests.onnx.damage 20000`` reads 20,000 damaged files, of each format in turn, and counts those that are
read and those that are refused with an error of this library. Any other error, more than 1 GiB of memory, or more than
twenty seconds for one is printed with the numbers that make it again, and the program ends with 1.
"""

from __future__ import annotations

import collections
import contextlib
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import opreg as mx
from opreg.command import main
from opreg.errors import OpError
from opreg.onnx import import_model, import_to_cell

from . import test_estimators, test_fused, test_import

#: Seconds for one file, and bytes of memory above what the program has at first.
SECONDS, BYTES = 20.0, 1 << 30


def models() -> list[bytes]:
    """Small models: layers, loops, branches, quantized values, attention, and models of tables."""
    fused = [test_fused.made(row, ["y"])[0] for row in test_fused.ROWS[::7]]
    fitted = [test_estimators.made("SVMClassifier", 2, classlabels_ints=[4, 5, 6], **test_estimators.SUPPORT),
              test_estimators.made("TreeEnsembleRegressor", **test_estimators.trees(
                  "BRANCH_LEQ", "BRANCH_LT", **test_estimators.weighted("target", [0] * 5)))]
    plain = [test_import.dense("n"), test_import.convolution(), test_import.counted(), test_import.conditional(),
             test_import.scanned(), test_import.counting(3)]
    return [made.SerializeToString() for made in (*plain, *fused, *fitted)]


def weights(folder: Path) -> dict[str, bytes]:
    """A file of weights in each format."""
    draws = np.random.default_rng(0)
    arrays = {f"layer{i}.weight": mx.nd.array(draws.standard_normal((3, i + 1)), dtype=dtype)
              for i, dtype in enumerate(("float32", "float16", "int8", "float64"))}
    mx.nd.save(str(folder / "a.params"), arrays)
    for ending in ("npz", "safetensors", "ckpt", "pt", "pth"):
        with contextlib.redirect_stdout(None):
            main(["convert", str(folder / "a.params"), str(folder / f"a.{ending}")])
    return {path.suffix[1:]: path.read_bytes() for path in sorted(folder.iterdir())}


def changed(data: bytes, draws: random.Random) -> bytes:
    """The content with one to three changes: mostly single bytes, otherwise runs, or parts that are cut or doubled."""
    for _ in range(draws.randint(1, 3)):
        at, count = draws.randrange(len(data)), draws.choice((1, 2, 4, 8, 64))
        kind = draws.random()
        if kind < 0.6:
            new = draws.choice((0, 1, 0x7f, 0x80, 0xff, data[at] ^ 1 << draws.randrange(8), draws.randrange(256)))
            data = data[:at] + bytes([new]) + data[at + 1:]
        elif kind < 0.95:
            piece = draws.choice((draws.randbytes(count), b"\xff" * count, b"\0" * count, data[at:at + count] * 2, b""))
            data = data[:at] + piece + data[at + draws.choice((0, len(piece), count)):]
        else:
            data = data[:at]
        data = data or b"\0"
    return data


#: Numbers at the limits of a model's valid values.
EDGES = (0, 1, -1, 2, 3, 7, 255, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -1 << 63)


def misled(data: bytes, draws: random.Random) -> bytes:
    """A model in a valid format, with one to three wrong fields."""
    proto = test_import.onnx.ModelProto.FromString(data)
    for _ in range(draws.randint(1, 3)):
        place: Any = proto.graph
        while True:  # a message somewhere in the graph
            inner = [each for field, value in place.ListFields() if field.message_type is not None
                     for each in (value if hasattr(value, "__len__") else [value])]
            if not inner or (place is not proto.graph and draws.random() < 0.4):
                break
            place = draws.choice(inner)
        fields = [field for field, _ in place.ListFields() if field.message_type is None]
        if not fields:
            continue
        field = draws.choice(fields)
        if field.name in ("input", "output", "name") and draws.random() < 0.9:
            continue  # most names that change leave a value without a node
        value = getattr(place, field.name)
        one = value[draws.randrange(len(value))] if hasattr(value, "append") else value
        new: Any = (draws.choice(EDGES) if isinstance(one, int) else draws.choice((0.0, -1.5, 1e30, float("nan")))
                    if isinstance(one, float) else changed(one or b"\0", draws) if isinstance(one, bytes)
                    else draws.choice(("", "x", "y", one[:-1], one + "0", "NOTSET", "Relu", "Loop")))
        with contextlib.suppress(ValueError, TypeError):  # numbers that the field cannot hold
            if not hasattr(value, "append"):
                setattr(place, field.name, new)
            elif draws.random() < 0.3:
                del value[draws.randrange(len(value))]
            elif draws.random() < 0.3:
                value.append(new)
            else:
                value[draws.randrange(len(value))] = new
    return proto.SerializeToString()


def read_model(data: bytes) -> None:
    """Reads a model as a symbol and as a Cell, and runs the Cell unless it has a loop, which might have many rounds."""
    symbol, _, _ = import_model(data)
    symbol.list_arguments()
    cell = import_to_cell(data)
    graph, given = cell.model.graph, []
    for name in graph.inputs:
        kind = graph.infos[name].type.tensor_type
        shape = [dim.dim_value if 0 < dim.dim_value <= 64 else 2 for dim in kind.shape.dim]
        given.append(mx.Tensor(np.ones(shape, test_import.helper.tensor_dtype_to_np_dtype(kind.elem_type or 1))))
    if not any(node.op_type == "Loop" for node in graph.nodes):
        cell(*given)


def run(count: int, seed: int = 0) -> int:
    """Reads many damaged files; returns the number of those that did harm."""
    warnings.simplefilter("ignore")
    harm, seen = 0, collections.Counter[tuple[str, str]]()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sound: list[tuple[str, bytes, Callable[[bytes], Any]]] = [("onnx", data, read_model) for data in models()]
        for ending, data in weights(folder).items():
            path = folder / f"b.{ending}"
            sound += [(ending, data, lambda content, path=path: (path.write_bytes(content), mx.nd.load(str(path))))] * 2
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(seed, seed + count):
            draws = random.Random(number)
            kind, data, read = sound[number % len(sound)]
            start = time.process_time()
            try:
                read((misled if kind == "onnx" and draws.random() < 0.5 else changed)(data, draws))
                answer = "read"
            except OpError:
                answer = "refused"
            except Exception:
                answer, harm = "other", harm + 1
                print(f"{kind}, number {number}:\n{traceback.format_exc(limit=-4)}")
            spent = time.process_time() - start
            slowest = max(slowest, spent)
            if spent > SECONDS:
                harm += 1
                print(f"{kind}, number {number}: {spent:.1f} s")
            seen[kind, answer] += 1
    for kind in sorted({kind for kind, _ in seen}):
        print(f"{kind:12}" + "".join(f"{seen[kind, answer]:8} {answer}" for answer in ("read", "refused", "other")))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    print(f"the slowest took {slowest:.2f} s, memory grew by {grown} MiB")
    return harm


def bound() -> None:
    """Limits the memory of this process to its present size plus ``BYTES``."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))


if __name__ == "__main__":
    bound()
    sys.exit(run(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
