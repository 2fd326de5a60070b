"""Tests of ``opreg.notebook``."""
