"""nn: Cells, tensors and gradients with MindSpore's behaviour, over the registered operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aliases import inner
from ..cells.buffers import Buffer as Buffer  # repeated as a sign to type checkers that it is public
from ..cells.cell import Cell as Cell
from ..cells.hooks import HookHandle as HookHandle
from ..cells.hooks import convention as convention
from ..cells.jacobian import Jvp as Jvp
from ..cells.jacobian import Vjp as Vjp
from ..cells.parameter import Parameter as Parameter
from ..cells.parameter import ParameterTuple as ParameterTuple
from ..cells.symbolic import SymbolCell as SymbolCell
from ..cells.symbolic import from_symbol as from_symbol
from ..cells.tensor import Tensor as Tensor
from ..errors import did_you_mean
from . import layers, loss_scale, losses, metrics, optim, train
from . import ops as ops
from .layers import *  # noqa: F403
from .loss_scale import *  # noqa: F403
from .losses import *  # noqa: F403
from .metrics import *  # noqa: F403
from .optim import *  # noqa: F403
from .parallel import DistributedGradReducer as DistributedGradReducer
from .train import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the star imports
    __all__ = ["Buffer", "Cell", "DistributedGradReducer", "HookHandle", "convention", "Jvp", "Vjp", "Parameter",  # noqa: PLE0604
               "ParameterTuple", "SymbolCell", "from_symbol",
               "Tensor", "ops", *layers.__all__, *losses.__all__, *metrics.__all__, *optim.__all__, *train.__all__,
               *loss_scale.__all__]

    def _said(name: str) -> str:
        return (f"opreg.nn has no {name!r}. {did_you_mean(name, __all__)} What MindSpore has beside is listed in "
                "docs/mindspore_names.md")

    __getattr__ = inner(__name__, _said)

    def __dir__() -> list[str]:
        return sorted(__all__)
