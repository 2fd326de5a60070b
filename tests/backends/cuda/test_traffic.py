"""Kernels on a GPU declare their reads and writes; run on the host, their text loads and stores exactly these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import rows
from opreg.backends.cuda.compiler import Launch
from opreg.core.steps import bytes_moved
from opreg.symbol.inspect.work import count_work
from tests.backends.cuda.test_rows import ROWS_OF_KERNELS
from tests.builtin.test_operators import differentiated, named
from tests.cuda.device import Gpu, gpus
from tests.cuda.host import COMPILER
from tests.rows import Row
from tests.running import Use, bind

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

sym = mx.sym

#: Kernels in which several threads, or one thread repeatedly, read the same element at about the same time: memory is
#: read once.
_SHARING = {"pool", "unpool", "pick", "put", "claim", "dropout", "attention", "attention_query", "attention_key",
            "draw_key"}
#: Kernels that read and write the rows of given indices. The model assumes that all indices differ, so its bytes lie
#: between those of the distinct rows and those of all accesses.
_NAMED = {"look_up", "add_up"}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    monkeypatch.setenv("OPREG_REPLAY", "0")
    with gpus() as xp:
        yield xp


def check(executor: Any, xp: Gpu, is_train: bool, heads: Sequence[Any] | None) -> list[str]:
    """Asserts that each step of an executor moves the bytes that it declares; returns the names of the kernels.

    The module counts from before the first run: a kernel that once runs without counting is compiled twice.
    """
    executor.forward(is_train=is_train)
    if heads is not None:
        executor.backward(*heads)
    plan, launched, names = executor.plan(is_train), xp.counts, []
    assert launched is not None, "the module does not count"
    launched.clear()

    def watched(step: Any, work: Callable[[], object]) -> None:
        work()
        own = [function for function in step.run if isinstance(function, Launch)]
        assert len(own) == len(launched) or not own, "a step of ours launches what it does not name"
        for function, found in zip(own, launched):
            what = f"{step.node}, {found}: {function.read} read, {function.written} written"
            if found.name in _NAMED:
                assert found.least_read <= function.read <= found.loaded, what
                assert found.least_written <= function.written, what
                assert function.written == found.stored or found.name == "add_up", what
            elif found.name in _SHARING:
                assert (function.read, function.written) == (found.least_read, found.least_written), what
            else:
                assert (function.read, function.written) == (found.read, found.written), what
            names.append(found.name)
        moved = [bytes_moved(function) for function in step.run]
        if own and None not in moved and step.node is not None:
            counted = count_work(plan, step)
            assert (counted.read, counted.written) == tuple(map(sum, zip(*moved)))
        launched.clear()

    plan.instrument(lambda half, number, step: functools.partial(watched, step))
    with executor._ctx.entered():
        plan.forward.run()
        if heads is not None:
            plan.backward.run()
    return names


@pytest.mark.parametrize("row", named(ROWS_OF_KERNELS))
def test_bytes_of_an_operator_equal_the_estimate(row: Row, gpu: Gpu) -> None:
    use = Use.of(row, row.dtypes[0])
    grads = row.train and differentiated(row)
    executor = bind(use, mx.gpu(0), dict.fromkeys(use.wanted, "write") if grads else None)
    use.seed()
    with gpu.counting():
        heads = None
        if grads:
            heads = [[mx.nd.ones(out.shape, ctx=mx.gpu(0), dtype=out.dtype) for out in executor.forward(is_train=True)]]
        check(executor, gpu, use.train, heads)


def normalized(shape: tuple[int, ...], axis: int = 1) -> tuple[Any, tuple[int, ...]]:
    return sym.BatchNorm(sym.Variable("x"), fix_gamma=False, axis=axis), shape


def layer_norm(shape: tuple[int, ...], axis: int = -1) -> tuple[Any, tuple[int, ...]]:
    return sym.LayerNorm(sym.Variable("x"), sym.Variable("gamma"), sym.Variable("beta"), axis=axis), shape


x, places = sym.Variable("x"), sym.BlockGrad(sym.Variable("x1", shape=(6,)))
#: Cases that need larger arrays than ``tests/rows`` has: rows that do not fit into registers, rows split into parts,
#: columns, packs with tails, and arrays that broadcast, have strides or hold one element. Each has the shape of ``x``.
NETWORKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "flat": (sym.tanh(x * 2), (37,)),
    "broadcast": (sym.broadcast_mul(x, sym.Variable("x1", shape=(6, 1))), (6, 8)),
    "strided": (sym.exp(sym.transpose(x)), (6, 9)),
    "one number": (sym.broadcast_add(x, sym.Variable("x1", shape=(1,))), (5, 40)),
    "softmax": (sym.softmax(x), (2, 40_000)),
    "softmax along the first axis": (sym.softmax(x, axis=0), (70, 5)),
    "log_softmax": (sym.log_softmax(x), (3, 700)),
    "sum": (sym.sum(x), (33_000,)),
    "sum along the first axis": (sym.sum(x, axis=0), (700, 33)),
    "layer norm": layer_norm((70, 24)),
    "long layer norm": layer_norm((2, 36_000)),
    "layer norm along the second axis": layer_norm((3, 5, 7), 1),
    "batch norm": normalized((32, 3, 4, 4)),
    "batch norm, channels last": normalized((32, 4, 4, 3), 3),
    "group norm": (sym.GroupNorm(x, sym.Variable("gamma"), sym.Variable("beta"), num_groups=2), (3, 4, 6)),
    "pooling": (sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="avg"), (2, 3, 7, 7)),
    "windows with gaps": (sym.Pooling(x, kernel=(2, 3), stride=(3, 4), pool_type="avg"), (2, 3, 9, 10)),
    "windows with padding": (sym.Pooling(x, kernel=(3,), stride=(3,), pad=(2,), pool_type="sum",
                                         pooling_convention="full"), (2, 3, 14)),
    "pick": (sym.pick(x, places), (6, 8)),
    "one_hot": (sym.one_hot(sym.BlockGrad(x), depth=9) * 1, (7,)),
    "dropout": (sym.Dropout(x, p=0.25), (5, 13)),
    "dropout along an axis": (sym.Dropout(x, p=0.25, axes=(0,)), (5, 13)),
    "take": (sym.take(x, places), (40, 8)),
    "softmax output": (sym.SoftmaxOutput(x, places), (6, 40)),
}
#: Networks that also run in the other dtypes: a kernel of each kind.
OTHERS = ("flat", "softmax", "layer norm", "batch norm")


@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name in NETWORKS
                                             for dtype in ("float32", "bfloat16", "float64")
                                             if dtype == "float32" or name in OTHERS])
def test_bytes_of_a_network_equal_the_estimate(name: str, dtype: str, gpu: Gpu) -> None:
    net, shape = NETWORKS[name]
    executor = net.simple_bind(mx.gpu(0), type_dict={"x": dtype}, x=shape)
    for array in executor.arg_arrays:
        array[:] = np.arange(array.size).reshape(array.shape) % 5
    with gpu.counting():
        outs = executor.forward(is_train=True)
        assert check(executor, gpu, True, [[mx.nd.ones(out.shape, ctx=mx.gpu(0), dtype=out.dtype) for out in outs]])


@pytest.mark.simulated  # a device with many processors has more sums of rows
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_gradient_of_layer_norm_reads_its_data_once(dtype: str, gpu: Gpu) -> None:
    net, _ = layer_norm((640, 256))
    executor = net.simple_bind(mx.gpu(0), type_dict={"x": dtype}, x=(640, 256))
    out, = executor.forward(is_train=True)
    executor.backward(mx.nd.ones(out.shape, ctx=mx.gpu(0), dtype=dtype))
    whole = out.size * np.dtype(dtype).itemsize
    step, = [step for step in executor.plan(True).backward.steps
             if step.run and step.node.op.name == "_backward_LayerNorm"]
    read, written = map(sum, zip(*map(bytes_moved, step.run)))
    assert 2 * whole < read < 2.5 * whole and whole < written < 1.5 * whole


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_cheap_values_are_computed_again_in_backward(dtype: str, gpu: Gpu) -> None:
    """Forward of ``x * sigmoid(1.5 x) + 0.5``, six times, writes each of the results, and no sigmoid."""
    net = x
    for _ in range(6):
        net = net * sym.sigmoid(net * 1.5) + 0.5
    plan = net.simple_bind(mx.gpu(0), type_dict={"x": dtype}, x=(512, 256)).plan(True)
    whole = 512 * 256 * np.dtype(dtype).itemsize
    moved = [[bytes_moved(function) for step in half.steps if step.node is not None for function in step.run]
             for half in (plan.forward, plan.backward)]
    assert moved == [[(whole, 6 * whole)], [(7 * whole, whole)]]


def test_an_undeclared_pass_over_memory_is_detected(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_passes", lambda expression, shape: [1] * len(expression.inputs))
    with pytest.raises(AssertionError, match="read"):
        test_bytes_of_a_network_equal_the_estimate("softmax", "float32", gpu)
