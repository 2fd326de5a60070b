"""channels_last: channels at the end where oneDNN convolves; see ``opreg.backends.passes.channels_last``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opreg.builtin.layers.batch_norm import batch_norm
from opreg.builtin.layers.convolution import convolution, convolution_data, convolution_weight
from opreg.builtin.layers.fused_convolution import folded_convolution
from opreg.core.op import Op
from opreg.core.rules import Attrs
from opreg.core.spec import Spec
from opreg.symbol.program import Program
from opreg.typing import ArrayModule

from ...passes.channels_last import Library, bring_channels_last
from ..operators.convolution import refused
from ..operators.private import batch_norm_gradient
from ..shared_library import missing

__all__ = ["channels_last"]


def _refused(op: Op, attrs: Attrs, ins: Sequence[Spec], outs: Sequence[Spec], is_train: bool, xp: ArrayModule,
             device: int) -> str | None:
    return refused(op, attrs, ins, outs, is_train)


# Batch norm is among them, since others are slow at it over channels that come last.
_COMPUTES = frozenset({convolution, folded_convolution, convolution_data, convolution_weight, batch_norm,
                       batch_norm_gradient})
_LIBRARY = Library(lambda xp: xp is np, _COMPUTES, _refused)


def channels_last(program: Program) -> Program:
    """Bring channels to the end where oneDNN convolves."""
    return program if missing() is not None else bring_channels_last(program, _LIBRARY)
