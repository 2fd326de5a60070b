"""Tests of ``opreg.data``."""
