"""Tests of ``opreg.backends.cuda``, and of what stands in for a GPU: see ``tests.cuda``."""
