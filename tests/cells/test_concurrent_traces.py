"""A thread that traces changes nothing for others: compiled functions and blocks keep their traces and their reads."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg.cells.class_hooks import hook, runs_python, size_of, unhook
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor


class _Settings:
    factor = 2.0

    def __init__(self) -> None:
        self.bias = 1.0


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns after few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_a_trace_in_another_thread_does_not_count_as_a_change() -> None:
    """A trace hooks the classes whose attributes it reads."""
    settings = _Settings()
    compiled = jit(lambda x: x * settings.factor + settings.bias)
    x = Tensor([1.0])
    assert compiled(x).asnumpy() == 3.0
    traced = [kind.current for kind in compiled._cache.kinds.values()]
    hooked = hook(_Settings)  # as another thread does while it traces
    assert hooked is _Settings
    try:
        assert compiled(x).asnumpy() == 3.0
    finally:
        unhook(hooked)
    assert [kind.current for kind in compiled._cache.kinds.values()] == traced
    settings.bias = 5.0
    assert compiled(x).asnumpy() == 7.0
    _Settings.__len__ = lambda self: 0  # type: ignore[attr-defined]
    try:
        assert "_Settings" in traced[0].changed()
    finally:
        del _Settings.__len__  # type: ignore[attr-defined]


def test_a_hook_of_a_trace_does_not_count_as_a_method(often: None) -> None:
    def hooking() -> None:
        for _ in range(500):
            unhook(hook(_Settings))  # type: ignore[arg-type]

    threads, size, found = [threading.Thread(target=hooking) for _ in range(3)], len(vars(_Settings)), set()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found.add((runs_python(_Settings), size_of(_Settings)))
    for thread in threads:
        thread.join()
    assert found <= {(False, size)}


def test_the_end_of_another_trace_hides_no_read() -> None:
    """The other trace has hooked the class when this one meets an object of it, and ends before this one reads it."""
    settings = _Settings()
    end = weakref.finalize(settings, unhook, hook(_Settings))

    def bias() -> float:
        end()
        return settings.bias

    compiled = jit(lambda x: x * bias())
    x = Tensor([1.0])
    assert compiled(x).asnumpy() == 1.0
    settings.bias = 5.0
    assert compiled(x).asnumpy() == 5.0


class _Block(ms.gluon.HybridBlock):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x * 2.0


class _Freed:
    """Looks at a block when it is freed, as a thread would that runs in the meantime."""

    def __init__(self, block: Any, seen: list[tuple[bool, bool]]):
        self.block, self.seen = block, seen

    def __del__(self) -> None:
        self.seen.append((bool(self.block._cached_graph), self.block._seen is not None))


def test_a_block_has_no_graph_without_its_reads() -> None:
    block = _Block()
    block.hybridize()
    block(ms.nd.ones(2))
    seen: list[tuple[bool, bool]] = []
    for _ in range(2):
        block.__dict__["_cached_op"] = _Freed(block, seen)
        block._clear_cached_op()
        block.__dict__["_in_format"] = _Freed(block, seen)
        block._get_graph(ms.nd.ones(2))
    assert seen == [(False, False), (True, True)] * 2
    np.testing.assert_array_equal(block(ms.nd.ones(2)).asnumpy(), [2.0, 2.0])
