"""How much arithmetic products of matrices and convolutions are: additions and multiplications, one rule an operator.

Each number of a result is a sum of products, which count as two operations; biases and the like are left out. The three
operators of a bilinear map, the map and its two adjoints, take the same sums apart and count the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import Op
from ..core.spec import Shape
from .layers.attention import INTERLEAVED, Product
from .layers.convolution import (
    convolution,
    convolution_data,
    convolution_weight,
    deconvolution,
    deconvolution_data,
    deconvolution_weight,
)
from .layers.fused_convolution import folded_convolution
from .layers.rnn import backward_rnn, rnn
from .matrices.dense import (
    batch_dot,
    dot,
    dot_lhs,
    dot_rhs,
    fully_connected,
    fully_connected_data,
    fully_connected_weight,
)
from .matrices.linalg import gemm, gemm2, potri, syrk, trmm, trsm
from .numpy_names.numpy_like import matmul, matmul_a, matmul_b
from .quantized.layers import quantized_conv, quantized_fully_connected
from .vision.deformable import deformable, deformable_backward, modulated, modulated_backward
from .vision.warp import grid_generator, grid_generator_data, spatial_transformer

__all__: list[str] = []

Shapes = Sequence[Shape]


def _bilinear(ops: tuple[Op, Op, Op], work: Callable[..., int]) -> None:
    """Rules of a map and its adjoints from ``work(left, right, out, **attrs)``, of the two that are multiplied."""
    forward, of_left, of_right = ops
    forward.flops(lambda ins, outs, **attrs: work(ins[0], ins[1], outs[0], **attrs))
    of_left.flops(lambda ins, outs, **attrs: work(ins[2], ins[1], ins[0], **attrs))
    of_right.flops(lambda ins, outs, **attrs: work(ins[1], ins[2], ins[0], **attrs))


def _dense(data: Shape, weight: Shape, out: Shape, **attrs: Any) -> int:
    return 2 * math.prod(out) * weight[1]


def _dot(lhs: Shape, rhs: Shape, out: Shape, *, transpose_a: bool, **attrs: Any) -> int:
    return 2 * math.prod(lhs) * math.prod(rhs) // max(lhs[0 if transpose_a else -1], 1)


def _matmul(a: Shape, b: Shape, out: Shape, **attrs: Any) -> int:
    return 2 * math.prod(out) * a[-1]


def _convolution(data: Shape, weight: Shape, out: Shape, **attrs: Any) -> int:
    """Every place of the output reads all of one kernel; there are as many kernels as output channels."""
    return 2 * math.prod(out) * math.prod(weight) // max(attrs["num_filter"], 1)


def _deconvolution(data: Shape, weight: Shape, out: Shape, **attrs: Any) -> int:
    """Every place of the data is spread over all of one kernel; there are as many kernels as input channels."""
    layout = attrs["layout"]
    return 2 * math.prod(data) * math.prod(weight) // max(data[1 if layout is None else layout.index("C")], 1)


_bilinear((fully_connected, fully_connected_data, fully_connected_weight), _dense)
_bilinear((dot, dot_lhs, dot_rhs), _dot)
_bilinear((matmul, matmul_a, matmul_b), _matmul)
_bilinear((convolution, convolution_data, convolution_weight), _convolution)
_bilinear((deconvolution, deconvolution_data, deconvolution_weight), _deconvolution)


@folded_convolution.flops
def folded_flops(ins: Shapes, outs: Shapes, **attrs: Any) -> int:
    return _convolution(ins[0], ins[1], outs[0], **attrs)


@quantized_conv.flops
@quantized_fully_connected.flops
def quantized_flops(ins: Shapes, outs: Shapes) -> int:
    """A product of whole numbers: each element of the result takes one kernel, or one row of the weight."""
    return 2 * math.prod(outs[0]) * math.prod(ins[1][1:])


@batch_dot.flops
def batch_dot_flops(ins: Shapes, outs: Shapes, *, transpose_a: bool) -> int:
    return 2 * math.prod(outs[0]) * ins[0][-2 if transpose_a else -1]


@gemm.flops
@gemm2.flops
def gemm_flops(ins: Shapes, outs: Shapes, *, transpose_a: bool, axis: int) -> int:
    return 2 * math.prod(outs[0]) * ins[0][axis if transpose_a else -1]


@syrk.flops
def syrk_flops(ins: Shapes, outs: Shapes, *, transpose: bool) -> int:
    return 2 * math.prod(outs[0]) * ins[0][-2 if transpose else -1]


@trmm.flops
def trmm_flops(ins: Shapes, outs: Shapes) -> int:
    """The zeros of the triangle are multiplied too."""
    return 2 * math.prod(outs[0]) * ins[0][-1]


@trsm.flops
def trsm_flops(ins: Shapes, outs: Shapes) -> int:
    return math.prod(outs[0]) * ins[0][-1]


@potri.flops
def potri_flops(ins: Shapes, outs: Shapes) -> int:
    """The product of the factor's inverse with itself."""
    return 2 * math.prod(outs[0]) * ins[0][-1]


# ------------------------------------------------------------------------------------------ sampling grids


def _places(grid: Shape, transform_type: str) -> int:
    """Both coordinates of every place are a product of three numbers; a flow is added."""
    return 6 * math.prod(grid) if transform_type == "affine" else 0


@grid_generator.flops
def grid_generator_flops(ins: Shapes, outs: Shapes, *, transform_type: str) -> int:
    return _places(outs[0], transform_type)


@grid_generator_data.flops
def grid_generator_data_flops(ins: Shapes, outs: Shapes, *, transform_type: str) -> int:
    return _places(ins[0], transform_type)


@spatial_transformer.flops
def spatial_transformer_flops(ins: Shapes, outs: Shapes, *, transform_type: str) -> int:
    """The arithmetic of the sampling grid."""
    return _places((outs[0][0], 2, *outs[0][2:]), transform_type)


# --------------------------------------------------------------------------------------------- attention


def _interleaved(product: Product) -> None:
    op, back, left, right = product

    def work(weights: Shape, projection: Shape, heads: int) -> int:
        return 2 * math.prod(weights) * (projection[2] // (heads * right.parts))

    op.flops(lambda ins, outs, *, heads: work(outs[0] if left.parts else ins[left.place], ins[right.place], heads))
    back.flops(lambda ins, outs, *, heads: 2 * work(ins[0 if left.parts else 1 + left.place], ins[1 + right.place],
                                                    heads))


for _product in INTERLEAVED:
    _interleaved(_product)


# -------------------------------------------------------------------------------- deformable, recurrent


@deformable.flops
@modulated.flops
def deformable_flops(ins: Shapes, outs: Shapes, *, no_bias: bool) -> int:
    weight = ins[-1 if no_bias else -2]
    return 2 * math.prod(outs[0]) * math.prod(weight[1:])


@deformable_backward.flops
@modulated_backward.flops
def deformable_backward_flops(ins: Shapes, outs: Shapes) -> int:
    """The gradients of the columns and of the weight; ``g`` is the first input and the weight the last."""
    return 4 * math.prod(ins[0]) * math.prod(ins[-1][1:])


_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _recurrent(data: Shape, parameters: Shape, mode: str, state_size: int, num_layers: int, bidirectional: bool) -> int:
    """Every step multiplies all parameters but the biases, two vectors a layer and direction, by each sample."""
    biases = 2 * _GATES[mode] * state_size * num_layers * (1 + bidirectional)
    return 2 * data[0] * data[1] * (parameters[0] - biases)


@rnn.flops
def rnn_flops(ins: Shapes, outs: Shapes, *, mode: str, state_size: int, num_layers: int, bidirectional: bool) -> int:
    return _recurrent(ins[0], ins[1], mode, state_size, num_layers, bidirectional)


@backward_rnn.flops
def backward_rnn_flops(ins: Shapes, outs: Shapes, *, mode: str, state_size: int, num_layers: int,
                       bidirectional: bool) -> int:
    data, parameters = ins[3 if mode == "lstm" else 2:][:2]
    return 2 * _recurrent(data, parameters, mode, state_size, num_layers, bidirectional)
