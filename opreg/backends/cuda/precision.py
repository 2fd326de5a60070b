"""How exact the libraries' products of float32 are."""

from __future__ import annotations

import os

__all__ = ["tf32"]


def tf32() -> bool:
    """Whether products and convolutions of float32 may round their factors to TF32, which has 11 bits of 24.

    They do where the environment says ``OPREG_TF32=1`` when an executor is bound.

    Examples
    --------
    >>> tf32()
    False
    """
    return os.environ.get("OPREG_TF32", "") not in ("", "0")
