"""The rows of operators, a module a family; importing this enters them into the table."""

from __future__ import annotations

from . import (
    attention,
    columns,
    control,
    elementwise,
    equations,
    images,
    layers,
    quantized,
    recurrent,
    reductions,
    shapes,
    text,
    training,
)

__all__ = ["attention", "columns", "control", "elementwise", "equations", "images", "layers", "quantized", "recurrent",
           "reductions", "shapes", "text", "training"]
