"""Protocols by which other libraries take arrays: NumPy's, JAX's, DLPack and CUDA's array interface."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.core.mode import MODE
from opreg.core.slots import Slot
from opreg.core.versions import share
from opreg.errors import DTypeError
from opreg.typing import Array, DTypeLike

from . import dlpack

__all__ = ["BINARY_METHODS", "FUNCTION", "UFUNC", "Protocols"]

#: The ufuncs of Python's operators, with the methods for an operand on the left and on the right.
BINARY_METHODS = {name: (f"__{left}__", f"__{right}__") for name, left, right in (
    *((name, word, f"r{word}") for name, word in (
        ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"), ("remainder", "mod"),
        ("power", "pow"), ("matmul", "matmul"), ("floor_divide", "floordiv"))),
    ("equal", "eq", "eq"), ("not_equal", "ne", "ne"), ("greater", "gt", "lt"), ("greater_equal", "ge", "le"),
    ("less", "lt", "gt"), ("less_equal", "le", "ge"))}

#: Apply NumPy's ufuncs and functions to NDArrays.
UFUNC, FUNCTION = Slot("arrays"), Slot("arrays")


class Protocols:
    """The methods of arrays that other libraries call.

    An array that is recorded warns where another library gets its values without asking for them by ``asnumpy``, since
    the operations of that library have no gradient.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _data: Array
        _ctx: Any
        _entry: Any

        def asnumpy(self) -> np.ndarray: ...

    def __array__(self, dtype: DTypeLike = None, copy: bool | None = None) -> np.ndarray:
        self._warn_recorded("a recorded array becomes a NumPy array, which has no gradient: call asnumpy()")
        return self._as_numpy(dtype, copy)

    def _as_numpy(self, dtype: DTypeLike, copy: bool | None) -> np.ndarray:
        """The array that NumPy's protocol ``__array__`` returns."""
        if copy is False and not isinstance(self._data, np.ndarray):
            raise ValueError(f"an array on {self._ctx} becomes a NumPy array only by copying")
        if copy is not False:
            return np.asarray(self.asnumpy(), dtype)
        share(self._data)
        return np.array(self._data, dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return UFUNC.function(self, ufunc, method, inputs, keywords)

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any],
                           keywords: dict[str, Any]) -> Any:
        return FUNCTION.function(self, function, types, args, keywords)

    def _warn_recorded(self, text: str) -> None:
        """Warn that values of a recorded array lose their gradient in a conversion that the program did not ask for."""
        if self._entry is not None and MODE.current().recording:
            warnings.warn(f"{text} if that is intended", stacklevel=3)

    def __jax_array__(self) -> Any:
        """A copy as an array of JAX, whose functions call this."""
        import jax.numpy as jnp

        self._warn_recorded("a recorded array becomes a JAX array, which has no gradient here: call asnumpy()")
        return jnp.asarray(self.asnumpy())

    def __dlpack__(self, **keywords: Any) -> object:
        self._warn_recorded("a recorded array shares its memory with another library, whose operations have no "
                            "gradient: call detach()")
        if isinstance(self._data, np.ndarray):
            share(self._data)
            return dlpack.export(self._data, **keywords)
        with self._ctx.entered():  # inside, the current stream is the one that computed the array
            return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._data.__dlpack_device__()

    def to_dlpack_for_read(self) -> object:
        """A DLPack capsule that shares the memory, for reading."""
        return self.__dlpack__()

    def to_dlpack_for_write(self) -> object:
        """A DLPack capsule that shares the memory, for writing."""
        return self.__dlpack__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        with self._ctx.entered():  # the interface names the current stream
            interface = getattr(self._data, "__cuda_array_interface__", None)
        if interface is None:
            raise AttributeError(f"an array on {self._ctx} has no __cuda_array_interface__")
        if self._data.dtype.name == "bfloat16":
            raise DTypeError("__cuda_array_interface__ has no name for bfloat16, and its readers would see raw "
                             "bytes: use DLPack, as in cupy.from_dlpack(x) and torch.from_dlpack(x)")
        return interface
