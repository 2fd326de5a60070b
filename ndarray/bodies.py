"""Bodies: traced users' operators, as nodes of graphs, and as functions of raw arrays in eager calls.

A traced operator is called once, with values that have a shape and a dtype but no elements. If it has no gradient rule,
its gradient is the derivative of the recorded operators. In a graph, their nodes replace the operator
(``opreg.symbol.passes.inline``). An eager call runs them one by one on raw arrays. The `Body` that does this is
cached for calls with the same attributes, specs and mode, until a value changes that the user's code has read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opreg.core import generators
from opreg.core.backward_graph import grow
from opreg.core.graph import Entry, Node, reachable
from opreg.core.invalidation import EDITION, keep, operator_cache
from opreg.core.launch import Call, reference
from opreg.core.mode import MODE, Recording, quiet
from opreg.core.numpy_random import global_state
from opreg.core.op import Op
from opreg.core.registry import ops
from opreg.core.spec import Spec, is_floating, is_known
from opreg.core.subgraph import Subgraph, rule_graph
from opreg.core.tracing import NeedsNumbers, RuleTracer, TracedValue, TraceError
from opreg.custom.gradient import COMPUTED
from opreg.errors import ArgumentError, NotDifferentiableError, Where, note
from opreg.typing import Array

from .context import Context
from .eager import BODY, CachedUse, infer_outputs
from .ndarray import wrap
from .traced import BodyTracer, TracedArray, wrap_traced
from .traced_numpy import INSTEAD
from .traced_rules import NoRecipe, Recipe, one_by_one

__all__ = ["Body", "Traced", "Use", "body_runner", "trace_body"]

_FLOAT32 = np.dtype(np.float32)


class Use:
    """One use of a traced operator.

    Attributes
    ----------
    name, tags, where
        The name, the tags and the line of its node.
    ctx, is_train
        The device and the mode.
    ins, outs : list of Spec
        Specs of inputs, auxiliary states included, and of outputs.
    memo : dict
        Stores users' operators between forward and backward.
    """

    def __init__(self, name: str, tags: Mapping[str, str], where: Where | None, ctx: Context, is_train: bool,
                 ins: Sequence[Spec], outs: Sequence[Spec], memo: dict[Any, Any]):
        self.name, self.tags, self.where, self.ctx, self.is_train = name, tags, where, ctx, is_train
        self.ins, self.outs, self.memo = ins, outs, memo


class Traced(NamedTuple):
    """The trace of an operator: its body, the variables of its inputs, and the entries of its outputs."""

    body: BodyTracer
    slots: list[Entry]
    heads: list[Entry]


def trace_body(op: Op, attrs: Any, use: Use, before: Traced | None = None) -> Traced:
    """Trace the body of an operator. The derivative of a body is traced after the trace ``before`` of that body."""
    body = BodyTracer(use.name, use.tags, use.ctx) if before is None else before.body.extend()
    earlier_slots = [] if before is None else before.slots
    names = op.signature.inputs(attrs)
    slots = [body.variable(f"{use.name}_{name}", spec)
             for name, spec in zip(names[:len(names) - len(earlier_slots)], use.ins)] + earlier_slots
    try:
        heads = _heads(op, attrs, use, body, slots, before)
    except (ArgumentError, TraceError) as error:
        line = f", made at {use.where}" if use.where else ""
        note(error, f"operator {op.name!r}, node {use.name!r}{line}, is traced: its body is called once, with values "
                    f"that have a shape and a dtype, but no elements")
        raise
    return Traced(body, slots, heads)


def _heads(op: Op, attrs: Any, use: Use, body: BodyTracer, slots: list[Entry], before: Traced | None = None
              ) -> list[Entry]:
    if attrs.derived:
        return _trace_derivative(attrs, use, body, slots, before)
    return _call_rule(op, attrs, use, body, slots)


def _call_rule(op: Op, attrs: Any, use: Use, body: BodyTracer, slots: list[Entry]) -> list[Entry]:
    """Call the user's method with traced values."""
    ins = [body.value(slot) for slot in slots]
    outs = [TracedArray(body, spec, None) for spec in use.outs]
    call = Call(op, attrs, list(ins), list(outs), ["write"] * len(outs), use.ctx.xp, use.ctx, use.is_train, None,
                use.outs, None, wrap_traced, use.memo)
    before = _randomness(use.ctx)
    body.mode = use.is_train
    with Recording(True, use.is_train), use.ctx:
        for step in reference(call).steps()[0]:
            step()
    body.mode = None
    if _randomness(use.ctx) != before:
        raise TraceError(f"the body draws random numbers that would be the same in every run. {INSTEAD}")
    first = len(op.signature.arguments(attrs))
    if any(value.entry != slot for value, slot in zip(ins[first:], slots[first:])):
        raise TraceError("the body changes an auxiliary state, which only an untraced body can do: leave traced off")
    return [body.zeros(out.spec) if out.unwritten else out.entry for out in outs]


def _trace_derivative(attrs: Any, use: Use, body: BodyTracer, slots: list[Entry], before: Traced | None
                      ) -> list[Entry]:
    """Trace the derivative of another operator's body."""
    inner, count = attrs.inner, attrs.inner.op.signature.visible(attrs.inner)
    tops, slots = slots[:count], slots[count:]
    forward = Use(use.name, use.tags, use.where, use.ctx, use.is_train, use.ins[count:], use.ins[:count], use.memo)
    heads = _heads(inner.op, inner, forward, body, slots) if before is None else before.heads
    tracer = RuleTracer(body.nodes, body.specs)
    gradients = _gradients(inner.op, tracer, body, [(head, tracer.value(top)) for top, head in zip(tops, heads)], slots,
                           attrs.needs, use.is_train)
    body.take_new()
    return [body.zeros(spec) if value is None else body.cast(value._entry, spec.dtype)
            for value, spec in zip(gradients, use.outs)]


def _gradients(op: Op, tracer: RuleTracer, body: BodyTracer, seeds: Sequence[tuple[Entry, TracedValue | None]],
               slots: Sequence[Entry], needs: Sequence[bool], is_train: bool) -> list[TracedValue | None]:
    """Gradients of the inputs of a body that want one; None for others, and for integers of a user's operator."""
    gradients = grow(tracer, body.order, seeds, {node for (node, _), need in zip(slots, needs) if need}, is_train)
    built_in = op.where is None  # integers have gradients as in operators that are no bodies
    return [gradients.get(slot) if need and (built_in or is_floating(body.spec(slot).dtype or _FLOAT32)) else None
            for slot, need in zip(slots, needs)]


def _randomness(ctx: Context) -> tuple[object, ...]:
    """The states of the global random generators, which show whether the body has drawn from them."""
    state = global_state()
    generator = generators.generator(ctx.backend_name, ctx.device_id)
    return state[1][:4].tobytes(), state[2:4], repr(getattr(getattr(generator, "bit_generator", None), "state", None))


@COMPUTED.provide
def body_runner(call: Call) -> Callable[[], None]:
    """A function that runs a traced operator on the arrays of a call, operator by operator."""
    op, attrs, ctx = call.op, call.attrs, call.ctx
    use = Use(op.name, {}, None, ctx, call.is_train, [Spec(array.shape, array.dtype) for array in call.ins], call.specs,
              call.memo)
    body, slots, heads = trace_body(op, attrs, use)
    inputs = [*slots, *[(node, 0) for node in body.arrays]]
    graph = Subgraph([node for node in body.nodes if node.op is not None], inputs, heads)
    drawing = next((inner.name for inner, *_ in graph.steps if inner.traits.random and call.is_train), None)
    if drawing is not None:
        raise NotDifferentiableError(f"operator {op.name.removeprefix('_gradient_')!r} draws random numbers with "
                                     f"{drawing}, which an eager backward would draw anew: give it a backward, or use "
                                     "it in a graph")

    def compute() -> None:
        arrays = [*call.ins, *[array._data for array in body.arrays.values()]]
        for _ in one_by_one(graph, ctx, arrays, wrap):
            pass
        for out, place in zip(call.outs, graph.results):
            if out is not None and place is not None:
                out[...] = arrays[place]

    return compute


# ------------------------------------------------------------------------------------------------ eager calls


class Body(CachedUse):
    """The trace of an operator for inputs of given specs, as functions of raw arrays, with its gradient.

    Called with raw arrays, it returns the outputs and then *residuals*: intermediate results that gradients read. The
    constructor runs the body once; ``results`` are the results for its arrays.

    Parameters
    ----------
    recorded : bool
        Whether the results are recorded for a gradient. If not, there are no residuals.

    Attributes
    ----------
    recipe : Recipe
        The functions of raw arrays. Its inputs are those of the operator and the arrays that are ``outside``.
    outside : list of arrays
        The arrays that the body holds.
    """

    attrs: Any
    _first_gradient: tuple[Any, tuple[list[Entry | None], list[Entry | None], list[Node]]] | None
    __slots__ = ("op", "attrs", "ctx", "is_train", "shapes", "count", "visible", "recipes", "outside", "constants",
                 "results", "_traced", "_given", "_outputs", "recipe", "_first_gradient")
    single, takes_out, wrap = None, False, staticmethod(wrap)

    def __init__(self, op: Op, attrs: Any, arrays: Sequence[Array], ctx: Context, is_train: bool, recorded: bool):
        self.op, self.attrs, self.ctx, self.is_train = op, attrs, ctx, is_train
        shapes, dtypes = infer_outputs(op, attrs, arrays)
        if not all(map(is_known, shapes)):
            raise NoRecipe
        use = Use(op.name, {}, None, ctx, is_train, [Spec(array.shape, array.dtype) for array in arrays],
                  list(map(Spec, shapes, dtypes)), {})
        self._traced = traced = trace_body(op, attrs, use)
        body = traced.body
        constants = [(node, 0) for node in body.arrays]
        self.outside = [array._data for array in body.arrays.values()]
        self.constants = () if attrs.has_rule else self.outside
        self._given = [*traced.slots, *constants]
        # Each output has memory of its own, also if the body returned an input, or one value twice.
        self._outputs = [body.single("_copy", head) if head in self._given or head in traced.heads[:i] else head
                         for i, head in enumerate(traced.heads)]
        self.count, self.visible = len(traced.heads), op.signature.visible(attrs)
        self.recipes, self._first_gradient = {} if recorded else None, None
        if recorded:
            self._outputs += self._residuals(arrays)
        graph = Subgraph(reachable(body.nodes, self._outputs), self._given, self._outputs)
        with Recording(False, is_train):
            values = [*arrays, *self.outside]
            self.recipe = Recipe(graph, ctx, values, wrap)
        self.results = [values[place] for place in graph.results]  # type: ignore[index]
        self.shapes = shapes

    def __call__(self, arrays: Sequence[Array], out: Array | None = None) -> list[Array]:
        return list(self.recipe([*arrays, *self.outside]))  # type: ignore[arg-type]  # there are no None

    def rule(self, out_grads: tuple[bool, ...], needs: tuple[bool, ...], is_train: bool,
             specs: Callable[[], Sequence[Spec]]) -> Subgraph:
        """The gradient as a subgraph: the user's rule, or the derivative of the body."""
        if self.attrs.has_rule:
            return rule_graph(self.op, self.attrs, out_grads, needs, is_train, specs())
        # the first graph has gradients of all inputs, which are usually requested
        first, self._first_gradient = self._first_gradient, None
        key = out_grads, needs, is_train
        tops, gradients, nodes = first[1] if first is not None and first[0] == key else self._gradient(*key)
        slots = self._traced.slots
        inputs: list[Entry | None] = [*tops, *slots, *self._outputs, *self._given[len(slots):]]
        again = reachable(self._traced.body.nodes, [entry for node in nodes for entry in node.inputs],
                          known_entries={*self._outputs, *self._given})
        if any(node.op.traits.random for node in again if node.op is not None):
            raise NoRecipe  # a second run would draw other values
        return Subgraph([*again, *nodes], inputs, gradients)

    def _gradient(self, out_grads: Sequence[bool], needs: Sequence[bool], is_train: bool
                  ) -> tuple[list[Entry | None], list[Entry | None], list[Node]]:
        """The derivative of the body: output gradients, gradients of the inputs, and the nodes between."""
        body, slots, _ = self._traced
        tracer = RuleTracer(known_specs=body.specs)
        tops: list[Entry | None] = []
        seeds: list[tuple[Entry, TracedValue | None]] = []
        for i, head in enumerate(self._outputs[:self.count]):
            top = tracer.variable(f"gradient {i}", body.spec(head)) if out_grads[i] else None
            tops.append(top)
            if top is not None:
                seeds.append((head, tracer.value(top)))
            elif self.op.loss(self.attrs):  # a loss needs no output gradient
                seeds.append((head, ops.ones_like(tracer.value(head))))
        results: list[Entry | None] = []
        for slot, value in zip(slots, _gradients(self.op, tracer, body, seeds, slots, needs, is_train)):
            dtype = body.spec(slot).dtype
            if value is not None and tracer.spec(value._entry).dtype != dtype:
                value = ops.Cast(value, dtype=dtype)
            results.append(None if value is None else value._entry)
        return tops, results, reachable(tracer.nodes, [entry for entry in results if entry is not None])

    def _residuals(self, arrays: Sequence[Array]) -> list[Entry]:
        """Intermediate results that the gradients of all inputs read."""
        if self.attrs.has_rule:
            return []
        key = (True,) * self.count, tuple([is_floating(array.dtype) for array in arrays]), self.is_train
        try:
            gradient = self._gradient(*key)
        except (NeedsNumbers, NotDifferentiableError, TraceError):  # raised again when a gradient is requested
            self.recipes = None
            return []
        self._first_gradient = key, gradient
        body_nodes, available = set(self._traced.body.nodes), {*self._given, *self._outputs}
        return list(dict.fromkeys(entry for node in gradient[2] for entry in node.inputs
                                  if entry[0] in body_nodes and entry not in available))


_BODIES = operator_cache(1024, "bodies of traced operators")


@BODY.provide
def body_of(op: Op, attrs: Any, arrays: Sequence[Array], ctx: Context) -> tuple[Body, list[Array]] | None:
    """Run a traced operator by its cached body, or return None if the user's code must be called."""
    version = attrs.version(ctx, arrays)
    if version is None:
        return None
    mode = MODE.__dict__["current"]()
    kind: list[object] = [op, version, ctx, mode.training, bool(mode.recording)]
    for array in arrays:
        kind += array.shape, array.dtype
    key = tuple(kind)
    body = _BODIES[key]
    if body is None:
        return _trace_first_call(op, attrs, arrays, ctx, key)
    if body is _REFUSED:
        return None
    try:
        return body, list(quiet(body.recipe, [*arrays, *body.outside]))
    except Exception as error:
        note(error, f"in operator {op.op_type or op.name!r}")
        raise


#: The cache entry of a body that cannot be cached.
_REFUSED: Any = object()


def _trace_first_call(op: Op, attrs: Any, arrays: Sequence[Array], ctx: Context, key: tuple[object, ...]
                      ) -> tuple[Body, list[Array]] | None:
    """Trace a body at the first call of its kind, or return None if it cannot be traced. The user's code is then
    called, and raises the clearer error."""
    edition, mode = EDITION[0], MODE.current()
    try:
        body: Any = Body(op, attrs, arrays, ctx, mode.training, bool(mode.recording))
    except (NoRecipe, ArgumentError, TraceError, NeedsNumbers, NotDifferentiableError):
        body = _REFUSED
    except Exception:  # the next run may succeed, so the failure is not cached
        return None
    keep(_BODIES, key, body, edition)
    if body is _REFUSED:
        return None
    results, body.results = body.results, None
    return body, results
