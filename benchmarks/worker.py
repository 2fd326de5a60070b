"""The process of one framework: it reads requests, one per line, and answers with measurements.

Started by ``python -m benchmarks`` with the framework's own interpreter, as ``worker.py MODULE COLUMN THREADS``.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from .device import host_clock, sized
from .workloads import WORKLOADS, Workload

__all__ = ["main", "measure", "resident", "stay_on"]


def measure(run: Callable[[], Any], workload: Workload, seconds: float,
            clock: Callable[[Callable[[], Any], int], float] = host_clock) -> list[float]:
    """Seconds (or bytes) of single runs, as many as the time allows; short runs are timed in batches of some
    milliseconds."""
    begin = time.perf_counter()
    if workload.kind == "own":
        figures = [run()]
        while time.perf_counter() - begin < seconds:
            figures.append(run())
        return figures
    first = clock(run, 1)
    figures, loops = [first] if first > seconds else [], max(1, int(0.004 / max(first, 1e-6)))
    while not figures or time.perf_counter() - begin < seconds:
        figures.append(clock(run, loops) / loops)
    return [figure / workload.sizes.get("calls", 1) for figure in figures]


def resident() -> int:
    """The peak memory of this process in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def stay_on(count: int) -> None:
    """Use only ``threads`` processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def main() -> None:
    module, column, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # output of a framework must not mix with answers
    stay_on(int(threads))

    def answer(**what: Any) -> None:
        print(json.dumps(what), file=answers, flush=True)

    try:
        framework = importlib.import_module(f"benchmarks.{module}")
        import numpy
    except Exception as error:
        return answer(error=f"{type(error).__name__}: {error}")
    cases, ready = framework.CASES[column], {}
    answer(version=framework.VERSION, python=platform.python_version(), numpy=numpy.__version__, cases=list(cases))
    workloads = {each.key: each._replace(sizes=sized(each.sizes)) for each in WORKLOADS}
    clock, expected = getattr(framework, "clock", host_clock), getattr(framework, "expected", lambda: None)
    for line in sys.stdin:
        request = json.loads(line)
        workload, check = workloads[request["key"]], None
        try:
            if workload.kind == "peak":
                before = resident()
                run, value = cases[workload.key](**workload.sizes)
                for _ in range(3):
                    run()
                answer(figures=[resident() - before], check=value())
                continue
            if workload.key not in ready:
                ready[workload.key], value = cases[workload.key](**workload.sizes)
                figures = [ready[workload.key]()]
                check = None if value is None else value()
                if workload.kind == "timed":  # this first run, in which frameworks compile, is not timed
                    figures = measure(ready[workload.key], workload, request["seconds"], clock)
            else:
                figures = measure(ready[workload.key], workload, request["seconds"], clock)
            answer(figures=figures, check=check, expected=expected())
        except AttributeError as error:  # another version of the framework may have this function
            answer(error=f"not there yet: {error}")
        except Exception as error:
            answer(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
