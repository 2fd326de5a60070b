"""Compiled code cached in files for later programs; a file is used only if it is complete and no other user can have
written it.

Machine code is stored under ``OPREG_CACHE_DIR``, by default in ``opreg/code`` in the user's cache directory. The
directory is made when something is first stored; if it cannot be written, nothing is stored. It may be deleted at any
time.

Since the content of a file is executed, it is checked twice before it is used. First, folder and file must belong to
this user or the administrator and be writable by nobody else, as ssh requires for its keys; otherwise there is a
warning and no cache. Second, the file must be undamaged: it begins with the hash of the rest.
"""

from __future__ import annotations

import importlib
import os
import pickle
import stat
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opreg.core.cache import cached
from opreg.core.files import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

    from numba.core.codegen import CPUCodegen
    from numba.core.compiler import CompileResult
    from numba.core.cpu import CPUContext
    from numba.core.typing import Signature

__all__ = ["CodeFile", "directory", "hash_of", "store", "read_cached"]

_MAGIC = b"opreg machine code 1\n"


def directory() -> Path | None:
    """Directory of cached machine code; None if the system gives none."""
    from pathlib import Path

    chosen = os.environ.get("OPREG_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    if sys.platform == "win32":
        base, variable = "~/AppData/Local", "LOCALAPPDATA"
    elif sys.platform == "darwin":
        base, variable = "~/Library/Caches", ""
    else:
        base, variable = "~/.cache", "XDG_CACHE_HOME"
    named = os.environ.get(variable)
    # A relative path would let the owner of the current directory supply the code.
    path = Path(named if named and os.path.isabs(named) else os.path.expanduser(base)) / "opreg" / "code"
    return path if path.is_absolute() else None


def hash_of(key: str) -> str:
    """A hash of a key, as the name of a file."""
    import hashlib

    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _strange(status: os.stat_result) -> str | None:
    """The reason why another user could have written a file; None if no other could."""
    if not hasattr(os, "geteuid"):  # on Windows, only the user writes to the user's directories
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write it (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _folder() -> Path | None:
    """The directory, made if needed; None if it cannot be made, or if other users may write it."""
    folder = directory()
    if folder is None:
        return None
    with suppress(OSError):  # after an error nothing is stored
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
        status = folder.stat()
        reason = _strange(status)
        if reason is None and stat.S_ISDIR(status.st_mode):
            return folder
        if reason is not None:
            _refuse(folder, reason)
    return None


@cached(64)
def _refuse(folder: Path, reason: str) -> None:
    warnings.warn(f"compiled code is not cached in {folder}: {reason}, and code in it would be executed. Make the "
                  f"directory writable only by you (chmod go-w), or set OPREG_CACHE_DIR to another one", RuntimeWarning,
                  stacklevel=2)


def read_cached(name: str) -> bytes | None:
    """Content of a cached file; None if it is absent or cannot be trusted."""
    folder = _folder()
    with suppress(OSError, ValueError):
        return None if folder is None else _content(folder / name)
    return None


def store(name: str, content: bytes) -> None:
    """Store content under a name, if the folder can be written."""
    folder = _folder()
    if folder is not None:
        _write(folder / name, content)


def _write(path: Path, content: bytes) -> None:
    with suppress(OSError), atomic_write(path, 0o600) as file:
        file.write(_MAGIC + _digest(path, content) + content)


class CodeFile:
    """A file with the machine code of one function, with the interface of numba's caches.

    Parameters
    ----------
    text : bytes
        All that the compiled code depends on, without the signature and the processor.
    """

    cache_path = ""

    def __init__(self, text: bytes):
        self._text = text

    def _path(self, signature: Signature, codegen: CPUCodegen) -> Path | None:
        folder = _folder()
        if folder is None:
            return None
        key = self._text, str(signature), codegen.magic_tuple(), sys.implementation.cache_tag
        return folder / f"{hash_of(repr(key))}.code"

    def load_overload(self, signature: Signature, target_context: CPUContext) -> CompileResult | None:
        """The cached overload; None if the file is absent or cannot be trusted. In the latter case it is deleted."""
        target_context.refresh()
        path = self._path(signature, target_context.codegen())
        if path is None:
            return None
        try:
            content = _content(path)
            result = importlib.import_module("numba.core.compiler").CompileResult
            return None if content is None else result._rebuild(target_context, *pickle.loads(content))
        except Exception:  # if anything else is wrong, compiling will raise it
            with suppress(OSError):
                path.unlink()
            return None

    def save_overload(self, signature: Signature, result: Any) -> None:
        """Store a ``CompileResult``, whose fields numba defines at run time."""
        path = self._path(signature, result.codegen)
        if path is None or result.library.has_dynamic_globals:
            return
        _write(path, importlib.import_module("numba.core.serialize").dumps(result._reduce()))


def _content(path: Path) -> bytes | None:
    """Content of a file; None if there is none.

    Raises
    ------
    ValueError
        When another user could have written it, or it is damaged.
    """
    try:
        file = open(path, "rb", opener=_open_no_link)  # noqa: SIM115 (the next block closes it)
    except FileNotFoundError:
        return None
    with file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or _strange(status) is not None:
            raise ValueError(f"{path} is not ours")
        start, digest, content = file.read(len(_MAGIC)), file.read(32), file.read()
    if start != _MAGIC or digest != _digest(path, content):
        raise ValueError(f"{path} is damaged")
    return content


def _open_no_link(path: str, flags: int) -> int:
    """Open a file without following a link, and without waiting for the writer of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _digest(path: Path, content: bytes) -> bytes:
    """The hash of a file's name and content."""
    import hashlib

    return hashlib.sha256(path.name.encode() + content).digest()
