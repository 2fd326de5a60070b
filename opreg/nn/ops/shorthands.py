"""Functions and primitives that other functions of this package make up, each in a line or two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cells.tensor import Tensor
from ...cells.typing import Number, Sizes, TensorDType, TensorLike
from ...core.registry import ops
from ...core.spec import as_dtype, is_floating, limits, show
from ...errors import ArgumentError, OpError, ShapeError
from .array import broadcast_to, concat, flip, vstack
from .creation import full, linspace
from .indexing import gather_elements, masked_select, searchsorted
from .lift import as_floating, one_axis, tensor, to_common_dtype
from .math import fmod, logical_not, where
from .nn import fold, unfold
from .primitive import adder
from .primitives import addn, pad_by_mirror
from .reduce import all as all_
from .reduce import any as any_
from .reduce import logcumsumexp, sum
from .windows import adaptive_max_pool2d

__all__ = ["accumulate_n", "col2im", "expand_as", "is_nonzero", "logspace", "mirror_pad", "nanmedian", "row_stack",
           "truncate_mod", "type_as", "view_as"]

_add = adder(globals(), __all__)

row_stack = vstack


def accumulate_n(x: Sequence[TensorLike]) -> Tensor:
    """The sum of tensors of one shape."""
    return addn(x)


def expand_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The tensor broadcast to the shape of another one."""
    return broadcast_to(input, tensor(other).shape)


def view_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The same values in the shape of another tensor."""
    return tensor(input).reshape(tensor(other).shape)


def type_as(input: TensorLike, other: TensorLike) -> Tensor:
    """The values in the dtype of another tensor."""
    return tensor(input)._cast(tensor(other)._dt)


def is_nonzero(input: TensorLike) -> bool:
    """Whether the only element of a tensor is not zero.

    Examples
    --------
    >>> is_nonzero(tensor([0.5]))
    True
    """
    x = tensor(input)
    if x.size != 1:
        raise ArgumentError(f"is_nonzero: expected one element, got shape {show(x.shape)}")
    return bool((x != 0).reshape(()))


def logspace(start: TensorLike, end: TensorLike, steps: int, base: Number = 10, *, dtype: TensorDType = np.float32
             ) -> Tensor:
    """``steps`` powers of ``base``, with equally distant exponents from ``start`` to ``end``.

    Examples
    --------
    >>> print(logspace(0, 2, 3))
    [  1.  10. 100.]
    """
    if steps < 0:
        raise ArgumentError(f"logspace: steps must be at least 0, got {steps}")
    first, last = (tensor(number)._cast(np.dtype(np.float64)) for number in (start, end))
    exponents = linspace(first, last, steps) if steps else full((0,), 0.0, dtype=np.float64)
    return ops._rpower_scalar(exponents, scalar=float(base))._cast(as_dtype(dtype))


def truncate_mod(x: TensorLike, y: TensorLike) -> Tensor:
    """The remainder of a division that rounds towards zero."""
    return fmod(x, y)


def mirror_pad(input_x: TensorLike, paddings: Tensor | Sequence[Sequence[int]], mode: str) -> Tensor:
    """A tensor padded with its own elements, mirrored at its border.

    Parameters
    ----------
    paddings : Tensor of shape (axes, 2), or pairs of int
        Number of elements before and after each axis.
    mode : {"REFLECT", "SYMMETRIC"}
        A reflection without the outermost element; a reflection that includes it.
    """
    return pad_by_mirror(input_x, paddings, mode=mode)


def nanmedian(input: TensorLike, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median of the elements along an axis that are not NaN, the lower of two middle elements, and its index as
    int64; NaN if all elements are.

    Examples
    --------
    >>> value, place = nanmedian(tensor([4.0, float("nan"), 1.0]))
    >>> float(value), int(place)
    (1.0, 2)
    """
    x = tensor(input)
    axis = one_axis(axis, x.ndim, "nanmedian")
    absent = x != x
    order = ops.argsort(where(absent, np.inf, x) if is_floating(x._dt) else x, axis=axis, is_ascend=True,
                        dtype=np.dtype(np.int64))
    present = sum(logical_not(absent)._cast(np.dtype(np.int64)), axis, True)
    place = gather_elements(order, axis, ops._maximum_scalar(present - 1, scalar=0.0) // 2)
    value = gather_elements(x, axis, place)
    shape = value.shape if keepdims else x.shape[:axis] + x.shape[axis + 1:]
    return value.reshape(shape), place.reshape(shape)


def col2im(input_x: TensorLike, output_size: Sizes | Tensor, kernel_size: Sizes, dilation: Sizes,
           padding_value: Sizes, stride: Sizes) -> Tensor:
    """Columns of shape (batch, channels, elements of a window, windows), added at their positions in images."""
    x = tensor(input_x)
    if x.ndim != 4:
        raise ShapeError(f"col2im: expected columns (batch, channels, places, windows), got shape {show(x.shape)}")
    columns = x.reshape((x.shape[0], x.shape[1] * x.shape[2], x.shape[3]))
    return fold(columns, output_size, kernel_size, dilation, padding_value, stride)


# --------------------------------------------------------------------------------------- primitives


def _running_logsumexp(x: TensorLike, axis: int | Tensor, *, exclusive: bool, reverse: bool) -> Tensor:
    """The logarithm of cumulative sums of exponentials, from the end with ``reverse``; each leaves its own element out
    with ``exclusive``."""
    x = as_floating(x)
    along = one_axis(axis, x.ndim, "CumulativeLogsumexp")
    turned = flip(x, (along,)) if reverse else x
    if exclusive:
        least = limits(x._dt)[0]  # a finite value, as in MindSpore, so that derivatives are finite
        before = full(tuple(1 if i == along else n for i, n in enumerate(x.shape)), least, dtype=x._dt)
        turned = ops.slice_axis(concat((before, turned), along), axis=along, begin=0, end=x.shape[along])
    result = logcumsumexp(turned, along)
    return flip(result, (along,)) if reverse else result


def _im2col(x: TensorLike, *, ksizes: Sizes, strides: Sizes, dilations: Sizes, pads: Sizes) -> Tensor:
    """Windows of images as columns, of shape (batch, channels, elements of a window, windows)."""
    x = tensor(x)
    columns = unfold(x, ksizes, dilations, pads, strides)
    return columns.reshape((*x.shape[:2], -1, columns.shape[-1]))


def _difference(x: TensorLike, y: TensorLike, *, out_idx: TensorDType) -> tuple[Tensor, Tensor]:
    """The elements of a vector that another one lacks, and their indices."""
    x = tensor(x)
    kept = logical_not(any_(ops.expand_dims(x, axis=-1) == tensor(y).reshape((1, -1)), 1))
    return masked_select(x, kept), masked_select(tensor(np.arange(x.shape[0], dtype=as_dtype(out_idx))), kept)


def _without_nan(x: TensorLike, y: TensorLike) -> Tensor:
    """The product, and 0 where the second factor is, whatever the first is."""
    x, y = to_common_dtype(x, y)
    zero = y == 0
    return where(zero, 0, where(zero, 0, x) * y)


def _nth(x: TensorLike, n: int | Tensor, *, reverse: bool) -> Tensor:
    """The ``n``-th smallest element of the last axis, the ``n``-th largest with ``reverse``; counted from 0."""
    x, at = tensor(x), int(n)
    if not 0 <= at < x.shape[-1]:
        raise ArgumentError(f"NthElement: n must be from 0 to {x.shape[-1] - 1}, got {at}")
    return ops.sort(x, axis=-1, is_ascend=not reverse)[..., at]


def _bound(right: bool) -> object:
    def bound(sorted_x: TensorLike, values: TensorLike, *, out_type: TensorDType) -> Tensor:
        return searchsorted(sorted_x, values, right=right)._cast(as_dtype(out_type))

    bound.__doc__ = ("Indices at which values would be inserted into sorted rows, "
                     f"{'behind' if right else 'before'} equal elements.")
    return bound


def _check_tensor(x: TensorLike) -> Tensor:
    """The tensor; NaN or infinity in it raises an error."""
    x = tensor(x)
    if not bool(all_(ops._npi_isfinite(x))):
        raise OpError("CheckNumerics: the tensor has NaN or infinity")
    return x


def _unravel(indices: TensorLike, dims: TensorLike) -> Tensor:
    """The coordinates of flat indices in a shape, one coordinate in each row."""
    flat, lengths = tensor(indices), tensor(dims).asnumpy().tolist()
    rows = []
    for length in reversed(lengths):
        rows.append(flat % length)
        flat = flat // length
    return ops.stack(*rows[::-1], axis=0, num_args=len(rows))


def _layouts(name: str, src_format: str, dst_format: str) -> list[int]:
    if sorted(src_format) != sorted(dst_format) or sorted(src_format) != ["C", "H", "N", "W"]:
        raise ArgumentError(f"{name}: expected the formats NHWC and NCHW, got {src_format!r} and {dst_format!r}")
    return [src_format.index(letter) for letter in dst_format]


def _mapped_axes(x: TensorLike, *, src_format: str, dst_format: str) -> Tensor:
    """The numbers of axes in another layout."""
    order, x = _layouts("DataFormatDimMap", src_format, dst_format), tensor(x)
    return ops.take(tensor(np.array(order, x._dt)), x % 4, axis=0)


def _permute_layout(x: TensorLike, *, src_format: str, dst_format: str) -> Tensor:
    """Numbers that belong to the axes of one layout, in the order of another."""
    return ops.take(tensor(x), tensor(np.array(_layouts("DataFormatVecPermute", src_format, dst_format))), axis=0)


def _identities(x: Sequence[TensorLike]) -> tuple[Tensor, ...]:
    """The tensors."""
    return tuple([tensor(each) for each in x])


def _shape(input_x: TensorLike) -> Tensor:
    """The shape, as a tensor of int64."""
    return tensor(np.array(tensor(input_x).shape, np.int64))


def _largest(input: TensorLike, *, output_size: Sizes) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each part of images that are divided into ``output_size`` parts, and its place."""
    return adaptive_max_pool2d(input, output_size, True)


def _col2im(x: TensorLike, output_size: Sizes | Tensor, *, kernel_size: Sizes, dilation: Sizes, padding: Sizes,
            stride: Sizes) -> Tensor:
    """Columns added at their positions in images; see ``ops.col2im``."""
    return col2im(x, output_size, kernel_size, dilation, padding, stride)


_add("AccumulateNV2", accumulate_n)
_add("AdaptiveMaxPool2D", _largest, {"output_size": ...})
_add("CheckNumerics", _check_tensor)
_add("Col2Im", _col2im, {"kernel_size": ..., "dilation": 1, "padding": 0, "stride": 1})
_add("CumulativeLogsumexp", _running_logsumexp, {"exclusive": False, "reverse": False})
_add("DataFormatDimMap", _mapped_axes, {"src_format": "NHWC", "dst_format": "NCHW"})
_add("DataFormatVecPermute", _permute_layout, {"src_format": "NHWC", "dst_format": "NCHW"})
_add("IdentityN", _identities)
_add("Im2Col", _im2col, {"ksizes": ..., "strides": 1, "dilations": 1, "pads": 0})
_add("ListDiff", _difference, {"out_idx": np.dtype(np.int32)})
_add("LowerBound", _bound(False), {"out_type": np.dtype(np.int32)})
_add("UpperBound", _bound(True), {"out_type": np.dtype(np.int32)})
_add("MulNoNan", _without_nan)
_add("NthElement", _nth, {"reverse": False})
_add("TensorShape", _shape)
_add("UnravelIndex", _unravel)
