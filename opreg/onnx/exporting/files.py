"""Files of models: the model itself, and the file beside it for weights that are too large for one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.files import atomic_write, atomic_writes
from ...errors import ArgumentError
from ..package import onnx

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

__all__ = ["Draft", "complete_model", "outline_model", "write"]


#: Bytes of weights from which they are stored in a second file: protocol buffers hold less than 2 GiB.
EXTERNAL = 2 ** 31 - 2 ** 24
#: Bytes of a weight from which it is stored in the second file, at a multiple of ``ALIGNED`` bytes; runtimes read
#: smaller ones while they infer shapes.
LARGE, ALIGNED = 1024, 64
#: Dtypes that ONNX stores several elements of in a byte.
_PACKED = ("UINT2", "INT2", "UINT4", "INT4", "FLOAT4E2M1")


class Draft(NamedTuple):
    """A model without initializers, and the arrays that these hold, by name."""

    proto: ModelProto
    arrays: Mapping[str, np.ndarray]

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())


def complete_model(draft: Draft) -> ModelProto:
    """The model with its initializers.

    Raises
    ------
    ArgumentError
        If they take more bytes than a model in memory can hold.
    """
    if draft.size >= EXTERNAL:
        raise ArgumentError(f"onnx.to_model: the weights take {draft.size} bytes, and a model in memory holds fewer "
                            f"than {2 ** 31}: export writes them into a file beside the model's")
    return _with_tensors(draft, {})


def outline_model(draft: Draft) -> ModelProto:
    """The model with initializers that name the size of large arrays, and do not hold these."""
    return _with_tensors(draft, {name: 0 for name, array in draft.arrays.items() if _is_large(array)})


def write(draft: Draft, file: str, external: bool | None) -> str:
    """Write a model, completely or not at all; large weights go to a second file, ``file`` with ``.data``."""
    if not (draft.size >= EXTERNAL if external is None else external):
        proto = complete_model(draft)
        onnx("checker").check_model(proto)
        with atomic_write(file) as out:
            out.write(proto.SerializeToString())
        return file
    _check_without_weights(draft)
    place = f"{os.path.basename(file)}.data"
    with atomic_writes():
        starts: dict[str, int] = {}
        with atomic_write(os.path.join(os.path.dirname(file), place)) as out:
            end = 0
            for name, array in draft.arrays.items():
                if _is_large(array):
                    starts[name] = math.ceil(end / ALIGNED) * ALIGNED
                    out.write(bytes(starts[name] - end))
                    out.write(_bytes(array))
                    end = starts[name] + array.nbytes
        with atomic_write(file) as out:
            out.write(_with_tensors(draft, starts, place).SerializeToString())
    return file


def _is_large(array: np.ndarray) -> bool:
    """Whether an array is stored in the second file: those whose elements share bytes in ONNX are not."""
    kind = onnx().TensorProto.DataType.Name(onnx("helper").np_dtype_to_tensor_dtype(array.dtype))
    return array.nbytes >= LARGE and kind not in _PACKED


def _bytes(array: np.ndarray) -> memoryview:
    """The elements in C order, the lowest byte first."""
    plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return plain.reshape(-1).view(np.uint8).data


def _with_tensors(draft: Draft, starts: Mapping[str, int], place: str = "weights") -> ModelProto:
    """The model with its initializers; ``starts`` has the names and offsets of those in the second file."""
    proto = onnx().ModelProto()
    proto.CopyFrom(draft.proto)
    for name, array in draft.arrays.items():
        if name in starts:
            proto.graph.initializer.append(_reference(name, array, place, starts[name]))
        else:
            proto.graph.initializer.append(
                onnx("numpy_helper").from_array(np.ascontiguousarray(array).reshape(array.shape), name))
    return proto


def _reference(name: str, array: np.ndarray, place: str, start: int) -> TensorProto:
    """An initializer whose elements are in another file."""
    kinds = onnx().TensorProto
    tensor = kinds(name=name, dims=array.shape, data_type=onnx("helper").np_dtype_to_tensor_dtype(array.dtype),
                   data_location=kinds.EXTERNAL)
    entries: dict[str, Any] = {"location": place, "offset": start, "length": array.nbytes}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _check_without_weights(draft: Draft) -> None:
    """Check a model whose large weights are inputs, since the checker looks for files that are not written yet."""
    large = {name: array for name, array in draft.arrays.items() if _is_large(array)}
    small = {name: array for name, array in draft.arrays.items() if name not in large}
    proto = _with_tensors(Draft(draft.proto, small), {})
    proto.graph.input.extend(
        onnx("helper").make_tensor_value_info(name, onnx("helper").np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in large.items())
    onnx("checker").check_model(proto)
