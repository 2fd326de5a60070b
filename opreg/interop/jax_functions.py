"""Operators in JAX.

An operator becomes a function that ``jit``, ``grad`` and ``vmap`` accept. An operator with a translation is expressed
in JAX's own operations; others are called back on the host, with arrays that share JAX's memory, and their own
gradient. Values of JAX never change, so states are returned with the outputs, and random values are derived from a
given seed.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray import NDArray
from opreg.ndarray.exchange import from_dlpack

from ..core.spec import Shape, Spec, is_floating
from ..custom.operator import TO_JAX
from ..errors import ArgumentError, other_count
from .source import Program, Source, gradient_inputs, numpy_dtype
from .translation import Untranslatable, may_translate, translate

__all__ = ["to_jax"]


@TO_JAX.provide
def to_jax(what: Any, parameters: Mapping[str, Any] | None, random: bool | None, attrs: Mapping[str, Any]) -> Any:
    """See ``mx.operator.to_jax``."""
    import jax

    source = Source(what, "to_jax", parameters, random, attrs)
    if source.data_dependent is not None:
        raise ArgumentError(f"to_jax: {source.title}: shapes of {source.data_dependent!r} depend on values, but JAX "
                            f"needs all shapes before it computes")
    own = {name: jax.numpy.array(value.asnumpy()) for name, value in source.parameters.items()}

    def function(*arrays: Any, **attrs: Any) -> Any:
        values = {**own, **attrs.pop("parameters", {})} if own else {}
        seed, is_train = attrs.pop("seed", None), attrs.pop("is_train", False)
        inputs = _inputs(source, arrays, values)
        source.check_names(attrs)
        for name, value in {"is_train": is_train, **attrs}.items():
            if isinstance(value, jax.core.Tracer):
                raise ArgumentError(f"{source.title}: {name} is traced by JAX, but an attribute must be a constant "
                                    f"when the function is compiled: use jax.jit(f, static_argnames={name!r})")
        program = source.program(attrs, is_train)
        if seed is not None and not source.random:
            raise ArgumentError(f"{source.title} draws no random numbers: leave out seed=, or pass random=True to "
                                f"to_jax")
        if seed is None and program.draws:
            raise ArgumentError(f"{source.title} draws random numbers, for which JAX needs a seed: give seed=, an "
                                f"integer")
        results = _results(program, inputs, seed)
        outs, states = results[:len(source.outputs)], results[len(source.outputs):]
        out = outs[0] if len(outs) == 1 else tuple(outs)
        return (out, tuple(states)) if states else out

    function.__name__ = function.__qualname__ = source.name
    takes = ", ".join([name for name in source.inputs + source.states if name not in own])
    function.__doc__ = f"The {source.title}: takes {takes}" + (", and gives the states after the outputs."
                                                               if source.states else ".")
    if own:
        function.parameters = own  # type: ignore[attr-defined]
    return function


def _inputs(source: Source, arrays: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
    import jax

    names = [name for name in source.inputs + source.states if name not in values]
    if len(arrays) != len(names):
        raise ArgumentError(f"{source.title}: {other_count(names, len(arrays), 'array')}")
    arrays_by_name = {**dict(zip(names, arrays)), **values}
    inputs = [jax.numpy.asarray(arrays_by_name[name]) for name in source.inputs + source.states]
    for dtype in {value.dtype for value in inputs}:
        numpy_dtype(str(dtype), "to_jax")
    return inputs


def _results(program: Program, inputs: Sequence[Any], seed: Any) -> list[Any]:
    """The outputs, then the states."""
    source, nodes = program.source, program.graph.nodes
    if not (source.states or source.random) and may_translate(nodes):
        values = {(node, 0): inputs[source.inputs.index(node.name)] for node in nodes if node.op is None}
        try:
            return translate(_dialect(), nodes, values, program.graph.heads, program.is_train)
        except Untranslatable:
            pass
    return _jax_callback(program, inputs, seed)


def _on_host(work: Callable[..., list[NDArray]], structs: Sequence[Any], *groups: Sequence[Any]) -> list[Any]:
    """Compute on arrays of the host; the results' shapes are known in advance."""
    import jax

    lengths = [len(group) for group in groups]

    def back(*flat: Any) -> list[np.ndarray]:
        remaining, parts = list(flat), []
        for length in lengths:
            parts.append(remaining[:length])
            remaining = remaining[length:]
        return [np.asarray(result.asnumpy(), struct.dtype) for result, struct in zip(work(*parts), structs)]

    if not structs:
        return []
    return list(jax.pure_callback(back, list(structs), *[each for group in groups for each in group],
                                  vmap_method="sequential"))


def _jax_callback(program: Program, inputs: Sequence[Any], seed: Any) -> list[Any]:
    """The operator as a callback, with its gradient, and the gradient of that."""
    import jax

    source, count = program.source, len(inputs)
    specs = [_spec(value) for value in inputs]
    outs = program.specs(specs)
    needed_inputs = gradient_inputs([spec.dtype for spec in specs[:len(source.inputs)]], [True] * len(source.inputs))
    floating = gradient_inputs([out.dtype for out in outs], [True] * len(outs))
    results = [*map(_struct, outs), *map(_struct, specs[len(source.inputs):])]
    heads_of, grads_of = [results[i] for i in floating], [_struct(specs[i]) for i in needed_inputs]
    seeds = [] if seed is None else [jax.numpy.asarray(seed)]

    def split(arrays: Sequence[Any]) -> tuple[list[NDArray], int | None]:
        return [*map(_array, arrays[:count])], int(arrays[count]) if len(arrays) > count else None

    def forward(values: Sequence[Any]) -> list[NDArray]:
        arrays, number = split(values)
        return program.forward(arrays, number)

    def first(values: Sequence[Any], heads: Sequence[Any]) -> list[NDArray]:
        arrays, number = split(values)
        return program.gradients(arrays, [*map(_array, heads)], needed_inputs, number)

    def second(values: Sequence[Any], heads: Sequence[Any], tops: Sequence[Any]) -> list[NDArray]:
        arrays, number = split(values)
        return program.second(arrays, [*map(_array, heads)], needed_inputs, [*map(_array, tops)], needed_inputs, number)

    def spread(gradients: Sequence[Any]) -> list[Any]:
        """Gradients for the given inputs, with None for missing ones."""
        places = dict(zip(needed_inputs, gradients))
        return [places.get(i) for i in range(count + len(seeds))]

    @jax.custom_vjp
    def gradient(values: list[Any], heads: list[Any]) -> list[Any]:
        return _on_host(first, grads_of, values, heads)

    def gradient_fwd(values: list[Any], heads: list[Any]) -> tuple[list[Any], Any]:
        return gradient(values, heads), (values, heads)

    def gradient_bwd(residuals: Any, tops: list[Any]) -> tuple[list[Any], list[Any]]:
        values, heads = residuals
        gradients = _on_host(second, [*heads_of, *grads_of], values, heads, tops)
        return spread(gradients[len(heads):]), gradients[:len(heads)]

    gradient.defvjp(gradient_fwd, gradient_bwd)

    @jax.custom_vjp
    def function(values: list[Any]) -> list[Any]:
        return _on_host(forward, results, values)

    def function_fwd(values: list[Any]) -> tuple[list[Any], Any]:
        return function(values), values

    def function_bwd(values: list[Any], heads: list[Any]) -> tuple[list[Any]]:
        return (spread(gradient(values, [heads[i] for i in floating])),)

    function.defvjp(function_fwd, function_bwd)
    return function([*inputs, *seeds])


# --------------------------------------------------------------------------------------------------- values


def _array(value: Any) -> NDArray:
    """An array over the memory of a JAX or NumPy array."""
    return from_dlpack(value)


def _spec(value: Any) -> Spec:
    return Spec(tuple(value.shape), numpy_dtype(str(value.dtype), "to_jax"))


def _struct(spec: Spec) -> Any:
    import jax

    return jax.ShapeDtypeStruct(spec.shape, jax.dtypes.canonicalize_dtype(spec.dtype))


# -------------------------------------------------------------------------------------------------- dialect


@functools.cache
def _dialect() -> Any:
    """JAX's operations for translations."""
    import jax

    return _JaxDialect(jax)


class _JaxDialect:
    def __init__(self, jax: Any):
        self._jax, self._jnp = jax, jax.numpy
        self.primitives = _primitives(jax)

    def spec(self, x: Any) -> Spec:
        return _spec(x)

    def cast(self, x: Any, dtype: np.dtype) -> Any:
        return x.astype(self._jax.dtypes.canonicalize_dtype(dtype))

    def array(self, numbers: np.ndarray, like: Any) -> Any:
        return self._jnp.asarray(numbers)

    def number(self, value: float, like: Any) -> Any:
        return self._jnp.asarray(value, like.dtype)

    def stop(self, x: Any) -> Any:
        return self._jax.lax.stop_gradient(x)

    def reshape(self, x: Any, shape: Shape) -> Any:
        return x.reshape(shape)

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        return x.transpose(axes)

    def broadcast(self, x: Any, shape: Shape) -> Any:
        return self._jnp.broadcast_to(x, shape)

    def sum(self, x: Any, axes: Sequence[int]) -> Any:
        return x.sum(tuple(axes), keepdims=True)

    def prod(self, x: Any, axes: Sequence[int]) -> Any:
        return x.prod(tuple(axes), keepdims=True)

    def max(self, x: Any, axes: Sequence[int]) -> Any:
        return x.max(tuple(axes), keepdims=True)

    def min(self, x: Any, axes: Sequence[int]) -> Any:
        return x.min(tuple(axes), keepdims=True)

    def concat(self, xs: Sequence[Any], axis: int) -> Any:
        return self._jnp.concatenate(xs, axis)

    def flip(self, x: Any, axes: Sequence[int]) -> Any:
        return self._jnp.flip(x, tuple(axes))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return self._jnp.where(condition, x, y)

    def matmul(self, x: Any, y: Any) -> Any:
        return self._jnp.matmul(x, y)

    def softmax(self, x: Any, axis: int) -> Any:
        return self._jax.nn.softmax(x, axis)

    def log_softmax(self, x: Any, axis: int) -> Any:
        return self._jax.nn.log_softmax(x, axis)

    def subscript(self, x: Any, key: tuple[Any, ...]) -> Any:
        return x[key]

    def elementwise(self, forward: Callable[..., Any], pull: Callable[..., Any], xs: Sequence[Any]) -> Any:
        @self._jax.custom_jvp
        def function(*xs: Any) -> Any:
            return forward(*xs)

        @function.defjvp
        def moved(xs: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            y = function(*xs)
            return y, functools.reduce(operator.add, [pull(i, t, xs, y) for i, t in enumerate(tangents)])

        return function(*xs)

    def with_gradient(self, forward: Callable[..., Sequence[Any]], backward: Callable[..., Sequence[Any]],
                      xs: Sequence[Any]) -> Sequence[Any]:
        floating = [is_floating(x.dtype) for x in xs]

        @self._jax.custom_vjp
        def function(xs: list[Any]) -> list[Any]:
            return list(forward(*xs))

        def residuals(xs: list[Any]) -> tuple[list[Any], Any]:
            outs = function(xs)
            return outs, (xs, outs)

        def pulled(residuals: Any, heads: list[Any]) -> tuple[list[Any]]:
            gradients = iter(backward(heads, *residuals))
            return ([next(gradients) if moves else None for moves in floating],)

        function.defvjp(residuals, pulled)
        return function(list(xs))


def _primitives(jax: Any) -> dict[str, Callable[..., Any]]:
    """JAX's functions, by the names of element-wise instructions."""
    jnp = jax.numpy

    def logical(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: function(*xs).astype(xs[0].dtype)

    return {
        **{name: getattr(jnp, name) for name in (
            "floor", "ceil", "trunc", "add", "subtract", "multiply", "divide", "negative", "square", "reciprocal",
            "sqrt", "cbrt", "hypot", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan",
            "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "sign",
            "absolute", "power", "mod")},
        **{name: logical(getattr(jnp, name)) for name in (
            "greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "logical_and", "logical_or",
            "logical_xor", "logical_not")},
        "positive": jnp.sign,
        "maximum": lambda x, y: jnp.where((x >= y) | (x != x), x, y),
        "minimum": lambda x, y: jnp.where((x <= y) | (x != x), x, y),
        "erf": jax.lax.erf, "erfinv": jax.lax.erf_inv, "gammaln": jax.lax.lgamma, "polygamma0": jax.lax.digamma,
        "where": lambda c, x, y: jnp.where(c != 0, x, y)}
