"""Helpers of tests: the environment, attempts, statistics of random numbers, comparison of optimizers."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import opreg as mx
from opreg import nd
from opreg.errors import ArgumentError
from opreg.train.test_utils import (
    chi_square_check,
    collapse_sum_like,
    compare_optimizer,
    discard_stderr,
    environment,
    gen_buckets_probs_with_ppf,
    mean_check,
    retry,
    var_check,
    verify_generator,
)

NAME = "OPREG_TEST_TOOLS"


def test_the_environment_is_restored():
    def divided() -> float:
        with environment({NAME: "1", f"{NAME}_2": "2"}):
            assert (os.environ[NAME], os.environ[f"{NAME}_2"]) == ("1", "2")
            with environment(NAME, None):
                assert NAME not in os.environ
            assert os.environ[NAME] == "1"
            return 1 / 0

    assert NAME not in os.environ
    with pytest.raises(ZeroDivisionError):
        divided()
    assert NAME not in os.environ and f"{NAME}_2" not in os.environ
    with pytest.raises(ArgumentError, match="a name and its value"), environment(NAME):
        pass


def test_discard_stderr_hides_the_error_stream(capsys):
    with discard_stderr():
        print("unseen", file=sys.stderr)
    print("seen", file=sys.stderr)
    assert capsys.readouterr().err == "seen\n"


def test_retry_repeats_a_failing_test():
    calls = []

    @retry(3)
    def late(limit: int) -> None:
        calls.append(limit)
        assert len(calls) >= limit

    late(3)
    assert calls == [3, 3, 3]
    with pytest.raises(AssertionError):
        late(9)
    assert calls[3:] == [9, 9, 9]
    with pytest.raises(ArgumentError):
        retry(0)


def test_collapse_sum_like_sums_broadcast_axes():
    a = np.arange(24.0).reshape(2, 3, 4)
    assert (collapse_sum_like(a, (3, 1)) == a.sum(axis=(0, 2))[:, None]).all()
    assert collapse_sum_like(a, ()) == a.sum()
    with pytest.raises(ArgumentError, match="does not broadcast"):
        collapse_sum_like(a, (2, 4))


#: Probabilities of chi-square statistics, from tables: counts in each of the buckets 0, 1, ..., and the probability.
CHANCES = [([60, 40], 0.0455), ([50, 50], 1.0), ([40, 30, 30], 0.3679), ([30, 30, 20, 20], 0.2615),
           ([30, 25, 15, 15, 15], 0.0404)]


@pytest.mark.parametrize("counts, chance", CHANCES)
def test_chi_square_check_compares_counts(counts, chance):
    samples = np.repeat(np.arange(len(counts)), counts)
    even = [1 / len(counts)] * len(counts)
    found, seen, expected = chi_square_check(lambda n: samples, list(range(len(counts))), even, 100)
    assert abs(found - chance) < 5e-5
    assert seen.tolist() == counts and np.allclose(expected, 100 / len(counts))
    buckets = [(i - 0.5, i + 0.5) for i in range(len(counts))]
    assert chi_square_check(lambda n: nd.array(samples), buckets, even, 100)[0] == found


def test_generators_of_a_wrong_distribution_are_found():
    rng = np.random.default_rng(0)
    buckets, probs = gen_buckets_probs_with_ppf(lambda p: p, 5)
    assert len(verify_generator(rng.random, buckets, probs, nsamples=1000)) == 5
    with pytest.raises(AssertionError, match="probabilities"):
        verify_generator(lambda n: rng.random(n) ** 1.5, buckets, probs, nsamples=1000)
    assert mean_check(rng.standard_normal, 0, 1, 1000) and var_check(rng.standard_normal, 1, 1000)
    assert not mean_check(rng.standard_normal, 0.5, 1, 1000) and not var_check(rng.standard_normal, 1.5, 1000)
    with pytest.raises(ArgumentError, match="returned 3 numbers, expected 4"):
        mean_check(lambda n: np.zeros(3), 0, 1, 4)


class _OfDense(mx.optimizer.Optimizer):
    """Gradient descent row by row, which sparse arrays do not allow."""

    def __init__(self):
        super().__init__(learning_rate=0.1)

    def create_state(self, index, weight):
        return None

    def update(self, index, weight, grad, state):
        for row in range(len(weight)):
            weight[row] -= self._get_lr(index) * grad[row]


def test_optimizers_are_compared():
    make = mx.optimizer.SGD
    compare_optimizer(make(momentum=0.9), make(momentum=0.9), (3, 4), "float32")
    compare_optimizer(make(momentum=0.9), make(momentum=0.9), [(3, 4), (2,)], "float64", ntensors=2)
    compare_optimizer(_OfDense(), make(learning_rate=0.1), (3, 4), "float32", "row_sparse", "row_sparse")
    with pytest.raises(AssertionError):
        compare_optimizer(make(momentum=0.9), make(momentum=0.9, wd=0.5), (3, 4), "float32")
    with pytest.raises(AssertionError):
        compare_optimizer(make(), make(learning_rate=0.2), (3, 4), "float32", compare_states=False)


def test_elements_are_compared_one_by_one():
    values = np.array([[1.0, 4.0], [9.0, 16.0]], "float32")
    assert mx.test_utils.assign_each(values, np.sqrt).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert mx.test_utils.assign_each2(values, values + 1, lambda x, y: x * y).tolist() == [[2.0, 20.0], [90.0, 272.0]]
    for copied in (mx.test_utils.assign_each(values, None), mx.test_utils.assign_each2(values, values, None)):
        assert np.array_equal(copied, values) and not np.shares_memory(copied, values)
    with pytest.raises(AssertionError, match="differ"):
        mx.test_utils.assign_each2(values, values[0], max)


def test_random_arguments_have_shapes_and_dtypes():
    low, high = mx.test_utils.random_uniform_arrays((50,), (2, 3), low=4, high=5, dtype="float64")
    assert low.dtype == "float64" and high.shape == (2, 3) and 4 <= low.min() < low.max() < 5
    found = {mx.test_utils.rand_coord_2d(0, 2, 5, 6) for _ in range(50)}
    assert found == {(0, 5), (1, 5)}


def test_structures_are_compared():
    def net(name, op=mx.sym.relu):
        return op(mx.sym.var("x"), name=name) + mx.sym.var("y")

    same = mx.test_utils.same_symbol_structure
    assert same(net("a"), net("b")) and not same(net("a"), net("a", mx.sym.sigmoid))
    assert not same(net("a"), mx.sym.relu(mx.sym.var("x")))
    x, y = mx.sym.var("x"), mx.sym.var("y")
    assert not same(mx.sym.Group([x, y, x - y]), mx.sym.Group([x, y, y - x]))


def test_a_star_import_has_the_usual_names():
    names = {}
    exec("from opreg.test_utils import *", names)
    assert {"np", "array", "Context", "current_context"} <= set(names)
    assert names["mx"] is mx
