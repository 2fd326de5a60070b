"""The passes that kernels on a GPU need, in the order they run."""

from __future__ import annotations

from .channels_last import channels_last
from .fuse_dense_backward import fuse_dense_backward
from .redraw_dropout import redraw_dropout

__all__ = ["PASSES"]

PASSES = fuse_dense_backward, channels_last, redraw_dropout
