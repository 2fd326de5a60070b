"""``opreg show-missing FILE…``: operators of graphs that are not registered, or have unknown attributes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from opreg.core.graph import Graph, Node
from opreg.core.placeholder import lookup, placeholder, strange
from opreg.core.registry import names
from opreg.errors import nearest
from opreg.symbol.json import bodies

from . import models, parsing
from .output import add_json, say

__all__ = ["configure", "missing", "run"]

_USER = "custom."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a graph as JSON")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each missing operator, and return 1 if one is missing."""
    missing_by_file = {file: missing(models.symbol(file, options.modules)._graph()) for file in options.files}
    lines = []
    for file, rows in missing_by_file.items():
        lines += [f"{file}: {row['operator']}, {len(row['nodes'])} of them, the first is {row['nodes'][0]!r}: "
                  f"{_missing_text(row)}" for row in rows.values()] or [f"{file}: all there"]
    say(options, {file: [*rows.values()] for file, rows in missing_by_file.items()}, "\n".join(lines))
    return int(any(missing_by_file.values()))


def _missing_text(row: dict) -> str:
    if row["attributes"]:
        return f"it takes no {', '.join(row['attributes'])}"
    near = f"; near it {'is' if len(row['near']) == 1 else 'are'} {', '.join(row['near'])}" if row["near"] else ""
    return f"not registered{near}"


def missing(graph: Graph) -> dict[str, dict]:
    """Nodes of a graph and of its inner graphs that cannot run, by operator: the nodes, similar names, and unknown
    attributes."""
    rows: dict[str, dict] = {}
    for node in _every(graph):
        stands = placeholder(node)
        if stands is None:
            continue
        op = lookup(stands.stored, stands.op_type)
        unknown = [] if op is None else strange(op, node.keywords)
        if op is not None and not unknown and not stands.subgraphs:
            continue  # registered since
        user = [name[len(_USER):] for name in names(_USER)]
        name = stands.op_type or stands.stored
        row = rows.setdefault(f"{name} {unknown}", {
            "operator": stands.stored if stands.op_type is None else f"Custom {name}", "nodes": [],
            "near": [] if unknown else nearest(name, user if stands.op_type else names()), "attributes": unknown})
        row["nodes"].append(node.name)
    return rows


def _every(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for inner in bodies(node):
            yield from _every(inner)
