"""Hooks that change what the function reads after them: compiled functions answer as eager ones, from the first call,
and call each hook once a call."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

import pytest

from opreg.cells.grad import value_and_grad
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.*runs as Python.*which the function reads later, is changed by")

#: By name, the source of a read, and of a statement that changes what it reads.
READS = {
    "global": ("G", "global G; G += 1"),
    "element of a list": ("values[0]", "values[0] += 1"),
    "element of a dict": ("table['a']", "table['a'] += 1"),
    "element of an array": ("float(array[0])", "array[0] += 1"),
    "closure variable": ("c", "nonlocal c; c += 1"),
    "attribute": ("owner.size", "owner.size += 1"),
    "property": ("owner.double", "owner.size += 1"),
    "attribute of a class": ("owner.kind", "Owner.kind += 1"),
    "slot": ("slots.size", "slots.size += 1"),
    "attribute of a module": ("module.size", "module.size += 1"),
    "attribute of a Cell": ("net.size", "net.size += 1"),
    "environment": ("float(os.environ['_EXAMPLE'])", "os.environ['_EXAMPLE'] = str(float(os.environ['_EXAMPLE']) + 1)"),
    "default": ("default()", "default.__defaults__ = (default.__defaults__[0] + 1,)"),
    "length": ("float(len(values))", "values.append(1.0)"),
    "branch": ("(1.0 if owner.size < 3 else 5.0)", "owner.size += 1"),
}
#: By name, the source of a function of x; ``READ`` is the read.
PLACES = {
    "before": "x = x * READ; x = self.layer(x)",
    "after": "x = self.layer(x); x = x * READ",
    "before and after": "x = x * READ; x = self.layer(x); x = x * READ + 1",
    "nested Cells": "x = self.inner(x); x = self.around(x); x = self.inner(x)",
    "helpers": "x = helper(x); x = self.layer(x); x = helper(x)",
    "only the last is a helper": "x = x * READ; x = self.layer(x); x = helper(x)",
    "loop": "x = [x := self.layer(x * READ) for _ in range(2)][-1]",
    "local variable": "r = READ; x = self.layer(x); x = x * r",
    "two hooks": "x = x * READ; x = self.layer(x); x = x * READ; x = self.around(x); x = x + READ",
}
#: By name, the way to register the hook.
HOOKS = {"forward": "register_forward_hook", "forward pre": "register_forward_pre_hook"}
PROGRAM = '''
import os, types
import numpy as np
from opreg.cells.cell import Cell

class Owner:
    kind = 1.0
    def __init__(self): self.size = 1.0
    @property
    def double(self): return 2 * self.size

class Slots:
    __slots__ = ("size",)

G, values, table, array, calls = 1.0, [1.0], {"a": 1.0}, np.array([1.0]), []
owner, slots, module = Owner(), Slots(), types.ModuleType("_example_module")
slots.size = module.size = 1.0
def default(value=1.0): return value

def make():
    global net
    c = 1.0
    def hook(*_):
        CHANGE
        calls.append("hook")
    def helper(x): return x * READ
    class Layer(Cell):
        def construct(self, x): return x * 2 + 0.5
    class Inner(Cell):
        def construct(self, x): return x * READ
    class Around(Cell):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer
        def construct(self, x): return self.layer(x) + 1
    class Net(Cell):
        def __init__(self):
            super().__init__()
            self.layer, self.inner, self.size = Layer(), Inner(), 1.0
            self.around = Around(self.layer)
        def construct(self, x):
            PLACE
            return x
    net = Net()
    net.layer.REGISTER(hook)
make()
'''
#: By name, a function of a loss that gives another way to run it, and the way whose answers are right.
WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "compiled": (jit, lambda loss: loss),
    "gradient of a compiled function": (lambda loss: value_and_grad(jit(loss), 0, None),
                                        lambda loss: value_and_grad(loss, 0, None)),
    "compiled gradient": (lambda loss: jit(value_and_grad(loss, 0, None)), lambda loss: value_and_grad(loss, 0, None)),
}


def answers(read: str, place: str, hook: str, way: Callable[..., Any]) -> list[Any]:
    """Results of four calls, each with the number of calls of the hook."""
    scope = vars(types.ModuleType("_example_program"))
    text = PROGRAM.replace("CHANGE", READS[read][1]).replace("PLACE", PLACES[place]).replace("REGISTER", HOOKS[hook])
    exec(text.replace("READ", READS[read][0]), scope)
    step = way(lambda x: scope["net"](x).sum())
    return [(numbers(step(Tensor([1.0, 2.0 + i]))), len(scope["calls"])) for i in range(4)]


def numbers(tree: Any) -> Any:
    """Tensors in any nesting as lists."""
    return [numbers(each) for each in tree] if isinstance(tree, (tuple, list)) else tree.asnumpy().tolist()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the environment variable of the programs begin anew."""
    begin = lambda: monkeypatch.setenv("_EXAMPLE", "1")  # noqa: E731
    begin()
    return begin


ROWS = [*zip(READS, itertools.cycle(PLACES), itertools.cycle(HOOKS)),
        *[(read, "two hooks", "forward") for read in READS], *[("global", place, "forward") for place in PLACES],
        *[("attribute", place, "forward pre") for place in PLACES]]


@pytest.mark.parametrize("row", dict.fromkeys(ROWS), ids=", ".join)
def test_code_after_a_hook_reads_what_the_hook_changed(row, environment):
    way, right = WAYS[list(WAYS)[ROWS.index(row) % 3]]
    expected = answers(*row, right)
    environment()
    assert answers(*row, way) == expected


def test_a_hook_that_changes_what_only_earlier_code_reads_leaves_the_function_compiled(recwarn):
    for place in ("before", "local variable"):
        assert answers("global", place, "forward", jit) == answers("global", place, "forward", lambda loss: loss)
    assert not [each for each in recwarn if "runs as Python" in str(each.message)]
