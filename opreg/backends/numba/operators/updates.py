"""Optimizer updates, compiled with numba."""

from __future__ import annotations

import numpy as np

from opreg.builtin.optimizers import updating

from .. import updates

updating.group_updaters.append(updating.GroupUpdater("numba", lambda xp: xp is np, updates.move, updates.bind))
