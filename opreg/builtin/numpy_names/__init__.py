"""Operators with NumPy's rules, under MXNet's names for them."""

__all__: list[str] = []
