"""Attributes that a ``with`` statement overrides get their values back, however the block ends."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from opreg import vmap
from opreg.cells.compiled import run_in_python
from opreg.cells.handles import Hook, running_hook
from opreg.cells.state import STATE, untraced
from opreg.core.chosen import override
from opreg.core.mode import MODE
from opreg.ndarray import array


class Picky(SimpleNamespace):
    """An owner that refuses one value."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if value == "refused":
            raise KeyboardInterrupt


def state() -> dict[str, Any]:
    return {"mode": [getattr(MODE, name) for name in ("recording", "training", "np_shape", "tracer")],
            "cells": [getattr(STATE, name) for name in ("trace", "observer", "inside")]}


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_values_are_restored(error: Any) -> None:
    owner, inside = SimpleNamespace(first=1, second=2), []
    with (contextlib.suppress(ValueError, KeyboardInterrupt), override(owner, first="a"),
          override(owner, first="b", second="c")):
        inside.append((owner.first, owner.second))
        if error is not None:
            raise error
    assert inside == [("b", "c")]
    assert (owner.first, owner.second) == (1, 2)


def test_values_are_restored_if_entering_is_interrupted() -> None:
    owner = Picky(first=1, second=2)
    with pytest.raises(KeyboardInterrupt):
        override(owner, first="a", second="refused").__enter__()
    assert (owner.first, owner.second) == (1, 2)


def interrupted(*_: Any) -> Any:
    raise KeyboardInterrupt


def in_hook() -> None:
    owner: Any = SimpleNamespace(training=True, path="net")
    with running_hook("hook", Hook(interrupted), owner, ("cell",)):
        assert MODE.training
        interrupted()


def in_untraced() -> None:
    with untraced():
        interrupted()


@pytest.mark.parametrize("way", [
    in_hook, in_untraced, lambda: run_in_python(interrupted, (), {}), lambda: vmap(interrupted)(array([[1.0]]))])
def test_an_interrupt_restores_the_state_of_the_thread(way: Any) -> None:
    before = state()
    with pytest.raises(KeyboardInterrupt):
        way()
    assert state() == before
