"""Primitives: rows of name, function and settings; each row is a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.registry import ops
from ...core.spec import Spec, as_dtype
from ...errors import ShapeError
from ..python_op import call
from ..state import STATE
from . import activation, array, control, creation, indexing, linalg, losses, math, random, reduce
from .lift import floating, tensor, together
from .primitive import Primitive, PrimitiveWithInfer, adder, prim_attr_register

__all__: list[str] = []


_add = adder(globals(), __all__)


# ---------------------------------------------------------------------------------- functions without settings

_PLAIN: dict[str, Callable[..., Any]] = {
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
        "PReLU": activation.prelu, "Range": creation.range, "Rank": array.rank, "RealDiv": math.true_divide,
        "Reciprocal": math.reciprocal, "ReLU": activation.relu, "ReLU6": activation.relu6, "Reshape": array.reshape,
        "Round": math.round, "Rsqrt": math.rsqrt, "ScatterNd": indexing.scatter_nd, "Select": math.select,
        "SeLU": activation.selu, "Shape": array.shape, "Sigmoid": activation.sigmoid, "Sign": math.sign,
        "Sin": math.sin, "Sinh": math.sinh, "Size": array.size, "Softplus": activation.softplus,
        "Softsign": activation.softsign, "Sqrt": math.sqrt, "Square": math.square,
        "StopGradient": array.stop_gradient, "Sub": math.sub, "Tan": math.tan, "Tanh": math.tanh,
        "TensorScatterAdd": indexing.tensor_scatter_add, "TensorScatterDiv": indexing.tensor_scatter_div,
        "TensorScatterMax": indexing.tensor_scatter_max, "TensorScatterMin": indexing.tensor_scatter_min,
        "TensorScatterMul": indexing.tensor_scatter_mul, "TensorScatterSub": indexing.tensor_scatter_sub,
        "TensorScatterUpdate": indexing.tensor_scatter_update, "Tile": array.tile, "Transpose": array.transpose,
        "Trunc": math.trunc, "UnsortedSegmentSum": indexing.unsorted_segment_sum, "Zeros": creation.zeros,
        "ZerosLike": creation.zeros_like,
        "AddN": lambda inputs: ops.add_n(*together(*inputs), num_args=len(inputs)),
        "DivNoNan": lambda x, y: _div_no_nan(*together(x, y, real=True)),
        "DType": lambda x: tensor(x).dtype, "FillV2": lambda shape, value: array.broadcast_to(tensor(value), shape),
        "GeLU": lambda input: activation.gelu(input, "tanh"),
        "L2Loss": lambda x: ops._np_sum(ops.square(tensor(x))) / 2,
        "Rint": lambda x: ops._npi_around(tensor(x), decimals=0),
        "Slice": lambda input, begin, size: ops.slice(tensor(input), begin=tuple(begin),
                                                      end=tuple(b + s for b, s in zip(begin, size))),
        "SquaredDifference": lambda x, y: ops.square(math.sub(x, y)),
        "TruncateDiv": lambda x, y: math.div(x, y, rounding_mode="trunc"), "TruncateMod": math.fmod}
for _name, _function in _PLAIN.items():
    _add(_name, _function)
TensorAdd = globals()["Add"]


def _div_no_nan(x: Any, y: Any) -> Any:
    zero = y == 0
    return math.where(zero, 0.0, x / math.where(zero, 1.0, y))


def _pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = together(x, y)
    if name == "MatMul" and (x.ndim != 2 or y.ndim != 2):
        raise ShapeError(f"MatMul: expected two matrices, got shapes {x.shape} and {y.shape}; BatchMatMul takes stacks")
    if x.ndim < 2 or y.ndim < 2:
        raise ShapeError(f"{name}: expected two axes at least, got shapes {x.shape} and {y.shape}")
    return x, y


def _matmul(x: Any, y: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    x, y = _pair("MatMul", x, y)
    return ops.dot(x, y, transpose_a=transpose_a, transpose_b=transpose_b)


def _batch_matmul(x: Any, y: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    x, y = _pair("BatchMatMul", x, y)
    return linalg.matmul(array.swapaxes(x, -1, -2) if transpose_a else x,
                         array.swapaxes(y, -1, -2) if transpose_b else y)


def _flags(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool, got {type(value).__name__}")


_add("MatMul", _matmul, {"transpose_a": False, "transpose_b": False}, _flags)
_add("BatchMatMul", _batch_matmul, {"transpose_a": False, "transpose_b": False}, _flags)


# --------------------------------------------------------------------------------------------- reductions


def _reduction(function: Callable) -> Callable:
    return lambda x, axis=(), *, keep_dims, **_: function(x, axis, keep_dims)


def _narrow(function: Callable) -> Callable:
    """A sum or product in the dtype of what is added up."""
    return lambda x, axis, keep_dims: function(x, axis, keep_dims)._cast(tensor(x)._dt)


for _name, _function, _settings in (
        ("ReduceSum", _narrow(reduce.sum), {"keep_dims": False, "skip_mode": False}),
        ("ReduceMean", reduce.mean, {"keep_dims": False}), ("ReduceProd", _narrow(reduce.prod), {"keep_dims": False}),
        ("ReduceMax", reduce.amax, {"keep_dims": False}), ("ReduceMin", reduce.amin, {"keep_dims": False}),
        ("ReduceAll", reduce.all, {"keep_dims": False}), ("ReduceAny", reduce.any, {"keep_dims": False})):
    _add(_name, _reduction(_function), _settings, _flags)


def _reduce_std(x: Any, *, axis: Any, unbiased: bool, keep_dims: bool) -> tuple[Any, Any]:
    return reduce.std_mean(x, axis, int(unbiased), keep_dims)


def _with_value(function: Callable) -> Callable:
    def call(x: Any, *, axis: int, keep_dims: bool) -> tuple[Any, Any]:
        value, place = function(x, axis, keep_dims)
        return place, value

    return call


def _place(op: str) -> Callable:
    return lambda x, *, axis, output_type: getattr(ops, op)(tensor(x), axis=axis)._cast(as_dtype(output_type))


def _cumulative(function: Callable, neutral: int) -> Callable:
    def call(x: Any, axis: int, *, exclusive: bool, reverse: bool) -> Any:
        x = array.flip(x, axis) if reverse else tensor(x)
        if exclusive:  # moved on by one, the neutral number first
            one = array.narrow(x, axis, 0, 1)
            x = array.concat((ops._npi_full_like(one, fill_value=float(neutral)),
                              array.narrow(x, axis, 0, x.shape[axis] - 1)), axis)
        found = function(x, axis)
        return array.flip(found, axis) if reverse else found

    return call


_add("ReduceStd", _reduce_std, {"axis": (), "unbiased": True, "keep_dims": False})
_add("ArgMaxWithValue", _with_value(reduce.max), {"axis": 0, "keep_dims": False})
_add("ArgMinWithValue", _with_value(reduce.min), {"axis": 0, "keep_dims": False})
_add("Argmax", _place("_npi_argmax"), {"axis": -1, "output_type": np.dtype(np.int32)})
_add("Argmin", _place("_npi_argmin"), {"axis": -1, "output_type": np.dtype(np.int32)})
_add("CumSum", _cumulative(reduce.cumsum, 0), {"exclusive": False, "reverse": False}, _flags)
_add("CumProd", _cumulative(reduce.cumprod, 1), {"exclusive": False, "reverse": False}, _flags)


# ------------------------------------------------------------------------------------------- shapes and indices


def _split(x: Any, *, axis: int, output_num: int) -> tuple[Any, ...]:
    x = tensor(x)
    if x.shape[axis] % output_num:
        raise ShapeError(f"Split: axis {axis} of {x.shape} does not fall into {output_num} equal parts")
    return array.split(x, x.shape[axis] // output_num, axis)


def _pad(x: Any, *, paddings: Any) -> Any:
    return array.pad(x, [each for pair in reversed(paddings) for each in pair])


def _mirror_pad(x: Any, paddings: Any, *, mode: str) -> Any:
    if mode != "REFLECT":
        raise ValueError(f"MirrorPad: mode must be REFLECT, got {mode!r}")
    pairs = paddings.asnumpy().tolist() if hasattr(paddings, "asnumpy") else paddings
    return array.pad(x, [each for pair in reversed(pairs) for each in pair], "reflect")


def _strided_slice(x: Any, begin: Any, end: Any, strides: Any, *, begin_mask: int, end_mask: int, ellipsis_mask: int,
                   new_axis_mask: int, shrink_axis_mask: int) -> Any:
    if ellipsis_mask or new_axis_mask:
        raise ValueError("StridedSlice: ellipsis_mask and new_axis_mask are not available; use x[...]")
    key = tuple(b if shrink_axis_mask >> i & 1 else
                slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s)
                for i, (b, e, s) in enumerate(zip(begin, end, strides)))
    return tensor(x)[key]


def _axis_shown(**given: Any) -> dict[str, Any]:
    return {**given, "axis": (given["axis"],) if isinstance(given["axis"], int) else given["axis"]}


_add("Softmax", activation.softmax, {"axis": -1}, _axis_shown)
_add("LogSoftmax", activation.log_softmax, {"axis": -1})
_add("Concat", array.concat, {"axis": 0})
_add("Stack", array.stack, {"axis": 0})
_add("Unstack", lambda x, *, axis, num: array.unstack(x, axis), {"axis": 0, "num": None})
_add("Split", _split, {"axis": 0, "output_num": 1})
_add("Squeeze", array.squeeze, {"axis": ()})
_add("BroadcastTo", array.broadcast_to, {"shape": ...})
_add("ReverseV2", array.reverse, {"axis": ...})
_add("Roll", lambda x, *, shift, axis: array.roll(x, shift, axis), {"shift": ..., "axis": ...})
_add("OneHot", creation.one_hot, {"axis": -1})
_add("Gather", indexing.gather, {"batch_dims": 0})
_add("Pad", _pad, {"paddings": ...})
_add("MirrorPad", _mirror_pad, {"mode": "REFLECT"})
_add("StridedSlice", _strided_slice, {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0,
                                      "shrink_axis_mask": 0})
_add("Sort", indexing.sort, {"axis": -1, "descending": False})
_add("TopK", indexing.topk, {"sorted": True})
_add("Meshgrid", creation.meshgrid, {"indexing": "xy"})
_add("Tril", indexing.tril, {"diagonal": 0})
_add("Triu", indexing.triu, {"diagonal": 0})
_add("ScalarToTensor", array.scalar_to_tensor)
_add("Einsum", lambda inputs, *, equation: linalg.einsum(equation, *inputs), {"equation": ...})
_add("SpaceToDepth", lambda x, *, block_size: ops.space_to_depth(tensor(x), block_size=block_size), {"block_size": ...})
_add("DepthToSpace", lambda x, *, block_size: ops.depth_to_space(tensor(x), block_size=block_size), {"block_size": ...})
_add("Elu", activation.elu, {"alpha": 1.0})
_add("HShrink", activation.hardshrink, {"lambd": 0.5})
_add("SoftShrink", activation.softshrink, {"lambd": 0.5})
_add("NanToNum", math.nan_to_num, {"nan": None, "posinf": None, "neginf": None})


# --------------------------------------------------------------------------------------------------- losses


def _softmax_cross_entropy(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Losses, and their gradients as a value."""
    x, y = together(logits, labels, real=True)
    if x.ndim != 2 or x.shape != y.shape:
        raise ShapeError(f"SoftmaxCrossEntropyWithLogits: expected two matrices of one shape, got {x.shape}, {y.shape}")
    loss = -ops._np_sum(y * ops.log_softmax(x, axis=-1), axis=-1)
    return loss, ops.BlockGrad(ops.softmax(x, axis=-1) - y)


def _sparse_cross_entropy(logits: Any, labels: Any, *, is_grad: bool) -> Any:
    x = floating(logits)
    if not is_grad:
        return losses.cross_entropy(x, labels)
    hot = creation.one_hot(labels, x.shape[1], 1.0, 0.0)._cast(x._dt)
    return (ops.softmax(x, axis=-1) - hot) / x.shape[0]


def _nll(logits: Any, labels: Any, weight: Any, *, reduction: str, ignore_index: int) -> tuple[Any, Any]:
    labels, weight = tensor(labels), tensor(weight)
    counts = labels != ignore_index
    total = ops._np_sum(math.where(counts, ops.take(weight, math.where(counts, labels, 0), axis=0), 0.0))
    return losses.nll_loss(logits, labels, weight, ignore_index, reduction), total


_add("SoftmaxCrossEntropyWithLogits", _softmax_cross_entropy)
_add("SparseSoftmaxCrossEntropyWithLogits", _sparse_cross_entropy, {"is_grad": False},
     lambda is_grad: {"is_grad": is_grad, "sens": 1.0})
_add("BinaryCrossEntropy", lambda x, y, weight=None, *, reduction: losses.binary_cross_entropy(x, y, weight, reduction),
     {"reduction": "mean"})
_add("BCEWithLogitsLoss", losses.binary_cross_entropy_with_logits, {"reduction": "mean"})
_add("NLLLoss", _nll, {"reduction": "mean", "ignore_index": -100})
_add("SmoothL1Loss", losses.smooth_l1_loss, {"beta": 1.0, "reduction": "none"})
_add("KLDivLoss", losses.kl_div, {"reduction": "mean"})


# ------------------------------------------------------------------------------------------- random numbers


def _keep_prob(name: str) -> Callable:
    def check(keep_prob: float, **more: Any) -> dict[str, Any] | None:
        if isinstance(keep_prob, bool) or not isinstance(keep_prob, (int, float)):
            raise TypeError(f"{name}: keep_prob must be a float, got {type(keep_prob).__name__}")
        if not (0 if name != "Dropout" else 1e-300) <= keep_prob <= 1:
            raise ValueError(f"{name}: keep_prob must be from 0 to 1, got {keep_prob}")
        return None if name == "Dropout" else {}

    return check


def _channels(name: str, count: int) -> Callable:
    def call(x: Any, *, keep_prob: float) -> tuple[Any, Any]:
        x = tensor(x)
        if x.ndim != count + 2:
            raise ShapeError(f"{name}: expected {count + 2} axes, got shape {x.shape}")
        return random.dropped(x, keep_prob, (0, 1))

    return call


def _dropout(x: Any, *, keep_prob: float, **_: Any) -> tuple[Any, Any]:
    x = floating(x)
    found, kept = random.dropped(x, keep_prob, range(x.ndim))
    return found, kept._cast(x._dt)


_SEEDS = {"seed": 0, "seed2": 0}
_add("Dropout", _dropout, {"keep_prob": 0.5, "Seed0": 0, "Seed1": 0}, _keep_prob("Dropout"))
_add("Dropout2D", _channels("Dropout2D", 2), {"keep_prob": 0.5}, _keep_prob("Dropout2D"))
_add("Dropout3D", _channels("Dropout3D", 3), {"keep_prob": 0.5}, _keep_prob("Dropout3D"))
_add("StandardNormal", lambda shape, **_: random.standard_normal(shape), _SEEDS)
_add("StandardLaplace", lambda shape, **_: random.standard_laplace(shape), _SEEDS)
_add("UniformReal", lambda shape, **_: random.rand(tuple(shape)), _SEEDS)
_add("UniformInt", lambda shape, low, high, **_: random.uniform(shape, low, high, dtype=np.int32), _SEEDS)
_add("Bernoulli", lambda x, p, **_: random.bernoulli(x, p), {"seed": -1, "offset": 0})
_add("Multinomial", lambda x, count, *, dtype, **_: random.multinomial(x, count)._cast(as_dtype(dtype)),
     {**_SEEDS, "dtype": np.dtype(np.int32)})


# ------------------------------------------------------------------------------------------------ and the rest


def _print(*values: Any) -> Any:
    if STATE.trace is None:
        for value in values:
            print(value)
        return values[0] if len(values) == 1 else values
    given = [STATE.trace.read(value) for value in values if array.is_tensor(value)]
    shapes = [Spec(value.shape, value._dt) for value in given]

    def show(*numbers: Any) -> list[Any]:
        rest = iter(numbers)
        for value in values:
            print(next(rest) if array.is_tensor(value) else value)
        return list(numbers)

    return call(show, given, shapes, shapes, "Print")[0]


def _summary(name: str, value: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a summary: the name must be text, got {type(name).__name__}")


def _channel(kind: str) -> Callable[[], dict[str, Any]]:
    more = {} if kind == "tensor" else {"dyn_input_sizes": [-1, 1]}
    return lambda: {"side_effect_io": True, "channel_name": f"ms_{kind}_summary", **more}


_add("Print", _print, {}, lambda: {"side_effect_io": True})
for _name in ("Histogram", "Image", "Scalar", "Tensor"):
    _add(f"{_name}Summary", _summary, {}, _channel(_name.lower()))
_add("Depend", lambda value, expr: value)
_add("ForiLoop", control.fori_loop)
_add("Scan", control.scan)
_add("WhileLoop", control.while_loop)
__all__ += ["Primitive", "PrimitiveWithInfer", "TensorAdd", "prim_attr_register"]
