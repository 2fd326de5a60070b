"""The passes that oneDNN's kernels need, in the order they run."""

from __future__ import annotations

from .channels_last import channels_last
from .fuse_bn_backward import fuse_bn_backward

__all__ = ["PASSES"]

PASSES = fuse_bn_backward, channels_last
