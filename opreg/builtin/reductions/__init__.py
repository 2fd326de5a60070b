"""Reductions, and operators that compare elements along an axis."""
