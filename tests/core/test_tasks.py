"""Modes in asyncio tasks and in threads: a mode holds only for the task or thread that entered it, and ends there."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading

import numpy as np
import pytest

import opreg as mx
from opreg import nn
from opreg.core.mode import MODE
from opreg.errors import OpError
from tests.questions import of_each

nd, autograd, sym = mx.nd, mx.autograd, mx.sym

#: Context managers, and a function that tells whether one was entered.
SCOPES = {
    "record": (autograd.record, autograd.is_recording), "train_mode": (autograd.train_mode, autograd.is_training),
    "record without training": (lambda: autograd.record(train_mode=False), autograd.is_recording),
    "np_shape": (mx.util.np_shape, mx.util.is_np_shape), "context": (lambda: mx.cpu(3), mx.current_context),
    "AttrScope": (lambda: mx.AttrScope(ctx_group="a"), lambda: sym.Variable("x").attr("ctx_group")),
    "Prefix": (lambda: mx.name.Prefix("p_"), lambda: sym.exp(sym.Variable("x"), name="y").name),
    "NameManager": (mx.name.NameManager, lambda: sym.exp(sym.Variable("x")).name == "exp0"),
    "no_grad": (mx.no_grad, lambda: MODE.blocked),
    "convention": (lambda: nn.convention("2.4"), lambda: mx.get_context("convention")),
}


@pytest.fixture(autouse=True)
def _some_names():
    """Uses up some automatic names, since only some managers restart the count."""
    sym.exp(sym.Variable("x"))


@of_each(SCOPES)
def test_a_scope_does_not_reach_other_tasks(name):
    """The scope is off in other tasks, in tasks made before it, and in the program afterwards."""
    scope, asked = SCOPES[name]
    neutral, seen = asked(), []

    async def enter(turns):
        for _ in range(turns):
            with scope():
                await asyncio.sleep(0)
                seen.append(asked())
        seen.append(asked())

    async def look():
        for _ in range(8):
            assert asked() == neutral
            await asyncio.sleep(0)

    async def together():
        early = asyncio.create_task(look())
        await asyncio.gather(enter(3), look(), enter(2), look())
        with scope():
            await early
        assert asked() == neutral

    asyncio.run(together())
    assert asked() == neutral
    assert neutral not in [answer for answer in seen if answer != seen[-1]]
    assert seen.count(neutral) == 2


@of_each(SCOPES)
def test_contexts_may_be_left_in_another_order(name):
    scope, asked = SCOPES[name]
    neutral = asked()

    async def enter(mine, others):
        with scope():
            mine.set()
            await others.wait()

    async def together():
        one, other = asyncio.Event(), asyncio.Event()
        await asyncio.gather(enter(one, other), enter(other, one))
        assert asked() == neutral

    asyncio.run(together())
    assert asked() == neutral


@of_each(SCOPES)
def test_a_task_begins_with_the_mode_of_its_creator(name):
    scope, asked = SCOPES[name]

    async def look():
        return asked()

    async def together():
        with scope():
            inside = asked()
            task = asyncio.create_task(look())
        return inside, await task

    inside, seen = asyncio.run(together())
    if name != "NameManager":  # a NameManager has given a name meanwhile
        assert inside == seen


@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.parametrize("start", [
    lambda function: threading.Thread(target=function), lambda function: threading.Thread(
        target=functools.partial(contextvars.copy_context().run, function))], ids=["thread", "with its context"])
def test_threads_begin_with_the_default_mode(name, start):
    scope, asked = SCOPES[name]
    seen: list[object] = []
    with scope():
        thread = start(lambda: seen.extend([asked(), asked()]))
        thread.start()
        thread.join()
    assert seen[1] == asked()


def test_a_thread_started_by_a_task_begins_with_the_default_mode():
    async def together():
        with autograd.record():
            return await asyncio.to_thread(lambda: (autograd.is_recording(), nd.ones(1).asscalar()))

    assert asyncio.run(together()) == (False, 1)


def test_tasks_compute_gradients_independently():
    """Each task computes its own gradient, and awaits inside of record and between backward passes."""
    async def train(number):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        for _ in range(5):
            with autograd.record():
                y = x * number
                await asyncio.sleep(0)
                y = y * x
                with autograd.pause():
                    await asyncio.sleep(0)
                    with pytest.raises(OpError, match="not in a recorded computation"):
                        (y * 2).backward()
                await asyncio.sleep(0)
                assert autograd.is_recording()
                assert autograd.is_training()
            await asyncio.sleep(0)
            y.backward()
            np.testing.assert_allclose(x.grad.asnumpy(), 2 * number * x.asnumpy())
            x -= 0.01 * x.grad

    async def compute():
        for _ in range(30):
            x = nd.array([1.0])
            x.attach_grad()
            with pytest.raises(OpError, match="not in a recorded computation"):
                (x * 2).backward()
            await asyncio.sleep(0)

    async def together():
        await asyncio.gather(*[train(i) for i in range(1, 6)], compute())

    asyncio.run(together())
    assert not autograd.is_recording()


def test_a_cancelled_task_leaves_no_mode_behind():
    async def wait():
        with autograd.record(), mx.cpu(2):
            await asyncio.sleep(3600)

    async def together():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return autograd.is_recording(), mx.current_context()

    assert asyncio.run(together()) == (False, mx.cpu())


def test_modes_set_in_a_task_end_with_it():
    async def choose():
        assert autograd.set_recording(True) is False
        assert mx.util.set_np_shape(True) is False
        await asyncio.sleep(0)
        return autograd.is_recording(), mx.util.is_np_shape()

    assert asyncio.run(choose()) == (True, True)
    assert (autograd.is_recording(), mx.util.is_np_shape()) == (False, False)


@pytest.mark.parametrize("scope, asked", [
    (autograd.record(), autograd.is_recording), (mx.util.np_shape(), mx.util.is_np_shape),
    (mx.no_grad(), lambda: MODE.blocked == 1), (nn.convention("2.4"), lambda: mx.get_context("convention") == "2.4"),
    (mx.util.use_np_shape, mx.util.is_np_shape)])
def test_scopes_decorate_functions_and_coroutines(scope, asked):
    """Scopes decorate functions, and coroutines, which run later."""
    @scope
    def function(number):
        return number, asked()

    @scope
    async def coroutine(number):
        await asyncio.sleep(0)
        return number, asked()

    assert function(3) == (3, True)
    assert asyncio.run(coroutine(number=4)) == (4, True)
    assert function.__name__ == "function"
    assert not asked()


def test_settings_made_inside_of_a_scope_stay():
    """The end of a scope restores only its own setting."""
    with autograd.record():
        mx.util.set_np_shape(True)
    assert (autograd.is_recording(), mx.util.is_np_shape()) == (False, True)
    mx.util.set_np_shape(False)
    with mx.util.np_shape():
        autograd.set_training(True)
    assert (autograd.is_training(), mx.util.is_np_shape()) == (True, False)
    autograd.set_training(False)
    recording = autograd.record()
    with recording, mx.cpu(1), recording, autograd.pause(), mx.cpu(2):
        assert not autograd.is_recording()
        assert mx.current_context() is mx.cpu(2)
    assert (autograd.is_recording(), mx.current_context()) == (False, mx.cpu())


@pytest.mark.parametrize("scope", [mx.no_grad, autograd.pause])
def test_numbers_that_are_written_while_nothing_is_recorded_stay_those_of_the_tape(scope):
    w, b = nn.Parameter(nn.Tensor(np.float32([2, 2])), name="w"), nn.Tensor(np.float32([3, 3]))

    def function(x):
        y = x * w * b
        with scope():
            w.set_data(nn.Tensor(np.float32([100, 100])))
            b[:] = 5
        return y.sum()

    assert mx.grad(function)(nn.Tensor(np.float32([1, 1]))).asnumpy().tolist() == [6, 6]
    assert w.asnumpy().tolist() == [100, 100]
    assert b.asnumpy().tolist() == [5, 5]
