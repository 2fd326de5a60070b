"""Measure opreg beside other frameworks on this machine, and write docs/performance.md.

``python -m benchmarks --setup`` makes the environments of the peers; ``python -m benchmarks`` measures. Every framework
runs in a process of its own and waits there while others are measured; a round gives every cell of the table its turn,
so that a busy moment of the machine does not fall on one framework alone. ``--device gpu`` measures on a GPU, beside
what ``executor.estimate()`` expects there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import select
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from opreg.core.processor import processor

from .device import DEVICES
from .workloads import WORKLOADS, Workload

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: python -m benchmarks writes what follows -->", "<!-- end of what was measured -->"

#: The interpreter and the packages of each environment.
ENVIRONMENTS = {
    "fast": (sys.executable, ["numpy", "numba>=0.60", "onednn-cpu-gomp>=2023.2", "pillow"]),
    "mxnet": ("python3.11", ["mxnet==1.9.1", "numpy==1.23.5"]),
    "torch": (sys.executable, ["torch==2.13.0", "numpy"]),
    "jax": (sys.executable, ["jax"]),
    "pytensor": (sys.executable, ["pytensor==3.0.7"]),
    "mindspore": ("python3.11", ["mindspore==2.10.0", "numpy<2"]),
}

#: Frameworks that trace a program, Python bodies of operators included, and run what they have compiled of it.
COMPILED = ("torch.compile", "JAX", "PyTensor", "MindSpore jit")

#: Columns that are no peers.
OURS = ("opreg", "opreg[fast]")

#: Seconds between two cells: thread pools turn idly for a while after their work, which is not to be in another's time.
PAUSE = 0.3

#: Columns of the table, with their modules and environments.
COLUMNS = {
    "opreg": ("run_opreg", ""),
    "opreg[fast]": ("run_opreg", "fast"),
    "MXNet": ("run_mxnet", "mxnet"),
    "PyTorch": ("run_torch", "torch"),
    "torch.compile": ("run_torch", "torch"),
    "JAX": ("run_jax", "jax"),
    "PyTensor": ("run_pytensor", "pytensor"),
    "MindSpore": ("run_mindspore", "mindspore"),
    "MindSpore jit": ("run_mindspore", "mindspore"),
}


#: Columns that a GPU has, as a stand-in for one has; others leave it to the host.
ON_DEVICE = ("opreg", "PyTorch", "torch.compile", "JAX")


def main() -> None:
    options = _options()
    if options.setup:
        _set_up(options.environments)
        return
    workers = {name: Worker(name, options) for name in options.columns}
    cells: dict[tuple[str, str], Cell] = {}
    try:
        for number in range(options.rounds):
            for workload in options.workloads:
                for name, worker in workers.items():
                    if not worker.missing:
                        cell = cells.setdefault((workload.key, name), Cell([], [], [], []))
                        cell.ask(worker, workload, options)
                print(f"round {number + 1} of {options.rounds}: {workload.title}", file=sys.stderr)
    except KeyboardInterrupt:  # what has been measured is told
        options.whole = False
    finally:
        for worker in workers.values():
            worker.stop()
    report = _report(options, workers, cells)
    print(report)
    if options.out:
        _keep(options, workers, cells, report)
    elif options.whole and not options.print:
        _write(report)


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--setup", action="store_true", help="make the peers' environments, and stop")
    parser.add_argument("--environments", type=Path, metavar="FOLDER",
                        default=Path("~/.cache/opreg-benchmarks").expanduser(),
                        help="where the peers' environments are (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each cell is measured (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long at a time (%(default)s)")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a peer is given up (%(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="processor cores and threads for each framework (%(default)s)")
    parser.add_argument("--print", action="store_true", help="print the table, and leave the page as it is")
    keys = [workload.key for workload in WORKLOADS]
    parser.add_argument("--only", nargs="+", choices=keys, metavar="WORKLOAD", default=keys,
                        help=f"some of {', '.join(keys)}; the page is not written then")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, metavar="COLUMN", default=list(COLUMNS),
                        help=f"some of {', '.join(COLUMNS)}; the page is not written then")
    parser.add_argument("--device", choices=DEVICES, default="cpu",
                        help="a GPU, or dry: a stand-in for one at tiny sizes, whose times mean nothing (%(default)s)")
    parser.add_argument("--here", action="store_true", help="run all frameworks with this interpreter")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS",
                        help="what all of it may take, shared by the columns; the rest is left out (%(default)s)")
    parser.add_argument("--machine", type=Path, metavar="FILE",
                        help="figures of the device as benchmarks.gpu_questions found them; others', by default")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="write performance.md and performance.json there, and leave the page as it is")
    options = parser.parse_args()
    options.whole = options.only is keys and len(options.columns) == len(COLUMNS) and options.device == "cpu"
    options.workloads = [workload for workload in WORKLOADS if workload.key in options.only]
    if options.device != "cpu":
        options.columns = [name for name in options.columns if name in ON_DEVICE]
        options.workloads = [each for each in options.workloads if each.kind == "timed" and each.key != "chain"]
    return options


def _set_up(folder: Path) -> None:
    for name, (python, packages) in ENVIRONMENTS.items():
        interpreter = shutil.which(python)
        if interpreter is None:
            print(f"{name}: needs {python}, which is not there")
            continue
        place = folder / name
        for command in ([interpreter, "-m", "venv", place],
                        [place / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", *packages]):
            done = subprocess.run([str(word) for word in command], check=False)
            if done.returncode:
                print(f"{name}: {shlex.join(map(str, command))} failed")
                break


# ------------------------------------------------------------------------------------------------- measuring


class Worker:
    """The process that holds one framework.

    Attributes
    ----------
    missing : str
        Why there is none, or nothing.
    facts : dict
        Versions.
    """

    def __init__(self, column: str, options: Any):
        self.column, self.threads, self.limit, self.device = column, options.threads, options.limit, options.device
        self.machine = str(options.machine.absolute()) if options.machine else ""
        self.left = options.budget / len(options.columns)  # seconds
        self.module, environment = COLUMNS[column]
        own = environment and not options.here
        self.python = options.environments / environment / "bin" / "python" if own else Path(sys.executable)
        self.missing = ""
        self.facts: dict[str, Any] = {}
        self.process: subprocess.Popen | None = None
        if not self.python.exists():
            self.missing = f"no environment {self.python.parent.parent}; --setup makes it"
        else:
            self._start()

    def _start(self, jit: str = "numba") -> None:
        """Start the process; opreg compiles at the first run, as other compilers do, or as ``jit`` says."""
        threads = str(self.threads)
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads,
                       "MKL_NUM_THREADS": threads, "PYTHONPATH": str(ROOT), "OPREG_JIT": jit,
                       "BENCHMARK_DEVICE": self.device, "BENCHMARK_MACHINE": self.machine,
                       "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        if self.device != "gpu":
            environment["JAX_PLATFORMS"] = "cpu"
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # they would choose kernels for another processor
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [self.python, "-m", "benchmarks.worker", self.module, self.column, threads], cwd=ROOT, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.facts = self._answer()
        self.missing = self.facts.get("error", "")

    def ask(self, alone: bool = False, **request: Any) -> dict[str, Any]:
        """The answer to a request, ``figures`` and ``check`` or ``error``; ``alone``, that of a process of its own."""
        if alone:
            self.stop()
        if self.left <= 0:
            return {"error": "no time was left"}
        begin = time.perf_counter()
        if self.process is None:
            self._start("auto" if alone else "numba")
        time.sleep(PAUSE if self.device == "cpu" else 0)
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)  # type: ignore[union-attr]
        except BrokenPipeError:
            pass  # it has died; there is no answer
        answer = self._answer()
        self.left -= time.perf_counter() - begin
        if alone:
            self.stop()
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], self.limit)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.stop()
        return {"error": "the process ended" if ready else f"not within {self.limit:g} s"}

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


class Cell(NamedTuple):
    """What one framework did of one workload."""

    figures: list[float]
    check: list[float]
    errors: list[str]
    expected: list[dict[str, float]]

    def ask(self, worker: Worker, workload: Workload, options: Any) -> None:
        settled = workload.kind in ("once", "peak") or (self.figures and self.figures[0] > 20 * options.seconds)
        if self.errors or (self.figures and (settled or worker.left <= 0)):
            return
        answer = worker.ask(workload.kind == "peak", key=workload.key, seconds=options.seconds)
        if "error" in answer:
            self.errors.append(answer["error"])
            return
        self.figures.extend(answer["figures"])
        if answer["check"] is not None and not self.check:
            self.check.append(answer["check"])
        if answer.get("expected") and not self.expected:
            self.expected.append(answer["expected"])


# ------------------------------------------------------------------------------------------------- reporting

SCALE = {"µs": 1e6, "ms": 1e3, "MB": 2 ** -20}


def _number(value: float, unit: str) -> str:
    value *= SCALE[unit]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _report(options: Any, workers: dict[str, Worker], cells: dict[tuple[str, str], Cell]) -> str:
    """Markdown: the table, what was left out and why, how it was measured."""
    names = [name for name, worker in workers.items() if not worker.missing]
    hosted = options.device == "cpu"
    more = ["fast / best"] if hosted else ["launches", "expected one by one", "expected replayed"]
    titles = ["work", "unit", *names, "ours / best not compiled", "ours / best", *more]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    remarks = [f"{name} was not measured: {worker.missing}." for name, worker in workers.items() if worker.missing]
    for workload in options.workloads:
        row = {name: cells.get((workload.key, name)) or Cell([], [], [], []) for name in names}
        agreed = _agreed(row)
        for name, cell in row.items():
            if cell.errors:
                remarks.append(f"{name}, {workload.title}: {cell.errors[0].splitlines()[0][:200]}.")
            elif name not in agreed:
                remarks.append(f"{name}, {workload.title}: refused, its check value is {cell.check[0]:.6g}; the middle "
                               f"of all is {statistics.median(each for c in row.values() for each in c.check):.6g}.")
        valid = {name: cell.figures for name, cell in row.items() if name in agreed and cell.figures}
        more = [_ratio(valid, ours="opreg[fast]")] if hosted else _expected(row, workload)
        shown = [workload.title, workload.unit, *[_cell(valid.get(name), workload) for name in names],
                 _ratio(valid, COMPILED), _ratio(valid), *more]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join([*lines, "", *(f"- {remark}" for remark in remarks), *([""] if remarks else []),
                      *_how(options, workers)])


def _agreed(row: dict[str, Cell]) -> set[str]:
    """The frameworks whose check value is what most have, to a thousandth; all where there is none."""
    values = [cell.check[0] for cell in row.values() if cell.check]
    middle = statistics.median(values) if values else 0.0
    return {name for name, cell in row.items()
            if not cell.errors and (not cell.check or abs(cell.check[0] - middle) <= 1e-3 * abs(middle))}


def _cell(figures: list[float] | None, workload: Workload) -> str:
    if not figures:
        return "–"
    least = _number(min(figures), workload.unit)
    return least if len(figures) == 1 else f"{least} ({_number(statistics.median(figures), workload.unit)})"


def _ratio(valid: dict[str, list[float]], without: tuple[str, ...] = (), ours: str = "opreg") -> str:
    peers = [min(figures) for name, figures in valid.items() if name not in (*OURS, *without)]
    return f"{min(valid[ours]) / min(peers):.2f}" if peers and ours in valid else "–"


def _expected(row: dict[str, Cell], workload: Workload) -> list[str]:
    """What the cost model says of our executor."""
    found = [each for name, cell in row.items() if name in OURS for each in cell.expected]
    return [f"{found[0]['launches']:.0f}", _number(found[0]["eager"], workload.unit),
            _number(found[0]["replayed"], workload.unit)] if found else ["–"] * 3


def _how(options: Any, workers: dict[str, Worker]) -> list[str]:
    versions = "; ".join(f"{name} {worker.facts['version']} (Python {worker.facts['python']}, NumPy "
                         f"{worker.facts['numpy']})" for name, worker in workers.items() if not worker.missing)
    command = "python -m benchmarks" + (f" --rounds {options.rounds} --seconds {options.seconds:g} "
                                        f"--threads {options.threads}")
    if options.device != "cpu":
        command += f" --device {options.device}"
    beside = {"cpu": "", "gpu": " Between two events on the device; what is expected is of the executor alone, by "
                                + ("figures measured there." if options.machine else
                                   "the figures of a Hopper that others measured."),
              "dry": " **These times mean nothing**: a stand-in for a GPU, tiny sizes."}[options.device]
    return [f"Least time, and the median in brackets, of {options.rounds} rounds; the ratio is of the least.{beside} "
            f"Measured on {datetime.date.today()} with `{command}` on {_machine()}, {options.threads} threads for "
            f"everyone. {versions}."]


def _machine() -> str:
    """The processor, with what times depend on."""
    found = processor()
    caches = f"{found.l1 >> 10} KiB and {found.l2 >> 10} KiB of cache each, the last of {found.l3 >> 20} MiB"
    return f"{found.name}, {found.cores} cores with {caches} ({', '.join(found.features)}), {platform.system()}"


def _keep(options: Any, workers: dict[str, Worker], cells: dict[tuple[str, str], Cell], report: str) -> None:
    """The table and all figures, in a folder."""
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "performance.md").write_text(report + "\n", encoding="utf-8")
    (options.out / "performance.json").write_text(json.dumps({
        "device": options.device, "columns": {name: worker.missing or worker.facts for name, worker in workers.items()},
        "cells": [{"work": key, "column": name, **cell._asdict()} for (key, name), cell in cells.items()]}, indent=1),
        encoding="utf-8")


def _write(report: str) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{report}\n\n{END}{after}", encoding="utf-8")
    print(f"written to {PAGE.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
