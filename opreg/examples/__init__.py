"""First programs, which come with the package: ``python -m opreg.examples.digits`` learns to read.

More of them lie in the folder ``examples`` of the sources, and are no part of the package.
"""

__all__: list[str] = []
