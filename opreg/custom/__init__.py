"""Operators that users write: the classes and functions that declare them, and the operators made from them."""
