"""Iterators: rows and names of each batch, in every epoch."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError, ShapeError

nd = mx.nd

ROWS, NUMBERS = np.arange(14.0).reshape(7, 2), np.arange(7.0)


def seen(batches) -> list:
    return [(batch.data[0].asnumpy()[:, 0].tolist(), batch.pad) for batch in batches]


@pytest.mark.parametrize("handle, rounds", [
    ("pad", [[([0, 2, 4], 0), ([6, 8, 10], 0), ([12, 0, 2], 2)]] * 3),
    ("discard", [[([0, 2, 4], 0), ([6, 8, 10], 0)]] * 3),
    ("roll_over", [[([0, 2, 4], 0), ([6, 8, 10], 0)], [([12, 0, 2], 0), ([4, 6, 8], 0)],
                   [([10, 12, 0], 0), ([2, 4, 6], 0), ([8, 10, 12], 0)]]),
])
def test_the_last_batch_is_padded_discarded_or_rolled_over(handle, rounds):
    batches = mx.io.NDArrayIter(ROWS, NUMBERS, 3, last_batch_handle=handle)
    for expected in rounds:
        assert seen(batches) == expected
        assert seen(batches) == []
        batches.reset()
    batches.hard_reset()
    assert seen(batches) == rounds[0]


def test_only_a_finished_epoch_leaves_rows_to_the_next():
    batches = mx.io.NDArrayIter(ROWS, NUMBERS, 3, last_batch_handle="roll_over")
    batches.reset()
    for rows in ([[0, 2, 4], [6, 8, 10]], [[12, 0, 2], [4, 6, 8]]):
        assert [pair[0] for pair in seen(batches)] == rows
        batches.reset()
    batches.next()
    batches.reset()
    assert [pair[0] for pair in seen(batches)] == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("make", [np.array, lambda rows, dtype: nd.array(rows, dtype=dtype)], ids=["numpy", "nd"])
def test_rows_that_are_written_between_rounds_are_seen(make, shuffle):
    data, label = make([[1], [2]], "float32"), make([3, 4], "float32")
    batches = mx.io.NDArrayIter(data, label, shuffle=shuffle)
    list(batches)
    data[0], label[:] = 8, 9
    batches.reset()
    assert sorted((b.data[0].asscalar(), b.label[0].asscalar()) for b in batches) == [(2, 9), (8, 9)]


def test_the_layout_says_which_axis_is_the_batch():
    data = np.arange(24.0).reshape(2, 6, 2)
    batches = mx.io.NDArrayIter(data, np.arange(6.0), 4, layout="TNC")
    assert batches.provide_data == [("data", (2, 4, 2))] and batches.provide_data[0].layout == "TNC"
    assert batches.provide_label == [("softmax_label", (4,))] and batches.provide_label[0].layout is None
    first, last = batches
    np.testing.assert_array_equal(first.data[0].asnumpy(), data[:, :4])
    np.testing.assert_array_equal(last.data[0].asnumpy(), data[:, [4, 5, 0, 1]])
    assert last.label[0].asnumpy().tolist() == [4, 5, 0, 1] and last.pad == 2


def test_orders_are_those_of_mxnet_for_the_same_seeds():
    np.random.seed(7)  # noqa: NPY002
    batches = mx.io.NDArrayIter(np.arange(10.0), None, 4, shuffle=True, last_batch_handle="discard")
    found = []
    for _ in range(2):
        found += [batch.data[0].asnumpy().tolist() for batch in batches]
        batches.reset()
    assert found == [[8, 5, 0, 2], [1, 9, 7, 3], [9, 0, 8, 4], [1, 6, 5, 3]]


def test_a_batch_larger_than_the_data_repeats_it():
    with pytest.warns(UserWarning, match="batch_size=16 is more than the 7 rows: every batch repeats rows") as said:
        (batch,) = mx.io.NDArrayIter(ROWS, NUMBERS, 16)
    assert [each.filename for each in said] == [__file__]
    assert batch.label[0].asnumpy().tolist() == [*NUMBERS, *NUMBERS, 0, 1] and batch.pad == 9
    with pytest.warns(UserWarning, match="batch_size=16 is more than the 7 rows: there is no batch"):
        assert list(mx.io.NDArrayIter(ROWS, NUMBERS, 16, last_batch_handle="discard")) == []
    with pytest.warns(UserWarning, match="rows are collected over several epochs until they fill a batch"):
        mx.io.NDArrayIter(ROWS, NUMBERS, 16, last_batch_handle="roll_over")
    mx.io.NDArrayIter(ROWS, NUMBERS, 7)


def test_descriptions_have_shapes_and_dtypes_of_batches():
    batches = mx.io.NDArrayIter({"a": ROWS, "b": nd.array(NUMBERS, dtype="int32")}, [NUMBERS, NUMBERS], 2)
    assert batches.provide_data == [("a", (2, 2)), ("b", (2,))]
    assert [np.dtype(each.dtype).name for each in batches.provide_data] == ["float32", "int32"]
    assert [each.name for each in batches.provide_label] == ["_0_softmax_label", "_1_softmax_label"]
    batch = batches.next()
    assert [each.shape for each in batch.data] == [(2, 2), (2,)] and batch.data[1].dtype == np.int32
    assert str(batch) == "DataBatch: data shapes: [(2, 2), (2,)] label shapes: [(2,), (2,)]"
    desc = mx.io.DataDesc("x", (4, 2, 3), layout="TNC")
    assert str(desc) == "DataDesc[x,(4, 2, 3),<class 'numpy.float32'>,TNC]"
    assert mx.io.DataDesc.get_batch_axis(desc.layout) == 1 and mx.io.DataDesc.get_batch_axis(None) == 0
    assert mx.io.DataDesc.get_list([("a", (1, 2))], [("a", "int32")])[0].dtype == np.int32


def test_shuffled_rows_come_once_with_their_labels():
    batches = mx.io.NDArrayIter(ROWS, NUMBERS, 3, shuffle=True, last_batch_handle="pad")
    orders = []
    for _ in range(3):
        order = []
        for batch in batches:
            data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
            assert (data[:, 0] == 2 * label).all()
            order += label[:3 - batch.pad].tolist()
        assert sorted(order) == NUMBERS.tolist()
        orders.append(order)
        batches.reset()
    assert orders[0] != orders[1] and orders[1] != orders[2]


def test_iterators_may_be_resized_and_prefetched():
    resized = mx.io.ResizeIter(mx.io.NDArrayIter(ROWS, NUMBERS, 3, last_batch_handle="discard"), 3)
    assert [pair[0][0] for pair in seen(resized)] == [0, 6, 0]
    resized.reset()
    assert len(seen(resized)) == 3
    ahead = mx.io.PrefetchingIter([mx.io.NDArrayIter(ROWS, NUMBERS, 3), mx.io.NDArrayIter(ROWS + 1, None, 3)],
                                  rename_data=[{"data": "one"}, {"data": "two"}])
    assert [each.name for each in ahead.provide_data] == ["one", "two"] and ahead.batch_size == 3
    for _ in range(2):
        assert seen(ahead) == [([0, 2, 4], 0), ([6, 8, 10], 0), ([12, 0, 2], 2)]
        assert seen(ahead) == []
        ahead.reset()
    thread = ahead._ahead.thread
    del ahead
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_an_error_in_a_prefetched_iterator_is_raised():
    class Broken(mx.io.NDArrayIter):
        def next(self):
            raise ZeroDivisionError("in the reader")

    ahead = mx.io.PrefetchingIter(Broken(ROWS, None, 3))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the reader"):
            ahead.next()
    assert threading.current_thread() is threading.main_thread()


def test_csv_files_are_read_in_batches(tmp_path):
    data, label = tmp_path / "x.csv", tmp_path / "y.csv"
    np.savetxt(data, ROWS, delimiter=",")
    np.savetxt(label, NUMBERS, delimiter=",")
    batches = mx.io.CSVIter(str(data), (1, 2), str(label), batch_size=4)
    assert [each.name for each in batches.provide_data + batches.provide_label] == ["data", "softmax_label"]
    first = batches.next()
    assert first.data[0].shape == (4, 1, 2) and first.label[0].asnumpy().tolist() == [0, 1, 2, 3]
    assert batches.getdata().shape == (4, 1, 2) and batches.getlabel().asnumpy().tolist() == [0, 1, 2, 3]
    assert batches.next().pad == 1
    np.savetxt(data, ROWS, fmt="%d", delimiter=",")
    whole = mx.io.CSVIter(str(data), (2,), batch_size=7, dtype="int64")
    assert whole.next().data[0].dtype == whole.getlabel().dtype == np.int64
    with pytest.raises(ShapeError, match="a row has 2 numbers"):
        mx.io.CSVIter(str(data), (3,))
    data.write_text("1,2\n1,x\n")
    with pytest.raises(FileFormatError, match=r"x.csv: expected rows of numbers.*'x'"):
        mx.io.CSVIter(str(data), (2,))


@pytest.mark.filterwarnings("ignore:CSVIter. batch_size=9 is more")
@pytest.mark.parametrize("round_batch, size, rounds", [
    (True, 3, [[[0, 1, 2], [3, 4, 5], [6, 0, 1]], [[2, 3, 4], [5, 6, 0]], [[1, 2, 3], [4, 5, 6]], [[0, 1, 2]]]),
    (False, 3, [[[0, 1, 2], [3, 4, 5], [6, 4, 5]], [[0, 1, 2], [3, 4, 5], [6, 4, 5]]]),
    (True, 9, [[[*range(7), 0, 1]], [[*range(2, 7), 0, 1, 2, 3]]]),
    (False, 9, [[[*range(7), 0, 1]]] * 2),
])
def test_rounds_of_text_are_those_of_mxnet(round_batch, size, rounds, tmp_path):
    np.savetxt(tmp_path / "x.csv", NUMBERS, delimiter=",")
    batches = mx.io.CSVIter(str(tmp_path / "x.csv"), (1,), batch_size=size, round_batch=round_batch)
    for expected in rounds:
        found = [batch.data[0].asnumpy().ravel().tolist() for batch in batches]
        assert found[:len(expected)] == expected
        batches.reset()


@pytest.mark.parametrize("call, kind, words", [
    (lambda: mx.io.NDArrayIter(ROWS, last_batch_handle="padd"), ArgumentError, "Did you mean 'pad'"),
    (lambda: mx.io.NDArrayIter(ROWS, NUMBERS[:3]), ShapeError, "softmax_label has 3 rows, data has 7"),
    (lambda: mx.io.NDArrayIter(None), ArgumentError, "no data"),
    (lambda: mx.io.NDArrayIter("text"), ArgumentError, "array of numbers, got str"),
    (lambda: mx.io.NDArrayIter(ROWS, batch_size=0), ArgumentError, "batch_size=0"),
    (lambda: mx.io.DataBatch(nd.ones(1)), ArgumentError, "list of arrays, got NDArray"),
    (lambda: mx.io.DataIter().next(), NotImplementedError, "must define next"),
])
def test_wrong_arguments_of_iterators_are_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_the_first_labels_count_where_there_are_more_than_rows():
    with pytest.warns(UserWarning, match="label has 7 rows, data has 4: only the first ones are used"):
        batches = mx.io.NDArrayIter(ROWS[3:], {"label": NUMBERS, "w": nd.array(NUMBERS[3:])}, 2)
    found = [(batch.data[0].asnumpy(), *(each.asnumpy().tolist() for each in batch.label)) for batch in batches]
    assert np.concatenate([rows for rows, *_ in found]).tolist() == ROWS[3:].tolist()
    assert [label for _, label, _ in found] == [[0, 1], [2, 3]] and [w for *_, w in found] == [[3, 4], [5, 6]]


@pytest.mark.parametrize("parts, expected", [
    (1, [[0, 2, 4, 6, 8, 10, 12]]), (2, [[0, 2, 4], [6, 8, 10, 12]]), (3, [[0, 2], [4, 6], [8, 10, 12]])])
def test_each_part_has_its_rows(parts, expected, tmp_path):
    """Each process reads its own part of an array or a file."""
    name = tmp_path / "rows.csv"
    np.savetxt(name, ROWS, delimiter=",")
    for make in (lambda **part: mx.io.NDArrayIter(ROWS, NUMBERS, 1, **part),
                 lambda **part: mx.io.CSVIter(str(name), (2,), **part)):
        found = [[row for rows, _ in seen(make(num_parts=parts, part_index=i)) for row in rows] for i in range(parts)]
        assert found == expected
        with pytest.raises(ArgumentError, match="expected an integer from 0 on that is less than the number of parts"):
            make(num_parts=2, part_index=2)
        with pytest.raises(ArgumentError, match="there are 7 rows"):
            make(num_parts=8, part_index=0)


def test_arrays_are_split_among_contexts():
    rows = nd.array(ROWS)
    parts = mx.util.split_and_load(rows, [mx.cpu(0), mx.cpu(1)], even_split=False)
    assert [each.shape for each in parts] == [(4, 2), (3, 2)]
    assert [str(each.context) for each in parts] == ["cpu(0)", "cpu(1)"]
    assert [each.shape for each in mx.util.split_data(rows, 2, batch_axis=1)] == [(7, 1), (7, 1)]
    for call in (lambda: mx.util.split_and_load(rows, [mx.cpu()] * 2), lambda: mx.util.split_data(rows, 8, 0, False)):
        with pytest.raises(ShapeError, match="7 samples along axis 0 cannot be divided"):
            call()


@pytest.mark.parametrize("last, expected", [
    ("keep", [([0, 2, 4], 0), ([6, 8, 10], 0), ([12, 0, 0], 2)]), ("discard", [([0, 2, 4], 0), ([6, 8, 10], 0)])])
def test_a_gluon_loader_becomes_an_iterator(last, expected):
    loader = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(ROWS, NUMBERS), 3, last_batch=last)
    batches = mx.contrib.io.DataLoaderIter(loader, label_name="number", dtype="float16")
    assert [tuple(each) for each in (*batches.provide_data, *batches.provide_label)] == [
        ("data", (3, 2)), ("number", (3,))]
    for _ in range(2):
        assert seen(batches) == expected
        batches.reset()
    batch = batches.next()
    assert batch.data[0].dtype == batch.label[0].dtype == np.float16 and batch.label[0].asnumpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("loader, words", [([], "no batch"), ([(1, 2, 3)], "got 3 values"), ([1], "got int")])
def test_a_loader_gives_pairs(loader, words):
    with pytest.raises(ArgumentError, match=words):
        mx.contrib.io.DataLoaderIter(loader)
