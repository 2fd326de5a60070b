"""Tests of ``opreg.interop``."""
