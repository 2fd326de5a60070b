"""Kernels for GPUs: their source is compiled for the host and run there, and compiled for GPUs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.backends.cuda import cublaslt, elementwise, folds, rows
from opreg.backends.cuda.layout import Arrangement, Reach, arrange
from opreg.backends.cuda.operators import updates
from opreg.builtin.layers import layer_norm, losses, softmax
from opreg.core.array_module import backend
from opreg.core.registry import ops
from opreg.elementwise import expression as e
from opreg.elementwise.expression import PRIMITIVES, Expression, Instruction, Term, astype, trace
from opreg.elementwise.rows import RowLayout, row_sum, trace_rows, traced
from opreg.errors import OpError
from tests.cuda import host, nvrtc, strict
from tests.cuda.device import gpus
from tests.cuda.host import Host, KernelError, array

ops.exp  # noqa: B018 (so that all operators are there)

needs_compiler = pytest.mark.skipif(host.COMPILER is None, reason="needs a C++ compiler")
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")

BFLOAT = np.dtype(ml_dtypes.bfloat16)
#: Tolerance between the results of a kernel and those of the reference.
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-12}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, -2.5, 0.75]
TWO = {"add", "subtract", "multiply", "divide", "mod", "hypot", "power", "maximum", "minimum", "greater", "less",
       "greater_equal", "less_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_xor"}


class Case(NamedTuple):
    """An expression with copies of its inputs, its results, and the expected values."""

    name: str
    outs: list[np.ndarray]
    expected: list[np.ndarray]


def ask(device: Host, name: str, expression: Expression, ins: list[Any], outs: list[np.ndarray]) -> Case:
    """Binds an expression and launches it once."""
    with np.errstate(all="ignore"):
        expected = expression(np, *[np.array(each) for each in ins])
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    found = arrange(ins, outs)
    assert isinstance(found, Arrangement), found
    elementwise.bound(expression, found, device)()  # type: ignore[arg-type]
    return Case(name, outs, expected)


def compare(cases: list[Case]) -> None:
    for case in cases:
        for out, expected in zip(case.outs, case.expected):
            tolerance = TOLERANCES[out.dtype.name]
            np.testing.assert_allclose(np.asarray(out, np.float64), np.broadcast_to(expected, out.shape).astype(float),
                                       tolerance, tolerance, err_msg=case.name)


def blank(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return array(np.full(shape, np.nan), dtype)


def arity(name: str) -> int:
    return 3 if name == "where" else 2 if name in TWO else 1


@needs_compiler
def test_every_primitive_equals_numpy_even_on_special_values() -> None:
    device, cases, rng = Host(), [], np.random.default_rng(0)
    pairs = [np.array(column, np.float32) for column in zip(*itertools.product(SPECIAL, SPECIAL))]
    for name, prim in PRIMITIVES.items():
        count = arity(name)
        expression = trace(lambda *terms, prim=prim: Term(prim, terms), count)
        inside = rng.uniform(1.1, 1.9, 70) if name == "arccosh" else rng.uniform(0.05, 0.95, 70)
        for ins in ([inside, rng.uniform(-2, 2, 70), inside][:count], [*pairs, pairs[0]][:count]):
            given = [array(each, np.float32) for each in ins]
            cases.append(ask(device, name, expression, list(given), [blank(given[0].shape, np.float32)]))
    device.run("address")
    compare(cases)


MIXED = trace(lambda x, y: e.tanh(x) * y + 0.1, 2)


def layouts(dtype: Any) -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    """Layouts of inputs and outputs in plans: flat, broadcast, strided, with a tail, in place, from an odd address."""
    rng = np.random.default_rng(1)
    x, y = (array(rng.standard_normal((6, 40)), dtype) for _ in range(2))
    odd = array(rng.standard_normal((7, 39)), dtype)
    inner = array(rng.standard_normal((4, 3, 16)), dtype)
    return {
        "flat": ([x, y], [blank((6, 40), dtype)]),
        "a row for all": ([x, array(rng.standard_normal(40), dtype)], [blank((6, 40), dtype)]),
        "a number for each row": ([x, array(rng.standard_normal((6, 1)), dtype)], [blank((6, 40), dtype)]),
        "a number for all": ([x, array(rng.standard_normal(1), dtype)], [blank((6, 40), dtype)]),
        "transposed": ([x.T, y.T], [blank((40, 6), dtype)]),
        "transposed and flat": ([x.T, array(rng.standard_normal((40, 6)), dtype)], [blank((40, 6), dtype)]),
        "backwards": ([x[::-1, ::-1], y], [blank((6, 40), dtype)]),
        "with a tail": ([odd, odd], [blank((7, 39), dtype)]),
        "an odd address": ([odd.reshape(-1)[1:], odd.reshape(-1)[:-1]], [blank((7 * 39 - 1,), dtype)]),
        "rows with gaps": ([x[:, 8:24], y[:, 8:24]], [blank((6, 40), dtype)[:, 16:32]]),
        "in the middle": ([inner, array(rng.standard_normal((4, 1, 16)), dtype)], [blank((4, 3, 16), dtype)]),
        "a number": ([array(np.array(2.0), dtype), array(np.array(3.0), dtype)], [blank((), dtype)]),
    }


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", BFLOAT, "float32", "float64"], ids=str)
def test_every_layout_of_arrays_is_run_through(dtype: Any) -> None:
    device = Host()
    cases = [ask(device, name, MIXED, ins, outs) for name, (ins, outs) in layouts(dtype).items()]
    x = array(np.linspace(-3, 3, 96), dtype)
    cases.append(ask(device, "in place", MIXED, [x, x], [x]))
    device.run("address")
    compare(cases)


@needs_compiler
def test_one_kernel_writes_results_of_several_dtypes() -> None:
    device = Host()
    code = [Instruction(PRIMITIVES["exp"], (0,)), Instruction(astype(np.dtype("float16")), (2,)),
            Instruction(PRIMITIVES["multiply"], (3, 2.0)), Instruction(PRIMITIVES["add"], (2, 1))]
    x, y = array(np.linspace(-2, 2, 100), np.float32), array(np.linspace(0, 1, 100), np.float64)
    outs = [blank((100,), "float16"), blank((100,), "float64")]
    found = arrange([x, y], outs)
    assert isinstance(found, Arrangement)
    elementwise.bound(Expression.of(2, code, [4, 5]), found, device)()  # type: ignore[arg-type]
    device.run("address")
    expected = np.exp(np.asarray(x))
    np.testing.assert_allclose(np.asarray(outs[0], float), expected.astype("float16") * 2.0, 1e-3)
    np.testing.assert_allclose(outs[1], expected + np.asarray(y), 1e-6)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", BFLOAT], ids=str)
def test_16_bits_round_to_the_nearest_and_ties_to_even(dtype: Any) -> None:
    stored = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        wide = stored.astype(np.float32)
        between = np.unique(np.concatenate([wide, (wide[:-1] + wide[1:]) / 2, np.nextafter(wide, np.float32(0)),
                                            np.float32([65519.9, 65520, 3.39e38, 1e-40, 2e-8])]))
    device = Host()
    copied = Expression.of(1, [Instruction(PRIMITIVES["multiply"], (0, 1.0))], [1])
    there, back = blank(between.shape, dtype), blank(stored.shape, np.float32)
    for source, out in ((array(between), there), (array(stored), back)):
        found = arrange([source], [out])
        assert isinstance(found, Arrangement)
        elementwise.bound(copied, found, device)()  # type: ignore[arg-type]
    device.run("address")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(there).astype(np.float32), between.astype(dtype).astype(np.float32))
    np.testing.assert_array_equal(back, wide)


# ---------------------------------------------------------------------------------------------------- rows

ELEMENT, ROW, COLUMN = RowLayout.ELEMENT, RowLayout.ROW, RowLayout.COLUMN
#: Rows and their length: a warp, with a tail, a block, and longer than registers hold.
SIZES = [(5, 7), (9, 64), (3, 300), (2, 3000), (1, 33000)]


def _norm(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, deviation = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - mean) / deviation, mean[:, 0], deviation[:, 0]


def _softmax(x: np.ndarray) -> np.ndarray:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


class RowCase(NamedTuple):
    """A function of rows, the layouts of its inputs and results, and the same function in NumPy."""

    function: Callable
    inputs: tuple[RowLayout, ...]
    results: tuple[RowLayout, ...]
    reference: Callable
    settings: dict[str, float] = {}


ROW_CASES = {
    "softmax": RowCase(softmax.softmax_of, (ELEMENT,), (ELEMENT,), lambda x: [_softmax(x * 0.5)], {"scale": 0.5}),
    "log_softmax": RowCase(softmax._log_softmax, (ELEMENT,), (ELEMENT,), lambda x: [np.log(_softmax(x))],
                           {"scale": 1.0}),
    "backward_softmax": RowCase(softmax._through_softmax, (ELEMENT, ELEMENT), (ELEMENT,),
                                lambda g, y: [(g - (g * y).sum(-1, keepdims=True)) * y], {"scale": 1.0}),
    "layer_norm": RowCase(layer_norm._layer_norm, (ELEMENT, COLUMN, COLUMN), (ELEMENT, ROW, ROW),
                          lambda x, g, b: [_norm(x)[0] * g + b, *_norm(x)[1:]], {"eps": 1e-5}),
    "classes": RowCase(losses._to_class, (ELEMENT, ROW), (ELEMENT,), lambda y, label: [
        (y - (np.arange(y.shape[1]) == np.trunc(label)[:, None])) * 2.0],
        {"spread": 0.0, "peak": 1.0, "ignored": None, "by_output": False, "scale": 2.0}),
}


def _shaped(along: RowLayout, count: int, n: int) -> tuple[int, ...]:
    return {ELEMENT: (count, n), ROW: (count,), COLUMN: (n,)}[along]


@needs_compiler
@pytest.mark.parametrize("name", ROW_CASES)
def test_rows_are_reduced_however_long_they_are(name: str) -> None:
    case, device, rng, cases = ROW_CASES[name], Host(), np.random.default_rng(2), []
    expression = trace_rows(case.function, case.inputs, **case.settings)
    for dtype, (count, n) in itertools.product(("float32", "float16", "float64"), SIZES):
        if dtype != "float32" and n not in (64, 3000):
            continue
        ins = [array(rng.standard_normal(_shaped(along, count, n)), dtype) for along in case.inputs]
        expected = case.reference(*[np.array(each, np.float64) for each in ins])
        outs = [blank(_shaped(along, count, n), dtype) for along in case.results]
        rows.bound_rows(expression, ins, outs, count, n, device)()  # type: ignore[arg-type]
        cases.append(Case(f"{name} {dtype} {count} {n}", outs, expected))
    device.run("address")
    for each in cases:
        for out, expected in zip(each.outs, each.expected):
            tolerance = 10 * TOLERANCES[out.dtype.name]
            np.testing.assert_allclose(np.asarray(out, float), expected, tolerance, tolerance, err_msg=each.name)


def _sums_of_normal(g: Any, x: Any, mean: Any, inverse: Any) -> Any:
    return row_sum(g * (x - mean) * inverse), row_sum(g)


def _sums(device: Host, count: int, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    g, x = (array(rng.standard_normal((count, n)), np.float32) for _ in range(2))
    mean, inverse = (array(rng.uniform(0.5, 1, count), np.float32) for _ in range(2))
    outs = [blank((n,), np.float32), blank((n,), np.float32)]
    for step in folds.bound_fold(traced(_sums_of_normal, 4), [g, x, mean, inverse],
                                 [ELEMENT, ELEMENT, COLUMN, COLUMN], outs, [(count, True), (n, False)],
                                 device, lambda i, shape, dtype: blank(shape, dtype)):  # type: ignore[arg-type]
        step()
    wide = [np.array(each, float) for each in (g, x, mean[:, None], inverse[:, None])]
    return [(outs[0], (wide[0] * (wide[1] - wide[2]) * wide[3]).sum(0)), (outs[1], wide[0].sum(0))]


@needs_compiler
@pytest.mark.parametrize("order", ["forward", "reversed"])
def test_columns_are_summed_in_one_step_or_two_in_any_order_of_blocks(order: str) -> None:
    device = Host()
    pairs = [pair for count, n in ((1, 1), (50, 70), (700, 33)) for pair in _sums(device, count, n)]
    device.run("address", order)
    for out, expected in pairs:
        np.testing.assert_allclose(out, expected, 1e-4, 1e-4)


@needs_compiler
def test_threads_of_a_block_do_not_race() -> None:
    device = Host()
    _sums(device, 20, 40)
    x, y = array(np.ones((1, 300)), np.float32), blank((1, 300), np.float32)
    expression = trace_rows(softmax.softmax_of, (ELEMENT,))
    rows.bound_rows(expression, [x], [y], 1, 300, device)()  # type: ignore[arg-type]
    device.run("thread")


def _gradient_with_sums(device: Host, count: int, n: int, dtype: Any) -> list[np.ndarray]:
    """The gradient of LayerNorm and the sums of its teams."""
    rng = np.random.default_rng(5)
    ins = [array(rng.standard_normal(shape), dtype) for shape in ((count, n), (count, n), (n,), (count,), (count,))]
    out = blank((count, n), dtype)
    expression = trace_rows(layer_norm._through_layer_norm, (ELEMENT, ELEMENT, COLUMN, ROW, ROW))
    outs = [out, blank((n,), dtype), blank((n,), dtype)]
    found = rows.bound_rows_with_sums(expression, ins, outs, count, n, device,  # type: ignore[arg-type]
                                      lambda i, shape, dtype: blank(shape, dtype))
    assert found is not None
    found[0]()
    return [out, *found[1].values()]


@needs_compiler
def test_rows_that_are_added_do_not_race_and_have_one_order() -> None:
    found = []
    for sanitizer, order in (("thread", "forward"), ("address", "reversed")):
        device = Host()
        outs = [out for count, n in ((90, 24), (5, 33), (40, 600)) for out in _gradient_with_sums(
            device, count, n, np.float32)]
        device.run(sanitizer, order)
        assert not any(np.isnan(out).any() for out in outs)
        found.append(outs)
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@needs_nvrtc
def test_kernels_that_add_rows_compile_without_spilling() -> None:
    device = Host()
    for dtype, n in itertools.product((np.float16, BFLOAT, np.float32, np.float64), (64, 768, 4096)):
        if (dtype, n) != (np.float64, 4096):
            _gradient_with_sums(device, 8, n, dtype)
    for made in nvrtc.compile([each.text for each in device.launches]):
        assert made.spills == made.stack == 0


# ------------------------------------------------------------------------------------ the means of these tests


@needs_compiler
@pytest.mark.parametrize(("sanitizer", "replaced", "by", "message"), [
    ("address", "at < total; at += step", "at <= total; at += step", "heap-buffer-overflow"),
    ("thread", "    __syncthreads();\n", "", "data race"),
    ("", "    __syncthreads();\n", "    if (threadIdx.x % 2) { float v = 0; __shfl_xor_sync(0xffffffffu, v, 1); }\n",
     "part ways"),
])
def test_a_broken_kernel_is_found_out(sanitizer: str, replaced: str, by: str, message: str) -> None:
    device = Host()
    if sanitizer == "address":
        x = array(np.ones(39), np.float32)
        ask(device, "broken", MIXED, [x, x], [blank((39,), np.float32)])
    else:
        _sums(device, 20, 40)
    device.rewrite(replaced, by)
    with pytest.raises(KernelError, match=message):
        device.run(sanitizer)


@needs_compiler
def test_an_error_begins_with_the_line_that_a_sanitizer_names() -> None:
    device = Host()
    device.RawModule('extern "C" __global__ void beyond(float* a) {\n    a[threadIdx.x + 1] = 0;  // too far\n}\n'
                     ).get_function("beyond")((1,), (4,), (array(np.ones(4), np.float32),))
    with pytest.raises(KernelError, match=r"^\w+\.cpp, line \d+: a\[threadIdx.x \+ 1\] = 0;  // too far\n"):
        device.run("address")


# ------------------------------------------------------------------------------------------------ for GPUs


@needs_nvrtc
def test_kernels_compile_for_gpus_without_spilling_and_read_16_bytes_at_once() -> None:
    wide = {"float16": "v4.u32", "bfloat16": "v4.u32", "float32": "v4.f32", "float64": "v2.f64"}
    for dtype in ("float16", BFLOAT, "float32", "float64"):
        texts = {}
        for name, (ins, outs) in layouts(dtype).items():
            found = arrange(ins, outs)
            assert isinstance(found, Arrangement)
            texts[name] = elementwise.source(MIXED, found.layout)
        for name, made in zip(texts, nvrtc.compile(list(texts.values()))):
            assert made.spills == made.stack == 0 and made.registers <= 48, name
            if name in ("flat", "a row for all"):
                assert f"ld.global.nc.{wide[str(np.dtype(dtype))]}" in made.accesses, name
                assert f"st.global.{wide[str(np.dtype(dtype))]}" in made.accesses, name


@needs_nvrtc
@pytest.mark.parametrize("name", ROW_CASES)
def test_rows_compile_for_gpus_without_spilling(name: str) -> None:
    case = ROW_CASES[name]
    expression = trace_rows(case.function, case.inputs, **case.settings)
    choices = list(itertools.product(("float16", "float32", "float64"), (64, 1000, 4096, 16384, 100000)))[::2]
    texts = []
    for dtype, n in choices:
        ins = [blank(_shaped(along, 1, n), dtype) for along in case.inputs]
        outs = [blank(_shaped(along, 1, n), dtype) for along in case.results]
        texts.append(rows.rows_source(expression, rows.shape_of(expression, ins, outs, 1, n)))
    for (dtype, n), made in zip(choices, nvrtc.compile(texts)):
        assert made.spills <= (64 if dtype == "float64" else 0), (dtype, n, made)


@needs_nvrtc
def test_updates_compile_for_gpus_and_read_16_bytes_at_once() -> None:
    texts = []
    for count in (2, 3, 4):
        terms = Term(None, (0,)), *[Term(None, (i,)) for i in range(1, count + 1)]
        *states, rate = terms[2:]
        new = [state * 0.9 + terms[1] for state in states]
        step = e.square(new[0]) if new else terms[1]
        moved = e.compiled(terms, terms[0] - step * rate, *new)
        texts += [updates.source(moved, count, apart, np.dtype("float32"), 4) for apart in (False, True)]
    for made in nvrtc.compile(texts):
        assert made.spills == made.stack == 0
        assert {"ld.global.v4.f32", "st.global.v4.f32"} <= made.accesses


@needs_nvrtc
def test_every_primitive_compiles_for_gpus() -> None:
    texts = []
    for name, prim in PRIMITIVES.items():
        found = arrange([blank((64,), np.float32)] * arity(name), [blank((64,), np.float32)])
        assert isinstance(found, Arrangement)
        texts.append(elementwise.source(trace(lambda *terms, prim=prim: Term(prim, terms), arity(name)), found.layout))
    for name, made in zip(PRIMITIVES, nvrtc.compile(texts, 90)):
        assert made.spills == 0, name


# ------------------------------------------------------------------------------------------- whole executors


@needs_compiler
@pytest.mark.parametrize("processors", [1, 132])
def test_an_executor_on_a_gpu_gives_the_numbers_of_one_on_the_host(processors: int) -> None:
    rng = np.random.default_rng(4)
    net = mx.sym.FullyConnected(mx.sym.var("x"), mx.sym.var("w"), mx.sym.var("b"), num_hidden=24)
    net = mx.sym.tanh(net * 0.5 + 1.0) * net
    net = mx.sym.SoftmaxOutput(mx.sym.LayerNorm(net, mx.sym.var("gamma"), mx.sym.var("beta")), mx.sym.var("label"))
    arrays = {"x": rng.standard_normal((10, 8)), "w": rng.standard_normal((24, 8)), "b": rng.standard_normal(24),
              "gamma": rng.standard_normal(24), "beta": rng.standard_normal(24), "label": rng.integers(0, 24, 10)}

    def run(ctx: Any) -> list[np.ndarray]:
        args = {name: mx.nd.array(each, ctx=ctx) for name, each in arrays.items()}
        executor = net.bind(ctx, args, args_grad={name: mx.nd.zeros(each.shape, ctx=ctx)
                                                  for name, each in args.items()})
        found = [executor.forward(is_train=True)[0].asnumpy()]
        executor.backward()
        return found + [each.asnumpy() for each in executor.grad_dict.values()]

    expected = run(mx.cpu())
    with gpus(processors) as xp:
        found = run(mx.gpu(0))
        alone = isinstance(cublaslt.library(xp), str)  # otherwise the library sums the gradient of the bias
        assert xp.kernels == ["elementwise", "rows", "rows", "rows", "elementwise", "rows", "columns", "elementwise",
                              *["columns"] * alone]
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


LARGE: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "columns that are cut": (lambda x: mx.sym.LayerNorm(x, name="norm"), (900, 24)),
    "rows that are cut": (lambda x: mx.sym.sum(x * x, axis=1), (2, 40000)),
    "all": (lambda x: mx.sym.mean(mx.sym.tanh(x)), (3, 20000)),
    "statistics": (lambda x: mx.sym.BatchNorm(x, name="norm", fix_gamma=False), (8, 3, 20, 20)),
    "long rows": (lambda x: mx.sym.log_softmax(x), (3, 20000)),
    "pooling": (lambda x: mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max"), (4, 8, 30, 30)),
}


@needs_compiler
@pytest.mark.parametrize("processors", [1, 132])
@pytest.mark.parametrize("name", LARGE)
def test_large_arrays_are_shared_by_few_processors_and_by_many(name: str, processors: int) -> None:
    make, shape = LARGE[name]
    net, rng = make(mx.sym.var("x")), np.random.default_rng(8)
    shapes, outs, states = net.infer_shape(x=shape)
    arrays = {each: rng.standard_normal(size) for each, size in zip(net.list_arguments(), shapes)}
    heads = [rng.standard_normal(size) for size in outs]

    def run(ctx: Any) -> list[np.ndarray]:
        args = {each: mx.nd.array(array, ctx=ctx) for each, array in arrays.items()}
        grads = {each: mx.nd.zeros(array.shape, ctx=ctx) for each, array in arrays.items()}
        executor = net.bind(ctx, args, args_grad=grads, aux_states=[mx.nd.ones(size, ctx=ctx) for size in states])
        found = executor.forward(is_train=True)
        executor.backward([mx.nd.array(head, ctx=ctx) for head in heads])
        return [each.asnumpy() for each in (*found, *executor.grad_dict.values(), *executor.aux_arrays)]

    expected = run(mx.cpu())
    with gpus(processors):
        found = run(mx.gpu(0))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, 2e-4, 2e-4)


@needs_compiler
@pytest.mark.parametrize(("name", "attrs"), [
    ("sgd_mom_update", {"momentum": 0.9}), ("adam_update", {"beta1": 0.8}), ("ftrl_update", {"lamda1": 0.1}),
    ("rmsprop_update", {"gamma1": 0.9, "clip_weights": 1.5})])
def test_an_update_is_one_launch_and_moves_weights_as_the_host_does(name: str, attrs: dict[str, float]) -> None:
    rng = np.random.default_rng(5)
    count = len(getattr(ops, name).signature.input_names)
    for size, dtype in ((5, "float32"), (20003, "float32"), (4096, "float64")):
        values = [rng.standard_normal(size), rng.standard_normal(size),
                  *[rng.uniform(2, 3, size) for _ in range(count - 2)]]

        def run(ctx: Any, values: list[np.ndarray] = values, dtype: str = dtype) -> list[np.ndarray]:
            arrays = [mx.nd.array(each, ctx=ctx, dtype=dtype) for each in values]
            for rate in (0.1, 0.2):  # rates may change from step to step
                getattr(mx.nd, name)(*arrays, lr=rate, wd=0.01, rescale_grad=0.5, out=arrays[0], **attrs)
            return [array.asnumpy() for array in arrays]

        expected = run(mx.cpu())
        with gpus() as xp:
            found = run(mx.gpu(0))
            assert xp.kernels == ["updates", "updates"]
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, 1e-5, 4e-6)


@needs_compiler
def test_many_weights_are_moved_by_one_launch() -> None:
    rng = np.random.default_rng(6)
    values = [(rng.standard_normal(size), rng.standard_normal(size)) for size in (3, 9000, 64)]

    def run(ctx: Any) -> list[np.ndarray]:
        pairs = [[mx.nd.array(each, ctx=ctx) for each in pair] for pair in values]
        mx.nd.multi_sgd_update(*[array for pair in pairs for array in pair], lrs=(0.1,) * 3, wds=(0.0,) * 3,
                               num_weights=3, out=[weight for weight, _ in pairs])
        return [weight.asnumpy() for weight, _ in pairs]

    expected = run(mx.cpu())
    with gpus() as xp:
        found = run(mx.gpu(0))
        assert xp.kernels == ["updates"]
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, 1e-6, 1e-7)


def test_arrays_that_a_kernel_cannot_run_through_are_declined_with_a_reason() -> None:
    x = array(np.ones((4, 8)), np.float32)
    assert arrange([x[:3]], [x[1:]]) == "an input overlaps an output"
    assert "one address" in str(arrange([x], [np.broadcast_to(array(np.ones(8), np.float32), (4, 8)).view(host.Array)]))
    found = arrange([x], [blank((4, 8), np.float32)])
    assert isinstance(found, Arrangement) and found.layout.operands[0].reach is Reach.FLAT
    integers = array(np.ones(4), np.int32)
    assert str(elementwise.declines(MIXED, [integers, integers], [integers])).startswith("dtype int32")


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_operators_on_16_bits_are_fused_on_a_gpu(dtype: str) -> None:
    data = np.linspace(-2, 2, 90)
    x = mx.sym.var("x")
    net = mx.sym.Cast(mx.sym.tanh(x * 0.5 + 1.0) * x, dtype="float32") * 3.0

    def run(ctx: Any) -> list[np.ndarray]:
        executor = net.bind(ctx, {"x": mx.nd.array(data, ctx=ctx, dtype=dtype)},
                            args_grad={"x": mx.nd.zeros(data.shape, ctx=ctx, dtype=dtype)})
        found = [executor.forward(is_train=True)[0].asnumpy()]
        executor.backward(mx.nd.ones(data.shape, ctx=ctx))
        return [*found, executor.grad_dict["x"].asnumpy().astype(np.float32)]

    expected = run(mx.cpu())
    with gpus() as xp:
        found = run(mx.gpu(0))
        assert xp.kernels == ["elementwise", "elementwise"]
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, 4 * TOLERANCES[dtype], 4 * TOLERANCES[dtype])


@needs_compiler
def test_kernels_are_compared_with_the_reference_on_a_gpu() -> None:
    with gpus():
        net = mx.sym.softmax(mx.sym.exp(mx.sym.var("x") * 0.5))
        executor = net.simple_bind(mx.gpu(0), x=(4, 5), check_kernels=True)
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((4, 5), ctx=mx.gpu(0)))
        rows = executor.kernel_report().rows
    assert {row.kernel for row in rows} == {"cuda"} and all(0 <= row.absolute < 1e-5 and row.runs for row in rows)


@needs_compiler
def test_addresses_are_read_from_arrays_without_an_interface_object(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(strict.StrictArray, "__cuda_array_interface__", property(asked.append))
    with gpus():
        net = mx.sym.softmax(mx.sym.FullyConnected(mx.sym.tanh(mx.sym.var("x")), num_hidden=3))
        executor = net.simple_bind(mx.gpu(0), x=(4, 5))
        executor.forward(is_train=True, x=np.ones((4, 5), np.float32))
        executor.backward(mx.nd.ones((4, 3), ctx=mx.gpu(0)))
        weight = mx.nd.ones((3,), ctx=mx.gpu(0))
        weight.attach_grad()
        with mx.autograd.record():
            loss = (weight * 2).sum()
        loss.backward()
        weight[:1] = 3
    assert not asked


def test_a_kernel_that_does_not_compile_names_operator_node_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class CompileException(Exception):
        """The error class of CuPy."""

    def refusing(code: str, options: Any = ()) -> Any:
        lines = code.splitlines()
        number = next(i for i, line in enumerate(lines, 1) if "tanh(x0)" in line)
        raise CompileException(f'/tmp/tmp1/x.cubin.cu({number}): error: identifier "x0" is undefined\n\n1 error '
                               "detected in the compilation of x.cubin.cu.")

    with gpus(), monkeypatch.context() as patch:
        patch.setattr(backend("gpu").xp, "RawModule", refusing)
        with pytest.raises(OpError, match=r'does not compile: identifier "x0" is undefined, in line \d+: '
                                          r"const float r0 = tanh\(x0\);") as caught:
            mx.sym.tanh(mx.sym.var("x"), name="bent").simple_bind(mx.gpu(0), x=(3, 4)).forward()
        said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert "tanh" in said and "bent" in said
        assert isinstance(caught.value.__cause__, CompileException)


@needs_compiler
def test_kernels_are_named_after_their_operators() -> None:
    x, w = mx.sym.var("x"), mx.sym.var("w")
    with gpus() as xp:
        for net in (mx.sym.softmax(x), mx.sym.sum(x, axis=1), mx.sym.tanh(x), mx.sym.tanh(x * 2) + w,
                    mx.sym.Dropout(x, p=0.5), mx.sym.Pooling(x, kernel=(2,), pool_type="max")):
            net.simple_bind(mx.gpu(0), **dict.fromkeys(net.list_arguments(), (2, 3, 4))).forward(is_train=True)
        weight = mx.nd.ones(3, ctx=mx.gpu(0))
        mx.nd.sgd_update(weight, weight * 2, lr=0.1, out=weight)
        assert xp.titled == ["rows__softmax", "columns__sum", "elementwise__tanh", "elementwise__multiply_tanh_add",
                             "claim__claim", "elementwise__dropped", "pool__Pooling", "updates__sgd_update"]
        many = x
        for _ in range(3):
            for function in (mx.sym.sin, mx.sym.cos, mx.sym.arctan, mx.sym.arcsinh, mx.sym.expm1, mx.sym.log1p,
                             mx.sym.tanh, mx.sym.sigmoid, mx.sym.erf, mx.sym.floor, mx.sym.square):
                many = function(many)
        many.simple_bind(mx.gpu(0), x=(3,)).forward()
        assert max(map(len, xp.titled)) <= 80
