"""The processes that run the frameworks, and the requests to them."""

from __future__ import annotations

import functools
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from .environments import COLUMNS
from .processors import without
from .workloads import Workload

__all__ = ["ROOT", "Cell", "Worker", "interpreter", "variables"]

ROOT = Path(__file__).resolve().parents[1]

#: The most seconds between two cells: thread pools spin for a while after their work, which must not slow down the next
#: cell. If the system reports the processor time of a process, the wait ends when all processes are idle.
PAUSE = 0.3
#: The seconds between two checks, and the share of processor time that an idle process may use.
_LOOK, _REST = 0.01, 0.02


def interpreter(column: str, options: Any) -> Path:
    """The Python of a column."""
    environment = COLUMNS[column][1]
    own = environment and not options.here
    return options.environments / environment / "bin" / "python" if own else Path(sys.executable)


@functools.cache
def _processor_limits(python: Path, processor: tuple[str, ...]) -> dict[str, str]:
    """The environment variables that limit the libraries of an interpreter to fewer processor features."""
    if not processor:
        return {}
    printed = subprocess.run([python, "-m", "benchmarks.processors", *processor], cwd=ROOT, text=True, check=True,
                             stdout=subprocess.PIPE, env={**without(os.environ), "PYTHONPATH": str(ROOT)}).stdout
    return json.loads(printed)


def python_path(here: bool) -> str:
    """The module path of a process: this tree, and what this program adds, if both have one interpreter."""
    beside = os.environ.get("PYTHONPATH", "") if here else ""
    return os.pathsep.join([str(ROOT), *filter(None, [beside])])


def variables(python: Path, options: Any, threads: int, jit: str) -> dict[str, str]:
    """The environment of a process; ``jit`` is opreg's compile mode, by default at the first run, as in other
    compilers."""
    count = str(threads)
    found = {**without(os.environ), "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count,
             "PYTHONPATH": python_path(options.here), "OPREG_JIT": jit, "BENCHMARK_DEVICE": options.device,
             "BENCHMARK_MACHINE": str(options.machine.absolute()) if options.machine else "",
             "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **_processor_limits(python, tuple(options.processor))}
    if options.device != "gpu":
        found["JAX_PLATFORMS"] = "cpu"
    if options.processor:
        found["OPREG_CACHE_DIR"] = options.cache  # results of trials there are not valid for another processor
    return found


class Worker:
    """The process that runs one framework.

    Attributes
    ----------
    missing : str
        The reason why the framework is missing, or an empty string.
    facts : dict
        Versions, and the keys of the workloads that it has.
    """

    def __init__(self, column: str, options: Any):
        self.column, self.options = column, options
        self.left = options.budget / len(options.columns)  # seconds
        self.python = interpreter(column, options)
        self.missing = ""
        self.facts: dict[str, Any] = {}
        self.process: subprocess.Popen | None = None
        if not self.python.exists():
            self.missing = "no environment of that name; --setup makes it"
        else:
            self._start()

    def _start(self, jit: str = "numba") -> None:
        threads = self.options.threads
        self.process = subprocess.Popen(
            [self.python, "-m", "benchmarks.worker", COLUMNS[self.column][0], self.column, str(threads)], cwd=ROOT,
            env=variables(self.python, self.options, threads, jit), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.facts = self._answer()
        self.missing = self.facts.get("error", "")

    def can(self, workload: Workload) -> bool:
        """Whether the framework has the workload."""
        return not self.missing and workload.key in self.facts["cases"]

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request: ``figures`` and ``check``, or ``error``."""
        if self.left <= 0:
            return {"error": "no time was left"}
        begin = time.perf_counter()
        if self.process is None:
            self._start()
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)  # type: ignore[union-attr]
        except BrokenPipeError:
            pass  # the process has ended without an answer
        answer = self._answer()
        self.left -= time.perf_counter() - begin
        return answer

    def ask_alone(self, **request: Any) -> dict[str, Any]:
        """The answer of a new process in opreg's default compile mode."""
        other = object.__new__(Worker)
        other.__dict__.update(self.__dict__)
        other._start("auto")
        try:
            return {"error": other.missing} if other.missing else other.ask(**request)
        finally:
            self.left = other.left
            other.stop()

    def _answer(self) -> dict[str, Any]:
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.options.limit)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.stop()
        return {"error": "the process ended" if ready else f"not within {self.options.limit:g} s"}

    def rest(self) -> None:
        """Wait until the process is idle, but only for a limited time."""
        if self.process is None or self.options.device != "cpu":
            return
        end, before = time.perf_counter() + PAUSE, self._time()
        while time.perf_counter() < end:
            time.sleep(_LOOK)
            now = self._time()
            if before is not None and now is not None and now - before < _REST * _LOOK:
                return
            before = now

    def _time(self) -> float | None:
        """The processor time of the process in seconds; None where Linux does not report it."""
        try:
            return time.clock_gettime(~self.process.pid << 3 | 2)  # type: ignore[union-attr]
        except (AttributeError, OSError, OverflowError):
            return None

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Cell(NamedTuple):
    """The measurements of one framework on one workload."""

    figures: list[float]
    check: list[float]
    errors: list[str]
    expected: list[dict[str, float]]

    def ask(self, worker: Worker, workload: Workload, options: Any) -> None:
        enough = workload.kind in ("once", "peak") or (self.figures and self.figures[0] > options.long)
        if self.errors or (self.figures and (enough or worker.left <= 0)):
            return
        ask = worker.ask_alone if workload.kind == "peak" else worker.ask
        answer = ask(key=workload.key, seconds=options.seconds)
        worker.rest()
        if "error" in answer:
            self.errors.append(answer["error"])
            return
        self.figures.extend(answer["figures"])
        if answer["check"] is not None and not self.check:
            self.check.append(answer["check"])
        if answer.get("expected") and not self.expected:
            self.expected.append(answer["expected"])
