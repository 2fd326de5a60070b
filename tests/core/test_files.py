"""Files are written whole or not at all, several of them together, and leave nothing else behind."""

from __future__ import annotations

import gzip
import math
import os
import random
import re
import signal
import socket
import struct
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import opreg as mx
from opreg.command import main
from opreg.core import files
from opreg.errors import ArgumentError, OpError
from tests import processes


def write(path: Path, content: bytes, mode: int | None = None, fail: bool = False) -> None:
    with files.atomic_write(path, mode) as file:
        file.write(content)
        if fail:
            raise ZeroDivisionError


@pytest.fixture(params=["nameless", "no link", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kinds of systems: with unnamed files, with unnamed files that cannot be linked, and without unnamed files."""
    if request.param == "no link":
        def refused(*args: object, **more: object) -> None:
            raise OSError("not here")
        monkeypatch.setattr(os, "link", refused)
    elif request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


def test_a_file_appears_when_it_is_complete(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for content in (b"one", b"and another"):
        write(file, content)
        assert [each.read_bytes() for each in tmp_path.iterdir()] == [content]


def test_an_interrupted_call_changes_nothing(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    for before in ([], [b"before"]):
        for content in before:
            write(file, content)
        with pytest.raises(ZeroDivisionError):
            write(file, b"half", fail=True)
        assert [each.read_bytes() for each in tmp_path.iterdir()] == before


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_a_written_file_has_the_mode_of_the_one_before(kind: str, tmp_path: Path) -> None:
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
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    program = f"""if True:
        import os, signal
        from opreg.core import files
        with files.atomic_writes(), files.atomic_write({str(tmp_path / "file")!r}) as file:
            file.write(b"half" * 100000)
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert processes.run(program).returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_files_together_appear_all_or_none(kind: str, tmp_path: Path) -> None:
    write(tmp_path / "a", b"before")

    def both(fail: bool) -> None:
        with files.atomic_writes():
            write(tmp_path / "a", b"after")
            write(tmp_path / "b", b"after", fail=fail)

    with pytest.raises(ZeroDivisionError):
        both(fail=True)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"before"]
    with files.atomic_writes():
        write(tmp_path / "a", b"after")
        with files.atomic_writes():
            write(tmp_path / "b", b"after")
        assert [each.read_bytes() for each in tmp_path.glob("[!.]*")] == [b"before"]
    assert sorted((each.name, each.read_bytes()) for each in tmp_path.iterdir()) == [("a", b"after"), ("b", b"after")]


def test_one_failing_file_prevents_the_others(tmp_path: Path) -> None:
    def both() -> None:
        with files.atomic_writes():
            write(tmp_path / "folder", b"")
            write(tmp_path / "later", b"")
            (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        both()
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_names_that_are_not_regular_files_are_refused(tmp_path: Path) -> None:
    def read(path: str | Path) -> None:
        with files.open_to_read(path):
            pass

    for call in (read, lambda path: write(path, b"")):
        with pytest.raises(ArgumentError, match=r"'a\\x00b': it holds a zero byte"):
            call("a\0b")
        with pytest.raises(ArgumentError, match="expected the name of a file, got float"):
            call(1.5)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")


def module() -> mx.mod.Module:
    """A module whose optimizer has states."""
    data = mx.sym.Variable("data")
    net = mx.mod.Module(mx.sym.FullyConnected(data, num_hidden=2), label_names=None)
    net.bind([("data", (1, 2))])
    net.init_params()
    net.init_optimizer(optimizer="adam")
    return net


def store() -> mx.kv.KVStoreBase:
    kv = mx.kv.create("local")
    kv.set_optimizer(mx.optimizer.create("adam"))
    return kv


#: Functions that read a file, given its name; ``other`` holds names of valid files of the kinds that belong to it.
READERS: dict[str, Callable[[str, dict[str, str]], object]] = {
    "nd.load": lambda name, other: mx.nd.load(name),
    "sym.load": lambda name, other: mx.sym.load(name),
    "load_checkpoint": lambda name, other: mx.load_checkpoint(name + ".ckpt"),
    "states of a module": lambda name, other: module().load_optimizer_states(name),
    "states of a store": lambda name, other: store().load_optimizer_states(name),
    "imread": lambda name, other: mx.image.imread(name),
    "ImageIter": lambda name, other: mx.image.ImageIter(1, (3, 2, 2), imglist=[[0.0, name]]).next(),
    "lists of ImageIter": lambda name, other: mx.image.ImageIter(1, (3, 2, 2), path_imglist=name),
    "ImageRecordIter": lambda name, other: mx.io.ImageRecordIter(path_imgrec=name, data_shape=(3, 2, 2), batch_size=1),
    "lists of ImageRecordIter": lambda name, other: mx.io.ImageRecordIter(
        path_imgrec=other["rec"], path_imglist=name, data_shape=(3, 2, 2), batch_size=1),
    "indices of ImageRecordIter": lambda name, other: mx.io.ImageRecordIter(
        path_imgrec=other["rec"], path_imgidx=name, data_shape=(3, 2, 2), batch_size=1),
    "means of ImageRecordIter": lambda name, other: mx.io.ImageRecordIter(
        path_imgrec=other["rec"], mean_img=name, data_shape=(3, 2, 2), batch_size=1),
    "MXRecordIO": lambda name, other: mx.recordio.MXRecordIO(name, "r"),
    "MXIndexedRecordIO": lambda name, other: mx.recordio.MXIndexedRecordIO(name, other["rec"], "r"),
    "CSVIter": lambda name, other: mx.io.CSVIter(name, (2,)),
    "labels of CSVIter": lambda name, other: mx.io.CSVIter(other["csv"], (2,), label_csv=name),
    "LibSVMIter": lambda name, other: mx.io.LibSVMIter(name, (2,)),
    "MNISTIter": lambda name, other: mx.io.MNISTIter(name, name),
    "get_bz2_data": lambda name, other: mx.test_utils.get_bz2_data(".", "unpacked", f"file://{name}", "packed"),
}
COMMANDS = [["as-mxnet"], ["as-mindspore"], ["check", "relu", "--input"], ["convert"], ["params"], ["plot"],
            ["port"], ["profile"], ["run"], ["show"], ["summary"], ["launch", "-n", "2"]]


@pytest.fixture(params=["pipe", "socket", "device", "folder"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A pipe, socket, device or folder in the place of a file; a reader that waits is interrupted."""
    def interrupt(*frame: object) -> None:
        raise TimeoutError("still waiting for what is no file")

    monkeypatch.chdir(tmp_path)
    name, open_socket = str(tmp_path / "thing"), None
    if request.param == "pipe":
        os.mkfifo(name)
    elif request.param == "socket":
        open_socket = socket.socket(socket.AF_UNIX)
        open_socket.bind("thing")
    elif request.param == "device":
        os.symlink(os.devnull, name)
    else:
        os.mkdir(name)
    for ending in (".npy", ".py", ".json", ".params", ".ckpt"):
        os.symlink(name, name + ending)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60)
    yield request.param
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    if open_socket is not None:
        open_socket.close()


def refused(kind: str) -> str:
    return r"\[Errno 21\] Is a directory: .*thing" if kind == "folder" else f"thing.*: expected a file, found a {kind}"


@pytest.mark.skipif(os.name != "posix", reason="pipes in folders")
@pytest.mark.parametrize("reader", READERS)
def test_invalid_files_are_refused_by_name(reader: str, no_file: str, tmp_path: Path) -> None:
    """The error is raised at once, without waiting for a pipe's writer or for the end of a device."""
    pytest.importorskip("PIL")
    other = {kind: str(tmp_path / f"other.{kind}") for kind in ("rec", "csv")}
    with mx.recordio.MXRecordIO(other["rec"], "w") as records:
        records.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, 1.0, 0, 0), np.zeros((2, 2, 3), np.uint8)))
    Path(other["csv"]).write_text("1,2\n")
    with pytest.raises(OpError, match=refused(no_file)):
        READERS[reader](str(tmp_path / "thing"), other)


@pytest.mark.skipif(os.name != "posix", reason="pipes in folders")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_refuse_missing_and_unreadable_files(command: list[str], no_file: str, tmp_path: Path,
                                                      capsys: pytest.CaptureFixture) -> None:
    ending = {"check": ".npy", "as-mxnet": ".py", "as-mindspore": ".py", "port": ".py", "profile": ".py",
              "launch": ".py"}.get(command[0], ".params" if command[0] in ("params", "convert") else ".json")
    if command[0] == "port" and no_file == "folder":
        return  # this command accepts folders
    more = ["x.npz"] if command[0] == "convert" else []
    assert main([*command, str(tmp_path / "thing") + ending, *more]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and re.search(refused(no_file), said[0]), said


def idx(*shape: int) -> bytes:
    """A file of MNIST."""
    return struct.pack(">HBB", 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(math.prod(shape))


def saved(save: Callable[[str], object], ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, f"file{ending}")
        save(name)
        return Path(name).read_bytes()


def arrays(name: str) -> None:
    mx.nd.save(name, {"a": mx.nd.ones((2, 3)), "b": mx.nd.zeros((2,), dtype="int32")})


def records(name: str) -> None:
    with mx.recordio.MXRecordIO(name, "w") as file:
        for size in (2, 3):
            file.write(mx.recordio.pack_img((0, 1.0, 0, 0), np.zeros((size, 4, 3), np.uint8)))


#: Valid files, and functions that read them; ``sound`` is such a file beside the damaged one.
SOUND: dict[str, tuple[Callable[[], bytes], Callable[[str, str], object]]] = {
    "digits": (lambda: idx(3, 2, 2), lambda name, sound: list(mx.io.MNISTIter(name, name))),
    "labels": (lambda: idx(3), lambda name, sound: list(mx.io.MNISTIter(sound, name))),
    "packed digits": (lambda: gzip.compress(idx(3, 2, 2)), lambda name, sound: list(mx.io.MNISTIter(name, sound))),
    "columns": (lambda: b"1.0 0:0.5 2:1.2\n-2\n3 1:nan\n", lambda name, sound: list(mx.io.LibSVMIter(name, (3,)))),
    "whole columns": (lambda: b"1 0:5 2:1\n-2\n3 1:7\n",
                      lambda name, sound: list(mx.io.LibSVMIter(name, (3,), dtype="int32"))),
    "table": (lambda: b"1,2.5\n-1e3,nan\n", lambda name, sound: list(mx.io.CSVIter(name, (2,)))),
    "whole table": (lambda: b"1,2\n3,4\n", lambda name, sound: list(mx.io.CSVIter(name, (2,), dtype="uint8"))),
    "records": (lambda: saved(records, ".rec"), lambda name, sound: list(
        mx.io.ImageRecordIter(path_imgrec=name, data_shape=(3, 2, 2), batch_size=1))),
    "index": (lambda: b"0\t0\n1\t40\n",
              lambda name, sound: mx.recordio.MXIndexedRecordIO(name, sound, "r").read_idx(1)),
    "list": (lambda: b"0\t1.0\ta.png\n1\t2.0\tb.png\n",
             lambda name, sound: list(mx.image.ImageIter(1, (3, 2, 2), path_imglist=name, path_root="."))),
    "params": (lambda: saved(arrays, ".params"), lambda name, sound: mx.nd.load(name)),
    "npz": (lambda: saved(arrays, ".npz"), lambda name, sound: mx.nd.load(name)),
    "safetensors": (lambda: saved(arrays, ".safetensors"), lambda name, sound: mx.nd.load(name)),
    "symbol": (lambda: mx.sym.exp(mx.sym.Variable("x"), name="e").tojson().encode(),
               lambda name, sound: mx.sym.load(name)),
}
ODD = [b"\0", b"\xff", b"-", b"1e999", b"nan", b":", b" ", b"\n", b"\t", b",", b"9" * 25, b"\xff" * 4,
       b"\x7f" + b"\xff" * 7, b"{", b'"', b"[", "\u2028\u0663".encode(), b"_"]


def damaged(sound: bytes, rng: random.Random) -> bytes:
    """A damaged file, by one to three changes: other bytes, added, removed or doubled bytes, or an early end."""
    data = bytearray(sound)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        kind = rng.choices(["other", "more", "less", "end", "twice"], [4, 3, 1, 1, 1])[0]
        size = rng.randrange(1, 20)
        data[at:] = {"other": bytes([rng.randrange(256)]) + data[at + 1:], "more": rng.choice(ODD) + data[at:],
                     "less": data[at + size:], "end": b"", "twice": data[at:at + size] + data[at:]}[kind]
    return bytes(data)


@pytest.mark.parametrize("kind", SOUND)
def test_damaged_files_are_refused_or_read_in_little_memory(kind: str, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    make, read = SOUND[kind]
    content, rng = make(), random.Random(kind)
    monkeypatch.chdir(tmp_path)
    beside = {"digits": idx(3), "packed digits": idx(3), "labels": idx(3, 2, 2)}
    Path("sound").write_bytes(beside.get(kind) or saved(records, ".rec"))
    tracemalloc.start()
    try:
        for _ in range(100):
            Path("file").write_bytes(damaged(content, rng))
            with suppress(OpError), warnings.catch_warnings(action="ignore"):
                read("file", "sound")
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits of the size of files")
def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(file, b"before")
    done = processes.run(f"""
import resource, signal
from opreg.core.files import atomic_write
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
try:
    with atomic_write({str(file)!r}) as file:
        file.write(bytes(1000))
except OSError as error:
    print(type(error).__name__, error.filename)
""")
    assert done.stdout.split() == ["OpOSError", str(file)], done.stderr
    assert file.read_bytes() == b"before"
