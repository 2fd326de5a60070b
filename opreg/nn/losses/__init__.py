"""Losses: Cells of predictions and labels.

Names, defaults and formulas are MindSpore's. A loss that is a function of ``ops`` calls it; the Cell stores its
reduction and further arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aliases import inner
from . import base, classes, differences, margins, probabilities
from .base import *  # noqa: F403
from .classes import *  # noqa: F403
from .differences import *  # noqa: F403
from .margins import *  # noqa: F403
from .probabilities import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = [name for module in (base, differences, classes, probabilities, margins) for name in module.__all__]
    __getattr__ = inner(__name__)
