"""``opreg ops [PATTERN]``: which operators there are."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys

from opreg.core.registry import operators

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("pattern", nargs="?", default="*", metavar="PATTERN",
                        help="a part of a name, or a pattern with * and ?, upper and lower case alike")
    parser.add_argument("--all", action="store_true", help="those of gradients and of the machinery, too")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    """Print a name and what it is, a line an operator; 1 where there is none."""
    pattern = options.pattern.lower()
    pattern = pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    found = {op.name: op.doc.partition("\n")[0] for op in operators()
             if (options.all or not op.name.startswith("_backward"))
             and any(fnmatch.fnmatchcase(name.lower(), pattern) for name in (op.name, *op.aliases))}
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        width = max(map(len, found), default=0)
        for name in sorted(found, key=str.lower):
            print(f"{name:{width}}  {found[name]}".rstrip())
    if not found:
        print(f"opreg ops: no operator is called {options.pattern!r}", file=sys.stderr)
    return 0 if found else 1
