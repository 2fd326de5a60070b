"""Tests of ``opreg.pictures``."""
