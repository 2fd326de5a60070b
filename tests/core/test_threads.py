"""Several threads: only one may run an executor, and shared work is complete before its caller goes on."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from opreg.cells import class_hooks, compiled
from opreg.core import generators, invalidation, locks, threads
from opreg.core.slots import import_all
from opreg.data import workers  # noqa: F401  it frees the lock of NumPy's generator
from opreg.errors import OpError

sym, nd = mx.sym, mx.nd


class Held(mx.operator.CustomOp):
    """An operator that blocks its thread until a test lets it go."""

    entered, leave = threading.Event(), threading.Event()

    def forward(self, is_train, req, in_data, out_data, aux):
        self.entered.set()
        self.leave.wait()
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("test_held")
class HeldProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Held()


def held():
    executor = sym.Custom(sym.Variable("x"), op_type="test_held").simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = [1, 2]
    return executor


@contextmanager
def inside(function: Callable[[], object]) -> Iterator[None]:
    """Keeps another thread inside of the operator until the block ends."""
    Held.entered.clear()
    Held.leave.clear()
    thread = threading.Thread(target=function)
    thread.start()
    Held.entered.wait()
    try:
        yield
    finally:
        Held.leave.set()
        thread.join()


ENTRANCES = {
    "forward": lambda executor: executor.forward(), "backward": lambda executor: executor.backward(nd.ones((2,))),
    "profile": lambda executor: executor.profile(1), "explain": lambda executor: executor.explain(),
    "monitor": lambda executor: executor.set_monitor_callback(print),
}


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_a_second_thread_is_refused(entrance):
    executor = held()
    with inside(executor.forward), pytest.raises(OpError, match="another thread runs this executor"):
        entrance(executor)
    assert executor.forward()[0].asnumpy().tolist() == [2, 4]  # nothing is left behind
    entrance(executor)


def test_only_one_of_many_threads_may_enter():
    """Other threads get an error, and no result is wrong."""
    executor, barrier = held(), threading.Barrier(6)
    Held.leave.set()
    answers, refusals = [], []

    def run():
        barrier.wait()
        for _ in range(20):
            try:
                answers.append(executor.forward()[0].asnumpy().tolist())
            except OpError as error:
                refusals.append(str(error))

    pool = [threading.Thread(target=run) for _ in range(6)]
    for each in pool:
        each.start()
    for each in pool:
        each.join()
    assert len(answers) + len(refusals) == 120
    assert answers
    assert all(each == [2, 4] for each in answers)


def test_executors_of_one_symbol_run_side_by_side():
    first, second = held(), held()
    with inside(first.forward):
        assert not Held.leave.is_set()
        other = (sym.Variable("x") + 1).bind(mx.cpu(), {"x": second.arg_dict["x"]})  # it shares the argument
        assert other.forward()[0].asnumpy().tolist() == [2, 3]


def test_the_same_thread_may_enter_again():
    class Inner(mx.operator.CustomOp):
        deeper = True

        def forward(self, is_train, req, in_data, out_data, aux):
            if Inner.deeper:
                Inner.deeper = False
                executor.forward()
            self.assign(out_data[0], req[0], in_data[0] * 3)

    @mx.operator.register("test_inner_run")
    class InnerProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Inner()

    executor = sym.Custom(sym.Variable("x"), op_type="test_inner_run").simple_bind(mx.cpu(), x=(2,))
    executor.arg_dict["x"][:] = 1
    for Inner.deeper in (True, True, False):
        assert executor.forward()[0].asnumpy().tolist() == [3, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_thread_of_the_parent_does_not_block_a_forked_child():
    executor = held()
    with inside(executor.forward):
        child = os.fork()
        if not child:
            Held.leave.set()
            os._exit(0 if executor.forward()[0].asnumpy().tolist() == [2, 4] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def child_of(work) -> int:
    """Exit status of a forked child that runs ``work``: 0 if it returns true, -14 if the child hangs."""
    child = os.fork()
    if not child:
        signal.alarm(10)
        os._exit(0 if work() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("held", [
    compiled._MAKING, generators._LOCK, invalidation._WATCHING, class_hooks._LOCK,
    generators.generator("cpu").bit_generator.lock, np.random.mtrand._rand._bit_generator.lock],
    ids=["plans", "generators", "caches", "classes", "generator", "NumPy's generator"])
def test_a_child_does_not_wait_for_threads_of_its_parent(held):
    """A worker process of a loader draws from both generators."""
    def work():
        mx.random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        nd.random.normal(shape=(3,))
        return mx.jit(lambda x: mx.ops.tanh(x) * 2)(mx.Tensor([0.0])).asnumpy().tolist() == [0]

    assert work()

    def hold():
        with held:
            Held.entered.set()
            Held.leave.wait()

    with inside(hold):
        assert child_of(work) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_keeps_the_locks_of_the_forking_thread():
    mine = locks.rlock()
    with mine:
        assert child_of(lambda: mine.release() is None and not mine._is_owned()) == 0


def test_locks_are_made_where_children_find_them_free():
    own = {"locks.py", "plan_memory.py", "blas.py", "compiler.py"}  # these handle forks themselves
    made = {each.name for each in Path(mx.__file__).parent.rglob("*.py")
            if re.search(r"threading\.R?Lock\(\)", each.read_text())}
    assert made <= own


# ----------------------------------------------------------------------------------------------- the collector


def observed(seen: list[bool]) -> str:
    """Name of an operator whose shapes are inferred at bind, where garbage collections are recorded."""

    class Noting(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            seen.append(gc.isenabled())
            return in_shape, in_shape, []

        def create_operator(self, ctx, shapes, dtypes):
            return Held()

    mx.operator.register("test_collector")(Noting)
    return "test_collector"


def test_the_garbage_collector_is_off_while_binding_in_a_single_thread(monkeypatch):
    seen: list[bool] = []
    net = sym.Custom(sym.Variable("x"), op_type=observed(seen))
    monkeypatch.setattr(threads, "no_foreign_threads", lambda: True)
    net.simple_bind(mx.cpu(), x=(2,))
    assert not any(seen)
    monkeypatch.undo()
    seen.clear()
    with inside(held().forward):
        net.simple_bind(mx.cpu(), x=(2,))
        assert seen
        assert all(seen)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_off_while_many_modules_are_imported(enabled, tmp_path, monkeypatch):
    (tmp_path / "noting_the_collector.py").write_text("import gc\nseen = gc.isenabled()\n")
    (tmp_path / "failing_to_import.py").write_text("raise ValueError('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "noting_the_collector", raising=False)
    frozen = gc.get_freeze_count() > 0  # the objects of the test run usually are frozen
    if not enabled:
        gc.disable()
    try:
        with pytest.raises(ValueError, match="no"):
            import_all(["noting_the_collector", "failing_to_import"])
        assert not sys.modules.pop("noting_the_collector").seen
        assert gc.isenabled() is enabled
        assert (gc.get_freeze_count() > 0) is frozen
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------- parts of an array


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system does not interrupt a thread")
def test_an_interrupt_is_raised_after_the_last_write(monkeypatch):
    """The caller is interrupted while it waits for a helper thread, which is still writing."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    caller, order = threading.get_ident(), []
    mine, interrupted, numbers = threading.Event(), threading.Event(), np.zeros(1 << 20)

    def interrupt(*_):
        interrupted.set()
        raise KeyboardInterrupt

    def part():
        if threading.get_ident() == caller:
            mine.wait()  # the helper has begun
            return
        mine.set()
        signal.pthread_kill(caller, signal.SIGINT)
        interrupted.wait()
        for _ in range(20):
            np.add(numbers, 1, out=numbers)
        order.append("helper")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.run([part, part])
        order.append("caller")
    finally:
        signal.signal(signal.SIGINT, before)
    assert order == ["helper", "caller"]
    assert (numbers == 20).all()


def test_parts_run_and_their_errors_are_raised(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    found: list[int] = []
    threads.run([functools.partial(found.append, i) for i in range(50)])
    assert sorted(found) == list(range(50))
    with pytest.raises(ZeroDivisionError):
        threads.run([lambda: 1 / 0, functools.partial(found.append, 50), functools.partial(found.append, 51)])
    assert {50, 51} <= set(found)


@pytest.mark.skipif(len(threads._cores()) < 2, reason="threads can be told of no other core")
def test_helpers_may_be_kept_off_the_callers_core(monkeypatch):
    """The system may wake a helper on the caller's core, where both would take turns."""
    monkeypatch.setattr(threads._Pool, "current", None)
    monkeypatch.setattr(threads, "count", lambda: 3)
    cores = os.sched_getaffinity(0)
    first, second, *_ = sorted(cores)

    def told(core: int) -> list[set[int]]:
        monkeypatch.setattr(threads, "_current_core", lambda: core)
        threads.run([str] * 4, apart=True)
        return [os.sched_getaffinity(helper.native_id) for helper in threads._Pool.current.helpers]

    assert told(first) == [cores - {first}] * 2
    assert told(second) == [cores - {second}] * 2
    assert told(-1) == [cores] * 2  # the core is unknown
    assert told(first) == [cores - {first}] * 2
    threads.run([str] * 4)
    assert [os.sched_getaffinity(helper.native_id) for helper in threads._Pool.current.helpers] == [cores] * 2
    os.sched_setaffinity(threads._Pool.current.helpers[0].native_id, {second})
    assert told(first)[0] == told(second)[0] == {second}  # cores that another program has set are kept
    assert os.sched_getaffinity(0) == cores


@pytest.mark.skipif(len(threads._cores()) < 2, reason="threads can be told of no other core")
def test_threads_without_affinity_permission_still_work(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(threads._Pool, "current", None)
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    found: list[int] = []
    for _ in range(2):
        threads.run([functools.partial(found.append, i) for i in range(4)], apart=True)
    assert sorted(found) == sorted([*range(4)] * 2)


def of_a_block(name: str) -> Callable[[], object]:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return getattr(F.custom, name)(x)

    net = Net()
    net.hybridize()
    return lambda: net(nd.ones(1))


#: Uses of an operator that is called by its name.
USES = {
    "eager": lambda name: lambda: getattr(nd.custom, name)(nd.ones(1)),
    "compiled": lambda name: functools.partial(mx.jit(lambda x: getattr(nd.custom, name)(x)), mx.Tensor([1.0])),
    "hybridized": of_a_block,
    "bound": lambda name: lambda: getattr(sym.custom, name)(sym.ones(1)).bind(mx.cpu(), []).forward()[0],
}


@pytest.mark.filterwarnings("ignore:operator .* was registered again after an executor was bound")
@pytest.mark.parametrize("traced", [True, False], ids=["traced", "as Python"])
@pytest.mark.parametrize("use", USES)
def test_an_operator_is_registered_again_while_another_thread_runs_it(use, traced):
    """The other thread gets the result of the old or of the new operator; every later call gets the new one."""
    name, answers = f"_example_again_{use}_{traced}", []
    running, registered = threading.Event(), threading.Event()

    @mx.operator.define(traced=traced, name=name)
    def old(x):
        if threading.current_thread() is thread:
            running.set()
            registered.wait()
        return x * 2

    call = USES[use](name)
    thread = threading.Thread(target=lambda: answers.append(call().asnumpy().tolist()))
    thread.start()
    running.wait()
    try:
        with pytest.warns(UserWarning, match="is replaced by"):
            mx.operator.define(traced=traced, name=name)(lambda x: x * 3)
    finally:
        registered.set()
        thread.join()
    assert answers in ([[2]], [[3]])
    assert [call().asnumpy().tolist() for _ in range(2)] == [[3], [3]]
