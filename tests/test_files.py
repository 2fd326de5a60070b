"""Files are written whole or not at all, several of them together, and leave nothing else behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import opreg as mx
from opreg.core import files
from opreg.errors import ArgumentError, FileFormatError


def write(path: Path, content: bytes, mode: int | None = None, fail: bool = False) -> None:
    with files.whole(path, mode) as file:
        file.write(content)
        if fail:
            raise ZeroDivisionError


@pytest.fixture(params=["nameless", "no link", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What systems can do: files without a name, those that can get none later, neither."""
    if request.param == "no link":
        def refused(*args: object, **more: object) -> None:
            raise OSError("not here")
        monkeypatch.setattr(os, "link", refused)
    elif request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


def test_a_file_appears_when_it_is_whole(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"one", b"and another"):
        write(file, content)
        assert [each.read_bytes() for each in tmp_path.iterdir()] == [content]


def test_what_breaks_off_changes_nothing(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for before in ([], [b"before"]):
        for content in before:
            write(file, content)
        with pytest.raises(ZeroDivisionError):
            write(file, b"half", fail=True)
        assert [each.read_bytes() for each in tmp_path.iterdir()] == before


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_modes(kind: str, tmp_path: Path) -> None:
    file, before = tmp_path / "file", os.umask(0o027)
    try:
        write(file, b"")
        assert file.stat().st_mode & 0o777 == 0o640
        file.chmod(0o604)
        write(file, b"")
        assert file.stat().st_mode & 0o777 == 0o604
        write(file, b"", 0o600)
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd") or not hasattr(os, "O_TMPFILE"), reason="no nameless files")
def test_who_is_killed_leaves_nothing(tmp_path: Path) -> None:
    program = f"""if True:
        import os, signal
        from opreg.core import files
        with files.together(), files.whole({str(tmp_path / "file")!r}) as file:
            file.write(b"half" * 100000)
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(mx.__file__).parent.parent, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_files_together_appear_all_or_none(kind: str, tmp_path: Path) -> None:
    write(tmp_path / "a", b"before")

    def both(fail: bool) -> None:
        with files.together():
            write(tmp_path / "a", b"after")
            write(tmp_path / "b", b"after", fail=fail)

    with pytest.raises(ZeroDivisionError):
        both(fail=True)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"before"]
    with files.together():
        write(tmp_path / "a", b"after")
        with files.together():
            write(tmp_path / "b", b"after")
        assert [each.read_bytes() for each in tmp_path.glob("[!.]*")] == [b"before"]
    assert sorted((each.name, each.read_bytes()) for each in tmp_path.iterdir()) == [("a", b"after"), ("b", b"after")]


def test_one_that_cannot_appear_keeps_the_others_back(tmp_path: Path) -> None:
    def both() -> None:
        with files.together():
            write(tmp_path / "folder", b"")
            write(tmp_path / "later", b"")
            (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        both()
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_names_and_kinds_that_are_no_files(tmp_path: Path) -> None:
    def read(path: str | Path) -> None:
        with files.reading(path):
            pass

    for call in (read, lambda path: write(path, b"")):
        with pytest.raises(ArgumentError, match=r"'a\\x00b': it holds a zero byte"):
            call("a\0b")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileFormatError, match="pipe: expected a file, found a pipe"):
            read(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits of the size of files")
def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(file, b"before")
    run = subprocess.run([sys.executable, "-c", f"""
import resource, signal
from opreg.core.files import whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with whole({str(file)!r}) as file:
        file.write(bytes(1000))
except OSError as error:
    print(type(error).__name__, error.filename)
"""], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["OpOSError", str(file)]
    assert file.read_bytes() == b"before"
