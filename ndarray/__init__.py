"""ndarray: arrays on the host and on GPUs, and the functions that apply operators to them."""

from __future__ import annotations

from opreg.core.named_errors import name_errors

if __name__ != "opreg.ndarray":  # imported as ``ndarray``, the folder's name: be opreg.ndarray, not a second copy
    from opreg.aliases import adopt

    adopt(__name__)

from typing import TYPE_CHECKING, Any

from opreg.aliases import module_below
from opreg.core.namespaces import public

from . import autograd, bound, numpy_protocol, random  # noqa: F401  all imported before __getattr__ is defined
from .cached_op import CachedOp
from .context import Context, cpu, current_context, gpu
from .creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_numpy,
    full,
    linspace,
    moveaxis,
    onehot_encode,
    ones,
    waitall,
    zeros,
)
from .exchange import from_dlpack, to_dlpack_for_read, to_dlpack_for_write
from .function import Custom, custom, sparse, surface
from .io import load, load_frombuffer, save
from .ndarray import NDArray
from .sparse_rules import cast_storage

__all__ = [
    "NDArray", "Context", "cpu", "gpu", "current_context", "array", "zeros", "ones", "full", "empty", "arange",
    "linspace", "eye", "concatenate", "moveaxis", "onehot_encode", "waitall", "from_numpy", "from_dlpack",
    "to_dlpack_for_read", "to_dlpack_for_write", "save", "load", "load_frombuffer", "autograd", "random", "linalg",
    "contrib", "image", "op", "custom", "sparse", "Custom", "CachedOp", "cast_storage",
]

if TYPE_CHECKING:  # stubs, made from the operators
    from . import contrib, image, linalg
    from . import operators as op
    from .operators import *  # noqa: F403

    _internal: Any
else:
    from .function import contrib, image, linalg, op

    _internal = op

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("np", "npx"):
            return module_below(name)
        value = globals()[name] = surface(name)
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *public()})


name_errors(__name__, globals(), [name for name in __all__ if name != "Custom"])  # its errors name the operator
