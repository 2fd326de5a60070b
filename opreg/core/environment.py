"""Environment variables that are asked for at each call."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

__all__ = ["setting_reader"]


def setting_reader(name: str) -> Callable[[], Any]:
    """A function that returns the current value of a variable as ``os.environ`` stores it, bytes on most systems; None
    if it is missing.

    ``os.environ.get`` takes a microsecond for a missing variable: it raises and catches two errors.

    Examples
    --------
    >>> setting_reader("OPREG_NO_SUCH_VARIABLE")() is None
    True
    """
    return functools.partial(os.environ.__dict__["_data"].get, os.environ.encodekey(name))
