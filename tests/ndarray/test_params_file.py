"""Parameter files: bytes of Apache MXNet, bytes that opreg writes, and invalid bytes."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import tracemalloc
import warnings
import zipfile
from contextlib import nullcontext, suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opreg.errors import ArgumentError, DTypeError, FileFormatError
from opreg.ndarray.formats import load, save
from opreg.ndarray.params_file import read, write
from opreg.ndarray.records import Record, Sparse
from tests.questions import of_each

MODELS = Path(__file__).parent.parent / "oracle" / "models"
FILES = MODELS / "files"
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
CPU = ("cpu", 0)
CALM = settings(deadline=None, max_examples=150, derandomize=True)


@pytest.fixture(scope="module")
def expected():
    with np.load(FILES / "expected.npz") as arrays:
        return dict(arrays)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def head(*dims, kind="q"):
    return struct.pack(f"<i{len(dims)}{kind}", len(dims), *dims)


def record(dims=(1,), flag=0, data=b"\0\0\x80\x3f", *, magic=V2, device=(1, 0), storage=0):
    """A dense record, assembled without the code under test."""
    start = struct.pack("<I", magic) + (b"" if magic == V1 else struct.pack("<i", storage))
    return start + head(*dims) + struct.pack("<iii", *device, flag) + data


def sparse(storage, dims, stored, data, *indices, flag=0, index=("q", 6)):
    """A row_sparse (1) or csr (2) record of float32."""
    layout, index_flag = index
    start = struct.pack("<Ii", V2, storage) + head(*stored) + head(*dims) + struct.pack("<iii", 1, 0, flag)
    for numbers in indices:
        start += struct.pack("<i", index_flag) + head(len(numbers))
    start += struct.pack(f"<{len(data)}f", *data)
    return start + b"".join(struct.pack(f"<{len(numbers)}{layout}", *numbers) for numbers in indices)


def file(*records, names=()):
    tail = struct.pack("<Q", len(names)) + b"".join(struct.pack("<Q", len(name)) + name for name in names)
    return struct.pack("<QQQ", 0x112, 0, len(records)) + b"".join(records) + tail


def only(data, **kwargs):
    (record,), _ = read(data, **kwargs)
    return record


# ------------------------------------------------------------------------ files written by MXNet


@pytest.mark.parametrize("version", ("v0", "v1", "v2"))
def test_named_arrays_of_every_version_are_read(expected, version):
    records, names = load(FILES / f"dict_{version}.params")
    wanted = {key.removeprefix("dict/"): value for key, value in expected.items() if key.startswith("dict/")}
    assert names == list(wanted)
    for got, array in zip(records, wanted.values(), strict=True):
        assert same(got.array, array)
        assert got.device == CPU


@pytest.mark.parametrize("name", ("list_v0", "list_v1", "list_v2", "list_mixed", "list_gpu"))
def test_lists_of_every_version_are_read(expected, name):
    records, names = load(FILES / f"{name}.params")
    assert names == []
    assert len(records) == 3
    for i, got in enumerate(records):
        assert same(got.array, expected[f"list/{i}"])


def test_devices_are_read():
    records, _ = load(FILES / "list_gpu.params")
    assert [got.device for got in records] == [("gpu", 0), ("gpu", 1), ("cpu_pinned", 0)]


@pytest.mark.parametrize(("name", "prefix"), (("bool_v2", "bool/"), ("dict_v3", "v3/")))
def test_booleans_scalars_and_empty_arrays_are_read(expected, name, prefix):
    records, names = load(FILES / f"{name}.params")
    assert {prefix + name for name in names} == {key for key in expected if key.startswith(prefix)}
    for got, key in zip(records, names, strict=True):
        assert same(got.array, expected[prefix + key])


def test_sparse_arrays_of_mxnets_files_are_read(expected):
    records, names = load(FILES / "sparse_v2.params")
    assert [record.sparse.stype if record.sparse else "" for record in records].count("") == 1
    for got, name in zip(records, names, strict=True):
        assert same(got.dense(), expected[f"sparse/{name}/dense"])


AS_WE_WRITE = ("dict_v2", "list_v2", "list_gpu", "bool_v2", "dict_v3", "empty_v2")


@pytest.mark.parametrize(
    "path",
    (*(FILES / f"{name}.params" for name in AS_WE_WRITE), *sorted(MODELS.glob("*/*-0001.params"))),
    ids=lambda path: path.stem,
)
def test_written_again_a_file_is_the_same(path, tmp_path):
    save(tmp_path / "again.params", *load(path))
    assert (tmp_path / "again.params").read_bytes() == path.read_bytes()


# ----------------------------------------------------------------------- files in our own layout

REFUSED = {
    "bad_cut_0": r"byte 0, header: expected 8 bytes of the file's magic number, found 0 before the end",
    "bad_cut_in_magic": r"byte 0, header: expected 8 bytes .* found 5 ",
    "bad_cut_in_count": r"byte 16, header: expected 8 bytes of the number of arrays, found 2 ",
    "bad_cut_before_array": r"byte 16, header: expected at least 16 bytes for 2 arrays, found 0 ",
    "bad_cut_in_shape": r"byte 16, header: expected at least 16 bytes for 2 arrays, found 14 ",
    "bad_cut_in_data": r"byte 120, record 1 of 2: expected 12 bytes of numbers, float32 \(3,\), found 9 ",
    "bad_cut_before_names": r"byte 132, names: expected 8 bytes of the number of names, found 0 ",
    "bad_cut_in_name": r"byte 161, names: expected 5 bytes of name 1, found 3 ",
    "bad_cut_v0": r"byte 48, record 0 of 2: expected 24 bytes of numbers, .* found 12 ",
    "bad_magic_file": r"byte 0, header: expected the magic number 0x112 .* found 0x113",
    "bad_reserved": r"byte 8, header: expected the reserved word 0, found 1",
    "bad_magic_array": r"byte 24, record 0 of 2: expected an array's magic .* found 0xf993faff",
    "bad_ndim_absurd": r"byte 32, record 0 of 2: expected 0 to 64 dimensions .* found 2147483647",
    "bad_ndim_negative": r"byte 32, record 0 of 2: expected 0 to 64 dimensions .* found -2",
    "bad_ndim_absurd_v0": r"byte 24, record 0 of 2: expected .* at most 64 dimensions, found 0xf4240",
    "bad_dim_absurd": r"byte 64, record 0 of 2: expected 13194139533312 bytes of numbers",
    "bad_dim_negative": r"byte 36, record 0 of 2: expected a shape without negative dimensions, .* \(-2, 3\)",
    "bad_dim_overflow": r"byte 36, record 0 of 2: expected a shape of fewer than 2\^60 numbers",
    "bad_count_absurd": r"byte 16, header: expected at least .* for 1152921504606846976 arrays, found 142",
    "bad_count_more": r"byte 152, record 2 of 3: expected a type flag .* found 1377",
    "bad_names_absurd": r"byte 132, names: expected 2 names or none .* found 1152921504606846976",
    "bad_names_fewer": r"byte 132, names: expected 2 names or none for 2 arrays, found 1",
    "bad_name_length_absurd": r"byte 148, names: expected 1125899906842624 bytes of name 0, found 18",
    "bad_type_unknown": r"byte 60, record 0 of 2: expected a type flag \(0 float32, .* found 99",
    "bad_stype_unknown": r"byte 28, record 0 of 2: expected storage type 0 \(dense\), .* found 9",
    "bad_text": r"byte 0, header: expected the magic number",
    "bad_names_same": r"byte 161, names: expected a name of its own for record 1, found 'arg:a'",
    "bad_name_not_utf8": r"byte 165, names: expected name 1 in UTF-8, found b'arg:\\xff'",
}
WARNED = {
    "bad_device_unknown": r"1 record is \(0\) on an unknown device \(77, 0\), loaded to cpu\(0\)",
    "bad_trailing": r"7 bytes after the end at byte 166 are ignored",
}


def test_every_damaged_file_has_its_row():
    damaged = {Path(name).stem for name in json.loads((FILES / "errors.json").read_text())}
    assert damaged - {"dict_v3"} == {*REFUSED, *WARNED}


@of_each(REFUSED)
def test_damaged_files_are_refused_with_the_place(name):
    path = FILES / f"{name}.params"
    with pytest.raises(FileFormatError, match=REFUSED[name]) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: byte ")
    with pytest.raises(FileFormatError, match=f"^here: {REFUSED[name]}"):
        read(path.read_bytes(), "here")


@pytest.mark.parametrize("name", WARNED)
def test_odd_files_load_with_a_warning(name):
    recorded = json.loads((FILES / "errors.json").read_text())[f"{name}.params"]["mxnet"]["as"]
    with pytest.warns(UserWarning, match=WARNED[name]) as caught:
        records, names = load(FILES / f"{name}.params")
    assert len(caught) == 1
    assert names == list(recorded)
    for got, (dtype, shape, total) in zip(records, recorded.values(), strict=True):
        assert (got.array.dtype, list(got.array.shape), got.device) == (dtype, shape, CPU)
        assert float(got.array.sum()) == pytest.approx(total)


@pytest.mark.parametrize(
    "none",
    (
        struct.pack("<I", 0),
        struct.pack("<Ii", V1, 0),
        struct.pack("<Iii", V2, 0, 0),
        struct.pack("<Iii", V3, 0, -1),
        struct.pack("<Iiii", V2, 1, 0, 0),
    ),
    ids=("V0", "V1", "V2", "V3", "row_sparse"),
)
def test_no_array_is_none_and_ends_its_record(none):
    records, _ = read(file(none, record()))
    assert records[0] == Record(None, CPU)
    assert records[1].array.tolist() == [1.0]


@pytest.mark.parametrize(
    "zero",
    (
        struct.pack("<IIIiii", 2, 0, 3, 1, 0, 0),
        *(record((0, 3), data=b"", magic=magic) for magic in (V1, V2, V3)),
    ),
    ids=("V0", "V1", "V2", "V3"),
)
def test_arrays_without_numbers_keep_their_shape(zero):
    assert only(file(zero)).array.shape == (0, 3)


@pytest.mark.parametrize(
    ("code", "device"), (((3, 1), ("cpu_pinned", 1)), ((5, 0), ("cpu_shared", 0)), ((2, 7), ("gpu", 7)))
)
def test_codes_name_the_device_of_a_record(code, device):
    assert only(file(record(device=code))).device == device


def test_several_unknown_devices_are_one_warning():
    odd = [record(device=device) for device in ((4, 0), (1, 0), (1, -5), *[(9, 1)] * 10)]
    message = r"12 records are \(0, 2, 3, 4, 5, 6, 7, 8, …\) on .* \(1, -5\), \(4, 0\), \(9, 1\), loaded to"
    with pytest.warns(UserWarning, match=message):
        records, _ = read(file(*odd))
    assert {got.device for got in records} == {CPU}


def test_any_byte_but_zero_is_true():
    assert only(file(record((3,), 7, b"\0\2\xff"))).array.tobytes() == b"\0\1\1"


@pytest.mark.parametrize("kind", (bytes, bytearray, memoryview))
def test_arrays_are_writable_and_independent_of_the_buffer(kind):
    buffer = bytearray((FILES / "dict_v2.params").read_bytes())
    records, _ = read(kind(buffer))
    before = [got.array.tobytes() for got in records]
    buffer[:] = bytes(len(buffer))
    for got, numbers in zip(records, before, strict=True):
        assert got.array.tobytes() == numbers
        assert got.array.flags.writeable
        assert got.array.flags.c_contiguous
        assert got.array.flags.aligned
        assert got.array.dtype.isnative


@pytest.mark.parametrize(
    ("data", "message"),
    (
        (file(record((1,) * 65)), r"byte 32, .*: expected 0 to 64 dimensions of the shape, found 65"),
        (file(record((0, 1 << 62), data=b"")), r"byte 36, .* fewer than 2\^60 numbers"),
        (file(record((1 << 59,), 1, b"")), r"byte 56, .* expected 4611686018427387904 bytes of numbers"),
        (file(record((-1, 3), magic=V3)), r"expected a shape without negative dimensions"),
        (file(record(storage=1, magic=V3)), r"storage type 0 \(dense\), the only one of version 3, found 1"),
        (file(record(), names=(b"a", b"b")), r"expected 1 names or none for 1 arrays, found 2"),
        (file(record(flag=13)), r"expected a type flag .* found 13"),
        (file(names=(b"a",)), r"expected 0 names or none for 0 arrays, found 1"),
    ),
)
def test_further_files_that_are_refused(data, message):
    with pytest.raises(FileFormatError, match=message):
        read(data)


@pytest.mark.parametrize(
    ("shorter", "message"), ((4, "8 bytes of the number of names"), (12, "4 bytes of numbers"))
)
def test_a_file_that_shrinks_while_it_is_read_is_refused(monkeypatch, shorter, message):
    class Shrinking(io.BytesIO):
        def seek(self, *where):
            return super().seek(*where) + (shorter if where == (0, os.SEEK_END) else 0)

    data = file(record())[:-shorter]
    monkeypatch.setattr("opreg.ndarray.formats.open_to_read", lambda path: nullcontext(Shrinking(data)))
    with pytest.raises(FileFormatError, match=f"expected {message}, found .*: the file has become shorter"):
        load("net.params")


# ----------------------------------------------------------------------------------------- sparse

ROWS = (1, (4, 2), (2, 2), (1, 2, 3, 4), (3, 1))
CSR = (2, (2, 3), (3,), (1, 2, 3), (0, 2, 3), (2, 0, 1))


@pytest.mark.parametrize(
    ("parts", "dense"),
    (
        (ROWS, [[0, 0], [3, 4], [0, 0], [1, 2]]),
        ((1, (3,), (1,), (7,), (2,)), [0, 0, 7]),
        ((1, (2, 1, 2), (1, 1, 2), (7, 8), (1,)), [[[0, 0]], [[7, 8]]]),
        (CSR, [[2, 0, 1], [0, 3, 0]]),
        ((2, (2, 3), (0,), (), (0, 0, 0), ()), [[0, 0, 0], [0, 0, 0]]),
        ((2, (0, 3), (0,), (), (0,), ()), np.zeros((0, 3))),
    ),
)
@pytest.mark.parametrize("index", (("q", 6), ("i", 4)))
def test_sparse_records_are_made_dense(parts, dense, index):
    got = only(file(sparse(*parts, index=index)))
    assert same(got.dense(), np.asarray(dense, np.float32))
    assert got.sparse.stype == {1: "row_sparse", 2: "csr"}[parts[0]] and got.sparse.shape == np.shape(dense)
    assert same(only(b"".join(write([got]))).dense(), got.dense())


@pytest.mark.parametrize(
    ("parts", "message"),
    (
        ((1, (4, 2), (2, 2), (1, 2, 3, 4), (1, 4)), r"row indices from 0 to 3, found 1 to 4"),
        ((1, (4, 2), (2, 2), (1, 2, 3, 4), (-1, 1)), r"row indices from 0 to 3, found -1 to 1"),
        ((1, (4, 2), (2, 2), (1, 2, 3, 4), (1, 1)), r"row indices that name no place twice"),
        ((1, (4, 2), (2, 3), (1, 2, 3, 4, 5, 6), (1, 2)), r"shapes of a row_sparse array \(4, 2\)"),
        ((1, (4, 2), (), (1,), (1,)), r"shapes of a row_sparse array \(4, 2\)"),
        ((2, (2, 3), (3,), (1, 2, 3), (0, 2, 3), (2, 0, 3)), r"column indices from 0 to 2, found 0 to 3"),
        ((2, (2, 3), (3,), (1, 2, 3), (0, 2, 3), (2, 2, 1)), r"column indices that name no place twice"),
        ((2, (2, 3), (3,), (1, 2, 3), (0, 2, 2), (2, 0, 1)), r"row pointers that rise from 0 to 3"),
        ((2, (2, 3), (3,), (1, 2, 3), (1, 2, 3), (2, 0, 1)), r"row pointers that rise from 0 to 3"),
        ((2, (3, 3), (3,), (1, 2, 3), (0, 2, 1, 3), (2, 0, 1)), r"row pointers that rise from 0 to 3"),
        ((2, (2, 3), (3,), (1, 2, 3), (0, 9, 3), (2, 0, 1)), r"row pointers from 0 to 3, found 0 to 9"),
        ((2, (2, 3), (3,), (1, 2, 3), (0, 3), (2, 0, 1)), r"shapes of a csr array \(2, 3\)"),
        ((2, (2, 3, 1), (3,), (1, 2, 3), (0, 2, 3), (2, 0, 1)), r"shapes of a csr array \(2, 3, 1\)"),
    ),
)
def test_sparse_records_that_are_refused(parts, message):
    with pytest.raises(FileFormatError, match=rf"byte \d+, record 0 of 1: expected {message}"):
        read(file(sparse(*parts)))


def test_indices_must_be_integers():
    with pytest.raises(FileFormatError, match="row indices of type 4 int32 or 6 int64, found float32"):
        read(file(sparse(*ROWS, index=("f", 0))))


def test_a_sparse_array_larger_than_memory_is_read():
    got = only(file(sparse(1, (1 << 40, 2), (2, 2), (1, 2, 3, 4), (3, 1))))
    assert got.sparse.shape == (1 << 40, 2) and got.sparse.indices[0].tolist() == [1, 3]
    assert got.array.tolist() == [[3, 4], [1, 2]]


# --------------------------------------------------------------------------------------- bfloat16


def test_files_hold_bfloat16():
    numbers = np.array([[1.0, -2.5], [np.nan, 3e38]], ml_dtypes.bfloat16)
    data = b"".join(write([Record(numbers)]))
    assert data == file(record((2, 2), 12, numbers.tobytes()))
    assert same(only(data).array, numbers)


def test_bfloat16_is_refused_without_its_package(monkeypatch):
    data = file(record((1,), 12, b"\0\0"))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(FileFormatError, match="package ml_dtypes to be installed"):
        read(data)


# ---------------------------------------------------------------------------------------- writing


def test_pieces_are_views_of_the_arrays():
    array = np.ones((8, 8), np.float32)
    assert any(np.shares_memory(array, np.frombuffer(piece, np.uint8)) for piece in write([Record(array)]))


def test_one_scalar_or_zero_size_array_makes_every_record_version_3():
    # MXNet refuses a file in which records of version 2 and 3 are mixed.
    for odd in (np.float32(1.0).reshape(()), np.zeros((0, 2), np.float32)):
        data = b"".join(write([Record(np.ones(1, np.float32)), Record(odd), Record(None)]))
        assert data.count(struct.pack("<I", V3)) == 3
        assert [got.array is None or got.array.shape for got in read(data)[0]] == [(1,), odd.shape, True]


def test_any_memory_layout_is_written_in_c_order():
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    for array in (np.asfortranarray(plain), plain.astype(">f4"), np.repeat(plain, 2, 1)[:, ::2]):
        assert b"".join(write([Record(array)])) == file(record((3, 4), 0, plain.astype("<f4").tobytes()))


ONE = np.ones(1, np.float32)


@pytest.mark.parametrize(
    ("arrays", "names", "kind", "message"),
    (
        ([(ONE, CPU)], ["a", "b"], ArgumentError, "expected 1 names or none for 1 arrays, got 2"),
        ([(ONE, CPU)] * 2, ["a", "a"], ArgumentError, "different name for each array, got 'a' more"),
        ([(ONE, CPU)], "a", ArgumentError, "names must be a sequence of str, not 'a'"),
        ([(ONE, CPU)], [1], ArgumentError, r"names must be a sequence of str, not \[1\]"),
        ([(ONE, CPU)], ["\ud800"], ArgumentError, "UTF-8"),
        ([(ONE, ("gpus", 0))], ["a"], ArgumentError, r"array 0 \('a'\): .* 'gpus', 0. Did you mean 'gpu'"),
        ([(ONE, ("cpu", -1))], [], ArgumentError, "array 0: .* id from 0, got 'cpu', -1"),
        ([(ONE, CPU), (np.ones(1, np.complex64), CPU)], ["a", "b"], DTypeError, r"array 1 \('b'\): .* complex64"),
        ([(np.array([None]), CPU)], [], DTypeError, "array 0: a .params file has no dtype object"),
    ),
)
def test_unwritable_arrays_are_refused_before_a_file_is_touched(arrays, names, kind, message, tmp_path):
    with pytest.raises(kind, match=message):
        write(arrays, names)
    with pytest.raises(kind, match=message):
        save(tmp_path / "a.params", arrays, names)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------- .npz


def npy(array=None, header=None, version=(1, 0), data=b""):
    if header is None:
        target = io.BytesIO()
        np.lib.format.write_array(target, array, version=version)
        return target.getvalue()
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(text)) + text + data


def zipped(path, members, method=zipfile.ZIP_STORED):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that come twice
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in members:
                archive.writestr(name, data)
    return path


ARRAYS = {
    "arg:w/x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big": np.arange(3, dtype=">i4"),
    "scalar": np.array(2.5),
    "zero": np.zeros((0, 3), np.int8),
    "bool": np.array([True, False]),
    "half": np.ones(3, np.float16),
    "complex": np.ones(2, np.complex64),
    "ключ": np.arange(3, dtype=np.uint16),
    "large": np.zeros((600, 600)),
    "file": np.ones(1),
}


def check_arrays(records, names):
    assert names == list(ARRAYS)
    for got, array in zip(records, ARRAYS.values(), strict=True):
        assert same(got.array, array.astype(array.dtype.newbyteorder("=")))
        assert got.device == CPU
        assert got.array.flags.c_contiguous
        assert got.array.flags.writeable


def test_npz_round_trip(tmp_path):
    path = tmp_path / "a.npz"
    save(path, [Record(array) for array in ARRAYS.values()], list(ARRAYS))
    check_arrays(*load(path))
    with np.load(path) as theirs:
        assert all(np.array_equal(theirs[name], array) for name, array in ARRAYS.items())
    first = path.read_bytes()
    save(path, [Record(array) for array in ARRAYS.values()], list(ARRAYS))
    assert path.read_bytes() == first


@pytest.mark.parametrize("compress", (False, True))
def test_npz_by_numpy_whatever_its_name(tmp_path, compress):
    path = tmp_path / "weights"
    with path.open("wb") as target, zipfile.ZipFile(target, "w", 8 if compress else 0) as archive:
        for name, array in ARRAYS.items():
            archive.writestr(f"{name}.npy", npy(array, version=(2, 0) if name == "big" else (1, 0)))
    check_arrays(*load(path))


def test_npz_files_may_lack_names_or_arrays(tmp_path):
    save(tmp_path / "a.npz", [Record(ONE), Record(ONE)])
    assert load(tmp_path / "a.npz")[1] == ["arr_0", "arr_1"]
    save(tmp_path / "a.npz", [])
    assert load(tmp_path / "a.npz") == ([], [])


@pytest.mark.parametrize(
    ("array", "name", "kind", "message"),
    (
        (None, "a", ArgumentError, r"array 0 \('a'\): a .npz file cannot hold None in place of an array"),
        (np.ones(1, ml_dtypes.bfloat16), "a", DTypeError, "a .npz file has no dtype bfloat16"),
        (np.array([None]), "a", DTypeError, "a .npz file has no dtype object"),
        (ONE, "a\0b", ArgumentError, "names without NUL"),
        (ONE, "a" * 65001, ArgumentError, "at most 65000 bytes"),
    ),
)
def test_arrays_that_npz_cannot_hold(tmp_path, array, name, kind, message):
    with pytest.raises(kind, match=message):
        save(tmp_path / "a.npz", [Record(array)], [name])
    assert list(tmp_path.iterdir()) == []


GOOD = npy(np.arange(3.0))
FLOATS = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,)}"


@pytest.mark.parametrize(
    ("members", "message"),
    (
        ([("a.npy", GOOD)] * 2, r"byte 187, record 1 of 2 \('a.npy'\): expected a name of its own"),
        ([("a.txt", b"hello")], r"byte 0, record 0 of 1 \('a.txt'\): expected a .npy file"),
        ([("a.npy", b"hello")], "expected the start of a .npy file of version 1 or 2, found b'hello'"),
        ([("a.npy", b"")], "expected the start of a .npy file"),
        ([("a.npy", GOOD[:9])], "expected the length of a .npy header"),
        ([("a.npy", GOOD[:-1])], r"expected 152 bytes, float64 \(3,\), found 151"),
        ([("a.npy", GOOD + b"1")], "expected 152 bytes, .* found 153"),
        ([("a.npy", npy(header=FLOATS % (1 << 50)))], "expected 9007199254741120 bytes"),
        ([("a.npy", npy(header=FLOATS % "0, 1 << 62"))], "a header of an array of numbers"),
        ([("a.npy", npy(header=FLOATS % f"0, {1 << 62}"))], "a header of an array of numbers"),
        ([("a.npy", npy(header=FLOATS % "-1"))], "a header of an array of numbers"),
        ([("a.npy", npy(header=FLOATS % ("1," * 64 + "1")))], "a header of an array of numbers"),
        ([("a.npy", npy(header="{'descr': '<f8', 'shape': (1,)}"))], "a header of an array of numbers"),
        ([("a.npy", npy(header="[" * 117))], "a header of an array of numbers"),
        ([("a.npy", npy(header=(FLOATS % 1).replace("f8", "f3")))], "a header of an array of numbers"),
        ([("a.npy", npy(np.array(["a"])))], "a header of an array of numbers, found .*<U1"),
        ([("a.npy", npy(np.zeros(1, "f4,f4")))], "a header of an array of numbers"),
        ([("a.npy", npy(np.array([{}])))], r"a header of an array of numbers, found .*\|O"),
        ([("a.npy", b"\x93NUMPY\2\0" + b"\xff" * 99)], "a .npy header of at most 10000 bytes, found 4294967"),
    ),
)
def test_npz_members_that_are_refused(tmp_path, members, message):
    with pytest.raises(FileFormatError, match=message):
        load(zipped(tmp_path / "a.npz", members))


def test_npz_methods_that_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="a stored or deflated member, found method 12"):
        load(zipped(tmp_path / "a.npz", [("a.npy", GOOD)], zipfile.ZIP_BZIP2))


@pytest.mark.parametrize(
    ("where", "value", "message"),
    (
        (8, b"\1\0", "no encryption, found an encrypted member"),
        (20, b"\xff\xff\xff\x7f", r"directory: expected members of at most \d+ bytes in all, found 21474836"),
        (24, b"\xff\xff\xff\x7f", "at most 152 bytes when unpacked, found 2147483647"),
        (16, b"abcd", "a sound zip of .npy files, found Bad CRC-32"),
        (42, b"\xff\xff\xff\x7f", "a sound zip"),
    ),
    ids=("encrypted", "packed size", "unpacked size", "checksum", "offset"),
)
def test_false_npz_directories_are_refused(tmp_path, where, value, message):
    path = zipped(tmp_path / "a.npz", [("a.npy", GOOD)])
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2") + where
    data[entry : entry + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=message):
        load(path)


# ------------------------------------------------------------------------------------------ rules

DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "bfloat16")
SHAPES = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
KINDS = st.sampled_from(("cpu", "gpu", "cpu_pinned", "cpu_shared"))


@st.composite
def some_records(draw):
    records = []
    for shape in draw(st.lists(st.none() | SHAPES, max_size=5)):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        device = (draw(KINDS), draw(st.integers(0, 9)))
        if shape is None:
            records.append(Record(None))
            continue
        raw = draw(st.binary(min_size=(n := int(np.prod(shape)) * dtype.itemsize), max_size=n))
        if dtype == np.bool_:
            raw = bytes(byte & 1 for byte in raw)
        records.append(Record(np.frombuffer(raw, dtype).reshape(shape), device))
    text = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
    names = draw(st.just([]) | st.lists(text, min_size=len(records), max_size=len(records), unique=True))
    return records, names


@CALM
@given(some_records())
def test_written_files_are_read(given_records):
    records, names = given_records
    got, got_names = read(b"".join(write(records, names)))
    assert got_names == names
    for a, b in zip(got, records, strict=True):
        assert a.device == b.device
        assert (a.array is None) == (b.array is None)
        assert a.array is None or same(a.array, b.array)


SOUND = [path.read_bytes() for path in sorted(FILES.glob("*.params")) if not path.name.startswith("bad_")]


def peak_of(load, source):
    """Largest number of bytes that were held while a source was loaded or refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            with suppress(FileFormatError):
                load(source)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@CALM
@given(st.sampled_from(SOUND), st.data())
def test_truncated_files_raise_errors(data, draws):
    cut = draws.draw(st.integers(0, len(data) - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(FileFormatError, match=r"byte \d+, .* before the end of the file"):
            read(data[:cut])


def damage(data, draws):
    data = bytearray(data)
    for _ in range(draws.draw(st.integers(1, 3))):
        at = draws.draw(st.integers(0, len(data) - 1))
        piece = draws.draw(st.binary(min_size=1, max_size=8) | st.sampled_from((b"\xff" * 8, b"\0" * 8)))
        data[at : at + len(piece)] = piece
    return bytes(data)


@CALM
@given(st.sampled_from(SOUND), st.data())
def test_changed_bytes_are_read_in_little_memory(data, draws):
    assert peak_of(read, damage(data, draws)) < 8 << 20


@pytest.fixture(scope="module")
def sound_npz(tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    arrays = {name: ARRAYS[name] for name in ("arg:w/x", "fortran", "zero")}
    np.savez_compressed(path, **arrays)
    packed = path.read_bytes()
    save(path, [Record(array) for array in arrays.values()], list(arrays))
    return path, (packed, path.read_bytes())


@CALM
@given(st.data())
def test_no_changed_or_missing_byte_of_npz_does_harm(sound_npz, draws):
    path, sound = sound_npz
    data = draws.draw(st.sampled_from(sound))
    if draws.draw(st.booleans()):
        path.write_bytes(data[: draws.draw(st.integers(0, len(data) - 1))])
        with pytest.raises(FileFormatError, match="expected"):
            load(path)
    else:
        path.write_bytes(damage(data, draws))
        assert peak_of(load, path) < 1 << 20


@pytest.mark.parametrize("path", sorted(FILES.glob("bad_*.params")), ids=lambda path: path.stem)
def test_damaged_files_allocate_little_memory(path):
    assert peak_of(load, path) < 1 << 20


def test_a_sparse_array_far_larger_than_its_stored_elements_stays_sparse() -> None:
    record = Record(np.ones((1, 4), np.float32), sparse=Sparse("row_sparse", (np.array([7]),), (1 << 40, 4)))
    got = only(b"".join(write([record])))
    assert got.sparse is not None and got.sparse.shape == (1 << 40, 4)
    with pytest.raises(FileFormatError, match=r"takes 17592186044416 bytes as a dense array, expected at most"):
        got.dense()
