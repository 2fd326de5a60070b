"""``python -m opreg``: the command ``opreg``."""

import sys

from opreg.command import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
