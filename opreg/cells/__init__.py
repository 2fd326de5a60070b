"""Cells: the machine under ``opreg.nn`` and ``opreg.gluon``.

Values and parameters, traces of functions and Cells, guards, compilation, gradients, and hooks. Layers, losses and
optimizers, and the words of a framework, stand above it.
"""

from __future__ import annotations

__all__: list[str] = []
