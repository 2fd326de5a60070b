"""Rows for the columns of a table, which are scaled, imputed and joined: the domain ``ai.onnx.ml``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opreg.core.registry import ops

from ..graph import Node
from ..rows import Given, row


@row("Scaler", domain="ai.onnx.ml")
def scaler(node: Node, x: Any, *, offset: Any = (0.0,), scale: Any = (1.0,)) -> Any:
    return (node.cast(x, np.float32) - node.lift(np.asarray(offset, np.float32))) * node.lift(
        np.asarray(scale, np.float32))


@row("Binarizer", domain="ai.onnx.ml")
def binarizer(node: Node, x: Any, *, threshold: float = 0.0) -> Any:
    return node.cast(ops._npi_greater_scalar(x, scalar=threshold), node.dtype(x))


@row("Normalizer", domain="ai.onnx.ml")
def normalizer(node: Node, x: Any, *, norm: str = "MAX") -> Any:
    size = {"MAX": lambda: ops._np_max(ops.abs(x), axis=-1, keepdims=True),
            "L1": lambda: ops._np_sum(ops.abs(x), axis=-1, keepdims=True),
            "L2": lambda: ops.sqrt(ops._np_sum(x * x, axis=-1, keepdims=True))}[norm]()
    return ops.broadcast_div(x, size)


@row("Imputer", domain="ai.onnx.ml")
def imputer(node: Node, x: Any, *, imputed_value_floats: Any = None, imputed_value_int64s: Any = None,
            replaced_value_float: float = 0.0, replaced_value_int64: int = 0) -> Any:
    dtype = node.dtype(x)
    if dtype.kind == "i":
        return ops._npi_where(x == replaced_value_int64, node.lift(np.asarray(imputed_value_int64s, dtype)), x)
    missing = ops._npi_isnan(x) if math.isnan(replaced_value_float) else x == replaced_value_float
    return ops._npi_where(missing, node.lift(np.asarray(imputed_value_floats, dtype)), x)


@row("FeatureVectorizer", domain="ai.onnx.ml")
def feature_vectorizer(node: Node, *values: Given, inputdimensions: Any = None) -> Any:
    lifted = [node.lift(value) for value in values]
    return ops.Concat(*lifted, dim=1, num_args=len(lifted))
