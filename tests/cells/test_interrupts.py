"""An interrupt, as by Ctrl-C, that arrives after any call of the library leaves the thread's modes and states as they
were, and other threads may run."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg import Parameter, Tensor, jit, nn, value_and_grad
from opreg.cells import observer
from opreg.cells.state import STATE
from opreg.core.mode import MODE

ROOT = str(Path(mx.__file__).parent.parent)
#: Functions that restore a state: Python runs nothing for them if an interrupt arrives at their begin.
RESTORE = {"__exit__", "__del__", "end", "free", "_origin", "<genexpr>"}


class Interrupt(BaseException):
    """Raised in the place of a KeyboardInterrupt."""


class Double(mx.operator.CustomOp):
    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("_example_interrupted")
class DoubleProp(mx.operator.CustomOpProp):
    def create_operator(self, *_: Any) -> Double:
        return Double()


def taped(function: Callable) -> Sequence[Any]:
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
    y.backward()
    return y, x.grad


class Scaled(mx.gluon.HybridBlock):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Custom(x, op_type="_example_interrupted") * 2


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.act = Parameter(Tensor([3.0, 4.0]), name="w"), nn.ReLU()
        self.act.register_forward_hook(lambda cell, args, out: out * 2.0)

    def construct(self, x: Any) -> Any:
        return self.act(x) * self.w


def ways() -> dict[str, Callable[[], Sequence[Any]]]:
    x = mx.sym.Variable("x")
    executor = mx.sym.Custom(x, op_type="_example_interrupted").bind(
        mx.cpu(), {"x": mx.nd.array([1.0, 2.0])}, {"x": mx.nd.zeros((2,))})

    def bound() -> Sequence[Any]:
        out = executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2,)))
        return *out, *executor.grad_arrays

    block, net = Scaled(), Net()
    block.hybridize()
    compiled, arg = jit(net), Tensor([1.0, 2.0])
    in_python = value_and_grad(lambda a: net(a).sum(), 0, [net.w])
    step, graph = value_and_grad(lambda a: compiled(a).sum(), 0, [net.w]), jit(in_python)
    flat = lambda found: (found[0], found[1][0], *found[1][1])  # noqa: E731
    return {"eager": lambda: taped(lambda a: mx.nd.Custom(a, op_type="_example_interrupted")), "bound": bound,
            "hybridized": lambda: taped(block), "compiled Cell": lambda: flat(step(arg)),
            "compiled gradient": lambda: flat(graph(arg)), "Cell": lambda: flat(in_python(arg))}


def state() -> Sequence[Any]:
    return (MODE.current(), MODE.tracer, MODE.frame, STATE.trace, STATE.observer, STATE.inside, STATE.nested,
            STATE.runs, STATE.outside, STATE.weights, gc.isenabled())


class After:
    """A profile function that interrupts the program after one call of a C function in the library's code.

    Python 3.14 calls it as a lock is taken, too. An interrupt there, before the block that releases the lock, leaves
    the lock taken in any program, so it is left out.

    Attributes
    ----------
    passed : list of str
        The lines with such calls, in the order in which they ran.
    """

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "c_return" and code.co_filename.startswith(ROOT) and code.co_filename != __file__ and (
                code.co_name not in RESTORE and arg.__name__ != "__enter__"):
            self.passed.append(f"{code.co_filename}:{frame.f_lineno} {arg.__name__}")
            if len(self.passed) == self.target:
                sys.setprofile(None)
                raise Interrupt

    def run(self, way: Callable[[], object], target: int) -> None:
        """Run, up to the call with this number."""
        self.passed, self.target = list[str](), target
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            way()
        except Interrupt:
            pass
        finally:
            sys.setprofile(before)


@pytest.mark.parametrize("name", ["eager", "bound", "hybridized", "compiled Cell", "compiled gradient", "Cell"])
def test_an_interrupt_leaves_the_state_of_the_thread(name: str) -> None:
    way = ways()[name]
    expected = [value.asnumpy() for value in (way(), way(), way())[-1]]
    before, after = state(), After()
    after.run(way, 0)
    lines = {line: number for number, line in enumerate(after.passed, 1)}
    assert len(lines) > 10
    left = []
    for line, number in lines.items():
        after.run(way, number)
        if any(now is not earlier for now, earlier in zip(state(), before)):
            left.append(line)
            MODE.set(before[0])
    assert not left
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(way()), daemon=True)
    thread.start()
    thread.join(30)
    for values in (found, way()):
        for value, wanted in zip(values, expected, strict=True):
            np.testing.assert_array_equal(value.asnumpy(), wanted)


def test_an_interrupt_in_a_trace_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    is_user_code = observer.is_user_code

    def interrupted(code: CodeType) -> bool:
        if code.co_name == "double":
            raise Interrupt
        return is_user_code(code)

    def double(x: Any) -> Any:
        return x * 2

    function = jit(lambda x: double(x) + 1)
    monkeypatch.setattr(observer, "is_user_code", interrupted)
    with pytest.raises(Interrupt):
        function(Tensor([1.0]))
    monkeypatch.undo()
    assert function(Tensor([1.0])).asnumpy().tolist() == [3.0]
