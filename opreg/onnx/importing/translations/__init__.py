"""The rows of operators, a module a family; importing this enters them into the table."""

from __future__ import annotations

from . import elementwise

__all__ = ["elementwise"]
