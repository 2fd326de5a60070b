"""Large arrays of the host begin at the same offset in a page, so that no pass over several of them is slow."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.core import host_memory

LONG = host_memory.LARGE // 4  # float32 numbers
MIDDLE = 2048


def _place(array):
    return array.__array_interface__["data"][0] % 4096


@pytest.mark.parametrize("make", [
    lambda: mx.nd.zeros((LONG,)),
    lambda: mx.nd.empty((4, LONG // 4)),
    lambda: mx.nd.array(np.ones((LONG, 3), np.float32)),
    lambda: mx.nd.array(np.ones((LONG, 3), np.float64)),
    lambda: mx.nd.array(np.ones((LONG, 3), np.float32)[:, ::2]),
    lambda: mx.nd.array(np.ones(2 * LONG), dtype="float16"),
], ids=["zeros", "empty", "array", "cast", "strided", "narrowed"])
def test_a_large_array_lies_in_the_middle_of_a_page(make):
    assert _place(make()._data) == MIDDLE


def test_results_and_gradients_of_an_executor_lie_in_the_middle_of_a_page():
    x = mx.sym.Variable("x")
    executor = mx.sym.softmax(mx.sym.LayerNorm(x, name="norm")).simple_bind(mx.cpu(), x=(LONG // 64, 64))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((LONG // 64, 64)))
    assert _place(executor.outputs[0]._data) == _place(executor.grad_dict["x"]._data) == MIDDLE


def test_zeros_are_zeros_and_copies_are_copies():
    source = np.arange(6.0 * LONG).reshape(LONG, 6).T
    np.testing.assert_array_equal(mx.nd.zeros((LONG, 2), dtype="int64").asnumpy(), np.zeros((LONG, 2)))
    copied = mx.nd.array(source, dtype="float64")
    assert copied._data.flags.c_contiguous and copied._data.flags.writeable
    np.testing.assert_array_equal(copied.asnumpy(), source)
    source[0, 0] = -1
    assert copied.asnumpy()[0, 0] == 0


def test_arrays_of_objects_and_small_arrays_are_allocated_by_numpy():
    assert host_memory.copied(np.full(LONG, None, object))[-1] is None
    assert host_memory.empty((LONG,), np.dtype(object)).flags.owndata
    assert host_memory.empty((LONG - 1,), np.dtype(np.float32)).flags.owndata


class _Library:
    """A C library that notes its settings."""

    def __init__(self, accepts: int = 1):
        self.settings: dict[int, int] = {}
        self.accepts = accepts

    def mallopt(self, name: int, value: int) -> int:
        self.settings[name] = value
        return self.accepts


@pytest.mark.parametrize(("environment", "keeps"), [
    ({}, True), ({"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}, True), ({"MALLOC_ARENA_MAX": "2"}, False),
    ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1000"}, False)])
def test_freed_memory_is_kept_unless_the_environment_decides(environment, keeps):
    library = _Library()
    assert host_memory.keep_freed_memory(environment, library) is keeps
    assert library.settings == ({-3: 32 << 20, -1: 128 << 20} if keeps else {})


def test_a_library_without_the_settings_is_left_alone():
    assert not host_memory.keep_freed_memory({}, object())
    assert not host_memory.keep_freed_memory({}, _Library(accepts=0))
