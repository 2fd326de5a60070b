"""Update: the steps behind backward that move weights along their gradients, all by a few calls.

An updater of ``opreg.optimizer`` keeps the states of weights and says before each run which weights move alike, by
which operator and which attributes. The two are bound together. Rates and counts are numbers that the steps read where
they stand, so a schedule changes nothing else; where an operator, a formula or an array is another than before, the
steps are made anew.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from opreg.builtin.optimizers.bound_updates import Alike, Bound, Row, bind
from opreg.builtin.optimizers.update_formulas import Rates
from opreg.core.registry import get
from opreg.core.versions import wrote
from opreg.errors import ArgumentError
from opreg.ndarray.ndarray import NDArray

from .plan import Segment, Step
from .reduction import Reduced, some
from .replay import segments
from .sharding import Gather, Sharding

__all__ = ["Index", "Update", "Updater"]

_MISSING, _UNKNOWN = object(), object()

#: A key of a weight.
Index: TypeAlias = int | str


class Updater(Protocol):
    """An optimizer that updates weights and keeps their states, as updaters of ``opreg.optimizer`` do."""

    states: dict[Any, Any]
    #: How states are divided among ranks, where they are.
    sharding: Sharding | None

    def __call__(self, index: Sequence[Index], grad: Sequence[NDArray], weight: Sequence[NDArray]) -> None: ...

    def indices(self, names: Sequence[str]) -> Mapping[str, Index]:
        """The indices by which it knows weights."""

    def one_by_one(self) -> str | None:
        """The reason why it has to be called; None where it says which operators move the weights."""

    def undivided(self) -> str | None:
        """The reason why a part of a weight cannot be moved by itself; None where every element moves alone."""

    def rows(self, index: Sequence[Index], grad: Sequence[NDArray], weight: Sequence[NDArray]) -> Sequence[Row]:
        """Weights with the states that it keeps, which are made where there are none."""

    def count_updates(self, rows: Sequence[Row]) -> Sequence[Alike]:
        """Count an update of all; what is alike now."""


class _Group(NamedTuple):
    """Weights that are moved by one step, and the rates that it reads."""

    operator: str
    members: list[int]
    rates: Rates


class Update:
    """The updates of weights that lie where they lie.

    Attributes
    ----------
    updater : Updater
    names : list of str
        The weights.
    indices : list
        Keys of the updater.
    segment : Segment or None
        The steps of the last run; None before the first, and where the updater moves each weight by itself.
    reason : str
        Why there is none.
    """

    def __init__(self, updater: Updater, names: Sequence[str], indices: Sequence[Index], weights: Sequence[NDArray],
                 grads: Sequence[NDArray], reduced: Reduced | None = None):
        self.updater, self.names, self.indices = updater, list(names), list(indices)
        self._weights, self._grads = list(weights), list(grads)
        self._wholes, self._uncompared = self._weights, reduced
        self._gathers: Sequence[Gather] = ()
        updater.sharding = None
        if reduced is not None and reduced.reduction.shard is not None:
            self._divide(reduced)
        apart = [len({id(weight._data) for weight in weights}), len(set(indices))]
        self._twice = None if apart == [len(weights)] * 2 else "an array or an index is there twice"
        self.forget()

    def _divide(self, reduced: Reduced) -> None:
        """Move this rank's part of the weights alone."""
        reason = self.updater.undivided()
        if reason is not None:
            raise ArgumentError(f"set_optimizer: shard={reduced.reduction.shard!r}: {reason}")
        sharding = Sharding(reduced, dict(zip(self.names, self.indices)), self._weights, self._grads)
        self._weights, self._grads, self._gathers = sharding.weights, sharding.grads, sharding.gathers
        self.updater.sharding = sharding

    def _compare(self) -> None:
        """Before the first update see that all ranks have the same weights."""
        reduced, self._uncompared = self._uncompared, None
        if reduced is not None:
            reduced.agree_on(dict(zip(self.names, self._wholes)))

    def forget(self) -> None:
        """Make the steps anew when they are used again."""
        self.segment: Segment | None = None
        self.reason = "planned when it has run"
        self._rows: Sequence[Row] = []
        self._states: list[object] = [_UNKNOWN] * len(self.names)
        self._groups: list[_Group] = []

    def ready(self) -> Segment | None:
        """Count an update, and bring rates and counts to where the steps read them; None where there are no steps, and
        ``alone`` is to be called."""
        updater = self.updater
        sparse = any(each._sparse for each in (*self._weights, *self._grads))
        reason = self._twice or ("weights or gradients are sparse" if sparse else updater.one_by_one())
        if reason is not None:
            self.forget()
            self.reason = reason
            return None
        states = map(updater.states.get, self.indices, itertools.repeat(_MISSING))
        if not all(map(operator.is_, states, self._states)):
            self.forget()
            self._rows = updater.rows(self.indices, self._grads, self._weights)
            self._states = [updater.states[index] for index in self.indices]
        alike = updater.count_updates(self._rows)
        if not self._goes_on(alike):
            self._plan(alike)
        return self.segment

    def alone(self) -> None:
        """Have the updater do it."""
        self._compare()
        self.updater(self.indices, self._grads, self._weights)
        for gather in self._gathers:
            gather.ctx.run(gather)
            for array in gather.arrays:
                wrote(array)

    def _goes_on(self, alike: Sequence[Alike]) -> bool:
        """Whether the steps are still right, and have their numbers now."""
        return len(alike) == len(self._groups) and all(
            group.members == found.members and group.operator == found.operator and group.rates.change(found.attrs)
            for group, found in zip(self._groups, alike))

    def _plan(self, alike: Sequence[Alike]) -> None:
        self._compare()
        self._groups = []
        steps = [self._step(found) for found in alike] + [gather.step() for gather in self._gathers]
        self.segment = segments({found.ctx for found in alike})(steps)

    def _step(self, alike: Alike) -> Step:
        """The step of weights that move alike."""
        ctx, kernel = alike.ctx, get(alike.operator).kernels[0].rule
        arrays = [self._rows[i].arrays for i in alike.members]
        bound: Bound = ctx.run(bind, ctx.xp, kernel, [(each[0], each) for each in arrays], alike.attrs)
        self._groups.append(_Group(alike.operator, alike.members, bound.rates))
        where = some([self.names[i] for i in alike.members])
        written = [array for each in arrays for i, array in enumerate(each) if i != 1]
        step = Step(None, bound.kernel, bound.declined, where, bound.functions, written, ctx,
                    [*itertools.chain(*arrays)])
        step.title = alike.operator
        step.instructions = len(bound.rates.expression.code) * sum(each[0].size for each in arrays)
        return step
