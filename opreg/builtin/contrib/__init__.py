"""Contributed operators that belong to no other family."""
