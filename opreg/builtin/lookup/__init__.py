"""Operators that read and write at indices."""
