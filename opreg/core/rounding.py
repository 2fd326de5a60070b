"""Whether matrix products and convolutions of float32 on a GPU may round their factors to TF32, whose significand has
11 bits instead of 24.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..errors import ArgumentError
from . import environment
from .cache import cached
from .chosen import Chosen
from .environment import setting_reader

__all__ = ["tf32", "with_tf32"]


_INHERITED: Chosen[bool] = Chosen()
_STORED = setting_reader("OPREG_TF32")


@cached(16)
def _is_allowed(stored: object) -> bool:
    """Whether the current value of the variable allows TF32; ``stored`` is that value, as ``os.environ`` stores it."""
    return environment.switch("OPREG_TF32", False)


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
        stored = _STORED()
        choice = False if stored is None else _is_allowed(stored)
    if not isinstance(choice, bool):
        raise ArgumentError(f"tf32={choice!r}: expected True, False or None")
    return choice


def with_tf32(choice: bool) -> AbstractContextManager[None]:
    """Choose kernels with or without TF32 within a ``with`` statement, those in bodies of loops included."""
    return _INHERITED.override(choice)
