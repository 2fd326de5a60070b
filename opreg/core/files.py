"""Files: reading, and writing whole or not at all."""

from __future__ import annotations

import functools
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ..errors import ArgumentError, FileFormatError, as_op_error

__all__ = ["op_errors", "open_to_read", "INFLATED", "atomic_write", "atomic_writes"]

#: The largest ratio of Deflate. A zip, gzip or PNG file that claims more is damaged.
INFLATED = 1032


@contextmanager
def op_errors() -> Iterator[None]:
    """A context manager that converts an `OSError` to one that is an `OpError` as well.

    Examples
    --------
    >>> try:
    ...     with op_errors(), open("/no/such/file"):
    ...         pass
    ... except FileNotFoundError as error:
    ...     error.filename, type(error).__name__
    ('/no/such/file', 'OpFileNotFoundError')
    """
    try:
        yield
    except OSError as error:
        raise as_op_error(error) from None


def _name_of_file(path: str | os.PathLike) -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentError(f"expected the name of a file, got {type(path).__name__}")
    name = os.fsdecode(path)
    if "\0" in name:
        raise ArgumentError(f"no file can have the name {name!r}: it holds a zero byte")
    return name


@contextmanager
def open_to_read(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading. All readers of files use this function, since it ensures that files are seekable.

    Raises
    ------
    OSError
        If it is missing, is a folder, or cannot be read.
    FileFormatError
        If it is a pipe, a socket or a device, whose length is unknown.
    ArgumentError
        If no file can have this name.

    Examples
    --------
    >>> with open_to_read(os.devnull) as file:
    ...     pass
    Traceback (most recent call last):
    opreg.errors.FileFormatError: /dev/null: expected a file, found a device
    """
    name = _name_of_file(path)
    with op_errors():
        _refuse_others(name, os.stat(name).st_mode)  # before opening, which would wait for the writer of a pipe
        with open(name, "rb", opener=_lock_without_waiting) as file:
            _refuse_others(name, os.fstat(file.fileno()).st_mode)  # the file may have been replaced meanwhile
            yield file


def _refuse_others(name: str, mode: int) -> None:
    """Raise an error for a path that is neither a file nor a folder. For folders, the system raises one."""
    for is_it, what in ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
                        (stat.S_ISBLK, "a device")):
        if is_it(mode):
            raise FileFormatError(f"{name}: expected a file, found {what}")


def _lock_without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


class _Draft:
    """A file that is being written and has not replaced its target yet. It has no name where the system supports that,
    so that a killed process leaves nothing behind."""

    def __init__(self, target: str, mode: int | None):
        self.target, self.mode = target, mode
        self.folder = os.path.dirname(target)
        self.name = os.path.join(self.folder, f".{os.urandom(8).hex()}.part")
        self.nameless = True
        self.file: BinaryIO
        try:
            self.file = os.fdopen(os.open(self.folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), "w+b")
        except (AttributeError, OSError):  # not on every system and file system
            self.nameless = False
            try:
                self.file = open(self.name, "xb")  # noqa: SIM115 (publish and discard close it)
            except OSError as error:
                error.filename = self.folder
                raise

    def sync(self) -> None:
        """Flush the file to the disk."""
        self.file.flush()
        if self.mode is not None and hasattr(os, "fchmod"):
            os.fchmod(self.file.fileno(), self.mode)
        os.fsync(self.file.fileno())

    def publish(self) -> None:
        """Replace the target."""
        try:
            if self.nameless:
                self._link()
            self.file.close()
            os.replace(self.name, self.target)
        except BaseException:
            self.discard()
            raise

    def _link(self) -> None:
        """Give the file a hidden name, since a file without a name cannot replace another."""
        try:  # link follows the link in /proc only if src_dir_fd is given
            os.link(f"/proc/self/fd/{self.file.fileno()}", self.name, src_dir_fd=self.file.fileno())
        except OSError:
            self.file.seek(0)
            with open(self.name, "xb") as copy:
                copy.writelines(iter(functools.partial(self.file.read, 1 << 20), b""))
                copy.flush()
                os.fsync(copy.fileno())
            os.chmod(self.name, stat.S_IMODE(os.fstat(self.file.fileno()).st_mode))

    def discard(self) -> None:
        """Delete the file."""
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            os.unlink(self.name)


class _Waiting(threading.local):
    drafts: list[_Draft] | None = None


_WAITING = _Waiting()


@contextmanager
def atomic_write(path: str | os.PathLike, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing, which replaces its target only if the block ends without an error.

    A symbolic link stays a link, and a write-protected file is not replaced. The mode is the given one, or else that of
    the existing file.

    Raises
    ------
    OSError
        If the folder is missing, the file is write-protected, or the disk is full.
    ArgumentError
        If no file can have this name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(os.path.join(folder, "note")) as file:
    ...         _ = file.write(b"all of it")
    ...         before = os.path.exists(os.path.join(folder, "note"))
    ...     before, os.listdir(folder)
    (False, ['note'])
    """
    with op_errors():
        try:
            with _atomic_file(path, mode) as file:
                yield file
        except OSError as error:
            if error.filename is None and error.errno is not None:  # the error of a full disk has no file name
                error.filename = os.fsdecode(path)
            raise


@contextmanager
def _atomic_file(path: str | os.PathLike, mode: int | None) -> Iterator[BinaryIO]:
    target = os.path.realpath(_name_of_file(path))  # the target of a link is replaced, not the link
    before = None
    with suppress(FileNotFoundError):
        before = os.stat(target).st_mode
    if before is not None and not stat.S_ISREG(before):  # a pipe or a device cannot be replaced
        with open(target, "wb") as file:
            yield file
        return
    if before is not None:
        with open(target, "r+b"):
            pass  # raises the error for a write-protected file
    draft = _Draft(target, stat.S_IMODE(before) if mode is None and before is not None else mode)
    try:
        yield draft.file
        draft.sync()
    except BaseException:
        draft.discard()
        raise
    if _WAITING.drafts is None:
        draft.publish()
    else:
        _WAITING.drafts.append(draft)


@contextmanager
def atomic_writes() -> Iterator[None]:
    """A context manager for several files that ``atomic_write`` writes: they replace their targets when the block ends
    without an error, and else none does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_writes():
    ...         for name in ("net", "weights"):
    ...             with atomic_write(os.path.join(folder, name)) as file:
    ...                 _ = file.write(b"all of it")
    ...         before = os.listdir(folder)
    ...     before, sorted(os.listdir(folder))
    ([], ['net', 'weights'])
    """
    drafts: list[_Draft] = []
    outer, _WAITING.drafts = _WAITING.drafts, drafts
    try:
        yield
        while drafts:
            draft = drafts.pop(0)
            draft.publish() if outer is None else outer.append(draft)
    finally:
        _WAITING.drafts = outer
        for draft in drafts:
            draft.discard()
