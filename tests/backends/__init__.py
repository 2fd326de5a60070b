"""Tests of ``opreg.backends``, and of kernels wherever they are declared."""
