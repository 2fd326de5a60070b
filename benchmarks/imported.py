"""Networks that PyTorch writes to ONNX, run here and by ONNX Runtime, one thread each.

``python -m benchmarks.imported write FOLDER`` needs PyTorch and writes the models. With ``opreg``,
which binds symbols, ``cell``, which compiles Cells, or ``onnxruntime`` in place of ``write`` it prints the minimal
processor time of a run of each in milliseconds, and the largest difference from PyTorch's results, relative to the
largest element.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

__all__ = ["main"]

#: Runs of each network; the fastest counts.
RUNS = 20


def _write(folder: Path) -> None:
    import torch

    from .imported_networks import NETWORKS

    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # PyTorch's attention, whose operator has no translation
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, shapes) in NETWORKS.items():
        network, given = make().eval(), tuple(torch.randn(shape) for shape in shapes)
        names = [f"x{i}" for i in range(len(given))]
        torch.onnx.export(network, given, folder / f"{name}.onnx", dynamo=False, opset_version=17, input_names=names)
        with torch.no_grad():
            found = network(*given)
        np.savez(folder / f"{name}.npz", y=found.numpy(), **{key: x.numpy() for key, x in zip(names, given)})


def _by_opreg(model: Path, inputs: dict[str, np.ndarray]) -> Callable[[], np.ndarray]:
    import opreg as mx

    symbol, args, states = mx.onnx.import_model(str(model))
    given = {name: mx.nd.array(x) for name, x in inputs.items()}
    executor = symbol.bind(mx.cpu(), {**args, **given}, aux_states=states, grad_req="null")

    def run() -> np.ndarray:
        return executor.forward(is_train=False)[0].asnumpy()

    return run


def _by_cell(model: Path, inputs: dict[str, np.ndarray]) -> Callable[[], np.ndarray]:
    import opreg as mx
    from opreg.cells.jit import jit
    from opreg.cells.tensor import Tensor

    compiled = jit(mx.onnx.import_to_cell(str(model)).set_train(False))
    given = [Tensor(x) for x in inputs.values()]
    return lambda: compiled(*given).asnumpy()


def _by_onnxruntime(model: Path, inputs: dict[str, np.ndarray]) -> Callable[[], np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)[0]


#: Makers of a function that runs a model, by the package that runs it.
RUNTIMES = {"opreg": _by_opreg, "cell": _by_cell, "onnxruntime": _by_onnxruntime}


def _least(run: Callable[[], np.ndarray]) -> float:
    """Milliseconds of processor time of a run."""
    for _ in range(2):
        run()
    took = []
    for _ in range(RUNS):
        begin = time.process_time()
        run()
        took.append(time.process_time() - begin)
    return 1e3 * min(took)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.imported", description=__doc__)
    parser.add_argument("do", choices=["write", *RUNTIMES], help="write the models, or run them by a package")
    parser.add_argument("folder", type=Path, help="where the models are")
    options = parser.parse_args(words)
    if options.do == "write":
        _write(options.folder)
        return
    for model in sorted(options.folder.glob("*.onnx")):
        with np.load(model.with_suffix(".npz")) as file:
            inputs = dict(file)
        want = inputs.pop("y")
        run = RUNTIMES[options.do](model, inputs)
        difference = np.abs(run() - want).max() / np.abs(want).max()
        print(f"{model.stem:12} {_least(run):8.2f} ms, numbers differ by {difference:.0e}", flush=True)


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        if os.environ.get(name) != "1":
            raise SystemExit(f"{name}=1 is wanted: libraries read it when they are loaded")
    main()
