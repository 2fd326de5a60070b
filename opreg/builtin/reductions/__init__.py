"""Operators that make one number of several, and such that compare elements along an axis."""

__all__: list[str] = []
