"""Files: reading them, and writing them whole or not at all."""

from __future__ import annotations

import functools
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ..errors import ArgumentError, FileFormatError, adopted

__all__ = ["adopting", "reading", "INFLATED", "whole", "together"]

#: Bytes that Deflate makes of one at most; a file of zip, gzip or PNG that claims more lies.
INFLATED = 1032


@contextmanager
def adopting() -> Iterator[None]:
    """Turn an `OSError` of the block into one that is an `OpError` as well.

    Examples
    --------
    >>> try:
    ...     with adopting(), open("/no/such/file"):
    ...         pass
    ... except FileNotFoundError as error:
    ...     error.filename, type(error).__name__
    ('/no/such/file', 'OpFileNotFoundError')
    """
    try:
        yield
    except OSError as error:
        raise adopted(error) from None


def _named(path: str | os.PathLike) -> str:
    name = os.fsdecode(path)
    if "\0" in name:
        raise ArgumentError(f"no file can have the name {name!r}: it holds a zero byte")
    return name


@contextmanager
def reading(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A file to read, which has an end and can be read twice; whatever reads a file opens it by this function.

    Raises
    ------
    OSError
        It is missing, is a folder, or cannot be read.
    FileFormatError
        It is a pipe, a socket or a device, whose length is unknown.
    ArgumentError
        Nothing can have that name.

    Examples
    --------
    >>> with reading(os.devnull) as file:
    ...     pass
    Traceback (most recent call last):
    opreg.errors.FileFormatError: /dev/null: expected a file, found a device
    """
    name = _named(path)
    with adopting():
        _refuse_others(name, os.stat(name).st_mode)  # to open a pipe waits for a writer
        with open(name, "rb", opener=_without_waiting) as file:
            _refuse_others(name, os.fstat(file.fileno()).st_mode)  # the name may mean another one by now
            yield file


def _refuse_others(name: str, mode: int) -> None:
    """Refuse a path that is neither a file nor a folder; the system refuses folders by itself."""
    for is_it, what in ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"),
                        (stat.S_ISBLK, "a device")):
        if is_it(mode):
            raise FileFormatError(f"{name}: expected a file, found {what}")


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


class _Draft:
    """A file that is written and not yet to be seen; without any name where the system can do that, so that a process
    that is killed leaves nothing behind."""

    def __init__(self, target: str, mode: int | None):
        self.target, self.mode = target, mode
        self.folder = os.path.dirname(target)
        self.name = os.path.join(self.folder, f".{os.urandom(8).hex()}.part")
        self.nameless = True
        self.file: BinaryIO
        try:
            self.file = os.fdopen(os.open(self.folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), "w+b")
        except (AttributeError, OSError):  # neither every system nor every file system has that
            self.nameless = False
            try:
                self.file = open(self.name, "xb")  # noqa: SIM115 (publish and discard close it)
            except OSError as error:
                error.filename = self.folder
                raise

    def sync(self) -> None:
        """Have all of it on the disk."""
        self.file.flush()
        if self.mode is not None and hasattr(os, "fchmod"):
            os.fchmod(self.file.fileno(), self.mode)
        os.fsync(self.file.fileno())

    def publish(self) -> None:
        """Let it be seen under its name."""
        try:
            if self.nameless:
                self._link()
            self.file.close()
            os.replace(self.name, self.target)
        except BaseException:
            self.discard()
            raise

    def _link(self) -> None:
        """Give the file its hidden name: nothing that has none can take another's place."""
        try:  # with a folder given, and only then, the link in /proc is followed
            os.link(f"/proc/self/fd/{self.file.fileno()}", self.name, src_dir_fd=self.file.fileno())
        except OSError:
            self.file.seek(0)
            with open(self.name, "xb") as copy:
                copy.writelines(iter(functools.partial(self.file.read, 1 << 20), b""))
                copy.flush()
                os.fsync(copy.fileno())
            os.chmod(self.name, stat.S_IMODE(os.fstat(self.file.fileno()).st_mode))

    def discard(self) -> None:
        """Forget it."""
        with suppress(OSError):
            self.file.close()
        with suppress(OSError):
            os.unlink(self.name)


class _Waiting(threading.local):
    drafts: list[_Draft] | None = None


_WAITING = _Waiting()


@contextmanager
def whole(path: str | os.PathLike, mode: int | None = None) -> Iterator[BinaryIO]:
    """A file to write that appears under its name when the block ends well, and never otherwise.

    A link stays a link, and what must not be written is not replaced either. The mode is the one given, else that of
    an earlier file.

    Raises
    ------
    OSError
        The folder is missing, the file must not be written, the disk is full.
    ArgumentError
        Nothing can have that name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole(os.path.join(folder, "note")) as file:
    ...         _ = file.write(b"all of it")
    ...         before = os.path.exists(os.path.join(folder, "note"))
    ...     before, os.listdir(folder)
    (False, ['note'])
    """
    with adopting():
        try:
            with _whole(path, mode) as file:
                yield file
        except OSError as error:
            if error.filename is None and error.errno is not None:  # a full disk does not say of which file
                error.filename = os.fsdecode(path)
            raise


@contextmanager
def _whole(path: str | os.PathLike, mode: int | None) -> Iterator[BinaryIO]:
    target = os.path.realpath(_named(path))  # a link stays a link, and its target is replaced
    before = None
    with suppress(FileNotFoundError):
        before = os.stat(target).st_mode
    if before is not None and not stat.S_ISREG(before):  # a pipe, a device: nothing that could be replaced
        with open(target, "wb") as file:
            yield file
        return
    if before is not None:
        with open(target, "r+b"):
            pass  # what must not be written must not be replaced either
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
def together() -> Iterator[None]:
    """Let files that ``whole`` writes within the block appear when the block ends well: all of them, or none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with together():
    ...         for name in ("net", "weights"):
    ...             with whole(os.path.join(folder, name)) as file:
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
