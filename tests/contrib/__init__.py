"""Tests of ``opreg.contrib``."""
