"""Files of records: opreg reads MXNet's, MXNet reads opreg's, and damage is noticed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import opreg as mx
from opreg.errors import ArgumentError, FileFormatError, OpError
from tests.recorded.mxnet_images import FILE, LABELS, MAGIC, RECORDS, picture

MXNET = np.load(FILE)
PIECES = some.lists(some.sampled_from([MAGIC, b"", b"a", b"bc", b"def", b"\0\0\0\0", MAGIC[:2], MAGIC[2:]])
                    | some.binary(max_size=9), max_size=6).map(b"".join)


def write(path, records) -> bytes:
    with mx.recordio.MXRecordIO(str(path), "w") as file:
        for record in records:
            file.write(record)
    return path.read_bytes()


def read(path, data=None, damaged="refuse") -> tuple[list[bytes], int]:
    if data is not None:
        path.write_bytes(data)
    with mx.recordio.MXRecordIO(str(path), "r", damaged=damaged) as file:
        records = []
        while (record := file.read()) is not None:
            records.append(record)
        assert file.read() is None
        return records, file.skipped


def interrupted(file) -> None:
    with file:
        file.write(b"half")
        raise ZeroDivisionError


@pytest.fixture
def theirs(tmp_path) -> Path:
    """Files that MXNet wrote."""
    for extension in ("idx", "rec"):
        (tmp_path / f"theirs.{extension}").write_bytes(MXNET[extension].tobytes())
    return tmp_path / "theirs"


def test_files_of_mxnet_are_read(theirs):
    records, _ = read(theirs.with_suffix(".rec"))
    assert records[:len(RECORDS)] == RECORDS
    with mx.recordio.MXIndexedRecordIO(f"{theirs}.idx", f"{theirs}.rec", "r") as file:
        assert file.keys == [*range(len(RECORDS)), *range(100, 100 + len(LABELS))]
        for key in reversed(range(len(RECORDS))):
            assert file.read_idx(key) == RECORDS[key]
        for key, label in enumerate(LABELS):
            header, image = mx.recordio.unpack(file.read_idx(100 + key))
            assert np.array_equal(header.label, label) and header.id == 7 + key and image[1:4] == b"PNG"
            assert header.flag == (0 if isinstance(label, float) else len(label))


def test_written_files_are_those_of_mxnet(theirs, tmp_path):
    records, _ = read(theirs.with_suffix(".rec"))
    keys = [*range(len(RECORDS)), *range(100, 100 + len(LABELS))]
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w") as file:
        for key, record in zip(keys, records):
            file.write_idx(key, record)
    for extension in ("idx", "rec"):
        assert (tmp_path / f"a.{extension}").read_bytes() == MXNET[extension].tobytes()
    for label, record in zip(LABELS, records[len(RECORDS):]):
        header, image = mx.recordio.unpack(record)
        assert mx.recordio.pack(mx.recordio.IRHeader(9, label, header.id, 0), image) == record


@given(records=some.lists(PIECES, max_size=8))
@settings(max_examples=60, deadline=None)
def test_written_records_are_read(records, tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "a.rec"
    data = write(path, records)
    assert len(data) % 4 == 0 and read(path) == (records, 0)
    with mx.recordio.MXRecordIO(str(path), "r") as file:
        assert len(list(file._io.starts())) == len(records)


def test_a_file_cut_anywhere_gives_its_complete_records(tmp_path):
    path = tmp_path / "a.rec"
    data = write(path, RECORDS)
    for length in range(len(data)):
        found, skipped = read(path, data[:length], "skip")
        assert found == RECORDS[:len(found)] and skipped <= 1
        if skipped:
            with pytest.raises(FileFormatError, match="at byte"):
                read(path)
        else:
            assert write(tmp_path / "b.rec", found) == data[:length]


def test_flipped_bits_cost_their_record(tmp_path):
    """A flipped bit in a magic number also costs the record before, since the length might be too small."""
    path = tmp_path / "a.rec"
    records = [b"one" * 5, b"twotwo", b"3" * 40, b""]
    data, heads = write(path, records), []
    with mx.recordio.MXRecordIO(str(path), "r") as file:
        heads = [at + i for at in file._io.starts() for i in range(8)]
    for at in range(len(data)):
        for bit in (4, 32, 128):
            broken = bytearray(data)
            broken[at] ^= bit
            found, skipped = read(path, bytes(broken), "skip")
            least = len(records) - (2 if data[at - at % 4:][:4] == MAGIC else 1)
            assert sum(record in records for record in found) >= least
            assert skipped == 1 or at not in heads


def test_nonzero_padding_is_damage(tmp_path):
    path = tmp_path / "a.rec"
    data = write(path, [b"one", b"two"])
    for bit in range(8):
        broken = data[:11] + bytes([1 << bit]) + data[12:]
        assert read(path, broken, "skip") == ([b"two"], 1)
        with pytest.raises(FileFormatError, match="at byte 0 is shorter than the 3 bytes that its header gives"):
            read(path)


@given(data=some.lists(some.sampled_from([MAGIC, b"\0\0\0\0", b"\4\0\0\0", b"\0\0\0\x20", b"\0\0\0\x60",
                                         b"\xff\xff\xff\x1f", b"\xff\xff\xff\xff"]) | some.binary(max_size=5),
                       max_size=12).map(b"".join))
@settings(max_examples=150, deadline=None)
def test_random_bytes_are_read_without_hanging(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("nonsense") / "a.rec"
    found, skipped = read(path, data, "skip")
    assert sum(map(len, found)) <= len(data)
    with mx.recordio.MXRecordIO(str(path), "r") as file:
        errors = 0
        while True:
            try:
                if file.read() is None:
                    break
            except FileFormatError:
                errors += 1
        assert errors == skipped and len(list(file._io.starts())) <= len(data) // 4 + 1


def test_a_false_length_allocates_nothing(tmp_path):
    path = tmp_path / "a.rec"
    data = write(path, [b"before", b"middle", b"after"])
    lying = data[:20] + struct.pack("<I", (1 << 29) - 1) + data[24:]
    assert read(path, lying, "skip") == ([b"before", b"after"], 1)
    with pytest.raises(FileFormatError, match="at byte 16 has 536870911 bytes according to its header, but the file "
                                              "has only 24 more"):
        read(path)


def test_the_next_record_is_found_across_blocks(tmp_path):
    path = tmp_path / "a.rec"
    for size in range((1 << 16) - 16, (1 << 16) + 16, 4):
        assert read(path, bytes(size) + write(path, [b"found"]), "skip") == ([b"found"], 1)


def test_reading_continues_after_a_refused_record(tmp_path):
    path = tmp_path / "a.rec"
    data = write(path, [b"one", b"two"])
    path.write_bytes(b"????" + data[4:])
    with mx.recordio.MXRecordIO(str(path), "r") as file:
        with pytest.raises(FileFormatError, match="no magic number"):
            file.read()
        assert file.read() == b"two"


def test_a_file_appears_when_it_is_closed(tmp_path):
    path = tmp_path / "a.rec"
    write(path, [b"old"])
    file = mx.recordio.MXRecordIO(str(path), "w")
    file.write(b"new")
    assert read(path) == ([b"old"], 0)
    file.close()
    file.close()
    assert read(path) == ([b"new"], 0)
    with pytest.raises(ZeroDivisionError):
        interrupted(mx.recordio.MXRecordIO(str(path), "w"))
    assert read(path) == ([b"new"], 0)
    file = mx.recordio.MXRecordIO(str(path), "w")
    file.write(b"forgotten")
    del file
    assert read(path) == ([b"forgotten"], 0)
    assert os.listdir(tmp_path) == ["a.rec"]


def test_keys_and_records_appear_together(tmp_path):
    names = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    with pytest.raises(ZeroDivisionError):
        interrupted(mx.recordio.MXIndexedRecordIO(*names, "w"))
    assert not os.listdir(tmp_path)
    with mx.recordio.MXIndexedRecordIO(*names, "w", key_type=str) as file:
        file.write_idx("a", b"first")
        assert file.tell() == 16
        file.write_idx("b", b"second")
    with mx.recordio.MXIndexedRecordIO(*names, "r", key_type=str) as file:
        assert file.read_idx("b") == b"second" and file.read_idx("a") == b"first" and file.read() == b"second"
        with pytest.raises(KeyError, match="no key"):
            file.read_idx("c")
        file.idx["c"] = 999
        with pytest.raises(FileFormatError, match="begins at byte 999"):
            file.read_idx("c")
        copy = pickle.loads(pickle.dumps(file))
        assert copy.read_idx("a") == b"first" and copy.keys == ["a", "b"]


def test_an_invalid_index_file_is_refused(tmp_path):
    write(tmp_path / "a.rec", [b"x"])
    for text in ("0", "0 16", "x\t0", "0\tx"):
        (tmp_path / "a.idx").write_text(f"\n{text}\n")
        with pytest.raises(FileFormatError, match="line 2"):
            mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
    with pytest.raises(FileNotFoundError):
        mx.recordio.MXIndexedRecordIO(str(tmp_path / "b.idx"), str(tmp_path / "a.rec"), "r")


def _in_child(file, indexed, answers):
    try:
        answers.put(indexed.read_idx(1))
        file.read()
    except OpError as error:
        answers.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_files_are_reopened_in_a_forked_process(tmp_path):
    names = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    with mx.recordio.MXIndexedRecordIO(*names, "w") as file:
        for key in range(3):
            file.write_idx(key, b"%d" % key)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    with mx.recordio.MXRecordIO(names[1], "r") as file, mx.recordio.MXIndexedRecordIO(*names, "r") as indexed, \
            mx.recordio.MXRecordIO(str(tmp_path / "b.rec"), "w") as writer:
        writer.write(b"of the parent")
        child = context.Process(target=_in_child, args=(file, indexed, answers))
        child.start()
        assert answers.get(timeout=60) == b"1" and "another process" in answers.get(timeout=60)
        child.join()
        assert file.read() == b"0" and not (tmp_path / "b.rec").exists()
    assert read(tmp_path / "b.rec") == ([b"of the parent"], 0)


def test_wrong_uses_of_record_files_are_refused(tmp_path):
    path = str(tmp_path / "a.rec")
    with pytest.raises(ArgumentError, match="there is no flag 'rw'"):
        mx.recordio.MXRecordIO(path, "rw")
    with pytest.raises(ArgumentError, match="Did you mean 'skip'"):
        mx.recordio.MXRecordIO(path, "r", damaged="skp")
    with pytest.raises(FileNotFoundError):
        mx.recordio.MXRecordIO(path, "r")
    file = mx.recordio.MXRecordIO(path, "w")
    for wrong, words in (("text", r"got str; encode text, text\.encode\(\)"), (3, "got int"), (None, "got NoneType")):
        with pytest.raises(ArgumentError, match=f"expected a record as bytes, {words}"):
            file.write(wrong)
    for call in (file.read, lambda: pickle.dumps(file)):
        with pytest.raises(ArgumentError, match="writ"):
            call()
    file.close()
    with pytest.raises(ArgumentError, match="is closed"):
        file.write(b"x")
    with mx.recordio.MXRecordIO(path, "r") as file, pytest.raises(ArgumentError, match="opened to read"):
        file.write(b"x")


@pytest.mark.parametrize("label", [2, 2.5, np.float32(2), [1, 2], np.arange(3.0), []])
def test_headers_of_images_are_packed_and_unpacked(label):
    header, data = mx.recordio.unpack(mx.recordio.pack((0, label, 2 ** 40, 3), b"data"))
    assert data == b"data" and (header.id, header.id2) == (2 ** 40, 3)
    assert np.array_equal(header.label, label if np.size(label) else 0)


def test_invalid_image_headers_are_refused():
    for record in (b"", b"x" * 23, struct.pack("<IfQQ", 5, 0, 0, 0) + b"x" * 19):
        with pytest.raises(FileFormatError, match="too short"):
            mx.recordio.unpack(record)
    for header in ((0, 1.0, -1, 0), (0, 1.0, 2 ** 64, 0), (0, 1e300, 0, 0)):
        with pytest.raises(ArgumentError, match="not the header"):
            mx.recordio.pack(header, b"")


def test_images_are_packed_into_records(theirs):
    pytest.importorskip("PIL")
    records, _ = read(theirs.with_suffix(".rec"))
    header, image = mx.recordio.unpack_img(records[-1])
    assert header.label.tolist() == LABELS[1] and np.array_equal(image[:, :, ::-1], picture())
    assert mx.recordio.unpack_img(records[-1], 0)[1].shape == (18, 24)
    for shape in ((6, 5), (6, 5, 3), (6, 5, 4)):
        pixels = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
        record = mx.recordio.pack_img(mx.recordio.IRHeader(0, 1.0, 0, 0), pixels, img_fmt=".png", quality=3)
        assert np.array_equal(mx.recordio.unpack_img(record)[1], pixels)
    smooth = picture()[:, :, ::-1]
    record = mx.recordio.pack_img((0, 1.0, 0, 0), smooth, quality=95)
    assert mx.recordio.unpack(record)[1][:2] == b"\xff\xd8"
    assert np.abs(mx.recordio.unpack_img(record)[1].astype(int) - smooth).mean() < 12
    with pytest.raises(ArgumentError, match="img_fmt"):
        mx.recordio.pack_img((0, 1.0, 0, 0), smooth, img_fmt=".xyz")
    with pytest.raises(ArgumentError, match="uint8"):
        mx.recordio.pack_img((0, 1.0, 0, 0), smooth.astype(np.float32))
