"""Tests of ``mx.np`` and ``mx.npx``."""
