"""Tests of ``opreg.train``."""
