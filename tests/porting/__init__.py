"""Tests of ``opreg.porting``."""
