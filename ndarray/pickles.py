"""Pickles of other libraries, read without running code of the pickle.

A reader of a format derives from ``SafeUnpickler`` and gives a replacement for each function and class that pickles of
the format name.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from opreg.errors import FileFormatError, OpError

__all__ = ["PICKLE_DAMAGE", "SafeUnpickler"]

#: Instructions of a pickle that store the top of the stack in the memo.
_PLACED = ("PUT", "BINPUT", "LONG_BINPUT")
#: Errors that a damaged pickle raises.
PICKLE_DAMAGE = (OpError, pickle.UnpicklingError, KeyError, IndexError, TypeError, ValueError, AttributeError,
                 MemoryError, EOFError, RecursionError, ImportError, OverflowError)


class _Function:
    """A function for pickles to call, whose attributes no pickle can set."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise FileFormatError(f"expected no state of the function {self.function.__name__}")


class SafeUnpickler(pickle.Unpickler):
    """Reads one pickle. Only what ``replacement`` of a derived class returns is called.

    Parameters
    ----------
    content : bytes
        The pickle.
    encoding : str
        The encoding of texts that Python 2 wrote.

    Raises
    ------
    FileFormatError
        If an index is so large that reading would need more memory than the pickle's length justifies.
    """

    def __init__(self, content: bytes, encoding: str):
        for opcode, argument, _ in pickletools.genops(content):
            # pickle would allocate a memo of this length
            if opcode.name in _PLACED and int(argument or 0) > len(content):
                raise FileFormatError(f"expected an index below {len(content)}, found {argument}")
        super().__init__(io.BytesIO(content), encoding=encoding)

    def find_class(self, module: str, name: str) -> Any:
        """The replacement of a function or class that the pickle names."""
        found = self.replacement(module, name)
        return _Function(found) if isinstance(found, FunctionType) else found

    def replacement(self, module: str, name: str) -> Any:
        """A function, or a class that has ``__setstate__`` or whose attributes cannot be set."""
        raise FileFormatError(f"expected no functions or classes, found {module}.{name}")
