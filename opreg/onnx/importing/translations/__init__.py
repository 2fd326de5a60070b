"""The rows of operators, one module per family; importing this package registers them."""

from __future__ import annotations

from . import (
    attention,
    columns,
    control,
    elementwise,
    equations,
    estimators,
    experts,
    fused_attention,
    fused_operators,
    images,
    layers,
    microsoft,
    parts,
    quantized,
    recurrent,
    reductions,
    shapes,
    text,
    training,
)

__all__ = ["attention", "columns", "control", "elementwise", "equations", "estimators", "experts", "fused_attention",
           "fused_operators", "images", "layers", "microsoft", "parts", "quantized", "recurrent", "reductions",
           "shapes", "text", "training"]
