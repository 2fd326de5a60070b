"""Groups of executors: arrays that a module binds, arrays that groups share, and public attributes."""

from __future__ import annotations

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError

nd, sym = mx.nd, mx.sym
DataParallelExecutorGroup = mx.module.executor_group.DataParallelExecutorGroup
WEIGHTS = ["fc_weight", "fc_bias"]


def network(**more):
    return sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc", **more)


def group(net=None, rows=6, contexts=2, labels=None, params=WEIGHTS, **more):
    net = network() if net is None else net
    return DataParallelExecutorGroup(net, [mx.cpu(i) for i in range(contexts)], None, [("data", (rows, 3))], labels,
                                     params, **{"for_training": True, "inputs_need_grad": False, **more})


def test_each_context_has_its_part_of_the_batch():
    found = group(rows=5)
    assert [each.arg_dict["data"].shape for each in found.execs] == [(2, 3), (3, 3)]
    assert found.batch_size == 5
    assert [[each.shape for each in weight] for weight in found.param_arrays] == [[(2, 3)] * 2, [(2,)] * 2]
    assert [[each.shape for each in grad] for grad in found.grad_arrays] == [[(2, 3)] * 2, [(2,)] * 2]
    assert found.aux_arrays == []
    assert group(labels=[("only_for_metrics", (6,))], contexts=1).execs[0].arg_dict["data"].shape == (6, 3)


@pytest.mark.parametrize("more, expected", [
    ({}, ["null", "write", "write"]), (dict(inputs_need_grad=True, grad_req="add"), ["add"] * 3),
    (dict(for_training=False), ["null"] * 3), (dict(fixed_param_names=["fc_bias"]), ["null", "write", "null"]),
    (dict(grad_req={"fc_bias": "add"}), ["null", "write", "add"]),
    (dict(grad_req=["add", "null", "write"]), ["add", "null", "write"]),
])
def test_requests_are_by_argument(more, expected):
    found = group(**more)
    assert found.grad_req == dict(zip(["data", *WEIGHTS], expected))
    assert [name for name in found.grad_req if found.execs[1].grad_dict[name] is not None] == \
        [name for name, request in found.grad_req.items() if request != "null"]


def test_groups_share_weights_gradients_and_inputs():
    first = group()
    second = group(sym.broadcast_add(network(), sym.var("more", shape=(1, 2))), rows=4, shared_group=first)
    assert set(first.shared_data_arrays[0]) == {"data", "more"}  # the inputs of both groups
    for one, other in zip(first.execs, second.execs):
        for name in WEIGHTS:
            assert one.arg_dict[name] is other.arg_dict[name]
            assert one.grad_dict[name] is other.grad_dict[name]
        assert np.shares_memory(one.arg_dict["data"]._data, other.arg_dict["data"]._data)
    with pytest.raises(ArgumentError, match="bound on 2 contexts, expected 1"):
        group(contexts=1, shared_group=first)


def test_a_module_shows_its_group():
    module = mx.mod.Module(network(), label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 3))])
    module.init_params(mx.init.One())
    module.forward(mx.io.DataBatch([nd.ones((4, 3))]))
    module.backward([nd.ones((4, 2))])
    assert module._exec_group.param_names == WEIGHTS
    assert [[each.asnumpy().tolist() for each in grad] for grad in module._exec_group.grad_arrays] == \
        [[[[2.0] * 3] * 2] * 2, [[2.0, 2.0]] * 2]


def test_memory_of_plans_is_counted():
    deep = sym.FullyConnected(network(), num_hidden=4, name="last")
    small, large = (group(deep, rows=rows, params=[*WEIGHTS, "last_weight", "last_bias"]) for rows in (8, 800))
    assert 0 < small._total_exec_bytes < large._total_exec_bytes
    assert large._total_exec_bytes == sum(each.plan(True).nbytes for each in large.execs)


def test_states_go_on_from_bucket_to_bucket():
    module = mx.mod.BucketingModule(lambda key: (sym.var("data") + sym.var("state"), ["data"], None), 4,
                                    state_names=["state"])
    module.bind([("data", (2, 3))], for_training=False)
    module.init_params()
    module.set_states(value=5)
    batch = mx.io.DataBatch([nd.ones((2, 3))], bucket_key=2, provide_data=[("data", (2, 3))])
    module.forward(batch)
    assert module.get_outputs()[0].asnumpy().tolist() == [[6.0] * 3] * 2
    module.set_states(module.get_outputs())
    batch.bucket_key = 4
    module.forward(batch)
    assert module.get_outputs()[0].asnumpy().tolist() == [[7.0] * 3] * 2


def test_a_loop_may_step_the_executors_of_a_module():
    """Programs use the executors of a bound module, with one context and with two."""
    answers = []
    for count in (1, 2):
        net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc"),
                                            mx.sym.var("y"))
        module = mx.mod.Module(net, label_names=["y"], context=[mx.cpu(i) for i in range(count)])
        module.bind([("data", (4, 2))], [("y", (4,))], inputs_need_grad=True)
        group, args, aux = module._exec_group, {}, {}
        group.set_params({"fc_weight": mx.nd.array([[1, 2]]), "fc_bias": mx.nd.array([3])}, {})
        batch = mx.io.DataBatch([mx.nd.array(np.arange(8.0).reshape(4, 2))], [mx.nd.arange(4)])
        group.forward(batch, is_train=True)
        group.backward()
        metric = mx.metric.create("mse")
        group.update_metric(metric, batch.label)
        group.get_params(args, aux)
        assert [len(arrays) for arrays in (group.data_arrays[0], group.label_arrays[0], group.slices)] == [count] * 3
        assert len(group.get_outputs(merge_multi_context=False)[0]) == len(group.input_grad_arrays[0]) == count
        answers.append([group.get_outputs()[0].asnumpy().tolist(), group.get_input_grads()[0].asnumpy().tolist(),
                        metric.get()[1], {name: value.asnumpy().tolist() for name, value in args.items()}, aux])
    assert answers[0] == answers[1]
    assert answers[0][0] == [[5.0], [11.0], [17.0], [23.0]]
    assert answers[0][3] == {"fc_weight": [[1.0, 2.0]], "fc_bias": [3.0]}
