"""svrg_optimization: gradients of a batch corrected by those of all data, which vary less from batch to batch."""

from __future__ import annotations

from .svrg_module import SVRGModule

__all__ = ["SVRGModule"]
