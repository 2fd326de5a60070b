"""Runs one use of an operator eagerly and in an executor; results are NumPy arrays.

The tests of built-in operators and the check of users' operators share it.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from opreg.ndarray import NDArray, array, cpu
from opreg.ndarray.autograd import backward, grad
from opreg.ndarray.context import Context
from opreg.ndarray.function import invoke
from opreg.symbol import Group, Symbol, Variable
from opreg.symbol.symbol import create

from ..core import generators
from ..core.mode import Recording
from ..core.op import Op
from ..core.parameters import signature_of
from ..core.registry import get
from ..core.rules import as_list
from ..core.spec import is_floating, is_numpy_float
from ..errors import OpError

__all__ = ["Heads", "Result", "Subject", "Use", "bind", "eager", "graph", "heads", "parameter_names", "second",
           "symbol"]

#: Gradients of the outputs; None for an output that is not floating, and None instead of the list for a loss.
Heads = Sequence[np.ndarray | None] | None


class Subject:
    """A callable and its inputs, with one interface to run it in every way.

    Attributes
    ----------
    title : str
        Its title in reports.
    arrays : list of array
        Inputs: arguments, then states.
    train : bool
        Whether it runs as in training.
    stochastic : bool
        Whether it draws random numbers; generators are seeded before each run then.
    seeder, generator : str
        The function that seeds the generators, and the functions that draw from them, as reports name them.
    body, gradient_code, top : str
        Names for reports: of the user's code that computes the outputs, of the code that computes gradients, and of
        the output gradient in it.
    no_graph : str
        The reason why it cannot be part of a graph; empty if it can.
    refusals : tuple of classes
        Exceptions by which it may refuse inputs without elements.
    second_order_change : str
        The change that reports suggest if a second derivative is wrong.
    """

    title: str
    arrays: list[np.ndarray]
    train: bool
    stochastic = False
    seeder, generator = "mx.random.seed", "mx.nd.random, as in mx.nd.random.uniform(shape=x.shape)"
    body: str
    gradient_code: str
    top: str
    no_graph = ""
    refusals: tuple[type[Exception], ...] = (OpError, ValueError)
    second_order_change = ("write the gradient with operators on its arguments; values that left the computation "
                           "(asnumpy, detach, BlockGrad) count as constants")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple([f"input {i}" for i in range(len(self.arrays))])

    @property
    def count(self) -> int:
        """Number of inputs that are arguments; the others are states."""
        return len(self.arrays)

    @property
    def argument_count(self) -> int:
        """Number of inputs that the caller passes. They are followed by the weights that the subject owns."""
        return self.count

    @property
    def wanted(self) -> list[int]:
        """The inputs that can have a gradient."""
        return [i for i, each in enumerate(self.arrays[:self.count]) if is_floating(each.dtype)]

    @property
    def loss(self) -> bool:
        """Whether backward needs no output gradient."""
        return False

    def on_arrays(self, arrays: Sequence[np.ndarray]) -> Self:
        """A copy of this subject with other inputs."""
        copied = copy.copy(self)
        copied.arrays = list(arrays)
        return copied

    def seed(self) -> None:
        """Seed the generators, so that random values are the same in every run."""
        if self.stochastic:
            generators.seed(1)

    def restore_generators(self) -> contextlib.AbstractContextManager[object]:
        """A context that restores, at its end, generators of other libraries that the subject may draw from."""
        return contextlib.nullcontext()

    def in_mode(self, train: bool) -> Self:
        """A copy of this subject in training mode, or not."""
        copied = self.on_arrays(self.arrays)
        copied.train = train
        return copied

    def cast(self, dtype: Any) -> Self:
        """A copy of this subject with floating inputs in another dtype."""
        return self.on_arrays([each.astype(dtype) if is_numpy_float(each.dtype) else each for each in self.arrays])

    def invoke(self, values: Sequence[Any], ctx: Context, out: Sequence[NDArray] | None = None) -> Any:
        """Call it with arrays."""
        raise NotImplementedError

    def run(self, head_grads: Heads = None, grads: bool = False, raw: Sequence[np.ndarray] | None = None,
            ctx: Context | None = None, between: Callable[[], object] | None = None) -> Result:
        """Run it as users do; with ``grads`` also backward from the given head gradients.

        ``raw`` replaces the inputs by arrays of any memory layout; ``between`` is called between forward and backward.
        """
        ctx = ctx or cpu()
        raw = None if raw is None else [NDArray(each, ctx) for each in raw]  # type: ignore[misc]
        return eager(self, ctx, head_grads, grads, raw, between=between)  # type: ignore[arg-type]

    def second(self, head_grads: Heads, weights: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Second derivatives by input: the gradients of a weighted sum of first derivatives."""
        return second(self, head_grads or [], weights)[0]


@dataclass
class Use(Subject):
    """An operator with attributes and inputs: arguments, then auxiliary states."""

    op: Op
    arrays: list[np.ndarray]
    given: dict[str, Any]
    train: bool = True
    attrs: dict[str, Any] = field(init=False)

    body, gradient_code, top = "the function", "the gradient rule", "g"  # names for a function; a Prop has methods

    def __post_init__(self) -> None:
        attributes = dict(self.given)
        if self.op.signature.variadic and self.op.signature.variadic not in attributes:
            attributes[self.op.signature.variadic] = len(self.arrays)
        attributes = self.op.signature.with_given_inputs(dict(zip(self.op.signature.input_names, self.arrays))
                                                         if self.op.signature.optional else {}, attributes)
        self.attrs = self.op.complete(attributes)

    @classmethod
    def of(cls, row: Any, dtype: str | None = None) -> Use:
        """Make a use of a row's operator, attributes and inputs; floating inputs take ``dtype``, if it is given."""
        use = cls(get(row.op), [np.asarray(each) for each in row.inputs], dict(row.attrs), row.train)
        return use if dtype is None else use.cast(dtype)

    def cast(self, dtype: Any) -> Use:
        """A copy with floating inputs in another dtype, or in the dtype that the operator infers for them."""
        floats = [i for i, each in enumerate(self.arrays) if is_numpy_float(each.dtype)]
        if not floats:
            return self
        known_dtypes = [np.dtype(dtype) if i == floats[0] else None if i in floats else each.dtype
                        for i, each in enumerate(self.arrays)]
        found, _ = self.op.infer_dtypes(known_dtypes, [None] * len(self.op.signature.outputs(self.attrs)), self.attrs)
        arrays = list(self.arrays)
        for i in floats:
            kind = found[i]
            arrays[i] = arrays[i].astype(kind if kind is not None and is_numpy_float(kind) else dtype)
        return self.on_arrays(arrays)

    def on_arrays(self, arrays: Sequence[np.ndarray]) -> Use:
        """The same use of other inputs."""
        use = type(self)(self.op, list(arrays), self.given, self.train)
        use.stochastic = self.stochastic
        return use

    @property
    def title(self) -> str:  # type: ignore[override]
        """Its name in reports."""
        return f"operator {self.op.op_type or self.op.name!r}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.op.signature.inputs(self.attrs)

    @property
    def count(self) -> int:
        """Number of inputs that are arguments; the others are auxiliary states."""
        return len(self.op.signature.arguments(self.attrs))

    @property
    def wanted(self) -> list[int]:
        """The inputs that can have a gradient: floating arguments that are not written in place."""
        return [i for i in super().wanted if i not in self.op.traits.mutates]

    @property
    def loss(self) -> bool:
        """Whether backward needs no output gradient."""
        return bool(self.op.loss(self.attrs))

    def call(self, values: Sequence[Any], ctx: Any = None) -> tuple[tuple, dict[str, Any]]:
        """Arguments and keywords of a call, as users write it; array attributes are moved to the context."""
        attrs = self.given if ctx is None else {name: _on_device(value, ctx) for name, value in self.given.items()}
        if self.op.signature.variadic or self.op.signature.per_instance:
            return tuple(values), dict(attrs)
        return (), {**dict(zip(self.names, values)), **attrs}

    def invoke(self, values: Sequence[Any], ctx: Context, out: Sequence[NDArray] | None = None) -> Any:
        """Call it with arrays, as users write it."""
        args, keywords = self.call(values, ctx)
        if out is not None:
            keywords["out"] = list(out)
        return invoke(self.op, args, {**keywords, "ctx": ctx})


def parameter_names(function: Callable[..., Any], count: int, skipped: int = 0) -> tuple[str, ...]:
    """Names of the first positional parameters of a function, after the skipped ones; a number where a parameter has no
    name."""
    names = []
    try:
        for parameter in list(signature_of(function).parameters.values())[skipped:]:
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
    except (TypeError, ValueError):
        pass
    return (*names[:count], *[f"input {i}" for i in range(len(names), count)])


@dataclass
class Result:
    """Outputs, gradients by input number, and all inputs after the run."""

    outs: list[np.ndarray]
    after: list[np.ndarray]
    grads: dict[int, np.ndarray] = field(default_factory=dict)


def _on_device(value: Any, ctx: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_on_device(part, ctx) for part in value)
    return ctx.backend.asarray(value, device=ctx.device_id) if isinstance(value, np.ndarray) else value


def heads(use: Subject, outs: Sequence[np.ndarray]) -> list[np.ndarray | None] | None:
    """Random gradients for the outputs; None for an output that is not floating, and None instead of the list for a
    loss."""
    if use.loss:
        return None
    rng = np.random.default_rng(1)
    return [rng.standard_normal(out.shape).astype(out.dtype) if is_floating(out.dtype) else None for out in outs]


def _differentiable(outs: Sequence[NDArray], head_grads: Sequence[Any] | None, ctx: Any) -> tuple[list, list | None]:
    """The outputs that have gradients, and the gradients given for them."""
    places = [i for i, out in enumerate(outs) if out._entry is not None and is_floating(out._data.dtype)]
    if head_grads is None:
        return [outs[i] for i in places], None
    return [outs[i] for i in places], [array(head_grads[i], ctx, head_grads[i].dtype) for i in places]


def eager(use: Subject, ctx: Any = None, head_grads: Sequence[np.ndarray | None] | None = None, grads: bool = False,
          raw: Sequence[NDArray] | None = None, out: Sequence[NDArray] | None = None,
          between: Callable[[], object] | None = None) -> Result:
    """Run eagerly; with ``grads`` also backward from the given head gradients."""
    ctx = ctx or cpu()
    values = list(raw) if raw is not None else [array(value, ctx, value.dtype) for value in use.arrays]
    if grads:
        for i in use.wanted:
            values[i].attach_grad()
    use.seed()
    with Recording(grads, use.train):
        outs = as_list(use.invoke(values, ctx, out))
    if between is not None:
        between()
    gradients = {}
    if grads:
        targets, arrived = _differentiable(outs, head_grads, ctx)
        if targets:
            backward(targets, arrived, train_mode=use.train)
        gradients = {i: _gradient(values[i]) for i in use.wanted}
    return Result([output.asnumpy() for output in outs], [value.asnumpy() for value in values], gradients)


def _gradient(value: NDArray) -> np.ndarray:
    assert value.grad is not None
    return value.grad.asnumpy()


def second(use: Subject, head_grads: Sequence[np.ndarray | None], weights: dict[int, np.ndarray]) -> tuple[dict, dict]:
    """Second derivatives, with respect to inputs and to output gradients: gradients of a weighted sum of first
    derivatives."""
    values = [array(each, None, each.dtype) for each in use.arrays]
    for i in use.wanted:
        values[i].attach_grad()
    use.seed()
    with Recording(True, use.train):
        targets, arrived = _differentiable(as_list(use.invoke(values, cpu())), head_grads, cpu())
        for output in arrived or ():
            output.attach_grad()
        first = grad(targets, [values[i] for i in weights], arrived, create_graph=True, train_mode=use.train)
    live = [(g, array(w, None, w.dtype)) for g, w in zip(first, weights.values()) if g._entry is not None]
    if live:
        backward([g for g, _ in live], [w for _, w in live], train_mode=use.train)
    return ({i: _gradient(values[i]) for i in use.wanted},
            {i: output.grad.asnumpy() for i, output in enumerate(arrived or ())})


def symbol(use: Use, around: bool = False, ctx: Any = None) -> Symbol:
    """The operator as a symbol of variables; ``around`` adds nodes in front of it and after it."""
    values: list[Any] = [Variable(name) for name in use.names]
    count = len(use.op.signature.arguments(use.attrs))
    if around:
        moved = [i < count and i not in use.op.traits.mutates and is_numpy_float(value.dtype)
                 for i, value in enumerate(use.arrays)]
        values = [value + 0.0 if apart else value for value, apart in zip(values, moved)]
    args, keywords = use.call(values, ctx)
    net = create(use.op, args, {**keywords, "name": "op"}, "op")
    if around:
        kinds = [spec.dtype for spec in use.op.specs(use.arrays, use.attrs)]
        net = Group([head if kind is None or not is_numpy_float(kind) else head + 0.0
                     for head, kind in zip(net, kinds)])
    return net


def bind(use: Use, ctx: Any = None, reqs: dict[int, str] | None = None, before: dict[int, np.ndarray] | None = None,
         around: bool = False) -> Any:
    """An executor of the operator, with requests by input number and the values that gradients hold before."""
    ctx = ctx or cpu()
    names, count = use.names, len(use.op.signature.arguments(use.attrs))
    values = {name: array(each, ctx, each.dtype) for name, each in zip(names, use.arrays)}
    grads, requests = {}, {}
    for i, req in (reqs or {}).items():
        state = (before or {}).get(i, np.zeros_like(use.arrays[i]))
        grads[names[i]], requests[names[i]] = array(state, ctx, state.dtype), req
    return symbol(use, around, ctx).bind(ctx, {name: values[name] for name in names[:count]}, grads, requests,
                                         {name: values[name] for name in names[count:]})


def graph(use: Use, ctx: Any = None, head_grads: Sequence[np.ndarray | None] | None = None,
          reqs: dict[int, str] | None = None, before: dict[int, np.ndarray] | None = None, around: bool = False,
          grads: bool = False) -> Result:
    """Run the operator in an executor; ``grads`` says whether backward runs, too."""
    ctx = ctx or cpu()
    if grads and reqs is None:
        reqs = dict.fromkeys(use.wanted, "write")
    executor = bind(use, ctx, reqs, before, around)
    use.seed()
    outs = [output.asnumpy() for output in executor.forward(is_train=use.train)]
    gradients = {}
    if grads:
        executor.backward(None if head_grads is None else [
            array(np.zeros_like(out) if each is None else each, ctx, out.dtype) for each, out in zip(head_grads, outs)])
        gradients = {i: executor.grad_dict[use.names[i]].asnumpy() for i in reqs or ()}
    by_name = {**executor.arg_dict, **executor.aux_dict}
    return Result(outs, [by_name[name].asnumpy() for name in use.names], gradients)
