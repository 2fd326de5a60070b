"""``opreg summary FILE data=1x3x224x224``: table of a graph's layers, with shapes and weights."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import opreg
from opreg.symbol import Symbol
from opreg.symbol.json import stored_name

from . import models, parsing
from .output import add_json, as_json

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a -symbol.json file, or its name without this suffix; or an "
                                                       ".onnx file")
    parser.add_argument("shapes", nargs="*", metavar="NAME=SHAPE", help="shapes of inputs, as data=1x3x224x224")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    shapes = parsing.shapes(options.shapes)
    net = models.symbol(options.model, options.modules, shapes)
    if options.json:
        print(as_json(_shapes(net, shapes)))
    else:
        opreg.viz.print_summary(net, shapes)
    return 0


def _shapes(net: Symbol, shapes: Mapping[str, Sequence[int]]) -> dict[str, object]:
    """Shapes of all arrays of a graph, null for unknown ones."""
    inside = net.get_internals()
    arguments, entries, states = inside.infer_shape_partial(**shapes)
    nodes: dict[str, dict] = {}
    for (node, _), dims in zip(inside._graph().heads, entries):
        if node.op is not None:
            row = nodes.setdefault(node.name, {"operator": stored_name(node), "shapes": [], "inputs": [
                source.name for source, _ in node.inputs]})
            row["shapes"].append(dims)
    return {"arguments": dict(zip(inside.list_arguments(), arguments)),
            "states": dict(zip(inside.list_auxiliary_states(), states)), "nodes": nodes}
