"""Rows of the operators between processes, in a group of one; ``distributed_checks.py`` runs them in a group of two."""

from __future__ import annotations

from typing import Any

from . import Row, normal

__all__ = ["ROWS"]

_X = normal(4, 3)
_SAME: dict[str, Any] = dict(expected=lambda x: x, grad=(0,), second=True)

ROWS = [
    *(Row("AllReduce", [_X], {"op": op}, **_SAME) for op in ("sum", "mean", "avg", "max", "min", "prod")),
    Row("AllGather", [_X], **_SAME),
    *(Row("ReduceScatter", [_X], {"op": op}, **_SAME) for op in ("sum", "mean")),
    Row("Broadcast", [_X], {"root_rank": 0}, **_SAME),
    Row("AlltoAll", [_X], **_SAME),
]
