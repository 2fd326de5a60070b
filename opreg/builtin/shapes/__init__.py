"""Operators that move, repeat, cut and join numbers, and make arrays of attributes alone."""

__all__: list[str] = []
