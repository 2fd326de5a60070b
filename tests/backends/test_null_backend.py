"""The back end of an example, which only counts: arrays, kernels and plans on a new kind of device."""

from __future__ import annotations

import contextlib
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import opreg as mx
from opreg import nn, ops
from opreg.core.steps import PlainStep, Recorder
from opreg.symbol import compile, replay

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "null_backend.py"


null = SimpleNamespace(ctx=lambda: mx.Context("null", 0), **runpy.run_path(str(EXAMPLE)))


def _counted(function):
    """Launches of a function, counted by name."""
    null.LAUNCHES.clear()
    null.BYTES.clear()
    function()
    return dict(null.LAUNCHES)


def test_it_has_the_number_of_lines_in_contributing():
    (lines,) = re.findall(r"# -+ the back end\n(.*?)# -+ its use", EXAMPLE.read_text(), re.S)
    assert len([line for line in lines.splitlines() if line.strip()]) <= 60


def test_arrays_have_addresses_and_no_elements():
    with null.ctx():
        x = mx.nd.array(np.ones((4, 3), np.float32))
    assert x.context is null.ctx() and x.shape == (4, 3) and x[1:].shape == (3, 3) and x.reshape((2, 6)).shape == (2, 6)
    with pytest.raises(TypeError, match="has no elements: ask for its shape"):
        x.asnumpy()


def test_eager_calls_and_their_gradients():
    with null.ctx():
        x = mx.nd.ones((4, 3))
        weight = mx.nd.ones((3, 5))
    x.attach_grad()

    def step():
        with mx.autograd.record():
            y = mx.nd.softmax(mx.nd.dot(x, weight))
        y.backward()

    found = _counted(step)
    assert x.grad.shape == (4, 3)
    assert sum(count for name, count in found.items() if "dot" in name) == 2, "the product and its gradient"
    assert found["softmax"] == 1 and found["_backward_softmax"] == 1


def test_a_plan_launches_its_steps_and_nothing_else():
    executor = null.network().simple_bind(null.ctx(), data=(8, 1, 32, 32))

    def step():
        executor.forward(is_train=True)
        executor.backward()

    first = _counted(step)
    assert _counted(step) == first
    assert first["Convolution"] == first["_backward_Convolution_weight"] == first["Pooling"] == 2
    assert first["FullyConnected"] == first["_backward_FullyConnected_weight"] == 3
    sizes = 8 * (6 * 28 * 28 + 16 * 10 * 10 + 120 + 84)
    assert null.BYTES["Activation"] == 2 * 4 * sizes and null.BYTES["_backward_tanh"] == 3 * 4 * sizes
    assert all("null" in line for line in executor.explain().splitlines() if "Convolution" in line)


def test_states_are_stored():
    y = mx.sym.BatchNorm(mx.sym.Variable("data"))
    executor = y.simple_bind(null.ctx(), data=(8, 3, 4, 4))
    found = _counted(lambda: executor.forward(is_train=True))
    assert found == {"BatchNorm": 1, "copy": 2}, "the moving mean and variance"
    assert _counted(lambda: executor.forward(is_train=False)) == {"BatchNorm": 1}


def test_a_module_trains_on_the_null_back_end():
    module = mx.mod.Module(null.network(), context=null.ctx())
    module.bind([("data", (8, 1, 32, 32))], [("softmax_label", (8,))])
    module.init_params()
    module.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    batch = mx.io.DataBatch([mx.nd.ones((8, 1, 32, 32))], [mx.nd.ones((8,))])

    def step():
        module.forward_backward(batch)
        module.update()

    _counted(step)
    found = _counted(step)
    assert (found["Convolution"], found["multiply"], found["add"]) == (2, 20, 10), "ten weights, two products each"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cell_trains_on_the_null_back_end(compiled):
    with null.ctx():
        net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.LayerNorm((8,)), nn.Dense(8, 2))
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        forward = mx.value_and_grad(lambda x: ops.reduce_sum(net(x) ** 2), None, optimizer.parameters)
        x = mx.Tensor(np.ones((3, 4), np.float32))

        def step(x):
            loss, gradients = forward(x)
            optimizer(gradients)
            return loss

        run = mx.jit(step) if compiled else step
        run(x)
        found = _counted(lambda: run(x))
    assert found["FullyConnected"] == 2 and found["LayerNorm"] == found["_backward_LayerNorm"] == 1
    assert found["broadcast_sub"] == 6, "a weight each"


def test_a_transformer_block_runs_on_the_null_back_end():
    with null.ctx():
        net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        x = mx.Tensor(np.ones((2, 5, 8), np.float32))
        run = mx.jit(mx.value_and_grad(lambda x: ops.reduce_sum(net(x)), None, net.trainable_params()))
        run(x)
        found = _counted(lambda: run(x))
        assert net(x).shape == (2, 5, 8)
    assert found["_contrib_scaled_dot_product_attention"] == found["_backward_scaled_dot_product_attention"] == 1
    assert found["_backward_FullyConnected_weight"] == 6 and found["LayerNorm"] == 2


def test_the_pass_of_contributing_md_removes_casts_that_lose_no_values(monkeypatch):
    """The pass removes two casts if no values are lost between them; gradients stay the same."""
    (text,) = re.findall(r"```python\n([^`]*def there_and_back\(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    space: dict = {}
    exec(text, space)

    def net(between, end="float32"):
        x = mx.sym.Variable("x")
        return mx.sym.relu(mx.sym.cast(mx.sym.cast(mx.sym.dot(x, x), between), end))

    def launches(*dtypes):
        return _counted(net(*dtypes).simple_bind(null.ctx(), x=(3, 3), grad_req="null").forward)

    def answers(*dtypes):
        data = mx.nd.array(np.float32([[1, -2], [-3, 0.3]]))
        executor = net(*dtypes).bind(mx.cpu(), {"x": data}, {"x": mx.nd.zeros((2, 2))})
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2, 2), dtype=executor.outputs[0].dtype))
        return [executor.outputs[0].asnumpy(), executor.grad_dict["x"].asnumpy()]

    narrow = ("float16",), ("float64", "float16"), ("int32",)
    stay = [launches(*each) for each in narrow]
    before = [answers(*each) for each in (("float64",), *narrow)]
    assert sum(launches("float64").values()) == 4
    place = compile.PASSES.index(compile.simplify)
    monkeypatch.setattr(compile, "PASSES", (*compile.PASSES[:place + 1], space["there_and_back"],
                                            *compile.PASSES[place + 1:]))
    assert launches("float64") == {"dot": 1, "relu": 1}
    assert [launches(*each) for each in narrow] == stay
    for old, new in zip(before, [answers(*each) for each in (("float64",), *narrow)]):
        np.testing.assert_array_equal(old, new)


def test_plans_are_recorded_as_those_of_all_devices(monkeypatch):
    """The recorder keeps the steps themselves: a run launches the same as steps one by one."""
    recorded = []

    class Stretch(PlainStep):
        def __init__(self, functions):
            self.functions = tuple(functions)

        def __call__(self):
            for function in self.functions:
                function()

    class Recorded(Recorder):
        nbytes = 0

        def warm_up(self):
            return contextlib.nullcontext()

        def record(self, functions):
            recorded.append(len(functions))
            return Stretch(functions)

    monkeypatch.setattr(replay, "recorder", lambda xp, device: Recorded())
    executor = null.network().simple_bind(null.ctx(), data=(8, 1, 32, 32))

    def step():
        executor.forward(is_train=True)
        executor.backward()

    counts = [_counted(step) for _ in range(4)]
    segments = [executor.plan(True).forward, executor.plan(True).backward]
    assert counts[1:] == counts[:1] * 3
    assert [segment.description() for segment in segments] == ["1 graph, 0 islands"] * 2
    assert [len(segment.flat) for segment in segments] == [1, 1] and sum(recorded) == sum(counts[0].values())
