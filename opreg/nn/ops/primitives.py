"""Primitives: a table of name, function and settings, from which a class is made for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray

from ...cells import dtype as dtypes
from ...cells.python_op import call
from ...cells.state import STATE
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import AnyShape, Axes, TensorDType, TensorLike
from ...core.registry import ops
from ...core.spec import Spec, as_dtype
from ...errors import ArgumentError, ShapeError
from . import activation, array, control, creation, indexing, linalg, losses, math, nn, random, reduce, scalars
from .lift import as_floating, tensor, to_common_dtype
from .primitive import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, adder, prim_attr_register

__all__: list[str] = []


_add = adder(globals(), __all__)


# ---------------------------------------------------------------------------------- functions without settings


def addn(x: Sequence[TensorLike]) -> Tensor:
    """The sum of tensors of one shape."""
    return ops.add_n(*to_common_dtype(*x), num_args=len(x))


def _div_no_nan(x: TensorLike, y: TensorLike) -> Tensor:
    over, under = to_common_dtype(x, y, real=True)
    zero = under == 0
    return math.where(zero, 0.0, over / math.where(zero, 1.0, under))


def _dtype(x: TensorLike) -> dtypes.DType:
    return tensor(x).dtype


def _fill(shape: AnyShape, value: TensorLike) -> Tensor:
    return array.broadcast_to(value, shape)


def _gelu(input: TensorLike) -> Tensor:
    return activation.gelu(input, "tanh")


def _l2_loss(x: TensorLike) -> Tensor:
    return ops._np_sum(ops.square(tensor(x))) / 2


def _squared_difference(x: TensorLike, y: TensorLike) -> Tensor:
    return ops.square(math.sub(x, y))


def _diag_part(x: TensorLike) -> Tensor:
    """The diagonal of a tensor whose last axes have the lengths of the first."""
    x = tensor(x)
    half = x.ndim // 2
    if x.ndim % 2 or x.shape[:half] != x.shape[half:]:
        raise ShapeError(f"DiagPart: expected the last half of the axes to be as long as the first, got shape "
                         f"{x.shape}")
    count = int(np.prod(x.shape[:half]))
    return indexing.diagonal(x.reshape((count, count))).reshape(x.shape[:half])


def _embedding_lookup(x: TensorLike, indices: TensorLike, offset: int) -> Tensor:
    """Rows at indices less ``offset``; zeros for an index out of range."""
    x, at = tensor(x), tensor(indices) - offset
    inside = math.logical_and(at >= 0, at < x.shape[0])
    rows = ops.take(x, math.where(inside, at, 0), axis=0)
    return math.where(inside.reshape((*at.shape, *(1,) * (x.ndim - 1))), rows, 0)


def _invert(places: Sequence[int]) -> tuple[int, ...]:
    """The inverse of a permutation."""
    if sorted(places) != [*range(len(places))]:
        raise ArgumentError(f"InvertPermutation: expected a permutation, got {places}")
    return tuple(np.argsort(places).tolist())


def _sigmoid_cross_entropy(logits: TensorLike, labels: TensorLike) -> Tensor:
    """The binary cross-entropy of each element and the sigmoid of its logit."""
    return losses.binary_cross_entropy_with_logits(logits, labels, reduction="none")


def _square_sums(x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    """The sums of squares of two tensors."""
    return ops._np_sum(ops.square(tensor(x))), ops._np_sum(ops.square(tensor(y)))


WITHOUT_SETTINGS: dict[str, Callable] = {
        "Abs": math.abs, "ACos": math.acos, "Acosh": math.acosh, "Add": math.add, "Addcdiv": math.addcdiv,
        "Addcmul": math.addcmul, "Asin": math.asin, "Asinh": math.asinh, "Assign": array.assign,
        "AssignAdd": array.assign_add, "AssignSub": array.assign_sub, "Atan": math.atan, "Atan2": math.atan2,
        "Atanh": math.atanh, "BesselI0": math.bessel_i0, "BesselI1": math.bessel_i1,
        "BitwiseAnd": math.bitwise_and, "BitwiseOr": math.bitwise_or,
        "BitwiseXor": math.bitwise_xor, "Cast": array.cast, "Ceil": math.ceil, "Cos": math.cos, "Cosh": math.cosh,
        "Dense": linalg.dense, "Diag": indexing.diag, "Div": math.div, "Equal": math.equal, "Erf": math.erf,
        "Erfc": math.erfc, "Erfinv": math.erfinv, "Exp": math.exp, "ExpandDims": array.expand_dims,
        "Expm1": math.expm1, "Eye": creation.eye, "FastGeLU": activation.fast_gelu, "Fill": creation.fill,
        "Flatten": array.flatten, "Floor": math.floor, "FloorDiv": math.floor_div, "FloorMod": math.floor_mod,
        "GatherD": indexing.gather_d, "GatherNd": indexing.gather_nd, "Ger": linalg.ger, "Greater": math.greater,
        "GreaterEqual": math.greater_equal, "HSigmoid": activation.hardsigmoid, "HSwish": activation.hardswish,
        "Hypot": math.hypot, "Identity": array.identity, "Inv": math.reciprocal, "IsFinite": math.isfinite,
        "IsInf": math.isinf, "IsNan": math.isnan, "Lerp": math.lerp, "Less": math.less,
        "LessEqual": math.less_equal, "LinSpace": creation.linspace, "Log": math.log, "Log1p": math.log1p,
        "LogicalAnd": math.logical_and, "LogicalNot": math.logical_not, "LogicalOr": math.logical_or,
        "LogicalXor": math.logical_xor, "MaskedFill": math.masked_fill, "Maximum": math.maximum,
        "Minimum": math.minimum, "Mish": activation.mish, "Mod": math.fmod, "Mul": math.mul, "Neg": math.neg,
        "NotEqual": math.not_equal, "Ones": creation.ones, "OnesLike": creation.ones_like, "Pow": math.pow,
        "PReLU": activation.prelu, "Rank": array.rank, "RealDiv": math.real_div,
        "Reciprocal": math.reciprocal, "ReLU": activation.relu, "ReLU6": activation.relu6, "Reshape": array.reshape,
        "Round": math.round, "Rsqrt": math.rsqrt, "ScalarCast": scalars.scalar_cast, "ScatterNd": indexing.scatter_nd,
        "Select": math.select, "SeLU": activation.selu, "Shape": array.shape, "Sigmoid": activation.sigmoid,
        "Sign": math.sign, "Sin": math.sin, "Sinh": math.sinh, "Size": array.size, "Softplus": activation.softplus,
        "Softsign": activation.softsign, "Sqrt": math.sqrt, "Square": math.square,
        "StopGradient": array.stop_gradient, "Sub": math.sub, "Tan": math.tan, "Tanh": math.tanh,
        "TensorScatterAdd": indexing.tensor_scatter_add, "TensorScatterDiv": indexing.tensor_scatter_div,
        "TensorScatterMax": indexing.tensor_scatter_max, "TensorScatterMin": indexing.tensor_scatter_min,
        "TensorScatterMul": indexing.tensor_scatter_mul, "TensorScatterSub": indexing.tensor_scatter_sub,
        "TensorScatterUpdate": indexing.tensor_scatter_update, "Tile": array.tile, "Transpose": array.transpose,
        "Trunc": math.trunc, "UnsortedSegmentSum": indexing.unsorted_segment_sum, "Zeros": creation.zeros,
        "ZerosLike": creation.zeros_like,
        "AddN": addn, "DivNoNan": _div_no_nan, "DType": _dtype, "FillV2": _fill, "GeLU": _gelu, "L2Loss": _l2_loss,
        "Rint": math.round, "Slice": indexing.slice, "SquaredDifference": _squared_difference,
        "TruncateDiv": math.truncate_div, "TruncateMod": math.fmod,
        "Digamma": math.digamma,
        "DiagPart": _diag_part, "EmbeddingLookup": _embedding_lookup, "Expand": array.expand,
        "FastGelu": activation.fast_gelu, "Fmax": math.fmax, "Fmin": math.fmin, "Gcd": math.gcd, "Gelu": _gelu,
        "Heaviside": math.heaviside, "IndexFill": indexing.index_fill, "Invert": math.invert,
        "InvertPermutation": _invert, "Lcm": math.lcm, "LeftShift": math.bitwise_left_shift,
        "Lgamma": math.lgamma, "LogMatrixDeterminant": linalg.slogdet, "MaskedSelect": indexing.masked_select,
        "MatrixBandPart": indexing.matrix_band_part, "MatrixDeterminant": linalg.det,
        "NonZero": indexing.nonzero, "Polygamma": math.polygamma, "RightShift": math.bitwise_right_shift,
        "Eps": math.eps,
        "SigmoidCrossEntropyWithLogits": _sigmoid_cross_entropy,
        "Sinc": math.sinc, "SquareSumAll": _square_sums, "Trace": indexing.trace,
        "TupleToArray": scalars.tuple_to_array,
        "Unique": indexing.unique, "Xdivy": math.xdivy, "Xlogy": math.xlogy}
for _name, _function in WITHOUT_SETTINGS.items():
    _add(_name, _function)
TensorAdd = globals()["Add"]


def _pair(name: str, x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    x, y = to_common_dtype(x, y)
    if name == "MatMul" and (x.ndim != 2 or y.ndim != 2):
        raise ShapeError(f"MatMul: expected two matrices, got shapes {x.shape} and {y.shape}; BatchMatMul takes stacks")
    if x.ndim < 2 or y.ndim < 2:
        raise ShapeError(f"{name}: expected at least two axes, got shapes {x.shape} and {y.shape}")
    return x, y


def _matmul(x: TensorLike, y: TensorLike, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    x, y = _pair("MatMul", x, y)
    return ops.dot(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


def _batch_matmul(x: TensorLike, y: TensorLike, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    x, y = _pair("BatchMatMul", x, y)
    return linalg.matmul(array.swapaxes(x, -1, -2) if transpose_a else x,
                         array.swapaxes(y, -1, -2) if transpose_b else y)


def _flags(**settings: object) -> None:
    for name, value in settings.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"{name} must be a bool, got {type(value).__name__}")


_add("MatMul", _matmul, {"transpose_a": False, "transpose_b": False}, _flags)
_add("BatchMatMul", _batch_matmul, {"transpose_a": False, "transpose_b": False}, _flags)


# --------------------------------------------------------------------------------------------- reductions


def _reduction(function: Callable[[TensorLike, Axes, bool], Tensor]) -> Callable[..., Tensor]:
    def reduction(x: TensorLike, axis: Axes = (), *, keep_dims: bool, **_: object) -> Tensor:
        return function(x, axis, keep_dims)

    return reduction


def _narrow(function: Callable[[TensorLike, Axes, bool], Tensor]) -> Callable[[TensorLike, Axes, bool], Tensor]:
    """A sum or product in the dtype of its input."""
    return lambda x, axis, keep_dims: function(x, axis, keep_dims)._cast(tensor(x)._dt)


for _name, _function, _settings in (
        ("ReduceSum", _narrow(reduce.sum), {"keep_dims": False, "skip_mode": False}),
        ("ReduceMean", reduce.mean, {"keep_dims": False}), ("ReduceProd", _narrow(reduce.prod), {"keep_dims": False}),
        ("ReduceMax", reduce.amax, {"keep_dims": False}), ("ReduceMin", reduce.amin, {"keep_dims": False}),
        ("ReduceAll", reduce.all, {"keep_dims": False}), ("ReduceAny", reduce.any, {"keep_dims": False})):
    _add(_name, _reduction(_function), _settings, _flags)


def _reduce_std(x: TensorLike, *, axis: Axes, unbiased: bool, keep_dims: bool) -> tuple[Tensor, Tensor]:
    return reduce.std_mean(x, axis, int(unbiased), keep_dims)


def _with_value(function: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    def call(x: TensorLike, *, axis: int, keep_dims: bool) -> tuple[Tensor, Tensor]:
        value, place = function(x, axis, keep_dims)
        return place, value

    return call


def _place(op: str) -> Callable[..., Tensor]:
    def place(x: TensorLike, *, axis: int, output_type: TensorDType) -> Tensor:
        return getattr(ops, op)(tensor(x), axis=axis)._cast(as_dtype(output_type))

    return place


def _cumulative(function: Callable[[Tensor, int], Tensor], neutral: int) -> Callable[..., Tensor]:
    def call(x: TensorLike, axis: int, *, exclusive: bool, reverse: bool) -> Tensor:
        x = array.flip(x, axis) if reverse else tensor(x)
        if exclusive:  # the products of the elements before, with the neutral element in front
            first = array.narrow(x, axis, 0, 1)
            x = array.concat((ops._npi_full_like(first, fill_value=float(neutral)),
                              array.narrow(x, axis, 0, x.shape[axis] - 1)), axis)
        running = function(x, axis)._cast(x._dt)
        return array.flip(running, axis) if reverse else running

    return call


_add("ReduceStd", _reduce_std, {"axis": (), "unbiased": True, "keep_dims": False})
_add("ArgMaxWithValue", _with_value(reduce.max), {"axis": 0, "keep_dims": False})
_add("ArgMinWithValue", _with_value(reduce.min), {"axis": 0, "keep_dims": False})
_add("Argmax", _place("_npi_argmax"), {"axis": -1, "output_type": np.dtype(np.int32)})
_add("Argmin", _place("_npi_argmin"), {"axis": -1, "output_type": np.dtype(np.int32)})
_add("CumSum", _cumulative(reduce.cumsum, 0), {"exclusive": False, "reverse": False}, _flags)
_add("CumProd", _cumulative(reduce.cumprod, 1), {"exclusive": False, "reverse": False}, _flags)


# ------------------------------------------------------------------------------------------- shapes and indices


def _split(x: TensorLike, *, axis: int, output_num: int) -> tuple[Tensor, ...]:
    x = tensor(x)
    if x.shape[axis] % output_num:
        raise ShapeError(f"Split: axis {axis} of {x.shape} cannot be split into {output_num} equal parts")
    return array.split(x, x.shape[axis] // output_num, axis)


def _pad(x: TensorLike, *, paddings: Sequence[Sequence[int]]) -> Tensor:
    return array.pad(x, [count for pair in reversed(paddings) for count in pair])


def pad_by_mirror(x: TensorLike, paddings: Tensor | Sequence[Sequence[int]], *, mode: str) -> Tensor:
    """A tensor padded with its own elements, mirrored at its border, by a pair of counts for each axis."""
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ArgumentError(f"MirrorPad: mode must be REFLECT or SYMMETRIC, got {mode!r}")
    pairs = paddings.asnumpy().tolist() if isinstance(paddings, (TensorBase, NDArray)) else paddings
    if mode == "SYMMETRIC":  # in this mode the outermost elements are mirrored, too
        for axis, pair in enumerate(pairs):
            places = np.pad(np.arange(tensor(x).shape[axis]), pair, mode="symmetric")
            x = indexing.gather(x, tensor(places), axis)
        return tensor(x)
    return array.pad(x, [count for pair in reversed(pairs) for count in pair], "reflect")


def strided_slice(input_x: TensorLike, begin: Sequence[int], end: Sequence[int], strides: Sequence[int],
                  begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0,
                  shrink_axis_mask: int = 0) -> Tensor:
    """The slice ``input_x[begin:end:strides]``.

    Parameters
    ----------
    input_x : Tensor
        A tensor of any shape.
    begin, end, strides : sequence of int
        Bounds and strides of the first axes.
    begin_mask, end_mask, shrink_axis_mask : int
        Bits by axis: the slice begins at the front of the axis; it ends at the end of the axis; it is the element at
        ``begin``, and the axis is removed.
    ellipsis_mask, new_axis_mask : int
        Only 0 is supported.
    """
    if ellipsis_mask or new_axis_mask:
        raise ArgumentError("StridedSlice: ellipsis_mask and new_axis_mask are not available; use x[...]")
    key = tuple(b if shrink_axis_mask >> i & 1 else
                slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s)
                for i, (b, e, s) in enumerate(zip(begin, end, strides)))
    return tensor(input_x)[key]


def _axis_shown(*, axis: int | tuple[int, ...]) -> dict[str, object]:
    return {"axis": (axis,) if isinstance(axis, int) else axis}


def _unstack(x: TensorLike, *, axis: int, num: int | None) -> tuple[Tensor, ...]:
    return array.unstack(x, axis)


def _roll(x: TensorLike, *, shift: Axes, axis: Axes) -> Tensor:
    return array.roll(x, shift, axis)


def _einsum(inputs: Sequence[TensorLike], *, equation: str) -> Tensor:
    return linalg.einsum(equation, *inputs)


def _space_to_depth(x: TensorLike, *, block_size: int) -> Tensor:
    return ops.space_to_depth(tensor(x), block_size=block_size)


def _depth_to_space(x: TensorLike, *, block_size: int) -> Tensor:
    return ops.depth_to_space(tensor(x), block_size=block_size)


def _lp_norm(x: TensorLike, *, axis: Axes, p: int, keep_dims: bool, epsilon: float) -> Tensor:
    return reduce.vector_norm(x, p, axis, keep_dims)


_add("LpNorm", _lp_norm, {"axis": ..., "p": 2, "keep_dims": False, "epsilon": 1e-12})
_add("InTopK", indexing.intopk, {"k": ...})
_add("ApproximateEqual", math.approximate_equal, {"tolerance": 1e-5})
_add("Softmax", activation.softmax, {"axis": -1}, _axis_shown)
_add("LogSoftmax", activation.log_softmax, {"axis": -1})
_add("Concat", array.concat, {"axis": 0})
_add("Stack", array.stack, {"axis": 0})
_add("Unstack", _unstack, {"axis": 0, "num": None})
_add("Split", _split, {"axis": 0, "output_num": 1})
_add("Squeeze", array.squeeze, {"axis": ()})
_add("BroadcastTo", array.broadcast_to, {"shape": ...})
_add("ReverseV2", array.reverse, {"axis": ...})
_add("Roll", _roll, {"shift": ..., "axis": ...})
_add("OneHot", creation.one_hot, {"axis": -1})
_add("Gather", indexing.gather, {"batch_dims": 0})
_add("GatherV2", indexing.gather)
_add("SparseGatherV2", indexing.gather)
_add("Pad", _pad, {"paddings": ...})
_add("MirrorPad", pad_by_mirror, {"mode": "REFLECT"})
_add("StridedSlice", strided_slice, {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0,
                                     "shrink_axis_mask": 0})
_add("Sort", indexing.sort, {"axis": -1, "descending": False})
_add("TopK", indexing.topk, {"sorted": True})
_add("Meshgrid", creation.meshgrid, {"indexing": "xy"})
_add("Tril", indexing.tril, {"diagonal": 0})
_add("Triu", indexing.triu, {"diagonal": 0})
_add("ScalarToTensor", array.scalar_to_tensor)
_add("Cdist", linalg.cdist, {"p": 2.0})
_add("Einsum", _einsum, {"equation": ...})
_add("SpaceToDepth", _space_to_depth, {"block_size": ...})
_add("DepthToSpace", _depth_to_space, {"block_size": ...})
_add("Elu", activation.elu, {"alpha": 1.0})
_add("HShrink", activation.hardshrink, {"lambd": 0.5})
_add("SoftShrink", activation.softshrink, {"lambd": 0.5})
_add("NanToNum", math.nan_to_num, {"nan": None, "posinf": None, "neginf": None})


def _searchsorted(sequence: TensorLike, values: TensorLike, *, dtype: TensorDType, right: bool) -> Tensor:
    return indexing.searchsorted(sequence, values, right=right)._cast(as_dtype(dtype))


def _tensor_scatter(x: TensorLike, indices: TensorLike, updates: TensorLike, *, axis: int, reduction: str) -> Tensor:
    return indexing.tensor_scatter_elements(x, indices, updates, axis, reduction)


def _reverse_sequence(x: TensorLike, lengths: TensorLike, *, seq_dim: int, batch_dim: int) -> Tensor:
    return indexing.reverse_sequence(x, lengths, seq_dim, batch_dim)


def _renorm(x: TensorLike, *, p: int, dim: int, maxnorm: float) -> Tensor:
    return reduce.renorm(x, p, dim, maxnorm)


def _unique_consecutive(x: TensorLike, *, return_inverse: bool, return_counts: bool, dim: int | None
                        ) -> Tensor | tuple[Tensor, ...]:
    return indexing.unique_consecutive(x, return_inverse, return_counts, dim)


def _channel_shuffle(x: TensorLike, *, group: int) -> Tensor:
    return array.channel_shuffle(x, group)


def _matrix_inverse(x: TensorLike, *, adjoint: bool) -> Tensor:
    """The inverse of matrices, transposed with ``adjoint``."""
    result = linalg.inverse(x)
    return array.swapaxes(result, -1, -2) if adjoint else result


def _hsv_of_rgb(images: TensorLike) -> Tensor:
    """Hue, saturation and value along the last axis, from red, green and blue; all from 0 to 1."""
    x = as_floating(images)
    if x.shape[-1] != 3:
        raise ShapeError(f"RGBToHSV: expected three colors along the last axis, got shape {x.shape}")
    red, green, blue = array.unstack(x, -1)
    value, least = reduce.amax(x, -1), reduce.amin(x, -1)
    span = value - least
    over = math.where(span > 0, span, 1.0)
    sixths = math.where(value == red, (green - blue) / over,
                        math.where(value == green, (blue - red) / over + 2, (red - green) / over + 4))
    hue = math.where(span > 0, math.where(sixths < 0, sixths + 6, sixths) / 6, 0.0)
    return array.stack([hue, math.where(value > 0, span / math.where(value > 0, value, 1.0), 0.0), value], -1)


def _rgb_of_hsv(images: TensorLike) -> Tensor:
    """Red, green and blue along the last axis, from hue, saturation and value; all from 0 to 1."""
    x = as_floating(images)
    if x.shape[-1] != 3:
        raise ShapeError(f"HSVToRGB: expected hue, saturation and value along the last axis, got shape {x.shape}")
    hue, saturation, value = array.unstack(x, -1)
    sixths = hue * 6
    shares = (math.abs(sixths - 3) - 1, 2 - math.abs(sixths - 2), 2 - math.abs(sixths - 4))
    return array.stack([(1 - saturation + saturation * math.clamp(share, 0.0, 1.0)) * value for share in shares], -1)


_add("Bucketize", indexing.bucketize, {"boundaries": ...})
_add("AffineGrid", nn.affine_grid, {"align_corners": False}, _flags)
_add("ChannelShuffle", _channel_shuffle, {"group": ...})
_add("CholeskyInverse", linalg.cholesky_inverse, {"upper": False}, _flags)
_add("HSVToRGB", _rgb_of_hsv)
_add("MatrixInverse", _matrix_inverse, {"adjoint": False}, _flags)
_add("PopulationCount", math.population_count)
_add("RGBToHSV", _hsv_of_rgb)
_add("Range", creation.range, {"maxlen": 1000000})
_add("UniqueWithPad", indexing.unique_with_pad)
_add("Cholesky", linalg.cholesky, {"upper": False}, _flags)
_add("CholeskySolve", linalg.cholesky_solve, {"upper": False}, _flags)
_add("Cross", linalg.cross, {"dim": None})
_add("Cummax", reduce.cummax, {"axis": ...})
_add("Cummin", reduce.cummin, {"axis": ...})
_add("Histogram", reduce.histc, {"bins": 100, "min": 0.0, "max": 0.0})
_add("IOU", nn.iou, {"mode": "iou"})
_add("CeLU", activation.celu, {"alpha": 1.0})
_add("IsClose", math.isclose, {"rtol": 1e-5, "atol": 1e-8, "equal_nan": True})
_add("Logit", activation.logit, {"eps": -1.0})
_add("GLU", activation.glu, {"axis": -1})
_add("Mvlgamma", math.mvlgamma, {"p": ...})
_add("Renorm", _renorm, {"p": ..., "dim": ..., "maxnorm": ...})
_add("ReverseSequence", _reverse_sequence, {"seq_dim": ..., "batch_dim": 0})
_add("SearchSorted", _searchsorted, {"dtype": np.dtype(np.int64), "right": False})
_add("TensorScatterElements", _tensor_scatter, {"axis": 0, "reduction": "none"})
_add("UniqueConsecutive", _unique_consecutive, {"return_inverse": False, "return_counts": False, "dim": None})


# --------------------------------------------------------------------------------------------------- losses


def _softmax_cross_entropy(logits: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """Losses, and their gradients as a second result."""
    x, y = to_common_dtype(logits, labels, real=True)
    if x.ndim != 2 or x.shape != y.shape:
        raise ShapeError(f"SoftmaxCrossEntropyWithLogits: expected two matrices of one shape, got {x.shape}, {y.shape}")
    loss = -ops._np_sum(y * ops.log_softmax(x, axis=-1), axis=-1)
    return loss, ops.BlockGrad(ops.softmax(x, axis=-1) - y)


def _sparse_cross_entropy(logits: TensorLike, labels: TensorLike, *, is_grad: bool) -> Tensor:
    x = as_floating(logits)
    if not is_grad:
        return losses.cross_entropy(x, labels)
    hot = creation.one_hot(labels, x.shape[1], 1.0, 0.0)._cast(x._dt)
    return (ops.softmax(x, axis=-1) - hot) / x.shape[0]


def _nll(logits: TensorLike, labels: TensorLike, weight: TensorLike, *, reduction: str, ignore_index: int
        ) -> tuple[Tensor, Tensor]:
    labels, weight = tensor(labels), tensor(weight)
    counts = labels != ignore_index
    total = ops._np_sum(math.where(counts, ops.take(weight, math.where(counts, labels, 0), axis=0), 0.0))
    return losses.nll_loss(logits, labels, weight, ignore_index, reduction), total


def _binary_cross_entropy(x: TensorLike, y: TensorLike, weight: TensorLike | None = None, *, reduction: str) -> Tensor:
    return losses.binary_cross_entropy(x, y, weight, reduction)


def _sparse_ctc(x: TensorLike, labels_indices: TensorLike, labels_values: TensorLike, sequence_length: TensorLike, *,
                ignore_longer_outputs_than_inputs: bool, **_: object) -> tuple[Tensor, None]:
    """Labels are given by their indices, and collected into a row for each sequence."""
    x, values = as_floating(x), tensor(labels_values)
    time, n, classes = x.shape
    words = indexing.scatter_nd(labels_indices, values, (n, time))
    counts = reduce.sum(indexing.scatter_nd(labels_indices, creation.ones_like(values), (n, time)), 1)
    return losses.ctc_loss(activation.log_softmax(x, -1), words, sequence_length, counts, classes - 1, "none",
                           ignore_longer_outputs_than_inputs)


def _check_merging(*, preprocess_collapse_repeated: bool, ctc_merge_repeated: bool, **_: object) -> None:
    if preprocess_collapse_repeated or not ctc_merge_repeated:
        raise ArgumentError("CTCLoss: labels are used unchanged, and repeated classes are merged: leave out "
                            "preprocess_collapse_repeated and ctc_merge_repeated")


_add("CTCLoss", _sparse_ctc, {"preprocess_collapse_repeated": False, "ctc_merge_repeated": True,
                              "ignore_longer_outputs_than_inputs": False}, _check_merging)
_add("CTCGreedyDecoder", losses.ctc_greedy_decoder, {"merge_repeated": True}, _flags)
_add("SoftmaxCrossEntropyWithLogits", _softmax_cross_entropy)
_add("SparseSoftmaxCrossEntropyWithLogits", _sparse_cross_entropy, {"is_grad": False},
     lambda is_grad: {"is_grad": is_grad, "sens": 1.0})
_add("BinaryCrossEntropy", _binary_cross_entropy, {"reduction": "mean"})
_add("BCEWithLogitsLoss", losses.binary_cross_entropy_with_logits, {"reduction": "mean"})
_add("NLLLoss", _nll, {"reduction": "mean", "ignore_index": -100})
_add("SmoothL1Loss", losses.smooth_l1_loss, {"beta": 1.0, "reduction": "none"})
_add("KLDivLoss", losses.kl_div, {"reduction": "mean"})


# ------------------------------------------------------------------------------------------- random numbers


def _keep_prob(name: str) -> Callable[..., dict[str, object] | None]:
    def check(keep_prob: float, **_: object) -> dict[str, object] | None:
        if isinstance(keep_prob, bool) or not isinstance(keep_prob, (int, float)):
            raise ArgumentError(f"{name}: keep_prob must be a float, got {type(keep_prob).__name__}")
        if not (0 if name != "Dropout" else 1e-300) <= keep_prob <= 1:
            raise ArgumentError(f"{name}: keep_prob must be from 0 to 1, got {keep_prob}")
        return None if name == "Dropout" else {}

    return check


def _channels(name: str, count: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def call(x: TensorLike, *, keep_prob: float) -> tuple[Tensor, Tensor]:
        x = tensor(x)
        if x.ndim != count + 2:
            raise ShapeError(f"{name}: expected {count + 2} axes, got shape {x.shape}")
        return random.drop_elements(x, keep_prob, (0, 1))

    return call


def _dropout(x: TensorLike, *, keep_prob: float, **_: object) -> tuple[Tensor, Tensor]:
    x = as_floating(x)
    y, mask = random.drop_elements(x, keep_prob, range(x.ndim))
    return y, mask._cast(x._dt)


def _standard_normal(shape: AnyShape, **_: object) -> Tensor:
    return random.standard_normal(shape)


def _standard_laplace(shape: AnyShape, **_: object) -> Tensor:
    return random.standard_laplace(shape)


def _uniform_real(shape: AnyShape, **_: object) -> Tensor:
    return random.rand(shape)


def _uniform_int(shape: AnyShape, low: Tensor | float, high: Tensor | float, **_: object) -> Tensor:
    return random.uniform(shape, low, high, dtype=np.int32)


def _bernoulli(x: TensorLike, p: Tensor | float, **_: object) -> Tensor:
    return random.bernoulli(x, p)


def _multinomial(x: TensorLike, count: int, *, dtype: TensorDType, **_: object) -> Tensor:
    return random.multinomial(x, count)._cast(as_dtype(dtype))


def _random_categorical(logits: TensorLike, num_sample: int, seed: int = 0, *, dtype: TensorDType) -> Tensor:
    """Classes of each row, drawn with the probabilities of the softmax of its logits."""
    return random.multinomial(activation.softmax(as_floating(logits), -1), num_sample)._cast(as_dtype(dtype))


_SEEDS = {"seed": 0, "seed2": 0}
_add("RandomCategorical", _random_categorical, {"dtype": np.dtype(np.int64)})
_add("Dropout", _dropout, {"keep_prob": 0.5, "Seed0": 0, "Seed1": 0}, _keep_prob("Dropout"))
_add("Dropout2D", _channels("Dropout2D", 2), {"keep_prob": 0.5}, _keep_prob("Dropout2D"))
_add("Dropout3D", _channels("Dropout3D", 3), {"keep_prob": 0.5}, _keep_prob("Dropout3D"))
_add("StandardNormal", _standard_normal, _SEEDS)
_add("StandardLaplace", _standard_laplace, _SEEDS)
_add("UniformReal", _uniform_real, _SEEDS)
_add("UniformInt", _uniform_int, _SEEDS)
_add("Bernoulli", _bernoulli, {"seed": -1, "offset": 0})
_add("Multinomial", _multinomial, {**_SEEDS, "dtype": np.dtype(np.int32)})


# -------------------------------------------------------------------------------------------- other primitives


def _print(*values: Any) -> Any:
    if STATE.trace is None:
        for value in values:
            print(repr(value) if array.is_tensor(value) else value)
        return values[0] if len(values) == 1 else values
    tensors = [STATE.trace.read(value) for value in values if array.is_tensor(value)]
    specs = [Spec(value.shape, value._dt) for value in tensors]

    def show(*numbers: Tensor) -> list[Tensor]:
        rest = iter(numbers)
        for value in values:
            print(repr(next(rest)) if array.is_tensor(value) else value)
        return list(numbers)

    return call(show, tensors, specs, specs, "Print")[0]


def _summary(name: str, value: TensorLike) -> None:
    if not isinstance(name, str):
        raise ArgumentError(f"a summary: the name must be text, got {type(name).__name__}")


def _channel(kind: str) -> Callable[[], dict[str, object]]:
    more = {} if kind == "tensor" else {"dyn_input_sizes": [-1, 1]}
    return lambda: {"side_effect_io": True, "channel_name": f"ms_{kind}_summary", **more}


_add("Print", _print, {}, lambda: {"side_effect_io": True})
for _name in ("Histogram", "Image", "Scalar", "Tensor"):
    _add(f"{_name}Summary", _summary, {}, _channel(_name.lower()))
_add("Depend", scalars.depend)
_add("ForiLoop", control.fori_loop)
_add("Scan", control.scan)
_add("WhileLoop", control.while_loop)
__all__ += [
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "TensorAdd",
    "addn",
    "prim_attr_register",
    "strided_slice",
]
