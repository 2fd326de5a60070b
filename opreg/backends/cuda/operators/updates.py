"""Optimizer updates on a GPU."""

from __future__ import annotations

from opreg.builtin.optimizers import updating

from .. import updates
from ..compiler import can_compile

updating.group_updaters.append(updating.GroupUpdater("cuda", can_compile, updates.move, updates.bind))
