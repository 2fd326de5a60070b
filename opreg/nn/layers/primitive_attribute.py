"""Primitives that MindSpore's layers have as attributes, for programs whose subclasses call them.

For instance, a convolution with standardised weights is a subclass of ``Conv2d`` whose ``construct`` calls
``self.conv2d(x, weight)``. The layers themselves call functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...cells.cell import Cell
from ..ops import layer_primitives as _layer_primitives
from ..ops import primitives as _primitives
from ..ops.primitive import Primitive
from . import activation, basic, conv, norm, pooling

__all__ = ["PrimitiveAttribute", "attach"]

_layers: Any = _layer_primitives  # classes whose names are generated
_plain: Any = _primitives


class PrimitiveAttribute:
    """An attribute that is a primitive, made from the Cell's settings when it is first read.

    A program may set the attribute to another callable, for its own ``construct``.
    """

    def __init__(self, layer: type[Cell], name: str, make: Callable[[Any], Primitive]):
        self._construct, self._name, self._make = layer.construct, name, make

    def __get__(self, cell: Cell | None, owner: type) -> Any:
        if cell is None:
            return self
        attributes = cell.__dict__
        if self._name not in attributes:
            attributes[self._name] = self._make(cell)  # without __setattr__, which would count as a change
        return attributes[self._name]

    def __set__(self, cell: Cell, value: object) -> None:
        if isinstance(value, Primitive) and type(cell).construct is self._construct:
            warnings.warn(f"{cell.path}: construct of {type(cell).__name__} calls functions, not self.{self._name}; "
                          f"write construct in a subclass to have it called", UserWarning, stacklevel=3)
        cell.__dict__[self._name] = value

    def __delete__(self, cell: Cell) -> None:
        cell.__dict__.pop(self._name, None)


def _convolution(kind: str) -> Callable[[Any], Primitive]:
    def make(cell: Any) -> Primitive:
        pad = tuple([width for pair in cell._sides for width in pair]) if cell.pad_mode == "pad" else 0
        return getattr(_layers, kind)(cell.out_channels, cell.kernel_size, 1, cell.pad_mode, pad, cell.stride,
                                      cell.dilation, cell.group)

    return make


def _pooling(kind: str) -> Callable[[Any], Primitive]:
    def make(cell: Any) -> Primitive:
        ones = (1,) * (2 - cell._dims)
        return getattr(_layers, kind)((*ones, *cell._kernel), (*ones, *cell._stride), cell.pad_mode)

    return make


def _norm(training: bool) -> Callable[[Any], Primitive]:
    def make(cell: Any) -> Primitive:
        return _layers.BatchNorm(training, cell.eps, 1 - cell.momentum if training else 0.1)

    return make


def _function(name: str) -> Callable[[Any], Primitive]:
    return lambda cell: getattr(_plain, name)()


#: Layers, the attribute of each, and the function that makes the primitive from a layer.
_HELD: tuple[tuple[tuple[type[Cell], ...], str, Callable[[Any], Primitive]], ...] = (
    ((basic.Dense,), "matmul", lambda cell: _plain.MatMul(False, True)),
    ((basic.Dense, conv.Conv1d, conv.Conv2d, conv.Conv3d, conv.Conv1dTranspose, conv.Conv2dTranspose,
      conv.Conv3dTranspose), "bias_add", lambda cell: _layers.BiasAdd()),
    ((basic.Embedding,), "gather", lambda cell: _plain.Gather()),
    ((basic.Dropout,), "dropout", lambda cell: _plain.Dropout(cell.keep_prob if cell.p is None else 1 - cell.p)),
    ((conv.Conv1d, conv.Conv2d), "conv2d", _convolution("Conv2D")),
    ((conv.Conv3d,), "conv3d", _convolution("Conv3D")),
    ((norm.BatchNorm1d, norm.BatchNorm2d), "bn_train", _norm(True)),
    ((norm.BatchNorm1d, norm.BatchNorm2d), "bn_infer", _norm(False)),
    ((norm.LayerNorm,), "layer_norm",
     lambda cell: _layers.LayerNorm(cell.begin_norm_axis, cell.begin_params_axis, cell.epsilon)),
    ((pooling.MaxPool1d, pooling.MaxPool2d), "max_pool", _pooling("MaxPool")),
    ((pooling.AvgPool1d, pooling.AvgPool2d), "avg_pool", _pooling("AvgPool")),
    ((activation.Softmax,), "softmax", lambda cell: _plain.Softmax(cell.axis)),
    ((activation.LogSoftmax,), "log_softmax", lambda cell: _plain.LogSoftmax(cell.axis)),
    ((activation.ELU,), "elu", lambda cell: _plain.Elu(cell.alpha)),
    *(((getattr(activation, name),), name.lower(), _function(name))
      for name in ("PReLU", "ReLU", "ReLU6", "Sigmoid", "Tanh", "HSwish", "HSigmoid")),
)


def attach() -> None:
    """Add these attributes to the layers."""
    for layers, name, make in _HELD:
        for layer in layers:
            setattr(layer, name, PrimitiveAttribute(layer, name, make))
