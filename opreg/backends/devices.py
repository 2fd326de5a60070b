"""What back ends do for plans on devices that are not the host: record work, and bring numbers there."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable

import numpy as np

from opreg.core.steps import Recorder
from opreg.typing import Array, ArrayModule

from . import BACKENDS

__all__ = ["recorder", "staging"]


_REPLAY = [importlib.import_module(f"opreg.backends.{name}.replay") for name in BACKENDS
           if importlib.util.find_spec(f"opreg.backends.{name}.replay") is not None]
_STAGING = [importlib.import_module(f"opreg.backends.{name}.staging") for name in BACKENDS
            if importlib.util.find_spec(f"opreg.backends.{name}.staging") is not None]


def recorder(xp: ArrayModule, device: int) -> Recorder | None:
    """What records on a device of an array module; None where nothing does, or ``OPREG_REPLAY=0`` forbids it.

    Examples
    --------
    >>> recorder(np, 0) is None
    True
    """
    if xp is np or os.environ.get("OPREG_REPLAY", "") == "0":
        return None
    found = (module.recorder(xp, device) for module in _REPLAY)
    return next((each for each in found if each is not None), None)


def staging(xp: ArrayModule, array: Array, device: int) -> Callable[[np.ndarray], None] | None:
    """What copies numbers of the host into an array again and again, and does not wait for the device; None where there
    is nothing better than an assignment.

    Examples
    --------
    >>> staging(np, np.zeros(3), 0) is None
    True
    """
    if xp is np:
        return None
    found = (module.staging(xp, array, device) for module in _STAGING)
    return next((each for each in found if each is not None), None)
