"""Functions of ``sym``, which apply the registered operators to symbols."""

from __future__ import annotations

import functools
from collections.abc import Callable

from opreg.core.namespaces import CONTRIB, Namespace, front, give_signature, user_function
from opreg.core.op import Op
from opreg.core.random_functions import Sampling, zipfian
from opreg.core.update_functions import updates

from .control_flow_functions import cond, foreach, while_loop
from .symbol import SURFACE, Custom, Symbol, create

__all__ = ["surface", "linalg", "random", "contrib", "image", "op", "custom", "sparse"]


def _function(op: Op, name: str) -> Callable:
    user = op.name.startswith("custom.")
    call = functools.partial(create, hint="custom" if user else name, extra={"op_type": name} if user else None)
    return user_function(call, op, lambda function, op: give_signature(
        function, op, name, "opreg.symbol", ("name", "attr"), True))


surface = SURFACE.provide(front("sym", _function))


linalg = Namespace("sym.linalg", ("_linalg_", "linalg_"), _function)
random: Sampling[Symbol] = Sampling(surface, None)
contrib = Namespace("sym.contrib", ("_contrib_",), _function)
contrib.extend(foreach=foreach, while_loop=while_loop, cond=cond, rand_zipfian=zipfian(random), **CONTRIB,
               **updates(surface))
image = Namespace("sym.image", ("_image_",), _function)
custom = Namespace("sym.custom", ("custom.",), _function)
sparse = Namespace("sym.sparse", ("_sparse_", "", "_"), _function)
op = Namespace("sym.op", ("", "_"), _function)
op.extend(Custom=Custom)
