"""Operators on every number alone."""

__all__: list[str] = []
