"""Operators that users write: the classes and functions they are declared by, and the records that run them."""

__all__: list[str] = []
