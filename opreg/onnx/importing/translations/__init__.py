"""The rows of operators, a module a family; importing this enters them into the table."""

from __future__ import annotations

from . import attention, control, elementwise, layers, quantized, recurrent, reductions, shapes, text, training

__all__ = ["attention", "control", "elementwise", "layers", "quantized", "recurrent", "reductions", "shapes", "text",
           "training"]
