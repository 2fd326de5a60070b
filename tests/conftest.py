"""Settings of all tests: the same random numbers in every test, and no GPU tests without a GPU."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest
from _pytest.assertion import rewrite
from _pytest.doctest import DoctestModule
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from opreg.core import generators, registry
from opreg.core.array_module import backend
from opreg.errors import DeviceError, UnknownOperatorError

from . import rows
from .cuda import bed
from .cuda.compiled import folder

# A run repeats the examples of the one before; `pytest --hypothesis-profile=default` looks for others.
os.environ.setdefault("OPREG_TUNE", "0")
settings.register_profile("repeatable", derandomize=True, deadline=None,  # whatever else the machine does
                          suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")
if hasattr(providers, "_get_local_constants"):
    # Hypothesis draws constants that stand in the modules imported so far: examples would depend on the tests that ran
    # before, and each process would parse all modules for them.
    providers._get_local_constants = lambda: providers._local_constants


TESTS = Path(__file__).resolve().parent
#: Programs that import CuPy and PyTorch, which are usually not installed.
collect_ignore = ["cuda/bed/libraries.py", "onnx/pytorch.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--op``, which runs the tests of one operator."""
    parser.addoption("--op", action="append", default=[], metavar="NAME",
                     help="only the rows of this operator and of its gradient; may be said several times")


def pytest_configure(config: pytest.Config) -> None:
    """Chooses rows before modules make tests of them, and the folder in which all workers keep compiled files."""
    gc.disable()  # until all tests are collected: nearly all that is made for them stays
    os.environ["OPREG_CACHE_DIR"] = str(folder() / "numba")
    if os.environ.get("OPREG_TEST_GPU") == "bed":
        bed.install()
    for name in config.getoption("--op"):
        try:
            rows.choose(name)
        except UnknownOperatorError as error:
            raise pytest.UsageError(f"--op: {error}") from None


def _compile_share(config: pytest.Config, number: int, count: int) -> None:
    """Writes the compiled form of each ``count``-th file of tests, from ``number`` on, if it is missing.

    On a fresh clone pytest compiles all files of tests in each worker, which takes as long as to collect them.
    """
    names = ("get_cache_dir", "try_makedirs", "_read_pyc", "_rewrite_test", "_write_pyc", "PYC_TAIL")
    if sys.dont_write_bytecode or not all(hasattr(rewrite, name) for name in names):
        return
    for path in sorted(TESTS.rglob("test_*.py"))[number::count]:
        cache = rewrite.get_cache_dir(path)
        compiled = cache / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite.try_makedirs(cache) and rewrite._read_pyc(path, compiled) is None:
            source, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, compiled)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """If all tests are collected by several workers, each compiles a part of the files for all of them."""
    worker = getattr(session.config, "workerinput", None)
    if worker and TESTS in [Path(each).resolve() for each in session.config.args]:
        _compile_share(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looks for doctests only in files of tests that contain examples: few do, and every object of a module is looked
    at."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule) or ">>> " in file_path.read_text()]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A worker reports each test once. Setups and teardowns that passed are not reported: all reports are read by one
    process, which takes a third of the time of a small test."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _missing_gpu() -> str:
    """The reason why there is no usable CUDA device; empty if there is one."""
    try:
        backend("gpu")
    except DeviceError as error:
        return str(error)
    return ""


def _names(code: CodeType) -> set[str]:
    """Names that a function and the functions inside of it use."""
    return set(code.co_names).union(*[_names(each) for each in code.co_consts if isinstance(each, CodeType)])


#: Modules of the stand-in itself, and the module that counts its actions.
_STAND_IN, _MACHINE = "tests.cuda", "tests.cuda.machine"


def _modules(value: Any) -> tuple[Any, ...]:
    """Modules of a value: itself if it is one, and the one that defines it."""
    return getattr(value, "__module__", None), getattr(value, "__name__", None), type(value).__module__


@functools.cache
def _used(function: Any) -> frozenset[str]:
    """Uses of the stand-in in a test, in its fixtures and in the helpers that they call: ``gpus`` if it runs there,
    ``waits`` if it counts how often the host has waited, ``simulated`` if it needs facts that only the stand-in
    provides."""
    found, waiting, seen = set(), [function], set()
    while waiting:
        function = inspect.unwrap(waiting.pop())
        if function in seen or not isinstance(function, FunctionType):
            continue
        seen.add(function)
        names = _names(function.__code__)
        values = [function.__globals__[name] for name in names if name in function.__globals__]
        if "gpus" in names:
            found.add("gpus")
        if "synchronisations" in names:
            found.add("waits")
        if "counting" in names or any(_MACHINE in map(str, _modules(value)) for value in values):
            found.add("simulated")
        waiting += [value for value in values if str(getattr(value, "__module__", "")).startswith("tests.")
                    and not value.__module__.startswith(_STAND_IN)]
    return frozenset(found)


def _used_by(item: pytest.Function, known: dict[int, frozenset[str]]) -> frozenset[str]:
    """Uses of a test; ``known`` has those of its function with other parameters, by the identity of its fixtures."""
    info = item._fixtureinfo
    if id(info) not in known:
        fixtures = [each.func for name in info.names_closure for each in info.name2fixturedefs.get(name, ())]
        known[id(info)] = frozenset().union(*map(_used, [item.function, *fixtures]))
    return known[id(info)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skips ``gpu`` tests without a GPU, and ``simulated`` tests with a real one; marks tests on the stand-in as
    ``stand_in``, and those that need facts which no real GPU provides as ``simulated``, if a device or ``-m`` asks."""
    known: dict[int, frozenset[str]] = {}
    place = os.environ.get("OPREG_TEST_GPU")
    is_asked = place is not None or any(name in config.option.markexpr for name in ("stand_in", "simulated"))
    for item in items if is_asked else ():
        used = _used_by(item, known) if isinstance(item, pytest.Function) else frozenset()
        if "gpus" in used:
            item.add_marker("stand_in")
            if "simulated" in used or ("waits" in used and place != "bed"):  # the bed counts them
                item.add_marker("simulated")
        if item.get_closest_marker("simulated") and place in ("real", "bed"):
            item.add_marker(pytest.mark.skip(reason="asks for what the stand-in alone counts or says"))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _missing_gpu() if marked else ""
    if reason and os.environ.get("OPREG_TEST_GPU") == "bed":
        raise pytest.UsageError(f"the bed has no GPU: {reason}")
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


#: Generators of random numbers that modules of tests have, by the name of the module, with their states when all tests
#: are collected; under the empty name those of helpers, from which tests of several modules may draw.
_DRAWN: dict[str, list[tuple[Any, Any]]] = {}


def _state(drawn: Any) -> Any:
    return drawn.bit_generator.state if isinstance(drawn, np.random.Generator) else drawn.get_state()


def _rewind(name: str) -> None:
    for drawn, state in _DRAWN.get(name, ()):
        if isinstance(drawn, np.random.Generator):
            drawn.bit_generator.state = state
        else:
            drawn.set_state(state)


def pytest_collection_finish() -> None:
    """Notes the states of generators. Hides collected tests from the garbage collector, which would scan all of them
    again and again without freeing any, and lets it run less often: nearly all objects are freed without it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tests."):
            _DRAWN.setdefault(name if name.rpartition(".")[2].startswith("test_") else "", []).extend(
                (value, _state(value)) for value in vars(module).values()
                if isinstance(value, (np.random.Generator, np.random.RandomState)))
    gc.set_threshold(10_000, 20, 20)
    gc.enable()
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """Every test starts from the same state of all generators, also of those that its module has."""
    generators.seed(0)
    _rewind("")
    _rewind(getattr(getattr(request.node, "module", None), "__name__", ""))


@pytest.fixture
def torch() -> Any:
    """PyTorch; tests that ask for it are skipped without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Objects are freed by the end of their last reference alone, without the cycle collector."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Removes operators that a test registers, and restores those that it replaced."""
    before = {name: registry.get(name) for name in registry.names()}
    yield
    for name, op in list(registry.REGISTERED.items()):
        if op.where is None or before.get(name) is op:
            continue  # built in, perhaps imported meanwhile
        if name in before:
            registry.register(before[name], *{name} - {before[name].name})
        else:
            del registry._OPS[name]
    vars(registry.ops).clear()
