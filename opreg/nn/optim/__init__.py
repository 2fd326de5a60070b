"""Optimizers, and learning rate schedules.

Each optimizer is a rule over a parameter, its gradient and its states. Formulas are those of MindSpore's documentation
of the class, which cites the papers; formulas shared with MXNet's are in ``builtin.update_formulas``. Parameters
narrower than float32 are updated in float32, the dtype of learning rates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...aliases import inner
from . import adagrad, descent, lars, moments, schedule
from .adagrad import *  # noqa: F403
from .descent import *  # noqa: F403
from .lars import *  # noqa: F403
from .moments import *  # noqa: F403
from .optimizer import Optimizer as Optimizer
from .schedule import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = ["Optimizer", *descent.__all__, *moments.__all__, *adagrad.__all__,  # noqa: PLE0604
               *lars.__all__, *schedule.__all__]
    __getattr__ = inner(__name__)
