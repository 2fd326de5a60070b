"""Checks of ``test_distributed.py`` on two ranks: each function runs on both, with the group of all ranks."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opreg as mx
from opreg.distributed import Group, RankError, add_group, world
from opreg.errors import ArgumentError, DTypeError, ShapeError

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32, np.int64]


def _own(group: Group, dtype: Any, *shape: int) -> np.ndarray:
    """Values of a rank, which differ for each rank."""
    return (np.arange(np.prod(shape)).reshape(shape) % 5 + 3 * group.rank).astype(dtype)


def _all(group: Group, dtype: Any, *shape: int) -> np.ndarray:
    return np.stack([(np.arange(np.prod(shape)).reshape(shape) % 5 + 3 * rank) for rank in range(group.size)]
                    ).astype(dtype)


def _refuses(kind: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def reductions(group: Group) -> None:
    for dtype in DTYPES:
        own, everything = _own(group, dtype, 4, 3), _all(group, dtype, 4, 3)
        for op, expected in (("sum", everything.sum(0)), ("max", everything.max(0)), ("min", everything.min(0))):
            for result in (group.allreduce(own, op), group.iallreduce(own, op).wait()):
                assert result.dtype == dtype and np.array_equal(result, expected.astype(dtype)), (dtype, op)
            part = group.reduce_scatter(own, op)
            assert np.array_equal(part, np.split(expected.astype(dtype), group.size)[group.rank]), (dtype, op)
    for dtype in DTYPES[:4]:
        mean = group.allreduce(_own(group, dtype, 4, 3), "mean")
        assert np.array_equal(mean, _all(group, np.float32, 4, 3).mean(0).astype(dtype)), dtype
    truth = np.array([True, group.rank == 0, False])
    assert group.allreduce(truth, "max").tolist() == [True, True, False]
    assert group.allreduce(truth, "min").tolist() == [True, False, False]
    _refuses(DTypeError, "bool arrays have no sum", lambda: group.allreduce(truth))
    _refuses(DTypeError, "compute the sum", lambda: group.allreduce(np.arange(3), "mean"))
    _refuses(ArgumentError, "Did you mean 'mean'?", lambda: group.allreduce(np.ones(3), "meen"))


def places(group: Group) -> None:
    """Results are written to the given array: the same or another one, contiguous or not."""
    own = _own(group, np.float32, 4, 6)
    total = _all(group, np.float32, 4, 6).sum(0)
    into = np.empty_like(own)
    assert group.allreduce(own, out=into) is into and np.array_equal(into, total)
    assert np.array_equal(own, _own(group, np.float32, 4, 6))
    apart = np.zeros((4, 12), np.float32)
    group.allreduce(own, out=apart[:, ::2])
    assert np.array_equal(apart[:, ::2], total) and not apart[:, 1::2].any()
    assert np.array_equal(group.allreduce(own.T), total.T)
    number = np.array(group.rank + 1.0)
    assert group.allreduce(number, out=number) is number and number == sum(range(1, group.size + 1))
    group.allreduce(own, out=own)
    assert np.array_equal(own, total)
    assert group.allreduce(np.zeros((0, 3))).shape == (0, 3)
    _refuses(ShapeError, "out holds", lambda: group.allreduce(own, out=np.empty(3, np.float32)))


def moves(group: Group) -> None:
    other = (group.rank + 1) % group.size
    for dtype in [*DTYPES, np.bool_, np.complex64]:
        own, everything = _own(group, dtype, 2, 3), _all(group, dtype, 2, 3)
        assert np.array_equal(group.all_gather(own), everything.reshape(-1, 3)), dtype
        assert np.array_equal(group.broadcast(own, 1), everything[1]), dtype
        assert np.array_equal(group.alltoall(own), everything[:, group.rank]), dtype
        sending = group.isend(own, other, 7)
        came = group.recv(np.empty_like(own), (group.rank - 1) % group.size, 7)
        sending.wait()
        assert np.array_equal(came, everything[(group.rank - 1) % group.size]), dtype
    _refuses(ShapeError, "divided among 2 ranks", lambda: group.alltoall(np.ones(3)))
    _refuses(ArgumentError, "ranks 0 to 1", lambda: group.broadcast(np.ones(3), 2))
    own = _own(group, np.float32, 3)
    group.broadcast(own, out=own)
    assert np.array_equal(own, _all(group, np.float32, 3)[0])


def under_way(group: Group) -> None:
    """Many calls at the same time, also large ones, may end in any order."""
    arrays = [_own(group, np.float32, n) for n in (3, 1 << 19, 17, 1 << 18)]
    requests = [group.iallreduce(array) for array in arrays]
    for request, array in reversed(list(zip(requests, arrays))):
        while not request.test():
            pass
        assert np.array_equal(request.wait(), _all(group, np.float32, array.size).sum(0))


def same_sums(group: Group) -> None:
    """All ranks, and all runs, get the same bits."""
    noise = np.random.default_rng(group.rank).standard_normal(100_003).astype(np.float32)
    first = group.allreduce(noise)
    assert all(group.allreduce(noise).tobytes() == first.tobytes() for _ in range(3))
    group.agree("the sums", first.tobytes().hex())


def other_groups(group: Group) -> None:
    alone = group.split(group.rank)
    assert (alone.rank, alone.size, alone.ranks) == (0, 1, (group.rank,))
    assert alone.allreduce(np.ones(2)).tolist() == [1, 1]
    backwards = group.split(0, -group.rank)
    assert backwards.rank == group.size - 1 - group.rank
    assert backwards.all_gather(np.array([group.rank])).tolist() == list(range(group.size))[::-1]
    second = group.create([1], "second")
    assert (second is None) is (group.rank != 1)
    if second is not None:
        assert add_group(second) is second and mx.distributed.group("second") is second
    assert mx.distributed.group("nccl_world_group") is world() is group
    _refuses(ArgumentError, "no group 'nobody'", lambda: mx.distributed.group("nobody"))


def agreement(group: Group) -> None:
    group.agree("the weather", "fine")
    _refuses(RankError, "the weather of rank", lambda: group.agree("the weather", "fine" if group.rank else "foul"))
    assert group.exchange({"rank": group.rank}) == [{"rank": rank} for rank in range(group.size)]


# ------------------------------------------------------------------------------------------------- stores


def store(group: Group) -> None:
    for kind in ("dist_sync", "dist_device_sync", "dist"):
        kv = mx.kv.create(kind)
        assert (kv.rank, kv.num_workers, kv.type) == (group.rank, group.size, kind)
        kv.init(["a", "b"], [mx.nd.full((2, 3), group.rank + 5), mx.nd.ones(4)])
        out = mx.nd.zeros((2, 3))
        kv.pull("a", out=out)
        assert (out == 5).asnumpy().all()  # the value of rank 0
        kv.push("a", [mx.nd.full((2, 3), group.rank), mx.nd.ones((2, 3))])
        kv.pull("a", out=out)
        assert (out == 3).asnumpy().all()
        both = [mx.nd.ones((2, 3)), mx.nd.full(4, group.rank)]
        kv.pushpull(["a", "b"], both)
        assert (both[0] == 2).asnumpy().all() and (both[1] == 1).asnumpy().all()
        kv.broadcast("c", mx.nd.full(2, group.rank), out=[both[1][:2]])
        kv.barrier()
        _refuses(ArgumentError, "row_ids", lambda: kv.row_sparse_pull("a", out))
    _refuses(RankError, "what kvstore.init begins",
             lambda: kv.init("z", mx.nd.ones(2 + group.rank)))


def store_with_optimizer(group: Group) -> None:
    """Each push causes one update along the sum of all ranks' gradients."""
    alone, kv = mx.kv.create("local"), mx.kv.create("dist_sync")
    grads = mx.nd.array(np.random.default_rng(3).standard_normal((3, group.size, 5)))
    outs = [mx.nd.zeros(5), mx.nd.zeros(5)]
    for each in (alone, kv):
        each.init(3, mx.nd.ones(5))
        each.set_optimizer(mx.optimizer.create("adam", learning_rate=0.1))
    for step in range(3):
        alone.push(3, mx.nd.sum(grads[step], axis=0))
        kv.push(3, grads[step, group.rank])
    for each, out in zip((alone, kv), outs):
        each.pull(3, out=out)
    assert np.allclose(outs[0].asnumpy(), outs[1].asnumpy(), 1e-6)
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "states")
        kv.save_optimizer_states(name)
        assert Path(name).stat().st_size
        kv.load_optimizer_states(name)
    other = mx.kv.create("dist_sync")
    _refuses(RankError, "the optimizer of rank", lambda: other.set_optimizer(
        mx.optimizer.create("sgd", learning_rate=0.1 + group.rank)))


def compression(group: Group) -> None:
    """Compression to two bits: each rank keeps the remainder for its next push."""
    kv = mx.kv.create("dist_sync")
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init("w", mx.nd.zeros(7))
    noise = np.random.default_rng(0).standard_normal((4, group.size, 7)).astype("float32")
    left, out = np.zeros((group.size, 7), "float32"), mx.nd.zeros(7)
    for grads in noise:
        kv.push("w", mx.nd.array(grads[group.rank]))
        kv.pull("w", out=out)
        left += grads
        sent = np.where(left >= 0.5, 0.5, np.where(left <= -0.5, -0.5, 0)).astype("float32")
        left -= sent
        assert np.array_equal(out.asnumpy(), sent.sum(0))


def horovod(group: Group) -> None:
    kv = mx.kv.create("horovod")
    assert (kv.rank, kv.num_workers, kv.local_rank) == (group.rank, group.size, group.rank)
    weight, grad = mx.nd.full(3, group.rank + 2), mx.nd.full(3, group.rank)
    kv.broadcast("w", weight, out=weight)
    kv.pushpull("w", grad)
    assert (weight == 2).asnumpy().all() and (grad == 1).asnumpy().all()
    assert not kv.is_capable("optimizer")


# ------------------------------------------------------------------------------------------------- no waiting


def _async_store(value: Any = None, **settings: Any) -> Any:
    """A store with a key on one rank; the other rank asks for half of the keys."""
    kv = mx.kv.create("dist_async")
    kv.init(["a", "b"], [mx.nd.zeros(5), mx.nd.zeros(5)] if value is None else [value, value])
    kv.set_optimizer(mx.optimizer.create(**{"name": "sgd", "learning_rate": 1.0, **settings}))
    return kv


def _pulled(kv: Any, key: str = "a") -> np.ndarray:
    out = mx.nd.zeros(5)
    kv.pull(key, out=out)
    return out.asnumpy()


def windows(group: Group) -> None:
    """Ranks read the writes of others; additions to a word are atomic; a lock excludes other ranks, or only writers."""
    window, other = group.window(64 + 64 * group.rank), 1 - group.rank
    window.write(other, 16, np.array([group.rank + 1.0, 7]))
    for _ in range(300):
        window.add(0, 0, 1)
    group.barrier()
    assert window.read(group.rank, 16, np.empty(2)).tolist() == [other + 1, 7]
    assert window.add(0, 0, 0) == 600
    with window.lock(0, 8, "a look", shared=True):
        group.barrier()  # both are in it
    before = mx.distributed.set_timeout(0.2)
    try:
        if group.rank == 0:
            with window.lock(1, 8, "work"):
                _refuses(RankError, "call 3, more of it: rank 1: not here after 0.2", lambda: window.lock(
                    1, 8, "more of it", shared=True).__enter__())
    finally:
        mx.distributed.set_timeout(before)
    group.barrier()
    with window.lock(1, 8, "work"):
        pass
    group.barrier()
    window.free()


def no_update_is_lost(group: Group) -> None:
    """Both ranks push the same keys, one twice as often, hundreds of times; the values are integers, so sums are
    exact."""
    kv, pushes = _async_store(), 200 * (1 + group.rank)
    assert (kv.type, kv.rank, kv.num_workers) == ("dist_async", group.rank, 2)
    assert {entry.owner for entry in kv._entries.values()} == {0, 1}
    for i in range(pushes):
        kv.push(["a", "b"], [mx.nd.full(5, i % 3), [mx.nd.ones(5), mx.nd.ones(5)]])
        if i % 50 == 0:
            assert len(set(_pulled(kv, "b"))) == 1  # never half of a weight
    kv.barrier()
    assert _pulled(kv).tolist() == [-float(sum(i % 3 for n in (200, 400) for i in range(n)))] * 5
    assert _pulled(kv, "b").tolist() == [-1200.0] * 5
    kv.barrier()


def nobody_waits(group: Group) -> None:
    """One rank pushes, pulls and saves before the other makes any call; the other waits for a file."""
    (folder, _) = group.exchange(tempfile.mkdtemp() if group.rank == 0 else "")
    kv, done = _async_store(), Path(str(folder)) / "done"
    if group.rank == 0:
        for _ in range(50):
            kv.pushpull(["a", "b"], [mx.nd.ones(5)] * 2, out=[mx.nd.zeros(5)] * 2)
        kv.save_optimizer_states(str(done))
    else:
        end = time.monotonic() + 20
        while not done.exists():
            assert time.monotonic() < end, "rank 0 waits for this one"
            os.sched_yield()
        assert _pulled(kv).tolist() == _pulled(kv, "b").tolist() == [-50] * 5
        shutil.rmtree(str(folder))
    group.barrier()


def weights_on_owners(group: Group) -> None:
    """The rank with the least memory gets the next key, largest first; rank 0 gives initial values; a user's updater
    works."""
    kv = mx.kv.create("dist_async")
    sizes = {"s": (3,), "m": (40,), "l": (8, 10), "n": (), "h": (5,)}
    dtypes = {"h": "float16"}
    kv.init(list(sizes), [mx.nd.full(shape, group.rank + 4, dtype=dtypes.get(name, "float32"))
                          for name, shape in sizes.items()])
    assert {name: entry.owner for name, entry in kv._entries.items()} == {"l": 0, "m": 1, "s": 1, "n": 0, "h": 1}
    kv.init("later", mx.nd.ones(2))
    kv.set_updater(lambda key, grad, weight: weight.__iadd__(grad))
    for name, shape in sizes.items():
        kv.push(name, mx.nd.full(shape, 2, dtype=dtypes.get(name, "float32")))
    kv.barrier()
    for name, shape in sizes.items():
        out = mx.nd.zeros(shape, dtype=dtypes.get(name, "float32"))
        kv.pull(name, out=out)
        assert (out.asnumpy() == 8).all(), name
    kv.barrier()
    kv.set_optimizer(mx.optimizer.create("sgd", learning_rate=1))  # continues with the current weights
    out = mx.nd.zeros(3)
    kv.pull("s", out=out)
    assert (out.asnumpy() == 8).all()
    kv.barrier()
    _refuses(ArgumentError, "needs an optimizer; call set_optimizer first", lambda: _plain().push("w", mx.nd.ones(1)))
    _refuses(ArgumentError, "use 'dist_sync'", lambda: kv.set_gradient_compression({"type": "2bit"}))
    _refuses(RankError, "the optimizer of rank", lambda: kv.set_optimizer(
        mx.optimizer.create("sgd", learning_rate=1 + group.rank)))
    _refuses(ArgumentError, "Nadam changes its own m_schedule", lambda: _async_store(name="nadam").push(
        "a", mx.nd.ones(5)))
    group.barrier()


def _plain() -> Any:
    kv = mx.kv.create("dist_async")
    kv.init("w", mx.nd.zeros(1))
    return kv


@mx.optimizer.register
class KeepsANumber(mx.optimizer.Optimizer):
    def create_state(self, index: Any, weight: Any) -> float:
        return 0.5


def one_after_the_other(group: Group) -> None:
    """Ranks that take turns get the weights, states and counts of one process, with all optimizers for such stores."""
    grads = np.random.default_rng(2).standard_normal((6, 5)).astype("float32")
    schedule = {"lr_scheduler": ("factor", 2, 0.5)}
    for name, settings in (("sgd", {"momentum": 0.9, "wd": 0.1}), ("adam", {}), ("dcasgd", {"momentum": 0.5}),
                           ("lamb", {}), ("rmsprop", {"centered": True}), ("sgd", schedule)):
        both = []
        for kind in ("local", "dist_async"):
            own = {key: mx.lr_scheduler.FactorScheduler(*value[1:]) if key == "lr_scheduler" else value
                   for key, value in settings.items()}
            kv = mx.kv.create(kind)
            kv.init("a", mx.nd.ones(5))
            kv.set_optimizer(mx.optimizer.create(name, learning_rate=0.1, **own))
            for i, grad in enumerate(grads):
                if kind == "local" or i % group.size == group.rank:
                    kv.push("a", mx.nd.array(grad))
                if kind != "local":
                    kv.barrier()
            both.append((_pulled(kv), kv._states().optimizer._index_update_count["a"]))
        assert both[0][1] == both[1][1] == 6 and np.array_equal(both[0][0], both[1][0]), (name, both)
    kv = _async_store()
    _refuses(ArgumentError, "KeepsANumber keeps 0.5 of the weight 'a'", lambda: kv.set_optimizer(KeepsANumber()))
    kv.push("a", mx.nd.ones(5))  # by the optimizer that it has
    kv.barrier()
    assert _pulled(kv).tolist() == [-group.size] * 5
    kv.barrier()


def async_states(group: Group) -> None:
    """Any rank writes complete states, and reads them for all."""
    kv = _async_store(momentum=0.5)
    for _ in range(3):
        kv.push(["a", "b"], [mx.nd.ones(5)] * 2)
    kv.barrier()
    kept, path = _pulled(kv), Path(tempfile.gettempdir()) / f"states-{os.getppid()}-{group.rank}"
    if group.rank == 1:
        kv.save_optimizer_states(str(path), dump_optimizer=True)
    kv.barrier()
    kv.push("a", mx.nd.ones(5))
    kv.barrier()
    after = _async_store(mx.nd.array(kept), momentum=0.5)
    if group.rank == 1:
        after.load_optimizer_states(str(path))
        path.unlink()
    after.barrier()
    after.push("a", mx.nd.ones(5))
    after.barrier()
    assert np.array_equal(_pulled(after), _pulled(kv))
    assert after._states().optimizer._index_update_count == {"a": 8, "b": 6}
    group.barrier()


def async_learning(group: Group) -> None:
    """A quadratic function is minimized, and Module learns, although one rank has more batches than the other."""
    kv, out, goal = _async_store(learning_rate=0.1), mx.nd.zeros(5), mx.nd.arange(5)
    for _ in range(60 + 30 * group.rank):
        kv.pull("a", out=out)
        kv.push("a", out - goal)
    kv.barrier()
    assert np.allclose(_pulled(kv), np.arange(5), atol=1e-3)
    rows = np.concatenate([ROWS] * 4)[32 * group.rank:]
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="one")
    module, seen = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax")), mx.metric.create("acc")
    classes = (rows[:, 0] > 0).astype("float32")
    mx.random.seed(group.rank)
    module.fit(mx.io.NDArrayIter(rows, classes, 8), num_epoch=12, kvstore="dist_async", initializer=mx.init.Xavier(),
               optimizer_params={"learning_rate": 0.5, "momentum": 0.5})
    assert module._update_on_kvstore
    assert module.score(mx.io.NDArrayIter(ROWS, CLASSES, 8), seen)[0][1] > 0.9
    group.barrier()


# ------------------------------------------------------------------------------------------------- training

ROWS = np.random.default_rng(1).standard_normal((32, 6)).astype("float32")
CLASSES = (ROWS[:, 0] > 0).astype("float32")


def _trained(kvstore: Any, rows: slice, batch_size: int, seed: int = 0, **settings: Any) -> Any:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="one")
    net = mx.sym.FullyConnected(mx.sym.Activation(net, act_type="tanh"), num_hidden=2, name="two")
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    mx.random.seed(seed)
    module.fit(mx.io.NDArrayIter(ROWS[rows], CLASSES[rows], batch_size), num_epoch=3, kvstore=kvstore,
               initializer=mx.init.Xavier(), optimizer="sgd",
               optimizer_params={"learning_rate": 0.5, "momentum": 0.9, **settings})
    return module.get_params()[0]


def same_answer(group: Group) -> None:
    """A batch divided among the ranks gives the results of the whole batch on one rank."""
    everything = np.arange(32).reshape(4, group.size, -1)  # a batch of all ranks; each rank takes its rows
    own = everything[:, group.rank].reshape(-1)
    alone = _trained(None, slice(None), 8)
    for kind, settings in (("dist_sync", {}), ("dist_device_sync", {}), ("horovod", {"rescale_grad": 1 / 8})):
        for kvstore in (kind, mx.kv.create(kind)):
            together = _trained(kvstore, own, 8 // group.size, seed=group.rank * (kind != "horovod"), **settings)
            for name, value in alone.items():
                assert np.allclose(value.asnumpy(), together[name].asnumpy(), 1e-4, 1e-6), (kvstore, name)
            group.agree(f"the weights of {kvstore}", together["one_weight"].asnumpy().tobytes().hex())
    os.environ["MXNET_UPDATE_ON_KVSTORE"] = "0"
    apart = _trained("dist_sync", own, 8 // group.size, seed=group.rank)
    del os.environ["MXNET_UPDATE_ON_KVSTORE"]
    for name, value in alone.items():
        assert np.allclose(value.asnumpy(), apart[name].asnumpy(), 1e-4, 1e-6), name


def given_stores(group: Group) -> None:
    """A given store updates the weights if it can, on one context or two, and holds them; FeedForward's does, too."""
    def trained(store: Any, ranks: int, count: int = 1, feed_forward: bool = False) -> dict[str, Any]:
        data = mx.io.NDArrayIter(ROWS, CLASSES, 16 // ranks, num_parts=ranks, part_index=group.rank % ranks)
        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax")
        contexts = [mx.cpu(i) for i in range(count)]
        words: dict[str, Any] = {"optimizer": "sgd", "initializer": mx.init.One()}
        if feed_forward:
            model = mx.model.FeedForward(net, contexts, num_epoch=1, learning_rate=0.1, **words)
            model.fit(data, kvstore=store, progress=False)
            return dict(model.arg_params)
        module = mx.mod.Module(net, context=contexts)
        module.fit(data, num_epoch=1, kvstore=store, optimizer_params={"learning_rate": 0.1}, progress=False, **words)
        assert module._kvstore is store and module._update_on_kvstore
        kept = mx.nd.zeros((3, ROWS.shape[1]))
        store.pull("fc_weight", out=kept)
        if store.type != "dist_async":  # another rank may have moved the stored weights since
            assert np.array_equal(kept.asnumpy(), module.get_params()[0]["fc_weight"].asnumpy())
        return dict(module.get_params()[0])

    expected = trained(mx.kv.create("local"), 1)
    for kind in ("local", "device", "nccl"):
        for count in (1, 2):
            found = trained(mx.kv.create(kind), 1, count)
            assert np.allclose(found["fc_weight"].asnumpy(), expected["fc_weight"].asnumpy(), 1e-5), kind
    expected = trained(mx.kv.create("dist_sync"), group.size)
    for kind in ("dist_sync", "dist_device_sync"):
        for found in (trained(mx.kv.create(kind), group.size, 2), trained(kind, group.size, feed_forward=True),
                      trained(mx.kv.create(kind), group.size, feed_forward=True)):
            assert np.allclose(found["fc_weight"].asnumpy(), expected["fc_weight"].asnumpy(), 1e-5), kind
    trained(mx.kv.create("dist_async"), group.size)


def other_networks(group: Group) -> None:
    """Ranks with different networks get an error before the first step, whatever the names of nodes; other shapes of
    weights, too."""
    def begun(activation: str, hidden: int = 4, **names: str) -> None:
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=hidden, name="one")
        net = mx.sym.SoftmaxOutput(getattr(mx.sym, activation)(net, **names), name="softmax")
        module = mx.mod.Module(net)
        module.bind([("data", (2, 6))], [("softmax_label", (2,))])
        module.init_params()
        module.init_optimizer("dist_sync")

    begun("tanh", name=f"node{group.rank}")
    _refuses(RankError, "the network of rank", lambda: begun("relu" if group.rank else "tanh"))
    _refuses(RankError, "what kvstore.init begins", lambda: begun("relu", 4 + group.rank))


def executors(group: Group) -> None:
    """A program updates the weights of its executor by its own store."""
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    executor = mx.sym.sum(x * w).simple_bind(mx.cpu(), x=(3,), w=(3,))
    kv = mx.kv.create("dist_sync")
    kv.init("w", mx.nd.ones(3))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    kv.pull("w", out=executor.arg_dict["w"])
    executor.forward(is_train=True, x=np.full(3, group.rank + 1, "float32"))
    executor.backward(mx.nd.ones(1))
    kv.pushpull("w", executor.grad_dict["w"], out=executor.arg_dict["w"])
    assert executor.arg_dict["w"].asnumpy().tolist() == [1 - 0.5 * sum(range(1, group.size + 1))] * 3


# ------------------------------------------------------------------------------------------------- operators


def _gradient(function: Any, group: Group, *shape: int) -> None:
    """The gradient of a sum over all ranks agrees with differences of all ranks at once."""
    rng = np.random.default_rng(group.rank)
    start, weight = rng.standard_normal(shape), None
    x = mx.nd.array(start, dtype="float64")
    x.attach_grad()
    with mx.autograd.record():
        y = function(x)
        weight = mx.nd.array(rng.standard_normal(y.shape), dtype="float64")
        loss = mx.nd.sum(y * weight)
    loss.backward()
    found = group.all_gather(x.grad.asnumpy().reshape(1, -1))
    for rank in range(group.size):
        for i in range(start.size):
            ends = []
            for step in (1e-6, -1e-6):
                moved = start.copy().reshape(-1)
                moved[i] += step * (rank == group.rank)
                loss = (function(mx.nd.array(moved.reshape(shape), dtype="float64")) * weight).asnumpy().sum()
                ends.append(group.allreduce(np.array(loss)))
            assert abs(found[rank, i] - (ends[0] - ends[1]) / 2e-6) < 1e-6, (rank, i)


def operators(group: Group) -> None:
    nd, other = mx.nd, 1 - group.rank
    x = nd.array(_own(group, "float32", 2, 3))
    for op in ("sum", "max", "min", "prod"):
        expected = getattr(_all(group, "float32", 2, 3), op)(0)
        assert np.array_equal(nd.AllReduce(x, op=op).asnumpy(), expected), op
        bound = mx.sym.AllReduce(mx.sym.Variable("x"), op=op).eval(x=x)[0]
        assert np.array_equal(bound.asnumpy(), expected), op
    assert nd.AllGather(x).shape == (4, 3) and nd.ReduceScatter(x).shape == (1, 3)
    for function in (*(lambda x, op=op: nd.AllReduce(x, op=op) for op in ("sum", "avg", "max", "prod")),
                     nd.AllGather, nd.ReduceScatter, nd.AlltoAll, lambda x: nd.ReduceScatter(x, op="mean"),
                     lambda x: nd.Broadcast(x, root_rank=1)):
        _gradient(function, group, 2, 2)
    def passed_on(x: Any) -> Any:
        return nd.Send(x, dest_rank=1) if group.rank == 0 else nd.Receive(x, src_rank=0) * x
    came = passed_on(x)
    assert np.array_equal(came.asnumpy(), np.prod(_all(group, "float32", 2, 3), 0) if group.rank else x.asnumpy())
    assert other != group.rank


def between_two(group: Group) -> None:
    """The receiver of an array sends its gradient back."""
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.Send(x, dest_rank=1) * 10 if group.rank == 0 else mx.nd.Receive(x, src_rank=0) * 3
    y.backward()
    assert y.asnumpy().tolist() == ([10, 20] if group.rank == 0 else [3, 6])
    assert x.grad.asnumpy().tolist() == ([13, 13] if group.rank == 0 else [0, 0])


def symbols(group: Group) -> None:
    """A graph reduces in forward and backward, and every reduction runs exactly once."""
    x = mx.sym.Variable("x")
    y = mx.sym.AllReduce(x * 2) + mx.sym.AllReduce(x * 2)
    executor = y.simple_bind(mx.cpu(), x=(3,))
    assert executor.debug_str().count("AllReduce") >= 2
    out = executor.forward(is_train=True, x=np.full(3, group.rank + 1, "float32"))[0]
    executor.backward(mx.nd.full(3, group.rank + 1))
    assert out.asnumpy().tolist() == [12] * 3 and executor.grad_dict["x"].asnumpy().tolist() == [12] * 3


def mindspore_names(group: Group) -> None:
    from opreg import Tensor, communication, ops

    assert mx.context.ParallelMode is mx.ParallelMode
    assert mx.context.set_auto_parallel_context is mx.set_auto_parallel_context
    communication.init("nccl")
    assert (communication.get_rank(), communication.get_group_size()) == (group.rank, group.size)
    assert communication.get_local_rank() == group.rank and communication.get_local_rank_size() == group.size
    communication.create_group("both", [1, 0])
    assert communication.get_rank("both") == 1 - group.rank
    assert communication.get_world_rank_from_group_rank("both", 0) == 1
    assert communication.get_group_rank_from_world_rank(0, "both") == 1
    if group.rank:
        communication.create_group("one", [1])  # rank 0 does not call it
        assert communication.get_process_group_ranks("one") == [1]
    own = _own(group, "float32", 2, 4)
    everything = _all(group, "float32", 2, 4)
    assert np.array_equal(ops.AllReduce(ops.ReduceOp.MAX)(Tensor(own)).asnumpy(), everything.max(0))
    assert np.array_equal(ops.AllGather("both")(Tensor(own)).asnumpy(), np.concatenate(everything[::-1]))
    assert np.array_equal(ops.ReduceScatter()(Tensor(own)).asnumpy(), everything.sum(0)[[group.rank]])
    assert np.array_equal(ops.Broadcast(1)((Tensor(own),))[0].asnumpy(), everything[1])
    turned = ops.AlltoAll(2, 1, 0)(Tensor(own))
    assert np.array_equal(turned.asnumpy(), np.concatenate(np.split(everything, 2, 2)[group.rank]))
    if group.rank:
        assert ops.Receive(3, 0, [2], mx.float32)().asnumpy().tolist() == [5, 6]
    else:
        ops.Send(3, 1)(Tensor([5.0, 6.0]))
    ops.Barrier()()
    communication.destroy_group("both")
    _refuses(ArgumentError, "no group 'both'", lambda: communication.get_rank("both"))
    assert mx.jit(ops.AllReduce())(Tensor(own)).asnumpy().tolist() == everything.sum(0).tolist()


def cells(group: Group) -> None:
    """A step on a part of the batch on each rank equals one on the whole, in Python and compiled."""
    from opreg import Tensor, nn, set_context

    def trained(rows: slice, seed: int) -> np.ndarray:
        net = nn.Dense(6, 2, bias_init="zeros")
        net.weight.set_data(Tensor(np.random.default_rng(seed).standard_normal((2, 6)).astype("float32")))
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean")),
                                   nn.Momentum(net.trainable_params(), 0.1, 0.9))
        step.set_train()
        for _ in range(3):
            step(Tensor(ROWS[rows]), Tensor(CLASSES[rows].astype("int32")))
        return net.weight.asnumpy()

    alone = trained(slice(None), 0)
    half = slice(16 * group.rank, 16 * group.rank + 16)
    mx.set_auto_parallel_context(parallel_mode=mx.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                 parameter_broadcast=True)
    try:
        assert np.allclose(trained(half, group.rank), alone, 1e-4, 1e-6)
        set_context(mode=mx.GRAPH_MODE)
        assert np.allclose(trained(half, group.rank), alone, 1e-4, 1e-6)
    finally:
        set_context(mode=mx.PYNATIVE_MODE)
        mx.reset_auto_parallel_context()
    _refuses(ArgumentError, "not divided among "
                            "devices", lambda: mx.set_auto_parallel_context(parallel_mode="auto_parallel"))
    _refuses(ArgumentError, "has set it to 2", lambda: mx.set_auto_parallel_context(device_num=3))


def cells_in_the_plan(group: Group) -> None:
    """A compiled step starts reductions of buckets during backward, in the memory of the gradients."""
    from opreg import Tensor, nn

    def trained(compiled: bool) -> tuple[list[np.ndarray], Any]:
        layers = [nn.Dense(*sizes, weight_init=init, bias_init="zeros")
                  for *sizes, init in ((4, 1100, 0.1), (1100, 1100, 1e-3), (1100, 2, 1e-2))]
        net = nn.SequentialCell(*layers)
        layers[0].bias.requires_grad = False
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 1e-3, 0.9),
                                   return_grad=True)
        function = mx.jit(step) if compiled else step
        for _ in range(2):
            _, grads = function(Tensor(ROWS[:8, :4] + group.rank), Tensor(ROWS[:8, :2]))
        return [each.asnumpy() for each in (*net.get_parameters(), *grads.values())], function

    mx.set_auto_parallel_context(parallel_mode=mx.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    try:
        (found, function), (expected, _) = trained(True), trained(False)
    finally:
        mx.reset_auto_parallel_context()
    for one, other in zip(found, expected):
        assert np.allclose(one, other, 1e-4, 1e-6)
        assert len(set(group.exchange(one.tobytes()))) == 1
    lines = [line.split(maxsplit=1)[1] for line in str(function.explain()).splitlines()[1:]]
    places = {word: [i for i, line in enumerate(lines) if line.startswith(word)]
              for word in ("_allreduce_start", "_allreduce_wait", "_backward_FullyConnected_weight", "AllReduce")}
    first, second = places["_allreduce_start"]
    *_, last = places["_backward_FullyConnected_weight"]
    assert first < last < second < places["_allreduce_wait"][0] and len(places["_allreduce_wait"]) == 2
    assert not places["AllReduce"] and "1.weight" in lines[first] and "0.weight" in lines[second]
    assert lines[last].endswith("bound array")


def reduced_gradients(group: Group) -> None:
    """``DistributedGradReducer`` sums or averages gradients, in Python and compiled; a ``layerwise_parallel`` one stays
    as it is."""
    from opreg import Parameter, Tensor, nn

    kept, *others = [Parameter(Tensor(np.zeros(shape, dtype)), name=name) for name, shape, dtype in (
        ("kept", 1, "float32"), ("half", (2, 3), "float16"), ("double", 2, "float64"), ("summed", (), "float32"),
        ("empty", 0, "float32"))]
    kept.layerwise_parallel = True
    grads = tuple([Tensor(np.full(each.shape, group.rank + 1, each.asnumpy().dtype)) for each in (kept, *others)])
    for words, expected in (({}, 3), ({"mean": True}, 1.5), ({"mean": True, "degree": 6}, 0.5)):
        reducer = nn.DistributedGradReducer([kept, *others], **words)
        for function in (reducer, mx.jit(lambda *grads, reducer=reducer: reducer([g * 1 for g in grads]))):
            results = function(grads) if function is reducer else function(*grads)
            assert [each.dtype for each in results] == [each.dtype for each in grads]
            assert [each.shape for each in results] == [each.shape for each in grads]
            assert float(results[0]) == group.rank + 1
            for each in results[1:]:
                assert np.allclose(each.asnumpy(), expected, 1e-3), (words, each)
    x = Tensor([1.0, 2.0])
    reducer = nn.DistributedGradReducer([others[0]])
    assert mx.grad(lambda x: reducer((x * x,))[0].sum())(x).asnumpy().tolist() == [4, 8]
    _refuses(ArgumentError, "expected 1 gradients, one for each parameter, got 2", lambda: reducer(grads[:2]))
    other = nn.DistributedGradReducer([Parameter(Tensor([0.0]), name=f"of rank {group.rank}")])
    _refuses(RankError, "of rank", lambda: mx.jit(lambda x: other((x * 2,)))(Tensor([1.0])))


def statistics_of_all(group: Group) -> None:
    """SyncBatchNorm on parts of a batch equals BatchNorm on the whole batch, gradients included."""
    x, g = (np.random.default_rng(seed).standard_normal((8, 3, 2)) * 2 + 5 for seed in (0, 1))
    rows, results = slice(4 * group.rank, 4 * group.rank + 4), []
    for op, own, words in ((mx.nd.BatchNorm, slice(None), {}),
                           (mx.nd.contrib.SyncBatchNorm, rows, {"ndev": group.size, "key": "a"})):
        arrays = [mx.nd.array(each, dtype="float64") for each in (x[own], np.ones(3) * 2, np.zeros(3))]
        states = [mx.nd.zeros(3, dtype="float64"), mx.nd.ones(3, dtype="float64")]
        for array in arrays:
            array.attach_grad()
        with mx.autograd.record():
            y = op(*arrays, *states, fix_gamma=False, **words)
        y.backward(mx.nd.array(g[own], dtype="float64"))
        results.append([y, arrays[0].grad, *states, *(array.grad for array in arrays[1:])])
    whole, part = ([each.asnumpy() for each in result] for result in results)
    for i in (0, 1):
        assert np.allclose(whole[i][rows], part[i], 1e-9, 1e-9), i
    for i in (2, 3):
        assert np.allclose(whole[i], part[i], 1e-9), i
    for i in (4, 5):
        assert np.allclose(whole[i], group.allreduce(part[i]), 1e-9), i
    layer = mx.nn.SyncBatchNorm(3)
    layer.set_train()
    out = layer(mx.Tensor(x[rows, :, :1, None].astype("float32"))).asnumpy()
    assert abs(group.allreduce(out.mean(axis=(0, 2, 3)), "mean")).max() < 1e-5


# ------------------------------------------------------------------------------------------------- devices


class _StandInForNccl:
    """CuPy's interface of NCCL, between stand-ins for GPUs: memory by its address, on the stream that is given.

    The stand-in for a GPU refuses work on memory that another stream may still be writing or reading.
    """

    available = True
    NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = range(4)
    NAMES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")

    def __init__(self, group: Group):
        for number, name in enumerate(self.NAMES):
            setattr(self, f"NCCL_{name.upper()}", number)
        self.group, self.calls, self.NcclCommunicator = group, [], self._communicator
        self.queued: list[Any] | None = None

    def get_unique_id(self) -> tuple[int, ...]:
        return tuple(range(128))

    def _communicator(self, ndev: int, identity: tuple[int, ...], rank: int) -> _StandInForNccl:
        assert (ndev, rank, identity) == (self.group.size, self.group.rank, self.get_unique_id())
        return self

    def _run(self, stream: int, read: Any, written: Any, function: Any) -> None:
        from tests.cuda.machine import MACHINE

        self.calls.append(stream)
        (own,) = [each for each in MACHINE.streams if each.ptr == stream]
        memory = [None if each is None else MACHINE.memory_at(each[0])[:each[1] * np.dtype(each[2]).itemsize]
                  for each in (read, written)]

        def work(*memory: Any) -> None:
            function(*[None if each is None else each.view(use[2]) for each, use in zip(memory, (read, written))])

        with own:
            MACHINE.run("nccl", work, tuple(memory), {})

    def allReduce(self, source: int, target: int, count: int, kind: int, op: int, stream: int) -> None:
        name, word = self.NAMES[kind], ("sum", "prod", "max", "min")[op]
        self._run(stream, (source, count, name), (target, count, name),
                  lambda source, target: target.__setitem__(..., self.group.allreduce(source, word)))

    def reduceScatter(self, source: int, target: int, count: int, kind: int, op: int, stream: int) -> None:
        name, word = self.NAMES[kind], ("sum", "prod", "max", "min")[op]
        self._run(stream, (source, count * self.group.size, name), (target, count, name),
                  lambda source, target: target.__setitem__(..., self.group.reduce_scatter(source, word)))

    def allGather(self, source: int, target: int, count: int, kind: int, stream: int) -> None:
        self._run(stream, (source, count, "uint8"), (target, count * self.group.size, "uint8"),
                  lambda source, target: target.__setitem__(..., self.group.all_gather(source)))

    def broadcast(self, source: int, target: int, count: int, kind: int, root: int, stream: int) -> None:
        self._run(stream, (source, count, "uint8"), (target, count, "uint8"),
                  lambda source, target: target.__setitem__(..., self.group.broadcast(source, root)))

    def send(self, source: int, count: int, kind: int, peer: int, stream: int) -> None:
        def call() -> Any:
            self._run(stream, (source, count, "uint8"), None, lambda source, _: requests.append(
                self.group.isend(source.copy(), peer)))
        requests = [] if self.queued is None else self.queued
        call()
        if self.queued is None:
            requests[0].wait()

    def recv(self, target: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._run(stream, None, (target, count, "uint8"), lambda _, target: target.__setitem__(
            ..., self.group.recv(target.copy(), peer)))

    def groupStart(self) -> None:
        self.queued = []

    def groupEnd(self) -> None:
        for request in self.queued or ():
            request.wait()
        self.queued = None


def devices(group: Group) -> None:
    """Arrays of stand-ins for GPUs are sent over the host, or over NCCL if it is available."""
    from opreg.core.array_module import backend
    from tests.cuda.machine import Stream
    from tests.cuda.strict import xp

    device = backend("strict")
    beside, through_host = group.split(0), group.split(0)

    def ask(between: Group) -> None:
        for dtype in (np.float32, np.int64):
            own, everything = _own(group, dtype, 2, 4), _all(group, dtype, 2, 4)
            x = device.asarray(own)
            assert np.array_equal(between.allreduce(x).get(), everything.sum(0))
            assert np.array_equal(between.allreduce(x, "max").get(), everything.max(0))
            assert np.array_equal(between.reduce_scatter(x).get(), everything.sum(0)[[group.rank]])
            assert np.array_equal(between.all_gather(x).get(), everything.reshape(-1, 4))
            assert np.array_equal(between.broadcast(x, 1).get(), everything[1])
            assert np.array_equal(between.alltoall(x).get(), everything[:, group.rank])
            apart = device.asarray(np.zeros((2, 8), dtype))[:, ::2] if between.engine == "nccl" else x
            assert np.array_equal(between.allreduce(x, out=apart).get(), everything.sum(0))
        y = device.asarray(_own(group, np.float32, 3))
        assert between.allreduce(y, "mean", out=y) is y
        assert np.array_equal(y.get(), _all(group, np.float32, 3).mean(0))
        for _ in range(70):  # more than may run at the same time
            y = between.allreduce(y, "mean")
        if group.rank:
            assert between.recv(device.asarray(np.zeros(3)), 0).get().tolist() == [7, 8, 9]
        else:
            between.send(device.asarray(np.array([7.0, 8.0, 9.0])), 1)

    ask(through_host)
    assert through_host.engine == "mpi"
    nccl = xp.cuda.nccl = _StandInForNccl(beside)
    xp.cuda.Stream = Stream
    over_nccl = group.split(0)
    ask(over_nccl)
    assert over_nccl.engine == "nccl" and len(nccl.calls) > 80
    assert len(set(nccl.calls)) == 1 and nccl.calls[0] != 0  # a stream of its own
