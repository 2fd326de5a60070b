"""``opreg params FILE [OTHER]``: what weights a file holds, or how those of two differ."""

from __future__ import annotations

import argparse
import json

import numpy as np

from opreg.ndarray import load
from opreg.typing import Array

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    parser.add_argument("file", help="a .params or .npz file")
    parser.add_argument("other", nargs="?", help="one to compare it with")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    """Print a line an array; 1 where two files differ."""
    mine = _arrays(options.file)
    if options.other is None:
        rows = {name: f"{value.dtype} {'x'.join(map(str, value.shape)) or 'scalar'}" for name, value in mine.items()}
        status = 0
    else:
        other = _arrays(options.other)
        rows = {name: said for name in (*mine, *(name for name in other if name not in mine))
                if (said := _difference(mine.get(name), other.get(name)))}
        status = int(bool(rows))
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        width = max(map(len, rows), default=0)
        print("\n".join(f"{name:{width}}  {said}" for name, said in rows.items()) or
              (f"{len(mine)} arrays, all equal" if options.other else "no arrays"))
    return status


def _arrays(path: str) -> dict[str, Array]:
    found = load(path)
    named = found.items() if isinstance(found, dict) else ((str(number), value) for number, value in enumerate(found))
    return {name: value.asnumpy() for name, value in named}


def _difference(a: Array | None, b: Array | None) -> str:
    """How two arrays differ; empty where they do not."""
    if a is None or b is None:
        return "only in the second" if a is None else "only in the first"
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype} {a.shape} in the first, {b.dtype} {b.shape} in the second"
    if np.array_equal(a, b, equal_nan=a.dtype.char in "efd"):
        return ""
    return f"differ by up to {np.abs(a.astype(np.float64) - b.astype(np.float64)).max():.3g}"
