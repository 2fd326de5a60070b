"""Fixtures of the tests of Cells."""

from __future__ import annotations

import pytest

from tests.cells.hooked_cells import RUNS, Run


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs an action on tensors before the call of a function."""
    return RUNS[request.param]
