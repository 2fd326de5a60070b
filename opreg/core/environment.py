"""Environment variables: their values as numbers and switches, and readers of those that are read at each call."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ArgumentError

__all__ = ["SWITCH", "number", "setting_reader", "switch"]

#: Texts of variables that turn something on or off.
SWITCH = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


def switch(name: str, default: bool) -> bool:
    """Whether a variable turns something on; the default if it is missing or empty.

    Raises
    ------
    ArgumentError
        The text is none of ``SWITCH``.

    Examples
    --------
    >>> switch("OPREG_NO_SUCH_VARIABLE", True)
    True
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if text.lower() not in SWITCH:
        raise ArgumentError(f"{name}={text!r}: expected 1 or 0")
    return SWITCH[text.lower()]


def number(name: str, default: float, above: float = -math.inf, whole: bool = False,
           environ: Mapping[str, str] = os.environ) -> float:
    """The number in a variable; the default if it is missing or empty.

    Raises
    ------
    ArgumentError
        The text is no number, or at most ``above``; with ``whole``, it has a fraction.

    Examples
    --------
    >>> number("OPREG_NO_SUCH_VARIABLE", 300.0)
    300.0
    """
    text = environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > above or (whole and not value.is_integer()):
        bound = "" if above == -math.inf else f" above {above:g}"
        raise ArgumentError(f"{name}={text!r}: expected a{' whole' if whole else ''} number{bound}")
    return value


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
