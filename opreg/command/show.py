"""``opreg show NAME|FILE``: what an operator takes, or what a graph in a file is made of."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from opreg.core.arguments import signature
from opreg.core.registry import find, get
from opreg.symbol import load

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("what", metavar="NAME|FILE", help="an operator, or a graph as JSON")


def run(options: argparse.Namespace) -> int:
    """Print it."""
    print(_graph(options.what) if options.what.endswith(".json") or Path(options.what).is_file()
          else _operator(options.what))
    return 0


def _operator(name: str) -> str:
    op = get(name)
    lines = [f"{op.name}{signature(op, further=())}", "", op.doc]
    if op.aliases:
        lines += ["", "Also: " + ", ".join(op.aliases)]
    return "\n".join(lines)


def _graph(path: str) -> str:
    symbol = load(path)
    counts = Counter(node["op"] for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null")
    parts = [("Arguments", symbol.list_arguments()), ("States", symbol.list_auxiliary_states()),
             ("Outputs", symbol.list_outputs())]
    lines = [f"{title} ({len(names)}): {', '.join(names)}" for title, names in parts if names]
    lines += ["", f"{counts.total()} nodes:"]
    for name, count in counts.most_common():
        known = name == "Custom" or find(name) is not None
        lines.append(f"{count:6}  {name}{'' if known else '  (not registered)'}")
    return "\n".join(lines)
