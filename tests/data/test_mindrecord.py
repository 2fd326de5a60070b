"""MindRecord files: a recorded one, round trips, damaged files, and datasets over them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opreg import dataset as ds
from opreg.data.mindrecord import FileReader, FileWriter
from opreg.errors import ArgumentError, FileFormatError

#: A file that MindSpore 2.10 has written, of the rows below.
RECORDED = zlib.decompress(base64.b85decode(
    'c-rmKzi-n(6u|MMl@J3%VX7E!HdW(P{k62I7%L$mB!;SrF7YL`<R6jGEh$x`O8gZtLDheP307d`?*X1KcI`w+EM@zCTF1Hf?%h3~(^+jfSL)2@'
    'z+`<JzBOvUv)$d@@>G}vX4)TxCJL<DKe=iK)V>-iPuby_iFH4e@#f51o+06XO-XcYmM5KhYNE%+ZE2FApQUeHraO<%XO-W}hIjVLaeg_Gu{t__'
    'anyg_d(~5ocvV=eH_p=Yi3G|An<vuI$eO%t!Jg?Xs7h?Ev;3|R_Z-d6HXEIF7CPJW7aM!od;LHAI$hYj>+fvudTN-)lgwBfrb(Ib{p!fwHiIY~'
    ')bCk^@mSiskZY=B!NAy|bS|4%RhM1K`<IXMu|`p<^X)A)^IXq&@i57|zKhD5b$D=@8(W0k>#yTB&%$I}Brb}mJZcd>dDf9O>J{hvOq(-&&#$Mr'
    'W{PcR^?B(aD2~9m2eh${qK#O7iJ2LuS)l%Mta)hja46H0^C*&jOjewqtlr(&RI?TU00000000000000000000000000Nk(6;&8Rq`dxl~AXi)d'
    '=GNx7>jU{Xl>fu-a$&nFd??q-TKng(y7c->vwUZ{bfqeNR1DXpbn>{`*zNpvX$b%T000000000000000000000000000000000000000000000'
    '00000000000Pfe5^8W7A=zDR$34_*cqGR)Mz0UkN`24=`L9%U^z0rfG&HT5!{EExp>VY2o0cTt~1p'))
ROWS = [{"id": i, "name": "ab" * i, "f": 0.1 * i, "x": np.arange(4, dtype="f4").reshape(2, 2) - i,
         "v": np.array([1, -300, 70000, 2**40])[:i + 1], "img": bytes([0, i, 255])} for i in range(3)]
SCHEMA: dict[str, dict[str, Any]] = {"id": {"type": "int32"}, "name": {"type": "string"}, "f": {"type": "float64"},
                                     "x": {"type": "float32", "shape": [2, 2]}, "v": {"type": "int64", "shape": [-1]},
                                     "img": {"type": "bytes"}}


def alike(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected):
        assert row.keys() == wanted.keys()
        for name, value in wanted.items():
            assert type(row[name]) is type(value)
            np.testing.assert_array_equal(row[name], value)
            assert getattr(row[name], "dtype", None) == getattr(value, "dtype", None)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    (tmp_path / "small.mindrecord").write_bytes(RECORDED)
    return tmp_path / "small.mindrecord"


def written(path: Path, rows: list[dict[str, Any]], schema: dict[str, Any], shards: int = 1) -> Path:
    writer = FileWriter(path, shards, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    assert writer.add_schema(schema) == 0
    writer.write_raw_data(rows[:1])
    writer.write_raw_data(rows[1:])
    writer.commit()
    return path


def test_the_reader_gives_the_rows_that_mindspore_wrote(recorded: Path) -> None:
    reader = FileReader(recorded)
    alike(list(reader.get_next()), ROWS)
    assert (reader.len(), reader.schema()["x"]) == (3, {"type": "float32", "shape": [2, 2]})
    alike(list(FileReader([recorded], columns=["id"]).get_next()), [{"id": row["id"]} for row in ROWS])


def test_the_pages_of_a_file_have_the_bytes_of_mindspore(recorded: Path, tmp_path: Path) -> None:
    """The blob page, and the raw page except for the length of numbers, are MindSpore's."""
    path = written(tmp_path / "mine", ROWS, SCHEMA)
    assert path.read_bytes()[1 << 14:(1 << 14) + (1 << 15)] == RECORDED[1 << 14:(1 << 14) + (1 << 15)]


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_come_back(shards: int, tmp_path: Path) -> None:
    """Rows of many pages, in one file or several; a name of one of them reads all."""
    rows = [{"k": (-1) ** i * 3 ** (i % 39), "t": "ä" * i, "f": i / 7, "b": bytes(997),
             "v": np.array([7 ** i % 2 ** 31 * (-1) ** i, 1], "i4")} for i in range(100)]
    schema = {"k": {"type": "int64"}, "t": {"type": "string"}, "f": {"type": "float32"}, "b": {"type": "bytes"},
              "v": {"type": "int32", "shape": [2]}}
    path = written(tmp_path / "rows", rows, schema, shards)
    first = path if shards == 1 else Path(f"{path}0")
    found = list(FileReader(first).get_next())
    alike(sorted(found, key=lambda row: row["f"]), rows)
    for schema_of_one, row in (({"v": {"type": "int64", "shape": [-1]}}, {"v": np.arange(-9, 300)}),
                               ({"n": {"type": "int64"}}, {"n": -2 ** 62}), ({"b": {"type": "bytes"}}, {"b": b""})):
        alike(list(FileReader(written(tmp_path / "one", [row], schema_of_one)).get_next()), [row])


def test_damaged_files_are_refused(recorded: Path) -> None:
    """A file that is cut or changed anywhere is read, or refused by name."""
    whole = recorded.read_bytes()
    blobs, raw = 1 << 14, (1 << 14) + (1 << 15)
    places = [*range(16), *range(16, 700, 23), *range(blobs, blobs + 150, 3), *range(raw, len(whole))]
    refused = 0
    for at in places:
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:]):
            recorded.unlink()  # a file that is mapped is replaced, not cut
            recorded.write_bytes(data)
            try:
                list(FileReader([recorded]).get_next())
            except FileFormatError as error:
                refused += "small.mindrecord" in str(error)
    assert refused > len(places)


@pytest.mark.parametrize(("call", "said"), [
    (lambda w: w.write_raw_data([{"id": 1}]), "expected a dict with the fields"),
    (lambda w: w.write_raw_data([{**ROWS[0], "id": 2 ** 31}]), "'id': 2147483648 is no int32"),
    (lambda w: w.write_raw_data([{**ROWS[0], "name": 3}]), "'name': expected string, got int"),
    (lambda w: w.write_raw_data([{**ROWS[0], "x": np.zeros((2, 3), "f4")}]), "shape (2, 2), got float32 of shape"),
    (lambda w: w.write_raw_data([{**ROWS[0], "img": bytes(1 << 15)}]), "does not fit into a page"),
    (lambda w: w.add_schema(SCHEMA), "a schema already"),
    (lambda w: w.add_index(["img"]), "an index needs a field of numbers or text, got 'img'"),
    (lambda w: FileWriter("x").add_schema({"a": {"type": "int16"}}), "unknown type 'int16'. Did you mean 'int64'"),
    (lambda w: FileWriter("x").write_raw_data([]), "call add_schema before"),
    (lambda w: w.set_page_size(5), "page_size must be a multiple of 4 from"),
], ids=range(10))
def test_mistakes_in_calls_of_a_writer_are_named(call: Callable[[FileWriter], Any], said: str, tmp_path: Path) -> None:
    writer = FileWriter(tmp_path / "rows")
    writer.set_page_size(1 << 15)
    writer.add_schema(SCHEMA)
    with pytest.raises(ArgumentError) as error:
        call(writer)
    assert said in str(error.value)
    del writer, error
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_kept(recorded: Path) -> None:
    with pytest.raises(ArgumentError, match="exists; overwrite=True replaces it"):
        FileWriter(recorded)


def test_a_mind_dataset_gives_the_columns_and_rows_of_a_file(recorded: Path) -> None:
    rows = list(ds.MindDataset(recorded, shuffle=False).create_dict_iterator(output_numpy=True))
    assert list(rows[0]) == ["f", "id", "img", "name", "v", "x"]
    assert [(row["id"].dtype, row["id"].shape, row["img"].tolist(), str(row["name"])) for row in rows[:2]] == [
        (np.int32, (), [b"\0\0\xff"], ""), (np.int32, (), [b"\0\1\xff"], "ab")]
    padded = ds.MindDataset([recorded], ["id", "f"], shuffle=False, padded_sample={"id": 9, "f": 1.0}, num_padded=2)
    assert [batch["id"].asnumpy().tolist() for batch in padded.batch(2).create_dict_iterator()] == [[0, 1], [2, 9], [9]]
    assert padded.get_dataset_size() == 5
    assert sorted(row[0].item() for row in ds.MindDataset(recorded, ["id"])) == [0, 1, 2]
    with pytest.raises(ArgumentError, match=r"no column 'idd'\. Did you mean 'id'"):
        ds.MindDataset(recorded, ["idd"])
