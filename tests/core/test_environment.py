"""Environment variables: their values, and errors that name the variable."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any

import pytest

import opreg as mx
from opreg.backends import trials
from opreg.core import progress, rounding, threads
from opreg.distributed.launchers import count_processes
from opreg.errors import ArgumentError
from opreg.ndarray import finite
from opreg.symbol.passes import rematerialization

SWITCHES: dict[str, Callable[[], Any]] = {
    "OPREG_TUNE": trials.are_allowed, "OPREG_TF32": rounding.tf32, "OPREG_PROGRESS": progress.is_enabled,
    "OPREG_CHECK_NUMBERS": finite.check_setting,
    "MXNET_BACKWARD_DO_MIRROR": lambda: rematerialization.recompute_setting(None),
    "MXNET_UPDATE_ON_KVSTORE": lambda: mx.model._create_kvstore("local", 2, {})[1]}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_on_or_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, wanted in (("1", True), ("0", False), ("true", True), ("False", False), (" on ", True), ("no", False)):
        monkeypatch.setenv(name, text)
        assert SWITCHES[name]() is wanted, text
    for text in ("bogus", "2", "nan"):
        monkeypatch.setenv(name, text)
        with pytest.raises(ArgumentError, match=f"^{name}='{text}': expected 1"):
            SWITCHES[name]()


def test_an_empty_switch_is_as_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, ask in SWITCHES.items():
        monkeypatch.delenv(name, raising=False)
        missing = ask()
        monkeypatch.setenv(name, "")
        assert ask() is missing, name


def test_numbers_check_for_a_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPREG_CHECK_NUMBERS", "Debug")
    assert finite.check_setting() == "debug"


@pytest.mark.parametrize("text", ["none", "0", "-2", "1.5", "nan"])
def test_a_number_of_threads_is_a_whole_one_from_1(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPREG_NUM_THREADS", text)
    with pytest.raises(ArgumentError, match=f"^OPREG_NUM_THREADS='{text}': expected a whole number above 0"):
        threads.count.__wrapped__()


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan"])
def test_a_timeout_is_a_number_above_0(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opreg.distributed.watch", raising=False)
    monkeypatch.setenv("OPREG_DISTRIBUTED_TIMEOUT", text)
    with pytest.raises(ArgumentError, match=f"^OPREG_DISTRIBUTED_TIMEOUT='{text}': expected a number above 0"):
        runpy.run_module("opreg.distributed.watch")


def test_a_launchers_variable_that_is_no_number_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"^PMI_SIZE='many': expected a whole number above -1"):
        count_processes({"PMI_SIZE": "many"})
