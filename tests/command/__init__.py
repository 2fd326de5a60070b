"""Tests of ``opreg.command``."""
