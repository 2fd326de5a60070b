"""Services of back ends for plans on devices: recording work, and copying host arrays to the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opreg.core import environment
from opreg.core.steps import Recorder
from opreg.typing import Array, ArrayModule

from . import modules

__all__ = ["recorder", "copier_to"]


def recorder(xp: ArrayModule, device: int) -> Recorder | None:
    """The recorder of a device; None if no back end has one, or ``OPREG_REPLAY=0`` is set.

    Examples
    --------
    >>> recorder(np, 0) is None
    True
    """
    if xp is np or not environment.switch("OPREG_REPLAY", True):
        return None
    recorders = (module.recorder(xp, device) for module in modules("replay"))
    return next((recorder for recorder in recorders if recorder is not None), None)


def copier_to(xp: ArrayModule, array: Array, device: int) -> Callable[[np.ndarray], None] | None:
    """A function that copies a host array into ``array`` without waiting for the device; None if an assignment is just
    as good.

    Examples
    --------
    >>> copier_to(np, np.zeros(3), 0) is None
    True
    """
    if xp is np:
        return None
    ways = (module.copier_to(xp, array, device) for module in modules("staging"))
    return next((way for way in ways if way is not None), None)
