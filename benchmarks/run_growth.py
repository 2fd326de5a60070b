"""The process that measures sizes of one kind: ``run_growth.py SERIES THREADS SECONDS SIZE ...`` prints a line each."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from . import worker
from .workloads import WORKLOADS, chain

_LAYERS = (256, 256)
_WIDTH = 8  # layers with one parameter each


def main() -> None:
    key, threads, seconds, *sizes = sys.argv[1:]
    worker.stay_on(int(threads))
    for size in map(int, sizes):
        print(json.dumps(MEASURES[key](size, float(seconds))), flush=True)


def least(run: Callable[[], Any], seconds: float) -> float:
    """The minimal time of at least two runs, and of as many as there is time for."""
    found, end = [], time.perf_counter() + seconds
    while len(found) < 2 or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def nodes(count: int, seconds: float) -> dict[str, float]:
    """A chain built and bound; a small one before it has done the work that happens once in a process."""
    import opreg as mx

    def made(n: int) -> tuple[Any, Any, list[float]]:
        times = [time.perf_counter()]
        symbol = chain(mx.sym.Variable("x"), n, mx.sym.relu)
        times.append(time.perf_counter())
        executor = symbol.simple_bind(mx.cpu(), x=(16,))
        times.append(time.perf_counter())
        step(executor)
        times.append(time.perf_counter())
        return symbol, executor, [end - begin for begin, end in itertools.pairwise(times)]

    def step(executor: Any) -> None:
        executor.forward(is_train=True)
        executor.backward(head)

    head = mx.nd.ones((16,))
    made(8)
    before = worker.resident()
    _, executor, (compose, bind, first) = made(count)
    memory = worker.resident() - before
    return {"compose": compose, "bind": bind, "first": first, "step": least(lambda: step(executor), seconds),
            "memory": memory}


def batch(size: int, seconds: float) -> dict[str, float]:
    from .run_opreg import CASES

    run, _ = CASES["opreg"]["mlp"](batch=size, layers=_LAYERS, rate=0.1)
    run()
    return {"step": least(run, seconds)}


def parameters(count: int, seconds: float) -> dict[str, float]:
    import opreg as mx

    net, shape = mx.sym.Variable("data"), (1, _WIDTH)
    for _ in range(count):
        net = mx.sym.FullyConnected(net, num_hidden=_WIDTH, no_bias=True)
    net, found = mx.sym.MakeLoss(net), {}
    for optimizer in ("sgd", "adam"):
        executor = net.simple_bind(mx.cpu(), data=shape)
        executor.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.01))
        executor.forward(is_train=True)
        executor.backward()
        executor.update()
        found[f"{optimizer}_executor"] = least(executor.update, seconds)
        module = mx.mod.Module(net, label_names=[])
        module.bind([("data", shape)])
        module.init_params(mx.init.Zero())
        module.init_optimizer(optimizer=optimizer)
        module.forward_backward(mx.io.DataBatch([mx.nd.ones(shape)]))
        module.update()
        found[f"{optimizer}_module"] = least(module.update, seconds)
    return found


def threads(count: int, seconds: float) -> dict[str, float]:
    from .growth import SERIES
    from .run_opreg import CASES

    sizes, found = {each.key: each.sizes for each in WORKLOADS}, {}
    for key in SERIES["threads"].costs:
        run, _ = CASES["opreg"][key](**sizes[key])
        run()
        found[key] = least(run, seconds)
    return found


MEASURES = {"nodes": nodes, "batch": batch, "parameters": parameters, "threads": threads}

if __name__ == "__main__":
    main()
