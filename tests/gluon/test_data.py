"""Datasets, samplers and loaders of Gluon."""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.data import shared_memory
from opreg.data.workers import Processes
from opreg.gluon import data
from opreg.gluon.data import dataloader
from opreg.gluon.data.held_state import HeldState

ROOT = Path(__file__).parent.parent.parent

forked = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked")


@pytest.fixture
def processes() -> Callable[[], set[Any]]:
    """Processes that were started during the test; those of other tests may end when garbage is collected."""
    before = set(multiprocessing.active_children())
    return lambda: set(multiprocessing.active_children()) - before


class Numbers(data.Dataset):
    """A dataset that calls a function of the number."""

    def __init__(self, count: int, sample: Any = lambda number: number):
        self.count, self.sample_of = count, sample

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, idx: int) -> Any:
        return self.sample_of(idx)


def _lists(loader: Any) -> list[Any]:
    return [batch.asnumpy().tolist() for batch in loader]


# Samplers and datasets.

@pytest.mark.parametrize(("last_batch", "length", "rounds"), [
    ("keep", [4, 4], [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]] * 2),
    ("discard", [3, 3], [[[0, 1, 2], [3, 4, 5], [6, 7, 8]]] * 2),
    ("rollover", [3, 3], [[[0, 1, 2], [3, 4, 5], [6, 7, 8]], [[9, 0, 1], [2, 3, 4], [5, 6, 7]]]),
])
def test_a_batch_sampler_keeps_discards_or_rolls_over_the_last_batch(last_batch: str, length: list[int],
                                                                     rounds: list[Any]) -> None:
    sampler = data.BatchSampler(data.SequentialSampler(10), 3, last_batch)
    for expected, found in zip(rounds, length, strict=True):
        assert len(sampler) == found
        assert list(sampler) == expected


def test_a_third_round_has_the_remaining_samples() -> None:
    sampler = data.BatchSampler(data.SequentialSampler(10), 3, "rollover")
    assert [len(list(sampler)) for _ in range(3)] == [3, 3, 4]
    assert len(sampler) == 3


def test_errors_for_users_samplers_name_the_missing_method() -> None:
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(data.Sampler())
    with pytest.raises(NotImplementedError, match="__len__"):
        len(data.Sampler())
    with pytest.raises(mx.errors.ArgumentError, match="Did you mean 'rollover'"):
        data.BatchSampler(data.SequentialSampler(3), 2, "roll-over")


def test_np_random_seed_decides_the_order() -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.arange(20)
    np.random.shuffle(expected)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    assert list(data.RandomSampler(20)) == expected.tolist()


def test_shards_are_all_samples_once() -> None:
    shards = [Numbers(10).shard(4, index) for index in range(4)]
    assert [list(shard) for shard in shards] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
    for index, words in ((4, "from 0 on that is less than the number of parts"), (-1, "index=-1: expected an int"),
                         ("a", "shard: index='a': expected an int of at")):
        with pytest.raises(mx.errors.ArgumentError, match=words):
            Numbers(10).shard(4, index)


def test_datasets_are_taken_filtered_sharded_and_sampled() -> None:
    numbers = Numbers(6)
    assert list(numbers.take(2)) == [0, 1]
    assert list(numbers.take(None)) == list(numbers.take(99)) == list(range(6))
    assert list(numbers.sample(data.SequentialSampler(2, 3))) == [3, 4]
    assert list(numbers.transform(lambda x: (x, -x)).filter(lambda pair: pair[0] > 3)) == [(4, -4), (5, -5)]
    assert list(numbers.transform(lambda x: (x, -x)).transform_first(lambda x: x * x))[2] == (4, -2)
    with pytest.raises(mx.errors.ArgumentError, match="Sampler"):
        numbers.sample([1, 2])  # type: ignore[arg-type]


def test_transforms_are_lazy_or_eager() -> None:
    calls: list[int] = []
    eager = Numbers(3).transform(calls.append, lazy=False)
    assert calls == [0, 1, 2] and len(eager) == 3
    lazy = Numbers(3).transform(calls.append)
    assert len(calls) == 3
    lazy[1]
    assert calls[3:] == [1]


def test_arrays_of_one_length_are_zipped() -> None:
    pairs = data.ArrayDataset(mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([5, 6], dtype="int32"))
    x, y = pairs[1]
    assert x.asnumpy().tolist() == [3, 4]
    assert isinstance(y, np.int32) and y == 6
    assert data.ArrayDataset([7, 8])[0] == 7
    with pytest.raises(mx.errors.ShapeError, match="array 0 has 2 samples, array 1 has 3"):
        data.ArrayDataset([1, 2], [1, 2, 3])


# Batches.

def test_every_kind_of_sample_is_batched() -> None:
    batchify = dataloader.default_batchify_fn
    stacked = batchify([mx.nd.array([1, 2], dtype="uint8"), mx.nd.array([3, 4], dtype="uint8")])
    assert stacked.dtype == np.uint8 and stacked.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert batchify([1.5, 2]).dtype == np.float64
    nested = batchify([((1, 2), [3, 4]), ((5, 6), [7, 8])])
    assert [part.asnumpy().tolist() for part in nested[0]] == [[1, 5], [2, 6]]
    assert nested[1].asnumpy().tolist() == [[3, 4], [7, 8]]
    with pytest.raises(mx.errors.ShapeError):
        batchify([mx.nd.zeros(2), mx.nd.zeros(3)])


def test_a_batch_made_while_recording_has_gradients() -> None:
    x = mx.nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.autograd.record():
        (batch,) = data.DataLoader(x, 2)
        (batch * batch).backward()
    assert x.grad.asnumpy().tolist() == [[2, 4], [6, 8]]


@pytest.mark.parametrize(("arguments", "words"), [
    ({}, "give batch_size"),
    ({"batch_size": 2, "shuffle": True, "sampler": data.SequentialSampler(2)}, "leave out shuffle"),
    ({"batch_size": 2, "batch_sampler": [[0]]}, "leave out batch_size"),
    ({"last_batch": "keep", "batch_sampler": [[0]]}, "leave out batch_size"),
    ({"batch_size": 2, "timeout": 0}, "timeout=0"),
    ({"batch_size": 0}, "batch_size=0"),
])
def test_contradictory_arguments_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        data.DataLoader([1, 2], **arguments)


# Workers.

WAYS = [pytest.param({"num_workers": 2}, marks=forked, id="processes"),
        pytest.param({"num_workers": 2, "thread_pool": True}, id="threads"), pytest.param({}, id="none")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("last_batch", ["keep", "discard", "rollover"])
def test_threads_and_processes_give_the_same_batches(way: Any, last_batch: str) -> None:
    pixels = np.random.default_rng(0).random((23, 40, 40)).astype("float32")
    pairs = data.ArrayDataset(mx.nd.array(pixels), mx.nd.arange(23, dtype="int64"))
    loader = data.DataLoader(pairs, 4, last_batch=last_batch, **way)
    sampler = data.BatchSampler(data.SequentialSampler(23), 4, last_batch)
    for _ in range(3):
        assert len(loader) == len(sampler)
        for (x, y), numbers in itertools.zip_longest(loader, sampler):
            assert x.dtype == np.float32 and y.dtype == np.int64
            assert y.asnumpy().tolist() == numbers
            assert (x.asnumpy() == pixels[numbers]).all()


@forked
def test_held_batches_keep_their_values() -> None:
    """Shared memory of batches is used again only when no array, or view of one, refers to it."""
    loader = data.DataLoader(Numbers(40, lambda number: mx.nd.full((64, 64), number)), 2, num_workers=2)
    held, views = list(loader), []
    for number, batch in enumerate(loader):
        views.append(batch.asnumpy()[1:, 3] if number % 2 else batch[0])
    for _ in loader:
        pass
    for number, batch in enumerate(held):
        assert (batch.asnumpy() == np.array([2 * number, 2 * number + 1])[:, None, None]).all()
    for number, view in enumerate(views):
        assert (view.asnumpy() == 2 * number).all() if number % 2 == 0 else (view == 2 * number + 1).all()


@forked
def test_workers_reuse_shared_memory() -> None:
    loader = data.DataLoader(Numbers(400, lambda number: mx.nd.full((64, 64), number)), 2, num_workers=2)
    for _ in loader:
        pass
    pieces = [len(worker.lent._pieces) for worker in loader._workers._workers]  # type: ignore[union-attr]
    assert max(pieces) < 12, "each of 200 batches has a piece of its own"


@forked
def test_shared_memory_of_many_sizes_is_freed() -> None:
    loader = data.DataLoader(Numbers(150, lambda number: np.zeros(1024 << number % 15, np.uint8)), 1, num_workers=1)
    for batch in loader:
        assert not batch.asnumpy().any()
    (worker,) = loader._workers._workers  # type: ignore[union-attr]
    assert len(worker.lent._pieces) < 20


def test_a_workers_memory_lives_while_an_array_uses_it() -> None:
    """A later batch does not overwrite an array that a worker keeps, for example in a cache of batches."""
    made, lent = shared_memory.WorkerMemory(), shared_memory.LoaderMemory()
    kept = made.empty((2048,), np.dtype("int32"))
    kept[:] = 7
    for count in range(3):
        message, new, _ = made.pack([kept, kept])
        for number, size, descriptor in new:
            lent.learn(number, descriptor, size)
        received = lent.unpack(message)
        assert all((each == 7).all() for each in received)
        del received
        made.take_back(lent.given_back())
        other = made.empty((2048,), np.dtype("int32"))
        other[:] = count
        assert (kept == 7).all()


@forked
def test_a_users_batchify_function_makes_the_batches() -> None:
    samples = Numbers(4, lambda number: {"x": np.full((50, 50), number, "float32"), "name": f"n{number}"})
    first, second = data.DataLoader(samples, 2, num_workers=1, batchify_fn=lambda samples: {
        "x": mx.nd.array(np.stack([sample["x"] for sample in samples])).transpose((0, 2, 1)),
        "raw": samples[0]["x"].T, "names": [sample["name"] for sample in samples]})
    assert first["names"] == ["n0", "n1"] and second["x"].asnumpy()[1, 0, 0] == 3
    assert isinstance(first["x"], mx.nd.NDArray) and type(second["raw"]) is np.ndarray and (second["raw"] == 2).all()


@forked
def test_random_values_depend_on_seeds_alone() -> None:
    def drawn(seed: int, workers: int) -> list[Any]:
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        samples = Numbers(12, lambda number: (np.random.random(), random.random(),  # noqa: NPY002
                                              float(mx.nd.random.uniform().asscalar())))
        return [[part.asnumpy().tolist() for part in batch]
                for batch in data.DataLoader(samples, 2, num_workers=workers)]

    first = drawn(1, 2)
    assert first == drawn(1, 3)
    assert first != drawn(2, 2)
    numbers = [number for batch in first for part in batch for number in part]
    assert len(set(numbers)) == len(numbers), "processes draw the same"


@pytest.mark.parametrize("way", WAYS)
def test_exceptions_of_samples_keep_their_type(way: Any) -> None:
    def sample(number: int) -> int:
        if number == 5:
            raise KeyError("five")
        return number

    loader = iter(data.DataLoader(Numbers(10, sample), 2, **way))
    assert [next(loader).asnumpy().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="five") as caught:
        next(loader)
    if way == {"num_workers": 2}:
        assert "[4, 5]" in caught.value.__notes__[0] and "in sample" in caught.value.__notes__[0]


class Own(Exception):
    """An error class that cannot be pickled."""

    def __init__(self, one: int, two: int):
        super().__init__(f"{one} and {two}")
        self.lock = threading.Lock()


@forked
def test_an_error_that_cannot_be_pickled_is_reported() -> None:
    def sample(number: int) -> int:
        raise Own(1, 2)

    with pytest.raises(mx.errors.OpError, match=r"Own: 1 and 2"):
        list(data.DataLoader(Numbers(4, sample), 2, num_workers=1))


@forked
def test_processes_end_where_an_error_has_left_the_loader(processes: Callable[[], set[Any]]) -> None:
    def sample(number: int) -> int:
        raise ValueError("no such sample")

    collects = gc.isenabled()
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            list(data.DataLoader(Numbers(4, sample), 2, num_workers=1))
        assert not processes()
    finally:
        if collects:
            gc.enable()


@forked
def test_a_worker_that_dies_is_named(processes: Callable[[], set[Any]]) -> None:
    def sample(number: int) -> int:
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    samples = Numbers(10, sample)
    loader = data.DataLoader(samples, 2, num_workers=2)
    with pytest.raises(mx.errors.OpError, match=r"worker \d \(process \d+\) was killed by SIGKILL, making the batch of "
                                                r"samples \[4, 5\]"):
        list(loader)
    assert not processes()


@forked
def test_batches_that_a_worker_made_before_it_died_are_taken() -> None:
    def sample(number: int) -> int:
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    workers = Processes(1, Numbers(10, sample), list)
    numbers = [workers.order(samples) for samples in ([0, 1], [4, 5])]
    workers._workers[0].process.join()
    numbers.append(workers.order([8, 9]))  # the result is not read
    assert workers.take(numbers[0], 60) == [0, 1]
    with pytest.raises(mx.errors.OpError, match=r"was killed by SIGKILL, making the batch of samples \[4, 5\]"):
        workers.take(numbers[1], 60)


@forked
def test_processes_end_with_their_loader(processes: Callable[[], set[Any]]) -> None:
    loader = data.DataLoader(Numbers(10), 2, num_workers=2)
    batches = iter(loader)
    next(batches)
    assert len(processes()) == 2
    del loader, batches
    assert not processes()


@forked
@pytest.mark.parametrize("way", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupt_leaves_no_processes_or_memory(way: str, tmp_path: Path) -> None:
    """Worker processes hold the pipe that is read here, so its end shows that they are gone."""
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import signal, opreg as mx
        from opreg.gluon.data import DataLoader
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
        loader = DataLoader(mx.nd.zeros((100, 64, 64)), 2, num_workers=2)
        while True:
            for batch in loader:
                print("batch", flush=True)
    """))
    process = subprocess.Popen([sys.executable, tmp_path / "program.py"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=ROOT, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "batch\n"
    if way == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    else:
        process.send_signal(signal.Signals[way])
    _, errors = process.communicate()  # waits until no process can write to it any more
    assert process.returncode != 0
    assert ("KeyboardInterrupt" in errors) == (way == "SIGINT")
    assert "resource_tracker" not in errors and "BrokenPipe" not in errors


class Product(data.Dataset):
    """Numbers, each the product of values of several kinds."""

    rate = 1.0

    def __init__(self) -> None:
        self.factor, self.listed, self.table = 1.0, [1.0, 1.0, 1.0], {"a": [1.0]}
        self.array, self.tensor = np.ones(3), mx.nd.ones((3,))
        self.function = lambda value: value * self.table["a"][0]

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> np.float32:
        value = self.factor * self.listed[number] * self.array[number] * self.rate
        return np.float32(self.function(value) * float(self.tensor[number].asscalar()))


#: Changes of a dataset: ``V`` is a value, ``N`` the number of a sample.
DATASET_CHANGES = (
    "d.factor = V", "d.listed[N] = V", "d.listed = [V] * 3", "d.table['a'][0] = V", "d.array[N] = V", "d.array[:] = V",
    "d.tensor[N] = V", "d.tensor *= V", "kind.rate = V", "d.function = lambda value: value + V",
    "kind.__getitem__ = lambda self, number: np.float32(number + V)", "scale[0] = V", "list(loader)",
    "next(iter(loader))")


@forked
@pytest.mark.parametrize("seed", range(2))
def test_processes_make_samples_of_the_dataset_as_it_is_when_a_round_begins(seed: int) -> None:
    chooses, scale = random.Random(seed), [1.0]
    kind = type("Changing", (Product,), {})
    dataset = kind()
    transforms: list[Any] = [dataset.transform, dataset.transform_first]
    loader = data.DataLoader(transforms[seed % 2](lambda value: value * scale[0]), 2, num_workers=1)
    names = {"d": dataset, "kind": kind, "scale": scale, "loader": loader, "np": np}
    for _ in range(6):
        change = chooses.choice(DATASET_CHANGES)
        for word, value in (("V", repr(chooses.choice([0.5, 2.0, 4.0]))), ("N", str(chooses.randrange(3)))):
            change = re.sub(rf"\b{word}\b", value, change)
        exec(change, names)
        found = np.concatenate([batch.asnumpy() for batch in loader])
        expected = np.array([dataset[number] * np.float32(scale[0]) for number in range(3)])
        np.testing.assert_array_equal(found, expected, err_msg=change)


LARGE = np.zeros((5, 1 << 20), np.float32)  # 20 MB


@pytest.mark.parametrize("array", [LARGE, LARGE[:, ::-1], LARGE.T[1:], np.zeros(3, [("x", "i1"), ("y", "f8")])["y"]],
                         ids=["whole", "backwards", "turned", "field"])
def test_a_change_of_any_element_of_an_array_is_a_change_of_the_dataset(array: np.ndarray) -> None:
    before = HeldState(array)
    for place in ((0,) * array.ndim, (2,) + (-2,) * (array.ndim - 1), (-1,) * array.ndim):
        array[place] = 1
        assert before != HeldState(array)
        array[place] = 0
        assert before == HeldState(array)


@pytest.mark.parametrize("wrapped", ["transform_first", "transform", "take", "sampler"])
def test_a_change_of_a_function_of_the_program_is_a_change_of_the_dataset(wrapped: str) -> None:
    factor = 1.0
    numbers = data.SimpleDataset([1.0, 2.0])
    scaled: Any = getattr(numbers, "transform" if wrapped in ("take", "sampler") else wrapped)(lambda x: x * factor)
    whole = scaled.take(1) if wrapped == "take" else scaled.sample(data.SequentialSampler(2)) \
        if wrapped == "sampler" else scaled
    before = HeldState(whole)
    assert before == HeldState(whole)
    factor = 2.0
    assert whole[0] == 2.0
    assert before != HeldState(whole)


@forked
def test_processes_stay_while_the_dataset_stays(processes: Callable[[], set[Any]]) -> None:
    loader = data.DataLoader(Numbers(4), 2, num_workers=1)
    list(loader)
    first = processes()
    list(loader)
    assert processes() == first


@forked
def test_a_loader_is_iterated_twice_at_the_same_time() -> None:
    loader = data.DataLoader(Numbers(9), 2, num_workers=2)
    pairs = [(a.asnumpy().tolist(), b.asnumpy().tolist()) for a, b in zip(loader, loader, strict=True)]
    assert all(a == b for a, b in pairs) and len(pairs) == 5
    for _ in range(3):  # rounds that end early
        assert next(iter(loader)).asnumpy().tolist() == [0, 1]
    assert _lists(loader)[-1] == [8]
    assert not loader._workers._made  # type: ignore[union-attr]


@forked
def test_a_batch_that_takes_too_long_is_an_error() -> None:
    gate = multiprocessing.get_context("fork").Event()
    samples = Numbers(2, lambda number: gate.wait())
    loader = data.DataLoader(samples, 1, num_workers=1, timeout=0.01)
    with pytest.raises(multiprocessing.TimeoutError, match=r"within 0\.01 seconds"):
        list(loader)
    gate.set()


@pytest.mark.parametrize("way", WAYS[:2])
def test_batches_are_begun_in_advance(way: Any) -> None:
    loader = data.DataLoader(Numbers(8), 2, auto_reload=True, prefetch=3, **way)
    assert len(loader._ready._ordered) == 3  # type: ignore[union-attr]
    assert len(_lists(loader)) == 4
    assert loader._ready is not None
    loader.clean()
    assert loader._ready is None
    assert len(_lists(loader)) == 4


def test_batches_may_be_pinned() -> None:
    x, y = next(iter(data.DataLoader([(mx.nd.zeros(2), 1)], 1, pin_memory=True)))
    assert x.context == y.context == mx.cpu_pinned(0)


@forked
def test_workers_compute_where_the_program_has_computed() -> None:
    """A forked worker does not have the threads of the program, and starts its own."""
    x, weight = mx.nd.ones((4, 8, 64, 64)), mx.nd.ones((8, 8, 3, 3))

    def sample(number: int) -> Any:
        y = mx.nd.Convolution(x, weight, kernel=(3, 3), num_filter=8, no_bias=True)
        return mx.nd.dot(y.reshape((-1, 62)), y.reshape((-1, 62)).T).sum() * 0 + mx.nd.exp(y * 0).sum()

    expected = sample(0).asnumpy()
    for batch in data.DataLoader(Numbers(4, sample), 1, num_workers=2):
        assert (batch.asnumpy() == expected).all()


@pytest.mark.parametrize("way", WAYS)
def test_records_are_a_dataset(way: Any, tmp_path: Path) -> None:
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w") as file:
        for number in range(50):
            file.write_idx(number, b"%03d" % number)
    records = data.RecordFileDataset(str(tmp_path / "a.rec"))
    loader = data.DataLoader(records.transform(int), 3, **way)
    assert [number for batch in _lists(loader) for number in batch] == list(range(50))
