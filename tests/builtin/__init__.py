"""Tests of ``opreg.builtin``; the rows of its operators are in ``tests.rows``."""
