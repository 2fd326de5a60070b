"""Measure the cost of several ranks on this machine, and estimate that of more ranks by a model, for
docs/distributed.md.

``python -m benchmarks.distributed`` starts two ranks over MPI, with a thread each, and prints measured times and the
model's times of two ranks; ``--simulate`` only prints the model's times of more ranks. Each time is the minimum of
many, since shared machines are sometimes busy. ``--write`` puts the tables in the page.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .network import ADAPTER, HOPPERS, Step, Timeline, fitted, simulated, timeline
from .workloads import EPSILON, resnet, resnet_data

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "distributed.md"

SIZES = [1 << exponent for exponent in range(10, 29, 2)]
BUCKETS = [1 << exponent for exponent in range(18, 27)]
RANKS = [1, 2, 4, 8, 16, 64, 256, 1024]
_SECONDS = 1.0  # for one number
_PATIENCE = 900.0  # for all of them


# ------------------------------------------------------------------------------------------------- networks


def digits() -> Any:
    """The network of ``examples/train_digits.py`` with the loss of the library."""
    import opreg as mx

    net = mx.sym.Variable("data")
    for i, filters in enumerate((32, 64)):
        net = mx.sym.Activation(mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters,
                                                   name=f"conv{i + 1}"), act_type="relu")
        if i == 0:
            net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=128, name="fc1"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=10, name="fc2"), name="softmax")


def resnet_18() -> Any:
    """ResNet-18 with a loss of a thousand classes."""
    import opreg as mx

    def unit(x: Any, stride: int, weight: Any, *_: Any) -> Any:
        filters, _, size, _ = weight.shape
        x = mx.sym.Convolution(x, kernel=(size, size), stride=(stride, stride), pad=(size // 2, size // 2),
                               num_filter=filters, no_bias=True)
        return mx.sym.BatchNorm(x, eps=EPSILON, momentum=0.9, fix_gamma=False)

    def pool(x: Any) -> Any:
        return mx.sym.Pooling(x, pool_type="max", kernel=(3, 3), stride=(2, 2), pad=(1, 1))

    def head(x: Any, _: Any, bias: Any) -> Any:
        return mx.sym.FullyConnected(mx.sym.mean(x, axis=(2, 3)), num_hidden=len(bias))

    _, parameters, statistics = resnet_data(1, 32)
    net = resnet(mx.sym.Variable("data"), parameters, statistics, unit, mx.sym.relu, pool, head)
    return mx.sym.SoftmaxOutput(net, name="softmax")


#: Networks, with the shape of an image and the number of images in a batch over all ranks.
NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...], int]] = {
    "digits": (digits, (1, 8, 8), 128),
    "ResNet-18, 32 × 32": (resnet_18, (3, 32, 32), 16),
}


def bound(net: Any, shape: Sequence[int], batch: int, **words: Any) -> Any:
    """An executor with small weights and an optimizer; ``reduce`` is a group."""
    import opreg as mx
    from opreg.symbol.reduction import Reduction

    names = [name for name in net.list_arguments() if name not in ("data", "softmax_label")]
    if "reduce" in words:
        words["reduce"] = Reduction(words["reduce"], bucket_bytes=words.pop("bucket", 4 << 20))
    executor = net.simple_bind(mx.cpu(), dict.fromkeys(names, "write"), data=(batch, *shape), **words)
    rng = np.random.default_rng(0)
    for name in names:
        executor.arg_dict[name][:] = rng.standard_normal(executor.arg_dict[name].shape) * 0.03
    executor.set_optimizer(mx.optimizer.create("sgd", learning_rate=1e-3, momentum=0.9, rescale_grad=1 / batch))
    return executor


# ------------------------------------------------------------------------------------------------- measuring


def least(group: Any, functions: Iterable[Callable[[], object]], seconds: float = _SECONDS) -> list[float]:
    """The minimal time of each function; functions take turns, and all ranks begin together."""
    functions = list(functions)
    best = [float("inf")] * len(functions)
    begin, going = time.perf_counter(), True
    while going:
        for i, function in enumerate(functions):
            group.barrier()
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
        going = bool(group.exchange(time.perf_counter() - begin)[0] < seconds * len(functions))  # type: ignore
    return [max(group.exchange(each)) for each in best]


def sums(group: Any) -> list[tuple[int, float, float]]:
    """Bytes, and the seconds of mpi4py's allreduce and of opreg's."""
    from mpi4py import MPI

    rows = []
    for nbytes in SIZES:
        array = np.zeros(nbytes // 4, np.float32)

        def bare(array: np.ndarray = array) -> None:
            MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)

        def ours(array: np.ndarray = array) -> None:
            group.allreduce(array, out=array)

        ours()
        rows.append((nbytes, *least(group, [bare, ours])))
    return rows


def steps(group: Any, name: str) -> dict[str, float]:
    """Seconds of a step: on one rank with the full batch, on each rank with its part of the batch without
    communication, with communication during backward, and with communication after backward; and the inputs of the
    model."""
    make, shape, batch = NETWORKS[name]
    net, part = make(), batch // group.size
    alone, silent, plan = bound(net, shape, batch), bound(net, shape, part), bound(net, shape, part, reduce=group)
    arrays = [step.outs[0] for step in plan.plan(True).backward.steps
              if step.node is not None and step.node.op.name == "_allreduce_start"]

    def behind() -> None:
        silent.forward(is_train=True)
        silent.backward()
        for array in arrays:
            group.allreduce(array, out=array)
        silent.update()

    for executor in (alone, silent, plan):
        executor.step()
        executor.step()
    behind()
    one, none, hidden, after = least(group, [alone.step, silent.step, plan.step, behind])
    return {"one": one, "silent": none, "plan": hidden, "behind": after, "bytes": sum(a.nbytes for a in arrays),
            "buckets": len(arrays), "share": plan_share(silent)}


def plan_share(executor: Any) -> float:
    """The part of a step's time until backward ends."""
    rows = executor.profile(runs=3).rows
    total = sum(row.seconds for row in rows)
    return sum(row.seconds for row in rows if row.half != "update") / total


def buckets(group: Any) -> list[tuple[int, float]]:
    """Bytes of a bucket, and seconds of a step of ResNet-18."""
    make, shape, batch = NETWORKS["ResNet-18, 32 × 32"]
    net = make()
    executors = [bound(net, shape, batch // group.size, reduce=group, bucket=nbytes) for nbytes in BUCKETS]
    for executor in executors:
        executor.step()
    return list(zip(BUCKETS, least(group, [executor.step for executor in executors])))


def _rank(path: str) -> None:
    """Run as one of the measuring ranks."""
    from opreg.distributed import world

    group = world()
    found = {"sums": sums(group), "steps": {name: steps(group, name) for name in NETWORKS}, "buckets": buckets(group)}
    if group.rank == 0:
        Path(path).write_text(json.dumps(found))


def measured(count: int, path: Path) -> dict[str, Any]:
    """Start ``ranks`` ranks, and return their measurements."""
    environ = {**os.environ, **dict.fromkeys(["OMP_NUM_THREADS", "OPREG_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1"),
               "HYDRA_LAUNCHER": "fork"}
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    subprocess.run([mpiexec, "-n", str(count), sys.executable, "-m", "benchmarks.distributed", "--rank", str(path)],
                   env=environ, cwd=ROOT, check=True, timeout=_PATIENCE)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


# ------------------------------------------------------------------------------------------------- tables


def _bytes(nbytes: float) -> str:
    for unit, scale in (("MB", 1 << 20), ("kB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes:.0f} B"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(" ".join(["|", " | ".join(row), "|"]) for row in (head, ["---"] * len(head), *rows))


def shown(found: dict[str, Any], count: int) -> str:
    """Tables of measured times, with the model's times for the same number of ranks."""
    here = fitted("this machine", [(nbytes, bare) for nbytes, bare, _ in found["sums"] if nbytes <= 1 << 22], 0.0)
    parts = [_table(("allreduce", "mpi4py, ms", "ours, ms", "ours / mpi4py", "model, ms"), [
        (_bytes(nbytes), _milliseconds(bare), _milliseconds(ours), f"{ours / bare:.2f}",
         _milliseconds(here.ring(nbytes, count))) for nbytes, bare, ours in found["sums"]])]
    rows = []
    for name, step in found["steps"].items():
        added, whole = step["plan"] - step["silent"], step["behind"] - step["silent"]
        model = step["silent"] + step["buckets"] * here.ring(step["bytes"] / step["buckets"], count)
        rows.append((name, _bytes(step["bytes"]), *map(_milliseconds, (
            step["one"], step["silent"], step["behind"], step["plan"])), f"{max(0.0, 1 - added / whole):.0%}",
            f"{step['one'] / step['plan']:.2f}", _milliseconds(model)))
    parts.append(_table(("a step", "gradients", "1 rank, ms", f"{count} without sums, ms", "sums after backward, ms",
                         "in the plan, ms", "hidden", "1 rank / in the plan", "model, nothing hidden, ms"), rows))
    parts.append(_table(("bucket", *[_bytes(nbytes) for nbytes, _ in found["buckets"]]), [
        ("ResNet-18, a step, ms", *[_milliseconds(seconds) for _, seconds in found["buckets"]])]))
    return "\n\n".join(parts)


def predicted() -> str:
    """Tables of the model's times for many ranks."""
    parts = []
    for cluster, allreduces in ((HOPPERS, ("ring", "tree")), (ADAPTER, ("ring", "tree"))):
        weak = _hopper(64)
        rows = []
        for count in RANKS:
            found = [simulated(weak, getattr(cluster, name), count) for name in allreduces]
            strong = [simulated(_hopper(max(1024 // count, 1)), cluster.quicker, count)]
            rows.append((str(count), *[cell for step in found for cell in (_milliseconds(step.seconds),
                                                                           f"{weak.step / step.seconds:.0%}")],
                         *_strong(strong[0], count)))
        parts.append(f"{cluster.name}:\n\n" + _table(
            ("ranks", *[cell for name in allreduces for cell in (f"weak, {name}, ms", "efficiency")],
             "strong, ms", "speed-up", "hidden"), rows))
    return "\n\n".join(parts)


def _strong(step: Step, count: int) -> tuple[str, str, str]:
    hidden = "–" if count == 1 else f"{step.hidden:.0%}"
    return _milliseconds(step.seconds), f"{_hopper(1024).step / step.seconds:.0f}", hidden


_KEPT: dict[int, Timeline] = {}
_FULL = 64  # the number of images from which on a device is assumed to be fully used


def _hopper(batch: int) -> Timeline:
    """ResNet-18 on images of 224 × 224, with the estimated times of its plan on an H200."""
    if batch > _FULL:
        return _hopper(_FULL).times(batch / _FULL)
    if batch not in _KEPT:
        from opreg.distributed.groups import Group

        executor = bound(resnet_18(), (3, 224, 224), batch, reduce=Group(range(2)))
        executor.update()
        rows = {(row.half, row.step): row.replayed for row in executor.estimate().rows}
        _KEPT[batch] = timeline(executor, lambda half, number: rows.get((half, number), 0.0))
    return _KEPT[batch]


def _written(name: str, text: str) -> None:
    """Replace the tables in the page."""
    page = PAGE.read_text()
    begin, end = f"<!-- {name}: python -m benchmarks.distributed writes what follows -->", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulate", action="store_true", help="print what the model says, and measure nothing")
    parser.add_argument("--write", action="store_true", help="put the tables in docs/distributed.md")
    parser.add_argument("--rank", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        _rank(arguments.rank)
        return
    if arguments.simulate:
        name, text = "simulated", predicted()
    else:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            name, text = "measured", shown(measured(2, Path(folder) / "found.json"), 2)
    print(text)
    if arguments.write:
        _written(name, text)


if __name__ == "__main__":
    main()
