"""Tests of ``opreg.symbol``."""
