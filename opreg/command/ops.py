"""``opreg ops [PATTERN]``: lists operators."""

from __future__ import annotations

import argparse
import fnmatch
import sys

from opreg.core.registry import names, operators
from opreg.errors import did_you_mean

from . import parsing
from .output import add_json, columns, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("pattern", nargs="?", default="*", metavar="PATTERN",
                        help="a part of a name, or a pattern with * and ?, upper and lower case alike")
    parser.add_argument("--all", action="store_true", help="include operators of gradients and internal ones")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print name and description of each operator, public names first, and return 1 if there is none."""
    for module in options.modules:
        parsing.import_or_load(module)
    pattern = options.pattern.lower()
    pattern = pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    docs = {op.name: op.doc.partition("\n")[0] for op in operators()
            if (options.all or not op.name.startswith("_backward"))
            and any(fnmatch.fnmatchcase(name.lower(), pattern)
                    for name in (op.name, op.op_type or op.name, *op.aliases))}
    order = sorted(docs, key=lambda name: (name.startswith("_"), name.lower()))
    say(options, docs, columns([(name, docs[name]) for name in order]))
    if not docs:
        print(f"opreg ops: no operator is called {options.pattern!r}. {did_you_mean(options.pattern, names())}",
              file=sys.stderr)
    return 0 if docs else 1
