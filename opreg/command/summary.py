"""``opreg summary FILE data=1x3x224x224``: the layers of a graph, their shapes and weights, as a table."""

from __future__ import annotations

import argparse

from opreg.symbol.show import _layers, print_summary

from . import given, models
from .output import add_json, as_json

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("model", metavar="MODEL", help="-symbol.json, or what its name begins with")
    parser.add_argument("shapes", nargs="*", metavar="NAME=SHAPE", help="shapes of inputs, as data=1x3x224x224")
    models.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print it."""
    net, shapes = models.symbol(options.model, options.modules), given.shapes(options.shapes)
    if options.json:
        rows, total = _layers(net, shapes)
        words = ("layer", "output", "parameters", "inputs")
        print(as_json({"layers": [dict(zip(words, row)) for row in rows], "parameters": total}))
    else:
        print_summary(net, shapes)
    return 0
