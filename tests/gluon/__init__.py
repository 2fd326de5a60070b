"""Tests of ``opreg.gluon``."""
