"""Reductions, and operators that compare elements along an axis."""

__all__: list[str] = []
