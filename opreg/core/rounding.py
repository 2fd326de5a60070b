"""Whether matrix products and convolutions of float32 on a GPU may round their factors to TF32, whose significand has
11 bits instead of 24.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from ..errors import ArgumentError
from .chosen import Chosen
from .environment import setting_reader

__all__ = ["tf32", "with_tf32"]


_INHERITED: Chosen[bool] = Chosen()
_STORED = setting_reader("OPREG_TF32")
# Values that do not allow TF32, as ``os.environ`` stores them.
_REFUSING = {None, *map(os.environ.encodevalue, ("", "0"))}


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
        choice = _INHERITED.value
    if choice is None:
        choice = _STORED() not in _REFUSING
    if not isinstance(choice, bool):
        raise ArgumentError(f"tf32={choice!r}: expected True, False or None")
    return choice


def with_tf32(choice: bool) -> AbstractContextManager[None]:
    """Choose kernels with or without TF32 within a ``with`` statement, those in bodies of loops included."""
    return _INHERITED.override(choice)
