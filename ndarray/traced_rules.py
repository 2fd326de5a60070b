"""Recipes: subgraphs as lists of functions of raw arrays, for eager calls and above all for gradients.

When a gradient rule is first used for given attributes and specs, its subgraph is run operator by operator. The kernels
that run are cached as the *recipe*, which computes later gradients without NDArrays, attributes or checks. Some rules
are called each time instead: those that do more than call operators, those of users' operators that are not traced, and
all rules while gradients are recorded. Bodies of traced operators are recipes, too (``bodies.py``).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from opreg.core.invalidation import EDITION
from opreg.core.mode import MODE, is_already_entered
from opreg.core.spec import Spec, is_known
from opreg.core.subgraph import Subgraph
from opreg.core.tracing import NeedsNumbers, TraceError
from opreg.errors import NotDifferentiableError
from opreg.typing import Array

from .eager import CachedUse, OpenUse, Prepared, run

if TYPE_CHECKING:
    from .context import Context
    from .gradient_target import GradientTarget

__all__ = ["Recipe", "NoRecipe", "differentiate", "one_by_one", "reads"]


class NoRecipe(Exception):
    """An operator cannot be part of a recipe."""


#: A function of raw arrays; a function that picks its arguments from a list of arrays; whether the first function takes
#: and returns lists; and the indices of arrays that no later step reads.
_Step: TypeAlias = tuple[Callable[..., Any], Callable[[list[Any]], Sequence[Any]], bool, Sequence[int]]


class Recipe:
    """A subgraph as functions of raw arrays with given specs.

    A call takes a list of raw arrays, the inputs of the subgraph, and returns an array or None for each result. It
    modifies the list. ``targets`` has arrays to compute results into, by the index of the step. For a gradient, inputs
    are output gradients, inputs and outputs of the operator, and results are input gradients.

    Parameters
    ----------
    graph : Subgraph
        The subgraph.
    ctx : Context
        The device.
    arrays : list of arrays
        The inputs of the first run, which the constructor makes. The results of all steps are appended.
    wrap : function or None
        Makes an NDArray, for users' operators; None where there are none.

    Attributes
    ----------
    target_results : list of tuple
        Results that can be computed in a gradient target: the index of the result, and that of its step.
    """

    __slots__ = ("_steps", "_results", "target_results")

    def __init__(self, graph: Subgraph, ctx: Context, arrays: list[Any], wrap: Any):
        self._steps: list[_Step] = []
        last = graph.last_uses()
        given = len(arrays)
        owners = [*range(given)]  # for each array the index of the one that owns its memory
        taken = {*graph.results}  # indices of arrays whose memory is a result's
        writers: dict[int, int] = {}  # steps that take ``out``, by the index of their result
        if any(op.traits.states or op.traits.mutates or (op.kernels[0].bound and not op.traits.traced)
               for op, *_ in graph.steps):
            raise NoRecipe
        for (_, _, _, places, count), prepared in zip(graph.steps, one_by_one(graph, ctx, arrays, wrap)):
            if not isinstance(prepared, CachedUse) or not all(map(is_known, prepared.shapes)):
                raise NoRecipe
            owners += range(len(owners), len(arrays))
            place, single, reshape = len(arrays) - 1, prepared.single, None
            owner = owners[places[0]] if places else place
            # Results share no memory with each other or with the arguments.
            if places and count == 1 and (place not in taken or (owner >= given and owner not in taken)):
                reshape = _reshape(prepared, arrays[places[0]], arrays[place])
            if reshape is not None:
                single, owners[place] = reshape, owner
                if place in taken:
                    taken.add(owner)
            elif single is not None and prepared.takes_out:
                writers[place] = len(self._steps)
            self._steps.append((single or prepared, _picker(places), single is None, last[len(self._steps)]))
        none = len(arrays)  # the index of None, one past those of all arrays
        self._results = _picker([none if place is None else place for place in graph.results])
        self.target_results = [(i, writers[place]) for i, place in enumerate(graph.results)
                               if place in writers and graph.results.count(place) == 1]

    def __call__(self, arrays: list[Any], targets: Mapping[int, GradientTarget] | None = None
                 ) -> Sequence[Array | None]:
        for function, pick, many, done in self._steps if targets is None else self._steps_into(targets):
            if many:
                arrays += function(pick(arrays))
            else:
                arrays.append(function(*pick(arrays)))
            for place in done:
                arrays[place] = None
        arrays.append(None)
        return self._results(arrays)

    def _steps_into(self, targets: Mapping[int, GradientTarget]) -> list[_Step]:
        """The steps; a step whose index is in ``targets`` writes its result into that gradient target."""
        steps = self._steps.copy()
        for number, target in targets.items():
            function, pick, many, done = steps[number]
            steps[number] = functools.partial(target.fill, function), pick, many, done
        return steps


def one_by_one(graph: Subgraph, ctx: Context, arrays: list[Any], wrap: Any) -> Iterator[Prepared]:
    """Run a subgraph operator by operator, as eager calls do, appending all results to ``arrays``. Yields the prepared
    calls.

    The pass ``fold_constants`` and the checks of kernels also run nodes one by one, but by reference kernels. The
    former caches nothing and has a context for each node; the latter look at intermediate results.
    """
    for op, attrs, _, places, _ in graph.steps:
        prepared, results = run(op, attrs, [arrays[place] for place in places], ctx, None, wrap)
        arrays += results
        yield prepared


def _reshape(prepared: CachedUse, array: Array, result: Array) -> Callable[..., Array] | None:
    """A function that reshapes an array to the shape of a result, if the result is a view of all elements in their
    order; else None."""
    if prepared.op.rules.view is None:
        return None
    view = prepared.op.rules.as_view(array, prepared.attrs, prepared.shapes, prepared.ctx.xp)
    in_order = array.flags.c_contiguous and view is not None and view.flags.c_contiguous and view.size == array.size
    if not in_order or view.dtype != result.dtype:
        return None
    shape = result.shape
    return lambda array, *others: array.reshape(shape)


def _picker(places: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """A function that gets the elements at these indices of a list."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    first = places[0] if places else 0
    return operator.itemgetter(slice(first, first + len(places)))


def differentiate(prepared: CachedUse, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
                  needs: tuple[bool, ...], is_train: bool, inputs: Sequence[tuple[Any, int]] = ()
                  ) -> Sequence[Array | None] | None:
    """Raw gradients of inputs by a recipe; None if the rule must be called.

    Parameters
    ----------
    prepared : CachedUse
        The prepared call of the operator for inputs with these specs.
    out_grads : sequence
        Raw gradients of the outputs, or None.
    ins, outs : sequence
        Raw inputs and outputs.
    needs : tuple of bool
        Whether each input needs a gradient; the others get None.
    is_train : bool
        The mode.
    inputs : sequence of entries
        The entries of the inputs on the tape, some of which may have gradient targets.
    """
    key: tuple[object, ...] = needs, is_train, EDITION[0]
    if len(out_grads) != 1:
        key += tuple([g is None for g in out_grads])
    for g, out in zip(out_grads, outs):
        if g is not None and (g.shape != out.shape or g.dtype is not out.dtype):
            return None
    recipes = prepared.recipes
    if recipes is None:
        return None
    try:
        recipe = recipes[key]
    except KeyError:
        return _first_gradients(recipes, key, prepared, out_grads, ins, outs, needs, is_train)
    if recipe is None:
        return None
    call: Callable[..., Sequence[Array | None]] = recipe
    if recipe.target_results and inputs:
        places = {step: target for i, step in recipe.target_results
                  if (target := inputs[i][0].gradient_target) is not None}
        if places:
            call = functools.partial(recipe, targets=places)
    try:
        return MODE.__dict__["current"]().run(call, [*out_grads, *ins, *outs, *prepared.constants])
    except RuntimeError as error:
        if not is_already_entered(error):
            raise
    return call([*out_grads, *ins, *outs, *prepared.constants])


def reads(prepared: Prepared, out_grads: Sequence[bool], ins: Sequence[Array], outs: Sequence[Array],
          needs: tuple[bool, ...], is_train: bool) -> set[int] | None:
    """Indices, among inputs and then outputs, of the arrays that a gradient reads; None if unknown.

    ``out_grads`` tells which outputs have a gradient; for other parameters see ``differentiate``.
    """
    if not isinstance(prepared, CachedUse) or prepared.recipes is None:
        return None
    try:
        rule = _rule(prepared, out_grads, ins, outs, needs, is_train)
    except Exception:  # the rule reads elements
        return None
    return {place - len(out_grads) for place in rule.read() if place >= len(out_grads)}


def _rule(prepared: CachedUse, out_grads: Sequence[bool], ins: Sequence[Array], outs: Sequence[Array],
          needs: tuple[bool, ...], is_train: bool) -> Subgraph:
    return prepared.rule(tuple(out_grads), needs, is_train,
                        lambda: [Spec(array.shape, array.dtype) for array in (*outs[:len(out_grads)], *ins, *outs)])


def _first_gradients(recipes: dict[tuple[object, ...], Recipe | None], key: tuple[object, ...], prepared: CachedUse,
                     out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
                     needs: tuple[bool, ...], is_train: bool) -> Sequence[Array | None] | None:
    """The first gradients of a kind. The absence of a recipe is cached only if the rule cannot have one; after another
    error, such as one of memory, the next call tries again."""
    try:
        recipes[key], results = _trace_rule(prepared, out_grads, ins, outs, needs, is_train)
    except Exception:  # calling the rule raises a clearer error
        return None
    return results


def _trace_rule(prepared: CachedUse, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
                needs: tuple[bool, ...], is_train: bool) -> tuple[Recipe | None, Sequence[Array | None] | None]:
    """Make a recipe, and the gradients of its first run; two None if the rule cannot have a recipe."""
    if isinstance(prepared, OpenUse):
        slope: Any = prepared.shared
        return slope, slope([*out_grads, *ins, *outs, *prepared.constants])
    if not all(map(is_known, prepared.shapes)):
        return None, None
    try:
        rule = _rule(prepared, [g is not None for g in out_grads], ins, outs, needs, is_train)
        arrays = [*out_grads, *ins, *outs, *prepared.constants]
        recipe = Recipe(rule, prepared.ctx, arrays, prepared.wrap)
        return recipe, [None if place is None else arrays[place] for place in rule.results]
    except (NoRecipe, NeedsNumbers, NotDifferentiableError, TraceError):
        return None, None
