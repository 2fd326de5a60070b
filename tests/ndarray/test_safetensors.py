"""Files of the safetensors format: written for other libraries, read from them, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.errors import ArgumentError, DTypeError, FileFormatError
from opreg.ndarray.formats import load, save
from opreg.ndarray.records import Record
from opreg.ndarray.safetensors_file import DTYPES

ml_dtypes = pytest.importorskip("ml_dtypes", reason="has bfloat16")


def every_dtype() -> dict[str, np.ndarray]:
    """An array of each dtype, narrow dtypes first, with odd lengths."""
    arrays = {name: np.array([[0, 1, 2], [3, 1, 7]]).astype(name) for name, _ in sorted(DTYPES.values())}
    return {"é \"quoted\"": np.ones(3, np.int8), **arrays, "scalar": np.array(2.5, np.float32),
            "none": np.zeros((0, 4), np.float64), "big": np.arange(3, dtype=">i4"),
            "strided": np.arange(12.0).reshape(3, 4).T[::2]}


def stored(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_written_files_are_read(tmp_path: Path) -> None:
    arrays = every_dtype()
    save(tmp_path / "a.safetensors", [Record(each) for each in arrays.values()], [*arrays])
    (tmp_path / "other name").write_bytes((tmp_path / "a.safetensors").read_bytes())
    records, names = load(tmp_path / "other name")
    assert names == [*arrays]
    for name, record in zip(names, records):
        assert record.array is not None
        assert record.array.dtype == arrays[name].dtype.newbyteorder("=") and record.array.flags.writeable
        np.testing.assert_array_equal(record.array, arrays[name])


def test_the_safetensors_package_reads_our_files(tmp_path: Path) -> None:
    other = pytest.importorskip("safetensors.numpy", reason="the package reads it")
    arrays = every_dtype()
    save(tmp_path / "a.safetensors", [Record(each) for each in arrays.values()], [*arrays])
    found = other.load_file(tmp_path / "a.safetensors")
    assert found.keys() == arrays.keys()
    for name, each in found.items():
        np.testing.assert_array_equal(each, arrays[name])
        assert each.dtype == arrays[name].dtype.newbyteorder("=")


def test_files_of_the_safetensors_package_are_read(tmp_path: Path) -> None:
    other = pytest.importorskip("safetensors.numpy", reason="the package writes it")
    arrays = {name: each for name, each in every_dtype().items() if name not in ("strided", "big")}
    other.save_file(arrays, tmp_path / "a.safetensors", metadata={"format": "np"})
    records, names = load(tmp_path / "a.safetensors")
    assert sorted(names) == sorted(arrays)
    for name, record in zip(names, records):
        np.testing.assert_array_equal(record.array, arrays[name])
        assert record.array is not None and record.array.dtype == arrays[name].dtype


def test_arrays_begin_at_multiples_of_their_item_size(tmp_path: Path) -> None:
    """Elements are aligned for readers that map a file into memory."""
    arrays = every_dtype()
    save(tmp_path / "a.safetensors", [Record(each) for each in arrays.values()], [*arrays])
    content = (tmp_path / "a.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    for name, said in json.loads(content[8:8 + length]).items():
        assert (8 + length + said["data_offsets"][0]) % arrays[name].itemsize == 0, name


def test_arrays_and_cells_are_saved_and_loaded(tmp_path: Path) -> None:
    path = str(tmp_path / "a.safetensors")
    mx.nd.save(path, {"w": mx.nd.ones((2, 3)), "h": mx.nd.ones((2,), dtype="bfloat16")})
    found = mx.nd.load(path)
    assert [(name, np.dtype(each.dtype).name, each.shape) for name, each in found.items()] == [
        ("w", "float32", (2, 3)), ("h", "bfloat16", (2,))]
    net = mx.nn.Dense(3, 2)
    mx.save_checkpoint(net, str(tmp_path / "net"), format="safetensors")
    assert [*load(tmp_path / "net.safetensors")[1]] == ["weight", "bias"]
    assert mx.load_checkpoint(str(tmp_path / "net.safetensors")).keys() == {"weight", "bias"}
    with pytest.raises(ValueError, match="'ckpt' or 'safetensors', got 'npy'"):
        mx.save_checkpoint(net, str(tmp_path / "net"), format="npy")


@pytest.mark.parametrize("array, name, kind, message", [
    (None, "a", ArgumentError, "cannot hold None"),
    (np.array(["text"]), "a", DTypeError, "has no dtype <U4, but bool, uint8,"),
    (np.ones(1, np.complex128), "a", DTypeError, "has no dtype complex128"),
    (np.ones(1), "__metadata__", ArgumentError, "reserves this name"),
    (np.ones(1), None, ArgumentError, "have names: save a dict"),
], ids=["no array", "text", "complex128", "metadata", "no names"])
def test_arrays_that_a_safetensors_file_cannot_hold(tmp_path: Path, array: np.ndarray | None, name: str | None,
                                                    kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        save(tmp_path / "a.safetensors", [Record(array)], [name] if name else ())
    assert not [*tmp_path.iterdir()]


DAMAGED = {
    "header beyond the file": ((1 << 40).to_bytes(8, "little") + b"{}", "at most 2, what is left of the file"),
    "no JSON": (stored(b"{w}"), "header: line 1, column 2: no JSON"),
    "no text": (stored(b"{\xff}"), "no JSON: it is no text"),
    "twice": (stored(b'{"w": 1, "w": 2}'), "'w' stands twice"),
    "nested": (stored(b'{"w":' * 50000), "nested too deeply|no JSON"),
    "no entry": (stored({"w": 3}), "expected dtype, shape and data_offsets, found 3"),
    "more in an entry": (stored({"w": {**entry(), "more": 1}}, bytes(8)), "expected dtype, shape and data_offsets"),
    "dtype": (stored({"w": entry("F8_E4M3", (2,), (0, 2))}, bytes(2)), "a dtype of BOOL, U8.*, found 'F8_E4M3'"),
    "dtype is a list": (stored({"w": entry(["F32"])}, bytes(8)), "a dtype of"),
    "negative": (stored({"w": entry(shape=(-2,))}, bytes(8)), "expected a shape"),
    "no integers": (stored({"w": entry(shape=(2.0,))}, bytes(8)), "expected a shape"),
    "many dimensions": (stored({"w": entry(shape=(1,) * 65, offsets=(0, 4))}, bytes(4)), "at most 64 dimensions"),
    "three offsets": (stored({"w": entry(offsets=(0, 8, 9))}, bytes(8)), "two data_offsets"),
    "length": (stored({"w": entry(offsets=(0, 12))}, bytes(12)), r"expected 8 bytes, float32 \(2,\), found 12"),
    "absurd": (stored({"w": entry(shape=(0, 1 << 62), offsets=(0, 0))}), "a shape that an array may have"),
    "beyond the end": (stored({"w": entry()}, bytes(7)), "arrays up to the end of the file"),
    "bytes behind": (stored({"w": entry()}, bytes(9)), "arrays up to the end of the file"),
    "gap": (stored({"w": entry(offsets=(1, 9))}, bytes(9)), "an array that begins at byte"),
    "overlap": (stored({"w": entry(), "v": entry(offsets=(4, 12))}, bytes(12)), "where the one before it ends"),
    "metadata": (stored({"__metadata__": {"a": 1}}), "expected texts by name"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    content, message = DAMAGED[name]
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        load(tmp_path / "a.safetensors")


def test_a_file_may_hold_no_arrays(tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", [])
    assert load(tmp_path / "a.safetensors") == ([], [])


def test_bfloat16_is_refused_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(stored({"w": entry("BF16", (1,), (0, 2))}, bytes(2)))
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(FileFormatError, match="ml_dtypes to be installed"):
        load(tmp_path / "a")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = tmp_path_factory.mktemp("safetensors") / "a.safetensors"
    save(path, [Record(np.arange(6.0).reshape(2, 3)), Record(np.arange(3, dtype=np.int8))], ["weight", "bias"])
    return path, path.read_bytes()


@settings(max_examples=300)
@given(st.data())
def test_no_changed_or_missing_byte_does_harm(sound: tuple[Path, bytes], data: st.DataObject) -> None:
    path, content = sound
    at, value = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 255))
    changed = data.draw(st.sampled_from([content[:at], content[:at] + bytes([value]) + content[at + 1:]]))
    path.write_bytes(changed)
    try:
        records, _ = load(path)
    except FileFormatError:
        return
    assert sum(record.array.nbytes for record in records if record.array is not None) <= len(content)
