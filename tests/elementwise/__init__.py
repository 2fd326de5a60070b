"""Tests of ``opreg.elementwise``."""
