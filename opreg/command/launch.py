"""``opreg launch -n 4 script.py ARGS``: a program as several processes on this machine, which find each other."""

from __future__ import annotations

import argparse
import os
import subprocess

from opreg.distributed.launch import command, environment

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("-n", type=int, required=True, metavar="COUNT", help="how many processes")
    parser.add_argument("--timeout", type=float, metavar="SECONDS",
                        help="how long a process waits for the others before it gives up; 300 by default")
    parser.add_argument("-m", action="store_true", help="the program is a module")
    parser.add_argument("program", help="the script")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="what it finds in sys.argv")


def run(options: argparse.Namespace) -> int:
    """Start it and wait; ends as it does."""
    if options.n < 1:
        raise SystemExit(f"opreg launch: -n {options.n}: expected at least one process")
    own = environment(options.n, os.environ)
    if options.timeout is not None:
        own["OPREG_DISTRIBUTED_TIMEOUT"] = str(options.timeout)
    program = [*(["-m"] if options.m else []), options.program, *options.args]
    with subprocess.Popen(command(options.n, program), env=own) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the launcher has it too, and passes it on
                continue
