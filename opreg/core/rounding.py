"""Whether matrix products and convolutions of float32 on a GPU may round their factors to TF32, whose significand has
11 bits instead of 24.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

from ..errors import ArgumentError

__all__ = ["tf32", "with_tf32"]


class _Inherited(local):
    choice: bool | None = None


_INHERITED = _Inherited()


def tf32(choice: bool | None = None) -> bool:
    """Whether TF32 is allowed: by the argument, else by the plan that is being made, else by the environment variable
    ``OPREG_TF32``.

    Raises
    ------
    ArgumentError
        For anything but True, False and None.

    Examples
    --------
    >>> tf32(), tf32(True)
    (False, True)
    """
    if choice is None:
        choice = _INHERITED.choice
    if choice is None:
        choice = os.environ.get("OPREG_TF32", "") not in ("", "0")
    if not isinstance(choice, bool):
        raise ArgumentError(f"tf32={choice!r}: expected True, False or None")
    return choice


@contextmanager
def with_tf32(choice: bool) -> Iterator[None]:
    """Choose kernels with or without TF32 within a ``with`` statement, those in bodies of loops included."""
    before, _INHERITED.choice = _INHERITED.choice, choice
    try:
        yield
    finally:
        _INHERITED.choice = before
