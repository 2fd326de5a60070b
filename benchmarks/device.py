"""The device of the workloads: the host, a GPU, or a stand-in for a GPU at tiny sizes, which only shows that everything
runs."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

__all__ = ["DEVICE", "DEVICES", "behind", "clock_of", "host_clock", "open_device", "sized"]

DEVICES = ("cpu", "gpu", "dry")

#: The device of this process; ``python -m benchmarks`` sets it in the environment of its workers.
DEVICE = os.environ.get("BENCHMARK_DEVICE", "cpu")

#: Sizes for the stand-in, by their names; their times have no meaning.
_TINY = {"batch": 2, "calls": 2, "channels": 4, "count": 2, "heads": 2, "hidden": 4, "n": 16, "ratio": 2, "rows": 4,
         "size": 32, "steps": 2, "tokens": 4, "width": 16, "layers": (8, 4, 10)}

_STAND_IN = contextlib.ExitStack()


def sized(sizes: dict[str, Any]) -> dict[str, Any]:
    """The sizes of a workload as this process runs it."""
    if DEVICE != "dry":
        return sizes
    return {name: min(_TINY.get(name, size), size) if isinstance(size, int) else _TINY.get(name, size)
            for name, size in sizes.items()}


def behind() -> bool:
    """Whether the device computes asynchronously: then a run returns once its work is queued, and the clock waits for
    the result."""
    return DEVICE == "gpu"


def open_device(mx: Any) -> Any:
    """The context in which opreg computes; a stand-in is created here, and remains installed."""
    if DEVICE == "cpu":
        return mx.cpu()
    if DEVICE == "dry":
        from tests.cuda.device import gpus

        _STAND_IN.enter_context(gpus())
        atexit.register(_STAND_IN.close)
    ctx = mx.gpu(0)
    ctx.backend  # noqa: B018 (says what is missing)
    return ctx


def host_clock(run: Callable[[], Any], loops: int) -> float:
    """Seconds of ``runs`` runs, each of which returns once its results are available."""
    start = time.perf_counter()
    for _ in range(loops):
        run()
    return time.perf_counter() - start


def clock_of(xp: Any) -> Callable[[Callable[[], Any], int], float]:
    """The function that times runs on arrays of a module: by two events on a GPU, otherwise by the host's clock."""
    if not behind():
        return host_clock

    def clock(run: Callable[[], Any], loops: int) -> float:
        begin, end = xp.cuda.Event(), xp.cuda.Event()
        begin.record()
        for _ in range(loops):
            run()
        end.record()
        end.synchronize()
        return xp.cuda.get_elapsed_time(begin, end) / 1e3

    return clock
