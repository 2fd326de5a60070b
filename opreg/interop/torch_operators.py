"""Operators in PyTorch.

An operator becomes one of ``torch.library``. An operator with a translation is expressed in PyTorch's own operations;
others are called with arrays that share the tensors' memory, and declare their results and gradients in functions that
``torch.compile`` does not trace.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np

from opreg.ndarray import NDArray
from opreg.ndarray.exchange import from_dlpack

from ..core.attrs import AsText, Field, to_text
from ..core.keys import exact
from ..core.spec import ANY, Shape, Spec
from ..custom.operator import TO_TORCH
from ..errors import ArgumentError
from .source import Program, Source, gradient_inputs, numpy_dtype
from .translation import Untranslatable, may_translate, translate

__all__ = ["to_torch"]

_NAMESPACE = "opreg"
#: Operators of PyTorch, by the operator they were made from. They live as long as the process, as all operators of
#: ``torch.library`` should: exported programs refer to them by name.
_MADE: dict[Any, Any] = {}
_KEPT: list[Any] = []
_NAMES: dict[str, itertools.count] = {}


@TO_TORCH.provide
def to_torch(what: Any, parameters: Mapping[str, Any] | None, random: bool | None, attrs: Mapping[str, Any]) -> Any:
    """See ``mx.operator.to_torch``."""
    source = Source(what, "to_torch", parameters, random, attrs)
    try:
        key: Any = source.op and (source.op, source.random, exact(sorted(attrs.items())))
    except TypeError:
        key = None
    if key is not None and key in _MADE:
        return _MADE[key]
    function = _function(source, _operator(source))
    if source.parameters:
        module = _module(source, function)
        source.parameters = {}  # the operator lives as long as the process; the module alone holds the values
        return module
    if key is not None:
        _MADE[key] = function
    return function


# ---------------------------------------------------------------------------------------------- registration


def _operator(source: Source) -> Any:
    """The operator of PyTorch, pure: states are inputs, and their new values outputs."""
    import torch

    name, schema = _fresh(source.name), _Schema(source)
    traced = source.data_dependent is None and not source.states and not source.random and all(
        may_translate(source.program(schema.sample, mode).graph.nodes) for mode in (False, True))
    called = _torch_operator(source, schema, f"{name}_called" if traced else name)
    if not traced:
        return called

    def kernel(*tensors: Any, **attrs: Any) -> Any:
        is_train = attrs.pop("is_train", False)
        graph = source.program(attrs, is_train).graph
        names = source.inputs
        values = {(node, 0): tensors[names.index(node.name)] for node in graph.nodes if node.op is None}
        try:
            results = translate(_dialect(), graph.nodes, values, graph.heads, is_train)
        except Untranslatable:
            return called(*tensors, **attrs, **({"is_train": is_train} if source.mode else {}))
        # results are new tensors, as PyTorch requires
        results = [result.clone() if any(result is tensor for tensor in tensors) else result for result in results]
        return results[0] if len(results) == 1 else tuple(results)

    library = torch.library.Library(_NAMESPACE, "FRAGMENT")
    library.define(name + schema.text, tags=(torch.Tag.pt2_compliant_tag,))
    library.impl(name, kernel, "CompositeImplicitAutograd")
    _KEPT.append(library)
    return getattr(torch.ops.opreg, name).default


def _fresh(name: str) -> str:
    """An unused name of an operator in PyTorch."""
    count = next(_NAMES.setdefault(name, itertools.count()))
    return f"{name}_{count}" if count else name


class _Schema:
    """The signature in PyTorch's schema language.

    Attributes
    ----------
    text : str
        Parameters and results as text.
    lists : str
        Keyword-only parameters of its gradient, as text.
    sample : dict
        A value for each attribute without a default.
    """

    def __init__(self, source: Source):
        words, self.sample = [], {}
        for field in source.fields:
            kind = _kind(field.kind)
            default = None if field.required or kind is None else _default(kind, field)
            if kind is None or (default is None and not field.required):
                if field.required:
                    raise ArgumentError(f"to_torch: {source.title}: PyTorch has no type for the attribute "
                                        f"{field.name!r}, which is {field.describes}: give it a constant value, as in "
                                        f"to_torch({source.name!r}, {field.name}=...)")
                continue
            words.append(f"{kind} {field.name}" + ("" if default is None else f"={default}"))
            if field.required:
                self.sample[field.name] = _SAMPLES[kind]
        if source.mode:
            words.append("bool is_train=False")
        keywords = f", *, {', '.join(words)}" if words else ""
        names = [*source.inputs, *source.states, *(["seed"] if source.random else [])]
        results = ["Tensor"] * (len(source.outputs) + len(source.states))
        self.text = (f"({', '.join(f'Tensor {_parameter(name)}' for name in names)}{keywords}) -> "
                     + (results[0] if len(results) == 1 else f"({', '.join(results)})"))
        self.lists = ", *, " + ", ".join(["int[] needs", *words])


_SAMPLES: dict[str, Any] = {"int": 1, "float": 1.0, "bool": False, "str": "1", "int[]": (1,)}


def _parameter(name: str) -> str:
    name = "".join(letter if letter.isalnum() else "_" for letter in name)
    name = name if name.isidentifier() else f"input_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in ("self", "out", "seed") else name


def _kind(kind: Any) -> str | None:
    """The type of an attribute in PyTorch's schema; None if there is none."""
    if kind is AsText:  # an attribute of a Prop without annotation
        return "str"
    plain = {int: "int", float: "float", bool: "bool", str: "str"}
    if kind in plain:
        return plain[kind]
    args = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        kinds = {type(arg) for arg in args}
        return plain.get(kinds.pop()) if len(kinds) == 1 else None
    if typing.get_origin(kind) is tuple:
        return "int[]" if args == (int, ...) else None
    if typing.get_origin(kind) in (Union, types.UnionType):
        some = {_kind(arg) for arg in args if arg is not type(None)}
        some = {"int[]"} if some == {"int", "int[]"} else {"float"} if some == {"int", "float"} else some
        word = some.pop() if len(some) == 1 else None
        return f"{word}?" if word and type(None) in args else word
    return None


def _default(kind: str, field: Field) -> str | None:
    """A default value in PyTorch's schema; None if it cannot be expressed."""
    value = field.default
    if kind.endswith("?") and value is None:
        return "None"
    kind = kind.removesuffix("?")
    if field.kind is AsText:
        value = to_text(value)
    if kind == "int[]":
        return str([*value] if isinstance(value, tuple) else [value])
    if kind == "str":
        return f'"{value}"' if isinstance(value, str) and '"' not in value and "\\" not in value else None
    if kind == "float":
        return repr(float(value)) if np.isfinite(value) else None
    return str(value)


def _torch_operator(source: Source, schema: _Schema, name: str) -> Any:
    """The operator that calls this library's, with its gradient, and the gradient of that."""
    import torch

    count, extra = len(source.inputs) + len(source.states), int(source.random)

    def program_of(attrs: dict[str, Any]) -> Program:
        is_train = attrs.pop("is_train", False)
        return source.program({key: tuple(value) if isinstance(value, list) else value
                               for key, value in attrs.items()}, is_train)

    def as_arrays(tensors: Sequence[Any]) -> tuple[list[NDArray], int | None]:
        return [*map(_array, tensors[:count])], int(tensors[count]) if extra else None

    def forward(*tensors: Any, **attrs: Any) -> Any:
        arrays, seed = as_arrays(tensors)
        results = [torch.from_dlpack(result) for result in program_of(attrs).forward(arrays, seed)]
        return results[0] if len(results) == 1 else tuple(results)

    def fake(*tensors: Any, **attrs: Any) -> Any:
        program = program_of(attrs)
        specs = [_spec(tensor) for tensor in tensors[:count]]
        results = [tensors[0].new_empty([torch.library.get_ctx().new_dynamic_size() if dim is ANY else dim
                                         for dim in spec.shape or ()], dtype=_torch_dtype(spec.dtype))
                   for spec in program.specs(specs)]
        results += [torch.empty_like(state, memory_format=torch.contiguous_format)
                    for state in tensors[len(source.inputs):count]]
        return results[0] if len(results) == 1 else tuple(results)

    def gradients(heads: Sequence[Any], inputs: Sequence[Any], *, needs: Sequence[int], **attrs: Any) -> list[Any]:
        arrays, seed = as_arrays(inputs)
        return _tensors_over(program_of(attrs).gradients(arrays, [*map(_array, heads)], needs, seed), [*heads, *inputs])

    def second(tops: Sequence[Any], heads: Sequence[Any], inputs: Sequence[Any], *, needs: Sequence[int], **attrs: Any
               ) -> list[Any]:
        arrays, seed = as_arrays(inputs)
        return _tensors_over(program_of(attrs).second(arrays, [*map(_array, heads)], needs, [*map(_array, tops)],
                                                      wanted_inputs(inputs), seed), [*tops, *heads, *inputs])

    def wanted_inputs(inputs: Sequence[Any]) -> list[int]:
        count = len(source.inputs)
        return gradient_inputs([_spec(tensor).dtype for tensor in inputs[:count]], [True] * count)

    operator = torch.library.custom_op(f"{_NAMESPACE}::{name}", forward, mutates_args=(), schema=schema.text)
    backward = torch.library.custom_op(f"{_NAMESPACE}::{name}_backward", gradients, mutates_args=(),
                                       schema=f"(Tensor[] heads, Tensor[] inputs{schema.lists}) -> Tensor[]")
    again = torch.library.custom_op(
        f"{_NAMESPACE}::{name}_second", second, mutates_args=(),
        schema=f"(Tensor[] tops, Tensor[] heads, Tensor[] inputs{schema.lists}) -> Tensor[]")
    _KEPT.extend([operator, backward, again])
    operator.register_fake(fake)
    backward.register_fake(lambda heads, inputs, *, needs, **attrs: [_empty(inputs[i]) for i in needs])
    again.register_fake(lambda tops, heads, inputs, **attrs: [*map(_empty, heads),
                                                              *[_empty(inputs[i]) for i in wanted_inputs(inputs)]])

    def setup_context(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: dict[str, Any] | None = None) -> None:
        ctx.save_for_backward(*inputs)
        ctx.attrs = dict(keyword_only_inputs or {})
        outs = output if isinstance(output, (tuple, list)) else (output,)
        ctx.moves = [out.dtype.is_floating_point for out in outs[:len(source.outputs)]]

    def autograd_backward(ctx: Any, *heads: Any) -> Any:
        inputs = ctx.saved_tensors
        needs = gradient_inputs([_spec(tensor).dtype for tensor in inputs[:len(source.inputs)]], ctx.needs_input_grad)
        out_grads = [head for head, moves in zip(heads, ctx.moves) if moves]
        gradients = dict(zip(needs, backward(out_grads, [*inputs], needs=needs, **ctx.attrs))) if needs else {}
        return tuple([gradients.get(i) for i in range(len(inputs))])

    def setup_backward_context(ctx: Any, inputs: Any, output: Any, keyword_only_inputs: dict[str, Any]) -> None:
        heads, inputs_and_states = inputs
        ctx.save_for_backward(*heads, *inputs_and_states)
        ctx.count, ctx.attrs = len(heads), dict(keyword_only_inputs)

    def second_backward(ctx: Any, tops: Sequence[Any]) -> Any:
        saved = ctx.saved_tensors
        heads, inputs = saved[:ctx.count], saved[ctx.count:]
        inputs_needed = [inputs[i] for i in ctx.attrs["needs"]]
        tops = [torch.zeros_like(like) if top is None else top for top, like in zip(tops, inputs_needed)]
        gradients = again(tops, [*heads], [*inputs], **ctx.attrs)
        places = dict(zip(wanted_inputs(inputs), gradients[ctx.count:]))
        return [*gradients[:ctx.count]], [places.get(i) for i in range(len(inputs))]

    operator.register_autograd(autograd_backward, setup_context=setup_context)
    backward.register_autograd(second_backward, setup_context=setup_backward_context)
    return operator


def _function(source: Source, operator: Any) -> Any:
    """The function for users: the operator itself, unless it has states or draws random values."""
    import torch

    if not source.states and not source.random:
        return operator
    visible = len(source.outputs)

    def function(*args: Any, **attrs: Any) -> Any:
        data, states = args[:len(source.inputs)], args[len(source.inputs):]
        values = [*data, *[state.detach().clone() for state in states]]
        if source.random:
            values.append(torch.randint(0, 2 ** 31 - 1, ()))
        results = operator(*values, **attrs)
        results = results if isinstance(results, (tuple, list)) else (results,)
        for state, moved in zip(states, results[visible:]):
            state.copy_(moved.detach())
        return results[0] if visible == 1 else tuple(results[:visible])

    function.__name__ = function.__qualname__ = source.name
    function.__doc__ = f"The {source.title}: takes {', '.join(source.inputs + source.states)}."
    function.custom_op = operator  # type: ignore[attr-defined]
    return function


def _module(source: Source, function: Any) -> Any:
    """A module that holds the parameters."""
    import torch

    names = [name for name in source.inputs if name in source.parameters]
    tensors = {name: torch.from_dlpack(value.detach()) for name, value in source.parameters.items()}

    missing = [name for name in source.states if name not in tensors]
    if missing:
        raise ArgumentError(f"to_torch: {source.title}: parameters= has no {missing[0]!r}")

    class ConvertedModule(torch.nn.Module):
        """A converted module, with its parameters under their names here."""

        def __init__(self) -> None:
            super().__init__()
            for name in [*names, *source.states]:
                *path, last = name.split(".")
                owner: Any = self
                for part in path:
                    if not hasattr(owner, part):
                        owner.add_module(part, torch.nn.Module())
                    owner = getattr(owner, part)
                if name in source.states:
                    owner.register_buffer(last, tensors[name])
                else:
                    wants = tensors[name].dtype.is_floating_point and getattr(
                        source.parameters[name], "requires_grad", True)
                    owner.register_parameter(last, torch.nn.Parameter(tensors[name], requires_grad=wants))

        def forward(self, *data: Any) -> Any:
            members = [functools.reduce(getattr, name.split("."), self) for name in [*names, *source.states]]
            return function(*data, *members, **({"is_train": self.training} if source.mode else {}))

    ConvertedModule.__name__ = ConvertedModule.__qualname__ = source.name
    return ConvertedModule()


# -------------------------------------------------------------------------------------------------- tensors


def _array(tensor: Any) -> NDArray:
    """An array over the memory of a tensor."""
    return from_dlpack(tensor.detach().resolve_conj().resolve_neg())


def _spec(tensor: Any) -> Spec:
    return Spec(tuple(map(int, tensor.shape)), numpy_dtype(str(tensor.dtype).removeprefix("torch."), "to_torch"))


def _empty(tensor: Any) -> Any:
    import torch

    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _tensors_over(arrays: Sequence[NDArray], tensors: Sequence[Any]) -> list[Any]:
    """Tensors over arrays; an array that shares memory with a given tensor is copied."""
    import torch

    pointers = {tensor.data_ptr() for tensor in tensors if tensor.numel()}
    results = []
    for array in arrays:
        tensor = torch.from_dlpack(array.detach())
        if tensor.numel() and tensor.data_ptr() in pointers:
            tensor = tensor.clone()
        pointers.add(tensor.data_ptr())
        results.append(tensor)
    return results


@functools.cache
def _torch_dtype(dtype: np.dtype) -> Any:
    import torch

    return getattr(torch, dtype.name)


# -------------------------------------------------------------------------------------------------- dialect


@functools.cache
def _dialect() -> Any:
    """PyTorch's operations for translations."""
    import torch

    return _TorchDialect(torch)


class _TorchDialect:
    def __init__(self, torch: Any):
        self._torch = torch
        self.primitives = _primitives(torch)
        self._rule = _rule_class(torch)

    def spec(self, x: Any) -> Spec:
        return _spec(x)

    def cast(self, x: Any, dtype: np.dtype) -> Any:
        return x.to(_torch_dtype(dtype))

    def array(self, numbers: np.ndarray, like: Any) -> Any:
        dtype = _torch_dtype(numbers.dtype)
        return self._torch.tensor(numbers.tolist(), dtype=dtype, device=like.device).reshape(numbers.shape)

    def number(self, value: float, like: Any) -> Any:
        return self._torch.full((), value, dtype=like.dtype, device=like.device)

    def stop(self, x: Any) -> Any:
        return x.detach()

    def reshape(self, x: Any, shape: Shape) -> Any:
        return x.reshape(shape)

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        return x.permute(*axes)

    def broadcast(self, x: Any, shape: Shape) -> Any:
        return x.broadcast_to(shape)

    def sum(self, x: Any, axes: Sequence[int]) -> Any:
        return x.sum([*axes], keepdim=True)

    def prod(self, x: Any, axes: Sequence[int]) -> Any:
        for axis in axes:
            x = x.prod(axis, keepdim=True)
        return x

    def max(self, x: Any, axes: Sequence[int]) -> Any:
        return x.amax([*axes], keepdim=True)

    def min(self, x: Any, axes: Sequence[int]) -> Any:
        return x.amin([*axes], keepdim=True)

    def concat(self, xs: Sequence[Any], axis: int) -> Any:
        return self._torch.cat([*xs], axis)

    def flip(self, x: Any, axes: Sequence[int]) -> Any:
        return x.flip([*axes])

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return self._torch.where(condition, x, y)

    def matmul(self, x: Any, y: Any) -> Any:
        return x @ y

    def softmax(self, x: Any, axis: int) -> Any:
        return x.softmax(axis)

    def log_softmax(self, x: Any, axis: int) -> Any:
        return x.log_softmax(axis)

    def subscript(self, x: Any, key: tuple[Any, ...]) -> Any:
        return x[key]

    def elementwise(self, forward: Callable[..., Any], pull: Callable[..., Any], xs: Sequence[Any]) -> Any:
        def backward(heads: Sequence[Any], xs: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
            return [pull(i, heads[0], xs, outs[0]) for i in range(len(xs))]

        return self._apply_rule(lambda *xs: [forward(*xs)], backward, *xs)[0]

    def with_gradient(self, forward: Callable[..., Sequence[Any]], backward: Callable[..., Sequence[Any]],
                      xs: Sequence[Any]) -> Sequence[Any]:
        return self._apply_rule(forward, backward, *xs)

    def _apply_rule(self, *args: Any) -> Any:
        if self._torch._C._are_functorch_transforms_active():
            raise ArgumentError("to_torch: torch.func differentiates no operator of torch.library that has a gradient "
                                "of its own: call torch.autograd.grad or backward(), or mx.grad, mx.hessian, mx.jvp "
                                "of the operator here")
        return self._rule.apply(*args)


def _rule_class(torch: Any) -> Any:
    """The class of PyTorch's functions whose first argument computes them, and whose second is their gradient."""

    class Rule(torch.autograd.Function):
        """A function with its own gradient, both traced by PyTorch."""

        generate_vmap_rule = True

        @staticmethod
        def forward(forward: Any, backward: Any, *xs: Any) -> Any:
            return tuple([each.clone() if any(each is x for x in xs) else each for each in forward(*xs)])

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _, ctx.rule, *xs = inputs
            ctx.count = len(xs)
            ctx.save_for_backward(*xs, *output)

        @staticmethod
        def backward(ctx: Any, *heads: Any) -> Any:
            saved = ctx.saved_tensors  # read once: a checkpoint computes them at each reading
            xs, outs = saved[:ctx.count], saved[ctx.count:]
            gradients = iter(ctx.rule(heads, xs, outs))
            return None, None, *[next(gradients) if x.dtype.is_floating_point else None for x in xs]

    return Rule


def _primitives(torch: Any) -> dict[str, Callable[..., Any]]:
    """PyTorch's functions, by the names of element-wise instructions."""

    def logical(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: function(*xs).to(xs[0].dtype)

    def largest(x: Any, y: Any) -> Any:
        return torch.where((x >= y) | (x != x), x, y)

    def smallest(x: Any, y: Any) -> Any:
        return torch.where((x <= y) | (x != x), x, y)

    def sign(x: Any) -> Any:
        return torch.where(x != x, x, torch.sign(x))

    return {
        **{name: getattr(torch, name) for name in (
            "floor", "ceil", "trunc", "add", "subtract", "multiply", "divide", "negative", "square", "reciprocal",
            "sqrt", "hypot", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "arcsin",
            "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "erf", "erfinv")},
        **{name: logical(getattr(torch, word)) for name, word in (
            ("greater", "gt"), ("greater_equal", "ge"), ("less", "lt"), ("less_equal", "le"), ("equal", "eq"),
            ("not_equal", "ne"), ("logical_and", "logical_and"), ("logical_or", "logical_or"),
            ("logical_xor", "logical_xor"), ("logical_not", "logical_not"))},
        "absolute": torch.abs, "sign": sign, "positive": sign, "power": torch.pow, "mod": torch.remainder,
        "maximum": largest, "minimum": smallest, "gammaln": torch.lgamma, "polygamma0": torch.digamma,
        "where": lambda c, x, y: torch.where(c != 0, x, y)}
