"""Operators that update weights."""

__all__: list[str] = []
