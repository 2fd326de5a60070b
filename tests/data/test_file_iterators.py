"""Iterators over files of digits and over rows of columns."""

from __future__ import annotations

import gzip
import importlib.util
import struct
import tracemalloc

import numpy as np
import pytest

import opreg as mx
from opreg.core.spec import as_dtype
from opreg.errors import ArgumentError, DTypeError, FileFormatError, OpError, ShapeError


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


def test_digits_are_read(digits):
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
    numbers = [number for numbers, _ in labels(mx.io.MNISTIter(batch_size=5, seed=0, **digits)) for number in numbers]
    assert numbers == [0, 2, 3, 5, 9, 1, 6, 8, 4, 7]  # as MXNet 1.9.1 reads them
    first, again, other = (mx.io.MNISTIter(batch_size=5, seed=seed, **digits) for seed in (1, 1, 2))
    order = labels(first)
    first.reset()
    assert labels(first) == order == labels(again) != labels(other)
    assert sorted(number for numbers, _ in order for number in numbers) == list(range(10))
    again.reset()
    for batch in again:
        assert np.array_equal(batch.data[0].asnumpy()[:, 0, 0, 0] * 256, 6 * batch.label[0].asnumpy())


def test_invalid_files_of_digits_are_refused(tmp_path, digits):
    for wrong in (b"", b"\0\0\x08", b"\0\0\x09\1\0\0\0\0", b"\0\0\x08\3\0\0", b"\x1f\x8bxx",
                  struct.pack(">HBB3I", 0, 8, 3, 2 ** 31, 2 ** 31, 2 ** 31), struct.pack(">HBBI", 0, 8, 1, 3) + b"ab",
                  struct.pack(">HBBI", 0, 8, 1, 3) + b"abcd", struct.pack(">HBBI", 0, 8, 3, 1) + bytes(7),
                  struct.pack(">HBB4I", 0, 8, 4, 0, *[2 ** 32 - 1] * 3), b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"a"):
        (tmp_path / "wrong").write_bytes(wrong)
        with pytest.raises(FileFormatError, match="wrong: "):
            mx.io.MNISTIter(image=str(tmp_path / "wrong"), label=digits["label"], batch_size=1)
    with pytest.raises(ShapeError, match="equally many classes"):
        mx.io.MNISTIter(image=digits["image"], label=idx(tmp_path / "short", np.arange(3)), batch_size=1)
    with pytest.raises(ArgumentError, match="batch_size=20"):
        mx.io.MNISTIter(batch_size=20, **digits)
    with pytest.raises(ArgumentError, match="part_index=1"):
        mx.io.MNISTIter(batch_size=1, part_index=1, **digits)


@pytest.mark.parametrize("content, words", [
    (bytes(50_000_000), "expected a file in the format of MNIST"),
    (struct.pack(">HBBI", 0, 8, 1, 3) + bytes(50_000_000), "but more bytes follow"),
    (struct.pack(">HBBI", 0, 8, 1, 100_000_000) + bytes(50_000_000), "header gives shape")])
def test_a_packed_file_is_unpacked_only_up_to_the_size_in_its_header(content, words, tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=words):
            mx.io.MNISTIter(image=str(tmp_path / "a.gz"), label=str(tmp_path / "a.gz"))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_packed_file_is_read_to_its_checksum(tmp_path, digits):
    data = bytearray(gzip.compress(struct.pack(">HBB3I", 0, 8, 3, 10, 1, 1) + bytes(10)))
    data[-6] ^= 1
    (tmp_path / "a.gz").write_bytes(data)
    with pytest.raises(FileFormatError, match=r"a\.gz: damaged: CRC check failed"):
        mx.io.MNISTIter(image=str(tmp_path / "a.gz"), label=digits["label"])


ROWS = "1.0 0:0.5 2:1.2\n-2.0\n-3.0 0:0.6 1:2.4 2:1.2\n4 2:-1.2\n"
DENSE = np.array([[0.5, 0, 1.2], [0, 0, 0], [0.6, 2.4, 1.2], [0, 0, -1.2]], np.float32)


@pytest.fixture
def columns(tmp_path) -> str:
    (tmp_path / "a.t").write_text(ROWS)
    return str(tmp_path / "a.t")


def test_libsvm_rows_become_csr_batches(columns, tmp_path):
    batches = mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), batch_size=3)
    assert batches.provide_data == [("data", (3, 3))] and batches.provide_label == [("softmax_label", (3,))]
    assert labels(batches) == [([1, -2, -3], 0), ([4, 1, -2], 2)]
    batches.reset()  # after the rows that filled the last batch, as in MXNet
    batch = batches.next()
    np.testing.assert_array_equal(batch.data[0].asnumpy(), DENSE[[2, 3, 0]])
    assert batch.label[0].asnumpy().tolist() == [-3, 4, 1] and batch.pad == 1 and batch.index.tolist() == [2, 3, 0]
    (tmp_path / "b.t").write_text("1\n2 0:0.125\n3 2:1.2\n4 1:1 2:-1.2\n")
    batches = mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), batch_size=4, label_libsvm=str(tmp_path / "b.t"),
                               label_shape=(3,))
    np.testing.assert_array_equal(batches.next().label[0].asnumpy(), np.array(
        [[0, 0, 0], [0.125, 0, 0], [0, 0, 1.2], [0, 1, -1.2]], np.float32))


def test_parts_of_a_file_have_its_rows_once(columns):
    parts = [mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), batch_size=1, num_parts=2, part_index=i)
             for i in range(2)]
    assert [[numbers[0] for numbers, _ in labels(part)] for part in parts] == [[1, -2, -3], [4]]


@pytest.mark.parametrize("text, error, message", [
    ("1 0:1\n2 x\n", FileFormatError, "line 2"), ("1 3:1\n", FileFormatError, "no column 3 of 3"),
    ("1 -1:1\n", FileFormatError, "no column -1"),
    ("1 0:1 0:1\n", FileFormatError, "line 1: .*column 0 occurs twice"), ("x\n", FileFormatError, "line 1"),
    ("\n", FileFormatError, "no rows"), ("1 0:1\n2\n", ShapeError, "has 4 rows")])
def test_invalid_row_objects_are_refused(text, error, message, columns, tmp_path):
    (tmp_path / "b.t").write_text(text)
    with pytest.raises(error, match=message):
        mx.io.LibSVMIter(data_libsvm=columns, data_shape=(3,), label_libsvm=str(tmp_path / "b.t"), label_shape=(3,))


def test_wrong_arguments_of_libsvm_iterators_are_refused(columns):
    for keywords, error in (({"round_batch": False}, ArgumentError), ({"part_index": 1}, ArgumentError),
                            ({"data_shape": (3, 1)}, ShapeError), ({"data_shape": (0,)}, ShapeError),
                            ({"data_shape": (2.5,)}, ArgumentError), ({"data_shape": (-1,)}, ShapeError),
                            ({"label_libsvm": columns, "label_shape": "ab"}, ArgumentError)):
        with pytest.raises(error):
            mx.io.LibSVMIter(**{"data_libsvm": columns, "data_shape": (3,), **keywords})


@pytest.mark.parametrize("columns_of_a_row", [10 ** 14, 10 ** 30])
def test_rows_larger_than_memory_are_refused(columns_of_a_row, tmp_path):
    """The error names the shape of the array, and its note the rows that need it."""
    (tmp_path / "a.csv").write_text("1\n")
    with pytest.raises(OpError, match=rf"no array of \(\d, {columns_of_a_row}\) float32") as caught:
        mx.io.CSVIter(str(tmp_path / "a.csv"), (1,), label_shape=(columns_of_a_row,))
    assert "for rows of shape" in caught.value.__notes__[0]


def test_batches_of_many_columns_hold_only_stored_elements(columns):
    """A dense array of these rows would need more memory than there is."""
    count = 10 ** 14
    batches = mx.io.LibSVMIter(data_libsvm=columns, data_shape=(count,), batch_size=3)
    for expected in ([0, 2, 0, 1, 2], [2, 0, 2]):
        batch = batches.next().data[0]
        assert batch.stype == "csr" and batch.shape == (3, count) and batch.indices.asnumpy().tolist() == expected
    with pytest.raises(ShapeError, match="the number of columns"):
        mx.io.LibSVMIter(data_libsvm=columns, data_shape=(10 ** 30,))


#: Numbers as text, integer dtypes, and the expected values; None for a value outside the dtype.
INTEGERS = [("int32", "7", 7), ("int32", "2.0", 2), ("int32", "-1e3", -1000), ("uint8", "255", 255),
            ("bool", "1", True), ("int64", str(2 ** 53 + 1), 2 ** 53 + 1), ("int32", "1.7", None),
            ("int32", str(2 ** 31), None), ("uint8", "300", None), ("uint8", "-1", None), ("bool", "2", None),
            ("int32", "nan", None), ("int32", "inf", None), ("int64", "1" * 30, None), ("int64", "1" * 5000, None),
            ("int32", "1e400", None)]


@pytest.mark.parametrize("dtype, text, value", INTEGERS)
def test_integers_are_read_exactly(dtype, text, value, tmp_path):
    """A fraction, or a number beyond the range, is refused instead of being cut off or wrapped around."""
    (tmp_path / "a.csv").write_text(f"0,1\n{text},1\n")
    (tmp_path / "a.t").write_text(f"0 0:1\n0 0:{text}\n")
    (tmp_path / "labels.t").write_text(f"0\n{text}\n")
    for make in (lambda: mx.io.CSVIter(str(tmp_path / "a.csv"), (2,), dtype=dtype, batch_size=2),
                 lambda: mx.io.LibSVMIter(str(tmp_path / "a.t"), (1,), dtype=dtype, batch_size=2),
                 lambda: mx.io.LibSVMIter(str(tmp_path / "labels.t"), (1,), dtype=dtype, batch_size=2)):
        if value is None:
            with pytest.raises(FileFormatError, match=r"a.csv|(a|labels).t: line 2") as caught:
                make()
            assert len(str(caught.value)) < 500
        else:
            batch = make().next()
            found = batch.data[0].asnumpy()[1, 0] or batch.label[0].asnumpy()[1]
            assert found == value and batch.data[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing\n", b"\xff\xfe1,2", b"1,2\n3\n", b"1;2\n",
                                     b"\x1f\x8b\x08", b"1" * 100_000 + b"x,1\n"])
def test_invalid_rows_of_a_table_are_refused(content, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.csv: ") as caught:
        mx.io.CSVIter(str(tmp_path / "a.csv"), (2,))
    assert len(str(caught.value)) < 500


def test_tables_are_read_in_every_dtype(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf1,2\r\n-3,1e39\r\n")  # as spreadsheets write
    for dtype in ("float16", "float32", "float64", "bfloat16"):
        if dtype == "bfloat16" and importlib.util.find_spec("ml_dtypes") is None:
            continue
        found = mx.io.CSVIter(str(tmp_path / "a.csv"), (2,), dtype=dtype, batch_size=2).next().data[0]
        large = 1e39 if dtype == "float64" else np.inf
        assert found.dtype == as_dtype(dtype) and found.asnumpy().astype(float).tolist() == [[1, 2], [-3, large]]


def test_digits_need_a_floating_dtype(digits):
    with pytest.raises(DTypeError, match="dtype=int32"):
        mx.io.MNISTIter(dtype="int32", **digits)
    with pytest.raises(ArgumentError, match="there are 10 images"):
        mx.io.MNISTIter(num_parts=10 ** 400, batch_size=1, **digits)
