"""The passes that kernels on a GPU need, in the order they run."""

from __future__ import annotations

from .channels_last import channels_last
from .fuse_dense_backward import fuse_dense_backward

__all__ = ["PASSES"]

PASSES = fuse_dense_backward, channels_last
