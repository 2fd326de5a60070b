"""Element-wise expressions compiled with numba: their results, the arrays they accept, and the moment they take
over."""

from __future__ import annotations

import functools
import inspect
import operator
import os
import pickle
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

import opreg as mx
from opreg.backends.numba import cache, compiler, simd
from opreg.backends.numba import elementwise as jit
from opreg.backends.numba.vector import VECTOR
from opreg.core import threads
from opreg.core.array_module import backend
from opreg.core.cache import Recent
from opreg.core.launch import Call
from opreg.core.registry import get, names
from opreg.elementwise import expression as e
from opreg.elementwise.expression import Expression, Instruction, Term, trace
from opreg.errors import ArgumentError, OpError
from tests.rows import all_rows
from tests.running import Use, graph, heads

# Instructions that numba does not compile. It does not compile expressions that contain one of them, either.
SCALAR = {"sin", "cos", "tan", "gamma", "gammaln", "mod", "bessel_i0", "bessel_i1"}
LONG = np.longdouble


@pytest.fixture(autouse=True)
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the machine choose, and ends the compilation of a test before the next one begins."""
    monkeypatch.delenv("OPREG_JIT", raising=False)
    with compiler.use("auto"):
        yield
    compiler.wait()


def specials(dtype: str) -> np.ndarray:
    """Numbers at the ends of a dtype's range, infinities and NaN."""
    info = np.finfo(dtype)
    sizes = [0.0, 0.5, 1.0, 2.0, info.tiny, info.smallest_subnormal, info.max, 1 - info.epsneg, 1 + info.eps, np.inf]
    return np.array([*sizes, *[-size for size in sizes], np.nan], dtype)


def points(dtype: str, low: float, high: float, seed: int = 0) -> np.ndarray:
    """Numbers of every size, of random bits, between two bounds, near one, and the special ones."""
    rng, count = np.random.default_rng(seed), 20_000
    whole = np.uint32 if dtype == "float32" else np.uint64
    bits = rng.integers(0, np.iinfo(whole).max, count, whole, endpoint=True).view(dtype)
    sizes = rng.choice([-1, 1], count) * 10.0 ** rng.uniform(-12, 3, count)
    about = 1 + rng.standard_normal(count) * 10.0 ** rng.uniform(-7, 0, count)
    found = [bits, rng.uniform(low, high, count), sizes, about, -about, specials(dtype)]
    return np.concatenate([each.astype(dtype) for each in found])


def units(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors in units of the last place; infinite where one number is not finite and the other one differs."""
    dtype, info = found.dtype, np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = np.spacing(np.minimum(np.abs(rounded), info.max)).astype(LONG)
        unit = np.where(unit > 0, unit, LONG(info.smallest_subnormal))
        error = np.abs(found.astype(LONG) - exact) / unit
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    error = np.where(same & ~np.isfinite(error), 0, error)
    return np.where(np.isnan(error), np.inf, error)


def close(found: np.ndarray, wanted: np.ndarray, ulps: float) -> None:
    """Asserts a relative and absolute error of at most ``ulps`` units of the last place of 1."""
    error = ulps * float(np.finfo(found.dtype).eps)
    np.testing.assert_allclose(found, wanted, rtol=error, atol=error)


# -------------------------------------------------------------------------------------------------- accuracy


def exact_erf(x: np.ndarray) -> np.ndarray:
    """The error function by its series, and from 2 on by a continued fraction."""
    size = np.abs(x)
    root = np.sqrt(4 * np.arctan(LONG(1)))
    near = np.minimum(size, LONG(3))
    term = total = near
    for k in range(1, 80):
        term = -term * near * near / k
        total = total + term / (2 * k + 1)
    far = np.maximum(size, LONG(2))
    fraction = np.zeros_like(far)
    for k in range(120, 0, -1):
        fraction = LONG(k) / 2 / (far + fraction)
    large = 1 - np.exp(-far * far) / (far + fraction) / root
    return np.copysign(np.where(size < 2, total * 2 / root, large), x)


#: Functions, the interval of most test values, and the allowed error in units of the last place.
FUNCTIONS: list[tuple[str, float, float, float]] = [
    ("exp", -105, 90, 1.5), ("expm1", -30, 90, 2.5), ("tanh", -12, 12, 3), ("sinh", -90, 90, 3), ("cosh", -90, 90, 2),
    ("log", 0, 10, 1.5), ("log2", 0, 10, 2), ("log10", 0, 10, 3), ("log1p", -1, 10, 2), ("arcsinh", -10, 10, 2.5),
    ("arccosh", 1, 10, 2.5), ("arctanh", -1, 1, 2.5), ("arctan", -10, 10, 2), ("arcsin", -1, 1, 1.5),
    ("arccos", -1, 1, 1.5), ("cbrt", -10, 10, 1), ("erf", -6, 6, 2.5), ("sqrt", 0, 10, 0.5), ("reciprocal", -9, 9, 0.5),
    ("square", -9, 9, 0.5), ("floor", -9, 9, 0), ("ceil", -9, 9, 0), ("trunc", -9, 9, 0), ("sign", -9, 9, 0),
    ("positive", -9, 9, 0), ("negative", -9, 9, 0), ("absolute", -9, 9, 0)]
PAIRS = [("hypot", 1.5), ("power", 0.6), ("maximum", 0), ("minimum", 0), ("add", 0.5), ("subtract", 0.5),
         ("multiply", 0.5), ("divide", 0.5), ("greater", 0), ("greater_equal", 0), ("less", 0), ("less_equal", 0),
         ("equal", 0), ("not_equal", 0), ("logical_and", 0), ("logical_or", 0), ("logical_xor", 0)]


def compiled_kernel(op: Any) -> Any:
    """The kernel of an operator that numba compiles."""
    return next(kernel for kernel in op.kernels if kernel.name == "numba")


def one(name: str, arity: int) -> Expression:
    """Expression of one instruction."""
    return trace(lambda *terms: Term(e.PRIMITIVES[name], terms), arity)


def computed(expression: Expression, *ins: np.ndarray) -> np.ndarray:
    out = np.empty(np.broadcast_shapes(*[each.shape for each in ins]), ins[0].dtype)
    jit.bound(expression, ins, [out])()
    return out


def signs(found: np.ndarray, exact: np.ndarray, name: str) -> None:
    zeros = (found == 0) & (exact == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(exact[zeros]), f"{name}: signs of zeros")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name,low,high,ulps", FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_compiled_functions_are_as_exact_as_numpys(name: str, low: float, high: float, ulps: float, dtype: str) -> None:
    if dtype == "float64" and np.finfo(LONG).nmant < 60:
        pytest.skip("needs numbers that are more exact than float64")
    if dtype == "float64" and name in ("exp", "expm1", "sinh", "cosh"):
        low, high = -750, 711
    x = points(dtype, low, high)
    found = computed(one(name, 1), x)
    with np.errstate(all="ignore"):
        exact = (exact_erf if name == "erf" else getattr(np, e.PRIMITIVES[name].function))(x.astype(LONG))
    error = units(found, exact)
    assert error.max() <= ulps, f"{name}({x[error.argmax()]!r}) is off by {error.max()} units"
    signs(found, exact, name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name,ulps", PAIRS, ids=[row[0] for row in PAIRS])
def test_compiled_functions_of_two_arguments_are_as_exact_as_numpys(name: str, ulps: float, dtype: str) -> None:
    if dtype == "float64" and (name == "power" or np.finfo(LONG).nmant < 60):
        pytest.skip("has no float64, or cannot be compared")
    x = points(dtype, -9, 9)
    y = np.random.default_rng(1).permutation(x)
    if name == "power":  # small exponents, some of them integers
        with np.errstate(invalid="ignore"):
            y[::2] = np.rint(points(dtype, -9, 9, seed=2)[::2].clip(-20, 20))
        y[1::4] = points(dtype, -3, 3, seed=3)[1::4].clip(-3, 3)
    ends = specials(dtype)
    x, y = np.concatenate([x, np.repeat(ends, ends.size)]), np.concatenate([y, np.tile(ends, ends.size)])
    found = computed(one(name, 2), x, y)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(LONG), y.astype(LONG)).astype(LONG)
    error = units(found, exact)
    worst = error.argmax()
    assert error[worst] <= ulps, f"{name}({x[worst]!r}, {y[worst]!r}) is off by {error[worst]} units"
    if name not in ("maximum", "minimum"):  # either of two zeros counts as the larger one
        signs(found, exact, name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erfinv_undoes_erf(dtype: str) -> None:
    x = np.concatenate([points(dtype, -1, 1), specials(dtype)])
    found = computed(one("erfinv", 1), x)
    with np.errstate(all="ignore"):
        wanted = one("erfinv", 1)(np, x)
    np.testing.assert_allclose(found, wanted, rtol=8 * np.finfo(dtype).eps, atol=0)
    signs(found, wanted, "erfinv")


def test_every_instruction_is_tested() -> None:
    tested = {name for name, *_ in FUNCTIONS} | {name for name, _ in PAIRS} | {"erfinv", "where", "logical_not"}
    assert set(VECTOR) == tested
    assert set(e.PRIMITIVES) - set(VECTOR) == SCALAR | {name for name in e.PRIMITIVES if name.startswith("polygamma")}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(VECTOR))
def test_a_number_alone_is_computed_as_one_in_a_register(name: str, dtype: str) -> None:
    if (name, dtype) == ("power", "float64"):
        pytest.skip("has no float64")
    arity, rng = len(inspect.signature(VECTOR[name]).parameters), np.random.default_rng(0)
    ins = [rng.permutation(np.concatenate([rng.choice(points(dtype, -9, 9), 76), specials(dtype)]))
           for _ in range(arity)]
    expression = one(name, arity)
    whole = computed(expression, *ins)
    for length in (1, 3, 7, 23):
        for start in range(0, whole.size, length):
            part = slice(start, start + length)
            found = computed(expression, *[each[part].copy() for each in ins])
            np.testing.assert_array_equal(found, whole[part])
            np.testing.assert_array_equal(np.signbit(found), np.signbit(whole[part]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_fill_the_registers(dtype: str, folder: Path) -> None:
    """Loops use the largest vector registers; by default the compiler would use half of them."""
    x = np.ones(100, dtype)
    np.testing.assert_array_equal(computed(trace(lambda x: x * 3.0 + 1.0, 1), x), 4)
    (function,) = compiler._FUNCTIONS.entries()
    lanes = simd.lanes(np.dtype(dtype))
    assert f"<{lanes} x {'float' if dtype == 'float32' else 'double'}>" in function.compiled.inspect_llvm()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_comparisons_and_selections_equal_numpys(dtype: str) -> None:
    """A NaN counts as true."""
    c, x = specials(dtype), specials(dtype)[::-1].copy()
    np.testing.assert_array_equal(computed(trace(lambda c, x: e.where(c, x, 2.0), 2), c, x), np.where(c, x, 2))
    np.testing.assert_array_equal(computed(one("logical_not", 1), c), np.logical_not(c))


# ------------------------------------------------------------------------------------------------- operators


def _cases() -> dict[str, Any]:
    """Element-wise operators, each with the attributes of a row."""
    found = {}
    for row in all_rows():
        op = get(row.op)
        if op.rules.expression is not None and op.rules.expression(Use.of(row).attrs) is not None:
            label = op.name + "".join(f"-{value}" for value in row.attrs.values() if isinstance(value, str))
            found.setdefault(label, row)
    return found


CASES = _cases()


def test_every_operator_has_a_row() -> None:
    tested = {get(row.op) for row in CASES.values()}
    assert not [name for name in names() if get(name).rules.expression is not None and get(name) not in tested]


def _compare(expression: Expression, ins: list[np.ndarray], rtol: float) -> None:
    with np.errstate(all="ignore"):
        wanted = np.broadcast_to(expression(np, *ins), np.broadcast_shapes(*[each.shape for each in ins]))
    found = computed(expression, *ins)
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * min(float(scale), 1.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("label", CASES)
def test_compiled_expressions_equal_the_reference(label: str, dtype: str) -> None:
    """Operands are the numbers of a row, and all pairs of special numbers."""
    use = Use.of(CASES[label], dtype)
    expression = use.op.rules.expression(use.attrs)
    missing = {prim.name for prim, _ in expression.code} - set(VECTOR)
    double = dtype == "float64" and any(prim.name == "power" for prim, _ in expression.code)
    if not expression.code or missing or double:
        with compiler.use("numba"):
            call = _call(use.op, use.attrs, [each.astype(dtype) for each in use.arrays])
            assert compiled_kernel(use.op).accepts(call)
        return
    rtol = 64 * float(np.finfo(dtype).eps)
    _compare(expression, [each.astype(dtype) for each in use.arrays], rtol)
    ends = specials(dtype)[np.abs(specials(dtype)) != np.finfo(dtype).max]  # products overflow earlier or later
    count = len(use.arrays)
    ins = [np.random.default_rng(i).permutation(np.tile(ends, 3)) for i in range(count)]
    if count == 2:
        ins = [np.repeat(ends, ends.size), np.tile(ends, ends.size)]
    _compare(expression, ins, rtol)


# --------------------------------------------------------------------------------------------------- layouts


def _blend(x: Any, y: Any, z: Any) -> Any:
    return e.tanh(x * y) + z * 0.5


LAYOUTS: list[tuple[str, tuple[Callable[[np.ndarray], np.ndarray], ...], int]] = [
    ("one shape", (lambda a: a, lambda a: a[::-1].copy(), lambda a: a + 1), 1),
    ("twice the same", (lambda a: a, lambda a: a, lambda a: a), 1),
    ("one number", (lambda a: a, lambda a: a[:1, :1, :1], lambda a: a[0, 0, 0, ...]), 1),
    ("a row", (lambda a: a, lambda a: a[0, 0].copy(), lambda a: a), 2),
    ("a column", (lambda a: a, lambda a: a[:, :, :1].copy(), lambda a: a), 2),
    ("a channel", (lambda a: a, lambda a: a[:1, :, :1].copy(), lambda a: a[0, :, :1].copy()), 3),
    ("a row and a column", (lambda a: a[:1, :1].copy(), lambda a: a[:, :, :1].copy(), lambda a: a), 2),
    ("parts of rows", (lambda a: np.tile(a, 2)[:, :, 3:53], lambda a: a, lambda a: a), 2),
    ("upside down", (lambda a: a[::-1], lambda a: a, lambda a: a), 2),
    ("other orders", (lambda a: a.transpose(1, 0, 2).copy().transpose(1, 0, 2), lambda a: a, lambda a: a), 3),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name,make,axes", LAYOUTS, ids=[row[0] for row in LAYOUTS])
def test_arrays_of_every_layout_are_compiled(name: str, make: tuple, axes: int, dtype: str) -> None:
    base = np.random.default_rng(0).standard_normal((4, 3, 50)).astype(dtype)
    ins = [each(base) for each in make]
    out = np.full(base.shape, np.nan, dtype)
    found = jit.arrange(ins, [out])
    assert isinstance(found, jit.Arrangement) and found.layout.axes == axes
    expression = trace(_blend, 3)
    jit.bound(expression, ins, [out])()
    close(out, expression(np, *ins), 8)


@pytest.mark.parametrize("ins,reason", [
    (lambda a: [a.transpose(2, 1, 0).copy().transpose(2, 1, 0)], "input 0 is not contiguous along its last axis"),
    (lambda a: [a, a[:, :, ::-1]], "input 1 is not contiguous along its last axis"),
], ids=["transposed", "backwards"])
def test_unsupported_layouts_are_declined_with_a_reason(ins: Callable, reason: str) -> None:
    base = np.zeros((4, 3, 50), np.float32)
    assert jit.arrange(ins(base), [np.empty_like(base)]) == reason
    with pytest.raises(ArgumentError, match=reason):
        jit.bound(trace(lambda *terms: functools.reduce(operator.add, terms) + 1.0, len(ins(base))), ins(base),
                  [np.empty_like(base)])


@pytest.mark.parametrize("op", ["tanh", "softmax"])
def test_read_only_arrays_are_not_written(op: str) -> None:
    x, gradient = mx.nd.ones((40, 50)), np.zeros((40, 50), "float32")
    gradient.flags.writeable = False
    net = getattr(mx.sym, op)(mx.sym.Variable("x")) * 2.0
    with compiler.use("numba"):
        executor = net.bind(mx.cpu(), {"x": x}, {"x": mx.nd.NDArray(gradient, mx.cpu())})
        with pytest.raises(mx.MXNetError, match="memory that its owner does not let be written"):
            executor.forward(is_train=True)
    assert not gradient.any()


def test_a_sum_of_hundreds_is_not_compiled() -> None:
    net = mx.sym.add_n(*(mx.sym.Variable(f"x{i}") for i in range(257)))
    with compiler.use("numba"):
        executor = net.simple_bind(mx.cpu(), grad_req="null", **dict.fromkeys(net.list_arguments(), (20,)))
        for array in executor.arg_arrays:
            array[:] = 2
        executor.forward()
        assert "257 inputs would take long to compile" in executor.explain()
    assert executor.outputs[0].asnumpy().tolist() == [514.0] * 20


def test_overlapping_arrays_are_declined() -> None:
    base = np.zeros(100, np.float32)
    assert jit.arrange([base[:-1]], [base[1:]]) == "an input overlaps an output"
    raw = np.zeros(4 * 10 + 1, np.uint8)[1:].view(np.float32)
    assert jit.arrange([raw], [np.zeros(10, np.float32)]) == "an array is not aligned"


def test_arrays_of_too_many_axes_are_declined() -> None:
    ins = [np.zeros((2, 3, 4, 5), np.float32), np.zeros((2, 1, 4, 1), np.float32)]
    assert jit.arrange(ins, [np.zeros((2, 3, 4, 5), np.float32)]) == "arrays that are run through along 4 axes"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_expression_may_be_computed_in_place(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((7, 33)).astype(dtype)
    y, expression = x.copy(), trace(lambda a, b: e.exp(a) * b + a, 2)
    jit.bound(expression, [y, y], [y])()
    close(y, expression(np, x, x), 4)


def test_an_expression_may_have_several_results() -> None:
    x = np.random.default_rng(0).standard_normal((5, 40)).astype("float32")
    code = [Instruction(e.PRIMITIVES["exp"], (0,)), Instruction(e.PRIMITIVES["add"], (1, 1.0))]
    outs = [np.empty_like(x), np.empty_like(x)]
    jit.bound(Expression.of(1, code, [2, 1]), [x], outs)()
    close(outs[1], np.exp(x), 2)
    close(outs[0], outs[1] + 1, 0)


def test_results_may_be_constants_or_inputs() -> None:
    """The constant 1 is not confused with input 1."""
    x = np.random.default_rng(0).standard_normal((2, 5, 40)).astype("float32")
    outs = [np.empty_like(x[0]) for _ in range(3)]
    jit.bound(Expression.of(2, [Instruction(e.PRIMITIVES["exp"], (0,))], [2, 1.0, 1]), [*x], outs)()
    close(outs[0], np.exp(x[0]), 2)
    np.testing.assert_array_equal(outs[1], np.ones_like(x[0]))
    np.testing.assert_array_equal(outs[2], x[1])


def test_constants_share_a_function() -> None:
    x = np.arange(8, dtype="float32")
    before = len([*compiler._FUNCTIONS.entries()])
    for number in (0.25, -0.0, np.inf):
        np.testing.assert_array_equal(computed(trace(lambda x, n=number: e.maximum(x, n) - 17.0, 1), x),
                                      np.maximum(x, np.float32(number)) - 17)
    assert len([*compiler._FUNCTIONS.entries()]) <= before + 1


@pytest.mark.parametrize("shape,other", [((1 << 20,), (1 << 20,)), ((1 << 10, 1 << 10), (1 << 10,))],
                         ids=["flat", "rows"])
def test_results_do_not_depend_on_the_number_of_threads(shape: tuple, other: tuple,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(shape).astype("float32"), rng.standard_normal(other).astype("float32")
    expression = trace(lambda x, y: e.exp(x * y) + e.tanh(x), 2)
    found = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        out = np.empty_like(x)
        run = jit.bound(expression, [x, y], [out])
        assert type(run).__name__ == ("CompiledStep" if count == 1 else "ThreadedStep")
        run()
        found.append(out)
    np.testing.assert_array_equal(*found)


# -------------------------------------------------------------------------------------------------- choosing


def _call(op: Any, attrs: Any, ins: list[np.ndarray]) -> Any:
    out = np.empty(np.broadcast_shapes(*[each.shape for each in ins]), ins[0].dtype)
    return Call(op, attrs, ins, [out], ["write"], np, mx.cpu(), False)


def _reason(name: str, *ins: np.ndarray, **attrs: Any) -> str | None:
    op = get(name)
    kernel = next(kernel for kernel in op.kernels if kernel.name == "numba")
    return kernel.accepts(_call(op, op.complete(attrs), list(ins)))  # type: ignore[misc]


BIG = np.ones((64, 64), np.float32)


@pytest.mark.parametrize("name,ins,reason", [
    ("sigmoid", (BIG,), None),
    ("sigmoid", (BIG[:1, :4],), None),
    ("_backward_relu", (BIG, BIG), None),
    ("relu", (BIG,), None),
    ("relu", (BIG[0],), "64 elements are too few"),
    ("tanh", (BIG,), "tanh alone is as fast as a ufunc"),
    ("sin", (BIG,), "sin has no vectorised form"),
    ("_power", (BIG.astype(float), BIG.astype(float)), "power has no vectorised form in float64"),
    ("_backward_arcsinh", (BIG.astype("float16"), BIG.astype("float16")),
     "dtype float16: functions are compiled for float32 and float64"),
    ("sigmoid", (BIG.T[:, :32],), "input 0 is not contiguous along its last axis"),
    ("_backward_hypot_lhs", (BIG.reshape(-1, 8), BIG.reshape(-1, 8), np.ones((512, 1), np.float32), BIG.reshape(-1, 8)),
     "rows of 8 numbers are too short"),
], ids=str)
def test_a_declined_call_has_a_reason(name: str, ins: tuple, reason: str | None) -> None:
    assert _reason(name, *ins) == reason


def test_the_mode_chooses_numba_or_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    with compiler.use("numpy"):
        assert _reason("sigmoid", BIG) == "OPREG_JIT=numpy forbids it"
    with compiler.use("numba"):
        assert _reason("tanh", BIG[:1, :1]) is None
    monkeypatch.setattr(compiler, "_missing", lambda: "numba is not installed")
    assert _reason("sigmoid", BIG) == "numba is not installed"


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(1) as elsewhere:  # without a call of ``use``
        assert elsewhere.submit(compiler.mode).result() == "auto"
        monkeypatch.setenv("OPREG_JIT", "numpy")
        assert elsewhere.submit(compiler.mode).result() == "numpy"
        monkeypatch.setenv("OPREG_JIT", "nunba")
        with pytest.raises(ArgumentError, match="numba"):
            elsewhere.submit(compiler.mode).result()
    with pytest.raises(OpError, match="auto, numpy, numba"), compiler.use("fast"):
        pass


# -------------------------------------------------------------------------------------------------- executors


def _bound(x: np.ndarray) -> Any:
    data = mx.sym.Variable("x")
    return mx.sym.sigmoid(data, name="gate").bind(mx.cpu(), {"x": mx.nd.array(x, dtype=x.dtype)})


def test_an_executor_waits_for_the_compiler_on_request() -> None:
    x = np.random.default_rng(0).standard_normal((30, 50)).astype("float32")
    with compiler.use("numba"):
        executor = _bound(x)
        found = executor.forward()[0].asnumpy()
        assert "sigmoid gate: numba -> " in executor.explain()
    close(found, 1 / (1 + np.exp(-x)), 4)
    with compiler.use("numpy"):
        executor = _bound(x)
        assert "sigmoid gate: ufuncs; numba declined: OPREG_JIT=numpy forbids it" in executor.explain()


def test_the_cache_of_functions_is_bounded_and_plans_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(4))
    first = compiler.function_of("text 0", np.dtype("float32"), 1)
    assert compiler.function_of("text 0", np.dtype("float32"), 1) is first
    for i in range(9):
        compiler.function_of(f"text {i}", np.dtype("float32"), 1)
    assert len([*compiler._FUNCTIONS.entries()]) <= 4
    x = np.ones((3, 4), "float32")
    with compiler.use("numba"):
        executor = _bound(x)
        compiler._FUNCTIONS.clear()
        np.testing.assert_allclose(executor.forward()[0].asnumpy(), 1 / (1 + np.exp(-x)), rtol=1e-6)


def test_an_executor_switches_to_compiled_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ufuncs run until the function is compiled; no run waits for it."""
    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(64))
    monkeypatch.setattr(compiler, "_PATIENCE", 1e9)
    x = np.random.default_rng(0).standard_normal((30, 50)).astype("float32")
    executor = _bound(x)
    with compiler.use("numpy"):
        wanted = _bound(x).forward()[0].asnumpy()
    for _ in range(2):
        np.testing.assert_array_equal(executor.forward()[0].asnumpy(), wanted)
    (function,) = compiler._FUNCTIONS.entries()
    assert 0 < function.left < 1e9 and function.thread is None
    function.left = 0.0
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), wanted)
    compiler.wait()
    assert function.address is not None
    executor.arg_dict["x"][:] = 2 * x
    close(executor.forward()[0].asnumpy(), 1 / (1 + np.exp(-2 * x)), 4)
    segment = executor.plan(False).forward
    assert segment.native is not None and len(segment.flat) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_during_a_compilation_compiles_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child does not have its parent's compiler, nor the compilations that run or wait there."""
    begun, go_on = threading.Event(), threading.Event()

    def compile(source: str, dtype: np.dtype) -> Any:
        begun.set()
        go_on.wait(60)
        raise OSError("no compiler")

    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(64))
    monkeypatch.setattr(compiler, "_compile", compile)
    monkeypatch.setattr(compiler.warnings, "warn", lambda *args, **keywords: None)
    first, second = (compiler.function_of(text, np.dtype("float32"), 1) for text in ("a", "b"))
    first.request()
    assert begun.wait(60)
    second.request()
    threading.Timer(0.1, go_on.set).start()
    child = os.fork()
    if not child:
        free = compiler._COMPILING.acquire(timeout=60)
        os._exit(0 if free and first.thread is None and second.thread is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    compiler.wait()


def test_calls_that_cannot_be_compiled_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise OSError("no compiler")

    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(64))
    monkeypatch.setattr(compiler, "_PATIENCE", 0)
    monkeypatch.setattr(compiler, "_compile", fail)
    warned: list[str] = []
    monkeypatch.setattr(compiler.warnings, "warn", lambda text, *args, **keywords: warned.append(text))
    executor = _bound(BIG)
    for _ in range(3):
        executor.forward()
        compiler.wait()
    assert warned == ["a function could not be compiled, and NumPy computes it instead: no compiler"]
    close(executor.outputs[0].asnumpy(), 1 / (1 + np.exp(-BIG)), 4)


def test_other_devices_are_left_alone() -> None:
    call = _call(get("sigmoid"), {}, [BIG])
    call.xp = object()
    assert compiled_kernel(get("sigmoid")).accepts(call) == "it computes only arrays of NumPy"  # type: ignore[misc]
    assert backend("cpu").xp is np


# ------------------------------------------------------------------------------------------------------- rows

RELATIVES = ("softmax", "softmin", "log_softmax", "SoftmaxActivation", "_backward_softmax", "_backward_log_softmax",
             "LayerNorm", "_backward_LayerNorm", "SoftmaxOutput")
ROWS = [row for row in all_rows() if get(row.op).name in RELATIVES]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_compiled_rows_equal_numpys_forward_and_backward(row: Any, dtype: str) -> None:
    """Forward and backward, by the available kernels."""
    use = Use.of(row, dtype)
    with compiler.use("numpy"):
        wanted = graph(use, head_grads=heads(use, graph(use).outs), grads=bool(use.wanted))
    with compiler.use("numba"):
        found = graph(use, head_grads=heads(use, wanted.outs), grads=bool(use.wanted))
    error = 200 * float(np.finfo(dtype).eps)
    for left, right in zip([*found.outs, *found.grads.values()], [*wanted.outs, *wanted.grads.values()]):
        np.testing.assert_allclose(left, right, rtol=error, atol=error)


def test_every_operator_of_the_softmax_family_is_compiled() -> None:
    for name in RELATIVES:
        assert compiled_kernel(get(name)) and name in {get(row.op).name for row in ROWS}, name


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(3, 1), (5, 40), (1, 1000), (200, 17)], ids=str)
def test_compiled_softmax_of_nan_and_infinity_equals_numpys(name: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    x.ravel()[:3] = [np.inf, -np.inf, np.nan][:x.size]
    x[-1] *= 1e30
    found = []
    for each in ("numpy", "numba"):
        with compiler.use(each):
            executor = getattr(mx.sym, name)(mx.sym.Variable("x"), name="op").bind(mx.cpu(), {"x": mx.nd.array(x)})
            found.append(executor.forward()[0].asnumpy())
    assert f"{name} op: numba -> " in executor.explain()
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("attrs", [{}, {"grad_scale": 0.5, "use_ignore": True}, {"normalization": "batch"},
                                   {"preserve_shape": True, "smooth_alpha": 0.2}], ids=str)
@pytest.mark.parametrize("labels", [[0, 1, 2], [-1, 3, 1], [1.9, -0.9, 2.5], [np.nan, np.inf, -np.inf], [2, 2, 1e30]],
                         ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_softmax_output_handles_invalid_classes_as_numpy(attrs: dict[str, Any], labels: list[float],
                                                                  dtype: str) -> None:
    x, label = np.random.default_rng(0).standard_normal((3, 3)), np.array(labels)
    x[2, 0] = np.nan
    found = []
    for each in ("numpy", "numba"):
        values = {"x": mx.nd.array(x, dtype=dtype), "label": mx.nd.array(label, dtype=dtype)}
        with compiler.use(each):
            executor = mx.sym.SoftmaxOutput(*map(mx.sym.Variable, values), **attrs).bind(
                mx.cpu(), values, {"x": mx.nd.zeros((3, 3), dtype=dtype)}, grad_req={"x": "write", "label": "null"})
            y = executor.forward(is_train=True)[0].asnumpy()
            executor.backward()
            found.append((y, executor.grad_dict["x"].asnumpy()))
    assert executor.explain().count(": numba -> ") == 2
    for one, other in zip(*found):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("attrs,shape,labels,reason", [
    ({"multi_output": True}, (3, 4, 5), (3, 5), "its axis is not the last"),
    ({"normalization": "valid"}, (3, 4), (3,), "the divisor is a sum over the labels"),
    ({}, (3, 2, 20), (3, 2), "the labels are more than the rows, or not contiguous"),
    ({}, (30, 10), (30,), "30 rows of 10 elements are too few"),
], ids=str)
def test_softmax_output_is_declined_with_a_reason(attrs: dict[str, Any], shape: tuple[int, ...],
                                                  labels: tuple[int, ...], reason: str) -> None:
    op = get("_backward_SoftmaxOutput")
    ins = [np.zeros(shape, "float32"), np.zeros(labels, "float32")]
    call = Call(op, op.complete(attrs), ins, [np.zeros(shape, "float32")], ["write"], np, mx.cpu(), True)
    assert compiled_kernel(op).accepts(call) == reason


@pytest.mark.parametrize("name,shape,attrs,reason", [
    ("softmax", (64, 64), {"axis": 0}, "its axis is not the last"),
    ("softmax", (64, 8), {}, "64 rows of 8 elements are too few"),
    ("SoftmaxActivation", (4, 5, 6), {"mode": "channel"}, "its axis is not the last"),
    ("softmax", (0, 8), {}, "nothing to compute"),
    ("log_softmax", (64, 64), {}, None),
], ids=str)
def test_rows_are_declined_with_a_reason(name: str, shape: tuple[int, ...], attrs: dict[str, Any],
                                         reason: str | None) -> None:
    assert _reason(name, np.zeros(shape, "float32"), **attrs) == reason


def test_sums_over_rows_are_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, found = np.random.default_rng(0), []
    ins = [rng.standard_normal(shape) for shape in ((300, 2000), (300, 2000), (2000,), (300, 1), (300, 1))]
    for count in (1, 3):
        monkeypatch.setattr(threads, "count", lambda count=count: count)
        op, outs = get("_backward_LayerNorm"), [np.empty((300, 2000)), np.empty(2000), np.empty(2000)]
        call = Call(op, op.complete({}), ins, outs, ["write"] * 3, np, mx.cpu(), True,
                    scratch=lambda number, shape, dtype: np.empty(shape, dtype))
        with compiler.use("numba"):
            (step,) = compiled_kernel(op).rule.function(call)
        step()
        found.append(outs)
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(found[0], op.kernels[0].rule.function(np, *ins, axis=-1)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_row_operators_switch_to_compiled_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One output that nobody reads, and several outputs."""
    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(64))
    monkeypatch.setattr(compiler, "_PATIENCE", 0)
    x = mx.nd.array(np.random.default_rng(0).standard_normal((30, 50)))
    values = {"x": x, "gamma": mx.nd.ones((50,)) * 2, "beta": mx.nd.ones((50,))}
    grads = {name: mx.nd.zeros(each.shape) for name, each in values.items()}
    made = mx.sym.LayerNorm(*[mx.sym.Variable(name) for name in values], name="op")
    executor, found = made.bind(mx.cpu(), values, grads), []
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward([x])
        found.append([executor.outputs[0].asnumpy(), *[each.asnumpy() for each in executor.grad_arrays]])
        compiler.wait()
    assert len([*compiler._FUNCTIONS.entries()]) >= 2
    for left, right in zip(*found):
        close(left, right, 100)


# ------------------------------------------------------------------------------------------------------ files


def compiled(x: np.ndarray, offset: float) -> int:
    """Compiles a function anew and checks its results; returns whether its machine code was found in the cache."""
    compiler._FUNCTIONS.clear()
    np.testing.assert_array_equal(computed(trace(lambda x: x * 2.0 + offset, 1), x), x * 2 + offset)
    (function,) = compiler._FUNCTIONS.entries()
    return function.compiled.cache_hits


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of a cache that does not exist yet."""
    compiler._caller()  # it is not compiled again, so its file is elsewhere
    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(64))
    monkeypatch.setenv("OPREG_CACHE_DIR", str(tmp_path / "made" / "late"))
    return tmp_path / "made" / "late"


def test_machine_code_is_kept_for_its_owner_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        assert [compiled(BIG, 1.0) for _ in range(3)] == [0, 1, 1]
    finally:
        os.umask(before)
    (file,) = folder.iterdir()
    if os.name == "posix":
        assert [stat.S_IMODE(each.stat().st_mode) for each in (folder.parent, folder, file)] == [0o700, 0o700, 0o600]


def test_texts_have_files_of_their_own(folder: Path) -> None:
    assert [compiled(x, offset) for x in (BIG.astype("f4"), BIG.astype("f8")) for offset in (1.0, 2.0)] == [0] * 4
    assert len(list(folder.iterdir())) == 4


class _Trap:
    def __reduce__(self) -> Any:
        return pytest.exit, ("unpickling ran code",)


@pytest.mark.parametrize("damage", [
    lambda content: b"",
    lambda content: content[:-1],
    lambda content: content + b"\0",
    lambda content: content[:1000] + bytes([content[1000] ^ 1]) + content[1001:],
    lambda content: pickle.dumps(_Trap()),
    lambda content: content[:-len(trap := pickle.dumps(_Trap()))] + trap,
    lambda content: content[:53] + pickle.dumps(_Trap()),
], ids=["empty", "cut", "longer", "one bit", "trap", "trap at the end", "trap with another's hash"])
def test_damaged_files_are_not_read_but_made_anew(damage: Callable[[bytes], bytes], folder: Path) -> None:
    x = np.arange(50.0)
    compiled(x, 1.0)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert [compiled(x, 1.0) for _ in range(2)] == [0, 1]
    assert file.read_bytes()[:20] == whole[:20]


def test_a_file_under_the_name_of_another_is_not_read(folder: Path) -> None:
    x = np.arange(50.0)
    compiled(x, 1.0)
    (one,) = folder.iterdir()
    compiled(x, 2.0)
    (other,) = set(folder.iterdir()) - {one}
    other.write_bytes(one.read_bytes())
    assert compiled(x, 2.0) == 0


@pytest.mark.skipif(os.name != "posix", reason="modes and owners")
class TestOthers:
    """A cached file that other users could have written is not run."""

    def test_a_cached_file_that_others_may_write_is_not_read(self, folder: Path) -> None:
        compiled(BIG, 1.0)
        (file,) = folder.iterdir()
        for mode in (0o620, 0o602):
            file.chmod(mode)
            assert [compiled(BIG, 1.0) for _ in range(2)] == [0, 1]
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_cached_file_that_is_a_link_is_replaced(self, folder: Path) -> None:
        compiled(BIG, 1.0)
        (file,) = folder.iterdir()
        file.symlink_to(file.rename(folder.parent / "elsewhere"))
        assert [compiled(BIG, 1.0) for _ in range(2)] == [0, 1]
        assert not file.is_symlink()

    def test_a_pipe_in_the_cache_folder_is_not_read(self, folder: Path) -> None:
        compiled(BIG, 1.0)
        (file,) = folder.iterdir()
        file.unlink()
        os.mkfifo(file)
        assert [compiled(BIG, 1.0) for _ in range(2)] == [0, 1]

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o722])
    def test_a_cache_folder_that_others_may_write_is_not_used(self, mode: int, folder: Path) -> None:
        compiled(BIG, 1.0)
        folder.chmod(mode)
        with pytest.warns(RuntimeWarning, match=f"not cached in .*others may write it .mode {mode:o}.*chmod go-w"):
            assert compiled(BIG, 1.0) == 0
        assert compiled(BIG, 2.0) == 0  # the warning comes once
        assert len(list(folder.iterdir())) == 1
        folder.chmod(0o755)
        assert compiled(BIG, 1.0) == 1

    def test_a_cache_directory_of_another_user_is_not_used(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        compiled(BIG, 1.0)
        if os.geteuid() == 0:  # files of the administrator are trusted
            os.chown(folder, 12345, -1)
        else:
            monkeypatch.setattr(cache.os, "geteuid", lambda: 12345)
        with pytest.warns(RuntimeWarning, match="not cached in .*it belongs to user"):
            assert compiled(BIG, 1.0) == 0

    def test_a_cached_file_of_another_user_is_compiled_anew(self, folder: Path) -> None:
        compiled(BIG, 1.0)
        (file,) = folder.iterdir()
        if os.geteuid() != 0:
            pytest.skip("only the administrator can give files away")
        os.chown(file, 12345, -1)
        assert [compiled(BIG, 1.0) for _ in range(2)] == [0, 1]
        assert file.stat().st_uid == 0


def test_an_unwritable_cache_folder_raises_no_error(folder: Path) -> None:
    folder.parent.write_text("")
    assert [compiled(BIG, 1.0) for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("platform,variable", [("linux", "XDG_CACHE_HOME"), ("win32", "LOCALAPPDATA")])
def test_the_cache_folder_belongs_to_the_user(platform: str, variable: str, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPREG_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cache.sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache.directory() == tmp_path / "opreg" / "code"
    monkeypatch.delenv(variable)
    own = cache.directory()
    assert own is not None and own.is_relative_to(tmp_path / "home")
    # a relative folder is relative to the folder in which a program was started
    monkeypatch.setenv(variable, "relative")
    assert cache.directory() == own
    monkeypatch.setenv("HOME", "relative")
    assert cache.directory() is None


def test_a_failed_compilation_is_repeated_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_FUNCTIONS", Recent(64))
    monkeypatch.setattr(compiler, "_PATIENCE", 0.0)
    compile_text, failing = compiler._compile, [True]

    def once(source: str, dtype: np.dtype) -> Any:
        if failing:
            failing.clear()
            raise MemoryError
        return compile_text(source, dtype)

    monkeypatch.setattr(compiler, "_compile", once)
    executor = _bound(np.random.default_rng(0).standard_normal((30, 50)).astype("float32"))
    executor.forward()
    (function,) = compiler._FUNCTIONS.entries()
    for _ in range(3):
        executor.forward()
        thread = function.thread
        if thread is not None:
            thread.join()
    assert not failing and function.address is not None


def test_the_choice_between_zeros_is_part_of_the_key_of_cached_code(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiler._version.__wrapped__()
    monkeypatch.setattr(compiler.special, "of_equal_zeros", lambda name, dtype: "another")
    assert compiler._version.__wrapped__() != before
