"""``opreg info``: versions, devices and optional packages."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform

import numpy as np

import opreg
from opreg.backends.numba import cache
from opreg.core import threads

from .output import add_json, columns, say

__all__ = ["configure", "run", "facts"]

#: Optional packages that are used if they are installed.
_OPTIONAL = ("numba", "onednn-cpu-gomp", "cupy-cuda12x", "cupy-cuda13x", "scipy", "ml_dtypes", "fissix", "pillow",
             "pandas")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)


def facts() -> dict[str, str]:
    """Facts about the installation, one in each line.

    Examples
    --------
    >>> facts()["opreg"] == opreg.__version__
    True
    """
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    rows = {"opreg": opreg.__version__, "Python": platform.python_version(), "platform": platform.platform(),
            "NumPy": np.__version__, "BLAS": f"{blas.get('name', '?')} {blas.get('version', '')}".strip()}
    rows.update({name: _version(name) for name in _OPTIONAL})
    rows["threads"] = str(threads.count())
    rows["kept in"] = str(cache.directory())
    rows.update({name: value for name, value in sorted(os.environ.items()) if name.startswith(("OPREG_", "MXNET_"))})
    return rows


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def run(options: argparse.Namespace) -> int:
    """Print the facts."""
    rows = facts()
    say(options, rows, columns([*rows.items()]))
    return 0
