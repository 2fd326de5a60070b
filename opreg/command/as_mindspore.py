"""``opreg as-mindspore script.py ARGS``, or ``-m module ARGS``: runs an unchanged MindSpore script."""

from __future__ import annotations

import argparse
import os

from . import as_mxnet

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    chosen = os.environ.get("OPREG_CONVENTION") or "2.4"
    parser.add_argument("--convention", choices=("2.4", "document"), default=chosen,
                        help="how backward hooks are called: as by the version that mindspore.__version__ says, which "
                             "is the default, or as the documents of MindSpore 2.0 say; also OPREG_CONVENTION")
    as_mxnet.configure(parser, "mindspore")


def run(options: argparse.Namespace) -> int:
    """Run the script, which sets the exit status."""
    as_mxnet.check(options)
    os.environ["OPREG_CONVENTION"] = options.convention  # child processes read it
    return as_mxnet.start(options)
