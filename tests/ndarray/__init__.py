"""Tests of ``opreg.ndarray``."""
