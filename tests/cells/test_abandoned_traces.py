"""Traces that are given up leave no effects behind: a function that runs as Python computes what Python computes, from
its first call on."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor

HEADER = """
import collections, io, itertools, random
import numpy as np
import opreg as ms
from opreg import Parameter, Tensor, nn
k = 1.0
"""
CELL = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.k = {k}
    def construct(self, x): return x * {read}
f = Net()
"""


def of_a_cell(k: str, read: str) -> str:
    return CELL.format(k=k, read=read)


#: Programs with a function ``f`` that takes something at each call.
PROGRAMS = {
    "iterator of a list": "it = iter([1.0, 2.0, 3.0, 4.0, 5.0])\ndef f(x): return x * next(it) * k",
    "generator": "it = (v for v in [1.0, 2.0, 3.0, 4.0, 5.0])\ndef f(x): return x * next(it) * k",
    "count": "it = itertools.count(1)\ndef f(x): return x * next(it) * k",
    "iterator in a closure": "def make():\n    it = itertools.count(1)\n    return lambda x: x * next(it) * k\n"
                             "f = make()",
    "iterator in a dict": "d = dict(a=itertools.count(1))\ndef f(x): return x * next(d['a']) * k",
    "iterator as a default": "def f(x, it=itertools.count(1)): return x * next(it) * k",
    "iterator of a helper": "it = itertools.count(1)\ndef taken(): return next(it)\ndef f(x): return x * taken() * k",
    "iterator of an object": "class O: pass\no = O()\no.it = itertools.count(1)\ndef f(x): return x * next(o.it) * k",
    "iterator of a Cell": of_a_cell("itertools.cycle([1.0, 2.0, 3.0])", "next(self.k) * k"),
    "iterator that is tried": "it = itertools.count(1)\ndef f(x):\n    try: return x * next(it) * k\n"
                              "    except Exception: return x",
    "file of text": "file = io.StringIO('1\\n2\\n3\\n4\\n5\\n')\ndef f(x): return x * float(file.readline()) * k",
    "file of bytes": "file = io.BytesIO(b'1\\n2\\n3\\n4\\n5\\n')\ndef f(x): return x * float(file.readline()) * k",
    "random": "random.seed(1)\ndef f(x): return x * random.random() * k",
    "random.Random": "r = random.Random(1)\ndef f(x): return x * r.random() * k",
    "random.Random of a Cell": of_a_cell("random.Random(1)", "self.k.random() * k"),
    "random.shuffle": "r, order = random.Random(1), [1.0, 2.0, 3.0, 4.0]\ndef f(x):\n    r.shuffle(order)\n"
                      "    return x * order[0] * k",
    "np.random": "np.random.seed(1)\ndef f(x): return x * float(np.random.rand()) * k",
    "np.random.RandomState": "r = np.random.RandomState(1)\ndef f(x): return x * float(r.rand()) * k",
    **{f"np.random.{kind}": f"r = np.random.Generator(np.random.{kind}(1))\ndef f(x): return x * r.random() * k"
       for kind in ("PCG64", "MT19937", "Philox", "SFC64")},
    "bits": "r = np.random.PCG64(1)\ndef f(x): return x * float(r.random_raw() % 1000) * k",
    "random, and a tensor that is stored": "r, log = random.Random(1), []\ndef f(x):\n"
                                           "    log.append(x * r.random() * k)\n    return log[-1]",
    "random, and a number in an exception": "r = random.Random(1)\ndef f(x):\n    x = x * r.random() * k\n"
                                            "    raise ValueError(x)",
    "global": "n, held = 0.0, []\ndef f(x):\n    global n\n    n += 1\n    held[:] = [x]\n    return x * n * k",
}


def made(text: str, name: str) -> dict[str, Any]:
    module = types.ModuleType(name)
    exec(compile(HEADER + text, f"<{name}>", "exec", dont_inherit=True), vars(module))
    return vars(module)


def answer(function: Any) -> list[float]:
    try:
        out: list[float] = function(Tensor([1.0, 2.0])).asnumpy().tolist()
    except ValueError as error:
        out = error.args[0].asnumpy().tolist()
    return out


@pytest.mark.filterwarnings("ignore:.*runs as Python")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_call_consumes_iterators_and_generators_once(name: str) -> None:
    plain, compiled = made(PROGRAMS[name], "plain"), made(PROGRAMS[name], "compiled")
    before = np.random.get_state()  # noqa: NPY002
    found: dict[str, list[list[float]]] = {"plain": [], "compiled": []}
    try:
        for kind, program in (("plain", plain), ("compiled", compiled)):
            function = program["f"]
            if "seed(1)" in PROGRAMS[name]:  # a generator of the process
                exec(PROGRAMS[name].partition("\n")[0], program)
            called = function if kind == "plain" else ms.jit(function)
            for k in (1.0, 1.0, 2.0, 2.0):  # another value is a reason to trace again
                program["k"] = k
                found[kind].append(answer(called))
    finally:
        np.random.set_state(before)  # noqa: NPY002
    assert found["compiled"] == found["plain"]
