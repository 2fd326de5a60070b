"""Operators on images, and on boxes in them."""
