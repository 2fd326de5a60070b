"""First programs, which come with the package: ``python -m opreg.examples.digits`` learns to read.

The folder ``examples`` of the sources has more, which are not part of the package.
"""
