"""Tests of ``opreg.backends.cuda``, and of the stand-ins for a GPU: see ``tests.cuda``."""
