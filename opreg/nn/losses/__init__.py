"""Losses: Cells of predictions and labels.

Names, defaults and formulas are those of MindSpore's classes. What is a function of ``ops`` as well is that function,
whose reduction and further arguments the Cell keeps.
"""

from __future__ import annotations

from . import classes, differences, margins, probabilities
from .base import LossBase
from .classes import *  # noqa: F403
from .differences import *  # noqa: F403
from .margins import *  # noqa: F403
from .probabilities import *  # noqa: F403

__all__ = ["LossBase", *differences.__all__, *classes.__all__, *probabilities.__all__,  # noqa: PLE0604
           *margins.__all__]
