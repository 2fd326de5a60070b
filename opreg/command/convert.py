"""``opreg convert SOURCE TARGET``: weights of one format in another, names and dtypes kept."""

from __future__ import annotations

import argparse
import os

from opreg.errors import ArgumentError, did_you_mean
from opreg.ndarray import params_file
from opreg.nn.checkpoint import save_checkpoint

from . import weights
from .output import add_json, say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("source", metavar="SOURCE", help="a .params, .npz, .safetensors or .ckpt file")
    parser.add_argument("target", metavar="TARGET", help="the file to write; its ending says which format")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file, whole or not at all."""
    ending = os.path.splitext(options.target)[1]
    if ending not in weights.ENDINGS:
        raise ArgumentError(f"{options.target}: there is no format {ending!r}. {did_you_mean(ending, weights.ENDINGS)}")
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
