"""Hooks and users' operators that change what the function reads after them: compiled functions answer as eager ones,
from the first call, and call each of them once a call."""

from __future__ import annotations

import builtins
import itertools
import types
from collections.abc import Callable
from typing import Any

import pytest

import opreg
from opreg.cells.grad import value_and_grad
from opreg.cells.jit import jit
from opreg.cells.tensor import Tensor
from opreg.custom.operator import register

pytestmark = pytest.mark.filterwarnings("ignore:.*runs as Python.*which the function reads later, (is|may be) changed")

#: By name, the source of a read, and of a statement that changes what it reads.
READS = {
    "global": ("G", "global G; G += 1"),
    "element of a list": ("values[0]", "values[0] += 1"),
    "element of a dict": ("table['a']", "table['a'] += 1"),
    "missing element": ("missing['a']", "missing['a'] += 1"),
    "attribute of a dict": ("(box.size + len(box))", "box.size += 1"),
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
#: By name, the way to register the hook, and the code of the layer.
HOOKS = {"forward": ("net.layer.register_forward_hook(hook)", "x * 2 + 0.5"),
         "forward pre": ("net.layer.register_forward_pre_hook(hook)", "x * 2 + 0.5"),
         "operator": ("pass", "Custom(x, op_type='_example_changing')")}
PROGRAM = '''
import collections, os, types
import numpy as np
from opreg.cells.cell import Cell
from opreg.custom.custom_op import CustomOp, CustomOpProp

class Owner:
    kind = 1.0
    def __init__(self): self.size = 1.0
    @property
    def double(self): return 2 * self.size

class Slots:
    __slots__ = ("size",)

G, values, table, array, calls = 1.0, [1.0], {"a": 1.0}, np.array([1.0]), []
class Box(dict): pass
missing, box = collections.defaultdict(lambda: 1.0), Box()
box.size = 1.0
owner, slots, module = Owner(), Slots(), types.ModuleType("_example_module")
slots.size = module.size = 1.0
def default(value=1.0): return value

def make():
    global net
    c = 1.0
    def hook(*_):
        CHANGE
        calls.append("hook")
    class Changing(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            hook()
            self.assign(out_data[0], req[0], in_data[0] * 2)
        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)
    class Prop(CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes): return Changing()
    register("_example_changing")(Prop)
    def helper(x): return x * READ
    class Layer(Cell):
        def construct(self, x): return LAYER
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
    REGISTER
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
    text = PROGRAM.replace("CHANGE", READS[read][1]).replace("PLACE", PLACES[place]).replace("READ", READS[read][0])
    scope.update(register=register, Custom=opreg.ops.Custom)
    exec(text.replace("REGISTER", HOOKS[hook][0]).replace("LAYER", HOOKS[hook][1]), scope)
    net, calls = scope["net"], scope["calls"]
    step = way(lambda x: net(x).sum())
    return [(numbers(step(Tensor([1.0, 2.0 + i]))), len(calls)) for i in range(4)]


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
        *[("attribute", place, "forward pre") for place in PLACES],
        *[(read, "before and after", "operator") for read in READS],
        *[("closure variable", place, "operator") for place in PLACES]]


@pytest.mark.parametrize("row", dict.fromkeys(ROWS), ids=", ".join)
def test_code_after_a_hook_reads_what_the_hook_changed(row, environment):
    way, right = WAYS[list(WAYS)[ROWS.index(row) % 3]]
    expected = answers(*row, right)
    environment()
    assert answers(*row, way) == expected


def test_what_a_trace_leaves_to_python_puts_back_only_what_has_changed():
    """A dict of globals holds the dict of built-in functions, without which no code runs."""
    scope = {"__builtins__": vars(builtins), "calls": []}

    def double(x: Any) -> Any:
        scope["calls"].append(x)
        return x * len(scope)

    with pytest.warns(UserWarning, match="runs as Python"):
        assert jit(double)(Tensor([1.0])).asnumpy().tolist() == [2.0]
    assert len(scope["calls"]) == 1


@pytest.mark.parametrize("hook", HOOKS)
def test_changes_of_what_only_earlier_code_reads_leave_the_function_compiled(hook, recwarn):
    for place in ("before", "local variable"):
        assert answers("global", place, hook, jit) == answers("global", place, hook, lambda loss: loss)
    assert not [each for each in recwarn if "runs as Python" in str(each.message)]
