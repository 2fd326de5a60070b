"""sym.*: the registry seen from graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opreg.errors import UnknownOperatorError, did_you_mean
from opreg.op import Op
from opreg.registry import find, names
from opreg.sampling import Sampling
from opreg.surface import WRITTEN, Namespace, dressed

from .loop_functions import cond, foreach, while_loop
from .symbol import Symbol, create

__all__ = ["surface", "linalg", "random", "contrib", "image", "op", "custom", "sparse"]


def _function(op: Op, name: str) -> Callable:
    user = op.name.startswith("custom.")
    extra = {"op_type": name} if user else None
    hint = "custom" if user else name

    def call(*args: Any, **keywords: Any) -> Symbol:
        return create(op, args, keywords, hint, extra)

    return dressed(call, op, name, "symbol")


@functools.cache
def surface(name: str) -> Callable:
    """The function ``sym.<name>``.

    Raises
    ------
    UnknownOperatorError
        With the nearest names.
    """
    if name in WRITTEN:
        return WRITTEN[name]
    op = find(name) or find(f"_{name}")
    if op is None or op.name.startswith("custom."):
        raise UnknownOperatorError(f"sym has no operator {name!r}. {did_you_mean(name, names())}")
    return _function(op, name)


linalg = Namespace("sym.linalg", ("_linalg_", "linalg_"), _function)
random = Sampling(surface)
contrib = Namespace("sym.contrib", ("_contrib_",), _function)
contrib.extend(foreach=foreach, while_loop=while_loop, cond=cond)
image = Namespace("sym.image", ("_image_",), _function)
custom = Namespace("sym.custom", ("custom.",), _function)
sparse = Namespace("sym.sparse", ("", "_"), _function)
op = Namespace("sym.op", ("", "_"), _function)
