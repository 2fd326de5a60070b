"""``opreg trace-cache [list|clear]``: cached files on disk: compiled kernels, and results of tuning."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from opreg.backends.numba import cache

from .output import add_json, columns, say

__all__ = ["configure", "run"]

#: Descriptions of the file endings.
_KINDS = {".code": "compiled functions", ".choices": "choices between ways that were tried"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("action", nargs="?", choices=["list", "clear"], default="list",
                        help="what to do; list by default")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """List the cached files, or remove them."""
    folder = cache.directory()
    files = [] if folder is None or not folder.is_dir() else sorted(
        path for path in folder.iterdir() if path.suffix in _KINDS and path.is_file())
    counts, sizes = Counter(path.suffix for path in files), Counter[str]()
    for path in files:
        sizes[path.suffix] += path.stat().st_size
    if options.action == "clear":
        _clear(files)
    rows = [(str(counts[ending]), f"{sizes[ending]} bytes", what) for ending, what in _KINDS.items() if counts[ending]]
    done = "taken away from" if options.action == "clear" else "in"
    say(options, {"folder": str(folder), "files": dict(counts), "bytes": dict(sizes)},
        "\n".join([f"{len(files)} files {done} {folder}", *([columns(rows)] if rows else [])]))
    return 0


def _clear(files: list[Path]) -> None:
    for path in files:
        try:
            os.unlink(path)
        except FileNotFoundError:  # another process has removed the file
            continue
