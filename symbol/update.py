"""Update: the steps after backward that update all weights by a few calls.

An updater of ``opreg.optimizer`` stores the states of weights. Before each run it groups the weights that share an
operator and its attributes, and each group is bound as one step. Steps read learning rates and counts from arrays, so
that a schedule changes no step. If an operator, a formula or a state has changed, the steps are made again.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from opreg.builtin.optimizers.update_formulas import Rates
from opreg.builtin.optimizers.updating import Bound, Row, WeightGroup, bind
from opreg.core.invalidation import EDITION
from opreg.core.registry import get
from opreg.core.versions import wrote
from opreg.errors import ArgumentError
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray

from .plan import Segment, Step
from .plans import run_segment
from .reduction import GradientBuckets, first_names
from .replay import segments
from .sharding import Gather, Sharding

__all__ = ["Index", "Update", "Updater"]

_MISSING, _UNKNOWN = object(), object()
#: Functions that return the memory of an array: the first reads an attribute of dense arrays, the second takes any
#: array.
_RAW, _STORED = operator.attrgetter("_data"), operator.attrgetter("_memory")

#: A key of a weight.
Index: TypeAlias = int | str


class Updater(Protocol):
    """An updater, which updates weights and stores their states, as those of ``opreg.optimizer`` do."""

    optimizer: Any
    states: dict[Any, Any]
    #: The division of states among ranks; None without one.
    sharding: Sharding | None

    def __call__(self, index: Sequence[Index], grad: Sequence[NDArray], weight: Sequence[NDArray]) -> None: ...

    def indices(self, names: Sequence[str]) -> Mapping[str, Index]:
        """The updater's indices of weights, by name."""

    def one_by_one(self) -> str | None:
        """The reason why it must be called for each update; None if ``count_updates`` tells the operators to run."""

    def undivided_reason(self) -> str | None:
        """The reason why a part of a weight cannot be updated by itself; None if the update is element-wise."""

    def rows(self, index: Sequence[Index], grad: Sequence[NDArray], weight: Sequence[NDArray]) -> Sequence[Row]:
        """Weights with their states, which are made if they are missing."""

    def count_updates(self, rows: Sequence[Row]) -> Sequence[WeightGroup]:
        """Count an update of all weights, and group those that share an operator and attributes."""


class _Group(NamedTuple):
    """Weights that one step updates, and the rates that it reads."""

    operator: str
    members: list[int]
    rates: Rates


class Update:
    """The updates of weights, in place.

    Attributes
    ----------
    updater : Updater
    names : list of str
        The weights.
    indices : list
        Keys of the updater.
    segment : Segment or None
        The steps of the last run; None before the first, and where the updater is called instead.
    reason : str
        The reason why there is no segment.
    """

    def __init__(self, updater: Updater, names: Sequence[str], indices: Sequence[Index], weights: Sequence[NDArray],
                 grads: Sequence[NDArray], reduced: GradientBuckets | None):
        self.updater, self.names, self.indices = updater, list(names), list(indices)
        self._weights, self._grads = list(weights), list(grads)
        self._given = [*self._weights, *self._grads]
        self._memory_of = _STORED if any(array._sparse for array in self._given) else _RAW
        self._raw = list(map(self._memory_of, self._given))
        self._wholes, self._uncompared = self._weights, reduced
        self._gathers: Sequence[Gather] = ()
        updater.sharding = None
        if reduced is not None and reduced.reduction.shard is not None:
            self._divide(reduced)
        apart = [len({id(weight._memory) for weight in weights}), len(set(indices))]
        sparse = any(array._sparse for array in (*self._weights, *self._grads))
        self._never = "an array or an index is there twice" if apart != [len(weights)] * 2 else \
            "weights or gradients are sparse" if sparse else None
        self.forget()

    def updates(self, updater: Updater, indices: Sequence[Index], arrays: Sequence[NDArray]) -> bool:
        """Whether it is the update of these arrays, weights before gradients, with the memory that they had."""
        values = self._given
        return (self.updater is updater and self.indices == indices and len(values) == len(arrays)
                and all(map(operator.is_, arrays, values))
                and all(map(operator.is_, map(self._memory_of, arrays), self._raw)))

    def _divide(self, reduced: GradientBuckets) -> None:
        """Update only this rank's part of the weights."""
        reason = self.updater.undivided_reason()
        if reason is not None:
            raise ArgumentError(f"set_optimizer: shard={reduced.reduction.shard!r}: {reason}")
        sharding = Sharding(reduced, dict(zip(self.names, self.indices)), self._weights, self._grads)
        self._weights, self._grads, self._gathers = sharding.weights, sharding.grads, sharding.gathers
        self.updater.sharding = sharding

    def _compare(self) -> None:
        """Check, before the first update, that all ranks have the same weights."""
        reduced, self._uncompared = self._uncompared, None
        if reduced is not None:
            reduced.agree_on(dict(zip(self.names, self._wholes)))

    def forget(self) -> None:
        """Drop the steps; the next update makes them again."""
        self.segment: Segment | None = None
        self.reason = "planned when it has run"
        self._rows: Sequence[Row] = []
        self._states: list[object] = [_UNKNOWN] * len(self.names)
        self._table: object = _UNKNOWN  # the updater's states by index; loading states makes another dict
        self._optimizer: object = _UNKNOWN
        self._edition = -1
        self._groups: list[_Group] = []

    def run(self, ctx: Context) -> None:
        """Update the weights, which lie on a context."""
        segment = self.ready()
        if segment is None:
            self.update_all()
        else:
            run_segment(segment, ctx, True)

    def ready(self) -> Segment | None:
        """Count an update, and write rates and counts into the arrays that the steps read. Returns the steps, or None
        if ``update_all`` must be called instead."""
        updater = self.updater
        reason = self._never or updater.one_by_one()
        if reason is not None:
            self.forget()
            self.reason = reason
            return None
        states = map(updater.states.get, self.indices, itertools.repeat(_MISSING))
        if (self._optimizer is not updater.optimizer or self._edition != EDITION[0]
                or self._table is not updater.states
                or not all(map(operator.is_, states, self._states))):
            self.forget()
            self._rows = updater.rows(self.indices, self._grads, self._weights)
            self._states = [updater.states[index] for index in self.indices]
            self._optimizer, self._edition, self._table = updater.optimizer, EDITION[0], updater.states
        alike = updater.count_updates(self._rows)
        if not self._still_fits(alike):
            self._plan(alike)
        return self.segment

    def update_all(self) -> None:
        """Call the updater to update all weights."""
        self._compare()
        self.updater(self.indices, self._grads, self._weights)
        for gather in self._gathers:
            gather.ctx.run(gather)
            for array in gather.arrays:
                wrote(array)

    def _still_fits(self, alike: Sequence[WeightGroup]) -> bool:
        """Whether the steps still fit the groups, after their rates were written."""
        return len(alike) == len(self._groups) and all(
            group.members == current.members and group.operator == current.operator
            and group.rates.change(current.attrs)
            for group, current in zip(self._groups, alike))

    def _plan(self, alike: Sequence[WeightGroup]) -> None:
        self._compare()
        self._groups = []
        steps = [self._step(group) for group in alike] + [gather.step() for gather in self._gathers]
        self.segment = segments({group.ctx for group in alike})(steps)

    def _step(self, alike: WeightGroup) -> Step:
        """The step that updates a group of weights."""
        ctx, kernel = alike.ctx, get(alike.operator).kernels[0].rule
        arrays = [self._rows[i].arrays for i in alike.members]
        bound: Bound = ctx.run(bind, ctx.xp, kernel, [(array[0], array) for array in arrays], alike.attrs)
        self._groups.append(_Group(alike.operator, alike.members, bound.rates))
        where = first_names([self.names[i] for i in alike.members])
        written = [array for weight_arrays in arrays for i, array in enumerate(weight_arrays) if i != 1]
        step = Step(None, bound.kernel, bound.declined, where, bound.functions, written, ctx,
                    [*itertools.chain(*arrays)])
        step.title = alike.operator
        step.instructions = len(bound.rates.expression.code) * sum(array[0].size for array in arrays)
        return step
