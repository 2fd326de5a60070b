"""Contexts: one object a device, the current one a thread's own, what is refused."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, DeviceError


def test_one_object_a_device():
    one = mx.Context("cpu", 1)
    for other in (mx.cpu(1), mx.Context(one), mx.Context("cpu(1)"), mx.cpu(np.int64(1)), copy.copy(one),
                  copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other is one
    assert mx.cpu() == mx.cpu(0) == mx.Context("cpu")
    assert mx.cpu() != one
    assert {mx.cpu(): 1}[mx.cpu(0)] == 1
    assert (one.device_type, one.device_id, one.device_typeid, repr(one)) == ("cpu", 1, 1, "cpu(1)")
    assert mx.cpu_pinned().device_typeid == 3


REFUSED = [
    (("cpuu",), DeviceError, "no device type 'cpuu'. Did you mean 'cpu'"),
    (("cpu", -1), ArgumentError, "from 0, got -1"),
    (("cpu", "x"), ArgumentError, "'x'"), (("cpu", 1.5), ArgumentError, r"1\.5"), ((None,), DeviceError, "None"),
]


@pytest.mark.parametrize("args, kind, words", REFUSED)
def test_refused(args, kind, words):
    with pytest.raises(kind, match=words):
        mx.Context(*args)


def test_current_context():
    assert mx.current_context() is mx.cpu()
    with mx.cpu(1):
        with mx.cpu(2), mx.cpu(1):
            assert mx.current_context() is mx.cpu(1)
        assert mx.current_context() is mx.cpu(1)
        with pytest.raises(KeyError), mx.cpu(3):
            raise KeyError
        assert mx.current_context() is mx.cpu(1)
    assert mx.current_context() is mx.cpu()


def test_the_current_context_is_a_threads_own():
    """Two threads enter and leave the same contexts in turns, each as if it were alone."""
    found, turn = [], threading.Barrier(2)

    def enter(first, second):
        turn.wait()
        with first:
            turn.wait()
            found.append(mx.current_context() is first)
            with second:
                turn.wait()
                found.append(mx.current_context() is second)
            turn.wait()
            found.append(mx.current_context() is first)
        found.append(mx.current_context() is mx.cpu())

    threads = [threading.Thread(target=enter, args=args) for args in ((mx.cpu(1), mx.cpu(2)), (mx.cpu(2), mx.cpu(1)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_arrays_of_all_host_contexts_are_computed_together():
    x, y = mx.nd.ones(2), mx.nd.ones(2, ctx=mx.cpu(1))
    assert (x + y).context is mx.cpu()
    assert mx.nd.broadcast_add(y, x).context is mx.cpu(1)
    assert mx.nd.Concat(y, x, dim=0).asnumpy().tolist() == [1, 1, 1, 1]


def test_without_a_gpu():
    if mx.num_gpus():
        pytest.skip("there is one")
    with pytest.raises(DeviceError, match="gpu: "):
        mx.gpu()
    assert mx.Context("gpu", 0).device_typeid == 2  # files may name it


@pytest.mark.gpu
def test_with_a_gpu():
    x = mx.nd.ones((2, 3), ctx=mx.gpu())
    y = (x * 2).as_in_context(mx.cpu())
    assert y.asnumpy().tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(DeviceError, match="as_in_context"):
        x + y
    with pytest.raises(DeviceError, match="numbered from 0"):
        mx.gpu(99)
    free, total = mx.context.gpu_memory_info()
    assert 0 < free <= total
