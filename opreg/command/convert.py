"""``opreg convert SOURCE TARGET``: weights or a model of one format in another, names and dtypes kept.

A graph with its weights becomes a model of ONNX, and a model of ONNX a graph with its weights beside it.
"""

from __future__ import annotations

import argparse
import os

from opreg import onnx
from opreg.errors import ArgumentError, did_you_mean
from opreg.ndarray import params_file
from opreg.ndarray.io import save as save_arrays
from opreg.nn.checkpoint import save_checkpoint

from . import models, weights
from .output import add_json, say

__all__ = ["configure", "run"]

#: Endings of the names of graph files, here and in ONNX.
_GRAPH, _ONNX = ".json", ".onnx"


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("source", metavar="SOURCE",
                        help="a .params, .npz, .safetensors, .ckpt or .pt file; a -symbol.json, or an .onnx file")
    parser.add_argument("target", metavar="TARGET", help="the file to write; its ending says which format")
    parser.add_argument("--input", nargs="+", action="extend", default=[], metavar="[NAME=]X",
                        help="of a graph that becomes an .onnx file: the shape of an input, as 1x3x224x224 or "
                             "8x20:int32")
    parser.add_argument("--params", metavar="FILE", help="its weights; by default the last of those beside the graph")
    parser.add_argument("--dynamic", action="store_true", help="let the first axis of its inputs have any length")
    parser.add_argument("--opset", type=int, metavar="N", help="the version of ONNX's operators")
    models.add_import(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, whole or not at all."""
    ending = os.path.splitext(options.target)[1]
    if ending == _ONNX:
        return _to_onnx(options)
    if options.source.endswith(_ONNX) and ending == _GRAPH:
        return _from_onnx(options)
    if ending not in weights.ENDINGS:
        endings = [*weights.ENDINGS, _GRAPH, _ONNX]
        raise ArgumentError(f"{options.target}: there is no format {ending!r}. {did_you_mean(ending, endings)}")
    found = weights.load(options.source)
    if ending == ".ckpt":
        if not found.named:
            raise ArgumentError(f"{options.source}: its arrays have no names, and those of a .ckpt file have")
        save_checkpoint(found.arrays, options.target)
    else:
        params_file.save(options.target, [params_file.Record(value) for value in found.arrays.values()],
                         list(found.arrays) if found.named else ())
    size = sum(value.nbytes for value in found.arrays.values())
    say(options, {"arrays": len(found.arrays), "bytes": size, "target": options.target},
        f"{len(found.arrays)} arrays, {size} bytes: {options.target}")
    return 0


def _to_onnx(options: argparse.Namespace) -> int:
    options.model = options.source
    net = models.model(options)
    given = models.inputs(net, options.input)
    names = [name for name in net.symbol.list_arguments() if name not in net.weights and not name.endswith("label")]
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(f"nobody says which shape {' and '.join(missing)} have: inputs are given by --input "
                            f"{missing[0]}=1x3x224x224, weights by --params FILE")
    dynamic = {name: {0: "batch"} for name in names if given[name].ndim} if options.dynamic else None
    onnx.export(net.symbol, options.target, *[given[name] for name in names], params=net.weights, dynamic=dynamic,
                opset_version=options.opset)
    size = os.path.getsize(options.target)
    say(options, {"inputs": names, "outputs": net.symbol.list_outputs(), "bytes": size, "target": options.target},
        f"{', '.join(names)} -> {', '.join(net.symbol.list_outputs())}, {size} bytes: {options.target}")
    return 0


def _from_onnx(options: argparse.Namespace) -> int:
    symbol, arguments, states = onnx.import_model(options.source)
    arrays = {**{f"arg:{name}": value for name, value in arguments.items()},
              **{f"aux:{name}": value for name, value in states.items()}}
    beside = f"{options.target.removesuffix(_GRAPH).removesuffix('-symbol')}-0000.params"
    save_arrays(beside, arrays)
    symbol.save(options.target)
    say(options, {"arrays": len(arrays), "target": options.target, "weights": beside},
        f"{len(arrays)} arrays: {options.target}, {beside}")
    return 0
