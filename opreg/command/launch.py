"""``opreg launch -n 4 script.py ARGS``: runs a program as several connected processes on this machine."""

from __future__ import annotations

import argparse
import math
import os

from opreg.core.files import open_to_read
from opreg.errors import ArgumentError

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("-n", type=int, required=True, metavar="COUNT", help="the number of processes")
    parser.add_argument("--timeout", type=float, metavar="SECONDS",
                        help="how long a process waits for the others before it gives up; 300 by default")
    parser.add_argument("-m", action="store_true", help="the program is a module")
    parser.add_argument("program", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    """Start the program and wait; returns its exit status."""
    if options.timeout is not None and not 0 < options.timeout < math.inf:
        raise ArgumentError(f"--timeout {options.timeout:g}: expected seconds")
    if not options.m and not os.path.exists(os.path.join(options.program, "__main__.py")):
        with open_to_read(options.program):
            pass
    from opreg.distributed import launch  # an error on systems without POSIX

    limit = {} if options.timeout is None else {"OPREG_DISTRIBUTED_TIMEOUT": str(options.timeout)}
    program = [*(["-m"] if options.m else []), options.program, *options.args]
    return launch.run(options.n, program, {**os.environ, **limit})
