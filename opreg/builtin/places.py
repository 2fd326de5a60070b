"""Reading and writing elements of an array by a key: slices, indices, masks and diagonals have the same rules.

A key is a valid subscript of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.array_module import put
from ..core.op import Op
from ..core.rules import Rule
from ..typing import Array, ArrayModule
from .shapes.shape import constant, copy_view

__all__ = ["declare_fixed_writes", "declare_reads", "declare_writes", "read_elements"]


def declare_reads(op: Op, where: Callable[..., tuple]) -> None:
    """Declare that an operator reads elements.

    Parameters
    ----------
    op : Op
        The operator.
    where : function
        ``where(xp, *arrays, **attrs)``, with all attributes, returns the array that is read, and the subscript.

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_column")
    ... def column(data, *, at: int = 0): "A column."
    >>> column.infer(lambda data: data[:1])
    <function <lambda> at ...>
    >>> declare_reads(column, lambda xp, data, *, at: (data, (slice(None), at)))
    >>> column(nd.array([[1.0, 2.0], [3.0, 4.0]]), at=1).asnumpy().tolist()
    [2.0, 4.0]
    """
    @op.kernel()  # no body: bodies use it to read at indices
    def reading_xp(xp: ArrayModule, *arrays: Array, out: Array | None = None, **attrs: object) -> Array:
        data, key = where(xp, *arrays, **attrs)
        return read_elements(xp, data, key, out)


def read_elements(xp: ArrayModule, data: Array, key: Any, out: Array | None = None) -> Array:
    """The elements at a key, in a new array or in ``out``."""
    part = data[key]
    fresh = out is None and part.size and not xp.may_share_memory(part, data)
    return part if fresh else copy_view(xp, part, out)


def declare_fixed_writes(op: Op, key: Callable[..., tuple], into_zeros: bool = False) -> None:
    """``declare_writes`` for a key that shapes and attributes determine.

    Parameters
    ----------
    op : Op
        The operator.
    key : function
        ``key(*shapes, **attrs)``, given those of all inputs, returns the subscript.
    into_zeros : bool
        Whether the first input is written into zeros like the last one; otherwise the last one, or the attribute
        ``scalar``, is written into a copy of the first.

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_headed")
    ... def headed(data, head): "The data with another first row."
    >>> headed.infer(lambda data, head: data)
    <function <lambda> at ...>
    >>> declare_fixed_writes(headed, lambda data, head: (0,))
    >>> headed(nd.array([[1.0], [2.0]]), nd.array([3.0])).asnumpy().tolist()
    [[3.0], [2.0]]
    """
    rule = Rule(key)

    @op.in_parts  # no body: bodies use it to write at indices
    def writing_in_parts(xp: ArrayModule, *arrays: Array, scalar: float | None = None, **attrs: object
                         ) -> Callable[..., Array]:
        part, shape, dtype = rule(attrs, *[array.shape for array in arrays]), arrays[-1].shape, arrays[0].dtype
        if into_zeros:
            def spread(g: Array, *like: Array, out: Array | None = None) -> Array:
                if out is None:
                    out = xp.zeros(shape, dtype)
                else:
                    out[...] = 0
                out[part] = g
                return out

            return spread
        number = None if scalar is None else constant(xp, scalar, dtype)

        def replace(data: Array, value: Array | None = number, out: Array | None = None) -> Array:
            out = copy_view(xp, data, out)
            out[part] = value
            return out

        return replace


def declare_writes(op: Op, where: Callable[..., tuple]) -> None:
    """Declare that an operator writes elements into zeros or into another array.

    Parameters
    ----------
    op : Op
        The operator.
    where : function
        ``where(xp, *arrays, **attrs)``, with all attributes, returns the array to write into, or the shape of zeros;
        the subscript; and the values.

    Examples
    --------
    >>> from opreg import nd
    >>> from opreg.core.registry import declare
    >>> @declare(name="_example_framed")
    ... def framed(data): "A vector between two zeros."
    >>> framed.infer(lambda data: (data[0] + 2,))
    <function <lambda> at ...>
    >>> declare_writes(framed, lambda xp, data: ((data.shape[0] + 2,), slice(1, -1), data))
    >>> framed(nd.array([1.0, 2.0])).asnumpy().tolist()
    [0.0, 1.0, 2.0, 0.0]
    """
    @op.kernel()  # no body: bodies use it to write at indices
    def writing_xp(xp: ArrayModule, *arrays: Array, out: Array | None = None, **attrs: object) -> Array:
        around, key, numbers = where(xp, *arrays, **attrs)
        if not isinstance(around, tuple):
            out = copy_view(xp, around, out)
        elif out is None:
            out = xp.zeros(around, dtype=numbers.dtype)
        else:
            out[...] = 0
        put(xp, out, key, numbers)
        return out
