"""Operators that read and write where indices say."""

__all__: list[str] = []
