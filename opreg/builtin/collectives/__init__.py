"""Operators between processes."""

__all__: list[str] = []
