"""``opreg show NAME|FILE``: describes an operator, or the graph in a file."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from opreg.core.arguments import signature
from opreg.core.registry import find, get

from . import models, parsing
from .output import add_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("what", metavar="NAME|FILE", help="an operator, a graph as JSON, or an .onnx file")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the description."""
    for module in options.modules:
        parsing.import_or_load(module)
    if options.what.endswith(".json") or Path(options.what).is_file():
        _graph(options)
    else:
        _operator(options)
    return 0


def _operator(options: argparse.Namespace) -> None:
    op = find(f"custom.{options.what}") or get(options.what)
    called = f"{op.name}{signature(op, further=())}"
    lines = [called, "", op.doc]
    if op.aliases:
        lines += ["", "Also: " + ", ".join(op.aliases)]
    say(options, {"name": op.name, "signature": called, "doc": op.doc, "aliases": list(op.aliases)}, "\n".join(lines))


def _graph(options: argparse.Namespace) -> None:
    symbol = models.symbol(options.what)
    counts = Counter(node["op"] for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null")
    parts = {"Arguments": symbol.list_arguments(), "States": symbol.list_auxiliary_states(),
             "Outputs": symbol.list_outputs()}
    lines = [f"{title} ({len(names)}): {', '.join(names)}" for title, names in parts.items() if names]
    lines += ["", f"{counts.total()} nodes:"]
    for name, count in counts.most_common():
        is_registered = name == "Custom" or find(name) is not None
        lines.append(f"{count:6}  {name}{'' if is_registered else '  (not registered)'}")
    say(options, {**{title.lower(): names for title, names in parts.items()}, "operators": dict(counts.most_common())},
        "\n".join(lines))
