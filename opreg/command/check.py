"""``opreg check module:Prop``: whether an operator, Function, Cell or function keeps the contract."""

from __future__ import annotations

import argparse
import dataclasses

from opreg.custom.operator import check
from opreg.errors import ArgumentError, note

from . import given
from .models import add_import
from .output import add_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("what", metavar="WHAT", help="module:Name, file.py:Name, or the name of an operator")
    parser.add_argument("--input", nargs="+", action="extend", default=[], metavar="X",
                        help="in their order: a .npy file; or a shape for random numbers, as 2x3 or 2x3:int32")
    parser.add_argument("--attr", nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="an attribute")
    add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the verdicts; 1 where something failed."""
    inputs, attrs = list(map(given.array, options.input)), given.attributes(options.attr)
    for name in options.modules:
        given.imported(name)
    what = given.defined(options.what)
    try:
        report = check(what, *inputs, **attrs)
    except ArgumentError as error:
        if not inputs:
            note(error, "inputs are given as --input 2x3 or --input x.npy, one for each")
        raise
    say(options, {"title": report.title, "ok": report.ok, "verdicts": list(map(dataclasses.asdict, report))},
        str(report))
    return int(not report.ok)
