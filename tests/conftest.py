"""What all tests share: the same random numbers in every test, and no GPU tests without a GPU."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest
from hypothesis import settings

from opreg.core import generators, registry
from opreg.core.array_module import backend
from opreg.errors import DeviceError, UnknownOperatorError

from . import rows
from .cuda import bed
from .cuda.compiled import folder

# A run says the same as the one before, whatever the machine finds faster; `pytest --hypothesis-profile=default` looks
# further.
os.environ.setdefault("OPREG_TUNE", "0")
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--op``, for who writes an operator and will not wait for the rest."""
    parser.addoption("--op", metavar="NAME", help="only the rows of this operator and of its gradient")


def pytest_configure(config: pytest.Config) -> None:
    """Choose rows before the modules are read that make tests of them, and where all workers keep what they compile."""
    folder()
    if os.environ.get("OPREG_TEST_GPU") == "bed":
        bed.install()
    name = config.getoption("--op")
    if name:
        try:
            rows.choose(name)
        except UnknownOperatorError as error:
            raise pytest.UsageError(f"--op: {error}") from None


def _missing_gpu() -> str:
    """Why there is no usable CUDA device, or nothing."""
    try:
        backend("gpu")
    except DeviceError as error:
        return str(error)
    return ""


def _calls(code: CodeType, name: str) -> bool:
    """Whether a function, or one inside of it, uses a name."""
    return name in code.co_names or any(isinstance(each, CodeType) and _calls(each, name) for each in code.co_consts)


@functools.cache
def _on_stand_in(function: Any) -> bool:
    return _calls(function.__code__, "gpus")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked ``gpu`` where it cannot run; mark what runs on the stand-in for a GPU ``stand_in``."""
    for item in items:
        if isinstance(item, pytest.Function) and _on_stand_in(item.function):
            item.add_marker("stand_in")
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _missing_gpu() if marked else ""
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test starts from the same state of all generators."""
    generators.seed(0)


@pytest.fixture
def unregistered() -> Iterator[None]:
    """What a test registers is taken back: another page may use the name."""
    before = set(registry.REGISTERED)
    yield
    for name in registry.REGISTERED.keys() - before:
        if name.startswith("custom."):  # others are built in, and were imported meanwhile
            del registry._OPS[name]
