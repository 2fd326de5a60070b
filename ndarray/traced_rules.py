"""Recipes: lists of operators as functions of raw arrays, for eager calls; those of gradient rules first of all.

The first time a rule is wanted for an operator, attributes and specs, its subgraph is run operator by operator, and
what these come to is kept as a list of functions of raw arrays: the *recipe*, which gives the same gradients from
then on without arrays of ours, attributes or a second look. Rules that do anything else than call operators, rules of
users' operators that are not traced, and rules of gradients that are recorded themselves run as they are written.
Bodies of traced operators are recipes, too (``bodies.py``).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opreg.core.edition import EDITION
from opreg.core.mode import MODE, inside
from opreg.core.spec import Spec, known
from opreg.core.subgraph import Subgraph
from opreg.core.tracing import NeedsNumbers, TraceError
from opreg.errors import NotDifferentiableError
from opreg.typing import Array

from .eager import Lasting, Prepared, run

if TYPE_CHECKING:
    from .context import Context
    from .landing import Landing

__all__ = ["Recipe", "Unfit", "differentiate", "one_by_one", "reads"]


class Unfit(Exception):
    """Raised for an operator that cannot be prepared."""


class Recipe:
    """A subgraph as functions of raw arrays of certain specs.

    Call it with a list of raw arrays, those that the subgraph is given; it returns a raw result or None for each of its
    results. The list becomes the recipe's own. For a gradient the arrays are gradients of outputs, inputs and
    outputs, the results gradients of the inputs.

    Parameters
    ----------
    graph : Subgraph
        What is to be done.
    ctx : Context
        Where.
    arrays : list of arrays
        The first that it is given. The results of its steps are appended: to make a recipe is to run it once.
    wrap : function, optional
        Makes an NDArray, for operators of users.

    Attributes
    ----------
    lands : list of tuple
        Results that can be computed at a place that it is given: the number of the result, and of the step.
    """

    __slots__ = ("_steps", "_results", "_none", "lands")

    def __init__(self, graph: Subgraph, ctx: Context, arrays: list[Any], wrap: Any = None):
        self._steps: list[tuple[Callable[..., Any], Callable[[list[Any]], Sequence[Any]], bool, Sequence[int]]] = []
        last = graph.last_uses()
        writers: dict[int, int] = {}  # steps that can be told where to write, by the places of what they make
        if any(op.traits.states or op.traits.mutates or (op.kernels[0].bound and not op.traits.traced)
               for op, *_ in graph.steps):
            raise Unfit
        for (_, _, _, places, count), prepared in zip(graph.steps, one_by_one(graph, ctx, arrays, wrap)):
            if not isinstance(prepared, Lasting) or not all(map(known, prepared.shapes)):
                raise Unfit
            if prepared.single is not None and prepared.takes_out:
                writers[len(arrays) - count] = len(self._steps)
            self._steps.append((prepared.single or prepared, _picked(places), prepared.single is None,
                                last[len(self._steps)]))
        none = len(arrays)
        self._none = None in graph.results or not graph.results
        self._results = _picked([none if place is None else place for place in graph.results])
        self.lands = [(i, writers[place]) for i, place in enumerate(graph.results)
                      if place in writers and graph.results.count(place) == 1]

    def landing(self, arrays: list[Any], places: dict[int, Landing]) -> Sequence[Array | None]:
        """The same with some steps told where their results go, if they may."""
        for number, (function, pick, many, done) in enumerate(self._steps):
            if many:
                arrays += function(pick(arrays))
            elif number in places:
                arrays.append(places[number].fill(function, pick(arrays)))
            else:
                arrays.append(function(*pick(arrays)))
            for place in done:
                arrays[place] = None
        arrays.append(None)
        return self._results(arrays)

    def __call__(self, arrays: list[Any]) -> Sequence[Array | None]:
        for function, pick, many, done in self._steps:
            if many:
                arrays += function(pick(arrays))
            else:
                arrays.append(function(*pick(arrays)))
            for place in done:
                arrays[place] = None
        if self._none:
            arrays.append(None)
        return self._results(arrays)


def one_by_one(graph: Subgraph, ctx: Context, arrays: list[Any], wrap: Any = None) -> Iterator[Prepared]:
    """Run a subgraph operator by operator, as eager calls do; what each makes is appended to the arrays that it is
    given. Returns the results.

    Two others run nodes in turn, by their reference kernels: the pass ``fold_constants``, which leaves nothing prepared
    for a single run and has a context for each node, and checks of kernels, which look at results between.
    """
    for op, attrs, _, places, _ in graph.steps:
        prepared, results = run(op, attrs, [arrays[place] for place in places], ctx, None, wrap)
        arrays += results
        yield prepared


def _picked(places: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """The function that takes elements at these places out of a list."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    first = places[0] if places else 0
    return operator.itemgetter(slice(first, first + len(places)))


def differentiate(prepared: Lasting, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
                  needs: tuple[bool, ...], is_train: bool, inputs: Sequence[tuple[Any, int]] = ()
                  ) -> Sequence[Array | None] | None:
    """Raw gradients of inputs by a recipe; None where the rule has to run as it is written.

    Parameters
    ----------
    prepared : Lasting
        What ran the operator on inputs like these.
    out_grads : sequence
        Raw gradients of the outputs, None where there is none.
    ins, outs : sequence
        Raw inputs and outputs.
    needs : tuple of bool
        Which inputs want a gradient; the others get None.
    is_train : bool
        The mode.
    inputs : sequence of entries
        Of the tape: what the inputs are, some of which may have a place for their gradient.
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
        return _first(recipes, key, prepared, out_grads, ins, outs, needs, is_train)
    if recipe is None:
        return None
    call: Callable[..., Sequence[Array | None]] = recipe
    if recipe.lands and inputs:
        places = {step: inputs[i][0].landing for i, step in recipe.lands if inputs[i][0].landing is not None}
        if places:
            call = functools.partial(recipe.landing, places=places)
    try:
        return MODE.__dict__["now"]().run(call, [*out_grads, *ins, *outs, *prepared.constants])
    except RuntimeError as error:
        if not inside(error):
            raise
    return call([*out_grads, *ins, *outs, *prepared.constants])


def reads(prepared: Prepared, out_grads: Sequence[bool], ins: Sequence[Array], outs: Sequence[Array],
          needs: tuple[bool, ...], is_train: bool) -> set[int] | None:
    """Places among inputs, then outputs, whose numbers a gradient reads; None if unknown.

    ``out_grads`` says which outputs have a gradient; for the rest see ``differentiate``.
    """
    if not isinstance(prepared, Lasting) or prepared.recipes is None:
        return None
    try:
        rule = _rule(prepared, out_grads, ins, outs, needs, is_train)
    except Exception:  # it looks at numbers
        return None
    return {place - len(out_grads) for place in rule.read() if place >= len(out_grads)}


def _rule(prepared: Lasting, out_grads: Sequence[bool], ins: Sequence[Array], outs: Sequence[Array],
          needs: tuple[bool, ...], is_train: bool) -> Subgraph:
    return prepared.rule(tuple(out_grads), needs, is_train,
                        lambda: [Spec(array.shape, array.dtype) for array in (*outs[:len(out_grads)], *ins, *outs)])


def _first(recipes: dict[tuple[object, ...], Recipe | None], key: tuple[object, ...], prepared: Lasting,
           out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array], needs: tuple[bool, ...],
           is_train: bool) -> Sequence[Array | None] | None:
    """The first gradients of a kind. The absence of a recipe is cached only if the rule says so: an error of
    memory, say, ends this attempt alone."""
    try:
        recipes[key], results = _traced(prepared, out_grads, ins, outs, needs, is_train)
    except Exception:  # whatever it is, the rule itself says it better
        return None
    return results


def _traced(prepared: Lasting, out_grads: Sequence[Array | None], ins: Sequence[Array], outs: Sequence[Array],
              needs: tuple[bool, ...], is_train: bool) -> tuple[Recipe | None, Sequence[Array | None] | None]:
    """A recipe and the gradients that it gives; None where the rule says that there is none."""
    if not all(map(known, prepared.shapes)):
        return None, None
    try:
        rule = _rule(prepared, [g is not None for g in out_grads], ins, outs, needs, is_train)
        arrays = [*out_grads, *ins, *outs, *prepared.constants]
        recipe = Recipe(rule, prepared.ctx, arrays, prepared.wrap)
        return recipe, [None if place is None else arrays[place] for place in rule.results]
    except (Unfit, NeedsNumbers, NotDifferentiableError, TraceError):
        return None, None
