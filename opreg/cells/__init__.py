"""Cells: the engine of layers, losses and compiled functions.

It holds values and parameters, traces of functions and Cells, guards, compilation, gradients, and hooks. Layers,
losses, optimizers, and the names of each framework are built on it.
"""

from __future__ import annotations

from ..core import slots

slots.load("methods of tensors")  # functions of opreg.nn.ops
