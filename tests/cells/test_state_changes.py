"""Random programs whose state changes between two calls: compiled functions agree with eager ones."""

from __future__ import annotations

import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg.cells.cell import Cell
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from tests.cells.state_programs import Program

STEPS = 8


class Whole(Cell):
    """A Cell that is a program."""

    def __init__(self, program: Program):
        super().__init__()
        self.program = program

    def construct(self, x: Any) -> Any:
        return self.program.function(x)


def sequence(seed: int) -> None:
    """Calls of a program, with a change of its state between most of them."""
    chooses, program = random.Random(seed), Program(seed)
    function: Any = program.function if chooses.random() < 0.7 else Whole(program)
    ways = {"value": (lambda f: f), "gradient": ms.grad}
    eager = {name: way(function) for name, way in ways.items()}
    compiled = {name: jit(way(function)) for name, way in ways.items()}
    compiled["around"] = ms.grad(compiled["value"])
    eager["around"] = eager["gradient"]
    done = []
    for _ in range(STEPS):
        name = chooses.choice(("value", "value", "gradient", "around"))
        x = np.array([1.0, -2.0, 0.5], np.float32)
        expected, found = eager[name](Tensor(x)).asnumpy(), compiled[name](Tensor(x)).asnumpy()
        done.append(name)
        if not np.array_equal(expected, found):
            raise AssertionError(f"seed {seed}, after {done}: expected {expected}, found {found}\n\n"
                                 + "\n".join(program.text))
        if chooses.random() < 0.8:
            done.append(program.change())


@pytest.fixture
def swept() -> Iterator[None]:
    """Removes entries that programs put into the environment and into ``sys.modules``."""
    yield
    for table in (os.environ, sys.modules):
        for name in [name for name in table if name.lower().startswith("_state")]:
            del table[name]


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("seeds", range(20))
def test_compiled_functions_read_moved_states_as_eager_ones(seeds: int) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*runs as Python.*")
        for seed in range(5 * seeds, 5 * seeds + 5):
            sequence(seed)
