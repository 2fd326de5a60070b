"""For tools that still start setup.py themselves; everything about the package is in setup.cfg."""

from setuptools import setup

setup()
