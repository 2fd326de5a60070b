"""Tests of ``opreg.backends``, and of all kernels."""
