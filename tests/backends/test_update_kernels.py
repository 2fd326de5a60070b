"""Optimizer updates compiled with numba: their results, the arrays they accept, and what they cache."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("numba")

import opreg as mx
from opreg.backends.numba import compiler
from opreg.backends.numba.operators import updates
from opreg.builtin.optimizers import updating
from opreg.builtin.optimizers.update_formulas import Formula
from opreg.core import threads
from opreg.core.registry import get

SIZE = updating.SMALL + 3
#: Operators whose formulas are compiled, with numbers for all their attributes.
COMPILED = {
    "sgd_update": {}, "sgd_mom_update": dict(momentum=0.9), "nag_mom_update": dict(momentum=0.9), "signsgd_update": {},
    "signum_update": dict(momentum=0.9, wd_lh=0.1), "adam_update": dict(beta1=0.8, beta2=0.9, epsilon=1e-6),
    "ftml_update": dict(t=3), "rmsprop_update": dict(gamma1=0.9, clip_weights=1.5),
    "rmspropalex_update": dict(gamma1=0.9, gamma2=0.8), "_sparse_adagrad_update": {}, "ftrl_update": dict(lamda1=0.1),
}
CLIPPED = dict(wd=0.01, rescale_grad=0.5, clip_gradient=0.3)


@pytest.fixture(autouse=True)
def waited() -> Iterator[None]:
    """Ends the compilation of a test before the next test begins."""
    yield
    compiler.wait()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[compiler.Function]:
    """The compiled functions that have been called."""
    made: list[compiler.Function] = []
    table_runner = updates.table_runner

    def spy(function, *args):
        made.append(function)
        return table_runner(function, *args)

    monkeypatch.setattr(updates, "table_runner", spy)
    return made


def arrays_of(name: str, dtype: str, size: int = SIZE) -> list[mx.nd.NDArray]:
    """Weight, gradient and states; the states are positive, since some are averages of squares."""
    rng = np.random.default_rng(7)
    count = len(get(name).signature.input_names)
    found = [rng.standard_normal(size), rng.standard_normal(size)] + [rng.uniform(2, 3, size) for _ in range(count - 2)]
    return [mx.nd.array(each, dtype=dtype) for each in found]


def moved(name: str, kernels: str, arrays: list[mx.nd.NDArray], inplace: bool = True, **attrs) -> list[np.ndarray]:
    """Weight and states after a step, by the given kernels."""
    arrays = [array.copy() for array in arrays]
    with compiler.use(kernels):
        new = getattr(mx.nd, name)(*arrays, lr=0.1, **attrs, **({"out": arrays[0]} if inplace else {}))
    return [each.asnumpy() for each in (new, *arrays)]


@pytest.mark.parametrize("options, dtype", [({}, "float32"), (dict(wd=0.01), "float32"), (CLIPPED, "float32"),
                                            (CLIPPED, "float64")],
                         ids=["plain", "decayed", "clipped", "clipped in float64"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_updates_equal_numpy(name, options, dtype, calls):
    if name == "ftml_update":
        options = {key.replace("clip_gradient", "clip_grad"): value for key, value in options.items()}
    for inplace in (True, False):
        arrays = arrays_of(name, dtype)
        found = moved(name, "numba", arrays, inplace, **COMPILED[name], **options)
        expected = moved(name, "numpy", arrays, inplace, **COMPILED[name], **options)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(one, other, rtol=3e-6 if dtype == "float32" else 1e-14, atol=1e-7)
    assert len(calls) == 2


def test_nan_stays_nan():
    arrays = arrays_of("adam_update", "float32")
    arrays[1][:4] = mx.nd.array([np.nan, np.inf, -np.inf, 0.0])
    found = moved("adam_update", "numba", arrays, clip_gradient=0.5)
    for one, other in zip(found, moved("adam_update", "numpy", arrays, clip_gradient=0.5)):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_rate_that_changes_is_read_and_compiles_nothing(calls):
    arrays = arrays_of("sgd_update", "float32")
    with compiler.use("numba"):
        for rate in (0.5, 0.25, 1e-3):
            weight, gradient = (array.copy() for array in arrays)
            mx.nd.sgd_update(weight, gradient, lr=rate, wd=0.1, out=weight)
            np.testing.assert_allclose(weight.asnumpy(), arrays[0].asnumpy() * (1 - rate * 0.1)
                                       - rate * arrays[1].asnumpy(), rtol=2e-5, atol=1e-6)
    assert len(calls) == 3
    assert len(set(calls)) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_updates_of_many_weights_equal_single_updates_for_any_number_of_threads(count, monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: count)
    rng = np.random.default_rng(3)
    sizes = [1, 7, 1000, updates._STRETCH, 3 * updates._STRETCH + 1, 0, 200_000]
    start = [rng.standard_normal(size).astype("float32") for size in sizes]
    results = []
    for kernels in ("numba", "numpy"):
        weights = [mx.nd.array(each) for each in start]
        update = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.01, wd=0.1))
        with compiler.use(kernels):
            for step in range(3):
                gradients = [mx.nd.array(np.cos(each * step)) for each in start]
                update(list(range(len(sizes))), gradients, weights)
        results.append([weight.asnumpy() for weight in weights])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_arrays_updated_as_one_weight_after_two_are_not_taken_from_the_cache(calls):
    """The compiled update of two weights with two arrays each is not used for one weight with four arrays."""
    weight, grad, other, last = [np.full(SIZE, value) for value in (1.0, 2.0, 3.0, 4.0)]

    two = Formula(lambda weight, grad: weight + grad)
    four = Formula(lambda weight, grad, mean, var: (weight + (mean - var), mean - var))
    with compiler.use("numba"):
        updating.update_together(np, two, [(weight, [weight, grad]), (other, [other, last])])
        assert [each[0] for each in (weight, grad, other, last)] == [3, 2, 7, 4]
        updating.update_together(np, four, [(weight, [weight, grad, other, last])])
    assert [set(each) for each in (weight, grad, other, last)] == [{6}, {2}, {3}, {4}]
    assert len(calls) == 2


def test_odd_layouts_and_other_dtypes_are_left_to_numpy(calls):
    columns, half = (mx.nd.array(np.ones((400, 400)), dtype=dtype) for dtype in ("float32", "float16"))
    columns = mx.nd.NDArray(columns._data.T, columns.context)
    with compiler.use("numba"):
        for weight in (columns, half):
            mx.nd.sgd_update(weight, mx.nd.ones_like(weight), lr=0.5, out=weight)
            assert (weight.asnumpy() == 0.5).all()
    assert not calls


def test_read_only_arrays_are_left_to_numpy(calls):
    weight, grad = np.ones(SIZE), np.ones(SIZE)
    weight.flags.writeable = grad.flags.writeable = False
    moves = functools.partial(updating.update_together, np, Formula(lambda weight, grad: weight + grad),
                              [(weight, [weight, grad])])
    with compiler.use("numba"):
        with pytest.raises(ValueError, match="read-only"):
            moves()
        assert not calls
        weight.flags.writeable = True
        moves()
    assert (weight == 2).all() and len(calls) == 1


def test_tables_are_freed_with_their_arrays(calls):
    weight, gradient = arrays_of("sgd_update", "float32")
    with compiler.use("numba"):
        for _ in range(3):
            mx.nd.sgd_update(weight, gradient, lr=0.5, wd=0.1, out=weight)
    (key,) = [key for key in updates._TABLES._kept if key[-2:] == (id(weight._data), id(gradient._data))]
    del weight, gradient
    gc.collect()
    assert key not in updates._TABLES._kept


def test_functions_are_compiled_after_numpy_has_taken_as_long(calls):
    arrays, before = arrays_of("signum_update", "float64"), set(compiler._FUNCTIONS.entries())
    options = dict(momentum=0.77, wd_lh=0.1, clip_gradient=0.5)
    expected = moved("signum_update", "numpy", arrays, **options)
    moved("signum_update", "auto", arrays, **options)
    (function,) = set(compiler._FUNCTIONS.entries()) - before
    assert function.thread is None
    function.left = 0.0
    moved("signum_update", "auto", arrays, **options)
    function.thread.join()
    assert not calls
    found = moved("signum_update", "auto", arrays, **options)
    assert calls == [function]
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-14)
