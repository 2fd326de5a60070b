"""The cost of a traced operator in an eager call, compared with its body without a decorator.

``python -m benchmarks.traced`` prints a table of calls of Python and microseconds: ``x * sigmoid(2 * x)`` on
ten numbers as a line, as a function with ``define(traced=True)`` and as a Prop with ``traced = True``. The three take
turns in one process; ratios are those of minima.
"""

from __future__ import annotations

import statistics
import sys
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import opreg as mx

__all__ = ["ORDERS", "Row", "main", "measure"]

#: The number of rounds in which each way is measured, and of runs in a round.
ROUNDS, RUNS = 30, 200


class Row(NamedTuple):
    """One way to write the operator: its calls of Python, the least time and the median in microseconds."""

    way: str
    calls: int
    least: float
    median: float


def _line(x: Any) -> Any:
    return x * mx.nd.sigmoid(x * 2.0)


def _ways() -> dict[str, Callable[[Any], Any]]:
    @mx.operator.define(traced=True, name="_benchmark_function")
    def function(x):  # type: ignore[no-untyped-def]  # as users write it
        return x * mx.nd.sigmoid(x * 2.0)

    class Operator(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            self.assign(out_data[0], req[0], in_data[0] * mx.nd.sigmoid(in_data[0] * 2.0))

    class Prop(mx.operator.CustomOpProp):
        traced = True

        def create_operator(self, ctx, in_shapes, in_dtypes):  # type: ignore[no-untyped-def]
            return Operator()

    mx.operator.register("_benchmark_prop")(Prop)
    return {"the line": _line, "a function": function, "a Prop": lambda x: mx.nd.Custom(x, op_type="_benchmark_prop")}


def _first(f: Callable[[Any], Any], x: Any) -> None:
    with mx.autograd.record():
        y = f(x)
    y.backward()


def _second(f: Callable[[Any], Any], x: Any) -> None:
    with mx.autograd.record():
        slope = mx.autograd.grad(f(x), x, create_graph=True, retain_graph=True)[0]
    slope.backward()


#: Runs of a function: forward alone, with its gradient, and with the gradient of that.
ORDERS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "forward": lambda f, x: f(x), "first order": _first, "second order": _second}


def _calls(run: Callable[[], object]) -> int:
    """The number of Python functions that one run calls, after everything is cached."""
    for _ in range(3):
        run()
    found = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def measure(order: str, rounds: int = ROUNDS, runs: int = RUNS) -> list[Row]:
    """A row for each way to write the operator.

    Parameters
    ----------
    order : str
        A key of ``ORDERS``.
    rounds, runs : int
        The number of rounds in which each way is measured, and of runs in a round.

    Examples
    --------
    >>> [row.way for row in measure("forward", 1, 1)]
    ['the line', 'a function', 'a Prop']
    """
    x = mx.nd.array(np.linspace(-1, 1, 10))
    x.attach_grad()
    tasks = {way: (lambda f=f: ORDERS[order](f, x)) for way, f in _ways().items()}
    calls = {way: _calls(task) for way, task in tasks.items()}
    times: dict[str, list[float]] = {way: [] for way in tasks}
    for _ in range(rounds):
        for way, task in tasks.items():
            times[way].append(timeit.timeit(task, number=runs) / runs * 1e6)
    return [Row(way, calls[way], min(times[way]), statistics.median(times[way])) for way in tasks]


def main() -> None:
    """Print the table."""
    print("| | | calls | of the line's | µs, least | median | of the line's |\n|---|---|---|---|---|---|---|")
    for order in ORDERS:
        line, *others = measure(order)
        for row in (line, *others):
            print(f"| {order} | {row.way} | {row.calls} | {row.calls / line.calls:.2f} | {row.least:.1f} | "
                  f"{row.median:.1f} | {row.least / line.least:.2f} |")


if __name__ == "__main__":
    main()
