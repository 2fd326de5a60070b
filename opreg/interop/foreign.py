"""Functions of other libraries as operators, so that they can be checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.op import Op
from ..custom.function import of_function
from ..errors import ArgumentError

__all__ = ["ForeignArguments", "converted_arguments", "operator_of"]


class ForeignArguments(NamedTuple):
    """Arguments of a function of another library.

    Attributes
    ----------
    arrays : list of numpy.ndarray
        The arrays among the arguments, with lists converted.
    places : list of int
        Positions of the arrays.
    args : list
        All arguments; others are passed unchanged.
    names : list of str
        Names of the arrays.
    """

    arrays: list[np.ndarray]
    places: list[int]
    args: list[Any]
    names: list[str]

    def having(self, values: Sequence[Any]) -> list[Any]:
        """The arguments, with other values for the arrays."""
        args = list(self.args)
        for i, value in zip(self.places, values):
            args[i] = value
        return args


def converted_arguments(title: str, inputs: Sequence[Any], function: Callable[..., Any], skipped: int = 0
                        ) -> ForeignArguments:
    """Arguments of a function, with lists converted to float32 arrays, as in ``nd.array``. Names are those of the
    parameters of ``function`` after the first ``skipped``.

    Raises
    ------
    ArgumentError
        When no input is an array.
    """
    places = [i for i, value in enumerate(inputs) if isinstance(value, list) or hasattr(value, "dtype")]
    if not places:
        raise ArgumentError(f"check: {title} needs at least one array: call check({title}, x) with a typical x")
    words = [*inspect.signature(function).parameters.values()][skipped:]
    names = [word.name for word in words if word.kind in (word.POSITIONAL_ONLY, word.POSITIONAL_OR_KEYWORD)]
    names += [f"input{i}" for i in range(len(names), len(inputs))]
    return ForeignArguments([_numbers(inputs[i]) for i in places], places, list(inputs), [names[i] for i in places])


def _numbers(value: Any) -> np.ndarray:
    if isinstance(value, list):
        return np.asarray(value, np.float32)
    for name in ("detach", "asnumpy"):  # an array of PyTorch or of this library
        value = getattr(value, name)() if hasattr(value, name) else value
    return np.array(value)


def operator_of(name: str, run: Callable[[Sequence[np.ndarray]], list[np.ndarray]],
                pull: Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], Sequence[np.ndarray | None]],
                what: ForeignArguments) -> Op:
    """An operator whose forward and backward call another library's.

    Parameters
    ----------
    name : str
        Its name.
    run : callable
        A function from arrays to outputs.
    pull : callable
        A function from output gradients and arrays to gradients of the arrays, with None for a missing one.
    what : ForeignArguments
        Its arguments.
    """

    def forward(*arrays: Any) -> Any:
        outs = run([array.asnumpy() for array in arrays])
        return outs[0] if len(outs) == 1 else tuple(outs)

    def backward(g: Any, ins: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        heads = [head.asnumpy() for head in (g if isinstance(g, (tuple, list)) else (g,))]
        gradients = pull(heads, [value.asnumpy() for value in ins])
        return [None if gradient is None else like._lift(gradient) for gradient, like in zip(gradients, ins)]

    forward.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(word, inspect.Parameter.POSITIONAL_OR_KEYWORD) for word in what.names])
    count = len(run([array.copy() for array in what.arrays]))
    outputs = ["output"] if count == 1 else [f"output{i}" for i in range(count)]
    op = of_function(name, forward, outputs, (), None, False, False)
    op.grad(backward)
    return op
