"""States that layers move in training, such as the statistics of batch normalization: a graph moves and reads them like
eager calls, also if a layer is used twice, or if its state is read or assigned in the same call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import Tensor, gluon, nd, nn, ops

X = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32)


def assigned(cell: Any, factor: float, offset: float = 0.0) -> None:
    ops.assign(cell.bn.moving_mean, cell.bn.moving_mean * factor + offset)


def between(cell: Any, x: Any) -> Any:
    y = cell.bn(x)
    assigned(cell, 2.0, 1.0)
    return cell.bn(y + 3.0)


def before(cell: Any, x: Any) -> Any:
    mean = cell.bn.moving_mean * 1.0
    return cell.bn(x) + mean


def behind(cell: Any, x: Any) -> Any:
    y = cell.bn(x)
    assigned(cell, 2.0)
    return y


def first(cell: Any, x: Any) -> Any:
    assigned(cell, 1.0, 4.0)
    return cell.bn(x)


def twice_and_in_inference(cell: Any, x: Any) -> Any:
    y = cell.bn(cell.bn(x) * 2.0)
    return y + ops.batch_norm(x, cell.bn.moving_mean, cell.bn.moving_variance, cell.bn.gamma, cell.bn.beta, False)


#: Functions of a Cell that has a layer with moving states.
CELLS: dict[str, Callable[[Any, Any], Any]] = {
    "used twice": lambda cell, x: cell.bn(cell.bn(x) * 3.0 + 1.0),
    "used on two inputs": lambda cell, x: cell.bn(x) - cell.bn(x * 2.0 + 1.0),
    "used three times": lambda cell, x: cell.bn(cell.bn(cell.bn(x) * 2.0) + 1.0),
    "read behind": lambda cell, x: cell.bn(x) + cell.bn.moving_mean,
    "read before": before,
    "assigned behind": behind,
    "assigned before": first,
    "assigned between": between,
    "read by the layer in inference": twice_and_in_inference,
}


class Normalizing(nn.Cell):
    def __init__(self, function: Callable[[Any, Any], Any]):
        super().__init__()
        self.bn, self.function = nn.BatchNorm1d(2, momentum=0.5), function

    def construct(self, x: Any) -> Any:
        return self.function(self, x)


@pytest.mark.filterwarnings("ignore:.*runs as Python")
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_a_compiled_cell_moves_states_as_an_eager_one(name: str, gradient: bool) -> None:
    found = []
    for compiles in (lambda cell: cell, ms.jit):
        cell = Normalizing(CELLS[name])
        cell.set_train()
        function = compiles(cell)
        call = ms.value_and_grad(lambda x: (function(x) ** 2).sum(), 0) if gradient else function
        for _ in range(2):
            out = call(Tensor(X))
        values = [*(out if gradient else [out]), cell.bn.moving_mean, cell.bn.moving_variance]
        found.append([value.asnumpy() for value in values])
    for eager, compiled in zip(*found):
        np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-5)


class Twice(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.bn = gluon.nn.BatchNorm(in_channels=2, momentum=0.5)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.bn(self.bn(x) * 3 + 1)


def test_a_hybridized_block_and_an_executor_move_the_states_of_a_layer_that_they_use_twice() -> None:
    found, x = [], nd.array(X)
    for way in ("eager", "hybridized", "executor"):
        net = Twice()
        net.initialize()
        net.hybridize(way == "hybridized")
        arrays = {each.name: each.data() for each in net.collect_params().values()}
        if way == "executor":
            graph = net(ms.sym.var("data"))
            states = {name: arrays.pop(name) for name in graph.list_auxiliary_states()}
            executor = graph.bind(ms.cpu(), {**arrays, "data": x}, grad_req="null", aux_states=states)
        for _ in range(2):
            if way == "executor":
                executor.forward(is_train=True)
            else:
                with ms.autograd.train_mode():
                    net(x)
        found.append([net.bn.params.get(name).data().asnumpy() for name in ("running_mean", "running_var")])
    for mean, variance in found[1:]:
        np.testing.assert_allclose(mean, found[0][0], rtol=1e-6)
        np.testing.assert_allclose(variance, found[0][1], rtol=1e-6)
