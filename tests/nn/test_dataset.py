"""``opreg.dataset``: results equal those of MindSpore 2.10, and errors."""

from __future__ import annotations

import gc
import gzip
import io
import multiprocessing
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opreg.dataset import transforms, vision

import opreg as ms
from opreg import dataset as ds
from opreg.errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from tests.questions import of_each


@pytest.fixture(autouse=True)
def _no_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ds.config, "_chosen", dict(ds.config._chosen))


def rows(dataset: ds.Dataset) -> list[list[Any]]:
    return [[each.asnumpy().tolist() for each in row] for row in dataset]


def two() -> ds.Dataset:
    return ds.NumpySlicesDataset({"a": np.arange(4), "b": np.arange(4) * 2.0}, shuffle=False)


def one(*numbers: Any, **given: Any) -> ds.Dataset:
    return ds.NumpySlicesDataset(list(numbers), **given)


class Source:
    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        return np.arange(2, dtype=np.float32) + 2 * i, i % 2

    def __len__(self) -> int:
        return 3


def words() -> ds.Dataset:
    lengths = (1, 4, 2, 7, 3)
    return ds.GeneratorDataset(lambda: ((np.full(n, i), n) for i, n in enumerate(lengths)), ["x", "n"])


def source() -> ds.Dataset:
    return ds.GeneratorDataset(Source(), ["x", "y"], shuffle=False)


@of_each([
    (source, [[[0, 1], 0], [[2, 3], 1], [[4, 5], 0]]),
    (lambda: source().batch(2), [[[[0, 1], [2, 3]], [0, 1]], [[[4, 5]], [0]]]),
    (lambda: source().batch(2, drop_remainder=True), [[[[0, 1], [2, 3]], [0, 1]]]),
    (lambda: source().batch(2).take(1).repeat(2), [[[[0, 1], [2, 3]], [0, 1]]] * 2),
    (lambda: ds.GeneratorDataset(lambda: iter([(1, 2.5), (3, 4.5)]), ["x", "y"]), [[1, 2.5], [3, 4.5]]),
    (lambda: ds.GeneratorDataset(lambda: iter([1, 3]), "x"), [[1], [3]]),
    (lambda: ds.GeneratorDataset([5, 6, 7], ["x"], num_samples=2, shuffle=False), [[5], [6]]),
    (lambda: ds.NumpySlicesDataset(([1, 2], [3, 4.0]), shuffle=False), [[1, 3], [2, 4.0]]),
    (lambda: one(5, 6, 7, 8, sampler=ds.SubsetSampler([2, 0])), [[7], [5]]),
    (lambda: one(5, 6, 7, 8, sampler=[2, 0]), [[7], [5]]),
    (lambda: one(5, 6, 7, 8, sampler=ds.SequentialSampler(1, 2)), [[6], [7]]),
    (lambda: one(5, 6, 7, 8, 9, num_shards=2, shard_id=0, shuffle=False), [[5], [7], [9]]),
    (lambda: one(5, 6, 7, 8, 9, num_shards=2, shard_id=1, shuffle=False), [[6], [8], [5]]),
    (lambda: two().map(lambda x: x + 1).take(1), [[1, 0.0]]),
    (lambda: two().map([lambda x: x + 1, lambda x: x * 2], "a").take(2), [[2, 0.0], [4, 2.0]]),
    (lambda: two().map(lambda x, y: x + y, ["a", "b"], ["c"]), [[0.0], [3.0], [6.0], [9.0]]),
    (lambda: two().map(lambda x, y: (x + 10, y + 100), ["b", "a"]).take(1), [[100, 10.0]]),
    (lambda: two().map(lambda x: (x, x * 2), ["b"], ["c", "d"]).take(2).skip(1), [[2.0, 4.0, 1]]),
    (lambda: two().filter(lambda x: x > 1, "a"), [[2, 4.0], [3, 6.0]]),
    (lambda: two().filter(lambda x, y: x + y == 3), [[1, 2.0]]),
    (lambda: two().project(["b"]).skip(2), [[4.0], [6.0]]),
    (lambda: ds.zip((two().rename(["a", "b"], ["c", "d"]), two())).take(1), [[0, 0.0, 0, 0.0]]),
    (lambda: (two() + two()).skip(3).take(2), [[3, 6.0], [0, 0.0]]),
    (lambda: two().split([3, 1], randomize=False)[1], [[3, 6.0]]),
    (lambda: two().split([0.5, 0.5], randomize=False)[0], [[0, 0.0], [1, 2.0]]),
    (lambda: two().batch(2, per_batch_map=lambda a, b, info: (a, [x * 2 for x in b])), [[[0, 1], [0.0, 4.0]],
                                                                                        [[2, 3], [8.0, 12.0]]]),
    (lambda: two().batch(2, per_batch_map=lambda a, info: (np.array([info.get_batch_num(), info.get_epoch_num()]),),
                         input_columns=["a"]), [[[0, 0], [0.0, 2.0]], [[1, 0], [4.0, 6.0]]]),
    (lambda: two().batch(4, per_batch_map=lambda b, a, info: ([x + 100 for x in b], [x + 10 for x in a]),
                         input_columns=["b", "a"]), [[[10, 11, 12, 13], [100.0, 102.0, 104.0, 106.0]]]),
    (lambda: two().project("a").batch(lambda info: info.get_batch_num() + 1), [[[0]], [[1, 2]], [[3]]]),
    (lambda: ds.GeneratorDataset(lambda: ((np.arange(i + 1),) for i in range(2)), ["a"]).padded_batch(
        2, pad_info={"a": ([3], -1)}), [[[[0, -1, -1], [0, 1, -1]]]]),
    (lambda: words().padded_batch(3).take(1), [[[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 0, 0]], [1, 4, 2]]]),
    (lambda: words().bucket_batch_by_length(["x"], [3, 6], [2, 2, 1]), [
        [[[0, 0], [2, 2]], [1, 2]], [[[3, 3, 3, 3, 3, 3, 3]], [7]], [[[1, 1, 1, 1], [4, 4, 4, 0]], [4, 3]]]),
    (lambda: words().bucket_batch_by_length("x", [3, 8], [2, 2, 9], None, {"x": ([None], -1)}, True), [
        [[[0, -1], [2, 2]], [1, 2]], [[[1, 1, 1, 1, -1, -1, -1], [3, 3, 3, 3, 3, 3, 3]], [4, 7]],
        [[[4, 4, 4, -1, -1, -1, -1]], [3]]]),
    (lambda: words().bucket_batch_by_length(["x", "n"], [3], [2, 2], lambda x, n: 9 - n, drop_remainder=True), [
        [[[0, 0, 0, 0], [1, 1, 1, 1]], [1, 4]], [[[2, 2, 0], [4, 4, 4]], [2, 3]]]),
    (lambda: one(2, 3, shuffle=False).flat_map(lambda x: one(x, x, shuffle=False)), [[2], [2], [3], [3]]),
    (lambda: two().map(lambda x: x, "a", "c", column_order=["b", "c"]).take(1), [[0.0, 0]]),
    (lambda: two().apply(lambda d: d.take(1)), [[0, 0.0]]),
    (lambda: two().map(transforms.OneHot(3), "a").project("a").take(2), [[[1, 0, 0]], [[0, 1, 0]]]),
    (lambda: two().map(transforms.Duplicate(), "a", ["a", "c"]).take(1), [[0, 0, 0.0]]),
])
def test_a_dataset_gives_its_rows_and_their_number(made: Callable[[], ds.Dataset], expected: list) -> None:
    dataset = made()
    assert rows(dataset) == expected
    assert len(dataset) == dataset.get_dataset_size() == len(expected)


def test_epochs_shuffle_differently_and_seeds_repeat_the_order() -> None:
    def order(seed: int | None) -> list[list[Any]]:
        if seed is not None:
            ds.config.set_seed(seed)
        iterator = one(*range(20)).shuffle(20).create_tuple_iterator()
        return [[int(row[0].asnumpy()) for row in iterator] for _ in range(2)]

    ms.set_seed(7)
    first = order(None)
    ms.set_seed(7)
    assert order(None) == first and first[0] != first[1] and sorted(first[0]) == list(range(20))
    assert order(3) == order(3) != order(4)


@pytest.mark.parametrize("draw", [
    lambda: vision.RandomHorizontalFlip(0.5)(IMAGE).tobytes(), lambda: vision.RandomVerticalFlip(0.5)(IMAGE).tobytes(),
    lambda: vision.RandomCrop(1)(IMAGE).tobytes(), lambda: transforms.RandomChoice([lambda x: 1, lambda x: 2])(0),
    lambda: transforms.RandomApply([lambda x: 1])(0),
    lambda: transforms.RandomOrder([lambda x: x + 1, lambda x: x * 2])(1)])
def test_a_seed_repeats_the_sequence_and_not_each_draw(draw: Callable[[], Any]) -> None:
    def drawn() -> list[Any]:
        ds.config.set_seed(3)
        return [draw() for _ in range(40)]

    first = drawn()
    assert first == drawn() and len(set(first)) > 1


def test_parts_of_a_shuffled_dataset_have_no_row_in_common() -> None:
    for _ in range(3):
        train, test = one(*range(10)).split([0.7, 0.3])
        for _ in range(2):
            assert sorted(row[0] for row in rows(train) + rows(test)) == list(range(10))
        assert (len(train), len(test)) == (7, 3)


def test_a_shuffle_draws_from_its_buffer() -> None:
    found = [row[0] for row in rows(one(*range(50), shuffle=False).shuffle(4))]
    assert sorted(found) == list(range(50)) and all(place - number < 50 and number - place < 4
                                                    for place, number in enumerate(found))


@pytest.mark.parametrize("sampler, count", [
    (ds.RandomSampler(), 4),
    (ds.RandomSampler(replacement=True, num_samples=9), 4), (ds.RandomSampler(num_samples=2), 2),
    (ds.SubsetRandomSampler([3, 1]), 2), (ds.WeightedRandomSampler([0, 1, 0, 1], 6), 4),
    (ds.DistributedSampler(2, 0), 2)])
def test_samplers_choose_rows(sampler: ds.Sampler, count: int) -> None:
    dataset = one(5, 6, 7, 8, sampler=sampler)
    found = [row[0] for row in rows(dataset)]
    assert len(found) == len(dataset) == count and set(found) <= {5, 6, 7, 8}
    if isinstance(sampler, (ds.SubsetRandomSampler, ds.WeightedRandomSampler)):
        assert set(found) <= {6, 8}


def _below(sampler: ds.Sampler, child: ds.Sampler) -> ds.Sampler:
    sampler.add_child(child)
    return sampler


@pytest.mark.parametrize("sampler, expected", [
    (lambda: _below(ds.SequentialSampler(1, 3), ds.SequentialSampler(2, 5)), [3, 4, 5]),
    (lambda: _below(ds.SubsetSampler([2, 0]), ds.SubsetSampler([7, 5, 3])), [3, 7]),
    (lambda: _below(ds.DistributedSampler(2, 1, shuffle=False), ds.SequentialSampler(3, 4)), [4, 6]),
    (lambda: _below(ds.SequentialSampler(num_samples=2), _below(ds.SubsetSampler([2, 0, 1]), ds.SubsetSampler(
        [7, 5, 3]))), [3, 7])])
def test_a_sampler_chooses_among_the_rows_of_another(sampler: Callable[[], ds.Sampler], expected: list[int]) -> None:
    data = one(*range(8), sampler=sampler())
    assert [row[0] for row in rows(data)] == expected and len(data) == len(expected)
    child = sampler().get_child()
    assert child is not None and child.get_num_samples() in (None, 4, 5)


@pytest.mark.parametrize("made", [
    lambda: one(*range(8), sampler=ds.SequentialSampler(1, 5)), lambda: ds.GeneratorDataset(
        np.arange(8), ["x"], sampler=ds.SequentialSampler(1, 5)), lambda: ds.GeneratorDataset(
        np.arange(8), ["x"], sampler=ds.SequentialSampler(1, 5), num_parallel_workers=2)])
def test_a_dataset_takes_another_sampler(made: Callable[[], Any]) -> None:
    data = made()
    batched = data.batch(2)
    assert rows(batched) == [[[1, 2]], [[3, 4]], [[5]]] and len(data) == 5
    data.add_sampler(ds.SubsetSampler([2, 0]))
    assert rows(batched) == [[[3, 1]]] and len(data) == 2
    data.use_sampler(ds.SubsetSampler([7]))
    assert rows(data) == [[7]]
    data.use_sampler(None)
    assert rows(data) == [[i] for i in range(8)]


def test_a_users_sampler_chooses_the_order() -> None:
    class Backwards(ds.Sampler):
        def __iter__(self) -> Iterator[int]:
            return iter(range(self.dataset_size - 1, -1, -1))

    assert rows(one(5, 6, 7, sampler=Backwards())) == [[7], [6], [5]]


def test_a_dataset_describes_itself() -> None:
    batched = source().batch(2).repeat(3)
    assert (batched.get_dataset_size(), batched.get_batch_size(), batched.get_repeat_count()) == (6, 2, 3)
    assert batched.get_col_names() == ["x", "y"]
    assert batched.output_types() == [np.float32, np.int64] and batched.output_shapes() == [[2, 2], [2]]
    assert batched.output_shapes(estimate=True) == [[None, 2], [None]]
    assert two().map(lambda x: x, ["b"], ["c"]).get_col_names() == ["a", "c"]
    assert ds.NumpySlicesDataset([1]).get_col_names() == ["column_0"]


def test_iterators_give_tensors_arrays_dicts_or_lists() -> None:
    assert [sorted(row) for row in two().create_dict_iterator()] == [["a", "b"]] * 4
    assert all(isinstance(row["a"], np.ndarray) for row in two().create_dict_iterator(output_numpy=True))
    assert [len(row) for row in two().create_tuple_iterator(columns=["b"])] == [1] * 4
    iterator = two().create_dict_iterator()
    assert next(iterator)["a"].asnumpy() == 0 and next(iterator)["a"].asnumpy() == 1
    once = two().create_dict_iterator(num_epochs=1)
    assert len(list(once)) == 4
    with pytest.raises(RuntimeError, match="all 1 epochs"):
        list(once)
    assert [row[0] for row in one("a", "bc", shuffle=False)] == ["a", "bc"]  # text is no tensor


def test_a_model_trains_on_a_dataset() -> None:
    def generate() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        random = np.random.default_rng(0)
        for _ in range(64):
            x = random.standard_normal(2).astype(np.float32)
            yield x, np.array([x.sum()], np.float32)

    ms.set_seed(0)
    net = ms.nn.Dense(2, 1)
    model = ms.Model(net, ms.nn.MSELoss(), ms.nn.Adam(net.trainable_params(), 0.05), metrics={"loss"})
    data = ds.GeneratorDataset(generate, ["x", "y"]).batch(16)
    before = model.eval(data)["loss"]
    model.train(20, data)
    assert model.eval(data)["loss"] < before / 20


def _idx(numbers: np.ndarray) -> bytes:
    return struct.pack(f">I{numbers.ndim}I", 0x0800 + numbers.ndim, *numbers.shape) + numbers.tobytes()


def test_files_of_mnist_are_a_dataset(tmp_path: Path) -> None:
    images = np.arange(3 * 4 * 2, dtype=np.uint8).reshape(3, 4, 2)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(_idx(images))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(_idx(np.array([7, 1, 9], np.uint8))))
    data = ds.MnistDataset(str(tmp_path), "train", shuffle=False)
    assert data.get_col_names() == ["image", "label"] and data.output_types() == [np.uint8, np.uint32]
    assert data.output_shapes() == [[4, 2, 1], []] and [row[1] for row in rows(data)] == [7, 1, 9]
    net = data.map([vision.Rescale(1 / 255, 0), vision.HWC2CHW()], "image").map(transforms.TypeCast(ms.int32), "label")
    assert net.batch(3).output_types() == [np.float32, np.int32] and net.batch(3).output_shapes() == [[3, 1, 4, 2], [3]]
    with pytest.raises(FileNotFoundError, match="no t10k-images-idx3-ubyte"):
        ds.MnistDataset(tmp_path, "test")
    for usage in ("all", None):  # the parts that the folder has
        assert [row[1] for row in rows(ds.MnistDataset(tmp_path, usage, shuffle=False))] == [7, 1, 9]
    with pytest.raises(FileNotFoundError, match="no train-images-idx3-ubyte"):
        ds.MnistDataset(tmp_path.parent)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(_idx(images[:2]))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(_idx(np.array([4, 5], np.uint8)))
    assert [row[1] for row in rows(ds.MnistDataset(tmp_path, shuffle=False))] == [4, 5, 7, 1, 9]


@pytest.mark.parametrize("kind, labels, files, columns", [
    (ds.Cifar10Dataset, 1, ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5",
                            "test_batch"], ["image", "label"]),
    (ds.Cifar100Dataset, 2, ["train", "test"], ["image", "coarse_label", "fine_label"])])
def test_files_of_cifar_are_a_dataset(kind: Any, labels: int, files: list[str], columns: list[str],
                                      tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"{kind.__name__}: there is no {files[0]}\.bin"):
        kind(tmp_path)
    stored = {}
    for place, name in enumerate(files):
        stored[name] = np.random.default_rng(place).integers(0, 256, (2, labels + 3072), np.uint8)
        (tmp_path / f"{name}.bin").write_bytes(stored[name].tobytes())
    for usage, used in (("train", files[:-1]), ("test", files[-1:]), ("all", files), (None, files)):
        data = kind(tmp_path, usage, shuffle=False)
        assert data.get_col_names() == columns and data.output_types() == [np.uint8, *[np.uint32] * labels]
        expected = np.concatenate([stored[name] for name in used])
        for row, (image, *seen) in zip(expected, rows(data), strict=True):
            assert seen == row[:labels].tolist()
            np.testing.assert_array_equal(np.moveaxis(np.array(image), 2, 0).ravel(), row[labels:])
    (tmp_path / f"{files[0]}.bin").unlink()
    assert len(rows(kind(tmp_path))) == 2 * len(files) - 2
    (tmp_path / f"{files[-1]}.bin").write_bytes(b"short")
    with pytest.raises(FileFormatError, match=rf"{files[-1]}\.bin: 5 bytes, .* of the {labels + 3072}"):
        kind(tmp_path, "test")
    with pytest.raises(ArgumentError, match=f"{kind.__name__}: usage must be 'train', 'test' or 'all', got 'eval'"):
        kind(tmp_path, "eval")


@pytest.mark.parametrize("name, other", [
    ("num_parallel_workers", 3), ("prefetch_size", 4), ("enable_shared_mem", False), ("numa_enable", True)])
def test_settings_of_config_are_set_and_returned(name: str, other: int) -> None:
    ask, change = getattr(ds.config, f"get_{name}"), getattr(ds.config, f"set_{name}")
    assert ask() != other
    change(other)
    assert ask() == other and type(ask()) is type(other)


IMAGE: np.ndarray = (np.arange(24).reshape(2, 4, 3) * 10).astype(np.uint8)


@of_each([
    (vision.Rescale(1 / 255.0, 0.0), (2, 4, 3), [0.0, 0.03921569, 0.07843137]),
    (vision.HWC2CHW(), (3, 2, 4), [0, 30, 60, 90, 120]), (vision.ToTensor(), (3, 2, 4), [0.0, 0.11764707]),
    (vision.Normalize([1, 2, 3], [2.0, 2, 2]), (2, 4, 3), [-0.5, 4.0, 8.5]),
    (vision.Resize((4, 8)), (4, 8, 3), [0, 10, 20, 7, 17, 27, 22, 32]),
    (vision.Resize((4, 8), vision.Inter.NEAREST), (4, 8, 3), [0, 10, 20, 0, 10, 20, 30]),
    (vision.Resize(4), (4, 8, 3), [0, 10, 20, 7]), (vision.HorizontalFlip(), (2, 4, 3), [90, 100, 110, 60]),
    (vision.VerticalFlip(), (2, 4, 3), [120, 130, 140, 150]), (vision.Pad(1), (4, 6, 3), [0] * 21 + [0, 10, 20, 30]),
    (vision.Pad((1, 2, 3, 4)), (8, 8, 3), [0]), (vision.CenterCrop((1, 3)), (1, 3, 3), [0, 10, 20, 30]),
    (vision.CenterCrop((2, 1)), (2, 1, 3), [30, 40, 50, 150]), (vision.CenterCrop(6), (6, 6, 3), [0]),
    (vision.CenterCrop(2), (2, 2, 3), [30, 40, 50, 60, 70, 80, 150]),
    (vision.RandomCrop(2, padding=1), (2, 2, 3), []), (vision.RandomCrop((5, 5), pad_if_needed=True), (5, 5, 3), []),
    (vision.RandomHorizontalFlip(0.0), (2, 4, 3), [0, 10, 20]), (vision.RandomVerticalFlip(1.0), (2, 4, 3), [120]),
    (vision.ToType(ms.float16), (2, 4, 3), [0, 10]), (vision.Crop((0, 1), (1, 2)), (1, 2, 3), [30, 40])])
def test_transforms_change_images_as_expected(transform: Callable[[np.ndarray], np.ndarray], shape: tuple,
                                              begins: list) -> None:
    found = transform(IMAGE)
    assert found.shape == shape and np.allclose(found.ravel()[:len(begins)], begins, 1e-6)


def test_transforms_are_composed_and_chosen() -> None:
    steps = [lambda x: x + 1, lambda x: x * 2]
    assert transforms.Compose(steps)(3) == 8
    assert {transforms.RandomChoice(steps)(3) for _ in range(40)} == {4, 6}
    assert {transforms.RandomOrder(steps)(3) for _ in range(40)} == {7, 8}
    assert {transforms.RandomApply(steps)(3) for _ in range(40)} == {3, 8}
    assert transforms.PadEnd([3], 9)(np.array([1])).tolist() == [1, 9, 9]
    assert transforms.Concatenate(prepend=np.array([0]))(np.array([1]), np.array([2])).tolist() == [0, 1, 2]
    assert [each.tolist() for each in transforms.Unique()(np.array([3, 1, 3]))] == [[3, 1], [0, 1, 0], [2, 1]]
    assert transforms.Fill(3)(np.array([1, 2])).tolist() == [3, 3]
    assert transforms.OneHot(2, smoothing_rate=0.5)(np.array([1])).tolist() == [0.25, 0.75]
    assert np.allclose(transforms.OneHot(4, 0.4)(np.array([1])), [[0.1, 0.7, 0.1, 0.1]][0])


@of_each([
    (lambda: two().map(len, ["q"]), ArgumentError, "map: there is no column 'q'. Valid: a, b"),
    (lambda: two().batch(0), ArgumentError, "batch: expected an int of 1 at least, got 0"),
    (lambda: rows(ds.GeneratorDataset(Source(), ["x"])), ArgumentError, r"gave 2 columns for \['x'\]"),
    (lambda: rows(ds.GeneratorDataset(lambda: ((np.arange(i + 1),) for i in range(3)), ["a"]).batch(3)), ShapeError,
     r"column 'a' have the shapes \(1,\) and \(2,\); pad them by padded_batch"),
    (lambda: rows(two().map(lambda x: (x, x), "a")), ArgumentError, "give output_columns"),
    (lambda: two().concat(one(1)), ArgumentError, r"the columns \['a', 'b'\]"),
    (lambda: ds.zip((two(), two())), ArgumentError, "each column only once"),
    (lambda: two().split([3, 3]), ArgumentError, r"of 4 rows would be parts of \[3, 3\]"),
    (lambda: one(1, shuffle=True, sampler=[0]), ArgumentError, "a sampler decides the order"),
    (lambda: one(1, num_shards=2), ArgumentError, "num_shards and shard_id"),
    (lambda: ds.GeneratorDataset(3, ["x"]), TypeError, "got int"),
    (lambda: ds.NumpySlicesDataset(([1], [1, 2])), ArgumentError, r"the lengths \[1, 2\]"),
    (lambda: transforms.OneHot(2)(np.array(2)), ArgumentError, "classes from 0 to before 2"),
    (lambda: vision.Crop((1, 1), 4)(IMAGE), ShapeError, "beyond an image of 2 by 4"),
    (lambda: words().bucket_batch_by_length("x", [3, 3], [1, 1, 1]), ArgumentError, r"must rise from 1 or more, got"),
    (lambda: words().bucket_batch_by_length("x", [3], [1]), ArgumentError, "need 2 bucket_batch_sizes"),
    (lambda: words().bucket_batch_by_length("x", [3], [1, 0]), ArgumentError, "an int of 1 at least, got 0"),
    (lambda: words().bucket_batch_by_length(["x", "n"], [3], [1, 1]), ArgumentError, "need an element_length_function"),
    (lambda: rows(words().bucket_batch_by_length("x", [3], [1, 1], None, {"x": ([None], 0)}, True)), ArgumentError,
     "add a boundary above 3"),
    (lambda: _below(_below(ds.Sampler(), ds.Sampler()), ds.Sampler()), ArgumentError, "already has a child"),
    (lambda: rows(one(5, 6, 7, sampler=_below(ds.SubsetSampler([2]), ds.SequentialSampler(1)))), ArgumentError,
     "SubsetSampler: the row 2 is beyond the 2 rows that its SequentialSampler chooses"),
    (lambda: words().use_sampler([0]), ArgumentError, "GeneratorDataset: a source without __getitem__"),  # type: ignore
    (lambda: ds.config.set_numa_enable(1), TypeError, "set_numa_enable: expected a bool, got 1"),
    (lambda: ds.config.set_seed(-1), ArgumentError, "expected an int of 0 at least")])
def test_wrong_uses_of_datasets_are_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_exceptions_keep_their_type() -> None:
    def fails(x: Any) -> Any:
        return 1 / 0

    with pytest.raises(ZeroDivisionError) as raised:
        rows(two().map(fails, "a"))
    assert any("fails, called by map of row 0" in note for note in raised.value.__notes__)


# ------------------------------------------------------------------------------------------- files of images


def _file(pixels: np.ndarray, kind: str = "png") -> bytes:
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, kind)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folders of two classes and an empty one, with a file beside them, a file of another kind, and a subfolder."""
    for name, pixels in (("b/2.png", IMAGE), ("b/10.png", IMAGE + 1), ("a/1.PNG", IMAGE[..., 0]), ("b/c/3.png", IMAGE)):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_file(pixels))
    (tmp_path / "empty").mkdir()
    (tmp_path / "b" / "notes.txt").write_bytes(b"n")
    (tmp_path / "top.png").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("given, labels", [
    ({}, [0, 1, 1, 1]), ({"extensions": [".png"]}, [1, 1]), ({"extensions": [".txt", ".PNG"]}, [0, 1]),
    ({"class_indexing": {"b": 7}}, [7, 7, 7]), ({"num_samples": 2}, [0, 1]),
    ({"num_shards": 2, "shard_id": 1}, [1, 1])])
def test_folders_of_images_are_a_dataset(folder: Path, given: dict[str, Any], labels: list[int]) -> None:
    images = ds.ImageFolderDataset(str(folder), shuffle=False, **given)
    assert [row[1] for row in rows(images)] == labels and len(images) == len(labels)
    assert images.get_col_names() == ["image", "label"]
    assert images.get_class_indexing() == given.get("class_indexing", {"a": 0, "b": 1, "empty": 2})


def test_images_are_bytes_that_decode_reads(folder: Path) -> None:
    files: dict[str, Any] = {"extensions": [".png", ".PNG"], "shuffle": False}
    raw, = rows(ds.ImageFolderDataset(folder, num_samples=1, **files))
    assert raw[0] == list((folder / "a" / "1.PNG").read_bytes())
    expected = [np.repeat(IMAGE[..., :1], 3, axis=2).tolist(), (IMAGE + 1).tolist(), IMAGE.tolist()]
    assert [row[0] for row in rows(ds.ImageFolderDataset(folder, decode=True, **files))] == expected
    mapped = ds.ImageFolderDataset(folder, **files).map([vision.Decode(), vision.ToPIL()], "image")
    assert [row[0] for row in rows(mapped)] == expected
    assert vision.Decode(to_pil=True)((folder / "b" / "2.png").read_bytes()).tolist() == IMAGE.tolist()


@pytest.mark.parametrize("call, error, said", [
    (lambda at: ds.ImageFolderDataset(at / "c"), FileNotFoundError, "ImageFolderDataset: there is no folder '.*c'"),
    (lambda at: ds.ImageFolderDataset(at / "empty"), FileNotFoundError, "there are no files in the folders of"),
    (lambda at: ds.ImageFolderDataset(at, extensions=[".jpg"]), FileNotFoundError, "no files that end in .jpg"),
    (lambda at: ds.ImageFolderDataset(at, class_indexing={"emty": 1}), ArgumentError, "'emty'. .*'empty'"),
    (lambda at: ds.ImageFolderDataset(at, decrypt=len), ArgumentError, "decrypt must be None"),
    (lambda at: ds.ImageFolderDataset(at, num_shards=2), ArgumentError, "num_shards and shard_id"),
    (lambda at: rows(ds.ImageFolderDataset(at, extensions=[".txt"], decode=True)), FileFormatError, r"s\.txt: cannot"),
    (lambda at: vision.Decode()(IMAGE), ShapeError, r"the bytes of a file, got the shape \(2, 4, 3\); is it decoded"),
    (lambda at: vision.Decode()(np.zeros(3)), DTypeError, "the bytes of a file as uint8, got float64"),
    (lambda at: vision.Decode()(b"no"), FileFormatError, "Decode: the image: cannot be decoded"),
    (lambda at: vision.RandomResizedCrop(4, ratio=(2, 1)), ArgumentError, r"RandomResizedCrop: .*ratio=\(2, 1\)"),
    (lambda at: vision.RandomCropDecodeResize(4, scale=(-1, 1)), ArgumentError, "RandomCropDecodeResize: .*scale="),
    (lambda at: vision.RandomResizedCrop(4, max_attempts=0), ArgumentError, "max_attempts must be 1 at least, got 0"),
    (lambda at: vision.RandomResizedCrop((4, 0)), ArgumentError, "RandomResizedCrop: expected a height and a width"),
])
def test_errors_of_images_name_the_mistake(folder: Path, call: Callable[[Path], Any], error: type[Exception],
                                           said: str) -> None:
    with pytest.raises(error, match=said):
        call(folder)


#: Forty rows of their own numbers, ten columns wide.
TALL: np.ndarray = np.broadcast_to(np.arange(40, dtype=np.uint8)[:, None, None], (40, 10, 3))


@pytest.mark.parametrize("ratio, expected", [
    ((1, 2), [15, 16, 18, 19, 20, 21, 23, 24]), ((0.5, 0.5), [11, 13, 16, 18, 21, 23, 26, 28]),
    ((0.1, 0.2), [2, 7, 12, 17, 22, 27, 32, 37]), ((0.3, 2), [5, 10, 14, 18, 22, 26, 30, 34])])
def test_crops_that_do_not_fit_become_center_crops(ratio: tuple[float, float], expected: list[int]) -> None:
    """The middle is cut to the ratio, as in MindSpore."""
    part = vision.RandomResizedCrop((8, 4), scale=(5, 6), ratio=ratio)(TALL)
    assert part.shape == (8, 4, 3) and part[:, 0, 0].tolist() == expected


@pytest.mark.parametrize("transform, image", [
    (vision.RandomResizedCrop, np.asarray), (vision.RandomCropDecodeResize, _file)])
def test_random_crops_have_the_given_area_and_any_position(transform: Any, image: Callable[[np.ndarray], Any]) -> None:
    ds.config.set_seed(1)
    part = transform((10, 5), scale=(0.5, 0.5), ratio=(0.5, 0.5), interpolation=vision.Inter.NEAREST)
    begins = {int(part(image(TALL))[0, 0, 0]) for _ in range(60)}
    assert begins == set(range(21))  # the image has twenty rows more than the crop


def _with_dicts() -> ds.Dataset:
    return ds.GeneratorDataset(
        lambda: ((i, {"a": i, "b": np.ones(2) * i, "text": "t", "in": {"c": [1, 2]}}) for i in range(3)), ["x", "info"])


def test_a_column_may_hold_dicts() -> None:
    """Operations see the dict itself, and iterators give it with tensors inside; text stays text."""
    number, info = list(_with_dicts())[1]
    assert (int(number), int(info["a"]), info["b"].asnumpy().tolist()) == (1, 1, [1.0, 1.0])
    assert isinstance(info["in"]["c"][1], ms.Tensor) and info["text"] == np.array("t")
    plain = next(iter(_with_dicts().create_dict_iterator(output_numpy=True)))["info"]
    assert isinstance(plain["a"], np.ndarray) and plain["in"]["c"][1] == 2
    assert rows(_with_dicts().map([lambda info: {**info, "d": 5}, lambda info: info["a"] + info["d"]], "info")) == [
        [0, 5], [1, 6], [2, 7]]
    assert rows(_with_dicts().filter(lambda info: info["a"] > 1, "info").map(lambda info: info["b"], "info")) == [
        [2, [2.0, 2.0]]]
    assert rows(_with_dicts().batch(
        3, per_batch_map=lambda infos, _: ([each["a"] for each in infos],), input_columns=["info"])) == [
            [[0, 1, 2], [0, 1, 2]]]
    stacked = next(iter(_with_dicts().batch(2)))[1]
    assert (stacked["a"].asnumpy().tolist(), stacked["b"].asnumpy().tolist()) == ([0, 1], [[0, 0], [1, 1]])
    assert stacked["in"]["c"].asnumpy().tolist() == [[1, 2], [1, 2]]
    different = _with_dicts().map(lambda info: {"a": 1} if info["a"] else {"b": 1}, "info")
    with pytest.raises(ArgumentError, match="column 'info' are dicts with different keys"):
        rows(different.batch(2))


# ---------------------------------------------------------------------------------------------- processes


forked = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked")


def _marked(x: np.ndarray) -> tuple[np.ndarray, int]:
    return x * 2, os.getpid()


class Marked:
    def __getitem__(self, place: int) -> tuple[int, int]:
        return place * 2, os.getpid()

    def __len__(self) -> int:
        return 9


def _numbers() -> ds.Dataset:
    return ds.NumpySlicesDataset(np.arange(9), ["x"], shuffle=False)


@forked
@pytest.mark.parametrize("made", [
    lambda **workers: _numbers().map(_marked, "x", ["x", "pid"], **workers),
    lambda **workers: ds.GeneratorDataset(Marked(), ["x", "pid"], shuffle=False, **workers),
    lambda **workers: _numbers().batch(3, per_batch_map=lambda xs, info: ([x * 2 for x in xs], [os.getpid()] * len(xs)),
                                       output_columns=["x", "pid"], **workers),
])
def test_processes_compute_rows(made: Callable[..., ds.Dataset]) -> None:
    """Processes compute some of the rows each, in order, for several epochs; no process is left."""
    dataset = made(num_parallel_workers=2, python_multiprocessing=True)
    alone = made(num_parallel_workers=2, python_multiprocessing=False)
    before = set(multiprocessing.active_children())
    for _ in range(2):
        found, pids = zip(*[(x.asnumpy().tolist(), np.ravel(pid.asnumpy())[0]) for x, pid in dataset])
        assert list(found) == [row[0] for row in rows(alone)]
        assert len(set(pids)) == 2 and os.getpid() not in pids
    assert rows(dataset.take(1))[0][0] == found[0]
    iterator = iter(dataset)
    next(iterator)
    del iterator
    gc.collect()
    assert set(multiprocessing.active_children()) == before


@forked
def test_random_numbers_are_those_of_the_row() -> None:
    """Random values do not depend on the number of processes; they differ between epochs and seeds."""
    def drawn(workers: int, seed: int) -> list[Any]:
        ds.config.set_seed(seed)
        flips = ds.GeneratorDataset([IMAGE] * 12, ["x"], shuffle=False).map(
            vision.RandomHorizontalFlip(), num_parallel_workers=workers, python_multiprocessing=True)
        return [rows(flips) for _ in range(2)]

    first = drawn(2, 3)
    assert first == drawn(3, 3) != drawn(2, 4)
    iterator = ds.GeneratorDataset([IMAGE] * 12, ["x"], shuffle=False).map(
        vision.RandomHorizontalFlip(), num_parallel_workers=2, python_multiprocessing=True).create_tuple_iterator()
    assert [row[0].asnumpy().tolist() for row in iterator] != [row[0].asnumpy().tolist() for row in iterator]


@forked
def test_an_error_of_a_process_names_the_row() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        if x == 5:
            raise KeyError("five")
        return x

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyError) as raised:
        rows(_numbers().map(fails, num_parallel_workers=2, python_multiprocessing=True))
    said = "\n".join(raised.value.__notes__)
    assert "fails, called by map of row 5" in said and "in a worker of map, for row [5]" in said
    raised.value.__traceback__ = None
    gc.collect()
    assert set(multiprocessing.active_children()) == before


@forked
def test_processes_end_by_themselves_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of a later step inherit the connections of an earlier step, which has already given all rows."""
    alive = []
    kill = multiprocessing.process.BaseProcess.kill

    def noted(process: multiprocessing.process.BaseProcess) -> None:
        alive.append(process.is_alive())
        kill(process)

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "kill", noted)
    monkeypatch.setattr("opreg.data.workers._GRACE", 2.0)
    settings: dict[str, Any] = {"num_parallel_workers": 2, "python_multiprocessing": True}
    twice = _numbers().map(lambda x: x + 1, **settings).map(lambda x: x * 2, **settings)
    assert rows(twice) == [[2 * (x + 1)] for x in range(9)]
    assert alive == [False] * 4


def test_the_size_is_that_of_the_last_epoch() -> None:
    """A filter, and batches of varying size, whose functions read values that change."""
    least, size = 2, 3
    numbers = ds.NumpySlicesDataset({"x": np.arange(6)}, shuffle=False)
    filtered = numbers.filter(lambda x: x >= least, ["x"]).repeat(2)
    batches = numbers.batch(lambda info: size)
    assert (len(filtered), len(batches)) == (8, 2)
    least, size = 4, 2
    assert (len(list(filtered)), len(filtered)) == (4, 4)
    assert (len(list(batches)), len(batches)) == (3, 3)
    next(iter(filtered))  # an epoch that ends early
    assert len(filtered) == 4


@pytest.mark.parametrize("name, setting", [
    ("prefetch_size", 4), ("enable_shared_mem", False), ("numa_enable", True), ("enable_autotune", True),
    ("autotune_interval", 3)])
def test_settings_without_effect_are_kept(name: str, setting: Any) -> None:
    getattr(ds.config, f"set_{name}")(setting)
    assert getattr(ds.config, f"get_{name}")() == setting
