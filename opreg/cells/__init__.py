"""Cells: the machine under ``opreg.nn`` and ``opreg.gluon``.

Values and parameters, traces of functions and Cells, guards, compilation, gradients, and hooks. Layers, losses and
optimizers, and the words of a framework, stand above it.
"""

from __future__ import annotations

from ..core import slots

__all__: list[str] = []

slots.load("methods of tensors")  # which are functions of opreg.nn.ops
