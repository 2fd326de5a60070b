"""Row of ONNX Runtime's mixture of experts: an expert has two layers, and a router chooses experts for every token."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opreg.core.registry import ops
from opreg.errors import ArgumentError, AttrError, did_you_mean

from ..graph import Node
from ..rows import row
from .elementwise import gelu, swish

DOMAIN = "com.microsoft"

#: Activations of the first layer, except ``swiglu``, which has two factors.
_ACTIVATIONS: dict[str, Callable[[Node, Any], Any]] = {
    "relu": lambda node, x: ops.relu(x), "relu2": lambda node, x: ops.square(ops.relu(x)),
    "gelu": lambda node, x: gelu(node, x, approximate="tanh"), "silu": swish,
    "identity": lambda node, x: x}


@row("MoE", domain=DOMAIN)
def mixture_of_experts(node: Node, x: Any, router: Any, first: Any, first_bias: Any = None, second: Any = None,
                       second_bias: Any = None, third: Any = None, third_bias: Any = None, *,
                       activation_alpha: float = 1.0, activation_beta: float = 0.0, activation_type: str = "relu",
                       k: int = 1, normalize_routing_weights: int = 0, swiglu_fusion: int = 0,
                       swiglu_limit: float = math.inf, swiglu_limit_after_activation: int = 0, use_sparse_mixer: int = 0
                       ) -> Any:
    if second is None:  # this input is required, although it follows an optional one
        raise node.model.fail(node.title, "fc2_experts_weights is missing")
    if swiglu_limit_after_activation:
        raise ArgumentError("MoE: swiglu_limit_after_activation is not computed")
    tokens = ops.expand_dims(ops.reshape(x, shape=(-1, node.length(x, node.rank(x) - 1))), axis=0)
    hidden = _layer(tokens, first, first_bias)
    if activation_type == "swiglu":
        gate, line = _gate_and_line(hidden, tokens, third, third_bias, swiglu_fusion)
        if swiglu_limit < math.inf:
            gate = ops._npi_minimum_scalar(gate, scalar=swiglu_limit)
            line = ops.clip(line, a_min=-swiglu_limit, a_max=swiglu_limit)
        hidden = swish(node, gate, alpha=activation_alpha) * (line + activation_beta)
    elif activation_type in _ACTIVATIONS:
        hidden = _ACTIVATIONS[activation_type](node, hidden)
        hidden = hidden if third is None else hidden * _layer(tokens, third, third_bias)
    else:
        raise AttrError(f"activation_type={activation_type!r}. "
                        f"{did_you_mean(activation_type, [*_ACTIVATIONS, 'swiglu'])}")
    weights = ops.softmax(router, axis=-1)
    weights = weights * ops.topk(weights, axis=-1, k=k, ret_typ="mask", dtype=node.dtype(x).name)
    if normalize_routing_weights:
        weights = ops.broadcast_div(weights, ops.sum(weights, axis=-1, keepdims=True))
    results = ops.broadcast_mul(_layer(hidden, second, second_bias), ops.expand_dims(ops.transpose(weights), axis=2))
    return ops.reshape_like(ops.sum(results, axis=0), x)


def _layer(x: Any, weight: Any, bias: Any) -> Any:
    """The dense layer of each expert, (experts, tokens, outputs), of tokens for each expert or for all."""
    y = ops._npi_matmul(x, ops.swapaxes(weight, dim1=1, dim2=2))
    return y if bias is None else ops.broadcast_add(y, ops.expand_dims(bias, axis=1))


def _gate_and_line(hidden: Any, tokens: Any, third: Any, third_bias: Any, fusion: int) -> tuple[Any, Any]:
    """Both factors of ``swiglu``: from two layers, or from one layer, in which they alternate or are concatenated."""
    if fusion == 1:
        pairs = ops.reshape(hidden, shape=(0, 0, -4, -1, 2))
        return ops.split(pairs, num_outputs=2, axis=3, squeeze_axis=True)
    if fusion == 2:
        return ops.split(hidden, num_outputs=2, axis=2)
    if third is None:
        raise ArgumentError("MoE: swiglu with swiglu_fusion=0 needs fc3_experts_weights")
    return hidden, _layer(tokens, third, third_bias)
