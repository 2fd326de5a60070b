"""model: checkpoints, ``FeedForward``, and helpers of stores, under the names of MXNet's module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import inner
from .checkpoint import BatchEndParam, load_checkpoint, load_params, save_checkpoint
from .feed_forward import FeedForward
from .kvstore import (
    _create_kvstore as _create_kvstore,
)
from .kvstore import (
    _initialize_kvstore as _initialize_kvstore,
)
from .kvstore import (
    _update_params as _update_params,
)
from .kvstore import (
    _update_params_on_kvstore as _update_params_on_kvstore,
)

__all__ = ["BatchEndParam", "save_checkpoint", "load_params", "load_checkpoint", "FeedForward"]

if not TYPE_CHECKING:  # MindSpore has its Model in a module of this name, too
    __getattr__ = inner(__name__)
