"""The decoder of a Transformer, and a Transformer of encoder and decoder."""

from __future__ import annotations

import copy

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.initializer import initializer
from ...cells.tensor import Tensor
from ...cells.typing import TensorDType
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from .activation import Activation
from .attention import TransformerEncoder, TransformerEncoderLayer, TransformerLayer
from .checks import check_int
from .containers import CellList
from .norm import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer"]


class TransformerDecoderLayer(TransformerLayer):
    """Self-attention, attention to another sequence, then two Dense layers; each part is added to its input and
    normalised.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first
        See ``TransformerEncoderLayer``.

    Examples
    --------
    >>> from opreg import ops
    >>> TransformerDecoderLayer(8, 2, 16)(ops.ones((5, 3, 8)), ops.ones((7, 3, 8))).shape
    (5, 3, 8)
    """

    _looks = True

    def construct(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                  tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None) -> Tensor:
        """Apply the layer to ``tgt``, with attention to ``memory``; for the masks see ``MultiheadAttention``."""
        def look(x: Tensor) -> Tensor:
            attended = self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0]
            return self.dropout2(attended)

        if self.norm_first:
            x = tgt + self._attend(self.norm1(tgt), tgt_mask, tgt_key_padding_mask)
            x = x + look(self.norm2(x))
            return x + self._forward(self.norm3(x))
        x = self.norm1(tgt + self._attend(tgt, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + look(x))
        return self.norm3(x + self._forward(x))


class TransformerDecoder(Cell):
    """Copies of a decoder layer in a row, and an optional normalisation.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        The layer that is copied.
    num_layers : int
    norm : Cell, optional
        Applied to the result.

    Examples
    --------
    >>> from opreg import nn, ops
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 3)
    >>> decoder(ops.ones((5, 1, 8)), ops.ones((7, 1, 8))).shape
    (5, 1, 8)
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None):
        super().__init__()
        self.layers = CellList([copy.deepcopy(decoder_layer) for _ in range(check_int(self, "num_layers", num_layers))])
        self.num_layers, self.norm = num_layers, norm

    def construct(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                  tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None) -> Tensor:
        """Apply the decoder to ``tgt``, with attention to ``memory``; for the masks see ``MultiheadAttention``."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """An encoder of one sequence, and a decoder of another one that attends to the encoder's output.

    A. Vaswani and others, Attention Is All You Need, arXiv:1706.03762.

    Parameters
    ----------
    d_model, nhead : int
        Number of features, and of heads that share them.
    num_encoder_layers, num_decoder_layers : int
    custom_encoder, custom_decoder : Cell, optional
        Encoder and decoder that replace the default ones.
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first
        See ``TransformerEncoderLayer``.

    Examples
    --------
    >>> from opreg import ops
    >>> Transformer(8, 2, 1, 1, 16)(ops.ones((5, 1, 8)), ops.ones((3, 1, 8))).shape
    (3, 1, 8)
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
                 custom_encoder: Cell | None = None, custom_decoder: Cell | None = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, dtype: TensorDType = float32):
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                    dtype)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*settings), num_encoder_layers, LayerNorm((d_model,), epsilon=layer_norm_eps))
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*settings), num_decoder_layers, LayerNorm((d_model,), epsilon=layer_norm_eps))
        for parameter in self.get_parameters():
            if parameter.ndim > 1:
                parameter.set_data(initializer("xavier_uniform", parameter.shape, parameter.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                  memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                  tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None) -> Tensor:
        """The decoder's output for ``tgt`` and the encoder's output for ``src``; for the masks see
        ``MultiheadAttention``."""
        batch = 0 if self.batch_first else 1
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(f"Transformer: expected {self.d_model} features, got the shapes {show(src.shape)} and "
                             f"{show(tgt.shape)}")
        if len(src.shape) != len(tgt.shape) or (len(src.shape) == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ArgumentError(f"Transformer: src and tgt have different batches: {show(src.shape)} and "
                                f"{show(tgt.shape)}")
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
