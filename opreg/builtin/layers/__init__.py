"""Operators of layers and losses."""
