"""Operators with NumPy's rules, under MXNet's names for them."""
