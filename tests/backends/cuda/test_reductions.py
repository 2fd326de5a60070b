"""Reductions on a GPU: sums and similar functions along any axes, statistics, and functions of them."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import columns, cublaslt, rows
from opreg.backends.cuda.folds import bound_fold, groups_of
from opreg.core.registry import get
from opreg.elementwise.expression import equal
from opreg.elementwise.rows import RowExpression, RowLayout, column, row_mean, row_size, row_sum, traced
from tests.cuda import host, nvrtc
from tests.cuda.device import gpus
from tests.cuda.host import Host, KernelError, array

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

BFLOAT = np.dtype(ml_dtypes.bfloat16)
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}
#: Shapes and reduced axes: rows, long rows, columns, stacks of columns, separate axes, all axes.
AXES = [((5, 7), (1,)), ((3, 64), (1,)), ((2, 9001), (1,)), ((40000,), (0,)), ((7, 5), (0,)), ((900, 33), (0,)),
        ((300, 32), (0,)), ((5, 9, 16), (1,)), ((70, 1024), (0,)), ((3, 200, 5), (1,)),
        ((4, 3, 50), (0, 2)), ((2, 3, 4, 5, 6), (0, 2, 4)), ((6, 3, 8), (1, 2)), ((4, 1, 3), (1,)), ((1, 1), (0, 1))]
#: The functions, and their counterparts in NumPy.
FUNCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "nansum": np.nansum,
             "nanprod": np.nanprod, "_square_sum": lambda x, axis: np.sum(x * x, axis)}


def _function(name: str) -> Any:
    """The instructions of an operator that reduces."""
    described = get(name).rules.sets({"axis": None, "keepdims": False, "exclude": False})  # type: ignore[misc]
    return described.rows.expression


def blank(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return array(np.full(shape, np.nan), dtype)


def fold(device: Host, expression: Any, ins: list[Any], roles: list[RowLayout], shape: tuple[int, ...],
         axes: tuple[int, ...], dtype: Any, count: int = 1) -> list[np.ndarray]:
    kept = tuple([n for i, n in enumerate(shape) if i not in axes])
    outs = [blank(kept, dtype) for _ in range(count)]
    for step in bound_fold(expression, ins, roles, outs, groups_of(shape, axes), device,  # type: ignore[arg-type]
                           lambda i, shape, dtype: blank(shape, dtype)):
        step()
    return outs


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", BFLOAT, "float32", "float64"], ids=str)
def test_every_reduction_equals_numpy(dtype: Any) -> None:
    device, rng, cases = Host(), np.random.default_rng(0), []
    names = FUNCTIONS if dtype == "float32" else ("mean", "max")
    for name, (shape, axes) in itertools.product(names, AXES):
        if name != "sum" and shape == (40000,):
            continue
        values = rng.uniform(0.5, 1.5, shape) if "prod" in name else rng.standard_normal(shape)
        if name.startswith("nan"):
            values.reshape(-1)[::3] = np.nan
        data = array(values, dtype)
        (out,) = fold(device, _function(name), [data], [RowLayout.ELEMENT], shape, axes, dtype)
        cases.append((f"{name} {shape} {axes}", out, FUNCTIONS[name](np.asarray(data, float), axis=axes), data))
    device.run("address")
    for name, out, expected, data in cases:
        tolerance = TOLERANCES[out.dtype.name]
        np.testing.assert_allclose(np.asarray(out, float), expected, tolerance,
                                   tolerance * np.sqrt(data.size / max(out.size, 1)), err_msg=name)


@needs_compiler
def test_nan_is_kept_and_the_largest_may_be_infinite() -> None:
    device = Host()
    data = array([[1, np.nan, 3], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 1]], np.float32)
    outs = [fold(device, _function(name), [data], [RowLayout.ELEMENT], (3, 3), axes, np.float32)[0]
            for name in ("max", "min") for axes in ((0,), (1,))]
    device.run()
    with np.errstate(all="ignore"):
        for out, (function, axis) in zip(outs, itertools.product((np.max, np.min), (0, 1))):
            np.testing.assert_array_equal(out, function(np.asarray(data), axis=axis))


def spread(x: Any, y: Any, mean: Any) -> Any:
    return row_sum((x - mean) * y) / row_size(), row_sum(y) - mean


@needs_compiler
@pytest.mark.parametrize("order", ["forward", "reversed"])
def test_reductions_of_sets_are_the_same_in_any_order_of_blocks(order: str) -> None:
    device, rng, cases = Host(), np.random.default_rng(1), []
    expression = traced(spread, 3)
    for shape, axes in (((6, 9000), (1,)), ((400, 6), (0,)), ((4, 5, 60), (0, 2)), ((3, 300, 5), (1,))):
        x, y = (array(rng.standard_normal(shape), np.float32) for _ in range(2))
        kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
        mean = array(rng.standard_normal(kept), np.float32)
        outs = fold(device, expression, [x, y, mean], [RowLayout.ELEMENT, RowLayout.ELEMENT, RowLayout.ROW], shape,
                    axes, np.float32, 2)
        wide = [np.array(each, float) for each in (x, y, mean)]
        cases.append((outs, [((wide[0] - wide[2]) * wide[1]).mean(axes), (wide[1] - wide[2] / (
            x.size / mean.size)).sum(axes)]))
    device.run("address", order)
    for outs, expected in cases:
        for out, each in zip(outs, expected):
            np.testing.assert_allclose(out, each, 1e-4, 1e-4)


#: The first count that float32 does not hold.
LARGE = (1 << 24) + 1


@needs_compiler
@pytest.mark.parametrize("along", ["rows", "columns"])
def test_counts_of_large_sets_are_exact(along: str) -> None:
    device, x, out = Host(), array(np.ones((1, 8)), np.float64), blank((1,), np.float64)
    expression = _function("mean")
    if along == "rows":
        rows.bound_rows(RowExpression(expression, [RowLayout.ELEMENT]), [x], [out], 1, 8, device,  # type: ignore[arg-type]
                        size=LARGE)()
    else:
        columns.bound_columns(RowExpression(expression, [RowLayout.ELEMENT], RowLayout.COLUMN), [x], [out], 1, 8, 1,
                              device, size=LARGE)()  # type: ignore[arg-type]
    device.run()
    assert out[0] == 8 / LARGE


@needs_compiler
def test_a_label_chooses_one_of_many_columns() -> None:
    device, n = Host(), LARGE + 7
    y, label, out = array(np.zeros((1, n)), np.float16), array([LARGE - 1], np.float32), blank((1, n), np.float16)
    expression = RowExpression(traced(lambda y, label: y - equal(column(), label), 2),
                               [RowLayout.ELEMENT, RowLayout.ROW])
    rows.bound_rows(expression, [y, label], [out], 1, n, device)()  # type: ignore[arg-type]
    device.run("")
    assert np.flatnonzero(out).tolist() == [LARGE - 1]


@needs_compiler
def test_threads_do_not_race() -> None:
    device, rng = Host(), np.random.default_rng(2)
    for shape, axes in (((100, 5), (0,)), ((100, 8), (0,)), ((2, 9000), (1,))):
        data = array(rng.standard_normal(shape), np.float32)
        fold(device, traced(row_sum, 1), [data], [RowLayout.ELEMENT], shape, axes, np.float32)
    device.run("thread")


@needs_compiler
def test_a_kernel_that_reads_beyond_its_part_is_found() -> None:
    device = Host()
    data = array(np.ones((2, 9001)), np.float32)
    fold(device, traced(row_sum, 1), [data], [RowLayout.ELEMENT], (2, 9001), (1,), np.float32)
    device.rewrite("n - begin < part ? n - begin : part", "part")
    with pytest.raises(KernelError, match="heap-buffer-overflow"):
        device.run("address")


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling() -> None:
    texts = []
    for dtype in ("float16", BFLOAT, "float32", "float64"):
        dtype = np.dtype(dtype)
        for function, count in ((row_mean, 1), (spread, 3)):
            expression = traced(function, count)
            outs = (dtype,) * len(expression.results)
            alongs = [RowLayout.ELEMENT, RowLayout.ELEMENT, RowLayout.COLUMN][:count]
            texts += [columns.columns_source(RowExpression(expression, alongs, RowLayout.COLUMN), (dtype,) * count,
                                             outs, columns.Tile(lanes, wide), 8, False)
                      for lanes, wide in ((16 // dtype.itemsize, 32), (1, 32), (16 // dtype.itemsize, 4))]
            for n, part in ((64, None), (100000, None), (100000, 4096)):
                inputs = [RowLayout.ELEMENT, RowLayout.ELEMENT, RowLayout.CYCLE][:count]
                along = RowExpression(expression, inputs)
                arrays = [blank((1, n) if each is RowLayout.ELEMENT else (1,), dtype) for each in inputs]
                shape = rows.shape_of(along, arrays, [blank((1,), dtype)] * len(outs), 1, n, part)
                texts.append(rows.rows_source(along, shape))
    for made in nvrtc.compile(texts):
        assert made.spills == 0 and made.stack == 0


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float16", BFLOAT, "float32", "float64"], ids=str)
def test_columns_are_read_in_packs_of_16_bytes(dtype: Any) -> None:
    """Each load of a matrix is a pack; a block has 4 kB in flight with any tile, if there are enough rows."""
    data = blank((512, 64), dtype)
    tile = columns.tile_of([data], [RowLayout.ELEMENT], 64)
    assert tile.lanes * data.itemsize == 16 and tile.columns >= 64
    expression = RowExpression(traced(row_sum, 1), [RowLayout.ELEMENT], RowLayout.COLUMN)
    text = columns.columns_source(expression, (data.dtype,), (data.dtype,), tile, tile.high(512), False)
    (made,) = nvrtc.compile([text], 90)
    loads = [each for each in made.accesses if each.startswith("ld.")]
    assert loads and all(int(each.rpartition(".v")[2][0]) * int(each[-2:]) == 128 for each in loads), loads
    assert tile.wide * tile.high(512) * 16 == 4096


@pytest.mark.parametrize(("n", "dtype", "tile"), [
    (7, "float32", (1, 8)), (6, "float32", (2, 4)), (16, "float32", (4, 4)), (8, "float16", (8, 1)),
    (1000, "float16", (8, 32)), (1002, "float16", (2, 32)), (3, "float64", (1, 4))])
def test_columns_are_tiled_by_their_width_and_alignment(n: int, dtype: str, tile: tuple[int, int]) -> None:
    assert columns.tile_of([blank((4, n), dtype)], [RowLayout.ELEMENT], n) == tile
    aside = blank((4 * n + 1,), dtype)[1:].reshape(4, n)  # its address is no multiple of a pack
    assert columns.tile_of([aside], [RowLayout.ELEMENT], n).lanes == 1


# ------------------------------------------------------------------------------------------- whole executors


def compared(net: Any, arrays: dict[str, np.ndarray], dtype: str = "float32", train: bool = True,
             aux: dict[str, np.ndarray] | None = None, tolerance: float = 1e-5) -> list[str]:
    """Asserts that an executor on a GPU gives the results of one on the host; returns the names of its kernels."""

    def run(ctx: Any) -> list[np.ndarray]:
        args = {name: mx.nd.array(each, ctx=ctx, dtype=dtype) for name, each in arrays.items()}
        states = {name: mx.nd.array(each, ctx=ctx) for name, each in (aux or {}).items()}
        executor = net.bind(ctx, args, args_grad={name: mx.nd.zeros(each.shape, ctx=ctx, dtype=dtype)
                                                  for name, each in args.items()}, aux_states=states)
        found = [out.asnumpy() for out in executor.forward(is_train=train)]
        heads = np.random.default_rng(9)
        executor.backward([mx.nd.array(heads.standard_normal(out.shape), ctx=ctx, dtype=dtype)
                           for out in executor.outputs], is_train=train)
        return found + [each.asnumpy() for each in (*executor.grad_dict.values(), *executor.aux_dict.values())]

    expected = run(mx.cpu())
    with gpus() as xp:
        found = run(mx.gpu(0))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.astype(float), other.astype(float), tolerance, tolerance)
        return xp.kernels


@needs_compiler
@pytest.mark.parametrize(("name", "attrs", "kernels"), [
    ("sum", {"axis": 1}, ["columns"]), ("mean", {"axis": 0}, ["columns"]), ("max", {}, ["rows"]),
    ("min", {"axis": (0, 2)}, ["rows", "columns"]), ("norm", {"axis": 2}, ["rows"]),
    ("nansum", {"axis": 1, "exclude": True}, ["rows", "columns"]), ("norm", {"ord": 1, "axis": 1}, ["columns"])])
def test_an_executor_reduces_as_the_host_does(name: str, attrs: dict[str, Any], kernels: list[str]) -> None:
    rng = np.random.default_rng(3)
    ran = compared(getattr(mx.sym, name)(mx.sym.var("x"), **attrs), {"x": rng.standard_normal((4, 5, 6))})
    assert [kernel for kernel in ran if kernel != "elementwise"] == kernels


@needs_compiler
def test_the_gradient_of_a_bias_is_a_sum_of_columns() -> None:
    rng = np.random.default_rng(4)
    net = mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("w"), mx.sym.var("b"), num_hidden=24)
    ran = compared(net, {"x": rng.standard_normal((300, 8)), "w": rng.standard_normal((24, 8)),
                         "b": rng.standard_normal(24)}, tolerance=1e-4)
    with gpus() as xp:
        alone = isinstance(cublaslt.library(xp), str)  # otherwise cublasLt sums the bias' gradient
    assert ran.count("columns") == 2 * alone  # one step reduces parts of the rows, another their results
    net = mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.var("b"))
    assert "columns" in compared(net, {"x": rng.standard_normal((30, 8)), "b": rng.standard_normal((1, 8))})
