"""Operators that reshape, repeat, slice and join arrays, or make them from attributes."""
