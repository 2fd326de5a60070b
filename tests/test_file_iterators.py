"""Iterators over files of digits and over rows of columns."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError, ShapeError


def idx(path, numbers) -> str:
    numbers = np.asarray(numbers, np.uint8)
    data = struct.pack(f">HBB{numbers.ndim}I", 0, 8, numbers.ndim, *numbers.shape) + numbers.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.fixture(params=["", ".gz"])
def digits(tmp_path, request) -> dict[str, str]:
    return {"image": idx(tmp_path / f"image{request.param}", np.arange(60).reshape(10, 2, 3)),
            "label": idx(tmp_path / f"label{request.param}", np.arange(10))}


def labels(batches) -> list:
    return [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in batches]


def test_digits(digits):
    batches = mx.io.MNISTIter(batch_size=4, shuffle=False, silent=True, **digits)
    assert batches.provide_data == [("data", (4, 1, 2, 3))] and batches.provide_label == [("softmax_label", (4,))]
    for _ in range(2):
        assert labels(batches) == [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0)]
        batches.reset()
    batch = batches.next()
    np.testing.assert_array_equal(batch.data[0].asnumpy()[1, 0], np.arange(6, 12).reshape(2, 3) / 256)
    with pytest.warns(UserWarning, match="did you mean 'flat'"):
        mx.io.MNISTIter(batch_size=5, data_shape=(6,), flatt=True, **digits)
    flat = mx.io.MNISTIter(batch_size=5, shuffle=False, flat=True, num_parts=2, part_index=1, **digits)
    assert flat.provide_data == [("data", (5, 6))] and labels(flat) == [([5, 6, 7, 8, 9], 0)]


def test_shuffled_digits_keep_their_order(digits):
    first, again, other = (mx.io.MNISTIter(batch_size=5, seed=seed, **digits) for seed in (1, 1, 2))
    order = labels(first)
    first.reset()
    assert labels(first) == order == labels(again) != labels(other)
    assert sorted(number for numbers, _ in order for number in numbers) == list(range(10))
    again.reset()
    for batch in again:
        assert np.array_equal(batch.data[0].asnumpy()[:, 0, 0, 0] * 256, 6 * batch.label[0].asnumpy())


def test_files_that_hold_no_digits(tmp_path, digits):
    for wrong in (b"", b"\0\0\x08", b"\0\0\x09\1\0\0\0\0", b"\0\0\x08\3\0\0", b"\x1f\x8bxx",
                  struct.pack(">HBB3I", 0, 8, 3, 2 ** 31, 2 ** 31, 2 ** 31), struct.pack(">HBBI", 0, 8, 1, 3) + b"ab"):
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(FileFormatError, match="wrong: "):
            mx.io.MNISTIter(image=str(tmp_path / "wrong"), label=digits["label"], batch_size=1)
    with pytest.raises(ShapeError, match="as many classes"):
        mx.io.MNISTIter(image=digits["image"], label=idx(tmp_path / "short", np.arange(3)), batch_size=1)
    with pytest.raises(ArgumentError, match="batch_size=20"):
        mx.io.MNISTIter(batch_size=20, **digits)
    with pytest.raises(ArgumentError, match="part_index=1"):
        mx.io.MNISTIter(batch_size=1, part_index=1, **digits)


ROWS = "1.0 0:0.5 2:1.2\n-2.0\n-3.0 0:0.6 1:2.4 2:1.2\n4 2:-1.2\n"
DENSE = np.array([[0.5, 0, 1.2], [0, 0, 0], [0.6, 2.4, 1.2], [0, 0, -1.2]], np.float32)


@pytest.fixture
def columns(tmp_path) -> str:
    (tmp_path / "a.t").write_text(ROWS)
    return str(tmp_path / "a.t")


def test_rows_of_columns(columns, tmp_path):
    batches = mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), batch_size=3)
    assert batches.provide_data == [("data", (3, 3))] and batches.provide_label == [("softmax_label", (3,))]
    assert labels(batches) == [([1, -2, -3], 0), ([4, 1, -2], 2)]
    batches.reset()  # behind what filled the last batch, as MXNet does
    batch = batches.next()
    np.testing.assert_array_equal(batch.data[0].asnumpy(), DENSE[[2, 3, 0]])
    assert batch.label[0].asnumpy().tolist() == [-3, 4, 1] and batch.pad == 1
    (tmp_path / "b.t").write_text("1\n2 0:0.125\n3 2:1.2\n4 1:1 2:-1.2\n")
    batches = mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), batch_size=4, label_libsvm=str(tmp_path / "b.t"),
                               label_shape=(3,))
    np.testing.assert_array_equal(batches.next().label[0].asnumpy(), np.array(
        [[0, 0, 0], [0.125, 0, 0], [0, 0, 1.2], [0, 1, -1.2]], np.float32))


def test_parts_of_rows(columns):
    parts = [mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), batch_size=1, num_parts=2, part_index=i)
             for i in range(2)]
    assert [[numbers[0] for numbers, _ in labels(part)] for part in parts] == [[1, -2, -3], [4]]


@pytest.mark.parametrize("text, error, message", [
    ("1 0:1\n2 x\n", FileFormatError, "line 2"), ("1 3:1\n", FileFormatError, "no column 3 of 3"),
    ("1 -1:1\n", FileFormatError, "no column -1"), ("x\n", FileFormatError, "line 1"),
    ("\n", FileFormatError, "no rows"), ("1 0:1\n2\n", ShapeError, "has 4 rows")])
def test_what_is_no_row(text, error, message, columns, tmp_path):
    (tmp_path / "b.t").write_text(text)
    with pytest.raises(error, match=message):
        mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), label_libsvm=str(tmp_path / "b.t"), label_shape=(3,))


def test_mistakes(columns):
    for keywords, error in (({"round_batch": False}, ArgumentError), ({"part_index": 1}, ArgumentError),
                            ({"data_shape": (3, 1)}, ShapeError)):
        with pytest.raises(error):
            mx.io.LibSVMIter(**{"data_libsvm": columns, "data_shape": (3,), **keywords})
