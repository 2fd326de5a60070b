"""Tests of ``opreg.core``, and of facts that hold for all operators."""
