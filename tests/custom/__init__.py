"""Tests of ``opreg.custom``: operators of users."""
