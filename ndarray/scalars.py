"""Conversions of arrays with one element to Python scalars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from opreg.core.spec import show
from opreg.errors import ShapeError, as_op_error

if TYPE_CHECKING:
    import numpy as np

__all__ = ["ScalarConversions"]


class ScalarConversions:
    """The conversions ``float(x)``, ``round(x, 2)``, ``f"{x:.3f}"`` and ``range(x)`` of an array.

    The array must have one element, in any number of axes; otherwise a `ShapeError` names the shape. The scalar has no
    gradient.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...

        @property
        def size(self) -> int: ...

        def asnumpy(self) -> np.ndarray: ...

    def _number(self, title: str) -> Any:
        """The only element as a Python number; ``title`` names the conversion in the error."""
        host = self.asnumpy()
        if host.size != 1:
            raise ShapeError(f"{title}: expected one element, the array has shape {show(self.shape)}; asnumpy() "
                             f"returns all of its elements")
        return host.item()

    def asscalar(self) -> Any:
        """The only element as a NumPy scalar.

        Raises
        ------
        ShapeError
            If there is not exactly one element.
        """
        if self.size != 1:
            self._number("asscalar")  # raises the error
        return self.asnumpy().reshape(-1)[0]

    def item(self, index: int | tuple[int, ...] | None = None) -> Any:
        """The only element, or the one at a flat or full index, as a Python number.

        Raises
        ------
        ShapeError
            Without an index, if there is not exactly one element.

        Examples
        --------
        >>> from opreg import nd
        >>> nd.array([2.5]).item(), nd.array([1, 2]).item(1)
        (2.5, 2.0)
        """
        if index is None:
            return self._number("item")
        try:
            return self.asnumpy().item(index)
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise as_op_error(error, f"item({index!r}) of shape {show(self.shape)}") from None

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.asnumpy().tolist()

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __index__(self) -> int:
        value = self.item() if self.size == 1 else None
        if not isinstance(value, int):
            raise TypeError("an index: expected an integer array with one element, got one of shape "
                            f"{show(self.shape)} and dtype {self.asnumpy().dtype}")
        return int(value)

    def __round__(self, ndigits: int | None = None) -> float:
        return round(self._number("round()"), ndigits)

    def __trunc__(self) -> int:
        return math.trunc(self._number("trunc()"))

    def __format__(self, spec: str) -> str:
        if spec and self.size == 1:
            return format(self.item(), spec)
        try:
            return format(str(self), spec)
        except ValueError:
            raise ShapeError(f"format {spec!r}: expected one element, the array has shape {show(self.shape)}; format "
                             "each of asnumpy()") from None

    def as_integer_ratio(self) -> tuple[int, int]:
        """The only element as a ratio of two integers, as ``float.as_integer_ratio``. The module ``statistics`` calls
        it.

        Examples
        --------
        >>> from opreg import nd
        >>> nd.array([0.75]).as_integer_ratio()
        (3, 4)
        """
        return self._number("as_integer_ratio").as_integer_ratio()
