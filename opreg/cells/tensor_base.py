"""TensorBase: the common base of tensors with values and traced tensors, with MindSpore's behaviour.

Operators promote dtypes, comparisons give booleans, subscripts give copies, reductions give true scalars.
Everything ends in ``_apply``, so it means the same eagerly and while tracing.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from opreg.ndarray import numpy_protocol
from opreg.ndarray.ndarray import FOREIGN, NDArray, numbers_of
from opreg.ndarray.scalars import ScalarConversions

from ..core.registry import get, ops
from ..core.spec import Shape, as_dtype, is_floating, show
from ..core.value import COMPARISONS, FORMS, LOGIC, Value, refuse_sequence, set_operators
from ..elementwise.integers import exponent
from ..errors import ArgumentError, ShapeError
from . import dtype as dtypes

if TYPE_CHECKING:
    from .tensor import Tensor
    from .tensor_methods import Methods  # a stub, generated from the functions of ops
    from .typing import Number, TensorDType, TensorLike
else:
    Methods = Value

__all__ = ["TensorBase", "is_number"]

def is_number(value: object) -> TypeGuard[Number]:
    """Whether a value is a single number, and no tensor."""
    kind = value.__class__
    if kind is float or kind is int:
        return True
    # Checking for a Real takes three times as long as checking for a tensor.
    return not isinstance(value, TensorBase) and isinstance(value, (numbers.Real, np.bool_))


class TensorBase(Methods):
    """The base of ``Tensor`` and of traced tensors; see the module."""

    __slots__ = ()
    _broadcasts = True
    _scalars = True
    _instead = "Use a function of ops in its place"

    if TYPE_CHECKING:  # members that each of the two defines

        @property
        def shape(self) -> Shape:
            """Dimensions."""

        _entry: Any

        @property
        def size(self) -> int:
            """Number of elements."""

        def __len__(self) -> int: ...

        def __getitem__(self, key: Any) -> Tensor: ...

        def __setitem__(self, key: Any, value: Any) -> None: ...

        def asnumpy(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
            """The values as a NumPy array; reading a traced tensor adds a guard."""

        def detach(self) -> Tensor:
            """The same values, through which no gradient passes."""

    @property
    def _dt(self) -> np.dtype:
        """The NumPy dtype."""
        raise NotImplementedError

    def _lift(self, value: TensorLike) -> Tensor:
        """A list, NumPy array or number as a tensor, as an operand for this one."""
        raise NotImplementedError

    _invoke, _surface = Value._invoke, vars(Value)["_surface"]  # not those of arrays, whose results are no tensors

    # --------------------------------------------------------------------------------------------- operators

    def _binary(self, name: str, other: object, reflected: bool) -> Any:
        if is_number(other):
            return self._with_number(name, other, reflected)
        if isinstance(other, (np.ndarray, list, tuple, NDArray)):
            other = self._lift(other)
        elif not isinstance(other, TensorBase) and (shared := FOREIGN.function(other)) is not None:
            other = self._lift(shared)
        if not isinstance(other, TensorBase):
            if name in ("eq", "ne"):
                return NotImplemented if other is not None else name == "ne"
            refuse_sequence(self, name, other, reflected)
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        if left._dt != right._dt or name == "truediv":
            common = dtypes.promote(left._dt, right._dt)
            if name == "truediv" and common.kind in "iub":
                common = np.dtype(np.float32)
            left, right = left._cast(common), right._cast(common)
        if name in COMPARISONS:
            return get(COMPARISONS[name][0])(left, right)
        same, broadcast = FORMS[name][:2]
        return get(same if left._shape_is(right) else broadcast)(left, right)

    def _with_number(self, name: str, number: Number, reflected: bool) -> Tensor:
        common = dtypes.promote_number(self._dt, number)
        if name == "truediv" and common.kind in "iub":
            common = np.dtype(np.float32)
        left = self._cast(common)
        op = get(COMPARISONS[name][1 + reflected] if name in COMPARISONS else FORMS[name][2 + reflected])
        number = int(number) if isinstance(number, (bool, np.bool_)) else number
        is_integer = isinstance(number, numbers.Integral)
        if name in COMPARISONS:
            return op(left, scalar=number if is_integer else float(number), is_int=is_integer)
        if common.kind in "iu" and not 0 <= number < 128:  # every integer dtype represents these numbers
            raised = name == "pow" and not reflected
            number = exponent(int(number), common) if raised else numbers_of(number, common).item()
            if abs(number) > 2 ** 53:  # as an attribute, a float, it would be rounded
                return self._binary(name, self._lift(np.array(number, common)), reflected)
        return op(left, scalar=float(number), is_int=is_integer)

    def _held(self, host: np.ndarray) -> Tensor:
        return self._lift(host)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return numpy_protocol.ufunc(self, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...],
                           keywords: dict[str, Any]) -> Any:
        return numpy_protocol.function(self, function, types, args, keywords)

    def _cast(self, dtype: np.dtype) -> Tensor:
        """This tensor in another dtype; itself if it has that already."""
        # To users each of these is a Tensor, also a traced one.
        return self if self._dt == dtype else ops.Cast(self, dtype=dtype)  # type: ignore[return-value]

    def _logic(self, name: str, operand: TensorLike) -> Tensor:
        left, right = self._with_common_dtype(operand)
        if left._dt.kind not in "iub":
            raise ArgumentError(f"operator {name}: expected bool or integers, got {left._dt}")
        return get(LOGIC[name][left._dt.kind != "b"])(left, right)

    def _with_common_dtype(self, operand: TensorLike) -> tuple[Tensor, Tensor]:
        """This and another operand as tensors of their common dtype; an integer wraps around in it."""
        if is_number(operand):
            common = dtypes.promote_number(self._dt, operand)
            other = self._lift(numbers_of(operand, common))
        else:
            other = operand if isinstance(operand, TensorBase) else self._lift(operand)  # type: ignore[assignment]
            common = dtypes.promote(self._dt, other._dt)
        return self._cast(common), other._cast(common)

    def __and__(self, other: TensorLike) -> Tensor:
        return self._logic("and", other)

    def __or__(self, other: TensorLike) -> Tensor:
        return self._logic("or", other)

    def __xor__(self, other: TensorLike) -> Tensor:
        return self._logic("xor", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Tensor:
        return ops._npi_logical_not(self) if self._dt.kind == "b" else ops._npi_bitwise_not(self)

    def __neg__(self) -> Tensor:
        return operator.mul(self, -1)

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]

    def __abs__(self) -> Tensor:
        return ops.abs(self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return self.round() if ndigits is None else ScalarConversions.__round__(self, ndigits)  # type: ignore[arg-type]

    def __matmul__(self, other: TensorLike) -> Tensor:
        return ops._npi_matmul(self, other if isinstance(other, TensorBase) else self._lift(other))

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        return ops._npi_matmul(self._lift(other), self)

    def __floordiv__(self, other: TensorLike) -> Tensor:
        return self._floor_quotient(other, False)

    def __rfloordiv__(self, other: TensorLike) -> Tensor:
        return self._floor_quotient(other, True)

    def _floor_quotient(self, operand: TensorLike, reflected: bool) -> Tensor:
        left, right = self._with_common_dtype(operand)
        if is_floating(left._dt):
            return ops.floor(self._binary("truediv", operand, reflected))
        return ops._npi_floor_divide(right, left) if reflected else ops._npi_floor_divide(left, right)

    def __divmod__(self, other: TensorLike) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: TensorLike) -> tuple[Tensor, Tensor]:
        return other // self, other % self

    # -------------------------------------------------------------------------------------------- subscripts

    def __contains__(self, element: object) -> bool:
        equal: Any = isinstance(element, (TensorBase, numbers.Number)) and self == element
        return bool(equal is not False and equal.any())

    def __iter__(self) -> Iterator[Tensor]:
        for i in range(len(self)):
            yield self[i]

    # --------------------------------------------------------------------------------------------- gradients

    @property
    def data(self) -> Tensor:
        """The same values as a tensor through which no gradient passes; outside of compiled functions memory is
        shared."""
        return self.detach()

    @data.setter
    def data(self, value: TensorLike) -> None:
        lifted = self._lift(value)
        if lifted.shape != self.shape:
            raise ShapeError(f"data: expected shape {show(self.shape)}, got {show(lifted.shape)}")
        self[...] = lifted

    # ------------------------------------------------------------------------------------- shapes and dtypes

    def astype(self, dtype: TensorDType, copy: bool = True) -> Tensor:
        """The values in another dtype; this tensor itself when ``copy`` is False and the dtype is the same."""
        target = as_dtype(dtype)
        return self if not copy and self._dt == target else ops.Cast(self, dtype=target)  # type: ignore[return-value]

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same values in another shape; one -1 is inferred, and 0 means a length of zero."""
        target = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return ops._np_reshape(self, newshape=tuple(map(int, target)))

    view = reshape

    def transpose(self, *axes: int | Sequence[int], dim0: int | None = None, dim1: int | None = None) -> Tensor:
        """Permute the axes; by default reverse them. ``dim0`` and ``dim1`` swap two axes."""
        if dim0 is not None or dim1 is not None:
            if axes or dim0 is None or dim1 is None:
                raise ArgumentError("transpose: give both dim0 and dim1, and no other axes")
            return self.swapaxes(dim0, dim1)
        order: Sequence[Any] = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        rank = len(self.shape)
        order = tuple(axis % rank if -rank <= axis < rank else axis for axis in order) or tuple(reversed(range(rank)))
        if sorted(order) != list(range(rank)):
            raise ShapeError(f"transpose: expected a permutation of the {rank} axes, got {axes}")
        return ops.transpose(self, axes=order) if rank > 1 else self  # type: ignore[return-value]

    @property
    def T(self) -> Tensor:
        """Axes reversed."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        return self.swapaxes(-1, -2)


set_operators(TensorBase)  # these replace the faster operators of ``NDArray``, whose meaning differs
