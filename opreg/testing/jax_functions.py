"""Functions of JAX as subjects of checks."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray.context import Context

from ..core.spec import is_floating
from ..errors import NotDifferentiableError
from .foreign import ForeignUse, arrays_in
from .uses import Heads, Result, parameter_names

__all__ = ["JaxUse", "function_of_jax"]


def function_of_jax(what: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> JaxUse | None:
    """A subject for a ``custom_vjp``, ``custom_jvp`` or compiled function of JAX, or for a function that is given
    arrays of JAX; None for others."""
    jax = sys.modules.get("jax")
    if jax is None or not callable(what) or isinstance(what, type):
        return None
    own = isinstance(what, (jax.custom_vjp, jax.custom_jvp)) or type(what).__module__.startswith(("jax", "jaxlib"))
    if not own and not any(True for _ in arrays_in([list(inputs), keywords],
                                                   lambda value: isinstance(value, jax.Array))):
        return None
    name = getattr(what, "__name__", type(what).__name__)
    return JaxUse(what, inputs, keywords, name, parameter_names(getattr(what, "fun", what), len(inputs)))


class JaxUse(ForeignUse):
    """A function of JAX. It runs with JAX's 64 bits on, since checks compare gradients in float64."""

    library, body, gradient_code, any_layout = "JAX", "the function", "the vjp rule", False
    refusals = (*ForeignUse.refusals, TypeError)
    top, seeder, generator = "the output gradient", "key", "jax.random, from a key among the arguments"
    second_order_change = "compute the gradient by functions of jax.numpy on the saved values"

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Any], keywords: Mapping[str, Any], name: str,
                 words: Sequence[str]):
        self.jax = sys.modules["jax"]
        self.array_class = self.jax.Array
        super().__init__(function, inputs, keywords, name, words)
        self._outputs: Callable[..., list[Any]] = self._flat_outputs

    def is_array(self, value: object) -> bool:
        """Whether an argument is an array of numbers; a key of JAX's generators is not."""
        return super().is_array(value) and not (isinstance(value, self.array_class)
                                                and not isinstance(value.dtype, np.dtype))

    def compiled(self) -> JaxUse:
        """The function compiled by ``jax.jit``."""
        compiled = copy.copy(self)
        compiled._outputs = self.jax.jit(self._flat_outputs)
        return compiled

    def run(self, head_grads: Heads = None, grads: bool = False, raw: Sequence[np.ndarray] | None = None,
            ctx: Context | None = None, between: Callable[[], object] | None = None) -> Result:
        """Run it as users do; see ``Subject.run``."""
        with self.jax.enable_x64(True):
            values = [self.jax.numpy.asarray(value) for value in raw or self.arrays]
            if not grads:
                return Result([np.array(out) for out in self._outputs(*values)], self.arrays)
            outs, back = self.jax.vjp(self._outputs, *values)
            if between is not None:
                between()
            found = back(self._cotangents(outs, head_grads))
            return Result([np.array(out) for out in outs], self.arrays, {i: np.array(found[i]) for i in self.wanted})

    def second(self, head_grads: Heads, weights: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Second derivatives: the gradients of a weighted sum of first derivatives."""
        with self.jax.enable_x64(True):
            values = [self.jax.numpy.asarray(value) for value in self.arrays]

            def first(*moved: Any) -> list[Any]:
                inside = list(values)
                for i, value in zip(weights, moved):
                    inside[i] = value
                outs, back = self.jax.vjp(self._outputs, *inside)
                gradients = back(self._cotangents(outs, head_grads))
                return [gradients[i] for i in weights]

            try:
                firsts, back = self.jax.vjp(first, *[values[i] for i in weights])
                found = back([self.jax.numpy.asarray(weight, g.dtype) for g, weight in zip(firsts, weights.values())])
            except Exception as error:  # JAX has no class for a gradient that cannot be differentiated
                raise NotDifferentiableError(str(error)) from error
            return {i: np.array(g) for i, g in zip(weights, found)}

    def _flat_outputs(self, *values: Any) -> list[Any]:
        """The outputs, for values of the arrays."""
        with self.dtype_errors():
            results = self.call(self.function, values)
        return [self.jax.numpy.asarray(leaf) for leaf in self.jax.tree_util.tree_leaves(results)]

    def _cotangents(self, outs: Sequence[Any], head_grads: Heads) -> list[Any]:
        """Output gradients as JAX expects them: of a class of their own for outputs that are not floating."""
        heads = [None] * len(outs) if head_grads is None else head_grads
        return [np.zeros(out.shape, self.jax.dtypes.float0) if not is_floating(out.dtype) else
                self.jax.numpy.ones_like(out) if head is None else self.jax.numpy.asarray(head, out.dtype)
                for out, head in zip(outs, heads)]
