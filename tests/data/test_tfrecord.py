"""``opreg.data.tfrecord``: checksums, features, damaged files; and ``dataset.TFRecordDataset``."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as ms
from opreg import dataset as ds
from opreg.core.protobuf import field, varint
from opreg.data import tfrecord
from opreg.errors import ArgumentError, FileFormatError

ROWS: list[dict[str, Any]] = [{"z": [1, 2], "a": [1.5], "s": [b"ab"], "m": [b"x", b"long"]},
                              {"z": [3, -4], "a": [2.5], "s": [b"c"], "m": [b"yy", b"z"]}]


def _example(row: dict[str, Any], whole: bool = True) -> bytes:
    """A row as an ``Example``; ``whole`` lists of numbers, or a field for each."""
    entries = []
    for name, values in row.items():
        if isinstance(values[0], bytes):
            feature = field(1, b"".join(field(1, value) for value in values))
        elif isinstance(values[0], float):
            numbers = [struct.pack("<f", value) for value in values]
            feature = field(2, field(1, b"".join(numbers)) if whole else
                            b"".join(varint(13) + number for number in numbers))
        else:
            feature = field(3, field(1, b"".join(map(varint, values))) if whole else
                            b"".join(field(1, value) for value in values))
        entries.append(field(1, field(1, name) + field(2, feature)))
    return field(1, b"".join(entries))


def _write(path: Path, rows: list[dict[str, Any]], whole: bool = True) -> Path:
    path.write_bytes(b"".join(tfrecord.record_of(_example(row, whole)) for row in rows))
    return path


def _rows(dataset: ds.Dataset) -> list[dict[str, Any]]:
    return [{name: (value.dtype.str[1:], value.tolist()) for name, value in row.items()}
            for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_checksums_are_those_of_tfrecord() -> None:
    """The checksum is the CRC-32C of RFC 3720, masked as in TFRecord; many bytes are computed by rows."""
    crc = 0xE3069283
    assert tfrecord._checksum(b"123456789") == struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2 ** 32)
    for size in (0, 255, 256, 257, 289, 1000):
        data = np.random.RandomState(size).bytes(size)
        number = 0xFFFFFFFF
        for byte in data:
            number = number >> 8 ^ tfrecord._CRC[(number ^ byte) & 255]
        assert tfrecord._crc(data) == number ^ 0xFFFFFFFF


@pytest.mark.parametrize("whole", [True, False])
def test_features_become_columns(tmp_path, whole):
    """Without a schema bytes are padded to the longest, as in MindSpore."""
    path = _write(tmp_path / "a.tfrecord", ROWS, whole)
    dataset = ds.TFRecordDataset(str(path), shuffle=False)
    assert dataset.get_col_names() == ["a", "m", "s", "z"] and len(dataset) == 2
    assert _rows(dataset) == [
        {"a": ("f4", [1.5]), "m": ("u1", list(b"x   long")), "s": ("u1", list(b"ab")), "z": ("i8", [1, 2])},
        {"a": ("f4", [2.5]), "m": ("u1", list(b"yyz ")), "s": ("u1", list(b"c")), "z": ("i8", [3, -4])}]
    assert _rows(ds.TFRecordDataset(path, columns_list=["z"], shuffle=False, num_samples=1)) == [{"z": ("i8", [1, 2])}]


@pytest.mark.parametrize("name, dtype, shape, expected", [
    ("z", ms.int32, [2, 1], ("i4", [[1], [2]])), ("z", "float32", None, ("f4", [1, 2])),
    ("z", ms.bool_, [1, -1], ("b1", [[True, True]])), ("a", "float64", [], ("f8", 1.5)),
    ("m", ms.string, [2], ("U4", ["x", "long"])), ("m", "string", [2, -1], ("U4", [["x"], ["long"]])),
    ("m", ms.uint8, None, ("u1", list(b"xlong"))), ("m", "uint8", [2, -1], ("u1", list(b"xlong"))),
    ("s", "uint8", [2, 1], ("u1", [[97], [98]]))])
def test_a_schema_gives_dtypes_and_shapes(tmp_path, name, dtype, shape, expected):
    schema = ds.Schema()
    schema.add_column(name, dtype, shape)
    path = _write(tmp_path / "a.tfrecord", ROWS[:1])
    (tmp_path / "schema.json").write_text(schema.to_json())
    for given in (schema, tmp_path / "schema.json"):
        assert _rows(ds.TFRecordDataset(path, given, shuffle=False)) == [{name: expected}]


def test_files_are_read_in_the_order_of_their_names(tmp_path):
    for number, pack in enumerate((None, "GZIP", "ZLIB")):
        path = _write(tmp_path / f"f{number}", [{"z": [10 * number + i]} for i in range(3)])
        if pack:
            path.write_bytes((gzip.compress if pack == "GZIP" else zlib.compress)(path.read_bytes()))
        assert [row["z"][1] for row in _rows(ds.TFRecordDataset(path, shuffle=False, compression_type=pack))] == [
            [10 * number + i] for i in range(3)]
    paths = [_write(tmp_path / f"f{number}", [{"z": [10 * number + i]} for i in range(3)]) for number in (2, 0, 1)]

    def numbers(files: Any, **given: Any) -> list[int]:
        return [row["z"][1][0] for row in _rows(ds.TFRecordDataset(files, **given))]

    assert numbers(paths, shuffle=False) == numbers(str(tmp_path / "f*"), shuffle=False) == [
        0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert sorted(numbers(paths, shuffle=ds.Shuffle.GLOBAL)) == numbers(paths, shuffle=False)
    assert numbers(paths, shuffle=False, num_shards=3, shard_id=1, shard_equal_rows=True) == [1, 11, 21]


def test_a_schema_is_read_and_written(tmp_path):
    stated = {"datasetType": "TF", "numRows": 1, "columns": {
        "z": {"type": "int64", "rank": 1, "shape": [2]}, "a": {"type": "float32", "rank": 0}}}
    (tmp_path / "s.json").write_text(json.dumps(stated))
    schema = ds.Schema(str(tmp_path / "s.json"))
    assert list(schema.columns) == ["a", "z"] and schema.columns["a"][1] == []
    assert ds.Schema.get_num_rows(schema) == ds.Schema.get_num_rows(tmp_path / "s.json") == 1
    again = ds.Schema()
    again.from_json(json.loads(str(schema)))
    assert again.to_json() == schema.to_json()
    assert len(ds.TFRecordDataset(_write(tmp_path / "a", ROWS), schema)) == 1
    for wrong in ([{"name": "x"}], [{"type": "int8"}]):
        with pytest.raises(ArgumentError, match="a column has no"):
            schema.parse_columns(wrong)
    with pytest.raises(ArgumentError, match="no 'columns'"):
        schema.from_json({})


def _kind(dtype: str, shape: list[int] | None = None, name: str = "z") -> ds.Schema:
    schema = ds.Schema()
    schema.add_column(name, dtype, shape)
    return schema


@pytest.mark.parametrize("given, message", [
    ({"columns_list": ["q"]}, "record 0: column 'q': it has no values"),
    ({"schema": _kind("string")}, "int64 is no text"), ({"schema": _kind("int8", name="s")}, "text cannot"),
    ({"schema": _kind("int64", [3])}, "column 'z': cannot reshape"),
    ({"compression_type": "LZ4"}, "compression_type must be one of"),
    ({"compression_type": "GZIP"}, "no file compressed")])
def test_rows_that_do_not_fit_are_refused(tmp_path, given, message):
    path = _write(tmp_path / "a", ROWS)
    with pytest.raises((ArgumentError, FileFormatError), match=message):
        _rows(ds.TFRecordDataset(path, shuffle=False, **given))


def test_damaged_files_are_refused(tmp_path):
    """No byte of a file can be changed, and none left out but whole records, without an error."""
    content = _write(tmp_path / "a", ROWS[:1]).read_bytes()
    for at in range(len(content)):
        (tmp_path / "a").write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1:])
        with pytest.raises(FileFormatError, match=r"begins no record|ends behind|checksum"):
            _rows(ds.TFRecordDataset(tmp_path / "a", shuffle=False))
        if at:
            (tmp_path / "a").write_bytes(content[:at])
            with pytest.raises(FileFormatError, match=r"begins no record|ends behind"):
                ds.TFRecordDataset(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(ArgumentError, match="have no records"):
        ds.TFRecordDataset(tmp_path / "a")
    with pytest.raises(ArgumentError, match="did not match any files"):
        ds.TFRecordDataset([tmp_path / "none"])


@pytest.mark.parametrize("feature, message", [
    (field(2, field(1, b"abc")), "floats of four bytes"), (field(3, field(1, b"\x80")), "at most ten bytes"),
    (field(3, field(1, b"\x80" * 10 + b"\x01")), "at most ten bytes"), (field(1, b"\x0b"), "a number or bytes"),
    (field(3, b"\x0a\x7f"), "127 bytes")])
def test_damaged_features_are_refused(tmp_path, feature, message):
    (tmp_path / "a").write_bytes(tfrecord.record_of(field(1, field(1, field(1, "x") + field(2, feature)))))
    with pytest.raises(FileFormatError, match=message):
        ds.TFRecordDataset(tmp_path / "a")
