"""The format of MindRecord files: dtypes of fields, sizes of numbers, and which fields are in blob pages."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["TYPES", "KINDS", "LENGTH", "FIELD", "COUNT", "SHIFTS", "is_blob"]

TYPES = {"int32": int, "int64": int, "float32": float, "float64": float, "string": str, "bytes": bytes}
LENGTH, FIELD, COUNT = struct.Struct("<Q"), struct.Struct(">Q"), struct.Struct(">I")
#: Bits that each of four elements is shifted by in a byte of their sizes.
SHIFTS = np.array([6, 4, 2, 0], np.uint8)
KINDS = {"int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL", "string": "TEXT"}


def is_blob(kind: Mapping[str, Any]) -> bool:
    """Whether a field of a schema is stored in blob pages: bytes, or an array."""
    return kind["type"] == "bytes" or "shape" in kind
