"""Saving and loading of files in all formats: a file is written as a whole or not at all, and pipes work, too."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from opreg.errors import ArgumentError, FileFormatError
from opreg.ndarray.formats import load, save
from opreg.ndarray.params_file import read, write
from opreg.ndarray.records import Record

ONE = np.ones(1, np.float32)

def test_names_with_a_zero_byte_are_refused(tmp_path):
    name = str(tmp_path / "a\0b")
    with pytest.raises(ArgumentError, match=r"a\\x00b': it holds a zero byte"):
        save(name, [Record(np.zeros(1))])
    with pytest.raises(ArgumentError, match="zero byte"):
        load(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_pipes_and_devices_are_refused(tmp_path):
    """A pipe is refused without waiting for its other end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", os.devnull):
        with pytest.raises(FileFormatError, match=r"expected a file, found a (pipe|device)"):
            load(path)
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


@pytest.mark.parametrize("suffix", ("params", "npz", "safetensors"))
@pytest.mark.parametrize("broken", ("fsync", "replace"))
def test_a_failing_save_leaves_the_old_file_alone(tmp_path, monkeypatch, suffix, broken):
    path = tmp_path / f"net.{suffix}"
    save(path, [Record(ONE)], ["old"])

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space left"):
        save(path, [Record(ONE * 2)], ["new"])
    assert [child.name for child in tmp_path.iterdir()] == [path.name]
    assert load(path)[1] == ["old"]


def test_an_interrupted_save_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "net.params"
    save(path, [Record(ONE)])
    pieces = write([Record(ONE)])

    def interrupted(*_):
        yield next(pieces)
        raise KeyboardInterrupt

    monkeypatch.setattr("opreg.ndarray.params_file.write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(path, [Record(ONE * 2)])
    assert [child.name for child in tmp_path.iterdir()] == ["net.params"]
    assert load(path)[0][0].array.tolist() == [1.0]


@pytest.mark.skipif(os.name != "posix", reason="permission bits and links are of POSIX")
def test_permissions_and_links_are_those_of_a_plain_open(tmp_path):
    path, link = tmp_path / "net.params", tmp_path / "link.params"
    before = os.umask(0o027)
    try:
        save(path, [Record(ONE)])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        link.symlink_to("net.params")
        save(link, [Record(ONE * 2)])
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert load(path)[0][0].array.tolist() == [2.0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = tmp_path / "pipe.params"
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        save(path, [Record(ONE)], ["a"])
        assert read(os.read(end, 1 << 16))[1] == ["a"]
    finally:
        os.close(end)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_system_errors_keep_their_type(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere'"):
        save(tmp_path / "nowhere" / "net.params", [])
    with pytest.raises(IsADirectoryError):
        save(tmp_path, [])
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.params")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions stop")
def test_a_file_that_must_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "net.params"
    save(path, [Record(ONE)])
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        save(path, [])
    assert len(load(path)[0]) == 1
