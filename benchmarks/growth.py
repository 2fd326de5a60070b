"""How cost grows: with a graph's nodes, with the batch, with the parameters of an update, with threads.

``benchmarks.run_growth`` measures each size, in one process for a column or in one process for each size. The result is
stated in words: the cost of one more node, sample, parameter or thread if cost grows in proportion, and otherwise the
sizes at which it grows faster or slower.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .environments import OURS
from .measuring import ROOT, interpreter, variables
from .results import SCALE, Growth, rounded

__all__ = ["SERIES", "Series", "grown", "verdict"]


class Series(NamedTuple):
    """Sizes of one kind, and the costs that are measured at each size.

    Attributes
    ----------
    of : str
        The things that a size counts. costs : dict of str to (str, str)
        Titles and units.
    alone : bool
        Whether each size is measured in a separate process.
    """

    of: str
    sizes: tuple[int, ...]
    costs: dict[str, tuple[str, str]]
    alone: bool = False


SERIES = {
    "nodes": Series("element-wise operators in a row, on 16 numbers", tuple(10 ** i for i in range(7)), {
        "compose": ("composing the symbol", "ms"), "bind": ("binding the symbol", "ms"),
        "first": ("the first forward + backward, with planning or compiling", "ms"),
        "step": ("forward + backward", "ms"), "memory": ("memory of the whole process", "MB")}, alone=True),
    "batch": Series("batch of a dense layer 256 → 256 with cross-entropy", tuple(4 ** i for i in range(9)), {
        "step": ("a step of SGD", "ms")}),
    "parameters": Series("dense layers 8 → 8, a parameter each", (10, 100, 1_000, 10_000), {
        f"{optimizer}_{way}": (f"an update by {title}, {name}", "ms")
        for optimizer, title in (("sgd", "SGD"), ("adam", "Adam"))
        for way, name in (("executor", "of the executor"), ("module", "of a Module"))}),
    "threads": Series("threads", (), {
        "gelu_training": ("tanh-gelu of 4 M elements, forward + backward", "ms"),
        "conv_training": ("six convolutions, forward + backward", "ms"),
        "block": ("transformer block, forward + backward", "ms"),
        "adam": ("Adam, 200 parameters", "ms")}, alone=True),
}

#: The seconds that a process may take; larger sizes are skipped after that.
_LIMIT = 180.0
#: If ten times the size costs at most this factor more, cost counts as proportional: arrays larger than a cache cost
#: more.
STEEP = 13.0
#: If ten times the size costs at most this factor more, cost counts as constant.
_FLAT = 2.0


def verdict(of: str, sizes: Sequence[int], figures: Sequence[float], unit: str) -> str:
    """The growth of figures with sizes, in words.

    Examples
    --------
    >>> verdict("nodes", [1, 10, 100, 1000], [1e-4, 1.1e-4, 2e-4, 1.1e-3], "ms")
    'proportional from 100 on, 1 µs each'
    >>> verdict("nodes", [10, 100, 1000], [1e-5, 1e-4, 1e-2], "ms")
    'not proportional: 100 times as much from 100 to 1,000'
    >>> verdict("threads", [1, 2], [0.1, 0.06], "ms")
    '1.7 × as fast with 2 threads'
    """
    if len(figures) < 2:
        return "–"
    if of == "threads":
        return f"{figures[0] / figures[-1]:.2g} × as fast with {sizes[len(figures) - 1]} threads"
    steps = [Step(*each) for each in zip(sizes, sizes[1:], figures, figures[1:]) if each[2] > 0 and each[3] > 0]
    growing = [step for step in steps if step.tenfold > _FLAT]
    steep = [step for step in growing if step.tenfold > STEEP]
    if not growing:
        return f"almost constant up to {sizes[len(figures) - 1]:,}"
    said = [f"{step.next_cost / step.cost:.3g} times as much from {step.size:,} to {step.next_size:,}"
            for step in steep]
    if steep and steep[-1] is steps[-1]:
        return f"not proportional: {', '.join(said)}"
    begin = steep[-1].next_size if steep else growing[0].size
    least = "less than " if steps[-1].tenfold <= _FLAT else ""
    apart = f"; {', '.join(said)}" if said else ""
    return f"{least}proportional from {begin:,} on, {each(growing[-1].slope, unit)} each{apart}"


class Step(NamedTuple):
    """From one size to the next."""

    size: int
    next_size: int
    cost: float
    next_cost: float

    @property
    def tenfold(self) -> float:
        """The cost of ten times the size."""
        return 10 ** (math.log(self.next_cost / self.cost) / math.log(self.next_size / self.size))

    @property
    def slope(self) -> float:
        """The cost of one more."""
        return (self.next_cost - self.cost) / (self.next_size - self.size)


def each(value: float, unit: str) -> str:
    """A figure in a readable unit of its kind."""
    units = ("bytes", "KB", "MB") if unit in ("bytes", "KB", "MB") else ("s", "ms", "µs", "ns")
    fitting = [name for name in units if 1 <= value * SCALE[name] < 1000]
    return f"{value * SCALE[fitting[0]]:.3g} {fitting[0]}" if fitting else f"{value * SCALE[unit]:.3g} {unit}"


# ------------------------------------------------------------------------------------------------- measuring


def grown(options: Any) -> Iterator[Growth]:
    """Measure all growth, for opreg's columns that are installed."""
    columns = [name for name in OURS if name in options.columns and interpreter(name, options).exists()]
    for key, series in SERIES.items():
        sizes = series.sizes or _threads(options.threads)
        found: dict[str, dict[str, list[float]]] = {cost: {} for cost in series.costs}
        for column in columns:
            for answer in _answers(key, series, sizes, column, options):
                for cost, value in answer.items():
                    found[cost].setdefault(column, []).extend(rounded([value]))
        print(f"growth: {series.of}", file=sys.stderr)
        for cost, (title, unit) in series.costs.items():
            yield Growth(series.of, title, unit, list(sizes), found[cost])


def _threads(most: int) -> tuple[int, ...]:
    """Numbers of threads: 1, 2, 4 and so on, and the number of cores."""
    return (*(2 ** i for i in range(most.bit_length()) if 2 ** i < most), most)


def _answers(key: str, series: Series, sizes: Sequence[int], column: str, options: Any) -> Iterator[dict[str, float]]:
    """The measurements at each size, until one takes too long."""
    python = interpreter(column, options)
    for some in [[size] for size in sizes] if series.alone else [sizes]:
        threads = some[0] if key == "threads" else options.threads
        try:
            printed = subprocess.run(
                [python, "-m", "benchmarks.run_growth", key, str(threads), str(options.seconds), *map(str, some)],
                cwd=ROOT, env=variables(python, options, threads, "numba"), text=True, check=True,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_LIMIT).stdout
            failed: Exception | None = None
        except subprocess.SubprocessError as error:  # smaller sizes may have succeeded
            printed, failed = getattr(error, "output", None) or "", error
            printed = printed.decode() if isinstance(printed, bytes) else printed
        yield from map(json.loads, printed.splitlines())
        if failed:
            print(f"growth: {column}, {key} of {some}: {failed}", file=sys.stderr)
            return
