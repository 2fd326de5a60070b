"""The child process of ``opreg check``; the checked code may hang, crash, or end the process."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import traceback
from typing import Any, BinaryIO

from opreg.core.processes import die_with
from opreg.errors import ArgumentError, OpError, note
from opreg.testing.checking import examine, names
from opreg.testing.report import Verdict

from . import error_text, parsing, users

__all__ = ["main"]


def main(parent: int, words: dict[str, Any]) -> None:
    """Run the checks, and write the results as lines of JSON to the original output; prints go to the error stream.

    Parameters
    ----------
    parent : int
        Process number of the parent.
    words : dict
        Arguments of the command line.
    """
    die_with(parent)
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _check(argparse.Namespace(**words), channel)
    except (OpError, OSError) as error:
        _write_message(channel, refused=error_text(error))
    except Exception as error:  # an error of a user's module
        lines = traceback.format_exception(error.with_traceback(users(error.__traceback__)))
        _write_message(channel, raised="".join(lines))


def _check(options: argparse.Namespace, channel: BinaryIO) -> None:
    def tell(title: str, verdict: Verdict | None) -> None:
        _write_message(channel, title=title, verdict=None if verdict is None else dataclasses.asdict(verdict))

    inputs, attrs = list(map(parsing.array, options.input)), parsing.attributes(options.attr)
    for name in options.modules:
        parsing.import_or_load(name)
    what = parsing.find_object(options.what)
    _write_message(channel, checks=names())
    try:
        examine(what, inputs, attrs, tell)
    except ArgumentError as error:
        if not inputs:
            note(error, "inputs are given as --input 2x3 or --input x.npy, one for each")
        raise
    _write_message(channel, done=True)


def _write_message(channel: BinaryIO, **what: object) -> None:
    channel.write(json.dumps(what).encode() + b"\n")
    channel.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
