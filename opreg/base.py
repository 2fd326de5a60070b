"""What programs written for Apache MXNet take from ``mxnet.base``: its errors, and words for kinds of values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import errors
from .errors import *  # noqa: F403  every error has its name here, too
from .symbol.symbol import NotImplementedForSymbol

__all__ = [*errors.__all__, "NotImplementedForSymbol", "integer_types", "numeric_types", "string_types", "py_str",  # noqa: PLE0604
           "mx_uint", "mx_int", "mx_float", "mx_real_t", "data_dir"]

integer_types = (int, np.int32, np.int64)
numeric_types = (float, int, np.generic)
string_types = (str,)

#: Numbers of C, which are Python's here: nothing is handed to a library.
mx_uint = mx_int = int
mx_float = float

#: The dtype of arrays that nothing else is said of.
mx_real_t = np.float32


def py_str(text: bytes | str) -> str:
    """Text from its bytes, or as it is: names that monitors are told are bytes in MXNet, text here.

    Examples
    --------
    >>> py_str(b"relu"), py_str("relu")
    ('relu', 'relu')
    """
    return text if isinstance(text, str) else text.decode("utf-8")


def data_dir() -> str:
    """The folder where programs keep downloaded files: ``MXNET_HOME``, else ``~/.mxnet``."""
    return os.environ.get("MXNET_HOME") or os.path.join(os.path.expanduser("~"), ".mxnet")


def _as_list(value: object) -> Sequence[Any]:
    """Lists and tuples as they are, anything else as the only item of a list."""
    return value if isinstance(value, (list, tuple)) else [value]


def __dir__() -> list[str]:
    return sorted(__all__)
