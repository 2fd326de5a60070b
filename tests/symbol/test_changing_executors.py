"""Random programs that change a bound graph: an executor agrees with one that is bound anew at each step."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

import opreg as mx
from tests.questions import of_each

nd, sym = mx.nd, mx.sym
Arrays = dict[str, nd.NDArray]


def _register(random: random.Random, name: str) -> None:
    """Registers an operator again: with another factor, traced or not, with its own gradient or a derived one."""
    k, slope, traced = random.choice([0.5, 2.0, -1.0]), random.choice([1.0, 3.0]), random.random() < 0.5
    function = mx.operator.define(lambda x: x * k, name=name, traced=traced)
    if not traced or random.random() < 0.5:
        function.grad(lambda g, x, y: g * slope)


#: Layers of a graph.
LAYERS: list[Callable[[mx.sym.Symbol, str, str], mx.sym.Symbol]] = [
    lambda x, at, name: sym.FullyConnected(x, num_hidden=2, name=f"dense{at}"),
    lambda x, at, name: sym.BatchNorm(x, name=f"norm{at}", fix_gamma=False),
    lambda x, at, name: sym.LayerNorm(x, name=f"rows{at}"),
    lambda x, at, name: sym.Activation(x, act_type="tanh"),
    lambda x, at, name: sym.broadcast_mul(x, sym.var(f"scale{at}", shape=(1, 1))),
    lambda x, at, name: sym.Dropout(x, p=0.5),
    lambda x, at, name: sym.concat(x, x * 2, dim=1),
    lambda x, at, name: getattr(sym.custom, name)(x),
    lambda x, at, name: sym.BlockGrad(x) + x,
]


class Machine:
    """An executor and random changes of it.

    Parameters
    ----------
    seed : int
        Seed of the program.
    """

    def __init__(self, seed: int):
        self.random, self.numbers = random.Random(seed), np.random.RandomState(seed)
        self.name = f"_example_changing_{seed}"
        _register(self.random, self.name)
        self.symbol = sym.var("x")
        for at in range(self.random.randint(1, 5)):
            self.symbol = self.random.choice(LAYERS)(self.symbol, str(at), self.name)
        shapes, _, states = self.symbol.infer_shape(x=(2, 2))
        assert shapes is not None and states is not None
        args = {name: self.drawn(shape) for name, shape in zip(self.symbol.list_arguments(), shapes)}
        aux = {name: nd.abs(self.drawn(shape)) + 0.5
               for name, shape in zip(self.symbol.list_auxiliary_states(), states)}
        self.requests = {name: self.random.choice(["write", "add", "null"]) for name in args}
        self.executor = self.bound(args, {name: nd.zeros(array.shape) for name, array in args.items()}, aux)

    def drawn(self, shape: tuple[int, ...]) -> nd.NDArray:
        return nd.array(self.numbers.randn(*shape))

    def bound(self, args: Arrays, grads: Arrays, aux: Arrays) -> mx.executor.Executor:
        return self.symbol.bind(mx.cpu(), args, {name: grads[name] for name, req in self.requests.items()
                                                 if req != "null"}, self.requests, aux)

    def anew(self, copy: Callable[[nd.NDArray], nd.NDArray]) -> mx.executor.Executor:
        """A new executor with the same arrays, or with copies."""
        old = self.executor
        return self.bound(*[{name: copy(array) for name, array in arrays.items() if array is not None}
                            for arrays in (old.arg_dict, old.grad_dict, old.aux_dict)])

    def change(self) -> str:
        """Changes the executor, and returns a description."""
        executor, what = self.executor, self.random.choice(
            ["arguments", "states", "copies", "shape", "monitor", "no monitor", "operator", "gradient", "file"])
        if what == "arguments":
            array = self.random.choice(executor.arg_arrays)
            array[:] = self.drawn(array.shape)
        elif what == "states":
            for array in executor.aux_arrays:
                array[:] = nd.abs(self.drawn(array.shape)) + 0.5
        elif what == "copies":
            executor.copy_params_from({name: self.drawn(array.shape) for name, array in executor.arg_dict.items()})
        elif what == "shape":
            self.executor = executor.reshape(x=(self.random.choice([1, 2, 3]), 2), allow_up_sizing=True)
            self.executor.arg_dict["x"][:] = self.drawn(self.executor.arg_dict["x"].shape)
        elif what.endswith("monitor"):
            executor.set_monitor_callback(None if what == "no monitor" else lambda name, array: None)
        elif what == "gradient":
            factor = self.random.choice([1.0, 5.0])
            mx.operator.get(self.name).grad(lambda g, x, y: g * factor)
        else:
            if what == "operator":
                _register(self.random, self.name)
            else:
                self.symbol = sym.load_json(self.symbol.tojson())
            self.executor = self.anew(lambda array: array)
        return what

    def answers(self, executor: mx.executor.Executor, seed: int, is_train: bool, heads: list[nd.NDArray]
                ) -> list[np.ndarray]:
        mx.random.seed(seed)
        found = [array.asnumpy() for array in executor.forward(is_train=is_train)]
        if is_train:
            executor.backward(heads)
        return found + [array.asnumpy() for arrays in (executor.grad_arrays, executor.aux_arrays)
                        for array in arrays if array is not None]


@of_each(range(24))
def test_a_changed_executor_equals_a_newly_bound_one(seed: int) -> None:
    machine, said = Machine(seed), []
    for _ in range(6):
        said.append(machine.change())
        fresh = machine.anew(lambda array: array.copy())
        heads = [machine.drawn(array.shape) for array in fresh.outputs]
        asked = machine.random.randrange(100), machine.random.random() < 0.6, heads
        expected = machine.answers(fresh, *asked)
        for one, other in zip(machine.answers(machine.executor, *asked), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=", ".join(said))
