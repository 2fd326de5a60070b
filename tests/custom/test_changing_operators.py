"""Random programs that change users' operators, and what these read, between two calls: operators that are kept agree
with ones that are registered anew before each call."""

from __future__ import annotations

import random
import re
import types
from typing import Any

import numpy as np
import pytest

import opreg as mx

PROGRAM = """
import functools, types
import numpy as np
import opreg as mx
from opreg import Tensor, autograd, gluon, nd, ops, sym
g, table, kind, names = 2.0, {'k': [1.0, 2.0]}, np.float32, ['data']
settings = types.SimpleNamespace(k=1.0, few=[1.0])
array = np.array([1.0, 2.0, 4.0], np.float32)
def helper(value): return value * table['k'][0]
def shape_of(shape): return list(shape)
class Base:
    k = 1.0
    def scale(self, value): return value * self.k
class Scale(Base):
    def scale(self, value): return super().scale(value) * g
scale = Scale()
@functools.cache
def remembered(): return g
class Op(mx.operator.CustomOp):
    factor = 1.0
    def __init__(self, k): self.k = k
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * (self.k * self.factor))
    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * (self.k * self.factor * g))
class Before(mx.operator.CustomOpProp):
    share = 1.0
    def __init__(self, k=2.0):
        super().__init__()
        self.k = float(k)
class Prop(Before):
    def list_arguments(self): return list(names)
    def infer_shape(self, in_shape): return in_shape, [shape_of(in_shape[0])], []
    def infer_type(self, in_type): return in_type, [kind], []
    def create_operator(self, ctx, shapes, dtypes): return Op(self.k * self.share * MADE)
def traced(x, *, n: float = 1.0): return MADE_BODY * n
PROP, BODY = f'_example_changing_prop_{__name__}', f'_example_changing_body_{__name__}'
def register():
    global body
    mx.operator.register(PROP)(Prop)
    body = mx.operator.define(traced, name=BODY, traced=True)
class Block(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return getattr(F.custom, BODY)(x) + F.cast(F.Custom(x, op_type=PROP), dtype='float32')
register()
block, x = Block(), nd.array([[1.5, -0.5, 0.25], [-1.0, 2.0, 0.75]])
if kept:
    block.hybridize()
x.attach_grad()
def call(function):
    if not kept:
        register()
    with autograd.record():
        y = function(x)
    y.backward()
    return [y.asnumpy(), x.grad.asnumpy()]
def added(x): return body(x) + ops.Custom(x, op_type=PROP).astype(mx.float32)
compiled = mx.jit(added) if kept else added
def run():
    if not kept:
        register()
    return [compiled(Tensor(x.asnumpy())).asnumpy()]
"""
BODIES = ("x * g", "helper(x)", "scale.scale(x)", "x * nd.array(array)", "nd.tanh(x) * settings.k", "x * remembered()",
          "np.exp(x.asnumpy() * g * 0.1)", "sum([x * k for k in table['k']])", "x * settings.few[0] * Base.k",
          "(x if 'z' in table else x * 2)", "x.astype(kind).astype('float32')", "functools.partial(helper, x)()")
MADE = ("1.0", "g", "settings.k", "len(shapes)", "Before.share", "float(2)")
#: Statements that change what operators are or read: ``V`` is a value.
CHANGES = (
    "g = V", "table['k'][0] = V", "table['k'].append(V)", "table['z'] = V", "settings.k = V", "settings.few[0] = V",
    "Base.k = V", "scale.k = V", "scale = Scale()", "array[0] = V", "array = np.full(3, V, np.float32)",
    "Op.factor = V", "Base.scale = lambda self, value: value + V", "def helper(value): return value + V",
    "remembered.cache_clear()", "helper.__code__ = (lambda value: value * V).__code__", "Before.share = V",
    "kind = np.float16",
    "Prop.infer_type = lambda self, in_type: (in_type, [np.float64], [])", "float = lambda value: V", "del float",
    "def shape_of(shape): return tuple(shape)", "names = ['x']",
    "Op.__init__ = lambda self, k: setattr(self, 'k', V)", "x[:] = x * V",
    "traced.__code__ = (lambda x, *, n: x * V).__code__", "class Op(Op): factor = V",
    "Prop.create_operator = lambda self, ctx, shapes, dtypes: Op(V)", "Prop.infer_shape = Before.infer_shape",
    "Prop.gradient = lambda self, g, ins, outs: g * V", "x = nd.array([[0.5, 1.0, -2.0]]); x.attach_grad()")
CALLS = ("call(lambda x: nd.Custom(x, op_type=PROP))", "call(lambda x: nd.Custom(x, op_type=PROP, k=3))", "run()",
         "call(lambda x: body(x))", "call(lambda x: body(x, n=2.0))", "call(block)")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(5))
def test_changed_operators_agree_with_ones_registered_anew(seed: int) -> None:
    chooses = random.Random(seed)
    text = PROGRAM.replace("MADE_BODY", chooses.choice(BODIES)).replace("MADE", chooses.choice(MADE))
    modules, done = [types.ModuleType(f"anew{seed}"), types.ModuleType(f"kept{seed}")], list[str]()
    for module in modules:
        vars(module)["kept"] = module is modules[1]
        exec(compile(text, f"<{module.__name__}>", "exec", dont_inherit=True), vars(module))
    for _ in range(6):
        change, call = chooses.choice(CHANGES), chooses.choice(CALLS)
        change = re.sub(r"\bV\b", repr(chooses.choice([0.25, 0.5, 2.0, 4.0])), change)
        done += [change, call]
        answers = list[Any]()
        for module in modules:
            try:
                exec(compile(change, "<change>", "exec", dont_inherit=True), vars(module))
            except NameError:  # there was nothing to delete
                pass
            try:
                answers.append(eval(call, vars(module)))
            except mx.errors.DTypeError as error:  # dtypes that the block or the function does not convert
                answers.append([type(error)])
        assert [*map(len, answers)] == [len(answers[0])] * 2, done
        if isinstance(answers[0][0], type):
            continue
        for one, other in zip(*answers, strict=True):
            assert one.dtype == other.dtype, done
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{seed}: {done}")
    assert mx.operator.get(f"custom._example_changing_prop_kept{seed}") is not None
