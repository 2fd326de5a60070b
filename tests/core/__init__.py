"""Tests of ``opreg.core``, and of what holds of operators wherever they are applied."""
