"""Operators of layers and losses."""

__all__: list[str] = []
