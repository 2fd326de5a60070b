"""Optimizers, and learning rates that change with the step."""

from __future__ import annotations

from . import rules, schedule
from .optimizer import Optimizer
from .rules import *  # noqa: F403
from .schedule import *  # noqa: F403

__all__ = ["Optimizer"]
__all__ += rules.__all__ + schedule.__all__
