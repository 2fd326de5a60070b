# Made from the declarations by `python -m opreg.builtin --stubs`; not edited by hand.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from functools import partial as partial
from opreg.cells.grad import GradOperation as GradOperation, get_grad as get_grad, grad as grad, stop_gradient as stop_gradient, value_and_grad as value_and_grad
from opreg.cells.jacobian import jacfwd as jacfwd, jacrev as jacrev, jvp as jvp, vjp as vjp
from opreg.cells.parameter import assign as assign
from opreg.cells.taylor import derivative as derivative, jet as jet, linearize as linearize
from opreg.cells.tensor_hooks import HookBackward as HookBackward, InsertGradientOf as InsertGradientOf
from opreg.cells.vmap import vmap as vmap
from opreg.nn.compiler_settings import add_flags as add_flags, constexpr as constexpr
from opreg.nn.ops.collectives import AllGather as AllGather, AllReduce as AllReduce, AlltoAll as AlltoAll, Barrier as Barrier, Broadcast as Broadcast, Receive as Receive, ReduceOp as ReduceOp, ReduceScatter as ReduceScatter, Send as Send
from opreg.nn.ops.custom import Custom as Custom
from opreg.nn.ops.multitype import HyperMap as HyperMap, Map as Map, MultitypeFuncGraph as MultitypeFuncGraph
from opreg.nn.ops.primitive import Primitive as Primitive, PrimitiveWithCheck as PrimitiveWithCheck, PrimitiveWithInfer as PrimitiveWithInfer
from opreg.cells.tensor import Tensor
from opreg.cells.typing import AnyShape, ArrayLike, Axes, Number, Sizes, TensorDType, TensorLike

_T = TypeVar("_T")

class ACos(Primitive):
    """The angle in radians whose cosine it is."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Abs(Primitive):
    """The absolute value."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class AccumulateNV2(Primitive):
    """The sum of tensors of one shape."""
    def __init__(self) -> None: ...
    def __call__(self, x: Sequence[TensorLike]) -> Tensor: ...
class Acosh(Primitive):
    """The inverse of the hyperbolic cosine."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Adam(Primitive):
    """Update ``var`` by a step of Adam, with the averages ``m`` and ``v``."""
    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None: ...
    def __call__(self, var: Tensor, m: Tensor, v: Tensor, beta1_power: Any, beta2_power: Any, lr: Any, beta1: Any,
                 beta2: Any, epsilon: Any, gradient: Tensor) -> Sequence[Tensor]: ...
class AdamWeightDecay(Primitive):
    """Update ``var`` by a step of Adam with weight decay, without bias corrections."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, var: Tensor, m: Tensor, v: Tensor, lr: Any, beta1: Any, beta2: Any, epsilon: Any, decay: Any,
                 gradient: Tensor) -> Sequence[Tensor]: ...
class AdaptiveAvgPool2D(Primitive):
    """Means over the cells of a grid of ``output_size``, (height, width) or one value for both."""
    def __init__(self, output_size: int | Sequence[int | None]) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class AdaptiveMaxPool2D(Primitive):
    """The largest element of each part of images that are divided into ``output_size`` parts, and its place."""
    def __init__(self, output_size: Sizes) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor | tuple[Tensor, Tensor]: ...
class Add(Primitive):
    """The sum."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class AddN(Primitive):
    """The sum of tensors of one shape, given as a tuple or list."""
    def __init__(self) -> None: ...
    def __call__(self, x: Sequence[TensorLike]) -> Tensor: ...
class Addcdiv(Primitive):
    """``input + value * tensor1 / tensor2``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor: ...
class Addcmul(Primitive):
    """``input + value * tensor1 * tensor2``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor: ...
class AffineGrid(Primitive):
    """Sampling coordinates for ``grid_sample`` that transform images by matrices."""
    def __init__(self, align_corners: bool = False) -> None: ...
    def __call__(self, theta: TensorLike, size: Sequence[int]) -> Tensor: ...
class ApplyAdaMax(Primitive):
    """Update ``var`` by a step of AdaMax, with the average ``m`` and the largest gradient ``v``."""
    def __init__(self) -> None: ...
    def __call__(self, var: Tensor, m: Tensor, v: Tensor, beta1_power: Any, lr: Any, beta1: Any, beta2: Any,
                 epsilon: Any, grad: Tensor) -> Sequence[Tensor]: ...
class ApplyAdadelta(Primitive):
    """Update ``var`` by AdaDelta, with averages of squared gradients and of squared steps."""
    def __init__(self) -> None: ...
    def __call__(self, var: Tensor, accum: Tensor, accum_update: Tensor, lr: Any, rho: Any, epsilon: Any,
                 grad: Tensor) -> Sequence[Tensor]: ...
class ApplyAdagrad(Primitive):
    """Update ``var`` by AdaGrad, and with ``update_slots`` the sum of squares ``accum``."""
    def __init__(self, update_slots: bool = True) -> None: ...
    def __call__(self, var: Tensor, accum: Tensor, lr: Any, grad: Tensor, *,
                 epsilon: float = 0.0) -> Sequence[Tensor]: ...
class ApplyAdagradV2(Primitive):
    """Update ``var`` by AdaGrad, and with ``update_slots`` the sum of squares ``accum``."""
    def __init__(self, epsilon: float, update_slots: bool = True) -> None: ...
    def __call__(self, var: Tensor, accum: Tensor, lr: Any, grad: Tensor) -> Sequence[Tensor]: ...
class ApplyAddSign(Primitive):
    """Update ``var`` by a larger step where the gradient has the sign of its average ``m``."""
    def __init__(self) -> None: ...
    def __call__(self, var: Tensor, m: Tensor, lr: Any, alpha: Any, sign_decay: Any, beta: Any,
                 grad: Tensor) -> Sequence[Tensor]: ...
class ApplyCenteredRMSProp(Primitive):
    """Update ``var`` by centered RMSProp, where the variance is above zero."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, var: Tensor, mean_gradient: Tensor, mean_square: Tensor, moment: Tensor, grad: Tensor,
                 learning_rate: Any, decay: Any, momentum: Any, epsilon: Any) -> Sequence[Tensor]: ...
class ApplyFtrl(Primitive):
    """Update ``var`` by FTRL, which follows the regularised leader."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, var: Tensor, accum: Tensor, linear: Tensor, grad: Tensor, lr: Any, l1: Any, l2: Any,
                 lr_power: Any) -> Sequence[Tensor]: ...
class ApplyGradientDescent(Primitive):
    """Update ``var`` by ``alpha`` times the gradient."""
    def __init__(self) -> None: ...
    def __call__(self, var: Tensor, alpha: Any, delta: Tensor) -> Sequence[Tensor]: ...
class ApplyKerasMomentum(Primitive):
    """Update ``var`` with a velocity that includes the rate, as in Keras."""
    def __init__(self, use_locking: bool = False, use_nesterov: bool = False) -> None: ...
    def __call__(self, var: Tensor, accum: Tensor, lr: Any, grad: Tensor, momentum: Any) -> Sequence[Tensor]: ...
class ApplyMomentum(Primitive):
    """Update ``variable`` by a step with momentum."""
    def __init__(self, use_nesterov: bool = False, use_locking: bool = False, gradient_scale: float = 1.0) -> None: ...
    def __call__(self, variable: Tensor, accumulation: Tensor, learning_rate: Any, gradient: Tensor,
                 momentum: Any) -> Sequence[Tensor]: ...
class ApplyPowerSign(Primitive):
    """Update ``var`` by a step that is multiplied by a power where the gradient has the sign of ``m``."""
    def __init__(self) -> None: ...
    def __call__(self, var: Tensor, m: Tensor, lr: Any, logbase: Any, sign_decay: Any, beta: Any,
                 grad: Tensor) -> Sequence[Tensor]: ...
class ApplyProximalAdagrad(Primitive):
    """Update ``var`` by proximal AdaGrad, which sets small values to zero."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, var: Tensor, accum: Tensor, lr: Any, l1: Any, l2: Any, grad: Tensor) -> Sequence[Tensor]: ...
class ApplyProximalGradientDescent(Primitive):
    """Update ``var`` by proximal gradient descent, which sets small values to zero."""
    def __init__(self) -> None: ...
    def __call__(self, var: Tensor, alpha: Any, l1: Any, l2: Any, delta: Tensor) -> Sequence[Tensor]: ...
class ApplyRMSProp(Primitive):
    """Update ``var`` by RMSProp with momentum."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, var: Tensor, mean_square: Tensor, moment: Tensor, learning_rate: Any, grad: Tensor, decay: Any,
                 momentum: Any, epsilon: Any) -> Sequence[Tensor]: ...
class ApproximateEqual(Primitive):
    """Whether elements differ by less than ``tolerance``."""
    def __init__(self, tolerance: float = 1e-05) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class ArgMaxWithValue(Primitive):
    """The index of the largest element along an axis, and the element."""
    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class ArgMinWithValue(Primitive):
    """The index of the smallest element along an axis, and the element."""
    def __init__(self, axis: int = 0, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class Argmax(Primitive):
    """The index of the largest element along an axis."""
    def __init__(self, axis: int = -1, output_type: TensorDType = 'int32') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Argmin(Primitive):
    """The index of the smallest element along an axis."""
    def __init__(self, axis: int = -1, output_type: TensorDType = 'int32') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Asin(Primitive):
    """The angle in radians whose sine it is."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Asinh(Primitive):
    """The inverse of the hyperbolic sine."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Assign(Primitive):
    """Store a value in a Parameter or another tensor, now, or at the end of a compiled function's run."""
    def __init__(self) -> None: ...
    def __call__(self, variable: Tensor, value: TensorLike) -> Tensor: ...
class AssignAdd(Primitive):
    """Add to a Parameter, or another tensor."""
    def __init__(self) -> None: ...
    def __call__(self, variable: Tensor, value: TensorLike) -> Tensor: ...
class AssignSub(Primitive):
    """Subtract from a Parameter, or another tensor."""
    def __init__(self) -> None: ...
    def __call__(self, variable: Tensor, value: TensorLike) -> Tensor: ...
class Atan(Primitive):
    """The angle in radians whose tangent it is."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Atan2(Primitive):
    """The angle in radians, from -pi to pi, of the point with ordinate ``input`` and abscissa ``other``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Atanh(Primitive):
    """The inverse of the hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class AvgPool(Primitive):
    """The mean of each window of images."""
    def __init__(self, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = 'valid',
                 data_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class AvgPool3D(Primitive):
    """The mean of each window of volumes."""
    def __init__(self, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = 'valid', pad: Sizes = 0,
                 ceil_mode: bool | None = False, count_include_pad: bool = True, divisor_override: int = 0,
                 data_format: str = 'NCDHW') -> None: ...
    def __call__(self, x: TensorLike, *, pad_list: Sizes = 0) -> Tensor: ...
class BCEWithLogitsLoss(Primitive):
    """The binary cross-entropy of labels and the sigmoid of scores."""
    def __init__(self, reduction: str = 'mean') -> None: ...
    def __call__(self, input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
                 pos_weight: TensorLike | None = None) -> Tensor: ...
class BartlettWindow(Primitive):
    """A triangle from 0 to 1 and back."""
    def __init__(self, periodic: bool = True, dtype: TensorDType = 'float32') -> None: ...
    def __call__(self, window_length: int | Tensor) -> Tensor: ...
class BatchMatMul(Primitive):
    """Products of the matrices in the last two axes, which may be transposed."""
    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class BatchNorm(Primitive):
    """Mean ``bias`` and deviation ``scale`` in every channel, then mean and variance, twice."""
    def __init__(self, is_training: bool = False, epsilon: float = 1e-05, momentum: float = 0.1,
                 data_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike, scale: TensorLike, bias: TensorLike, mean: TensorLike,
                 variance: TensorLike) -> tuple[Tensor, ...]: ...
class BatchToSpace(Primitive):
    """Images put together from samples that are positions of square blocks."""
    def __init__(self, block_size: Any, crops: Any) -> None: ...
    def __call__(self, x: Any) -> Any: ...
class BatchToSpaceND(Primitive):
    """Images put together from samples that are positions of blocks."""
    def __init__(self, block_shape: Any, crops: Any) -> None: ...
    def __call__(self, x: Any) -> Any: ...
class Bernoulli(Primitive):
    """1 with a probability, 0 otherwise, in the shape of a tensor."""
    def __init__(self, seed: Any = -1, offset: Any = 0) -> None: ...
    def __call__(self, x: TensorLike, p: Tensor | float) -> Tensor: ...
class BesselI0(Primitive):
    """The modified Bessel function of the first kind of order 0."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class BesselI0e(Primitive):
    """``bessel_i0`` times ``exp(-|x|)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselI1(Primitive):
    """The modified Bessel function of the first kind of order 1."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class BesselI1e(Primitive):
    """``bessel_i1`` times ``exp(-|x|)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselJ0(Primitive):
    """The Bessel function of the first kind of order 0."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselJ1(Primitive):
    """The Bessel function of the first kind of order 1."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselK0(Primitive):
    """The modified Bessel function of the second kind of order 0."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselK0e(Primitive):
    """``bessel_k0`` times ``exp(x)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselK1(Primitive):
    """The modified Bessel function of the second kind of order 1."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselK1e(Primitive):
    """``bessel_k1`` times ``exp(x)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselY0(Primitive):
    """The Bessel function of the second kind of order 0."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BesselY1(Primitive):
    """The Bessel function of the second kind of order 1."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class BiasAdd(Primitive):
    """A vector added along the second axis."""
    def __init__(self, data_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike, bias: TensorLike) -> Tensor: ...
class BinaryCrossEntropy(Primitive):
    """The binary cross entropy of probabilities."""
    def __init__(self, reduction: str = 'mean') -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike, weight: TensorLike | None = None) -> Tensor: ...
class BitwiseAnd(Primitive):
    """The bits that are set in both."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class BitwiseOr(Primitive):
    """The bits that are set in either."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class BitwiseXor(Primitive):
    """The bits that are set in just one."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class BlackmanWindow(Primitive):
    """A sum of two cosines from 0 to 1 and back, float32 by default."""
    def __init__(self, periodic: bool = True, dtype: TensorDType = 'float32') -> None: ...
    def __call__(self, window_length: int | Tensor) -> Tensor: ...
class BoundingBoxDecode(Primitive):
    """Boxes from anchors and differences from them, as ``BoundingBoxEncode`` gives them, cut off at …."""
    def __init__(self, max_shape: Sequence[int], means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
                 stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0), wh_ratio_clip: float = 0.016) -> None: ...
    def __call__(self, anchor_box: TensorLike, deltas: TensorLike) -> Tensor: ...
class BoundingBoxEncode(Primitive):
    """Differences of boxes from anchors, (n, 4) both."""
    def __init__(self, means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
                 stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0)) -> None: ...
    def __call__(self, anchor_box: TensorLike, groundtruth_box: TensorLike) -> Tensor: ...
class BroadcastTo(Primitive):
    """Broadcast to a shape."""
    def __init__(self, shape: AnyShape) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Bucketize(Primitive):
    """For each element the index of the interval between increasing boundaries, int32."""
    def __init__(self, boundaries: Sequence[float]) -> None: ...
    def __call__(self, input: TensorLike, *, right: bool = False) -> Tensor: ...
class CTCGreedyDecoder(Primitive):
    """The likeliest class of each step, without blanks and repetitions."""
    def __init__(self, merge_repeated: bool = True) -> None: ...
    def __call__(self, inputs: TensorLike, sequence_length: TensorLike) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
class CTCLoss(Primitive):
    """The loss of ``ctc_loss`` of each sequence of scores, the last class being the blank, and None."""
    def __init__(self, preprocess_collapse_repeated: Any = False, ctc_merge_repeated: Any = True,
                 ignore_longer_outputs_than_inputs: bool = False) -> None: ...
    def __call__(self, x: TensorLike, labels_indices: TensorLike, labels_values: TensorLike,
                 sequence_length: TensorLike) -> tuple[Tensor, None]: ...
class Cast(Primitive):
    """The values in another dtype."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, dtype: TensorDType) -> Tensor: ...
class Cdist(Primitive):
    """Distances between all rows of ``x1`` and all rows of ``x2``."""
    def __init__(self, p: float = 2.0) -> None: ...
    def __call__(self, x1: TensorLike, x2: TensorLike) -> Tensor: ...
class CeLU(Primitive):
    """``x``, ``alpha * (exp(x / alpha) - 1)`` below zero."""
    def __init__(self, alpha: float = 1.0) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Ceil(Primitive):
    """The next whole number above."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class ChannelShuffle(Primitive):
    """Groups of the second axis interleaved."""
    def __init__(self, group: int) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class CheckNumerics(Primitive):
    """The tensor."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class CheckValid(Primitive):
    """Whether each box lies within an image, of which height, width and scale are given."""
    def __init__(self) -> None: ...
    def __call__(self, bboxes: TensorLike, img_metas: TensorLike) -> Tensor: ...
class Cholesky(Primitive):
    """The lower triangular ``L`` with ``A = L @ L.T`` for symmetric positive definite matrices."""
    def __init__(self, upper: bool = False) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class CholeskyInverse(Primitive):
    """The inverse of matrices, given their factors by ``cholesky``."""
    def __init__(self, upper: bool = False) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class CholeskySolve(Primitive):
    """The solution ``x`` of ``A @ x = input``, given the Cholesky factor ``input2`` of ``A``."""
    def __init__(self, upper: bool = False) -> None: ...
    def __call__(self, input: TensorLike, input2: TensorLike) -> Tensor: ...
class Col2Im(Primitive):
    """Columns added at their positions in images."""
    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None: ...
    def __call__(self, x: TensorLike, output_size: Sizes | Tensor) -> Tensor: ...
class Concat(Primitive):
    """Concatenate tensors along an axis."""
    def __init__(self, axis: int = 0) -> None: ...
    def __call__(self, tensors: Sequence[TensorLike]) -> Tensor: ...
class Conv2D(Primitive):
    """Sums over windows of images, weighted by kernels."""
    def __init__(self, out_channel: int, kernel_size: Sizes, mode: int = 1, pad_mode: str = 'valid', pad: Sizes = 0,
                 stride: Sizes = 1, dilation: Sizes = 1, group: int = 1, data_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike, weight: TensorLike) -> Tensor: ...
class Conv2DBackpropInput(Primitive):
    """The gradient of a convolution with respect to its data, of shape ``input_size``."""
    def __init__(self, out_channel: Any, kernel_size: Sizes, pad_mode: str = 'valid', pad: Sizes = 0,
                 pad_list: Any = None, mode: Any = 1, stride: Sizes = 1, dilation: Sizes = 1, group: int = 1,
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, dout: TensorLike, weight: TensorLike, input_size: Sequence[int]) -> Tensor: ...
class Conv2DTranspose(Primitive):
    """The gradient of a convolution with respect to its data, of shape ``input_size``."""
    def __init__(self, out_channel: Any, kernel_size: Sizes, pad_mode: str = 'valid', pad: Sizes = 0,
                 pad_list: Any = None, mode: Any = 1, stride: Sizes = 1, dilation: Sizes = 1, group: int = 1,
                 data_format: Any = 'NCHW') -> None: ...
    def __call__(self, dout: TensorLike, weight: TensorLike, input_size: Sequence[int]) -> Tensor: ...
class Conv3D(Primitive):
    """Sums over windows of volumes, weighted by kernels."""
    def __init__(self, out_channel: int, kernel_size: Sizes, mode: int = 1, pad_mode: str = 'valid', pad: Sizes = 0,
                 stride: Sizes = 1, dilation: Sizes = 1, group: int = 1, data_format: str = 'NCDHW') -> None: ...
    def __call__(self, x: TensorLike, weight: TensorLike) -> Tensor: ...
class Conv3DTranspose(Primitive):
    """The gradient of a convolution of volumes with respect to its input, as an operator of its own."""
    def __init__(self, in_channel: int, out_channel: int, kernel_size: Sizes, mode: int = 1, pad_mode: str = 'valid',
                 pad: Sizes = 0, stride: Sizes = 1, dilation: Sizes = 1, group: int = 1, output_padding: Sizes = 0,
                 data_format: str = 'NCDHW') -> None: ...
    def __call__(self, x: TensorLike, weight: TensorLike) -> Tensor: ...
class Cos(Primitive):
    """The cosine, of radians."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Cosh(Primitive):
    """The hyperbolic cosine."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class CropAndResize(Primitive):
    """Regions of images, given by boxes, resized to one size."""
    def __init__(self, method: str = 'bilinear', extrapolation_value: float = 0.0) -> None: ...
    def __call__(self, image: TensorLike, boxes: TensorLike, box_indices: TensorLike,
                 crop_size: Sequence[int]) -> Tensor: ...
class Cross(Primitive):
    """The cross product along an axis of length three, by default the first one."""
    def __init__(self, dim: int | None = None) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class CumProd(Primitive):
    """The cumulative products along an axis."""
    def __init__(self, exclusive: bool = False, reverse: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: int) -> Tensor: ...
class CumSum(Primitive):
    """The cumulative sums along an axis."""
    def __init__(self, exclusive: bool = False, reverse: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: int) -> Tensor: ...
class Cummax(Primitive):
    """The largest number so far along an axis."""
    def __init__(self, axis: int) -> None: ...
    def __call__(self, input: TensorLike) -> tuple[Tensor, Tensor]: ...
class Cummin(Primitive):
    """The smallest number so far along an axis."""
    def __init__(self, axis: int) -> None: ...
    def __call__(self, input: TensorLike) -> tuple[Tensor, Tensor]: ...
class CumulativeLogsumexp(Primitive):
    """The logarithm of cumulative sums of exponentials, from the end with ``reverse``."""
    def __init__(self, exclusive: bool = False, reverse: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: int | Tensor) -> Tensor: ...
class DType(Primitive):
    """The dtype of a tensor."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Any: ...
class DataFormatDimMap(Primitive):
    """The numbers of axes in another layout."""
    def __init__(self, src_format: str = 'NHWC', dst_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class DataFormatVecPermute(Primitive):
    """Numbers that belong to the axes of one layout, in the order of another."""
    def __init__(self, src_format: str = 'NHWC', dst_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Dense(Primitive):
    """``input @ weight.T + bias``, over the last axis."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor: ...
class Depend(Primitive):
    """The first of two values."""
    def __init__(self) -> None: ...
    def __call__(self, value: _T, expr: object) -> _T: ...
class DepthToSpace(Primitive):
    """Channels spread over blocks of height and width."""
    def __init__(self, block_size: int) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Diag(Primitive):
    """A diagonal matrix from a vector."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class DiagPart(Primitive):
    """The diagonal of a tensor whose last axes have the lengths of the first."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Digamma(Primitive):
    """The derivative of ``lgamma``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Div(Primitive):
    """The quotient."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor: ...
class DivNoNan(Primitive):
    """The quotient, and 0 where the divisor is."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class Dropout(Primitive):
    """Numbers kept with a probability and divided by it, the others 0."""
    def __init__(self, keep_prob: float = 0.5, Seed0: Any = 0, Seed1: Any = 0) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class Dropout2D(Primitive):
    """Channels of images kept with a probability and divided by it, the others 0."""
    def __init__(self, keep_prob: float = 0.5) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class Dropout3D(Primitive):
    """Channels of volumes kept with a probability and divided by it, the others 0."""
    def __init__(self, keep_prob: float = 0.5) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class EditDistance(Primitive):
    """Distances between sequences along the last axis of two sparse tensors, by place."""
    def __init__(self, normalize: bool = True) -> None: ...
    def __call__(self, hypothesis_indices: TensorLike, hypothesis_values: TensorLike, hypothesis_shape: TensorLike,
                 truth_indices: TensorLike, truth_values: TensorLike, truth_shape: TensorLike) -> Tensor: ...
class Einsum(Primitive):
    """Sums of products as an equation of letters says."""
    def __init__(self, equation: str) -> None: ...
    def __call__(self, inputs: Sequence[TensorLike]) -> Tensor: ...
class Elu(Primitive):
    """``x``, ``alpha * (exp(x) - 1)`` below zero."""
    def __init__(self, alpha: float = 1.0) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class EmbeddingLookup(Primitive):
    """Rows at indices less ``offset``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, indices: TensorLike, offset: int) -> Tensor: ...
class Eps(Primitive):
    """The distance from 1 to the next number of the floating dtype, for each element."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Equal(Primitive):
    """Whether numbers are equal."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Erf(Primitive):
    """The error function."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Erfc(Primitive):
    """One minus the error function."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Erfinv(Primitive):
    """The inverse of the error function."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Exp(Primitive):
    """The exponential."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Expand(Primitive):
    """See ``broadcast_to``."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, size: AnyShape) -> Tensor: ...
class ExpandDims(Primitive):
    """Insert an axis of length one at position ``axis`` of the result."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, axis: int) -> Tensor: ...
class Expm1(Primitive):
    """The exponential less one, exact near zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Eye(Primitive):
    """A matrix of ``n`` rows and ``m`` columns (``n`` by default) with ones on the diagonal."""
    def __init__(self) -> None: ...
    def __call__(self, n: int, m: int | None = None, dtype: TensorDType = None) -> Tensor: ...
class FastGeLU(Primitive):
    """``x sigmoid(1.702 x)``, an approximation of ``gelu``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class FastGelu(Primitive):
    """``x sigmoid(1.702 x)``, an approximation of ``gelu``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Fill(Primitive):
    """A tensor filled with one value, in a given dtype."""
    def __init__(self) -> None: ...
    def __call__(self, type: TensorDType, shape: AnyShape, value: Tensor | Number) -> Tensor: ...
class FillDiagonal(Primitive):
    """The tensor with one value on its main diagonal."""
    def __init__(self, fill_value: Number, wrap: bool = False) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class FillV2(Primitive):
    """A tensor without axes repeated to fill a shape."""
    def __init__(self) -> None: ...
    def __call__(self, shape: AnyShape, value: TensorLike) -> Tensor: ...
class Flatten(Primitive):
    """Join the axes from ``start_dim`` to ``end_dim``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, order: str = 'C', *, start_dim: int = 1, end_dim: int = -1) -> Tensor: ...
class FloatStatus(Primitive):
    """1 where a tensor has infinities or NaN, else 0, of shape (1,)."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Floor(Primitive):
    """The next whole number below."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class FloorDiv(Primitive):
    """The quotient, rounded down."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class FloorMod(Primitive):
    """The remainder, with the sign of the divisor."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class Fmax(Primitive):
    """The larger one, or NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Fmin(Primitive):
    """The smaller one, or NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class ForiLoop(Primitive):
    """Apply a function repeatedly to a counter and a value."""
    def __init__(self) -> None: ...
    def __call__(self, lower: int, upper: int, loop_func: Callable, init_val: Any, unroll: bool = True) -> Any: ...
class GLU(Primitive):
    """The first half along an axis times the ``sigmoid`` of the second half."""
    def __init__(self, axis: int = -1) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Gather(Primitive):
    """The slices along an axis at the given indices."""
    def __init__(self, batch_dims: int = 0) -> None: ...
    def __call__(self, input_params: TensorLike, input_indices: TensorLike, axis: int) -> Tensor: ...
class GatherD(Primitive):
    """See ``gather_elements``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, dim: int, index: TensorLike) -> Tensor: ...
class GatherNd(Primitive):
    """The parts at coordinates, given along the last axis of ``indices``, for the leading axes."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike) -> Tensor: ...
class GatherV2(Primitive):
    """The slices along an axis at the given indices."""
    def __init__(self) -> None: ...
    def __call__(self, input_params: TensorLike, input_indices: TensorLike, axis: int, batch_dims: int = 0) -> Tensor: ...
class Gcd(Primitive):
    """The greatest common divisor of integers, by as many steps of Euclid's algorithm as the widest …."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class GeLU(Primitive):
    """The Gaussian error linear unit, by the hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Gelu(Primitive):
    """The Gaussian error linear unit, by the hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Ger(Primitive):
    """The outer product of two vectors."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, vec2: TensorLike) -> Tensor: ...
class Greater(Primitive):
    """Whether numbers of the first are greater."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class GreaterEqual(Primitive):
    """Whether numbers of the first are no less."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class HSVToRGB(Primitive):
    """Red, green and blue along the last axis, from hue, saturation and value."""
    def __init__(self) -> None: ...
    def __call__(self, images: TensorLike) -> Tensor: ...
class HShrink(Primitive):
    """``x`` where it is farther than ``lambd`` from zero, and 0 elsewhere."""
    def __init__(self, lambd: float = 0.5) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class HSigmoid(Primitive):
    """``(x + 3) / 6``, clipped to the range from 0 to 1."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class HSwish(Primitive):
    """``x hardsigmoid(x)``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class HammingWindow(Primitive):
    """``alpha - beta * cos(2 pi k / n)``, float32 by default."""
    def __init__(self, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
                 dtype: TensorDType = 'float32') -> None: ...
    def __call__(self, window_length: int | Tensor) -> Tensor: ...
class Heaviside(Primitive):
    """0 below zero, 1 above, and ``values`` at zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, values: TensorLike) -> Tensor: ...
class Histogram(Primitive):
    """The number of elements in each of ``bins`` equal intervals from ``min`` to ``max``."""
    def __init__(self, bins: int = 100, min: float = 0.0, max: float = 0.0) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class HistogramSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: TensorLike) -> None: ...
class Hypot(Primitive):
    """The square root of the sum of the squares."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class IOU(Primitive):
    """Intersection over union of each pair of boxes."""
    def __init__(self, mode: str = 'iou') -> None: ...
    def __call__(self, anchor_boxes: TensorLike, gt_boxes: TensorLike) -> Tensor: ...
class Identity(Primitive):
    """The tensor itself."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class IdentityN(Primitive):
    """The tensors."""
    def __init__(self) -> None: ...
    def __call__(self, x: Sequence[TensorLike]) -> tuple[Tensor, ...]: ...
class Igamma(Primitive):
    """The lower regularized incomplete gamma function."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Igammac(Primitive):
    """The upper regularized incomplete gamma function, ``1 - igamma(input, other)``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Im2Col(Primitive):
    """Windows of images as columns, of shape (batch, channels, elements of a window, windows)."""
    def __init__(self, ksizes: Sizes, strides: Sizes = 1, dilations: Sizes = 1, pads: Sizes = 0) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class ImageSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: TensorLike) -> None: ...
class InTopK(Primitive):
    """Whether the score of each row's class ``x2`` is among the ``k`` largest scores of the row ``x1``."""
    def __init__(self, k: int) -> None: ...
    def __call__(self, x1: TensorLike, x2: TensorLike) -> Tensor: ...
class IndexAdd(Primitive):
    """A Parameter to which values are added, at indices along an axis."""
    def __init__(self, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> None: ...
    def __call__(self, x: Tensor, indices: TensorLike, y: TensorLike) -> Tensor: ...
class IndexFill(Primitive):
    """The tensor with the slices at indices along an axis filled with a number."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, axis: int, index: TensorLike, value: TensorLike) -> Tensor: ...
class InplaceAdd(Primitive):
    """A tensor to which values are added, at indices along its first axis."""
    def __init__(self, indices: int | Sequence[int]) -> None: ...
    def __call__(self, x: TensorLike, v: TensorLike) -> Tensor: ...
class InplaceSub(Primitive):
    """A tensor from which values are subtracted, at indices along its first axis."""
    def __init__(self, indices: int | Sequence[int]) -> None: ...
    def __call__(self, x: TensorLike, v: TensorLike) -> Tensor: ...
class InplaceUpdate(Primitive):
    """A tensor in which values replace elements, at indices along its first axis."""
    def __init__(self, indices: int | Sequence[int]) -> None: ...
    def __call__(self, x: TensorLike, v: TensorLike) -> Tensor: ...
class Inv(Primitive):
    """One by the number."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Invert(Primitive):
    """Integers with all bits inverted."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class InvertPermutation(Primitive):
    """The inverse of a permutation."""
    def __init__(self) -> None: ...
    def __call__(self, places: Sequence[int]) -> tuple[int, ...]: ...
class IsClose(Primitive):
    """Whether elements differ by at most ``atol + rtol * |other|``."""
    def __init__(self, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = True) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class IsFinite(Primitive):
    """Whether it is neither infinite nor NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class IsInf(Primitive):
    """Whether it is infinite."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class IsNan(Primitive):
    """Whether it is NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class KLDivLoss(Primitive):
    """``labels (log(labels) - logits)``, 0 where a label is not positive."""
    def __init__(self, reduction: str = 'mean') -> None: ...
    def __call__(self, logits: TensorLike, labels: TensorLike) -> Tensor: ...
class L2Loss(Primitive):
    """Half the sum of squares."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class L2Normalize(Primitive):
    """Numbers divided by their length along an axis, which counts as the root of ``epsilon`` at least."""
    def __init__(self, axis: Axes = 0, epsilon: float = 0.0001) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class LRN(Primitive):
    """Divide by ``(bias + alpha s) ** beta``, where ``s`` is the sum of squares over channels within …."""
    def __init__(self, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
                 norm_region: str = 'ACROSS_CHANNELS') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class LayerNorm(Primitive):
    """Mean zero and deviation one over the last axes, scaled and shifted."""
    def __init__(self, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-07) -> None: ...
    def __call__(self, x: TensorLike, gamma: TensorLike, beta: TensorLike) -> tuple[Tensor, Tensor, Tensor]: ...
class Lcm(Primitive):
    """The least common multiple of integers."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class LeftShift(Primitive):
    """Integers shifted ``other`` bits to the left."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Lerp(Primitive):
    """``input + weight * (end - input)``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor: ...
class Less(Primitive):
    """Whether numbers of the first are less."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class LessEqual(Primitive):
    """Whether numbers of the first are no greater."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Lgamma(Primitive):
    """The natural logarithm of the gamma function's absolute value."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class LinSpace(Primitive):
    """Equally spaced values from ``start`` to ``end``, both included."""
    def __init__(self) -> None: ...
    def __call__(self, start: Tensor | Number, end: Tensor | Number, steps: int) -> Tensor: ...
class ListDiff(Primitive):
    """The elements of a vector that another one lacks, and their indices."""
    def __init__(self, out_idx: TensorDType = 'int32') -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]: ...
class Log(Primitive):
    """The natural logarithm."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Log1p(Primitive):
    """The natural logarithm of one more, exact near zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class LogMatrixDeterminant(Primitive):
    """The signs of determinants, and the logarithms of their absolute values."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> tuple[Tensor, Tensor]: ...
class LogSoftmax(Primitive):
    """The logarithm of ``softmax``, computed without its rounding."""
    def __init__(self, axis: int | Sequence[int] = -1) -> None: ...
    def __call__(self, logits: TensorLike) -> Tensor: ...
class LogicalAnd(Primitive):
    """Whether both are true, or not zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class LogicalNot(Primitive):
    """Whether it is zero, or false."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class LogicalOr(Primitive):
    """Whether one is true, or not zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class LogicalXor(Primitive):
    """Whether just one is true, or not zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Logit(Primitive):
    """``log(x / (1 - x))``."""
    def __init__(self, eps: float | None = -1.0) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class LowerBound(Primitive):
    """Indices at which values would be inserted into sorted rows, before equal elements."""
    def __init__(self, out_type: TensorDType = 'int32') -> None: ...
    def __call__(self, sorted_x: TensorLike, values: TensorLike) -> Tensor: ...
class LpNorm(Primitive):
    """The norm of order ``p`` along axes."""
    def __init__(self, axis: Axes, p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Lstsq(Primitive):
    """The matrix for which a product is nearest to another matrix."""
    def __init__(self, fast: bool = True, l2_regularizer: float = 0.0) -> None: ...
    def __call__(self, matrix: TensorLike, rhs: TensorLike) -> Tensor: ...
class MaskedFill(Primitive):
    """``value`` where the mask holds, ``input_x`` elsewhere."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor: ...
class MaskedSelect(Primitive):
    """The elements where a mask holds, as a vector."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, mask: TensorLike) -> Tensor: ...
class MatMul(Primitive):
    """The product of two matrices, which may be transposed."""
    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class MatrixBandPart(Primitive):
    """Matrices with zeros more than ``lower`` below or ``upper`` above the diagonal."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, lower: int, upper: int) -> Tensor: ...
class MatrixDeterminant(Primitive):
    """The determinant of matrices."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class MatrixDiagPartV3(Primitive):
    """Diagonals of matrices."""
    def __init__(self, align: str = 'RIGHT_LEFT') -> None: ...
    def __call__(self, x: TensorLike, k: TensorLike, padding_value: TensorLike) -> Tensor: ...
class MatrixDiagV3(Primitive):
    """Matrices with given diagonals."""
    def __init__(self, align: str = 'RIGHT_LEFT') -> None: ...
    def __call__(self, x: TensorLike, k: TensorLike, num_rows: int | Tensor, num_cols: int | Tensor,
                 padding_value: TensorLike) -> Tensor: ...
class MatrixInverse(Primitive):
    """The inverse of matrices, transposed with ``adjoint``."""
    def __init__(self, adjoint: bool = False) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class MatrixSetDiagV3(Primitive):
    """Matrices with other diagonals."""
    def __init__(self, align: str = 'RIGHT_LEFT') -> None: ...
    def __call__(self, x: TensorLike, diagonal: TensorLike, k: TensorLike) -> Tensor: ...
class MatrixSolve(Primitive):
    """The solution ``x`` of ``matrix @ x = rhs``, with ``adjoint`` of ``matrix.T @ x = rhs``."""
    def __init__(self, adjoint: bool = False) -> None: ...
    def __call__(self, matrix: TensorLike, rhs: TensorLike) -> Tensor: ...
class MaxPool(Primitive):
    """The largest element of each window of images."""
    def __init__(self, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = 'valid',
                 data_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class MaxPool3D(Primitive):
    """The largest element of each window of volumes."""
    def __init__(self, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = 'valid', pad_list: Sizes = 0,
                 ceil_mode: bool | None = None, data_format: str = 'NCDHW') -> None: ...
    def __call__(self, x: TensorLike, *, pad: Sizes = 0, count_include_pad: bool = True,
                 divisor_override: int = 0) -> Tensor: ...
class MaxPoolWithArgmax(Primitive):
    """The maximum of each window of images, and its flat index among all channels of its image, as int32."""
    def __init__(self, kernel_size: Sizes = 1, strides: Sizes = 1, pad_mode: str = 'valid',
                 data_format: str = 'NCHW') -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class Maximum(Primitive):
    """The larger one, or NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Meshgrid(Primitive):
    """Coordinates of a grid."""
    def __init__(self, indexing: str = 'xy') -> None: ...
    def __call__(self, *inputs: TensorLike) -> tuple[Tensor, ...]: ...
class Minimum(Primitive):
    """The smaller one, or NaN."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class MirrorPad(Primitive):
    """Numbers around a tensor that a mirror shows."""
    def __init__(self, mode: str = 'REFLECT') -> None: ...
    def __call__(self, x: TensorLike, paddings: Tensor | Sequence[Sequence[int]]) -> Tensor: ...
class Mish(Primitive):
    """``x tanh(log(1 + exp(x)))``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Mod(Primitive):
    """The remainder of a division rounded towards zero, with the sign of ``input``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Mul(Primitive):
    """The product."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class MulNoNan(Primitive):
    """The product, and 0 where the second factor is, whatever the first is."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class Multinomial(Primitive):
    """Places along the last axis drawn with the probabilities there."""
    def __init__(self, seed: Any = 0, seed2: Any = 0, dtype: TensorDType = 'int32') -> None: ...
    def __call__(self, x: TensorLike, count: int) -> Tensor: ...
class Mvlgamma(Primitive):
    """The logarithm of the ``p``-dimensional gamma function."""
    def __init__(self, p: int) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class NLLLoss(Primitive):
    """The negative log likelihood, and the sum of the weights that took part."""
    def __init__(self, reduction: str = 'mean', ignore_index: int = -100) -> None: ...
    def __call__(self, logits: TensorLike, labels: TensorLike, weight: TensorLike) -> tuple[Tensor, Tensor]: ...
class NMSWithMask(Primitive):
    """Boxes with scores, (n, 5), in the order of scores, the numbers 0 to n - 1, and which of them to keep."""
    def __init__(self, iou_threshold: float = 0.5) -> None: ...
    def __call__(self, bboxes: TensorLike) -> tuple[Tensor, Tensor, Tensor]: ...
class NPUAllocFloatStatus(Primitive):
    """Refused where it is called."""
    def __init__(self) -> None: ...
    def __call__(self, *args: TensorLike) -> Tensor: ...
class NPUClearFloatStatus(Primitive):
    """Refused where it is called."""
    def __init__(self) -> None: ...
    def __call__(self, *args: TensorLike) -> Tensor: ...
class NPUGetFloatStatus(Primitive):
    """Refused where it is called."""
    def __init__(self) -> None: ...
    def __call__(self, *args: TensorLike) -> Tensor: ...
class NanToNum(Primitive):
    """Finite values in the place of NaN (0), infinity and negative infinity (the largest and smallest of …."""
    def __init__(self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Neg(Primitive):
    """The negative of each element."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class NextAfter(Primitive):
    """The next floating-point number after ``input`` in the direction of ``other``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class NonZero(Primitive):
    """Indices of the nonzero elements."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]: ...
class NotEqual(Primitive):
    """Whether numbers differ."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class NthElement(Primitive):
    """The ``n``-th smallest element of the last axis, the ``n``-th largest with ``reverse``."""
    def __init__(self, reverse: bool = False) -> None: ...
    def __call__(self, x: TensorLike, n: int | Tensor) -> Tensor: ...
class NuclearNorm(Primitive):
    """The sum of the singular values of matrices."""
    def __init__(self, dim: Sequence[int] | None = None, keepdim: bool = False) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class OneHot(Primitive):
    """One-hot vectors of length ``depth`` along a new axis."""
    def __init__(self, axis: int = -1) -> None: ...
    def __call__(self, indices: TensorLike, depth: int | Tensor, on_value: Tensor | Number = 1,
                 off_value: Tensor | Number = 0) -> Tensor: ...
class Ones(Primitive):
    """Ones."""
    def __init__(self) -> None: ...
    def __call__(self, shape: AnyShape, dtype: TensorDType = None) -> Tensor: ...
class OnesLike(Primitive):
    """Ones with the shape of a tensor, in its dtype or another."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, *, dtype: TensorDType = None) -> Tensor: ...
class PReLU(Primitive):
    """``x``, multiplied where negative by ``weight``, one value, or one for each channel, the second axis."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, weight: TensorLike) -> Tensor: ...
class Pad(Primitive):
    """Zeros around a tensor."""
    def __init__(self, paddings: Sequence[Sequence[int]]) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Padding(Primitive):
    """The last axis, which has length one, filled up with zeros to a length."""
    def __init__(self, pad_dim_size: int = 8) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Partial(Primitive):
    """A function with its first arguments given."""
    def __init__(self) -> None: ...
    def __call__(self, function: Callable[..., _T], *values: Any) -> Callable[..., _T]: ...
class Pdist(Primitive):
    """The distances of all pairs of rows."""
    def __init__(self, p: Number = 2.0) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Polygamma(Primitive):
    """The ``n``-th derivative of ``digamma``."""
    def __init__(self) -> None: ...
    def __call__(self, n: TensorLike, input: TensorLike) -> Tensor: ...
class PopulationCount(Primitive):
    """The number of bits of integers that are 1, as uint8."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class Pow(Primitive):
    """``input`` to the power ``exponent``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, exponent: TensorLike) -> Tensor: ...
class Print(Primitive):
    """Prints what it is given, also on every run of a compiled function, and returns it."""
    def __init__(self) -> None: ...
    def __call__(self, *values: Any) -> Any: ...
class Qr(Primitive):
    """The QR decomposition of matrices."""
    def __init__(self, full_matrices: bool = False) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class Quantile(Primitive):
    """The quantiles ``q`` along an axis, or of all elements."""
    def __init__(self, dim: int | None = None, keep_dims: bool = False, ignore_nan: bool = False) -> None: ...
    def __call__(self, x: TensorLike, q: TensorLike) -> Tensor: ...
class RGBToHSV(Primitive):
    """Hue, saturation and value along the last axis, from red, green and blue."""
    def __init__(self) -> None: ...
    def __call__(self, images: TensorLike) -> Tensor: ...
class ROIAlign(Primitive):
    """Means of bilinear samples over the cells of regions, (image, x, y, x, y) each."""
    def __init__(self, pooled_height: int, pooled_width: int, spatial_scale: float, sample_num: int = 2,
                 roi_end_mode: int = 1) -> None: ...
    def __call__(self, features: TensorLike, rois: TensorLike) -> Tensor: ...
class RandomCategorical(Primitive):
    """Classes of each row, drawn with the probabilities of the softmax of its logits."""
    def __init__(self, dtype: TensorDType = 'int64') -> None: ...
    def __call__(self, logits: TensorLike, num_sample: int, seed: int = 0) -> Tensor: ...
class RandomChoiceWithMask(Primitive):
    """Places, chosen at random, where a tensor is true, (count, axes), and which of these are."""
    def __init__(self, count: int = 256, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, input_x: TensorLike) -> tuple[Tensor, Tensor]: ...
class Range(Primitive):
    """Values from ``start`` to before ``end``."""
    def __init__(self, maxlen: int = 1000000) -> None: ...
    def __call__(self, start: Tensor | Number, end: Tensor | Number, step: Tensor | Number) -> Tensor: ...
class Rank(Primitive):
    """The number of axes."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike) -> int: ...
class ReLU(Primitive):
    """The larger of each element and zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, inplace: bool = False) -> Tensor: ...
class ReLU6(Primitive):
    """Elements clipped to the range from 0 to 6."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class RealDiv(Primitive):
    """The quotient."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class Reciprocal(Primitive):
    """One by the number."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class ReduceAll(Primitive):
    """Whether none is false, or zero."""
    def __init__(self, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class ReduceAny(Primitive):
    """Whether one is true, or not zero."""
    def __init__(self, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class ReduceMax(Primitive):
    """The largest element."""
    def __init__(self, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class ReduceMean(Primitive):
    """The mean."""
    def __init__(self, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class ReduceMin(Primitive):
    """The smallest element."""
    def __init__(self, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class ReduceProd(Primitive):
    """The product."""
    def __init__(self, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class ReduceStd(Primitive):
    """The deviation and the mean."""
    def __init__(self, axis: Axes = (), unbiased: bool = True, keep_dims: bool = False) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]: ...
class ReduceSum(Primitive):
    """The sum."""
    def __init__(self, keep_dims: bool = False, skip_mode: Any = False) -> None: ...
    def __call__(self, x: TensorLike, axis: Axes = ()) -> Tensor: ...
class Renorm(Primitive):
    """Parts along an axis, scaled down to a norm where theirs is larger."""
    def __init__(self, p: int, dim: int, maxnorm: float) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Reshape(Primitive):
    """The same values in another shape."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, shape: AnyShape) -> Tensor: ...
class ResizeBilinear(Primitive):
    """Images in another size, interpolated bilinearly."""
    def __init__(self, size: AnyShape, align_corners: bool = False, half_pixel_centers: bool = False) -> None: ...
    def __call__(self, image: TensorLike) -> Tensor: ...
class ResizeBilinearV2(Primitive):
    """Images in another size, interpolated bilinearly."""
    def __init__(self, align_corners: bool = False, half_pixel_centers: bool = False) -> None: ...
    def __call__(self, image: TensorLike, size: AnyShape) -> Tensor: ...
class ResizeNearestNeighbor(Primitive):
    """Images in another size, interpolated by the nearest element."""
    def __init__(self, size: AnyShape, align_corners: bool = False, half_pixel_centers: bool = False) -> None: ...
    def __call__(self, image: TensorLike) -> Tensor: ...
class ResizeNearestNeighborV2(Primitive):
    """Images in another size, interpolated by the nearest element."""
    def __init__(self, align_corners: bool = False, half_pixel_centers: bool = False) -> None: ...
    def __call__(self, image: TensorLike, size: AnyShape) -> Tensor: ...
class ReverseSequence(Primitive):
    """Sequences turned around up to the length of each."""
    def __init__(self, seq_dim: int, batch_dim: int = 0) -> None: ...
    def __call__(self, x: TensorLike, lengths: TensorLike) -> Tensor: ...
class ReverseV2(Primitive):
    """Reverse the order along axes."""
    def __init__(self, axis: Axes) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class RightShift(Primitive):
    """Integers shifted ``other`` bits to the right."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Rint(Primitive):
    """The nearest whole number, halves to the even one."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, *, decimals: int = 0) -> Tensor: ...
class Roll(Primitive):
    """Numbers moved on along an axis."""
    def __init__(self, shift: Axes, axis: Axes) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Round(Primitive):
    """Elements rounded to ``decimals`` digits after the decimal point, halves to the even digit."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, *, decimals: int = 0) -> Tensor: ...
class Rsqrt(Primitive):
    """One by the square root."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class SGD(Primitive):
    """Move ``parameters`` by momentum, which begins where ``stat`` is above zero."""
    def __init__(self, dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> None: ...
    def __call__(self, parameters: Tensor, gradient: Tensor, learning_rate: Any, accum: Tensor, momentum: Any,
                 stat: Tensor) -> Sequence[Tensor]: ...
class ScalarCast(Primitive):
    """A number as a Python integer, float or boolean."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Number, input_y: TensorDType) -> int | float: ...
class ScalarSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: TensorLike) -> None: ...
class ScalarToTensor(Primitive):
    """A number as a tensor without axes."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Number, dtype: TensorDType = 'float32') -> Tensor: ...
class Scan(Primitive):
    """Apply a function to each row of a tensor, or element of a list, passing a value from one call to the …."""
    def __init__(self) -> None: ...
    def __call__(self, loop_func: Callable, init: Any, xs: Any, length: int | None = None,
                 unroll: bool = True) -> tuple[Any, Any]: ...
class ScatterAdd(Primitive):
    """A Parameter to which values are added, at indices along its first axis."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterDiv(Primitive):
    """A Parameter divided by values, at indices along its first axis."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterMax(Primitive):
    """A Parameter in which values replace smaller elements, at indices along its first axis."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterMin(Primitive):
    """A Parameter in which values replace larger elements, at indices along its first axis."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterMul(Primitive):
    """A Parameter multiplied by values, at indices along its first axis."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNd(Primitive):
    """Zeros of a shape, with ``updates`` added at the coordinates in ``indices``."""
    def __init__(self) -> None: ...
    def __call__(self, indices: TensorLike, updates: TensorLike, shape: AnyShape) -> Tensor: ...
class ScatterNdAdd(Primitive):
    """A Parameter to which values are added, at the positions that indices name."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNdDiv(Primitive):
    """A Parameter divided by values, at the positions that indices name."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNdMax(Primitive):
    """A Parameter in which values replace smaller elements, at the positions that indices name."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNdMin(Primitive):
    """A Parameter in which values replace larger elements, at the positions that indices name."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNdMul(Primitive):
    """A Parameter multiplied by values, at the positions that indices name."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNdSub(Primitive):
    """A Parameter from which values are subtracted, at the positions that indices name."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterNdUpdate(Primitive):
    """A Parameter in which values replace elements, at the positions that indices name."""
    def __init__(self, use_locking: bool = True) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterSub(Primitive):
    """A Parameter from which values are subtracted, at indices along its first axis."""
    def __init__(self, use_locking: bool = False) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class ScatterUpdate(Primitive):
    """A Parameter in which values replace elements, at indices along its first axis."""
    def __init__(self, use_locking: bool = True) -> None: ...
    def __call__(self, input_x: Tensor, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class SeLU(Primitive):
    """The scaled exponential linear unit."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class SearchSorted(Primitive):
    """The indices at which values are inserted into sorted ones."""
    def __init__(self, dtype: TensorDType = 'int64', right: bool = False) -> None: ...
    def __call__(self, sequence: TensorLike, values: TensorLike) -> Tensor: ...
class SegmentMax(Primitive):
    """The largest of slices along the first axis that have the same number."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, segment_ids: TensorLike) -> Tensor: ...
class SegmentMean(Primitive):
    """The means of slices along the first axis that have the same number."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, segment_ids: TensorLike) -> Tensor: ...
class SegmentMin(Primitive):
    """The smallest of slices along the first axis that have the same number."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, segment_ids: TensorLike) -> Tensor: ...
class SegmentProd(Primitive):
    """The products of slices along the first axis that have the same number."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, segment_ids: TensorLike) -> Tensor: ...
class SegmentSum(Primitive):
    """The sums of slices along the first axis that have the same number."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, segment_ids: TensorLike) -> Tensor: ...
class Select(Primitive):
    """``input`` where the condition holds, ``other`` elsewhere."""
    def __init__(self) -> None: ...
    def __call__(self, condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor: ...
class Shape(Primitive):
    """The shape, as a tuple."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike) -> tuple[int, ...]: ...
class Sigmoid(Primitive):
    """``1 / (1 + exp(-x))``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class SigmoidCrossEntropyWithLogits(Primitive):
    """The binary cross-entropy of each element and the sigmoid of its logit."""
    def __init__(self) -> None: ...
    def __call__(self, logits: TensorLike, labels: TensorLike) -> Tensor: ...
class Sign(Primitive):
    """-1, 0 or 1."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Sin(Primitive):
    """The sine, of radians."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Sinc(Primitive):
    """``sin(pi x) / (pi x)``, and 1 at zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Sinh(Primitive):
    """The hyperbolic sine."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Size(Primitive):
    """The number of elements."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike) -> int: ...
class Slice(Primitive):
    """The part from ``begin`` on, of a size."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, begin: AnyShape, size: AnyShape) -> Tensor: ...
class SmoothL1Loss(Primitive):
    """``0.5 * d ** 2 / beta`` where the absolute difference ``d`` is below ``beta``, ``d - 0.5 * beta`` …."""
    def __init__(self, beta: float = 1.0, reduction: str = 'none') -> None: ...
    def __call__(self, input: TensorLike, target: TensorLike) -> Tensor: ...
class SoftShrink(Primitive):
    """``x`` moved towards zero by ``lambd``, and 0 where it is nearer than that."""
    def __init__(self, lambd: float = 0.5) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Softmax(Primitive):
    """Exponentials scaled to a sum of one along an axis."""
    def __init__(self, axis: int | Sequence[int] = -1) -> None: ...
    def __call__(self, input: TensorLike, *, dtype: TensorDType = None) -> Tensor: ...
class SoftmaxCrossEntropyWithLogits(Primitive):
    """Losses, and their gradients as a second result."""
    def __init__(self) -> None: ...
    def __call__(self, logits: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]: ...
class Softplus(Primitive):
    """``log(1 + exp(beta x)) / beta``, and ``x`` where ``beta x`` is above the threshold."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, beta: float = 1, threshold: float = 20) -> Tensor: ...
class Softsign(Primitive):
    """``x / (1 + |x|)``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class Sort(Primitive):
    """Elements sorted along an axis, and their indices as int32."""
    def __init__(self, axis: int = -1, descending: bool = False) -> None: ...
    def __call__(self, input_x: TensorLike) -> tuple[Tensor, Tensor]: ...
class SpaceToBatch(Primitive):
    """Padded images cut into square blocks, whose positions become samples."""
    def __init__(self, block_size: Any, paddings: Any) -> None: ...
    def __call__(self, x: Any) -> Any: ...
class SpaceToBatchND(Primitive):
    """Padded images cut into blocks, whose positions become samples."""
    def __init__(self, block_shape: Any, paddings: Any) -> None: ...
    def __call__(self, x: Any) -> Any: ...
class SpaceToDepth(Primitive):
    """Blocks of height and width laid along the channels."""
    def __init__(self, block_size: int) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor: ...
class SparseGatherV2(Primitive):
    """The slices of a tensor at indices along an axis."""
    def __init__(self) -> None: ...
    def __call__(self, input_params: TensorLike, input_indices: TensorLike, axis: int, batch_dims: int = 0) -> Tensor: ...
class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """The mean cross entropy of scores with class numbers, or its gradient."""
    def __init__(self, is_grad: bool = False) -> None: ...
    def __call__(self, logits: TensorLike, labels: TensorLike) -> Tensor: ...
class Split(Primitive):
    """So many equal parts along an axis."""
    def __init__(self, axis: int = 0, output_num: int = 1) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, ...]: ...
class Sqrt(Primitive):
    """The square root."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Square(Primitive):
    """The square."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class SquareSumAll(Primitive):
    """The sums of squares of two tensors."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]: ...
class SquaredDifference(Primitive):
    """The square of the difference."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class Squeeze(Primitive):
    """Remove the given axes, which have length one, or all axes of length one."""
    def __init__(self, axis: int | Sequence[int] | None = ()) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Stack(Primitive):
    """Stack tensors of one shape along a new axis."""
    def __init__(self, axis: int = 0) -> None: ...
    def __call__(self, tensors: Sequence[TensorLike]) -> Tensor: ...
class StandardLaplace(Primitive):
    """Numbers of the Laplace distribution of mean 0 and scale 1."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: AnyShape) -> Tensor: ...
class StandardNormal(Primitive):
    """Numbers of the normal distribution of mean 0 and deviation 1."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: AnyShape) -> Tensor: ...
class StopGradient(Primitive):
    """The same values, through which no gradient passes."""
    def __init__(self) -> None: ...
    def __call__(self, value: Any) -> Any: ...
class StridedSlice(Primitive):
    """The part between two places, by steps."""
    def __init__(self, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
                 shrink_axis_mask: int = 0) -> None: ...
    def __call__(self, input_x: TensorLike, begin: Sequence[int], end: Sequence[int],
                 strides: Sequence[int]) -> Tensor: ...
class Sub(Primitive):
    """The difference."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Svd(Primitive):
    """The singular value decomposition of matrices."""
    def __init__(self, full_matrices: bool = False, compute_uv: bool = True) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor | tuple[Tensor, Tensor, Tensor]: ...
class Tan(Primitive):
    """The tangent, of radians."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Tanh(Primitive):
    """The hyperbolic tangent."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class TensorAdd(Primitive):
    """The sum."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class TensorScatterAdd(Primitive):
    """The tensor with ``updates`` added at coordinates."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterDiv(Primitive):
    """What is there divided by all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterElements(Primitive):
    """Numbers put, or added, at places along an axis."""
    def __init__(self, axis: int = 0, reduction: str = 'none') -> None: ...
    def __call__(self, x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterMax(Primitive):
    """The larger of what is there and all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterMin(Primitive):
    """The smaller of what is there and all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterMul(Primitive):
    """What is there times all of ``updates`` that name the place."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterSub(Primitive):
    """The tensor with ``updates`` subtracted at coordinates."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorScatterUpdate(Primitive):
    """The tensor with ``updates`` written at coordinates."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor: ...
class TensorShape(Primitive):
    """The shape, as a tensor of int64."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike) -> Tensor: ...
class TensorSummary(Primitive):
    """Has no effect."""
    def __init__(self) -> None: ...
    def __call__(self, name: str, value: TensorLike) -> None: ...
class Tile(Primitive):
    """Repeat the tensor a number of times along each axis."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, dims: AnyShape) -> Tensor: ...
class TopK(Primitive):
    """The ``k`` largest or smallest elements along an axis, and their indices as int32."""
    def __init__(self, sorted: bool = True) -> None: ...
    def __call__(self, input: TensorLike, k: int, dim: int | None = None,
                 largest: bool = True) -> tuple[Tensor, Tensor]: ...
class Trace(Primitive):
    """The sum of the diagonal of a matrix, in its dtype."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Transpose(Primitive):
    """Permute the axes."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, dims: Sequence[int]) -> Tensor: ...
class Tril(Primitive):
    """The lower triangle of matrices, with zeros above a diagonal."""
    def __init__(self, diagonal: int = 0) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Triu(Primitive):
    """The upper triangle of matrices, with zeros below a diagonal."""
    def __init__(self, diagonal: int = 0) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class Trunc(Primitive):
    """The next whole number towards zero."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> Tensor: ...
class TruncateDiv(Primitive):
    """The quotient, rounded towards zero."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class TruncateMod(Primitive):
    """The remainder of a division rounded towards zero, with the sign of ``input``."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class TupleToArray(Primitive):
    """A tensor of the elements of a tuple."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: Sequence[Number]) -> Tensor: ...
class UniformInt(Primitive):
    """Random integers from a minimum, below a maximum."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: AnyShape, low: Tensor | float, high: Tensor | float) -> Tensor: ...
class UniformReal(Primitive):
    """Numbers from 0 up to but not 1."""
    def __init__(self, seed: Any = 0, seed2: Any = 0) -> None: ...
    def __call__(self, shape: AnyShape) -> Tensor: ...
class Unique(Primitive):
    """The distinct elements in order of first occurrence, and for each element its index among them."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike) -> tuple[Tensor, Tensor]: ...
class UniqueConsecutive(Primitive):
    """Numbers without those that equal the one before."""
    def __init__(self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> None: ...
    def __call__(self, x: TensorLike) -> Tensor | tuple[Tensor, ...]: ...
class UniqueWithPad(Primitive):
    """The distinct elements of a vector, padded to its length with ``pad_num``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, pad_num: int | TensorLike) -> tuple[Tensor, Tensor]: ...
class UnravelIndex(Primitive):
    """The coordinates of flat indices in a shape, one coordinate in each row."""
    def __init__(self) -> None: ...
    def __call__(self, indices: TensorLike, dims: TensorLike) -> Tensor: ...
class UnsortedSegmentMax(Primitive):
    """The largest of the slices along the first axes that have the same number in ``segment_ids``."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor: ...
class UnsortedSegmentMin(Primitive):
    """The smallest of the slices with the same number, the greatest finite number of the dtype if there …."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor: ...
class UnsortedSegmentProd(Primitive):
    """The product of the slices with the same number, 1 if there are none."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor: ...
class UnsortedSegmentSum(Primitive):
    """Sums of the slices along the first axes that have the same number in ``segment_ids``."""
    def __init__(self) -> None: ...
    def __call__(self, input_x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor: ...
class Unstack(Primitive):
    """The slices along an axis, which is gone."""
    def __init__(self, axis: int = 0, num: int | None = None) -> None: ...
    def __call__(self, x: TensorLike) -> tuple[Tensor, ...]: ...
class UpperBound(Primitive):
    """Indices at which values would be inserted into sorted rows, behind equal elements."""
    def __init__(self, out_type: TensorDType = 'int32') -> None: ...
    def __call__(self, sorted_x: TensorLike, values: TensorLike) -> Tensor: ...
class WhileLoop(Primitive):
    """Apply a function repeatedly to a value, or a nesting of values, while a condition on the value holds."""
    def __init__(self) -> None: ...
    def __call__(self, cond_func: Callable, loop_func: Callable, init_val: Any,
                 max_iterations: int | None = None) -> Any: ...
class Xdivy(Primitive):
    """``x / y``, and 0 where ``x`` is 0."""
    def __init__(self) -> None: ...
    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor: ...
class Xlogy(Primitive):
    """``input * log(other)``, and 0 where ``input`` is 0."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
class Zeros(Primitive):
    """Zeros."""
    def __init__(self) -> None: ...
    def __call__(self, size: AnyShape, dtype: TensorDType = None) -> Tensor: ...
class ZerosLike(Primitive):
    """Zeros with the shape of a tensor, in its dtype or another."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, *, dtype: TensorDType = None) -> Tensor: ...
class Zeta(Primitive):
    """Hurwitz's zeta function."""
    def __init__(self) -> None: ...
    def __call__(self, input: TensorLike, other: TensorLike) -> Tensor: ...
def abs(input: TensorLike) -> Tensor:
    """The absolute value."""
def absolute(input: TensorLike) -> Tensor:
    """The absolute value."""
def accumulate_n(x: Sequence[TensorLike]) -> Tensor:
    """The sum of tensors of one shape."""
def acos(input: TensorLike) -> Tensor:
    """The angle in radians whose cosine it is."""
def acosh(input: TensorLike) -> Tensor:
    """The inverse of the hyperbolic cosine."""
def adaptive_avg_pool1d(input: TensorLike, output_size: int) -> Tensor:
    """Means over ``output_size`` cells of sequences."""
def adaptive_avg_pool2d(input: TensorLike, output_size: int | Sequence[int | None]) -> Tensor:
    """Means over the cells of a grid of ``output_size``, (height, width) or one value for both."""
def adaptive_avg_pool3d(input: TensorLike, output_size: int | Sequence[int | None]) -> Tensor:
    """Means over the cells of a grid of volumes."""
def adaptive_max_pool1d(input: TensorLike, output_size: int) -> Tensor:
    """The maximum of each of ``output_size`` cells of sequences."""
def adaptive_max_pool2d(input: TensorLike, output_size: int | Sequence[int | None],
                        return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each cell of a grid of ``output_size``."""
def adaptive_max_pool3d(input: TensorLike, output_size: int | Sequence[int | None],
                        return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each cell of a grid of volumes."""
def add(input: TensorLike, other: TensorLike) -> Tensor:
    """The sum."""
def addbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = 1,
           alpha: TensorLike = 1) -> Tensor:
    """``beta * input`` plus ``alpha`` times the sum of all products ``batch1 @ batch2``."""
def addcdiv(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
def addcmul(input: TensorLike, tensor1: TensorLike, tensor2: TensorLike, value: TensorLike = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
def addmm(input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = 1,
          alpha: TensorLike = 1) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``."""
def addmv(input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = 1,
          alpha: TensorLike = 1) -> Tensor:
    """``beta * input + alpha * mat @ vec``."""
def addn(x: Sequence[TensorLike]) -> Tensor:
    """The sum of tensors of one shape."""
def addr(x: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
    """``beta * x + alpha * outer(vec1, vec2)``."""
def adjoint(x: TensorLike) -> Tensor:
    """Matrices with their last two axes swapped."""
def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """Sampling coordinates for ``grid_sample`` that transform images by matrices."""
def all(input: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Whether all elements are true, or nonzero."""
def amax(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, initial: float | None = None,
         where: TensorLike | None = None) -> Tensor:
    """The largest number, ``initial`` at least, of those where ``where`` holds."""
def amin(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, initial: float | None = None,
         where: TensorLike | None = None) -> Tensor:
    """The smallest number, ``initial`` at most, of those where ``where`` holds."""
def aminmax(input: TensorLike, *, axis: int | None = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element."""
def any(input: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Whether any element is true, or nonzero."""
def approximate_equal(x: TensorLike, y: TensorLike, tolerance: float = 1e-05) -> Tensor:
    """Whether elements differ by less than ``tolerance``."""
def arange(start: Tensor | Number = 0, end: Tensor | Number | None = None, step: Tensor | Number = 1, *,
           dtype: TensorDType = None) -> Tensor:
    """Values from ``start`` to before ``end``, or from 0 to before ``start``."""
def arccos(input: TensorLike) -> Tensor:
    """The angle in radians whose cosine it is."""
def arccosh(input: TensorLike) -> Tensor:
    """The inverse of the hyperbolic cosine."""
def arcsin(input: TensorLike) -> Tensor:
    """The angle in radians whose sine it is."""
def arcsinh(input: TensorLike) -> Tensor:
    """The inverse of the hyperbolic sine."""
def arctan(input: TensorLike) -> Tensor:
    """The angle in radians whose tangent it is."""
def arctan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle in radians, from -pi to pi, of the point with ordinate ``input`` and abscissa ``other``."""
def arctanh(input: TensorLike) -> Tensor:
    """The inverse of the hyperbolic tangent."""
def argmax(input: TensorLike, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element along an axis, or in the flat tensor."""
def argmin(input: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element along an axis, or in the flat tensor."""
def argsort(input: TensorLike, axis: int = -1, descending: bool = False) -> Tensor:
    """Indices that sort the elements along an axis, as int32."""
def argwhere(input: TensorLike) -> Tensor:
    """Indices of the nonzero elements, one in each row."""
def asin(input: TensorLike) -> Tensor:
    """The angle in radians whose sine it is."""
def asinh(input: TensorLike) -> Tensor:
    """The inverse of the hyperbolic sine."""
def assign_add(variable: Tensor, value: TensorLike) -> Tensor:
    """Add to a Parameter, or another tensor."""
def assign_sub(variable: Tensor, value: TensorLike) -> Tensor:
    """Subtract from a Parameter, or another tensor."""
def atan(input: TensorLike) -> Tensor:
    """The angle in radians whose tangent it is."""
def atan2(input: TensorLike, other: TensorLike) -> Tensor:
    """The angle in radians, from -pi to pi, of the point with ordinate ``input`` and abscissa ``other``."""
def atanh(input: TensorLike) -> Tensor:
    """The inverse of the hyperbolic tangent."""
@overload
def atleast_1d(inputs: ArrayLike) -> Tensor:
    """A tensor with at least one axis."""
@overload
def atleast_1d(inputs: list[Any] | tuple[Any, ...]) -> tuple[Tensor, ...]:
    """A tensor with at least one axis."""
@overload
def atleast_2d(inputs: ArrayLike) -> Tensor:
    """A tensor with at least two axes, new ones in front."""
@overload
def atleast_2d(inputs: list[Any] | tuple[Any, ...]) -> tuple[Tensor, ...]:
    """A tensor with at least two axes, new ones in front."""
@overload
def atleast_3d(inputs: ArrayLike) -> Tensor:
    """A tensor with at least three axes, the third after the others."""
@overload
def atleast_3d(inputs: list[Any] | tuple[Any, ...]) -> tuple[Tensor, ...]:
    """A tensor with at least three axes, the third after the others."""
def avg_pool1d(input_x: TensorLike, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """The mean of each window of sequences."""
def avg_pool2d(input_x: TensorLike, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0) -> Tensor:
    """The mean of each window of images, or the sum divided by ``divisor_override``."""
def avg_pool3d(input_x: TensorLike, kernel_size: Sizes = 1, stride: Sizes = 1, padding: Sizes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0) -> Tensor:
    """The mean of each window of volumes, or the sum divided by ``divisor_override``."""
def baddbmm(input: TensorLike, batch1: TensorLike, batch2: TensorLike, beta: TensorLike = 1,
            alpha: TensorLike = 1) -> Tensor:
    """``beta * input + alpha * batch1 @ batch2``."""
def bartlett_window(window_length: int | Tensor, periodic: bool = True, *, dtype: TensorDType = None) -> Tensor:
    """A triangle from 0 to 1 and back."""
def batch_dot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """Sums of products along one axis of each."""
def batch_norm(input_x: TensorLike, running_mean: TensorLike, running_var: TensorLike, weight: TensorLike,
               bias: TensorLike, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    """Normalise each channel to mean ``bias`` and standard deviation ``weight``."""
def batch_to_space_nd(input_x: TensorLike, block_shape: int | Sequence[int],
                      crops: Sequence[Sequence[int]]) -> Tensor:
    """Samples of a batch as elements at the same place in each block of the last axes."""
def bernoulli(input: TensorLike, p: Tensor | Number = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability ``p``, 0 otherwise, in the shape and dtype of ``input``."""
def bessel_i0(input: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def bessel_i0e(x: TensorLike) -> Tensor:
    """``bessel_i0`` times ``exp(-|x|)``."""
def bessel_i1(input: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
def bessel_i1e(x: TensorLike) -> Tensor:
    """``bessel_i1`` times ``exp(-|x|)``."""
def bessel_j0(x: TensorLike) -> Tensor:
    """The Bessel function of the first kind of order 0."""
def bessel_j1(x: TensorLike) -> Tensor:
    """The Bessel function of the first kind of order 1."""
def bessel_k0(x: TensorLike) -> Tensor:
    """The modified Bessel function of the second kind of order 0."""
def bessel_k0e(x: TensorLike) -> Tensor:
    """``bessel_k0`` times ``exp(x)``."""
def bessel_k1(x: TensorLike) -> Tensor:
    """The modified Bessel function of the second kind of order 1."""
def bessel_k1e(x: TensorLike) -> Tensor:
    """``bessel_k1`` times ``exp(x)``."""
def bessel_y0(x: TensorLike) -> Tensor:
    """The Bessel function of the second kind of order 0."""
def bessel_y1(x: TensorLike) -> Tensor:
    """The Bessel function of the second kind of order 1."""
def bias_add(input_x: TensorLike, bias: TensorLike) -> Tensor:
    """Add a vector along the second axis."""
def bidense(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """``x @ weight[k] @ y + bias[k]`` of the last axes of two inputs, for each ``k``."""
def binary_cross_entropy(logits: TensorLike, labels: TensorLike, weight: TensorLike | None = None,
                         reduction: str = 'mean') -> Tensor:
    """``-(labels log(p) + (1 - labels) log(1 - p))`` of probabilities, clipped from below at 1e-12."""
def binary_cross_entropy_with_logits(input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
                                     pos_weight: TensorLike | None = None, reduction: str = 'mean') -> Tensor:
    """The binary cross-entropy of labels and the sigmoid of scores."""
def bincount(input: TensorLike, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Counts of each integer from 0 up, or sums of weights."""
def bitwise_and(input: TensorLike, other: TensorLike) -> Tensor:
    """The bits that are set in both."""
def bitwise_left_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """Integers shifted ``other`` bits to the left."""
def bitwise_or(input: TensorLike, other: TensorLike) -> Tensor:
    """The bits that are set in either."""
def bitwise_right_shift(input: TensorLike, other: TensorLike) -> Tensor:
    """Integers shifted ``other`` bits to the right."""
def bitwise_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """The bits that are set in just one."""
def blackman_window(window_length: int | Tensor, periodic: bool = True, *, dtype: TensorDType = None) -> Tensor:
    """A sum of two cosines from 0 to 1 and back, float32 by default."""
def block_diag(*inputs: TensorLike) -> Tensor:
    """A block-diagonal matrix of matrices."""
def bmm(input_x: TensorLike, mat2: TensorLike) -> Tensor:
    """Products of two batches of matrices."""
def bool_eq(x: Any, y: Any) -> Any:
    """What Python's ``eq`` gives."""
def bool_not(x: Any) -> Any:
    """What Python's ``not_`` gives."""
def bounding_box_decode(anchor_box: TensorLike, deltas: TensorLike, max_shape: Sequence[int],
                        means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
                        stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0), wh_ratio_clip: float = 0.016) -> Tensor:
    """Boxes from anchors and differences from them, as ``bounding_box_encode`` gives them, cut off at …."""
def bounding_box_encode(anchor_box: TensorLike, groundtruth_box: TensorLike,
                        means: float | Sequence[float] = (0.0, 0.0, 0.0, 0.0),
                        stds: float | Sequence[float] = (1.0, 1.0, 1.0, 1.0)) -> Tensor:
    """Differences of boxes from anchors, (n, 4) both."""
def broadcast_to(input: TensorLike, shape: AnyShape) -> Tensor:
    """Broadcast to a shape."""
def bucketize(input: TensorLike, boundaries: Sequence[float], *, right: bool = False) -> Tensor:
    """For each element the index of the interval between increasing boundaries, int32."""
def cartesian_prod(*inputs: TensorLike) -> Tensor:
    """The Cartesian product of vectors, a combination in each row."""
def cast(input: TensorLike, dtype: TensorDType) -> Tensor:
    """The values in another dtype."""
def cat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Concatenate tensors along an axis."""
def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0) -> Tensor:
    """Distances between all rows of ``x1`` and all rows of ``x2``."""
def ceil(input: TensorLike) -> Tensor:
    """The next whole number above."""
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x``, ``alpha * (exp(x / alpha) - 1)`` below zero."""
def channel_shuffle(x: TensorLike, groups: int) -> Tensor:
    """Interleave groups of the second axis."""
def check_valid(bboxes: TensorLike, img_metas: TensorLike) -> Tensor:
    """Whether each box lies within an image, of which height, width and scale are given."""
def choice_with_mask(input_x: TensorLike, count: int = 256, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Positions of ``count`` random elements for which a mask holds, and whether each is valid."""
def cholesky(input_x: TensorLike, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``A = L @ L.T`` for symmetric positive definite matrices."""
def cholesky_inverse(input_x: TensorLike, upper: bool = False) -> Tensor:
    """The inverse of matrices, given their factors by ``cholesky``."""
def cholesky_solve(input: TensorLike, input2: TensorLike, upper: bool = False) -> Tensor:
    """The solution ``x`` of ``A @ x = input``, given the Cholesky factor ``input2`` of ``A``."""
def chunk(input: TensorLike, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into at most ``chunks`` parts of one length, of which the last may be shorter."""
def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements clipped to a range."""
def clip(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Elements clipped to a range."""
@overload
def clip_by_global_norm(x: ArrayLike, clip_norm: float = 1.0, use_norm: None = None) -> Tensor:
    """Tensors scaled so that their common norm is at most ``clip_norm``."""
@overload
def clip_by_global_norm(x: list[Any] | tuple[Any, ...], clip_norm: float = 1.0,
                        use_norm: None = None) -> tuple[Tensor, ...]:
    """Tensors scaled so that their common norm is at most ``clip_norm``."""
@overload
def clip_by_norm(x: ArrayLike, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """A tensor, or each tensor of a list, scaled so that its norm is at most ``max_norm``."""
@overload
def clip_by_norm(x: list[Any] | tuple[Any, ...], max_norm: float, norm_type: float = 2.0,
                 error_if_nonfinite: bool = False) -> Sequence[Tensor]:
    """A tensor, or each tensor of a list, scaled so that its norm is at most ``max_norm``."""
def clip_by_value(x: Any, clip_value_min: TensorLike | None = None, clip_value_max: TensorLike | None = None) -> Any:
    """Elements clipped to a range."""
def col2im(input_x: TensorLike, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes,
           padding_value: Sizes, stride: Sizes) -> Tensor:
    """Columns of shape (batch, channels, elements of a window, windows), added at their positions in images."""
def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the second axis."""
def combinations(input: TensorLike, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of ``r`` elements of a vector, one in each row."""
def concat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Concatenate tensors along an axis."""
def cond(pred: TensorLike, true_fn: Callable, false_fn: Callable, *inputs: Any) -> Any:
    """Call one of two functions with the same inputs, chosen by a condition."""
def conj(input: TensorLike) -> Tensor:
    """The same numbers."""
def conv1d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           pad_mode: str = 'valid', padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """A convolution of sequences (batch, channels, length)."""
def conv2d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           pad_mode: str = 'valid', padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """A convolution of images (batch, channels, height, width)."""
def conv3d(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Sizes = 1,
           pad_mode: str = 'valid', padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """A convolution of volumes (batch, channels, depth, height, width)."""
def conv3d_transpose(inputs: TensorLike, weight: TensorLike, pad_mode: str = 'valid', padding: Sizes = 0,
                     stride: Sizes = 1, dilation: Sizes = 1, group: int = 1, output_padding: Sizes = 0) -> Tensor:
    """A transposed convolution over data (batch, channels, depth, height, width)."""
def copysign(x: TensorLike, other: TensorLike) -> Tensor:
    """The absolute value of ``x`` with the sign of ``other``."""
def cos(input: TensorLike) -> Tensor:
    """The cosine, of radians."""
def cosh(input: TensorLike) -> Tensor:
    """The hyperbolic cosine."""
def cosine_embedding_loss(input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0,
                          reduction: str = 'mean') -> Tensor:
    """One minus the cosine along the second axis where the target is 1, ``max(0, cosine - margin)`` where …."""
def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The inner product along an axis divided by the product of both norms, which are at least ``eps``."""
def count_nonzero(x: TensorLike, axis: Axes = (), keep_dims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The number of nonzero elements."""
def cov(input: TensorLike, *, correction: int = 1, fweights: TensorLike | None = None,
        aweights: TensorLike | None = None) -> Tensor:
    """The covariance matrix of variables, which are the rows."""
def crop_and_resize(image: TensorLike, boxes: TensorLike, box_indices: TensorLike, crop_size: Sequence[int],
                    method: str = 'bilinear', extrapolation_value: float = 0.0) -> Tensor:
    """Regions of images, resized to one height and width."""
def cross(input: TensorLike, other: TensorLike, dim: int | None = None) -> Tensor:
    """The cross product along an axis of length three, by default the first one."""
def cross_entropy(input: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
                  reduction: str = 'mean', label_smoothing: float = 0.0) -> Tensor:
    """The cross-entropy of targets and the softmax of scores."""
def ctc_greedy_decoder(inputs: TensorLike, sequence_length: TensorLike,
                       merge_repeated: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest class of each step, with blanks and repetitions removed."""
def ctc_loss(log_probs: TensorLike, targets: TensorLike, input_lengths: TensorLike, target_lengths: TensorLike,
             blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> tuple[Tensor, None]:
    """The negative log-probability that scores over time spell a sequence, after blanks and repetitions …."""
def cummax(input: TensorLike, axis: int) -> tuple[Tensor, Tensor]:
    """The largest number so far along an axis."""
def cummin(input: TensorLike, axis: int) -> tuple[Tensor, Tensor]:
    """The smallest number so far along an axis."""
def cumprod(input: TensorLike, dim: int, dtype: TensorDType = None) -> Tensor:
    """Cumulative products along an axis."""
def cumsum(x: TensorLike, axis: int | None, dtype: TensorDType = None) -> Tensor:
    """Cumulative sums along an axis."""
def deepcopy(input_x: TensorLike) -> Tensor:
    """A copy of the tensor."""
def deformable_conv2d(x: TensorLike, weight: TensorLike, offsets: TensorLike, kernel_size: Sequence[int],
                      strides: Sequence[int], padding: Sequence[int], bias: TensorLike | None = None,
                      dilations: Sequence[int] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1,
                      modulated: bool = True) -> Tensor:
    """A convolution whose samples are moved by offsets and weighted by a mask."""
def deg2rad(input: TensorLike) -> Tensor:
    """Radians from degrees."""
def dense(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """``input @ weight.T + bias``, over the last axis."""
def depend(value: _T, expr: object) -> _T:
    """The first of two values."""
def det(input: TensorLike) -> Tensor:
    """The determinant of matrices."""
def diag(input: TensorLike) -> Tensor:
    """A diagonal matrix from a vector."""
def diag_embed(input: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Diagonal matrices, over two axes of the result, from vectors along the last axis."""
def diagflat(input: TensorLike, offset: int = 0) -> Tensor:
    """A diagonal matrix of all elements of a tensor."""
def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal over two axes, as the last axis."""
def diagonal_scatter(input: TensorLike, src: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor with a diagonal over two axes replaced by ``src``, whose last axis it is."""
def dict_getitem(x: Any, y: Any) -> Any:
    """What Python's ``getitem`` gives."""
def diff(x: TensorLike, n: int = 1, axis: int = -1, prepend: TensorLike | None = None,
         append: TensorLike | None = None) -> Tensor:
    """The ``n``-th differences of neighbouring elements along an axis."""
def digamma(input: TensorLike) -> Tensor:
    """The derivative of ``lgamma``."""
def dist(input: TensorLike, other: TensorLike, p: float = 2) -> Tensor:
    """The norm of order ``p`` of the difference of two tensors, which are broadcast to one shape."""
def div(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient."""
def divide(input: TensorLike, other: TensorLike, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient."""
def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """Products over the last axis of ``input`` and the last but one of ``other``."""
def dropout(input: TensorLike, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Each element set to zero with probability ``p`` and the others divided by ``1 - p``, when ``training``."""
def dropout1d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of sequences set to zero."""
def dropout2d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of images set to zero."""
def dropout3d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Whole channels of volumes set to zero."""
def dsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """``tensor_split`` along the third axis."""
def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the third axis."""
def dtype(input_x: TensorLike) -> Any:
    """The dtype."""
def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sums of products given by an equation of letters."""
def elu(input_x: TensorLike, alpha: float = 1.0) -> Tensor:
    """``x``, ``alpha * (exp(x) - 1)`` below zero."""
def embedding(input: TensorLike, weight: TensorLike, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False) -> Tensor:
    """Rows of a table at integer indices."""
def eps(x: TensorLike) -> Tensor:
    """The distance from 1 to the next number of the floating dtype, for each element."""
def eq(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers are equal."""
def equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers are equal."""
def erf(input: TensorLike) -> Tensor:
    """The error function."""
def erfc(input: TensorLike) -> Tensor:
    """One minus the error function."""
def erfinv(input: TensorLike) -> Tensor:
    """The inverse of the error function."""
def exp(input: TensorLike) -> Tensor:
    """The exponential."""
def exp2(input: TensorLike) -> Tensor:
    """Two to the power of each element."""
def expand(input_x: TensorLike, size: AnyShape) -> Tensor:
    """See ``broadcast_to``."""
def expand_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The tensor broadcast to the shape of another one."""
def expand_dims(input_x: TensorLike, axis: int) -> Tensor:
    """Insert an axis of length one at position ``axis`` of the result."""
def expm1(input: TensorLike) -> Tensor:
    """The exponential less one, exact near zero."""
def eye(n: int, m: int | None = None, dtype: TensorDType = None) -> Tensor:
    """A matrix of ``n`` rows and ``m`` columns (``n`` by default) with ones on the diagonal."""
def fast_gelu(x: TensorLike) -> Tensor:
    """``x sigmoid(1.702 x)``, an approximation of ``gelu``."""
def fill(type: TensorDType, shape: AnyShape, value: Tensor | Number) -> Tensor:
    """A tensor filled with one value, in a given dtype."""
def flash_attention_score(query: TensorLike, key: TensorLike, value: TensorLike, head_num: int,
                          real_shift: TensorLike | None = None, drop_mask: None = None, padding_mask: None = None,
                          attn_mask: TensorLike | None = None, prefix: None = None, actual_seq_qlen: None = None,
                          actual_seq_kvlen: None = None, keep_prob: float = 1.0, scalar_value: float = 1.0,
                          pre_tokens: int = 2147483647, next_tokens: int = 2147483647, inner_precise: int = 0,
                          input_layout: str = 'BSH', sparse_mode: int = 0) -> Tensor:
    """Attention."""
def flatten(input: TensorLike, order: str = 'C', *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Join the axes from ``start_dim`` to ``end_dim``."""
def flip(input: TensorLike, dims: Axes) -> Tensor:
    """Reverse the order along axes."""
def fliplr(input: TensorLike) -> Tensor:
    """Reverse the order along the second axis."""
def flipud(input: TensorLike) -> Tensor:
    """Reverse the order along the first axis."""
def float_power(input: TensorLike, exponent: TensorLike) -> Tensor:
    """``input`` to the power ``exponent``, in float64."""
def floor(input: TensorLike) -> Tensor:
    """The next whole number below."""
def floor_div(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient, rounded down."""
def floor_divide(input: TensorLike, other: TensorLike) -> Tensor:
    """The quotient, rounded down."""
def floor_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder, with the sign of the divisor."""
def floordiv(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient, rounded down."""
def floormod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder, with the sign of the divisor."""
def fmax(input: TensorLike, other: TensorLike) -> Tensor:
    """The larger one, or NaN."""
def fmin(input: TensorLike, other: TensorLike) -> Tensor:
    """The smaller one, or NaN."""
def fmod(input: TensorLike, other: TensorLike) -> Tensor:
    """The remainder of a division rounded towards zero, with the sign of ``input``."""
def fold(input: TensorLike, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
         stride: Sizes = 1) -> Tensor:
    """Columns, as ``unfold`` makes them, added at their positions in images of ``output_size``."""
def fori_loop(lower: int, upper: int, loop_func: Callable, init_val: Any, unroll: bool = True) -> Any:
    """Apply a function repeatedly to a counter and a value."""
def frac(x: TensorLike) -> Tensor:
    """The fractional part of each element."""
def fractional_max_pool2d(input: TensorLike, kernel_size: Sizes, output_size: Sizes | None = None,
                          output_ratio: float | tuple[float, float] | None = None, return_indices: bool = False,
                          _random_samples: TensorLike | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of windows of images, at random positions that give the requested number of windows."""
def fractional_max_pool3d(input: TensorLike, kernel_size: Sizes, output_size: Sizes | None = None,
                          output_ratio: float | tuple[float, float, float] | None = None,
                          return_indices: bool = False,
                          _random_samples: TensorLike | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """``fractional_max_pool2d`` for volumes :math:`([N,] C, D, H, W)`."""
def full(size: AnyShape, fill_value: Tensor | Number, *, dtype: TensorDType = None) -> Tensor:
    """A tensor filled with one value."""
def full_like(input: TensorLike, fill_value: Tensor | Number, *, dtype: TensorDType = None) -> Tensor:
    """A tensor filled with one value, with the shape of a tensor, in its dtype or another."""
def gather(input_params: TensorLike, input_indices: TensorLike, axis: int, batch_dims: int = 0) -> Tensor:
    """The slices along an axis at the given indices."""
def gather_d(x: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """See ``gather_elements``."""
def gather_elements(input: TensorLike, dim: int, index: TensorLike) -> Tensor:
    """Elements along an axis at the indices in ``index``, which has the same number of axes."""
def gather_nd(input_x: TensorLike, indices: TensorLike) -> Tensor:
    """The parts at coordinates, given along the last axis of ``indices``, for the leading axes."""
def gaussian_nll_loss(x: TensorLike, target: TensorLike, var: TensorLike, full: bool = False, eps: float = 1e-06,
                      reduction: str = 'mean') -> Tensor:
    """The negative logarithm of a normal density."""
def gcd(input: TensorLike, other: TensorLike) -> Tensor:
    """The greatest common divisor of integers, by as many steps of Euclid's algorithm as the widest …."""
def ge(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are no less."""
def gelu(input: TensorLike, approximate: str = 'none') -> Tensor:
    """``x`` times the normal distribution function of x."""
def ger(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """The first half along an axis times the ``sigmoid`` of the second half."""
def greater(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are greater."""
def greater_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are no less."""
def grid_sample(input: TensorLike, grid: TensorLike, mode: str = 'bilinear', padding_mode: str = 'zeros',
                align_corners: bool = False) -> Tensor:
    """Sample images or volumes at the coordinates of a grid."""
def group_norm(input: TensorLike, num_groups: int, weight: TensorLike | None = None, bias: TensorLike | None = None,
               eps: float = 1e-05) -> Tensor:
    """Normalise each group of channels of each sample to mean zero and standard deviation one."""
def gt(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are greater."""
def gumbel_softmax(logits: TensorLike, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """The softmax of scores with Gumbel noise."""
def hamming_window(window_length: int | Tensor, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: TensorDType = None) -> Tensor:
    """``alpha - beta * cos(2 pi k / n)``, float32 by default."""
def hann_window(window_length: int | Tensor, periodic: bool = True, *, dtype: TensorDType = None) -> Tensor:
    """A cosine from 0 to 1 and back, float64 by default."""
def hardshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """``x`` where it is farther than ``lambd`` from zero, and 0 elsewhere."""
def hardsigmoid(input: TensorLike) -> Tensor:
    """``(x + 3) / 6``, clipped to the range from 0 to 1."""
def hardswish(input: TensorLike) -> Tensor:
    """``x hardsigmoid(x)``."""
def hardtanh(input: TensorLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Elements clipped to a range."""
def heaviside(input: TensorLike, values: TensorLike) -> Tensor:
    """0 below zero, 1 above, and ``values`` at zero."""
def hinge_embedding_loss(inputs: TensorLike, targets: TensorLike, margin: float = 1.0,
                         reduction: str = 'mean') -> Tensor:
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1."""
def histc(input: TensorLike, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """The number of elements in each of ``bins`` equal intervals from ``min`` to ``max``."""
def hsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """``tensor_split`` along the second axis."""
def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the second axis."""
def huber_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean', delta: float = 1.0) -> Tensor:
    """``0.5 * d ** 2`` where the absolute difference ``d`` is up to ``delta``, ``delta * (d - 0.5 * …."""
def hypot(input: TensorLike, other: TensorLike) -> Tensor:
    """The square root of the sum of the squares."""
def i0(input: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
def identity(x: TensorLike) -> Tensor:
    """The tensor itself."""
def igamma(input: TensorLike, other: TensorLike) -> Tensor:
    """The lower regularized incomplete gamma function."""
def igammac(input: TensorLike, other: TensorLike) -> Tensor:
    """The upper regularized incomplete gamma function, ``1 - igamma(input, other)``."""
def index_add(x: TensorLike, indices: TensorLike, y: TensorLike, axis: int, use_lock: bool = True,
              check_index_bound: bool = True) -> Tensor:
    """The tensor with slices of ``y`` added at indices along an axis."""
def index_fill(x: TensorLike, axis: int, index: TensorLike, value: TensorLike) -> Tensor:
    """The tensor with the slices at indices along an axis filled with a number."""
def index_select(input: TensorLike, axis: int, index: TensorLike) -> Tensor:
    """The slices along an axis at the indices of a vector."""
def inner(input: TensorLike, other: TensorLike) -> Tensor:
    """Inner products over the last axis of both."""
def inplace_add(x: TensorLike, v: TensorLike, indices: int | Sequence[int]) -> Tensor:
    """The tensor ``x`` with rows of ``v`` added at ``indices``, an int or ints."""
def inplace_index_add(var: Tensor, indices: TensorLike, updates: TensorLike, axis: int) -> Tensor:
    """The Parameter ``var`` with slices of ``updates`` added at indices along an axis."""
def inplace_sub(x: TensorLike, v: TensorLike, indices: int | Sequence[int]) -> Tensor:
    """The tensor ``x`` with the rows of ``v`` subtracted at ``indices``."""
def inplace_update(x: TensorLike, v: TensorLike, indices: int | Sequence[int]) -> Tensor:
    """The tensor ``x`` with the rows of ``v`` written at ``indices``."""
def interpolate(input: TensorLike, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: str = 'nearest', align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None) -> Tensor:
    """Resize images, sequences or volumes."""
def intopk(x1: TensorLike, x2: TensorLike, k: int) -> Tensor:
    """Whether the score of each row's class ``x2`` is among the ``k`` largest scores of the row ``x1``."""
def inv(input: TensorLike) -> Tensor:
    """One by the number."""
def inverse(input: TensorLike) -> Tensor:
    """The inverse of matrices."""
def invert(x: TensorLike) -> Tensor:
    """Integers with all bits inverted."""
def iou(anchor_boxes: TensorLike, gt_boxes: TensorLike, mode: str = 'iou') -> Tensor:
    """Intersection over union of each pair of boxes."""
def is_(x: Any, y: Any) -> Any:
    """What Python's ``is_`` gives."""
def is_floating_point(input: TensorLike) -> bool:
    """Whether the dtype is a floating one."""
def is_nonzero(input: TensorLike) -> bool:
    """Whether the only element of a tensor is not zero."""
def is_not(x: Any, y: Any) -> Any:
    """What Python's ``is_not`` gives."""
def is_tensor(obj: object) -> bool:
    """Whether a value is a tensor, also a traced one."""
def isclose(input: TensorLike, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08,
            equal_nan: bool = False) -> Tensor:
    """Whether elements differ by at most ``atol + rtol * |other|``."""
def isfinite(input: TensorLike) -> Tensor:
    """Whether it is neither infinite nor NaN."""
def isinf(input: TensorLike) -> Tensor:
    """Whether it is infinite."""
def isnan(input: TensorLike) -> Tensor:
    """Whether it is NaN."""
def isneginf(input: TensorLike) -> Tensor:
    """Whether elements are negative infinity."""
def isposinf(input: TensorLike) -> Tensor:
    """Whether elements are positive infinity."""
def kaiser_window(window_length: int | Tensor, periodic: bool = True, beta: float = 12.0, *,
                  dtype: TensorDType = None) -> Tensor:
    """A Bessel function of a half circle, narrower for a larger ``beta``, float64 by default."""
def kl_div(logits: TensorLike, labels: TensorLike, reduction: str = 'mean') -> Tensor:
    """``labels (log(labels) - logits)``, 0 where a label is not positive."""
def kron(input: TensorLike, other: TensorLike) -> Tensor:
    """The Kronecker product."""
def l1_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean') -> Tensor:
    """The absolute difference."""
def laplace(shape: AnyShape, mean: Tensor | Number, lambda_param: Tensor | Number, seed: int | None = None) -> Tensor:
    """Values of the Laplace distribution with a given mean and scale."""
def layer_norm(input: TensorLike, normalized_shape: int | Sequence[int], weight: TensorLike | None = None,
               bias: TensorLike | None = None, eps: float = 1e-05) -> Tensor:
    """Normalise to mean zero and standard deviation one over the last axes, whose lengths are given."""
def lcm(input: TensorLike, other: TensorLike) -> Tensor:
    """The least common multiple of integers."""
def ldexp(x: TensorLike, other: TensorLike) -> Tensor:
    """``x * 2 ** other``."""
def le(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are no greater."""
def leaky_relu(input: TensorLike, alpha: TensorLike = 0.2) -> Tensor:
    """``x``, multiplied by ``alpha`` where it is negative."""
def lerp(input: TensorLike, end: TensorLike, weight: TensorLike) -> Tensor:
    """``input + weight * (end - input)``."""
def less(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are less."""
def less_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are no greater."""
def lgamma(input: TensorLike) -> Tensor:
    """The natural logarithm of the gamma function's absolute value."""
def linspace(start: Tensor | Number, end: Tensor | Number, steps: int) -> Tensor:
    """Equally spaced values from ``start`` to ``end``, both included."""
def list_getitem(x: Any, y: Any) -> Any:
    """What Python's ``getitem`` gives."""
def list_len(x: Any) -> Any:
    """What Python's ``len`` gives."""
def log(input: TensorLike) -> Tensor:
    """The natural logarithm."""
def log10(input: TensorLike) -> Tensor:
    """The logarithm to base ten."""
def log1p(input: TensorLike) -> Tensor:
    """The natural logarithm of one more, exact near zero."""
def log2(input: TensorLike) -> Tensor:
    """The logarithm to base two."""
def log_matrix_determinant(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The signs of determinants, and the logarithms of their absolute values."""
def log_softmax(logits: TensorLike, axis: int | Sequence[int] = -1) -> Tensor:
    """The logarithm of ``softmax``, computed without its rounding."""
def logaddexp(input: TensorLike, other: TensorLike) -> Tensor:
    """The logarithm of the sum of the exponentials."""
def logaddexp2(input: TensorLike, other: TensorLike) -> Tensor:
    """The base-two logarithm of the sum of the powers of two."""
def logcumsumexp(input: TensorLike, axis: int) -> Tensor:
    """The logarithm of cumulative sums of exponentials along an axis, by repeated doubling."""
def logdet(input: TensorLike) -> Tensor:
    """The logarithms of determinants."""
def logical_and(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether both are true, or not zero."""
def logical_not(input: TensorLike) -> Tensor:
    """Whether it is zero, or false."""
def logical_or(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether one is true, or not zero."""
def logical_xor(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether just one is true, or not zero."""
def logit(input: TensorLike, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``."""
def logsigmoid(x: TensorLike) -> Tensor:
    """The logarithm of ``sigmoid``, accurate far below zero."""
def logspace(start: TensorLike, end: TensorLike, steps: int, base: Number = 10, *,
             dtype: TensorDType = 'float32') -> Tensor:
    """``steps`` powers of ``base``, with equally distant exponents from ``start`` to ``end``."""
def logsumexp(input: TensorLike, dim: Axes, keepdim: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials, without overflow."""
def lp_pool1d(x: TensorLike, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
              ceil_mode: bool = False) -> Tensor:
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of sequences."""
def lp_pool2d(x: TensorLike, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
              ceil_mode: bool = False) -> Tensor:
    """``sum(x ** norm_type) ** (1 / norm_type)`` of each window of images."""
def lrn(x: TensorLike, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
        norm_region: str = 'ACROSS_CHANNELS') -> Tensor:
    """Divide by ``(bias + alpha s) ** beta``, where ``s`` is the sum of squares over channels within …."""
def lstsq(input: TensorLike, A: TensorLike) -> Tensor:
    """The matrix ``x`` for which ``input @ x`` is nearest to ``A``."""
def lt(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are less."""
def make_list(*values: _T) -> list[_T]:
    """A list of the values."""
def make_range(*bounds: int) -> tuple[int, ...]:
    """The values of Python's ``range`` as a tuple."""
def make_tuple(*values: _T) -> tuple[_T, ...]:
    """A tuple of the values."""
def margin_ranking_loss(input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0,
                        reduction: str = 'mean') -> Tensor:
    """``max(0, -target (input1 - input2) + margin)``."""
def masked_fill(input_x: TensorLike, mask: TensorLike, value: TensorLike) -> Tensor:
    """``value`` where the mask holds, ``input_x`` elsewhere."""
def masked_select(input: TensorLike, mask: TensorLike) -> Tensor:
    """The elements where a mask holds, as a vector."""
def matmul(input: TensorLike, other: TensorLike) -> Tensor:
    """Products of matrices in the last two axes."""
def matrix_band_part(x: TensorLike, lower: int, upper: int) -> Tensor:
    """Matrices with zeros more than ``lower`` below or ``upper`` above the diagonal."""
def matrix_determinant(input: TensorLike) -> Tensor:
    """The determinant of matrices."""
def matrix_diag(x: TensorLike, k: TensorLike = 0, num_rows: int | Tensor = -1, num_cols: int | Tensor = -1,
                padding_value: TensorLike = 0, align: str = 'RIGHT_LEFT') -> Tensor:
    """Matrices with given diagonals, and ``padding_value`` elsewhere."""
def matrix_diag_part(x: TensorLike, k: TensorLike, padding_value: TensorLike, align: str = 'RIGHT_LEFT') -> Tensor:
    """Diagonals of matrices."""
def matrix_norm(A: TensorLike, ord: Number | str = 'fro', axis: tuple[int, int] = (-2, -1), keepdims: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The norm of the matrices in two axes."""
def matrix_power(input: TensorLike, n: int) -> Tensor:
    """Matrices to the power ``n``."""
def matrix_set_diag(x: TensorLike, diagonal: TensorLike, k: TensorLike = 0, align: str = 'RIGHT_LEFT') -> Tensor:
    """Matrices with other elements on some diagonals."""
def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False) -> Tensor:
    """The solution ``x`` of ``matrix @ x = rhs``, with ``adjoint`` of ``matrix.T @ x = rhs``."""
def max(input: TensorLike, axis: int | None = None, keepdims: bool = False, *, initial: float | None = None,
        where: TensorLike | None = None) -> tuple[Tensor, Tensor]:
    """The largest number along an axis, and its place as int64."""
def max_pool2d(x: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               dilation: Sizes = 1, return_indices: bool = False,
               ceil_mode: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of images."""
def max_pool3d(x: TensorLike, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
               dilation: Sizes = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window of volumes."""
def max_unpool1d(x: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """Put the maxima of windows of sequences at their positions, and zeros elsewhere."""
def max_unpool2d(x: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """Put the maxima of windows of images at their positions, and zeros elsewhere."""
def max_unpool3d(x: TensorLike, indices: TensorLike, kernel_size: Sizes, stride: Sizes | None = None,
                 padding: Sizes = 0, output_size: tuple[int, ...] | None = None) -> Tensor:
    """Put the maxima of windows of volumes at their positions, and zeros elsewhere."""
def maximum(input: TensorLike, other: TensorLike) -> Tensor:
    """The larger one, or NaN."""
def mean(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """The mean."""
def median(input: TensorLike, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median along an axis, the lower of two middle elements, and its index as int64."""
def meshgrid(*inputs: TensorLike, indexing: str = 'xy') -> tuple[Tensor, ...]:
    """Coordinates of a grid."""
def min(input: TensorLike, axis: int | None = None, keepdims: bool = False, *, initial: float | None = None,
        where: TensorLike | None = None) -> tuple[Tensor, Tensor]:
    """The smallest number along an axis, and its place as int64."""
def minimum(input: TensorLike, other: TensorLike) -> Tensor:
    """The smaller one, or NaN."""
def mirror_pad(input_x: TensorLike, paddings: Tensor | Sequence[Sequence[int]], mode: str) -> Tensor:
    """A tensor padded with its own elements, mirrored at its border."""
def mish(x: TensorLike) -> Tensor:
    """``x tanh(log(1 + exp(x)))``."""
def mixed_precision_cast(dst_type: TensorDType, x: Any) -> Any:
    """Floating tensors cast to a dtype, also in tuples, lists and dicts."""
def mm(input: TensorLike, mat2: TensorLike) -> Tensor:
    """The product of two matrices."""
def mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder, with the sign of the divisor."""
def moveaxis(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move axes to other positions."""
def movedim(x: TensorLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Move axes to other positions."""
def mse_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean') -> Tensor:
    """The squared difference."""
def msort(input: TensorLike) -> Tensor:
    """Elements sorted along the first axis."""
def mul(input: TensorLike, other: TensorLike) -> Tensor:
    """The product."""
def multi_margin_loss(input: TensorLike, target: TensorLike, p: int = 1, margin: float = 1,
                      weight: TensorLike | None = None, reduction: str = 'mean') -> Tensor:
    """The mean over other classes of ``max(0, margin - x[label] + x[class]) ** p``."""
def multilabel_margin_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean') -> Tensor:
    """The mean over classes of ``max(0, 1 - x[label] + x[other])``, summed over all labels and all other …."""
def multilabel_soft_margin_loss(input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
                                reduction: str = 'mean') -> Tensor:
    """The cross-entropy of labels and the sigmoid of scores, averaged over classes, the last axis."""
def multinomial(input: TensorLike, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Indices along the last axis, drawn with probabilities proportional to the elements."""
def multiply(input: TensorLike, other: TensorLike) -> Tensor:
    """The product."""
def mv(mat: TensorLike, vec: TensorLike) -> Tensor:
    """The product of a matrix and a vector."""
def mvlgamma(input: TensorLike, p: int) -> Tensor:
    """The logarithm of the ``p``-dimensional gamma function."""
def nan_to_num(input: TensorLike, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    """Finite values in the place of NaN (0), infinity and negative infinity (the largest and smallest of …."""
def nanmean(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The mean of the elements that are not NaN."""
def nanmedian(input: TensorLike, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median of the elements along an axis that are not NaN, the lower of two middle elements, and its …."""
def nanquantile(input: TensorLike, q: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Quantiles of the elements that are not NaN."""
def nansum(input: TensorLike, axis: Axes = None, keepdims: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The sum of the elements that are not NaN."""
def narrow(input: TensorLike, axis: int, start: int, length: int) -> Tensor:
    """``length`` slices along an axis, from ``start`` on."""
def ne(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers differ."""
def neg(input: TensorLike) -> Tensor:
    """The negative of each element."""
def negative(input: TensorLike) -> Tensor:
    """The negative of each element."""
def nextafter(input: TensorLike, other: TensorLike) -> Tensor:
    """The next floating-point number after ``input`` in the direction of ``other``."""
def nll_loss(inputs: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
             reduction: str = 'mean', label_smoothing: float = 0.0) -> Tensor:
    """The negative log-probability of the target."""
@overload
def nonzero(input: TensorLike, *, as_tuple: Literal[False] = False) -> Tensor:
    """Indices of the nonzero elements."""
@overload
def nonzero(input: TensorLike, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
    """Indices of the nonzero elements."""
def norm(A: TensorLike, ord: Number | str | None = None, dim: Axes = None, keepdim: bool = False, *,
         dtype: TensorDType = None) -> Tensor:
    """The norm of all elements, or along axes."""
def normal(shape: AnyShape, mean: Tensor | Number, stddev: Tensor | Number, seed: int | None = None) -> Tensor:
    """Normal values."""
def not_equal(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers differ."""
def numel(input_x: TensorLike) -> int:
    """The number of elements."""
def one_hot(indices: TensorLike, depth: int | Tensor, on_value: Tensor | Number = 1, off_value: Tensor | Number = 0,
            axis: int = -1) -> Tensor:
    """One-hot vectors of length ``depth`` along a new axis."""
def ones(shape: AnyShape, dtype: TensorDType = None) -> Tensor:
    """Ones."""
def ones_like(input: TensorLike, *, dtype: TensorDType = None) -> Tensor:
    """Ones with the shape of a tensor, in its dtype or another."""
def outer(input: TensorLike, vec2: TensorLike) -> Tensor:
    """The outer product of two vectors."""
def pad(input_x: TensorLike, padding: Sizes, mode: str = 'constant', value: float | None = None) -> Tensor:
    """Pad a tensor."""
def padding(x: TensorLike, pad_dim_size: int = 8) -> Tensor:
    """The last axis, which has length one, filled up with zeros to a length."""
def pdist(input: TensorLike, p: float = 2.0) -> Tensor:
    """Distances between each row of a matrix and each later one."""
def permute(input: TensorLike, axis: Sequence[int]) -> Tensor:
    """Permute the axes."""
def pinv(x: TensorLike, *, atol: TensorLike | None = None, rtol: TensorLike | None = None,
         hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of matrices."""
def pixel_shuffle(input: TensorLike, upscale_factor: int) -> Tensor:
    """Move channels to blocks of height and width."""
def pixel_unshuffle(input: TensorLike, downscale_factor: int) -> Tensor:
    """Move blocks of height and width to channels."""
def polygamma(n: TensorLike, input: TensorLike) -> Tensor:
    """The ``n``-th derivative of ``digamma``."""
def population_count(input_x: TensorLike) -> Tensor:
    """The number of bits of integers that are 1, as uint8."""
def positive(input: TensorLike) -> Tensor:
    """The same numbers."""
def pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """``input`` to the power ``exponent``."""
def pows(input: TensorLike, exponent: TensorLike) -> Tensor:
    """``input`` to the power ``exponent``."""
def prelu(input: TensorLike, weight: TensorLike) -> Tensor:
    """``x``, multiplied where negative by ``weight``, one value, or one for each channel, the second axis."""
def prim_attr_register(function: Callable[..., None]) -> Callable[..., None]:
    """Decorate the ``__init__`` of a primitive."""
def prod(input: TensorLike, axis: Axes = None, keep_dims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The product."""
def ptp(input: TensorLike, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element minus the smallest."""
def qr(input: TensorLike, mode: str = 'reduced') -> tuple[Tensor, Tensor]:
    """The QR decomposition ``input = q @ r`` of matrices."""
def quantile(input: TensorLike, q: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Quantiles along an axis, interpolated between neighbours."""
def rad2deg(input: TensorLike) -> Tensor:
    """Degrees from radians."""
def rand(*size: AnyShape, dtype: TensorDType = None, seed: int | None = None) -> Tensor:
    """Uniform values from 0 to before 1."""
def rand_like(input: TensorLike, seed: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """``rand`` in the shape of a tensor, and in its dtype or another."""
def randint(low: int, high: int, size: AnyShape, seed: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """Random integers from ``low`` to before ``high``."""
def randint_like(input: TensorLike, low: int, high: int, seed: int | None = None, *,
                 dtype: TensorDType = None) -> Tensor:
    """``randint`` in the shape of a tensor, and in its dtype or another."""
def randn(*size: AnyShape, dtype: TensorDType = None, seed: int | None = None) -> Tensor:
    """Standard normal values."""
def randn_like(input: TensorLike, seed: int | None = None, *, dtype: TensorDType = None) -> Tensor:
    """``randn`` in the shape of a tensor, and in its dtype or another."""
def randperm(n: int | Tensor, seed: int = 0, offset: int = 0, dtype: TensorDType = None) -> Tensor:
    """A random permutation of the integers below ``n``."""
def range(start: Tensor | Number, end: Tensor | Number, step: Tensor | Number, maxlen: int = 1000000) -> Tensor:
    """Values from ``start`` to before ``end``."""
def rank(input_x: TensorLike) -> int:
    """The number of axes."""
def ravel(input: TensorLike) -> Tensor:
    """All elements as a vector."""
def reciprocal(input: TensorLike) -> Tensor:
    """One by the number."""
def reduce_max(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The largest element."""
def reduce_mean(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The mean."""
def reduce_min(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The smallest element."""
def reduce_sum(x: TensorLike, axis: Axes = ()) -> Tensor:
    """The sum, in the dtype of ``x``."""
def relu(input: TensorLike, inplace: bool = False) -> Tensor:
    """The larger of each element and zero."""
def relu6(x: TensorLike) -> Tensor:
    """Elements clipped to the range from 0 to 6."""
def remainder(input: TensorLike, other: TensorLike) -> Tensor:
    """The remainder, with the sign of the divisor."""
def renorm(input: TensorLike, p: int, axis: int, maxnorm: float) -> Tensor:
    """The slices along an axis, each scaled down to a norm of ``maxnorm`` if its norm of order ``p`` is …."""
def repeat_elements(x: TensorLike, rep: int, axis: int = 0) -> Tensor:
    """Repeat each slice along an axis."""
def repeat_interleave(input: TensorLike, repeats: AnyShape, axis: int | None = None) -> Tensor:
    """Repeat each slice along an axis, or each element of the flat tensor."""
def reshape(input: TensorLike, shape: AnyShape) -> Tensor:
    """The same values in another shape."""
def reverse(x: TensorLike, axis: Axes) -> Tensor:
    """Reverse the order along axes."""
def reverse_sequence(x: TensorLike, seq_lengths: TensorLike, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """Sequences along ``seq_dim`` reversed up to their lengths, which are given for ``batch_dim``."""
def rms_norm(x: TensorLike, gamma: TensorLike, epsilon: float = 1e-06) -> tuple[Tensor, Tensor]:
    """Divide by the root of the mean square over the axes of ``gamma``, and multiply by ``gamma``."""
def roll(input: TensorLike, shifts: Axes, dims: Axes = None) -> Tensor:
    """Shift along axes, or the flat tensor."""
def rot90(input: TensorLike, k: int, dims: Sequence[int]) -> Tensor:
    """Rotate ``k`` times by 90 degrees, from the first of two axes to the second."""
def round(input: TensorLike, *, decimals: int = 0) -> Tensor:
    """Elements rounded to ``decimals`` digits after the decimal point, halves to the even digit."""
def row_stack(inputs: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the first axis."""
def rrelu(input: TensorLike, lower: float = 0.125, upper: float = 0.3333333333333333) -> Tensor:
    """``x``, multiplied where negative by a random factor from ``lower`` to ``upper``, drawn for each …."""
def rsqrt(input: TensorLike) -> Tensor:
    """One by the square root."""
def scalar_add(x: Any, y: Any) -> Any:
    """What Python's ``add`` gives."""
def scalar_cast(input_x: Number, input_y: TensorDType) -> int | float:
    """A number as a Python integer, float or boolean."""
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
def scalar_max(x: Any, y: Any) -> Any:
    """What Python's ``max`` gives."""
def scalar_min(x: Any, y: Any) -> Any:
    """What Python's ``min`` gives."""
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
def scalar_to_tensor(input_x: Number, dtype: TensorDType = 'float32') -> Tensor:
    """A number as a tensor without axes."""
def scalar_uadd(x: Any) -> Any:
    """What Python's ``pos`` gives."""
def scalar_usub(x: Any) -> Any:
    """What Python's ``neg`` gives."""
def scan(loop_func: Callable, init: Any, xs: Any, length: int | None = None, unroll: bool = True) -> tuple[Any, Any]:
    """Apply a function to each row of a tensor, or element of a list, passing a value from one call to the …."""
def scatter(input: TensorLike, axis: int, index: TensorLike, src: TensorLike) -> Tensor:
    """The tensor with ``src``, a tensor or one number, written at indices along an axis."""
def scatter_add(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` with added ``updates`` at indices of the first axis."""
def scatter_div(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` divided by ``updates`` at indices of the first axis."""
def scatter_max(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` raised to at least ``updates`` at indices of the first axis."""
def scatter_min(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` lowered to at most ``updates`` at indices of the first axis."""
def scatter_mul(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` times ``updates`` at indices of the first axis."""
def scatter_nd(indices: TensorLike, updates: TensorLike, shape: AnyShape) -> Tensor:
    """Zeros of a shape, with ``updates`` added at the coordinates in ``indices``."""
def scatter_nd_add(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` with added ``updates`` at coordinates, which the last axis of ``indices`` …."""
def scatter_nd_div(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` divided by ``updates`` at coordinates, which the last axis of ``indices`` …."""
def scatter_nd_max(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` raised to at least ``updates`` at coordinates, which the last axis of …."""
def scatter_nd_min(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` lowered to at most ``updates`` at coordinates, which the last axis of …."""
def scatter_nd_mul(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` times ``updates`` at coordinates, which the last axis of ``indices`` holds."""
def scatter_nd_sub(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` less ``updates`` at coordinates, which the last axis of ``indices`` holds."""
def scatter_nd_update(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` overwritten with ``updates`` at coordinates, which the last axis of …."""
def scatter_sub(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` less ``updates`` at indices of the first axis."""
def scatter_update(input_x: Tensor, indices: TensorLike, updates: TensorLike, use_locking: bool = False) -> Tensor:
    """The Parameter ``input_x`` overwritten with ``updates`` at indices of the first axis."""
def searchsorted(sorted_sequence: TensorLike, values: TensorLike, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: TensorLike | None = None) -> Tensor:
    """Insertion indices into the sorted last axis."""
def select(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """``input`` where the condition holds, ``other`` elsewhere."""
def select_scatter(input: TensorLike, src: TensorLike, axis: int, index: int) -> Tensor:
    """The tensor with the slice at ``index`` along an axis replaced by ``src``."""
def selu(input_x: TensorLike) -> Tensor:
    """The scaled exponential linear unit."""
def sequence_mask(lengths: TensorLike, maxlen: int | None = None) -> Tensor:
    """For each length, a row of booleans that are true up to it."""
def sgn(input: TensorLike) -> Tensor:
    """-1, 0 or 1."""
def shape(input_x: TensorLike) -> tuple[int, ...]:
    """The shape, as a tuple."""
def shuffle(x: TensorLike, seed: int | None = None) -> Tensor:
    """The slices along the first axis in random order."""
def sigmoid(input: TensorLike) -> Tensor:
    """``1 / (1 + exp(-x))``."""
def sign(input: TensorLike) -> Tensor:
    """-1, 0 or 1."""
def signbit(input: TensorLike) -> Tensor:
    """Whether it is below zero."""
def silu(input: TensorLike) -> Tensor:
    """``x sigmoid(x)``."""
def sin(input: TensorLike) -> Tensor:
    """The sine, of radians."""
def sinc(input: TensorLike) -> Tensor:
    """``sin(pi x) / (pi x)``, and 1 at zero."""
def sinh(input: TensorLike) -> Tensor:
    """The hyperbolic sine."""
def size(input_x: TensorLike) -> int:
    """The number of elements."""
def slice(input_x: TensorLike, begin: AnyShape, size: AnyShape) -> Tensor:
    """The part from ``begin`` on, of a size."""
def slice_scatter(input: TensorLike, src: TensorLike, axis: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """The tensor with the slice ``start:end:step`` along an axis replaced by ``src``."""
def slogdet(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The signs of determinants, and the logarithms of their absolute values."""
def smooth_l1_loss(input: TensorLike, target: TensorLike, beta: float = 1.0, reduction: str = 'none') -> Tensor:
    """``0.5 * d ** 2 / beta`` where the absolute difference ``d`` is below ``beta``, ``d - 0.5 * beta`` …."""
def soft_margin_loss(input: TensorLike, target: TensorLike, reduction: str = 'mean') -> Tensor:
    """``log(1 + exp(-target input))``, with targets 1 or -1."""
def soft_shrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards zero by ``lambd``, and 0 where it is nearer than that."""
def softmax(input: TensorLike, axis: int | Sequence[int] = -1, *, dtype: TensorDType = None) -> Tensor:
    """Exponentials scaled to a sum of one along an axis."""
def softmin(x: TensorLike, axis: int | Sequence[int] = -1, *, dtype: TensorDType = None) -> Tensor:
    """The ``softmax`` of ``-x``."""
def softplus(input: TensorLike, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta x)) / beta``, and ``x`` where ``beta x`` is above the threshold."""
def softshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards zero by ``lambd``, and 0 where it is nearer than that."""
def softsign(x: TensorLike) -> Tensor:
    """``x / (1 + |x|)``."""
def sort(input_x: TensorLike, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Elements sorted along an axis, and their indices as int32."""
def space_to_batch_nd(input_x: TensorLike, block_size: int | Sequence[int],
                      paddings: Sequence[Sequence[int]]) -> Tensor:
    """Elements at the same place in each block of the last axes, as samples of a larger batch."""
def split(tensor: TensorLike, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis."""
def sqrt(input: TensorLike) -> Tensor:
    """The square root."""
def square(input: TensorLike) -> Tensor:
    """The square."""
def squeeze(input: TensorLike, axis: int | Sequence[int] | None = None) -> Tensor:
    """Remove the given axes, which have length one, or all axes of length one."""
def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Stack tensors of one shape along a new axis."""
def standard_laplace(shape: AnyShape, seed: int | None = None) -> Tensor:
    """Values of the Laplace distribution with mean 0 and scale 1."""
def standard_normal(shape: AnyShape, seed: int | None = None) -> Tensor:
    """Normal values with mean 0 and standard deviation 1."""
def std(input: TensorLike, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """The square root of ``var``."""
def std_mean(input: TensorLike, axis: Axes = None, ddof: int | bool = 0,
             keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """``std`` and ``mean``."""
def strided_slice(input_x: TensorLike, begin: Sequence[int], end: Sequence[int], strides: Sequence[int],
                  begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
                  shrink_axis_mask: int = 0) -> Tensor:
    """The slice ``input_x[begin:end:strides]``."""
def string_concat(x: Any, y: Any) -> Any:
    """What Python's ``add`` gives."""
def string_eq(x: Any, y: Any) -> Any:
    """What Python's ``eq`` gives."""
def sub(input: TensorLike, other: TensorLike) -> Tensor:
    """The difference."""
def subtract(input: TensorLike, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other``."""
def sum(input: TensorLike, dim: Axes = None, keepdim: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The sum."""
def svd(input: TensorLike, full_matrices: bool = False,
        compute_uv: bool = True) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """The singular value decomposition ``input = u @ diag(s) @ v.T`` of matrices."""
def swapaxes(input: TensorLike, axis0: int, axis1: int) -> Tensor:
    """Swap two axes."""
def swapdims(input: TensorLike, dim0: int, dim1: int) -> Tensor:
    """Swap two axes."""
def switch(condition: Any, true: Any, false: Any) -> Any:
    """One of two values or functions, chosen by a truth value that Python reads."""
def switch_layer(index: Any, layers: Any) -> Any:
    """One of several functions or Cells, selected by an index that is read on the host."""
def t(input: TensorLike) -> Tensor:
    """The transpose of a matrix."""
def tail(values: tuple[_T, ...]) -> tuple[_T, ...]:
    """All but the first of a tuple."""
def take(input: TensorLike, index: TensorLike, axis: int | None = None, mode: str = 'clip') -> Tensor:
    """The slices along an axis, or elements of the flat tensor, at the given indices."""
def tan(input: TensorLike) -> Tensor:
    """The tangent, of radians."""
def tanh(input: TensorLike) -> Tensor:
    """The hyperbolic tangent."""
def tanhshrink(input: TensorLike) -> Tensor:
    """``x - tanh(x)``."""
def tensor_add(input: TensorLike, other: TensorLike) -> Tensor:
    """The sum."""
def tensor_div(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient."""
def tensor_dot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int | Sequence[int]]) -> Tensor:
    """Sums of products along axes of both."""
def tensor_exp(input: TensorLike) -> Tensor:
    """The exponential."""
def tensor_floordiv(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient, rounded down."""
def tensor_ge(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are no less."""
def tensor_gt(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are greater."""
def tensor_le(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are no greater."""
def tensor_lt(input: TensorLike, other: TensorLike) -> Tensor:
    """Whether numbers of the first are less."""
def tensor_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder, with the sign of the divisor."""
def tensor_mul(input: TensorLike, other: TensorLike) -> Tensor:
    """The product."""
def tensor_pow(input: TensorLike, exponent: TensorLike) -> Tensor:
    """``input`` to the power ``exponent``."""
def tensor_scatter_add(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The tensor with ``updates`` added at coordinates."""
def tensor_scatter_div(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """What is there divided by all of ``updates`` that name the place."""
def tensor_scatter_elements(input_x: TensorLike, indices: TensorLike, updates: TensorLike, axis: int = 0,
                            reduction: str = 'none') -> Tensor:
    """The tensor with ``updates`` written at indices along an axis, or added with ``reduction='add'``."""
def tensor_scatter_max(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The larger of what is there and all of ``updates`` that name the place."""
def tensor_scatter_min(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The smaller of what is there and all of ``updates`` that name the place."""
def tensor_scatter_mul(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """What is there times all of ``updates`` that name the place."""
def tensor_scatter_sub(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The tensor with ``updates`` subtracted at coordinates."""
def tensor_scatter_update(input_x: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """The tensor with ``updates`` written at coordinates."""
def tensor_slice(input_x: TensorLike, begin: AnyShape, size: AnyShape) -> Tensor:
    """The part from ``begin`` on, of a size."""
def tensor_split(input: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis."""
def tensor_sub(input: TensorLike, other: TensorLike) -> Tensor:
    """The difference."""
def threshold(input: TensorLike, thr: float, value: float) -> Tensor:
    """``x`` where it is above ``thr``, ``value`` elsewhere."""
def tile(input: TensorLike, dims: AnyShape) -> Tensor:
    """Repeat the tensor a number of times along each axis."""
def top_k(input_x: TensorLike, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along the last axis, and their indices as int32."""
def topk(input: TensorLike, k: int, dim: int | None = None, largest: bool = True,
         sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The ``k`` largest or smallest elements along an axis, and their indices as int32."""
def trace(input: TensorLike) -> Tensor:
    """The sum of the diagonal of a matrix, in its dtype."""
def transpose(input: TensorLike, dims: Sequence[int]) -> Tensor:
    """Permute the axes."""
def trapz(y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral by the trapezoidal rule, with points at distances of ``dx`` or at ``x``."""
def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, with zeros above a diagonal."""
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: TensorDType = None) -> Tensor:
    """Indices of the lower triangle of a matrix, up to the diagonal ``offset`` above the main one."""
def triplet_margin_loss(anchor: TensorLike, positive: TensorLike, negative: TensorLike, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-06, swap: bool = False, reduction: str = 'mean') -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, with the p-norm as the distance ``d``."""
def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, with zeros below a diagonal."""
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: TensorDType = None) -> Tensor:
    """Indices of the upper triangle of a matrix, from the diagonal ``offset`` above the main one."""
def true_divide(input: TensorLike, other: TensorLike) -> Tensor:
    """The quotient."""
def trunc(input: TensorLike) -> Tensor:
    """The next whole number towards zero."""
def truncate_div(x: TensorLike, y: TensorLike) -> Tensor:
    """The quotient, rounded towards zero."""
def truncate_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder of a division that rounds towards zero."""
def tuple_getitem(x: Any, y: Any) -> Any:
    """What Python's ``getitem`` gives."""
def tuple_len(x: Any) -> Any:
    """What Python's ``len`` gives."""
def tuple_to_array(input_x: Sequence[Number]) -> Tensor:
    """A tensor of the elements of a tuple."""
def type_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The values in the dtype of another tensor."""
def unbind(input: TensorLike, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis."""
def unfold(input: TensorLike, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
           stride: Sizes = 1) -> Tensor:
    """The windows of images as columns."""
def uniform(shape: AnyShape, minval: Tensor | float, maxval: Tensor | float, seed: int | None = None,
            dtype: TensorDType = None) -> Tensor:
    """Uniform values from ``minval`` to before ``maxval``."""
def unique(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The distinct elements in order of first occurrence, and for each element its index among them."""
def unique_consecutive(input: TensorLike, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Tensor | tuple[Tensor, ...]:
    """The elements without those equal to their predecessor."""
def unique_with_pad(x: TensorLike, pad_num: int | TensorLike) -> tuple[Tensor, Tensor]:
    """The distinct elements of a vector, padded to its length with ``pad_num``."""
def unsorted_segment_max(x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor:
    """The largest of the slices along the first axes that have the same number in ``segment_ids``."""
def unsorted_segment_min(x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor:
    """The smallest of the slices with the same number, the greatest finite number of the dtype if there …."""
def unsorted_segment_prod(x: TensorLike, segment_ids: TensorLike, num_segments: int | Tensor) -> Tensor:
    """The product of the slices with the same number, 1 if there are none."""
def unsorted_segment_sum(input_x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """Sums of the slices along the first axes that have the same number in ``segment_ids``."""
def unsqueeze(input: TensorLike, dim: int) -> Tensor:
    """Insert an axis of length one at position ``dim`` of the result."""
def unstack(input_x: TensorLike, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis."""
def upsample(input: TensorLike, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None,
             mode: str = 'nearest', align_corners: bool | None = None,
             recompute_scale_factor: bool | None = None) -> Tensor:
    """Resize images, sequences or volumes."""
def vander(x: TensorLike, N: int | None = None) -> Tensor:
    """The powers of a vector's elements, a row each."""
def var(input: TensorLike, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """The variance."""
def var_mean(input: TensorLike, axis: Axes = None, ddof: int | bool = 0,
             keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """``var`` and ``mean``."""
def vecdot(x: TensorLike, y: TensorLike, *, axis: int = -1) -> Tensor:
    """Sums of products along an axis."""
def vector_norm(x: TensorLike, ord: Number = 2, axis: Axes = None, keepdims: bool = False, *,
                dtype: TensorDType = None) -> Tensor:
    """The vector norm of all elements, or along axes."""
def view_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The same values in the shape of another tensor."""
def vsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """``tensor_split`` along the first axis."""
def vstack(inputs: Sequence[TensorLike]) -> Tensor:
    """Concatenate tensors along the first axis."""
def where(condition: TensorLike, input: TensorLike, other: TensorLike) -> Tensor:
    """``input`` where the condition holds, ``other`` elsewhere."""
def while_loop(cond_func: Callable, loop_func: Callable, init_val: Any, max_iterations: int | None = None) -> Any:
    """Apply a function repeatedly to a value, or a nesting of values, while a condition on the value holds."""
def xdivy(x: TensorLike, y: TensorLike) -> Tensor:
    """``x / y``, and 0 where ``x`` is 0."""
def xlogy(input: TensorLike, other: TensorLike) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0."""
def zeros(size: AnyShape, dtype: TensorDType = None) -> Tensor:
    """Zeros."""
def zeros_like(input: TensorLike, *, dtype: TensorDType = None) -> Tensor:
    """Zeros with the shape of a tensor, in its dtype or another."""
def zeta(input: TensorLike, other: TensorLike) -> Tensor:
    """Hurwitz's zeta function."""
