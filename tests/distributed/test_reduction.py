"""Gradients of several ranks in the plan: results of one rank over the whole batch, for all groupings, divisions and
additions, in the same order on all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.distributed.groups import Call, Group, Request
from opreg.errors import ArgumentError, RankError
from opreg.symbol.inspect import profile
from opreg.symbol.reduction import BUCKET, Reduction, joined
from tests.cuda.device import gpus
from tests.distributed.ranks import needs_mpi, outcomes
from tests.distributed.thread_ranks import ThreadGroup, on_ranks
from tests.questions import of_each

nd, sym = mx.nd, mx.sym

BATCH = 12
ALL_SHARDS = (None, "states", "gradients")


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computes with NumPy, so that the choice of kernels does not depend on the time of a compilation."""
    monkeypatch.setenv("OPREG_JIT", "numpy")


def network(seed: int) -> Any:
    """A small graph of shared weights, branches, weights that pass through and one that no gradient reaches."""
    rng = np.random.default_rng(seed)
    x = sym.var("data")
    shared = sym.var("shared_weight", shape=(6, 6))
    layers = [x]
    for i in range(int(rng.integers(2, 5))):
        source = layers[int(rng.integers(len(layers)))]
        kind = int(rng.integers(4))
        if kind == 0:
            made = sym.FullyConnected(source, num_hidden=6, name=f"fc{i}")
        elif kind == 1:
            made = sym.dot(source, shared)
        elif kind == 2:
            made = sym.broadcast_mul(source, sym.var(f"scale{i}_weight", shape=(1, 6)))
        else:
            made = sym.broadcast_add(source, sym.BlockGrad(sym.var(f"fixed{i}_weight", shape=(1, 6))))
        if rng.integers(2):
            made = sym.Activation(made, act_type="tanh")
        layers.append(made)
    last = sym.FullyConnected(sym.add_n(*layers, num_args=len(layers)), num_hidden=3, name="last")
    return sym.MakeLoss(sym.sum(sym.square(sym.dot(last, sym.var("end_weight", shape=(3, 2)))), axis=1))


def trained(graph: Any, group: Group | None, shard: str | None = None, bucket_bytes: int = BUCKET, req: Any = "write",
            optimizer: str = "sgd", mean: bool = False, own_arrays: bool = False, steps: int = 3, **more: Any) -> Any:
    """An executor over this rank's part of a batch, after some steps."""
    rank, size = (0, 1) if group is None else (group.rank, group.size)
    data = np.random.default_rng(1).standard_normal((BATCH, 6)).astype("float32")
    share = data[rank * BATCH // size:(rank + 1) * BATCH // size]
    names = [name for name in graph.list_arguments() if name != "data"]
    shapes = dict(zip(graph.list_arguments(), graph.infer_shape(data=share.shape)[0]))
    reduction = None if group is None else Reduction(group, gradients_mean=mean, shard=shard, bucket_bytes=bucket_bytes)
    requests = dict.fromkeys(names, req)
    if own_arrays:
        args = {name: nd.zeros(shape) for name, shape in shapes.items()}
        grads = {name: nd.zeros(shapes[name]) for name in names}
        executor = graph.bind(mx.cpu(), args, grads, requests, reduce=reduction, **more)
    else:
        executor = graph.simple_bind(mx.cpu(), requests, data=share.shape, reduce=reduction, **more)
    rng = np.random.default_rng(2)
    for name in names:
        executor.arg_dict[name][:] = 0.4 * rng.standard_normal(shapes[name])
    executor.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.05, rescale_grad=1 / BATCH))
    for _ in range(steps):
        executor.step(data=nd.array(share))
    return executor


def numbers(executor: Any) -> dict[str, np.ndarray]:
    return {name: array.asnumpy() for name, array in executor.arg_dict.items() if name != "data"}


def gradients(executor: Any) -> dict[str, np.ndarray]:
    return {name: array.asnumpy() for name, array in executor.grad_dict.items() if array is not None}


def agree(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], rtol: float = 2e-5) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=rtol, err_msg=name)


def equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


# ------------------------------------------------------------------------------------------------ the same answer


@of_each(range(12))
def test_ranks_give_the_results_of_one_process(seed: int) -> None:
    """The results are equal for any graph, buckets, divided updates, and whoever made the arrays."""
    rng, graph = np.random.default_rng(seed), network(seed)
    ranks, shard = int(rng.integers(2, 5)), ALL_SHARDS[seed % 3]
    bucket = int(rng.choice([1, 100, 200, BUCKET]))
    optimizer = str(rng.choice(["sgd", "adam", "ftml", "adadelta", "adamax"]))
    words = dict(shard=shard, bucket_bytes=bucket, optimizer=optimizer, own_arrays=shard != "gradients" and seed % 2)
    one = trained(graph, None, optimizer=optimizer)
    found = on_ranks(ranks, lambda group: trained(graph, group, **words))
    for each in found:
        agree(numbers(each), numbers(one), 2e-4)
        equal(numbers(each), numbers(found[0]))
        if shard != "gradients":
            agree(gradients(each), gradients(one), 2e-4)
    equal(numbers(on_ranks(ranks, lambda group: trained(graph, group, **words))[0]), numbers(found[0]))


@pytest.mark.parametrize("shard", ["states", "gradients"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_sharding_changes_no_bit_of_two_ranks(shard: str, optimizer: str) -> None:
    graph = network(0)
    whole, parts = [on_ranks(2, lambda group, shard=shard: trained(graph, group, shard, 200, optimizer=optimizer))
                    for shard in (None, shard)]
    equal(numbers(parts[0]), numbers(whole[0]))


def test_gradients_may_be_averaged_over_ranks() -> None:
    graph = network(3)
    one = trained(graph, None, steps=1)
    for each in on_ranks(3, lambda group: trained(graph, group, mean=True, steps=1)):
        agree({name: 3 * value for name, value in gradients(each).items()}, gradients(one))


@pytest.mark.parametrize("shard", ALL_SHARDS)
def test_gradients_that_are_added(shard: str | None) -> None:
    """With ``req="add"``, each backward adds the gradients of all ranks."""
    graph = network(4)

    def sums(group: Group | None) -> dict[str, np.ndarray]:
        executor = trained(graph, group, shard, 150, req="add", steps=0)
        executor.arg_dict["data"][:] = 0.5
        for _ in range(3):
            executor.forward(is_train=True)
            executor.backward()
        executor.update()
        return numbers(executor) if shard else gradients(executor)

    expected = sums(None)
    for found in on_ranks(3, sums):
        agree(found, expected)


@pytest.mark.parametrize("shard", ALL_SHARDS)
def test_a_monitor_or_a_reshape_on_one_rank_changes_only_its_plan(shard: str | None) -> None:
    """A monitor, or another batch size, on one rank changes only its plan, not the calls of all ranks."""
    graph, seen = network(5), []

    def run(group: Group) -> Any:
        executor = trained(graph, group, shard, 100, steps=1)
        if group.rank == 1:
            executor.set_monitor_callback(lambda name, value: seen.append(name))
            executor = executor.reshape(data=(2, 6), partial_shaping=True)
            executor.set_monitor_callback(lambda name, value: seen.append(name))
        executor.step()
        return executor

    found = on_ranks(2, run)
    equal(numbers(found[1]), numbers(found[0]))
    assert seen and not any("bucket" in name for name in seen)


# -------------------------------------------------------------------------------------------- reductions in a plan


def perceptron() -> Any:
    hidden = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=4, name="first"), act_type="relu")
    return sym.MakeLoss(sym.FullyConnected(hidden, num_hidden=2, name="second"))


def bound(group: ThreadGroup, **words: Any) -> Any:
    graph = perceptron()
    requests = {name: "write" for name in graph.list_arguments() if name != "data"}
    return graph.simple_bind(mx.cpu(), requests, data=(3, 6), reduce=Reduction(group, **words))


def test_buckets_are_sent_while_backward_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for rate in ("memory_rate", "product_rate"):
        monkeypatch.setattr(profile, rate, lambda *_: 1e9)

    def run(group: ThreadGroup) -> tuple[str, list[int], Any]:
        executor = bound(group, bucket_bytes=40)
        executor.forward(is_train=True)
        executor.backward()
        return executor.explain(), [call.shape[0] for call in group.calls], executor.profile(runs=1).rows

    (text, counts, steps), other = on_ranks(2, run)
    assert counts[:3] == [8 + 2, 4 * 6, 4] and counts == other[1]
    lines = [line.split()[1] for line in text.split("\nbackward:\n")[1].splitlines() if line.strip()]
    first = lines.index("_allreduce_start")
    assert "_backward_FullyConnected_weight" in lines[first:] and lines[-3:] == ["_allreduce_wait"] * 3
    assert "bucket0 (second_weight, second_bias; 40 bytes)" in text
    rows = {row.node: row for row in steps if row.operator == "_allreduce_start"}
    assert rows["bucket0 (second_weight, second_bias; 40 bytes)"].read == 40


def test_gradients_are_computed_in_the_buckets() -> None:
    def run(group: ThreadGroup) -> Any:
        executor = bound(group)
        executor.forward(is_train=True)
        executor.backward()
        return executor

    for executor in on_ranks(2, run):
        starts = [step for step in executor.plan(True).backward.steps if step.node and "start" in step.node.op.name]
        (step,) = starts
        assert len(step.run) == 1  # nothing is copied
        grads = [executor.grad_dict[name]._data for name in ("second_weight", "second_bias", "first_weight",
                                                             "first_bias")]
        assert joined(grads, 38) is not None and np.shares_memory(step.outs[0], grads[0])


def test_one_rank_and_no_rank_have_the_same_plan() -> None:
    graph = perceptron()
    plans = [graph.simple_bind(mx.cpu(), "write", data=(3, 6), **words).explain()
             for words in ({}, {"reduce": Group()}, {"reduce": Group(), "shard": "gradients"})]
    assert plans[0] == plans[1] == plans[2]


def test_only_gradients_of_chosen_weights_are_reduced() -> None:
    """Gradients of other weights, and of data, are not reduced."""
    def run(group: ThreadGroup) -> Any:
        graph = perceptron()
        weights = [name for name in graph.list_arguments() if name != "data"]
        executor = graph.simple_bind(mx.cpu(), "write", data=(3, 6), reduce=Reduction(group, weights=weights))
        for name in weights:
            executor.arg_dict[name][:] = 1
        executor.forward(is_train=True, data=nd.ones((3, 6)))
        executor.backward()
        return executor

    executor = on_ranks(2, run)[1]
    assert executor.grad_dict["data"].asnumpy().tolist() == np.full((3, 6), 8.0).tolist()
    assert executor.grad_dict["second_bias"].asnumpy().tolist() == [6.0, 6.0]


class Alike(Group):
    """A group in which all ranks have the same arrays as this one, on any device."""

    def _post(self, call: Call, array: Any, out: Any, tag: int) -> Request:
        if call.kind == "all_gather":
            for rank in range(self.size):
                out[rank * array.shape[0]:(rank + 1) * array.shape[0]] = array
        elif out is not array:
            out[...] = array[:out.shape[0]]
        return Request(out)


@pytest.mark.parametrize("shard", ALL_SHARDS)
def test_reductions_are_no_part_of_replayed_graphs(shard: str | None) -> None:
    """Replayed graphs exclude the reductions."""
    with gpus():
        graph = perceptron()
        weights = [name for name in graph.list_arguments() if name != "data"]
        executor = graph.simple_bind(mx.gpu(0), dict.fromkeys(weights, "write"), data=(3, 6),
                                     reduce=Reduction(Alike(range(2)), shard=shard, bucket_bytes=40))
        for name in weights:
            executor.arg_dict[name][:] = 1
        executor.set_optimizer(mx.optimizer.create("adam", learning_rate=0.5))
        for _ in range(4):
            executor.step(data=nd.ones((3, 6), ctx=mx.gpu(0)))
        assert "islands" in executor.explain() and executor.updater.get_states()
        bias, weight = executor.arg_dict["second_bias"].asnumpy(), executor.arg_dict["second_weight"].asnumpy()
        # The other rank's half of the ten numbers equals this one's.
        assert bias[0] == (weight[0, 3] if shard else pytest.approx(-1, abs=1e-4)) and weight[0, 0] < 1


# ------------------------------------------------------------------------------------------------------- sharding


def states(executor: Any) -> bytes:
    return executor.updater.get_states(dump_optimizer=True)


@pytest.mark.parametrize("shard", ["states", "gradients"])
def test_sharded_states_are_saved_as_a_whole_and_loaded_in_parts(shard: str) -> None:
    graph = network(1)
    expected = trained(graph, None, optimizer="adam", steps=2)

    def run(group: Group) -> tuple[bytes, Any]:
        executor = trained(graph, group, shard, 150, optimizer="adam", steps=2)
        return states(executor), executor

    saved = on_ranks(3, run)
    one = mx.optimizer.get_updater(mx.optimizer.create("adam"))
    one.set_states(saved[0][0])
    assert {each for each, _ in saved} == {saved[0][0]}
    for index, state in expected.updater.states.items():
        for own, other in zip(one.states[index], state, strict=True):
            np.testing.assert_allclose(own.asnumpy(), other.asnumpy(), rtol=1e-4, atol=1e-7)

    def resumed(group: Group) -> Any:
        executor = trained(graph, group, shard, 100, optimizer="adam", steps=0)
        executor.copy_params_from({name: nd.array(value) for name, value in numbers(saved[0][1]).items()})
        executor.updater.set_states(saved[0][0])
        assert states(executor) == saved[0][0]
        executor.step(data=nd.ones(executor.arg_dict["data"].shape))
        return executor

    expected.step(data=nd.ones((BATCH, 6)))
    for executor in on_ranks(4, resumed):  # more ranks than before
        agree(numbers(executor), numbers(expected), 2e-4)


def test_memory_is_divided() -> None:
    graph = network(1)
    whole, states_, gradients_ = [on_ranks(2, lambda group, shard=shard: trained(
        graph, group, shard, optimizer="adam").memory().bound)[0] for shard in ALL_SHARDS]
    assert states_["optimizer states"] <= whole["optimizer states"] / 2 + 8
    assert gradients_["optimizer states"] == states_["optimizer states"]
    assert states_["gradients"] == whole["gradients"] and gradients_["gradients"] <= whole["gradients"] / 2 + 8


# --------------------------------------------------------------------------------------------------------- errors


#: Differences of rank 1, and the error for each.
OTHERS = {
    "another operator": (dict(act="tanh"), "the graph of bind of rank 1 is node 4: Activation(3[0]) act_type=tanh; "
                         "that of rank 0 is node 4: Activation(3[0]) act_type=relu"),
    "another shape": (dict(hidden=5), "bucket 0: second_weight float32 (2, 5) write"),
    "another request": (dict(req="add"), "second_weight float32 (2, 4) add"),
    "another kind of sum": (dict(mean=True), "gradients mean"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_other_graphs_are_refused(other: str) -> None:
    changes, text = OTHERS[other]

    def run(group: Group) -> None:
        mine: dict[str, Any] = dict(act="relu", hidden=4, req="write", mean=False) | (changes if group.rank else {})
        hidden = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=mine["hidden"], name="first"),
                                act_type=mine["act"], name="act")
        graph = sym.MakeLoss(sym.FullyConnected(hidden, num_hidden=2, name="second"), name="loss")
        requests = {name: mine["req"] for name in graph.list_arguments() if name != "data"}
        executor = graph.simple_bind(mx.cpu(), requests, data=(3, 6),
                                     reduce=Reduction(group, gradients_mean=mine["mean"]))
        executor.forward(is_train=True)
        executor.backward()

    with pytest.raises(RankError, match="the graph of bind of rank 1") as found:
        on_ranks(2, run)
    assert text in str(found.value)


def test_different_initial_weights_are_refused() -> None:
    def run(group: ThreadGroup) -> None:
        executor = bound(group)
        executor.arg_dict["first_bias"][:] = group.rank
        executor.set_optimizer(mx.optimizer.create("sgd"))
        executor.step()

    with pytest.raises(RankError, match=r"the weights before the first update.*of rank 1 is first_bias"):
        on_ranks(2, run)


GROUP = Group(range(2))
REFUSED = {
    "no group": (dict(reduce=3), "expected a Group"),
    "another word": (dict(reduce=GROUP, shard="gradient"), "Did you mean 'gradients'"),
    "no group to divide among": (dict(shard="states"), "give reduce="),
    "no such weight": (lambda: dict(reduce=Reduction(GROUP, weights=["frst_bias"])), "Did you mean 'first_bias'"),
    "an optimizer of whole weights": (dict(reduce=GROUP, shard="states"), "LAMB may read a weight as a whole"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_wrong_uses_of_reductions_are_refused(mistake: str) -> None:
    words, text = REFUSED[mistake]

    def bind_with_lamb() -> None:
        executor = perceptron().simple_bind(mx.cpu(), "write", data=(3, 6), **(words() if callable(words) else words))
        executor.set_optimizer(mx.optimizer.create("lamb"))

    with pytest.raises(ArgumentError, match=text):
        bind_with_lamb()


def test_bind_refuses_sharded_gradients() -> None:
    x = sym.var("x")
    with pytest.raises(ArgumentError, match="simple_bind allocates"):
        (x * 2).bind(mx.cpu(), [nd.ones(3)], [nd.ones(3)], reduce=GROUP, shard="gradients")


# ----------------------------------------------------------------------------------------------------- over MPI

CHECKS = ["trains_as_one", "shards_as_one", "refuses_other_graphs", "goes_on_while_others_compute",
          "modules_sum_in_the_plan"]


@needs_mpi
def test_checks_pass_on_two_processes(tmp_path: Path) -> None:
    """All checks pass on both of two processes."""
    wrong = {name: said for name, said in outcomes("reduction_checks", CHECKS, tmp_path).items() if said}
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
