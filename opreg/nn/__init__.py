"""nn: Cells, tensors and gradients with MindSpore's behaviour, over the registered operators."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..aliases import inner
from ..cells.buffers import Buffer as Buffer  # repeated as a sign to type checkers that it is public
from ..cells.cell import Cell as Cell
from ..cells.handles import HookHandle as HookHandle
from ..cells.handles import convention as convention
from ..cells.jacobian import Jvp as Jvp
from ..cells.jacobian import Vjp as Vjp
from ..cells.parameter import Parameter as Parameter
from ..cells.parameter import ParameterTuple as ParameterTuple
from ..cells.symbolic import SymbolCell as SymbolCell
from ..cells.symbolic import from_symbol as from_symbol
from ..cells.tensor import Tensor as Tensor
from ..errors import did_you_mean
from . import ops as ops
from .parallel import DistributedGradReducer as DistributedGradReducer

if TYPE_CHECKING:
    from . import layers as layers
    from . import loss_scale as loss_scale
    from . import losses as losses
    from . import metrics as metrics
    from . import optim as optim
    from . import train as train
    from .layers import *  # noqa: F403
    from .loss_scale import *  # noqa: F403
    from .losses import *  # noqa: F403
    from .metrics import *  # noqa: F403
    from .optim import *  # noqa: F403
    from .train import *  # noqa: F403
else:
    _HERE = ["Buffer", "Cell", "DistributedGradReducer", "HookHandle", "convention", "Jvp", "Vjp", "Parameter",
             "ParameterTuple", "SymbolCell", "from_symbol", "Tensor", "ops"]
    #: Modules with the other names of this package. Tensors, compiled functions and Gluon need none of them, so they
    #: are loaded when one of their names is first used.
    _FAMILIES = ("layers", "losses", "metrics", "optim", "train", "loss_scale")

    def _names() -> list[str]:
        """All names of this module, with its families loaded."""
        if "__all__" not in globals():
            families = [importlib.import_module(f".{family}", __name__) for family in _FAMILIES]
            found = {name: getattr(family, name) for family in families for name in family.__all__}
            globals().update(found, __all__=[*_HERE, *found])
        return globals()["__all__"]

    def _said(name: str) -> str:
        return (f"opreg.nn has no {name!r}. {did_you_mean(name, _names())} What MindSpore has beside is listed in "
                "docs/mindspore_names.md")

    _other = inner(__name__, _said)

    def __getattr__(name: str) -> Any:
        _names()
        return globals()[name] if name in globals() else _other(name)

    def __dir__() -> list[str]:
        return sorted(_names())
