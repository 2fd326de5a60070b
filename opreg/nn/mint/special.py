"""``mint.special``: special functions."""

from __future__ import annotations

from ..ops import erfc, exp2, expm1, log1p, round, sinc
from .nn.functional import log_softmax

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]
