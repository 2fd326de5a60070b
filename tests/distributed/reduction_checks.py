"""Checks of ``test_reduction.py`` on two ranks over MPI: each function runs on both, with the group of all ranks."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.distributed import Group, RankError
from opreg.symbol.reduction import Reduction
from tests.distributed.test_reduction import agree, equal, network, numbers, perceptron, trained


def trains_as_one(group: Group) -> None:
    for seed in range(4):
        graph = network(seed)
        one, found = trained(graph, None, optimizer="adam"), trained(graph, group, bucket_bytes=100, optimizer="adam")
        agree(numbers(found), numbers(one), 2e-4)
        equal(numbers(trained(graph, group, bucket_bytes=100, optimizer="adam")), numbers(found))


def shards_as_one(group: Group) -> None:
    graph = network(1)
    whole = trained(graph, group, bucket_bytes=150, optimizer="adam")
    for shard in ("states", "gradients"):
        found = trained(graph, group, shard, 150, optimizer="adam")
        equal(numbers(found), numbers(whole))
        states = found.updater.get_states()
        assert states == whole.updater.get_states()
        assert set(group.exchange(states)) == {states}


def refuses_other_graphs(group: Group) -> None:
    graph = perceptron() if group.rank else network(0)
    executor = graph.simple_bind(mx.cpu(), "write", data=(3, 6), reduce=group)
    executor.forward(is_train=True)
    with pytest.raises(RankError, match="the graph of bind of rank"):
        executor.backward()


def goes_on_while_others_compute(group: Group) -> None:
    """Large gradients are reduced between steps, which let running reductions proceed."""
    x = mx.sym.var("data")
    for i in range(4):
        x = mx.sym.FullyConnected(x, num_hidden=300, name=f"fc{i}")
    graph = mx.sym.MakeLoss(x)
    names = [name for name in graph.list_arguments() if name != "data"]
    executor = graph.simple_bind(mx.cpu(), dict.fromkeys(names, "write"), data=(64, 300),
                                 reduce=Reduction(group, gradients_mean=True, bucket_bytes=1 << 18))
    for name in names:
        executor.arg_dict[name][:] = 0.01
    for _ in range(3):
        executor.forward(is_train=True, data=np.full((64, 300), group.rank + 1.0, np.float32))
        executor.backward()
    forward, backward = executor.explain().split("\nbackward:\n")
    assert "_reduce_move" in backward and "_reduce" not in forward and "_backward" not in forward
    assert {"_reduce_move", "_allreduce_start"} <= {row.operator for row in executor.estimate().rows}
    assert np.all(executor.grad_dict["fc3_bias"].asnumpy() == 64)
    assert np.allclose(executor.grad_dict["fc0_weight"].asnumpy(), 64 * 1.5 * 27, rtol=1e-4)


def modules_sum_in_the_plan(group: Group) -> None:
    """A store's name makes modules reduce in the plan; the result equals one process over the whole batch, from rank
    0's weights."""
    data = np.random.default_rng(1).standard_normal((8, 6)).astype("float32")
    label = np.arange(8) % 2

    def fitted(kind: str, part: slice) -> mx.mod.Module:
        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
        module = mx.mod.Module(net)
        module.bind([("data", data[part].shape)], [("softmax_label", label[part].shape)])
        module.init_params(mx.init.Constant(0.1 if kind == "local" else 0.1 + group.rank))
        module.init_optimizer(kind, "adam", {"learning_rate": 0.1})
        batch = mx.io.DataBatch([mx.nd.array(data[part])], [mx.nd.array(label[part])])
        for _ in range(3):
            module.forward_backward(batch)
            module.update()
        return module

    mine = fitted("dist_sync", slice(4 * group.rank, 4 * group.rank + 4))
    assert "_allreduce_start" in mine._exec_group.execs[0].explain()
    one, found = fitted("local", slice(8)).get_params()[0], mine.get_params()[0]
    agree({name: value.asnumpy() for name, value in found.items()},
          {name: value.asnumpy() for name, value in one.items()}, 1e-5)
    mine.reshape([("data", (2, 6))], [("softmax_label", (2,))])
    assert "_allreduce_start" in mine._exec_group.execs[0].explain()
    mine.init_optimizer("local", force_init=True)
    assert "_allreduce_start" not in mine._exec_group.execs[0].explain()
