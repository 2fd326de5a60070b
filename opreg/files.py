"""Files: writing them whole or not at all, and warning about them where they were asked for."""

from __future__ import annotations

import os
import secrets
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from .errors import adopted, here

__all__ = ["adopting", "whole", "warn"]


@contextmanager
def adopting() -> Iterator[None]:
    """What the system refuses inside is an `OSError` that is an `OpError` as well.

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


@contextmanager
def whole(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A file to write that appears under its name when the block ends well, and never otherwise.

    A link stays a link, an earlier file's mode is kept, and what must not be written is not replaced either.

    Raises
    ------
    OSError
        The folder is missing, the file must not be written, the disk is full.

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
    with adopting(), _whole(path) as file:
        yield file


@contextmanager
def _whole(path: str | os.PathLike) -> Iterator[BinaryIO]:
    target = os.path.realpath(os.fsdecode(path))  # a link stays a link, and its target is replaced
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(target).st_mode
    if mode is not None and not stat.S_ISREG(mode):  # a pipe, a device: nothing that could be replaced
        with open(target, "wb") as file:
            yield file
        return
    if mode is not None:
        with open(target, "r+b"):
            pass  # what must not be written must not be replaced either
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".{secrets.token_hex(8)}.part")
    try:
        file = open(temporary, "xb")  # noqa: SIM115 (the next block closes it)
    except OSError as error:
        error.filename = folder
        raise
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def warn(text: str) -> None:
    """Warn about the line of user code that asked for the file, whatever calls lie between."""
    filename, line = here() or (__file__, 1)
    warnings.warn_explicit(text, UserWarning, filename, line)
