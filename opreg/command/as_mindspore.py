"""``opreg as-mindspore script.py ARGS``, or ``-m module ARGS``: a script of MindSpore, as it lies there."""

from __future__ import annotations

import argparse

from . import as_mxnet
from .as_mxnet import run

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Say what it takes."""
    as_mxnet.configure(parser, "mindspore")
