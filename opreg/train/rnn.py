"""Recurrent networks: cells, sentences, and checkpoints with the weights of cells split by gate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from opreg import symbol as symbols
from opreg.ndarray.ndarray import NDArray
from opreg.symbol.symbol import Symbol

from ..aliases import inner
from ..core.named_errors import name_errors
from ..errors import warn
from . import checkpoint
from .callback import at_epochs
from .conv_rnn_cell import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from .rnn_cell import (
    BaseRNNCell,
    BidirectionalCell,
    DropoutCell,
    FusedRNNCell,
    GRUCell,
    LSTMCell,
    ModifierCell,
    ResidualCell,
    RNNCell,
    RNNParams,
    SequentialRNNCell,
    Steps,
    Weights,
    ZoneoutCell,
)
from .sentences import BucketSentenceIter, encode_sentences

__all__ = ["RNNParams", "BaseRNNCell", "RNNCell", "LSTMCell", "GRUCell", "FusedRNNCell", "SequentialRNNCell",
           "BidirectionalCell", "ModifierCell", "DropoutCell", "ZoneoutCell", "ResidualCell", "BaseConvRNNCell",
           "ConvRNNCell", "ConvLSTMCell", "ConvGRUCell", "BucketSentenceIter", "encode_sentences", "rnn_unroll",
           "save_rnn_checkpoint", "load_rnn_checkpoint", "do_rnn_checkpoint"]

#: One cell, or several.
Cells: TypeAlias = BaseRNNCell | Sequence[BaseRNNCell]

__getattr__ = inner(__name__)


def rnn_unroll(cell: BaseRNNCell, length: int, inputs: Steps | None = None, begin_state: list[Symbol] | None = None,
               input_prefix: str = "", layout: str = "NTC") -> tuple[Any, list[Symbol]]:
    """``cell.unroll``; without inputs, with variables ``<input_prefix>t0_data`` and so on."""
    warn("rnn_unroll is deprecated: call cell.unroll", DeprecationWarning)
    if inputs is None:
        inputs = [symbols.var(f"{input_prefix}t{i}_data") for i in range(length)]
    return cell.unroll(length, inputs, begin_state, layout)


def _cells(cells: Cells) -> list[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else list(cells)


def save_rnn_checkpoint(cells: Cells, prefix: str, epoch: int, symbol: Symbol, arg_params: Weights,
                        aux_params: Weights) -> None:
    """``save_checkpoint`` with the weights of a cell, or of several, split by gate."""
    for cell in _cells(cells):
        arg_params = cell.unpack_weights(arg_params)
    checkpoint.save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """The inverse of ``save_rnn_checkpoint``."""
    symbol, args, aux = checkpoint.load_checkpoint(prefix, epoch)
    for cell in _cells(cells):
        args = cell.pack_weights(args)
    return symbol, args, aux


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback for the end of an epoch that calls ``save_rnn_checkpoint`` every ``period`` epochs."""
    return at_epochs("do_rnn_checkpoint", period, functools.partial(save_rnn_checkpoint, cells, prefix))


name_errors(__name__, globals(), __all__)
