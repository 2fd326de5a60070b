"""Operators that users write: the classes and functions they are declared by, and the operators that they become."""

__all__: list[str] = []
