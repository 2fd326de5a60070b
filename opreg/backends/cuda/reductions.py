"""Sums, means, maxima and their kin along axes, and the sums that undo a broadcast, as kernels of rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opreg.builtin.layers.convolution import convolution_bias
from opreg.core.launch import Call
from opreg.core.op import Op
from opreg.core.registry import REGISTERED
from opreg.core.spec import reduced_axes
from opreg.elementwise.expression import absolute, equal, sqrt, square, where
from opreg.elementwise.rows import Along, row_max, row_min, row_product, row_size, row_sum, traced

from .compiler import attach
from .folds import bound_fold, groups_of
from .instructions import declines

__all__: list[str] = []

#: What operators make of the numbers along axes.
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": row_sum,
    "mean": lambda x: row_sum(x) / row_size(),
    "max": row_max,
    "min": row_min,
    "prod": row_product,
    "nansum": lambda x: row_sum(where(equal(x, x), x, 0.0)),
    "nanprod": lambda x: row_product(where(equal(x, x), x, 1.0)),
    "_square_sum": lambda x: row_sum(square(x)),
}
_NORMS: dict[int, Callable[[Any], Any]] = {1: lambda x: row_sum(absolute(x)), 2: lambda x: sqrt(row_sum(square(x)))}


def _attach(op: Op, function_of: Callable[[Call], Callable[[Any], Any]], axes_of: Callable[[Call], Sequence[int]]
            ) -> None:
    """Give an operator the kernel ``cuda``, which reduces its first input along axes."""

    def accepts(call: Call) -> str | None:
        return declines([call.ins[0], *call.outs])

    def steps(call: Call) -> list[Callable]:
        data = call.ins[0]
        return bound_fold(traced(function_of(call), 1), [data], [Along.ELEMENT], call.outs,
                          groups_of(data.shape, axes_of(call)), call.xp, call.scratch)

    attach(op, accepts, steps)


def _named(call: Call) -> tuple[int, ...]:
    return reduced_axes(call.attrs["axis"], call.attrs.get("exclude", False), call.ins[0].ndim)


def _broadcast(call: Call) -> list[int]:
    """The axes along which the second input was repeated to have the shape of the first."""
    data, like = (array.shape for array in call.ins)
    padded = (1,) * (len(data) - len(like)) + like
    return [i for i, (old, new) in enumerate(zip(data, padded)) if old != new]


def _but_channels(call: Call) -> list[int]:
    place = call.attrs["layout"].index("C")
    return [i for i in range(call.ins[0].ndim) if i != place]


for _name, _function in _FUNCTIONS.items():
    _attach(REGISTERED[_name], lambda call, function=_function: function, _named)  # type: ignore[misc]
_attach(REGISTERED["norm"], lambda call: _NORMS[call.attrs["ord"]], _named)
_attach(REGISTERED["_reduce_like"], lambda call: row_sum, _broadcast)
_attach(convolution_bias, lambda call: row_sum, _but_channels)
