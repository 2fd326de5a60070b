"""What all tests share: the same random numbers in every test, and no GPU tests without a GPU."""

from __future__ import annotations

import pytest
from hypothesis import settings

from opreg import generators
from opreg.backend import backend
from opreg.errors import DeviceError

# A run says the same as the one before; `pytest --hypothesis-profile=default` looks further.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def _missing_gpu() -> str:
    """Why there is no usable CUDA device, or nothing."""
    try:
        backend("gpu")
    except DeviceError as error:
        return str(error)
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked ``gpu`` where it cannot run."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _missing_gpu() if marked else ""
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test starts from the same state of all generators."""
    generators.seed(0)
