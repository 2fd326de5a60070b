"""Operators on images, and on boxes in them."""

__all__: list[str] = []
