"""Questions that only a GPU answers: ``BENCHMARK_DEVICE=gpu python -m benchmarks.gpu_questions [--out FOLDER] [LETTER
...]``.

An exception is an answer, too. Times are medians between two events on the device; JAX, which has its own streams, is
timed until its result is available. With ``BENCHMARK_DEVICE=dry`` everything that does not need CuPy itself runs on a
stand-in at tiny sizes, and times have no meaning.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import importlib
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import opreg as mx

from . import device
from .workloads import uniform

__all__ = ["QUESTIONS", "Place", "answered", "main", "open_place", "run_kernels"]

ROOT = Path(__file__).resolve().parents[1]
_CHAIN = 100  # operators in a row

#: The functions that answer, by letter.
QUESTIONS: dict[str, Callable[[Place], str]] = {}


class Place(NamedTuple):
    """The device and its libraries, on which the questions are answered."""

    ctx: Any
    xp: Any
    tiny: bool
    out: Path | None
    figures: dict[str, Any]  # figures of a ``Machine``, as they are measured

    def seconds(self, run: Callable[[], Any], loops: int = 20, clock: Any = None) -> float:
        """The median time of a run, after a few runs that compile and capture."""
        clock = clock or device.clock_of(self.xp)
        for _ in range(4):
            run()
        return statistics.median(clock(run, loops) / loops for _ in range(3 if self.tiny else 15))

    def size(self, number: int) -> int:
        """A size, or a small one on the stand-in."""
        return min(number, 64) if self.tiny else number

    def array(self, *shape: int, dtype: str = "float32", seed: int = 0) -> Any:
        """Random values between -1 and 1 on the device, as an NDArray."""
        return mx.nd.array(uniform(*shape, seed=seed) * 2 - 1, ctx=self.ctx, dtype=dtype)

    def bound(self, net: Any, dtype: str = "float32", grad_req: str = "null", **shapes: tuple[int, ...]) -> Any:
        """An executor with such values as arguments."""
        names = net.list_arguments()
        executor = net.simple_bind(self.ctx, grad_req=grad_req, type_dict=dict.fromkeys(names, dtype), **shapes)
        for i, array in enumerate(executor.arg_arrays):
            array[:] = self.array(*array.shape, dtype=dtype, seed=i)
        return executor


def open_place(out: Path | None = None) -> Place:
    """The GPU, or the stand-in for one."""
    ctx = device.open_device(mx)
    return Place(ctx, ctx.xp, device.DEVICE != "gpu", out, {})


def question(letter: str) -> Callable:
    """Register a function that answers in Markdown; its docstring is the question."""
    def registered(function: Callable[[Place], str]) -> Callable[[Place], str]:
        QUESTIONS[letter] = function
        return function

    return registered


def table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as Markdown; numbers have three digits, and None is an empty cell."""
    def shown(value: Any) -> str:
        return "–" if value is None else f"{value:,.3g}" if isinstance(value, float) else str(value)

    return "\n".join([f"| {' | '.join(titles)} |", "|---" * len(titles) + "|",
                      *[f"| {' | '.join(map(shown, row))} |" for row in rows]])


def tried(function: Callable[[], Any]) -> Any:
    """The result of a function, or the exception that it raised, as text."""
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"


def torch_on(place: Place) -> tuple[Any, str]:
    """PyTorch, and the device of its tensors."""
    return importlib.import_module("torch"), "cpu" if place.tiny else "cuda"


def per_operator(seconds: Any) -> Any:
    """Microseconds per operator of a chain, if its time was measured."""
    return seconds / _CHAIN * 1e6 if isinstance(seconds, float) else seconds


# ------------------------------------------------------------------------------------------------ questions


@question("a")
def captured(place: Place) -> str:
    """Does a replay of captured work give the results of a new run, with other values in its inputs?"""
    return "\n\n".join([f"Captured by CuPy itself: {tried(functools.partial(_captured_by_cupy, place))}",
                        table(["network", "most that the fourth and fifth run differ from the host's", "as explained"],
                              [[name, *_pair(tried(functools.partial(_replayed, place, *case)))]
                               for name, case in _networks(place).items()])])


def _pair(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple) else (found, None)


def _captured_by_cupy(place: Place) -> str:
    xp = place.xp
    kernel = xp.RawKernel('extern "C" __global__ void twice(const float* x, float* y, int n) '
                          "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }", "twice")
    x, y, drawn = xp.arange(256, dtype="float32"), xp.zeros(256, "float32"), xp.zeros(256, "float64")
    generator = xp.random.default_rng(1)

    def work() -> None:
        kernel((1,), (256,), (x, y, np.int32(256)))
        generator.random(256, out=drawn)

    stream = xp.cuda.Stream(non_blocking=True)
    with stream:
        graph, seen = _capture(stream, work), []
        for factor in (1, 3):
            x[...] = xp.arange(256, dtype="float32") * factor
            graph.launch()
            stream.synchronize()
            seen.append((y.get(), drawn.get()))
    fits = all((numbers == 2 * factor * np.arange(256)).all() for factor, (numbers, _) in zip((1, 3), seen))
    anew = not (seen[0][1] == seen[1][1]).all()
    return f"a RawKernel {'gives' if fits else 'DOES NOT give'} the new numbers; Generator.random draws " \
           f"{'anew' if anew else 'THE SAME AGAIN'} in each replay"


def _capture(stream: Any, work: Callable[[], None]) -> Any:
    """The CUDA graph of the launches of ``work`` on the current stream; it has run once before."""
    work()
    stream.synchronize()
    stream.begin_capture()
    try:
        work()
    except BaseException:
        with contextlib.suppress(Exception):  # ending an invalid capture raises an error, but ends it
            stream.end_capture()
        raise
    return stream.end_capture()


def _networks(place: Place) -> dict[str, tuple[Any, dict[str, tuple[int, ...]]]]:
    data, n = mx.sym.Variable("data"), place.size(256)
    dense = mx.sym.FullyConnected(data, num_hidden=n)
    # The batch norm cancels a bias, whose gradient would only be rounding errors.
    pictures = mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, pad=(1, 1), no_bias=True)
    return {"dense, tanh, softmax": (mx.sym.softmax(mx.sym.tanh(dense)), {"data": (n, n)}),
            "convolution, batch norm, relu, pooling": (mx.sym.Pooling(mx.sym.relu(mx.sym.BatchNorm(
                pictures)), kernel=(2, 2), stride=(2, 2), pool_type="max"), {"data": (4, 8, 16, 16)}),
            "dot, layer norm": (mx.sym.LayerNorm(mx.sym.dot(data, mx.sym.Variable("w"))),
                                {"data": (n, n), "w": (n, n)})}


def _replayed(place: Place, net: Any, shapes: dict[str, tuple[int, ...]]) -> tuple[float, str]:
    """The largest difference from the host's results, after enough runs for a replay to replace the launches."""
    ours = place.bound(net, grad_req="write", **shapes)
    host = place._replace(ctx=mx.cpu()).bound(net, grad_req="write", **shapes)
    worst = 0.0
    for run in range(5):
        x = uniform(*shapes["data"], seed=run) - 0.5
        found = []
        for executor in (ours, host):
            executor.arg_dict["data"][:] = x
            (out, *_) = executor.forward(is_train=True)
            executor.backward(mx.nd.array(uniform(*out.shape, seed=9), ctx=out.context))
            found.append([each.asnumpy() for each in (out, *executor.grad_arrays)])
        if run >= 3:
            worst = max(worst, *(float(np.abs(one - other).max() / (np.abs(other).max() + 1e-6))
                                 for one, other in zip(*found)))
    said = [line.strip() for line in ours.explain().splitlines() if line.startswith(("forward", "backward"))]
    return worst, "; ".join(said)


@question("b")
def launches(place: Place) -> str:
    """What does an operator on ten elements cost, called individually, and replayed?"""
    called, replayed = [tried(each) for each in (lambda: place.seconds(_chain(place.xp.ones(10, "float32"))),
                                                 lambda: _cupy_replay(place))]
    for name, seconds in (("launch", called), ("node", replayed)):
        if isinstance(seconds, float):
            place.figures[name] = seconds / _CHAIN
    rows: list[list[Any]] = [
        ["CuPy, `x * 2`", per_operator(called)],
        ["opreg, `x * 2`", per_operator(tried(lambda: place.seconds(_chain(mx.nd.ones((10,), ctx=place.ctx)))))]]
    for name, make in (("PyTorch", _torch_chain), ("JAX", _jax_chain)):
        rows.append([f"{name}, `x * 2`", per_operator(tried(functools.partial(make, place)))])
    rows += [["CuPy, replayed", per_operator(replayed)],
             ["PyTorch, replayed", per_operator(tried(functools.partial(_torch_replay, place)))],
             ["opreg, custom operators in an executor", per_operator(tried(functools.partial(_customs, place, False)))],
             ["the same, which may be captured", per_operator(tried(functools.partial(_customs, place, True)))]]
    return table(["what", "µs an operator"], rows)


def _chain(x: Any) -> Callable[[], Any]:
    def run() -> Any:
        y = x
        for _ in range(_CHAIN):
            y = y * 2
        return y

    return run


def _torch_chain(place: Place) -> float:
    torch, where = torch_on(place)
    return place.seconds(_chain(torch.ones(10, device=where)))


def _jax_chain(place: Place) -> float:
    jax = importlib.import_module("jax")
    run = _chain(jax.numpy.ones(10))
    return place.seconds(lambda: jax.block_until_ready(run()), 5, device.host_clock)


def _cupy_replay(place: Place) -> float:
    xp = place.xp
    x = xp.ones(10, "float32")

    def work() -> None:
        for _ in range(_CHAIN):
            xp.multiply(x, 1, out=x)

    stream = xp.cuda.Stream(non_blocking=True)
    with stream:
        return place.seconds(_capture(stream, work).launch)


def _torch_replay(place: Place) -> float:
    torch, where = torch_on(place)
    x, graph = torch.ones(10, device=where), torch.cuda.CUDAGraph()
    x.mul_(1)
    with torch.cuda.graph(graph):
        for _ in range(_CHAIN):
            x.mul_(1)
    return place.seconds(graph.replay)


def _customs(place: Place, capturable: bool) -> float:
    """A chain of custom operators that stay on the device."""
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            self.assign(out_data[0], req[0], in_data[0] * 2)

    name = f"gpu_questions_twice_{capturable}"
    prop = type(name, (mx.operator.CustomOpProp,), {
        "create_operator": lambda self, ctx, shapes, dtypes: Twice(), "capturable": capturable})
    mx.operator.register(name)(prop)
    net = mx.sym.Variable("x")
    for _ in range(_CHAIN):
        net = mx.sym.Custom(net, op_type=name)
    executor = place.bound(net, x=(10,))
    return place.seconds(lambda: executor.forward(is_train=False), 5)


@question("c")
def properties(place: Place) -> str:
    """What does cuDNN report about the device, so that plans can be made without the device?"""
    text = importlib.import_module("cudnn").create_device_properties(0).serialize()
    if place.out is not None:
        (place.out / "device_properties.json").write_text(
            text if isinstance(text, str) else json.dumps(list(bytes(text))), encoding="utf-8")
    return f"{len(text)} bytes, in `device_properties.json`"


@question("d")
def rates(place: Place) -> str:
    """Which share of the bandwidth of a copy do fused kernels, softmax and layer norm reach?"""
    rows: list[list[Any]] = []
    shape = place.size(16384), place.size(4096)
    for dtype in ("float32", "float16"):
        x, y = place.array(*shape, dtype=dtype)._data, place.array(*shape, dtype=dtype)._data
        copied = 2 * x.nbytes / place.seconds(lambda x=x, y=y: y.__setitem__(Ellipsis, x))
        rows.append(["copy", dtype, copied / 1e9, 1.0, None])
        place.figures["memory_rate"] = max(copied, place.figures.get("memory_rate", 0.0))
        for name, (net, theirs) in _streaming().items():
            rows.append([name, dtype, *_rate(place, net, shape, dtype, copied), tried(functools.partial(
                _torch_rate, place, theirs, shape, dtype))])
    return table(["work, forward", "dtype", "GB/s, by what has to be read and written", "of a copy", "PyTorch's GB/s"],
                 rows)


def _streaming() -> dict[str, tuple[Any, Callable[[Any, Any], Any]]]:
    x = mx.sym.Variable("x")
    return {"`tanh(x * 0.5 + 1) * x`": (mx.sym.tanh(x * 0.5 + 1.0) * x, lambda f, x: (x * 0.5 + 1.0).tanh() * x),
            "softmax": (mx.sym.softmax(x), lambda f, x: f.softmax(x, -1)),
            "layer norm": (mx.sym.LayerNorm(x, mx.sym.Variable("gamma"), mx.sym.Variable("beta")),
                           lambda f, x: f.layer_norm(x, x.shape[-1:]))}


def _rate(place: Place, net: Any, shape: tuple[int, ...], dtype: str, copied: float) -> list[Any]:
    def measured() -> tuple[float, float]:
        executor = place.bound(net, dtype, x=shape)
        work = executor.estimate()
        rate = (work.read + work.written) / place.seconds(lambda: executor.forward(is_train=False), 5)
        return rate / 1e9, rate / copied

    return list(_pair(tried(measured)))


def _torch_rate(place: Place, function: Callable, shape: tuple[int, ...], dtype: str) -> float:
    torch, where = torch_on(place)
    x = torch.rand(shape, device=where).to(getattr(torch, dtype))
    return 2 * x.numel() * x.element_size() / place.seconds(lambda: function(torch.nn.functional, x), 5) / 1e9


@question("e")
def products(place: Place) -> str:
    """How fast are matrix products, compared with PyTorch's?"""
    rows = []
    for order, dtype in itertools.product((512, 4096), ("float32", "bfloat16", "float16")):
        n = place.size(order)
        ours = tried(functools.partial(_product, place, n, dtype))
        theirs = tried(functools.partial(_torch_product, place, n, dtype, False))
        rows.append([n, dtype, ours, theirs, _quotient(ours, theirs)])
        found = place.figures.setdefault("product_rates", {})
        reached = [1e12 * rate for rate in (ours, theirs) if isinstance(rate, float)]
        found[dtype] = max([found.get(dtype, 0.0), *reached])
        if dtype == "float32":
            rows.append([n, "float32, TF32", tried(functools.partial(_product, place, n, dtype, True)),
                         tried(functools.partial(_torch_product, place, n, dtype, True)), None])
    return table(["order", "dtype", "opreg, TFLOP/s", "PyTorch, TFLOP/s", "ours / theirs"], rows)


def _quotient(ours: Any, theirs: Any) -> float | None:
    return ours / theirs if isinstance(ours, float) and isinstance(theirs, float) else None


def _product(place: Place, n: int, dtype: str, tf32: bool = False) -> float:
    with mx.test_utils.environment("OPREG_TF32", str(int(tf32))):
        executor = place.bound(mx.sym.dot(mx.sym.Variable("a"), mx.sym.Variable("b")), dtype, a=(n, n), b=(n, n))
        executor.forward(is_train=False)
    return 2e-12 * n ** 3 / place.seconds(lambda: executor.forward(is_train=False), 5)


def _torch_product(place: Place, n: int, dtype: str, tf32: bool) -> float:
    torch, where = torch_on(place)
    a, b = (torch.rand(n, n, device=where).to(getattr(torch, dtype)) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        return 2e-12 * n ** 3 / place.seconds(lambda: a @ b, 5)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


#: ResNet's convolutions: channels in and out, size of pictures, of kernels, stride.
_CONVOLUTIONS = ((3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (128, 128, 28, 3, 1),
                 (256, 256, 14, 3, 1), (512, 512, 7, 3, 1), (256, 512, 14, 1, 2))


@question("f")
def convolutions(place: Place) -> str:
    """How fast are ResNet's convolutions, forward and backward, compared with PyTorch's?"""
    rows = []
    for (n, m, size, kernel, stride), dtype in itertools.product(_CONVOLUTIONS, ("float32", "float16")):
        case = place.size(n), place.size(m), min(size, 16) if place.tiny else size, kernel, stride, dtype
        ours = tried(functools.partial(_convolution, place, *case))
        theirs = tried(functools.partial(_torch_convolution, place, *case))
        rows.append([f"{n} → {m}, {size}², {kernel}², stride {stride}", dtype, ours, theirs, _quotient(ours, theirs)])
    return table(["convolution, batch 32", "dtype", "opreg, ms", "PyTorch, ms", "ours / theirs"], rows)


def _convolution(place: Place, n: int, m: int, size: int, kernel: int, stride: int, dtype: str) -> float:
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(kernel,) * 2, num_filter=m, stride=(stride,) * 2,
                             pad=(kernel // 2,) * 2, no_bias=True)
    executor = place.bound(net, dtype, "write", data=(2 if place.tiny else 32, n, size, size))
    (out,) = executor.forward(is_train=True)
    head = place.array(*out.shape, dtype=dtype)

    def run() -> None:
        executor.forward(is_train=True)
        executor.backward(head)

    return place.seconds(run, 2 if place.tiny else 5) * 1e3


def _torch_convolution(place: Place, n: int, m: int, size: int, kernel: int, stride: int, dtype: str) -> float:
    torch, where = torch_on(place)
    torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = True, False
    kind = getattr(torch, dtype)
    x = torch.rand(2 if place.tiny else 32, n, size, size, device=where).to(kind)
    w = torch.rand(m, n, kernel, kernel, device=where).to(kind)
    if not place.tiny:
        x, w = (each.contiguous(memory_format=torch.channels_last) for each in (x, w))
    x, w = x.requires_grad_(), w.requires_grad_()

    def convolved() -> Any:
        return torch.nn.functional.conv2d(x, w, stride=stride, padding=kernel // 2)

    head = torch.ones_like(convolved())
    return place.seconds(lambda: torch.autograd.grad(convolved(), (x, w), head), 2 if place.tiny else 5) * 1e3


@question("g")
def sanitized(place: Place) -> str:
    """What does `compute-sanitizer` report about the generated kernels?"""
    program = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if program is None:
        raise FileNotFoundError("compute-sanitizer is not on this machine")
    rows = []
    for tool in ("memcheck", "racecheck"):
        done = tried(lambda tool=tool: subprocess.run(
            [program, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "benchmarks.gpu_questions",
             "--kernels"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60))
        if isinstance(done, str):
            rows.append([tool, None, done])
        else:
            last = [line for line in (done.stdout + done.stderr).splitlines() if "SUMMARY" in line or "Error" in line]
            rows.append([tool, done.returncode, "; ".join(last)[:300]])
    return table(["tool", "exit status", "said"], rows)


def run_kernels(place: Place) -> int:
    """Run every kind of generated kernel, on lengths that are no multiples of a block, and return the number of
    executors."""
    x, count = mx.sym.Variable("x"), 0
    nets = [mx.sym.tanh(x * 0.5 + 1.0) * x, mx.sym.softmax(x), mx.sym.log_softmax(x),
            mx.sym.LayerNorm(x, mx.sym.Variable("gamma"), mx.sym.Variable("beta")),
            mx.sym.broadcast_add(mx.sym.exp(x), mx.sym.sum(x, axis=0, keepdims=True))]
    for net, dtype, shape in itertools.product(nets, ("float32", "float16"), ((3, 7), (5, 1024), (2, 5000))):
        executor = place.bound(net, dtype, "write", x=shape)
        (out,) = executor.forward(is_train=True)
        executor.backward(mx.nd.ones(out.shape, ctx=place.ctx, dtype=dtype))
        out.asnumpy()
        count += 1
    for size in (5, 20003):
        arrays = [place.array(size, seed=i) for i in range(3)]
        mx.nd.sgd_mom_update(*arrays, lr=0.1, momentum=0.9, out=arrays[0])
        arrays[0].asnumpy()
        count += 1
    return count


# -------------------------------------------------------------------------------------------------- asking


def answered(letter: str, place: Place) -> str:
    """The answer to a question in Markdown; an exception is one."""
    function = QUESTIONS[letter]
    try:
        text = function(place)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = (f"No answer: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]} "
                f"(`{Path(where.filename).name}`, line {where.lineno}).")
    return f"### ({letter}) {function.__doc__}\n\n{text}\n"


def _about(place: Place) -> str:
    name = "a stand-in for a GPU at tiny sizes; **no time here means anything**"
    if not place.tiny:
        name = place.xp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    versions = [f"{module} {tried(lambda module=module: importlib.import_module(module).__version__)}"
                for module in ("opreg", "cupy", "torch", "jax", "cudnn", "numpy")]
    return f"On {name}, {datetime.date.today()}, `python -m benchmarks.gpu_questions`. {'; '.join(versions)}."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_questions",
                                     description=(__doc__ or "").split("\n")[0])
    parser.add_argument("letters", nargs="*", choices=[*QUESTIONS, []], metavar="LETTER", help=", ".join(QUESTIONS))
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write questions-LETTERS.md there")
    parser.add_argument("--kernels", action="store_true", help="run the generated kernels once, for a sanitizer")
    options = parser.parse_args()
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
    place = open_place(options.out)
    if options.kernels:
        print(f"{run_kernels(place)} executors ran")
        return
    parts, letters = [_about(place) + "\n"], options.letters or list(QUESTIONS)
    for letter in letters:
        parts.append(answered(letter, place))
        if options.out:  # the answers so far are saved, even if a later question fails
            (options.out / f"questions-{''.join(letters)}.md").write_text("\n".join(parts), encoding="utf-8")
    if options.out and place.figures:
        figures = json.dumps({"name": "this device", **place.figures})
        (options.out / "machine.json").write_text(figures, encoding="utf-8")
    silent = sum("No answer: " in part for part in parts)
    print(f"{len(letters) - silent} of {len(letters)} questions answered" if options.out else "\n".join(parts))


if __name__ == "__main__":
    main()
