"""Optimizer updates bound to the arrays of their weights, as functions without arguments that run in each step.

The functions read rates and step counts from memory, so these may change between runs. Results, tiles and threads are
exactly those of ``updating``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import threads
from ...core.host_memory import Workspace
from ...core.rules import Attrs, Rule
from ...core.steps import PlainStep
from ...typing import Array, ArrayModule
from .update_formulas import Rates
from .updating import SHARED, TILE, Update, divided, group_updaters

__all__ = ["WeightGroup", "Bound", "Row", "bind"]

# Fewest weights that are gathered here, where a call costs less than one of ``updating``.
_MANY = 16


class Row(NamedTuple):
    """A weight, and the operator that updates it.

    Attributes
    ----------
    weight : int or str
        Key of the weight.
    operator : str
        Name of the operator.
    ctx : Context
        Its device.
    kind : int
        Equal for weights that can be updated together: with the same operator, context and dtype.
    arrays : list of arrays
        Weight, gradient and states.
    """

    weight: int | str
    operator: str
    ctx: Any
    kind: int
    arrays: list[Array]


class WeightGroup(NamedTuple):
    """Indices of weights that one operator updates with the same attributes."""

    operator: str
    ctx: Any
    attrs: dict[str, Any]
    members: list[int]


class Bound(NamedTuple):
    """Bound updates that run in each step.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    declined : list of (str, str)
        Other kernels, and the reason why each declined.
    functions : list of functions without arguments
        Functions that update the weights by one step.
    rates : Rates
        Rates that the functions read.
    """

    kernel: str
    declined: list[tuple[str, str]]
    functions: list[Callable[[], object]]
    rates: Rates


def bind(xp: ArrayModule, kernel: Rule, updates: Sequence[Update], attrs: Attrs) -> Bound:
    """A function that updates weights in place, by the kernel of an operator whose rule is a formula.

    The results are those of the kernel's ``together``.
    """
    settings = vars(kernel.function)
    rates = Rates(settings["rule"].traced, len(updates[0][1]), attrs)
    ufuncs = functools.partial(_ufuncs, settings["rule"], updates, rates)
    declined: list[tuple[str, str]] = []
    for updater in group_updaters:
        if updater.serves(xp):
            attempt = updater.bind(xp, settings["rule"], updates, rates, ufuncs)
            if not isinstance(attempt, str):
                return Bound(updater.name, declined, attempt, rates)
            declined.append((updater.name, attempt))
    if xp is np:
        return Bound("ufuncs", declined, ufuncs(), rates)
    return Bound("reference", declined,
                 [_RatesByRun(functools.partial(settings["together"], xp, updates=updates), kernel, rates)], rates)


class _RatesByRun:
    """A function that takes rates, Python numbers, in each run."""

    __slots__ = ("function", "kernel", "rates")
    capturable = False

    def __init__(self, function: Callable[..., None], kernel: Rule, rates: Rates):
        self.function, self.kernel, self.rates = function, kernel, rates

    def __call__(self) -> None:
        self.function(**self.kernel.select(self.rates.attrs))


def _ufuncs(rule: Callable, updates: Sequence[Update], rates: Rates) -> list[Callable[[], object]]:
    """Functions that update weights on the host by ufuncs, in the order of ``together``."""
    parts, groups = divided(updates, _MANY)
    work: list[tuple[int, Callable[[Workspace], list[Callable[[], object]]]]] = [
        (part[0].size, functools.partial(_part, rule, rates, part)) for part in parts]
    work += [(sum(new.size for new, _ in group), functools.partial(_group, rule, rates, group))
             for group in groups]
    if sum(new.size for new, _ in parts) < SHARED or threads.count() < 2:
        workspace = Workspace(spare=4 * TILE)
        return [function for _, make in work for function in make(workspace)]
    # Each thread's share has its own scratch; there are more than threads, since one may have to wait.
    ends = list(itertools.accumulate(size for size, _ in work))
    shares: dict[int, tuple[Workspace, list[Callable[[], object]]]] = {}
    for (_, make), end in zip(work, ends):
        share = (end - 1) * 2 * threads.count() // ends[-1]
        workspace, functions = shares.setdefault(share, (Workspace(spare=4 * TILE), []))
        functions += make(workspace)
    return [functools.partial(threads.run, [functools.partial(threads.call_all, functions)
                                            for _, functions in shares.values()])]


def _part(rule: Any, rates: Rates, part: Update, workspace: Workspace) -> list[Callable[[], object]]:
    return rule.bound(rates, *part, workspace.array)


class _Gather(PlainStep):
    """Several arrays concatenated in one."""

    __slots__ = ("arrays", "flat")

    def __init__(self, arrays: Sequence[Array], flat: Array):
        self.arrays, self.flat = arrays, flat

    def __call__(self) -> None:
        np.concatenate(self.arrays, out=self.flat)


def _group(rule: Any, rates: Rates, updates: Sequence[Update], workspace: Workspace) -> list[Callable[[], object]]:
    """Functions that update concatenated copies, and write back new weights and states."""
    columns = [[a.reshape(-1) for a in column] for column in zip(*(arrays for _, arrays in updates))]
    total = sum(new.size for new, _ in updates)
    # Negative scratch numbers, which no formula uses.
    flat = [workspace.array(-1 - i, (total,), column[0].dtype) for i, column in enumerate(columns)]
    functions: list[Callable[[], object]] = [_Gather(column, whole) for column, whole in zip(columns, flat)]
    functions += rule.bound(rates, flat[0], flat, workspace.array)
    ends = list(itertools.accumulate(new.size for new, _ in updates))
    for i in (0, *range(2, len(columns))):
        functions += [functools.partial(array.__setitem__, Ellipsis, flat[i][end - array.size:end])
                      for array, end in zip(columns[i], ends)]
    return functions
