"""Execution of optimizer updates: in tiles, for several weights at once, on several threads; at once, or as functions
without arguments that are bound to the arrays.

A rule is one function, ``rule(xp, tmp, new, weight, grad, *states, **attrs)``, that can be applied to any part of the
arrays: ``new`` may be the weight, ``tmp(i)`` is the i-th scratch array of its shape. On the host a large array is
processed in tiles by several threads, so that a tile stays in the cache and scratch arrays are small. If several
weights have the same rule, small ones are copied to one array, and one call serves all of them. Bound updates read
rates and step counts from memory, so these may change between runs.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import threads
from ...core.cache import Recent
from ...core.host_memory import OwnWorkspace, Workspace
from ...core.processor import processor
from ...core.rules import Attrs, Rule
from ...elementwise.tiling import pieces
from ...typing import Array, ArrayModule
from .update_formulas import Rates

__all__ = ["Bound", "GroupUpdater", "Row", "Update", "WeightGroup", "bind", "group_updaters", "single",
           "update_together", "widened"]

# Number of elements up to which no faster kernel is sought.
SMALL = 1 << 14
# A tile of float32 elements: half of the second-level cache, at most 512 KiB. Smaller tiles spend their time in Python.
TILE = max(2 * SMALL, min(1 << 17, processor().l2 // 8))
# Weights are concatenated for a common update if they have at most GATHERED elements and there are at least MANY of
# them. For larger or fewer weights, copying takes longer than separate calls.
# There must be _BOUND of them where calls are bound, which cost less.
GATHERED, MANY, _BOUND = 1 << 12, 6, 16
# Number of elements from which another thread is worth waking.
SHARED = 1 << 18

#: Scratch arrays of the size of a tile, by number.
Scratch = Callable[[int], Array]

#: The array for a new weight, and the arrays of its rule.
Update = tuple[Array, Sequence[Array]]


class GroupUpdater(NamedTuple):
    """How a back end runs a rule for several weights.

    Attributes
    ----------
    name : str
        Name for ``explain``.
    serves : function of an array module
        Whether it serves that array module.
    move : function
        A function of the module, the rule, the updates, the dtype of scratch, the attributes, and a fallback.
    bind : function
        A function of the module, the rule, the updates, their ``Rates``, and a function that makes fallbacks; returns
        functions without arguments, or the reason why there are none.
    """

    name: str
    serves: Callable[[ArrayModule], bool]
    move: Callable[..., None]
    bind: Callable[..., list[Callable[[], object]] | str]


#: Group updaters of back ends.
group_updaters: list[GroupUpdater] = []


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


class _TileScratch(OwnWorkspace):
    """Scratch arrays of one tile, by number: fresh memory of this size costs as much as an update."""

    def __init__(self) -> None:
        super().__init__(spare=4 * TILE)
        self.views = Recent(1024)


class _LazyArrays(dict):
    """Arrays by number, created on first use."""

    def __init__(self, make: Scratch):
        self.make = make

    def __missing__(self, number: int) -> Array:
        array = self[number] = self.make(number)
        return array


_tile_scratch = _TileScratch()


def _scratch(xp: ArrayModule, like: Array, dtype: np.dtype | None = None) -> Scratch:
    """Scratch arrays by number; those of a tile on the host are cached."""
    shape, size, dtype = like.shape, like.size, dtype or like.dtype
    if size > TILE or xp is not np:
        return _LazyArrays(lambda number: xp.empty(shape, dtype)).__getitem__
    scratch: Scratch | None = _tile_scratch.views[shape, dtype]
    if scratch is None:
        array = _tile_scratch.array
        scratch = _LazyArrays(lambda number: array(number, shape, dtype)).__getitem__
        _tile_scratch.views.keep((shape, dtype), scratch)
    return scratch


def update_together(xp: ArrayModule, rule: Callable, updates: Sequence[Update], dtype: np.dtype | None = None,
                    **attrs: Any) -> None:
    """Run a rule with the same attributes for several independent weights.

    ``dtype`` is that of the scratch arrays, by default the weight's.
    """
    new, arrays = updates[0]
    if len(updates) == 1 and xp is np and new.size <= SMALL:
        rule(xp, _scratch(xp, new, dtype), new, *arrays, **attrs)
        return
    run = functools.partial(_run, xp, rule, updates, dtype, attrs)
    for updater in group_updaters:
        if updater.serves(xp):
            updater.move(xp, rule, updates, dtype, attrs, run)
            return
    run()


def _run(xp: ArrayModule, rule: Callable, updates: Sequence[Update], dtype: np.dtype | None, attrs: Attrs) -> None:
    """Run a rule with the functions of any array module, on the host tile by tile."""
    parts, groups = _divided(updates, MANY) if xp is np else (updates, [])
    apply = functools.partial(_apply, xp, rule, dtype, attrs)
    work = [functools.partial(apply, *part) for part in parts]
    work += [functools.partial(_run_gathered, apply, group) for group in groups]
    size = sum([new.size for new, _ in parts])
    if size <= SMALL and not groups:  # such weights are updated like a single one
        threads.call_all(work)
    else:
        threads.run(work, shared=xp is np and size >= SHARED)


def _run_gathered(apply: Callable[[Array, Sequence[Array]], None], updates: Sequence[Update]) -> None:
    threads.call_all(_gathered(lambda *flat, scratch: [functools.partial(apply, *flat)], updates, _tile_scratch.array))


def _divided(updates: Sequence[Update], many: int) -> tuple[list[Update], list[list[Update]]]:
    """Weights to update one by one, in parts, and groups of at least ``many`` small weights to update together."""
    if len(updates) < many and sum(new.size for new, _ in updates) <= TILE:
        return list(updates), []
    alike: dict[tuple[object, ...], list[Update]] = {}
    parts: list[Update] = []
    for new, arrays in updates:
        size = new.size
        every = arrays if new is arrays[0] else [new, *arrays]
        sizes = [a.size for a in every]
        if [a for a, n in zip(every, sizes) if n == size and not a.flags.c_contiguous]:
            parts.append((new, arrays))
        elif size > GATHERED:
            parts += _tiles(new, arrays)
        elif len(updates) >= many and sizes.count(size) == len(sizes):
            alike.setdefault(tuple([a.dtype for a in every]), []).append((new, arrays))
        else:
            parts.append((new, arrays))
    return parts, [group for several in alike.values() for group in _groups(several)]


def _tiles(new: Array, arrays: Sequence[Array]) -> list[Update]:
    if new.size <= TILE:
        return [(new, arrays)]
    is_full = [a.size == new.size for a in arrays]
    tiles = pieces([new, *itertools.compress(arrays, is_full)], TILE)
    return [(tile, [parts.pop(0) if is_cut else a for is_cut, a in zip(is_full, arrays)]) for tile, *parts in tiles]


def _apply(xp: ArrayModule, rule: Callable, dtype: np.dtype | None, attrs: Attrs, new: Array, arrays: Sequence[Array]
           ) -> None:
    rule(xp, _scratch(xp, new, dtype), new, *arrays, **attrs)


def _groups(updates: Sequence[Update]) -> list[list[Update]]:
    """Updates in groups of at most one tile."""
    groups: list[list[Update]] = []
    room = -1
    for update in updates:
        size = update[0].size
        room -= size
        if room < 0:
            groups.append([])
            room = TILE - size
        groups[-1].append(update)
    return groups


def _gathered(run: Callable[..., list[Callable[[], object]]], updates: Sequence[Update], scratch: Callable[..., Array]
              ) -> list[Callable[[], object]]:
    """Functions that concatenate weights and states, update these copies as ``run(new, arrays, scratch)`` does, and
    write the results back."""
    columns = [[a if a.ndim == 1 else a.reshape(-1) for a in column]
               for column in zip(*[arrays for _, arrays in updates])]
    ends = list(itertools.accumulate([new.size for new, _ in updates]))
    # Negative scratch numbers, which no formula uses.
    flat = [scratch(-1 - i, (ends[-1],), column[0].dtype) for i, column in enumerate(columns)]
    functions: list[Callable[[], object]] = [functools.partial(np.concatenate, column, 0, whole)
                                             for column, whole in zip(columns, flat)]
    functions += run(flat[0], flat, scratch=scratch)
    functions.append(functools.partial(_copy_all, [
        (array, flat[i][end - array.size:end]) for i in (0, *range(2, len(columns)))
        for array, end in zip(columns[i], ends)]))
    return functions


def _copy_all(pairs: Sequence[tuple[Array, Array]]) -> None:
    for target, source in pairs:
        target[...] = source


_copy_all.plain = True  # type: ignore[attr-defined]  # it depends on no mode


def bind(xp: ArrayModule, kernel: Rule, updates: Sequence[Update], attrs: Attrs) -> Bound:
    """A function that updates weights in place, by the kernel of an operator whose rule is a formula.

    The results are those of ``update_together``.
    """
    rule = vars(kernel.function)["rule"]
    rates = Rates(rule.traced, len(updates[0][1]), attrs)
    ufuncs = functools.partial(_ufuncs, rule, updates, rates)
    declined: list[tuple[str, str]] = []
    for updater in group_updaters:
        if updater.serves(xp):
            attempt = updater.bind(xp, rule, updates, rates, ufuncs)
            if not isinstance(attempt, str):
                return Bound(updater.name, declined, attempt, rates)
            declined.append((updater.name, attempt))
    if xp is np:
        return Bound("ufuncs", declined, ufuncs(), rates)
    return Bound("reference", declined,
                 [_RatesByRun(functools.partial(update_together, xp, rule, updates), kernel, rates)], rates)


class _RatesByRun:
    """A function that takes rates, Python numbers, in each run."""

    __slots__ = ("function", "kernel", "rates")
    capturable = False

    def __init__(self, function: Callable[..., None], kernel: Rule, rates: Rates):
        self.function, self.kernel, self.rates = function, kernel, rates

    def __call__(self) -> None:
        self.function(**self.kernel.select(self.rates.attrs))


def _ufuncs(rule: Any, updates: Sequence[Update], rates: Rates) -> list[Callable[[], object]]:
    """Functions that update weights on the host by ufuncs, in the order of ``_run``."""
    parts, groups = _divided(updates, _BOUND)
    run = functools.partial(rule.bound, rates)
    work: list[tuple[int, Callable[..., list[Callable[[], object]]]]] = [
        (part[0].size, functools.partial(run, *part)) for part in parts]
    work += [(sum(new.size for new, _ in group), functools.partial(_gathered, run, group)) for group in groups]
    if sum(new.size for new, _ in parts) < SHARED or threads.count() < 2:
        workspace = Workspace(spare=4 * TILE)
        return [function for _, make in work for function in make(workspace.array)]
    # Each share has its own scratch. There are more shares than threads, since a thread may have to wait.
    ends = list(itertools.accumulate(size for size, _ in work))
    shares: dict[int, tuple[Workspace, list[Callable[[], object]]]] = {}
    for (_, make), end in zip(work, ends):
        share = (end - 1) * 2 * threads.count() // ends[-1]
        workspace, functions = shares.setdefault(share, (Workspace(spare=4 * TILE), []))
        functions += make(workspace.array)
    return [functools.partial(threads.run, [functools.partial(threads.call_all, functions)
                                            for _, functions in shares.values()])]


def widened(rule: Callable, tail: int = 0, moves: bool = True) -> Callable:
    """The rule on float32 copies of weight and gradient, with inputs weight, grad, states, weight32, and ``tail`` more.

    The copy of the weight is updated; without ``moves`` it is not, and the output of the rule is the result.
    """

    def wide_rule(xp: ArrayModule, tmp: Scratch, new: Array, weight: Array, grad: Array, *rest: Array, **attrs: Any
                  ) -> None:
        states, weight32, last = rest[:-1 - tail], rest[-1 - tail], rest[len(rest) - tail:]
        wide = tmp(9)
        wide[...] = grad
        rule(xp, tmp, weight32 if moves else new, weight32, wide, *states, *last, **attrs)
        if moves:
            new[...] = weight32

    return wide_rule


def single(rule: Callable, copy: int | None = None, moves: bool = True) -> Callable:
    """A kernel that runs a rule, with the weight first and the other inputs in order.

    Parameters
    ----------
    rule : callable
        See the module.
    copy : int, optional
        Index, from the end, of the input that is a float32 copy of the weight, for which the rule is ``widened``.
    moves : bool
        Whether the copy is updated.
    """
    run = rule if copy is None else widened(rule, -1 - copy, moves)

    def kernel(xp: ArrayModule, weight: Array, *rest: Array, out: Array | None = None, **attrs: Any) -> Array:
        reference, dtype = (weight, None) if copy is None else (rest[copy], rest[copy].dtype)
        new = xp.empty_like(weight if moves else reference) if out is None else out
        if xp is np and new.size <= SMALL:
            run(xp, _scratch(xp, new, dtype), new, weight, *rest, **attrs)
        else:
            update_together(xp, run, [(new, [weight, *rest])], dtype, **attrs)
        return new

    if copy is None:
        kernel.rule = rule  # type: ignore[attr-defined]
    # The signature lists the attributes that the rule reads, so the kernel gets only these.
    read = [p for p in inspect.signature(rule).parameters.values() if p.kind is p.KEYWORD_ONLY]
    parameters = [p for p in inspect.signature(kernel).parameters.values() if p.kind is not p.VAR_KEYWORD]
    kernel.__signature__ = inspect.Signature([*parameters, *read])  # type: ignore[attr-defined]
    return kernel
