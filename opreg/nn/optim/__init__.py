"""Optimizers, and learning rate schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aliases import inner
from . import rules, schedule
from .optimizer import Optimizer as Optimizer
from .rules import *  # noqa: F403
from .schedule import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = ["Optimizer", *rules.__all__, *schedule.__all__]  # noqa: PLE0604
    __getattr__ = inner(__name__)
