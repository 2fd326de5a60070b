"""Parameter files of PyTorch and MindSpore: opreg reads them, runs no code in them, and reports damage."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opreg as mx
from opreg.core.slots import Slot
from opreg.errors import FileFormatError, OpError
from opreg.ndarray.formats import MINDSPORE_WRITER, TORCH_WRITER, load, save
from opreg.ndarray.records import Record

ml_dtypes = pytest.importorskip("ml_dtypes", reason="has bfloat16")

DATA = Path(__file__).parent.parent / "recorded"
TORCH, TRAINING = DATA / "torch_state.pt", DATA / "torch_training.pt"
OLD = DATA / "torch_old_state.pt"  # the same, as PyTorch wrote it before 1.6
PLAIN, CHECKED = DATA / "mindspore_plain.ckpt", DATA / "mindspore_checked.ckpt"
MOST_DAMAGED = 300


def read(path: Path) -> dict[str, np.ndarray]:
    records, names = load(path)
    assert len(set(names)) == len(records)
    return {name: np.asarray(record.array) for name, record in zip(names, records)}


def compared(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert list(found) == list(wanted)
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype and array.flags.writeable
        np.testing.assert_array_equal(array, wanted[name])


@pytest.mark.parametrize("path", [TORCH, OLD], ids=lambda path: path.name)
def test_a_state_dict_of_pytorch_is_read(path: Path) -> None:
    """Every dtype, views that share a storage, parameters, and empty tensors."""
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    halves = np.array([1.5, -2])
    compared(read(path), {
        "w": w, "turned": w.T, "row": w[1], "half": halves.astype(np.float16),
        "brain": halves.astype(ml_dtypes.bfloat16), "double": np.array([0.1]), "count": np.array(7),
        "small": np.array([-1, 2], np.int8), "byte": np.array([200], np.uint8), "flag": np.array([True, False]),
        "none": np.zeros((0, 4), np.float32), "trains": np.ones(2, np.float32), "int": np.array([3], np.int32),
        "short": np.array([3], np.int16)})


def test_names_of_nested_dicts_are_joined_by_dots() -> None:
    """Names of nested dicts are joined by dots; values that are no tensors are left out with a warning."""
    with pytest.warns(UserWarning, match=r"entries that are not tensors are left out: epoch, optimizer"):
        found = read(TRAINING)
    assert [name for name in found if name.startswith("model")] == [
        "model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias", "model.1.running_mean",
        "model.1.running_var", "model.1.num_batches_tracked"]
    assert found["optimizer.state.0.exp_avg"].shape == (2, 2)


def test_a_checkpoint_of_mindspore_is_read() -> None:
    w, halves = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1.5, -2])
    compared(read(PLAIN), {"w": w, "n": np.array(3.5, np.float32), "h": np.array([1, 2], np.float16),
                           "i": np.array([[5]]), "b": np.array([True, False]), "bf": halves.astype(ml_dtypes.bfloat16)})
    compared(read(CHECKED), {"w": w, "epoch": np.array(7), "lr": np.array(0.5, np.float32)})


def test_load_and_load_checkpoint_read_files_of_other_frameworks() -> None:
    for path in (PLAIN, TORCH):
        np.testing.assert_array_equal(mx.load_checkpoint(str(path))["w"].asnumpy(), read(path)["w"])
        np.testing.assert_array_equal(mx.nd.load(str(path))["w"].asnumpy(), read(path)["w"])


def value(name: str, shape: list[int], numbers: bytes, dtype: str = "Float32") -> bytes:
    lengths = b"".join(b"\x08" + bytes([dim]) for dim in shape)
    tensor = lengths + b"\x12" + bytes([len(dtype)]) + dtype.encode() + b"\x1a" + bytes([len(numbers)]) + numbers
    inner = b"\n" + bytes([len(name)]) + name.encode() + b"\x12" + bytes([len(tensor)]) + tensor
    return b"\n" + bytes([len(inner)]) + inner


def test_a_tensor_divided_into_several_values_is_read(tmp_path: Path) -> None:
    """MindSpore divides long tensors; their lengths may be packed into one field."""
    numbers = np.arange(6, dtype=np.float32)
    path = tmp_path / "a"
    path.write_bytes(value("w", [2, 3], numbers[:4].tobytes()) + value("w", [2, 3], numbers[4:].tobytes()))
    np.testing.assert_array_equal(read(path)["w"], numbers.reshape(2, 3))


def test_a_text_in_a_checkpoint_of_mindspore_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    note = value("note", [1], "größer".encode("utf-32-le"), "str")
    path.write_bytes(value("w", [1], np.float32([2]).tobytes()) + note)
    found = mx.load_checkpoint(str(path))
    assert found["note"] == "größer" and found["w"].asnumpy().tolist() == [2]
    path.write_bytes(value("note", [1], b"\xff", "str"))
    with pytest.raises(FileFormatError, match=r"'note'.*text"):
        mx.load_checkpoint(str(path))


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    content = bytearray(CHECKED.read_bytes())
    content[30] ^= 1
    (tmp_path / "a.ckpt").write_bytes(content)
    with pytest.raises(FileFormatError, match="checksum is not that of its content"):
        load(tmp_path / "a.ckpt")


def test_a_checkpoint_that_ends_between_two_values_is_refused(tmp_path: Path) -> None:
    """A file without a checksum may be MindSpore's; one that was cut is known by a mark at its beginning."""
    path = tmp_path / "a.ckpt"
    mx.save_checkpoint({"w": mx.Tensor([1.0]), "b": mx.Tensor([2.0])}, path)
    content = path.read_bytes()
    path.write_bytes(content[:content.rindex(b"\n", 0, content.index(b"\x01b"))])
    with pytest.raises(FileFormatError, match=r"a\.ckpt: the checksum at the end is missing: the file is damaged"):
        mx.load_checkpoint(path)


def test_texts_are_written_as_mindspore_writes_them(tmp_path: Path) -> None:
    """A text is four bytes a character; an empty one is a NUL, since MindSpore refuses an array without bytes."""
    path = tmp_path / "a.ckpt"
    mx.save_checkpoint({"w": mx.Tensor([1.0])}, path, append_dict={"note": "größer", "empty": ""})
    content = path.read_bytes()
    assert value("note", [0], "größer".encode("utf-32-le"), "str") in content
    assert value("empty", [0], bytes(4), "str") in content
    writer = MINDSPORE_WRITER.function([Record(np.uint8([255, 1]))], ["a:text"])  # no text in UTF-8
    with open(path, "wb") as file:
        writer(file)
    np.testing.assert_array_equal(read(path)["a:text"], np.uint8([255, 1]))


class Runs:
    """An object whose pickle runs a function."""

    def __init__(self, function: Any, *arguments: Any):
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def every_dtype() -> dict[str, np.ndarray]:
    return {"π": np.arange(6.0).reshape(2, 3).T, "half": np.array([1.5, -2], np.float16),
            "flag": np.array([True, False]), "brain": np.array([1, -2], ml_dtypes.bfloat16),
            "single": np.array(7), "none": np.zeros((0, 4), np.float32), "large": np.array([2**64 - 1], np.uint64),
            **{kind: np.array([[1, 100]], kind) for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32")}}


@pytest.mark.parametrize("writer, name", [(TORCH_WRITER, "a.pt"), (MINDSPORE_WRITER, "a.ckpt")])
def test_written_files_are_read(tmp_path: Path, writer: Slot, name: str) -> None:
    """Files have every dtype, arrays in any order, single numbers and empty arrays."""
    arrays = every_dtype()
    for written in (arrays, {}):
        put = writer.function([Record(array) for array in written.values()], list(written))
        with open(tmp_path / name, "wb") as file:
            put(file)
        compared(read(tmp_path / name), written)


def test_a_file_for_pytorch_is_laid_out_as_its_own(tmp_path: Path) -> None:
    """Entries are not compressed, and each storage begins at an address that can be mapped into memory."""
    path = tmp_path / "a.pt"
    save(path, [Record(array) for array in every_dtype().values()], list(every_dtype()))
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: info for info in archive.infolist()}
        assert list(parts)[:2] == ["archive/data.pkl", "archive/byteorder"] and "archive/version" in parts
        for part, info in parts.items():
            assert info.compress_type == zipfile.ZIP_STORED
            name, extra = struct.unpack_from("<HH", content, info.header_offset + 26)
            start = info.header_offset + 30 + name + extra
            assert start % 64 == 0 and content[start:start + info.file_size] == archive.read(part)


def test_pytorch_reads_written_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    arrays = every_dtype()
    save(tmp_path / "a.pt", [Record(array) for array in arrays.values()], list(arrays))
    found = torch.load(tmp_path / "a.pt", weights_only=True)
    assert list(found) == list(arrays)
    for name, tensor in found.items():
        assert str(tensor.dtype) == f"torch.{arrays[name].dtype.name}" and tuple(tensor.shape) == arrays[name].shape
        np.testing.assert_array_equal(np.array(tensor.tolist()), arrays[name].tolist())


@pytest.mark.parametrize("writer", [TORCH_WRITER, MINDSPORE_WRITER], ids=["torch", "mindspore"])
@pytest.mark.parametrize("records, names, message", [
    ([Record(np.ones(2))], [], "have names"), ([Record(None)], ["a"], "cannot hold None"),
    ([Record(np.array(["a"]))], ["a"], "has no dtype <U1"), ([Record(np.ones(2))] * 2, ["a", "a"], "more than once"),
])
def test_records_that_cannot_be_written(writer: Slot, records: list[Record], names: list[str], message: str) -> None:
    with pytest.raises(OpError, match=message):
        writer.function(records, names)


def zipped(path: Path, content: bytes, **others: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", content)
        for name, each in others.items():
            archive.writestr(f"net/data/{name}", each)
    return path


@pytest.mark.parametrize("function, arguments, name", [
    (os.mkdir, ("made",), "posix.mkdir|nt.mkdir"), (eval, ("1",), "builtins.eval"), (getattr, (1, "real"), "builtins"),
    (np.zeros, (3,), "numpy"), (io.BytesIO, (), "_io.BytesIO"), (mx.nd.zeros, (3,), "opreg"),
])
def test_no_code_of_a_pickle_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any,
                                    arguments: tuple[Any, ...], name: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = zipped(tmp_path / "a.pt", pickle.dumps({"w": Runs(function, *arguments)}))
    with pytest.raises(FileFormatError, match=f"expected tensors and dicts of them, found ({name}).*state_dict"):
        load(path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("place", [2**31 - 1, 1 << 27])
def test_a_storage_beyond_its_file_is_refused(tmp_path: Path, place: int) -> None:
    """A pickle stores objects in numbered places; a reader that allocates them all would need gigabytes."""
    content = pickle.PROTO + b"\2" + pickle.EMPTY_DICT + pickle.LONG_BINPUT + place.to_bytes(4, "little") + pickle.STOP
    with pytest.raises(FileFormatError, match=f"expected an index below {len(content)}, found {place}"):
        load(zipped(tmp_path / "a.pt", content))


def test_a_file_within_that_is_longer_than_the_zip(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.pt", pickle.dumps({}))
    content = path.read_bytes()
    entry = content.index(b"PK\1\2")
    path.write_bytes(content[:entry + 20] + (2**32 - 9).to_bytes(4, "little") + content[entry + 24:])
    with pytest.raises(FileFormatError, match="expected bytes that are not packed, at most"):
        load(path)


def test_tensors_that_share_a_storage_too_often(tmp_path: Path) -> None:
    """Each tensor becomes an array of its own, so together they need far more bytes than the file has."""
    array = np.zeros(200_000, np.float32)
    save(tmp_path / "a.pt", [Record(array)], ["w"])
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        content, numbers = archive.read("archive/data.pkl"), archive.read("archive/data/0")
    tensor = content[content.index(b"ctorch._utils"):-2]
    items = b"".join(pickle.dumps(str(i), 2)[2:-1] + tensor for i in range(400))
    path = zipped(tmp_path / "b.pt", content[:4] + items + content[-2:], **{"0": numbers})
    with pytest.raises(FileFormatError, match="for the stored data, found tensors of 320000000"):
        load(path)


@pytest.mark.parametrize("shape, words", [((5, 3), ""), ((2 ** 31, 2 ** 31), "for the stored data"),
                                          ((2 ** 62, 2 ** 62), "for the stored data")])
def test_expanded_tensors_must_fit_their_file(shape: tuple[int, ...], words: str, tmp_path: Path) -> None:
    """PyTorch's ``expand`` makes such a tensor: one axis has a stride of 0, and the file has to justify its length."""
    save(tmp_path / "a.pt", [Record(np.arange(3, dtype=np.float32).reshape(1, 3))], ["w"])
    with zipfile.ZipFile(tmp_path / "a.pt") as archive:
        content, numbers = archive.read("archive/data.pkl"), archive.read("archive/data/0")
    wide, strides = [pickle.dumps(each, 2)[2:-1] for each in (shape, (0, 1) if shape[1] == 3 else (0, 0))]
    content = content.replace(pickle.dumps((1, 3), 2)[2:-1], wide).replace(pickle.dumps((3, 1), 2)[2:-1], strides)
    path = zipped(tmp_path / "b.pt", content, **{"0": numbers})
    if words:
        with pytest.raises(FileFormatError, match=words):
            load(path)
    else:
        np.testing.assert_array_equal(read(path)["w"], np.broadcast_to(np.arange(3, dtype=np.float32), shape))


def test_a_file_within_is_packed(tmp_path: Path) -> None:
    """A compressed entry could be far longer than the zip."""
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/data.pkl", bytes(1 << 20))
    with pytest.raises(FileFormatError, match="expected bytes that are not packed"):
        load(path)


def old(path: Path, value: bytes | None = None, *, keys: Any = ("7",), version: int = 1001, part: Any = None,
        count: int = 6, stored: int = 6) -> Path:
    """A file of PyTorch before 1.6, written by Python 2: a tensor of two rows in a storage of six numbers."""
    plain = [pickle.dumps(each, 2)[2:-1] for each in (0, (2, 3), (3, 1), count, part)]
    text = {name: pickle.SHORT_BINSTRING + bytes([len(name)]) + name for name in (b"w", b"storage", b"7", b"cpu")}
    tensor = [pickle.GLOBAL, b"torch._utils\n_rebuild_tensor\n", pickle.MARK, pickle.MARK, text[b"storage"],
              pickle.GLOBAL, b"torch\nFloatStorage\n", text[b"7"], text[b"cpu"], *plain[3:], pickle.TUPLE,
              pickle.BINPERSID, *plain[:3], pickle.TUPLE, pickle.REDUCE]
    dict_ = [pickle.PROTO, b"\2", pickle.EMPTY_DICT, text[b"w"], *tensor, pickle.SETITEM, pickle.STOP]
    numbers = np.arange(stored, dtype="<f4").tobytes()
    path.write_bytes(b"".join([
        pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(version, 2), pickle.dumps({"little_endian": True}, 2),
        b"".join(dict_) if value is None else value, pickle.dumps(list(keys), 2), struct.pack("<q", stored), numbers]))
    return path


@pytest.mark.parametrize("part, begins", [(None, 0), (("8", 2, 6), 2)])
def test_a_file_of_an_old_version_is_read(tmp_path: Path, part: Any, begins: int) -> None:
    """Texts of Python 2, tensors without hooks, and parts of storages are read."""
    path = old(tmp_path / "a.pth", part=part, count=begins + 6, stored=begins + 6)
    compared(read(path), {"w": np.arange(begins, begins + 6, dtype=np.float32).reshape(2, 3)})


@pytest.mark.parametrize("words, message", [
    ({"version": 1002}, "expected version 1001 of the format, found 1002"),
    ({"keys": ("7", "9")}, "expected storages 7, found"), ({"keys": ()}, "expected storages 7, found"),
    ({"keys": ("7", "7")}, "expected storages 7, found"), ({"count": 9}, "expected 9 numbers, found 6"),
    ({"count": 1 << 40}, "expected numbers that the file has, found 1099511627776"),
    ({"count": -1}, "expected numbers that the file has, found -1"),
    ({"part": ("8", 1, 6)}, "expected a part of 6 elements"), ({"part": ("8", 1, 5)}, "expected a tensor within its 5"),
    ({"stored": 5}, "expected 6 numbers, found 5"),
])
def test_damage_in_a_file_of_an_old_version_is_refused(tmp_path: Path, words: dict[str, Any], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        load(old(tmp_path / "a.pth", **words))


def test_no_code_of_an_old_file_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match=r"a\.pth: expected tensors and dicts of them, found .*mkdir"):
        load(old(tmp_path / "a.pth", pickle.dumps({"w": Runs(os.mkdir, "made")}, 2)))
    with pytest.raises(FileFormatError, match="expected tensors and dicts of them"):
        load(old(tmp_path / "a.pth", keys=(Runs(os.mkdir, "made"),)))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("path", [TORCH, OLD, TRAINING, PLAIN, CHECKED], ids=lambda path: path.name)
@settings(max_examples=MOST_DAMAGED, deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_with_changed_bytes_are_read_or_refused(path: Path, data: Any,
                                                      tmp_path_factory: pytest.TempPathFactory) -> None:
    """A changed file is read, or refused with an error of opreg."""
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.sampled_from([len(content), len(content) // 2, len(content) - 3])):]
    changed = tmp_path_factory.getbasetemp() / "changed"
    changed.write_bytes(content)
    try:
        load(changed)
    except OpError:
        pass
