"""``opreg params FILE [OTHER]``: lists the arrays of a file, or the differences of two files."""

from __future__ import annotations

import argparse
import hashlib

import numpy as np

from opreg.typing import Array

from . import weights
from .output import add_json, columns, say

__all__ = ["configure", "run"]

#: Number of digits of a hash that are shown.
_DIGITS = 16


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", help="a .params, .npz, .safetensors, .ckpt, .pt or .onnx file")
    parser.add_argument("other", nargs="?", help="one to compare it with")
    parser.add_argument("--hash", action="store_true", help="with the hash of each array, whatever the format")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each array, and return 1 if two files differ."""
    mine = weights.load(options.file).arrays
    if options.other is None:
        listed = {name: {"dtype": value.dtype.name, "shape": list(value.shape), "sha256": _hash(value)}
                  for name, value in mine.items()} if options.hash or options.json else {}
        say(options, listed, columns([
            (name, f"{value.dtype} {'x'.join(map(str, value.shape)) or 'scalar'}",
             *([str(listed[name]["sha256"])[:_DIGITS]] if options.hash else [])) for name, value in mine.items()])
            or "no arrays")
        return 0
    others = weights.load(options.other).arrays
    rows = {name: difference for name in (*mine, *(name for name in others if name not in mine))
            if (difference := _difference(mine.get(name), others.get(name)))}
    say(options, rows, columns([*rows.items()]) or f"{len(mine)} arrays, all equal")
    return int(bool(rows))


def _hash(value: Array) -> str:
    """The hash of dtype, shape and elements."""
    digest = hashlib.sha256(f"{value.dtype.name} {value.shape} ".encode())
    digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _difference(a: Array | None, b: Array | None) -> str:
    """The difference of two arrays as text; empty if they are equal."""
    if a is None or b is None:
        return "only in the second" if a is None else "only in the first"
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype} {a.shape} in the first, {b.dtype} {b.shape} in the second"
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    first, second = a.astype(wide), b.astype(wide)
    apart = (a != b) & ~(np.isnan(first) & np.isnan(second))
    if not apart.any():
        return ""
    with np.errstate(all="ignore"):
        most = np.abs(first - second)[apart].max()
    return f"differ by up to {most:.3g}" + (f", in {apart.sum()} of {apart.size}" if apart.size > 1 else "")
