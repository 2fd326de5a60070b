"""The workloads in opreg."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import opreg as mx
from opreg.symbol.inspect.estimate import machine_of

from . import device, mindspore_api, mxnet_api
from .workloads import start_time

__all__ = ["CASES", "VERSION", "clock", "expected"]

CONTEXT = device.open_device(mx)
if CONTEXT is not mx.cpu():
    mx.Context.default_ctx = CONTEXT
_bound: list[Any] = []

#: The machine of the cost model: the one that the device's name says, with the figures of BENCHMARK_MACHINE.
MACHINE = machine_of(None, CONTEXT.backend.title(CONTEXT.device_id))
if os.environ.get("BENCHMARK_MACHINE"):
    MACHINE = dataclasses.replace(MACHINE, **json.loads(Path(os.environ["BENCHMARK_MACHINE"]).read_text()))


def planned(executor: Any, is_train: bool) -> int:
    """Bytes of a plan beside arguments, outputs and gradients."""
    return executor.plan(is_train).nbytes


def expected() -> dict[str, float] | None:
    """Seconds of a run of the executor that was bound last, as the cost model has them, with its launches; once."""
    if not _bound:
        return None
    found = _bound.pop().estimate(machine=MACHINE)
    return {"eager": found.eager, "replayed": found.replayed, "launches": found.launches}


def wait() -> None:
    """Wait for results, unless the clock does."""
    if not device.behind():
        mx.nd.waitall()


def bound(executor: Any) -> None:
    """Take note of an executor."""
    _bound[:] = [executor]


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
