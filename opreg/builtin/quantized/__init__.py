"""Operators on quantised 8-bit integers, as used in files of quantised networks."""
