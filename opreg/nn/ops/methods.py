"""Methods of tensors: functions of this package that are methods in MindSpore, too, attached to ``TensorBase``.

``Value`` has MXNet's operators as methods; a method that MindSpore has is replaced here, so that a name means the same
as a function and as a method. MindSpore spells some parameters in two ways, such as ``axis`` and ``dim``, or
``keepdims``, ``keep_dims`` and ``keepdim``: all are accepted.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ...cells.dtype import DType
from ...cells.python_op import call, spec_of
from ...cells.tensor import Tensor, tensor_over
from ...cells.tensor_base import TensorBase, is_number
from ...cells.tensor_hooks import register_hook, registered_hooks
from ...cells.typing import AnyShape, Axes, Number, TensorDType, TensorLike
from ...core.named_errors import FAILURES, explained, named
from ...core.registry import ops
from ...core.spec import Spec, as_dtype, is_floating, show
from ...errors import ArgumentError, ShapeError, SubscriptError
from . import (
    activation,
    array,
    creation,
    factors,
    in_place,
    indexing,
    linalg,
    math,
    nn,
    random,
    reduce,
    shorthands,
    slices,
    special,
)
from .lift import tensor

__all__ = ["attach", "METHODS", "MXNET_ONLY"]

#: Names of ``Value`` that MindSpore does not have: tensors keep MXNet's methods of these names.
MXNET_ONLY = frozenset({"argmax_channel", "broadcast_axes", "broadcast_like", "cbrt", "degrees", "depth_to_space",
                        "fix", "nanprod", "pick", "radians", "rcbrt", "reshape_like", "shape_array", "size_array",
                        "slice_axis", "slice_like", "space_to_depth", "split_v2"})

#: Dtypes whose cumulative sums are int32.
_SMALL = frozenset(map(np.dtype, ("bool", "int8", "int16", "uint8")))

#: The flags of code that takes any number of arguments.
_OPEN = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_R = TypeVar("_R")

_SPELLINGS = {"dim": "axis", "keepdim": "keepdims", "keep_dims": "keepdims"}

#: Further names of parameters in MindSpore, by method.
_OTHER_NAMES = {"approximate_equal": {"other": "y"}, "expand_as": {"x": "other"}, "float_power": {"other": "exponent"},
                "isclose": {"x2": "other"}, "matmul": {"tensor2": "other"}, "remainder": {"divisor": "other"},
                "sub": {"y": "other"}, "take": {"index": "indices"}}


def with_spellings(function: Callable[..., _R]) -> Callable[..., _R]:
    """A method that accepts keywords in each of MindSpore's spellings. Its errors name it."""
    spellings = _SPELLINGS | _OTHER_NAMES.get(function.__name__, {})

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **keywords: Any) -> _R:
        for name in list(keywords):
            if name in spellings:
                if spellings[name] in keywords:
                    raise ArgumentError(f"{function.__name__}: {name} and {spellings[name]} are two names of one "
                                        f"parameter")
                keywords[spellings[name]] = keywords.pop(name)
        try:
            return function(self, *args, **keywords)
        except FAILURES as error:
            raise explained(error, function, (self, *args), keywords)  # noqa: B904  as in `named`

    return method


def accepts_lists(*names: str) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """A decorator for a method that accepts ints as arguments, as a list, or as a keyword with one of these names."""

    def decorate(function: Callable[..., _R]) -> Callable[..., _R]:

        @functools.wraps(function)
        def method(self: Tensor, *args: Any, **keywords: Any) -> _R:
            if keywords:
                methods_named = [name for name in names if name in keywords]
                if len(methods_named) > 1 or (methods_named and args):
                    passed = " and ".join([*methods_named, *["arguments"] * bool(args)])
                    raise ArgumentError(f"{function.__name__}: {passed} are names of one parameter")
                args = (*args, *[keywords.pop(name) for name in methods_named])
            try:
                return function(self, *args, **keywords)
            except FAILURES as error:
                raise explained(error, function, (self, *args), keywords)  # noqa: B904  as in `named`

        return method

    return decorate


def _many(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Ints given as arguments, or as one sequence."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


# ------------------------------------------------------------------------------------------------- reductions


@with_spellings
def sum(self: Tensor, axis: Axes = None, keepdims: bool | TensorDType = False, dtype: TensorDType = None,
        initial: TensorLike | None = None
       ) -> Tensor:
    """The sum; see ``ops.sum``."""
    if isinstance(keepdims, (bool, np.bool_)):
        total = reduce.sum(self, axis, bool(keepdims), dtype=dtype)
    else:  # the older order of the arguments: axis, dtype, keepdims
        total = reduce.sum(self, axis, bool(dtype), dtype=keepdims)
    return total if initial is None else total + initial


@with_spellings
def mean(self: Tensor, axis: Axes = None, keepdims: bool = False, *, dtype: TensorDType = None) -> Tensor:
    """The mean; see ``ops.mean``."""
    return reduce.mean(self if dtype is None else self.astype(dtype), axis, keepdims)


@with_spellings
def prod(self: Tensor, axis: Axes = None, keepdims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The product; see ``ops.prod``."""
    return reduce.prod(self, axis, keepdims, dtype)


def _extreme(name: str, value: Callable[..., Tensor], both: Callable[..., Any]) -> Callable[..., Tensor]:
    # Type checkers see one tensor, the most frequent result; they allow unpacking, too.
    def method(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        like_numpy = "initial" in keywords or "where" in keywords or "return_indices" in keywords
        initial, where = keywords.pop("initial", None), keywords.pop("where", None)
        return_indices = keywords.pop("return_indices", False)
        if (args and not like_numpy) or "dim" in keywords or "keepdim" in keywords:
            axis = args[0] if args else keywords.pop("dim", None)
            keep = args[1] if len(args) > 1 else keywords.pop("keepdim", keywords.pop("keepdims", False))
            _nothing_left(name, keywords)
            return value(self) if axis is None else both(self, axis, keep)
        axis = args[0] if args else keywords.pop("axis", None)
        keep = args[1] if len(args) > 1 else keywords.pop("keepdims", False)
        _nothing_left(name, keywords)
        if return_indices:
            return both(self, axis, keep, initial=initial, where=where)
        return value(self, axis, keep, initial=initial, where=where if where is not True else None)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (f"The {name}imum of all, or along an axis: with ``{name}(dim)`` the numbers and their places, "
                      f"with ``{name}(axis=…)``, and beside ``initial`` or ``where``, the numbers alone unless "
                      "``return_indices``, as in MindSpore.")
    return method


def _nothing_left(name: str, keywords: Mapping[str, object]) -> None:
    if keywords:
        raise ArgumentError(f"{name}: unknown parameter {sorted(keywords)[0]!r}")


@with_spellings
def argmax(self: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the largest element, as int64; see ``ops.argmax``."""
    return reduce.argmax(self, axis, keepdims)


@with_spellings
def argmin(self: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element, as int32; see ``ops.argmin``."""
    return reduce.argmin(self, axis, keepdims)


def _by_axis(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, axis: Axes = None, keepdims: bool = False, **further: Any) -> Tensor:
        return function(self, axis, keepdims, **further)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = function.__doc__
    return with_spellings(method)


def _deviation(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, axis: Axes = None, ddof: int | bool = 0, keepdims: bool = False, *,
               correction: int | None = None) -> Tensor:
        return function(self, axis, ddof if correction is None else correction, keepdims)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = function.__doc__
    return with_spellings(method)


@with_spellings
def cumsum(self: Tensor, axis: int | None = None, dtype: TensorDType = None) -> Tensor:
    """Cumulative sums along an axis, or of the flat tensor; small integers and booleans give int32."""
    return reduce.cumsum(self, axis, "int32" if dtype is None and self._dt in _SMALL else dtype)


@with_spellings
def cumprod(self: Tensor, axis: int, dtype: TensorDType = None) -> Tensor:
    """Cumulative products along an axis."""
    return reduce.cumprod(self, axis, dtype)


@with_spellings
def logsumexp(self: Tensor, axis: Axes, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials; see ``ops.logsumexp``."""
    return reduce.logsumexp(self, axis, keepdims)


@with_spellings
def count_nonzero(self: Tensor, axis: Axes = (), keepdims: bool = False, dtype: TensorDType = None) -> Tensor:
    """The number of nonzero elements; see ``ops.count_nonzero``."""
    return reduce.count_nonzero(self, axis, keepdims, dtype)


# ------------------------------------------------------------------------------------------------------ shapes


def transpose(self: Tensor, *axes: int | Sequence[int], dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """Permute the axes, by default reverse them; two ints swap two axes, as ``dim0`` and ``dim1`` do."""
    target = _many(axes)
    if len(axes) == 2:
        return array.swapaxes(self, *target)
    return _transpose(self, *target, dim0=dim0, dim1=dim1)


_transpose = TensorBase.transpose


@accepts_lists("dims")
def permute(self: Tensor, *axis: int | Sequence[int]) -> Tensor:
    """Permute the axes."""
    return _transpose(self, *_many(axis))


def transpose_matrix(self: Tensor) -> Tensor:
    """The transpose of a matrix; a tensor of another rank is returned unchanged."""
    return _transpose(self) if self.ndim == 2 else self


def flatten(self: Tensor, order: str | int = "C", end: int = -1, *, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from ``start_dim`` to ``end_dim``, by default all: ``flatten(start_dim, end_dim)``, or
    ``flatten(order)``."""
    if not isinstance(order, str):
        return array.flatten(self, "C", start_dim=order, end_dim=end if end_dim == -1 else end_dim)
    return array.flatten(self, order, start_dim=start_dim, end_dim=end_dim)


@accepts_lists("shape", "dtype")
def view(self: Tensor, *shape: Any) -> Tensor:
    """Reshape; or, given a dtype, take the bytes for elements of that dtype."""
    if len(shape) != 1 or not isinstance(shape[0], DType):
        return TensorBase.reshape(self, *shape)
    dtype, lengths = as_dtype(shape[0]), self.shape
    if dtype.itemsize != self._dt.itemsize:
        if not lengths or lengths[-1] * self._dt.itemsize % dtype.itemsize:
            raise ShapeError(f"view: the last axis of {show(lengths)} cannot be divided into elements of {dtype}, "
                             f"which have {dtype.itemsize} bytes")
        lengths = (*lengths[:-1], lengths[-1] * self._dt.itemsize // dtype.itemsize)

    def viewed(x: Tensor) -> list[Tensor]:
        bytes_of = x._ctx.xp.ascontiguousarray(x._data).reshape(x.shape)
        return [tensor_over(bytes_of.view(dtype).copy(), x._ctx)]

    return call(viewed, [self], [spec_of(self)], [Spec(lengths, dtype)], "view")[0]


@accepts_lists("axis")
def squeeze(self: Tensor, *axis: int | Sequence[int] | None) -> Tensor:
    """Remove the given axes, or all axes of length one."""
    target = _many(axis)
    return array.squeeze(self, None if not target or axis[0] is None else target)


@accepts_lists("shape")
def broadcast_to(self: Tensor, *shape: int | Sequence[int]) -> Tensor:
    """Broadcast to a shape; see ``ops.broadcast_to``."""
    return array.broadcast_to(self, _many(shape))


@accepts_lists("dims", "reps")
def tile(self: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Repeat the tensor a number of times along each axis."""
    return array.tile(self, _many(dims))


def repeat(self: Tensor, *repeats: int | Sequence[int], axis: int | None = None) -> Tensor:
    """Repeat the tensor a number of times along each axis; with ``axis=``, repeat each slice along that axis."""
    if axis is not None:
        return array.repeat_interleave(self, repeats[0], axis)
    counts = _many(repeats)
    if len(counts) < self.ndim:
        raise ArgumentError(f"repeat: expected a number for each of {self.ndim} axes, got {counts}")
    return array.tile(self, counts)


@with_spellings
def split(self: Tensor, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis; see ``ops.split``."""
    return array.split(self, split_size_or_sections, axis)


@with_spellings
def chunk(self: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split along an axis into at most ``chunks`` parts; see ``ops.chunk``."""
    return array.chunk(self, chunks, axis)


@accepts_lists("dims")
def flip(self: Tensor, *dims: int | Sequence[int]) -> Tensor:
    """Reverse the order along axes."""
    return array.flip(self, _many(dims))


# ----------------------------------------------------------------------------------------- numbers and indices


@with_spellings
def gather(self: Tensor, input_indices: Any = None, axis: Any = None, batch_dims: int = 0, *,
           index: TensorLike | None = None) -> Tensor:
    """Slices at indices, ``gather(indices, axis)``; or elements along an axis, ``gather(dim, index)``."""
    if index is not None:
        return indexing.gather_elements(self, input_indices if axis is None else axis, index)
    if is_number(input_indices):
        return indexing.gather_elements(self, int(input_indices), axis)
    return indexing.gather(self, input_indices, axis, batch_dims)


@with_spellings
def take(self: Tensor, indices: TensorLike, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Slices along an axis, or elements of the flat tensor, at indices."""
    return indexing.take(self, indices, axis, mode)


@with_spellings
def sort(self: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """Elements sorted along an axis, and their indices."""
    return indexing.sort(self, axis, descending)


@with_spellings
def argsort(self: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices that sort the elements along an axis."""
    return indexing.argsort(self, axis, descending)


@with_spellings
def scatter(self: Tensor, axis: int, index: TensorLike, src: TensorLike) -> Tensor:
    """The tensor with ``src`` written at indices along an axis; see ``ops.scatter``."""
    return indexing.scatter(self, axis, index, src)


def select(self: Tensor, condition: TensorLike | int | None = None, y: TensorLike | int | None = None, *,
           dim: int | None = None, index: int | None = None) -> Tensor:
    """The slice at an index along an axis, ``select(dim, index)``; or ``where`` of a condition and ``y``."""
    axis, at = condition if dim is None else dim, y if index is None else index
    if isinstance(axis, (int, np.integer)) and not isinstance(axis, bool):
        return self[(*(slice(None),) * (axis % self.ndim), at)]
    if axis is None or at is None:
        raise ArgumentError("select: expected an axis and an index, or a condition and a tensor")
    return math.where(axis, self, at)


@with_spellings
def median(self: Tensor, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The median along an axis and its index; see ``ops.median``."""
    return reduce.median(self, axis, keepdims)


@with_spellings
def repeat_interleave(self: Tensor, repeats: AnyShape, axis: int | None = None) -> Tensor:
    """Repeat each slice along an axis, or each element; see ``ops.repeat_interleave``."""
    return array.repeat_interleave(self, repeats, axis)


@with_spellings
def index_select(self: Tensor, axis: int, index: TensorLike) -> Tensor:
    """The slices along an axis at the indices of a vector."""
    return indexing.index_select(self, axis, index)


def where(self: Tensor, condition: TensorLike, y: TensorLike) -> Tensor:
    """This tensor where the condition holds, ``y`` elsewhere."""
    return math.where(condition, self, y)


def itemset(self: Tensor, *args: Any) -> Tensor:
    """A copy with one element replaced: ``x.itemset(index, number)``, with a flat or full index; ``x.itemset(number)``
    if there is one element.

    Raises
    ------
    IndexError, TypeError
        When the index is out of range, or invalid.
    """
    if not 1 <= len(args) <= 2:
        raise ArgumentError(f"itemset: expected an index and a number, got {len(args)} arguments")
    if len(args) == 1 and self.shape != (1,):
        raise SubscriptError(f"itemset: a tensor of shape {show(self.shape)} needs an index and a number")
    index, value = args if len(args) == 2 else (0, args[0])
    if isinstance(index, tuple) and len(index) != self.ndim:
        raise SubscriptError(f"itemset: {len(index)} numbers are not an index of the shape {show(self.shape)}")
    if not isinstance(index, tuple):
        if not isinstance(index, int):
            raise ArgumentError(f"itemset: an index must be an int or a tuple of them, got {type(index).__name__}")
        if not -self.size <= index < self.size:
            raise SubscriptError(f"itemset: index {index} is out of bounds of {self.size} numbers")
        index = tuple(map(int, np.unravel_index(index % self.size, self.shape)))
    result = array.identity(self).copy()
    result[index] = value
    return result


def fill(self: Tensor, value: Tensor | Number) -> Tensor:
    """A tensor of this shape and dtype, filled with a value."""
    return creation.full_like(self, value)


def to(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
    """The values in another dtype, or in the dtype of another tensor."""
    target = keywords.get("dtype", args[0] if args else None)
    return self.astype(target._dt if isinstance(target, TensorBase) else target)


def _as(name: str, dtype: str) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return self._cast(np.dtype(dtype))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The numbers as {np.dtype(dtype)}."
    return method


def new_zeros(self: Tensor, size: AnyShape, dtype: TensorDType = None) -> Tensor:
    """Zeros of a shape, in this dtype or another."""
    return creation.zeros(size, self._dt if dtype is None else dtype)


def new_ones(self: Tensor, size: AnyShape, dtype: TensorDType = None) -> Tensor:
    """Ones of a shape, in this dtype or another."""
    return creation.ones(size, self._dt if dtype is None else dtype)


def new_full(self: Tensor, size: AnyShape, fill_value: Tensor | Number, dtype: TensorDType = None) -> Tensor:
    """A tensor of a shape filled with a value, in this dtype or another."""
    return creation.fill(self._dt if dtype is None else dtype, size, fill_value)


def contiguous(self: Tensor) -> Tensor:
    """This tensor."""
    return self


def clone(self: Tensor) -> Tensor:
    """A tensor with the same values, through which gradients pass."""
    return ops._copy(self)


def numpy(self: Tensor) -> np.ndarray:
    """The values as a NumPy array; see ``asnumpy``."""
    return self.asnumpy()


def is_floating_point(self: Tensor) -> bool:
    """Whether its dtype is floating-point."""
    return is_floating(self._dt)


def argmax_with_value(self: Tensor, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """The largest element along an axis, and its index."""
    return reduce.max(self, axis, keep_dims)


def argmin_with_value(self: Tensor, axis: int = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest element along an axis, and its index."""
    return reduce.min(self, axis, keep_dims)


def allclose(self: Tensor, other: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
             ) -> Tensor:
    """Whether all elements are close to those of another tensor, within ``atol + rtol * |other|``."""
    return reduce.all(math.isclose(self, other, rtol, atol, equal_nan))


def diagonal(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, *, dim1: int | None = None,
             dim2: int | None = None) -> Tensor:
    """A diagonal over two axes, which have two names each; see ``ops.diagonal``."""
    return indexing.diagonal(self, offset, axis1 if dim1 is None else dim1, axis2 if dim2 is None else dim2)


def trace(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: TensorDType = None) -> Tensor:
    """The sum of a diagonal over two axes; see ``diagonal``."""
    return reduce.sum(indexing.diagonal(self, offset, axis1, axis2), -1, dtype=dtype or self.dtype)


def is_contiguous(self: Tensor) -> bool:
    """True: the elements are always contiguous."""
    return True


def stride(self: Tensor, dim: int | None = None) -> list[int] | int:
    """Strides of each axis, or of one, counted in elements."""
    steps = [int(np.prod(self.shape[axis + 1:])) for axis in range(self.ndim)]
    return steps if dim is None else steps[dim]


def set_const_arg(self: Tensor, const_arg: bool = True) -> Tensor:
    """This tensor; compiled functions compare the values that their Python code reads, whether they are set or not."""
    if not isinstance(const_arg, bool):
        raise ArgumentError(f"set_const_arg: const_arg must be a bool, got {type(const_arg).__name__}")
    return self


def is_signed(self: Tensor) -> bool:
    """Whether its dtype represents negative values."""
    return self._dt.kind not in "ub"


def cast_to(self: Tensor, dtype: TensorDType = None) -> Tensor | DType:
    """The dtype; with an argument, the tensor cast to that dtype."""
    return self.dtype if dtype is None else self.astype(dtype)


def new_empty(self: Tensor, size: AnyShape, dtype: TensorDType = None) -> Tensor:
    """A tensor of a shape, in this dtype or another; programs must not rely on its values, which are zeros."""
    return new_zeros(self, size, dtype)


def resize(self: Tensor, *new_shape: int) -> Tensor:
    """The first elements in another shape, filled up with zeros."""
    shape = _many(new_shape)
    count = int(np.prod(shape, dtype=np.int64))
    flat = self.reshape((-1,))
    return (flat[:count] if count <= self.size else array.pad(flat, (0, count - self.size))).reshape(shape)


def scatter_add(self: Tensor, dim: Any = None, index: Any = None, src: TensorLike | None = None, *,
                indices: TensorLike | None = None, updates: TensorLike | None = None) -> Tensor:
    """The tensor with elements of ``src`` added at indices along an axis, ``scatter_add(dim, index, src)``; or slices
    added, ``scatter_add(indices, updates)``, see ``ops.tensor_scatter_add``."""
    if src is None:
        return indexing.tensor_scatter_add(self, dim if indices is None else indices,
                                           index if updates is None else updates)
    return indexing.tensor_scatter_elements(self, index, src, dim, "add")


@with_spellings
def index_add(self: Tensor, indices: Any = None, y: Any = None, axis: Any = None, use_lock: bool = True,
              check_index_bound: bool = True, *, index: Any = None, source: Any = None, alpha: Number = 1) -> Tensor:
    """The tensor with slices added at indices along an axis: ``index_add(indices, y, axis)``, or
    ``index_add(dim, index, source)``, which adds ``alpha * source``."""
    if is_number(indices):
        axis, index, source = indices, y if index is None else index, axis if source is None else source
    if index is None:
        return indexing.index_add(self, indices, y, axis)
    slices_added = tensor(source)
    return indexing.index_add(self, index, slices_added if alpha == 1 else slices_added * alpha, axis)


def searchsorted(self: Tensor, v: TensorLike, side: str = "left", sorter: TensorLike | None = None) -> Tensor:
    """Insertion indices into the sorted last axis, in int32; see ``ops.searchsorted``."""
    return indexing.searchsorted(self, v, out_int32=True, side=side, sorter=sorter)


def qr(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """The QR decomposition, with a square ``q`` unless ``some``; see ``ops.qr``."""
    return factors.qr(self, "reduced" if some else "complete")


def sum_to_size(self: Tensor, *size: int) -> Tensor:
    """Sums over the axes along which ``size`` has length one, or which it lacks."""
    shape = tuple(_many(size))
    more = self.ndim - len(shape)
    if more < 0 or any(n not in (1, own_length) for n, own_length in zip(shape, self.shape[more:])):
        raise ShapeError(f"sum_to_size: a tensor of shape {self.shape} cannot be summed to shape {shape}")
    over = tuple(i for i in range(self.ndim) if i < more or (shape[i - more] == 1 and self.shape[i] != 1))
    return (reduce.sum(self, over, True) if over else self).reshape(shape)


#: Functions whose first parameter is the tensor, used as methods without change.
_AS_THEY_ARE = {
    math: """abs acos acosh addcdiv addcmul arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
        atan2 atanh approximate_equal bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
        ceil conj invert clamp clip copysign cos cosh deg2rad digamma div
        divide eq equal erf erfc erfinv exp exp2 expm1 float_power floor floor_divide fmax fmin fmod frac ge
        greater greater_equal gt heaviside hypot isclose isfinite isinf isnan le lerp less less_equal lgamma log
        log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor lt masked_fill
        maximum minimum mul multiply nan_to_num ne neg negative not_equal positive pow rad2deg reciprocal
        remainder round rsqrt sgn sign signbit sin sinc sinh sqrt square subtract tan tanh true_divide trunc xlogy
        gcd i0 isneginf isposinf lcm ldexp mvlgamma xdivy""",
    activation: "hardshrink log_softmax logit relu sigmoid softmax softmin",
    reduce: "aminmax cummax cummin histc logcumsumexp norm ptp renorm",
    array: """adjoint diff dsplit expand_dims fliplr flipud hsplit moveaxis movedim narrow numel pad
        ravel reverse roll rot90 swapaxes swapdims tensor_split unbind unsqueeze vsplit""",
    indexing: """argwhere bincount diag gather_elements gather_nd index_fill masked_select nonzero
        slice topk tril triu unique diagflat diagonal_scatter msort reverse_sequence select_scatter
        top_k unique_consecutive unique_with_pad""",
    linalg: """addbmm addmm addmv addr baddbmm bmm cholesky cholesky_inverse cholesky_solve cov cross det dot ger inner
        inverse kron log_matrix_determinant logdet matmul matrix_determinant matrix_power mm mv outer slogdet""",
    nn: "fold unfold",
    special: "igamma igammac nanquantile nextafter quantile",
    factors: "lstsq svd",
    slices: """fill_diagonal index_put masked_scatter slice_scatter unsorted_segment_max unsorted_segment_min
        unsorted_segment_prod""",
    shorthands: "col2im expand_as nanmedian type_as view_as",
    creation: "one_hot ones_like zeros_like",
    random: "bernoulli multinomial"}

_FUNCTIONS: dict[str, Callable] = {
    **in_place.METHODS,
    **{name: getattr(module, name) for module, names in _AS_THEY_ARE.items() for name in names.split()},
    **{function.__name__: function for function in (
        sum, mean, prod, argmax, argmin, cumsum, cumprod, logsumexp, count_nonzero, transpose, permute, flatten,
        squeeze, broadcast_to, tile, repeat, split, chunk, flip, gather, take, scatter, sort, argsort, where,
        itemset, fill, to, new_zeros, new_ones, new_full, contiguous, clone, numpy, is_floating_point,
        argmax_with_value, argmin_with_value, register_hook, allclose, is_contiguous, is_signed, new_empty, resize,
        scatter_add, set_const_arg, stride, sum_to_size, diagonal, trace, select, median, repeat_interleave,
        index_select, index_add, searchsorted, qr, in_place.add, in_place.sub)},
    **{f"scatter_{name}": getattr(indexing, f"tensor_scatter_{name}") for name in ("div", "max", "min", "mul", "sub")},
    "hooks": registered_hooks, "soft_shrink": activation.softshrink, "inv": math.reciprocal, "type": cast_to,
    **{name: _by_axis(name, getattr(reduce, name)) for name in ("all", "any", "amax", "amin", "nansum", "nanmean")},
    **{name: _deviation(name, getattr(reduce, name)) for name in ("std", "var")},
    "max": _extreme("max", reduce.amax, reduce.max), "min": _extreme("min", reduce.amin, reduce.min),
    "expand": broadcast_to, "reshape_as": shorthands.view_as, "rint": math.round, "absolute": math.abs,
    "nelement": array.size, "ndimension": array.rank, "t": transpose_matrix,
    "reshape": accepts_lists("shape")(TensorBase.reshape), "view": view,
    **{name: _as(name, dtype) for name, dtype in {
        "float": "f4", "double": "f8", "half": "f2", "short": "i2", "int": "i4", "long": "i8", "byte": "u1",
        "bool": "?"}.items()}}


def _names_itself(function: Callable) -> bool:
    """Whether the errors of a function name it, or it takes nothing but the tensor."""
    code = function.__code__
    return hasattr(function, "__wrapped__") or (
        code.co_argcount + code.co_kwonlyargcount == 1 and not code.co_flags & _OPEN)


#: Functions that become methods, by name.
METHODS = {name: function if _names_itself(function) else
           with_spellings(function) if name in _OTHER_NAMES else named(function)
           for name, function in _FUNCTIONS.items()}


def attach() -> None:
    """Attach them as methods to tensors, also traced ones."""
    for name, function in METHODS.items():
        setattr(TensorBase, name, function)

