"""Small networks trained as in MXNet 1.9.1: losses, weights, states, names and files are equal."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opreg as mx
from tests.recorded.training_cases import CASES, run

ANSWERS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "recorded" / "mxnet_training.json").read_text())


def differences(found: Any, expected: Any, place: str = "") -> Iterator[str]:
    """Differences between two results: names, counts and types must be equal, values equal within rounding."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            yield f"{place}: {sorted(found)} for {sorted(expected)}"
        for name in expected.keys() & found.keys():
            yield from differences(found[name], expected[name], f"{place}/{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for i, (one, other) in enumerate(zip(found, expected)):
            yield from differences(one, other, f"{place}/{i}")
    elif isinstance(expected, (int, float)) and isinstance(found, (int, float)):
        if abs(found - expected) > 2e-5 + 2e-5 * abs(expected):
            yield f"{place}: {found} for {expected}"
    elif found != expected:
        yield f"{place}: {found!r} for {expected!r}"


@pytest.mark.parametrize("name", CASES)
def test_trainings_give_the_recorded_weights_of_mxnet(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = list(differences(run(mx, name), ANSWERS[name]))
    assert not found, f"{len(found)} differ: {found[:8]}"
