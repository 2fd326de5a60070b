"""``python -m opreg``: the command ``opreg``."""

import sys

from opreg.command import main

if __name__ == "__main__":
    sys.exit(main())
