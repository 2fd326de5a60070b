"""Recipes: gradient rules of built-in operators, settled for eager backward passes.

A rule is ordinary code that calls operators on values. The first time it is wanted for an operator, attributes and
specs, it is followed over stand-ins, and what it calls is kept as a list of functions of raw arrays: the *recipe*,
which gives the same gradients from then on without arrays of ours, attributes or a second look. Rules that do anything
else than call operators, users' rules, and rules of gradients that are recorded themselves run as they are written.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Sequence
from typing import Any

from opreg.mode import MODE, inside, quiet
from opreg.op import Op
from opreg.spec import is_numpy_float, known
from opreg.value import Value

from .eager import Runner, run

__all__ = ["differentiate", "reads"]


class _Unfit(Exception):
    """The rule does something that no recipe can repeat."""


class _Stand(Value):
    """What a rule that is followed is given in the place of an array: a number in the recipe that is being made."""

    __slots__ = ("data", "number", "recipe")
    _rank = 9

    def __init__(self, data: Any, number: int, recipe: Recipe):
        self.data, self.number, self.recipe = data, number, recipe

    def _apply(self, op: Op, values: Sequence[Any], given: Any) -> Any:
        recipe = self.recipe
        if op.where is not None or op.per_instance or op.states or op.mutates or op.kernels[0].bound:
            raise _Unfit
        attrs = op.complete(given)
        settled, results = run(op, attrs, [recipe.own(value).data for value in values], recipe.ctx)
        if not all(map(known, settled.shapes)):
            raise _Unfit
        found = recipe.add(settled.single or settled, values, results, settled.single is None, op.unread)
        return found[0] if settled.visible == 1 else found[:settled.visible]

    def _shape_is(self, other: Any) -> bool:
        return self.data.shape == other.data.shape

    def _evaluate(self, expression: Any, values: Sequence[Any]) -> Any:
        recipe, dtype = self.recipe, self.data.dtype
        if not is_numpy_float(dtype) or any(recipe.own(value).data.dtype is not dtype for value in values):
            return None
        xp = recipe.ctx.xp
        function = expression.on(xp, dtype)
        found = quiet(function, *[value.data for value in values])
        if not found.shape:  # NumPy gives a number where an array is wanted
            plain = function

            def function(*arrays: Any) -> Any:
                return xp.asarray(plain(*arrays))

        return recipe.add(function, values, [xp.asarray(found)], False)[0]


class Recipe:
    """The gradient of an operator for attributes, mode, specs and the inputs that want one.

    Call it with raw arrays, gradients of outputs, then inputs and outputs; it returns a raw gradient or None for each
    input.
    """

    __slots__ = ("ctx", "read", "_steps", "_results", "_count")

    def __init__(self, ctx: Any):
        self.ctx = ctx
        self.read: set[int] = set()  # of which the numbers matter
        self._steps: list[tuple[Callable, Callable, bool]] = []
        self._results: Callable = _picked([])
        self._count = 1  # of arrays so far; the first is None

    def follow(self, op: Op, attrs: Any, arriving: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any],
               needs: Sequence[bool], is_train: bool) -> list[Any]:
        """Note what the rule does; returns the gradients that it gives."""
        g, values, results = [[self._stand(array) for array in group] for group in (arriving, ins, outs)]
        found = op.differentiate(g[0] if len(g) == 1 else tuple(g), values, results, attrs, needs, is_train)
        stands = [None if each is None or not need else self.own(each) for each, need in zip(found, needs)]
        places = [0 if each is None else each.number for each in stands]
        self._results = _picked(places)
        self.read.update(places)
        return [None if each is None else each.data for each in stands]

    def _stand(self, data: Any) -> Any:
        self._count += 1
        return None if data is None else _Stand(data, self._count - 1, self)

    def own(self, value: Any) -> _Stand:
        """A value that is one of the stand-ins of this recipe."""
        if value.__class__ is not _Stand or value.recipe is not self:
            raise _Unfit
        return value

    def add(self, function: Callable, values: Sequence[Any], results: Sequence[Any], many: bool,
            unread: Container[int] = ()) -> list[Any]:
        """Note a call; returns the stand-ins of its results."""
        self._steps.append((function, _picked([value.number for value in values]), many))
        self.read.update(value.number for i, value in enumerate(values) if i not in unread)
        return [self._stand(data) for data in results]

    def __call__(self, arrays: list[Any]) -> Sequence[Any]:
        for function, pick, many in self._steps:
            if many:
                arrays += function(pick(arrays))
            else:
                arrays.append(function(*pick(arrays)))
        return self._results(arrays)


def _picked(places: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """The function that takes elements at these places out of a list."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    first = places[0] if places else 0
    return operator.itemgetter(slice(first, first + len(places)))


def differentiate(settled: Runner, arriving: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any],
                  needs: tuple[bool, ...], is_train: bool) -> Sequence[Any] | None:
    """Raw gradients of inputs by a recipe; None where the rule has to run as it is written.

    Parameters
    ----------
    settled : Runner
        The built-in operator that was applied to inputs like these.
    arriving : sequence
        Raw gradients of the outputs, None where none arrives.
    ins, outs : sequence
        Raw inputs and outputs.
    needs : tuple of bool
        Which inputs want a gradient; the others get None.
    is_train : bool
        The mode.
    """
    key: Any = needs, is_train
    if len(arriving) != 1:
        key = needs, is_train, *[g is None for g in arriving]
    for g, out in zip(arriving, outs):
        if g is not None and (g.shape != out.shape or g.dtype is not out.dtype):
            return None
    recipes = settled.recipes
    if recipes is None:
        return None
    try:
        recipe = recipes[key]
    except KeyError:
        recipes[key], results = _followed(settled, arriving, ins, outs, needs, is_train)
        return results
    if recipe is None:
        return None
    try:
        return MODE.run(recipe, [None, *arriving, *ins, *outs])
    except RuntimeError as error:
        if not inside(error):
            raise
    return recipe([None, *arriving, *ins, *outs])


def reads(settled: Runner, ins: Sequence[Any], outs: Sequence[Any]) -> set[int] | None:
    """Places among inputs, then outputs, whose numbers some gradient needs; None where nobody knows."""
    if settled.recipes is None:
        return None
    xp = settled.ctx.xp
    arriving = [xp.ones_like(out) if i < settled.visible else None for i, out in enumerate(outs)]
    recipe = Recipe(settled.ctx)
    try:
        recipe.follow(settled.op, settled.attrs, arriving, ins, outs, [True] * len(ins), True)
    except Exception:  # it is no recipe
        return None
    first = 1 + len(arriving)
    return {number - first for number in recipe.read if number >= first}


def _followed(settled: Runner, arriving: Sequence[Any], ins: Sequence[Any], outs: Sequence[Any],
              needs: tuple[bool, ...], is_train: bool) -> tuple[Recipe | None, Sequence[Any] | None]:
    """A recipe and the gradients that the rule gave while it was followed."""
    if not all(map(known, settled.shapes)):
        return None, None
    recipe = Recipe(settled.ctx)
    try:
        return recipe, recipe.follow(settled.op, settled.attrs, arriving, ins, outs, needs, is_train)
    except Exception:  # whatever it is, the rule itself says it better
        return None, None
