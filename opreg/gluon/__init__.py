"""Gluon: networks of blocks with parameters, with MXNet's names; each submodule is imported at its first use.

Examples
--------
>>> import opreg as mx
>>> net = mx.gluon.nn.Dense(3, in_units=2)
>>> net.initialize(mx.init.One())
>>> net(mx.nd.array([[1, 2]])).asnumpy()
array([[3., 3., 3.]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import aliases as _aliases
from ..errors import did_you_mean as _did_you_mean

if TYPE_CHECKING:
    from . import block, contrib, data, loss, model_zoo, nn, parameter, rnn, trainer, utils
    from .block import Block, HybridBlock, SymbolBlock
    from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
    from .trainer import Trainer

__all__ = ["block", "parameter", "nn", "loss", "rnn", "trainer", "Block", "HybridBlock", "SymbolBlock", "Parameter",
           "Constant", "ParameterDict", "DeferredInitializationError", "Trainer", "data", "utils", "contrib",
           "model_zoo"]

#: Module of each name that is not itself a module.
_HOMES = {**dict.fromkeys(("Block", "HybridBlock", "SymbolBlock"), "block"),
          **dict.fromkeys(("Parameter", "Constant", "ParameterDict", "DeferredInitializationError"), "parameter"),
          "Trainer": "trainer"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"opreg.gluon has no {name!r}. {_did_you_mean(name, __all__)}")
    home = _HOMES.get(name)
    value: Any = _aliases.module_below(f"gluon.{home or name}")
    if home is not None:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
