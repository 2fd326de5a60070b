"""Tests of ``opreg.distributed``, and of gradients that all ranks sum."""
