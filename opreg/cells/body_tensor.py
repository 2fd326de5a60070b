"""Tensors of a traced body: the functions of ``ops`` and ``mint`` in bodies of users' operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.traced import TracedArray, TracedNDArray

from ..core.op import Op
from ..core.registry import ops
from ..core.rules import Attrs
from . import dtype as dtypes
from .subscripts import subscript
from .tensor_base import TensorBase

__all__ = ["BodyTensor", "body_tensor"]


class BodyTensor(TensorBase, TracedNDArray):  # type: ignore[misc]  # its methods are those of ops
    """A traced NDArray with MindSpore's behaviour."""

    __slots__ = ()
    __hash__ = object.__hash__
    _rank = 5
    has_init = False

    @property
    def _dt(self) -> np.dtype:
        return self._data.dtype

    @property
    def dtype(self) -> dtypes.DType:  # type: ignore[override]  # MindSpore's
        """The dtype, such as ``mindspore.float32``."""
        return dtypes.of(self._dt)

    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def _lift(self, value: Any) -> Any:
        body = self._data.body
        return body_tensor(value if isinstance(value, TracedNDArray) else body.value(body.entry(value)), self)

    def _apply(self, op: Op, values: Sequence[Any], given: Attrs) -> Any:
        results = super()._apply(op, values, given)
        if isinstance(results, (list, tuple)):
            return tuple([body_tensor(result, self) for result in results])
        return body_tensor(results, self)

    def __getitem__(self, key: Any) -> Any:
        return ops._subscript(self, key=subscript(key, self.shape))

    def copy(self) -> Any:
        """A copy, through which gradients pass."""
        return ops._copy(self)

    def detach(self) -> Any:
        """The same values, through which no gradient passes."""
        return ops.BlockGrad(self)


def body_tensor(value: TracedNDArray | TracedArray | NDArray, like: NDArray) -> Any:
    """A value of a traced body as a tensor on the device of another."""
    data = value._data if isinstance(value, NDArray) else value
    result = NDArray.__new__(BodyTensor)
    result._data, result._ctx, result._entry = data, like._ctx, None  # type: ignore[assignment]  # as an array
    return result
