"""Measure opreg beside other frameworks on this machine, and write benchmarks/journal.md and the ratios in
docs/performance.md.

``python -m benchmarks --setup`` makes the environments of the peers; ``python -m benchmarks`` measures. Each framework
runs in its own process, and waits while others are measured. A round measures every cell of the table once, so a busy
moment of the machine does not affect only one framework. Results are stored in ``benchmarks/results``, a file for each
kind of processor; the command prints the differences from the last results.
``--processor`` measures as on a processor with fewer features. ``--device gpu`` measures on a GPU, beside what
``executor.estimate()``
expects there.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from opreg.core.processor import read

from . import page
from .device import DEVICES
from .environments import COLUMNS, ON_DEVICE, other_version, set_up
from .growth import grown
from .measuring import ROOT, Cell, Worker
from .processors import LESSER
from .results import FOLDER, Results, Row, changes, load, renewed, rounded
from .workloads import WORKLOADS

#: The word of ``--only`` for the measurements of growth.
GROWTH = "growth"

#: For the full benchmark and the quick one: rounds, seconds of one measurement, the timeout of a peer in seconds, and
#: the seconds of a run above which one round is enough.
WHOLE, QUICK = (5, 0.3, 120.0, 6.0), (3, 0.1, 30.0, 0.5)


def main() -> None:
    options = _options()
    if options.setup:
        set_up(options.environments)
        return
    with tempfile.TemporaryDirectory() as options.cache:
        results = _measured(options)
    report = page.section(results)
    print(report)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "performance.md").write_text(report + "\n", encoding="utf-8")
        results.save(options.out / "performance.json")
    else:
        _compare_and_keep(results, options.whole and not options.print, options.renew)


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--setup", action="store_true", help="make the peers' environments, and stop")
    parser.add_argument("--environments", type=Path, metavar="FOLDER",
                        default=Path("~/.cache/opreg-benchmarks").expanduser(),
                        help="where the peers' environments are (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="half the time, and more scatter: "
                        "{} rounds, {} s at a time, a limit of {:g} s, one round above {:g} s".format(*QUICK))
    parser.add_argument("--rounds", type=int, help=f"how often each cell is measured ({WHOLE[0]})")
    parser.add_argument("--seconds", type=float, help=f"how long at a time ({WHOLE[1]})")
    parser.add_argument("--limit", type=float, help=f"seconds after which a peer is given up ({WHOLE[2]:g})")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="processor cores and threads for each framework (%(default)s)")
    parser.add_argument("--processor", nargs="+", choices=LESSER, metavar="NAME", default=[],
                        help=f"as on a lesser processor, {', '.join(LESSER)}, or several of them")
    parser.add_argument("--print", action="store_true", help="print the table, and leave the pages as they are")
    parser.add_argument("--renew", action="store_true", help="put what --only measures in the place of those rows in "
                        "the last results, and say so beside them; all columns are needed")
    keys = [*(workload.key for workload in WORKLOADS), GROWTH]
    parser.add_argument("--only", nargs="+", choices=keys, metavar="WORKLOAD", default=keys,
                        help=f"some of {', '.join(keys)}; no page is written then")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, metavar="COLUMN", default=list(COLUMNS),
                        help=f"some of {', '.join(COLUMNS)}; no page is written then")
    parser.add_argument("--device", choices=DEVICES, default="cpu",
                        help="a GPU, or dry: a stand-in for one at tiny sizes, whose times mean nothing (%(default)s)")
    parser.add_argument("--here", action="store_true", help="run all frameworks with this interpreter")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS",
                        help="what all of it may take, shared by the columns; the rest is left out (%(default)s)")
    parser.add_argument("--machine", type=Path, metavar="FILE",
                        help="figures of the device as benchmarks.gpu_questions found them; others', by default")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="write performance.md and performance.json there, and leave the pages as they are")
    options = parser.parse_args()
    if options.renew and len(options.columns) < len(COLUMNS):
        parser.error("--renew: a row has all columns, so --columns does not go with it")
    options.whole = options.only is keys and len(options.columns) == len(COLUMNS) and options.device == "cpu"
    for name, value in zip(("rounds", "seconds", "limit", "long"), QUICK if options.quick else WHOLE):
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    options.workloads = [workload for workload in WORKLOADS if workload.key in options.only]
    options.growth = GROWTH in options.only and options.device == "cpu"
    if options.device != "cpu":
        options.columns = [name for name in options.columns if name in ON_DEVICE]
        options.workloads = [each for each in options.workloads if each.kind == "timed" and each.key != "chain"]
    return options


# ------------------------------------------------------------------------------------------------- measuring


def _measured(options: Any) -> Results:
    """Measure the rows, then growth; an interruption ends with the results so far."""
    workers = {name: Worker(name, options) for name in options.columns}
    cells: dict[tuple[str, str], Cell] = {}
    growth = []
    try:
        _measure(options, workers, cells)
        for worker in workers.values():
            worker.stop()
        if options.growth:
            growth += grown(options)
    except KeyboardInterrupt:
        options.whole = False
    finally:
        for worker in workers.values():
            worker.stop()
    results = _results(options, workers, cells)
    results.growth = growth
    return results


def _measure(options: Any, workers: dict[str, Worker], cells: dict[tuple[str, str], Cell]) -> None:
    """Workloads that a peer may not finish come last: after a timeout it is restarted, and would compile all others
    again."""
    for late in (False, True):
        workloads = [workload for workload in options.workloads if workload.late is late]
        for number in range(options.rounds):
            for workload in workloads:
                for name, worker in workers.items():
                    if worker.can(workload):
                        cell = cells.setdefault((workload.key, name), Cell([], [], [], []))
                        cell.ask(worker, workload, options)
                print(f"round {number + 1} of {options.rounds}: {workload.title}", file=sys.stderr)


def _results(options: Any, workers: dict[str, Worker], cells: dict[tuple[str, str], Cell]) -> Results:
    there = {name: {key: worker.facts[key] for key in ("version", "python", "numpy")}
             for name, worker in workers.items() if not worker.missing}
    remarks = [f"{name} was not measured: {worker.missing}." for name, worker in workers.items() if worker.missing]
    for name, facts in there.items():
        requirement = other_version(name, facts["version"])
        if requirement:
            remarks.append(f"{name} is {facts['version']}, not {requirement}.")
            print(f"warning: {remarks[-1]} --setup makes its environment", file=sys.stderr)
    rows = []
    for workload in options.workloads:
        row = {name: cells.get((workload.key, name)) or Cell([], [], [], []) for name in there}
        agreed = _agreed(row)
        for name, cell in row.items():
            if cell.errors:
                remarks.append(f"{name}, {workload.title}: {cell.errors[0].splitlines()[0][:200]}.")
            elif name not in agreed:
                remarks.append(f"{name}, {workload.title}: refused, its check value is {cell.check[0]:.6g}; the middle "
                               f"of all is {statistics.median(each for c in row.values() for each in c.check):.6g}.")
        figures = {name: rounded([min(cell.figures), statistics.median(cell.figures)][:len(cell.figures)])
                   for name, cell in row.items() if name in agreed and cell.figures}
        expected = next((each for cell in row.values() for each in cell.expected), {})
        rows.append(Row(workload.key, workload.title, workload.unit, figures, expected))
    found = read()._asdict()
    return Results({**found, "features": list(found["features"])}, options.processor, platform.system(),
                   str(datetime.date.today()), _commit(), _command(options), options.rounds, options.threads, there,
                   rows, remarks, device=options.device, machine=bool(options.machine))


def _agreed(row: dict[str, Cell]) -> set[str]:
    """The frameworks whose check value agrees with the most common one within 0.1 percent; all of them if there is no
    check value."""
    values = [cell.check[0] for cell in row.values() if cell.check]
    middle = statistics.median(values) if values else 0.0
    return {name for name, cell in row.items()
            if not cell.errors and (not cell.check or abs(cell.check[0] - middle) <= 1e-3 * abs(middle))}


def _command(options: Any) -> str:
    words = f"python -m benchmarks --rounds {options.rounds} --seconds {options.seconds:g} --threads {options.threads}"
    if options.processor:
        words += f" --processor {' '.join(options.processor)}"
    return words if options.device == "cpu" else f"{words} --device {options.device}"


def _commit() -> str:
    """The measured commit, with a plus if files differ from it; empty without git."""
    git = shutil.which("git")
    if git is None:
        return ""
    said = [subprocess.run([git, *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
            for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))]
    return said[0] + "+" * bool(said[0] and said[1])


# ------------------------------------------------------------------------------------------------- keeping


def _compare_and_keep(results: Results, keep: bool, renew: bool = False, folder: Path = FOLDER,
                      target: Path = page.PAGE, journal: Path = page.JOURNAL) -> None:
    """Print the differences from the last results of this kind of processor, and replace them, or only the rows that
    were measured."""
    path = folder / f"{results.kind}.json"
    if path.exists():
        old = load(path)
        wanted = {row.work for row in results.rows}
        old.rows = [row for row in old.rows if row.work in wanted or keep]
        print(f"\nSince {old.date}{f' ({old.commit})' if old.commit else ''}:")
        print("\n".join(f"- {line}" for line in changes(old, results)) or "- no ratio moved by more than its scatter")
        if renew and not keep:
            results, keep = renewed(load(path), results), True
    if keep:
        results.save(path)
        page.write(folder, target, journal)
        print(f"written to {path}, {journal} and {target}", file=sys.stderr)


if __name__ == "__main__":
    main()
