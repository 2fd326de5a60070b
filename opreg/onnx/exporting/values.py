"""Values of an ONNX graph under construction, with the operators of arrays, and dynamic lengths."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.spec import ANY, Shape
from ...interop.translation import Untranslatable

__all__ = ["REST", "Length", "Numbers", "Value", "dynamic", "length_of", "product"]

#: An operand: a value, or a scalar in the dtype of the first operand.
Numbers = Any


class Length:
    """A dynamic length, as its value at each sample size.

    Arithmetic applies to each value, so lengths that depend on a dynamic length are distinguished from others.
    """

    __slots__ = ("sizes",)

    def __init__(self, sizes: Sequence[Any]):
        self.sizes = tuple(sizes)

    def __repr__(self) -> str:
        return "?"

    def _combine(self, other: Any, what: Callable[[Any, Any], Any]) -> Any:
        others = other.sizes if isinstance(other, Length) else (other,) * len(self.sizes)
        return length_of([what(size, other) for size, other in zip(self.sizes, others)])

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, operator.mul)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return self._combine(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, operator.sub)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, operator.floordiv)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Length) and self.sizes == other.sizes and not any(size is ANY for size in self.sizes)

    def __hash__(self) -> int:
        return hash(self.sizes)

    def __index__(self) -> int:
        raise Untranslatable("a length that its arithmetic needs is dynamic")


def length_of(sizes: Sequence[Any]) -> Any:
    """A length from its values at each sample size."""
    return sizes[0] if all(size is not ANY and size == sizes[0] for size in sizes) else Length(sizes)


def dynamic(length: Any) -> bool:
    """Whether a length is dynamic."""
    return isinstance(length, Length)


#: The length of a new shape that is inferred from the others.
REST = Length(())


class Value:
    """A value of a graph: its name, and its known properties.

    Attributes
    ----------
    g : Builder
        The graph that it belongs to.
    name : str
        Its name in the graph.
    shapes : tuple of shapes
        Its shape at each sample size; a dimension in which these differ is dynamic.
    dtype : dtype
        Dtype of its elements.
    array : NumPy array or None
        The elements of a constant.
    """

    __slots__ = ("g", "name", "shapes", "dtype", "array")

    def __init__(self, g: Any, name: str, shapes: Sequence[Shape | None], dtype: np.dtype,
                 array: np.ndarray | None = None):
        self.g, self.name, self.dtype, self.array = g, name, dtype, array
        self.shapes: tuple[Shape | None, ...] = tuple(shapes)

    def __repr__(self) -> str:
        return f"<{self.name} {self.shapes[0]} {self.dtype}>"

    @property
    def known_shape(self) -> Shape | None:
        """The shape; None if the rank is unknown."""
        first = self.shapes[0]
        if first is None or any(shape is None or len(shape) != len(first) for shape in self.shapes):
            return None
        return tuple([length_of(dims) for dims in zip(*self.shapes)])

    @property
    def shape(self) -> Shape:
        """The shape, with a ``Length`` for each dynamic dimension."""
        shape = self.known_shape
        if shape is None:
            raise Untranslatable("the rank of a value is not known")
        return shape

    def __neg__(self) -> Value:
        return self.g("Neg", self)

    def __add__(self, other: Numbers) -> Value:
        return self.g("Add", self, other)

    def __radd__(self, other: Numbers) -> Value:
        return self.g("Add", self.g.like(other, self), self)

    def __sub__(self, other: Numbers) -> Value:
        return self.g("Sub", self, other)

    def __rsub__(self, other: Numbers) -> Value:
        return self.g("Sub", self.g.like(other, self), self)

    def __mul__(self, other: Numbers) -> Value:
        return self.g("Mul", self, other)

    def __rmul__(self, other: Numbers) -> Value:
        return self.g("Mul", self.g.like(other, self), self)

    def __truediv__(self, other: Numbers) -> Value:
        return self.g("Div", self, other)

    def __rtruediv__(self, other: Numbers) -> Value:
        return self.g("Div", self.g.like(other, self), self)

    def __gt__(self, other: Numbers) -> Value:
        return self.g.compare("Greater", self, other)

    def __lt__(self, other: Numbers) -> Value:
        return self.g.compare("Less", self, other)

    def __ge__(self, other: Numbers) -> Value:
        return self.g.compare("GreaterOrEqual", self, other)

    def __le__(self, other: Numbers) -> Value:
        return self.g.compare("LessOrEqual", self, other)

    def __eq__(self, other: Numbers) -> Value:  # type: ignore[override]  # as arrays do
        return self.g.compare("Equal", self, other)

    def __ne__(self, other: Numbers) -> Value:  # type: ignore[override]  # as arrays do
        return self.g("Not", self.g.compare("Equal", self, other))

    def __and__(self, other: Value) -> Value:
        return self.g("And", self, other)

    def __or__(self, other: Value) -> Value:
        return self.g("Or", self, other)

    def __invert__(self) -> Value:
        return self.g("Not", self)

    __hash__ = object.__hash__


def product(dims: Sequence[Any]) -> int:
    """The number of elements of a known shape."""
    return operator.index(math.prod(dims))
