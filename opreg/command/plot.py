"""``opreg plot MODEL``: draws a graph."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import opreg
from opreg.core.files import atomic_write
from opreg.errors import DeviceError
from opreg.symbol import Symbol

from . import models, parsing
from .output import add_json, say

__all__ = ["configure", "draw", "run"]

#: Endings of files in Graphviz's language.
_TEXT = (".gv", ".dot")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a -symbol.json file, or its name without this suffix; or an "
                                                       ".onnx file")
    parser.add_argument("shapes", nargs="*", metavar="NAME=SHAPE", help="shapes of inputs, as data=1x3x224x224")
    parser.add_argument("--output", metavar="FILE",
                        help="the picture, svg by default; its suffix decides the format, and .gv is text for Graphviz")
    parser.add_argument("--weights", action="store_true", help="draw weights, too")
    parsing.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the picture, and print its path."""
    shapes = parsing.shapes(options.shapes)
    net = models.symbol(options.model, options.modules, shapes)
    target = options.output or f"{options.model.removesuffix('.json').removesuffix('.onnx')}.svg"
    draw(net, target, shapes, weights=options.weights)
    say(options, {"file": target}, target)
    return 0


def draw(net: Symbol, target: str, shapes: Mapping[str, Sequence[int]], *, weights: bool = False) -> None:
    """Write the picture of a graph; the ending of the file says which format.

    Raises
    ------
    DeviceError
        When the format needs the program dot, and it is missing.
    """
    stem, ending = os.path.splitext(target)
    plot = opreg.viz.plot_network(net, os.path.basename(stem), ending[1:], dict(shapes), hide_weights=not weights)
    with tempfile.TemporaryDirectory() as folder, atomic_write(target) as file:
        if ending in _TEXT:
            file.write(plot.source.encode())
        else:
            picture = Path(plot.render(os.path.join(folder, "plot")))
            if picture.suffix != ending:
                raise DeviceError(f"{target}: a picture in {ending[1:]} needs the program dot of Graphviz, which was "
                                  f"not found; a .gv file holds the graph as text for dot")
            file.write(picture.read_bytes())
