"""Multi-head attention, and the encoder layers of a Transformer."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.tensor import Tensor
from ...cells.typing import TensorDType
from ...core.registry import ops
from ...core.spec import show
from ...errors import ArgumentError, ShapeError
from ..ops.array import pad
from .activation import GELU, Activation, callable_cell
from .basic import Dense, Dropout
from .checks import chance, check_int, flag, new_parameter
from .containers import CellList
from .norm import LayerNorm

__all__ = ["MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder"]


def _project(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``x @ weight.T + bias``, or without the bias if it is None."""
    inputs = (x, weight) if bias is None else (x, weight, bias)
    return ops.FullyConnected(*inputs, num_hidden=weight.shape[0], flatten=False, no_bias=bias is None)


def _mask_as_term(mask: Tensor, dtype: np.dtype) -> Tensor:
    """A mask as a term added to scores: minus infinity where the mask is true."""
    if mask._dt.kind != "b":
        return mask._cast(dtype)
    return ops._npi_where_lscalar(mask, ops.zeros_like(mask._cast(dtype)), scalar=-math.inf)


class MultiheadAttention(Cell):
    """Multi-head attention: for each query the mean of the values, weighted by the similarity of query and keys.

    Parameters
    ----------
    embed_dim, num_heads : int
        Number of features, and of heads that share them.
    dropout : float
        Probability with which a weight is dropped in training.
    has_bias : bool
    add_bias_kv : bool
        Whether each query also attends to one learnt key, whose value is learnt, too.
    add_zero_attn : bool
        Whether each query also attends to a key and a value of zeros.
    kdim, vdim : int, optional
        Features of keys and values, ``embed_dim`` by default.
    batch_first : bool
        Whether inputs are (batch, length, features) instead of (length, batch, features).

    Notes
    -----
    A. Vaswani et al., Attention Is All You Need, arXiv:1706.03762.

    Examples
    --------
    >>> import opreg.nn as nn
    >>> x = nn.Tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> output, weights = MultiheadAttention(2, 1)(x, x, x)
    >>> output.shape, weights.shape
    ((2, 1, 2), (1, 2, 2))
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, has_bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, dtype: TensorDType = float32):
        super().__init__()
        self.embed_dim = check_int(self, "embed_dim", embed_dim)
        self.num_heads = check_int(self, "num_heads", num_heads)
        if embed_dim % num_heads:
            raise ArgumentError(f"MultiheadAttention: num_heads {num_heads} must divide embed_dim {embed_dim}")
        self.dropout, self.batch_first = chance(self, "dropout", dropout), flag(self, "batch_first", batch_first)
        self.has_bias, self.head_dim = flag(self, "has_bias", has_bias), embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else check_int(self, "kdim", kdim)
        self.vdim = embed_dim if vdim is None else check_int(self, "vdim", vdim)
        self._is_fused = self.kdim == self.vdim == embed_dim
        if self._is_fused:
            self.in_proj_weight = new_parameter("xavier_uniform", (3 * embed_dim, embed_dim), "in_proj_weight", dtype)
        else:
            for name, inputs in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                name = f"{name}_proj_weight"
                setattr(self, name, new_parameter("xavier_uniform", (embed_dim, inputs), name, dtype))
        self.in_proj_bias = new_parameter("zeros", (3 * embed_dim,), "in_proj_bias", dtype) if has_bias else None
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=dtype)
        self.add_zero_attn = flag(self, "add_zero_attn", add_zero_attn)
        for name in ("bias_k", "bias_v"):
            learnt = flag(self, "add_bias_kv", add_bias_kv)
            setattr(self, name, new_parameter("xavier_normal", (1, 1, embed_dim), name, dtype) if learnt else None)

    def _heads(self, x: Tensor) -> Tensor:
        """(length, batch, embed_dim) as (batch * heads, length, head_dim)."""
        length, batch = x.shape[:2]
        return x.reshape(length, batch * self.num_heads, self.head_dim).transpose(1, 0, 2)

    def _project_inputs(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Projected queries, keys and values, divided into heads."""
        size = self.embed_dim
        weights = (ops.SliceChannel(self.in_proj_weight, num_outputs=3, axis=0) if self._is_fused else
                   (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight))
        biases = (ops.SliceChannel(self.in_proj_bias, num_outputs=3, axis=0) if self.has_bias else (None,) * 3)
        for x, features in zip(inputs, (size, self.kdim, self.vdim)):
            if len(x.shape) != 3 or x.shape[2] != features:
                raise ShapeError(f"MultiheadAttention: expected 2 or 3 axes, {features} features in the last, got the "
                                 f"shape {show(x.shape)}")
        return [self._heads(_project(x, weight, bias)) for x, weight, bias in zip(inputs, weights, biases)]

    def _with_more(self, keys: Tensor, bias: Tensor | None, batch: int) -> Tensor:
        """Keys or values of all heads, and after them the learnt one and the one of zeros."""
        shape = batch, self.num_heads, 1, self.head_dim
        more = []
        if bias is not None:
            row = ops.broadcast_to(bias.reshape(1, self.num_heads, 1, self.head_dim), shape=shape)
            more.append(row.reshape(batch * self.num_heads, 1, self.head_dim)._cast(keys._dt))
        if self.add_zero_attn:
            more.append(ops.zeros_like(ops.slice_axis(keys, axis=1, begin=0, end=1)))
        return ops.Concat(keys, *more, num_args=1 + len(more), dim=1) if more else keys

    def construct(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                  need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True
                 ) -> tuple[Tensor, Tensor | None]:
        """Outputs of the shape of ``query``, and weights (batch, queries, keys), for each head unless averaged.

        Parameters
        ----------
        query, key, value : Tensors of shape (length, [batch,] features)
        key_padding_mask : Tensor of shape ([batch,] keys), optional
            True, or minus infinity, for keys that no query attends to.
        need_weights : bool
            Whether weights are returned; None otherwise.
        attn_mask : Tensor of shape (queries, keys) or (batch * heads, queries, keys), optional
            True, or minus infinity, where a query does not attend to a key; other values are added to the scores.
        """
        alone = len(query.shape) == 2
        inputs = [query, key, value]
        if alone:
            inputs = [ops.expand_dims(x, axis=1) for x in inputs]
            if key_padding_mask is not None:
                key_padding_mask = ops.expand_dims(key_padding_mask, axis=0)
        elif self.batch_first:
            inputs = [x.transpose(1, 0, 2) for x in inputs]
        queries, keys, values = self._project_inputs(inputs)
        length, batch = inputs[0].shape[:2]
        keys, values = (self._with_more(x, bias, batch) for x, bias in ((keys, self.bias_k), (values, self.bias_v)))
        count = keys.shape[1]
        more = count - inputs[1].shape[0]
        attn_mask, key_padding_mask = (mask if mask is None or not more else
                                       pad(_mask_as_term(mask, queries._dt), (0, more))
                                       for mask in (attn_mask, key_padding_mask))
        sizes = batch, length, count
        weights = None
        if need_weights:
            weights, joined = self._attend(queries, keys, values, key_padding_mask, attn_mask, sizes)
        else:
            joined = self._attend_without_weights(queries, keys, values, key_padding_mask, attn_mask, sizes)
        joined = joined.transpose(1, 0, 2).reshape(length, batch, self.embed_dim)
        output = self.out_proj(joined)
        if weights is not None:
            weights = weights.reshape(batch, self.num_heads, length, count)
            if average_attn_weights:
                weights = ops.mean(weights, axis=(1,))
        if alone:
            output = ops.squeeze(output, axis=(1,))
            weights = weights if weights is None else ops.squeeze(weights, axis=(0,))
        elif self.batch_first:
            output = output.transpose(1, 0, 2)
        return output, weights

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, key_padding_mask: Tensor | None,
                attn_mask: Tensor | None, sizes: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
        """Weights, and weighted sums of the values, for all heads."""
        batch, length, count = sizes
        scores = ops.batch_dot(queries * (1 / math.sqrt(self.head_dim)), keys, transpose_b=True)
        if attn_mask is not None:
            scores = scores + _mask_as_term(attn_mask, scores._dt)
        if key_padding_mask is not None:
            scores = scores.reshape(batch, self.num_heads, length, count)
            scores = scores + _mask_as_term(key_padding_mask, scores._dt).reshape(batch, 1, 1, count)
            scores = scores.reshape(batch * self.num_heads, length, count)
        weights = ops.softmax(scores, axis=-1)
        if self.training and self.dropout:
            weights = ops.Dropout(weights, p=self.dropout, mode="always")
        return weights, ops.batch_dot(weights, values)

    def _attend_without_weights(self, queries: Tensor, keys: Tensor, values: Tensor,
                                key_padding_mask: Tensor | None, attn_mask: Tensor | None,
                                sizes: tuple[int, int, int]) -> Tensor:
        """Weighted sums of the values for all heads, computed by one operator without the weights."""
        batch, length, count = sizes
        dtype, mask = queries._dt, None
        if attn_mask is not None:
            mask = _mask_as_term(attn_mask, dtype)
            mask = mask.reshape(batch, self.num_heads, length, count) if len(mask.shape) == 3 else mask
        if key_padding_mask is not None:
            padding = _mask_as_term(key_padding_mask, dtype).reshape(batch, 1, 1, count)
            mask = padding if mask is None else mask + padding
        heads = [x.reshape(batch, self.num_heads, *x.shape[1:]) for x in (queries, keys, values)]
        output = ops._contrib_scaled_dot_product_attention(
            *heads, *(() if mask is None else (mask,)), p=self.dropout if self.training else 0.0, mode="always",
            use_mask=mask is not None)
        return output.reshape(batch * self.num_heads, length, self.head_dim)


class TransformerLayer(Cell):
    """Base of encoder and decoder layers; decoder layers also attend to another sequence."""

    _looks = False

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, dtype: TensorDType = float32):
        super().__init__()
        if activation is None:
            raise ArgumentError(f"{type(self).__name__}: activation must be the name of an activation, a Cell or "
                                "another function, got None")
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        if self._looks:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm_first = flag(self, "norm_first", norm_first)
        for i in range(1, 4 if self._looks else 3):
            setattr(self, f"norm{i}", LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype))
            setattr(self, f"dropout{i}", Dropout(p=dropout))
        self.activation = GELU(False) if activation == "gelu" else callable_cell(self, "activation", activation)

    def _attend(self, x: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask)[0])

    def _forward(self, x: Tensor) -> Tensor:
        last = self.dropout3 if self._looks else self.dropout2
        return last(self.dense2(self.dropout(self.activation(self.dense1(x)))))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then two Dense layers; each of the two parts is added to its input and normalised.

    Parameters
    ----------
    d_model, nhead : int
        Number of features, and of heads that share them.
    dim_feedforward : int
        Features between the Dense layers.
    dropout : float
    activation : str, Cell or callable
        Activation between the Dense layers; ``gelu`` is the exact one.
    layer_norm_eps : float
    batch_first : bool
        Whether inputs are (batch, length, features) instead of (length, batch, features).
    norm_first : bool
        Whether the input of each part is normalised, instead of the sum.

    Examples
    --------
    >>> from opreg import ops
    >>> TransformerEncoderLayer(8, 2, 16)(ops.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    def construct(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
                 ) -> Tensor:
        """Apply the layer to ``src``; for the masks see ``MultiheadAttention``."""
        if self.norm_first:
            x = src + self._attend(self.norm1(src), src_mask, src_key_padding_mask)
            return x + self._forward(self.norm2(x))
        x = self.norm1(src + self._attend(src, src_mask, src_key_padding_mask))
        return self.norm2(x + self._forward(x))


class TransformerEncoder(Cell):
    """Copies of an encoder layer in a row, and an optional normalisation.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        The layer that is copied.
    num_layers : int
    norm : Cell, optional
        Applied to the result.

    Examples
    --------
    >>> from opreg import nn, ops
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 3)
    >>> encoder(ops.ones((5, 1, 8))).shape
    (5, 1, 8)
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None):
        super().__init__()
        self.layers = CellList([copy.deepcopy(encoder_layer) for _ in range(check_int(self, "num_layers", num_layers))])
        self.num_layers, self.norm = num_layers, norm

    def construct(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
                 ) -> Tensor:
        """Apply the encoder to ``src``; for the masks see ``MultiheadAttention``."""
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)
