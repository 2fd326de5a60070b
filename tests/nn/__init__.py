"""Tests of ``opreg.nn``."""
