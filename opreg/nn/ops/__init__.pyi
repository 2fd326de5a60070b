# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from functools import partial as partial
from opreg.nn.grad import GradOperation as GradOperation, get_grad as get_grad, grad as grad, stop_gradient as stop_gradient, value_and_grad as value_and_grad
from opreg.nn.hooks import HookBackward as HookBackward, InsertGradientOf as InsertGradientOf
from opreg.nn.jacobian import jacfwd as jacfwd, jacrev as jacrev, jvp as jvp, vjp as vjp
from opreg.nn.ops.custom import Custom as Custom
from opreg.nn.ops.multitype import HyperMap as HyperMap, Map as Map, MultitypeFuncGraph as MultitypeFuncGraph
from opreg.nn.ops.primitive import Primitive as Primitive, PrimitiveWithInfer as PrimitiveWithInfer
from opreg.nn.parameter import assign as assign
from opreg.nn.settings import constexpr as constexpr
from opreg.nn.tensor import Tensor

_Ints = int | Sequence[int]
_Floats = float | Sequence[float]
_DType = str | type[Any] | np.dtype[Any]

class ACos(Primitive):
    """The angle in radians whose cosine it is."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Abs(Primitive):
    """The absolute value."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Acosh(Primitive):
    """The inverse of the hyperbolic cosine."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class AdaptiveAvgPool2D(Primitive):
    """Means over the cells of a grid of ``output_size``, (height, width) or one for both."""
    def __init__(self, output_size: Any) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Add(Primitive):
    """The sum."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class AddN(Primitive):
    """The sum of tensors of one shape, given as a tuple or list."""
    def __init__(self) -> None: ...
    def __call__(self, inputs: Any) -> Tensor: ...
class Addcdiv(Primitive):
    """``input + value * tensor1 / tensor2``."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor: ...
class Addcmul(Primitive):
    """``input + value * tensor1 * tensor2``."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor: ...
class ArgMaxWithValue(Primitive):
    """The place of the largest number along an axis, and the number."""
    def __init__(self, axis: Any = 0, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, Tensor]: ...
class ArgMinWithValue(Primitive):
    """The place of the smallest number along an axis, and the number."""
    def __init__(self, axis: Any = 0, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, Tensor]: ...
class Argmax(Primitive):
    """The place of the largest number along an axis."""
    def __init__(self, axis: Any = -1, output_type: Any = 'int32') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Argmin(Primitive):
    """The place of the smallest number along an axis."""
    def __init__(self, axis: Any = -1, output_type: Any = 'int32') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Asin(Primitive):
    """The angle in radians whose sine it is."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Asinh(Primitive):
    """The inverse of the hyperbolic sine."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Assign(Primitive):
    """Store a value in a Parameter, or another tensor, now or, in a compiled function, when it has run."""
    def __init__(self) -> None: ...
    def __call__(self, variable: Any, value: Any) -> Tensor: ...
class AssignAdd(Primitive):
    """Add to a Parameter, or another tensor."""
    def __init__(self) -> None: ...
    def __call__(self, variable: Any, value: Any) -> Tensor: ...
class AssignSub(Primitive):
    """Subtract from a Parameter, or another tensor."""
    def __init__(self) -> None: ...
    def __call__(self, variable: Any, value: Any) -> Tensor: ...
class Atan(Primitive):
    """The angle in radians whose tangent it is."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Atan2(Primitive):
    """The angle in radians, from -pi to pi, of the point whose height is ``input`` and whose width is …."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Atanh(Primitive):
    """The inverse of the hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class AvgPool(Primitive):
    """The mean of each window of images."""
    def __init__(self, kernel_size: Any = 1, strides: Any = 1, pad_mode: Any = 'valid',
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class AvgPool3D(Primitive):
    """The mean of each window of volumes."""
    def __init__(self, kernel_size: Any = 1, strides: Any = 1, pad_mode: Any = 'valid',
                 data_format: Any = 'NCDHW') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class BCEWithLogitsLoss(Primitive):
    """The binary cross entropy of scores before the sigmoid."""
    def __init__(self, reduction: Any = 'mean') -> None: ...
    def __call__(self, input: Any, target: Any, weight: Any = None, pos_weight: Any = None) -> Tensor: ...
class BatchMatMul(Primitive):
    """Products of the matrices in the last two axes, which may be transposed."""
    def __init__(self, transpose_a: Any = False, transpose_b: Any = False) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class BatchNorm(Primitive):
    """Mean ``bias`` and deviation ``scale`` in every channel, then mean and variance, twice."""
    def __init__(self, is_training: Any = False, epsilon: Any = 1e-05, momentum: Any = 0.1,
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> tuple[Tensor, ...]: ...
class Bernoulli(Primitive):
    """1 with a probability, 0 otherwise, in the shape of a tensor."""
    def __init__(self, seed: Any = -1, offset: Any = 0) -> None: ...
    def __call__(self, x: Any, p: Any) -> Tensor: ...
class BesselI0(Primitive):
    """The modified Bessel function of the first kind of order 0."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class BesselI1(Primitive):
    """The modified Bessel function of the first kind of order 1."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class BiasAdd(Primitive):
    """A vector added along the second axis."""
    def __init__(self, data_format: Any = 'NCHW') -> None: ...
    def __call__(self, x: Any, bias: Any) -> Tensor: ...
class BinaryCrossEntropy(Primitive):
    """The binary cross entropy of probabilities."""
    def __init__(self, reduction: Any = 'mean') -> None: ...
    def __call__(self, x: Any, y: Any, weight: Any = None) -> Tensor: ...
class BitwiseAnd(Primitive):
    """The bits that are set in both."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class BitwiseOr(Primitive):
    """The bits that are set in either."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class BitwiseXor(Primitive):
    """The bits that are set in just one."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class BroadcastTo(Primitive):
    """Repeated along axes of length one, and new ones in front, to fill a shape."""
    def __init__(self, shape: Any) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Cast(Primitive):
    """The numbers in another dtype."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, dtype: Any) -> Tensor: ...
class Ceil(Primitive):
    """The next whole number above."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Concat(Primitive):
    """Tensors one after the other along an axis."""
    def __init__(self, axis: Any = 0) -> None: ...
    def __call__(self, tensors: Any) -> Tensor: ...
class Conv2D(Primitive):
    """Sums over windows of images, weighted by kernels."""
    def __init__(self, out_channel: Any, kernel_size: Any, mode: Any = 1, pad_mode: Any = 'valid', pad: Any = 0,
                 stride: Any = 1, dilation: Any = 1, group: Any = 1, data_format: Any = 'NCHW') -> None: ...
    def __call__(self, x: Any, weight: Any) -> Tensor: ...
class Conv2DBackpropInput(Primitive):
    """The gradient of a convolution in its data, of shape ``input_size``."""
    def __init__(self, out_channel: Any, kernel_size: Any, pad_mode: Any = 'valid', pad: Any = 0,
                 pad_list: Any = None, mode: Any = 1, stride: Any = 1, dilation: Any = 1, group: Any = 1,
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, dout: Any, weight: Any, input_size: Any) -> Tensor: ...
class Conv2DTranspose(Primitive):
    """The gradient of a convolution in its data, of shape ``input_size``."""
    def __init__(self, out_channel: Any, kernel_size: Any, pad_mode: Any = 'valid', pad: Any = 0,
                 pad_list: Any = None, mode: Any = 1, stride: Any = 1, dilation: Any = 1, group: Any = 1,
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, dout: Any, weight: Any, input_size: Any) -> Tensor: ...
class Conv3D(Primitive):
    """Sums over windows of volumes, weighted by kernels."""
    def __init__(self, out_channel: Any, kernel_size: Any, mode: Any = 1, pad_mode: Any = 'valid', pad: Any = 0,
                 stride: Any = 1, dilation: Any = 1, group: Any = 1, data_format: Any = 'NCDHW') -> None: ...
    def __call__(self, x: Any, weight: Any) -> Tensor: ...
class Cos(Primitive):
    """The cosine, of radians."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Cosh(Primitive):
    """The hyperbolic cosine."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class CumProd(Primitive):
    """The products of the numbers so far along an axis, without the last one with ``exclusive``."""
    def __init__(self, exclusive: Any = False, reverse: Any = False) -> None: ...
    def __call__(self, x: Any, axis: int) -> Tensor: ...
class CumSum(Primitive):
    """The sums of the numbers so far along an axis, without the last one with ``exclusive``."""
    def __init__(self, exclusive: Any = False, reverse: Any = False) -> None: ...
    def __call__(self, x: Any, axis: int) -> Tensor: ...
class DType(Primitive):
    """The dtype of a tensor."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Any: ...
class Dense(Primitive):
    """``input @ weight.T + bias``, over the last axis."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, weight: Any, bias: Any = None) -> Tensor: ...
class Depend(Primitive):
    """The first of two values."""
    def __init__(self) -> None: ...
    def __call__(self, value: Any, expr: Any) -> Any: ...
class DepthToSpace(Primitive):
    """Channels spread over blocks of height and width."""
    def __init__(self, block_size: Any) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Diag(Primitive):
    """The matrix that has a vector on its diagonal."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Div(Primitive):
    """The quotient."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor: ...
class DivNoNan(Primitive):
    """The quotient, and 0 where the divisor is."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class Dropout(Primitive):
    """Numbers kept with a probability and divided by it, the others 0."""
    def __init__(self, keep_prob: Any = 0.5, Seed0: Any = 0, Seed1: Any = 0) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, Tensor]: ...
class Dropout2D(Primitive):
    """Channels of images kept with a probability and divided by it, the others 0."""
    def __init__(self, keep_prob: Any = 0.5) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, Tensor]: ...
class Dropout3D(Primitive):
    """Channels of volumes kept with a probability and divided by it, the others 0."""
    def __init__(self, keep_prob: Any = 0.5) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, Tensor]: ...
class Einsum(Primitive):
    """Sums of products as an equation of letters says."""
    def __init__(self, equation: Any) -> None: ...
    def __call__(self, inputs: Any) -> Tensor: ...
class Elu(Primitive):
    """``x``, ``alpha * (exp(x) - 1)`` below zero."""
    def __init__(self, alpha: Any = 1.0) -> None: ...
    def __call__(self, input_x: Any) -> Tensor: ...
class Equal(Primitive):
    """Whether numbers are equal."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Erf(Primitive):
    """The error function."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Erfc(Primitive):
    """One less the error function."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Erfinv(Primitive):
    """The inverse of the error function."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Exp(Primitive):
    """The exponential."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class ExpandDims(Primitive):
    """An axis of length one inserted, so that it is ``axis`` of the result."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, axis: int) -> Tensor: ...
class Expm1(Primitive):
    """The exponential less one, exact near zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Eye(Primitive):
    """Ones on the diagonal of ``n`` rows and ``m`` columns, as many as rows by default."""
    def __init__(self) -> None: ...
    def __call__(self, n: int, m: int | None = None, dtype: Any = None) -> Tensor: ...
class FastGeLU(Primitive):
    """``x sigmoid(1.702 x)``, near ``gelu``."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Fill(Primitive):
    """One number everywhere, of that dtype."""
    def __init__(self) -> None: ...
    def __call__(self, type: Any, shape: Any, value: Any) -> Tensor: ...
class FillV2(Primitive):
    """A tensor without axes repeated to fill a shape."""
    def __init__(self) -> None: ...
    def __call__(self, shape: Any, value: Any) -> Tensor: ...
class Flatten(Primitive):
    """Axes from ``start_dim`` to ``end_dim`` made one."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, order: str = 'C', *, start_dim: int = 1, end_dim: int = -1) -> Tensor: ...
class Floor(Primitive):
    """The next whole number below."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class FloorDiv(Primitive):
    """The quotient, rounded down."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class FloorMod(Primitive):
    """The remainder, with the sign of the divisor."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class ForiLoop(Primitive):
    """A function of a counter and a value applied so many times."""
    def __init__(self) -> None: ...
    def __call__(self, lower: int, upper: int, loop_func: Any, init_val: Any, unroll: bool = True) -> Any: ...
class Gather(Primitive):
    """The slices along an axis that indices name."""
    def __init__(self, batch_dims: Any = 0) -> None: ...
    def __call__(self, input_params: Any, input_indices: Any, axis: int) -> Tensor: ...
class GatherD(Primitive):
    """See ``gather_elements``."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any, dim: int, index: Any) -> Tensor: ...
class GatherNd(Primitive):
    """The parts at places whose indices, one an axis from the first on, lie along the last axis of …."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any) -> Tensor: ...
class GeLU(Primitive):
    """The Gaussian error linear unit, by the hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Ger(Primitive):
    """Every number of a vector times every one of another."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, vec2: Any) -> Tensor: ...
class Greater(Primitive):
    """Whether numbers of the first are greater."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class GreaterEqual(Primitive):
    """Whether numbers of the first are no less."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class HShrink(Primitive):
    """``x``, and 0 within ``lambd`` of zero."""
    def __init__(self, lambd: Any = 0.5) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class HSigmoid(Primitive):
    """``(x + 3) / 6``, cut off at 0 and 1."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class HSwish(Primitive):
    """``x hardsigmoid(x)``."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class HistogramSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: Any) -> None: ...
class Hypot(Primitive):
    """The square root of both squares' sum."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Identity(Primitive):
    """The same."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class ImageSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: Any) -> None: ...
class Inv(Primitive):
    """One by the number."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class IsFinite(Primitive):
    """Whether it is neither infinite nor NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class IsInf(Primitive):
    """Whether it is infinite."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class IsNan(Primitive):
    """Whether it is NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class KLDivLoss(Primitive):
    """``labels (log(labels) - logits)``, 0 where a label is not positive."""
    def __init__(self, reduction: Any = 'mean') -> None: ...
    def __call__(self, logits: Any, labels: Any) -> Tensor: ...
class L2Loss(Primitive):
    """Half the sum of squares."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class L2Normalize(Primitive):
    """Numbers divided by their length along an axis, which counts as the root of ``epsilon`` at least."""
    def __init__(self, axis: Any = 0, epsilon: Any = 0.0001) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class LRN(Primitive):
    """Divided by ``(bias + alpha s) ** beta``, s the sum of squares over channels within ``depth_radius``."""
    def __init__(self, depth_radius: Any = 5, bias: Any = 1.0, alpha: Any = 1.0, beta: Any = 0.5,
                 norm_region: Any = 'ACROSS_CHANNELS') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class LayerNorm(Primitive):
    """Mean zero and deviation one over the last axes, scaled and shifted."""
    def __init__(self, begin_norm_axis: Any = 1, begin_params_axis: Any = 1, epsilon: Any = 1e-07) -> None: ...
    def __call__(self, x: Any, gamma: Any, beta: Any) -> tuple[Tensor, Tensor, Tensor]: ...
class Lerp(Primitive):
    """``input + weight * (end - input)``."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, end: Any, weight: Any) -> Tensor: ...
class Less(Primitive):
    """Whether numbers of the first are less."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class LessEqual(Primitive):
    """Whether numbers of the first are no greater."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class LinSpace(Primitive):
    """So many numbers at equal distances from ``start`` to ``end``, both included."""
    def __init__(self) -> None: ...
    def __call__(self, start: Any, end: Any, steps: int) -> Tensor: ...
class Log(Primitive):
    """The natural logarithm."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Log1p(Primitive):
    """The natural logarithm of one more, exact near zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class LogSoftmax(Primitive):
    """The logarithm of ``softmax``, without the rounding of taking it afterwards."""
    def __init__(self, axis: Any = -1) -> None: ...
    def __call__(self, logits: Any) -> Tensor: ...
class LogicalAnd(Primitive):
    """Whether both are true, or not zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class LogicalNot(Primitive):
    """Whether it is zero, or false."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class LogicalOr(Primitive):
    """Whether one is true, or not zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class LogicalXor(Primitive):
    """Whether just one is true, or not zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class MaskedFill(Primitive):
    """A number, or that of a tensor without axes, where the mask holds."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, mask: Any, value: Any) -> Tensor: ...
class MatMul(Primitive):
    """The product of two matrices, which may be transposed."""
    def __init__(self, transpose_a: Any = False, transpose_b: Any = False) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class MaxPool(Primitive):
    """The largest number of each window of images."""
    def __init__(self, kernel_size: Any = 1, strides: Any = 1, pad_mode: Any = 'valid',
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class MaxPool3D(Primitive):
    """The largest number of each window of volumes."""
    def __init__(self, kernel_size: Any = 1, strides: Any = 1, pad_mode: Any = 'valid',
                 data_format: Any = 'NCDHW') -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Maximum(Primitive):
    """The larger one, or NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Meshgrid(Primitive):
    """Vectors repeated to a grid."""
    def __init__(self, indexing: Any = 'xy') -> None: ...
    def __call__(self, *inputs: Any) -> tuple[Tensor, ...]: ...
class Minimum(Primitive):
    """The smaller one, or NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class MirrorPad(Primitive):
    """Numbers around a tensor that a mirror shows."""
    def __init__(self, mode: Any = 'REFLECT') -> None: ...
    def __call__(self, x: Any, paddings: Any) -> Tensor: ...
class Mish(Primitive):
    """``x tanh(log(1 + exp(x)))``."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Mod(Primitive):
    """The remainder of the quotient cut towards zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Mul(Primitive):
    """The product."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Multinomial(Primitive):
    """Places along the last axis drawn with the probabilities there."""
    def __init__(self, seed: Any = 0, seed2: Any = 0, dtype: Any = 'int32') -> None: ...
    def __call__(self, x: Any, count: Any) -> Tensor: ...
class NLLLoss(Primitive):
    """The negative log likelihood, and the sum of the weights that took part."""
    def __init__(self, reduction: Any = 'mean', ignore_index: Any = -100) -> None: ...
    def __call__(self, logits: Any, labels: Any, weight: Any) -> tuple[Tensor, Tensor]: ...
class NanToNum(Primitive):
    """Finite numbers in place of NaN (0), infinity and negative infinity (the largest and least of the …."""
    def __init__(self, nan: Any = None, posinf: Any = None, neginf: Any = None) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Neg(Primitive):
    """The number with the other sign."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class NotEqual(Primitive):
    """Whether numbers differ."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class OneHot(Primitive):
    """For each index, ``off_value`` in ``depth`` places and ``on_value`` at that place, along a new axis."""
    def __init__(self, axis: Any = -1) -> None: ...
    def __call__(self, indices: Any, depth: int, on_value: Any = 1, off_value: Any = 0) -> Tensor: ...
class Ones(Primitive):
    """Ones."""
    def __init__(self) -> None: ...
    def __call__(self, shape: Any, dtype: Any = None) -> Tensor: ...
class OnesLike(Primitive):
    """Ones in the shape of a tensor, and in its dtype or another."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, *, dtype: Any = None) -> Tensor: ...
class PReLU(Primitive):
    """``x``, times ``weight`` below zero, which has one number, or one for each channel, the second axis."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, weight: Any) -> Tensor: ...
class Pad(Primitive):
    """Zeros around a tensor."""
    def __init__(self, paddings: Any) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Partial(Primitive):
    """A function with its first arguments given."""
    def __init__(self) -> None: ...
    def __call__(self, function: Any, *values: Any) -> Any: ...
class Pow(Primitive):
    """``input`` to the power ``exponent``."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, exponent: Any) -> Tensor: ...
class Print(Primitive):
    """Prints what it is given, also on every run of a compiled function, and returns it."""
    def __init__(self) -> None: ...
    def __call__(self, *values: Any) -> Any: ...
class Range(Primitive):
    """Numbers from ``start`` to before ``end``."""
    def __init__(self) -> None: ...
    def __call__(self, start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Tensor: ...
class Rank(Primitive):
    """How many axes there are."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any) -> int: ...
class ReLU(Primitive):
    """The number, or zero if that is more."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, inplace: bool = False) -> Tensor: ...
class ReLU6(Primitive):
    """The number, cut off at 0 and 6."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class RealDiv(Primitive):
    """The quotient."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Reciprocal(Primitive):
    """One by the number."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class ReduceAll(Primitive):
    """Whether none is false, or zero."""
    def __init__(self, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class ReduceAny(Primitive):
    """Whether one is true, or not zero."""
    def __init__(self, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class ReduceMax(Primitive):
    """The largest number."""
    def __init__(self, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class ReduceMean(Primitive):
    """The mean."""
    def __init__(self, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class ReduceMin(Primitive):
    """The smallest number."""
    def __init__(self, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class ReduceProd(Primitive):
    """The product."""
    def __init__(self, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class ReduceStd(Primitive):
    """The deviation and the mean."""
    def __init__(self, axis: Any = (), unbiased: Any = True, keep_dims: Any = False) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, Tensor]: ...
class ReduceSum(Primitive):
    """The sum."""
    def __init__(self, keep_dims: Any = False, skip_mode: Any = False) -> None: ...
    def __call__(self, x: Any, axis: Any = ()) -> Tensor: ...
class Reshape(Primitive):
    """The same numbers in another shape."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, shape: Any) -> Tensor: ...
class ResizeBilinearV2(Primitive):
    """Images in another size, a mixture of the four nearest numbers in each place."""
    def __init__(self, align_corners: Any = False, half_pixel_centers: Any = False) -> None: ...
    def __call__(self, image: Any, size: Any) -> Tensor: ...
class ReverseV2(Primitive):
    """In opposite order along axes."""
    def __init__(self, axis: Any) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Rint(Primitive):
    """The nearest whole number, halves to the even one."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Roll(Primitive):
    """Numbers moved on along an axis."""
    def __init__(self, shift: Any, axis: Any) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Round(Primitive):
    """The nearest number with so many decimals, halves to the even one."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, *, decimals: int = 0) -> Tensor: ...
class Rsqrt(Primitive):
    """One by the square root."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class ScalarSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: Any) -> None: ...
class ScalarToTensor(Primitive):
    """One number as a tensor without axes."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, dtype: Any = 'float32') -> Tensor: ...
class Scan(Primitive):
    """A function applied to the slices of a tensor along the first axis, handing a value on from one to …."""
    def __init__(self) -> None: ...
    def __call__(self, loop_func: Any, init: Any, xs: Any, length: int | None = None, unroll: bool = True) -> Any: ...
class ScatterNd(Primitive):
    """Zeros of a shape with ``updates`` added at the places that ``gather_nd`` would take them from."""
    def __init__(self) -> None: ...
    def __call__(self, indices: Any, updates: Any, shape: Any) -> Tensor: ...
class SeLU(Primitive):
    """The scaled exponential linear unit."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any) -> Tensor: ...
class Select(Primitive):
    """Numbers of ``input`` where the condition holds, of ``other`` elsewhere."""
    def __init__(self) -> None: ...
    def __call__(self, condition: Any, input: Any, other: Any) -> Tensor: ...
class Shape(Primitive):
    """The lengths of the axes, as a tuple."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any) -> tuple[int, ...]: ...
class Sigmoid(Primitive):
    """``1 / (1 + exp(-x))``."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Sign(Primitive):
    """-1, 0 or 1."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Sin(Primitive):
    """The sine, of radians."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Sinh(Primitive):
    """The hyperbolic sine."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Size(Primitive):
    """How many numbers there are."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any) -> int: ...
class Slice(Primitive):
    """The part that begins at a place and has a size."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, begin: Any, size: Any) -> Tensor: ...
class SmoothL1Loss(Primitive):
    """Half the squared difference by ``beta`` where it is below that, the absolute one less half of it …."""
    def __init__(self, beta: Any = 1.0, reduction: Any = 'none') -> None: ...
    def __call__(self, input: Any, target: Any) -> Tensor: ...
class SoftShrink(Primitive):
    """``x`` less ``lambd`` above, more ``lambd`` below, and 0 within ``lambd`` of zero."""
    def __init__(self, lambd: Any = 0.5) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Softmax(Primitive):
    """Exponentials, scaled to add up to one along an axis."""
    def __init__(self, axis: Any = -1) -> None: ...
    def __call__(self, input: Any, *, dtype: Any = None) -> Tensor: ...
class SoftmaxCrossEntropyWithLogits(Primitive):
    """Losses, and their gradients as a value."""
    def __init__(self) -> None: ...
    def __call__(self, logits: Any, labels: Any) -> tuple[Tensor, Tensor]: ...
class Softplus(Primitive):
    """``log(1 + exp(beta x)) / beta``, and x itself where ``beta x`` is above the threshold."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, beta: float = 1, threshold: float = 20) -> Tensor: ...
class Softsign(Primitive):
    """``x / (1 + |x|)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class Sort(Primitive):
    """Numbers in order along an axis, and the places they come from, as int32."""
    def __init__(self, axis: Any = -1, descending: Any = False) -> None: ...
    def __call__(self, input_x: Any) -> tuple[Tensor, Tensor]: ...
class SpaceToDepth(Primitive):
    """Blocks of height and width laid along the channels."""
    def __init__(self, block_size: Any) -> None: ...
    def __call__(self, x: Any) -> Tensor: ...
class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """The mean cross entropy of scores with class numbers, or its gradient."""
    def __init__(self, is_grad: Any = False) -> None: ...
    def __call__(self, logits: Any, labels: Any) -> Tensor: ...
class Split(Primitive):
    """So many equal parts along an axis."""
    def __init__(self, axis: Any = 0, output_num: Any = 1) -> None: ...
    def __call__(self, x: Any) -> tuple[Tensor, ...]: ...
class Sqrt(Primitive):
    """The square root."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Square(Primitive):
    """The square."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class SquaredDifference(Primitive):
    """The square of the difference."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class Squeeze(Primitive):
    """Without those axes, which have length one, or without all such axes."""
    def __init__(self, axis: Any = ()) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Stack(Primitive):
    """Tensors of one shape side by side along a new axis."""
    def __init__(self, axis: Any = 0) -> None: ...
    def __call__(self, tensors: Any) -> Tensor: ...
class StandardLaplace(Primitive):
    """Numbers of the Laplace distribution of mean 0 and scale 1."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: Any) -> Tensor: ...
class StandardNormal(Primitive):
    """Numbers of the normal distribution of mean 0 and deviation 1."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: Any) -> Tensor: ...
class StopGradient(Primitive):
    """The same numbers, through which no gradient passes."""
    def __init__(self) -> None: ...
    def __call__(self, value: Any) -> Tensor: ...
class StridedSlice(Primitive):
    """The part between two places, by steps."""
    def __init__(self, begin_mask: Any = 0, end_mask: Any = 0, ellipsis_mask: Any = 0, new_axis_mask: Any = 0,
                 shrink_axis_mask: Any = 0) -> None: ...
    def __call__(self, x: Any, begin: Any, end: Any, strides: Any) -> Tensor: ...
class Sub(Primitive):
    """The difference."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class Tan(Primitive):
    """The tangent, of radians."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Tanh(Primitive):
    """The hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class TensorAdd(Primitive):
    """The sum."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class TensorScatterAdd(Primitive):
    """``updates`` added at places, those of equal indices one after the other."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorScatterDiv(Primitive):
    """What is there divided by all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorScatterMax(Primitive):
    """The larger of what is there and all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorScatterMin(Primitive):
    """The smaller of what is there and all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorScatterMul(Primitive):
    """What is there times all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorScatterSub(Primitive):
    """``updates`` subtracted at places, those of equal indices one after the other."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorScatterUpdate(Primitive):
    """``updates`` in place of what is there."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor: ...
class TensorSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: Any) -> None: ...
class Tile(Primitive):
    """Laid side by side, so many times along each axis."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, dims: Any) -> Tensor: ...
class TopK(Primitive):
    """The ``k`` largest numbers along an axis, or the smallest, and their places as int32."""
    def __init__(self, sorted: Any = True) -> None: ...
    def __call__(self, input: Any, k: int, dim: int | None = None, largest: bool = True) -> tuple[Tensor, Tensor]: ...
class Transpose(Primitive):
    """The axes in another order."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, dims: Sequence[int]) -> Tensor: ...
class Tril(Primitive):
    """Matrices with zeros above a diagonal."""
    def __init__(self, diagonal: Any = 0) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Triu(Primitive):
    """Matrices with zeros below a diagonal."""
    def __init__(self, diagonal: Any = 0) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class Trunc(Primitive):
    """The next whole number towards zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any) -> Tensor: ...
class TruncateDiv(Primitive):
    """The quotient, rounded towards zero."""
    def __init__(self) -> None: ...
    def __call__(self, x: Any, y: Any) -> Tensor: ...
class TruncateMod(Primitive):
    """The remainder of the quotient cut towards zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, other: Any) -> Tensor: ...
class UniformInt(Primitive):
    """Whole numbers from a least one up to but not another."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: Any, low: Any, high: Any) -> Tensor: ...
class UniformReal(Primitive):
    """Numbers from 0 up to but not 1."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: Any) -> Tensor: ...
class UnsortedSegmentSum(Primitive):
    """Sums of the slices along the first axes that have the same number in ``segment_ids``."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Any, segment_ids: Any, num_segments: int) -> Tensor: ...
class Unstack(Primitive):
    """The slices along an axis, which is gone."""
    def __init__(self, axis: Any = 0, num: Any = None) -> None: ...
    def __call__(self, x: Any) -> Any: ...
class WhileLoop(Primitive):
    """A function applied to a value, or a nesting of them, while a condition on it holds."""
    def __init__(self) -> None: ...
    def __call__(self, cond_func: Any, loop_func: Any, init_val: Any, max_iterations: int | None = None) -> Any: ...
class Zeros(Primitive):
    """Zeros."""
    def __init__(self) -> None: ...
    def __call__(self, size: Any, dtype: Any = None) -> Tensor: ...
class ZerosLike(Primitive):
    """Zeros in the shape of a tensor, and in its dtype or another."""
    def __init__(self) -> None: ...
    def __call__(self, input: Any, *, dtype: Any = None) -> Tensor: ...
def abs(input: Any) -> Tensor:
    """The absolute value."""
def acos(input: Any) -> Tensor:
    """The angle in radians whose cosine it is."""
def acosh(input: Any) -> Tensor:
    """The inverse of the hyperbolic cosine."""
def adaptive_avg_pool1d(input: Any, output_size: int) -> Tensor:
    """Means over so many cells of sequences."""
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means over the cells of a grid of ``output_size``, (height, width) or one for both."""
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest number of each cell of a grid of ``output_size``."""
def add(input: Any, other: Any) -> Tensor:
    """The sum."""
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input`` plus ``alpha`` times the sum of all products ``batch1 @ batch2``."""
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``."""
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * mat @ vec``."""
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)``."""
def all(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether none is false, or zero."""
def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: float | None = None,
         where: Any = None) -> Tensor:
    """The largest number, ``initial`` at least, of those where ``where`` holds."""
def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: float | None = None,
         where: Any = None) -> Tensor:
    """The smallest number, ``initial`` at most, of those where ``where`` holds."""
def aminmax(input: Any, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest number."""
def any(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether one is true, or not zero."""
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Numbers from ``start`` to before ``end``, or from 0 to before ``start``."""
def arccos(input: Any) -> Tensor:
    """The angle in radians whose cosine it is."""
def arccosh(input: Any) -> Tensor:
    """The inverse of the hyperbolic cosine."""
def arcsin(input: Any) -> Tensor:
    """The angle in radians whose sine it is."""
def arcsinh(input: Any) -> Tensor:
    """The inverse of the hyperbolic sine."""
def arctan(input: Any) -> Tensor:
    """The angle in radians whose tangent it is."""
def arctan2(input: Any, other: Any) -> Tensor:
    """The angle in radians, from -pi to pi, of the point whose height is ``input`` and whose width is …."""
def arctanh(input: Any) -> Tensor:
    """The inverse of the hyperbolic tangent."""
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The place of the largest number along an axis, or among all in a row."""
def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the smallest number along an axis, or among all in a row."""
def argsort(input: Any, axis: int = -1, descending: bool = False) -> Tensor:
    """The places along an axis that its numbers in order come from, as int32."""
def argwhere(input: Any) -> Tensor:
    """Places of numbers that are not zero, one a row."""
def asin(input: Any) -> Tensor:
    """The angle in radians whose sine it is."""
def asinh(input: Any) -> Tensor:
    """The inverse of the hyperbolic sine."""
def assign_add(variable: Any, value: Any) -> Tensor:
    """Add to a Parameter, or another tensor."""
def assign_sub(variable: Any, value: Any) -> Tensor:
    """Subtract from a Parameter, or another tensor."""
def atan(input: Any) -> Tensor:
    """The angle in radians whose tangent it is."""
def atan2(input: Any, other: Any) -> Tensor:
    """The angle in radians, from -pi to pi, of the point whose height is ``input`` and whose width is …."""
def atanh(input: Any) -> Tensor:
    """The inverse of the hyperbolic tangent."""
def atleast_1d(inputs: Any) -> Any:
    """With one axis at least."""
def atleast_2d(inputs: Any) -> Any:
    """With two axes at least, new ones in front."""
def avg_pool1d(input_x: Any, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
               padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window of sequences."""
def avg_pool2d(input_x: Any, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
               padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int = 0) -> Tensor:
    """The mean of each window of images, or the sum divided by ``divisor_override``."""
def avg_pool3d(input_x: Any, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
               padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int = 0) -> Tensor:
    """The mean of each window of volumes, or the sum divided by ``divisor_override``."""
def baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * batch1 @ batch2``."""
def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Sums of products along one axis of each, for every place along the first, which both share."""
def batch_norm(input_x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    """Mean ``bias`` and deviation ``weight`` in every channel."""
def bernoulli(input: Any, p: Any = 0.5, seed: Any = None) -> Tensor:
    """1 with probability ``p``, 0 otherwise, in the shape and dtype of ``input``."""
def bessel_i0(input: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def bessel_i1(input: Any) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
def bias_add(input_x: Any, bias: Any) -> Tensor:
    """A vector added along the second axis."""
def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = 'mean') -> Tensor:
    """``-(labels log(p) + (1 - labels) log(1 - p))`` of probabilities, of which logarithms are taken from …."""
def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, pos_weight: Any = None,
                                     reduction: str = 'mean') -> Tensor:
    """The binary cross entropy of scores before the sigmoid."""
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 up occurs, or the sums of weights."""
def bitwise_and(input: Any, other: Any) -> Tensor:
    """The bits that are set in both."""
def bitwise_or(input: Any, other: Any) -> Tensor:
    """The bits that are set in either."""
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """The bits that are set in just one."""
def bmm(input_x: Any, mat2: Any) -> Tensor:
    """Products of matrices, as many on either side."""
def bool_eq(x: Any, y: Any) -> Any:
    """What Python's ``eq`` gives."""
def bool_not(x: Any) -> Any:
    """What Python's ``not_`` gives."""
def broadcast_to(input: Any, shape: Any) -> Tensor:
    """Repeated along axes of length one, and new ones in front, to fill a shape."""
def cast(input: Any, dtype: Any) -> Tensor:
    """The numbers in another dtype."""
def cat(tensors: Any, axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
def ceil(input: Any) -> Tensor:
    """The next whole number above."""
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """``x``, ``alpha * (exp(x / alpha) - 1)`` below zero."""
def chunk(input: Any, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """At most so many parts along an axis, of one length, the last perhaps shorter."""
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """The number, or ``min`` if that is more, or ``max`` if that is less."""
def clip(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """The number, or ``min`` if that is more, or ``max`` if that is less."""
def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: None = None) -> Any:
    """Tensors scaled so that the norm of all their numbers together is at most ``clip_norm``."""
def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """A tensor, or each of a list of them, scaled so that the norm of all their numbers is at most …."""
def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """The number, or the first limit if that is more, or the second if that is less."""
def concat(tensors: Any, axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
def cond(pred: Any, true_fn: Any, false_fn: Any, *inputs: Any) -> Any:
    """One of two functions of the same inputs, as a condition says."""
def conv1d(input: Any, weight: Any, bias: Any = None, stride: int | Sequence[int] = 1, pad_mode: str = 'valid',
           padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
    """Sums over windows of sequences (batch, channels, length)."""
def conv2d(input: Any, weight: Any, bias: Any = None, stride: int | Sequence[int] = 1, pad_mode: str = 'valid',
           padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
    """Sums over windows of images (batch, channels, height, width), weighted by kernels."""
def conv3d(input: Any, weight: Any, bias: Any = None, stride: int | Sequence[int] = 1, pad_mode: str = 'valid',
           padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
    """Sums over windows of volumes (batch, channels, depth, height, width)."""
def copysign(x: Any, other: Any) -> Tensor:
    """The size of ``x`` with the sign of ``other``."""
def cos(input: Any) -> Tensor:
    """The cosine, of radians."""
def cosh(input: Any) -> Tensor:
    """The hyperbolic cosine."""
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0,
                          reduction: str = 'mean') -> Tensor:
    """One less the cosine where the target is 1, what it is above ``margin`` where it is -1."""
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The sum of products along an axis, divided by both lengths, ``eps`` at least."""
def count_nonzero(x: Any, axis: Any = (), keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """How many are not zero."""
def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """The cross product along an axis of length three, by default the first such."""
def cross_entropy(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = 'mean',
                  label_smoothing: float = 0.0) -> Tensor:
    """Minus the logarithm of the target's probability, of scores before softmax."""
def cummax(input: Any, axis: int) -> Tensor:
    """The largest number so far along an axis."""
def cummin(input: Any, axis: int) -> Tensor:
    """The smallest number so far along an axis."""
def cumprod(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """The products of the numbers so far along an axis."""
def cumsum(x: Any, axis: int | None, dtype: Any = None) -> Tensor:
    """The sums of the numbers so far along an axis."""
def deg2rad(input: Any) -> Tensor:
    """Radians from degrees."""
def dense(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias``, over the last axis."""
def depend(value: Any, expr: Any) -> Any:
    """The first of two values."""
def det(input: Any) -> Tensor:
    """The determinant of matrices."""
def diag(input: Any) -> Tensor:
    """The matrix that has a vector on its diagonal."""
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal over two axes, as last axis."""
def dict_getitem(x: Any, y: Any) -> Any:
    """What Python's ``getitem`` gives."""
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Every number along an axis less the one before it, ``n`` times."""
def digamma(input: Any) -> Tensor:
    """The derivative of ``lgamma``."""
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient."""
def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient."""
def dot(input: Any, other: Any) -> Tensor:
    """The last axis of ``input`` multiplied with the last but one of ``other``."""
def dropout(input: Any, p: float = 0.5, training: bool = True, seed: Any = None) -> Tensor:
    """Each number set to zero with probability ``p`` and the others divided by ``1 - p``, when ``training``."""
def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of sequences set to zero."""
def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of images set to zero."""
def dropout3d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of volumes set to zero."""
def dstack(tensors: Any) -> Tensor:
    """Tensors one after the other along the third axis."""
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products as an equation of letters says."""
def elu(input_x: Any, alpha: float = 1.0) -> Tensor:
    """``x``, ``alpha * (exp(x) - 1)`` below zero."""
def embedding(input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False) -> Tensor:
    """Rows of a table picked by integers."""
def eq(input: Any, other: Any) -> Tensor:
    """Whether numbers are equal."""
def equal(input: Any, other: Any) -> Tensor:
    """Whether numbers are equal."""
def erf(input: Any) -> Tensor:
    """The error function."""
def erfc(input: Any) -> Tensor:
    """One less the error function."""
def erfinv(input: Any) -> Tensor:
    """The inverse of the error function."""
def exp(input: Any) -> Tensor:
    """The exponential."""
def exp2(input: Any) -> Tensor:
    """Two to the power of the number."""
def expand(input_x: Any, size: Any) -> Tensor:
    """See ``broadcast_to``."""
def expand_dims(input_x: Any, axis: int) -> Tensor:
    """An axis of length one inserted, so that it is ``axis`` of the result."""
def expm1(input: Any) -> Tensor:
    """The exponential less one, exact near zero."""
def eye(n: int, m: int | None = None, dtype: Any = None) -> Tensor:
    """Ones on the diagonal of ``n`` rows and ``m`` columns, as many as rows by default."""
def fast_gelu(x: Any) -> Tensor:
    """``x sigmoid(1.702 x)``, near ``gelu``."""
def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """One number everywhere, of that dtype."""
def flatten(input: Any, order: str = 'C', *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Axes from ``start_dim`` to ``end_dim`` made one."""
def flip(input: Any, dims: Any) -> Tensor:
    """In opposite order along axes."""
def fliplr(input: Any) -> Tensor:
    """In opposite order along the second axis."""
def flipud(input: Any) -> Tensor:
    """In opposite order along the first axis."""
def float_power(input: Any, exponent: Any) -> Tensor:
    """``input`` to the power ``exponent``, in float64."""
def floor(input: Any) -> Tensor:
    """The next whole number below."""
def floor_div(x: Any, y: Any) -> Tensor:
    """The quotient, rounded down."""
def floor_divide(input: Any, other: Any) -> Tensor:
    """The quotient, rounded down."""
def floor_mod(x: Any, y: Any) -> Tensor:
    """The remainder, with the sign of the divisor."""
def fmax(input: Any, other: Any) -> Tensor:
    """The larger one, or NaN."""
def fmin(input: Any, other: Any) -> Tensor:
    """The smaller one, or NaN."""
def fmod(input: Any, other: Any) -> Tensor:
    """The remainder of the quotient cut towards zero."""
def fori_loop(lower: int, upper: int, loop_func: Any, init_val: Any, unroll: bool = True) -> Any:
    """A function of a counter and a value applied so many times."""
def frac(x: Any) -> Tensor:
    """The number less what is before its point."""
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One number everywhere."""
def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One number in the shape of a tensor, and in its dtype or another."""
def gather(input_params: Any, input_indices: Any, axis: int, batch_dims: int = 0) -> Tensor:
    """The slices along an axis that indices name."""
def gather_d(x: Any, dim: int, index: Any) -> Tensor:
    """See ``gather_elements``."""
def gather_elements(input: Any, dim: int, index: Any) -> Tensor:
    """Numbers along an axis at the places that ``index``, of as many axes, names."""
def gather_nd(input_x: Any, indices: Any) -> Tensor:
    """The parts at places whose indices, one an axis from the first on, lie along the last axis of …."""
def ge(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are no less."""
def gelu(input: Any, approximate: str = 'none') -> Tensor:
    """``x`` times the normal distribution function of x."""
def ger(input: Any, vec2: Any) -> Tensor:
    """Every number of a vector times every one of another."""
def glu(x: Any, axis: int = -1) -> Tensor:
    """The first half along an axis times ``sigmoid`` of the second."""
def greater(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are greater."""
def greater_equal(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are no less."""
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """Mean zero and deviation one in every group of channels of every sample."""
def gt(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are greater."""
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """``x``, and 0 within ``lambd`` of zero."""
def hardsigmoid(input: Any) -> Tensor:
    """``(x + 3) / 6``, cut off at 0 and 1."""
def hardswish(input: Any) -> Tensor:
    """``x hardsigmoid(x)``."""
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """The number, cut off at two limits."""
def heaviside(input: Any, values: Any) -> Tensor:
    """0 below zero, 1 above, ``values`` at zero."""
def hinge_embedding_loss(inputs: Any, targets: Any, margin: float = 1.0, reduction: str = 'mean') -> Tensor:
    """The number where the target is 1, what it lacks to ``margin`` where it is -1."""
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """``tensor_split`` along the second axis, of vectors along their only one."""
def hstack(tensors: Any) -> Tensor:
    """Tensors one after the other along the second axis, vectors along their only one."""
def huber_loss(input: Any, target: Any, reduction: str = 'mean', delta: float = 1.0) -> Tensor:
    """Half the squared difference up to ``delta``, linear from there on."""
def hypot(input: Any, other: Any) -> Tensor:
    """The square root of both squares' sum."""
def identity(x: Any) -> Tensor:
    """The same."""
def index_add(x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True,
              check_index_bound: bool = True) -> Tensor:
    """Slices of ``y`` added to those along an axis that indices name."""
def index_fill(x: Any, axis: int, index: Any, value: Any) -> Tensor:
    """One number in all slices along an axis that indices name."""
def index_select(input: Any, axis: int, index: Any) -> Tensor:
    """The slices along an axis that a vector of indices names."""
def inner(input: Any, other: Any) -> Tensor:
    """Sums of products along the last axis of both."""
def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = 'nearest',
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> Tensor:
    """Images, sequences or volumes of another size."""
def inverse(input: Any) -> Tensor:
    """The inverse of matrices."""
def is_(x: Any, y: Any) -> Any:
    """What Python's ``is_`` gives."""
def is_not(x: Any, y: Any) -> Any:
    """What Python's ``is_not`` gives."""
def is_tensor(obj: Any) -> bool:
    """Whether something is a tensor, of numbers or of a trace."""
def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether numbers are within ``atol + rtol * |other|`` of each other."""
def isfinite(input: Any) -> Tensor:
    """Whether it is neither infinite nor NaN."""
def isinf(input: Any) -> Tensor:
    """Whether it is infinite."""
def isnan(input: Any) -> Tensor:
    """Whether it is NaN."""
def kl_div(logits: Any, labels: Any, reduction: str = 'mean') -> Tensor:
    """``labels (log(labels) - logits)``, 0 where a label is not positive."""
def kron(input: Any, other: Any) -> Tensor:
    """The Kronecker product."""
def l1_loss(input: Any, target: Any, reduction: str = 'mean') -> Tensor:
    """The absolute difference."""
def laplace(shape: Any, mean: Any, lambda_param: Any, seed: Any = None) -> Tensor:
    """Numbers of the Laplace distribution of a mean and scale."""
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05) -> Tensor:
    """Mean zero and deviation one over the last axes, whose lengths are given."""
def le(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are no greater."""
def leaky_relu(input: Any, alpha: Any = 0.2) -> Tensor:
    """``x``, times ``alpha`` below zero."""
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """``input + weight * (end - input)``."""
def less(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are less."""
def less_equal(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are no greater."""
def lgamma(input: Any) -> Tensor:
    """The natural logarithm of the gamma function's absolute value."""
def linspace(start: Any, end: Any, steps: int) -> Tensor:
    """So many numbers at equal distances from ``start`` to ``end``, both included."""
def list_getitem(x: Any, y: Any) -> Any:
    """What Python's ``getitem`` gives."""
def list_len(x: Any) -> Any:
    """What Python's ``len`` gives."""
def log(input: Any) -> Tensor:
    """The natural logarithm."""
def log10(input: Any) -> Tensor:
    """The logarithm to base ten."""
def log1p(input: Any) -> Tensor:
    """The natural logarithm of one more, exact near zero."""
def log2(input: Any) -> Tensor:
    """The logarithm to base two."""
def log_softmax(logits: Any, axis: int = -1) -> Tensor:
    """The logarithm of ``softmax``, without the rounding of taking it afterwards."""
def logaddexp(input: Any, other: Any) -> Tensor:
    """The logarithm of the sum of both exponentials."""
def logaddexp2(input: Any, other: Any) -> Tensor:
    """The logarithm to base two of the sum of two to both powers."""
def logical_and(input: Any, other: Any) -> Tensor:
    """Whether both are true, or not zero."""
def logical_not(input: Any) -> Tensor:
    """Whether it is zero, or false."""
def logical_or(input: Any, other: Any) -> Tensor:
    """Whether one is true, or not zero."""
def logical_xor(input: Any, other: Any) -> Tensor:
    """Whether just one is true, or not zero."""
def logit(input: Any, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, x kept ``eps`` away from 0 and 1."""
def logsigmoid(x: Any) -> Tensor:
    """The logarithm of ``sigmoid``, exact far below zero."""
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials, without overflow."""
def lrn(x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
        norm_region: str = 'ACROSS_CHANNELS') -> Tensor:
    """Divided by ``(bias + alpha s) ** beta``, s the sum of squares over channels within ``depth_radius``."""
def lt(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are less."""
def make_list(*values: Any) -> list[Tensor]:
    """A list of the values."""
def make_tuple(*values: Any) -> tuple[Tensor, ...]:
    """A tuple of the values."""
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0,
                        reduction: str = 'mean') -> Tensor:
    """``max(0, -target (input1 - input2) + margin)``."""
def masked_fill(input_x: Any, mask: Any, value: Any) -> Tensor:
    """A number, or that of a tensor without axes, where the mask holds."""
def masked_select(input: Any, mask: Any) -> Tensor:
    """The numbers where a mask holds, in a row."""
def matmul(input: Any, other: Any) -> Tensor:
    """Products of the matrices in the last two axes."""
def max(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: float | None = None,
        where: Any = None) -> Tensor:
    """The largest number along an axis, and its place as int64."""
def max_pool2d(x: Any, kernel_size: int | Sequence[int], stride: Any = None, padding: int | Sequence[int] = 0,
               dilation: int | Sequence[int] = 1, return_indices: bool = False, ceil_mode: bool = False) -> Tensor:
    """The largest number of each window of images."""
def max_pool3d(x: Any, kernel_size: int | Sequence[int], stride: Any = None, padding: int | Sequence[int] = 0,
               dilation: int | Sequence[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    """The largest number of each window of volumes."""
def maximum(input: Any, other: Any) -> Tensor:
    """The larger one, or NaN."""
def mean(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """The mean."""
def median(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The number in the middle along an axis, the lower of two, and its place as int64."""
def meshgrid(*inputs: Any, indexing: str = 'xy') -> tuple[Tensor, ...]:
    """Vectors repeated to a grid."""
def min(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: float | None = None,
        where: Any = None) -> Tensor:
    """The smallest number along an axis, and its place as int64."""
def minimum(input: Any, other: Any) -> Tensor:
    """The smaller one, or NaN."""
def mish(x: Any) -> Tensor:
    """``x tanh(log(1 + exp(x)))``."""
def mm(input: Any, mat2: Any) -> Tensor:
    """The product of two matrices."""
def mod(x: Any, y: Any) -> Tensor:
    """The remainder, with the sign of the divisor."""
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places."""
def movedim(x: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places."""
def mse_loss(input: Any, target: Any, reduction: str = 'mean') -> Tensor:
    """The squared difference."""
def mul(input: Any, other: Any) -> Tensor:
    """The product."""
def multinomial(input: Any, num_samples: int, replacement: bool = True, seed: Any = None) -> Tensor:
    """Places along the last axis drawn with the probabilities there, in proportion to each other."""
def multiply(input: Any, other: Any) -> Tensor:
    """The product."""
def mv(mat: Any, vec: Any) -> Tensor:
    """The product of a matrix and a vector."""
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    """Finite numbers in place of NaN (0), infinity and negative infinity (the largest and least of the …."""
def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of all but NaN."""
def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of all but NaN."""
def narrow(input: Any, axis: int, start: int, length: int) -> Tensor:
    """A number of slices along an axis, from one on."""
def ne(input: Any, other: Any) -> Tensor:
    """Whether numbers differ."""
def neg(input: Any) -> Tensor:
    """The number with the other sign."""
def negative(input: Any) -> Tensor:
    """The number with the other sign."""
def nll_loss(inputs: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = 'mean',
             label_smoothing: float = 0.0) -> Tensor:
    """Minus the target's number, of logarithms of probabilities."""
def nonzero(input: Any, *, as_tuple: bool = False) -> Tensor:
    """Places of numbers that are not zero, one a row, or as a tuple of one vector an axis."""
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of all numbers, or along axes."""
def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None) -> Tensor:
    """Numbers of the normal distribution."""
def not_equal(input: Any, other: Any) -> Tensor:
    """Whether numbers differ."""
def numel(input_x: Any) -> int:
    """How many numbers there are."""
def one_hot(indices: Any, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """For each index, ``off_value`` in ``depth`` places and ``on_value`` at that place, along a new axis."""
def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
def ones_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Ones in the shape of a tensor, and in its dtype or another."""
def outer(input: Any, vec2: Any) -> Tensor:
    """Every number of a vector times every one of another."""
def pad(input_x: Any, padding: Any, mode: str = 'constant', value: float | None = None) -> Tensor:
    """Numbers around a tensor."""
def permute(input: Any, axis: Sequence[int]) -> Tensor:
    """The axes in another order."""
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Channels spread over blocks of height and width."""
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """Blocks of height and width laid along the channels."""
def positive(input: Any) -> Tensor:
    """The same numbers."""
def pow(input: Any, exponent: Any) -> Tensor:
    """``input`` to the power ``exponent``."""
def prelu(input: Any, weight: Any) -> Tensor:
    """``x``, times ``weight`` below zero, which has one number, or one for each channel, the second axis."""
def prim_attr_register(function: Any) -> Tensor:
    """Decorate the ``__init__`` of a primitive."""
def prod(input: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """The product."""
def ptp(input: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest number less the smallest."""
def rad2deg(input: Any) -> Tensor:
    """Degrees from radians."""
def rand(*size: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers from 0 up to but not 1."""
def rand_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Tensor:
    """``rand`` in the shape of a tensor, and in its dtype or another."""
def randint(low: int, high: int, size: Any, seed: Any = None, *, dtype: Any = None) -> Tensor:
    """Whole numbers from ``low`` up to but not ``high``."""
def randint_like(input: Any, low: int, high: int, seed: Any = None, *, dtype: Any = None) -> Tensor:
    """``randint`` in the shape of a tensor, and in its dtype or another."""
def randn(*size: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of the normal distribution."""
def randn_like(input: Any, seed: Any = None, *, dtype: Any = None) -> Tensor:
    """``randn`` in the shape of a tensor, and in its dtype or another."""
def randperm(n: int, seed: int = 0, offset: int = 0, dtype: Any = None) -> Tensor:
    """The numbers below ``n`` in random order."""
def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Tensor:
    """Numbers from ``start`` to before ``end``."""
def rank(input_x: Any) -> int:
    """How many axes there are."""
def ravel(input: Any) -> Tensor:
    """All numbers in a row."""
def reciprocal(input: Any) -> Tensor:
    """One by the number."""
def reduce_max(x: Any, axis: Any = ()) -> Tensor:
    """The largest number."""
def reduce_mean(x: Any, axis: Any = ()) -> Tensor:
    """The mean."""
def reduce_min(x: Any, axis: Any = ()) -> Tensor:
    """The smallest number."""
def reduce_sum(x: Any, axis: Any = ()) -> Tensor:
    """The sum."""
def relu(input: Any, inplace: bool = False) -> Tensor:
    """The number, or zero if that is more."""
def relu6(x: Any) -> Tensor:
    """The number, cut off at 0 and 6."""
def remainder(input: Any, other: Any) -> Tensor:
    """The remainder, with the sign of the divisor."""
def repeat_elements(x: Any, rep: int, axis: int = 0) -> Tensor:
    """Every slice along an axis repeated in place."""
def repeat_interleave(input: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Every slice along an axis repeated in place, or every number of all in a row."""
def reshape(input: Any, shape: Any) -> Tensor:
    """The same numbers in another shape."""
def reverse(x: Any, axis: Any) -> Tensor:
    """In opposite order along axes."""
def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-06) -> tuple[Tensor, Tensor]:
    """Divided by the root of the mean square over the axes of ``gamma``, times that."""
def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """Moved on along axes, or all in a row."""
def rot90(input: Any, k: int, dims: Sequence[int]) -> Tensor:
    """Turned ``k`` times by a quarter, from the first of two axes to the second."""
def round(input: Any, *, decimals: int = 0) -> Tensor:
    """The nearest number with so many decimals, halves to the even one."""
def rrelu(input: Any, lower: float = 0.125, upper: float = 0.3333333333333333) -> Tensor:
    """``x``, times a random number from ``lower`` to ``upper`` below zero."""
def rsqrt(input: Any) -> Tensor:
    """One by the square root."""
def scalar_add(x: Any, y: Any) -> Any:
    """What Python's ``add`` gives."""
def scalar_cast(input_x: Any, input_y: Any) -> int | float:
    """A number as one of Python's, an integer, a float or a truth value."""
def scalar_div(x: Any, y: Any) -> Any:
    """What Python's ``truediv`` gives."""
def scalar_eq(x: Any, y: Any) -> Any:
    """What Python's ``eq`` gives."""
def scalar_floordiv(x: Any, y: Any) -> Any:
    """What Python's ``floordiv`` gives."""
def scalar_ge(x: Any, y: Any) -> Any:
    """What Python's ``ge`` gives."""
def scalar_gt(x: Any, y: Any) -> Any:
    """What Python's ``gt`` gives."""
def scalar_le(x: Any, y: Any) -> Any:
    """What Python's ``le`` gives."""
def scalar_lt(x: Any, y: Any) -> Any:
    """What Python's ``lt`` gives."""
def scalar_mod(x: Any, y: Any) -> Any:
    """What Python's ``mod`` gives."""
def scalar_mul(x: Any, y: Any) -> Any:
    """What Python's ``mul`` gives."""
def scalar_ne(x: Any, y: Any) -> Any:
    """What Python's ``ne`` gives."""
def scalar_pow(x: Any, y: Any) -> Any:
    """What Python's ``pow`` gives."""
def scalar_sub(x: Any, y: Any) -> Any:
    """What Python's ``sub`` gives."""
def scalar_to_tensor(input_x: Any, dtype: Any = 'float32') -> Tensor:
    """One number as a tensor without axes."""
def scalar_uadd(x: Any) -> Any:
    """What Python's ``pos`` gives."""
def scalar_usub(x: Any) -> Any:
    """What Python's ``neg`` gives."""
def scan(loop_func: Any, init: Any, xs: Any, length: int | None = None, unroll: bool = True) -> Any:
    """A function applied to the slices of a tensor along the first axis, handing a value on from one to …."""
def scatter(input: Any, axis: int, index: Any, src: Any) -> Tensor:
    """``src`` put at the places along an axis that indices name."""
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Zeros of a shape with ``updates`` added at the places that ``gather_nd`` would take them from."""
def searchsorted(sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Any = None) -> Tensor:
    """Where along the last axis, in order, numbers belong."""
def select(condition: Any, input: Any, other: Any) -> Tensor:
    """Numbers of ``input`` where the condition holds, of ``other`` elsewhere."""
def selu(input_x: Any) -> Tensor:
    """The scaled exponential linear unit."""
def sgn(input: Any) -> Tensor:
    """-1, 0 or 1."""
def shape(input_x: Any) -> tuple[int, ...]:
    """The lengths of the axes, as a tuple."""
def shuffle(x: Any, seed: Any = None) -> Tensor:
    """The slices along the first axis in random order."""
def sigmoid(input: Any) -> Tensor:
    """``1 / (1 + exp(-x))``."""
def sign(input: Any) -> Tensor:
    """-1, 0 or 1."""
def silu(input: Any) -> Tensor:
    """``x sigmoid(x)``."""
def sin(input: Any) -> Tensor:
    """The sine, of radians."""
def sinc(input: Any) -> Tensor:
    """``sin(pi x) / (pi x)``, and 1 at zero."""
def sinh(input: Any) -> Tensor:
    """The hyperbolic sine."""
def size(input_x: Any) -> int:
    """How many numbers there are."""
def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = 'none') -> Tensor:
    """Half the squared difference by ``beta`` where it is below that, the absolute one less half of it …."""
def soft_margin_loss(input: Any, target: Any, reduction: str = 'mean') -> Tensor:
    """``log(1 + exp(-target input))``, targets 1 or -1."""
def softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """Exponentials, scaled to add up to one along an axis."""
def softmin(x: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """``softmax`` of the numbers with the other sign."""
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta x)) / beta``, and x itself where ``beta x`` is above the threshold."""
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """``x`` less ``lambd`` above, more ``lambd`` below, and 0 within ``lambd`` of zero."""
def softsign(x: Any) -> Tensor:
    """``x / (1 + |x|)``."""
def sort(input_x: Any, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Numbers in order along an axis, and the places they come from, as int32."""
def split(tensor: Any, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis."""
def sqrt(input: Any) -> Tensor:
    """The square root."""
def square(input: Any) -> Tensor:
    """The square."""
def squeeze(input: Any, axis: Any = None) -> Tensor:
    """Without those axes, which have length one, or without all such axes."""
def stack(tensors: Any, axis: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis."""
def standard_laplace(shape: Any, seed: Any = None) -> Tensor:
    """Numbers of the Laplace distribution of mean 0 and scale 1."""
def standard_normal(shape: Any, seed: Any = None) -> Tensor:
    """Numbers of the normal distribution with mean 0 and deviation 1."""
def std(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """The square root of ``var``."""
def std_mean(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean``."""
def string_concat(x: Any, y: Any) -> Any:
    """What Python's ``add`` gives."""
def string_eq(x: Any, y: Any) -> Any:
    """What Python's ``eq`` gives."""
def sub(input: Any, other: Any) -> Tensor:
    """The difference."""
def subtract(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other``."""
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum."""
def swapaxes(input: Any, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged."""
def swapdims(input: Any, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
def tail(values: Sequence[Any]) -> tuple[Tensor, ...]:
    """All but the first of a tuple."""
def take(input: Any, index: Any, axis: int | None = None, mode: str = 'clip') -> Tensor:
    """The slices along an axis that indices name, or numbers of all in a row."""
def tan(input: Any) -> Tensor:
    """The tangent, of radians."""
def tanh(input: Any) -> Tensor:
    """The hyperbolic tangent."""
def tanhshrink(input: Any) -> Tensor:
    """``x - tanh(x)``."""
def tensor_add(input: Any, other: Any) -> Tensor:
    """The sum."""
def tensor_div(input: Any, other: Any) -> Tensor:
    """The quotient."""
def tensor_dot(x1: Any, x2: Any, axes: Any) -> Tensor:
    """Sums of products along axes of both."""
def tensor_exp(input: Any) -> Tensor:
    """The exponential."""
def tensor_floordiv(x: Any, y: Any) -> Tensor:
    """The quotient, rounded down."""
def tensor_ge(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are no less."""
def tensor_gt(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are greater."""
def tensor_le(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are no greater."""
def tensor_lt(input: Any, other: Any) -> Tensor:
    """Whether numbers of the first are less."""
def tensor_mod(x: Any, y: Any) -> Tensor:
    """The remainder, with the sign of the divisor."""
def tensor_mul(input: Any, other: Any) -> Tensor:
    """The product."""
def tensor_pow(input: Any, exponent: Any) -> Tensor:
    """``input`` to the power ``exponent``."""
def tensor_scatter_add(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """``updates`` added at places, those of equal indices one after the other."""
def tensor_scatter_div(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """What is there divided by all of ``updates`` that name the place."""
def tensor_scatter_elements(input_x: Any, indices: Any, updates: Any, axis: int = 0,
                            reduction: str = 'none') -> Tensor:
    """``updates`` put, or added with ``reduction='add'``, at the places along an axis that indices name."""
def tensor_scatter_max(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The larger of what is there and all of ``updates`` that name the place."""
def tensor_scatter_min(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """The smaller of what is there and all of ``updates`` that name the place."""
def tensor_scatter_mul(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """What is there times all of ``updates`` that name the place."""
def tensor_scatter_sub(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """``updates`` subtracted at places, those of equal indices one after the other."""
def tensor_scatter_update(input_x: Any, indices: Any, updates: Any) -> Tensor:
    """``updates`` in place of what is there."""
def tensor_split(input: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis."""
def tensor_sub(input: Any, other: Any) -> Tensor:
    """The difference."""
def threshold(input: Any, thr: float, value: float) -> Tensor:
    """``x`` where it is above ``thr``, ``value`` elsewhere."""
def tile(input: Any, dims: Any) -> Tensor:
    """Laid side by side, so many times along each axis."""
def topk(input: Any, k: int, dim: int | None = None, largest: bool = True,
         sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest numbers along an axis, or the smallest, and their places as int32."""
def trace(input: Any) -> Tensor:
    """The sum of the diagonal of a matrix."""
def transpose(input: Any, dims: Sequence[int]) -> Tensor:
    """The axes in another order."""
def tril(input: Any, diagonal: int = 0) -> Tensor:
    """Matrices with zeros above a diagonal."""
def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-06, swap: bool = False, reduction: str = 'mean') -> Tensor:
    """How much farther than ``margin`` beyond the positive one the negative one is not, by the p-norm."""
def triu(input: Any, diagonal: int = 0) -> Tensor:
    """Matrices with zeros below a diagonal."""
def true_divide(input: Any, other: Any) -> Tensor:
    """The quotient."""
def trunc(input: Any) -> Tensor:
    """The next whole number towards zero."""
def tuple_getitem(x: Any, y: Any) -> Any:
    """What Python's ``getitem`` gives."""
def tuple_len(x: Any) -> Any:
    """What Python's ``len`` gives."""
def tuple_to_array(input_x: Any) -> Tensor:
    """A tensor of the numbers of a tuple."""
def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, which is gone."""
def uniform(shape: Any, minval: Any, maxval: Any, seed: Any = None, dtype: Any = None) -> Tensor:
    """Numbers from ``minval`` up to but not ``maxval``."""
def unique(input: Any) -> tuple[Tensor, Tensor]:
    """The different numbers in the order they first occur, and for each number which it is."""
def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Sums of the slices along the first axes that have the same number in ``segment_ids``."""
def unsqueeze(input: Any, dim: int) -> Tensor:
    """An axis of length one inserted, so that it is ``dim`` of the result."""
def unstack(input_x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, which is gone."""
def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = 'nearest',
             align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> Tensor:
    """Images, sequences or volumes of another size."""
def var(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """The mean of squared distances from the mean."""
def var_mean(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean``."""
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """``tensor_split`` along the first axis."""
def vstack(inputs: Any) -> Tensor:
    """Tensors one after the other along the first axis."""
def where(condition: Any, input: Any, other: Any) -> Tensor:
    """Numbers of ``input`` where the condition holds, of ``other`` elsewhere."""
def while_loop(cond_func: Any, loop_func: Any, init_val: Any, max_iterations: int | None = None) -> Any:
    """A function applied to a value, or a nesting of them, while a condition on it holds."""
def xlogy(input: Any, other: Any) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is."""
def zeros(size: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
def zeros_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Zeros in the shape of a tensor, and in its dtype or another."""
