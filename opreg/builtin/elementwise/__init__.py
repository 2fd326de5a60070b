"""Operators on every element alone."""

__all__: list[str] = []
