"""The workloads in opreg."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

import opreg as mx
from opreg.symbol.inspect.estimate import Machine, machine_of
from opreg.symbol.inspect.profile import memory_rate, product_rate

from . import device, mindspore_api, mxnet_api
from .workloads import start_time

__all__ = ["CASES", "VERSION", "clock", "expected"]

CONTEXT = device.open_device(mx)
if CONTEXT is not mx.cpu():
    mx.Context.default_ctx = CONTEXT
_bound: list[Any] = []


@functools.cache
def machine() -> Machine:
    """The machine of the cost model: the host with rates measured once here, or the device by its name, with the
    figures of BENCHMARK_MACHINE."""
    if CONTEXT is mx.cpu():
        rates = {"float32": product_rate(CONTEXT, np.dtype(np.float32))}
        return Machine("this host", memory_rate(CONTEXT), rates, launch=0.0, node=0.0)
    found = machine_of(None, CONTEXT.backend.title(CONTEXT.device_id))
    if os.environ.get("BENCHMARK_MACHINE"):
        found = dataclasses.replace(found, **json.loads(Path(os.environ["BENCHMARK_MACHINE"]).read_text()))
    return found


def planned(executor: Any, is_train: bool) -> int:
    """Bytes of a plan without arguments, outputs and gradients."""
    return executor.plan(is_train).nbytes


def expected() -> dict[str, float] | None:
    """The cost of the last bound run, reported once: the executor's seconds by the cost model, the bytes and operations
    of its steps, and the machine's seconds for each of these."""
    if not _bound:
        return None
    bound, of = _bound.pop(), machine()
    if isinstance(bound, int):  # no executor, only a number of bytes
        return {"bytes": bound, "memory": bound / of.memory_rate, "flops": 0.0, "arithmetic": 0.0}
    found = bound.estimate(machine=of)
    moved = found.read + found.written
    return {"eager": found.eager, "replayed": found.replayed, "launches": found.launches, "bytes": moved,
            "memory": moved / of.memory_rate, "flops": found.flops,
            "arithmetic": found.flops / of.product_rates["float32"]}


def wait() -> None:
    """Wait for results, unless the timer does."""
    if not device.behind():
        mx.nd.waitall()


def bound(work: Any) -> None:
    """Remember an executor, or the number of bytes that a run without an executor moves."""
    _bound[:] = [work]


def import_time() -> Any:
    """The import must not load NumPy: programs that only register operators start without it."""
    return lambda: start_time("import opreg, sys; assert 'numpy' not in sys.modules"), None


def first_result() -> Any:
    return lambda: start_time("import opreg; print((opreg.nd.ones((10,)) * 2).asnumpy())"), None


VERSION = mx.__version__
clock = device.clock_of(CONTEXT.xp)
_CASES = {**mxnet_api.cases(mx, planned, wait, bound), **mindspore_api.cases(mx, lambda: None), "import": import_time,
          "first_result": first_result}
CASES = {"opreg": _CASES, "opreg[fast]": _CASES}
