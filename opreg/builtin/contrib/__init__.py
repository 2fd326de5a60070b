"""Contributed operators that belong to no other family."""

__all__: list[str] = []
