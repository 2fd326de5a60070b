"""The workloads of inference in ONNX Runtime: opreg writes its graphs as models of ONNX."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime

import opreg as mx

from .mxnet_api import cases
from .workloads import start_time, total

__all__ = ["CASES", "VERSION"]

_INPUTS = {"x", "data", "query", "key", "value"}
_bound: list[Any] = []


def planned(executor: Any, is_train: bool) -> int:
    """Bytes of a plan, which ONNX Runtime does not report."""
    raise NotImplementedError


def session_of(case: Callable) -> Callable:
    """A workload of opreg with its executor written as a model, which ONNX Runtime runs."""
    def model(**sizes: Any) -> Any:
        case(**sizes)
        executor, last = _bound.pop(), []
        given = {name: array.asnumpy() for name, array in executor.arg_dict.items() if name in _INPUTS}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
        with tempfile.TemporaryDirectory() as folder:
            path = mx.onnx.export(executor, str(Path(folder) / "model.onnx"), inputs=list(given))
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

        def run() -> None:
            last[:] = session.run(None, given)

        return run, lambda: total(*last)

    return model


def import_time() -> Any:
    return lambda: start_time("import onnxruntime"), None


VERSION = onnxruntime.__version__
_CASES = cases(mx, planned, lambda: None, _bound.append)
CASES = {"ONNX Runtime": {"import": import_time, **{key: session_of(_CASES[key]) for key in (
    "elementwise", "gelu", "conv_inference", "attention", "attention_long", "resnet_1", "resnet_8",
    "few_rows")}}}
