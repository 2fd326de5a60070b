"""MindSpore's layers as Cells over registered operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aliases import inner
from . import (
    activation,
    attention,
    basic,
    combined,
    containers,
    conv,
    decoder,
    images,
    math,
    norm,
    pads,
    pooling,
    recurrent,
    resizing,
    windows,
)
from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .basic import *  # noqa: F403
from .combined import *  # noqa: F403
from .containers import *  # noqa: F403
from .conv import *  # noqa: F403
from .decoder import *  # noqa: F403
from .images import *  # noqa: F403
from .math import *  # noqa: F403
from .norm import *  # noqa: F403
from .pads import *  # noqa: F403
from .pooling import *  # noqa: F403
from .primitive_attribute import attach
from .recurrent import *  # noqa: F403
from .resizing import *  # noqa: F403
from .windows import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = [name for module in (containers, basic, pads, resizing, math, conv, norm, pooling, windows, images,
                                   activation, recurrent, attention, decoder, combined) for name in module.__all__]
    __getattr__ = inner(__name__)

attach()
