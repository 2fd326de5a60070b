"""Operators that update weights."""
