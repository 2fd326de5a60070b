"""Generators of random numbers that modules of tests have: every test draws the same, whichever ran before."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tests.custom import forty

RNG, OLD = np.random.default_rng(3), np.random.RandomState(3)
RNG.random()  # tests draw after the module
NEXT, NEXT_OLD, OF_FORTY = copy.deepcopy((RNG.random, OLD.random_sample, forty._RNG.random))


@pytest.mark.parametrize("turn", range(2))
def test_every_test_draws_the_same(turn: int) -> None:
    expected = [copy.deepcopy(each)() for each in (NEXT, NEXT_OLD, OF_FORTY)]
    assert [RNG.random(), OLD.random_sample(), forty._RNG.random()] == expected
