"""Datasets of images of Gluon."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opreg as mx
from opreg.data.codec import encode
from opreg.gluon.data import DataLoader, vision

pytest.importorskip("PIL")

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 28, 28), np.uint8)
LABELS = np.arange(6, dtype=np.uint8)
COLORS = np.random.default_rng(1).integers(0, 256, (4, 3, 32, 32), np.uint8)


def _idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def _digits(folder: Path, prefix: str, packed: bool) -> None:
    for name, array in (("images-idx3", IMAGES), ("labels-idx1", LABELS)):
        content = _idx(array)
        path = folder / f"{prefix}-{name}-ubyte{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content) if packed else content)


def _rows(*labels: int) -> bytes:
    return b"".join(bytes(labels) + image.tobytes() for image in COLORS)


@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST])
@pytest.mark.parametrize("packed", [True, False])
def test_files_of_digits_are_a_dataset(kind: Any, packed: bool, tmp_path: Path) -> None:
    _digits(tmp_path, "t10k", packed)
    digits = kind(root=str(tmp_path), train=False)
    image, label = digits[3]
    assert len(digits) == 6 and image.dtype == np.uint8
    assert (image.asnumpy() == IMAGES[3, :, :, None]).all()
    assert isinstance(label, np.int32) and label == 3
    changed = kind(str(tmp_path), False, lambda image, label: (image.astype("float32") / 255, label + 1))
    images, labels = next(iter(DataLoader(changed, 6)))
    assert images.shape == (6, 28, 28, 1) and images.dtype == np.float32
    assert labels.asnumpy().tolist() == [1, 2, 3, 4, 5, 6]


def test_missing_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    for kind, words in ((vision.MNIST, r"put 'train-labels-idx1-ubyte.gz' or .* into '.*datasets/mnist'"),
                        (vision.FashionMNIST, "zalando.*datasets/fashion-mnist"),
                        (vision.CIFAR10, "'data_batch_1.bin' or .*'cifar-10-binary.tar.gz'"),
                        (vision.CIFAR100, "datasets/cifar100")):
        with pytest.raises(mx.errors.OpError, match=words):
            kind()
    assert list(tmp_path.iterdir()) == []


def test_files_of_digits_with_different_counts_are_refused(tmp_path: Path) -> None:
    _digits(tmp_path, "train", False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(_idx(LABELS[:4]))
    with pytest.raises(mx.errors.ShapeError, match="6 images and 4 labels"):
        vision.MNIST(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(_idx(IMAGES))
    with pytest.raises(mx.errors.FileFormatError, match="expected images and labels"):
        vision.MNIST(tmp_path)


@pytest.mark.parametrize("where", ["", "cifar-10-batches-bin"])
def test_cifar10_and_cifar100_are_read(where: str, tmp_path: Path) -> None:
    folder = tmp_path / where
    folder.mkdir(exist_ok=True)
    for number in range(1, 6):
        (folder / f"data_batch_{number}.bin").write_bytes(_rows(number))
    pictures = vision.CIFAR10(root=tmp_path)
    image, label = pictures[9]
    assert len(pictures) == 20 and label == 3 and isinstance(label, np.int32)
    assert (image.asnumpy() == COLORS[1].transpose(1, 2, 0)).all()
    (folder / "data_batch_5.bin").write_bytes(_rows(5)[:-1])
    with pytest.raises(mx.errors.FileFormatError, match=r"data_batch_5.bin: 12291 bytes, which is not a multiple of "
                                                        r"the 3073"):
        vision.CIFAR10(root=tmp_path)


def test_pictures_are_read_from_an_archive(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "cifar-100-binary.tar.gz", "w:gz") as tar:
        for name, content in (("train.bin", _rows(1, 2)), ("test.bin", _rows(3, 4))):
            entry = tarfile.TarInfo(f"cifar-100-binary/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    assert vision.CIFAR100(tmp_path)[0][1] == 1
    assert vision.CIFAR100(tmp_path, fine_label=True)[0][1] == 2
    image, label = vision.CIFAR100(tmp_path, train=False, fine_label=True)[3]
    assert label == 4 and (image.asnumpy() == COLORS[3].transpose(1, 2, 0)).all()
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-100-binary.tar.gz"]
    whole = (tmp_path / "cifar-100-binary.tar.gz").read_bytes()
    (tmp_path / "cifar-100-binary.tar.gz").write_bytes(whole[:len(whole) // 2])
    with pytest.raises(mx.errors.FileFormatError, match=r"damaged|holds no"):
        vision.CIFAR100(tmp_path)


def _pictures(folder: Path) -> None:
    for name, number in (("cat/b.png", 1), ("cat/a.PNG", 0), ("ant/c.png", 2)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(encode(np.ascontiguousarray(COLORS[number].transpose(1, 2, 0)), ".png", 3))


def test_folders_of_images_are_a_dataset(tmp_path: Path) -> None:
    _pictures(tmp_path)
    (tmp_path / "readme").touch()
    (tmp_path / "cat" / "notes.txt").touch()
    with pytest.warns(UserWarning, match="ImageFolderDataset") as warned:
        images = vision.ImageFolderDataset(str(tmp_path))
    assert [str(each.message).split(" is ")[0].split("/")[-1] for each in warned] == ["notes.txt", "readme"]
    assert images.synsets == ["ant", "cat"]
    assert [(Path(name).name, label) for name, label in images.items] == [("c.png", 0), ("a.PNG", 1), ("b.png", 1)]
    image, label = images[2]
    assert label == 1 and (image.asnumpy() == COLORS[1].transpose(1, 2, 0)).all()
    with pytest.raises(FileNotFoundError):
        vision.ImageFolderDataset(tmp_path / "nowhere")


def test_images_of_folders_may_be_read_as_gray(tmp_path: Path) -> None:
    _pictures(tmp_path)
    images = vision.ImageFolderDataset(tmp_path, 0, lambda image, label: (image.shape, -label))
    assert images[1] == ((32, 32, 1), -1)


def test_lists_of_images_are_a_dataset(tmp_path: Path) -> None:
    _pictures(tmp_path)
    (tmp_path / "a.lst").write_text("0\t1.5\tcat/a.PNG\n1\t2\t3\tant/c.png\n")
    for entries in ("a.lst", [[1.5, "cat/a.PNG"], [2, 3, "ant/c.png"]], [[[1.5], "cat/a.PNG"], [[2, 3], "ant/c.png"]]):
        images = vision.ImageListDataset(tmp_path, entries)
        assert [label.tolist() for _, label in images.items] == [[1.5], [2, 3]]
        assert (images[1][0].asnumpy() == COLORS[2].transpose(1, 2, 0)).all()
    (tmp_path / "a.lst").write_text("0\tone\tcat/a.PNG\n")
    with pytest.raises(mx.errors.FileFormatError, match="line 1"):
        vision.ImageListDataset(tmp_path, "a.lst")
    with pytest.raises(mx.errors.ArgumentError, match="entry 0"):
        vision.ImageListDataset(tmp_path, [["cat/a.PNG"]])


def test_images_of_records_are_a_dataset(tmp_path: Path) -> None:
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w") as file:
        for number, label in enumerate((3.0, [1.0, 2.0])):
            header = mx.recordio.IRHeader(0, label, number, 0)
            picture = encode(np.ascontiguousarray(COLORS[number].transpose(1, 2, 0)), ".png", 3)
            file.write_idx(number, mx.recordio.pack(header, picture))
    images = vision.ImageRecordDataset(str(tmp_path / "a.rec"))
    assert images[0][1] == 3 and images[1][1].tolist() == [1, 2]
    assert (images[1][0].asnumpy() == COLORS[1].transpose(1, 2, 0)).all()
    gray = vision.ImageRecordDataset(str(tmp_path / "a.rec"), flag=0, transform=lambda image, label: image.shape)
    assert gray[0] == (32, 32, 1)
