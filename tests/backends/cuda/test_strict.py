"""All operators on devices that are not the host: the strict stand-in, and a real GPU if there is one."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest

from opreg import ndarray, symbol
from opreg.core import generators
from opreg.core.array_module import backend
from opreg.core.op import runs_body
from opreg.core.registry import get
from opreg.errors import DeviceError
from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray.autograd import record
from opreg.ndarray.context import Context
from opreg.symbol.naming import AttrScope
from tests.builtin.test_operators import ROWS, SOME, differentiated, plannable
from tests.cuda.device import gpus
from tests.cuda.paths import by_operator, instructions, rows_by_operator, without_a_path
from tests.cuda.strict import FUNCTIONS, METHODS, UFUNCS, StrictArray, StrictError, StrictGenerator, xp
from tests.questions import of_each
from tests.rows import Row, spread
from tests.running import Use, agree, eager, graph, heads

STRICT = Context("strict", 1)  # CuPy's current device is another one

FIXED = [row for row in ROWS if row.deterministic]
# These operators draw until enough values differ, so the host must read them.
DRAWN = [row for row in ROWS if not row.deterministic and row.op != "_sample_unique_zipfian"]


def _tolerance(use: Use) -> float | None:
    kinds = {each.dtype.name for each in use.arrays}
    return None if "float16" in kinds else 1e-4 if "float32" in kinds else 1e-6


#: Operators whose vectors have a sign that the library is free to choose; their gradients depend on it.
SIGNS = {"_npi_eigh", "_npi_svd"}


def compare(row: Row, ctx: Context, tolerance: float | None, ways: Sequence[Any]) -> None:
    """Asserts that outputs, changed inputs and gradients equal those of the host, in several ways to run the row."""
    free = row.op in SIGNS and ctx.backend_name == "gpu"
    use = Use.of(row, row.dtypes[0])
    expected = eager(use)
    given = heads(use, expected.outs)
    grads = row.train and differentiated(row)
    if grads:
        expected = eager(use, None, given, grads)
    for way in ways:
        found, title = way(use, ctx, given, grads=grads), f"{row}, {way.__name__}"
        for what in ("outs", "after"):
            for i, (one, other) in enumerate(zip(getattr(found, what), getattr(expected, what), strict=True)):
                assert one.dtype == other.dtype
                agree(*map(np.abs, (one, other)) if free else (one, other), tolerance, f"{title}, {what} {i}")
        for i, gradient in () if free else expected.grads.items():
            agree(found.grads[i], gradient, tolerance, f"{title}, gradient of input {i}")


def _draw(row: Row, way: Any, ctx: Context) -> None:
    """Random numbers that depend on the seed alone, with the shapes and dtypes of the host's."""
    use = Use.of(row, row.dtypes[0])
    found = []
    for _ in range(2):
        generators.seed(3)
        found.append(way(use, ctx).outs)
    for one, other, like in zip(*found, eager(use).outs, strict=True):
        np.testing.assert_array_equal(one, other)
        assert (one.shape, one.dtype) == (like.shape, like.dtype)


def _ways(row: Row) -> tuple[Any, ...]:
    """The ways to run a row: eagerly, and some rows of each operator in a graph, if it can be planned."""
    return (eager, graph) if row in SOME and plannable(row) else (eager,)


@of_each(FIXED, by=lambda row: row.op)
def test_operators_equal_the_host(row: Row) -> None:
    compare(row, STRICT, None, _ways(row))


@of_each(itertools.product(DRAWN, (eager, graph)), by=lambda case: case[0].op)
def test_random_operators_run(case: tuple[Row, Any]) -> None:
    _draw(*case, STRICT)


#: On the bed, where the compiler takes a fifth of a second for each kernel, two rows of each operator, unless all are
#: asked for. The stand-in has them all.
ON_A_GPU = spread(ROWS, 2 if os.environ.get("OPREG_TEST_GPU") == "bed" and "OPREG_TEST_ALL" not in os.environ else
                  len(ROWS))
BY_OPERATOR = rows_by_operator(ROWS)


def _rows(name: str, ctx: Context, rows: Collection[Row]) -> None:
    for row in BY_OPERATOR[name]:
        if row in rows and row in FIXED:
            compare(row, ctx, _tolerance(Use.of(row, row.dtypes[0])), _ways(row))
        elif row in rows:
            for way in _ways(row):
                _draw(row, way, ctx)


@pytest.mark.gpu
@pytest.mark.parametrize("name", by_operator(ROWS))
def test_operators_run_on_a_gpu(name: str) -> None:
    """Rows of an operator on a real GPU."""
    _rows(name, Context("gpu", 0), ON_A_GPU)


def test_the_operators_that_the_bed_runs_have_the_kernels_and_instructions_of_all() -> None:
    rows = BY_OPERATOR
    with gpus():
        left_out = without_a_path(rows)
        bodies = {name for name in left_out if runs_body(get(name), backend("gpu").xp)}
    run = set().union(*[instructions(rows[name]) or () for name in rows if name not in left_out])
    assert "softmax" not in left_out and "Convolution" not in left_out
    for name in sorted(left_out - bodies):
        assert instructions(rows[name]) <= run, name


@pytest.mark.parametrize("name", ["Convolution", "_random_uniform"])
def test_the_tests_for_a_gpu_pass_on_the_stand_in(name: str) -> None:
    """The test for a GPU, run on the stand-in, which shows that the test itself is right."""
    _rows(name, STRICT, ROWS)


# --------------------------------------------------------------------------------- the stand-in is strict


@pytest.mark.parametrize("leak", [
    float, int, bool, complex, list, len, np.asarray, np.sin, np.sum, lambda a: np.zeros(2) + a,
    lambda a: a + np.zeros(2), lambda a: a * np.float64(2), lambda a: xp.add(a, np.zeros(2)),
    lambda a: xp.asarray(np.zeros(2)), lambda a: a[np.array([0])], lambda a: a[np.int64(0)],
    lambda a: a.__setitem__(0, np.zeros(1)), lambda a: xp.sum([1, 2]), lambda a: xp.max(a, initial=0),
    lambda a: xp.add.reduceat(a, [0]), lambda a: xp.multiply.at(a, xp.asarray([0]), 1.0),
    lambda a: xp.add.at(a.astype("int8"), xp.asarray([0]), 1), xp.maximum.reduce,
    lambda a: xp.add(a, a, where=a > 0), lambda a: xp.where(True, a, a), lambda a: xp.vectorize(abs)(a) + 0,
    lambda a: xp.take(a, xp.asarray([0]), mode="clip"), lambda a: xp.sort(a, kind="quicksort"),
    lambda a: xp.lexsort((a, a)), lambda a: a.item(), lambda a: a.tolist(), lambda a: a.ctypes,
    lambda a: a.flags.writeable, lambda a: a.__array_interface__, lambda a: a[a], lambda a: 1.0 in a,
    lambda a: xp.einsum("i,i->i", a, a, out=a), lambda a: xp.matmul(a, a, None), lambda a: xp.matmul(a, a, a),
    lambda a: xp.concatenate([a], 0, None, "float32"), lambda a: StrictGenerator(0).choice(3),
    lambda a: StrictGenerator(0).normal(),
])
def test_the_stand_in_refuses_what_cupy_refuses(leak: Any) -> None:
    with pytest.raises((StrictError, AttributeError, IndexError)):
        leak(xp.asarray([1.0, 2.0]))


def test_the_stand_in_computes_what_cupy_computes() -> None:
    a = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    before = xp.launches
    total = (a * 2 + a.T).sum()
    assert isinstance(total, StrictArray) and total.shape == () and total.get() == 30
    assert xp.launches == before + 3
    out = xp.empty_like(a)
    assert np.isnan(out.get()).all()
    assert xp.exp(a, out) is out
    a += 1
    a[0] = 7
    assert a.get().tolist() == [[7, 7], [4, 5]]
    xp.add.at(a, (xp.asarray([0, 0]), xp.asarray([1, 1])), 1.0)
    assert a[0, 1].get() == 9


def test_arrays_are_copied_between_host_and_stand_in() -> None:
    there = array([1, 2], STRICT)
    assert isinstance(there._data, StrictArray) and there.context is STRICT
    assert (there + 1).as_in_context(Context("cpu")).asnumpy().tolist() == [2, 3]
    assert isinstance(array([1, 2]).as_in_context(STRICT), NDArray)
    with pytest.raises(DeviceError, match="as_in_context"):
        there + array([1, 2])


def test_a_graph_over_two_devices_copies_between_them() -> None:
    """Each group computes on its own device, and arrays between the groups are copied."""
    with AttrScope(ctx_group="there"):
        hidden = symbol.FullyConnected(symbol.Variable("data"), num_hidden=3, name="fc")
    net = symbol.LinearRegressionOutput(hidden * 2, symbol.Variable("label"), name="out")
    found = []
    for group2ctx in ({"there": STRICT}, None):
        executor = net.simple_bind(cpu(), data=(2, 4), label=(2, 3), group2ctx=group2ctx)
        rng = np.random.default_rng(0)
        for value in executor.arg_arrays:
            value[:] = rng.standard_normal(value.shape)
        executor.forward(is_train=True)
        executor.backward()
        found.append([each.asnumpy() for each in (*executor.outputs, *executor.grad_arrays)])
        assert executor.grad_dict["fc_weight"].context is (STRICT if group2ctx else cpu())
    for one, other in zip(*found):
        agree(one, other)


@pytest.mark.parametrize("key", [1, slice(0, 2), [0, 2], np.array([2, 0]), (slice(None), np.array([1, 1])), None],
                         ids=str)
def test_subscripts_equal_numpys(key: Any) -> None:
    host = np.arange(12.0).reshape(3, 4)
    x = array(host, STRICT, "float64")
    expected = host[key] if np.ndim(host[key]) else host[key].reshape(1)
    assert x[key].asnumpy().tolist() == expected.tolist()
    x.attach_grad()
    with record():
        y = x[key] * 3
    y.backward()
    assert x.grad.asnumpy().sum() == 3 * expected.size
    x[key] = -1
    host[key] = -1
    assert x.asnumpy().tolist() == host.tolist()
    there = array([2, 0], STRICT, "int32")
    assert x[there].asnumpy().tolist() == host[[2, 0]].tolist()


def test_tables_equal_those_of_cupy() -> None:
    cupy = pytest.importorskip("cupy", exc_type=Exception)
    for name in UFUNCS:
        assert isinstance(getattr(cupy, name), cupy.ufunc), name
    for name, params in FUNCTIONS.items():
        found: Any = cupy
        for part in name.split("."):
            found = getattr(found, part)
        theirs = inspect.signature(found).parameters
        named = {each.name for each in theirs.values() if each.kind is each.KEYWORD_ONLY}
        places = params[:params.index("*")] if "*" in params else params
        assert named.isdisjoint(places) and (named or found is cupy.pad or "*" not in params), name
        if not any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in theirs.values()):
            assert {param for param in params if param != "*"} <= set(theirs), name
            assert named.issuperset(params[len(places) + 1:]), name
    for name in METHODS:
        assert hasattr(cupy.ndarray, name), name
    for name in StrictGenerator.METHODS:
        assert hasattr(cupy.random.Generator, name), name
    assert backend("strict").xp is xp


def test_rates_in_arrays_are_not_compared_with_numbers() -> None:
    """One formula serves both; it compares rates only if they are numbers, since the host would wait for arrays."""
    row = next(row for row in ROWS if row.op == "preloaded_multi_sgd_mom_update")
    weight, grad, mom = (array(each, STRICT, "float32") for each in (np.ones(3), np.ones(3), np.ones(3)))
    ndarray.sgd_mom_update(weight, grad, mom, lr=0.1, wd=0.1, **{
        key: value for key, value in row.attrs.items() if key != "num_weights"})
    compare(row, STRICT, 1e-4, _ways(row))
