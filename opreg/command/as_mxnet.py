"""``opreg as-mxnet script.py ARGS``, or ``-m module ARGS``: a script of MXNet, as it lies there."""

from __future__ import annotations

import argparse

from opreg import aliases
from opreg.porting.run import run_script

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser, library: str = "mxnet") -> None:
    """Say what it takes."""
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module, found by its name")
    parser.add_argument("script", help="the file, or the name of the module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="what it finds in sys.argv")
    parser.set_defaults(library=library)


def run(options: argparse.Namespace) -> int:
    """Run the script; it decides how this ends."""
    aliases.serve({"mxnet": "MXNet", "mindspore": "MindSpore"}[options.library])
    run_script(options.library, options.script, options.args, options.module)
    return 0
