"""Tests of ``opreg.testing``."""
