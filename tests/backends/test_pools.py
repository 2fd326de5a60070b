"""Libraries with threads of their own, oneDNN and NumPy's BLAS, do not compete for cores."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

import opreg as mx
from opreg.backends import blas
from opreg.backends.onednn import shared_library
from opreg.symbol import Symbol

sym = mx.sym


class Clock:
    """A clock, and the times at which BLAS was limited to one thread."""

    def __init__(self) -> None:
        self.now, self.held = 100.0, 0

    def __call__(self) -> float:
        return self.now

    def __enter__(self) -> None:
        self.held += 1

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(blas, "_clock", clock)
    monkeypatch.setattr(blas, "_HOLD", clock)
    monkeypatch.setattr(blas.Watched, "until", 0.0)
    return clock


def test_after_another_library_has_computed_products_use_one_thread(clock):
    work = blas.Watched(lambda: None, 1_000_000)
    work()
    assert clock.held == 0
    blas.report_other_threads()
    work()
    clock.now += 0.8 * blas.ASIDE
    blas.report_other_threads()
    clock.now += 0.8 * blas.ASIDE
    work()
    assert clock.held == 2
    clock.now += blas.ASIDE
    work()
    assert clock.held == 2


def test_a_thread_that_waited_long_goes_on_alone(clock):
    blas.Watched.until = clock.now + 9.0
    blas.report_other_threads()
    assert blas.Watched.until == clock.now + 9.0


def _run(network: Symbol) -> None:
    network.simple_bind(mx.cpu(), x=(4, 8, 20, 20)).forward()


@pytest.mark.skipif(shared_library.missing() is not None, reason="needs oneDNN")
@pytest.mark.parametrize(("compute", "noted"), [
    (lambda: _run(sym.Convolution(sym.Variable("x"), kernel=(3, 3), num_filter=8)), True),
    (lambda: _run(sym.FullyConnected(sym.Variable("x"), num_hidden=64)), False)])
def test_blas_threads_are_not_used_while_onednn_computes(compute: Callable[[], object], noted, clock):
    compute()
    assert (blas.Watched.until > 0) == noted


NAMES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def _said() -> dict[str, str]:
    return {name: os.environ[name] for name in NAMES if name in os.environ}


@pytest.mark.parametrize(("said", "seen"), [
    ({}, {"GOMP_SPINCOUNT": str(shared_library._LOOKS)}), ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
    ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"})])
def test_the_spinning_time_of_libgomp_is_set_unless_the_environment_has_it(said, seen, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    found = []

    def load(path: str) -> None:
        found.append(_said())
        raise OSError(path)

    monkeypatch.setattr(shared_library.ctypes, "CDLL", load)
    with pytest.raises(OSError, match="nowhere"):
        shared_library.Library("nowhere")
    assert (found, _said()) == ([seen], said)
