"""The command ``opreg``, also ``python -m opreg``: a subcommand is a module here, and a line of ``COMMANDS``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from opreg.errors import OpError

__all__ = ["main", "COMMANDS"]

#: Subcommands: the module of each, which has ``configure(parser)`` and ``run(options)``, and what it is for.
COMMANDS = {
    "as-mxnet": ("as_mxnet", "run a script with mxnet meaning this package"),
    "as-mindspore": ("as_mindspore", "run a script with mindspore meaning this package"),
    "info": ("info", "say which versions are here, and what computes"),
    "ops": ("ops", "list operators"),
    "params": ("params", "list the weights in a file, or compare two files"),
    "port": ("port", "rewrite scripts of another time for this package and today's Python"),
    "show": ("show", "say what an operator takes, or what a graph in a file is made of"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        The subcommand and its arguments; those of the program without it.

    Returns
    -------
    int
        0, or what went wrong: 1 where the answer is no, 2 where it could not be given.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="opreg", description="Operators: scripts, files and what there is.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = argv[0] if argv else ""
    for name, (module, purpose) in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
        if name == chosen:  # the others are not imported
            code = importlib.import_module(f"{__name__}.{module}")
            code.configure(command)
            command.set_defaults(run=code.run)
    options = parser.parse_args(argv)
    try:
        return options.run(options)
    except OpError as error:
        print(f"opreg {chosen}: {error}", file=sys.stderr)
        return 2
