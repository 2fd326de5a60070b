"""``opreg as-mxnet script.py ARGS``, or ``-m module ARGS``: runs an unchanged MXNet script."""

from __future__ import annotations

import argparse

from opreg import aliases
from opreg.core.files import open_to_read
from opreg.errors import FileFormatError
from opreg.porting.run import run_script
from opreg.porting.source import decode

__all__ = ["check", "check_script", "configure", "run", "start"]


def configure(parser: argparse.ArgumentParser, library: str = "mxnet") -> None:
    """Add the arguments."""
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module, found by its name")
    parser.add_argument("script", help="the file, or the name of the module")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(library=library)


def check_script(path: str) -> None:
    """Refuse a file that cannot be a script, before anything is set up.

    Raises
    ------
    FileFormatError
        When it is no text file.
    OSError
        When it is missing, a folder, or unreadable.
    """
    with open_to_read(path) as file:
        try:
            decode(file.read())
        except SyntaxError as error:
            raise FileFormatError(f"{path}:{error.lineno or 1}: expected a script, {error.msg}") from None


def run(options: argparse.Namespace) -> int:
    """Run the script, which sets the exit status."""
    check(options)
    return start(options)


def check(options: argparse.Namespace) -> None:
    """Refuse a file that cannot be a script; see ``check_script``. A module is searched for when it is run."""
    if not options.module:
        check_script(options.script)


def start(options: argparse.Namespace) -> int:
    """Run a script after ``check``."""
    aliases.set_library({"mxnet": "MXNet", "mindspore": "MindSpore"}[options.library])
    run_script(options.library, options.script, options.args, options.module)
    return 0
