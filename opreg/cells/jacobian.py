"""vjp, jvp, jacrev, jacfwd: products with Jacobians, and Jacobians, from one run of the function.

``Vjp`` and ``Jvp`` are ``vjp`` and ``jvp`` as Cells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opreg.ndarray.autograd import JVP
from opreg.ndarray.ndarray import NDArray

from ..core.named_errors import name_errors
from ..core.registry import ops
from ..core.rules import as_list
from ..core.spec import show
from ..errors import ArgumentError, NotDifferentiableError, ShapeError, note
from . import tree
from .cell import Cell
from .parameter import CastParameter, Parameter, Parameters, parameters
from .positions import Positions, check_positions, positions_of
from .pullback import Pullback, differentiate, name_of, pullback
from .pushforward import pushforward
from .state import STATE
from .tensor import Tensor, as_array, as_tensor, tensor
from .tensor_base import TensorBase

#: A tensor, or several.
Several: TypeAlias = TensorBase | Sequence[TensorBase]

__all__ = ["jvp", "vjp", "jacrev", "jacfwd", "Jvp", "Vjp"]


def _value(back: Pullback, has_aux: bool) -> Any:
    return back.out[0] if has_aux else back.out


def _add_aux(results: tuple[Any, ...], back: Pullback, has_aux: bool) -> tuple[Any, ...]:
    """Results, followed by the auxiliary outputs if ``has_aux``; a single auxiliary output is bare."""
    if not has_aux:
        return results
    aux = tuple(back.out[1:])
    return *results, aux[0] if len(aux) == 1 else aux


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Parameters | None = None, has_aux: bool = False
       ) -> tuple[Any, ...]:
    """The outputs of a function, and a function from output gradients to input gradients.

    Parameters
    ----------
    fn : callable
        A function that returns a tensor, or several.
    *inputs
        Tensors, or tuples, lists and dicts of them.
    weights : Parameter, or list or tuple of them, optional
        Further variables; with them the second function returns the gradients ``(inputs, weights)``.
    has_aux : bool
        Whether only the first output is differentiated, and the others are the third result, a single one bare.

    Examples
    --------
    >>> value, back = vjp(lambda x: x * x, tensor(3.0))
    >>> back(tensor(1.0))
    (Tensor(shape=[], dtype=Float32, value= 6),)
    """
    trained = [] if weights is None else parameters(weights, "vjp: weights")
    for i, value in enumerate(inputs):
        if not tree.varies(value):
            raise ArgumentError(f"vjp of {name_of(fn)}: input {i} is of type {type(value).__name__}, only tensors have "
                                "gradients")

    def run() -> Pullback:
        return pullback(fn, inputs, {}, range(len(inputs)), trained, has_aux)

    first, trace = run(), STATE.trace

    def back(*seeds: TensorBase) -> tuple[Any, ...]:
        gradient = first if STATE.trace is trace else run()  # results are on the device where they were computed
        grads, by_weight = gradient(seeds[0] if len(seeds) == 1 else seeds, keep=True)
        if not trained:
            return tuple(grads)
        return tuple(grads), by_weight[0] if isinstance(weights, (Parameter, CastParameter)) else tuple(by_weight)

    return _add_aux((_value(first, has_aux), back), first, has_aux)


@JVP.provide
def jvp(fn: Callable[..., Any], inputs: Several, v: Several, has_aux: bool = False) -> tuple[Any, ...]:
    """The outputs of a function, and their derivative along directions of its inputs.

    A gradient is linear in the output gradient; so the derivative is computed as the gradient of the gradient. Users'
    operators with a rule ``@op.jvp`` use that rule, and need no gradient.

    Parameters
    ----------
    fn : callable
        A function that returns a tensor, or several.
    inputs, v : tensor, or tuple or list of them
        Its inputs, and a direction of the same shape for each.
    has_aux : bool
        Whether only the first output is differentiated, and the others are the third result, a single one bare.

    Examples
    --------
    >>> jvp(lambda x: x * x, tensor(3.0), tensor(2.0))
    (Tensor(shape=[], dtype=Float32, value= 9), Tensor(shape=[], dtype=Float32, value= 12))
    """
    values: list[Any] = as_list(inputs)
    along: list[Any] = as_list(v)
    if any(isinstance(value, NDArray) and not isinstance(value, TensorBase) for value in (*values, *along)):
        return _jvp_of_arrays(fn, values, along, has_aux)
    if len(values) != len(along):
        raise ArgumentError(f"jvp: expected {len(values)} directions, one for each input, got {len(along)}")
    for i, (value, direction) in enumerate(zip(values, along)):
        if not isinstance(value, TensorBase):
            raise ArgumentError(f"jvp: input {i} must be a Tensor, got {type(value).__name__}")
        if not isinstance(direction, TensorBase):
            raise ArgumentError(f"jvp: direction {i} must be a Tensor, got {type(direction).__name__}")
        if value.shape != direction.shape:
            raise ShapeError(f"jvp: direction {i} has shape {show(direction.shape)}, expected {show(value.shape)}")
    back = pullback(fn, values, {}, range(len(values)), (), has_aux)

    def of_seeds(*seeds: TensorBase) -> tuple[Any, ...]:
        return tuple(back(tuple(seeds), keep=True)[0])

    try:
        tangents: Sequence[Any] | None = pushforward(back, along)
        if tangents is None:
            probes = [ops.zeros_like(head) for head in back.heads]
            _, tangents, _ = differentiate(of_seeds, probes, {}, range(len(probes)), seed=tuple(along))
    except NotDifferentiableError as error:
        note(error, f"jvp of {name_of(fn)}: a directional derivative is the gradient of the gradient, except for an "
                    "operator with a rule for directions: a method jvp(self, t, ins, outs) of its Prop, or @op.jvp")
        raise
    value = _value(back, has_aux)
    return _add_aux((value, tree.rebuild(tree.flatten(value, []), iter(tangents))), back, has_aux)


def _jvp_of_arrays(fn: Callable[..., Any], values: Sequence[Any], along: Sequence[Any], has_aux: bool
                   ) -> tuple[Any, ...]:
    """``jvp`` for a function of NDArrays."""

    def function(*tensors: Any) -> Any:
        return tree.map_tensors(as_tensor, fn(*map(as_array, tensors)))

    results = jvp(function, [*map(as_tensor, values)], [*map(as_tensor, along)], has_aux)
    return tuple(tree.map_tensors(as_array, results))


def jacrev(fn: Callable[..., Any], grad_position: Positions = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes Jacobians, with the output's shape followed by the input's.

    Parameters
    ----------
    fn : callable
        A function that returns a tensor, or several.
    grad_position : int or tuple of int
        Positions of inputs, counted over arguments, then keywords; with several each output has a tuple of Jacobians.
    has_aux : bool
        Whether only the first output is differentiated, and the others are returned after the Jacobian, a single one
        bare.

    Examples
    --------
    >>> jacrev(lambda x: x * x)(tensor([1.0, 2.0])).asnumpy()
    array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    if not callable(fn):
        raise ArgumentError(f"jacrev: expected a function or a Cell, got {type(fn).__name__}")
    positions = positions_of(grad_position)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        inputs = [*args, *kwargs.values()]
        check_positions(fn, positions, inputs)
        back = pullback(fn, args, kwargs, positions, (), has_aux)
        jacobians = []
        for number, head in enumerate(back.heads):
            rows: list[Sequence[Any]] = [back(tuple(_units(back.heads, number, at)), keep=True)[0]
                                         for at in range(head.size)]
            parts = tuple(ops.stack(*column, axis=0, num_args=len(column))
                          .reshape(*head.shape, *getattr(inputs[i], "shape", ()))  # a Python number has no shape
                          for i, column in zip(positions, zip(*rows)))
            jacobians.append(parts[0] if len(positions) == 1 else parts)
        single = tree.flatten(_value(back, has_aux), []) is tree.LEAF
        result = jacobians[0] if single else tuple(jacobians)
        return _add_aux((result,), back, has_aux) if has_aux else result

    return jacobian


def _units(heads: Sequence[TensorBase], number: int, at: int) -> list[Tensor]:
    """Output gradients that are one at one element of one head, and zero elsewhere."""
    units = []
    for k, head in enumerate(heads):
        unit = np.zeros(head.size, head._dt)
        unit[at:at + 1] = k == number
        units.append(tensor(unit.reshape(head.shape)))
    return units


jacfwd = jacrev


class _Product(Cell):
    def __init__(self, fn: Callable[..., Any]):
        super().__init__(auto_prefix=False)
        self.fn = fn


class Jvp(_Product):
    """``jvp(fn, inputs, directions)`` as a Cell of inputs and directions; several of either are a tuple.

    Parameters
    ----------
    fn : Cell or callable
        A function that returns a tensor, or several.

    Examples
    --------
    >>> Jvp(lambda x, y: x * y)(tensor(3.0), tensor(2.0), (tensor(1.0), tensor(1.0)))
    (Tensor(shape=[], dtype=Float32, value= 6), Tensor(shape=[], dtype=Float32, value= 5))
    """

    def construct(self, *inputs: Any) -> tuple[Any, ...]:
        return jvp(self.fn, inputs[:-1], inputs[-1])


class Vjp(_Product):
    """``vjp`` as a Cell of inputs and output gradients; it returns the outputs and the input gradients, a single one
    bare.

    Parameters
    ----------
    fn : Cell or callable
        A function that returns a tensor, or several.

    Examples
    --------
    >>> Vjp(lambda x: x * x)(tensor(3.0), tensor(1.0))
    (Tensor(shape=[], dtype=Float32, value= 9), Tensor(shape=[], dtype=Float32, value= 6))
    """

    def construct(self, *inputs: Any) -> tuple[Any, ...]:
        value, back = vjp(self.fn, *inputs[:-1])
        gradients = back(inputs[-1])
        return value, gradients[0] if len(gradients) == 1 else gradients


name_errors(__name__, globals(), __all__)
