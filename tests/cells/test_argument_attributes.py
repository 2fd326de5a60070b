"""Attributes that a program puts on tensors: a compiled function that asks its arguments for them answers as Python."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, nn


def caught(x: Any) -> Any:
    """The attribute, or a default factor if it is missing."""
    try:
        return x * x.scale
    except AttributeError:
        return x * 9.0


def branching(x: Any) -> Any:
    """Another attribute on each side of a branch on values."""
    return x * getattr(x, "scale", 3.0) if x.sum() > 0 else x * getattr(x, "shift", 4.0)


class Scaled(nn.Cell):
    """A Cell whose method looks an attribute of its argument up."""

    def construct(self, x: Any) -> Any:
        return self.factor(x) * x

    def factor(self, x: Any) -> Any:
        return x.scale if hasattr(x, "scale") else 5.0


#: Functions that look an attribute of their tensor up.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a default": lambda x: x * getattr(x, "scale", 7.0),
    "another default behind it": lambda x: x * getattr(x, "scale", 7.0) + getattr(x, "shift", 1.0),
    "an exception": caught,
    "a branch": branching,
    "an inner function": lambda x: ms.jit(caught)(x) + 1.0,
    "a method of a Cell": Scaled(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_sequence_of_changes_gives_the_results_of_python(name: str) -> None:
    rng = random.Random(name)
    function = FUNCTIONS[name]
    compiled = ms.jit(function)
    tensors = [Tensor(np.float32([number])) for number in (1.0, -1.0, 2.0)]
    with warnings.catch_warnings(action="ignore"):  # it runs as Python where a tensor has the attribute
        for _ in range(60):
            x, attribute = rng.choice(tensors), rng.choice(["scale", "shift", "other"])
            if attribute in vars(x):
                delattr(x, attribute)
            else:
                setattr(x, attribute, float(rng.randint(2, 9)))
            for tensor in tensors:
                assert compiled(tensor).asnumpy() == function(tensor).asnumpy(), vars(tensor)


def test_a_read_and_a_change_run_as_python_and_say_so() -> None:
    @ms.jit
    def read(x: Any) -> Any:
        return x * x.scale

    @ms.jit
    def put(x: Any) -> Any:
        x.scale = 5.0
        return x * x.scale

    x = Tensor(np.float32([2.0]))
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'scale'"):
        read(x)
    with pytest.warns(UserWarning, match=r"put .* runs as Python: it puts the attribute 'scale' on a tensor"):
        assert put(x).asnumpy() == 10.0
    with pytest.warns(UserWarning, match=r"read .* runs as Python: it reads the attribute 'scale' of an argument"):
        assert read(x).asnumpy() == 10.0


def test_a_function_that_reads_a_missing_attribute_stays_compiled() -> None:
    @ms.jit
    def function(x: Any) -> Any:
        return x if hasattr(x, "is_cuda") else x + 1.0

    x = Tensor(np.float32([2.0]))
    with warnings.catch_warnings(action="error"):
        assert [float(function(x)), float(function(x))] == [3.0, 3.0]
    assert function.cache_size == 1
