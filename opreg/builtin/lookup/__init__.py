"""Operators that read and write at indices."""

__all__: list[str] = []
