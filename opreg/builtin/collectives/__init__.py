"""Operators between processes."""
