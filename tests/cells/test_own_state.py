"""State that a function both reads and changes: each call sees what the call before has left, and changes it again."""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from typing import Any

import pytest

import opreg as ms
from opreg import Tensor, gluon, nd

HEADER = """
import array, collections, contextvars, functools, os, threading, types
import numpy as np
from opreg import nn
"""
WHOLE = """
class Whole(nn.Cell):
    def __init__(self):
        super().__init__()
        self.s, self.n = False, 0
    def construct(self, x):
        {change}
        return x * {read}
cell = Whole()
def program(x): return cell(x)
"""


def toggled(setup: str, place: str, outer: str = "pass") -> str:
    """Text of a function that negates a place and reads it."""
    return f"{setup}\ndef part():\n    {outer}\n    {place} = not {place}\n    return 2 if {place} else 3\n"


#: Programs with a function ``part``, or ``program``, and statements between the calls.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "global": (toggled("s = False", "s", "global s"),),
    "closure variable": (
        "def make():\n    s = False\n    def part():\n        nonlocal s\n        s = not s\n"
        "        return 2 if s else 3\n    return part\npart = make()",),
    "list": (toggled("s = [False]", "s[0]"),),
    "dict": (toggled("s = dict(a=False)", "s['a']"),),
    "array": (toggled("s = np.zeros(1, bool)", "s[0]"),),
    "bytes": (toggled("s = bytearray(1)", "s[0]"),),
    "deque": ("s = collections.deque([1, 2, 3])\ndef part():\n    s.rotate()\n    return s[0]",),
    "object": (toggled("s = types.SimpleNamespace(a=False)", "s.a"),),
    "class": (toggled("class C: a = False", "C.a"),),
    "module": (toggled("m = types.ModuleType('m')\nm.a = False", "m.a"),),
    "function": (toggled("def f(): pass\nf.a = False", "f.a"),),
    "thread's own": (toggled("t = threading.local()\nt.a = False", "t.a"),),
    "context variable": ("v = contextvars.ContextVar('v', default=0)\ndef part():\n    v.set(1 - v.get())\n"
                         "    return 2 + v.get()",),
    "environment": ("os.environ['_STATE_OWN'] = '0'\ndef part():\n"
                    "    os.environ['_STATE_OWN'] = str(1 - int(os.environ['_STATE_OWN']))\n"
                    "    return 2 + int(os.environ['_STATE_OWN'])",),
    "counter with a period": ("n = 0\ndef part():\n    global n\n    n = (n + 1) % 3\n    return n",),
    "counter": ("n = 0\ndef part():\n    global n\n    n += 1\n    return n",),
    "value that is set back": ("n = 0\ndef part():\n    global n\n    before, n = n, 5\n    return before",
                               "n = 0", "pass", "n = 0", "pass", "n = 0", "pass"),
    "cache that is cleared": ("c, k = {}, 1\ndef part():\n    if k not in c: c[k] = k * 2\n    return c[k] + len(c)",
                              "k = 2", "k = 1", "c.clear()", "k = 2", "k = 1"),
    "attribute of a Cell": (WHOLE.format(change="self.s = not self.s", read="(2 if self.s else 3)"),),
    "first call of a Cell": (WHOLE.format(change="self.n = self.n or 7", read="self.n"), "pass", "cell.n = 0", "pass",
                             "cell.n = 0", "cell.n = 9", "cell.n = 0"),
}

#: Statements that change the elements of a value in its place, and an expression of the first element.
HELD = {"array": ("np.ones(1)", "{0} += 1", "{0}[0]"), "element of an array": ("np.ones(1)", "{0}[0] += 1", "{0}[0]"),
        "bytes": ("bytearray(b'1')", "{0}[0] += 1", "{0}[0]"), "array.array": ("array.array('d', [1])", "{0}[0] += 1",
                                                                               "{0}[0]"),
        "list": ("[1]", "{0}[0] += 1", "{0}[0]"), "longer list": ("[1]", "{0} += [2]", "len({0})"),
        "set": ("{1}", "{0} |= {len({0})}", "len({0})"), "deque": ("collections.deque([1])", "{0} += [2]", "len({0})"),
        "list of lists": ("[[1]]", "{0}[0] += [2]", "len({0}[0])"),
        "list of arrays": ("[np.ones(1)]", "{0}[0] += 1", "{0}[0][0]")}
#: Owners of the value: statements that make one, and the expression of its place.
OWNERS = {"object": ("class O: pass\no = O()\no.a = {0}", "o.a"), "class": ("class O: a = {0}", "O.a"),
          "dict": ("o = dict(a={0})", "o['a']"), "list": ("o = [{0}]", "o[0]"), "global": ("o = {0}", "o"),
          "dict of an object": ("class O: pass\no = O()\no.d = dict(a={0})", "o.d['a']"),
          "function": ("def o(): pass\no.a = {0}", "o.a"), "module": ("o = types.ModuleType('o')\no.a = {0}", "o.a"),
          "slots": ("class O:\n    __slots__ = 'a',\no = O()\no.a = {0}", "o.a")}
IN_PLACE = {
    f"{held} of {owner}": (
        f"{setup.format(value)}\ndef change():\n    global o\n    {change.replace('{0}', place)}\n"
        f"def get(): return float({element.replace('{0}', place)})\n"
        f"def part():\n    change()\n    return get()", "pass", "pass", "pass")
    for held, (value, change, element) in HELD.items() for owner, (setup, place) in OWNERS.items()}
PROGRAMS |= IN_PLACE


def answers(name: str, kind: str) -> list[list[float]]:
    setup, *statements = PROGRAMS[name]
    module = types.ModuleType(kind)

    def run(text: str) -> None:
        exec(compile(HEADER + text, f"<{kind}>", "exec", dont_inherit=True), vars(module))

    run(setup)
    if "program" not in vars(module):
        run("def program(x): return x * part()")
    program: Any = module.program
    called = ms.jit(program) if kind == "compiled" else program
    x: Any = Tensor([1.0, -2.0])
    if kind == "hybridized":
        called, x = gluon.nn.HybridLambda(lambda F, x: program(x)), nd.array([1.0, -2.0])
        called.hybridize()
    found = []
    for statement in statements or ["pass"] * 7:
        found.append(called(x).asnumpy().tolist())
        run(statement)
    return [*found, called(x).asnumpy().tolist()]


@pytest.fixture
def swept() -> Iterator[None]:
    """Removes the environment variable that a program sets."""
    yield
    os.environ.pop("_STATE_OWN", None)


@pytest.mark.usefixtures("swept")
@pytest.mark.parametrize("name, kind", [*((name, "compiled") for name in PROGRAMS),
                                        *((name, "hybridized") for name in PROGRAMS
                                          if "Cell" not in name and name not in IN_PLACE)])
def test_each_call_changes_what_it_reads(name: str, kind: str) -> None:
    assert answers(name, kind) == answers(name, "plain")


#: Classes whose attribute ``p`` is computed by Python code, if an object has none.
COMPUTED = {
    "cached property": "class A:\n    @functools.cached_property\n    def p(self): return taken.append(1) or 2.0",
    "cached property of a Cell": "class A(nn.Cell):\n    @functools.cached_property\n"
                                 "    def p(self): return taken.append(1) or 2.0",
    "computed attributes": "class A:\n    def __getattr__(self, name): return taken.append(1) or 2.0",
    "descriptor": "class D:\n    def __get__(self, owner, cls=None): return taken.append(1) or 2.0\n"
                  "class A: p = D()",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_comparing_runs_no_code_of_the_program(name: str) -> None:
    module: Any = types.ModuleType("comparing")
    exec(HEADER + COMPUTED[name] + "\na, on = A(), [True]\na.p = 2.0\ndef f(x): return x * (a.p if on[0] else 1.0)",
         vars(module))
    taken: list[int] = []
    module.taken = taken
    f: Any = ms.jit(module.f)
    assert f(Tensor([1.0])).asnumpy() == 2.0
    module.on[0] = False
    del module.a.p
    assert f(Tensor([1.0])).asnumpy() == 1.0
    assert not taken and "p" not in vars(module.a)


@pytest.mark.filterwarnings("ignore:.*runs as Python")
def test_a_trace_that_is_given_up_changes_nothing() -> None:
    found = []
    for kind in ("plain", "compiled"):
        module = types.ModuleType(kind)
        exec(HEADER + WHOLE.format(change="self.n += 1; a[0] += 1; b[0] += 1; kept.append(x)",
                                   read="self.n * float(a[0]) * b[0]"), vars(module))
        vars(module).update(kept=[], a=module.np.zeros(1), b=bytearray(1))
        called: Any = module.program if kind == "plain" else ms.jit(module.program)
        found.append([called(Tensor([1.0])).asnumpy().tolist() for _ in range(4)])
    assert found[0] == found[1]
